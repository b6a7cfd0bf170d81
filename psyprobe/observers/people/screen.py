"""The screen in front of a person: degrees by a bank card and a tape, its gamma by eye, and what errors cost."""

from __future__ import annotations

import math

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.errors import InputError
from psyprobe.light.display import Display

#: Width of a bank card (ISO/IEC 7810 ID-1), mm.
CARD_MM = 85.60
#: CSS pixels per mm of any screen that somebody sits at.
_PLAUSIBLE = (2.0, 8.0)
#: Angle from fixation to the middle of the blind spot, deg (the constant of jsPsych's virtual chinrest).
BLIND_SPOT_DEG = 13.5


def pixel_pitch(card: float, device_pixel_ratio: float = 1.0) -> float:
    """Width of a device pixel from an outline that was fitted to a bank card, mm.

    Parameters
    ----------
    card : float
        Width of the outline, CSS px.
    device_pixel_ratio : float
        Device pixels in a CSS pixel, as the browser says.

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
            f"the card's outline is {card:g} px wide, {per_mm:.3g} px a mm; screens have {_PLAUSIBLE[0]:g} to "
            f"{_PLAUSIBLE[1]:g}: fit the outline to the longer edge of a bank card held on the glass"
        )
    if not (math.isfinite(device_pixel_ratio) and device_pixel_ratio >= 1):
        raise InputError(f"the device pixel ratio is {device_pixel_ratio}; zoom the page to 100 % or more")
    return 1 / (per_mm * device_pixel_ratio)


def resolution_off_centre(pitch: float, distance: float, eccentricity: float) -> tuple[float, float]:
    """Pixels per degree away from the centre of a flat screen, towards it and across, ppd.

    Parameters
    ----------
    pitch, distance : float
        Width of a pixel and viewing distance, in the same unit.
    eccentricity : float
        deg.

    Examples
    --------
    >>> [round(each, 2) for each in resolution_off_centre(0.265015, 600, 10)]
    [40.74, 40.12]
    """
    ahead = math.radians(1) * distance / pitch
    cosine = math.cos(math.radians(eccentricity))
    return ahead / cosine**2, ahead / cosine


def blind_spot_distance(offset: float, angle: float = BLIND_SPOT_DEG) -> float:
    """Viewing distance from where a dot vanishes in the blind spot, in the unit of `offset`.

    Its error is that of the angle, which differs between people: 12 to 16 deg is ordinary, -11 % to +19 % of the
    distance. It is a check of the tape, no measurement.

    Parameters
    ----------
    offset : float
        From fixation to where the dot vanishes.
    angle : float
        deg.

    Examples
    --------
    >>> round(blind_spot_distance(100), 1)
    416.5
    """
    return offset / math.tan(math.radians(angle))


def gamma_of_match(share: float, drive: float) -> float:
    """Exponent of a screen on which a field of `drive` looks as bright as stripes with a `share` of full drive.

    Parameters
    ----------
    share : float
        Of the area at full drive, the rest at 0; above 0 and below 1. Small shares measure best.
    drive : float
        Of the uniform field, above 0 and below 1.

    Raises
    ------
    InputError
        If one of the two is outside its range.

    Examples
    --------
    >>> round(gamma_of_match(0.25, 0.5325), 3)
    2.2
    """
    for name, value in (("share of bright stripes", share), ("matched drive", drive)):
        if not 0 < value < 1:
            raise InputError(f"{name} is {value:g}; give a number above 0 and below 1")
    return math.log(share) / math.log(drive)


def threshold_error(
    assumed: Display, true: Display, mean: float, contrast: float | FloatArray
) -> tuple[float, FloatArray]:
    """What a screen shows that is not as assumed: its mean in cd/m², and log10 of shown over asked contrast.

    By so much a person's true threshold lies above the one reported.

    Parameters
    ----------
    assumed, true : Display
        What stimuli are drawn for, and what the screen is.
    mean : float
        Asked, cd/m².
    contrast : float or array
        Asked, Michelson.

    Raises
    ------
    GamutError
        If the assumed display cannot show the contrast.

    Examples
    --------
    >>> from psyprobe import Display
    >>> mean, error = threshold_error(Display(peak=200), Display(peak=200, eotf=2.2), 40, 0.1)
    >>> round(mean, 1), round(float(error), 3)
    (40.6, 0.009)
    """
    asked = np.asarray(contrast, dtype=np.float64)
    ends = mean * np.stack([1 - asked, np.ones_like(asked), 1 + asked]).reshape(3, -1)
    low, middle, high = true.decode(assumed.encode(ends, dtype="float64")[..., 0])
    shown = ((high - low) / (high + low)).reshape(asked.shape)
    return float(middle[0]), np.log10(shown / asked)
