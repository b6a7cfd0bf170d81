"""Cache results of long computations for the next process, by the digest of all their inputs.

The cache only saves time: if its folder cannot be used, or a file in it is damaged, the result is
computed again.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Callable
from functools import cache
from importlib.metadata import version
from pathlib import Path

import numpy as np

from psyprobe.errors import PsyprobeError
from psyprobe.files.json_types import JsonMapping, JsonObject
from psyprobe.files.output import make_folder, write_whole

#: Environment variable with the folder; empty for none.
VARIABLE = "PSYPROBE_CACHE"

#: Files in the folder, and results in memory; beyond, the oldest go.
_MAX_FILES = 1000
_MAX_IN_MEMORY = 32
#: Results that this process computed or read, by name.
_IN_MEMORY: dict[str, JsonObject] = {}


def cached(
    input_digest: str, code: Path, compute: Callable[[], JsonMapping]
) -> JsonObject:
    """Return a computation's arrays, from the cache if input, code, numpy and scipy are the same.

    Parameters
    ----------
    input_digest : str
        Digest of the input.
    code : Path
        Folder with the sources of the computation.
    compute : callable
        Returns arrays by name.

    Returns
    -------
    dict of str to ndarray
        Copies, which the caller may write to.

    Examples
    --------
    >>> cached("a0", Path(__file__).parent, lambda: {"two": np.array([2.0])})["two"]
    array([2.])
    """
    name = hashlib.sha256(f"{input_digest} {code_digest(code)}".encode()).hexdigest()[
        :32
    ]
    if name not in _IN_MEMORY:
        folder = cache_folder()
        path = None if folder is None else folder / f"{name}.npz"
        arrays = None if path is None else _read(path)
        if arrays is None:
            arrays = dict(compute())
            if path is not None:
                _write_arrays(path, arrays)
        _IN_MEMORY[name] = arrays
        if len(_IN_MEMORY) > _MAX_IN_MEMORY:
            del _IN_MEMORY[next(iter(_IN_MEMORY))]
    return {key: values.copy() for key, values in _IN_MEMORY[name].items()}


def cache_folder() -> Path | None:
    """Return the folder that `PSYPROBE_CACHE` names, else ~/.cache/psyprobe; None for no cache."""
    setting = os.environ.get(VARIABLE)
    if setting is not None:
        return Path(setting) if setting else None
    try:
        return Path.home() / ".cache" / "psyprobe"
    except RuntimeError:  # nobody's home
        return None


@cache
def code_digest(code: Path) -> str:
    """Compute the digest of all files in a folder, and of the versions of numpy and scipy.

    Parameters
    ----------
    code : Path
        The folder, with sources and the tables that these read.
    """
    sources = hashlib.sha256(f"{version('numpy')} {version('scipy')}".encode())
    for path in sorted(code.rglob("*")):
        if path.is_file() and path.suffix != ".pyc":
            sources.update(hashlib.sha256(path.read_bytes()).digest())
    return sources.hexdigest()


def _read(path: Path) -> JsonObject | None:
    """Read the arrays of a cache file; None if there is none, or it is damaged."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files}
    except Exception:  # damage shows in many ways
        return None


def _write_arrays(path: Path, values: JsonMapping) -> None:
    """Write arrays to a file of the cache and delete the oldest beyond a limit, if it can."""
    with contextlib.suppress(PsyprobeError, OSError):
        make_folder(path.parent)
        write_whole(path, lambda partial: np.savez_compressed(partial, **values))
        files = sorted(path.parent.glob("*.npz"), key=lambda file: file.stat().st_mtime)
        for file in files[:-_MAX_FILES]:
            file.unlink(missing_ok=True)
