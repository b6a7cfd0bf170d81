"""Discs on a uniform background."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from psyprobe._typing import FloatArray, Levels, Size
from psyprobe.light.colour import Direction
from psyprobe.stimulus import estimate, pattern
from psyprobe.stimulus.certificate import ImageMeasurements
from psyprobe.stimulus.measuring import Planes
from psyprobe.stimulus.parameters import check_keywords, common, parameter
from psyprobe.stimulus.pattern import Modulation
from psyprobe.stimulus.registry import stimulus_kind
from psyprobe.stimulus.specification import draw_kind
from psyprobe.stimulus.stimulus import Stimulus
from psyprobe.stimulus.tolerances import STANDARD_ERRORS, roundoff

_ON_DISC = "least squares on {disc, 1}"


@stimulus_kind("disc")
class Disc(Modulation):
    """A uniform disc on a uniform background; parameters as in `psyprobe.disc`.

    Examples
    --------
    >>> disc = Disc(contrast=0.5, radius=1.0, luminance=20.0).draw()
    >>> float(disc.luminance[112, 112]), float(disc.luminance[0, 0])
    (30.0, 20.0)
    """

    contrast: Levels = parameter("1", "Contrast", low=-1, high=10)
    radius: Levels = common("radius", default=1.0)
    edge: Levels = parameter("deg", "Width of the edge", default=0.0, low=0)
    x: Levels = common("x", default=0.0)
    y: Levels = common("y", default=0.0)

    contrast_kind = "weber"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._require("edge", self.edge <= 2 * self.radius, "0 to twice the radius")

    def _check_contrast(self) -> None:
        """Allow contrasts from -1 (black) to many times the background."""

    def unit(self) -> FloatArray:
        """Draw discs of height 1, shape (n, H, W)."""
        names = ("x", "y", "radius", "edge")
        places = np.stack([self.per_image(name) for name in names])
        # Images that share a disc share its drawing, as all frames that flicker.
        distinct, disc_index = np.unique(places, axis=1, return_inverse=True)
        place = dict(zip(names, distinct, strict=True))
        discs = pattern.round_window(self.shape, self.ppd, **place)
        return discs[disc_index.ravel()]

    def measure_planes(self, planes: Planes, measurements: ImageMeasurements) -> None:
        """Measure a disc's levels, contrast and radius, by least squares."""
        light = planes.light
        level = self.luminance
        contrast = self.contrast
        depth = contrast * self.luminance_share
        place = {"x": self.x, "y": self.y}
        disc = estimate.round_window(
            self.shape, self.ppd, self.radius, edge=self.edge, **place
        )
        doubt: Levels = 0.0
        if self.edge == 0:
            doubt = estimate.edge_pixels(self.shape, self.ppd, self.radius, **place)
        mean = level * (1 + depth * disc.mean())
        extra = abs(depth) * doubt**2 * level / mean
        measurements.add(
            "mean luminance", mean, light.mean(), "mean over pixels", extra=extra
        )
        peak = level * (1 + float((depth * disc).max()))
        measurements.add("peak luminance", peak, light.max(), "largest pixel")
        if np.ptp(disc) == 0 or contrast == 0:
            measurements.add(
                "uniformity", 0.0, light.std() / level, "SD over luminance"
            )
            return
        error = measurements.pixel_error(abs(contrast))
        slack = STANDARD_ERRORS * error / (abs(contrast) * level)
        fit = estimate.fit_patterns(planes.pattern, disc[None])
        step = float(fit.coefficients[0])
        background = float(fit.background)
        extra = STANDARD_ERRORS * float(fit.gain[-1]) * error / level
        extra += abs(contrast) * doubt**2
        base = background
        if planes.in_colour:
            base = level
            change = background / level - 1
            measurements.add(
                "background modulation",
                0.0,
                change,
                _ON_DISC,
                key="cone contrast",
                extra=extra,
            )
        else:
            measurements.add("background", level, background, _ON_DISC, extra=extra)
        share = doubt**2 / min(float(disc.mean()), 1 - float(disc.mean()))
        # A flat disc rounds as one: its two levels may be off in opposite directions, by half a
        # step of drive, which display transfer functions make four times as large in light.
        rounding = (
            5e-7 if measurements.display_gain else 8 * roundoff(measurements.precision)
        )
        extra = (
            STANDARD_ERRORS * float(fit.gain[0]) * error / (abs(contrast) * level)
            + share
        )
        extra += rounding / abs(contrast)
        delivered = float(np.divide(step, base))
        measurements.add("contrast", contrast, delivered, _ON_DISC, extra=extra)
        weight = (planes.pattern - background) / step
        requested = float(np.sqrt(disc.sum() / np.pi)) / self.ppd
        delivered = float(np.sqrt(max(weight.sum(), 0.0) / np.pi)) / self.ppd
        extra = share + slack / np.sqrt(disc.sum())
        measurements.add(
            "radius", requested, delivered, "of the circle of equal area", extra=extra
        )
        residual = float(fit.residual) / level
        method = "RMS that no disc explains, over background"
        extra = doubt * abs(contrast) + 2 * error / level
        measurements.add("distortion", 0.0, residual, method, extra=extra)


@check_keywords
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
    size: int | Size = 224,
    dtype: str = "float64",
    device: str | None = None,
) -> Stimulus:
    """Draw discs on a uniform background.

    Parameters
    ----------
    contrast : float or array
        Weber contrast of the disc, -1 to 10 (a chromatic disc: RMS cone contrast).
    radius : float or array
        Radius, deg; that at half height of a soft edge.
    edge : float or array
        Width of a raised-cosine edge, deg; 0 is hard (pixels whose centres lie within the radius).
    luminance, x, y, direction, white, observer, ppd, size, dtype, device
        As in `gabor`.

    Examples
    --------
    >>> disc(contrast=-0.2, radius=0.5).luminance.shape
    (224, 224)
    """
    return draw_kind(Disc, locals())
