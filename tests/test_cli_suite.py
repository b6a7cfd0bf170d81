"""Suites on the command line: planned, run for scores alone, killed and taken up again, matching
among them."""

from __future__ import annotations

import json
import re
import sqlite3
import subprocess
import sys
import time
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from children import child
from small_experiment import write_experiment

from psyprobe.cli import main

Output = pytest.CaptureFixture[str]

GRATINGS = """
title = "Small gratings"
kind = "grating"
[parameters]
frequency = 5.0
contrast = 0.5
luminance = 10.0
ppd = 60
size = 124
"""

MATCHING = """
title = "A small matching experiment"
stimulus = "small_gratings.toml"
probe = "matching"
[human]
data = "georgeson_sullivan1975"
[levels]
frequency = { values = [0.25, 0.5, 1, 2, 3, 5, 10, 15, 20, 25] }
contrast = { from = 0.001, to = 1, n = 9, scale = "log" }
[display]
peak = 400
"""


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    write_experiment(tmp_path)
    (tmp_path / "small_gratings.toml").write_text(GRATINGS, encoding="utf-8")
    (tmp_path / "matching.toml").write_text(MATCHING, encoding="utf-8")
    path = tmp_path / "suite.toml"
    path.write_text(
        'title = "Two"\nexperiments = ["small.toml", "matching.toml"]', encoding="utf-8"
    )
    return path


def succeed(capsys: Output, *arguments: object) -> str:
    assert main([str(argument) for argument in arguments]) == 0
    return capsys.readouterr().out


def test_a_plan_counts_clips_as_clips(
    capsys: Output, suite: Path, tmp_path: Path
) -> None:
    arguments = (
        "run",
        suite.with_name("small.toml"),
        "temporal_drift",
        "--observer",
        "pixels",
        "--plan",
    )
    output = succeed(capsys, *arguments, "--output", tmp_path)
    assert re.search(
        r"\nIn all 16 distinct images and \d+ distinct clips; what is left takes",
        output,
    )


def test_a_suite_is_planned_with_its_time(
    capsys: Output, suite: Path, tmp_path: Path
) -> None:
    arguments = (
        "run",
        suite,
        "--observer",
        "pixels",
        "--store",
        tmp_path / "runs.sqlite",
        "--output",
        tmp_path,
    )
    output = succeed(capsys, *arguments, "--plan")
    assert (
        "small with pixels: 16 distinct images" in output
        and "matching with pixels: " in output
    )
    assert re.search(
        r"In all \d+ distinct images; what is left takes about \d+ s, an estimate",
        output,
    )
    full_plans, short = (
        json.loads(succeed(capsys, *arguments, "--plan", "--json", *options))
        for options in ((), ("--score-only",))
    )
    # A grid of 3 x 3 for the figure alone; 9 contrasts of the frequency at which people did not
    # match.
    assert [
        a["images"] - b["images"] for a, b in zip(full_plans, short, strict=True)
    ] == [
        9,
        9,
    ]
    assert all(suite_plan["seconds"] > 0 for suite_plan in full_plans)
    assert not (tmp_path / "runs.sqlite").exists()
    succeed(capsys, *arguments)
    assert "what is left takes about 1 s" in succeed(capsys, *arguments, "--plan")
    plans_after = json.loads(succeed(capsys, *arguments, "--plan", "--json"))
    assert [suite_plan["seconds"] for suite_plan in plans_after] == [0, 0]
    assert all(
        suite_plan["answered"] == suite_plan["questions"] for suite_plan in plans_after
    )


def test_a_suite_for_scores_alone_scores_as_the_whole_suite(
    capsys: Output, suite: Path, tmp_path: Path
) -> None:
    arguments = ("run", suite, "--observer", "pixels", "--output", tmp_path)
    output = succeed(capsys, *arguments, "--score-only")
    assert "small (angular)" in output and "matching (angular" in output
    names = {path.name for path in tmp_path.iterdir()}
    assert {
        "small-pixels-score.nc",
        "matching-pixels-score.nc",
        "matching-pixels-score.png",
    } <= names
    # There is no contour to draw.
    assert "small-pixels-score.png" not in names
    succeed(capsys, *arguments)
    for name, place in (
        ("small", ("score", "alignment")),
        ("matching", ("score", "error")),
    ):
        short, full_score = (
            json.loads(
                (tmp_path / f"{name}-pixels{end}.json").read_text(encoding="utf-8")
            )[0]
            for end in ("-score", "")
        )
        assert short[place[0]][place[1]] == full_score[place[0]][place[1]]


def test_what_people_saw_otherwise_is_told_before_anything_is_asked(
    capsys: Output, tmp_path: Path
) -> None:
    (tmp_path / "people.csv").write_text(
        "frequency,luminance,contrast\n1,20,0.02\n2,20,0.01\n4,20,0.02\n"
    )
    page = write_experiment(tmp_path, ('model = "castle_csf"', 'data = "people.csv"'))
    arguments = [
        "run",
        str(page),
        "--observer",
        "pixels",
        "--output",
        str(tmp_path / "results"),
    ]
    note = "people.csv: people were measured at luminance 20 cd/m², the stimulus has 100 cd/m²"
    assert f"Note: {note}." in succeed(capsys, *arguments, "--plan")
    (planned,) = json.loads(succeed(capsys, *arguments, "--plan", "--json"))
    assert list(planned["remarks"]) == [note]
    assert main(arguments) == 0
    first, *warnings = capsys.readouterr().err.splitlines()
    assert first == f"Note: small: {note}"
    assert not any("Warning" in line for line in warnings)


def test_a_killed_suite_ends_with_the_same_bytes(suite: Path, tmp_path: Path) -> None:
    def start(output: str) -> AbstractContextManager[subprocess.Popen[bytes]]:
        arguments = [
            "run",
            str(suite),
            "--observer",
            "pixels",
            "--batch-size",
            "1",
            "--output",
            str(tmp_path / output),
        ]
        return child(
            [sys.executable, "-m", "psyprobe", *arguments],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    with start("whole") as process:
        assert process.wait() == 0
    total, answer_counts = answered(tmp_path / "whole"), []
    # In the detection experiment, and twice in the matching experiment after it.
    for moment in (4, total // 3, total // 2):
        with start("broken") as process:
            # A machine with much else to do may let it end before it is killed.
            while answered(tmp_path / "broken") < moment and process.poll() is None:
                time.sleep(0.002)
        answer_counts.append(answered(tmp_path / "broken"))
    assert 0 < answer_counts[0] < total and answer_counts == sorted(answer_counts)
    with start("broken") as process:
        assert process.wait() == 0
    for name in ("small-pixels", "matching-pixels"):
        for ending in ("nc", "json", "png"):
            file = f"{name}.{ending}"
            assert (tmp_path / "broken" / file).read_bytes() == (
                tmp_path / "whole" / file
            ).read_bytes()


def answered(folder: Path) -> int:
    """Questions in a store that another process writes to."""
    store = folder / "runs.sqlite"
    if not store.exists():
        return 0
    connection = sqlite3.connect(f"file:{store}?mode=ro", uri=True)
    try:
        count: int = connection.execute("SELECT count(*) FROM answer").fetchone()[0]
        return count
    except sqlite3.OperationalError:
        # Not made yet, or its journal just being rolled back.
        return 0
    finally:
        connection.close()
