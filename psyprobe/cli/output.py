"""What leaves the command line: text that cannot steer a terminal, and files that are whole or not there."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from psyprobe.errors import PsyprobeError


def printable(text: str) -> str:
    r"""Text with everything but line breaks and visible characters escaped.

    Parameters
    ----------
    text : str
        Perhaps from a file or a server, which may hold sequences that steer terminals.

    Returns
    -------
    str
        Safe to print.

    Examples
    --------
    >>> print(printable("red \x1b[31m"))
    red \x1b[31m
    """
    return "".join(c if c == "\n" or c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def say(text: str) -> None:
    """Print a result on standard output.

    Parameters
    ----------
    text : str
        One line or more.
    """
    print(printable(text))


def tell(text: str) -> None:
    """Print a remark or an error on standard error, as one line.

    Parameters
    ----------
    text : str
        Line breaks become spaces.
    """
    print(printable(" ".join(text.split())), file=sys.stderr)


def say_json(value: Any) -> None:
    """Print a result as JSON on standard output.

    Parameters
    ----------
    value : object
        What JSON can hold; not NaN.
    """
    # JSON escapes control characters by itself; beyond ASCII it would not.
    print(json.dumps(value, indent=2, allow_nan=False, default=_plain))


def write_whole(path: Path, write: Callable[[Path], object]) -> None:
    """Write a file under another name first, so that nobody ever finds half of it.

    Parameters
    ----------
    path : Path
        Where the file shall be; one that is there is replaced.
    write : callable
        Writes to the path that it is given, which has the same ending.

    Raises
    ------
    PsyprobeError
        The file cannot be written.
    """
    # The ending stays: writers choose the format by it.
    partial = path.with_name(f".{path.stem}.{os.getpid()}{path.suffix}")
    try:
        try:
            write(partial)
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)
    except OSError as error:
        raise PsyprobeError(f"{path} cannot be written: {error.strerror or error}; give another path") from error


def json_text(value: Any) -> str:
    """JSON as it stands in files: sorted, indented, with a line break at the end.

    Parameters
    ----------
    value : object
        What JSON can hold; not NaN.

    Returns
    -------
    str
        The same bytes for the same value.
    """
    return json.dumps(value, indent=2, sort_keys=True, allow_nan=False, ensure_ascii=False, default=_plain) + "\n"


def _plain(value: Any) -> Any:
    """A numpy scalar as Python's own."""
    if hasattr(value, "item"):
        return value.item()
    raise TypeError(f"{type(value).__name__} has no place in JSON")
