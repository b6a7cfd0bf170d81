"""Describe contours and contrast matches as plain data: ``report`` of probes of features."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.analysis.direction import UNDEFINED
from psyprobe.analysis.matching import match_result, matching_layers
from psyprobe.analysis.measures import join_measures, measures_of
from psyprobe.analysis.responses import (
    MEASURE_LABELS,
    Responses,
    layers_of,
    levels_of,
    select,
)
from psyprobe.plotting import axes
from psyprobe.plotting.features import human_points, upward_label, upwards
from psyprobe.plotting.figure_data import (
    Axis,
    Figure,
    Grid,
    Line,
    Panel,
    level_axis,
    name_of,
    plain_label,
)
from psyprobe.plotting.people import people_lines
from psyprobe.running.task import stimulus_axis_of

if TYPE_CHECKING:
    import xarray as xr

#: Number of points of a human curve, which is smooth.
_CURVE_POINTS = 50


def contour_parts(results: Sequence[xr.Dataset]) -> list[Figure]:
    """Build a report's figure of responses over level and sensitivity, with human sensitivity.

    Parameters
    ----------
    results : sequence of xarray.Dataset
        Results of one experiment that compares features.
    """
    joined = map(join_measures, results)
    gridded = [
        result for result in joined if "response" in result and levels_of(result)
    ]
    if not gridded:
        return []
    first = gridded[0]
    level, *others = levels_of(first)
    slices = {
        name: first[name].values for name in others if name in first["response"].sizes
    }
    panels = [
        Panel(
            name_of(result), {m: _grids(result, m, slices) for m in _measures([result])}
        )
        for result in gridded
    ]
    level_values = first[level].values
    span = (float(level_values.min()), float(level_values.max()))
    inverse = "" if upwards(first) else stimulus_axis_of(first).label
    human = (
        [] if slices else _human_lines(first, select(first, layer=layers_of(first)[0]))
    )
    figure = Figure(
        "Responses",
        x=replace(level_axis(axes.level_label(first, level), level_values), span=span),
        y=Axis(upward_label(first), log=True, inverse=inverse),
        panels=panels,
        choice="measure",
        options=_measures(gridded),
        over=human,
    )
    return [figure]


def _measures(results: Sequence[xr.Dataset]) -> dict[str, str]:
    """List the measures that any result holds, with labels, the experiment's own first."""
    measures = {str(name) for result in results for name in measures_of(result)}
    names = [name for name in MEASURE_LABELS if name in measures]
    first = str(results[0].attrs.get("score_measure", ""))
    names.sort(key=lambda name: name != first)
    return {name: plain_label(MEASURE_LABELS[name]) for name in names}


def _grids(
    result: xr.Dataset,
    measure: str,
    slices: Mapping[str, FloatArray],
) -> dict[str, Grid]:
    """Build response grids by layer, and by each value of further levels."""
    layers = layers_of(result)
    grids = {}
    for values in itertools.product(*slices.values()):
        selection = dict(zip(slices, map(float, values), strict=True))
        sliced = result.sel(selection) if selection else result
        level_names = [f"{name} {value:.4g}" for name, value in selection.items()]
        for layer in layers:
            names = [layer, *level_names] if len(layers) > 1 else level_names
            responses = select(sliced, measure=measure, layer=layer)
            grids[", ".join(names)] = _response_grid(result, responses)
    return grids


def _response_grid(result: xr.Dataset, responses: Responses) -> Grid:
    """Build the grid of responses over a level and sensitivity (or threshold) for a figure."""
    (x,) = responses.levels.values()
    y = responses.difference if upwards(result) else 1 / responses.difference
    defined = np.where(responses.status == UNDEFINED, np.nan, responses.grid)
    order = np.argsort(y)
    return Grid(x, y[order], defined[:, order], max(responses.noise_floor, 0.0))


def _human_lines(result: xr.Dataset, responses: Responses) -> list[Line]:
    """Build the lines of human sensitivity, or points of thresholds, for a figure."""
    curve = human_points(result, responses)
    if curve is None:
        return []
    if upwards(result):
        return [Line(curve.name, curve.x, 1 / curve.sensitivity, style="people points")]
    subset = np.unique(
        np.linspace(0, len(curve.x) - 1, _CURVE_POINTS).round().astype(int)
    )
    line = Line(curve.name, curve.x[subset], curve.sensitivity[subset], style="people")
    return [line, *people_lines(result)]


def match_parts(results: Sequence[xr.Dataset]) -> list[Figure]:
    """Build a report's figure of contrast matches, for each observer and for people.

    Parameters
    ----------
    results : sequence of xarray.Dataset
        Results of one matching experiment.
    """
    panels = []
    for result in results:
        layers = matching_layers(result)
        views = {}
        for measure in _measures([result]):
            lines = {layer: _match_lines(result, measure, layer) for layer in layers}
            views[measure] = lines if len(layers) > 1 else {"": lines[layers[0]]}
        panels.append(Panel(name_of(result), views))
    first = results[0]
    contrast = first[stimulus_axis_of(first).name].values
    reference = float(first.attrs["reference_frequency"])
    figure = Figure(
        "Contrast matches",
        x=Axis(axes.level_label(first, levels_of(first)[0]), log=True),
        y=Axis(
            "Matched contrast",
            log=True,
            span=(float(contrast.min()), float(contrast.max())),
        ),
        panels=panels,
        caption=(
            f"One colour a contrast of the reference grating at {reference:g} cpd; people dashed, "
            "the observer solid. Level lines show contrast constancy."
        ),
        choice="measure",
        options=_measures(results),
        over=_human_match_lines(first),
    )
    return [figure]


def _human_match_lines(result: xr.Dataset) -> list[Line]:
    """Build the lines of people's matches, one for each reference contrast."""
    match = match_result(result, layer=matching_layers(result)[0])
    return [
        Line(
            f"Human, reference {match.reference_contrast[reference]:.2g}",
            match.measured_frequency,
            match.human[reference],
            style="people",
            shade=shade,
        )
        for reference, shade in _shades(match.reference_contrast).items()
    ]


def _match_lines(result: xr.Dataset, measure: str, layer: str) -> list[Line]:
    """Build the lines of an observer's contrast matches, one for each reference contrast."""
    match = match_result(result, measure=measure, layer=layer)
    matches = match.matches
    contrast = np.where(matches.saturated == 0, matches.contrast, np.nan)
    notes = np.where(
        matches.ambiguous, "ambiguous: more than one contrast matches", ""
    ).tolist()
    return [
        Line(
            f"reference {match.reference_contrast[reference]:.2g}",
            match.frequency,
            contrast[reference],
            shade=shade,
            notes=notes[reference] if any(notes[reference]) else (),
        )
        for reference, shade in _shades(match.reference_contrast).items()
    ]


def _shades(references: FloatArray) -> dict[int, float]:
    """Assign a shade, 0 to 1, to each reference from low to high contrast."""
    order = np.argsort(references).tolist()
    return {index: rank / max(len(order) - 1, 1) for rank, index in enumerate(order)}
