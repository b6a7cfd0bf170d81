"""Compute castleCSF: human contrast sensitivity over colour, size, frequencies, light and place.

Written from the paper and checked against the values of its authors' code (v0.2.4, also the source
of the constants). Its mechanisms are a sustained and a transient achromatic channel, added, which
stelaCSF has too, and two chromatic ones.

References
----------
Ashraf, Mantiuk, Chapiro, Wuerger (2024). castleCSF: a contrast sensitivity function of color, area,
spatiotemporal frequency, luminance and eccentricity. Journal of Vision 24(4):5.
doi:10.1167/jov.24.4.5 Rovamo, Luntinen, Näsänen (1993). Modelling the dependence of contrast
sensitivity on grating area and spatial frequency. Vision Research 33:2773-2788.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from psyprobe._typing import FloatArray
from psyprobe.errors import InputError, unknown_name
from psyprobe.files.json_types import JsonMapping, JsonObject
from psyprobe.files.parsing import packaged_toml
from psyprobe.human import signature
from psyprobe.human.signature import QUANTITIES

#: LMS directions by name: those of Cai et al. (CVPR 2025), each of which isolates one mechanism.
DIRECTIONS: Mapping[str, tuple[float, float, float]] = {
    "achromatic": (0.917470668581922, 0.396967232858222, 0.025779610717139),
    "red_green": (math.sqrt(0.5), -math.sqrt(0.5), 0.0),
    "yellow_violet": (0.0, 0.0, 1.0),
}

#: The default direction of the authors' code; nearly, but not exactly, achromatic.
DEFAULT_DIRECTION = (0.6855, 0.2951, 0.0194)

#: LMS of the background per cd/m² if only its luminance is known (daylight, D65).
DEFAULT_BACKGROUND = (0.6991, 0.3009, 0.0198)

_LN10 = math.log(10.0)


@dataclass(frozen=True)
class Condition:
    """Conditions of a stimulus, as in `castle_csf`: arrays that broadcast against each other."""

    frequency: FloatArray
    luminance: FloatArray
    area: FloatArray
    temporal_frequency: FloatArray
    eccentricity: FloatArray
    visual_field: FloatArray

    @classmethod
    def read(cls, dtype: np.dtype[Any], *values: ArrayLike) -> Condition:
        """Check the values of all fields, in their order, and build a condition of them."""
        quantities = [QUANTITIES[field.name] for field in fields(cls)]
        pairs = zip(quantities, values, strict=True)
        return cls(*(quantity.read(value, dtype) for quantity, value in pairs))

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shape of each field by its name."""
        return {name: value.shape for name, value in vars(self).items()}


def saturating(
    luminance: FloatArray, maximum: float, knee: float, exponent: float
) -> FloatArray:
    """Compute a response that saturates: maximum * (1 + knee / luminance)**-exponent."""
    return np.asarray(maximum * np.exp(-exponent * np.log1p(knee / luminance)))


def log10_saturating(
    luminance: FloatArray, maximum: float, knee: float, exponent: float
) -> FloatArray:
    """Compute log10 of `saturating`, which stays finite where `saturating` underflows."""
    return np.asarray(
        math.log10(maximum) - (exponent / _LN10) * np.log1p(knee / luminance)
    )


def fading(luminance: FloatArray, knee: float, exponent: float) -> FloatArray:
    """Compute a response that fades in bright light: 1 - (1 + knee / luminance)**-exponent."""
    # knee / luminance is near the rounding of 1, so that 1 + knee / luminance would lose it.
    return np.asarray(-np.expm1(-exponent * np.log1p(knee / luminance)))


def log_parabola(
    log_frequency: FloatArray,
    log_peak: FloatArray | float,
    bandwidth: float,
    truncation: float = 0.0,
) -> FloatArray:
    """Compute a parabola in log10 frequency with peak 1, cut at 1 - truncation below its peak."""
    distance = log_frequency - log_peak
    parabola = np.exp(distance * distance * (-_LN10 / 2.0**bandwidth))
    return np.asarray(
        np.where(distance < 0, np.maximum(parabola, 1.0 - truncation), parabola)
    )


def area_summation(
    frequency: FloatArray,
    area: FloatArray,
    critical_area: float,
    critical_frequency: float,
) -> FloatArray:
    """Compute summation over area, which grows as sqrt(area) and saturates at a critical area.

    With Ac = critical_area / (1 + (f / critical_frequency)**2), this is f * sqrt(Ac / (1 + Ac /
    area)).
    """
    scale = 1.0 / (critical_area * critical_frequency**2)
    return np.asarray(
        frequency
        / np.sqrt((1.0 / area + 1.0 / critical_area) + scale * frequency * frequency)
    )


def eccentricity_loss(
    condition: Condition, rates: tuple[float, float, float, float]
) -> FloatArray:
    """Compute the factor, at most 1, by which sensitivity falls away from the fovea.

    `rates` holds log10 units per deg, (k0, k0n, k1, k1n): constant, constant on the nasal side, and
    the same two per cpd.
    """
    k0, k0n, k1, k1n = rates
    # In degrees first: near 90 deg, 1 - |v - 180| / 90 would round off the nasal share.
    nasal = np.maximum(0.0, 90.0 - np.abs(condition.visual_field - 180.0)) / 90.0
    constant = (1.0 - nasal) * k0 + nasal * k0n
    slope = (1.0 - nasal) * k1 + nasal * k1n
    loss = constant + slope * condition.frequency
    return np.asarray(np.exp(-_LN10 * condition.eccentricity * loss))


@dataclass(frozen=True)
class SpatialChannel:
    """Constants of a channel's dependence on spatial frequency and area, in the papers' units."""

    bandwidth: float  # log2 of the parabola's scale in squared log10 units
    critical_area: float  # deg²
    critical_frequency: float  # cpd
    #: How far the parabola may fall below its peak on the low-frequency side.
    truncation: float = 0.0

    def shape(self, log_peak: FloatArray | float, condition: Condition) -> FloatArray:
        """Compute sensitivity over frequency and area, for a peak sensitivity of 1."""
        parabola = log_parabola(
            np.log10(condition.frequency), log_peak, self.bandwidth, self.truncation
        )
        summation = area_summation(
            condition.frequency,
            condition.area,
            self.critical_area,
            self.critical_frequency,
        )
        return parabola * summation


def temporal_decay(condition: Condition, constants: tuple[float, float]) -> FloatArray:
    """Compute exp(-w**exponent / scale) of the temporal frequency w in Hz, 0 to 1."""
    exponent, scale = constants
    return np.exp(np.power(condition.temporal_frequency, exponent) / -scale)


@dataclass(frozen=True)
class AchromaticMechanism:
    """Constants of an achromatic mechanism, under the names of the castleCSF paper."""

    sustained: SpatialChannel
    transient: SpatialChannel
    #: Peak sensitivity (maximum, knee cd/m², exponent) in dim light, and its fading (knee,
    #: exponent) in bright.
    sustained_sensitivity: tuple[float, float, float, float, float]
    sustained_peak: tuple[float, float, float]  # maximum cpd, knee cd/m², exponent
    transient_sensitivity: tuple[
        float, float
    ]  # (exponent, factor) of factor * luminance**exponent
    transient_peak: float  # cpd
    sustained_decay: tuple[float, float]  # (exponent, scale) of `temporal_decay`
    transient_tuning: tuple[
        float, float
    ]  # (exponent B, scale) of exp(-|w**B - w0**B|**2 / scale), w in Hz
    transient_centre: tuple[
        float, float
    ]  # (slope, intercept) of w0 = slope * log10(luminance) + intercept, Hz
    eccentricity: tuple[
        float, float, float, float
    ]  # (k0, k0n, k1, k1n), see `eccentricity_loss`

    def temporal_responses(self, condition: Condition) -> tuple[FloatArray, FloatArray]:
        """Compute the sustained and the transient channel's response to the temporal frequency."""
        frequency = condition.temporal_frequency
        exponent, scale = self.transient_tuning
        slope, intercept = self.transient_centre
        # Always float64: the power is infinitely steep where the centre crosses 0 Hz.
        centre = slope * np.log10(condition.luminance, dtype=np.float64) + intercept
        tuned = np.power(np.abs(centre), exponent).astype(frequency.dtype)
        position = np.power(frequency, exponent)
        # Below 0 Hz the authors' code takes the complex principal power; distance is the modulus.
        turn_below_0 = 2.0 - 2.0 * math.cos(math.pi * exponent)
        turn = np.where(centre < 0, turn_below_0, 0.0).astype(frequency.dtype)
        distance = (position - tuned) ** 2 + turn * position * tuned
        sustained = temporal_decay(condition, self.sustained_decay)
        return sustained, np.exp(distance / -scale)

    def sensitivity(self, condition: Condition) -> FloatArray:
        """Compute sensitivity in the contrast unit of the mechanism."""
        luminance = condition.luminance
        maximum, knee, rise, bright_knee, bright_exponent = self.sustained_sensitivity
        exponent, factor = self.transient_sensitivity
        sustained_response, transient_response = self.temporal_responses(condition)
        sustained_gain = (
            sustained_response
            * saturating(luminance, maximum, knee, rise)
            * fading(luminance, bright_knee, bright_exponent)
        )
        transient_gain = transient_response * factor * np.power(luminance, exponent)

        log_peak = log10_saturating(luminance, *self.sustained_peak)
        sustained = self.sustained.shape(log_peak, condition)
        transient = self.transient.shape(math.log10(self.transient_peak), condition)
        total = sustained_gain * sustained + transient_gain * transient
        return total * eccentricity_loss(condition, self.eccentricity)


@dataclass(frozen=True)
class ChromaticMechanism:
    """Constants of a chromatic mechanism, a sustained low-pass channel, by the paper's names."""

    channel: SpatialChannel
    peak_sensitivity: tuple[float, float, float]  # maximum, knee cd/m², exponent
    peak_frequency: float  # cpd; sensitivity is flat below it
    sustained_decay: tuple[float, float]  # (exponent, scale) of `temporal_decay`
    eccentricity: tuple[
        float, float, float, float
    ]  # (k0, k0n, k1, k1n), see `eccentricity_loss`

    def temporal_response(self, condition: Condition) -> FloatArray:
        """Compute the response to the temporal frequency, 0 to 1."""
        return temporal_decay(condition, self.sustained_decay)

    def sensitivity(self, condition: Condition) -> FloatArray:
        """Compute sensitivity in the contrast unit of the mechanism."""
        gain = self.temporal_response(condition) * saturating(
            condition.luminance, *self.peak_sensitivity
        )
        shape = self.channel.shape(math.log10(self.peak_frequency), condition)
        return gain * shape * eccentricity_loss(condition, self.eccentricity)


Mechanism = TypeVar("Mechanism", AchromaticMechanism, ChromaticMechanism)

_CONSTANTS = packaged_toml("psyprobe.human", "mechanisms.toml")


def _mechanism(kind: type[Mechanism], table: JsonMapping) -> Mechanism:
    """Build a mechanism from a table of ``mechanisms.toml``, a channel from each table in it."""
    constants: JsonObject = {
        key: SpatialChannel(**value) if isinstance(value, dict) else value
        for key, value in table.items()
    }
    return kind(**constants)


class SeeingMechanism(Protocol):
    """A mechanism that has a sensitivity in each condition."""

    def sensitivity(self, condition: Condition) -> FloatArray:
        """Compute sensitivity in the contrast unit of the mechanism."""


class MechanismSet(Protocol):
    """The three mechanisms of a model, and the matrix from LMS to their responses."""

    @property
    def achromatic(self) -> SeeingMechanism:
        """Return the mechanism over whose response to the background all contrasts are taken."""

    @property
    def red_green(self) -> SeeingMechanism:
        """Return the red-green mechanism."""

    @property
    def yellow_violet(self) -> SeeingMechanism:
        """Return the yellow-violet mechanism."""

    @property
    def from_lms(self) -> Sequence[Sequence[float]]:
        """Return the matrix from LMS to the responses of the mechanisms in this order."""


#: The achromatic mechanism of stelaCSF.
STELA = _mechanism(AchromaticMechanism, _CONSTANTS["stela_achromatic"])


@dataclass(frozen=True)
class Mechanisms:
    """Constants of all three mechanisms of castleCSF."""

    achromatic: AchromaticMechanism
    red_green: ChromaticMechanism
    yellow_violet: ChromaticMechanism
    from_lms: tuple[tuple[float, float, float], ...] = (
        (1.0, 1.0, 0.0),
        (1.0, -2.3112, 0.0),
        (-1.0, -1.0, 50.9875),
    )


def mechanisms(factors: Mapping[str, float]) -> Mechanisms:
    """Build castleCSF's mechanisms from its published constants times factors.

    Parameters
    ----------
    factors : mapping of str to float
        By the constant's place in ``mechanisms.toml``, as "castle_achromatic.sustained_peak.0"; a
        constant without one stays as published.

    Examples
    --------
    >>> mechanisms({"castle_red_green.peak_frequency": 2.0}).red_green.peak_frequency
    0.0356728
    """
    tables = {name: _scale(_CONSTANTS[name], name, factors) for name in _CONSTANTS}
    return Mechanisms(
        _mechanism(AchromaticMechanism, tables["castle_achromatic"]),
        _mechanism(ChromaticMechanism, tables["castle_red_green"]),
        _mechanism(ChromaticMechanism, tables["castle_yellow_violet"]),
    )


def _scale(constant: Any, name: str, factors: Mapping[str, float]) -> Any:
    """Multiply constants by factors of their names, through tables and lists."""
    if isinstance(constant, dict):
        return {
            key: _scale(value, f"{name}.{key}", factors)
            for key, value in constant.items()
        }
    if isinstance(constant, list):
        return [
            _scale(value, f"{name}.{place}", factors)
            for place, value in enumerate(constant)
        ]
    return constant * factors.get(name, 1.0)


PUBLISHED = mechanisms({})

#: A disc is seen by the Gabor of this area (deg²) that sees it best, among these frequencies (cpd)
#: ...
_DISC_AREA = 2.42437
_DISC_FREQUENCIES = np.geomspace(0.125, 16.0, 64)
#: ... and its sensitivity grows with the radius (deg) to this power.
_DISC_EXPONENT = 1.0 / 3.01142


@dataclass(frozen=True)
class CastleMechanisms:
    """Sensitivities and temporal responses of castleCSF's three mechanisms to a stimulus.

    Sensitivity of each mechanism is 1 / (its response to the modulation at threshold, over the L+M
    of the background); the others are responses of each temporal channel to the temporal frequency,
    0 to 1.
    """

    #: Sensitivities.
    achromatic: FloatArray
    red_green: FloatArray
    yellow_violet: FloatArray
    #: Responses of the channels, 0 to 1.
    achromatic_sustained: FloatArray
    achromatic_transient: FloatArray
    red_green_sustained: FloatArray
    yellow_violet_sustained: FloatArray


def castle_csf(
    frequency: ArrayLike | None = None,
    *,
    luminance: ArrayLike | None = None,
    background: ArrayLike | None = None,
    direction: ArrayLike | None = None,
    area: ArrayLike | None = None,
    disc_radius: ArrayLike | None = None,
    temporal_frequency: ArrayLike = 0.0,
    eccentricity: ArrayLike = 0.0,
    visual_field: ArrayLike = 180.0,
) -> FloatArray:
    """Compute the sensitivity of the human eye by castleCSF (Ashraf et al. 2024).

    Sensitivity is 1 / contrast at threshold, where contrast is the length of the cone contrast
    vector (peak modulation over background, cone by cone) divided by sqrt(3). For an achromatic
    grating that is its Michelson contrast.

    Parameters
    ----------
    frequency : array_like of float, optional
        Spatial frequency of a Gabor or grating, cpd, > 0. Left out for a disc.
    luminance : array_like of float, optional
        Adapting luminance, cd/m², > 0, on a daylight background: LMS = luminance * (0.6991, 0.3009,
        0.0198).
    background : array_like of float, shape (..., 3), optional
        LMS of the background instead, all > 0, CIE 2006 cones scaled so that L + M is luminance in
        cd/m².
    direction : str or array_like of float, shape (..., 3), optional
        Colour direction of the modulation: "achromatic", "red_green", "yellow_violet", or an LMS
        vector, whose length and sign do not matter. If left out, the authors' default (0.6855,
        0.2951, 0.0194), which is nearly achromatic but not the same as "achromatic" (see Notes).
    area : array_like of float, optional
        Area of a Gabor or grating, deg², > 0: pi * sigma**2 of the Gaussian envelope, or the true
        area of a hard aperture.
    disc_radius : array_like of float, optional
        Radius of a sharp-edged uniform disc, deg, > 0, instead of frequency and area.
    temporal_frequency : array_like of float
        Hz, >= 0.
    eccentricity : array_like of float
        Degrees of visual angle from the fovea, >= 0.
    visual_field : array_like of float
        Polar angle in the visual field of a right eye, deg, 0 to 360: 0 temporal, 90 superior, 180
        nasal, 270 inferior. Without effect at eccentricity 0.

    Returns
    -------
    ndarray or scalar
        Sensitivity, >= 0, in the shape to which all arguments (without the LMS axis) broadcast; 0
        where it is too small for the number type. float32 if all arrays are float32, else float64.

    Raises
    ------
    InputError
        If a value is out of range or not finite; if both or neither of luminance and background, or
        of area and disc_radius, are given; if a disc has a frequency or a Gabor has none; if shapes
        do not broadcast.
    UnknownNameError
        If there is no direction of that name.

    Notes
    -----
    The authors declare the model valid for 1/16 to 64 cpd, 0.001 to 10000 cd/m² and up to 120 deg
    of eccentricity; beyond, the formulas are evaluated all the same. Data exist for 0.06 to 32 cpd,
    0 to 55.7 Hz, 0.003 to 981 deg² and up to 50 deg on the superior and nasal side only.

    "achromatic" isolates the achromatic mechanism. The authors' default direction also drives the
    chromatic mechanisms a little; the sensitivities differ by about 0.2 %.

    Near 0.0113 cd/m² static sensitivity has a narrow bump, at 2 cpd a factor of two: it belongs to
    the published model, whose transient filter is centred on 0 Hz there.

    Examples
    --------
    >>> frequencies = [1.0, 4.0, 16.0]
    >>> castle_csf(frequencies, luminance=100, direction="achromatic", area=np.pi).round(2)
    array([ 89.65, 203.41,  41.74])
    >>> float(castle_csf(luminance=100, disc_radius=0.5).round(2))
    150.39
    >>> castle_csf(4, area=1)
    Traceback (most recent call last):
    psyprobe.errors.InputError: neither luminance nor background is given; ...
    """
    return mechanisms_csf(
        PUBLISHED,
        frequency,
        luminance=luminance,
        background=background,
        direction=direction,
        area=area,
        disc_radius=disc_radius,
        temporal_frequency=temporal_frequency,
        eccentricity=eccentricity,
        visual_field=visual_field,
    )


def mechanisms_csf(
    mechanisms: MechanismSet,
    frequency: ArrayLike | None = None,
    *,
    luminance: ArrayLike | None = None,
    background: ArrayLike | None = None,
    direction: ArrayLike | None = None,
    area: ArrayLike | None = None,
    disc_radius: ArrayLike | None = None,
    temporal_frequency: ArrayLike = 0.0,
    eccentricity: ArrayLike = 0.0,
    visual_field: ArrayLike = 180.0,
) -> FloatArray:
    """Compute the sensitivity of `castle_csf` with other mechanisms, from the same inputs."""
    _check_exactly_one(luminance=luminance, background=background)
    _check_exactly_one(area=area, disc_radius=disc_radius)
    if disc_radius is None and frequency is None:
        raise InputError(
            "a Gabor of some area needs a frequency (cpd) too; for a uniform disc give disc_radius"
        )
    if disc_radius is not None and frequency is not None:
        raise InputError(
            "both frequency and disc_radius are given, but a disc has no frequency: leave it out, "
            "or give area instead of disc_radius"
        )
    dtype = signature.floating_dtype(
        frequency,
        luminance,
        background,
        direction,
        area,
        disc_radius,
        temporal_frequency,
        eccentricity,
        visual_field,
    )
    light, surround = _read_background(luminance, background, dtype)
    modulation = _read_direction(direction, dtype)
    gabor = (
        _DISC_FREQUENCIES if frequency is None else frequency,
        light,
        _DISC_AREA if area is None else area,
    )
    condition = Condition.read(
        dtype, *gabor, temporal_frequency, eccentricity, visual_field
    )
    shapes = condition.shapes() | {
        "background": surround.shape[:-1],
        "direction": modulation.shape[:-1],
    }
    # Values that underflow are too faint to matter; those that overflow divide by infinity.
    with np.errstate(under="ignore", over="ignore"):
        if disc_radius is not None:
            radius = QUANTITIES["disc_radius"].read(disc_radius, dtype)
            shapes |= {"frequency": (), "disc_radius": radius.shape}
        shape = signature.common_shape(shapes)
        weights = _mechanism_weights(mechanisms, modulation, surround, dtype)
        if disc_radius is None:
            sensitivity = _pooled_sensitivity(mechanisms, condition, weights)
        else:
            best = np.broadcast_to(_best_gabor(mechanisms, condition, weights), shape)
            sensitivity = np.power(radius, _DISC_EXPONENT) * best
    result: FloatArray = sensitivity.astype(dtype, copy=False)[()]
    return result


def castle_mechanisms(
    frequency: ArrayLike,
    *,
    luminance: ArrayLike,
    area: ArrayLike,
    temporal_frequency: ArrayLike = 0.0,
    eccentricity: ArrayLike = 0.0,
    visual_field: ArrayLike = 180.0,
) -> CastleMechanisms:
    """Compute the sensitivity of castleCSF's three mechanisms, and their temporal responses.

    Parameters and errors as in `castle_csf`; each field of the result has the shape to which the
    arguments it depends on broadcast.

    Examples
    --------
    >>> mechanisms = castle_mechanisms(4, luminance=1.0497, area=1, temporal_frequency=1)
    >>> float(mechanisms.achromatic.round(4)), float(mechanisms.yellow_violet.round(4))
    (30.8735, 2.8869)
    """
    inputs = (
        frequency,
        luminance,
        area,
        temporal_frequency,
        eccentricity,
        visual_field,
    )
    dtype = signature.floating_dtype(*inputs)
    condition = Condition.read(dtype, *inputs)
    signature.common_shape(condition.shapes())
    with np.errstate(under="ignore", over="ignore"):
        sustained, transient = PUBLISHED.achromatic.temporal_responses(condition)
        values = (
            PUBLISHED.achromatic.sensitivity(condition),
            PUBLISHED.red_green.sensitivity(condition),
            PUBLISHED.yellow_violet.sensitivity(condition),
            sustained,
            transient,
            PUBLISHED.red_green.temporal_response(condition),
            PUBLISHED.yellow_violet.temporal_response(condition),
        )
    return CastleMechanisms(*(value.astype(dtype, copy=False)[()] for value in values))


def castle_shares(
    frequency: ArrayLike,
    *,
    background: ArrayLike,
    direction: ArrayLike,
    area: ArrayLike,
) -> FloatArray:
    """Compute each mechanism's share in seeing a static, foveal Gabor or grating, by castleCSF.

    Parameters and errors as in `castle_csf`.

    Returns
    -------
    ndarray, shape (..., 3)
        Shares of the pooled response, squared: of the achromatic, the red-green and the
        yellow-violet mechanism.

    Examples
    --------
    >>> castle_shares(4, background=[70, 30, 2], direction=[1, -1, 0], area=1).round(3)
    array([0., 1., 0.])
    """
    dtype = signature.floating_dtype(frequency, background, direction, area)
    light, surround = _read_background(None, background, dtype)
    condition = Condition.read(dtype, frequency, light, area, 0.0, 0.0, 180.0)
    modulation = _read_direction(direction, dtype)
    weights = _mechanism_weights(PUBLISHED, modulation, surround, dtype)
    responses = [response**2 for response in _responses(PUBLISHED, condition, weights)]
    shares = np.stack(np.broadcast_arrays(*responses), axis=-1)
    return np.asarray(shares / shares.sum(axis=-1, keepdims=True))


def _check_exactly_one(**alternatives: Any) -> None:
    """Refuse two alternative arguments of which none is given, or both."""
    first, second = alternatives
    count = sum(value is not None for value in alternatives.values())
    if count == 0:
        raise InputError(f"neither {first} nor {second} is given; give one of them")
    if count == 2:
        raise InputError(
            f"both {first} and {second} are given, and they could contradict; give one of them"
        )


def _read_background(
    luminance: ArrayLike | None,
    background: ArrayLike | None,
    dtype: np.dtype[Any],
) -> tuple[ArrayLike, FloatArray]:
    """Return the luminance, and the background's LMS up to a factor."""
    if luminance is not None:
        return luminance, np.asarray(DEFAULT_BACKGROUND)
    assert background is not None
    lms = signature.read_lms("background", background, dtype)
    if not (lms > 0).all():
        worst = lms.min(axis=tuple(range(lms.ndim - 1)))
        raise InputError(
            f"background has a cone at {worst.min():g}, but L, M and S must all be above 0, since "
            "contrast is taken over each; give the LMS of a light that reaches every cone"
        )
    return lms[..., 0] + lms[..., 1], lms


def _read_direction(direction: ArrayLike | None, dtype: np.dtype[Any]) -> FloatArray:
    """Convert a colour direction, a name or LMS vector, to LMS; None is the default."""
    if direction is None:
        return np.asarray(DEFAULT_DIRECTION)
    if isinstance(direction, str):
        if direction not in DIRECTIONS:
            raise unknown_name("colour direction", direction, DIRECTIONS)
        return np.asarray(DIRECTIONS[direction])
    lms = signature.read_lms("direction", direction, dtype)
    if not lms.any(axis=-1).all():
        raise InputError(
            "direction is (0, 0, 0), which points nowhere; give an LMS vector with a cone that "
            "changes"
        )
    return lms


def _mechanism_weights(
    mechanisms: MechanismSet,
    direction: FloatArray,
    background: FloatArray,
    dtype: np.dtype[Any],
) -> tuple[FloatArray, ...]:
    """Compute each mechanism's response to a modulation of unit cone contrast.

    In float64 and free of scale, since responses are differences of cones that may nearly cancel.
    """
    modulation = direction.astype(np.float64)
    modulation = modulation / np.abs(modulation).max(axis=-1, keepdims=True)
    surround = background.astype(np.float64)
    from_lms = np.array(mechanisms.from_lms)
    chromaticity = surround / (surround @ from_lms[0])[..., None]
    cone_contrast = modulation / chromaticity
    length = np.sqrt((cone_contrast * cone_contrast).sum(axis=-1) / 3.0)
    responses = np.abs(modulation @ from_lms.T)
    return tuple((responses[..., i] / length).astype(dtype) for i in range(3))


def _responses(
    mechanisms: MechanismSet, condition: Condition, weights: tuple[FloatArray, ...]
) -> tuple[FloatArray, ...]:
    """Compute the weighted sensitivity of each mechanism."""
    achromatic, red_green, yellow_violet = weights
    return (
        achromatic * mechanisms.achromatic.sensitivity(condition),
        red_green * mechanisms.red_green.sensitivity(condition),
        yellow_violet * mechanisms.yellow_violet.sensitivity(condition),
    )


def _pooled_sensitivity(
    mechanisms: MechanismSet, condition: Condition, weights: tuple[FloatArray, ...]
) -> FloatArray:
    """Compute the root of summed squares of the three channels' sensitivities."""
    achromatic, red_green, yellow_violet = _responses(mechanisms, condition, weights)
    return np.hypot(achromatic, np.hypot(red_green, yellow_violet))


def _best_gabor(
    mechanisms: MechanismSet, condition: Condition, weights: tuple[FloatArray, ...]
) -> FloatArray:
    """Find the highest sensitivity over the condition's frequencies."""
    columns = {name: value[..., None] for name, value in vars(condition).items()}
    grid = Condition(**columns | {"frequency": condition.frequency})
    weight_columns = tuple(weight[..., None] for weight in weights)
    return np.asarray(
        _pooled_sensitivity(mechanisms, grid, weight_columns).max(axis=-1)
    )
