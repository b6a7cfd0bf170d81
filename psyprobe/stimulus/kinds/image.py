"""Photographs: their luminance behind a window, with the RMS contrast that is asked for.

Files hold sRGB codes, as photographs do, or the light itself (``.npy``). Their middle is shown, a
pixel on a pixel, or resampled in light where the pixels of the file per degree are stated.

References
----------
Frazor & Geisler (2006), Vision Research 46:1585: RMS contrast in a window.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from psyprobe._typing import Array, FloatArray, Levels, Size
from psyprobe.errors import InputError, unknown_name
from psyprobe.files.images import check_srgb, decode_image, images_in
from psyprobe.files.parsing import read_bytes
from psyprobe.light.colour import Direction
from psyprobe.light.display import Display
from psyprobe.light.transfer import light_of_drive
from psyprobe.stimulus import estimate
from psyprobe.stimulus.certificate import ImageMeasurements
from psyprobe.stimulus.estimate import Float64
from psyprobe.stimulus.kinds.gratings import WindowedWave
from psyprobe.stimulus.measuring import Planes
from psyprobe.stimulus.parameters import (
    Parameter,
    check_keywords,
    common,
    file_parameter,
    parameter,
)
from psyprobe.stimulus.pattern import Modulation
from psyprobe.stimulus.registry import stimulus_kind
from psyprobe.stimulus.specification import draw_kind
from psyprobe.stimulus.stimulus import Stimulus
from psyprobe.stimulus.tolerances import STANDARD_ERRORS

_IN_WINDOW = "mean and SD weighted by the window"


class Stamp(NamedTuple):
    """A file as it lies on the disk; written anew, it has another."""

    path: str
    changed: tuple[int, ...]


def stamp_of(path: Path) -> Stamp:
    """Return a file's path with its times and size, by which a changed file is noticed."""
    try:
        state = path.stat()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None
    return Stamp(str(path), (state.st_mtime_ns, state.st_ctime_ns, state.st_size))


@dataclass(frozen=True)
class Pictures:
    """The pictures of a file, of a folder of files, or of an array (T, H, W) in a ``.npy`` file.

    Examples
    --------
    >>> from psyprobe.stimulus.catalogue import catalogue_folder
    >>> pictures = Pictures(str(catalogue_folder("stimuli") / "photograph.png"))
    >>> len(pictures), pictures.read(0, (2, 2)).shape
    (1, (2, 2))
    """

    #: A folder's pictures are in the order of their names.
    path: str
    stamps: tuple[Stamp, ...] = ()

    def __post_init__(self) -> None:
        folder = Path(self.path).is_dir()
        files = images_in(self.path) if folder else [Path(self.path)]
        object.__setattr__(self, "stamps", tuple(stamp_of(file) for file in files))

    @property
    def array(self) -> bool:
        """Tell whether the pictures come from an array in a `.npy` file."""
        return self.path.endswith(".npy")

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the files of a folder, without what follows a point; () of one file."""
        names = [Path(stamp.path).stem for stamp in self.stamps]
        return tuple(names) if 1 < len({*names}) == len(names) else ()

    def __len__(self) -> int:
        if self.array:
            return len(_load_array(self.stamps[0]))
        return len(self.stamps)

    def read(self, index: int, shape: Size, scale: float = 1.0) -> FloatArray:
        """Return the luminance of the middle of one picture, relative to white, (H, W).

        A pixel of the file is `scale` pixels wide.
        """
        if self.array:
            image = _load_array(self.stamps[0])[index]
            light = _cut_middle(image, shape, scale, self.path).astype(np.float64)
            return _resample(light, shape, scale)
        return _read_photograph(self.stamps[index], shape, scale)


def _cut_middle(image: Array, shape: Size, scale: float, name: str) -> Array:
    """Cut out the pixels that a field shows, refusing an image that is smaller."""
    wanted = np.divide(shape, scale)
    spare = image.shape[:2] - wanted
    if spare.min() < -1e-6:
        raise InputError(
            f"{name} has {image.shape[0]} x {image.shape[1]} px, and a field of {shape[0]} x "
            f"{shape[1]} px shows {wanted[0]:g} x {wanted[1]:g} px of its middle; lower size, or "
            "enlarge the picture, or give with file_ppd fewer of its pixels per degree"
        )
    top, left = np.maximum(spare // 2, 0).astype(int)
    if scale == 1:
        return image[top : top + shape[0], left : left + shape[1]]
    # As much on each side, so that the middle stays where it is.
    return image[top : image.shape[0] - top, left : image.shape[1] - left]


def _resample(light: FloatArray, shape: Size, scale: float) -> FloatArray:
    """Resample the middle of light to a field, smoothing where pixels are left out."""
    if scale == 1:
        return light
    from PIL import Image as Picture

    height, width = light.shape
    margin = np.maximum(np.subtract(light.shape, np.divide(shape, scale)) / 2, 0)
    box = (margin[1], margin[0], width - margin[1], height - margin[0])
    picture = Picture.fromarray(light.astype(np.float32))
    resampled = picture.resize(shape[::-1], Picture.Resampling.BICUBIC, box)
    return np.asarray(resampled, dtype=np.float64)


@lru_cache(maxsize=4)
def _load_array(stamp: Stamp) -> FloatArray:
    """Open the array of pictures, (T, H, W), in a `.npy` file."""
    try:
        array: FloatArray = np.load(stamp.path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise InputError(f"{stamp.path} is no array of numpy ({error})") from None
    if array.ndim == 2:
        array = array[None]
    if array.ndim != 3 or array.dtype.kind not in "fiu":
        raise InputError(
            f"{stamp.path} has {array.dtype} of shape {array.shape}; give numbers of shape (H, W) "
            "or (T, H, W): light, in any linear unit"
        )
    return array


@lru_cache(maxsize=64)
def _read_photograph(stamp: Stamp, shape: Size, scale: float) -> FloatArray:
    """Read the luminance, relative to white, of the middle of an sRGB image file."""
    raw = read_bytes(stamp.path)
    codes = decode_image(raw, stamp.path)
    check_srgb(raw, stamp.path)
    shown = _cut_middle(codes, shape, scale, stamp.path)
    luminance = light_of_drive(shown / 255, "srgb") @ Display().rgb_to_xyz[1]
    light = _resample(np.asarray(luminance), shape, scale)
    light.setflags(write=False)
    return light


class _Window(NamedTuple):
    """A window in the field."""

    name: str
    #: Pixels (H, W).
    shape: Size
    ppd: float
    radius: float
    edge: float
    x: float
    y: float

    def draw(self) -> Float64:
        """Draw the window, 1 where it is open, (H, W)."""
        if self.name == "none":
            return np.ones(self.shape)
        place = {"x": self.x, "y": self.y}
        if self.name == "gaussian":
            return estimate.gaussian(self.shape, self.ppd, self.radius, **place)
        place["edge"] = self.edge if self.name == "raised_cosine" else 0.0
        return estimate.round_window(self.shape, self.ppd, self.radius, **place)


class _Calibration(NamedTuple):
    """How pictures become patterns whose mean in the window is 0 and whose RMS contrast is 1."""

    mean: float
    deviation: float


@lru_cache(maxsize=256)
def _calibrate(
    pictures: Pictures, indices: tuple[int, ...], window: _Window, scale: float
) -> _Calibration:
    """Compute the mean and standard deviation of pictures within the window."""
    weight = window.draw()
    images = [pictures.read(index, window.shape, scale) for index in indices]
    # What is seen is the picture times the window, and the window weighs it again.
    mean = sum(float(np.vdot(weight**2, image)) for image in images)
    mean /= len(images) * float(np.vdot(weight, weight))
    power = sum(
        float(np.average((weight * (image - mean)) ** 2, weights=weight))
        for image in images
    )
    deviation = float(np.sqrt(power / len(images)))
    if not deviation > 1e-12 * abs(mean):
        raise InputError(
            f"{pictures.path} is uniform in the window, and has no contrast to set; move the window"
        )
    return _Calibration(mean, deviation)


class Photographic(Modulation):
    """Pictures of a file behind a window."""

    file: str = file_parameter("Photograph")
    window: str = "raised_cosine"
    radius: Levels = common("radius", default=1.0)
    edge: Levels = parameter(
        "deg", "Width of the edge", default=0.25, low=0, above=True
    )
    x: Levels = common("x", default=0.0)
    y: Levels = common("y", default=0.0)
    #: 0 shows a pixel of the file on a pixel of the field.
    file_ppd: Levels = parameter(
        "px/deg", "Pixels of the file per degree", default=0.0, low=0
    )

    contrast_kind = "rms"
    deepest = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.window not in WindowedWave.windows:
            raise unknown_name("window", str(self.window), WindowedWave.windows)
        allowed = "a raised cosine's ramp must be above 0 and at most twice the radius"
        self._require("edge", self.edge <= 2 * self.radius, allowed)

    def _check_contrast(self) -> None:
        """Allow any contrast: drawing refuses one that needs negative light."""

    @property
    def _window(self) -> _Window:
        """The window of one image of the batch."""
        place = (self.radius, self.edge, self.x, self.y)
        return _Window(self.window, self.shape, self.ppd, *place)

    @property
    def _scale(self) -> float:
        """Pixels of the field for a pixel of the file, of one image of the batch."""
        return self.ppd / float(self.file_ppd) if self.file_ppd else 1.0

    def window_moments(self, image: Float64) -> tuple[float, float]:
        """Compute mean and mean square of an image's light change within the window."""
        weight = self._window.draw()
        change = image / self.luminance - 1
        return (
            float(np.average(change, weights=weight)),
            float(np.average(change**2, weights=weight)),
        )

    def measure_window(
        self,
        moments: Sequence[tuple[float, float]],
        measurements: ImageMeasurements,
    ) -> None:
        """Measure mean and RMS contrast within the window over all images."""
        weight = self._window.draw()
        mean, square = np.mean(moments, axis=0)
        contrast = np.sqrt(square - mean**2) / (1 + mean)
        error = measurements.pixel_error(self.contrast) / self.luminance
        measurements.add(
            "mean luminance in window",
            self.luminance,
            self.luminance * (1 + mean),
            _IN_WINDOW,
            extra=error,
        )
        ratio = error / self.contrast
        pixels = float(weight.sum() ** 2 / np.vdot(weight, weight))
        measurements.add_contrast(
            "rms contrast in window",
            self.contrast,
            contrast,
            _IN_WINDOW,
            key="rms contrast in window",
            extra=STANDARD_ERRORS * ratio / np.sqrt(pixels) + ratio**2,
        )


@stimulus_kind("image")
class Image(Photographic):
    """A photograph behind a window; parameters as in `psyprobe.image`.

    Examples
    --------
    >>> from psyprobe.stimulus.catalogue import load_stimulus
    >>> photograph = load_stimulus("photograph").spec(contrast=0.2)
    >>> certificate = photograph.measure()
    >>> round(certificate["rms contrast in window"].delivered, 9)
    0.2
    """

    picture: Levels = parameter("1", "Picture", default=0.0, low=0, whole=True)
    #: How many pictures of the file, from the first, have one mean and one contrast together, as
    #: the frames of a film have; 0 where each has its own.
    pooled: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        count = len(Pictures(self.file))
        allowed = f"{self.file} has {count}, and the first is 0"
        self._require("picture", self.picture < count, allowed)

    def levels(self) -> Mapping[str, Parameter]:
        """Describe all that can be a level; the pictures of a folder are called as their files."""
        levels = super().levels()
        names = Pictures(self.file).names
        return {**levels, "picture": replace(levels["picture"], labels=names)}

    def unit(self) -> FloatArray:
        """Draw the photographs with mean 0 and RMS contrast 1 in the window, shape (n, H, W)."""
        pictures = Pictures(self.file)
        images = []
        for single in self.singles():
            index = int(single.picture)
            indices = tuple(range(self.pooled)) or (index,)
            scale = single._scale
            calibration = _calibrate(pictures, indices, single._window, scale)
            change = pictures.read(index, self.shape, scale) - calibration.mean
            images.append(single._window.draw() * change / calibration.deviation)
        return np.stack(images)

    def measure_planes(self, planes: Planes, measurements: ImageMeasurements) -> None:
        """Measure levels and contrast, and mean and RMS contrast within the window."""
        super().measure_planes(planes, measurements)
        if self.contrast == 0 or self.pooled:
            return
        self.measure_window([self.window_moments(planes.pattern)], measurements)
        light = Pictures(self.file).read(int(self.picture), self.shape, self._scale)
        weight = self._window.draw()
        mean = np.average(light, weights=weight)
        deviation = np.sqrt(np.average((light - mean) ** 2, weights=weight))
        measurements.add("rms contrast of the file", None, deviation / mean, _IN_WINDOW)


@check_keywords
def image(
    *,
    file: str,
    contrast: ArrayLike,
    luminance: ArrayLike = 100.0,
    picture: ArrayLike = 0,
    window: str = "raised_cosine",
    radius: ArrayLike = 1.0,
    edge: ArrayLike = 0.25,
    x: ArrayLike = 0.0,
    y: ArrayLike = 0.0,
    pooled: int = 0,
    file_ppd: ArrayLike = 0.0,
    direction: Direction = "achromatic",
    white: str | tuple[float, float] = "D65",
    observer: str = "cie2006_led_lcd",
    ppd: float = 60.0,
    size: int | Size = 224,
    dtype: str = "float64",
    device: str | None = None,
) -> Stimulus:
    """Draw photographs behind a window, at a stated RMS contrast of luminance.

    Parameters
    ----------
    file : str
        A photograph of 8 bits a channel in sRGB, a folder of them, or light in a ``.npy`` file of
        shape (H, W) or (T, H, W). The middle of each is shown, a pixel on a pixel.
    contrast : float or array
        SD over mean of what is shown, both weighted by the window. What would need negative light
        is refused.
    luminance : float or array
        Mean in the window, and the field around it, cd/m².
    picture : int or array of int
        Which picture of a folder, in the order of names, or of an array; from 0.
    window, radius, edge
        As in `grating`.
    x, y : float or array
        Centre of the window, deg to the right and up; the photograph stays in the middle.
    pooled : int
        How many pictures, from the first, have one mean and one contrast together, as the frames
        of a film have; 0 where each has its own.
    file_ppd : float or array
        Pixels of the file per degree: light is resampled to `ppd`, so that observers of every size
        see the same degrees of it. 0 shows it a pixel on a pixel.
    direction, white, observer, ppd, size, dtype, device
        As in `gabor`.

    Examples
    --------
    >>> from psyprobe.stimulus.catalogue import catalogue_folder
    >>> file = str(catalogue_folder("stimuli") / "photograph.png")
    >>> image(file=file, contrast=[0.1, 0.2], radius=0.8).luminance.shape
    (2, 224, 224)
    """
    return draw_kind(Image, locals())
