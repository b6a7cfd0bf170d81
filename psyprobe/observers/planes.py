"""Images that know whether their channels are one plane, as of grey, or three."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from psyprobe._typing import Array, FloatArray


@dataclass(frozen=True)
class ImagePlanes:
    """Images of one size, by one plane where they are grey and by three where they have colour.

    A grey image takes a third of the time and memory of one in colour that way. Observers are given
    `rgb`, which costs no memory.

    Examples
    --------
    >>> plane = np.zeros((2, 8, 8, 1), "float32")
    >>> grey = ImagePlanes(plane)
    >>> grey.is_grey, grey.rgb.shape, grey.rgb.strides[-1]
    (True, (2, 8, 8, 3), 0)
    >>> ImagePlanes.of(grey.rgb).is_grey, ImagePlanes.of(np.repeat(plane, 3, axis=-1)).is_grey
    (True, False)
    """

    #: Shape (..., H, W, 1) of grey images, (..., H, W, 3) of others.
    planes: Array

    @classmethod
    def of(cls, images: Array) -> ImagePlanes:
        """Wrap images (..., H, W, 3), as one plane if all their channels share its memory."""
        strides = images.strides if isinstance(images, np.ndarray) else images.stride()
        return cls(images[..., :1] if strides[-1] == 0 else images)

    @classmethod
    def joined(cls, parts: Sequence[ImagePlanes]) -> ImagePlanes:
        """Concatenate images along their first axis, as one plane if all are."""
        if len(parts) == 1:
            return parts[0]
        are_grey = all(part.is_grey for part in parts)
        return cls(
            np.concatenate([part.planes if are_grey else part.rgb for part in parts])
        )

    @property
    def is_grey(self) -> bool:
        """Tell whether one plane stands for all channels."""
        return bool(self.planes.shape[-1] == 1)

    @property
    def rgb(self) -> FloatArray:
        """The images with three channels, (..., H, W, 3); grey as a read-only view of one plane."""
        planes: FloatArray = self.planes
        return (
            np.broadcast_to(planes, (*planes.shape[:-1], 3)) if self.is_grey else planes
        )

    def reshaped(self, *leading: int) -> ImagePlanes:
        """Reshape the leading axes of the images."""
        return ImagePlanes(self.planes.reshape(*leading, *self.planes.shape[-3:]))

    def __len__(self) -> int:
        return len(self.planes)

    def __getitem__(self, index: slice | Sequence[int]) -> ImagePlanes:
        return ImagePlanes(self.planes[index])
