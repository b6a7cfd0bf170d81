"""Finds the largest likelihood of many groups of curves at once: damped Newton steps within bounds.

Curves of a group meet only in their guess and lapse rate. So each step solves 2 x 2 systems: threshold and slope of
each curve, and the two rates through the Schur complement.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from psyprobe._typing import FloatArray
from psyprobe.analysis.psychometric.counts import Counts, Index, Point
from psyprobe.analysis.psychometric.likelihood import Derivatives, differentiate, objective
from psyprobe.analysis.psychometric.priors import LogPriors
from psyprobe.analysis.psychometric.sigmoids import Sigmoid

_Mask = npt.NDArray[np.bool_]
_ROUNDS = 80
#: A step that promises less than this in log-likelihood is not worth taking.
_ENOUGH = 1e-8
_FIRST_DAMPING = 1e-3
_LARGEST_DAMPING = 1e9


@dataclass(frozen=True)
class Model:
    """What is fitted: a family of sigmoids, prior densities, and whether the lapse rate is the guess rate."""

    family: Sigmoid
    priors: LogPriors
    equal_rates: bool = False


@dataclass(frozen=True)
class Task:
    """A model, and the groups to which it is fitted within bounds; equal bounds fix a parameter, `eta` has none."""

    model: Model
    counts: Counts
    lower: Point
    upper: Point

    def take(self, index: Index) -> Task:
        """Those groups."""
        return Task(self.model, self.counts.take(index), self.lower.take(index), self.upper.take(index))


def maximise(task: Task, start: Point) -> tuple[Point, FloatArray, _Mask]:
    """Climb from each start to a maximum: the point, the objective there (P,), and whether no step promised more."""
    model, point = task.model, start.copy()
    value = objective(model.family, task.counts, point, model.priors)
    damping = np.full(value.shape, _FIRST_DAMPING)
    converged = np.zeros(value.shape, dtype=bool)
    running: Index = np.flatnonzero(np.isfinite(value))
    for _ in range(_ROUNDS):
        if running.size == 0:
            break
        left, here = task.take(running), point.take(running)
        slope = differentiate(model.family, left.counts, here, model.priors)
        if model.equal_rates:
            slope = slope.with_equal_rates()
        free_curve, free_rates = _free(slope, here, left.lower, left.upper)
        move_curve, move_rates = _step(slope, free_curve, free_rates, damping[running])
        promised = (slope.curve * move_curve).sum((-1, -2)) + (slope.rates * move_rates).sum(-1)
        if model.equal_rates:
            move_rates[:, 1] = move_rates[:, 0]
        there = _moved(here, move_curve, move_rates).within(left.lower, left.upper)
        reached = objective(model.family, left.counts, there, model.priors)
        better = reached > value[running]
        gain = reached - value[running]
        won = running[better]
        point.put(won, there.take(np.flatnonzero(better)))
        value[won] = reached[better]
        damping[running] = np.where(better, np.maximum(damping[running] * 0.1, 1e-9), damping[running] * 8)
        done = promised < _ENOUGH
        small = better & (gain < _ENOUGH) & (damping[running] < 1e-2)
        stuck = damping[running] > _LARGEST_DAMPING
        converged[running] |= done | small | stuck
        running = running[~(done | small | stuck)]
    return point, value, converged


def _free(slope: Derivatives, at: Point, lower: Point, upper: Point) -> tuple[_Mask, _Mask]:
    """Which parameters may move: not those held at a bound, nor those that the gradient pushes against one."""

    def may(gradient: FloatArray, name: str) -> _Mask:
        value, low, high = (getattr(point, name) for point in (at, lower, upper))
        return np.asarray(((value > low) | (gradient > 0)) & ((value < high) | (gradient < 0)) & (high > low))

    curve = [may(slope.curve[..., i], name) for i, name in enumerate(("threshold", "slope"))]
    rates = [may(slope.rates[:, i], name) for i, name in enumerate(("guess", "lapse"))]
    return np.stack(curve, axis=-1), np.stack(rates, axis=-1)


def _step(
    slope: Derivatives, free_curve: _Mask, free_rates: _Mask, damping: FloatArray
) -> tuple[FloatArray, FloatArray]:
    curve, rates = np.where(free_curve, slope.curve, 0.0), np.where(free_rates, slope.rates, 0.0)
    moves = []
    for kind in (0, 1):
        blocks = _bounded(slope.blocks[kind], slope.blocks[1], free_curve, damping[:, None])
        corner = _bounded(slope.corner[kind], slope.corner[1], free_rates, damping)
        across = slope.across[kind] * free_curve[..., :, None] * free_rates[:, None, None, :]
        inverse, sound = _inverse(blocks)
        carried = inverse @ across
        schur, sound_rates = _inverse(corner - (np.swapaxes(across, -1, -2) @ carried).sum(axis=1))
        lone = (inverse @ curve[..., None])[..., 0]
        pulled = rates - (np.swapaxes(across, -1, -2) @ lone[..., None]).sum(axis=1)[..., 0]
        move_rates = (schur @ pulled[..., None])[..., 0]
        move_curve = lone - (carried @ move_rates[:, None, :, None])[..., 0]
        moves.append((move_curve, move_rates, sound.all(axis=-1) & sound_rates))
    exact = moves[0][2]
    return (
        np.where(exact[:, None, None], moves[0][0], moves[1][0]),
        np.where(exact[:, None], moves[0][1], moves[1][1]),
    )


def _bounded(curvature: FloatArray, scale: FloatArray, free: _Mask, damping: FloatArray) -> FloatArray:
    """Curvature with damping on its diagonal, and the unit matrix for parameters that are not free."""
    diagonal = np.einsum("...ii->...i", scale)
    damped = curvature + (damping[..., None] * diagonal + 1e-12)[..., None] * np.eye(2)
    both = free[..., :, None] & free[..., None, :]
    return np.where(both, damped, np.eye(2))


def _inverse(matrices: FloatArray) -> tuple[FloatArray, _Mask]:
    """Inverses of symmetric 2 x 2 matrices, and which of these are positive definite."""
    a, b, d = matrices[..., 0, 0], matrices[..., 0, 1], matrices[..., 1, 1]
    determinant = a * d - b * b
    sound = (a > 0) & (d > 0) & (determinant > 1e-14 * a * d)
    safe = np.where(sound, determinant, 1.0)
    flipped = np.stack([np.stack([d, -b], axis=-1), np.stack([-b, a], axis=-1)], axis=-2)
    # Where rounding has spoiled the determinant the diagonal alone still climbs.
    alone = np.stack([1 / np.maximum(a, 1e-12), 1 / np.maximum(d, 1e-12)], axis=-1)[..., None] * np.eye(2)
    return np.where(sound[..., None, None], flipped / safe[..., None, None], alone), sound


def _moved(at: Point, curve: FloatArray, rates: FloatArray) -> Point:
    # A leap of the width by more than a factor of 7 leaves the region that the curvature describes.
    shrink = np.minimum(1.0, 2.0 / np.maximum(np.abs(curve[..., 1]), 1e-300))
    return Point(
        at.threshold + curve[..., 0] * shrink,
        at.slope + curve[..., 1] * shrink,
        at.guess + rates[:, 0],
        at.lapse + rates[:, 1],
        at.eta,
    )
