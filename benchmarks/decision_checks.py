"""Chance, coverage of thresholds and cost of training of encoders that decide, as Markdown tables.

python benchmarks/decision_checks.py [RUNS] [--training]     # 600 runs of each encoder

Encoders of known d' are trained and asked as a page would, 7 contrasts of 40 trials, and fitted as
`pp.score` fits them. They are linear in the light, so the decision variable of a sum is the sum of
decision variables, and nothing is drawn twice. With --training, stages are trained as each row of
tests/data/decisions/training_bias.csv says.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

import psyprobe as pp
from psyprobe.analysis.efficiency.ideal_observer import d_prime_at, ideal_d_prime
from psyprobe.analysis.psychometric import WITH_THRESHOLD, fit_psychometric
from psyprobe.observers.decisions import training
from psyprobe.observers.decisions.recipe import Recipe
from psyprobe.observers.decisions.stages import Stage
from psyprobe.observers.decisions.training import train_stage

TESTS = Path(__file__).resolve().parents[1] / "tests"
sys.path[:0] = [str(TESTS / "observers")]

SIZE = 24
PPD = 12
#: Density of the noise, deg², and its standard deviation in a pixel.
DENSITY = 1e-5
SD = DENSITY**0.5 * PPD
#: Contrasts over the true threshold, and trials of two intervals at each.
FACTORS = np.geomspace(0.4, 4.0, 7)
TRIALS = 40
CONTRAST = 0.1
GABOR = pp.gabor(
    frequency=2, contrast=CONTRAST, radius=0.25, luminance=100, ppd=PPD, size=SIZE
)
#: The signal at contrast 1.
SIGNAL = (np.asarray(GABOR.luminance, float) / 100 - 1) / CONTRAST
IDEAL = d_prime_at(0.75, 2) / ideal_d_prime(SIGNAL, DENSITY, PPD)


@dataclass(frozen=True)
class Encoder:
    """An encoder whose features are weighted sums of light, and noise of its own."""

    name: str
    stage: str
    #: Weights of features by pixels, shape (D, pixels).
    weights: np.ndarray
    #: Standard deviation of its own noise, over that of each feature in the external noise.
    late: float = 0.0
    pairs: int = 16

    @property
    def late_sd(self) -> np.ndarray:
        """Standard deviation of the noise of each feature's own."""
        return self.late * SD * np.linalg.norm(self.weights, axis=1)

    @property
    def efficiency(self) -> float:
        """Share of the ideal observer's d'² that the best linear stage has."""
        if not len(self.weights):
            return 0.0
        signal = self.weights @ SIGNAL.ravel()
        covariance = SD**2 * self.weights @ self.weights.T + np.diag(self.late_sd**2)
        d_prime = signal @ np.linalg.pinv(covariance, hermitian=True) @ signal
        return float(d_prime / ideal_d_prime(SIGNAL, DENSITY, PPD) ** 2)

    def features(self, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        """Draw the features of fields of noise."""
        noise = SD * rng.normal(size=(*shape, SIZE * SIZE))
        late_noise = rng.normal(size=(*shape, len(self.weights)))
        return noise @ self.weights.T + self.late_sd * late_noise

    def right(self, contrasts: np.ndarray, seed: int) -> np.ndarray:
        """Train a stage, and count its right answers of two intervals at each contrast."""
        signal = self.weights @ SIGNAL.ravel()

        def rows(contrast: float, fields: Sequence[int]) -> np.ndarray:
            features = [
                self.features(np.random.default_rng([seed, 1, field]), ())
                for field in fields
            ]
            return (np.array(features) + contrast * signal)[None]

        if self.stage == "ideal":
            stage = Stage(signal[None], np.zeros(1))
        else:
            recipe = Recipe(stage=self.stage, pairs=self.pairs, seed=seed)
            ends = (float(contrasts[0]), float(contrasts[-1]))
            trained = train_stage(
                recipe, rows, ends, yes_no=False, picture_rows=no_pictures
            )
            stage = trained.stage
        rng = np.random.default_rng([seed, 2])
        features = self.features(rng, (len(contrasts), TRIALS, 2))
        features[..., 0, :] += contrasts[:, None, None] * signal
        variables = stage.variables(features.reshape(-1, features.shape[-1]))
        first, second = variables.reshape(-1, 2).T
        return np.sum((first > second).reshape(len(contrasts), TRIALS), axis=1)


def no_pictures(fields: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """Refuse training on other pictures, which no stage here asks for."""
    raise NotImplementedError(f"no pictures for {len(fields)} fields")


def encoders() -> list[Encoder]:
    """List the encoders, each with the stage that decides."""
    pixels = np.eye(SIZE * SIZE)
    column = np.tile(np.arange(SIZE), SIZE)
    row = np.repeat(np.arange(SIZE), SIZE)
    block = (row // 2) * (SIZE // 2) + column // 2
    means = np.equal.outer(np.arange(block.max() + 1), block) / 4
    return [
        Encoder("pixels", "ideal", pixels),
        Encoder("pixels", "template", pixels),
        Encoder("right half of the pixels", "template", pixels[column >= SIZE // 2]),
        Encoder("means of 2 x 2 pixels", "lda", means, pairs=128),
        Encoder(
            "template with own noise", "lda", SIGNAL.reshape(1, -1), late=2, pairs=128
        ),
    ]


@dataclass(frozen=True)
class Coverage:
    """What runs of an encoder give beside the truth."""

    encoder: Encoder
    #: log10 threshold over the true one, and length of its interval.
    error: np.ndarray
    length: np.ndarray
    #: Whether each interval holds the truth.
    is_covered: np.ndarray
    runs: int

    @property
    def efficiency(self) -> tuple[float, float, float]:
        """Geometric mean of the efficiency, and its 95 % interval over runs."""
        logs = np.log10(self.encoder.efficiency) - 2 * self.error
        reach = 1.96 * logs.std(ddof=1) / np.sqrt(len(logs))
        low, mean, high = 10 ** (logs.mean() + reach * np.array([-1, 0, 1]))
        return float(mean), float(low), float(high)

    def __str__(self) -> str:
        n = self.is_covered.size
        share = self.is_covered.mean()
        mean, low, high = self.efficiency
        return (
            f"| {self.encoder.name} | {self.encoder.stage} | {self.encoder.efficiency:.3f} "
            f"| {mean:.3f} [{low:.3f}, {high:.3f}] | {100 * share:.1f} ± "
            f"{100 * np.sqrt(share * (1 - share) / n):.1f} % | {np.median(self.length):.2f} "
            f"| {n} of {self.runs} |"
        )


def coverage(encoder: Encoder, runs: int, first_seed: int = 0) -> Coverage:
    """Measure an encoder many times, and count intervals of its threshold that hold the truth."""
    truth = np.log10(IDEAL) - 0.5 * np.log10(encoder.efficiency)
    contrasts = FACTORS * 10**truth
    seeds = range(first_seed, first_seed + runs)
    right = np.array([encoder.right(contrasts, seed) for seed in seeds])
    fit = fit_psychometric(
        contrasts,
        right[:, None],
        TRIALS,
        guess=0.5,
        lapse=(0.0, 0.005),
        function="weibull",
        shared=(-1,),
        interval="posterior",
    )
    has_number = np.isin(fit.status, WITH_THRESHOLD)
    low, threshold, high = (
        ends[has_number]
        for ends in (
            fit.log10_threshold_low,
            fit.log10_threshold,
            fit.log10_threshold_high,
        )
    )
    is_covered = (low <= truth) & (truth <= high)
    return Coverage(encoder, threshold - truth, high - low, is_covered, runs)


def print_training() -> None:
    """Print what finite training costs, beside the table of simulations."""
    from test_decision_stages import all_bias_rows, simulated_d_primes, table_error

    print("\n| stage | features | images | d' | table | here | errors |")
    print("|---|---|---|---|---|---|---|")
    for row in all_bias_rows():
        is_large = int(row["features"]) * int(row["images_per_class"]) > 200_000
        values = simulated_d_primes(row, 8 if is_large else 40)
        expected = float(row["dprime_simulated"])
        error = table_error(row, values)
        cells = [row["stage"], row["features"], row["images_per_class"]]
        cells += [row["dprime_population"], f"{expected:.3f}", f"{values.mean():.3f}"]
        cells.append(f"{(values.mean() - expected) / max(error, 1e-6):.1f}")
        print(f"| {' | '.join(cells)} |", flush=True)


def main() -> None:
    """Print all tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("runs", nargs="?", type=int, default=600)
    parser.add_argument("--training", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    # The check of swapped labels, most of the time of a training, tells nothing here.
    training._SWAPS = 2
    from test_decision_stages import chance_shares

    begin = time.process_time()
    print(
        "| encoder | stage | efficiency | geometric mean [95 %] | intervals of thresholds "
        "hold it | median length, log10 | with a threshold |\n|---|---|---|---|---|---|---|"
    )
    for number, encoder in enumerate(encoders()):
        print(coverage(encoder, options.runs, number * options.runs), flush=True)
    right = chance_shares(400) / 400
    is_covered = np.abs(right - 0.5) <= 1.96 * np.sqrt(0.25 / 400)
    print(
        f"\nFeatures of noise, 400 seeds of 400 trials: right {right.mean():.4f} ± "
        f"{right.std() / 20:.4f}; {100 * is_covered.mean():.1f} ± "
        f"{100 * np.sqrt(is_covered.mean() * (1 - is_covered.mean()) / 400):.1f} % of "
        "95 % intervals hold 0.5."
    )
    print(f"{time.process_time() - begin:.0f} s of processor")
    if options.training:
        print_training()


if __name__ == "__main__":
    main()
