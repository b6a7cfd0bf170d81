"""Curves of a large group that shares its rates: fitted in linear time, with intervals as before."""

import tracemalloc

import numpy as np
import pytest

from psyprobe.analysis.psychometric import (
    PsychometricFit,
    fit_psychometric,
    psychometric_function,
    search,
    separation,
)
from psyprobe.analysis.psychometric.counts import read_curves
from psyprobe.analysis.psychometric.likelihood import SearchProblem
from psyprobe.analysis.psychometric.statuses import RateBounds, state_problem


def fit_group(curves: int) -> PsychometricFit:
    """Fit curves of 20 trials at ten contrasts, with one guess and one lapse rate."""
    x = np.linspace(-2.5, 0, 10)
    thresholds = np.linspace(-2.0, -0.5, curves)[:, None]
    rate = psychometric_function(x, thresholds, 0.8, 0.05, 0.02)
    yes = np.random.default_rng(0).binomial(20, rate)
    return fit_psychometric(
        10**x, yes, 20, guess=(0, 0.5), lapse=(0, 0.1), shared=(-1,)
    )


def test_intervals_are_those_of_a_fit_of_all_curves(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    separate = fit_group(36)
    monkeypatch.setattr(separation, "_FEWEST_CURVES", 37)
    joint = fit_group(36)
    np.testing.assert_array_equal(separate.status, joint.status)
    for name in ("log10_threshold", "log10_width"):
        np.testing.assert_array_equal(getattr(separate, name), getattr(joint, name))
        for end in ("low", "high"):
            ends = [getattr(fit, f"{name}_{end}") for fit in (separate, joint)]
            np.testing.assert_allclose(*ends, atol=1e-3)


def test_twice_the_curves_take_twice_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    work = 0
    differentiate = SearchProblem.differentiate

    def count(problem: SearchProblem, *arguments: object) -> object:
        nonlocal work
        work += problem.counts.x.size
        return differentiate(problem, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(SearchProblem, "differentiate", count)
    amounts = []
    for curves in (36, 72):
        work = 0
        fit_group(curves)
        amounts.append(work)
    assert amounts[1] < 2.5 * amounts[0]


def test_memory_of_many_curves_grows_as_they_do() -> None:
    """600 curves took 96 MB when each was fitted alone beside a copy of all others."""
    x = np.linspace(-3, 0, 8)
    thresholds = np.linspace(-2.0, -1.0, 600)[:, None]
    rate = psychometric_function(x, thresholds, 0.5, 0.02, 0.02)
    yes = np.random.default_rng(1).binomial(10, rate)
    tracemalloc.start()
    try:
        fit_psychometric(10**x, yes, 10, lapse=0.02, shared=(-1,), interval=None)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 60e6


def test_memory_of_curves_with_many_levels_is_bounded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Starts of 60 curves of 40 levels are tried in blocks, which give what all at once give."""
    x = np.linspace(-3, 0, 40)
    thresholds = np.linspace(-2.0, -1.0, 60)[:, None]
    rate = psychometric_function(x, thresholds, 0.5, 0.02, 0.02)
    yes = np.random.default_rng(1).binomial(10, rate)
    curves = read_curves(10**x, yes, np.full(yes.shape, 10), ())
    bounds = (RateBounds(0.02, 0.02), RateBounds(0.02, 0.02))
    problem = state_problem(curves, "logistic", False, *bounds, 0.95, 0).search_problem
    peaks = []
    points = []
    for size in (20_000, 10**9):
        monkeypatch.setattr(search, "_START_SIZE", size)
        tracemalloc.start()
        try:
            points.append(search.search(problem).point)
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
    for name, values in vars(points[0]).items():
        np.testing.assert_array_equal(values, getattr(points[1], name))
    assert peaks[0] < peaks[1] / 2
