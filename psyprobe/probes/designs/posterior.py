"""What the posteriors of designs share: answers, hard and soft, and means and intervals of the parameters.

A probability of yes is taken in as a fractional answer: p log psi + (1 - p) log(1 - psi), the quasi-likelihood of the
quasi-binomial model (McCullagh & Nelder 1989, Generalized Linear Models, ch. 9). Its maximum is where that of drawn
answers is on average; since p scatters less than a drawn yes or no does, it is divided by the dispersion that the
answers show, (1 + n r^2) / (1 + n - parameters): r^2 is the mean squared Pearson residual, weighted by the information
on the threshold, which makes the curvature of the likelihood that of its robust ("sandwich") variance; n the number of
answers; and one pseudo-residual of 1, the value for drawn answers, keeps intervals wide while there are few.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.errors import InputError
from psyprobe.probes.designs.psychometric_grid import Grid, seen

#: Variance of a Bernoulli answer is not taken to be below this when residuals are scaled.
_LEAST_VARIANCE = 0.01
#: Half the distance over which slopes are taken, in log10 contrast.
_STEP = 0.01


def log_probability(p: FloatArray, said: float) -> FloatArray:
    """Log of the probability of an answer, fractional for one between 0 and 1."""
    with np.errstate(divide="ignore"):
        if said == 1:
            value: FloatArray = np.log(p)
        elif said == 0:
            value = np.log1p(-p)
        else:
            value = said * np.log(p) + (1 - said) * np.log1p(-p)
    return value


def quantiles(values: FloatArray, mass: FloatArray, probability: FloatArray) -> FloatArray:
    """Quantiles of a distribution on evenly spaced values, each standing for the cell around it."""
    step = values[1] - values[0] if values.size > 1 else 0.0
    edges = np.concatenate([values - step / 2, [values[-1] + step / 2]])
    return np.asarray(np.interp(probability, np.concatenate([[0.0], np.cumsum(mass / mass.sum())]), edges))


@dataclass(frozen=True)
class GivenAnswer:
    """An answer at a log10 contrast, as it is kept for the dispersion and for finer grids."""

    x: float
    said: float

    @property
    def soft(self) -> bool:
        """Whether a probability was read rather than a yes or no."""
        return 0 < self.said < 1


def dispersion(answers: Sequence[Sequence[GivenAnswer]], psi: Callable[[int, FloatArray], FloatArray]) -> float:
    """How far probabilities of yes scatter about the function, relative to drawn answers: 1 where they do as these.

    Squared residuals are weighted by what their level tells of the threshold: probabilities near 0 and 1 scatter less
    than those in between, on which the threshold rests.

    Parameters
    ----------
    answers : sequence of sequence of GivenAnswer
        By value of the level.
    psi : callable
        Expected probability of yes at the place of a value and an array of log10 contrasts.
    """
    squares, weights, parameters = [np.zeros(0)], [np.zeros(0)], 2
    for each, given in enumerate(answers):
        soft = [answer for answer in given if answer.soft]
        if soft:
            x = np.array([answer.x for answer in soft])
            p = psi(each, x)
            variance = np.maximum(p * (1 - p), _LEAST_VARIANCE)
            squares.append((np.array([answer.said for answer in soft]) - p) ** 2 / variance)
            weights.append((psi(each, x + _STEP) - psi(each, x - _STEP)) ** 2 / variance + 1e-9)
            parameters += 2
    weight = np.concatenate(weights)
    if weight.size == 0:
        return 1.0
    n = weight.size
    mean_square = weight @ np.concatenate(squares) / weight.sum()
    return max(float((1 + n * mean_square) / (1 + max(n - parameters, 0))), 1e-3)


class Posterior(ABC):
    """What answers tell of the thresholds at several values of a level, which share guess and lapse rates.

    Parameters
    ----------
    values : int
        How many; each is known by its place.
    grid : Grid
        Parameters and their prior.
    shape : tuple of int
        Of the table of log likelihoods at one value.
    """

    #: Whether all values have the same width.
    one_width: bool

    def __init__(self, values: int, grid: Grid, shape: tuple[int, ...]) -> None:
        self.grid = grid
        self.dispersion = 1.0
        #: Of each value, log10 contrasts.
        self.thresholds = [grid.threshold] * values
        self._answers: list[list[GivenAnswer]] = [[] for _ in range(values)]
        self._hard = [np.zeros(shape) for _ in range(values)]
        self._soft: list[FloatArray | None] = [None] * values
        #: Catch trials with hard and with soft answers.
        self._catch = np.zeros((2, grid.guess.size, 1))
        self._expected: dict[int, tuple[FloatArray, FloatArray, FloatArray]] = {}

    def tell(self, place: int | None, x: float, said: float) -> None:
        """Take in one answer.

        Parameters
        ----------
        place : int or None
            At which of the values; None for a catch trial.
        x : float
            log10 contrast; of no account in a catch trial.
        said : float
            1 yes, 0 no, or a probability of yes.
        """
        answer = GivenAnswer(x, said)
        if place is None:
            self._catch[int(answer.soft)] += log_probability(self.grid.guess[:, None], said)
        else:
            self._answers[place].append(answer)
            self._add(place, answer)
            self._condition(place)
        self._share()
        if answer.soft:
            self._disperse()

    def expected(self, place: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Posterior of threshold and width, and means in each cell times it of guess and of 1 - guess - lapse.

        Each has the shape (T, W); contrast x is reported with the sum of guess + rise * F(x) over the grid.
        """
        if place not in self._expected:
            self._expected[place] = self._tables(place)
        return self._expected[place]

    def threshold_mass(self, place: int) -> FloatArray:
        """Posterior of the threshold at one value, shape (T,)."""
        return np.asarray(self.expected(place)[0].sum(axis=1))

    def mean(self, place: int) -> float:
        """Posterior mean of log10 threshold contrast at one value."""
        return float(self.threshold_mass(place) @ self.thresholds[place])

    def interval(self, place: int, level: float = 0.95) -> tuple[float, float]:
        """Central posterior interval of log10 threshold contrast at one value."""
        ends = np.array([(1 - level) / 2, (1 + level) / 2])
        low, high = quantiles(self.thresholds[place], self.threshold_mass(place), ends)
        return float(low), float(high)

    def mean_width(self, place: int) -> float:
        """Posterior mean of the width at one value."""
        return float(self.expected(place)[0].sum(axis=0) @ self.grid.width)

    def mean_guess(self) -> float:
        """Posterior mean of the guess rate."""
        return float(self._common().sum(axis=(0, 2)) @ self.grid.guess)

    def mean_lapse(self) -> float:
        """Posterior mean of the lapse rate."""
        return float(self._common().sum(axis=(0, 1)) @ self.grid.lapse)

    def _add(self, place: int, answer: GivenAnswer) -> None:
        g, l = self.grid.guess[:, None], self.grid.lapse
        psi = g + (1 - g - l) * self._seen(place, answer.x)[:, :, None, None]
        term = log_probability(psi, answer.said).reshape(self._hard[place].shape)
        soft = self._soft[place]
        if not answer.soft:
            self._hard[place] += term
        else:
            self._soft[place] = term if soft is None else soft + term

    def _log_likelihood(self, place: int) -> FloatArray:
        soft = self._soft[place]
        return self._hard[place] if soft is None else self._hard[place] + soft / self.dispersion

    def _disperse(self) -> None:
        g, l = self.mean_guess(), self.mean_lapse()

        def psi(place: int, x: FloatArray) -> FloatArray:
            width = np.array(self.mean_width(0 if self.one_width else place))
            return g + (1 - g - l) * seen(x, np.array(self.mean(place)), width, self.grid.function)

        self.dispersion = dispersion(self._answers, psi)
        for each, soft in enumerate(self._soft):
            if soft is not None:
                self._condition(each)
        self._share()

    def _normalised(self, log: FloatArray) -> FloatArray:
        """Probabilities that sum to 1, in place of their logs."""
        self._expected = {}
        highest = log.max()
        if not np.isfinite(highest):
            raise InputError("no guess and lapse rate on the grid could have given these answers; use rates above 0")
        log -= highest
        np.exp(log, out=log)
        log /= log.sum()
        return log

    @abstractmethod
    def _seen(self, place: int, x: float) -> FloatArray:
        """Probability of seeing log10 contrast x for each threshold and width, in the order of the tables."""

    @abstractmethod
    def _condition(self, place: int) -> None:
        """Take in the log likelihood at one value, which has changed."""

    @abstractmethod
    def _share(self) -> None:
        """Bring what the values share up to date."""

    @abstractmethod
    def _common(self) -> FloatArray:
        """Posterior of the common width and of the rates, shape (W, G, L)."""

    @abstractmethod
    def _tables(self, place: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        """As `expected`."""
