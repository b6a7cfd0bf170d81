"""Fits to answers drawn from the fitted functions: intervals and the goodness of fit without asymptotics.

References
----------
Wichmann & Hill (2001), Perception & Psychophysics 63, 1293-1329 (parametric bootstrap of deviance and of thresholds).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.analysis.psychometric.groups import Counts, Index, Point
from psyprobe.analysis.psychometric.isotonic import deviance
from psyprobe.analysis.psychometric.likelihood import log_rates
from psyprobe.analysis.psychometric.maximise import Model
from psyprobe.analysis.psychometric.search import search

#: Groups x resamples x curves fitted at once.
_AT_ONCE = 20_000


@dataclass(frozen=True)
class Resampled:
    """Parameters refitted to drawn answers, in the coordinates of the counts."""

    #: All shape (G, B, M); thresholds are infinite where all drawn answers are the same.
    threshold: FloatArray
    width: FloatArray
    deviance: FloatArray


def resample(
    model: Model, counts: Counts, lower: Point, upper: Point, best: Point, *, resamples: int, seed: int
) -> Resampled:
    """Draw answers from the best functions and fit them again.

    Parameters
    ----------
    model : Model
    counts : Counts
        G groups of M curves; fractional trials are rounded for the draws.
    lower, upper, best : Point
        Bounds, and the functions to draw from. Overdispersion is drawn too, and held in the refits.
    resamples : int
        B.
    seed : int
        A group's draws do not depend on which other groups stand beside it.
    """
    groups, curves = counts.centre.shape
    found = [np.empty((groups, resamples, curves)) for _ in range(3)]
    for block in _blocks(groups, max(1, _AT_ONCE // max(1, resamples * curves))):
        again = np.repeat(block, resamples)
        drawn = _draw(model, counts.take(block), best.take(block), resamples, seed)
        start = best.take(again)
        point, _, _ = search(model, drawn, lower.take(again), upper.take(again), eta=start.eta, first=start, keep=0)
        log_p, _ = log_rates(model.family, point, drawn.x)
        threshold = np.where(drawn.yes.sum(axis=-1) == 0, np.inf, point.threshold)
        threshold = np.where((drawn.trials - drawn.yes).sum(axis=-1) == 0, -np.inf, threshold)
        lost = deviance(drawn.yes, drawn.trials, np.exp(log_p))
        for values, kept in zip((threshold, np.exp(-point.slope), lost), found, strict=True):
            kept[block] = values.reshape(block.size, resamples, curves)
    return Resampled(*found)


def _blocks(size: int, step: int) -> Iterator[Index]:
    for begin in range(0, size, step):
        yield np.arange(begin, min(begin + step, size))


def _draw(model: Model, counts: Counts, best: Point, resamples: int, seed: int) -> Counts:
    """Counts of drawn answers, `resamples` groups for each group."""
    log_p, _ = log_rates(model.family, best, counts.x)
    rates, whole = np.exp(log_p), np.rint(counts.trials).astype(np.int64)
    blanks = np.rint(counts.catch_trials).astype(np.int64)
    yes = np.empty((whole.shape[0], resamples, *whole.shape[1:]))
    catch = np.empty((whole.shape[0], resamples))
    for i, eta in enumerate(best.eta):
        rng = np.random.default_rng(seed)
        rate = np.broadcast_to(rates[i], yes[i].shape)
        if eta > 1e-4:
            nu = 1 / eta**2 - 1
            rate = rng.beta(np.maximum(rate * nu, 1e-9), np.maximum((1 - rate) * nu, 1e-9))
        yes[i] = rng.binomial(whole[i], rate)
        catch[i] = rng.binomial(blanks[i], best.guess[i], size=resamples)
    again = np.repeat(np.arange(whole.shape[0]), resamples)
    fixed = counts.take(again)
    return Counts(
        fixed.x,
        yes.reshape(fixed.x.shape),
        whole[again].astype(np.float64),
        catch.ravel(),
        blanks[again].astype(np.float64),
        fixed.centre,
        fixed.scale,
        fixed.spacing,
    )
