"""Band-limited noise of exact mean and contrast."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from psyprobe._typing import Array, FloatArray
from psyprobe.stimulus import pattern, spectrum
from psyprobe.stimulus.certificate import STANDARD_ERRORS
from psyprobe.stimulus.estimate import Float64
from psyprobe.stimulus.modulation import Modulation
from psyprobe.stimulus.parameters import parameter, require
from psyprobe.stimulus.planes import Planes
from psyprobe.stimulus.registry import stimulus_kind

if TYPE_CHECKING:
    from psyprobe.stimulus.certificate import Sheet


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
        require(
            top <= self.ppd / 2,
            "frequency",
            self.frequency,
            "cpd",
            f"the band's upper edge ({float(np.max(top)):.4g} cpd) must stay below {self.ppd / 2:g} cpd (Nyquist at "
            f"{self.ppd:g} pixels per degree); lower the frequency or the bandwidth",
        )
        step = 1 / min(self.field)
        require(
            top >= step,
            "frequency",
            self.frequency,
            "cpd",
            f"the band lies below the field's lowest frequency of {step:.4g} cpd; enlarge the field",
        )

    @property
    def band(self) -> tuple[FloatArray, FloatArray]:
        """Edges of the ring, cpd."""
        half = 2.0 ** (np.asarray(self.bandwidth, float) / 2)
        return np.asarray(self.frequency / half), np.asarray(self.frequency * half)

    def paint(self, amplitude: FloatArray, offset: FloatArray, dtype: str, device: str | None) -> Array:
        """``offset + amplitude * noise of unit standard deviation``, shape (n, H, W)."""
        low, high = (np.broadcast_to(v, self.batch).ravel() for v in self.band)
        names = ("exponent", "edge", "seed")
        return pattern.noise_images(
            self.shape,
            self.ppd,
            amplitude=amplitude,
            offset=offset,
            low=low,
            high=high,
            dtype=dtype,
            device=device,
            **{name: self._flat(name) for name in names},
        )

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

    def _edge_rows(self, pattern: Float64, low: float, high: float, ratio: float, sheet: Sheet) -> None:
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
        found = spectrum.band_limits(pattern, self.ppd, floor=floor)
        for name, asked, edge in zip(("low", "high"), (inside.min(), inside.max()), found, strict=True):
            sheet.add(
                f"band edge {name}",
                float(asked),
                float(edge),
                "outermost coefficient that holds energy",
                key="band edge",
            )


def level_rows(
    spec: Modulation, planes: Planes, sheet: Sheet, quantity: str, estimator: str, unit: float
) -> float | None:
    """Levels of noise and its contrast, `unit` times the SD over the mean.

    Returns
    -------
    float or None
        Rounding error over the amplitude of the noise; None of a uniform image, which has no band.
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
