"""What an image that is judged holds: physical light, whatever its numbers were."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from psyprobe._typing import Array
from psyprobe.errors import InputError, unknown_name
from psyprobe.light.colour import cone_observer
from psyprobe.light.display import Display
from psyprobe.stimulus import Specification, Stimulus
from psyprobe.stimulus.certificate import observer_of, precision_of
from psyprobe.stimulus.estimate import Float64, to_float64

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
    #: Column of the tolerance table: what the array came as.
    precision: str
    #: Drive values in [0, 1] of an encoded array.
    drive: Float64 | None = None
    #: Largest code that drive values are multiples of, one over it apart; 0 for floats.
    codes: int = 0
    #: Cone observer of LMS pixels.
    observer: str = "cie2006_led_lcd"


def read_light(
    image: Stimulus | Array,
    asked: Specification | None,
    space: str | None = None,
    display: Display | None = None,
    precision: str | None = None,
) -> Light:
    """The light of a stimulus or an array.

    Parameters
    ----------
    image : Stimulus or array
        Channels last or, as tensors often have them, before the rows. Codes (uint8, uint16) are
        "encoded".
    asked : Specification, optional
        Tells a batch from channels.
    space : str, optional
        One of `SPACES`: cd/m², linear RGB light in cd/m², XYZ, LMS; "linear" is light as a fraction
        of the display's range, "encoded" its drive value. Not for a stimulus, which knows.
    display : Display, optional
        Needed for "linear" and "encoded".
    precision : str, optional
        As of `assert_calibrated`.
    """
    precision = precision or precision_of(image.pixels if isinstance(image, Stimulus) else image)
    if isinstance(image, Stimulus):
        if space is not None:
            raise InputError("a stimulus knows its own space; give space only with a bare array")
        return Light(to_float64(image.pixels), image.space, precision, observer=image.observer)
    if space is None:
        raise InputError(
            f"an array does not say what its numbers are; give space, one of {', '.join(SPACES)}"
        )
    if space not in SPACES:
        raise unknown_name("space", space, SPACES)
    pixels = _channels_last(to_float64(image), asked)
    grey = (
        pixels.ndim < 3 or pixels.shape[-1] != 3
        if asked is None
        else pixels.shape == (*asked.batch, *asked.shape)
    )
    if space in ("linear", "encoded"):
        if display is None:
            raise InputError(f'light of an array in "{space}" depends on the display; give display')
        if grey and display.guns_differ:
            pixels = np.repeat(pixels[..., None], 3, axis=-1)
            grey = False
        told = "luminance" if grey else "rgb"
        if space == "linear":
            darkest = (
                np.array([gun.floor for gun in display.guns])
                if display.guns_differ
                else display.floor
            )
            return Light(pixels * display.span + darkest, told, precision)
        codes = _largest_code(image)
        drive = pixels / codes if codes else pixels
        if drive.size and drive.min() < 0 and drive.max() <= 0:
            raise InputError(
                f"drive goes from {drive.min():g} to {drive.max():g}, and that is black; drive "
                "is 0 to 1, and values "
                "in [-1, 1] become that by (v + 1)/2"
            )
        # A display shows nothing darker than at 0, nor brighter than at 1.
        light = np.asarray(display.decode(np.clip(drive, 0, None if display.extended else 1)))
        codes = codes or (255 if _on_codes(drive) else 0)
        if told == "rgb" and _is_neutral(light, asked, display, codes):
            light = light @ display.rgb_to_xyz[1]
            told = "luminance"
        return Light(light, told, precision, drive, codes)
    if space != "luminance" and grey:
        raise InputError(
            f"an image in {space} has three channels; this one has shape {pixels.shape}"
        )
    if space == "luminance" and not grey:
        raise InputError(f"a luminance image has one channel; this one has shape {pixels.shape}")
    if space == "xyz":
        observer = observer_of(asked)
        lms = np.asarray(pixels @ cone_observer(observer).from_xyz.T)
        return Light(lms, "lms", precision, observer=observer)
    return Light(pixels, space, precision)


def _is_neutral(light: Float64, asked: Specification | None, display: Display, codes: int) -> bool:
    """Whether a grey that was asked for is grey on a display whose white is not that of
    specifications.
    """
    in_colour = getattr(asked, "in_colour", False) or getattr(asked, "chromatic", False)
    if asked is None or in_colour or (display.primaries == "sRGB" and not display.guns_differ):
        return False
    # Two codes are up to 3.2 % of the light apart in eight bits.
    return bool(np.ptp(light, axis=-1).max() <= (8 / codes if codes else 1e-5) * light.max())


def _largest_code(image: Array) -> int:
    """What stands for full drive where an image holds codes; 0 where it holds floats."""
    name = str(getattr(image, "dtype", "")).rpartition(".")[2]
    if "int" not in name:
        return 0
    if name not in _LARGEST_CODE:
        raise InputError(
            f"codes of {name} have no agreed largest value; give uint8, uint16, or floats in [0, 1]"
        )
    return _LARGEST_CODE[name]


def _on_codes(drive: Float64) -> bool:
    """Whether floats are 8-bit codes over 255."""
    codes = drive * 255
    return bool(np.abs(codes - np.round(codes)).max() < 1e-5)


def _channels_last(pixels: Float64, asked: Specification | None) -> Float64:
    """Channels moved behind the columns, if they are in front of the rows."""
    if asked is None:
        first = pixels.ndim > 2 and pixels.shape[-3] == 3 and pixels.shape[-1] != 3
        return np.moveaxis(pixels, -3, -1) if first else pixels
    if pixels.shape in ((*asked.batch, *asked.shape), (*asked.batch, *asked.shape, 3)):
        return pixels
    if pixels.shape == (*asked.batch, 3, *asked.shape):
        return np.moveaxis(pixels, -3, -1)
    batch = f"{asked.batch} images of " if asked.batch else ""
    raise InputError(
        f"the array has shape {pixels.shape}; asked for were {batch}{asked.shape} pixels"
    )
