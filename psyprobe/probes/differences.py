"""In what test and reference differ: how the one comes of the other, and what people need to tell
them apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.errors import InputError
from psyprobe.experiment import Experiment
from psyprobe.experiment.page import Change
from psyprobe.human.reference import Reference, human_inputs, mismatches
from psyprobe.probes.pairs import Grid
from psyprobe.running.task import StimulusAxis
from psyprobe.stimulus import Specification
from psyprobe.stimulus.specification import level_of, with_levels

_CONTRAST_LABELS = {
    "sinusoid_rms": "sinusoid-equivalent RMS contrast",
    "michelson": "Michelson contrast",
    "weber": "Weber contrast",
    "rms": "RMS contrast",
    "cone": "RMS cone contrast",
    "dkl_over_luminance": "DKL amplitude / luminance",
}


#: How a reference's value changes by a difference, and the unit of that difference; "" stands for
#: the parameter's own.
_CHANGES: Mapping[str, tuple[Any, str]] = {
    "increment": (lambda value, by: value + by, ""),
    "deg": (lambda value, by: value + by, "deg"),
    "weber": (lambda value, by: value * (1 + by), "1"),
    "octaves": (lambda value, by: value * 2**by, "octaves"),
}


@dataclass(frozen=True)
class Differing:
    """The parameter in which test and reference differ."""

    #: Name of the dimension in the result.
    name: str
    parameter: str
    unit: str
    label: str
    #: Kind of contrast; "" where the parameter is none.
    kind: str
    values: tuple[float, ...]
    #: How the test comes of the reference: a key of `_CHANGES`; "" where the reference is the
    #: background.
    change: str = ""
    #: The level whose place it takes, where that has another name.
    level: str = ""

    def grid(
        self, drawn: Specification, levels: Mapping[str, FloatArray], differences: FloatArray
    ) -> Grid | None:
        """Tests and references at all levels that differ by as many values each, on the last axis;
        None without any.
        """
        if not differences.size:
            return None
        every = np.meshgrid(*levels.values(), indexing="ij", sparse=True)
        base = with_levels(
            drawn, **{name: each[..., None] for name, each in zip(levels, every, strict=True)}
        )
        shape = (*map(len, levels.values()), differences.shape[-1])
        if not self.change:
            tests = with_levels(base, **{self.parameter: np.broadcast_to(differences, shape)})
            return Grid(tests, tests.reference())
        # Number by number: a power of an array may be rounded otherwise.
        both = (
            np.broadcast_to(each, shape).ravel().tolist()
            for each in (base.value(self.parameter), differences)
        )
        changed = np.reshape(
            [_CHANGES[self.change][0](*each) for each in zip(*both, strict=True)], shape
        )
        return Grid(with_levels(base, **{self.parameter: changed}), base)


def differing(experiment: Experiment) -> Differing:
    """In what test and reference of an experiment differ.

    Raises
    ------
    InputError
        Neither levels of contrast nor a table [difference] say so.
    """
    given = experiment.difference
    spec = experiment.spec()
    if given is None:
        kind = contrast_kind(spec)
        if "contrast" not in experiment.levels:
            raise InputError(
                "[levels] has no 'contrast', and there is no [difference]; give one of them, such "
                "as contrast = { from = 0.001, to = 1, n = 20 }"
            )
        label = _CONTRAST_LABELS.get(kind, kind)
        return Differing("contrast", "contrast", "1", label, kind, experiment.levels["contrast"])
    return changing(given, spec)


def changing(given: Change, spec: Specification) -> Differing:
    """The same of a change that a page names."""
    parameter = level_of(spec, given.parameter)
    return Differing(
        name=f"{given.parameter}_difference",
        parameter=given.parameter,
        unit=_CHANGES[given.unit][1] or parameter.unit,
        label=f"{parameter.label} difference",
        kind=contrast_kind(spec) if given.parameter == "contrast" else "",
        values=given.levels,
        change=given.unit,
    )


def changed(change: str, value: float, by: float) -> float:
    """The value of a test whose reference has this one.

    Examples
    --------
    >>> changed("weber", 4.0, 0.25), changed("octaves", 4.0, 1.0)
    (5.0, 8.0)
    """
    return float(_CHANGES[change][0](value, by))


#: The stimulus axis of acuity, which is reported as the reciprocal of the period.
PERIOD = StimulusAxis("period", "deg", "Period of the stripes", inverse="Highest frequency (cpd)")


def periods(frequencies: Sequence[float]) -> tuple[float, ...]:
    """Of frequencies, cpd, in degrees; rising.

    Examples
    --------
    >>> periods([2.0, 4.0])
    (0.25, 0.5)
    """
    return tuple(1 / frequency for frequency in reversed(frequencies))


def contrast_kind(spec: Specification) -> str:
    """The kind in which a stimulus has its contrast, such as "michelson"."""
    if getattr(spec, "direction", "achromatic") != "achromatic":
        return "cone"
    return spec.contrast_kind or "michelson"


def sensitivity_at(
    reference: Reference, native: Specification, levels: Mapping[str, FloatArray]
) -> FloatArray:
    """1 / threshold at every combination of levels."""
    every = dict(zip(levels, np.meshgrid(*levels.values(), indexing="ij"), strict=True))
    return reference.sensitivity(**human_inputs({**parameters_of(native), **every}))


def parameters_of(native: Specification) -> dict[str, Any]:
    """All that a human reference may want to know of a stimulus."""
    target = getattr(native, "parts", (native,))[0]
    told = {field.name: getattr(target, field.name) for field in fields(target)}
    return told | {
        name: native.value(name) for name in native.levels() if name not in target.derived_levels
    }


def remarks_of(experiment: Experiment, native: Specification) -> tuple[str, ...]:
    """What is amiss with the stimulus, and in what it differs from what people saw, apart from its
    levels.
    """
    temporal_levels = {
        name: values for name, values in experiment.levels.items() if name.startswith("temporal")
    }
    grids = np.meshgrid(*temporal_levels.values(), indexing="ij")
    at_levels = native.changed(**dict(zip(temporal_levels, grids, strict=True)))
    cautions = at_levels.cautions()
    if experiment.human is None:
        return cautions
    fixed = {
        name: value
        for name, value in parameters_of(native).items()
        if name not in experiment.levels
    }
    if "area" in experiment.levels:
        fixed.pop("radius")
    return (*cautions, *mismatches(experiment.human, fixed))
