"""Fit the linear-amplifier model to thresholds in noise: efficiency and equivalent input noise.

References
----------
Pelli (1990). The quantum efficiency of vision. In Vision: coding and efficiency. Pelli & Farell
(1999). Why use noise? Journal of the Optical Society of America A 16(3).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from psyprobe._typing import FloatArray
from psyprobe.errors import InputError

#: Rise of chi² at the ends of a 95 % interval of one parameter.
_CHI2_95 = 3.841
#: How far beyond the densities that were measured the equivalent noise is looked for, log10.
_BEYOND = 6.0
#: Steps of the grid on which the least chi² is looked for.
_STEPS = 400
#: Fewest densities.
LEAST_DENSITIES = 3


@dataclass(frozen=True)
class EquivalentNoise:
    """Efficiency in high noise, and the noise in the light that would stand for the observer's own.

    Parameters
    ----------
    efficiency : float
        Efficiency where external noise is high, "calculation efficiency".
    efficiency_interval : tuple of float
        95 % interval, by profile likelihood.
    density : float, optional
        Equivalent input noise, deg²; None where the thresholds do not tell it from 0.
    density_interval : tuple of float
        95 % interval, deg²; from 0 where the thresholds set no lower limit, and to infinity where
        they set no upper one.
    rms_residual : float
        Root mean square of the residuals, log10 contrast.
    p_value : float
        Probability of residuals as large where the model holds, by chi².
    """

    efficiency: float
    efficiency_interval: tuple[float, float]
    density: float | None
    density_interval: tuple[float, float]
    rms_residual: float
    p_value: float

    def energy(self, density: float) -> float:
        """Compute the threshold energy over d'² in noise of a density, deg².

        Without an equivalent noise that is told from 0, that of none.
        """
        return (density + (self.density or 0.0)) / self.efficiency

    def __str__(self) -> str:
        low, high = self.efficiency_interval
        text = f"efficiency {self.efficiency:.3g} [{low:.3g}, {high:.3g}], equivalent noise "
        low_density, high_density = self.density_interval
        if self.density is None:
            return f"{text}below {high_density:.3g} deg²"
        return f"{text}{self.density:.3g} [{low_density:.3g}, {high_density:.3g}] deg²"


def fit_equivalent_noise(
    densities: ArrayLike,
    contrasts: ArrayLike,
    *,
    energy: float,
    d_prime: float = 1.0,
    sd: ArrayLike = 0.05,
) -> EquivalentNoise:
    """Fit c² = d'² (N + Neq) / (J E1) to threshold contrasts c in noise of densities N.

    Parameters
    ----------
    densities : array_like of float, shape (n,)
        Densities of the external noise, deg², at least 0: three or more. Five over two decades, 0
        among them, tell more.
    contrasts : array_like of float, shape (n,)
        Threshold contrasts.
    energy : float
        Energy of the signal at contrast 1, deg², as `signal_energy` of
        `psyprobe.analysis.efficiency.ideal_observer`.
    d_prime : float, optional
        d' at threshold.
    sd : float or array_like, optional
        Standard deviation of each log10 threshold.

    Returns
    -------
    EquivalentNoise
        Least squares of log10 contrast, weighted by 1 / sd².

    Raises
    ------
    InputError
        There are too few densities, or a value is out of range.

    Notes
    -----
    A deterministic encoder has no noise of its own: what the fit finds there is where its stage was
    trained, and rounding.

    Examples
    --------
    >>> densities = np.array([0, 1e-8, 1e-7, 1e-6, 1e-5])
    >>> contrasts = np.sqrt((densities + 1e-7) / (0.1 * 0.3927))
    >>> print(fit_equivalent_noise(densities, contrasts, energy=0.3927, sd=0.02))
    efficiency 0.1 [0.088, 0.114], equivalent noise 1e-07 [8.2e-08, 1.22e-07] deg²
    """
    noise = np.asarray(densities, float)
    contrast = np.asarray(contrasts, float)
    spread = np.broadcast_to(np.asarray(sd, float), contrast.shape)
    _check_thresholds(noise, contrast, spread, energy, d_prime)
    log_contrast = 2 * np.log10(contrast) - math.log10(d_prime**2 / energy)
    weights = 1 / (2 * spread) ** 2

    def misfits(log_density: float) -> FloatArray:
        """Return twice the log10 contrast less what an efficiency of 1 predicts."""
        return np.asarray(log_contrast - np.log10(noise + 10.0**log_density))

    def log_efficiency(log_density: float) -> float:
        return -float(np.average(misfits(log_density), weights=weights))

    def chi2(log_density: float) -> float:
        offsets = misfits(log_density) + log_efficiency(log_density)
        return float(np.sum(weights * offsets**2))

    positive = noise[noise > 0]
    ends = (
        math.log10(positive.min()) - _BEYOND,
        math.log10(positive.max()) + _BEYOND,
    )
    optimum = _minimum(chi2, ends)
    limit = chi2(optimum) + _CHI2_95
    low, high = _limits(lambda x: chi2(x) - limit, optimum, ends)

    def chi2_of_efficiency(log_j: float) -> float:
        """Return the least chi² at an efficiency, over all equivalent noise."""

        def at(log_density: float) -> float:
            return float(np.sum(weights * (misfits(log_density) + log_j) ** 2))

        return at(_minimum(at, ends))

    log_j = log_efficiency(optimum)
    j_low, j_high = _limits(
        lambda x: chi2_of_efficiency(x) - limit,
        log_j,
        (log_j - _BEYOND, log_j + _BEYOND),
    )
    residuals = (misfits(optimum) + log_j) / 2
    return EquivalentNoise(
        10.0**log_j,
        (
            0.0 if j_low is None else 10**j_low,
            math.inf if j_high is None else 10**j_high,
        ),
        None if low is None else 10.0**optimum,
        (0.0 if low is None else 10**low, math.inf if high is None else 10**high),
        float(np.sqrt(np.mean(residuals**2))),
        float(special.chdtrc(len(noise) - 2, chi2(optimum))),
    )


def _check_thresholds(
    noise: FloatArray,
    contrast: FloatArray,
    spread: FloatArray,
    energy: float,
    d_prime: float,
) -> None:
    """Refuse noise densities and threshold contrasts from which no fit can be made."""
    if noise.shape != contrast.shape or noise.ndim != 1:
        raise InputError(
            f"densities of shape {noise.shape} and contrasts of shape {contrast.shape}: give one "
            "threshold for each density"
        )
    values = (contrast, spread, np.array([energy, d_prime]))
    if not all(np.all((a > 0) & np.isfinite(a)) for a in values) or not np.all(
        (noise >= 0) & np.isfinite(noise)
    ):
        raise InputError(
            "contrasts, their sd, energy and d' must be above 0, densities at least 0, and all "
            "finite"
        )
    count = len(np.unique(noise))
    if count < LEAST_DENSITIES:
        raise InputError(
            f"there are {count} densities from {noise.min():g} to {noise.max():g} deg²; give at "
            f"least {LEAST_DENSITIES}"
        )


def _minimum(chi2: Callable[[float], float], ends: tuple[float, float]) -> float:
    """Find the minimum of chi² on a grid, then between its neighbours."""
    from scipy import optimize

    grid = np.linspace(*ends, _STEPS)
    i = int(np.argmin([chi2(x) for x in grid]))
    neighbours = (grid[max(i - 1, 0)], grid[min(i + 1, _STEPS - 1)])
    minimum = optimize.minimize_scalar(
        chi2, bounds=neighbours, method="bounded", options={"xatol": 1e-11}
    )
    return float(minimum.x)


def _limits(
    excess: Callable[[float], float], optimum: float, ends: tuple[float, float]
) -> tuple[float | None, float | None]:
    """Find where a chi² profile rises above its limit on both sides; None where it never does."""
    from scipy import optimize

    limits = [
        float(optimize.brentq(excess, *sorted((optimum, end)), xtol=1e-10))
        if excess(end) > 0
        else None
        for end in ends
    ]
    return limits[0], limits[1]
