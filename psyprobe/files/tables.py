"""Rows of cells as a table: for the terminal, a page or a paper."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from psyprobe.errors import unknown_name
from psyprobe.files.terminal import printable, printable_line

#: Ways to lay out a table for reading.
LAYOUTS = ("text", "markdown", "latex")


def lay_out(layout: str, rows: Sequence[Sequence[str]], lines: Sequence[str] = ()) -> str:
    """A table with its first row as headings and its first column to the left, and lines under it; printable.

    Parameters
    ----------
    layout : {"text", "markdown", "latex"}
        How.
    rows : sequence of sequence of str
        Cells, all rows of one length.
    lines : sequence of str, optional
        What is said under the table.

    Examples
    --------
    >>> print(lay_out("text", [["observer", "r_s"], ["pixels", "0.47"]]))
    observer   r_s
    --------------
    pixels    0.47
    """
    if layout not in LAYOUTS:
        raise unknown_name("table format", layout, LAYOUTS)
    cells = [[printable_line(cell) for cell in row] for row in rows]
    return {"text": _text, "markdown": _markdown, "latex": _latex}[layout](cells, [printable(line) for line in lines])


def _text(rows: Sequence[Sequence[str]], lines: Sequence[str]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    laid = [
        "  ".join([row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True))]).rstrip()
        for row in rows
    ]
    rule = "-" * max(map(len, laid))
    below = [text for line in lines for text in textwrap.wrap(line, max(60, len(rule)))]
    return "\n".join([laid[0], rule, *laid[1:], *below])


def _markdown(rows: Sequence[Sequence[str]], lines: Sequence[str]) -> str:
    table = [rows[0], ["---", *["---:"] * (len(rows[0]) - 1)], *rows[1:]]
    escaped = [[cell.replace("|", "\\|").replace("<", "&lt;") for cell in row] for row in table]
    return "\n".join(["| " + " | ".join(row) + " |" for row in escaped] + [""] * bool(lines) + list(lines))


def _latex(rows: Sequence[Sequence[str]], lines: Sequence[str]) -> str:
    escapes = str.maketrans({c: f"\\{c}" for c in "&%$#_{}"} | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}"})
    headings = [rows[0][0].translate(escapes), *(c.translate(escapes).replace(r"r\_s", "$r_s$") for c in rows[0][1:])]
    body = [" & ".join(headings) + r" \\"]
    body += [" & ".join(cell.translate(escapes) for cell in row) + r" \\" for row in rows[1:]]
    start = rf"\begin{{tabular}}{{l{'r' * (len(rows[0]) - 1)}}}"
    ruled = [start, r"\hline", body[0], r"\hline", *body[1:], r"\hline", r"\end{tabular}"]
    return "\n".join([*ruled, *(f"% {line}" for line in lines)])
