"""Stimuli as values: every parameter of a stimulus, checked, broadcast, written down and drawn.

A specification is frozen and knows its units. Numbers may be arrays; they broadcast against each
other, and the shape they have together is the batch that `draw` returns.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, FrozenInstanceError, dataclass, fields, replace
from functools import cache, cached_property
from types import FunctionType, MappingProxyType
from typing import (
    Any,
    ClassVar,
    NamedTuple,
    Self,
    TypeVar,
    cast,
    dataclass_transform,
)

import numpy as np

from psyprobe._typing import Array, FloatArray, IntArray, Levels, Shape, Size
from psyprobe.errors import InputError
from psyprobe.files.json_types import JsonMapping, JsonObject
from psyprobe.files.output import digest, plain
from psyprobe.light.display import Display
from psyprobe.stimulus import estimate
from psyprobe.stimulus.backend import Backend
from psyprobe.stimulus.certificate import Certificate, ImageMeasurements, Measurement
from psyprobe.stimulus.estimate import Float64
from psyprobe.stimulus.measuring import Planes, planes_of
from psyprobe.stimulus.parameters import (
    DerivedLevel,
    Parameter,
    check_arguments,
    check_names,
    common,
    file_digest,
    file_parameter,
    number,
    parameter,
    require,
)
from psyprobe.stimulus.registry import KINDS, find_kind
from psyprobe.stimulus.stimulus import Stimulus

#: Methods for kinds, probes and certificates, which `dir` leaves out.
_MACHINERY = {
    "along_frames",
    "bounds",
    "cautions",
    "chunks",
    "content",
    "course",
    "cycles",
    "dicts",
    "digests",
    "envelope",
    "factors",
    "family",
    "files",
    "fit_offsets",
    "fps",
    "frames",
    "joined",
    "measure_frames",
    "measure_image",
    "measure_planes",
    "measured_together",
    "modulation",
    "paint",
    "patterns",
    "per_image",
    "still_frame",
    "select",
    "single",
    "still",
    "stills",
    "summands",
    "unit",
    "varying",
}


class _Frozen:
    """Values that nobody changes, whichever fields a kind adds."""

    def __setattr__(self, name: str, value: object) -> None:
        raise FrozenInstanceError(f"cannot assign to field {name!r}")

    def __delattr__(self, name: str) -> None:
        raise FrozenInstanceError(f"cannot delete field {name!r}")


@dataclass_transform(
    kw_only_default=True,
    frozen_default=True,
    eq_default=False,
    field_specifiers=(parameter, common, file_parameter),
)
@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Specification(_Frozen):
    """A stimulus as its parameters: at least a background of some luminance on a field of pixels.

    A kind of stimulus is a class that inherits from this, and is a dataclass by that; one that is
    decorated as a dataclass besides is the same.
    """

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        dataclass(frozen=True, eq=False, repr=False, kw_only=True)(cls)
        # A second decorator finds the class as it was written.
        for definition in fields(cls):
            if definition.name in cls.__annotations__:
                setattr(cls, definition.name, definition)
        for name in ("__setattr__", "__delattr__"):
            delattr(cls, name)

    kind: ClassVar[str]
    #: What digests contain in place of the kind's name, for a kind from a user's file.
    identity: ClassVar[str | None] = None
    contrast_kind: ClassVar[str | None] = None
    #: Whether this is a clip of frames and no still image.
    is_clip: ClassVar[bool] = False
    #: Whether all frames are the same image.
    steady: ClassVar[bool] = True
    #: Levels that stand for a parameter, such as the area for the radius.
    derived_levels: ClassVar[Mapping[str, DerivedLevel]] = MappingProxyType({})

    luminance: Levels = parameter(
        "cd/m²", "Background luminance", default=100.0, low=0, above=True
    )
    ppd: float = parameter("px/deg", "Pixels per degree", default=60.0, numeric=False)
    size: int | Size = parameter("px", "Size", default=224, numeric=False)

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "ppd", float(number("ppd", self.ppd, "pixels per degree"))
        )
        if not self.ppd > 0:
            raise InputError(f"ppd is {self.ppd:g}; pixels per degree must be > 0")
        object.__setattr__(self, "size", _read_size(self.size))
        definitions = self.parameters()
        for name in self.files():
            object.__setattr__(self, name, str(getattr(self, name)))
            file_digest(name, getattr(self, name))
        for name in self.numeric:
            object.__setattr__(
                self, name, definitions[name].check(name, getattr(self, name))
            )
        try:
            _ = self.batch
        except ValueError:
            shapes = {name: value.shape for name, value in self.varying().items()}
            raise InputError(
                f"parameters of shapes {shapes} do not broadcast against each other"
            ) from None

    def _require(self, name: str, valid: Any, allowed: str) -> None:
        """Refuse a parameter unless all its values are valid, naming the first that is not."""
        require(valid, name, getattr(self, name), self.parameters()[name].unit, allowed)

    # -- its parameters
    # ----------------------------------------------------------------------------------------------

    @classmethod
    def parameters(cls) -> Mapping[str, Parameter]:
        """Describe every parameter of the kind, by name: unit, label, limits and default."""
        return _describe_kind(cls).parameters

    @property
    def numeric(self) -> tuple[str, ...]:
        """Names of the parameters that may be arrays."""
        return _describe_kind(type(self)).numeric

    @classmethod
    def files(cls) -> tuple[str, ...]:
        """Return the names of the parameters that are paths of files."""
        definitions = cls.parameters()
        return tuple(name for name in definitions if definitions[name].is_file)

    def varying(self) -> dict[str, FloatArray]:
        """Return the parameters that are arrays, by name."""
        values = {name: getattr(self, name) for name in self.numeric}
        return {
            name: value
            for name, value in values.items()
            if isinstance(value, np.ndarray)
        }

    def levels(self) -> Mapping[str, Parameter]:
        """Describe all that can be a level of an experiment: numeric parameters and derived levels.

        The area is derived from the radius, for example.
        """
        return levels_of(type(self))

    def value(self, name: str) -> Levels:
        """Return the value of a parameter or a derived level."""
        if level := self.derived_levels.get(name):
            return level.from_parameter(getattr(self, level.parameter))
        check_names(self.kind, [name], [*self.parameters(), *self.derived_levels])
        return getattr(self, name)

    def changed(self, **values: Levels) -> Self:
        """Copy the specification with other values of some parameters or derived levels.

        Examples
        --------
        >>> from psyprobe.stimulus import Gabor
        >>> round(Gabor(frequency=4, contrast=0.1).changed(area=1.0).radius, 4)
        0.5642
        """
        check_names(self.kind, values, [*self.parameters(), *self.derived_levels])
        return replace(self, **self._resolve_levels(values))

    @classmethod
    def _resolve_levels(cls, values: JsonMapping) -> JsonObject:
        """Replace derived levels among values by the parameters they stand for."""
        parameters = {}
        for name, value in values.items():
            if name not in cls.derived_levels:
                parameters[name] = value
        for name in values.keys() & cls.derived_levels.keys():
            level = cls.derived_levels[name]
            if level.parameter in parameters:
                raise InputError(
                    f"{name} and {level.parameter} say the same; give one of them"
                )
            value = level.definition.check(name, values[name])
            parameters[level.parameter] = level.to_parameter(value)
        return parameters

    def __dir__(self) -> list[str]:
        names = set(self.parameters()) | {"kind", "contrast_kind"}
        for name in dir(type(self)):
            attribute = inspect.getattr_static(type(self), name)
            called = isinstance(
                attribute, FunctionType | classmethod | property | cached_property
            )
            if called and not name.startswith("_") and name not in _MACHINERY:
                names.add(name)
        return sorted(names)

    # -- as a value
    # ----------------------------------------------------------------------------------------------

    def to_dict(self) -> JsonObject:
        """Return the stimulus's kind and all parameters as numbers, text and lists."""
        parameters = {name: plain(getattr(self, name)) for name in self.parameters()}
        return {"kind": self.kind} | parameters

    @classmethod
    def from_dict(cls, values: JsonMapping) -> Self:
        """Build a specification from parameters, or levels that stand for them, by name.

        Raises
        ------
        InputError
            If a name is unknown (with the nearest one), a parameter is missing, or a value is not
            allowed.
        """
        definitions = cls.parameters()
        required = (name for name in definitions if definitions[name].required)
        parameters = cls._resolve_levels(values)
        check_arguments(cls.kind, parameters, definitions, required)
        try:
            return cls(**parameters)
        except TypeError as error:
            raise InputError(f"{cls.kind} needs other parameters: {error}") from None

    def content(self) -> JsonObject:
        """Return what the digest hashes: kind and parameters, with digests of code and files."""
        files = {name: file_digest(name, getattr(self, name)) for name in self.files()}
        return self.to_dict() | {"kind": self.identity or self.kind} | files

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON: the same on every machine and in every process."""
        return digest(self.content())

    def digests(self) -> list[str]:
        """Compute the digest of each of the `singles`, without making them.

        Examples
        --------
        >>> from psyprobe.stimulus import Gabor
        >>> spec = Gabor(frequency=4, contrast=[0.1, 0.2])
        >>> spec.digests() == [single.digest for single in spec.singles()]
        True
        """
        return [digest(content) for content in self.contents()]

    def contents(self) -> Iterator[JsonObject]:
        """Return the `content` of each of the `singles`, without making them."""
        return self._describe_images(self.batch)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Specification) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash(self.digest)

    def __reduce__(self) -> tuple[Any, ...]:
        # A kind from a user's file has no module that another process could import.
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return _restore, (self.kind, values)

    def __repr__(self) -> str:
        arguments = []
        for field in fields(self):
            value = plain(getattr(self, field.name))
            labels = self.parameters()[field.name].labels
            if labels and isinstance(value, float):
                value = labels[int(value)]
            if field.name == "size" and value[0] == value[1]:
                value = value[0]
            if value != plain(field.default):
                arguments.append(f"{field.name}={value!r}")
        return f"{type(self).__name__}({', '.join(arguments)})"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """Print the specification as its `repr`, in IPython and hypothesis."""
        # IPython and hypothesis would list every field of a dataclass, class variables included.
        printer.text(repr(self))

    # -- as an image
    # ----------------------------------------------------------------------------------------------

    @property
    def shape(self) -> Size:
        """Pixels (H, W)."""
        assert isinstance(self.size, tuple)
        return self.size

    @property
    def extent(self) -> Shape:
        """Shape of one stimulus without its colours: (H, W), or (T, H, W) for a clip."""
        return self.shape

    @property
    def frames(self) -> int:
        """Number of frames of one stimulus: 1 unless it is a clip."""
        return 1

    @property
    def fps(self) -> float:
        """Frames a second of a clip; 0 for a still."""
        return 0.0

    @property
    def field(self) -> tuple[float, float]:
        """Extent (height, width) of the image, deg."""
        return self.shape[0] / self.ppd, self.shape[1] / self.ppd

    @cached_property
    def batch(self) -> Shape:
        """Shape that the parameters have together."""
        return np.broadcast_shapes(*(value.shape for value in self.varying().values()))

    def draw(self, *, dtype: str = "float64", device: str | None = None) -> Stimulus:
        """Draw the pixels; `dtype` and `device` as in `psyprobe.gabor`."""
        if dtype not in ("float64", "float32"):
            raise InputError(
                f"dtype is {dtype!r}; stimuli are drawn in float64 or float32"
            )
        pixels, space = self._draw_pixels(Backend(dtype, device))
        return Stimulus(pixels, space, self.ppd, self)

    def _draw_pixels(self, backend: Backend) -> tuple[Array, str]:
        """Draw the pixels of all images of the batch, and name their colour space."""
        raise NotImplementedError

    def chunks(
        self, frames: int | None = None, *, dtype: str = "float64"
    ) -> Iterator[Stimulus]:
        """Draw a clip a few frames at a time, and a still at once.

        So memory does not grow with the length of a clip.
        """
        yield self.draw(dtype=dtype)

    def stills(self, start: int, stop: int) -> Specification:
        """Return frames `start` to `stop` of a clip as stills; a still is its only frame."""
        return self

    def still_frame(self) -> Specification:
        """Return the still that represents the stimulus where one image fits."""
        return self

    def measure(self, display: Display | None = None) -> Certificate:
        """Draw the stimulus and measure it, as `Stimulus.measure`."""
        return self.draw().measure(display)

    def cautions(self) -> tuple[str, ...]:
        """List what a reader should know before the stimulus is shown, a sentence each."""
        return ()

    def reference(self) -> Specification:
        """Return the same field without the target, to compare the target with."""
        return KINDS["uniform"](luminance=self.luminance, ppd=self.ppd, size=self.size)

    def singles(self) -> Iterator[Self]:
        """Iterate over the specification of each image of the batch.

        Examples
        --------
        >>> from psyprobe.stimulus import Gabor
        >>> spec = Gabor(frequency=4, contrast=[0.1, 0.2])
        >>> [single.contrast for single in spec.singles()]
        [0.1, 0.2]
        """
        return (self.single(self.batch, index) for index in np.ndindex(*self.batch))

    def single(self, batch: Shape, index: Shape) -> Self:
        """Return the stimulus at one index of the batch shape to which parameters broadcast."""
        if not batch:
            return self
        numbers = {
            name: _element(value, index) for name, value in self.varying().items()
        }
        return self._with_numbers(numbers)

    def select(self, batch: Shape, positions: Sequence[int] | IntArray) -> Self:
        """Return the stimulus at some positions of the batch shape to which parameters broadcast.

        Parameters
        ----------
        batch : tuple of int
            Shape of the batch.
        positions : array of int
            Indices into the flattened batch.

        Returns
        -------
        Specification
            Its batch has the shape of `positions`, unless no parameter is an array.

        Examples
        --------
        >>> from psyprobe.stimulus import Gabor
        >>> Gabor(frequency=[[2], [4]], contrast=[0.1, 0.2]).select((2, 2), [0, 3]).frequency
        array([2., 4.])
        """
        if not batch:
            return self
        index = np.unravel_index(positions, batch)
        arrays = {}
        for name, value in self.varying().items():
            arrays[name] = np.broadcast_to(value, batch)[index]
        return self._with_numbers(arrays)

    def _with_numbers(self, numbers: JsonMapping) -> Self:
        """Copy the specification with other numbers, which are not checked again.

        A run makes more of these than it has questions, so checks are skipped.
        """
        values = {
            name: value for name, value in vars(self).items() if name not in _CACHED
        }
        if values.keys() != self.parameters().keys():
            return replace(self, **numbers)
        copy = object.__new__(type(self))
        vars(copy).update(values, **numbers)
        return copy

    def family(self) -> tuple[str, list[object]]:
        """Return what specifications must share for `joined` to draw them in one call."""
        names = _describe_kind(type(self)).others
        return self.kind, [plain(getattr(self, name)) for name in names]

    @classmethod
    def joined(cls, specs: Sequence[Self]) -> Self:
        """Join specifications of one family along one axis of the batch.

        Numbers that differ become arrays of shape (n,).

        Examples
        --------
        >>> from psyprobe.stimulus import Gabor
        >>> specs = [Gabor(frequency=2, contrast=0.1), Gabor(frequency=[4, 8], contrast=0.1)]
        >>> Gabor.joined(specs).frequency
        array([2., 4., 8.])
        """
        counts = [math.prod(spec.batch) for spec in specs]
        numbers = join_numbers(specs, counts)
        if not any(isinstance(value, np.ndarray) for value in numbers.values()):
            # A batch of equal images has no number that differs: luminance states its length.
            numbers["luminance"] = np.full(sum(counts), numbers["luminance"])
        return specs[0]._with_numbers(numbers)

    def summands(self) -> tuple[Specification, ...]:
        """List the patterns of the stimulus to which others can be added."""
        raise InputError(f"only patterns on a background add up; {self.kind!r} is none")

    def __add__(self, other: Specification) -> Specification:
        if not isinstance(other, Specification):
            return NotImplemented
        return KINDS["sum"].from_dict({"parts": (*self.summands(), *other.summands())})

    def bounds(self) -> tuple[FloatArray, str] | None:
        """Compute bounds of each image's light without drawing it; None if unknown.

        Returns
        -------
        bounds : ndarray, shape (..., 1, 2) or (..., 1, 2, 3)
            Smallest and largest pixel.
        space : str
            As `Stimulus.space`. None in place of both where an image must be drawn to know.
        """
        return None

    def _describe_images(self, batch: Shape) -> Iterator[JsonObject]:
        """Yield the `content` of each image of a batch that the parameters broadcast to."""
        kind = type(self)
        if (kind.content, kind.to_dict) != (
            Specification.content,
            Specification.to_dict,
        ):
            # A kind from elsewhere may state more than its parameters.
            yield from (
                self.single(batch, index).content() for index in np.ndindex(*batch)
            )
            return
        shared = self.content()
        varying = self.varying()
        columns = [
            np.broadcast_to(value, batch).ravel().tolist() for value in varying.values()
        ]
        for _, *numbers in zip(range(math.prod(batch)), *columns, strict=True):
            yield {**shared, **dict(zip(varying, numbers, strict=True))}

    def per_image(self, name: str) -> FloatArray:
        """Return the value of a parameter for each image of the flattened batch, shape (n,)."""
        return self._repeat(getattr(self, name))

    def _repeat(self, value: float | FloatArray) -> FloatArray:
        """Broadcast a number or an array to the batch and flatten it, shape (n,)."""
        return np.full(self.batch, value).ravel() if self.batch else np.array([value])

    # -- as a certificate
    # ----------------------------------------------------------------------------------------------

    def measured_together(self, most: int) -> Iterator[Self]:
        """Iterate over parts of the batch that `measure_planes` takes at once, in order.

        By default they are single images.

        Parameters
        ----------
        most : int
            Largest number of images in a part.
        """
        return self.singles()

    def measure_planes(self, planes: Planes, measurements: ImageMeasurements) -> None:
        """Measure one image's light and cone contrasts, adding to the measurements.

        By default nothing is expected, and measurements only inform.

        Parameters
        ----------
        planes : Planes
            The image.
        measurements : ImageMeasurements
            The list to add to: ``measurements.add(quantity, requested, delivered, estimator)``.
        """
        light = planes.light
        measurements.add("mean luminance", None, light.mean(), "mean over pixels")
        measurements.add("peak luminance", None, light.max(), "largest pixel")
        contrast = float(estimate.rms_contrast(light))
        measurements.add("rms contrast", None, contrast, "SD over mean")

    def measure_image(
        self, image: Float64, measurements: ImageMeasurements
    ) -> list[Measurement]:
        """Measure the pixels of one image against this specification."""
        self.measure_planes(planes_of(image, self, measurements), measurements)
        return measurements.entries


def _element(value: FloatArray, index: Shape) -> float:
    """Return the element at an index of a batch that an array broadcasts to."""
    last = index[len(index) - value.ndim :]
    position = [i if size > 1 else 0 for i, size in zip(last, value.shape, strict=True)]
    return float(value.item(*position))


#: Cached properties, which stand beside the parameters among a specification's attributes.
_CACHED = {"batch", "digest"}

Function = TypeVar("Function", bound=Callable[..., Any])


def cache_by_kind(function: Function) -> Function:
    """Apply `functools.cache` to a function of stimulus kinds, with types that mypy accepts."""
    return cast(Function, cache(function))


def join_numbers(specs: Sequence[Specification], counts: Sequence[int]) -> JsonObject:
    """Concatenate the numeric parameters of specifications of one kind, by name.

    Parameters
    ----------
    specs : sequence of Specification
        Of one kind.
    counts : sequence of int
        Number of images of each specification.

    Returns
    -------
    dict of str to float or ndarray
        An array with a value for each image, or one number that all images share.
    """
    numbers = {}
    for name in specs[0].numeric:
        values = [getattr(spec, name) for spec in specs]
        repeated = [
            np.full(count, value) for value, count in zip(values, counts, strict=True)
        ]
        column = np.concatenate(repeated)
        shared = column[0].item() if isinstance(values[0], np.ndarray) else values[0]
        numbers[name] = column if (column != column[0]).any() else shared
    return numbers


class _KindDescription(NamedTuple):
    parameters: Mapping[str, Parameter]
    #: Names of the parameters that may be arrays.
    numeric: tuple[str, ...]
    #: Numeric parameters and derived levels.
    levels: Mapping[str, Parameter]
    #: Names of the parameters that are not numeric.
    others: tuple[str, ...]


@cache_by_kind
def _describe_kind(kind: type[Specification]) -> _KindDescription:
    """Collect the parameters of a kind: all, the numeric ones, the levels, the fixed ones."""
    parameters = {}
    for field in fields(kind):
        required = field.default is MISSING
        parameters[field.name] = replace(
            _definition(kind, field.name),
            required=required,
            default=None if required else field.default,
        )
    numeric = {
        name: definition
        for name, definition in parameters.items()
        if definition.numeric
    }
    derived = {name: level.definition for name, level in kind.derived_levels.items()}
    return _KindDescription(
        MappingProxyType(parameters),
        tuple(numeric),
        MappingProxyType(numeric | derived),
        tuple(name for name in parameters if name not in numeric),
    )


def _definition(kind: type[Specification], name: str) -> Parameter:
    """Find the nearest class that defines a parameter's unit and limits, and return these."""
    for base in kind.__mro__:
        field = vars(base).get("__dataclass_fields__", {}).get(name)
        if field and "parameter" in field.metadata:
            definition: Parameter = field.metadata["parameter"]
            return definition
    return Parameter(unit="", label=name.replace("_", " ").capitalize(), numeric=False)


def levels_of(kind: type[Specification]) -> Mapping[str, Parameter]:
    """Describe all that can be varied in a stimulus kind, by name, with unit and limits."""
    return _describe_kind(kind).levels


def _restore(kind: str, values: JsonObject) -> Specification:
    """Build the specification of a kind from its values, to unpickle it."""
    return find_kind(kind, allow_files=True)(**values)


def _read_size(size: Any) -> Size:
    """Convert a size to (height, width) in whole pixels from 1 to 16384, or refuse it."""
    pair = (size, size) if isinstance(size, int | np.integer) else size
    try:
        height, width = (int(side) for side in pair)
        integral = all(int(side) == side for side in pair)
    except (TypeError, ValueError, OverflowError):
        raise InputError(
            f"size is {size!r}; give pixels, or (height, width) in pixels"
        ) from None
    if not integral or not (1 <= height <= 16384 and 1 <= width <= 16384):
        raise InputError(f"size is {size!r}; give whole pixels from 1 to 16384")
    return height, width


def level_of(stimulus: Specification | type[Specification], name: str) -> Parameter:
    """Describe a numeric parameter or a derived level: unit, label and limits.

    Parameters
    ----------
    stimulus : Specification or class
        A kind, or a stimulus: a sum has levels for each of its parts ("mask_contrast").
    name : str
        Name of the level, such as "frequency" or "area".

    Raises
    ------
    UnknownNameError
        If the stimulus has no such level, with the nearest one.

    Examples
    --------
    >>> from psyprobe.stimulus import Gabor
    >>> level_of(Gabor, "frequency").label, level_of(Gabor, "area").unit
    ('Spatial frequency', 'deg²')
    """
    levels = (
        stimulus.levels()
        if isinstance(stimulus, Specification)
        else levels_of(stimulus)
    )
    check_names(stimulus.kind, [name], levels)
    return levels[name]


def with_levels(spec: Specification, **values: Levels) -> Specification:
    """Copy a stimulus with other values of some parameters or derived levels.

    Parameters
    ----------
    spec : Specification
        The stimulus.
    **values
        Values by level, arrays for a batch, in the units of the kind.

    Raises
    ------
    UnknownNameError
        If the stimulus has no such level.

    Examples
    --------
    >>> from psyprobe.stimulus import gabor, grating
    >>> plaid = gabor(frequency=4, contrast=0.1) + grating(frequency=4, contrast=0.2)
    >>> tilted = with_levels(plaid.spec, contrast=0.05, mask_orientation=45)
    >>> tilted.value("mask_orientation")
    45.0
    """
    check_names(spec.kind, values, spec.levels())
    return spec.changed(**values)


def draw_kind(kind: type[Specification], arguments: JsonObject) -> Stimulus:
    """Draw a stimulus of a kind from the arguments of its function, such as `psyprobe.gabor`.

    What is None has the kind's default.
    """
    options = {name: arguments.pop(name) for name in ("dtype", "device")}
    values = {name: value for name, value in arguments.items() if value is not None}
    return kind.from_dict(values).draw(**options)
