"""Band-limited noise of exact mean and contrast."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from psyprobe._typing import Array, FloatArray
from psyprobe.stimulus import pattern
from psyprobe.stimulus.specification import Modulation, require, stimulus_kind


@stimulus_kind("noise")
@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Noise(Modulation):
    """Gaussian noise in a ring of spatial frequencies, with exact mean and RMS contrast in every sample.

    Attributes
    ----------
    frequency : float or array
        Geometric centre of the ring, cpd.
    bandwidth : float or array
        Full width in octaves: the edges, both included, are ``frequency 2^(-bandwidth/2)`` and
        ``frequency 2^(+bandwidth/2)``.
    exponent : float or array
        Amplitude falls as 1/f^exponent inside the ring: 0 white, 1 pink.
    edge : float or array
        Width in octaves of raised-cosine edges of the power, half power at the stated edges; 0 is a brick wall.
    contrast : float or array
        Population standard deviation over mean (RMS), exactly, in each sample.
    seed : int or array of int
        Of each image; the same seed and ring give the same pattern in every batch, precision and backend.

    Examples
    --------
    >>> noise = Noise(frequency=4.0, contrast=0.15, seed=[1, 2]).draw()
    >>> luminance = noise.luminance[0]
    >>> round(float(luminance.std() / luminance.mean()), 12)
    0.15
    """

    frequency: Any
    bandwidth: Any = 1.0
    exponent: Any = 0.0
    edge: Any = 0.0
    seed: Any = 0

    numeric: ClassVar[tuple[str, ...]] = (
        "luminance",
        "contrast",
        "frequency",
        "bandwidth",
        "exponent",
        "edge",
        "seed",
    )
    contrast_kind: ClassVar[str | None] = "rms"
    deepest: ClassVar[float | None] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.bandwidth > 0, "bandwidth", self.bandwidth, "octaves", "a band's width must be > 0")
        require(self.edge >= 0, "edge", self.edge, "octaves", "the width of an edge must be >= 0")
        require((np.mod(self.seed, 1) == 0) & (self.seed >= 0), "seed", self.seed, "", "a seed is a whole number >= 0")
        high = self.band[1]
        top = high * 2.0 ** (np.asarray(self.edge) / 2)
        require(
            (self.frequency > 0) & (top <= self.ppd / 2),
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
