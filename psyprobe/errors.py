"""What psyprobe raises: each message is one sentence that names the value, what is allowed and the
remedy.
"""

from __future__ import annotations

import difflib
import sys
import textwrap
from collections.abc import Iterable
from pathlib import Path
from types import FrameType
from typing import Any

#: Characters of a message; of what a longer one keeps a third is its end, where the remedy stands.
_LONGEST = 360


def clipped(message: str, most: int = _LONGEST) -> str:
    """A message of which too much is a value, a name or a list, without its middle.

    Examples
    --------
    >>> clipped("size is " + "9" * 5000 + "; give a whole number")
    'size is 999...9 ... 9...9; give a whole number'
    """
    return (
        message
        if len(message) <= most
        else f"{message[: most - most // 3 - 5]} ... {message[-(most // 3) :]}"
    )


class PsyprobeError(Exception):
    """Any failure that psyprobe foresees; the command line prints it as one line. Long messages are
    `clipped`.
    """

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


class UnfinishedError(PsyprobeError):
    """A run stopped before its end though nothing is wrong: what is answered is kept, and the same
    run goes on.
    """


class ConditionWarning(UserWarning):
    """What is shown is not what people saw with whom it is compared, or what answers is not what
    answered before.
    """


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
    near = (
        difflib.get_close_matches(name[:100], known, n=1, cutoff=0.5)
        if isinstance(name, str)
        else []
    )
    guess = f"did you mean {near[0]!r}? " if near else ""
    listed = textwrap.shorten(", ".join(known) or "none", 200, placeholder=" ...")
    return UnknownNameError(f"unknown {kind} {given}; {guess}Known: {listed}")


def own_failure(problem: BaseException, file: str | None = None) -> str:
    """What went wrong in code that is not psyprobe's, in one line that names its file and line.

    Parameters
    ----------
    problem : BaseException
        Caught.
    file : str, optional
        Whose last line that had a part in it is named; by default any file that is neither
        psyprobe's, Python's nor an installed library's.

    Returns
    -------
    str
        Without the place where no such file had a part in it.

    Examples
    --------
    >>> own_failure(ValueError("too dark"))
    'ValueError: too dark'
    """
    where = own_place(problem, file)
    what = " ".join(str(problem).split())
    return f"{where}{': ' * bool(where)}{type(problem).__name__}: {what}".removesuffix(": ")


def own_place(problem: BaseException, file: str | None = None) -> str:
    """The file and the line of `own_failure`, as "my_network.py, line 12"; empty where there is
    none.
    """
    code = file
    line = problem.lineno if file and isinstance(problem, SyntaxError) else None
    trace = problem.__traceback__
    packages = _packages_beside() if file is None else set()
    while trace is not None:
        name = trace.tb_frame.f_code.co_filename
        if name == file if file is not None else _is_own(trace.tb_frame, packages):
            code = name
            line = trace.tb_lineno
        trace = trace.tb_next
    return f"{Path(code).name}, line {line}" if code and line else ""


def _is_own(frame: FrameType, packages: set[str]) -> bool:
    """Whether a frame is of a user's file or of a package that adds to psyprobe."""
    module = str(frame.f_globals.get("__name__", "")).partition(".")[0]
    if module in packages or module.startswith(
        "psyprobe_"
    ):  # as files that a page names are called
        return True
    file = Path(frame.f_code.co_filename)
    library = module == "psyprobe" or module in sys.stdlib_module_names or not file.is_file()
    return not library and not {"site-packages", "dist-packages"} & set(file.parts)


def _packages_beside() -> set[str]:
    # Loaded here: nothing that goes well needs it.
    from importlib.metadata import distributions

    points = (point for distribution in distributions() for point in distribution.entry_points)
    return {
        point.module.partition(".")[0] for point in points if point.group.startswith("psyprobe.")
    }
