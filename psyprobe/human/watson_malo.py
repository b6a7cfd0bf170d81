"""The Watson-Malo CSF: the contrast filter of a standard spatial observer in daylight.

References
----------
Watson, Malo (2002). Video quality measures based on the standard spatial observer. Proc. IEEE International
Conference on Image Processing 3:41-44. doi:10.1109/ICIP.2002.1038898. The curve's form is Tyler's; the constants
are those that J. Malo's group uses for its achromatic reference observer. The oblique effect is left out: this is
the curve for vertical and horizontal stripes.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from psyprobe._typing import FloatArray
from psyprobe.human import arguments

_GAIN = 330.74
_HIGH_CUT = 7.28  # cpd
_LOW_LOSS = 0.837
_LOW_CUT = 1.809  # cpd
_DAYLIGHT = 30.0  # cd/m², as good as any in the photopic range


def watson_malo_csf(
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
    """Gain of the Watson-Malo contrast filter, S(f) = g (exp(-f / fm) - l exp(-f**2 / s**2)).

    This is the gain of a filter that comes before spatial summation, and peaks at 201.4 at 3.05 cpd: it is no
    threshold of any one pattern (Gabors of sigma 0.5 deg peak at 128 in the ModelFest data).

    Parameters
    ----------
    frequency : array_like of float
        Spatial frequency, cpd, > 0.
    luminance : array_like of float, optional
        At least 10 cd/m²: the model is one curve for daylight vision, the same at any such luminance.
    background : None
        Not in this model, which has no colour.
    direction : None or "achromatic"
        The only direction of this model.
    area : None
        Not in this model, which has no spatial summation.
    disc_radius : None
        Not in this model.
    temporal_frequency, eccentricity : array_like of float
        0: the model is static and foveal.
    visual_field : array_like of float
        Without effect, as eccentricity is 0.

    Returns
    -------
    ndarray or scalar
        Gain, 1 / contrast, >= 0, in the shape to which the arguments broadcast. float32 if all arrays given are
        float32, else float64.

    Raises
    ------
    InputError
        If a value is out of range or not finite, or one is set that the model lacks.

    References
    ----------
    Watson, Malo (2002), ICIP 3:41-44; constants g = 330.74, fm = 7.28 cpd, l = 0.837, s = 1.809 cpd.

    Examples
    --------
    >>> watson_malo_csf([1.0, 4.0, 16.0]).round(1)
    array([ 84.4, 188.8,  36.7])
    """
    model = "Watson-Malo"
    reason = "it has no spatial summation, only the gain of a filter; leave it out, or use castle_csf"
    arguments.require_achromatic(model, direction)
    arguments.refuse(model, "it has no colour; leave it out, or use castle_csf", background=background)
    arguments.refuse(model, reason, area=area, disc_radius=disc_radius)
    arguments.require_static_foveal(model, temporal_frequency, eccentricity, visual_field)
    dtype = arguments.floating_dtype(frequency, luminance)
    f = arguments.FREQUENCY.read(arguments.need(model, frequency=frequency), dtype)
    light = arguments.PHOTOPIC_LUMINANCE.read(_DAYLIGHT if luminance is None else luminance, dtype)
    shape = arguments.common_shape({"frequency": f.shape, "luminance": light.shape})
    with np.errstate(under="ignore", over="ignore"):
        gain = _GAIN * (np.exp(-f / _HIGH_CUT) - _LOW_LOSS * np.exp(-((f / _LOW_CUT) ** 2)))
    sensitivity: FloatArray = np.broadcast_to(gain, shape).astype(dtype)[()]
    return sensitivity
