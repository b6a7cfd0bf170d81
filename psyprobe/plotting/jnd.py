"""Figures of just noticeable differences: of an observer at its anchor, of pixels, of people, of
the ideal observer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.analysis.discrimination import DiscriminationScore, Thresholds, score_discrimination
from psyprobe.analysis.responses import layers_of, levels_of
from psyprobe.errors import InputError
from psyprobe.files.units import unit_symbol
from psyprobe.human.models import human_label
from psyprobe.plotting import axes
from psyprobe.plotting.figure_data import Axis, Figure, Line, Panel, level_axis, name_of

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawn
    from matplotlib.figure import SubFigure

_STYLES: dict[str, dict[str, Any]] = {
    "pixels": {"color": "0.6", "marker": ".", "linewidth": 1.2, "label": "pixels (no encoder)"},
    "ideal": {"color": "0.6", "linestyle": ":", "linewidth": 1.6, "label": "linear ideal observer"},
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
    who: str
    #: Values of the other levels; empty for none.
    at: str
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
    """Draw the thresholds of each result and layer with an anchor: ``plot`` of a probe, see
    `psyprobe.probes.results`.

    The level to the right (a level of 0 at the very left), the difference that is just noticed
    upwards. What is not reached is left out. With two levels, one curve for each value of the
    first.
    """
    shown = axes.shown_layers(results, layer, layers_of, ax)
    scores = [_score(one, measure, name) for one, name in shown]
    several = len({result.attrs.get("experiment") for result in results}) > 1 or not observer
    place: Any = None
    if len(shown) == 1 and figure is None:
        panels: Sequence[Axes] = [axes.new_axes() if ax is None else ax]
    else:
        place, panels = axes.panels_in(figure, len(shown), min(3, len(shown)), each=(4.0, 3.6))
    alike = len({one.attrs.get("experiment") for one, _ in shown}) == 1
    found = [list(_curves(one, score)) for (one, _), score in zip(shown, scores, strict=True)]
    for panel, (one, name), score, curves in zip(panels, shown, scores, found, strict=True):
        # Panels of one experiment share their upward axis.
        together = [
            each for (other, _), each in zip(shown, found, strict=True) if _same(one, other)
        ]
        who = "observer" if alike and len(shown) > 1 else score.observer
        _draw(panel, score, who, curves, [curve for each in together for curve in each])
        title = axes.panel_title(one, name, experiment=several, observer=observer)
        axes.label(panel, _across(one), _upwards(one, score.difference), title, framed=False)
    if alike:
        # Every panel has its observer's name above it, and the same curves in it.
        handles = panels[0].get_legend_handles_labels()[0]
        axes.legend_below(panels[0] if place is None else place, handles, "")
    else:
        for panel in panels:
            panel.legend(fontsize="x-small", framealpha=0.9)
    return panels[0] if place is None else cast("Drawn | SubFigure", place)


def jnd_parts(results: Sequence[xr.Dataset]) -> list[Figure]:
    """The same as plain data, for a page."""
    drawn = [result for result in results if "anchor_response" in result]
    if not drawn:
        return []
    panels = []
    for one in drawn:
        views = {}
        for name in layers_of(one):
            score = _score(one, None, name)
            views[name if len(layers_of(one)) > 1 else ""] = [
                _line(curve, score, i) for i, curve in enumerate(_curves(one, score))
            ]
        panels.append(Panel(name_of(one), {"": views}))
    first = drawn[0]
    difference = str(first.attrs["difference"])
    caption = (
        "Differences at which the response reaches that to the anchor; what is not "
        "reached is left out."
    )
    y = Axis(_upwards(first, difference), log=True)
    x = first[levels_of(first)[-1]].values
    return [
        Figure("Just noticeable differences", level_axis(_across(first), x), y, panels, caption)
    ]


def _score(result: xr.Dataset, measure: str | None, layer: str) -> DiscriminationScore:
    (found,) = score_discrimination(result, measure=measure, layer=layer, resamples=100)
    assert isinstance(found, DiscriminationScore)
    return found


def _same(one: xr.Dataset, other: xr.Dataset) -> bool:
    return bool(one.attrs.get("experiment") == other.attrs.get("experiment"))


def _line(curve: _Curve, score: DiscriminationScore, colour: int) -> Line:
    style: Any = "people" if curve.who == "people" else "line"
    who = str(_STYLES.get(curve.who, {}).get("label", curve.who))
    if curve.who == "people":
        who = _people(score)
    return Line(
        ", ".join(each for each in (who, curve.at) if each),
        curve.x,
        curve.y,
        style=style,
        colour=colour,
    )


def _people(score: DiscriminationScore) -> str:
    return f"Human ({human_label(score.human)})"


def _across(result: xr.Dataset) -> str:
    last = levels_of(result)[-1]
    label = axes.level_label(result, last)
    # A difference in contrast is one from a pedestal.
    return (
        f"Pedestal {label.lower()}" if result.attrs["difference"] == f"{last}_difference" else label
    )


def _upwards(result: xr.Dataset, difference: str) -> str:
    label = axes.level_label(result, difference)
    if difference.endswith("_difference"):
        return f"Just noticeable {label[:1].lower()}{label[1:]}"
    return f"Threshold ({label})" if difference == "contrast" else label


def _at(result: xr.Dataset, name: str, value: float) -> str:
    unit = unit_symbol(result[name].attrs)
    return f"{name.replace('_', ' ')} {value:g}{'' if unit == '1' else f' {unit}'}"


def _curves(result: xr.Dataset, score: DiscriminationScore) -> Iterator[_Curve]:
    """Thresholds over the last level, those of each value of the others by themselves."""
    *others, last = levels_of(result)
    x = np.array(score.at[last])
    keys = list(zip(*(score.at[name] for name in others), strict=True)) if others else [()] * len(x)
    for key in dict.fromkeys(keys):
        here = np.array([one == key for one in keys])
        told = ", ".join(_at(result, name, value) for name, value in zip(others, key, strict=True))
        for who in ("people", "ideal", "pixels", "score"):
            found: Thresholds | None = getattr(score, who)
            if found is not None:
                y = np.array([np.nan if value is None else value for value in found.values])
                yield _Curve("observer" if who == "score" else who, told, x[here], y[here])


def _draw(
    ax: Axes,
    score: DiscriminationScore,
    who: str,
    curves: Sequence[_Curve],
    together: Sequence[_Curve],
) -> None:
    known = np.concatenate([curve.y[np.isfinite(curve.y)] for curve in together])
    if not known.size:
        raise InputError(
            f"no threshold of {score.observer} is reached at the anchor {score.anchor!r}; give "
            "another"
        )
    places = {each: i for i, each in enumerate(dict.fromkeys(curve.at for curve in curves))}
    for curve in curves:
        place = places[curve.at]
        colour = axes.COLOURS[place % len(axes.COLOURS)]
        style = dict(_STYLES.get(curve.who, {"marker": "s", "markersize": 4, "linewidth": 1.8}))
        if curve.who == "people":
            style["label"] = _people(score)
        if curve.who == "observer":
            style |= {"color": colour, "label": who}
        if curve.at and curve.who in ("people", "observer"):
            style["color"], style["label"] = colour, f"{style['label']}, {curve.at}"
        elif place:
            style["label"] = None
        style["label"] = None if style["label"] is None else axes.printable(str(style["label"]))
        ax.plot(curve.x, curve.y, zorder=3 if curve.who == "observer" else 2, **style)
    x = np.unique(curves[0].x)
    axes.log_axis(ax.yaxis, float(known.min()) / 1.5, float(known.max()) * 1.5)
    axes.level_axis(ax.xaxis, x, margin=1.15)
