"""Score thresholds over densities of external noise by their equivalent input noise.

References
----------
Pelli (1990). The quantum efficiency of vision. In Vision: coding and efficiency. Baldwin, Baker &
Hess (2016). What do contrast threshold equivalent noise studies actually measure? PLOS ONE 11(3):
a gain control passes for an equivalent noise.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.analysis.efficiency.equivalent_noise import (
    LEAST_DENSITIES,
    EquivalentNoise,
    fit_equivalent_noise,
)
from psyprobe.analysis.efficiency.scores import (
    EFFICIENCY,
    NOISE_LEVEL,
    Efficiency,
    efficiencies,
)
from psyprobe.analysis.intervals import normal_quantile
from psyprobe.analysis.responses import levels_of
from psyprobe.analysis.score import Entry, Metric
from psyprobe.files.json_types import JsonObject

if TYPE_CHECKING:
    import xarray as xr

#: Densities, and decades that those above 0 span, by which the fit can be trusted.
_ENOUGH = 5
_DECADES = 2.0
#: Below this probability the residuals are too large for the model.
_MISFIT = 0.01


@dataclass(frozen=True)
class NoiseMasking:
    """Thresholds over densities of external noise, and the linear amplifier that fits them.

    Parameters
    ----------
    thresholds : tuple of Efficiency
        One a density.
    ideal_energy : float
        Threshold energy of the ideal observer over the density of the noise, which is its d'².
    fit : EquivalentNoise, optional
        None where too few thresholds are known.
    remarks : tuple of str
        What stands against the fit, as sentences.
    """

    thresholds: tuple[Efficiency, ...]
    ideal_energy: float
    fit: EquivalentNoise | None
    remarks: tuple[str, ...]

    def energy(self, density: float) -> float:
        """Compute the fitted threshold energy in noise of a density, deg²."""
        assert self.fit is not None
        return self.ideal_energy * self.fit.energy(density)

    def entries(self) -> dict[Metric, Entry]:
        """Rank the observer by its efficiency in strong noise; nothing without a fit."""
        if self.fit is None:
            return {}
        low, high = self.fit.efficiency_interval
        ends = (low, _finite_or_none(high))
        return {EFFICIENCY: Entry(self.fit.efficiency, *ends, over="trials")}

    def cells(self) -> dict[str, str]:
        """Format the fitted equivalent noise and efficiency as table cells."""
        fit = self.fit
        if fit is None:
            return {"efficiency": "-", "N_eq (deg²)": "-"}
        return {
            "efficiency": _format_interval(fit.efficiency, *fit.efficiency_interval),
            "N_eq (deg²)": _format_interval(fit.density, *fit.density_interval),
            "residuals (log10)": f"{fit.rms_residual:.3f}",
            "p": f"{fit.p_value:.2g}",
        }

    def record(self) -> JsonObject:
        """Return the fit as a flat record, units in the names."""
        fit = self.fit
        if fit is None:
            return {}
        return {
            "calculation_efficiency": fit.efficiency,
            "calculation_efficiency_low": fit.efficiency_interval[0],
            "calculation_efficiency_high": _finite_or_none(fit.efficiency_interval[1]),
            "equivalent_noise_deg2": fit.density,
            "equivalent_noise_deg2_low": fit.density_interval[0],
            "equivalent_noise_deg2_high": _finite_or_none(fit.density_interval[1]),
            "equivalent_noise_rms_log10": fit.rms_residual,
            "equivalent_noise_p_value": fit.p_value,
        }


def noise_masking(csf: xr.Dataset) -> NoiseMasking | None:
    """Fit an amplifier with internal noise to a CSF's thresholds over densities of noise.

    Parameters
    ----------
    csf : xarray.Dataset
        Of `psyprobe.analysis.words.csf.chat_csf`.

    Returns
    -------
    NoiseMasking or None
        None of a page over another level.
    """
    thresholds = efficiencies(csf)
    if not thresholds or levels_of(csf) != (NOISE_LEVEL,):
        return None
    points = [
        point
        for point in thresholds
        if point.energy and point.energy_low and point.energy_high
    ]
    # The ideal observer's energy over the density is the same at all densities.
    ideal_energies = [
        point.efficiency * point.energy / point.density
        for point in points
        if point.efficiency and point.energy
    ]
    if len(points) < LEAST_DENSITIES or not ideal_energies:
        remark = (
            f"{len(points)} densities have a threshold with an interval, and equivalent noise "
            f"takes at least {LEAST_DENSITIES}"
        )
        return NoiseMasking(thresholds, math.nan, None, (remark,))
    energies = np.array([point.energy for point in points], float)
    ends = np.array([(point.energy_low, point.energy_high) for point in points], float)
    densities = np.array([point.density for point in points])
    # Energy is the square of contrast, and an interval lies on both sides.
    reach = 4 * normal_quantile(float(csf.attrs["confidence"]))
    fit = fit_equivalent_noise(
        densities,
        np.sqrt(energies),
        energy=1.0,
        d_prime=math.sqrt(ideal_energies[0]),
        sd=np.log10(ends[:, 1] / ends[:, 0]) / reach,
    )
    remarks = [*_gaps(densities)]
    if fit.p_value < _MISFIT:
        remarks.append(
            f"thresholds depart from a linear amplifier (p = {fit.p_value:.2g}): do not quote its "
            "equivalent noise"
        )
    if "training" in csf.attrs:
        remarks.append(
            "unless this encoder has noise of its own, its equivalent noise tells where the stage "
            "was trained, and rounding; read the efficiency at each density"
        )
    return NoiseMasking(thresholds, ideal_energies[0], fit, tuple(remarks))


def _gaps(densities: FloatArray) -> Iterator[str]:
    """Iterate over sentences on what densities lack for a trustworthy equivalent noise."""
    noisy = densities[densities > 0]
    lacks = []
    if len(densities) < _ENOUGH:
        lacks.append(f"{len(densities)} densities where {_ENOUGH} are asked for")
    if len(noisy) == len(densities):
        lacks.append("none of them 0")
    if np.log10(noisy.max() / noisy.min()) < _DECADES:
        lacks.append(f"less than {_DECADES:g} decades")
    if lacks:
        yield f"the equivalent noise is a rough one: {', '.join(lacks)}"


def _format_interval(value: float | None, low: float, high: float) -> str:
    """Format a value with its interval, or "below" the upper end if there is no value."""
    if value is None:
        return f"below {high:.3g}"
    return f"{value:.3g} [{low:.3g}, {high:.3g}]"


def _finite_or_none(value: float) -> float | None:
    """Return a finite number as it is, and None for any other."""
    return value if math.isfinite(value) else None
