"""How exactly a session finds the curve of who sat: simulated people of known curves, through the
real server.

    python benchmarks/sessions.py [--people 10] [--seed 0] [--trials 90] [--prior people|any]
    [--probe orientation]
        [--design quick_csf] [--store runs.sqlite] [--pixels] [--exponent 2.4]

Prints a table: one person a row with the RMSE of log10 sensitivity over six frequencies, and at the
end RMSE and bias over all, the share of 95 % intervals that hold the truth, and what passes between
an answer and the next trial. With --pixels people sit before the page in headless Chromium and see
what its canvas holds; then the table tells the minutes by their own clock too, and --exponent gives
them a screen of another tone curve than the page assumes. Without --pixels, --store keeps the
answers for `psyprobe plot`.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from psyprobe.experiment import Experiment, load_experiment
from psyprobe.light.display import Display
from psyprobe.observers.people.server import PersonServer
from psyprobe.tasks.people.patterns import PatternSession

sys.path[:0] = [
    str(Path(__file__).parent.parent / "tests" / folder) for folder in ("people", ".")
]
import webdriver
from person_at_page import PersonAtPage
from simulated_person import FREQUENCIES, SimulatedPerson

#: For a probe: what its simulated people know of it.
TASKS: dict[str, dict[str, Any]] = {
    "orientation": {"orientations": [0, 90], "keys": ["f", "j"]},
    "orientation_4": {"orientations": [0, 90, 135, 45], "keys": ["1", "2", "3", "4"]},
    "yes_no": {"orientations": [0], "keys": ["f", "j"], "criterion": 0.1},
}


@dataclass(frozen=True)
class Sat:
    """One session."""

    curve: list[dict[str, Any]]
    #: log10 sensitivity, and ms from answer to next trial.
    true: np.ndarray
    waits: tuple[float, ...] = ()
    #: By the person's own clock; 0 where none runs.
    minutes: float = 0.0


def sat(experiment: Experiment, seed: int, store: Path | None) -> Sat:
    """A session by numbers, over HTTP; its answers stay in the store, if there is one."""
    with tempfile.TemporaryDirectory() as folder:
        visit = PatternSession(
            experiment, f"P{seed}", store or Path(folder) / "runs.sqlite"
        )
        with PersonServer(visit) as server:
            person = SimulatedPerson(server.address, seed=seed)
            state = person.begin()
            waits = []
            while state["phase"] == "trial":
                answer = person.account(state)
                start = time.perf_counter()
                state = person.send("answer", **answer)
                while state["phase"] == "wait":
                    state = person.send("state")
                waits.append(1000 * (time.perf_counter() - start))
    return Sat(
        state["curve"],
        np.array([person.truth(frequency) for frequency in FREQUENCIES]),
        tuple(waits),
    )


def sat_at_page(experiment: Experiment, seed: int, exponent: float | None) -> Sat:
    """A session by pixels, in a browser of its own."""
    screen = None if exponent is None else Display(peak=200, eotf=exponent)
    with (
        tempfile.TemporaryDirectory() as folder,
        webdriver.browser(seconds=3600) as browser,
    ):
        visit = PatternSession(experiment, f"P{seed}", Path(folder) / "runs.sqlite")
        with PersonServer(visit) as server:
            person = PersonAtPage(browser, seed, screen, **TASKS[experiment.probe])
            person.sit(server.address)
            minutes = person.minutes()
    true = np.array([person.truth(frequency) for frequency in FREQUENCIES])
    return Sat(visit.found["curve"], true, minutes=minutes)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--people", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--trials", type=int, default=90)
    parser.add_argument("--prior", choices=("people", "any"), default="people")
    parser.add_argument("--probe", choices=tuple(TASKS), default="orientation")
    parser.add_argument(
        "--design", choices=("quick_csf", "quest_plus"), default="quick_csf"
    )
    parser.add_argument("--pixels", action="store_true")
    parser.add_argument("--exponent", type=float)
    parser.add_argument("--store", type=Path)
    options = parser.parse_args()
    settings = {
        "probe": options.probe,
        "asking.design": options.design,
        "asking.catch": 0.1,
    }
    settings["asking.prompts"] = "base" if options.probe == "yes_no" else options.probe
    if options.design == "quick_csf":
        settings |= {
            "asking.options.n_max": options.trials,
            "asking.options.prior": options.prior,
        }
    else:
        settings["asking.options"] = {
            "stop": 0,
            "n_max": options.trials // len(FREQUENCIES),
        }
    experiment = load_experiment("orientation_csf").with_settings(settings)
    errors = []
    covered = []
    waits = []
    for seed in range(options.seed, options.seed + options.people):
        session = (
            sat_at_page(experiment, seed, options.exponent)
            if options.pixels
            else sat(experiment, seed, options.store)
        )
        means = np.array([row["mean"] for row in session.curve])
        covered += [
            row["low"] <= value <= row["high"]
            for row, value in zip(session.curve, session.true, strict=True)
        ]
        errors.append(means - session.true)
        waits += session.waits
        clock = f", {session.minutes:.1f} min" if options.pixels else ""
        print(
            f"person {seed}: RMSE {np.sqrt(np.mean(errors[-1] ** 2)):.3f}{clock}",
            flush=True,
        )
    all_errors = np.array(errors)
    rmse = np.sqrt(np.mean(all_errors**2))
    print(
        f"RMSE {rmse:.3f}, bias {all_errors.mean():+.3f} log10, {len(all_errors)} people, "
        f"{options.trials} trials each"
    )
    print(f"95 % intervals that hold the truth: {100 * np.mean(covered):.0f} %")
    if waits:
        print(
            f"answer to next trial: median {statistics.median(waits):.0f} ms, 95 % "
            f"{np.quantile(waits, 0.95):.0f} ms"
        )


if __name__ == "__main__":
    main()
