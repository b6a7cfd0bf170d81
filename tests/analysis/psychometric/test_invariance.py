"""What must not change a fit, and what must change it in a known way."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from psyprobe.analysis.psychometric import (
    WITH_THRESHOLD,
    fit_psychometric,
    psychometric_function,
)

CONTRAST = 10.0 ** np.linspace(-3, -1, 7)
FREE: dict[str, Any] = {"guess": "fit", "lapse": "fit"}
counts = st.lists(st.integers(0, 12), min_size=7, max_size=7).map(np.array)
rates = st.sampled_from([{}, FREE, {"guess": 0.5, "lapse": (0.0, 0.1)}])


def assert_same_fit(
    first: Any, second: Any, *, shift: float = 0.0, tolerance: float = 1e-4
) -> None:
    """Equal statuses, and thresholds apart by `shift`."""
    assert np.array_equal(first.status, second.status)
    np.testing.assert_allclose(second.log_likelihood, first.log_likelihood, atol=1e-6)
    np.testing.assert_allclose(second.deviance, first.deviance, atol=1e-5)
    loose = np.isin(first.status, ("extrapolated",)) | (first.log10_width > 5)
    for name in ("log10_threshold", "log10_threshold_low", "log10_threshold_high"):
        a, b = getattr(first, name), getattr(second, name)
        # Where the likelihood is nearly level, or far out, rounding moves the place a little.
        np.testing.assert_allclose(
            b, a + shift, atol=1e-2 if loose else tolerance, rtol=1e-2 if loose else 0
        )


@settings(max_examples=8)
@given(counts, rates, st.floats(0.01, 100.0))
def test_scaled_contrast_shifts_the_threshold(
    yes: np.ndarray, how: dict[str, Any], scale: float
) -> None:
    a = fit_psychometric(CONTRAST, yes, 12, **how)
    b = fit_psychometric(CONTRAST * scale, yes, 12, **how)
    assert_same_fit(a, b, shift=np.log10(scale), tolerance=1e-3)


@settings(max_examples=8)
@given(counts, st.randoms(use_true_random=False))
def test_order_of_levels_is_nothing(yes: np.ndarray, random: Any) -> None:
    order = random.sample(range(7), 7)
    assert_same_fit(
        fit_psychometric(CONTRAST, yes, 12),
        fit_psychometric(CONTRAST[order], yes[order], 12),
        tolerance=1e-9,
    )


@settings(max_examples=8)
@given(counts, st.integers(0, 12))
def test_a_level_may_be_told_in_parts(yes: np.ndarray, part: int) -> None:
    parts = np.minimum(yes, part)
    split = (
        fit_psychometric(
            np.r_[CONTRAST, CONTRAST],
            np.r_[parts, yes - parts],
            np.r_[np.full(7, part), np.full(7, 12 - part)],
        )
        if np.all(yes - parts <= 12 - part)
        else None
    )
    assume(split is not None)
    assert_same_fit(fit_psychometric(CONTRAST, yes, 12), split, tolerance=1e-9)


@settings(max_examples=8)
@given(counts, st.sampled_from([{}, {"guess": (0.0, 0.3), "lapse": (0.0, 0.1)}]))
def test_swapping_yes_and_no_mirrors(yes: np.ndarray, how: dict[str, Any]) -> None:
    mirror = {"guess": how["lapse"], "lapse": how["guess"]} if how else {}
    fit = fit_psychometric(CONTRAST, yes, 12, **how)
    mirrored = fit_psychometric(1 / CONTRAST, 12 - yes, 12, **mirror)
    names = {"censored_above": "censored_below", "censored_below": "censored_above"}
    assert mirrored.status == names.get(str(fit.status), str(fit.status))
    np.testing.assert_allclose(mirrored.log_likelihood, fit.log_likelihood, atol=1e-5)
    if fit.status == "ok" and fit.log10_width < 4:
        np.testing.assert_allclose(
            mirrored.log10_threshold, -fit.log10_threshold, atol=2e-3
        )
        np.testing.assert_allclose(
            [mirrored.log10_threshold_low, mirrored.log10_threshold_high],
            [-fit.log10_threshold_high, -fit.log10_threshold_low],
            atol=2e-3,
        )


def test_reversed_gumbel_is_weibull_mirrored() -> None:
    yes = np.array([0, 1, 4, 7, 11, 12, 12])
    a = fit_psychometric(CONTRAST, yes, 12, function="weibull")
    b = fit_psychometric(1 / CONTRAST, 12 - yes, 12, function="gumbel_reversed")
    np.testing.assert_allclose(b.log10_threshold, -a.log10_threshold, atol=1e-5)
    np.testing.assert_allclose(b.log10_width, a.log10_width, atol=1e-5)


def test_a_curve_does_not_depend_on_the_others() -> None:
    rng = np.random.default_rng(1)
    rate = psychometric_function(
        np.log10(CONTRAST), rng.uniform(-2.3, -1.7, (6, 1)), 0.9, 0.1, 0.02
    )
    yes = rng.binomial(15, rate)
    yes[4] = yes[4, ::-1]
    joint_fit = fit_psychometric(CONTRAST, yes, 15, **FREE)
    for i in (0, 4, 5):
        alone = fit_psychometric(CONTRAST, yes[i], 15, **FREE)
        assert alone.status == joint_fit.status[i]
        np.testing.assert_allclose(
            alone.log10_threshold, joint_fit.log10_threshold[i], atol=1e-6
        )
        np.testing.assert_allclose(
            alone.log10_threshold_low, joint_fit.log10_threshold_low[i], atol=1e-4
        )


@pytest.mark.parametrize(
    "function",
    ["logistic", "normal", "weibull", "gumbel_reversed", "hyperbolic_secant"],
)
def test_expected_counts_give_the_truth_back(function: str) -> None:
    x = np.linspace(-3, -1, 15)
    truth = {
        "log10_threshold": np.array([-2.2, -1.9]),
        "log10_width": np.array([0.7, 1.1]),
        "guess": 0.15,
        "lapse": 0.04,
    }
    columns = [np.broadcast_to(np.asarray(v), (2,))[:, None] for v in truth.values()]
    yes = 1000 * psychometric_function(x, *columns, function=function)
    fit = fit_psychometric(10**x, yes, 1000, function=function, **FREE, interval=None)
    for name, value in truth.items():
        np.testing.assert_allclose(getattr(fit, name), value, atol=1e-4, err_msg=name)
    np.testing.assert_allclose(fit.predict(10**x) * 1000, yes, atol=0.05)


def test_shared_rates_are_those_of_all_curves() -> None:
    x = np.linspace(-3, -1, 9)
    thresholds = np.array([[-2.4, -2.0, -1.6], [-2.2, -1.9, -1.5]])
    guess, lapse = np.array([[0.1], [0.3]]), np.array([[0.02], [0.05]])
    rate = psychometric_function(
        x, thresholds[..., None], 0.8, guess[..., None], lapse[..., None]
    )
    fit = fit_psychometric(10**x, 200 * rate, 200, **FREE, shared=(-1,), interval=None)
    np.testing.assert_allclose(fit.log10_threshold, thresholds, atol=1e-4)
    np.testing.assert_allclose(fit.guess, np.broadcast_to(guess, (2, 3)), atol=1e-4)
    np.testing.assert_allclose(fit.lapse, np.broadcast_to(lapse, (2, 3)), atol=1e-4)
    flipped = fit_psychometric(
        10**x, 200 * np.swapaxes(rate, 0, 1), 200, **FREE, shared=(0,), interval=None
    )
    np.testing.assert_allclose(
        flipped.log10_threshold, fit.log10_threshold.T, atol=1e-6
    )


def test_curves_that_share_known_rates_are_fitted_as_well_as_alone() -> None:
    # Steep and shallow, unseen and seen throughout, side by side: what suits one curve need not
    # suit another.
    rng, x = np.random.default_rng(1), np.linspace(-3, 0, 9)
    threshold, width = (
        rng.uniform(-4, 0.7, (60, 5, 1)),
        10.0 ** rng.uniform(-1.5, 0.7, (60, 5, 1)),
    )
    rate = psychometric_function(x, threshold, width, 0.1, 0.02)
    how: dict[str, Any] = {"guess": 0.1, "lapse": 0.02, "interval": None}
    for trials in (2, 30):
        yes = rng.binomial(trials, rate)
        alone = fit_psychometric(10**x, yes, trials, **how)
        joint_fit = fit_psychometric(10**x, yes, trials, shared=(-1,), **how)
        # A curve that does not rise is not fitted in a group.
        fitted = ~np.isin(alone.status, ("reversed", "non_monotone"))
        assert (
            joint_fit.log_likelihood[fitted] > alone.log_likelihood[fitted] - 1e-5
        ).all()


def test_catch_trials_tell_the_guess_rate_and_nothing_else() -> None:
    contrast = np.r_[0.0, CONTRAST]
    yes = np.r_[30, [3, 4, 5, 8, 10, 12, 12]]
    trials = np.r_[100, np.full(7, 12)]
    free = fit_psychometric(contrast, yes, trials, **FREE)
    assert abs(free.guess - 0.3) < 0.02
    without = fit_psychometric(CONTRAST, yes[1:], 12, **FREE)
    assert (
        free.log10_threshold_high - free.log10_threshold_low
        < without.log10_threshold_high - without.log10_threshold_low
    )
    fixed = fit_psychometric(contrast, yes, trials, guess=0.3)
    np.testing.assert_array_equal(
        fixed.log10_threshold,
        fit_psychometric(CONTRAST, yes[1:], 12, guess=0.3).log10_threshold,
    )


def test_intervals_cover_the_truth_and_fits_agree_with_the_observer() -> None:
    rng = np.random.default_rng(7)
    threshold = rng.uniform(-2.3, -1.7, 300)
    rate = psychometric_function(
        np.log10(CONTRAST), threshold[:, None], 0.9, 0.02, 0.02
    )
    fit = fit_psychometric(CONTRAST, rng.binomial(20, rate), 20, guess=0.02, lapse=0.02)
    has_threshold = np.isin(fit.status, WITH_THRESHOLD)
    covered = (
        (fit.log10_threshold_low <= threshold) & (threshold <= fit.log10_threshold_high)
    )[has_threshold]
    assert has_threshold.mean() > 0.97
    assert 0.92 <= covered.mean() <= 0.98
    assert abs((fit.log10_threshold - threshold)[has_threshold].mean()) < 0.01


def test_glm_of_statsmodels_agrees() -> None:
    sm = pytest.importorskip("statsmodels.api")
    rng = np.random.default_rng(3)
    yes = rng.binomial(15, psychometric_function(np.log10(CONTRAST), -1.95, 1.3))
    x = sm.add_constant(np.log10(CONTRAST))
    glm = sm.GLM(
        np.stack([yes, 15 - yes], axis=-1), x, family=sm.families.Binomial()
    ).fit()
    fit = fit_psychometric(CONTRAST, yes, 15, interval=None)
    np.testing.assert_allclose(
        fit.log10_threshold, -glm.params[0] / glm.params[1], atol=1e-5
    )
    np.testing.assert_allclose(
        fit.log10_width, 2 * np.log(19) / glm.params[1], atol=1e-5
    )
    np.testing.assert_allclose(fit.deviance, glm.deviance, atol=1e-6)
