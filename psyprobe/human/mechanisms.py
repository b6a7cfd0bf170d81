"""The mechanisms of stelaCSF and castleCSF: a sustained and a transient achromatic channel, added; and a chromatic one.

References
----------
Mantiuk, Ashraf, Chapiro (2022). stelaCSF. ACM Transactions on Graphics 41(4):145. doi:10.1145/3528223.3530115
Ashraf, Mantiuk, Chapiro, Wuerger (2024). castleCSF. Journal of Vision 24(4):5. doi:10.1167/jov.24.4.5
Rovamo, Luntinen, Näsänen (1993). Modelling the dependence of contrast sensitivity on grating area and spatial
frequency. Vision Research 33:2773-2788.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from psyprobe._typing import FloatArray

_LN10 = math.log(10.0)


@dataclass(frozen=True)
class Condition:
    """What is shown, where and at which light level, as in `castle_csf`; arrays that broadcast against each other."""

    frequency: FloatArray
    luminance: FloatArray
    area: FloatArray
    temporal_frequency: FloatArray
    eccentricity: FloatArray
    visual_field: FloatArray


def saturating(luminance: FloatArray, maximum: float, knee: float, exponent: float) -> FloatArray:
    """A response that grows with luminance up to `maximum`: maximum * (1 + knee / luminance)**-exponent."""
    response: FloatArray = maximum * np.exp(-exponent * np.log1p(knee / luminance))
    return response


def log10_saturating(luminance: FloatArray, maximum: float, knee: float, exponent: float) -> FloatArray:
    """The decimal logarithm of `saturating`, which stays finite where `saturating` underflows."""
    logarithm: FloatArray = math.log10(maximum) - (exponent / _LN10) * np.log1p(knee / luminance)
    return logarithm


def fading(luminance: FloatArray, knee: float, exponent: float) -> FloatArray:
    """A response that is 1 in dim light and fades in bright: 1 - (1 + knee / luminance)**-exponent."""
    # knee / luminance lies near the rounding of 1, so 1 + knee / luminance would lose it: all of it in float32.
    response: FloatArray = -np.expm1(-exponent * np.log1p(knee / luminance))
    return response


def log_parabola(
    log_frequency: FloatArray, log_peak: FloatArray | float, bandwidth: float, truncation: float = 0.0
) -> FloatArray:
    """A parabola in log10 frequency with peak 1, which below its peak never falls under 1 - truncation."""
    distance = log_frequency - log_peak
    parabola = np.exp(distance * distance * (-_LN10 / 2.0**bandwidth))
    truncated: FloatArray = np.where(distance < 0, np.maximum(parabola, 1.0 - truncation), parabola)
    return truncated


def area_summation(
    frequency: FloatArray, area: FloatArray, critical_area: float, critical_frequency: float
) -> FloatArray:
    """Summation over area: grows as sqrt(area), saturates at a critical area that shrinks with frequency.

    With Ac = critical_area / (1 + (f / critical_frequency)**2), this is f * sqrt(Ac / (1 + Ac / area)).
    """
    scale = 1.0 / (critical_area * critical_frequency**2)
    summed: FloatArray = frequency / np.sqrt((1.0 / area + 1.0 / critical_area) + scale * frequency * frequency)
    return summed


def eccentricity_loss(condition: Condition, rates: tuple[float, float, float, float]) -> FloatArray:
    """The factor, at most 1, by which sensitivity falls away from the fovea.

    `rates` holds log10 units per deg, (k0, k0n, k1, k1n): constant, constant on the nasal side, and the same two
    per cpd.
    """
    k0, k0n, k1, k1n = rates
    # In degrees first: 1 - |v - 180| / 90 would lose, to rounding, the little that is left of nasal near 90 deg.
    nasal = np.maximum(0.0, 90.0 - np.abs(condition.visual_field - 180.0)) / 90.0
    constant = (1.0 - nasal) * k0 + nasal * k0n
    slope = (1.0 - nasal) * k1 + nasal * k1n
    loss: FloatArray = np.exp(-_LN10 * condition.eccentricity * (constant + slope * condition.frequency))
    return loss


@dataclass(frozen=True)
class SpatialChannel:
    """The constants of one channel's dependence on spatial frequency and area, in the papers' units."""

    bandwidth: float  # log2 of the parabola's scale in squared log10 units
    truncation: float  # how far the parabola may fall below its peak on the low-frequency side
    critical_area: float  # deg²
    critical_frequency: float  # cpd

    def shape(self, log_frequency: FloatArray, log_peak: FloatArray | float, condition: Condition) -> FloatArray:
        """Sensitivity over frequency and area, for a peak sensitivity of 1."""
        parabola = log_parabola(log_frequency, log_peak, self.bandwidth, self.truncation)
        return parabola * area_summation(
            condition.frequency, condition.area, self.critical_area, self.critical_frequency
        )


@dataclass(frozen=True)
class AchromaticMechanism:
    """The constants of an achromatic mechanism, under the names of the castleCSF paper."""

    sustained: SpatialChannel
    transient: SpatialChannel
    #: Peak sensitivity (maximum, knee cd/m², exponent) in dim light, and its fading (knee, exponent) in bright.
    sustained_sensitivity: tuple[float, float, float, float, float]
    sustained_peak: tuple[float, float, float]  # maximum cpd, knee cd/m², exponent
    transient_sensitivity: tuple[float, float]  # (exponent, factor) of factor * luminance**exponent
    transient_peak: float  # cpd
    sustained_decay: tuple[float, float]  # (exponent, scale) of exp(-w**exponent / scale), w in Hz
    transient_tuning: tuple[float, float]  # (exponent B, scale) of exp(-|w**B - w0**B|**2 / scale), w in Hz
    transient_centre: tuple[float, float]  # (slope, intercept) of w0 = slope * log10(luminance) + intercept, Hz
    eccentricity: tuple[float, float, float, float]  # (k0, k0n, k1, k1n), see `eccentricity_loss`

    def temporal_responses(self, condition: Condition) -> tuple[FloatArray, FloatArray]:
        """Response of the sustained and of the transient channel to the temporal frequency, 0 to 1."""
        frequency = condition.temporal_frequency
        decay, scale = self.sustained_decay
        sustained = np.exp(np.power(frequency, decay) / -scale)

        exponent, scale = self.transient_tuning
        slope, intercept = self.transient_centre
        # In float64 always: the power is infinitely steep where the centre crosses 0 Hz (castleCSF: 0.0113 cd/m²).
        centre = slope * np.log10(condition.luminance, dtype=np.float64) + intercept
        tuned = np.power(np.abs(centre), exponent).astype(frequency.dtype)
        position = np.power(frequency, exponent)
        # Below 0 Hz the authors' code takes the complex principal power; this is the modulus of the difference.
        turn = np.where(centre < 0, 2.0 - 2.0 * math.cos(math.pi * exponent), 0.0).astype(frequency.dtype)
        distance = (position - tuned) ** 2 + turn * position * tuned
        return sustained, np.exp(distance / -scale)

    def sensitivity(self, condition: Condition) -> FloatArray:
        """Sensitivity in the mechanism's own contrast units."""
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

        log_frequency = np.log10(condition.frequency)
        log_peak = log10_saturating(luminance, *self.sustained_peak)
        total = sustained_gain * self.sustained.shape(log_frequency, log_peak, condition)
        total = total + transient_gain * self.transient.shape(log_frequency, math.log10(self.transient_peak), condition)
        return total * eccentricity_loss(condition, self.eccentricity)


@dataclass(frozen=True)
class ChromaticMechanism:
    """The constants of a chromatic mechanism, one sustained, low-pass channel, under the names of the paper."""

    peak_sensitivity: tuple[float, float, float]  # maximum, knee cd/m², exponent
    peak_frequency: float  # cpd; sensitivity is flat below it
    bandwidth: float  # log2 of the parabola's scale in squared log10 units
    critical_area: float  # deg²
    critical_frequency: float  # cpd
    temporal_decay: tuple[float, float]  # (exponent, scale) of exp(-w**exponent / scale), w in Hz
    eccentricity: tuple[float, float, float, float]  # (k0, k0n, k1, k1n), see `eccentricity_loss`

    def temporal_response(self, condition: Condition) -> FloatArray:
        """Response to the temporal frequency, 0 to 1."""
        exponent, scale = self.temporal_decay
        return np.exp(np.power(condition.temporal_frequency, exponent) / -scale)

    def sensitivity(self, condition: Condition) -> FloatArray:
        """Sensitivity in the mechanism's own contrast units."""
        gain = self.temporal_response(condition) * saturating(condition.luminance, *self.peak_sensitivity)
        log_frequency = np.log10(condition.frequency)
        low_pass = log_parabola(log_frequency, math.log10(self.peak_frequency), self.bandwidth)
        summation = area_summation(condition.frequency, condition.area, self.critical_area, self.critical_frequency)
        return gain * (low_pass * summation) * eccentricity_loss(condition, self.eccentricity)
