"""Estimators: what an image holds, measured from its pixels.

Nothing here knows how psyprobe draws, so that a fault in the drawing cannot hide itself. Each estimator is the one
that reaches the rounding error of the pixels: amplitudes are fitted by least squares (the largest and smallest sample
of a sine miss its peaks by up to 41 %), frequencies by Gauss-Newton (the peak of a Fourier transform lies up to half a
bin off), bands by Fourier sums.

Images are `(..., H, W)`; leading dimensions are a batch. Pixel centres lie at ``(i - (N - 1) / 2) / ppd`` degrees,
x to the right and y up. Torch tensors are taken too, and measured as float64 on the CPU.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from psyprobe._typing import Array, FloatArray
from psyprobe.errors import InputError

Float64 = npt.NDArray[np.float64]


def to_float64(image: Array) -> Float64:
    """The image as a float64 numpy array, whatever it came as.

    Parameters
    ----------
    image : array_like or torch.Tensor
        At least two-dimensional and finite.

    Returns
    -------
    ndarray of float64

    Raises
    ------
    InputError
        If there are fewer than two dimensions, or a value is not finite.

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
        raise InputError(f"an image needs two dimensions (H, W), not {pixels.ndim}: its shape is {pixels.shape}")
    if not np.isfinite(pixels).all():
        bad = int(np.count_nonzero(~np.isfinite(pixels)))
        raise InputError(f"{bad} of {pixels.size} values are NaN or infinite; an image must be finite to be measured")
    return pixels


def pixel_centres(shape: tuple[int, int], ppd: float) -> tuple[Float64, Float64]:
    """Where the columns and rows of an image lie.

    Parameters
    ----------
    shape : (int, int)
        Height and width, pixels.
    ppd : float
        Pixels per degree.

    Returns
    -------
    x : (W,) ndarray
        Degrees, rising to the right.
    y : (H,) ndarray
        Degrees, falling from row to row, since row 0 is the top.

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
    shape: tuple[int, int],
    ppd: float,
    radius: float,
    *,
    aspect: float = 1.0,
    orientation: float = 0.0,
    x: float = 0.0,
    y: float = 0.0,
) -> Float64:
    """A Gaussian envelope, 1 at its centre.

    Parameters
    ----------
    shape : (int, int)
        Height and width, pixels.
    ppd : float
        Pixels per degree.
    radius : float
        Standard deviation across the stripes, degrees.
    aspect : float
        Standard deviation along the stripes over that across them.
    orientation : float
        Of the stripes, degrees counter-clockwise from vertical.
    x, y : float
        Centre, degrees.

    Returns
    -------
    (H, W) ndarray

    Examples
    --------
    >>> gaussian((3, 3), ppd=1, radius=1)[1].round(4).tolist()
    [0.6065, 1.0, 0.6065]
    """
    columns, rows = pixel_centres(shape, ppd)
    dx, dy = columns - x, rows - y
    if aspect == 1.0:
        return np.outer(np.exp(-0.5 * (dy / radius) ** 2), np.exp(-0.5 * (dx / radius) ** 2))
    across, along = turn(dx, dy, orientation)
    return np.asarray(np.exp(-0.5 * ((across / radius) ** 2 + (along / (aspect * radius)) ** 2)))


def round_window(
    shape: tuple[int, int], ppd: float, radius: float, *, edge: float = 0.0, x: float = 0.0, y: float = 0.0
) -> Float64:
    """A disc of height 1, hard or with a raised-cosine edge.

    Parameters
    ----------
    shape : (int, int)
        Height and width, pixels.
    ppd : float
        Pixels per degree.
    radius : float
        Where a soft disc is 1/2; a hard one holds the pixels whose centres lie within it, degrees.
    edge : float
        Width of the raised-cosine edge, degrees; 0 is hard.
    x, y : float
        Centre, degrees.

    Returns
    -------
    (H, W) ndarray

    Examples
    --------
    >>> round_window((3, 5), ppd=1, radius=1.1).astype(int).tolist()
    [[0, 0, 1, 0, 0], [0, 1, 1, 1, 0], [0, 0, 1, 0, 0]]
    """
    columns, rows = pixel_centres(shape, ppd)
    beyond = np.hypot((columns - x)[None, :], (rows - y)[:, None]) - radius
    if edge == 0:
        return np.asarray((beyond <= 0).astype(np.float64))
    return np.asarray(np.cos(np.pi / 2 * np.clip(beyond / edge + 0.5, 0, 1)) ** 2)


def mean_level(image: Array) -> Float64:
    """Mean over the pixels of each image, in the unit of the image.

    Examples
    --------
    >>> float(mean_level([[90.0, 110.0]]))
    100.0
    """
    return np.asarray(to_float64(image).mean(axis=(-2, -1)))


def rms_contrast(image: Array) -> Float64:
    """RMS contrast of each image: population standard deviation over mean.

    Parameters
    ----------
    image : (..., H, W) array
        Luminance, or any linear quantity whose mean is above zero.

    Returns
    -------
    (...) ndarray

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
        raise InputError(f"RMS contrast is the SD over the mean, and a mean is {mean.min():.6g}; it must be above 0")
    return np.asarray(pixels.std(axis=(-2, -1)) / mean)


def michelson_contrast(image: Array) -> Float64:
    """Michelson contrast of the *samples*: (max - min) / (max + min).

    The samples of a sine need not include its peaks: for the contrast of a grating or a Gabor use `fit_sine`.

    Examples
    --------
    >>> float(michelson_contrast([[90.0, 110.0]]))
    0.1
    """
    pixels = to_float64(image)
    low, high = pixels.min(axis=(-2, -1)), pixels.max(axis=(-2, -1))
    if not (low + high > 0).all():
        raise InputError("Michelson contrast needs luminances whose sum is above 0")
    return np.asarray((high - low) / (high + low))


def centroid(image: Array, background: float | Float64, ppd: float) -> tuple[Float64, Float64]:
    """Centre of the squared deviation from the background.

    Exact for a pattern whose support lies inside the field and that is even or odd about its centre.

    Parameters
    ----------
    image : (..., H, W) array
        Luminance, or any linear quantity.
    background : float or (...) array
        Level of the field around the pattern, in the unit of the image.
    ppd : float
        Pixels per degree.

    Returns
    -------
    x, y : (...) ndarray
        Degrees; x to the right, y up.

    Raises
    ------
    InputError
        If an image does not differ from its background.

    Examples
    --------
    >>> image = np.full((5, 5), 10.0)
    >>> image[1, 2] = 12
    >>> x, y = centroid(image, 10, ppd=1)
    >>> float(x), float(y)
    (0.0, 1.0)
    """
    pixels = to_float64(image)
    energy = (pixels - np.asarray(background)[..., None, None]) ** 2
    total = energy.sum(axis=(-2, -1))
    if not (total > 0).all():
        raise InputError("a uniform image has no centre: no pixel differs from the background")
    x, y = pixel_centres((pixels.shape[-2], pixels.shape[-1]), ppd)
    return energy.sum(axis=-2) @ x / total, energy.sum(axis=-1) @ y / total


@dataclass(frozen=True)
class LinearFit:
    """A least-squares fit of known patterns to each image of a batch.

    Attributes
    ----------
    coefficients : (..., K) ndarray
        Amplitude of each pattern, in the unit of the image.
    background : (...) ndarray
        The constant.
    residual : (...) ndarray
        Root mean square of what the patterns leave, in the unit of the image.
    gain : (..., K + 1) ndarray
        Standard error of the coefficients and the background for independent pixel errors of 1.
    """

    coefficients: Float64
    background: Float64
    residual: Float64
    gain: Float64


def fit_patterns(image: Array, patterns: Array) -> LinearFit:
    """Least squares on {patterns, 1}.

    Parameters
    ----------
    image : (..., H, W) array
        Luminance, or any linear quantity.
    patterns : (..., K, H, W) array
        K patterns of known shape; leading dimensions broadcast with those of the image.

    Returns
    -------
    LinearFit

    Examples
    --------
    >>> wave = np.sin(np.arange(16)) * np.ones((4, 1))
    >>> fit = fit_patterns(20 + 3 * wave, wave[None])
    >>> round(float(fit.coefficients[0]), 12), round(float(fit.background), 12)
    (3.0, 20.0)
    """
    pixels = to_float64(image)
    known = to_float64(patterns)
    mean = pixels.mean(axis=(-2, -1), keepdims=True)
    target = (pixels - mean).reshape(*pixels.shape[:-2], 1, -1)
    rows = known.reshape(*known.shape[:-2], -1)
    basis = np.concatenate([rows, np.ones_like(rows[..., :1, :])], axis=-2)
    scale = np.sqrt((basis**2).sum(axis=-1, keepdims=True))
    scale = np.where(scale > 0, scale, 1.0)
    basis = basis / scale
    inverse = np.linalg.pinv(basis @ basis.swapaxes(-1, -2), rcond=1e-13, hermitian=True)
    coefficients = np.zeros((*np.broadcast_shapes(target.shape[:-2], basis.shape[:-2]), basis.shape[-2], 1))
    left = np.broadcast_to(target, (*coefficients.shape[:-2], 1, target.shape[-1]))
    # The second pass takes away what squaring the condition number in the normal equations cost.
    for _ in range(2):
        coefficients = coefficients + inverse @ (basis @ left.swapaxes(-1, -2))
        left = target - coefficients.swapaxes(-1, -2) @ basis
    values = coefficients[..., 0] / scale[..., 0]
    gain = np.sqrt(np.clip(np.diagonal(inverse, axis1=-2, axis2=-1), 0, None)) / scale[..., 0]
    return LinearFit(
        coefficients=values[..., :-1],
        background=values[..., -1] + mean[..., 0, 0],
        residual=np.sqrt((left[..., 0, :] ** 2).mean(axis=-1)),
        gain=np.broadcast_to(gain, values.shape),
    )


@dataclass(frozen=True)
class SineFit:
    """A sine of known frequency, orientation and envelope, fitted to each image of a batch.

    Attributes
    ----------
    background : (...) ndarray
        Level that the wave rides on, in the unit of the image.
    amplitude : (...) ndarray
        Half the distance from trough to peak where the envelope is 1, in the unit of the image.
    phase : (...) ndarray
        Degrees in (-180, 180]; 0 puts a peak at the centre.
    pedestal : (...) ndarray
        Amplitude of the bare envelope; 0 unless it was fitted.
    residual : (...) ndarray
        Root mean square of what the fit leaves, in the unit of the image.
    gain, background_gain : (...) ndarray
        Standard errors of the amplitude and the background for independent pixel errors of 1.
    """

    background: Float64
    amplitude: Float64
    phase: Float64
    pedestal: Float64
    residual: Float64
    gain: Float64
    background_gain: Float64


def fit_sine(
    image: Array,
    *,
    ppd: float,
    frequency: float,
    orientation: float = 0.0,
    x: float = 0.0,
    y: float = 0.0,
    envelope: FloatArray | None = None,
    pedestal: bool = False,
) -> SineFit:
    """Amplitude, phase and background by least squares on {E cos, E sin, 1}.

    Exact for every frequency below Nyquist, every phase and every orientation, wherever the samples fall.

    Parameters
    ----------
    image : (..., H, W) array
        Luminance, or any linear quantity.
    ppd : float
        Pixels per degree.
    frequency : float
        Cycles per degree.
    orientation : float
        Degrees counter-clockwise from vertical stripes.
    x, y : float
        Centre to which the phase refers, degrees.
    envelope : (H, W) ndarray, optional
        E; 1 everywhere if absent.
    pedestal : bool
        Fit the bare envelope too, {E cos, E sin, E, 1}: a Gabor balanced to zero mean has one.

    Returns
    -------
    SineFit

    Examples
    --------
    At a quarter of the sampling rate and 45 degrees of phase no sample meets a peak:

    >>> x, _ = pixel_centres((4, 64), ppd=60)
    >>> grating = 100 + 50 * np.cos(2 * np.pi * 15 * x + np.pi / 4) * np.ones((4, 1))
    >>> fit = fit_sine(grating, ppd=60, frequency=15)
    >>> round(float(fit.amplitude), 9), round(float(fit.phase), 9), round(float(np.ptp(grating) / 2), 2)
    (50.0, 45.0, 50.0)
    """
    pixels = to_float64(image)
    wave = carrier((pixels.shape[-2], pixels.shape[-1]), ppd, *wave_vector(frequency, orientation), x, y)
    if envelope is not None:
        wave = wave * envelope
    patterns = [wave.real, wave.imag]
    if pedestal:
        patterns.append(np.ones(wave.shape) if envelope is None else np.asarray(envelope, dtype=np.float64))
    fit = fit_patterns(pixels, np.stack(patterns))
    in_phase, quadrature = fit.coefficients[..., 0], fit.coefficients[..., 1]
    return SineFit(
        background=fit.background,
        amplitude=np.hypot(in_phase, quadrature),
        phase=np.degrees(np.arctan2(-quadrature, in_phase)),
        pedestal=fit.coefficients[..., 2] if pedestal else np.zeros_like(fit.background),
        residual=fit.residual,
        gain=np.hypot(fit.gain[..., 0], fit.gain[..., 1]),
        background_gain=fit.gain[..., -1],
    )


def wave_vector(frequency: float, orientation: float) -> tuple[float, float]:
    """Cycles per degree along x and y of stripes turned counter-clockwise from vertical."""
    angle = np.radians(orientation)
    return float(frequency * np.cos(angle)), float(frequency * np.sin(angle))


def turn(dx: Float64, dy: Float64, orientation: float) -> tuple[Float64, Float64]:
    """Coordinates across and along the stripes, (H, W) each."""
    angle = np.radians(orientation)
    cosine, sine = np.cos(angle), np.sin(angle)
    across = cosine * dx[None, :] + sine * dy[:, None]
    along = -sine * dx[None, :] + cosine * dy[:, None]
    return across, along


def carrier(shape: tuple[int, int], ppd: float, u: float, v: float, x: float, y: float) -> npt.NDArray[np.complex128]:
    """exp(2 pi i (u x + v y)): an outer product, so its phases are as exact as those of two lines."""
    columns, rows = pixel_centres(shape, ppd)
    return np.outer(np.exp(2j * np.pi * v * (rows - y)), np.exp(2j * np.pi * u * (columns - x)))


def out_of_range(image: Array, low: float, high: float) -> tuple[int, int]:
    """How many values lie below and above a range.

    Examples
    --------
    >>> out_of_range([[-0.1, 0.5], [1.0, 1.2]], 0, 1)
    (1, 1)
    """
    pixels = to_float64(image)
    return int(np.count_nonzero(pixels < low)), int(np.count_nonzero(pixels > high))
