"""A Gabor on a mask: one flat specification of what masking experiments vary."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from psyprobe._typing import Array
from psyprobe.errors import unknown_name
from psyprobe.light.display import Display
from psyprobe.stimulus.certificate import Row, Sheet
from psyprobe.stimulus.estimate import Float64
from psyprobe.stimulus.kinds.noise import Noise
from psyprobe.stimulus.kinds.sums import Sum
from psyprobe.stimulus.kinds.waves import Gabor, Grating
from psyprobe.stimulus.modulation import Modulation
from psyprobe.stimulus.parameters import AREA, DerivedLevel, parameter
from psyprobe.stimulus.registry import stimulus_kind
from psyprobe.stimulus.specification import Specification

#: Low-pass noise holds every frequency above this, cpd: lower than the lowest of any usual field, 1 / extent.
_LOWEST = 0.01

#: What the target has in common with a grating, and with every mask.
_WAVE = ("frequency", "orientation", "phase")
_BACKGROUND = ("luminance", "ppd", "size")


@stimulus_kind("masked_gabor")
@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class MaskedGabor(Specification):
    """A Gabor in cosine phase on a full-field grating or on low-pass noise; both are drawn as their own kinds are.

    Examples
    --------
    >>> spec = MaskedGabor(frequency=2.0, contrast=0.1, mask_contrast=[0.0, 0.2], luminance=32.0)
    >>> spec.draw().pixels.shape, spec.reference().kind
    ((2, 224, 224), 'grating')
    """

    #: frequency, orientation, phase: Of the target and of a grating mask, which go together.
    frequency: Any = parameter("cpd", "Spatial frequency", low=0, above=True)
    #: contrast, radius: Of the target, as in `psyprobe.gabor`.
    contrast: Any = parameter("1", "Contrast", low=0, high=1)
    #: Michelson contrast of a grating mask; RMS contrast of noise.
    mask_contrast: Any = parameter("1", "Mask contrast", low=0)
    radius: Any = parameter("deg", "Radius", default=0.5, low=0, above=True)
    orientation: Any = parameter("deg", "Orientation", default=0.0)
    phase: Any = parameter("deg", "Phase", default=0.0)
    #: {"grating", "noise"}: A grating that goes with the target, or white noise up to `highest`.
    mask: str = "grating"
    #: Of noise; a brick wall, its edge included.
    highest: float = parameter("cpd", "Highest frequency of the mask", default=12.0, numeric=False)
    #: Of the noise.
    seed: Any = parameter("1", "Seed", default=0, low=0, whole=True)

    derived_levels: ClassVar[Mapping[str, DerivedLevel]] = {"area": AREA}
    contrast_kind: ClassVar[str | None] = "michelson"
    masks: ClassVar[tuple[str, ...]] = ("grating", "noise")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.mask not in self.masks:
            raise unknown_name("mask", str(self.mask), self.masks)
        self._require("highest", self.highest > 0, "the highest frequency of noise must be > 0")
        # The parts check their own parameters, and that they fit on the pixels.
        self.as_sum()

    def as_sum(self) -> Sum:
        """The target and the mask, as the sum of a Gabor and a grating or noise."""
        target = Gabor(contrast=self.contrast, radius=self.radius, **self._shared(*_WAVE, *_BACKGROUND))
        return Sum(parts=(target, self.reference()))

    def reference(self) -> Modulation:
        """The mask alone."""
        if self.mask == "grating":
            return Grating(contrast=self.mask_contrast, **self._shared(*_WAVE, *_BACKGROUND))
        return Noise(
            frequency=math.sqrt(_LOWEST * self.highest),
            bandwidth=math.log2(self.highest / _LOWEST),
            contrast=self.mask_contrast,
            **self._shared("seed", *_BACKGROUND),
        )

    def _shared(self, *names: str) -> dict[str, Any]:
        return {name: getattr(self, name) for name in names}

    def _pixels(self, dtype: str, device: str | None) -> tuple[Array, str]:
        return self.as_sum()._pixels(dtype, device)

    def rows(self, image: Float64, space: str, sheet: Sheet, display: Display | None) -> list[Row]:
        """Those of the sum."""
        return self.as_sum().rows(image, space, sheet, display)
