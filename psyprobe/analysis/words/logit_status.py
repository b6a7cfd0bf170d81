"""What can be said of a psychometric function of logits: whether a threshold exists, and if not, why."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from psyprobe._typing import FloatArray
from psyprobe.analysis.words.logit_fit import LogitFit

#: A threshold outside the levels is an extrapolation where the curve got this far, and else only a bound.
_UNDERWAY = 0.1
#: Smallest standard deviation of logits from image to image that is believed, and where logits count for less.
_LEAST_SPREAD, _NEAR = 0.5, 3.0
#: Chance of as large a fall under logits that do not fall.
_SIGNIFICANT = 0.01


def logit_status(fit: LogitFit, x: FloatArray, logit: FloatArray) -> npt.NDArray[np.str_]:
    """Say of each curve whether it has a threshold, in the words that `fit_psychometric` uses.

    Parameters
    ----------
    fit : LogitFit
        Of G groups of F curves.
    x : ndarray, shape (G, F, L)
        Log10 contrast.
    logit : ndarray, shape (G, F, L, R)
        Logit of yes for each image; NaN where there is none.

    Returns
    -------
    ndarray of str, shape (G, F)
        "ok"; "extrapolated": the threshold lies outside the levels, but the curve was under way; "censored_above",
        "censored_below": above or below all levels; "always_yes": the same with yes to catch trials; "biased": more
        than half yes without a pattern; "non_monotone", "reversed": logits fall where they should rise, by more than
        images differ (chi-square test against rising logits, 1 %); "empty": fewer than three levels.
    """
    has = np.isfinite(logit)
    images = has.sum(axis=-1)
    use = images > 0
    mean = np.where(has, logit, 0.0).sum(axis=-1) / np.maximum(images, 1)
    low = np.where(use, x, np.inf).min(axis=-1)
    high = np.where(use, x, -np.inf).max(axis=-1)
    reach = np.log(19) * 2 / fit.width
    with np.errstate(over="ignore", invalid="ignore"):
        at_top = 1 / (1 + np.exp(-reach * (high - fit.threshold)))
        at_bottom = 1 / (1 + np.exp(-reach * (low - fit.threshold)))
    yes = (fit.guess > 0.5)[:, None] & np.ones(fit.threshold.shape, dtype=bool)
    status = np.where(yes, "biased", "ok").astype("<U16")
    status[at_top < 0.5] = "extrapolated"
    status[at_bottom > 0.5] = "extrapolated"
    status[at_top < _UNDERWAY] = "censored_above"
    status[at_bottom > 1 - _UNDERWAY] = "censored_below"
    status[yes & (at_top < _UNDERWAY)] = "always_yes"
    # What is delivered need not rise with what was asked.
    order = np.where(use, x, np.inf).argsort(axis=-1)
    in_order = [np.take_along_axis(values, order, axis=-1) for values in (mean, images)]
    falls, reverse = _falls(in_order[0], in_order[1], _spread(logit, mean))
    status[falls] = np.where(reverse, "reversed", "non_monotone")[falls]
    status[use.sum(axis=-1) < 3] = "empty"
    return status


def _spread(logit: FloatArray, mean: FloatArray) -> FloatArray:
    """Standard deviation between images of a cell, pooled over the cells of a group, shape (G,)."""
    has = np.isfinite(logit)
    squares = np.where(has, logit - mean[..., None], 0.0) ** 2
    freedom = (has.sum(axis=-1) - 1).clip(0).sum(axis=(1, 2))
    pooled: FloatArray = np.sqrt(squares.sum(axis=(1, 2, 3)) / np.maximum(freedom, 1))
    return np.maximum(pooled, _LEAST_SPREAD)


def _falls(
    mean: FloatArray, images: npt.NDArray[np.int64], spread: FloatArray
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Whether logits fall where they should rise, and whether they do so all along."""
    from scipy.special import chdtrc

    from psyprobe.analysis.psychometric.isotonic import rising_means

    weight = images / (spread[:, None, None] ** 2 * (1 + (mean / _NEAR) ** 2))
    use = images > 0
    rising, falling = (
        np.where(use, weight * (values - np.where(use, rising_means(values, weight), 0.0)) ** 2, 0.0).sum(axis=-1)
        for values in (mean, -mean)
    )
    freedom = (use.sum(axis=-1) - 1).clip(1)
    unlikely: npt.NDArray[np.bool_] = chdtrc(freedom, rising) < _SIGNIFICANT
    return unlikely, chdtrc(freedom, falling) >= _SIGNIFICANT
