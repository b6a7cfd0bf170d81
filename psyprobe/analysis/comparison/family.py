"""Compare many observers at once: Holm's correction, and the ranks that differences allow."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from psyprobe._typing import FloatArray


def holm(p: Sequence[float | None]) -> list[float | None]:
    """Adjust p-values of a family of tests by Holm's method.

    None, where no test exists, stays None and is not counted.

    References
    ----------
    Holm (1979). A simple sequentially rejective multiple test procedure. Scand. J. Stat. 6: 65-70.

    Examples
    --------
    >>> holm([0.01, None, 0.04, 0.03])
    [0.03, None, 0.06, 0.06]
    """
    places = [place for place, value in enumerate(p) if value is not None]
    values = np.array([p[place] for place in places], float)
    order = np.argsort(values, kind="stable")
    steps = values[order] * np.arange(len(values), 0, -1)
    adjusted = np.empty(len(values))
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    result: list[float | None] = [None] * len(p)
    for place, value in zip(places, adjusted.tolist(), strict=True):
        result[place] = value
    return result


def rank_ranges(better: FloatArray) -> list[tuple[int, int]]:
    """Compute the range of ranks each observer may have, from who is surely better than whom.

    Parameters
    ----------
    better : ndarray of bool, shape (K, K)
        Whether the observer of the row is better than that of the column, with certainty enough.

    Examples
    --------
    >>> rank_ranges(np.array([[0, 1, 1], [0, 0, 0], [0, 0, 0]]))
    [(1, 1), (2, 3), (2, 3)]
    """
    wins = np.asarray(better, bool)
    first = 1 + wins.sum(axis=0)
    last = len(wins) - wins.sum(axis=1)
    return list(zip(first.tolist(), last.tolist(), strict=True))
