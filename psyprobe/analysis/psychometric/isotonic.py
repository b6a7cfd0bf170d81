"""What can be said without a psychometric function: rising fits, whether data rise at all, and
where they cross.

References
----------
Ayer, Brunk, Ewing, Reid, Silverman (1955), Annals of Mathematical Statistics 26 (pool adjacent
violators). Miller & Ulrich (2001), Perception & Psychophysics 63 (Spearman-Kärber).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import xlogy

from psyprobe._typing import FloatArray

#: A deviance this small cannot be significant at 0.01: chi-square with one degree of freedom
#: exceeds it in 5 %, and the deviance from a rising fit is nothing at all in half the cases with
#: the least favourable truth.
_SURELY_MONOTONE = 3.84


def isotonic_fit(yes: npt.ArrayLike, trials: npt.ArrayLike) -> FloatArray:
    """Rising proportions of largest likelihood.

    Parameters
    ----------
    yes, trials : array_like of float, shape (..., L)
        By level, in order of contrast. Levels without trials take the value of the level before.

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
    k, n = np.broadcast_arrays(
        np.asarray(yes, dtype=np.float64), np.asarray(trials, dtype=np.float64)
    )
    return np.asarray(np.clip(rising_means(k / np.where(n > 0, n, 1.0), n), 0.0, 1.0))


def rising_means(values: FloatArray, weights: FloatArray) -> FloatArray:
    """The never falling sequence nearest to values by weighted squares, along the last axis.

    Values of weight 0 take the fit of the one before, or minus infinity where there is none.
    """
    zero = np.zeros((*values.shape[:-1], 1))
    sums, weight = (
        np.concatenate([zero, np.cumsum(v, axis=-1)], axis=-1) for v in (values * weights, weights)
    )
    fit = np.full(values.shape, -np.inf)
    for a in range(values.shape[-1]):
        pooled = sums[..., a + 1 :] - sums[..., a : a + 1]
        over = weight[..., a + 1 :] - weight[..., a : a + 1]
        mean = np.where(over > 0, pooled / np.where(over > 0, over, 1.0), np.inf)
        smallest = np.minimum.accumulate(mean[..., ::-1], axis=-1)[..., ::-1]
        fit[..., a:] = np.maximum(fit[..., a:], np.where(np.isfinite(smallest), smallest, -np.inf))
    return fit


def log_likelihood(yes: FloatArray, trials: FloatArray, rate: FloatArray) -> FloatArray:
    """Of rates by level, without the binomial coefficients."""
    no = trials - yes
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(yes > 0, yes * np.log(rate), 0.0) + np.where(
            no > 0, no * np.log1p(-rate), 0.0
        )


def deviance(yes: FloatArray, trials: FloatArray, rate: FloatArray) -> FloatArray:
    """Twice the log-likelihood that rates by level lack of the saturated model, summed over the
    last axis.
    """
    share = yes / np.where(trials > 0, trials, 1.0)
    saturated = xlogy(yes, share) + xlogy(trials - yes, 1 - share)
    return np.asarray(
        np.maximum(2 * (saturated - log_likelihood(yes, trials, rate)).sum(axis=-1), 0.0)
    )


def rising_deviance(yes: FloatArray, trials: FloatArray) -> FloatArray:
    """Deviance from the best rising proportions, shape (...,)."""
    return deviance(yes, trials, isotonic_fit(yes, trials))


def falling_deviance(yes: FloatArray, trials: FloatArray) -> FloatArray:
    """Deviance from the best falling proportions, shape (...,)."""
    return rising_deviance(trials - yes, trials)


def monotone_p_value(
    yes: npt.ArrayLike,
    trials: npt.ArrayLike,
    *,
    resamples: int = 999,
    seed: int = 0,
    test_all: bool = True,
) -> FloatArray:
    """Probability of at least this deviance if the rising fit were true, by parametric bootstrap.

    Parameters
    ----------
    yes, trials
        As for `isotonic_fit`.
    resamples : int, optional
        Of each curve.
    seed : int, optional
        Of the draws; a curve's draws do not depend on which other curves stand beside it.
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
    k, n = np.broadcast_arrays(
        np.asarray(yes, dtype=np.float64), np.asarray(trials, dtype=np.float64)
    )
    rows_k = k.reshape(-1, k.shape[-1])
    rows_n = n.reshape(-1, n.shape[-1])
    found = rising_deviance(rows_k, rows_n)
    p = np.ones(found.shape)
    for i in np.flatnonzero((found > 1e-9) if test_all else (found > _SURELY_MONOTONE)):
        whole = np.rint(rows_n[i]).astype(np.int64)
        rate = isotonic_fit(rows_k[i], rows_n[i])
        draws = (
            np.random.default_rng(seed)
            .binomial(whole, rate, size=(resamples, whole.size))
            .astype(np.float64)
        )
        as_large = (
            rising_deviance(draws, np.broadcast_to(whole.astype(np.float64), draws.shape))
            >= found[i] - 1e-9
        )
        p[i] = (1 + as_large.sum()) / (1 + resamples)
    return p.reshape(k.shape[:-1])


def isotonic_bracket(
    x: FloatArray, yes: FloatArray, trials: FloatArray, criterion: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Last level at which the rising fit is below the criterion, and first at which it is above.

    x rises, levels without trials stand last, and the criterion is a proportion of yes for each
    curve, shape (...,). Minus and plus infinity where the fit never is below or above.
    """
    fit = isotonic_fit(yes, trials)
    present = trials > 0
    level = criterion[..., None]
    low = np.where(present & (fit < level - 1e-12), x, -np.inf).max(axis=-1, initial=-np.inf)
    high = np.where(present & (fit > level + 1e-12), x, np.inf).min(axis=-1, initial=np.inf)
    return low, high


def spearman_karber(x: npt.ArrayLike, yes: npt.ArrayLike, trials: npt.ArrayLike) -> FloatArray:
    """Mean of the distribution of thresholds that the rising fit is, without any form assumed.

    Parameters
    ----------
    x, yes, trials : array_like of float, shape (..., L)
        log10 contrast, rising; levels without trials stand last.

    Returns
    -------
    ndarray of float64, shape (...,)
        log10 contrast; nan where the rising fit does not go from 0 to 1.

    Examples
    --------
    >>> float(spearman_karber([-3.0, -2.0, -1.0], [0, 5, 10], [10, 10, 10]))
    -2.0
    """
    at, k, n = np.broadcast_arrays(*(np.asarray(v, dtype=np.float64) for v in (x, yes, trials)))
    fit = isotonic_fit(k, n)
    present = n > 0
    both = present[..., 1:] & present[..., :-1]
    mean = np.where(both, np.diff(fit, axis=-1) * 0.5 * (at[..., 1:] + at[..., :-1]), 0.0).sum(
        axis=-1
    )
    first = np.where(present, fit, np.inf).min(axis=-1, initial=np.inf)
    last = np.where(present, fit, -np.inf).max(axis=-1, initial=-np.inf)
    return np.where((first <= 1e-12) & (last >= 1 - 1e-12), mean, np.nan)
