"""How far the sensitivity of an observer that is asked in words depends on the wording, and where it says yes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from psyprobe._typing import FloatArray
from psyprobe.analysis.responses import levels_of
from psyprobe.analysis.words.comparison import human_line
from psyprobe.analysis.words.csf import chat_csfs
from psyprobe.errors import InputError
from psyprobe.plotting.axes import (
    BLANK,
    COLOUR_MAP,
    is_logarithmic,
    label,
    level_label,
    log_axis,
    new_axes,
    printable,
    title_of,
    with_unit,
)
from psyprobe.plotting.psychometric import DELIVERED, prompt_place

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes


def plot_prompts(result: xr.Dataset, ax: Axes | None = None) -> Axes:
    """Draw the sensitivity under each wording over that of all, one row a wording.

    Parameters
    ----------
    result : xarray.Dataset
        Of a questioning run, or of `chat_csf`.
    ax : matplotlib.axes.Axes, optional
        Where to draw; without it, on a new pyplot figure of fitting height.

    Returns
    -------
    matplotlib.axes.Axes
        Sensitivity over the geometric mean of all wordings to the right (logarithmic): dots are levels (frequencies),
        bars the mean of a wording over them. Rows stand by kind of wording, and within it from the least to the most
        sensitive. Arrows are thresholds beyond the contrasts that were shown; a cross at the left counts what has no
        threshold for another reason.

    Raises
    ------
    InputError
        There is no threshold at all.
    """
    import matplotlib as mpl

    (csf,) = chat_csfs([result])
    usable, status = csf["usable"].values.astype(bool), csf["status"].values.astype(str)
    if not usable.any():
        raise InputError("no wording has a threshold at any level; see the variable 'status'")
    ratio = np.where(usable, csf["sensitivity"].values / csf["mean_sensitivity"].values, np.nan)
    log_ratio = np.log10(ratio)
    means = np.where(usable, log_ratio, 0.0).sum(axis=1) / np.maximum(usable.sum(axis=1), 1)
    order, names = _order(csf, means)
    ax = new_axes(6.4, 1.6 + 0.21 * len(order)) if ax is None else ax
    reach = max(1.3, 1.25 * 10 ** float(np.nanmax(np.abs(log_ratio))))
    (level,) = levels_of(csf)
    values, unit = csf[level].values, csf[level].attrs["units"]
    colours = mpl.colormaps["viridis"](np.linspace(0, 0.9, len(values)))
    ax.axvline(1, color="0.7", linewidth=0.8, zorder=0)
    for row, p in enumerate(order):
        for f, colour in enumerate(colours):
            if usable[p, f]:
                ax.plot(ratio[p, f], row, marker="o", markersize=4.5, color=colour, linestyle="none", alpha=0.9)
            elif status[p, f] in ("censored_above", "censored_below"):
                left = status[p, f] == "censored_above"
                edge = (1 / reach) * 1.03 if left else reach / 1.03
                ax.plot(edge, row, marker="<" if left else ">", markersize=5, color=colour, linestyle="none")
        if usable[p].any():
            ax.plot(10 ** means[p], row, marker="|", markersize=11, markeredgewidth=2, color="black", zorder=4)
        without = int((~usable[p] & ~np.char.startswith(status[p], "censored")).sum())
        if without:
            ax.text(1 / reach * 1.1, row, f"× {without}", va="center", fontsize=7)
    log_axis(ax.xaxis, 1 / reach, reach)
    ax.set_ylim(len(order) - 0.3, -0.7)
    ax.set_yticks(range(len(order)), [printable(names[p]) for p in order], fontsize=7)
    ax.tick_params(axis="y", length=0)
    label(ax, "Sensitivity / geometric mean over wordings", "", title_of(csf), framed=False)
    for value, colour in zip(values, colours, strict=True):
        ax.plot([], [], marker="o", markersize=4.5, linestyle="none", color=colour, label=with_unit(value, unit))
    ax.plot([], [], marker="|", markersize=9, markeredgewidth=2, linestyle="none", color="black", label="mean")
    ax.legend(fontsize="small", loc="center left", bbox_to_anchor=(1, 0.5), framealpha=0.9)
    ax.spines["left"].set_visible(False)
    return ax


def plot_yes_map(
    result: xr.Dataset,
    ax: Axes | None = None,
    *,
    prompt: str | None = None,
    human: str | None = None,
) -> Axes:
    """Draw how often the observer says yes, over level and contrast.

    Parameters
    ----------
    result, ax
        As in `plot_prompts`.
    prompt : str, optional
        Identifier of a wording; without it all together, each level being that of all.
    human
        As in `plot_csf`.

    Returns
    -------
    matplotlib.axes.Axes
        The level (frequency) to the right, contrast upwards, logarithmic; colour is the share of yes. White dots are
        thresholds (F = 0.5), the dashed black line those of people. A separate row at the bottom is the catch trials.

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
    rows = slice(None) if prompt is None else [prompt_place(csf, prompt)]
    ax = new_axes() if ax is None else ax
    (level,) = levels_of(csf)
    values = csf[level].values
    log = is_logarithmic(values)
    edges = 10 ** _edges(np.log10(values)) if log else _edges(values)
    colours = mpl.colormaps[COLOUR_MAP].with_extremes(bad=BLANK)
    style: dict[str, Any] = {"cmap": colours, "norm": Normalize(0, 1), "rasterized": True}
    contrast, yes, trials = (csf[name].values[rows] for name in ("contrast", "yes", "trials"))
    bottom, top = np.inf, 0.0
    if not trials.any():
        raise InputError("no reply to this wording says yes or no; see the variable 'excluded'")
    for f in np.flatnonzero(trials.any(axis=(0, 2))):
        levels, share = _column(contrast[:, f], yes[:, f], trials[:, f])
        sides = 10 ** _edges(np.log10(levels))
        drawn = ax.pcolormesh(edges[f : f + 2], sides, share[:, None], **style)
        bottom, top = min(bottom, float(sides[0])), max(top, float(sides[-1]))
    blanks = csf["catch_trials"].values[rows].sum()
    lowest = bottom
    if blanks:
        lowest = bottom / 1.9
        share = np.full((1, 1), csf["catch_yes"].values[rows].sum() / blanks)
        ax.pcolormesh(edges[[0, -1]], [lowest, bottom / 1.25], share, **style)
        middle = 10 ** np.log10(edges[:2]).mean() if log else edges[:2].mean()
        ax.annotate("catch trials", (middle, lowest * 1.2), fontsize="small", va="center", ha="left")
    usable = csf["usable"].values[rows].astype(bool)
    threshold = csf["threshold"].values[rows]
    mean = np.where(usable, threshold, 0.0).sum(axis=0) / np.maximum(usable.sum(axis=0), 1)
    known = usable.any(axis=0)
    ax.plot(
        values[known], 10 ** mean[known], marker="o", color="white", markeredgecolor="black", markersize=6,
        linestyle="none", label="threshold",
    )  # fmt: skip
    people = human_line(csf, human, edges[0], edges[-1])
    if people is not None:
        name, x, curve = people
        inside = np.isfinite(curve) & (curve > 0)
        inside[inside] &= 1 / curve[inside] <= top
        ax.plot(x[inside], 1 / curve[inside], color="black", linestyle="--", linewidth=1.4, label=name)
    if log:
        log_axis(ax.xaxis, edges[0], edges[-1])
    else:
        ax.set_xlim(edges[0], edges[-1])
    log_axis(ax.yaxis, lowest, top)
    label(ax, level_label(csf, level), DELIVERED, title_of(csf))
    ax.legend(fontsize="small", loc="lower right", framealpha=0.9)
    ax.figure.colorbar(drawn, ax=ax, label="Share of yes")
    return ax


def _order(csf: xr.Dataset, means: FloatArray) -> tuple[list[int], list[str]]:
    """Wordings by kind and then by sensitivity, and what they are called."""
    groups = csf["group"].values.astype(str).tolist()
    first = {group: i for i, group in enumerate(dict.fromkeys(groups))}
    ids = [str(name) for name in csf["prompt"].values]
    names = [f"{group}: {name}" if group and len(first) > 1 else name for group, name in zip(groups, ids, strict=True)]
    return sorted(range(len(ids)), key=lambda p: (first[groups[p]], means[p])), names


def _column(contrast: FloatArray, yes: FloatArray, trials: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Contrasts of one level, those of all wordings together, and the share of yes at each."""
    use = trials > 0
    # Wordings see the same images, but those whose replies do not count leave means of delivered contrast apart.
    rounded = np.round(np.log10(contrast[use]), 2)
    levels, inverse = np.unique(rounded, return_inverse=True)
    said, asked = np.bincount(inverse, weights=yes[use]), np.bincount(inverse, weights=trials[use])
    return 10.0**levels, said / asked


def _edges(centres: npt.ArrayLike) -> FloatArray:
    """Edges halfway between centres, and as far outside the last ones."""
    c = np.asarray(centres, dtype=np.float64)
    if len(c) == 1:
        return np.array([c[0] - 0.15, c[0] + 0.15])
    middle = (c[1:] + c[:-1]) / 2
    return np.concatenate([[2 * c[0] - middle[0]], middle, [2 * c[-1] - middle[-1]]])
