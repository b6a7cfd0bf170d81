"""Which mask is the subject: equation 1 of the paper, with the ties it leaves open.

References
----------
Li et al. (2024). MVP-Bench: Can large vision-language models conduct multi-level visual perception like humans?
Findings of EMNLP, equation 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from psyprobe.errors import InputError

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Box:
    """A rectangle on an image, in fractions of its width and height, so that it holds at any size.

    Parameters
    ----------
    left, top, right, bottom : float
        From 0 at the left and top edges to 1 at the right and bottom ones.

    Raises
    ------
    InputError
        It is empty or reaches beyond the image.

    Examples
    --------
    >>> Box(0.5, 0.0, 0.25, 1.0)
    Traceback (most recent call last):
    psyprobe.errors.InputError: box [0.5, 0.0, 0.25, 1.0] is empty or leaves the image; ... 0 <= left < right <= 1 ...
    """

    left: float
    top: float
    right: float
    bottom: float

    def __post_init__(self) -> None:
        if not (0 <= self.left < self.right <= 1 and 0 <= self.top < self.bottom <= 1):
            raise InputError(
                f"box {self.to_list()} is empty or leaves the image; give left, top, right, bottom in fractions of its "
                "size: 0 <= left < right <= 1 and 0 <= top < bottom <= 1"
            )

    def to_list(self) -> list[float]:
        """Left, top, right, bottom."""
        return [self.left, self.top, self.right, self.bottom]

    def mask(self, height: int, width: int) -> Mask:
        """The pixels whose centres lie in the box.

        Parameters
        ----------
        height, width : int
            Of the image, px.

        Returns
        -------
        ndarray of bool, shape (height, width)

        Examples
        --------
        >>> Box(0, 0.5, 0.5, 1).mask(2, 4).astype(int)
        array([[0, 0, 0, 0],
               [1, 1, 0, 0]])
        """
        x, y = (np.arange(width) + 0.5) / width, (np.arange(height) + 0.5) / height
        columns, rows = (x >= self.left) & (x < self.right), (y >= self.top) & (y < self.bottom)
        inside: Mask = rows[:, None] & columns
        return inside


def overlap(masks: Mask, box: Box) -> npt.NDArray[np.int64]:
    """Area that masks share with a box.

    Parameters
    ----------
    masks : ndarray of bool, shape (..., H, W)
        One or more masks.
    box : Box
        Of the subject.

    Returns
    -------
    ndarray of int, shape (...)
        Number of true pixels inside the box: plain intersection, not over union.

    Examples
    --------
    >>> int(overlap(np.ones((2, 4), dtype=bool), Box(0, 0.5, 0.5, 1)))
    2
    """
    masks = np.asarray(masks, dtype=bool)
    return np.asarray(np.sum(masks & box.mask(*masks.shape[-2:]), axis=(-2, -1)), dtype=np.int64)


def choose_mask(masks: Mask, box: Box) -> int:
    """The mask that shares the greatest area with a box: equation 1.

    Parameters
    ----------
    masks : ndarray of bool, shape (N, H, W)
        Of one image.
    box : Box
        Of the subject.

    Returns
    -------
    int
        Which. The paper leaves ties open: of masks that share the same area with the box the smallest is taken (it has
        least around the subject), and of equally small ones the first.

    Raises
    ------
    InputError
        There is no mask, or none touches the box.

    Examples
    --------
    >>> whole, left = np.ones((2, 4), dtype=bool), Box(0, 0, 0.5, 1).mask(2, 4)
    >>> choose_mask(np.stack([whole, left]), Box(0, 0.5, 0.5, 1))
    1
    """
    if not len(masks):
        raise InputError("there is no mask to choose from; take another segmenter or other settings of it")
    shared = overlap(masks, box)
    if not shared.max():
        raise InputError(
            f"none of {len(masks)} masks touches the box {box.to_list()}; take another segmenter or other settings"
        )
    size = np.asarray(masks, dtype=bool).sum(axis=(-2, -1))
    return int(np.lexsort((size, -shared))[0])
