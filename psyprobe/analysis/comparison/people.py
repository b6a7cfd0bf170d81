"""Compare over people: means of thresholds, shifts between conditions, bands of curves.

References
----------
Hartung, Knapp (2001). A refined method for the meta-analysis of controlled clinical trials. Stat.
Med. 20: 3875-3889.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.analysis.comparison.paired import all_signs
from psyprobe.analysis.intervals import student_quantile
from psyprobe.analysis.score import Recorded
from psyprobe.errors import InputError

#: Most people of whom all sign flips are counted; of more some are drawn.
_ALL_FLIPS = 12
_FLIPS = 10_000


@dataclass(frozen=True)
class GroupMean(Recorded):
    """The mean of a quantity over people, each measured with an error of their own."""

    mean: float
    #: Ends of the interval over people.
    low: float
    high: float
    #: Standard deviation between people, their errors of measurement taken out.
    tau: float
    people: int

    def shrunken(self, estimates: FloatArray, errors: FloatArray) -> FloatArray:
        """Draw each person's estimate towards the mean, the further the less certain it is."""
        variances = np.asarray(errors) ** 2
        share = self.tau**2 / (self.tau**2 + variances)
        return np.asarray(share * estimates + (1 - share) * self.mean)


def group_mean(
    estimates: FloatArray, errors: FloatArray, confidence: float = 0.95
) -> GroupMean:
    """Average people by Hartung and Knapp's method: interval over people like these.

    Parameters
    ----------
    estimates, errors : ndarray, shape (P,)
        Of each person, such as log10 threshold and its standard error.
    confidence : float, optional
        Coverage of the interval, in (0, 1).

    Raises
    ------
    InputError
        Fewer than two people, or an error that is not above 0.

    Examples
    --------
    >>> mean = group_mean(np.array([-1.8, -1.6, -2.0]), np.array([0.1, 0.1, 0.1]))
    >>> round(mean.mean, 3), round(mean.low, 3), round(mean.tau, 3)
    (-1.8, -2.297, 0.173)
    """
    values = np.asarray(estimates, float)
    variances = np.asarray(errors, float) ** 2
    count = len(values)
    if count < 2 or not (variances > 0).all():
        raise InputError(
            f"{count} people with standard errors from {np.min(errors, initial=np.inf):g}; give "
            "at least two people, with errors above 0"
        )
    tau_squared = _between_variance(values, variances)
    weights = 1 / (variances + tau_squared)
    mean = float(np.average(values, weights=weights))
    spread = weights @ (values - mean) ** 2 / (count - 1)
    reach = student_quantile(count, confidence) * np.sqrt(spread / weights.sum())
    return GroupMean(
        mean, float(mean - reach), float(mean + reach), float(tau_squared**0.5), count
    )


def _between_variance(values: FloatArray, variances: FloatArray) -> float:
    """Find the variance between people at which Q equals its expectation (Paule and Mandel)."""
    from scipy.optimize import brentq

    def excess(tau_squared: float) -> float:
        weights = 1 / (variances + tau_squared)
        mean = np.average(values, weights=weights)
        return float(weights @ (values - mean) ** 2 - (len(values) - 1))

    if excess(0.0) <= 0:
        return 0.0
    upper = float(values.var(ddof=1))
    while excess(upper) > 0:
        upper *= 2
    return float(brentq(excess, 0.0, upper, xtol=1e-14))


@dataclass(frozen=True)
class Shift(Recorded):
    """The shift of thresholds between two conditions, over people and levels."""

    #: Second condition less first.
    shift: float
    #: Standard error, and ends of the interval by Student's t over people.
    error: float
    low: float
    high: float
    #: Variance between people, and of what is left.
    variance_person: float
    variance_residual: float


def condition_shift(thresholds: FloatArray, confidence: float = 0.95) -> Shift:
    """Compute the shift between two conditions that everybody did at every level.

    It is the mixed model with an intercept a person, and levels and condition as fixed effects,
    which has this closed form where no cell is missing.

    Parameters
    ----------
    thresholds : ndarray, shape (P, F, 2)
        Log10 thresholds by person, level and condition.
    confidence : float, optional
        Coverage of the interval, in (0, 1).

    Raises
    ------
    InputError
        The array has another shape, or is of one person.

    Examples
    --------
    >>> person = np.array([0.0, 0.3, -0.2])[:, None, None]
    >>> level = np.array([0.0, 0.1])[:, None]
    >>> noise = np.random.default_rng(0).normal(0, 0.01, (3, 2, 2))
    >>> round(condition_shift(person + level + np.array([0.0, 0.2]) + noise).shift, 2)
    0.2
    """
    values = np.asarray(thresholds, float)
    if values.ndim != 3 or values.shape[2] != 2 or len(values) < 2:
        raise InputError(
            f"thresholds of shape {values.shape} are not (people, levels, 2); give those of "
            "everybody at all levels in both conditions"
        )
    people, levels, _ = values.shape
    centred = values - values.mean()
    by_person = centred.mean(axis=(1, 2))
    residual = (
        centred
        - by_person[:, None, None]
        - centred.mean(axis=(0, 2))[:, None]
        - centred.mean(axis=(0, 1))
    )
    degrees = values.size - people - levels
    variance = float((residual**2).sum() / degrees)
    between = 2 * levels * float((by_person**2).sum() / (people - 1))
    shift = float((values[..., 1] - values[..., 0]).mean())
    error = float(np.sqrt(2 * variance / (people * levels)))
    reach = student_quantile(people, confidence) * error
    return Shift(
        shift,
        error,
        shift - reach,
        shift + reach,
        max(0.0, (between - variance) / (2 * levels)),
        variance,
    )


@dataclass(frozen=True, eq=False)
class Band:
    """Differences of two curves at each level, with a band that holds all levels at once."""

    #: Mean difference, and ends of the simultaneous band, shape (F,).
    mean: FloatArray
    low: FloatArray
    high: FloatArray
    #: Probability at each level, corrected for the number of levels, shape (F,).
    p: FloatArray


def people_band(
    differences: FloatArray, confidence: float = 0.95, seed: int = 0
) -> Band:
    """Compute the simultaneous band of differences of curves over people, by max-t of sign flips.

    Parameters
    ----------
    differences : ndarray, shape (P, F)
        Of each person at each level, in log10; at least six people.
    confidence : float, optional
        Probability that the band holds all levels, in (0, 1).
    seed : int, optional
        Of the flips of more than twelve people.

    Raises
    ------
    InputError
        There are fewer than six people.

    Notes
    -----
    The signs of whole people are flipped, so that neighbouring levels stay as alike as they are.

    Examples
    --------
    >>> differences = np.random.default_rng(0).normal([0.0, 0.5], 0.1, (8, 2))
    >>> band = people_band(differences)
    >>> (band.p < 0.05).tolist()
    [False, True]
    """
    values = np.asarray(differences, float)
    count = len(values)
    if count < 6:
        raise InputError(
            f"{count} people give no simultaneous band; take at least 6, or Holm's correction"
        )
    if count <= _ALL_FLIPS:
        signs = all_signs(count)
    else:
        rng = np.random.default_rng(seed)
        signs = rng.integers(0, 2, (_FLIPS, count)) * 2.0 - 1.0
        signs[0] = 1.0
    mean = values.mean(axis=0)
    error = values.std(axis=0, ddof=1) / np.sqrt(count)
    flipped_mean = signs @ values / count
    squares = (values**2).sum(axis=0)
    flipped_sd = np.sqrt((squares - count * flipped_mean**2) / (count - 1))
    t = np.abs(flipped_mean) / np.maximum(flipped_sd, 1e-300) * np.sqrt(count)
    largest = t.max(axis=1)
    reach = np.quantile(largest, confidence, method="higher") * error
    observed = np.abs(mean) / np.maximum(error, 1e-300)
    p = (largest[:, None] >= observed * (1 - 1e-12)).mean(axis=0)
    return Band(mean, mean - reach, mean + reach, p)


def band_of_draws(draws: FloatArray, confidence: float = 0.95) -> Band:
    """Compute the simultaneous band of a curve of differences from draws of its posterior.

    Parameters
    ----------
    draws : ndarray, shape (D, F)
        Joint draws, such as differences of two contrast sensitivity functions in log10.
    confidence : float, optional
        Probability that the band holds all levels, in (0, 1).

    Examples
    --------
    >>> draws = np.random.default_rng(0).normal([0.0, 0.5], 0.1, (2000, 2))
    >>> band = band_of_draws(draws)
    >>> (band.low > 0).tolist()
    [False, True]
    """
    values = np.asarray(draws, float)
    mean = values.mean(axis=0)
    sd = np.maximum(values.std(axis=0, ddof=1), 1e-300)
    largest = (np.abs(values - mean) / sd).max(axis=1)
    reach = np.quantile(largest, confidence) * sd
    p = (largest[:, None] >= np.abs(mean) / sd).mean(axis=0)
    return Band(mean, mean - reach, mean + reach, p)
