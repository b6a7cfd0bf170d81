"""Write files that are whole or not there, JSON and TOML, digests of values, and versions."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from psyprobe import __version__
from psyprobe.errors import InputError, PsyprobeError
from psyprobe.files.json_types import JsonMapping

#: Names of files that are being written: final name, process, machine.
_PARTIAL = re.compile(r"^\..*\.(\d+)-([0-9a-f]{8})\.part(\.[^.]*)?$", re.DOTALL)
#: Processes and folders whose abandoned files were removed.
_SWEPT: set[tuple[int, Path]] = set()
_SWEEPING = threading.Lock()


def plain_sequence(value: Any) -> list[Any]:
    """Convert a sequence of another type to a list, for ``json.dumps(default=)``."""
    if isinstance(value, Sequence):
        return [*value]
    raise TypeError(f"{type(value).__name__} has no place in JSON")


#: Encoder of values for their digests.
_CANONICAL = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), allow_nan=False, default=plain_sequence
)


def write_whole(path: Path, write: Callable[[Path], object]) -> None:
    """Write a file under a temporary name and rename it, so that nobody ever finds half of it.

    Parameters
    ----------
    path : Path
        Path of the file; an existing one is replaced.
    write : callable
        Writes to its argument, another path with the same ending.

    Raises
    ------
    PsyprobeError
        The file cannot be written.
    """
    remove_abandoned(path.parent)
    # The ending stays: writers choose the format by it.
    partial = path.with_name(
        f".{path.stem}.{os.getpid()}-{_machine()}.part{path.suffix}"
    )
    try:
        try:
            write(partial)
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)
    except OSError as error:
        raise PsyprobeError(
            f"{path} cannot be written: {error.strerror or error}; give another path"
        ) from error
    except ValueError as error:
        if "null byte" not in str(error):
            raise
        raise InputError(
            f"{path} cannot be written: its name holds a NUL; give another path"
        ) from None


@cache
def _machine() -> str:
    """Hash this machine's name, to tell its temporary files from other machines'."""
    # Loaded here: ``psyprobe --help`` goes through this module.
    import socket

    return hashlib.sha256(socket.gethostname().encode()).hexdigest()[:8]


def remove_abandoned(folder: Path) -> None:
    """Remove the half-written files that killed processes of this machine left in a folder.

    Parameters
    ----------
    folder : Path
        Folder to write to; it need not exist.
    """
    with _SWEEPING:
        sweep = (os.getpid(), folder.absolute())
        if sweep in _SWEPT:
            return
        _SWEPT.add(sweep)
        with contextlib.suppress(OSError):
            for path in folder.iterdir():
                match = _PARTIAL.search(path.name)
                if not match or match[2] != _machine():
                    continue
                pid = int(match[1])
                # Our own number is that of a dead process here: we have written nothing yet.
                if pid == os.getpid() or not is_running(pid):
                    path.unlink(missing_ok=True)


def is_running(pid: int) -> bool:
    """Return whether a process of this machine is running."""
    if os.name == "nt":
        return True  # where `os.kill` would end it
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except (OSError, OverflowError):
        return False
    return True


def write_text(path: Path, text: str) -> None:
    """Write a text file in UTF-8 as `write_whole` does."""
    write_whole(path, lambda partial: partial.write_text(text, encoding="utf-8"))


def make_folder(path: str | Path, *, empty: bool = False) -> Path:
    """Make a folder and its parents, unless it exists; with `empty` it must hold nothing.

    Raises
    ------
    InputError
        It cannot be made, or is not empty.
    """
    folder = Path(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        remove_abandoned(folder)
        if empty and any(folder.iterdir()):
            raise InputError(f"{folder} is not empty; give a new folder")
    except (OSError, ValueError) as error:  # a path with NUL is a ValueError
        if isinstance(error, InputError):
            raise
        reason = getattr(error, "strerror", None) or error
        raise InputError(
            f"folder {folder} cannot be made: {reason}; give another one"
        ) from error
    return folder


def file_stem(text: str) -> str:
    """Replace the characters of a name that a file name must not hold, such as slashes.

    Examples
    --------
    >>> file_stem("../timm:resnet50 x=-1")
    'timm-resnet50-x=-1'
    """
    return re.sub(r"[^A-Za-z0-9._=,+-]+", "-", text).strip("-.")[:200]


def json_text(value: Any) -> str:
    """Write a value as JSON with sorted keys, so that equal values give equal text; refuse NaN."""
    text = json.dumps(
        value,
        indent=2,
        sort_keys=True,
        allow_nan=False,
        ensure_ascii=False,
        default=plain_value,
    )
    return f"{text}\n"


def plain_value(value: Any) -> Any:
    """Convert a numpy scalar to a Python one, for ``json.dumps(default=)``."""
    if hasattr(value, "item"):
        return value.item()
    raise TypeError(f"{type(value).__name__} has no place in JSON")


def digest(value: Any) -> str:
    """Compute the SHA-256, hexadecimal, of a finite value's JSON, whatever the order of its keys.

    Examples
    --------
    >>> digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1})
    True
    """
    return hashlib.sha256(_CANONICAL.encode(value).encode()).hexdigest()


def plain(value: Any) -> Any:
    """Convert tuples, arrays and numpy numbers in a nested value to what JSON can hold."""
    if type(value) in (str, float, int, bool):
        return value
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    if isinstance(value, Mapping):
        return {str(key): plain(entry) for key, entry in value.items()}
    return value.tolist() if hasattr(value, "tolist") else value


@cache
def software_versions() -> Mapping[str, str]:
    """Return the version of each package that every result depends on."""
    # Read once, since each package's metadata are searched for; loaded here: ``psyprobe --help``
    # goes through this.
    import platform
    from importlib.metadata import version

    versions = {"python": platform.python_version(), "psyprobe": __version__}
    return versions | {name: version(name) for name in ("numpy", "scipy", "xarray")}


def toml_text(page: JsonMapping) -> str:
    """Write nested plain values as TOML, one line for each top-level key.

    Examples
    --------
    >>> levels = {"contrast": {"n": 8, "from": 1e-3}}
    >>> print(toml_text({"title": "A", "levels": levels, "seeds": [1, 2]}), end="")
    title = "A"
    levels = { contrast = { n = 8, from = 0.001 } }
    seeds = [1, 2]
    """
    return "".join(
        f"{_format_key(name)} = {_format_value(value)}\n"
        for name, value in page.items()
    )


def _format_key(name: str) -> str:
    """Write a name as a TOML key, quoted if it must be."""
    return (
        name
        if re.fullmatch(r"[A-Za-z0-9_-]+", name)
        else json.dumps(name, ensure_ascii=False)
    )


def _format_value(value: Any) -> str:
    """Write a value in TOML's notation, tables in one line."""
    if isinstance(value, Mapping):
        entries = ", ".join(
            f"{_format_key(name)} = {_format_value(entry)}"
            for name, entry in value.items()
        )
        return f"{{ {entries} }}" if value else "{}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_format_value, value))}]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return str(value).lower() if isinstance(value, bool) else repr(value)
