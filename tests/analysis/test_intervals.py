"""Intervals hold the truth about as often as they say, and none has zero width."""

from __future__ import annotations

import numpy as np
import pytest
from chat_results import chat_result

from psyprobe.analysis import flag_words
from psyprobe.analysis.alignment import align
from psyprobe.analysis.intervals import bounded_interval, neighbour_correlation
from psyprobe.analysis.matching import matching_error
from psyprobe.analysis.psychometric import fit_psychometric
from psyprobe.analysis.words.comparison import STATISTICS, compare_with_human
from psyprobe.analysis.words.csf import chat_csf, prompt_mean
from psyprobe.analysis.words.fit import ChatFit

LEVELS = np.linspace(-3, -1, 9)


def test_wordings_that_agree_between_two_levels_know_the_threshold_no_better_than_these() -> (
    None
):
    truth = np.array([-1.93, -2.04])
    result = chat_result(
        np.tile(truth, (4, 1)),
        frequencies=(2.0, 4.0),
        contrast=10**LEVELS,
        width=0.02,
        catch=0,
    )
    csf = chat_csf(result, guess=0.0, lapse=0.0)
    assert (flag_words(csf["status"]) == "separable").all()
    low, high = (
        -np.log10(csf[f"mean_sensitivity_{end}"].values) for end in ("high", "low")
    )
    assert (low < truth).all() and (truth < high).all()
    np.testing.assert_allclose(high - low, 0.25, atol=1e-3)
    comparison = compare_with_human(csf, [100.0, 50.0])
    for name in STATISTICS:
        statistic = getattr(comparison, name)
        assert statistic.low is None or statistic.high - statistic.low > 1e-3 * abs(
            statistic.value
        ), name


@pytest.mark.parametrize("prompts", [3, 25])
def test_wordings_that_answer_alike_are_at_least_as_uncertain_as_their_trials(
    prompts: int,
) -> None:
    level = np.full((prompts, 1), -2.0)
    nothing, ok = np.full(level.shape, np.nan), np.full(level.shape, "ok")
    chat_fit = ChatFit(
        ok, level, level - 0.1, level + 0.2, nothing, nothing, nothing, nothing, nothing
    )
    mean, low, high, over = prompt_mean(chat_fit, 0.95)
    np.testing.assert_allclose(
        [mean - low, high - mean], [[0.2 / np.sqrt(prompts)], [0.1 / np.sqrt(prompts)]]
    )
    assert over == "prompts"


def test_a_mixed_level_is_known_to_half_its_spacing() -> None:
    fit = fit_psychometric(10**LEVELS, [0, 0, 0, 0, 4, 10, 10, 10, 10], 10)
    assert fit.status == "quasi_separable"
    np.testing.assert_allclose(
        [fit.log10_threshold_low, fit.log10_threshold_high], [-2.125, -1.875]
    )


def test_an_end_far_beyond_the_levels_shown_is_open() -> None:
    fit = fit_psychometric(
        10 ** np.array([-2.0, -1.9, -1.8, -1.7, -1.6]), [7, 9, 12, 12, 13], 20
    )
    assert fit.status == "ok" and -2 < fit.log10_threshold < -1.6
    assert fit.log10_threshold_low == -np.inf
    assert np.isfinite(fit.log10_threshold_high)


def test_drawn_answers_widen_an_interval_and_never_narrow_it() -> None:
    yes = [[0, 0, 1, 2, 5, 8, 9, 10, 10], [0, 0, 0, 1, 6, 10, 10, 10, 10]]
    profile = fit_psychometric(10**LEVELS, yes, 10)
    bootstrap_fit = fit_psychometric(
        10**LEVELS, yes, 10, interval="bootstrap", resamples=99
    )
    for name in ("log10_threshold", "log10_width"):
        low, high = (
            getattr(bootstrap_fit, f"{name}_{end}") - getattr(profile, f"{name}_{end}")
            for end in ("low", "high")
        )
        assert (low <= 1e-4).all() and (high >= -1e-4).all(), name


def test_matching_intervals_hold_where_one_frequency_decides() -> None:
    rng = np.random.default_rng(0)
    scale = 0.2 * np.exp(np.log(1.8) * rng.normal(size=(400, 9)))
    truth = 0.2 * np.exp(np.log(1.8) ** 2)
    human, covered = np.ones((5, 9)), 0
    for noise_scale in scale:
        pooled = matching_error(
            10 ** (noise_scale * rng.normal(size=(5, 9))), human, resamples=100
        ).pooled
        covered += pooled.low <= truth <= pooled.high
    assert 0.91 <= covered / 400 <= 0.99


def test_what_is_alike_throughout_tells_no_interval() -> None:
    error = matching_error(np.full((2, 4), 0.1), np.full((2, 4), 0.2))
    assert error.mean.value == pytest.approx(np.log10(2))
    assert (error.mean.low, error.mean.high, error.pooled.low, error.pooled.high) == (
        None,
    ) * 4
    m = np.geomspace(0.5, 2, 10)
    level = align(m, np.tile(m, (8, 1)))
    assert (level.low, level.high) == (None, None) and "alike" in level.note


@pytest.mark.parametrize("rate", [0.5, 0.9, 0.97])
def test_shares_hold_as_often_as_they_say(rate: float) -> None:
    right = np.random.default_rng(1).binomial(30, rate, 2000) / 30
    error = np.sqrt(right * (1 - right) / 29)
    ends = np.array(
        [bounded_interval(p, e, 30, 0.95) for p, e in zip(right, error, strict=True)]
    )
    assert 0.93 <= ((ends[:, 0] <= rate) & (rate <= ends[:, 1])).mean() <= 0.99


@pytest.mark.parametrize("alike", [0.0, 0.5, 0.8])
def test_neighbours_that_are_alike_are_told_from_independent_ones(alike: float) -> None:
    rng = np.random.default_rng(5)
    levels = rng.normal(size=(400, 12))
    for k in range(1, 12):
        levels[:, k] = alike * levels[:, k - 1] + np.sqrt(1 - alike**2) * levels[:, k]
    correlations = np.array(
        [neighbour_correlation(log_levels) for log_levels in levels]
    )
    assert abs(correlations.mean() - {0.0: 0.0, 0.5: 0.44, 0.8: 0.65}[alike]) < 0.03
    multiplier = np.geomspace(0.5, 2.0, 10)
    off = [10 ** (0.1 * log_levels) for log_levels in levels[:40]]
    by_score = [
        align(multiplier, log_levels[:, None] * multiplier, resamples=100).neighbours
        for log_levels in off
    ]
    by_error = [
        matching_error(
            10 ** log_levels[None], np.ones((1, 12)), resamples=100
        ).neighbours
        for log_levels in off
    ]
    for correlations_by_test in (by_score, by_error):
        assert abs(np.mean(np.array(correlations_by_test, dtype=float)) - alike) < 0.2
    assert (
        neighbour_correlation(np.ones(9)) is None
        and neighbour_correlation(levels[0, :3]) is None
    )
