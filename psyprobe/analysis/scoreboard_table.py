"""The scoreboard for the terminal, a page, a paper, a spreadsheet or a program."""

from __future__ import annotations

import csv
import io
import json
import textwrap
from typing import Any

from psyprobe.analysis.scoreboard import FLAGS, Entry, Row, Scoreboard, Test
from psyprobe.errors import unknown_name
from psyprobe.files.tables import lay_out
from psyprobe.files.terminal import printable

FORMATS = ("text", "markdown", "latex", "csv", "json")

#: Columns of a text table side by side; more go under each other.
_COLUMNS = 5

_SHORT = {
    "gabor_achromatic": "Gabor ach",
    "noise_achromatic": "noise ach",
    "gabor_red_green": "Gabor RG",
    "gabor_yellow_violet": "Gabor YV",
    "mask_coherent": "mask coh",
    "mask_incoherent": "mask incoh",
    "contrast_matching": "matching",
}


def short_name(test: Test) -> str:
    """A heading that fits above a column.

    Parameters
    ----------
    test : Test
        Column.

    Returns
    -------
    str
        With "(pub)" for experiments as published.

    Examples
    --------
    >>> short_name(Test("contrast_matching_published", "error_mean"))
    'matching mean (pub)'
    """
    name = _SHORT.get(test.base, test.base)
    name += {"alignment": "", "error_mean": " mean", "error_pooled": " pooled"}[test.metric]
    return printable(name + (" (pub)" if test.experiment != test.base else ""))


def scoreboard_table(board: Scoreboard, format: str = "text") -> str:
    """Lay out a scoreboard.

    Parameters
    ----------
    board : Scoreboard
        What to show.
    format : {"text", "markdown", "latex", "csv", "json"}, optional
        "text", "markdown" and "latex" are rounded for reading; "csv" (a line a score) and "json" hold all digits.

    Returns
    -------
    str
        Without a final line break.

    Raises
    ------
    UnknownNameError
        If the format is none of these.
    """
    if format not in FORMATS:
        raise unknown_name("table format", format, FORMATS)
    if format == "csv":
        return _csv(board)
    if format == "json":
        return json.dumps(_json(board), indent=2, allow_nan=False, ensure_ascii=False)
    step = _COLUMNS if format == "text" else len(board.tests)
    blocks = [board.tests[i : i + step] for i in range(0, len(board.tests), step)]
    tables = [lay_out(format, _rows(board, block)) for block in blocks]
    lines = _lines(board)
    if format == "latex":
        lines = [f"% {line}" for line in lines]
    elif format == "text":
        lines = [textwrap.fill(line, 100) for line in lines]
    return "\n\n".join([*tables, *lines])


def _rows(board: Scoreboard, tests: tuple[Test, ...]) -> list[list[str]]:
    heading = ["observer", *map(short_name, tests), "f32 floor"]
    return [heading, *([_name(row), *(_cell(row.entries.get(t), t) for t in tests), _share(row)] for row in board.rows)]


def _name(row: Row) -> str:
    return printable(f"{row.name} (published)" if row.kind == "published" else row.name)


def _cell(entry: Entry | None, test: Test) -> str:
    if entry is None:
        return ""
    digits = 2 if test.more_is_better else 3
    value = "-" if entry.value is None else f"{entry.value:.{digits}f}"
    interval = "" if entry.low is None or entry.high is None else f" [{entry.low:.2f}, {entry.high:.2f}]"
    return value + interval + f" {entry.flags}" * bool(entry.flags)


def _share(row: Row) -> str:
    share = row.float32_floor
    if share is None:
        return "" if row.kind == "baseline" else "-"
    return f"{100 * share:.0f} %"


def _lines(board: Scoreboard) -> list[str]:
    used = {flag for row in board.rows for entry in row.entries.values() for flag in entry.flags}
    notes = [f"{_name(r)}, {t.experiment}: {e.note}." for r in board.rows for t, e in r.entries.items() if e.note]
    interval = "" if board.confidence is None else f" Brackets: {100 * board.confidence:g} % intervals."
    key = (
        "Spearman's r_s of response with multiples of the human threshold, larger is better; matching: root mean "
        f"square error in log10 contrast, smaller is better.{interval} f32 floor: share of the score points that the "
        "paper's float32 arithmetic puts at its floor, mean over tests (-: not known, or no angle is scored)"
    )
    flags = "; ".join(f"{flag}: {FLAGS[flag]}" for flag in FLAGS if flag in used)
    published = any(row.kind == "published" for row in board.rows)
    source = "Published scores: Cai et al. (2025), Figure 6, final table, without intervals."
    # Both errors of matching stand on the same matches.
    above = f"{key}. {flags}." if flags else f"{key}."
    # Both errors of matching stand on the same matches, and so on the same notes.
    return [above, *dict.fromkeys(notes), *[source] * published]


def _records(board: Scoreboard) -> list[dict[str, Any]]:
    return [
        {
            "name": row.name,
            "kind": row.kind,
            "family": row.family,
            "experiment": test.experiment,
            "metric": test.metric,
            "value": entry.value,
            "low": entry.low,
            "high": entry.high,
            "flags": entry.flags,
            "float32_floor": entry.float32_floor,
            "note": entry.note,
        }
        for row in board.rows
        for test, entry in row.entries.items()
    ]


def _csv(board: Scoreboard) -> str:
    stream = io.StringIO()
    records = _records(board)
    writer = csv.DictWriter(stream, list(records[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(records)
    return stream.getvalue().rstrip("\n")


def _json(board: Scoreboard) -> dict[str, Any]:
    return {
        "tests": [
            {"name": t.name, "experiment": t.experiment, "metric": t.metric, "more_is_better": t.more_is_better}
            for t in board.tests
        ],
        "confidence": board.confidence,
        "flags": FLAGS,
        "scores": _records(board),
        "float32_floor": {row.name: row.float32_floor for row in board.rows},
    }
