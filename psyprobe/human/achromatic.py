"""Compute achromatic contrast sensitivity: stelaCSF, Barten, Watson-Malo and Watson-Ahumada.

References
----------
Mantiuk, Ashraf, Chapiro (2022). stelaCSF: a unified model of contrast sensitivity as the function
of spatio-temporal frequency, eccentricity, luminance and area. ACM Transactions on Graphics
41(4):145. doi:10.1145/3528223.3530115 Barten (1999). Contrast sensitivity of the human eye and its
effects on image quality. SPIE Press; thesis, TU Eindhoven. doi:10.1117/3.353254. Static formula and
constants as in Report ITU-R BT.2246. Watson, Malo (2002). Video quality measures based on the
standard spatial observer. Proc. IEEE International Conference on Image Processing 3:41-44.
doi:10.1109/ICIP.2002.1038898. The curve's form is Tyler's; the constants are those that J. Malo's
group uses for its achromatic reference observer. Watson, Ahumada (2005). A standard model for
foveal detection of spatial contrast. Journal of Vision 5(9):6. doi:10.1167/5.9.6. Standard model A.
Both filters of Watson are without their oblique effect: the curves are for vertical and horizontal
stripes.

Examples
--------
>>> stela_csf([1.0, 4.0, 16.0], luminance=100, area=3.1416).round(1)
array([103.5, 247. ,  55.7])
>>> barten_csf([1.0, 4.0, 16.0], luminance=100, area=np.pi).round(1)
array([105.7, 324.7, 150.8])
>>> watson_malo_csf([1.0, 4.0, 16.0]).round(1)
array([ 84.4, 188.8,  36.7])
>>> watson_ahumada_csf([1.0, 4.0, 16.0]).round(1)
array([106.6, 214.2,  43.1])
>>> watson_ahumada_csf([1.12, 4.0, 16.0], area=np.pi * 0.5**2).round(1)
array([ 58. , 106.4,  21.4])
"""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from psyprobe._typing import FloatArray
from psyprobe.errors import InputError
from psyprobe.human.castle import STELA, Condition, castle_csf
from psyprobe.human.signature import (
    LIMITS,
    PHOTOPIC_LUMINANCE,
    QUANTITIES,
    common_shape,
    floating_dtype,
)

_CALL = inspect.signature(castle_csf)


def achromatic_csf(formula: Callable[..., FloatArray]) -> Callable[..., FloatArray]:
    """Turn the formula of an achromatic CSF model into a function with the inputs of `castle_csf`.

    The formula gets those of its inputs that are not None, as arrays of one precision; one for
    daylight gets no luminance. The result is float32 if all arrays are float32, else float64, in
    the shape to which all arguments broadcast.
    """
    limits = LIMITS[formula.__name__]

    @functools.wraps(formula)
    def sensitivity(
        frequency: ArrayLike | None = None, **conditions: Any
    ) -> FloatArray:
        call = _CALL.bind(frequency, **conditions)
        call.apply_defaults()
        arguments = {name: v for name, v in call.arguments.items() if v is not None}
        inputs = limits.check(arguments)
        dtype = floating_dtype(*arguments.values())
        if limits.daylight and "luminance" in inputs:
            PHOTOPIC_LUMINANCE.read(inputs.pop("luminance"), dtype)
        arrays = {
            name: QUANTITIES[name].read(value, dtype) for name, value in inputs.items()
        }
        shape = common_shape(
            {name: np.shape(value) for name, value in arguments.items()}
        )
        # Values that underflow, or noise that is infinite, end as no sensitivity.
        with np.errstate(under="ignore", over="ignore", divide="ignore"):
            values = formula(**arrays)
        result: FloatArray = np.broadcast_to(values, shape).astype(dtype)[()]
        return result

    vars(sensitivity)["__signature__"] = _CALL
    return sensitivity


@achromatic_csf
def stela_csf(**condition: FloatArray) -> FloatArray:
    """Compute the achromatic sensitivity of the human eye by stelaCSF (Mantiuk et al. 2022).

    Call and errors as in `castle_csf`; frequency, luminance and area are needed. The default visual
    field is that of castleCSF, so that changing the model does not change the place; the authors'
    code has 0 (temporal) here.

    Examples
    --------
    >>> float(stela_csf(4.0, luminance=100.0, area=1.0).round(1))
    157.0
    """
    return STELA.sensitivity(Condition(**condition))


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


@achromatic_csf
def barten_csf(
    frequency: FloatArray, luminance: FloatArray, area: FloatArray
) -> FloatArray:
    """Compute the achromatic sensitivity of the fovea to a static square field by Barten (1999).

    Call and errors as in `castle_csf`; frequency, luminance (which also sets the pupil) and area
    are needed. The field is the square of the area, sqrt(area) deg wide: for a Gabor pi * sigma**2
    is the area of the hard-edged field with as much squared contrast as its envelope.
    """
    pupil = 5.0 - 3.0 * np.tanh(
        0.4 * (np.log10(luminance) + np.log10(area) - math.log10(40.0**2))
    )
    stiles_crawford = 1.0 - (pupil / 9.7) ** 2 + (pupil / 12.4) ** 4
    trolands = math.pi / 4.0 * pupil * pupil * luminance * stiles_crawford
    blur_squared = _BLUR**2 + (_BLUR_PER_PUPIL * pupil) ** 2
    optics = np.exp(-2.0 * math.pi**2 * blur_squared * frequency * frequency)
    integration = (
        1.0 / area + 1.0 / _LARGEST_FIELD**2 + (frequency / _LARGEST_CYCLES) ** 2
    )
    photon_noise = 1.0 / (_QUANTUM_EFFICIENCY * _PHOTON_CONVERSION * trolands)
    neural_noise = _NEURAL_NOISE / -np.expm1(-((frequency / _LATERAL_INHIBITION) ** 2))
    noise = np.sqrt(
        2.0 / _INTEGRATION_TIME * integration * (photon_noise + neural_noise)
    )
    return np.asarray(optics / (_SIGNAL_TO_NOISE * noise))


@achromatic_csf
def watson_malo_csf(frequency: FloatArray) -> FloatArray:
    """Compute the gain of the Watson-Malo contrast filter.

    S(f) = g (exp(-f / fm) - l exp(-f**2 / s**2)) is the gain of a filter that comes before spatial
    summation, and peaks at 201.4 at 3.05 cpd: it is no threshold of any one pattern (Gabors of
    sigma 0.5 deg peak at 128 in the ModelFest data).

    Call and errors as in `castle_csf`; an area is refused, and luminance, where given, must be 10
    cd/m² or more: the model is one curve for daylight.

    Examples
    --------
    >>> float(watson_malo_csf(4.0, luminance=100.0).round(1))
    188.8
    """
    # cuts in cpd
    gain = 330.74
    high_cut = 7.28
    low_loss = 0.837
    low_cut = 1.809
    return np.asarray(
        gain
        * (
            np.exp(-frequency / high_cut)
            - low_loss * np.exp(-((frequency / low_cut) ** 2))
        )
    )


_APERTURE = 0.6273  # deg, Gaussian sigma of the fovea's aperture
_POOLING = 2.4081  # exponent beta of the sum over deg²
#: The mean of |cos|**beta over a cycle.
_CYCLE_MEAN = math.gamma((_POOLING + 1) / 2) / (
    math.sqrt(math.pi) * math.gamma(_POOLING / 2 + 1)
)
#: Cycles per sigma below which a Gabor is too broad-band for one gain to stand for its filtering.
_FEWEST_CYCLES = 0.5


@achromatic_csf
def watson_ahumada_csf(
    frequency: FloatArray, area: FloatArray | None = None
) -> FloatArray:
    """Compute sensitivity to a foveal Gabor by Watson and Ahumada (2005), or their filter's gain.

    With an area, the sensitivity to a Gabor of that area: the filter's gain at its frequency,
    times the Minkowski sum of its contrast under the fovea's aperture. Without one, the gain of the
    filter (HPmH) alone, which peaks at 217.3 at 3.45 cpd and is no threshold of any one pattern.

    Call and errors as in `castle_csf`; frequency * sigma must be at least 0.5 cycles, and
    luminance, where given, 10 cd/m² or more: the model is one curve for daylight (its data were
    taken at 30 cd/m²).

    Notes
    -----
    One gain for the whole Gabor and the mean of ``|cos|**beta`` over its cycles give the sum in
    closed form. Against the filtered and summed images, this is within 0.7 dB from 0.5 to 10 cpd,
    and within 0.3 dB there where frequency * sigma is at least 1; small Gabors of higher frequency
    come out too low (3.5 dB at 24 cpd, half a cycle per sigma).

    Examples
    --------
    >>> float(watson_ahumada_csf(4.0, luminance=100.0).round(1))
    214.2
    """
    # cuts in cpd
    height = 373.08
    high_cut = 4.1726
    exponent = 0.7786
    low_cut = 1.3625
    low_loss = 0.8493
    gain = height * (
        _sech((frequency / high_cut) ** exponent)
        - low_loss * _sech(frequency / low_cut)
    )
    return gain if area is None else gain * _summation(frequency, area)


def _sech(x: FloatArray) -> FloatArray:
    """Compute the hyperbolic secant, 1 / cosh(x), for x >= 0 without overflow."""
    decay = np.exp(-x)
    return 2.0 * decay / (1.0 + decay * decay)


def _summation(frequency: FloatArray, area: FloatArray) -> FloatArray:
    """Compute the Minkowski sum over deg² of a Gabor of contrast 1 under the model's aperture."""
    cycles = frequency * np.sqrt(area / math.pi)
    # The tolerance forgives the rounding of an area that was computed as pi * sigma**2.
    if (cycles < _FEWEST_CYCLES * (1 - 1e-6)).any():
        raise InputError(
            f"a Gabor with {cycles.min():g} cycles per sigma cannot be given to Watson-Ahumada: it "
            f"must have at least {_FEWEST_CYCLES:g}; enlarge area (pi * sigma**2) or frequency, or "
            "use castle_csf"
        )
    seen_area = 1.0 / (1.0 / area + 1.0 / (math.pi * _APERTURE**2))
    summation: FloatArray = (_CYCLE_MEAN * 2.0 / _POOLING * seen_area) ** (
        1.0 / _POOLING
    )
    return summation
