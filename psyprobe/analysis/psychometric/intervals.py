"""Intervals of threshold and width by profile likelihood, for all curves at once.

An end is where the largest likelihood with the parameter held there has fallen by half a quantile:
of chi-square, or of the losses that answers drawn from the fit show. It is finite, lopsided or
infinite as the data have it, also at bounds, where the curvature at the maximum misleads.

References
----------
Venzon & Moolgavkar (1988), Applied Statistics 37. Wichmann & Hill (2001), Perception &
Psychophysics 63, 1293-1329 (parametric bootstrap). Davison & Hinkley (1997), Bootstrap methods and
their application, section 5.4 (of the likelihood ratio: percentiles of thresholds fitted again
cover too little with ten trials a level, 0.87 for 0.95).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from psyprobe._typing import FloatArray
from psyprobe.analysis.psychometric.counts import Counts, Index, Point, joined
from psyprobe.analysis.psychometric.isotonic import deviance
from psyprobe.analysis.psychometric.likelihood import differentiate, levels_at, predicted
from psyprobe.analysis.psychometric.search import Task, alone, maximise, search

#: What can be held at a value.
Parameter = Literal["threshold", "slope"]

#: In units of the tested range, or of the logarithm of the width.
_TOLERANCE = 1e-5
#: How near to the root of the quantile the root of a loss must come.
_NEAR = 1e-4
_ROUNDS = 40
#: Widths from which a curve of a group starts where its threshold is held, in units of the tested
#: range.
_WIDTHS = (1e-3, 0.2, 1.0)
#: Of two functions that differ less in log-likelihood, one is as good to go on from.
_SAME = 1e-6


@dataclass(frozen=True)
class Ends:
    """Ends of intervals that are looked for together, each of one curve's threshold or slope, shape
    (K,).
    """

    #: The curves: group * M + member.
    which: Index
    #: Whether its slope is held, and not its threshold.
    slope: npt.NDArray[np.bool_]

    def take(self, index: Index) -> Ends:
        """Those ends."""
        return Ends(self.which[index], self.slope[index])

    def of(self, threshold: FloatArray, slope: FloatArray) -> FloatArray:
        """For each end, what an array of all curves has of its parameter."""
        return np.where(self.slope, slope.ravel()[self.which], threshold.ravel()[self.which])


@dataclass(frozen=True)
class Near:
    """Places near ends, shape (K,), what is lost there, and the solutions."""

    place: FloatArray
    lost: FloatArray
    point: Point

    def take(self, index: Index) -> Near:
        """Those places."""
        return Near(self.place[index], self.lost[index], self.point.take(index))

    def put(
        self,
        index: Index,
        which: npt.NDArray[np.bool_],
        place: FloatArray,
        lost: FloatArray,
        at: Point,
    ) -> None:
        """Overwrite, of some places, those chosen."""
        chosen = np.flatnonzero(which)
        self.place[index[chosen]], self.lost[index[chosen]] = place[chosen], lost[chosen]
        self.point.put(index[chosen], at.take(chosen))


@dataclass(frozen=True)
class Profile:
    """The likelihood of groups as a function of one curve's threshold or slope."""

    #: Of G groups of M curves.
    task: Task
    #: Where the likelihood is largest.
    best: Point
    #: The objective there, shape (G,).
    value: FloatArray

    def drop(
        self,
        ends: Ends,
        held: FloatArray,
        steep: npt.NDArray[np.bool_] | None = None,
        near: Sequence[Point] = (),
    ) -> tuple[FloatArray, Point]:
        """Twice the likelihood lost when curves have a parameter held at `held`, and where that is
        the least.

        `steep` tells which of these curves have the slope held at its upper bound, too; `near` are
        solutions close by, from which alone the search then starts.
        """
        group, member = np.divmod(ends.which, self.task.counts.x.shape[1])
        task = self.task.take(group)
        place = np.arange(ends.which.size)
        steep = np.zeros(held.shape, bool) if steep is None else steep
        for bound in (task.lower, task.upper):
            bound.threshold[place, member] = np.where(
                ends.slope, bound.threshold[place, member], held
            )
            bound.slope[place, member] = np.where(ends.slope, held, bound.slope[place, member])
        task.lower.slope[place, member] = np.where(
            steep, task.upper.slope[place, member], task.lower.slope[place, member]
        )
        first = self.best.take(group)
        if near:
            point, value, _ = search(task, eta=first.eta, first=near, keep=0)
        else:
            point, value = self._searched(task, first, ends.slope, member)
        return np.asarray(2 * (self.value[group] - value)), point

    def _searched(
        self, task: Task, first: Point, slope: npt.NDArray[np.bool_], member: Index
    ) -> tuple[Point, FloatArray]:
        """The largest objective wherever it may be, from the best and from other starts."""
        if task.counts.x.shape[1] == 1:
            return search(task, eta=first.eta, first=[first], keep=1)[:2]
        starts, where = zip(*_starts_of_ends(task, first, slope, member), strict=True)
        again = np.concatenate(where)
        points, reached, _ = search(
            task.take(again), eta=first.eta[again], first=[joined(starts)], keep=0
        )
        found = first.copy()
        value = np.full(slope.shape, -np.inf)
        for part in np.split(np.arange(again.size), np.cumsum([each.size for each in where])[:-1]):
            # Less than a rounding error better is no better: the earlier start keeps its place.
            better = part[reached[part] > value[again[part]] + 1e-9]
            found.put(again[better], points.take(better))
            value[again[better]] = reached[better]
        return found, value

    def interval(
        self, quantile: FloatArray, centre: FloatArray, ends: Ends
    ) -> tuple[FloatArray, FloatArray]:
        """Ends of the intervals of some curves, in the coordinates of `Counts`.

        Parameters
        ----------
        quantile : ndarray, shape (K,)
            Of the loss, as of chi-square with one degree of freedom.
        centre : ndarray, shape (K,)
            Where to look from; inside the interval.
        ends : Ends
            Of which curves and parameters.

        Returns
        -------
        low, high : ndarray, shape (K,)
            Infinite where the interval is open up to the bound of the parameter.
        """
        side = np.repeat([-1.0, 1.0], ends.which.size)
        quantile = np.tile(quantile, 2)
        centre = np.tile(centre, 2)
        ends = Ends(np.tile(ends.which, 2), np.tile(ends.slope, 2))
        end = self._found(quantile, centre, side, ends, wide=False)
        closed = np.flatnonzero(np.isfinite(end))
        if closed.size:
            # Wide searches tell whether the solutions beside an end led past a better one, and
            # whether the loss falls again towards the bound, so that the end is open.
            bound = self._bound(ends, side)
            both = np.tile(closed, 2)
            lost, _ = self.drop(ends.take(both), np.concatenate([end[closed], bound[closed]]))
            at_end, at_bound = np.split(np.sqrt(np.maximum(lost, 0.0)), 2)
            target = np.sqrt(quantile[closed])
            end[closed[at_bound <= target]] = side[closed[at_bound <= target]] * np.inf
            again = closed[(at_bound > target) & (target - at_end > 3 * _NEAR)]
            if again.size:
                end[again] = self._found(
                    quantile[again], centre[again], side[again], ends.take(again), wide=True
                )
        low, high = np.split(end, 2)
        return low, high

    def _found(
        self, quantile: FloatArray, centre: FloatArray, side: FloatArray, ends: Ends, *, wide: bool
    ) -> FloatArray:
        """Ends, infinite where they are open."""
        inside, outside = self._bracket(quantile, centre, self._bound(ends, side), side, ends, wide)
        end = side * np.inf
        closed = np.flatnonzero(outside.lost > quantile)
        if closed.size:
            end[closed] = self._narrowed(
                quantile[closed], ends.take(closed), inside.take(closed), outside.take(closed), wide
            )
        return end

    def _bound(self, ends: Ends, side: FloatArray) -> FloatArray:
        lower, upper = (
            ends.of(end.threshold, end.slope) for end in (self.task.lower, self.task.upper)
        )
        return np.where(side > 0, upper, lower)

    def _first_step(self, quantile: FloatArray, ends: Ends) -> FloatArray:
        """A little more than half of the intervals' lengths if the likelihood were a parabola."""
        model = self.task.model
        counts = self.task.counts
        block = differentiate(
            model, counts, self.best, levels_at(model.family, counts, self.best)
        ).blocks[:, 1]
        curvature = [block[i] - block[1] ** 2 / np.maximum(block[2 - i], 1e-9) for i in (0, 2)]
        step = np.sqrt(quantile / np.maximum(ends.of(*curvature), 1e-9))
        return np.asarray(np.clip(1.3 * step, 0.02, 2.0))

    def _bracket(
        self,
        quantile: FloatArray,
        centre: FloatArray,
        bound: FloatArray,
        side: FloatArray,
        ends: Ends,
        wide: bool,
    ) -> tuple[Near, Near]:
        """Points inside and outside of the ends; of open ones, the outside is the bound."""
        start = self.best.take(ends.which // self.task.counts.x.shape[1])
        inside, outside = (
            Near(np.array(centre), np.zeros(centre.size), start.copy()) for _ in range(2)
        )
        step = self._first_step(quantile, ends)
        open_: Index = np.arange(centre.size)
        for turn in range(_ROUNDS):
            if open_.size == 0:
                break
            ahead = inside.place[open_] + side[open_] * step[open_]
            place = np.where(
                side[open_] > 0, np.minimum(ahead, bound[open_]), np.maximum(ahead, bound[open_])
            )
            # Where the first step does not reach an end, there may be none up to the bound.
            place = np.where(turn == 1, bound[open_], place)
            near = () if wide or turn == 1 else (inside.point.take(open_),)
            lost, point = self.drop(ends.take(open_), place, near=near)
            beyond = (lost > quantile[open_]) | (place == bound[open_])
            outside.put(open_, beyond, place, lost, point)
            inside.put(open_, ~beyond, place, lost, point)
            # From a bound that is beyond, the search goes on inside.
            open_ = open_[(lost > quantile[open_]) if turn == 1 else ~beyond]
            step[open_] *= 1.6
        return inside, outside

    def _narrowed(
        self, quantile: FloatArray, ends: Ends, inside: Near, outside: Near, wide: bool
    ) -> FloatArray:
        """Where the loss is the quantile: regula falsi on its square root, which is nearly
        straight, and bisection.
        """
        target = np.sqrt(quantile)
        weight = np.ones((target.size, 2))
        stayed = np.full(target.size, -1)
        for turn in range(_ROUNDS):
            open_ = np.flatnonzero(np.abs(outside.place - inside.place) > _TOLERANCE)
            if open_.size == 0:
                break
            a = inside.place[open_]
            b = outside.place[open_]
            fa = (np.sqrt(np.maximum(inside.lost[open_], 0.0)) - target[open_]) * weight[open_, 0]
            fb = (np.sqrt(np.minimum(outside.lost[open_], 1e6)) - target[open_]) * weight[open_, 1]
            place = a + (b - a) * np.clip(-fa / np.maximum(fb - fa, 1e-12), 0.02, 0.98)
            # A loss with a cliff in it (data that a step separates) is left to bisection.
            place = np.where(turn % 3 == 2, 0.5 * (a + b), place)
            near = () if wide else (inside.point.take(open_), outside.point.take(open_))
            lost, point = self.drop(ends.take(open_), place, near=near)
            close = np.abs(np.sqrt(np.maximum(lost, 0.0)) - target[open_]) < _NEAR
            beyond = lost > quantile[open_]
            outside.put(open_, beyond | close, place, lost, point)
            inside.put(open_, ~beyond | close, place, lost, point)
            # Illinois: an end that stays where it is for a second time counts half.
            for column, kept in ((0, beyond), (1, ~beyond)):
                again = kept & (stayed[open_] == column)
                weight[open_, column] = np.where(again, 0.5 * weight[open_, column], 1.0)
            stayed[open_] = np.where(beyond, 0, 1)
        return np.asarray(0.5 * (inside.place + outside.place))


def _starts_of_ends(
    task: Task, first: Point, slope: npt.NDArray[np.bool_], member: Index
) -> Iterator[tuple[Point, Index]]:
    """From where to climb, and for which ends: from the best, and from other widths where a
    threshold is held.

    The other curves of a group hold the common rates in place, so that only this curve's width is
    in doubt. First it climbs alone, with the rates held, too, which takes little time; of starts
    that lead it to one function, one is enough.
    """
    start = first.copy()
    free = np.flatnonzero(~slope)
    own = member[free]
    lone, here = alone(task.take(free), first.take(free), own)
    others = [replace(here, slope=np.full(here.slope.shape, -np.log(width))) for width in _WIDTHS]
    tried = [each.within(lone.lower, lone.upper) for each in (here, *others)]
    climbed, value, _ = maximise(
        lone.take(np.tile(np.arange(free.size), len(tried))), joined(tried)
    )
    slopes = climbed.slope.reshape(len(tried), -1)
    values = value.reshape(len(tried), -1)
    start.slope[free, own] = slopes[0]
    yield start.copy(), np.arange(slope.size)
    for i in range(1, len(tried)):
        with np.errstate(invalid="ignore"):
            new = np.flatnonzero((np.abs(values[:i] - values[i]) > _SAME).all(axis=0))
        start.slope[free[new], own[new]] = slopes[i, new]
        yield start.take(free[new]), free[new]


#: Groups x resamples x curves fitted at once.
_AT_ONCE = 20_000


def resample(
    task: Task, best: Point, parameters: Sequence[Parameter], *, resamples: int, seed: int
) -> tuple[FloatArray, FloatArray]:
    """Draw answers from the best functions and fit them again.

    Fractional trials are rounded for the draws; overdispersion is drawn too, and held in the
    refits. A group's draws do not depend on which other groups stand beside it.

    Returns
    -------
    lost : ndarray, shape (parameters, G, B, M)
        Twice the likelihood lost when a parameter of a curve is held at what it was drawn from.
    deviance : ndarray, shape (G, B, M)
    """
    groups, curves = task.counts.centre.shape
    lost = np.empty((len(parameters), groups, resamples, curves))
    deviances = np.empty((groups, resamples, curves))
    step = max(1, _AT_ONCE // max(1, resamples * curves))
    for begin in range(0, groups, step):
        block = np.arange(begin, min(begin + step, groups))
        again = np.repeat(block, resamples)
        start = best.take(again)
        drawn = replace(
            task.take(again), counts=_draw(task.take(block), best.take(block), resamples, seed)
        )
        point, value, _ = search(drawn, eta=start.eta, first=[start], keep=0)
        shape = (block.size, resamples, curves)
        rates = predicted(task.model.family, drawn.counts, point)
        deviances[block] = deviance(drawn.counts.yes, drawn.counts.trials, rates).reshape(shape)
        for row, parameter in enumerate(parameters):
            held = np.stack(
                [_value_held(drawn, point, start, parameter, curve) for curve in range(curves)],
                axis=-1,
            )
            lost[row, block] = (2 * (value[:, None] - held)).reshape(shape)
    return lost, deviances


def _value_held(
    task: Task, near: Point, start: Point, parameter: Parameter, curve: int
) -> FloatArray:
    """The largest objective with one curve's parameter where it is at the start, shape (P,)."""
    lower = task.lower.copy()
    upper = task.upper.copy()
    for bound in (lower, upper):
        getattr(bound, parameter)[:, curve] = getattr(start, parameter)[:, curve]
    return search(
        replace(task, lower=lower, upper=upper), eta=start.eta, first=[near, start], keep=0
    )[1]


def _draw(task: Task, best: Point, resamples: int, seed: int) -> Counts:
    """Counts of drawn answers, `resamples` groups for each group."""
    counts = task.counts
    rates = predicted(task.model.family, counts, best)
    whole = np.rint(counts.trials).astype(np.int64)
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
    return replace(
        fixed, yes=yes, trials=trials, catch_yes=catch.ravel(), catch_trials=catch_trials
    )
