"""Measuring images: from pixels of any origin to the certificate of a specification."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from array_api_compat import array_namespace

from psyprobe._typing import Array
from psyprobe.errors import InputError
from psyprobe.light.colour import cone_observer, direction_vector, white_xyz
from psyprobe.light.display import Display
from psyprobe.stimulus.certificate import (
    Certificate,
    ImageMeasurements,
    Measurement,
    worst_measurements,
)
from psyprobe.stimulus.estimate import Float64, to_float64
from psyprobe.stimulus.tolerances import precision_of

if TYPE_CHECKING:
    from psyprobe.stimulus.specification import Specification


def observer_of(spec: Specification | None) -> str:
    """Name the cone observer that a specification refers to."""
    return str(getattr(spec, "observer", "cie2006_led_lcd"))


@dataclass(frozen=True)
class Planes:
    """One image as the quantities that estimators work on, (H, W) each."""

    #: Light along the direction that was requested: ``luminance * (1 + modulation)``, cd/m².
    pattern: Float64
    #: Luminance (for the named observer, L + M, if the image has colour), cd/m².
    light: Float64
    #: LMS of the image, (3, H, W), and of its background, (3, 1, 1); None unless the specification
    #: states the chromaticity of the background.
    lms: Float64 | None = None
    background: Float64 | None = None

    @property
    def in_colour(self) -> bool:
        """Tell whether there are cone contrasts."""
        return self.lms is not None

    def cones(self, rows: slice = slice(None)) -> Float64:
        """Compute the cone contrasts (L, M, S) of some rows, shape (3, h, W)."""
        assert self.lms is not None and self.background is not None
        contrasts = self.lms[:, rows] / self.background
        contrasts -= 1
        return np.asarray(contrasts)


def planes_of(image: Float64, spec: Any, measurements: ImageMeasurements) -> Planes:
    """Separate an image into its luminance pattern and its cone contrasts.

    There is LMS only where the specification states the chromaticity of its background.
    """
    space = measurements.space
    display = measurements.display
    if not hasattr(spec, "white"):
        light = luminance_of(image, space, spec, display)
        return Planes(light, light)
    direction = getattr(spec, "direction", "achromatic")
    if space == "luminance":
        if direction != "achromatic" or getattr(spec, "chromatic", False):
            raise InputError(
                f"{spec!r} has colour, and a luminance image has none: give lms or rgb"
            )
        return Planes(image, image)
    lms = to_lms(image, space, spec, display)
    background = cone_observer(spec.observer).from_xyz @ white_xyz(spec.white)
    planes = np.moveaxis(lms, -1, 0)
    projection = direction_vector(direction, background) / 3
    pattern = np.einsum("k,kij->ij", projection / background, planes)
    pattern += spec.luminance * (1 - projection.sum())
    light = planes[0] + planes[1]
    light /= background[:2].sum()
    background_lms = (background * spec.luminance)[:, None, None]
    return Planes(pattern, np.asarray(light), planes, background_lms)


def to_lms(
    image: Float64, space: str, spec: Specification, display: Display | None
) -> Float64:
    """Convert LMS or linear RGB light to LMS of the observer that the specification refers to."""
    if space == "lms":
        return image
    rgb_to_xyz = (display or Display()).rgb_to_xyz
    rgb_to_lms = cone_observer(observer_of(spec)).from_xyz @ rgb_to_xyz
    return np.asarray(image @ rgb_to_lms.T)


def luminance_of(
    image: Array, space: str, spec: Specification, display: Display | None = None
) -> Array:
    """Compute the CIE 1931 luminance of a numpy array or torch tensor."""
    if space == "luminance":
        return image
    if space == "rgb":
        to_xyz = (display or Display()).rgb_to_xyz
    else:
        to_xyz = cone_observer(observer_of(spec)).to_xyz
    xp = array_namespace(image)
    return image @ xp.asarray(to_xyz[1], dtype=image.dtype, device=image.device)


def certify(
    pixels: Array,
    space: str,
    spec: Specification,
    *,
    precision: str | None = None,
    display: Display | None = None,
    decoded: bool = False,
) -> Certificate:
    """Measure pixels of any origin against the specification that they should follow.

    Parameters
    ----------
    pixels : array, shape (..., H, W) or (..., H, W, 3)
        In the units of `space`; leading dimensions as the batch of the specification.
    space : {"luminance", "lms", "rgb"}
        cd/m²; LMS of the specification's observer; or linear RGB light in cd/m² (of sRGB primaries
        without a display).
    spec : Specification
        What was requested.
    precision : str, optional
        Column of the tolerance table; by default that of the dtype of the pixels.
    display : Display, optional
        As in `Stimulus.measure`.
    decoded : bool
        Whether this light comes from drive values: then it is in gamut, and the display only gives
        its primaries.
    """
    precision = precision or precision_of(pixels)
    measurements = measure_images(pixels, space, spec, precision, display)
    if display is not None and not decoded:
        measurements += _measure_on_display(pixels, space, spec, display)
    return Certificate(measurements, repr(spec), precision, math.prod(spec.batch))


#: So many pixels of a batch are measured at once.
_MOST_PIXELS = 2**20


def measure_images(
    pixels: Array,
    space: str,
    spec: Specification,
    precision: str,
    display: Display | None,
    *,
    display_gain: float = 0.0,
    refined: bool = True,
) -> tuple[Measurement, ...]:
    """Measure every image of a batch, and keep the worst measurement of each quantity.

    Parameters
    ----------
    pixels, space, spec, precision, display
        As in `certify`.
    display_gain, refined
        As in `ImageMeasurements`. Light that went through drive values is measured in levels and
        contrasts only: all else was measured on the light as it was drawn.
    """
    images = pixels if hasattr(pixels, "reshape") else to_float64(pixels)
    shape = spec.extent if space == "luminance" else (*spec.extent, 3)
    dimensions = len(shape)
    if tuple(images.shape[-dimensions:]) != shape:
        raise InputError(
            f"the image has shape {tuple(images.shape)}; {spec!r} in {space} has shape "
            f"{(*spec.batch, *shape)}"
        )
    batch = tuple(images.shape[:-dimensions])
    if batch != spec.batch:
        raise InputError(f"{batch} images do not go with {spec.batch} specifications")
    images = images.reshape(-1, *shape)
    parts = spec.singles()
    if space == "luminance":
        # Widened to float64, all images of a batch would leave the cache.
        parts = spec.measured_together(max(1, _MOST_PIXELS // math.prod(spec.extent)))
    measurements: list[Measurement] = []
    start = 0
    for part in parts:
        indices = range(start, start + math.prod(part.batch))
        start = indices.stop
        group = to_float64(images[indices.start : indices.stop])
        if not (group.reshape(len(indices), -1).max(axis=-1) > 0).all():
            raise InputError(f"the image is black; {spec!r} has light everywhere")
        collected = ImageMeasurements(
            part.luminance,
            precision,
            space,
            display,
            display_gain,
            refined and not display_gain,
            indices if len(images) > 1 else (None,),
        )
        # An image that is far from what was requested may have no mean to divide by: its
        # quantities are infinite, and fail.
        with np.errstate(divide="ignore", invalid="ignore"):
            measurements += part.measure_image(
                group.reshape(*part.batch, *shape), collected
            )
    return worst_measurements(measurements)


def _measure_on_display(
    pixels: Array, space: str, spec: Specification, display: Display
) -> tuple[Measurement, ...]:
    """Measure the light that a display emits for an image, and how much leaves its gamut."""
    observer = observer_of(spec)
    gamut = display.gamut(pixels, space, observer)
    displayed = displayed_light(pixels, space, observer, display)
    measurements = measure_images(
        displayed.light,
        displayed.space,
        spec,
        "float32",
        display,
        display_gain=display_gain(
            display, displayed.lowest_drive, displayed.highest_drive
        ),
    )
    in_gamut = gamut_measurements(display, gamut.values, gamut.outside, gamut.margin)
    return (*in_gamut, *displayed_measurements(measurements))


@dataclass(frozen=True)
class DisplayedLight:
    """Light that a display shows, with the range of the drive values that it needs."""

    light: Float64
    #: {"luminance", "rgb"}: What the light is.
    space: str
    lowest_drive: float
    highest_drive: float


def displayed_light(
    pixels: Array, space: str, observer: str, display: Display
) -> DisplayedLight:
    """Compute the light a display emits for pixels, by encoding them to float32 drive and back."""
    drive = display.encode(pixels, space=space, observer=observer, clip=True)
    grey = space == "luminance" and not display.guns_differ
    values = to_float64(drive[..., 0] if grey else drive)
    light = np.asarray(display.decode(values))
    if space == "luminance" and not grey:
        # Guns that differ show a grey of their own white.
        light = light @ display.rgb_to_xyz[1]
        grey = True
    displayed_space = "luminance" if grey else "rgb"
    return DisplayedLight(
        light, displayed_space, float(values.min()), float(values.max())
    )


def gamut_measurements(
    display: Display, values: int, outside: int, margin: float
) -> list[Measurement]:
    """Build measurements of how many values leave a display's gamut, and the others' margin."""
    counted = f"count of {values} values outside {display.floor:.6g} to {display.ceiling:.6g} cd/m²"
    distance = "distance to the nearer limit over the range"
    return [
        Measurement(
            "values outside gamut", "", 0.0, float(outside), 0.0, False, counted
        ),
        Measurement("gamut margin", "", None, margin, None, False, distance),
    ]


#: Quantities that are worth measuring again on the light that a display shows.
_QUANTITIES_ON_DISPLAY = ("background", "mean luminance", "contrast", "rms contrast")


def displayed_measurements(measurements: Iterable[Measurement]) -> list[Measurement]:
    """Rename measurements of displayed light to "shown ...", dropping those not worth repeating."""
    return [
        replace(
            measurement,
            quantity=f"shown {measurement.quantity}",
            estimator=f"{measurement.estimator}, after encoding to float32 drive and decoding",
        )
        for measurement in measurements
        if measurement.quantity in _QUANTITIES_ON_DISPLAY
    ]


def display_gain(display: Display, lowest_drive: float, highest_drive: float) -> float:
    """Compute how much a relative change of drive changes light, relative to sRGB.

    It is over 4, below which sRGB stays, and at least 1.
    """
    if display.guns_differ:
        return max(
            display_gain(gun, lowest_drive, highest_drive) for gun in display.guns
        )
    drive = np.linspace(max(lowest_drive, 1e-3), max(highest_drive, 2e-3), 513)
    light = np.asarray(display.decode(drive))
    change = np.asarray(display.decode(drive * (1 + 1e-6))) / light - 1
    return float(max(1.0, change.max() / 1e-6 / 4))
