"""castleCSF: contrast sensitivity over colour, area, spatio-temporal frequency, luminance and eccentricity.

Written from the paper and checked against the values that its authors' code (v0.2.4, its constants too) returns.

References
----------
Ashraf, Mantiuk, Chapiro, Wuerger (2024). castleCSF: a contrast sensitivity function of color, area,
spatiotemporal frequency, luminance and eccentricity. Journal of Vision 24(4):5. doi:10.1167/jov.24.4.5
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from psyprobe._typing import FloatArray
from psyprobe.errors import InputError, unknown_name
from psyprobe.human import arguments
from psyprobe.human.mechanisms import AchromaticMechanism, ChromaticMechanism, Condition, SpatialChannel
from psyprobe.human.signature import Limits

#: LMS directions by name: those of Cai et al. (CVPR 2025), each of which isolates one mechanism.
DIRECTIONS: Mapping[str, tuple[float, float, float]] = MappingProxyType(
    {
        "achromatic": (0.917470668581922, 0.396967232858222, 0.025779610717139),
        "red_green": (math.sqrt(0.5), -math.sqrt(0.5), 0.0),
        "yellow_violet": (0.0, 0.0, 1.0),
    }
)

#: The direction that the authors' code takes when none is given; nearly, but not exactly, achromatic.
DEFAULT_DIRECTION = (0.6855, 0.2951, 0.0194)

#: LMS of the background per cd/m² when only its luminance is given (daylight, D65).
DEFAULT_BACKGROUND = (0.6991, 0.3009, 0.0198)

ACHROMATIC = AchromaticMechanism(
    sustained=SpatialChannel(0.000213047, 0.100207, 157.103, 0.702338),
    transient=SpatialChannel(2.6761, 0.000241177, 3.81611, 3.01389),
    sustained_sensitivity=(56.4947, 7.54726, 0.144532, 5.58341e-07, 9.66862e09),
    sustained_peak=(1.78119, 91.5718, 0.256682),
    transient_sensitivity=(0.193434, 2748.09),
    transient_peak=0.000316696,
    sustained_decay=(1.3314, 10.5795),
    transient_tuning=(0.1898, 0.0844836),
    transient_centre=(2.41482, 4.7036),
    eccentricity=(0.0239853, 0.0400662, 0.0189038, 0.00813619),
)
RED_GREEN = ChromaticMechanism(
    peak_sensitivity=(681.434, 38.0038, 0.480386),
    peak_frequency=0.0178364,
    bandwidth=2.42104,
    critical_area=2816.44,
    critical_frequency=0.0711058,
    temporal_decay=(1.15591, 16.4325),
    eccentricity=(0.0591402, 2.89615e-05, 2.04986e-69, 0.18108),
)
YELLOW_VIOLET = ChromaticMechanism(
    peak_sensitivity=(166.683, 62.8974, 0.41193),
    peak_frequency=0.00425753,
    bandwidth=2.68197,
    critical_area=2.82789e07,
    critical_frequency=0.000635093,
    temporal_decay=(0.969123, 7.15012),
    eccentricity=(0.00356865, 5.85804e-141, 0.00806631, 0.0110662),
)

#: LMS to the responses of the achromatic, red-green and yellow-violet mechanism.
_LMS_TO_MECHANISMS = np.array([[1.0, 1.0, 0.0], [1.0, -2.3112, 0.0], [-1.0, -1.0, 50.9875]])

#: A disc is seen by the Gabor of this area (deg²) that sees it best, among these frequencies (cpd) ...
_DISC_AREA = 2.42437
_DISC_FREQUENCIES = np.geomspace(0.125, 16.0, 64)
#: ... and its sensitivity grows with the radius (deg) to this power.
_DISC_EXPONENT = 1.0 / 3.01142
#: Discs evaluated together, so that 64 frequencies of each stay in the processor's cache.
_DISC_BLOCK = 512

LIMITS = Limits(
    "castleCSF",
    needs=("frequency", "luminance", "area"),
    takes=("direction", "background", "disc_radius", "temporal_frequency", "eccentricity", "visual_field"),
    valid={"frequency": (1 / 16, 64.0), "luminance": (0.001, 10_000.0), "eccentricity": (0.0, 120.0)},
    source="Ashraf, Mantiuk, Chapiro, Wuerger (2024), Journal of Vision 24(4):5",
)


@dataclass(frozen=True)
class CastleMechanisms:
    """What the three mechanisms of castleCSF do with a stimulus, each in its own contrast units.

    Sensitivity of each mechanism is 1 / (its response to the modulation at threshold, over the L+M of the background);
    the others are responses of each temporal channel to the temporal frequency, 0 to 1.
    """

    achromatic: FloatArray
    red_green: FloatArray
    yellow_violet: FloatArray
    achromatic_sustained: FloatArray
    achromatic_transient: FloatArray
    red_green_sustained: FloatArray
    yellow_violet_sustained: FloatArray


def castle_csf(
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
    """Sensitivity of the human eye by castleCSF (Ashraf et al. 2024).

    Sensitivity is 1 / contrast at threshold, where contrast is the length of the cone contrast vector (peak
    modulation over background, cone by cone) divided by sqrt(3). For an achromatic grating that is its Michelson
    contrast.

    Parameters
    ----------
    frequency : array_like of float, optional
        Spatial frequency of a Gabor or grating, cpd, > 0. Left out for a disc.
    luminance : array_like of float, optional
        Adapting luminance, cd/m², > 0, on a daylight background: LMS = luminance * (0.6991, 0.3009, 0.0198).
    background : array_like of float, shape (..., 3), optional
        LMS of the background instead, all > 0, CIE 2006 cones scaled so that L + M is luminance in cd/m².
    direction : str or array_like of float, shape (..., 3), optional
        Colour direction of the modulation: "achromatic", "red_green", "yellow_violet", or an LMS vector, whose
        length and sign do not matter. If left out, the authors' default (0.6855, 0.2951, 0.0194), which is nearly
        achromatic but not the same as "achromatic" (see Notes).
    area : array_like of float, optional
        Area of a Gabor or grating, deg², > 0: pi * sigma**2 of the Gaussian envelope, or the true area of a
        hard aperture.
    disc_radius : array_like of float, optional
        Radius of a sharp-edged uniform disc, deg, > 0, instead of frequency and area.
    temporal_frequency : array_like of float
        Hz, >= 0.
    eccentricity : array_like of float
        Degrees of visual angle from the fovea, >= 0.
    visual_field : array_like of float
        Polar angle in the visual field of a right eye, deg, 0 to 360: 0 temporal, 90 superior, 180 nasal,
        270 inferior. Without effect at eccentricity 0.

    Returns
    -------
    ndarray or scalar
        Sensitivity, >= 0, in the shape to which all arguments (without the LMS axis) broadcast; 0 where it is too
        small for the number type. float32 if all arrays given are float32, else float64.

    Raises
    ------
    InputError
        If a value is out of range or not finite; if both or neither of luminance and background, or of area and
        disc_radius, are given; if a disc has a frequency or a Gabor has none; if shapes do not broadcast.
    UnknownNameError
        If there is no direction of that name.

    Notes
    -----
    The authors declare the model valid for 1/16 to 64 cpd, 0.001 to 10000 cd/m² and up to 120 deg of
    eccentricity; beyond, the formulas are evaluated all the same. Data exist for 0.06 to 32 cpd, 0 to 55.7 Hz,
    0.003 to 981 deg² and up to 50 deg on the superior and nasal side only.

    "achromatic" isolates the achromatic mechanism. The authors' default direction also drives the chromatic
    mechanisms a little; the sensitivities differ by about 0.2 %.

    Near 0.0113 cd/m² static sensitivity has a narrow bump, at 2 cpd a factor of two: it belongs to the published
    model, whose transient filter is centred on 0 Hz there.

    Examples
    --------
    >>> sensitivity = castle_csf([1.0, 4.0, 16.0], luminance=100, direction="achromatic", area=np.pi)
    >>> sensitivity.round(2)
    array([ 89.65, 203.41,  41.74])
    >>> float(castle_csf(luminance=100, disc_radius=0.5).round(2))
    150.39
    >>> castle_csf(4, area=1)
    Traceback (most recent call last):
    psyprobe.errors.InputError: neither luminance nor background is given; ...
    """
    _exactly_one(luminance=luminance, background=background)
    _exactly_one(area=area, disc_radius=disc_radius)
    if disc_radius is None and frequency is None:
        raise InputError("a Gabor of some area needs a frequency (cpd) too; for a uniform disc give disc_radius")
    if disc_radius is not None and frequency is not None:
        raise InputError(
            "both frequency and disc_radius are given, but a disc has no frequency: leave it out, or give area "
            "instead of disc_radius"
        )
    dtype = arguments.floating_dtype(
        frequency, luminance, background, direction, area, disc_radius, temporal_frequency, eccentricity, visual_field
    )
    light, surround = _read_background(luminance, background, dtype)
    modulation = _read_direction(direction, dtype)
    asked = {
        "luminance": light,
        "temporal_frequency": temporal_frequency,
        "eccentricity": eccentricity,
        "visual_field": visual_field,
    }
    gabor = {
        "frequency": _DISC_FREQUENCIES if frequency is None else frequency,
        "area": _DISC_AREA if area is None else area,
    }
    read = arguments.QUANTITIES
    condition = Condition(**{name: read[name].read(value, dtype) for name, value in (gabor | asked).items()})
    shapes = {name: value.shape for name, value in vars(condition).items()}
    shapes |= {"background": surround.shape[:-1], "direction": modulation.shape[:-1]}
    # What underflows is too faint to matter and becomes 0; what overflows ends as a division by infinity.
    with np.errstate(under="ignore", over="ignore"):
        if disc_radius is None:
            arguments.common_shape(shapes)
            sensitivity = _pooled_sensitivity(condition, _mechanism_weights(modulation, surround, dtype))
        else:
            radius = arguments.DISC_RADIUS.read(disc_radius, dtype)
            shape = arguments.common_shape(shapes | {"frequency": (), "disc_radius": radius.shape})
            best = _best_gabor(condition, _mechanism_weights(modulation, surround, dtype), shape)
            sensitivity = np.power(radius, _DISC_EXPONENT) * best
    result: FloatArray = sensitivity.astype(dtype, copy=False)[()]
    return result


def castle_mechanisms(
    frequency: npt.ArrayLike,
    *,
    luminance: npt.ArrayLike,
    area: npt.ArrayLike,
    temporal_frequency: npt.ArrayLike = 0.0,
    eccentricity: npt.ArrayLike = 0.0,
    visual_field: npt.ArrayLike = 180.0,
) -> CastleMechanisms:
    """Sensitivity of the three mechanisms of castleCSF one by one, and their temporal responses.

    Parameters, errors and reference as in `castle_csf`; each field of the answer has the shape to which the arguments
    it depends on broadcast.

    Examples
    --------
    >>> mechanisms = castle_mechanisms(4, luminance=1.0497, area=1, temporal_frequency=1)
    >>> float(mechanisms.achromatic.round(4)), float(mechanisms.yellow_violet.round(4))
    (30.8735, 2.8869)
    """
    asked = {
        "frequency": frequency,
        "luminance": luminance,
        "area": area,
        "temporal_frequency": temporal_frequency,
        "eccentricity": eccentricity,
        "visual_field": visual_field,
    }
    dtype = arguments.floating_dtype(*asked.values())
    condition = Condition(**arguments.read_quantities(asked, dtype))
    with np.errstate(under="ignore", over="ignore"):
        sustained, transient = ACHROMATIC.temporal_responses(condition)
        values = (
            ACHROMATIC.sensitivity(condition),
            RED_GREEN.sensitivity(condition),
            YELLOW_VIOLET.sensitivity(condition),
            sustained,
            transient,
            RED_GREEN.temporal_response(condition),
            YELLOW_VIOLET.temporal_response(condition),
        )
    return CastleMechanisms(*(value.astype(dtype, copy=False)[()] for value in values))


def _exactly_one(**alternatives: Any) -> None:
    (first, one), (second, other) = alternatives.items()
    if one is None and other is None:
        raise InputError(f"neither {first} nor {second} is given; give one of them")
    if one is not None and other is not None:
        raise InputError(f"both {first} and {second} are given, and they could contradict; give one of them")


def _read_background(
    luminance: npt.ArrayLike | None, background: npt.ArrayLike | None, dtype: np.dtype[Any]
) -> tuple[npt.ArrayLike, FloatArray]:
    """Luminance, and the background's LMS up to a factor."""
    if luminance is not None:
        return luminance, np.asarray(DEFAULT_BACKGROUND)
    assert background is not None
    lms = arguments.read_lms("background", background, dtype)
    if not (lms > 0).all():
        worst = lms.min(axis=tuple(range(lms.ndim - 1)))
        raise InputError(
            f"background has a cone at {worst.min():g}, but L, M and S must all be above 0, since contrast is taken "
            "over each; give the LMS of a light that reaches every cone"
        )
    return lms[..., 0] + lms[..., 1], lms


def _read_direction(direction: npt.ArrayLike | None, dtype: np.dtype[Any]) -> FloatArray:
    if direction is None:
        return np.asarray(DEFAULT_DIRECTION)
    if isinstance(direction, str):
        if direction not in DIRECTIONS:
            raise unknown_name("colour direction", direction, DIRECTIONS)
        return np.asarray(DIRECTIONS[direction])
    lms = arguments.read_lms("direction", direction, dtype)
    if not lms.any(axis=-1).all():
        raise InputError("direction is (0, 0, 0), which points nowhere; give an LMS vector with a cone that changes")
    return lms


def _mechanism_weights(direction: FloatArray, background: FloatArray, dtype: np.dtype[Any]) -> tuple[FloatArray, ...]:
    """By how much a modulation of unit cone contrast drives each mechanism.

    In float64 and free of scale, because mechanism responses are differences of cones that may nearly cancel.
    """
    modulation = direction.astype(np.float64)
    modulation = modulation / np.abs(modulation).max(axis=-1, keepdims=True)
    surround = background.astype(np.float64)
    chromaticity = surround / (surround[..., :1] + surround[..., 1:2])
    cone_contrast = modulation / chromaticity
    length = np.sqrt((cone_contrast * cone_contrast).sum(axis=-1) / 3.0)
    responses = np.abs(modulation @ _LMS_TO_MECHANISMS.T)
    return tuple((responses[..., i] / length).astype(dtype) for i in range(3))


def _pooled_sensitivity(condition: Condition, weights: tuple[FloatArray, ...]) -> FloatArray:
    achromatic, red_green, yellow_violet = weights
    chromatic = np.hypot(
        red_green * RED_GREEN.sensitivity(condition), yellow_violet * YELLOW_VIOLET.sensitivity(condition)
    )
    return np.hypot(achromatic * ACHROMATIC.sensitivity(condition), chromatic)


def _best_gabor(condition: Condition, weights: tuple[FloatArray, ...], shape: tuple[int, ...]) -> FloatArray:
    """The highest sensitivity over the condition's frequencies, in blocks small enough for the cache."""

    def column(value: FloatArray) -> FloatArray:
        # What is the same for all discs stays single, and so does all that is computed from it.
        return value.reshape(1, 1) if value.size == 1 else np.broadcast_to(value, shape).reshape(-1, 1)

    def block(value: FloatArray, start: int) -> FloatArray:
        return value if value.shape[0] == 1 else value[start : start + _DISC_BLOCK]

    columns = {name: column(value) for name, value in vars(condition).items() if name != "frequency"}
    weight_columns = [column(weight) for weight in weights]
    best = np.empty(math.prod(shape), condition.luminance.dtype)
    for start in range(0, best.size, _DISC_BLOCK):
        part = Condition(condition.frequency, **{name: block(value, start) for name, value in columns.items()})
        pooled = _pooled_sensitivity(part, tuple(block(weight, start) for weight in weight_columns))
        best[start : start + _DISC_BLOCK] = pooled.max(axis=-1)
    return best.reshape(shape)
