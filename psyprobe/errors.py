"""What psyprobe raises: each message is one sentence that names the value, what is allowed and the remedy."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class PsyprobeError(Exception):
    """Any failure that psyprobe foresees; the command line prints it as one line."""


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
    """What is shown is not what people saw with whom it is compared, or what answers is not what answered before."""


def unknown_name(kind: str, name: str, valid: Iterable[str]) -> UnknownNameError:
    """An error that lists the valid names and guesses the meant one.

    Parameters
    ----------
    kind : str
        What the name stands for, as a reader would call it ("observer", "colour direction").
    name : str
        The name that was given.
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
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    guess = f"did you mean {near[0]!r}? " if near else ""
    return UnknownNameError(f"unknown {kind} {name!r}; {guess}Known: {', '.join(known) or 'none'}")
