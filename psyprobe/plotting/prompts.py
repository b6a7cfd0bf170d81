"""Draw how answers depend on the wording of a prompt, and how often the answer is yes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from psyprobe._typing import FloatArray, StrArray
from psyprobe.analysis.responses import levels_of
from psyprobe.analysis.words.csf import chat_csfs
from psyprobe.errors import InputError
from psyprobe.files.flags import flag_words
from psyprobe.files.json_types import JsonMapping, JsonObject
from psyprobe.files.units import unit_symbol
from psyprobe.plotting import axes
from psyprobe.plotting.people import draw_curve
from psyprobe.plotting.psychometric_curves import prompt_index
from psyprobe.plotting.words import delivered_label, human_curve
from psyprobe.running.task import stimulus_axis_of

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes

#: Style of a level's dot, and of the bar at the mean over levels.
_DOT_STYLE: JsonMapping = {"marker": "o", "markersize": 4.5, "linestyle": "none"}
_MEAN_STYLE: JsonMapping = {
    "marker": "|",
    "markeredgewidth": 2,
    "linestyle": "none",
    "color": "black",
}


def plot_prompts(result: xr.Dataset, ax: Axes | None = None) -> Axes:
    """Draw the sensitivity under each prompt relative to the mean of all, one row each.

    Parameters
    ----------
    result : xarray.Dataset
        Result of a questioning run, or of `chat_csf`.
    ax : matplotlib.axes.Axes, optional
        Where to draw; without it, on a new pyplot figure of fitting height.

    Returns
    -------
    matplotlib.axes.Axes
        Sensitivity over the geometric mean of all wordings to the right (logarithmic): dots are
        levels (frequencies), bars the mean of a wording over them. Rows stand by group of wordings,
        and within it from the least to the most sensitive. Arrows are thresholds beyond the
        contrasts that were shown; a cross at the left counts levels without a threshold for another
        reason.

    Raises
    ------
    InputError
        There is no threshold at all.
    """
    (csf,) = chat_csfs([result])
    usable = csf["usable"].values.astype(bool)
    if not usable.any():
        raise InputError(
            "no wording has a threshold at any level; see the variable 'status'"
        )
    ratio = np.where(
        usable, csf["sensitivity"].values / csf["mean_sensitivity"].values, np.nan
    )
    log_ratio = np.log10(ratio)
    # A wording without thresholds stands among those of the mean sensitivity.
    means = np.nan_to_num(pd.DataFrame(log_ratio).mean(axis=1))
    order, names = _order(csf, means)
    ax = ax or axes.new_axes(6.4, 1.6 + 0.21 * len(order))
    reach = max(1.3, 1.25 * 10 ** float(np.nanmax(np.abs(log_ratio))))
    (level,) = levels_of(csf)
    values = csf[level].values
    unit = unit_symbol(csf[level].attrs)
    colours = axes.shades(len(values))
    ax.axvline(1, color="0.7", linewidth=0.8, zorder=0)
    for row, prompt in enumerate(order):
        status = flag_words(csf["status"])[prompt]
        _draw_ratios(ax, row, ratio[prompt], status, colours, reach)
        if usable[prompt].any():
            ax.plot(10 ** means[prompt], row, markersize=11, zorder=4, **_MEAN_STYLE)
        is_missing = ~usable[prompt] & ~np.char.startswith(status, "censored")
        if is_missing.any():
            ax.text(
                1 / reach * 1.1, row, f"× {is_missing.sum()}", va="center", fontsize=7
            )
    axes.log_axis(ax.xaxis, [1 / reach, reach])
    ax.set_ylim(len(order) - 0.3, -0.7)
    labels = [axes.printable(names[prompt]) for prompt in order]
    ax.set_yticks(range(len(order)), labels, fontsize=7)
    ax.tick_params(axis="y", length=0)
    x_label = "Sensitivity / geometric mean over wordings"
    axes.label(ax, x_label, "", axes.title_of(csf), framed=False)
    for value, colour in zip(values, colours, strict=True):
        ax.plot([], [], color=colour, label=axes.with_unit(value, unit), **_DOT_STYLE)
    ax.plot([], [], markersize=9, label="mean", **_MEAN_STYLE)
    ax.legend(
        fontsize="small", loc="center left", bbox_to_anchor=(1, 0.5), framealpha=0.9
    )
    ax.spines["left"].set_visible(False)
    return ax


def _draw_ratios(
    ax: Axes,
    row: int,
    ratio: FloatArray,
    status: StrArray,
    colours: Any,
    reach: float,
) -> None:
    """Draw the sensitivities under one prompt, with arrows to censored thresholds."""
    for index, colour in enumerate(colours):
        if np.isfinite(ratio[index]):
            ax.plot(ratio[index], row, color=colour, **_DOT_STYLE)
        elif status[index] in ("censored_above", "censored_below"):
            is_left = status[index] == "censored_above"
            x = (1 / reach) * 1.03 if is_left else reach / 1.03
            style = {**_DOT_STYLE, "marker": "<" if is_left else ">", "markersize": 5}
            ax.plot(x, row, color=colour, **style)


def plot_yes_map(
    result: xr.Dataset,
    ax: Axes | None = None,
    *,
    prompt: str | None = None,
    curve: str | None = None,
) -> Axes:
    """Draw how often the observer says yes, over level and contrast.

    Parameters
    ----------
    result, ax
        As in `plot_prompts`.
    prompt : str, optional
        Identifier of a wording; by default the answers to all are pooled.
    curve
        As in `plot_csf`.

    Returns
    -------
    matplotlib.axes.Axes
        The level (frequency) to the right, contrast upwards, logarithmic; colour is the share of
        yes. White dots are thresholds (F = 0.5), the dashed black line those of people. A separate
        row at the bottom is the catch trials.

    Raises
    ------
    UnknownNameError
        There is no such wording.
    InputError
        None of its replies says yes or no.
    """
    import matplotlib as mpl
    from matplotlib.colors import Normalize

    (csf,) = chat_csfs([result])
    wordings = csf if prompt is None else csf.isel(prompt=[prompt_index(csf, prompt)])
    contrast = wordings[stimulus_axis_of(csf).name].values
    yes = wordings["yes"].values
    trials = wordings["trials"].values
    if not trials.any():
        raise InputError(
            "no reply to this wording says yes or no; see the variable 'excluded'"
        )
    ax = ax or axes.new_axes()
    (level,) = levels_of(csf)
    values = csf[level].values
    is_log = axes.is_logarithmic(values)
    x_edges = 10 ** _edges(np.log10(values)) if is_log else _edges(values)
    style: JsonObject = {
        "cmap": mpl.colormaps[axes.COLOUR_MAP].with_extremes(bad=axes.BLANK),
        "norm": Normalize(0, 1),
        "rasterized": True,
    }
    bottom = np.inf
    top = 0.0
    for i in np.flatnonzero(trials.any(axis=(0, 2))):
        share = _pool_wordings(contrast[:, i], yes[:, i], trials[:, i])
        y_edges = 10 ** _edges(share.index)
        mesh = ax.pcolormesh(
            x_edges[i : i + 2], y_edges, share.to_numpy()[:, None], **style
        )
        bottom = min(bottom, float(y_edges[0]))
        top = max(top, float(y_edges[-1]))
    lowest = bottom
    catch_trials = wordings["catch_trials"].values.sum()
    if catch_trials:
        lowest = bottom / 1.9
        catch_share = [[wordings["catch_yes"].values.sum() / catch_trials]]
        ax.pcolormesh(x_edges[[0, -1]], [lowest, bottom / 1.25], catch_share, **style)
        x = 10 ** np.log10(x_edges[:2]).mean() if is_log else x_edges[:2].mean()
        ax.annotate(
            "catch trials", (x, lowest * 1.2), fontsize="small", va="center", ha="left"
        )
    _draw_thresholds(ax, wordings, values)
    people = human_curve(csf, curve, x_edges[0], x_edges[-1])
    if people is not None:
        threshold = 1 / people.sensitivity
        inside = threshold <= top
        draw_curve(ax, people.x[inside], threshold[inside], people.name)
    if is_log:
        axes.log_axis(ax.xaxis, x_edges)
    else:
        ax.set_xlim(x_edges[0], x_edges[-1])
    axes.log_axis(ax.yaxis, [lowest, top])
    axes.label(
        ax, axes.level_label(csf, level), delivered_label(csf), axes.title_of(csf)
    )
    ax.legend(fontsize="small", loc="lower right", framealpha=0.9)
    ax.figure.colorbar(mesh, ax=ax, label="Share of yes")
    return ax


def _draw_thresholds(ax: Axes, wordings: xr.Dataset, values: FloatArray) -> None:
    """Draw the geometric mean of the thresholds over prompts."""
    usable = wordings["usable"].astype(bool)
    mean = wordings["log10_threshold"].where(usable).mean("prompt").values
    style: JsonObject = {"color": "white", "markeredgecolor": "black", "marker": "o"}
    style |= {"linestyle": "none", "markersize": 6, "label": "threshold"}
    has_threshold = np.isfinite(mean)
    ax.plot(values[has_threshold], 10 ** mean[has_threshold], **style)


def _order(csf: xr.Dataset, means: FloatArray) -> tuple[list[int], list[str]]:
    """Order prompts by group and then by sensitivity, as indices with their names."""
    groups = csf["group"].values.astype(str)
    names = [str(name) for name in csf["prompt"].values]
    places, group_order = pd.factorize(groups)
    order = np.lexsort((means, places)).tolist()
    if len(group_order) > 1:
        pairs = zip(groups, names, strict=True)
        names = [f"{group}: {name}" if group else name for group, name in pairs]
    return order, names


def _pool_wordings(
    contrast: FloatArray, yes: FloatArray, trials: FloatArray
) -> pd.Series[float]:
    """Compute the share of yes over all prompts by log10 contrast at one level."""
    tested = trials > 0
    # Wordings see the same images, but those whose replies do not count leave means of delivered
    # contrast apart.
    log_contrast = np.round(np.log10(contrast[tested]), 2)
    table = pd.DataFrame({"yes": yes[tested], "trials": trials[tested]})
    sums = table.groupby(log_contrast).sum()
    return sums["yes"] / sums["trials"]


def _edges(centres: ArrayLike) -> FloatArray:
    """Compute cell edges halfway between centres, and as far outside the last ones."""
    c = np.asarray(centres, dtype=np.float64)
    if len(c) == 1:
        return np.array([c[0] - 0.15, c[0] + 0.15])
    middle = (c[1:] + c[:-1]) / 2
    return np.concatenate([[2 * c[0] - middle[0]], middle, [2 * c[-1] - middle[-1]]])
