"""Figures of one's own trials: psychometric functions of a fit, and from a file to a contrast
sensitivity function.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from psyprobe._typing import FloatArray
from psyprobe.analysis.psychometric.fit_result import PsychometricFit
from psyprobe.analysis.psychometric.trials import fit_trials, read_trials
from psyprobe.errors import InputError
from psyprobe.human.castle import castle_csf
from psyprobe.human.points import Conditions, figure_points
from psyprobe.plotting import axes
from psyprobe.plotting.people import Human, draw_people, drawn_of, people_handles, people_title

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LABELS = {
    "frequency": "Spatial frequency (cpd)",
    "luminance": "Luminance (cd/m²)",
    "area": "Area (deg²)",
}
_STEPS = ("separable", "quasi_separable")
#: Where arrows end that say that a threshold lies beyond, over the bound.
_BEYOND = 1.6


def wilson(yes: FloatArray, trials: FloatArray) -> FloatArray:
    """How far the 95 % interval of a share reaches below and above it (Wilson 1927)."""
    z = 1.959963984540054
    share = yes / trials
    middle = (share + z * z / (2 * trials)) / (1 + z * z / trials)
    half = (
        z / (1 + z * z / trials) * np.sqrt(share * (1 - share) / trials + z * z / (4 * trials**2))
    )
    return np.asarray(np.stack([share - (middle - half), middle + half - share]).clip(0))


def draw_fit(
    fit: PsychometricFit,
    ax: Axes | None,
    answers: Sequence[npt.ArrayLike] | None,
    names: Sequence[float | str] | None,
) -> Axes:
    """The curves of a fit: see `psyprobe.plotting.plot_psychometric`."""
    import matplotlib as mpl

    threshold = np.atleast_1d(fit.log10_threshold).ravel()
    width = np.atleast_1d(fit.log10_width).ravel()
    if names is not None and len(names) != len(threshold):
        raise InputError(
            f"{len(names)} names do not fit {len(threshold)} curves; give one for each"
        )
    counts = [np.atleast_2d(np.asarray(each, dtype=np.float64)) for each in answers or ()]
    if counts:
        contrast, yes, trials = (
            array.reshape(-1, array.shape[-1]) for array in np.broadcast_arrays(*counts)
        )
        shown = contrast[(trials > 0) & (contrast > 0)]
        low = float(shown.min()) / 1.3
        high = float(shown.max()) * 1.3
    else:
        known = np.isfinite(threshold)
        if not known.any():
            raise InputError(
                "no curve has a threshold, and no answers are given; there is nothing to draw"
            )
        reach = np.maximum(np.nan_to_num(width), 0.2)
        low = float(10 ** (threshold - reach)[known].min())
        high = float(10 ** (threshold + reach)[known].max())
    ax = axes.new_axes() if ax is None else ax
    x = np.geomspace(low, high, 301)
    curves = np.atleast_2d(fit.predict(x)).reshape(len(threshold), -1)
    colours = mpl.colormaps["viridis"](np.linspace(0, 0.9, len(threshold)))
    fields = ("status", "log10_threshold_low", "log10_threshold_high", "guess", "lapse")
    status, least, most, guess, lapse = (
        np.atleast_1d(getattr(fit, name)).ravel() for name in fields
    )
    for i, colour in enumerate(colours):
        label = "" if names is None else names[i] if isinstance(names[i], str) else f"{names[i]:g}"
        if counts:
            use = trials[i] > 0
            error = wilson(yes[i][use], trials[i][use])
            dots: dict[str, Any] = {
                "linestyle": "none",
                "marker": "o",
                "markersize": 4,
                "elinewidth": 0.8,
            }
            ax.errorbar(
                contrast[i][use], yes[i][use] / trials[i][use], yerr=error, color=colour, **dots
            )
        if not np.isfinite(threshold[i]):
            continue
        dashed = "--" if status[i] in _STEPS else "-"
        told = f"{label} (step)".strip() if dashed == "--" else label
        ax.plot(x, curves[i], color=colour, linestyle=dashed, label=told or None)
        height = guess[i] + (1 - guess[i] - lapse[i]) / 2
        ends = 10 ** np.clip([least[i], most[i]], np.log10(low), np.log10(high))
        ax.plot(
            ends,
            [height, height],
            color=axes.paler(colour[:3], 0.6),
            linewidth=3,
            solid_capstyle="butt",
        )
        ax.plot([10 ** threshold[i]], [height], marker="|", markersize=9, color=colour)
    axes.log_axis(ax.xaxis, low, high)
    ax.set_ylim(-0.03, 1.03)
    axes.label(ax, "Contrast", "Share of yes or right answers", "", framed=False)
    axes.legend_below(ax, ax.get_legend_handles_labels()[0], "")
    return ax


def plot_trials(
    path: str | Path,
    ax: Axes | None = None,
    *,
    luminance: float | None = None,
    area: float | None = None,
    frequency: float | None = None,
    direction: str = "achromatic",
    human: Human = "both",
    title: str = "",
    **options: Any,
) -> Axes:
    """Draw the contrast sensitivity of a file of trials, as of a staircase, over that of people.

    Parameters
    ----------
    path : str or Path
        One row a trial, as `psyprobe.analysis.psychometric.read_trials` takes it.
    ax : matplotlib.axes.Axes, optional
        Where to draw; without it, on a new pyplot figure.
    luminance, area, frequency : float, optional
        What was the same in all trials: cd/m², deg² (pi sigma² of a Gabor) and cpd.
    direction : {"achromatic", "red_green", "yellow_violet"}, optional
        Colour direction; contrast is then RMS cone contrast.
    human : {"both", "model", "measured", "none"}, optional
        castleCSF dashed in black, measured thresholds under these conditions or moved to them, or
        both.
    title : str, optional
        Of the axes.
    **options
        As for `psyprobe.analysis.psychometric.fit_trials`, such as ``guess=0.25`` of four
        alternatives.

    Returns
    -------
    matplotlib.axes.Axes
        The level to the right, sensitivity upwards. Dots are thresholds with their intervals,
        hollow where a step between two contrasts is all that the answers tell; arrows say that the
        threshold lies beyond the contrasts shown.

    Raises
    ------
    InputError
        The file is none of trials, or a condition is missing.
    """
    trials = read_trials(path)
    given: Mapping[str, float | None] = {
        "frequency": frequency,
        "luminance": luminance,
        "area": area,
    }
    for name, value in given.items():
        if (value is None) != (name == trials.level):
            told = "stands in the file" if name == trials.level else "is the same in all trials"
            raise InputError(
                f"{name} {told}; {'leave it out' if name == trials.level else f'give {name}='}"
            )
    fit = fit_trials(trials, **options)
    ax = axes.new_axes() if ax is None else ax
    x = trials.values
    span = float(x[0]) / 1.25, float(x[-1]) * 1.25
    shown = Conditions(trials.level, span, direction, **given)  # type: ignore[arg-type]
    model, measured = drawn_of(human)
    heights = []
    if model:
        at = np.geomspace(*span, 121)
        asked: dict[str, Any] = {**given, trials.level: at}
        seen = castle_csf(direction=direction, **asked)
        ax.plot(
            at,
            seen,
            color="black",
            linestyle="--",
            linewidth=axes.scaled(1.6),
            label="Human (castleCSF)",
        )
        heights.append(seen)
    points = figure_points(shown) if measured else ()
    draw_people(ax, points)
    heights += [point.sensitivity for point in points]
    heights.append(_draw_thresholds(ax, x, fit))
    axes.level_axis(ax.xaxis, x, margin=1.25)
    drawn = np.concatenate([height[np.isfinite(height)] for height in heights])
    axes.log_axis(ax.yaxis, float(drawn.min()) / 2, float(drawn.max()) * 2)
    axes.label(ax, _LABELS[trials.level], "Sensitivity (1 / contrast)", title, framed=False)
    beside = [(shown, points)] if points else []
    handles = [*ax.get_legend_handles_labels()[0], *people_handles(beside, surface=True)]
    axes.legend_below(ax, handles, people_title(beside) if beside else "")
    return ax


def _draw_thresholds(ax: Axes, x: Any, fit: PsychometricFit) -> Any:
    """Sensitivities with intervals, and bounds where there are none; what the axis must hold."""
    colour = axes.COLOURS[0]
    known = np.isfinite(fit.log10_threshold)
    step = known & np.isin(fit.status, _STEPS)
    mean = fit.sensitivity
    low = 10.0**-fit.log10_threshold_high
    high = 10.0**-fit.log10_threshold_low
    reach = np.stack([mean - np.maximum(low, mean * 1e-2), np.minimum(high, mean * 1e2) - mean])
    ax.plot(x[known], mean[known], color=colour, linewidth=axes.scaled(1.4), zorder=3.6)
    for chosen, fill, label in (
        (known & ~step, colour, "thresholds"),
        (step, "white", "steps between two contrasts"),
    ):
        if chosen.any():
            style: dict[str, Any] = {
                "color": colour,
                "marker": "o",
                "linestyle": "none",
                "capsize": 2,
                "zorder": 4,
            }
            style |= {"markerfacecolor": fill, "markersize": axes.scaled(6), "label": label}
            ax.errorbar(x[chosen], mean[chosen], yerr=reach[:, chosen], **style)
    bounds = []
    for i in np.flatnonzero(~known):
        above = fit.status[i] == "censored_above"
        bound = 10.0 ** -(fit.log10_threshold_low[i] if above else fit.log10_threshold_high[i])
        if np.isfinite(bound) and bound > 0:
            end = bound / _BEYOND if above else bound * _BEYOND
            ax.annotate(
                "",
                xy=(x[i], end),
                xytext=(x[i], bound),
                arrowprops={"arrowstyle": "-|>", "color": colour},
            )
            bounds += [bound, end]
    return np.array([*mean[known], *bounds])
