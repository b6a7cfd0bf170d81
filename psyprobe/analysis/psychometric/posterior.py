"""Compute posteriors of psychometric functions on log10 contrast, over a grid of parameters.

psi(x) = guess + (1 - guess - lapse) F(x), F at 0.5 at the threshold and from 0.05 to 0.95 over the
width (psignifit 4: Schütt, Harmeling, Macke & Wichmann 2016, Vision Research 122, Eq. 1).

A probability of yes counts as a fractional answer: p log psi + (1 - p) log(1 - psi), the
quasi-likelihood of the quasi-binomial model (McCullagh & Nelder 1989, Generalized Linear Models,
ch. 9). Its maximum is where that of drawn answers is on average; since p scatters less than a drawn
yes or no does, it is divided by the dispersion that the answers show, (1 + n r^2) / (1 + n -
parameters): r^2 is the mean squared Pearson residual, weighted by the information on the threshold,
which makes the curvature of the likelihood that of its robust ("sandwich") variance; n the number
of answers; and one pseudo-residual of 1, the value for drawn answers, keeps intervals wide while
there are few.

Several values of a level share guess and lapse rates and a typical width. Given these, values are
independent; so the joint posterior is kept exactly as one table of width x threshold x guess x
lapse a value, and one table of common width x guess x lapse that ties them together.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.analysis.intervals import quantiles
from psyprobe.errors import InputError, unknown_name

Function: TypeAlias = Literal["logistic", "normal", "weibull"]
#: Edges of the cells of a grid: a rate stands for its cell, whose prior mass it carries.
Edges: TypeAlias = tuple[float, ...]

#: F's argument runs over this distance while F runs from 0.05 to 0.95.
_REACH = {
    "logistic": 2 * np.log(19.0),
    "normal": 3.2897072539029435,
    "weibull": np.log(np.log(0.05) / np.log(0.95)),
}


def detection_probability(
    x: FloatArray,
    threshold: FloatArray,
    width: FloatArray,
    function: Function = "logistic",
) -> FloatArray:
    """Compute the probability of seeing the pattern, without guesses and lapses.

    Parameters
    ----------
    x, threshold, width : ndarray
        In log10 contrast, of shapes that broadcast.
    function : {"logistic", "normal", "weibull"}
        Form of the psychometric function; Weibull's is over linear contrast, as in QUEST.

    Examples
    --------
    >>> x = np.array([-2.4, -2.0, -1.6])
    >>> detection_probability(x, np.array(-2.0), np.array(0.8)).round(3).tolist()
    [0.05, 0.5, 0.95]
    """
    from scipy.special import expit, ndtr

    z = _REACH[function] * (np.asarray(x) - threshold) / width
    if function == "weibull":
        # Beyond exp(5) it is 1 in float64.
        return np.asarray(-np.expm1(-np.log(2.0) * np.exp(np.minimum(z, 5.0))))
    return np.asarray(expit(z) if function == "logistic" else ndtr(z))


def normalised_weights(values: FloatArray, prior: FloatArray) -> FloatArray:
    """Scale prior weights to sum to 1; a single weight stands for all values."""
    weights = np.asarray(prior, dtype=np.float64)
    if weights.size == 1:
        weights = weights * np.ones(values.size)
    if (
        weights.shape != values.shape
        or not (weights >= 0).all()
        or not weights.sum() > 0
    ):
        raise InputError(
            f"prior weights are {prior}; give one of at least 0 for each of {values.size} values"
        )
    return np.asarray(weights / weights.sum())


@dataclass(frozen=True, eq=False)
class Grid:
    """Values that the parameters of a psychometric function may take, with their prior.

    Parameters
    ----------
    threshold, width : ndarray
        In log10 contrast, ascending, evenly spaced in the threshold.
    guess, lapse : ndarray
        Rates in [0, 1).
    width_prior, guess_prior, lapse_prior : ndarray
        Prior weight of each value; equal unless given, as always for thresholds.
    width_spread : float or tuple of float
        Standard deviation of log10 width from value to value of the level about a common centre,
        whose prior `width_prior` is; 0 for one width at all values, infinite for widths that tell
        nothing of each other. Of several, equally likely at first, the answers choose.
    function : {"logistic", "normal", "weibull"}
        Form of the psychometric function.

    Examples
    --------
    >>> thresholds = np.array([-3.0, -2.0, -1.0])
    >>> Grid(thresholds, np.array([0.8]), np.array([0.02]), np.array([0.02])).shape
    (3, 1, 1, 1)
    """

    threshold: FloatArray
    width: FloatArray
    guess: FloatArray
    lapse: FloatArray
    width_prior: FloatArray = field(default_factory=lambda: np.ones(1))
    guess_prior: FloatArray = field(default_factory=lambda: np.ones(1))
    lapse_prior: FloatArray = field(default_factory=lambda: np.ones(1))
    width_spread: float | tuple[float, ...] = 0.0
    function: Function = "logistic"

    def __post_init__(self) -> None:
        for name in ("threshold", "width", "guess", "lapse"):
            values = np.atleast_1d(np.asarray(getattr(self, name), dtype=np.float64))
            object.__setattr__(self, name, values)
            if name != "threshold":
                weights = normalised_weights(values, getattr(self, f"{name}_prior"))
                object.__setattr__(self, f"{name}_prior", weights)
        if self.function not in _REACH:
            raise unknown_name(
                "psychometric function of a design", self.function, _REACH
            )
        if not (self.width > 0).all() or not min(self.spreads) >= 0:
            raise InputError(
                f"widths are {self.width.tolist()} and spread {self.width_spread}; give log10 "
                "contrasts above 0 and a spread of at least 0"
            )
        if (
            self.guess.min() < 0
            or self.lapse.min() < 0
            or self.guess.max() + self.lapse.max() >= 1
        ):
            raise InputError(
                f"guess goes to {self.guess.max():g} and lapse to {self.lapse.max():g}; give "
                "rates of at least 0 that together stay below 1"
            )

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Count the grid's thresholds, widths, guess rates and lapse rates."""
        return self.threshold.size, self.width.size, self.guess.size, self.lapse.size

    @property
    def spreads(self) -> tuple[float, ...]:
        """List the spreads of the widths."""
        spread = self.width_spread
        return spread if isinstance(spread, tuple) else (spread,)

    def width_given_centre(self) -> FloatArray:
        """Compute the probability of each width (columns) given the centre of all (rows).

        Rows run over the centres with the first spread, then with the next.
        """
        return np.concatenate([self._width_given_centre(s) for s in self.spreads])

    def _width_given_centre(self, spread: float) -> FloatArray:
        """Compute the probability of each width given the centre, for one spread."""
        if np.isinf(spread):
            return np.tile(self.width_prior, (self.width.size, 1))
        if spread == 0:
            return np.eye(self.width.size)
        log = np.log10(self.width)
        weights = np.exp(-0.5 * ((log[:, None] - log) / spread) ** 2)
        return np.asarray(weights / weights.sum(axis=1, keepdims=True))


#: Cells of the rates of guess and lapse, from 0 to the largest that is believed.
_GUESS_EDGES = (0.0, 0.01, 0.03, 0.06, 0.12, 0.22, 0.35, 0.5)
_LAPSE_EDGES = (0.0, 0.01, 0.03, 0.06, 0.1)


def default_grid(
    contrasts: Sequence[float],
    chance: float | None = None,
    function: Function = "logistic",
) -> Grid:
    """Build the default grid of thresholds, widths and rates of adaptive designs.

    Thresholds lie evenly from half a log10 unit below the lowest contrast to half a unit above the
    highest, so that a threshold which cannot be reached shows as one. The common width has a
    log-normal prior with median 0.7 and a standard deviation of 0.25 log10, from which those of
    single values deviate by 0.1 log10. Guess and lapse rates are Beta(1/2, 5) on [0, 0.5] and
    Beta(1/2, 10) on [0, 0.1]: rates near 0 are likeliest, larger ones not ruled out (as in
    Jeffreys' prior). In a forced choice the guess rate is that of chance.

    Parameters
    ----------
    contrasts : sequence of float
        Those that may be shown, above 0, ascending.
    chance : float, optional
        Rate of correct guesses in a forced choice, 1 / m of m alternatives; without it the question
        is answered by yes or no.
    function : str
        As for `fit_psychometric`.

    Examples
    --------
    >>> grid = default_grid((0.001, 1.0))
    >>> float(grid.threshold[0]), float(grid.threshold[-1])
    (-3.5, 0.5)
    >>> default_grid((0.001, 1.0), chance=0.5).guess.tolist()
    [0.5]
    """
    low, high = _threshold_ends(contrasts)
    return _build_grid(
        np.linspace(low, high, int(np.ceil((high - low) / 0.06)) + 1),
        np.geomspace(0.2, 2.0, 9),
        _GUESS_EDGES,
        _LAPSE_EDGES,
        0.1,
        chance,
        function,
    )


def noise_grid(
    contrasts: Sequence[float],
    chance: float | None = None,
    function: Function = "logistic",
    *,
    lapse: float = 0.1,
) -> Grid:
    """Build the grid for answers in external noise, to find thresholds from.

    As the default one, but the median width is 1.36, where d' grows in proportion to contrast in a
    choice between two; it is 0.7 where uncertainty makes d' accelerate. Lapse rates are Beta(1/2,
    30): an efficiency is of the threshold alone, which rates that are believed without evidence
    lower.

    Parameters
    ----------
    contrasts, chance, function
        As for `default_grid`.
    lapse : float
        Largest rate of lapses.

    Examples
    --------
    >>> noise_grid((0.001, 1.0), chance=0.5, lapse=0.005).lapse.tolist()
    [0.0025]
    """
    grid = default_grid(contrasts, chance, function)
    rates, prior = _rates(_edges(_LAPSE_EDGES, 0.0, lapse), 30.0)
    width_prior = _width_prior(grid.width, 1.36)
    return replace(grid, width_prior=width_prior, lapse=rates, lapse_prior=prior)


def size_grid(
    sizes: Sequence[float],
    chance: float | None = None,
    function: Function = "logistic",
) -> Grid:
    """Build the grid for answers over the size of letters, to find thresholds from.

    As the default one, but the median width is 0.4, since acuity rises more steeply over size than
    seeing does over contrast. People's fitted normal functions have a standard deviation of 0.06 to
    0.15 log10, which are widths of 0.21 to 0.49, and slopes range tenfold.

    Parameters
    ----------
    sizes, chance, function
        As `contrasts` and the others of `default_grid`.

    References
    ----------
    Sloan's letters: PubMed 28211180 (2017). Landolt's rings: Petersen 1990, PubMed 2086404. Range:
    PubMed 4083332 (1985).

    Examples
    --------
    >>> grid = size_grid((0.05, 0.5), chance=0.1)
    >>> round(float(10 ** (np.log10(grid.width) @ grid.width_prior)), 2)
    0.4
    """
    grid = default_grid(sizes, chance, function)
    widths = np.geomspace(0.1, 2.0, 11)
    return replace(grid, width=widths, width_prior=_width_prior(widths, 0.4))


def _threshold_ends(contrasts: Sequence[float]) -> tuple[float, float]:
    """Return the range of log10 thresholds: half a decade beyond the contrasts at each end."""
    return np.log10(contrasts[0]) - 0.5, np.log10(contrasts[-1]) + 0.5


def csf_width_and_rates(
    contrasts: Sequence[float],
    chance: float | None = None,
    function: Function = "logistic",
) -> Grid:
    """Build a grid with fewer widths and rates, for designs that fit all frequencies at once.

    Examples
    --------
    >>> csf_width_and_rates((0.001, 1.0)).shape
    (81, 3, 5, 2)
    """
    low, high = _threshold_ends(contrasts)
    threshold = np.linspace(low, high, round((high - low) / 0.05) + 1)
    guess = (0.0, 0.03, 0.09, 0.18, 0.32, 0.5)
    lapse = (0.0, 0.03, 0.1)
    return _build_grid(
        threshold, np.array([0.4, 0.75, 1.4]), guess, lapse, 0.0, chance, function
    )


def counts_grid(
    thresholds: tuple[float, float],
    guess: tuple[float, float],
    lapse: tuple[float, float],
    function: Function = "logistic",
) -> Grid:
    """Build the grid for counted answers: as the default one, with rates between bounds.

    How far widths differ from value to value is learned.

    Parameters
    ----------
    thresholds : (float, float)
        Lowest and highest threshold, log10 contrast.
    guess, lapse : (float, float)
        Bounds of the rates, equal where one is fixed.
    function : str
        As for `default_grid`.

    Examples
    --------
    >>> grid = counts_grid((-3.0, 0.0), (0.5, 0.5), (0.0, 0.02))
    >>> grid.guess.tolist(), grid.lapse.tolist()
    ([0.5], [0.005, 0.015])
    """
    low, high = thresholds
    return _build_grid(
        np.linspace(low, high, int(np.ceil((high - low) / 0.04)) + 1),
        np.geomspace(0.1, 2.0, 14),
        _edges(_GUESS_EDGES, *guess),
        _edges(_LAPSE_EDGES, *lapse),
        (0.03, 0.1, 0.2, 0.3),
        None,
        function,
    )


def _edges(edges: Edges, low: float, high: float) -> Edges:
    """Limit the cells of a rate to its bounds."""
    return (low, *(edge for edge in edges if low < edge < high), high)


def _build_grid(
    threshold: FloatArray,
    width: FloatArray,
    guesses: Edges,
    lapses: Edges,
    spread: float | tuple[float, ...],
    chance: float | None,
    form: Function,
) -> Grid:
    """Build the grid of thresholds, widths and rates, with prior weights."""
    guess, guess_prior = _rates(guesses, 5.0)
    if chance is not None:
        guess = np.array([chance])
        guess_prior = np.ones(1)
    lapse, lapse_prior = _rates(lapses, 10.0)
    return Grid(
        threshold,
        width,
        guess,
        lapse,
        _width_prior(width, 0.7),
        guess_prior,
        lapse_prior,
        spread,
        form,
    )


def _width_prior(width: FloatArray, median: float) -> FloatArray:
    """Compute the log-normal prior weights of widths, whose standard deviation is 0.25 log10."""
    return np.asarray(np.exp(-0.5 * (np.log10(width / median) / 0.25) ** 2))


def _rates(edges: Edges, b: float) -> tuple[FloatArray, FloatArray]:
    """Compute a grid of rates, with the prior mass of Beta(1/2, b) in each cell."""
    from scipy.special import betainc

    ends = np.array(edges)
    if ends[0] == ends[-1]:
        return ends[:1], np.ones(1)
    return (ends[1:] + ends[:-1]) / 2, np.diff(betainc(0.5, b, ends))


#: Least variance of a Bernoulli answer by which residuals are scaled.
_LEAST_VARIANCE = 0.01
#: Half the distance over which slopes are taken, in log10 contrast.
_STEP = 0.01


def log_probability(p: FloatArray, response: float) -> FloatArray:
    """Compute the log probability of an answer: 0, 1, or a probability of yes between."""
    with np.errstate(divide="ignore"):
        if 0 < response < 1:
            return np.asarray(response * np.log(p) + (1 - response) * np.log1p(-p))
        return np.asarray(np.log(p) if response else np.log1p(-p))


@dataclass(frozen=True)
class Answer:
    """An answer at a log10 contrast, stored for the dispersion and for finer grids."""

    x: float
    response: float
    #: How often it was given.
    count: float = 1.0

    @property
    def soft(self) -> bool:
        """Tell whether the answer is a probability of yes, and no yes or no."""
        return 0 < self.response < 1


def dispersion(
    answers: Sequence[Sequence[Answer]], psi: Callable[[int, FloatArray], FloatArray]
) -> float:
    """Estimate how far given probabilities of yes scatter, relative to yes/no answers.

    It is 1 where they scatter as drawn answers do. Squared residuals are weighted by their level's
    information on the threshold: probabilities near 0 and 1 scatter less than those in between, on
    which the threshold rests.

    Parameters
    ----------
    answers : sequence of sequence of Answer
        Answers by value of the level.
    psi : callable
        Expected probability of yes from the place of a value and an array of log10 contrasts.
    """
    squares = [np.zeros(0)]
    weights = [np.zeros(0)]
    parameters = 2
    for place, place_answers in enumerate(answers):
        soft = [answer for answer in place_answers if answer.soft]
        if soft:
            x = np.array([answer.x for answer in soft])
            response = np.array([answer.response for answer in soft])
            p = psi(place, x)
            variance = np.maximum(p * (1 - p), _LEAST_VARIANCE)
            rise = psi(place, x + _STEP) - psi(place, x - _STEP)
            squares.append((response - p) ** 2 / variance)
            weights.append(rise**2 / variance + 1e-9)
            parameters += 2
    weight = np.concatenate(weights)
    if weight.size == 0:
        return 1.0
    n = weight.size
    mean_square = weight @ np.concatenate(squares) / weight.sum()
    return max(float((1 + n * mean_square) / (1 + max(n - parameters, 0))), 1e-3)


class Posterior(ABC):
    """Posterior of the thresholds at several values of a level, which share guess and lapse rates.

    Parameters
    ----------
    values : int
        Number of values; each is identified by its place.
    grid : Grid
        Parameters and their prior.
    shape : tuple of int
        Shape of the table of log likelihoods at one value.
    """

    #: Whether all values have the same width.
    one_width: bool

    def __init__(self, values: int, grid: Grid, shape: tuple[int, ...]) -> None:
        self.grid = grid
        self.dispersion = 1.0
        #: Thresholds of the grid of each value, log10 contrasts.
        self.thresholds = [grid.threshold] * values
        self._answers: list[list[Answer]] = [[] for _ in range(values)]
        #: Log likelihoods of hard and of soft answers at each value, and of those to catch trials.
        self._log_likelihoods = np.zeros((values, 2, *shape))
        self._catch = np.zeros((2, grid.guess.size, 1))
        self._expected: dict[int, tuple[FloatArray, FloatArray, FloatArray]] = {}

    def tell(self, place: int | None, x: float, response: float) -> None:
        """Update the posterior by one answer at one value (a frequency, say).

        Parameters
        ----------
        place : int or None
            Place of the value; None for a catch trial.
        x : float
            log10 contrast; ignored in a catch trial.
        response : float
            1 yes, 0 no, or a probability of yes.
        """
        self._take(place, x, response)
        if place is not None:
            self._update_evidence(place)
        self._update_shared_mass()
        if 0 < response < 1:
            self._update_dispersion()

    def tell_all(self, answers: Iterable[tuple[int | None, float, float]]) -> None:
        """Update the posterior by many answers, in order; each as `tell` takes it."""
        for answer in answers:
            self.tell(*answer)

    def _take(self, place: int | None, x: float, response: float) -> None:
        """Update the posterior's factors by the likelihood of an answer."""
        answer = Answer(x, response)
        if place is None:
            guess = self.grid.guess[:, None]
            self._catch[int(answer.soft)] += log_probability(guess, response)
        else:
            self._answers[place].append(answer)
            self._add(place, answer)

    def expected(self, place: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Compute one value's posterior of threshold and width, and the expected rates with it.

        Mass, guess and rise have the shape (T, W): the latter are the means of guess and of 1 -
        guess - lapse in each cell, times its mass. The probability of yes at contrast x is the sum
        of guess + rise * F(x) over the grid.
        """
        if place not in self._expected:
            self._expected[place] = self._tables(place)
        return self._expected[place]

    def threshold_mass(self, place: int) -> FloatArray:
        """Compute the posterior mass of the thresholds at one value, shape (T,)."""
        return np.asarray(self.expected(place)[0].sum(axis=1))

    def mean(self, place: int) -> float:
        """Compute the posterior mean of log10 threshold contrast at one value."""
        return float(self.threshold_mass(place) @ self.thresholds[place])

    def interval(self, place: int, level: float = 0.95) -> tuple[float, float]:
        """Compute the central posterior interval of log10 threshold contrast at one value."""
        ends = np.array([(1 - level) / 2, (1 + level) / 2])
        low, high = quantiles(self.thresholds[place], self.threshold_mass(place), ends)
        return float(low), float(high)

    def mean_width(self, place: int) -> float:
        """Compute the posterior mean of the psychometric width at one value."""
        return float(self.expected(place)[0].sum(axis=0) @ self.grid.width)

    def mean_guess(self) -> float:
        """Compute the posterior mean of the guess rate."""
        return float(self._shared_mass().sum(axis=(0, 2)) @ self.grid.guess)

    def mean_lapse(self) -> float:
        """Compute the posterior mean of the lapse rate."""
        return float(self._shared_mass().sum(axis=(0, 1)) @ self.grid.lapse)

    def _add(self, place: int, answer: Answer) -> None:
        """Multiply an answer's likelihood into that of its value (a frequency, say)."""
        g = self.grid.guess[:, None]
        l = self.grid.lapse
        detection = self._detection_probability(place, answer.x)[:, :, None, None]
        psi = g + (1 - g - l) * detection
        log_likelihood = self._log_likelihoods[place, int(answer.soft)]
        term = answer.count * log_probability(psi, answer.response)
        log_likelihood += term.reshape(log_likelihood.shape)

    def _log_likelihood(self, place: int) -> FloatArray:
        """Sum the log-likelihood of yes/no answers and of probabilities, as dispersed."""
        hard, soft = self._log_likelihoods[place]
        return np.asarray(hard + soft / self.dispersion)

    def _update_dispersion(self) -> None:
        """Estimate how much answers given as probabilities scatter, and weigh them by it."""
        g = self.mean_guess()
        l = self.mean_lapse()

        def psi(place: int, x: FloatArray) -> FloatArray:
            threshold = np.array(self.mean(place))
            width = np.array(self.mean_width(0 if self.one_width else place))
            return g + (1 - g - l) * detection_probability(
                x, threshold, width, self.grid.function
            )

        self.dispersion = dispersion(self._answers, psi)
        for place, (_, soft) in enumerate(self._log_likelihoods):
            if soft.any():
                self._update_evidence(place)
        self._update_shared_mass()

    def _normalised(self, log: FloatArray) -> FloatArray:
        """Convert log weights to probabilities that sum to 1, in place."""
        self._expected = {}
        highest = log.max()
        if not np.isfinite(highest):
            raise InputError(
                "no guess and lapse rate on the grid could have given these answers; use rates "
                "above 0"
            )
        log -= highest
        np.exp(log, out=log)
        log /= log.sum()
        return log

    @abstractmethod
    def _detection_probability(self, place: int, x: float) -> FloatArray:
        """Compute the probability of seeing log10 contrast x, in the order of the tables."""

    @abstractmethod
    def _update_evidence(self, place: int) -> None:
        """Update the posterior at one value, whose log-likelihood has changed."""

    @abstractmethod
    def _update_shared_mass(self) -> None:
        """Update the posterior of the parameters that all values share."""

    @abstractmethod
    def _shared_mass(self) -> FloatArray:
        """Compute the posterior of the common width and of the rates, shape (W, G, L)."""

    @abstractmethod
    def _tables(self, place: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Compute one value's posterior mass, guess and rise over threshold and width."""


#: Least number of thresholds in a 95 % interval; a finer grid takes over where there are fewer.
STEPS_PER_INTERVAL = 8
#: A finer grid leaves out less than this of the posterior on each side.
_LEFT_OUT = 1e-5


class ThresholdPosterior(Posterior):
    """Posterior of the thresholds at several values of a level, each with its width.

    Parameters
    ----------
    values, grid
        As in `Posterior`.
    refine : bool
        Replace the thresholds of a value by closer ones when its posterior has become narrow.

    Examples
    --------
    >>> grid = Grid(np.linspace(-4, 0, 41), np.array([0.8]), np.array([0.02]), np.array([0.02]))
    >>> posterior = ThresholdPosterior(1, grid)
    >>> for x, response in ((-3.0, 0), (-2.5, 0), (-1.5, 1), (-1.0, 1)):
    ...     posterior.tell(0, x, response)
    >>> round(posterior.mean(0), 2)
    -2.0
    """

    one_width = False

    def __init__(self, values: int, grid: Grid, refine: bool = True) -> None:
        t, w, g, l = grid.shape
        super().__init__(values, grid, (w, t, g, l))
        self.refine = refine
        self._ranges: dict[int, tuple[float, float]] = {}
        self._link = grid.width_given_centre()
        centre_prior = np.tile(grid.width_prior, len(grid.spreads))
        with np.errstate(divide="ignore"):
            self._log_prior = (
                np.log(centre_prior)[:, None, None]
                + np.log(grid.guess_prior)[:, None]
                + np.log(grid.lapse_prior)
            )
        self._threshold_given: list[FloatArray] = [np.empty(0)] * values
        self._evidence: list[tuple[FloatArray, FloatArray]] = [
            (np.empty(0), np.empty(0))
        ] * values
        self._linked: list[FloatArray] = [np.empty(0)] * values
        for place in range(values):
            self._update_evidence(place)
        self._update_shared_mass()

    def tell(self, place: int | None, x: float, response: float) -> None:
        """Update the posterior by one answer, and refine the grid of its value."""
        super().tell(place, x, response)
        if self.refine and place is not None:
            self._refine(place)

    def limit_threshold(self, place: int, low: float, high: float) -> None:
        """Give the thresholds of one value a prior: even over a range, falling beyond.

        It falls as a raised cosine to 0 half the range beyond each end (Schütt et al. 2016,
        section 2.3).

        Parameters
        ----------
        place : int
            Place of the value.
        low, high : float
            Ends of the range, log10 contrast.
        """
        self._ranges[place] = (low, high)
        self._update_evidence(place)
        self._update_shared_mass()

    def _log_likelihood(self, place: int) -> FloatArray:
        """Add the prior of one value's thresholds to the log-likelihood of its answers."""
        log = super()._log_likelihood(place)
        if place not in self._ranges:
            return log
        low, high = self._ranges[place]
        outside = np.abs(self.thresholds[place] - (low + high) / 2) / (high - low) - 0.5
        fall = 0.5 * (1 + np.cos(2 * np.pi * np.clip(outside, 0.0, 0.5)))
        with np.errstate(divide="ignore"):
            return np.asarray(log + np.log(fall)[:, None, None])

    def tell_counts(
        self, place: int, x: FloatArray, yes: FloatArray, trials: FloatArray
    ) -> None:
        """Update the posterior by counted answers at one value, all at once.

        Parameters
        ----------
        place : int
            Place of the value.
        x, yes, trials : ndarray, shape (L,)
            log10 contrasts, and how many of the trials at each were answered by yes.
        """
        for response, counts in ((1.0, yes), (0.0, trials - yes)):
            for contrast, count in zip(x.tolist(), counts.tolist(), strict=True):
                if count > 0:
                    answer = Answer(contrast, response, count)
                    self._answers[place].append(answer)
                    self._add(place, answer)
        self._update_evidence(place)
        self._update_shared_mass()

    def refine_all(self) -> None:
        """Replace the thresholds of all values by closer ones where posteriors are narrow."""
        # The second time starts from the grid of the first.
        for place in range(len(self.thresholds)):
            self._refine(place)
            self._refine(place)

    def tell_catch_trials(self, yes: float, trials: float) -> None:
        """Update the posterior by counted answers to catch trials, which show nothing."""
        guess = self.grid.guess[:, None]
        for response, count in ((1.0, yes), (0.0, trials - yes)):
            if count > 0:
                self._catch[0] += count * log_probability(guess, response)
        self._update_shared_mass()

    def width_interval(self, place: int, level: float = 0.95) -> tuple[float, float]:
        """Compute the central posterior interval of the width at one value, log10 units."""
        mass = self.expected(place)[0].sum(axis=0)
        ends = np.array([(1 - level) / 2, (1 + level) / 2])
        low, high = 10 ** quantiles(np.log10(self.grid.width), mass, ends)
        return float(low), float(high)

    def joint(self, place: int) -> FloatArray:
        """Compute the posterior of threshold, width, guess and lapse at one value, (T, W, G, L)."""
        joint = self._threshold_given[place] * self._rest(place)[:, None]
        return np.asarray(np.swapaxes(joint, 0, 1))

    def _tables(self, place: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Compute one value's posterior mass, guess and rise over threshold and width."""
        g = self.grid.guess[:, None]
        l = self.grid.lapse
        rest = self._rest(place)
        columns = np.stack([rest, rest * g, rest * (1 - g - l)], axis=-1)
        w, t = self._threshold_given[place].shape[:2]
        tables = self._threshold_given[place].reshape(w, t, -1) @ columns.reshape(
            w, -1, 3
        )
        mass, guess, rise = tables.transpose(2, 1, 0)
        return mass, guess, rise

    def _detection_probability(self, place: int, x: float) -> FloatArray:
        """Compute the probability to detect a log contrast, by width and threshold."""
        width = self.grid.width[:, None]
        return detection_probability(
            np.array(x), self.thresholds[place], width, self.grid.function
        )

    def _update_evidence(self, place: int) -> None:
        """Update one value's thresholds given all else, and the evidence for widths and rates."""
        # The threshold given all else, and the evidence for each width and pair of rates, relative
        # to `top`.
        log = self._log_likelihood(place)
        top = log.max(axis=(0, 1))
        top = np.where(np.isfinite(top), top, 0.0)
        mass = np.exp(log - top)
        total = mass.sum(axis=1)
        self._evidence[place] = (total, top)
        self._linked[place] = np.tensordot(self._link, total, 1)
        self._threshold_given[place] = mass / np.where(total > 0, total, 1.0)[:, None]

    def _update_shared_mass(self) -> None:
        """Update the posterior of width and rates from the evidence at all values."""
        log = self._log_prior + self._catch[0] + self._catch[1] / self.dispersion
        with np.errstate(divide="ignore"):
            for (_, top), linked in zip(self._evidence, self._linked, strict=True):
                log = log + top + np.log(linked)
        self._shared = self._normalised(log)

    def _shared_mass(self) -> FloatArray:
        """The posterior mass of width and rates, which all values share."""
        return self._shared

    def _rest(self, place: int) -> FloatArray:
        """Compute the posterior of width, guess and lapse at one value, shape (W, G, L)."""
        linked = self._linked[place]
        share = self._shared / np.where(linked > 0, linked, 1.0)
        return np.asarray(
            self._evidence[place][0] * np.tensordot(self._link.T, share, 1)
        )

    def _refine(self, place: int) -> None:
        """Narrow or widen one value's grid of thresholds to where its posterior mass lies."""
        values = self.thresholds[place]
        mass = self.threshold_mass(place)
        if values.size < 2 * STEPS_PER_INTERVAL:
            return
        full = self.grid.threshold
        at_low_edge = values[0] > full[0] + 1e-9 and mass[:2].sum() > 1e-3
        at_high_edge = values[-1] < full[-1] - 1e-9 and mass[-2:].sum() > 1e-3
        if at_low_edge or at_high_edge:
            self._rebuild(place, full)
            values = full
            mass = self.threshold_mass(place)
        step = values[1] - values[0]
        low, high = quantiles(values, mass, np.array([0.025, 0.975]))
        if high - low >= STEPS_PER_INTERVAL * step:
            return
        ends = quantiles(values, mass, np.array([_LEFT_OUT, 1 - _LEFT_OUT]))
        ends = np.clip(ends + np.array([-2, 2]) * step, full[0], full[-1])
        if ends[1] - ends[0] < 0.75 * (values[-1] - values[0]):
            self._rebuild(place, np.linspace(ends[0], ends[1], values.size))

    def _rebuild(self, place: int, thresholds: FloatArray) -> None:
        """Recompute one value's posterior on another grid of thresholds."""
        self.thresholds[place] = thresholds
        self._log_likelihoods[place] = 0.0
        for answer in self._answers[place]:
            self._add(place, answer)
        self._update_evidence(place)
        self._update_shared_mass()
