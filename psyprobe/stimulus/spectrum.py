"""Where the energy of an image lies among its spatial frequencies, by Fourier sums."""

from __future__ import annotations

import numpy as np

from psyprobe._typing import Array
from psyprobe.errors import InputError
from psyprobe.stimulus.estimate import Float64, to_float64

#: Two radial frequencies closer than this (relative) are one: a coefficient that lies on a band edge is inside it.
EDGE = 1e-9


def radial_frequency(shape: tuple[int, int], ppd: float) -> Float64:
    """Frequency of each coefficient of `numpy.fft.rfft2`, cycles per degree.

    Examples
    --------
    >>> radial_frequency((2, 4), ppd=4).tolist()
    [[0.0, 1.0, 2.0], [2.0, 2.23606797749979, 2.8284271247461903]]
    """
    height, width = shape
    return np.asarray(np.hypot(np.fft.fftfreq(height, 1 / ppd)[:, None], np.fft.rfftfreq(width, 1 / ppd)[None, :]))


def fourier_power(image: Array) -> Float64:
    """Energy of each coefficient of `numpy.fft.rfft2`, the mean left out, conjugates counted.

    Its sum is the variance of the image times the square of the number of pixels.

    Examples
    --------
    >>> image = np.array([[1.0, 2.0, 4.0], [0.0, 3.0, 1.0]])
    >>> bool(np.isclose(fourier_power(image).sum(), image.var() * 36))
    True
    """
    pixels = to_float64(image)
    width = pixels.shape[-1]
    power = np.abs(np.fft.rfft2(pixels - pixels.mean(axis=(-2, -1), keepdims=True))) ** 2
    power[..., 1 : (width + 1) // 2] *= 2
    power[..., 0, 0] = 0
    return power


def _power_and_frequency(image: Array, ppd: float) -> tuple[Float64, Float64]:
    height, width = to_float64(image).shape[-2:]
    return fourier_power(image), radial_frequency((height, width), ppd)


def out_of_band_energy(image: Array, ppd: float, low: float, high: float) -> Float64:
    """Share of the energy outside a band of radial frequency; its edges, `low` and `high` cpd, are inside.

    Examples
    --------
    >>> x = (np.arange(32) - 15.5) / 32
    >>> image = np.cos(2 * np.pi * 4 * x) * np.ones((32, 1))
    >>> float(out_of_band_energy(image, 32, 3, 5)) < 1e-28, float(out_of_band_energy(image, 32, 5, 9)) > 0.99
    (True, True)
    """
    power, radius = _power_and_frequency(image, ppd)
    outside = (radius < low * (1 - EDGE)) | (radius > high * (1 + EDGE))
    total = power.sum(axis=(-2, -1))
    if not (total > 0).all():
        raise InputError("a uniform image has no band: all its energy is in its mean")
    return np.asarray((power * outside).sum(axis=(-2, -1)) / total)


def band_limits(image: Array, ppd: float, floor: float = 1e-8) -> tuple[Float64, Float64]:
    """Frequencies of the lowest and the highest coefficient that carries energy, cpd.

    Coefficients below `floor` times the largest one count as empty.

    Examples
    --------
    >>> x = (np.arange(32) - 15.5) / 32
    >>> image = np.cos(2 * np.pi * 4 * x) + np.cos(2 * np.pi * 9 * x) * np.ones((32, 1))
    >>> [float(edge) for edge in band_limits(image, 32)]
    [4.0, 9.0]
    """
    power, radius = _power_and_frequency(image, ppd)
    full = power > floor * power.max(axis=(-2, -1), keepdims=True)
    low = np.where(full, radius, np.inf).min(axis=(-2, -1))
    high = np.where(full, radius, -np.inf).max(axis=(-2, -1))
    return low, high
