"""QUEST+: each level is the one whose answer is expected to tell most (Watson 2017, Journal of Vision 17(3):10)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.errors import InputError, unknown_name
from psyprobe.probes.designs.choosing import (
    About,
    information_on_all,
    information_on_threshold,
    most_telling,
    noise_table,
    visibility,
)
from psyprobe.probes.designs.constant_stimuli import checked_share
from psyprobe.probes.designs.estimating import report, take_in
from psyprobe.probes.designs.ledger import Ledger
from psyprobe.probes.designs.protocol import (
    DesignEstimate,
    Level,
    checked_contrasts,
    checked_frequencies,
    checked_said,
)
from psyprobe.probes.designs.psychometric_grid import Function, Grid, Task, default_grid
from psyprobe.probes.designs.threshold_posterior import ThresholdPosterior


class QuestPlus:
    """QUEST+ over several frequencies at once, with guess and lapse rates that they share.

    The first question is a catch trial and the second one at the highest contrast; both recur so that their shares
    are kept at every moment. All others go to the frequency and contrast that tell most, less what levels on their
    way are about to tell: so several can be asked before the first is answered.

    Parameters
    ----------
    frequencies : sequence of float
        In cpd.
    contrasts : sequence of float
        Above 0; those that may be shown. Close ones cost time only: 0.05 log10 apart is enough.
    task : {"yes_no", "two_interval"}
        What is asked; with two intervals the guess rate is 0.5 and there are no catch trials.
    about : {"threshold", "all"}
        What a level should tell of: the threshold alone, the other parameters being a nuisance, or all four, as
        QUEST+ was published.
    stop : float
        A frequency is done when the 95 % interval of its log10 threshold is at most this wide.
    n_max : int
        Or when it has had this many answers, excluded ones among them, catch trials not.
    catch, top : float
        Shares, at least, of catch trials and of trials at the highest contrast among all.
    function : {"logistic", "normal"}
        Form of the psychometric function; without meaning where `grid` is given.
    grid : Grid, optional
        Parameters and their prior, in place of `default_grid`.
    refine : bool
        Look closer at thresholds when the grid has become coarse against the interval.
    seed : int
        Orders frequencies that promise the same.

    Raises
    ------
    InputError
        An argument is out of range.

    Examples
    --------
    An observer that sees contrasts from 0.02 on:

    >>> design = QuestPlus([4], np.geomspace(0.001, 1, 61))
    >>> while not design.finished:
    ...     for level in design.ask(3):
    ...         design.tell(level, float(level.contrast >= 0.02))
    >>> estimate = design.estimate()
    >>> estimate.asked < 30, estimate.log10_sensitivity.round(1).tolist()
    (True, [1.7])
    """

    def __init__(
        self,
        frequencies: Sequence[float],
        contrasts: Sequence[float] | FloatArray,
        *,
        task: Task = "yes_no",
        about: About = "threshold",
        stop: float = 0.3,
        n_max: int = 50,
        catch: float = 0.1,
        top: float = 0.05,
        function: Function = "logistic",
        grid: Grid | None = None,
        refine: bool = True,
        seed: int = 0,
    ) -> None:
        self.frequencies = checked_frequencies(frequencies)
        self.contrasts = checked_contrasts(contrasts)
        if about not in ("threshold", "all"):
            raise unknown_name("aim of QUEST+", about, ("threshold", "all"))
        if n_max < 1 or not stop >= 0 or not 0 <= top <= 0.5:
            raise InputError(
                f"n_max is {n_max}, stop {stop} and top {top}; give at least 1, at least 0 and a share from 0 to 0.5"
            )
        self._catch, self._top = checked_share(catch, task), top
        self._about, self._stop, self._n_max = about, stop, n_max
        self._x = np.log10(self.contrasts)
        self._books = Ledger()
        self._order = np.random.default_rng(seed).permutation(len(self.frequencies))
        grid = default_grid(self.contrasts, task, function) if grid is None else grid
        self._posterior = ThresholdPosterior(len(self.frequencies), grid, refine)
        self._tables: dict[int, tuple[FloatArray, FloatArray, FloatArray | None]] = {}

    @property
    def posterior(self) -> ThresholdPosterior:
        """What the answers told so far tell of the parameters."""
        return self._posterior

    def ask(self, n: int = 1) -> list[Level]:
        """Up to `n` levels to put at once; see `Design`."""
        levels: list[Level] = []
        known: dict[int, FloatArray] = {}
        while len(levels) < n and (open_ones := self._open()):
            level = self._due(open_ones)
            if level is None:
                known |= {each: self._information(each) for each in open_ones if each not in known}
                promises = {each: known[each] for each in open_ones}
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
        """Whether every frequency is known well enough or was asked often enough, and all is answered."""
        return not self._books.pending and not self._open()

    def estimate(self) -> DesignEstimate:
        """What is known so far."""
        return report(self._posterior, self.frequencies, self._books)

    def _open(self) -> list[int]:
        found = []
        for each in self._order.tolist():
            low, high = self._posterior.interval(each)
            if high - low > self._stop and self._books.asked_at(self.frequencies[each]) < self._n_max:
                found.append(each)
        return found

    def _due(self, open_ones: list[int]) -> Level | None:
        # A catch trial or one at the highest contrast, where its share would fall below what was asked for.
        if self._books.below(0.0, self._catch):
            turn = self._books.asked_of(0.0) % len(self._order)
            return Level(self.frequencies[self._order[turn]], 0.0)
        if self._books.below(self.contrasts[-1], self._top):
            # Where the pattern is seen most surely, a "no" tells of lapses.
            return Level(self.frequencies[min(open_ones, key=self._posterior.mean)], self.contrasts[-1])
        return None

    def _information(self, frequency: int) -> FloatArray:
        thresholds = self._posterior.thresholds[frequency]
        tables = self._tables.get(frequency)
        if tables is None or tables[0] is not thresholds:
            visible = visibility(self._posterior, frequency, self._x)
            grid = self._posterior.grid
            noise = noise_table(visible, grid.guess, grid.lapse) if self._about == "all" else None
            tables = self._tables[frequency] = (thresholds, visible, noise)
        _, visible, noise = tables
        mass, guess, rise = self._posterior.expected(frequency)
        if noise is None:
            return information_on_threshold(mass, guess, rise, visible)
        yes = guess.sum() + rise.reshape(-1) @ visible.reshape(rise.size, -1)
        return information_on_all(self._posterior.joint(frequency), yes, noise)
