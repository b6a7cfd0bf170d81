"""The Watson-Malo CSF: the contrast filter of a standard spatial observer in daylight.

References
----------
Watson, Malo (2002). Video quality measures based on the standard spatial observer. Proc. IEEE International
Conference on Image Processing 3:41-44. doi:10.1109/ICIP.2002.1038898. The curve's form is Tyler's; the constants
are those that J. Malo's group uses for its achromatic reference observer. The oblique effect is left out: this is
the curve for vertical and horizontal stripes.

Examples
--------
>>> watson_malo_csf([1.0, 4.0, 16.0]).round(1)
array([ 84.4, 188.8,  36.7])
"""

from __future__ import annotations

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.human.signature import Limits, achromatic_csf

_GAIN = 330.74
_HIGH_CUT = 7.28  # cpd
_LOW_LOSS = 0.837
_LOW_CUT = 1.809  # cpd

LIMITS = Limits(
    "Watson-Malo",
    needs=("frequency",),
    takes=("luminance",),
    daylight=True,
    source="Watson, Malo (2002), ICIP 3:41-44",
)


@achromatic_csf(LIMITS)
def watson_malo_csf(frequency: FloatArray) -> FloatArray:
    """Gain of the Watson-Malo contrast filter, S(f) = g (exp(-f / fm) - l exp(-f**2 / s**2)).

    This is the gain of a filter that comes before spatial summation, and peaks at 201.4 at 3.05 cpd: it is no
    threshold of any one pattern (Gabors of sigma 0.5 deg peak at 128 in the ModelFest data).

    Call and errors as in `castle_csf`; an area is refused, and luminance, where given, must be 10 cd/m² or more: the
    model is one curve for daylight.
    """
    return np.asarray(_GAIN * (np.exp(-frequency / _HIGH_CUT) - _LOW_LOSS * np.exp(-((frequency / _LOW_CUT) ** 2))))
