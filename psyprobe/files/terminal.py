"""What a command is told and what it prints: results on standard output, remarks and progress on
standard error.

Tables are laid out for the terminal, a page or a paper. None of it can steer a terminal.
"""

from __future__ import annotations

import json
import re
import signal
import sys
import textwrap
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from psyprobe.errors import InputError, unknown_name
from psyprobe.files.output import plain_value
from psyprobe.files.parsing import parse_json

#: Ways to lay out a table for reading.
LAYOUTS = ("text", "markdown", "latex")


def printable(text: str) -> str:
    r"""Text with everything but line breaks and visible characters escaped: names come out of files
    and servers.

    Parameters
    ----------
    text : str
        Any.

    Examples
    --------
    >>> print(printable("red \x1b[31m"))
    red \x1b[31m
    """
    return "".join(
        c if c == "\n" or c.isprintable() else c.encode("unicode_escape").decode() for c in text
    )


def printable_line(text: str) -> str:
    r"""As `printable`, with line breaks escaped too: a name in a table, a figure or a title.

    Examples
    --------
    >>> print(printable_line("two\nlines"))
    two\nlines
    """
    return printable(text).replace("\n", r"\n")


def harmless(cell: Any) -> Any:
    r"""A cell of a table that people open in a spreadsheet: text that would run as a formula
    becomes text for good.

    Numbers stay as they are, and so does text that is one.

    Examples
    --------
    >>> harmless("=1+1"), harmless("-0.5"), harmless(-0.5), harmless("a\x1b[31m")
    ("'=1+1", '-0.5', -0.5, 'a\\x1b[31m')
    """
    if not isinstance(cell, str):
        return cell
    try:
        float(cell)
    except ValueError:
        formula = cell.lstrip().startswith(("=", "+", "-", "@"))
        return f"'{printable(cell)}" if formula else printable(cell)
    return cell


def say(text: str) -> None:
    """Print a result, of one line or more, on standard output."""
    print(printable(text))


def tell(text: str) -> None:
    """Print a remark or an error on standard error, as one line: line breaks become spaces."""
    print(printable(" ".join(text.split())), file=sys.stderr)


def show(value: Any, text: str, *, as_json: bool) -> None:
    """Print a result on standard output: as JSON where that is asked for, else as text."""
    say_json(value) if as_json else say(text)


def say_json(value: Any) -> None:
    """Print a result as JSON on standard output: what JSON can hold, without NaN."""
    # JSON escapes control characters by itself; beyond ASCII it would not.
    print(json.dumps(value, indent=2, allow_nan=False, default=plain_value))


#: A decimal number as people write one.
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def settings(words: Sequence[str], option: str) -> dict[str, Any]:
    """Values by name: numbers, JSON where it is JSON (lists, true), text otherwise.

    A word without a value is an `InputError` that names the option.

    Examples
    --------
    >>> settings(["concurrency=16", "base_url=http://localhost:8000/v1"], "--observer-option")
    {'concurrency': 16, 'base_url': 'http://localhost:8000/v1'}
    >>> settings(["contrast=.5"], "--set")
    {'contrast': 0.5}
    """
    found: dict[str, Any] = {}
    for word in words:
        name, sign, value = word.partition("=")
        if not sign or not name:
            raise InputError(f"{option} {word!r} has no value; write {option} NAME=VALUE")
        # JSON knows neither .5 nor 5. nor +1.
        if _NUMBER.fullmatch(value):
            found[name] = float(value) if set(value) & set(".eE") else int(value)
            continue
        try:
            found[name] = parse_json(value, option)
        except InputError:
            found[name] = value
    return found


@contextmanager
def told_to_end() -> Iterator[threading.Event]:
    """Give an event that Ctrl-C and SIGTERM set, in a shell's background too, where Ctrl-C is
    ignored otherwise.
    """
    told = threading.Event()
    earlier = {
        each: signal.signal(each, lambda *_: told.set()) for each in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield told
    finally:
        for each, handler in earlier.items():
            signal.signal(each, handler)


@contextmanager
def progress_bar(total: int, progress: bool | None, unit: str = "image") -> Iterator[Any]:
    """A progress bar on a terminal and in a notebook; elsewhere one that shows nothing.

    Parameters
    ----------
    total : int
        Of what is counted.
    progress : bool or None
        Whether to show it; None for where it can be seen.
    unit : str
        What is counted.
    """
    # A notebook has no terminal but shows a bar; where none is shown, nothing of a notebook's is
    # loaded for it.
    shown = sys.stderr.isatty() or _in_notebook() if progress is None else progress
    if shown:
        from tqdm.auto import tqdm
    else:
        from tqdm import tqdm
    with tqdm(total=total, unit=unit, disable=not shown) as bar:
        yield bar


def _in_notebook() -> bool:
    """Whether a kernel runs this; that its package was imported, as by some library, tells
    nothing.
    """
    shell = sys.modules["IPython"].get_ipython() if "ipykernel" in sys.modules else None
    return shell is not None


def lay_out(layout: str, rows: Sequence[Sequence[str]], lines: Sequence[str] = ()) -> str:
    """A table with its first row as headings and its first column to the left, and lines under it;
    printable.

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
    return {"text": _text, "markdown": _markdown, "latex": _latex}[layout](
        cells, [printable(line) for line in lines]
    )


def _text(rows: Sequence[Sequence[str]], lines: Sequence[str]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    laid = [
        "  ".join(
            [
                row[0].ljust(widths[0]),
                *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True)),
            ]
        ).rstrip()
        for row in rows
    ]
    rule = "-" * max(map(len, laid))
    below = [text for line in lines for text in textwrap.wrap(line, max(60, len(rule)))]
    return "\n".join([laid[0], rule, *laid[1:], *below])


def _markdown(rows: Sequence[Sequence[str]], lines: Sequence[str]) -> str:
    table = [rows[0], ["---", *["---:"] * (len(rows[0]) - 1)], *rows[1:]]
    escaped = [[cell.replace("|", "\\|").replace("<", "&lt;") for cell in row] for row in table]
    return "\n".join(
        ["| " + " | ".join(row) + " |" for row in escaped] + [""] * bool(lines) + list(lines)
    )


def _latex(rows: Sequence[Sequence[str]], lines: Sequence[str]) -> str:
    escapes = str.maketrans(
        {c: f"\\{c}" for c in "&%$#_{}"} | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}"}
    )
    headings = [
        rows[0][0].translate(escapes),
        *(c.translate(escapes).replace(r"r\_s", "$r_s$") for c in rows[0][1:]),
    ]
    body = [" & ".join(headings) + r" \\"]
    body += [" & ".join(cell.translate(escapes) for cell in row) + r" \\" for row in rows[1:]]
    start = rf"\begin{{tabular}}{{l{'r' * (len(rows[0]) - 1)}}}"
    ruled = [start, r"\hline", body[0], r"\hline", *body[1:], r"\hline", r"\end{tabular}"]
    return "\n".join([*ruled, *(f"% {line}" for line in lines)])
