"""How much more answers vary than a binomial allows: the largest beta-binomial likelihood along eta.

References
----------
Schütt et al. (2016), Vision Research 122, section 2.2.
"""

from __future__ import annotations

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.analysis.psychometric.groups import Counts, Index, Point
from psyprobe.analysis.psychometric.maximise import Model
from psyprobe.analysis.psychometric.search import search

_TRIED = np.array([0.0, 0.03, 0.08, 0.15, 0.25, 0.4, 0.6, 0.85])
_LARGEST = 0.99
_ROUNDS = 22
_GOLDEN = 0.5 * (np.sqrt(5) - 1)


def add_overdispersion(
    model: Model, counts: Counts, lower: Point, upper: Point, best: Point, value: FloatArray
) -> tuple[Point, FloatArray]:
    """The best point with overdispersion, one eta for each group.

    Parameters
    ----------
    model : Model
    counts : Counts
    lower, upper : Point
        Bounds of the others.
    best : Point
        Without overdispersion, where the search begins.
    value : ndarray, shape (P,)
        The objective there.

    Returns
    -------
    point : Point
    value : ndarray, shape (P,)
        Overdispersion stays 0 where none does as well.
    """
    best, value = best.copy(), value.copy()

    def attempt(eta: FloatArray) -> FloatArray:
        point, reached, _ = search(model, counts, lower, upper, eta=eta, first=best, keep=0)
        better: Index = np.flatnonzero(reached > value + 1e-9)
        best.put(better, point.take(better))
        value[better] = reached[better]
        return reached

    tried = np.stack([attempt(np.full(value.size, eta)) for eta in _TRIED])
    near = tried.argmax(axis=0)
    low = _TRIED[np.maximum(near - 1, 0)]
    high = np.append(_TRIED, _LARGEST)[near + 1]
    inner, outer = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_inner, at_outer = attempt(inner), attempt(outer)
    for _ in range(_ROUNDS):
        left = at_inner >= at_outer
        low, high = np.where(left, low, inner), np.where(left, outer, high)
        fresh = np.where(left, high - _GOLDEN * (high - low), low + _GOLDEN * (high - low))
        reached = attempt(fresh)
        inner, outer = np.where(left, fresh, outer), np.where(left, inner, fresh)
        at_inner, at_outer = np.where(left, reached, at_outer), np.where(left, at_inner, reached)
    return best, value
