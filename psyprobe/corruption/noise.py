"""What the conversion to digital values adds: noise of several laws, and jitter of the clock."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.corruption.colour_planes import rgb_to_ycbcr, ycbcr_to_rgb


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

    result: FloatArray = denoise_nl_means(
        plane, h=0.8 * sigma, sigma=sigma, patch_size=5, patch_distance=6, fast_mode=True
    )
    return result


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
