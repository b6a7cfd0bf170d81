"""Errors of psyprobe: a message is one sentence with the value, what is allowed and the remedy."""

from __future__ import annotations

import difflib
import sys
import textwrap
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

#: Characters of a message.
_MAX_LENGTH = 360


def clipped(message: str, max_length: int = _MAX_LENGTH) -> str:
    """Cut the middle out of a message that is too long, and keep the remedy at its end.

    Examples
    --------
    >>> clipped("size is " + "9" * 5000 + "; give a whole number")
    'size is 999...9 ... 9...9; give a whole number'
    """
    if len(message) <= max_length:
        return message
    end = max_length // 3
    start = max_length - end - 5
    return f"{message[:start]} ... {message[-end:]}"


class PsyprobeError(Exception):
    """A failure that psyprobe foresees; the command line prints it as one line."""

    def __init__(self, message: str) -> None:
        super().__init__(clipped(message))


class InputError(PsyprobeError, ValueError):
    """A value that cannot be used."""


class UnknownNameError(InputError):
    """A name that is in no registry."""


class GamutError(InputError):
    """Light that the display cannot show."""


class WeightsError(PsyprobeError):
    """Weights that an observer needs are not on this machine."""


class StoreError(PsyprobeError):
    """The store cannot be read or written."""


class UnfinishedError(PsyprobeError):
    """A run stopped early though nothing is wrong; its answers are stored, and it can go on."""


class ConditionWarning(UserWarning):
    """Conditions differ from those of the people compared with, or from those of stored answers."""


def unknown_name(kind: str, name: Any, valid: Iterable[str]) -> UnknownNameError:
    """Build an error that lists the valid names and suggests the nearest one.

    Parameters
    ----------
    kind : str
        What the name stands for, as a reader would call it ("observer", "colour direction").
    name : Any
        The name that does not exist, or whatever stands in its place.
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
    names = sorted(valid)
    matches = []
    if isinstance(name, str):
        matches = difflib.get_close_matches(name[:100], names, n=1, cutoff=0.5)
    suggestion = f"did you mean {matches[0]!r}? " if matches else ""
    listing = textwrap.shorten(", ".join(names) or "none", 200, placeholder=" ...")
    return UnknownNameError(
        f"unknown {kind} {name!r:.100}; {suggestion}Known: {listing}"
    )


def check_known(kind: str, names: Iterable[Any], valid: Collection[str]) -> None:
    """Refuse the first name that is not among the valid ones, suggesting the nearest."""
    for name in names:
        if name not in valid:
            raise unknown_name(kind, name, valid)


def describe_failure(problem: BaseException, file: str | None = None) -> str:
    """Describe an exception of a user's or plug-in's code in one line, with its file and line.

    Parameters
    ----------
    problem : BaseException
        The exception that was caught.
    file : str, optional
        File to locate the failure in; by default any file that is neither psyprobe's, Python's nor
        an installed library's.

    Returns
    -------
    str
        Type and message of the exception, after its location if the traceback has one.

    Examples
    --------
    >>> describe_failure(ValueError("too dark"))
    'ValueError: too dark'
    """
    location = locate_failure(problem, file)
    prefix = f"{location}: " if location else ""
    message = " ".join(str(problem).split())
    return f"{prefix}{type(problem).__name__}: {message}".removesuffix(": ")


def locate_failure(problem: BaseException, file: str | None = None) -> str:
    """Return where user code failed, as "my_network.py, line 12", or "" if it had no part in it.

    Parameters are those of `describe_failure`.
    """
    location = file
    line = problem.lineno if file and isinstance(problem, SyntaxError) else None
    packages = set() if file else _plugin_packages()
    trace = problem.__traceback__
    while trace is not None:
        name = trace.tb_frame.f_code.co_filename
        if (
            name == file
            if file is not None
            else _is_user_code(trace.tb_frame, packages)
        ):
            location = name
            line = trace.tb_lineno
        trace = trace.tb_next
    return f"{Path(location).name}, line {line}" if location and line else ""


def _is_user_code(frame: FrameType, plugin_packages: set[str]) -> bool:
    """Tell whether a stack frame is of a user's file or of a plug-in of psyprobe."""
    module = str(frame.f_globals.get("__name__", "")).partition(".")[0]
    if module == "psyprobe" or module in sys.stdlib_module_names:
        return False
    # Files that an experiment names run as modules whose names start with "psyprobe_".
    if module in plugin_packages or module.startswith("psyprobe_"):
        return True
    file = Path(frame.f_code.co_filename)
    return file.is_file() and not {"site-packages", "dist-packages"} & set(file.parts)


def _plugin_packages() -> set[str]:
    """List the top-level modules that installed packages register as psyprobe plug-ins."""
    # Loaded here: only a failure needs it.
    from importlib import metadata

    points = (
        point for package in metadata.distributions() for point in package.entry_points
    )
    groups = (point for point in points if point.group.startswith("psyprobe."))
    return {point.module.partition(".")[0] for point in groups}


#: What a server's status says of a failure.
_STATUS_KINDS = {0: "unreachable", 401: "refused", 403: "refused", 404: "not_found"}
_STATUS_KINDS |= {408: "timeout", 429: "quota", 504: "timeout"}
_ERROR_KINDS = (
    (UnknownNameError, "not_found"),
    (WeightsError, "not_found"),
    (StoreError, "changed"),
    (InputError, "unfit"),
    (MemoryError, "memory"),
    (PsyprobeError, "refused"),
)


def failure_kind(error: BaseException) -> str:
    """Name the kind of a failure, as ``run.json`` of a registry does.

    Examples
    --------
    >>> failure_kind(WeightsError("no weights")), failure_kind(ZeroDivisionError())
    ('not_found', 'internal')
    """
    for cause in _causes(error):
        status = getattr(cause, "status", None)
        if isinstance(status, int):
            return _STATUS_KINDS.get(status, "refused")
    kinds = (kind for type_, kind in _ERROR_KINDS if isinstance(error, type_))
    return next(kinds, "internal")


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Iterate over an error and what led to it."""
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__ or cause.__context__
