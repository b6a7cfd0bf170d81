"""Intervals of threshold and width by profile likelihood, for all curves at once.

An end is where the largest likelihood with the parameter held there has fallen by half a quantile: of chi-square, or of
the losses that answers drawn from the fit show. It is finite, lopsided or infinite as the data have it, also at bounds,
where the curvature at the maximum misleads.

References
----------
Venzon & Moolgavkar (1988), Applied Statistics 37.
Wichmann & Hill (2001), Perception & Psychophysics 63, 1293-1329 (parametric bootstrap).
Davison & Hinkley (1997), Bootstrap methods and their application, section 5.4 (of the likelihood ratio: percentiles of
thresholds fitted again cover too little with ten trials a level, 0.87 for 0.95).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from psyprobe._typing import FloatArray
from psyprobe.analysis.psychometric.counts import Counts, Index, Point
from psyprobe.analysis.psychometric.isotonic import deviance
from psyprobe.analysis.psychometric.likelihood import differentiate, predicted
from psyprobe.analysis.psychometric.search import Task, search

Parameter = Literal["threshold", "slope"]

#: In units of the tested range, or of the logarithm of the width.
_TOLERANCE = 1e-5
#: How near to the root of the quantile the root of a loss must come.
_NEAR = 1e-4
_ROUNDS = 40
#: Widths from which a curve of a group starts where its threshold is held, in units of the tested range.
_WIDTHS = (1e-3, 0.2, 1.0)


@dataclass(frozen=True)
class Profile:
    """The likelihood of groups as a function of one curve's threshold or slope."""

    #: Of G groups of M curves.
    task: Task
    #: Where the likelihood is largest.
    best: Point
    #: The objective there, shape (G,).
    value: FloatArray
    #: Which is held: "threshold" or "slope".
    parameter: Parameter

    def drop(self, which: Index, held: FloatArray, steep: npt.NDArray[np.bool_] | None = None) -> FloatArray:
        """Twice the likelihood lost when curves `which` (group * M + member) have the parameter held at `held`.

        `steep` tells which of these curves have the slope held at its upper bound, too.
        """
        curves = self.task.counts.x.shape[1]
        group, member = np.divmod(which, curves)
        task = self.task.take(group)
        place = (np.arange(which.size), member)
        for bound in (task.lower, task.upper):
            getattr(bound, self.parameter)[place] = held
        if steep is not None:
            task.lower.slope[place] = np.where(steep, task.upper.slope[place], task.lower.slope[place])
        first = [self.best.take(group)]
        if curves > 1 and self.parameter == "threshold":
            # The other curves hold the common rates in place, so that only this curve's width is in doubt.
            for width in _WIDTHS:
                other = first[0].copy()
                other.slope[place] = -np.log(width)
                first.append(other)
        _, value, _ = search(task, eta=first[0].eta, first=first, keep=int(curves == 1))
        return np.asarray(2 * (self.value[group] - value))

    def interval(self, quantile: FloatArray, centre: FloatArray, which: Index) -> tuple[FloatArray, FloatArray]:
        """Ends of the intervals of some curves, in the coordinates of `Counts`.

        Parameters
        ----------
        quantile : ndarray, shape (K,)
            Of the loss, as of chi-square with one degree of freedom.
        centre : ndarray, shape (K,)
            Where to look from; inside the interval.
        which : ndarray of int, shape (K,)
            The curves, group * M + member.

        Returns
        -------
        low, high : ndarray, shape (K,)
            Infinite where the interval is open up to the bound of the parameter.
        """
        side = np.repeat([-1.0, 1.0], which.size)
        quantile, centre, which = np.tile(quantile, 2), np.tile(centre, 2), np.tile(which, 2)
        lower, upper = (getattr(end, self.parameter).ravel()[which] for end in (self.task.lower, self.task.upper))
        bound = np.where(side > 0, upper, lower)
        lost = self.drop(which, bound)
        end = side * np.inf
        closed = np.flatnonzero(lost > quantile)
        inside, outside = self._bracket(quantile[closed], centre[closed], bound[closed], side[closed], which[closed])
        end[closed] = self._refine(quantile[closed], which[closed], inside, outside)
        low, high = np.split(end, 2)
        return low, high

    def _first_step(self, quantile: FloatArray, which: Index) -> FloatArray:
        """Half of the intervals' lengths if the likelihood were a parabola."""
        block = differentiate(self.task.model, self.task.counts, self.best).blocks[1]
        here = 0 if self.parameter == "threshold" else 1
        other = np.maximum(block[..., 1 - here, 1 - here], 1e-9)
        curvature = block[..., here, here] - block[..., 0, 1] ** 2 / other
        step = np.sqrt(quantile / np.maximum(curvature, 1e-9).ravel()[which])
        return np.asarray(np.clip(1.1 * step, 0.02, 2.0))

    def _bracket(
        self, quantile: FloatArray, centre: FloatArray, bound: FloatArray, side: FloatArray, which: Index
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Points (place, lost) inside and outside of the ends, shape (ends, 2) each."""
        inside = np.stack([centre, np.zeros(which.size)], axis=-1)
        outside = np.stack([bound, np.full(which.size, np.inf)], axis=-1)
        step = self._first_step(quantile, which)
        open_: Index = np.arange(which.size)
        for _ in range(_ROUNDS):
            if open_.size == 0:
                break
            ahead = inside[open_, 0] + side[open_] * step[open_]
            place = np.where(side[open_] > 0, np.minimum(ahead, bound[open_]), np.maximum(ahead, bound[open_]))
            lost = self.drop(which[open_], place)
            beyond = (lost > quantile[open_]) | (place == bound[open_])
            found = np.stack([place, lost], axis=-1)
            outside[open_[beyond]], inside[open_[~beyond]] = found[beyond], found[~beyond]
            step[open_] *= 1.6
            open_ = open_[~beyond]
        return inside, outside

    def _refine(
        self, quantile: FloatArray, which: Index, inside: npt.NDArray[np.float64], outside: npt.NDArray[np.float64]
    ) -> FloatArray:
        """Where the loss is the quantile: regula falsi on its square root, which is nearly straight, and bisection."""
        target = np.sqrt(quantile)
        weight, stayed = np.ones((which.size, 2)), np.full(which.size, -1)
        for turn in range(_ROUNDS):
            open_ = np.flatnonzero(np.abs(outside[:, 0] - inside[:, 0]) > _TOLERANCE)
            if open_.size == 0:
                break
            a, b = inside[open_, 0], outside[open_, 0]
            fa = (np.sqrt(np.maximum(inside[open_, 1], 0.0)) - target[open_]) * weight[open_, 0]
            fb = (np.sqrt(np.minimum(outside[open_, 1], 1e6)) - target[open_]) * weight[open_, 1]
            place = a + (b - a) * np.clip(-fa / np.maximum(fb - fa, 1e-12), 0.02, 0.98)
            # A loss with a cliff in it (data that a step separates) is left to bisection.
            place = np.where(turn % 3 == 2, 0.5 * (a + b), place)
            lost = self.drop(which[open_], place)
            near = np.abs(np.sqrt(np.maximum(lost, 0.0)) - target[open_]) < _NEAR
            beyond = lost > quantile[open_]
            found = np.stack([place, lost], axis=-1)
            outside[open_[beyond | near]], inside[open_[~beyond | near]] = found[beyond | near], found[~beyond | near]
            # Illinois: an end that stays where it is for a second time counts half.
            for column, kept in ((0, beyond), (1, ~beyond)):
                again = kept & (stayed[open_] == column)
                weight[open_, column] = np.where(again, 0.5 * weight[open_, column], 1.0)
            stayed[open_] = np.where(beyond, 0, 1)
        return np.asarray(0.5 * (inside[:, 0] + outside[:, 0]))


#: Groups x resamples x curves fitted at once.
_AT_ONCE = 20_000


def resample(
    task: Task, best: Point, parameters: Sequence[Parameter], *, resamples: int, seed: int
) -> tuple[FloatArray, FloatArray]:
    """Draw answers from the best functions and fit them again.

    Fractional trials are rounded for the draws; overdispersion is drawn too, and held in the refits. A group's draws do
    not depend on which other groups stand beside it.

    Returns
    -------
    lost : ndarray, shape (parameters, G, B, M)
        Twice the likelihood lost when a parameter of a curve is held at what it was drawn from.
    deviance : ndarray, shape (G, B, M)
    """
    groups, curves = task.counts.centre.shape
    lost, deviances = np.empty((len(parameters), groups, resamples, curves)), np.empty((groups, resamples, curves))
    step = max(1, _AT_ONCE // max(1, resamples * curves))
    for begin in range(0, groups, step):
        block = np.arange(begin, min(begin + step, groups))
        again = np.repeat(block, resamples)
        start = best.take(again)
        drawn = replace(task.take(again), counts=_draw(task.take(block), best.take(block), resamples, seed))
        point, value, _ = search(drawn, eta=start.eta, first=[start], keep=0)
        shape = (block.size, resamples, curves)
        rates = predicted(task.model.family, drawn.counts, point)
        deviances[block] = deviance(drawn.counts.yes, drawn.counts.trials, rates).reshape(shape)
        for row, parameter in enumerate(parameters):
            held = np.stack([_value_held(drawn, point, start, parameter, curve) for curve in range(curves)], axis=-1)
            lost[row, block] = (2 * (value[:, None] - held)).reshape(shape)
    return lost, deviances


def _value_held(task: Task, near: Point, start: Point, parameter: Parameter, curve: int) -> FloatArray:
    """The largest objective with one curve's parameter where it is at the start, shape (P,)."""
    lower, upper = task.lower.copy(), task.upper.copy()
    for bound in (lower, upper):
        getattr(bound, parameter)[:, curve] = getattr(start, parameter)[:, curve]
    return search(replace(task, lower=lower, upper=upper), eta=start.eta, first=[near, start], keep=0)[1]


def _draw(task: Task, best: Point, resamples: int, seed: int) -> Counts:
    """Counts of drawn answers, `resamples` groups for each group."""
    counts = task.counts
    rates, whole = predicted(task.model.family, counts, best), np.rint(counts.trials).astype(np.int64)
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
    trials, catch_trials = (asked[again].astype(np.float64) for asked in (whole, blanks))
    yes = yes.reshape(fixed.x.shape)
    return replace(fixed, yes=yes, trials=trials, catch_yes=catch.ravel(), catch_trials=catch_trials)
