"""Measure a screen without instruments: degrees by a bank card and a tape, its gamma by eye."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from psyprobe.errors import InputError

#: Width of a bank card (ISO/IEC 7810 ID-1), mm.
CARD_MM = 85.60
#: CSS pixels per mm of any screen that somebody sits at.
_PLAUSIBLE = (2.0, 8.0)
#: Angle from fixation to the middle of the blind spot, deg (the constant of jsPsych's virtual
#: chinrest).
BLIND_SPOT_DEG = 13.5


def pixel_pitch(card: float, device_pixel_ratio: float = 1.0) -> float:
    """Compute the width of a device pixel, mm, from an outline fitted to a bank card.

    Parameters
    ----------
    card : float
        Width of the outline, CSS px.
    device_pixel_ratio : float
        Device pixels in a CSS pixel, as the browser says; at least 1.

    Raises
    ------
    InputError
        If no screen has such pixels: 2 to 8 CSS px to the mm are allowed.

    Examples
    --------
    >>> round(pixel_pitch(323), 4)
    0.265
    """
    per_mm = card / CARD_MM
    if not _PLAUSIBLE[0] <= per_mm <= _PLAUSIBLE[1]:
        raise InputError(
            f"the card's outline is {card:g} px wide, {per_mm:.3g} px a mm; screens have "
            f"{_PLAUSIBLE[0]:g} to {_PLAUSIBLE[1]:g}: fit the outline to the longer edge of a "
            "bank card held on the glass"
        )
    return 1 / (per_mm * device_pixel_ratio)


def blind_spot_distance(offset: float, angle: float = BLIND_SPOT_DEG) -> float:
    """Estimate the viewing distance, in the unit of `offset`, from a dot in the blind spot.

    Its error is that of the angle, which differs between people: 12 to 16 deg is ordinary, -11 % to
    +19 % of the distance. It is a check of the tape, no measurement.

    Parameters
    ----------
    offset : float
        Distance on the screen from fixation to where the dot vanishes.
    angle : float
        Angle from fixation to the middle of the blind spot, deg.

    Examples
    --------
    >>> round(blind_spot_distance(100), 1)
    416.5
    """
    return offset / math.tan(math.radians(angle))


def gamma_of_match(share: float, drive: float) -> float:
    """Compute a screen's exponent from a uniform field matched in brightness to stripes.

    Parameters
    ----------
    share : float
        Share of the striped area at full drive, the rest at 0; above 0 and below 1. Small shares
        measure best.
    drive : float
        Drive of the uniform field, above 0 and below 1.

    Examples
    --------
    >>> round(gamma_of_match(0.25, 0.5325), 3)
    2.2
    """
    return math.log(share) / math.log(drive)


def exponent_by_eye(matches: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Compute a screen's exponent from several brightness matches, and their SD.

    An error of brightness moves the exponent by as much / ln(share), by which matches are weighted.

    Parameters
    ----------
    matches : sequence of (share, drive)
        As `gamma_of_match` takes them, two at least.

    Examples
    --------
    >>> exponent, scatter = exponent_by_eye([(0.25, 0.5325), (0.5, 0.7297), (0.75, 0.8774)])
    >>> round(exponent, 2), round(scatter, 2)
    (2.2, 0.0)
    """
    exponents = np.array([gamma_of_match(*match) for match in matches])
    weights = np.array([math.log(share) ** 2 for share, _ in matches])
    mean = float(np.average(exponents, weights=weights))
    variance = float(np.average((exponents - mean) ** 2, weights=weights))
    count = len(matches)
    return mean, math.sqrt(variance * count / max(count - 1, 1))
