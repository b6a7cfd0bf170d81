"""Constant stimuli and the P(yes) ladder: rounds of levels, each in random order."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

import numpy as np

from psyprobe.analysis.psychometric.posterior import (
    Function,
    ThresholdPosterior,
    default_grid,
)
from psyprobe.errors import InputError
from psyprobe.probes.designs.protocol import (
    DesignLevels,
    Level,
    PosteriorDesign,
    check_levels,
)
from psyprobe.stimulus.parameters import log_spaced, power_of_ten


class Rounds(PosteriorDesign[ThresholdPosterior]):
    """A design of rounds of levels, each made when all before it are answered."""

    def __init__(
        self,
        offered: DesignLevels,
        chance: float | None,
        function: Function,
        rounds: Iterator[list[Level]],
    ) -> None:
        super().__init__(offered.values)
        self._grid = default_grid(offered.contrasts, chance, function)
        self._rounds = rounds
        self._remaining: list[Level] = []

    @cached_property
    def posterior(self) -> ThresholdPosterior:  # type: ignore[override]
        """The posterior of all values; made when needed, since it takes 0.3 MB a value."""
        return ThresholdPosterior(len(self.values), self._grid)

    def ask(self, n: int = 1) -> list[Level]:
        """Choose up to `n` of the remaining levels.

        Between rounds there are none until all of the last is answered.
        """
        self._begin_round()
        levels = self._remaining[:n]
        self._remaining = self._remaining[n:]
        self._pending += levels
        return levels

    @property
    def finished(self) -> bool:
        """Tell whether every level of every round has been answered."""
        self._begin_round()
        return not self._remaining and not self._pending

    def _take(self, level: Level) -> None:
        """Remove a level from those to be answered, refusing one that is not among them."""
        if level not in self._pending:
            self._begin_round()
            if level not in self._remaining:
                raise InputError(
                    f"{level} is not among the levels of this design that are still to be answered"
                )
            self._remaining.remove(level)

    def _begin_round(self) -> None:
        """Choose the levels of the next round once all before it are answered."""
        if not self._remaining and not self._pending:
            self._remaining = next(self._rounds, [])


class Lines(Rounds):
    """A design that goes down the levels, as down a chart, until too few answers are right."""

    def __init__(
        self,
        offered: DesignLevels,
        chance: float | None,
        function: Function,
        repeats: int,
        stop_below: int,
    ) -> None:
        super().__init__(offered, chance, function, self._lines(offered))
        self._repeats = repeats
        self._stop_below = stop_below
        self._right = 0.0

    def tell(
        self,
        level: Level,
        response: float | Sequence[float] | None,
        delivered: float | None = None,
    ) -> None:
        """Update the posterior, and count the right answers of the line."""
        super().tell(level, response, delivered)
        self._right += 0.0 if response is None else float(np.mean(response))

    def _lines(self, offered: DesignLevels) -> Iterator[list[Level]]:
        """Iterate over lines of one level, the easiest first."""
        for value in offered.values:
            for contrast in reversed(offered.contrasts):
                self._right = 0.0
                yield _combine([value], [contrast], self._repeats)
                if self._right < self._stop_below:
                    break


def constant(
    values: Iterable[float],
    contrasts: Iterable[float],
    *,
    repeats: int = 10,
    catch: float = 0.1,
    chance: float | None = None,
    function: Function = "logistic",
    seed: int = 0,
    stop_below: int | None = None,
) -> Rounds:
    """Build a design that shows every contrast at every value equally often, in random order.

    This is the method of constant stimuli; with `stop_below` it is that of charts.

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
    stop_below : int, optional
        Contrasts go from the highest down, and end at one of which fewer answers are right; with a
        forced choice only.

    Raises
    ------
    InputError
        If `repeats` is below 1, `stop_below` is above it or given without `chance`, or values,
        contrasts or the share of catch trials are not usable.

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
    offered = check_levels(values, contrasts, catch, chance)
    if repeats < 1:
        raise InputError(f"repeats is {repeats}; give a whole number of at least 1")
    if stop_below is not None:
        if chance is None or not 1 <= stop_below <= repeats:
            raise InputError(
                f"stop_below is {stop_below} with {repeats} repeats; give 1 to {repeats}, where "
                "one answer is right (not yes or no)"
            )
        return Lines(offered, chance, function, repeats, stop_below)
    levels = _combine(offered.values, offered.contrasts, repeats)
    return Rounds(offered, chance, function, iter([_shuffle(levels, offered, seed)]))


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
    """Build a design that shows coarse levels, then fine ones around the threshold they suggest.

    This P(yes) ladder has two rounds only, each as one batch. It is for read-outs that give a
    probability of yes, whose every answer tells much.

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
    offered = check_levels(values, contrasts, catch, chance)
    if coarse < 2 or fine < 0 or repeats < 1:
        raise InputError(
            f"coarse is {coarse}, fine {fine} and repeats {repeats}; give at least 2, at least "
            "0 and at least 1"
        )
    ends = (offered.contrasts[0], offered.contrasts[-1])
    levels = _combine(offered.values, log_spaced(*ends, coarse).tolist(), repeats)

    def make_second() -> list[Level]:
        """Show contrasts over the interval of each threshold, at least where the function is steep.

        Contrasts along the steep part fix the width, too.
        """
        levels: list[Level] = []
        bottom, top = np.log10(ends)
        for place, value in enumerate(offered.values):
            low, high = design.posterior.interval(place, 0.8)
            half = max((high - low) / 2, 0.3 * design.posterior.mean_width(place))
            centre = np.clip((low + high) / 2, bottom, top)
            near_threshold = np.linspace(
                max(centre - half, bottom), min(centre + half, top), fine
            )
            contrasts = [*map(power_of_ten, near_threshold.tolist())]
            levels += _combine([value], contrasts, repeats)
        return _shuffle(levels, offered, [seed, 2])

    def rounds() -> Iterator[list[Level]]:
        yield _shuffle(levels, offered, [seed, 1])
        if fine:
            yield make_second()

    design = Rounds(offered, chance, function, rounds())
    return design


def catch_trials(others: int, share: float) -> int:
    """Compute how many catch trials make up a share of all trials."""
    return math.ceil(others * share / (1 - share) - 1e-9)


def _combine(
    values: Sequence[float], contrasts: Sequence[float], repeats: int
) -> list[Level]:
    """Combine values with contrasts, each pair repeated."""
    return [
        Level(value, contrast)
        for value in values
        for contrast in contrasts
        for _ in range(repeats)
    ]


def _shuffle(
    levels: list[Level], offered: DesignLevels, seed: int | list[int]
) -> list[Level]:
    """Add catch trials at the values in turn, and shuffle all levels."""
    count = catch_trials(len(levels), offered.catch_share)
    values = offered.values
    trials = levels + [Level(values[i % len(values)], 0.0) for i in range(count)]
    return [trials[i] for i in np.random.default_rng(seed).permutation(len(trials))]
