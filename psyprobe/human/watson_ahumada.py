"""The Watson-Ahumada CSF (HPmH) and its Gabor sensitivities: a standard model for foveal detection in daylight.

References
----------
Watson, Ahumada (2005). A standard model for foveal detection of spatial contrast. Journal of Vision 5(9):6.
doi:10.1167/5.9.6. Standard model A, without its oblique effect: vertical and horizontal stripes.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from psyprobe._typing import FloatArray
from psyprobe.errors import InputError
from psyprobe.human import arguments

_GAIN = 373.08
_HIGH_CUT = 4.1726  # cpd
_HIGH_EXPONENT = 0.7786
_LOW_CUT = 1.3625  # cpd
_LOW_LOSS = 0.8493
_APERTURE = 0.6273  # deg, Gaussian sigma of the fovea's aperture
_DAYLIGHT = 30.0  # cd/m², as good as any in the photopic range
_POOLING = 2.4081  # exponent beta of the sum over deg²
#: The mean of |cos|**beta over a cycle.
_CYCLE_MEAN = math.gamma((_POOLING + 1) / 2) / (math.sqrt(math.pi) * math.gamma(_POOLING / 2 + 1))
#: Cycles per sigma below which a Gabor is too broad-band for one gain to stand for its filtering.
_FEWEST_CYCLES = 0.5


def watson_ahumada_csf(
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
    """Sensitivity to a foveal Gabor by Watson and Ahumada (2005), or the gain of their contrast filter.

    Given an area, the sensitivity to a Gabor of that area: the filter's gain at its frequency, times the Minkowski
    sum of its contrast under the fovea's aperture. Without one, the gain of the filter (HPmH) alone, which peaks
    at 217.3 at 3.45 cpd and is no threshold of any one pattern.

    Parameters
    ----------
    frequency : array_like of float
        Spatial frequency, cpd, > 0.
    luminance : array_like of float, optional
        At least 10 cd/m²: the model is one curve for daylight vision, the same at any such luminance (its data
        were taken at 30 cd/m²).
    background : None
        Not in this model, which has no colour.
    direction : None or "achromatic"
        The only direction of this model.
    area : array_like of float, optional
        Area of the Gabor, deg², > 0: pi * sigma**2. frequency * sigma must be at least 0.5 cycles.
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
        If a value is out of range or not finite, a Gabor has too few cycles, or one is set that the model lacks.

    Notes
    -----
    One gain for the whole Gabor and the mean of |cos|**beta over its cycles give the sum in closed form. Against
    the filtered and summed images, this is within 0.7 dB from 0.5 to 10 cpd, and within 0.3 dB there where
    frequency * sigma is at least 1; small Gabors of higher frequency come out too low (3.5 dB at 24 cpd, half a
    cycle per sigma).

    References
    ----------
    Watson, Ahumada (2005), Journal of Vision 5(9):6: filter HPmH, aperture and pooling of standard model A.

    Examples
    --------
    >>> watson_ahumada_csf([1.0, 4.0, 16.0]).round(1)
    array([106.6, 214.2,  43.1])
    >>> watson_ahumada_csf([1.12, 4.0, 16.0], area=np.pi * 0.5**2).round(1)
    array([ 58. , 106.4,  21.4])
    """
    model = "Watson-Ahumada"
    arguments.require_achromatic(model, direction)
    arguments.refuse(model, "it has no colour; leave it out, or use castle_csf", background=background)
    arguments.refuse(model, "it has no discs; use castle_csf", disc_radius=disc_radius)
    arguments.require_static_foveal(model, temporal_frequency, eccentricity, visual_field)
    dtype = arguments.floating_dtype(frequency, luminance, area)
    f = arguments.FREQUENCY.read(arguments.need(model, frequency=frequency), dtype)
    light = arguments.PHOTOPIC_LUMINANCE.read(_DAYLIGHT if luminance is None else luminance, dtype)
    shapes = {"frequency": f.shape, "luminance": light.shape}
    with np.errstate(under="ignore", over="ignore"):
        gain = _GAIN * (_sech((f / _HIGH_CUT) ** _HIGH_EXPONENT) - _LOW_LOSS * _sech(f / _LOW_CUT))
        if area is not None:
            gabor_area = arguments.AREA.read(area, dtype)
            shapes["area"] = gabor_area.shape
            arguments.common_shape(shapes)
            gain = gain * _summation(f, gabor_area)
    sensitivity: FloatArray = np.broadcast_to(gain, arguments.common_shape(shapes)).astype(dtype)[()]
    return sensitivity


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
