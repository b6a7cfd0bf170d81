"""Clips of flicker and motion: a flickering disc, and Gabors that reverse contrast or drift."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from psyprobe._typing import FloatArray, Levels
from psyprobe.stimulus import estimate
from psyprobe.stimulus.clip import TemporalModulation
from psyprobe.stimulus.estimate import Float64
from psyprobe.stimulus.kinds.discs import Disc
from psyprobe.stimulus.kinds.gratings import Gabor
from psyprobe.stimulus.parameters import AREA, DerivedLevel, common, parameter
from psyprobe.stimulus.registry import stimulus_kind
from psyprobe.stimulus.sines import Sine

#: Parameters that a still has in common with its clip.
_BACKGROUND = ("luminance", "ppd", "size", "direction", "white", "observer")


@stimulus_kind("flicker")
@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
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

    radius: Levels = common("radius", 1.0)
    edge: Levels = parameter("deg", "Width of the edge", default=0.25, low=0)
    x: Levels = common("x", 0.0)
    y: Levels = common("y", 0.0)

    derived_levels: ClassVar[Mapping[str, DerivedLevel]] = {"area": AREA}

    _shared: ClassVar[tuple[str, ...]] = (*_BACKGROUND, "radius", "edge", "x", "y")

    @property
    def still(self) -> Disc:
        """The disc at its brightest."""
        shared = {name: getattr(self, name) for name in self._shared}
        return Disc(contrast=self.contrast, **shared)

    def stills(self, start: int, stop: int) -> Disc:
        """Return some frames: discs brighter and darker than the background."""
        shared = {name: self.along_frames(name) for name in self._shared}
        wave = self.window(start, stop) * np.cos(2 * np.pi * self.cycles(start, stop))
        return Disc(contrast=self.along_frames("contrast") * wave, **shared)

    def patterns(self) -> Float64:
        """Draw the disc, shape (1, H, W)."""
        place = {"edge": self.edge, "x": self.x, "y": self.y}
        return estimate.round_window(self.shape, self.ppd, self.radius, **place)[None]


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class _TemporalGabor(TemporalModulation):
    """A Gabor that changes in time."""

    frequency: Levels = common("frequency")
    orientation: Levels = common("orientation", 0.0)
    phase: Levels = common("phase", 0.0)
    radius: Levels = common("radius", 1.0)
    x: Levels = common("x", 0.0)
    y: Levels = common("y", 0.0)

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
        shared = {name: getattr(self, name) for name in self._shared}
        return Gabor(contrast=self.contrast, phase=self.phase, **shared)

    def stills(self, start: int, stop: int) -> Gabor:
        """Return some frames: Gabors of other contrasts and phases."""
        contrast, lead = self._contrast_and_phase(start, stop)
        shared = {name: self.along_frames(name) for name in self._shared}
        return Gabor(
            contrast=contrast, phase=self.along_frames("phase") + lead, **shared
        )

    def _contrast_and_phase(
        self, start: int, stop: int
    ) -> tuple[FloatArray, FloatArray]:
        """Compute contrast of some frames, and how far they lead the middle one in phase, deg."""
        raise NotImplementedError

    def patterns(self) -> Float64:
        """Draw the cosine and the sine under the envelope, shape (2, H, W)."""
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
    >>> clips = Counterphase(
    ...     frequency=4, contrast=0.5, temporal_frequency=[5, 10], frames=30, size=64
    ... )
    >>> clips.draw().pixels.shape
    (2, 30, 64, 64)
    """

    def _contrast_and_phase(
        self, start: int, stop: int
    ) -> tuple[FloatArray, FloatArray]:
        wave = self.window(start, stop) * np.cos(2 * np.pi * self.cycles(start, stop))
        return self.along_frames("contrast") * np.abs(wave), np.where(
            wave < 0, 180.0, 0.0
        )


@stimulus_kind("drift")
@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
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

    moves: ClassVar[bool] = True

    def _contrast_and_phase(
        self, start: int, stop: int
    ) -> tuple[FloatArray, FloatArray]:
        # Complete turns are left out before degrees are made of them, which keeps phases exact in
        # long clips.
        lead = -360.0 * (self.cycles(start, stop) % 1.0)
        return self.along_frames("contrast") * self.window(start, stop), lead
