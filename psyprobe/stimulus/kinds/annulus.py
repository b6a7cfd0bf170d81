"""Noise in an annulus whose components all have one amplitude.

References
----------
Hernandez-Camara et al. (2025), "Contrast sensitivity function of multimodal vision-language
models", arXiv 2508.10367. Band, contrast and mean luminance of the annulus: the same laboratory's
public stimulus generator (Jorgvt/PerceptualTests).
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike

from psyprobe._typing import Array, BoolArray, FloatArray, IntArray, Levels, Size
from psyprobe.errors import InputError
from psyprobe.light.colour import Direction
from psyprobe.stimulus import pattern
from psyprobe.stimulus.backend import Backend
from psyprobe.stimulus.certificate import ImageMeasurements
from psyprobe.stimulus.kinds.noise import measure_levels
from psyprobe.stimulus.measuring import Planes
from psyprobe.stimulus.parameters import check_keywords, common, parameter
from psyprobe.stimulus.pattern import Modulation
from psyprobe.stimulus.registry import stimulus_kind
from psyprobe.stimulus.specification import draw_kind
from psyprobe.stimulus.stimulus import Stimulus
from psyprobe.stimulus.tolerances import STANDARD_ERRORS


@stimulus_kind("annulus_noise")
class AnnulusNoise(Modulation):
    """Noise of flat amplitude spectrum and random phase in a ring of spatial frequencies.

    Every component inside the ring, of whatever orientation, has the same amplitude, none outside
    has any; a seed fixes the phases. The noise is periodic over the field, and one seed gives one
    pattern at whatever resolution the same field in degrees is drawn, as far as that resolution
    holds its frequencies.

    Parameters as in `psyprobe.annulus_noise`.

    Examples
    --------
    >>> noise = AnnulusNoise(frequency=4.0, contrast=0.1, seed=[1, 2]).draw()
    >>> light = noise.luminance[0]
    >>> round(float(np.sqrt(2) * light.std() / light.mean()), 12)
    0.1
    """

    luminance: Levels = 40.0
    ppd: float = 64.0
    size: int | Size = 256
    frequency: Levels = common("frequency")
    low: Levels = parameter("1", "Inner edge over frequency", default=0.75, low=0)
    high: Levels = parameter("1", "Outer edge over frequency", default=1.25)
    window: Levels = parameter("deg", "Window", default=0.0, low=0)
    seed: Levels = common("seed", default=0)
    chromatic: bool = False

    contrast_kind = "sinusoid_rms"
    deepest = None

    def __post_init__(self) -> None:
        super().__post_init__()
        nyquist = self.ppd / 2
        allowed = (
            f"noise is drawn from 0 up to {nyquist:g} cpd (Nyquist at {self.ppd:g} pixels "
            "per degree)"
        )
        self._require("frequency", self.frequency <= nyquist, allowed)
        allowed = "the outer edge must lie above the inner, both as multiples of the frequency"
        self._require("high", self.high > self.low, allowed)
        low, high = (edge.ravel() for edge in self.band)
        for edges in set(zip(low, high, strict=True)):
            _components(self.shape, self.ppd, *map(float, edges))

    @property
    def in_colour(self) -> bool:
        """Tell whether pixels are LMS: of a chromatic direction, or a grey of stated white."""
        return self.chromatic or super().in_colour

    @property
    def band(self) -> tuple[FloatArray, FloatArray]:
        """Edges of the ring, cpd, of one shape."""
        low = np.asarray(self.frequency * self.low)
        high = np.asarray(self.frequency * self.high)
        low, high = np.broadcast_arrays(low, high)
        return low, high

    def paint(
        self, amplitude: FloatArray, offset: FloatArray, backend: Backend
    ) -> Array:
        """Draw ``offset + amplitude * noise of SD 1/sqrt(2)``, shape (n, H, W)."""
        low, high = (self._repeat(edge) for edge in self.band)
        windows = self.per_image("window")
        seeds = self.per_image("seed")
        images = np.empty((len(amplitude), *self.shape), backend.dtype)
        for i, seed in enumerate(seeds):
            ring = float(low[i]), float(high[i]), float(windows[i])
            unit = _unit_noise(self.shape, self.ppd, *ring, int(seed))
            images[i] = unit * (amplitude[i] / np.sqrt(2)) + offset[i]
        return backend.array(images)

    def measure_planes(self, planes: Planes, measurements: ImageMeasurements) -> None:
        """Measure mean, contrast, the energy outside the ring and the flatness inside."""
        method = "SD over mean, times sqrt(2)"
        ratio = measure_levels(
            self, planes, measurements, "contrast", method, np.sqrt(2)
        )
        if ratio is None or self.window:
            return
        low, high = (float(edge) for edge in self.band)
        amplitude = np.abs(np.fft.fft2(planes.pattern - planes.pattern.mean()))
        down, across = (
            np.fft.fftfreq(pixels, 1 / pixels) * self.ppd / pixels
            for pixels in self.shape
        )
        radius = np.sqrt(down[:, None] ** 2 + across**2)
        inside = (radius > low) & (radius < high)
        power = float((amplitude**2).sum())
        outside = float((amplitude[~inside] ** 2).sum()) / power
        method = "Fourier sum, edges outside"
        measurements.add(
            "energy outside band", 0.0, outside, method, extra=10 * ratio**2
        )
        if ratio < 1e-5 and measurements.precision in ("float64", "float32"):
            spread = float(amplitude[inside].std() / amplitude[inside].mean())
            method = "SD over mean of the amplitudes in the band"
            measurements.add(
                "flatness", 0.0, spread, method, extra=STANDARD_ERRORS * ratio
            )


class _Components(NamedTuple):
    """Components of a ring, one of each conjugate pair."""

    #: down, across: Cycles over the field.
    down: IntArray
    across: IntArray
    #: Which components the resolution holds.
    representable: BoolArray


@lru_cache(maxsize=32)
def _components(shape: Size, ppd: float, low: float, high: float) -> _Components:
    """List the Fourier components in a ring of frequencies, also beyond the Nyquist frequency.

    So their order does not depend on the resolution.
    """
    height, width = shape
    tallest, widest = np.ceil(high * np.array(shape) / ppd).astype(int)
    down, across = np.meshgrid(
        np.arange(-tallest, tallest + 1), np.arange(widest + 1), indexing="ij"
    )
    # Not hypot: products, sums and roots are rounded alike on every machine, so the ring is the
    # same on all.
    radius = np.sqrt((down * (ppd / height)) ** 2 + (across * (ppd / width)) ** 2)
    half_plane = (across > 0) | (down > 0)
    inside = half_plane & (radius > low) & (radius < high)
    down = down[inside]
    across = across[inside]
    # At the Nyquist frequency the two signs are one coefficient: the one numpy's order of
    # frequencies names.
    representable = (2 * across <= width) & (2 * down >= -height) & (2 * down < height)
    representable &= ~((2 * across == width) & (down < 0) & (2 * down > -height))
    representable |= (across == 0) & (2 * down == height)
    if not representable.any():
        raise InputError(
            f"frequency is {(low + high) / 2:g} cpd; a ring from {low:.4g} to {high:.4g} cpd "
            f"holds no frequency of a field of {height / ppd:.4g} x {width / ppd:.4g} deg, whose "
            f"frequencies lie {ppd / max(shape):.4g} cpd apart; widen ring or field"
        )
    return _Components(down, across, representable)


@lru_cache(maxsize=16)
def _unit_noise(
    shape: Size, ppd: float, low: float, high: float, window: float, seed: int
) -> npt.NDArray[np.float64]:
    """Draw noise in a ring of frequencies, of mean 0 and SD 1; cached for other contrasts."""
    import scipy.fft

    height, width = shape
    down, across, representable = _components(shape, ppd, low, high)
    phase = np.random.default_rng(seed).uniform(0, 2 * np.pi, len(down))[representable]
    down = down[representable]
    across = across[representable]
    # The phase is that at the centre of the field, where it is the same for every resolution.
    phase = phase - np.pi * (
        down * ((height - 1) / height) + across * ((width - 1) / width)
    )
    spectrum = np.zeros((height, width // 2 + 1), np.complex128)
    spectrum[down % height, across] = np.exp(1j * phase)
    weight = np.full(spectrum.shape[1], 2.0)
    # Columns that are their own mirror images count once.
    for column in [0, -1] if width % 2 == 0 else [0]:
        _make_hermitian(spectrum[:, column])
        weight[column] = 1.0
    power = float((np.abs(spectrum) ** 2 @ weight).sum())
    noise = scipy.fft.irfft2(spectrum * (height * width / np.sqrt(power)), s=shape)
    if window:
        y, x = (pattern.pixel_positions(pixels, ppd) for pixels in shape)
        noise = noise * np.exp(-(y[:, None] ** 2 + x**2) / window**2)
        noise = noise - noise.mean()
        noise = noise / noise.std()
    noise.setflags(write=False)
    return np.asarray(noise)


def _make_hermitian(column: npt.NDArray[np.complex128]) -> None:
    """Make a column of a spectrum its own mirror image, in place, so that the image is real.

    Of each pair, the coefficient that is set decides, or else the first one.
    """
    height = len(column)
    index = np.arange(height)
    mirror = -index % height
    decisive = (column != 0) & ((column[mirror] == 0) | (index <= mirror))
    column[mirror[decisive]] = column[decisive].conj()
    unpaired = (index == mirror) & (column != 0)
    column[unpaired] = np.where(column[unpaired].real >= 0, 1.0, -1.0)


@check_keywords
def annulus_noise(
    *,
    frequency: ArrayLike,
    contrast: ArrayLike,
    luminance: ArrayLike = 40.0,
    low: ArrayLike = 0.75,
    high: ArrayLike = 1.25,
    window: ArrayLike = 0.0,
    seed: ArrayLike = 0,
    chromatic: bool = False,
    direction: Direction = "achromatic",
    white: str | tuple[float, float] = "D65",
    observer: str = "cie2006_led_lcd",
    ppd: float = 64.0,
    size: int | Size = 256,
    dtype: str = "float64",
    device: str | None = None,
) -> Stimulus:
    """Draw noise that fills a ring of spatial frequencies evenly.

    Parameters
    ----------
    frequency : float or array
        Nominal frequency, cpd, up to the Nyquist frequency; a ring that reaches beyond it is cut
        there.
    contrast : float or array
        Sinusoid-equivalent RMS: ``sqrt(2) * SD / mean`` of the light, exactly, in each image. It is
        the Michelson contrast of a grating of the same energy. 0 gives a uniform field.
    low, high : float or array
        Edges of the ring as multiples of `frequency`; components on an edge are outside.
    window : float or array
        Size s of a round Gaussian window ``exp(-r²/s²)``, deg (its standard deviation is
        s/sqrt(2)); 0 is none. A window spreads the spectrum beyond the ring, and contrast stays
        that of the whole image.
    seed : int or array of int
        Seed of the phases.
    chromatic : bool
        Draw the grey in LMS of `observer` with the chromaticity `white`, not as the display's own
        grey.
    luminance, direction, white, observer, ppd, size, dtype, device
        As in `gabor`.

    Examples
    --------
    >>> annulus_noise(frequency=4.0, contrast=0.1, luminance=40.0).pixels.shape
    (256, 256)
    """
    return draw_kind(AnnulusNoise, locals())
