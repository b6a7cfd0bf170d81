"""Measure motion in frames of dots: which displacement repeats, and how many dots share it.

Frames are correlated with later ones in the Fourier domain, where the dots' own blur is divided
out as far as it leaves anything. Noise dots that step as far as the others lie on a ring about
rest; what the ring holds elsewhere is subtracted from its peak.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from psyprobe._typing import FloatArray, Size
from psyprobe.stimulus.estimate import Float64

#: Share of the dots' amplitude below which a frequency says nothing of them.
_FAINTEST = 1e-3
#: What the dots' standard deviation is divided by when their blur is divided out.
_SHARPER = 3.0
_ANGLES = 64
_NEWTON_STEPS = 12


class Displacement(NamedTuple):
    """The displacement that most dots share."""

    #: x, y: Pixels to the right and up.
    x: float
    y: float
    #: Share of the dots.
    share: float
    #: Correlation at other steps as long.
    level: float
    #: Standard deviation of that level by chance; NaN where the step is too short to tell.
    chance: float


class Motion:
    """Correlation of frames with those `lag` later, in a field whose edges meet.

    Parameters
    ----------
    shape : (int, int)
        Pixels (H, W).
    sigma : float
        Standard deviation of a dot, px.
    lag : int
        How many frames later.

    Examples
    --------
    >>> motion = Motion((16, 16), 1.0, 1)
    >>> frame = np.zeros((16, 16))
    >>> frame[8, 4] = frame[3, 9] = 1.0
    >>> for step in range(3):
    ...     motion.add(np.roll(frame, step, axis=1))
    >>> shift = motion.find()
    >>> round(shift.x, 9), round(abs(shift.y), 9)
    (1.0, 0.0)
    """

    def __init__(self, shape: Size, sigma: float, lag: int) -> None:
        self.shape = shape
        self.lag = lag
        #: Standard deviation of a peak of the correlation, px.
        self.blur = np.sqrt(2) * sigma / _SHARPER
        up = -np.fft.fftfreq(shape[0])[:, None]
        across = np.fft.rfftfreq(shape[1])
        squared = 2 * np.pi**2 * (up**2 + across**2)
        dot = np.exp(-(sigma**2) * squared)
        sharp = np.exp(-((sigma / _SHARPER) ** 2) * squared)
        self._weight = np.where(dot >= _FAINTEST, sharp / dot, 0.0)
        # A half-plane spectrum has each column but the outer ones twice.
        twice = np.where((across == 0) | (across == 0.5), 1.0, 2.0)
        self._twice = np.broadcast_to(twice, dot.shape)
        self._frequencies = np.stack(np.broadcast_arrays(across, up))
        self._recent: list[npt.NDArray[np.complex128]] = []
        self._cross = np.zeros(dot.shape, dtype=np.complex128)
        self._power = 0.0

    def add(self, image: Float64) -> None:
        """Add the next frame of a clip, to correlate with the frames before."""
        spectrum = np.fft.rfft2(image - image.mean()) * self._weight
        self._recent.append(spectrum)
        if len(self._recent) <= self.lag:
            return
        before = self._recent.pop(0)
        self._cross += before.conj() * spectrum * self._twice
        for end in (before, spectrum):
            self._power += float((np.abs(end) ** 2 * self._twice).sum()) / 2

    def correlate(self, x: FloatArray, y: FloatArray) -> FloatArray:
        """Compute how frames correlate at displacements, px; 1 where all dots share one."""
        across = np.exp(2j * np.pi * np.outer(x, self._frequencies[0, 0]))
        up = np.exp(2j * np.pi * np.outer(y, self._frequencies[1, :, 0]))
        total = np.einsum("nu,uv,nv->n", up, self._cross, across, optimize=True)
        return np.asarray(total.real / self._power)

    def find(self) -> Displacement:
        """Find the displacement of highest correlation, and the share of dots that have it."""
        peaks = np.fft.irfft2(self._cross / self._twice, self.shape)
        row, column = np.unravel_index(int(peaks.argmax()), self.shape)
        height, width = self.shape
        place = np.array(
            [
                (column + width // 2) % width - width // 2,
                height // 2 - (row + height // 2) % height,
            ],
            dtype=np.float64,
        )
        for _ in range(_NEWTON_STEPS):
            phase = np.tensordot(place, self._frequencies, 1)
            terms = self._cross * np.exp(2j * np.pi * phase)
            slope = -2 * np.pi * (self._frequencies * terms.imag).sum(axis=(1, 2))
            curvature = (
                -4
                * np.pi**2
                * np.einsum(
                    "aij,bij,ij->ab", self._frequencies, self._frequencies, terms.real
                )
            )
            place -= np.clip(np.linalg.solve(curvature, slope), -0.5, 0.5)
        return self.share_at(float(place[0]), float(place[1]))

    def _ring(self, x: float, y: float) -> FloatArray:
        """Compute the correlation at displacements as long as one, but for directions near it."""
        distance = np.hypot(x, y)
        angles = np.arctan2(y, x) + 2 * np.pi * np.arange(_ANGLES) / _ANGLES
        ring_x = distance * np.cos(angles)
        ring_y = distance * np.sin(angles)
        apart = np.hypot(ring_x - x, ring_y - y) > 4 * self.blur
        return self.correlate(ring_x[apart], ring_y[apart])

    def share_at(self, x: float, y: float) -> Displacement:
        """Measure the share of dots that have one displacement, px to the right and up."""
        ring = self._ring(x, y)
        peak = float(self.correlate(np.array([x]), np.array([y]))[0])
        if not ring.size:
            return Displacement(x, y, peak, 0.0, float("nan"))
        level = float(ring.mean())
        return Displacement(x, y, peak - level, level, float(ring.std()))
