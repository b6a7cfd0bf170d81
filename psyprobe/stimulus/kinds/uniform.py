"""Uniform fields."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from psyprobe._typing import Array
from psyprobe.light.colour import cone_observer, white_xyz
from psyprobe.light.display import Display
from psyprobe.stimulus import pattern
from psyprobe.stimulus.certificate import Sheet
from psyprobe.stimulus.estimate import Float64
from psyprobe.stimulus.planes import Planes, planes_of
from psyprobe.stimulus.registry import stimulus_kind
from psyprobe.stimulus.specification import Specification


@stimulus_kind("uniform")
@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Uniform(Specification):
    """A uniform field; parameters as in `psyprobe.uniform`.

    Examples
    --------
    >>> float(Uniform(luminance=50.0).draw().pixels.mean())
    50.0
    """

    chromatic: bool = False
    white: str | tuple[float, float] = "D65"
    observer: str = "cie2006_led_lcd"

    def reference(self) -> Specification:
        """Itself: there is no target."""
        return self

    def _pixels(self, dtype: str, device: str | None) -> tuple[Array, str]:
        xp = pattern.namespace(device)
        values = self._flat("luminance")[:, None, None, None]
        if self.chromatic:
            values = values * (cone_observer(self.observer).from_xyz @ white_xyz(self.white))
        pixels = xp.tile(pattern.to_backend(values, dtype, device), (1, *self.shape, 1))
        channels, space = ((3,), "lms") if self.chromatic else ((), "luminance")
        return pixels.reshape((*self.batch, *self.shape, *channels)), space

    def promises(self, planes: Planes, sheet: Sheet) -> None:
        """One level everywhere, and no colour but that of the background."""
        sheet.add("mean luminance", self.luminance, planes.light.mean(), "mean over pixels")
        sheet.add("uniformity", 0.0, planes.light.std() / self.luminance, "SD over luminance")
        if planes.cones is not None:
            cast = np.abs(planes.cones - planes.cones.mean(axis=0)).max()
            sheet.add("colour cast", 0.0, cast, "largest difference between cone contrasts")

    def _planes(self, image: Float64, space: str, display: Display | None) -> Planes:
        return planes_of(image, space, self, display)
