"""Uniform fields and discs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from psyprobe._typing import Array, FloatArray
from psyprobe.light.colour import cone_observer, white_xyz
from psyprobe.stimulus import pattern
from psyprobe.stimulus.specification import Modulation, Specification, column, require, stimulus_kind


@stimulus_kind("disc")
@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Disc(Modulation):
    """A uniform disc on a uniform background.

    Attributes
    ----------
    contrast : float or array
        Weber contrast of the disc, -1 to 10 (a chromatic disc: RMS cone contrast).
    radius : float or array
        deg.
    edge : float or array
        Width of a raised-cosine edge, deg; 0 is hard (pixels whose centres lie within the radius).
    x, y : float or array
        Centre, deg to the right and up.

    Examples
    --------
    >>> disc = Disc(contrast=0.5, radius=1.0, luminance=20.0).draw()
    >>> float(disc.luminance[112, 112]), float(disc.luminance[0, 0])
    (30.0, 20.0)
    """

    radius: Any = 1.0
    edge: Any = 0.0
    x: Any = 0.0
    y: Any = 0.0

    numeric: ClassVar[tuple[str, ...]] = ("luminance", "contrast", "radius", "edge", "x", "y")
    contrast_kind: ClassVar[str | None] = "weber"

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.radius > 0, "radius", self.radius, "deg", "a disc's radius must be > 0")
        require((self.edge >= 0) & (self.edge <= 2 * self.radius), "edge", self.edge, "deg", "0 to twice the radius")

    def _check_contrast(self) -> None:
        require(
            (self.contrast >= -1) & (self.contrast <= 10),
            "contrast",
            self.contrast,
            "",
            "a disc's Weber contrast is a fraction from -1 to 10, not a percentage",
        )

    def paint(self, amplitude: FloatArray, offset: FloatArray, dtype: str, device: str | None) -> Array:
        """``offset + amplitude * disc``, shape (n, H, W)."""
        names = ("x", "y", "radius", "edge")
        window = pattern.round_window(self.shape, self.ppd, **{name: self._flat(name) for name in names})
        return pattern.to_backend(window * amplitude[:, None, None] + offset[:, None, None], dtype, device)


@stimulus_kind("uniform")
@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Uniform(Specification):
    """A uniform field.

    Attributes
    ----------
    luminance : float or array
        cd/m².
    chromatic : bool
        Draw the field in LMS of `observer` with the chromaticity `white`, as the background of a chromatic stimulus.
    white, observer : str
        See `Modulation`.

    Examples
    --------
    >>> float(Uniform(luminance=50.0).draw().pixels.mean())
    50.0
    """

    chromatic: bool = False
    white: str | tuple[float, float] = "D65"
    observer: str = "cie2006_led_lcd"

    def reference(self) -> Specification:
        """Itself: there is no target."""
        return self

    def _pixels(self, dtype: str, device: str | None) -> tuple[Array, str]:
        xp = pattern.namespace(device)
        luminance = self._flat("luminance")
        if self.chromatic:
            lms = cone_observer(self.observer).from_xyz @ white_xyz(self.white)
            values = pattern.to_backend(luminance[:, None] * lms, dtype, device)[:, None, None, :]
            return xp.tile(values, (1, *self.shape, 1)).reshape((*self.batch, *self.shape, 3)), "lms"
        return xp.tile(column(luminance, dtype, device), (1, *self.shape)).reshape((*self.batch, *self.shape)), (
            "luminance"
        )
