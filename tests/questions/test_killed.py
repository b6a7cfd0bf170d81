"""Issue 4, point 6, in small: faults, three kills, nothing stored lost or asked again, and the key
nowhere."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from children import child

pytest.importorskip("aiohttp", reason="the chat extra is not installed")

from killed_runs import KEY, MODEL, Witness, answered, repeated_requests, run_and_kill
from small_questions import write_questions

import psyprobe as pp
from psyprobe._typing import FloatArray
from psyprobe.analysis import trials
from psyprobe.observers.chat.protocol import Answer
from psyprobe.observers.simulated.serving import Faults, SimulatedServer

FAULTS = Faults(
    overload=0.1,
    error=0.05,
    hang=0.02,
    truncated=0.01,
    reset=0.02,
    retry_after=0.05,
    seed=5,
)
#: 20 levels x 12 repeats and catch trials in 2 wordings: some 530 questions.
LARGER = (
    ("[2, 4]", "[1, 2, 3, 4, 6]"),
    ("[0.03, 0.08, 0.2]", "[0.01, 0.03, 0.08, 0.2]"),
    ("repeats = { text = 4, p_yes = 2 }", 'repeats = 12\nreadout = "p_yes"'),
)


@pytest.mark.slow
def test_killed_three_times_nothing_is_lost_or_asked_again(tmp_path: Path) -> None:
    path, folder = write_questions(tmp_path, *LARGER), tmp_path / "results"
    local = Witness(deg=2)
    expected = trials(pp.run(path, local))
    total = expected.sizes["trial"]
    moments = np.sort(np.random.default_rng(7).integers(20, total - 40, 3))
    witness = Witness(deg=2)
    with SimulatedServer(witness, faults=FAULTS, latency=0.01) as server:
        course = run_and_kill(
            path,
            folder,
            server.base_url,
            witness,
            moments.tolist(),
            "concurrency=8",
            "timeout=1",
        )
    # Answers stored before a kill are unchanged at the end.
    for before, after in pairwise(course.stored):
        assert before.items() <= after.items()
    assert [len(stored) for stored in course.stored][-1] == total
    assert all(
        len(stored) >= moment
        for stored, moment in zip(course.stored, moments, strict=False)
    )
    # Trials have the same numbers in both runs, so that the server's notes can be told from one
    # another.
    result = trials(pp.load_results(folder / "runs.sqlite")[0])
    np.testing.assert_array_equal(result["prompt_text"], expected["prompt_text"])
    np.testing.assert_array_equal(result["image_seed"], expected["image_seed"])
    assert sorted(set(witness.requests)) == sorted(set(local.requests))
    assert not repeated_requests(course, folder / "runs.sqlite", local, witness)
    # Over HTTP the twenty likeliest tokens are listed, so that odds end at those of the last.
    np.testing.assert_allclose(result["response"], expected["response"], atol=1e-3)
    written = [file.read_bytes() for file in folder.iterdir()]
    assert all(KEY.encode() not in content for content in written)
    assert all(KEY not in out for out in course.output)


class Stuck(Witness):
    """Answers so many questions, and then hangs until it is told to go on."""

    def __init__(self, limit: int) -> None:
        super().__init__(deg=2)
        self.limit, self.go = limit, threading.Event()

    def answer(
        self, images: Sequence[FloatArray], prompt: str, **options: Any
    ) -> Answer:
        if len(self.requests) >= self.limit:
            self.go.wait()
        return super().answer(images, prompt, **options)


def test_a_question_that_hangs_and_a_kill_lose_no_answer(tmp_path: Path) -> None:
    path, folder, stuck = (
        write_questions(tmp_path),
        tmp_path / "results",
        Stuck(limit=20),
    )
    command = [
        sys.executable,
        "-m",
        "psyprobe",
        "run",
        str(path),
        "--observer",
        f"openai:{MODEL}",
    ]
    command += ["--output", str(folder), "--observer-option", "concurrency=1"]
    with SimulatedServer(stuck) as server:
        environment = {
            **os.environ,
            "OPENAI_BASE_URL": server.base_url,
            "OPENAI_API_KEY": KEY,
        }
        with child(
            command,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ) as process:
            while len(answered(folder / "runs.sqlite")) < 20 and process.poll() is None:
                time.sleep(0.05)
        stuck.go.set()
        stored = answered(folder / "runs.sqlite")
    assert len(stored) == 20
    witness = Witness(deg=2)
    with SimulatedServer(witness) as server:
        environment["OPENAI_BASE_URL"] = server.base_url
        assert (
            subprocess.run(
                command, env=environment, capture_output=True, timeout=1200
            ).returncode
            == 0
        )
    everything = answered(folder / "runs.sqlite")
    assert stored.items() <= everything.items()
    assert len(witness.requests) == len(everything) - 20


@pytest.mark.parametrize("trouble", ["wrong key", "no server"])
def test_the_key_is_in_no_error(tmp_path: Path, trouble: str) -> None:
    path, witness = write_questions(tmp_path), Witness(deg=2)
    with SimulatedServer(witness, key="another") as server:
        url = server.base_url if trouble == "wrong key" else "http://127.0.0.1:9/v1"
        process = subprocess.run(
            [
                sys.executable,
                "-W",
                "error",
                "-m",
                "psyprobe",
                "run",
                str(path),
                "--observer",
                f"openai:{MODEL}",
                "--output",
                str(tmp_path / "r"),
                "--observer-option",
                "retries=1",
            ],
            env={
                "OPENAI_BASE_URL": url,
                "OPENAI_API_KEY": KEY,
                "PATH": str(Path(shutil.which("env") or "/").parent),
            },
            capture_output=True,
            text=True,
            timeout=1200,
        )
    assert (
        process.returncode == 2
        and process.stdout == ""
        and process.stderr.count("\n") == 1
    ), process.stderr
    assert KEY not in process.stderr
    assert all(
        KEY.encode() not in file.read_bytes()
        for file in tmp_path.rglob("*")
        if file.is_file()
    )
