"""Clips of flicker and motion: a flickering disc, and Gabors that reverse contrast or drift."""

from __future__ import annotations

import numpy as np

from psyprobe._typing import Levels
from psyprobe.files.json_types import JsonObject
from psyprobe.stimulus import estimate
from psyprobe.stimulus.clip import TemporalModulation
from psyprobe.stimulus.estimate import Float64
from psyprobe.stimulus.kinds.discs import Disc
from psyprobe.stimulus.kinds.gratings import Gabor
from psyprobe.stimulus.parameters import AREA, common, parameter
from psyprobe.stimulus.registry import stimulus_kind
from psyprobe.stimulus.sines import Sine


@stimulus_kind("flicker")
class Flicker(TemporalModulation):
    """A disc whose light rises and falls: ``L (1 + c w(t) D(x, y) cos(2 pi f_t t))``.

    Disc, edge and colour as in `psyprobe.stimulus.disc`; contrast is Michelson (chromatic: RMS cone
    contrast), and ``w = exp(-t² / (2 temporal_sigma²))``.

    Examples
    --------
    >>> Flicker(contrast=0.5, temporal_frequency=10, frames=30, size=64).draw()
    <Stimulus 30 frames of 64 x 64 px at 60 ppd, luminance in cd/m²: Flicker(...)>
    >>> Flicker(contrast=0.5, temporal_frequency=34)
    Traceback (most recent call last):
    psyprobe.errors.InputError: temporal_frequency is 34 Hz; 60 frames a second show less than 30 Hz
    (Nyquist), and this would be seen as 26 Hz; lower it or raise fps
    """

    radius: Levels = common("radius", default=1.0)
    edge: Levels = parameter("deg", "Width of the edge", default=0.25, low=0)
    x: Levels = common("x", default=0.0)
    y: Levels = common("y", default=0.0)

    derived_levels = AREA
    still_kind = Disc

    def course(self, start: int, stop: int) -> JsonObject:
        """Compute the contrast of each frame, which alternates about the background."""
        wave = self.window(start, stop) * np.cos(2 * np.pi * self.cycles(start, stop))
        return {"contrast": self.along_frames("contrast") * wave}

    def patterns(self) -> Float64:
        """Draw the disc that flickers, shape (1, H, W)."""
        place = {"edge": self.edge, "x": self.x, "y": self.y}
        return estimate.round_window(self.shape, self.ppd, self.radius, **place)[None]


class _TemporalGabor(TemporalModulation):
    """A Gabor that changes in time."""

    frequency: Levels = common("frequency")
    orientation: Levels = common("orientation", default=0.0)
    phase: Levels = common("phase", default=0.0)
    radius: Levels = common("radius", default=1.0)
    x: Levels = common("x", default=0.0)
    y: Levels = common("y", default=0.0)

    derived_levels = AREA
    still_kind = Gabor

    def patterns(self) -> Float64:
        """Draw the cosine and the sine under the envelope, shape (2, H, W)."""
        names = ("shape", "ppd", "frequency", "orientation", "x", "y", "radius")
        wave = Sine(**{name: getattr(self, name) for name in names})
        return np.stack([wave.image(1.0, 0.0), wave.image(0.0, 1.0)])


@stimulus_kind("counterphase")
class Counterphase(_TemporalGabor):
    """A Gabor whose contrast reverses: ``L (1 + c w(t) E(x, y) cos(2 pi f u + phase) cos(2 pi f_t
    t))``.

    Gabor and colour as in `psyprobe.gabor`; ``w = exp(-t² / (2 temporal_sigma²))``. It is the sum
    of two that drift in opposite directions at half the contrast.

    Examples
    --------
    >>> clips = Counterphase(
    ...     frequency=4, contrast=0.5, temporal_frequency=[5, 10], frames=30, size=64
    ... )
    >>> clips.draw().pixels.shape
    (2, 30, 64, 64)
    """

    def course(self, start: int, stop: int) -> JsonObject:
        """Compute the contrast and phase of each frame of the reversing grating."""
        wave = self.window(start, stop) * np.cos(2 * np.pi * self.cycles(start, stop))
        return {
            "contrast": self.along_frames("contrast") * np.abs(wave),
            "phase": self.along_frames("phase") + np.where(wave < 0, 180.0, 0.0),
        }


@stimulus_kind("drift")
class Drift(_TemporalGabor):
    """A Gabor whose wave moves under its envelope: ``L (1 + c w(t) E(x, y) cos(2 pi (f u - f_t t) +
    phase))``.

    It moves along u, to the right at orientation 0 and to the left at 180. Gabor and colour as in
    `psyprobe.gabor`; ``w = exp(-t² / (2 temporal_sigma²))``.

    Examples
    --------
    >>> clip = Drift(frequency=4, contrast=0.5, temporal_frequency=5, frames=8, size=64)
    >>> clip.changed(direction="red_green").draw().space
    'lms'
    """

    moves = True

    def course(self, start: int, stop: int) -> JsonObject:
        """Compute the contrast and phase of each frame of the drifting grating."""
        # Complete turns are left out before degrees are made of them, which keeps phases exact in
        # long clips.
        lead = -360.0 * (self.cycles(start, stop) % 1.0)
        return {
            "contrast": self.along_frames("contrast") * self.window(start, stop),
            "phase": self.along_frames("phase") + lead,
        }
