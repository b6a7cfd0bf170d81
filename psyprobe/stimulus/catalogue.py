"""The catalogue: stimulus sets as pages of TOML, ours by name and a user's by path."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.errors import InputError, check_known, unknown_name
from psyprobe.files.json_types import JsonMapping, JsonObject
from psyprobe.files.listing import Listing
from psyprobe.files.parsing import parse_toml, read_text
from psyprobe.stimulus.kinds.sums import BACKGROUND, Sum
from psyprobe.stimulus.parameters import file_digest, log_spaced
from psyprobe.stimulus.pattern import Modulation
from psyprobe.stimulus.registry import broken_kinds, find_kind, specification_from_dict
from psyprobe.stimulus.specification import Specification, level_of

#: Entry points of packages that bring pages: each names a package in whose folder they lie.
PAGES = {"experiments": "psyprobe.experiments"}
#: Keys of a table [noise] that say in which band the noise lies.
_OF_BANDS = ("frequency", "bandwidth", "passes")
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
    #: Kind of stimulus; for a sum, that of the target.
    kind: str
    #: Parameters of one stimulus of the set; the others have the kind's defaults.
    parameters: JsonObject
    #: Values of the parameters that vary.
    levels: dict[str, FloatArray]
    #: How it differs from its source, or from the plain set.
    differences: tuple[str, ...] = ()
    #: For a sum: kind and parameters of what is added to the target, by name.
    parts: dict[str, JsonObject] = field(default_factory=dict)

    def spec(self, **overrides: Any) -> Specification:
        """Build the stimulus, with other values of some parameters or derived levels.

        Examples
        --------
        >>> load_stimulus("gabor_achromatic").spec(frequency=8.0).frequency
        8.0
        >>> load_stimulus("gabor_masked").spec(mask_orientation=30).value("mask_orientation")
        30.0
        """
        target = specification_from_dict(
            {"kind": self.kind} | self.parameters, allow_files=True
        )
        if not self.parts:
            return target.changed(**overrides)
        shared = {
            name: getattr(target, name) for name in BACKGROUND if hasattr(target, name)
        }
        parts = [target]
        for part in self.parts.values():
            parts.append(specification_from_dict(shared | part, allow_files=True))
        # A sum refuses parts that are no patterns on a background.
        patterns = cast("tuple[Modulation, ...]", tuple(parts))
        return Sum(parts=patterns, names=tuple(self.parts)).changed(**overrides)

    def with_noise(self, noise: JsonMapping) -> StimulusSet:
        """Add noise of a stated density as a part "noise", in the colour direction of the target.

        Parameters
        ----------
        noise : mapping
            "density", in deg², and perhaps "exponent", or the band's "frequency", "bandwidth" and
            "passes", as a page's table [noise] has them.

        Raises
        ------
        InputError
            If the stimulus is no pattern on a background, or has such a part.

        Examples
        --------
        >>> noisy = load_stimulus("gabor_achromatic").with_noise({"density": 2.78e-6})
        >>> noisy.spec().value("noise_density")
        2.78e-06
        """
        target = specification_from_dict(
            {"kind": self.kind} | self.parameters, allow_files=True
        )
        if not isinstance(target, Modulation) or "noise" in self.parts:
            obstacle = f"{self.name} is a {self.kind}"
            if "noise" in self.parts:
                obstacle = f"{self.name} has a part of that name"
            raise InputError(
                f"[noise] adds to still patterns on a background, and {obstacle}; give another "
                "stimulus, or leave [noise] out"
            )
        part = dict(noise)
        if not part.get("exponent"):
            part.pop("exponent", None)
        kind = "coloured_noise" if "exponent" in part else "white_noise"
        if part.get("frequency") is None:
            part = {name: part[name] for name in part if name not in _OF_BANDS}
        elif kind == "coloured_noise":
            raise InputError(
                "[noise] has an exponent and a frequency; give one: noise of a band has the same "
                "density at all its frequencies"
            )
        else:
            kind = "band_noise"
        part |= {"kind": kind, "direction": target.direction}
        noisy = replace(self, parts=self.parts | {"noise": part})
        noisy.spec()
        return noisy

    def content(self) -> JsonObject:
        """Return what determines the stimulus, for digests: neither title nor path."""
        content: JsonObject = {
            "kind": _identity(self.kind),
            "parameters": self.parameters | _file_digests(self.kind, self.parameters),
        }
        if self.parts:
            parts = {}
            for name, part in self.parts.items():
                kind = part["kind"]
                digests = _file_digests(kind, part)
                parts[name] = part | digests | {"kind": _identity(kind)}
            content["parts"] = parts
        return content


def _identity(kind: str) -> str:
    """Return what identifies the code of a stimulus kind: its name, or name and source digest."""
    return find_kind(kind, allow_files=True).identity or kind


def _file_digests(kind: str, parameters: JsonMapping) -> dict[str, str]:
    """Return the digests of the files that parameters of a kind name."""
    files = find_kind(kind, allow_files=True).files()
    return {
        name: file_digest(name, parameters[name])
        for name in files
        if name in parameters
    }


def _with_paths(kind: str, parameters: JsonMapping, folder: Path) -> JsonObject:
    """Resolve the file names among a kind's parameters relative to a folder."""
    files = find_kind(kind, allow_files=True).files()
    paths = {
        name: str((folder / str(parameters[name])).resolve())
        for name in files
        if name in parameters
    }
    return {**parameters, **paths}


def catalogue_folder(name: str) -> Path:
    """Return the folder of the catalogue "stimuli" or "experiments".

    It is inside the installed package, or at the top of a checkout.
    """
    package = Path(__file__).resolve().parent.parent
    installed = package / "_catalogue" / name
    return installed if installed.is_dir() else package.parent / name


def catalogue_names(name: str) -> list[str]:
    """List the names in a catalogue, those of installed packages included, sorted.

    Parameters
    ----------
    name : {"stimuli", "experiments"}
        The catalogue.

    Examples
    --------
    >>> "gabor_achromatic" in catalogue_names("stimuli")
    True
    """
    return sorted({**_foreign_pages(name).paths, **_find_built_in_pages(name)})


@dataclass(frozen=True)
class PageRow:
    """One line of a listing: a page of a catalogue, and what is wrong with it."""

    #: Name that `load_stimulus` or `load_experiment` takes.
    name: str
    #: The page in a few words.
    title: str
    #: The paper or data that it follows.
    source: str = ""
    #: How it differs from its source, a sentence each.
    differences: tuple[str, ...] = ()
    #: Why it cannot be used here; empty where it can.
    obstacle: str = ""


def list_pages(catalogue: str) -> Listing[PageRow]:
    """List the TOML files of a catalogue, one row each, broken ones of packages last.

    Parameters
    ----------
    catalogue : {"stimuli", "experiments"}
        The catalogue.
    """
    rows = Listing(
        [_describe_page(catalogue, name) for name in catalogue_names(catalogue)]
    )
    for name, obstacle in broken_packages(catalogue).items():
        rows.append(PageRow(name, "pages of an installed package", obstacle=obstacle))
    return rows


def _describe_page(catalogue: str, name: str) -> PageRow:
    """Describe a TOML page of a catalogue in one row, which says so if it cannot be read."""
    try:
        _, page = read_page(catalogue, name)
    except InputError as error:
        return PageRow(name, "broken", obstacle=str(error))
    differences = tuple(map(str, page.get("differences", ())))
    return PageRow(
        name, str(page.get("title", "")), str(page.get("source", "")), differences
    )


def list_stimuli() -> Listing[PageRow]:
    """List the stimuli of the catalogue, those of installed packages included.

    Examples
    --------
    >>> "gabor_achromatic" in [row.name for row in list_stimuli()]
    True
    """
    rows = list_pages("stimuli")
    for name, obstacle in broken_kinds().items():
        rows.append(
            PageRow(name, "a stimulus kind of an installed package", obstacle=obstacle)
        )
    return rows


def broken_packages(name: str) -> dict[str, str]:
    """List the plug-ins whose catalogue files cannot be used, with the reason in one line.

    They are those of installed packages that add to a catalogue.
    """
    return _foreign_pages(name).broken


def _find_pages(folder: Path) -> dict[str, Path]:
    """Find the TOML files of a folder, by stem."""
    return {path.stem: path for path in folder.glob("*.toml")}


def _find_built_in_pages(name: str) -> dict[str, Path]:
    """Find the TOML files of a built-in catalogue ("stimuli" ...), by stem."""
    return _find_pages(catalogue_folder(name))


class _ForeignPages(NamedTuple):
    """Pages of installed packages."""

    #: Paths by name.
    paths: dict[str, Path]
    #: What is wrong with an entry point, by its name.
    broken: dict[str, str]


def _foreign_pages(name: str) -> _ForeignPages:
    """Find the catalogue files of installed packages, without importing the packages."""
    paths: dict[str, Path] = {}
    broken = {}
    for point in entry_points(group=PAGES.get(name, "")):
        package = None
        reason = ""
        try:
            package = find_spec(point.module)
        except Exception as error:
            reason = f": {type(error).__name__}: {error}"
        pages: dict[str, Path] = {}
        for folder in (package and package.submodule_search_locations) or []:
            pages |= _find_pages(Path(folder))
        duplicates = sorted(pages.keys() & {*_find_built_in_pages(name), *paths})
        if duplicates:
            broken[point.name] = (
                f"{point.value} has a page {duplicates[0]!r}, and so has another; give it "
                "another name"
            )
        elif not pages:
            message = f"{point.value} is no package that holds .toml pages{reason}"
            broken[point.name] = " ".join(message.split())
        else:
            paths |= pages
    return _ForeignPages(paths, broken)


def read_page(catalogue: str, name_or_path: str | Path) -> tuple[Path, JsonObject]:
    """Read a TOML file of a catalogue by name, or a user's by path.

    Parameters
    ----------
    catalogue : {"stimuli", "experiments"}
        The catalogue in which names are looked up.
    name_or_path : str or Path
        The page.

    Returns
    -------
    path : Path
        Where the page lies.
    page : dict
        What it says.

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
        pages = _find_built_in_pages(catalogue)
        if name not in pages:
            pages |= _foreign_pages(catalogue).paths
        if name not in pages:
            singular = {"stimuli": "stimulus", "experiments": "experiment"}[catalogue]
            raise unknown_name(singular, name, pages)
        path = pages[name]
    return path, parse_toml(read_text(path), str(path))


def load_stimulus(name_or_path: str | Path) -> StimulusSet:
    """Load a stimulus of the catalogue by name, or of a user's TOML file by path.

    Parameters
    ----------
    name_or_path : str or Path
        A catalogue name, or the path of a ``.toml`` file.

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


def stimulus_set(page: JsonMapping, name: str, folder: Path) -> StimulusSet:
    """Build the stimulus that the values of a TOML file describe."""
    check_known("key of a stimulus file", page, _KEYS)
    for key in ("title", "kind", "parameters"):
        if key not in page:
            raise InputError(
                f"{key!r} is missing; a stimulus file has title, source, kind, parameters"
            )
    levels = page.get("levels", {})
    parts = page.get("parts", {})
    kind = _find_kind_name(page["kind"], folder)
    stimulus = StimulusSet(
        name=name,
        title=str(page["title"]),
        source=str(page.get("source", "")),
        kind=kind,
        parameters=_with_paths(kind, page["parameters"], folder),
        levels={level: read_levels(level, values) for level, values in levels.items()},
        differences=tuple(page.get("differences", ())),
        parts={
            part: _read_part(part, values, folder) for part, values in parts.items()
        },
    )
    spec = stimulus.spec()
    for level in stimulus.levels:
        level_of(spec, level)
    return stimulus


def _read_part(name: str, values: Any, folder: Path) -> JsonObject:
    """Read the table of one part of a summed stimulus, with its kind and resolved file paths."""
    if not isinstance(values, Mapping) or "kind" not in values:
        raise InputError(
            f"the part {name!r} lacks its kind; write [parts.{name}] with kind and parameters"
        )
    for key in values:
        if key in BACKGROUND:
            raise InputError(
                f"{key} of the part {name!r} is that of the target; leave it out"
            )
    kind = _find_kind_name(values["kind"], folder)
    return _with_paths(kind, values, folder) | {"kind": kind}


def _find_kind_name(name: Any, folder: Path) -> str:
    """Return the registered name of a stimulus kind; one in a file gets its full path."""
    full_name = str(name)
    if ".py:" in full_name:
        full_name = str((folder / name).resolve())
    return find_kind(full_name, allow_files=True).kind


def read_levels(name: str, page: Any) -> FloatArray:
    """Read the levels of a parameter: a list of values, or {from, to, n, scale}.

    Parameters
    ----------
    name : str
        Name of the level, for messages.
    page : mapping
        ``{from, to, n, scale}``, both ends included, or ``{values}``; ``scale`` is "log" (the
        default) or "linear".

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
    check_known(
        f"key of the levels of {name}", page, ("from", "to", "n", "scale", "values")
    )
    values = (
        _read_numbers(name, page["values"])
        if "values" in page
        else _space_levels(name, page)
    )
    if len(np.unique(values)) != len(values):
        raise InputError(f"levels of {name} repeat a value")
    return values


def _space_levels(name: str, page: JsonMapping) -> FloatArray:
    """Compute levels from `from`, `to` and `n`, spaced evenly on a log or linear scale."""
    for key in ("from", "to", "n"):
        if key not in page:
            raise InputError(
                f"levels of {name} lack {key!r}; give from, to and n, or values"
            )
    first, last = _read_numbers(name, [page["from"], page["to"]])
    n = page["n"]
    scale = page.get("scale", "log")
    if not isinstance(n, int) or isinstance(n, bool) or not 1 <= n <= 10_000:
        raise InputError(f"n of {name} is {n!r}; give a whole number from 1 to 10000")
    if scale not in ("log", "linear"):
        raise unknown_name("scale", str(scale), ("log", "linear"))
    if scale == "linear":
        return np.linspace(first, last, n)
    if not (first > 0 and last > 0):
        raise InputError(
            f"levels of {name} from {first:g} to {last:g} have no log scale; both ends must be > 0"
        )
    return log_spaced(first, last, n)


def _read_numbers(name: str, values: Any) -> FloatArray:
    """Convert a number or list of numbers of a page to a non-empty array of finite floats."""
    listed = values if isinstance(values, list) else [values]
    for value in listed:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise InputError(
                f"a level of {name} is {value!r}; give numbers without units"
            )
    numbers = np.array(listed, dtype=float)
    if numbers.size == 0 or not np.isfinite(numbers).all():
        raise InputError(f"levels of {name} must be finite numbers, at least one")
    return numbers
