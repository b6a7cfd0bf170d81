"""Draw the contrast sensitivity of observers that answer in words, beside people.

References
----------
Hernandez-Camara, Daniel-Valencia, Laparra, Malo (2025). Contrast sensitivity function of multimodal
vision-language models. arXiv 2508.10367. Figure 2.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import cycle
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.analysis.efficiency.scores import efficiencies
from psyprobe.analysis.iso_response import iso_contrast
from psyprobe.analysis.responses import MEASURE_LABELS, levels_of, select
from psyprobe.analysis.result_stimulus import contrast_kind_of
from psyprobe.analysis.words.comparison import bridge, human_line
from psyprobe.analysis.words.csf import chat_csfs
from psyprobe.analysis.words.fit import STEPS
from psyprobe.analysis.words.group import people_curve
from psyprobe.analysis.words.score import refuse_features
from psyprobe.analysis.words.sessions import is_remote, person_of
from psyprobe.errors import InputError
from psyprobe.files.flags import flag_words
from psyprobe.plotting import axes
from psyprobe.plotting.learning import LEARNING, plot_learning
from psyprobe.plotting.noise_masking import over_noise, plot_noise_masking
from psyprobe.plotting.participants import (
    draw_hollow,
    draw_mean,
    draw_participant,
    hollow_handles,
    participant_name,
    unsure_points,
)
from psyprobe.plotting.people import (
    Human,
    HumanCurve,
    draw_curve,
    draw_people,
    measured_points,
    people_legend,
    read_choice,
)
from psyprobe.running.task import CONTRAST_AXIS, stimulus_axis_of

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

#: Blue and vermilion first: they differ most.
_COLOURS = itemgetter(0, 5, 2, 3, 1, 4)(axes.COLOURS)
_MARKERS = ("o", "s", "D", "v", "P", "X")
#: Lines of a legend for which a figure has room, and height of each further line in inches.
_LEGEND_LINES = 7
_LINE_INCHES = 0.16
#: Symbols of kinds of contrast, and of contrast that is not listed.
_CONTRASTS = {"michelson": "Michelson", "rms": "SD/mean", "weber": "Weber"}
_EQUIVALENT = r"$\sqrt{2}\,$SD/mean"


def plot_csf(
    results: xr.Dataset | Sequence[xr.Dataset],
    ax: Axes | None = None,
    *,
    curve: str | None = None,
    human: Human = "both",
    labels: Sequence[str] | None = None,
    title: str | None = None,
) -> Axes:
    """Draw contrast sensitivity functions of observers, and of people.

    Parameters
    ----------
    results : xarray.Dataset or sequence of xarray.Dataset
        Results of questioning runs, or of `chat_csf`.
    ax : matplotlib.axes.Axes, optional
        Where to draw; without it, on a new pyplot figure.
    curve : str, optional
        Name of a human curve, see `human_names`; by default the experiment's. Give "" for none.
    human : {"both", "model", "measured", "none"}, optional
        Human data to draw, as in `psyprobe.plotting.contour`.
    labels : sequence of str, optional
        Labels of the results; by default the observers' names.
    title : str, optional
        By default none, or for one result the observer's name.

    Returns
    -------
    matplotlib.axes.Axes
        The level (frequency, phase, ...) to the right, sensitivity upwards, logarithmic. Points are
        geometric means over wordings with their intervals, hollow where a step between two
        contrasts enters them; arrows mean that sensitivity lies beyond the contrasts that were
        shown. Participants have thin lines, and hollow points below a contrast of 0.03 on a screen
        that was not measured; lines are dashed where the screen was elsewhere. Of three
        participants or more the mean is drawn, with a band over them.

    Raises
    ------
    InputError
        A result is not one of a questioning run, or labels do not fit.
    """
    import xarray as xr

    csfs = chat_csfs([results] if isinstance(results, xr.Dataset) else list(results))
    if not csfs:
        raise InputError("there are no results to draw; give one at least")
    names = list(map(axes.printable, labels or map(participant_name, csfs)))
    if len(names) != len(csfs):
        raise InputError(
            f"{len(names)} labels do not fit {len(csfs)} results; give one a result"
        )
    is_new = ax is None
    ax = ax or axes.new_axes()
    mean_curve = people_curve(csfs)
    styles = cycle(zip(_COLOURS, _MARKERS, strict=True))
    if mean_curve is not None:
        # Several people have one colour, which no model has.
        people_colour, _ = next(styles)
    for csf, name, marker in zip(csfs, names, cycle(_MARKERS), strict=False):
        if mean_curve is not None and person_of(csf):
            draw_participant(ax, csf, name, people_colour, marker)
        else:
            _draw(ax, csf, name, *next(styles))
    if mean_curve is not None:
        draw_mean(ax, mean_curve, people_colour)
    if title is None:
        title = axes.title_of(csfs[0]) if len(csfs) == 1 and labels is None else ""
    _finish(ax, csfs, curve, title, human)
    figure = cast("Figure", ax.figure)
    extra_lines = axes.legend_lines(figure) - _LEGEND_LINES
    if is_new and extra_lines > 0:
        width, height = figure.get_size_inches()
        figure.set_size_inches(width, height + _LINE_INCHES * extra_lines)
    return ax


def csf_panels(
    results: Sequence[xr.Dataset],
    ax: Axes | None = None,
    *,
    figure: SubFigure | None = None,
    measure: str | None = None,
    layer: str | None = None,
    human: Human = "both",
    **_: Any,
) -> Axes | Figure | SubFigure:
    """Draw the sensitivities of observers that answer in words, one panel an experiment.

    This is ``plot`` of a probe, see `psyprobe.probes.results`; legends name observers in any case,
    and answers in words have neither measure nor layer; measure "learning" draws the learning
    curves of decision stages.
    """
    learning = measure == LEARNING
    refuse_features(measure=None if learning else measure, layer=layer)
    experiments: defaultdict[str, list[xr.Dataset]] = defaultdict(list)
    for result in results:
        experiments[str(result.attrs.get("experiment", ""))].append(result)
    count = len(experiments)
    axes.check_room(ax, count)
    if count == 1 and figure is None:
        if learning:
            return plot_learning(results, ax)
        if over_noise(results[0]):
            return plot_noise_masking(results, ax)
        return plot_csf(results, ax, human=human)
    canvas, panels = axes.panels_in(figure, count, min(3, count), panel_size=(4.8, 4.0))
    for panel, (name, group) in zip(panels, experiments.items(), strict=True):
        title = axes.printable(name)
        if learning:
            plot_learning(group, panel, title=title)
        elif over_noise(group[0]):
            plot_noise_masking(group, panel, title=title)
        else:
            plot_csf(group, panel, human=human, title=title)
    return cast("Figure | SubFigure", canvas)


def plot_bridge(
    asked: xr.Dataset,
    tower: xr.Dataset,
    ax: Axes | None = None,
    *,
    measure: str | None = None,
    layer: str | None = None,
) -> Axes:
    """Draw a chat model's CSF beside what its vision encoder tells apart.

    Parameters
    ----------
    asked, tower, measure, layer
        As in `psyprobe.analysis.words.comparison`, whose errors are those of this function.
    ax
        As in `plot_csf`.

    Returns
    -------
    matplotlib.axes.Axes
        As of `plot_csf`; the thick line is the tower's iso-response curve that lies nearest to the
        answers; thin lines are its curves at other levels, a factor of two apart in response.
    """
    (csf,) = chat_csfs([asked])
    nearest = bridge(csf, tower, measure=measure, layer=layer)
    responses = select(tower, measure=measure, layer=layer)
    ax = ax or axes.new_axes()
    levels = nearest.level * 2.0 ** np.arange(-6, 7)
    levels = levels[(levels > responses.noise_floor) & (levels < responses.grid.max())]
    log_contrasts, crossed, _ = iso_contrast(
        responses.difference, responses.grid, levels
    )
    frequency = responses.levels["frequency"]
    # Where a level is not reached, there is no contrast to draw.
    for sensitivity in 10.0 ** -np.where(crossed, log_contrasts, np.nan):
        ax.plot(frequency, sensitivity, color="0.72", linewidth=0.8, zorder=1)
    response = f"{MEASURE_LABELS[responses.measure]} = {nearest.level:.2g}"
    ax.plot(
        nearest.at,
        nearest.sensitivity,
        color=_COLOURS[1],
        marker=_MARKERS[1],
        linewidth=1.8,
        label=f"vision tower: {response}\n(RMSE {nearest.rmse:.2f} log$_{{10}}$)",
    )
    _draw(ax, csf, "asked in words", _COLOURS[0], _MARKERS[0])
    label = "tower, responses a factor of 2 apart"
    ax.plot([], [], color="0.72", linewidth=0.8, label=label)
    _finish(
        ax,
        [csf],
        None,
        axes.title_of(csf),
        "model",
        extra=nearest.sensitivity,
    )
    return ax


def _draw(ax: Axes, csf: xr.Dataset, name: str, colour: str, marker: str) -> None:
    """Draw mean sensitivities with their intervals, and bounds at levels without a mean."""
    values = csf[levels_of(csf)[0]].values
    mean = csf["mean_sensitivity"].values
    low, high = interval_of(csf)
    has_mean = np.isfinite(mean)
    ax.errorbar(
        values[has_mean],
        mean[has_mean],
        yerr=np.stack([mean - low, high - mean])[:, has_mean],
        color=colour,
        marker=marker,
        markersize=5,
        linewidth=0.9 if person_of(csf) else 1.5,
        linestyle="--" if is_remote(csf) else "-",
        elinewidth=1,
        capsize=2,
        zorder=3,
        label=name,
    )
    # A step lies somewhere between two contrasts that were shown; its place was not measured.
    is_step = np.isin(flag_words(csf["status"]), STEPS) & csf["usable"].values
    hollow = (is_step.any(axis=0) | unsure_points(csf)) & has_mean
    draw_hollow(ax, values[hollow], mean[hollow], colour, marker, 5)
    for bound in sensitivity_bounds(csf):
        x = values[bound.level_index]
        end = bound.sensitivity * 1.6**bound.side
        axes.draw_arrow(ax, (x, bound.sensitivity), (x, end), colour, linewidth=1.4)
        # The text of an annotation does not move the limits of an axis; a bar at the bound does.
        ax.plot(x, bound.sensitivity, marker="_", markersize=9, color=colour)


def interval_of(csf: xr.Dataset) -> tuple[FloatArray, FloatArray]:
    """Return both ends of mean sensitivities; an open end runs off the axis."""
    mean = csf["mean_sensitivity"].values
    low = np.maximum(csf["mean_sensitivity_low"].values, mean * 1e-3)
    high = np.minimum(csf["mean_sensitivity_high"].values, mean * 1e3)
    return low, high


class Bound(NamedTuple):
    """A bound of the sensitivity at a level without a mean."""

    level_index: int
    sensitivity: float
    #: -1 where sensitivity is lower than the bound, 1 where it is higher.
    side: int


def sensitivity_bounds(csf: xr.Dataset) -> list[Bound]:
    """List bounds of sensitivity at levels without a mean, on the side of most prompts."""
    bounds = []
    for i in np.flatnonzero(~np.isfinite(csf["mean_sensitivity"].values)):
        status = flag_words(csf["status"])[:, i]
        above = status == "censored_above"
        below = status == "censored_below"
        is_lower = above.sum() > below.sum()
        if is_lower or below.any():
            # Contrasts with answers that count, of the wordings on this side.
            wordings = above if is_lower else below
            has_trials = csf["trials"].values[wordings, i] > 0
            contrast = csf[stimulus_axis_of(csf).name].values[wordings, i][has_trials]
            bound = float(contrast.max() if is_lower else contrast.min())
            bounds.append(Bound(int(i), 1 / bound, -1 if is_lower else 1))
    return bounds


def _finish(
    ax: Axes,
    csfs: Sequence[xr.Dataset],
    curve: str | None,
    title: str,
    human: Human,
    extra: Sequence[float] = (),
) -> None:
    """Draw human data and the ideal observer, and set limits, labels and a legend.

    `extra` are further sensitivities that the axes must hold.
    """
    choice = read_choice(human)
    levels = {levels_of(csf)[0] for csf in csfs}
    if len(levels) > 1:
        raise InputError(
            f"results over {' and '.join(sorted(levels))} do not go on one pair of axes; draw "
            "them apart"
        )
    (level,) = levels
    values = np.concatenate([csf[level].values for csf in csfs])
    heights: list[Any] = [extra]
    for csf in csfs:
        heights.append(csf["mean_sensitivity"].values)
        heights.append([bound.sensitivity for bound in sensitivity_bounds(csf)])
    if choice.model:
        people = human_curve(csfs[0], curve, values.min() / 1.25, values.max() * 1.25)
        if people is not None:
            draw_curve(ax, people.x, people.sensitivity, people.name)
            heights.append(people.sensitivity)
    ideal = [
        (score.value, 1 / score.ideal) for score in efficiencies(csfs[0]) if score.ideal
    ]
    if ideal:
        ax.plot(*zip(*ideal, strict=True), ":", color="0.35", label="ideal observer")
        heights.append([sensitivity for _, sensitivity in ideal])
    group = measured_points(csfs[0]) if choice.measured else None
    if group is not None:
        draw_people(ax, group.points)
        heights += [data_set.sensitivity for data_set in group.points]
    sensitivity = np.concatenate(heights)
    sensitivity = sensitivity[np.isfinite(sensitivity) & (sensitivity > 0)]
    if not sensitivity.size:
        raise InputError(
            f"there is no threshold to draw at any {level}; see the variable 'status'"
        )
    axes.level_axis(ax.xaxis, values, margin=1.25)
    axes.log_axis(ax.yaxis, sensitivity, 2)
    x_label = axes.level_label(csfs[0], level)
    axes.label(ax, x_label, sensitivity_label(csfs[0]), title, framed=False)
    people_legend(ax, group, hollow_handles(csfs))


def human_curve(
    csf: xr.Dataset, curve: str | None, low: float, high: float
) -> HumanCurve | None:
    """Compute human sensitivity where it is above 0; None without a human CSF."""
    line = human_line(csf, curve, low, high)
    if line is None:
        return None
    name, x, sensitivity = line
    positive = np.isfinite(sensitivity) & (sensitivity > 0)
    return HumanCurve(name, x[positive], sensitivity[positive])


def _contrast_symbol(csf: xr.Dataset) -> str:
    """Return the symbol of the kind of contrast that a CSF is in."""
    return _CONTRASTS.get(contrast_kind_of(csf), _EQUIVALENT)


def sensitivity_label(csf: xr.Dataset) -> str:
    """Return the axis label for 1 / threshold, of contrast or of another difference."""
    axis = stimulus_axis_of(csf)
    if axis == CONTRAST_AXIS:
        return f"Sensitivity (1 / contrast, {_contrast_symbol(csf)})"
    if axis.inverse:
        return axis.inverse
    return "1 / threshold" if axis.unit == "1" else f"1 / threshold (1/{axis.unit})"


def delivered_label(csf: xr.Dataset) -> str:
    """Return the axis label for delivered contrasts or differences."""
    if stimulus_axis_of(csf) == CONTRAST_AXIS:
        return f"Delivered contrast ({_contrast_symbol(csf)})"
    return axes.level_label(csf, stimulus_axis_of(csf).name)
