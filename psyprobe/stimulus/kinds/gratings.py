"""Gabors, gratings and rings: sinusoids under an envelope or behind a window."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from psyprobe._typing import Array, FloatArray, Levels, Size
from psyprobe.errors import unknown_name
from psyprobe.light.colour import Direction
from psyprobe.stimulus import estimate, pattern
from psyprobe.stimulus.backend import Backend
from psyprobe.stimulus.certificate import ImageMeasurements
from psyprobe.stimulus.estimate import Float64
from psyprobe.stimulus.measuring import Planes
from psyprobe.stimulus.parameters import (
    AREA,
    check_keywords,
    common,
    parameter,
)
from psyprobe.stimulus.pattern import Modulation
from psyprobe.stimulus.registry import stimulus_kind
from psyprobe.stimulus.sines import PatternFit, Sine
from psyprobe.stimulus.specification import draw_kind
from psyprobe.stimulus.stimulus import Stimulus
from psyprobe.stimulus.tolerances import STANDARD_ERRORS

#: Estimators, as the certificate names them.
_LINEAR = "least squares on {E cos, E sin, 1}"
_REFINED = "Gauss-Newton on all parameters"

#: Parameters of a window, if the kind has them.
_GEOMETRY = ("x", "y", "radius", "inner", "edge")

#: Waves with fewer cycles across the field are surely meant in another unit.
_FEWEST_CYCLES = 0.5


class _Wave(Modulation):
    """A sinusoidal carrier under an envelope."""

    frequency: Levels = common("frequency")
    orientation: Levels = common("orientation", default=0.0)
    phase: Levels = common("phase", default=0.0)
    x: Levels = common("x", default=0.0)
    y: Levels = common("y", default=0.0)

    # The envelope of kinds for which these are no parameters.
    window = "gaussian"
    radius = aspect = 1.0
    edge = 0.0
    balanced = False

    def __post_init__(self) -> None:
        super().__post_init__()
        nyquist = self.ppd / 2
        allowed = (
            f"a display of {self.ppd:g} pixels per degree shows frequencies above 0 and "
            f"below {nyquist:g} cpd (Nyquist); lower the frequency or raise ppd"
        )
        self._require("frequency", self.frequency < self.ppd / 2, allowed)
        longest = max(self.field)
        allowed = (
            f"fewer than {_FEWEST_CYCLES:g} cycles would fit on the field of {longest:.4g} deg; "
            "frequency is in cycles per degree, not per pixel"
        )
        self._require("frequency", self.frequency * longest >= _FEWEST_CYCLES, allowed)

    def factors(
        self, amplitude: FloatArray, offset: FloatArray
    ) -> tuple[FloatArray, FloatArray] | None:
        """Factor the images that `paint` draws; None of a window that is no such product."""
        # A kind that paints in another way draws another pattern.
        if type(self).paint is not _Wave.paint or not self._is_product:
            return None
        return self._factor(amplitude, offset)

    @property
    def _is_product(self) -> bool:
        """Tell whether the envelope is a product of a column and a row."""
        return self.window in ("none", "gaussian") and bool(np.all(self.aspect == 1))

    def _factor(
        self, amplitude: FloatArray, offset: FloatArray, *, bare: bool = False
    ) -> tuple[FloatArray, FloatArray]:
        """Factor the wave under its Gaussian envelope, or the bare wave, (n, H, k) and (n, k, W).

        cos(a + b) = cos a cos b - sin a sin b, and a round Gaussian is a product: so each image is
        a product of an H x 2 and a 2 x W matrix. Balancing subtracts the multiple of the envelope
        that makes the sum zero, a third column.
        """
        dx, dy = pattern.offsets(
            self.shape, self.ppd, self.per_image("x"), self.per_image("y")
        )
        frequency = self.per_image("frequency")
        cosine, sine = pattern.cos_sin_degrees(self.per_image("orientation"))
        phase = np.deg2rad(self.per_image("phase"))[:, None]
        across = 2 * np.pi * (frequency * cosine)[:, None] * dx + phase
        down = 2 * np.pi * (frequency * sine)[:, None] * dy
        envelope_x = np.ones_like(dx)
        envelope_y = np.ones_like(dy)
        if self.window == "gaussian" and not bare:
            double_variance = (2 * self.per_image("radius") ** 2)[:, None]
            envelope_x = np.exp(-(dx**2) / double_variance)
            envelope_y = np.exp(-(dy**2) / double_variance)
        columns = [np.cos(across) * envelope_x, -np.sin(across) * envelope_x]
        rows = [np.cos(down) * envelope_y, np.sin(down) * envelope_y]
        if self.balanced and not bare:
            total = np.einsum(
                "nhk,nkw->n", np.stack(rows, axis=2), np.stack(columns, axis=1)
            )
            share = total / (envelope_x.sum(axis=1) * envelope_y.sum(axis=1))
            columns.append(-share[:, None] * envelope_x)
            rows.append(envelope_y)
        columns = [column * amplitude[:, None] for column in columns]
        if offset.any():
            # The mean rides along as one more row and column, which saves a pass over the images.
            columns.append(np.full(dx.shape, offset[:, None]))
            rows.append(np.ones_like(dy))
        return np.stack(rows, axis=2), np.stack(columns, axis=1)

    def paint(
        self, amplitude: FloatArray, offset: FloatArray, backend: Backend
    ) -> Array:
        """Draw ``offset + amplitude * windowed wave``, shape (n, H, W)."""
        if self._is_product:
            columns, rows = map(backend.array, self._factor(amplitude, offset))
            return columns @ rows
        return self._paint_window(amplitude, offset, backend)

    def _paint_window(
        self, amplitude: FloatArray, offset: FloatArray, backend: Backend
    ) -> Array:
        """Draw a wave behind a window that is multiplied on."""
        # Images that share a window share its drawing.
        names = [name for name in _GEOMETRY if name in self.numeric]
        columns = np.stack([self.per_image(name) for name in names])
        distinct, window_index = np.unique(columns, axis=1, return_inverse=True)
        numbers = dict(zip(names, distinct, strict=True))
        windows = backend.array(self._draw_windows(numbers))
        bare = self._factor(amplitude, np.zeros_like(offset), bare=True)
        carrier_columns, carrier_rows = map(backend.array, bare)
        change = carrier_columns @ carrier_rows
        change *= windows if len(windows) == 1 else windows[window_index.ravel()]
        change += backend.array(offset[:, None, None])
        return change

    def _draw_windows(self, numbers: dict[str, FloatArray]) -> FloatArray:
        """Draw round windows from their sizes and places, shape (n, H, W)."""
        if self.window == "disc":
            numbers["edge"] = np.zeros_like(numbers["edge"])
        return pattern.round_window(self.shape, self.ppd, **numbers)

    def envelope(self) -> Float64:
        """Draw the requested envelope by code other than the stimulus's, to measure by, (H, W)."""
        if self.window == "none":
            return np.ones(self.shape)
        centre = {"x": self.x, "y": self.y}
        if self.window == "gaussian":
            ellipse = {"aspect": self.aspect, "orientation": self.orientation}
            return estimate.gaussian(
                self.shape, self.ppd, self.radius, **ellipse, **centre
            )
        edge = self.edge if self.window == "raised_cosine" else 0.0
        return estimate.round_window(
            self.shape, self.ppd, self.radius, edge=edge, **centre
        )

    def measured_together(self, most: int) -> Iterator[Self]:
        """Iterate over parts of the batch that all have a contrast, or have none."""
        # A kind that measures otherwise takes one image at a time.
        if not self.batch or type(self).measure_planes is not _Wave.measure_planes:
            yield from self.singles()
            return
        blank = self.per_image("contrast") == 0
        changes = np.flatnonzero(np.diff(blank)) + 1
        for positions in np.split(np.arange(blank.size), changes):
            for start in range(0, positions.size, most):
                yield self.select(self.batch, positions[start : start + most])

    def measure_planes(self, planes: Planes, measurements: ImageMeasurements) -> None:
        """Measure levels, contrast, frequency, orientation, phase and place of the wave.

        Images and numbers may be those of a batch.
        """
        level = self.luminance
        contrast = self.contrast
        depth = contrast * self.luminance_share
        wave = self._sine()
        phase = np.radians(self.phase)
        pattern = wave.levels(depth * np.cos(phase), -depth * np.sin(phase))
        fit = wave.fit(planes.light)
        mean = level * (1 + pattern.mean)
        measurements.add("mean luminance", mean, fit.mean, "mean over pixels")
        phase_range = 2 * np.pi * self.frequency * max(self.field)
        error = measurements.pixel_error(contrast, phase_range)
        background = fit.background
        extra = STANDARD_ERRORS * fit.background_gain * error / level
        measurements.add("background", level, background, _LINEAR, extra=extra)
        if planes.in_colour:
            fit = wave.fit(planes.pattern)
            change = fit.background / level - 1
            measurements.add(
                "background modulation", 0.0, change, _LINEAR, key="cone contrast"
            )
        if np.all(contrast == 0):
            distortion = fit.deviation / level
            measurements.add("distortion", 0.0, distortion, "SD over background")
            return
        slack = STANDARD_ERRORS * error / (contrast * level)
        delivered = np.divide(fit.amplitude, background)
        extra = slack * fit.gain
        measurements.add_contrast("contrast", contrast, delivered, _LINEAR, extra=extra)
        if not planes.in_colour:
            requested = level * pattern.deviation / mean
            delivered = np.divide(fit.deviation, fit.mean)
            spread = np.maximum(pattern.deviation / contrast, 1e-6)
            extra = slack / math.sqrt(math.prod(self.shape)) / spread
            measurements.add(
                "rms contrast", requested, delivered, "SD over mean", extra=extra
            )
        peak = level * (1 + pattern.highest)
        brightest = planes.light.max(axis=(-2, -1))
        measurements.add("peak luminance", peak, brightest, "largest pixel")
        if measurements.refined:
            refined = wave.refine(fit)
            self._measure_geometry(refined, error, measurements)

    def _sine(self) -> Sine:
        """Return the sine wave that the measurement fits to the pixels."""
        names = ("shape", "ppd", "frequency", "orientation", "x", "y")
        place = {name: getattr(self, name) for name in names}
        place["pedestal"] = self.balanced
        if self.window == "gaussian":
            return Sine(**place, radius=self.radius, aspect=self.aspect)
        if self.window == "none":
            return Sine(**place)
        if not self.batch:
            return Sine(**place, window=self.envelope())
        windows = [single.envelope() for single in self.singles()]
        return Sine(**place, window=np.stack(windows))

    def _measure_geometry(
        self, fit: PatternFit, pixel_error: Levels, measurements: ImageMeasurements
    ) -> None:
        """Add measurements of where the wave and its envelope lie, and of the residual."""

        def slack(name: str, scale: Levels) -> Levels:
            error = STANDARD_ERRORS * fit.gain[name] * pixel_error / scale
            return np.where(np.isfinite(error), error, 0.0)

        def add(
            quantity: str, requested: Levels, delivered: Levels, scale: Levels = 1.0
        ) -> None:
            extra = slack(quantity, scale)
            measurements.add(quantity, requested, delivered, _REFINED, extra=extra)

        add("frequency", self.frequency, fit.frequency, self.frequency)
        turn = (fit.orientation - self.orientation + 90) % 180 - 90
        add("orientation", self.orientation, self.orientation + turn)
        lead = (fit.phase - self.phase + 180) % 360 - 180
        add("phase", self.phase, self.phase + lead)
        doubt: Levels = 0.0
        if self.window == "disc":
            doubt = estimate.edge_pixels(
                self.shape, self.ppd, self.radius, self.x, self.y
            )
        elif self.window == "gaussian":
            for axis, requested, delivered in (
                ("x", self.x, fit.x),
                ("y", self.y, fit.y),
            ):
                measurements.add(
                    f"position {axis}",
                    requested * self.ppd,
                    delivered * self.ppd,
                    _REFINED,
                    key="position",
                    extra=slack(axis, 1.0) * self.ppd,
                )
            add("radius", self.radius, fit.radius, self.radius)
            add("aspect", self.aspect, fit.aspect, self.aspect)
        distortion = fit.residual / self.luminance
        method = "RMS that no Gabor or grating explains, over background"
        extra = doubt * self.contrast + 2 * pixel_error / self.luminance
        measurements.add("distortion", 0.0, distortion, method, extra=extra)


@stimulus_kind("gabor")
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

    radius: Levels = common("radius", default=1.0)
    aspect: Levels = parameter("1", "Aspect ratio", default=1.0, low=0, above=True)
    balanced: bool = False

    contrast_kind = "michelson"
    derived_levels = AREA

    def __post_init__(self) -> None:
        super().__post_init__()
        longest = max(self.field)
        allowed = (
            "the envelope's standard deviation must be above 0 and at most the field of "
            f"{longest:.4g} deg"
        )
        self._require("radius", self.radius <= longest, allowed)

    def bounds(self) -> tuple[FloatArray, str] | None:
        """Compute bounds of the pixels' light without drawing; none for balanced Gabors."""
        return None if self.balanced else super().bounds()

    def _paint_window(
        self, amplitude: FloatArray, offset: FloatArray, backend: Backend
    ) -> Array:
        """Draw Gabors under ellipses."""
        # An oblique ellipse is no product of rows and columns: it is multiplied on.
        dx, dy = pattern.offsets(
            self.shape, self.ppd, self.per_image("x"), self.per_image("y")
        )
        dx = dx[:, None, :]
        dy = dy[:, :, None]
        cosine, sine = pattern.cos_sin_degrees(
            self.per_image("orientation")[:, None, None]
        )
        across = dx * cosine + dy * sine
        along = dy * cosine - dx * sine
        sigma = self.per_image("radius")[:, None, None]
        ratio = self.per_image("aspect")[:, None, None]
        envelope = np.exp(-(across**2 + (along / ratio) ** 2) / (2 * sigma**2))
        carrier_columns, carrier_rows = self._factor(
            np.ones_like(amplitude), np.zeros_like(offset), bare=True
        )
        change = carrier_columns @ carrier_rows * envelope
        if self.balanced:
            share = change.sum(axis=(1, 2)) / envelope.sum(axis=(1, 2))
            change -= envelope * share[:, None, None]
        return backend.array(change * amplitude[:, None, None] + offset[:, None, None])

    def _draw_pixels(self, backend: Backend) -> tuple[Array, str]:
        """Draw the Gabors, refusing balanced ones that need negative light."""
        pixels, space = super()._draw_pixels(backend)
        if self.balanced:
            self._refuse_negative(pixels)
        return pixels, space


class WindowedWave(_Wave):
    """A wave over the whole field, or behind a window of a name."""

    window: str = "none"
    radius: Levels = common("radius", default=1.0)
    edge: Levels = parameter(
        "deg", "Width of the edge", default=0.25, low=0, above=True
    )

    contrast_kind = "michelson"
    windows = ("none", "gaussian", "raised_cosine", "disc")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.window not in self.windows:
            raise unknown_name("window", str(self.window), self.windows)
        allowed = "a raised cosine's ramp must be above 0 and at most twice the radius"
        self._require("edge", self.edge <= 2 * self.radius, allowed)


@stimulus_kind("grating")
class Grating(WindowedWave):
    """A sinusoid over the whole field, or behind a window; parameters as in `psyprobe.grating`.

    Examples
    --------
    >>> Grating(frequency=3.0, contrast=1.0, window="disc", radius=1.5).draw().pixels.shape
    (224, 224)
    """


@stimulus_kind("ring")
class Ring(_Wave):
    """A sinusoid in a ring, which surrounds a target without touching it.

    The window is a raised-cosine disc of `radius` minus one of `inner`; each has half its height
    there.

    Examples
    --------
    >>> ring = Ring(frequency=4.0, contrast=0.5, radius=1.5, inner=0.5625).draw()
    >>> float(ring.luminance[112, 112]), round(float(ring.luminance[112].max()))
    (100.0, 149)
    """

    radius: Levels = common("radius", default=1.5)
    inner: Levels = parameter("deg", "Inner radius", default=0.5625, low=0, above=True)
    edge: Levels = parameter(
        "deg", "Width of the edges", default=0.125, low=0, above=True
    )

    window = "ring"
    contrast_kind = "michelson"

    def __post_init__(self) -> None:
        super().__post_init__()
        allowed = "the inner radius must be above 0 and below the radius"
        self._require("inner", self.inner < self.radius, allowed)
        allowed = "a raised cosine's ramp must be above 0 and at most twice it"
        self._require("edge", self.edge <= 2 * self.inner, allowed)

    def envelope(self) -> Float64:
        """Draw the requested ring by other code than the stimulus's, to measure with, (H, W)."""
        place = {"edge": self.edge, "x": self.x, "y": self.y}
        outer = estimate.round_window(self.shape, self.ppd, self.radius, **place)
        inner = estimate.round_window(self.shape, self.ppd, self.inner, **place)
        return outer - inner

    def _draw_windows(self, numbers: dict[str, FloatArray]) -> FloatArray:
        """Draw the window of each ring: the outer disc less the inner."""
        inner_radius = numbers.pop("inner")
        outer = super()._draw_windows(numbers)
        return outer - super()._draw_windows(numbers | {"radius": inner_radius})


@check_keywords
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
    size: int | Size = 224,
    dtype: str = "float64",
    device: str | None = None,
) -> Stimulus:
    """Draw Gabors: sinusoids under a Gaussian envelope.

    Parameters
    ----------
    frequency : float or array
        Spatial frequency, cpd, below Nyquist (ppd/2). Arrays of any parameter broadcast to a grid
        of images.
    contrast : float or array
        Amplitude over luminance at the centre of the envelope (Michelson), 0 to 1. In colour: RMS
        over the three cone contrasts, the unit of castleCSF.
    luminance : float or array
        Luminance of the background, cd/m².
    radius : float or array
        Standard deviation of the envelope across the stripes, deg.
    orientation : float or array
        Degrees counter-clockwise; 0 is vertical stripes.
    phase : float or array
        Degrees; 0 puts a peak at the centre of the envelope.
    x, y : float or array
        Centre, deg to the right and up.
    aspect : float or array
        Standard deviation along the stripes over that across them; 1 is round.
    balanced : bool
        Subtract the multiple of the envelope that makes the mean equal to `luminance`.
    direction : str or (dL, dM, dS)
        "achromatic", "red_green", "yellow_violet", or a modulation in LMS.
    white : str or (x, y)
        Chromaticity of the background of a chromatic stimulus.
    observer : str
        Name of the cone observer of a chromatic stimulus.
    ppd : float
        Pixels per degree of visual angle.
    size : int or (H, W)
        Size, pixels.
    dtype : {"float64", "float32"}
        Precision of the pixels.
    device : str, optional
        A torch device ("cpu", "cuda:0") to draw tensors there; numpy without it.

    Examples
    --------
    >>> import numpy as np
    >>> frequency = np.geomspace(1, 16, 5)
    >>> contrast = np.geomspace(0.01, 1, 4)
    >>> gabor(frequency=frequency[:, None], contrast=contrast, size=64).luminance.shape
    (5, 4, 64, 64)
    """
    return draw_kind(Gabor, locals())


@check_keywords
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
    size: int | Size = 224,
    dtype: str = "float64",
    device: str | None = None,
) -> Stimulus:
    """Draw gratings: sinusoids over the whole field, or behind a window.

    Parameters
    ----------
    window : {"none", "gaussian", "raised_cosine", "disc"}
        What the grating is seen through.
    radius : float or array
        Radius of the window, deg: the standard deviation of a Gaussian, where a raised cosine has
        half its height, the edge of a disc.
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
    return draw_kind(Grating, locals())
