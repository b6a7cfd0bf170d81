"""The contrast sensitivity functions by name: ours, those of installed packages, and those in a file of one's own."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import MappingProxyType, ModuleType

from psyprobe.errors import InputError, unknown_name
from psyprobe.human import barten, castle, stela, watson_ahumada, watson_malo
from psyprobe.human.signature import ContrastSensitivity, Limits, OwnCsf, own_csf

ENTRY_POINTS = "psyprobe.human"

#: Our models by name, as an experiment file names them.
CSF_MODELS: Mapping[str, ContrastSensitivity] = MappingProxyType(
    {
        "castle_csf": castle.castle_csf,
        "stela_csf": stela.stela_csf,
        "barten_csf": barten.barten_csf,
        "watson_malo_csf": watson_malo.watson_malo_csf,
        "watson_ahumada_csf": watson_ahumada.watson_ahumada_csf,
    }
)
_LIMITS: Mapping[str, Limits] = MappingProxyType(
    {
        "castle_csf": castle.LIMITS,
        "stela_csf": stela.LIMITS,
        "barten_csf": barten.LIMITS,
        "watson_malo_csf": watson_malo.LIMITS,
        "watson_ahumada_csf": watson_ahumada.LIMITS,
    }
)


@dataclass(frozen=True)
class HumanRow:
    """One line of the listing of what people can be represented by."""

    name: str
    """What an experiment page names."""
    summary: str
    """What it is, in a few words."""
    source: str
    """The paper, or the package that brings it."""
    obstacle: str = ""
    """Why it cannot be used here; empty where it can."""


def csf(name: str) -> ContrastSensitivity:
    """The contrast sensitivity function of that name, one of `csf_names`.

    Raises
    ------
    UnknownNameError
        If there is no model of that name; the message names the nearest.
    InputError
        If the package that brings it is broken.

    Examples
    --------
    >>> float(csf("castle_csf")(4, luminance=100, direction="achromatic", area=1).round(2))
    134.61
    >>> csf("castel_csf")
    Traceback (most recent call last):
    psyprobe.errors.UnknownNameError: unknown contrast sensitivity function 'castel_csf'; did you mean 'castle_csf'? ...
    """
    if name in CSF_MODELS:
        return CSF_MODELS[name]
    points = {point.name: point for point in _points()}
    if name not in points:
        raise unknown_name("contrast sensitivity function", name, csf_names())
    return _load(points[name])


def csf_limits(name: str) -> Limits:
    """What the model of a name can be asked; errors as in `csf`."""
    model = csf(name)
    return model.limits if isinstance(model, OwnCsf) else _LIMITS[name]


def csf_names() -> tuple[str, ...]:
    """Names of all models, those of installed packages (entry points ``psyprobe.human``) included."""
    return (*CSF_MODELS, *(point.name for point in _points() if point.name not in CSF_MODELS))


def list_csf() -> list[HumanRow]:
    """All models; one whose package is broken says why in its row, and takes nothing else along.

    Examples
    --------
    >>> list_csf()[0].name, list_csf()[0].source
    ('castle_csf', 'Ashraf, Mantiuk, Chapiro, Wuerger (2024), Journal of Vision 24(4):5')
    """
    ours = [HumanRow(name, _first_line(model), _LIMITS[name].source) for name, model in CSF_MODELS.items()]
    return ours + [_row(point) for point in _points()]


def load_own_csf(place: str, folder: Path) -> OwnCsf:
    """The function of a Python file, under the shared call.

    Parameters
    ----------
    place : str
        "FILE.py:FUNCTION"; the file is looked for beside the page.
    folder : Path
        Of the page.

    Raises
    ------
    InputError
        There is no such file or function, or running the file fails; with the file and, where there is one, the line.
    """
    file, _, name = place.rpartition(":")
    path = folder / file
    if not path.is_file():
        raise InputError(f"there is no file {file}, looked for in {folder}; write FILE.py:FUNCTION")
    module = ModuleType(f"psyprobe_human_{path.stem}")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module  # where dataclasses look for the names in their annotations
    try:
        exec(compile(path.read_bytes(), str(path), "exec"), vars(module))
    except (Exception, SystemExit) as problem:
        raise InputError(f"{told(problem, path)}, so that {place} cannot be used") from problem
    function = getattr(module, name, None)
    if not callable(function):
        own = [key for key, value in vars(module).items() if callable(value) and value.__module__ == module.__name__]
        raise unknown_name(f"function in {file}", name, own)
    return own_csf(place, function, str(path))


def told(problem: BaseException, path: Path) -> str:
    """What went wrong, in one line that names the file, and the last of its lines that had a part in it."""
    line = problem.lineno if isinstance(problem, SyntaxError) else None
    trace = problem.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == str(path):
            line = trace.tb_lineno
        trace = trace.tb_next
    what = " ".join(str(problem).split()) or "no message"
    return f"{path.name}{f', line {line}' if line else ''}: {type(problem).__name__}: {what}"


def _points() -> list[EntryPoint]:
    return sorted(entry_points(group=ENTRY_POINTS), key=lambda point: (point.name, point.value))


def _load(point: EntryPoint) -> OwnCsf:
    try:
        function = point.load()
        if not callable(function):
            raise TypeError("it is not a function")
        return own_csf(point.name, function, _source(point))
    except (Exception, SystemExit) as problem:
        what = " ".join(str(problem).split())
        raise InputError(
            f"{point.name} of {_source(point)} cannot be loaded: {type(problem).__name__}: {what}"
        ) from problem


def _row(point: EntryPoint) -> HumanRow:
    if point.name in CSF_MODELS:
        return HumanRow(point.name, "broken", _source(point), "the name is taken by a model of psyprobe; rename it")
    try:
        return HumanRow(point.name, _first_line(_load(point).function), _source(point))
    except InputError as problem:
        return HumanRow(point.name, "broken", _source(point), str(problem))


def _source(point: EntryPoint) -> str:
    return f"{point.dist.name} {point.dist.version}" if point.dist else point.value


def _first_line(model: object) -> str:
    return ((model.__doc__ or "").strip().splitlines() or [""])[0]
