"""Gaussian noise in a band of spatial frequencies, of exact mean and contrast."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import ArrayLike

from psyprobe._typing import AnyArray, Array, FloatArray, IntArray, Levels, Size
from psyprobe.errors import InputError
from psyprobe.light.colour import Direction
from psyprobe.stimulus import estimate
from psyprobe.stimulus.backend import Backend
from psyprobe.stimulus.certificate import ImageMeasurements
from psyprobe.stimulus.estimate import Float64
from psyprobe.stimulus.measuring import Planes
from psyprobe.stimulus.parameters import check_keywords, common, parameter
from psyprobe.stimulus.pattern import Modulation
from psyprobe.stimulus.registry import stimulus_kind
from psyprobe.stimulus.specification import draw_kind
from psyprobe.stimulus.stimulus import Stimulus
from psyprobe.stimulus.tolerances import STANDARD_ERRORS


@stimulus_kind("noise")
class Noise(Modulation):
    """Gaussian noise in a ring of spatial frequencies, of exact mean and RMS contrast.

    Parameters as in `psyprobe.noise`.

    Examples
    --------
    >>> noise = Noise(frequency=4.0, contrast=0.15, seed=[1, 2]).draw()
    >>> luminance = noise.luminance[0]
    >>> round(float(luminance.std() / luminance.mean()), 12)
    0.15
    """

    frequency: Levels = common("frequency")
    bandwidth: Levels = parameter(
        "octaves", "Bandwidth", default=1.0, low=0, above=True
    )
    exponent: Levels = parameter("1", "Spectral exponent", default=0.0)
    edge: Levels = parameter("octaves", "Width of the edge", default=0.0, low=0)
    seed: Levels = common("seed", default=0)

    contrast_kind = "rms"
    deepest = None

    def __post_init__(self) -> None:
        super().__post_init__()
        top = self.band[1] * 2.0 ** (np.asarray(self.edge) / 2)
        nyquist = self.ppd / 2
        allowed = (
            f"the band's upper edge ({float(top.max()):.4g} cpd) must stay below {nyquist:g} cpd "
            f"(Nyquist at {self.ppd:g} pixels per degree); lower the frequency or the bandwidth"
        )
        self._require("frequency", top <= nyquist, allowed)
        step = 1 / min(self.field)
        allowed = (
            f"the band lies below the field's lowest frequency of {step:.4g} cpd; enlarge "
            "the field"
        )
        self._require("frequency", top >= step, allowed)

    @property
    def band(self) -> tuple[FloatArray, FloatArray]:
        """Edges of the ring, cpd."""
        half = 2.0 ** (np.asarray(self.bandwidth, float) / 2)
        return np.asarray(self.frequency / half), np.asarray(self.frequency * half)

    def paint(
        self, amplitude: FloatArray, offset: FloatArray, backend: Backend
    ) -> Array:
        """Draw ``offset + amplitude * noise of unit standard deviation``, shape (n, H, W).

        Only the coefficients inside the ring are drawn, as normal deviates keyed by the image's
        seed and the same in all precisions; the inverse transform, of those columns of the spectrum
        that hold any, does the rest.
        """
        low, high = (self._repeat(edge) for edge in self.band)
        columns = zip(
            low, high, self.per_image("exponent"), self.per_image("edge"), strict=True
        )
        bands = list(columns)
        rings = {}
        for band in dict.fromkeys(bands):
            rings[band] = _compute_ring(self.shape, self.ppd, *map(float, band))
        seeds = self.per_image("seed")
        level = backend.array(offset[:, None, None])
        xp = array_namespace(level)
        shape = (len(bands), *self.shape)
        images = xp.empty(shape, dtype=level.dtype, device=backend.device or "cpu")
        dtype = "complex128" if backend.dtype == "float64" else "complex64"
        for i, band in enumerate(bands):
            ring = rings[band]
            spectrum = np.zeros((self.shape[0], ring.columns), dtype)
            coefficients = _unit_coefficients(ring, int(seeds[i])) * amplitude[i]
            spectrum.reshape(-1)[ring.index] = coefficients
            _transform(spectrum, level[i], images[i])
        return images

    def measure_planes(self, planes: Planes, measurements: ImageMeasurements) -> None:
        """Measure mean, RMS contrast, and the energy outside the ring."""
        ratio = measure_levels(
            self, planes, measurements, "rms contrast", "SD over mean", 1.0
        )
        if ratio is None:
            return
        low, high = (float(edge) for edge in self.band)
        soft = 2.0 ** (self.edge / 2)
        image = planes.pattern
        outside = float(
            estimate.out_of_band_energy(image, self.ppd, low / soft, high * soft)
        )
        extra = 10 * ratio**2
        measurements.add(
            "energy outside band", 0.0, outside, "Fourier sum", extra=extra
        )
        exact = ratio < 1e-5 and measurements.precision in ("float64", "float32")
        if self.edge == 0 and exact:
            self._measure_band_edges(image, low, high, ratio, measurements)

    def _measure_band_edges(
        self,
        image: Float64,
        low: float,
        high: float,
        ratio: float,
        measurements: ImageMeasurements,
    ) -> None:
        """Compare the outermost coefficients that hold energy with those of the stated band."""
        height, width = self.shape
        radius = estimate.radial_frequency(self.shape, self.ppd)
        # Coefficients at the Nyquist frequency have no partner of opposite sign; psyprobe leaves
        # them out.
        radius[np.abs(np.fft.fftfreq(height)) == 0.5] = 0
        radius[:, np.fft.rfftfreq(width) == 0.5] = 0
        above_low = radius >= low * (1 - estimate.BAND_EDGE)
        below_high = radius <= high * (1 + estimate.BAND_EDGE)
        inside = radius[(radius > 0) & above_low & below_high]
        if inside.size == 0:
            return
        innermost = inside.min()
        outermost = inside.max()
        floor = max(1e-12, 1e3 * ratio**2)
        if self.exponent:
            floor *= (innermost / outermost) ** (2 * abs(self.exponent))
        lowest, highest = estimate.band_limits(image, self.ppd, floor=floor)
        method = "outermost coefficient that holds energy"
        edges = (("low", innermost, lowest), ("high", outermost, highest))
        for name, requested, delivered in edges:
            measurements.add(
                f"band edge {name}",
                requested,
                float(delivered),
                method,
                key="band edge",
            )


def measure_levels(
    spec: Modulation,
    planes: Planes,
    measurements: ImageMeasurements,
    quantity: str,
    estimator: str,
    unit: float,
) -> float | None:
    """Measure the levels of noise, and its contrast: `unit` times the SD over the mean.

    Returns
    -------
    float or None
        The rounding error over the amplitude of the noise; None for a uniform image, which has no
        band.
    """
    level = spec.luminance
    contrast = spec.contrast
    mean = planes.light.mean()
    measurements.add("mean luminance", level, mean, "mean over pixels")
    measurements.add("peak luminance", None, planes.light.max(), "largest pixel")
    if planes.in_colour:
        change = planes.pattern.mean() / level - 1
        measurements.add(
            "background modulation",
            0.0,
            change,
            "mean over pixels",
            key="cone contrast",
        )
    deviation = planes.pattern.std()
    if contrast == 0:
        measurements.add("distortion", 0.0, deviation / level, "SD over background")
        return None
    ratio = float(measurements.pixel_error(contrast) / (level * contrast))
    delivered = unit * deviation / mean
    extra = STANDARD_ERRORS * ratio / np.sqrt(planes.pattern.size)
    key = "rms contrast of noise"
    measurements.add_contrast(
        quantity, contrast, delivered, estimator, extra=extra, key=key
    )
    return None if delivered < 1e-12 else ratio


def _transform(spectrum: AnyArray, level: Array, out: Array) -> None:
    """Compute the real image of a half-plane spectrum's first columns plus a level, into `out`.

    The spectrum is overwritten.
    """
    width = out.shape[1]
    if isinstance(out, np.ndarray):
        # New memory would cost an image more than its transform.
        np.fft.ifft(spectrum, axis=0, norm="forward", out=spectrum)
        np.fft.irfft(spectrum, width, axis=1, norm="forward", out=out)
        out += level
        return
    import torch

    columns = torch.fft.ifft(
        torch.from_numpy(spectrum).to(out.device), dim=0, norm="forward"
    )
    torch.add(torch.fft.irfft(columns, width, dim=1, norm="forward"), level, out=out)


@dataclass(frozen=True)
class _Ring:
    """The coefficients of a half-plane spectrum that a band holds."""

    #: Number of columns up to the last that holds any.
    columns: int
    #: Indices into the flattened (H, columns) spectrum.
    index: IntArray
    #: Relative amplitude of each coefficient of `index`.
    amplitude: FloatArray
    #: Positions in `index` of coefficients without a mirror image outside the half-plane.
    first_column: IntArray
    #: mirrored, mirrors: Positions in `index` of the coefficients in the first column at negative
    #: frequencies, and of their partners at positive ones.
    mirrored: IntArray
    mirrors: IntArray


@lru_cache(maxsize=4)
def _compute_ring(
    shape: Size, ppd: float, low: float, high: float, exponent: float, edge: float
) -> _Ring:
    """Compute the Fourier coefficients in a band of frequencies: places, amplitudes and mirrors."""
    height, width = shape
    frequencies, index = _sorted_frequencies(shape, ppd)
    reach = 2.0 ** (edge / 2)
    # A coefficient that lies on an edge is inside, on whichever side rounding puts it.
    first = np.searchsorted(frequencies, low / reach * (1 - 1e-9), "left")
    last = np.searchsorted(frequencies, high * reach * (1 + 1e-9), "right")
    if not first < last:
        raise InputError(
            f"a band from {low:.4g} to {high:.4g} cpd holds no frequency of a field of "
            f"{height / ppd:.4g} x {width / ppd:.4g} deg, whose frequencies lie "
            f"{ppd / max(shape):.4g} cpd apart; widen band or field"
        )
    order = np.argsort(index[first:last])
    r = frequencies[first:last][order]
    rows, columns = np.divmod(index[first:last][order], width // 2 + 1)
    amplitude = r**-exponent if exponent else np.ones_like(r)
    if edge > 0:
        beyond = np.maximum(np.log2(low / r), np.log2(r / high)) / edge
        ramp = np.clip(beyond + 0.5, 0.0, 1.0)
        amplitude = amplitude * np.sqrt(0.5 * (1 + np.cos(np.pi * ramp)))
    count = int(columns.max()) + 1
    index = rows * count + columns
    first_column = np.flatnonzero(columns == 0)
    mirrored = first_column[rows[first_column] > height // 2]
    mirrors = np.searchsorted(index, (height - rows[mirrored]) * count)
    return _Ring(count, index, amplitude, first_column, mirrored, mirrors)


@lru_cache(maxsize=2)
def _sorted_frequencies(shape: Size, ppd: float) -> tuple[FloatArray, IntArray]:
    """Sort the frequencies of a half-plane spectrum but for 0, cpd, with their places.

    Returns
    -------
    frequencies : ndarray
        In ascending order.
    index : ndarray of int
        Where each lies in the flattened spectrum.
    """
    height, width = shape
    vertical = np.fft.fftfreq(height)
    horizontal = np.fft.rfftfreq(width)
    radial = np.hypot(vertical[:, None], horizontal) * ppd
    # Rows and columns at the Nyquist frequency have no partner of opposite sign; without them the
    # ring is isotropic.
    radial[np.abs(vertical) == 0.5] = 0.0
    radial[:, horizontal == 0.5] = 0.0
    index = np.argsort(radial, axis=None)[np.count_nonzero(radial == 0) :]
    return radial.ravel()[index], index


def _unit_coefficients(ring: _Ring, seed: int) -> AnyArray:
    """Draw random Fourier coefficients in a band, of an image whose SD is 1."""
    # Deviates are always drawn in float32: a seed means the same image in every precision.
    normal = np.random.default_rng(seed).standard_normal(
        2 * len(ring.index), dtype=np.float32
    )
    values = normal.view(np.complex64).astype(np.complex128) * ring.amplitude
    values[ring.mirrored] = values[ring.mirrors].conj()
    squared = values.real**2 + values.imag**2
    # Parseval: every coefficient outside the first column stands for its mirror image too.
    power = 2 * squared.sum() - squared[ring.first_column].sum()
    return np.asarray(values / np.sqrt(power))


@check_keywords
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
    size: int | Size = 224,
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
        Seed of each image; the same seed and ring give the same pattern in every batch, precision
        and backend.
    luminance, direction, white, observer, ppd, size, dtype, device
        As in `gabor`.

    Examples
    --------
    >>> noise(frequency=4.0, contrast=0.1, seed=[3, 4, 5]).luminance.shape
    (3, 224, 224)
    """
    return draw_kind(Noise, locals())
