"""Stimuli as values: every parameter of a stimulus, checked, broadcast, written down and drawn.

A specification is frozen and knows its units. Numbers may be arrays; they broadcast against each
other, and the shape they have together is the batch that `draw` returns.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from functools import cache, cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Self, TypeVar, cast

import numpy as np
import numpy.typing as npt

from psyprobe._typing import Array, FloatArray
from psyprobe.errors import InputError, describe_failure, unknown_name
from psyprobe.files.output import digest, plain
from psyprobe.files.programs import run_file
from psyprobe.light.display import Display
from psyprobe.stimulus import estimate
from psyprobe.stimulus.certificate import (
    Certificate,
    Planes,
    Row,
    Sheet,
    certify,
    luminance_of,
    observer_of,
    planes_of,
)
from psyprobe.stimulus.estimate import Float64
from psyprobe.stimulus.parameters import (
    DerivedLevel,
    Parameter,
    check_names,
    number,
    parameter,
    require,
)

#: Entry points of packages that bring kinds of their own.
GROUP = "psyprobe.stimuli"

#: Kinds by name, as they stand in a stimulus file.
KINDS: dict[str, type[Specification]] = {}


def stimulus_kind(name: str) -> Any:
    """Class decorator that registers a kind of stimulus under a name.

    Parameters
    ----------
    name : str
        As pages will write it.

    Raises
    ------
    InputError
        If the name is taken.

    Examples
    --------
    >>> stimulus_kind("gabor")(Specification)
    Traceback (most recent call last):
    psyprobe.errors.InputError: stimulus kind 'gabor' is registered twice
    """

    def register(cls: type[Specification]) -> type[Specification]:
        if name in KINDS:
            raise InputError(f"stimulus kind {name!r} is registered twice")
        KINDS[name] = cls
        cls.kind = name
        return cls

    return register


def find_kind(name: str, *, own_files: bool = False) -> type[Specification]:
    """The kind of a name: ours, that of an entry point, or ``FILE.py:CLASS``.

    Parameters
    ----------
    name : str
        As it stands in a stimulus file.
    own_files : bool
        Whether a Python file may be run for its kind: one that a user's own page names, never one
        that stands in data, such as a certificate beside an image.

    Raises
    ------
    InputError
        If there is none of this name (with the nearest), or if it cannot be loaded.
    """
    if own_files and ".py:" in name:
        return _kind_in_file(name)
    if name in KINDS:
        return KINDS[name]
    if ".py:" in name:
        raise InputError(
            f"the kind {name!r} lies in a Python file, which runs only where a stimulus page "
            "names it"
        )
    points = {point.name: point for point in importlib.metadata.entry_points(group=GROUP)}
    if name not in points:
        raise unknown_name("stimulus kind", name, {*KINDS, *points})
    try:
        return _registered(name, points[name].load())
    except (Exception, SystemExit) as error:
        raise InputError(
            f"the stimulus kind {name!r} of an installed package does not load: {_why(error)}"
        ) from None


def broken_kinds() -> dict[str, str]:
    """Kinds of installed packages that cannot be used, each with the reason in one line.

    Examples
    --------
    >>> broken_kinds()
    {}
    """
    broken = {}
    for point in importlib.metadata.entry_points(group=GROUP):
        try:
            if KINDS.get(point.name) is not (found := point.load()):
                _registered(point.name, found)
        except (Exception, SystemExit) as error:
            broken[point.name] = _why(error)
    return broken


def specification_from_dict(values: Mapping[str, Any], *, own_files: bool = False) -> Specification:
    """The specification that `Specification.to_dict` describes; `own_files` as in `find_kind`.

    Parameters
    ----------
    values : mapping
        The kind and its parameters.
    own_files : bool
        As in `find_kind`.

    Raises
    ------
    InputError
        On an unknown kind or key (with the nearest name) or a value that no stimulus has.

    Examples
    --------
    >>> from psyprobe.stimulus import Gabor
    >>> spec = Gabor(frequency=4.0, contrast=0.1)
    >>> specification_from_dict(spec.to_dict()) == spec
    True
    """
    kind = find_kind(str(values.get("kind")), own_files=own_files)
    rest = {key: value for key, value in values.items() if key != "kind"}
    if isinstance(rest.get("parts"), list):
        rest["parts"] = [
            specification_from_dict(part, own_files=own_files)
            if isinstance(part, Mapping)
            else part
            for part in rest["parts"]
        ]
    return kind.from_dict(rest)


def _registered(name: str, found: Any) -> type[Specification]:
    """A class that a package or a file brings, under its name."""
    if not (isinstance(found, type) and hasattr(found, "from_dict")):
        raise InputError(
            f"{name!r} is {found!r}; a kind is a class that inherits "
            "psyprobe.stimulus.Specification"
        )
    if KINDS.get(name, found) is not found:
        raise InputError(f"psyprobe has a kind {name!r} itself; give it another name")
    KINDS[name] = found
    found.kind = name
    return found


def _why(error: BaseException, file: str | None = None) -> str:
    return (
        " ".join(str(error).split())
        if isinstance(error, InputError)
        else describe_failure(error, file)
    )


def _kind_in_file(name: str) -> type[Specification]:
    file, _, attribute = name.rpartition(":")
    path = Path(file).resolve()
    try:
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise InputError(f"the stimulus kind {name!r} cannot be read: {error.strerror}") from None
    full = f"{path}:{attribute}"
    found = getattr(_module(path, digest), attribute, None)
    if found is None:
        raise InputError(
            f"{path} defines no {attribute!r}; a kind of one's own is named FILE.py:CLASS"
        )
    KINDS.pop(full, None)
    kind = _registered(full, found)
    # Where the file lies is not part of what it draws; what it says is.
    kind.identity = f"{path.name}:{attribute}:{digest}"
    return kind


@cache
def _module(path: Path, digest: str) -> Any:
    """The module of a file as it was when it had this digest."""
    try:
        return run_file(path, f"psyprobe_stimulus_{path.stem}_{digest[:16]}")
    except (Exception, SystemExit) as error:
        raise InputError(f"{path} cannot be imported: {_why(error, str(path))}") from error


@dataclass(frozen=True, repr=False)
class Stimulus:
    """Pixels in physical units.

    Examples
    --------
    >>> from psyprobe.stimulus import gabor
    >>> stimulus = gabor(frequency=4, contrast=0.1)
    >>> stimulus
    <Stimulus 224 x 224 px at 60 ppd, luminance in cd/m²: Gabor(contrast=0.1, frequency=4.0)>
    """

    #: Luminance in cd/m², or LMS or linear RGB light; numpy or torch.
    pixels: Array
    #: {"luminance", "lms", "rgb"}: What the pixels are.
    space: str
    #: Pixels per degree.
    ppd: float
    #: What was asked for.
    spec: Specification

    @property
    def shape(self) -> tuple[int, int]:
        """Pixels (H, W)."""
        return self.spec.shape

    @property
    def batch(self) -> tuple[int, ...]:
        """Shape of the batch; empty for one image."""
        return self.spec.batch

    @property
    def observer(self) -> str:
        """Name of the cone observer that LMS pixels refer to."""
        return observer_of(self.spec)

    @property
    def luminance(self) -> Array:
        """Luminance (CIE 1931 Y), cd/m², shape (..., H, W)."""
        return luminance_of(self.pixels, self.space, self.spec)

    @property
    def background(self) -> Stimulus:
        """The same field without the target and without masks."""
        spec = self.spec
        while spec.reference() != spec:
            spec = spec.reference()
        return spec.draw()

    def measure(self, display: Display | None = None) -> Certificate:
        """Requested against delivered: the calibration certificate.

        Parameters
        ----------
        display : Display, optional
            Measure also what this display shows of it: values outside its gamut, the margin to the
            nearer limit, and contrast and background after encoding to float32 drive and decoding
            again.

        Examples
        --------
        >>> from psyprobe.stimulus import gabor
        >>> shown = gabor(frequency=4, contrast=0.5, size=128).measure(Display(peak=200))
        >>> shown["values outside gamut"].delivered, round(shown["gamut margin"].delivered, 2)
        (0.0, 0.25)
        """
        return certify(self.pixels, self.space, self.spec, display=display)

    def __add__(self, other: Stimulus) -> Stimulus:
        """A target on a mask: modulations of the same background, added."""
        if not isinstance(other, Stimulus):
            return NotImplemented
        dtype = str(self.pixels.dtype).rpartition(".")[2]
        device = None if not hasattr(self.pixels, "is_cuda") else str(self.pixels.device)
        return (self.spec + other.spec).draw(dtype=dtype, device=device)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> FloatArray:
        """Its pixels, for `numpy.asarray`."""
        pixels = np.asarray(self.pixels.cpu() if hasattr(self.pixels, "is_cuda") else self.pixels)
        return np.asarray(pixels.astype(pixels.dtype if dtype is None else dtype, copy=bool(copy)))

    def _repr_html_(self) -> str:
        from psyprobe.stimulus.notebook import stimulus_html

        return stimulus_html(self)

    def __repr__(self) -> str:
        *frames, height, width = self.spec.extent
        batch = (
            f"{' x '.join(map(str, self.batch))} {'clips' if frames else 'images'} of "
            if self.batch
            else ""
        )
        batch += "".join(f"{count} frames of " for count in frames)
        unit = {
            "luminance": "luminance in cd/m²",
            "lms": "LMS",
            "rgb": "linear RGB light in cd/m²",
        }[self.space]
        return f"<Stimulus {batch}{height} x {width} px at {self.ppd:g} ppd, {unit}: {self.spec!r}>"


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Specification:
    """What every stimulus has: a background of some luminance, cd/m², sampled on a field of
    pixels.
    """

    kind: ClassVar[str]
    #: What stands for the kind in digests, where that is not its name.
    identity: ClassVar[str | None] = None
    contrast_kind: ClassVar[str | None] = None
    #: Whether this is a clip of frames, one after the other, and no still image.
    is_clip: ClassVar[bool] = False
    #: Whether all frames are the same image.
    steady: ClassVar[bool] = True
    #: Levels that are other words for a parameter.
    derived_levels: ClassVar[Mapping[str, DerivedLevel]] = MappingProxyType({})

    luminance: Any = parameter("cd/m²", "Background luminance", default=100.0, low=0, above=True)
    ppd: float = parameter("px/deg", "Pixels per degree", default=60.0, numeric=False)
    size: int | tuple[int, int] = parameter("px", "Size", default=224, numeric=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "ppd", float(number("ppd", self.ppd, "pixels per degree")))
        if not self.ppd > 0:
            raise InputError(f"ppd is {self.ppd:g}; pixels per degree must be > 0")
        object.__setattr__(self, "size", _size(self.size))
        described = self.parameters()
        for name in self.numeric:
            object.__setattr__(self, name, described[name].check(name, getattr(self, name)))
        try:
            _ = self.batch
        except ValueError:
            shapes = {
                name: np.shape(getattr(self, name))
                for name in self.numeric
                if np.ndim(getattr(self, name))
            }
            raise InputError(
                f"parameters of shapes {shapes} do not broadcast against each other"
            ) from None

    def _require(self, name: str, valid: Any, allowed: str) -> None:
        """Raise an error that names the first value of a parameter that is not valid."""
        require(valid, name, getattr(self, name), self.parameters()[name].unit, allowed)

    # -- its parameters
    # ---------------------------------------------------------------------------------------------

    @classmethod
    def parameters(cls) -> Mapping[str, Parameter]:
        """Unit, label, limits and default of every parameter of the kind, by name."""
        return _described(cls)[0]

    @property
    def numeric(self) -> tuple[str, ...]:
        """Names of the parameters that may be arrays."""
        return _described(type(self))[1]

    def levels(self) -> Mapping[str, Parameter]:
        """All that can be a level of an experiment: numeric parameters, and derived levels such as
        "area".
        """
        return levels_of(type(self))

    def value(self, name: str) -> Any:
        """The value that a parameter or a derived level has."""
        if level := self.derived_levels.get(name):
            return level.from_parameter(getattr(self, level.parameter))
        check_names(self.kind, [name], [*self.parameters(), *self.derived_levels])
        return getattr(self, name)

    def changed(self, **values: Any) -> Self:
        """The same stimulus with other values of some parameters or derived levels.

        Examples
        --------
        >>> from psyprobe.stimulus import Gabor
        >>> round(Gabor(frequency=4, contrast=0.1).changed(area=1.0).radius, 4)
        0.5642
        """
        check_names(self.kind, values, [*self.parameters(), *self.derived_levels])
        direct = {name: value for name, value in values.items() if name not in self.derived_levels}
        for name in values.keys() & self.derived_levels.keys():
            level = self.derived_levels[name]
            if level.parameter in direct:
                raise InputError(f"{name} and {level.parameter} say the same; give one of them")
            direct[level.parameter] = level.to_parameter(level.described.check(name, values[name]))
        return replace(self, **direct)

    # -- as a value
    # -------------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """All parameters as numbers, text and lists, with the kind."""
        return {"kind": self.kind} | {
            name: plain(getattr(self, name)) for name in self.parameters()
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """The specification of these parameters; unknown keys raise with the nearest name."""
        check_names(cls.kind, values, cls.parameters())
        if missing := [
            name for name, each in cls.parameters().items() if each.required and name not in values
        ]:
            raise InputError(f"{cls.kind} needs {' and '.join(missing)}")
        try:
            return cls(**values)
        except TypeError as error:
            raise InputError(f"{cls.kind} needs other parameters: {error}") from None

    def content(self) -> dict[str, Any]:
        """What the digest is taken of: `to_dict`, but a kind in a file of one's own by what the
        file says.
        """
        return self.to_dict() | {"kind": self.identity or self.kind}

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON: the same on every machine and in every process."""
        return digest(self.content())

    def digests(self) -> list[str]:
        """The digest of each of the `singles`, which are not made for it.

        Examples
        --------
        >>> from psyprobe.stimulus import Gabor
        >>> both = Gabor(frequency=4, contrast=[0.1, 0.2])
        >>> both.digests() == [one.digest for one in both.singles()]
        True
        """
        return [digest(content) for content in self._told(self.batch, lambda one: one.content())]

    def dicts(self) -> Iterator[dict[str, Any]]:
        """`to_dict` of each of the `singles`, which are not made for it."""
        return self._told(self.batch, lambda one: one.to_dict())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Specification) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash(self.digest)

    def __reduce__(self) -> tuple[Any, ...]:
        # A kind in a file of one's own has no module that another process could import.
        return _restored, (self.kind, {f.name: getattr(self, f.name) for f in fields(self)})

    def __repr__(self) -> str:
        defaults = {f.name: f.default for f in fields(self)}
        shown = {f.name: plain(getattr(self, f.name)) for f in fields(self)}
        if shown["size"][0] == shown["size"][1]:
            shown["size"] = shown["size"][0]
        changed = [
            f"{name}={value!r}" for name, value in shown.items() if value != plain(defaults[name])
        ]
        return f"{type(self).__name__}({', '.join(changed)})"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        # IPython and hypothesis would list every field of a dataclass, class variables included.
        printer.text(repr(self))

    # -- as an image
    # ------------------------------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, int]:
        """Pixels (H, W)."""
        assert isinstance(self.size, tuple)
        return self.size

    @property
    def extent(self) -> tuple[int, ...]:
        """Shape of one stimulus without its colours: pixels (H, W); of a clip frames before
        them.
        """
        return self.shape

    @property
    def frames(self) -> int:
        """How many frames one stimulus has: 1 unless it is a clip."""
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
    def batch(self) -> tuple[int, ...]:
        """Shape that the parameters have together."""
        values = (getattr(self, name) for name in self.numeric)
        return np.broadcast_shapes(
            *(value.shape for value in values if isinstance(value, np.ndarray))
        )

    def draw(self, *, dtype: str = "float64", device: str | None = None) -> Stimulus:
        """The pixels, as a `Stimulus`; `dtype` and `device` as in `psyprobe.gabor`."""
        if dtype not in ("float64", "float32"):
            raise InputError(f"dtype is {dtype!r}; stimuli are drawn in float64 or float32")
        pixels, space = self._pixels(dtype, device)
        return Stimulus(pixels, space, self.ppd, self)

    def chunks(self, frames: int | None = None, *, dtype: str = "float64") -> Iterator[Stimulus]:
        """Draw a few frames of a clip at a time, so that memory does not grow with its length; a
        still stimulus at once.
        """
        yield self.draw(dtype=dtype)

    def stills(self, start: int, stop: int) -> Specification:
        """Give some frames of a clip as still stimuli; a still is its own only frame."""
        return self

    def picture(self) -> Specification:
        """The still that stands for the stimulus where there is room for one image: itself."""
        return self

    def measure(self, display: Display | None = None) -> Certificate:
        """Draw the stimulus and compare it with what was requested; `display` as in
        `Stimulus.measure`.
        """
        return self.draw().measure(display)

    def cautions(self) -> tuple[str, ...]:
        """What a reader should know of the stimulus before it is shown, a sentence each."""
        return ()

    def mirrors(self) -> npt.NDArray[np.bool_]:
        """Of which of its images a kind knows that they mirror themselves along both axes, of the
        shape of the batch.

        The right half is the left one mirrored and the lower the upper, so that `corner` tells all;
        sides are even.

        Examples
        --------
        >>> from psyprobe.stimulus import Gabor
        >>> Gabor(frequency=4, contrast=0.1, phase=[0, 90]).mirrors()
        array([ True, False])
        """
        return np.zeros(self.batch, bool)

    def corner(self) -> tuple[Array, str]:
        """The upper left quarters of images that all mirror themselves, and their space.

        Returns
        -------
        pixels : array, shape (..., H/2, W/2) or (..., H/2, W/2, 3), float64
            As `draw` gives them, at a quarter of the cost.
        space : str
            As `Stimulus.space`.

        Examples
        --------
        >>> from psyprobe.stimulus import Gabor
        >>> Gabor(frequency=4, contrast=0.1, size=(64, 32)).corner()[0].shape
        (32, 16)
        """
        raise NotImplementedError

    def reference(self) -> Specification:
        """What the target is told apart from: the same field without it."""
        return KINDS["uniform"](luminance=self.luminance, ppd=self.ppd, size=self.size)

    def singles(self) -> Iterator[Self]:
        """The specification of each image of the batch, in order.

        Examples
        --------
        >>> from psyprobe.stimulus import Gabor
        >>> [one.contrast for one in Gabor(frequency=4, contrast=[0.1, 0.2]).singles()]
        [0.1, 0.2]
        """
        return (self.single(self.batch, index) for index in np.ndindex(*self.batch))

    def single(self, batch: tuple[int, ...], index: tuple[int, ...]) -> Self:
        """The specification of one image of a batch that the parameters broadcast to."""
        if not batch:
            return self
        arrays = {
            name: value
            for name in self.numeric
            if isinstance(value := getattr(self, name), np.ndarray)
        }
        return self._with_numbers({name: _at(value, index) for name, value in arrays.items()})

    def chosen(self, batch: tuple[int, ...], places: Sequence[int]) -> Self:
        """The images at some places of a batch that the parameters broadcast to, counted along its
        axes in turn.

        Returns
        -------
        Specification
            Of shape (n,), unless no parameter is an array.

        Examples
        --------
        >>> from psyprobe.stimulus import Gabor
        >>> Gabor(frequency=[[2], [4]], contrast=[0.1, 0.2]).chosen((2, 2), [0, 3]).frequency
        array([2., 4.])
        """
        if not batch:
            return self
        where = np.unravel_index(places, batch)
        arrays = {
            name: value
            for name in self.numeric
            if isinstance(value := getattr(self, name), np.ndarray)
        }
        return self._with_numbers(
            {name: np.broadcast_to(value, batch)[where] for name, value in arrays.items()}
        )

    def _with_numbers(self, values: Mapping[str, Any]) -> Self:
        """With other numbers that were checked before: a run makes more of these than it has
        questions.
        """
        told = {name: value for name, value in vars(self).items() if name not in _KEPT}
        if told.keys() != self.parameters().keys():
            return replace(self, **values)
        one = object.__new__(type(self))
        vars(one).update(told, **values)
        return one

    def family(self) -> Any:
        """What specifications have in common that `joined` draws in one call: everything but their
        numbers.
        """
        return self.kind, [plain(getattr(self, name)) for name in _described(type(self))[3]]

    @classmethod
    def joined(cls, specs: Sequence[Self]) -> Self:
        """One specification that draws all those of a family, each of one image or more along one
        axis.

        Numbers that differ become arrays of shape (n,).

        Examples
        --------
        >>> from psyprobe.stimulus import Gabor
        >>> Gabor.joined([Gabor(frequency=2, contrast=0.1), Gabor(frequency=[4, 8], contrast=0.1)]).frequency
        array([2., 4., 8.])
        """
        counts = [math.prod(spec.batch) for spec in specs]
        numbers = numbers_of(specs, counts)
        if not any(isinstance(value, np.ndarray) for value in numbers.values()):
            # A batch of equal images has no number that differs: luminance stands for the length of
            # the batch.
            numbers["luminance"] = np.full(sum(counts), numbers["luminance"])
        return specs[0]._with_numbers(numbers)

    def summands(self) -> tuple[Specification, ...]:
        """The patterns that another can be added to."""
        raise InputError(f"only patterns on a background add up; {self.kind!r} is none")

    def __add__(self, other: Specification) -> Specification:
        if not isinstance(other, Specification):
            return NotImplemented
        return KINDS["sum"].from_dict({"parts": (*self.summands(), *other.summands())})

    def bounds(self) -> tuple[FloatArray, str] | None:
        """Pixels between which all of each image lie, shape (..., 1, 2) or (..., 1, 2, 3), and
        their space.

        None where only drawing tells.
        """
        return None

    def _told(
        self, batch: tuple[int, ...], tell: Callable[[Specification], dict[str, Any]]
    ) -> Iterator[dict[str, Any]]:
        """What `content` or `to_dict` tells of each image of a batch that the parameters broadcast
        to.
        """
        kind = type(self)
        if (kind.content, kind.to_dict) != (Specification.content, Specification.to_dict):
            # A kind of somebody's own that tells more than its parameters.
            yield from (tell(self.single(batch, index)) for index in np.ndindex(*batch))
            return
        shared = tell(self)
        values = {name: getattr(self, name) for name in self.numeric}
        varying = {name: value for name, value in values.items() if np.ndim(value)}
        columns = [np.broadcast_to(value, batch).ravel().tolist() for value in varying.values()]
        for _, *row in zip(range(math.prod(batch)), *columns, strict=True):
            yield {**shared, **dict(zip(varying, row, strict=True))}

    def _pixels(self, dtype: str, device: str | None) -> tuple[Array, str]:
        raise NotImplementedError

    def _flat(self, name: str) -> FloatArray:
        """A parameter, broadcast to the batch and flattened: shape (n,)."""
        return self._spread(getattr(self, name))

    def _spread(self, value: float | FloatArray) -> FloatArray:
        """A number or an array, as `_flat` has parameters."""
        return np.full(self.batch, value).ravel() if self.batch else np.array([value])

    # -- as a certificate
    # -------------------------------------------------------------------------------------------

    def promises(self, planes: Planes, sheet: Sheet) -> None:
        """Put down what this kind promises of one image, and what was found; here: what the image
        is, no promise.

        Parameters
        ----------
        planes : Planes
            The image.
        sheet : Sheet
            Where the rows go: ``sheet.add(quantity, requested, delivered, estimator)``.
        """
        light = planes.light
        sheet.add("mean luminance", None, light.mean(), "mean over pixels")
        sheet.add("peak luminance", None, light.max(), "largest pixel")
        sheet.add("rms contrast", None, float(estimate.rms_contrast(light)), "SD over mean")

    def rows(self, image: Float64, space: str, sheet: Sheet, display: Display | None) -> list[Row]:
        """The rows of a certificate for one image of this specification."""
        self.promises(planes_of(image, space, self, display), sheet)
        return sheet.rows


def _at(value: FloatArray, index: tuple[int, ...]) -> float:
    """A number of an array that broadcasts to a batch, at a place in the batch."""
    own = index[len(index) - value.ndim :]
    return float(
        value.item(*[i if size > 1 else 0 for i, size in zip(own, value.shape, strict=True)])
    )


#: What a specification keeps of its own besides its parameters.
_KEPT = {"batch", "digest"}

Function = TypeVar("Function", bound=Callable[..., Any])


def kept_by_kind(function: Function) -> Function:
    """`functools.cache` for functions of kinds, which mypy does not take for hashable."""
    return cast(Function, cache(function))


def numbers_of(specs: Sequence[Specification], counts: Sequence[int]) -> dict[str, Any]:
    """The numbers of specifications of one kind, of so many images each: as arrays, or one that all
    images share.
    """
    numbers = {}
    for name in specs[0].numeric:
        values = [getattr(spec, name) for spec in specs]
        column = np.concatenate(
            [np.full(count, value) for value, count in zip(values, counts, strict=True)]
        )
        shared = column[0].item() if isinstance(values[0], np.ndarray) else values[0]
        numbers[name] = column if (column != column[0]).any() else shared
    return numbers


@kept_by_kind
def _described(
    kind: type[Specification],
) -> tuple[Mapping[str, Parameter], tuple[str, ...], Mapping[str, Parameter], tuple[str, ...]]:
    """Parameters, names of the numeric ones, levels, and names of the others.

    What only gets another default is described at its base.
    """
    found = {}
    for field in fields(kind):
        definitions = (
            base.__dict__.get("__dataclass_fields__", {}).get(field.name) for base in kind.__mro__
        )
        described = next(
            (d.metadata["parameter"] for d in definitions if d and "parameter" in d.metadata), None
        )
        label = field.name.replace("_", " ").capitalize()
        described = described or Parameter(unit="", label=label, numeric=False)
        required = field.default is MISSING
        found[field.name] = replace(
            described, required=required, default=None if required else field.default
        )
    numeric = {name: each for name, each in found.items() if each.numeric}
    derived = {name: level.described for name, level in kind.derived_levels.items()}
    others = tuple(name for name in found if name not in numeric)
    return MappingProxyType(found), tuple(numeric), MappingProxyType(numeric | derived), others


def levels_of(kind: type[Specification]) -> Mapping[str, Parameter]:
    """As `Specification.levels`, of a kind."""
    return _described(kind)[2]


def _restored(kind: str, values: dict[str, Any]) -> Specification:
    return find_kind(kind, own_files=True)(**values)


def _size(size: Any) -> tuple[int, int]:
    pair = (size, size) if isinstance(size, int | np.integer) else size
    try:
        height, width = (int(v) for v in pair)
        whole = all(int(v) == v for v in pair)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"size is {size!r}; give pixels, or (height, width) in pixels") from None
    if not whole or not (1 <= height <= 16384 and 1 <= width <= 16384):
        raise InputError(f"size is {size!r}; give whole pixels from 1 to 16384")
    return height, width


def level_of(stimulus: Specification | type[Specification], name: str) -> Parameter:
    """Unit, label and limits of a numeric parameter or a derived level, such as "area".

    Parameters
    ----------
    stimulus : Specification or class
        A kind, or a stimulus: a sum has levels for each of its parts ("mask_contrast").
    name : str
        Of the level.

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
    levels = stimulus.levels() if isinstance(stimulus, Specification) else levels_of(stimulus)
    check_names(stimulus.kind, [name], levels)
    return levels[name]


def with_levels(spec: Specification, **values: Any) -> Specification:
    """The stimulus with these levels, all set at once; names as in `level_of`.

    Parameters
    ----------
    spec : Specification
        It stays as it is.
    **values
        Level to value, an array for a batch, in the units of the kind.

    Raises
    ------
    UnknownNameError
        If the stimulus has no such level.

    Examples
    --------
    >>> from psyprobe.stimulus import gabor, grating
    >>> both = gabor(frequency=4, contrast=0.1) + grating(frequency=4, contrast=0.2)
    >>> with_levels(both.spec, contrast=0.05, mask_orientation=45).value("mask_orientation")
    45.0
    """
    check_names(spec.kind, values, spec.levels())
    return spec.changed(**values)


def drawn(kind: type[Specification], values: dict[str, Any]) -> Stimulus:
    how = {name: values.pop(name) for name in ("dtype", "device")}
    return kind(**values).draw(**how)
