"""From an array of any kind to light in cd/m², by what its numbers are said to be."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from psyprobe._typing import Array
from psyprobe.errors import InputError, unknown_name
from psyprobe.light.colour import cone_observer
from psyprobe.light.display import Display
from psyprobe.stimulus import Specification, Stimulus
from psyprobe.stimulus.estimate import Float64, to_float64
from psyprobe.stimulus.planes import observer_of
from psyprobe.stimulus.tolerances import precision_of

#: What the numbers of an array can be.
SPACES = ("luminance", "rgb", "xyz", "lms", "linear", "encoded")


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


def read_light(
    image: Stimulus | Array, asked: Specification | None, space: str | None, display: Display | None
) -> Light:
    """The light of a stimulus or an array.

    Parameters
    ----------
    image : Stimulus or array
        Channels last or, as tensors often have them, before the rows. Codes (uint8, uint16) are "encoded".
    asked : Specification, optional
        Tells a batch from channels.
    space : str, optional
        One of `SPACES`: cd/m², linear RGB light in cd/m², XYZ, LMS; "linear" is light as a fraction of the display's
        range, "encoded" its drive value. Not for a stimulus, which knows.
    display : Display, optional
        Needed for "linear" and "encoded".
    """
    if isinstance(image, Stimulus):
        if space is not None:
            raise InputError("a stimulus knows its own space; give space only with a bare array")
        return Light(to_float64(image.pixels), image.space, precision_of(image.pixels))
    precision = precision_of(image)
    codes = "int" in str(getattr(image, "dtype", ""))
    if space is None:
        raise InputError(f"an array does not say what its numbers are; give space, one of {', '.join(SPACES)}")
    if space not in SPACES:
        raise unknown_name("space", space, SPACES)
    pixels = _channels_last(to_float64(image), asked)
    colour = _has_channels(pixels, asked)
    if space in ("linear", "encoded"):
        if display is None:
            raise InputError(f'light of an array in "{space}" depends on the display; give display')
        drive = None
        if space == "encoded":
            if codes:
                pixels = pixels / _largest_code(image)
            drive = pixels
            light = np.asarray(display.decode(pixels))
        else:
            light = pixels * (display.peak - display.black) + display.floor
        return Light(light, "rgb" if colour else "luminance", precision, drive)
    if space != "luminance" and not colour:
        raise InputError(f"an image in {space} has three channels; this one has shape {pixels.shape}")
    if space == "luminance" and colour:
        raise InputError(f"a luminance image has one channel; this one has shape {pixels.shape}")
    if space == "xyz":
        observer = "cie2006_led_lcd" if asked is None else observer_of(asked)
        return Light(np.asarray(pixels @ cone_observer(observer).from_xyz.T), "lms", precision)
    return Light(pixels, space, precision)


def _largest_code(image: Array) -> int:
    name = str(image.dtype).rpartition(".")[2]
    if name not in ("uint8", "uint16"):
        raise InputError(f"codes of {name} have no agreed largest value; give uint8, uint16, or floats in [0, 1]")
    return 255 if name == "uint8" else 65535


def _has_channels(pixels: Float64, asked: Specification | None) -> bool:
    if asked is not None:
        return pixels.shape != (*asked.batch, *asked.shape)
    return pixels.ndim > 2 and pixels.shape[-1] == 3


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
    raise InputError(f"the array has shape {pixels.shape}; asked for were {batch}{asked.shape} pixels")
