"""The method of constant stimuli: every contrast at every frequency, a fixed number of times, in random order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from psyprobe.errors import InputError, unknown_name
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

TASKS = ("yes_no", "two_interval")


def checked_share(catch: float, task: Task) -> float:
    """Share of catch trials; 0 with two intervals, where a uniform pair has no right answer.

    Raises
    ------
    InputError
        The task is unknown or the share not in [0, 0.9].
    """
    if task not in TASKS:
        raise unknown_name("task", task, TASKS)
    if not 0 <= catch <= 0.9:
        raise InputError(f"catch is {catch}; give the share of catch trials, from 0 to 0.9")
    return float(catch) if task == "yes_no" else 0.0


def catch_trials(trials: int, share: float, frequencies: Sequence[float]) -> list[Level]:
    """As many catch trials as make up `share` of all, rounded up, over the frequencies in turn."""
    n = int(np.ceil(trials * share / (1 - share) - 1e-9))
    return [Level(frequencies[i % len(frequencies)], 0.0) for i in range(n)]


class ConstantStimuli:
    """A fixed list of levels in random order; made by `constant`."""

    def __init__(self, frequencies: tuple[float, ...], levels: list[Level], posterior: ThresholdPosterior) -> None:
        self.frequencies = frequencies
        self._left = levels
        self._books = Ledger()
        self._posterior = posterior

    def ask(self, n: int = 1) -> list[Level]:
        """Up to `n` levels to put at once; see `Design`."""
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
            if level not in self._left:
                raise InputError(f"{level} is not among the levels of this design that are still to be answered")
            self._left.remove(level)
        self._books.receive(level, excluded=value is None)
        if value is not None:
            take_in(self._posterior, self.frequencies, level, value, delivered)

    @property
    def finished(self) -> bool:
        """Whether every level has been answered."""
        return not self._left and not self._books.pending

    def estimate(self) -> DesignEstimate:
        """What is known so far."""
        return report(self._posterior, self.frequencies, self._books)


def constant(
    frequencies: Sequence[float],
    contrasts: Sequence[float],
    *,
    repeats: int = 10,
    catch: float = 0.1,
    task: Task = "yes_no",
    function: Function = "logistic",
    seed: int = 0,
) -> ConstantStimuli:
    """The method of constant stimuli.

    Parameters
    ----------
    frequencies : sequence of float
        In cpd.
    contrasts : sequence of float
        Above 0; catch trials come by themselves. The highest is shown as often as any, so that up to 20 contrasts
        leave 5 % of the trials for the lapse rate.
    repeats : int
        How often each contrast is shown at each frequency.
    catch : float
        Share of catch trials among all, at least; none with two intervals.
    task : {"yes_no", "two_interval"}
        What is asked; with two intervals the guess rate is 0.5.
    function : {"logistic", "normal"}
        Form of the psychometric function in `estimate`.
    seed : int
        Of the order.

    Returns
    -------
    Design

    Raises
    ------
    InputError
        An argument is out of range.

    Examples
    --------
    >>> design = constant([1, 4], [0.01, 0.1, 1.0], repeats=3, seed=1)
    >>> levels = design.ask(100)
    >>> len(levels), sum(level.catch for level in levels)
    (20, 2)
    >>> for level in levels:
    ...     design.tell(level, float(level.contrast > 0.05))
    >>> design.finished
    True
    """
    f, c = checked_frequencies(frequencies), checked_contrasts(contrasts)
    if repeats < 1:
        raise InputError(f"repeats is {repeats}; give a whole number of at least 1")
    share = checked_share(catch, task)
    levels = [Level(each, contrast) for each in f for contrast in c for _ in range(repeats)]
    levels += catch_trials(len(levels), share, f)
    order = np.random.default_rng(seed).permutation(len(levels))
    posterior = ThresholdPosterior(len(f), default_grid(c, task, function))
    return ConstantStimuli(f, [levels[i] for i in order], posterior)
