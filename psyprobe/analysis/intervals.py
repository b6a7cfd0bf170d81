"""Intervals of means and of what is resampled: what is drawn, and how far Student's t and Wilson's
formula reach.
"""

from __future__ import annotations

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
    """Refuse one outside (0, 1)."""
    if not 0 < confidence < 1:
        raise InputError(
            f"confidence {confidence:g} must lie between 0 and 1; usual is 0.9 or 0.95"
        )


def draw_counts(drawn_from: int, resamples: int, seed: int) -> npt.NDArray[np.int64]:
    """How often each is drawn in each of so many bootstrap samples, shape (resamples, drawn
    from).
    """
    return np.random.default_rng(seed).multinomial(
        drawn_from, np.full(drawn_from, 1 / drawn_from), size=resamples
    )


def student_reach(samples: FloatArray, drawn_from: int, confidence: float) -> float:
    """Half of a symmetric interval: Student's t times the spread of samples that were drawn from
    few.
    """
    spread = float(np.std(samples)) * np.sqrt(drawn_from / (drawn_from - 1))
    return float(student_quantile(drawn_from, confidence) * spread)


def student_quantile(drawn_from: int, confidence: float) -> float:
    """Of Student's t, for a symmetric interval of something estimated from so many."""
    from scipy.special import stdtrit

    return float(stdtrit(drawn_from - 1, (1 + confidence) / 2))


def neighbour_correlation(values: FloatArray) -> float | None:
    """How much values next to each other are alike: intervals that take them as independent are
    then too narrow.

    Parameters
    ----------
    values : ndarray, shape (K,)
        In the order of the levels that they belong to.

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
    drawn_from: int,
    confidence: float,
    bounds: tuple[float, float] = (0.0, 1.0),
) -> tuple[float, float]:
    """Wilson's interval of a mean of values within bounds, as a share of right answers.

    Parameters
    ----------
    value, spread : float
        The mean, and its standard error, as from samples that were drawn from few.
    drawn_from : int
        How many are averaged. Where all are alike, these many answers stand for it, so that 20
        right ones of 20 are no certainty; else as many independent ones as have this standard
        error.
    confidence : float
        Of the interval, in (0, 1).
    bounds : (float, float), optional
        Of the values.

    Examples
    --------
    >>> low, high = bounded_interval(1.0, 0.0, 20, 0.95)
    >>> round(low, 2), high
    (0.82, 1.0)
    """
    length = bounds[1] - bounds[0]
    p = (value - bounds[0]) / length
    variance = (spread / length) ** 2
    answers = p * (1 - p) / variance if variance > 1e-18 and p * (1 - p) > 0 else float(drawn_from)
    t = student_quantile(max(drawn_from, 2), confidence)
    centre = (p + t**2 / (2 * answers)) / (1 + t**2 / answers)
    half = t / (1 + t**2 / answers) * np.sqrt(p * (1 - p) / answers + t**2 / (4 * answers**2))
    low = min(centre - half, p)
    high = max(centre + half, p)
    return float(bounds[0] + length * max(low, 0.0)), float(bounds[0] + length * min(high, 1.0))
