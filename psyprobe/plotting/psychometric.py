"""Psychometric functions of an observer that was asked in words: what it said, and what was fitted to it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from psyprobe._typing import FloatArray
from psyprobe.analysis.psychometric.sigmoids import psychometric_function
from psyprobe.analysis.responses import levels_of
from psyprobe.analysis.words.csf import chat_csfs
from psyprobe.errors import InputError, unknown_name
from psyprobe.plotting.axes import label, log_axis, new_axes, printable, title_of, with_unit

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes

#: Label of the axis of contrasts.
DELIVERED = r"Delivered contrast ($\sqrt{2}\,$SD/mean)"
#: Width at which a step, of width 0, is drawn.
_STEP = 1e-3


def plot_psychometric(
    result: xr.Dataset,
    ax: Axes | None = None,
    *,
    prompt: str | None = None,
    values: Sequence[float] | None = None,
) -> Axes:
    """Draw the psychometric functions of one wording, one colour a level.

    Parameters
    ----------
    result : xarray.Dataset
        Of a questioning run, or of `chat_csf`.
    ax : matplotlib.axes.Axes, optional
        Where to draw; without it, on a new pyplot figure.
    prompt : str, optional
        Identifier of the wording; without it the first. Answers to several are not pooled: that makes curves too flat.
    values : sequence of float, optional
        Of the level, which to draw, to the nearest (frequencies in cpd); without it all.

    Returns
    -------
    matplotlib.axes.Axes
        Contrast to the right (logarithmic), share of yes upwards. Dots with Wilson intervals are answers, without
        them mean probabilities of yes; the diamond at the left is the catch trials, at contrast 0. Lines are fits, and
        bars across them thresholds with their intervals. Arrows at the edge are thresholds beyond the contrasts shown.

    Raises
    ------
    UnknownNameError
        There is no such wording.
    InputError
        No value is left.
    """
    import matplotlib as mpl

    (csf,) = chat_csfs([result])
    chosen = str(csf["prompt"].values[0]) if prompt is None else prompt
    one = csf.isel(prompt=prompt_place(csf, chosen))
    (level,) = levels_of(csf)
    held, unit = one[level].values, one[level].attrs["units"]
    rows = _rows(level, held, values)
    ax = new_axes() if ax is None else ax
    counted = str(one["method"].values) == "counts"
    contrast = one["contrast"].values
    low, high = float(np.nanmin(contrast)), float(np.nanmax(contrast))
    left, right = low / 2.2, high * 1.25
    # The light end of the map, which cannot be seen on white, is left out.
    colours = mpl.colormaps["viridis"](np.linspace(0, 0.9, len(rows)))
    for colour, i in zip(colours, rows, strict=True):
        _draw(ax, one, int(i), colour, counted, (low / 1.3, right), with_unit(held[i], unit))
    blanks = float(one["catch_trials"])
    if blanks:
        share = float(one["catch_yes"]) / blanks
        error = _wilson(np.array([float(one["catch_yes"])]), np.array([blanks])) if counted else None
        ax.errorbar(
            [left * 1.25], [share], yerr=error, color="black", marker="D", markersize=5, linestyle="none", capsize=2,
            label="catch trials", zorder=4, clip_on=False,
        )  # fmt: skip
    log_axis(ax.xaxis, left, right)
    ax.set_ylim(-0.03, 1.03)
    said = "correct" if csf.attrs.get("probe") == "two_interval" else "yes"
    title = f"{title_of(csf)}\n{printable(chosen)}"
    label(ax, DELIVERED, f"Share of {said}" if counted else f"P({said})", title, framed=False)
    ax.legend(fontsize="small", framealpha=0.9, loc="center left", bbox_to_anchor=(1, 0.5))
    return ax


def prompt_place(csf: xr.Dataset, prompt: str) -> int:
    """Where a wording is among those that were asked."""
    names = [str(name) for name in csf["prompt"].values]
    if prompt not in names:
        raise unknown_name("prompt", prompt, names)
    return names.index(prompt)


def _rows(level: str, held: FloatArray, values: Sequence[float] | None) -> npt.NDArray[np.intp]:
    if values is None:
        return np.arange(len(held))
    if not len(values):
        raise InputError(f"there is no {level} to draw; name one of {', '.join(f'{value:g}' for value in held)}")
    scale = np.log if min(*held, *values) > 0 else np.asarray
    return np.unique([int(np.argmin(np.abs(scale(held) - scale(value)))) for value in values])


def _draw(
    ax: Axes, one: xr.Dataset, i: int, colour: object, counted: bool, span: tuple[float, float], name: str
) -> None:
    contrast, yes, trials = (one[name].values[i] for name in ("contrast", "yes", "trials"))
    use = trials > 0
    error = _wilson(yes[use], trials[use]) if counted else None
    ax.errorbar(
        contrast[use], yes[use] / trials[use], yerr=error, color=colour, marker="o", markersize=4, linestyle="none",
        elinewidth=0.8, label=name, zorder=3,
    )  # fmt: skip
    t, w, guess, lapse = (float(one[name].values[i]) for name in ("threshold", "width", "guess", "lapse"))
    status = str(one["status"].values[i])
    fit = json.loads(str(one.attrs["fit"]))
    if np.isfinite(t) and np.isfinite(w) and fit["axis"] == "log":
        x = np.geomspace(*span, 201)
        function = fit["function"] if counted else "logistic"
        share = psychometric_function(np.log10(x), t, max(w, _STEP), guess, lapse, function=function)
        ax.plot(x, share, color=colour, linewidth=1.4)
        ends = np.array([float(one[f"threshold_{end}"].values[i]) for end in ("low", "high")])
        ends = np.where(np.isnan(ends), t, ends).clip(np.log10(span[0]), np.log10(span[1]))
        height = guess + (1 - guess - lapse) / 2
        ax.plot(10**ends, [height, height], color=colour, linewidth=3, alpha=0.6, solid_capstyle="butt")
        ax.plot([10**t], [height], marker="|", markersize=9, color=colour)
    elif status in ("censored_above", "censored_below"):
        end, start = (span[1], span[1] / 1.4) if status == "censored_above" else (span[0], span[0] * 1.4)
        head = {"arrowstyle": "-|>", "color": colour, "linewidth": 1.4}
        # Side by side where several thresholds lie beyond the same edge.
        ax.annotate("", xy=(end, 0.5 + 0.02 * i), xytext=(start, 0.5 + 0.02 * i), arrowprops=head)


def _wilson(yes: FloatArray, trials: FloatArray) -> FloatArray:
    """How far the 95 % interval of a share reaches below and above it (Wilson 1927)."""
    z = 1.959963984540054
    share = yes / trials
    middle = (share + z * z / (2 * trials)) / (1 + z * z / trials)
    half = z / (1 + z * z / trials) * np.sqrt(share * (1 - share) / trials + z * z / (4 * trials**2))
    ends: FloatArray = np.stack([share - (middle - half), middle + half - share]).clip(0)
    return ends
