"""Load the human reference of an experiment: a contrast sensitivity model, or measured thresholds.

`load_reference` reads the table ``[human]`` of an experiment page; a reference returns people's
sensitivity at some levels, and `mismatches` lists the conditions in which people saw another
stimulus.
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
from psyprobe.files.json_types import JsonMapping, JsonObject
from psyprobe.files.listing import Listing
from psyprobe.human.castle import DIRECTIONS
from psyprobe.human.datasets import LICENCE, citation, datasets, summary
from psyprobe.human.flicker import LICENCE as FLICKER
from psyprobe.human.flicker import SOURCE as FLICKER_SOURCE
from psyprobe.human.measured import STUDIES, read_human_table, read_thresholds
from psyprobe.human.models import (
    CustomCsf,
    HumanRow,
    csf,
    csf_names,
    list_csf,
    load_custom_csf,
)
from psyprobe.human.points import LEVELS, Conditions, mean_of_people
from psyprobe.human.signature import (
    LIMITS,
    QUANTITIES,
    ContrastSensitivity,
    Limits,
    common_shape,
)

#: Relative difference from which two conditions differ; of orientation, degrees.
TOLERANCE = 0.01
_ORIENTATION_TOLERANCE = 1.0
#: Relative difference within which two conditions are the same.
_SAME = 1e-9


@dataclass(frozen=True)
class ModelReference:
    """A contrast sensitivity function as human reference."""

    #: Name that the experiment gives.
    name: str
    #: The contrast sensitivity function.
    model: ContrastSensitivity
    #: Inputs and ranges of the model.
    limits: Limits
    #: Conditions that the experiment fixes.
    conditions: JsonMapping
    #: Whether the stimulus has RMS contrast: a sinusoid's is its peak over sqrt(2), and so is the
    #: threshold.
    rms: bool
    #: (from, to, n): the model is interpolated linearly from n log-spaced points of the level.
    table: tuple[float, float, int] | None
    #: SHA-256 of a user's file; empty for the catalogue.
    digest: str = ""
    #: A model has no measured conditions.
    measured: ClassVar[None] = None

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the conditions that sensitivity depends on."""
        return self.limits.inputs

    def sensitivity(self, **inputs: Any) -> FloatArray:
        """Compute 1 / threshold by the model, in the shape to which the inputs broadcast.

        Inputs that it does not depend on are ignored: all parameters of a stimulus may be given
        (`human_inputs`). Levels are arrays, fixed conditions are numbers.

        Raises
        ------
        InputError
            There is no threshold at some condition, an input is missing, or a user's function
            fails.
        """
        names = _levels(inputs, self.inputs)
        levels = {name: np.asarray(inputs[name], dtype=np.float64) for name in names}
        for name in names:
            if name in self.conditions:
                raise InputError(
                    f"human.{name} is given, but {name} is what [levels] varies; leave it out"
                )
        accepted = _accepted_inputs(self.model, self.limits)
        conditions = {**inputs, **self.conditions}
        values = {name: value for name, value in conditions.items() if name in accepted}
        needs = set(self.limits.needs)
        is_disc = values.get("frequency") is None and "disc_radius" in accepted
        if is_disc and inputs.get("radius") is not None:
            values = {"disc_radius": inputs["radius"]} | values
            values.pop("area", None)
            needs -= {"frequency", "area"}
        for name in self.limits.needs:
            if name in needs and values.get(name) is None:
                raise InputError(
                    f"the stimulus does not tell the human model its {name}; give it as "
                    f"human.{name}"
                )
        evaluate = self._evaluate if self.table is None else self._interpolate
        sensitivity = evaluate(values, levels)
        return sensitivity * math.sqrt(2) if self.rms else sensitivity

    def _evaluate(
        self, conditions: JsonMapping, levels: Mapping[str, FloatArray]
    ) -> FloatArray:
        """Call the model on all conditions, shaped like `levels`; refuse sensitivities <= 0."""
        shape = common_shape({name: level.shape for name, level in levels.items()})
        values = np.asarray(self.model(**conditions), dtype=np.float64)
        try:
            sensitivity = np.broadcast_to(values, shape)
        except ValueError:
            raise InputError(
                f"{self.name} gives shape {values.shape} for {shape}; give a value a condition"
            ) from None
        is_bad = ~(np.isfinite(sensitivity) & (sensitivity > 0))
        if is_bad.any():
            first = {
                name: np.broadcast_to(level, shape)[is_bad][0]
                for name, level in levels.items()
            }
            condition = f" at {_condition(first)}" if first else ""
            raise InputError(
                f"the human model {self.name} has no threshold{condition} (its sensitivity there "
                f"is {sensitivity[is_bad][0]:g}); leave this level out"
            )
        return sensitivity

    def _interpolate(
        self, conditions: JsonMapping, levels: Mapping[str, FloatArray]
    ) -> FloatArray:
        """Interpolate sensitivity at one level from a log-spaced table of it."""
        assert self.table is not None
        names = [name for name in levels if name in self.inputs]
        if len(names) != 1:
            raise InputError(
                f"human.table goes with one level of {self.name}, and [levels] has {len(names)} of "
                "them"
            )
        (name,) = names
        x = levels[name]
        table = np.geomspace(*self.table)
        if x.min() < table[0] * (1 - 1e-12) or x.max() > table[-1] * (1 + 1e-12):
            raise InputError(
                f"human.table ends at {table[0]:g} and {_format_amount(name, table[-1])}, and "
                f"levels reach from {x.min():g} to {x.max():g}; widen the table"
            )
        sensitivity = self._evaluate({**conditions, name: table}, {name: table})
        return np.interp(x, table, sensitivity)


@dataclass(frozen=True)
class DataReference:
    """Measured thresholds of people at some conditions as human reference."""

    #: Name that the experiment gives.
    name: str
    #: Measured conditions: a column for each input, one entry a threshold.
    measured: Mapping[str, FloatArray]
    #: 1 / threshold at each condition of ``measured``; of matches, 1 / matched contrast.
    values: FloatArray
    #: Conditions that were fixed in the measurement.
    conditions: JsonMapping
    #: SHA-256 of a user's file; empty for the catalogue.
    digest: str = ""
    #: Whether these are matched contrasts, which only a matching experiment compares with.
    matches: bool = False

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the conditions that sensitivity depends on."""
        return tuple(self.measured)

    def sensitivity(self, **inputs: Any) -> FloatArray:
        """Return 1 / threshold as measured at given conditions."""
        if self.matches:
            raise InputError(
                f"{self.name} holds matched contrasts and no thresholds; it goes with probe = "
                '"matching"'
            )
        names = self._distinguishing_columns(inputs)
        values = {name: np.asarray(inputs[name], dtype=np.float64) for name in names}
        shape = common_shape({name: value.shape for name, value in values.items()})
        fits = np.ones((math.prod(shape), len(self.values)), dtype=bool)
        flat = {}
        for name, value in values.items():
            flat[name] = np.broadcast_to(value, shape).reshape(-1, 1)
            fits &= np.isclose(flat[name], self.measured[name], rtol=_SAME, atol=1e-12)
        counts = fits.sum(axis=1)
        if (counts != 1).any():
            row = int(np.argmax(counts != 1))
            condition = {name: value[row, 0] for name, value in flat.items()}
            raise InputError(self._explain_count(condition, int(counts[row])))
        sensitivity: FloatArray = self.values[fits.argmax(axis=1)].reshape(shape)
        return sensitivity

    def within(
        self, levels: JsonMapping, parameters: JsonMapping
    ) -> tuple[dict[str, FloatArray], FloatArray]:
        """Select the measured conditions in the range of levels, ascending, with their sensitivity.

        Parameters
        ----------
        levels : mapping of str to array
            Values of each level, by its name; each must be a column.
        parameters : mapping
            Parameters of the stimulus: they select rows by the other columns that vary.

        Raises
        ------
        InputError
            A level is no column, or there are no measurements within the range.
        """
        for name in levels:
            if name not in self.measured:
                raise InputError(
                    f"human.data = {self.name!r} goes with levels of {', '.join(self.measured)}, "
                    f"and [levels] varies {name}"
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
        names = self._distinguishing_columns(parameters)
        others = {name: parameters[name] for name in names if name not in levels}
        for name, value in others.items():
            inside &= np.isclose(self.measured[name], value, rtol=_SAME, atol=1e-12)
        if not inside.any():
            raise InputError(self._explain_count(others, 0))
        rows = np.flatnonzero(inside)
        keys = [self.measured[name][rows] for name in reversed(list(levels))]
        order = rows[np.lexsort(keys)]
        return {name: self.measured[name][order] for name in levels}, self.values[order]

    def _distinguishing_columns(self, inputs: JsonMapping) -> list[str]:
        """Select the columns of measured conditions by which rows are chosen.

        Those with one value in all rows are left to `mismatches`, unless they are levels.
        """
        levels = _levels(inputs, self.inputs)
        return [
            name
            for name in self.measured
            if inputs.get(name) is not None
            and (name not in self.conditions or name in levels)
        ]

    def _explain_count(self, condition: JsonMapping, count: int) -> str:
        """Explain why people have several thresholds at a condition, or none."""
        description = _condition(condition)
        if count:
            others = [
                name
                for name in self.measured
                if name not in {*condition, *self.conditions}
            ]
            return (
                f"{self.name} has {count} thresholds at {description or 'this stimulus'}; say at "
                f"which {' and '.join(others)}"
            )
        measured = "; ".join(
            f"{name} {_list_values(self.measured[name])}" for name in condition
        )
        return f"{self.name} has no threshold at {description}; people were measured at {measured}"


@dataclass(frozen=True)
class MatchedReference(DataReference):
    """Thresholds of a data set that fit the conditions of any stimulus as human reference."""

    #: Conditions that the experiment fixes; they go before those of the stimulus.
    fixed: JsonMapping = field(default_factory=dict)
    #: Whether the stimulus has RMS contrast, as in `ModelReference`.
    rms: bool = False

    def within(
        self, levels: JsonMapping, parameters: JsonMapping
    ) -> tuple[dict[str, FloatArray], FloatArray]:
        """Return mean sensitivity over people, scaled to the stimulus by castleCSF's ratio.

        Parameters are those of `DataReference.within`.
        """
        level, values = next(iter(levels.items()))
        if len(levels) > 1 or level not in LEVELS:
            raise InputError(
                f"human.data = {self.name!r} goes with one level of {', '.join(LEVELS)}"
            )
        inputs = human_inputs(parameters) | dict(self.fixed)
        others = {name: inputs.get(name) for name in LEVELS if name != level}
        for name, value in others.items():
            if not is_number(value):
                raise InputError(
                    f"the stimulus does not tell its {name}; give it as human.{name}"
                )
        direction = inputs["direction"]
        if direction not in DIRECTIONS:
            raise InputError(
                f"human.data = {self.name!r} goes with a colour direction of "
                f"{', '.join(DIRECTIONS)}"
            )
        span = float(np.min(values)), float(np.max(values))
        gain = math.sqrt(2) if self.rms else 1.0
        conditions = Conditions(
            level, span, direction, **cast(Any, others), noise=self.rms, gain=gain
        )
        means = mean_of_people(conditions, self.name)
        if len(means) < 2:
            raise InputError(
                f"{self.name} has {len(means)} thresholds near {level} "
                f"{_format_range(level, np.array(span))} of this stimulus; "
                f"psyprobe.human.thresholds({self.name!r}) shows what it has"
            )
        x, log_sensitivity = np.array(means).T
        return {level: x}, 10**log_sensitivity

    def sensitivity(self, **inputs: Any) -> FloatArray:
        """Return mean 1 / threshold over people at given conditions."""
        (level,) = _levels(inputs, LEVELS)
        values = np.asarray(inputs[level], dtype=np.float64)
        fixed = {name: value for name, value in inputs.items() if name != level}
        columns, sensitivity = self.within({level: values}, fixed)
        measured = columns[level]
        distance = np.abs(np.log(values.ravel()[:, None] / measured))
        if (distance.min(axis=1) > _SAME).any():
            raise InputError(
                f"{self.name} has no threshold at some {level}; people were at "
                f"{_list_values(measured)}"
            )
        return np.asarray(sensitivity[distance.argmin(axis=1)].reshape(values.shape))


#: A human reference of either kind.
Reference: TypeAlias = ModelReference | DataReference


def load_reference(entry: JsonMapping, folder: Path) -> Reference:
    """Load the human model or data that the [human] table of an experiment names.

    Parameters
    ----------
    entry : mapping
        The table ``[human]``: ``model`` (a name, or "FILE.py:FUNCTION") with ``contrast`` ("peak"
        or "rms"), ``table`` (from, to, n) and fixed inputs of the model; or ``data`` (a name, or
        "FILE.csv" with the fixed conditions of its measurement). From a data set of `thresholds`,
        `matched_thresholds` selects those that fit the stimulus.
    folder : Path
        Folder of the experiment's page and its files.

    Raises
    ------
    InputError
        If the entry, or a file that it names, cannot be used; the message names the key.

    Examples
    --------
    >>> people = load_reference({"model": "castle_csf", "area": 1.0}, Path())
    >>> frequency = np.array([4.0])
    >>> people.sensitivity(frequency=frequency, luminance=100.0, direction="achromatic").round(2)
    array([134.61])
    >>> load_reference({"data": "foley1994"}, Path()).conditions["luminance"]
    32.0
    """
    if ("model" in entry) == ("data" in entry):
        raise InputError(
            "[human] must name either a model or data: what people are compared with"
        )
    kind = "model" if "model" in entry else "data"
    name = entry[kind]
    if not isinstance(name, str):
        raise InputError(f"human.{kind} is {name!r}; give text")
    if kind == "model":
        return _load_model(name, entry, folder)
    return _load_data(name, entry, folder)


def human_names() -> tuple[str, ...]:
    """List all names that `human.model` and `human.data` of an experiment may have.

    Examples
    --------
    >>> human_names()[0], human_names()[-1]
    ('castle_csf', 'georgeson_sullivan1975')
    """
    return (*csf_names(), *STUDIES)


def list_human() -> Listing[HumanRow]:
    """List human models, those of installed packages, measured studies and data sets.

    The row of a broken one says why.

    Examples
    --------
    >>> [row.name for row in list_human() if row.source.startswith("Foley")]
    ['foley1994', 'foley1994_orientation']
    >>> [row.name for row in list_human() if row.source.startswith("ModelFest")]
    ['modelfest']
    """
    studies = [
        HumanRow(name, study["summary"], study["source"])
        for name, study in STUDIES.items()
    ]
    tables = [
        HumanRow(name, summary(name), citation(name), licence=LICENCE)
        for name in datasets()
    ]
    flicker = HumanRow(
        "flicker",
        "532 sensitivities to flicker: flicker_thresholds()",
        FLICKER_SOURCE,
        licence=FLICKER,
    )
    return Listing([*list_csf(), *studies, *tables, flicker])


def human_inputs(parameters: JsonMapping) -> JsonObject:
    """Derive the inputs of a human model (frequency, area ...) from a stimulus's parameters.

    Area and radius follow from each other: the area of a Gabor is pi * radius**2 * aspect, as in
    castleCSF. A stimulus without a direction is achromatic.

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


def mismatches(reference: Reference, stimulus_parameters: JsonMapping) -> list[str]:
    """List where a stimulus differs from what people saw, or leaves a model's range.

    Parameters
    ----------
    reference : Reference
        As `load_reference` returns it.
    stimulus_parameters : mapping of str to (number, text or array)
        Levels as arrays. Conditions that the stimulus lacks are not compared.

    Returns
    -------
    list of str
        A line for each condition.

    Notes
    -----
    Numbers differ from 1 % on, orientations from 1 deg; colour directions if they are not parallel
    to 1 %.

    Examples
    --------
    >>> reference = load_reference({"data": "foley1994"}, Path())
    >>> mismatches(reference, {"frequency": 4.0, "luminance": 32.0})
    ['foley1994: people were measured at frequency 2 cpd, the stimulus has 4 cpd']
    """
    inputs = human_inputs(stimulus_parameters)
    if "direction" not in stimulus_parameters:
        del inputs["direction"]
    is_model = isinstance(reference, ModelReference)
    source = "the human model is asked" if is_model else "people were measured"
    lines = [
        f"{reference.name}: {source} at {name} {_format_amount(name, fixed)}, the stimulus has "
        f"{_format_range(name, inputs[name])}"
        for name, fixed in reference.conditions.items()
        if inputs.get(name) is not None and _differs(name, fixed, inputs[name])
    ]
    if isinstance(reference, ModelReference):
        for name, (low, high) in reference.limits.valid.items():
            value = reference.conditions.get(name, inputs.get(name))
            if value is not None and (np.min(value) < low or np.max(value) > high):
                lines.append(
                    f"{reference.name}: the model is declared for {name} {low:g} to "
                    f"{_format_amount(name, high)}, the stimulus has {_format_range(name, value)}; "
                    "beyond, it is extrapolated"
                )
    return lines


def _load_model(name: str, entry: JsonMapping, folder: Path) -> ModelReference:
    """Build the reference to a human model, built-in or of a Python file, from [human]."""
    is_file = ".py" in name
    model: ContrastSensitivity = load_custom_csf(name, folder) if is_file else csf(name)
    limits = model.limits if isinstance(model, CustomCsf) else LIMITS[name]
    digest = file_digest(limits.source) if is_file else ""
    options = ("model", "contrast", "table")
    inputs = {key: value for key, value in entry.items() if key not in options}
    is_rms = _is_rms(entry)
    table = _check_table(entry["table"]) if "table" in entry else None
    conditions = _checked_conditions(
        inputs, (*options, *_accepted_inputs(model, limits))
    )
    return ModelReference(name, model, limits, conditions, is_rms, table, digest)


def _is_rms(entry: JsonMapping) -> bool:
    """Tell whether [human] gives contrasts as RMS; refuse any other than "peak" and "rms"."""
    contrast = entry.get("contrast", "peak")
    if contrast not in ("peak", "rms"):
        raise InputError(f"human.contrast is {contrast!r}; give 'peak' or 'rms'")
    return bool(contrast == "rms")


def _load_data(name: str, entry: JsonMapping, folder: Path) -> DataReference:
    """Load human thresholds: of a collected data set, a built-in study, or a CSV file."""
    fixed = {key: value for key, value in entry.items() if key != "data"}
    if not name.endswith(".csv"):
        if name in datasets():
            fixed.pop("contrast", None)
            conditions = _checked_conditions(
                fixed, ("data", "contrast", "direction", *LEVELS)
            )
            return MatchedReference(
                name, {}, np.empty(0), {}, fixed=conditions, rms=_is_rms(entry)
            )
        if name not in STUDIES:
            raise unknown_name("human data", name, STUDIES)
        _checked_conditions(fixed, ("data",))
        return _load_study(name)
    measured, sensitivity, direction = read_thresholds(folder / name)
    conditions = {"direction": direction} if direction else {}
    for key, column in measured.items():
        if np.ptp(column) == 0:
            conditions[key] = float(column[0])
    for key in fixed:
        if key in measured:
            raise InputError(
                f"human.{key} is given, and so is a column {key} of {name}; leave one out"
            )
    conditions |= _checked_conditions(fixed, ("data", "direction", *QUANTITIES))
    return DataReference(
        name, measured, sensitivity, conditions, file_digest(folder / name)
    )


def _accepted_inputs(model: ContrastSensitivity, limits: Limits) -> tuple[str, ...]:
    """List the inputs that a human model takes, refusing what a built-in one lacks."""
    return (
        limits.inputs if isinstance(model, CustomCsf) else (*limits.inputs, "direction")
    )


def _checked_conditions(entry: JsonMapping, valid: tuple[str, ...]) -> JsonObject:
    """Check the fixed conditions of [human], and return them with lists as tuples."""
    for key, value in entry.items():
        if key not in valid:
            raise unknown_name("key in [human]", key, valid)
        if key in ("direction", "background") and isinstance(value, str | list | tuple):
            if not isinstance(value, str) and (
                len(value) != 3 or not all(map(is_number, value))
            ):
                raise InputError(
                    f"human.{key} is {value!r}; give a name or three numbers (L, M, S)"
                )
            continue
        is_positive = key in ("frequency", "luminance", "area", "radius")
        if not is_number(value) or (is_positive and value <= 0):
            unit = f" in {_unit_of(key)}, without the unit" if _unit_of(key) else ""
            raise InputError(f"human.{key} is {value!r}; give a number{unit}")
    return {
        key: tuple(map(float, value)) if isinstance(value, list) else value
        for key, value in entry.items()
    }


def _check_table(entry: Any) -> tuple[float, float, int]:
    """Check human.table and return (from, to, n), the ends and number of its levels."""
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


def _load_study(name: str) -> DataReference:
    """Build the human reference of a built-in study from its packaged table."""
    study = STUDIES[name]
    columns = read_human_table(name)[1]
    measure = study["measure"]
    column = columns[measure]
    sensitivity = 10.0**-column if measure == "log10_threshold" else 1 / column
    levels = {level: columns[level] for level in study["levels"]}
    matches = measure == "matched_contrast"
    return DataReference(
        name, levels, sensitivity, study["conditions"], matches=matches
    )


def is_number(value: Any) -> bool:
    """Tell whether a value is a finite number, which true and false are not."""
    return (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and math.isfinite(value)
    )


def _levels(inputs: JsonMapping, conditions: tuple[str, ...]) -> list[str]:
    """List the names of inputs that vary: arrays, and lists unless they are vectors."""
    return [
        name
        for name, value in inputs.items()
        if name not in ("direction", "background")
        and (
            isinstance(value, np.ndarray)
            or (name in conditions and not isinstance(value, str))
        )
        and np.ndim(value) > 0
    ]


def _unit_of(name: str) -> str:
    """Return the unit symbol of a quantity, or "" for what has none."""
    return QUANTITIES[name].unit if name in QUANTITIES else ""


def _condition(values: JsonMapping) -> str:
    """Describe a condition for a message: "frequency 2 cpd, luminance 32 cd/m²"."""
    return ", ".join(
        f"{name} {_format_amount(name, value)}" for name, value in values.items()
    )


def _format_amount(name: str, value: Any) -> str:
    """Format a value with the unit of its quantity."""
    number = (
        f"{value:.4g}" if isinstance(value, int | float | np.number) else str(value)
    )
    return f"{number} {_unit_of(name)}".rstrip()


def _format_range(name: str, value: Any) -> str:
    """Format a value or the range of an array, with the unit of its quantity."""
    if name == "direction" or np.ndim(value) == 0:
        return _format_amount(name, value)
    return f"{np.min(value):.4g} to {_format_amount(name, np.max(value))}"


def _list_values(column: FloatArray) -> str:
    """List the distinct values of a column as text, or its range if there are more than 12."""
    values = np.unique(column)
    if values.size > 12:
        return f"{values[0]:.4g} to {values[-1]:.4g}"
    return ", ".join(f"{value:.4g}" for value in values)


def _differs(name: str, fixed: Any, value: Any) -> bool:
    """Tell whether a fixed condition differs from a stimulus's value by more than the tolerance."""
    if name in ("direction", "background"):
        return _is_not_parallel(fixed, value)
    if isinstance(fixed, str) or isinstance(value, str):
        return str(fixed) != str(value)
    if name == "orientation":
        turn = np.abs((np.asarray(value) - fixed + 90) % 180 - 90)
        return bool((turn > _ORIENTATION_TOLERANCE).any())
    return not np.allclose(value, fixed, rtol=TOLERANCE, atol=0)


def _is_not_parallel(fixed: Any, value: Any) -> bool:
    """Tell whether two colour directions, names or LMS vectors, are not parallel."""
    a, b = (
        DIRECTIONS.get(direction, direction)
        if isinstance(direction, str)
        else direction
        for direction in (fixed, value)
    )
    if isinstance(a, str) or isinstance(b, str):
        return bool(fixed != value)
    a = np.asarray(a, dtype=np.float64)
    b = np.asarray(b, dtype=np.float64)
    return bool(
        np.linalg.norm(np.cross(a, b))
        > TOLERANCE * np.linalg.norm(a) * np.linalg.norm(b)
    )
