"""The alignment score of a detection run's responses, and what it mixes.

Alignment asks: does an observer respond more the further a stimulus lies above human threshold? A
slice holds the responses at one level (a frequency, a luminance, an area), for contrasts at fixed
multiples of the human threshold. A high score needs responses that rise with the multiple within
each slice, and responses that are the same at every level for the same multiple; `score_slices`
takes these apart.

References
----------
Cai, Yin, Hammou, Mantiuk (2025). Do computer vision foundation models learn the low-level
characteristics of the human visual system? CVPR. Section 3, model alignment score.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from psyprobe._typing import FloatArray
from psyprobe.analysis.comparison.sample import Sample
from psyprobe.analysis.intervals import (
    check_resampling,
    draw_counts,
    fisher,
    neighbour_correlation,
    student_reach,
)
from psyprobe.analysis.score import ONE_VARIANT, Recorded
from psyprobe.errors import InputError
from psyprobe.files.json_types import JsonObject

CONSTANT = "all responses are equal, so no rank correlation exists"
UNTOLD = "no score: too many responses are undefined"


@dataclass(frozen=True)
class Alignment(Recorded):
    """The alignment score with its interval."""

    #: Spearman's r_s of response with multiplier, -1 to 1; None where it does not exist.
    value: float | None
    #: Ends of the interval; None where there is none.
    low: float | None
    high: float | None
    #: Of the interval, in (0, 1).
    confidence: float
    #: Largest r_s that responses without ties could have reached on these points.
    attainable: float
    #: Why `value`, `low` or `high` is None, or what was left out; empty if there is nothing to say.
    note: str = ""
    #: Correlation of the ranks of slices next to each other, -1 to 1: the further above 0, the more
    #: an interval over levels is too narrow. None without one, or of three slices.
    neighbours: float | None = None
    #: What the interval speaks of: "levels" drawn anew, or "variants"; empty without one.
    over: str = ""
    #: The score of each variant, of which `value` is the mean; None where one was shown.
    sample: Sample | None = None


def alignment_score(
    multiplier: ArrayLike,
    response: ArrayLike,
) -> float:
    """Compute Spearman's correlation of responses with contrast in units of human threshold.

    Parameters
    ----------
    multiplier : array_like of float
        Multiples of the human threshold contrast (of sensitivity, as in the paper's detection
        tests, 1 / multiple); broadcasts against `response`, as ``(10,)`` against ``(20, 10)``.
    response : array_like of float
        Responses, one for each stimulus. All are pooled.

    Returns
    -------
    float
        r_s, -1 to 1, with average ranks for ties. Not every value up to 1 can be reached: see
        `attainable_alignment`.

    Raises
    ------
    InputError
        If shapes do not broadcast, a value is not finite, a multiplier is not above 0, or all
        multipliers or all responses are equal.

    References
    ----------
    Cai et al. (2025), section 3; the pooled r_s as their released code computes it.

    Examples
    --------
    >>> round(alignment_score([0.5, 1.0, 2.0], [[0.1, 0.2, 0.3], [0.2, 0.3, 0.4]]), 4)
    0.8616
    """
    score = float(alignment_scores(multiplier, np.asarray(response)[None])[0])
    if np.isnan(score):
        raise InputError(
            f"the alignment score does not exist: {CONSTANT}; check the observer, or score "
            "another measure"
        )
    return score


def alignment_scores(multiplier: ArrayLike, responses: ArrayLike) -> FloatArray:
    """Compute the alignment score of each of several sets of responses.

    Parameters
    ----------
    multiplier : array_like of float
        As for `alignment_score`, of one set.
    responses : array_like of float
        A set of responses for each entry of the first axis, V of them.

    Returns
    -------
    ndarray of float64, shape (V,)
        r_s, -1 to 1; nan where all responses of a set are equal.

    Raises
    ------
    InputError
        As for `alignment_score`, but for equal responses.

    Examples
    --------
    >>> alignment_scores([0.5, 1.0, 2.0], [[0.1, 0.2, 0.3], [0.2, 0.4, 0.3], [1, 1, 1]])
    array([1. , 0.5, nan])
    """
    m, r = _pooled(multiplier, responses)
    sets = r.reshape(len(r), -1)
    return _rank_correlations(m.reshape(sets.shape)[:1], sets)


def attainable_alignment(multiplier: ArrayLike) -> float:
    """Compute the largest alignment score that responses without ties can reach.

    Parameters
    ----------
    multiplier : array_like of float
        The multipliers of all pooled points. Repeated ones tie, and distinct responses cannot
        follow a tie.

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
    pooled, _ = _pooled(m, np.zeros(m.shape))
    order = np.arange(pooled.size, dtype=np.float64)
    return spearman(np.sort(pooled), order)


def align(
    multiplier: ArrayLike,
    response: ArrayLike,
    *,
    confidence: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> Alignment:
    """Compute the alignment score (Spearman's r_s) with a bootstrap interval over levels.

    Parameters
    ----------
    multiplier : array_like of float, shape (M,) or (K, M)
        Multiples of the human threshold contrast.
    response : array_like of float, shape (K, M)
        Responses; a row, or slice, holds the responses at one x (frequency, luminance, area).
    confidence : float, optional
        Coverage of the interval, in (0, 1).
    resamples : int, optional
        Number of bootstrap samples, at least 100.
    seed : int, optional
        Seed of the resampling.

    Returns
    -------
    Alignment
        Score, interval and attainable maximum. Equal responses give no error here but a `note`.

    Raises
    ------
    InputError
        As for `alignment_score`, but for equal responses; also on a confidence or a number of
        resamples out of range.

    Notes
    -----
    Whole slices are drawn, because responses within one rise together. The interval is tanh(z ± t
    s): z is the Fisher transform of r_s, s the bootstrap standard deviation of z times sqrt(K / (K
    - 1)), t the quantile of Student's t with K - 1 degrees of freedom. In simulations with
    independent slices, 400 runs each of 8 to 20 slices that are 0.05 to 1.5 log10 units off level,
    it covers the score of endless slices in 92 % or more; the percentile interval of the same
    samples covers it in 30 to 90 %, and hardly ever where slices are most uneven, because a slice
    drawn twice agrees with itself. Neighbouring x do not respond independently, so in a real
    experiment it holds the score of other levels less often: `neighbours` says how alike they
    are, and `docs/psychometric.md` how much is then missing. It does not speak of other stimuli or
    observers.

    Examples
    --------
    >>> m = np.logspace(-0.3, 0.3, 10)
    >>> level = 10 ** np.linspace(-0.2, 0.2, 20)
    >>> score = align(m, level[:, None] * m)
    >>> f"{score.value:.2f} [{score.low:.2f}, {score.high:.2f}] of {score.attainable:.3f}"
    '0.85 [0.78, 0.90] of 0.995'
    >>> round(score.neighbours, 2)
    1.0
    """
    m, r = _pooled(multiplier, response)
    if r.ndim != 2:
        raise InputError(
            f"responses of shape {r.shape} have no slices; give (slices, multipliers)"
        )
    check_resampling(confidence, resamples)
    attainable = attainable_alignment(m)
    if len(np.unique(r)) < 2:
        return Alignment(None, None, None, confidence, attainable, CONSTANT)
    value = spearman(m, r)
    slices, points = r.shape
    if slices < 3:
        note = f"{slices} slices are too few for an interval"
        return Alignment(value, None, None, confidence, attainable, note)
    weights = np.repeat(
        draw_counts(slices, resamples, seed).astype(np.float64), points, axis=1
    )
    samples = weighted_spearman(m.ravel(), r.ravel(), weights)
    defined = samples[np.isfinite(samples)]
    lost = len(samples) - len(defined)
    note = (
        f"{lost} of {resamples} resamples had equal responses only and were left out"
        if lost
        else ""
    )
    z = fisher(value)
    reach = student_reach(fisher(defined), slices, confidence)
    low = min(float(np.tanh(z - reach)), value)
    high = max(float(np.tanh(z + reach)), value)
    if high - low < 1e-9:
        note = "all slices are alike and tell no interval"
        return Alignment(value, None, None, confidence, attainable, note)
    ranks = midranks(r.ravel(), np.ones((1, r.size))).reshape(r.shape)
    neighbours = neighbour_correlation(ranks.mean(axis=1))
    return Alignment(
        value, low, high, confidence, attainable, note, neighbours, "levels"
    )


def align_variants(
    multiplier: FloatArray,
    response: FloatArray,
    sample: Sample | None,
    by_levels: bool,
    interval: JsonObject,
) -> Alignment:
    """Compute the mean over variants, with its interval, or else the score of the one variant.

    That tells no interval, unless one over levels is asked for.

    Parameters
    ----------
    multiplier, response
        As for `align`; the mean responses of variants.
    sample : Sample or None
        The score of each variant; None where one was shown.
    by_levels : bool
        Whether a single variant gets an interval over levels.
    interval : mapping
        Options of `align`: "confidence", "resamples" and "seed".
    """
    if sample is None:
        alignment = align(multiplier, response, **interval)
        if by_levels or alignment.low is None:
            return alignment
        return replace(alignment, low=None, high=None, over="", note=ONE_VARIANT)
    confidence = interval["confidence"]
    ends = sample.interval(confidence)
    low, high = ends or (None, None)
    m, _ = _pooled(multiplier, response)
    return Alignment(
        sample.mean(),
        low,
        high,
        confidence,
        attainable_alignment(m),
        note="" if ends else "all variants are alike and tell no interval",
        over=sample.population if ends else "",
        sample=sample,
    )


def spearman(x: FloatArray, y: FloatArray) -> float:
    """Compute Spearman's rank correlation of all values together."""
    return float(_rank_correlations(x.reshape(1, -1), y.reshape(1, -1))[0])


def _rank_correlations(x: FloatArray, y: FloatArray) -> FloatArray:
    """Compute Spearman's r_s of each row of y (V, N) with x (1, N); nan where all are equal.

    Sums are of multiples of a quarter, so that they are exact in any order.
    """
    centre = (x.shape[1] + 1) / 2
    rank_x = _row_ranks(x) - centre
    rank_y = _row_ranks(y) - centre
    product = np.sqrt((rank_x**2).sum(axis=1) * (rank_y**2).sum(axis=1))
    r = np.divide(
        (rank_x * rank_y).sum(axis=1),
        product,
        out=np.full(len(y), np.nan),
        where=product > 0,
    )
    return np.asarray(r.clip(-1.0, 1.0))


def _row_ranks(values: FloatArray) -> FloatArray:
    """Rank the values of each row (V, N) from 1; equal values share the average of their ranks."""
    # As scipy.stats.rankdata does, whose import takes longer than all scores of a small store.
    order = values.argsort(axis=1)
    ordered = np.take_along_axis(values, order, axis=1)
    is_first = np.ones(values.shape, dtype=bool)
    is_first[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    is_last = np.ones(values.shape, dtype=bool)
    is_last[:, :-1] = is_first[:, 1:]
    places = np.arange(values.shape[1])
    first = np.maximum.accumulate(np.where(is_first, places, 0), axis=1)
    backwards = np.where(is_last, places, places[-1])[:, ::-1]
    last = np.minimum.accumulate(backwards, axis=1)[:, ::-1]
    ranks = np.empty(values.shape)
    np.put_along_axis(ranks, order, (first + last) / 2 + 1, axis=1)
    return ranks


def _pooled(
    multiplier: ArrayLike, response: ArrayLike
) -> tuple[FloatArray, FloatArray]:
    """Broadcast contrast multipliers and responses to one shape, refusing invalid values."""
    m = np.asarray(multiplier, dtype=np.float64)
    r = np.asarray(response, dtype=np.float64)
    try:
        m, r = np.broadcast_arrays(m, r)
    except ValueError:
        raise InputError(
            f"multipliers of shape {m.shape} do not broadcast against responses of shape "
            f"{r.shape}; give multipliers along the last axis"
        ) from None
    if not np.isfinite(r).all():
        raise InputError(
            f"{int((~np.isfinite(r)).sum())} of {r.size} responses are not finite; a score "
            "would hide that"
        )
    if not (np.isfinite(m) & (m > 0)).all():
        raise InputError("multipliers must be finite and above 0")
    if not m.size or (m == m.flat[0]).all():
        raise InputError("the alignment score needs two different multipliers at least")
    return m, r


@dataclass(frozen=True)
class Slices(Recorded):
    """Monotonicity within slices, and unevenness between them."""

    #: Mean over slices of Spearman's r_s of response with multiplier, -1 to 1; 1 if each slice
    #: rises throughout. None if all responses are equal within every slice.
    monotonicity: float | None
    #: The smallest r_s of a slice.
    lowest: float | None
    #: Number of slices with equal responses, which have no r_s and are left out of the two above.
    constant: int
    #: Common slope of log response over log contrast: 1 for a response proportional to contrast.
    #: None if no two slices have responses above 0 only.
    slope: float | None
    #: Root mean square over slices of the displacement, in log10 contrast, that would bring each
    #: slice onto the common response curve. 0 is level; 0.3 says that, to draw equal responses, the
    #: human curve would have to be moved by a factor of two (one octave), up here and down there.
    #: None where `slope` is None or not above 0, so that no change of contrast could level the
    #: responses.
    unevenness: float | None
    #: Number of slices with a response of 0 or less, which have no logarithm and are left out of
    #: the two above.
    not_positive: int
    #: Number of slices.
    total: int


def score_slices(multiplier: ArrayLike, response: ArrayLike) -> Slices:
    """Measure how responses rise within each level, and how uneven they are between levels.

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
    Unevenness comes from an analysis of covariance: log10 response = a_k + b log10 multiplier, with
    an intercept for each slice k and one slope b for all. Slice k lies (a_k - mean a) / b of log10
    contrast away from the common curve.

    Examples
    --------
    >>> m = np.logspace(-0.3, 0.3, 10)
    >>> slices = score_slices(m, [2 * m, m / 2])
    >>> round(slices.monotonicity, 3), round(slices.slope, 3), round(slices.unevenness, 3)
    (1.0, 1.0, 0.301)
    """
    m = np.asarray(multiplier, dtype=np.float64)
    r = np.asarray(response, dtype=np.float64)
    if m.ndim != 1 or r.ndim != 2 or r.shape[1] != len(m) or len(np.unique(m)) < 2:
        raise InputError(
            f"responses of shape {r.shape} do not fit multipliers of shape {m.shape}; give "
            "(slices, multipliers) and (multipliers,), with two different ones at least"
        )
    if not (np.isfinite(r).all() and np.isfinite(m).all() and (m > 0).all()):
        raise InputError("responses must be finite, and multipliers finite and above 0")
    within = _rank_correlations(m[None], r)
    within = within[np.isfinite(within)]
    usable = r[(r > 0).all(axis=1)]
    slope, unevenness = (
        _slope_and_unevenness(np.log10(m), np.log10(usable))
        if len(usable) >= 2
        else (None, None)
    )
    return Slices(
        monotonicity=float(within.mean()) if len(within) else None,
        lowest=float(within.min()) if len(within) else None,
        constant=len(r) - len(within),
        slope=slope,
        unevenness=unevenness,
        not_positive=len(r) - len(usable),
        total=len(r),
    )


def _slope_and_unevenness(
    log_m: FloatArray, log_r: FloatArray
) -> tuple[float, float | None]:
    """Fit log response to log multiplier: the mean slope, and how uneven levels are."""
    centred = log_m - log_m.mean()
    slope = float((log_r @ centred).mean() / (centred @ centred))
    if slope <= 0:
        return slope, None
    return slope, float(np.std(log_r.mean(axis=1)) / slope)


def midranks(values: FloatArray, weights: FloatArray) -> FloatArray:
    """Rank values in weighted samples; equal values share the average of their ranks.

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
    """Compute Spearman's r_s of y with x in each weighted sample.

    A bootstrap sample of a set of points is the set with a count for each point. With counts as
    weights all samples are ranked from one sort, so 2,000 of them take some 20 ms for 200 points.

    Parameters
    ----------
    x, y : ndarray of float, shape (N,)
        Paired values.
    weights
        As for `midranks`, of each pair.

    Returns
    -------
    ndarray of float64, shape (B,)
        r_s, -1 to 1; nan where all x or all y of a sample are equal, so that no correlation exists.
        Callers take these out.

    Examples
    --------
    >>> weighted_spearman(np.array([1.0, 2.0, 3.0]), np.array([1.0, 3.0, 2.0]), np.ones((1, 3)))
    array([0.5])
    """
    centre = (weights.sum(axis=1, keepdims=True) + 1) / 2
    rank_x = midranks(x, weights) - centre
    rank_y = midranks(y, weights) - centre
    weighted = weights * rank_x
    covariance = np.einsum("bn,bn->b", weighted, rank_y)
    spread_x = np.einsum("bn,bn->b", weighted, rank_x)
    spread_y = np.einsum("bn,bn,bn->b", weights, rank_y, rank_y)
    product = np.sqrt(spread_x * spread_y)
    r = np.divide(
        covariance, product, out=np.full(len(weights), np.nan), where=product > 0
    )
    return np.asarray(r.clip(-1.0, 1.0))
