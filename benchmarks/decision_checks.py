"""Chance, coverage of thresholds and cost of training of encoders that decide, as Markdown tables.

python benchmarks/decision_checks.py [RUNS]     # 200 runs of each encoder

Encoders of known d' answer whole pages: their efficiency in noise is what is known of them. Then
stages are trained as each row of tests/data/decisions/training_bias.csv says.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

import psyprobe as pp

TESTS = Path(__file__).resolve().parents[1] / "tests"
sys.path[:0] = [str(TESTS / "observers")]

from test_decision_stages import (
    all_bias_rows,
    chance_shares,
    simulated_d_primes,
    table_error,
)

PAGE = pp.load_experiment("gabor_in_noise").with_settings(
    {
        "stimulus.parameters.size": 24,
        "stimulus.parameters.ppd": 12,
        "stimulus.parameters.radius": 0.25,
        "noise.density": 1e-5,
        "levels.frequency.values": [2],
        "levels.contrast": {"from": 0.004, "to": 0.04, "n": 7, "scale": "log"},
        "asking.design": "constant",
        "asking.options": {},
        "asking.repeats": 20,
        "asking.catch": 0,
    }
)


def whole(images: Any) -> Any:
    """Return all pixels."""
    return images[..., 1].reshape(len(images), -1)


def half(images: Any) -> Any:
    """Return the pixels of the right half."""
    return images[:, :, images.shape[2] // 2 :, 1].reshape(len(images), -1)


def coverage(runs: int) -> Iterator[str]:
    """Yield a table row for each encoder: how often intervals hold its known efficiency."""
    for name, function, truth in (("all pixels", whole, 1.0), ("half", half, 0.5)):
        efficiency = []
        held = []
        for seed in range(runs):
            encoder = pp.observer(function, name=name, version="1")
            observer = pp.decide(encoder, stage="template", pairs=16, seed=seed)
            page = PAGE.with_settings({"asking.seed": seed})
            (point,) = pp.score(pp.run(page, observer, progress=False)).curve
            score = point.efficiency
            if score is None or score.efficiency is None:
                continue
            efficiency.append(score.efficiency)
            held.append((score.low or 0) <= truth <= (score.high or np.inf))
        mean = 10 ** np.mean(np.log10(efficiency))
        yield f"| {name} | {truth:g} | {mean:.3f} | {np.mean(held):.1%} | {len(held)} of {runs} |"


def main(runs: int) -> None:
    """Print all tables."""
    warnings.simplefilter("ignore")
    right = chance_shares(400) / 400
    held = np.abs(right - 0.5) <= 1.96 * np.sqrt(0.25 / 400)
    print(
        f"Noise alone, 400 stages: right {right.mean():.4f}, {held.mean():.1%} hold 0.5"
    )
    print(
        "\n| encoder | efficiency | geometric mean | 95 % intervals | with a number |"
    )
    print("|---|---|---|---|---|")
    for line in coverage(runs):
        print(line, flush=True)
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


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
