"""Sit simulated people of known letter acuity before the page in Chromium; print what it finds.

    python benchmarks/acuity_sessions.py [PEOPLE]

They stand 4 m from a screen of 96 pixels per inch, read the letters from the pixels of the canvas,
need 1.5 s for an answer and press a wrong key in 2 of 100 trials. Times are by their own clock.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from psyprobe.experiment import load_experiment
from psyprobe.observers.people.server import PersonServer
from psyprobe.tasks.people.patterns import PatternSession

sys.path[:0] = [
    str(Path(__file__).parent.parent / "tests" / room) for room in ("people", ".")
]
import webdriver
from known_truth import letter_eyes
from person_at_page import PersonAtPage


def main(people: int = 8) -> None:
    """Print a row for each person, and the error over all."""
    errors = []
    intervals_hold = []
    print("| person | truth, logMAR | found | trials, s | with set-up, min |")
    print("|---|---|---|---|---|")
    for seed in range(people):
        truth = float(np.random.default_rng(seed).uniform(-0.2, 0.3))
        (value, low, high), trial_seconds, minutes = sit(truth, seed)
        errors.append(value - truth)
        intervals_hold.append(low <= truth <= high)
        print(
            f"| {seed} | {truth:.2f} | {value:.2f} [{low:.2f}, {high:.2f}] | "
            f"{trial_seconds:.0f} | {minutes:.1f} |",
            flush=True,
        )
    rmse = np.sqrt(np.mean(np.square(errors)))
    print(
        f"RMSE {rmse:.3f}, bias {np.mean(errors):+.3f} log10; {sum(intervals_hold)} of "
        f"{people} intervals hold the truth"
    )


def sit(truth: float, seed: int) -> tuple[tuple[float, float, float], float, float]:
    """Measure one person; return the acuity, seconds of trials and minutes of all."""
    experiment = load_experiment("letter_acuity")
    with (
        tempfile.TemporaryDirectory() as folder,
        webdriver.browser(seconds=1800) as browser,
    ):
        session = PatternSession(experiment, f"P{seed}", Path(folder) / "runs.sqlite")
        with PersonServer(session) as server:
            eyes: dict[str, Any] = letter_eyes(truth)
            person = PersonAtPage(browser, seed, distance=4000, answer_ms=1500, **eyes)
            log = person.sit(server.address)
            minutes = person.minutes()
    moments = [row[3] for row in log if row[0] != "practice"]
    return session.summary["acuity"], moments[-1] - moments[0], minutes


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
