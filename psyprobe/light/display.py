"""Model a display: turn physical light into drive values and back, exactly.

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
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass, fields, replace
from functools import cache, cached_property
from typing import Any, cast

import numpy as np
from array_api_compat import array_namespace

from psyprobe._typing import Array, BoolArray, FloatArray
from psyprobe.errors import GamutError, InputError, unknown_name
from psyprobe.files.json_types import JsonMapping, JsonObject
from psyprobe.files.output import plain
from psyprobe.files.parsing import packaged_toml
from psyprobe.light.colour import (
    Direction,
    cone_observer,
    direction_vector,
    rgb_to_xyz_matrix,
    white_xyz,
)
from psyprobe.light.primaries import Primaries, checked_primaries, chromaticities
from psyprobe.light.transfer import (
    SRGB_JUNCTION,
    Eotf,
    checked_eotfs,
    drive_of_light,
    light_of_drive,
    srgb_float32,
)

#: More light than the sun's, cd/m².
_MAX_LUMINANCE = 1e10

#: Pixels per degree of what people look at: headsets from near, telephones from afar.
_MIN_PPD = 1.0
_MAX_PPD = 1000.0

#: How far beyond the gamut counts as rounding and is snapped back, in relative drive light.
_TOLERANCES = {"float64": 1e-12, "float32": 1e-6}

#: Bytes that the arithmetic of encoding works on at a time, in the processor's cache.
_BLOCK_BYTES = 1 << 17


@dataclass(frozen=True)
class Gamut:
    """How far the light of an image lies inside or outside a display's gamut."""

    #: Number of values (pixels x channels) darker than the display's floor.
    below: int
    #: Number of values brighter than its ceiling.
    above: int
    #: Number of values in all.
    values: int
    #: Smallest and largest linear RGB light, cd/m².
    darkest: float
    brightest: float
    #: Distance to the nearer limit, as a fraction of the display's range; negative outside.
    margin: float

    @property
    def outside(self) -> int:
        """Number of values that cannot be shown."""
        return self.below + self.above


@dataclass(frozen=True)
class Display:
    """A display that turns drive values in [0, 1] into light, and back.

    Parameters
    ----------
    peak : float
        Luminance of full white without reflections, cd/m².
    black : float or (red, green, blue)
        Luminance at drive 0 without reflections, cd/m²; or linear RGB light where black is not
        neutral.
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
    psyprobe.errors.GamutError: light of 500 cd/m² is above what this display shows (0 to 400 ...
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
            object.__setattr__(self, name, _check_number(name, getattr(self, name)))
        object.__setattr__(self, "black", _check_black(self.black))
        object.__setattr__(self, "primaries", checked_primaries(self.primaries))
        if not self.span > 0:
            raise InputError(
                f"display peak {self.peak:g} cd/m² is not above its black level of "
                f"{self.peak - self.span:g} cd/m²"
            )
        if self.reflectivity > 1:
            raise InputError(
                f"display reflectivity is {self.reflectivity:g}; a screen reflects 0 to 1 of the "
                "light"
            )
        object.__setattr__(self, "eotf", checked_eotfs(self.eotf))

    @classmethod
    def preset(cls, name: str) -> Display:
        """Load a display of the catalogue, such as "reference_400", "office_lcd" or "crt".

        >>> Display.preset("office_lcd").peak
        200.0
        """
        presets = display_presets()
        if name not in presets:
            raise unknown_name("display", name, presets)
        settings = {
            key: value for key, value in presets[name].items() if key != "source"
        }
        return cls.from_dict(settings)

    @classmethod
    def from_dict(cls, values: JsonMapping) -> Display:
        """Build the display that `to_dict` describes; unknown keys raise."""
        names = [field.name for field in fields(cls)]
        for key in values:
            if key not in names:
                raise unknown_name("display setting", key, names)
        return cls(**values)

    def to_dict(self) -> JsonObject:
        """Return the parameters as plain numbers, text and lists."""
        return {field.name: plain(getattr(self, field.name)) for field in fields(self)}

    def _repr_html_(self) -> str:
        """Show the display's luminance curve and settings as HTML in a notebook."""
        from psyprobe.files import html

        drive = np.linspace(0, 1, 65)
        grey = np.stack([drive] * 3, axis=-1)[None]
        light = np.asarray(self.decode(grey))[0, :, 0]
        curve = html.curve(drive, light, ("drive", "luminance (cd/m²)"))
        values = self.to_dict()
        if not isinstance(self.eotf, str | float):
            values["eotf"] = "measured"
        return html.beside([curve, html.fields(values, "Display")])

    @property
    def reflected(self) -> float:
        """Ambient light that the screen reflects, cd/m²."""
        return self.ambient * self.reflectivity / math.pi

    @cached_property
    def span(self) -> float:
        """Luminance of full white above black, cd/m²."""
        black = (
            self.rgb_to_xyz[1] @ self.black
            if isinstance(self.black, tuple)
            else self.black
        )
        return float(self.peak - black)

    @cached_property
    def guns_differ(self) -> bool:
        """Tell whether the guns differ in curve or black, so that equal drives do not make grey."""
        return isinstance(self.black, tuple) or _are_three(self.eotf)

    @property
    def _curve(self) -> Eotf:
        """The transfer function that all guns share."""
        return cast(Eotf, self.eotf)

    @cached_property
    def guns(self) -> tuple[Display, ...]:
        """A grey display for each of red, green and blue, which shows its linear light."""
        blacks = self.black if isinstance(self.black, tuple) else (self.black,) * 3
        eotfs: Any = self.eotf if _are_three(self.eotf) else (self.eotf,) * 3
        return tuple(
            replace(
                self, peak=black + self.span, black=black, eotf=eotf, primaries="sRGB"
            )
            for black, eotf in zip(blacks, eotfs, strict=True)
        )

    @property
    def floor(self) -> float:
        """The darkest neutral light it can show, cd/m²."""
        black = max(self.black) if isinstance(self.black, tuple) else self.black
        return black + self.reflected

    @property
    def ceiling(self) -> float:
        """The brightest neutral light it can show, cd/m²; infinite on an extended-range display."""
        if self.extended:
            return math.inf
        peak = (
            min(self.black) + self.span if isinstance(self.black, tuple) else self.peak
        )
        return peak + self.reflected

    @cached_property
    def rgb_to_xyz(self) -> FloatArray:
        """The matrix from linear RGB light (cd/m²) to XYZ (Y in cd/m²)."""
        return rgb_to_xyz_matrix(*chromaticities(self.primaries))

    @cached_property
    def xyz_to_rgb(self) -> FloatArray:
        """The matrix from XYZ to linear RGB light, inverted from `rgb_to_xyz`."""
        return np.asarray(np.linalg.inv(self.rgb_to_xyz))

    def lms_to_rgb(self, observer: str = "cie2006_led_lcd") -> FloatArray:
        """Compute the matrix from LMS of a named cone observer to linear RGB light."""
        return self.xyz_to_rgb @ cone_observer(observer).to_xyz

    def light(
        self,
        image: Array,
        space: str | None = None,
        observer: str | None = None,
    ) -> Array:
        """Compute the linear RGB light that an image asks for, cd/m² in each channel.

        Parameters
        ----------
        image, space, observer
            As in `encode`.

        Returns
        -------
        array, shape (..., H, W, 3), or (..., H, W) of luminance
        """
        pixels, space, observer = _resolve_image(image, space, observer)
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
        colour_axis = -min(pixels.ndim, 3)
        planes = xp.moveaxis(pixels, -1, colour_axis)
        pixels_per_plane = math.prod(planes.shape[colour_axis:][1:])
        flat = planes.reshape((*planes.shape[:colour_axis], 3, pixels_per_plane))
        light = xp.asarray(matrix, dtype=pixels.dtype, device=pixels.device) @ flat
        return xp.moveaxis(light.reshape(planes.shape), colour_axis, -1)

    def gamut(
        self,
        image: Array,
        space: str | None = None,
        observer: str | None = None,
    ) -> Gamut:
        """Measure how far an image lies inside or outside what this display can show.

        Parameters
        ----------
        image, space, observer
            As in `encode`.

        Examples
        --------
        >>> Display(peak=200).gamut([[100.0, 300.0]]).above
        1
        """
        pixels, space, observer = _resolve_image(image, space, observer)
        light = self.light(pixels, space, observer)
        if self.guns_differ:
            planes = self._planes(light, space)
            return _join_gamuts([gun.gamut(plane) for gun, plane in planes])
        xp = array_namespace(light)
        tolerance = _TOLERANCES[_dtype_name(light.dtype)] * self.peak
        darkest = float(xp.min(light))
        brightest = float(xp.max(light))
        if not (math.isfinite(darkest) and math.isfinite(brightest)):
            raise InputError(
                "the image holds NaN or infinite light; every pixel must be a finite number of "
                "cd/m²"
            )
        # Counting costs two passes over the image; most images are inside and need none.
        below = 0
        above = 0
        if darkest < self.floor - tolerance:
            below = int(xp.sum(light < self.floor - tolerance))
        if brightest > self.ceiling + tolerance:
            above = int(xp.sum(light > self.ceiling + tolerance))
        margin = min(darkest - self.floor, self.ceiling - brightest) / self.span
        return Gamut(below, above, math.prod(light.shape), darkest, brightest, margin)

    def holds(self, pixels: FloatArray, space: str, observer: str) -> BoolArray:
        """Tell for each of many images whether this display can show it.

        Parameters
        ----------
        pixels : array, shape (..., H, W) or (..., H, W, 3)
            Pixels of the images.
        space, observer
            As in `encode`.

        Returns
        -------
        array of bool, shape (...)

        Examples
        --------
        >>> images = np.array([[[100.0, 200.0]], [[100.0, 300.0]]])
        >>> Display(peak=200).holds(images, "luminance", "").tolist()
        [True, False]
        """
        light = np.asarray(self.light(pixels, space, observer))
        if self.guns_differ:
            planes = self._planes(light, space)
            by_gun = [gun.holds(plane, "luminance", observer) for gun, plane in planes]
            return np.asarray(np.logical_and.reduce(by_gun))
        tolerance = _TOLERANCES[_dtype_name(light.dtype)] * self.peak
        inside = (light >= self.floor - tolerance) & (light <= self.ceiling + tolerance)
        return np.asarray(
            inside.all(axis=(-2, -1) if space == "luminance" else (-3, -2, -1))
        )

    def encode(
        self,
        image: Array,
        *,
        space: str | None = None,
        observer: str | None = None,
        clip: bool = False,
        dtype: str = "float32",
    ) -> Array:
        """Compute the drive values that make this display show an image.

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
            `gamut` counts the values that are clipped.
        dtype : {"float32", "float64"}
            Precision of the drive values. They are computed in the precision of the pixels: from
            float64 pixels, drive in float32 is rounded once; from float32 pixels it is right to
            2e-7.

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
        psyprobe.errors.GamutError: light of 0.1 cd/m² is below what this display shows (0.5978...
        """
        if dtype not in _TOLERANCES:
            raise InputError(f"drive dtype is {dtype!r}; choose float32 or float64")
        pixels, space, observer = _resolve_image(image, space, observer)
        xp = array_namespace(pixels)
        if self.guns_differ:
            light = self.light(pixels, space, observer)
            inside = self.gamut(pixels, space, observer)
            if inside.outside and not clip:
                raise GamutError(self._refusal(inside, image))
            drives = [
                gun.encode(plane, clip=True, dtype=dtype)[..., 0]
                for gun, plane in self._planes(light, space)
            ]
            return xp.stack(drives, axis=-1)
        # Drive lies in memory as pixels do, those of stimuli in colour plane by plane.
        drive = xp.empty_like(pixels, dtype=getattr(xp, dtype))
        image_dimensions = 2 if space == "luminance" else 3
        for some_pixels, some_drive in _paired_chunks(pixels, drive, image_dimensions):
            light = self.light(some_pixels, space, observer)
            # Half of every image of vertical stripes is measured and encoded, and then copied.
            copied = _mirrored_rows(light) if self._is_quick(light, drive) else 0
            upper = some_drive
            if copied:
                light = light[..., :-copied, :]
                upper = some_drive[..., :-copied, :]
            inside = self.gamut(light, "luminance")
            if inside.outside and not clip:
                raise GamutError(
                    self._refusal(self.gamut(pixels, space, observer), image)
                )
            self._encode_light(light, inside, upper)
            if copied:
                some_drive[..., -copied:, :] = some_drive[..., copied - 1 :: -1, :]
        if space != "luminance":
            return drive
        return xp.broadcast_to(drive[..., None], (*drive.shape, 3))

    def decode(self, drive: Array) -> Array:
        """Compute the linear RGB light that drive values make, cd/m² a channel, with reflections.

        Values are in [0, 1] and computed one by one in their own precision; their array may have
        any shape, but (..., 3) where guns differ.

        >>> float(Display(peak=100, black=1).decode(0.0))
        1.0
        """
        # Drive of any size may come out of a file; its reader says that light is not finite.
        values = _as_floating(drive)
        if self.guns_differ:
            if values.ndim == 0 or values.shape[-1] != 3:
                raise InputError(
                    f"drive of shape {tuple(values.shape)} is grey, and the guns of this display "
                    "differ; give red, green and blue as its last axis"
                )
            light = [gun.decode(values[..., k]) for k, gun in enumerate(self.guns)]
            return array_namespace(values).stack(light, axis=-1)
        with np.errstate(over="ignore"):
            light = light_of_drive(values, self._curve)
            light *= self.span
            light += self.floor
            return light

    def luminance(self, drive: Array) -> Array:
        """Compute the luminance that drive values of shape (..., 3) make, cd/m²."""
        light = self.decode(drive)
        xp = array_namespace(light)
        weights = xp.asarray(self.rgb_to_xyz[1], dtype=light.dtype, device=light.device)
        return light @ weights

    def max_contrast(
        self,
        luminance: float,
        direction: Direction = "achromatic",
        *,
        observer: str = "cie2006_led_lcd",
    ) -> float:
        """Compute the largest contrast about a D65 background that stays in gamut on both sides.

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
            raise InputError(
                f"background luminance is {luminance} cd/m²; give a finite number > 0"
            )
        background = cone_observer(observer).from_xyz @ (white_xyz() * luminance)
        to_rgb = self.lms_to_rgb(observer)
        rgb = to_rgb @ background
        change = to_rgb @ (background * direction_vector(direction, background))
        floors, ceilings = np.array([(gun.floor, gun.ceiling) for gun in self.guns]).T
        room = np.minimum(rgb - floors, ceilings - rgb)
        limits = room[change != 0] / np.abs(change[change != 0])
        return max(0.0, float(limits.min()))

    def _planes(self, light: Array, space: str) -> list[tuple[Display, Array]]:
        """Pair each gun (red, green, blue) with its plane of linear light, or one plane if grey."""
        is_grey = space == "luminance"
        return [
            (gun, light if is_grey else light[..., k])
            for k, gun in enumerate(self.guns)
        ]

    def _refusal(self, gamut: Gamut, image: Array) -> str:
        """Build the error that says by how much an image leaves the gamut, and what would fit."""
        excess = gamut.brightest - self.ceiling
        if gamut.above and excess >= self.floor - gamut.darkest:
            worst = gamut.brightest
            side = "above"
        else:
            worst = gamut.darkest
            side = "below"
        share = 100 * gamut.outside / gamut.values
        scale = self._fitting_scale(image)
        remedy = (
            f"lower the contrast to at most {scale:.4g} of what it is, "
            if scale
            else ""
        )
        return (
            f"light of {worst:g} cd/m² is {side} what this display shows ({self.floor:g} to "
            f"{self.ceiling:g} cd/m²), in {share:.3g} % of the values; {remedy}choose a display "
            "with more range, or pass clip=True to show the nearest light"
        )

    def _fitting_scale(self, image: Array) -> float:
        """Compute the factor by which to scale an image's modulation so that it just fits."""
        background = getattr(image, "background", None)
        if background is None:
            return 0.0
        light = np.asarray(self.light(image))
        centre = np.asarray(self.light(background))
        room_above = self.ceiling - float(np.max(centre))
        room_below = float(np.min(centre)) - self.floor
        changes = (
            (room_above, np.max(light - centre)),
            (room_below, np.max(centre - light)),
        )
        ratios = [room / change for room, change in changes if change > 0]
        return max(0.0, float(min(ratios, default=0.0)))

    def _encode_light(self, light: Array, gamut: Gamut, drive: Array) -> None:
        """Write the drive values (0 to 1) of light whose gamut was measured into an array."""
        has_toe = (gamut.darkest - self.floor) / self.span <= SRGB_JUNCTION
        if not isinstance(light, np.ndarray):
            drive[...] = drive_of_light(
                self._relative(light, gamut), self._curve, has_toe
            )
            return
        quick = self._is_quick(light, drive)
        blocks = np.nditer(
            [light, drive],
            flags=["external_loop", "buffered", "zerosize_ok"],
            op_flags=[["readonly"], ["writeonly"]],
            op_dtypes=[light.dtype, drive.dtype],
            casting="same_kind",
            order="K",
            buffersize=_BLOCK_BYTES // light.dtype.itemsize,
        )
        with blocks:
            for block, out in blocks:
                relative = self._relative(block, gamut)
                if quick:
                    srgb_float32(relative, has_toe, out)
                else:
                    out[...] = drive_of_light(relative, self._curve, has_toe)

    def _is_quick(self, light: Array, drive: Array) -> bool:
        """Tell whether `srgb_float32` encodes light."""
        return (
            self.eotf == "srgb"
            and isinstance(light, np.ndarray)
            and light.dtype == np.float64
            and drive.dtype == np.float32
        )

    def _relative(self, light: Array, gamut: Gamut) -> Array:
        """Compute light as a fraction of the display's range, as a new array."""
        above = light - self.floor if self.floor else light
        relative = above * (1 / self.span)
        if gamut.margin < 0:
            relative = array_namespace(light).clip(
                relative, 0.0, None if self.extended else 1.0
            )
        return relative


#: Values that are converted and checked at once, so that they stay in the processor's cache.
_CHUNK_VALUES = 1 << 16


def _paired_chunks(
    pixels: Array, drive: Array, image_dimensions: int
) -> Iterator[tuple[Array, Array]]:
    """Iterate over two batches of images together, a few images at a time.

    That keeps numpy within the processor's cache; a GPU takes all images at once.
    """
    if not isinstance(pixels, np.ndarray) or pixels.ndim <= image_dimensions:
        yield pixels, drive
        return
    values_per_image = max(1, math.prod(pixels.shape[1:]))
    count = max(1, _CHUNK_VALUES // values_per_image)
    for start in range(0, len(pixels), count):
        yield pixels[start : start + count], drive[start : start + count]


def _mirrored_rows(light: FloatArray) -> int:
    """Count the lower rows of images that mirror the upper ones: half of all, or none."""
    if light.ndim < 2:
        return 0
    half = light.shape[-2] // 2
    from_end = light[..., : -half - 1 : -1, :]
    return half if np.array_equal(light[..., :half, :], from_end) else 0


def pixels_per_degree(pixel_pitch: float, distance: float) -> float:
    """Compute the resolution of a display at the centre of gaze, as `ppd` of stimuli.

    It is 1 / (2 atan(pitch / (2 distance))), in degrees.

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
            f"pixel pitch {pixel_pitch:g} is longer than the viewing distance {distance:g}; the "
            "order is pixels_per_degree(pixel_pitch, distance), both in the same unit"
        )
    if not _MIN_PPD <= ppd <= _MAX_PPD:
        raise InputError(
            f"a pixel of {pixel_pitch:g} seen from {distance:g} gives {ppd:.3g} pixels per degree, "
            f"and screens have {_MIN_PPD:g} to {_MAX_PPD:g}; give the width of one pixel, not of "
            "the screen, and both lengths in one unit: pixels_per_degree(pixel_pitch, distance)"
        )
    return ppd


@cache
def display_presets() -> dict[str, JsonObject]:
    """Load the catalogue of displays: the parameters and source of each, by name.

    Examples
    --------
    >>> display_presets()["reference_400"]["peak"]
    400.0
    """
    return packaged_toml("psyprobe.light", "display_presets.toml")


def _check_number(name: str, value: Any) -> float:
    """Check that a setting of the display is a number from 0 to the largest luminance."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.number):
        raise InputError(f"display {name} is {value!r}; give a number")
    if not 0 <= value <= _MAX_LUMINANCE:
        raise InputError(
            f"display {name} is {value}; give a number from 0 to {_MAX_LUMINANCE:g}"
        )
    return float(value)


def _check_black(black: Any) -> float | tuple[float, float, float]:
    """Check the black level, cd/m²: a number, or three that differ for red, green and blue."""
    if not isinstance(black, list | tuple | np.ndarray):
        return _check_number("black", black)
    if len(black) != 3:
        raise InputError(
            f"display black has {len(black)} numbers; give one, or those of red, green and blue in "
            "cd/m²"
        )
    red, green, blue = (_check_number("black", light) for light in black)
    return red if red == green == blue else (red, green, blue)


def _are_three(eotf: Any) -> bool:
    """Tell whether a transfer function is three, one for each gun."""
    if not isinstance(eotf, tuple):
        return False
    return not all(
        isinstance(entry, tuple) and isinstance(entry[0], float) for entry in eotf
    )


def _join_gamuts(gamuts: Sequence[Gamut]) -> Gamut:
    """Sum up what several images have outside the gamut, with the extremes over all."""
    below, above, values, darkest, brightest, margin = zip(
        *map(astuple, gamuts), strict=True
    )
    return Gamut(
        sum(below), sum(above), sum(values), min(darkest), max(brightest), min(margin)
    )


def _resolve_image(
    image: Array, space: str | None, observer: str | None
) -> tuple[Array, str, str]:
    """Return the pixels, colour space and cone observer of a stimulus or of an array."""
    if hasattr(image, "pixels"):
        if space is not None:
            raise InputError(
                "a stimulus knows its own space; give space only with a bare array"
            )
        return image.pixels, image.space, image.observer
    return _as_floating(image), space or "luminance", observer or "cie2006_led_lcd"


def _as_floating(values: Array) -> Array:
    """Convert an array to floating point, float32 and float64 as they are."""
    if hasattr(values, "dtype") and _dtype_name(values.dtype) in _TOLERANCES:
        return values
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(
            f"pixels must be numbers, not {type(values).__name__}"
        ) from None


@cache
def _dtype_name(dtype: Any) -> str:
    """Return the name of a dtype without its module: "float32" for `torch.float32`."""
    return str(dtype).rpartition(".")[2]
