"""Look up models of human vision by name: built-in, of installed packages, or in a file."""

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
from numpy.typing import ArrayLike

from psyprobe._typing import FloatArray
from psyprobe.errors import InputError, describe_failure, unknown_name
from psyprobe.files.listing import Listing
from psyprobe.files.programs import run_file
from psyprobe.human import achromatic, castle, flicker, postreceptoral
from psyprobe.human.measured import STUDIES
from psyprobe.human.signature import LIMITS, ContrastSensitivity, Limits

ENTRY_POINTS = "psyprobe.human"

#: Built-in models by the name that experiments give them.
CSF_MODELS: Mapping[str, ContrastSensitivity] = {
    model.__name__: model
    for model in (
        castle.castle_csf,
        achromatic.stela_csf,
        postreceptoral.postreceptoral_csf,
        achromatic.barten_csf,
        achromatic.watson_malo_csf,
        achromatic.watson_ahumada_csf,
        flicker.ela_tcsf,
    )
}


def human_label(name: str) -> str:
    """Return the name of a human model or study as figures and tables show it.

    Examples
    --------
    >>> human_label("castle_csf"), human_label("my_csf")
    ('castleCSF', 'my_csf')
    """
    if name in LIMITS:
        return LIMITS[name].label or LIMITS[name].name
    return str(STUDIES.get(name, {}).get("label", name))


@dataclass(frozen=True)
class HumanRow:
    """One line of the listing of human models and data."""

    #: Name that an experiment gives, or `thresholds`.
    name: str
    #: Description in a few words.
    summary: str
    #: The paper, or the package that brings it.
    source: str
    #: Why it cannot be used here; empty if it can.
    obstacle: str = ""
    #: Licence of measured data, where their publishers state one.
    licence: str = ""


def csf(name: str) -> ContrastSensitivity:
    """Look up a contrast sensitivity function by the name of its model.

    Examples
    --------
    >>> float(csf("castle_csf")(4, luminance=100, direction="achromatic", area=1).round(2))
    134.61
    >>> csf("castel_csf")
    Traceback (most recent call last):
    psyprobe.errors.UnknownNameError: unknown contrast sensitivity function 'castel_csf'; ...
    """
    if name in CSF_MODELS:
        return CSF_MODELS[name]
    discrimination_models = _discrimination()
    if name in discrimination_models:
        return discrimination_models[name]
    points = {point.name: point for point in _list_plugins()}
    if name not in points:
        raise unknown_name("contrast sensitivity function", name, csf_names())
    return _load(points[name])


def csf_names() -> tuple[str, ...]:
    """List the names of all CSF models, built-in and of installed packages."""
    built_in = (*CSF_MODELS, *_discrimination())
    plugins = (point.name for point in _list_plugins() if point.name not in built_in)
    return (*built_in, *plugins)


def list_csf() -> Listing[HumanRow]:
    """List all CSF models, with a row that says why for each that a package fails to provide.

    Examples
    --------
    >>> list_csf()[0].name, list_csf()[0].source
    ('castle_csf', 'Ashraf, Mantiuk, Chapiro, Wuerger (2024), Journal of Vision 24(4):5')
    """
    rows = [
        HumanRow(name, _first_line(model), LIMITS[name].source)
        for name, model in CSF_MODELS.items()
    ]
    rows += [
        HumanRow(name, _first_line(model.function), model.limits.source)
        for name, model in _discrimination().items()
    ]
    return Listing(rows + [_describe_plugin(point) for point in _list_plugins()])


@cache
def _discrimination() -> Mapping[str, CustomCsf]:
    """Load the models of discrimination and acuity, which most runs do not need."""
    from psyprobe.human.acuity import resolution_limit
    from psyprobe.human.discrimination import MODELS

    return {
        function.__name__: custom_csf(
            function.__name__, function, LIMITS[function.__name__].source
        )
        for function in (*MODELS, resolution_limit)
    }


def _list_plugins() -> list[EntryPoint]:
    """List the human models that installed packages register, by name."""
    return sorted(
        entry_points(group=ENTRY_POINTS), key=lambda point: (point.name, point.value)
    )


def _load(point: EntryPoint) -> CustomCsf:
    """Import a package's sensitivity function; refuse what cannot be called."""
    try:
        function = point.load()
        if not callable(function):
            raise TypeError("it is not a function")
        return custom_csf(point.name, function, _name_source(point))
    except (Exception, SystemExit) as problem:
        raise InputError(
            f"{point.name} of {_name_source(point)} cannot be loaded: {describe_failure(problem)}"
        ) from problem


def _describe_plugin(point: EntryPoint) -> HumanRow:
    """Describe a plug-in's human model in one row, which says so if it cannot be loaded."""
    if point.name in CSF_MODELS or point.name in _discrimination():
        return HumanRow(
            point.name,
            "broken",
            _name_source(point),
            "the name is taken by a model of psyprobe; rename it",
        )
    try:
        return HumanRow(
            point.name, _first_line(_load(point).function), _name_source(point)
        )
    except InputError as problem:
        return HumanRow(point.name, "broken", _name_source(point), str(problem))


def _name_source(point: EntryPoint) -> str:
    """Name the distribution and version that registers a plug-in."""
    return f"{point.dist.name} {point.dist.version}" if point.dist else point.value


def _first_line(model: object) -> str:
    """Return the first line of a model's docstring, or ""."""
    return ((model.__doc__ or "").strip().splitlines() or [""])[0]


@dataclass(frozen=True)
class CustomCsf:
    """A function that is called as all contrast sensitivity functions are.

    It gets those keywords that it takes, and may take others of its own. A failure in the function
    is an `InputError` that names its file and the line.
    """

    function: Callable[..., Any]
    limits: Limits
    file: str

    def __call__(
        self, frequency: ArrayLike | None = None, **conditions: Any
    ) -> FloatArray:
        inputs = self.limits.check({"frequency": frequency} | conditions)
        try:
            values = self.function(**inputs)
        except Exception as problem:
            raise InputError(
                f"{self.limits.name} fails at {describe_failure(problem, self.file)}"
            ) from problem
        array = np.asarray(values)
        if array.dtype.kind not in "iuf":
            raise InputError(
                f"{self.limits.name} gives {reprlib.repr(values)}, but it must give real numbers"
            )
        sensitivity: FloatArray = array.astype(np.float64)[()]
        return sensitivity


def custom_csf(name: str, function: Callable[..., Any], source: str) -> CustomCsf:
    """Wrap a function as a contrast sensitivity function whose inputs are its parameters.

    Raises
    ------
    InputError
        The function takes positional arguments or any keyword, so that its inputs are unknown.

    Examples
    --------
    >>> model = custom_csf("mine", lambda frequency, orientation=0: 100 / frequency, "")
    >>> float(model(4, luminance=None)), model.limits.needs, model.limits.takes
    (25.0, ('frequency',), ('orientation',))
    """
    parameters = inspect.signature(function).parameters.values()
    for parameter in parameters:
        if parameter.kind not in (
            parameter.POSITIONAL_OR_KEYWORD,
            parameter.KEYWORD_ONLY,
        ):
            raise InputError(
                f"{name} takes {str(parameter)!r}; give its inputs names, such as frequency and "
                "luminance"
            )
    needs = [
        parameter.name
        for parameter in parameters
        if parameter.default is parameter.empty
    ]
    takes = [parameter.name for parameter in parameters if parameter.name not in needs]
    limits = Limits(name, tuple(needs), tuple(takes), source=source)
    code = getattr(function, "__code__", None)
    return CustomCsf(function, limits, code.co_filename if code else "")


def load_custom_csf(reference: str, folder: Path) -> CustomCsf:
    """Load a contrast sensitivity function from a Python file.

    Parameters
    ----------
    reference : str
        "FILE.py:FUNCTION".
    folder : Path
        Folder of the file.
    """
    file, _, name = reference.rpartition(":")
    path = folder / file
    if not path.is_file():
        raise InputError(
            f"there is no file {file!r} in {folder}; write human.model as FILE.py:FUNCTION"
        )
    try:
        module = run_file(path, f"psyprobe_human_{path.stem}")
    except (Exception, SystemExit) as problem:
        raise InputError(
            f"{reference} cannot be loaded: {describe_failure(problem, str(path))}"
        ) from problem
    function = getattr(module, name, None)
    if not callable(function):
        values = vars(module).items()
        names = [
            key
            for key, value in values
            if getattr(value, "__module__", "") == module.__name__
        ]
        raise unknown_name(f"function in {file}", name, names)
    return custom_csf(reference, function, str(path))
