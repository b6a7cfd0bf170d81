"""Barten's CSF: contrast sensitivity of the fovea from optics, photon noise and neural noise.

References
----------
Barten (1999). Contrast sensitivity of the human eye and its effects on image quality. SPIE Press; thesis,
TU Eindhoven. doi:10.1117/3.353254. Static formula and constants as in Report ITU-R BT.2246.

Examples
--------
>>> barten_csf([1.0, 4.0, 16.0], luminance=100, area=np.pi).round(1)
array([105.7, 324.7, 150.8])
"""

from __future__ import annotations

import math

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.human.signature import Limits, achromatic_csf

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

LIMITS = Limits(
    "Barten 1999",
    needs=("frequency", "luminance", "area"),
    source="Barten (1999), constants of Report ITU-R BT.2246",
)


@achromatic_csf(LIMITS)
def barten_csf(frequency: FloatArray, luminance: FloatArray, area: FloatArray) -> FloatArray:
    """Achromatic sensitivity of the human fovea to a static stimulus by Barten (1999), for a square field.

    Call and errors as in `castle_csf`; frequency, luminance (which also sets the pupil) and area are needed. The
    field is the square of the area, sqrt(area) deg wide: for a Gabor pi * sigma**2 is the area of the hard-edged
    field with as much squared contrast as its envelope.
    """
    pupil = 5.0 - 3.0 * np.tanh(0.4 * (np.log10(luminance) + np.log10(area) - math.log10(40.0**2)))
    stiles_crawford = 1.0 - (pupil / 9.7) ** 2 + (pupil / 12.4) ** 4
    trolands = math.pi / 4.0 * pupil * pupil * luminance * stiles_crawford
    blur_squared = _BLUR**2 + (_BLUR_PER_PUPIL * pupil) ** 2
    optics = np.exp(-2.0 * math.pi**2 * blur_squared * frequency * frequency)
    integration = 1.0 / area + 1.0 / _LARGEST_FIELD**2 + (frequency / _LARGEST_CYCLES) ** 2
    photon_noise = 1.0 / (_QUANTUM_EFFICIENCY * _PHOTON_CONVERSION * trolands)
    neural_noise = _NEURAL_NOISE / -np.expm1(-((frequency / _LATERAL_INHIBITION) ** 2))
    noise = np.sqrt(2.0 / _INTEGRATION_TIME * integration * (photon_noise + neural_noise))
    return np.asarray(optics / (_SIGNAL_TO_NOISE * noise))
