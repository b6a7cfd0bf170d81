"""Barten's CSF: contrast sensitivity of the fovea from optics, photon noise and neural noise.

References
----------
Barten (1999). Contrast sensitivity of the human eye and its effects on image quality. SPIE Press; thesis,
TU Eindhoven. doi:10.1117/3.353254. Static formula and constants as in Report ITU-R BT.2246.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from psyprobe._typing import FloatArray
from psyprobe.human import arguments

_SIGNAL_TO_NOISE = 3.0  # k, at threshold
_INTEGRATION_TIME = 0.1  # T, s
_LARGEST_FIELD = 12.0  # Xmax, deg over which the eye integrates
_LARGEST_CYCLES = 15.0  # Nmax, cycles over which the eye integrates
_QUANTUM_EFFICIENCY = 0.03  # eta
_PHOTON_CONVERSION = 1.2274e6  # p, photons per (s deg² td)
_NEURAL_NOISE = 3e-8  # phi0, s deg²
_LATERAL_INHIBITION = 7.0  # u0, cpd
_BLUR = 0.5 / 60  # sigma0, deg
_BLUR_PER_PUPIL = 0.08 / 60  # Cab, deg per mm


def barten_csf(
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
    """Achromatic sensitivity of the human fovea by Barten (1999), for a square field.

    Parameters
    ----------
    frequency : array_like of float
        Spatial frequency, cpd, > 0.
    luminance : array_like of float
        Luminance, cd/m², > 0; it also sets the pupil.
    background : None
        Not in this model, which has no colour.
    direction : None or "achromatic"
        The only direction of this model.
    area : array_like of float
        Area, deg², > 0. The model's field is the square of this area, sqrt(area) deg wide. For a Gabor give
        pi * sigma**2, as for the other models here: that is the area of the hard-edged field with as much squared
        contrast as its envelope.
    disc_radius : None
        Not in this model.
    temporal_frequency, eccentricity : array_like of float
        0: the model is static and foveal.
    visual_field : array_like of float
        Without effect, as eccentricity is 0.

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
    Barten (1999), chapter 3, with the constants and for the square field of Report ITU-R BT.2246.

    Examples
    --------
    >>> barten_csf([1.0, 4.0, 16.0], luminance=100, area=np.pi).round(1)
    array([105.7, 324.7, 150.8])
    """
    model = "Barten 1999"
    arguments.require_achromatic(model, direction)
    arguments.refuse(model, "it has no colour; give luminance, or use castle_csf", background=background)
    arguments.refuse(model, "it has no discs; use castle_csf", disc_radius=disc_radius)
    arguments.require_static_foveal(model, temporal_frequency, eccentricity, visual_field)
    dtype = arguments.floating_dtype(frequency, luminance, area)
    f = arguments.FREQUENCY.read(arguments.need(model, frequency=frequency), dtype)
    light = arguments.LUMINANCE.read(arguments.need(model, luminance=luminance), dtype)
    field_area = arguments.AREA.read(arguments.need(model, area=area), dtype)
    arguments.common_shape({"frequency": f.shape, "luminance": light.shape, "area": field_area.shape})
    # What underflows ends as no sensitivity, also where the neural noise of a field without stripes is infinite.
    with np.errstate(under="ignore", over="ignore", divide="ignore"):
        pupil = 5.0 - 3.0 * np.tanh(0.4 * (np.log10(light) + np.log10(field_area) - math.log10(40.0**2)))
        stiles_crawford = 1.0 - (pupil / 9.7) ** 2 + (pupil / 12.4) ** 4
        trolands = math.pi / 4.0 * pupil * pupil * light * stiles_crawford
        blur_squared = _BLUR**2 + (_BLUR_PER_PUPIL * pupil) ** 2
        optics = np.exp(-2.0 * math.pi**2 * blur_squared * f * f)
        integration = 1.0 / field_area + 1.0 / _LARGEST_FIELD**2 + (f / _LARGEST_CYCLES) ** 2
        photon_noise = 1.0 / (_QUANTUM_EFFICIENCY * _PHOTON_CONVERSION * trolands)
        neural_noise = _NEURAL_NOISE / -np.expm1(-((f / _LATERAL_INHIBITION) ** 2))
        noise = np.sqrt(2.0 / _INTEGRATION_TIME * integration * (photon_noise + neural_noise))
        sensitivity: FloatArray = (optics / (_SIGNAL_TO_NOISE * noise)).astype(dtype, copy=False)[()]
    return sensitivity
