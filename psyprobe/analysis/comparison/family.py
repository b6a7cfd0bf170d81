"""Correct for many comparisons by Holm or by Benjamini and Hochberg, and rank by differences."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from string import ascii_uppercase

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


def benjamini_hochberg(p: Sequence[float | None]) -> list[float | None]:
    """Adjust p-values of a family of tests by Benjamini and Hochberg's method.

    None, where no test exists, stays None and is not counted.

    References
    ----------
    Benjamini, Hochberg (1995). Controlling the false discovery rate. J. R. Stat. Soc. B 57:
    289-300.

    Examples
    --------
    >>> benjamini_hochberg([0.01, None, 0.04, 0.03])
    [0.03, None, 0.04, 0.04]
    """
    from scipy.stats import false_discovery_control

    values = [value for value in p if value is not None]
    adjusted = iter(false_discovery_control(values).tolist() if values else ())
    return [None if value is None else next(adjusted) for value in p]


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


def shared_letters(different: FloatArray) -> list[str]:
    """Give observers that are not told apart a letter in common, and others none.

    Parameters
    ----------
    different : ndarray of bool, shape (K, K)
        Whether the observers of row and column are told apart; either triangle will do.

    References
    ----------
    Piepho (2004). An algorithm for a letter-based representation of all-pairwise comparisons. J.
    Comput. Graph. Stat. 13: 456-466.

    Examples
    --------
    >>> shared_letters(np.array([[0, 0, 1], [0, 0, 0], [1, 0, 0]]))
    ['A', 'AB', 'B']
    """
    told_apart = np.asarray(different, bool)
    groups = [set(range(len(told_apart)))]
    for first, second in combinations(range(len(told_apart)), 2):
        if not (told_apart[first, second] or told_apart[second, first]):
            continue
        parts = []
        for group in groups:
            pair = {first, second}
            parts += [group - {name} for name in pair] if pair <= group else [group]
        groups = [
            part
            for place, part in enumerate(parts)
            if part not in parts[:place] and not any(part < other for other in parts)
        ]
    letters = [""] * len(told_apart)
    for place, group in enumerate(sorted(groups, key=sorted)):
        number, index = divmod(place, len(ascii_uppercase))
        for name in group:
            letters[name] += ascii_uppercase[index] + str(number or "")
    return letters
