"""Uniform fields."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from psyprobe._typing import Array
from psyprobe.light.colour import cone_observer, white_xyz
from psyprobe.stimulus import pattern
from psyprobe.stimulus.estimate import Float64
from psyprobe.stimulus.planes import Planes, planes_of
from psyprobe.stimulus.registry import stimulus_kind
from psyprobe.stimulus.specification import Specification

if TYPE_CHECKING:
    from psyprobe.light.display import Display
    from psyprobe.stimulus.certificate import Row, Sheet


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
        luminance = self._flat("luminance")
        if self.chromatic:
            lms = cone_observer(self.observer).from_xyz @ white_xyz(self.white)
            values = pattern.to_backend(luminance[:, None] * lms, dtype, device)[:, None, None, :]
            return xp.tile(values, (1, *self.shape, 1)).reshape((*self.batch, *self.shape, 3)), "lms"
        return xp.tile(pattern.column(luminance, dtype, device), (1, *self.shape)).reshape(
            (*self.batch, *self.shape)
        ), ("luminance")

    def promises(self, planes: Planes, sheet: Sheet) -> None:
        """One level everywhere, and no colour but that of the background."""
        sheet.add("mean luminance", self.luminance, planes.light.mean(), "mean over pixels")
        sheet.add("uniformity", 0.0, planes.light.std() / self.luminance, "SD over luminance")
        if planes.cones is not None:
            cast = np.abs(planes.cones - planes.cones.mean(axis=0)).max()
            sheet.add("colour cast", 0.0, cast, "largest difference between cone contrasts")

    def rows(self, image: Float64, space: str, sheet: Sheet, display: Display | None) -> list[Row]:
        """What it promises, of light in its own chromaticity."""
        self.promises(planes_of(image, space, self, display), sheet)
        return sheet.rows
