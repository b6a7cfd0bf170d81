"""What records keep of where a number comes from: values by their content, and versions of software."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from psyprobe import __version__

_SOFTWARE = ("psyprobe", "numpy", "scipy", "xarray")


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
    if isinstance(value, list | tuple | np.ndarray):
        return [plain(entry) for entry in value]
    return value.item() if isinstance(value, np.generic) else value


def software_versions() -> dict[str, str]:
    """Version of each package that has a part in every result."""
    versions = {"python": platform.python_version()}
    for name in _SOFTWARE:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            versions[name] = __version__ if name == "psyprobe" else "not installed"
    return versions
