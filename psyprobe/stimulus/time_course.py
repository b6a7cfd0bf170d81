"""How the amplitude of a pattern goes in time, fitted to what was found in each frame of a clip.

As in `psyprobe.stimulus.estimate`, nothing here knows how clips are drawn. The amplitude of a
moving wave is ``A w(t) exp(i (phase - 2 pi f t))``, that of one whose contrast reverses ``A w(t)
cos(2 pi f t + phase)``, with ``w = exp(-t² / (2 sigma²))``, or 1 for a sigma of 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from psyprobe._typing import FloatArray

Complex = npt.NDArray[np.complex128]

#: Times that a spectrum is padded by, to start from its peak.
_PADDED = 8
#: Cycles from which a contrast that reverses tells its frequency.
_SLOWEST = 0.25
#: Parameters of a course, in their order.
_NAMES = ("amplitude", "frequency", "phase", "sigma")
#: Of the fit, and lengths of a step that are tried.
_MOST_STEPS = 60
_HALVES = 0.5 ** np.arange(12)


@dataclass(frozen=True)
class CourseFit:
    """Contrast over time, by least squares."""

    #: In the unit of what was fitted.
    amplitude: float
    #: Hz; of a wave that moves against its direction below 0.
    frequency: float
    #: Degrees, at time 0.
    phase: float
    #: s; 0 where there is no window.
    sigma: float
    #: Root mean square of what is left, in the unit of what was fitted.
    residual: float
    #: Largest error where each frame is off by at most 1, of what could be fitted: "amplitude",
    #: "frequency", "phase", "sigma". Rounding is alike in frames that are alike, and does not
    #: average out.
    gain: Mapping[str, float]


def course(
    times: FloatArray,
    amplitude: float,
    frequency: float,
    phase: float,
    sigma: float,
    *,
    moves: bool,
) -> Complex:
    """The amplitude at some times, s; `phase` in radians, others as in `CourseFit`.

    Examples
    --------
    >>> course(np.array([0.0, 0.25]), 0.5, 1.0, 0.0, 0.0, moves=True).round(6)
    array([0.5+0.j , 0. -0.5j])
    """
    turned = 2 * np.pi * frequency * times
    wave = np.exp(1j * (phase - turned)) if moves else np.cos(turned + phase) + 0j
    window = np.exp(-(times**2) / (2 * sigma**2)) if sigma else 1.0
    return np.asarray(amplitude * window * wave, dtype=np.complex128)


def fit_course(
    found: Complex,
    times: FloatArray,
    *,
    amplitude: float,
    frequency: float,
    sigma: float,
    moves: bool,
) -> CourseFit:
    """Least squares on amplitude, frequency, phase and, where there is a window, its width.

    Parameters
    ----------
    found : ndarray of complex, shape (T,)
        Amplitude of the pattern in each frame; of a contrast that reverses the imaginary part
        should be 0.
    times : ndarray, shape (T,)
        Of the frames, s.
    amplitude, frequency, sigma : float
        Where to start. From the peak of the spectrum it is tried, too, and what explains more is
        taken. A contrast that reverses by less than a quarter of a cycle has nothing to tell
        frequency and phase by, which are held; a sigma of 0 stands for no window.
    moves : bool
        Whether the pattern moves.

    Examples
    --------
    >>> times = np.arange(40) / 60
    >>> found = course(times, 0.2, 7.3, 0.1, 0.0, moves=True)
    >>> fit = fit_course(found, times, amplitude=1.0, frequency=7.0, sigma=0.0, moves=True)
    >>> round(fit.frequency, 9), round(fit.amplitude, 9)
    (7.3, 0.2)
    """
    static = not moves and frequency * np.ptp(times) < _SLOWEST
    fitted = [0] if static else [0, 1, 2]
    fitted += [3] if sigma else []
    starts = [np.array([amplitude, frequency, 0.0, sigma])]
    if not static and len(times) > 3:
        spectrum = np.abs(np.fft.fft(found if moves else found.real, _PADDED * len(times)))
        bins = np.fft.fftfreq(len(spectrum), times[1] - times[0])
        peak = float(bins[np.argmax(spectrum)])
        starts.append(np.array([amplitude, -peak if moves else abs(peak), 0.0, sigma]))
    best = min(
        (_descended(start, fitted, found, times, moves) for start in starts),
        key=lambda each: each[1],
    )
    size, speed, turned, width = (float(value) for value in best[0])
    if speed < 0 and not moves:
        speed = -speed
        turned = -turned
    if size < 0:
        size = -size
        turned = turned + np.pi
    rows, scale = _scaled(_slopes(times, best[0], moves=moves)[:, fitted])
    errors = np.abs(np.linalg.pinv(rows)).sum(axis=1) / scale
    gain = {_NAMES[which]: float(error) for which, error in zip(fitted, errors, strict=True)}
    if "phase" in gain:
        gain["phase"] = float(np.degrees(gain["phase"]))
    return CourseFit(
        amplitude=size,
        frequency=speed,
        phase=(float(np.degrees(turned)) + 180) % 360 - 180,
        sigma=abs(width),
        residual=float(np.sqrt(best[1] / len(times))),
        gain=gain,
    )


def _slopes(times: FloatArray, values: FloatArray, *, moves: bool) -> Complex:
    """How a course changes with each of its parameters, shape (T, 4)."""
    amplitude, frequency, phase, sigma = (float(value) for value in values)
    unit = course(times, 1.0, frequency, phase, sigma, moves=moves)
    # A quarter of a cycle on a wave is its slope; of one that moves time and phase have opposite
    # signs.
    ahead = amplitude * course(times, 1.0, frequency, phase + np.pi / 2, sigma, moves=moves)
    by_time = 2 * np.pi * times * (-1 if moves else 1) * ahead
    by_sigma = amplitude * unit * times**2 / sigma**3 if sigma else np.zeros_like(unit)
    return np.stack([unit, by_time, ahead, by_sigma], axis=1)


def _scaled(slopes: Complex) -> tuple[FloatArray, FloatArray]:
    """Real and imaginary parts below each other, each column of length 1, and the lengths."""
    scale = np.linalg.norm(slopes, axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    unit = slopes / scale
    return np.concatenate([unit.real, unit.imag]), np.asarray(scale)


def _descended(
    start: FloatArray, fitted: list[int], found: Complex, times: FloatArray, moves: bool
) -> tuple[FloatArray, float]:
    """Gauss-Newton steps, halved while they lead uphill; the parameters and the sum of squares that
    they leave.
    """

    def left(values: FloatArray) -> Complex:
        return found - course(times, *(float(value) for value in values), moves=moves)

    values = start
    apart = left(values)
    cost = float(np.vdot(apart, apart).real)
    for _ in range(_MOST_STEPS):
        rows, scale = _scaled(_slopes(times, values, moves=moves)[:, fitted])
        target = np.concatenate([apart.real, apart.imag])
        step = np.zeros(4)
        step[fitted] = np.linalg.lstsq(rows, target, rcond=1e-14)[0] / scale
        for factor in _HALVES:
            tried = values + factor * step
            apart = left(tried)
            now = float(np.vdot(apart, apart).real)
            if now < cost:
                break
        else:
            break
        values = tried
        cost = now
    return values, cost
