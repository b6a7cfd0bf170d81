"""Describe how test and reference differ, and how well people tell them apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from psyprobe._typing import FloatArray, NamedArrays
from psyprobe.errors import InputError
from psyprobe.experiment import Experiment
from psyprobe.experiment.page import Change
from psyprobe.files.json_types import JsonObject
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


#: How a difference changes the reference's value, and the unit of the difference; "" stands for
#: the parameter's own unit.
_CHANGES: Mapping[str, tuple[Any, str]] = {
    "increment": (lambda value, amount: value + amount, ""),
    "deg": (lambda value, amount: value + amount, "deg"),
    "weber": (lambda value, amount: value * (1 + amount), "1"),
    "octaves": (lambda value, amount: value * 2**amount, "octaves"),
}


@dataclass(frozen=True)
class StimulusDifference:
    """The parameter in which test and reference differ, and by how much."""

    #: Name of the dimension in the result.
    name: str
    parameter: str
    unit: str
    label: str
    #: Kind of contrast; "" for other parameters.
    kind: str
    values: tuple[float, ...]
    #: How the reference is changed into the test: a key of `_CHANGES`; "" where the reference is
    #: the background.
    change: str = ""
    #: The level that it replaces, where that has another name.
    level: str = ""

    def grid(
        self,
        displayed: Specification,
        levels: NamedArrays,
        differences: FloatArray,
    ) -> Grid | None:
        """Build tests and references at all levels, with differences on the last axis.

        None if there are no differences.
        """
        if not differences.size:
            return None
        # All combinations of levels, with one more axis for differences.
        axes = np.meshgrid(*levels.values(), indexing="ij", sparse=True)
        level_axes = {
            name: axis[..., None] for name, axis in zip(levels, axes, strict=True)
        }
        base = with_levels(displayed, **level_axes)
        shape = (*map(len, levels.values()), differences.shape[-1])
        if not self.change:
            tests = with_levels(
                base, **{self.parameter: np.broadcast_to(differences, shape)}
            )
            return Grid(tests, tests.reference())
        # Number by number: a power of an array may be rounded otherwise.
        values = np.broadcast_to(base.value(self.parameter), shape).ravel().tolist()
        amounts = np.broadcast_to(differences, shape).ravel().tolist()
        changed = list(map(_CHANGES[self.change][0], values, amounts))
        return Grid(
            with_levels(base, **{self.parameter: np.reshape(changed, shape)}), base
        )


def mesh(levels: Mapping[str, Sequence[float] | FloatArray]) -> dict[str, FloatArray]:
    """Compute the values of each level at every combination of levels."""
    return dict(zip(levels, np.meshgrid(*levels.values(), indexing="ij"), strict=True))


def find_difference(experiment: Experiment) -> StimulusDifference:
    """Find in what test and reference of an experiment differ.

    Raises
    ------
    InputError
        Neither levels of contrast nor a table [difference] say so.
    """
    change = experiment.difference
    spec = experiment.spec()
    if change is None:
        kind = contrast_kind(spec)
        if "contrast" not in experiment.levels:
            raise InputError(
                "[levels] has no 'contrast', and there is no [difference]; give one of them, such "
                "as contrast = { from = 0.001, to = 1, n = 20 }"
            )
        label = _CONTRAST_LABELS.get(kind, kind)
        return StimulusDifference(
            "contrast", "contrast", "1", label, kind, experiment.levels["contrast"]
        )
    return build_difference(change, spec)


def build_difference(change: Change, spec: Specification) -> StimulusDifference:
    """Build the difference that a TOML page's table [difference] describes."""
    parameter = level_of(spec, change.parameter)
    return StimulusDifference(
        name=f"{change.parameter}_difference",
        parameter=change.parameter,
        unit=_CHANGES[change.unit][1] or parameter.unit,
        label=f"{parameter.label} difference",
        kind=contrast_kind(spec) if change.parameter == "contrast" else "",
        values=change.levels,
        change=change.unit,
    )


def apply_change(change: str, value: float, amount: float) -> float:
    """Compute a parameter of the test from the reference's by an amount of change.

    Examples
    --------
    >>> apply_change("weber", 4.0, 0.25), apply_change("octaves", 4.0, 1.0)
    (5.0, 8.0)
    """
    return float(_CHANGES[change][0](value, amount))


#: The stimulus axis of acuity, which is reported as the reciprocal of the period.
PERIOD = StimulusAxis(
    "period", "deg", "Period of the stripes", inverse="Highest frequency (cpd)"
)


def to_periods(frequencies: Sequence[float]) -> tuple[float, ...]:
    """Convert ascending frequencies in cpd to ascending periods in degrees.

    Examples
    --------
    >>> to_periods([2.0, 4.0])
    (0.25, 0.5)
    """
    return tuple(1 / frequency for frequency in reversed(frequencies))


def contrast_kind(spec: Specification) -> str:
    """Return the kind of a stimulus's contrast, such as "michelson"."""
    if getattr(spec, "direction", "achromatic") != "achromatic":
        return "cone"
    return spec.contrast_kind or "michelson"


def human_sensitivity(
    reference: Reference, native: Specification, levels: NamedArrays
) -> FloatArray:
    """Compute 1 / human threshold at every combination of levels."""
    return reference.sensitivity(
        **human_inputs({**human_parameters(native), **mesh(levels)})
    )


def human_parameters(native: Specification) -> JsonObject:
    """Collect the parameters of a stimulus that a human model may need."""
    target = getattr(native, "parts", (native,))[0]
    parameters = {field.name: getattr(target, field.name) for field in fields(target)}
    return parameters | {
        name: native.value(name)
        for name in native.levels()
        if name not in target.derived_levels
    }


def stimulus_remarks(experiment: Experiment, native: Specification) -> tuple[str, ...]:
    """Describe faults of the stimulus, and parameters in which people saw another one."""
    levels = {
        name: values
        for name, values in experiment.levels.items()
        if name.startswith(("temporal", "letter_size", "logmar"))
    }
    cautions = native.changed(**mesh(levels)).cautions()
    if experiment.human is None:
        return cautions
    varied = {*experiment.levels}
    if "area" in varied:
        varied.add("radius")
    parameters = human_parameters(native)
    fixed = {name: value for name, value in parameters.items() if name not in varied}
    return (*cautions, *mismatches(experiment.human, fixed))
