"""Sums of patterns on one background: a target on masks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from psyprobe._typing import Array
from psyprobe.errors import InputError
from psyprobe.light.colour import direction_vector
from psyprobe.stimulus import pattern
from psyprobe.stimulus.specification import Modulation, Specification, plain, specification_from_dict, stimulus_kind


@stimulus_kind("sum")
@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Sum(Specification):
    """A target on masks: modulations of one background, added.

    Attributes
    ----------
    parts : tuple of Modulation
        The target first, then what masks it; all with the same luminance, ppd, size, white and observer.

    Examples
    --------
    >>> from psyprobe.stimulus import Gabor, Noise
    >>> target = Gabor(frequency=2.0, contrast=0.1, luminance=32.0)
    >>> mask = Noise(frequency=2.0, contrast=0.1, luminance=32.0)
    >>> plaid = Sum(parts=(target, mask))
    >>> plaid.reference() == mask
    True
    """

    parts: tuple[Any, ...] = ()
    contrast_kind: ClassVar[str | None] = "michelson"
    numeric: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        parts = tuple(specification_from_dict(p) if isinstance(p, Mapping) else p for p in self.parts)
        if len(parts) < 2 or not all(isinstance(part, Modulation) for part in parts):
            raise InputError(f"a sum needs at least two patterns on a background, not {len(parts)} of {self.parts!r}")
        first = parts[0]
        for part in parts[1:]:
            for name in ("luminance", "ppd", "size", "white", "observer"):
                if plain(getattr(part, name)) != plain(getattr(first, name)):
                    raise InputError(
                        f"the parts of a sum share one background: {name} is {getattr(first, name)} in the first and "
                        f"{getattr(part, name)} in another"
                    )
        for name, value in (("parts", parts), ("luminance", first.luminance), ("ppd", first.ppd), ("size", first.size)):
            object.__setattr__(self, name, value)
        try:
            np.broadcast_shapes(*(part.batch for part in parts))
        except ValueError:
            raise InputError(f"parts of batch shapes {[p.batch for p in parts]} do not broadcast") from None

    @property
    def batch(self) -> tuple[int, ...]:
        """Shape that the parts have together."""
        return np.broadcast_shapes(*(part.batch for part in self.parts))

    def to_dict(self) -> dict[str, Any]:
        """The parts, with the kind."""
        return {"kind": self.kind, "parts": [part.to_dict() for part in self.parts]}

    def reference(self) -> Specification:
        """The masks alone."""
        return self.parts[1] if len(self.parts) == 2 else Sum(parts=self.parts[1:])

    def _pixels(self, dtype: str, device: str | None) -> tuple[Array, str]:
        grey = not any(part.in_colour for part in self.parts)
        total: Array = None
        for part in self.parts:
            change = part.modulation(dtype, device)
            if not grey:
                vector = direction_vector(part.direction, part.background_lms)
                change = change[..., None] * pattern.to_backend(vector, dtype, device)
            total = change if total is None else total + change
        first = self.parts[0]
        luminance = pattern.to_backend(np.asarray(first.luminance)[..., None, None], dtype, device)
        if grey:
            pixels, space = luminance * (1 + total), "luminance"
        else:
            background = pattern.to_backend(first.background_lms, dtype, device)
            pixels, space = luminance[..., None] * background * (1 + total), "lms"
        if float(pixels.min()) < 0:
            raise InputError(
                f"the parts together would need negative light ({float(pixels.min()):g}); lower their contrasts"
            )
        return pixels, space
