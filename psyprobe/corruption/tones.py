"""What changes values and colours pixel by pixel: lamps and darkness, curves, saturation, fewer levels and pixels."""

from __future__ import annotations

import math

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.corruption.colour_planes import (
    lab_to_rgb,
    linear_to_srgb,
    rgb_to_lab,
    scale_saturation,
    srgb_to_linear,
)
from psyprobe.corruption.noise import normal


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
    return scale_saturation(image, factor)


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
