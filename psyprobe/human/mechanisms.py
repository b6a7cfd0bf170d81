"""The mechanisms of stelaCSF and castleCSF: a sustained and a transient achromatic channel, added; and a chromatic one.

References
----------
Mantiuk, Ashraf, Chapiro (2022). stelaCSF. ACM Transactions on Graphics 41(4):145. doi:10.1145/3528223.3530115
Ashraf, Mantiuk, Chapiro, Wuerger (2024). castleCSF. Journal of Vision 24(4):5. doi:10.1167/jov.24.4.5
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.human import channel
from psyprobe.human.channel import Condition


@dataclass(frozen=True)
class SpatialChannel:
    """The constants of one channel's dependence on spatial frequency and area, in the papers' units."""

    bandwidth: float  # log2 of the parabola's scale in squared log10 units
    truncation: float  # how far the parabola may fall below its peak on the low-frequency side
    critical_area: float  # deg²
    critical_frequency: float  # cpd

    def shape(self, log_frequency: FloatArray, log_peak: FloatArray | float, condition: Condition) -> FloatArray:
        """Sensitivity over frequency and area, for a peak sensitivity of 1."""
        parabola = channel.log_parabola(log_frequency, log_peak, self.bandwidth, self.truncation)
        return parabola * channel.area_summation(
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
    eccentricity: tuple[float, float, float, float]  # (k0, k0n, k1, k1n), see `channel.eccentricity_loss`

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
            * channel.saturating(luminance, maximum, knee, rise)
            * channel.fading(luminance, bright_knee, bright_exponent)
        )
        transient_gain = transient_response * factor * np.power(luminance, exponent)

        log_frequency = np.log10(condition.frequency)
        log_peak = channel.log10_saturating(luminance, *self.sustained_peak)
        total = sustained_gain * self.sustained.shape(log_frequency, log_peak, condition)
        total = total + transient_gain * self.transient.shape(log_frequency, math.log10(self.transient_peak), condition)
        return total * channel.eccentricity_loss(condition, self.eccentricity)


@dataclass(frozen=True)
class ChromaticMechanism:
    """The constants of a chromatic mechanism, one sustained, low-pass channel, under the names of the paper."""

    peak_sensitivity: tuple[float, float, float]  # maximum, knee cd/m², exponent
    peak_frequency: float  # cpd; sensitivity is flat below it
    bandwidth: float  # log2 of the parabola's scale in squared log10 units
    critical_area: float  # deg²
    critical_frequency: float  # cpd
    temporal_decay: tuple[float, float]  # (exponent, scale) of exp(-w**exponent / scale), w in Hz
    eccentricity: tuple[float, float, float, float]  # (k0, k0n, k1, k1n), see `channel.eccentricity_loss`

    def temporal_response(self, condition: Condition) -> FloatArray:
        """Response to the temporal frequency, 0 to 1."""
        exponent, scale = self.temporal_decay
        return np.exp(np.power(condition.temporal_frequency, exponent) / -scale)

    def sensitivity(self, condition: Condition) -> FloatArray:
        """Sensitivity in the mechanism's own contrast units."""
        gain = self.temporal_response(condition) * channel.saturating(condition.luminance, *self.peak_sensitivity)
        log_frequency = np.log10(condition.frequency)
        low_pass = channel.log_parabola(log_frequency, math.log10(self.peak_frequency), self.bandwidth)
        summation = channel.area_summation(
            condition.frequency, condition.area, self.critical_area, self.critical_frequency
        )
        return gain * (low_pass * summation) * channel.eccentricity_loss(condition, self.eccentricity)
