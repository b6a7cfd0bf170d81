"""Compute the postreceptoral CSF: static foveal sensitivity over colour, size, frequency, light.

It has 31 constants, castleCSF 53. Both take contrast after the receptors, as responses of an
achromatic, a red-green and a yellow-violet mechanism over the background's achromatic response.
Here the mechanisms' directions were fitted too, sensitivity is one log-parabola of frequency for
each mechanism, and summation over area has an exponent of its own. Written from the formulas in
the release of castleCSF (class CSF_PostReceptContrast), whose constants it has, and checked against
the values of that code.

References
----------
Mantiuk, Kim, Ashraf, Xu, Luo, Martinovic, Wuerger (2020). Practical color contrast sensitivity
functions for luminance levels up to 10000 cd/m². Color and Imaging Conference 28:1-6.
doi:10.2352/issn.2169-2629.2020.28.1. Constants: gfxdisp/castleCSF, MIT licence, Copyright 2023
Graphics and Displays group, University of Cambridge.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from psyprobe._typing import FloatArray
from psyprobe.files.parsing import packaged_toml
from psyprobe.human.castle import (
    Condition,
    fading,
    log10_saturating,
    log_parabola,
    mechanisms_csf,
    saturating,
)
from psyprobe.human.signature import LIMITS

#: Area (deg²) that the noise of the eye grows with, per deg² of the pattern (f_0 of the authors).
_NOISE_OF_AREA = 0.65


@dataclass(frozen=True)
class PostreceptoralMechanism:
    """Constants of a mechanism, in the authors' units."""

    #: Maximum, knee cd/m² and exponent in dim light, then knee and exponent of fading in bright.
    peak_sensitivity: tuple[float, ...]
    #: Maximum cpd, and knee cd/m² and exponent where the peak moves with light.
    peak_frequency: tuple[float, ...]
    bandwidth: float  # log2 of the parabola's scale in squared log10 units
    area_exponent: float
    critical_area: float  # deg² to the power of area_exponent
    #: How far the parabola may fall below its peak on the low-frequency side: 0 is a plateau.
    truncation: float

    def sensitivity(self, condition: Condition) -> FloatArray:
        """Compute sensitivity in the contrast unit of the mechanism."""
        luminance = condition.luminance
        gain = saturating(luminance, *self.peak_sensitivity[:3])
        if self.peak_sensitivity[3:]:
            gain = gain * fading(luminance, *self.peak_sensitivity[3:])
        log_peak: FloatArray | float = math.log10(self.peak_frequency[0])
        if self.peak_frequency[1:]:
            log_peak = log10_saturating(luminance, *self.peak_frequency)
        parabola = log_parabola(
            np.log10(condition.frequency), log_peak, self.bandwidth, self.truncation
        )
        noise = self.critical_area + _NOISE_OF_AREA * condition.area
        half_squared = noise / np.power(condition.area, self.area_exponent)
        # By hypot, which the square of a frequency far beyond vision does not overflow.
        summation = condition.frequency / np.hypot(
            condition.frequency, np.sqrt(half_squared)
        )
        return np.asarray(gain * parabola * summation)


@dataclass(frozen=True)
class PostreceptoralMechanisms:
    """Constants of the three mechanisms, and the matrix from LMS to their responses."""

    achromatic: PostreceptoralMechanism
    red_green: PostreceptoralMechanism
    yellow_violet: PostreceptoralMechanism
    from_lms: tuple[tuple[float, float, float], ...]


_CONSTANTS = packaged_toml("psyprobe.human", "mechanisms.toml")
_FITTED = PostreceptoralMechanisms(
    PostreceptoralMechanism(**_CONSTANTS["postreceptoral_achromatic"]),
    PostreceptoralMechanism(**_CONSTANTS["postreceptoral_red_green"]),
    PostreceptoralMechanism(**_CONSTANTS["postreceptoral_yellow_violet"]),
    _CONSTANTS["postreceptoral_from_lms"],
)


def postreceptoral_csf(
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
    """Compute the sensitivity of the fovea to static Gabors of any colour by Mantiuk et al. (2020).

    Call and errors as in `castle_csf`; frequency and area are needed, and discs, flicker and the
    periphery are refused.

    Notes
    -----
    The data reached from 0.06 to 32 cpd and from 0.0002 to 10000 cd/m²; beyond, the formulas are
    evaluated all the same.

    Below the peak of a chromatic mechanism (0.012 and 0.0012 cpd) its parabola stays at the peak's
    height. The authors' class takes the largest value among the frequencies of the call instead,
    as castleCSF did before v0.2.3 mended it. No measured frequency is so low.

    "achromatic" isolates the mechanism of castleCSF. Here it drives the chromatic ones too: at
    0.5 cpd and below the yellow-violet mechanism sees it best.

    Examples
    --------
    >>> frequencies = [1.0, 4.0, 16.0]
    >>> postreceptoral_csf(frequencies, luminance=100, direction="achromatic", area=np.pi).round(1)
    array([114.5, 190.6,  36.7])
    >>> float(postreceptoral_csf(1.0, luminance=100, direction="red_green", area=np.pi).round(1))
    482.6
    """
    inputs: dict[str, Any] = {
        "frequency": frequency,
        "luminance": luminance,
        "background": background,
        "direction": direction,
        "area": area,
        "disc_radius": disc_radius,
        "temporal_frequency": temporal_frequency,
        "eccentricity": eccentricity,
        "visual_field": visual_field,
    }
    LIMITS["postreceptoral_csf"].check(inputs)
    return mechanisms_csf(_FITTED, **inputs)
