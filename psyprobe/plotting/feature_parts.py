"""Contours and contrast matches as plain data: ``report`` of probes that compare features."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.analysis.direction import UNDEFINED
from psyprobe.analysis.matching import match_result, matching_layers
from psyprobe.analysis.responses import MEASURE_LABELS, Responses, layers_of, levels_of, select
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

if TYPE_CHECKING:
    import xarray as xr

#: Points of a human curve, which has no corner.
_CURVE_POINTS = 50


def contour_parts(results: Sequence[xr.Dataset]) -> list[Figure]:
    """The responses of each observer over level and sensitivity, and human sensitivity on top.

    Parameters
    ----------
    results : sequence of xarray.Dataset
        Of runs of one experiment that compare features.
    """
    drawn = [result for result in results if "response" in result and levels_of(result)]
    if not drawn:
        return []
    first = drawn[0]
    level, *others = levels_of(first)
    measures = _measures(drawn)
    held = first["response"].sizes
    sliced = {name: first[name].values for name in others if name in held}
    panels = [
        Panel(name_of(one), {measure: _grids(one, measure, sliced) for measure in _measures([one])})
        for one in drawn
    ]
    inverse = "" if upwards(first) else str(first.attrs["difference_label"])
    x = first[level].values
    across = replace(
        level_axis(axes.level_label(first, level), x), span=(float(x.min()), float(x.max()))
    )
    up = Axis(upward_label(first), log=True, inverse=inverse)
    over = [] if sliced else _people(first, select(first, layer=layers_of(first)[0]))
    return [Figure("Responses", across, up, panels, choice="measure", options=measures, over=over)]


def _measures(results: Sequence[xr.Dataset]) -> dict[str, str]:
    """Those that any result holds, that of the experiment first, with their labels."""
    known = [
        name
        for name in MEASURE_LABELS
        if any(name in result["measure"].values for result in results)
    ]
    first = str(results[0].attrs.get("score_measure", ""))
    return {
        name: plain_label(MEASURE_LABELS[name])
        for name in sorted(known, key=lambda name: name != first)
    }


def _grids(result: xr.Dataset, measure: str, sliced: dict[str, FloatArray]) -> dict[str, Grid]:
    """By layer; where there are several levels, by layer and each value of the others."""
    layers = layers_of(result)
    found = {}
    for place in itertools.product(*sliced.values()):
        at = dict(zip(sliced, map(float, place), strict=True))
        here = result.sel(at) if at else result
        told = [f"{name} {value:.4g}" for name, value in at.items()]
        for layer in layers:
            key = ", ".join([layer] * (len(layers) > 1) + told)
            found[key] = _grid(result, select(here, measure=measure, layer=layer))
    return found


def _grid(result: xr.Dataset, found: Responses) -> Grid:
    (values,) = found.levels.values()
    up = found.difference if upwards(result) else 1 / found.difference
    defined = np.where(found.status == UNDEFINED, np.nan, found.grid)
    order = np.argsort(up)
    return Grid(values, up[order], defined[:, order], max(found.noise_floor, 0.0))


def _people(result: xr.Dataset, found: Responses) -> list[Line]:
    known = human_points(result, found)
    if known is None:
        return []
    name, at, sensitivity = known
    if upwards(result):
        return [Line(name, at, 1 / sensitivity, style="people points")]
    few = np.unique(np.linspace(0, len(at) - 1, _CURVE_POINTS).round().astype(int))
    return [Line(name, at[few], sensitivity[few], style="people"), *people_lines(result)]


def match_parts(results: Sequence[xr.Dataset]) -> list[Figure]:
    """The contrasts that match each reference for each observer, and for people.

    Parameters
    ----------
    results : sequence of xarray.Dataset
        Of runs of one matching experiment.
    """
    measures = _measures(results)
    panels = []
    for result in results:
        layers = matching_layers(result)
        views = {
            measure: {
                layer if len(layers) > 1 else "": list(_matches(result, measure, layer))
                for layer in layers
            }
            for measure in _measures([result])
        }
        panels.append(Panel(name_of(result), views))
    first = results[0]
    found = match_result(first, layer=matching_layers(first)[0])
    contrast = first[str(first.attrs["difference"])].values
    over = [
        Line(
            f"Human, reference {reference:.2g}",
            found.measured_frequency,
            human,
            style="people",
            shade=shade,
        )
        for reference, human, shade in _by_reference(found.reference_contrast, found.human)
    ]
    x = Axis(axes.level_label(first, levels_of(first)[0]), log=True)
    y = Axis("Matched contrast", log=True, span=(float(contrast.min()), float(contrast.max())))
    reference = float(first.attrs["reference_frequency"])
    caption = (
        f"One colour a contrast of the reference grating at {reference:g} cpd; people dashed, "
        "the observer solid. "
        "Level lines show contrast constancy."
    )
    return [Figure("Contrast matches", x, y, panels, caption, "measure", measures, over)]


def _matches(result: xr.Dataset, measure: str, layer: str) -> Iterator[Line]:
    found = match_result(result, measure=measure, layer=layer)
    matches = found.matches
    rows = zip(matches.contrast, matches.saturated, matches.ambiguous, strict=True)
    for reference, (contrast, saturated, ambiguous), shade in _by_reference(
        found.reference_contrast, list(rows)
    ):
        notes = ["ambiguous: more than one contrast matches" if each else "" for each in ambiguous]
        drawn = np.where(saturated == 0, contrast, np.nan)
        yield Line(
            f"reference {reference:.2g}",
            found.frequency,
            drawn,
            shade=shade,
            notes=notes if any(notes) else (),
        )


def _by_reference(references: FloatArray, rows: Any) -> Iterator[tuple[float, Any, float]]:
    """Each reference with its row and its shade, from low to high contrast."""
    order = np.argsort(references)
    for place, k in enumerate(order):
        yield float(references[k]), rows[k], place / max(len(order) - 1, 1)
