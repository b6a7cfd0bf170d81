"""Posteriors of few trials: planted staircases, simulated ones, and what is not integrated."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from psyprobe.analysis.comparison.people import group_mean
from psyprobe.analysis.psychometric import (
    WITH_THRESHOLD,
    fit_psychometric,
    fit_trials,
    psychometric_function,
    read_trials,
)
from psyprobe.analysis.psychometric.counts import read_curves
from psyprobe.analysis.psychometric.likelihood import stated_priors
from psyprobe.analysis.psychometric.posterior import ThresholdPosterior, counts_grid
from psyprobe.analysis.psychometric.search import search
from psyprobe.analysis.psychometric.statuses import RateBounds, state_problem
from psyprobe.errors import InputError

TABLES = Path(__file__).parents[2] / "data" / "statistics"


def planted(number: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, pd.DataFrame]:
    """Contrasts, right answers and trials of a set of staircases, and what was planted."""
    trials = pd.read_csv(TABLES / "staircase_trials.csv").query("set == @number")
    cells = trials.groupby(["person", "frequency", "log10_contrast"])["correct"]
    counts = cells.agg(["sum", "count"]).unstack(fill_value=0).astype(float)
    expected = pd.read_csv(TABLES / "staircase_expected.csv").query("set == @number")
    contrast = 10 ** counts["sum"].columns.to_numpy(float)
    right, total = (counts[name].to_numpy() for name in ("sum", "count"))
    return contrast, right.reshape(3, 6, -1), total.reshape(3, 6, -1), expected


@pytest.mark.parametrize("number", [0, 2])
def test_planted_staircases_have_intervals_that_end(number: int) -> None:
    """18 staircases of 25 or 40 trials, of which psignifit's intervals hold 89 %."""
    contrast, right, total, expected = planted(number)
    fit = fit_psychometric(
        contrast,
        right,
        total,
        guess=0.5,
        lapse="fit",
        shared=(-1,),
        interval="posterior",
    )
    low, high = (
        np.ravel(ends) for ends in (fit.log10_threshold_low, fit.log10_threshold_high)
    )
    assert np.isfinite([low, high]).all()
    truth = expected["planted_threshold"].to_numpy()
    is_covered = (low <= truth) & (truth <= high)
    # If the coverage is 95 %, fewer than 15 of 18 intervals hold the truth in one case of 150.
    assert is_covered.sum() >= 15


@pytest.mark.parametrize("number", [0, 2])
def test_the_likeliest_threshold_under_weak_priors_is_psignifit_s(number: int) -> None:
    """All 18 within 0.01, where the table's bound is 0.03.

    Of one curve a set, that all patterns were seen is not refuted. Its status says so, by which the
    fit withholds the threshold; psignifit has no status.
    """
    contrast, right, total, expected = planted(number)
    fit = fit_psychometric(
        contrast, right, total, guess=0.5, lapse="fit", method="map", interval=None
    )
    assert (np.ravel(fit.status) == "censored_below").sum() == 1
    curves = read_curves(contrast, right, total, ())
    bounds = (RateBounds(0.5, 0.5), RateBounds(0.0, 0.1))
    problem = state_problem(curves, "logistic", False, *bounds, 0.95, 0).search_problem
    point = search(replace(problem, priors=stated_priors(None))).point
    counts = problem.counts
    threshold = np.ravel(counts.centre + counts.scale * point.threshold)
    np.testing.assert_allclose(threshold, expected["psignifit_threshold"], atol=0.01)
    shown = np.ravel(fit.log10_threshold)
    has_threshold = np.isfinite(shown)
    np.testing.assert_allclose(shown[has_threshold], threshold[has_threshold])


def test_the_higher_of_two_maxima_is_taken() -> None:
    """A staircase of two: by psignifit 4.3, the log posterior is 0.29 higher at the narrow one."""
    contrast, right, total, expected = planted(2)
    fit = fit_psychometric(
        contrast, right, total, guess=0.5, lapse="fit", method="map", interval=None
    )
    narrow = expected.iloc[11]
    widths = np.ravel(fit.log10_width)
    assert widths[11] == pytest.approx(narrow["psignifit_width"], abs=0.001)


def staircases(
    rng: np.random.Generator, threshold: np.ndarray, width: np.ndarray, trials: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Three right down, one wrong up, in two intervals: contrasts, right answers, trials."""
    levels = np.arange(-40, 3) / 10
    places = np.rint((threshold + 4.3) * 10).astype(int)
    right, total = np.zeros((2, threshold.size, levels.size))
    run = np.zeros(threshold.size, int)
    curves = np.arange(threshold.size)
    for _ in range(trials):
        rate = psychometric_function(
            levels[places], threshold, width, 0.5, 0.02, function="logistic"
        )
        is_right = rng.random(threshold.size) < rate
        total[curves, places] += 1
        right[curves, places] += is_right
        run = np.where(is_right, run + 1, 0)
        places = places + np.where(~is_right, 1, np.where(run == 3, -1, 0))
        run[run == 3] = 0
        places = places.clip(0, levels.size - 1)
    return 10**levels, right, total


def test_intervals_of_short_staircases_hold_the_truth() -> None:
    """40 trials each; benchmarks/interval_coverage.py has more of them."""
    rng = np.random.default_rng(4)
    is_covered = []
    for _ in range(8):
        threshold = rng.uniform(-2.2, -0.9, 12)
        width = 10 ** rng.normal(np.log10(0.6), 0.1, 12)
        fit = fit_psychometric(
            *staircases(rng, threshold, width, 40),
            guess=0.5,
            lapse="fit",
            shared=(-1,),
            interval="posterior",
        )
        low, high = fit.log10_threshold_low, fit.log10_threshold_high
        is_covered.append((low <= threshold) & (threshold <= high))
    # Three binomial errors about 95 %.
    assert np.mean(is_covered) == pytest.approx(0.95, abs=0.06)


def test_posterior_means_are_the_thresholds_of_many_trials() -> None:
    contrast = np.geomspace(0.003, 0.3, 9)
    truth = (-1.6, 0.8, 0.5, 0.02)
    rate = psychometric_function(np.log10(contrast), *truth, function="logistic")
    fit = fit_psychometric(
        contrast, 40 * rate, 40, guess=0.5, lapse="fit", interval="posterior"
    )
    assert fit.log10_threshold == pytest.approx(-1.6, abs=0.02)
    assert fit.log10_width == pytest.approx(0.8, abs=0.1)
    assert fit.log10_width_low < 0.8 < fit.log10_width_high
    assert fit.guess == pytest.approx(0.5)
    assert not fit.bounded


def test_an_interval_that_the_prior_ends_says_so() -> None:
    """All right at all levels: the threshold may lie anywhere below."""
    fit = fit_psychometric(
        np.geomspace(0.01, 0.1, 4), 5, 5, guess=0.5, interval="posterior"
    )
    assert fit.status == "censored_below"
    assert fit.status not in WITH_THRESHOLD
    assert np.isnan(fit.log10_threshold)
    assert np.isfinite([fit.log10_threshold_low, fit.log10_threshold_high]).all()
    assert fit.bounded


def test_counted_answers_tell_what_single_ones_do() -> None:
    grid = counts_grid((-3.0, 0.0), (0.0, 0.5), (0.0, 0.1))
    one_by_one = ThresholdPosterior(1, grid, refine=False)
    for x, response in ((-2.0, 1), (-2.0, 0), (-2.0, 0), (-1.0, 1), (-1.0, 1)):
        one_by_one.tell(0, x, response)
    one_by_one.tell(None, -np.inf, 0)
    counted = ThresholdPosterior(1, grid, refine=False)
    x, yes, trials = np.array([[-2.0, -1.0], [1.0, 2.0], [3.0, 2.0]])
    counted.tell_counts(0, x, yes, trials)
    counted.tell_catch_trials(0.0, 1.0)
    assert np.allclose(counted.threshold_mass(0), one_by_one.threshold_mass(0))
    assert counted.mean_guess() == pytest.approx(one_by_one.mean_guess())


def test_widths_that_differ_are_not_made_alike() -> None:
    """The spread of widths is learned: a narrow curve beside a wide one stays narrow."""
    x = np.linspace(-3, -1, 11)
    rates = [
        psychometric_function(x, -2.0, width, 0.5, 0.0, function="logistic")
        for width in (0.3, 1.5)
    ]
    fit = fit_psychometric(
        10**x,
        30 * np.array(rates),
        30,
        guess=0.5,
        lapse="fit",
        shared=(-1,),
        interval="posterior",
    )
    assert fit.log10_width[0] < 0.55
    assert fit.log10_width[1] > 1.0


def test_few_trials_of_a_file_are_integrated_by_person(tmp_path: Path) -> None:
    """Two people whose thresholds lie a factor of four apart are not given one width."""
    rng = np.random.default_rng(2)
    truth = np.array([-2.0, -1.4])
    contrast, right, total = staircases(rng, truth, np.array([0.5, 0.5]), 60)
    lines = ["observer,frequency,contrast,correct"]
    for person in range(2):
        for level in np.flatnonzero(total[person]):
            answers = np.arange(total[person, level]) < right[person, level]
            lines += [f"{person},4,{contrast[level]},{answer:d}" for answer in answers]
    path = tmp_path / "trials.csv"
    path.write_text("\n".join(lines), encoding="utf-8")
    fit = fit_trials(read_trials(path, by="observer"))
    assert fit.status.shape == (len(truth), 1)
    thresholds, low, high = (
        ends[:, 0]
        for ends in (
            fit.log10_threshold,
            fit.log10_threshold_low,
            fit.log10_threshold_high,
        )
    )
    assert ((low <= truth) & (truth <= high)).all()
    assert fit.log10_width.max() < 1.0
    mean = group_mean(thresholds, (high - low) / 3.92)
    assert mean.low < -1.7 < mean.high
    assert mean.tau == pytest.approx(0.4, abs=0.2)


@pytest.mark.parametrize(
    "options", [{"overdispersion": True}, {"method": "map"}, {"lapse": "guess"}]
)
def test_what_is_not_integrated_is_refused(options: dict[str, object]) -> None:
    with pytest.raises(InputError, match="take interval='profile'"):
        fit_psychometric(
            [0.01, 0.1, 1.0], [0, 2, 4], 4, interval="posterior", **options
        )
    with pytest.raises(InputError, match="psychometric function of a design"):
        fit_psychometric(
            [0.01, 0.1, 1.0],
            [0, 2, 4],
            4,
            interval="posterior",
            function="hyperbolic_secant",
        )
