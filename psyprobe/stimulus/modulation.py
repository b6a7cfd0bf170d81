"""Patterns on a background: light that is modulated along a direction of colour."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from psyprobe._typing import Array, FloatArray
from psyprobe.errors import InputError
from psyprobe.light.colour import Direction, cone_observer, direction_vector, white_xyz
from psyprobe.light.display import Display
from psyprobe.stimulus import estimate, pattern
from psyprobe.stimulus.certificate import STANDARD_ERRORS, Row, Sheet
from psyprobe.stimulus.estimate import Float64
from psyprobe.stimulus.kinds.uniform import Uniform
from psyprobe.stimulus.parameters import parameter
from psyprobe.stimulus.planes import Planes, planes_of
from psyprobe.stimulus.specification import Specification
from psyprobe.stimulus.tolerances import roundoff, tolerance

#: How the contrast of a kind is measured that says nothing itself.
_OWN_PATTERN = "least squares on {own pattern, 1}"


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Modulation(Specification):
    """A background whose light is modulated along a direction of colour."""

    #: Amplitude of the modulation. Achromatic: Michelson (noise: RMS, disc: Weber). Chromatic: RMS over the three cone
    #: contrasts, the unit of castleCSF.
    contrast: Any = parameter("1", "Contrast", low=0)
    #: direction, white, observer: As in `psyprobe.gabor`.
    direction: Direction = "achromatic"
    white: str | tuple[float, float] = "D65"
    observer: str = "cie2006_led_lcd"

    #: Lowest modulation of unit contrast is at least minus this; None where only the drawn image tells.
    deepest: ClassVar[float | None] = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("direction", "white"):
            value = getattr(self, name)
            if not isinstance(value, str):
                object.__setattr__(self, name, tuple(float(v) for v in value))
        self._check_contrast()
        _ = self.cone_contrast

    def _check_contrast(self) -> None:
        limit = 1.0 if self.direction == "achromatic" and self.deepest is not None else 10.0
        allowed = f"contrast is a fraction from 0 to {limit:g}, not a percentage; more would need negative light"
        self._require("contrast", self.contrast <= limit, allowed)

    @property
    def in_colour(self) -> bool:
        """Whether pixels are LMS rather than luminance."""
        return self.direction != "achromatic"

    @property
    def background_lms(self) -> FloatArray:
        """LMS of the background at a luminance of 1 cd/m², shape (3,)."""
        return cone_observer(self.observer).from_xyz @ white_xyz(self.white)

    @property
    def cone_contrast(self) -> FloatArray:
        """Modulation of L, M and S for a unit of contrast, shape (3,)."""
        return direction_vector(self.direction, self.background_lms)

    @property
    def luminance_share(self) -> float:
        """Modulation of L + M for a unit of contrast: 1 for achromatic, 0 for isoluminant stimuli."""
        background = self.background_lms
        share = float(self.cone_contrast[:2] @ background[:2] / background[:2].sum())
        return 0.0 if abs(share) < 1e-14 else share

    def summands(self) -> tuple[Specification, ...]:
        """Itself."""
        return (self,)

    def reference(self) -> Specification:
        """The uniform background: grey, or of this background's chromaticity."""
        field = Uniform(luminance=self.luminance, ppd=self.ppd, size=self.size)
        if not self.in_colour:
            return field
        return replace(field, chromatic=True, white=self.white, observer=self.observer)

    def unit(self) -> FloatArray:
        """The pattern of unit contrast about 0 for each image of the flattened batch, shape (n, H, W)."""
        raise NotImplementedError

    def paint(self, amplitude: FloatArray, offset: FloatArray, dtype: str, device: str | None) -> Array:
        """``offset + amplitude * unit pattern``, shape (n, H, W); for kinds that draw faster than by `unit`.

        Parameters
        ----------
        amplitude, offset : ndarray, shape (n,)
            One for each image of the flattened batch.
        dtype, device
            As in `draw`.
        """
        images = self.unit() * amplitude[:, None, None] + offset[:, None, None]
        return pattern.to_backend(images, dtype, device)

    def modulation(self, dtype: str, device: str | None) -> Array:
        """Relative modulation of the light about 0, shape (..., H, W)."""
        contrast = self._flat("contrast")
        change = self.paint(contrast, np.zeros_like(contrast), dtype, device)
        return change.reshape((*self.batch, *self.shape))

    def _pixels(self, dtype: str, device: str | None) -> tuple[Array, str]:
        luminance = self._flat("luminance")
        if not self.in_colour:
            pixels, space = self.paint(self._flat("contrast") * luminance, luminance, dtype, device), "luminance"
            pixels = pixels.reshape((*self.batch, *self.shape))
        else:
            background = self.background_lms
            step = pattern.to_backend(background * self.cone_contrast, dtype, device)
            pixels, space = self.modulation(dtype, device)[..., None] * step, "lms"
            pixels += pattern.to_backend(background, dtype, device)
            pixels *= pattern.to_backend(np.asarray(self.luminance)[..., None, None, None], dtype, device)
        if self.deepest is None or space == "lms":
            self._refuse_negative(pixels)
        return pixels, space

    def _refuse_negative(self, pixels: Array) -> None:
        if (darkest := float(pixels.min())) < 0:
            raise InputError(
                f"contrast {np.max(self.contrast):g} would need negative light ({darkest:g}); "
                "lower the contrast, or choose another seed, phase or direction"
            )

    def promises(self, planes: Planes, sheet: Sheet) -> None:
        """Level and contrast, by least squares on the pattern as this kind draws it."""
        one = np.ones(1)
        unit = np.asarray(self.paint(one, 0 * one, "float64", None)[0])
        level, depth = self.luminance, self.contrast * self.luminance_share
        noise = sheet.noise(abs(self.contrast))
        mean = level * (1 + depth * unit.mean())
        sheet.add("mean luminance", mean, planes.light.mean(), "mean over pixels")
        sheet.add("peak luminance", level * (1 + (depth * unit).max()), planes.light.max(), "largest pixel")
        if self.contrast == 0 or np.ptp(unit) == 0:
            sheet.add("distortion", 0.0, planes.pattern.std() / level, "SD over background")
            return
        fit = estimate.fit_patterns(planes.pattern, unit[None])
        background = float(fit.background)
        extra = STANDARD_ERRORS * float(fit.gain[-1]) * noise / level
        sheet.add("background", level, background, _OWN_PATTERN, extra=extra)
        contrast = float(fit.coefficients[0]) / (background if planes.cones is None else level)
        extra = STANDARD_ERRORS * float(fit.gain[0]) * noise / (abs(self.contrast) * level)
        sheet.add_contrast("contrast", self.contrast, contrast, _OWN_PATTERN, extra=extra)
        left = float(fit.residual) / level
        how = "RMS that the pattern does not explain, over background"
        sheet.add("distortion", 0.0, left, how, extra=noise / level)

    def rows(self, image: Float64, space: str, sheet: Sheet, display: Display | None) -> list[Row]:
        """What the kind promises, and the cone contrasts of an image in colour."""
        planes = self._planes(image, space, display)
        self.promises(planes, sheet)
        if planes.cones is not None and not sheet.shown:
            _cone_rows(planes, self, sheet)
        return sheet.rows

    def _planes(self, image: Float64, space: str, display: Display | None) -> Planes:
        return planes_of(image, space, self, display)


def _cone_rows(planes: Planes, spec: Modulation, sheet: Sheet) -> None:
    """Contrast of each cone class along the direction, and silence off it."""
    assert planes.cones is not None
    wanted = spec.cone_contrast
    along = planes.pattern / spec.luminance - 1
    slack = STANDARD_ERRORS * roundoff(sheet.precision) * (1 + abs(spec.contrast))
    if abs(spec.contrast) > 0:
        fit = estimate.fit_patterns(planes.cones, along[None])
        rows = [row for row in sheet.rows if row.quantity in ("contrast", "rms contrast")]
        delivered = rows[0].delivered if rows else spec.contrast
        for name, asked, slope in zip("LMS", wanted, fit.coefficients[:, 0], strict=True):
            extra = slack + tolerance("contrast", sheet.precision) * abs(spec.contrast * asked)
            extra += rows[0].tolerance * abs(spec.contrast * asked) if rows and rows[0].tolerance else 0.0
            requested, found, how = spec.contrast * asked, delivered * slope, "least squares on the pattern"
            sheet.add(f"{name} cone contrast", requested, found, how, key="cone contrast", extra=extra)
    off = planes.cones - wanted[:, None, None] * along
    furthest = np.sqrt((off**2).sum(axis=0).max())
    how = "largest distance of a pixel from the line through the background"
    sheet.add("off-direction cone contrast", 0.0, furthest, how, extra=slack)
    if spec.luminance_share == 0:
        change, how = np.abs(planes.light / spec.luminance - 1).max(), f"largest change of L + M of {spec.observer}"
        sheet.add("luminance modulation", 0.0, change, how, extra=slack)
