"""Observers for workers: each writes what it was shown, and by which process, into a file that a
variable names."""

from __future__ import annotations

import contextlib
import hashlib
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

import psyprobe as pp
from psyprobe._typing import FloatArray

VARIABLE = "PSYPROBE_TEST_NOTES"


def note(images: FloatArray) -> None:
    """Write a line, whole however many processes do; references, uniform fields, are shown to every
    worker."""
    if np.ptp(images, axis=(1, 2)).max() < 1e-5:
        return
    line = f"{os.getpid()} {hashlib.sha256(np.ascontiguousarray(images).tobytes()).hexdigest()}\n"
    with Path(os.environ[VARIABLE]).open("ab", buffering=0) as file:
        file.write(line.encode())


def notes(path: Path) -> list[tuple[int, str]]:
    """Process and digest of what was shown, in the order of the file."""
    lines = path.read_text(encoding="utf-8").split("\n")[:-1] if path.exists() else []
    return [(int(line.split()[0]), line.split()[1]) for line in lines]


def repeated_batches(path: Path) -> list[set[int]]:
    """Return the processes of each batch that was displayed more than once."""
    pids_by_digest: dict[str, list[int]] = {}
    for pid, digest in notes(path):
        pids_by_digest.setdefault(digest, []).append(pid)
    return [set(pids) for pids in pids_by_digest.values() if len(pids) > 1]


def kill_one(
    path: Path, when: int, pids: list[int], killed: list[int]
) -> threading.Thread:
    """Kill one of some processes, any if none are named, when so many batches were shown; it is put
    into a list."""

    def kill() -> None:
        end = time.monotonic() + 200
        while not killed and time.monotonic() < end:
            candidates = [pid for pid, _ in notes(path) if not pids or pid in pids]
            if len(notes(path)) >= when and candidates:
                # The process that noted the last image is at a unit.
                killed.append(candidates[-1])
                os.kill(killed[0], signal.SIGKILL)
            time.sleep(0.002)

    thread = threading.Thread(target=kill, daemon=True)
    thread.start()
    return thread


def rows(images: FloatArray) -> FloatArray:
    """Features that take their time."""
    note(images)
    time.sleep(0.01)
    coarse = images[:, ::8, ::8] if images.shape[1] > 100 else images
    flat = coarse.reshape(len(images), -1).astype(np.float64)
    return np.concatenate([flat, np.square(flat[:, ::3] - 0.5)], axis=1)


def in_company(images: FloatArray) -> FloatArray:
    """The same, once another process has been shown something, too."""
    features, end = rows(images), time.monotonic() + 200
    while {pid for pid, _ in notes(Path(os.environ[VARIABLE]))} == {
        os.getpid()
    } and time.monotonic() < end:
        time.sleep(0.01)
    return features


def deadly(images: FloatArray) -> FloatArray:
    """Features that kill their process at high contrast."""
    note(images)
    if np.ptp(images) > 0.4:
        os.kill(os.getpid(), signal.SIGKILL)
    return images.reshape(len(images), -1).astype(np.float64)


def dawdling(images: FloatArray) -> FloatArray:
    """Features for which the first process that is shown a pattern takes ten seconds, once."""
    note(images)
    if np.ptp(images) > 0.05:
        with contextlib.suppress(FileExistsError):
            Path(os.environ[VARIABLE]).with_suffix(".dawdled").touch(exist_ok=False)
            time.sleep(10)
    return images.reshape(len(images), -1).astype(np.float64)


def failing(images: FloatArray) -> FloatArray:
    """Features that fail at high contrast."""
    if np.ptp(images) > 0.4:
        raise ValueError("too bright for me")
    return images.reshape(len(images), -1).astype(np.float64)


def observer(function: Any = rows, **options: Any) -> Any:
    """One of these functions as an observer."""
    return pp.observer(function, name=function.__name__, **options)


def written(result: Any, path: Path) -> bytes:
    """The bytes of a result's file."""
    result.to_netcdf(path, engine="scipy")
    return path.read_bytes()


def same_bytes(first: Any, other: Any, folder: Path) -> bool:
    """Say whether two results have the same bytes as files."""
    return written(first, folder / "one.nc") == written(other, folder / "other.nc")
