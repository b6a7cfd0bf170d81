"""A stimulus as it comes out with one fault: what an image that fails is compared with.

Each fault has been seen in software that people use; ``causes.toml`` names them. Most have no
number of their own: the fault says all. Some have one, such as the resolution that was drawn for,
which is measured in the image.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from psyprobe.errors import InputError
from psyprobe.light.display import Display
from psyprobe.light.transfer import Eotf
from psyprobe.stimulus import Disc, Gabor, Grating, Modulation, Noise, Specification, Stimulus
from psyprobe.stimulus.certificate import Row
from psyprobe.stimulus.estimate import Float64
from psyprobe.stimulus.sines import Sine

if TYPE_CHECKING:
    from psyprobe.testing.light import Light

#: A key of ``causes.toml``, and the light of the stimulus with this fault.
Faulty = tuple[str, Float64]

#: Full width at half height of a Gaussian, in standard deviations.
FULL_WIDTH = 2.3548

#: Transfer functions that are taken for one another.
_EOTFS: tuple[Eotf, ...] = ("srgb", 2.2, 2.4)


@dataclass(frozen=True)
class Asked:
    """One image that was asked for, as light in the space of the image that is judged."""

    spec: Any
    #: Faults of encoding are not looked for without one.
    display: Display | None
    space: str
    #: Whether what is judged went through drive values, which end at 0 and 1.
    driven: bool

    @classmethod
    def of(cls, spec: Specification, light: Light, display: Display | None) -> Asked:
        """What was asked where this image is."""
        return cls(spec, display, light.space, light.drive is not None)

    @cached_property
    def light(self) -> Float64:
        """As asked, shape (H, W) or (H, W, 3)."""
        return self.drawn(self.spec)

    @cached_property
    def background(self) -> Float64:
        """Without the pattern."""
        return self.drawn(self.spec.reference())

    @property
    def is_wave(self) -> bool:
        """Whether it has a carrier with a phase."""
        return isinstance(self.spec, Gabor | Grating)

    def drawn(self, spec: Specification) -> Float64:
        """The light of a stimulus of this field."""
        stimulus = spec.draw()
        if stimulus.space == self.space:
            return np.asarray(stimulus.pixels, dtype=np.float64)
        if stimulus.space == "luminance" and self.space == "lms":
            return np.asarray(np.asarray(stimulus.pixels)[..., None] * self.spec.background_lms)
        return self._in_rgb(stimulus)

    def changed(self, **values: Any) -> Float64 | None:
        """The light with other parameters; None where no stimulus has these."""
        try:
            return self.drawn(replace(self.spec, **values))
        except InputError:
            return None

    def rgb(self) -> Float64:
        """Linear RGB light, or grey."""
        return self.light if self.space == "luminance" else self._in_rgb(self.spec.draw())

    def _in_rgb(self, stimulus: Stimulus) -> Float64:
        light = np.asarray((self.display or Display()).light(stimulus), dtype=np.float64)
        return np.repeat(light[..., None], 3, axis=-1) if light.ndim == 2 else light


def faults(asked: Asked) -> Iterator[Faulty]:
    """The stimulus with each fault that has no number of its own and that it can have."""
    for key, values in _other_values(asked.spec):
        if (changed := asked.changed(**values)) is not None:
            yield key, changed
    yield from _turned_over(asked)
    yield from faults_of_level(asked)


def faults_of_level(asked: Asked) -> Iterator[Faulty]:
    """Of these, those that leave the pattern in its place: of contrast, form and encoding."""
    if isinstance(asked.spec, Modulation):
        for key, factor in _factors(asked):
            yield key, asked.background + factor * (asked.light - asked.background)
    yield from _other_forms(asked)
    if asked.display is not None and asked.space != "lms" and not asked.display.guns_differ:
        yield from _encodings(asked, asked.display)
    if asked.space == "rgb":
        yield "swapped", asked.light[..., ::-1]


def measured_faults(
    asked: Asked, light: Light, rows: Mapping[str, Row]
) -> Iterator[tuple[str, float, Float64]]:
    """The stimulus with each fault that has a number of its own, and that number as the image tells
    it.
    """
    for drawn_for, pixels in _scales(asked, rows):
        yield (
            "resized" if is_resized(asked.spec.ppd / drawn_for) else "wrong_ppd",
            drawn_for,
            pixels,
        )
    for name in ("frequency", "orientation", "phase", "radius", "aspect"):
        if name in rows and not rows[name].passed:
            changed = asked.changed(**{name: rows[name].delivered})
            if changed is not None:
                yield name, rows[name].delivered, changed
    yield from measured_levels(asked, light)


def measured_levels(asked: Asked, light: Light) -> Iterator[tuple[str, float, Float64]]:
    """Of these, those that leave the pattern in its place."""
    wanted = asked.light
    got = light.pixels
    if scale := float(np.vdot(wanted, got) / np.vdot(wanted, wanted)):
        yield "mean", scale, scale * wanted
    shift = float((got - wanted).mean())
    yield "stray", shift, wanted + shift
    change = wanted - asked.background
    if (energy := float(np.vdot(change, change))) > 0:
        factor = float(np.vdot(change, got - asked.background)) / energy
        if factor > 0:
            yield "contrast", factor, asked.background + factor * change
    low = float(got.min())
    high = float(got.max())
    if (
        not isinstance(asked.spec, Disc)
        and low < high
        and (got == low).mean() + (got == high).mean() > 0.01
    ):
        yield "clipped", high, np.clip(wanted, low, high)


def is_resized(ratio: float) -> bool:
    """Whether a frequency over that asked is what the default preprocessing of image models makes
    of it.
    """
    return abs(ratio / 0.875 - 1) < 0.005


def _other_values(spec: Any) -> Iterator[tuple[str, dict[str, float]]]:
    """Parameters that a fault puts in the place of those asked."""
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
        for turn in (np.degrees, np.radians):
            for names in (("orientation",), ("phase",), ("orientation", "phase")):
                yield "radians", {name: float(turn(angles[name])) for name in names}
    if isinstance(spec, Gabor | Grating | Disc):
        half = 0.5 / spec.ppd
        for right, up in ((1, -1), (-1, 1), (1, 1), (-1, -1), (1, 0), (-1, 0), (0, 1), (0, -1)):
            yield "half_pixel", {"x": spec.x + right * half, "y": spec.y + up * half}
        for factor in (0.5, 2.0):
            yield "diameter", {"radius": spec.radius * factor}
    if isinstance(spec, Gabor) or getattr(spec, "window", None) == "gaussian":
        yield "full_width", {"radius": spec.radius / FULL_WIDTH}
        for factor in (np.sqrt(0.5), np.sqrt(2)):
            yield "gaussian_two", {"radius": spec.radius * float(factor)}


def _turned_over(asked: Asked) -> Iterator[Faulty]:
    """The image with its axes exchanged or reversed, and in its negative."""
    light = asked.light
    if light.shape[0] == light.shape[1]:
        yield "transposed", light.swapaxes(0, 1)
    yield "flipped", light[::-1]
    yield "flipped", light[:, ::-1]
    yield "inverted", 2 * asked.background - light


def _factors(asked: Asked) -> Iterator[tuple[str, float]]:
    """By how much a fault multiplies the contrast."""
    spec = asked.spec
    contrast = float(spec.contrast)
    yield "twice", abs(contrast)
    yield "halved", 0.5
    yield "doubled", 2.0
    yield "root_two", float(np.sqrt(2))
    yield "root_two", float(np.sqrt(0.5))
    if asked.is_wave and contrast:
        spread = float(((asked.light - asked.background) / asked.background).std() / abs(contrast))
        if spread > 0 and asked.space == "luminance":
            yield "root_two", 1 / spread
    if isinstance(spec, Disc):
        if contrast < 1:
            yield "weber", 2 / (1 - contrast)
        yield "weber", 1 / (2 + contrast)


def _other_forms(asked: Asked) -> Iterator[Faulty]:
    """A wave of another form, and a disc whose contrast is about the mean."""
    spec = asked.spec
    change = asked.light - asked.background
    if isinstance(spec, Disc):
        yield "weber", asked.background * (1 - spec.contrast) + 2 * change
    if (
        not isinstance(spec, Gabor | Grating)
        or spec.contrast == 0
        or spec.direction != "achromatic"
    ):
        return
    envelope = spec.envelope()
    place = {
        name: getattr(spec, name) for name in ("shape", "ppd", "frequency", "orientation", "x", "y")
    }
    carrier = Sine(**place).image(np.cos(np.radians(spec.phase)), -np.sin(np.radians(spec.phase)))
    patterns = [("square", np.sign(carrier) * envelope)]
    patterns += [
        ("stretched_sine", _stretched(carrier) * envelope),
        ("stretched_sine", _stretched(carrier * envelope)),
    ]
    for key, pattern in patterns:
        yield (
            key,
            asked.background
            * (1 + spec.contrast * (pattern[..., None] if change.ndim == 3 else pattern)),
        )


def _stretched(pattern: Float64) -> Float64:
    """A pattern whose smallest value is -1 and whose largest is 1."""
    middle = (pattern.max() + pattern.min()) / 2
    half = float(np.ptp(pattern)) / 2
    return np.asarray((pattern - middle) / half) if half > 1e-9 else pattern


def _encodings(asked: Asked, display: Display) -> Iterator[Faulty]:
    """Light that a display makes of drive values that a fault makes of the light asked for."""
    light = asked.rgb()
    span = display.span

    def shown(drive: Float64) -> Float64:
        return np.asarray(display.decode(np.clip(drive, 0, None if display.extended else 1)))

    relative = np.clip((light - display.floor) / span, 0, None)
    drive = encoded(light, display)
    if asked.space == "luminance":
        pattern = light / asked.spec.luminance
        grey = float(encoded(np.full((1, 1), asked.spec.luminance), display)[0, 0])
        for base in (grey, 0.5):
            yield "codes", shown(base * pattern)
        yield "range", shown(pattern - 1)
        yield "range", span * (pattern - 1) + display.floor
        yield "range", pattern - 1
    yield "range", shown(2 * drive - 1)
    yield "range", shown((drive + 1) / 2)
    yield "range", span * (2 * relative - 1) + display.floor
    yield "range", span * (relative + 1) / 2 + display.floor
    yield "not_encoded", shown(relative)
    yield "encoded_twice", shown(encoded(drive * span + display.floor, display))
    again = np.asarray(display.decode(np.clip(relative, 0, None)))
    yield "decoded", shown(np.clip((again - display.floor) / span, 0, None))
    for eotf in _EOTFS:
        if eotf != display.eotf:
            yield "other_gamma", shown(encoded(light, replace(display, eotf=eotf)))
    ways: tuple[dict[str, Any], ...] = (
        {"black": 0.0, "ambient": 0.0},
        {"black": 0.0},
        {"ambient": 0.0},
    )
    for ignored in ways:
        if any(getattr(display, name) for name in ignored):
            yield "black_ignored", shown(encoded(light, replace(display, **ignored)))
    yield "clipped", np.clip(light, display.floor, display.ceiling)


def encoded(light: Float64, display: Display) -> Float64:
    """Drive in float64 of linear RGB light or grey, without an upper end; what is too dark gets
    0.
    """
    endless = replace(display, extended=True)
    drive = np.asarray(endless.encode(np.maximum(light, display.floor), dtype="float64"))
    return np.asarray(drive[..., 0])


def _scales(asked: Asked, rows: Mapping[str, Row]) -> Iterator[tuple[float, Float64]]:
    """Pixels per degree for which it may have been drawn, and its light then."""
    spec = asked.spec
    if isinstance(spec, Noise):
        return
    ratio = 1.0
    if "frequency" in rows and not rows["frequency"].passed:
        ratio = rows["frequency"].delivered / spec.frequency
    elif isinstance(spec, Disc) and "radius" in rows and not rows["radius"].passed:
        ratio = spec.radius / rows["radius"].delivered if rows["radius"].delivered else 1.0
    if ratio > 0 and ratio != 1:
        drawn_for = spec.ppd / ratio
        if (light := asked.changed(ppd=drawn_for)) is not None:
            yield drawn_for, light
