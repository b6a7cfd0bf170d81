"""A disk that is full, and a folder in which nothing can be written: one line, and nothing answered is lost."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from small_experiment import write_experiment

from psyprobe.cli import main


@contextmanager
def full_beyond(size: int) -> Iterator[None]:
    """No file may grow beyond so many bytes, as where a disk is full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_is_one_line_and_the_run_goes_on_after_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["run", str(write_experiment(tmp_path)), "--observer", "pixels", "--batch-size", "1", "--output"]
    assert main([*command, str(tmp_path / "whole")]) == 0
    capsys.readouterr()
    for size in (1_000, 20_000, 60_000, (tmp_path / "whole" / "runs.sqlite").stat().st_size - 5_000):
        with full_beyond(size):
            assert main([*command, str(tmp_path / "broken")]) == 2
        told = capsys.readouterr().err
        assert told.count("\n") == 1 and "error: " in told and len(told) < 400, told
    assert main([*command, str(tmp_path / "broken")]) == 0
    files = {path.name for path in (tmp_path / "broken").iterdir()}
    assert files == {path.name for path in (tmp_path / "whole").iterdir()}
    for name in files - {"runs.sqlite"}:
        assert (tmp_path / "broken" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_a_folder_in_which_nothing_can_be_written_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if not Path("/proc/self").is_dir():
        pytest.skip("/proc, which refuses even an administrator, is not here")
    assert main(["run", str(write_experiment(tmp_path)), "--observer", "pixels", "--output", "/proc/results"]) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1 and "/proc/results" in told
