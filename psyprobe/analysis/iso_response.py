"""Find the iso-response curve that resembles human sensitivity best.

An observer whose responses have no criterion of their own (an angle between features is no
threshold) has not one contrast sensitivity function but a family: one iso-response curve for each
response level. Here the member of the family that resembles the human curve best is found, and what
still separates the two is split into shape and shift.

References
----------
Cai, Yin, Hammou, Mantiuk (2025). Do computer vision foundation models learn the low-level
characteristics of the human visual system? CVPR. Section 3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from psyprobe._typing import BoolArray, FloatArray
from psyprobe.analysis.score import Recorded
from psyprobe.errors import InputError

#: More candidate levels than this cannot be told apart on a grid of some hundred points.
_MAX_LEVELS = 400


@dataclass(frozen=True)
class IsoResponse(Recorded):
    """An observer's iso-response curve next to the human sensitivity."""

    #: Criterion of the level: the smallest `shape_rmse`, or the smallest `rmse`.
    criterion: Literal["shape", "absolute"]
    #: Response along the curve, in units of the measure.
    level: float
    #: Root mean square of log10(observer's / human sensitivity) after its mean, the shift, is taken
    #: out; log10 units (0.3 is a factor of two, one octave).
    shape_rmse: float
    #: Mean of log10(observer's / human sensitivity): positive where the observer reaches the level
    #: at lower contrasts than people detect. Log10 units.
    shift: float
    #: Smallest and largest shift among all levels that fit nearly as well (criterion within 10 % of
    #: the best). A wide range says that the level, and with it the shift, is not determined by the
    #: data.
    shift_range: tuple[float, float]
    #: Root mean square of log10(observer's / human sensitivity), shift included; log10 units.
    rmse: float
    #: Number of conditions at which the level is crossed inside the contrast grid.
    reached: int
    #: Number of all conditions: ``reached + above + below``.
    total: int
    #: Conditions at which the response exceeds the level at the lowest contrast already.
    above: int
    #: Conditions at which it stays under the level at all contrasts.
    below: int
    #: Conditions among those reached at which the response falls under the level again at a higher
    #: contrast. The first crossing counts.
    recrossed: int
    #: The conditions that reach the level: frequencies, luminances, ...
    at: tuple[float, ...]
    #: 1 / contrast at the first crossing, one for each of `at`.
    sensitivity: tuple[float, ...]


def within(levels: FloatArray, low: float, high: float) -> BoolArray:
    """Mark the levels that lie in a range, its ends included."""
    return (levels >= low * (1 - 1e-9)) & (levels <= high * (1 + 1e-9))


def iso_contrast(
    contrast: ArrayLike, response: ArrayLike, level: ArrayLike
) -> tuple[FloatArray, BoolArray, BoolArray]:
    """Find the contrast at which each row of a response grid first rises to a given response.

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
        Log10 contrast of the first crossing. -inf where the lowest contrast exceeds the level
        already, +inf where no contrast reaches it.
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
    Between grid points log response is linear in log contrast, which is exact for power laws; next
    to a response of 0 or below, response is linear in log contrast.

    Examples
    --------
    >>> grid = np.array([0.01, 0.1, 1.0])
    >>> found, crossed, _ = iso_contrast(grid, [2 * grid, 0.001 * grid], [0.1])
    >>> (10 ** found).round(3), crossed
    (array([[0.05,  inf]]), array([[ True, False]]))
    """
    c = np.asarray(contrast, float)
    r = np.asarray(response, float)
    levels = np.atleast_1d(np.asarray(level, float))
    if c.ndim != 1 or len(c) < 2 or r.shape[1:] != c.shape:
        raise InputError(
            f"a response grid of shape {r.shape} does not fit {c.shape} contrasts; give (X, C) "
            "and (C,) with C >= 2"
        )
    if not (np.isfinite(r).all() and np.isfinite(levels).all()):
        raise InputError(
            "responses and levels must be finite; leave out conditions that were not measured"
        )
    if not (c[0] > 0 and (np.diff(c) > 0).all() and np.isfinite(c[-1])):
        raise InputError(
            f"contrasts must increase from above 0, not run {c[0]:g} ... {c[-1]:g}"
        )
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
    at: ArrayLike,
    contrast: ArrayLike,
    response: ArrayLike,
    human_sensitivity: ArrayLike,
    *,
    criterion: Literal["shape", "absolute"] = "shape",
    floor: float = 0.0,
) -> IsoResponse | None:
    """Find the contour of equal response that resembles human contrast sensitivity best.

    Every response of the grid above `floor` is tried as a level (400 quantiles of them on larger
    grids). Only levels reached in every row compete, or, if there is none, in as many rows as any
    level reaches: a level that is reached in half of the rows needs to fit half of the curve only,
    and would win for that reason.

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
        As for `iso_contrast`; also if `at` or the sensitivities do not fit the grid or are not
        above 0.

    Examples
    --------
    An observer with human sensitivity times two, at its level 1:

    >>> frequency, contrast = np.logspace(0, 1, 5), np.logspace(-3, 0, 10)
    >>> human = 100 / frequency
    >>> response = np.outer(2 * human, contrast) ** 2
    >>> fit = fit_iso_response(frequency, contrast, response, human, criterion="shape")
    >>> round(fit.shape_rmse, 12), fit.reached
    (0.0, 5)
    """
    xs = np.asarray(at, float)
    human = np.asarray(human_sensitivity, float)
    r = np.asarray(response, float)
    if xs.shape != r.shape[:1] or human.shape != xs.shape:
        raise InputError(
            f"{xs.shape} conditions and {human.shape} sensitivities do not fit a response grid "
            f"of {r.shape}"
        )
    if not ((human > 0) & np.isfinite(human)).all():
        raise InputError(
            "human sensitivity must be finite and above 0 in every row of the grid"
        )
    levels = np.unique(r[r > max(floor, 0.0)])
    if len(levels) > _MAX_LEVELS:
        levels = np.unique(np.quantile(levels, np.linspace(0, 1, _MAX_LEVELS)))
    log_c, crossed, recrossed = iso_contrast(contrast, r, levels)
    count = crossed.sum(axis=-1)
    if not len(levels) or count.max() < 2:
        return None
    competing = count == count.max()
    levels, log_c, crossed, recrossed = (
        values[competing] for values in (levels, log_c, crossed, recrossed)
    )
    # Sensitivity is 1 / contrast, so a log contrast below the human threshold is a positive
    # deviation.
    deviation = np.where(crossed, -log_c - np.log10(human), np.nan)
    shift = np.nanmean(deviation, axis=-1)
    rmse = np.sqrt(np.nanmean(deviation**2, axis=-1))
    shape = np.nanstd(deviation, axis=-1)
    cost = shape if criterion == "shape" else rmse
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
        reached=int(count.max()),
        total=len(xs),
        above=int(np.isneginf(log_c[best]).sum()),
        below=int(np.isposinf(log_c[best]).sum()),
        recrossed=int(recrossed[best].sum()),
        at=tuple(xs[crossed[best]].tolist()),
        sensitivity=tuple((10 ** -log_c[best][crossed[best]]).tolist()),
    )


def _fraction(low: FloatArray, high: FloatArray, level: FloatArray) -> FloatArray:
    """Locate a response between two others, 0 at the lower and 1 at the higher."""
    positive = (low > 0) & (high > 0)
    low, high, level = (
        np.where(positive, np.log(np.where(positive, values, 1.0)), values)
        for values in (low, high, level)
    )
    rise = high - low
    return np.asarray((level - low) / np.where(rise == 0, 1.0, rise))
