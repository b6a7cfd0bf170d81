"""Find the elements of an image: where Gabors or blobs lie in it, and how they are turned.

Nothing is known of the places: peaks of the response to the element's own filter at eight
orientations are starting points, and Gauss-Newton steps on all elements lead from there to the
rounding error of the pixels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from psyprobe._typing import AnyArray, FloatArray
from psyprobe.stimulus.estimate import Float64

Complex = npt.NDArray[np.complex128]

_ORIENTATIONS = 8
#: Half the width of the patch in which an element is fitted, in standard deviations.
_REACH = 3.0
_STEPS = 25
#: A step so short ends the search, px.
_SHORTEST_STEP = 1e-10


@dataclass
class Elements:
    """Elements of one image, shape (n,) each."""

    #: x, y: Pixels to the right of the middle of the image and up.
    x: FloatArray
    y: FloatArray
    #: Radians counter-clockwise; 0 is vertical stripes.
    angle: FloatArray
    #: Amplitude and phase.
    amplitude: Complex
    #: Standard errors of x, y and angle for independent pixel errors of 1, (3, n).
    gain: FloatArray


def find_elements(image: Float64, frequency: float, sigma: float) -> Elements:
    """Find all Gabor elements of one size in an image about 0, by least squares.

    Parameters
    ----------
    image : ndarray, shape (H, W)
        The elements on a background of 0.
    frequency : float
        Cycles per pixel; 0 for blobs, which have no orientation.
    sigma : float
        Standard deviation of their envelope, px.

    Examples
    --------
    >>> y, x = 8.25 - np.arange(24.0)[:, None], np.arange(24.0) - 8.5
    >>> blob = np.exp(-(x**2 + y**2) / 8)
    >>> elements = find_elements(blob, 0.0, 2.0)
    >>> elements.x.round(9).tolist(), elements.y.round(9).tolist()
    ([-3.0], [3.25])
    """
    elements = _peaks(image, frequency, sigma)
    height, width = image.shape
    columns = np.arange(width) - (width - 1) / 2
    rows = (height - 1) / 2 - np.arange(height)
    for _ in range(_STEPS):
        residual = image - _draw(elements, columns, rows, frequency, sigma)
        step = _step(elements, residual, frequency, sigma)
        if not step > _SHORTEST_STEP:
            break
    return elements


def _peaks(image: Float64, frequency: float, sigma: float) -> Elements:
    """Place an element at each peak of the image filtered by the element's own form."""
    from scipy import fft, ndimage

    height, width = image.shape
    margin = int(np.ceil(4 * sigma))
    size = [fft.next_fast_len(side + margin) for side in image.shape]
    spectrum = fft.fft2(image.astype(np.float32), size)
    down = np.fft.fftfreq(size[0])[:, None]
    across = np.fft.fftfreq(size[1])
    angles = np.arange(_ORIENTATIONS) * np.pi / _ORIENTATIONS
    if frequency == 0:
        angles = np.zeros(1)
    responses = []
    for angle in angles:
        # Rows run down, and the angle turns counter-clockwise.
        beyond_x = across - frequency * np.cos(angle)
        beyond_y = down + frequency * np.sin(angle)
        filters = np.exp(-2 * (np.pi * sigma) ** 2 * (beyond_x**2 + beyond_y**2))
        response = fft.ifft2(spectrum * filters.astype(np.float32))
        responses.append(response[:height, :width])
    # The filter's own response to an element of amplitude 1 is 1/2; to a blob it is 1/2 too.
    stack = 4 * np.array(responses) if frequency else 2 * np.array(responses)
    strength = np.abs(stack).max(axis=0).astype(np.float64)
    # An element between two pixels has one peak all the same.
    slope = np.add.outer(np.sqrt(2) * np.arange(height), np.arange(width))
    strength += 1e-6 * strength.max() * slope / width
    highest = ndimage.maximum_filter(strength, 2 * int(np.ceil(sigma)) + 1)
    row, column = np.nonzero((strength == highest) & (strength > strength.max() / 2))
    at_peaks = stack[:, row, column]
    best = np.abs(at_peaks).argmax(axis=0)
    index = np.arange(len(row))
    return Elements(
        column - (width - 1) / 2,
        (height - 1) / 2 - row,
        angles[best] + _turn(np.abs(at_peaks), best, index),
        at_peaks[best, index].astype(np.complex128),
        np.zeros((3, len(row))),
    )


def _turn(strength: FloatArray, best: AnyArray, index: AnyArray) -> FloatArray:
    """Interpolate the orientation of the strongest response between neighbours, radians."""
    count = len(strength)
    if count == 1:
        return np.zeros(len(index))
    before, middle, after = (
        np.log(np.maximum(strength[(best + shift) % count, index], 1e-12))
        for shift in (-1, 0, 1)
    )
    curvature = np.minimum(before - 2 * middle + after, -1e-6)
    offset: FloatArray = (before - after) / (2 * curvature)
    return np.clip(offset, -0.5, 0.5) * np.pi / count


def _draw(
    elements: Elements,
    columns: FloatArray,
    rows: FloatArray,
    frequency: float,
    sigma: float,
) -> Float64:
    """Draw elements as products of a column and a row each, (H, W)."""
    x = columns - elements.x[:, None]
    y = rows - elements.y[:, None]
    wave_x = 2j * np.pi * frequency * np.cos(elements.angle)[:, None]
    wave_y = 2j * np.pi * frequency * np.sin(elements.angle)[:, None]
    across = np.exp(wave_x * x - x**2 / (2 * sigma**2))
    up = np.exp(wave_y * y - y**2 / (2 * sigma**2)) * elements.amplitude[:, None]
    return np.asarray((up.T @ across).real)


def _step(
    elements: Elements, residual: Float64, frequency: float, sigma: float
) -> float:
    """Move each element by least squares on the residual; return the longest step, px."""
    height, width = residual.shape
    reach = np.arange(-int(np.ceil(_REACH * sigma)), int(np.ceil(_REACH * sigma)) + 1)
    column = np.rint(elements.x + (width - 1) / 2).astype(int)[:, None] + reach
    row = np.rint((height - 1) / 2 - elements.y).astype(int)[:, None] + reach
    inside = ((row >= 0) & (row < height))[:, :, None]
    inside = inside & ((column >= 0) & (column < width))[:, None, :]
    x = (column - (width - 1) / 2 - elements.x[:, None])[:, None, :]
    y = ((height - 1) / 2 - row - elements.y[:, None])[:, :, None]
    rows = np.clip(row, 0, height - 1)[:, :, None]
    patch = residual[rows, np.clip(column, 0, width - 1)[:, None, :]]
    cosine = np.cos(elements.angle)[:, None, None]
    sine = np.sin(elements.angle)[:, None, None]
    wave = 2 * np.pi * frequency
    envelope = np.exp(-(x**2 + y**2) / (2 * sigma**2)) * inside
    unit = envelope * np.exp(1j * wave * (x * cosine + y * sine))
    element = elements.amplitude[:, None, None] * unit
    slopes: list[Any] = [
        (element * (x / sigma**2 - 1j * wave * cosine)).real,
        (element * (y / sigma**2 - 1j * wave * sine)).real,
        unit.real,
    ]
    if frequency:
        slopes += [
            -unit.imag,
            (element * 1j * wave * (y * cosine - x * sine)).real,
        ]
    columns = np.stack(slopes, axis=1).reshape(len(x), len(slopes), -1)
    normal = columns @ columns.transpose(0, 2, 1)
    covariance = np.linalg.pinv(normal)
    step = (covariance @ (columns @ patch.reshape(len(x), -1, 1)))[..., 0]
    elements.x = elements.x + np.clip(step[:, 0], -sigma, sigma)
    elements.y = elements.y + np.clip(step[:, 1], -sigma, sigma)
    elements.amplitude = elements.amplitude + step[:, 2]
    gain = np.sqrt(np.maximum(np.diagonal(covariance, axis1=1, axis2=2).T, 0))
    elements.gain[:2] = gain[:2]
    if frequency:
        elements.amplitude = elements.amplitude + 1j * step[:, 3]
        elements.angle = elements.angle + np.clip(step[:, 4], -0.3, 0.3)
        elements.gain[2] = gain[4]
    return float(np.abs(step[:, :2]).max(initial=0.0))
