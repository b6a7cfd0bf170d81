"""Draw the psychometric functions of observers that answer in words."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from psyprobe._typing import FloatArray
from psyprobe.analysis.psychometric.fit_result import PsychometricFit
from psyprobe.analysis.psychometric.sigmoids import psychometric_function
from psyprobe.analysis.responses import levels_of
from psyprobe.analysis.words.csf import chat_csfs
from psyprobe.analysis.words.fit import STEPS
from psyprobe.errors import InputError, unknown_name
from psyprobe.files.flags import flag_words
from psyprobe.files.json_types import JsonObject
from psyprobe.files.units import unit_symbol
from psyprobe.plotting import axes
from psyprobe.plotting.trials import DOTS, draw_fit, draw_shares, draw_threshold
from psyprobe.plotting.words import delivered_label
from psyprobe.running.task import stimulus_axis_of, task_of

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes

#: Width at which a step, of width 0, is drawn.
_STEP_WIDTH = 1e-3


def plot_psychometric(
    result: xr.Dataset | PsychometricFit,
    ax: Axes | None = None,
    *,
    prompt: str | None = None,
    values: Sequence[float] | None = None,
    answers: Sequence[npt.ArrayLike] | None = None,
) -> Axes:
    """Draw the psychometric functions of one prompt or of a fit, one colour a level.

    Parameters
    ----------
    result : xarray.Dataset or PsychometricFit
        Result of a questioning run, or of `chat_csf`; or a fit of one curve or of one for each
        level.
    ax : matplotlib.axes.Axes, optional
        Where to draw; without it, on a new pyplot figure.
    prompt : str, optional
        Identifier of the wording; by default the first. Answers to several are not pooled, since
        that makes curves too flat.
    values : sequence of float, optional
        Values of the level to draw, to the nearest (frequencies in cpd); by default all. For a fit,
        the names of the curves.
    answers : (contrast, yes, trials), optional
        For a fit: the data that were fitted, drawn as dots.

    Returns
    -------
    matplotlib.axes.Axes
        Contrast to the right (logarithmic), share of yes upwards. Dots with Wilson intervals are
        answers, without them mean probabilities of yes; the diamond at the left is the catch
        trials, at contrast 0. Lines are fits, and bars across them thresholds with their intervals;
        dashed lines are steps between two levels, whose slope is unknown. Arrows at the edge are
        thresholds beyond the contrasts shown.

    Raises
    ------
    UnknownNameError
        There is no such wording.
    InputError
        No value is left.
    """
    if isinstance(result, PsychometricFit):
        return draw_fit(result, ax, answers, values)
    (csf,) = chat_csfs([result])
    prompt = str(csf["prompt"].values[0]) if prompt is None else prompt
    wording = csf.isel(prompt=prompt_index(csf, prompt))
    (level,) = levels_of(csf)
    level_values = wording[level].values
    unit = unit_symbol(wording[level].attrs)
    indices = _nearest_indices(level, level_values, values)
    ax = ax or axes.new_axes()
    has_counts = are_counts(wording)
    contrast = wording[stimulus_axis_of(wording).name].values
    low = float(np.nanmin(contrast))
    right = float(np.nanmax(contrast)) * 1.25
    left = low / 2.2
    colours = axes.shades(len(indices))
    for colour, index in zip(colours, indices, strict=True):
        name = axes.with_unit(level_values[index], unit)
        yes = wording["yes"].values[index]
        trials = wording["trials"].values[index]
        style: JsonObject = {"color": colour, "label": name, "zorder": 3, **DOTS}
        draw_shares(ax, contrast[index], yes, trials, has_counts, **style)
        _draw_function(ax, wording, int(index), colour, (low / 1.3, right))
    if float(wording["catch_trials"]):
        draw_shares(
            ax,
            np.array([left * 1.25]),
            wording["catch_yes"].values[None],
            wording["catch_trials"].values[None],
            has_counts,
            color="black",
            marker="D",
            markersize=5,
            capsize=2,
            label="catch trials",
            zorder=4,
            clip_on=False,
        )
    axes.log_axis(ax.xaxis, [left, right])
    ax.set_ylim(-0.03, 1.03)
    title = f"{axes.title_of(csf)}\n{axes.printable(prompt)}"
    axes.label(ax, delivered_label(csf), share_label(wording), title, framed=False)
    # Units say what numbers are of; plain ones, such as those of flankers, do not.
    plain = unit == "1"
    heading = str(wording[level].attrs.get("long_name", level)) if plain else ""
    ax.legend(
        title=heading,
        title_fontsize="small",
        fontsize="small",
        framealpha=0.9,
        loc="center left",
        bbox_to_anchor=(1, 0.5),
    )
    return ax


def prompt_index(csf: xr.Dataset, prompt: str) -> int:
    """Find the index of a prompt among those of a result, refusing an unknown one."""
    names = [str(name) for name in csf["prompt"].values]
    if prompt not in names:
        raise unknown_name("prompt", prompt, names)
    return names.index(prompt)


def _nearest_indices(
    level: str,
    level_values: FloatArray,
    values: Sequence[float] | None,
) -> npt.NDArray[np.intp]:
    """Find the indices of the levels nearest to some values, or of all."""
    if values is None:
        return np.arange(len(level_values))
    if not len(values):
        names = ", ".join(f"{value:g}" for value in level_values)
        raise InputError(f"there is no {level} to draw; name one of {names}")
    scale = np.log if min(*level_values, *values) > 0 else np.asarray
    distances = np.abs(scale(level_values) - scale(np.array(values))[:, None])
    return np.unique(distances.argmin(axis=1))


def _draw_function(
    ax: Axes,
    wording: xr.Dataset,
    index: int,
    colour: object,
    span: tuple[float, float],
) -> None:
    """Draw the fit at one level with its threshold, or an arrow to a threshold beyond."""
    left, right = span
    curve = fitted_curve(wording, index, np.geomspace(left, right, 201))
    status = str(flag_words(wording["status"])[index])
    if curve is not None:
        linestyle = "--" if status in STEPS else "-"
        ax.plot(curve.x, curve.share, color=colour, linewidth=1.4, linestyle=linestyle)
        interval = log10_interval(wording, index)
        draw_threshold(ax, interval, curve.threshold_share, span, colour)
    elif status in ("censored_above", "censored_below"):
        is_right = status == "censored_above"
        end = right if is_right else left
        start = right / 1.4 if is_right else left * 1.4
        # Side by side where several thresholds lie beyond the same edge.
        y = 0.5 + 0.02 * index
        axes.draw_arrow(ax, (start, y), (end, y), colour, linewidth=1.4)


def share_label(csf: xr.Dataset) -> str:
    """Return the axis label for shares of yes or correct answers, or for their probabilities."""
    scored = task_of(csf).scored
    return f"Share of {scored}" if are_counts(csf) else f"P({scored})"


def log10_interval(wording: xr.Dataset, index: int) -> FloatArray:
    """Read an interval's low end, threshold and high end; a missing end is the threshold."""
    names = ("log10_threshold_low", "log10_threshold", "log10_threshold_high")
    interval = np.array([wording[name].values[index] for name in names])
    return np.where(np.isnan(interval), interval[1], interval)


def are_counts(csf: xr.Dataset) -> bool:
    """Tell whether answers are yes or no, whose share has an interval, and not probabilities."""
    method = flag_words(csf["method"])
    whole_answers = bool((csf["yes"].values % 1 == 0).all())
    counted = (method == "counts") | ((method == "posterior") & whole_answers)
    return bool(counted.all())


class FittedCurve(NamedTuple):
    """A fitted psychometric function."""

    #: Contrasts and the share of yes there.
    x: FloatArray
    share: FloatArray
    #: Share of yes at threshold.
    threshold_share: float


def fitted_curve(wording: xr.Dataset, index: int, x: FloatArray) -> FittedCurve | None:
    """Compute the fitted function at one level of one prompt, at contrasts.

    None where there is no fit, or one on a linear axis.
    """
    names = ("log10_threshold", "log10_width", "guess", "lapse")
    threshold, width, guess, lapse = (
        float(wording[name].values[index]) for name in names
    )
    fit = json.loads(str(wording.attrs["fit"]))
    if not (np.isfinite(threshold) and np.isfinite(width) and fit["axis"] == "log"):
        return None
    is_logits = str(flag_words(wording["method"])) == "logits"
    function = "logistic" if is_logits else fit["function"]
    width = max(width, _STEP_WIDTH)
    share = psychometric_function(
        np.log10(x), threshold, width, guess, lapse, function=function
    )
    return FittedCurve(x, share, guess + (1 - guess - lapse) / 2)
