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

    Parameters
    ----------
    shape : (int, int)
        Height and width of the image, pixels.
    ppd : float
        Pixels per degree.

    Returns
    -------
    (H, W // 2 + 1) ndarray

    Examples
    --------
    >>> radial_frequency((2, 4), ppd=4).tolist()
    [[0.0, 1.0, 2.0], [2.0, 2.23606797749979, 2.8284271247461903]]
    """
    height, width = shape
    return np.asarray(np.hypot(np.fft.fftfreq(height, 1 / ppd)[:, None], np.fft.rfftfreq(width, 1 / ppd)[None, :]))


def fourier_power(image: Array) -> Float64:
    """Energy of each coefficient of `numpy.fft.rfft2`, the mean left out, conjugates counted.

    Parameters
    ----------
    image : (..., H, W) array
        Luminance, or any linear quantity.

    Returns
    -------
    (..., H, W // 2 + 1) ndarray
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


def out_of_band_energy(image: Array, ppd: float, low: float, high: float) -> Float64:
    """Share of the energy outside a band of radial frequency; its edges are inside.

    Parameters
    ----------
    image : (..., H, W) array
        Luminance, or any linear quantity.
    ppd : float
        Pixels per degree.
    low, high : float
        Band edges, cycles per degree.

    Returns
    -------
    (...) ndarray
        0 to 1.

    Raises
    ------
    InputError
        If an image is uniform.

    Examples
    --------
    >>> x = (np.arange(32) - 15.5) / 32
    >>> image = np.cos(2 * np.pi * 4 * x) * np.ones((32, 1))
    >>> float(out_of_band_energy(image, 32, 3, 5)) < 1e-28, float(out_of_band_energy(image, 32, 5, 9)) > 0.99
    (True, True)
    """
    power = fourier_power(image)
    pixels = to_float64(image)
    radius = radial_frequency((pixels.shape[-2], pixels.shape[-1]), ppd)
    outside = (radius < low * (1 - EDGE)) | (radius > high * (1 + EDGE))
    total = power.sum(axis=(-2, -1))
    if not (total > 0).all():
        raise InputError("a uniform image has no band: all its energy is in its mean")
    return np.asarray((power * outside).sum(axis=(-2, -1)) / total)


def band_limits(image: Array, ppd: float, floor: float = 1e-8) -> tuple[Float64, Float64]:
    """Lowest and highest frequency that carries energy.

    Parameters
    ----------
    image : (..., H, W) array
        Luminance, or any linear quantity.
    ppd : float
        Pixels per degree.
    floor : float
        Coefficients below this share of the largest one count as empty.

    Returns
    -------
    low, high : (...) ndarray
        Cycles per degree, each the frequency of a Fourier coefficient.

    Examples
    --------
    >>> x = (np.arange(32) - 15.5) / 32
    >>> image = np.cos(2 * np.pi * 4 * x) + np.cos(2 * np.pi * 9 * x) * np.ones((32, 1))
    >>> [float(edge) for edge in band_limits(image, 32)]
    [4.0, 9.0]
    """
    power = fourier_power(image)
    pixels = to_float64(image)
    radius = radial_frequency((pixels.shape[-2], pixels.shape[-1]), ppd)
    full = power > floor * power.max(axis=(-2, -1), keepdims=True)
    low = np.where(full, radius, np.inf).min(axis=(-2, -1))
    high = np.where(full, radius, -np.inf).max(axis=(-2, -1))
    return low, high


def sector_energy(image: Array, sectors: int = 8) -> Float64:
    """Energy in equal sectors of orientation, relative to their mean.

    Parameters
    ----------
    image : (..., H, W) array
        Luminance, or any linear quantity; square, so that coefficients lie alike in all directions.
    sectors : int
        Number of sectors in 180 degrees.

    Returns
    -------
    (..., sectors) ndarray
        Means over the coefficients of each sector, divided by their mean: 1 everywhere for isotropic noise.

    Examples
    --------
    >>> noise = np.random.default_rng(1).normal(size=(64, 64))
    >>> bool(np.all(np.abs(sector_energy(noise, 4) - 1) < 0.2))
    True
    """
    pixels = to_float64(image)
    height, width = pixels.shape[-2:]
    power = np.abs(np.fft.fft2(pixels - pixels.mean(axis=(-2, -1), keepdims=True))) ** 2
    v, u = np.fft.fftfreq(height)[:, None], np.fft.fftfreq(width)[None, :]
    angle = np.degrees(np.arctan2(v, u)) % 180
    # Sectors are centred on multiples of their width, so that the axes do not lie on an edge.
    index = np.round(angle / (180 / sectors)).astype(int) % sectors
    keep = (np.hypot(u, v) > 0) & (np.hypot(u, v) < 0.5)
    energy = np.stack([power[..., keep & (index == k)].mean(axis=-1) for k in range(sectors)], axis=-1)
    return np.asarray(energy / energy.mean(axis=-1, keepdims=True))


def spectral_slope(image: Array, ppd: float, low: float, high: float) -> tuple[Float64, Float64]:
    """Slope of log power against log frequency.

    Every coefficient is one point; the log of an exponentially distributed power has an SD of pi / sqrt(6), which
    gives the standard error.

    Parameters
    ----------
    image : (..., H, W) array
        Noise: luminance, or any linear quantity.
    ppd : float
        Pixels per degree.
    low, high : float
        Range of frequencies to use, cycles per degree.

    Returns
    -------
    slope : (...) ndarray
        -2 a for an amplitude spectrum 1/f^a.
    standard_error : (...) ndarray

    Examples
    --------
    >>> noise = np.random.default_rng(1).normal(size=(64, 64))
    >>> slope, error = spectral_slope(noise, ppd=64, low=2, high=30)
    >>> bool(abs(slope) < 3 * error)
    True
    """
    pixels = to_float64(image)
    shape = (pixels.shape[-2], pixels.shape[-1])
    power, radius = fourier_power(pixels), radial_frequency(shape, ppd)
    columns = np.broadcast_to(np.arange(radius.shape[1]), radius.shape)
    # The first and last columns hold each coefficient twice over, so they are left out.
    keep = (radius >= low) & (radius <= high) & (columns > 0) & (columns < (shape[1] + 1) // 2)
    points = np.log(radius[keep])
    points = points - points.mean()
    heights = np.log(np.maximum(power[..., keep], np.finfo(np.float64).tiny))
    spread = float((points**2).sum())
    error = np.pi / np.sqrt(6 * spread)
    slope = np.asarray((heights * points).sum(axis=-1) / spread)
    return slope, np.full(slope.shape, error)
