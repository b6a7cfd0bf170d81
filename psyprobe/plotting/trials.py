"""Draw the user's trials: psychometric functions of a fit, and contrast sensitivity from a file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from psyprobe._typing import FloatArray, Option
from psyprobe.analysis.psychometric.fit_result import PsychometricFit
from psyprobe.analysis.psychometric.trials import fit_trials, read_trials
from psyprobe.analysis.words.fit import STEPS
from psyprobe.errors import InputError
from psyprobe.files.json_types import JsonMapping, JsonObject
from psyprobe.human.castle import castle_csf
from psyprobe.human.points import Conditions, Level
from psyprobe.plotting import axes
from psyprobe.plotting.people import (
    Human,
    HumanChoice,
    draw_curve,
    draw_people,
    people_legend,
    points_under,
    read_choice,
)

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes

_LABELS = {
    "frequency": "Spatial frequency (cpd)",
    "luminance": "Luminance (cd/m²)",
    "area": "Area (deg²)",
}
#: Style of answers.
DOTS: JsonMapping = {"marker": "o", "markersize": 4, "elinewidth": 0.8}
#: Length of arrows from a bound towards a threshold beyond it, as a factor.
_ARROW = 1.6


def wilson(yes: FloatArray, trials: FloatArray) -> FloatArray:
    """Compute how far Wilson's 95 % interval reaches below and above a proportion."""
    z = 1.959963984540054
    proportion = yes / trials
    shrinkage = 1 + z * z / trials
    middle = (proportion + z * z / (2 * trials)) / shrinkage
    variance = proportion * (1 - proportion) / trials + z * z / (4 * trials**2)
    half = z / shrinkage * np.sqrt(variance)
    reach = np.stack([proportion - (middle - half), middle + half - proportion])
    return reach.clip(0)


def draw_fit(
    fit: PsychometricFit,
    ax: Axes | None,
    answers: Sequence[ArrayLike] | None,
    names: Sequence[float | str] | None,
) -> Axes:
    """Draw the curves of a psychometric fit, with answers if given."""
    curves = np.atleast_1d(fit.log10_threshold).size
    if names is not None and len(names) != curves:
        raise InputError(
            f"{len(names)} names do not fit {curves} curves; give one for each"
        )
    # Contrast, yes and trials, shape (curves, levels).
    counts = np.empty((3, 0, 0))
    if answers is not None and len(answers):
        counts = np.stack(np.broadcast_arrays(*map(np.atleast_2d, answers))).astype(
            float
        )
        counts = counts.reshape(3, -1, counts.shape[-1])
    low, high = (
        _contrast_range(counts[0], counts[2]) if counts.size else _fit_range(fit)
    )
    ax = ax or axes.new_axes()
    x = np.geomspace(low, high, 301)
    probability = np.atleast_2d(fit.predict(x)).reshape(curves, -1)
    for i, colour in enumerate(axes.shades(curves)):
        name = "" if names is None else names[i]
        label = name if isinstance(name, str) else f"{name:g}"
        if counts.size:
            draw_shares(ax, *counts[:, i], color=colour, **DOTS)
        _draw_curve(ax, fit, i, x, probability[i], label, colour)
    axes.log_axis(ax.xaxis, [low, high])
    ax.set_ylim(-0.03, 1.03)
    axes.label(ax, "Contrast", "Share of yes or right answers", "", framed=False)
    axes.legend_below(ax, ax.get_legend_handles_labels()[0], "")
    return ax


def _contrast_range(contrast: FloatArray, trials: FloatArray) -> tuple[float, float]:
    """Compute the range of contrasts with trials, widened by a factor of 1.3."""
    tested = contrast[(trials > 0) & (contrast > 0)]
    return float(tested.min()) / 1.3, float(tested.max()) * 1.3


def _fit_range(fit: PsychometricFit) -> tuple[float, float]:
    """Find the range of contrasts that holds all curves with a threshold."""
    threshold = np.atleast_1d(fit.log10_threshold).ravel()
    width = np.atleast_1d(fit.log10_width).ravel()
    fitted = np.isfinite(threshold)
    if not fitted.any():
        raise InputError(
            "no curve has a threshold, and no answers are given; there is nothing to draw"
        )
    reach = np.maximum(np.nan_to_num(width), 0.2)
    low = 10 ** (threshold - reach)[fitted].min()
    high = 10 ** (threshold + reach)[fitted].max()
    return float(low), float(high)


def draw_shares(
    ax: Axes,
    contrast: FloatArray,
    yes: FloatArray,
    trials: FloatArray,
    counted: bool = True,
    **style: Any,
) -> None:
    """Draw shares of yes at the tested contrasts, with intervals if they are counts."""
    tested = trials > 0
    contrast, yes, trials = (values[tested] for values in (contrast, yes, trials))
    interval = wilson(yes, trials) if counted else None
    ax.errorbar(contrast, yes / trials, yerr=interval, linestyle="none", **style)


def draw_threshold(
    ax: Axes,
    log10_interval: FloatArray,
    height: float,
    span: tuple[float, float],
    colour: Any,
) -> None:
    """Draw a threshold with its interval, as far as the axis reaches."""
    low, threshold, high = log10_interval
    ends = 10 ** np.clip([low, high], *np.log10(span))
    pale = axes.paler(colour, 0.6)
    ax.plot(ends, [height, height], color=pale, linewidth=3, solid_capstyle="butt")
    ax.plot([10**threshold], [height], marker="|", markersize=9, color=colour)


def _draw_curve(
    ax: Axes,
    fit: PsychometricFit,
    curve: int,
    x: FloatArray,
    probability: FloatArray,
    label: str,
    colour: Any,
) -> None:
    """Draw a psychometric function with its threshold and interval; nothing without a threshold."""
    ends = (fit.log10_threshold_low, fit.log10_threshold, fit.log10_threshold_high)
    interval = np.array([np.ravel(end)[curve] for end in ends])
    if not np.isfinite(interval[1]):
        return
    guess = np.ravel(fit.guess)[curve]
    lapse = np.ravel(fit.lapse)[curve]
    linestyle = "-"
    if np.ravel(fit.status)[curve] in STEPS:
        linestyle = "--"
        label = f"{label} (step)".strip()
    ax.plot(x, probability, color=colour, linestyle=linestyle, label=label or None)
    height = guess + (1 - guess - lapse) / 2
    draw_threshold(ax, interval, height, (x[0], x[-1]), colour)


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
    columns: Mapping[str, str] | None = None,
    by: str | Sequence[str] = (),
    where: Mapping[str, object] | None = None,
    width: float | None = None,
    **options: Option,
) -> Axes:
    """Draw the contrast sensitivity measured by a file of trials over the human CSF.

    Parameters
    ----------
    path : str or Path
        Table with one row a trial, see `psyprobe.analysis.psychometric.read_trials`.
    ax : matplotlib.axes.Axes, optional
        Where to draw; without it, on a new pyplot figure.
    luminance, area, frequency : float, optional
        Conditions that were the same in all trials: cd/m², deg² (pi sigma² of a Gabor) and cpd.
    direction : {"achromatic", "red_green", "yellow_violet"}, optional
        Colour direction; contrast is then RMS cone contrast.
    human : {"both", "model", "measured", "none"}, optional
        castleCSF dashed in black, measured thresholds under these conditions or moved to them, or
        both.
    title : str, optional
        Title of the axes.
    columns, by, where : optional
        As for `psyprobe.analysis.psychometric.read_trials`; each group of `by` has a colour.
    width : float, optional
        Of a new figure in mm, with type as journals print it: 85 for one column, 178 for two.
    **options
        As for `psyprobe.analysis.psychometric.fit_trials`, such as ``guess=0.25`` of four
        alternatives.

    Returns
    -------
    matplotlib.axes.Axes
        The level to the right, sensitivity upwards. Dots are thresholds with their intervals,
        hollow where answers tell no more than a step between two contrasts; arrows mean that the
        threshold lies beyond the tested contrasts.

    Raises
    ------
    InputError
        The file holds no trials, their level is another one, or a condition is missing.
    """
    axes.check_new(width, ax)
    trials = read_trials(path, columns=columns, by=by, where=where)
    levels: JsonObject = {"frequency": frequency, "luminance": luminance, "area": area}
    (level,) = json.loads(trials.attrs["levels"])
    if level not in levels or trials.attrs["axis"] != "contrast":
        raise InputError(
            f"{path} has trials over {level} and {trials.attrs['axis']}; give those over "
            f"{', '.join(levels)} and contrast, or draw fit_trials with plot_psychometric"
        )
    _check_levels(level, levels)
    fit = fit_trials(trials, **options)
    with axes.typeset(width):
        ax = ax or axes.new_axes()
        _draw_trials(ax, trials, level, fit, levels, direction, read_choice(human))
        axes.label(
            ax, _LABELS[level], "Sensitivity (1 / contrast)", title, framed=False
        )
        axes.fit_width(ax, width)
    return ax


def _draw_trials(
    ax: Axes,
    trials: xr.Dataset,
    level: Level,
    fit: PsychometricFit,
    levels: JsonMapping,
    direction: str,
    choice: HumanChoice,
) -> None:
    """Draw people, the thresholds of each group of trials, and axes that hold both."""
    x = trials[level].to_numpy()
    low = float(x[0]) / 1.25
    high = float(x[-1]) * 1.25
    heights = []
    group = None
    if choice.model:
        curve_x = np.geomspace(low, high, 121)
        sensitivity = castle_csf(direction=direction, **{**levels, level: curve_x})
        name = "Human (castleCSF)"
        draw_curve(ax, curve_x, sensitivity, name, linewidth=axes.scaled(1.6))
        heights.append(sensitivity)
    if choice.measured:
        group = points_under(Conditions(level, (low, high), direction, **levels))
    if group is not None:
        draw_people(ax, group.points)
        heights += [data_set.sensitivity for data_set in group.points]
    groups = list(np.ndindex(fit.status.shape[:-1]))
    for group_index, colour in zip(groups, _colours(len(groups)), strict=True):
        name = ", ".join(
            axes.printable(str(trials[dim].values[place]))
            for dim, place in zip(trials["trials"].dims, group_index, strict=False)
        )
        heights.append(_draw_thresholds(ax, x, fit, group_index, name, colour))
    axes.level_axis(ax.xaxis, x, margin=1.25)
    finite = np.concatenate([height[np.isfinite(height)] for height in heights])
    axes.log_axis(ax.yaxis, finite, 2)
    people_legend(ax, group)


def _colours(count: int) -> Sequence[Any]:
    """Pick a colour for each group of trials."""
    return axes.COLOURS[:count] if count <= len(axes.COLOURS) else axes.shades(count)


def _check_levels(file_level: str, levels: Mapping[str, float | None]) -> None:
    """Refuse to go on unless all levels but the file's own have a value."""
    for name, value in levels.items():
        if name == file_level and value is not None:
            raise InputError(f"{name} stands in the file; leave it out")
        if name != file_level and value is None:
            raise InputError(f"{name} is the same in all trials; give {name}=")


def _draw_thresholds(
    ax: Axes,
    x: FloatArray,
    fit: PsychometricFit,
    group: tuple[int, ...],
    name: str,
    colour: Any,
) -> FloatArray:
    """Draw a group's sensitivities with intervals, or arrows, and list heights to be held."""
    status = fit.status[group]
    mean = fit.sensitivity[group]
    fitted = np.isfinite(mean)
    step = fitted & np.isin(status, STEPS)
    low = 10.0 ** -fit.log10_threshold_high[group]
    high = 10.0 ** -fit.log10_threshold_low[group]
    reach = np.stack(
        [mean - np.maximum(low, mean * 1e-2), np.minimum(high, mean * 1e2) - mean]
    )
    ax.plot(
        x[fitted], mean[fitted], color=colour, linewidth=axes.scaled(1.4), zorder=3.6
    )
    step_label = f"{name}: steps" if name else "steps between two contrasts"
    for selection, fill, label in (
        (fitted & ~step, colour, name or "thresholds"),
        (step, "white", step_label),
    ):
        if selection.any():
            ax.errorbar(
                x[selection],
                mean[selection],
                yerr=reach[:, selection],
                color=colour,
                linestyle="none",
                marker="o",
                markersize=axes.scaled(6),
                markerfacecolor=fill,
                capsize=2,
                zorder=4,
                label=label,
            )
    above = status == "censored_above"
    bound = np.where(above, high, low)
    end = np.where(above, bound / _ARROW, bound * _ARROW)
    bounds: list[float] = []
    for i in np.flatnonzero(~fitted & np.isfinite(bound) & (bound > 0)):
        axes.draw_arrow(ax, (x[i], bound[i]), (x[i], end[i]), colour)
        bounds += [bound[i], end[i]]
    return np.array([*mean[fitted], *bounds])
