"""Contrast sensitivity functions of one's own, from a package or a file, under the shared call."""

from __future__ import annotations

import inspect
import reprlib
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from psyprobe._typing import FloatArray
from psyprobe.errors import InputError, unknown_name
from psyprobe.human.signature import Limits


@dataclass(frozen=True)
class OwnCsf:
    """A function under the shared call: it gets those keywords that it takes, and may take others of its own.

    What goes wrong in the function is an `InputError` that names its file and the line.
    """

    function: Callable[..., Any]
    limits: Limits
    file: str

    def __call__(self, frequency: npt.ArrayLike | None = None, **conditions: Any) -> FloatArray:
        given = self.limits.check({"frequency": frequency} | conditions)
        try:
            values = self.function(**given)
        except Exception as problem:
            raise InputError(f"{self.limits.name} fails at {told(problem, self.file)}") from problem
        found = np.asarray(values)
        if found.dtype.kind not in "iuf":
            raise InputError(f"{self.limits.name} gives {reprlib.repr(values)}, but it must give real numbers")
        sensitivity: FloatArray = found.astype(np.float64)[()]
        return sensitivity


def own_csf(name: str, function: Callable[..., Any], source: str) -> OwnCsf:
    """A function under the shared call, with what it needs and takes as its parameters tell.

    Raises
    ------
    InputError
        The function takes arguments by place or any keyword, so that its inputs cannot be told.

    Examples
    --------
    >>> own = own_csf("mine", lambda frequency, orientation=0: 100 / frequency, "")
    >>> float(own(4, luminance=None)), own.limits.needs, own.limits.takes
    (25.0, ('frequency',), ('orientation',))
    """
    parameters = inspect.signature(function).parameters.values()
    for each in parameters:
        if each.kind in (each.VAR_KEYWORD, each.VAR_POSITIONAL, each.POSITIONAL_ONLY):
            raise InputError(f"{name} takes {str(each)!r}; give its inputs names, such as frequency and luminance")
    needs = tuple(each.name for each in parameters if each.default is each.empty)
    takes = tuple(each.name for each in parameters if each.default is not each.empty)
    code = getattr(function, "__code__", None)
    return OwnCsf(function, Limits(name, needs, takes, source=source), code.co_filename if code else "")


def load_own_csf(place: str, folder: Path) -> OwnCsf:
    """The function of a Python file, under the shared call.

    Parameters
    ----------
    place : str
        "FILE.py:FUNCTION".
    folder : Path
        Where the file is looked for.
    """
    file, _, name = place.rpartition(":")
    path = folder / file
    if not path.is_file():
        raise InputError(f"there is no file {file!r} in {folder}; write human.model as FILE.py:FUNCTION")
    module = ModuleType(f"psyprobe_human_{path.stem}")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module  # where dataclasses look up the names in their annotations
    try:
        exec(compile(path.read_bytes(), str(path), "exec"), vars(module))
    except (Exception, SystemExit) as problem:
        raise InputError(f"{place} cannot be loaded: {told(problem, str(path))}") from problem
    function = getattr(module, name, None)
    if not callable(function):
        own = [key for key, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__]
        raise unknown_name(f"function in {file}", name, own)
    return own_csf(place, function, str(path))


def told(problem: BaseException, file: str) -> str:
    """What went wrong, in one line that names the file, and the last of its lines that had a part in it."""
    line = problem.lineno if isinstance(problem, SyntaxError) else None
    trace = problem.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == file:
            line = trace.tb_lineno
        trace = trace.tb_next
    where = f"{Path(file).name}, line {line}: " if line else ""
    what = " ".join(str(problem).split())
    return f"{where}{type(problem).__name__}: {what}".removesuffix(": ")
