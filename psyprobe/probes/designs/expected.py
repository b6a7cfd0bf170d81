"""Predict how many questions a design takes and how narrow its intervals become.

The variance of the thresholds is that of the maximum of the (quasi-)likelihood: A^-1 M A^-1, with A
the Fisher information about the thresholds and widths of all values and the guess and lapse rates
that they share, plus that of the prior, and M the variance of the score, which equals A for drawn
answers. Probabilities of yes scatter less, by a normal error of their logit; their likelihood is
divided by their dispersion relative to drawn answers.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from functools import cache
from typing import Literal, TypeAlias, TypedDict, Unpack, get_args

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.analysis.psychometric.posterior import detection_probability
from psyprobe.errors import InputError, check_known

DesignName: TypeAlias = Literal["constant", "ladder", "quest_plus", "quick_csf"]
DESIGNS: tuple[DesignName, ...] = get_args(DesignName)

#: Prior standard deviations: of log10 width; of the guess and lapse rates.
_WIDTH_PRIOR = 0.27
_GUESS_PRIOR = 0.11
_LAPSE_PRIOR = 0.025
#: Parameters of the parabola of qCSF, and by how much frequencies deviate from it (log10).
_PARABOLA = 4
_DEVIATION = 0.07


@dataclass(frozen=True)
class AssumedObserver:
    """The observer that a plan is made for.

    Parameters
    ----------
    width : float
        Distance in log10 contrast from 5 % to 95 % of its psychometric function.
    guess, lapse : float
        Rates in [0, 1).
    logit_sd : float, optional
        Standard deviation, from image to image, of the logit of seeing the pattern, where
        probabilities of yes are read; None where answers are drawn or read as text.
    """

    width: float = 0.8
    guess: float = 0.02
    lapse: float = 0.02
    logit_sd: float | None = None

    def __post_init__(self) -> None:
        good = (
            self.width > 0
            and self.guess >= 0
            and self.lapse >= 0
            and self.guess + self.lapse < 1
        )
        if not good or (self.logit_sd is not None and not self.logit_sd > 0):
            raise InputError(
                f"the assumed observer has width {self.width}, guess {self.guess}, lapse "
                f"{self.lapse} and logit_sd "
                f"{self.logit_sd}; give a width above 0, rates that stay below 1 together, a "
                "logit_sd above 0 or None"
            )


class DesignConditions(TypedDict, total=False):
    """The conditions of a design, as `expected_interval_width` takes them."""

    values: int
    contrasts: tuple[float, float]
    levels: int
    chance: float | None
    observer: AssumedObserver
    catch: float
    top: float


#: Values whose interval widths are computed one by one; more are represented by so many.
_MAX_VALUES = 32


def expected_interval_width(
    design: DesignName,
    queries: int,
    *,
    values: int = 6,
    contrasts: tuple[float, float] = (0.001, 1.0),
    levels: int = 10,
    chance: float | None = None,
    observer: AssumedObserver = AssumedObserver(),
    catch: float = 0.1,
    top: float = 0.05,
) -> float:
    """Predict the mean width of 95 % intervals of log10 threshold of a design.

    To first order in the number of queries, times the factor by which not knowing the width (to
    which the error is proportional) widens them.

    Parameters
    ----------
    design : {"constant", "ladder", "quest_plus", "quick_csf"}
        Which design.
    queries : int
        In all, over the values, catch trials included.
    values : int
        How many, such as frequencies.
    contrasts : (float, float)
        Lowest and highest contrast.
    levels : int
        Contrasts of the constant stimuli.
    chance : float, optional
        Rate of correct guesses in a forced choice; without it the question is answered by yes or
        no.
    observer : AssumedObserver
        What is assumed of the observer.
    catch, top : float
        Shares of catch trials and, in adaptive designs, of trials at the highest contrast.

    Raises
    ------
    UnknownNameError
        If there is no such design.
    InputError
        If a number is out of range.

    Examples
    --------
    >>> round(expected_interval_width("constant", 667, values=6), 2)
    0.32
    >>> round(expected_interval_width("quest_plus", 6 * 50, values=6), 2)
    0.25
    """
    check_known("design", [design], DESIGNS)
    if queries < 1 or values < 1 or not 0 < contrasts[0] < contrasts[1] or levels < 2:
        raise InputError(
            f"queries is {queries}, values {values}, contrasts {contrasts}, levels {levels}; "
            "give at least "
            "1, at least 1, two contrasts above 0 in ascending order, and at least 2"
        )
    # More thresholds, as densely asked about, tell of their mean width nothing new.
    counted = queries * min(1.0, _MAX_VALUES / values)
    values = min(values, _MAX_VALUES)
    low, high = np.log10(contrasts)
    catches = counted * catch if chance is None else 0.0
    queries_per_value = (counted - catches) / values
    thresholds = low + (high - low) * (0.25 + 0.5 * (np.arange(values) + 0.5) / values)
    guess = observer.guess if chance is None else chance
    size = 2 * values + 2
    prior = np.zeros(size)
    prior[0:-2:2] = 12 / (high - low + 1) ** 2
    prior[1:-2:2] = (_WIDTH_PRIOR * np.log(10) * observer.width) ** -2
    prior[-2] = _GUESS_PRIOR**-2 if chance is None else 1e12
    prior[-1] = _LAPSE_PRIOR**-2
    information = np.zeros((size, size))
    scatter = np.zeros((size, size))
    relative = []
    for i, t in enumerate(thresholds):
        x, n = _expected_levels(
            design,
            queries_per_value,
            float(t),
            (low, high),
            levels,
            observer.width,
            top,
        )
        slopes = np.zeros((size, x.size))
        f = detection_probability(x, t, np.array(observer.width))
        rise = (
            (1 - guess - observer.lapse) * f * (1 - f) * 2 * np.log(19) / observer.width
        )
        slopes[2 * i] = -rise
        slopes[2 * i + 1] = -rise * (x - t) / observer.width
        slopes[-2] = 1 - f
        slopes[-1] = -f
        psi = guess + (1 - guess - observer.lapse) * f
        weight = n / np.maximum(psi * (1 - psi), 1e-6)
        variance = _relative_variance(x, float(t), psi, guess, observer)
        information += (slopes * weight) @ slopes.T
        scatter += (slopes * weight * variance) @ slopes.T
        relative.append(n @ variance / n.sum())
    if catches:
        drawn = catches / max(guess * (1 - guess), 1e-3)
        information[-2, -2] += drawn
        scatter[-2, -2] += drawn * (1.0 if observer.logit_sd is None else 0.0)
    dispersion = float(np.mean(relative))
    inverse = np.linalg.inv(information / dispersion + np.diag(prior))
    covariance = inverse @ (scatter / dispersion**2 + np.diag(prior)) @ inverse
    log_width_variance = np.diag(covariance)[1:-2:2] / observer.width**2
    variance = np.diag(covariance)[0:-2:2] * np.exp(2 * log_width_variance)
    if design == "quick_csf" and values > 1:
        # Answers at a frequency tell of it, and so does the parabola through the others.
        parabola_variance = variance * min(_PARABOLA, values) / values + _DEVIATION**2
        variance = 1 / (1 / variance + 1 / parabola_variance)
    return float(2 * 1.959963984540054 * np.sqrt(variance).mean())


def expected_queries(
    design: DesignName, width: float = 0.3, **conditions: Unpack[DesignConditions]
) -> int:
    """Predict how many questions a design needs for intervals of a width.

    Parameters
    ----------
    design, **conditions
        As in `expected_interval_width`.
    width : float
        In log10 units, above 0.

    Raises
    ------
    InputError
        More than ten million queries would be needed.

    Examples
    --------
    Reading probabilities instead of drawn answers:

    >>> drawn = expected_queries("constant", 0.3)
    >>> read = expected_queries("constant", 0.3, observer=AssumedObserver(logit_sd=0.5))
    >>> drawn > 5 * read
    True
    """
    if not width > 0:
        raise InputError(f"width is {width}; give log10 units above 0")

    counts = range(1, 10_000_001)
    place = bisect_left(
        counts,
        True,
        key=lambda count: expected_interval_width(design, count, **conditions) <= width,
    )
    if place == len(counts):
        raise InputError(
            f"no number of queries up to ten million brings intervals to {width:g} log10; "
            "allow wider ones"
        )
    return counts[place]


def _expected_levels(
    design: DesignName,
    n: float,
    t: float,
    ends: tuple[float, float],
    levels: int,
    width: float,
    top: float,
) -> tuple[FloatArray, FloatArray]:
    """Predict the log10 contrasts that a design shows for a threshold, and their counts."""
    low, high = ends
    if design == "constant":
        return np.linspace(low, high, levels), np.full(levels, n / levels)
    if design == "ladder":
        x = np.concatenate(
            [np.linspace(low, high, 5), t + np.linspace(-0.3, 0.3, 4) * width]
        )
        return x, np.full(9, n / 9)
    # Adaptive: some to find the threshold, as in bisecting the range, the others where F goes from
    # 0.09 to 0.91.
    search = min(np.log2(1 + (high - low) / width), n / 2)
    tops = top * n
    near = t + np.linspace(-0.4, 0.4, 5) * width
    counts = np.append(np.full(5, max(n - search - tops, 0.0) / 5), tops)
    return np.append(near, high), counts


@cache
def _normal_nodes() -> tuple[FloatArray, FloatArray]:
    """Compute Gauss-Hermite nodes and weights for the standard normal density."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(31)
    return nodes, weights / weights.sum()


def _relative_variance(
    x: FloatArray, t: float, psi: FloatArray, guess: float, observer: AssumedObserver
) -> FloatArray:
    """Compute the variance of responses at each level, relative to yes/no answers."""
    if observer.logit_sd is None:
        return np.ones(x.size)
    nodes, weights = _normal_nodes()
    logit = 2 * np.log(19) * (x - t) / observer.width
    logits = logit[:, None] + observer.logit_sd * nodes
    p_yes = guess + (1 - guess - observer.lapse) / (1 + np.exp(-logits))
    variance = (p_yes - (p_yes @ weights)[:, None]) ** 2 @ weights
    return np.asarray(variance / np.maximum(psi * (1 - psi), 1e-6))
