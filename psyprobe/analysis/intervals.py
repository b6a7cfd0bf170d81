"""Compute intervals of means by resampling, Student's t and Wilson's formula."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from psyprobe._typing import FloatArray
from psyprobe.errors import InputError


def check_resampling(confidence: float, resamples: int) -> None:
    """Refuse a confidence outside (0, 1) and fewer than 100 bootstrap samples."""
    check_confidence(confidence)
    if resamples < 100:
        raise InputError(
            f"{resamples} resamples give no usable interval; take at least 100, usual is 2000"
        )


def check_confidence(confidence: float) -> None:
    """Refuse a confidence outside (0, 1)."""
    if not 0 < confidence < 1:
        raise InputError(
            f"confidence {confidence:g} must lie between 0 and 1; usual is 0.9 or 0.95"
        )


def draw_counts(size: int, resamples: int, seed: int) -> npt.NDArray[np.int64]:
    """Count how often each of `size` items is in each bootstrap sample, (resamples, size)."""
    shares = np.full(size, 1 / size)
    return np.random.default_rng(seed).multinomial(size, shares, size=resamples)


def student_reach(samples: FloatArray, size: int, confidence: float) -> float:
    """Compute the half-width of an interval from bootstrap samples, by Student's t."""
    spread = float(np.std(samples)) * np.sqrt(size / (size - 1))
    return float(student_quantile(size, confidence) * spread)


def student_quantile(size: float, confidence: float) -> float:
    """Compute the quantile of Student's t for a symmetric interval of a mean of `size` items."""
    from scipy.special import stdtrit

    return float(stdtrit(size - 1, (1 + confidence) / 2))


def quantiles(
    values: FloatArray, mass: FloatArray, probability: FloatArray
) -> FloatArray:
    """Compute quantiles of a distribution on evenly spaced values, each the centre of its cell."""
    step = values[1] - values[0] if values.size > 1 else 0.0
    edges = np.concatenate([values - step / 2, [values[-1] + step / 2]])
    cumulative = np.concatenate([[0.0], np.cumsum(mass / mass.sum())])
    return np.asarray(np.interp(probability, cumulative, edges))


def fisher(r: Any) -> Any:
    """Transform correlations by Fisher's z, kept finite at -1 and 1."""
    return np.arctanh(np.clip(r, -1 + 1e-12, 1 - 1e-12))


#: Spread under which units are alike, and tell no interval.
_ALIKE = 1e-9


def mean_and_error(
    values: FloatArray, weights: FloatArray | None = None
) -> tuple[float, float | None]:
    """Compute the mean of independent units, and its standard error.

    The error is None for fewer than two units, and where all are alike. With weights, such as the
    number of questions of an image, it is that of a ratio of sums, whose error lets both vary from
    unit to unit.

    Examples
    --------
    >>> mean, error = mean_and_error(np.array([1.0, 2.0, 3.0]))
    >>> mean, round(error, 3)
    (2.0, 0.577)
    >>> mean_and_error(np.array([1.0, 1.0]))
    (1.0, None)
    """
    count = len(values)
    shares = np.ones(count) if weights is None else weights / weights.mean()
    mean = float(np.average(values, weights=weights))
    deviations = shares * (values - mean)
    if count < 2 or np.abs(deviations).max() < _ALIKE:
        return mean, None
    return mean, float(np.sqrt(deviations @ deviations / (count * (count - 1))))


def normal_quantile(confidence: float) -> float:
    """Compute the quantile of the normal distribution for a symmetric interval."""
    from scipy.special import ndtri

    return float(ndtri((1 + confidence) / 2))


def neighbour_correlation(values: FloatArray) -> float | None:
    """Correlate values with their neighbours, whose likeness makes an interval too narrow.

    Parameters
    ----------
    values : ndarray, shape (K,)
        In the order of their levels.

    Returns
    -------
    float or None
        Their correlation, -1 to 1; None of fewer than four values, or of equal ones.

    Notes
    -----
    r + (1 + 3 r) / (K - 1): the correlation r of few values lies below that of many (Kendall 1954,
    Biometrika 41), and still does where they are much alike: of twelve values 0.5 is found as 0.44
    on average, 0.8 as 0.65.

    Examples
    --------
    >>> neighbour_correlation(np.array([1.0, 2.0, 3.0, 3.0, 2.0, 1.0]))
    0.6
    """
    d = values - values.mean()
    total = float(d @ d)
    if len(d) < 4 or total <= 1e-24 * max(1.0, float(values @ values)):
        return None
    r = float(d[1:] @ d[:-1]) / total
    return float(np.clip(r + (1 + 3 * r) / (len(d) - 1), -1.0, 1.0))


def bounded_interval(
    value: float,
    spread: float,
    size: int,
    confidence: float,
    bounds: tuple[float, float] = (0.0, 1.0),
) -> tuple[float, float]:
    """Compute Wilson's interval of a mean of values within bounds, such as a share of answers.

    Parameters
    ----------
    value, spread : float
        The mean, and its standard error.
    size : int
        Number of values in the mean. If all are equal, the interval is that of `size` answers, so
        that 20 right ones of 20 are no certainty; otherwise it is that of as many independent
        answers as have this standard error.
    confidence : float
        Coverage of the interval, in (0, 1).
    bounds : (float, float), optional
        Smallest and largest possible value.

    Examples
    --------
    >>> low, high = bounded_interval(1.0, 0.0, 20, 0.95)
    >>> round(low, 2), high
    (0.82, 1.0)
    """
    length = bounds[1] - bounds[0]
    p = (value - bounds[0]) / length
    variance = (spread / length) ** 2
    answers = float(size)
    if variance > 1e-18 and p * (1 - p) > 0:
        answers = p * (1 - p) / variance
    t = student_quantile(max(size, 2), confidence)
    scale = 1 + t**2 / answers
    centre = (p + t**2 / (2 * answers)) / scale
    half = t / scale * np.sqrt(p * (1 - p) / answers + t**2 / (4 * answers**2))
    low = max(min(centre - half, p), 0.0)
    high = min(max(centre + half, p), 1.0)
    return float(bounds[0] + length * low), float(bounds[0] + length * high)
