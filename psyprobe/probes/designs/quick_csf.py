"""qCSF: each level is the one that is expected to tell most of the contrast sensitivity function as a whole.

Lesmes, Lu, Baek & Albright 2010, Journal of Vision 10(3):17; here for yes or no answers with guesses and lapses, and
with frequencies that may deviate from the parabola (see `csf_posterior`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.errors import InputError
from psyprobe.probes.designs.adaptive import Adaptive
from psyprobe.probes.designs.choosing import information_on_threshold
from psyprobe.probes.designs.csf_posterior import CsfGrid, CsfPosterior
from psyprobe.probes.designs.protocol import DesignEstimate
from psyprobe.probes.designs.psychometric_grid import Function, Grid, Task, csf_width_and_rates, seen

#: Draws from the posterior behind the interval of the area under the log CSF.
_DRAWS = 2000


class QuickCSF(Adaptive[CsfPosterior]):
    """qCSF over given frequencies.

    Parameters
    ----------
    frequencies : sequence of float
        In cpd, two or more.
    contrasts, task, catch, top, function
        As in `QuestPlus`.
    stop : float
        Done when the 95 % interval of log10 sensitivity is at most this wide at every frequency.
    n_max : int
        Or after this many answers altogether, catch trials and excluded ones among them.
    grid : Grid, optional
        Thresholds, widths and rates with their prior.
    csf : CsfGrid, optional
        Parabolas and the deviation from them.
    seed : int
        Orders frequencies that promise the same, and draws behind the interval of the area.

    Examples
    --------
    >>> design = QuickCSF([1, 4, 16], np.geomspace(0.001, 1, 31), n_max=25)
    >>> threshold = {1: 0.02, 4: 0.01, 16: 0.05}
    >>> while not design.finished:
    ...     for level in design.ask(2):
    ...         design.tell(level, float(level.contrast > threshold[level.value]))
    >>> estimate = design.estimate()
    >>> estimate.asked, bool(np.abs(estimate.log10_sensitivity - [1.7, 2.0, 1.3]).max() < 0.3)
    (25, True)
    >>> estimate.aulcsf_low < estimate.aulcsf < estimate.aulcsf_high
    True
    """

    def __init__(
        self,
        frequencies: Iterable[float],
        contrasts: Iterable[float],
        *,
        task: Task = "yes_no",
        stop: float = 0.3,
        n_max: int = 60,
        catch: float = 0.1,
        top: float = 0.05,
        function: Function = "logistic",
        grid: Grid | None = None,
        csf: CsfGrid | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__(frequencies, contrasts, task, stop, n_max, catch, top, seed)
        if len(self.values) < 2:
            raise InputError("qCSF needs at least two frequencies; use QUEST+ for one")
        self._seed = seed
        grid = csf_width_and_rates(self.contrasts, task, function) if grid is None else grid
        self.posterior = CsfPosterior(self.values, grid, CsfGrid() if csf is None else csf)
        self._visible = seen(
            np.log10(self.contrasts), grid.threshold[:, None, None], grid.width[:, None], grid.function
        )

    def estimate(self) -> DesignEstimate:
        """What is known so far, the area under the log CSF between the lowest and the highest frequency included."""
        found = super().estimate()
        order = np.argsort(self.values)
        x = np.log10(self.values)[order]
        height = np.maximum(self.posterior.draw(_DRAWS, self._seed)[:, order], 0.0)
        areas = ((height[:, 1:] + height[:, :-1]) / 2 * np.diff(x)).sum(axis=1)
        low, high = np.quantile(areas, [(1 - found.level) / 2, (1 + found.level) / 2])
        return dataclasses.replace(found, aulcsf=float(areas.mean()), aulcsf_low=float(low), aulcsf_high=float(high))

    def _open(self) -> list[int]:
        if self._books.told + len(self._books.pending) >= self._n_max:
            return []
        widths = [np.diff(self.posterior.interval(each))[0] for each in range(len(self.values))]
        return self._order if max(widths) > self._stop else []

    def _information(self, place: int) -> FloatArray:
        # An answer tells of the curve through the threshold at its frequency alone.
        return information_on_threshold(*self.posterior.expected(place), self._visible)
