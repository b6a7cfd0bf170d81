"""What a bootstrap interval may be asked for."""

from __future__ import annotations

from psyprobe.errors import InputError


def check_resampling(confidence: float, resamples: int) -> None:
    """Refuse a confidence outside (0, 1) and fewer than 100 bootstrap samples."""
    if not 0 < confidence < 1:
        raise InputError(f"confidence {confidence:g} must lie between 0 and 1; usual is 0.9 or 0.95")
    if resamples < 100:
        raise InputError(f"{resamples} resamples give no usable interval; take at least 100, usual is 2000")
