"""Uniform fields and patterns on them: light that is modulated along a direction of colour.

Pixel centres lie at (i - (N - 1)/2)/ppd, x to the right, y up. Factors are computed in float64 on
the processor, whatever the precision and device of the image: that is cheap, and twenty times more
exact in float32 than computing phases in float32.

`shape` is (H, W) in pixels and `ppd` pixels per degree; parameters of a batch have shape (n,), and
its images (n, H, W).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import ClassVar

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import ArrayLike

from psyprobe._typing import Array, FloatArray, Levels, Size
from psyprobe.errors import InputError
from psyprobe.light.colour import (
    ConeObserver,
    Direction,
    chromaticity,
    cone_observer,
    direction_vector,
    white_xyz,
)
from psyprobe.stimulus import estimate
from psyprobe.stimulus.backend import Backend
from psyprobe.stimulus.certificate import ImageMeasurements, Measurement
from psyprobe.stimulus.estimate import Float64
from psyprobe.stimulus.measuring import Planes, planes_of
from psyprobe.stimulus.parameters import check_keywords, parameter
from psyprobe.stimulus.registry import stimulus_kind
from psyprobe.stimulus.specification import Specification, draw_kind
from psyprobe.stimulus.stimulus import Stimulus
from psyprobe.stimulus.tolerances import (
    STANDARD_ERRORS,
    TOLERANCES,
    roundoff,
    tolerance,
)


def pixel_positions(pixels: int, ppd: float) -> FloatArray:
    """Compute the positions of pixel centres along one axis, deg, ascending from -x to x.

    Parameters
    ----------
    pixels : int
        Number of pixels.
    ppd : float
        Pixels per degree.

    Examples
    --------
    >>> pixel_positions(4, 2.0).tolist()
    [-0.75, -0.25, 0.25, 0.75]
    """
    return (np.arange(pixels) - (pixels - 1) / 2) / ppd


def offsets(
    shape: Size, ppd: float, x: FloatArray, y: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Compute how far columns lie right of a centre, and rows above it, deg.

    Parameters
    ----------
    x, y : ndarray, shape (n,)
        The centre in each image, deg.

    Returns
    -------
    dx, dy : ndarray, shapes (n, W) and (n, H)
    """
    height, width = shape
    dx = pixel_positions(width, ppd) - x[:, None]
    dy = -pixel_positions(height, ppd) - y[:, None]
    return dx, dy


def cos_sin_degrees(angle: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Compute cosine and sine of angles in degrees, exactly 0 and 1 at multiples of 90.

    Parameters
    ----------
    angle : array of float
        deg, any shape.

    Examples
    --------
    >>> [abs(float(value[0])) for value in cos_sin_degrees(np.array([90.0]))]
    [0.0, 1.0]
    """
    quadrant, remainder = np.divmod(np.asarray(angle, float), 90.0)
    cosine = np.cos(np.deg2rad(remainder))
    sine = np.sin(np.deg2rad(remainder))
    odd = quadrant % 2 == 1
    sign = np.where(quadrant % 4 < 2, 1.0, -1.0)
    return np.where(odd, -sine, cosine) * sign, np.where(odd, cosine, sine) * sign


def in_planes(
    change: Array, step: FloatArray, level: FloatArray, backend: Backend
) -> Array:
    """Compute three cone planes `level + step * change` for each image, shape (n, 3, H, W).

    Parameters
    ----------
    change : array, shape (n, H, W)
        Modulation about 0.
    step, level : ndarray, shape (n, 3)
        Value of each plane for a modulation of 1, and of 0.
    backend : Backend
        Where `change` is.
    """
    step = backend.array(step[..., None, None])
    level = backend.array(level[..., None, None])
    xp = array_namespace(change)
    shape = (len(change), 3, *change.shape[1:])
    planes = xp.empty(shape, dtype=change.dtype, device=change.device)
    # An image at a time stays in the processor's cache; a GPU takes all at once.
    chunk_size = 1 if backend.device is None else len(change)
    for start in range(0, len(change), chunk_size):
        chunk = slice(start, start + chunk_size)
        xp.multiply(change[chunk, None], step[chunk], out=planes[chunk])
        planes[chunk] += level[chunk]
    return planes


def round_window(
    shape: Size,
    ppd: float,
    *,
    x: FloatArray,
    y: FloatArray,
    radius: FloatArray,
    edge: FloatArray,
) -> FloatArray:
    """Draw discs of unit height with a raised-cosine edge, shape (n, H, W).

    The disc is 1 up to ``radius - edge/2``, 0 from ``radius + edge/2`` on and 1/2 at `radius`; an
    edge of 0 makes a hard disc (pixels whose centres lie within the radius).
    """
    dx, dy = offsets(shape, ppd, x, y)
    distance = np.hypot(dx[:, None, :], dy[:, :, None]) - radius[:, None, None]
    width = edge[:, None, None]
    ramp = np.clip(distance / np.where(width > 0, width, 1.0) + 0.5, 0.0, 1.0)
    return np.where(width > 0, 0.5 * (1 + np.cos(np.pi * ramp)), distance <= 0)


@stimulus_kind("uniform")
class Uniform(Specification):
    """A uniform field; parameters as in `psyprobe.uniform`.

    Examples
    --------
    >>> float(Uniform(luminance=50.0).draw().pixels.mean())
    50.0
    """

    chromatic: bool = False
    white: str | tuple[float, float] = "D65"
    observer: str = "cie2006_led_lcd"

    def reference(self) -> Specification:
        """Return the field itself, which has no pattern to remove."""
        return self

    def _draw_pixels(self, backend: Backend) -> tuple[Array, str]:
        """Draw uniform fields, in LMS if they have a colour and else in luminance."""
        values = self.per_image("luminance")[:, None, None, None]
        if self.chromatic:
            values = values * (
                cone_observer(self.observer).from_xyz @ white_xyz(self.white)
            )
        light = backend.array(values)
        pixels = array_namespace(light).tile(light, (1, *self.shape, 1))
        if self.chromatic:
            return pixels.reshape((*self.batch, *self.shape, 3)), "lms"
        return pixels.reshape((*self.batch, *self.shape)), "luminance"

    def measure_planes(self, planes: Planes, measurements: ImageMeasurements) -> None:
        """Measure the level, uniformity and colour of a field."""
        light = planes.light
        measurements.add(
            "mean luminance", self.luminance, light.mean(), "mean over pixels"
        )
        uniformity = light.std() / self.luminance
        measurements.add("uniformity", 0.0, uniformity, "SD over luminance")
        if planes.in_colour:
            cones = planes.cones()
            cast = np.abs(cones - cones.mean(axis=0)).max()
            method = "largest difference between cone contrasts"
            measurements.add("colour cast", 0.0, cast, method)


#: Estimator of the contrast of a kind that does not measure itself.
_OWN_PATTERN = "least squares on {own pattern, 1}"


class Modulation(Specification):
    """A background whose light is modulated along a direction of colour."""

    #: Amplitude of the modulation. Achromatic: Michelson (noise: RMS, disc: Weber). Chromatic: RMS
    #: over the three cone contrasts, the unit of castleCSF.
    contrast: Levels = parameter("1", "Contrast", low=0)
    #: direction, white, observer: As in `psyprobe.gabor`.
    direction: Direction = "achromatic"
    white: str | tuple[float, float] = "D65"
    observer: str = "cie2006_led_lcd"

    #: The modulation of unit contrast is nowhere below minus this; None where only the drawn image
    #: shows it.
    deepest: ClassVar[float | None] = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, numbers in (("direction", 3), ("white", 2)):
            value = getattr(self, name)
            if not isinstance(value, str):
                object.__setattr__(self, name, chromaticity(name, value, numbers))
        self._check_contrast()
        _ = self.cone_contrast

    def _check_contrast(self) -> None:
        """Refuse a contrast above 1, or above 10 where light of another colour allows it."""
        limit = (
            1.0 if self.direction == "achromatic" and self.deepest is not None else 10.0
        )
        allowed = (
            f"contrast is a fraction from 0 to {limit:g}, not a percentage; more would "
            "need negative light"
        )
        self._require("contrast", self.contrast <= limit, allowed)

    @property
    def in_colour(self) -> bool:
        """Tell whether pixels are LMS rather than luminance."""
        return self.direction != "achromatic"

    @property
    def background_lms(self) -> FloatArray:
        """LMS of the background at a luminance of 1 cd/m², shape (3,)."""
        return cone_observer(self.observer).from_xyz @ white_xyz(self.white)

    @property
    def cone_contrast(self) -> FloatArray:
        """Modulation of L, M and S for a unit of contrast, shape (3,)."""
        return _cone_contrast(self.direction, self.white, cone_observer(self.observer))

    @property
    def luminance_share(self) -> float:
        """Modulation of L + M for a unit of contrast: 1 if achromatic, 0 if isoluminant."""
        background = self.background_lms
        share = float(self.cone_contrast[:2] @ background[:2] / background[:2].sum())
        return 0.0 if abs(share) < 1e-14 else share

    def summands(self) -> tuple[Specification, ...]:
        """Return the patterns that this stimulus sums: itself alone."""
        return (self,)

    def reference(self) -> Specification:
        """Return the uniform background, without the pattern."""
        field = Uniform(luminance=self.luminance, ppd=self.ppd, size=self.size)
        if not self.in_colour:
            return field
        return replace(field, chromatic=True, white=self.white, observer=self.observer)

    def bounds(self) -> tuple[FloatArray, str] | None:
        """Compute bounds of each image's light, from full modulation either way."""
        if self.deepest is None:
            return None
        shape = (*self.batch, 1, 1)
        luminance = self.per_image("luminance").reshape(shape)
        contrast = np.abs(self.per_image("contrast"))
        change = contrast.reshape(shape) * np.array([-1.0, 1.0])
        if not self.in_colour:
            return luminance * (1 + change), "luminance"
        modulation = 1 + change[..., None] * self.cone_contrast
        return luminance[..., None] * self.background_lms * modulation, "lms"

    def unit(self) -> FloatArray:
        """Draw the pattern at contrast 1 about 0 for each image of the flattened batch.

        Returns
        -------
        ndarray, shape (n, H, W)
        """
        raise NotImplementedError

    def paint(
        self, amplitude: FloatArray, offset: FloatArray, backend: Backend
    ) -> Array:
        """Draw ``offset + amplitude * unit pattern``, shape (n, H, W).

        A kind that draws faster than by `unit` overrides it.

        Parameters
        ----------
        amplitude, offset : ndarray, shape (n,)
            One value for each image of the flattened batch.
        backend : Backend
            Where to draw.
        """
        images = self.unit() * amplitude[:, None, None] + offset[:, None, None]
        return backend.array(images)

    def factors(
        self, amplitude: FloatArray, offset: FloatArray
    ) -> tuple[FloatArray, FloatArray] | None:
        """Factor the images that `paint` draws into columns, (n, H, k), and rows, (n, k, W).

        A sum of such kinds is one product; None where this kind's patterns are none.
        """
        return None

    def modulation(self, backend: Backend) -> Array:
        """Draw the light's relative change from the background, about 0, shape (..., H, W)."""
        contrast = self.per_image("contrast")
        change = self.paint(contrast, np.zeros_like(contrast), backend)
        return change.reshape((*self.batch, *self.shape))

    def _draw_pixels(self, backend: Backend) -> tuple[Array, str]:
        """Draw the pattern on its background, refusing negative light; say the colour space."""
        luminance = self.per_image("luminance")
        contrast = self.per_image("contrast")
        if self.in_colour:
            level = luminance[:, None] * self.background_lms
            change = self.paint(contrast, np.zeros_like(contrast), backend)
            planes = in_planes(change, level * self.cone_contrast, level, backend)
            pixels = planes.reshape((*self.batch, *planes.shape[1:]))
            pixels = array_namespace(pixels).moveaxis(pixels, -3, -1)
            space = "lms"
        else:
            images = self.paint(contrast * luminance, luminance, backend)
            pixels = images.reshape((*self.batch, *images.shape[1:]))
            space = "luminance"
        if self.deepest is None or space == "lms":
            self._refuse_negative(pixels)
        return pixels, space

    def _refuse_negative(self, pixels: Array) -> None:
        """Refuse pixels that are darker than black."""
        if (darkest := float(pixels.min())) < 0:
            raise InputError(
                f"contrast {np.max(self.contrast):g} would need negative light ({darkest:g}); "
                "lower the contrast, or choose another seed, phase or direction"
            )

    def measure_planes(self, planes: Planes, measurements: ImageMeasurements) -> None:
        """Measure level and contrast, by least squares on the pattern as this kind draws it."""
        unit = self._unit_pattern()
        light = planes.light
        level = self.luminance
        contrast = self.contrast
        depth = contrast * self.luminance_share
        mean = level * (1 + depth * unit.mean())
        measurements.add("mean luminance", mean, light.mean(), "mean over pixels")
        peak = level * (1 + (depth * unit).max())
        measurements.add("peak luminance", peak, light.max(), "largest pixel")
        if contrast == 0 or np.ptp(unit) == 0:
            distortion = planes.pattern.std() / level
            measurements.add("distortion", 0.0, distortion, "SD over background")
            return
        error = measurements.pixel_error(abs(contrast))
        fit = estimate.fit_patterns(planes.pattern, unit[None])
        background = float(fit.background)
        extra = STANDARD_ERRORS * float(fit.gain[-1]) * error / level
        measurements.add("background", level, background, _OWN_PATTERN, extra=extra)
        base = level if planes.in_colour else background
        delivered = float(np.divide(fit.coefficients[0], base))
        # A flat pattern rounds as one pixel, on a display by a few steps of drive.
        slack = STANDARD_ERRORS * float(fit.gain[0]) + 4
        extra = slack * error / (abs(contrast) * level)
        measurements.add_contrast(
            "contrast", contrast, delivered, _OWN_PATTERN, extra=extra
        )
        residual = float(fit.residual) / level
        method = "RMS that the pattern does not explain, over background"
        measurements.add("distortion", 0.0, residual, method, extra=error / level)

    def fit_offsets(
        self,
        planes: Planes,
        measurements: ImageMeasurements,
        steps: Mapping[str, float],
    ) -> OffsetFit:
        """Find how far parameters are off, by least squares on the pattern and its derivatives.

        Parameters
        ----------
        planes, measurements
            As in `measure_planes`.
        steps : mapping of str to float
            By parameter, the change by which its derivative is taken: edges should move by a small
            part of a pixel.
        """
        patterns = [self._unit_pattern()]
        for name, step in steps.items():
            value = getattr(self, name)
            ahead = self._with_numbers({name: value + step})._unit_pattern()
            behind = self._with_numbers({name: value - step})._unit_pattern()
            patterns.append((ahead - behind) / (2 * step))
        fit = estimate.fit_patterns(planes.pattern, np.stack(patterns))
        amplitude = float(fit.coefficients[0])
        error = measurements.pixel_error(abs(self.contrast))
        pixel_error = error / (abs(self.contrast) * self.luminance)
        return OffsetFit(
            self,
            measurements,
            dict(zip(steps, fit.coefficients[1:] / amplitude, strict=True)),
            dict(zip(steps, fit.gain[1:-1] * pixel_error, strict=True)),
            amplitude,
            pixel_error,
        )

    def _unit_pattern(self) -> Float64:
        """Draw the pattern of unit contrast of one image, (H, W)."""
        return np.asarray(self.paint(np.ones(1), np.zeros(1), Backend())[0])

    def measure_image(
        self, image: Float64, measurements: ImageMeasurements
    ) -> list[Measurement]:
        """Measure one image, and the cone contrasts of an image in colour."""
        planes = planes_of(image, self, measurements)
        self.measure_planes(planes, measurements)
        if planes.in_colour and not measurements.display_gain:
            _measure_cones(planes, self, measurements)
        return measurements.entries


@dataclass(frozen=True)
class OffsetFit:
    """How far the parameters of one image are off, as far as its pixels tell."""

    spec: Modulation
    #: The list to add to.
    measurements: ImageMeasurements
    #: Delivered less requested, by parameter.
    offsets: Mapping[str, float]
    #: Standard error of each offset.
    errors: Mapping[str, float]
    #: Light for a pattern of unit contrast, cd/m².
    amplitude: float
    #: Rounding error of a pixel of the pattern of unit contrast.
    pixel_error: float

    def add(
        self, name: str, quantity: str, *, key: str | None = None, scale: float = 1.0
    ) -> None:
        """Add a fitted parameter, times `scale`, to the measurements, against the requested one."""
        requested = getattr(self.spec, name)
        extra = STANDARD_ERRORS * self.errors[name] * scale
        if TOLERANCES[key or quantity].relative:
            extra /= abs(requested * scale)
        self.measurements.add(
            quantity,
            requested * scale,
            (requested + self.offsets[name]) * scale,
            "least squares on {own pattern, its derivatives, 1}",
            key=key,
            extra=extra,
        )


@lru_cache(maxsize=32)
def _cone_contrast(
    direction: Direction, white: str | tuple[float, float], observer: ConeObserver
) -> FloatArray:
    """Compute the LMS contrast of a colour direction on a white, read-only."""
    vector = direction_vector(direction, observer.from_xyz @ white_xyz(white))
    vector.setflags(write=False)
    return vector


#: So many rows of an image at a time stay in the cache, and need no new memory.
_CHUNK_ROWS = 32


def _measure_cones(
    planes: Planes, spec: Modulation, measurements: ImageMeasurements
) -> None:
    """Measure the contrast of each cone class along the direction, and off it."""
    direction = spec.cone_contrast
    sums = np.zeros(4)
    products = np.zeros(4)
    furthest = 0.0
    for start in range(0, spec.shape[0], _CHUNK_ROWS):
        rows = slice(start, start + _CHUNK_ROWS)
        modulation = planes.pattern[rows] / spec.luminance
        cones = planes.cones(rows)
        modulation -= 1
        sums += [*cones.sum(axis=(1, 2)), modulation.sum()]
        products[:3] += cones.reshape(3, -1) @ modulation.ravel()
        products[3] += np.vdot(modulation, modulation)
        cones -= direction[:, None, None] * modulation
        cones *= cones
        furthest = max(furthest, float(np.sqrt(cones.sum(axis=0).max())))
    fitted = next(
        (
            measurement
            for measurement in measurements.entries
            if measurement.quantity in ("contrast", "rms contrast")
        ),
        None,
    )
    # That of noise follows from its density.
    contrast = spec.contrast if fitted is None else fitted.requested or 0.0
    slack = STANDARD_ERRORS * roundoff(measurements.precision) * (1 + abs(contrast))
    if abs(contrast) > 0:
        products -= sums * sums[3] / planes.pattern.size
        delivered = fitted.delivered if fitted else contrast
        method = "least squares on the pattern"
        for name, share, slope in zip(
            "LMS", direction, products[:3] / products[3], strict=True
        ):
            requested = contrast * share
            extra = slack + tolerance("contrast", measurements.precision) * abs(
                requested
            )
            if fitted and fitted.tolerance:
                extra += fitted.tolerance * abs(requested)
            measurements.add(
                f"{name} cone contrast",
                requested,
                delivered * slope,
                method,
                key="cone contrast",
                extra=extra,
            )
    method = "largest distance of a pixel from the line through the background"
    measurements.add("off-direction cone contrast", 0.0, furthest, method, extra=slack)
    if spec.luminance_share == 0:
        extremes = np.array([planes.light.min(), planes.light.max()]) / spec.luminance
        change = np.abs(extremes - 1).max()
        method = f"largest change of L + M of {spec.observer}"
        measurements.add("luminance modulation", 0.0, change, method, extra=slack)


@check_keywords
def uniform(
    *,
    luminance: ArrayLike = 100.0,
    chromatic: bool = False,
    white: str | tuple[float, float] = "D65",
    observer: str = "cie2006_led_lcd",
    ppd: float = 60.0,
    size: int | Size = 224,
    dtype: str = "float64",
    device: str | None = None,
) -> Stimulus:
    """Draw uniform fields.

    Parameters
    ----------
    chromatic : bool
        Draw the field in LMS of `observer` with the chromaticity `white`, as the background of a
        chromatic stimulus.
    luminance, white, observer, ppd, size, dtype, device
        As in `gabor`.

    Examples
    --------
    >>> uniform(luminance=[10.0, 20.0]).luminance.shape
    (2, 224, 224)
    """
    return draw_kind(Uniform, locals())
