"""The catalogue: stimulus sets as pages one can read, ours by name and a user's own by path."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.errors import InputError, unknown_name
from psyprobe.files.parsing import parse_toml, read_text
from psyprobe.stimulus.kinds.sums import BACKGROUND, Sum
from psyprobe.stimulus.parameters import log_spaced
from psyprobe.stimulus.specification import (
    Specification,
    broken_kinds,
    find_kind,
    level_of,
    specification_from_dict,
)

#: Entry points of packages that bring pages: each names a package in whose folder they lie.
PAGES = {"experiments": "psyprobe.experiments"}
_KEYS = ("title", "source", "kind", "parameters", "parts", "levels", "differences")


@dataclass(frozen=True)
class StimulusSet:
    """A stimulus with the levels at which it is usually shown."""

    #: File name without suffix.
    name: str
    #: What it is.
    title: str
    #: Where it comes from.
    source: str
    #: Kind of stimulus; of a sum, that of the target.
    kind: str
    #: Parameters of one stimulus of the set; all else are the kind's defaults.
    parameters: dict[str, Any]
    #: Values of the parameters that vary.
    levels: dict[str, FloatArray]
    #: How it departs from its source, or from the plain set.
    differences: tuple[str, ...] = ()
    #: Of a sum: kind and parameters of what is added to the target, by name.
    parts: dict[str, dict[str, Any]] = field(default_factory=dict)

    def spec(self, **overrides: Any) -> Specification:
        """The stimulus, with some parameters or derived levels replaced.

        Examples
        --------
        >>> load_stimulus("gabor_achromatic").spec(frequency=8.0).frequency
        8.0
        >>> load_stimulus("gabor_masked").spec(mask_orientation=30).value("mask_orientation")
        30.0
        """
        target = specification_from_dict({"kind": self.kind} | self.parameters, own_files=True)
        if not self.parts:
            return target.changed(**overrides)
        shared = {name: getattr(target, name) for name in BACKGROUND if hasattr(target, name)}
        others = (
            specification_from_dict(shared | part, own_files=True) for part in self.parts.values()
        )
        return Sum(parts=(target, *others), names=tuple(self.parts)).changed(**overrides)

    def content(self) -> dict[str, Any]:
        """What makes the stimulus, as digests take it: no title, no path."""
        content = {
            "kind": find_kind(self.kind, own_files=True).identity or self.kind,
            "parameters": self.parameters,
        }
        if not self.parts:
            return content
        kinds = {
            name: find_kind(part["kind"], own_files=True).identity
            for name, part in self.parts.items()
        }
        return content | {
            "parts": {
                n: p | ({"kind": kinds[n]} if kinds[n] else {}) for n, p in self.parts.items()
            }
        }


def catalogue_folder(name: str) -> Path:
    """The folder of "stimuli" or "experiments": inside the installed package, or at the top of a
    checkout.
    """
    package = Path(__file__).resolve().parent.parent
    installed = package / "_catalogue" / name
    return installed if installed.is_dir() else package.parent / name


def catalogue_names(name: str) -> list[str]:
    """Names in a catalogue, those of installed packages included, sorted.

    Parameters
    ----------
    name : {"stimuli", "experiments"}
        Which.

    Examples
    --------
    >>> "gabor_achromatic" in catalogue_names("stimuli")
    True
    """
    return sorted({**_added(name)[0], **_ours(name)})


@dataclass(frozen=True)
class PageRow:
    """One line of a listing: a page of a catalogue, and what is wrong with it."""

    #: What `load_stimulus` or `read_experiment` takes.
    name: str
    #: What it is, in a few words.
    title: str
    #: The paper or data that it follows.
    source: str = ""
    #: How it differs from its source, a sentence each.
    differences: tuple[str, ...] = ()
    #: Why it cannot be used here; empty where it can.
    obstacle: str = ""


def list_pages(catalogue: str) -> list[PageRow]:
    """List the pages of a catalogue, broken ones of installed packages last.

    Parameters
    ----------
    catalogue : {"stimuli", "experiments"}
        Which.
    """
    rows = [_page_row(catalogue, name) for name in catalogue_names(catalogue)]
    obstacles = broken_packages(catalogue)
    return rows + [
        PageRow(name, "pages of an installed package", obstacle=obstacle)
        for name, obstacle in obstacles.items()
    ]


def _page_row(catalogue: str, name: str) -> PageRow:
    try:
        page = read_page(catalogue, name)[1]
    except InputError as error:
        return PageRow(name, "broken", obstacle=str(error))
    return PageRow(
        name,
        str(page.get("title", "")),
        str(page.get("source", "")),
        tuple(map(str, page.get("differences", ()))),
    )


def list_stimuli() -> list[PageRow]:
    """List the stimuli of the catalogue, those of installed packages included.

    Examples
    --------
    >>> "gabor_achromatic" in [row.name for row in list_stimuli()]
    True
    """
    rows = list_pages("stimuli")
    return rows + [
        PageRow(name, "a stimulus kind of an installed package", obstacle=obstacle)
        for name, obstacle in broken_kinds().items()
    ]


def broken_packages(name: str) -> dict[str, str]:
    """Entry points of installed packages whose pages cannot be used, each with the reason in one
    line.
    """
    return _added(name)[1]


def _ours(name: str) -> dict[str, Path]:
    return {path.stem: path for path in catalogue_folder(name).glob("*.toml")}


def _added(name: str) -> tuple[dict[str, Path], dict[str, str]]:
    """Pages of installed packages by name, and what is wrong with a package; nothing of it is
    imported.
    """
    pages: dict[str, Path] = {}
    broken = {}
    for point in entry_points(group=PAGES.get(name, "")):
        try:
            package = find_spec(point.module)
        except Exception as error:
            package = None
            why = f": {type(error).__name__}: {error}"
        else:
            why = ""
        folders = [] if package is None else package.submodule_search_locations or []
        found = {path.stem: path for folder in folders for path in Path(folder).glob("*.toml")}
        taken = sorted(found.keys() & {*_ours(name), *pages})
        if taken:
            broken[point.name] = (
                f"{point.value} has a page {taken[0]!r}, and so has another; give it another name"
            )
        elif not found:
            broken[point.name] = " ".join(
                f"{point.value} is no package that holds .toml pages{why}".split()
            )
        else:
            pages |= found
    return pages, broken


def read_page(catalogue: str, name_or_path: str | Path) -> tuple[Path, dict[str, Any]]:
    """A page of a catalogue ("stimuli" or "experiments") by name, or one's own ``.toml`` file by
    path, with its path.

    Raises
    ------
    UnknownNameError
        If there is no such page.
    InputError
        If the file cannot be read or is not TOML.
    """
    path = Path(name_or_path)
    if path.suffix != ".toml":
        name = str(name_or_path)
        pages = _ours(catalogue)
        if name not in pages:
            pages |= _added(catalogue)[0]
        if name not in pages:
            singular = {"stimuli": "stimulus", "experiments": "experiment"}[catalogue]
            raise unknown_name(singular, name, pages)
        path = pages[name]
    return path, parse_toml(read_text(path), str(path))


def load_stimulus(name_or_path: str | Path) -> StimulusSet:
    """A stimulus set of the catalogue, or a user's own file; `name_or_path` as in `read_page`.

    Raises
    ------
    UnknownNameError
        If there is no such stimulus.
    InputError
        If the file cannot be read, or describes no stimulus.

    Examples
    --------
    >>> load_stimulus("gabor_achromatic").kind
    'gabor'
    """
    path, page = read_page("stimuli", name_or_path)
    try:
        return stimulus_set(page, path.stem, path.parent)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def stimulus_set(page: Mapping[str, Any], name: str, folder: Path) -> StimulusSet:
    """The stimulus set that a page describes; a kind ``FILE.py:CLASS`` has its file in `folder`."""
    _check_keys("key of a stimulus file", page, _KEYS)
    for key in ("title", "kind", "parameters"):
        if key not in page:
            raise InputError(
                f"{key!r} is missing; a stimulus file has title, source, kind, parameters"
            )
    result = StimulusSet(
        name=name,
        title=str(page["title"]),
        source=str(page.get("source", "")),
        kind=_kind(page["kind"], folder),
        parameters=dict(page["parameters"]),
        levels={
            level: read_levels(level, values) for level, values in page.get("levels", {}).items()
        },
        differences=tuple(page.get("differences", ())),
        parts={part: _part(part, values, folder) for part, values in page.get("parts", {}).items()},
    )
    spec = result.spec()
    for level in result.levels:
        level_of(spec, level)
    return result


def _check_keys(what: str, page: Mapping[str, Any], known: tuple[str, ...]) -> None:
    for key in page:
        if key not in known:
            raise unknown_name(what, key, known)


def _part(name: str, values: Any, folder: Path) -> dict[str, Any]:
    if not isinstance(values, Mapping) or "kind" not in values:
        raise InputError(
            f"the part {name!r} lacks its kind; write [parts.{name}] with kind and parameters"
        )
    for key in values:
        if key in BACKGROUND:
            raise InputError(f"{key} of the part {name!r} is that of the target; leave it out")
    return dict(values) | {"kind": _kind(values["kind"], folder)}


def _kind(name: Any, folder: Path) -> str:
    """A kind by name; one in a file of one's own by its full path."""
    full = str((folder / name).resolve()) if ".py:" in str(name) else str(name)
    return find_kind(full, own_files=True).kind


def read_levels(name: str, page: Any) -> FloatArray:
    """Levels of a parameter from a file: ``{from, to, n, scale}``, both ends included, or
    ``{values}``.

    ``scale`` is "log" (the default) or "linear".

    Parameters
    ----------
    name : str
        Of the level, for messages.
    page : mapping
        As it stands in a file.

    Raises
    ------
    InputError
        If a number is missing or not finite, a value comes twice, or a log scale does not begin
        above 0.

    Examples
    --------
    >>> read_levels("contrast", {"from": 0.01, "to": 1, "n": 3, "scale": "log"}).round(3).tolist()
    [0.01, 0.1, 1.0]
    """
    if not isinstance(page, Mapping):
        raise InputError(
            f"levels of {name} are {page!r}; write {{ from = 0.5, to = 28, n = 20, scale = 'log' }}"
        )
    _check_keys(f"key of the levels of {name}", page, ("from", "to", "n", "scale", "values"))
    if "values" in page:
        values = _numbers(name, page["values"])
    else:
        for key in ("from", "to", "n"):
            if key not in page:
                raise InputError(f"levels of {name} lack {key!r}; give from, to and n, or values")
        first, last = _numbers(name, [page["from"], page["to"]])
        n = page["n"]
        scale = page.get("scale", "log")
        if not isinstance(n, int) or isinstance(n, bool) or not 1 <= n <= 10_000:
            raise InputError(f"n of {name} is {n!r}; give a whole number from 1 to 10000")
        if scale not in ("log", "linear"):
            raise unknown_name("scale", str(scale), ("log", "linear"))
        if scale == "log" and not (first > 0 and last > 0):
            raise InputError(
                f"levels of {name} from {first:g} to {last:g} have no log scale; both ends must "
                "be > 0"
            )
        values = log_spaced(first, last, n) if scale == "log" else np.linspace(first, last, n)
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
