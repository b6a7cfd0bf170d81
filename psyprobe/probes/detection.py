"""Detection: how far an observer's features of a stimulus lie from those of its background, or how different it looks.

An observer with the ability "features" (an encoder) is asked for the features of test and reference, whose distances
are measured; one with the ability "difference" (a metric) is shown the light of both and says itself.

The conditions of a detection experiment are a grid of levels (for the contour plot) and multiples of the human
threshold (for the score). Each distinct image is drawn, shown and passed through the observer once;
all tests on one background share its features.

References
----------
Cai, Yin, Hammou, Mantiuk (2025). Do computer vision foundation models learn the low-level characteristics of the
human visual system? CVPR.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from psyprobe._typing import FloatArray
from psyprobe.analysis.detection import score_detection as score
from psyprobe.analysis.distance import MEASURES
from psyprobe.analysis.labelled import detection_result
from psyprobe.errors import InputError
from psyprobe.plotting.contour import contour_panels as plot
from psyprobe.probes.asking import DIFFERENCE, features, noise_floor, respond
from psyprobe.stimulus import Specification

if TYPE_CHECKING:
    import xarray

    from psyprobe.experiment_file import Experiment
    from psyprobe.observers import Card

__all__ = [
    "ABILITIES",
    "MEASURES",
    "VERSION",
    "conditions",
    "features",
    "measures_of",
    "plot",
    "respond",
    "result",
    "score",
]

ABILITIES = ("features", "difference")
#: Drawing, showing or measuring differently makes another question of the same condition.
VERSION = "detection 1"
#: Points of the human curve that a figure shows.
_CURVE_POINTS = 200
#: Backgrounds that are shown twice to measure the noise floor, evenly spread over all of them.
_REPEATED = 3

Pair = tuple[Specification, Specification]


@dataclass(frozen=True)
class Conditions:
    """What a detection experiment shows to an observer.

    Parameters
    ----------
    pairs : tuple of (Specification, Specification)
        Distinct pairs of test and reference; those of the noise floor, whose test is the reference, come first.
    grid : array of int, shape (x, contrast)
        Index into ``pairs`` of each grid point.
    scored : array of int, shape (scored x, multiplier)
        Index into ``pairs`` of each multiple of a human threshold.
    noise_floor : array of int, shape (repeats,)
        Index into ``pairs`` of the repeated references.
    size : (int, int)
        Pixels (H, W) of the images.
    ppd : float
        Pixels per degree at which they are drawn.
    measures : tuple of str
        What is measured of each response.
    axes : dict
        Coordinates, labels and the human curve: whatever of the result is known before asking.
    """

    pairs: tuple[Pair, ...]
    grid: npt.NDArray[np.int64]
    scored: npt.NDArray[np.int64]
    noise_floor: npt.NDArray[np.int64]
    size: tuple[int, int]
    ppd: float
    measures: tuple[str, ...]
    axes: Mapping[str, Any]

    def layout(self) -> dict[str, Any]:
        """Everything but the responses, as JSON can hold it.

        Returns
        -------
        dict
            Digests in place of specifications, lists in place of arrays.
        """
        return {
            **self.axes,
            "pairs": [[test.digest, reference.digest] for test, reference in self.pairs],
            "grid": self.grid.tolist(),
            "scored": self.scored.tolist(),
            "noise_floor": self.noise_floor.tolist(),
            "size": list(self.size),
            "ppd": self.ppd,
            "measures": list(self.measures),
        }


def conditions(experiment: Experiment, card: Card) -> Conditions:
    """Plan the images of a detection experiment for one observer.

    Parameters
    ----------
    experiment : Experiment
        What to show.
    card : Card
        Of the observer; its native input size decides the size of the images, over the same degrees of visual angle.

    Returns
    -------
    Conditions
        Nothing is drawn yet.

    Raises
    ------
    InputError
        A level cannot be drawn at this size, or the human model has no threshold there.
    """
    x, contrast, multiplier = (
        np.array(values) for values in (experiment.x.values, experiment.contrast.values, experiment.score.multiplier)
    )
    measures, measure = measures_of(experiment, card)
    native = experiment.stimulus.spec(contrast=experiment.contrast.values[0], **_parameter(experiment, x[0]))
    size, ppd = native_size(experiment.name, native, card)

    def specs(x_values: FloatArray, contrasts: Any) -> list[list[Specification]]:
        drawn = replace(native, size=size, ppd=ppd)
        return [
            [replace(drawn, **{"contrast": float(c), **_parameter(experiment, a)}) for c in row]
            for a, row in zip(x_values, contrasts, strict=True)
        ]

    with redrawn(experiment, native, size, ppd, card):
        if experiment.human.data:
            curve_x, curve = _measured(experiment, x)
            scored_x = _scored(experiment, curve_x)
            sensitivity = curve[np.isin(curve_x, scored_x)]
        else:
            curve_x = np.geomspace(x[0], x[-1], _CURVE_POINTS)
            curve = human_sensitivity(experiment, curve_x, native)
            scored_x = _scored(experiment, x)
            sensitivity = human_sensitivity(experiment, scored_x, native)
        if experiment.score_only:
            x, contrast = x[:0], contrast[:0]
        factor = multiplier if experiment.score.multiplier_of == "threshold" else 1 / multiplier
        scored_contrast = factor / sensitivity[:, None]
        grid, scored = specs(x, [contrast] * len(x)), specs(scored_x, scored_contrast)
    pairs, grid_places, scored_places, repeated = pair_up(grid, scored)
    kind = _contrast_kind(native)
    return Conditions(
        pairs=pairs,
        grid=grid_places,
        scored=scored_places,
        noise_floor=repeated,
        size=size,
        ppd=ppd,
        measures=measures,
        axes={
            "levels": [
                {
                    "name": experiment.x.name,
                    "unit": experiment.x.unit,
                    "label": experiment.x.label,
                    "values": x.tolist(),
                    "scored": scored_x.tolist(),
                }
            ],
            "difference": {
                "name": "contrast",
                "unit": "1",
                "label": _CONTRAST_LABELS.get(kind, kind),
                "kind": kind,
                "values": contrast.tolist(),
            },
            "multiplier": multiplier.tolist(),
            "multiplier_of": experiment.score.multiplier_of,
            "score_measure": measure,
            "scored_difference": scored_contrast.tolist(),
            "human": experiment.human.model or experiment.human.data,
            "human_sensitivity": sensitivity.tolist(),
            "curve": {"level": experiment.x.name, "values": curve_x.tolist(), "sensitivity": curve.tolist()},
        },
    )


@contextmanager
def redrawn(
    experiment: Experiment, native: Specification, size: tuple[int, int], ppd: float, card: Card
) -> Iterator[None]:
    """Say in errors which experiment they are about, and that an observer's own size may be the cause.

    Parameters
    ----------
    experiment : Experiment
        Its name goes in front.
    native : Specification
        A stimulus as its file describes it.
    size, ppd
        As it is drawn for the observer.
    card : Card
        Of the observer.
    """
    try:
        yield
    except InputError as error:
        if size == native.shape:
            raise type(error)(f"{experiment.name}: {error}") from error
        raise type(error)(
            f"{experiment.name}, redrawn at {size[0]} x {size[1]} px ({ppd:.4g} ppd) for {card.name}: {error}; for "
            "this encoder, change the levels in a copy of the experiment file, or take one with a larger input"
        ) from error


def pair_up(
    grid: Sequence[Sequence[Specification]], scored: Sequence[Sequence[Specification]]
) -> tuple[tuple[Pair, ...], npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Distinct pairs of test and reference, and where each is needed.

    Parameters
    ----------
    grid, scored : sequence of sequence of Specification
        Tests of the level grid, and those that are scored.

    Returns
    -------
    pairs : tuple of (Specification, Specification)
        Up to three references of what is scored come first, with themselves, for the noise floor.
    grid, scored, noise_floor : array of int
        Indices into ``pairs``.
    """
    references = list(dict.fromkeys(spec.reference() for row in scored for spec in row))
    repeated = [references[i] for i in np.unique(np.linspace(0, len(references) - 1, _REPEATED).round().astype(int))]
    index: dict[Pair, int] = {(reference, reference): i for i, reference in enumerate(repeated)}

    def places(rows: Sequence[Sequence[Specification]]) -> npt.NDArray[np.int64]:
        return np.array(
            [[index.setdefault((spec, spec.reference()), len(index)) for spec in row] for row in rows], dtype=np.int64
        )

    grid_places, scored_places = places(grid), places(scored)
    return tuple(index), grid_places, scored_places, np.arange(len(repeated))


def _measured(experiment: Experiment, x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Levels within the grid at which people were measured, and their contrast sensitivity there."""
    from psyprobe.human import masking_data

    data = masking_data(experiment.human.data)
    inside = (data.mask_contrast >= x[0] * (1 - 1e-9)) & (data.mask_contrast <= x[-1] * (1 + 1e-9))
    if not inside.any():
        raise InputError(
            f"{experiment.human.data} was measured from {data.mask_contrast[0]:.4g} to {data.mask_contrast[-1]:.4g}, "
            f"and levels.mask_contrast reaches from {x[0]:.4g} to {x[-1]:.4g}; widen the levels"
        )
    return data.mask_contrast[inside], 1 / data.threshold[inside]


def human_sensitivity(experiment: Experiment, x: FloatArray, spec: Specification) -> FloatArray:
    """Contrast sensitivity of people at levels of an experiment, in the contrast of its stimulus.

    Parameters
    ----------
    experiment : Experiment
        Names the model and its inputs.
    x : array, shape (n,)
        Levels, in the unit of the x axis.
    spec : Specification
        One stimulus of the experiment; its parameters are the model's inputs unless the file gives them.

    Returns
    -------
    array, shape (n,), float64
        1 / threshold contrast.

    Raises
    ------
    InputError
        The model has no sensitivity at some level, or lacks an input.
    """
    reference = experiment.human
    table = np.geomspace(*reference.table) if reference.table is not None else x
    sensitivity = _model_sensitivity(experiment, table, spec)
    if reference.table is not None:
        if x.min() < table[0] * (1 - 1e-12) or x.max() > table[-1] * (1 + 1e-12):
            raise InputError(
                f"human.table ends at {table[0]:g} and {table[-1]:g} {experiment.x.unit}, and levels reach from "
                f"{x.min():g} to {x.max():g}; widen the table"
            )
        sensitivity = np.interp(x, table, sensitivity)
    # The RMS contrast of a sinusoid is its peak contrast over sqrt(2), and so is the threshold.
    return sensitivity * math.sqrt(2) if reference.contrast == "rms" else sensitivity


def _model_sensitivity(experiment: Experiment, x: FloatArray, spec: Specification) -> FloatArray:
    from psyprobe.human import csf

    inputs: dict[str, Any] = {name: getattr(spec, name, None) for name in ("frequency", "luminance")}
    inputs["direction"] = getattr(spec, "direction", "achromatic")
    radius = getattr(spec, "radius", None)
    if radius is not None and getattr(spec, "window", "") != "none":
        inputs["area"] = math.pi * radius**2 * getattr(spec, "aspect", 1.0)
    inputs |= {**experiment.human.inputs, experiment.x.name: x}
    absent = [name for name in ("frequency", "luminance", "area", "direction") if inputs.get(name) is None]
    if absent:
        raise InputError(f"the stimulus does not tell the human model its {absent[0]}; give it as human.{absent[0]}")
    sensitivity = np.broadcast_to(np.asarray(csf(experiment.human.model)(**inputs), dtype=np.float64), x.shape)
    bad = ~(np.isfinite(sensitivity) & (sensitivity > 0))
    if bad.any():
        raise InputError(
            f"the human model {experiment.human.model} has no threshold at {experiment.x.name} "
            f"{x[bad][0]:g} {experiment.x.unit}; leave this level out"
        )
    return sensitivity


_CONTRAST_LABELS = {
    "sinusoid_rms": "sinusoid-equivalent RMS contrast",
    "michelson": "Michelson contrast",
    "weber": "Weber contrast",
    "rms": "RMS contrast",
    "cone": "RMS cone contrast",
    "dkl_over_luminance": "DKL amplitude / luminance",
}


def _contrast_kind(spec: Specification) -> str:
    if getattr(spec, "direction", "achromatic") != "achromatic":
        return "cone"
    return spec.contrast_kind or "michelson"


def measures_of(experiment: Experiment, card: Card) -> tuple[tuple[str, ...], str]:
    """What is measured of each response, and by which of it the observer is scored.

    Parameters
    ----------
    experiment : Experiment
        Names the measure of its score.
    card : Card
        Of the observer.

    Returns
    -------
    measures : tuple of str
        Names along the last axis of responses.
    scored : str
        One of them.
    """
    if card.ability == "difference":
        return (DIFFERENCE,), DIFFERENCE
    wanted = experiment.score.measure
    # The published arithmetic is slow and good for nothing else: only those experiments that name it pay for it.
    return MEASURES if wanted in MEASURES else (*MEASURES, wanted), wanted


def _scored(experiment: Experiment, x: FloatArray) -> FloatArray:
    above, below = experiment.score.above, experiment.score.below
    scored = x[(x > (above or 0)) & (x < (below or math.inf))]
    if not scored.size:
        limits = " and ".join(
            f"score.{name} = {limit:g}" for name, limit in (("above", above), ("below", below)) if limit is not None
        )
        raise InputError(
            f"{limits} leaves no level of {experiment.x.name} to score; the levels reach from {x[0]:g} to {x[-1]:g} "
            f"{experiment.x.unit}"
        )
    return scored


def native_size(name: str, native: Specification, card: Card) -> tuple[tuple[int, int], float]:
    """Pixels and resolution that give an observer its own input size over the same degrees of visual angle.

    Parameters
    ----------
    name : str
        Of the experiment, for messages.
    native : Specification
        A stimulus as its file describes it.
    card : Card
        Of the observer.

    Returns
    -------
    size : (int, int)
        Pixels (H, W).
    ppd : float
        Pixels per degree.

    Raises
    ------
    InputError
        The observer takes images of other proportions.
    """
    height, width = native.shape
    if card.input_size is None:
        return native.shape, native.ppd
    rows, columns = card.input_size
    if rows * width != columns * height:
        raise InputError(
            f"{name}: the stimulus is {height} x {width} px and {card.name} takes {rows} x {columns} px, "
            "another shape; copy the stimulus file and give it a size of the observer's proportions"
        )
    return (rows, columns), native.ppd * rows / height


def _parameter(experiment: Experiment, x: float) -> dict[str, Any]:
    # Area is that of a circle whose radius is the Gaussian's standard deviation, as in castleCSF.
    return {"radius": math.sqrt(x / math.pi)} if experiment.x.name == "area" else {experiment.x.name: float(x)}


# -- the result ------------------------------------------------------------------------------------------------------


def result(
    layout: Mapping[str, Any],
    responses: FloatArray,
    layers: Sequence[str],
    baseline: FloatArray,
    attributes: Mapping[str, Any],
) -> xarray.Dataset:
    """The responses of a run as labelled arrays.

    Parameters
    ----------
    layout : mapping
        As `detection_result` has it, and "grid" (levels ..., difference), "scored" (scored levels ..., multiplier) and
        "noise_floor" (repeats): indices of pairs. An empty grid was not shown.
    responses : array, shape (pairs, layers, measures), float64
        Of the observer.
    layers : sequence of str
        Names of its features.
    baseline : array, shape (pairs, measures), float64
        Of the pixels themselves.
    attributes : mapping of str to (str or number)
        Where the result comes from.

    Returns
    -------
    xarray.Dataset
        As `detection_result` says.
    """
    places = [np.array(layout["grid"]) if np.size(layout["grid"]) else None]
    places.append(np.array(layout["scored"]) if layout["human"] else None)
    observer = [None if at is None else np.moveaxis(responses[at], (-2, -1), (0, 1)) for at in places]
    pixels = [None if at is None else np.moveaxis(baseline[at], -1, 0) for at in places]
    floor = noise_floor(responses[np.array(layout["noise_floor"])], layout["measures"])
    about = {**attributes, "probe": "detection", "ppd": layout["ppd"], "size": json.dumps(layout["size"])}
    return detection_result(layout, (observer[0], observer[1]), (pixels[0], pixels[1]), floor, layers, about)
