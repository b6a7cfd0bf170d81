"""The posterior of the threshold at each of several values, which share guess and lapse rates and a typical width.

Given these, values are independent; so the joint posterior is kept exactly as one table of width x threshold x guess x
lapse a value, and one table of common width x guess x lapse that ties them together.
"""

from __future__ import annotations

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.probes.designs.posterior import Posterior, quantiles
from psyprobe.probes.designs.psychometric_grid import Grid, seen

#: Thresholds lie at least this many to a 95 % interval; a finer grid takes over where they would not.
STEPS_PER_INTERVAL = 8
#: A finer grid leaves out less than this of the posterior on each side.
_LEFT_OUT = 1e-5


class ThresholdPosterior(Posterior):
    """What answers tell of the thresholds at several values of a level.

    Parameters
    ----------
    values, grid
        As in `Posterior`.
    refine : bool
        Replace the thresholds of a value by closer ones when its posterior has become narrow.

    Examples
    --------
    >>> grid = Grid(np.linspace(-4, 0, 41), np.array([0.8]), np.array([0.02]), np.array([0.02]))
    >>> posterior = ThresholdPosterior(1, grid)
    >>> for x, said in ((-3.0, 0), (-2.5, 0), (-1.5, 1), (-1.0, 1)):
    ...     posterior.tell(0, x, said)
    >>> round(posterior.mean(0), 2)
    -2.0
    """

    one_width = False

    def __init__(self, values: int, grid: Grid, refine: bool = True) -> None:
        t, w, g, l = grid.shape
        super().__init__(values, grid, (w, t, g, l))
        self.refine = refine
        self._link = grid.width_given_centre()
        with np.errstate(divide="ignore"):
            self._log_prior = (
                np.log(grid.width_prior)[:, None, None] + np.log(grid.guess_prior)[:, None] + np.log(grid.lapse_prior)
            )
        self._threshold_given: list[FloatArray] = [np.empty(0)] * values
        self._evidence: list[tuple[FloatArray, FloatArray]] = [(np.empty(0), np.empty(0))] * values
        self._linked: list[FloatArray] = [np.empty(0)] * values
        for each in range(values):
            self._condition(each)
        self._share()

    def tell(self, place: int | None, x: float, said: float) -> None:
        """As in `Posterior`."""
        super().tell(place, x, said)
        if self.refine and place is not None:
            self._refine(place)

    def joint(self, place: int) -> FloatArray:
        """Posterior of threshold, width, guess and lapse at one value, shape (T, W, G, L)."""
        joint = self._threshold_given[place] * self._rest(place)[:, None]
        return np.asarray(np.swapaxes(joint, 0, 1))

    def _tables(self, place: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        g, l = self.grid.guess[:, None], self.grid.lapse
        rest = self._rest(place)
        columns = np.stack([rest, rest * g, rest * (1 - g - l)], axis=-1)
        w, t = self._threshold_given[place].shape[:2]
        tables = self._threshold_given[place].reshape(w, t, -1) @ columns.reshape(w, -1, 3)
        mass, guess, rise = tables.transpose(2, 1, 0)
        return mass, guess, rise

    def _seen(self, place: int, x: float) -> FloatArray:
        return seen(np.array(x), self.thresholds[place], self.grid.width[:, None], self.grid.function)

    def _condition(self, place: int) -> None:
        # The threshold given all else, and the evidence for each width and pair of rates, relative to `top`.
        log = self._log_likelihood(place)
        top = log.max(axis=(0, 1))
        top = np.where(np.isfinite(top), top, 0.0)
        mass = np.exp(log - top)
        total = mass.sum(axis=1)
        self._evidence[place] = (total, top)
        self._linked[place] = np.tensordot(self._link, total, 1)
        self._threshold_given[place] = mass / np.where(total > 0, total, 1.0)[:, None]

    def _share(self) -> None:
        log = self._log_prior + self._catch[0] + self._catch[1] / self.dispersion
        with np.errstate(divide="ignore"):
            for (_, top), linked in zip(self._evidence, self._linked, strict=True):
                log = log + top + np.log(linked)
        self._shared = self._normalised(log)

    def _common(self) -> FloatArray:
        return self._shared

    def _rest(self, place: int) -> FloatArray:
        """Posterior of width, guess and lapse at one value, shape (W, G, L)."""
        linked = self._linked[place]
        share = self._shared / np.where(linked > 0, linked, 1.0)
        return np.asarray(self._evidence[place][0] * np.tensordot(self._link.T, share, 1))

    def _refine(self, place: int) -> None:
        values, mass = self.thresholds[place], self.threshold_mass(place)
        if values.size < 2 * STEPS_PER_INTERVAL:
            return
        full = self.grid.threshold
        at_low_edge = values[0] > full[0] + 1e-9 and mass[:2].sum() > 1e-3
        at_high_edge = values[-1] < full[-1] - 1e-9 and mass[-2:].sum() > 1e-3
        if at_low_edge or at_high_edge:
            self._rebuild(place, full)
            values, mass = full, self.threshold_mass(place)
        step = values[1] - values[0]
        low, high = quantiles(values, mass, np.array([0.025, 0.975]))
        if high - low >= STEPS_PER_INTERVAL * step:
            return
        ends = quantiles(values, mass, np.array([_LEFT_OUT, 1 - _LEFT_OUT])) + np.array([-2, 2]) * step
        ends = np.clip(ends, full[0], full[-1])
        if ends[1] - ends[0] < 0.75 * (values[-1] - values[0]):
            self._rebuild(place, np.linspace(ends[0], ends[1], values.size))

    def _rebuild(self, place: int, thresholds: FloatArray) -> None:
        self.thresholds[place] = thresholds
        self._hard[place] = np.zeros_like(self._hard[place])
        self._soft[place] = None
        for answer in self._answers[place]:
            self._add(place, answer)
        self._condition(place)
        self._share()
