"""Test whether contrast sensitivity of chat models predicts answers about filtered images.

References
----------
Hernandez-Camara et al. (2026). Contrast sensitivity in multimodal large language models: a
psychophysics-inspired evaluation. Neural Networks 201:108903; the claim that is tested here is its
abstract's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from psyprobe._typing import FloatArray
from psyprobe.analysis.intervals import fisher, student_quantile
from psyprobe.analysis.score import Recorded, interval_text
from psyprobe.errors import InputError
from psyprobe.files.listing import frame_of

if TYPE_CHECKING:
    import pandas as pd

#: Fewer models have no interval and no null: any three points can be brought into order.
FEWEST_MODELS = 4
Statistic = Callable[[FloatArray, FloatArray], float]


@dataclass(frozen=True)
class Link(Recorded):
    """One correlation between sensitivity and accuracy."""

    #: "all", "models", "bands" or "corruptions".
    over: str
    #: Pearson's; None where one of the two does not vary.
    r: float | None
    #: Ends of its interval, by bootstrap over models.
    low: float | None
    high: float | None
    #: Probability of a correlation as far from 0 under permutation.
    p: float | None
    #: Cells of a model and a band that are known in both.
    cells: int


@dataclass(frozen=True)
class Robustness(Recorded):
    """Correlations of sensitivity and accuracy over some models and bands."""

    models: tuple[str, ...]
    #: Centres of the bands, cpd.
    bands: tuple[float, ...]
    #: Log10 sensitivity and accuracy, by model and band; NaN where unknown.
    sensitivity: tuple[tuple[float, ...], ...]
    accuracy: tuple[tuple[float, ...], ...]
    links: tuple[Link, ...]
    confidence: float

    def to_frame(self) -> pd.DataFrame:
        """Convert the correlations to a pandas table, one row each."""
        return frame_of(self.links).set_index("over")


def csf_robustness(
    models: Sequence[str],
    bands: ArrayLike,
    sensitivity: ArrayLike,
    accuracy: ArrayLike,
    *,
    corrupted: ArrayLike | None = None,
    confidence: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> Robustness:
    """Correlate the contrast sensitivity of models with their accuracy on images filtered to bands.

    Parameters
    ----------
    models : sequence of str
        Names.
    bands : array_like, shape (B,)
        Centre frequencies, cpd.
    sensitivity : array_like, shape (M, B)
        Log10 contrast sensitivity at each; NaN where unknown.
    accuracy : array_like, shape (M, B)
        Share of right answers about images that hold this band; NaN where unknown.
    corrupted : array_like, shape (M,), optional
        Share of right answers about corrupted images; NaN where unknown.
    confidence : float
        Of the intervals.
    resamples : int
        Of the bootstrap over models, and of permutations.
    seed : int
        Of both.

    Returns
    -------
    Robustness
        With three correlations: over "all" cells; over "models", what each band has on average
        taken away, which is the claim that a model's own curve tells of its own accuracy; and over
        "bands", what each model has on average taken away. Where `corrupted` is given, over
        "corruptions": of each model's mean log sensitivity with that.

    Raises
    ------
    InputError
        The shapes do not agree, or there are fewer than two models or bands.

    Notes
    -----
    Intervals: models are drawn with replacement, with all their bands; with s the standard
    deviation of Fisher's z of the samples times sqrt(M / (M - 1)), they are z ± t s, Student's t
    with M - 1 degrees of freedom. Null: over "models" and "all", curves are dealt out to other
    models, whole; over "bands", the bands of all curves are permuted alike. With fewer than four
    models there is neither. Noise of both measurements makes correlations smaller.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> log_s = rng.normal(1.8, 0.3, (12, 5))
    >>> names = [f"m{i}" for i in range(12)]
    >>> accuracy = 0.5 + 0.2 * (log_s - 1.8)
    >>> link = csf_robustness(names, [1, 2, 4, 8, 16], log_s, accuracy)
    >>> [(link.over, round(link.r, 3)) for link in link.links]
    [('all', 1.0), ('models', 1.0), ('bands', 1.0)]
    """
    known_bands, log_s, share = (
        np.asarray(values, float) for values in (bands, sensitivity, accuracy)
    )
    shape = (len(models), known_bands.size)
    if log_s.shape != shape or share.shape != shape:
        raise InputError(
            f"sensitivity and accuracy have shapes {log_s.shape} and {share.shape}; both must "
            f"be {shape}"
        )
    if min(shape) < 2:
        raise InputError(
            f"{shape[0]} models and {shape[1]} bands leave nothing to correlate; give at least "
            "2 of each"
        )
    links = tuple(
        _correlate(
            over, log_s, share, confidence, resamples, np.random.default_rng([seed, i])
        )
        for i, over in enumerate(("all", "models", "bands"))
    )
    if corrupted is not None:
        finite = np.isfinite(log_s)
        mean = np.where(finite, log_s, 0).sum(axis=1) / np.where(
            finite.any(axis=1), finite.sum(axis=1), np.nan
        )
        pair = mean[:, None], np.asarray(corrupted, float).reshape(-1, 1)
        link = _correlate(
            "all", *pair, confidence, resamples, np.random.default_rng([seed, 3])
        )
        links = (*links, replace(link, over="corruptions"))
    rows = [tuple(map(tuple, values.tolist())) for values in (log_s, share)]
    return Robustness(
        tuple(models), tuple(known_bands.tolist()), rows[0], rows[1], links, confidence
    )


def _correlate(
    over: str,
    log_s: FloatArray,
    share: FloatArray,
    confidence: float,
    resamples: int,
    rng: np.random.Generator,
) -> Link:
    """Correlate log sensitivity with accuracy: bootstrap interval and permutation p."""

    def r_of(x: FloatArray, y: FloatArray) -> float:
        return _correlation(*_centred(over, x, y))

    r = r_of(log_s, share)
    cells = int((np.isfinite(log_s) & np.isfinite(share)).sum())
    count = len(log_s)
    link = Link(over, r if np.isfinite(r) else None, None, None, None, cells)
    if link.r is None or count < FEWEST_MODELS:
        return link
    model_index = rng.integers(count, size=(resamples, count))
    samples = np.array([r_of(log_s[rows], share[rows]) for rows in model_index])
    spread = fisher(samples[np.isfinite(samples)]).std(ddof=1)
    reach = student_quantile(count, confidence) * spread * np.sqrt(count / (count - 1))
    centre = fisher(r)
    axis = 1 if over == "bands" else 0
    null = np.array(
        [
            r_of(np.take(log_s, rng.permutation(log_s.shape[axis]), axis), share)
            for _ in range(resamples)
        ]
    )
    p = (1 + int((np.abs(null) >= abs(r) - 1e-12).sum())) / (1 + resamples)
    low, high = np.tanh([centre - reach, centre + reach]).tolist()
    return replace(link, low=low, high=high, p=p)


def _centred(over: str, x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Subtract the means over bands or models, where both are known."""
    finite = np.isfinite(x) & np.isfinite(y)
    if over != "all":
        axis = 0 if over == "models" else 1
        count = np.maximum(finite.sum(axis=axis, keepdims=True), 1)
        x, y = (
            values - np.where(finite, values, 0).sum(axis=axis, keepdims=True) / count
            for values in (x, y)
        )
    return x[finite], y[finite]


def _correlation(x: FloatArray, y: FloatArray) -> float:
    """Compute Pearson's r; NaN for under three points and for constants."""
    if x.size < 3:
        return float("nan")
    x = x - x.mean()
    y = y - y.mean()
    spread = float(np.sqrt((x @ x) * (y @ y)))
    return float(x @ y) / spread if spread > 1e-12 else float("nan")


def sensitivity_at(
    frequency: ArrayLike, sensitivity: ArrayLike, bands: ArrayLike
) -> FloatArray:
    """Interpolate log10 sensitivity at the centres of bands, linearly in log frequency.

    Parameters
    ----------
    frequency : array_like, shape (F,)
        Cpd, ascending.
    sensitivity : array_like, shape (F,)
        1 / threshold contrast; NaN where there is none.
    bands : array_like, shape (B,)
        Cpd.

    Returns
    -------
    ndarray, shape (B,)
        NaN beyond the measured frequencies: nothing is extrapolated.

    Examples
    --------
    >>> sensitivity_at([1, 4], [10, 1000], [0.5, 1, 2, 4]).tolist()
    [nan, 1.0, 2.0, 3.0]
    """
    f, s, centres = (
        np.asarray(values, float) for values in (frequency, sensitivity, bands)
    )
    defined = np.isfinite(s) & (s > 0)
    if not defined.any():
        return np.full(centres.shape, np.nan)
    x = np.log2(f[defined])
    y = np.log10(s[defined])
    return np.asarray(np.interp(np.log2(centres), x, y, left=np.nan, right=np.nan))


def link_table(links: Sequence[Link]) -> Mapping[str, Mapping[str, str]]:
    """Lay out correlations as a table of text."""
    cells = {}
    for link in links:
        cells[link.over] = {
            "r": interval_text(link.r, link.low, link.high),
            "p": "-" if link.p is None else f"{link.p:.3g}",
            "cells": str(link.cells),
        }
    return cells
