"""Square-wave gratings, with the exact mean of the wave over each pixel."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from psyprobe._typing import Array, FloatArray, Size
from psyprobe.light.colour import Direction
from psyprobe.stimulus import estimate
from psyprobe.stimulus.backend import Backend
from psyprobe.stimulus.certificate import ImageMeasurements
from psyprobe.stimulus.kinds.gratings import WindowedWave
from psyprobe.stimulus.measuring import Planes
from psyprobe.stimulus.parameters import check_keywords
from psyprobe.stimulus.pattern import Modulation, cos_sin_degrees
from psyprobe.stimulus.registry import stimulus_kind
from psyprobe.stimulus.specification import draw_kind
from psyprobe.stimulus.stimulus import Stimulus


@stimulus_kind("square")
class SquareWave(WindowedWave):
    """Stripes of even width and sharp edges; parameters as in `psyprobe.square`.

    A pixel has the mean of the wave over its square; windows are sampled at its centre.

    Examples
    --------
    >>> wave = SquareWave(frequency=5.0, contrast=0.5, ppd=40.0, size=8, phase=90.0).draw()
    >>> wave.luminance[0].tolist()
    [150.0, 150.0, 150.0, 150.0, 50.0, 50.0, 50.0, 50.0]
    """

    def paint(
        self, amplitude: FloatArray, offset: FloatArray, backend: Backend
    ) -> Array:
        """Draw ``offset + amplitude * windowed wave``, shape (n, H, W)."""
        return Modulation.paint(self, amplitude, offset, backend)

    def unit(self) -> FloatArray:
        """Draw the wave of unit contrast behind its window, shape (n, H, W)."""
        return np.stack([wave._stripes() * wave.envelope() for wave in self.singles()])

    def _stripes(self) -> FloatArray:
        """Draw one image's square wave averaged over each pixel, (H, W)."""
        cosine, sine = cos_sin_degrees(np.array(self.orientation))
        columns, rows = estimate.pixel_centres(self.shape, self.ppd)
        across = (columns - self.x) * cosine + (rows[:, None] - self.y) * sine
        # Cycles from the middle of a bright stripe.
        place = self.frequency * across + self.phase / 360
        place = np.abs(place - np.rint(place))
        sides = np.abs([cosine, sine]) * self.frequency / self.ppd
        bright = np.zeros(self.shape)
        for middle in (0, 1):
            bright += _half_plane(middle + 0.25 - place, sides)
            bright -= _half_plane(middle - 0.25 - place, sides)
        return 2 * bright - 1

    def measure_planes(self, planes: Planes, measurements: ImageMeasurements) -> None:
        """Measure levels and contrast, and where the stripes lie."""
        Modulation.measure_planes(self, planes, measurements)
        # Stripes under two pixels do not tell where their edges lie.
        resolved = self.frequency <= self.ppd / 4
        if not measurements.refined or self.contrast == 0 or not resolved:
            return
        # At the rim edges move by up to a 64th of a pixel.
        step = 1 / 64 / self.ppd
        reach = max(self.field) / 2
        steps = {
            "frequency": step * self.frequency / reach,
            "orientation": float(np.degrees(step / reach)),
            "phase": 360 * step * self.frequency,
        }
        fit = self.fit_offsets(planes, measurements, steps)
        for name in steps:
            fit.add(name, name)


def _half_plane(depth: FloatArray, sides: FloatArray) -> FloatArray:
    """Compute the share of a pixel that lies on one side of a straight line.

    Parameters
    ----------
    depth : ndarray
        How far the pixel's centre lies on that side.
    sides : ndarray, shape (2,)
        How far across the line each side of the pixel reaches.
    """
    short = sides.min()
    long = sides.max()
    beyond = np.clip((short + long) / 2 - np.abs(depth), 0, None)
    # Beyond the ramp, the line cuts a corner off.
    corner = beyond**2 / np.maximum(2 * short * long, 1e-300)
    ramp = 0.5 - np.abs(depth) / long
    smaller = np.where(beyond <= short, corner, ramp)
    return np.asarray(np.where(depth > 0, 1 - smaller, smaller))


@check_keywords
def square(
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
    """Draw square-wave gratings: sharp stripes, with the exact coverage of each pixel.

    Parameters
    ----------
    contrast : float or array
        Michelson contrast of the stripes, 0 to 1; their fundamental has 4/pi times as much.
    phase : float or array
        Degrees; 0 puts the middle of a bright stripe at the centre.
    frequency, luminance, orientation, x, y, direction, white, observer, ppd, size, dtype, device
        As in `gabor`.
    window, radius, edge
        As in `grating`.

    Examples
    --------
    >>> square(frequency=[2.0, 4.0], contrast=1.0, orientation=45).luminance.shape
    (2, 224, 224)
    """
    return draw_kind(SquareWave, locals())
