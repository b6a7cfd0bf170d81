"""The posterior of the threshold at each of several frequencies, which share guess and lapse rates and a typical width.

Given these, frequencies are independent; so the joint posterior is kept exactly as one table of width x threshold x
guess x lapse a frequency, and one table of common width x guess x lapse that ties them together.

A probability of yes is taken in as a fractional answer: p log psi + (1 - p) log(1 - psi), the quasi-likelihood of the
quasi-binomial model (McCullagh & Nelder 1989, Generalized Linear Models, ch. 9). Its maximum is where that of drawn
answers is on average; since p scatters less than a drawn yes or no does, it is divided by the dispersion that the
answers show, (1 + n r^2) / (1 + n - parameters): r^2 is the mean squared Pearson residual, weighted by the information
on the threshold, which makes the curvature of the likelihood that of its robust ("sandwich") variance; n the number of
answers; and one pseudo-residual of 1, the value for drawn answers, keeps intervals wide while there are few.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.errors import InputError
from psyprobe.probes.designs.psychometric_grid import Grid, seen

#: Thresholds lie at least this many to a 95 % interval; a finer grid takes over where they would not.
STEPS_PER_INTERVAL = 8
#: A finer grid leaves out less than this of the posterior on each side.
_LEFT_OUT = 1e-5
#: Variance of a Bernoulli answer is not taken to be below this when residuals are scaled.
_LEAST_VARIANCE = 0.01
#: Half the distance over which slopes are taken, in log10 contrast.
_STEP = 0.01


def binary_entropy(p: FloatArray) -> FloatArray:
    """Entropy in nats of an answer that is yes with probability p.

    Examples
    --------
    >>> binary_entropy(np.array([0.1, 0.5, 0.9])).round(4).tolist()
    [0.3251, 0.6931, 0.3251]
    """
    q = np.clip(p, 1e-300, 1.0)
    r = np.clip(1.0 - p, 1e-300, 1.0)
    entropy: FloatArray = -(p * np.log(q) + (1.0 - p) * np.log(r))
    return entropy


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
    result: FloatArray = np.interp(probability, np.concatenate([[0.0], np.cumsum(mass / mass.sum())]), edges)
    return result


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
    """How far probabilities of yes scatter about the function, relative to drawn answers.

    Squared residuals are weighted by what their level tells of the threshold: probabilities near 0 and 1 scatter less
    than those in between, on which the threshold rests.

    Parameters
    ----------
    answers : sequence of sequence of GivenAnswer
        By frequency.
    psi : callable
        Expected probability of yes at an index of frequency and an array of log10 contrasts.

    Returns
    -------
    float
        1 for answers that scatter as drawn ones do.
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


class ThresholdPosterior:
    """What answers tell of the thresholds at several frequencies.

    Parameters
    ----------
    frequencies : int
        How many.
    grid : Grid
        Parameters and their prior.
    refine : bool
        Replace a frequency's thresholds by closer ones when its posterior has become narrow.

    Examples
    --------
    >>> grid = Grid(np.linspace(-4, 0, 41), np.array([0.8]), np.array([0.02]), np.array([0.02]))
    >>> posterior = ThresholdPosterior(1, grid)
    >>> for x, said in ((-3.0, 0), (-2.5, 0), (-1.5, 1), (-1.0, 1)):
    ...     posterior.tell(0, x, said)
    >>> round(posterior.mean(0), 2)
    -2.0
    """

    def __init__(self, frequencies: int, grid: Grid, refine: bool = True) -> None:
        self.grid = grid
        self.refine = refine
        self.dispersion = 1.0
        self.thresholds = [grid.threshold] * frequencies
        self._answers: list[list[GivenAnswer]] = [[] for _ in range(frequencies)]
        shape = (grid.width.size, grid.threshold.size, grid.guess.size, grid.lapse.size)
        self._hard = [np.zeros(shape) for _ in range(frequencies)]
        self._soft: list[FloatArray | None] = [None] * frequencies
        self._catch_hard = np.zeros((grid.guess.size, 1))
        self._catch_soft = np.zeros((grid.guess.size, 1))
        self._link = grid.width_given_centre()
        with np.errstate(divide="ignore"):
            self._log_prior = (
                np.log(grid.width_prior)[:, None, None] + np.log(grid.guess_prior)[:, None] + np.log(grid.lapse_prior)
            )
        self._threshold_given: list[FloatArray] = [np.empty(0)] * frequencies
        self._evidence: list[tuple[FloatArray, FloatArray]] = [(np.empty(0), np.empty(0))] * frequencies
        self._linked: list[FloatArray] = [np.empty(0)] * frequencies
        for each in range(frequencies):
            self._condition(each)
        self._share()

    def tell(self, frequency: int | None, x: float, said: float) -> None:
        """Take in one answer.

        Parameters
        ----------
        frequency : int or None
            Which of the frequencies; None for a catch trial.
        x : float
            log10 contrast; of no account in a catch trial.
        said : float
            1 yes, 0 no, or a probability of yes.

        Raises
        ------
        InputError
            No value on the grid could have given this answer.
        """
        soft = 0 < said < 1
        if frequency is None:
            (self._catch_soft if soft else self._catch_hard)[...] += log_probability(self.grid.guess[:, None], said)
        else:
            answer = GivenAnswer(x, said)
            self._answers[frequency].append(answer)
            self._add(frequency, answer)
            self._condition(frequency)
        self._share()
        if soft:
            self._disperse()
        if self.refine and frequency is not None:
            self._refine(frequency)

    def joint(self, frequency: int) -> FloatArray:
        """Posterior of threshold, width, guess and lapse at one frequency, shape (T, W, G, L)."""
        joint = self._threshold_given[frequency] * self._rest(frequency)[:, None]
        swapped: FloatArray = np.swapaxes(joint, 0, 1)
        return swapped

    def expected(self, frequency: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Posterior of threshold and width, and means in each cell times it of guess and of 1 - guess - lapse.

        Returns
        -------
        mass, guess, rise : ndarray, each of shape (T, W)
            The probability that the pattern is reported at contrast x is the sum of guess + rise * F(x) over the grid.
        """
        if frequency not in self._expected:
            g, l = self.grid.guess[:, None], self.grid.lapse
            rest = self._rest(frequency)
            columns = np.stack([rest, rest * g, rest * (1 - g - l)], axis=-1)
            w, t = self._threshold_given[frequency].shape[:2]
            tables = self._threshold_given[frequency].reshape(w, t, -1) @ columns.reshape(w, -1, 3)
            mass, guess, rise = tables.transpose(2, 1, 0)
            self._expected[frequency] = mass, guess, rise
        return self._expected[frequency]

    def threshold_mass(self, frequency: int) -> FloatArray:
        """Posterior of the threshold at one frequency, shape (T,)."""
        mass: FloatArray = self.expected(frequency)[0].sum(axis=1)
        return mass

    def mean(self, frequency: int) -> float:
        """Posterior mean of log10 threshold contrast at one frequency."""
        return float(self.threshold_mass(frequency) @ self.thresholds[frequency])

    def interval(self, frequency: int, level: float = 0.95) -> tuple[float, float]:
        """Central posterior interval of log10 threshold contrast at one frequency."""
        ends = np.array([(1 - level) / 2, (1 + level) / 2])
        low, high = quantiles(self.thresholds[frequency], self.threshold_mass(frequency), ends)
        return float(low), float(high)

    def mean_width(self, frequency: int) -> float:
        """Posterior mean of the width at one frequency."""
        return float(self.expected(frequency)[0].sum(axis=0) @ self.grid.width)

    def mean_guess(self) -> float:
        """Posterior mean of the guess rate."""
        return float(self._common.sum(axis=(0, 2)) @ self.grid.guess)

    def mean_lapse(self) -> float:
        """Posterior mean of the lapse rate."""
        return float(self._common.sum(axis=(0, 1)) @ self.grid.lapse)

    def _add(self, frequency: int, answer: GivenAnswer) -> None:
        f = seen(np.array(answer.x), self.thresholds[frequency], self.grid.width[:, None], self.grid.function)
        g, l = self.grid.guess[:, None], self.grid.lapse
        term = log_probability(g + (1 - g - l) * f[:, :, None, None], answer.said)
        if not answer.soft:
            self._hard[frequency] += term
            return
        soft = self._soft[frequency]
        self._soft[frequency] = term if soft is None else soft + term

    def _condition(self, frequency: int) -> None:
        # The threshold given all else, and the evidence for each width and pair of rates, relative to `top`.
        soft = self._soft[frequency]
        log = self._hard[frequency] if soft is None else self._hard[frequency] + soft / self.dispersion
        top = log.max(axis=(0, 1))
        top = np.where(np.isfinite(top), top, 0.0)
        mass = np.exp(log - top)
        total = mass.sum(axis=1)
        self._evidence[frequency] = (total, top)
        self._linked[frequency] = np.tensordot(self._link, total, 1)
        self._threshold_given[frequency] = mass / np.where(total > 0, total, 1.0)[:, None]

    def _share(self) -> None:
        log = self._log_prior + self._catch_hard + self._catch_soft / self.dispersion
        with np.errstate(divide="ignore"):
            for (_, top), linked in zip(self._evidence, self._linked, strict=True):
                log = log + top + np.log(linked)
        highest = log.max()
        if not np.isfinite(highest):
            raise InputError("no guess and lapse rate on the grid could have given these answers; use rates above 0")
        mass = np.exp(log - highest)
        self._common: FloatArray = mass / mass.sum()
        self._expected: dict[int, tuple[FloatArray, FloatArray, FloatArray]] = {}

    def _rest(self, frequency: int) -> FloatArray:
        # Posterior of width, guess and lapse at one frequency, shape (W, G, L).
        linked = self._linked[frequency]
        share = self._common / np.where(linked > 0, linked, 1.0)
        rest: FloatArray = self._evidence[frequency][0] * np.tensordot(self._link.T, share, 1)
        return rest

    def _disperse(self) -> None:
        g, l = self.mean_guess(), self.mean_lapse()

        def psi(frequency: int, x: FloatArray) -> FloatArray:
            threshold, width = np.array(self.mean(frequency)), np.array(self.mean_width(frequency))
            return g + (1 - g - l) * seen(x, threshold, width, self.grid.function)

        self.dispersion = dispersion(self._answers, psi)
        for each in range(len(self._answers)):
            if self._soft[each] is not None:
                self._condition(each)
        self._share()

    def _refine(self, frequency: int) -> None:
        values, mass = self.thresholds[frequency], self.threshold_mass(frequency)
        if values.size < 2 * STEPS_PER_INTERVAL:
            return
        full = self.grid.threshold
        at_low_edge = values[0] > full[0] + 1e-9 and mass[:2].sum() > 1e-3
        at_high_edge = values[-1] < full[-1] - 1e-9 and mass[-2:].sum() > 1e-3
        if at_low_edge or at_high_edge:
            self._rebuild(frequency, full)
            values, mass = full, self.threshold_mass(frequency)
        step = values[1] - values[0]
        low, high = quantiles(values, mass, np.array([0.025, 0.975]))
        if high - low >= STEPS_PER_INTERVAL * step:
            return
        ends = quantiles(values, mass, np.array([_LEFT_OUT, 1 - _LEFT_OUT])) + np.array([-2, 2]) * step
        ends = np.clip(ends, full[0], full[-1])
        if ends[1] - ends[0] < 0.75 * (values[-1] - values[0]):
            self._rebuild(frequency, np.linspace(ends[0], ends[1], values.size))

    def _rebuild(self, frequency: int, thresholds: FloatArray) -> None:
        self.thresholds[frequency] = thresholds
        self._hard[frequency] = np.zeros_like(self._hard[frequency])
        self._soft[frequency] = None
        for answer in self._answers[frequency]:
            self._add(frequency, answer)
        self._condition(frequency)
        self._share()
