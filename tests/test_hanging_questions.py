"""A question that hangs and a kill lose no answer: of items, of a judge, of a construction."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from children import child
from item_pages import write_page
from PIL import Image

pytest.importorskip("aiohttp", reason="the chat extra is not installed")

from psyprobe.observers.chat.protocol import Answer
from psyprobe.observers.protocol import Card
from psyprobe.observers.simulated.serving import SimulatedServer

#: Code that asks questions in a process of its own.
RUN = (
    "import sys, psyprobe as pp; pp.run(sys.argv[1], pp.load_observer('openai:' + "
    "sys.argv[2]), store=sys.argv[3])"
)


class Stuck:
    """Answers so many questions, and then hangs until it is told to go on."""

    bits, images_at_once = None, None

    def __init__(self, name: str, limit: int | None = None) -> None:
        self.card, self.limit, self.go = Card(name, "answer"), limit, threading.Event()
        self.prompts: list[str] = []

    def delivered(self, image: Any) -> Any:
        return image

    def answer(self, images: Sequence[Any], prompt: str, **_: Any) -> Answer:
        if self.limit is not None and len(self.prompts) >= self.limit:
            self.go.wait()
        self.prompts.append(prompt)
        return Answer(f"something {len(images)}")


@pytest.fixture
def pair_set(tmp_path: Path) -> Path:
    """A set of R-Bench with twelve short questions."""
    folder = tmp_path / "set"
    rows = ["name,question,choice,answer,type,score,distortion,strength"]
    for kind in ("ref", "dis"):
        (folder / kind).mkdir(parents=True)
    for i in range(12):
        for kind in ("ref", "dis"):
            pixels = np.full((16, 16, 3), 2 * i + (kind == "dis"), dtype=np.uint8)
            Image.fromarray(pixels).save(folder / kind / f"{i}.png")
        rows.append(
            f"{i}.png,What is in image {i}?,N,thing {i},{'VQA' if i else 'MCQ'},,1,1"
        )
    rows[1] = "0.png,Which?,A.one; B.two,A,MCQ,,1,1"
    (folder / "items.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    return folder


def stored(path: Path) -> int:
    """Answers in a store that another process writes."""
    try:
        with sqlite3.connect(path, timeout=60) as connection:
            return int(connection.execute("SELECT count(*) FROM answer").fetchone()[0])
    except sqlite3.OperationalError:
        return 0


def killed_when(command: list[str], store: Path, answers: int, base_url: str) -> None:
    """Run until so many answers are stored while a question hangs, and kill."""
    environment = {**os.environ, "OPENAI_BASE_URL": base_url, "OPENAI_API_KEY": "none"}
    with child(
        command,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        while stored(store) < answers and process.poll() is None:
            time.sleep(0.05)
        process.kill()
        output, _ = process.communicate()
    assert stored(store) == answers, output


def finished(command: list[str], base_url: str) -> None:
    environment = {**os.environ, "OPENAI_BASE_URL": base_url, "OPENAI_API_KEY": "none"}
    process = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=1200
    )
    assert process.returncode == 0, process.stderr


@pytest.mark.needs("tasks/r_bench")
def test_items(pair_set: Path, tmp_path: Path) -> None:
    page, store = (
        write_page(tmp_path / "page.toml", "r_bench", pair_set),
        tmp_path / "runs.sqlite",
    )
    stuck = Stuck("stuck", limit=20)
    command = [sys.executable, "-c", RUN, str(page), "stuck", str(store)]
    with SimulatedServer(stuck) as server:
        killed_when(command, store, 20, server.base_url)
        stuck.go.set()
    second = Stuck("stuck")
    with SimulatedServer(second) as server:
        finished(command, server.base_url)
    assert len(second.prompts) == 4  # of two images of twelve items


@pytest.mark.needs("tasks/r_bench")
def test_judge(pair_set: Path, tmp_path: Path) -> None:
    store, stuck = tmp_path / "runs.sqlite", Stuck("judge", limit=7)
    with SimulatedServer(stuck) as judging, SimulatedServer(Stuck("seer")) as server:
        reader = {"observer": "openai:judge", "options": {"base_url": judging.base_url}}
        page = write_page(tmp_path / "page.toml", "r_bench", pair_set, judge=reader)
        command = [sys.executable, "-c", RUN, str(page), "seer", str(store)]
        killed_when(command, store, 24 + 7, server.base_url)
        stuck.go.set()


@pytest.mark.needs("tasks/mvp_construction")
def test_construction(tmp_path: Path) -> None:
    photographs, output = tmp_path / "photographs", tmp_path / "set"
    photographs.mkdir()
    for i in range(6):
        Image.fromarray(np.full((16, 16, 3), 40 * i, dtype=np.uint8)).save(
            photographs / f"{i}.png"
        )
    command = [
        sys.executable,
        "-m",
        "psyprobe",
        "mvp-build",
        str(photographs),
        "--chat",
        "openai:stuck",
    ]
    command += ["--output", str(output)]
    stuck = Stuck("stuck", limit=4)
    with SimulatedServer(stuck) as server:
        killed_when(command, output / "runs.sqlite", 4, server.base_url)
        stuck.go.set()
    second = Stuck("stuck")
    with SimulatedServer(second) as server:
        finished(command, server.base_url)
    assert len(second.prompts) == 2
