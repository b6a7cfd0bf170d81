"""What stands in for a learned denoiser."""

from __future__ import annotations

import itertools
import math

import numpy as np
from numpy.typing import NDArray

from psyprobe._typing import FloatArray


def non_local_means(plane: FloatArray, sigma: float) -> FloatArray:
    """One plane denoised by non-local means (Buades et al. 2005) in single precision.

    Patches, window, strength and steps are those of scikit-image's fast mode, whose results it has
    in a third of the time: squared differences are summed by OpenCV's box filter, without an
    integral image.
    """
    import cv2

    reach = 6
    border = 9
    padded = cv2.copyMakeBorder(
        plane.astype(np.float32), border, border, border, border, cv2.BORDER_REFLECT_101
    )
    rows, columns = padded.shape
    strength = (5 * 0.8 * sigma) ** 2
    # A pixel itself has the weight of no distance.
    total = np.full_like(padded, _fast_exp(np.zeros((1, 1), np.float32)))
    result = total * padded
    for dy, dx in itertools.product(range(-reach, reach + 1), range(reach + 1)):
        if dx == 0 and dy <= 0:
            continue
        # Two pixels so far apart have one distance, and each adds its weight to the other.
        here = np.s_[max(0, -dy) : rows - max(0, dy), : columns - dx]
        there = np.s_[max(0, dy) : rows + min(0, dy), dx:]
        squares = cv2.absdiff(padded[here], padded[there])
        cv2.multiply(squares, squares, dst=squares)
        apart = cv2.boxFilter(
            squares, -1, (4, 4), anchor=(1, 1), normalize=False, borderType=cv2.BORDER_REPLICATE
        )
        # What noise alone puts between 16 pairs is no distance.
        near = cv2.addWeighted(apart, -1 / strength, apart, 0, 32 * sigma**2 / strength)
        weight = cv2.multiply(
            _fast_exp(cv2.min(near, 0)), cv2.threshold(near, -5, 1, cv2.THRESH_BINARY)[1]
        )
        for one, other in ((here, there), (there, here)):
            cv2.accumulate(weight, total[one])
            cv2.accumulateProduct(weight, padded[other], result[one])
    inner = np.s_[border : rows - border, border : columns - border]
    return np.asarray(result[inner] / total[inner])


def _fast_exp(exponent: NDArray[np.float32]) -> NDArray[np.float32]:
    """Schraudolph's exponential (1999) within 4 %: a line between powers of two, written into the
    bits of a float.
    """
    import cv2

    gain = 2**23 / math.log(2)
    offset = 127 * 2**23 - 8 * 60801
    return np.asarray(cv2.addWeighted(exponent, gain, exponent, 0, offset, dtype=cv2.CV_32S)).view(
        np.float32
    )
