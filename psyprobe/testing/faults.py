"""Stimuli as they come out with one fault: what an image that fails is compared with.

Each fault has been seen in software that people use; ``causes.toml`` names them. Most have no
number: the fault says all. Some have one, such as the resolution for which the image was drawn,
which is measured in the image.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from psyprobe.errors import InputError
from psyprobe.files.json_types import JsonObject
from psyprobe.light.display import Display
from psyprobe.light.transfer import Eotf, drive_of_light
from psyprobe.stimulus import (
    Disc,
    Gabor,
    Grating,
    Modulation,
    Noise,
    Specification,
    Stimulus,
)
from psyprobe.stimulus.certificate import Measurement
from psyprobe.stimulus.estimate import Float64
from psyprobe.stimulus.sines import Sine
from psyprobe.testing.light import darkest_light, is_coloured

if TYPE_CHECKING:
    from psyprobe.testing.light import Light


class Fault(NamedTuple):
    """A fault, and the stimulus with it."""

    #: A key of ``causes.toml``; of a fault with a number, or the name of a parameter.
    key: str
    light: Float64
    #: The number that was measured in the image; NaN for a fault without one.
    number: float = math.nan


#: Full width at half height of a Gaussian, in standard deviations.
FULL_WIDTH = 2.3548

#: Parameters of a wave that are measured by their own names.
WAVE_PARAMETERS = ("frequency", "orientation", "phase", "radius", "aspect")

#: Transfer functions that are taken for one another.
_EOTFS: tuple[Eotf, ...] = ("srgb", 2.2, 2.4)


@dataclass(frozen=True)
class ExpectedImage:
    """One image that was requested, as light in the space of the image that is judged."""

    spec: Any
    #: Faults of encoding are not looked for without a display.
    display: Display | None
    space: str
    #: Largest code of the drive values of the image that is judged; 0 without codes.
    codes: int

    @classmethod
    def like(
        cls, light: Light, spec: Specification, display: Display | None
    ) -> ExpectedImage:
        """Build the requested image in the colour space of a given one."""
        return cls(spec, display, light.space, light.codes)

    @cached_property
    def light(self) -> Float64:
        """The image as requested, shape (H, W) or (H, W, 3)."""
        return self.draw(self.spec)

    @cached_property
    def background(self) -> Float64:
        """The image without the pattern."""
        return self.draw(self.spec.reference())

    @cached_property
    def change(self) -> Float64:
        """The image less its background."""
        return np.asarray(self.light - self.background)

    @property
    def is_wave(self) -> bool:
        """Tell whether the stimulus has a carrier with a phase."""
        return isinstance(self.spec, Gabor | Grating)

    def draw(self, spec: Specification) -> Float64:
        """Draw the light of another stimulus of the same field."""
        stimulus = spec.draw()
        if stimulus.space == self.space:
            return np.asarray(stimulus.pixels, dtype=np.float64)
        if stimulus.space == "luminance" and self.space == "lms":
            return np.asarray(
                np.asarray(stimulus.pixels)[..., None] * self.spec.background_lms
            )
        return self._rgb_light(stimulus)

    def shown(self, light: Float64) -> Float64:
        """Convert a display's light to the image's space, grey where it can be."""
        if self.space == "luminance" and light.ndim == 3:
            return np.asarray(light @ (self.display or Display()).rgb_to_xyz[1])
        return light

    def changed(self, **values: Any) -> Float64 | None:
        """Draw the light with other parameters; None where no stimulus has these."""
        try:
            return self.draw(replace(self.spec, **values))
        except InputError:
            return None

    def rgb(self) -> Float64:
        """Return the requested image as linear RGB light, or as grey."""
        return (
            self.light
            if self.space == "luminance"
            else self._rgb_light(self.spec.draw())
        )

    def _rgb_light(self, stimulus: Stimulus) -> Float64:
        """Convert a stimulus to linear light on the display, grey in three equal channels."""
        light = np.asarray(
            (self.display or Display()).light(stimulus), dtype=np.float64
        )
        return np.repeat(light[..., None], 3, axis=-1) if light.ndim == 2 else light


def faults(expected: ExpectedImage) -> Iterator[Fault]:
    """Iterate over drawings of the stimulus with each fault that needs no number."""
    for key, values in _other_values(expected.spec):
        if (changed := expected.changed(**values)) is not None:
            yield Fault(key, changed)
    yield from _turned_over(expected)
    yield from faults_of_level(expected)


def faults_of_level(expected: ExpectedImage) -> Iterator[Fault]:
    """Iterate over drawings of the stimulus with each fault of contrast, form and encoding.

    They leave the pattern in its place.
    """
    if isinstance(expected.spec, Modulation):
        for key, factor in _contrast_factors(expected):
            yield Fault(key, expected.background + factor * expected.change)
    yield from _other_forms(expected)
    display = expected.display
    if display is not None and expected.space != "lms":
        yield from _encodings(expected, display)
    if expected.space == "rgb":
        yield Fault("swapped", expected.light[..., ::-1])


def measured_faults(
    expected: ExpectedImage, light: Light, measurements: Mapping[str, Measurement]
) -> Iterator[Fault]:
    """Iterate over drawings of the stimulus with each fault as measured in the image."""
    yield from _other_scales(expected, measurements)
    for name in WAVE_PARAMETERS:
        if has_failed(measurements, name):
            value = measurements[name].delivered
            changed = expected.changed(**{name: value})
            if changed is not None:
                yield Fault(name, changed, value)
    yield from measured_levels(expected, light)


def measured_levels(expected: ExpectedImage, light: Light) -> Iterator[Fault]:
    """Iterate over drawings with each measured fault that leaves the pattern in place."""
    requested = expected.light
    delivered = light.pixels
    if scale := float(np.vdot(requested, delivered) / np.vdot(requested, requested)):
        yield Fault("mean", scale * requested, scale)
    shift = float((delivered - requested).mean())
    yield Fault("stray", requested + shift, shift)
    change = expected.change
    if (energy := float(np.vdot(change, change))) > 0:
        factor = float(np.vdot(change, delivered - expected.background)) / energy
        if factor > 0:
            yield Fault("contrast", expected.background + factor * change, factor)
    if isinstance(expected.spec, Disc):
        return
    low = float(delivered.min())
    high = float(delivered.max())
    if low < high and (delivered == low).mean() + (delivered == high).mean() > 0.01:
        yield Fault("clipped", np.clip(requested, low, high), high)


def has_failed(measurements: Mapping[str, Measurement], quantity: str) -> bool:
    """Tell whether a quantity was measured and is not within its tolerance."""
    return quantity in measurements and not measurements[quantity].passed


def is_resized(ratio: float) -> bool:
    """Tell whether a frequency is off by the ratio of a usual resize, such as 256 to 224 px."""
    return abs(ratio / 0.875 - 1) < 0.005


def _other_values(spec: Any) -> Iterator[tuple[str, dict[str, float]]]:
    """Iterate over faults, each with the parameters that it replaces."""
    for pixels in {pixels for pixels in spec.shape if pixels > 1}:
        yield "both_ends", {"ppd": spec.ppd * (pixels - 1) / pixels}
    if isinstance(spec, Gabor | Grating):
        for side in set(spec.field):
            yield "cycles_per_image", {"frequency": spec.frequency / side}
        yield "mirrored", {"orientation": -spec.orientation}
        yield "turned", {"orientation": spec.orientation + 90}
        yield "sine_phase", {"phase": spec.phase - 90}
        yield "sine_phase", {"phase": spec.phase + 90}
        angles = {"orientation": spec.orientation, "phase": spec.phase}
        for convert in (np.degrees, np.radians):
            converted = {name: float(convert(angle)) for name, angle in angles.items()}
            yield "radians", {"orientation": converted["orientation"]}
            yield "radians", {"phase": converted["phase"]}
            yield "radians", converted
    if isinstance(spec, Gabor | Grating | Disc):
        half = 0.5 / spec.ppd
        for right, up in itertools.product((-1, 0, 1), repeat=2):
            if right or up:
                place = {"x": spec.x + right * half, "y": spec.y + up * half}
                yield "half_pixel", place
        for factor in (0.5, 2.0):
            yield "diameter", {"radius": spec.radius * factor}
    if isinstance(spec, Gabor) or getattr(spec, "window", None) == "gaussian":
        yield "full_width", {"radius": spec.radius / FULL_WIDTH}
        for factor in (np.sqrt(0.5), np.sqrt(2)):
            yield "gaussian_two", {"radius": spec.radius * float(factor)}


def _turned_over(expected: ExpectedImage) -> Iterator[Fault]:
    """Iterate over the image with axes exchanged or reversed, and its negative."""
    light = expected.light
    if light.shape[0] == light.shape[1]:
        yield Fault("transposed", light.swapaxes(0, 1))
    yield Fault("flipped", light[::-1])
    yield Fault("flipped", light[:, ::-1])
    yield Fault("inverted", 2 * expected.background - light)


def _contrast_factors(expected: ExpectedImage) -> Iterator[tuple[str, float]]:
    """Iterate over faults with the factor by which each multiplies contrast."""
    spec = expected.spec
    contrast = float(spec.contrast)
    yield "twice", abs(contrast)
    yield "halved", 0.5
    yield "doubled", 2.0
    yield "root_two", float(np.sqrt(2))
    yield "root_two", float(np.sqrt(0.5))
    if expected.is_wave and contrast:
        deviation = (expected.change / expected.background).std()
        spread = float(deviation / abs(contrast))
        if spread > 0 and expected.space == "luminance":
            yield "root_two", 1 / spread
    if isinstance(spec, Disc):
        if contrast < 1:
            yield "weber", 2 / (1 - contrast)
        yield "weber", 1 / (2 + contrast)


def _other_forms(expected: ExpectedImage) -> Iterator[Fault]:
    """Iterate over waves of another form, and a disc whose contrast is about the mean."""
    spec = expected.spec
    background = expected.background
    change = expected.change
    if isinstance(spec, Disc):
        yield Fault("weber", background * (1 - spec.contrast) + 2 * change)
    if not expected.is_wave or spec.contrast == 0 or spec.direction != "achromatic":
        return
    envelope = spec.envelope()
    names = ("shape", "ppd", "frequency", "orientation", "x", "y")
    wave = Sine(**{name: getattr(spec, name) for name in names})
    phase = np.radians(spec.phase)
    carrier = wave.image(np.cos(phase), -np.sin(phase))
    patterns = [
        ("square", np.sign(carrier) * envelope),
        ("stretched_sine", _stretched(carrier) * envelope),
        ("stretched_sine", _stretched(carrier * envelope)),
    ]
    for key, pattern in patterns:
        if change.ndim == 3:
            pattern = pattern[..., None]
        yield Fault(key, background * (1 + spec.contrast * pattern))


def _stretched(pattern: Float64) -> Float64:
    """Stretch a pattern to values from -1 to 1."""
    middle = (pattern.max() + pattern.min()) / 2
    half = float(np.ptp(pattern)) / 2
    return np.asarray((pattern - middle) / half) if half > 1e-9 else pattern


def _encodings(expected: ExpectedImage, display: Display) -> Iterator[Fault]:
    """Iterate over a display's light from drive values with each fault of encoding."""
    light = expected.rgb()
    if display.guns_differ and light.ndim == 2:
        light = np.repeat(light[..., None], 3, axis=-1)
    span = display.span
    floor = darkest_light(display)
    ceiling = np.inf if display.extended else span + floor
    relative = np.clip((light - floor) / span, 0, None)
    lights = [
        ("range", span * (2 * relative - 1) + floor),
        ("range", span * (relative + 1) / 2 + floor),
        ("clipped", np.clip(light, floor, ceiling)),
    ]
    drives = [
        *_wrong_curves(light, display),
        *_wrong_levels(light, display),
    ]
    if not is_coloured(expected.spec):
        pattern = light / expected.spec.luminance
        background = np.full_like(light[:1, :1], expected.spec.luminance)
        grey = encode_linear(background, display)
        drives += [("codes", grey * pattern), ("codes", 0.5 * pattern)]
        drives.append(("range", pattern - 1))
        lights += [("range", span * (pattern - 1) + floor), ("range", pattern - 1)]
    for key, light in lights:
        yield Fault(key, expected.shown(light))
    largest_drive = None if display.extended else 1
    for key, drive in drives:
        shown_drive = np.clip(drive, 0, largest_drive)
        if expected.codes:
            # As most programs round: this tells faults apart whose light is a code apart.
            shown_drive = np.rint(shown_drive * expected.codes) / expected.codes
        light = np.asarray(display.decode(shown_drive))
        yield Fault(key, expected.shown(light))


def _wrong_curves(light: Float64, display: Display) -> Iterator[tuple[str, Float64]]:
    """Iterate over drive encoded without a curve, twice, or by another display's curve."""
    span = display.span
    floor = darkest_light(display)
    relative = np.clip((light - floor) / span, 0, None)
    drive = encode_linear(light, display)
    if display.eotf != "linear":
        yield "not_encoded", relative
        yield "not_encoded", light / (span + floor)
        yield "encoded_twice", encode_linear(drive * span + floor, display)
        decoded = np.asarray(display.decode(relative))
        yield "decoded", np.clip((decoded - floor) / span, 0, None)
    for eotf in _EOTFS:
        first = drive_of_light(relative.copy(), eotf)
        if display.eotf != "linear":
            # A picture in sRGB that goes through a calibrated table, or the reverse.
            yield "encoded_twice", encode_linear(first * span + floor, display)
            yield "encoded_twice", drive_of_light(drive.copy(), eotf)
        if eotf != display.eotf:
            yield "other_gamma", first
            yield "other_gamma", drive_of_light(light / (span + floor), eotf)
    if display.guns_differ:
        for gun in range(3):
            yield "other_gamma", drive[..., [gun] * 3]
        yield "swapped", drive[..., ::-1]


def _wrong_levels(light: Float64, display: Display) -> Iterator[tuple[str, Float64]]:
    """Iterate over drive encoded for a black at 0 light, or for a range from -1 to 1."""
    drive = encode_linear(light, display)
    yield "range", 2 * drive - 1
    yield "range", (drive + 1) / 2
    for names in (("black", "ambient"), ("black",), ("ambient",)):
        if any(getattr(display, name) for name in names):
            values: JsonObject = dict.fromkeys(names, 0.0)
            yield "black_ignored", encode_linear(light, replace(display, **values))


def encode_linear(light: Float64, display: Display) -> Float64:
    """Encode linear light to float64 drive, without an upper limit.

    What is too dark for the display gets 0. Where guns differ, the last axis is theirs.
    """
    if display.guns_differ:
        channels = np.moveaxis(light, -1, 0)
        drives = map(encode_linear, channels, display.guns)
        return np.stack(list(drives), axis=-1)
    endless = replace(display, extended=True)
    drive = np.asarray(
        endless.encode(np.maximum(light, display.floor), dtype="float64")
    )
    return np.asarray(drive[..., 0])


def _other_scales(
    expected: ExpectedImage, measurements: Mapping[str, Measurement]
) -> Iterator[Fault]:
    """Iterate over drawings of the stimulus at other, likely pixels per degree."""
    spec = expected.spec
    if isinstance(spec, Noise):
        return
    ratio = 1.0
    if has_failed(measurements, "frequency"):
        ratio = measurements["frequency"].delivered / spec.frequency
    elif isinstance(spec, Disc) and has_failed(measurements, "radius"):
        ratio = spec.radius / (measurements["radius"].delivered or spec.radius)
    if ratio > 0 and ratio != 1:
        ppd = spec.ppd / ratio
        key = "resized" if is_resized(spec.ppd / ppd) else "wrong_ppd"
        if (light := expected.changed(ppd=ppd)) is not None:
            yield Fault(key, light, ppd)
