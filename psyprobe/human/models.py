"""What people see, as functions by name: ours, those of installed packages, and those of a file."""

from __future__ import annotations

import inspect
import reprlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from psyprobe._typing import FloatArray
from psyprobe.errors import InputError, describe_failure, unknown_name
from psyprobe.files.programs import run_file
from psyprobe.human import achromatic, castle, flicker
from psyprobe.human.signature import ContrastSensitivity, Limits

ENTRY_POINTS = "psyprobe.human"

_OURS: Mapping[str, tuple[ContrastSensitivity, Limits]] = {
    "castle_csf": (castle.castle_csf, castle.LIMITS),
    "stela_csf": (achromatic.stela_csf, achromatic.STELA_LIMITS),
    "barten_csf": (achromatic.barten_csf, achromatic.BARTEN_LIMITS),
    "watson_malo_csf": (achromatic.watson_malo_csf, achromatic.WATSON_MALO_LIMITS),
    "watson_ahumada_csf": (achromatic.watson_ahumada_csf, achromatic.WATSON_AHUMADA_LIMITS),
    "ela_tcsf": (flicker.ela_tcsf, flicker.ELA_LIMITS),
}
#: Our models by name, as an experiment file names them.
CSF_MODELS: Mapping[str, ContrastSensitivity] = {name: model for name, (model, _) in _OURS.items()}


#: What figures, tables and pages call those whose name as it is typed is no name.
_LABELS = {
    "castle_csf": "castleCSF",
    "stela_csf": "stelaCSF",
    "barten_csf": "Barten",
    "watson_malo_csf": "Watson-Malo",
    "watson_ahumada_csf": "Watson-Ahumada HPmH",
    "ela_tcsf": "elaTCSF",
    "foley1994": "Foley 1994",
    "foley1994_orientation": "Foley 1994",
    "gegenfurtner_kiper1992": "Gegenfurtner & Kiper 1992",
    "georgeson_sullivan1975": "Georgeson & Sullivan 1975",
    "legge_foley1980": "Legge & Foley 1980",
    "meese2007": "Meese et al. 2007",
    "meese2007_cross": "Meese et al. 2007",
    "meese2007_rjs": "Meese et al. 2007",
    "foley1994_fit": "fit to Foley 1994",
    "dipper": "dipper, after Legge & Foley 1980",
    "orientation_jnd_constructed": "constructed from two studies",
    "frequency_jnd_constructed": "constructed from two studies",
    "resolution_limit": "Ashraf et al. 2025",
    "modelfest_gabors": "ModelFest",
}


def human_label(name: str) -> str:
    """What a model of people, or a study, is called where it is read and not typed.

    Examples
    --------
    >>> human_label("castle_csf"), human_label("my_csf")
    ('castleCSF', 'my_csf')
    """
    return _LABELS.get(name, name)


@dataclass(frozen=True)
class HumanRow:
    """One line of the listing of what people can be represented by."""

    #: What an experiment page names, or `thresholds`.
    name: str
    #: What it is, in a few words.
    summary: str
    #: The paper, or the package that brings it.
    source: str
    #: Why it cannot be used here; empty where it can.
    obstacle: str = ""
    #: Of measured data, where their publishers state one.
    licence: str = ""


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
    if name in (told := _discrimination()):
        return told[name]
    points = {point.name: point for point in _points()}
    if name not in points:
        raise unknown_name("contrast sensitivity function", name, csf_names())
    return _load(points[name])


def csf_limits(model: ContrastSensitivity) -> Limits:
    """What a model, as `csf` or `load_own_csf` gives it, can be asked."""
    return model.limits if isinstance(model, OwnCsf) else dict(_OURS.values())[model]


def csf_names() -> tuple[str, ...]:
    """Names of all models, those of installed packages (entry points ``psyprobe.human``)
    included.
    """
    ours = (*CSF_MODELS, *_discrimination())
    return (*ours, *(point.name for point in _points() if point.name not in ours))


def list_csf() -> list[HumanRow]:
    """All models; one whose package is broken says why in its row, and takes nothing else along.

    Examples
    --------
    >>> list_csf()[0].name, list_csf()[0].source
    ('castle_csf', 'Ashraf, Mantiuk, Chapiro, Wuerger (2024), Journal of Vision 24(4):5')
    """
    ours = [
        HumanRow(name, _first_line(model), limits.source) for name, (model, limits) in _OURS.items()
    ]
    ours += [
        HumanRow(name, _first_line(own.function), own.limits.source)
        for name, own in _discrimination().items()
    ]
    return ours + [_row(point) for point in _points()]


@cache
def _discrimination() -> Mapping[str, OwnCsf]:
    """Of what people tell apart and of how fine they see, which is no matter of most runs: it loads
    on use.
    """
    from psyprobe.human.acuity import resolution_limit
    from psyprobe.human.discrimination import MODELS

    source = "Ashraf, Chapiro, Mantiuk (2025), Nature Communications 16:9086, MIT"
    own = {**MODELS, "resolution_limit": (resolution_limit, source)}
    return {name: own_csf(name, function, source) for name, (function, source) in own.items()}


def _points() -> list[EntryPoint]:
    return sorted(entry_points(group=ENTRY_POINTS), key=lambda point: (point.name, point.value))


def _load(point: EntryPoint) -> OwnCsf:
    try:
        function = point.load()
        if not callable(function):
            raise TypeError("it is not a function")
        return own_csf(point.name, function, _source(point))
    except (Exception, SystemExit) as problem:
        raise InputError(
            f"{point.name} of {_source(point)} cannot be loaded: {describe_failure(problem)}"
        ) from problem


def _row(point: EntryPoint) -> HumanRow:
    if point.name in CSF_MODELS or point.name in _discrimination():
        return HumanRow(
            point.name,
            "broken",
            _source(point),
            "the name is taken by a model of psyprobe; rename it",
        )
    try:
        return HumanRow(point.name, _first_line(_load(point).function), _source(point))
    except InputError as problem:
        return HumanRow(point.name, "broken", _source(point), str(problem))


def _source(point: EntryPoint) -> str:
    return f"{point.dist.name} {point.dist.version}" if point.dist else point.value


def _first_line(model: object) -> str:
    return ((model.__doc__ or "").strip().splitlines() or [""])[0]


@dataclass(frozen=True)
class OwnCsf:
    """A function under the shared call: it gets those keywords that it takes, and may take others
    of its own.

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
            raise InputError(
                f"{self.limits.name} fails at {describe_failure(problem, self.file)}"
            ) from problem
        found = np.asarray(values)
        if found.dtype.kind not in "iuf":
            raise InputError(
                f"{self.limits.name} gives {reprlib.repr(values)}, but it must give real numbers"
            )
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
            raise InputError(
                f"{name} takes {str(each)!r}; give its inputs names, such as frequency and "
                "luminance"
            )
    needs = tuple(
        parameter.name for parameter in parameters if parameter.default is parameter.empty
    )
    takes = tuple(
        parameter.name for parameter in parameters if parameter.default is not parameter.empty
    )
    code = getattr(function, "__code__", None)
    return OwnCsf(
        function, Limits(name, needs, takes, source=source), code.co_filename if code else ""
    )


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
        raise InputError(
            f"there is no file {file!r} in {folder}; write human.model as FILE.py:FUNCTION"
        )
    try:
        module = run_file(path, f"psyprobe_human_{path.stem}")
    except (Exception, SystemExit) as problem:
        raise InputError(
            f"{place} cannot be loaded: {describe_failure(problem, str(path))}"
        ) from problem
    function = getattr(module, name, None)
    if not callable(function):
        own = [
            key
            for key, value in vars(module).items()
            if getattr(value, "__module__", "") == module.__name__
        ]
        raise unknown_name(f"function in {file}", name, own)
    return own_csf(place, function, str(path))
