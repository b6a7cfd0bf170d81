"""stelaCSF: achromatic contrast sensitivity over area, spatio-temporal frequency, luminance and eccentricity.

References
----------
Mantiuk, Ashraf, Chapiro (2022). stelaCSF: a unified model of contrast sensitivity as the function of
spatio-temporal frequency, eccentricity, luminance and area. ACM Transactions on Graphics 41(4):145.
doi:10.1145/3528223.3530115
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from psyprobe._typing import FloatArray
from psyprobe.human import arguments
from psyprobe.human.achromatic import AchromaticMechanism, SpatialChannel
from psyprobe.human.channel import read_condition

MECHANISM = AchromaticMechanism(
    sustained=SpatialChannel(0.000219263, 0.103686, 270.0, 0.65),
    transient=SpatialChannel(1.75147, 0.000273289, 270.0, 0.65),
    sustained_sensitivity=(68.9501, 59.5023, 0.164274, 7.54866e-07, 7.77268e09),
    sustained_peak=(1.62144, 36.6565, 0.255823),
    transient_sensitivity=(0.500846, 57.3469),
    transient_peak=0.0267489,
    sustained_decay=(1.3314, 5.79336),
    transient_tuning=(0.1898, 0.12314),
    transient_centre=(0.0, 5.0),
    eccentricity=(0.0296662, 0.0113638, 0.0190062, 0.0193858),
)


def stela_csf(
    frequency: npt.ArrayLike | None = None,
    *,
    luminance: npt.ArrayLike | None = None,
    background: npt.ArrayLike | None = None,
    direction: npt.ArrayLike | None = None,
    area: npt.ArrayLike | None = None,
    disc_radius: npt.ArrayLike | None = None,
    temporal_frequency: npt.ArrayLike = 0.0,
    eccentricity: npt.ArrayLike = 0.0,
    visual_field: npt.ArrayLike = 180.0,
) -> FloatArray:
    """Achromatic sensitivity of the human eye by stelaCSF (Mantiuk et al. 2022).

    Parameters
    ----------
    frequency : array_like of float
        Spatial frequency, cpd, > 0.
    luminance : array_like of float
        Adapting luminance, cd/m², > 0.
    background : None
        Not in this model, which has no colour.
    direction : None or "achromatic"
        The only direction of this model.
    area : array_like of float
        Area of the Gabor or grating, deg², > 0: pi * sigma**2 of a Gaussian envelope.
    disc_radius : None
        Not in this model.
    temporal_frequency : array_like of float
        Hz, >= 0.
    eccentricity : array_like of float
        Degrees of visual angle from the fovea, >= 0.
    visual_field : array_like of float
        Polar angle, deg, 0 to 360, as in `castle_csf`. The same default as there, so that changing the model does
        not change the place; the authors' code has 0 (temporal) here.

    Returns
    -------
    ndarray or scalar
        Sensitivity, 1 / Michelson contrast at threshold, >= 0, in the shape to which the arguments broadcast.
        float32 if all arrays given are float32, else float64.

    Raises
    ------
    InputError
        If a value is out of range or not finite, a needed one is missing, or one is set that the model lacks.

    References
    ----------
    Mantiuk, Ashraf, Chapiro (2022), ACM Transactions on Graphics 41(4):145.

    Examples
    --------
    >>> stela_csf([1.0, 4.0, 16.0], luminance=100, area=np.pi).round(1)
    array([103.5, 247. ,  55.7])
    """
    model = "stelaCSF"
    arguments.require_achromatic(model, direction)
    arguments.refuse(model, "it has no colour; give luminance, or use castle_csf", background=background)
    arguments.refuse(model, "it has no discs; use castle_csf", disc_radius=disc_radius)
    dtype = arguments.floating_dtype(frequency, luminance, area, temporal_frequency, eccentricity, visual_field)
    condition = read_condition(
        dtype,
        arguments.need(model, frequency=frequency),
        arguments.need(model, luminance=luminance),
        arguments.need(model, area=area),
        temporal_frequency,
        eccentricity,
        visual_field,
    )
    arguments.common_shape(condition.shapes())
    with np.errstate(under="ignore", over="ignore"):
        sensitivity: FloatArray = MECHANISM.sensitivity(condition).astype(dtype, copy=False)[()]
    return sensitivity
