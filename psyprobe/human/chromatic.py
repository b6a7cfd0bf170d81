"""A chromatic mechanism of castleCSF: one sustained, low-pass channel.

References
----------
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
class ChromaticMechanism:
    """The constants of a chromatic mechanism, under the names of the castleCSF paper."""

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
