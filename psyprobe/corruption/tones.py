"""What changes values and colours where they stand: lamps and darkness, noise, curves, saturation, fewer levels."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.corruption.colour_planes import (
    lab_to_rgb,
    linear_to_srgb,
    rgb_to_lab,
    rgb_to_ycbcr,
    srgb_to_linear,
    ycbcr_to_rgb,
)


def white_noise(image: FloatArray, variance: float, rng: np.random.Generator) -> FloatArray:
    """Gaussian noise, independent in each pixel and channel."""
    noise = normal(image.shape, image.dtype, rng)
    noise *= image.dtype.type(np.sqrt(variance))
    noise += image
    return noise


def color_noise(image: FloatArray, variance: float, rng: np.random.Generator) -> FloatArray:
    """Gaussian noise in each plane of studio-range YCbCr."""
    planes = white_noise(rgb_to_ycbcr(image), variance, rng)
    return ycbcr_to_rgb(np.clip(planes, 0, 1, out=planes))


def impulse_noise(image: FloatArray, density: float, rng: np.random.Generator) -> FloatArray:
    """Each sample becomes 0 or 1, each with half the density. By sample as in MATLAB, not by pixel as in one port."""
    chance = rng.random(image.shape, dtype=np.float32)
    result = image.copy()
    result[chance < density] = 1
    result[chance < density / 2] = 0
    return result


def multiplicative_noise(image: FloatArray, variance: float, rng: np.random.Generator) -> FloatArray:
    """Noise in proportion to the value, uniform as MATLAB's speckle (ports take Gaussian noise)."""
    reach = np.sqrt(3 * variance)
    factor: FloatArray = rng.random(image.shape, dtype=image.dtype.type)
    factor *= image.dtype.type(2 * reach)
    factor += image.dtype.type(1 - reach)
    factor *= image
    return factor


def clock_jittering(image: FloatArray, displacement: float, rng: np.random.Generator) -> FloatArray:
    """Five rounds in which each pixel is read at a place off by independent Gaussian displacements, bilinear."""
    import cv2

    rows, columns = np.mgrid[: image.shape[0], : image.shape[1]].astype(np.float32)
    for _ in range(5):
        dx, dy = normal((2, *image.shape[:2]), np.dtype(np.float32), rng) * np.float32(displacement)
        moved = cv2.remap(image, columns - dx, rows - dy, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
        image = np.asarray(moved).reshape(image.shape)
    return image


def cnn_denoise(
    image: FloatArray,
    variance: float,
    rng: np.random.Generator,
    denoiser: Callable[[FloatArray, float], FloatArray] | None = None,
) -> FloatArray:
    """White noise, and what a denoiser leaves of the image.

    R-Bench used a learned network such as DnCNN. Without one, non-local means stand in: their remains look different.
    """
    sigma = float(np.sqrt(variance))
    noisy = np.clip(white_noise(image, variance, rng), 0, 1)
    clean = denoiser or non_local_means
    planes = [np.asarray(clean(np.ascontiguousarray(noisy[..., i]), sigma)) for i in range(image.shape[-1])]
    return np.stack(planes, axis=-1).astype(image.dtype, copy=False)


def non_local_means(plane: FloatArray, sigma: float) -> FloatArray:
    """One plane denoised by non-local means (Buades et al. 2005), as scikit-image computes it."""
    from skimage.restoration import denoise_nl_means

    return np.asarray(
        denoise_nl_means(plane, h=0.8 * sigma, sigma=sigma, patch_size=5, patch_distance=6, fast_mode=True)
    )


@functools.cache
def _quantiles() -> FloatArray:
    """65,536 equally likely values of a normal distribution with mean 0 and variance 1; the largest is 4.3."""
    from scipy.special import ndtri

    values: FloatArray = ndtri((np.arange(65536) + 0.5) / 65536)
    return np.asarray((values / np.sqrt(np.mean(values**2))).astype(np.float32))


def normal(shape: tuple[int, ...], dtype: np.dtype[Any], rng: np.random.Generator) -> FloatArray:
    """Standard normal noise.

    In single precision, in which 8-bit images are computed, by looking up quantiles: four times faster than a generator
    of normal numbers, and finer than 8 bits can show. In double precision by the generator.
    """
    if dtype == np.float32:
        return np.asarray(_quantiles().take(rng.integers(0, 65536, size=shape, dtype=np.uint16)))
    return np.asarray(rng.standard_normal(shape))


def bright_illumination(image: FloatArray, gain: float, rng: np.random.Generator) -> FloatArray:
    """A lamp in view: a halo of the gain around a random place and a veil of an eighth of it. Simulated."""
    rows, columns = image.shape[:2]
    y, x = np.mgrid[:rows, :columns].astype(image.dtype)
    centre_y, centre_x = rng.uniform(0, rows), rng.uniform(0, columns)
    distance = np.hypot(y - centre_y, x - centre_x) / math.hypot(rows, columns)
    halo = gain * np.exp(-((distance / 0.25) ** 2)) + gain / 8
    return np.asarray(image + halo[..., None])


def dark_illumination(image: FloatArray, stops: float, rng: np.random.Generator) -> FloatArray:
    """Less light, by so many stops in linear light, with the noise of a sensor. Simulated."""
    light = srgb_to_linear(image) * image.dtype.type(2.0**-stops)
    light += normal(image.shape, image.dtype, rng) * np.sqrt(1e-3 * light + 1e-5).astype(image.dtype, copy=False)
    return linear_to_srgb(np.clip(light, 0, 1))


def resolution_limit(image: FloatArray, strength: float, rng: np.random.Generator) -> FloatArray:
    """Both sides scaled by 0.95 - strength^0.6 with the nearest pixel, and back likewise. R-Bench: upsampling."""
    scale = 0.95 - strength**0.6
    places = []
    for side in image.shape[:2]:
        small = max(1, round(side * scale))
        chosen = np.minimum(((np.arange(small) + 0.5) * side / small).astype(int), side - 1)
        places.append(chosen[np.minimum(((np.arange(side) + 0.5) * small / side).astype(int), small - 1)])
    return np.asarray(image[places[0]].take(places[1], axis=1))


def grayscale_quantization(image: FloatArray, levels: float, rng: np.random.Generator) -> FloatArray:
    """So many equally spaced levels a channel, as R-Bench's text says; KADID sets thresholds by Otsu's rule."""
    top = image.dtype.type(round(levels) - 1)
    return np.asarray(np.rint(image * top) / top)


def hsv_saturation(image: FloatArray, factor: float, rng: np.random.Generator) -> FloatArray:
    """Saturation of HSV times the factor; below 0 hues are opposite."""
    # channel = V - V S max(0, min(k, 4 - k, 1)) with k = (n + 6 H) mod 6 and n = 5, 3, 1 is linear in S: each channel
    # moves along the line between itself and V, and hue need not be computed.
    value = np.maximum(np.maximum(image[..., 0], image[..., 1]), image[..., 2])[..., None]
    return np.asarray(value - (value - image) * image.dtype.type(factor))


def lab_saturation(image: FloatArray, factor: float, rng: np.random.Generator) -> FloatArray:
    """CIELAB's a and b times the factor."""
    lab = rgb_to_lab(image)
    lab[..., 1:] *= factor
    return lab_to_rgb(lab)


def maximum_brighten(image: FloatArray, amount: float, rng: np.random.Generator) -> FloatArray:
    """A parabola that lifts mid-tones: two thirds on RGB, one third on CIELAB's L, as KADID's."""
    lab = rgb_to_lab(image)
    lab[..., 0] = 100 * _lifted(lab[..., 0] / 100, amount)
    return np.asarray((2 * _lifted(image, amount) + np.clip(lab_to_rgb(lab), 0, 1)) / 3)


def minimum_darken(image: FloatArray, amount: float, rng: np.random.Generator) -> FloatArray:
    """A parabola that lowers mid-tones, on RGB."""
    return _lifted(image, -amount)


def mean_shift(image: FloatArray, offset: float, rng: np.random.Generator) -> FloatArray:
    """All values moved by the offset, up or down by chance. KADID's middle level is no change at all."""
    return image + image.dtype.type(offset if rng.random() < 0.5 else -offset)


def contrast_change(image: FloatArray, amount: float, rng: np.random.Generator) -> FloatArray:
    """A cubic curve that raises contrast about the middle; below -0.2 it lowers it, as KADID also does.

    The not-a-knot spline through (0, 0), (0.3, 0.25 - a/4), (0.5, 0.5), (0.7, 0.75 + a/4), (1, 1) is odd about its
    middle and therefore one polynomial, 0.5 + b u + c u^3 with u = x - 0.5.
    """
    c = -(0.05 + amount / 4) / 0.042
    b = 1 - c / 4
    u = image - image.dtype.type(0.5)
    return np.asarray(np.clip(0.5 + u * (b + c * u * u), 0, 1).astype(image.dtype, copy=False))


def _lifted(values: FloatArray, amount: float) -> FloatArray:
    return np.asarray(np.clip(values + values.dtype.type(2 * amount) * values * (1 - values), 0, 1))
