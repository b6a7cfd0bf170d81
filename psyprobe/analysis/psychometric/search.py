"""Find the largest likelihood of many groups of curves at once, with and without overdispersion.

Climbs are damped Newton steps within bounds, from the best few of a coarse grid of functions, steps
between levels among them, and from solutions nearby; then each curve of a group is fitted alone,
its rates fixed. Curves of a group meet only in their guess and lapse rate, so each step solves
2 x 2 systems: threshold and slope of each curve, and the two rates through the Schur complement.

References
----------
Schütt et al. (2016), Vision Research 122, section 2.2 (overdispersion).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeVar

import numpy as np

from psyprobe._typing import BoolArray, FloatArray
from psyprobe.analysis.psychometric import likelihood
from psyprobe.analysis.psychometric.counts import (
    Counts,
    Groups,
    Index,
    Point,
    concatenate_points,
    pick,
    tested_range,
)
from psyprobe.analysis.psychometric.likelihood import Bounds, SearchProblem

_GroupsType = TypeVar("_GroupsType", Counts, Point)
_ROUNDS = 80
#: A step that promises less than this in log-likelihood is not worth taking.
_SMALLEST_GAIN = 1e-8
#: Log-likelihoods that differ less are equal.
_ROUNDING = 1e-9
_FIRST_DAMPING = 1e-3
_LARGEST_DAMPING = 1e9


@dataclass(frozen=True)
class Maxima(Groups):
    """Maxima of the objective, one for each group."""

    point: Point
    #: The objective there, shape (P,).
    value: FloatArray
    #: Whether no step promised more, shape (P,).
    converged: BoolArray


def maximise(problem: SearchProblem, start: Point) -> Maxima:
    """Climb from a starting point of each group to a maximum of the objective."""
    point = start.copy()
    levels = problem.levels_at(point)
    value = problem.objective(point, levels)
    damping = np.full(value.shape, _FIRST_DAMPING)
    maxima = Maxima(point, value, np.zeros(value.shape, dtype=bool))
    running = np.flatnonzero(np.isfinite(value))
    levels = levels[running]
    climbing = problem[running]
    for _ in range(_ROUNDS):
        if running.size == 0:
            break
        step = _step(climbing, point[running], levels, damping[running])
        next_levels = climbing.levels_at(step.point)
        next_value = climbing.objective(step.point, next_levels)
        gain = next_value - value[running]
        better = next_value > value[running]
        point[running[better]] = step.point[better]
        value[running[better]] = next_value[better]
        if better.all():
            levels = next_levels
        else:
            levels[better] = next_levels[better]
        lower_damping = np.maximum(damping[running] * 0.1, 1e-9)
        damping[running] = np.where(better, lower_damping, damping[running] * 8)
        stalled = better & (gain < _SMALLEST_GAIN) & (damping[running] < 1e-2)
        done = stalled | (damping[running] > _LARGEST_DAMPING)
        done |= step.promised_gain < _SMALLEST_GAIN
        maxima.converged[running] = done
        if done.any():
            levels = levels[~done]
            running = running[~done]
            climbing = climbing[~done]
    return maxima


class _Step(NamedTuple):
    """Points that a Newton step leads to, and how much it promises in log-likelihood."""

    point: Point
    promised_gain: FloatArray


def _step(
    problem: SearchProblem,
    point: Point,
    levels: likelihood.Levels,
    damping: FloatArray,
) -> _Step:
    """Take a damped Newton step from a point, within the bounds."""
    derivatives = problem.differentiate(point, levels)
    if problem.equal_rates:
        derivatives.equate_rates()
    curve = np.array([point.threshold, point.slope])
    rates = np.array([point.guess, point.lapse])
    free_curve = _free(problem.curve_bounds, curve, derivatives.curve)
    free_rates = _free(problem.rate_bounds, rates, derivatives.rates)
    curve_step, rate_step = _newton_step(derivatives, free_curve, free_rates, damping)
    curve_gain = (derivatives.curve * curve_step).sum((0, -1))
    rate_gain = (derivatives.rates * rate_step).sum(0)
    if problem.equal_rates:
        rate_step[1] = rate_step[0]
    # A leap of the width by more than a factor of 7 leaves the region that the curvature describes.
    shrink = np.minimum(1.0, 2.0 / np.maximum(np.abs(curve_step[1]), 1e-300))
    moved = Point(
        threshold=point.threshold + curve_step[0] * shrink,
        slope=point.slope + curve_step[1] * shrink,
        guess=point.guess + rate_step[0],
        lapse=point.lapse + rate_step[1],
        eta=point.eta,
    )
    return _Step(moved.within(problem.lower, problem.upper), curve_gain + rate_gain)


def _free(bounds: Bounds, value: FloatArray, gradient: FloatArray) -> BoolArray:
    """Mark the parameters that are neither fixed nor pushed against a bound by the gradient."""
    may_fall = (value > bounds.lower) | (gradient > 0)
    may_rise = (value < bounds.upper) | (gradient < 0)
    return may_fall & may_rise & bounds.differ


def _newton_step(
    derivatives: likelihood.Derivatives,
    free_curve: BoolArray,
    free_rates: BoolArray,
    damping: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Compute the Newton step of curves (2, P, M) and of rates (2, P).

    The exact curvature is used, or the other version where that is not positive definite. Matrices
    of 2 x 2 are written out: numpy's products of many take far longer.
    """
    curve_gradient = np.where(free_curve, derivatives.curve, 0.0)
    rate_gradient = np.where(free_rates, derivatives.rates, 0.0)
    blocks = _damp(derivatives.blocks, free_curve, damping[:, None])
    inverse_blocks, sound_blocks = blocks.invert()
    # By threshold and slope first, then by guess and lapse; the next axis has the two versions of
    # the curvature.
    both_free = free_curve[:, None, None] & free_rates[:, None, :, None]
    across = np.where(both_free, derivatives.across, 0.0)
    response = inverse_blocks.apply(across)
    step = inverse_blocks.apply(curve_gradient)

    threshold_term, slope_term = across[:, :, None] * response[:, None]
    complement = (threshold_term + slope_term).sum(axis=-1)
    threshold_term, slope_term = across * step[:, None]
    explained = (threshold_term + slope_term).sum(axis=-1)
    corner = _damp(derivatives.corner, free_rates, damping)
    reduced_corner = _Matrix(
        corner.first - complement[0, 0],
        corner.mixed - complement[0, 1],
        corner.second - complement[1, 1],
    )
    inverse_corner, sound_corner = reduced_corner.invert()
    rate_step = inverse_corner.apply(rate_gradient[:, None] - explained)
    curve_step = step - (response * rate_step[..., None]).sum(axis=1)
    exact = sound_blocks[0].all(axis=-1) & sound_corner[0]
    return (
        np.where(exact[:, None], curve_step[:, 0], curve_step[:, 1]),
        np.where(exact, rate_step[:, 0], rate_step[:, 1]),
    )


def rate_information(
    problem: SearchProblem, point: Point
) -> tuple[FloatArray, FloatArray]:
    """Compute what single curves tell of the rates: gradient (2, P), minus curvature (3, P).

    Threshold and slope follow the rates.
    """
    derivatives = problem.differentiate(point, problem.levels_at(point))
    curve = np.array([point.threshold, point.slope])
    free = _free(problem.curve_bounds, curve, derivatives.curve)
    across = np.where(free[:, None, None], derivatives.across, 0.0)
    inverse, sound = _damp(derivatives.blocks, free, np.zeros((1, 1))).invert()
    response = inverse.apply(across)
    complement = (across[:, :, None] * response[:, None]).sum(axis=(0, -1))
    corner = derivatives.corner - np.stack(
        [complement[0, 0], complement[0, 1], complement[1, 1]]
    )
    exact = sound[0, :, 0]
    return derivatives.rates, np.where(exact, corner[:, 0], corner[:, 1])


class _Matrix(NamedTuple):
    """Symmetric 2 x 2 matrices: both entries of the diagonal, and the one beside it."""

    first: FloatArray
    mixed: FloatArray
    second: FloatArray

    def apply(self, vectors: FloatArray) -> FloatArray:
        """Multiply vectors, whose first axis has two entries, by the 2 x 2 matrices."""
        first, second = vectors
        return np.array(
            [
                self.first * first + self.mixed * second,
                self.mixed * first + self.second * second,
            ]
        )

    def invert(self) -> tuple[_Matrix, BoolArray]:
        """Invert the 2 x 2 matrices, and mark which are positive definite."""
        first, mixed, second = self
        square = first * second
        determinant = square - mixed * mixed
        sound = (first > 0) & (second > 0) & (determinant > 1e-14 * square)
        if sound.all():
            inverse = _Matrix(
                second / determinant, -mixed / determinant, first / determinant
            )
            return inverse, sound
        divisor = np.where(sound, determinant, 1.0)
        # Where rounding has spoiled the determinant the diagonal alone still climbs.
        inverse = _Matrix(
            np.where(sound, second / divisor, 1 / np.maximum(first, 1e-12)),
            np.where(sound, -mixed / divisor, 0.0),
            np.where(sound, first / divisor, 1 / np.maximum(second, 1e-12)),
        )
        return inverse, sound


def _damp(curvature: FloatArray, free: BoolArray, damping: FloatArray) -> _Matrix:
    """Add damping to a matrix's diagonal, with the unit matrix where parameters are fixed."""
    first, mixed, second = curvature
    return _Matrix(
        np.where(free[0], first + (damping * first[1] + 1e-12), 1.0),
        np.where(free[0] & free[1], mixed, 0.0),
        np.where(free[1], second + (damping * second[1] + 1e-12), 1.0),
    )


#: Thresholds and widths of the coarse grid, in units of the tested range.
_THRESHOLDS = np.array(
    [-2.0, -0.8, -0.5, -0.375, -0.25, -0.125, 0.0, 0.125, 0.25, 0.375, 0.5, 0.8, 2.0]
)
_WIDTHS = (np.array([0.1, 0.2, 0.35]), np.array([0.6, 1.0, 2.0, 5.0]))
#: Smallest probability of an answer that a candidate is given.
_LEAST_PROBABILITY = 1e-300
#: Rates of the coarse grid, as a share of the distance between their bounds.
_SHARES = np.array([0.02, 0.35, 0.9])
#: Width of a step, in units of the tested range.
_STEP_WIDTH = 1e-3
#: Groups x curves x levels that are fitted at once.
_FIT_SIZE = 24_000
#: Groups x curves x levels x steps between levels that are tried as starts at once, which bounds
#: memory where curves have many levels.
_START_SIZE = 1_000_000
#: Candidates x levels that are tried at once: pairs of rates are tried together where there are few
#: groups.
_GRID_SIZE = 20_000
#: Share of a rate's bounds by which a start is above the lower one.
_START_SHARE = 0.01
#: How often each curve of a group is fitted alone before all of them climb on together.
_ALTERNATIONS = 3
#: Overdispersions of the coarse grid, and constants of the golden-section search between them.
_OVERDISPERSIONS = np.array([0.0, 0.03, 0.08, 0.15, 0.25, 0.4, 0.6, 0.85])
_LARGEST_OVERDISPERSION = 0.99
_GOLDEN_ROUNDS = 22
_GOLDEN = 0.5 * (np.sqrt(5) - 1)


class Candidates(NamedTuple):
    """Thresholds and slopes of the functions tried for each curve, shape (P, M, K)."""

    threshold: FloatArray
    slope: FloatArray


def search(
    problem: SearchProblem, starts: Sequence[Point] = (), grid_starts: int = 2
) -> Maxima:
    """Search for the largest objective of each group of curves from several starts.

    Parameters
    ----------
    problem : SearchProblem
        Has P groups.
    starts : sequence of Point, optional
        Further starts, such as a solution nearby. Their overdispersion, which must be the same,
        stays; without them it is 0.
    grid_starts : int, optional
        Number of pairs of rates that start for each kind of candidate; 0: only `starts`, and no
        curve is fitted alone.
    """
    groups, curves = problem.counts.centre.shape
    best = Maxima(
        point=(starts[0] if starts else problem.lower).copy(),
        value=np.full(groups, -np.inf),
        converged=np.zeros(groups, dtype=bool),
    )
    levels = problem.counts.x.shape[-1]
    group_size = max(1, curves * levels)
    start_size = group_size * max(1, 2 * levels)
    block_size = max(1, min(_FIT_SIZE // group_size, _START_SIZE // start_size))
    for begin in range(0, groups, block_size):
        block = np.arange(begin, min(begin + block_size, groups))
        block_problem = problem[block]
        block_starts = (
            _grid_starts(block_problem, best.point.eta[block], grid_starts)
            if grid_starts
            else []
        )
        block_starts += [_move_inside(block_problem, start[block]) for start in starts]
        best[block] = _best_of_starts(block_problem, block_starts)
    if not grid_starts or curves == 1:
        return best
    for _ in range(_ALTERNATIONS):
        point, improved = _fit_curves_alone(problem, best.point)
        if improved.size == 0:
            break
        best[improved] = maximise(problem[improved], point[improved])
    return best


def _best_of_starts(problem: SearchProblem, starts: Sequence[Point]) -> Maxima:
    """Climb from each start of each group, and keep each group's best maximum."""
    size = problem.counts.catch_yes.size
    groups = np.arange(size)
    maxima = maximise(problem[np.tile(groups, len(starts))], concatenate_points(starts))
    values = maxima.value.reshape(len(starts), size)
    # A gain below the rounding error is none: then the earlier start wins.
    best_start = (values >= values.max(axis=0) - _ROUNDING).argmax(axis=0)
    return maxima[best_start * size + groups]


def _move_inside(problem: SearchProblem, point: Point) -> Point:
    """Move a point into the bounds, its rates a little above their lower ones.

    From a rate near 0, each step can only double it.
    """
    lower = problem.lower
    upper = problem.upper
    start_bound = replace(
        lower,
        guess=lower.guess + _START_SHARE * (upper.guess - lower.guess),
        lapse=lower.lapse + _START_SHARE * (upper.lapse - lower.lapse),
    )
    return point.within(start_bound, upper)


def separate_curves(
    problem: SearchProblem, point: Point, group: Index, member: Index
) -> tuple[SearchProblem, Point]:
    """Make groups of single curves, with rates fixed at a point's.

    Parameters
    ----------
    problem : SearchProblem
        Has P groups.
    point : Point
        Parameters of these groups.
    group, member : ndarray of int, shape (K,)
        Index of each curve's group, and of the curve in it.

    Returns
    -------
    problem : SearchProblem
        Has K groups of one curve.
    point : Point
        Parameters of these curves.
    """

    def select(arrays: _GroupsType, **rates: FloatArray) -> _GroupsType:
        of_curves = {
            name: values[group, member][:, None] if values.ndim > 1 else values[group]
            for name, values in vars(arrays).items()
        }
        return replace(arrays, **(of_curves | rates))

    rates = {"guess": point.guess[group], "lapse": point.lapse[group]}
    curve_problem = replace(
        problem,
        counts=select(problem.counts),
        lower=select(problem.lower, **rates),
        upper=select(problem.upper, **rates),
        rest=None if problem.rest is None else problem.rest[group],
    )
    return curve_problem, select(point)


def _fit_curves_alone(problem: SearchProblem, point: Point) -> tuple[Point, Index]:
    """Fit each curve with its rates fixed, and mark the groups that improve.

    Starts have all curves of a group from one kind of candidates, and what suits one curve need not
    suit another.
    """
    groups, curves = problem.counts.centre.shape
    group = np.repeat(np.arange(groups), curves)
    member = np.tile(np.arange(curves), groups)
    curve_problem, curve_point = separate_curves(problem, point, group, member)
    maxima = search(curve_problem, [curve_point], grid_starts=1)
    levels = curve_problem.levels_at(curve_point)
    smallest_gain = _SMALLEST_GAIN * np.maximum(1.0, np.abs(maxima.value))
    better = maxima.value - smallest_gain > curve_problem.objective(curve_point, levels)
    group = group[better]
    moved = point.copy()
    moved.threshold[group, member[better]] = maxima.point.threshold[better, 0]
    moved.slope[group, member[better]] = maxima.point.slope[better, 0]
    return moved, np.unique(group)


def add_overdispersion(problem: SearchProblem, maxima: Maxima) -> Maxima:
    """Search for the best point with overdispersion, one amount for each group.

    The search begins at the maxima without overdispersion; eta stays 0 where no other does as well.
    """
    best = maxima.copy()

    def attempt(eta: FloatArray) -> FloatArray:
        start = replace(best.point, eta=eta)
        maxima = search(problem, starts=[start], grid_starts=0)
        better = maxima.value > best.value + _ROUNDING
        best[better] = maxima[better]
        return maxima.value

    grid_values = [attempt(np.full(best.value.size, eta)) for eta in _OVERDISPERSIONS]
    nearest = np.stack(grid_values).argmax(axis=0)
    low = _OVERDISPERSIONS[np.maximum(nearest - 1, 0)]
    high = np.append(_OVERDISPERSIONS, _LARGEST_OVERDISPERSION)[nearest + 1]
    inner = high - _GOLDEN * (high - low)
    outer = low + _GOLDEN * (high - low)
    inner_value = attempt(inner)
    outer_value = attempt(outer)
    for _ in range(_GOLDEN_ROUNDS):
        is_left = inner_value >= outer_value
        low = np.where(is_left, low, inner)
        high = np.where(is_left, outer, high)
        new_inner = high - _GOLDEN * (high - low)
        new_outer = low + _GOLDEN * (high - low)
        new = np.where(is_left, new_inner, new_outer)
        new_value = attempt(new)
        inner, outer = np.where(is_left, [new, inner], [outer, new])
        inner_value, outer_value = np.where(
            is_left,
            [new_value, inner_value],
            [outer_value, new_value],
        )
    return best


def _cuts(counts: Counts) -> FloatArray:
    """List the tested levels and the midpoints between them, shape (P, M, 2L - 1)."""
    _, last = tested_range(counts)
    last = np.where(np.isfinite(last), last, 0.0)
    x = np.where(counts.trials > 0, counts.x, last[..., None])
    midpoints = 0.5 * (x[..., 1:] + x[..., :-1])
    return np.concatenate([x, midpoints], axis=-1)


def _candidate_kinds(problem: SearchProblem) -> list[Candidates]:
    """List candidate functions within the bounds: steps, narrow ones, wide ones.

    Where a parameter is fixed for all curves, one value of it is enough.
    """
    lower = problem.lower
    upper = problem.upper
    fixed_threshold = bool(np.all(lower.threshold == upper.threshold))
    fixed_slope = bool(np.all(lower.slope == upper.slope))
    thresholds = np.zeros(1) if fixed_threshold else _THRESHOLDS
    kinds: list[Sequence[FloatArray]] = []
    if not fixed_slope:
        cuts = np.zeros(1) if fixed_threshold else _cuts(problem.counts)
        kinds.append((cuts, np.full(cuts.shape[-1], -np.log(_STEP_WIDTH))))
        if problem.priors.by_name:
            # A step has no density under the weak prior of widths, which is even from here on.
            width = np.maximum(2 * problem.counts.spacing, _STEP_WIDTH)
            kinds.append(np.broadcast_arrays(cuts, -np.log(width)[..., None]))
    for widths in (np.ones(1),) if fixed_slope else _WIDTHS:
        mesh = np.meshgrid(thresholds, -np.log(widths))
        kinds.append([axis.ravel() for axis in mesh])
    return [
        Candidates(
            np.clip(threshold, lower.threshold[..., None], upper.threshold[..., None]),
            np.clip(slope, lower.slope[..., None], upper.slope[..., None]),
        )
        for threshold, slope in kinds
    ]


def _rate_pairs(problem: SearchProblem) -> FloatArray:
    """List pairs of guess and lapse rates to start from, shape (2, R, P)."""
    grids = []
    for name in ("guess", "lapse"):
        lower = getattr(problem.lower, name)
        distance = getattr(problem.upper, name) - lower
        shares = _SHARES if distance.any() else np.zeros(1)
        grids.append(lower + shares[:, None] * distance)
    guesses, lapses = grids
    if problem.equal_rates:
        return np.array([guesses, guesses])
    repeated = np.repeat(guesses, len(lapses), axis=0)
    return np.array([repeated, np.tile(lapses, (len(guesses), 1))])


def _grid_starts(problem: SearchProblem, eta: FloatArray, count: int) -> list[Point]:
    """Find the best starting points of each kind of candidate function."""
    rates = _rate_pairs(problem)
    groups = np.arange(eta.size)
    starts: list[Point] = []
    for candidates in _candidate_kinds(problem):
        scores, choices = _score_candidates(problem, candidates, rates, eta)
        for pair in np.argsort(-scores, axis=0, kind="stable")[:count]:
            choice = choices[pair, groups]
            threshold, slope = (pick(values, choice) for values in candidates)
            guess, lapse = rates[:, pair, groups]
            starts.append(Point(threshold, slope, guess, lapse, eta))
    return starts


def _score_candidates(
    problem: SearchProblem,
    candidates: Candidates,
    rates: FloatArray,
    eta: FloatArray,
) -> tuple[FloatArray, Index]:
    """Score each pair of rates by its best candidates: scores (R, P), choices (R, P, M)."""
    counts = problem.counts
    guess, lapse = rates
    curve_size = candidates.threshold[:, :1].size * counts.x.shape[-1]
    block_size = max(1, _GRID_SIZE // max(1, curve_size))
    blocks = [
        _best_candidates(
            _select_curves(problem, slice(begin, begin + block_size)),
            Candidates(
                *(values[:, begin : begin + block_size] for values in candidates)
            ),
            rates,
            eta,
        )
        for begin in range(0, candidates.threshold.shape[1], block_size)
    ]
    by_curve, choices = (
        np.concatenate(parts, axis=-1) for parts in zip(*blocks, strict=True)
    )
    score = by_curve.sum(axis=-1)
    score = score + likelihood.catch_log_likelihood(counts, guess, eta)
    if problem.rest is not None:
        score = score + problem.rest.value(guess, lapse)
    score = score + problem.priors.log_density("guess", guess, counts)
    score = score + problem.priors.log_density("lapse", lapse, counts)
    return score, choices


def _select_curves(problem: SearchProblem, curves: slice) -> SearchProblem:
    """Select some curves of each group."""
    counts = problem.counts
    of_curves = {
        name: values[:, curves]
        for name, values in vars(counts).items()
        if values.ndim > 1
    }
    return replace(problem, counts=replace(counts, **of_curves))


def _best_candidates(
    problem: SearchProblem,
    candidates: Candidates,
    rates: FloatArray,
    eta: FloatArray,
) -> tuple[FloatArray, Index]:
    """Find each curve's likeliest candidate at each pair of rates: log-likelihoods and choices."""
    counts = problem.counts
    yes = counts.yes[:, :, None]
    trials = counts.trials[:, :, None]
    spread = eta[:, None, None, None]
    shape = likelihood.log_shape(problem.family, counts.x[:, :, None], *candidates)
    lower = np.exp(shape.log_lower)
    upper = np.exp(shape.log_upper)
    block_size = max(1, _GRID_SIZE // max(1, lower.size))
    best = []
    choices = []
    for begin in range(0, rates.shape[1], block_size):
        guess, lapse = rates[:, begin : begin + block_size, :, None, None, None]
        share = 1 - guess - lapse
        # To choose among candidates needs no logarithm of what lies far out in a tail.
        log_p = np.log(np.maximum(guess + share * lower, _LEAST_PROBABILITY))
        log_q = np.log(np.maximum(lapse + share * upper, _LEAST_PROBABILITY))
        by_level = likelihood.level_log_likelihood(yes, trials, log_p, log_q, spread)
        by_candidate = by_level.sum(axis=-1)
        if problem.priors.by_name:
            by_candidate = by_candidate + problem.priors.curve_log_densities(
                *candidates, counts
            )
        by_candidate = np.broadcast_to(
            by_candidate, (len(guess), *candidates.threshold.shape)
        )
        choice = by_candidate.argmax(axis=-1)
        best.append(pick(by_candidate, choice))
        choices.append(choice)
    return np.concatenate(best), np.concatenate(choices)
