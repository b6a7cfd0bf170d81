"""What plans cost, a fit of one curve and of curves that share their rates, and a chat run on
shared images.

    python benchmarks/planning_speed.py

Each function gives rows of (work, condition, value, bar); a value at or below its bar is met. Plans
are whole processes, their start included; all seconds are of processor time, of one thread.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from growth import OBSERVERS, measured, page_of

import psyprobe as pp
from psyprobe.analysis.psychometric import fit_psychometric, psychometric_function
from psyprobe.observers.simulated.observer import SimulatedObserver

#: What is done, under which condition, what it took, and what it may take.
Row = tuple[str, str, float, float]
CONTRAST = 10.0 ** np.linspace(-3, -1, 9)
YES = np.array([1, 0, 2, 7, 20, 33, 38, 40, 39])


def plans() -> list[Row]:
    """Seconds and largest memory of plans of 100,000 conditions, and how they grow from 10,000."""
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        for kind in OBSERVERS:
            small_plan, large_plan = (
                measured(f"plan {kind}", count, Path(folder))
                for count in (10_000, 100_000)
            )
            rows.append(
                (f"plan, {kind}", "100,000 conditions, s", large_plan["seconds"], 5.0)
            )
            rows.append(
                (
                    f"plan, {kind}",
                    "100,000 conditions, MB",
                    large_plan["megabytes"],
                    300.0,
                )
            )
            rows.append(
                (
                    f"plan, {kind}",
                    "100,000 / 10,000 conditions",
                    large_plan["seconds"] / small_plan["seconds"],
                    10.0,
                )
            )
    return rows


def finished_plan() -> list[Row]:
    """A plan of what is answered beside the run that only reads."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        measured("run pixels", 2000, folder)
        run = min(
            measured("run pixels again", 2000, folder)["seconds"] for _ in range(3)
        )
        plan = min(
            measured("plan pixels again", 2000, folder)["seconds"] for _ in range(3)
        )
    return [("plan / cached run", "2,000 conditions, all answered", plan / run, 1.0)]


def cold_plan() -> list[Row]:
    """`psyprobe run --plan` with the default encoder, whose network is not loaded."""
    spent = spent_by("-m", "psyprobe", "run", "gabor_achromatic", "--plan", "--json")
    return [("plan, default encoder", "cold, s", spent, 3.0)]


def single_fit() -> list[Row]:
    """A fit of one curve with its profile intervals: 9 levels, 40 trials each, guess and lapse rate
    free."""
    seconds = _seconds(
        lambda: fit_psychometric(CONTRAST, YES, 40, guess="fit", lapse="fit"), 9
    )
    return [("psychometric fit", "one curve with intervals, ms", 1000 * seconds, 50.0)]


def shared_fit() -> list[Row]:
    """25 wordings at six frequencies, whose curves share guess and lapse rate, beside curves that
    share nothing."""
    x = np.linspace(-2.5, 0, 10)
    rate = psychometric_function(x, np.linspace(-2.6, 0.2, 6)[:, None], 0.6, 0.05, 0.02)
    yes = np.random.default_rng(0).binomial(10, rate, size=(25, *rate.shape))
    times = []
    for _ in range(3):
        alone = _seconds(
            lambda: fit_psychometric(10**x, yes, 10, guess="fit", lapse="fit"), 1
        )
        shared = _seconds(
            lambda: fit_psychometric(
                10**x, yes, 10, guess="fit", lapse="fit", shared=(-1,)
            ),
            1,
        )
        times.append(shared / alone)
    return [
        (
            "text curves / independent fit",
            "150 curves, 6 share their rates",
            float(np.median(times)),
            2.0,
        )
    ]


def many_frequencies() -> list[Row]:
    """`pp.score` of one wording at 50 and at 100 frequencies, whose curves share their rates, after
    one of 40 that loads all."""
    os.environ["PSYPROBE_CACHE"] = ""
    seconds = {}
    with tempfile.TemporaryDirectory() as folder:
        for curves in (40, 50, 100):
            page = page_of("words", 10 * curves, Path(folder))
            result = pp.run(page, OBSERVERS["words"], progress=False)
            # Once: the fits of a second time are cached.
            seconds[curves] = _seconds(lambda result=result: pp.score(result), 1)
    del os.environ["PSYPROBE_CACHE"]
    work = "score of words, one wording"
    return [
        (work, "100 frequencies, s", seconds[100], 3.5),
        (work, "100 / 50 frequencies", seconds[100] / seconds[50], 2.5),
    ]


def repeated_score() -> list[Row]:
    """`psyprobe score` of 150 text curves for the second time, by another process, beside the first
    time."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        page = page_of("words", 60, folder)
        store = folder / "runs.sqlite"
        text = page.read_text(encoding="utf-8").replace(
            '[{ id = "one", text = "Is there a pattern?" }]', '"hernandez2025"'
        )
        page.write_text(text, encoding="utf-8")
        pp.run(page, OBSERVERS["words"], store=store, progress=False)
        os.environ["PSYPROBE_CACHE"] = name
        first, second = (
            spent_by("-m", "psyprobe", "score", str(store)) for _ in range(2)
        )
        started = spent_by(
            "-c",
            "import xarray, psyprobe.cli.results, psyprobe.analysis.words.score, "
            "psyprobe.analysis.psychometric",
        )
        del os.environ["PSYPROBE_CACHE"]
    condition = f"in another process, s, beside {first - started:.3g} s the first time"
    return [("150 text curves, scored again", condition, second - started, 0.7)]


def spent_by(*arguments: str) -> float:
    """Processor seconds of a Python process."""
    before = os.times()
    subprocess.run([sys.executable, *arguments], stdout=subprocess.DEVNULL, check=True)
    after = os.times()
    return (
        after.children_user
        + after.children_system
        - before.children_user
        - before.children_system
    )


def in_25_wordings(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    page.write_text(
        text.replace(
            '[{ id = "one", text = "Is there a pattern?" }]', '"hernandez2025"'
        ),
        encoding="utf-8",
    )


def looks() -> list[Row]:
    """How often a simulated observer hashes an image of which many prompts ask."""
    looked = 0
    observer = pp.load_observer("simulated:watson-malo")
    real = SimulatedObserver._measured

    def counting(
        self: SimulatedObserver, image: np.ndarray, fps: float | None
    ) -> object:
        nonlocal looked
        looked += 1
        return real(self, image, fps)

    with tempfile.TemporaryDirectory() as folder:
        page = page_of("words", 100, Path(folder))
        in_25_wordings(page)
        SimulatedObserver._measured = counting  # type: ignore[method-assign, assignment]
        try:
            result = pp.run(page, observer, progress=False)
        finally:
            SimulatedObserver._measured = real  # type: ignore[method-assign]
    return [
        (
            "simulated chat run",
            f"hashes an image, {result.sizes['prompt']} prompts",
            looked / 100,
            1.0,
        )
    ]


def _seconds(work: Callable[[], object], rounds: int) -> float:
    spent = []
    for _ in range(rounds):
        start = time.process_time()
        work()
        spent.append(time.process_time() - start)
    return float(np.median(spent))


TABLE = (
    plans,
    finished_plan,
    cold_plan,
    single_fit,
    shared_fit,
    many_frequencies,
    repeated_score,
    looks,
)


def main() -> None:
    fit_psychometric(CONTRAST, YES, 40, guess="fit", lapse="fit")
    for function in TABLE:
        for work, condition, value, bar in function():
            met = "met" if value <= bar else "NOT met"
            print(
                f"{work:32s}{condition:40s}{value:10.2f}{bar:8.1f}  {met}", flush=True
            )


if __name__ == "__main__":
    main()
