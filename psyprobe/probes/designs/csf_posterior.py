"""The posterior of a contrast sensitivity function: a truncated log-parabola, from which frequencies may deviate.

log10 sensitivity at each tested frequency is that of the parabola plus a deviation of its own, normal with mean 0. So
what answers at one frequency tell of the others passes through the parabola, while a curve that is none still comes
out as it is where it was asked: intervals hold the truth of observers that the model does not fit. Given the parabola,
the width and the rates of guess and lapse, which all frequencies share, frequencies are independent; so the joint
posterior is kept exactly as one table of threshold a frequency and one over the parabolas.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.errors import InputError
from psyprobe.probes.designs.log_parabola import log_parabola
from psyprobe.probes.designs.psychometric_grid import Grid, seen
from psyprobe.probes.designs.threshold_posterior import GivenAnswer, dispersion, log_probability, quantiles

if TYPE_CHECKING:
    from scipy.sparse import csr_array


def _between(low: float, high: float, n: int) -> FloatArray:
    return np.linspace(low, high, n)


@dataclass(frozen=True, eq=False)
class CsfGrid:
    """Values that the parameters of a truncated log-parabola may take, all equally likely beforehand.

    Parameters
    ----------
    gain, peak, bandwidth, truncation : ndarray
        See `log_parabola`.
    deviation : float
        Standard deviation in log10 units by which frequencies deviate from the parabola; 0 for the parabola itself, as
        qCSF was published. It also bridges the steps of the grid.
    """

    gain: FloatArray = field(default_factory=lambda: _between(0.5, 3.2, 19))
    peak: FloatArray = field(default_factory=lambda: _between(-0.3, 1.3, 9))
    bandwidth: FloatArray = field(default_factory=lambda: _between(0.0, 1.2, 7))
    truncation: FloatArray = field(default_factory=lambda: _between(0.02, 1.6, 6))
    deviation: float = 0.07

    def parameters(self) -> FloatArray:
        """Every combination of the parameters, shape (P, 4)."""
        mesh = np.meshgrid(self.gain, self.peak, self.bandwidth, self.truncation, indexing="ij")
        return np.stack([each.ravel() for each in mesh], axis=1)


class CsfPosterior:
    """What answers tell of a contrast sensitivity function.

    Parameters
    ----------
    frequencies : sequence of float
        In cpd.
    grid : Grid
        Thresholds, widths and rates, with their prior; the width is one for all frequencies.
    csf : CsfGrid
        Parabolas and the deviation from them.

    Examples
    --------
    Three frequencies, of which two were asked; the third is expected to be in between:

    >>> grid = Grid(np.linspace(-3.5, 0.5, 81), np.array([0.8]), np.array([0.02]), np.array([0.02]))
    >>> posterior = CsfPosterior((2.0, 4.0, 8.0), grid, CsfGrid())
    >>> for x, said in ((-2.4, 0), (-2.2, 0), (-1.8, 1), (-1.6, 1)):
    ...     posterior.tell(0, x, said)
    ...     posterior.tell(2, x + 0.4, said)
    >>> -2.2 < posterior.mean(1) < -1.6
    True
    """

    def __init__(self, frequencies: tuple[float, ...], grid: Grid, csf: CsfGrid) -> None:
        from scipy.sparse import csr_array

        self.grid, self.csf, self.frequencies = grid, csf, frequencies
        self.dispersion = 1.0
        t, w, g, l = grid.shape
        self._step = float(grid.threshold[1] - grid.threshold[0])
        parameters = csf.parameters()
        self._parameters = parameters
        place = -log_parabola(np.array(frequencies)[:, None], *parameters.T)
        nearest = np.rint((place - grid.threshold[0]) / self._step).astype(np.int64)
        self._cell = np.clip(nearest, 0, t - 1)
        count = parameters.shape[0]
        self._gather: list[csr_array] = [
            csr_array((np.ones(count), (cells, np.arange(count))), shape=(t, count)) for cells in self._cell
        ]
        self._spread = _spread(grid.threshold, csf.deviation)
        self._answers: list[list[GivenAnswer]] = [[] for _ in frequencies]
        self._hard = [np.zeros((t, w * g * l)) for _ in frequencies]
        self._soft: list[FloatArray | None] = [None] * len(frequencies)
        self._likelihood = [np.ones((t, w * g * l)) for _ in frequencies]
        self._smooth = [np.ones((t, w * g * l)) for _ in frequencies]
        self._catch = np.zeros((2, g, 1))
        prior = grid.width_prior[:, None, None] * grid.guess_prior[:, None] * grid.lapse_prior
        with np.errstate(divide="ignore"):
            self._log_prior = np.log(prior).reshape(-1)
        self._log = np.zeros((count, w * g * l))
        self._share()

    def tell(self, frequency: int | None, x: float, said: float) -> None:
        """Take in one answer; see `ThresholdPosterior.tell`."""
        answer = GivenAnswer(x, said)
        g, l = self.grid.guess[:, None], self.grid.lapse
        if frequency is None:
            self._catch[int(answer.soft)] += log_probability(g, said)
        else:
            self._answers[frequency].append(answer)
            f = seen(np.array(x), self.grid.threshold[:, None], self.grid.width, self.grid.function)
            term = log_probability(g + (1 - g - l) * f[:, :, None, None], said).reshape(self.grid.threshold.size, -1)
            soft = self._soft[frequency]
            if answer.soft:
                self._soft[frequency] = term if soft is None else soft + term
            else:
                self._hard[frequency] += term
            self._condition(frequency)
        if answer.soft:
            self._disperse()
        self._share()

    def expected(self, frequency: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        """As `ThresholdPosterior.expected`."""
        if frequency not in self._expected:
            joint = self._threshold_and_rest(frequency).reshape(self.grid.shape)
            g, l = self.grid.guess[:, None], self.grid.lapse
            tables = [(joint * factor).sum(axis=(2, 3)) for factor in (np.ones((1, 1)), g, 1 - g - l)]
            self._expected[frequency] = (tables[0], tables[1], tables[2])
        return self._expected[frequency]

    def threshold_mass(self, frequency: int) -> FloatArray:
        """Posterior of the threshold at one frequency, shape (T,)."""
        mass: FloatArray = self.expected(frequency)[0].sum(axis=1)
        return mass

    def mean(self, frequency: int) -> float:
        """Posterior mean of log10 threshold contrast at one frequency."""
        return float(self.threshold_mass(frequency) @ self.grid.threshold)

    def interval(self, frequency: int, level: float = 0.95) -> tuple[float, float]:
        """Central posterior interval of log10 threshold contrast at one frequency."""
        ends = np.array([(1 - level) / 2, (1 + level) / 2])
        low, high = quantiles(self.grid.threshold, self.threshold_mass(frequency), ends)
        return float(low), float(high)

    def mean_width(self, frequency: int = 0) -> float:
        """Posterior mean of the width, the same at each frequency."""
        return float(self.expected(frequency)[0].sum(axis=0) @ self.grid.width)

    def mean_guess(self) -> float:
        """Posterior mean of the guess rate."""
        return float(self._rest().sum(axis=(0, 2)) @ self.grid.guess)

    def mean_lapse(self) -> float:
        """Posterior mean of the lapse rate."""
        return float(self._rest().sum(axis=(0, 1)) @ self.grid.lapse)

    def mean_parameters(self) -> dict[str, float]:
        """Posterior means of gain, peak, bandwidth and truncation of the parabola (see `log_parabola`)."""
        means = self._mass.sum(axis=1) @ self._parameters
        return dict(zip(("gain", "peak", "bandwidth", "truncation"), means.tolist(), strict=True))

    def draw(self, n: int, seed: int = 0) -> FloatArray:
        """Draws of log10 sensitivity at all frequencies from the joint posterior, shape (n, F)."""
        rng = np.random.default_rng(seed)
        flat = rng.choice(self._mass.size, size=n, p=self._mass.reshape(-1))
        row, column = np.unravel_index(flat, self._mass.shape)
        draws = np.empty((n, len(self.frequencies)))
        for each in range(len(self.frequencies)):
            density = self._spread[:, self._cell[each, row]] * self._likelihood[each][:, column]
            cumulative = np.cumsum(density, axis=0)
            u = rng.random(n) * cumulative[-1]
            cell = (cumulative < u).sum(axis=0)
            draws[:, each] = -(self.grid.threshold[cell] + self._step * (rng.random(n) - 0.5))
        return draws

    def _condition(self, frequency: int) -> None:
        soft = self._soft[frequency]
        log = self._hard[frequency] if soft is None else self._hard[frequency] + soft / self.dispersion
        # Relative to the highest of all rates: these differ in evidence, which must not be lost.
        likelihood = np.exp(log - log.max())
        before = self._smooth[frequency]
        self._likelihood[frequency] = likelihood
        self._smooth[frequency] = np.maximum(self._spread.T @ likelihood, 1e-200)
        change = np.log(self._smooth[frequency]) - np.log(before)
        self._log += change[self._cell[frequency]]

    def _share(self) -> None:
        catch = np.broadcast_to(self._catch[0] + self._catch[1] / self.dispersion, self.grid.shape[1:]).reshape(-1)
        log = self._log + (self._log_prior + catch)
        highest = log.max()
        if not np.isfinite(highest):
            raise InputError("no guess and lapse rate on the grid could have given these answers; use rates above 0")
        log -= highest
        np.exp(log, out=log)
        log /= log.sum()
        self._mass: FloatArray = log
        self._expected: dict[int, tuple[FloatArray, FloatArray, FloatArray]] = {}

    def _rest(self) -> FloatArray:
        rest: FloatArray = self._mass.sum(axis=0).reshape(self.grid.shape[1:])
        return rest

    def _threshold_and_rest(self, frequency: int) -> FloatArray:
        # What all other answers say of the parabola here, the deviation from it, and the answers here.
        parabola = self._gather[frequency] @ self._mass / self._smooth[frequency]
        joint = (self._spread @ parabola) * self._likelihood[frequency]
        normalised: FloatArray = joint / joint.sum()
        return normalised

    def _disperse(self) -> None:
        self._share()
        g, l, width = self.mean_guess(), self.mean_lapse(), np.array(self.mean_width())

        def psi(frequency: int, x: FloatArray) -> FloatArray:
            return g + (1 - g - l) * seen(x, np.array(self.mean(frequency)), width, self.grid.function)

        self.dispersion = dispersion(self._answers, psi)
        for each in range(len(self._answers)):
            if self._soft[each] is not None:
                self._condition(each)


def _spread(threshold: FloatArray, deviation: float) -> FloatArray:
    # Probability of each threshold (rows) where the parabola's is each threshold (columns).
    if deviation == 0:
        return np.eye(threshold.size)
    weights = np.exp(-0.5 * ((threshold[:, None] - threshold) / deviation) ** 2)
    normalised: FloatArray = weights / weights.sum(axis=0)
    return normalised
