"""Adaptive designs: the next level is that whose response is expected to tell most.

Levels whose responses are awaited make their neighbours less worth asking about.

QUEST+: Watson 2017, Journal of Vision 17(3):10. qCSF: Lesmes, Lu, Baek & Albright 2010, Journal of
Vision 10(3):17; here for yes or no answers with guesses and lapses, and with frequencies that may
deviate from the truncated log-parabola.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Literal, TypeAlias, get_args

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.analysis.psychometric.csf_posterior import (
    CsfGrid,
    CsfPosterior,
    Prior,
    csf_posterior,
)
from psyprobe.analysis.psychometric.posterior import (
    Function,
    Grid,
    ThresholdPosterior,
    default_grid,
    detection_probability,
)
from psyprobe.errors import InputError, check_known
from psyprobe.probes.designs.protocol import (
    DesignEstimate,
    Level,
    P,
    PosteriorDesign,
    check_levels,
)

About: TypeAlias = Literal["threshold", "all"]

#: A pending level takes up to this share of the expected information from levels near it.
_DIVERSITY = 0.7
#: Levels are near within about this distance, in log10 contrast.
_NEAR = 0.15
#: Levels alike but for so much, in nats of information or log10 contrast, are equal: no question
#: may hang on the last bits of a sum, which differ from processor to processor.
_ALIKE = 1e-9


def binary_entropy(p: FloatArray) -> FloatArray:
    """Compute the entropy, in nats, of an answer that is yes with probability p.

    Examples
    --------
    >>> binary_entropy(np.array([0.1, 0.5, 0.9])).round(4).tolist()
    [0.3251, 0.6931, 0.3251]
    """
    q = np.clip(p, 1e-300, 1.0)
    r = np.clip(1.0 - p, 1e-300, 1.0)
    return np.asarray(-(p * np.log(q) + (1.0 - p) * np.log(r)))


def information_on_threshold(
    mass: FloatArray, guess: FloatArray, rise: FloatArray, visible: FloatArray
) -> FloatArray:
    """Compute how much an answer is expected to tell of the threshold, nats, shape (X,).

    All other parameters are marginalised. It is the mutual information of answer and threshold
    (Kontsevich & Tyler 1999, Vision Research 39).

    Parameters
    ----------
    mass, guess, rise : ndarray, shape (T, W)
        Posterior of threshold and width, and in each cell its product with the mean guess rate and
        rise.
    visible : ndarray, shape (T, W, X)
        Probability of seeing the pattern at each of X contrasts.
    """
    threshold_mass = mass.sum(axis=1)[:, None]
    yes = guess.sum(axis=1)[:, None] + (rise[:, None, :] @ visible)[:, 0, :]
    yes_by_threshold = np.clip(yes / np.maximum(threshold_mass, 1e-300), 0.0, 1.0)
    noise = (threshold_mass * binary_entropy(yes_by_threshold)).sum(axis=0)
    return np.asarray(binary_entropy(yes.sum(axis=0)) - noise)


def noise_table(
    visible: FloatArray, guess: FloatArray, lapse: FloatArray
) -> FloatArray:
    """Compute the entropy of an answer at all parameters, shape (T * W * G * L, X).

    The probabilities of seeing the pattern have the shape (T, W, X).
    """
    g = guess[:, None, None]
    l = lapse[:, None]
    return binary_entropy(g + (1 - g - l) * visible[:, :, None, None, :]).reshape(
        -1, visible.shape[-1]
    )


def choose_level(
    information: Mapping[int, FloatArray],
    values: Sequence[float],
    contrasts: Sequence[float],
    pending: Sequence[Level],
) -> Level:
    """Choose the level of highest expected information, given those already asked.

    Parameters
    ----------
    information : mapping of int to ndarray, shape (X,)
        Of each contrast, by the place of each value that may be asked; of those that are equal but
        for rounding the first is chosen.
    values, contrasts : sequence of float
        Of the level; and above 0, X of them.
    pending : sequence of Level
        Levels whose responses are awaited.

    Examples
    --------
    >>> scores = {0: np.array([0.1, 0.3]), 1: np.array([0.2, 0.2])}
    >>> choose_level(scores, (1, 4), (0.01, 0.1), [Level(1, 0.1)])
    Level(value=4, contrast=0.01)
    """
    x = np.log10(contrasts)
    remaining = []
    for place, gain in information.items():
        pending_x = [
            np.log10(level.contrast)
            for level in pending
            if level.value == values[place] and not level.catch
        ]
        if pending_x:
            gain = gain * diversity(x, np.array(pending_x))
        remaining.append(gain)
    gains = np.array(remaining)
    row, column = np.argwhere(gains >= gains.max() - _ALIKE)[0].tolist()
    place = [*information][row]
    return Level(values[place], contrasts[column])


def diversity(x: FloatArray, pending: FloatArray) -> FloatArray:
    """Compute the share of information that pending levels leave to others, in (0, 1].

    Parameters
    ----------
    x : ndarray, shape (X,)
        Candidate levels, log10 contrast.
    pending : ndarray, shape (P,)
        Pending levels of the same value, log10 contrast.

    Examples
    --------
    >>> diversity(np.array([-2.0, -1.0]), np.array([-2.0])).round(2).tolist()
    [0.3, 1.0]
    """
    near = np.exp(-0.5 * ((x[:, None] - pending) / _NEAR) ** 2)
    return np.asarray((1 - _DIVERSITY * near).prod(axis=1))


class Adaptive(PosteriorDesign[P]):
    """A design that chooses every level by the responses so far; parameters as in `QuestPlus`."""

    def __init__(
        self,
        values: Iterable[float],
        contrasts: Iterable[float],
        chance: float | None,
        stop: float,
        n_max: int,
        catch: float,
        top: float,
        seed: int,
    ) -> None:
        offered = check_levels(values, contrasts, catch, chance)
        super().__init__(offered.values)
        self.contrasts = offered.contrasts
        self._catch_share = offered.catch_share
        if n_max < 1 or not stop >= 0 or not 0 <= top <= 0.5:
            raise InputError(
                f"n_max is {n_max}, stop {stop} and top {top}; give at least 1, at least 0 and "
                "a share from 0 to 0.5"
            )
        self._stop = stop
        self._n_max = n_max
        self._top = top
        self._order: list[int] = (
            np.random.default_rng(seed).permutation(len(self.values)).tolist()
        )

    def ask(self, n: int = 1) -> list[Level]:
        """Choose up to `n` levels to ask about at once."""
        levels: list[Level] = []
        information: dict[int, FloatArray] = {}
        while len(levels) < n and (places := self._open_places()):
            level = self._due_level(places)
            if level is None:
                for place in places:
                    if place not in information:
                        information[place] = self._information(place)
                gains = {place: information[place] for place in places}
                level = choose_level(gains, self.values, self.contrasts, self._pending)
            self._pending.append(level)
            levels.append(level)
        return levels

    @property
    def finished(self) -> bool:
        """Tell whether every threshold is known well enough or was asked often enough."""
        return not self._pending and not self._open_places()

    def _due_level(self, places: list[int]) -> Level | None:
        """Choose a catch trial or the highest contrast where too few were asked, else None."""
        if self._is_due(0.0, self._catch_share):
            turn = self._count_contrast(0.0) % len(self._order)
            return Level(self.values[self._order[turn]], 0.0)
        if self._is_due(self.contrasts[-1], self._top):
            # Where the pattern is seen most surely, a "no" tells of lapses.
            means = [self.posterior.mean(place) for place in places]
            lowest = min(means) + _ALIKE
            clearest = next(row for row, mean in enumerate(means) if mean <= lowest)
            return Level(self.values[places[clearest]], self.contrasts[-1])
        return None

    def _count_contrast(self, contrast: float) -> int:
        """Count the questions about a contrast, pending or answered; 0 counts catch trials."""
        pending = sum(level.contrast == contrast for level in self._pending)
        return self._by_contrast[contrast] + pending

    def _is_due(self, contrast: float, share: float) -> bool:
        """Tell whether the next question must have this contrast to keep its share."""
        count = self._responses + len(self._pending) + 1
        return self._count_contrast(contrast) < share * count

    def _is_wide(self, place: int) -> bool:
        """Tell whether a value's threshold interval is wider than the one to stop at."""
        low, high = self.posterior.interval(place)
        return high - low > self._stop

    @abstractmethod
    def _open_places(self) -> list[int]:
        """List the values, by index, that may still be asked about."""

    @abstractmethod
    def _information(self, place: int) -> FloatArray:
        """Compute the expected information of an answer at each contrast, for one value."""


class QuestPlus(Adaptive[ThresholdPosterior]):
    """QUEST+ over several values of a level that share guess and lapse rates.

    The first question is a catch trial and the second one at the highest contrast; both recur so
    that their shares are kept at every moment. All others go to the value and contrast that tell
    most beside the pending ones, so that several can be asked before the first is answered.

    Parameters
    ----------
    values : sequence of float
        Of the level besides contrast, such as frequencies in cpd.
    contrasts : sequence of float
        Above 0; those that may be shown. Close ones cost time only: 0.05 log10 apart is enough.
    chance : float, optional
        Rate of correct guesses in a forced choice, 1 / m of m alternatives, in which there are no
        catch trials; without it the question is answered by yes or no.
    about : {"threshold", "all"}
        What a level should tell of: the threshold alone, the other parameters being a nuisance, or
        all four, as QUEST+ was published.
    stop : float
        A value is done when the 95 % interval of its log10 threshold is at most this wide.
    n_max : int
        Or when it has had this many answers, excluded ones among them, catch trials not.
    catch, top : float
        Shares, at least, of catch trials and of trials at the highest contrast among all.
    function : {"logistic", "normal", "weibull"}
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
        chance: float | None = None,
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
        super().__init__(values, contrasts, chance, stop, n_max, catch, top, seed)
        check_known("aim of QUEST+", [about], get_args(About))
        self._about = about
        self.posterior = ThresholdPosterior(
            len(self.values),
            default_grid(self.contrasts, chance, function) if grid is None else grid,
            refine,
        )
        self._tables: dict[int, tuple[FloatArray, FloatArray, FloatArray | None]] = {}

    def _open_places(self) -> list[int]:
        """List the values whose threshold is still uncertain and has trials left."""
        counts = self._by_value.copy()
        counts.update(level.value for level in self._pending if not level.catch)
        unfinished = [i for i in self._order if counts[self.values[i]] < self._n_max]
        return [*filter(self._is_wide, unfinished)]

    def _information(self, place: int) -> FloatArray:
        """Compute the expected information of a trial at each contrast, for one value."""
        grid = self.posterior.grid
        thresholds = self.posterior.thresholds[place]
        if place not in self._tables or self._tables[place][0] is not thresholds:
            x = np.log10(self.contrasts)
            visible = detection_probability(
                x, thresholds[:, None, None], grid.width[:, None], grid.function
            )
            noise = (
                noise_table(visible, grid.guess, grid.lapse)
                if self._about == "all"
                else None
            )
            self._tables[place] = (thresholds, visible, noise)
        _, visible, noise = self._tables[place]
        mass, guess, rise = self.posterior.expected(place)
        if noise is None:
            return information_on_threshold(mass, guess, rise, visible)
        yes = guess.sum() + rise.reshape(-1) @ visible.reshape(rise.size, -1)
        # The level that maximises it is the one that minimises the expected entropy of the
        # posterior, as QUEST+ has it: one product with a table that does not change, where that
        # computes a posterior for each level and answer.
        return binary_entropy(yes) - self.posterior.joint(place).reshape(-1) @ noise


#: Draws from the posterior behind the interval of the area under the log CSF.
_DRAWS = 2000


class QuickCSF(Adaptive[CsfPosterior]):
    """qCSF over given frequencies.

    Parameters
    ----------
    frequencies : sequence of float
        In cpd, two or more.
    contrasts, chance, catch, top, function
        As in `QuestPlus`.
    stop : float
        Done when the 95 % interval of log10 sensitivity is at most this wide at every frequency.
    n_max : int
        Or after this many answers altogether, catch trials and excluded ones among them.
    grid : Grid, optional
        Thresholds, widths and rates with their prior.
    csf : CsfGrid, optional
        Parabolas and the deviation from them.
    prior : {"any", "people"}
        What is held likely beforehand, where no grid is given: next to any curve, or those of
        ordinary eyes at 20 to 200 cd/m² (`people_prior`).
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
        chance: float | None = None,
        stop: float = 0.3,
        n_max: int = 60,
        catch: float = 0.1,
        top: float = 0.05,
        function: Function = "logistic",
        grid: Grid | None = None,
        csf: CsfGrid | None = None,
        prior: Prior = "any",
        seed: int = 0,
    ) -> None:
        super().__init__(frequencies, contrasts, chance, stop, n_max, catch, top, seed)
        if len(self.values) < 2:
            raise InputError("qCSF needs at least two frequencies; use QUEST+ for one")
        self._seed = seed
        posterior = csf_posterior(
            self.values, self.contrasts, chance, function, prior, grid, csf
        )
        self._csf = posterior.csf
        # Which question tells most depends little on steps of the deviation.
        self.posterior = posterior.with_grid(self._csf.fewer_deviations())
        grid = self.posterior.grid
        self._visible = detection_probability(
            np.log10(self.contrasts),
            grid.threshold[:, None, None],
            grid.width[:, None],
            grid.function,
        )

    def estimate(self) -> DesignEstimate:
        """Estimate thresholds, the area under the log CSF, and deviations from the parabola."""
        posterior = self.posterior.refined(self._csf)
        estimate = self._describe(posterior)
        areas = posterior.areas(_DRAWS, self._seed)
        low, high = np.quantile(
            areas, [(1 - estimate.level) / 2, (1 + estimate.level) / 2]
        )
        return replace(
            estimate,
            aulcsf=float(areas.mean()),
            aulcsf_low=float(low),
            aulcsf_high=float(high),
            misfit=posterior.misfit(estimate.level),
        )

    def _open_places(self) -> list[int]:
        """List all values while any threshold is uncertain and trials are left."""
        if self._responses + len(self._pending) >= self._n_max:
            return []
        return self._order if any(map(self._is_wide, self._order)) else []

    def _information(self, place: int) -> FloatArray:
        """Compute the expected information of a trial at each contrast, for one frequency."""
        # An answer tells of the curve through the threshold at its frequency alone.
        return information_on_threshold(*self.posterior.expected(place), self._visible)
