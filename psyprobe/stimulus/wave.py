"""Gabors and gratings: a sinusoid under an envelope or behind a window."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from psyprobe._typing import Array, FloatArray
from psyprobe.errors import unknown_name
from psyprobe.stimulus import pattern
from psyprobe.stimulus.specification import Modulation, column, require, stimulus_kind

#: Waves narrower than this across the field are surely meant in another unit.
_FEWEST_CYCLES = 0.5


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class _Wave(Modulation):
    """A sinusoidal carrier."""

    frequency: Any
    orientation: Any = 0.0
    phase: Any = 0.0
    x: Any = 0.0
    y: Any = 0.0

    numeric: ClassVar[tuple[str, ...]] = ("luminance", "contrast", "frequency", "orientation", "phase", "x", "y")

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_frequency(self.frequency)

    def _check_frequency(self, highest: Any) -> None:
        require(
            (highest > 0) & (highest < self.ppd / 2),
            "frequency",
            highest,
            "cpd",
            f"a display of {self.ppd:g} pixels per degree shows frequencies above 0 and below {self.ppd / 2:g} cpd "
            "(Nyquist); lower the frequency or raise ppd",
        )
        longest = max(self.field)
        require(
            self.frequency * longest >= _FEWEST_CYCLES,
            "frequency",
            self.frequency,
            "cpd",
            f"fewer than {_FEWEST_CYCLES:g} cycles would fit on the field of {longest:.4g} deg; frequency is in cycles "
            "per degree, not per pixel",
        )

    def _carrier(
        self,
        amplitude: FloatArray,
        offset: FloatArray,
        dtype: str,
        device: str | None,
        radius: FloatArray | None = None,
        balanced: bool = False,
    ) -> Array:
        names = ("frequency", "orientation", "phase", "x", "y")
        rows, columns = pattern.gabor_factors(
            self.shape, self.ppd, radius=radius, balanced=balanced, **{name: self._flat(name) for name in names}
        )
        columns *= amplitude[:, None, None]
        if offset.any():
            # The mean rides along as one more row and column, which saves a pass over the images.
            rows = np.concatenate([rows, np.ones_like(rows[..., :1])], axis=2)
            columns = np.concatenate([columns, np.broadcast_to(offset[:, None, None], columns[:, :1].shape)], axis=1)
        return pattern.to_backend(rows, dtype, device) @ pattern.to_backend(columns, dtype, device)


@stimulus_kind("gabor")
@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Gabor(_Wave):
    """A sinusoid under a Gaussian envelope.

    ``L = luminance (1 + contrast E(u, v) cos(2 pi frequency u + phase))``, where u runs across the stripes, v along
    them, and ``E = exp(-(u² + (v/aspect)²) / (2 radius²))``.

    Attributes
    ----------
    frequency : float or array
        Spatial frequency, cpd, below Nyquist (ppd/2).
    contrast : float or array
        Amplitude over luminance at the centre of the envelope (Michelson), 0 to 1; see `Modulation`.
    radius : float or array
        Standard deviation of the envelope across the stripes, deg.
    aspect : float or array
        Standard deviation along the stripes over that across; 1 is round.
    orientation : float or array
        deg counter-clockwise; 0 is vertical stripes.
    phase : float or array
        deg; 0 puts a peak at the centre of the envelope.
    x, y : float or array
        Centre, deg to the right and up.
    balanced : bool
        Subtract the multiple of the envelope that makes the mean equal to `luminance`.

    Examples
    --------
    >>> Gabor(frequency=[2.0, 4.0], contrast=0.5, size=64).draw().pixels.shape
    (2, 64, 64)
    """

    radius: Any = 1.0
    aspect: Any = 1.0
    balanced: bool = False

    numeric: ClassVar[tuple[str, ...]] = (*_Wave.numeric, "radius", "aspect")
    contrast_kind: ClassVar[str | None] = "michelson"

    def __post_init__(self) -> None:
        super().__post_init__()
        longest = max(self.field)
        require(
            (self.radius > 0) & (self.radius <= longest),
            "radius",
            self.radius,
            "deg",
            f"the envelope's standard deviation must be above 0 and at most the field of {longest:.4g} deg",
        )
        require(self.aspect > 0, "aspect", self.aspect, "", "it must be > 0")

    def paint(self, amplitude: FloatArray, offset: FloatArray, dtype: str, device: str | None) -> Array:
        """``offset + amplitude * Gabor``, shape (n, H, W)."""
        if np.all(self.aspect == 1):
            return self._carrier(amplitude, offset, dtype, device, self._flat("radius"), self.balanced)
        # An oblique ellipse is no product of rows and columns: it is multiplied on.
        names = ("orientation", "x", "y", "radius", "aspect")
        envelope = pattern.oriented_envelope(self.shape, self.ppd, **{name: self._flat(name) for name in names})
        change = self._carrier(np.ones_like(amplitude), np.zeros_like(offset), "float64", None) * envelope
        if self.balanced:
            change -= envelope * (change.sum(axis=(1, 2)) / envelope.sum(axis=(1, 2)))[:, None, None]
        return pattern.to_backend(change * amplitude[:, None, None] + offset[:, None, None], dtype, device)

    def _pixels(self, dtype: str, device: str | None) -> tuple[Array, str]:
        pixels, space = super()._pixels(dtype, device)
        if self.balanced:
            self._refuse_negative(pixels)
        return pixels, space


@stimulus_kind("grating")
@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Grating(_Wave):
    """A sinusoid over the whole field, or behind a window.

    Attributes
    ----------
    frequency, contrast, orientation, phase, x, y
        As of a `Gabor`; x and y move the window and the carrier with it.
    window : {"none", "gaussian", "raised_cosine", "disc"}
        Shape of the aperture.
    radius : float or array
        deg: standard deviation of a Gaussian; radius at half height of a raised cosine; radius of a hard disc.
    edge : float or array
        Width of the ramp of a raised cosine, deg.

    Examples
    --------
    >>> Grating(frequency=3.0, contrast=1.0, window="disc", radius=1.5).draw().pixels.shape
    (224, 224)
    """

    window: str = "none"
    radius: Any = 1.0
    edge: Any = 0.25

    numeric: ClassVar[tuple[str, ...]] = (*_Wave.numeric, "radius", "edge")
    contrast_kind: ClassVar[str | None] = "michelson"
    windows: ClassVar[tuple[str, ...]] = ("none", "gaussian", "raised_cosine", "disc")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.window not in self.windows:
            raise unknown_name("window", str(self.window), self.windows)
        require(self.radius > 0, "radius", self.radius, "deg", "a window's radius must be > 0")
        require(
            (self.edge > 0) & (self.edge <= 2 * self.radius),
            "edge",
            self.edge,
            "deg",
            "a raised cosine's ramp must be above 0 and at most twice the radius",
        )

    def paint(self, amplitude: FloatArray, offset: FloatArray, dtype: str, device: str | None) -> Array:
        """``offset + amplitude * windowed grating``, shape (n, H, W)."""
        if self.window in ("none", "gaussian"):
            radius = self._flat("radius") if self.window == "gaussian" else None
            return self._carrier(amplitude, offset, dtype, device, radius)
        names = ("x", "y", "radius", "edge")
        distinct, which = np.unique(np.stack([self._flat(n) for n in names]), axis=1, return_inverse=True)
        values = dict(zip(names, distinct, strict=True))
        if self.window == "disc":
            values["edge"] = np.zeros_like(values["edge"])
        windows = pattern.to_backend(pattern.round_window(self.shape, self.ppd, **values), dtype, device)
        change = self._carrier(amplitude, np.zeros_like(offset), dtype, device)
        change *= windows if windows.shape[0] == 1 else windows[which.ravel()]
        change += column(offset, dtype, device)
        return change
