"""QUEST+: each level is the one whose answer is expected to tell most (Watson 2017, Journal of Vision 17(3):10)."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.errors import unknown_name
from psyprobe.probes.designs.adaptive import Adaptive
from psyprobe.probes.designs.choosing import About, information_on_all, information_on_threshold, noise_table
from psyprobe.probes.designs.psychometric_grid import Function, Grid, Task, default_grid, seen
from psyprobe.probes.designs.threshold_posterior import ThresholdPosterior


class QuestPlus(Adaptive[ThresholdPosterior]):
    """QUEST+ over several values of a level at once, with guess and lapse rates that they share.

    The first question is a catch trial and the second one at the highest contrast; both recur so that their shares
    are kept at every moment. All others go to the value and contrast that tell most, less what levels on their
    way are about to tell: so several can be asked before the first is answered.

    Parameters
    ----------
    values : sequence of float
        Of the level besides contrast, such as frequencies in cpd.
    contrasts : sequence of float
        Above 0; those that may be shown. Close ones cost time only: 0.05 log10 apart is enough.
    task : {"yes_no", "two_interval"}
        What is asked; with two intervals the guess rate is 0.5 and there are no catch trials.
    about : {"threshold", "all"}
        What a level should tell of: the threshold alone, the other parameters being a nuisance, or all four, as
        QUEST+ was published.
    stop : float
        A value is done when the 95 % interval of its log10 threshold is at most this wide.
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
        Orders values that promise the same.

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
        values: Iterable[float],
        contrasts: Iterable[float],
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
        super().__init__(values, contrasts, task, stop, n_max, catch, top, seed)
        if about not in ("threshold", "all"):
            raise unknown_name("aim of QUEST+", about, ("threshold", "all"))
        self._about = about
        self.posterior = ThresholdPosterior(
            len(self.values), default_grid(self.contrasts, task, function) if grid is None else grid, refine
        )
        self._tables: dict[int, tuple[FloatArray, FloatArray, FloatArray | None]] = {}

    def _open(self) -> list[int]:
        def wide(place: int) -> bool:
            low, high = self.posterior.interval(place)
            return high - low > self._stop

        return [each for each in self._order if self._books.asked_at(self.values[each]) < self._n_max and wide(each)]

    def _information(self, place: int) -> FloatArray:
        grid, thresholds = self.posterior.grid, self.posterior.thresholds[place]
        if place not in self._tables or self._tables[place][0] is not thresholds:
            x = np.log10(self.contrasts)
            visible = seen(x, thresholds[:, None, None], grid.width[:, None], grid.function)
            noise = noise_table(visible, grid.guess, grid.lapse) if self._about == "all" else None
            self._tables[place] = (thresholds, visible, noise)
        _, visible, noise = self._tables[place]
        mass, guess, rise = self.posterior.expected(place)
        if noise is None:
            return information_on_threshold(mass, guess, rise, visible)
        yes = guess.sum() + rise.reshape(-1) @ visible.reshape(rise.size, -1)
        return information_on_all(self.posterior.joint(place), yes, noise)
