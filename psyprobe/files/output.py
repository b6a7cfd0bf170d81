"""What is kept: files that are whole or not there, JSON, digests of values, and versions of software."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from psyprobe import __version__
from psyprobe.errors import InputError, PsyprobeError


def write_whole(path: Path, write: Callable[[Path], object]) -> None:
    """Write a file under another name first, so that nobody ever finds half of it.

    Parameters
    ----------
    path : Path
        Where the file shall be; one that is there is replaced.
    write : callable
        Writes to the path that it is given, which has the same ending.

    Raises
    ------
    PsyprobeError
        The file cannot be written.
    """
    # The ending stays: writers choose the format by it.
    partial = path.with_name(f".{path.stem}.{os.getpid()}{path.suffix}")
    try:
        try:
            write(partial)
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)
    except OSError as error:
        raise PsyprobeError(f"{path} cannot be written: {error.strerror or error}; give another path") from error


def write_text(path: Path, text: str) -> None:
    """Write a text file in UTF-8 as `write_whole` does."""
    write_whole(path, lambda partial: partial.write_text(text, encoding="utf-8"))


def make_folder(path: str | Path, *, empty: bool = False) -> Path:
    """Make a folder with those above it, unless it is there; it may have to be empty.

    Raises
    ------
    InputError
        It cannot be made, or holds something.
    """
    folder = Path(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if empty and any(folder.iterdir()):
            raise InputError(f"{folder} is not empty; give a new folder")
    except OSError as error:
        raise InputError(f"folder {folder} cannot be made: {error.strerror}; give another one") from error
    return folder


def json_text(value: Any) -> str:
    """JSON as it stands in files, sorted and indented: the same bytes for the same value, and never NaN."""
    return json.dumps(value, indent=2, sort_keys=True, allow_nan=False, ensure_ascii=False, default=plain_value) + "\n"


def plain_value(value: Any) -> Any:
    """A numpy scalar as Python's own, for ``json.dumps(default=)``; anything else is a TypeError."""
    if hasattr(value, "item"):
        return value.item()
    raise TypeError(f"{type(value).__name__} has no place in JSON")


def digest(value: Any) -> str:
    """SHA-256, hexadecimal, of the canonical JSON of a value without NaN and infinity; no order of keys matters.

    Examples
    --------
    >>> digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1})
    True
    """
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def plain(value: Any) -> Any:
    """A value with tuples, arrays and numpy's numbers as lists, dictionaries and numbers that JSON can hold."""
    if isinstance(value, Mapping):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    return value.tolist() if hasattr(value, "tolist") else value


def software_versions() -> dict[str, str]:
    """Version of each package that has a part in every result."""
    # Loaded here: ``psyprobe --help`` goes through this module.
    import platform
    from importlib.metadata import version

    versions = {"python": platform.python_version(), "psyprobe": __version__}
    return versions | {name: version(name) for name in ("numpy", "scipy", "xarray")}
