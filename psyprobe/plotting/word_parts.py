"""What observers said, as plain data: ``report`` of probes that ask in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.analysis.responses import levels_of
from psyprobe.analysis.words.comparison import human_line
from psyprobe.analysis.words.csf import chat_csfs
from psyprobe.analysis.words.group import people_curve
from psyprobe.analysis.words.sessions import person_of
from psyprobe.analysis.words.trial_table import trials
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
from psyprobe.plotting.participants import mean_line, sitter_name, sitter_notes
from psyprobe.plotting.people import people_lines
from psyprobe.plotting.trials import wilson
from psyprobe.plotting.words import (
    bounds,
    delivered_label,
    drawn_answers,
    fitted_share,
    sensitivity_label,
)
from psyprobe.running.task import stimulus_axis_of, task_of

if TYPE_CHECKING:
    import xarray as xr

#: Points of a fitted curve.
_CURVE_POINTS = 31
#: Distinct replies to one wording that are listed.
_LISTED = 8


def csf_parts(results: Sequence[xr.Dataset]) -> list[Part]:
    """Sensitivity over the level, with the psychometric functions behind each point, and what was
    said.

    Parameters
    ----------
    results : sequence of xarray.Dataset
        Of runs of one experiment that asks in words.
    """
    csfs = chat_csfs(results)
    (level,) = levels_of(csfs[0])
    values = np.concatenate([csf[level].values for csf in csfs])
    several = people_curve(csfs)
    behind: list[Figure] = []
    lines: list[Line] = []
    for i, csf in enumerate(csfs):
        own = range(len(behind), len(behind) + csf.sizes[level])
        behind += [_functions(csf, place) for place in range(csf.sizes[level])]
        lines.append(_sensitivity(csf, i, list(own), alone=several is None or not person_of(csf)))
        if found := bounds(csf):
            at, bound, side = (
                np.array(each, dtype=np.float64) for each in zip(*found, strict=True)
            )
            notes = [
                "at most: sensitivity is lower" if one < 0 else "at least: sensitivity is higher"
                for one in side
            ]
            which = [own[place] for place in at.astype(int)]
            name = f"{name_of(csf)}, bound"
            places = csf[level].values[at.astype(int)]
            lines.append(
                Line(name, places, bound, style="points", colour=i, notes=notes, behind=which)
            )
    if several is not None:
        lines.insert(0, mean_line(several, len(csfs)))
    people = human_line(csfs[0], None, values.min(), values.max())
    over = [] if people is None else [Line(people[0], people[1], people[2], style="people")]
    over += people_lines(csfs[0])
    x = level_axis(axes.level_label(csfs[0], level), values)
    y = Axis(
        plain_label(sensitivity_label(csfs[0])),
        log=True,
        inverse=stimulus_axis_of(csfs[0]).name.replace("_", " "),
    )
    panel = Panel("", {"": {"": lines}})
    caption = (
        "Geometric mean over wordings, with intervals. A point opens the psychometric "
        "functions behind it."
    )
    if any(person_of(csf) for csf in csfs):
        caption += " Intervals of people hold the error of their screen."
    if several is not None:
        caption += (
            f" The {several.name} has a band over people; theirs are in the tables of scores."
        )
    drawn = Figure("Contrast sensitivity", x, y, [panel], caption, over=over, behind=behind)
    return [drawn, _wordings(results, csfs), _replies(results)]


def _sensitivity(csf: xr.Dataset, colour: int, behind: Sequence[int], alone: bool) -> Line:
    (level,) = levels_of(csf)
    mean, low, high = (csf[f"mean_sensitivity{end}"].values for end in ("", "_low", "_high"))
    usable = [f"{n} of {csf.sizes['prompt']} wordings usable" for n in csf["n_usable"].values]
    usable = sitter_notes(csf) if person_of(csf) else usable
    # An interval without an end runs off the axis.
    ends: tuple[FloatArray | None, FloatArray | None] = (
        np.maximum(low, mean * 1e-3),
        np.minimum(high, mean * 1e3),
    )
    ends = ends if alone else (None, None)
    return Line(
        sitter_name(csf), csf[level].values, mean, *ends, colour=colour, notes=usable, behind=behind
    )


def _functions(csf: xr.Dataset, place: int) -> Figure:
    """The psychometric function of each wording at one level."""
    (level,) = levels_of(csf)
    contrast = csf[stimulus_axis_of(csf).name].values
    low = float(np.nanmin(contrast)) / 1.3
    high = float(np.nanmax(contrast)) * 1.25
    counted = drawn_answers(csf)
    scored = task_of(csf).scored
    names = [str(name) for name in csf["prompt"].values]
    views = {
        name: {"": _function(csf.isel(prompt=p), place, low, high)} for p, name in enumerate(names)
    }
    at = axes.with_unit(float(csf[level].values[place]), unit_symbol(csf[level].attrs))
    y = f"Share of {scored}" if counted else f"P({scored})"
    title = f"{name_of(csf)}, {at}"
    x = Axis(plain_label(delivered_label(csf)), log=True, span=(low, high))
    options = dict.fromkeys(names, y)
    return Figure(
        title, x, Axis(y, span=(0.0, 1.0)), [Panel("", views)], choice="wording", options=options
    )


def _function(one: xr.Dataset, i: int, low: float, high: float) -> list[Line]:
    contrast, yes, trials = (
        one[name].values[i] for name in (stimulus_axis_of(one).name, "yes", "trials")
    )
    use = trials > 0
    share = yes[use] / trials[use]
    reach: tuple[np.ndarray | None, np.ndarray | None] = (None, None)
    if drawn_answers(one):
        below, above = wilson(yes[use], trials[use])
        reach = (share - below, share + above)
    notes = [f"{n:.0f} answers" for n in trials[use]]
    lines = [Line("answers", contrast[use], share, *reach, style="points", notes=notes)]
    if float(one["catch_trials"]):
        said = float(one["catch_yes"])
        asked = float(one["catch_trials"])
        note = [f"{asked:.0f} answers without a pattern, drawn at the left edge"]
        lines.append(
            Line(
                "catch trials",
                np.array([low]),
                np.array([said / asked]),
                style="points",
                colour=5,
                notes=note,
            )
        )
    curve = fitted_share(one, i, np.geomspace(low, high, _CURVE_POINTS))
    if curve is not None:
        x, fitted, height = curve
        t = 10 ** np.array(
            [float(one[f"log10_threshold{end}"].values[i]) for end in ("_low", "", "_high")]
        )
        t = np.where(np.isnan(t), t[1], t).clip(low, high)
        lines += [
            Line("fit", x, fitted),
            Line("threshold and its interval", t, np.full(3, height), colour=2),
        ]
    return lines


def _wordings(results: Sequence[xr.Dataset], csfs: Sequence[xr.Dataset]) -> Table:
    """How each wording was answered."""
    rows = []
    for result, csf in zip(results, csfs, strict=True):
        table = trials(result)
        if "reading" not in table:
            continue
        prompts, readings = (table[name].values.astype(str) for name in ("prompt", "reading"))
        texts = dict(zip(prompts, table["prompt_text"].values.astype(str), strict=True))
        (level,) = levels_of(csf)
        for p, name in enumerate(csf["prompt"].values.astype(str)):
            usable = csf["usable"].values[p].astype(bool)
            found = csf["sensitivity"].values[p][usable]
            mean = f"{10 ** np.log10(found).mean():.3g}" if found.size else "-"
            count = Counter(readings[prompts == name].tolist())
            others = ", ".join(
                f"{n} {kind}" for kind, n in count.items() if kind not in ("yes", "no", "")
            )
            said = f"{count['yes']} / {count['no']}"
            guess = (
                float(np.nanmedian(csf["guess"].values[p]))
                if np.isfinite(csf["guess"].values[p]).any()
                else np.nan
            )
            told = "-" if np.isnan(guess) else f"{guess:.2f}"
            thresholds = f"{usable.sum()}/{csf.sizes[level]}"
            rows.append(
                [name_of(result), name, texts.get(name, ""), mean, thresholds, told, said, others]
            )
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


def _replies(results: Sequence[xr.Dataset]) -> Table:
    """What was said, word for word, the most frequent of each wording."""
    rows = []
    left = 0
    for result in results:
        table = trials(result)
        if not {"text", "reply_requested"} <= set(table.variables):
            continue
        asked = table["reply_requested"].values.astype(bool)
        columns = (table[name].values.astype(str)[asked] for name in ("prompt", "text", "reading"))
        count = Counter(zip(*columns, strict=True))
        shown: Counter[str] = Counter()
        for (prompt, text, read), n in count.most_common():
            shown[prompt] += 1
            if shown[prompt] > _LISTED:
                left += 1
                continue
            rows.append([name_of(result), prompt, text, read, str(n)])
    rows.sort(key=lambda row: row[:2])
    caption = "Word for word, equal ones once." + f" {left} rarer ones are left out." * bool(left)
    return Table(
        "Replies", ["observer", "wording", "reply", "read as", "times"], rows, caption, opened=False
    )
