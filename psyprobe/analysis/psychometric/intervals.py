"""Find intervals of threshold and width by profile likelihood, for all curves at once.

An end is where the largest likelihood with the parameter fixed there has fallen by half a quantile:
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

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from psyprobe._typing import BoolArray, FloatArray
from psyprobe.analysis.psychometric.counts import (
    Counts,
    Groups,
    Index,
    Point,
    concatenate_points,
)
from psyprobe.analysis.psychometric.isotonic import Interval, deviance
from psyprobe.analysis.psychometric.likelihood import SearchProblem
from psyprobe.analysis.psychometric.search import (
    Maxima,
    maximise,
    search,
    separate_curves,
)

#: How near the points inside and outside of an end must come, in units of the tested range, or of
#: the logarithm of the width.
_TOLERANCE = 1e-5
#: How near the square root of a loss must come to that of the quantile.
_ROOT_TOLERANCE = 1e-4
_ROUNDS = 40
#: Widths from which a curve of a group starts where its threshold is fixed, in units of the tested
#: range.
_WIDTHS = (1e-3, 0.2, 1.0)
#: Functions that differ less in log-likelihood are the same start.
_SAME = 1e-6
#: Log-likelihoods that differ less are equal.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Parameters(Groups):
    """Thresholds or slopes of curves that are fixed together, shape (K,)."""

    #: Index of the curve: group * M + member.
    curve: Index
    #: Whether the parameter is the slope, and not the threshold.
    is_slope: BoolArray

    def select(self, threshold: FloatArray, slope: FloatArray) -> FloatArray:
        """Select threshold or slope of each curve, as this says, from arrays of all curves."""
        thresholds = threshold.ravel()[self.curve]
        slopes = slope.ravel()[self.curve]
        return np.where(self.is_slope, slopes, thresholds)


@dataclass(frozen=True)
class Ends(Parameters):
    """Interval ends that are searched together, shape (K,)."""

    #: Loss at the end, as of chi-square with one degree of freedom.
    quantile: FloatArray
    #: Start of the search, inside the interval.
    centre: FloatArray
    #: -1 for a lower end, 1 for an upper one.
    side: FloatArray


@dataclass(frozen=True)
class Positions(Groups):
    """Positions near ends, shape (K,), with the loss and the solution at each."""

    position: FloatArray
    loss: FloatArray
    point: Point


@dataclass(frozen=True)
class Profile:
    """The likelihood of groups as a function of the threshold or slope of one curve."""

    #: G groups of M curves.
    problem: SearchProblem
    #: The point of largest likelihood, and the objective there.
    best: Maxima

    def evaluate(
        self,
        parameters: Parameters,
        position: FloatArray,
        *,
        steep: BoolArray | None = None,
        nearby: Sequence[Point] = (),
    ) -> Positions:
        """Compute the loss (twice the log-likelihood) of fixing a curve's parameter at a position.

        Parameters
        ----------
        parameters : Parameters
            Of K curves.
        position : ndarray, shape (K,)
            Values of the parameters.
        steep : ndarray of bool, shape (K,), optional
            Whether the slope is fixed at its upper bound, too.
        nearby : sequence of Point, optional
            Solutions close by, from which alone the search then starts.
        """
        curves = self.problem.counts.x.shape[1]
        group, member = np.divmod(parameters.curve, curves)
        problem = self.problem[group]
        cell = (np.arange(group.size), member)
        is_slope = parameters.is_slope
        for bound in (problem.lower, problem.upper):
            bound.threshold[cell] = np.where(is_slope, bound.threshold[cell], position)
            bound.slope[cell] = np.where(is_slope, position, bound.slope[cell])
        if steep is not None:
            steepest = problem.upper.slope[cell]
            problem.lower.slope[cell] = np.where(
                steep, steepest, problem.lower.slope[cell]
            )
        best = self.best[group]
        if nearby:
            maxima = search(problem, nearby, grid_starts=0)
        elif curves == 1:
            maxima = search(problem, [best.point], grid_starts=1)
        else:
            maxima = _search_group(problem, best.point, is_slope, member)
        return Positions(position, 2 * (best.value - maxima.value), maxima.point)

    def interval(
        self, parameters: Parameters, quantile: FloatArray, centre: FloatArray
    ) -> Interval:
        """Find the profile-likelihood intervals of parameters of curves."""
        ends = Ends(
            curve=np.tile(parameters.curve, 2),
            is_slope=np.tile(parameters.is_slope, 2),
            quantile=np.tile(quantile, 2),
            centre=np.tile(centre, 2),
            side=np.repeat([-1.0, 1.0], quantile.size),
        )
        end = self._find_ends(ends, wide=False)
        closed = np.flatnonzero(np.isfinite(end))
        if closed.size:
            # Wide searches tell whether the solutions beside an end led past a better one, and
            # whether the loss falls again towards the bound, so that the end is open.
            bound = self._search_bound(ends)
            checks = self.evaluate(
                ends[np.tile(closed, 2)], np.concatenate([end[closed], bound[closed]])
            )
            end_root, bound_root = np.split(np.sqrt(np.maximum(checks.loss, 0.0)), 2)
            target = np.sqrt(ends.quantile[closed])
            is_open = bound_root <= target
            end[closed[is_open]] = ends.side[closed[is_open]] * np.inf
            missed = ~is_open & (target - end_root > 3 * _ROOT_TOLERANCE)
            repeated = closed[missed]
            if repeated.size:
                end[repeated] = self._find_ends(ends[repeated], wide=True)
        return Interval(*np.split(end, 2))

    def _find_ends(self, ends: Ends, *, wide: bool) -> FloatArray:
        """Find the ends of intervals, infinite where they are open."""
        inside, outside = self._bracket(ends, wide)
        end = ends.side * np.inf
        closed = np.flatnonzero(outside.loss > ends.quantile)
        if closed.size:
            end[closed] = self._narrow(
                ends[closed], inside[closed], outside[closed], wide
            )
        return end

    def _search_bound(self, ends: Ends) -> FloatArray:
        """Look up the bound of the parameter that each interval end searches."""
        lower = self.problem.lower
        upper = self.problem.upper
        lower_bound = ends.select(lower.threshold, lower.slope)
        upper_bound = ends.select(upper.threshold, upper.slope)
        return np.where(ends.side > 0, upper_bound, lower_bound)

    def _first_step(self, ends: Ends) -> FloatArray:
        """Estimate a first step to an interval's end, as if the log-likelihood were a parabola."""
        point = self.best.point
        derivatives = self.problem.differentiate(point, self.problem.levels_at(point))
        threshold, mixed, slope = derivatives.blocks[:, 1]
        threshold_curvature = threshold - mixed**2 / np.maximum(slope, 1e-9)
        slope_curvature = slope - mixed**2 / np.maximum(threshold, 1e-9)
        curvature = ends.select(threshold_curvature, slope_curvature)
        step = np.sqrt(ends.quantile / np.maximum(curvature, 1e-9))
        return np.asarray(np.clip(1.3 * step, 0.02, 2.0))

    def _bracket(self, ends: Ends, wide: bool) -> tuple[Positions, Positions]:
        """Find positions inside and outside each interval end; of open ends, at the bound."""
        start = self.best.point[ends.curve // self.problem.counts.x.shape[1]]
        inside = Positions(ends.centre.copy(), np.zeros(ends.centre.size), start)
        outside = inside.copy()
        bound = self._search_bound(ends)
        step = self._first_step(ends)
        pending: Index = np.arange(ends.centre.size)
        for turn in range(_ROUNDS):
            if pending.size == 0:
                break
            # Where the first step does not reach an end, there may be none up to the bound.
            try_bound = turn == 1
            side = ends.side[pending]
            position = pending_bound = bound[pending]
            if not try_bound:
                ahead = inside.position[pending] + side * step[pending]
                position = side * np.minimum(side * ahead, side * pending_bound)
            nearby = () if wide or try_bound else (inside.point[pending],)
            probe = self.evaluate(ends[pending], position, nearby=nearby)
            exceeds = probe.loss > ends.quantile[pending]
            is_outside = exceeds | (position == pending_bound)
            outside[pending[is_outside]] = probe[is_outside]
            inside[pending[~is_outside]] = probe[~is_outside]
            # From a bound that is outside, the search goes on inside.
            pending = pending[exceeds if try_bound else ~is_outside]
            step[pending] *= 1.6
        return inside, outside

    def _narrow(
        self, ends: Ends, inside: Positions, outside: Positions, wide: bool
    ) -> FloatArray:
        """Find where the loss reaches the quantile, between positions inside and outside.

        Regula falsi on the square root of the loss, which is nearly straight, and bisection.
        """
        target = np.sqrt(ends.quantile)
        inside_weight = np.ones(target.size)
        outside_weight = np.ones(target.size)
        was_outside = np.zeros(target.size, dtype=bool)
        for turn in range(_ROUNDS):
            distance = np.abs(outside.position - inside.position)
            pending = np.flatnonzero(distance > _TOLERANCE)
            if pending.size == 0:
                break
            near = inside[pending]
            far = outside[pending]
            inside_root = np.sqrt(np.maximum(near.loss, 0.0))
            outside_root = np.sqrt(np.minimum(far.loss, 1e6))
            inside_error = (inside_root - target[pending]) * inside_weight[pending]
            outside_error = (outside_root - target[pending]) * outside_weight[pending]
            share = -inside_error / np.maximum(outside_error - inside_error, 1e-12)
            span = far.position - near.position
            position = near.position + span * np.clip(share, 0.02, 0.98)
            if turn % 3 == 2:
                # A loss with a cliff in it (data that a step separates) is left to bisection.
                position = 0.5 * (near.position + far.position)
            nearby = () if wide else (near.point, far.point)
            probe = self.evaluate(ends[pending], position, nearby=nearby)
            root_error = np.sqrt(np.maximum(probe.loss, 0.0)) - target[pending]
            close = np.abs(root_error) < _ROOT_TOLERANCE
            is_outside = probe.loss > ends.quantile[pending]
            # Illinois: an end that stays where it is for a second time counts half.
            same_side = (is_outside == was_outside[pending]) & (turn > 0)
            for positions, weight, moves in (
                (inside, inside_weight, ~is_outside),
                (outside, outside_weight, is_outside),
            ):
                replaced = moves | close
                positions[pending[replaced]] = probe[replaced]
                stays_again = ~moves & same_side
                weight[pending] = np.where(stays_again, 0.5 * weight[pending], 1.0)
            was_outside[pending] = is_outside
        return 0.5 * (inside.position + outside.position)


def _search_group(
    problem: SearchProblem, best: Point, is_slope: BoolArray, member: Index
) -> Maxima:
    """Maximise the objective with a parameter of one curve fixed, from many starts.

    They are the best point, and other widths where a threshold is fixed. The other curves of a
    group hold the common rates in place, so that only this curve's width is in doubt. First it
    climbs alone, with the rates fixed, too, which takes little time; of starts that lead it to one
    function, one is enough.
    """
    group = np.flatnonzero(~is_slope)
    curve = member[group]
    curve_problem, curve_best = separate_curves(problem, best, group, curve)
    starts = [curve_best]
    for width in _WIDTHS:
        slope = np.full(curve_best.slope.shape, -np.log(width))
        starts.append(replace(curve_best, slope=slope))
    climbing = curve_problem[np.tile(np.arange(group.size), len(starts))]
    start = concatenate_points(starts).within(climbing.lower, climbing.upper)
    alone = maximise(climbing, start)
    slopes = alone.point.slope.reshape(len(starts), -1)
    values = alone.value.reshape(len(starts), -1)
    first = best.copy()
    first.slope[group, curve] = slopes[0]
    rows = [np.arange(member.size)]
    points = [first]
    for i in range(1, len(starts)):
        with np.errstate(invalid="ignore"):
            differs = np.abs(values[:i] - values[i]) > _SAME
        new = np.flatnonzero(differs.all(axis=0))
        rows.append(group[new])
        point = first[rows[i]]
        point.slope[np.arange(new.size), curve[new]] = slopes[i, new]
        points.append(point)
    # All climb at once: calls of numpy on few groups take as long as on many.
    row = np.concatenate(rows)
    climbs = search(problem[row], [concatenate_points(points)], grid_starts=0)
    maxima = climbs[rows[0]]
    ends = np.cumsum([part.size for part in rows])
    for rivals in np.split(np.arange(row.size), ends)[1:-1]:
        # A gain below the rounding error is none: then the earlier start wins.
        better = rivals[climbs.value[rivals] > maxima.value[row[rivals]] + _ROUNDING]
        maxima[row[better]] = climbs[better]
    return maxima


#: Groups x resamples x curves fitted at once.
_FIT_SIZE = 20_000


class Resamples(NamedTuple):
    """What refits of answers drawn from the best functions show."""

    #: Twice the likelihood lost when the threshold, or the slope, of a curve is fixed at the value
    #: that it was drawn from, shape (2, G, B, M); nan without `losses`.
    loss: FloatArray
    #: Deviance of the refits, shape (G, B, M).
    deviance: FloatArray


def resample(
    problem: SearchProblem, best: Point, *, losses: bool, resamples: int, seed: int
) -> Resamples:
    """Draw answers from the fitted functions, and fit these again.

    Fractional trials are rounded for the draws; overdispersion is drawn too, and fixed in the
    refits. A group's draws do not depend on the other groups.
    """
    groups, curves = problem.counts.centre.shape
    loss = np.full((2, groups, resamples, curves), np.nan)
    deviances = np.empty((groups, resamples, curves))
    block_size = max(1, _FIT_SIZE // max(1, resamples * curves))
    for begin in range(0, groups, block_size):
        block = np.arange(begin, min(begin + block_size, groups))
        repeated = np.repeat(block, resamples)
        truth = best[repeated]
        draws = _draw_counts(problem[block], best[block], resamples, seed)
        drawn = replace(problem[repeated], counts=draws)
        refit = search(drawn, [truth], grid_starts=0)
        rates = drawn.predict(refit.point)
        shape = (block.size, resamples, curves)
        deviances[block] = deviance(draws.yes, draws.trials, rates).reshape(shape)
        for row, name in enumerate(("threshold", "slope") if losses else ()):
            for curve in range(curves):
                fixed = _fix(drawn, truth, name, curve)
                value = search(fixed, [refit.point, truth], grid_starts=0).value
                curve_loss = 2 * (refit.value - value)
                loss[row, block, :, curve] = curve_loss.reshape(shape[:2])
    return Resamples(loss, deviances)


def _fix(
    problem: SearchProblem, truth: Point, parameter: str, curve: int
) -> SearchProblem:
    """Fix a parameter of one curve in each group at its true value."""
    lower = problem.lower.copy()
    upper = problem.upper.copy()
    for bound in (lower, upper):
        getattr(bound, parameter)[:, curve] = getattr(truth, parameter)[:, curve]
    return replace(problem, lower=lower, upper=upper)


def _draw_counts(
    problem: SearchProblem, best: Point, resamples: int, seed: int
) -> Counts:
    """Draw `resamples` sets of counted answers for each group."""
    rates = problem.predict(best)
    trials = np.rint(problem.counts.trials)
    catch_trials = np.rint(problem.counts.catch_trials)
    groups = len(trials)
    yes = np.empty((groups, resamples, *trials.shape[1:]))
    catch_yes = np.empty((groups, resamples))
    for group, eta in enumerate(best.eta):
        rng = np.random.default_rng(seed)
        rate = np.broadcast_to(rates[group], yes[group].shape)
        if eta > 1e-4:
            nu = 1 / eta**2 - 1
            rate = rng.beta(
                np.maximum(rate * nu, 1e-9), np.maximum((1 - rate) * nu, 1e-9)
            )
        yes[group] = rng.binomial(trials[group].astype(np.int64), rate)
        catch_yes[group] = rng.binomial(
            int(catch_trials[group]), best.guess[group], size=resamples
        )
    whole = replace(problem.counts, trials=trials, catch_trials=catch_trials)
    repeated = whole[np.repeat(np.arange(groups), resamples)]
    return replace(
        repeated, yes=yes.reshape(repeated.x.shape), catch_yes=catch_yes.ravel()
    )
