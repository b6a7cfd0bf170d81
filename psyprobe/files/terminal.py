"""What a command prints: results on standard output, remarks and errors on standard error."""

from __future__ import annotations

import json
import sys
from typing import Any

from psyprobe.files.output import plain_value, printable


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


def show(value: Any, text: str, *, as_json: bool) -> None:
    """Print a result on standard output: as JSON where that is asked for, else as text."""
    say_json(value) if as_json else say(text)


def say_json(value: Any) -> None:
    """Print a result as JSON on standard output.

    Parameters
    ----------
    value : object
        What JSON can hold; not NaN.
    """
    # JSON escapes control characters by itself; beyond ASCII it would not.
    print(json.dumps(value, indent=2, allow_nan=False, default=plain_value))
