"""Sums of patterns on one background: a target on masks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np
from array_api_compat import array_namespace

from psyprobe._typing import Array, FloatArray, IntArray, Levels, Shape
from psyprobe.errors import InputError
from psyprobe.files.json_types import JsonObject
from psyprobe.files.output import plain
from psyprobe.stimulus.backend import Backend
from psyprobe.stimulus.certificate import ImageMeasurements, Measurement
from psyprobe.stimulus.estimate import Float64
from psyprobe.stimulus.measuring import luminance_of, to_lms
from psyprobe.stimulus.parameters import Parameter, check_names
from psyprobe.stimulus.pattern import Modulation
from psyprobe.stimulus.registry import stimulus_kind
from psyprobe.stimulus.specification import (
    Specification,
    cache_by_kind,
    join_numbers,
    levels_of,
)

#: What the parts of a sum have in common: changed in one part, it is changed in all.
BACKGROUND = ("luminance", "ppd", "size", "white", "observer")


@stimulus_kind("sum")
class Sum(Specification):
    """A target on masks: modulations of one background, added.

    Levels of the target keep their names; those of the other parts begin with the name of the part:
    "mask_contrast".

    Examples
    --------
    >>> from psyprobe.stimulus import Gabor, Noise
    >>> target = Gabor(frequency=2.0, contrast=0.1, luminance=32.0)
    >>> mask = Noise(frequency=2.0, contrast=0.1, luminance=32.0)
    >>> masked = Sum(parts=(target, mask))
    >>> masked.reference() == mask
    True
    >>> masked.changed(contrast=0.05, mask_contrast=0.2).value("mask_contrast")
    0.2
    """

    #: The target first, then what masks it; all with the same luminance, ppd, size, white and
    #: observer.
    parts: tuple[Modulation, ...] = ()
    #: Names of the parts after the first; by default "mask", "mask2", "mask3" ...
    names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        parts = tuple(self.parts)
        if len(parts) < 2 or not all(isinstance(part, Modulation) for part in parts):
            raise InputError(
                f"a sum needs at least two patterns on a background, not {len(parts)} of "
                f"{self.parts!r}"
            )
        _check_backgrounds(parts)
        object.__setattr__(self, "parts", parts)
        for name in ("luminance", "ppd", "size", "contrast_kind"):
            object.__setattr__(self, name, getattr(parts[0], name))
        try:
            _ = self.batch
        except ValueError:
            raise InputError(
                f"parts of batch shapes {[part.batch for part in parts]} do not broadcast"
            ) from None
        default_names = _default_names(len(parts))
        names = tuple(self.names) or default_names
        distinct = len(names) == len(default_names) == len(set(names))
        if not distinct or not all(map(str.isidentifier, names)):
            raise InputError(
                f"the names of the parts are {list(names)}; give a word of its own for each but "
                "the first"
            )
        # Default names are left out, so that a sum of stimuli equals the same sum from a page.
        object.__setattr__(self, "names", () if names == default_names else names)
        _ = self._layout

    @property
    def part_names(self) -> tuple[str, ...]:
        """Names of the parts after the first."""
        return self.names or _default_names(len(self.parts))

    @property
    def observer(self) -> str:
        """Name of the cone observer of the background."""
        return str(self.parts[0].observer)

    @property
    def numeric(self) -> tuple[str, ...]:
        """Empty: all numbers belong to the parts."""
        return ()

    @cached_property
    def batch(self) -> Shape:
        """Shape that the parts have together."""
        return np.broadcast_shapes(*(part.batch for part in self.parts))

    def varying(self) -> dict[str, FloatArray]:
        """Return the parts' parameters that are arrays, by their names in the sum."""
        values = {name: self.value(name) for name in self._layout.parameters}
        return {
            name: value
            for name, value in values.items()
            if isinstance(value, np.ndarray)
        }

    def levels(self) -> Mapping[str, Parameter]:
        """Describe what can vary: levels of the first part, and of others by prefixed names."""
        return self._layout.levels

    def value(self, name: str) -> Levels:
        """Return the value of a parameter or a derived level of a part."""
        address = self._find_address(name)
        return self.parts[address.part].value(address.name)

    def changed(self, **values: Levels) -> Self:
        """Copy the sum with other values of some parameters.

        Those of the background change in all parts.
        """
        changes: list[JsonObject] = [{} for _ in self.parts]
        for name, value in values.items():
            address = self._find_address(name)
            shared = address.name in BACKGROUND
            for part in range(len(self.parts)) if shared else [address.part]:
                changes[part][address.name] = value
        return self._with_parts(
            part.changed(**change)
            for part, change in zip(self.parts, changes, strict=True)
        )

    def _with_parts(self, parts: Iterable[Modulation]) -> Self:
        """Return a copy of the sum with other stimuli in the place of its parts."""
        return replace(self, parts=tuple(parts))

    def to_dict(self) -> JsonObject:
        """Return the kind and the parts as numbers, text and lists."""
        names = {"names": list(self.names)} if self.names else {}
        return {
            "kind": self.kind,
            "parts": [part.to_dict() for part in self.parts],
        } | names

    def content(self) -> JsonObject:
        """Return the sum's kind and parts for its digest, with the contents of the parts."""
        return self.to_dict() | {"parts": [part.content() for part in self.parts]}

    def reference(self) -> Specification:
        """Return the sum without its first part, the target: the masks alone."""
        if len(self.parts) == 2:
            mask: Specification = self.parts[1]
            return mask
        return Sum(parts=self.parts[1:], names=self.names[1:])

    def summands(self) -> tuple[Specification, ...]:
        """Return the parts of the sum."""
        return self.parts

    def measure_image(
        self, image: Float64, measurements: ImageMeasurements
    ) -> list[Measurement]:
        """Measure each part by itself, with the others subtracted."""
        layers = [
            self.luminance * np.asarray(part.modulation(Backend()))
            for part in self.parts
        ]
        light = image
        if measurements.space != "luminance":
            image = to_lms(
                image, measurements.space, self.parts[0], measurements.display
            )
            measurements = replace(measurements, space="lms")
            light = luminance_of(image, "lms", self)
            for index, part in enumerate(self.parts):
                vector = part.background_lms * part.cone_contrast
                layers[index] = layers[index][..., None] * vector
        peak = float(np.max(light))
        entries = [
            Measurement(
                "peak luminance",
                "cd/m²",
                None,
                peak,
                None,
                relative=False,
                estimator="largest pixel",
                image=measurements.images[0],
            )
        ]
        for index, part in enumerate(self.parts):
            others = sum(layers[:index] + layers[index + 1 :], np.zeros(()))
            measured = part.measure_image(image - others, measurements.empty())
            for measurement in measured:
                quantity = f"part {index + 1} {measurement.quantity}"
                entries.append(replace(measurement, quantity=quantity))
        return entries

    @property
    def _layout(self) -> _Layout:
        """The names of the sum's parameters and levels, each with the part it belongs to."""
        return _lay_out(tuple(type(part) for part in self.parts), self.part_names)

    def _find_address(self, name: str) -> _Address:
        """Find the part and the parameter of it that a name of the sum stands for."""
        addresses = self._layout.addresses
        check_names("this sum", [name], addresses)
        return addresses[name]

    def family(self) -> tuple[str, list[object]]:
        """Return what sums must share for `joined` to draw them in one call."""
        return self.kind, [part.family() for part in self.parts]

    @classmethod
    def joined(cls, specs: Sequence[Self]) -> Self:
        """Join sums of one family along one axis: numbers of the parts become arrays."""
        counts = [math.prod(spec.batch) for spec in specs]
        parts = []
        for alike in zip(*(spec.parts for spec in specs), strict=True):
            parts.append(replace(alike[0], **join_numbers(alike, counts)))
        joined = specs[0]._with_parts(parts)
        if joined.batch:
            return joined
        return joined.changed(luminance=np.full(sum(counts), joined.luminance))

    def _describe_images(self, batch: Shape) -> Iterator[JsonObject]:
        """Iterate over the content of each image of the batch, with that of all its parts."""
        shared = self.content()
        contents = (part._describe_images(batch) for part in self.parts)
        for parts in zip(*contents, strict=True):
            yield {**shared, "parts": list(parts)}

    def single(self, batch: Shape, index: Shape) -> Self:
        """Return the sum at one index of the batch shape to which the parts broadcast."""
        return self._with_parts(part.single(batch, index) for part in self.parts)

    def select(self, batch: Shape, positions: Sequence[int] | IntArray) -> Self:
        """Return the sum at some positions of the batch shape to which the parts broadcast."""
        return self._with_parts(part.select(batch, positions) for part in self.parts)

    def _draw_pixels(self, backend: Backend) -> tuple[Array, str]:
        """Draw the background changed by all parts, refusing a sum that needs negative light."""
        grey = not any(part.in_colour for part in self.parts)
        if grey and (product := self._factors()):
            columns, rows = map(backend.array, product)
            pixels = columns @ rows
        else:
            pixels = self._add_parts(grey, backend)
        darkest = float(pixels.min())
        # Black letters that share a pixel sum to black but for rounding.
        rounding = 8 * np.finfo(backend.dtype).eps * float(np.max(self.luminance))
        if darkest < -rounding:
            raise InputError(
                f"the parts together would need negative light ({darkest:g}); lower their "
                "contrasts, or the density of noise"
            )
        if darkest < 0:
            pixels = pixels * (pixels > 0)
        return pixels, "luminance" if grey else "lms"

    def _factors(self) -> tuple[FloatArray, FloatArray] | None:
        """Factor the light into columns and rows; None where a part is no product of these."""
        factors: list[list[FloatArray]] = []
        for part in self.parts:
            luminance = part.per_image("luminance")
            # The mean rides along with the first part.
            offset = np.zeros_like(luminance) if factors else luminance
            factor = part.factors(part.per_image("contrast") * luminance, offset)
            if factor is None:
                return None
            spread = [self._spread(part.batch, values) for values in factor]
            factors.append(spread)
        columns, rows = zip(*factors, strict=True)
        return np.concatenate(columns, axis=-1), np.concatenate(rows, axis=-2)

    def _spread(self, batch: Shape, values: FloatArray) -> FloatArray:
        """Repeat matrices of a part's flattened batch over the batch of the sum."""
        shape = values.shape[1:]
        return np.broadcast_to(values.reshape(*batch, *shape), (*self.batch, *shape))

    def _add_parts(self, grey: bool, backend: Backend) -> Array:
        """Draw the background changed by each part in turn, in luminance if grey and else LMS."""
        total: Array = None
        for part in self.parts:
            change = part.modulation(backend)
            if not grey:
                cones = backend.array(part.cone_contrast[:, None, None])
                change = change[..., None, :, :] * cones
            if total is None or total.shape != change.shape:
                total = change if total is None else total + change
            else:
                # In place, since memory for a batch takes longer to get than to fill.
                total += change
        target = self.parts[0]
        level = np.asarray(target.luminance)[..., None, None]
        luminance = backend.array(level)
        if grey:
            total += 1
            if level.size == 1:
                total *= luminance
                return total
            return luminance * total
        background = backend.array(target.background_lms[:, None, None])
        planes = luminance[..., None, :, :] * background * (1 + total)
        return array_namespace(planes).moveaxis(planes, -3, -1)


def _check_backgrounds(parts: Sequence[Modulation]) -> None:
    """Refuse parts that do not share one background."""
    for part in parts[1:]:
        for name in BACKGROUND:
            expected = getattr(parts[0], name)
            value = getattr(part, name)
            if plain(value) != plain(expected):
                raise InputError(
                    f"the parts of a sum share one background: {name} is {expected} in the first "
                    f"and {value} in another"
                )


class _Address(NamedTuple):
    """Where a parameter of a sum is: the index of its part, and its name there."""

    part: int
    name: str


class _Layout(NamedTuple):
    #: Addresses of parameters and derived levels by their names in the sum.
    addresses: Mapping[str, _Address]
    levels: Mapping[str, Parameter]
    #: Names in the sum of the numeric parameters.
    parameters: tuple[str, ...]


@cache_by_kind
def _lay_out(kinds: tuple[type[Modulation], ...], names: tuple[str, ...]) -> _Layout:
    """Name the parameters of all parts so that no two are alike: PART_NAME but for the first."""
    addresses: dict[str, _Address] = {}
    levels: dict[str, Parameter] = {}
    parameters = []
    for part, (prefix, kind) in enumerate(zip(("", *names), kinds, strict=True)):
        for parameter_name in (*kind.parameters(), *kind.derived_levels):
            if part and parameter_name in BACKGROUND:
                continue
            name = f"{prefix}_{parameter_name}" if part else parameter_name
            if name in addresses:
                raise InputError(
                    f"{name} would be two parameters; give the part {prefix!r} another name"
                )
            addresses[name] = _Address(part, parameter_name)
            level = levels_of(kind).get(parameter_name)
            if level is None:
                continue
            if part:
                label = f"{prefix.replace('_', ' ').capitalize()} {level.label.lower()}"
                level = replace(level, label=label)
            levels[name] = level
            if parameter_name not in kind.derived_levels:
                parameters.append(name)
    return _Layout(addresses, levels, tuple(parameters))


def _default_names(count: int) -> tuple[str, ...]:
    """Name the parts after the first: mask, mask2, mask3 ..."""
    return tuple("mask" if part == 1 else f"mask{part}" for part in range(1, count))
