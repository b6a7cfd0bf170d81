"""Define sigmoids by where they cross one half and by the distance from 5 % to 95 %.

A psychometric function is ``psi(x) = guess + (1 - guess - lapse) F(x; t, w)`` on ``x = log10
contrast``: F(t) = 0.5, and w is the distance on x from F = 0.05 to F = 0.95, whatever the family.
So thresholds and widths of different families can be compared as they are. Each family is ``F(z)``
in its textbook form with ``z = span (x - t) / w + median``.

References
----------
Wichmann & Hill (2001). The psychometric function: I. Perception & Psychophysics 63. Schütt,
Harmeling, Macke, Wichmann (2016). Painfree and accurate Bayesian estimation of psychometric
functions for (potentially) overdispersed data. Vision Research 122 (threshold and width).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_ndtr

from psyprobe._typing import FloatArray
from psyprobe.errors import InputError, check_known


@dataclass(frozen=True)
class Sigmoid:
    """A family of sigmoids in its textbook form F(z)."""

    #: log F(z) and log (1 - F(z)), accurate far out in both tails.
    log_lower: Callable[[FloatArray], FloatArray]
    log_upper: Callable[[FloatArray], FloatArray]
    #: log F'(z).
    log_density: Callable[[FloatArray], FloatArray]
    #: Derivative of `log_density`.
    log_density_slope: Callable[[FloatArray], FloatArray]
    #: z where F = 0.5.
    median: float
    #: z at F = 0.95 minus z at F = 0.05.
    span: float


def log_sum(a: FloatArray | float, b: FloatArray | float) -> FloatArray:
    """Compute log(exp(a) + exp(b)); at most one of a and b is minus infinity."""
    # `numpy.logaddexp` does the same without vector instructions and takes six times as long.
    distance = np.abs(np.subtract(a, b))
    return np.asarray(np.maximum(a, b) + np.log1p(np.exp(-distance)))


def _clipped_exp(z: FloatArray) -> FloatArray:
    """Compute exp(z), clipped at z = 30."""
    # Beyond 1e13 nothing changes any more, and squares must not overflow.
    return np.exp(np.minimum(z, 30.0))


def _log_gumbel(z: FloatArray) -> FloatArray:
    """Compute the log of the cumulative Gumbel distribution, accurate in the lower tail."""
    power = np.maximum(_clipped_exp(z), 1e-300)
    return np.asarray(np.log(-np.expm1(-power)))


def _log_secant(z: FloatArray) -> FloatArray:
    """Compute the log of the cumulative hyperbolic secant distribution."""
    exponent = 0.5 * math.pi * z
    log_angle = np.log(np.arctan(np.exp(np.clip(exponent, -30.0, 700.0))))
    # Far below, the arctangent is its argument.
    return np.asarray(
        math.log(2 / math.pi) + np.where(exponent < -30.0, exponent, log_angle)
    )


def _symmetric(
    log_lower: Callable[[FloatArray], FloatArray],
    log_density: Callable[[FloatArray], FloatArray],
    log_density_slope: Callable[[FloatArray], FloatArray],
    span: float,
) -> Sigmoid:
    """Build a sigmoid whose upper tail mirrors its lower, from the log of the lower."""

    def log_upper(z: FloatArray) -> FloatArray:
        return log_lower(-z)

    return Sigmoid(log_lower, log_upper, log_density, log_density_slope, 0.0, span)


_WEIBULL = Sigmoid(
    _log_gumbel,
    lambda z: -_clipped_exp(z),
    lambda z: z - _clipped_exp(z),
    lambda z: 1.0 - _clipped_exp(z),
    math.log(math.log(2)),
    math.log(math.log(0.05) / math.log(0.95)),
)
#: Families by name. "weibull" is the Gumbel function on log contrast, which is the Weibull function
#: of contrast.
SIGMOIDS: dict[str, Sigmoid] = {
    "logistic": _symmetric(
        lambda z: -log_sum(0.0, -z),
        lambda z: -np.abs(z) - 2 * log_sum(0.0, -np.abs(z)),
        lambda z: -np.tanh(0.5 * z),
        2 * math.log(19),
    ),
    "normal": _symmetric(
        log_ndtr,
        lambda z: -0.5 * z**2 - 0.5 * math.log(2 * math.pi),
        lambda z: -z,
        2 * 1.6448536269514722,
    ),
    "weibull": _WEIBULL,
    "gumbel_reversed": Sigmoid(
        lambda z: _WEIBULL.log_upper(-z),
        lambda z: _WEIBULL.log_lower(-z),
        lambda z: _WEIBULL.log_density(-z),
        lambda z: -_WEIBULL.log_density_slope(-z),
        -_WEIBULL.median,
        _WEIBULL.span,
    ),
    "hyperbolic_secant": _symmetric(
        _log_secant,
        lambda z: -log_sum(0.5 * math.pi * z, -0.5 * math.pi * z),
        lambda z: -0.5 * math.pi * np.tanh(0.5 * math.pi * z),
        4 / math.pi * math.log(math.tan(0.475 * math.pi)),
    ),
}


def broadcast_floats(*arrays: ArrayLike) -> tuple[FloatArray, ...]:
    """Broadcast arrays against one another, as float64."""
    floats = [np.asarray(array, dtype=np.float64) for array in arrays]
    return np.broadcast_arrays(*floats)


def sigmoid(name: str) -> Sigmoid:
    """Look up a family of sigmoids by its name ("logistic" ...)."""
    check_known("psychometric function", [name], SIGMOIDS)
    return SIGMOIDS[name]


def psychometric_function(
    log_contrast: ArrayLike,
    threshold: ArrayLike,
    width: ArrayLike,
    guess: ArrayLike = 0.0,
    lapse: ArrayLike = 0.0,
    *,
    function: str = "logistic",
) -> FloatArray:
    """Compute the probability of "yes" (or of a correct answer) at each log contrast.

    Parameters
    ----------
    log_contrast : array_like of float
        x = log10 contrast; minus infinity is a blank. All arguments broadcast.
    threshold : array_like of float
        x at which the sigmoid is 0.5, log10 contrast.
    width : array_like of float
        Distance from 5 % to 95 % of the sigmoid, log10 units, above 0.
    guess, lapse : array_like of float, optional
        Distance of the lower asymptote from 0 and of the upper one from 1; together below 1.
    function : str, optional
        "logistic", "normal", "weibull", "gumbel_reversed" or "hyperbolic_secant".

    Returns
    -------
    numpy.ndarray of float64
        guess + (1 - guess - lapse) F(x), in [guess, 1 - lapse].

    Raises
    ------
    InputError
        If a width is not above 0, a rate is negative, or guess and lapse reach 1 together.

    Examples
    --------
    >>> print(psychometric_function([-2.5, -2.0, -1.5], -2.0, 1.0))
    [0.05 0.5  0.95]
    >>> print(psychometric_function(-2.0, -2.0, 1.0, guess=0.5, lapse=0.02))
    0.74
    """
    family = sigmoid(function)
    x, t, w, g, l = broadcast_floats(log_contrast, threshold, width, guess, lapse)
    if not np.all(w > 0):
        raise InputError(
            f"width {np.min(w):g} log10 units is not above 0; give the distance from F = 0.05 "
            "to F = 0.95"
        )
    if not (np.all(g >= 0) and np.all(l >= 0) and np.all(g + l < 1)):
        raise InputError(
            f"guess {np.min(g):g} to {np.max(g):g} and lapse {np.min(l):g} to {np.max(l):g} "
            "must not be negative, and their sum must stay below 1"
        )
    z = np.clip(family.span * (x - t) / w + family.median, -700.0, 700.0)
    return np.asarray(g + (1 - g - l) * np.exp(family.log_lower(z)))


def threshold_at(
    proportion: ArrayLike,
    threshold: ArrayLike,
    width: ArrayLike,
    guess: ArrayLike = 0.0,
    lapse: ArrayLike = 0.0,
    *,
    function: str = "logistic",
) -> FloatArray:
    """Find the log10 contrast at which the proportion of yes has a given value.

    This is the inverse of `psychometric_function`.

    Parameters
    ----------
    proportion : array_like of float
        Proportion of yes, guesses and lapses included.
    threshold, width, guess, lapse : array_like of float
        As for `psychometric_function`; nan gives nan, and a width of 0 the threshold.
    function : str, optional
        As for `psychometric_function`.

    Returns
    -------
    ndarray of float64
        nan where the function never has this value.

    Examples
    --------
    >>> print(threshold_at([0.5, 0.75], -2.0, 1.0, guess=0.5))
    [nan -2.]
    """
    family = sigmoid(function)
    p, t, w, g, l = broadcast_floats(proportion, threshold, width, guess, lapse)
    with np.errstate(invalid="ignore"):
        share = (p - g) / (1 - g - l)
        inside = (share > 0) & (share < 1)
    low = np.full(p.shape, -700.0)
    high = np.full(p.shape, 700.0)
    goal = np.log(np.where(inside, share, 0.5))
    # All families rise, so bisection finds the place to the last digit whatever the family.
    for _ in range(70):
        middle = 0.5 * (low + high)
        below = family.log_lower(middle) < goal
        low = np.where(below, middle, low)
        high = np.where(below, high, middle)
    z = 0.5 * (low + high)
    return np.where(inside, t + w * (z - family.median) / family.span, np.nan)
