"""Which kinds of stimulus there are: psyprobe's own, those of installed packages, and those in a file of one's own."""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from psyprobe.errors import InputError, unknown_name

if TYPE_CHECKING:
    from psyprobe.stimulus.specification import Specification

#: Entry points of packages that bring kinds of their own.
GROUP = "psyprobe.stimuli"

#: Kinds by name, as they stand in a stimulus file.
KINDS: dict[str, type[Specification]] = {}


def stimulus_kind(name: str) -> Any:
    """Class decorator that registers a kind of stimulus under a name."""

    def register(cls: type[Specification]) -> type[Specification]:
        if name in KINDS:
            raise InputError(f"stimulus kind {name!r} is registered twice")
        KINDS[name] = cls
        cls.kind = name
        return cls

    return register


def find_kind(name: str, *, own_files: bool = False) -> type[Specification]:
    """The kind of a name: ours, that of an entry point, or ``FILE.py:CLASS``.

    Parameters
    ----------
    name : str
        As it stands in a stimulus file.
    own_files : bool
        Whether a Python file may be run for its kind: one that a user's own page names, never one that stands in
        data, such as a certificate beside an image.

    Raises
    ------
    InputError
        If there is none of this name (with the nearest), or if it cannot be loaded.
    """
    if own_files and ".py:" in name:
        return _kind_in_file(name)
    if name in KINDS:
        return KINDS[name]
    if ".py:" in name:
        raise InputError(f"the kind {name!r} lies in a Python file, which runs only where a stimulus page names it")
    points = {point.name: point for point in importlib.metadata.entry_points(group=GROUP)}
    if name not in points:
        raise unknown_name("stimulus kind", name, {*KINDS, *points})
    try:
        return _registered(name, points[name].load())
    except Exception as error:
        raise InputError(f"the stimulus kind {name!r} of an installed package does not load: {_why(error)}") from None


def broken_kinds() -> dict[str, str]:
    """Kinds of installed packages that cannot be used, each with the reason in one line."""
    broken = {}
    for point in importlib.metadata.entry_points(group=GROUP):
        try:
            if KINDS.get(point.name) is not (found := point.load()):
                _registered(point.name, found)
        except Exception as error:
            broken[point.name] = _why(error)
    return broken


def specification_from_dict(values: Mapping[str, Any], *, own_files: bool = False) -> Specification:
    """The specification that `Specification.to_dict` describes; `own_files` as in `find_kind`.

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
    kind = find_kind(str(values.get("kind")), own_files=own_files)
    rest = {key: value for key, value in values.items() if key != "kind"}
    if isinstance(rest.get("parts"), list):
        rest["parts"] = [
            specification_from_dict(part, own_files=own_files) if isinstance(part, Mapping) else part
            for part in rest["parts"]
        ]
    return kind.from_dict(rest)


def _registered(name: str, found: Any) -> type[Specification]:
    """A class that a package or a file brings, under its name."""
    if not (isinstance(found, type) and hasattr(found, "from_dict")):
        raise InputError(f"{name!r} is {found!r}; a kind is a class that inherits psyprobe.stimulus.Specification")
    if KINDS.get(name, found) is not found:
        raise InputError(f"psyprobe has a kind {name!r} itself; give it another name")
    KINDS[name] = found
    found.kind = name
    return found


def _why(error: Exception) -> str:
    text = str(error) if isinstance(error, InputError) else f"{type(error).__name__}: {error}"
    return " ".join(text.split())


def _kind_in_file(name: str) -> type[Specification]:
    file, _, attribute = name.rpartition(":")
    path = Path(file).resolve()
    try:
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise InputError(f"the stimulus kind {name!r} cannot be read: {error.strerror}") from None
    full = f"{path}:{attribute}"
    found = getattr(_module(path, digest), attribute, None)
    if found is None:
        raise InputError(f"{path} defines no {attribute!r}; a kind of one's own is named FILE.py:CLASS")
    KINDS.pop(full, None)
    # Where the file lies is not part of what it draws; what it says is.
    found.identity = f"{path.name}:{attribute}:{digest}"
    return _registered(full, found)


@cache
def _module(path: Path, digest: str) -> Any:
    """The module of a file as it was when it had this digest."""
    name = f"psyprobe_stimulus_{path.stem}_{digest[:16]}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    # Dataclasses look their module up by its name.
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        raise InputError(f"{path} cannot be imported: {_why(error)}") from None
    return module
