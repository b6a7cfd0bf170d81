"""Noise in an annulus of spatial frequency: every component of one amplitude, and nothing outside.

References
----------
Hernandez-Camara et al. (2025), "Contrast sensitivity function of multimodal vision-language models", arXiv 2508.10367.
Band, contrast and mean luminance: the same laboratory's public stimulus generator (Jorgvt/PerceptualTests).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from psyprobe._typing import Array, FloatArray
from psyprobe.errors import InputError
from psyprobe.stimulus import pattern
from psyprobe.stimulus.certificate import STANDARD_ERRORS, Sheet
from psyprobe.stimulus.kinds.noise import level_rows
from psyprobe.stimulus.modulation import Modulation
from psyprobe.stimulus.parameters import parameter
from psyprobe.stimulus.planes import Planes
from psyprobe.stimulus.registry import stimulus_kind


@stimulus_kind("annulus_noise")
@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class AnnulusNoise(Modulation):
    """Noise of flat amplitude spectrum and random phase in a ring of spatial frequencies, of all orientations.

    Every component inside the ring has the same amplitude, none outside has any; a seed fixes the phases. The noise is
    periodic over the field, and one seed gives one pattern at whatever resolution the same field in degrees is drawn,
    as far as that resolution holds its frequencies.

    Parameters as in `psyprobe.annulus_noise`.

    Examples
    --------
    >>> noise = AnnulusNoise(frequency=4.0, contrast=0.1, seed=[1, 2]).draw()
    >>> light = noise.luminance[0]
    >>> round(float(np.sqrt(2) * light.std() / light.mean()), 12)
    0.1
    """

    luminance: Any = 40.0
    ppd: float = 64.0
    size: int | tuple[int, int] = 256
    frequency: Any = parameter("cpd", "Spatial frequency", low=0, above=True)
    low: Any = parameter("1", "Inner edge over frequency", default=0.75, low=0)
    high: Any = parameter("1", "Outer edge over frequency", default=1.25)
    window: Any = parameter("deg", "Window", default=0.0, low=0)
    seed: Any = parameter("1", "Seed", default=0, low=0, whole=True)
    chromatic: bool = False

    contrast_kind: ClassVar[str | None] = "sinusoid_rms"
    deepest: ClassVar[float | None] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        nyquist = self.ppd / 2
        allowed = f"noise is drawn from 0 up to {nyquist:g} cpd (Nyquist at {self.ppd:g} pixels per degree)"
        self._require("frequency", self.frequency <= nyquist, allowed)
        allowed = "the outer edge must lie above the inner, both as multiples of the frequency"
        self._require("high", self.high > self.low, allowed)
        for low, high in {*zip(*(edge.ravel() for edge in self.band), strict=True)}:
            _annulus(self.shape, self.ppd, float(low), float(high))

    @property
    def in_colour(self) -> bool:
        """Whether pixels are LMS: a chromatic direction, or a grey of a stated chromaticity."""
        return self.chromatic or super().in_colour

    @property
    def band(self) -> tuple[FloatArray, FloatArray]:
        """Edges of the ring, cpd, of one shape."""
        low, high = np.broadcast_arrays(np.asarray(self.frequency * self.low), np.asarray(self.frequency * self.high))
        return low, high

    def paint(self, amplitude: FloatArray, offset: FloatArray, dtype: str, device: str | None) -> Array:
        """``offset + amplitude * noise of SD 1/sqrt(2)``, shape (n, H, W)."""
        low, high = (np.broadcast_to(edge, self.batch).ravel() for edge in self.band)
        images = np.empty((len(amplitude), *self.shape), dtype)
        for i, (window, seed) in enumerate(zip(self._flat("window"), self._flat("seed"), strict=True)):
            unit = _unit_noise(self.shape, self.ppd, float(low[i]), float(high[i]), float(window), int(seed))
            images[i] = unit * (amplitude[i] / np.sqrt(2)) + offset[i]
        return pattern.to_backend(images, dtype, device)

    def promises(self, planes: Planes, sheet: Sheet) -> None:
        """Mean, contrast, nothing outside the ring, and one amplitude for every component inside."""
        ratio = level_rows(self, planes, sheet, "contrast", "SD over mean, times sqrt(2)", np.sqrt(2))
        if ratio is None or self.window:
            return
        low, high = (float(edge) for edge in self.band)
        amplitude = np.abs(np.fft.fft2(planes.pattern - planes.pattern.mean()))
        down, across = (np.fft.fftfreq(pixels, 1 / pixels) * self.ppd / pixels for pixels in self.shape)
        radius = np.sqrt(down[:, None] ** 2 + across**2)
        inside = (radius > low) & (radius < high)
        power = float((amplitude**2).sum())
        outside = float((amplitude[~inside] ** 2).sum()) / power
        sheet.add("energy outside band", 0.0, outside, "Fourier sum, edges outside", extra=10 * ratio**2)
        if ratio < 1e-5 and sheet.precision in ("float64", "float32"):
            spread = float(amplitude[inside].std() / amplitude[inside].mean())
            extra = STANDARD_ERRORS * ratio
            sheet.add("flatness", 0.0, spread, "SD over mean of the amplitudes in the band", extra=extra)


@lru_cache(maxsize=32)
def _annulus(
    shape: tuple[int, int], ppd: float, low: float, high: float
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Whole cycles over the field (down, across) of a ring's components, one of each conjugate pair, and which to keep.

    The order does not depend on the resolution: that of all components the ring would have without a Nyquist frequency.
    Kept are those that the resolution holds.
    """
    height, width = shape
    most = np.ceil(high * np.array(shape) / ppd).astype(int)
    down, across = np.meshgrid(np.arange(-most[0], most[0] + 1), np.arange(most[1] + 1), indexing="ij")
    # Not hypot: products, sums and roots are rounded alike on every machine, so the ring is the same on all.
    radius = np.sqrt((down * (ppd / height)) ** 2 + (across * (ppd / width)) ** 2)
    inside = ((across > 0) | (down > 0)) & (radius > low) & (radius < high)
    down, across = down[inside], across[inside]
    # At the Nyquist frequency the two signs are one coefficient: the one numpy's order of frequencies names.
    kept = (2 * across <= width) & (2 * down >= -height) & (2 * down < height)
    kept &= ~((2 * across == width) & (down < 0) & (2 * down > -height))
    kept |= (across == 0) & (2 * down == height)
    if not kept.any():
        raise InputError(
            f"frequency is {(low + high) / 2:g} cpd; a ring from {low:.4g} to {high:.4g} cpd holds no frequency of a "
            f"field of {height / ppd:.4g} x {width / ppd:.4g} deg, whose frequencies lie {ppd / max(shape):.4g} cpd "
            "apart; widen ring or field"
        )
    return down, across, kept


@lru_cache(maxsize=16)
def _unit_noise(
    shape: tuple[int, int], ppd: float, low: float, high: float, window: float, seed: int
) -> npt.NDArray[np.float64]:
    """Noise of mean 0 and standard deviation 1; kept, since a ladder of contrasts shares its pattern."""
    import scipy.fft

    height, width = shape
    down, across, kept = _annulus(shape, ppd, low, high)
    phase = np.random.default_rng(seed).uniform(0, 2 * np.pi, len(down))[kept]
    down, across = down[kept], across[kept]
    # The phase is that at the centre of the field, where it is the same for every resolution.
    phase = phase - np.pi * (down * ((height - 1) / height) + across * ((width - 1) / width))
    spectrum = np.zeros((height, width // 2 + 1), np.complex128)
    spectrum[down % height, across] = np.exp(1j * phase)
    for column in {0, width // 2} if width % 2 == 0 else {0}:
        _make_hermitian(spectrum[:, column])
    twice = np.full(spectrum.shape[1], 2.0)
    twice[[0, -1] if width % 2 == 0 else [0]] = 1.0
    power = float((np.abs(spectrum) ** 2 @ twice).sum())
    noise = scipy.fft.irfft2(spectrum * (height * width / np.sqrt(power)), s=shape)
    if window:
        y, x = (pattern.pixel_positions(pixels, ppd) for pixels in shape)
        noise = noise * np.exp(-(y[:, None] ** 2 + x**2) / window**2)
        noise = noise - noise.mean()
        noise = noise / noise.std()
    noise.setflags(write=False)
    return np.asarray(noise)


def _make_hermitian(column: npt.NDArray[np.complex128]) -> None:
    """Complete, in place, a column that is its own mirror image: of each pair the first one set decides."""
    height = len(column)
    mirror = -np.arange(height) % height
    set_first = (column != 0) & ((column[mirror] == 0) | (np.arange(height) <= mirror))
    own = np.arange(height) == mirror
    column[mirror[set_first]] = column[set_first].conj()
    column[own & (column != 0)] = np.where(column[own & (column != 0)].real >= 0, 1.0, -1.0)
