"""Kinds of stimuli by name: built in, of installed packages, and in a user's Python file."""

from __future__ import annotations

import hashlib
import importlib.metadata
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from psyprobe.errors import InputError, describe_failure, unknown_name
from psyprobe.files.json_types import JsonMapping
from psyprobe.files.programs import package_digest, read_sources, run_file

if TYPE_CHECKING:
    from psyprobe.stimulus.specification import Specification

#: Entry points of packages that bring kinds of stimuli.
GROUP = "psyprobe.stimuli"

#: Kinds by name, as they stand in a stimulus file.
KINDS: dict[str, type[Specification]] = {}

Kind = TypeVar("Kind", bound="type[Specification]")


def stimulus_kind(name: str) -> Callable[[Kind], Kind]:
    """Decorate a class so that it is registered as a kind of stimulus under a name.

    Parameters
    ----------
    name : str
        The name by which pages call the kind.

    Raises
    ------
    InputError
        If the name is taken.

    Examples
    --------
    >>> from psyprobe.stimulus import Specification
    >>> stimulus_kind("gabor")(Specification)
    Traceback (most recent call last):
    psyprobe.errors.InputError: stimulus kind 'gabor' is registered twice
    """

    def register(kind: Kind) -> Kind:
        if name in KINDS:
            raise InputError(f"stimulus kind {name!r} is registered twice")
        _add_kind(name, kind)
        return kind

    return register


def _add_kind(name: str, kind: type[Specification]) -> None:
    """Register a stimulus kind under a name, with the digest of its package's source if foreign."""
    KINDS[name] = kind
    kind.kind = name
    # What the code says is part of what it draws.
    if sources := package_digest(kind.__module__):
        kind.identity = f"{name}:{sources}"


def find_kind(name: str, *, allow_files: bool = False) -> type[Specification]:
    """Find a stimulus kind by name: built in, of an installed package, or FILE.py:CLASS.

    Parameters
    ----------
    name : str
        As it stands in a stimulus file.
    allow_files : bool
        Whether a Python file may be run for its kind: one that a user's page names, never one
        that stands in data, such as a certificate beside an image.

    Raises
    ------
    InputError
        If there is none of this name (with the nearest), or if it cannot be loaded.
    """
    in_file = ".py:" in name
    if in_file and allow_files:
        return _load_kind_in_file(name)
    if name in KINDS:
        return KINDS[name]
    if in_file:
        raise InputError(
            f"the kind {name!r} lies in a Python file, which runs only where a stimulus page "
            "names it"
        )
    points = {
        point.name: point for point in importlib.metadata.entry_points(group=GROUP)
    }
    if name not in points:
        raise unknown_name("stimulus kind", name, {*KINDS, *points})
    try:
        return _register_foreign(name, points[name].load())
    except (Exception, SystemExit) as error:
        raise InputError(
            f"the stimulus kind {name!r} of an installed package does not load: "
            f"{_describe_error(error)}"
        ) from None


def broken_kinds() -> dict[str, str]:
    """List kinds of installed packages that cannot be used, each with the reason in one line.

    Examples
    --------
    >>> broken_kinds()
    {}
    """
    reasons = {}
    for point in importlib.metadata.entry_points(group=GROUP):
        try:
            kind = point.load()
            if KINDS.get(point.name) is not kind:
                _register_foreign(point.name, kind)
        except (Exception, SystemExit) as error:
            reasons[point.name] = _describe_error(error)
    return reasons


def specification_from_dict(
    values: JsonMapping, *, allow_files: bool = False
) -> Specification:
    """Build the stimulus that `Specification.to_dict` describes.

    Parameters
    ----------
    values : mapping
        The kind and its parameters.
    allow_files : bool
        As in `find_kind`.

    Raises
    ------
    InputError
        On an unknown kind or key (with the nearest name) or a value that no stimulus has.

    Examples
    --------
    >>> from psyprobe.stimulus import Gabor
    >>> spec = Gabor(frequency=4.0, contrast=0.1)
    >>> specification_from_dict(spec.to_dict()) == spec
    True
    """
    kind = find_kind(str(values.get("kind")), allow_files=allow_files)
    parameters = {key: value for key, value in values.items() if key != "kind"}
    if isinstance(parameters.get("parts"), list):
        parameters["parts"] = [
            specification_from_dict(part, allow_files=allow_files)
            if isinstance(part, Mapping)
            else part
            for part in parameters["parts"]
        ]
    return kind.from_dict(parameters)


def _register_foreign(name: str, kind: Any) -> type[Specification]:
    """Register an object of a package or file as a stimulus kind, refusing one that is none."""
    if not (isinstance(kind, type) and hasattr(kind, "from_dict")):
        raise InputError(
            f"{name!r} is {kind!r}; a kind is a class that inherits psyprobe.stimulus.Specification"
        )
    if KINDS.get(name, kind) is not kind:
        raise InputError(f"psyprobe has a kind {name!r} itself; give it another name")
    _add_kind(name, kind)
    return kind


def _describe_error(error: BaseException, file: str | None = None) -> str:
    """Describe in one line why a stimulus kind could not be loaded."""
    if isinstance(error, InputError):
        return " ".join(str(error).split())
    return describe_failure(error, file)


def _load_kind_in_file(name: str) -> type[Specification]:
    """Load a stimulus kind from FILE.py:CLASS, with the file's digest as its identity."""
    file, _, attribute = name.rpartition(":")
    path = Path(file).resolve()
    try:
        digest = hashlib.sha256(read_sources(path)).hexdigest()
    except OSError as error:
        raise InputError(
            f"the stimulus kind {name!r} cannot be read: {error.strerror}"
        ) from None
    full_name = f"{path}:{attribute}"
    definition = getattr(_import_file(path, digest), attribute, None)
    if definition is None:
        raise InputError(
            f"{path} defines no {attribute!r}; a kind of one's own is named FILE.py:CLASS"
        )
    KINDS.pop(full_name, None)
    kind = _register_foreign(full_name, definition)
    # What the file says is part of what it draws, and where it lies is not.
    kind.identity = f"{path.name}:{attribute}:{digest}"
    return kind


@cache
def _import_file(path: Path, digest: str) -> Any:
    """Run a Python file, once for each digest of its content, and return its module."""
    try:
        return run_file(path, f"psyprobe_stimulus_{path.stem}_{digest[:16]}")
    except (Exception, SystemExit) as error:
        raise InputError(
            f"{path} cannot be imported: {_describe_error(error, str(path))}"
        ) from error
