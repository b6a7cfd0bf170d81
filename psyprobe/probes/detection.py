"""Measure detection: how far a stimulus is from its background, or how different it looks.

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

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from psyprobe._typing import FloatArray, NamedArrays
from psyprobe.analysis.discrimination import score_discrimination
from psyprobe.analysis.distance import MEASURES
from psyprobe.analysis.measures import DIFFERENCE, join_measures
from psyprobe.analysis.responses import detection_result
from psyprobe.errors import InputError
from psyprobe.experiment import Experiment
from psyprobe.files.json_types import JsonMapping, JsonObject
from psyprobe.human.reference import DataReference
from psyprobe.observers import Card
from psyprobe.probes import pair_batches, pairs
from psyprobe.probes.anchored import add_anchor, anchored_grids
from psyprobe.probes.differences import (
    PERIOD,
    StimulusDifference,
    find_difference,
    human_parameters,
    human_sensitivity,
    stimulus_remarks,
)
from psyprobe.probes.displayed_images import at_native_size
from psyprobe.probes.feature_distances import noise_floor
from psyprobe.probes.pair_batches import Responses, responses
from psyprobe.probes.pairs import Conditions, Grid, PairSchedule, pair_up, response_task
from psyprobe.running.protocol import Answered, Batch, RunRecord
from psyprobe.running.store import Store
from psyprobe.running.task import Task, stimulus_axis_of, task_of
from psyprobe.stimulus import Specification
from psyprobe.stimulus.parameters import Parameter, log_spaced, ten_digits
from psyprobe.stimulus.specification import level_of, with_levels

if TYPE_CHECKING:
    from xarray import Dataset

    from psyprobe.probes.words.schedule import WordsProbe

ABILITIES = (*pairs.ABILITIES, "answer")
SECTIONS = (
    "stimulus",
    "noise",
    "levels",
    "variants",
    "human",
    "score",
    "observer",
    "asking",
    "delivery",
    "fit",
)
#: Part of each question: raise it when drawing, showing or measuring changes.
VERSION = "detection 2"


def plan(experiment: Experiment, observer: Any, batch_size: int | None = None) -> Any:
    """Plan a run of image pairs, or of questions in words."""
    if observer.card.ability == "answer":
        return words_probe().plan(experiment, observer)
    conditions = grid_conditions(experiment, observer.card)
    return PairSchedule(experiment, observer, conditions, VERSION, batch_size)


def answer(observers: JsonMapping, batches: Iterable[Batch]) -> Iterator[Answered]:
    """Ask observers batches of image pairs or of questions in words, and yield the answers."""
    words = any(observer.card.ability == "answer" for observer in observers.values())
    return (words_probe().answer if words else pair_batches.answer)(observers, batches)


def result(record: RunRecord, store: Store) -> Any:
    """Build the result of a run: responses of features or metrics, or answered trials."""
    if "asking" in record.layout:
        return words_probe().result(record, store)
    return grid_result(record.layout, responses(record, store))


def task(record: RunRecord) -> Task:
    """Return the task: to choose which of two images differs, or to respond with a number."""
    if "asking" in record.layout:
        return words_probe().task(record)
    return response_task(record)


def score(result: Any, **options: Any) -> Any:
    """Score just noticeable differences, alignment with people, or thresholds of answers."""
    answered = task_of(result).answered
    return (words_probe().score if answered else score_discrimination)(
        result, **options
    )


def grid_result(layout: JsonMapping, grid_responses: Responses) -> Dataset:
    """Arrange responses on the grid of levels, and at multiples of human thresholds."""
    grid: tuple[FloatArray | None, FloatArray | None] = (None, None)
    scored = grid
    if np.size(layout["grid"]):
        grid = grid_responses.at(layout["grid"])
    if layout["human"]:
        scored = grid_responses.at(layout["scored"])
    repeats = grid_responses.observer[layout["noise_floor"]]
    dataset = detection_result(
        layout,
        (grid[0], scored[0]),
        (grid[1], scored[1]),
        noise_floor(repeats, layout["measures"]),
        grid_responses.layers,
        {
            **grid_responses.attributes,
            "ppd": layout["ppd"],
            "size": json.dumps(layout["size"]),
        },
        (grid_responses.status, grid_responses.baseline_status),
    )
    if "anchor" in layout:
        dataset = add_anchor(dataset, layout, grid_responses)
    return dataset


def plot(results: Sequence[Dataset], ax: Any = None, **options: Any) -> Any:
    """Draw thresholds where all results have them, else contours, or answers in words."""
    kinds = {task_of(result).answered for result in results}
    if len(kinds) > 1:
        raise InputError(
            "answers in words and responses of encoders go on figures of their own; draw them apart"
        )
    if True in kinds:
        return words_probe().plot(results, ax, **options)
    if all(map(_has_jnds, results)):
        from psyprobe.plotting.jnd import jnd_panels

        return jnd_panels(results, ax, **options)
    from psyprobe.plotting.features import contour_panels

    return contour_panels(results, ax, **options)


def report(results: Sequence[Dataset]) -> list[Any]:
    """Build report sections: first of encoders and metrics, then of results in words."""
    from psyprobe.plotting.feature_parts import contour_parts
    from psyprobe.plotting.jnd import jnd_parts

    word_results = [result for result in results if task_of(result).answered]
    encoder_results = [result for result in results if not task_of(result).answered]
    parts: list[Any] = jnd_parts([*filter(_has_jnds, encoder_results)])
    if encoder_results:
        parts += contour_parts(encoder_results)
    if word_results:
        parts += words_probe().report(word_results)
    return parts


def _has_jnds(result: Dataset) -> bool:
    """Tell whether a result has just noticeable differences over its levels."""
    has_anchor = "anchor_response" in join_measures(result)
    return has_anchor and stimulus_axis_of(result) != PERIOD


def words_probe() -> WordsProbe:
    """Import the probe that shows two images and asks about them in words."""
    from psyprobe.probes.words.schedule import two_interval

    return two_interval


#: Points of the human curve that a figure shows.
_CURVE_POINTS = 200


def grid_conditions(
    experiment: Experiment, card: Card, difference: StimulusDifference | None = None
) -> Conditions:
    """Plan the image pairs of an experiment on a grid of levels for one observer.

    Parameters
    ----------
    experiment : Experiment
        What to show.
    card : Card
        The observer's card; its input size decides the size of the images, over the same degrees of
        visual angle.
    difference : StimulusDifference, optional
        The difference of test and reference; by default the experiment's.

    Raises
    ------
    InputError
        A level cannot be drawn at this size, or the human reference has no threshold there.
    """
    difference = find_difference(experiment) if difference is None else difference
    replaced_level = difference.level or difference.name
    levels = {
        name: np.array(values)
        for name, values in experiment.levels.items()
        if name != replaced_level
    }
    check_levels({**levels, difference.name: np.array(difference.values)})
    measures, scored_measure = choose_measures(experiment, card)
    first = {name: float(values[0]) for name, values in levels.items()}
    native = with_levels(experiment.spec(), **first)
    displayed = at_native_size(experiment.name, native, card)
    with explain_redrawing(experiment.name, native, displayed, card):
        scored_levels, scored_values, human_entries = _scored_grid(
            experiment, levels, native
        )
        grid_levels = levels
        values = np.array(difference.values)
        if experiment.score_only and experiment.score.anchor is None:
            grid_levels = {name: values[:0] for name, values in levels.items()}
            values = np.array([])
        grids: dict[str, Grid | None] = {
            "grid": difference.grid(displayed, grid_levels, values),
            "scored": difference.grid(displayed, scored_levels, scored_values),
        }
        anchor_entries: JsonObject = {}
        if experiment.score.anchor is not None:
            anchor_grids, anchor_entries = anchored_grids(
                experiment, difference, displayed, native, levels
            )
            grids |= anchor_grids
    pairs, indices = pair_up(grids)
    parameters = {name: level_of(native, name) for name in levels}
    strongest: dict[int, str] = {}
    for name, axes, amounts in (
        ("grid", grid_levels, values),
        ("scored", scored_levels, scored_values),
    ):
        if indices[name]:
            strongest |= _strongest(
                difference, parameters, axes, amounts, indices[name]
            )
    return Conditions(
        pairs=pairs,
        indices=indices,
        measures=measures,
        axes={
            "levels": [
                {
                    "name": name,
                    "unit": parameter.unit,
                    "label": parameter.label,
                    "values": grid_levels[name].tolist(),
                    "scored": scored_levels[name].tolist() if indices["scored"] else [],
                }
                for name, parameter in parameters.items()
            ],
            "difference": {
                "name": difference.name,
                "unit": difference.unit,
                "label": difference.label,
                "kind": difference.kind,
                "values": values.tolist(),
            },
            "multiplier": list(experiment.score.multiplier or ()),
            "multiplier_of": experiment.score.multiplier_of,
            "score_measure": scored_measure,
            **human_entries,
            **anchor_entries,
        },
        strongest=strongest,
        remarks=stimulus_remarks(experiment, native),
    )


def check_levels(levels: NamedArrays) -> None:
    """Refuse an experiment without levels, or with a level of a single value."""
    if not levels:
        raise InputError(
            "[levels] is empty; give for example frequency = { values = [1, 2, 4] }"
        )
    for name, values in levels.items():
        if len(values) < 2:
            raise InputError(
                f"levels.{name} are {values.tolist()}; give at least two levels, in ascending "
                "order; a single value belongs to the stimulus"
            )


def _scored_grid(
    experiment: Experiment, levels: NamedArrays, native: Specification
) -> tuple[dict[str, FloatArray], FloatArray, JsonObject]:
    """Compute the scored levels, multiples of human thresholds, and human layout entries.

    The last axis of the multiples is that of the multipliers.
    """
    reference = experiment.human
    score = experiment.score
    if reference is None or (score.multiplier is None and score.anchor is not None):
        missing = ("scored_difference", "human_sensitivity", "curve")
        return {}, np.empty(0), {"human": "", **dict.fromkeys(missing)}
    if score.multiplier is None:
        raise InputError(
            "[score] has no multiplier; give for example { from = 0.5, to = 2, n = 10, scale = "
            '"log" }'
        )
    if isinstance(reference, DataReference):
        points, _ = reference.within(levels, human_parameters(native))
        curve_levels = {name: np.unique(values) for name, values in points.items()}
        scored = dict(curve_levels)
    else:
        curve_levels = {name: _curve_at(values) for name, values in levels.items()}
        scored = dict(levels)
    name = next(iter(levels))
    scored[name] = _select_scored_values(experiment, name, scored[name])
    sensitivity = human_sensitivity(reference, native, scored)
    curve = None
    if len(levels) == 1:
        curve_sensitivity = human_sensitivity(reference, native, curve_levels)
        curve = {
            "level": name,
            "values": curve_levels[name].tolist(),
            "sensitivity": curve_sensitivity.tolist(),
        }
    multiplier = np.array(score.multiplier)
    factor = multiplier if score.multiplier_of == "threshold" else 1 / multiplier
    differences = ten_digits(factor / sensitivity[..., None])
    human_entries = {
        "human": reference.name,
        "scored_difference": differences.tolist(),
        "curve": curve,
        "human_sensitivity": sensitivity.tolist(),
    }
    return scored, differences, human_entries


def _curve_at(values: FloatArray) -> FloatArray:
    """Choose the points of a human curve: log-spaced, and 0 if that is a level."""
    above = log_spaced(values[values > 0][0], values[-1], _CURVE_POINTS)
    return above if values[0] > 0 else np.concatenate([values[:1], above])


def _select_scored_values(
    experiment: Experiment, name: str, values: FloatArray
) -> FloatArray:
    """Select the level's values between score.above and score.below, refusing none."""
    above = experiment.score.above
    below = experiment.score.below
    scored = values[(values > (above or -np.inf)) & (values < (below or np.inf))]
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
    difference: StimulusDifference,
    parameters: Mapping[str, Parameter],
    levels: NamedArrays,
    values: FloatArray,
    grid_indices: Any,
) -> dict[int, str]:
    """Find the pair that differs most at each combination of levels, and describe it."""
    indices = np.reshape(grid_indices, (*map(len, levels.values()), values.shape[-1]))
    amounts = np.broadcast_to(values, indices.shape)
    strongest = {}
    for point in np.ndindex(indices.shape[:-1]):
        largest = (*point, amounts[point].argmax())
        parts = [
            f"{name} {axis[i]:.4g} {parameters[name].unit}"
            for i, (name, axis) in zip(point, levels.items(), strict=True)
        ]
        parts.append(f"{difference.name} {amounts[largest]:.4g}")
        strongest[int(indices[largest])] = ", ".join(parts)
    return strongest


def choose_measures(experiment: Experiment, card: Card) -> tuple[tuple[str, ...], str]:
    """Choose the measures of each response, and the one by which the observer is scored."""
    if card.ability == "difference":
        return (DIFFERENCE,), DIFFERENCE
    measure = experiment.score.measure
    # The published arithmetic is slow and serves no other purpose, so only experiments that name it
    # pay for it.
    return MEASURES if measure in MEASURES else (*MEASURES, measure), measure


@contextmanager
def explain_redrawing(
    name: str, native: Specification, displayed: Specification, card: Card
) -> Iterator[None]:
    """Name the experiment, and the observer's input size, in errors within the block."""
    try:
        yield
    except InputError as error:
        if displayed.shape == native.shape:
            raise
        height, width = displayed.shape
        raise type(error)(
            f"{name}, redrawn at {height} x {width} px ({displayed.ppd:.4g} ppd) for {card.name}: "
            f"{error}; for this encoder, change the levels in a copy of the experiment file, or "
            "take one with a larger input"
        ) from error
