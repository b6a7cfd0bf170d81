"""Which software had a part in a result."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

from psyprobe import __version__

_SOFTWARE = ("psyprobe", "numpy", "scipy", "xarray")


def software_versions() -> dict[str, str]:
    """Version of each package that has a part in every result."""
    versions = {"python": platform.python_version()}
    for name in _SOFTWARE:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            versions[name] = __version__ if name == "psyprobe" else "not installed"
    return versions
