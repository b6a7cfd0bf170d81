"""CIELAB and studio YCbCr of sRGB images, in the image's own floating-point format."""

from __future__ import annotations

import numpy as np

from psyprobe._typing import FloatArray

#: sRGB primaries to XYZ relative to the D65 white, so that white is (1, 1, 1): IEC 61966-2-1.
_RGB_TO_XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)
_RGB_TO_RELATIVE = _RGB_TO_XYZ / _RGB_TO_XYZ.sum(axis=1, keepdims=True)
_RELATIVE_TO_RGB = np.linalg.inv(_RGB_TO_RELATIVE)
_EPSILON, _KAPPA = 216 / 24389, 24389 / 27
#: ITU-R BT.601 with the range of a studio (16 to 235), over 255.
_RGB_TO_YCBCR = np.array([[65.481, 128.553, 24.966], [-37.797, -74.203, 112.0], [112.0, -93.786, -18.214]]) / 255
_YCBCR_OFFSET = np.array([16.0, 128.0, 128.0]) / 255
#: Luma of BT.601, for grey versions of what is done in colour.
LUMA = np.array([0.299, 0.587, 0.114])


def luma(image: FloatArray) -> FloatArray:
    """Luma of an RGB image, shape (H, W)."""
    return np.asarray(image @ LUMA.astype(image.dtype))


def srgb_to_linear(image: FloatArray) -> FloatArray:
    """Linear light, 0 to 1, of sRGB values."""
    result: FloatArray = np.where(image <= 0.04045, image / 12.92, ((np.maximum(image, 0) + 0.055) / 1.055) ** 2.4)
    return result.astype(image.dtype, copy=False)


def linear_to_srgb(light: FloatArray) -> FloatArray:
    """Values of sRGB for linear light."""
    positive = np.maximum(light, 0)
    result: FloatArray = np.where(light <= 0.0031308, light * 12.92, 1.055 * positive ** (1 / 2.4) - 0.055)
    return result.astype(light.dtype, copy=False)


def rgb_to_lab(image: FloatArray) -> FloatArray:
    """CIELAB (D65) of an sRGB image: L 0 to 100, a and b around 0."""
    relative = srgb_to_linear(image) @ _RGB_TO_RELATIVE.T.astype(image.dtype)
    f = np.where(relative > _EPSILON, np.cbrt(relative), (_KAPPA * relative + 16) / 116)
    lab = np.empty_like(image)
    lab[..., 0] = 116 * f[..., 1] - 16
    lab[..., 1] = 500 * (f[..., 0] - f[..., 1])
    lab[..., 2] = 200 * (f[..., 1] - f[..., 2])
    return lab


def lab_to_rgb(lab: FloatArray) -> FloatArray:
    """The sRGB image of CIELAB values; may leave 0 to 1."""
    f = np.empty_like(lab)
    f[..., 1] = (lab[..., 0] + 16) / 116
    f[..., 0] = f[..., 1] + lab[..., 1] / 500
    f[..., 2] = f[..., 1] - lab[..., 2] / 200
    cube = f**3
    relative = np.where(cube > _EPSILON, cube, (116 * f - 16) / _KAPPA)
    return linear_to_srgb((relative @ _RELATIVE_TO_RGB.T).astype(lab.dtype, copy=False))


def rgb_to_ycbcr(image: FloatArray) -> FloatArray:
    """Studio-range YCbCr of BT.601, over 255."""
    import cv2

    matrix = np.column_stack([_RGB_TO_YCBCR, _YCBCR_OFFSET])
    return np.asarray(cv2.transform(np.ascontiguousarray(image), matrix))


def ycbcr_to_rgb(planes: FloatArray) -> FloatArray:
    """The RGB image of studio-range YCbCr over 255; may leave 0 to 1."""
    import cv2

    inverse = np.linalg.inv(_RGB_TO_YCBCR)
    matrix = np.column_stack([inverse, -inverse @ _YCBCR_OFFSET])
    return np.asarray(cv2.transform(np.ascontiguousarray(planes), matrix))
