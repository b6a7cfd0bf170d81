"""Measure stripes for a simulated observer: their direction, and which of two images has more."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from psyprobe._typing import FloatArray

#: Words of a prompt that say in which property images are to be compared.
_WORDS = {
    "orientation": ("counter-clockwise", "counterclockwise", "anticlockwise"),
    "frequency": ("finer", "spatial frequency"),
    "contrast": (
        "higher contrast",
        "more contrast",
        "stronger contrast",
        "pattern added",
    ),
}
#: Rounds of the search for the centre of a wave, its reach to either side in coefficients of the
#: spectrum, and how many positions it looks at.
_ROUNDS = 3
_REACH = 3
_POSITIONS = 25
#: Contrast at which Legge and Foley's transducer detects a pattern.
_THRESHOLD = 0.0038206


class Wave(NamedTuple):
    """The main wave of an image."""

    #: Cycles over a pixel.
    frequency: float
    #: Degrees, counter-clockwise; stripes at 0 are vertical.
    orientation: float


def compared_property(prompt: str) -> str:
    """Find the property in which a prompt compares two images; "" if it compares none.

    Examples
    --------
    >>> compared_property("Which of the two images has the finer stripes?")
    'frequency'
    >>> compared_property("Which has a pattern?")
    ''
    """
    text = prompt.casefold()
    for name, words in _WORDS.items():
        if any(word in text for word in words):
            return name
    return ""


def nearest_direction(wave: Wave, orientations: Sequence[float]) -> int:
    """Find the index of the orientation, deg, that is nearest to a wave's.

    Examples
    --------
    >>> waves = [Wave(0.1, turn) for turn in (-20.0, 95.0, -40.0, 30.0)]
    >>> [nearest_direction(wave, (0, 90, 135, 45)) for wave in waves]
    [0, 1, 2, 3]
    """
    return int(
        np.argmin([abs(_turn(wave.orientation, angle)) for angle in orientations])
    )


def _turn(orientation: float, reference: float) -> float:
    """Compute the turn from one orientation to another, -90 to 90 deg."""
    return (orientation - reference + 90) % 180 - 90


def wave_of(light: FloatArray) -> Wave:
    """Find the strongest Fourier component of an image (H, W) of light.

    It lies at the centre of the squared power about the peak of the spectrum, which noise hardly
    moves.

    Examples
    --------
    >>> from psyprobe.stimulus import Gabor
    >>> gabor = Gabor(frequency=6, orientation=30, contrast=0.2, radius=0.4)
    >>> wave = wave_of(gabor.draw(dtype="float64").luminance)
    >>> round(60 * wave.frequency, 4), round(wave.orientation, 4)
    (6.0, 30.0)
    """
    contrast = light / light.mean() - 1
    spectrum = np.fft.rfft2(contrast)
    height, width = light.shape
    row, column = np.unravel_index(np.abs(spectrum).argmax(), spectrum.shape)
    y = np.fft.fftfreq(height)[row]
    x = np.fft.rfftfreq(width)[column]
    offsets = np.linspace(-_REACH, _REACH, _POSITIONS)
    for _ in range(_ROUNDS):
        # A wave of no whole number of cycles has its centre between the coefficients.
        rows = y + offsets / height
        columns = x + offsets / width
        down = np.exp(-2j * np.pi * np.outer(rows, np.arange(height)))
        across = np.exp(-2j * np.pi * np.outer(columns, np.arange(width)))
        power = np.abs(down @ contrast @ across.T) ** 4
        total = float(power.sum())
        if not total > 0:
            return Wave(0.0, 0.0)
        y = (power.sum(axis=1) @ rows) / total
        x = (power.sum(axis=0) @ columns) / total
    return Wave(float(np.hypot(y, x)), math.degrees(math.atan2(-y, x)))


def wave_dprime(name: str, first: Wave, second: Wave, jnd: float) -> float:
    """Compute how many just noticeable differences the first wave is turned further, or finer.

    Examples
    --------
    >>> wave_dprime("orientation", Wave(0.1, 1.0), Wave(0.1, -179.5), 0.5)
    1.0
    """
    if name == "orientation":
        return _turn(first.orientation, second.orientation) / jnd
    if not min(first.frequency, second.frequency) > 0:
        return 0.0
    return math.log(first.frequency / second.frequency) / math.log1p(jnd)


def contrast_dprime(first: float, second: float) -> float:
    """Compute how many just noticeable differences one contrast is higher than another.

    Contrasts are in units of detection threshold; the transducer is Legge and Foley's (1980).

    Examples
    --------
    >>> round(contrast_dprime(1.0, 0.0), 3)
    1.0
    """
    from psyprobe.human.discrimination import legge_foley_response

    responses = legge_foley_response(np.array([first, second]) * _THRESHOLD)
    return float(responses[0] - responses[1])
