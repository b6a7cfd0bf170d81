"""Gabors, gratings and discs: what lies under an envelope or behind a window."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike

from psyprobe._typing import Array, FloatArray
from psyprobe.errors import unknown_name
from psyprobe.light.colour import Direction
from psyprobe.stimulus import estimate, pattern
from psyprobe.stimulus.certificate import STANDARD_ERRORS, Planes, Sheet, roundoff
from psyprobe.stimulus.estimate import Float64
from psyprobe.stimulus.parameters import AREA, DerivedLevel, parameter, tells_names
from psyprobe.stimulus.pattern import Modulation
from psyprobe.stimulus.sines import PatternFit, Sine
from psyprobe.stimulus.specification import Stimulus, drawn, stimulus_kind

_LINEAR = "least squares on {E cos, E sin, 1}"
_ON_DISC = "least squares on {disc, 1}"
_REFINED = "Gauss-Newton on all parameters"

#: Waves narrower than this across the field are surely meant in another unit.
_FEWEST_CYCLES = 0.5


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class _Wave(Modulation):
    """A sinusoidal carrier."""

    frequency: Any = parameter("cpd", "Spatial frequency", low=0, above=True)
    orientation: Any = parameter("deg", "Orientation", default=0.0)
    phase: Any = parameter("deg", "Phase", default=0.0)
    x: Any = parameter("deg", "Horizontal position", default=0.0)
    y: Any = parameter("deg", "Vertical position", default=0.0)

    # What a kind has that does not let them be chosen.
    window = "gaussian"
    radius = aspect = 1.0
    edge = 0.0
    balanced = False

    def __post_init__(self) -> None:
        super().__post_init__()
        shown = (
            f"a display of {self.ppd:g} pixels per degree shows frequencies above 0 and "
            f"below {self.ppd / 2:g} cpd"
        )
        allowed = f"{shown} (Nyquist); lower the frequency or raise ppd"
        self._require("frequency", self.frequency < self.ppd / 2, allowed)
        longest = max(self.field)
        few = f"fewer than {_FEWEST_CYCLES:g} cycles would fit on the field of {longest:.4g} deg"
        allowed = f"{few}; frequency is in cycles per degree, not per pixel"
        self._require("frequency", self.frequency * longest >= _FEWEST_CYCLES, allowed)

    def mirrors(self) -> npt.NDArray[np.bool_]:
        """Of upright waves with a peak or a trough at the middle of the field, under a round
        envelope or none.
        """
        central = (self.x == 0) & (self.y == 0) & (self.aspect == 1)
        upright = central & (self.phase % 180 == 0) & (self.orientation % 90 == 0)
        # A kind of somebody's own that inherits from these may paint something else.
        known = (
            type(self) in (Gabor, Grating)
            and self.window in ("none", "gaussian")
            and not self.balanced
        )
        return np.broadcast_to(upright & (known and pattern.even(self.shape)), self.batch)

    def corner(self) -> tuple[Array, str]:
        """As `Specification.corner`."""
        radius = self._flat("radius") if self.window == "gaussian" else None
        return self._lit(
            partial(self._carrier, radius=radius, balanced=False, corner=True), "float64", None
        )

    def _carrier(
        self,
        amplitude: FloatArray,
        offset: FloatArray,
        dtype: str,
        device: str | None,
        radius: FloatArray | None,
        balanced: bool,
        corner: bool = False,
    ) -> Array:
        """As `paint`, under a round envelope of this radius or none; all of each image, or its
        upper left quarter.

        cos(a + b) = cos a cos b - sin a sin b, and a round Gaussian is a product: so each image is
        a product of an H x 2 and a 2 x W matrix. Balancing subtracts the multiple of the envelope
        that makes the sum zero, a third column.
        """
        dx, dy = pattern.offsets(self.shape, self.ppd, self._flat("x"), self._flat("y"))
        if corner:
            dx, dy = (each[:, : each.shape[1] // 2] for each in (dx, dy))
        frequency = self._flat("frequency")
        cosine, sine = pattern.cos_sin_degrees(self._flat("orientation"))
        across = (
            2 * np.pi * (frequency * cosine)[:, None] * dx
            + np.deg2rad(self._flat("phase"))[:, None]
        )
        down = 2 * np.pi * (frequency * sine)[:, None] * dy
        envelope_x = np.ones_like(dx)
        envelope_y = np.ones_like(dy)
        if radius is not None:
            envelope_x, envelope_y = (np.exp(-(d**2) / (2 * radius**2)[:, None]) for d in (dx, dy))
        columns = np.stack([np.cos(across) * envelope_x, -np.sin(across) * envelope_x], axis=1)
        rows = np.stack([np.cos(down) * envelope_y, np.sin(down) * envelope_y], axis=2)
        if balanced:
            total = np.einsum("nhk,nkw->n", rows, columns)
            share = total / (envelope_x.sum(axis=1) * envelope_y.sum(axis=1))
            columns = np.concatenate([columns, -share[:, None, None] * envelope_x[:, None]], axis=1)
            rows = np.concatenate([rows, envelope_y[..., None]], axis=2)
        columns *= amplitude[:, None, None]
        if offset.any():
            # The mean rides along as one more row and column, which saves a pass over the images.
            rows = np.concatenate([rows, np.ones_like(rows[..., :1])], axis=2)
            columns = np.concatenate(
                [columns, np.broadcast_to(offset[:, None, None], columns[:, :1].shape)], axis=1
            )
        return pattern.to_backend(rows, dtype, device) @ pattern.to_backend(columns, dtype, device)

    def envelope(self) -> Float64:
        """The envelope that was asked for, drawn for measuring."""
        if self.window == "none":
            return np.ones(self.shape)
        place = {"x": self.x, "y": self.y}
        if self.window == "gaussian":
            turned = {"aspect": self.aspect, "orientation": self.orientation}
            return estimate.gaussian(self.shape, self.ppd, self.radius, **turned, **place)
        edge = self.edge if self.window == "raised_cosine" else 0.0
        return estimate.round_window(self.shape, self.ppd, self.radius, edge=edge, **place)

    def promises(self, planes: Planes, sheet: Sheet) -> None:
        """Levels, contrast, and where the wave really lies."""
        level = self.luminance
        depth = self.contrast * self.luminance_share
        wave = self._sine()
        phase = np.radians(self.phase)
        average, spread, lowest, highest = _levels(wave.image(np.cos(phase), -np.sin(phase)))
        fit = wave.fit(planes.light)
        sheet.add(
            "mean luminance", level * (1 + depth * average), float(fit.mean), "mean over pixels"
        )
        noise = sheet.noise(self.contrast, 2 * np.pi * self.frequency * max(self.field))
        background = float(fit.background)
        extra = STANDARD_ERRORS * float(fit.background_gain) * noise / level
        sheet.add("background", level, background, _LINEAR, extra=extra)
        if planes.in_colour:
            fit = wave.fit(planes.pattern)
            sheet.add(
                "background modulation",
                0.0,
                float(fit.background) / level - 1,
                _LINEAR,
                key="cone contrast",
            )
        if self.contrast == 0:
            sheet.add("distortion", 0.0, float(fit.deviation) / level, "SD over background")
            return
        scale = STANDARD_ERRORS * noise / (self.contrast * level)
        contrast = float(np.divide(fit.amplitude, background))
        sheet.add_contrast(
            "contrast", self.contrast, contrast, _LINEAR, extra=scale * float(fit.gain)
        )
        if not planes.in_colour:
            rms = level * depth * spread / (level * (1 + depth * average))
            extra = scale / np.sqrt(fit.left.size) / max(spread, 1e-6)
            sheet.add(
                "rms contrast",
                rms,
                float(np.divide(fit.deviation, fit.mean)),
                "SD over mean",
                extra=extra,
            )
        peak = level * (1 + max(depth * highest, depth * lowest))
        sheet.add("peak luminance", peak, planes.light.max(), "largest pixel")
        if sheet.refined:
            self._refined(wave.refine(planes.pattern, start=fit), noise, sheet)

    def _sine(self) -> Sine:
        """What is looked for in its pixels."""
        names = ("shape", "ppd", "frequency", "orientation", "x", "y")
        asked = {name: getattr(self, name) for name in names} | {"pedestal": self.balanced}
        if self.window == "gaussian":
            return Sine(**asked, radius=self.radius, aspect=self.aspect)
        return Sine(**asked, window=None if self.window == "none" else self.envelope())

    def _refined(self, fit: PatternFit, noise: float, sheet: Sheet) -> None:
        """Where the wave and its envelope lie, and what no wave explains."""

        def slack(name: str, unit: float = 1.0) -> float:
            error = STANDARD_ERRORS * fit.gain[name] * noise / unit
            return error if np.isfinite(error) else 0.0

        sheet.add(
            "frequency",
            self.frequency,
            fit.frequency,
            _REFINED,
            extra=slack("frequency", self.frequency),
        )
        turned = (fit.orientation - self.orientation + 90) % 180 - 90
        sheet.add(
            "orientation",
            self.orientation,
            self.orientation + turned,
            _REFINED,
            extra=slack("orientation"),
        )
        ahead = (fit.phase - self.phase + 180) % 360 - 180
        sheet.add("phase", self.phase, self.phase + ahead, _REFINED, extra=slack("phase"))
        doubt = 0.0
        if self.window == "disc":
            doubt = estimate.edge_pixels(self.shape, self.ppd, self.radius, self.x, self.y)
        elif self.window == "gaussian":
            for axis, asked, found in (("x", self.x, fit.x), ("y", self.y, fit.y)):
                extra = slack(axis) * self.ppd
                sheet.add(
                    f"position {axis}",
                    asked * self.ppd,
                    found * self.ppd,
                    _REFINED,
                    key="position",
                    extra=extra,
                )
            sheet.add(
                "radius", self.radius, fit.radius, _REFINED, extra=slack("radius", self.radius)
            )
            sheet.add(
                "aspect", self.aspect, fit.aspect, _REFINED, extra=slack("aspect", self.aspect)
            )
        how = "RMS that no Gabor or grating explains, over background"
        extra = doubt * self.contrast + 2 * noise / self.luminance
        sheet.add("distortion", 0.0, fit.residual / self.luminance, how, extra=extra)


def _levels(image: Float64) -> tuple[float, float, float, float]:
    """Mean, standard deviation, smallest and largest pixel of an image, which is used up."""
    mean = float(image.mean())
    lowest = float(image.min())
    highest = float(image.max())
    image -= mean
    return mean, float(np.sqrt(np.vdot(image, image) / image.size)), lowest, highest


@stimulus_kind("gabor")
@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Gabor(_Wave):
    """A sinusoid under a Gaussian envelope.

    ``L = luminance (1 + contrast E(u, v) cos(2 pi frequency u + phase))``, where u runs across the
    stripes, v along them, and ``E = exp(-(u² + (v/aspect)²) / (2 radius²))``.

    Parameters as in `psyprobe.gabor`.

    Examples
    --------
    >>> Gabor(frequency=[2.0, 4.0], contrast=0.5, size=64).draw().pixels.shape
    (2, 64, 64)
    """

    radius: Any = parameter("deg", "Radius", default=1.0, low=0, above=True)
    aspect: Any = parameter("1", "Aspect ratio", default=1.0, low=0, above=True)
    balanced: bool = False

    contrast_kind: ClassVar[str | None] = "michelson"
    derived_levels: ClassVar[Mapping[str, DerivedLevel]] = {"area": AREA}

    def __post_init__(self) -> None:
        super().__post_init__()
        longest = max(self.field)
        allowed = (
            "the envelope's standard deviation must be above 0 and at most the field of "
            f"{longest:.4g} deg"
        )
        self._require("radius", self.radius <= longest, allowed)

    def bounds(self) -> tuple[FloatArray, str] | None:
        """A balanced one may leave them."""
        return None if self.balanced else super().bounds()

    def paint(
        self, amplitude: FloatArray, offset: FloatArray, dtype: str, device: str | None
    ) -> Array:
        """``offset + amplitude * Gabor``, shape (n, H, W)."""
        if np.all(self.aspect == 1):
            return self._carrier(
                amplitude, offset, dtype, device, self._flat("radius"), self.balanced
            )
        # An oblique ellipse is no product of rows and columns: it is multiplied on.
        dx, dy = pattern.offsets(self.shape, self.ppd, self._flat("x"), self._flat("y"))
        dx = dx[:, None, :]
        dy = dy[:, :, None]
        cosine, sine = (
            degree[:, None, None] for degree in pattern.cos_sin_degrees(self._flat("orientation"))
        )
        across = dx * cosine + dy * sine
        along = dy * cosine - dx * sine
        sigma, ratio = (self._flat(name)[:, None, None] for name in ("radius", "aspect"))
        envelope = np.exp(-(across**2 + (along / ratio) ** 2) / (2 * sigma**2))
        change = (
            self._carrier(
                np.ones_like(amplitude), np.zeros_like(offset), "float64", None, None, False
            )
            * envelope
        )
        if self.balanced:
            change -= (
                envelope * (change.sum(axis=(1, 2)) / envelope.sum(axis=(1, 2)))[:, None, None]
            )
        return pattern.to_backend(
            change * amplitude[:, None, None] + offset[:, None, None], dtype, device
        )

    def _pixels(self, dtype: str, device: str | None) -> tuple[Array, str]:
        pixels, space = super()._pixels(dtype, device)
        if self.balanced:
            self._refuse_negative(pixels)
        return pixels, space


@stimulus_kind("grating")
@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Grating(_Wave):
    """A sinusoid over the whole field, or behind a window; parameters as in `psyprobe.grating`.

    Examples
    --------
    >>> Grating(frequency=3.0, contrast=1.0, window="disc", radius=1.5).draw().pixels.shape
    (224, 224)
    """

    window: str = "none"
    radius: Any = parameter("deg", "Radius", default=1.0, low=0, above=True)
    edge: Any = parameter("deg", "Width of the edge", default=0.25, low=0, above=True)

    contrast_kind: ClassVar[str | None] = "michelson"
    windows: ClassVar[tuple[str, ...]] = ("none", "gaussian", "raised_cosine", "disc")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.window not in self.windows:
            raise unknown_name("window", str(self.window), self.windows)
        allowed = "a raised cosine's ramp must be above 0 and at most twice the radius"
        self._require("edge", self.edge <= 2 * self.radius, allowed)

    def paint(
        self, amplitude: FloatArray, offset: FloatArray, dtype: str, device: str | None
    ) -> Array:
        """``offset + amplitude * windowed grating``, shape (n, H, W)."""
        if self.window in ("none", "gaussian"):
            radius = self._flat("radius") if self.window == "gaussian" else None
            return self._carrier(amplitude, offset, dtype, device, radius, False)
        names = ("x", "y", "radius", "edge")
        distinct, which = np.unique(
            np.stack([self._flat(n) for n in names]), axis=1, return_inverse=True
        )
        values = dict(zip(names, distinct, strict=True))
        if self.window == "disc":
            values["edge"] = np.zeros_like(values["edge"])
        windows = pattern.to_backend(
            pattern.round_window(self.shape, self.ppd, **values), dtype, device
        )
        change = self._carrier(amplitude, np.zeros_like(offset), dtype, device, None, False)
        change *= windows if windows.shape[0] == 1 else windows[which.ravel()]
        change += pattern.to_backend(offset[:, None, None], dtype, device)
        return change


@stimulus_kind("ring")
@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Ring(_Wave):
    """A sinusoid in a ring, which surrounds a target without touching it.

    The window is a raised-cosine disc of `radius` minus one of `inner`, each at half height there.

    Examples
    --------
    >>> ring = Ring(frequency=4.0, contrast=0.5, radius=1.5, inner=0.5625).draw()
    >>> float(ring.luminance[112, 112]), round(float(ring.luminance[112].max()))
    (100.0, 149)
    """

    radius: Any = parameter("deg", "Radius", default=1.5, low=0, above=True)
    inner: Any = parameter("deg", "Inner radius", default=0.5625, low=0, above=True)
    edge: Any = parameter("deg", "Width of the edges", default=0.125, low=0, above=True)

    window = "ring"
    contrast_kind: ClassVar[str | None] = "michelson"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._require(
            "inner",
            self.inner < self.radius,
            "the inner radius must be above 0 and below the radius",
        )
        self._require(
            "edge",
            self.edge <= 2 * self.inner,
            "a raised cosine's ramp must be above 0 and at most twice it",
        )

    def envelope(self) -> Float64:
        """The ring that was asked for, drawn for measuring."""
        place = {"edge": self.edge, "x": self.x, "y": self.y}
        outer, inner = (
            estimate.round_window(self.shape, self.ppd, r, **place)
            for r in (self.radius, self.inner)
        )
        return outer - inner

    def paint(
        self, amplitude: FloatArray, offset: FloatArray, dtype: str, device: str | None
    ) -> Array:
        """``offset + amplitude * ring of a grating``, shape (n, H, W)."""
        place = {name: self._flat(name) for name in ("x", "y", "edge")}
        outer, inner = (
            pattern.round_window(self.shape, self.ppd, radius=self._flat(name), **place)
            for name in ("radius", "inner")
        )
        change = self._carrier(amplitude, np.zeros_like(offset), dtype, device, None, False)
        change *= pattern.to_backend(outer - inner, dtype, device)
        change += pattern.to_backend(offset[:, None, None], dtype, device)
        return change


@stimulus_kind("disc")
@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Disc(Modulation):
    """A uniform disc on a uniform background; parameters as in `psyprobe.disc`.

    Examples
    --------
    >>> disc = Disc(contrast=0.5, radius=1.0, luminance=20.0).draw()
    >>> float(disc.luminance[112, 112]), float(disc.luminance[0, 0])
    (30.0, 20.0)
    """

    contrast: Any = parameter("1", "Contrast", low=-1, high=10)
    radius: Any = parameter("deg", "Radius", default=1.0, low=0, above=True)
    edge: Any = parameter("deg", "Width of the edge", default=0.0, low=0)
    x: Any = parameter("deg", "Horizontal position", default=0.0)
    y: Any = parameter("deg", "Vertical position", default=0.0)

    contrast_kind: ClassVar[str | None] = "weber"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._require("edge", self.edge <= 2 * self.radius, "0 to twice the radius")

    def _check_contrast(self) -> None:
        """A disc may be darker than its background, and many times as bright."""

    def unit(self) -> FloatArray:
        """Discs of unit height."""
        names = ("x", "y", "radius", "edge")
        return pattern.round_window(
            self.shape, self.ppd, **{name: self._flat(name) for name in names}
        )

    def promises(self, planes: Planes, sheet: Sheet) -> None:
        """Levels, contrast and radius, by least squares on a disc."""
        level = self.luminance
        disc = estimate.round_window(
            self.shape, self.ppd, self.radius, edge=self.edge, x=self.x, y=self.y
        )
        depth = self.contrast * self.luminance_share
        doubt = (
            estimate.edge_pixels(self.shape, self.ppd, self.radius, self.x, self.y)
            if self.edge == 0
            else 0.0
        )
        noise = sheet.noise(abs(self.contrast))
        mean = level * (1 + depth * disc.mean())
        extra = abs(depth) * doubt**2 * level / mean
        sheet.add("mean luminance", mean, planes.light.mean(), "mean over pixels", extra=extra)
        sheet.add(
            "peak luminance",
            level * (1 + float((depth * disc).max())),
            planes.light.max(),
            "largest pixel",
        )
        if np.ptp(disc) == 0 or self.contrast == 0:
            sheet.add("uniformity", 0.0, planes.light.std() / level, "SD over luminance")
            return
        fit = estimate.fit_patterns(planes.pattern, disc[None])
        step = float(fit.coefficients[0])
        background = float(fit.background)
        extra = (
            STANDARD_ERRORS * float(fit.gain[-1]) * noise / level + abs(self.contrast) * doubt**2
        )
        if not planes.in_colour:
            base = background
            sheet.add("background", level, background, _ON_DISC, extra=extra)
        else:
            base = level
            off = background / level - 1
            sheet.add("background modulation", 0.0, off, _ON_DISC, key="cone contrast", extra=extra)
        share = doubt**2 / min(float(disc.mean()), 1 - float(disc.mean()))
        extra = STANDARD_ERRORS * float(fit.gain[0]) * noise / (abs(self.contrast) * level) + share
        # A flat disc rounds as one: its two levels may be off in opposite directions, by half a
        # step of drive, which display transfer functions make four times as large in light.
        extra += (5e-7 if sheet.shown else 8 * roundoff(sheet.precision)) / abs(self.contrast)
        sheet.add("contrast", self.contrast, float(np.divide(step, base)), _ON_DISC, extra=extra)
        weight = (planes.pattern - background) / step
        delivered = float(np.sqrt(max(weight.sum(), 0.0) / np.pi)) / self.ppd
        asked = float(np.sqrt(disc.sum() / np.pi)) / self.ppd
        extra = share + STANDARD_ERRORS * noise / (abs(self.contrast) * level) / np.sqrt(disc.sum())
        sheet.add("radius", asked, delivered, "of the circle of equal area", extra=extra)
        left = float(fit.residual) / level
        how = "RMS that no disc explains, over background"
        sheet.add(
            "distortion", 0.0, left, how, extra=doubt * abs(self.contrast) + 2 * noise / level
        )


@tells_names
def gabor(
    *,
    frequency: ArrayLike,
    contrast: ArrayLike,
    luminance: ArrayLike = 100.0,
    radius: ArrayLike = 1.0,
    orientation: ArrayLike = 0.0,
    phase: ArrayLike = 0.0,
    x: ArrayLike = 0.0,
    y: ArrayLike = 0.0,
    aspect: ArrayLike = 1.0,
    balanced: bool = False,
    direction: Direction = "achromatic",
    white: str | tuple[float, float] = "D65",
    observer: str = "cie2006_led_lcd",
    ppd: float = 60.0,
    size: int | tuple[int, int] = 224,
    dtype: str = "float64",
    device: str | None = None,
) -> Stimulus:
    """Draw Gabors: sinusoids under a Gaussian envelope.

    Parameters
    ----------
    frequency : float or array
        Spatial frequency, cpd, below Nyquist (ppd/2). Arrays, here and below, broadcast to a grid
        of images.
    contrast : float or array
        Amplitude over luminance at the centre of the envelope (Michelson), 0 to 1. In colour: RMS
        over the three cone contrasts, the unit of castleCSF.
    luminance : float or array
        Of the background, cd/m².
    radius : float or array
        Standard deviation of the envelope across the stripes, deg.
    orientation : float or array
        deg counter-clockwise; 0 is vertical stripes.
    phase : float or array
        deg; 0 puts a peak at the centre of the envelope.
    x, y : float or array
        Centre, deg to the right and up.
    aspect : float or array
        Standard deviation along the stripes over that across; 1 is round.
    balanced : bool
        Subtract the multiple of the envelope that makes the mean equal to `luminance`.
    direction : str or (dL, dM, dS)
        "achromatic", "red_green", "yellow_violet", or a modulation in LMS.
    white : str or (x, y)
        Chromaticity of the background of a chromatic stimulus.
    observer : str
        Named cone observer of a chromatic stimulus.
    ppd : float
        Pixels per degree of visual angle.
    size : int or (H, W)
        Pixels.
    dtype : {"float64", "float32"}
        Precision of the pixels.
    device : str, optional
        A torch device ("cpu", "cuda:0") to draw tensors there; numpy without it.

    Examples
    --------
    >>> import numpy as np
    >>> f, c = np.geomspace(1, 16, 5), np.geomspace(0.01, 1, 4)
    >>> gabor(frequency=f[:, None], contrast=c, size=64).luminance.shape
    (5, 4, 64, 64)
    """
    return drawn(Gabor, locals())


@tells_names
def grating(
    *,
    frequency: ArrayLike,
    contrast: ArrayLike,
    luminance: ArrayLike = 100.0,
    orientation: ArrayLike = 0.0,
    phase: ArrayLike = 0.0,
    x: ArrayLike = 0.0,
    y: ArrayLike = 0.0,
    window: str = "none",
    radius: ArrayLike = 1.0,
    edge: ArrayLike = 0.25,
    direction: Direction = "achromatic",
    white: str | tuple[float, float] = "D65",
    observer: str = "cie2006_led_lcd",
    ppd: float = 60.0,
    size: int | tuple[int, int] = 224,
    dtype: str = "float64",
    device: str | None = None,
) -> Stimulus:
    """Draw gratings: sinusoids over the whole field, or behind a window.

    Parameters
    ----------
    window : {"none", "gaussian", "raised_cosine", "disc"}
        What the grating is seen through.
    radius : float or array
        Of the window, deg: standard deviation of a Gaussian, at half height of a raised cosine, all
        of a disc.
    edge : float or array
        Width of the ramp of a raised cosine, deg.
    frequency, contrast, luminance, orientation, phase, x, y, direction, white, observer, ppd, size,
    dtype, device
        As in `gabor`.

    Examples
    --------
    >>> grating(frequency=2.0, contrast=0.5, orientation=90).luminance.shape
    (224, 224)
    """
    return drawn(Grating, locals())


@tells_names
def disc(
    *,
    contrast: ArrayLike,
    luminance: ArrayLike = 100.0,
    radius: ArrayLike = 1.0,
    edge: ArrayLike = 0.0,
    x: ArrayLike = 0.0,
    y: ArrayLike = 0.0,
    direction: Direction = "achromatic",
    white: str | tuple[float, float] = "D65",
    observer: str = "cie2006_led_lcd",
    ppd: float = 60.0,
    size: int | tuple[int, int] = 224,
    dtype: str = "float64",
    device: str | None = None,
) -> Stimulus:
    """Draw discs on a uniform background.

    Parameters
    ----------
    contrast : float or array
        Weber contrast of the disc, -1 to 10 (a chromatic disc: RMS cone contrast).
    radius : float or array
        deg.
    edge : float or array
        Width of a raised-cosine edge, deg; 0 is hard (pixels whose centres lie within the radius).
    luminance, x, y, direction, white, observer, ppd, size, dtype, device
        As in `gabor`.

    Examples
    --------
    >>> disc(contrast=-0.2, radius=0.5).luminance.shape
    (224, 224)
    """
    return drawn(Disc, locals())
