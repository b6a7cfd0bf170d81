"""The observer without an encoder: its features are the image itself."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from psyprobe._typing import Array, FloatArray
from psyprobe.observers.encoders.images import RAW_RANGE, check_images
from psyprobe.observers.protocol import Card
from psyprobe.observers.registry import register_observer


class Pixels:
    """The image itself, flattened: what any encoder has to beat.

    Cai et al. 2025 call it "No Encoder". It looks at images of any size and has no normalisation of its own.

    Examples
    --------
    >>> Pixels().features(np.zeros((2, 8, 8, 3)))["pixels"].shape
    (2, 192)

    Where the three channels are equal, one of them holds the same angles at a third of the cost:

    >>> Pixels().features(np.zeros((2, 8, 8, 3))[..., :1])["pixels"].shape
    (2, 64)
    """

    card = Card("pixels", "features", ("pixels",), paper="Cai et al. 2025, Table 2, No Encoder")

    def features(self, images: Array) -> Mapping[str, FloatArray]:
        """Display drive as one row an image, one colour plane after the other, as encoders take them."""
        checked = np.asarray(check_images(images, self.card.name, pixel_range=RAW_RANGE))
        return {"pixels": np.moveaxis(checked, -1, 1).reshape(len(checked), -1)}


@register_observer("pixels", form="pixels", summary="no encoder: the image itself")
def load_pixels(name: str, *, input: str = "raw") -> Pixels:
    """The image itself; `input` is taken for uniformity, since pixels have no normalisation to apply or leave out."""
    return Pixels()
