"""Compute the posterior of a whole contrast sensitivity function from answers at all frequencies.

References
----------
Lesmes, Lu, Baek & Albright (2010), Journal of Vision 10(3):17 (qCSF), with frequencies that may
deviate from the truncated log-parabola.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.analysis.psychometric.posterior import (
    Function,
    Grid,
    Posterior,
    csf_width_and_rates,
    detection_probability,
    normalised_weights,
)
from psyprobe.errors import InputError, unknown_name

if TYPE_CHECKING:
    from scipy.sparse import csr_array

#: Prior of a curve: next to any curve, or those of ordinary eyes.
Prior: TypeAlias = Literal["any", "people"]


def log_parabola(
    frequency: FloatArray,
    gain: FloatArray,
    peak: FloatArray,
    bandwidth: FloatArray,
    truncation: FloatArray,
) -> FloatArray:
    """Compute log10 sensitivity of the truncated log-parabola; arguments broadcast.

    Watson & Ahumada 2005, Journal of Vision 5(9):6; in the form of Lesmes et al. (2010), Eq. 1.

    Parameters
    ----------
    frequency : ndarray
        Spatial frequency in cpd.
    gain : ndarray
        log10 of the peak sensitivity.
    peak : ndarray
        log10 of the frequency of the peak in cpd.
    bandwidth : ndarray
        log10 of beta. The full width at half height is log10(2 beta) in log10 units, that is 1 +
        log2(beta) octaves: beta itself only where it is 1 or 2.
    truncation : ndarray
        Largest fall of sensitivity below its peak at frequencies below that of the peak, in log10
        units.

    Examples
    --------
    Half of the peak sensitivity lies half a bandwidth, here one octave, above the peak:

    >>> curve = log_parabola(np.array([0.5, 3.0, 6.0]), 2.0, np.log10(3.0), np.log10(2.0), 0.5)
    >>> (10**curve).round(2).tolist()
    [31.62, 100.0, 50.0]
    """
    x = np.log10(np.asarray(frequency, dtype=np.float64))
    half = (np.log10(2.0) + np.asarray(bandwidth)) / 2
    curve = gain - np.log10(2.0) * ((x - peak) / half) ** 2
    return np.asarray(
        np.where((x < peak) & (curve < gain - truncation), gain - truncation, curve)
    )


@dataclass(frozen=True, eq=False)
class CsfGrid:
    """Values that the parameters of a truncated log-parabola may take, equally likely at first.

    Parameters
    ----------
    gain, peak, bandwidth, truncation : ndarray
        Ascending; see `log_parabola`. In estimates a value stands for those up to halfway to its
        neighbours.
    deviation : float or tuple of float
        Standard deviation in log10 units by which frequencies deviate from the parabola; 0 for the
        parabola itself, as qCSF was published. Of several, ascending, the answers choose.
    deviation_prior : tuple of float, optional
        Prior weight of each deviation; equal unless given.

    Raises
    ------
    InputError
        Deviations are not ascending from 0 up, or have another number of weights.

    Examples
    --------
    >>> CsfGrid(deviation=0.07).deviations, len(CsfGrid().deviations)
    ((0.07,), 7)
    """

    gain: FloatArray = field(default_factory=lambda: np.linspace(0.5, 3.2, 19))
    peak: FloatArray = field(default_factory=lambda: np.linspace(-0.3, 1.3, 9))
    bandwidth: FloatArray = field(default_factory=lambda: np.linspace(0.0, 1.2, 7))
    truncation: FloatArray = field(default_factory=lambda: np.linspace(0.02, 1.6, 6))
    deviation: float | tuple[float, ...] = (0.02, 0.05, 0.1, 0.15, 0.22, 0.33, 0.5)
    deviation_prior: tuple[float, ...] = (1.0,)

    def __post_init__(self) -> None:
        steps = np.diff((0.0, *self.deviations))
        if not ((steps[1:] > 0).all() and steps[0] >= 0):
            raise InputError(
                f"deviations from the parabola are {self.deviation} log10; give ascending values "
                "of at least 0"
            )
        self.deviation_weights()

    @property
    def deviations(self) -> tuple[float, ...]:
        """List the standard deviations from the parabola, log10."""
        deviation = self.deviation
        return deviation if isinstance(deviation, tuple) else (deviation,)

    def deviation_weights(self) -> FloatArray:
        """Scale the prior weights of the deviations to sum to 1."""
        deviations = np.array(self.deviations)
        return normalised_weights(deviations, np.array(self.deviation_prior))

    def fewer_deviations(self) -> CsfGrid:
        """Keep one in three of many deviations: enough to choose questions by."""
        if len(self.deviations) < 4:
            return self
        weights = tuple(self.deviation_weights()[1::3].tolist())
        return replace(self, deviation=self.deviations[1::3], deviation_prior=weights)

    def parameters(self) -> FloatArray:
        """List every combination of the parameters, shape (P, 4)."""
        return _combinations(self.gain, self.peak, self.bandwidth, self.truncation)

    def cells(self) -> tuple[FloatArray, FloatArray]:
        """List the ends of the cell for which each combination stands, each of shape (P, 4).

        A value stands for those up to halfway to its neighbours.

        Examples
        --------
        >>> low, high = CsfGrid(gain=np.array([1.0, 2.0, 4.0])).cells()
        >>> np.unique(low[:, 0]).tolist(), np.unique(high[:, 0]).tolist()
        ([1.0, 1.5, 3.0], [1.5, 3.0, 4.0])
        """
        edges = [
            np.concatenate([values[:1], (values[1:] + values[:-1]) / 2, values[-1:]])
            for values in (self.gain, self.peak, self.bandwidth, self.truncation)
        ]
        return (
            _combinations(*(ends[:-1] for ends in edges)),
            _combinations(*(ends[1:] for ends in edges)),
        )


def _combinations(*values: FloatArray) -> FloatArray:
    """List every combination of the values of several parameters, shape (P, parameters)."""
    mesh = np.meshgrid(*values, indexing="ij")
    return np.stack([axis.ravel() for axis in mesh], axis=1)


class Parabolas(NamedTuple):
    """Log-parabolas that a posterior sums over."""

    #: Parameters in the order of `log_parabola`, shape (P, 4).
    parameters: FloatArray
    #: Prior weight of each, shape (P,).
    weight: FloatArray


#: About how many parabolas an estimate sums over: log Bayes factors are some 0.05 off those of a
#: million, for twice the time of the grid (benchmarks/README.md).
_PARABOLAS = 14_000
#: A cell with less of the posterior mass is left out.
_LEAST_MASS = 1e-12
#: Steps of an additive recurrence in four parameters: powers of the inverse root of x^5 = x + 1.
_STEPS = 1.1673039782614187 ** -np.arange(1.0, 5.0)


def spread_parabolas(csf: CsfGrid, mass: FloatArray, count: int) -> Parabolas:
    """Spread parabolas evenly over each cell of a grid, more of them where there is more mass.

    A cell with twice the mass has 1.4 times as many, since on the grid itself mass may lie beside
    its peak.

    Parameters
    ----------
    csf : CsfGrid
        The grid, each of whose cells keeps its prior weight.
    mass : ndarray, shape (P,)
        Posterior mass of each cell; those with next to none are left out.
    count : int
        About how many parabolas.

    References
    ----------
    Every run of an additive recurrence of irrational steps fills a cube evenly (Niederreiter 1992,
    Random Number Generation and Quasi-Monte Carlo Methods, ch. 3).

    Examples
    --------
    >>> one = np.array([0.5])
    >>> csf = CsfGrid(np.array([1.0, 3.0]), peak=one, bandwidth=one, truncation=one)
    >>> parabolas = spread_parabolas(csf, np.array([0.1, 0.9]), 4)
    >>> parabolas.parameters[:, 0].round(2).tolist(), parabolas.weight.round(2).tolist()
    ([1.36, 2.21, 2.07, 2.93], [1.0, 0.33, 0.33, 0.33])
    """
    share = np.sqrt(np.where(mass < _LEAST_MASS, 0.0, mass))
    counts = np.ceil(count * share / share.sum()).astype(np.int64)
    low, high = (np.repeat(ends, counts, axis=0) for ends in csf.cells())
    inside = (0.5 + np.arange(1, len(low) + 1)[:, None] * _STEPS) % 1.0
    return Parabolas(low + inside * (high - low), 1 / np.repeat(counts, counts))


def people_prior(grid: Grid) -> tuple[Grid, CsfGrid]:
    """Build the prior of people with ordinary sight at 20 to 200 cd/m²: rates and parabolas.

    It is worth about 30 trials in 100, and is false for low vision and for screens that are not as
    assumed: there, use the prior for any curve.

    Examples
    --------
    >>> grid, csf = people_prior(csf_width_and_rates((0.001, 1.0), 0.5))
    >>> grid.width.tolist(), csf.parameters().shape
    ([0.35, 0.5, 0.7], (5616, 4))
    """
    people_grid = replace(
        grid,
        width=np.array([0.35, 0.5, 0.7]),
        lapse=np.array([0.01, 0.04]),
        width_prior=np.array([1.0, 2.0, 1.0]),
        lapse_prior=np.array([0.7, 0.3]),
    )
    csf = CsfGrid(
        gain=np.linspace(1.3, 2.5, 13),
        peak=np.linspace(-0.2, 0.9, 9),
        bandwidth=np.linspace(0.2, 0.9, 8),
        truncation=np.linspace(0.05, 0.9, 6),
        # Curves of ordinary eyes lie near a parabola.
        deviation_prior=(1.0, 2.0, 3.0, 2.0, 1.0, 0.5, 0.25),
    )
    return people_grid, csf


@dataclass(frozen=True)
class Misfit:
    """How far answers deviate from every log-parabola."""

    #: Posterior mean of the standard deviation of frequencies from it, and its interval, log10.
    deviation: float
    low: float
    high: float
    #: Odds of any deviation above the smallest on the grid against that one, by the answers alone;
    #: 1 where the grid has but one.
    bayes_factor: float


#: How often the dispersion of many answers told at once is estimated anew.
_DISPERSION_STEPS = 3
#: A Bayes factor above it contradicts the parabola; so do up to 3 % of true ones, by chance.
CONTRADICTION = 3.0


class CsfPosterior(Posterior):
    """Posterior of a contrast sensitivity function that may deviate from a truncated log-parabola.

    log10 sensitivity at each tested frequency is that of the parabola plus a deviation, normal with
    mean 0 and a standard deviation that is learned. So answers at one frequency inform others
    through the parabola, while a curve that is no parabola still comes out right at tested
    frequencies: intervals hold the truth of observers that the model does not fit. Given the
    parabola, the standard deviation, the width and the rates of guess and lapse, which all
    frequencies share, frequencies are independent; so the joint posterior is exactly one table of
    thresholds for each frequency and one over what they share.

    Parameters
    ----------
    frequencies : sequence of float
        Frequencies in cpd.
    grid : Grid
        Thresholds, widths and rates, with their prior; the width is one for all frequencies.
    csf : CsfGrid
        Parabolas and the deviation from them.
    parabolas : Parabolas, optional
        Those to sum over; the values of `csf`, equally likely, unless given.

    Examples
    --------
    Three frequencies, of which two were asked; the third is expected to be in between:

    >>> grid = Grid(np.linspace(-3.5, 0.5, 81), np.array([0.8]), np.array([0.02]), np.array([0.02]))
    >>> posterior = CsfPosterior((2.0, 4.0, 8.0), grid, CsfGrid())
    >>> for x, response in ((-2.4, 0), (-2.2, 0), (-1.8, 1), (-1.6, 1)):
    ...     posterior.tell(0, x, response)
    ...     posterior.tell(2, x + 0.4, response)
    >>> -2.2 < posterior.mean(1) < -1.6
    True
    """

    one_width = True

    def __init__(
        self,
        frequencies: tuple[float, ...],
        grid: Grid,
        csf: CsfGrid,
        parabolas: Parabolas | None = None,
    ) -> None:
        from scipy.sparse import csr_array

        t, w, g, l = grid.shape
        super().__init__(len(frequencies), grid, (t, w * g * l))
        self._frequencies = np.array(frequencies)
        self._step = float(grid.threshold[1] - grid.threshold[0])
        if parabolas is None:
            parabolas = Parabolas(csf.parameters(), np.ones(1))
        self._parameters = parabolas.parameters
        threshold = -log_parabola(self._frequencies[:, None], *self._parameters.T)
        nearest = np.rint((threshold - grid.threshold[0]) / self._step).astype(np.int64)
        self._cell = np.clip(nearest, 0, t - 1)
        count = self._parameters.shape[0]
        self._gather: list[csr_array] = [
            csr_array((np.ones(count), (cells, np.arange(count))), shape=(t, count))
            for cells in self._cell
        ]
        self.csf = csf
        # Rows of tables are thresholds or parabolas; columns are deviations x widths x rates.
        self._spreads = np.stack(
            [_spread(grid.threshold, deviation) for deviation in csf.deviations]
        )
        columns = len(self._spreads) * w * g * l
        self._likelihood = [np.ones((t, w * g * l)) for _ in frequencies]
        self._smooth = [np.ones((t, columns)) for _ in frequencies]
        prior = (
            grid.width_prior[:, None, None]
            * grid.guess_prior[:, None]
            * grid.lapse_prior
        )
        with np.errstate(divide="ignore"):
            self._log_prior = np.log(
                np.multiply.outer(csf.deviation_weights(), prior)
            ).reshape(-1)
        self._log = np.zeros((count, columns)) + np.log(parabolas.weight)[:, None]
        self._update_shared_mass()

    def with_grid(self, csf: CsfGrid) -> CsfPosterior:
        """Compute the posterior that the same answers give on another grid of curves."""
        other = self._with_parabolas(csf)
        other._update_from_answers()
        return other

    def refined(self, csf: CsfGrid) -> CsfPosterior:
        """Compute the posterior that the same answers give on parabolas closer where mass lies.

        Curves of a grid lie farther apart than small deviations reach: summed over these alone,
        answers between two of them would look like a deviation.

        Parameters
        ----------
        csf : CsfGrid
            Parabolas and the deviation from them.

        Examples
        --------
        >>> coarse = csf_posterior((1.0, 4.0), (0.002, 0.95), 0.5)
        >>> coarse.tell_all(20 * [(0, -2.1, 0.0), (0, -1.9, 1.0), (1, -2.1, 0.0), (1, -1.9, 1.0)])
        >>> refined = coarse.refined(CsfGrid())
        >>> round(coarse.mean(0), 1), round(refined.mean(0), 1)
        (-2.0, -2.0)
        """
        coarse = self.with_grid(csf.fewer_deviations())
        shape = (-1, len(coarse._spreads), coarse._likelihood[0].shape[1])
        mass = coarse._mass.reshape(shape).sum(axis=2)
        # Each deviation is to be judged, however unlikely.
        mass = (mass / np.maximum(mass.sum(axis=0), 1e-300)).mean(axis=1)
        other = self._with_parabolas(csf, spread_parabolas(csf, mass, _PARABOLAS))
        other.dispersion = coarse.dispersion
        other._update_all()
        return other

    def _with_parabolas(
        self, csf: CsfGrid, parabolas: Parabolas | None = None
    ) -> CsfPosterior:
        """Copy the answers, not yet taken in, to another grid of curves."""
        frequencies = tuple(self._frequencies.tolist())
        other = CsfPosterior(frequencies, self.grid, csf, parabolas)
        other._answers = self._answers
        other._catch = self._catch
        other._log_likelihoods = self._log_likelihoods
        return other

    def tell_all(self, answers: Iterable[tuple[int | None, float, float]]) -> None:
        """Update the posterior by many answers at once; each as `tell` takes it."""
        for answer in answers:
            self._take(*answer)
        self._update_from_answers()

    def _update_from_answers(self) -> None:
        """Update all, and the dispersion of soft answers, from the answers so far."""
        self._update_all()
        if any(answer.soft for row in self._answers for answer in row):
            # The dispersion is about a function that itself depends on it.
            for _ in range(_DISPERSION_STEPS):
                self._update_dispersion()

    def _update_all(self) -> None:
        """Update the evidence at all frequencies, and then what they share."""
        for place in range(len(self._cell)):
            self._update_evidence(place)
        self._update_shared_mass()

    def misfit(self, level: float = 0.95) -> Misfit:
        """Compute how far the answers deviate from any parabola, and the odds that they do.

        Parameters
        ----------
        level : float
            Posterior probability that the interval of the deviation holds.

        Examples
        --------
        Without answers, all of the grid is as likely as before:

        >>> misfit = csf_posterior((1.0, 4.0), (0.002, 0.95)).misfit()
        >>> round(misfit.deviation, 3), round(misfit.bayes_factor, 3)
        (0.196, 1.0)
        """
        deviations = np.array(self.csf.deviations)
        prior = self.csf.deviation_weights()
        mass = self._mass.reshape(-1, deviations.size, self._likelihood[0].shape[1])
        mass = mass.sum(axis=(0, 2))
        # A deviation stands for those up to halfway to its neighbours.
        edges = np.interp(
            np.arange(deviations.size + 1) - 0.5, np.arange(deviations.size), deviations
        )
        ends = np.interp(
            [(1 - level) / 2, (1 + level) / 2], np.append(0.0, mass.cumsum()), edges
        )
        odds = 1.0
        if deviations.size > 1:
            odds = float(
                mass[1:].sum() / prior[1:].sum() / max(mass[0] / prior[0], 1e-300)
            )
        low, high = ends.tolist()
        return Misfit(float(mass @ deviations), low, high, odds)

    def deviations(self) -> tuple[FloatArray, FloatArray]:
        """Compute by how much log10 sensitivity lies above the parabola at each frequency.

        Returns
        -------
        mean, sd : ndarray, shape (F,)
            Of the posterior.
        """
        moments = np.empty((2, len(self._cell)))
        values = self.grid.threshold
        above = values - values[:, None]
        for place, likelihood in enumerate(self._likelihood):
            parabola = self._gather[place] @ self._mass / self._smooth[place]
            parts = np.split(parabola, len(self._spreads), axis=1)
            joint = np.zeros_like(above)
            for spread, part in zip(self._spreads, parts, strict=True):
                joint += spread * (likelihood @ part.T)
            joint /= joint.sum()
            mean = (joint * above).sum()
            moments[:, place] = mean, np.sqrt((joint * (above - mean) ** 2).sum())
        return moments[0], moments[1]

    def mean_parameters(self) -> dict[str, float]:
        """Compute the posterior means of the log-parabola's four parameters."""
        means = self._mass.sum(axis=1) @ self._parameters
        return dict(
            zip(
                ("gain", "peak", "bandwidth", "truncation"), means.tolist(), strict=True
            )
        )

    def draw(self, n: int, seed: int = 0) -> FloatArray:
        """Draw log10 sensitivity at all frequencies from the joint posterior, shape (n, F)."""
        rng = np.random.default_rng(seed)
        flat = rng.choice(self._mass.size, size=n, p=self._mass.reshape(-1))
        row, column = np.unravel_index(flat, self._mass.shape)
        draws = np.empty((n, len(self._cell)))
        for place, cells in enumerate(self._cell):
            deviation, rates = np.divmod(column, self._likelihood[place].shape[1])
            spread = self._spreads[deviation, :, cells[row]].T
            density = spread * self._likelihood[place][:, rates]
            cumulative = np.cumsum(density, axis=0)
            u = rng.random(n) * cumulative[-1]
            cell = (cumulative < u).sum(axis=0)
            offset = self._step * (rng.random(n) - 0.5)
            draws[:, place] = -(self.grid.threshold[cell] + offset)
        return draws

    def areas(self, n: int, seed: int = 0) -> FloatArray:
        """Draw the area under the log CSF from the lowest to the highest frequency, shape (n,).

        log10 sensitivity, not below 0, over log10 cpd, by trapezia.
        """
        order = np.argsort(self._frequencies)
        height = np.maximum(self.draw(n, seed)[:, order], 0.0)
        mean_height = (height[:, 1:] + height[:, :-1]) / 2
        steps = np.diff(np.log10(self._frequencies)[order])
        return np.asarray((mean_height * steps).sum(axis=1))

    def _tables(self, place: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Compute a frequency's posterior mass, guess and rise over threshold and width."""
        # The parabola by the answers at other frequencies, the deviation from it, and the answers
        # at this frequency.
        parabola = self._gather[place] @ self._mass / self._smooth[place]
        by_deviation = np.split(parabola, len(self._spreads), axis=1)
        threshold = sum(
            spread @ part
            for spread, part in zip(self._spreads, by_deviation, strict=True)
        )
        joint = threshold * self._likelihood[place]
        joint = (joint / joint.sum()).reshape(self.grid.shape)
        g = self.grid.guess[:, None]
        l = self.grid.lapse
        mass = joint.sum(axis=(2, 3))
        guess = (joint * g).sum(axis=(2, 3))
        rise = (joint * (1 - g - l)).sum(axis=(2, 3))
        return mass, guess, rise

    def _detection_probability(self, place: int, x: float) -> FloatArray:
        """Compute the probability to detect a log contrast, for each threshold and width."""
        return detection_probability(
            np.array(x),
            self.grid.threshold[:, None],
            self.grid.width,
            self.grid.function,
        )

    def _update_evidence(self, place: int) -> None:
        """Update one frequency's likelihood, smoothed over deviations from the parabola."""
        log = self._log_likelihood(place)
        before = self._smooth[place]
        # Relative to the highest of all rates: these differ in evidence, which must not be lost.
        self._likelihood[place] = np.exp(log - log.max())
        smooth = [spread.T @ self._likelihood[place] for spread in self._spreads]
        self._smooth[place] = np.maximum(np.concatenate(smooth, axis=1), 1e-200)
        self._log += (np.log(self._smooth[place]) - np.log(before))[self._cell[place]]

    def _update_shared_mass(self) -> None:
        """Update the posterior mass of the parabola and rates from all answers."""
        catch = self._catch[0] + self._catch[1] / self.dispersion
        shape = (len(self._spreads), *self.grid.shape[1:])
        catch = np.broadcast_to(catch, shape).reshape(-1)
        self._mass = self._normalised(self._log + (self._log_prior + catch))

    def _shared_mass(self) -> FloatArray:
        """Sum the posterior mass over parabolas: what is left is over width and rates."""
        mass = self._mass.sum(axis=0).reshape(-1, *self.grid.shape[1:])
        return np.asarray(mass.sum(axis=0))


def _spread(threshold: FloatArray, deviation: float) -> FloatArray:
    """Compute the probability of each threshold (rows) around each of the parabola's (columns)."""
    if deviation == 0:
        return np.eye(threshold.size)
    weights = np.exp(-0.5 * ((threshold[:, None] - threshold) / deviation) ** 2)
    return np.asarray(weights / weights.sum(axis=0))


def csf_posterior(
    frequencies: Sequence[float],
    contrasts: Sequence[float],
    chance: float | None = None,
    function: Function = "logistic",
    prior: Prior = "any",
    grid: Grid | None = None,
    csf: CsfGrid | None = None,
) -> CsfPosterior:
    """Build the prior distribution of a contrast sensitivity function, as in qCSF.

    Parameters
    ----------
    frequencies : sequence of float
        Frequencies in cpd.
    contrasts : sequence of float
        Contrasts that may be shown, ascending.
    chance, function
        As for `csf_width_and_rates`.
    prior : {"any", "people"}
        Prior without a grid: next to any curve, or those of ordinary eyes (`people_prior`).
    grid, csf
        Replace those of the prior.

    Raises
    ------
    UnknownNameError
        There is no such prior.

    Examples
    --------
    >>> posterior = csf_posterior((1.0, 4.0), (0.002, 0.95), 0.5, prior="people")
    >>> [round(-posterior.mean(place), 1) for place in (0, 1)]
    [1.7, 1.5]
    """
    if prior not in ("any", "people"):
        raise unknown_name("prior of quick_csf", str(prior), ("any", "people"))
    prior_grid = csf_width_and_rates(contrasts, chance, function)
    prior_csf = CsfGrid()
    if prior == "people":
        prior_grid, prior_csf = people_prior(prior_grid)
    return CsfPosterior(
        tuple(frequencies),
        prior_grid if grid is None else grid,
        prior_csf if csf is None else csf,
    )
