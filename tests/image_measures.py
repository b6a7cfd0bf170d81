"""Measures that only tests take: the centre of an image, isotropy and slope of its spectrum,
scrambled phases."""

from __future__ import annotations

import numpy as np

from psyprobe.errors import InputError
from psyprobe.stimulus.estimate import (
    Float64,
    fourier_power,
    pixel_centres,
    radial_frequency,
    to_float64,
)


def michelson_contrast(image: Float64) -> Float64:
    """(max - min) / (max + min) of the samples, which need not include the peaks of a sine."""
    pixels = to_float64(image)
    low, high = pixels.min(axis=(-2, -1)), pixels.max(axis=(-2, -1))
    if not (low + high > 0).all():
        raise InputError("Michelson contrast needs luminances whose sum is above 0")
    return np.asarray((high - low) / (high + low))


def centroid(image: Float64, background: float, ppd: float) -> tuple[Float64, Float64]:
    """Centre of the squared deviation from the background, deg; exact for a pattern that is even or
    odd about it."""
    energy = (to_float64(image) - background) ** 2
    total = energy.sum(axis=(-2, -1))
    x, y = pixel_centres((energy.shape[-2], energy.shape[-1]), ppd)
    return energy.sum(axis=-2) @ x / total, energy.sum(axis=-1) @ y / total


def sector_energy(image: Float64, sectors: int = 8) -> Float64:
    """Energy in equal sectors of orientation, relative to their mean: 1 everywhere for isotropic
    noise."""
    pixels = to_float64(image)
    height, width = pixels.shape[-2:]
    power = np.abs(np.fft.fft2(pixels - pixels.mean(axis=(-2, -1), keepdims=True))) ** 2
    v, u = np.fft.fftfreq(height)[:, None], np.fft.fftfreq(width)[None, :]
    angle = np.degrees(np.arctan2(v, u)) % 180
    # Sectors are centred on multiples of their width, so that the axes do not lie on an edge.
    index = np.round(angle / (180 / sectors)).astype(int) % sectors
    keep = (np.hypot(u, v) > 0) & (np.hypot(u, v) < 0.5)
    energy = np.stack(
        [power[..., keep & (index == k)].mean(axis=-1) for k in range(sectors)], axis=-1
    )
    return np.asarray(energy / energy.mean(axis=-1, keepdims=True))


def spectral_slope(
    image: Float64, ppd: float, low: float, high: float
) -> tuple[Float64, Float64]:
    """Slope of log power against log frequency from `low` to `high` cpd, -2 a for amplitudes 1/f^a;
    standard error.

    The log of an exponentially distributed power has an SD of pi / sqrt(6).
    """
    pixels = to_float64(image)
    shape = (pixels.shape[-2], pixels.shape[-1])
    power, radius = fourier_power(pixels), radial_frequency(shape, ppd)
    columns = np.broadcast_to(np.arange(radius.shape[1]), radius.shape)
    # The first and last columns hold each coefficient twice over, so they are left out.
    keep = (
        (radius >= low)
        & (radius <= high)
        & (columns > 0)
        & (columns < (shape[1] + 1) // 2)
    )
    points = np.log(radius[keep])
    points = points - points.mean()
    heights = np.log(np.maximum(power[..., keep], np.finfo(np.float64).tiny))
    spread = float((points**2).sum())
    slope = np.asarray((heights * points).sum(axis=-1) / spread)
    return slope, np.full(slope.shape, np.pi / np.sqrt(6 * spread))


def phase_scrambled(image: Float64, seed: int) -> Float64:
    """An image with the phases of white noise and exactly its own amplitude spectrum."""
    phases = np.angle(
        np.fft.rfft2(np.random.default_rng(seed).standard_normal(image.shape))
    )
    spectrum = np.fft.rfft2(image)
    # Coefficients that are their own mirror image are real: they keep their sign, and the mean with
    # it.
    height, width = image.shape
    is_kept_half = np.zeros(spectrum.shape, bool)
    is_kept_half[
        np.ix_(
            [0, height // 2] if height % 2 == 0 else [0],
            [0, -1] if width % 2 == 0 else [0],
        )
    ] = True
    scrambled = np.where(is_kept_half, spectrum, np.abs(spectrum) * np.exp(1j * phases))
    return np.fft.irfft2(scrambled, s=image.shape)
