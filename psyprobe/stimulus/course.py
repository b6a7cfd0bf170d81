"""How the amplitude of a pattern goes in time, fitted to what was found in each frame of a clip.

As in `psyprobe.stimulus.estimate`, nothing here knows how clips are drawn. The amplitude of a moving wave is
``A w(t) exp(i (phase - 2 pi f t))``, that of one whose contrast reverses ``A w(t) cos(2 pi f t + phase)``, with
``w = exp(-t² / (2 sigma²))``, or 1 for a sigma of 0.
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
    #: Standard errors for independent errors of 1, of what could be fitted: "amplitude", "frequency", "phase", "sigma".
    gain: Mapping[str, float]


def course(
    times: FloatArray, amplitude: float, frequency: float, phase: float, sigma: float, *, moves: bool
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
    found: Complex, times: FloatArray, *, amplitude: float, frequency: float, sigma: float, moves: bool
) -> CourseFit:
    """Least squares on amplitude, frequency, phase and, where there is a window, its width.

    Parameters
    ----------
    found : ndarray of complex, shape (T,)
        Amplitude of the pattern in each frame; of a contrast that reverses the imaginary part should be 0.
    times : ndarray, shape (T,)
        Of the frames, s.
    amplitude, frequency, sigma : float
        Where to start. From the peak of the spectrum it is tried, too, and what explains more is taken. A contrast that
        reverses with a frequency of 0 has nothing to tell frequency and phase by; a sigma of 0 stands for no window.
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
    from scipy.optimize import least_squares

    static = frequency == 0 and not moves
    names = ("amplitude", *(() if static else ("frequency", "phase")), *(("sigma",) if sigma else ()))
    # Of like size, so that one step of rounding is alike in all.
    scale = {"amplitude": abs(amplitude), "frequency": 1 / np.ptp(times) if len(times) > 1 else 1.0, "phase": 1.0}
    scale["sigma"] = sigma

    def modelled(values: FloatArray) -> Complex:
        given = {"frequency": frequency, "phase": 0.0, "sigma": sigma}
        given |= {name: value * scale[name] for name, value in zip(names, values, strict=True)}
        return course(times, moves=moves, **given)

    def apart(values: FloatArray) -> FloatArray:
        left = (modelled(values) - found) / scale["amplitude"]
        return np.concatenate([left.real, left.imag])

    starts = [frequency]
    if not static and len(times) > 3:
        spectrum = np.abs(np.fft.fft(found if moves else found.real, _PADDED * len(times)))
        bins = np.fft.fftfreq(len(spectrum), times[1] - times[0])
        peak = float(bins[np.argmax(spectrum)])
        starts.append(-peak if moves else abs(peak))
    given = {"amplitude": 1.0, "phase": 0.0, "sigma": 1.0}
    fits = [
        least_squares(
            apart,
            [start / scale["frequency"] if name == "frequency" else given[name] for name in names],
            jac="3-point",
            xtol=1e-15,
            ftol=1e-15,
            gtol=1e-15,
        )
        for start in starts
    ]
    best = min(fits, key=lambda each: float(each.cost))
    value = dict(zip(names, best.x, strict=True))
    spread = np.sqrt(np.clip(np.diagonal(np.linalg.pinv(best.jac.T @ best.jac)), 0, None)) / scale["amplitude"]
    errors = {name: float(error * scale[name]) for name, error in zip(names, spread, strict=True)}
    if "phase" in errors:
        errors["phase"] = float(np.degrees(errors["phase"]))
    turned, speed = float(np.degrees(value.get("phase", 0.0))), float(value.get("frequency", 0.0) * scale["frequency"])
    size = float(value["amplitude"] * scale["amplitude"])
    if speed < 0 and not moves:
        speed, turned = -speed, -turned
    if size < 0:
        size, turned = -size, turned + 180
    return CourseFit(
        amplitude=size,
        frequency=speed,
        phase=(turned + 180) % 360 - 180,
        sigma=float(abs(value.get("sigma", 0.0)) * scale["sigma"]),
        residual=float(np.sqrt(np.mean(np.abs(modelled(best.x) - found) ** 2))),
        gain=errors,
    )
