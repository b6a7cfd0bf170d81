"""The display model: physical light to drive values and back, exactly, by the display's transfer
function.

Light emitted by channel k at drive V is ``(peak - black) * EOTF(V) + black``, and the screen
reflects ambient light on top of it: ``L(V) = (peak - black) * EOTF(V) + black + ambient *
reflectivity / pi``. *Linear RGB light* is each channel's light in cd/m², scaled so that equal
channels give a neutral of that luminance.

References
----------
IEC 61966-2-1:1999 (sRGB). Reflection: ideal diffuser, as in ColorVideoVDP (Mantiuk et al. 2024).
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import cache, cached_property
from importlib.resources import files
from typing import Any, Protocol, TypeAlias, cast

import numpy as np
import numpy.typing as npt
from array_api_compat import array_namespace

from psyprobe._typing import Array, FloatArray
from psyprobe.errors import GamutError, InputError, unknown_name
from psyprobe.files.output import plain
from psyprobe.light.colour import (
    Direction,
    chromaticity,
    cone_observer,
    direction_vector,
    rgb_to_xyz_matrix,
    white_xyz,
)
from psyprobe.light.transfer import (
    SRGB_JUNCTION,
    Eotf,
    checked_eotfs,
    drive_of_light,
    light_of_drive,
    srgb_float32,
)

#: A name, or measured (x, y) or (X, Y, Z) of red, green, blue and white.
Primaries: TypeAlias = str | tuple[tuple[float, ...], ...]

#: Light, cd/m², beyond that of the sun.
_BRIGHTEST = 1e10


def _a_few(pixels: Array, drive: Array, axes: int) -> Iterator[tuple[Array, Array]]:
    """Two batches a few images at a time: numpy works through the cache, a GPU takes all at
    once.
    """
    if not isinstance(pixels, np.ndarray) or pixels.ndim <= axes:
        yield pixels, drive
        return
    together = max(1, _TOGETHER // max(1, math.prod(pixels.shape[1:])))
    for start in range(0, len(pixels), together):
        yield pixels[start : start + together], drive[start : start + together]


#: Pixels per degree of what people look at: headsets from near, telephones from afar.
_FEWEST_PPD = 1.0
_MOST_PPD = 1000.0

#: Primaries of the default.
SRGB_PRIMARIES = ((0.64, 0.33), (0.30, 0.60), (0.15, 0.06))

#: XYZ in cd/m² of red, green and blue at full drive, of the display that Jorgvt/PerceptualTests
#: draws its stimuli for.
_PERCEPTUAL_TESTS_XYZ = (
    (69.1661, 39.0454, 3.3467),
    (52.4902, 115.8404, 12.67),
    (46.6052, 16.3118, 170.1090),
)

#: How far beyond the gamut counts as rounding and is snapped back, in relative drive light.
_SNAP = {"float64": 1e-12, "float32": 1e-6}

#: Values that are folded and checked at once, and that the arithmetic works on at a time, in the
#: processor's cache.
_TOGETHER = 1 << 19
_BLOCK = 1 << 15


def _along(axis: int, chosen: slice | int) -> tuple[Any, ...]:
    """Index of what is chosen along an axis, counted from the last."""
    return (..., chosen, *(slice(None),) * (-axis - 1))


def _mirrors_itself(light: FloatArray, axis: int) -> bool:
    """Whether the second half along an axis is the first one, mirrored: many patterns do that, and
    few other images.
    """
    if light.ndim < -axis or light.shape[axis] < 2:
        return False
    half = light.shape[axis] // 2
    ends = (0, -1)
    halves = (slice(half), slice(None, -half - 1, -1))
    return all(
        (light[_along(axis, one)] == light[_along(axis, other)]).all()
        for one, other in (ends, halves)
    )


def _folded(
    light: Array, drive: Array, axes: Iterable[int]
) -> tuple[Array, Array, list[tuple[int, Array]]]:
    """What of light nothing mirrors, the drive of that, and each axis along which a drive is to be
    mirrored.
    """
    folds = []
    for axis in axes if isinstance(light, np.ndarray) else ():
        if _mirrors_itself(light, axis):
            folds.append((axis, drive))
            near = _along(axis, slice(-(-light.shape[axis] // 2)))
            light = light[near]
            drive = drive[near]
    return light, drive, folds


class DescribedImage(Protocol):
    """An image that says what its pixels are, as a `psyprobe.Stimulus` does."""

    @property
    def pixels(self) -> Array:
        """Pixels in `space`."""

    @property
    def space(self) -> str:
        """Space of the pixels: "luminance", "lms" or "rgb"."""

    @property
    def observer(self) -> str:
        """Cone observer of LMS pixels."""


@dataclass(frozen=True)
class Gamut:
    """Where an image stands in a display's gamut."""

    #: Values (pixels x channels) darker than the display's floor.
    below: int
    #: Values brighter than its ceiling.
    above: int
    values: int
    #: Smallest and largest linear RGB light, cd/m².
    darkest: float
    brightest: float
    #: Distance to the nearer limit, as a fraction of the display's range; negative outside.
    margin: float

    @property
    def outside(self) -> int:
        """Values that cannot be shown."""
        return self.below + self.above


@dataclass(frozen=True)
class Display:
    """A display that turns drive values in [0, 1] into light, and back.

    Parameters
    ----------
    peak : float
        Luminance of full white without reflections, cd/m².
    black : float or (red, green, blue)
        Luminance at drive 0 without reflections, cd/m²; or, where black is not neutral, linear RGB
        light.
    ambient : float
        Illuminance on the screen, lux.
    reflectivity : float
        Diffuse reflectance of the screen, 0 to 1.
    eotf : "srgb", "linear", float or pairs
        Transfer function: sRGB (piecewise), linear, a power law of this exponent, or a measured
        table of (drive, relative light) pairs from (0, 0) to (1, 1), both increasing, interpolated
        by PCHIP (monotone cubics). Three of these where the guns differ: red, green, blue.
    primaries : str or 4 x 2, 4 x 3 or 3 x 3 sequence of float
        Measured CIE 1931 (x, y) or (X, Y, Z) of red, green, blue and white, without the light at
        drive 0; white may be left out of (X, Y, Z), and is their sum. Or a colour space whose
        primaries and white the display has: "sRGB"; "PerceptualTests", a laboratory CRT; or any
        name in colour-science's ``RGB_COLOURSPACES``, for example "Display P3" or "ITU-R BT.2020".
    extended : bool
        Whether drives beyond 1 exist (extended-range sRGB, as scRGB has): then nothing is too
        bright.

    Examples
    --------
    >>> display = Display(peak=400.0)
    >>> drive = display.encode([[100.0, 400.0]])
    >>> drive.shape, drive[0, :, 0].round(4).tolist()
    ((1, 2, 3), [0.5371000170707703, 1.0])
    >>> display.decode(drive)[0, :, 0].round(3).tolist()
    [100.0, 400.0]
    >>> display.encode([[500.0]])
    Traceback (most recent call last):
        ...
    psyprobe.errors.GamutError: light of 500 cd/m² is above what this display shows (0 to 400 cd/m²), in 100 % of ...
    """

    peak: float = 400.0
    black: float | tuple[float, float, float] = 0.0
    ambient: float = 0.0
    reflectivity: float = 0.005
    eotf: Eotf | tuple[Eotf, Eotf, Eotf] = "srgb"
    primaries: Primaries = "sRGB"
    extended: bool = False

    def __post_init__(self) -> None:
        for name in ("peak", "ambient", "reflectivity"):
            object.__setattr__(self, name, _checked_number(name, getattr(self, name)))
        object.__setattr__(self, "black", _checked_black(self.black))
        object.__setattr__(self, "primaries", _checked_primaries(self.primaries))
        if not self.span > 0:
            raise InputError(
                f"display peak {self.peak:g} cd/m² is not above its black level of "
                f"{self.peak - self.span:g} cd/m²"
            )
        if self.reflectivity > 1:
            raise InputError(
                f"display reflectivity is {self.reflectivity:g}; a screen reflects 0 to 1 of "
                "the light"
            )
        object.__setattr__(self, "eotf", checked_eotfs(self.eotf))

    @classmethod
    def preset(cls, name: str) -> Display:
        """A display of the catalogue (``display_presets.toml``): "reference_400", "office_lcd",
        "crt" ...

        >>> Display.preset("office_lcd").peak
        200.0
        """
        presets = display_presets()
        if name not in presets:
            raise unknown_name("display", name, presets)
        return cls.from_dict({k: v for k, v in presets[name].items() if k != "source"})

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Display:
        """The display that `to_dict` describes; unknown keys raise."""
        known = [f.name for f in fields(cls)]
        for key in values:
            if key not in known:
                raise unknown_name("display setting", key, known)
        return cls(**values)

    def to_dict(self) -> dict[str, Any]:
        """The parameters as plain numbers, text and lists."""
        return {f.name: plain(getattr(self, f.name)) for f in fields(self)}

    def _repr_html_(self) -> str:
        from psyprobe.files import html

        drive = np.linspace(0, 1, 65)
        light = np.asarray(self.decode(np.stack([drive] * 3, axis=-1)[None]))[0, :, 0]
        axes = ("drive", "luminance (cd/m²)")
        values = (
            self.to_dict()
            if isinstance(self.eotf, str | float)
            else self.to_dict() | {"eotf": "measured"}
        )
        return html.beside([html.curve(drive, light, axes), html.fields(values, "Display")])

    @property
    def reflected(self) -> float:
        """Ambient light that the screen reflects, cd/m²."""
        return self.ambient * self.reflectivity / math.pi

    @cached_property
    def span(self) -> float:
        """Luminance of full white above black, cd/m²."""
        black = self.rgb_to_xyz[1] @ self.black if isinstance(self.black, tuple) else self.black
        return float(self.peak - black)

    @cached_property
    def by_gun(self) -> bool:
        """Whether the guns differ in curve or black; then a grey plane of drive has no one
        light.
        """
        return isinstance(self.black, tuple) or _are_three(self.eotf)

    @property
    def _curve(self) -> Eotf:
        """The transfer function that all guns share."""
        return cast(Eotf, self.eotf)

    @cached_property
    def guns(self) -> tuple[Display, ...]:
        """Red, green and blue, each as a grey display of its linear light."""
        blacks = self.black if isinstance(self.black, tuple) else (self.black,) * 3
        eotfs: Any = self.eotf if _are_three(self.eotf) else (self.eotf,) * 3
        return tuple(
            replace(self, peak=black + self.span, black=black, eotf=eotf, primaries="sRGB")
            for black, eotf in zip(blacks, eotfs, strict=True)
        )

    @property
    def floor(self) -> float:
        """The darkest neutral light it can show, cd/m²."""
        return (max(self.black) if isinstance(self.black, tuple) else self.black) + self.reflected

    @property
    def ceiling(self) -> float:
        """The brightest neutral light it can show, cd/m²; infinite on an extended-range display."""
        if self.extended:
            return math.inf
        peak = min(self.black) + self.span if isinstance(self.black, tuple) else self.peak
        return peak + self.reflected

    @cached_property
    def rgb_to_xyz(self) -> FloatArray:
        """Matrix from linear RGB light (cd/m²) to XYZ (Y in cd/m²)."""
        return rgb_to_xyz_matrix(*_primaries(self.primaries))

    @cached_property
    def xyz_to_rgb(self) -> FloatArray:
        """The computed inverse of `rgb_to_xyz`."""
        return np.asarray(np.linalg.inv(self.rgb_to_xyz))

    def lms_to_rgb(self, observer: str = "cie2006_led_lcd") -> FloatArray:
        """Matrix from LMS of a named observer to linear RGB light."""
        return self.xyz_to_rgb @ cone_observer(observer).to_xyz

    def light(
        self, image: DescribedImage | Array, space: str | None = None, observer: str | None = None
    ) -> Array:
        """Linear RGB light of an image, cd/m² a channel; one plane ``(..., H, W)`` stands for grey.

        Parameters
        ----------
        image, space, observer
            As in `encode`.
        """
        pixels, space, observer = _pixels(image, space, observer)
        if space == "luminance":
            return pixels
        if space not in ("xyz", "lms", "rgb"):
            raise unknown_name("space", space, ("luminance", "xyz", "lms", "rgb"))
        if pixels.ndim < 1 or pixels.shape[-1] != 3:
            raise InputError(
                f"an image in {space} has a last axis of 3; this one has shape "
                f"{tuple(pixels.shape)}"
            )
        if space == "rgb":
            return pixels
        xp = array_namespace(pixels)
        matrix = self.xyz_to_rgb if space == "xyz" else self.lms_to_rgb(observer)
        # Plane by plane, as stimuli lie in memory: products of rows of three numbers take three
        # times as long.
        colour = -min(pixels.ndim, 3)
        planes = xp.moveaxis(pixels, -1, colour)
        flat = planes.reshape(
            (
                *planes.shape[:colour],
                3,
                math.prod(planes.shape[colour + 1 :] if colour < -1 else ()),
            )
        )
        light = xp.asarray(matrix, dtype=pixels.dtype, device=pixels.device) @ flat
        return xp.moveaxis(light.reshape(planes.shape), colour, -1)

    def gamut(
        self, image: DescribedImage | Array, space: str | None = None, observer: str | None = None
    ) -> Gamut:
        """How far an image stays inside what this display can show.

        Parameters
        ----------
        image, space, observer
            As in `encode`.

        Examples
        --------
        >>> Display(peak=200).gamut([[100.0, 300.0]]).above
        1
        """
        light = self.light(image, space, observer)
        if self.by_gun:
            planes = zip(self.guns, _planes(light, image, space), strict=True)
            return _together(gun.gamut(plane) for gun, plane in planes)
        xp = array_namespace(light)
        tolerance = _SNAP[_dtype_name(light)] * self.peak
        darkest = float(xp.min(light))
        brightest = float(xp.max(light))
        if not (math.isfinite(darkest) and math.isfinite(brightest)):
            raise InputError(
                "the image holds NaN or infinite light; every pixel must be a finite number of "
                "cd/m²"
            )
        # Counting costs two passes over the image; most images are inside and need none.
        below = (
            int(xp.sum(light < self.floor - tolerance)) if darkest < self.floor - tolerance else 0
        )
        above = (
            int(xp.sum(light > self.ceiling + tolerance))
            if brightest > self.ceiling + tolerance
            else 0
        )
        margin = min(darkest - self.floor, self.ceiling - brightest) / self.span
        return Gamut(below, above, math.prod(light.shape), darkest, brightest, margin)

    def holds(self, pixels: FloatArray, space: str, observer: str) -> npt.NDArray[np.bool_]:
        """Which images of an array are inside what this display can show.

        Parameters
        ----------
        pixels : array, shape (..., H, W) or (..., H, W, 3)
            Of many images.
        space, observer
            As in `encode`.

        Returns
        -------
        array of bool, shape (...)

        Examples
        --------
        >>> Display(peak=200).holds(np.array([[[100.0, 200.0]], [[100.0, 300.0]]]), "luminance", "").tolist()
        [True, False]
        """
        light = np.asarray(self.light(pixels, space, observer))
        if self.by_gun and space != "luminance":
            each = (
                gun.holds(light[..., k], "luminance", observer) for k, gun in enumerate(self.guns)
            )
            return np.asarray(np.logical_and.reduce([*each]))
        tolerance = _SNAP[_dtype_name(light)] * self.peak
        inside = (light >= self.floor - tolerance) & (light <= self.ceiling + tolerance)
        return np.asarray(inside.all(axis=(-2, -1) if space == "luminance" else (-3, -2, -1)))

    def encode(
        self,
        image: DescribedImage | Array,
        *,
        space: str | None = None,
        observer: str | None = None,
        clip: bool = False,
        dtype: str = "float32",
    ) -> Array:
        """Drive values that make this display show an image.

        Parameters
        ----------
        image : Stimulus or array_like
            A stimulus, or pixels: luminance (..., H, W) in cd/m², or (..., H, W, 3) in the given
            space.
        space : {"luminance", "xyz", "lms", "rgb"}, optional
            What the pixels of a bare array are; "luminance" by default. "rgb" is linear RGB light
            in cd/m².
        observer : str, optional
            Cone observer of LMS pixels; a stimulus knows its own.
        clip : bool
            Show the nearest possible light where the image leaves the gamut, instead of raising.
            `gamut` counts what was clipped.
        dtype : {"float32", "float64"}
            Precision of the drive values. They are computed in that of the pixels: of float64
            pixels, drive in float32 is rounded once; of float32 pixels it is right to 2e-7.

        Returns
        -------
        array, shape (..., H, W, 3)
            Drive in [0, 1] (above 1 only on an extended-range display). A grey image comes as a
            read-only view whose three channels share one plane of memory, unless guns differ; copy
            it to write to it.

        Raises
        ------
        GamutError
            If some light is below the display's floor or above its ceiling: by how much, where, and
            what would fit.

        Examples
        --------
        >>> Display(peak=200, black=0.2, ambient=250).encode([[0.1]])
        Traceback (most recent call last):
            ...
        psyprobe.errors.GamutError: light of 0.1 cd/m² is below what this display shows (0.597887 to 200.398 cd/m²), ...
        """
        if dtype not in _SNAP:
            raise InputError(f"drive dtype is {dtype!r}; choose float32 or float64")
        pixels, space, observer = _pixels(image, space, observer)
        xp = array_namespace(pixels)
        if self.by_gun:
            light = self.light(pixels, space, observer)
            inside = self.gamut(pixels, space, observer)
            if inside.outside and not clip:
                raise GamutError(self._refusal(inside, image))
            planes = zip(self.guns, _planes(light, pixels, space), strict=True)
            return xp.stack(
                [gun.encode(plane, clip=True, dtype=dtype)[..., 0] for gun, plane in planes],
                axis=-1,
            )
        # Drive lies in memory as pixels do, those of stimuli in colour plane by plane.
        drive = xp.empty_like(pixels, dtype=getattr(xp, dtype))
        for some, out in _a_few(pixels, drive, 2 if space == "luminance" else 3):
            light = self.light(some, space, observer)
            light, part, folds = _folded(light, out, (-2, -1) if space == "luminance" else (-3, -2))
            inside = self.gamut(light, "luminance")
            if inside.outside and not clip:
                raise GamutError(self._refusal(self.gamut(pixels, space, observer), image))
            self._encode_light(light, inside, part)
            for axis, whole in reversed(folds):
                half = -(-whole.shape[axis] // 2)
                mirrored = slice(whole.shape[axis] - half - 1, None, -1)
                whole[_along(axis, slice(half, None))] = whole[_along(axis, mirrored)]
        if space != "luminance":
            return drive
        return xp.broadcast_to(drive[..., None], (*drive.shape, 3))

    def decode(self, drive: Array) -> Array:
        """Linear RGB light that drive values in [0, 1] make, cd/m² a channel, reflections included.

        Computed value by value in the precision given; the array may have any shape, but (..., 3)
        where guns differ.

        >>> float(Display(peak=100, black=1).decode(0.0))
        1.0
        """
        # Drive of any size may come out of a file; who reads it says that light is not finite.
        values = _as_floating(drive)
        if self.by_gun:
            if values.ndim == 0 or values.shape[-1] != 3:
                raise InputError(
                    f"drive of shape {tuple(values.shape)} is grey, and the guns of this "
                    "display differ; give red, "
                    "green and blue as its last axis"
                )
            light = [gun.decode(values[..., k]) for k, gun in enumerate(self.guns)]
            return array_namespace(values).stack(light, axis=-1)
        with np.errstate(over="ignore"):
            return light_of_drive(values, self._curve) * self.span + self.floor

    def luminance(self, drive: Array) -> Array:
        """Luminance that drive values of shape (..., 3) make, cd/m²."""
        light = self.decode(drive)
        return light @ array_namespace(light).asarray(
            self.rgb_to_xyz[1], dtype=light.dtype, device=light.device
        )

    def max_contrast(
        self,
        luminance: float,
        direction: Direction = "achromatic",
        *,
        observer: str = "cie2006_led_lcd",
    ) -> float:
        """The largest contrast of a modulation about a D65 background that stays in gamut on both
        sides.

        Michelson contrast for the achromatic direction, RMS cone contrast for all; 0 if the
        background itself is at or outside the limits.

        Parameters
        ----------
        luminance : float
            Background luminance, cd/m².
        direction : str or (dL, dM, dS)
            As in `psyprobe.light.colour.direction_vector`.
        observer : str
            Named cone observer.

        Examples
        --------
        >>> round(Display(peak=400, black=4.4).max_contrast(100), 3)
        0.956
        >>> round(Display(peak=400).max_contrast(100, "red_green"), 4)
        0.0931
        """
        if not (math.isfinite(luminance) and luminance > 0):
            raise InputError(f"background luminance is {luminance} cd/m²; give a finite number > 0")
        background = cone_observer(observer).from_xyz @ (white_xyz() * luminance)
        to_rgb = self.lms_to_rgb(observer)
        rgb = to_rgb @ background
        change = to_rgb @ (background * direction_vector(direction, background))
        floors, ceilings = np.array([(gun.floor, gun.ceiling) for gun in self.guns]).T
        room = np.minimum(rgb - floors, ceilings - rgb)
        limits = room[change != 0] / np.abs(change[change != 0])
        return max(0.0, float(limits.min()))

    def _refusal(self, gamut: Gamut, image: DescribedImage | Array) -> str:
        above = gamut.above and gamut.brightest - self.ceiling >= self.floor - gamut.darkest
        worst, side = (gamut.brightest, "above") if above else (gamut.darkest, "below")
        scale = self._fitting_scale(image)
        remedy = f"lower the contrast to at most {scale:.4g} of what it is, " if scale else ""
        return (
            f"light of {worst:g} cd/m² is {side} what this display shows ({self.floor:g} to "
            f"{self.ceiling:g} cd/m²), "
            f"in {100 * gamut.outside / gamut.values:.3g} % of the values; {remedy}choose a "
            "display with more range, "
            "or pass clip=True to show the nearest light"
        )

    def _fitting_scale(self, image: DescribedImage | Array) -> float:
        """The factor on the modulation that would just fit; 0 if even the background does not."""
        background = getattr(image, "background", None)
        if background is None:
            return 0.0
        light = np.asarray(self.light(image))
        centre = np.asarray(self.light(background))
        up = np.max(light - centre)
        down = np.max(centre - light)
        room_up = self.ceiling - float(np.max(centre))
        room_down = float(np.min(centre)) - self.floor
        ratios = [
            room / change for room, change in ((room_up, up), (room_down, down)) if change > 0
        ]
        return max(0.0, float(min(ratios, default=0.0)))

    def _encode_light(self, light: Array, gamut: Gamut, drive: Array) -> None:
        """Write drive of light whose place in the gamut is known."""
        has_toe = (gamut.darkest - self.floor) / self.span <= SRGB_JUNCTION
        if not isinstance(light, np.ndarray):
            drive[...] = drive_of_light(self._relative(light, gamut), self._curve, has_toe)
            return
        quick = self.eotf == "srgb" and light.dtype == np.float64 and drive.dtype == np.float32
        blocks = np.nditer(
            [light, drive],
            flags=["external_loop", "buffered", "zerosize_ok"],
            op_flags=[["readonly"], ["writeonly"]],
            op_dtypes=[light.dtype, drive.dtype],
            casting="same_kind",
            order="K",
            buffersize=_BLOCK,
        )
        with blocks:
            for some, out in blocks:
                if quick:
                    srgb_float32(self._relative(some, gamut), has_toe, out)
                    continue
                relative = self._relative(some, gamut, out if some.dtype == out.dtype else None)
                encoded = drive_of_light(relative, self._curve, has_toe)
                if encoded is not out:
                    out[...] = encoded

    def _relative(self, light: Array, gamut: Gamut, out: FloatArray | None = None) -> Array:
        """Light as a fraction of the display's range, a new array or in `out`."""
        scale = 1 / self.span
        above = light - self.floor if self.floor else light
        relative = above * scale if out is None else np.multiply(above, scale, out=out)
        if gamut.margin < 0:
            relative = array_namespace(light).clip(relative, 0.0, None if self.extended else 1.0)
        return relative


def pixels_per_degree(pixel_pitch: float, distance: float) -> float:
    """Resolution of a display at the centre of gaze, ppd as stimuli take it: 1 / (2 atan(pitch / (2
    distance))).

    Parameters
    ----------
    pixel_pitch : float
        Width of a pixel: width of the screen over its number of pixels; any unit of length.
    distance : float
        Viewing distance, in the same unit.

    Raises
    ------
    InputError
        If a length is not above 0, or the two look like they were given in the wrong order.

    Examples
    --------
    A 30 inch screen of 3840 x 2160 pixels at 0.7472 m, as ColorVideoVDP's "standard_hdr_linear":

    >>> width = 30 * 0.0254 * 16 / (16**2 + 9**2) ** 0.5
    >>> round(pixels_per_degree(width / 3840, 0.7472), 1)
    75.4
    """
    for name, length in (("pixel pitch", pixel_pitch), ("viewing distance", distance)):
        if not (math.isfinite(length) and length > 0):
            raise InputError(
                f"{name} is {length}; give a finite length above 0, both in the same unit"
            )
    ppd = 1 / math.degrees(2 * math.atan(pixel_pitch / (2 * distance)))
    if pixel_pitch > distance:
        raise InputError(
            f"pixel pitch {pixel_pitch:g} is longer than the viewing distance {distance:g}; "
            "the order is pixels_per_degree(pixel_pitch, distance), both in the same unit"
        )
    if not _FEWEST_PPD <= ppd <= _MOST_PPD:
        raise InputError(
            f"a pixel of {pixel_pitch:g} seen from {distance:g} gives {ppd:.3g} pixels per "
            "degree, and screens have "
            f"{_FEWEST_PPD:g} to {_MOST_PPD:g}; give the width of one pixel, not of the screen, "
            "and both lengths in "
            "one unit: pixels_per_degree(pixel_pitch, distance)"
        )
    return ppd


@cache
def display_presets() -> dict[str, dict[str, Any]]:
    """The catalogue of displays: name to parameters and source.

    Examples
    --------
    >>> display_presets()["reference_400"]["peak"]
    400.0
    """
    return tomllib.loads(
        (files("psyprobe.light") / "display_presets.toml").read_text(encoding="utf-8")
    )


def _checked_number(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | np.number):
        raise InputError(f"display {name} is {value!r}; give a number")
    if not 0 <= value <= _BRIGHTEST:
        raise InputError(f"display {name} is {value}; give a number from 0 to {_BRIGHTEST:g}")
    return float(value)


def _checked_black(given: Any) -> float | tuple[float, float, float]:
    if not isinstance(given, list | tuple | np.ndarray):
        return _checked_number("black", given)
    if len(given) != 3:
        raise InputError(
            f"display black has {len(given)} numbers; give one, or those of red, green and blue "
            "in cd/m²"
        )
    red, green, blue = (_checked_number("black", each) for each in given)
    return red if red == green == blue else (red, green, blue)


def _are_three(eotf: Any) -> bool:
    """Whether these are the curves of three guns, and no table of pairs."""
    return isinstance(eotf, tuple) and not all(
        isinstance(e, tuple) and isinstance(e[0], float) for e in eotf
    )


def _planes(light: Array, image: DescribedImage | Array, space: str | None) -> tuple[Array, ...]:
    """Red, green and blue of linear light; one plane stands for all of a grey."""
    if (getattr(image, "space", None) or space or "luminance") == "luminance":
        return (light,) * 3
    return light[..., 0], light[..., 1], light[..., 2]


def _together(guns: Iterable[Gamut]) -> Gamut:
    each = [*guns]
    return Gamut(
        below=sum(gun.below for gun in each),
        above=sum(gun.above for gun in each),
        values=sum(gun.values for gun in each),
        darkest=min(gun.darkest for gun in each),
        brightest=max(gun.brightest for gun in each),
        margin=min(gun.margin for gun in each),
    )


def _checked_primaries(given: Any) -> Primaries:
    if isinstance(given, str):
        _primaries(given)
        return given
    if isinstance(given, list | tuple | np.ndarray) and all(
        np.shape(each) == (3,) for each in given
    ):
        given = _chromaticities(given)
    if not isinstance(given, list | tuple | np.ndarray) or len(given) != 4:
        raise InputError(
            f"display primaries are {repr(given)[:80]}; give a name, such as 'sRGB', or (x, y) "
            "of red, green, blue "
            "and white"
        )
    *guns, white = (chromaticity("primaries", each, 2) for each in given)
    columns = np.stack([white_xyz(gun) for gun in guns], axis=1)
    flat = abs(np.linalg.det(columns)) < 1e-6 * math.prod(np.linalg.norm(columns, axis=0))
    if flat or not (np.linalg.solve(columns, white_xyz(white)) > 0).all():
        raise InputError(
            f"display primaries {(*guns, white)} do not mix to their white; give (x, y) of red, "
            "green, blue and white, "
            "the last within the triangle of the others"
        )
    return (*guns, white)


def _chromaticities(given: Any) -> Any:
    """(x, y) of red, green, blue and white, of (X, Y, Z) of these or of the guns alone."""
    xyz = [chromaticity("primaries", each, 3) for each in given]
    if len(xyz) == 3:
        xyz.append(tuple(map(sum, zip(*xyz, strict=True))))
    if not all(min(each) >= 0 < sum(each) for each in xyz):
        raise InputError(
            f"display primaries are {repr(given)[:80]}; X, Y and Z of a light are not below 0"
        )
    return [(x / (x + y + z), y / (x + y + z)) for x, y, z in xyz]


@cache
def _primaries(name: Primaries) -> tuple[tuple[tuple[float, ...], ...], tuple[float, ...] | str]:
    if isinstance(name, tuple):
        return name[:3], name[3]
    if name == "sRGB":
        return SRGB_PRIMARIES, "D65"
    if name == "PerceptualTests":
        channels = np.array(_PERCEPTUAL_TESTS_XYZ)
        x_y = [
            (float(x / (x + y + z)), float(y / (x + y + z)))
            for x, y, z in (*channels, channels.sum(axis=0))
        ]
        return tuple(x_y[:3]), x_y[3]
    try:
        # colour-science changes how numpy prints arrays when it is imported; that is not ours to
        # change.
        with np.printoptions():
            import colour
    except ImportError:
        raise InputError(
            f"primaries {name!r} are looked up in colour-science, which is not installed; "
            "use 'sRGB' or 'PerceptualTests', or pip install psyprobe[colour]"
        ) from None
    if name not in colour.RGB_COLOURSPACES:
        raise unknown_name("primaries", name, ["PerceptualTests", *colour.RGB_COLOURSPACES])
    space = colour.RGB_COLOURSPACES[name]
    x, y = (float(v) for v in space.whitepoint)
    return tuple((float(a), float(b)) for a, b in space.primaries), (x, y)


def _pixels(
    image: DescribedImage | Array, space: str | None, observer: str | None
) -> tuple[Array, str, str]:
    """Pixels, their space and observer, of a stimulus (which knows) or a bare array (which is
    told).
    """
    if hasattr(image, "pixels"):
        if space is not None:
            raise InputError("a stimulus knows its own space; give space only with a bare array")
        return image.pixels, image.space, image.observer
    return _as_floating(image), space or "luminance", observer or "cie2006_led_lcd"


def _as_floating(values: Array) -> Array:
    """Arrays of float32 and float64 as they are (numpy or torch); all else as float64 numpy."""
    if hasattr(values, "dtype") and _dtype_name(values) in _SNAP:
        return values
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"pixels must be numbers, not {type(values).__name__}") from None


def _dtype_name(values: Array) -> str:
    return _name_of(values.dtype)


@cache
def _name_of(dtype: Any) -> str:
    return str(dtype).rpartition(".")[2]
