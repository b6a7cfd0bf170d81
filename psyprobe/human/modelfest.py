"""The Gabors of ModelFest: thresholds that sixteen people share, as a human reference that is no model.

References
----------
Carney et al. (1999). Development of an image/threshold database for designing and testing human vision models.
Proc. SPIE 3644, 542-551.
Watson, Ahumada (2005). A standard model for foveal detection of spatial contrast. Journal of Vision 5(9):6.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from psyprobe._typing import FloatArray
from psyprobe.errors import InputError
from psyprobe.human.tables import read_human_table

_CONSTANT_SIZE = 0.5  # deg


@dataclass(frozen=True)
class ModelFestGabors:
    """Thresholds of 14 Gabors."""

    frequency: FloatArray
    """In cpd."""
    radius: FloatArray
    """Standard deviation of the Gaussian, deg: 0.5 for the first ten, then half a cycle."""
    log10_threshold: FloatArray
    """Mean over observers of log10 Michelson contrast at 84 % correct (of two intervals, or equivalent)."""
    log10_sd: FloatArray
    """Standard deviation between observers."""
    luminance: float
    """Of the background, cd/m²."""
    observers: int
    citation: str

    @property
    def sensitivity(self) -> FloatArray:
        """1 / threshold contrast, of the geometric mean of observers, shape (14,)."""
        return np.asarray(10.0**-self.log10_threshold)


def modelfest_gabors() -> ModelFestGabors:
    """Stimuli 1 to 14 of ModelFest.

    Examples
    --------
    >>> data = modelfest_gabors()
    >>> float(data.frequency[data.sensitivity.argmax()]), round(float(data.sensitivity.max()), 1)
    (4.0, 127.8)
    """
    citation, columns = read_human_table("modelfest_gabors")
    return ModelFestGabors(
        columns["frequency"],
        columns["radius"],
        columns["log10_threshold"],
        columns["log10_sd"],
        luminance=30.0,
        observers=16,
        citation=citation,
    )


def modelfest_csf(frequency: npt.ArrayLike) -> FloatArray:
    """Sensitivity to ModelFest's Gabors of 0.5 deg standard deviation, from 1.12 to 30 cpd.

    Between its ten frequencies it is interpolated in a straight line between logarithms.

    Raises
    ------
    InputError
        Beyond the measured frequencies: they are not extrapolated.

    Examples
    --------
    >>> modelfest_csf([2.0, 4.0, 16.0]).round(1)
    array([ 91.3, 127.8,  19.8])
    """
    data = modelfest_gabors()
    series = data.radius == _CONSTANT_SIZE
    measured = data.frequency[series]
    asked = np.asarray(frequency, dtype=np.float64)
    inside = (asked >= measured[0]) & (asked <= measured[-1])
    if not inside.all():
        raise InputError(
            f"frequency is {asked[~inside].ravel()[0]:g} cpd; ModelFest measured {measured[0]:g} to {measured[-1]:g} "
            "cpd with Gabors of one size: leave it out, or use a model such as castle_csf"
        )
    sensitivity: FloatArray = 10.0 ** -np.interp(np.log(asked), np.log(measured), data.log10_threshold[series])
    return sensitivity
