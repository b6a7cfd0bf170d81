"""Describe answers without a psychometric function: rising proportions, and tests for a rise.

References
----------
Ayer, Brunk, Ewing, Reid, Silverman (1955), Annals of Mathematical Statistics 26 (pool adjacent
violators). Miller & Ulrich (2001), Perception & Psychophysics 63 (Spearman-Kärber).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import xlogy

from psyprobe._typing import FloatArray
from psyprobe.analysis.psychometric.counts import highest, lowest
from psyprobe.analysis.psychometric.likelihood import level_log_likelihood
from psyprobe.analysis.psychometric.sigmoids import broadcast_floats

#: A deviance this small cannot be significant at 0.01: chi-square with one degree of freedom
#: exceeds it in 5 %, and with the least favourable truth half of all deviances are 0.
_SURELY_MONOTONE = 3.84
#: Deviances and proportions that differ less are equal.
_SAME_DEVIANCE = 1e-9
_SAME_PROPORTION = 1e-12


def isotonic_fit(yes: ArrayLike, trials: ArrayLike) -> FloatArray:
    """Fit the non-decreasing proportions of largest likelihood to counted answers.

    Parameters
    ----------
    yes, trials : array_like of float, shape (..., L)
        Counts at each level, in order of contrast. Levels without trials take the value of the
        level before.

    Returns
    -------
    ndarray of float64, shape (..., L)
        Never falling along the last axis, in [0, 1].

    Notes
    -----
    The fit at level i is the largest over a <= i of the smallest over b >= i of the pooled
    proportion of levels a to b.

    Examples
    --------
    >>> print(isotonic_fit([1, 0, 4, 5], [5, 5, 5, 5]))
    [0.1 0.1 0.8 1. ]
    """
    yes_counts, trial_counts = broadcast_floats(yes, trials)
    proportions = yes_counts / np.where(trial_counts > 0, trial_counts, 1.0)
    fit = rising_means(proportions, trial_counts)
    return np.asarray(np.clip(fit, 0.0, 1.0))


def rising_means(values: FloatArray, weights: FloatArray) -> FloatArray:
    """Fit the non-decreasing sequence nearest to weighted values, along the last axis.

    Values of weight 0 take the fit of the one before, or minus infinity where there is none. All
    sequences are fitted at once, since `monotone_p_value` fits a thousand of each curve:
    `scipy.optimize.isotonic_regression` takes one sequence a call and eight times as long.
    """
    cumulative_sum = _cumulative(values * weights)
    cumulative_weight = _cumulative(weights)
    fit = np.full(values.shape, -np.inf)
    for start in range(values.shape[-1]):
        block_sum = cumulative_sum[..., start + 1 :] - cumulative_sum[..., start, None]
        block_weight = (
            cumulative_weight[..., start + 1 :] - cumulative_weight[..., start, None]
        )
        weighted = block_weight > 0
        block_mean = np.where(
            weighted, block_sum / np.where(weighted, block_weight, 1.0), np.inf
        )
        backwards = block_mean[..., ::-1]
        smallest = np.minimum.accumulate(backwards, axis=-1)[..., ::-1]
        smallest = np.where(np.isfinite(smallest), smallest, -np.inf)
        fit[..., start:] = np.maximum(fit[..., start:], smallest)
    return fit


def _cumulative(values: FloatArray) -> FloatArray:
    """Sum the values before each place of the last axis, shape (..., L + 1)."""
    zero = np.zeros((*values.shape[:-1], 1))
    return np.concatenate([zero, np.cumsum(values, axis=-1)], axis=-1)


def log_likelihood(yes: FloatArray, trials: FloatArray, rate: FloatArray) -> FloatArray:
    """Compute the log-likelihood of rates at each level, up to a constant."""
    with np.errstate(divide="ignore"):
        log_p = np.log(rate)
        log_q = np.log1p(-rate)
    return level_log_likelihood(yes, trials, log_p, log_q, np.zeros(1))


def deviance(yes: FloatArray, trials: FloatArray, rate: FloatArray) -> FloatArray:
    """Compute the deviance of rates from the saturated model, summed over the last axis."""
    proportion = yes / np.where(trials > 0, trials, 1.0)
    saturated = xlogy(yes, proportion) + xlogy(trials - yes, 1 - proportion)
    loss = saturated - log_likelihood(yes, trials, rate)
    return np.asarray(np.maximum(2 * loss.sum(axis=-1), 0.0))


def rising_deviance(yes: FloatArray, trials: FloatArray) -> FloatArray:
    """Compute the deviance of counts from the best non-decreasing proportions, shape (...,)."""
    return deviance(yes, trials, isotonic_fit(yes, trials))


def monotone_p_value(
    yes: ArrayLike,
    trials: ArrayLike,
    *,
    resamples: int = 999,
    seed: int = 0,
    test_all: bool = True,
) -> FloatArray:
    """Estimate how probable a deviance this large is if proportions never fall with contrast.

    Parameters
    ----------
    yes, trials
        As for `isotonic_fit`.
    resamples : int, optional
        Number of draws of the parametric bootstrap for each curve.
    seed : int, optional
        Seed of the draws; a curve's draws do not depend on the other curves.
    test_all : bool, optional
        False: curves whose deviance cannot be significant at 0.01 get 1 without a test.

    Returns
    -------
    ndarray of float64, shape (...,)
        In (0, 1]; fractional trials are rounded for the draws.

    Examples
    --------
    >>> p = monotone_p_value([9, 5, 1, 5, 10], [10, 10, 10, 10, 10])
    >>> bool(p < 0.01)
    True
    """
    yes_counts, trial_counts = broadcast_floats(yes, trials)
    levels = yes_counts.shape[-1]
    curve_yes = yes_counts.reshape(-1, levels)
    curve_trials = trial_counts.reshape(-1, levels)
    deviances = rising_deviance(curve_yes, curve_trials)
    p_values = np.ones(deviances.shape)
    smallest_tested = _SAME_DEVIANCE if test_all else _SURELY_MONOTONE
    for curve in np.flatnonzero(deviances > smallest_tested):
        rate = isotonic_fit(curve_yes[curve], curve_trials[curve])
        drawn_deviances = _draw_deviances(rate, curve_trials[curve], resamples, seed)
        as_large = drawn_deviances >= deviances[curve] - _SAME_DEVIANCE
        p_values[curve] = (1 + as_large.sum()) / (1 + resamples)
    return p_values.reshape(yes_counts.shape[:-1])


def _draw_deviances(
    rate: FloatArray, trials: FloatArray, resamples: int, seed: int
) -> FloatArray:
    """Draw answers of one curve and compute the deviance from rising of each draw."""
    whole_trials = np.rint(trials)
    shape = (resamples, trials.size)
    rng = np.random.default_rng(seed)
    draws = rng.binomial(whole_trials.astype(np.int64), rate, size=shape)
    return rising_deviance(
        draws.astype(np.float64), np.broadcast_to(whole_trials, shape)
    )


class Interval(NamedTuple):
    """Low and high ends; infinite where the interval is open."""

    low: FloatArray
    high: FloatArray


def isotonic_bracket(
    x: FloatArray,
    yes: FloatArray,
    trials: FloatArray,
    criterion: float,
) -> Interval:
    """Find the neighbouring levels between which the non-decreasing fit passes a criterion.

    x rises, levels without trials stand last, and the criterion is a proportion of yes.
    """
    fit = isotonic_fit(yes, trials)
    tested = trials > 0
    below = tested & (fit < criterion - _SAME_PROPORTION)
    above = tested & (fit > criterion + _SAME_PROPORTION)
    return Interval(highest(x, below), lowest(x, above))


def spearman_karber(x: ArrayLike, yes: ArrayLike, trials: ArrayLike) -> FloatArray:
    """Estimate the mean of the distribution of thresholds, without assuming any form.

    Parameters
    ----------
    x, yes, trials : array_like of float, shape (..., L)
        log10 contrast, rising, and the counts there; levels without trials stand last.

    Returns
    -------
    ndarray of float64, shape (...,)
        log10 contrast; nan where the rising fit does not go from 0 to 1.

    Examples
    --------
    >>> float(spearman_karber([-3.0, -2.0, -1.0], [0, 5, 10], [10, 10, 10]))
    -2.0
    """
    levels, yes_counts, trial_counts = broadcast_floats(x, yes, trials)
    fit = isotonic_fit(yes_counts, trial_counts)
    tested = trial_counts > 0
    pair_tested = tested[..., 1:] & tested[..., :-1]
    rise = np.diff(fit, axis=-1)
    weighted = rise * 0.5 * (levels[..., 1:] + levels[..., :-1])
    mean = np.where(pair_tested, weighted, 0.0).sum(axis=-1)
    complete = lowest(fit, tested) <= _SAME_PROPORTION
    complete &= highest(fit, tested) >= 1 - _SAME_PROPORTION
    return np.where(complete, mean, np.nan)
