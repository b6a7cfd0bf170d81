"""Sums of patterns on one background: a target on masks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from psyprobe._typing import Array
from psyprobe.errors import InputError
from psyprobe.light.colour import direction_vector
from psyprobe.stimulus import pattern
from psyprobe.stimulus.certificate import Row, Sheet
from psyprobe.stimulus.estimate import Float64
from psyprobe.stimulus.modulation import Modulation
from psyprobe.stimulus.parameters import Parameter, plain, unknown_parameter
from psyprobe.stimulus.planes import luminance_of, to_lms
from psyprobe.stimulus.registry import stimulus_kind
from psyprobe.stimulus.specification import Specification, kept_by_kind, levels_of

if TYPE_CHECKING:
    from psyprobe.light.display import Display

#: What the parts of a sum have in common: changed in one, it is changed in all.
BACKGROUND = ("luminance", "ppd", "size", "white", "observer")


@stimulus_kind("sum")
@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Sum(Specification):
    """A target on masks: modulations of one background, added.

    Levels keep their names for the target; those of the others begin with the name of the part: "mask_contrast".

    Attributes
    ----------
    parts : tuple of Modulation
        The target first, then what masks it; all with the same luminance, ppd, size, white and observer.
    names : tuple of str
        Of the parts after the first; "mask", "mask2", "mask3" ... without it.

    Examples
    --------
    >>> from psyprobe.stimulus import Gabor, Noise
    >>> target = Gabor(frequency=2.0, contrast=0.1, luminance=32.0)
    >>> mask = Noise(frequency=2.0, contrast=0.1, luminance=32.0)
    >>> both = Sum(parts=(target, mask))
    >>> both.reference() == mask
    True
    >>> both.changed(contrast=0.05, mask_contrast=0.2).value("mask_contrast")
    0.2
    """

    parts: tuple[Any, ...] = ()
    names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        parts = tuple(self.parts)
        if len(parts) < 2 or not all(isinstance(part, Modulation) for part in parts):
            raise InputError(f"a sum needs at least two patterns on a background, not {len(parts)} of {self.parts!r}")
        first = parts[0]
        for part in parts[1:]:
            for name in BACKGROUND:
                if plain(getattr(part, name)) != plain(getattr(first, name)):
                    raise InputError(
                        f"the parts of a sum share one background: {name} is {getattr(first, name)} in the first and "
                        f"{getattr(part, name)} in another"
                    )
        shared = {name: getattr(first, name) for name in ("luminance", "ppd", "size", "contrast_kind")}
        for name, value in ({"parts": parts} | shared).items():
            object.__setattr__(self, name, value)
        try:
            np.broadcast_shapes(*(part.batch for part in parts))
        except ValueError:
            raise InputError(f"parts of batch shapes {[p.batch for p in parts]} do not broadcast") from None
        usual = _usual_names(len(parts))
        names = tuple(self.names) or usual
        if len(names) != len(usual) or len(set(names)) != len(names) or not all(map(str.isidentifier, names)):
            raise InputError(f"the names of the parts are {list(names)}; give a word of its own for each but the first")
        # Usual names are left out, so that a sum of stimuli and the same sum from a page are one.
        object.__setattr__(self, "names", () if names == usual else names)
        self._addresses()

    @property
    def part_names(self) -> tuple[str, ...]:
        """Names of the parts after the first."""
        return self.names or _usual_names(len(self.parts))

    @property
    def observer(self) -> str:
        """Name of the cone observer of the background."""
        return str(self.parts[0].observer)

    @property
    def numeric(self) -> tuple[str, ...]:
        """None of its own: all numbers belong to the parts."""
        return ()

    @cached_property
    def batch(self) -> tuple[int, ...]:
        """Shape that the parts have together."""
        return np.broadcast_shapes(*(part.batch for part in self.parts))

    def levels(self) -> Mapping[str, Parameter]:
        """Those of the target, and those of the other parts under their prefixed names."""
        return _levels(tuple(map(type, self.parts)), self.part_names)

    def value(self, name: str) -> Any:
        """The value that a parameter or a derived level of a part has."""
        k, own = self._address(name)
        return self.parts[k].value(own)

    def changed(self, **values: Any) -> Self:
        """The same sum with other values of some parameters; those of the background change in all parts."""
        changes: list[dict[str, Any]] = [{} for _ in self.parts]
        for name, value in values.items():
            k, own = self._address(name)
            for j in range(len(self.parts)) if own in BACKGROUND else (k,):
                changes[j][own] = value
        return replace(self, parts=tuple(p.changed(**c) for p, c in zip(self.parts, changes, strict=True)))

    def to_dict(self) -> dict[str, Any]:
        """The parts, with the kind."""
        names = {"names": list(self.names)} if self.names else {}
        return {"kind": self.kind, "parts": [part.to_dict() for part in self.parts]} | names

    def content(self) -> dict[str, Any]:
        """As `to_dict`, of what the parts' own digests are taken of."""
        return self.to_dict() | {"parts": [part.content() for part in self.parts]}

    def reference(self) -> Specification:
        """The masks alone."""
        return self.parts[1] if len(self.parts) == 2 else Sum(parts=self.parts[1:], names=self.names[1:])

    def summands(self) -> tuple[Specification, ...]:
        """Its parts."""
        return self.parts

    def rows(self, image: Float64, space: str, sheet: Sheet, display: Display | None) -> list[Row]:
        """Rows of each part on its own, the others taken away."""
        changes = [np.asarray(part.modulation("float64", None)) for part in self.parts]
        if space == "luminance":
            layers = [self.luminance * change for change in changes]
            light = image
        else:
            image, space = to_lms(image, space, self.parts[0], display), "lms"
            vectors = [
                part.background_lms * direction_vector(part.direction, part.background_lms) for part in self.parts
            ]
            layers = [self.luminance * change[..., None] * v for change, v in zip(changes, vectors, strict=True)]
            light = luminance_of(image, space, self, None)
        found = [Row("peak luminance", "cd/m²", None, float(np.max(light)), None, False, "largest pixel")]
        for k, part in enumerate(self.parts):
            others = sum((layer for j, layer in enumerate(layers) if j != k), np.zeros(()))
            own = Sheet(part.luminance, sheet.precision, sheet.shown, sheet.refined)
            for row in part.rows(image - others, space, own, display):
                found.append(replace(row, quantity=f"part {k + 1} {row.quantity}"))
        return found

    def _address(self, name: str) -> tuple[int, str]:
        known = self._addresses()
        if name not in known:
            raise unknown_parameter("this sum", name, known)
        return known[name]

    def _addresses(self) -> Mapping[str, tuple[int, str]]:
        return _addresses(tuple(map(type, self.parts)), self.part_names)

    def _single(self, batch: tuple[int, ...], index: tuple[int, ...]) -> Self:
        return replace(self, parts=tuple(part._single(batch, index) for part in self.parts))

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


@kept_by_kind
def _addresses(kinds: tuple[type[Specification], ...], names: tuple[str, ...]) -> Mapping[str, tuple[int, str]]:
    """Of every parameter and derived level: in which part it is, and its name there."""
    found: dict[str, tuple[int, str]] = {}
    for k, (prefix, kind) in enumerate(zip(("", *names), kinds, strict=True)):
        for own in (*kind.parameters(), *kind.derived_levels):
            if k and own in BACKGROUND:
                continue
            name = f"{prefix}_{own}" if k else own
            if name in found:
                raise InputError(f"{name} would be two parameters; give the part {prefix!r} another name")
            found[name] = (k, own)
    return MappingProxyType(found)


@kept_by_kind
def _levels(kinds: tuple[type[Specification], ...], names: tuple[str, ...]) -> Mapping[str, Parameter]:
    found = {}
    for name, (k, own) in _addresses(kinds, names).items():
        if own in (levels := levels_of(kinds[k])):
            label = levels[own].label
            prefix = names[k - 1].replace("_", " ").capitalize() if k else ""
            found[name] = replace(levels[own], label=f"{prefix} {label.lower()}" if k else label)
    return MappingProxyType(found)


def _usual_names(parts: int) -> tuple[str, ...]:
    return tuple("mask" if k == 1 else f"mask{k}" for k in range(1, parts))
