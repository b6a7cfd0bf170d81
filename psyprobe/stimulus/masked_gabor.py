"""A Gabor on a mask: one flat specification of what masking experiments vary."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from psyprobe._typing import Array
from psyprobe.errors import unknown_name
from psyprobe.stimulus.band_noise import Noise
from psyprobe.stimulus.specification import Modulation, Specification, require, stimulus_kind
from psyprobe.stimulus.superposition import Sum
from psyprobe.stimulus.wave import Gabor, Grating

#: Low-pass noise holds every frequency above this, cpd: lower than the lowest of any usual field, 1 / extent.
_LOWEST = 0.01


@stimulus_kind("masked_gabor")
@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class MaskedGabor(Specification):
    """A Gabor in cosine phase on a full-field grating or on low-pass noise; both are drawn as their own kinds are.

    Attributes
    ----------
    frequency : float or array
        Of the target, and of a grating mask, cpd.
    contrast : float or array
        Michelson contrast of the target, 0 to 1.
    mask_contrast : float or array
        Michelson contrast of a grating mask; RMS contrast of noise.
    radius : float or array
        Standard deviation of the target's envelope, deg.
    orientation, phase : float or array
        Of the target and of a grating mask, which go together, deg; phase 0 is a peak at the centre.
    mask : {"grating", "noise"}
        A grating of the target's frequency, orientation and phase, or white noise up to `highest`.
    highest : float
        Highest frequency of noise, cpd; a brick wall, its edge included.
    seed : int or array of int
        Of the noise.

    Examples
    --------
    >>> spec = MaskedGabor(frequency=2.0, contrast=0.1, mask_contrast=[0.0, 0.2], luminance=32.0)
    >>> spec.draw().pixels.shape, spec.reference().kind
    ((2, 224, 224), 'grating')
    """

    frequency: Any
    contrast: Any
    mask_contrast: Any
    radius: Any = 0.5
    orientation: Any = 0.0
    phase: Any = 0.0
    mask: str = "grating"
    highest: float = 12.0
    seed: Any = 0

    numeric: ClassVar[tuple[str, ...]] = (
        "luminance",
        "contrast",
        "mask_contrast",
        "frequency",
        "radius",
        "orientation",
        "phase",
        "seed",
    )
    contrast_kind: ClassVar[str | None] = "michelson"
    masks: ClassVar[tuple[str, ...]] = ("grating", "noise")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.mask not in self.masks:
            raise unknown_name("mask", str(self.mask), self.masks)
        require(self.highest > 0, "highest", self.highest, "cpd", "the highest frequency of noise must be > 0")
        # The parts check their own parameters, and that they fit on the pixels.
        self.as_sum()

    def as_sum(self) -> Sum:
        """The target and the mask, as the sum of two specifications.

        Returns
        -------
        Sum
            Of a Gabor and a grating or noise.
        """
        return Sum(parts=(self._target(), self.reference()))

    def reference(self) -> Modulation:
        """The mask alone."""
        background: dict[str, Any] = {"luminance": self.luminance, "ppd": self.ppd, "size": self.size}
        if self.mask == "grating":
            return Grating(
                frequency=self.frequency,
                contrast=self.mask_contrast,
                orientation=self.orientation,
                phase=self.phase,
                **background,
            )
        return Noise(
            frequency=math.sqrt(_LOWEST * self.highest),
            bandwidth=math.log2(self.highest / _LOWEST),
            contrast=self.mask_contrast,
            seed=self.seed,
            **background,
        )

    def _target(self) -> Gabor:
        return Gabor(
            frequency=self.frequency,
            contrast=self.contrast,
            luminance=self.luminance,
            radius=self.radius,
            orientation=self.orientation,
            phase=self.phase,
            ppd=self.ppd,
            size=self.size,
        )

    def _pixels(self, dtype: str, device: str | None) -> tuple[Array, str]:
        return self.as_sum()._pixels(dtype, device)
