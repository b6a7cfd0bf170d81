"""The people that an experiment compares with: a model of their contrast sensitivity, or what was
measured.

`load_reference` reads the table ``[human]`` of an experiment page; what it gives answers one
question, what people's sensitivity is at some levels, and `mismatches` tells where the stimulus is
not what these people saw.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, TypeAlias, cast

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.errors import InputError, unknown_name
from psyprobe.files.images import file_digest
from psyprobe.human.castle import DIRECTIONS
from psyprobe.human.datasets import LICENCE, citation, datasets, summary
from psyprobe.human.flicker import LICENCE as FLICKER
from psyprobe.human.flicker import SOURCE as FLICKER_SOURCE
from psyprobe.human.measured import STUDIES, read_human_table, read_thresholds
from psyprobe.human.models import (
    HumanRow,
    OwnCsf,
    csf,
    csf_limits,
    csf_names,
    list_csf,
    load_own_csf,
)
from psyprobe.human.points import LEVELS, Conditions, mean_of_people
from psyprobe.human.signature import QUANTITIES, ContrastSensitivity, Limits, common_shape

#: Relative difference from which two conditions are told to differ; of orientation, degrees.
TOLERANCE = 0.01
_ORIENTATION_TOLERANCE = 1.0
#: Relative difference within which a condition is one at which people were measured.
_SAME = 1e-9
#: Of conditions that are no input of a model.
_UNITS = {
    "radius": "deg",
    "orientation": "deg",
    "mask_orientation": "deg",
    "phase": "deg",
    "x": "deg",
    "y": "deg",
}


@dataclass(frozen=True)
class ModelReference:
    """A contrast sensitivity function; `load_reference` makes one."""

    #: As the page names it.
    name: str
    model: ContrastSensitivity
    limits: Limits
    #: What the page fixes.
    conditions: Mapping[str, Any]
    #: Whether the stimulus has RMS contrast: a sinusoid's is its peak over sqrt(2), and so is the
    #: threshold.
    rms: bool
    #: (from, to, n): the model is read from n log-spaced points of the level by linear
    #: interpolation.
    table: tuple[float, float, int] | None
    #: SHA-256 of a file of one's own; empty for the catalogue.
    digest: str = ""
    #: A model is asked anywhere.
    measured: ClassVar[None] = None

    @property
    def inputs(self) -> tuple[str, ...]:
        """Conditions that it depends on."""
        return self.limits.inputs

    def sensitivity(self, **inputs: Any) -> FloatArray:
        """1 / threshold, in the shape to which the inputs broadcast.

        Inputs that it does not depend on are passed over: all parameters of a stimulus may be given
        (`human_inputs`). Levels are arrays, what is fixed are numbers.

        Raises
        ------
        InputError
            There is no threshold at some condition, an input is missing, or one's own function
            fails.
        """
        levels = {
            name: np.asarray(inputs[name], dtype=np.float64)
            for name in _levels(inputs, self.inputs)
        }
        for name in levels:
            if name in self.conditions:
                raise InputError(
                    f"human.{name} is given, but {name} is what [levels] varies; leave it out"
                )
        known = _askable(self.model, self.limits)
        asked = {
            name: value for name, value in {**inputs, **self.conditions}.items() if name in known
        }
        needs = set(self.limits.needs)
        if (
            asked.get("frequency") is None
            and "disc_radius" in known
            and inputs.get("radius") is not None
        ):
            # What has no frequency is a disc.
            asked = {"disc_radius": inputs["radius"]} | asked
            asked.pop("area", None)
            needs -= {"frequency", "area"}
        for name in self.limits.needs:
            if name in needs and asked.get(name) is None:
                raise InputError(
                    f"the stimulus does not tell the human model its {name}; give it as "
                    f"human.{name}"
                )
        sensitivity = (
            self._ask(asked, levels) if self.table is None else self._interpolate(asked, levels)
        )
        return sensitivity * math.sqrt(2) if self.rms else sensitivity

    def _ask(self, asked: Mapping[str, Any], levels: Mapping[str, FloatArray]) -> FloatArray:
        shape = common_shape({name: level.shape for name, level in levels.items()})
        values = np.asarray(self.model(**asked), dtype=np.float64)
        try:
            sensitivity = np.broadcast_to(values, shape)
        except ValueError:
            raise InputError(
                f"{self.name} gives shape {values.shape} for {shape}; give a value a condition"
            ) from None
        bad = ~(np.isfinite(sensitivity) & (sensitivity > 0))
        if bad.any():
            at = [
                _quantity(name, np.broadcast_to(level, shape)[bad][0])
                for name, level in levels.items()
            ]
            raise InputError(
                f"the human model {self.name} has no "
                f"threshold{' at ' if at else ''}{', '.join(at)} (its sensitivity there is "
                f"{sensitivity[bad][0]:g}); leave this level out"
            )
        return sensitivity

    def _interpolate(
        self, asked: Mapping[str, Any], levels: Mapping[str, FloatArray]
    ) -> FloatArray:
        assert self.table is not None
        known = [name for name in levels if name in self.inputs]
        if len(known) != 1:
            raise InputError(
                f"human.table goes with one level of {self.name}, and [levels] has {len(known)} of "
                "them"
            )
        name = known[0]
        x = levels[known[0]]
        table = np.geomspace(*self.table)
        if x.min() < table[0] * (1 - 1e-12) or x.max() > table[-1] * (1 + 1e-12):
            raise InputError(
                f"human.table ends at {table[0]:g} and {_amount(name, table[-1])}, and levels "
                f"reach from {x.min():g} to {x.max():g}; widen the table"
            )
        return np.interp(x, table, self._ask({**asked, name: table}, {name: table}))


@dataclass(frozen=True)
class DataReference:
    """Thresholds of people at some conditions; `load_reference` makes one."""

    #: As the page names it.
    name: str
    #: Where people were measured: a column for each input, a row each.
    measured: Mapping[str, FloatArray]
    #: 1 / threshold, one a row of ``measured``; of matches, 1 / matched contrast.
    values: FloatArray
    #: What was fixed in the measurement.
    conditions: Mapping[str, Any]
    #: SHA-256 of a file of one's own; empty for the catalogue.
    digest: str = ""
    #: Whether these are matched contrasts, which only a matching experiment compares with.
    matches: bool = False

    @property
    def inputs(self) -> tuple[str, ...]:
        """Conditions that it depends on."""
        return tuple(self.measured)

    def sensitivity(self, **inputs: Any) -> FloatArray:
        """As in `ModelReference`, at measured conditions only."""
        if self.matches:
            raise InputError(
                f"{self.name} holds matched contrasts and no thresholds; it goes with probe = "
                '"matching"'
            )
        asked = {name: np.asarray(inputs[name], dtype=np.float64) for name in self._asked(inputs)}
        shape = common_shape({name: value.shape for name, value in asked.items()})
        flat = {name: np.broadcast_to(value, shape).reshape(-1, 1) for name, value in asked.items()}
        fits = np.ones((math.prod(shape), len(self.values)), dtype=bool)
        for name, value in flat.items():
            fits &= np.isclose(value, self.measured[name], rtol=_SAME, atol=1e-12)
        count = fits.sum(axis=1)
        if (count != 1).any():
            row = int(np.argmax(count != 1))
            at = ", ".join(_quantity(name, value[row, 0]) for name, value in flat.items())
            raise InputError(self._not_one(at, asked, int(count[row])))
        sensitivity: FloatArray = self.values[fits.argmax(axis=1)].reshape(shape)
        return sensitivity

    def within(
        self, levels: Mapping[str, Any], parameters: Mapping[str, Any]
    ) -> tuple[dict[str, FloatArray], FloatArray]:
        """Measured conditions within the range of levels, ascending, and the sensitivity there.

        Parameters
        ----------
        levels : mapping of str to array
            By the name of the level; each must be a column.
        parameters : mapping
            Of the stimulus: they pick the rows where a column that is no level varies.

        Raises
        ------
        InputError
            A level is no column, or nothing was measured there.
        """
        for name in levels:
            if name not in self.measured:
                known = ", ".join(self.measured)
                raise InputError(
                    f"human.data = {self.name!r} goes with levels of {known}, and [levels] varies "
                    f"{name}"
                )
        inside = np.ones(len(self.values), dtype=bool)
        for name, level in levels.items():
            column = self.measured[name]
            low = np.min(level)
            high = np.max(level)
            inside &= (column >= low * (1 - _SAME)) & (column <= high * (1 + _SAME))
            if not inside.any():
                raise InputError(
                    f"{self.name} was measured from {column.min():.4g} to {column.max():.4g}, and "
                    f"levels.{name} reaches from {low:.4g} to {high:.4g}; widen the levels"
                )
        others = {name: parameters[name] for name in self._asked(parameters) if name not in levels}
        for name, value in others.items():
            inside &= np.isclose(self.measured[name], value, rtol=_SAME, atol=1e-12)
        if not inside.any():
            at = ", ".join(_quantity(name, value) for name, value in others.items())
            raise InputError(self._not_one(at, others, 0))
        rows = np.flatnonzero(inside)
        order = rows[np.lexsort([self.measured[name][rows] for name in reversed(list(levels))])]
        return {name: self.measured[name][order] for name in levels}, self.values[order]

    def _asked(self, inputs: Mapping[str, Any]) -> list[str]:
        """Columns that tell rows apart; what is the same in all rows is left to `mismatches`,
        unless it is a level.
        """
        return [
            name
            for name in self.measured
            if inputs.get(name) is not None
            and (name not in self.conditions or name in _levels(inputs, self.inputs))
        ]

    def _not_one(self, at: str, asked: Mapping[str, Any], count: int) -> str:
        if count:
            others = [
                name for name in self.measured if name not in asked and name not in self.conditions
            ]
            return (
                f"{self.name} has {count} thresholds at {at or 'this stimulus'}; say at which "
                f"{' and '.join(others)}"
            )
        known = "; ".join(f"{name} {_listed(self.measured[name])}" for name in asked)
        return f"{self.name} has no threshold at {at}; people were measured at {known}"


@dataclass(frozen=True)
class MatchedReference(DataReference):
    """Thresholds of a data set that belong to the conditions of a stimulus, whatever these are."""

    #: What the page fixes, over what the stimulus says.
    fixed: Mapping[str, Any] = field(default_factory=dict)
    #: Whether the stimulus has RMS contrast, as in `ModelReference`.
    rms: bool = False

    def within(
        self, levels: Mapping[str, Any], parameters: Mapping[str, Any]
    ) -> tuple[dict[str, FloatArray], FloatArray]:
        """As in `DataReference`: means over people, measured so or moved to the stimulus by
        castleCSF's ratio.
        """
        (level, values), *more = levels.items()
        if more or level not in LEVELS:
            raise InputError(
                f"human.data = {self.name!r} goes with one level of {', '.join(LEVELS)}"
            )
        known = human_inputs(parameters) | dict(self.fixed)
        others = {name: known.get(name) for name in LEVELS if name != level}
        for name, value in others.items():
            if not is_number(value):
                raise InputError(f"the stimulus does not tell its {name}; give it as human.{name}")
        direction = known["direction"]
        if direction not in DIRECTIONS:
            raise InputError(
                f"human.data = {self.name!r} goes with a colour direction of "
                f"{', '.join(DIRECTIONS)}"
            )
        span = float(np.min(values)), float(np.max(values))
        gain = math.sqrt(2) if self.rms else 1.0
        shown = Conditions(level, span, direction, **cast(Any, others), noise=self.rms, gain=gain)
        found = mean_of_people(shown, self.name)
        if len(found) < 2:
            raise InputError(
                f"{self.name} has {len(found)} thresholds near {level} "
                f"{_range(level, np.array(span))} of this stimulus; "
                f"psyprobe.human.thresholds({self.name!r}) shows what it has"
            )
        at, log_s = (np.array(each) for each in zip(*found, strict=True))
        return {level: at}, 10**log_s

    def sensitivity(self, **inputs: Any) -> FloatArray:
        """As in `DataReference`."""
        (level,) = (name for name in _levels(inputs, LEVELS))
        values = np.asarray(inputs[level], dtype=np.float64)
        fixed = {name: value for name, value in inputs.items() if name != level}
        at, seen = self.within({level: values}, fixed)
        near = np.abs(np.log(values.ravel()[:, None] / at[level]))
        if (near.min(axis=1) > _SAME).any():
            raise InputError(
                f"{self.name} has no threshold at some {level}; people were at {_listed(at[level])}"
            )
        return np.asarray(seen[near.argmin(axis=1)].reshape(values.shape))


#: What people see, from either source.
Reference: TypeAlias = ModelReference | DataReference


def load_reference(entry: Mapping[str, Any], folder: Path) -> Reference:
    """The human reference that a page names.

    Parameters
    ----------
    entry : mapping
        The table ``[human]``: ``model`` (a name, or "FILE.py:FUNCTION") with ``contrast`` ("peak"
        or "rms"), ``table`` (from, to, n) and fixed inputs of the model; or ``data`` (a name, or
        "FILE.csv" with what was fixed in the measurement). Of a data set of `thresholds` those are
        taken that belong to the stimulus, as `matched_thresholds` says.
    folder : Path
        Of the page; its files are looked for there.

    Raises
    ------
    InputError
        If the entry, or a file that it names, cannot be used; the message names the key.

    Examples
    --------
    >>> people = load_reference({"model": "castle_csf", "area": 1.0}, Path())
    >>> people.sensitivity(frequency=np.array([4.0]), luminance=100.0, direction="achromatic").round(2)
    array([134.61])
    >>> load_reference({"data": "foley1994"}, Path()).conditions["luminance"]
    32.0
    """
    if ("model" in entry) == ("data" in entry):
        raise InputError("[human] must name either a model or data: what people are compared with")
    kind, read = ("model", _model) if "model" in entry else ("data", _data)
    if not isinstance(entry[kind], str):
        raise InputError(f"human.{kind} is {entry[kind]!r}; give text")
    return read(entry[kind], entry, folder)


def human_names() -> tuple[str, ...]:
    """All that ``human.model`` and ``human.data`` take by name.

    Examples
    --------
    >>> human_names()[0], human_names()[-1]
    ('castle_csf', 'georgeson_sullivan1975')
    """
    return (*csf_names(), *STUDIES)


def list_human() -> list[HumanRow]:
    """Models, those of installed packages included, measured data, and the data sets of
    `thresholds`.

    What is broken says why in its row.

    Examples
    --------
    >>> [row.name for row in list_human() if row.source.startswith("Foley")]
    ['foley1994', 'foley1994_orientation']
    >>> [row.name for row in list_human() if row.source.startswith("ModelFest")]
    ['modelfest']
    """
    studies = [HumanRow(name, study["summary"], study["source"]) for name, study in STUDIES.items()]
    tables = [HumanRow(name, summary(name), citation(name), licence=LICENCE) for name in datasets()]
    flicker = HumanRow(
        "flicker",
        "532 sensitivities to flicker: flicker_thresholds()",
        FLICKER_SOURCE,
        licence=FLICKER,
    )
    return [*list_csf(), *studies, *tables, flicker]


def human_inputs(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Conditions of a human reference from the parameters of a stimulus, its levels among them.

    Area and radius are told by each other: that of a Gabor is pi * radius**2 * aspect, as castleCSF
    has it. What is not said to have a colour is achromatic.

    Examples
    --------
    >>> human_inputs({"frequency": 4.0, "radius": 1.0})
    {'direction': 'achromatic', 'frequency': 4.0, 'radius': 1.0, 'area': 3.141592653589793}
    """
    inputs = {"direction": "achromatic", **parameters}
    radius = inputs.get("radius")
    if inputs.get("area") is not None:
        inputs["radius"] = np.sqrt(np.asarray(inputs["area"]) / math.pi)[()]
    elif radius is not None and inputs.get("window", "") != "none":
        inputs["area"] = math.pi * radius**2 * inputs.get("aspect", 1.0)
    return inputs


def mismatches(reference: Reference, stimulus_parameters: Mapping[str, Any]) -> list[str]:
    """One line for each condition in which the stimulus is not what people saw, or beyond what a
    model declares.

    Parameters
    ----------
    reference : Reference
        As `load_reference` gives it.
    stimulus_parameters : mapping of str to (number, text or array)
        Levels as arrays. What the stimulus does not say is not compared.

    Notes
    -----
    Numbers differ from 1 % on, orientations from 1 deg; colour directions if they are not parallel
    to 1 %.

    Examples
    --------
    >>> mismatches(load_reference({"data": "foley1994"}, Path()), {"frequency": 4.0, "luminance": 32.0})
    ['foley1994: people were measured at frequency 2 cpd, the stimulus has 4 cpd']
    """
    asked = human_inputs(stimulus_parameters)
    if "direction" not in stimulus_parameters:
        del asked["direction"]
    said = (
        "the human model is asked"
        if isinstance(reference, ModelReference)
        else "people were measured"
    )
    lines = [
        f"{reference.name}: {said} at {_quantity(name, fixed)}, the stimulus has "
        f"{_range(name, asked[name])}"
        for name, fixed in reference.conditions.items()
        if asked.get(name) is not None and _differs(name, fixed, asked[name])
    ]
    if isinstance(reference, ModelReference):
        for name, (low, high) in reference.limits.valid.items():
            value = reference.conditions.get(name, asked.get(name))
            if value is not None and (np.min(value) < low or np.max(value) > high):
                lines.append(
                    f"{reference.name}: the model is declared for {name} {low:g} to "
                    f"{_amount(name, high)}, the stimulus has {_range(name, value)}; beyond, it is "
                    "extrapolated"
                )
    return lines


def _model(name: str, entry: Mapping[str, Any], folder: Path) -> ModelReference:
    model: ContrastSensitivity = load_own_csf(name, folder) if ".py" in name else csf(name)
    limits = csf_limits(model)
    digest = file_digest(limits.source) if ".py" in name else ""
    fixed = {
        key: value for key, value in entry.items() if key not in ("model", "contrast", "table")
    }
    contrast = _contrast(entry)
    table = _table(entry["table"]) if "table" in entry else None
    known = ("model", "contrast", "table", *_askable(model, limits))
    return ModelReference(
        name, model, limits, _fixed(fixed, known), contrast == "rms", table, digest
    )


def _contrast(entry: Mapping[str, Any]) -> str:
    contrast = entry.get("contrast", "peak")
    if contrast not in ("peak", "rms"):
        raise InputError(f"human.contrast is {contrast!r}; give 'peak' or 'rms'")
    return str(contrast)


def _data(name: str, entry: Mapping[str, Any], folder: Path) -> DataReference:
    fixed = {key: value for key, value in entry.items() if key != "data"}
    if not name.endswith(".csv"):
        if name in datasets():
            contrast = _contrast(entry)
            fixed.pop("contrast", None)
            held = _fixed(fixed, ("data", "contrast", "direction", *LEVELS))
            return MatchedReference(name, {}, np.empty(0), {}, fixed=held, rms=contrast == "rms")
        if name not in STUDIES:
            raise unknown_name("human data", name, STUDIES)
        _fixed(fixed, ("data",))
        return _study(name)
    measured, sensitivity, direction = read_thresholds(folder / name)
    constant: dict[str, Any] = {"direction": direction} if direction else {}
    constant |= {key: float(column[0]) for key, column in measured.items() if np.ptp(column) == 0}
    for key in fixed:
        if key in measured:
            raise InputError(
                f"human.{key} is given, and so is a column {key} of {name}; leave one out"
            )
    known = ("data", "direction", *QUANTITIES, *_UNITS)
    return DataReference(
        name, measured, sensitivity, constant | _fixed(fixed, known), file_digest(folder / name)
    )


def _askable(model: ContrastSensitivity, limits: Limits) -> tuple[str, ...]:
    """Our achromatic models are told the colour too, and refuse what they cannot see."""
    return limits.inputs if isinstance(model, OwnCsf) else (*limits.inputs, "direction")


def _fixed(given: Mapping[str, Any], known: tuple[str, ...]) -> dict[str, Any]:
    for key, value in given.items():
        if key not in known:
            raise unknown_name("key in [human]", key, known)
        if key in ("direction", "background") and isinstance(value, str | list | tuple):
            if not isinstance(value, str) and (len(value) != 3 or not all(map(is_number, value))):
                raise InputError(
                    f"human.{key} is {value!r}; give a name or three numbers (L, M, S)"
                )
        elif not is_number(value) or (
            key in ("frequency", "luminance", "area", "radius") and value <= 0
        ):
            unit = f" in {_unit(key)}, without the unit" if _unit(key) else ""
            raise InputError(f"human.{key} is {value!r}; give a number{unit}")
    return {
        key: tuple(map(float, value)) if isinstance(value, list) else value
        for key, value in given.items()
    }


def _table(entry: Any) -> tuple[float, float, int]:
    if not isinstance(entry, Mapping) or set(entry) != {"from", "to", "n"}:
        raise InputError(f"human.table is {entry!r}; give {{ from, to, n }}")
    low = entry["from"]
    high = entry["to"]
    n = entry["n"]
    if not isinstance(n, int) or isinstance(n, bool) or not 2 <= n <= 10_000:
        raise InputError(f"human.table.n is {n!r}; give a whole number from 2 to 10000")
    if not (is_number(low) and is_number(high) and 0 < low < high):
        raise InputError(
            f"human.table goes from {low!r} to {high!r}; give numbers above 0, the second larger"
        )
    return float(low), float(high), n


def _study(name: str) -> DataReference:
    study = STUDIES[name]
    columns = read_human_table(name)[1]
    measure = study["measure"]
    found = 10.0 ** -columns[measure] if measure == "log10_threshold" else 1 / columns[measure]
    levels = {level: columns[level] for level in study["levels"]}
    return DataReference(
        name, levels, found, study["conditions"], matches=measure == "matched_contrast"
    )


def is_number(value: Any) -> bool:
    """Whether a value of a page is a finite number, which true and false are not."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _levels(inputs: Mapping[str, Any], known: tuple[str, ...]) -> list[str]:
    """Names of what varies: arrays; lists too where they are conditions, and not the size of an
    image.
    """
    return [
        name
        for name, value in inputs.items()
        if name not in ("direction", "background")
        and (isinstance(value, np.ndarray) or (name in known and not isinstance(value, str)))
        and np.ndim(value) > 0
    ]


def _unit(name: str) -> str:
    return QUANTITIES[name].unit if name in QUANTITIES else _UNITS.get(name, "")


def _quantity(name: str, value: Any) -> str:
    """A condition for a message: "frequency 2 cpd"."""
    return f"{name} {_amount(name, value)}"


def _amount(name: str, value: Any) -> str:
    number = f"{value:.4g}" if isinstance(value, int | float | np.number) else str(value)
    return f"{number} {_unit(name)}".rstrip()


def _range(name: str, value: Any) -> str:
    if name == "direction" or np.ndim(value) == 0:
        return _amount(name, value)
    return f"{np.min(value):.4g} to {_amount(name, np.max(value))}"


def _listed(column: FloatArray) -> str:
    values = np.unique(column)
    return (
        ", ".join(f"{v:.4g}" for v in values)
        if values.size <= 12
        else f"{values[0]:.4g} to {values[-1]:.4g}"
    )


def _differs(name: str, fixed: Any, shown: Any) -> bool:
    if name in ("direction", "background"):
        return _not_parallel(fixed, shown)
    if isinstance(fixed, str) or isinstance(shown, str):
        return str(fixed) != str(shown)
    if name == "orientation":
        turned = np.abs((np.asarray(shown) - fixed + 90) % 180 - 90)
        return bool((turned > _ORIENTATION_TOLERANCE).any())
    return not np.allclose(shown, fixed, rtol=TOLERANCE, atol=0)


def _not_parallel(fixed: Any, shown: Any) -> bool:
    one, other = (
        DIRECTIONS.get(each, each) if isinstance(each, str) else each for each in (fixed, shown)
    )
    if isinstance(one, str) or isinstance(other, str):
        return bool(fixed != shown)
    a = np.asarray(one, dtype=np.float64)
    b = np.asarray(other, dtype=np.float64)
    return bool(np.linalg.norm(np.cross(a, b)) > TOLERANCE * np.linalg.norm(a) * np.linalg.norm(b))
