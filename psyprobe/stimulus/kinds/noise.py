"""Noise of exact mean and contrast: Gaussian in a band, and in an annulus whose components have all
one amplitude.

References
----------
Hernandez-Camara et al. (2025), "Contrast sensitivity function of multimodal vision-language
models", arXiv 2508.10367. Band, contrast and mean luminance of the annulus: the same laboratory's
public stimulus generator (Jorgvt/PerceptualTests).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from array_api_compat import array_namespace
from numpy.typing import ArrayLike

from psyprobe._typing import Array, FloatArray
from psyprobe.errors import InputError
from psyprobe.light.colour import Direction
from psyprobe.stimulus import estimate, pattern
from psyprobe.stimulus.certificate import STANDARD_ERRORS, Planes, Sheet
from psyprobe.stimulus.estimate import Float64
from psyprobe.stimulus.parameters import parameter, tells_names
from psyprobe.stimulus.pattern import Modulation
from psyprobe.stimulus.specification import Stimulus, drawn, stimulus_kind


@stimulus_kind("noise")
@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Noise(Modulation):
    """Gaussian noise in a ring of spatial frequencies, with exact mean and RMS contrast in every
    sample.

    Parameters as in `psyprobe.noise`.

    Examples
    --------
    >>> noise = Noise(frequency=4.0, contrast=0.15, seed=[1, 2]).draw()
    >>> luminance = noise.luminance[0]
    >>> round(float(luminance.std() / luminance.mean()), 12)
    0.15
    """

    frequency: Any = parameter("cpd", "Spatial frequency", low=0, above=True)
    bandwidth: Any = parameter("octaves", "Bandwidth", default=1.0, low=0, above=True)
    exponent: Any = parameter("1", "Spectral exponent", default=0.0)
    edge: Any = parameter("octaves", "Width of the edge", default=0.0, low=0)
    seed: Any = parameter("1", "Seed", default=0, low=0, whole=True)

    contrast_kind: ClassVar[str | None] = "rms"
    deepest: ClassVar[float | None] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        top = self.band[1] * 2.0 ** (np.asarray(self.edge) / 2)
        if (highest := float(top.max())) > self.ppd / 2:
            self._require(
                "frequency",
                top <= self.ppd / 2,
                f"the band's upper edge ({highest:.4g} cpd) must stay below {self.ppd / 2:g} "
                "cpd (Nyquist at "
                f"{self.ppd:g} pixels per degree); lower the frequency or the bandwidth",
            )
        step = 1 / min(self.field)
        allowed = (
            f"the band lies below the field's lowest frequency of {step:.4g} cpd; enlarge the field"
        )
        self._require("frequency", top >= step, allowed)

    @property
    def band(self) -> tuple[FloatArray, FloatArray]:
        """Edges of the ring, cpd."""
        half = 2.0 ** (np.asarray(self.bandwidth, float) / 2)
        return np.asarray(self.frequency / half), np.asarray(self.frequency * half)

    def paint(
        self, amplitude: FloatArray, offset: FloatArray, dtype: str, device: str | None
    ) -> Array:
        """``offset + amplitude * noise of unit standard deviation``, shape (n, H, W).

        Only the coefficients inside the ring are drawn, as normal deviates keyed by the image's own
        seed and the same in all precisions; the inverse transform, of those columns of the spectrum
        that hold any, does the rest.
        """
        bands = (self._spread(edge) for edge in self.band)
        keys = [*zip(*bands, self._flat("exponent"), self._flat("edge"), strict=True)]
        rings = {key: _ring(self.shape, self.ppd, *map(float, key)) for key in dict.fromkeys(keys)}
        seeds = self._flat("seed")
        level = pattern.to_backend(offset[:, None, None], dtype, device)
        xp = array_namespace(level)
        result = xp.empty((len(keys), *self.shape), dtype=level.dtype, device=device or "cpu")
        for i, key in enumerate(keys):
            ring = rings[key]
            spectrum = np.zeros(
                (self.shape[0], ring.columns), "complex128" if dtype == "float64" else "complex64"
            )
            spectrum.reshape(-1)[ring.index] = (
                _unit_coefficients(ring, int(seeds[i])) * amplitude[i]
            )
            _transform(spectrum, level[i], result[i])
        return result

    def promises(self, planes: Planes, sheet: Sheet) -> None:
        """Mean, RMS contrast, and no energy outside the ring."""
        ratio = level_rows(self, planes, sheet, "rms contrast", "SD over mean", 1.0)
        if ratio is None:
            return
        low, high = (float(edge) for edge in self.band)
        soft = 2.0 ** (self.edge / 2)
        outside = float(
            estimate.out_of_band_energy(planes.pattern, self.ppd, low / soft, high * soft)
        )
        sheet.add("energy outside band", 0.0, outside, "Fourier sum", extra=10 * ratio**2)
        if self.edge == 0 and ratio < 1e-5 and sheet.precision in ("float64", "float32"):
            self._edge_rows(planes.pattern, low, high, ratio, sheet)

    def _edge_rows(
        self, image: Float64, low: float, high: float, ratio: float, sheet: Sheet
    ) -> None:
        """The outermost coefficients that hold energy are those that the stated band holds."""
        radius = estimate.radial_frequency(self.shape, self.ppd)
        # Coefficients at the Nyquist frequency have no partner of opposite sign; psyprobe leaves
        # them out.
        vertical = np.abs(np.fft.fftfreq(self.shape[0])) == 0.5
        radius[vertical] = 0
        radius[:, np.fft.rfftfreq(self.shape[1]) == 0.5] = 0
        inside = radius[
            (radius > 0)
            & (radius >= low * (1 - estimate.BAND_EDGE))
            & (radius <= high * (1 + estimate.BAND_EDGE))
        ]
        if inside.size == 0:
            return
        floor = max(1e-12, 1e3 * ratio**2)
        if self.exponent:
            floor *= (inside.min() / inside.max()) ** (2 * abs(self.exponent))
        found = estimate.band_limits(image, self.ppd, floor=floor)
        for name, asked, found_edge in zip(
            ("low", "high"), (inside.min(), inside.max()), found, strict=True
        ):
            how = "outermost coefficient that holds energy"
            sheet.add(f"band edge {name}", asked, float(found_edge), how, key="band edge")


def level_rows(
    spec: Modulation, planes: Planes, sheet: Sheet, quantity: str, estimator: str, unit: float
) -> float | None:
    """Levels of noise and its contrast, `unit` times the SD over the mean.

    Gives the rounding error over the amplitude of the noise, and None of a uniform image, which has
    no band.
    """
    level = spec.luminance
    noise = sheet.noise(spec.contrast)
    sheet.add("mean luminance", level, planes.light.mean(), "mean over pixels")
    sheet.add("peak luminance", None, planes.light.max(), "largest pixel")
    if planes.in_colour:
        off = planes.pattern.mean() / level - 1
        sheet.add("background modulation", 0.0, off, "mean over pixels", key="cone contrast")
    if spec.contrast == 0:
        sheet.add("distortion", 0.0, planes.pattern.std() / level, "SD over background")
        return None
    ratio = float(noise / (level * spec.contrast))
    delivered = unit * planes.pattern.std() / planes.light.mean()
    extra = STANDARD_ERRORS * ratio / np.sqrt(planes.pattern.size)
    sheet.add_contrast(
        quantity, spec.contrast, delivered, estimator, extra=extra, key="rms contrast of noise"
    )
    return None if delivered < 1e-12 else ratio


def _transform(spectrum: npt.NDArray[Any], level: Array, out: Array) -> None:
    """Write the real image of the first columns of a half-plane spectrum, plus a level; the
    spectrum is spoilt.
    """
    if isinstance(out, np.ndarray):
        # Into memory that is there: an array of its own costs an image more than its transform.
        np.fft.ifft(spectrum, axis=0, norm="forward", out=spectrum)
        np.fft.irfft(spectrum, out.shape[1], axis=1, norm="forward", out=out)
        out += level
        return
    import torch

    columns = torch.fft.ifft(torch.from_numpy(spectrum).to(out.device), dim=0, norm="forward")
    torch.add(torch.fft.irfft(columns, out.shape[1], dim=1, norm="forward"), level, out=out)


@dataclass(frozen=True)
class _Ring:
    """Which coefficients of a half-plane spectrum a band holds, and what joins them."""

    #: Columns up to the last that holds any.
    columns: int
    #: Into the flattened (H, columns) spectrum.
    index: npt.NDArray[np.int64]
    #: Relative, of the shape of `index`.
    amplitude: FloatArray
    #: Members of `index` without a mirror image outside the half-plane.
    first_column: npt.NDArray[np.int64]
    #: mirrored, mirrors: Those of `first_column` at negative frequencies, and their partners at
    #: positive ones.
    mirrored: npt.NDArray[np.int64]
    mirrors: npt.NDArray[np.int64]


@lru_cache(maxsize=4)
def _ring(
    shape: tuple[int, int], ppd: float, low: float, high: float, exponent: float, edge: float
) -> _Ring:
    height, width = shape
    outward, index = _outward(shape, ppd)
    reach = 2.0 ** (edge / 2)
    # A coefficient that lies on an edge is inside, on whichever side rounding puts it.
    first = np.searchsorted(outward, low / reach * (1 - 1e-9), "left")
    last = np.searchsorted(outward, high * reach * (1 + 1e-9), "right")
    if not first < last:
        raise InputError(
            f"a band from {low:.4g} to {high:.4g} cpd holds no frequency of a field of "
            f"{height / ppd:.4g} x "
            f"{width / ppd:.4g} deg, whose frequencies lie {ppd / max(shape):.4g} cpd apart; "
            "widen band or field"
        )
    in_order = np.argsort(index[first:last])
    r = outward[first:last][in_order]
    rows, columns = np.divmod(index[first:last][in_order], width // 2 + 1)
    amplitude = r**-exponent if exponent else np.ones_like(r)
    if edge > 0:
        beyond = np.maximum(np.log2(low / r), np.log2(r / high)) / edge
        amplitude = amplitude * np.sqrt(0.5 * (1 + np.cos(np.pi * np.clip(beyond + 0.5, 0.0, 1.0))))
    kept = int(columns.max()) + 1
    index = rows * kept + columns
    first_column = np.flatnonzero(columns == 0)
    mirrored = first_column[rows[first_column] > height // 2]
    mirrors = np.searchsorted(index, (height - rows[mirrored]) * kept)
    return _Ring(kept, index, amplitude, first_column, mirrored, mirrors)


@lru_cache(maxsize=2)
def _outward(shape: tuple[int, int], ppd: float) -> tuple[FloatArray, npt.NDArray[np.int64]]:
    """Frequencies of a half-plane spectrum from the lowest on, cpd, and where each lies in it;
    without the mean.
    """
    vertical = np.fft.fftfreq(shape[0])
    horizontal = np.fft.rfftfreq(shape[1])
    radial = np.hypot(vertical[:, None], horizontal) * ppd
    # Rows and columns at the Nyquist frequency have no partner of opposite sign; without them the
    # ring is isotropic.
    radial[np.abs(vertical) == 0.5] = 0.0
    radial[:, horizontal == 0.5] = 0.0
    index = np.argsort(radial, axis=None)[np.count_nonzero(radial == 0) :]
    return radial.ravel()[index], index


def _unit_coefficients(ring: _Ring, seed: int) -> npt.NDArray[Any]:
    """Coefficients of one image whose standard deviation is 1."""
    # Deviates are always drawn in float32: a seed means the same image in every precision.
    normal = np.random.default_rng(seed).standard_normal(2 * len(ring.index), dtype=np.float32)
    values = normal.view(np.complex64).astype(np.complex128) * ring.amplitude
    values[ring.mirrored] = values[ring.mirrors].conj()
    squared = values.real**2 + values.imag**2
    # Parseval: every coefficient outside the first column stands for its mirror image too.
    power = 2 * squared.sum() - squared[ring.first_column].sum()
    return np.asarray(values / np.sqrt(power))


@stimulus_kind("annulus_noise")
@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class AnnulusNoise(Modulation):
    """Noise of flat amplitude spectrum and random phase in a ring of spatial frequencies, of all
    orientations.

    Every component inside the ring has the same amplitude, none outside has any; a seed fixes the
    phases. The noise is periodic over the field, and one seed gives one pattern at whatever
    resolution the same field in degrees is drawn, as far as that resolution holds its frequencies.

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
        allowed = (
            f"noise is drawn from 0 up to {nyquist:g} cpd (Nyquist at {self.ppd:g} pixels "
            "per degree)"
        )
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
        low, high = np.broadcast_arrays(
            np.asarray(self.frequency * self.low), np.asarray(self.frequency * self.high)
        )
        return low, high

    def paint(
        self, amplitude: FloatArray, offset: FloatArray, dtype: str, device: str | None
    ) -> Array:
        """``offset + amplitude * noise of SD 1/sqrt(2)``, shape (n, H, W)."""
        low, high = (self._spread(edge) for edge in self.band)
        images = np.empty((len(amplitude), *self.shape), dtype)
        for i, (window, seed) in enumerate(
            zip(self._flat("window"), self._flat("seed"), strict=True)
        ):
            unit = _unit_noise(
                self.shape, self.ppd, float(low[i]), float(high[i]), float(window), int(seed)
            )
            images[i] = unit * (amplitude[i] / np.sqrt(2)) + offset[i]
        return pattern.to_backend(images, dtype, device)

    def promises(self, planes: Planes, sheet: Sheet) -> None:
        """Mean, contrast, nothing outside the ring, and one amplitude for every component
        inside.
        """
        ratio = level_rows(
            self, planes, sheet, "contrast", "SD over mean, times sqrt(2)", np.sqrt(2)
        )
        if ratio is None or self.window:
            return
        low, high = (float(edge) for edge in self.band)
        amplitude = np.abs(np.fft.fft2(planes.pattern - planes.pattern.mean()))
        down, across = (
            np.fft.fftfreq(pixels, 1 / pixels) * self.ppd / pixels for pixels in self.shape
        )
        radius = np.sqrt(down[:, None] ** 2 + across**2)
        inside = (radius > low) & (radius < high)
        power = float((amplitude**2).sum())
        outside = float((amplitude[~inside] ** 2).sum()) / power
        sheet.add(
            "energy outside band", 0.0, outside, "Fourier sum, edges outside", extra=10 * ratio**2
        )
        if ratio < 1e-5 and sheet.precision in ("float64", "float32"):
            spread = float(amplitude[inside].std() / amplitude[inside].mean())
            extra = STANDARD_ERRORS * ratio
            sheet.add(
                "flatness", 0.0, spread, "SD over mean of the amplitudes in the band", extra=extra
            )


@lru_cache(maxsize=32)
def _annulus(
    shape: tuple[int, int], ppd: float, low: float, high: float
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Whole cycles over the field (down, across) of a ring's components, one of each conjugate
    pair, and which to keep.

    The order does not depend on the resolution: that of all components the ring would have without
    a Nyquist frequency. Kept are those that the resolution holds.
    """
    height, width = shape
    most = np.ceil(high * np.array(shape) / ppd).astype(int)
    down, across = np.meshgrid(
        np.arange(-most[0], most[0] + 1), np.arange(most[1] + 1), indexing="ij"
    )
    # Not hypot: products, sums and roots are rounded alike on every machine, so the ring is the
    # same on all.
    radius = np.sqrt((down * (ppd / height)) ** 2 + (across * (ppd / width)) ** 2)
    inside = ((across > 0) | (down > 0)) & (radius > low) & (radius < high)
    down = down[inside]
    across = across[inside]
    # At the Nyquist frequency the two signs are one coefficient: the one numpy's order of
    # frequencies names.
    kept = (2 * across <= width) & (2 * down >= -height) & (2 * down < height)
    kept &= ~((2 * across == width) & (down < 0) & (2 * down > -height))
    kept |= (across == 0) & (2 * down == height)
    if not kept.any():
        raise InputError(
            f"frequency is {(low + high) / 2:g} cpd; a ring from {low:.4g} to {high:.4g} cpd "
            "holds no frequency of a "
            f"field of {height / ppd:.4g} x {width / ppd:.4g} deg, whose frequencies lie "
            f"{ppd / max(shape):.4g} cpd "
            "apart; widen ring or field"
        )
    return down, across, kept


@lru_cache(maxsize=16)
def _unit_noise(
    shape: tuple[int, int], ppd: float, low: float, high: float, window: float, seed: int
) -> npt.NDArray[np.float64]:
    """Noise of mean 0 and standard deviation 1; kept, since a ladder of contrasts shares its
    pattern.
    """
    import scipy.fft

    height, width = shape
    down, across, kept = _annulus(shape, ppd, low, high)
    phase = np.random.default_rng(seed).uniform(0, 2 * np.pi, len(down))[kept]
    down = down[kept]
    across = across[kept]
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
    """Complete, in place, a column that is its own mirror image: of each pair the first one set
    decides.
    """
    height = len(column)
    mirror = -np.arange(height) % height
    set_first = (column != 0) & ((column[mirror] == 0) | (np.arange(height) <= mirror))
    own = np.arange(height) == mirror
    column[mirror[set_first]] = column[set_first].conj()
    column[own & (column != 0)] = np.where(column[own & (column != 0)].real >= 0, 1.0, -1.0)


@tells_names
def noise(
    *,
    frequency: ArrayLike,
    contrast: ArrayLike,
    luminance: ArrayLike = 100.0,
    bandwidth: ArrayLike = 1.0,
    exponent: ArrayLike = 0.0,
    edge: ArrayLike = 0.0,
    seed: ArrayLike = 0,
    direction: Direction = "achromatic",
    white: str | tuple[float, float] = "D65",
    observer: str = "cie2006_led_lcd",
    ppd: float = 60.0,
    size: int | tuple[int, int] = 224,
    dtype: str = "float64",
    device: str | None = None,
) -> Stimulus:
    """Draw Gaussian noise in a ring of spatial frequencies.

    Parameters
    ----------
    frequency : float or array
        Geometric centre of the ring, cpd.
    contrast : float or array
        Population standard deviation over mean (RMS), exactly, in each image.
    bandwidth : float or array
        Full width of the ring, octaves: the edges, both included, are ``frequency
        2^(-bandwidth/2)`` and ``frequency 2^(+bandwidth/2)``.
    exponent : float or array
        Amplitude falls as 1/f^exponent inside the ring: 0 white, 1 pink.
    edge : float or array
        Width of raised-cosine edges of the power, octaves, half power at the stated edges; 0 is a
        brick wall.
    seed : int or array of int
        Of each image; the same seed and ring give the same pattern in every batch, precision and
        backend.
    luminance, direction, white, observer, ppd, size, dtype, device
        As in `gabor`.

    Examples
    --------
    >>> noise(frequency=4.0, contrast=0.1, seed=[3, 4, 5]).luminance.shape
    (3, 224, 224)
    """
    return drawn(Noise, locals())


@tells_names
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
    size: int | tuple[int, int] = 256,
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
        Of the phases.
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
    return drawn(AnnulusNoise, locals())
