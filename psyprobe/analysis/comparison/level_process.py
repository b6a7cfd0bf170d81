"""Model levels as a random process, only where that is asked for.

The offsets of real encoders over frequency are trends and no stationary process; then the length
of the interval is the prior's.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.errors import InputError

#: Neighbour correlations between which the prior is divided, denser near 1.
_CORRELATIONS = np.concatenate([np.linspace(0.0, 0.95, 39), [0.97, 0.985]])


@dataclass(frozen=True, eq=False)
class LevelProcess:
    """The posterior of the spread of levels about a common mean."""

    #: Neighbour correlations, and their posterior mass, shape (41,).
    correlation: FloatArray
    mass: FloatArray
    #: Sum of squares of offsets, neighbours taken out, at each correlation, shape (41,).
    squares: FloatArray
    levels: int

    @property
    def mean_correlation(self) -> float:
        """Return the posterior mean of the neighbour correlation."""
        return float(self.mass @ self.correlation)

    def sd_quantile(self, probability: float) -> float:
        """Compute a quantile of the standard deviation of levels.

        Examples
        --------
        >>> process = fit_level_process(np.array([0.1, -0.1, 0.05, -0.05, 0.1, -0.1]))
        >>> process.sd_quantile(0.1) < process.sd_quantile(0.9)
        True
        """
        from scipy.optimize import brentq
        from scipy.stats import chi2

        def excess(log_sd: float) -> float:
            # The spread is below s where the sum of squares over s^2 exceeds its chi-square.
            below = chi2.sf(self.squares / np.exp(2 * log_sd), self.levels - 1)
            return float(self.mass @ below) - probability

        middle = 0.5 * np.log(self.squares.max() / (self.levels - 1))
        return float(np.exp(brentq(excess, middle - 20, middle + 20, xtol=1e-10)))


def fit_level_process(offsets: FloatArray) -> LevelProcess:
    """Fit a first-order autoregressive process to the offsets of levels, on a grid.

    Parameters
    ----------
    offsets : ndarray, shape (K,)
        Of each level, in log10 contrast, in order.

    Raises
    ------
    InputError
        Fewer than four levels, or all alike.

    Notes
    -----
    Priors: flat in the mean, 1 / s in the spread, arcsine in the correlation of neighbours.

    Examples
    --------
    >>> trend = np.linspace(-0.1, 0.1, 12)
    >>> fit_level_process(trend).mean_correlation > 0.7
    True
    """
    y = np.asarray(offsets, float)
    count = len(y)
    if count < 4 or np.ptp(y) == 0:
        raise InputError(
            f"{count} offsets from {np.min(y, initial=np.inf):g} tell no process; give at least "
            "four that differ"
        )
    lags = np.abs(np.subtract.outer(np.arange(count), np.arange(count)))
    log_weights = []
    squares = []
    for rho in _CORRELATIONS:
        covariance = rho**lags
        inverse = np.linalg.inv(covariance)
        total = float(inverse.sum())
        weighted = inverse @ y
        square = float(y @ weighted - weighted.sum() ** 2 / total)
        squares.append(square)
        log_weights.append(
            -0.5 * np.linalg.slogdet(covariance)[1]
            - 0.5 * np.log(total)
            - 0.5 * (count - 1) * np.log(square)
        )
    likelihood = np.exp(np.array(log_weights) - max(log_weights))
    bounded = np.clip(_CORRELATIONS, 0.01, 1.0)
    spacing = np.gradient(_CORRELATIONS)
    mass = likelihood * spacing / np.sqrt(bounded * (1 - _CORRELATIONS + 0.005))
    return LevelProcess(_CORRELATIONS, mass / mass.sum(), np.array(squares), count)
