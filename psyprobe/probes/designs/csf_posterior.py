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
from psyprobe.probes.designs.log_parabola import log_parabola
from psyprobe.probes.designs.posterior import Posterior
from psyprobe.probes.designs.psychometric_grid import Grid, seen

if TYPE_CHECKING:
    from scipy.sparse import csr_array


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

    gain: FloatArray = field(default_factory=lambda: np.linspace(0.5, 3.2, 19))
    peak: FloatArray = field(default_factory=lambda: np.linspace(-0.3, 1.3, 9))
    bandwidth: FloatArray = field(default_factory=lambda: np.linspace(0.0, 1.2, 7))
    truncation: FloatArray = field(default_factory=lambda: np.linspace(0.02, 1.6, 6))
    deviation: float = 0.07

    def parameters(self) -> FloatArray:
        """Every combination of the parameters, shape (P, 4)."""
        mesh = np.meshgrid(self.gain, self.peak, self.bandwidth, self.truncation, indexing="ij")
        return np.stack([each.ravel() for each in mesh], axis=1)


class CsfPosterior(Posterior):
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

    one_width = True

    def __init__(self, frequencies: tuple[float, ...], grid: Grid, csf: CsfGrid) -> None:
        from scipy.sparse import csr_array

        t, w, g, l = grid.shape
        super().__init__(len(frequencies), grid, (t, w * g * l))
        self._step = float(grid.threshold[1] - grid.threshold[0])
        self._parameters = csf.parameters()
        place = -log_parabola(np.array(frequencies)[:, None], *self._parameters.T)
        nearest = np.rint((place - grid.threshold[0]) / self._step).astype(np.int64)
        self._cell = np.clip(nearest, 0, t - 1)
        count = self._parameters.shape[0]
        self._gather: list[csr_array] = [
            csr_array((np.ones(count), (cells, np.arange(count))), shape=(t, count)) for cells in self._cell
        ]
        self._spread = _spread(grid.threshold, csf.deviation)
        self._likelihood = [np.ones((t, w * g * l)) for _ in frequencies]
        self._smooth = [np.ones((t, w * g * l)) for _ in frequencies]
        prior = grid.width_prior[:, None, None] * grid.guess_prior[:, None] * grid.lapse_prior
        with np.errstate(divide="ignore"):
            self._log_prior = np.log(prior).reshape(-1)
        self._log = np.zeros((count, w * g * l))
        self._share()

    def mean_parameters(self) -> dict[str, float]:
        """Posterior means of gain, peak, bandwidth and truncation of the parabola (see `log_parabola`)."""
        means = self._mass.sum(axis=1) @ self._parameters
        return dict(zip(("gain", "peak", "bandwidth", "truncation"), means.tolist(), strict=True))

    def draw(self, n: int, seed: int = 0) -> FloatArray:
        """Draws of log10 sensitivity at all frequencies from the joint posterior, shape (n, F)."""
        rng = np.random.default_rng(seed)
        flat = rng.choice(self._mass.size, size=n, p=self._mass.reshape(-1))
        row, column = np.unravel_index(flat, self._mass.shape)
        draws = np.empty((n, len(self._cell)))
        for each in range(len(self._cell)):
            density = self._spread[:, self._cell[each, row]] * self._likelihood[each][:, column]
            cumulative = np.cumsum(density, axis=0)
            u = rng.random(n) * cumulative[-1]
            cell = (cumulative < u).sum(axis=0)
            draws[:, each] = -(self.grid.threshold[cell] + self._step * (rng.random(n) - 0.5))
        return draws

    def _tables(self, place: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        # What all other answers say of the parabola here, the deviation from it, and the answers here.
        parabola = self._gather[place] @ self._mass / self._smooth[place]
        joint = (self._spread @ parabola) * self._likelihood[place]
        joint = (joint / joint.sum()).reshape(self.grid.shape)
        g, l = self.grid.guess[:, None], self.grid.lapse
        mass, guess, rise = ((joint * factor).sum(axis=(2, 3)) for factor in (np.ones((1, 1)), g, 1 - g - l))
        return mass, guess, rise

    def _seen(self, place: int, x: float) -> FloatArray:
        return seen(np.array(x), self.grid.threshold[:, None], self.grid.width, self.grid.function)

    def _condition(self, place: int) -> None:
        log = self._log_likelihood(place)
        before = self._smooth[place]
        # Relative to the highest of all rates: these differ in evidence, which must not be lost.
        self._likelihood[place] = np.exp(log - log.max())
        self._smooth[place] = np.maximum(self._spread.T @ self._likelihood[place], 1e-200)
        self._log += (np.log(self._smooth[place]) - np.log(before))[self._cell[place]]

    def _share(self) -> None:
        catch = np.broadcast_to(self._catch[0] + self._catch[1] / self.dispersion, self.grid.shape[1:]).reshape(-1)
        self._mass = self._normalised(self._log + (self._log_prior + catch))

    def _common(self) -> FloatArray:
        return np.asarray(self._mass.sum(axis=0).reshape(self.grid.shape[1:]))


def _spread(threshold: FloatArray, deviation: float) -> FloatArray:
    """Probability of each threshold (rows) where the parabola's is each threshold (columns)."""
    if deviation == 0:
        return np.eye(threshold.size)
    weights = np.exp(-0.5 * ((threshold[:, None] - threshold) / deviation) ** 2)
    return np.asarray(weights / weights.sum(axis=0))
