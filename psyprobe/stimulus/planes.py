"""One image as the quantities that estimators work on: light, and contrast along the direction that was asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from psyprobe.errors import InputError
from psyprobe.light.colour import cone_observer, direction_vector, white_xyz
from psyprobe.light.display import Display
from psyprobe.stimulus.estimate import Float64

if TYPE_CHECKING:
    from psyprobe.stimulus.specification import Specification


def observer_of(spec: Specification) -> str:
    """Name of the cone observer that a specification refers to."""
    return str(getattr(spec, "observer", "cie2006_led_lcd"))


@dataclass(frozen=True)
class Planes:
    """One image as the quantities that estimators work on, (H, W) each."""

    #: Light along the direction that was asked: ``luminance * (1 + modulation)``, cd/m².
    pattern: Float64
    #: Luminance (of the named observer, L + M, if the image has colour), cd/m².
    light: Float64
    #: Cone contrasts, shape (3, H, W).
    cones: Float64 | None = None


def planes_of(image: Float64, space: str, spec: Any, display: Display | None) -> Planes:
    """The planes of an image of a background with a chromaticity and perhaps a direction."""
    direction = getattr(spec, "direction", "achromatic")
    if space == "luminance":
        if direction != "achromatic" or getattr(spec, "chromatic", False):
            raise InputError(f"{spec!r} has colour, and a luminance image has none: give lms or rgb")
        return Planes(image, image)
    lms = to_lms(image, space, spec, display)
    background = cone_observer(spec.observer).from_xyz @ white_xyz(spec.white)
    cones = np.moveaxis(lms / (background * spec.luminance) - 1, -1, 0)
    along = np.tensordot(direction_vector(direction, background) / 3, cones, axes=1)
    light = lms[..., :2].sum(axis=-1) / background[:2].sum()
    return Planes(np.asarray(spec.luminance * (1 + along)), np.asarray(light), np.asarray(cones))


def to_lms(image: Float64, space: str, spec: Specification, display: Display | None) -> Float64:
    """LMS of the observer that the specification refers to."""
    if space == "lms":
        return image
    rgb_to_xyz = (display or Display()).rgb_to_xyz
    return np.asarray(image @ (cone_observer(observer_of(spec)).from_xyz @ rgb_to_xyz).T)


def luminance_of(image: Float64, space: str, spec: Specification, display: Display | None) -> Float64:
    """CIE 1931 luminance."""
    if space == "rgb":
        return np.asarray(image @ (display or Display()).rgb_to_xyz[1])
    return np.asarray(image @ cone_observer(observer_of(spec)).to_xyz[1])
