"""Bootstrap intervals: what they may be asked for, and how far they reach where little was drawn from."""

from __future__ import annotations

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.errors import InputError


def check_resampling(confidence: float, resamples: int) -> None:
    """Refuse a confidence outside (0, 1) and fewer than 100 bootstrap samples."""
    if not 0 < confidence < 1:
        raise InputError(f"confidence {confidence:g} must lie between 0 and 1; usual is 0.9 or 0.95")
    if resamples < 100:
        raise InputError(f"{resamples} resamples give no usable interval; take at least 100, usual is 2000")


def student_reach(samples: FloatArray, drawn_from: int, confidence: float) -> float:
    """Half of a symmetric interval: Student's t times the spread of samples that were drawn from few."""
    from scipy.special import stdtrit

    spread = float(np.std(samples)) * np.sqrt(drawn_from / (drawn_from - 1))
    return float(stdtrit(drawn_from - 1, (1 + confidence) / 2) * spread)
