"""Films: frames of files or of an array, with one mean and one RMS contrast over all of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import ArrayLike

from psyprobe._typing import Levels, Size
from psyprobe.errors import InputError
from psyprobe.light.colour import Direction
from psyprobe.stimulus.certificate import ImageMeasurements, Measurement
from psyprobe.stimulus.clip import Clip
from psyprobe.stimulus.estimate import Float64
from psyprobe.stimulus.kinds.image import Image, Photographic, Pictures
from psyprobe.stimulus.measuring import planes_of
from psyprobe.stimulus.parameters import check_keywords, parameter
from psyprobe.stimulus.registry import stimulus_kind
from psyprobe.stimulus.specification import draw_kind
from psyprobe.stimulus.stimulus import Stimulus


@stimulus_kind("film")
class Film(Clip, Photographic):
    """A film behind a window; parameters as in `psyprobe.film`.

    Examples
    --------
    >>> from psyprobe.stimulus.catalogue import load_stimulus
    >>> film = load_stimulus("film_pan").spec(contrast=0.2)
    >>> film.extent, round(film.measure()["rms contrast in window"].delivered, 9)
    ((12, 56, 56), 0.2)
    """

    #: By default all that the file has.
    frames: Levels = parameter("frames", "Length", default=None, numeric=False)

    def __post_init__(self) -> None:
        count = len(Pictures(str(self.file)))
        if self.frames is None:
            object.__setattr__(self, "frames", count)
        super().__post_init__()
        if self.frames > count:
            raise InputError(
                f"frames is {self.frames}; {self.file} has {count}; give at most as many"
            )

    def stills(self, start: int, stop: int) -> Image:
        """Return the frames `start` to `stop` (exclusive) as still photographs."""
        names = Image.parameters().keys() - {"picture", "pooled"}
        return Image(
            picture=np.arange(start, stop),
            pooled=self.frames,
            **{name: self.along_frames(name) for name in names},
        )

    def measure_frames(
        self, frames: Iterable[Float64], measurements: ImageMeasurements
    ) -> list[Measurement]:
        """Measure each frame as a photograph, and mean and contrast over all frames."""
        moments: list[tuple[float, float]] = []

        def measured_frames() -> Iterator[Float64]:
            for frame in frames:
                planes = planes_of(frame, self, measurements)
                moments.append(self.window_moments(planes.pattern))
                yield frame

        entries = super().measure_frames(measured_frames(), measurements.empty())
        measurements.add("frames", self.frames, len(moments), "a count")
        if self.contrast > 0:
            self.measure_window(moments, measurements)
        return entries + measurements.entries


@check_keywords
def film(
    *,
    file: str,
    contrast: ArrayLike,
    luminance: ArrayLike = 100.0,
    window: str = "raised_cosine",
    radius: ArrayLike = 1.0,
    edge: ArrayLike = 0.25,
    x: ArrayLike = 0.0,
    y: ArrayLike = 0.0,
    fps: float = 60.0,
    frames: int | None = None,
    file_ppd: ArrayLike = 0.0,
    direction: Direction = "achromatic",
    white: str | tuple[float, float] = "D65",
    observer: str = "cie2006_led_lcd",
    ppd: float = 60.0,
    size: int | Size = 224,
    dtype: str = "float64",
    device: str | None = None,
) -> Stimulus:
    """Draw films: frames of files behind a window, at a stated RMS contrast of luminance.

    Parameters
    ----------
    file : str
        A folder of frames in the order of their names, or a ``.npy`` file of light, (T, H, W), in
        any linear unit.
    contrast : float or array
        SD over mean of all frames together, weighted by the window.
    luminance : float or array
        Mean of all frames in the window, and the field around it, cd/m².
    window, radius, edge, x, y, file_ppd
        As in `image`.
    fps : float
        Frames a second.
    frames : int, optional
        How many frames are shown, from the first; all by default.
    direction, white, observer, ppd, size, dtype, device
        As in `gabor`.

    Examples
    --------
    >>> from psyprobe.stimulus.catalogue import catalogue_folder
    >>> file = str(catalogue_folder("stimuli") / "film.npy")
    >>> film(file=file, contrast=0.2, radius=0.4, size=56, frames=8).luminance.shape
    (8, 56, 56)
    """
    return draw_kind(Film, locals())
