"""What a detection run's responses tell: the alignment score, what it mixes, and the iso-response curve.

Alignment asks: does an observer respond more the further a stimulus lies above human threshold? A slice holds the
responses at one level (a frequency, a luminance, an area), for contrasts at fixed multiples of the human threshold. A
high score needs responses that rise with the multiple within each slice, and responses that are the same at every level
for the same multiple; `score_slices` takes these apart.

An observer whose responses have no criterion of their own (an angle between features is no threshold) has not one
contrast sensitivity function but a family: one iso-response curve for each response level. Here the member of the
family that resembles the human curve best is found, and what still separates the two is split into shape and shift.

References
----------
Cai, Yin, Hammou, Mantiuk (2025). Do computer vision foundation models learn the low-level characteristics of
the human visual system? CVPR. Section 3, model alignment score.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from psyprobe._typing import FloatArray
from psyprobe.analysis.score import Recorded
from psyprobe.errors import InputError

MultiplierOf = Literal["threshold", "sensitivity"]

CONSTANT = "all responses are equal, so no rank correlation exists"
UNTOLD = "no score: too many responses are undefined"


@dataclass(frozen=True)
class Alignment(Recorded):
    """The alignment score with its interval."""

    #: Spearman's r_s of response with multiplier, -1 to 1; None where it does not exist.
    value: float | None
    #: Ends of the bootstrap interval; None with fewer than three slices or with equal ones, or where `value` is None.
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
    experiment the interval is a lower bound of the uncertainty: `docs/psychometric.md` tells by how much. It does not
    speak of other stimuli or observers.

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
    weights = np.repeat(draw_counts(slices, resamples, seed).astype(np.float64), points, axis=1)
    samples = weighted_spearman(m.ravel(), r.ravel(), weights)
    defined = samples[np.isfinite(samples)]
    lost = len(samples) - len(defined)
    note = f"{lost} of {resamples} resamples had equal responses only and were left out" if lost else ""
    z, reach = fisher(value), student_reach(fisher(defined), slices, confidence)
    low, high = min(float(np.tanh(z - reach)), value), max(float(np.tanh(z + reach)), value)
    if high - low < 1e-9:
        return Alignment(value, None, None, confidence, attainable, "all slices are alike and tell no interval")
    return Alignment(value, low, high, confidence, attainable, note)


def fisher(r: Any) -> Any:
    """Fisher's transform of correlations; of exactly 1 it would be infinite, and intervals are points either way."""
    return np.arctanh(np.clip(r, -1 + 1e-12, 1 - 1e-12))


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


@dataclass(frozen=True)
class Slices(Recorded):
    """Monotonicity within slices, and unevenness between them."""

    #: Mean over slices of Spearman's r_s of response with multiplier, -1 to 1; 1 if each slice rises throughout. None
    #: if all responses are equal within every slice.
    monotonicity: float | None
    #: The smallest r_s of a slice.
    lowest: float | None
    #: Number of slices with equal responses, which have no r_s and are left out of the two above.
    constant: int
    #: Common slope of log response over log contrast: 1 for a response proportional to contrast. None if no two slices
    #: have responses above 0 only.
    slope: float | None
    #: Root mean square over slices of the displacement, in log10 contrast, that would bring each slice onto the common
    #: response curve. 0 is level; 0.3 says that, to draw equal responses, the human curve would have to be moved by a
    #: factor of two (one octave), up here and down there. None where `slope` is None or not above 0, so that no change
    #: of contrast could level the responses.
    unevenness: float | None
    #: Number of slices with a response of 0 or less, which have no logarithm and are left out of the two above.
    not_positive: int
    #: Number of slices.
    total: int


def score_slices(multiplier: npt.ArrayLike, response: npt.ArrayLike) -> Slices:
    """Measure monotonicity within slices and unevenness between them.

    Parameters
    ----------
    multiplier : array_like of float, shape (M,)
        Multipliers of the human threshold contrast, above 0.
    response : array_like of float, shape (K, M)
        Responses; each row is a slice.

    Returns
    -------
    Slices
        With counts of what could not be used.

    Raises
    ------
    InputError
        If shapes disagree, a value is not finite, or a multiplier is not above 0.

    Notes
    -----
    Unevenness comes from an analysis of covariance: log10 response = a_k + b log10 multiplier, with an intercept for
    each slice k and one slope b for all. Slice k lies (a_k - mean a) / b of log10 contrast away from the common curve.

    Examples
    --------
    >>> m = np.logspace(-0.3, 0.3, 10)
    >>> found = score_slices(m, [2 * m, m / 2])
    >>> round(found.monotonicity, 3), round(found.slope, 3), round(found.unevenness, 3)
    (1.0, 1.0, 0.301)
    """
    m, r = np.asarray(multiplier, dtype=np.float64), np.asarray(response, dtype=np.float64)
    if m.ndim != 1 or r.ndim != 2 or r.shape[1] != len(m) or len(np.unique(m)) < 2:
        raise InputError(
            f"responses of shape {r.shape} do not fit multipliers of shape {m.shape}; give (slices, multipliers) "
            f"and (multipliers,), with two different ones at least"
        )
    if not (np.isfinite(r).all() and np.isfinite(m).all() and (m > 0).all()):
        raise InputError("responses must be finite, and multipliers finite and above 0")
    within = weighted_spearman(np.tile(m, len(r)), r.ravel(), np.repeat(np.eye(len(r)), len(m), axis=1))
    within = within[np.isfinite(within)]
    usable = r[(r > 0).all(axis=1)]
    slope, unevenness = _apart(np.log10(m), np.log10(usable)) if len(usable) >= 2 else (None, None)
    return Slices(
        monotonicity=float(within.mean()) if len(within) else None,
        lowest=float(within.min()) if len(within) else None,
        constant=len(r) - len(within),
        slope=slope,
        unevenness=unevenness,
        not_positive=len(r) - len(usable),
        total=len(r),
    )


def _apart(log_m: FloatArray, log_r: FloatArray) -> tuple[float, float | None]:
    centred = log_m - log_m.mean()
    slope = float((log_r @ centred).mean() / (centred @ centred))
    if slope <= 0:
        return slope, None
    return slope, float(np.std(log_r.mean(axis=1)) / slope)


#: More candidate levels than this cannot be told apart on a grid of some hundred points.
_MOST_LEVELS = 400


@dataclass(frozen=True)
class IsoResponse(Recorded):
    """An observer's iso-response curve next to the human sensitivity."""

    #: What the level was chosen by: the smallest `shape_rmse`, or the smallest `rmse`.
    criterion: Literal["shape", "absolute"]
    #: Response along the curve, in units of the measure.
    level: float
    #: Root mean square of log10(observer's / human sensitivity) after its mean, the shift, is taken out; log10 units
    #: (0.3 is a factor of two, one octave).
    shape_rmse: float
    #: Mean of log10(observer's / human sensitivity): positive where the observer reaches the level at lower contrasts
    #: than people detect. Log10 units.
    shift: float
    #: Smallest and largest shift among all levels that fit nearly as well (criterion within 10 % of the best). A wide
    #: range says that the level, and with it the shift, is not determined by the data.
    shift_range: tuple[float, float]
    #: Root mean square of log10(observer's / human sensitivity), shift included; log10 units.
    rmse: float
    #: Number of conditions at which the level is crossed inside the contrast grid.
    reached: int
    #: Of all: ``reached + above + below``.
    total: int
    #: Conditions at which the response exceeds the level at the lowest contrast already.
    above: int
    #: Conditions at which it stays under the level at all contrasts.
    below: int
    #: Conditions among those reached at which the response falls under the level again at a higher contrast. The first
    #: crossing counts.
    recrossed: int
    #: The conditions that reach the level: frequencies, luminances, ...
    at: tuple[float, ...]
    #: 1 / contrast at the first crossing, one for each of `at`.
    sensitivity: tuple[float, ...]


def iso_contrast(
    contrast: npt.ArrayLike, response: npt.ArrayLike, level: npt.ArrayLike
) -> tuple[FloatArray, npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Contrast at which each slice of a response grid first rises to a level.

    Parameters
    ----------
    contrast : array_like of float, shape (C,)
        Contrasts of the grid, increasing, above 0.
    response : array_like of float, shape (X, C)
        Responses, one row for each condition.
    level : array_like of float, shape (L,)
        Response levels, above 0.

    Returns
    -------
    log10_contrast : ndarray of float64, shape (L, X)
        Log10 contrast of the first crossing. -inf where the lowest contrast exceeds the level already, +inf
        where no contrast reaches it.
    crossed : ndarray of bool, shape (L, X)
        True where the crossing lies inside the grid.
    recrossed : ndarray of bool, shape (L, X)
        True where the response falls under the level again at some higher contrast.

    Raises
    ------
    InputError
        If shapes disagree, a value is not finite, or contrasts do not increase.

    Notes
    -----
    Between grid points log response is linear in log contrast, which is exact for power laws; next to a response
    of 0 or below, response is linear in log contrast.

    Examples
    --------
    >>> grid = np.array([0.01, 0.1, 1.0])
    >>> found, crossed, _ = iso_contrast(grid, [2 * grid, 0.001 * grid], [0.1])
    >>> (10 ** found).round(3), crossed
    (array([[0.05,  inf]]), array([[ True, False]]))
    """
    c, r = np.asarray(contrast, dtype=np.float64), np.asarray(response, dtype=np.float64)
    levels = np.atleast_1d(np.asarray(level, dtype=np.float64))
    if c.ndim != 1 or len(c) < 2 or r.shape[1:] != c.shape:
        raise InputError(
            f"a response grid of shape {r.shape} does not fit {c.shape} contrasts; give (X, C) and (C,) with C >= 2"
        )
    if not (np.isfinite(r).all() and np.isfinite(levels).all()):
        raise InputError("responses and levels must be finite; leave out conditions that were not measured")
    if not (c[0] > 0 and (np.diff(c) > 0).all() and np.isfinite(c[-1])):
        raise InputError(f"contrasts must increase from above 0, not run {c[0]:g} ... {c[-1]:g}")
    over = r >= levels[:, None, None]
    first = over.argmax(axis=-1)
    crossed = over.any(axis=-1) & (first > 0)
    recrossed = crossed & (np.diff(over.astype(np.int8), axis=-1) < 0).any(axis=-1)
    high = np.where(crossed, first, 1)
    rows = np.arange(len(r))
    fraction = _fraction(r[rows, high - 1], r[rows, high], levels[:, None])
    log_c = np.log10(c)
    inside = log_c[high - 1] + fraction * (log_c[high] - log_c[high - 1])
    outside = np.where(over.any(axis=-1), -np.inf, np.inf)
    return np.where(crossed, inside, outside), crossed, recrossed


def fit_iso_response(
    at: npt.ArrayLike,
    contrast: npt.ArrayLike,
    response: npt.ArrayLike,
    human_sensitivity: npt.ArrayLike,
    *,
    criterion: Literal["shape", "absolute"] = "shape",
    floor: float = 0.0,
) -> IsoResponse | None:
    """The iso-response curve that resembles human contrast sensitivity best.

    Every response of the grid above `floor` is tried as a level (400 quantiles of them on larger grids). Only
    levels reached in every row compete, or, if there is none, in as many rows as any level reaches: a level that is
    reached in half of the rows needs to fit half of the curve only, and would win for that reason.

    Parameters
    ----------
    at : array_like of float, shape (X,)
        Frequency, luminance or area of each row.
    contrast : array_like of float, shape (C,)
        Contrasts of the grid, increasing, above 0.
    response : array_like of float, shape (X, C)
        Responses.
    human_sensitivity : array_like of float, shape (X,)
        1 / human threshold contrast at `at`, in the same kind of contrast.
    criterion : "shape" or "absolute", optional
        Choose the level by the deviation left after a vertical shift, or by the whole deviation.
    floor : float, optional
        Levels at or under this response (the noise floor) are not tried.

    Returns
    -------
    IsoResponse or None
        None if no level is crossed in two rows or more, as when all responses are equal.

    Raises
    ------
    InputError
        As for `iso_contrast`; also if `at` or the sensitivities do not fit the grid or are not above 0.

    Examples
    --------
    An observer with human sensitivity times two, at its level 1:

    >>> frequency, contrast = np.logspace(0, 1, 5), np.logspace(-3, 0, 10)
    >>> human = 100 / frequency
    >>> fit = fit_iso_response(frequency, contrast, np.outer(2 * human, contrast) ** 2, human, criterion="shape")
    >>> round(fit.shape_rmse, 12), fit.reached
    (0.0, 5)
    """
    xs, human = np.asarray(at, dtype=np.float64), np.asarray(human_sensitivity, dtype=np.float64)
    r = np.asarray(response, dtype=np.float64)
    if xs.shape != r.shape[:1] or human.shape != xs.shape:
        raise InputError(
            f"{xs.shape} conditions and {human.shape} sensitivities do not fit a response grid of {r.shape}"
        )
    if not ((human > 0) & np.isfinite(human)).all():
        raise InputError("human sensitivity must be finite and above 0 in every row of the grid")
    levels = np.unique(r[r > max(floor, 0.0)])
    if len(levels) > _MOST_LEVELS:
        levels = np.unique(np.quantile(levels, np.linspace(0, 1, _MOST_LEVELS)))
    log_c, crossed, recrossed = iso_contrast(contrast, r, levels)
    count = crossed.sum(axis=-1)
    if not len(levels) or count.max() < 2:
        return None
    # Sensitivity is 1 / contrast, so a log contrast below the human threshold is a positive deviation.
    deviation = np.where(crossed, -log_c - np.log10(human), 0.0)
    n = np.maximum(count, 1)
    shift = deviation.sum(axis=-1) / n
    rmse = np.sqrt((deviation**2).sum(axis=-1) / n)
    shape = np.sqrt((np.where(crossed, deviation - shift[:, None], 0.0) ** 2).sum(axis=-1) / n)
    cost = np.where(count == count.max(), shape if criterion == "shape" else rmse, np.inf)
    # Among equals (a perfect observer fits at every level) the one nearest to human sensitivity.
    equal = np.flatnonzero(cost <= cost.min() + 1e-9)
    best = int(equal[np.argmin(np.abs(shift[equal]))])
    near = shift[cost <= 1.1 * cost[best] + 1e-9]
    return IsoResponse(
        criterion=criterion,
        level=float(levels[best]),
        shape_rmse=float(shape[best]),
        shift=float(shift[best]),
        shift_range=(float(near.min()), float(near.max())),
        rmse=float(rmse[best]),
        reached=int(count[best]),
        total=len(xs),
        above=int(np.isneginf(log_c[best]).sum()),
        below=int(np.isposinf(log_c[best]).sum()),
        recrossed=int(recrossed[best].sum()),
        at=tuple(xs[crossed[best]].tolist()),
        sensitivity=tuple((10 ** -log_c[best][crossed[best]]).tolist()),
    )


def _fraction(low: FloatArray, high: FloatArray, level: FloatArray) -> FloatArray:
    """Where between two responses the level lies, 0 to 1."""
    positive = (low > 0) & (high > 0)
    low, high, level = (np.where(positive, np.log(np.where(positive, each, 1.0)), each) for each in (low, high, level))
    rise = high - low
    return np.asarray((level - low) / np.where(rise == 0, 1.0, rise))


def midranks(values: FloatArray, weights: FloatArray) -> FloatArray:
    """Average rank of each value when each stands in the sample as often as its weight says.

    Parameters
    ----------
    values : ndarray of float, shape (N,)
        What to rank; equal values share the average of their ranks.
    weights : ndarray of float, shape (B, N)
        Number of copies of each value, one row for each sample.

    Returns
    -------
    ndarray of float64, shape (B, N)
        Ranks from 1; for a value with no copies, the middle of its neighbours' ranks.

    Examples
    --------
    >>> midranks(np.array([5.0, 3.0, 5.0]), np.array([[1.0, 1.0, 1.0], [2.0, 1.0, 1.0]]))
    array([[2.5, 1. , 2.5],
           [3. , 1. , 3. ]])
    """
    _, group = np.unique(values, return_inverse=True)
    order = np.argsort(group, kind="stable")
    starts = np.searchsorted(group[order], np.arange(group.max() + 1))
    copies = np.add.reduceat(weights[:, order], starts, axis=1)
    return np.asarray((copies.cumsum(axis=1) - copies / 2 + 0.5)[:, group])


def weighted_spearman(x: FloatArray, y: FloatArray, weights: FloatArray) -> FloatArray:
    """Spearman's r_s of y with x in each weighted sample: the correlation of average ranks.

    A bootstrap sample of a set of points is the set with a count for each point. With counts as weights all samples
    are ranked from one sort, so 2,000 of them take some 20 ms for 200 points.

    Parameters
    ----------
    x, y : ndarray of float, shape (N,)
        Paired values.
    weights
        As for `midranks`, of each pair.

    Returns
    -------
    ndarray of float64, shape (B,)
        r_s, -1 to 1; nan where all x or all y of a sample are equal, so that no correlation exists. Callers
        take these out.

    Examples
    --------
    >>> weighted_spearman(np.array([1.0, 2.0, 3.0]), np.array([1.0, 3.0, 2.0]), np.ones((1, 3)))
    array([0.5])
    """
    centre = (weights.sum(axis=1, keepdims=True) + 1) / 2
    rank_x, rank_y = midranks(x, weights) - centre, midranks(y, weights) - centre
    weighted = weights * rank_x
    covariance = np.einsum("bn,bn->b", weighted, rank_y)
    spread_x = np.einsum("bn,bn->b", weighted, rank_x)
    spread_y = np.einsum("bn,bn,bn->b", weights, rank_y, rank_y)
    product = np.sqrt(spread_x * spread_y)
    r = np.divide(covariance, product, out=np.full(len(weights), np.nan), where=product > 0)
    return np.asarray(r.clip(-1.0, 1.0))


def check_resampling(confidence: float, resamples: int) -> None:
    """Refuse a confidence outside (0, 1) and fewer than 100 bootstrap samples."""
    check_confidence(confidence)
    if resamples < 100:
        raise InputError(f"{resamples} resamples give no usable interval; take at least 100, usual is 2000")


def check_confidence(confidence: float) -> None:
    """Refuse one outside (0, 1)."""
    if not 0 < confidence < 1:
        raise InputError(f"confidence {confidence:g} must lie between 0 and 1; usual is 0.9 or 0.95")


def draw_counts(drawn_from: int, resamples: int, seed: int) -> npt.NDArray[np.int64]:
    """How often each is drawn in each of so many bootstrap samples, shape (resamples, drawn from)."""
    return np.random.default_rng(seed).multinomial(drawn_from, np.full(drawn_from, 1 / drawn_from), size=resamples)


def student_reach(samples: FloatArray, drawn_from: int, confidence: float) -> float:
    """Half of a symmetric interval: Student's t times the spread of samples that were drawn from few."""
    spread = float(np.std(samples)) * np.sqrt(drawn_from / (drawn_from - 1))
    return float(student_quantile(drawn_from, confidence) * spread)


def student_quantile(drawn_from: int, confidence: float) -> float:
    """Of Student's t, for a symmetric interval of something estimated from so many."""
    from scipy.special import stdtrit

    return float(stdtrit(drawn_from - 1, (1 + confidence) / 2))


def bounded_interval(
    value: float, spread: float, drawn_from: int, confidence: float, bounds: tuple[float, float] = (0.0, 1.0)
) -> tuple[float, float]:
    """Wilson's interval of a mean of values within bounds, as a share of right answers.

    Parameters
    ----------
    value, spread : float
        The mean, and its standard error, as from samples that were drawn from few.
    drawn_from : int
        How many are averaged. Where all are alike, these many answers stand for it, so that 20 right ones of 20 are no
        certainty; else as many independent ones as have this standard error.
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
    p, variance = (value - bounds[0]) / length, (spread / length) ** 2
    answers = p * (1 - p) / variance if variance > 1e-18 and p * (1 - p) > 0 else float(drawn_from)
    t = student_quantile(max(drawn_from, 2), confidence)
    centre = (p + t**2 / (2 * answers)) / (1 + t**2 / answers)
    half = t / (1 + t**2 / answers) * np.sqrt(p * (1 - p) / answers + t**2 / (4 * answers**2))
    low, high = min(centre - half, p), max(centre + half, p)
    return float(bounds[0] + length * max(low, 0.0)), float(bounds[0] + length * min(high, 1.0))
