"""Images that are judged, as physical light, whatever their numbers were."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from psyprobe._typing import Array
from psyprobe.errors import InputError, unknown_name
from psyprobe.light.colour import cone_observer
from psyprobe.light.display import Display
from psyprobe.stimulus import Specification, Stimulus
from psyprobe.stimulus.estimate import Float64, to_float64
from psyprobe.stimulus.measuring import observer_of
from psyprobe.stimulus.tolerances import precision_of

#: What the numbers of an array can be.
SPACES = ("luminance", "rgb", "xyz", "lms", "linear", "encoded")

_LARGEST_CODE = {"uint8": 255, "uint16": 65535}


@dataclass(frozen=True)
class Light:
    """An image as physical light."""

    #: (..., H, W) in "luminance", (..., H, W, 3) in "rgb" or "lms".
    pixels: Float64
    #: {"luminance", "rgb", "lms"}: What the pixels are now.
    space: str
    #: Column of the tolerance table: the precision in which the array came.
    precision: str
    #: Drive values in [0, 1], if the array was encoded.
    drive: Float64 | None = None
    #: Largest code, of one over which drive values are multiples; 0 for floats.
    codes: int = 0
    #: Cone observer of LMS pixels.
    observer: str = "cie2006_led_lcd"


def read_light(
    image: Stimulus | Array,
    spec: Specification | None,
    space: str | None = None,
    display: Display | None = None,
    precision: str | None = None,
) -> Light:
    """Convert a stimulus or an array (light, drive or codes) to physical light.

    Parameters
    ----------
    image : Stimulus or array
        Channels last or, as tensors often have them, before the rows. Codes (uint8, uint16) are
        "encoded".
    spec : Specification, optional
        What was requested, which distinguishes a batch from channels.
    space : str, optional
        One of `SPACES`: cd/m², linear RGB light in cd/m², XYZ, LMS; "linear" is light as a fraction
        of the display's range, "encoded" its drive value. A stimulus knows its own.
    display : Display, optional
        Needed for "linear" and "encoded".
    precision : str, optional
        As in `assert_calibrated`.
    """
    precision = precision or precision_of(
        image.pixels if isinstance(image, Stimulus) else image
    )
    if isinstance(image, Stimulus):
        if space is not None:
            raise InputError(
                "a stimulus knows its own space; give space only with a bare array"
            )
        return Light(
            to_float64(image.pixels), image.space, precision, observer=image.observer
        )
    if space is None:
        raise InputError(
            f"an array does not say what its numbers are; give space, one of {', '.join(SPACES)}"
        )
    if space not in SPACES:
        raise unknown_name("space", space, SPACES)
    pixels = _channels_last(to_float64(image), spec)
    if spec is None:
        grey = pixels.ndim < 3 or pixels.shape[-1] != 3
    else:
        grey = pixels.shape == (*spec.batch, *spec.shape)
    if space in ("linear", "encoded"):
        if display is None:
            raise InputError(
                f'light of an array in "{space}" depends on the display; give display'
            )
        if grey and display.guns_differ:
            pixels = np.repeat(pixels[..., None], 3, axis=-1)
            grey = False
        light_space = "luminance" if grey else "rgb"
        if space == "linear":
            darkest = darkest_light(display)
            return Light(pixels * display.span + darkest, light_space, precision)
        codes = _largest_code(image)
        drive = pixels / codes if codes else pixels
        return _decode(drive, codes, light_space, precision, spec, display)
    if grey != (space == "luminance"):
        channels = "three channels" if grey else "one channel"
        raise InputError(
            f"an image in {space} has {channels}; this one has shape {pixels.shape}"
        )
    if space == "xyz":
        observer = observer_of(spec)
        lms = np.asarray(pixels @ cone_observer(observer).from_xyz.T)
        return Light(lms, "lms", precision, observer=observer)
    return Light(pixels, space, precision)


def darkest_light(display: Display) -> float | Float64:
    """Compute the light at drive 0, cd/m²: of each gun, shape (3,), where they differ."""
    if display.guns_differ:
        return np.array([gun.floor for gun in display.guns])
    return display.floor


def is_coloured(spec: Specification | None) -> bool:
    """Tell whether a requested stimulus is not grey."""
    return bool(getattr(spec, "in_colour", False) or getattr(spec, "chromatic", False))


def _decode(
    drive: Float64,
    codes: int,
    space: str,
    precision: str,
    spec: Specification | None,
    display: Display,
) -> Light:
    """Decode drive values to light, as one plane of luminance where it is neutral."""
    if drive.size and drive.min() < 0 and drive.max() <= 0:
        raise InputError(
            f"drive goes from {drive.min():g} to {drive.max():g}, and that is black; drive "
            "is 0 to 1, and values in [-1, 1] become that by (v + 1)/2"
        )
    # A display shows nothing darker than at 0, nor brighter than at 1.
    light = np.asarray(
        display.decode(np.clip(drive, 0, None if display.extended else 1))
    )
    codes = codes or (255 if _on_codes(drive) else 0)
    if space == "rgb" and _is_neutral(light, spec, display, codes):
        light = light @ display.rgb_to_xyz[1]
        space = "luminance"
    return Light(light, space, precision, drive, codes)


def _is_neutral(
    light: Float64, spec: Specification | None, display: Display, codes: int
) -> bool:
    """Tell whether light that should be grey is grey on the display.

    The white of a display may differ from that of specifications.
    """
    default_white = display.primaries == "sRGB" and not display.guns_differ
    if spec is None or is_coloured(spec) or default_white:
        return False
    # Two codes are up to 3.2 % of the light apart in eight bits.
    largest_share = 8 / codes if codes else 1e-5
    return bool(np.ptp(light, axis=-1).max() <= largest_share * light.max())


def _largest_code(image: Array) -> int:
    """Return the code of full drive if an image holds codes; 0 if it holds floats."""
    name = str(getattr(image, "dtype", "")).rpartition(".")[2]
    if "int" not in name:
        return 0
    if name not in _LARGEST_CODE:
        raise InputError(
            f"codes of {name} have no agreed largest value; give uint8, uint16, or floats in [0, 1]"
        )
    return _LARGEST_CODE[name]


def _on_codes(drive: Float64) -> bool:
    """Tell whether floats are 8-bit codes over 255."""
    codes = drive * 255
    return bool(np.abs(codes - np.round(codes)).max() < 1e-5)


def _channels_last(pixels: Float64, spec: Specification | None) -> Float64:
    """Move an image's channels from before the rows to behind the columns."""
    if spec is None:
        first = pixels.ndim > 2 and pixels.shape[-3] == 3 and pixels.shape[-1] != 3
        return np.moveaxis(pixels, -3, -1) if first else pixels
    grey = (*spec.batch, *spec.shape)
    if pixels.shape in (grey, (*grey, 3)):
        return pixels
    if pixels.shape == (*spec.batch, 3, *spec.shape):
        return np.moveaxis(pixels, -3, -1)
    batch = f"{spec.batch} images of " if spec.batch else ""
    raise InputError(
        f"the array has shape {pixels.shape}; asked for were {batch}{spec.shape} pixels"
    )
