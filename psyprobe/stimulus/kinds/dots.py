"""Random-dot kinematograms: dots of which a share moves in one direction.

Laboratories differ in what the other dots do and in who belongs to them, and thresholds differ
with it (Pilly & Seitz 2009); so the algorithms have names. Six are those of Scase et al. (1996),
noise by position, walk or direction, and signal dots the same or different ones in each frame, as
PsychoPy's DotStim names them: `noiseDots` and `signalDots`. Three of these are the kinematograms of
Schütz et al. (2010): white noise, Brownian and, by the name of transparent, "direction_same".
"movshon_newsome" shows three sets of dots in turn, as the Shadlen laboratory's code does: a dot
comes back three frames later, three steps further on.

Here as in DotStim, the number of signal dots is fixed, and not drawn in each frame. Dots that
leave the field come in at the opposite edge, as in DotStim since 2018. In "direction_different" a
noise dot keeps a direction of its own, where DotStim (as of 2013) deals the directions out anew in
each frame.

References
----------
Scase, Braddick & Raymond (1996), Vision Research 36:2579. Newsome & Paré (1988), J. Neurosci.
8:2201. Pilly & Seitz (2009), Vision Research 49:1599. Schütz, Braun, Movshon & Gegenfurtner (2010),
Journal of Vision 10(13):26.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from psyprobe._typing import FloatArray, Levels, Size
from psyprobe.errors import unknown_name
from psyprobe.light.colour import Direction
from psyprobe.stimulus.certificate import ImageMeasurements, Measurement
from psyprobe.stimulus.clip import Clip
from psyprobe.stimulus.estimate import Float64
from psyprobe.stimulus.kinds.elements import ElementField
from psyprobe.stimulus.kinds.motion import Motion
from psyprobe.stimulus.measuring import Planes, planes_of
from psyprobe.stimulus.parameters import check_keywords, common, parameter
from psyprobe.stimulus.pattern import Modulation, cos_sin_degrees, pixel_positions
from psyprobe.stimulus.registry import stimulus_kind
from psyprobe.stimulus.specification import draw_kind
from psyprobe.stimulus.stimulus import Stimulus

_METHOD = "peak of the correlation between frames"
#: How many standard deviations a share may be off by chance.
_CHANCE = 6.0
#: Steps of dots, over all frames, from which motion can be told from chance.
_FEWEST_STEPS = 200


class Algorithm(NamedTuple):
    """What dots do from frame to frame."""

    #: {"position", "direction", "walk"}: A noise dot appears anywhere; steps in a direction of its
    #: own; steps in a new direction each time.
    noise: str
    #: Whether signal dots are drawn anew in each frame, rather than once.
    redrawn: bool
    #: Sets of dots that are shown in turn.
    sets: int = 1


#: Algorithms by name.
ALGORITHMS = {
    "white_noise": Algorithm("position", redrawn=True),
    "movshon_newsome": Algorithm("position", redrawn=True, sets=3),
    "brownian": Algorithm("walk", redrawn=True),
    "direction_different": Algorithm("direction", redrawn=True),
    "position_same": Algorithm("position", redrawn=False),
    "walk_same": Algorithm("walk", redrawn=False),
    "direction_same": Algorithm("direction", redrawn=False),
}


class _DotField(ElementField):
    """Dots in motion, in a field whose opposite edges meet."""

    coherence: Levels = parameter("1", "Coherence", default=1.0, low=0, high=1)
    heading: Levels = parameter("deg", "Direction of motion", default=0.0)
    speed: Levels = parameter("deg/s", "Speed", default=4.0, low=0)
    density: Levels = parameter(
        "1/deg²", "Density of dots", default=8.0, low=0, above=True
    )
    lifetime: Levels = parameter("frames", "Lifetime", default=0.0, low=0, whole=True)
    radius: Levels = common("radius", default=0.04)
    seed: Levels = common("seed", default=0)
    algorithm: str = "white_noise"

    contrast_kind = "weber"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.algorithm not in ALGORITHMS:
            raise unknown_name("algorithm", str(self.algorithm), ALGORITHMS)

    @property
    def count(self) -> int:
        """The number of dots in a frame of one clip."""
        height, width = self.field
        return max(1, round(float(self.density) * height * width))


@stimulus_kind("dots_frame")
class DotsFrame(_DotField):
    """One frame of random dots: parameters as in `psyprobe.dots`.

    Examples
    --------
    >>> DotsFrame(contrast=0.5, frame=[0, 1, 2], rate=60.0, length=3).draw().pixels.shape
    (3, 224, 224)
    """

    frame: Levels = parameter("1", "Frame", default=0.0, low=0, whole=True)
    #: Frames a second of the clip.
    rate: float = 60.0
    #: Frames of the whole clip.
    length: int = 60

    def layout(self) -> FloatArray:
        """Compute the places of the dots, deg from the middle, (k, 3)."""
        rule = ALGORITHMS[self.algorithm]
        tracks = _move(
            (self.field[1], self.field[0]),
            self.count,
            self.coherence,
            self.heading,
            self.speed * rule.sets / self.rate,
            int(self.lifetime),
            rule,
            int(self.seed),
            -(-self.length // rule.sets),
        )
        turn, index = divmod(int(self.frame), rule.sets)
        places = tracks[index, turn]
        return np.concatenate([places, np.zeros((len(places), 1))], axis=1)

    def _draw_elements(self) -> FloatArray:
        """Draw the dots of one image about 0, (H, W), each going on at the opposite edge."""
        x, y, _ = self.layout().T[..., None]
        height, width = self.field
        dx = pixel_positions(self.shape[1], self.ppd) - x
        dy = -pixel_positions(self.shape[0], self.ppd) - y
        across = _repeated_gaussian(dx, width, self.radius)
        up = _repeated_gaussian(dy, height, self.radius)
        return np.asarray(up.T @ across)

    def measure_planes(self, planes: Planes, measurements: ImageMeasurements) -> None:
        """Measure levels and contrast, but no places, since dots may overlap."""
        Modulation.measure_planes(self, planes, measurements)


def _repeated_gaussian(distance: FloatArray, period: float, sigma: float) -> FloatArray:
    """Draw Gaussians that repeat at a period, at distances from the first."""
    distance = (distance + period / 2) % period - period / 2
    total = np.zeros_like(distance)
    for turn in (-period, 0.0, period):
        total += np.exp(-((distance + turn) ** 2) / (2 * sigma**2))
    return total


@lru_cache(maxsize=8)
def _move(
    size: tuple[float, float],
    count: int,
    coherence: float,
    heading: float,
    step: float,
    lifetime: int,
    rule: Algorithm,
    seed: int,
    frames: int,
) -> FloatArray:
    """Compute the places of moving dots, deg from the middle, (sets, frames, count, 2)."""
    tracks = np.empty((rule.sets, frames, count, 2))
    extent = np.array(size)
    signals = round(coherence * count)
    ahead = step * np.stack(cos_sin_degrees(np.array(heading)))
    for index, generator in enumerate(np.random.default_rng(seed).spawn(rule.sets)):
        places = generator.uniform(-0.5, 0.5, (count, 2)) * extent
        age = generator.permutation(count) % max(lifetime, 1)
        angle = generator.uniform(0, 2 * np.pi, count)
        order = generator.permutation(count)
        for frame in range(frames):
            tracks[index, frame] = places
            # All is drawn in each frame, so that coherences share what they can.
            anywhere = generator.uniform(-0.5, 0.5, (count, 2)) * extent
            turn = generator.uniform(0, 2 * np.pi, count)
            mix = generator.permutation(count)
            if rule.redrawn:
                order = mix
            if rule.noise == "walk":
                angle = turn
            moved = places + step * np.stack([np.cos(angle), np.sin(angle)], axis=1)
            if rule.noise == "position":
                moved = anywhere.copy()
            moved[order[:signals]] = places[order[:signals]] + ahead
            age = age + 1
            if lifetime:
                dead = age >= lifetime
                moved[dead] = anywhere[dead]
                age[dead] = 0
            places = (moved + extent / 2) % extent - extent / 2
    return tracks


@stimulus_kind("dots")
class Dots(Clip, _DotField):
    """A clip of random dots, of which some move together; parameters as in `psyprobe.dots`.

    Examples
    --------
    >>> clip = Dots(contrast=0.5, coherence=0.5, heading=90.0, frames=30, size=96)
    >>> certificate = clip.measure()
    >>> certificate.passed, round(certificate["coherence"].delivered, 1)
    (True, 0.5)
    """

    def stills(self, start: int, stop: int) -> DotsFrame:
        """Return the frames `start` to `stop` (exclusive) as still dots."""
        names = DotsFrame.parameters().keys() - {"frame", "rate", "length"}
        return DotsFrame(
            frame=np.arange(start, stop),
            rate=self.fps,
            length=self.frames,
            **{name: self.along_frames(name) for name in names},
        )

    def measure_frames(
        self, frames: Iterable[Float64], measurements: ImageMeasurements
    ) -> list[Measurement]:
        """Measure each frame of the clip, and the motion from frame to frame."""
        sets = ALGORITHMS[self.algorithm].sets
        motion = Motion(self.shape, self.radius * self.ppd, sets)
        light: list[float] = []

        def measured_frames() -> Iterator[Float64]:
            for frame in frames:
                pattern = planes_of(frame, self, measurements).pattern
                motion.add(pattern / self.luminance - 1)
                light.append(float(pattern.mean()) / self.luminance - 1)
                yield frame

        entries = super().measure_frames(measured_frames(), measurements.empty())
        if measurements.refined and self.contrast > 0:
            self._measure_motion(motion, float(np.mean(light)), measurements)
        return entries + measurements.entries

    def _measure_motion(
        self, motion: Motion, light: float, measurements: ImageMeasurements
    ) -> None:
        """Measure the density of dots, and the speed, heading and coherence of their motion."""
        height, width = self.field
        dot = 2 * np.pi * self.radius**2 * self.contrast
        requested = self.count / (height * width)
        error = measurements.pixel_error(self.contrast) / self.luminance
        extra = error / abs(light or 1.0)
        method = "mean light over that of one dot"
        measurements.add("dot density", requested, light / dot, method, extra=extra)
        sets = ALGORITHMS[self.algorithm].sets
        step = self.speed * sets / self.fps * self.ppd
        transitions = self.count * (self.frames - sets)
        if transitions < _FEWEST_STEPS or step == 0:
            return
        # Of dots that die in each frame none is where it would be.
        coherence = round(self.coherence * self.count) / self.count
        coherence *= 1 - 1 / self.lifetime if self.lifetime else 1.0
        cosine, sine = cos_sin_degrees(np.array(self.heading))
        at_request = motion.share_at(float(step * cosine), float(step * sine))
        if np.isnan(at_request.chance):
            return
        slack = _CHANCE * at_request.chance
        peak = at_request
        if coherence > 2 * slack:
            peak = motion.find()
            # A ring of noise draws the peak inwards.
            doubt = slack + abs(peak.level)
            blur = motion.blur * doubt / coherence / step
            speed = np.hypot(peak.x, peak.y) / self.ppd * self.fps / sets
            measurements.add("speed", self.speed, speed, _METHOD, extra=blur)
            turn = np.degrees(np.arctan2(peak.y, peak.x)) - self.heading
            turn = (turn + 180) % 360 - 180
            measurements.add(
                "heading",
                self.heading,
                self.heading + turn,
                _METHOD,
                extra=float(np.degrees(blur)),
            )
        # Those that a lifetime ends are some more or less of the signal's.
        slack += 2 / np.sqrt(self.count * self.frames) if self.lifetime else 0.0
        measurements.add("coherence", coherence, peak.share, _METHOD, extra=slack)


@check_keywords
def dots(
    *,
    contrast: ArrayLike,
    luminance: ArrayLike = 100.0,
    coherence: ArrayLike = 1.0,
    heading: ArrayLike = 0.0,
    speed: ArrayLike = 4.0,
    density: ArrayLike = 8.0,
    lifetime: ArrayLike = 0,
    radius: ArrayLike = 0.04,
    seed: ArrayLike = 0,
    algorithm: str = "white_noise",
    fps: float = 60.0,
    frames: int = 60,
    direction: Direction = "achromatic",
    white: str | tuple[float, float] = "D65",
    observer: str = "cie2006_led_lcd",
    ppd: float = 60.0,
    size: int | Size = 224,
    dtype: str = "float64",
    device: str | None = None,
) -> Stimulus:
    """Draw random-dot kinematograms: clips of Gaussian dots, of which a share move together.

    Parameters
    ----------
    contrast : float or array
        Weber contrast at the middle of a dot; where dots overlap, their light adds.
    coherence : float or array
        Share of the dots that move in the direction `heading` from one frame to the next.
    heading : float or array
        Direction of motion, deg counter-clockwise; 0 is to the right, 90 up.
    speed : float or array
        deg/s.
    density : float or array
        Dots of a frame in a square degree.
    lifetime : int or array of int
        Frames after which a dot appears anywhere; 0 is none.
    radius : float or array
        Standard deviation of a dot, deg.
    seed : int or array of int
        Seed of all places and steps.
    algorithm : str
        What the other dots do, and whether it is the same dots all the time. Signal dots are
        drawn anew in each frame by "white_noise" (others appear anywhere; in DotStim position,
        different), "brownian" (steps as long in random directions; walk, different),
        "direction_different" (steps in a direction of their own), and "movshon_newsome"
        (white noise in three sets of dots shown in turn; Newsome & Paré 1988). They are the same
        all the time by "position_same", "walk_same", "direction_same". All but the three sets
        are those of Scase, Braddick & Raymond (1996).
    fps : float
        Frames a second.
    frames : int
        Length of the clip.
    luminance, direction, white, observer, ppd, size, dtype, device
        As in `gabor`.

    Examples
    --------
    >>> dots(contrast=0.5, coherence=[0.2, 0.8], frames=10, size=64).luminance.shape
    (2, 10, 64, 64)
    """
    return draw_kind(Dots, locals())
