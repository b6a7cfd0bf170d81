"""qCSF: each level is the one that is expected to tell most of the contrast sensitivity function as a whole.

Lesmes, Lu, Baek & Albright 2010, Journal of Vision 10(3):17; here for yes or no answers with guesses and lapses, and
with frequencies that may deviate from the parabola (see `csf_posterior`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.errors import InputError
from psyprobe.probes.designs.choosing import information_on_threshold, most_telling
from psyprobe.probes.designs.constant_stimuli import checked_share
from psyprobe.probes.designs.csf_posterior import CsfGrid, CsfPosterior
from psyprobe.probes.designs.estimating import report, take_in
from psyprobe.probes.designs.ledger import Ledger
from psyprobe.probes.designs.protocol import (
    DesignEstimate,
    Level,
    checked_contrasts,
    checked_frequencies,
    checked_said,
)
from psyprobe.probes.designs.psychometric_grid import Function, Grid, Task, csf_width_and_rates, seen

#: Draws from the posterior behind the interval of the area under the log CSF.
_DRAWS = 2000


class QuickCSF:
    """qCSF over given frequencies.

    Parameters
    ----------
    frequencies : sequence of float
        In cpd, two or more.
    contrasts : sequence of float
        Above 0; those that may be shown.
    task : {"yes_no", "two_interval"}
        What is asked; with two intervals the guess rate is 0.5 and there are no catch trials.
    stop : float
        Done when the 95 % interval of log10 sensitivity is at most this wide at every frequency.
    n_max : int
        Or after this many answers altogether, catch trials and excluded ones among them.
    catch, top : float
        Shares, at least, of catch trials and of trials at the highest contrast among all.
    function : {"logistic", "normal"}
        Form of the psychometric function; without meaning where `grid` is given.
    grid : Grid, optional
        Thresholds, widths and rates with their prior.
    csf : CsfGrid, optional
        Parabolas and the deviation from them.
    seed : int
        Orders frequencies that promise the same, and draws behind the interval of the area.

    Raises
    ------
    InputError
        An argument is out of range.

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
        frequencies: Sequence[float],
        contrasts: Sequence[float] | FloatArray,
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
        self.frequencies = checked_frequencies(frequencies)
        self.contrasts = checked_contrasts(contrasts)
        if n_max < 1 or not stop >= 0 or not 0 <= top <= 0.5:
            raise InputError(
                f"n_max is {n_max}, stop {stop} and top {top}; give at least 1, at least 0 and a share from 0 to 0.5"
            )
        if len(self.frequencies) < 2:
            raise InputError("qCSF needs at least two frequencies; use QUEST+ for one")
        self._catch, self._top = checked_share(catch, task), top
        self._stop, self._n_max, self._seed = stop, n_max, seed
        self._order = np.random.default_rng(seed).permutation(len(self.frequencies))
        grid = csf_width_and_rates(self.contrasts, task, function) if grid is None else grid
        self._posterior = CsfPosterior(self.frequencies, grid, CsfGrid() if csf is None else csf)
        self._visible = seen(
            np.log10(self.contrasts), grid.threshold[:, None, None], grid.width[:, None], grid.function
        )
        self._books = Ledger()

    @property
    def posterior(self) -> CsfPosterior:
        """What the answers told so far tell of the contrast sensitivity function."""
        return self._posterior

    def ask(self, n: int = 1) -> list[Level]:
        """Up to `n` levels to put at once; see `Design`."""
        levels: list[Level] = []
        promises: dict[int, FloatArray] = {}
        while len(levels) < n and self._open():
            level = self._due()
            if level is None:
                promises = promises or {each: self._information(each) for each in self._order.tolist()}
                level = most_telling(promises, self.frequencies, self.contrasts, self._books.pending)
            self._books.send(level)
            levels.append(level)
        return levels

    def tell(self, level: Level, said: float | None, delivered: float | None = None) -> None:
        """Take in one answer; see `Design`.

        Raises
        ------
        InputError
            The frequency is none of the design's.
        """
        value = checked_said(said)
        if level.value not in self.frequencies:
            raise InputError(f"frequency is {level.value} cpd; this design asks at {self.frequencies}")
        self._books.receive(level, excluded=value is None)
        if value is not None:
            take_in(self._posterior, self.frequencies, level, value, delivered)

    @property
    def finished(self) -> bool:
        """Whether the function is known well enough or was asked often enough, and all is answered."""
        return not self._books.pending and not self._open()

    def estimate(self) -> DesignEstimate:
        """What is known so far, the area under the log CSF between the lowest and the highest frequency included."""
        found = report(self._posterior, self.frequencies, self._books)
        order = np.argsort(self.frequencies)
        x = np.log10(self.frequencies)[order]
        height = np.maximum(self._posterior.draw(_DRAWS, self._seed)[:, order], 0.0)
        areas = ((height[:, 1:] + height[:, :-1]) / 2 * np.diff(x)).sum(axis=1)
        low, high = np.quantile(areas, [(1 - found.level) / 2, (1 + found.level) / 2])
        return dataclasses.replace(found, aulcsf=float(areas.mean()), aulcsf_low=float(low), aulcsf_high=float(high))

    def _open(self) -> bool:
        if self._books.told + len(self._books.pending) >= self._n_max:
            return False
        widths = [np.diff(self._posterior.interval(each))[0] for each in range(len(self.frequencies))]
        return bool(max(widths) > self._stop)

    def _due(self) -> Level | None:
        # A catch trial or one at the highest contrast, where its share would fall below what was asked for.
        if self._books.below(0.0, self._catch):
            turn = self._books.asked_of(0.0) % len(self._order)
            return Level(self.frequencies[self._order[turn]], 0.0)
        if self._books.below(self.contrasts[-1], self._top):
            # Where the pattern is seen most surely, a "no" tells of lapses.
            return Level(self.frequencies[min(self._order.tolist(), key=self._posterior.mean)], self.contrasts[-1])
        return None

    def _information(self, frequency: int) -> FloatArray:
        # An answer tells of the curve through the threshold at its frequency alone.
        return information_on_threshold(*self._posterior.expected(frequency), self._visible)
