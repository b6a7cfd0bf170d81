"""How many queries QUEST+ and qCSF need, whether their intervals hold the truth, and how long a
query takes.

    python benchmarks/adaptive_efficiency.py [--observers 200] [--seeds 0 1] [--only
    quest_plus|quick_csf|speed|plan]

All queries are counted, catch trials and those at the highest contrast among them, unless a row
says that there are none. Beside each row stands what `chat_csf.md`, section D, gives. Error: root
mean square of log10 threshold. Covered: share of 95 % intervals that hold the truth.
"""

from __future__ import annotations

import argparse
import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from psyprobe.probes.designs import (
    AssumedObserver,
    Level,
    QuestPlus,
    QuickCSF,
    default_grid,
    expected_interval_width,
)

CONTRASTS = np.geomspace(0.001, 1.0, 61)
FREQUENCIES = (1.0, 2.0, 4.0, 8.0, 16.0, 30.0)
THRESHOLDS = np.array([-2.3, -1.9, -1.3])  # section D
WATSON_MALO = np.log10(
    [84.351485, 169.750443, 188.841557, 110.214830, 36.727668, 5.367990]
)
RISING = np.array(
    [1.30, 1.30, 1.35, 1.50, 1.65, 1.75]
)  # flat, then rising: no log-parabola


@dataclass(frozen=True)
class Observer:
    """A logistic observer with a threshold (log10 contrast) at each frequency."""

    threshold: dict[float, float]
    width: float
    guess: float
    lapse: float

    def respond(self, level: Level, rng: np.random.Generator) -> float:
        x = np.log10(level.contrast) if level.contrast else -np.inf
        detection_probability = 1 / (
            1 + np.exp(-2 * np.log(19) * (x - self.threshold[level.value]) / self.width)
        )
        return float(
            rng.random()
            < self.guess + (1 - self.guess - self.lapse) * detection_probability
        )


@dataclass(frozen=True)
class Outcome:
    """Errors (truth minus estimate, log10), interval widths and whether they hold, shape
    (observers, frequencies)."""

    error: np.ndarray
    width: np.ndarray
    covered: np.ndarray

    @property
    def rmse(self) -> float:
        return float(np.sqrt((self.error**2).mean()))

    @property
    def standard_error(self) -> float:
        """Return the standard error of `rmse` over observers."""
        square = (self.error**2).mean(axis=1)
        return float(square.std() / np.sqrt(square.size) / (2 * self.rmse))


def simulate(
    design: Callable[[int], QuestPlus | QuickCSF],
    observer: Callable[[np.random.Generator], Observer],
    marks: Sequence[int],
    observers: int,
    seed: int,
    at_once: int = 1,
) -> dict[int, Outcome]:
    """Put designs to observers until the last of `marks` queries, and look at the estimate at
    each."""
    rng = np.random.default_rng(seed)
    rows: dict[int, list[np.ndarray]] = {mark: [] for mark in marks}
    for i in range(observers):
        simulated_observer = observer(rng)
        asking = design(i)
        query_count = 0
        for mark in sorted(marks):
            while query_count < mark:
                levels = asking.ask(min(at_once, mark - query_count))
                query_count += len(levels)
                for level in levels:
                    asking.tell(level, simulated_observer.respond(level, rng))
            estimate = asking.estimate()
            truth = -np.array(
                [simulated_observer.threshold[f] for f in estimate.values]
            )
            inside = (estimate.low <= truth) & (truth <= estimate.high)
            rows[mark].append(
                np.stack(
                    [
                        truth - estimate.log10_sensitivity,
                        estimate.high - estimate.low,
                        inside,
                    ]
                )
            )
    stacked = {mark: np.array(values) for mark, values in rows.items()}
    return {mark: Outcome(a[:, 0], a[:, 1], a[:, 2]) for mark, a in stacked.items()}


def thresholds_of_the_page(
    frequencies: Sequence[float], width: float, guess: float, lapse: float = 0.02
):
    """Section D's thresholds in turn, up to 0.1 log10 aside so that they keep off the grid."""

    def observer(rng: np.random.Generator) -> Observer:
        start = rng.integers(3)
        t = THRESHOLDS[(start + np.arange(len(frequencies))) % 3] + rng.uniform(
            -0.1, 0.1, len(frequencies)
        )
        return Observer(
            dict(zip(frequencies, t.tolist(), strict=True)), width, guess, lapse
        )

    return observer


def population(frequencies: Sequence[float]):
    """Observers of all sorts: widths about 0.7, guess rates to 0.4, lapse rates to 0.08, thresholds
    anywhere."""

    def observer(rng: np.random.Generator) -> Observer:
        t = rng.uniform(-2.8, -0.4, len(frequencies))
        width = 0.7 * 10 ** rng.normal(0, 0.2)
        guess = 0.4 * rng.beta(0.7, 2)
        return Observer(
            dict(zip(frequencies, t.tolist(), strict=True)),
            width,
            guess,
            0.08 * rng.beta(0.7, 2),
        )

    return observer


def curve(
    log10_sensitivity: np.ndarray, width: float, guess: float, lapse: float = 0.02
):
    """A CSF, as a whole up to 0.15 log10 aside."""

    def observer(rng: np.random.Generator) -> Observer:
        t = -log10_sensitivity + rng.uniform(-0.15, 0.15)
        return Observer(
            dict(zip(FREQUENCIES, t.tolist(), strict=True)), width, guess, lapse
        )

    return observer


def quest_plus(
    frequencies: Sequence[float], **options: object
) -> Callable[[int], QuestPlus]:
    return lambda seed: QuestPlus(
        frequencies, CONTRASTS, stop=0.0, n_max=10_000, seed=seed, **options
    )  # type: ignore


def quick_csf(**options: object) -> Callable[[int], QuickCSF]:
    return lambda seed: QuickCSF(
        FREQUENCIES, CONTRASTS, stop=0.0, n_max=10_000, seed=seed, **options
    )  # type: ignore


def show(label: str, queries: int, outcome: Outcome, page: str) -> None:
    print(
        f"{label:<52} {queries:>7} {outcome.rmse:8.3f} ±{outcome.standard_error:.3f} "
        f"{outcome.width.mean():9.2f} "
        f"{100 * outcome.covered.mean():7.1f} %   {page}",
        flush=True,
    )


def head(title: str) -> None:
    print(
        f"\n{title}\n{'':<52} {'queries':>7} {'error':>8} {'':6} {'interval':>9} {'covered':>9} "
        "  section D"
    )


def quest_plus_table(observers: int, seeds: Sequence[int]) -> None:
    pages = {
        (0.8, 0.02): ("17: .100", 17),
        (0.8, 0.2): ("20: .110", 20),
        (0.4, 0.02): ("20: .055", 20),
    }
    for seed in seeds:
        head(f"QUEST+, queries a frequency, seed {seed}, {observers} observers")
        for (width, guess), (page, n) in pages.items():
            label = f"width {width:g}, guess {guess:g}, lapse 0.02"
            draw_observer = thresholds_of_the_page((4.0,), width, guess)
            for options, note in (
                ({"catch": 0.0, "top": 0.0}, "no catch trials"),
                ({}, "all counted"),
            ):
                outcomes = simulate(
                    quest_plus((4.0,), **options), draw_observer, (n,), observers, seed
                )
                show(f"{label}; 1 frequency, {note}", n, outcomes[n], page)
            six = thresholds_of_the_page(FREQUENCIES, width, guess)
            marks = [6 * n, 6 * 25] if guess > 0.1 else [6 * n]
            for mark, outcome in simulate(
                quest_plus(FREQUENCIES), six, marks, observers, seed
            ).items():
                show(f"{label}; 6 frequencies, all counted", mark // 6, outcome, page)
        batch = simulate(
            quest_plus(FREQUENCIES),
            thresholds_of_the_page(FREQUENCIES, 0.8, 0.02),
            (102,),
            observers,
            seed,
            12,
        )
        show("width 0.8, guess 0.02; 6 frequencies, 12 at once", 17, batch[102], "")
        outcomes = simulate(
            quest_plus(FREQUENCIES),
            population(FREQUENCIES),
            (102, 180),
            observers,
            seed,
        )
        for mark, outcome in outcomes.items():
            show(
                "observers of all sorts; 6 frequencies, all counted",
                mark // 6,
                outcome,
                "",
            )


def quick_csf_table(observers: int, seeds: Sequence[int]) -> None:
    for seed in seeds:
        head(f"qCSF, queries for six frequencies, seed {seed}, {observers} observers")
        for name, truth, page in (
            ("Watson-Malo", WATSON_MALO, {50: ".110", 60: ".099"}),
            ("flat, then rising", RISING, {50: ".098", 60: ".093"}),
        ):
            outcomes = simulate(
                quick_csf(), curve(truth, 0.8, 0.02), (50, 60), observers, seed
            )
            for mark, outcome in outcomes.items():
                show(
                    f"{name}; width 0.8, guess 0.02, lapse 0.02",
                    mark,
                    outcome,
                    page[mark],
                )
        for mark, outcome in simulate(
            quick_csf(), curve(WATSON_MALO, 0.8, 0.2), (60,), observers // 2, seed
        ).items():
            show("Watson-Malo; width 0.8, guess 0.2, lapse 0.02", mark, outcome, "")


def speed_table() -> None:
    """Milliseconds a query, and those of the package questplus on the same grid and levels."""
    grid = default_grid(tuple(CONTRASTS))
    rng = np.random.default_rng(0)
    simulated_observer = thresholds_of_the_page((4.0,), 0.8, 0.02)(rng)
    print(
        f"\nTime a query, {int(np.prod(grid.shape))} parameter values, {CONTRASTS.size} "
        "contrasts, 1 frequency"
    )
    times = {}
    for target in ("threshold", "all"):
        asking = quest_plus((4.0,), about=target)(0)
        times[f"QuestPlus(about={target!r})"] = milliseconds(
            lambda asking=asking: asking.tell(
                *answered(asking, simulated_observer, rng)
            )
        )
    asking = quick_csf()(0)
    six = curve(WATSON_MALO, 0.8, 0.02)(rng)
    times["QuickCSF, 6 frequencies"] = milliseconds(
        lambda: asking.tell(*answered(asking, six, rng))
    )
    try:
        import questplus
    except ImportError:
        print("questplus is not installed")
    else:
        x = np.log10(CONTRASTS)
        theirs = questplus.QuestPlus(
            stim_domain={"intensity": x},
            param_domain={
                "mean": grid.threshold,
                "sd": grid.width / 3.29,
                "lower_asymptote": grid.guess,
                "lapse_rate": grid.lapse,
            },
            outcome_domain={"response": ["yes", "no"]},
            func="norm_cdf",
            stim_scale="linear",
        )

        def ask_theirs() -> None:
            stimulus = theirs.next_stim
            response = simulated_observer.respond(
                Level(4.0, 10 ** stimulus["intensity"]), rng
            )
            theirs.update(
                stim=stimulus, outcome={"response": "yes" if response else "no"}
            )

        times["questplus, same grid"] = milliseconds(ask_theirs, 5)
    for name, value in times.items():
        ratio = times.get("questplus, same grid", np.nan) / value
        print(f"{name:<36} {value:9.2f} ms   questplus / this: {ratio:8.1f}")


def answered(
    asking: QuestPlus | QuickCSF, simulated_observer: Observer, rng: np.random.Generator
) -> tuple[Level, float]:
    (level,) = asking.ask(1)
    return level, simulated_observer.respond(level, rng)


def milliseconds(step: Callable[[], None], rounds: int = 60) -> float:
    for _ in range(3):
        step()
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        step()
        times.append(time.perf_counter() - start)
    return 1000 * float(np.median(times))


def plan_table() -> None:
    """What is planned against what section D and `readout_efficiency.csv` measured."""
    print(
        "\nExpected 95 % interval width against the measured one (constant stimuli, 1 "
        "frequency, no catch trials)"
    )
    for (width, guess), measured in {
        (0.8, 0.02): {20: 0.804, 40: 0.525, 100: 0.311, 200: 0.212},
        (0.8, 0.2): {20: 1.033, 40: 0.720, 100: 0.455, 200: 0.311},
        (0.4, 0.02): {20: 0.734, 40: 0.449, 100: 0.244, 200: 0.149},
    }.items():
        for n, value in measured.items():
            assumed_observer = AssumedObserver(width, guess, 0.02)
            expected_width = expected_interval_width(
                "constant", n, values=1, observer=assumed_observer, catch=0.0
            )
            print(
                f"  width {width}, guess {guess:<4}  {n:>4} queries: expected {expected_width:.3f}, "
                f"measured {value:.3f}"
            )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--observers", type=int, default=200)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--only", choices=("quest_plus", "quick_csf", "speed", "plan"))
    options = parser.parse_args()
    if options.only in (None, "speed"):
        speed_table()
    if options.only in (None, "plan"):
        plan_table()
    if options.only in (None, "quest_plus"):
        quest_plus_table(options.observers, options.seeds)
    if options.only in (None, "quick_csf"):
        quick_csf_table(options.observers, options.seeds)
