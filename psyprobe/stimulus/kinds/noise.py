"""Band-limited noise of exact mean and contrast."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from psyprobe._typing import Array, FloatArray
from psyprobe.errors import InputError
from psyprobe.stimulus import pattern, spectrum
from psyprobe.stimulus.certificate import STANDARD_ERRORS, Sheet
from psyprobe.stimulus.estimate import Float64
from psyprobe.stimulus.modulation import Modulation
from psyprobe.stimulus.parameters import parameter
from psyprobe.stimulus.planes import Planes
from psyprobe.stimulus.registry import stimulus_kind

#: Images whose spectra are held at once, so that drawing a long batch stays in the processor's cache.
_BLOCK = 4


@stimulus_kind("noise")
@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Noise(Modulation):
    """Gaussian noise in a ring of spatial frequencies, with exact mean and RMS contrast in every sample.

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
        high = self.band[1]
        top = high * 2.0 ** (np.asarray(self.edge) / 2)
        self._require(
            "frequency",
            top <= self.ppd / 2,
            f"the band's upper edge ({float(np.max(top)):.4g} cpd) must stay below {self.ppd / 2:g} cpd (Nyquist at "
            f"{self.ppd:g} pixels per degree); lower the frequency or the bandwidth",
        )
        step = 1 / min(self.field)
        allowed = f"the band lies below the field's lowest frequency of {step:.4g} cpd; enlarge the field"
        self._require("frequency", top >= step, allowed)

    @property
    def band(self) -> tuple[FloatArray, FloatArray]:
        """Edges of the ring, cpd."""
        half = 2.0 ** (np.asarray(self.bandwidth, float) / 2)
        return np.asarray(self.frequency / half), np.asarray(self.frequency * half)

    def paint(self, amplitude: FloatArray, offset: FloatArray, dtype: str, device: str | None) -> Array:
        """``offset + amplitude * noise of unit standard deviation``, shape (n, H, W).

        Only the coefficients inside the ring are drawn, as normal deviates keyed by the image's own seed and the same
        in all precisions; the inverse transform does the rest.
        """
        import scipy.fft

        bands = (np.broadcast_to(edge, self.batch).ravel() for edge in self.band)
        keys = [*zip(*bands, self._flat("exponent"), self._flat("edge"), strict=True)]
        rings = {key: _ring(self.shape, self.ppd, *map(float, key)) for key in dict.fromkeys(keys)}
        seeds, pixels = self._flat("seed"), self.shape[0] * self.shape[1]
        half = (self.shape[0], self.shape[1] // 2 + 1)
        xp = pattern.namespace(device)
        result = xp.empty((len(keys), *self.shape), dtype=getattr(xp, dtype), device=device or "cpu")
        for start in range(0, len(keys), _BLOCK):
            block = range(start, min(start + _BLOCK, len(keys)))
            spectra = np.zeros((len(block), half[0] * half[1]), "complex128" if dtype == "float64" else "complex64")
            for row, i in enumerate(block):
                ring = rings[keys[i]]
                spectra[row, ring.index] = _unit_coefficients(ring, int(seeds[i])) * (pixels * amplitude[i])
            spectrum = spectra.reshape(-1, *half)
            if device is None:
                images: Array = scipy.fft.irfft2(spectrum, s=self.shape, overwrite_x=True)
            else:
                import torch

                images = torch.fft.irfft2(torch.from_numpy(spectrum).to(device), s=self.shape)
            images += pattern.column(offset[start : block.stop], dtype, device)
            result[start : block.stop] = images
        return result

    def promises(self, planes: Planes, sheet: Sheet) -> None:
        """Mean, RMS contrast, and no energy outside the ring."""
        ratio = level_rows(self, planes, sheet, "rms contrast", "SD over mean", 1.0)
        if ratio is None:
            return
        low, high = (float(edge) for edge in self.band)
        soft = 2.0 ** (self.edge / 2)
        outside = float(spectrum.out_of_band_energy(planes.pattern, self.ppd, low / soft, high * soft))
        sheet.add("energy outside band", 0.0, outside, "Fourier sum", extra=10 * ratio**2)
        if self.edge == 0 and ratio < 1e-5 and sheet.precision in ("float64", "float32"):
            self._edge_rows(planes.pattern, low, high, ratio, sheet)

    def _edge_rows(self, image: Float64, low: float, high: float, ratio: float, sheet: Sheet) -> None:
        """The outermost coefficients that hold energy are those that the stated band holds."""
        radius = spectrum.radial_frequency(self.shape, self.ppd)
        # Coefficients at the Nyquist frequency have no partner of opposite sign; psyprobe leaves them out.
        vertical = np.abs(np.fft.fftfreq(self.shape[0])) == 0.5
        radius[vertical] = 0
        radius[:, np.fft.rfftfreq(self.shape[1]) == 0.5] = 0
        inside = radius[(radius > 0) & (radius >= low * (1 - spectrum.EDGE)) & (radius <= high * (1 + spectrum.EDGE))]
        if inside.size == 0:
            return
        floor = max(1e-12, 1e3 * ratio**2)
        if self.exponent:
            floor *= (inside.min() / inside.max()) ** (2 * abs(self.exponent))
        found = spectrum.band_limits(image, self.ppd, floor=floor)
        for name, asked, edge in zip(("low", "high"), (inside.min(), inside.max()), found, strict=True):
            how = "outermost coefficient that holds energy"
            sheet.add(f"band edge {name}", asked, float(edge), how, key="band edge")


def level_rows(
    spec: Modulation, planes: Planes, sheet: Sheet, quantity: str, estimator: str, unit: float
) -> float | None:
    """Levels of noise and its contrast, `unit` times the SD over the mean.

    Gives the rounding error over the amplitude of the noise, and None of a uniform image, which has no band.
    """
    level, noise = spec.luminance, sheet.noise(spec.contrast)
    sheet.add("mean luminance", level, planes.light.mean(), "mean over pixels")
    sheet.add("peak luminance", None, planes.light.max(), "largest pixel")
    if planes.cones is not None:
        off = planes.pattern.mean() / level - 1
        sheet.add("background modulation", 0.0, off, "mean over pixels", key="cone contrast")
    if spec.contrast == 0:
        sheet.add("distortion", 0.0, planes.pattern.std() / level, "SD over background")
        return None
    ratio = float(noise / (level * spec.contrast))
    delivered = unit * planes.pattern.std() / planes.light.mean()
    extra = STANDARD_ERRORS * ratio / np.sqrt(planes.pattern.size)
    sheet.add_contrast(quantity, spec.contrast, delivered, estimator, extra=extra, key="rms contrast of noise")
    return None if delivered < 1e-12 else ratio


@dataclass(frozen=True)
class _Ring:
    """Which coefficients of a half-plane spectrum a band holds, and what joins them."""

    #: Into the flattened (H, W//2 + 1) spectrum.
    index: npt.NDArray[np.int64]
    #: Relative, of the shape of `index`.
    amplitude: FloatArray
    #: Members of `index` without a mirror image outside the half-plane.
    first_column: npt.NDArray[np.int64]
    #: mirrored, mirrors: Those of `first_column` at negative frequencies, and their partners at positive ones.
    mirrored: npt.NDArray[np.int64]
    mirrors: npt.NDArray[np.int64]


def _ring(shape: tuple[int, int], ppd: float, low: float, high: float, exponent: float, edge: float) -> _Ring:
    height, width = shape
    vertical, horizontal = np.fft.fftfreq(height), np.fft.rfftfreq(width)
    radial = np.hypot(vertical[:, None], horizontal) * ppd
    # Rows and columns at the Nyquist frequency have no partner of opposite sign; without them the ring is isotropic.
    radial[np.abs(vertical) == 0.5] = 0.0
    radial[:, horizontal == 0.5] = 0.0
    reach = 2.0 ** (edge / 2)
    # A coefficient that lies on an edge is inside, on whichever side rounding puts it.
    inside = (radial > 0) & (radial >= low / reach * (1 - 1e-9)) & (radial <= high * reach * (1 + 1e-9))
    index = np.flatnonzero(inside)
    if not index.size:
        raise InputError(
            f"a band from {low:.4g} to {high:.4g} cpd holds no frequency of a field of {height / ppd:.4g} x "
            f"{width / ppd:.4g} deg, whose frequencies lie {ppd / max(shape):.4g} cpd apart; widen band or field"
        )
    r = radial.ravel()[index]
    amplitude = r**-exponent
    if edge > 0:
        outward = np.maximum(np.log2(low / r), np.log2(r / high)) / edge
        amplitude = amplitude * np.sqrt(0.5 * (1 + np.cos(np.pi * np.clip(outward + 0.5, 0.0, 1.0))))
    rows, columns = np.divmod(index, radial.shape[1])
    first_column = np.flatnonzero(columns == 0)
    mirrored = first_column[rows[first_column] > height // 2]
    mirrors = np.searchsorted(index, (height - rows[mirrored]) * radial.shape[1])
    return _Ring(index, amplitude, first_column, mirrored, mirrors)


def _unit_coefficients(ring: _Ring, seed: int) -> npt.NDArray[Any]:
    """Coefficients of one image whose standard deviation is 1 (in units of the number of pixels)."""
    # Deviates are always drawn in float32: a seed means the same image in every precision.
    normal = np.random.default_rng(seed).standard_normal(2 * len(ring.index), dtype=np.float32)
    values = normal.view(np.complex64).astype(np.complex128) * ring.amplitude
    values[ring.mirrored] = values[ring.mirrors].conj()
    squared = values.real**2 + values.imag**2
    # Parseval: every coefficient outside the first column stands for its mirror image too.
    power = 2 * squared.sum() - squared[ring.first_column].sum()
    return np.asarray(values / np.sqrt(power))
