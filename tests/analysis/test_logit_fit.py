"""Psychometric functions of logits: known observers come back, and what has no threshold is called
by its name."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import isotonic_regression, least_squares

from psyprobe.analysis.psychometric.isotonic import rising_means
from psyprobe.analysis.words.logit_fit import (
    fit_logits,
    logit_status,
    threshold_interval,
    threshold_variance,
    wild_replicates,
)

SLOPE = 2 * np.log(19)
X = np.linspace(-3, -0.6, 10)


def psi(
    x: np.ndarray, t: np.ndarray, w: float, guess: float, lapse: float
) -> np.ndarray:
    share = 1 / (1 + np.exp(-SLOPE * (x - t[..., None]) / w))
    return guess + (1 - guess - lapse) * share


def logits(
    t: np.ndarray,
    w: float = 0.6,
    guess: float = 0.02,
    lapse: float = 0.01,
    sd: float = 0.0,
    images: int = 3,
    seed: int = 0,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """X (G, F, L), logits (G, F, L, R), and those of 20 blanks (G, 20)."""
    rng = np.random.default_rng(seed)
    x = np.broadcast_to(X, (*t.shape, len(X)))
    p = psi(x, t, w, guess, lapse)
    z = np.log(p / (1 - p))[..., None] + rng.normal(0, sd, (*x.shape, images))
    blank = np.log(guess / (1 - guess)) + rng.normal(0, sd, (len(t), 20))
    return x, z, blank


def fitted(x: np.ndarray, z: np.ndarray, blank: np.ndarray, **bounds):
    return fit_logits(x, z, blank, **bounds)


@pytest.mark.parametrize("guess", [0.001, 0.25, 0.7])
@pytest.mark.parametrize("width", [0.3, 0.6, 1.5])
def test_an_observer_without_noise_comes_back_exactly(
    guess: float, width: float
) -> None:
    t = np.array([[-2.3, -1.9, -1.2], [-1.0, -1.5, -2.5]])
    logit_fit = fitted(*logits(t, width, guess, 0.03))
    np.testing.assert_allclose(logit_fit.threshold, t, atol=2e-4)
    np.testing.assert_allclose(logit_fit.width, width, rtol=2e-3)
    np.testing.assert_allclose(logit_fit.guess, guess, rtol=2e-3)
    np.testing.assert_allclose(logit_fit.lapse, 0.03, rtol=2e-2)


def test_it_finds_what_a_general_optimiser_finds() -> None:
    t = np.array([[-2.2, -1.6]])
    x, z, blank = logits(t, 0.8, 0.1, 0.02, sd=0.7, seed=3)
    logit_fit = fitted(x, z, blank)
    mean, catch = z.mean(-1)[0], blank.mean()

    def residual(q: np.ndarray) -> np.ndarray:
        g, lam = 1 / (1 + np.exp(-q[4:]))
        share = 1 / (1 + np.exp(-SLOPE * (x[0] - q[:2, None]) / np.exp(q[2:4, None])))
        p = g + (1 - g - lam) * share
        off = (np.log(p / (1 - p)) - mean) * np.sqrt(3 / (1 + (mean / 3) ** 2))
        return np.r_[off.ravel(), (q[4] - catch) * np.sqrt(20 / (1 + (catch / 3) ** 2))]

    other = least_squares(
        residual, [-2, -1.5, -0.3, -0.3, -2, -4], xtol=1e-12, ftol=1e-12
    )
    np.testing.assert_allclose(logit_fit.cost[0], 2 * other.cost, rtol=1e-6)
    np.testing.assert_allclose(logit_fit.threshold[0], other.x[:2], atol=1e-4)


@pytest.mark.parametrize("images", [1, 3])
def test_intervals_cover_the_truth(images: int) -> None:
    rng = np.random.default_rng(1)
    t = rng.uniform(-2.4, -1.2, (100, 4))
    x, z, blank = logits(t, w=0.8, guess=0.001, sd=0.5, images=images, seed=2)
    low, high = threshold_interval(fitted(x, z, blank), z, blank, 0.95)
    assert 0.93 <= ((low <= t) & (t <= high)).mean() <= 0.985


def test_replicates_scatter_as_thresholds_do() -> None:
    t = np.tile([-2.0, -1.5], (150, 1))
    x, z, blank = logits(t, sd=0.2, seed=3)
    logit_fit = fitted(x, z, blank)
    replicates = wild_replicates(logit_fit, z, blank, resamples=30, seed=0)
    spread = np.sqrt(replicates.var(axis=0, ddof=1).mean(axis=0))
    np.testing.assert_allclose(spread, logit_fit.threshold.std(axis=0), rtol=0.15)


def test_the_variance_and_its_freedom_are_those_of_many_draws() -> None:
    """With little noise a fit is linear, and its variance a sum of squares of normal numbers."""
    t = np.tile([-2.0, -1.5], (600, 1))
    x, z, blank = logits(t, sd=0.01, images=2, seed=4)
    logit_fit = fitted(x, z, blank)
    variance, freedom = threshold_variance(logit_fit, z, blank)
    np.testing.assert_allclose(variance.mean(0), logit_fit.threshold.var(0), rtol=0.15)
    expected_freedom = 2 * variance.mean(0) ** 2 / variance.var(0, ddof=1)
    np.testing.assert_allclose(freedom.mean(0), expected_freedom, rtol=0.25)


def test_a_step_may_stand_anywhere_between_two_levels() -> None:
    z = np.where(X < -1.9, -4.0, 4.0)[None, None, :, None] + np.array([-0.1, 0.1])
    x = np.broadcast_to(X, (1, 1, len(X)))
    blank = np.full((1, 20), -4.0)
    ((low,),), ((high,),) = threshold_interval(fitted(x, z, blank), z, blank, 0.95)
    assert low <= X[X < -1.9].max() and high >= X[X > -1.9].min()


def test_levels_without_images_count_nothing() -> None:
    t = np.array([[-2.0, -1.5]])
    x, z, blank = logits(t, sd=0.3)
    z[0, 0, 4] = np.nan
    logit_fit = fit_logits(x, z, blank)
    keep = np.r_[:4, 5:10]
    first = fit_logits(x[:, :1, keep], z[:, :1, keep], blank)
    assert np.isfinite(logit_fit.threshold).all()
    assert abs(logit_fit.threshold[0, 0] - first.threshold[0, 0]) < 0.02


def status_of(z: np.ndarray, blank: float) -> str:
    """Return the status of a curve of logits (L,) in two images that differ by 0.2, fitted beside a
    regular one."""
    regular = SLOPE * (X + 1.8) / 0.6
    floor = np.logaddexp(regular, blank) if blank > -8 else regular
    samples = np.stack([z, floor])[None, ..., None] + np.array([-0.1, 0.1])
    x = np.broadcast_to(X, (1, 2, len(X)))
    logit_fit = fit_logits(x, samples, np.full((1, 20), blank))
    return str(logit_status(logit_fit, samples)[0, 0])


@pytest.mark.parametrize(
    ("logit", "blank", "status"),
    [
        (SLOPE * (X + 2.0) / 0.6, -9.0, "ok"),
        (np.full(10, -5.0), -5.0, "censored_above"),
        (SLOPE * (X + 0.5) / 1.2, -9.0, "extrapolated"),
        (np.full(10, 6.0), -5.0, "censored_below"),
        (np.full(10, 3.0), 3.0, "always_yes"),
        (
            np.log(0.7 / 0.3) + np.logaddexp(0, SLOPE * (X + 1.8) / 0.6),
            np.log(0.7 / 0.3),
            "biased",
        ),
        (np.where(np.arange(10) % 5 < 3, 4.0, -4.0), -4.0, "non_monotone"),
        (-SLOPE * (X + 1.8) / 0.6, -4.0, "reversed"),
    ],
)
def test_what_has_no_threshold_is_called_by_its_name(
    logit: np.ndarray, blank: float, status: str
) -> None:
    assert status_of(logit, blank) == status


def test_levels_may_stand_in_any_order() -> None:
    x, z, blank = logits(np.array([[-2.2, -1.6]]), sd=0.3)
    mixed = np.random.default_rng(0).permutation(len(X))
    assert (
        logit_status(fitted(x[..., mixed], z[..., mixed, :], blank), z[..., mixed, :])
        == "ok"
    ).all()


def test_isotonic_regression_is_scipys() -> None:
    rng = np.random.default_rng(0)
    values, weight = rng.normal(size=(50, 9)), rng.uniform(0.1, 2, (50, 9))
    expected = [
        isotonic_regression(v, weights=w).x for v, w in zip(values, weight, strict=True)
    ]
    np.testing.assert_allclose(rising_means(values, weight), expected, atol=1e-9)
