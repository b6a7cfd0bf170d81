"""Compute the point spreads of motion, defocus and shake, and filter images with them."""

from __future__ import annotations

import functools
import itertools
import math
from typing import Any

import cv2
import numpy as np
from numpy.random import Generator

from psyprobe._typing import FloatArray


def motion_kernel(length: float, angle: float) -> FloatArray:
    """Compute the point spread of motion along a line of a length in px, 1 for no motion.

    The angle is in deg, counter-clockwise. The weight of a pixel is max(0, 1 - d), d its distance
    from the segment, as in MATLAB.
    """
    half = (length - 1) / 2
    reach = math.ceil(half)
    x = np.arange(-reach, reach + 1.0)
    y = x[:, None]
    right = math.cos(math.radians(angle))
    down = -math.sin(math.radians(angle))
    along = (x * right + y * down).clip(-half, half)
    distance = np.hypot(x - along * right, y - along * down)
    # Weights of no more than rounding are 0: they would only make the filter larger.
    return _normalise_weights(np.where(distance < 1 - 1e-9, 1 - distance, 0))


@functools.lru_cache(maxsize=64)
def disk_kernel(radius: float) -> FloatArray:
    """Compute the point spread of defocus: a disk of a radius in px, pixels weighted by area."""
    reach = math.ceil(radius - 0.5)
    edges = np.arange(-reach, reach + 2) - 0.5

    def area(x: FloatArray, y: FloatArray) -> FloatArray:
        """Integrate the height of the circle: the disk's area left of x and below y."""
        nodes, weights = np.polynomial.legendre.leggauss(64)
        u = -radius + (x[..., None] + radius) * (nodes + 1) / 2
        height = np.sqrt(np.maximum(radius**2 - u**2, 0))
        inside = np.clip(y[..., None] + height, 0, 2 * height)
        return np.asarray((inside * weights).sum(-1) * (x + radius) / 2)

    x, y = np.meshgrid(np.clip(edges, -radius, radius), np.clip(edges, -radius, radius))
    cumulative_area = area(x, y)
    weights: FloatArray = np.maximum(
        np.diff(np.diff(cumulative_area, axis=0), axis=1), 0
    )
    # The quadrature is finer to one side than to the other; a disk is not.
    weights = weights + weights[::-1] + weights[:, ::-1] + weights[::-1, ::-1]
    kernel = _normalise_weights(weights + weights.T)
    # The next image uses the cached kernel.
    kernel.flags.writeable = False
    return kernel


def shake_kernel(extent: float, rng: Generator) -> FloatArray:
    """Compute the point spread of camera shake: a random walk of 64 steps over an extent in px.

    The extent is that of its larger side; its points are shared among the four pixels around them.
    """
    path = np.cumsum(rng.standard_normal((64, 2)), axis=0)
    path -= (path.max(axis=0) + path.min(axis=0)) / 2
    path *= extent / np.ptp(path, axis=0).max()
    reach = math.ceil(extent / 2) + 1
    kernel = np.zeros((2 * reach + 1, 2 * reach + 1))
    low = np.floor(path).astype(int)
    share = path - low
    for dy, dx in itertools.product((0, 1), (0, 1)):
        weight = np.abs(1 - dy - share[:, 0]) * np.abs(1 - dx - share[:, 1])
        np.add.at(kernel, (low[:, 0] + dy + reach, low[:, 1] + dx + reach), weight)
    return _normalise_weights(kernel)


def _normalise_weights(weights: FloatArray) -> FloatArray:
    """Divide filter weights by their sum."""
    return np.asarray(weights / weights.sum())


def convolve(image: FloatArray, kernel: FloatArray) -> FloatArray:
    """Convolve each channel with a kernel, with the border repeated outside."""
    weights = np.ascontiguousarray(kernel[::-1, ::-1])
    is_codes = image.dtype == np.uint8
    if weights.size >= 300 or (weights.size <= 129 and not is_codes):
        values = image.astype(np.float32) if is_codes else image
        filtered = cv2.filter2D(values, -1, weights, borderType=cv2.BORDER_REPLICATE)
        filtered = cv2.convertScaleAbs(filtered) if is_codes else filtered
        return np.asarray(filtered).reshape(image.shape)
    half = len(weights) // 2
    padded = cv2.copyMakeBorder(image, half, half, 0, 0, cv2.BORDER_REPLICATE)
    # From 130 taps OpenCV uses Fourier transforms; up to some 300, strips of fewer taps are faster.
    in_strips = weights.size > 129
    filter_band = _filter_in_strips if in_strips else _filter_at_once
    if not is_codes:
        return np.asarray(filter_band(padded, weights)).reshape(image.shape)
    # Bands of codes stay in the processor's cache.
    rows = 128 if in_strips else 32
    filtered = np.empty_like(padded[: len(image)])
    for top in range(0, len(image), rows):
        band = padded[top : top + rows + 2 * half].astype(np.float32)
        cv2.convertScaleAbs(filter_band(band, weights), dst=filtered[top : top + rows])
    return np.asarray(filtered.reshape(image.shape))


def _filter_at_once(band: FloatArray, weights: FloatArray) -> Any:
    """Filter a band of rows, in place, and leave out its border above and below."""
    half = len(weights) // 2
    cv2.filter2D(band, -1, weights, dst=band, borderType=cv2.BORDER_REPLICATE)
    return band[half : len(band) - half]


def _filter_in_strips(band: FloatArray, weights: FloatArray) -> Any:
    """Filter a band of rows by a kernel, in horizontal strips of it of at most 129 weights."""
    rows, columns = weights.shape
    height = len(band) - rows + 1
    strip_rows = 129 // columns
    total = None
    for top in range(0, rows, strip_rows):
        strip = weights[top : top + strip_rows]
        part = cv2.filter2D(
            band[top : top + height + len(strip) - 1],
            -1,
            strip,
            anchor=(columns // 2, 0),
            borderType=cv2.BORDER_REPLICATE,
        )[:height]
        total = part if total is None else cv2.add(total, part, dst=total)
    return total


def gaussian(image: FloatArray, sigma: float, truncate: float = 4.0) -> FloatArray:
    """Blur each channel by a Gaussian of sigma px, truncated at so many sigmas.

    The border is repeated outside.
    """
    side = 2 * math.ceil(truncate * sigma) + 1
    if image.dtype == np.uint8:
        # With weights whose sum is not 1, OpenCV rounds codes only once, at the end.
        weights = cv2.getGaussianKernel(side, sigma)
        blurred = cv2.sepFilter2D(
            image, -1, 2 * weights, weights / 2, borderType=cv2.BORDER_REPLICATE
        )
    else:
        blurred = cv2.GaussianBlur(
            image, (side, side), sigma, borderType=cv2.BORDER_REPLICATE
        )
    return np.asarray(blurred).reshape(image.shape)
