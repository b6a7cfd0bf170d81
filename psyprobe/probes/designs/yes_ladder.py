"""The ladder: a few contrasts over the whole range first, then a few around the threshold they show.

Two rounds only, each as one batch: for read-outs that give a probability of yes, whose every answer tells much.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from psyprobe.errors import InputError
from psyprobe.probes.designs.constant_stimuli import catch_trials, checked_share
from psyprobe.probes.designs.estimating import report, take_in
from psyprobe.probes.designs.ledger import Ledger
from psyprobe.probes.designs.protocol import (
    DesignEstimate,
    Level,
    checked_contrasts,
    checked_frequencies,
    checked_said,
)
from psyprobe.probes.designs.psychometric_grid import Function, Task, default_grid
from psyprobe.probes.designs.threshold_posterior import ThresholdPosterior


class YesLadder:
    """Two rounds of levels, the second around what the first has shown; made by `ladder`."""

    def __init__(
        self,
        frequencies: tuple[float, ...],
        ends: tuple[float, float],
        fine: int,
        repeats: int,
        share: float,
        first: list[Level],
        posterior: ThresholdPosterior,
        seed: int,
    ) -> None:
        self.frequencies = frequencies
        self._ends = ends
        self._fine, self._repeats, self._share, self._seed = fine, repeats, share, seed
        self._left = first
        self._second = fine == 0
        self._books = Ledger()
        self._posterior = posterior

    def ask(self, n: int = 1) -> list[Level]:
        """Up to `n` levels to put at once; none between the rounds until all of the first is told."""
        self._go_on()
        levels, self._left = self._left[:n], self._left[n:]
        for level in levels:
            self._books.send(level)
        return levels

    def tell(self, level: Level, said: float | None, delivered: float | None = None) -> None:
        """Take in one answer; see `Design`.

        Raises
        ------
        InputError
            The level was not asked, nor is it still to be asked.
        """
        value = checked_said(said)
        if level not in self._books.pending:
            self._go_on()
            if level not in self._left:
                raise InputError(f"{level} is not among the levels of this design that are still to be answered")
            self._left.remove(level)
        self._books.receive(level, excluded=value is None)
        if value is not None:
            take_in(self._posterior, self.frequencies, level, value, delivered)

    @property
    def finished(self) -> bool:
        """Whether both rounds have been answered."""
        return self._second and not self._left and not self._books.pending

    def estimate(self) -> DesignEstimate:
        """What is known so far."""
        return report(self._posterior, self.frequencies, self._books)

    def _go_on(self) -> None:
        if self._second or self._left or self._books.pending:
            return
        self._second = True
        levels = [
            Level(f, float(contrast))
            for i, f in enumerate(self.frequencies)
            for contrast in self._around(i)
            for _ in range(self._repeats)
        ]
        levels += catch_trials(len(levels), self._share, self.frequencies)
        order = np.random.default_rng([self._seed, 2]).permutation(len(levels))
        self._left = [levels[i] for i in order]

    def _around(self, frequency: int) -> list[float]:
        # Where the threshold may be, but not closer than the steep part of the function, which fixes its width too.
        low, high = self._posterior.interval(frequency, 0.8)
        half = max((high - low) / 2, 0.3 * self._posterior.mean_width(frequency))
        bottom, top = np.log10(self._ends)
        centre = np.clip((low + high) / 2, bottom, top)
        levels = np.linspace(max(centre - half, bottom), min(centre + half, top), self._fine)
        return [float(10**x) for x in np.round(levels, 6)]


def ladder(
    frequencies: Sequence[float],
    contrasts: Sequence[float],
    *,
    coarse: int = 5,
    fine: int = 4,
    repeats: int = 1,
    catch: float = 0.1,
    task: Task = "yes_no",
    function: Function = "logistic",
    seed: int = 0,
) -> YesLadder:
    """The P(yes) ladder: coarse levels over the range, then fine ones around the crossing.

    Parameters
    ----------
    frequencies : sequence of float
        In cpd.
    contrasts : sequence of float
        Above 0; only the lowest and the highest count, between which levels lie evenly in log10 contrast.
    coarse, fine : int
        Levels a frequency in the first round, ends included (at least 2), and in the second.
    repeats : int
        How often each level is shown.
    catch : float
        Share of catch trials among all, at least; none with two intervals.
    task : {"yes_no", "two_interval"}
        What is asked; with two intervals the guess rate is 0.5.
    function : {"logistic", "normal"}
        Form of the psychometric function.
    seed : int
        Of the order within each round.

    Returns
    -------
    Design

    Raises
    ------
    InputError
        An argument is out of range.

    Examples
    --------
    An observer with its threshold at a contrast of 0.02 whose probability of yes is read:

    >>> design = ladder([4], [0.001, 1.0])
    >>> while not design.finished:
    ...     for level in design.ask(100):
    ...         design.tell(level, 0.02 if level.catch else 1 / (1 + (0.02 / level.contrast) ** 3))
    >>> estimate = design.estimate()
    >>> estimate.asked, estimate.log10_sensitivity.round(1).tolist()
    (11, [1.7])
    """
    f, c = checked_frequencies(frequencies), checked_contrasts(contrasts)
    if coarse < 2 or fine < 0 or repeats < 1:
        raise InputError(
            f"coarse is {coarse}, fine {fine} and repeats {repeats}; give at least 2, at least 0 and at least 1"
        )
    share = checked_share(catch, task)
    levels = [
        Level(each, float(contrast))
        for each in f
        for contrast in np.geomspace(c[0], c[-1], coarse)
        for _ in range(repeats)
    ]
    levels += catch_trials(len(levels), share, f)
    order = np.random.default_rng([seed, 1]).permutation(len(levels))
    posterior = ThresholdPosterior(len(f), default_grid(c, task, function))
    return YesLadder(f, (c[0], c[-1]), fine, repeats, share, [levels[i] for i in order], posterior, seed)
