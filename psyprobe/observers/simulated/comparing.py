"""How a simulated observer names the direction of stripes, and which of two images has more of
something.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from psyprobe._typing import FloatArray

#: Words of a prompt by which it understands what is to be compared.
_WORDS = {
    "orientation": ("counter-clockwise", "counterclockwise", "anticlockwise"),
    "frequency": ("finer", "spatial frequency"),
    "contrast": ("higher contrast", "more contrast", "stronger contrast", "pattern added"),
}
#: The centre is looked for this many times, so many coefficients of the spectrum to either side, at
#: so many places.
_ROUNDS = 3
_REACH = 3
_PLACES = 25
#: Contrast at which Legge and Foley's transducer detects a pattern.
_THRESHOLD = 0.0038206


class Wave(NamedTuple):
    """The main wave of an image."""

    #: Cycles over a pixel.
    frequency: float
    #: Degrees, counter-clockwise; 0 has vertical stripes.
    orientation: float


def asked_to_compare(prompt: str) -> str:
    """What two images are to be compared in; empty where that is not asked.

    Examples
    --------
    >>> asked_to_compare("Which of the two images has the finer stripes?"), asked_to_compare("Which has a pattern?")
    ('frequency', '')
    """
    text = prompt.casefold()
    return next((what for what, words in _WORDS.items() if any(word in text for word in words)), "")


def nearest_direction(wave: Wave, orientations: Sequence[float]) -> int:
    """Which of these orientations, in degrees, is nearest to a wave's.

    Examples
    --------
    >>> [nearest_direction(Wave(0.1, turn), (0, 90, 135, 45)) for turn in (-20.0, 95.0, -40.0, 30.0)]
    [0, 1, 2, 3]
    """
    return int(
        np.argmin(
            [abs((wave.orientation - orientation + 90) % 180 - 90) for orientation in orientations]
        )
    )


def wave_of(light: FloatArray) -> Wave:
    """The main wave: the centre of the squared power about the peak of the spectrum, which noise
    hardly moves.

    Examples
    --------
    >>> from psyprobe.stimulus import Gabor
    >>> found = wave_of(Gabor(frequency=6, orientation=30, contrast=0.2, radius=0.4).draw(dtype="float64").luminance)
    >>> round(60 * found.frequency, 4), round(found.orientation, 4)
    (6.0, 30.0)
    """
    change = light / light.mean() - 1
    spectrum = np.fft.rfft2(change)
    row, column = np.unravel_index(np.abs(spectrum).argmax(), spectrum.shape)
    centre = np.array(
        [np.fft.fftfreq(light.shape[0])[row], np.fft.rfftfreq(light.shape[1])[column]]
    )
    for _ in range(_ROUNDS):
        # Between the coefficients, where the centre of a wave of no whole number of cycles lies.
        places = [
            c + np.linspace(-_REACH, _REACH, _PLACES) / n
            for c, n in zip(centre, light.shape, strict=True)
        ]
        down, across = (
            np.exp(-2j * np.pi * np.outer(at, np.arange(n)))
            for at, n in zip(places, light.shape, strict=True)
        )
        power = np.abs(down @ change @ across.T) ** 4
        total = float(power.sum())
        if not total > 0:
            return Wave(0.0, 0.0)
        centre = np.array(
            [(power.sum(axis=1 - axis) @ at) / total for axis, at in enumerate(places)]
        )
    return Wave(float(np.hypot(*centre)), math.degrees(math.atan2(-centre[0], centre[1])))


def wave_dprime(what: str, first: Wave, second: Wave, jnd: float) -> float:
    """By how much the first wave is turned further, or finer, in units of what is just noticed.

    Examples
    --------
    >>> wave_dprime("orientation", Wave(0.1, 1.0), Wave(0.1, -179.5), 0.5)
    1.0
    """
    if what == "orientation":
        return ((first.orientation - second.orientation + 90) % 180 - 90) / jnd
    if not min(first.frequency, second.frequency) > 0:
        return 0.0
    return math.log(first.frequency / second.frequency) / math.log1p(jnd)


def contrast_dprime(first: float, second: float) -> float:
    """The same of two contrasts in units of detection threshold, by Legge and Foley's (1980)
    transducer.

    Examples
    --------
    >>> round(contrast_dprime(1.0, 0.0), 3)
    1.0
    """
    from psyprobe.human.discrimination import legge_foley_response

    both = legge_foley_response(np.array([first, second]) * _THRESHOLD)
    return float(both[0] - both[1])
