"""The pieces of which stelaCSF and castleCSF build their channels.

References
----------
Ashraf, Mantiuk, Chapiro, Wuerger (2024). castleCSF: a contrast sensitivity function of color, area,
spatiotemporal frequency, luminance and eccentricity. Journal of Vision 24(4):5. doi:10.1167/jov.24.4.5
Mantiuk, Ashraf, Chapiro (2022). stelaCSF: a unified model of contrast sensitivity. ACM Transactions on
Graphics 41(4):145. doi:10.1145/3528223.3530115
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
