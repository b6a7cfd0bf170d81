"""The time course of a pattern's amplitude, fitted to the amplitudes in the frames of a clip.

As in `psyprobe.stimulus.estimate`, nothing here knows how clips are drawn. The amplitude of a
moving wave is ``A w(t) exp(i (phase - 2 pi f t))``, that of one whose contrast reverses ``A w(t)
cos(2 pi f t + phase)``, with ``w = exp(-t² / (2 sigma²))``, or 1 for a sigma of 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from psyprobe._typing import FloatArray

Complex = npt.NDArray[np.complex128]

#: A spectrum is padded to so many times its length, to start a fit from its peak.
_PADDING = 8
#: A contrast that reverses by fewer cycles does not determine its frequency.
_FEWEST_CYCLES = 0.25
#: Parameters of a time course, in their order.
_NAMES = ("amplitude", "frequency", "phase", "sigma")
#: Number of steps of a fit, and the lengths of a step that are tried.
_LARGEST_STEP_COUNT = 60
_HALVES = 0.5 ** np.arange(12)


@dataclass(frozen=True)
class TimeCourseFit:
    """A time course fitted to amplitudes by least squares."""

    #: In the unit of the amplitudes.
    amplitude: float
    #: Hz; negative for a wave that moves against its direction.
    frequency: float
    #: Degrees, at time 0.
    phase: float
    #: s; 0 where there is no window.
    sigma: float
    #: Root mean square of the residual, in the unit of the amplitudes.
    residual: float
    #: Largest error of each fitted parameter ("amplitude", "frequency", "phase", "sigma") where
    #: each frame is off by at most 1. Rounding is alike in frames that are alike, and does not
    #: average out.
    gain: Mapping[str, float]


def time_course(
    times: FloatArray,
    amplitude: float,
    frequency: float,
    phase: float,
    sigma: float,
    *,
    moves: bool,
) -> Complex:
    """Compute the amplitude of a flickering or drifting pattern at some times, s.

    `phase` is in radians, other parameters are as in `TimeCourseFit`.

    Examples
    --------
    >>> time_course(np.array([0.0, 0.25]), 0.5, 1.0, 0.0, 0.0, moves=True).round(6)
    array([0.5+0.j , 0. -0.5j])
    """
    angle = 2 * np.pi * frequency * times
    wave = np.exp(1j * (phase - angle)) if moves else np.cos(angle + phase) + 0j
    window = np.exp(-(times**2) / (2 * sigma**2)) if sigma else 1.0
    return np.asarray(amplitude * window * wave, dtype=np.complex128)


def fit_time_course(
    amplitudes: Complex,
    times: FloatArray,
    *,
    amplitude: float,
    frequency: float,
    sigma: float,
    moves: bool,
) -> TimeCourseFit:
    """Fit a time course to the amplitudes of a pattern by least squares.

    Parameters
    ----------
    amplitudes : ndarray of complex, shape (T,)
        Amplitude of the pattern in each frame; for a contrast that reverses the imaginary part
        should be 0.
    times : ndarray, shape (T,)
        Times of the frames, s.
    amplitude, frequency, sigma : float
        Where to start. The fit starts from the peak of the spectrum, too, and the better one is
        taken. A contrast that reverses by less than a quarter of a cycle does not determine
        frequency and phase, which stay at their start; a sigma of 0 stands for no window.
    moves : bool
        Whether the pattern moves.

    Examples
    --------
    >>> times = np.arange(40) / 60
    >>> amplitudes = time_course(times, 0.2, 7.3, 0.1, 0.0, moves=True)
    >>> start = {"amplitude": 1.0, "frequency": 7.0, "sigma": 0.0}
    >>> fit = fit_time_course(amplitudes, times, **start, moves=True)
    >>> round(fit.frequency, 9), round(fit.amplitude, 9)
    (7.3, 0.2)
    """
    static = not moves and frequency * np.ptp(times) < _FEWEST_CYCLES
    free = [0] if static else [0, 1, 2]
    if sigma:
        free.append(3)
    starts = [np.array([amplitude, frequency, 0.0, sigma])]
    if not static and len(times) > 3:
        signal = amplitudes if moves else amplitudes.real
        spectrum = np.abs(np.fft.fft(signal, _PADDING * len(times)))
        bins = np.fft.fftfreq(len(spectrum), times[1] - times[0])
        peak = float(bins[np.argmax(spectrum)])
        starts.append(np.array([amplitude, -peak if moves else abs(peak), 0.0, sigma]))
    descents = (_descend(start, free, amplitudes, times, moves) for start in starts)
    best = min(descents, key=lambda descent: descent.cost)
    amplitude, frequency, phase, sigma = best.parameters.tolist()
    if frequency < 0 and not moves:
        frequency = -frequency
        phase = -phase
    if amplitude < 0:
        amplitude = -amplitude
        phase = phase + np.pi
    rows, scale = _scaled(_slopes(times, best.parameters, moves=moves)[:, free])
    errors = np.abs(np.linalg.pinv(rows)).sum(axis=1) / scale
    gain = {
        _NAMES[index]: float(error) for index, error in zip(free, errors, strict=True)
    }
    if "phase" in gain:
        gain["phase"] = float(np.degrees(gain["phase"]))
    return TimeCourseFit(
        amplitude=amplitude,
        frequency=frequency,
        phase=(float(np.degrees(phase)) + 180) % 360 - 180,
        sigma=abs(sigma),
        residual=float(np.sqrt(best.cost / len(times))),
        gain=gain,
    )


def _slopes(times: FloatArray, parameters: FloatArray, *, moves: bool) -> Complex:
    """Differentiate a time course by each of its parameters, shape (T, 4)."""
    amplitude, frequency, phase, sigma = parameters.tolist()
    unit = time_course(times, 1.0, frequency, phase, sigma, moves=moves)
    # A wave a quarter of a cycle ahead is its slope; in one that moves, time and phase have
    # opposite signs.
    ahead = amplitude * time_course(
        times, 1.0, frequency, phase + np.pi / 2, sigma, moves=moves
    )
    by_frequency = 2 * np.pi * times * (-1 if moves else 1) * ahead
    by_sigma = amplitude * unit * times**2 / sigma**3 if sigma else np.zeros_like(unit)
    return np.stack([unit, by_frequency, ahead, by_sigma], axis=1)


def _scaled(slopes: Complex) -> tuple[FloatArray, FloatArray]:
    """Stack real on imaginary parts of slopes, and scale each column to length 1.

    Returns
    -------
    rows : ndarray, shape (2 T, K)
    lengths : ndarray, shape (K,)
        Lengths of the columns before.
    """
    scale = np.linalg.norm(slopes, axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    unit = slopes / scale
    return np.concatenate([unit.real, unit.imag]), np.asarray(scale)


class _Descent(NamedTuple):
    parameters: FloatArray
    #: Sum of squares of the residual.
    cost: float


def _descend(
    start: FloatArray,
    free: list[int],
    amplitudes: Complex,
    times: FloatArray,
    moves: bool,
) -> _Descent:
    """Take Gauss-Newton steps in the free parameters, halved while they lead uphill."""

    def residual_of(parameters: FloatArray) -> Complex:
        return amplitudes - time_course(times, *parameters.tolist(), moves=moves)

    parameters = start
    residual = residual_of(parameters)
    cost = float(np.vdot(residual, residual).real)
    for _ in range(_LARGEST_STEP_COUNT):
        rows, scale = _scaled(_slopes(times, parameters, moves=moves)[:, free])
        target = np.concatenate([residual.real, residual.imag])
        step = np.zeros(4)
        step[free] = np.linalg.lstsq(rows, target, rcond=1e-14)[0] / scale
        for factor in _HALVES:
            trial = parameters + factor * step
            residual = residual_of(trial)
            trial_cost = float(np.vdot(residual, residual).real)
            if trial_cost < cost:
                break
        else:
            break
        parameters = trial
        cost = trial_cost
    return _Descent(parameters, cost)
