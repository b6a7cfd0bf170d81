"""Figures of observers that were asked in words: sensitivity beside people, psychometric functions,
and wordings.

References
----------
Hernandez-Camara, Daniel-Valencia, Laparra, Malo (2025). Contrast sensitivity function of multimodal
vision-language models. arXiv 2508.10367. Figure 2.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import count
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from psyprobe._typing import FloatArray
from psyprobe.analysis.iso_response import iso_contrast
from psyprobe.analysis.psychometric.fit_result import PsychometricFit
from psyprobe.analysis.psychometric.sigmoids import psychometric_function
from psyprobe.analysis.responses import MEASURE_LABELS, levels_of, select
from psyprobe.analysis.result_stimulus import contrast_kind_of
from psyprobe.analysis.words.comparison import bridge, human_line
from psyprobe.analysis.words.csf import chat_csfs
from psyprobe.analysis.words.fit import STEPS
from psyprobe.analysis.words.group import people_curve
from psyprobe.analysis.words.score import refuse_features
from psyprobe.analysis.words.sessions import is_remote, person_of
from psyprobe.errors import InputError, unknown_name
from psyprobe.files.units import unit_symbol
from psyprobe.plotting import axes
from psyprobe.plotting.participants import (
    draw_hollow,
    draw_mean,
    draw_one_of_several,
    hollow_handles,
    sitter_name,
)
from psyprobe.plotting.people import (
    Human,
    draw_people,
    drawn_of,
    measured_points,
    people_handles,
    people_title,
)
from psyprobe.plotting.trials import draw_fit, wilson
from psyprobe.running.task import CONTRAST_AXIS, stimulus_axis_of, task_of

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

#: Blue and vermilion first: they differ most.
_COLOURS = (
    axes.COLOURS[0],
    axes.COLOURS[5],
    axes.COLOURS[2],
    axes.COLOURS[3],
    axes.COLOURS[1],
    axes.COLOURS[4],
)
_MARKERS = ("o", "s", "D", "v", "P", "X")
#: Lines of a legend for which a figure has room, and inches that a further one takes.
_KEYS = 7
_KEY_INCHES = 0.16
#: How contrast is told of kinds of it, and of those that are not listed.
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
    """Draw contrast sensitivity functions of observers, and people's: a model's dashed in black,
    and measured ones.

    Parameters
    ----------
    results : xarray.Dataset or sequence of xarray.Dataset
        Of questioning runs, or of `chat_csf`.
    ax : matplotlib.axes.Axes, optional
        Where to draw; without it, on a new pyplot figure.
    curve : str, optional
        Human curve, as `human_names` lists them; without it the experiment's. Give "" for none.
    human : {"both", "model", "measured", "none"}, optional
        What of people is drawn, as in `psyprobe.plotting.contour`.
    labels : sequence of str, optional
        One a result; without it the observers' names.
    title : str, optional
        Without it none, or for one result the observer's name.

    Returns
    -------
    matplotlib.axes.Axes
        The level (frequency, phase, ...) to the right, sensitivity upwards, logarithmic. Points are
        geometric means over wordings with their intervals, hollow where a step between two
        contrasts enters them; arrows say that sensitivity lies beyond the contrasts that were
        shown. People have thin lines, and hollow points where nothing is claimed: below a contrast
        of 0.03 on a screen that nobody measured; dashed ones where the screen was elsewhere. Of
        three people or more the mean is drawn, with a band over people.

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
    names = [_name(csf) for csf in csfs] if labels is None else list(map(axes.printable, labels))
    if len(names) != len(csfs):
        raise InputError(f"{len(names)} labels do not fit {len(csfs)} results; give one a result")
    new = ax is None
    ax = axes.new_axes() if ax is None else ax
    people = people_curve(csfs)
    of_people = _COLOURS[0]
    # Several people have one colour, which no model has.
    places = count(int(people is not None))
    for i, (csf, name) in enumerate(zip(csfs, names, strict=True)):
        if people is not None and person_of(csf):
            draw_one_of_several(ax, csf, name, of_people, _MARKERS[i % len(_MARKERS)])
        else:
            place = next(places)
            _draw(ax, csf, name, _COLOURS[place % len(_COLOURS)], _MARKERS[place % len(_MARKERS)])
    if people is not None:
        draw_mean(ax, people, of_people)
    alone = len(csfs) == 1 and labels is None
    _finish(
        ax,
        csfs,
        curve,
        (axes.title_of(csfs[0]) if alone else "") if title is None else title,
        human,
    )
    figure = cast("Figure", ax.figure)
    if new and (longer := axes.keys_below(figure) - _KEYS) > 0:
        width, height = figure.get_size_inches()
        figure.set_size_inches(width, height + _KEY_INCHES * longer)
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
    """Draw the sensitivities of runs that ask in words, those of one experiment on one panel.

    It is ``plot`` of a probe, see `psyprobe.probes.results`; legends name observers in any case,
    and answers in words have neither measure nor layer.
    """
    refuse_features(measure=measure, layer=layer)
    experiments = list(dict.fromkeys(str(result.attrs.get("experiment", "")) for result in results))
    axes.check_room(ax, len(experiments))
    if len(experiments) == 1 and figure is None:
        return plot_csf(results, ax, human=human)
    place, panels = axes.panels_in(
        figure, len(experiments), min(3, len(experiments)), each=(4.8, 4.0)
    )
    for panel, name in zip(panels, experiments, strict=True):
        own = [result for result in results if result.attrs.get("experiment") == name]
        plot_csf(own, panel, human=human, title=axes.printable(name))
    return cast("Figure | SubFigure", place)


def plot_bridge(
    asked: xr.Dataset,
    tower: xr.Dataset,
    ax: Axes | None = None,
    *,
    measure: str | None = None,
    layer: str | None = None,
) -> Axes:
    """Draw what a chat model says it sees, and what its own vision tower tells apart, for the same
    stimuli.

    Parameters
    ----------
    asked, tower, measure, layer
        As in `psyprobe.analysis.words.comparison`, whose errors are those of this function.
    ax
        As in `plot_csf`.

    Returns
    -------
    matplotlib.axes.Axes
        As of `plot_csf`; thick, the tower's iso-response curve that lies nearest to the answers;
        thin, its curves at other levels, which are a factor of two apart in response.
    """
    (csf,) = chat_csfs([asked])
    nearest = bridge(csf, tower, measure=measure, layer=layer)
    found = select(tower, measure=measure, layer=layer)
    ax = axes.new_axes() if ax is None else ax
    levels = nearest.level * 2.0 ** np.arange(-6, 7)
    levels = levels[(levels > found.noise_floor) & (levels < found.grid.max())]
    log_c, crossed, _ = iso_contrast(found.difference, found.grid, levels)
    for row, inside in zip(log_c, crossed, strict=True):
        # Where a level is not reached, there is no contrast to draw.
        sensitivity = 10.0 ** -np.where(inside, row, np.nan)
        ax.plot(found.levels["frequency"], sensitivity, color="0.72", linewidth=0.8, zorder=1)
    response = f"{MEASURE_LABELS[found.measure]} = {nearest.level:.2g}"
    of_tower = f"vision tower: {response}\n(RMSE {nearest.rmse:.2f} log$_{{10}}$)"
    ax.plot(
        nearest.at,
        nearest.sensitivity,
        color=_COLOURS[1],
        marker=_MARKERS[1],
        linewidth=1.8,
        label=of_tower,
    )
    _draw(ax, csf, "asked in words", _COLOURS[0], _MARKERS[0])
    ax.plot([], [], color="0.72", linewidth=0.8, label="tower, responses a factor of 2 apart")
    _finish(ax, [csf], None, axes.title_of(csf), "model", extra=nearest.sensitivity)
    return ax


def _draw(ax: Axes, csf: xr.Dataset, name: str, colour: str, marker: str) -> None:
    values = csf[levels_of(csf)[0]].values
    mean, low, high = (csf[f"mean_sensitivity{end}"].values for end in ("", "_low", "_high"))
    known = np.isfinite(mean)
    # An interval without an end runs off the axis.
    reach = np.stack([mean - np.maximum(low, mean * 1e-3), np.minimum(high, mean * 1e3) - mean])[
        :, known
    ]
    style: dict[str, Any] = {"color": colour, "marker": marker, "markersize": 5, "label": name}
    style["linewidth"] = 0.9 if person_of(csf) else 1.5
    style["linestyle"] = "--" if is_remote(csf) else "-"
    ax.errorbar(values[known], mean[known], yerr=reach, elinewidth=1, capsize=2, zorder=3, **style)
    # A step lies somewhere between two contrasts that were shown; its place was not measured.
    steps = known & (
        np.isin(csf["status"].values.astype(str), STEPS) & csf["usable"].values.astype(bool)
    ).any(axis=0)
    unsure = csf["unsure"].values & known if "unsure" in csf else np.zeros_like(steps)
    draw_hollow(ax, values[steps | unsure], mean[steps | unsure], colour, marker, 5)
    head = {"arrowstyle": "-|>", "color": colour, "linewidth": 1.4}
    for i, bound, side in bounds(csf):
        ax.annotate(
            "", xy=(values[i], bound * 1.6**side), xytext=(values[i], bound), arrowprops=head
        )
        # The text of an annotation does not move the limits of an axis; a bar at the bound does.
        ax.plot([values[i]], [bound], marker="_", markersize=9, color=colour, linestyle="none")


def bounds(csf: xr.Dataset) -> list[tuple[int, float, int]]:
    """Levels without a mean: place, bound and side, -1 where most wordings tell that sensitivity is
    lower, else 1.
    """
    found = []
    for i in np.flatnonzero(~np.isfinite(csf["mean_sensitivity"].values)):
        status = csf["status"].values[:, i].astype(str)
        above = status == "censored_above"
        below = status == "censored_below"
        lower = above.sum() > below.sum()
        if lower or below.any():
            # Of the wordings that say so, the contrasts at which they gave an answer that counts.
            says = above if lower else below
            contrast = np.where(
                csf["trials"].values[says, i] > 0,
                csf[stimulus_axis_of(csf).name].values[says, i],
                np.nan,
            )
            bound = float(np.nanmax(contrast) if lower else np.nanmin(contrast))
            found.append((int(i), 1 / bound, -1 if lower else 1))
    return found


def _finish(
    ax: Axes,
    csfs: Sequence[xr.Dataset],
    curve: str | None,
    title: str,
    human: Human,
    extra: Any = (),
) -> None:
    """People, axes that hold all that is drawn, labels and a legend."""
    model, measured = drawn_of(human)
    levels = {levels_of(csf)[0] for csf in csfs}
    if len(levels) > 1:
        raise InputError(
            f"results over {' and '.join(sorted(levels))} do not go on one pair of axes; draw "
            "them apart"
        )
    (level,) = levels
    values = np.concatenate([csf[level].values for csf in csfs])
    shown = [np.asarray(extra), *(csf["mean_sensitivity"].values for csf in csfs)]
    shown += [np.array([bound]) for csf in csfs for _, bound, _ in bounds(csf)]
    people = human_line(csfs[0], curve, values.min() / 1.25, values.max() * 1.25) if model else None
    if people is not None:
        name, x, seen = people
        reached = np.isfinite(seen) & (seen > 0)
        ax.plot(
            x[reached],
            seen[reached],
            color="black",
            linestyle="--",
            linewidth=1.4,
            label=name,
            zorder=2,
        )
        shown.append(seen[reached])
    beside = [each for each in [measured_points(csfs[0]) if measured else None] if each is not None]
    for _, points in beside:
        draw_people(ax, points)
        shown += [point.sensitivity for point in points]
    drawn = np.concatenate(shown)
    drawn = drawn[np.isfinite(drawn) & (drawn > 0)]
    if not drawn.size:
        raise InputError(f"there is no threshold to draw at any {level}; see the variable 'status'")
    axes.level_axis(ax.xaxis, values, margin=1.25)
    axes.log_axis(ax.yaxis, float(drawn.min()) / 2, float(drawn.max()) * 2)
    axes.label(
        ax, axes.level_label(csfs[0], level), sensitivity_label(csfs[0]), title, framed=False
    )
    handles = [
        *ax.get_legend_handles_labels()[0],
        *hollow_handles(list(csfs)),
        *people_handles(beside, surface=True),
    ]
    axes.legend_below(ax, handles, people_title(beside) if beside else "")


def _name(csf: xr.Dataset) -> str:
    return axes.printable(sitter_name(csf))


#: Width at which a step, of width 0, is drawn.
_STEP = 1e-3


def sensitivity_label(csf: xr.Dataset) -> str:
    """Of the axis of 1 / threshold, of contrast or of the difference that was asked about."""
    axis = stimulus_axis_of(csf)
    if axis == CONTRAST_AXIS:
        return f"Sensitivity (1 / contrast, {_CONTRASTS.get(contrast_kind_of(csf), _EQUIVALENT)})"
    return axis.inverse or "1 / threshold" + ("" if axis.unit == "1" else f" (1/{axis.unit})")


def delivered_label(csf: xr.Dataset) -> str:
    """Of the axis of contrasts or differences."""
    if stimulus_axis_of(csf) == CONTRAST_AXIS:
        return f"Delivered contrast ({_CONTRASTS.get(contrast_kind_of(csf), _EQUIVALENT)})"
    return axes.level_label(csf, stimulus_axis_of(csf).name)


def plot_psychometric(
    result: xr.Dataset | PsychometricFit,
    ax: Axes | None = None,
    *,
    prompt: str | None = None,
    values: Sequence[float] | None = None,
    answers: Sequence[npt.ArrayLike] | None = None,
) -> Axes:
    """Draw the psychometric functions of one wording or of a fit, one colour a level.

    Parameters
    ----------
    result : xarray.Dataset or PsychometricFit
        Of a questioning run, or of `chat_csf`; or of `fit_psychometric`, of one curve or of one for
        each level.
    ax : matplotlib.axes.Axes, optional
        Where to draw; without it, on a new pyplot figure.
    prompt : str, optional
        Identifier of the wording; without it the first. Answers to several are not pooled: that
        makes curves too flat.
    values : sequence of float, optional
        Of the level, which to draw, to the nearest (frequencies in cpd); without it all. Of a fit
        what each curve is called.
    answers : (contrast, yes, trials), optional
        Of a fit: what was fitted, to be drawn as dots.

    Returns
    -------
    matplotlib.axes.Axes
        Contrast to the right (logarithmic), share of yes upwards. Dots with Wilson intervals are
        answers, without them mean probabilities of yes; the diamond at the left is the catch
        trials, at contrast 0. Lines are fits, and bars across them thresholds with their intervals;
        dashed lines are steps between two levels, of which nobody measured the slope. Arrows at the
        edge are thresholds beyond the contrasts shown.

    Raises
    ------
    UnknownNameError
        There is no such wording.
    InputError
        No value is left.
    """
    import matplotlib as mpl

    if isinstance(result, PsychometricFit):
        return draw_fit(result, ax, answers, values)
    (csf,) = chat_csfs([result])
    chosen = str(csf["prompt"].values[0]) if prompt is None else prompt
    one = csf.isel(prompt=prompt_place(csf, chosen))
    (level,) = levels_of(csf)
    held = one[level].values
    unit = unit_symbol(one[level].attrs)
    rows = _rows(level, held, values)
    ax = axes.new_axes() if ax is None else ax
    counted = drawn_answers(one)
    contrast = one[stimulus_axis_of(one).name].values
    low = float(np.nanmin(contrast))
    high = float(np.nanmax(contrast))
    left = low / 2.2
    right = high * 1.25
    # The light end of the map, which cannot be seen on white, is left out.
    colours = mpl.colormaps["viridis"](np.linspace(0, 0.9, len(rows)))
    for colour, i in zip(colours, rows, strict=True):
        _draw_function(
            ax, one, int(i), colour, counted, (low / 1.3, right), axes.with_unit(held[i], unit)
        )
    blanks = float(one["catch_trials"])
    if blanks:
        share = float(one["catch_yes"]) / blanks
        error = wilson(np.array([float(one["catch_yes"])]), np.array([blanks])) if counted else None
        ax.errorbar(
            [left * 1.25],
            [share],
            yerr=error,
            color="black",
            marker="D",
            markersize=5,
            linestyle="none",
            capsize=2,
            label="catch trials",
            zorder=4,
            clip_on=False,
        )
    axes.log_axis(ax.xaxis, left, right)
    ax.set_ylim(-0.03, 1.03)
    scored = task_of(csf).scored
    title = f"{axes.title_of(csf)}\n{axes.printable(chosen)}"
    axes.label(
        ax,
        delivered_label(csf),
        f"Share of {scored}" if counted else f"P({scored})",
        title,
        framed=False,
    )
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
        raise InputError(
            f"there is no {level} to draw; name one of {', '.join(f'{value:g}' for value in held)}"
        )
    scale = np.log if min(*held, *values) > 0 else np.asarray
    return np.unique([int(np.argmin(np.abs(scale(held) - scale(value)))) for value in values])


def _draw_function(
    ax: Axes,
    one: xr.Dataset,
    i: int,
    colour: object,
    counted: bool,
    span: tuple[float, float],
    name: str,
) -> None:
    contrast, yes, trials = (
        one[name].values[i] for name in (stimulus_axis_of(one).name, "yes", "trials")
    )
    use = trials > 0
    error = wilson(yes[use], trials[use]) if counted else None
    ax.errorbar(
        contrast[use],
        yes[use] / trials[use],
        yerr=error,
        color=colour,
        marker="o",
        markersize=4,
        linestyle="none",
        elinewidth=0.8,
        label=name,
        zorder=3,
    )
    curve = fitted_share(one, i, np.geomspace(*span, 201))
    status = str(one["status"].values[i])
    if curve is not None:
        x, share, height = curve
        t = float(one["log10_threshold"].values[i])
        ax.plot(x, share, color=colour, linewidth=1.4, linestyle="--" if status in STEPS else "-")
        ends = np.array([float(one[f"log10_threshold_{end}"].values[i]) for end in ("low", "high")])
        ends = np.where(np.isnan(ends), t, ends).clip(np.log10(span[0]), np.log10(span[1]))
        ax.plot(
            10**ends,
            [height, height],
            color=axes.paler(colour, 0.6),
            linewidth=3,
            solid_capstyle="butt",
        )
        ax.plot([10**t], [height], marker="|", markersize=9, color=colour)
    elif status in ("censored_above", "censored_below"):
        end, start = (
            (span[1], span[1] / 1.4) if status == "censored_above" else (span[0], span[0] * 1.4)
        )
        head = {"arrowstyle": "-|>", "color": colour, "linewidth": 1.4}
        # Side by side where several thresholds lie beyond the same edge.
        ax.annotate("", xy=(end, 0.5 + 0.02 * i), xytext=(start, 0.5 + 0.02 * i), arrowprops=head)


def drawn_answers(csf: xr.Dataset) -> bool:
    """Whether answers are yes or no, of which a share has Wilson's interval, and not probabilities
    of yes.
    """
    method = csf["method"].values.astype(str)
    return bool(
        (
            (method == "counts") | ((method == "posterior") & (csf["yes"].values % 1 == 0).all())
        ).all()
    )


def fitted_share(
    one: xr.Dataset, i: int, x: FloatArray
) -> tuple[FloatArray, FloatArray, float] | None:
    """Contrasts, the fitted share of yes there, and the share at threshold, for one level of one
    wording of a CSF.

    None where there is no fit, or one on a linear axis.
    """
    t, w, guess, lapse = (
        float(one[name].values[i]) for name in ("log10_threshold", "log10_width", "guess", "lapse")
    )
    fit = json.loads(str(one.attrs["fit"]))
    if not (np.isfinite(t) and np.isfinite(w) and fit["axis"] == "log"):
        return None
    function = "logistic" if str(one["method"].values) == "logits" else fit["function"]
    share = psychometric_function(np.log10(x), t, max(w, _STEP), guess, lapse, function=function)
    return x, np.asarray(share), guess + (1 - guess - lapse) / 2


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
        Sensitivity over the geometric mean of all wordings to the right (logarithmic): dots are
        levels (frequencies), bars the mean of a wording over them. Rows stand by kind of wording,
        and within it from the least to the most sensitive. Arrows are thresholds beyond the
        contrasts that were shown; a cross at the left counts what has no threshold for another
        reason.

    Raises
    ------
    InputError
        There is no threshold at all.
    """
    import matplotlib as mpl

    (csf,) = chat_csfs([result])
    usable = csf["usable"].values.astype(bool)
    status = csf["status"].values.astype(str)
    if not usable.any():
        raise InputError("no wording has a threshold at any level; see the variable 'status'")
    ratio = np.where(usable, csf["sensitivity"].values / csf["mean_sensitivity"].values, np.nan)
    log_ratio = np.log10(ratio)
    means = np.where(usable, log_ratio, 0.0).sum(axis=1) / np.maximum(usable.sum(axis=1), 1)
    order, names = _order(csf, means)
    ax = axes.new_axes(6.4, 1.6 + 0.21 * len(order)) if ax is None else ax
    reach = max(1.3, 1.25 * 10 ** float(np.nanmax(np.abs(log_ratio))))
    (level,) = levels_of(csf)
    values = csf[level].values
    unit = unit_symbol(csf[level].attrs)
    colours = mpl.colormaps["viridis"](np.linspace(0, 0.9, len(values)))
    ax.axvline(1, color="0.7", linewidth=0.8, zorder=0)
    for row, p in enumerate(order):
        for f, colour in enumerate(colours):
            if usable[p, f]:
                ax.plot(
                    ratio[p, f], row, marker="o", markersize=4.5, color=colour, linestyle="none"
                )
            elif status[p, f] in ("censored_above", "censored_below"):
                left = status[p, f] == "censored_above"
                edge = (1 / reach) * 1.03 if left else reach / 1.03
                ax.plot(
                    edge,
                    row,
                    marker="<" if left else ">",
                    markersize=5,
                    color=colour,
                    linestyle="none",
                )
        if usable[p].any():
            ax.plot(
                10 ** means[p],
                row,
                marker="|",
                markersize=11,
                markeredgewidth=2,
                color="black",
                zorder=4,
            )
        without = int((~usable[p] & ~np.char.startswith(status[p], "censored")).sum())
        if without:
            ax.text(1 / reach * 1.1, row, f"× {without}", va="center", fontsize=7)
    axes.log_axis(ax.xaxis, 1 / reach, reach)
    ax.set_ylim(len(order) - 0.3, -0.7)
    ax.set_yticks(range(len(order)), [axes.printable(names[p]) for p in order], fontsize=7)
    ax.tick_params(axis="y", length=0)
    axes.label(
        ax, "Sensitivity / geometric mean over wordings", "", axes.title_of(csf), framed=False
    )
    for value, colour in zip(values, colours, strict=True):
        ax.plot(
            [],
            [],
            marker="o",
            markersize=4.5,
            linestyle="none",
            color=colour,
            label=axes.with_unit(value, unit),
        )
    ax.plot(
        [],
        [],
        marker="|",
        markersize=9,
        markeredgewidth=2,
        linestyle="none",
        color="black",
        label="mean",
    )
    ax.legend(fontsize="small", loc="center left", bbox_to_anchor=(1, 0.5), framealpha=0.9)
    ax.spines["left"].set_visible(False)
    return ax


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
        Identifier of a wording; without it all together, each level being that of all.
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
    rows = slice(None) if prompt is None else [prompt_place(csf, prompt)]
    ax = axes.new_axes() if ax is None else ax
    (level,) = levels_of(csf)
    values = csf[level].values
    log = axes.is_logarithmic(values)
    edges = 10 ** _edges(np.log10(values)) if log else _edges(values)
    colours = mpl.colormaps[axes.COLOUR_MAP].with_extremes(bad=axes.BLANK)
    style: dict[str, Any] = {"cmap": colours, "norm": Normalize(0, 1), "rasterized": True}
    contrast, yes, trials = (
        csf[name].values[rows] for name in (stimulus_axis_of(csf).name, "yes", "trials")
    )
    bottom = np.inf
    top = 0.0
    if not trials.any():
        raise InputError("no reply to this wording says yes or no; see the variable 'excluded'")
    for f in np.flatnonzero(trials.any(axis=(0, 2))):
        levels, share = _column(contrast[:, f], yes[:, f], trials[:, f])
        sides = 10 ** _edges(np.log10(levels))
        drawn = ax.pcolormesh(edges[f : f + 2], sides, share[:, None], **style)
        bottom = min(bottom, float(sides[0]))
        top = max(top, float(sides[-1]))
    blanks = csf["catch_trials"].values[rows].sum()
    lowest = bottom
    if blanks:
        lowest = bottom / 1.9
        share = np.full((1, 1), csf["catch_yes"].values[rows].sum() / blanks)
        ax.pcolormesh(edges[[0, -1]], [lowest, bottom / 1.25], share, **style)
        middle = 10 ** np.log10(edges[:2]).mean() if log else edges[:2].mean()
        ax.annotate(
            "catch trials", (middle, lowest * 1.2), fontsize="small", va="center", ha="left"
        )
    usable = csf["usable"].values[rows].astype(bool)
    threshold = csf["log10_threshold"].values[rows]
    mean = np.where(usable, threshold, 0.0).sum(axis=0) / np.maximum(usable.sum(axis=0), 1)
    known = usable.any(axis=0)
    ax.plot(
        values[known],
        10 ** mean[known],
        marker="o",
        color="white",
        markeredgecolor="black",
        markersize=6,
        linestyle="none",
        label="threshold",
    )
    people = human_line(csf, curve, edges[0], edges[-1])
    if people is not None:
        name, x, seen = people
        inside = np.isfinite(seen) & (seen > 0)
        inside[inside] &= 1 / seen[inside] <= top
        ax.plot(
            x[inside], 1 / seen[inside], color="black", linestyle="--", linewidth=1.4, label=name
        )
    if log:
        axes.log_axis(ax.xaxis, edges[0], edges[-1])
    else:
        ax.set_xlim(edges[0], edges[-1])
    axes.log_axis(ax.yaxis, lowest, top)
    axes.label(ax, axes.level_label(csf, level), delivered_label(csf), axes.title_of(csf))
    ax.legend(fontsize="small", loc="lower right", framealpha=0.9)
    ax.figure.colorbar(drawn, ax=ax, label="Share of yes")
    return ax


def _order(csf: xr.Dataset, means: FloatArray) -> tuple[list[int], list[str]]:
    """Wordings by kind and then by sensitivity, and what they are called."""
    groups = csf["group"].values.astype(str).tolist()
    first = {group: i for i, group in enumerate(dict.fromkeys(groups))}
    ids = [str(name) for name in csf["prompt"].values]
    names = [
        f"{group}: {name}" if group and len(first) > 1 else name
        for group, name in zip(groups, ids, strict=True)
    ]
    return sorted(range(len(ids)), key=lambda p: (first[groups[p]], means[p])), names


def _column(
    contrast: FloatArray, yes: FloatArray, trials: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Contrasts of one level, those of all wordings together, and the share of yes at each."""
    use = trials > 0
    # Wordings see the same images, but those whose replies do not count leave means of delivered
    # contrast apart.
    rounded = np.round(np.log10(contrast[use]), 2)
    levels, inverse = np.unique(rounded, return_inverse=True)
    said = np.bincount(inverse, weights=yes[use])
    asked = np.bincount(inverse, weights=trials[use])
    return 10.0**levels, said / asked


def _edges(centres: npt.ArrayLike) -> FloatArray:
    """Edges halfway between centres, and as far outside the last ones."""
    c = np.asarray(centres, dtype=np.float64)
    if len(c) == 1:
        return np.array([c[0] - 0.15, c[0] + 0.15])
    middle = (c[1:] + c[:-1]) / 2
    return np.concatenate([[2 * c[0] - middle[0]], middle, [2 * c[-1] - middle[-1]]])
