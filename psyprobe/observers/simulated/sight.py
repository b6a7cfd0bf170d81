"""What a simulated observer sees in an image: contrast in units of its threshold."""

from __future__ import annotations

import hashlib
import math
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from psyprobe._typing import FloatArray
from psyprobe.errors import InputError
from psyprobe.light.display import Eotf, light_of_drive

if TYPE_CHECKING:
    from psyprobe.stimulus.specification import Specification

#: Luminance of a pixel from linear light of the sRGB primaries.
_LUMINANCE = np.array([0.2126, 0.7152, 0.0722])
#: Radius in units of the Nyquist frequency beyond which no stimulus has energy: what is there is dither noise.
_CORNER = 1.25
#: Images whose visible contrast is remembered: 25 prompts share one image.
_REMEMBERED = 256


@dataclass(frozen=True)
class Look:
    """What it saw in an image: the codes' digest, and contrast in units of threshold."""

    digest: bytes
    visible: float


class Sight:
    """Looks at images that are `deg` degrees wide through a contrast sensitivity function."""

    def __init__(self, name: str, sensitivity: Callable[[FloatArray], FloatArray], deg: float, eotf: Eotf) -> None:
        self._name = name
        self._sensitivity = sensitivity
        self._deg = deg
        self._eotf = eotf
        self._looks: OrderedDict[bytes, Look] = OrderedDict()
        self._gains: dict[tuple[int, int], FloatArray] = {}
        self._lock = threading.Lock()

    def look(self, image: FloatArray) -> Look:
        """What is in an image; remembered.

        Raises
        ------
        InputError
            It is no image.
        """
        drive = np.asarray(image)
        if drive.ndim != 3 or drive.shape[-1] not in (1, 3) or drive.dtype.kind != "f" or 0 in drive.shape:
            raise InputError(
                f"{self._name} looks at display drive, floating point, of shape (H, W, 3), and got {drive.dtype} "
                f"of shape {drive.shape}"
            )
        drive = np.ascontiguousarray(drive[..., :1] if drive.strides[-1] == 0 else drive, dtype=np.float32)
        raw = hashlib.sha256(drive.data).digest()
        with self._lock:
            if raw in self._looks:
                self._looks.move_to_end(raw)
                return self._looks[raw]
        shown = _known_by(drive)
        digest = hashlib.sha256(repr(shown.shape).encode() + shown.tobytes()).digest()
        look = Look(digest, self._visible(self._light(shown)))
        with self._lock:
            self._looks[raw] = look
            if len(self._looks) > _REMEMBERED:
                self._looks.popitem(last=False)
        return look

    def _light(self, shown: npt.NDArray[Any]) -> FloatArray:
        weights = _LUMINANCE if shown.shape[-1] == 3 else np.ones(1)
        if shown.dtype == np.uint8:
            table = _light_of_codes(self._eotf)
            mixed: FloatArray = np.sum([w * table[shown[..., i]] for i, w in enumerate(weights)], axis=0)
            return mixed
        if not np.isfinite(shown).all():
            raise InputError(f"{self._name} was given an image with NaN or infinity in it")
        light: FloatArray = light_of_drive(shown, self._eotf) @ weights
        return light

    def _visible(self, light: FloatArray) -> float:
        power, noise = self.filtered(light)
        return math.sqrt(max(power - noise, 0.0))

    def filtered(self, light: FloatArray) -> tuple[float, float]:
        """Twice the variance of the light's contrast behind the filter, and how much of that is white noise."""
        mean = float(light.mean())
        if not mean > 0:
            return 0.0, 0.0
        height, width = light.shape
        gain = self._gain(height, width)
        spectrum = np.fft.rfft2(light / mean - 1)
        power = spectrum.real**2 + spectrum.imag**2
        pixels = height * width
        corner = power[_corner(height, width)]
        # The median, over ln 2, is the mean of exponentially distributed power, and few outliers do not move it.
        floor = float(np.median(corner)) / math.log(2) if corner.size else 0.0
        return 2 * float((gain * power).sum()) / pixels**2, 2 * floor * float(gain.sum()) / pixels**2

    def _gain(self, height: int, width: int) -> FloatArray:
        """Squared sensitivity at each coefficient of `rfft2`, those counted double that stand for two."""
        known = self._gains.get((height, width))
        if known is None:
            radius, double = _radius(height, width)
            f = radius * (width / self._deg)
            flat = np.zeros(f.shape)
            flat[f > 0] = self._sensitivity(f[f > 0])
            known = self._gains[(height, width)] = flat**2 * double
        return known

    def over_ring(self, spec: Specification) -> FloatArray | None:
        """Root mean square sensitivity over a ring of equal amplitudes; None for anything else than a ring."""
        if getattr(spec, "kind", "") != "annulus_noise" or np.any(np.asarray(getattr(spec, "window", 0.0))):
            return None
        height, width = spec.shape
        radius, double = _radius(height, width)
        gain = self._gain(height, width)
        frequency, low, high = (np.asarray(getattr(spec, name)) for name in ("frequency", "low", "high"))
        low, high = np.broadcast_arrays(low * frequency, high * frequency)
        f = radius * float(spec.ppd)
        rings = [(f > a) & (f < b) for a, b in zip(low.ravel(), high.ravel(), strict=True)]
        power = np.array([gain[ring].sum() / double[ring].sum() for ring in rings])
        return np.broadcast_to(np.sqrt(power).reshape(low.shape), spec.batch)


def _known_by(drive: npt.NDArray[np.float32]) -> npt.NDArray[Any]:
    """The codes where the image is one of 8 bits, else the drive; a single channel where all are equal.

    By its codes an image is the same in process, out of a PNG, and however its drive was rounded.
    """
    values = drive * np.float32(255)
    codes = np.rint(values)
    eight_bit = np.abs(values - codes).max() < 1e-3 and codes.min() >= 0 and codes.max() <= 255
    shown: npt.NDArray[Any] = codes.astype(np.uint8) if eight_bit else drive
    first = shown[..., 0]
    if all(np.array_equal(first, shown[..., i]) for i in range(1, shown.shape[-1])):
        shown = np.ascontiguousarray(shown[..., :1])
    return shown


@cache
def _light_of_codes(eotf: Eotf) -> FloatArray:
    table: FloatArray = light_of_drive(np.arange(256) / 255, eotf)
    return table


@cache
def _radius(height: int, width: int) -> tuple[FloatArray, FloatArray]:
    """Of each coefficient of `rfft2`: radial frequency in cycles per pixel, and for how many coefficients it stands."""
    radius = np.hypot(np.fft.fftfreq(height)[:, None], np.fft.rfftfreq(width)[None])
    double = np.full(radius.shape, 2.0)
    double[:, 0] = 1
    if width % 2 == 0:
        double[:, -1] = 1
    return radius, double


@cache
def _corner(height: int, width: int) -> npt.NDArray[np.bool_]:
    return _radius(height, width)[0] > 0.5 * _CORNER
