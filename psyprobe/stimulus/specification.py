"""Stimuli as values: every parameter of a stimulus, checked, broadcast, written down and drawn.

A specification is frozen and knows its units. Numbers may be arrays; they broadcast against each other, and the shape
they have together is the batch that `draw` returns.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from psyprobe._typing import Array, FloatArray
from psyprobe.colour import Direction, cone_observer, direction_vector, white_xyz
from psyprobe.errors import InputError, unknown_name
from psyprobe.stimulus import pattern
from psyprobe.stimulus.stimulus import Stimulus

#: Kinds of stimulus by name, as they stand in a stimulus file.
KINDS: dict[str, type[Specification]] = {}

#: Waves narrower than this across the field are surely meant in another unit.
_FEWEST_CYCLES = 0.5


def stimulus_kind(name: str) -> Any:
    """Class decorator that registers a kind of stimulus under a name."""

    def register(cls: type[Specification]) -> type[Specification]:
        if name in KINDS:
            raise InputError(f"stimulus kind {name!r} is registered twice")
        KINDS[name] = cls
        cls.kind = name
        return cls

    return register


def stimulus_kinds() -> dict[str, type[Specification]]:
    """All kinds, those of installed packages (entry points ``psyprobe.stimuli``) included."""
    from importlib.metadata import entry_points

    import psyprobe.stimulus.cai2025  # noqa: F401 - registers its kinds

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
        object.__setattr__(self, "ppd", float(_number("ppd", self.ppd, "pixels per degree")))
        if not self.ppd > 0:
            raise InputError(f"ppd is {self.ppd:g}; pixels per degree must be > 0")
        object.__setattr__(self, "size", _size(self.size))
        for name in self.numeric:
            object.__setattr__(self, name, _number(name, getattr(self, name), UNITS[name]))
        _require(self.luminance > 0, "luminance", self.luminance, "cd/m²", "a background must be > 0 cd/m²")
        try:
            np.broadcast_shapes(*(np.shape(getattr(self, name)) for name in self.numeric))
        except ValueError:
            shapes = {name: np.shape(getattr(self, name)) for name in self.numeric if np.ndim(getattr(self, name))}
            raise InputError(f"parameters of shapes {shapes} do not broadcast against each other") from None

    # -- as a value -------------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """All parameters as numbers, text and lists, with the kind."""
        return {"kind": self.kind} | {f.name: _plain(getattr(self, f.name)) for f in fields(self)}

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
        shown = {f.name: _plain(getattr(self, f.name)) for f in fields(self)}
        if shown["size"][0] == shown["size"][1]:
            shown["size"] = shown["size"][0]
        changed = [f"{name}={value!r}" for name, value in shown.items() if value != _plain(defaults[name])]
        return f"{type(self).__name__}({', '.join(changed)})"

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
        return Uniform(luminance=self.luminance, ppd=self.ppd, size=self.size)

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
        _require(
            (self.contrast >= 0) & (self.contrast <= limit),
            "contrast",
            self.contrast,
            "",
            f"contrast is a fraction from 0 to {limit:g}, not a percentage; more would need negative light",
        )

    @property
    def background_lms(self) -> FloatArray:
        """LMS of the background at a luminance of 1 cd/m², shape (3,)."""
        return cone_observer(self.observer).from_xyz @ white_xyz(self.white)

    def reference(self) -> Specification:
        """The uniform background: grey, or of this background's chromaticity."""
        field = Uniform(luminance=self.luminance, ppd=self.ppd, size=self.size)
        if self.direction == "achromatic":
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
        if self.direction == "achromatic":
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


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class _Wave(Modulation):
    """A sinusoidal carrier."""

    frequency: Any
    orientation: Any = 0.0
    phase: Any = 0.0
    x: Any = 0.0
    y: Any = 0.0

    numeric: ClassVar[tuple[str, ...]] = ("luminance", "contrast", "frequency", "orientation", "phase", "x", "y")

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_frequency(self.frequency)

    def _check_frequency(self, highest: Any) -> None:
        _require(
            (highest > 0) & (highest < self.ppd / 2),
            "frequency",
            highest,
            "cpd",
            f"a display of {self.ppd:g} pixels per degree shows frequencies above 0 and below {self.ppd / 2:g} cpd "
            "(Nyquist); lower the frequency or raise ppd",
        )
        longest = max(self.field)
        _require(
            self.frequency * longest >= _FEWEST_CYCLES,
            "frequency",
            self.frequency,
            "cpd",
            f"fewer than {_FEWEST_CYCLES:g} cycles would fit on the field of {longest:.4g} deg; frequency is in cycles "
            "per degree, not per pixel",
        )

    def _carrier(
        self,
        amplitude: FloatArray,
        offset: FloatArray,
        dtype: str,
        device: str | None,
        radius: FloatArray | None = None,
        balanced: bool = False,
    ) -> Array:
        names = ("frequency", "orientation", "phase", "x", "y")
        rows, columns = pattern.gabor_factors(
            self.shape, self.ppd, radius=radius, balanced=balanced, **{name: self._flat(name) for name in names}
        )
        columns *= amplitude[:, None, None]
        if offset.any():
            # The mean rides along as one more row and column, which saves a pass over the images.
            rows = np.concatenate([rows, np.ones_like(rows[..., :1])], axis=2)
            columns = np.concatenate([columns, np.broadcast_to(offset[:, None, None], columns[:, :1].shape)], axis=1)
        return pattern.to_backend(rows, dtype, device) @ pattern.to_backend(columns, dtype, device)


@stimulus_kind("gabor")
@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Gabor(_Wave):
    """A sinusoid under a Gaussian envelope.

    ``L = luminance (1 + contrast E(u, v) cos(2 pi frequency u + phase))``, where u runs across the stripes, v along
    them, and ``E = exp(-(u² + (v/aspect)²) / (2 radius²))``.

    Attributes
    ----------
    frequency : float or array
        Spatial frequency, cpd, below Nyquist (ppd/2).
    contrast : float or array
        Amplitude over luminance at the centre of the envelope (Michelson), 0 to 1; see `Modulation`.
    radius : float or array
        Standard deviation of the envelope across the stripes, deg.
    aspect : float or array
        Standard deviation along the stripes over that across; 1 is round.
    orientation : float or array
        deg counter-clockwise; 0 is vertical stripes.
    phase : float or array
        deg; 0 puts a peak at the centre of the envelope.
    x, y : float or array
        Centre, deg to the right and up.
    balanced : bool
        Subtract the multiple of the envelope that makes the mean equal to `luminance`.

    Examples
    --------
    >>> Gabor(frequency=[2.0, 4.0], contrast=0.5, size=64).draw().pixels.shape
    (2, 64, 64)
    """

    radius: Any = 1.0
    aspect: Any = 1.0
    balanced: bool = False

    numeric: ClassVar[tuple[str, ...]] = (*_Wave.numeric, "radius", "aspect")
    contrast_kind: ClassVar[str | None] = "michelson"

    def __post_init__(self) -> None:
        super().__post_init__()
        longest = max(self.field)
        _require(
            (self.radius > 0) & (self.radius <= longest),
            "radius",
            self.radius,
            "deg",
            f"the envelope's standard deviation must be above 0 and at most the field of {longest:.4g} deg",
        )
        _require(self.aspect > 0, "aspect", self.aspect, "", "it must be > 0")

    def paint(self, amplitude: FloatArray, offset: FloatArray, dtype: str, device: str | None) -> Array:
        """``offset + amplitude * Gabor``, shape (n, H, W)."""
        if np.all(self.aspect == 1):
            return self._carrier(amplitude, offset, dtype, device, self._flat("radius"), self.balanced)
        # An oblique ellipse is no product of rows and columns: it is multiplied on.
        names = ("orientation", "x", "y", "radius", "aspect")
        envelope = pattern.oriented_envelope(self.shape, self.ppd, **{name: self._flat(name) for name in names})
        change = self._carrier(np.ones_like(amplitude), np.zeros_like(offset), "float64", None) * envelope
        if self.balanced:
            change -= envelope * (change.sum(axis=(1, 2)) / envelope.sum(axis=(1, 2)))[:, None, None]
        return pattern.to_backend(change * amplitude[:, None, None] + offset[:, None, None], dtype, device)

    def _pixels(self, dtype: str, device: str | None) -> tuple[Array, str]:
        pixels, space = super()._pixels(dtype, device)
        if self.balanced:
            self._refuse_negative(pixels)
        return pixels, space


@stimulus_kind("grating")
@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Grating(_Wave):
    """A sinusoid over the whole field, or behind a window.

    Attributes
    ----------
    frequency, contrast, orientation, phase, x, y
        As of a `Gabor`; x and y move the window and the carrier with it.
    window : {"none", "gaussian", "raised_cosine", "disc"}
        Shape of the aperture.
    radius : float or array
        deg: standard deviation of a Gaussian; radius at half height of a raised cosine; radius of a hard disc.
    edge : float or array
        Width of the ramp of a raised cosine, deg.

    Examples
    --------
    >>> Grating(frequency=3.0, contrast=1.0, window="disc", radius=1.5).draw().pixels.shape
    (224, 224)
    """

    window: str = "none"
    radius: Any = 1.0
    edge: Any = 0.25

    numeric: ClassVar[tuple[str, ...]] = (*_Wave.numeric, "radius", "edge")
    contrast_kind: ClassVar[str | None] = "michelson"
    windows: ClassVar[tuple[str, ...]] = ("none", "gaussian", "raised_cosine", "disc")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.window not in self.windows:
            raise unknown_name("window", str(self.window), self.windows)
        _require(self.radius > 0, "radius", self.radius, "deg", "a window's radius must be > 0")
        _require(
            (self.edge > 0) & (self.edge <= 2 * self.radius),
            "edge",
            self.edge,
            "deg",
            "a raised cosine's ramp must be above 0 and at most twice the radius",
        )

    def paint(self, amplitude: FloatArray, offset: FloatArray, dtype: str, device: str | None) -> Array:
        """``offset + amplitude * windowed grating``, shape (n, H, W)."""
        if self.window in ("none", "gaussian"):
            radius = self._flat("radius") if self.window == "gaussian" else None
            return self._carrier(amplitude, offset, dtype, device, radius)
        names = ("x", "y", "radius", "edge")
        distinct, which = np.unique(np.stack([self._flat(n) for n in names]), axis=1, return_inverse=True)
        values = dict(zip(names, distinct, strict=True))
        if self.window == "disc":
            values["edge"] = np.zeros_like(values["edge"])
        windows = pattern.to_backend(pattern.round_window(self.shape, self.ppd, **values), dtype, device)
        change = self._carrier(amplitude, np.zeros_like(offset), dtype, device)
        change *= windows if windows.shape[0] == 1 else windows[which.ravel()]
        change += _column(offset, dtype, device)
        return change


@stimulus_kind("noise")
@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Noise(Modulation):
    """Gaussian noise in a ring of spatial frequencies, with exact mean and RMS contrast in every sample.

    Attributes
    ----------
    frequency : float or array
        Geometric centre of the ring, cpd.
    bandwidth : float or array
        Full width in octaves: the edges, both included, are ``frequency 2^(-bandwidth/2)`` and
        ``frequency 2^(+bandwidth/2)``.
    exponent : float or array
        Amplitude falls as 1/f^exponent inside the ring: 0 white, 1 pink.
    edge : float or array
        Width in octaves of raised-cosine edges of the power, half power at the stated edges; 0 is a brick wall.
    contrast : float or array
        Population standard deviation over mean (RMS), exactly, in each sample.
    seed : int or array of int
        Of each image; the same seed and ring give the same pattern in every batch, precision and backend.

    Examples
    --------
    >>> noise = Noise(frequency=4.0, contrast=0.15, seed=[1, 2]).draw()
    >>> luminance = noise.luminance[0]
    >>> round(float(luminance.std() / luminance.mean()), 12)
    0.15
    """

    frequency: Any
    bandwidth: Any = 1.0
    exponent: Any = 0.0
    edge: Any = 0.0
    seed: Any = 0

    numeric: ClassVar[tuple[str, ...]] = (
        "luminance",
        "contrast",
        "frequency",
        "bandwidth",
        "exponent",
        "edge",
        "seed",
    )
    contrast_kind: ClassVar[str | None] = "rms"
    deepest: ClassVar[float | None] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        _require(self.bandwidth > 0, "bandwidth", self.bandwidth, "octaves", "a band's width must be > 0")
        _require(self.edge >= 0, "edge", self.edge, "octaves", "the width of an edge must be >= 0")
        _require((np.mod(self.seed, 1) == 0) & (self.seed >= 0), "seed", self.seed, "", "a seed is a whole number >= 0")
        high = self.band[1]
        top = high * 2.0 ** (np.asarray(self.edge) / 2)
        _require(
            (self.frequency > 0) & (top <= self.ppd / 2),
            "frequency",
            self.frequency,
            "cpd",
            f"the band's upper edge ({float(np.max(top)):.4g} cpd) must stay below {self.ppd / 2:g} cpd (Nyquist at "
            f"{self.ppd:g} pixels per degree); lower the frequency or the bandwidth",
        )
        step = 1 / min(self.field)
        _require(
            top >= step,
            "frequency",
            self.frequency,
            "cpd",
            f"the band lies below the field's lowest frequency of {step:.4g} cpd; enlarge the field",
        )

    @property
    def band(self) -> tuple[FloatArray, FloatArray]:
        """Edges of the ring, cpd."""
        half = 2.0 ** (np.asarray(self.bandwidth, float) / 2)
        return np.asarray(self.frequency / half), np.asarray(self.frequency * half)

    def paint(self, amplitude: FloatArray, offset: FloatArray, dtype: str, device: str | None) -> Array:
        """``offset + amplitude * noise of unit standard deviation``, shape (n, H, W)."""
        low, high = (np.broadcast_to(v, self.batch).ravel() for v in self.band)
        names = ("exponent", "edge", "seed")
        return pattern.noise_images(
            self.shape,
            self.ppd,
            amplitude=amplitude,
            offset=offset,
            low=low,
            high=high,
            dtype=dtype,
            device=device,
            **{name: self._flat(name) for name in names},
        )


@stimulus_kind("disc")
@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Disc(Modulation):
    """A uniform disc on a uniform background.

    Attributes
    ----------
    contrast : float or array
        Weber contrast of the disc, -1 to 10 (a chromatic disc: RMS cone contrast).
    radius : float or array
        deg.
    edge : float or array
        Width of a raised-cosine edge, deg; 0 is hard (pixels whose centres lie within the radius).
    x, y : float or array
        Centre, deg to the right and up.

    Examples
    --------
    >>> disc = Disc(contrast=0.5, radius=1.0, luminance=20.0).draw()
    >>> float(disc.luminance[112, 112]), float(disc.luminance[0, 0])
    (30.0, 20.0)
    """

    radius: Any = 1.0
    edge: Any = 0.0
    x: Any = 0.0
    y: Any = 0.0

    numeric: ClassVar[tuple[str, ...]] = ("luminance", "contrast", "radius", "edge", "x", "y")
    contrast_kind: ClassVar[str | None] = "weber"

    def __post_init__(self) -> None:
        super().__post_init__()
        _require(self.radius > 0, "radius", self.radius, "deg", "a disc's radius must be > 0")
        _require((self.edge >= 0) & (self.edge <= 2 * self.radius), "edge", self.edge, "deg", "0 to twice the radius")

    def _check_contrast(self) -> None:
        _require(
            (self.contrast >= -1) & (self.contrast <= 10),
            "contrast",
            self.contrast,
            "",
            "a disc's Weber contrast is a fraction from -1 to 10, not a percentage",
        )

    def paint(self, amplitude: FloatArray, offset: FloatArray, dtype: str, device: str | None) -> Array:
        """``offset + amplitude * disc``, shape (n, H, W)."""
        names = ("x", "y", "radius", "edge")
        window = pattern.round_window(self.shape, self.ppd, **{name: self._flat(name) for name in names})
        return pattern.to_backend(window * amplitude[:, None, None] + offset[:, None, None], dtype, device)


@stimulus_kind("uniform")
@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Uniform(Specification):
    """A uniform field.

    Attributes
    ----------
    luminance : float or array
        cd/m².
    chromatic : bool
        Draw the field in LMS of `observer` with the chromaticity `white`, as the background of a chromatic stimulus.
    white, observer : str
        See `Modulation`.

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
        return xp.tile(_column(luminance, dtype, device), (1, *self.shape)).reshape((*self.batch, *self.shape)), (
            "luminance"
        )


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
                if _plain(getattr(part, name)) != _plain(getattr(first, name)):
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
        grey = all(part.direction == "achromatic" for part in self.parts)
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
}


def _column(values: FloatArray, dtype: str, device: str | None) -> Array:
    return pattern.to_backend(values[:, None, None], dtype, device)


def _number(name: str, value: Any, unit: str) -> float | FloatArray:
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


def _require(valid: Any, name: str, value: Any, unit: str, allowed: str) -> None:
    if not np.all(valid):
        wrong = np.asarray(value, float)[np.broadcast_to(~np.asarray(valid, bool), np.shape(value))].ravel()[0]
        raise InputError(f"{name} is {wrong:g}{' ' + unit if unit else ''}; {allowed}")


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, tuple):
        return [_plain(v) for v in value]
    return value
