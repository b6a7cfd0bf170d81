"""A disk that is full and a folder that is read-only, for tests."""

from __future__ import annotations

import ctypes
import os
import resource
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from psyprobe.cli import main

#: Endings of files that hold the time, their folder or, as a log of inspect, random names.
OWN = (".sqlite", ".eval", ".yaml")


@contextmanager
def full_beyond(size: int) -> Iterator[None]:
    """No file may grow beyond so many bytes, as where a disk is full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@contextmanager
def bound_by_rights() -> Iterator[None]:
    """Without the capability by which an administrator writes where the rights say no
    (capabilities(7))."""
    if os.geteuid():
        yield
        return
    if not sys.platform.startswith("linux"):
        pytest.skip("rights do not bind this administrator")
    libc = ctypes.CDLL(None, use_errno=True)
    header, capabilities = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
    assert libc.capget(header, capabilities) == 0
    dropped = (ctypes.c_uint32 * 6)(*capabilities)
    dropped[0] &= ~(1 << 1)  # CAP_DAC_OVERRIDE, of the capabilities in effect
    assert libc.capset(header, dropped) == 0
    try:
        yield
    finally:
        assert libc.capset(header, capabilities) == 0


def attack(
    command: Sequence[str],
    place: Path,
    capsys: pytest.CaptureFixture[str],
    *,
    goes_on: bool = True,
    grows: str = "",
    shares: Sequence[float] = (0.0, 0.5, 0.99),
) -> None:
    """Run a command that writes into "{out}" where the disk fills up at shares of its largest file,
    and where the folder is read-only: one line, no files but whole ones and those that grow, and
    the same at last where the command goes on in a folder that is not empty."""

    def run(out: Path) -> int:
        return main([word.replace("{out}", str(out)) for word in command])

    def refused(out: Path) -> None:
        assert run(out) == 2
        line = capsys.readouterr().err.splitlines()[-1]
        assert line.startswith("psyprobe") and len(line) < 400, line
        assert "did not foresee" not in line and "Traceback" not in line, line

    expected, full = place / "whole", place / "full"
    assert run(make(expected)) == 0
    files = contents(expected)
    assert files
    largest = max(path.stat().st_size for path in expected.rglob("*") if path.is_file())
    capsys.readouterr()
    for share in shares:
        if not goes_on:
            shutil.rmtree(full, ignore_errors=True)
        with full_beyond(int(share * largest)):
            refused(make(full))
        files_left = contents(full)
        assert files_left.keys() <= files.keys()
        differing = {name for name in files_left if files_left[name] != files[name]}
        assert all(grows and name.startswith(grows) for name in differing), differing
    if goes_on:
        assert run(full) == 0
        assert contents(full) == files
    read_only = make(place / "read-only")
    read_only.chmod(0o555)
    capsys.readouterr()
    with bound_by_rights():
        refused(read_only)
    read_only.chmod(0o755)
    assert not any(read_only.iterdir())


def make(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    """The files of a folder and of those within it; of those that hold times and paths of their own
    only that they are there."""
    return {
        str(path.relative_to(folder)): b"" if path.suffix in OWN else path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }
