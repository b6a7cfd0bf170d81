"""Correlate two scores over models: few of them, of families, with causes in common.

References
----------
Bonett, Wright (2000). Sample size requirements for estimating Pearson, Kendall and Spearman
correlations. Psychometrika 65: 23-28.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from psyprobe._typing import FloatArray
from psyprobe.analysis.comparison.paired import t_probability
from psyprobe.analysis.intervals import fisher, normal_quantile
from psyprobe.analysis.score import Recorded
from psyprobe.errors import InputError

#: Fewer models have no interval.
_FEWEST = 4


@dataclass(frozen=True)
class RankCorrelation(Recorded):
    """Spearman's correlation over models."""

    r: float
    #: Ends of Bonett and Wright's interval, models taken as independent.
    low: float
    high: float
    #: Two-sided, by Student's t.
    p: float
    models: int


def rank_correlation(
    x: ArrayLike, y: ArrayLike, confidence: float = 0.95
) -> RankCorrelation:
    """Correlate the ranks of two scores over models.

    Parameters
    ----------
    x, y : array_like, shape (M,)
        The two scores of each model.
    confidence : float, optional
        Coverage of the interval, in (0, 1).

    Raises
    ------
    InputError
        The scores are of too few models, or of different numbers of them.

    Examples
    --------
    >>> correlation = rank_correlation([1, 2, 3, 4, 5, 6], [2, 1, 4, 3, 6, 5])
    >>> [round(value, 3) for value in (correlation.r, correlation.low, correlation.high)]
    [0.829, -0.127, 0.986]
    """
    return _correlate(_ranks(x), _ranks(y), 0, confidence)


def partial_rank_correlation(
    x: ArrayLike, y: ArrayLike, cause: ArrayLike, confidence: float = 0.95
) -> RankCorrelation:
    """Correlate what a common cause, such as accuracy, leaves of the ranks of two scores.

    Parameters
    ----------
    x, y : array_like, shape (M,)
        The two scores of each model.
    cause : array_like, shape (M,)
        The common cause, of each model.
    confidence : float, optional
        Coverage of the interval, in (0, 1).

    Raises
    ------
    InputError
        The scores are of too few models, or of different numbers of them.

    Examples
    --------
    >>> cause = [1, 2, 3, 4, 5, 6]
    >>> round(partial_rank_correlation([2, 1, 4, 3, 6, 5], [1, 3, 2, 4, 6, 5], cause).r, 3)
    -0.075
    """
    cause_ranks = _ranks(cause)
    design = np.column_stack([np.ones(len(cause_ranks)), cause_ranks])

    def residuals(ranks: FloatArray) -> FloatArray:
        fitted, *_ = np.linalg.lstsq(design, ranks)
        return np.asarray(ranks - design @ fitted)

    return _correlate(residuals(_ranks(x)), residuals(_ranks(y)), 1, confidence)


def family_rank_correlation(
    x: ArrayLike, y: ArrayLike, families: Sequence[object], confidence: float = 0.95
) -> RankCorrelation:
    """Correlate the ranks of means over families, since models of one family are alike.

    Parameters
    ----------
    x, y : array_like, shape (M,)
        The two scores of each model.
    families : sequence
        The family of each model.
    confidence : float, optional
        Coverage of the interval, in (0, 1).

    Raises
    ------
    InputError
        The scores are of too few models, or of different numbers of them.

    Examples
    --------
    >>> families = [0, 0, 1, 2, 3]
    >>> family_rank_correlation([1, 3, 5, 6, 7], [0, 0, 1, 2, 3], families).r
    1.0
    """
    _, places = np.unique(np.asarray(families), return_inverse=True)
    counts = np.bincount(places)
    x_means = np.bincount(places, np.asarray(x, float)) / counts
    y_means = np.bincount(places, np.asarray(y, float)) / counts
    return rank_correlation(x_means, y_means, confidence)


def _ranks(values: ArrayLike) -> FloatArray:
    """Rank values from the smallest, ties by their mean rank."""
    from scipy.stats import rankdata

    return np.asarray(rankdata(np.asarray(values, float)))


def _correlate(
    x: FloatArray, y: FloatArray, causes: int, confidence: float
) -> RankCorrelation:
    """Correlate two arrays of ranks of which some common causes were taken out."""
    count = len(x)
    if len(y) != count or count < _FEWEST + causes:
        raise InputError(
            f"{count} and {len(y)} values cannot be correlated; give both scores of at least "
            f"{_FEWEST + causes} models"
        )
    r = float(np.clip(np.corrcoef(x, y)[0, 1], -1.0, 1.0))
    degrees = count - 2 - causes
    t = r * np.sqrt(degrees / max(1 - r * r, 1e-15))
    error = np.sqrt((1 + r * r / 2) / (count - 3 - causes))
    reach = normal_quantile(confidence) * error
    z = float(fisher(r))
    return RankCorrelation(
        r,
        float(np.tanh(z - reach)),
        float(np.tanh(z + reach)),
        t_probability(float(t), degrees + 1),
        count,
    )
