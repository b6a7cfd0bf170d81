"""Stimuli as values: every parameter of a stimulus, checked, broadcast, written down and drawn.

A specification is frozen and knows its units. Numbers may be arrays; they broadcast against each other, and the shape
they have together is the batch that `draw` returns.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cache, cached_property
from typing import Any, ClassVar, Self

import numpy as np

from psyprobe._typing import Array, FloatArray
from psyprobe.errors import InputError, unknown_name
from psyprobe.light.colour import Direction, cone_observer, direction_vector, white_xyz
from psyprobe.stimulus import pattern
from psyprobe.stimulus.stimulus import Stimulus

#: Kinds of stimulus by name, as they stand in a stimulus file.
KINDS: dict[str, type[Specification]] = {}

#: Units of numeric parameters, for messages and files.
UNITS = {
    "luminance": "cd/m²",
    "contrast": "a fraction",
    "frequency": "cpd",
    "orientation": "deg",
    "phase": "deg",
    "x": "deg",
    "y": "deg",
    "radius": "deg",
    "aspect": "a ratio",
    "edge": "deg or octaves",
    "bandwidth": "octaves",
    "exponent": "a power",
    "seed": "a whole number",
    "mask_contrast": "a fraction",
    "low": "a multiple of the frequency",
    "high": "a multiple of the frequency",
    "window": "deg",
}


def stimulus_kind(name: str) -> Any:
    """Class decorator that registers a kind of stimulus under a name."""

    def register(cls: type[Specification]) -> type[Specification]:
        if name in KINDS:
            raise InputError(f"stimulus kind {name!r} is registered twice")
        KINDS[name] = cls
        cls.kind = name
        return cls

    return register


@cache
def stimulus_kinds() -> dict[str, type[Specification]]:
    """All kinds, those of installed packages (entry points ``psyprobe.stimuli``) included."""
    from importlib.metadata import entry_points

    import psyprobe.stimulus.annulus
    import psyprobe.stimulus.band_noise
    import psyprobe.stimulus.cai2025
    import psyprobe.stimulus.field
    import psyprobe.stimulus.masked_gabor
    import psyprobe.stimulus.superposition
    import psyprobe.stimulus.wave  # noqa: F401 - importing registers the kinds

    for point in entry_points(group="psyprobe.stimuli"):
        if point.name not in KINDS:
            stimulus_kind(point.name)(point.load())
    return KINDS


def specification_from_dict(values: Mapping[str, Any]) -> Specification:
    """The specification that `Specification.to_dict` describes.

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
    kinds = stimulus_kinds()
    kind = values.get("kind")
    if kind not in kinds:
        raise unknown_name("stimulus kind", str(kind), kinds)
    return kinds[str(kind)].from_dict({k: v for k, v in values.items() if k != "kind"})


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Specification:
    """What every stimulus has: a background of some luminance, sampled on a field of pixels.

    Attributes
    ----------
    luminance : float or array
        Mean or background luminance, cd/m².
    ppd : float
        Pixels per degree of visual angle.
    size : int or (H, W)
        Pixels.
    """

    kind: ClassVar[str]
    contrast_kind: ClassVar[str | None] = None
    #: Fields that may be arrays; in the order of the class.
    numeric: ClassVar[tuple[str, ...]] = ("luminance",)

    luminance: Any = 100.0
    ppd: float = 60.0
    size: int | tuple[int, int] = 224

    def __post_init__(self) -> None:
        object.__setattr__(self, "ppd", float(number("ppd", self.ppd, "pixels per degree")))
        if not self.ppd > 0:
            raise InputError(f"ppd is {self.ppd:g}; pixels per degree must be > 0")
        object.__setattr__(self, "size", _size(self.size))
        for name in self.numeric:
            object.__setattr__(self, name, number(name, getattr(self, name), UNITS[name]))
        require(self.luminance > 0, "luminance", self.luminance, "cd/m²", "a background must be > 0 cd/m²")
        try:
            np.broadcast_shapes(*(np.shape(getattr(self, name)) for name in self.numeric))
        except ValueError:
            shapes = {name: np.shape(getattr(self, name)) for name in self.numeric if np.ndim(getattr(self, name))}
            raise InputError(f"parameters of shapes {shapes} do not broadcast against each other") from None

    # -- as a value -------------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """All parameters as numbers, text and lists, with the kind."""
        return {"kind": self.kind} | {f.name: plain(getattr(self, f.name)) for f in fields(self)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """The specification of these parameters; unknown keys raise with the nearest name."""
        known = [f.name for f in fields(cls)]
        for key in values:
            if key not in known:
                raise unknown_name(f"parameter of {cls.kind}", key, known)
        try:
            return cls(**values)
        except TypeError as error:
            missing = str(error).partition("argument")[2].lstrip("s: ")
            raise InputError(f"{cls.kind} needs {missing or 'other parameters'}: {error}") from None

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON: the same on every machine and in every process."""
        text = json.dumps(self.to_dict(), sort_keys=True, separators=(",", ":"), allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Specification) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        defaults = {f.name: f.default for f in fields(self)}
        shown = {f.name: plain(getattr(self, f.name)) for f in fields(self)}
        if shown["size"][0] == shown["size"][1]:
            shown["size"] = shown["size"][0]
        changed = [f"{name}={value!r}" for name, value in shown.items() if value != plain(defaults[name])]
        return f"{type(self).__name__}({', '.join(changed)})"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        # IPython and hypothesis would list every field of a dataclass, class variables included.
        printer.text(repr(self))

    # -- as an image ------------------------------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, int]:
        """Pixels (H, W)."""
        assert isinstance(self.size, tuple)
        return self.size

    @property
    def field(self) -> tuple[float, float]:
        """Extent (height, width) of the image, deg."""
        return self.shape[0] / self.ppd, self.shape[1] / self.ppd

    @property
    def batch(self) -> tuple[int, ...]:
        """Shape that the parameters have together."""
        return np.broadcast_shapes(*(np.shape(getattr(self, name)) for name in self.numeric))

    def draw(self, *, dtype: str = "float64", device: str | None = None) -> Stimulus:
        """The pixels, as a `Stimulus`.

        Parameters
        ----------
        dtype : {"float64", "float32"}
            Precision of the pixels.
        device : str, optional
            A torch device ("cpu", "cuda:0") to draw tensors there; numpy without it.
        """
        if dtype not in ("float64", "float32"):
            raise InputError(f"dtype is {dtype!r}; stimuli are drawn in float64 or float32")
        pixels, space = self._pixels(dtype, device)
        return Stimulus(pixels, space, self.ppd, self)

    def reference(self) -> Specification:
        """What the target is told apart from: the same field without it."""
        raise NotImplementedError

    def _pixels(self, dtype: str, device: str | None) -> tuple[Array, str]:
        raise NotImplementedError

    def _flat(self, name: str) -> FloatArray:
        """A parameter, broadcast to the batch and flattened: shape (n,)."""
        return np.broadcast_to(np.asarray(getattr(self, name)), self.batch).ravel()


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Modulation(Specification):
    """A background whose light is modulated along a direction of colour.

    Attributes
    ----------
    contrast : float or array
        Amplitude of the modulation. Achromatic: Michelson (noise: RMS, disc: Weber). Chromatic: RMS over the three cone
        contrasts, the unit of castleCSF.
    direction : str or (dL, dM, dS)
        "achromatic", "red_green", "yellow_violet", or a modulation in LMS.
    white : str or (x, y)
        Chromaticity of the background of a chromatic stimulus.
    observer : str
        Named cone observer of a chromatic stimulus.
    """

    contrast: Any
    direction: Direction = "achromatic"
    white: str | tuple[float, float] = "D65"
    observer: str = "cie2006_led_lcd"

    numeric: ClassVar[tuple[str, ...]] = ("luminance", "contrast")
    #: Lowest modulation of unit contrast is at least minus this; None where only the drawn image tells.
    deepest: ClassVar[float | None] = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("direction", "white"):
            value = getattr(self, name)
            if not isinstance(value, str):
                object.__setattr__(self, name, tuple(float(v) for v in value))
        self._check_contrast()
        direction_vector(self.direction, self.background_lms)

    def _check_contrast(self) -> None:
        limit = 1.0 if self.direction == "achromatic" and self.deepest is not None else 10.0
        require(
            (self.contrast >= 0) & (self.contrast <= limit),
            "contrast",
            self.contrast,
            "",
            f"contrast is a fraction from 0 to {limit:g}, not a percentage; more would need negative light",
        )

    @property
    def in_colour(self) -> bool:
        """Whether pixels are LMS rather than luminance."""
        return self.direction != "achromatic"

    @property
    def background_lms(self) -> FloatArray:
        """LMS of the background at a luminance of 1 cd/m², shape (3,)."""
        return cone_observer(self.observer).from_xyz @ white_xyz(self.white)

    def reference(self) -> Specification:
        """The uniform background: grey, or of this background's chromaticity."""
        from psyprobe.stimulus.field import Uniform

        field = Uniform(luminance=self.luminance, ppd=self.ppd, size=self.size)
        if not self.in_colour:
            return field
        return replace(field, chromatic=True, white=self.white, observer=self.observer)

    def paint(self, amplitude: FloatArray, offset: FloatArray, dtype: str, device: str | None) -> Array:
        """``offset + amplitude * unit pattern``, image by image.

        Parameters
        ----------
        amplitude, offset : ndarray, shape (n,)
            One for each image of the flattened batch.
        dtype, device
            As for `draw`.

        Returns
        -------
        array, shape (n, H, W)
        """
        raise NotImplementedError

    def modulation(self, dtype: str, device: str | None) -> Array:
        """Relative modulation of the light about 0, shape (..., H, W)."""
        contrast = self._flat("contrast")
        change = self.paint(contrast, np.zeros_like(contrast), dtype, device)
        return change.reshape((*self.batch, *self.shape))

    def _pixels(self, dtype: str, device: str | None) -> tuple[Array, str]:
        luminance = self._flat("luminance")
        if not self.in_colour:
            pixels, space = self.paint(self._flat("contrast") * luminance, luminance, dtype, device), "luminance"
            pixels = pixels.reshape((*self.batch, *self.shape))
        else:
            background = self.background_lms
            step = pattern.to_backend(background * direction_vector(self.direction, background), dtype, device)
            pixels, space = self.modulation(dtype, device)[..., None] * step, "lms"
            pixels += pattern.to_backend(background, dtype, device)
            pixels *= pattern.to_backend(np.asarray(self.luminance)[..., None, None, None], dtype, device)
        if self.deepest is None or space == "lms":
            self._refuse_negative(pixels)
        return pixels, space

    def _refuse_negative(self, pixels: Array) -> None:
        darkest = float(pixels.min())
        if darkest < 0:
            largest = float(np.max(self.contrast))
            raise InputError(
                f"contrast {largest:g} would need negative light ({darkest:g}); "
                "lower the contrast, or choose another seed, phase or direction"
            )


def column(values: FloatArray, dtype: str, device: str | None) -> Array:
    return pattern.to_backend(values[:, None, None], dtype, device)


def number(name: str, value: Any, unit: str) -> float | FloatArray:
    if isinstance(value, bool | str) or value is None:
        raise InputError(f"{name} is {value!r}; give a number ({unit}), without the unit")
    try:
        numbers = np.array(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name} is {value!r}; give a number or an array of numbers ({unit})") from None
    if not np.isfinite(numbers).all():
        raise InputError(f"{name} is {value!r}; every value must be finite ({unit})")
    if numbers.ndim == 0:
        return float(numbers)
    numbers.setflags(write=False)
    return numbers


def _size(size: Any) -> tuple[int, int]:
    pair = (size, size) if isinstance(size, int | np.integer) else size
    try:
        height, width = (int(v) for v in pair)
        whole = all(int(v) == v for v in pair)
    except (TypeError, ValueError):
        raise InputError(f"size is {size!r}; give pixels, or (height, width) in pixels") from None
    if not whole or not (1 <= height <= 16384 and 1 <= width <= 16384):
        raise InputError(f"size is {size!r}; give whole pixels from 1 to 16384")
    return height, width


def require(valid: Any, name: str, value: Any, unit: str, allowed: str) -> None:
    if not np.all(valid):
        wrong = np.asarray(value, float)[np.broadcast_to(~np.asarray(valid, bool), np.shape(value))].ravel()[0]
        raise InputError(f"{name} is {wrong:g}{' ' + unit if unit else ''}; {allowed}")


def plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, tuple):
        return [plain(v) for v in value]
    return value
