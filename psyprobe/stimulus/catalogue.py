"""The catalogue: stimulus sets as pages one can read, ours by name and a user's own by path."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.errors import InputError, unknown_name
from psyprobe.stimulus.specification import Specification, specification_from_dict, stimulus_kinds

_KEYS = ("title", "source", "kind", "parameters", "levels", "differences")


@dataclass(frozen=True)
class StimulusSet:
    """A stimulus with the levels at which it is usually shown.

    Attributes
    ----------
    name : str
        File name without suffix.
    title, source : str
        What it is and where it comes from.
    kind : str
        Kind of stimulus.
    parameters : dict
        Parameters of one stimulus of the set; all else are the kind's defaults.
    levels : dict of str to ndarray
        Values of the parameters that vary.
    differences : tuple of str
        How it departs from its source, or from the plain set.
    """

    name: str
    title: str
    source: str
    kind: str
    parameters: dict[str, Any]
    levels: dict[str, FloatArray]
    differences: tuple[str, ...] = ()

    def spec(self, **overrides: Any) -> Specification:
        """The stimulus, with some parameters replaced.

        Examples
        --------
        >>> load_stimulus("gabor_achromatic").spec(frequency=8.0).frequency
        8.0
        """
        return specification_from_dict({"kind": self.kind} | self.parameters | overrides)


def catalogue_folder(name: str) -> Path:
    """The folder of a catalogue: inside the installed package, or at the top of a checkout.

    Parameters
    ----------
    name : {"stimuli", "experiments"}
        Which catalogue.
    """
    package = Path(__file__).resolve().parent.parent
    installed = package / "_catalogue" / name
    return installed if installed.is_dir() else package.parent / name


def catalogue_names(name: str) -> list[str]:
    """Names in a catalogue, sorted.

    Examples
    --------
    >>> "gabor_achromatic" in catalogue_names("stimuli")
    True
    """
    return sorted(path.stem for path in catalogue_folder(name).glob("*.toml"))


def read_page(catalogue: str, name_or_path: str | Path) -> tuple[Path, dict[str, Any]]:
    """A page of a catalogue by name, or a user's own by path, as (path, contents).

    Parameters
    ----------
    catalogue : {"stimuli", "experiments"}
        Where names are looked up.
    name_or_path : str or Path
        A name, or a path to a ``.toml`` file.

    Raises
    ------
    UnknownNameError
        If there is no such page.
    InputError
        If the file cannot be read or is not TOML.
    """
    path = Path(name_or_path)
    if path.suffix != ".toml":
        path = catalogue_folder(catalogue) / f"{name_or_path}.toml"
        if str(name_or_path) not in catalogue_names(catalogue):
            singular = {"stimuli": "stimulus", "experiments": "experiment"}[catalogue]
            raise unknown_name(singular, str(name_or_path), catalogue_names(catalogue))
    try:
        return path, tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path} is not valid TOML: {error}") from None
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise InputError(f"{path} cannot be read: {reason}") from None


def load_stimulus(name_or_path: str | Path) -> StimulusSet:
    """A stimulus set of the catalogue, or a user's own file.

    Parameters
    ----------
    name_or_path : str or Path
        A catalogue name, or a path to a ``.toml`` file.

    Returns
    -------
    StimulusSet

    Examples
    --------
    >>> load_stimulus("gabor_achromatic").kind
    'gabor'
    """
    path, page = read_page("stimuli", name_or_path)
    try:
        for key in page:
            if key not in _KEYS:
                raise unknown_name("key of a stimulus file", key, _KEYS)
        for key in ("title", "kind", "parameters"):
            if key not in page:
                raise InputError(f"{key!r} is missing; a stimulus file has {', '.join(_KEYS[:4])}")
        if page["kind"] not in stimulus_kinds():
            raise unknown_name("stimulus kind", str(page["kind"]), stimulus_kinds())
        levels = {name: read_levels(name, value) for name, value in page.get("levels", {}).items()}
        result = StimulusSet(
            name=path.stem,
            title=str(page["title"]),
            source=str(page.get("source", "")),
            kind=page["kind"],
            parameters=dict(page["parameters"]),
            levels=levels,
            differences=tuple(page.get("differences", ())),
        )
        result.spec()
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    return result


def read_levels(name: str, page: Any) -> FloatArray:
    """Levels of a parameter from a file: ``{from, to, n, scale}`` or ``{values}``.

    Parameters
    ----------
    name : str
        Of the parameter, for messages.
    page : mapping
        ``from`` and ``to`` are both included; ``scale`` is "log" (the default) or "linear".

    Returns
    -------
    ndarray, shape (n,)

    Examples
    --------
    >>> read_levels("contrast", {"from": 0.01, "to": 1, "n": 3, "scale": "log"}).round(3).tolist()
    [0.01, 0.1, 1.0]
    """
    if not isinstance(page, Mapping):
        raise InputError(f"levels of {name} are {page!r}; write {{ from = 0.5, to = 28, n = 20, scale = 'log' }}")
    keys = ("from", "to", "n", "scale", "values")
    for key in page:
        if key not in keys:
            raise unknown_name(f"key of the levels of {name}", key, keys)
    if "values" in page:
        values = _numbers(name, page["values"])
    else:
        for key in ("from", "to", "n"):
            if key not in page:
                raise InputError(f"levels of {name} lack {key!r}; give from, to and n, or values")
        first, last = _numbers(name, [page["from"], page["to"]])
        n, scale = page["n"], page.get("scale", "log")
        if not isinstance(n, int) or isinstance(n, bool) or not 1 <= n <= 10_000:
            raise InputError(f"n of {name} is {n!r}; give a whole number from 1 to 10000")
        if scale not in ("log", "linear"):
            raise unknown_name("scale", str(scale), ("log", "linear"))
        if scale == "log" and not (first > 0 and last > 0):
            raise InputError(f"levels of {name} from {first:g} to {last:g} have no log scale; both ends must be > 0")
        values = np.geomspace(first, last, n) if scale == "log" else np.linspace(first, last, n)
    if len(np.unique(values)) != len(values):
        raise InputError(f"levels of {name} repeat a value")
    return values


def _numbers(name: str, values: Any) -> FloatArray:
    listed = values if isinstance(values, list) else [values]
    for value in listed:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise InputError(f"a level of {name} is {value!r}; give numbers without units")
    numbers = np.array(listed, dtype=float)
    if numbers.size == 0 or not np.isfinite(numbers).all():
        raise InputError(f"levels of {name} must be finite numbers, at least one")
    return numbers


def stimulus_set(name: str, page: dict, folder: Path) -> StimulusSet:
    """STUB"""
    raise NotImplementedError
