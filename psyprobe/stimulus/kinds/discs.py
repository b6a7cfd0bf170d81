"""Discs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from psyprobe._typing import FloatArray
from psyprobe.light.colour import Direction
from psyprobe.stimulus import estimate, pattern
from psyprobe.stimulus.certificate import STANDARD_ERRORS, Planes, Sheet
from psyprobe.stimulus.parameters import parameter, tells_names
from psyprobe.stimulus.pattern import Modulation
from psyprobe.stimulus.specification import Stimulus, drawn, stimulus_kind

_LINEAR = "least squares on {disc, 1}"


@stimulus_kind("disc")
@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Disc(Modulation):
    """A uniform disc on a uniform background; parameters as in `psyprobe.disc`.

    Examples
    --------
    >>> disc = Disc(contrast=0.5, radius=1.0, luminance=20.0).draw()
    >>> float(disc.luminance[112, 112]), float(disc.luminance[0, 0])
    (30.0, 20.0)
    """

    contrast: Any = parameter("1", "Contrast", low=-1, high=10)
    radius: Any = parameter("deg", "Radius", default=1.0, low=0, above=True)
    edge: Any = parameter("deg", "Width of the edge", default=0.0, low=0)
    x: Any = parameter("deg", "Horizontal position", default=0.0)
    y: Any = parameter("deg", "Vertical position", default=0.0)

    contrast_kind: ClassVar[str | None] = "weber"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._require("edge", self.edge <= 2 * self.radius, "0 to twice the radius")

    def _check_contrast(self) -> None:
        """A disc may be darker than its background, and many times as bright."""

    def unit(self) -> FloatArray:
        """Discs of unit height."""
        names = ("x", "y", "radius", "edge")
        return pattern.round_window(self.shape, self.ppd, **{name: self._flat(name) for name in names})

    def promises(self, planes: Planes, sheet: Sheet) -> None:
        """Levels, contrast and radius, by least squares on a disc."""
        level = self.luminance
        disc = estimate.round_window(self.shape, self.ppd, self.radius, edge=self.edge, x=self.x, y=self.y)
        depth = self.contrast * self.luminance_share
        doubt = estimate.edge_pixels(self.shape, self.ppd, self.radius, self.x, self.y) if self.edge == 0 else 0.0
        noise = sheet.noise(abs(self.contrast))
        mean = level * (1 + depth * disc.mean())
        extra = abs(depth) * doubt**2 * level / mean
        sheet.add("mean luminance", mean, planes.light.mean(), "mean over pixels", extra=extra)
        sheet.add("peak luminance", level * (1 + float((depth * disc).max())), planes.light.max(), "largest pixel")
        if np.ptp(disc) == 0 or self.contrast == 0:
            sheet.add("uniformity", 0.0, planes.light.std() / level, "SD over luminance")
            return
        fit = estimate.fit_patterns(planes.pattern, disc[None])
        step, background = float(fit.coefficients[0]), float(fit.background)
        extra = STANDARD_ERRORS * float(fit.gain[-1]) * noise / level + abs(self.contrast) * doubt**2
        if planes.cones is None:
            base = background
            sheet.add("background", level, background, _LINEAR, extra=extra)
        else:
            base, off = level, background / level - 1
            sheet.add("background modulation", 0.0, off, _LINEAR, key="cone contrast", extra=extra)
        share = doubt**2 / min(float(disc.mean()), 1 - float(disc.mean()))
        extra = STANDARD_ERRORS * float(fit.gain[0]) * noise / (abs(self.contrast) * level) + share
        if sheet.shown:
            # A flat disc rounds as one: its two levels may be off by half a step of drive in opposite directions.
            extra += 5e-7 / abs(self.contrast)
        sheet.add("contrast", self.contrast, step / base, _LINEAR, extra=extra)
        weight = (planes.pattern - background) / step
        delivered = float(np.sqrt(max(weight.sum(), 0.0) / np.pi)) / self.ppd
        asked = float(np.sqrt(disc.sum() / np.pi)) / self.ppd
        extra = share + STANDARD_ERRORS * noise / (abs(self.contrast) * level) / np.sqrt(disc.sum())
        sheet.add("radius", asked, delivered, "of the circle of equal area", extra=extra)
        left, how = float(fit.residual) / level, "RMS that no disc explains, over background"
        sheet.add("distortion", 0.0, left, how, extra=doubt * abs(self.contrast) + 2 * noise / level)


@tells_names
def disc(
    *,
    contrast: ArrayLike,
    luminance: ArrayLike = 100.0,
    radius: ArrayLike = 1.0,
    edge: ArrayLike = 0.0,
    x: ArrayLike = 0.0,
    y: ArrayLike = 0.0,
    direction: Direction = "achromatic",
    white: str | tuple[float, float] = "D65",
    observer: str = "cie2006_led_lcd",
    ppd: float = 60.0,
    size: int | tuple[int, int] = 224,
    dtype: str = "float64",
    device: str | None = None,
) -> Stimulus:
    """Draw discs on a uniform background.

    Parameters
    ----------
    contrast : float or array
        Weber contrast of the disc, -1 to 10 (a chromatic disc: RMS cone contrast).
    radius : float or array
        deg.
    edge : float or array
        Width of a raised-cosine edge, deg; 0 is hard (pixels whose centres lie within the radius).
    luminance, x, y, direction, white, observer, ppd, size, dtype, device
        As in `gabor`.

    Examples
    --------
    >>> disc(contrast=-0.2, radius=0.5).luminance.shape
    (224, 224)
    """
    return drawn(Disc, locals())
