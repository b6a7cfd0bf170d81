"""The best of several climbs, for many groups at once, with each start's work kept within a fixed amount of memory."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from psyprobe._typing import FloatArray
from psyprobe.analysis.psychometric.groups import Counts, Point, join
from psyprobe.analysis.psychometric.maximise import Model, maximise
from psyprobe.analysis.psychometric.starts import starts

#: Groups x curves x levels worked on at once.
_AT_ONCE = 6000


def search(
    model: Model,
    counts: Counts,
    lower: Point,
    upper: Point,
    *,
    eta: FloatArray | None = None,
    first: Point | Sequence[Point] = (),
    keep: int = 2,
) -> tuple[Point, FloatArray, npt.NDArray[np.bool_]]:
    """The largest objective found from several starts.

    Parameters
    ----------
    model : Model
    counts : Counts
        P groups.
    lower, upper : Point
        Bounds.
    eta : ndarray, shape (P,), optional
        Overdispersion; 0 where not given.
    first : Point or sequence of Point, optional
        Further starts, as a solution nearby.
    keep : int, optional
        How many pairs of rates are kept of each kind of start; 0: only `first`.

    Returns
    -------
    point : Point
    value : ndarray, shape (P,)
    converged : ndarray of bool, shape (P,)
    """
    size = counts.catch_yes.size
    near = [first] if isinstance(first, Point) else list(first)
    eta = np.zeros(size) if eta is None else eta
    best = Point(*(np.array(v) for v in (lower.threshold, lower.slope, lower.guess, lower.lapse, eta)))
    value, converged = np.full(size, -np.inf), np.zeros(size, dtype=bool)
    step = max(1, _AT_ONCE // max(1, counts.x[0].size)) if size else 1
    for begin in range(0, size, step):
        index = np.arange(begin, min(begin + step, size))
        data, low, high = counts.take(index), lower.take(index), upper.take(index)
        tried = starts(model, data, low, high, eta[index], keep) if keep else []
        tried += [_within(point.take(index), low, high, eta[index]) for point in near]
        again = np.tile(np.arange(index.size), len(tried))
        points, reached, settled = maximise(model, data.take(again), join(tried), low.take(again), high.take(again))
        # Less than a rounding error better is no better: the earlier start keeps its place.
        reached = reached.reshape(len(tried), index.size)
        won = (reached >= reached.max(axis=0) - 1e-9).argmax(axis=0) * index.size + np.arange(index.size)
        best.put(index, points.take(won))
        value[index], converged[index] = reached.ravel()[won], settled[won]
    return best, value, converged


def _within(point: Point, lower: Point, upper: Point, eta: FloatArray) -> Point:
    return Point(
        np.clip(point.threshold, lower.threshold, upper.threshold),
        np.clip(point.slope, lower.slope, upper.slope),
        np.clip(point.guess, lower.guess, upper.guess),
        np.clip(point.lapse, lower.lapse, upper.lapse),
        eta,
    )
