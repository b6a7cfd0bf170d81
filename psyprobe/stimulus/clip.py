"""Clips: stimuli in time, whose frames are still stimuli, drawn a few at a time.

Frame k of T is shown at ``t_k = (k - (T - 1)/2) / fps`` seconds and stays for 1/fps; the time
course of contrast has its peak in the middle of the clip. Each frame is a stimulus of a still kind
with a contrast and a phase: colour, precision and gamut are those of stills, and no more frames
than `Clip.chunks` gives at a time are ever in memory.

What showing a frame for so long does to its contrast, a factor of ``sinc(f/fps)``, is not drawn.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import ClassVar, NamedTuple

import numpy as np

from psyprobe._typing import Array, FloatArray, Levels, Shape
from psyprobe.errors import InputError
from psyprobe.files.json_types import JsonObject
from psyprobe.light.display import Display
from psyprobe.stimulus.backend import Backend
from psyprobe.stimulus.certificate import (
    Certificate,
    ImageMeasurements,
    Measurement,
    worst_measurements,
)
from psyprobe.stimulus.estimate import Float64, fit_patterns
from psyprobe.stimulus.measuring import (
    DisplayedLight,
    display_gain,
    displayed_light,
    displayed_measurements,
    gamut_measurements,
    planes_of,
)
from psyprobe.stimulus.parameters import number, parameter
from psyprobe.stimulus.pattern import Modulation, Uniform
from psyprobe.stimulus.registry import stimulus_kind
from psyprobe.stimulus.specification import Specification
from psyprobe.stimulus.stimulus import Stimulus
from psyprobe.stimulus.time_course import Complex, fit_time_course, time_course
from psyprobe.stimulus.tolerances import STANDARD_ERRORS

#: Pixels of a chunk: 8 frames of 224 x 224 px.
_CHUNK_PIXELS = 8 * 224 * 224
_LARGEST_FRAME_COUNT = 1_000_000
#: How far from a whole number the cycles of a clip may be, cycles, before its mean and spectrum
#: move.
_CYCLE_TOLERANCE = 1e-6


class Clip(Specification):
    """A stimulus of many frames.

    A kind of clip only has to define `stills`: then it is drawn, compared with a uniform clip and
    certified frame by frame.

    Examples
    --------
    >>> from psyprobe.stimulus import Drift
    >>> clip = Drift(frequency=4, temporal_frequency=8, contrast=0.1, frames=30, size=64)
    >>> clip.extent, clip.duration
    ((30, 64, 64), 0.5)
    """

    is_clip = True
    #: Frames differ.
    steady = False

    #: Frames a second.
    fps: float = parameter("Hz", "Frame rate", default=60.0, numeric=False)
    #: Number of frames of the whole clip.
    frames: int = parameter("frames", "Length", default=60, numeric=False)

    def __post_init__(self) -> None:
        self._check_count("fps", "frames a second", "a number above 0")
        self._check_count("frames", "frames", "a whole number")
        object.__setattr__(self, "fps", float(self.fps))
        object.__setattr__(self, "frames", int(self.frames))
        super().__post_init__()

    def _check_count(self, name: str, unit: str, allowed: str) -> None:
        """Refuse a count or rate that is not above 0, too large, or a broken number of frames."""
        value = number(name, getattr(self, name), unit)
        in_range = not np.ndim(value) and 0 < value <= _LARGEST_FRAME_COUNT
        if not in_range or (name == "frames" and value % 1):
            raise InputError(
                f"{name} is {getattr(self, name)!r} {unit}; give {allowed}, at most "
                f"{_LARGEST_FRAME_COUNT:,}"
            )

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), "cautions", "chunks", "still_frame"})

    @property
    def extent(self) -> Shape:
        """Frames and pixels (T, H, W)."""
        return (self.frames, *self.shape)

    @property
    def duration(self) -> float:
        """Length of the clip, s."""
        return self.frames / self.fps

    @property
    def times(self) -> FloatArray:
        """When each frame is shown, s from the middle of the clip, shape (T,)."""
        return (np.arange(self.frames) - (self.frames - 1) / 2) / self.fps

    def stills(self, start: int, stop: int) -> Specification:
        """Return the frames `start` to `stop` (exclusive) as still stimuli.

        Returns
        -------
        Specification
            Of a still kind, whose batch is that of the clip with one more axis of ``stop - start``
            frames; `along_frames` gives parameters that axis.

        Examples
        --------
        >>> from psyprobe.stimulus import Drift
        >>> clip = Drift(frequency=4, contrast=[0.1, 0.2], temporal_frequency=5, frames=30)
        >>> clip.stills(0, 10).batch
        (2, 10)
        """
        raise NotImplementedError

    def along_frames(self, name: str) -> Levels:
        """Return a parameter's values with a last axis of length 1, along which frames lie."""
        value = getattr(self, name)
        return value[..., None] if isinstance(value, np.ndarray) else value

    def reference(self) -> Specification:
        """Return the uniform clip of the same length and colour, without the pattern."""
        field = self.still_frame().reference()
        if not isinstance(field, Uniform):
            raise InputError(
                f"a frame of {self.kind!r} is told apart from {field!r}, which is not uniform; "
                "give this kind of clip a method reference()"
            )
        return UniformClip(
            luminance=self.luminance,
            ppd=self.ppd,
            size=self.size,
            fps=self.fps,
            frames=self.frames,
            chromatic=field.chromatic,
            white=field.white,
            observer=field.observer,
        )

    def still_frame(self) -> Specification:
        """Return the clip's middle frame as a still.

        It stands for the clip where there is room for one image.

        Examples
        --------
        >>> from psyprobe.stimulus import Flicker
        >>> Flicker(contrast=0.2, temporal_frequency=5, frames=31).still_frame().kind
        'disc'
        """
        middle = self.frames // 2
        return next(self.stills(middle, middle + 1).singles())

    def chunks(
        self, frames: int | None = None, *, dtype: str = "float64"
    ) -> Iterator[Stimulus]:
        """Draw the clip a few frames at a time.

        Parameters
        ----------
        frames : int, optional
            Frames of a chunk; by default as many as make some 400,000 pixels.
        dtype : {"float64", "float32"}
            As in `draw`.

        Examples
        --------
        >>> from psyprobe.stimulus import Drift
        >>> clip = Drift(frequency=4, contrast=0.1, temporal_frequency=5, frames=600)
        >>> next(clip.chunks()).pixels.shape
        (8, 224, 224)
        >>> sum(len(chunk.pixels) for chunk in clip.chunks(50))
        600
        """
        frame_pixels = math.prod(self.shape) * math.prod(self.batch)
        count = frames or max(1, _CHUNK_PIXELS // frame_pixels)
        for start in range(0, self.frames, count):
            stop = min(start + count, self.frames)
            yield self.stills(start, stop).draw(dtype=dtype)

    def measure(self, display: Display | None = None) -> Certificate:
        """Measure the clip chunk by chunk as it is drawn, as `Stimulus.measure`.

        Examples
        --------
        >>> from psyprobe.stimulus import Flicker
        >>> clip = Flicker(contrast=0.2, temporal_frequency=7.5, frames=40, size=64)
        >>> certificate = clip.measure()
        >>> round(certificate["temporal frequency"].delivered, 9)
        7.5
        >>> certificate.passed, round(certificate["contrast"].delivered, 9)
        (True, 0.2)
        """
        measurements: list[Measurement] = []
        for index, single in enumerate(self.singles()):
            entries = worst_measurements(single._measure_single(display))
            if self.batch:
                entries = tuple(replace(entry, image=index) for entry in entries)
            measurements += entries
        worst = worst_measurements(measurements)
        return Certificate(worst, repr(self), "float64", math.prod(self.batch))

    def _measure_single(self, display: Display | None) -> list[Measurement]:
        """Measure one clip as it is drawn, and as a display shows it."""
        space = next(self.chunks(1)).space
        frames = (
            frame for chunk in self.chunks() for frame in np.asarray(chunk.pixels)
        )
        collected = ImageMeasurements(self.luminance, "float64", space, display)
        entries = self.measure_frames(frames, collected)
        if display is None:
            return entries
        gamuts = [display.gamut(chunk) for chunk in self.chunks()]
        values = sum(gamut.values for gamut in gamuts)
        outside = sum(gamut.outside for gamut in gamuts)
        margin = min(gamut.margin for gamut in gamuts)
        entries += gamut_measurements(display, values, outside, margin)
        lowest = math.inf
        highest = -math.inf
        for chunk in self._displayed(display):
            space = chunk.space
            lowest = min(lowest, chunk.lowest_drive)
            highest = max(highest, chunk.highest_drive)
        gain = display_gain(display, lowest, highest)
        collected = ImageMeasurements(
            self.luminance, "float32", space, display, gain, refined=False
        )
        displayed = (
            frame for chunk in self._displayed(display) for frame in chunk.light
        )
        on_display = self.measure_frames(displayed, collected)
        return entries + displayed_measurements(on_display)

    def _displayed(self, display: Display) -> Iterator[DisplayedLight]:
        """Draw the clip a few frames at a time, as a display shows it."""
        for chunk in self.chunks():
            yield displayed_light(chunk.pixels, chunk.space, chunk.observer, display)

    def _draw_pixels(self, backend: Backend) -> tuple[Array, str]:
        """Draw all frames, and say the colour space of the pixels."""
        return self.stills(0, self.frames)._draw_pixels(backend)

    def measure_image(
        self, image: Float64, measurements: ImageMeasurements
    ) -> list[Measurement]:
        """Measure a whole clip, shape (T, H, W) or (T, H, W, 3)."""
        frames = (image[k] for k in range(self.frames))
        return self.measure_frames(frames, measurements)

    def measure_frames(
        self, frames: Iterable[Float64], measurements: ImageMeasurements
    ) -> list[Measurement]:
        """Measure each frame of a clip as a still, and keep each quantity's worst error."""
        entries: list[Measurement] = []
        for k, frame in enumerate(frames):
            still = next(self.stills(k, k + 1).singles())
            entries += still.measure_image(frame, measurements.empty())
        return list(worst_measurements(entries))


@stimulus_kind("uniform_clip")
class UniformClip(Clip, Uniform):
    """A uniform field all the time: what clips are told apart from.

    Parameters as in `psyprobe.uniform`.

    Examples
    --------
    >>> UniformClip(luminance=50.0, frames=3, size=8).draw().pixels.shape
    (3, 8, 8)
    """

    #: All frames are the same image.
    steady = True

    def reference(self) -> Specification:
        """Return the clip itself, which has no pattern to remove."""
        return self

    def stills(self, start: int, stop: int) -> Uniform:
        """Repeat the field in every frame."""
        shape = (*self.batch, stop - start)
        luminance = np.broadcast_to(np.asarray(self.luminance)[..., None], shape)
        still = Uniform(luminance=luminance, ppd=self.ppd, size=self.size)
        return replace(
            still, chromatic=self.chromatic, white=self.white, observer=self.observer
        )


class _FrameFits(NamedTuple):
    """What was fitted to the frames of a clip, (T,) each."""

    #: Mean luminance, cd/m².
    mean: FloatArray
    #: RMS that no pattern explains, cd/m².
    residual: FloatArray
    background: FloatArray
    #: Amplitudes of the patterns, (K, T), cd/m².
    amplitudes: FloatArray
    #: Standard error of the amplitudes for independent pixel errors of 1.
    gain: float
    #: Measurements of the frame of highest contrast as a still.
    strongest: list[Measurement]


class TemporalModulation(Clip, Modulation):
    """A pattern that moves, or whose contrast goes as a cosine in time."""

    temporal_frequency: Levels = parameter("Hz", "Temporal frequency", low=0)
    #: Standard deviation of a Gaussian in time about the middle of the clip; 0 for constant
    #: contrast.
    temporal_sigma: Levels = parameter("s", "Duration", default=0.0, low=0)

    contrast_kind = "michelson"
    #: What a frame is.
    still_kind: ClassVar[type[Modulation]]
    #: Whether the wave moves; otherwise its contrast reverses.
    moves: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        frequencies = np.asarray(self.temporal_frequency)
        too_high = frequencies[frequencies >= self.fps / 2]
        if too_high.size:
            frequency = too_high.flat[0]
            alias = frequency % self.fps
            raise InputError(
                f"temporal_frequency is {frequency:g} Hz; {self.fps:g} frames a second show "
                f"less than {self.fps / 2:g} Hz (Nyquist), and this would be seen as "
                f"{min(alias, self.fps - alias):g} Hz; lower it or raise fps"
            )
        _ = self.still

    @property
    def still(self) -> Modulation:
        """The pattern at full contrast and temporal phase 0, as its still kind."""
        return self.still_kind(**{name: getattr(self, name) for name in self._shared})

    def stills(self, start: int, stop: int) -> Modulation:
        """Return frames `start` to `stop` as stills, which differ in contrast and phase."""
        frames = {name: self.along_frames(name) for name in self._shared}
        return self.still_kind(**frames | self.course(start, stop))

    @property
    def _shared(self) -> list[str]:
        """Names of the parameters that the clip has in common with its frames."""
        return [name for name in self.still_kind.parameters() if hasattr(self, name)]

    def course(self, start: int, stop: int) -> JsonObject:
        """Compute the parameters that differ from frame to frame, by name."""
        raise NotImplementedError

    def window(self, start: int, stop: int) -> FloatArray:
        """Compute the temporal window of frames, 0 to 1, shape (*batch, frames).

        It is the Gaussian of `temporal_sigma`, or 1.
        """
        sigma = np.asarray(self.temporal_sigma, dtype=float)[..., None]
        double_variance = 2 * np.where(sigma > 0, sigma, 1.0) ** 2
        gaussian = np.exp(-(self.times[start:stop] ** 2) / double_variance)
        return np.where(sigma > 0, gaussian, 1.0)

    def cycles(self, start: int, stop: int) -> FloatArray:
        """Compute the temporal phase of some frames, cycles, shape (*batch, frames)."""
        return np.asarray(self.temporal_frequency)[..., None] * self.times[start:stop]

    def cautions(self) -> tuple[str, ...]:
        """Warn where the clip holds no whole number of cycles, or too few of them.

        Examples
        --------
        >>> from psyprobe.stimulus import Flicker
        >>> clip = Flicker(contrast=0.1, temporal_frequency=[3, 4], frames=30)
        >>> clip.cautions()
        ('temporal_frequency 3 Hz makes no whole number of cycles in 0.5 s: ...',)
        """
        sigma = np.asarray(self.temporal_sigma, dtype=float)
        frequency, sigma = np.broadcast_arrays(self.temporal_frequency, sigma)
        cycles = frequency * self.duration
        cautions = []
        incomplete = (sigma == 0) & (
            np.abs(cycles - np.round(cycles)) > _CYCLE_TOLERANCE
        )
        if incomplete.any():
            cautions.append(
                f"temporal_frequency {_format_values(frequency[incomplete])} Hz makes no whole "
                f"number of cycles in {self.duration:.4g} s: the spectrum smears by "
                f"{1 / self.duration:.3g} Hz and the mean moves; lengthen the clip, or give it "
                "temporal_sigma, 2 / temporal_frequency s or more"
            )
        windowed = (sigma > 0) & (frequency > 0)
        short = windowed & (sigma * frequency < 2 - _CYCLE_TOLERANCE)
        if short.any():
            cautions.append(
                f"temporal_frequency {_format_values(frequency[short])} Hz has fewer than two "
                f"cycles in temporal_sigma {_format_values(sigma[short])} s, which smears its "
                "spectrum; make it 2 / temporal_frequency s or more"
            )
        return tuple(cautions)

    def measure_frames(
        self, frames: Iterable[Float64], measurements: ImageMeasurements
    ) -> list[Measurement]:
        """Measure the time course of contrast, and the geometry of one frame.

        The time course is fitted by least squares to amplitudes that were fitted to each frame.
        """
        patterns = self.patterns()
        fits = self._fit_frames(frames, patterns, measurements)
        level = self.luminance
        phase_range = 2 * np.pi * self.temporal_frequency * self.duration
        pixel_error = measurements.pixel_error(self.contrast, phase_range)
        average = self._unit_amplitudes(len(patterns)) @ patterns.mean(axis=(1, 2))
        depth = self.contrast * self.luminance_share
        mean = level * (1 + depth * average.mean())
        method = "mean over pixels and frames"
        measurements.add("mean luminance", mean, fits.mean.mean(), method)
        method = "least squares on each frame, mean over frames"
        measurements.add("background", level, fits.background.mean(), method)
        distortion = fits.residual.max() / level
        method = "RMS that no pattern explains, worst frame"
        measurements.add(
            "distortion", 0.0, distortion, method, extra=2 * pixel_error / level
        )
        # Pixels of a flat pattern round alike.
        error = max(STANDARD_ERRORS * fits.gain, 2.0) * pixel_error / level
        amplitudes = self._complex_amplitudes(fits.amplitudes / level)
        self._measure_time_course(measurements, amplitudes, error)
        quantities = {entry.quantity for entry in measurements.entries} | {
            "rms contrast"
        }
        entries = [
            entry for entry in fits.strongest if entry.quantity not in quantities
        ]
        return measurements.entries + entries

    def _fit_frames(
        self,
        frames: Iterable[Float64],
        patterns: Float64,
        measurements: ImageMeasurements,
    ) -> _FrameFits:
        """Fit the strongest pattern to each drawn frame: its mean, amplitudes and residual."""
        uniform = bool(np.ptp(patterns) == 0)
        wave = 1.0 if self.moves else np.cos(2 * np.pi * self.cycles(0, self.frames))
        strongest_frame = int(np.argmax(np.abs(self.window(0, self.frames) * wave)))
        refined = self.contrast > 0 and measurements.refined
        gain = 1.0
        strongest: list[Measurement] = []
        fits = []
        for k, frame in enumerate(frames):
            planes = planes_of(frame, self, measurements)
            image = planes.pattern
            mean = planes.light.mean()
            if uniform:
                # A pattern that covers the whole field cannot be separated from its background
                # within a frame.
                fits.append(
                    [mean, image.std(), self.luminance, image.mean() - self.luminance]
                )
            else:
                fit = fit_patterns(image, patterns)
                fits.append([mean, fit.residual, fit.background, *fit.coefficients])
                gain = float(np.hypot.reduce(fit.gain[:-1]))
            if k == strongest_frame and refined:
                still = next(self.stills(k, k + 1).singles())
                strongest = still.measure_image(frame, measurements.empty())
        means, residuals, backgrounds, *amplitudes = np.array(fits).T
        return _FrameFits(
            means, residuals, backgrounds, np.array(amplitudes), gain, strongest
        )

    def patterns(self) -> Float64:
        """Draw the patterns of unit amplitude of which each frame is a sum, shape (K, H, W).

        They are drawn with the estimators' own code.
        """
        raise NotImplementedError

    def _measure_time_course(
        self, measurements: ImageMeasurements, amplitudes: Complex, error: float
    ) -> None:
        """Measure the time course of the pattern's amplitude, relative to the background."""
        contrast = self.contrast
        if contrast == 0:
            largest = float(np.abs(amplitudes).max())
            method = "largest amplitude"
            measurements.add("temporal distortion", 0.0, largest, method, extra=error)
            return
        frequency = self.temporal_frequency
        sigma = self.temporal_sigma
        fit = fit_time_course(
            amplitudes,
            self.times,
            amplitude=contrast,
            frequency=frequency,
            sigma=sigma,
            moves=self.moves,
        )
        method = "least squares on the amplitudes of frames"
        errors = {name: error * gain for name, gain in fit.gain.items()}
        extra = errors["amplitude"] / contrast
        measurements.add_contrast(
            "contrast", contrast, fit.amplitude, method, extra=extra
        )
        if "frequency" in errors:
            extra = errors["frequency"] / (frequency or 1.0)
            measurements.add(
                "temporal frequency", frequency, fit.frequency, method, extra=extra
            )
            measurements.add(
                "temporal phase", 0.0, fit.phase, method, extra=errors["phase"]
            )
        if sigma:
            extra = errors["sigma"] / sigma
            measurements.add("temporal sigma", sigma, fit.sigma, method, extra=extra)
        method = "RMS amplitude that the course does not explain, over background"
        measurements.add("temporal distortion", 0.0, fit.residual, method, extra=error)

    def _unit_amplitudes(self, patterns: int) -> FloatArray:
        """Compute the amplitudes of the patterns in each frame for a contrast of 1, (T, K)."""
        frequency = self.temporal_frequency
        course = time_course(
            self.times, 1.0, frequency, 0.0, self.temporal_sigma, moves=self.moves
        )
        amplitudes = course * self._spatial_phase
        return np.stack([amplitudes.real, -amplitudes.imag][:patterns], axis=1)

    def _complex_amplitudes(self, amplitudes: FloatArray) -> Complex:
        """Join the amplitudes of two patterns, (K, T), to complex numbers, (T,)."""
        quadrature = amplitudes[1] if len(amplitudes) > 1 else 0.0
        joined = (amplitudes[0] - 1j * quadrature) / self._spatial_phase
        return np.asarray(joined, dtype=np.complex128)

    @property
    def _spatial_phase(self) -> complex:
        """The spatial phase as a complex number of size 1."""
        return complex(np.exp(1j * np.deg2rad(getattr(self, "phase", 0.0))))


def _format_values(values: FloatArray) -> str:
    """Format the distinct values of an array, or their range if there are more than 6."""
    distinct = np.unique(values)
    if distinct.size > 6:
        return f"{distinct[0]:.4g} to {distinct[-1]:.4g}"
    return ", ".join(f"{value:.4g}" for value in distinct)
