"""Constant stimuli and the P(yes) ladder: rounds of levels, each in random order."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import numpy as np

from psyprobe.analysis.psychometric.posterior import (
    Function,
    ThresholdPosterior,
    default_grid,
)
from psyprobe.errors import InputError
from psyprobe.probes.designs.protocol import Estimating, Level, checked
from psyprobe.stimulus.parameters import log_spaced, power_of_ten


class Rounds(Estimating[ThresholdPosterior]):
    """A round of levels, and perhaps one more that is made when all of the first is told."""

    def __init__(
        self,
        values: tuple[float, ...],
        posterior: ThresholdPosterior,
        first: list[Level],
        second: Callable[[], list[Level]] | None,
    ) -> None:
        super().__init__(values)
        self.posterior = posterior
        self._left = first
        self._second = second

    def ask(self, n: int = 1) -> list[Level]:
        """Up to `n` levels to put at once; none between the rounds until all of the first is
        told.
        """
        self._go_on()
        levels = self._left[:n]
        self._left = self._left[n:]
        self._books.pending += levels
        return levels

    @property
    def finished(self) -> bool:
        """Whether every level of every round has been answered."""
        return self._second is None and not self._left and not self._books.pending

    def _expect(self, level: Level) -> None:
        if level not in self._books.pending:
            self._go_on()
            if level not in self._left:
                raise InputError(
                    f"{level} is not among the levels of this design that are still to be answered"
                )
            self._left.remove(level)

    def _go_on(self) -> None:
        if self._second and not self._left and not self._books.pending:
            self._left = self._second()
            self._second = None


def constant(
    values: Iterable[float],
    contrasts: Iterable[float],
    *,
    repeats: int = 10,
    catch: float = 0.1,
    chance: float | None = None,
    function: Function = "logistic",
    seed: int = 0,
) -> Rounds:
    """The method of constant stimuli: every contrast at every value, a fixed number of times, in
    random order.

    Parameters
    ----------
    values : sequence of float
        Of the level besides contrast, such as frequencies in cpd.
    contrasts : sequence of float
        Above 0; catch trials come by themselves. The highest is shown as often as any, so that up
        to 20 contrasts leave 5 % of the trials for the lapse rate.
    repeats : int
        How often each contrast is shown at each value.
    catch : float
        Share of catch trials among all, at least; none with a forced choice.
    chance : float, optional
        Rate of correct guesses in a forced choice, 1 / m of m alternatives; without it the question
        is answered by yes or no.
    function : {"logistic", "normal", "weibull"}
        Form of the psychometric function in `estimate`.
    seed : int
        Of the order.

    Raises
    ------
    InputError
        If `repeats` is below 1, or values, contrasts or the share of catch trials are not usable.

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
    shown, c, share = checked(values, contrasts, catch, chance)
    if repeats < 1:
        raise InputError(f"repeats is {repeats}; give a whole number of at least 1")
    levels = [Level(each, contrast) for each in shown for contrast in c for _ in range(repeats)]
    posterior = ThresholdPosterior(len(shown), default_grid(c, chance, function))
    return Rounds(shown, posterior, _shuffled(levels, share, shown, seed), None)


def ladder(
    values: Iterable[float],
    contrasts: Iterable[float],
    *,
    coarse: int = 5,
    fine: int = 4,
    repeats: int = 1,
    catch: float = 0.1,
    chance: float | None = None,
    function: Function = "logistic",
    seed: int = 0,
) -> Rounds:
    """The P(yes) ladder: coarse levels over the range, then fine ones around the threshold that
    they show.

    Two rounds only, each as one batch: for read-outs that give a probability of yes, whose every
    answer tells much.

    Parameters
    ----------
    values, catch, chance, function, seed
        As in `constant`.
    contrasts : sequence of float
        Above 0; only the lowest and the highest count, between which levels lie evenly in log10
        contrast.
    coarse, fine : int
        Levels a value in the first round, ends included (at least 2), and in the second.
    repeats : int
        How often each level is shown.

    Raises
    ------
    InputError
        As `constant`.

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
    shown, c, share = checked(values, contrasts, catch, chance)
    if coarse < 2 or fine < 0 or repeats < 1:
        raise InputError(
            f"coarse is {coarse}, fine {fine} and repeats {repeats}; give at least 2, at least "
            "0 and at least 1"
        )
    posterior = ThresholdPosterior(len(shown), default_grid(c, chance, function))
    even = log_spaced(c[0], c[-1], coarse).tolist()
    first = [Level(each, contrast) for each in shown for contrast in even for _ in range(repeats)]

    def second() -> list[Level]:
        levels = [
            Level(each, contrast)
            for place, each in enumerate(shown)
            for contrast in _around(posterior, place, (c[0], c[-1]), fine)
            for _ in range(repeats)
        ]
        return _shuffled(levels, share, shown, [seed, 2])

    return Rounds(
        shown, posterior, _shuffled(first, share, shown, [seed, 1]), second if fine else None
    )


def catch_trials(others: int, share: float) -> int:
    """How many catch trials beside the others make up a share of all, at least."""
    return math.ceil(others * share / (1 - share) - 1e-9)


def _shuffled(
    levels: list[Level], share: float, values: tuple[float, ...], seed: int | list[int]
) -> list[Level]:
    """Levels with catch trials that make up at least `share` of all, over the values in turn, in
    random order.
    """
    levels = levels + [
        Level(values[i % len(values)], 0.0) for i in range(catch_trials(len(levels), share))
    ]
    return [levels[i] for i in np.random.default_rng(seed).permutation(len(levels))]


def _around(
    posterior: ThresholdPosterior, place: int, contrasts: tuple[float, float], fine: int
) -> list[float]:
    """Where the threshold may be, but not closer than the steep part of the function, which fixes
    its width too.
    """
    low, high = posterior.interval(place, 0.8)
    half = max((high - low) / 2, 0.3 * posterior.mean_width(place))
    bottom, top = np.log10(contrasts)
    centre = np.clip((low + high) / 2, bottom, top)
    levels = np.linspace(max(centre - half, bottom), min(centre + half, top), fine)
    return [power_of_ten(x) for x in levels.tolist()]
