"""Every parameter of a Gabor or a grating, refined from its pixels by damped Gauss-Newton.

The peak of a Fourier transform lies up to half a bin off, and is biased where few cycles fit under the envelope; the
least-squares optimum reaches the rounding error of the pixels.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from psyprobe._typing import Array, FloatArray
from psyprobe.errors import InputError
from psyprobe.stimulus.estimate import (
    Float64,
    carrier,
    fit_patterns,
    gaussian,
    pixel_centres,
    to_float64,
    turn,
    wave_vector,
)


@dataclass(frozen=True)
class PatternFit:
    """A Gabor or grating with all its parameters fitted.

    Attributes
    ----------
    background, amplitude, pedestal, residual : float
        In the unit of the image.
    phase : float
        Degrees in (-180, 180], at the centre that was asked for.
    frequency : float
        Cycles per degree.
    orientation : float
        Degrees, within 90 of the one asked for.
    x, y : float
        Centre of the envelope, degrees.
    radius : float
        Standard deviation of the envelope across the stripes, degrees; infinite where the envelope is given.
    aspect : float
        Standard deviation along the stripes over that across them.
    gain : dict of str to float
        Standard error of each parameter, in its own unit, for independent pixel errors of 1.
    """

    background: float
    amplitude: float
    phase: float
    pedestal: float
    frequency: float
    orientation: float
    x: float
    y: float
    radius: float
    aspect: float
    residual: float
    gain: dict[str, float]


def refine_sine(
    image: Array,
    *,
    ppd: float,
    frequency: float,
    orientation: float = 0.0,
    x: float = 0.0,
    y: float = 0.0,
    radius: float | None = None,
    aspect: float = 1.0,
    window: FloatArray | None = None,
    pedestal: bool = False,
) -> PatternFit:
    """Every parameter of a Gabor or a grating by damped Gauss-Newton, started where it was asked for.

    Where the image has too few cycles to tell two parameters apart, what cannot be told stays at its start.

    Parameters
    ----------
    image : (H, W) array
        One image: luminance, or any linear quantity.
    ppd : float
        Pixels per degree.
    frequency, orientation : float
        Start, cycles per degree and degrees counter-clockwise from vertical stripes.
    x, y : float
        Centre asked for, degrees: start of the envelope's centre, and the point to which the phase refers.
    radius : float, optional
        Start of the Gaussian standard deviation across the stripes, degrees; absent, the envelope is `window`.
    aspect : float
        Start of the standard deviation along the stripes over that across them.
    window : (H, W) ndarray, optional
        A known envelope that is not fitted; 1 everywhere if absent.
    pedestal : bool
        Fit the bare envelope too.

    Returns
    -------
    PatternFit

    Raises
    ------
    InputError
        If the image is a batch.

    Examples
    --------
    >>> x, _ = pixel_centres((64, 64), ppd=32)
    >>> image = 100 + 5 * gaussian((64, 64), 32, 0.3) * np.cos(2 * np.pi * 4.02 * x + 1)
    >>> fit = refine_sine(image, ppd=32, frequency=4, radius=0.25)
    >>> round(fit.frequency, 9), round(fit.radius, 9), round(float(np.radians(fit.phase)), 9)
    (4.02, 0.3, 1.0)
    """
    pixels = to_float64(image)
    if pixels.ndim != 2:
        raise InputError(f"refine_sine takes one image (H, W), not a batch of shape {pixels.shape}")
    model = _Model(
        shape=(pixels.shape[0], pixels.shape[1]),
        ppd=ppd,
        centre=(x, y),
        orientation=orientation,
        window=window,
        pedestal=pedestal,
        fitted_envelope=radius is not None,
    )
    envelope = np.array([x, y, 0.0, 0.0] if radius is None else [x, y, np.log(radius), np.log(radius * aspect)])
    start = model.start(pixels, np.array(wave_vector(frequency, orientation)), envelope)
    best = _gauss_newton(model, pixels, start)
    variance = float(pixels.var())
    if variance > 0 and best.cost > 0.5 * variance * pixels.size:
        elsewhere = model.start(pixels, np.array(wave_vector(*dominant_frequency(pixels, ppd))), envelope)
        other = _gauss_newton(model, pixels, elsewhere)
        best = other if other.cost < best.cost else best
    return model.report(best, pixels.size, float(pixels.mean()))


def dominant_frequency(image: Array, ppd: float) -> tuple[float, float]:
    """Frequency and orientation of the largest Fourier coefficient, to within a bin.

    Parameters
    ----------
    image : (H, W) array
        One image, of at least 4 px a side.
    ppd : float
        Pixels per degree.

    Returns
    -------
    frequency : float
        Cycles per degree.
    orientation : float
        Degrees counter-clockwise from vertical stripes, in [0, 180).

    Examples
    --------
    >>> x, _ = pixel_centres((32, 32), ppd=32)
    >>> dominant_frequency(np.cos(2 * np.pi * 4 * x) * np.ones((32, 1)), ppd=32)
    (4.0, 0.0)
    """
    pixels = to_float64(image)
    height, width = pixels.shape
    taper = np.outer(np.hanning(height + 2)[1:-1], np.hanning(width + 2)[1:-1])
    deviation = (pixels - (pixels * taper).sum() / taper.sum()) * taper
    rows, columns = 2 * height, 2 * width
    power = np.abs(np.fft.rfft2(deviation, s=(rows, columns))) ** 2
    row, column = np.unravel_index(int(np.argmax(power)), power.shape)
    u = np.fft.rfftfreq(columns, 1 / ppd)[column]
    v = -np.fft.fftfreq(rows, 1 / ppd)[row]
    return float(np.hypot(u, v)), float(np.degrees(np.arctan2(v, u)) % 180)


@dataclass(frozen=True)
class _State:
    """Parameters reached by the search, with the inverse normal matrix there."""

    parameters: Float64
    cost: float
    inverse: Float64


@dataclass(frozen=True)
class _Model:
    """b + E (p cos + q sin + d), with its derivatives.

    Parameters, in order: p, q, d, b, u, v (carrier, cpd), x, y, log sigma across, log sigma along.
    """

    shape: tuple[int, int]
    ppd: float
    centre: tuple[float, float]
    orientation: float
    window: FloatArray | None
    pedestal: bool
    fitted_envelope: bool

    @property
    def free(self) -> npt.NDArray[np.bool_]:
        """Which of the ten parameters are fitted."""
        return np.array([True, True, self.pedestal, True, True, True] + [self.fitted_envelope] * 4)

    def start(self, pixels: Float64, wave: Float64, envelope: Float64) -> Float64:
        """The linear parameters that suit a wave and an envelope, followed by these."""
        shape_only = np.concatenate([[0.0, 0.0, 0.0, 0.0], wave, envelope])
        profile = self._envelope(shape_only)
        phasor = carrier(self.shape, self.ppd, wave[0], wave[1], *self.centre) * profile
        patterns = [phasor.real, phasor.imag] + ([profile] if self.pedestal else [])
        fit = fit_patterns(pixels, np.stack(patterns))
        pedestal = fit.coefficients[2] if self.pedestal else 0.0
        linear = [fit.coefficients[0], fit.coefficients[1], pedestal, float(fit.background) - pixels.mean()]
        return np.concatenate([linear, wave, envelope])

    def evaluate(self, parameters: Float64) -> tuple[Float64, Float64]:
        """The image less its mean, and the derivatives (K, N) by the free parameters."""
        p, q, d, b, u, v, x, y, log_across, log_along = parameters
        columns, rows = pixel_centres(self.shape, self.ppd)
        wave = carrier(self.shape, self.ppd, u, v, *self.centre)
        profile = self._envelope(parameters)
        wave = wave * profile
        pattern = p * wave.real + q * wave.imag + d * profile
        slope = 2 * np.pi * (q * wave.real - p * wave.imag)
        jacobian = [wave.real, wave.imag]
        if self.pedestal:
            jacobian.append(profile)
        jacobian.append(np.ones(self.shape))
        jacobian += [slope * (columns - self.centre[0])[None, :], slope * (rows - self.centre[1])[:, None]]
        if self.fitted_envelope:
            across, along = turn(columns - x, rows - y, self.orientation)
            angle = np.radians(self.orientation)
            narrow, wide = np.exp(-2 * log_across), np.exp(-2 * log_along)
            jacobian += [
                pattern * (across * (np.cos(angle) * narrow) - along * (np.sin(angle) * wide)),
                pattern * (across * (np.sin(angle) * narrow) + along * (np.cos(angle) * wide)),
                pattern * across**2 * narrow,
                pattern * along**2 * wide,
            ]
        return pattern + b, np.stack([column.ravel() for column in jacobian])

    def report(self, state: _State, count: int, mean: float) -> PatternFit:
        p, q, d, b, u, v, x, y, log_across, log_along = state.parameters
        sign = 1.0 if np.dot((u, v), wave_vector(1.0, self.orientation)) >= 0 else -1.0
        u, v, q = sign * u, sign * v, sign * q
        amplitude, frequency = float(np.hypot(p, q)), float(np.hypot(u, v))
        turn = float(np.degrees(np.arctan2(v, u)))
        errors = np.zeros(10)
        errors[self.free] = np.sqrt(np.clip(np.diagonal(state.inverse), 0, None))
        wave_error = float(np.hypot(errors[4], errors[5]))
        amplitude_error = float(np.hypot(errors[0], errors[1]))
        radius, along_error = float(np.exp(log_across)), float(np.hypot(errors[8], errors[9]))
        aspect = float(np.exp(log_along - log_across))
        return PatternFit(
            background=float(b) + mean,
            amplitude=amplitude,
            phase=float(np.degrees(np.arctan2(-q, p))),
            pedestal=float(d),
            frequency=frequency,
            orientation=self.orientation + (turn - self.orientation + 90) % 180 - 90,
            x=float(x),
            y=float(y),
            radius=radius if self.fitted_envelope else float("inf"),
            aspect=aspect,
            residual=float(np.sqrt(state.cost / count)),
            gain={
                "background": float(errors[3]),
                "amplitude": amplitude_error,
                "phase": float(np.degrees(amplitude_error / amplitude)) if amplitude else float("inf"),
                "frequency": wave_error,
                "orientation": float(np.degrees(wave_error / frequency)) if frequency else float("inf"),
                "x": float(errors[6]),
                "y": float(errors[7]),
                "radius": radius * float(errors[8]),
                "aspect": aspect * along_error,
            },
        )

    def _envelope(self, parameters: Float64) -> Float64:
        if not self.fitted_envelope:
            return np.ones(self.shape) if self.window is None else np.asarray(self.window, dtype=np.float64)
        x, y, log_across, log_along = parameters[6:]
        return gaussian(
            self.shape,
            self.ppd,
            float(np.exp(log_across)),
            aspect=float(np.exp(log_along - log_across)),
            orientation=self.orientation,
            x=float(x),
            y=float(y),
        )


def _gauss_newton(model: _Model, pixels: Float64, start: Float64) -> _State:
    """Damped Gauss-Newton; stops when a step would move the image by less than its rounding."""
    target = (pixels - pixels.mean()).ravel()
    parameters, damping = start, 0.0
    image, jacobian = model.evaluate(parameters)
    left = target - image.ravel()
    cost = float(left @ left)
    signal = float(np.sqrt(target @ target))
    inverse = np.zeros((jacobian.shape[0], jacobian.shape[0]))
    for _ in range(60):
        scale = np.sqrt((jacobian**2).sum(axis=1))
        scale = np.where(scale > 0, scale, 1.0)
        normal = (jacobian @ jacobian.T) / np.outer(scale, scale)
        inverse = np.linalg.pinv(normal, rcond=1e-12, hermitian=True) / np.outer(scale, scale)
        damped = np.linalg.pinv(normal + damping * np.eye(len(scale)), rcond=1e-12, hermitian=True)
        step = damped @ ((jacobian @ left) / scale) / scale
        moved = float(np.linalg.norm(step @ jacobian))
        if moved <= 1e-13 * signal:
            break
        trial = parameters.copy()
        trial[model.free] += step
        # A step of a factor of e in the envelope or of an octave in frequency is a leap into the dark.
        sane = np.all(np.abs(trial[8:] - parameters[8:]) < 1)
        if sane:
            image, slopes = model.evaluate(trial)
            rest = target - image.ravel()
            if (trial_cost := float(rest @ rest)) < cost:
                gained = cost - trial_cost
                parameters, jacobian, left, cost = trial, slopes, rest, trial_cost
                damping = damping / 10 if damping > 1e-9 else 0.0
                # What is left to gain moves no parameter by a ten-thousandth of its standard error.
                if gained <= 1e-9 * cost:
                    break
                continue
        if moved <= 1e-10 * signal:
            break
        damping = max(10 * damping, 1e-4)
    return _State(parameters, cost, inverse)
