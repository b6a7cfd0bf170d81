"""Compute the posterior of a whole contrast sensitivity function from answers at all frequencies.

References
----------
Lesmes, Lu, Baek & Albright (2010), Journal of Vision 10(3):17 (qCSF), with frequencies that may
deviate from the truncated log-parabola.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.analysis.psychometric.posterior import (
    Function,
    Grid,
    Posterior,
    csf_width_and_rates,
    detection_probability,
)
from psyprobe.errors import unknown_name

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
        See `log_parabola`.
    deviation : float
        Standard deviation in log10 units by which frequencies deviate from the parabola; 0 for the
        parabola itself, as qCSF was published. It also bridges the steps of the grid.
    """

    gain: FloatArray = field(default_factory=lambda: np.linspace(0.5, 3.2, 19))
    peak: FloatArray = field(default_factory=lambda: np.linspace(-0.3, 1.3, 9))
    bandwidth: FloatArray = field(default_factory=lambda: np.linspace(0.0, 1.2, 7))
    truncation: FloatArray = field(default_factory=lambda: np.linspace(0.02, 1.6, 6))
    deviation: float = 0.07

    def parameters(self) -> FloatArray:
        """List every combination of the parameters, shape (P, 4)."""
        mesh = np.meshgrid(
            self.gain, self.peak, self.bandwidth, self.truncation, indexing="ij"
        )
        return np.stack([values.ravel() for values in mesh], axis=1)


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
    )
    return people_grid, csf


class CsfPosterior(Posterior):
    """Posterior of a contrast sensitivity function that may deviate from a truncated log-parabola.

    log10 sensitivity at each tested frequency is that of the parabola plus a deviation, normal with
    mean 0. So answers at one frequency inform others through the parabola, while a curve that is no
    parabola still comes out right at tested frequencies: intervals hold the truth of observers that
    the model does not fit. Given the parabola, the width and the rates of guess and lapse, which
    all frequencies share, frequencies are independent; so the joint posterior is exactly one table
    of thresholds for each frequency and one over the parabolas.

    Parameters
    ----------
    frequencies : sequence of float
        Frequencies in cpd.
    grid : Grid
        Thresholds, widths and rates, with their prior; the width is one for all frequencies.
    csf : CsfGrid
        Parabolas and the deviation from them.

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
        self, frequencies: tuple[float, ...], grid: Grid, csf: CsfGrid
    ) -> None:
        from scipy.sparse import csr_array

        t, w, g, l = grid.shape
        super().__init__(len(frequencies), grid, (t, w * g * l))
        self._frequencies = np.array(frequencies)
        self._step = float(grid.threshold[1] - grid.threshold[0])
        self._parameters = csf.parameters()
        threshold = -log_parabola(self._frequencies[:, None], *self._parameters.T)
        nearest = np.rint((threshold - grid.threshold[0]) / self._step).astype(np.int64)
        self._cell = np.clip(nearest, 0, t - 1)
        count = self._parameters.shape[0]
        self._gather: list[csr_array] = [
            csr_array((np.ones(count), (cells, np.arange(count))), shape=(t, count))
            for cells in self._cell
        ]
        self._spread = _spread(grid.threshold, csf.deviation)
        self._likelihood = [np.ones((t, w * g * l)) for _ in frequencies]
        self._smooth = [np.ones((t, w * g * l)) for _ in frequencies]
        prior = (
            grid.width_prior[:, None, None]
            * grid.guess_prior[:, None]
            * grid.lapse_prior
        )
        with np.errstate(divide="ignore"):
            self._log_prior = np.log(prior).reshape(-1)
        self._log = np.zeros((count, w * g * l))
        self._update_shared_mass()

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
            density = self._spread[:, cells[row]] * self._likelihood[place][:, column]
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
        joint = (self._spread @ parabola) * self._likelihood[place]
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
        self._smooth[place] = np.maximum(
            self._spread.T @ self._likelihood[place], 1e-200
        )
        self._log += (np.log(self._smooth[place]) - np.log(before))[self._cell[place]]

    def _update_shared_mass(self) -> None:
        """Update the posterior mass of the parabola and rates from all answers."""
        catch = self._catch[0] + self._catch[1] / self.dispersion
        catch = np.broadcast_to(catch, self.grid.shape[1:]).reshape(-1)
        self._mass = self._normalised(self._log + (self._log_prior + catch))

    def _shared_mass(self) -> FloatArray:
        """Sum the posterior mass over parabolas: what is left is over width and rates."""
        return np.asarray(self._mass.sum(axis=0).reshape(self.grid.shape[1:]))


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
