"""The alignment score: does an observer respond more the further a stimulus lies above human threshold?

References
----------
Cai, Yin, Hammou, Mantiuk (2025). Do computer vision foundation models learn the low-level characteristics of
the human visual system? CVPR. Section 3, model alignment score.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from psyprobe._typing import FloatArray
from psyprobe.analysis.rank import weighted_spearman
from psyprobe.analysis.resampling import check_resampling, student_reach
from psyprobe.analysis.score import Recorded
from psyprobe.errors import InputError

MultiplierOf = Literal["threshold", "sensitivity"]

CONSTANT = "all responses are equal, so no rank correlation exists"


@dataclass(frozen=True)
class Alignment(Recorded):
    """The alignment score with its interval."""

    #: Spearman's r_s of response with multiplier, -1 to 1; None where it does not exist.
    value: float | None
    #: Ends of the bootstrap interval; None with fewer than three slices, or where `value` is None.
    low: float | None
    high: float | None
    #: Of the interval, in (0, 1).
    confidence: float
    #: Largest r_s that responses without ties could have reached on these points.
    attainable: float
    #: Why `value`, `low` or `high` is None, or what was left out; empty if there is nothing to say.
    note: str = ""


def alignment_score(
    multiplier: npt.ArrayLike, response: npt.ArrayLike, *, multiplier_of: MultiplierOf = "threshold"
) -> float:
    """Spearman's rank correlation of the responses with the contrast in units of the human threshold.

    Parameters
    ----------
    multiplier : array_like of float
        What the human value was multiplied by; broadcasts against `response`, as ``(10,)`` against ``(20, 10)``.
    response : array_like of float
        Responses, one for each stimulus. All are pooled.
    multiplier_of : "threshold" or "sensitivity", optional
        What `multiplier` multiplies: the human threshold contrast, or (as in the paper's detection tests) the
        human sensitivity 1 / threshold. The sign of the score follows, so that positive is always aligned.

    Returns
    -------
    float
        r_s, -1 to 1, with average ranks for ties. Not every value up to 1 can be reached: see
        `attainable_alignment`.

    Raises
    ------
    InputError
        If shapes do not broadcast, a value is not finite, a multiplier is not above 0, or all multipliers or
        all responses are equal.

    References
    ----------
    Cai et al. (2025), section 3; the pooled r_s as their released code computes it.

    Examples
    --------
    >>> round(alignment_score([0.5, 1.0, 2.0], [[0.1, 0.2, 0.3], [0.2, 0.3, 0.4]]), 4)
    0.8616
    """
    m, r = _pooled(multiplier, response, multiplier_of)
    if len(np.unique(r)) < 2:
        raise InputError(
            f"the alignment score does not exist: {CONSTANT}; check the observer, or score another measure"
        )
    return float(weighted_spearman(m.ravel(), r.ravel(), np.ones((1, r.size)))[0])


def attainable_alignment(multiplier: npt.ArrayLike) -> float:
    """Largest alignment score that responses without ties can reach.

    Parameters
    ----------
    multiplier : array_like of float
        The multipliers of all pooled points. Repeated ones tie, and distinct responses cannot follow a tie.

    Returns
    -------
    float
        r_s of responses in perfect order: 0.995 for ten multipliers, each at as many points.

    Raises
    ------
    InputError
        As for `alignment_score`.

    Examples
    --------
    >>> round(attainable_alignment(np.tile(np.logspace(-0.3, 0.3, 10), 20)), 4)
    0.995
    """
    m = np.asarray(multiplier, dtype=np.float64).ravel()
    pooled, _ = _pooled(m, np.zeros(m.shape), "threshold")
    order = np.argsort(np.argsort(pooled, kind="stable"), kind="stable").astype(np.float64)
    return float(weighted_spearman(pooled, order, np.ones((1, m.size)))[0])


def align(
    multiplier: npt.ArrayLike,
    response: npt.ArrayLike,
    *,
    multiplier_of: MultiplierOf = "threshold",
    confidence: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> Alignment:
    """The alignment score with a bootstrap interval over slices.

    Parameters
    ----------
    multiplier : array_like of float, shape (M,) or (K, M)
        Multipliers of the human value.
    response : array_like of float, shape (K, M)
        Responses; a row, or slice, holds the responses at one x (frequency, luminance, area).
    multiplier_of : "threshold" or "sensitivity", optional
        As for `alignment_score`.
    confidence : float, optional
        Of the interval, in (0, 1).
    resamples : int, optional
        Number of bootstrap samples, at least 100.
    seed : int, optional
        Of the resampling.

    Returns
    -------
    Alignment
        Score, interval and attainable maximum. Equal responses give no error here but a `note`.

    Raises
    ------
    InputError
        As for `alignment_score`, but for equal responses; also on a confidence or a number of resamples out
        of range.

    Notes
    -----
    Whole slices are drawn, because responses within one rise together. The interval is tanh(z ± t s): z is
    the Fisher transform of r_s, s the bootstrap standard deviation of z times sqrt(K / (K - 1)), t the quantile
    of Student's t with K - 1 degrees of freedom. In simulations with independent slices, 400 runs each of 8 to 20
    slices that are 0.05 to 1.5 log10 units off level, it covers the score of endless slices in 92 % or more; the
    percentile interval of the same samples covers it in 30 to 90 %, and hardly ever where slices are most uneven,
    because a slice drawn twice agrees with itself. Neighbouring x do not respond independently, so in a real
    experiment the interval is a lower bound of the uncertainty. It does not speak of other stimuli or observers.

    Examples
    --------
    >>> m = np.logspace(-0.3, 0.3, 10)
    >>> level = 10 ** np.linspace(-0.2, 0.2, 20)
    >>> found = align(m, level[:, None] * m)
    >>> f"{found.value:.2f} [{found.low:.2f}, {found.high:.2f}] of {found.attainable:.3f}"
    '0.85 [0.78, 0.90] of 0.995'
    """
    m, r = _pooled(multiplier, response, multiplier_of)
    if r.ndim != 2:
        raise InputError(f"responses of shape {r.shape} have no slices; give (slices, multipliers)")
    check_resampling(confidence, resamples)
    attainable = attainable_alignment(m)
    if len(np.unique(r)) < 2:
        return Alignment(None, None, None, confidence, attainable, CONSTANT)
    value = float(weighted_spearman(m.ravel(), r.ravel(), np.ones((1, r.size)))[0])
    slices, points = r.shape
    if slices < 3:
        return Alignment(value, None, None, confidence, attainable, f"{slices} slices are too few for an interval")
    counts = np.random.default_rng(seed).multinomial(slices, np.full(slices, 1 / slices), size=resamples)
    weights = np.repeat(counts.astype(np.float64), points, axis=1)
    samples = weighted_spearman(m.ravel(), r.ravel(), weights)
    defined = samples[np.isfinite(samples)]
    lost = len(samples) - len(defined)
    note = f"{lost} of {resamples} resamples had equal responses only and were left out" if lost else ""
    low, high = _interval(value, defined, slices, confidence)
    return Alignment(value, low, high, confidence, attainable, note)


def _interval(value: float, samples: FloatArray, slices: int, confidence: float) -> tuple[float, float]:
    # r_s of exactly 1 would have an infinite transform; its interval is a point either way.
    z, zs = (np.arctanh(np.clip(r, -1 + 1e-12, 1 - 1e-12)) for r in (value, samples))
    reach = student_reach(zs, slices, confidence)
    return min(float(np.tanh(z - reach)), value), max(float(np.tanh(z + reach)), value)


def _pooled(
    multiplier: npt.ArrayLike, response: npt.ArrayLike, multiplier_of: MultiplierOf
) -> tuple[FloatArray, FloatArray]:
    """Multipliers of the contrast, and responses, of one shape."""
    m, r = np.asarray(multiplier, dtype=np.float64), np.asarray(response, dtype=np.float64)
    if multiplier_of not in ("threshold", "sensitivity"):
        raise InputError(f"multiplier_of {multiplier_of!r} must be 'threshold' or 'sensitivity'")
    try:
        m, r = np.broadcast_arrays(m, r)
    except ValueError:
        raise InputError(
            f"multipliers of shape {m.shape} do not broadcast against responses of shape {r.shape}; "
            f"give multipliers along the last axis"
        ) from None
    if not np.isfinite(r).all():
        raise InputError(
            f"{int((~np.isfinite(r)).sum())} of {r.size} responses are not finite; a score would hide that"
        )
    if not (np.isfinite(m) & (m > 0)).all():
        raise InputError("multipliers must be finite and above 0")
    if len(np.unique(m)) < 2:
        raise InputError("the alignment score needs two different multipliers at least")
    return (m if multiplier_of == "threshold" else 1 / m), r
