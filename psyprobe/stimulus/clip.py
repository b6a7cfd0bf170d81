"""Clips: stimuli in time, whose frames are still stimuli, drawn a few at a time.

Frame k of T is shown at ``t_k = (k - (T - 1)/2) / fps`` seconds and held for 1/fps; the course of
contrast has its peak in the middle of the clip. Each frame is a stimulus of a still kind with a
contrast and a phase of its own: colour, precision and gamut are those of stills, and no more frames
than `Clip.chunks` gives at a time are ever in memory.

What holding a frame does to its contrast, a factor of ``sinc(f/fps)``, is not drawn.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from psyprobe._typing import Array, FloatArray
from psyprobe.errors import InputError
from psyprobe.light.display import Display
from psyprobe.stimulus.certificate import (
    STANDARD_ERRORS,
    Certificate,
    Row,
    Sheet,
    gamut_rows,
    planes_of,
    shown_light,
    shown_rows,
    strain,
    worst_of,
)
from psyprobe.stimulus.estimate import Float64, fit_patterns
from psyprobe.stimulus.parameters import number, parameter
from psyprobe.stimulus.pattern import Modulation, Uniform
from psyprobe.stimulus.specification import Specification, Stimulus, stimulus_kind
from psyprobe.stimulus.time_course import Complex, course, fit_course

#: Pixels of a chunk: 8 frames of 224 x 224 px.
_CHUNK = 8 * 224 * 224
_MOST_FRAMES = 1_000_000
#: A cycle more or less than a whole number of them from which a clip's mean and spectrum move,
#: cycles.
_WHOLE = 1e-6


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Clip(Specification):
    """A stimulus of many frames: what every kind of clip has.

    A kind of one's own defines `stills` and nothing else: it is drawn, compared with a uniform clip
    and certified frame by frame then.

    Examples
    --------
    >>> from psyprobe.stimulus import Drift
    >>> clip = Drift(frequency=4, temporal_frequency=8, contrast=0.1, frames=30, size=64)
    >>> clip.extent, clip.duration
    ((30, 64, 64), 0.5)
    """

    is_clip: ClassVar[bool] = True
    #: Frames differ.
    steady: ClassVar[bool] = False

    #: Frames a second.
    fps: float = parameter("Hz", "Frame rate", default=60.0, numeric=False)
    #: Of the whole clip.
    frames: int = parameter("frames", "Length", default=60, numeric=False)

    def __post_init__(self) -> None:
        for name, unit in (("fps", "frames a second"), ("frames", "frames")):
            value = number(name, getattr(self, name), unit)
            if np.ndim(value) or not 0 < value <= _MOST_FRAMES or (name == "frames" and value % 1):
                whole = "a whole number" if name == "frames" else "a number above 0"
                raise InputError(
                    f"{name} is {getattr(self, name)!r} {unit}; give {whole}, at most "
                    f"{_MOST_FRAMES:,}"
                )
        object.__setattr__(self, "fps", float(self.fps))
        object.__setattr__(self, "frames", int(self.frames))
        super().__post_init__()

    @property
    def extent(self) -> tuple[int, ...]:
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
        """Give the frames from `start` on and before `stop` as still stimuli.

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

    def along_frames(self, name: str) -> Any:
        """Give a parameter one more axis, along which frames lie."""
        value = getattr(self, name)
        return value[..., None] if isinstance(value, np.ndarray) else value

    def reference(self) -> Specification:
        """The uniform clip of the same length, in the colour of the background of its frames."""
        field = self.picture().reference()
        if not isinstance(field, Uniform):
            raise InputError(
                f"a frame of {self.kind!r} is told apart from {field!r}, which is not uniform; give "
                "this kind of clip a method reference()"
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

    def picture(self) -> Specification:
        """The frame at the middle, or just behind it, for where one image must stand for the clip.

        Examples
        --------
        >>> from psyprobe.stimulus import Flicker
        >>> Flicker(contrast=0.2, temporal_frequency=0.5, frames=60, size=64).picture().draw().pixels.shape
        (64, 64)
        """
        return next(self.stills(self.frames // 2, self.frames // 2 + 1).singles())

    def chunks(self, frames: int | None = None, *, dtype: str = "float64") -> Iterator[Stimulus]:
        """The clip a few frames at a time, drawn as they are taken.

        Parameters
        ----------
        frames : int, optional
            Of a chunk; by default as many as make some 400,000 pixels.
        dtype : {"float64", "float32"}
            As in `draw`.

        Examples
        --------
        >>> from psyprobe.stimulus import Drift
        >>> clip = Drift(frequency=4, contrast=0.1, temporal_frequency=5, frames=600)
        >>> next(clip.chunks()).pixels.shape, sum(len(chunk.pixels) for chunk in clip.chunks(50))
        ((8, 224, 224), 600)
        """
        each = frames or max(1, _CHUNK // (math.prod(self.shape) * math.prod(self.batch)))
        for start in range(0, self.frames, each):
            yield self.stills(start, min(start + each, self.frames)).draw(dtype=dtype)

    def measure(self, display: Display | None = None) -> Certificate:
        """The certificate of the clip as it is drawn, chunk by chunk; `display` as in
        `Stimulus.measure`.

        Examples
        --------
        >>> from psyprobe.stimulus import Flicker
        >>> found = Flicker(contrast=0.2, temporal_frequency=7.5, frames=40, size=64).measure()
        >>> found.passed, round(found["temporal frequency"].delivered, 9), round(found["contrast"].delivered, 9)
        (True, 7.5, 0.2)
        """
        rows: list[Row] = []
        for index, one in enumerate(self.singles()):
            found = worst_of(one._measured(display))
            rows += [replace(row, image=index) for row in found] if self.batch else found
        return Certificate(worst_of(rows), repr(self), "float64", math.prod(self.batch))

    def _measured(self, display: Display | None) -> list[Row]:
        """Rows of one clip: as drawn, and as a display shows it."""
        space = next(self.chunks(1)).space
        frames = (frame for chunk in self.chunks() for frame in np.asarray(chunk.pixels))
        rows = self.rows_of(frames, space, Sheet(self.luminance, "float64"), display)
        if display is None:
            return rows
        gamuts = [display.gamut(chunk) for chunk in self.chunks()]
        lows, highs = zip(*(driven for _, _, driven in self._shown(display)), strict=True)
        again = Sheet(
            self.luminance, "float32", strain(display, min(lows), max(highs)), refined=False
        )
        _, space, _ = next(self._shown(display))
        shown = (frame for light, _, _ in self._shown(display) for frame in light)
        outside = sum(gamut.outside for gamut in gamuts)
        margin = min(gamut.margin for gamut in gamuts)
        rows += gamut_rows(display, sum(gamut.values for gamut in gamuts), outside, margin)
        return rows + shown_rows(self.rows_of(shown, space, again, display))

    def _shown(self, display: Display) -> Iterator[tuple[Float64, str, tuple[float, float]]]:
        """As `shown_light`, chunk by chunk."""
        for chunk in self.chunks():
            yield shown_light(chunk.pixels, chunk.space, chunk.observer, display)

    def _pixels(self, dtype: str, device: str | None) -> tuple[Array, str]:
        return self.stills(0, self.frames)._pixels(dtype, device)

    def rows(self, image: Float64, space: str, sheet: Sheet, display: Display | None) -> list[Row]:
        """The rows of a certificate of a whole clip, shape (T, H, W) or (T, H, W, 3)."""
        return self.rows_of((image[k] for k in range(self.frames)), space, sheet, display)

    def rows_of(
        self, frames: Iterable[Float64], space: str, sheet: Sheet, display: Display | None
    ) -> list[Row]:
        """Certify each frame of one clip as the still that it is, and keep the worst of each
        quantity.
        """
        rows: list[Row] = []
        for place, frame in enumerate(frames):
            still = next(self.stills(place, place + 1).singles())
            rows += still.rows(frame, space, _like(sheet), display)
        return list(worst_of(rows))


@stimulus_kind("uniform_clip")
@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class UniformClip(Clip, Uniform):
    """A uniform field all the time: what clips are told apart from; parameters as in
    `psyprobe.uniform`.

    Examples
    --------
    >>> UniformClip(luminance=50.0, frames=3, size=8).draw().pixels.shape
    (3, 8, 8)
    """

    #: All frames are the same image.
    steady: ClassVar[bool] = True

    def reference(self) -> Specification:
        """Itself: there is no target."""
        return self

    def stills(self, start: int, stop: int) -> Uniform:
        """Repeat the field in every frame."""
        luminance = np.broadcast_to(
            np.asarray(self.luminance)[..., None], (*self.batch, stop - start)
        )
        still = Uniform(luminance=luminance, ppd=self.ppd, size=self.size)
        return replace(still, chromatic=self.chromatic, white=self.white, observer=self.observer)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class TemporalModulation(Clip, Modulation):
    """A pattern whose contrast goes as a cosine in time, or that moves."""

    temporal_frequency: Any = parameter("Hz", "Temporal frequency", low=0)
    #: Standard deviation of a Gaussian in time about the middle of the clip; 0: the contrast is
    #: held throughout.
    temporal_sigma: Any = parameter("s", "Duration", default=0.0, low=0)

    contrast_kind: ClassVar[str | None] = "michelson"
    #: Whether the wave moves; otherwise its contrast reverses.
    moves: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        wrong = np.asarray(self.temporal_frequency)[
            np.asarray(self.temporal_frequency) >= self.fps / 2
        ]
        if wrong.size:
            seen = wrong.flat[0] % self.fps
            raise InputError(
                f"temporal_frequency is {wrong.flat[0]:g} Hz; {self.fps:g} frames a second show "
                "less than "
                f"{self.fps / 2:g} Hz (Nyquist), and this would be seen as "
                f"{min(seen, self.fps - seen):g} Hz; lower it "
                "or raise fps"
            )
        _ = self.still

    @property
    def still(self) -> Modulation:
        """The pattern at full contrast and temporal phase 0, as its still kind."""
        raise NotImplementedError

    def window(self, start: int, stop: int) -> FloatArray:
        """w(t) of some frames: 1, or the Gaussian of `temporal_sigma`, shape (*batch, frames)."""
        sigma = np.asarray(self.temporal_sigma, dtype=float)[..., None]
        spread = np.where(sigma > 0, sigma, 1.0)
        return np.where(sigma > 0, np.exp(-(self.times[start:stop] ** 2) / (2 * spread**2)), 1.0)

    def cycles(self, start: int, stop: int) -> FloatArray:
        """Temporal phase of some frames, cycles, shape (*batch, frames)."""
        return np.asarray(self.temporal_frequency)[..., None] * self.times[start:stop]

    def cautions(self) -> tuple[str, ...]:
        """Where the clip does not hold a whole number of cycles, or too few under its Gaussian
        window.

        Examples
        --------
        >>> from psyprobe.stimulus import Flicker
        >>> Flicker(contrast=0.1, temporal_frequency=[3, 4], frames=30).cautions()
        ('temporal_frequency 3 Hz makes no whole number of cycles in 0.5 s: the spectrum smears by 2 Hz and the mean
        moves; lengthen the clip, or give it temporal_sigma, 2 / temporal_frequency s or more',)
        """
        frequency, sigma = np.broadcast_arrays(
            self.temporal_frequency, np.asarray(self.temporal_sigma, dtype=float)
        )
        cycles = frequency * self.duration
        told = []
        broken = (sigma == 0) & (np.abs(cycles - np.round(cycles)) > _WHOLE)
        if broken.any():
            told.append(
                f"temporal_frequency {_listed(frequency[broken])} Hz makes no whole number of "
                "cycles in "
                f"{self.duration:.4g} s: the spectrum smears by {1 / self.duration:.3g} Hz and "
                "the mean moves; "
                "lengthen the clip, or give it temporal_sigma, 2 / temporal_frequency s or more"
            )
        short = (sigma > 0) & (frequency > 0) & (sigma * frequency < 2 - _WHOLE)
        if short.any():
            told.append(
                f"temporal_frequency {_listed(frequency[short])} Hz has fewer than two cycles "
                "in temporal_sigma "
                f"{_listed(sigma[short])} s, which smears its spectrum; make it 2 / "
                "temporal_frequency s or more"
            )
        return tuple(told)

    def rows_of(
        self, frames: Iterable[Float64], space: str, sheet: Sheet, display: Display | None
    ) -> list[Row]:
        """Course of contrast in time, by least squares on each frame and then on all of them; place
        by one frame.
        """
        patterns = self.patterns()
        filled = bool(np.ptp(patterns) == 0)
        gain = 1.0
        wave = 1.0 if self.moves else np.cos(2 * np.pi * self.cycles(0, self.frames))
        strongest = int(np.argmax(np.abs(self.window(0, self.frames) * wave)))
        rows = []
        found = []
        for k, frame in enumerate(frames):
            planes = planes_of(frame, space, self, display)
            image = planes.pattern
            if filled:
                # What covers the whole field cannot be told from its background within a frame.
                found.append(
                    [
                        planes.light.mean(),
                        image.std(),
                        self.luminance,
                        image.mean() - self.luminance,
                    ]
                )
            else:
                fit = fit_patterns(image, patterns)
                found.append([planes.light.mean(), fit.residual, fit.background, *fit.coefficients])
                gain = float(np.hypot.reduce(fit.gain[:-1]))
            if k == strongest and self.contrast > 0 and sheet.refined:
                still = next(self.stills(k, k + 1).singles())
                rows = still.rows(frame, space, _like(sheet), display)
        means, left, background, *amplitudes = np.array(found).T
        level = self.luminance
        noise = sheet.noise(self.contrast, 2 * np.pi * self.temporal_frequency * self.duration)
        asked = self._asked() @ patterns.mean(axis=(1, 2))
        depth = self.contrast * self.luminance_share
        sheet.add(
            "mean luminance",
            level * (1 + depth * asked.mean()),
            means.mean(),
            "mean over pixels and frames",
        )
        sheet.add(
            "background", level, background.mean(), "least squares on each frame, mean over frames"
        )
        how = "RMS that no pattern explains, worst frame"
        sheet.add("distortion", 0.0, left.max() / level, how, extra=2 * noise / level)
        # Pixels of a flat pattern round alike.
        error = max(STANDARD_ERRORS * gain, 2.0) * noise / level
        self._course_rows(sheet, self._turned(np.array(amplitudes) / level), error)
        told = {row.quantity for row in sheet.rows} | {"rms contrast"}
        return sheet.rows + [row for row in rows if row.quantity not in told]

    def patterns(self) -> Float64:
        """Patterns of unit amplitude of which each frame is a sum, drawn for measuring, shape (K,
        H, W).
        """
        raise NotImplementedError

    def _course_rows(self, sheet: Sheet, found: Complex, error: float) -> None:
        """Rows of the amplitudes of all frames over the background, whose rounding errors are below
        `error`.
        """
        if self.contrast == 0:
            sheet.add(
                "temporal distortion",
                0.0,
                float(np.abs(found).max()),
                "largest amplitude",
                extra=error,
            )
            return
        asked = {
            "amplitude": self.contrast,
            "frequency": self.temporal_frequency,
            "sigma": self.temporal_sigma,
        }
        fit = fit_course(found, self.times, moves=self.moves, **asked)
        how = "least squares on the amplitudes of frames"
        gain = {name: error * each for name, each in fit.gain.items()}
        sheet.add_contrast(
            "contrast", self.contrast, fit.amplitude, how, extra=gain["amplitude"] / self.contrast
        )
        if "frequency" in gain:
            extra = gain["frequency"] / (self.temporal_frequency or 1.0)
            sheet.add(
                "temporal frequency", self.temporal_frequency, fit.frequency, how, extra=extra
            )
            sheet.add("temporal phase", 0.0, fit.phase, how, extra=gain["phase"])
        if self.temporal_sigma:
            extra = gain["sigma"] / self.temporal_sigma
            sheet.add("temporal sigma", self.temporal_sigma, fit.sigma, how, extra=extra)
        how = "RMS amplitude that the course does not explain, over background"
        sheet.add("temporal distortion", 0.0, fit.residual, how, extra=error)

    def _asked(self) -> FloatArray:
        """Amplitudes of the patterns in each frame for a contrast of 1, shape (T, K)."""
        given = (1.0, self.temporal_frequency, 0.0, self.temporal_sigma)
        wanted = course(self.times, *given, moves=self.moves) * self._spatial_phase
        return np.stack([wanted.real, -wanted.imag][: len(self.patterns())], axis=1)

    def _turned(self, amplitudes: FloatArray) -> Complex:
        """Amplitudes of the patterns, (K, T), as one complex number a frame whose phase is that of
        the course.
        """
        quadrature = amplitudes[1] if len(amplitudes) > 1 else 0.0
        return np.asarray(
            (amplitudes[0] - 1j * quadrature) / self._spatial_phase, dtype=np.complex128
        )

    @property
    def _spatial_phase(self) -> complex:
        return complex(np.exp(1j * np.deg2rad(getattr(self, "phase", 0.0))))


def _like(sheet: Sheet) -> Sheet:
    return Sheet(sheet.luminance, sheet.precision, sheet.shown, sheet.refined)


def _listed(values: FloatArray) -> str:
    some = np.unique(values)
    return (
        ", ".join(f"{value:.4g}" for value in some)
        if some.size <= 6
        else f"{some[0]:.4g} to {some[-1]:.4g}"
    )
