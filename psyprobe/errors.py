"""What psyprobe raises: each message is one sentence that names the value, what is allowed and the remedy."""

from __future__ import annotations

import difflib
import textwrap
from collections.abc import Iterable
from typing import Any

#: Characters of a message, and of what a longer one keeps of its end, where the remedy stands.
_LONGEST, _END = 360, 150


def clipped(message: str) -> str:
    """A message of which too much is a value, a name or a list, without its middle.

    Examples
    --------
    >>> clipped("size is " + "9" * 5000 + "; give a whole number")
    'size is 999...9 ... 9...9; give a whole number'
    """
    if len(message) <= _LONGEST:
        return message
    return f"{message[: _LONGEST - _END]} ... {message[-_END:]}"


class PsyprobeError(Exception):
    """Any failure that psyprobe foresees; the command line prints it as one line. Long messages are `clipped`."""

    def __init__(self, message: str) -> None:
        super().__init__(clipped(message))


class InputError(PsyprobeError, ValueError):
    """A value that was asked for cannot be used."""


class UnknownNameError(InputError):
    """A name that is in no registry."""


class GamutError(InputError):
    """Light that the display cannot show."""


class WeightsError(PsyprobeError):
    """Weights that an observer needs are not on this machine."""


class StoreError(PsyprobeError):
    """The store cannot be read or written."""


class ConditionWarning(UserWarning):
    """What is shown is not what people saw with whom it is compared."""


def unknown_name(kind: str, name: Any, valid: Iterable[str]) -> UnknownNameError:
    """An error that lists the valid names, as many as have room, and guesses the meant one.

    Parameters
    ----------
    kind : str
        What the name stands for, as a reader would call it ("observer", "colour direction").
    name : str
        The name that was given, or what was given in place of one.
    valid : iterable of str
        The names that exist.

    Returns
    -------
    UnknownNameError
        To be raised by the caller.

    Examples
    --------
    >>> print(unknown_name("probe", "detektion", ["detection", "matching"]))
    unknown probe 'detektion'; did you mean 'detection'? Known: detection, matching
    """
    known = sorted(valid)
    given = f"{name!r:.100}"
    near = difflib.get_close_matches(name[:100], known, n=1, cutoff=0.5) if isinstance(name, str) else []
    guess = f"did you mean {near[0]!r}? " if near else ""
    listed = textwrap.shorten(", ".join(known) or "none", 200, placeholder=" ...")
    return UnknownNameError(f"unknown {kind} {given}; {guess}Known: {listed}")
