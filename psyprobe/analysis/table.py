"""Scores as a table: for the terminal, a page, a paper, a spreadsheet or a program."""

from __future__ import annotations

import csv
import io
import json
import textwrap
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

from psyprobe.analysis import matching_table
from psyprobe.analysis.detection import DetectionScore, ResponderScore
from psyprobe.analysis.iso_response import IsoResponse
from psyprobe.analysis.matching_score import MatchingResponder, MatchingScore
from psyprobe.analysis.words import csf_table
from psyprobe.analysis.words.chat_score import ChatScore
from psyprobe.errors import unknown_name
from psyprobe.files.tables import lay_out
from psyprobe.files.terminal import printable

FORMATS = ("text", "markdown", "latex", "csv", "json")

_HEADINGS = ("", "r_s [interval]", "monotone", "level", "shape", "shift", "RMSE", "reached", "f32 floor", "noise")

_KEY = (
    "r_s: Spearman of response with multiples of the human threshold, and its interval ({confidence} %). monotone: "
    "mean r_s within a slice. level, shape, shift, RMSE: log10 contrast units (0.3 is a factor of two); level: "
    "unevenness along the human curve; shape and shift: of the iso-response curve most like the human one, with the "
    "range of shifts where several fit alike; RMSE: of the one nearest to it; reached: x at which it exists "
    "(without a level grid, as of --score-only, there is no such curve). "
    "f32 floor, noise: share of score points that the paper's float32 arithmetic puts at its floor, and that are not "
    "above the noise floor."
)

#: Shifts that differ by more than this, a factor of two, are given as their range.
_SAME_SHIFT = 0.3

_BASELINES = {"pixels": "pixels (no encoder)", "contrast": "contrast alone"}


Score = DetectionScore | MatchingScore | ChatScore


def score_table(scores: Score | Iterable[Score], format: str = "text") -> str:
    """Lay out scores as a table: the observers of each experiment, and under them the trivial baselines.

    Parameters
    ----------
    scores : DetectionScore, MatchingScore, ChatScore or iterable of these
        What to show, in this order; those of one experiment and measure stand together.
    format : {"text", "markdown", "latex", "csv", "json"}, optional
        "text", "markdown" and "latex" are rounded for reading; "csv" and "json" hold all digits, and "json" all
        statistics.

    Returns
    -------
    str
        Without a final line break.

    Raises
    ------
    UnknownNameError
        If the format is none of these.
    """
    listed = [scores] if isinstance(scores, Score) else list(scores)
    if format not in FORMATS:
        raise unknown_name("table format", format, FORMATS)
    if format == "json":
        return json.dumps([one.to_dict() for one in listed], indent=2, allow_nan=False, ensure_ascii=False)
    if format == "csv":
        return _csv(listed)
    listed.sort(key=_together)
    tables = [_table(format, title, list(group)) for title, group in groupby(listed, key=_together)]
    keys = _keys(listed)
    if format == "latex":
        keys = [f"% {key}" for key in keys]
    elif format == "text":
        keys = [textwrap.fill(key, 100) for key in keys]
    return "\n\n".join([*tables, *keys])


def _keys(listed: Sequence[Score]) -> list[str]:
    detection = [one.score.alignment.confidence for one in listed if isinstance(one, DetectionScore)]
    matching = [one.constancy.mean.confidence for one in listed if isinstance(one, MatchingScore)]
    asked = [one.confidence for one in listed if isinstance(one, ChatScore)]
    return [
        text.format(confidence=_confidences(found))
        for text, found in ((_KEY, detection), (matching_table.KEY, matching), (csf_table.KEY, asked))
        if found
    ]


def _confidences(values: Iterable[float]) -> str:
    return " or ".join(f"{100 * c:g}" for c in sorted(set(values)))


def _together(one: Score) -> str:
    if isinstance(one, ChatScore):
        return csf_table.title(one)
    if isinstance(one, MatchingScore):
        return matching_table.title(one)
    return printable(f"{one.experiment} ({one.measure})")


def _table(layout: str, title: str, group: Sequence[Score]) -> str:
    asked = [one for one in group if isinstance(one, ChatScore)]
    if asked:
        return "\n\n".join(csf_table.tables(layout, asked))
    detection = [one for one in group if isinstance(one, DetectionScore)]
    if detection:
        rows, lines = _rows(detection)
        return lay_out(layout, [[title, *_HEADINGS[1:]], *rows], lines)
    matching = [one for one in group if isinstance(one, MatchingScore)]
    rows = _matching_rows(matching)
    return lay_out(layout, [[title, *matching_table.HEADINGS], *rows], _variant_notes(matching, "mean error"))


def _matching_rows(group: Sequence[MatchingScore]) -> list[list[str]]:
    rows = [
        matching_table.cells(
            _name(one, group), one.score.error, one.score, [_percent(one.float32_floor), _percent(one.below_noise)]
        )
        for one in group
    ]
    seen: list[MatchingResponder] = []
    for one in group:
        if one.pixels is not None and one.pixels not in seen:
            beside = f", as shown to {one.observer}" if seen else ""
            rows.append(matching_table.cells(_BASELINES["pixels"] + beside, one.pixels.error, one.pixels, ["", ""]))
            seen.append(one.pixels)
    return [*rows, matching_table.cells("perfect constancy", group[0].constancy, None, ["", ""])]


def _name(one: DetectionScore | MatchingScore, group: Sequence[DetectionScore | MatchingScore]) -> str:
    several_layers = len({(other.observer, other.layer) for other in group}) > len({other.observer for other in group})
    name = one.observer + (f" / {one.layer}" if several_layers else "")
    return name + (" (random weights)" if one.random_weights else "")


def _rows(group: Sequence[DetectionScore]) -> tuple[list[list[str]], list[str]]:
    """Cells of the observers and of each different baseline, and what must be said about them."""
    named: list[tuple[str, ResponderScore, list[str]]] = []
    for one in group:
        shares = [_percent(one.float32_floor), _percent(one.below_noise)]
        named.append((printable(_name(one, group)), one.score, shares))
    for baseline, label in _BASELINES.items():
        seen: list[ResponderScore] = []
        for one in group:
            responder = getattr(one, baseline)
            if responder not in seen:
                # Observers with other input sizes see other pixels, so their baselines differ a little.
                beside = f", as shown to {one.observer}" if seen else ""
                named.append((printable(label + beside), responder, ["", ""]))
                seen.append(responder)
    rows = [[name, *_cells(responder), *shares] for name, responder, shares in named]
    for attainable in sorted({_number(one.score.alignment.attainable, 3) for one in group}):
        rows.append(["attainable", attainable, *[""] * (len(_HEADINGS) - 2)])
    # Contrast alone has curves wherever a grid was shown, and the key says what a run without one lacks.
    gridded = any(one.contrast.shape is not None for one in group)
    notes = [f"{name}: {note}." for name, responder, _ in named for note in _notes(responder, gridded)]
    return rows, [*_variant_notes(group, "r_s"), *notes]


def _variant_notes(group: Sequence[DetectionScore | MatchingScore], what: str) -> list[str]:
    return [f"{printable(_name(one, group))}: {what} of the {one.variants}." for one in group if one.variants]


def _cells(responder: ResponderScore) -> list[str]:
    alignment, slices, shape, absolute = responder.alignment, responder.slices, responder.shape, responder.absolute
    interval = "" if alignment.low is None else f" [{_number(alignment.low)}, {_number(alignment.high)}]"
    return [
        _number(alignment.value) + interval,
        _number(slices.monotonicity),
        _number(slices.levelness),
        _number(None if shape is None else shape.shape_rmse),
        "-" if shape is None else _shift(shape),
        _number(None if absolute is None else absolute.rmse),
        "-" if shape is None else f"{shape.reached}/{shape.total}",
    ]


def _shift(shape: IsoResponse) -> str:
    low, high = shape.shift_range
    if high - low <= _SAME_SHIFT:
        return _number(shape.shift, sign=True)
    return f"{_number(low, 1, sign=True)} to {_number(high, 1, sign=True)}"


def _notes(responder: ResponderScore, gridded: bool) -> list[str]:
    slices, shape = responder.slices, responder.shape
    notes = [responder.alignment.note] if responder.alignment.note else []
    if slices.constant:
        notes.append(f"{slices.constant} of {slices.total} slices have equal responses and no monotonicity")
    if slices.not_positive:
        notes.append(f"{slices.not_positive} of {slices.total} slices have responses of 0 and no level")
    if slices.slope is not None and slices.levelness is None:
        notes.append("responses do not rise with contrast, so no change of contrast could level them")
    if shape is None:
        notes += ["no response level is crossed at two x or more"] * gridded
    elif shape.recrossed:
        notes.append(f"{shape.recrossed} of {shape.reached} x fall under the level again at higher contrast")
    return notes


def _number(value: float | None, digits: int = 2, sign: bool = False) -> str:
    if value is None:
        return "-"
    return f"{value:{'+' if sign else ''}.{digits}f}"


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.0f} %"


def _csv(scores: Sequence[Score]) -> str:
    """One row for each observer and baseline, every statistic that is a single value."""
    stream = io.StringIO()
    rows = [row for one in scores for row in _records(one)]
    columns = list(dict.fromkeys(column for row in rows for column in row))
    writer = csv.DictWriter(stream, columns or ["experiment"], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return stream.getvalue().rstrip("\n")


def _records(one: Score) -> list[dict[str, Any]]:
    if isinstance(one, ChatScore):
        return csf_table.flat(one)
    return _flat(one) if isinstance(one, DetectionScore) else matching_table.flat(one)


def _flat(one: DetectionScore) -> list[dict[str, Any]]:
    rows = []
    for name in ("score", "pixels", "contrast"):
        responder: ResponderScore = getattr(one, name)
        alignment, slices = responder.alignment, responder.slices
        shape, absolute = responder.shape, responder.absolute
        rows.append(
            {
                "experiment": one.experiment,
                "measure": one.measure,
                "observer": one.observer,
                "layer": one.layer,
                "random_weights": int(one.random_weights),
                "responder": "observer" if name == "score" else name,
                "alignment": alignment.value,
                "alignment_low": alignment.low,
                "alignment_high": alignment.high,
                "confidence": alignment.confidence,
                "attainable": alignment.attainable,
                "monotonicity": slices.monotonicity,
                "slope": slices.slope,
                "levelness_log10": slices.levelness,
                "shape_rmse_log10": shape and shape.shape_rmse,
                "shape_level": shape and shape.level,
                "shift_log10": shape and shape.shift,
                "shift_low_log10": shape and shape.shift_range[0],
                "shift_high_log10": shape and shape.shift_range[1],
                "absolute_rmse_log10": absolute and absolute.rmse,
                "absolute_level": absolute and absolute.level,
                "reached": shape and shape.reached,
                "total": shape and shape.total,
                "recrossed": shape and shape.recrossed,
                "float32_floor": one.float32_floor if name == "score" else None,
                "noise_floor": one.noise_floor if name == "score" else None,
                "below_noise": one.below_noise if name == "score" else None,
                **matching_table.variant_columns(one.variants if name == "score" else None),
                "note": "; ".join(_notes(responder, one.contrast.shape is not None)),
            }
        )
    return rows
