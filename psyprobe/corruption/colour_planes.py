"""Convert sRGB images to CIELAB and studio YCbCr and back, in the image's own precision."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from psyprobe._typing import FloatArray

#: sRGB primaries to XYZ relative to the D65 white, so that white is (1, 1, 1): IEC 61966-2-1.
_RGB_TO_XYZ = np.array(
    [
        [0.4124564, 0.3575761, 0.1804375],
        [0.2126729, 0.7151522, 0.0721750],
        [0.0193339, 0.1191920, 0.9503041],
    ]
)
_RGB_TO_RELATIVE = _RGB_TO_XYZ / _RGB_TO_XYZ.sum(axis=1, keepdims=True)
_RELATIVE_TO_RGB = np.linalg.inv(_RGB_TO_RELATIVE)
_EPSILON = 216 / 24389
_KAPPA = 24389 / 27
#: From the cube roots f of X, Y and Z to L, a and b, offsets in the last column; and back.
_F_TO_LAB = np.array(
    [[0, 116, 0, -16], [500, -500, 0, 0], [0, 200, -200, 0]], dtype=np.float64
)
_LAB_TO_F = np.array(
    [
        [1 / 116, 1 / 500, 0, 16 / 116],
        [1 / 116, 0, 0, 16 / 116],
        [1 / 116, 0, -1 / 200, 16 / 116],
    ]
)
#: ITU-R BT.601 with the range of a studio (16 to 235), over 255.
_RGB_TO_YCBCR = (
    np.array(
        [
            [65.481, 128.553, 24.966],
            [-37.797, -74.203, 112.0],
            [112.0, -93.786, -18.214],
        ]
    )
    / 255
)
_YCBCR_OFFSET = np.array([16.0, 128.0, 128.0]) / 255
#: Luma of BT.601, for grey versions of dimensions of colour.
LUMA = np.array([0.299, 0.587, 0.114])
#: Pixels that are converted at once, and those after them, whose last bits may be others.
_BAND_PIXELS = 16_384
_MARGIN = 8


def luma(image: Any) -> FloatArray:
    """Compute the luma of an RGB image, shape (H, W); of 8-bit codes in float32."""
    values = image.astype(np.float32) if image.dtype == np.uint8 else image
    return _transform(values, LUMA[None])


def srgb_to_linear(image: FloatArray) -> FloatArray:
    """Convert sRGB values to linear light, 0 to 1."""
    return _bend(image, 0.04045, (1.055**-2.4, 0.055, 2.4), 1 / 12.92, -0.04045 / 12.92)


def linear_to_srgb(light: FloatArray) -> FloatArray:
    """Convert linear light to sRGB values."""
    offset = -0.055 - 12.92 * 0.0031308
    return _bend(light, 0.0031308, (1.055, 0, 1 / 2.4), 12.92, offset)


def rgb_to_lab(image: FloatArray) -> FloatArray:
    """Convert an sRGB image to CIELAB (D65): L 0 to 100, a and b around 0."""
    return _by_bands(_lab_of_band, image)


def _lab_of_band(image: FloatArray) -> FloatArray:
    """Convert rows of an sRGB image to CIELAB."""
    relative = _transform(srgb_to_linear(image), _RGB_TO_RELATIVE)
    offset = -_KAPPA * _EPSILON / 116
    roots = _bend(relative, _EPSILON, (1, 0, 1 / 3), _KAPPA / 116, offset)
    return _transform(roots, _F_TO_LAB)


def lab_to_rgb(lab: FloatArray) -> FloatArray:
    """Convert CIELAB values to an sRGB image, which may leave 0 to 1."""
    return _by_bands(_rgb_of_band, lab)


def _rgb_of_band(lab: FloatArray) -> FloatArray:
    """Convert rows of CIELAB values to sRGB."""
    roots = _transform(lab, _LAB_TO_F)
    offset = -116 / _KAPPA * 6 / 29
    relative = _bend(roots, 6 / 29, (1, 0, 3), 116 / _KAPPA, offset)
    return linear_to_srgb(_transform(relative, _RELATIVE_TO_RGB))


def _by_bands(
    convert: Callable[[FloatArray], FloatArray], image: FloatArray
) -> FloatArray:
    """Convert an image by bands of pixels, which stay in the processor's cache."""
    pixels = image.reshape(1, -1, 3)
    converted = np.empty(pixels.shape, image.dtype)
    for start in range(0, pixels.shape[1], _BAND_PIXELS):
        band = slice(start, start + _BAND_PIXELS)
        with_margin = pixels[:, start : band.stop + _MARGIN]
        converted[:, band] = convert(with_margin)[:, :_BAND_PIXELS]
    return converted.reshape(image.shape)


def _bend(
    values: FloatArray,
    knee: float,
    power: tuple[float, float, float],
    slope: float,
    offset: float,
) -> FloatArray:
    """Compute a line below the knee and gain (x + shift)^exponent above it.

    Both parts, clipped at the knee, are added.
    """
    import cv2

    gain, shift, exponent = power
    low = np.minimum(values, values.dtype.type(knee), order="C")
    high = np.maximum(values, values.dtype.type(knee), order="C")
    if shift:
        high += values.dtype.type(shift)
    cv2.pow(high, exponent, dst=high)
    cv2.addWeighted(high, gain, low, slope, offset, dst=high)
    return high


def _transform(image: FloatArray, matrix: FloatArray) -> FloatArray:
    """Multiply the channel vector of every pixel by a matrix."""
    import cv2

    return np.asarray(cv2.transform(np.ascontiguousarray(image), matrix))


def rgb_to_ycbcr(image: FloatArray) -> FloatArray:
    """Convert RGB to studio-range YCbCr of BT.601, over 255."""
    return _transform(image, np.column_stack([_RGB_TO_YCBCR, _YCBCR_OFFSET]))


def ycbcr_to_rgb(planes: FloatArray) -> FloatArray:
    """Convert studio-range YCbCr over 255 to RGB, which may leave 0 to 1."""
    inverse = np.linalg.inv(_RGB_TO_YCBCR)
    return _transform(planes, np.column_stack([inverse, -inverse @ _YCBCR_OFFSET]))
