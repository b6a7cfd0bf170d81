"""Contrast sensitivity functions of observers that were asked in words, beside those of people.

References
----------
Hernandez-Camara, Daniel-Valencia, Laparra, Malo (2025). Contrast sensitivity function of multimodal vision-language
models. arXiv 2508.10367. Figure 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.analysis.iso_response import iso_contrast
from psyprobe.analysis.responses import MEASURE_LABELS, levels_of, select
from psyprobe.analysis.words.comparison import bridge, human_line
from psyprobe.analysis.words.csf import chat_csfs
from psyprobe.analysis.words.score import refuse_features
from psyprobe.errors import InputError
from psyprobe.plotting.axes import (
    COLOURS,
    check_room,
    label,
    level_axis,
    level_label,
    log_axis,
    new_axes,
    panels_in,
    printable,
    title_of,
)

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

#: Blue and vermilion first: they differ most.
_COLOURS = (COLOURS[0], COLOURS[5], COLOURS[2], COLOURS[3], COLOURS[1], COLOURS[4])
_MARKERS = ("o", "s", "D", "v", "P", "X")
_LABEL = r"Sensitivity (1 / contrast, $\sqrt{2}\,$SD/mean)"


def plot_csf(
    results: xr.Dataset | Sequence[xr.Dataset],
    ax: Axes | None = None,
    *,
    human: str | None = None,
    labels: Sequence[str] | None = None,
    title: str | None = None,
) -> Axes:
    """Draw contrast sensitivity functions of observers, and that of people dashed in black.

    Parameters
    ----------
    results : xarray.Dataset or sequence of xarray.Dataset
        Of questioning runs, or of `chat_csf`.
    ax : matplotlib.axes.Axes, optional
        Where to draw; without it, on a new pyplot figure.
    human : str, optional
        Human curve, as `human_names` lists them; without it the experiment's. Give "" for none.
    labels : sequence of str, optional
        One a result; without it the observers' names.
    title : str, optional
        Without it none, or for one result the observer's name.

    Returns
    -------
    matplotlib.axes.Axes
        The level (frequency, phase, ...) to the right, sensitivity upwards, logarithmic. Points are geometric means
        over wordings with their intervals; arrows say that sensitivity lies beyond the contrasts that were shown.

    Raises
    ------
    InputError
        If something is no result of a questioning run, or labels do not fit.
    """
    import xarray as xr

    listed = [results] if isinstance(results, xr.Dataset) else list(results)
    csfs = chat_csfs(listed)
    if not csfs:
        raise InputError("there are no results to draw; give one at least")
    names = [_name(csf) for csf in csfs] if labels is None else list(map(printable, labels))
    if len(names) != len(csfs):
        raise InputError(f"{len(names)} labels do not fit {len(csfs)} results; give one a result")
    ax = new_axes() if ax is None else ax
    for i, (csf, name) in enumerate(zip(csfs, names, strict=True)):
        _draw(ax, csf, name, _COLOURS[i % len(_COLOURS)], _MARKERS[i % len(_MARKERS)])
    alone = len(csfs) == 1 and labels is None
    _finish(ax, csfs, human, (title_of(csfs[0]) if alone else "") if title is None else title)
    return ax


def csf_panels(
    results: Sequence[xr.Dataset],
    ax: Axes | None = None,
    *,
    figure: SubFigure | None = None,
    measure: str | None = None,
    layer: str | None = None,
    **_: Any,
) -> Axes | Figure | SubFigure:
    """Draw the sensitivities of runs that ask in words, those of one experiment on one panel.

    It is ``plot`` of a probe, see `psyprobe.probes.results`; legends name observers in any case, and answers in words
    have neither measure nor layer.
    """
    refuse_features(measure=measure, layer=layer)
    experiments = list(dict.fromkeys(str(one.attrs.get("experiment", "")) for one in results))
    check_room(ax, len(experiments))
    if len(experiments) == 1 and figure is None:
        return plot_csf(results, ax)
    place, panels = panels_in(figure, len(experiments), min(3, len(experiments)), each=(4.8, 4.0))
    for panel, name in zip(panels, experiments, strict=True):
        plot_csf([one for one in results if one.attrs.get("experiment") == name], panel, title=printable(name))
    return cast("Figure | SubFigure", place)


def plot_bridge(
    asked: xr.Dataset,
    tower: xr.Dataset,
    ax: Axes | None = None,
    *,
    measure: str | None = None,
    layer: str | None = None,
) -> Axes:
    """Draw what a chat model says it sees, and what its own vision tower tells apart, for the same stimuli.

    Parameters
    ----------
    asked, tower, measure, layer
        As in `psyprobe.analysis.words.comparison.bridge`, whose errors are those of this function.
    ax
        As in `plot_csf`.

    Returns
    -------
    matplotlib.axes.Axes
        As of `plot_csf`; thick, the tower's iso-response curve that lies nearest to the answers; thin, its curves at
        other levels, which are a factor of two apart in response.
    """
    (csf,) = chat_csfs([asked])
    nearest = bridge(csf, tower, measure=measure, layer=layer)
    found = select(tower, measure=measure, layer=layer)
    ax = new_axes() if ax is None else ax
    levels = nearest.level * 2.0 ** np.arange(-6, 7)
    levels = levels[(levels > found.noise_floor) & (levels < found.grid.max())]
    log_c, crossed, _ = iso_contrast(found.difference, found.grid, levels)
    for row, inside in zip(log_c, crossed, strict=True):
        # Where a level is not reached, there is no contrast to draw.
        sensitivity = 10.0 ** -np.where(inside, row, np.nan)
        ax.plot(found.levels["frequency"], sensitivity, color="0.72", linewidth=0.8, zorder=1)
    response = f"{MEASURE_LABELS[found.measure]} = {nearest.level:.2g}"
    of_tower = f"vision tower: {response}\n(RMSE {nearest.rmse:.2f} log$_{{10}}$)"
    ax.plot(nearest.at, nearest.sensitivity, color=_COLOURS[1], marker=_MARKERS[1], linewidth=1.8, label=of_tower)
    _draw(ax, csf, "asked in words", _COLOURS[0], _MARKERS[0])
    ax.plot([], [], color="0.72", linewidth=0.8, label="tower, responses a factor of 2 apart")
    _finish(ax, [csf], None, title_of(csf), extra=nearest.sensitivity)
    return ax


def _draw(ax: Axes, csf: xr.Dataset, name: str, colour: str, marker: str) -> None:
    values = csf[levels_of(csf)[0]].values
    mean, low, high = (csf[f"mean_sensitivity{end}"].values for end in ("", "_low", "_high"))
    known = np.isfinite(mean)
    # An interval without an end runs off the axis.
    reach = np.stack([mean - np.maximum(low, mean * 1e-3), np.minimum(high, mean * 1e3) - mean])[:, known]
    style: dict[str, Any] = {"color": colour, "marker": marker, "markersize": 5, "linewidth": 1.5, "label": name}
    ax.errorbar(values[known], mean[known], yerr=reach, elinewidth=1, capsize=2, zorder=3, **style)
    beyond = beyond_levels(csf)
    for i in np.flatnonzero(~known):
        if beyond[i]:
            _arrow(ax, float(values[i]), *_bound(csf, int(i), int(beyond[i])), colour)


def beyond_levels(csf: xr.Dataset) -> FloatArray:
    """At each level -1 where most wordings tell only that sensitivity is lower, 1 where that it is higher, else 0."""
    status = csf["status"].values.astype(str)
    above, below = (status == "censored_above").sum(axis=0), (status == "censored_below").sum(axis=0)
    side: FloatArray = np.where(above > below, -1.0, np.where(below > 0, 1.0, 0.0))
    return side


def _bound(csf: xr.Dataset, i: int, side: int) -> tuple[float, int]:
    # Of the wordings that say so, the contrasts at which they gave an answer that counts.
    says = csf["status"].values[:, i].astype(str) == ("censored_above" if side < 0 else "censored_below")
    contrast = np.where(csf["trials"].values[says, i] > 0, csf["contrast"].values[says, i], np.nan)
    return (1 / float(np.nanmax(contrast)), -1) if side < 0 else (1 / float(np.nanmin(contrast)), 1)


def _arrow(ax: Axes, x: float, y: float, side: int, colour: str) -> None:
    head = {"arrowstyle": "-|>", "color": colour, "linewidth": 1.4}
    ax.annotate("", xy=(x, y * 1.6**side), xytext=(x, y), arrowprops=head)
    # The text of an annotation does not move the limits of an axis; a bar at the bound does.
    ax.plot([x], [y], marker="_", markersize=9, color=colour, linestyle="none")


def _finish(ax: Axes, csfs: Sequence[xr.Dataset], human: str | None, title: str, extra: Any = ()) -> None:
    """The human curve, axes that hold all that is drawn, labels and a legend."""
    levels = {levels_of(csf)[0] for csf in csfs}
    if len(levels) > 1:
        raise InputError(f"results over {' and '.join(sorted(levels))} do not go on one pair of axes; draw them apart")
    (level,) = levels
    values = np.concatenate([csf[level].values for csf in csfs])
    shown = [np.asarray(extra), *(csf["mean_sensitivity"].values for csf in csfs)]
    shown += [
        np.array([_bound(csf, int(i), int(side))[0]])
        for csf in csfs
        for i, side in enumerate(beyond_levels(csf))
        if side and not np.isfinite(csf["mean_sensitivity"].values[i])
    ]
    people = human_line(csfs[0], human, values.min() / 1.25, values.max() * 1.25)
    if people is not None:
        name, x, curve = people
        reached = np.isfinite(curve) & (curve > 0)
        ax.plot(x[reached], curve[reached], color="black", linestyle="--", linewidth=1.4, label=name, zorder=2)
        shown.append(curve[reached])
    drawn = np.concatenate(shown)
    drawn = drawn[np.isfinite(drawn) & (drawn > 0)]
    if not drawn.size:
        raise InputError(f"there is no threshold to draw at any {level}; see the variable 'status'")
    level_axis(ax.xaxis, values, margin=1.25)
    log_axis(ax.yaxis, float(drawn.min()) / 2, float(drawn.max()) * 2)
    label(ax, level_label(csfs[0], level), _LABEL, title, framed=False)
    ax.legend(fontsize="small", framealpha=0.9, loc="best")


def _name(csf: xr.Dataset) -> str:
    name = str(csf.attrs.get("observer", ""))
    return printable(name) + (" (RANDOM WEIGHTS)" if csf.attrs.get("random_weights", 0) else "")
