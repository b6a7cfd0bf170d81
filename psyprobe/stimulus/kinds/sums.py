"""Sums of patterns on one background: a target on masks; and a Gabor on a mask as one flat
specification.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from array_api_compat import array_namespace

from psyprobe._typing import Array
from psyprobe.errors import InputError, unknown_name
from psyprobe.files.output import plain
from psyprobe.light.display import Display
from psyprobe.stimulus import pattern
from psyprobe.stimulus.certificate import Row, Sheet, luminance_of, to_lms
from psyprobe.stimulus.estimate import Float64
from psyprobe.stimulus.kinds.noise import Noise
from psyprobe.stimulus.kinds.patches import Gabor, Grating
from psyprobe.stimulus.parameters import AREA, DerivedLevel, Parameter, check_names, parameter
from psyprobe.stimulus.pattern import Modulation
from psyprobe.stimulus.specification import (
    Specification,
    kept_by_kind,
    levels_of,
    numbers_of,
    stimulus_kind,
)

#: What the parts of a sum have in common: changed in one, it is changed in all.
BACKGROUND = ("luminance", "ppd", "size", "white", "observer")


@stimulus_kind("sum")
@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Sum(Specification):
    """A target on masks: modulations of one background, added.

    Levels keep their names for the target; those of the others begin with the name of the part:
    "mask_contrast".

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

    #: The target first, then what masks it; all with the same luminance, ppd, size, white and
    #: observer.
    parts: tuple[Any, ...] = ()
    #: Of the parts after the first; "mask", "mask2", "mask3" ... without it.
    names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        parts = tuple(self.parts)
        if len(parts) < 2 or not all(isinstance(part, Modulation) for part in parts):
            raise InputError(
                f"a sum needs at least two patterns on a background, not {len(parts)} of "
                f"{self.parts!r}"
            )
        first = parts[0]
        for part in parts[1:]:
            for name in BACKGROUND:
                if plain(getattr(part, name)) != plain(getattr(first, name)):
                    raise InputError(
                        f"the parts of a sum share one background: {name} is "
                        f"{getattr(first, name)} in the first and "
                        f"{getattr(part, name)} in another"
                    )
        shared = {
            name: getattr(first, name) for name in ("luminance", "ppd", "size", "contrast_kind")
        }
        for name, value in ({"parts": parts} | shared).items():
            object.__setattr__(self, name, value)
        try:
            np.broadcast_shapes(*(part.batch for part in parts))
        except ValueError:
            raise InputError(
                f"parts of batch shapes {[p.batch for p in parts]} do not broadcast"
            ) from None
        usual = _usual_names(len(parts))
        names = tuple(self.names) or usual
        if (
            len(names) != len(usual)
            or len(set(names)) != len(names)
            or not all(map(str.isidentifier, names))
        ):
            raise InputError(
                f"the names of the parts are {list(names)}; give a word of its own for each but "
                "the first"
            )
        # Usual names are left out, so that a sum of stimuli and the same sum from a page are one.
        object.__setattr__(self, "names", () if names == usual else names)
        _ = self._layout

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
        return self._layout[1]

    def value(self, name: str) -> Any:
        """The value that a parameter or a derived level of a part has."""
        k, own = self._address(name)
        return self.parts[k].value(own)

    def changed(self, **values: Any) -> Self:
        """The same sum with other values of some parameters; those of the background change in all
        parts.
        """
        changes: list[dict[str, Any]] = [{} for _ in self.parts]
        for name, value in values.items():
            k, own = self._address(name)
            for j in range(len(self.parts)) if own in BACKGROUND else (k,):
                changes[j][own] = value
        return replace(
            self, parts=tuple(p.changed(**c) for p, c in zip(self.parts, changes, strict=True))
        )

    def to_dict(self) -> dict[str, Any]:
        """The parts, with the kind."""
        names = {"names": list(self.names)} if self.names else {}
        return {"kind": self.kind, "parts": [part.to_dict() for part in self.parts]} | names

    def content(self) -> dict[str, Any]:
        """As `to_dict`, of what the parts' own digests are taken of."""
        return self.to_dict() | {"parts": [part.content() for part in self.parts]}

    def reference(self) -> Specification:
        """The masks alone."""
        return (
            self.parts[1]
            if len(self.parts) == 2
            else Sum(parts=self.parts[1:], names=self.names[1:])
        )

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
            image = to_lms(image, space, self.parts[0], display)
            space = "lms"
            vectors = [part.background_lms * part.cone_contrast for part in self.parts]
            layers = [
                self.luminance * change[..., None] * v
                for change, v in zip(changes, vectors, strict=True)
            ]
            light = luminance_of(image, space, self, None)
        found = [
            Row("peak luminance", "cd/m²", None, float(np.max(light)), None, False, "largest pixel")
        ]
        for k, part in enumerate(self.parts):
            others = sum((layer for j, layer in enumerate(layers) if j != k), np.zeros(()))
            own = Sheet(part.luminance, sheet.precision, sheet.shown, sheet.refined)
            for row in part.rows(image - others, space, own, display):
                found.append(replace(row, quantity=f"part {k + 1} {row.quantity}"))
        return found

    @property
    def _layout(self) -> tuple[Mapping[str, tuple[int, str]], Mapping[str, Parameter]]:
        return _layout(tuple(type(part) for part in self.parts), self.part_names)

    def _address(self, name: str) -> tuple[int, str]:
        check_names("this sum", [name], self._layout[0])
        return self._layout[0][name]

    def family(self) -> Any:
        """Those of the parts."""
        return self.kind, [part.family() for part in self.parts]

    @classmethod
    def joined(cls, specs: Sequence[Self]) -> Self:
        """As of any specification: numbers of the parts become arrays."""
        counts = [math.prod(spec.batch) for spec in specs]
        numbers = [
            numbers_of(parts, counts) for parts in zip(*(spec.parts for spec in specs), strict=True)
        ]
        one = replace(
            specs[0],
            parts=tuple(replace(p, **c) for p, c in zip(specs[0].parts, numbers, strict=True)),
        )
        return one if one.batch else one.changed(luminance=np.full(sum(counts), one.luminance))

    def _told(
        self, batch: tuple[int, ...], tell: Callable[[Specification], dict[str, Any]]
    ) -> Iterator[dict[str, Any]]:
        shared = tell(self)
        for parts in zip(*(part._told(batch, tell) for part in self.parts), strict=True):
            yield {**shared, "parts": list(parts)}

    def single(self, batch: tuple[int, ...], index: tuple[int, ...]) -> Self:
        """Of its parts those."""
        return replace(self, parts=tuple(part.single(batch, index) for part in self.parts))

    def chosen(self, batch: tuple[int, ...], places: Sequence[int]) -> Self:
        """Of its parts those."""
        return replace(self, parts=tuple(part.chosen(batch, places) for part in self.parts))

    def _pixels(self, dtype: str, device: str | None) -> tuple[Array, str]:
        grey = not any(part.in_colour for part in self.parts)
        total: Array = None
        for part in self.parts:
            change = part.modulation(dtype, device)
            if not grey:
                change = change[..., None, :, :] * pattern.to_backend(
                    part.cone_contrast[:, None, None], dtype, device
                )
            total = change if total is None else total + change
        first = self.parts[0]
        luminance = pattern.to_backend(np.asarray(first.luminance)[..., None, None], dtype, device)
        if grey:
            pixels = luminance * (1 + total)
            space = "luminance"
        else:
            background = pattern.to_backend(first.background_lms[:, None, None], dtype, device)
            planes = luminance[..., None, :, :] * background * (1 + total)
            pixels = array_namespace(planes).moveaxis(planes, -3, -1)
            space = "lms"
        if (darkest := float(pixels.min())) < 0:
            raise InputError(
                f"the parts together would need negative light ({darkest:g}); lower their contrasts"
            )
        return pixels, space


@kept_by_kind
def _layout(
    kinds: tuple[type[Modulation], ...], names: tuple[str, ...]
) -> tuple[Mapping[str, tuple[int, str]], Mapping[str, Parameter]]:
    """Of every parameter and derived level: in which part it is and its name there; and all that
    are levels.
    """
    places: dict[str, tuple[int, str]] = {}
    levels: dict[str, Parameter] = {}
    for k, (prefix, kind) in enumerate(zip(("", *names), kinds, strict=True)):
        for own in (*kind.parameters(), *kind.derived_levels):
            if k and own in BACKGROUND:
                continue
            name = f"{prefix}_{own}" if k else own
            if name in places:
                raise InputError(
                    f"{name} would be two parameters; give the part {prefix!r} another name"
                )
            places[name] = (k, own)
            if level := levels_of(kind).get(own):
                label = (
                    f"{prefix.replace('_', ' ').capitalize()} {level.label.lower()}"
                    if k
                    else level.label
                )
                levels[name] = replace(level, label=label)
    return places, levels


def _usual_names(parts: int) -> tuple[str, ...]:
    return tuple("mask" if k == 1 else f"mask{k}" for k in range(1, parts))


#: Low-pass noise holds every frequency above this, cpd: lower than the lowest of any usual field, 1
#: / extent.
_LOWEST = 0.01

#: What the target has in common with a grating, and with every mask.
_WAVE = ("frequency", "orientation", "phase")
_BACKGROUND = ("luminance", "ppd", "size")


@stimulus_kind("masked_gabor")
@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class MaskedGabor(Specification):
    """A Gabor in cosine phase on a full-field grating or on low-pass noise; both are drawn as their
    own kinds are.

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
        target = Gabor(
            contrast=self.contrast, radius=self.radius, **self._shared(*_WAVE, *_BACKGROUND)
        )
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
