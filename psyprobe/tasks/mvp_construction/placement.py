"""Moving a subject: drawn translation and rescaling that keep it whole and inside the image."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np

from psyprobe.errors import InputError
from psyprobe.tasks.mvp_construction.masks import Mask
from psyprobe.tasks.mvp_construction.tools import Image

#: Of the subject's size: it stays what one looks at, and leaves room for a background.
SCALES = (0.6, 1.0)


@dataclass(frozen=True)
class Placement:
    """Where a subject goes.

    Attributes
    ----------
    scale : float
        Of its size.
    left, top : int
        Of its new bounding box, px.
    """

    scale: float
    left: int
    top: int

    def to_dict(self) -> dict[str, float]:
        """The placement as plain values."""
        return asdict(self)


def draw_placement(mask: Mask, seed: int) -> Placement:
    """A random place and size of a subject.

    Parameters
    ----------
    mask : ndarray of bool, shape (H, W)
        Of the subject.
    seed : int
        Of the draw.

    Returns
    -------
    Placement
        The scale is uniform between 0.6 and 1, the place uniform among those where the whole subject is in the image.

    Raises
    ------
    InputError
        The mask is empty.

    Examples
    --------
    >>> mask = np.zeros((40, 60), dtype=bool)
    >>> mask[10:30, 10:30] = True
    >>> draw_placement(mask, 1) == draw_placement(mask, 1) != draw_placement(mask, 2)
    True
    """
    rows, columns = _bounds(mask)
    random = np.random.default_rng(seed)
    scale = float(random.uniform(*SCALES))
    height, width = _scaled(rows, scale), _scaled(columns, scale)
    left = int(random.integers(0, mask.shape[1] - width + 1))
    top = int(random.integers(0, mask.shape[0] - height + 1))
    return Placement(scale, left, top)


def place(image: Image, mask: Mask, placement: Placement) -> tuple[Image, Mask]:
    """The subject alone, at its new place and size.

    Parameters
    ----------
    image : ndarray of uint8, shape (H, W, 3)
        With the subject at its old place.
    mask : ndarray of bool, shape (H, W)
        Of the subject there.
    placement : Placement
        Where it goes.

    Returns
    -------
    image : ndarray of uint8, shape (H, W, 3)
        Black where the subject is not.
    mask : ndarray of bool, shape (H, W)
        Of the subject at its new place; true where at least half of a pixel is covered.
    """
    from PIL import Image as Picture

    rows, columns = _bounds(mask)
    size = (_scaled(columns, placement.scale), _scaled(rows, placement.scale))
    cover = mask[rows, columns].astype(np.float32)
    # Colours are averaged over the subject alone, so that no fringe of the old background comes along.
    small_cover = np.asarray(Picture.fromarray(cover).resize(size, Picture.Resampling.BOX))
    subject = np.zeros((size[1], size[0], 3), dtype=np.float64)
    for channel in range(3):
        weighted = Picture.fromarray(image[rows, columns, channel].astype(np.float32) * cover)
        subject[..., channel] = np.asarray(weighted.resize(size, Picture.Resampling.BOX))
    there = small_cover >= 0.5
    subject /= np.maximum(small_cover, 0.5)[..., None]
    at = (slice(placement.top, placement.top + size[1]), slice(placement.left, placement.left + size[0]))
    moved, moved_mask = np.zeros_like(image), np.zeros(mask.shape, dtype=np.bool_)
    moved[at] = np.where(there[..., None], np.clip(np.rint(subject), 0, 255), 0).astype(np.uint8)
    moved_mask[at] = there
    return moved, moved_mask


def _bounds(mask: Mask) -> tuple[slice, slice]:
    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    if not len(rows):
        raise InputError("the subject's mask is empty; take another segmenter or other settings of it")
    return slice(int(rows[0]), int(rows[-1]) + 1), slice(int(columns[0]), int(columns[-1]) + 1)


def _scaled(extent: slice, scale: float) -> int:
    return max(1, round(int(extent.stop - extent.start) * scale))
