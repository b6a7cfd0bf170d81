"""Draw just noticeable differences of an observer, of pixels, of people, of the ideal observer."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pandas as pd

from psyprobe._typing import FloatArray
from psyprobe.analysis.discrimination import (
    DiscriminationScore,
    Thresholds,
    score_discrimination,
)
from psyprobe.analysis.measures import join_measures
from psyprobe.analysis.responses import layers_of, levels_of
from psyprobe.errors import InputError
from psyprobe.files.json_types import JsonObject
from psyprobe.files.units import unit_symbol
from psyprobe.human.models import human_label
from psyprobe.plotting import axes
from psyprobe.plotting.figure_data import Axis, Figure, Line, Panel, level_axis, name_of
from psyprobe.running.task import stimulus_axis_of

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawn
    from matplotlib.figure import SubFigure

_STYLES: dict[str, JsonObject] = {
    "observer": {"marker": "s", "markersize": 4, "linewidth": 1.8, "zorder": 3},
    "pixels": {
        "color": "0.6",
        "marker": ".",
        "linewidth": 1.2,
        "label": "pixels (no encoder)",
    },
    "ideal": {
        "color": "0.6",
        "linestyle": ":",
        "linewidth": 1.6,
        "label": "linear ideal observer",
    },
    "people": {
        "color": "black",
        "linestyle": "--",
        "marker": "o",
        "markersize": 4,
        "linewidth": 1.4,
    },
}


@dataclass(frozen=True)
class _Curve:
    """Thresholds over the level that is drawn to the right."""

    #: "observer", "pixels", "ideal" or "people".
    responder: str
    #: Values of the other levels; empty for none.
    condition: str
    x: FloatArray
    y: FloatArray


def jnd_panels(
    results: Sequence[xr.Dataset],
    ax: Axes | None = None,
    *,
    figure: SubFigure | None = None,
    observer: bool = True,
    measure: str | None = None,
    layer: str | None = None,
    **_: Any,
) -> Axes | Drawn | SubFigure:
    """Draw the just noticeable differences of each result and layer that has them.

    This is ``plot`` of a probe, see `psyprobe.probes.results`. The level is to the right (a level
    of 0 at the very left), the just noticeable difference upwards. Thresholds that are not reached
    are left out. With two levels, there is one curve for each value of the first.
    """
    pairs = axes.result_layers(results, layer, layers_of, ax)
    count = len(pairs)
    if count == 1 and figure is None:
        canvas: Any = ax or axes.new_axes()
        panels: Sequence[Axes] = [canvas]
    else:
        canvas, panels = axes.panels_in(figure, count, min(3, count), (4.0, 3.6))
    # Panels of one experiment share their upward axis.
    experiments: defaultdict[str, list[_Curve]] = defaultdict(list)
    drawings = []
    for panel, (result, name) in zip(panels, pairs, strict=True):
        score = _score_layer(result, measure, name)
        curves = list(_curves(result, score))
        experiments[score.experiment] += curves
        drawings.append((panel, result, name, score, curves))
    is_one_experiment = len(experiments) == 1
    title_experiment = not is_one_experiment or not observer
    for panel, result, name, score, curves in drawings:
        observer_label = (
            "observer" if is_one_experiment and count > 1 else score.observer
        )
        _draw(panel, score, observer_label, curves, experiments[score.experiment])
        title = axes.panel_title(
            result, name, experiment=title_experiment, observer=observer
        )
        labels = (_level_label(result), _threshold_label(result))
        axes.label(panel, *labels, title, framed=False)
        if not is_one_experiment:
            panel.legend(fontsize="x-small", framealpha=0.9)
    if is_one_experiment:
        # Every panel has its observer's name above it, and the same curves in it.
        handles = panels[0].get_legend_handles_labels()[0]
        axes.legend_below(canvas, handles, "")
    return cast("Axes | Drawn | SubFigure", canvas)


def jnd_parts(results: Sequence[xr.Dataset]) -> list[Figure]:
    """Build a report's figure of just noticeable differences."""
    joined = map(join_measures, results)
    anchored = [result for result in joined if "anchor_response" in result]
    if not anchored:
        return []
    panels = []
    for result in anchored:
        layers = layers_of(result)
        views = {}
        for name in layers:
            score = _score_layer(result, None, name)
            lines = [
                _make_line(curve, score, i)
                for i, curve in enumerate(_curves(result, score))
            ]
            views[name if len(layers) > 1 else ""] = lines
        panels.append(Panel(name_of(result), {"": views}))
    first = anchored[0]
    caption = (
        "Differences at which the response reaches that to the anchor; what is not "
        "reached is left out."
    )
    x = level_axis(_level_label(first), first[levels_of(first)[-1]].values)
    y = Axis(_threshold_label(first), log=True)
    return [Figure("Just noticeable differences", x, y, panels, caption)]


def _score_layer(
    result: xr.Dataset, measure: str | None, layer: str
) -> DiscriminationScore:
    """Score the just noticeable differences of one layer."""
    (score,) = score_discrimination(result, measure=measure, layer=layer, resamples=100)
    assert isinstance(score, DiscriminationScore)
    return score


def _make_line(curve: _Curve, score: DiscriminationScore, colour: int) -> Line:
    """Convert a curve of just noticeable differences to a line of a figure."""
    names = [_label(curve, score, "observer"), curve.condition]
    style: Any = "people" if curve.responder == "people" else "line"
    name = ", ".join(filter(None, names))
    return Line(name, curve.x, curve.y, style=style, colour=colour)


def _label(curve: _Curve, score: DiscriminationScore, observer: str) -> str:
    """Name whose thresholds a curve shows."""
    if curve.responder == "people":
        return f"Human ({human_label(score.human)})"
    if curve.responder == "observer":
        return observer
    return str(_STYLES[curve.responder]["label"])


def _level_label(result: xr.Dataset) -> str:
    """Return the axis label of levels, as that of pedestals where contrasts differ."""
    last = levels_of(result)[-1]
    label = axes.level_label(result, last)
    # A difference in contrast is one from a pedestal.
    if stimulus_axis_of(result).name == f"{last}_difference":
        return f"Pedestal {label.lower()}"
    return label


def _threshold_label(result: xr.Dataset) -> str:
    """Return the axis label of thresholds, by what differs."""
    difference = stimulus_axis_of(result).name
    label = axes.level_label(result, difference)
    if difference.endswith("_difference"):
        return f"Just noticeable {label[:1].lower()}{label[1:]}"
    return f"Threshold ({label})" if difference == "contrast" else label


def _condition(
    result: xr.Dataset, names: Sequence[str], values: Sequence[float]
) -> str:
    """Describe the values of levels with their units."""
    units = [unit_symbol(result[name].attrs) for name in names]
    return ", ".join(
        f"{name.replace('_', ' ')} {axes.with_unit(value, unit)}"
        for name, value, unit in zip(names, values, units, strict=True)
    )


def _curves(result: xr.Dataset, score: DiscriminationScore) -> Iterator[_Curve]:
    """Iterate over curves of thresholds over the last level, at each of the other levels."""
    *others, last = levels_of(result)
    responders: dict[str, Thresholds | None] = {
        "people": score.people,
        "ideal": score.ideal,
        "pixels": score.pixels,
        "observer": score.score,
    }
    table = pd.DataFrame({name: score.at[name] for name in [*others, last]})
    groups = table.groupby(others, sort=False) if others else [((), table)]
    for combination, rows in groups:
        condition = _condition(result, others, combination)
        for responder, thresholds in responders.items():
            if thresholds is not None:
                y = np.array(thresholds.values, dtype=float)[rows.index]
                yield _Curve(responder, condition, rows[last].to_numpy(), y)


def _draw(
    ax: Axes,
    score: DiscriminationScore,
    observer: str,
    curves: Sequence[_Curve],
    axis_curves: Sequence[_Curve],
) -> None:
    """Draw curves of thresholds, with an axis that holds also `axis_curves`."""
    y = np.concatenate([curve.y for curve in axis_curves])
    y = y[np.isfinite(y)]
    if not y.size:
        raise InputError(
            f"no threshold of {score.observer} is reached at the anchor {score.anchor!r}; give "
            "another"
        )
    conditions = list(dict.fromkeys(curve.condition for curve in curves))
    for curve in curves:
        index = conditions.index(curve.condition)
        colour = axes.COLOURS[index % len(axes.COLOURS)]
        style = {"color": colour, **_STYLES[curve.responder]}
        label: str | None = axes.printable(_label(curve, score, observer))
        if curve.condition and curve.responder in ("people", "observer"):
            style["color"] = colour
            label = f"{label}, {axes.printable(curve.condition)}"
        elif index:
            label = None
        ax.plot(curve.x, curve.y, **style | {"label": label})
    axes.log_axis(ax.yaxis, y, 1.5)
    axes.level_axis(ax.xaxis, np.unique(curves[0].x), margin=1.15)
