"""Uniform fields and patterns on them: light that is modulated along a direction of colour.

Coordinates: pixel centres lie at (i - (N - 1)/2)/ppd, x to the right, y up. Factors are computed in
float64 on the processor, whatever the precision and device of the image: that is cheap, and twenty
times more exact in float32 than computing phases in float32.

`shape` is (H, W) in pixels and `ppd` pixels per degree; parameters of a batch have shape (n,), its
images (n, H, W).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from array_api_compat import array_namespace
from numpy.typing import ArrayLike

from psyprobe._typing import Array, FloatArray
from psyprobe.errors import InputError
from psyprobe.light.colour import (
    ConeObserver,
    Direction,
    chromaticity,
    cone_observer,
    direction_vector,
    white_xyz,
)
from psyprobe.light.display import Display
from psyprobe.stimulus import estimate
from psyprobe.stimulus.certificate import (
    STANDARD_ERRORS,
    Planes,
    Row,
    Sheet,
    planes_of,
    roundoff,
    tolerance,
)
from psyprobe.stimulus.estimate import Float64
from psyprobe.stimulus.parameters import parameter, tells_names
from psyprobe.stimulus.specification import Specification, Stimulus, drawn, stimulus_kind


def pixel_positions(pixels: int, ppd: float) -> FloatArray:
    """Positions of pixel centres along one axis, deg, ascending and symmetric about 0.

    Parameters
    ----------
    pixels : int
        How many.
    ppd : float
        Pixels per degree.

    Examples
    --------
    >>> pixel_positions(4, 2.0).tolist()
    [-0.75, -0.25, 0.25, 0.75]
    """
    return (np.arange(pixels) - (pixels - 1) / 2) / ppd


def offsets(
    shape: tuple[int, int], ppd: float, x: FloatArray, y: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """How far columns lie to the right of a place and rows above it, deg, shapes (n, W) and (n,
    H).
    """
    return pixel_positions(shape[1], ppd) - x[:, None], -pixel_positions(shape[0], ppd) - y[:, None]


def even(shape: tuple[int, int]) -> bool:
    """Whether both sides of an image halve into whole pixels.

    Examples
    --------
    >>> even((224, 224)), even((224, 33))
    (True, False)
    """
    return shape[0] % 2 == shape[1] % 2 == 0


def cos_sin_degrees(angle: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Cosine and sine of angles in degrees, exactly 0 and 1 at multiples of 90.

    Parameters
    ----------
    angle : array of float
        deg, any shape.

    Examples
    --------
    >>> [abs(float(v[0])) for v in cos_sin_degrees(np.array([90.0]))]
    [0.0, 1.0]
    """
    quarter, rest = np.divmod(np.asarray(angle, float), 90.0)
    c = np.cos(np.deg2rad(rest))
    s = np.sin(np.deg2rad(rest))
    odd = quarter % 2 == 1
    half = np.where(quarter % 4 < 2, 1.0, -1.0)
    return np.where(odd, -s, c) * half, np.where(odd, c, s) * half


def to_backend(values: FloatArray, dtype: str, device: str | None) -> Array:
    """A float64 numpy array, rounded once to `dtype` and moved to `device` (None keeps numpy)."""
    rounded = np.ascontiguousarray(values, dtype=dtype)
    if device is None:
        return rounded
    import torch

    # Torch warns of arrays that cannot be written to, such as a parameter that was broadcast.
    return torch.from_numpy(rounded if rounded.flags.writeable else rounded.copy()).to(device)


def in_planes(
    change: Array, step: FloatArray, level: FloatArray, dtype: str, device: str | None
) -> Array:
    """Three planes ``level + step * change`` for each image, shape (n, 3, H, W).

    Parameters
    ----------
    change : array, shape (n, H, W)
        Modulation about 0.
    step, level : ndarray, shape (n, 3)
        Of each plane, for a modulation of 1 and of 0.
    dtype, device
        As in `to_backend`.
    """
    step, level = (to_backend(each[..., None, None], dtype, device) for each in (step, level))
    xp = array_namespace(change)
    planes = xp.empty((len(change), 3, *change.shape[1:]), dtype=change.dtype, device=change.device)
    # numpy works through the cache an image at a time; a GPU takes all at once.
    together = 1 if device is None else len(change)
    for start in range(0, len(change), together):
        some = slice(start, start + together)
        xp.multiply(change[some, None], step[some], out=planes[some])
        planes[some] += level[some]
    return planes


def round_window(
    shape: tuple[int, int],
    ppd: float,
    *,
    x: FloatArray,
    y: FloatArray,
    radius: FloatArray,
    edge: FloatArray,
) -> FloatArray:
    """Discs of unit height with a raised-cosine edge.

    The window is 1 up to ``radius - edge/2``, 0 from ``radius + edge/2`` on and 1/2 at `radius`; an
    edge of 0 is a hard disc (pixels whose centres lie within the radius).
    """
    dx, dy = offsets(shape, ppd, x, y)
    distance = np.hypot(dx[:, None, :], dy[:, :, None]) - radius[:, None, None]
    width = edge[:, None, None]
    ramp = np.clip(distance / np.where(width > 0, width, 1.0) + 0.5, 0.0, 1.0)
    return np.where(width > 0, 0.5 * (1 + np.cos(np.pi * ramp)), distance <= 0)


@stimulus_kind("uniform")
@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Uniform(Specification):
    """A uniform field; parameters as in `psyprobe.uniform`.

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

    def mirrors(self) -> npt.NDArray[np.bool_]:
        """Of even sides; a kind of somebody's own that inherits from this may paint something
        else.
        """
        return np.full(self.batch, type(self) is Uniform and even(self.shape))

    def corner(self) -> tuple[Array, str]:
        """As `Specification.corner`."""
        return self._filled((self.shape[0] // 2, self.shape[1] // 2), "float64", None)

    def _pixels(self, dtype: str, device: str | None) -> tuple[Array, str]:
        return self._filled(self.shape, dtype, device)

    def _filled(self, shape: tuple[int, int], dtype: str, device: str | None) -> tuple[Array, str]:
        values = self._flat("luminance")[:, None, None, None]
        if self.chromatic:
            values = values * (cone_observer(self.observer).from_xyz @ white_xyz(self.white))
        light = to_backend(values, dtype, device)
        pixels = array_namespace(light).tile(light, (1, *shape, 1))
        channels, space = ((3,), "lms") if self.chromatic else ((), "luminance")
        return pixels.reshape((*self.batch, *shape, *channels)), space

    def promises(self, planes: Planes, sheet: Sheet) -> None:
        """One level everywhere, and no colour but that of the background."""
        sheet.add("mean luminance", self.luminance, planes.light.mean(), "mean over pixels")
        sheet.add("uniformity", 0.0, planes.light.std() / self.luminance, "SD over luminance")
        if planes.in_colour:
            cones = planes.cones()
            cast = np.abs(cones - cones.mean(axis=0)).max()
            sheet.add("colour cast", 0.0, cast, "largest difference between cone contrasts")


#: How the contrast of a kind is measured that says nothing itself.
_OWN_PATTERN = "least squares on {own pattern, 1}"


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Modulation(Specification):
    """A background whose light is modulated along a direction of colour."""

    #: Amplitude of the modulation. Achromatic: Michelson (noise: RMS, disc: Weber). Chromatic: RMS
    #: over the three cone contrasts, the unit of castleCSF.
    contrast: Any = parameter("1", "Contrast", low=0)
    #: direction, white, observer: As in `psyprobe.gabor`.
    direction: Direction = "achromatic"
    white: str | tuple[float, float] = "D65"
    observer: str = "cie2006_led_lcd"

    #: Lowest modulation of unit contrast is at least minus this; None where only the drawn image
    #: tells.
    deepest: ClassVar[float | None] = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, numbers in (("direction", 3), ("white", 2)):
            value = getattr(self, name)
            if not isinstance(value, str):
                object.__setattr__(self, name, chromaticity(name, value, numbers))
        self._check_contrast()
        _ = self.cone_contrast

    def _check_contrast(self) -> None:
        limit = 1.0 if self.direction == "achromatic" and self.deepest is not None else 10.0
        allowed = (
            f"contrast is a fraction from 0 to {limit:g}, not a percentage; more would "
            "need negative light"
        )
        self._require("contrast", self.contrast <= limit, allowed)

    @property
    def in_colour(self) -> bool:
        """Whether pixels are LMS rather than luminance."""
        return self.direction != "achromatic"

    @property
    def background_lms(self) -> FloatArray:
        """LMS of the background at a luminance of 1 cd/m², shape (3,)."""
        return cone_observer(self.observer).from_xyz @ white_xyz(self.white)

    @property
    def cone_contrast(self) -> FloatArray:
        """Modulation of L, M and S for a unit of contrast, shape (3,)."""
        return _cone_contrast(self.direction, self.white, cone_observer(self.observer))

    @property
    def luminance_share(self) -> float:
        """Modulation of L + M for a unit of contrast: 1 for achromatic, 0 for isoluminant
        stimuli.
        """
        background = self.background_lms
        share = float(self.cone_contrast[:2] @ background[:2] / background[:2].sum())
        return 0.0 if abs(share) < 1e-14 else share

    def summands(self) -> tuple[Specification, ...]:
        """Itself."""
        return (self,)

    def reference(self) -> Specification:
        """The uniform background: grey, or of this background's chromaticity."""
        field = Uniform(luminance=self.luminance, ppd=self.ppd, size=self.size)
        if not self.in_colour:
            return field
        return replace(field, chromatic=True, white=self.white, observer=self.observer)

    def bounds(self) -> tuple[FloatArray, str] | None:
        """Those of full modulation either way."""
        if self.deepest is None:
            return None
        shape = (*self.batch, 1, 1)
        luminance, contrast = (
            self._flat(name).reshape(shape) for name in ("luminance", "contrast")
        )
        change = contrast * np.array([-1.0, 1.0])
        if not self.in_colour:
            return luminance * (1 + change), "luminance"
        return luminance[..., None] * self.background_lms * (
            1 + change[..., None] * self.cone_contrast
        ), "lms"

    def unit(self) -> FloatArray:
        """The pattern of unit contrast about 0 for each image of the flattened batch, shape (n, H,
        W).
        """
        raise NotImplementedError

    def paint(
        self, amplitude: FloatArray, offset: FloatArray, dtype: str, device: str | None
    ) -> Array:
        """``offset + amplitude * unit pattern``, shape (n, H, W); for kinds that draw faster than
        by `unit`.

        Parameters
        ----------
        amplitude, offset : ndarray, shape (n,)
            One for each image of the flattened batch.
        dtype, device
            As in `draw`.
        """
        images = self.unit() * amplitude[:, None, None] + offset[:, None, None]
        return to_backend(images, dtype, device)

    def modulation(self, dtype: str, device: str | None) -> Array:
        """Relative modulation of the light about 0, shape (..., H, W)."""
        contrast = self._flat("contrast")
        change = self.paint(contrast, np.zeros_like(contrast), dtype, device)
        return change.reshape((*self.batch, *self.shape))

    def _pixels(self, dtype: str, device: str | None) -> tuple[Array, str]:
        return self._lit(self.paint, dtype, device)

    def _lit(
        self, paint: Callable[..., Array], dtype: str, device: str | None
    ) -> tuple[Array, str]:
        """Pixels of the background with what some `paint` lays on it, and their space."""
        luminance = self._flat("luminance")
        if not self.in_colour:
            pixels = paint(self._flat("contrast") * luminance, luminance, dtype, device)
            space = "luminance"
            pixels = pixels.reshape((*self.batch, *pixels.shape[1:]))
        else:
            level = luminance[:, None] * self.background_lms
            contrast = self._flat("contrast")
            change = paint(contrast, np.zeros_like(contrast), dtype, device)
            planes = in_planes(change, level * self.cone_contrast, level, dtype, device)
            pixels = planes.reshape((*self.batch, *planes.shape[1:]))
            pixels = array_namespace(pixels).moveaxis(pixels, -3, -1)
            space = "lms"
        if self.deepest is None or space == "lms":
            self._refuse_negative(pixels)
        return pixels, space

    def _refuse_negative(self, pixels: Array) -> None:
        if (darkest := float(pixels.min())) < 0:
            raise InputError(
                f"contrast {np.max(self.contrast):g} would need negative light ({darkest:g}); "
                "lower the contrast, or choose another seed, phase or direction"
            )

    def promises(self, planes: Planes, sheet: Sheet) -> None:
        """Level and contrast, by least squares on the pattern as this kind draws it."""
        one = np.ones(1)
        unit = np.asarray(self.paint(one, 0 * one, "float64", None)[0])
        level = self.luminance
        depth = self.contrast * self.luminance_share
        noise = sheet.noise(abs(self.contrast))
        mean = level * (1 + depth * unit.mean())
        sheet.add("mean luminance", mean, planes.light.mean(), "mean over pixels")
        sheet.add(
            "peak luminance",
            level * (1 + (depth * unit).max()),
            planes.light.max(),
            "largest pixel",
        )
        if self.contrast == 0 or np.ptp(unit) == 0:
            sheet.add("distortion", 0.0, planes.pattern.std() / level, "SD over background")
            return
        fit = estimate.fit_patterns(planes.pattern, unit[None])
        background = float(fit.background)
        extra = STANDARD_ERRORS * float(fit.gain[-1]) * noise / level
        sheet.add("background", level, background, _OWN_PATTERN, extra=extra)
        contrast = float(np.divide(fit.coefficients[0], level if planes.in_colour else background))
        extra = STANDARD_ERRORS * float(fit.gain[0]) * noise / (abs(self.contrast) * level)
        sheet.add_contrast("contrast", self.contrast, contrast, _OWN_PATTERN, extra=extra)
        left = float(fit.residual) / level
        how = "RMS that the pattern does not explain, over background"
        sheet.add("distortion", 0.0, left, how, extra=noise / level)

    def rows(self, image: Float64, space: str, sheet: Sheet, display: Display | None) -> list[Row]:
        """What the kind promises, and the cone contrasts of an image in colour."""
        planes = planes_of(image, space, self, display)
        self.promises(planes, sheet)
        if planes.in_colour and not sheet.shown:
            _cone_rows(planes, self, sheet)
        return sheet.rows


@lru_cache(maxsize=32)
def _cone_contrast(
    direction: Direction, white: str | tuple[float, float], observer: ConeObserver
) -> FloatArray:
    vector = direction_vector(direction, observer.from_xyz @ white_xyz(white))
    vector.setflags(write=False)
    return vector


def _cone_rows(planes: Planes, spec: Modulation, sheet: Sheet) -> None:
    """Contrast of each cone class along the direction, and silence off it."""
    wanted = spec.cone_contrast
    sums = np.zeros(4)
    products = np.zeros(4)
    furthest = 0.0
    # Some rows at a time stay in the cache, and need no new memory.
    for start in range(0, spec.shape[0], 32):
        some = slice(start, start + 32)
        along = planes.pattern[some] / spec.luminance
        cones = planes.cones(some)
        along -= 1
        sums += [*cones.sum(axis=(1, 2)), along.sum()]
        products += [*(cones.reshape(3, -1) @ along.ravel()), np.vdot(along, along)]
        cones -= wanted[:, None, None] * along
        cones *= cones
        furthest = max(furthest, float(np.sqrt(cones.sum(axis=0).max())))
    slack = STANDARD_ERRORS * roundoff(sheet.precision) * (1 + abs(spec.contrast))
    if abs(spec.contrast) > 0:
        products -= sums * sums[3] / planes.pattern.size
        rows = [row for row in sheet.rows if row.quantity in ("contrast", "rms contrast")]
        delivered = rows[0].delivered if rows else spec.contrast
        for name, asked, slope in zip("LMS", wanted, products[:3] / products[3], strict=True):
            extra = slack + tolerance("contrast", sheet.precision) * abs(spec.contrast * asked)
            extra += (
                rows[0].tolerance * abs(spec.contrast * asked)
                if rows and rows[0].tolerance
                else 0.0
            )
            requested = spec.contrast * asked
            found = delivered * slope
            how = "least squares on the pattern"
            sheet.add(
                f"{name} cone contrast", requested, found, how, key="cone contrast", extra=extra
            )
    how = "largest distance of a pixel from the line through the background"
    sheet.add("off-direction cone contrast", 0.0, furthest, how, extra=slack)
    if spec.luminance_share == 0:
        ends = np.array([planes.light.min(), planes.light.max()]) / spec.luminance
        change = np.abs(ends - 1).max()
        how = f"largest change of L + M of {spec.observer}"
        sheet.add("luminance modulation", 0.0, change, how, extra=slack)


@tells_names
def uniform(
    *,
    luminance: ArrayLike = 100.0,
    chromatic: bool = False,
    white: str | tuple[float, float] = "D65",
    observer: str = "cie2006_led_lcd",
    ppd: float = 60.0,
    size: int | tuple[int, int] = 224,
    dtype: str = "float64",
    device: str | None = None,
) -> Stimulus:
    """Draw uniform fields.

    Parameters
    ----------
    chromatic : bool
        Draw the field in LMS of `observer` with the chromaticity `white`, as the background of a
        chromatic stimulus.
    luminance, white, observer, ppd, size, dtype, device
        As in `gabor`.

    Examples
    --------
    >>> uniform(luminance=[10.0, 20.0]).luminance.shape
    (2, 224, 224)
    """
    return drawn(Uniform, locals())
