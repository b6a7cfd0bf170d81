"""Estimators: what an image holds, measured from its pixels.

Nothing here knows how psyprobe draws, so that a fault in the drawing cannot hide itself. Each
estimator is the one that reaches the rounding error of the pixels: amplitudes are fitted by least
squares (the largest and smallest sample of a sine miss its peaks by up to 41 %), frequencies by
Gauss-Newton (the peak of a Fourier transform lies up to half a bin off; `psyprobe.stimulus.sines`),
bands by Fourier sums.

Images are `(..., H, W)`; leading dimensions are a batch. Pixel centres lie at ``(i - (N - 1) / 2) /
ppd`` degrees, x to the right and y up; `ppd` is pixels per degree, and the unit of a fit that of
the image: luminance, or any linear quantity. Torch tensors are taken too, and measured as float64
on the CPU.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from psyprobe._typing import Array, Levels, Size
from psyprobe.errors import InputError

Float64 = npt.NDArray[np.float64]


def to_float64(image: Array) -> Float64:
    """Convert an image to a float64 numpy array, and check that it is two-dimensional and finite.

    Parameters
    ----------
    image : array_like, shape (..., H, W)
        A list, or an array of numpy or torch, on any device.

    Raises
    ------
    InputError
        If it has fewer than two dimensions, or holds NaN or infinity.

    Examples
    --------
    >>> to_float64([[1, 2], [3, 4]]).dtype
    dtype('float64')
    """
    if hasattr(image, "detach"):
        # numpy has no bfloat16, so the widening is left to torch.
        image = image.detach().cpu().double().numpy()
    pixels: Float64 = np.asarray(image, dtype=np.float64)
    if pixels.ndim < 2:
        raise InputError(
            f"an image needs two dimensions (H, W), not {pixels.ndim}: its shape is {pixels.shape}"
        )
    finite = np.isfinite(pixels)
    if not finite.all():
        count = int(np.count_nonzero(~finite))
        raise InputError(
            f"{count} of {pixels.size} values are NaN or infinite; an image must be finite to be "
            "measured"
        )
    return pixels


def pixel_centres(shape: Size, ppd: float) -> tuple[Float64, Float64]:
    """Compute where the columns and the rows of an image lie, deg.

    Positions of columns rise to the right, and those of rows fall, since row 0 is the top.

    Parameters
    ----------
    shape : (int, int)
        Pixels (H, W).
    ppd : float
        Pixels per degree.

    Examples
    --------
    >>> x, y = pixel_centres((2, 4), ppd=2)
    >>> x.tolist(), y.tolist()
    ([-0.75, -0.25, 0.25, 0.75], [0.25, -0.25])
    """
    height, width = shape
    x = (np.arange(width) - (width - 1) / 2) / ppd
    y = ((height - 1) / 2 - np.arange(height)) / ppd
    return np.asarray(x), np.asarray(y)


def gaussian(
    shape: Size,
    ppd: float,
    radius: Levels,
    *,
    aspect: Levels = 1.0,
    orientation: Levels = 0.0,
    x: Levels = 0.0,
    y: Levels = 0.0,
) -> Float64:
    """Draw a Gaussian envelope, 1 at its centre, (..., H, W).

    Numbers may be arrays that broadcast to a batch.

    Parameters
    ----------
    shape : (int, int)
        Pixels (H, W).
    ppd : float
        Pixels per degree.
    radius : float or array
        Standard deviation across the stripes, degrees.
    aspect : float or array
        Standard deviation along the stripes over that across them.
    orientation : float or array
        Orientation of the stripes, degrees counter-clockwise from vertical.
    x, y : float or array
        Its centre, degrees to the right and up.

    Examples
    --------
    >>> gaussian((3, 3), ppd=1, radius=1)[1].round(4).tolist()
    [0.6065, 1.0, 0.6065]
    """
    columns, rows = pixel_centres(shape, ppd)
    dx = columns - along_pixels(x)
    dy = rows[:, None] - along_pixels(y)
    sigma = along_pixels(radius)
    if np.all(np.equal(aspect, 1.0)):
        envelope_x = np.exp(-0.5 * (dx / sigma) ** 2)
        envelope_y = np.exp(-0.5 * (dy / sigma) ** 2)
        return np.asarray(envelope_y * envelope_x)
    angle = along_pixels(np.radians(orientation))
    cosine = np.cos(angle)
    sine = np.sin(angle)
    across = cosine * dx + sine * dy
    along = -sine * dx + cosine * dy
    squared = (across / sigma) ** 2 + (along / (along_pixels(aspect) * sigma)) ** 2
    return np.asarray(np.exp(-0.5 * squared))


def along_pixels(values: Levels, axes: int = 2) -> Float64:
    """Add axes of pixels to numbers of a batch, (...) to (..., 1, 1).

    Examples
    --------
    >>> along_pixels([1.0, 2.0]).shape
    (2, 1, 1)
    """
    return np.asarray(values, float)[(..., *[None] * axes)]


def round_window(
    shape: Size,
    ppd: float,
    radius: float,
    *,
    edge: float = 0.0,
    x: float = 0.0,
    y: float = 0.0,
) -> Float64:
    """Draw a disc of height 1, with a raised-cosine edge or a hard one, (H, W).

    A soft disc is 1/2 at `radius`; a hard one, with an `edge` of 0 deg, holds the pixels whose
    centres lie within it.

    Examples
    --------
    >>> round_window((3, 5), ppd=1, radius=1.1).astype(int).tolist()
    [[0, 0, 1, 0, 0], [0, 1, 1, 1, 0], [0, 0, 1, 0, 0]]
    """
    beyond = _distance(shape, ppd, x, y) - radius
    if edge == 0:
        return np.asarray((beyond <= 0).astype(np.float64))
    ramp = np.clip(beyond / edge + 0.5, 0, 1)
    return np.asarray(np.cos(np.pi / 2 * ramp) ** 2)


def edge_pixels(
    shape: Size, ppd: float, radius: Levels, x: Levels, y: Levels
) -> Float64:
    """Compute the root of the share of pixels that a hard disc's edge crosses, (...).

    Rounding decides on which side of the edge they are.
    """
    edge = along_pixels(radius)
    on_edge = np.abs(_distance(shape, ppd, x, y) - edge) < 1e-9 * edge
    return np.asarray(np.sqrt(np.mean(on_edge, axis=(-2, -1))))


def _distance(shape: Size, ppd: float, x: Levels, y: Levels) -> Float64:
    """Compute the distance of each pixel from the point (x, y), deg, (..., H, W)."""
    columns, rows = pixel_centres(shape, ppd)
    dx = columns - along_pixels(x)
    dy = rows[:, None] - along_pixels(y)
    return np.asarray(np.hypot(dx, dy))


def rms_contrast(image: Array) -> Float64:
    """Compute the RMS contrast of each image: population standard deviation over mean.

    Parameters
    ----------
    image : (..., H, W) array
        Luminance, or any linear quantity whose mean is above zero.

    Raises
    ------
    InputError
        If a mean is not above 0.

    References
    ----------
    Peli, E. (1990). Contrast in complex images. JOSA A 7(10), eq. 2.

    Examples
    --------
    >>> float(rms_contrast([[90.0, 110.0]]))
    0.1
    """
    pixels = to_float64(image)
    mean = pixels.mean(axis=(-2, -1))
    if not (mean > 0).all():
        raise InputError(
            f"RMS contrast is the SD over the mean, and a mean is {mean.min():.6g}; it must be "
            "above 0"
        )
    return np.asarray(pixels.std(axis=(-2, -1)) / mean)


@dataclass(frozen=True)
class LinearFit:
    """A least-squares fit of given patterns to each image of a batch."""

    #: Amplitude of each pattern, in the unit of the image.
    coefficients: Float64
    #: The constant, in the unit of the image.
    background: Float64
    #: Root mean square of the residual image, in the unit of the image.
    residual: Float64
    #: Standard error of the coefficients and the background for independent pixel errors of 1.
    gain: Float64


def fit_patterns(image: Array, patterns: Array) -> LinearFit:
    """Fit patterns and a constant to images by least squares.

    Parameters
    ----------
    patterns : (..., K, H, W) array
        K patterns; leading dimensions broadcast with those of the image.

    Examples
    --------
    >>> wave = np.sin(np.arange(16)) * np.ones((4, 1))
    >>> fit = fit_patterns(20 + 3 * wave, wave[None])
    >>> round(float(fit.coefficients[0]), 12), round(float(fit.background), 12)
    (3.0, 20.0)
    """
    pixels = to_float64(image)
    components = to_float64(patterns)
    mean = pixels.mean(axis=(-2, -1), keepdims=True)
    rows = components.reshape(*components.shape[:-2], -1)
    batch = np.broadcast_shapes(pixels.shape[:-2], rows.shape[:-2])
    broadcast = np.broadcast_to(pixels, (*batch, *pixels.shape[-2:]))
    residual = np.subtract(broadcast, mean, order="C").reshape(*batch, 1, -1)
    # The constant is a last row of ones, which need not be written down.
    sums = rows.sum(axis=-1, keepdims=True)
    count = float(rows.shape[-1])
    last = np.concatenate([sums, np.full_like(sums[..., :1, :], count)], axis=-2)
    normal = np.concatenate(
        [rows @ rows.swapaxes(-1, -2), sums.swapaxes(-1, -2)], axis=-2
    )
    normal = np.concatenate([normal, last], axis=-1)
    scale = lengths(normal)[..., None]
    inverse = eigen_inverse(normal / (scale * scale.swapaxes(-1, -2)), 1e-13)
    values = np.zeros((*batch, *scale.shape[-2:]))
    # The second pass restores the precision that the normal equations lose by squaring the
    # condition number.
    for _ in range(2):
        total = residual.sum(axis=-1, keepdims=True)
        projection = np.concatenate([rows @ residual.swapaxes(-1, -2), total], axis=-2)
        step = inverse @ (projection / scale) / scale
        values += step
        residual -= step[..., :-1, :].swapaxes(-1, -2) @ rows
        residual -= step[..., -1:, :]
    values = values[..., 0]
    variances = np.diagonal(inverse, axis1=-2, axis2=-1)
    gain = np.sqrt(np.clip(variances, 0, None)) / scale[..., 0]
    squares = np.einsum("...i,...i", residual, residual)[..., 0]
    return LinearFit(
        coefficients=values[..., :-1],
        background=values[..., -1] + mean[..., 0, 0],
        residual=np.sqrt(squares / count),
        gain=np.broadcast_to(gain, values.shape),
    )


def lengths(normal: Float64) -> Float64:
    """Compute the root of the diagonal of matrices, (..., K, K), with 1 in place of 0."""
    squared = np.diagonal(normal, axis1=-2, axis2=-1)
    return np.sqrt(np.where(squared > 0, squared, 1.0))


def eigen_inverse(normal: Float64, smallest_share: float) -> Float64:
    """Invert symmetric matrices, (..., K, K), leaving out their smallest eigenvalues.

    Eigenvalues below `smallest_share` times the largest are left out.
    """
    values, vectors = np.linalg.eigh(normal)
    large = values > smallest_share * values[..., -1:]
    reciprocals = np.where(large, 1 / np.where(large, values, 1.0), 0.0)
    return np.asarray((vectors * reciprocals[..., None, :]) @ vectors.mT)


#: Two radial frequencies closer than this (relative) are one: a coefficient that lies on a band
#: edge is inside it.
BAND_EDGE = 1e-9


def radial_frequency(shape: Size, ppd: float) -> Float64:
    """Compute the frequency of each coefficient of `numpy.fft.rfft2`, cycles per degree.

    Parameters
    ----------
    shape : (int, int)
        Pixels (H, W).
    ppd : float
        Pixels per degree.

    Examples
    --------
    >>> radial_frequency((2, 4), ppd=4).tolist()
    [[0.0, 1.0, 2.0], [2.0, 2.23606797749979, 2.8284271247461903]]
    """
    height, width = shape
    vertical = np.fft.fftfreq(height, 1 / ppd)
    horizontal = np.fft.rfftfreq(width, 1 / ppd)
    return np.asarray(np.hypot(vertical[:, None], horizontal[None, :]))


def fourier_power(image: Array) -> Float64:
    """Compute the energy of each coefficient of `numpy.fft.rfft2`.

    The mean is left out, and conjugates count. The sum is the variance of the image times the
    square of the number of pixels.

    Examples
    --------
    >>> image = np.array([[1.0, 2.0, 4.0], [0.0, 3.0, 1.0]])
    >>> bool(np.isclose(fourier_power(image).sum(), image.var() * 36))
    True
    """
    pixels = to_float64(image)
    width = pixels.shape[-1]
    change = pixels - pixels.mean(axis=(-2, -1), keepdims=True)
    power = np.abs(np.fft.rfft2(change)) ** 2
    power[..., 1 : (width + 1) // 2] *= 2
    power[..., 0, 0] = 0
    return power


def _power_and_frequency(image: Array, ppd: float) -> tuple[Float64, Float64]:
    """Compute an image's Fourier power and the radial frequency of each coefficient, cpd."""
    height, width = to_float64(image).shape[-2:]
    return fourier_power(image), radial_frequency((height, width), ppd)


def out_of_band_energy(image: Array, ppd: float, low: float, high: float) -> Float64:
    """Compute the share of an image's energy outside a band of radial frequency, cpd.

    Parameters
    ----------
    image : (..., H, W) array
        Luminance, or any linear quantity; its mean does not count.
    ppd : float
        Pixels per degree.
    low, high : float
        Edges of the band, cpd, which are inside.

    Raises
    ------
    InputError
        If the image is uniform.

    Examples
    --------
    >>> x = (np.arange(32) - 15.5) / 32
    >>> image = np.cos(2 * np.pi * 4 * x) * np.ones((32, 1))
    >>> float(out_of_band_energy(image, 32, 3, 5)) < 1e-28
    True
    >>> float(out_of_band_energy(image, 32, 5, 9)) > 0.99
    True
    """
    power, radius = _power_and_frequency(image, ppd)
    outside = (radius < low * (1 - BAND_EDGE)) | (radius > high * (1 + BAND_EDGE))
    total = power.sum(axis=(-2, -1))
    if not (total > 0).all():
        raise InputError("a uniform image has no band: all its energy is in its mean")
    return np.asarray((power * outside).sum(axis=(-2, -1)) / total)


def band_limits(
    image: Array, ppd: float, floor: float = 1e-8
) -> tuple[Float64, Float64]:
    """Find the lowest and highest radial frequency at which an image has energy, cpd.

    Coefficients below `floor` times the largest one count as empty.

    Parameters
    ----------
    image : (..., H, W) array
        Luminance, or any linear quantity; its mean does not count.
    ppd : float
        Pixels per degree.
    floor : float
        Smallest energy that counts, as a fraction of the largest.

    Examples
    --------
    >>> x = (np.arange(32) - 15.5) / 32
    >>> image = np.cos(2 * np.pi * 4 * x) + np.cos(2 * np.pi * 9 * x) * np.ones((32, 1))
    >>> [float(edge) for edge in band_limits(image, 32)]
    [4.0, 9.0]
    """
    power, radius = _power_and_frequency(image, ppd)
    filled = power > floor * power.max(axis=(-2, -1), keepdims=True)
    low = np.where(filled, radius, np.inf).min(axis=(-2, -1))
    high = np.where(filled, radius, -np.inf).max(axis=(-2, -1))
    return low, high
