"""Clips of flicker and motion: a disc that flickers, a Gabor whose contrast reverses, and one whose
wave drifts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from psyprobe.stimulus import estimate
from psyprobe.stimulus.clip import TemporalModulation
from psyprobe.stimulus.estimate import Float64
from psyprobe.stimulus.kinds.patches import Disc, Gabor
from psyprobe.stimulus.parameters import AREA, DerivedLevel, parameter
from psyprobe.stimulus.sines import Sine
from psyprobe.stimulus.specification import stimulus_kind

#: What a still has in common with its clip.
_BACKGROUND = ("luminance", "ppd", "size", "direction", "white", "observer")


@stimulus_kind("flicker")
@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Flicker(TemporalModulation):
    """A disc whose light goes up and down: ``L (1 + c w(t) D(x, y) cos(2 pi f_t t))``.

    Disc, edge and colour as in `psyprobe.stimulus.disc`; contrast is Michelson (chromatic: RMS cone
    contrast), and ``w = exp(-t² / (2 temporal_sigma²))``.

    Examples
    --------
    >>> clip = Flicker(contrast=0.5, temporal_frequency=10, frames=30, size=64).draw()
    >>> clip
    <Stimulus 30 frames of 64 x 64 px at 60 ppd, luminance in cd/m²: Flicker(size=64, contrast=0.5, ...)>
    >>> Flicker(contrast=0.5, temporal_frequency=34)
    Traceback (most recent call last):
    psyprobe.errors.InputError: temporal_frequency is 34 Hz; 60 frames a second show less than 30 Hz (Nyquist), and this
    would be seen as 26 Hz; lower it or raise fps
    """

    radius: Any = parameter("deg", "Radius", default=1.0, low=0, above=True)
    edge: Any = parameter("deg", "Width of the edge", default=0.25, low=0)
    x: Any = parameter("deg", "Horizontal position", default=0.0)
    y: Any = parameter("deg", "Vertical position", default=0.0)

    derived_levels: ClassVar[Mapping[str, DerivedLevel]] = {"area": AREA}

    @property
    def still(self) -> Disc:
        """The disc at its brightest."""
        held = {
            name: getattr(self, name)
            for name in (*_BACKGROUND, "contrast", "radius", "edge", "x", "y")
        }
        return Disc(**held)

    def stills(self, start: int, stop: int) -> Disc:
        """As of any clip: discs brighter and darker than the background."""
        held = {
            name: self.along_frames(name) for name in (*_BACKGROUND, "radius", "edge", "x", "y")
        }
        wave = self.window(start, stop) * np.cos(2 * np.pi * self.cycles(start, stop))
        return Disc(contrast=self.along_frames("contrast") * wave, **held)

    def patterns(self) -> Float64:
        """The disc."""
        return estimate.round_window(
            self.shape, self.ppd, self.radius, edge=self.edge, x=self.x, y=self.y
        )[None]


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class _TemporalGabor(TemporalModulation):
    """A Gabor in time."""

    frequency: Any = parameter("cpd", "Spatial frequency", low=0, above=True)
    orientation: Any = parameter("deg", "Orientation", default=0.0)
    phase: Any = parameter("deg", "Phase", default=0.0)
    radius: Any = parameter("deg", "Radius", default=1.0, low=0, above=True)
    x: Any = parameter("deg", "Horizontal position", default=0.0)
    y: Any = parameter("deg", "Vertical position", default=0.0)

    derived_levels: ClassVar[Mapping[str, DerivedLevel]] = {"area": AREA}
    _shared: ClassVar[tuple[str, ...]] = (
        *_BACKGROUND,
        "frequency",
        "orientation",
        "radius",
        "x",
        "y",
    )

    @property
    def still(self) -> Gabor:
        """The Gabor in the middle of the clip."""
        return Gabor(**{name: getattr(self, name) for name in (*self._shared, "contrast", "phase")})

    def stills(self, start: int, stop: int) -> Gabor:
        """As of any clip: Gabors of a contrast and a phase of their own."""
        contrast, turned = self._contrast_and_phase(start, stop)
        shared = {name: self.along_frames(name) for name in self._shared}
        return Gabor(contrast=contrast, phase=self.along_frames("phase") + turned, **shared)

    def _contrast_and_phase(self, start: int, stop: int) -> tuple[Any, Any]:
        """Contrast of some frames, and degrees by which their phase differs from that of the
        middle.
        """
        raise NotImplementedError

    def patterns(self) -> Float64:
        """The cosine and the sine under the envelope."""
        names = ("shape", "ppd", "frequency", "orientation", "x", "y", "radius")
        wave = Sine(**{name: getattr(self, name) for name in names})
        return np.stack([wave.image(1.0, 0.0), wave.image(0.0, 1.0)])


@stimulus_kind("counterphase")
@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Counterphase(_TemporalGabor):
    """A Gabor whose contrast reverses: ``L (1 + c w(t) E(x, y) cos(2 pi f u + phase) cos(2 pi f_t
    t))``.

    Gabor and colour as in `psyprobe.gabor`; ``w = exp(-t² / (2 temporal_sigma²))``. It is the sum
    of two that drift in opposite directions at half the contrast.

    Examples
    --------
    >>> Counterphase(frequency=4, contrast=0.5, temporal_frequency=[5, 10], frames=30, size=64).draw().pixels.shape
    (2, 30, 64, 64)
    """

    def _contrast_and_phase(self, start: int, stop: int) -> tuple[Any, Any]:
        wave = self.window(start, stop) * np.cos(2 * np.pi * self.cycles(start, stop))
        return self.along_frames("contrast") * np.abs(wave), np.where(wave < 0, 180.0, 0.0)


@stimulus_kind("drift")
@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Drift(_TemporalGabor):
    """A Gabor whose wave moves under its envelope: ``L (1 + c w(t) E(x, y) cos(2 pi (f u - f_t t) +
    phase))``.

    It moves along u, to the right at orientation 0 and to the left at 180. Gabor and colour as in
    `psyprobe.gabor`; ``w = exp(-t² / (2 temporal_sigma²))``.

    Examples
    --------
    >>> Drift(frequency=4, contrast=0.5, temporal_frequency=5, direction="red_green", frames=8, size=64).draw().space
    'lms'
    """

    moves: ClassVar[bool] = True

    def _contrast_and_phase(self, start: int, stop: int) -> tuple[Any, Any]:
        # Whole turns are left out before degrees are made of them, which keeps phases exact in long
        # clips.
        turned = -360.0 * (self.cycles(start, stop) % 1.0)
        return self.along_frames("contrast") * self.window(start, stop), turned
