"""A run over HTTP that is killed again and again: what was stored, what was asked, and of whom."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from children import child

from psyprobe._typing import FloatArray
from psyprobe.observers import load_observer
from psyprobe.observers.chat.protocol import Answer, image_digest
from psyprobe.running.store import Store

KEY = "sk-very-secret-0123456789"
MODEL = "simulated:watson-malo"

#: Digest of the images and prompt of a question, as the server sees it.
Request = tuple[str, str]


class Witness:
    """A simulated observer that notes every question it answers."""

    def __init__(self, **options: Any) -> None:
        self._inner = load_observer(MODEL, **options)
        self.card, self.bits, self.images_at_once = (
            self._inner.card,
            self._inner.bits,
            self._inner.images_at_once,
        )
        self.requests: list[Request] = []
        self._lock = threading.Lock()

    def delivered(self, image: FloatArray) -> FloatArray:
        return image

    def answer(
        self, images: Sequence[FloatArray], prompt: str, **options: Any
    ) -> Answer:
        with self._lock:
            self.requests.append(("".join(map(image_digest, images)), prompt))
        answer: Answer = self._inner.answer(images, prompt, **options)
        return answer


@dataclass
class Course:
    """Record of a run that was killed.

    Parameters
    ----------
    stored : list of dict
        After each kill: key of each answered question to the time at which its answer was written.
    request_counts : list of int
        Questions that the server had answered before each session.
    output : list of str
        Standard output and error of each session, together.
    """

    stored: list[dict[str, int]] = field(default_factory=list)
    request_counts: list[int] = field(default_factory=list)
    output: list[str] = field(default_factory=list)


def answered(store: Path) -> dict[str, int]:
    """Key of each answered question of a store, and when its answer was written."""
    if not store.exists():
        return {}
    with sqlite3.connect(store, timeout=60) as connection:
        tables = {
            name for (name,) in connection.execute("SELECT name FROM sqlite_master")
        }
        if "answer" not in tables:
            return {}
        return dict(connection.execute("SELECT question, time FROM answer"))


def run_and_kill(
    experiment: Path,
    folder: Path,
    base_url: str,
    witness: Witness,
    moments: Sequence[int],
    *options: str,
) -> Course:
    """Run an experiment from the command line, killing it each time when so many answers are
    stored.

    Parameters
    ----------
    experiment, folder : Path
        Experiment file, and where results go.
    base_url : str
        Of the server.
    witness : Witness
        Who answers behind it.
    moments : sequence of int
        Stored answers at which the run is killed, ascending; then it may end.
    *options : str
        Of the observer.
    """
    course, store = Course(), folder / "runs.sqlite"
    command = [
        sys.executable,
        "-m",
        "psyprobe",
        "run",
        str(experiment),
        "--observer",
        f"openai:{MODEL}",
    ]
    command += ["--output", str(folder), "--observer-option", *options]
    environment = {**os.environ, "OPENAI_BASE_URL": base_url, "OPENAI_API_KEY": KEY}
    for moment in [*moments, None]:
        course.request_counts.append(len(witness.requests))
        with child(
            command,
            seconds=600,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as process:
            while (
                moment is not None
                and process.poll() is None
                and len(answered(store)) < moment
            ):
                time.sleep(0.02)
            if moment is not None:
                process.kill()
            out, _ = process.communicate()
        course.output.append(out)
        if moment is None and process.returncode:
            raise AssertionError(out)
        # What was under way when the process died may still reach the server.
        settled = -1
        while settled != len(witness.requests):
            settled = len(witness.requests)
            time.sleep(0.3)
        course.stored.append(answered(store))
    return course


def repeated_requests(
    course: Course, store: Path, local: Witness, witness: Witness
) -> set[Request]:
    """Return the requests to a server whose answers were stored; `local` ran the same run in
    order."""
    with Store(store) as opened:
        (record,) = opened.runs()
    number = {trial["key"]: i for i, trial in enumerate(record.outcome["trials"])}
    repeated: set[Request] = set()
    for stored, start in zip(course.stored, course.request_counts[1:], strict=False):
        repeated |= {local.requests[number[key]] for key in stored} & set(
            witness.requests[start:]
        )
    return repeated
