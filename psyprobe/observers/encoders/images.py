"""The one gate that images pass on their way to an encoder: nothing is resized, cropped, quantised or scaled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from psyprobe._typing import Array
from psyprobe.errors import InputError


def check_images(images: Array, name: str, *, input_size: tuple[int, int] | None = None, hint: str = "") -> Array:
    """The images, unchanged, if an encoder can look at them as they are.

    Parameters
    ----------
    images : ndarray or torch.Tensor, shape (N, H, W, 3)
        Display drive, floating point. One channel, (N, H, W, 1), passes too: who takes three says so itself.
    name : str
        The observer's name, for the message.
    input_size : tuple of int, optional
        (height, width) in px that the observer looks at; None for any.
    hint : str
        What else can be done about a wrong size.

    Returns
    -------
    ndarray or torch.Tensor
        `images` itself.

    Raises
    ------
    InputError
        If the shape, the size or the number format is wrong, or a value is not finite.

    Examples
    --------
    >>> check_images(np.zeros((1, 64, 64, 3)), "timm:resnet18", input_size=(224, 224))
    Traceback (most recent call last):
    psyprobe.errors.InputError: timm:resnet18 looks at images of 224 x 224 px and these have 64 x 64 px: draw
    them at that size (nothing is resized here)
    """
    if not hasattr(images, "shape") or not hasattr(images, "dtype"):
        images = np.asarray(images)
    shape = tuple(images.shape)
    if len(shape) != 4 or shape[-1] not in (1, 3):
        add = ": add the batch axis with images[None]" if len(shape) == 3 and shape[-1] == 3 else ""
        raise InputError(f"{name} takes a batch of images of shape (N, H, W, 3) and got {shape}{add}")
    if 0 in shape:
        raise InputError(f"{name} was given no image to look at: the batch has shape {shape}")
    if "float" not in str(images.dtype):
        raise InputError(
            f"{name} takes display drive as floating point, 0 = black and 1 = peak white, and got {images.dtype}: "
            "divide by the code of peak white yourself, so that the range is yours to state"
        )
    if input_size is not None and shape[1:3] != input_size:
        raise InputError(
            f"{name} looks at images of {size_text(input_size)} and these have {size_text(shape[1:3])}: "
            f"draw them at that size (nothing is resized here){hint}"
        )
    if not _all_finite(images):
        raise InputError(f"{name} was given an image with NaN or infinity in it")
    return images


def is_grey_view(images: Array) -> bool:
    """Whether the channels are one and the same plane in memory, as in a grey drive from a display.

    Parameters
    ----------
    images : ndarray or torch.Tensor, shape (..., H, W, C)

    Returns
    -------
    bool

    Examples
    --------
    >>> plane = np.zeros((2, 8, 8, 1), "float32")
    >>> is_grey_view(np.broadcast_to(plane, (2, 8, 8, 3))), is_grey_view(np.repeat(plane, 3, axis=-1))
    (True, False)
    """
    strides = images.strides if isinstance(images, np.ndarray) else images.stride()
    return bool(strides[-1] == 0)


def checked_size(input_size: int | Sequence[int]) -> tuple[int, int]:
    """(height, width) in px from a side or a pair.

    Parameters
    ----------
    input_size : int or tuple of int
        The side of a square, or (height, width), px.

    Returns
    -------
    tuple of int

    Raises
    ------
    InputError
        If a side is not a whole number of at least 1 px.

    Examples
    --------
    >>> checked_size(224)
    (224, 224)
    """
    sides: tuple[Any, ...] = tuple(input_size) if isinstance(input_size, Sequence) else (input_size, input_size)
    if len(sides) != 2 or not all(isinstance(side, (int, np.integer)) and side >= 1 for side in sides):
        raise InputError(f"input_size {input_size!r} px is neither a whole number nor a pair (height, width) of them")
    return int(sides[0]), int(sides[1])


def size_text(size: tuple[Any, ...]) -> str:
    """Height and width as a reader writes them, with the unit.

    Examples
    --------
    >>> size_text((224, 448))
    '224 x 448 px'
    """
    return f"{size[0]} x {size[1]} px"


def _all_finite(images: Array) -> bool:
    plane = images[..., 0] if is_grey_view(images) else images
    if isinstance(plane, np.ndarray):
        return bool(np.isfinite(plane).all())
    return bool(plane.isfinite().all())
