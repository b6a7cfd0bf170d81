"""The gate that pairs of images pass on their way to a metric: nothing is resized, cropped, clipped or scaled."""

from __future__ import annotations

import numpy as np

from psyprobe._typing import Array
from psyprobe.errors import InputError


def check_light(test: Array, reference: Array, name: str) -> tuple[Array, Array]:
    """Test and reference as arrays, unchanged, if a metric can compare them as they are.

    Both are linear light of BT.709 primaries, cd/m² a channel, floating point, of shape (N, H, W, 3).

    Raises
    ------
    InputError
        If the shapes differ or are no batch of images, the format is not floating point, or a value is not finite or
        below 0.

    Examples
    --------
    >>> light = np.full((1, 8, 8, 3), 100.0)
    >>> check_light(light, -light, "castlecsf")
    Traceback (most recent call last):
    psyprobe.errors.InputError: castlecsf was given a reference with light of -100 cd/m²; light is 0 or more
    """
    images = {"test": np.asarray(test), "reference": np.asarray(reference)}
    for what, image in images.items():
        if image.ndim != 4 or image.shape[-1] != 3 or 0 in image.shape:
            raise InputError(f"{name} takes batches of images of shape (N, H, W, 3) and the {what} has {image.shape}")
        if image.dtype.kind != "f":
            raise InputError(f"{name} takes light in cd/m² as floating point, and the {what} is {image.dtype}")
        if not np.isfinite(image).all():
            raise InputError(f"{name} was given a {what} with NaN or infinity in it")
        if image.min() < 0:
            raise InputError(f"{name} was given a {what} with light of {image.min():g} cd/m²; light is 0 or more")
    if images["test"].shape != images["reference"].shape:
        raise InputError(
            f"{name} compares images of one size: the test has shape {images['test'].shape} and the reference "
            f"{images['reference'].shape}"
        )
    return images["test"], images["reference"]
