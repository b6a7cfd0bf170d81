"""Time per curve of fit_psychometric against psignifit's, thresholds of both, and coverage of the
profile intervals.

python benchmarks/psychometric_speed.py [--curves 1000] [--psignifit 4]

Yes/no data, guess and lapse rates free. psyprobe: largest likelihood with profile intervals of
threshold and width. psignifit 4.3: its default yes/no fit. Both run in this process on one thread.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from psyprobe.analysis.psychometric import (
    WITH_THRESHOLD,
    fit_psychometric,
    psychometric_function,
)

LOG_CONTRAST = np.linspace(-3.0, -1.0, 9)
TRIALS = 40


def observers(curves: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """True thresholds and widths, and what such observers said, shape (curves, 9)."""
    rng = np.random.default_rng(20260)
    threshold = rng.uniform(-2.3, -1.7, curves)
    width = rng.uniform(0.5, 1.2, curves)
    guess = rng.uniform(0.0, 0.2, curves)
    lapse = rng.uniform(0.0, 0.06, curves)
    rate = psychometric_function(
        LOG_CONTRAST,
        *(v[:, None] for v in (threshold, width, guess, lapse)),
        function="logistic",
    )
    return threshold, width, rng.binomial(TRIALS, rate)


def time_psignifit(yes: np.ndarray) -> tuple[float, list[float], list[list[float]]]:
    """Process seconds per curve, thresholds and 95 % intervals."""
    import warnings

    import psignifit

    thresholds = []
    intervals = []
    spent = 0.0
    for k in yes:
        data = np.stack([LOG_CONTRAST, k, np.full(k.size, TRIALS)], axis=-1)
        begin = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            psignifit_fit = psignifit.psignifit(
                data, sigmoid="logistic", experiment_type="yes/no"
            )
        spent += time.process_time() - begin
        thresholds.append(float(psignifit_fit.parameter_estimate_MAP["threshold"]))
        intervals.append(
            [float(v) for v in psignifit_fit.confidence_intervals["threshold"]["0.95"]]
        )
    return spent / len(yes), thresholds, intervals


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--curves", type=int, default=1000)
    parser.add_argument("--psignifit", type=int, default=4)
    options = parser.parse_args()
    threshold, width, yes = observers(options.curves)
    contrast = 10.0**LOG_CONTRAST
    fit_psychometric(contrast, yes[:2], TRIALS, guess="fit", lapse="fit")  # imports
    begin = time.process_time()
    wall = time.perf_counter()
    fit = fit_psychometric(contrast, yes, TRIALS, guess="fit", lapse="fit")
    ours = (time.process_time() - begin) / options.curves
    wall = time.perf_counter() - wall
    has_threshold = np.isin(fit.status, WITH_THRESHOLD)
    covered = (fit.log10_threshold_low <= threshold) & (
        threshold <= fit.log10_threshold_high
    )
    covered_width = (fit.log10_width_low <= width) & (width <= fit.log10_width_high)
    mapped = fit_psychometric(
        contrast,
        yes[: options.psignifit],
        TRIALS,
        guess=(0.0, 0.5),
        lapse=(0.0, 0.5),
        method="map",
        overdispersion=True,
        interval=None,
    )
    theirs, thresholds, _ = time_psignifit(yes[: options.psignifit])
    apart = np.abs(fit.log10_threshold[: options.psignifit] - thresholds)
    apart_map = np.abs(mapped.log10_threshold - thresholds)
    report = {
        "curves": options.curves,
        "seconds_per_curve": round(ours, 5),
        "wall_seconds": round(wall, 2),
        "psignifit_seconds_per_curve": round(theirs, 3),
        "times_faster": round(theirs / ours, 1),
        "converged": float(fit.converged.mean()),
        "statuses": {
            str(name): int((fit.status == name).sum()) for name in np.unique(fit.status)
        },
        "largest_threshold_difference_log10": round(float(np.nanmax(apart)), 4),
        "largest_threshold_difference_same_priors_log10": round(
            float(np.nanmax(apart_map)), 4
        ),
        "coverage_threshold_95": round(float(covered[has_threshold].mean()), 4),
        "coverage_width_95": round(float(covered_width[has_threshold].mean()), 4),
        "rmse_threshold_log10": round(
            float(
                np.sqrt(np.mean((fit.log10_threshold - threshold)[has_threshold] ** 2))
            ),
            4,
        ),
    }
    print(json.dumps(report, indent=2))
    met = (
        theirs / ours >= 100
        and report["largest_threshold_difference_same_priors_log10"] < 0.01
    )
    met = met and 0.92 <= report["coverage_threshold_95"] <= 0.98
    print("met" if met else "NOT met")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
