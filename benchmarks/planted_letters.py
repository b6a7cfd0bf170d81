"""Plant known truths in observers of the pages of letters, paths and dots; print what comes back.

    python benchmarks/planted_letters.py [SEEDS] [PAGE ...]

The first rows are of observers that are told numbers in place of images, as in
tests/questions/test_planted_pages.py; those of `simulated:letters` look at pixels. Each has SEEDS
runs (20), of which seed, letters and answers differ.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import psyprobe as pp
from psyprobe.analysis import chat_csf
from psyprobe.experiment import Experiment, load_experiment

sys.path.append(str(Path(__file__).parent.parent / "tests" / "questions"))
from planted_pages import run_planted, weibull
from test_planted_pages import THRESHOLDS

Settings = dict[str, Any]
Truths = dict[float, float]
#: Pages with one threshold: settings, slope, truth at each value of the level.
ACUITY: dict[str, tuple[Settings, float, Truths]] = {
    name: ({}, 3.5, {-1: 0.1})
    for name in ("letter_acuity", "landolt_4", "landolt_8", "tumbling_e")
}
#: Pages of `simulated:letters`: its mind, and truth at each value of the level.
READ: dict[str, tuple[Settings, Settings, Truths]] = {
    "letter_acuity": ({}, {"letter_px": 12.0}, {-1: 0.1}),
    "letter_acuity_contrast": (
        {"levels.contrast": {"values": [-1, -0.3, -0.1]}},
        {"letter_px": 8.0, "size_by_contrast": 0.4},
        {value: 8 / 60 * abs(value) ** -0.4 for value in (-1, -0.3, -0.1)},
    ),
    "letter_csf": (
        {"levels.letter_size": {"values": [0.2667, 0.5333]}},
        {"letter_px": 2.0, "contrast": 0.05},
        {0.2667: 0.05, 0.5333: 0.05},
    ),
    "crowding": (
        {"levels.flankers": {"values": [2]}},
        {"letter_px": 2.0, "crowding": 1.8},
        {2: 0.36},
    ),
}


def by_numbers(
    name: str, settings: Settings, slope: float, truths: Truths
) -> tuple[Settings, Truths, Callable[[Experiment, int], Any]]:
    """Build what runs a page without an image."""
    page = load_experiment(name)
    if len(truths) > 1:
        level = next(
            level for level, values in page.levels.items() if {*truths} <= {*values}
        )
        settings = {**settings, f"levels.{level}": {"values": sorted(truths)}}

    def run(experiment: Experiment, seed: int) -> Any:
        return run_planted(
            experiment,
            lambda value, x: weibull(x, truths[value], slope),
            pytest.MonkeyPatch(),
            seed=seed,
        )

    return settings, truths, run


def by_pixels(
    settings: Settings, mind: Settings, truths: Truths
) -> tuple[Settings, Truths, Callable[[Experiment, int], Any]]:
    """Build what has a page read by the simulated reader."""

    def run(experiment: Experiment, seed: int) -> Any:
        reader = pp.load_observer("simulated:letters", **mind, seed=seed)
        return pp.run(experiment, reader, progress=False)

    return settings, truths, run


def rows() -> Iterator[tuple[str, str, Settings, Truths, Callable[..., Any]]]:
    """List the rows of the table: page, observer, settings, truths, and what runs it."""
    for name, (settings, slope, truths, *_) in {**ACUITY, **THRESHOLDS}.items():
        yield name, "numbers", *by_numbers(name, settings, slope, truths)
    for name, entry in READ.items():
        yield name, "`simulated:letters`", *by_pixels(*entry)


def main(seeds: int = 20, *names: str) -> None:
    """Print the bias, error and coverage of every page."""
    print("| page | observer | runs | bias, log10 | RMSE | 95 % intervals that hold |")
    print("|---|---|---|---|---|---|")
    for name, observer, settings, truths, run in rows():
        if names and name not in names:
            continue
        truth = np.array([truths[value] for value in sorted(truths)])
        errors: list[float] = []
        intervals_hold: list[bool] = []
        for seed in range(seeds):
            page = load_experiment(name).with_settings(
                {**settings, "asking.seed": seed}
            )
            csf = chat_csf(run(page, seed))
            threshold, low, high = (
                csf[f"threshold{end}"].values.ravel() for end in ("", "_low", "_high")
            )
            errors += np.log10(threshold / truth).tolist()
            # An open end is no bound.
            above = np.isnan(low) | (low <= truth)
            below = np.isnan(high) | (truth <= high)
            intervals_hold += (above & below & ~np.isnan(threshold)).tolist()
        finite = np.array(errors)[np.isfinite(errors)]
        lacking = len(errors) - len(finite)
        print(
            f"| `{name}` | {observer} | {seeds} x {len(truth)} | {finite.mean():+.3f} | "
            f"{np.sqrt(np.mean(finite**2)):.3f} | {sum(intervals_hold)} of {len(errors)}"
            f"{f', {lacking} without threshold' if lacking else ''} |",
            flush=True,
        )


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(*map(int, sys.argv[1:2]), *sys.argv[2:])
