"""Describe answers in words as plain data: ``report`` of probes that ask in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.analysis.responses import levels_of
from psyprobe.analysis.words.comparison import human_line
from psyprobe.analysis.words.csf import chat_csfs
from psyprobe.analysis.words.group import people_curve
from psyprobe.analysis.words.sessions import person_of
from psyprobe.analysis.words.trial_table import trials as trial_table
from psyprobe.files.netcdf import as_text
from psyprobe.files.units import unit_symbol
from psyprobe.plotting import axes
from psyprobe.plotting.figure_data import (
    Axis,
    Figure,
    Line,
    Panel,
    Part,
    Table,
    level_axis,
    name_of,
    plain_label,
)
from psyprobe.plotting.noise_masking import masking_figure, over_noise
from psyprobe.plotting.participants import (
    mean_line,
    participant_name,
    participant_notes,
)
from psyprobe.plotting.people import people_lines
from psyprobe.plotting.psychometric_curves import (
    are_counts,
    fitted_curve,
    log10_interval,
    share_label,
)
from psyprobe.plotting.trials import wilson
from psyprobe.plotting.words import (
    Bound,
    delivered_label,
    interval_of,
    sensitivity_bounds,
    sensitivity_label,
)
from psyprobe.running.task import stimulus_axis_of

if TYPE_CHECKING:
    import xarray as xr

#: Number of points of a fitted curve.
_CURVE_POINTS = 31
#: Most replies to one wording that are listed.
_MAX_REPLIES = 8


def csf_parts(results: Sequence[xr.Dataset]) -> list[Part]:
    """Build a report's figures of sensitivity, psychometric functions and replies.

    Parameters
    ----------
    results : sequence of xarray.Dataset
        Results of one experiment that asks in words.
    """
    csfs = chat_csfs(results)
    (level,) = levels_of(csfs[0])
    values = np.concatenate([csf[level].values for csf in csfs])
    mean_curve = people_curve(csfs)
    functions: list[Figure] = []
    lines = [] if mean_curve is None else [mean_line(mean_curve, len(csfs))]
    for i, csf in enumerate(csfs):
        levels = range(csf.sizes[level])
        behind = [len(functions) + index for index in levels]
        functions += [_functions(csf, index) for index in levels]
        with_interval = mean_curve is None or not person_of(csf)
        lines.append(_sensitivity(csf, i, behind, with_interval))
        bounds = sensitivity_bounds(csf)
        if bounds:
            lines.append(_bound_line(csf, i, bounds, behind))
    caption = (
        "Geometric mean over wordings, with intervals. A point opens the psychometric "
        "functions behind it."
    )
    if any(person_of(csf) for csf in csfs):
        caption += " Intervals of people hold the error of their screen."
    if mean_curve is not None:
        caption += (
            f" The {mean_curve.name} has a band over people; theirs are in the tables of "
            "scores."
        )
    figure = Figure(
        "Contrast sensitivity",
        x=level_axis(axes.level_label(csfs[0], level), values),
        y=Axis(
            plain_label(sensitivity_label(csfs[0])),
            log=True,
            inverse=stimulus_axis_of(csfs[0]).name.replace("_", " "),
        ),
        panels=[Panel("", {"": {"": lines}})],
        caption=caption,
        over=_human_lines(csfs[0], values),
        behind=functions,
    )
    masking = masking_figure(csfs) if over_noise(csfs[0]) else None
    figures = [figure] if masking is None else [masking, figure]
    return [*figures, _wordings(results, csfs), _replies(results)]


def _human_lines(csf: xr.Dataset, values: FloatArray) -> list[Line]:
    """Build the lines of the human CSF and of people's data for a figure."""
    line = human_line(csf, None, values.min(), values.max())
    if line is None:
        return people_lines(csf)
    name, x, sensitivity = line
    return [Line(name, x, sensitivity, style="people"), *people_lines(csf)]


def _bound_line(
    csf: xr.Dataset,
    colour: int,
    bounds: Sequence[Bound],
    behind: Sequence[int],
) -> Line:
    """Build a report's line of bounds of sensitivity at levels without a mean."""
    (level,) = levels_of(csf)
    lower = "at most: sensitivity is lower"
    higher = "at least: sensitivity is higher"
    return Line(
        f"{name_of(csf)}, bound",
        csf[level].values[[bound.level_index for bound in bounds]],
        np.array([bound.sensitivity for bound in bounds]),
        style="points",
        colour=colour,
        notes=[lower if bound.side < 0 else higher for bound in bounds],
        behind=[behind[bound.level_index] for bound in bounds],
    )


def _sensitivity(
    csf: xr.Dataset,
    colour: int,
    behind: Sequence[int],
    with_interval: bool,
) -> Line:
    """Build a report's line of an observer's mean sensitivity."""
    (level,) = levels_of(csf)
    mean = csf["mean_sensitivity"].values
    low, high = interval_of(csf) if with_interval else (None, None)
    if person_of(csf):
        notes = participant_notes(csf)
    else:
        wordings = csf.sizes["prompt"]
        notes = [
            f"{count} of {wordings} wordings usable" for count in csf["n_usable"].values
        ]
    return Line(
        participant_name(csf),
        csf[level].values,
        mean,
        low=low,
        high=high,
        colour=colour,
        notes=notes,
        behind=behind,
    )


def _functions(csf: xr.Dataset, index: int) -> Figure:
    """Build a report's lines of each prompt's psychometric function at one level."""
    (level,) = levels_of(csf)
    contrast = csf[stimulus_axis_of(csf).name].values
    low = float(np.nanmin(contrast)) / 1.3
    high = float(np.nanmax(contrast)) * 1.25
    y_label = share_label(csf)
    names = [str(name) for name in csf["prompt"].values]
    views = {}
    for prompt, name in enumerate(names):
        views[name] = {"": _function_lines(csf.isel(prompt=prompt), index, low, high)}
    value = axes.with_unit(
        float(csf[level].values[index]), unit_symbol(csf[level].attrs)
    )
    return Figure(
        f"{name_of(csf)}, {value}",
        x=Axis(plain_label(delivered_label(csf)), log=True, span=(low, high)),
        y=Axis(y_label, span=(0.0, 1.0)),
        panels=[Panel("", views)],
        choice="wording",
        options=dict.fromkeys(names, y_label),
    )


def _function_lines(
    wording: xr.Dataset, index: int, low: float, high: float
) -> list[Line]:
    """Build a report's lines of the answers to one prompt at one level, and their fit."""
    lines = [_answer_line(wording, index)]
    catch_trials = float(wording["catch_trials"])
    if catch_trials:
        share = np.array([float(wording["catch_yes"]) / catch_trials])
        note = f"{catch_trials:.0f} answers without a pattern, drawn at the left edge"
        x = np.array([low])
        lines.append(
            Line("catch trials", x, share, style="points", colour=5, notes=[note])
        )
    curve = fitted_curve(wording, index, np.geomspace(low, high, _CURVE_POINTS))
    if curve is not None:
        interval = (10 ** log10_interval(wording, index)).clip(low, high)
        height = np.full(3, curve.threshold_share)
        lines.append(Line("fit", curve.x, curve.share))
        lines.append(Line("threshold and its interval", interval, height, colour=2))
    return lines


def _answer_line(wording: xr.Dataset, index: int) -> Line:
    """Build a report's line of the share of yes at each contrast."""
    tested = wording["trials"].values[index] > 0
    contrast, yes, trials = (
        wording[name].values[index][tested]
        for name in (stimulus_axis_of(wording).name, "yes", "trials")
    )
    share = yes / trials
    notes = [f"{count:.0f} answers" for count in trials]
    line = Line("answers", contrast, share, style="points", notes=notes)
    if not are_counts(wording):
        return line
    below, above = wilson(yes, trials)
    return replace(line, low=share - below, high=share + above)


def _wordings(results: Sequence[xr.Dataset], csfs: Sequence[xr.Dataset]) -> Table:
    """Build a table of how each prompt was answered."""
    rows = []
    for result, csf in zip(results, csfs, strict=True):
        table = trial_table(result)
        if "reading" in table:
            rows += [
                [name_of(result), *_wording_cells(table, csf.isel(prompt=i))]
                for i in range(csf.sizes["prompt"])
            ]
    heading = [
        "observer",
        "wording",
        "question",
        "sensitivity",
        "thresholds",
        "yes without a pattern",
        "yes / no",
        "others",
    ]
    caption = (
        "Sensitivity: geometric mean over usable thresholds. yes / no, others: how "
        "replies were read, as text."
    )
    return Table("Wordings", heading, rows, caption, opened=len(rows) <= 12)


def _wording_cells(table: xr.Dataset, wording: xr.Dataset) -> list[str]:
    """Build the table row of one prompt: sensitivity, usable levels, guess rate and replies."""
    name = str(wording["prompt"].values)
    rows = table.isel(trial=as_text(table["prompt"].values) == name)
    usable = wording["usable"].values.astype(bool)
    sensitivity = wording["sensitivity"].values[usable]
    guess = wording["guess"].values
    guess = guess[np.isfinite(guess)]
    readings = Counter(as_text(rows["reading"].values).tolist())
    other_readings = [
        f"{count} {reading}"
        for reading, count in readings.items()
        if reading not in ("yes", "no", "")
    ]
    return [
        name,
        str(rows["prompt_text"].values[0]),
        f"{10 ** np.log10(sensitivity).mean():.3g}" if sensitivity.size else "-",
        f"{usable.sum()}/{usable.size}",
        f"{float(np.median(guess)):.2f}" if guess.size else "-",
        f"{readings['yes']} / {readings['no']}",
        ", ".join(other_readings),
    ]


def _replies(results: Sequence[xr.Dataset]) -> Table:
    """Build a table of the most frequent replies to each prompt, word for word."""
    rows = []
    omitted = 0
    for result in results:
        table = trial_table(result)
        if not {"text", "reply_requested"} <= set(table.variables):
            continue
        requested = table["reply_requested"].values.astype(bool)
        names = ("prompt", "text", "reading")
        columns = [as_text(table[name].values[requested]) for name in names]
        replies = Counter(zip(*columns, strict=True))
        listed: Counter[str] = Counter()
        for (prompt, text, reading), count in replies.most_common():
            listed[prompt] += 1
            if listed[prompt] > _MAX_REPLIES:
                omitted += 1
            else:
                rows.append([name_of(result), prompt, text, reading, str(count)])
    rows.sort(key=lambda row: row[:2])
    caption = "Word for word, equal ones once."
    if omitted:
        caption += f" {omitted} rarer ones are left out."
    heading = ["observer", "wording", "reply", "read as", "times"]
    return Table("Replies", heading, rows, caption, opened=False)
