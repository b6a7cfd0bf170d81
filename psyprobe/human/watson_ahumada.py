"""The Watson-Ahumada CSF (HPmH) and its Gabor sensitivities: a standard model for foveal detection in daylight.

References
----------
Watson, Ahumada (2005). A standard model for foveal detection of spatial contrast. Journal of Vision 5(9):6.
doi:10.1167/5.9.6. Standard model A, without its oblique effect: vertical and horizontal stripes.

Examples
--------
>>> watson_ahumada_csf([1.0, 4.0, 16.0]).round(1)
array([106.6, 214.2,  43.1])
>>> watson_ahumada_csf([1.12, 4.0, 16.0], area=np.pi * 0.5**2).round(1)
array([ 58. , 106.4,  21.4])
"""

from __future__ import annotations

import math

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.errors import InputError
from psyprobe.human.signature import Limits, achromatic_csf

_GAIN = 373.08
_HIGH_CUT = 4.1726  # cpd
_HIGH_EXPONENT = 0.7786
_LOW_CUT = 1.3625  # cpd
_LOW_LOSS = 0.8493
_APERTURE = 0.6273  # deg, Gaussian sigma of the fovea's aperture
_POOLING = 2.4081  # exponent beta of the sum over deg²
#: The mean of |cos|**beta over a cycle.
_CYCLE_MEAN = math.gamma((_POOLING + 1) / 2) / (math.sqrt(math.pi) * math.gamma(_POOLING / 2 + 1))
#: Cycles per sigma below which a Gabor is too broad-band for one gain to stand for its filtering.
_FEWEST_CYCLES = 0.5

LIMITS = Limits(
    "Watson-Ahumada",
    needs=("frequency",),
    takes=("luminance", "area"),
    daylight=True,
    source="Watson, Ahumada (2005), Journal of Vision 5(9):6, standard model A",
)


@achromatic_csf(LIMITS)
def watson_ahumada_csf(frequency: FloatArray, area: FloatArray | None = None) -> FloatArray:
    """Sensitivity to a foveal Gabor by Watson and Ahumada (2005), or the gain of their contrast filter.

    Given an area, the sensitivity to a Gabor of that area: the filter's gain at its frequency, times the Minkowski
    sum of its contrast under the fovea's aperture. Without one, the gain of the filter (HPmH) alone, which peaks
    at 217.3 at 3.45 cpd and is no threshold of any one pattern.

    Call and errors as in `castle_csf`; frequency * sigma must be at least 0.5 cycles, and luminance, where given,
    10 cd/m² or more: the model is one curve for daylight (its data were taken at 30 cd/m²).

    Notes
    -----
    One gain for the whole Gabor and the mean of |cos|**beta over its cycles give the sum in closed form. Against
    the filtered and summed images, this is within 0.7 dB from 0.5 to 10 cpd, and within 0.3 dB there where
    frequency * sigma is at least 1; small Gabors of higher frequency come out too low (3.5 dB at 24 cpd, half a
    cycle per sigma).
    """
    gain = _GAIN * (_sech((frequency / _HIGH_CUT) ** _HIGH_EXPONENT) - _LOW_LOSS * _sech(frequency / _LOW_CUT))
    return gain if area is None else gain * _summation(frequency, area)


def _sech(x: FloatArray) -> FloatArray:
    decay = np.exp(-x)
    return 2.0 * decay / (1.0 + decay * decay)


def _summation(frequency: FloatArray, area: FloatArray) -> FloatArray:
    """The Minkowski sum over deg² of a Gabor of unit contrast, seen through the aperture."""
    cycles = frequency * np.sqrt(area / math.pi)
    # The tolerance forgives the rounding of an area that was computed as pi * sigma**2.
    if (cycles < _FEWEST_CYCLES * (1 - 1e-6)).any():
        raise InputError(
            f"a Gabor with {cycles.min():g} cycles per sigma cannot be given to Watson-Ahumada: it must have at least "
            f"{_FEWEST_CYCLES:g}; enlarge area (pi * sigma**2) or frequency, or use castle_csf"
        )
    seen_area = 1.0 / (1.0 / area + 1.0 / (math.pi * _APERTURE**2))
    summed: FloatArray = (_CYCLE_MEAN * 2.0 / _POOLING * seen_area) ** (1.0 / _POOLING)
    return summed
