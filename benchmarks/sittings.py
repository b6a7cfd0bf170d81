"""How exactly a sitting finds the curve of who sat: simulated people of known curves, through the real server.

    python benchmarks/sittings.py [--people 10] [--seed 0] [--trials 90] [--prior people|any]

Prints a table: one person a row with the RMSE of log10 sensitivity over six frequencies, and at the end RMSE and bias
over all, the share of 95 % intervals that hold the truth, and what passes between an answer and the next trial.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from psyprobe.cli.people import PersonVisit
from psyprobe.experiment import Experiment, read_experiment
from psyprobe.observers.people.server import PersonServer

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "people"))
from simulated_person import FREQUENCIES, SimulatedPerson


def sat(experiment: Experiment, seed: int) -> tuple[list[dict[str, Any]], np.ndarray, list[float]]:
    """The curve that was found, the true log10 sensitivities, and ms from answer to next trial."""
    with tempfile.TemporaryDirectory() as folder:
        visit = PersonVisit(experiment, f"P{seed}", Path(folder) / "runs.sqlite")
        with PersonServer(visit) as server:
            person = SimulatedPerson(server.address, seed=seed)
            state, waits = person.begin(), []
            while state["phase"] == "trial":
                told, start = person.account(state), time.perf_counter()
                state = person.send("answer", **told)
                while state["phase"] == "wait":
                    state = person.send("state")
                waits.append(1000 * (time.perf_counter() - start))
    return state["curve"], np.array([person.truth(frequency) for frequency in FREQUENCIES]), waits


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--people", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--trials", type=int, default=90)
    parser.add_argument("--prior", choices=("people", "any"), default="people")
    options = parser.parse_args()
    asked = {"asking.options.n_max": options.trials, "asking.options.prior": options.prior}
    experiment = read_experiment("orientation_csf").with_settings(asked)
    errors, held, waits = [], [], []
    for seed in range(options.seed, options.seed + options.people):
        curve, true, waited = sat(experiment, seed)
        found = np.array([row["mean"] for row in curve])
        held += [row["low"] <= value <= row["high"] for row, value in zip(curve, true, strict=True)]
        errors.append(found - true)
        waits += waited
        print(f"person {seed}: RMSE {np.sqrt(np.mean(errors[-1] ** 2)):.3f}", flush=True)
    every = np.array(errors)
    rmse = np.sqrt(np.mean(every**2))
    print(f"RMSE {rmse:.3f}, bias {every.mean():+.3f} log10, {len(every)} people, {options.trials} trials each")
    print(f"95 % intervals that hold the truth: {100 * np.mean(held):.0f} %")
    print(f"answer to next trial: median {statistics.median(waits):.0f} ms, 95 % {np.quantile(waits, 0.95):.0f} ms")


if __name__ == "__main__":
    main()
