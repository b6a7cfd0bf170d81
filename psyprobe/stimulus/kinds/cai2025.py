"""The stimuli of Cai et al. (2025) pixel for pixel, for the ``*_published`` experiments.

They differ from psyprobe's plain kinds in places that their paper does not mention: sampling
positions include both ends of the field, so that every frequency is 224/223 of its nominal value;
the Gabor is in sine phase; "radius" is the Gaussian's standard deviation; chromatic contrast is an
amplitude in DKL over nominal luminance, on a background whose L + M is 1.051 of that; light is cut
off at 1e-4 cd/m² and never at the display's peak. Use them to reproduce printed numbers, and the
plain kinds for new work.

References
----------
Cai, Yin, Hammou & Mantiuk (2025), "Do computer vision foundation models learn the low-level
characteristics of the human visual system?", CVPR; arXiv 2502.20256.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import NamedTuple

import numpy as np

from psyprobe._typing import Array, FloatArray, Levels, Size
from psyprobe.errors import InputError, unknown_name
from psyprobe.light.colour import cone_observer, dkl_matrix
from psyprobe.stimulus.backend import Backend
from psyprobe.stimulus.parameters import AREA, common, parameter
from psyprobe.stimulus.pattern import Uniform
from psyprobe.stimulus.registry import stimulus_kind
from psyprobe.stimulus.specification import Specification

#: XYZ to linear BT.709, four decimals, as the authors used it; display.py derives its own.
_XYZ_TO_RGB = np.array(
    [[3.2406, -1.5372, -0.4986], [-0.9689, 1.8758, 0.0415], [0.0557, -0.2040, 1.0570]]
)
_BACKGROUND_XYZ = np.array([0.9505, 1.0, 1.0888])
#: The grey whose LMS fixes the DKL axes, whatever the background.
_DKL_GREY = (0.739876529525622, 0.320136241543338, 0.020793708751515)

AXES = ("achromatic", "red_green", "yellow_violet")

#: Seed of the one frozen noise sample, in numpy's legacy generator.
_NOISE_SEED = 8

#: Light is cut off here, cd/m².
_DARKEST = 1e-4


class _Published(Specification):
    """A published stimulus, drawn one image at a time: fidelity comes before speed."""

    contrast: Levels = parameter("1", "Contrast", default=0.5, low=0)
    frequency: Levels = common("frequency", default=4.0)

    def reference(self) -> Specification:
        """Return the uniform neutral background, without the pattern."""
        return Uniform(luminance=self.luminance, ppd=self.ppd, size=self.size)

    def _draw_pixels(self, backend: Backend) -> tuple[Array, str]:
        """Draw each image of the batch on its own, and say the colour space of the pixels."""
        images = []
        for numbers in zip(
            *(self.per_image(name) for name in self.numeric), strict=True
        ):
            images.append(
                self._draw_image(**dict(zip(self.numeric, numbers, strict=True)))
            )
        space = "rgb" if images[0].ndim == 3 else "luminance"
        pixels = np.stack(images).reshape((*self.batch, *images[0].shape))
        return backend.array(pixels), space

    def _draw_image(self, **values: float) -> FloatArray:
        """Draw one image from the numbers of its parameters."""
        raise NotImplementedError


def _centred(pixels: int, ppd: float) -> FloatArray:
    """Compute positions from -N/2 to +N/2 pixels, both ends included, deg."""
    return np.linspace(-pixels / 2, pixels / 2, pixels) / ppd


def _from_corner(pixels: int, ppd: float) -> FloatArray:
    """Compute positions from 0 to N pixels, both ends included, deg."""
    return np.linspace(0.0, pixels / ppd, pixels)


def _under_envelope(
    wave: FloatArray, x: FloatArray, y: FloatArray, radius: float
) -> FloatArray:
    """Put a wave along x under a round Gaussian about (0, 0), shape (H, W)."""
    envelope_x = np.exp(-(x**2) / (2 * radius**2))
    envelope_y = np.exp(-(y**2) / (2 * radius**2))
    return np.asarray(envelope_y[:, None] * (envelope_x * wave))


def _light(
    luminance: float, change: FloatArray | float, darkest: float = _DARKEST
) -> FloatArray:
    """Modulate a luminance by a relative change, with a floor at the darkest light."""
    return np.asarray(np.maximum(luminance * (1 + change), darkest))


class _Primaries(NamedTuple):
    """Linear RGB per cd/m² of nominal luminance."""

    background: FloatArray
    #: A column for each of `AXES`.
    axes: FloatArray


@cache
def _compute_primaries() -> _Primaries:
    """Compute the background and the DKL axes as linear RGB per cd/m², once."""
    observer = cone_observer("cie2006_led_lcd")
    to_rgb = _XYZ_TO_RGB @ observer.to_xyz
    dkl = dkl_matrix(_DKL_GREY)
    background = dkl @ observer.from_xyz @ _BACKGROUND_XYZ
    return _Primaries(
        to_rgb @ np.linalg.solve(dkl, background), to_rgb @ np.linalg.inv(dkl)
    )


@stimulus_kind("cai2025_gabor")
class Cai2025Gabor(_Published):
    """The sine-phase Gabor of the published frequency, luminance and area tests.

    `contrast` is the amplitude on the DKL axis `axis` over nominal luminance; at 224 px the drawn
    frequency is 224/223 of the nominal one.
    """

    radius: Levels = common("radius", default=1.0)
    axis: str = "achromatic"
    contrast_kind = "dkl_over_luminance"
    derived_levels = AREA

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.axis not in AXES:
            raise unknown_name("axis", self.axis, AXES)

    def reference(self) -> Specification:
        """Return the uniform background in linear RGB, without the Gabor."""
        return Cai2025Background(luminance=self.luminance, ppd=self.ppd, size=self.size)

    def _draw_image(self, **values: float) -> FloatArray:
        """Draw a Gabor in sine phase along a DKL axis, linear RGB, cut off at the darkest light."""
        height, width = self.shape
        x = _centred(width, self.ppd)
        y = _centred(height, self.ppd)
        wave = np.sin(2 * np.pi * values["frequency"] * x)
        gabor = _under_envelope(wave, x, y, values["radius"])
        background, axes = _compute_primaries()
        axis = axes[:, AXES.index(self.axis)]
        change = values["contrast"] * gabor[..., None] * axis
        return np.asarray(
            np.maximum(values["luminance"] * (background + change), _DARKEST)
        )


@stimulus_kind("cai2025_background")
class Cai2025Background(Specification):
    """The uniform background of the published Gabors: linear RGB a hair off neutral.

    Their matrix has four digits.
    """

    def reference(self) -> Specification:
        """Return the background itself, which has no pattern to remove."""
        return self

    def _draw_pixels(self, backend: Backend) -> tuple[Array, str]:
        """Draw the uniform background of the chromatic Gabors, linear RGB."""
        luminance = np.asarray(self.luminance)[..., None, None, None]
        rgb = luminance * _compute_primaries().background
        pixels = np.broadcast_to(rgb, (*self.batch, *self.shape, 3))
        return backend.array(np.array(pixels)), "rgb"


@cache
def _draw_white_field(shape: Size) -> FloatArray:
    """Draw the frozen white noise of the published stimuli, of unit variance."""
    # The generator that gave the published noise.
    return np.random.RandomState(_NOISE_SEED).standard_normal(shape)


def _filtered_noise(shape: Size, ppd: float, low: float, high: float) -> FloatArray:
    """Filter the frozen white noise to a band of frequencies, of unit SD."""
    height, width = shape
    radial = np.hypot(np.fft.fftfreq(height)[:, None], np.fft.fftfreq(width)) * ppd
    inside = (radial >= low) & (radial <= high)
    if not inside.any():
        raise InputError(
            f"the band from {low:.4g} to {high:.4g} cpd holds nothing at {ppd:.4g} pixels per "
            "degree; raise ppd or size"
        )
    field = np.fft.ifft2(np.fft.fft2(_draw_white_field(shape)) * inside).real
    return np.asarray(field / field.std())


@stimulus_kind("cai2025_noise")
class Cai2025Noise(_Published):
    """The published band noise: one frozen sample, one octave wide.

    RMS contrast is that before the cut-off at 1e-4 cd/m². At contrast 1, 15 % of the pixels are cut
    off, and the delivered RMS contrast is 0.84 to 0.88.
    """

    contrast_kind = "rms"

    def _draw_image(self, **values: float) -> FloatArray:
        """Draw frozen noise in a band of one octave about the frequency, cd/m²."""
        centre = values["frequency"]
        noise = _filtered_noise(self.shape, self.ppd, centre * 2**-0.5, centre * 2**0.5)
        return _light(values["luminance"], values["contrast"] * noise)


@stimulus_kind("cai2025_grating")
class Cai2025Grating(_Published):
    """The full-field sine grating of the published contrast-matching test."""

    luminance: Levels = 10.0
    frequency: Levels = 5.0
    contrast_kind = "michelson"

    def _draw_image(self, **values: float) -> FloatArray:
        """Draw an upright sine grating over the whole field, cd/m²."""
        height, width = self.shape
        wave = np.sin(2 * np.pi * values["frequency"] * _centred(width, self.ppd))
        row = values["luminance"] * (1 + values["contrast"] * wave)
        return np.asarray(np.tile(row, (height, 1)))


class _PublishedMask(_Published):
    """A Gabor target, in cosine phase from the image's corner, on a mask."""

    mask_contrast: Levels = parameter("1", "Mask contrast", default=0.1, low=0)
    frequency: Levels = 2.0
    radius: Levels = common("radius", default=0.5)
    contrast_kind = "michelson"

    def reference(self) -> Specification:
        """Return the mask alone, without the Gabor."""
        return replace(self, contrast=0.0)

    def _draw_target(self, values: dict[str, float]) -> FloatArray:
        """Draw the Gabor to detect at contrast 1, in cosine phase."""
        height, width = self.shape
        x = _from_corner(width, self.ppd)
        y = _from_corner(height, self.ppd)
        wave = np.cos(2 * np.pi * values["frequency"] * x)
        centre_x = width / self.ppd / 2
        centre_y = height / self.ppd / 2
        return _under_envelope(wave, x - centre_x, y - centre_y, values["radius"])


@stimulus_kind("cai2025_mask_coherent")
class Cai2025MaskCoherent(_PublishedMask):
    """The published phase-coherent masking stimulus.

    Target and full-field mask share frequency and phase.
    """

    luminance: Levels = 32.0

    def _draw_image(self, **values: float) -> FloatArray:
        """Draw a Gabor on a grating of its own frequency and phase, cd/m²."""
        x = _from_corner(self.shape[1], self.ppd)
        wave = np.cos(2 * np.pi * values["frequency"] * x)
        change = values["mask_contrast"] * wave + values[
            "contrast"
        ] * self._draw_target(values)
        return _light(values["luminance"], change, darkest=0.0)


@stimulus_kind("cai2025_mask_incoherent")
class Cai2025MaskIncoherent(_PublishedMask):
    """The published phase-incoherent masking stimulus: a target on low-pass noise up to 12 cpd."""

    luminance: Levels = 37.0
    frequency: Levels = 1.2
    radius: Levels = 0.8

    def _draw_image(self, **values: float) -> FloatArray:
        """Draw a Gabor on frozen noise up to 12 cpd, cd/m²."""
        noise = _filtered_noise(self.shape, self.ppd, 0.0, 12.0)
        change = values["mask_contrast"] * noise + values[
            "contrast"
        ] * self._draw_target(values)
        return _light(values["luminance"], change)
