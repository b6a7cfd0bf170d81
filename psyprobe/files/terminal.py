"""What a command is told and what it prints: results on standard output, remarks and progress on standard error.

Neither can steer a terminal.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from psyprobe.errors import InputError
from psyprobe.files.output import plain_value


def printable(text: str) -> str:
    r"""Text with everything but line breaks and visible characters escaped: names come out of files and servers.

    Parameters
    ----------
    text : str
        Any.

    Examples
    --------
    >>> print(printable("red \x1b[31m"))
    red \x1b[31m
    """
    return "".join(c if c == "\n" or c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def printable_line(text: str) -> str:
    r"""As `printable`, with line breaks escaped too: a name in a table, a figure or a title.

    Examples
    --------
    >>> print(printable_line("two\nlines"))
    two\nlines
    """
    return printable(text).replace("\n", r"\n")


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


def settings(words: Sequence[str], option: str) -> dict[str, Any]:
    """Values by name: JSON where it is JSON (numbers, lists, true), text otherwise.

    A word without a value is an `InputError` that names the option.

    Examples
    --------
    >>> settings(["concurrency=16", "base_url=http://localhost:8000/v1"], "--observer-option")
    {'concurrency': 16, 'base_url': 'http://localhost:8000/v1'}
    """
    found: dict[str, Any] = {}
    for word in words:
        name, sign, value = word.partition("=")
        if not sign or not name:
            raise InputError(f"{option} {word!r} has no value; write {option} NAME=VALUE")
        try:
            found[name] = json.loads(value)
        except (ValueError, RecursionError):
            found[name] = value
    return found


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
    # A notebook has no terminal but shows a bar; where none is shown, nothing of a notebook's is loaded for it.
    shown = sys.stderr.isatty() or "ipykernel" in sys.modules if progress is None else progress
    if shown:
        from tqdm.auto import tqdm
    else:
        from tqdm import tqdm
    with tqdm(total=total, unit=unit, disable=not shown) as bar:
        yield bar
