"""Finds the largest likelihood of many groups of curves at once, with and without overdispersion.

Climbs are damped Newton steps within bounds, from the best few of a coarse grid of functions, steps
between levels among them, and from solutions nearby; then each curve of a group is looked at alone,
its rates held. Curves of a group meet only in their guess and lapse rate, so each step solves 2 x 2
systems: threshold and slope of each curve, and the two rates through the Schur complement.

References
----------
Schütt et al. (2016), Vision Research 122, section 2.2 (overdispersion).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from psyprobe._typing import FloatArray
from psyprobe.analysis.psychometric import likelihood
from psyprobe.analysis.psychometric.counts import Counts, Index, Point, joined, pick, tested_range

_Mask = npt.NDArray[np.bool_]
_T = TypeVar("_T", Counts, Point)
_ROUNDS = 80
#: A step that promises less than this in log-likelihood is not worth taking.
_ENOUGH = 1e-8
_FIRST_DAMPING = 1e-3
_LARGEST_DAMPING = 1e9


@dataclass(frozen=True)
class Task:
    """A model, and the groups to which it is fitted within bounds; equal bounds fix a parameter,
    `eta` has none.
    """

    model: likelihood.Model
    counts: Counts
    lower: Point
    upper: Point

    def take(self, index: Index) -> Task:
        """Those groups."""
        return Task(
            self.model, self.counts.take(index), self.lower.take(index), self.upper.take(index)
        )


def maximise(task: Task, start: Point) -> tuple[Point, FloatArray, _Mask]:
    """Climb from each start to a maximum: the point, the objective there (P,), and whether no step
    promised more.
    """
    model = task.model
    point = start.copy()
    at = likelihood.levels_at(model.family, task.counts, point)
    value = likelihood.objective(model, task.counts, point, at)
    damping = np.full(value.shape, _FIRST_DAMPING)
    converged = np.zeros(value.shape, dtype=bool)
    running: Index = np.flatnonzero(np.isfinite(value))
    left = task
    if running.size < value.size:
        left = task.take(running)
        at = at.take(running)
    bounds = _bounds(left)
    for _ in range(_ROUNDS):
        if running.size == 0:
            break
        here = point.take(running)
        slope = likelihood.differentiate(model, left.counts, here, at)
        if model.equal_rates:
            slope = slope.with_equal_rates()
        free_curve = _free(slope.curve, np.array([here.threshold, here.slope]), bounds.curve)
        free_rates = _free(slope.rates, np.array([here.guess, here.lapse]), bounds.rates)
        move_curve, move_rates = _step(slope, free_curve, free_rates, damping[running])
        promised = (slope.curve * move_curve).sum((0, -1)) + (slope.rates * move_rates).sum(0)
        if model.equal_rates:
            move_rates[1] = move_rates[0]
        there = _moved(here, move_curve, move_rates).within(left.lower, left.upper)
        at_there = likelihood.levels_at(model.family, left.counts, there)
        reached = likelihood.objective(model, left.counts, there, at_there)
        gain = reached - value[running]
        better = reached > value[running]
        won = running[better]
        moved = np.flatnonzero(better)
        point.put(won, there.take(moved))
        if better.all():
            at = at_there
        else:
            at.put(moved, at_there.take(moved))
        value[won] = reached[better]
        damping[running] = np.where(
            better, np.maximum(damping[running] * 0.1, 1e-9), damping[running] * 8
        )
        small = better & (gain < _ENOUGH) & (damping[running] < 1e-2)
        done = (promised < _ENOUGH) | small | (damping[running] > _LARGEST_DAMPING)
        converged[running] |= done
        if done.any():
            at = at.take(np.flatnonzero(~done))
            running = running[~done]
            left = task.take(running)
            bounds = _bounds(left)
    return point, value, converged


@dataclass(frozen=True)
class _Bounds:
    """Of threshold and slope, (2, P, M), and of guess and lapse, (2, P): lower and upper, and
    whether they differ.
    """

    curve: tuple[FloatArray, FloatArray, _Mask]
    rates: tuple[FloatArray, FloatArray, _Mask]


def _bounds(task: Task) -> _Bounds:
    def both(first: str, second: str) -> tuple[FloatArray, FloatArray, _Mask]:
        low, high = (
            np.array([getattr(end, first), getattr(end, second)])
            for end in (task.lower, task.upper)
        )
        return low, high, high > low

    return _Bounds(both("threshold", "slope"), both("guess", "lapse"))


def _free(
    gradient: FloatArray, value: FloatArray, bounds: tuple[FloatArray, FloatArray, _Mask]
) -> _Mask:
    """Which parameters may move: not those held at a bound, nor those that the gradient pushes
    against one.
    """
    low, high, apart = bounds
    return np.asarray(((value > low) | (gradient > 0)) & ((value < high) | (gradient < 0)) & apart)


def _step(
    slope: likelihood.Derivatives, free_curve: _Mask, free_rates: _Mask, damping: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The step by the exact curvature, or by the other where that is not positive definite.

    Matrices of 2 x 2 are written out: numpy's products of many take far longer.
    """
    curve = np.where(free_curve, slope.curve, 0.0)
    rates = np.where(free_rates, slope.rates, 0.0)
    (tt, ts, ss), sound = _inverse(*_bounded(slope.blocks, free_curve, damping[:, None]))
    # By guess and lapse; those that follow have the two versions of the curvature as their next
    # axis.
    of_threshold, of_slope = np.where(
        free_curve[:, None, None] & free_rates[:, None, :, None], slope.across, 0.0
    )
    carried_threshold = tt * of_threshold + ts * of_slope
    carried_slope = ts * of_threshold + ss * of_slope
    lone_threshold = tt * curve[0] + ts * curve[1]
    lone_slope = ts * curve[0] + ss * curve[1]
    common = (of_threshold[:, None] * carried_threshold + of_slope[:, None] * carried_slope).sum(
        axis=-1
    )
    pulled = rates[:, None] - (of_threshold * lone_threshold + of_slope * lone_slope).sum(axis=-1)
    gg, gl, ll = _bounded(slope.corner, free_rates, damping)
    (gg, gl, ll), sound_rates = _inverse(gg - common[0, 0], gl - common[0, 1], ll - common[1, 1])
    moved = np.array([gg * pulled[0] + gl * pulled[1], gl * pulled[0] + ll * pulled[1]])
    along = moved[..., None]
    of_curve = np.array(
        [
            lone_threshold - (carried_threshold * along).sum(axis=0),
            lone_slope - (carried_slope * along).sum(axis=0),
        ]
    )
    exact = sound[0].all(axis=-1) & sound_rates[0]
    if exact.all():
        return of_curve[:, 0], moved[:, 0]
    return np.where(exact[:, None], of_curve[:, 0], of_curve[:, 1]), np.where(
        exact, moved[:, 0], moved[:, 1]
    )


_Matrix: TypeAlias = tuple[FloatArray, FloatArray, FloatArray]


def _bounded(curvature: FloatArray, free: _Mask, damping: FloatArray) -> _Matrix:
    """Curvature with damping on its diagonal, and the unit matrix for parameters that are not
    free.
    """
    first, mixed, second = curvature
    return (
        np.where(free[0], first + (damping * first[1] + 1e-12), 1.0),
        np.where(free[0] & free[1], mixed, 0.0),
        np.where(free[1], second + (damping * second[1] + 1e-12), 1.0),
    )


def _inverse(first: FloatArray, mixed: FloatArray, second: FloatArray) -> tuple[_Matrix, _Mask]:
    """Inverses of symmetric 2 x 2 matrices, and which of these are positive definite."""
    square = first * second
    determinant = square - mixed * mixed
    sound = (first > 0) & (second > 0) & (determinant > 1e-14 * square)
    if sound.all():
        return (second / determinant, -mixed / determinant, first / determinant), sound
    safe = np.where(sound, determinant, 1.0)
    # Where rounding has spoiled the determinant the diagonal alone still climbs.
    return (
        np.where(sound, second / safe, 1 / np.maximum(first, 1e-12)),
        np.where(sound, -mixed / safe, 0.0),
        np.where(sound, first / safe, 1 / np.maximum(second, 1e-12)),
    ), sound


def _moved(at: Point, curve: FloatArray, rates: FloatArray) -> Point:
    # A leap of the width by more than a factor of 7 leaves the region that the curvature describes.
    shrink = np.minimum(1.0, 2.0 / np.maximum(np.abs(curve[1]), 1e-300))
    threshold = at.threshold + curve[0] * shrink
    slope = at.slope + curve[1] * shrink
    return Point(threshold, slope, at.guess + rates[0], at.lapse + rates[1], at.eta)


#: Thresholds and widths tried, in units of the tested range.
_THRESHOLDS = np.array(
    [-2.0, -0.8, -0.5, -0.375, -0.25, -0.125, 0.0, 0.125, 0.25, 0.375, 0.5, 0.8, 2.0]
)
_WIDTHS = (np.array([0.1, 0.2, 0.35]), np.array([0.6, 1.0, 2.0, 5.0]))
#: Smallest probability of an answer that a candidate is given.
_LEAST = 1e-300
#: Share of a rate's bounds at which it is tried.
_SHARES = np.array([0.02, 0.35, 0.9])
#: Width of a step, in units of the tested range.
_STEP = 1e-3
#: Thresholds and slopes of the functions tried for each curve, shape (P, M, K).
Candidates: TypeAlias = tuple[FloatArray, FloatArray]
#: Groups x curves x levels worked on at once.
_AT_ONCE = 24_000
#: Candidates x levels worked on at once: pairs of rates are tried together where there are few
#: groups.
_TOGETHER = 20_000
#: Share of a rate's bounds by which a start is above the lower one.
_INSIDE = 0.01
#: How often each curve of a group is looked at alone, and all of them climb on together.
_TIMES = 3
#: Overdispersions tried, and how the search between them goes on.
_TRIED = np.array([0.0, 0.03, 0.08, 0.15, 0.25, 0.4, 0.6, 0.85])
_LARGEST = 0.99
_GOLDEN_ROUNDS = 22
_GOLDEN = 0.5 * (np.sqrt(5) - 1)


def search(
    task: Task, *, eta: FloatArray | None = None, first: Sequence[Point] = (), keep: int = 2
) -> tuple[Point, FloatArray, _Mask]:
    """The largest objective found from several starts: point, value (P,), and whether the climb
    converged (P,).

    Parameters
    ----------
    task : Task
        Of P groups.
    eta : ndarray, shape (P,), optional
        Overdispersion; 0 where not given.
    first : sequence of Point, optional
        Further starts, as a solution nearby.
    keep : int, optional
        How many pairs of rates are kept of each kind of start; 0: only `first`, and no curve is
        looked at alone.
    """
    size = task.counts.catch_yes.size
    eta = np.zeros(size) if eta is None else eta
    best = replace(task.lower, eta=eta).copy()
    value = np.full(size, -np.inf)
    converged = np.zeros(size, dtype=bool)
    step = max(1, _AT_ONCE // max(1, task.counts.x[0].size)) if size else 1
    for begin in range(0, size, step):
        index = np.arange(begin, min(begin + step, size))
        part = task.take(index)
        tried = _starts(part, eta[index], keep) if keep else []
        tried += [replace(_inside(part, point.take(index)), eta=eta[index]) for point in first]
        again = np.tile(np.arange(index.size), len(tried))
        points, reached, settled = maximise(part.take(again), joined(tried))
        # Less than a rounding error better is no better: the earlier start keeps its place.
        reached = reached.reshape(len(tried), index.size)
        won = (reached >= reached.max(axis=0) - 1e-9).argmax(axis=0) * index.size + np.arange(
            index.size
        )
        best.put(index, points.take(won))
        value[index] = reached.ravel()[won]
        converged[index] = settled[won]
    together = task.counts.centre.shape[1] > 1
    for _ in range(_TIMES if keep and together else 0):
        moved, left = _one_by_one(task, best)
        if left.size == 0:
            break
        best.put(left, moved.take(left))
        point, value[left], converged[left] = maximise(task.take(left), best.take(left))
        best.put(left, point)
    return best, value, converged


def _inside(task: Task, point: Point) -> Point:
    """The nearest point within the bounds, its rates a little above their lower ones.

    From a rate near 0, each step can only double it.
    """
    lower = task.lower
    upper = task.upper
    guess = lower.guess
    lapse = lower.lapse
    lower = replace(
        lower,
        guess=guess + _INSIDE * (upper.guess - guess),
        lapse=lapse + _INSIDE * (upper.lapse - lapse),
    )
    return point.within(lower, upper)


def alone(task: Task, at: Point, member: Index) -> tuple[Task, Point]:
    """One curve of each group as a group of its own, its rates held at those of a point, and that
    point.

    Parameters
    ----------
    task : Task
        Of P groups.
    at : Point
        Of these.
    member : ndarray of int, shape (P,)
        Which curve of each.
    """
    place = np.arange(member.size)

    def of_curve(groups: _T, **rates: FloatArray) -> _T:
        own = {
            name: values[place, member][:, None]
            for name, values in vars(groups).items()
            if values.ndim > 1
        }
        return replace(groups, **own, **rates)

    rates = {"guess": at.guess, "lapse": at.lapse}
    lower, upper = (of_curve(end, **rates) for end in (task.lower, task.upper))
    return Task(task.model, of_curve(task.counts), lower, upper), of_curve(at)


def _one_by_one(task: Task, point: Point) -> tuple[Point, Index]:
    """A point with each curve where it is best while the rates are held, and which groups that
    makes better.

    Starts have all curves of a group from one kind of candidates, and what suits one curve need not
    suit another.
    """
    groups, curves = task.counts.centre.shape
    again = np.repeat(np.arange(groups), curves)
    member = np.tile(np.arange(curves), groups)
    lone, here = alone(task.take(again), point.take(again), member)
    found, value, _ = search(lone, eta=here.eta, first=[here], keep=1)
    least = value - _ENOUGH * np.maximum(1.0, np.abs(value))
    levels = likelihood.levels_at(task.model.family, lone.counts, here)
    better = least > likelihood.objective(task.model, lone.counts, here, levels)
    moved = point.copy()
    moved.threshold[again[better], member[better]] = found.threshold[better, 0]
    moved.slope[again[better], member[better]] = found.slope[better, 0]
    return moved, np.unique(again[better])


def add_overdispersion(task: Task, best: Point, value: FloatArray) -> tuple[Point, FloatArray]:
    """The best point with overdispersion, one eta for each group, and the objective there.

    `best` is without, and where the search begins; overdispersion stays 0 where none does as well.
    """
    best = best.copy()
    value = value.copy()

    def attempt(eta: FloatArray) -> FloatArray:
        point, reached, _ = search(task, eta=eta, first=[best], keep=0)
        better: Index = np.flatnonzero(reached > value + 1e-9)
        best.put(better, point.take(better))
        value[better] = reached[better]
        return reached

    tried = np.stack([attempt(np.full(value.size, eta)) for eta in _TRIED])
    near = tried.argmax(axis=0)
    low = _TRIED[np.maximum(near - 1, 0)]
    high = np.append(_TRIED, _LARGEST)[near + 1]
    inner = high - _GOLDEN * (high - low)
    outer = low + _GOLDEN * (high - low)
    at_inner = attempt(inner)
    at_outer = attempt(outer)
    for _ in range(_GOLDEN_ROUNDS):
        left = at_inner >= at_outer
        low = np.where(left, low, inner)
        high = np.where(left, outer, high)
        fresh = np.where(left, high - _GOLDEN * (high - low), low + _GOLDEN * (high - low))
        reached = attempt(fresh)
        inner, outer = np.where(left, fresh, outer), np.where(left, inner, fresh)
        at_inner, at_outer = np.where(left, reached, at_outer), np.where(left, at_inner, reached)
    return best, value


def _rate_grid(lower: FloatArray, upper: FloatArray) -> FloatArray:
    """Values to try between bounds, shape (3, P); one where the bounds meet."""
    if np.all(lower == upper):
        return np.asarray(lower[None])
    return np.asarray(lower + _SHARES[:, None] * (upper - lower))


def _cuts(counts: Counts) -> FloatArray:
    """Between neighbouring levels and at each level, shape (P, M, 2L - 1)."""
    _, last = tested_range(counts)
    x = np.where(counts.trials > 0, counts.x, np.where(np.isfinite(last), last, 0.0)[..., None])
    return np.concatenate([x, 0.5 * (x[..., 1:] + x[..., :-1])], axis=-1)


def _kinds(task: Task) -> list[Candidates]:
    """Candidates of three kinds: steps, narrow functions, wide functions, all within the bounds.

    Where all curves have a parameter held, one value of it is enough.
    """
    lower = task.lower
    upper = task.upper
    groups, curves = task.counts.x.shape[:2]
    held_threshold = bool(np.all(lower.threshold == upper.threshold))
    held_slope = bool(np.all(lower.slope == upper.slope))
    thresholds = np.zeros(1) if held_threshold else _THRESHOLDS
    cuts = np.zeros((groups, curves, 1)) if held_threshold else _cuts(task.counts)
    found = [] if held_slope else [(cuts, np.full(cuts.shape, -np.log(_STEP)))]
    for widths in (np.ones(1),) if held_slope else _WIDTHS:
        t, s = (v.ravel() for v in np.meshgrid(thresholds, -np.log(widths)))
        found.append(
            (
                np.broadcast_to(t, (groups, curves, t.size)),
                np.broadcast_to(s, (groups, curves, s.size)),
            )
        )

    def clipped(values: FloatArray, name: str) -> FloatArray:
        return np.asarray(
            np.clip(values, getattr(lower, name)[..., None], getattr(upper, name)[..., None])
        )

    return [(clipped(t, "threshold"), clipped(s, "slope")) for t, s in found]


def _starts(task: Task, eta: FloatArray, keep: int) -> list[Point]:
    """Best starting points of each kind, with as many pairs of rates as are kept."""
    counts = task.counts
    priors = task.model.priors
    guesses, lapses = (
        _rate_grid(getattr(task.lower, rate), getattr(task.upper, rate))
        for rate in ("guess", "lapse")
    )
    pairs = (
        [(g, g) for g in guesses]
        if task.model.equal_rates
        else [(g, lam) for g in guesses for lam in lapses]
    )
    guess, lapse = np.array(pairs).swapaxes(0, 1)
    yes = counts.yes[:, :, None]
    trials = counts.trials[:, :, None]
    spread = eta[:, None, None, None]
    points: list[Point] = []
    for kind in _kinds(task):
        scores = []
        choices = []
        _, *log_shares = likelihood.log_shape(task.model.family, counts.x[:, :, None], *kind)
        lower, upper = (np.exp(share) for share in log_shares)
        together = max(1, _TOGETHER // max(1, lower.size))
        for begin in range(0, len(pairs), together):
            tried = guess[begin : begin + together], lapse[begin : begin + together]
            g, lam = (rate[..., None, None, None] for rate in tried)
            # To choose among candidates needs no logarithm of what lies far out in a tail.
            log_p = np.log(np.maximum(g + (1 - g - lam) * lower, _LEAST))
            log_q = np.log(np.maximum(lam + (1 - g - lam) * upper, _LEAST))
            per_curve = likelihood.level_log_likelihood(yes, trials, log_p, log_q, spread).sum(
                axis=-1
            )
            if priors.by_name:
                of_threshold, of_width = priors.of_curves(*kind, counts)
                per_curve = per_curve + of_threshold + of_width
            per_curve = np.broadcast_to(per_curve, (len(tried[0]), *kind[0].shape))
            best = per_curve.argmax(axis=-1)
            total = pick(per_curve, best).sum(axis=-1) + likelihood.catch_log_likelihood(
                counts, tried[0], eta
            )
            for name, value in zip(("guess", "lapse"), tried, strict=True):
                total = total + priors.log_density(name, value, counts)
            scores.append(total)
            choices.append(best)
        each = np.arange(eta.size)
        choice = np.concatenate(choices)
        for order in np.argsort(-np.concatenate(scores), axis=0, kind="stable")[:keep]:
            t, s = (pick(values, choice[order, each]) for values in kind)
            points.append(Point(t, s, guess[order, each], lapse[order, each], eta))
    return points
