"""Results of long computations, kept for the next process by the digest of all that goes into them.

What is kept saves time, and nothing rests on it: where the folder cannot be used, or a file in it
is damaged, the result is computed again.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Callable, Mapping
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from psyprobe.errors import PsyprobeError
from psyprobe.files.output import make_folder, write_whole

#: Names the folder; empty for none.
VARIABLE = "PSYPROBE_CACHE"

#: Files in the folder, and results in memory; beyond, the oldest go.
_MOST_FILES = 1000
_MOST_IN_MEMORY = 32
#: What this process computed or read, by name.
_IN_MEMORY: dict[str, dict[str, Any]] = {}


def kept(given: str, code: Path, compute: Callable[[], Mapping[str, Any]]) -> dict[str, Any]:
    """What a computation gives, or gave before to the same input, the same code and the same numpy
    and scipy.

    Parameters
    ----------
    given : str
        Digest of the input.
    code : Path
        The folder whose sources compute.
    compute : callable
        Gives arrays by name.

    Returns
    -------
    dict of str to ndarray
        Whoever gets it may write to it.

    Examples
    --------
    >>> kept("a0", Path(__file__).parent, lambda: {"two": np.array([2.0])})["two"]
    array([2.])
    """
    name = hashlib.sha256(f"{given} {_made_by(code)}".encode()).hexdigest()[:32]
    if name not in _IN_MEMORY:
        folder = cache_folder()
        path = None if folder is None else folder / f"{name}.npz"
        found = None if path is None else _read(path)
        if found is None:
            found = dict(compute())
            if path is not None:
                _write(path, found)
        _IN_MEMORY[name] = found
        if len(_IN_MEMORY) > _MOST_IN_MEMORY:
            del _IN_MEMORY[next(iter(_IN_MEMORY))]
    return {key: values.copy() for key, values in _IN_MEMORY[name].items()}


def cache_folder() -> Path | None:
    """Where results are kept: the folder that `PSYPROBE_CACHE` names, else ``~/.cache/psyprobe``;
    None for nowhere.
    """
    if (named := os.environ.get(VARIABLE)) is not None:
        return Path(named) if named else None
    try:
        return Path.home() / ".cache" / "psyprobe"
    except RuntimeError:  # nobody's home
        return None


@cache
def _made_by(code: Path) -> str:
    """Digest of all sources in a folder, and of the versions of what they compute with."""
    told = hashlib.sha256(f"{version('numpy')} {version('scipy')}".encode())
    for path in sorted(code.rglob("*.py")):
        told.update(hashlib.sha256(path.read_bytes()).digest())
    return told.hexdigest()


def _read(path: Path) -> dict[str, Any] | None:
    """What a file holds; None where there is none, or it is damaged."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files}
    except Exception:  # damage shows in many ways
        return None


def _write(path: Path, values: Mapping[str, Any]) -> None:
    with contextlib.suppress(PsyprobeError, OSError):
        make_folder(path.parent)
        write_whole(path, lambda partial: np.savez_compressed(partial, **values))
        for old in sorted(path.parent.glob("*.npz"), key=lambda each: each.stat().st_mtime)[
            :-_MOST_FILES
        ]:
            old.unlink(missing_ok=True)
