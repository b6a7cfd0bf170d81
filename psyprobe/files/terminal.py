"""Read the settings of a command, and print results, remarks, progress and tables.

Results go to standard output, remarks and progress to standard error. No text that is printed can
control a terminal.
"""

from __future__ import annotations

import json
import re
import signal
import sys
import textwrap
import threading
from argparse import Namespace
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from psyprobe.errors import InputError, unknown_name
from psyprobe.files.json_types import JsonObject
from psyprobe.files.output import plain_value
from psyprobe.files.parsing import parse_json

#: Layouts of a table for reading.
LAYOUTS = ("text", "markdown", "latex")


def printable(text: str) -> str:
    r"""Escape invisible characters but line breaks in a text that came from a file or server.

    Examples
    --------
    >>> print(printable("red \x1b[31m"))
    red \x1b[31m
    """
    if text.isprintable():
        return text
    return "".join(
        c if c == "\n" or c.isprintable() else c.encode("unicode_escape").decode()
        for c in text
    )


def printable_line(text: str) -> str:
    r"""Escape invisible characters and line breaks in a name for a table, figure or title.

    Examples
    --------
    >>> print(printable_line("two\nlines"))
    two\nlines
    """
    return printable(text).replace("\n", r"\n")


def harmless(cell: Any) -> Any:
    r"""Escape a cell of a spreadsheet, so that no text in it runs as a formula.

    Numbers stay as they are, and so does the text of a number.

    Examples
    --------
    >>> harmless("=1+1"), harmless("-0.5"), harmless(-0.5), harmless("a\x1b[31m")
    ("'=1+1", '-0.5', -0.5, 'a\\x1b[31m')
    """
    if not isinstance(cell, str):
        return cell
    is_formula = cell.lstrip().startswith(("=", "+", "-", "@"))
    if cell.isprintable() and not is_formula:
        return cell
    try:
        float(cell)
    except ValueError:
        return f"'{printable(cell)}" if is_formula else printable(cell)
    return cell


def say(text: str) -> None:
    """Print a result, of one line or more, on standard output."""
    print(printable(text))


def tell(text: str) -> None:
    """Print a remark or an error on standard error, as one line: line breaks become spaces."""
    print(printable(" ".join(text.split())), file=sys.stderr)


def show(value: Any, text: str, arguments: Namespace) -> None:
    """Print a result on standard output, as JSON if the command-line arguments ask so, else as
    text.
    """
    if arguments.json:
        say_json(value)
    else:
        say(text)


def say_json(value: Any) -> None:
    """Print a result as JSON, without NaN, on standard output."""
    # JSON escapes control characters by itself; beyond ASCII it would not.
    print(json.dumps(value, indent=2, allow_nan=False, default=plain_value))


#: Decimal numbers as people write them.
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def settings(words: Sequence[str], option: str) -> JsonObject:
    """Parse NAME=VALUE words of an option to a table: numbers, other JSON, or else text.

    A word without a value is an `InputError` that names the option.

    Examples
    --------
    >>> settings(["concurrency=16", "base_url=http://localhost:8000/v1"], "--observer-option")
    {'concurrency': 16, 'base_url': 'http://localhost:8000/v1'}
    >>> settings(["contrast=.5"], "--set")
    {'contrast': 0.5}
    """
    values: JsonObject = {}
    for word in words:
        name, sign, value = word.partition("=")
        if not sign or not name:
            raise InputError(
                f"{option} {word!r} has no value; write {option} NAME=VALUE"
            )
        text = value
        if _NUMBER.fullmatch(value):
            # JSON knows neither .5 nor 5. nor +1.
            text = re.sub(r"(?<!\d)\.", "0.", value.removeprefix("+"))
            text = re.sub(r"\.(?!\d)", ".0", text)
        try:
            values[name] = parse_json(text, option)
        except InputError:
            values[name] = value
    return values


@contextmanager
def stop_event() -> Iterator[threading.Event]:
    """Provide an event that Ctrl-C and SIGTERM set, also in the background of a shell."""
    stop = threading.Event()
    earlier_handlers = {
        number: signal.signal(number, lambda *_: stop.set())
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield stop
    finally:
        for number, handler in earlier_handlers.items():
            signal.signal(number, handler)


@contextmanager
def progress_bar(
    total: int, progress: bool | None, unit: str = "image"
) -> Iterator[Any]:
    """Show a progress bar on a terminal or in a notebook, and nothing elsewhere.

    Parameters
    ----------
    total : int
        Number of units.
    progress : bool or None
        Whether to show it; None for where it can be seen.
    unit : str
        Name of a unit.
    """
    is_visible = sys.stderr.isatty() or _in_notebook() if progress is None else progress
    # A bar that is not visible needs no packages of notebooks.
    if is_visible:
        from tqdm.auto import tqdm
    else:
        from tqdm import tqdm
    with tqdm(total=total, unit=unit, disable=not is_visible) as bar:
        yield bar


def _in_notebook() -> bool:
    """Tell whether this process is a notebook's kernel."""
    shell = sys.modules["IPython"].get_ipython() if "ipykernel" in sys.modules else None
    return shell is not None


def lay_out(
    layout: str, rows: Sequence[Sequence[str]], lines: Sequence[str] = ()
) -> str:
    """Lay out rows, the first of them headings, as text, Markdown or LaTeX, with lines below.

    Parameters
    ----------
    layout : {"text", "markdown", "latex"}
        Form of the table.
    rows : sequence of sequence of str
        Cells, all rows of equal length; the first column is aligned to the left.
    lines : sequence of str, optional
        Notes under the table.

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
    write = {
        "text": _format_text,
        "markdown": _format_markdown,
        "latex": _format_latex,
    }[layout]
    return write(cells, [printable(line) for line in lines])


def _format_text(rows: Sequence[Sequence[str]], lines: Sequence[str]) -> str:
    """Align rows of cells as plain text, with a rule below the heading and wrapped notes."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    aligned = []
    for row in rows:
        numbers = [cell.rjust(width) for cell, width in zip(row, widths, strict=True)]
        aligned.append("  ".join([row[0].ljust(widths[0]), *numbers[1:]]).rstrip())
    rule = "-" * max(map(len, aligned))
    notes = [text for line in lines for text in textwrap.wrap(line, max(60, len(rule)))]
    return "\n".join([aligned[0], rule, *aligned[1:], *notes])


def _format_markdown(rows: Sequence[Sequence[str]], lines: Sequence[str]) -> str:
    """Format rows of cells as a Markdown table, with notes below."""
    table = [rows[0], ["---", *["---:"] * (len(rows[0]) - 1)], *rows[1:]]
    escaped = [
        [cell.replace("|", "\\|").replace("<", "&lt;") for cell in row] for row in table
    ]
    body = [f"| {' | '.join(row)} |" for row in escaped]
    return "\n".join([*body, *[""] * bool(lines), *lines])


def _format_latex(rows: Sequence[Sequence[str]], lines: Sequence[str]) -> str:
    """Format rows of cells as a LaTeX tabular, with notes as comments."""
    escapes = str.maketrans(
        {c: f"\\{c}" for c in "&%$#_{}"}
        | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}"}
    )
    body = [[cell.translate(escapes) for cell in row] for row in rows]
    body[0][1:] = [cell.replace(r"r\_s", "$r_s$") for cell in body[0][1:]]
    heading, *others = [" & ".join(row) + r" \\" for row in body]
    start = rf"\begin{{tabular}}{{l{'r' * (len(rows[0]) - 1)}}}"
    table = [start, r"\hline", heading, r"\hline", *others, r"\hline", r"\end{tabular}"]
    return "\n".join([*table, *(f"% {line}" for line in lines)])
