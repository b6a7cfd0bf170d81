"""Check images before an encoder or a metric gets them, and the image itself as an observer.

Nothing is resized, cropped, clipped, quantised or scaled.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from psyprobe._typing import Array, FloatArray
from psyprobe.errors import InputError, PsyprobeError
from psyprobe.observers.planes import ImagePlanes
from psyprobe.observers.protocol import Card

#: What rounding may add to a drive of 1: a fortieth of an 8-bit code.
_SLACK = 1e-4


#: What may go in where nothing is normalised: drives beyond 1, of an extended display, and images
#: that the caller has normalised; beyond lie codes, since a drive of 10 is 220 times peak white.
RAW_RANGE = (-10.0, 10.0)


def drive_range(card: Card) -> tuple[float, float]:
    """Return the range of drive that an encoder takes: black and white if it normalises."""
    return card.pixel_range if card.input == "normalised" else RAW_RANGE


def check_images(
    images: Array,
    name: str,
    *,
    input_size: tuple[int, int] | None = None,
    hint: str = "",
    pixel_range: tuple[float, float] = (0.0, 1.0),
    colour: bool = False,
) -> Array:
    """Check that an observer can take images as they are, and return them unchanged.

    Parameters
    ----------
    images : ndarray or torch.Tensor, shape (N, H, W, 3)
        Display drive, floating point.
    name : str
        The observer's name, for the message.
    input_size : tuple of int, optional
        (height, width) in px that the observer looks at; None for any.
    hint : str
        What else can be done about a wrong size.
    pixel_range : tuple of float
        The least and the greatest drive.
    colour : bool
        Whether the observer takes three channels alone; else one, (N, H, W, 1), passes too.

    Raises
    ------
    InputError
        If the shape, the size or the number format is wrong, or a value is not finite or out of
        range.

    Examples
    --------
    >>> check_images(np.zeros((1, 64, 64, 3)), "timm:resnet18", input_size=(224, 224))
    Traceback (most recent call last):
    psyprobe.errors.InputError: timm:resnet18 looks at images of 224 x 224 px and these
    have 64 x 64 px: draw them at that size (nothing is resized here)
    """
    if not hasattr(images, "shape") or not hasattr(images, "dtype"):
        images = np.asarray(images)
    shape = tuple(images.shape)
    if len(shape) != 4 or shape[-1] not in (1, 3):
        add = (
            ": add the batch axis with images[None]"
            if len(shape) == 3 and shape[-1] == 3
            else ""
        )
        raise InputError(
            f"{name} takes a batch of images of shape (N, H, W, 3) and got {shape}{add}"
        )
    if colour and shape[-1] != 3:
        raise InputError(f"{name} takes three channels and got {shape[-1]}")
    if 0 in shape:
        raise InputError(
            f"{name} was given no image to look at: the batch has shape {shape}"
        )
    if "float" not in str(images.dtype):
        raise InputError(
            f"{name} takes display drive as floating point, 0 = black and 1 = peak white, and "
            f"got {images.dtype}: "
            "divide by the code of peak white yourself, so that the range is yours to state"
        )
    if input_size is not None and shape[1:3] != input_size:
        raise InputError(
            f"{name} looks at images of {size_text(input_size)} and these have "
            f"{size_text(shape[1:3])}: "
            f"draw them at that size (nothing is resized here){hint}"
        )
    planes = ImagePlanes.of(images).planes
    low = float(planes.min())
    high = float(planes.max())
    if not (math.isfinite(low) and math.isfinite(high)):
        raise InputError(f"{name} was given an image with NaN or infinity in it")
    if low < pixel_range[0] - _SLACK or high > pixel_range[1] + _SLACK:
        excess = high if high > pixel_range[1] + _SLACK else low
        raise InputError(
            f"{name} takes display drive from {pixel_range[0]:g} to {pixel_range[1]:g} and was "
            f"given {excess:g}: divide "
            "codes by that of peak white; drive beyond it goes only into an encoder loaded with "
            "input='raw'"
        )
    return images


def check_light(test: Array, reference: Array, name: str) -> tuple[Array, Array]:
    """Check that a metric can compare test and reference, and return both as arrays.

    Both are linear light of BT.709 primaries, cd/m² a channel, floating point, of shape (N, H, W,
    3).

    Raises
    ------
    InputError
        If the shapes differ or are no batch of images, the format is not floating point, or a value
        is not finite or below 0.

    Examples
    --------
    >>> light = np.full((1, 8, 8, 3), 100.0)
    >>> check_light(light, -light, "castlecsf")
    Traceback (most recent call last):
    psyprobe.errors.InputError: castlecsf was given a reference with light of -100 cd/m²;
    light is 0 or more
    """
    images = {"test": np.asarray(test), "reference": np.asarray(reference)}
    for role, image in images.items():
        if image.ndim != 4 or image.shape[-1] != 3 or 0 in image.shape:
            raise InputError(
                f"{name} takes batches of images of shape (N, H, W, 3) and the {role} has "
                f"{image.shape}"
            )
        if image.dtype.kind != "f":
            raise InputError(
                f"{name} takes light in cd/m² as floating point, and the {role} is {image.dtype}"
            )
        if not np.isfinite(image).all():
            raise InputError(f"{name} was given a {role} with NaN or infinity in it")
        if image.min() < 0:
            raise InputError(
                f"{name} was given a {role} with light of {image.min():g} cd/m²; light is 0 or more"
            )
    if images["test"].shape != images["reference"].shape:
        raise InputError(
            f"{name} compares images of one size: the test has shape {images['test'].shape} and "
            "the reference "
            f"{images['reference'].shape}"
        )
    return images["test"], images["reference"]


def as_numpy(values: Any, name: str) -> FloatArray:
    """Copy a tensor to an array in this process; leave an array as it is.

    Of bfloat16 and float8, which numpy does not know, each value is one of float32. A masked array
    is an InputError that begins with the observer's name.
    """
    parts = values if isinstance(values, list | tuple) else [values]
    if any(np.ma.isMaskedArray(part) for part in parts):
        raise InputError(
            f"{name} returned a masked array, and a masked value is no number: return a plain "
            "array, for example values.filled(0)"
        )
    if not hasattr(values, "detach"):
        return np.asarray(values)
    tensor = values.detach().cpu()
    is_unknown = str(tensor.dtype).startswith(("torch.bfloat16", "torch.float8"))
    return np.asarray(tensor.float() if is_unknown else tensor)


def check_finite(card: Card, features: Mapping[str, FloatArray]) -> None:
    """Refuse an observer's features that hold NaN or infinity."""
    for name, rows in features.items():
        if not np.isfinite(rows).all():
            raise PsyprobeError(
                f"{card.name}: the feature {name!r} holds NaN or infinity (computed in "
                f"{card.dtype})"
            )


def checked_size(input_size: int | Sequence[int]) -> tuple[int, int]:
    """Convert a side or a pair to (height, width) in px, or refuse it.

    Raises
    ------
    InputError
        If a side is not a whole number of at least 1 px.

    Examples
    --------
    >>> checked_size(224)
    (224, 224)
    """
    sides: tuple[Any, ...] = (
        tuple(input_size)
        if isinstance(input_size, Sequence)
        else (input_size, input_size)
    )
    if len(sides) != 2 or not all(
        isinstance(side, (int, np.integer)) and side >= 1 for side in sides
    ):
        raise InputError(
            f"input_size {input_size!r} px is neither a whole number nor a pair (height, width) "
            "of them"
        )
    return int(sides[0]), int(sides[1])


def three_channels(
    name: str, statistic: str, values: Iterable[float]
) -> tuple[float, ...]:
    """Check a mean or standard deviation of three channels, and return it as a tuple.

    Parameters
    ----------
    name : str
        The observer's name, for the message.
    what : {"mean", "std"}
        Which of the two.
    values : iterable of float
        One a channel.

    Raises
    ------
    InputError
        If there are not three finite numbers, or a deviation is not above 0.

    Examples
    --------
    >>> three_channels("mine", "std", [0.5, 0.5, 0])
    Traceback (most recent call last):
    psyprobe.errors.InputError: mine: std [0.5, 0.5, 0] is not three finite numbers above 0
    """
    three = tuple(values)
    right = (
        len(three) == 3
        and bool(np.isfinite(three).all())
        and (statistic == "mean" or min(three) > 0)
    )
    if not right:
        raise InputError(
            f"{name}: {statistic} {list(three)} is not three finite "
            f"numbers{' above 0' * (statistic == 'std')}"
        )
    return tuple(float(value) for value in three)


def check_patches(name: str, size: tuple[int, ...], patch: Any) -> None:
    """Refuse an image size, (height, width) in px, that patches do not cover evenly."""
    if isinstance(patch, tuple) and any(
        side % step for side, step in zip(size, patch, strict=True)
    ):
        raise InputError(
            f"{name} cuts the image into patches of {size_text(patch)} and would not see the "
            "margin of "
            f"{size_text(size)}: choose multiples of {size_text(patch)}"
        )


def size_text(size: tuple[Any, ...]) -> str:
    """Format height and width with their unit.

    Examples
    --------
    >>> size_text((224, 448))
    '224 x 448 px'
    """
    return f"{size[0]} x {size[1]} px"


class Pixels:
    """The image itself, flattened: what any encoder has to beat.

    Cai et al. 2025 call it "No Encoder". It looks at images of any size and has no normalisation of
    its own.

    Examples
    --------
    >>> Pixels().features(np.zeros((2, 8, 8, 3)))["pixels"].shape
    (2, 192)

    Where the three channels are equal, one of them holds the same angles at a third of the cost:

    >>> Pixels().features(np.zeros((2, 8, 8, 3))[..., :1])["pixels"].shape
    (2, 64)
    """

    card = Card(
        "pixels", "features", ("pixels",), paper="Cai et al. 2025, Table 2, No Encoder"
    )

    def features(self, images: Array) -> Mapping[str, FloatArray]:
        """Flatten images' drive values to one row each, one colour plane after the other."""
        checked = np.asarray(
            check_images(images, self.card.name, pixel_range=RAW_RANGE)
        )
        return {"pixels": np.moveaxis(checked, -1, 1).reshape(len(checked), -1)}


def load_pixels(name: str, *, input: str = "raw") -> Pixels:
    """Load the observer "pixels", whose features are the image itself."""
    return Pixels()
