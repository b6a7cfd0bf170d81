"""A full disk, a read-only folder, five writers, an older and a newer store: one line, and nothing
answered is lost."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Mapping
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from children import child
from full_disk import bound_by_rights, full_beyond
from PIL import Image
from small_experiment import write_experiment

import psyprobe as pp
from psyprobe.cli import main
from psyprobe.running.database import SCHEMA_VERSION
from psyprobe.running.store import Store

Output = pytest.CaptureFixture[str]


def one_line_error(capsys: Output) -> str:
    message = capsys.readouterr().err
    assert message.count("\n") == 1 and "error: " in message and len(message) < 400, (
        message
    )
    return message


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_full_disk_is_one_line_and_the_run_goes_on_after_it(
    tmp_path: Path, capsys: Output
) -> None:
    command = [
        "run",
        str(write_experiment(tmp_path)),
        "--observer",
        "pixels",
        "--batch-size",
        "1",
        "--output",
    ]
    assert main([*command, str(tmp_path / "whole")]) == 0
    capsys.readouterr()
    for size in (
        1_000,
        20_000,
        60_000,
        (tmp_path / "whole" / "runs.sqlite").stat().st_size - 5_000,
    ):
        with full_beyond(size):
            assert main([*command, str(tmp_path / "broken")]) == 2
        one_line_error(capsys)
    assert main([*command, str(tmp_path / "broken")]) == 0
    files = {path.name for path in (tmp_path / "broken").iterdir()}
    assert files == {path.name for path in (tmp_path / "whole").iterdir()}
    for name in files - {"runs.sqlite"}:
        assert (tmp_path / "broken" / name).read_bytes() == (
            tmp_path / "whole" / name
        ).read_bytes()


def test_corrupt_on_a_full_disk_leaves_whole_files_alone_and_goes_on_after_it(
    tmp_path: Path, capsys: Output
) -> None:
    pytest.importorskip("cv2", reason="the corruption extra is not installed")
    pytest.importorskip("skimage", reason="the corruption extra is not installed")
    pixels = np.random.default_rng(1).integers(0, 256, (48, 48, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(tmp_path / "noise.png")
    command = [
        "corrupt",
        str(tmp_path / "noise.png"),
        "--name",
        "mean_shift",
        "jpeg",
        "--output",
    ]
    assert main([*command, str(tmp_path / "whole")]) == 0
    files_of_whole = contents(tmp_path / "whole")
    capsys.readouterr()
    for size in (200, sorted(map(len, files_of_whole.values()))[3]):
        with full_beyond(size):
            assert main([*command, str(tmp_path / "broken")]) == 2
        assert str(tmp_path / "broken") in one_line_error(capsys)
        files_left = contents(tmp_path / "broken")
        assert files_left.items() <= files_of_whole.items() and len(files_left) < len(
            files_of_whole
        )
    assert main([*command, str(tmp_path / "broken")]) == 0
    assert contents(tmp_path / "broken") == files_of_whole


def test_a_folder_in_which_nothing_can_be_written_is_one_line(
    tmp_path: Path, capsys: Output
) -> None:
    if not Path("/proc/self").is_dir():
        pytest.skip("/proc, which refuses even an administrator, is not here")
    assert (
        main(
            [
                "run",
                str(write_experiment(tmp_path)),
                "--observer",
                "pixels",
                "--output",
                "/proc/results",
            ]
        )
        == 2
    )
    assert "/proc/results" in one_line_error(capsys)


def test_a_read_only_folder_is_one_line_and_its_store_can_be_read(
    tmp_path: Path, capsys: Output
) -> None:
    folder, page = tmp_path / "results", str(write_experiment(tmp_path))
    command = ["run", page, "--observer", "pixels", "--output", str(folder)]
    assert main(command) == 0
    before, store = contents(folder), str(folder / "runs.sqlite")
    capsys.readouterr()
    folder.chmod(0o555)
    (folder / "runs.sqlite").chmod(0o444)
    with bound_by_rights():
        assert main(command) == 2
        assert str(folder) in one_line_error(capsys)
        assert main([*command[:-1], str(folder / "new")]) == 2
        assert str(folder / "new") in one_line_error(capsys)
        for arguments in (
            ["score", store],
            ["store", "info", store],
            ["store", "verify", store],
        ):
            assert main(arguments) == 0
            assert capsys.readouterr().err == ""
    folder.chmod(0o755)
    assert contents(folder) == before


@pytest.mark.parametrize("version", [SCHEMA_VERSION - 1, SCHEMA_VERSION + 1])
def test_an_older_and_a_newer_store_are_one_line_and_stay_as_they_are(
    version: int, tmp_path: Path, capsys: Output
) -> None:
    folder, page = tmp_path / "results", str(write_experiment(tmp_path))
    run = ["run", page, "--observer", "pixels", "--output", str(folder)]
    assert main(run) == 0
    store = folder / "runs.sqlite"
    with closing(sqlite3.connect(store)) as connection:
        connection.execute(f"PRAGMA user_version = {version}")
    before = contents(folder)
    capsys.readouterr()
    for command in (
        run,
        ["score", store],
        ["plot", store, "-o", folder / "p.png"],
        ["store", "info", store],
    ):
        assert main(list(map(str, command))) == 2
        assert (
            f"has schema {version}, and this psyprobe reads schema {SCHEMA_VERSION} only"
            in one_line_error(capsys)
        )
    assert contents(folder) == before


#: Asks, and writes the result as the command does; figures of five processes would take long.
_RUN = """
import sys
from pathlib import Path
from typing import Any
import psyprobe as pp
from psyprobe.files.output import write_whole
page, folder = sys.argv[1], Path(sys.argv[2])
result = pp.run(page, "pixels", store=folder / "runs.sqlite", batch_size=1, progress=False)
write_whole(folder / "result.nc", lambda path: result.to_netcdf(path, engine="scipy"))
"""


@pytest.mark.slow
def test_five_processes_at_once_leave_what_one_does(tmp_path: Path) -> None:
    page = str(write_experiment(tmp_path))
    for name in ("alone", "together"):
        (tmp_path / name).mkdir()
    result = pp.run(
        page,
        "pixels",
        store=tmp_path / "alone" / "runs.sqlite",
        batch_size=1,
        progress=False,
    )
    result.to_netcdf(tmp_path / "alone" / "result.nc", engine="scipy")
    command = [sys.executable, "-c", _RUN, page, str(tmp_path / "together")]
    with ExitStack() as stack:
        five = [stack.enter_context(child(command)) for _ in range(5)]
        assert [process.wait() for process in five] == [0] * 5
    alone, of_five = contents(tmp_path / "alone"), contents(tmp_path / "together")
    assert alone.keys() == of_five.keys() and alone["result.nc"] == of_five["result.nc"]
    assert answered(tmp_path / "alone") == answered(tmp_path / "together")


def answered(folder: Path) -> dict[str, Mapping[str, Any]]:
    with Store(folder / "runs.sqlite", create=False) as store:
        return {
            answered_question.question.key: answered_question.answer
            for answered_question, _ in store.all_answers()
        }
