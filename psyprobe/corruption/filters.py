"""What spreads light over neighbours: motion, defocus, shake, and the filters of post-processing."""

from __future__ import annotations

import functools
import math

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.corruption.colour_planes import lab_to_rgb, luma, rgb_to_lab


def motion_kernel(length: float, angle: float) -> FloatArray:
    """The point spread of motion along a line: its length in px (1 is no motion), its angle in deg, counter-clockwise.

    The weight of a pixel is max(0, 1 - d), d its distance from the segment, as MATLAB's.
    """
    half = (length - 1) / 2
    reach = math.ceil(half)
    y, x = np.mgrid[-reach : reach + 1, -reach : reach + 1].astype(np.float64)
    direction = np.array([math.cos(math.radians(angle)), -math.sin(math.radians(angle))])
    along = np.clip(x * direction[0] + y * direction[1], -half, half)
    distance = np.hypot(x - along * direction[0], y - along * direction[1])
    return _normalised(np.maximum(0, 1 - distance))


@functools.lru_cache(maxsize=64)
def disk_kernel(radius: float) -> FloatArray:
    """The point spread of defocus: a disk of a radius in px, each pixel weighted by the area of it that lies inside."""
    reach = math.ceil(radius - 0.5)
    edges = np.arange(-reach, reach + 2) - 0.5

    def area(x: FloatArray, y: FloatArray) -> FloatArray:
        """Of the disk left of x and below y, by integrating the height of the circle."""
        nodes, weights = np.polynomial.legendre.leggauss(64)
        u = -radius + (x[..., None] + radius) * (nodes + 1) / 2
        height = np.sqrt(np.maximum(radius**2 - u**2, 0))
        inside = np.clip(y[..., None] + height, 0, 2 * height)
        return np.asarray((inside * weights).sum(-1) * (x + radius) / 2)

    x, y = np.meshgrid(np.clip(edges, -radius, radius), np.clip(edges, -radius, radius))
    whole = area(x, y)
    weights: FloatArray = np.maximum(np.diff(np.diff(whole, axis=0), axis=1), 0)
    # The quadrature is finer to one side than to the other; a disk is not.
    weights = weights + weights[::-1] + weights[:, ::-1] + weights[::-1, ::-1]
    kernel = _normalised(weights + weights.T)
    # It is kept for the next image; nobody may write into it.
    kernel.flags.writeable = False
    return kernel


def shake_kernel(extent: float, rng: np.random.Generator) -> FloatArray:
    """The point spread of a shaking camera: a random walk of 64 steps whose larger side has an extent in px.

    Each point of the path is shared among the four pixels around it.
    """
    path = np.cumsum(rng.standard_normal((64, 2)), axis=0)
    path -= (path.max(axis=0) + path.min(axis=0)) / 2
    path *= extent / np.ptp(path, axis=0).max()
    reach = math.ceil(extent / 2) + 1
    kernel = np.zeros((2 * reach + 1, 2 * reach + 1))
    low = np.floor(path).astype(int)
    share = path - low
    for dy in (0, 1):
        for dx in (0, 1):
            weight = np.abs(1 - dy - share[:, 0]) * np.abs(1 - dx - share[:, 1])
            np.add.at(kernel, (low[:, 0] + dy + reach, low[:, 1] + dx + reach), weight)
    return _normalised(kernel)


def _normalised(weights: FloatArray) -> FloatArray:
    return np.asarray(weights / weights.sum())


def convolve(image: FloatArray, kernel: FloatArray) -> FloatArray:
    """Convolution of each channel, with the border repeated outside."""
    import cv2

    flipped = np.ascontiguousarray(kernel[::-1, ::-1])
    filtered = cv2.filter2D(image, -1, flipped, borderType=cv2.BORDER_REPLICATE)
    return np.asarray(filtered).reshape(image.shape)


def gaussian(image: FloatArray, sigma: float, truncate: float = 4.0) -> FloatArray:
    """Gaussian blur of each channel, with the border repeated outside; sigma in px, cut off at so many of it."""
    import cv2

    side = 2 * math.ceil(truncate * sigma) + 1
    blurred = cv2.GaussianBlur(image, (side, side), sigma, borderType=cv2.BORDER_REPLICATE)
    return np.asarray(blurred).reshape(image.shape)


def motion_blur(image: FloatArray, length: float, rng: np.random.Generator) -> FloatArray:
    """Motion along a line of a random direction. Sources differ for length 1, here the identity as in KADID."""
    return convolve(image, motion_kernel(length, rng.uniform(0, 180)))


def lens_blur(image: FloatArray, radius: float, rng: np.random.Generator) -> FloatArray:
    """Defocus: an area-exact disk. R-Bench speaks of fog and refraction; KADID's is this disk."""
    return convolve(image, disk_kernel(radius))


def lens_shaking(image: FloatArray, extent: float, rng: np.random.Generator) -> FloatArray:
    """Simulated camera shake; R-Bench moved its camera."""
    return convolve(image, shake_kernel(extent, rng))


def gaussian_filter(image: FloatArray, sigma: float, rng: np.random.Generator) -> FloatArray:
    """Gaussian blur, cut off at two standard deviations as KADID's."""
    return gaussian(image, sigma, truncate=2.0)


def color_diffusion(image: FloatArray, amount: float, rng: np.random.Generator) -> FloatArray:
    """CIELAB's a and b blurred (sigma = 1.5 amount + 2 px) and multiplied by the amount; L stays."""
    lab = rgb_to_lab(image)
    planes = np.ascontiguousarray(lab[..., 1:])
    lab[..., 1:] = amount * gaussian(planes, 1.5 * amount + 2)
    return lab_to_rgb(lab)


def color_shift(image: FloatArray, length: float, rng: np.random.Generator) -> FloatArray:
    """The green channel shifted to a random direction of one quadrant, blended in where there are edges."""
    import cv2

    angle = rng.uniform(0, np.pi / 2)
    shift = np.rint(length * np.array([math.cos(angle), math.sin(angle)])).astype(int)
    grey = luma(image)
    slope_y, slope_x = np.gradient(grey)
    mask = gaussian(np.hypot(slope_x, slope_y).astype(image.dtype), 4.0)
    mask = _stretched(mask, float(mask.min()), float(mask.max()))
    mask = np.clip(mask, 0.1, 1)
    mask = _stretched(mask, *(float(end) for end in np.percentile(mask, [1, 99])))
    moved = cv2.copyMakeBorder(image[..., 1], shift[0], 0, shift[1], 0, cv2.BORDER_REPLICATE)
    moved = moved[: grey.shape[0], : grey.shape[1]]
    result = image.copy()
    result[..., 1] = moved * mask + image[..., 1] * (1 - mask)
    return result


def sharpness_change(image: FloatArray, amount: float, rng: np.random.Generator) -> FloatArray:
    """Unsharp masking of CIELAB's L with sigma 3 px, as MATLAB's; ringing at edges."""
    lab = rgb_to_lab(image)
    lightness = np.ascontiguousarray(lab[..., 0])
    lab[..., 0] = np.clip(lightness + amount * (lightness - gaussian(lightness, 3.0)), 0, 100)
    return lab_to_rgb(lab)


def _stretched(values: FloatArray, low: float, high: float) -> FloatArray:
    if high <= low:
        return np.zeros_like(values)
    return np.asarray(np.clip((values - low) / (high - low), 0, 1))
