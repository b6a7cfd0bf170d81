"""Property-based testing of stimulus calibration, for psyprobe's stimuli and anyone's.

Assertions take a `Stimulus`, or any numpy array or torch tensor together with what was asked (a specification) and what
its numbers are; a failure says what was requested, what is delivered, and the likely cause. Strategies for hypothesis
(`psyprobe.testing.strategies`) make displays and stimuli that are valid by construction. A pytest plugin adds the
fixture `calibration_report`.
"""

from __future__ import annotations

from psyprobe.stimulus.measure import Certificate
from psyprobe.stimulus.tolerances import PRECISIONS, TOLERANCES, Tolerance, tolerance
from psyprobe.testing.assertions import (
    CalibrationError,
    assert_band,
    assert_calibrated,
    assert_cone_contrast,
    assert_contrast,
    assert_frequency,
    assert_in_gamut,
    assert_isoluminant,
    assert_mean_luminance,
    assert_orientation,
    assert_round_trip,
)
from psyprobe.testing.diagnosis import Cause
from psyprobe.testing.repetition import assert_batch_equals_loop, assert_reproducible

__all__ = [
    "PRECISIONS",
    "TOLERANCES",
    "CalibrationError",
    "Cause",
    "Certificate",
    "Tolerance",
    "assert_band",
    "assert_batch_equals_loop",
    "assert_calibrated",
    "assert_cone_contrast",
    "assert_contrast",
    "assert_frequency",
    "assert_in_gamut",
    "assert_isoluminant",
    "assert_mean_luminance",
    "assert_orientation",
    "assert_reproducible",
    "assert_round_trip",
    "tolerance",
]
