"""The contrast sensitivity functions by name: ours, and those of installed packages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from types import MappingProxyType

from psyprobe.errors import InputError, unknown_name
from psyprobe.human import barten, castle, stela, watson_ahumada, watson_malo
from psyprobe.human.own import OwnCsf, own_csf
from psyprobe.human.signature import ContrastSensitivity, Limits

ENTRY_POINTS = "psyprobe.human"

_OURS: Mapping[str, tuple[ContrastSensitivity, Limits]] = {
    "castle_csf": (castle.castle_csf, castle.LIMITS),
    "stela_csf": (stela.stela_csf, stela.LIMITS),
    "barten_csf": (barten.barten_csf, barten.LIMITS),
    "watson_malo_csf": (watson_malo.watson_malo_csf, watson_malo.LIMITS),
    "watson_ahumada_csf": (watson_ahumada.watson_ahumada_csf, watson_ahumada.LIMITS),
}
#: Our models by name, as an experiment file names them.
CSF_MODELS: Mapping[str, ContrastSensitivity] = MappingProxyType({name: model for name, (model, _) in _OURS.items()})


@dataclass(frozen=True)
class HumanRow:
    """One line of the listing of what people can be represented by."""

    #: What an experiment page names.
    name: str
    #: What it is, in a few words.
    summary: str
    #: The paper, or the package that brings it.
    source: str
    #: Why it cannot be used here; empty where it can.
    obstacle: str = ""


def csf(name: str) -> ContrastSensitivity:
    """The contrast sensitivity function of that name, one of `csf_names`.

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
    return model.limits if isinstance(model, OwnCsf) else _OURS[name][1]


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
    ours = [HumanRow(name, _first_line(model), limits.source) for name, (model, limits) in _OURS.items()]
    return ours + [_row(point) for point in _points()]


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
