"""Detection: how far a stimulus is from its background for an observer, or how different it looks.

An observer that answers in words is shown both and asked in which of them something was added.

The conditions are a grid of levels (for the contour plot) and points along the human contrast
sensitivity curve (for the score). Levels are any numeric parameters of the stimulus. Test and
reference differ in one of them: in contrast, the reference being the uniform background (or the
mask alone), or in what the experiment's [difference] names.

References
----------
Cai, Yin, Hammou, Mantiuk (2025). Do computer vision foundation models learn the low-level
characteristics of the human visual system? CVPR.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.analysis.discrimination import score_discrimination
from psyprobe.analysis.distance import MEASURES
from psyprobe.analysis.measures import join_measures
from psyprobe.analysis.responses import detection_result
from psyprobe.errors import InputError
from psyprobe.experiment import Experiment
from psyprobe.human.reference import DataReference
from psyprobe.observers import Card
from psyprobe.probes import pair_batches, pairs
from psyprobe.probes.differences import (
    Differing,
    differing,
    parameters_of,
    remarks_of,
    sensitivity_at,
)
from psyprobe.probes.displayed_images import at_native_size
from psyprobe.probes.feature_distances import DIFFERENCE, noise_floor
from psyprobe.probes.pair_batches import Responses, responses
from psyprobe.probes.pairs import Conditions, Grid, PairSchedule, pair_up, response_task
from psyprobe.running.protocol import Answered, Batch, RunRecord
from psyprobe.running.store import Store
from psyprobe.running.task import Task, task_of
from psyprobe.stimulus import Specification
from psyprobe.stimulus.parameters import log_spaced, ten_digits
from psyprobe.stimulus.specification import level_of, with_levels

if TYPE_CHECKING:
    import xarray

__all__ = [
    "ABILITIES",
    "SECTIONS",
    "VERSION",
    "answer",
    "plan",
    "plot",
    "report",
    "result",
    "score",
    "task",
]

ABILITIES = (*pairs.ABILITIES, "answer")
SECTIONS = (
    "stimulus",
    "levels",
    "variants",
    "human",
    "score",
    "observer",
    "asking",
    "delivery",
    "fit",
)
#: Drawing, showing or measuring differently makes another question of the same condition.
VERSION = "detection 2"


def plan(experiment: Experiment, observer: Any, batch_size: int | None = None) -> Any:
    """As in `Probe`."""
    if observer.card.ability == "answer":
        return in_words().plan(experiment, observer)
    return PairSchedule(
        experiment, observer, grid_conditions(experiment, observer.card), VERSION, batch_size
    )


def answer(observers: Mapping[str, Any], batches: Iterable[Batch]) -> Iterator[Answered]:
    """As in `Probe`: batches of one run are all of pairs, or all in words."""
    words = any(observer.card.ability == "answer" for observer in observers.values())
    return (in_words().answer if words else pair_batches.answer)(observers, batches)


def result(record: RunRecord, store: Store) -> Any:
    """As in `Probe`: responses as labelled arrays (see `detection_result`), or answers in words."""
    if "asking" in record.layout:
        return in_words().result(record, store)
    return grid_result(record.layout, responses(record, store))


def task(record: RunRecord) -> Task:
    """As in `Probe`: which of two images differs, of observers that answer; else a response."""
    if "asking" in record.layout:
        found: Task = in_words().task(record)
        return found
    return response_task(record)


def score(result: Any, **options: Any) -> Any:
    """As in `Probe`: just noticeable differences where there is an anchor, alignment, or thresholds
    of answers.
    """
    answered = task_of(result).answered
    return (in_words().score if answered else score_discrimination)(result, **options)


def grid_result(layout: Mapping[str, Any], found: Responses) -> xarray.Dataset:
    """Responses at their places on the grid of levels, and at multiples of human thresholds."""
    grid = np.array(layout["grid"]) if np.size(layout["grid"]) else None
    scored = np.array(layout["scored"]) if layout["human"] else None
    observer = [
        None if at is None else np.moveaxis(found.observer[at], (-2, -1), (0, 1))
        for at in (grid, scored)
    ]
    pixels = [
        None if at is None else np.moveaxis(found.baseline[at], -1, 0) for at in (grid, scored)
    ]
    floor = noise_floor(found.observer[np.array(layout["noise_floor"])], layout["measures"])
    about = {**found.attributes, "ppd": layout["ppd"], "size": json.dumps(layout["size"])}
    values = (observer[0], observer[1]), (pixels[0], pixels[1])
    told = detection_result(
        layout, *values, floor, found.layers, about, (found.status, found.baseline_status)
    )
    if "anchor" not in layout:
        return told
    from psyprobe.probes.anchored import with_anchor

    return with_anchor(told, layout, found)


def plot(results: Sequence[xarray.Dataset], ax: Any = None, **options: Any) -> Any:
    """As in `Probe`: thresholds where all results have an anchor, else contours; answers in words
    are drawn apart.
    """
    kinds = {task_of(result).answered for result in results}
    if len(kinds) > 1:
        raise InputError(
            "answers in words and responses of encoders go on figures of their own; draw them apart"
        )
    if True in kinds:
        return in_words().plot(results, ax, **options)
    if all("anchor_response" in join_measures(one) for one in results):
        from psyprobe.plotting.jnd import jnd_panels

        return jnd_panels(results, ax, **options)
    from psyprobe.plotting.features import contour_panels

    return contour_panels(results, ax, **options)


def report(results: Sequence[xarray.Dataset]) -> list[Any]:
    """As in `Probe`: the same for a page."""
    from psyprobe.plotting.feature_parts import contour_parts
    from psyprobe.plotting.jnd import jnd_parts

    words, others = (
        [result for result in results if task_of(result).answered == answered]
        for answered in (True, False)
    )
    parts = [*jnd_parts(others), *contour_parts(others)] if others else []
    return [*parts, *(in_words().report(words) if words else [])]


def in_words() -> Any:
    """The probe that shows two images and asks about them, which loads on use."""
    from psyprobe.probes.words.schedule import two_interval

    return two_interval


#: Points of the human curve that a figure shows.
_CURVE_POINTS = 200


def grid_conditions(experiment: Experiment, card: Card, by: Differing | None = None) -> Conditions:
    """Plan the images of an experiment on a grid of levels for one observer.

    Parameters
    ----------
    experiment : Experiment
        What to show.
    card : Card
        Of the observer; its native input size decides the size of the images, over the same degrees
        of visual angle.
    by : Differing, optional
        In what test and reference differ; without it what the experiment says.

    Raises
    ------
    InputError
        A level cannot be drawn at this size, or the human reference has no threshold there.
    """
    by = differing(experiment) if by is None else by
    taken = by.level or by.name
    levels = {name: np.array(values) for name, values in experiment.levels.items() if name != taken}
    check_levels({**levels, by.name: np.array(by.values)})
    measures, scored_measure = measures_of(experiment, card)
    first = {name: float(values[0]) for name, values in levels.items()}
    native = with_levels(experiment.spec(), **first)
    drawn = at_native_size(experiment.name, native, card)
    with redrawn(experiment.name, native, drawn, card):
        scored_levels, differences, people = _human(experiment, levels, native)
        without = experiment.score_only and experiment.score.anchor is None
        on_grid = {name: values[:0] for name, values in levels.items()} if without else levels
        values = np.array([] if without else by.values)
        grid = by.grid(drawn, on_grid, values)
        scored = by.grid(drawn, scored_levels, differences)
        shown, told = _anchored(experiment, by, drawn, native, levels)
    pairs, grid_places, scored_places, repeated, beside = pair_up(grid, scored, shown)
    parameters = {name: level_of(native, name) for name in levels}
    units = {name: parameter.unit for name, parameter in parameters.items()}
    strongest = _strongest(by, units, on_grid, values, grid_places) if grid_places else {}
    if scored_places:
        strongest |= _strongest(by, units, scored_levels, differences, scored_places)
    return Conditions(
        pairs=pairs,
        grid=grid_places,
        scored=scored_places,
        noise_floor=repeated,
        measures=measures,
        axes={
            "levels": [
                {"name": name, "unit": parameter.unit, "label": parameter.label}
                | {
                    "values": on_grid[name].tolist(),
                    "scored": scored_levels[name].tolist() if scored_places else [],
                }
                for name, parameter in parameters.items()
            ],
            "difference": {name: getattr(by, name) for name in ("name", "unit", "label", "kind")}
            | {"values": values.tolist()},
            "multiplier": list(experiment.score.multiplier or ()),
            "multiplier_of": experiment.score.multiplier_of,
            "score_measure": scored_measure,
            **people,
            **told,
        },
        strongest=strongest,
        remarks=remarks_of(experiment, native),
        extra=beside,
    )


def _anchored(
    experiment: Experiment,
    by: Differing,
    drawn: Specification,
    native: Specification,
    levels: Mapping[str, FloatArray],
) -> tuple[Mapping[str, Grid], Mapping[str, Any]]:
    """What is shown besides for just noticeable differences, and what is told of it; nothing
    without an anchor.
    """
    if experiment.score.anchor is None:
        return {}, {}
    from psyprobe.probes.anchored import beside

    return beside(experiment, by, drawn, native, levels)


def check_levels(levels: Mapping[str, FloatArray]) -> None:
    """Refuse a level of one value, which is no level, and contrasts of which none is left."""
    if not levels:
        raise InputError("[levels] is empty; give for example frequency = { values = [1, 2, 4] }")
    for name, values in levels.items():
        if len(values) < 2:
            raise InputError(
                f"levels.{name} are {values.tolist()}; give at least two levels, in ascending "
                "order; a single value belongs to the stimulus"
            )


def _human(
    experiment: Experiment, levels: Mapping[str, FloatArray], native: Specification
) -> tuple[dict[str, FloatArray], FloatArray, dict[str, Any]]:
    """Scored levels, thresholds there times the multipliers (the last axis), and what the result
    tells of people.
    """
    reference = experiment.human
    score = experiment.score
    if reference is None or (score.multiplier is None and score.anchor is not None):
        return (
            {},
            np.empty(0),
            {"human": "", "scored_difference": None, "human_sensitivity": None, "curve": None},
        )
    if score.multiplier is None:
        raise InputError(
            "[score] has no multiplier; give for example { from = 0.5, to = 2, n = 10, scale = "
            '"log" }'
        )
    if isinstance(reference, DataReference):
        points, _ = reference.within(levels, parameters_of(native))
        curve_levels = scored = {name: np.unique(values) for name, values in points.items()}
    else:
        curve_levels = {name: _curve_at(values) for name, values in levels.items()}
        scored = dict(levels)
    name = next(iter(levels))
    scored = {**scored, name: _scored(experiment, name, scored[name])}
    sensitivity = sensitivity_at(reference, native, scored)
    curve = None
    if len(levels) == 1:
        seen = sensitivity_at(reference, native, curve_levels)
        curve = {"level": name, "values": curve_levels[name].tolist(), "sensitivity": seen.tolist()}
    multiplier = np.array(score.multiplier)
    factor = multiplier if score.multiplier_of == "threshold" else 1 / multiplier
    differences = ten_digits(factor / sensitivity[..., None])
    people = {"human": reference.name, "scored_difference": differences.tolist(), "curve": curve}
    return scored, differences, {**people, "human_sensitivity": sensitivity.tolist()}


def _curve_at(values: FloatArray) -> FloatArray:
    """Where a human curve is drawn: log-spaced, and without a pedestal besides where 0 is a
    level.
    """
    above = log_spaced(values[values > 0][0], values[-1], _CURVE_POINTS)
    return above if values[0] > 0 else np.concatenate([values[:1], above])


def _scored(experiment: Experiment, name: str, values: FloatArray) -> FloatArray:
    above = experiment.score.above
    below = experiment.score.below
    scored = values[
        (values > (-math.inf if above is None else above)) & (values < (below or math.inf))
    ]
    if not scored.size:
        limits = " and ".join(
            f"score.{key} = {limit:g}"
            for key, limit in (("above", above), ("below", below))
            if limit is not None
        )
        unit = level_of(experiment.spec(), name).unit
        raise InputError(
            f"{limits} leaves no level of {name} to score; the levels reach from {values[0]:g} "
            f"to {values[-1]:g} {unit}"
        )
    return scored


def _strongest(
    by: Differing,
    units: Mapping[str, str],
    levels: Mapping[str, FloatArray],
    values: FloatArray,
    places: Any,
) -> dict[int, str]:
    """Index of the pair that differs most at each place, with words for it."""
    every = np.reshape(places, (*map(len, levels.values()), values.shape[-1]))
    here = np.broadcast_to(values, every.shape)
    at = here.argmax(axis=-1)[..., None]
    strongest, most = (
        np.take_along_axis(each, at, axis=-1).ravel().tolist() for each in (every, here)
    )
    words = [
        [f"{name} {value:.4g} {units[name]}" for value in each] for name, each in levels.items()
    ]
    told = zip(itertools.product(*words), most, strict=True)
    return dict(
        zip(
            strongest,
            (", ".join([*at, f"{by.name} {value:.4g}"]) for at, value in told),
            strict=True,
        )
    )


def measures_of(experiment: Experiment, card: Card) -> tuple[tuple[str, ...], str]:
    """What is measured of each response, and by which of it the observer is scored."""
    if card.ability == "difference":
        return (DIFFERENCE,), DIFFERENCE
    wanted = experiment.score.measure
    # The published arithmetic is slow and good for nothing else: only those experiments that name
    # it pay for it.
    return MEASURES if wanted in MEASURES else (*MEASURES, wanted), wanted


@contextmanager
def redrawn(name: str, native: Specification, drawn: Specification, card: Card) -> Iterator[None]:
    """Say in errors which experiment they are about, and that an observer's own size may be the
    cause.
    """
    try:
        yield
    except InputError as error:
        if drawn.shape == native.shape:
            raise
        height, width = drawn.shape
        raise type(error)(
            f"{name}, redrawn at {height} x {width} px ({drawn.ppd:.4g} ppd) for {card.name}: "
            f"{error}; for "
            "this encoder, change the levels in a copy of the experiment file, or take one with "
            "a larger input"
        ) from error
