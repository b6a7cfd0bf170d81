"""What a command prints: results on standard output, remarks on standard error; neither can steer a terminal."""

from __future__ import annotations

import json
import sys
from typing import Any

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
