"""SIGKILL at random moments: the same files in the end, nothing acknowledged asked again, nothing left behind.

    python benchmarks/random_kills.py [KILLS [NAME ...]]     # 20 of encoder, chat, items, mvp-build, review, corrupt

Issue 12. Each command runs once unbroken, which tells how long it takes and what it writes; then it is killed at
moments drawn evenly from that time, and goes on each time where it was. A run that ends before its kill starts anew
in an empty folder. Servers of models run in this process and note what they are asked.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

TESTS = Path(__file__).resolve().parents[1] / "tests"
sys.path[:0] = [str(TESTS), str(TESTS / "mvp_construction"), str(TESTS / "questions"), str(TESTS / "review")]

from children import child
from item_pages import write_page
from simulated_models import Asked, photographs
from small_experiment import write_experiment
from small_questions import write_questions

import psyprobe as pp
from psyprobe.observers.chat.answering import image_digest
from psyprobe.observers.simulated.serving import serve

#: The command that writes into an output folder.
Command = Callable[[Path], list[str]]
QUIET = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
KEY = {**os.environ, "OPENAI_API_KEY": "sk-of-nobody"}


class Noted:
    """A function of images and a prompt that notes what it was asked, and takes its time."""

    def __init__(self, say: Callable[[list[Any], str], str]) -> None:
        self.say, self.seen = say, []

    def __call__(self, images: list[Any], prompt: str) -> str:
        time.sleep(0.03)
        self.seen.append(("".join(map(image_digest, images)), prompt))
        return self.say(images, prompt)


@contextmanager
def asked(say: Callable[[list[Any], str], str]) -> Iterator[tuple[str, Noted]]:
    noted = Noted(say)
    with serve(pp.observer(noted, name="m", bits=8)) as server:
        yield server.base_url, noted


def stored(folder: Path) -> int:
    """Answers in the store of an output folder."""
    path = folder / "runs.sqlite"
    if not path.exists():
        return 0
    with sqlite3.connect(path, timeout=60) as connection:
        try:
            return int(connection.execute("SELECT count(*) FROM answer").fetchone()[0])
        except sqlite3.OperationalError:
            return 0


def files(folder: Path) -> dict[str, bytes]:
    """What lies in an output folder; of a store, which tells when each answer came, only that it is there."""
    found = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): b"" if ".sqlite" in path.name else path.read_bytes() for path in found}


def finished(command: list[str]) -> float:
    start = time.monotonic()
    with child(command, seconds=900, env=KEY, **QUIET) as process:
        if process.wait():
            raise AssertionError(f"{command} ended with {process.returncode}")
    return time.monotonic() - start


def broken(name: str, command: Command, place: Path, kills: int, noted: Noted | None = None) -> None:
    """Kill a command at random moments, and compare what it leaves with an unbroken one's."""
    whole, folder, rng = place / f"{name}-whole", place / f"{name}-broken", np.random.default_rng(12)
    seconds, course, restarts = finished(command(whole)), [], 0
    for _ in range(kills):
        with child(command(folder), seconds=900, env=KEY, **QUIET) as process:
            time.sleep(rng.uniform(0, seconds))
            if process.poll() is not None:
                shutil.rmtree(folder)
                course, restarts = [], restarts + 1
        time.sleep(0.5)  # what was under way reaches the server
        course.append((stored(folder), len(noted.seen) if noted else 0))
    finished(command(folder))
    left, wanted = files(folder), files(whole)
    assert sorted(left) == sorted(wanted), sorted(set(left) ^ set(wanted))
    differing = [path for path in wanted if left[path] != wanted[path]]
    assert not differing, differing
    if noted and stored(folder):
        for kept, start in course:
            later = len(set(noted.seen[start:]))
            assert later <= stored(folder) - kept, f"{later} asked after {kept} of {stored(folder)} were acknowledged"
    print(f"{name}: {kills} kills ({restarts} restarts), {len(wanted)} files the same, nothing left behind", flush=True)


def program(*words: object) -> list[str]:
    return [sys.executable, "-m", "psyprobe", *map(str, words)]


def encoder(place: Path, kills: int) -> None:
    changes = (("to = 4, n = 3", "to = 4, n = 20"), ("to = 1, n = 3", "to = 1, n = 20"))
    path = write_experiment(place, *changes)
    run = program("run", path, "--observer", "pixels", "--batch-size", 1, "--output")
    broken("encoder", lambda folder: [*run, str(folder)], place, kills)


def chat(place: Path, kills: int) -> None:
    with asked(lambda images, prompt: "yes" if np.asarray(images[0]).std() > 0.02 else "no") as (url, noted):
        run = program("run", write_questions(place), "--observer", "openai:m", "--observer-option", f"base_url={url}")
        broken("chat", lambda folder: [*run, "--output", str(folder)], place, kills, noted)


def items(place: Path, kills: int) -> None:
    rows = ["name,question,choice,answer,type,score,distortion,strength"]
    for kind in ("ref", "dis"):
        (place / "set" / kind).mkdir(parents=True)
    for i in range(30):
        rows.append(f"{i}.png,What is in image {i}?,N,thing {i},VQA,,1,1")
        for kind in ("ref", "dis"):
            pixels = np.full((16, 16, 3), 2 * i + (kind == "dis"), dtype=np.uint8)
            Image.fromarray(pixels).save(place / "set" / kind / f"{i}.png")
    (place / "set" / "items.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")

    def say(images: list[Any], prompt: str) -> str:
        return f"thing {int(np.asarray(images[0]).mean() * 255)}" if images else "0.5"

    with asked(say) as (url, noted):
        judge = {"observer": "openai:m", "options": {"base_url": url}}
        page = write_page(place / "items.toml", "r_bench", place / "set", judge)
        run = program("run", page, "--observer", "openai:m", "--observer-option", f"base_url={url}")
        broken("items", lambda folder: [*run, "--output", str(folder)], place, kills, noted)


def mvp_build(place: Path, kills: int) -> None:
    models, shown = Asked(), photographs(place / "photographs", longest=64)

    def say(images: list[Any], prompt: str) -> str:
        return str((models.captioner if images else models.chat).answer(images, prompt).text)

    with asked(say) as (url, noted):
        run = program("mvp-build", shown, "--chat", "openai:m", "--chat-option", f"base_url={url}")
        run += ["--segmenter-option", "scale=100", "min_size=50"]
        broken("mvp-build", lambda folder: [*run, "--output", str(folder)], place, kills, noted)


def corrupt(place: Path, kills: int) -> None:
    run = program("corrupt", photographs(place / "to_corrupt", longest=96), "--name", "jpeg", "motion_blur")
    broken("corrupt", lambda folder: [*run, "--output", str(folder)], place, kills)


def review(place: Path, kills: int) -> None:
    """Each decision that the server has acknowledged is there after the kill, and no other."""
    from test_reviewing import call

    folder, rng, said = place / "review", np.random.default_rng(12), {}
    (folder / "people").mkdir(parents=True)
    rows = [f"{i}.png,What is in image {i}?,N,thing {i},VQA,,1,1" for i in range(10)]
    for kind in ("ref", "dis"):
        (folder / kind).mkdir()
        for i in range(10):
            Image.fromarray(np.full((16, 16, 3), 20 * i, np.uint8)).save(folder / kind / f"{i}.png")
    header = "name,question,choice,answer,type,score,distortion,strength"
    (folder / "items.csv").write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    command = [sys.executable, "-u", "-m", "psyprobe", "review", str(folder), "--annotator", "ann", "--answer"]
    for _ in range(kills):
        with child(command, seconds=300, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
            address = process.stdout.readline().split()[1]
            state = call(address, "state")[1]["decided"]
            assert {i: each for i, each in enumerate(state) if each is not None}.keys() == said.keys(), (state, said)
            for task in rng.integers(0, len(state), rng.integers(1, 4)).tolist():
                value = {"task": task, "value": "answer", "text": f"said {rng.integers(100)}"}
                assert call(address, "decide", value)[0] == 200, json.dumps(value)
                said[task] = value["text"]
    lines = [json.loads(line) for path in (folder / "people").glob("*.jsonl") for line in path.open(encoding="utf-8")]
    assert len(lines) >= len(said)
    print(f"review: {kills} kills, {len(said)} decisions there each time, nothing left behind", flush=True)


KINDS = {"encoder": encoder, "chat": chat, "items": items, "mvp-build": mvp_build, "review": review, "corrupt": corrupt}


def main() -> None:
    kills, names = int(sys.argv[1]) if len(sys.argv) > 1 else 20, sys.argv[2:] or list(KINDS)
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            KINDS[name](Path(folder), kills)


if __name__ == "__main__":
    main()
