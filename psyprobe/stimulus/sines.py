"""Sines fitted to pixels: the phase, amplitude, place and envelope of Gabors and gratings.

As in `psyprobe.stimulus.estimate`, nothing here knows how stimuli are drawn.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from psyprobe._typing import Array, BoolArray, FloatArray, Size
from psyprobe.errors import InputError
from psyprobe.stimulus.estimate import (
    Float64,
    eigen_inverse,
    gaussian,
    lengths,
    pixel_centres,
    to_float64,
)
from psyprobe.stimulus.sine_derivatives import FIELD, SIGN, Derivatives


@dataclass(frozen=True)
class SineFit:
    """A sine of given frequency, orientation and envelope, fitted to each image of a batch."""

    #: Level that the wave rides on, in the unit of the image.
    background: Float64
    #: Half the distance from trough to peak where the envelope is 1, in the unit of the image.
    amplitude: Float64
    #: Degrees in (-180, 180]; 0 puts a peak at the centre.
    phase: Float64
    #: Amplitude of the bare envelope, in the unit of the image; 0 where it is not fitted.
    pedestal: Float64
    #: gain, background_gain: Standard errors of the amplitude and the background for independent
    #: pixel errors of 1.
    gain: Float64
    background_gain: Float64
    #: mean, deviation: Mean and population standard deviation of the pixels, in the unit of the
    #: image.
    mean: Float64
    deviation: Float64
    #: The image less the wave and its background, shape (..., H, W).
    residual: Float64


@dataclass(frozen=True)
class PatternFit:
    """A Gabor or grating with all its parameters fitted."""

    #: background, amplitude, residual: In the unit of the image.
    background: float
    amplitude: float
    #: Degrees in (-180, 180], at the centre that was requested.
    phase: float
    #: Cycles per degree.
    frequency: float
    #: Degrees, within 90 of the one that was requested.
    orientation: float
    #: x, y: Centre of the envelope, degrees.
    x: float
    y: float
    #: Standard deviation of the envelope across the stripes, degrees; infinite where the envelope
    #: is given.
    radius: float
    #: Standard deviation along the stripes over that across them.
    aspect: float
    residual: float
    #: Standard error of each parameter, in its own unit, for independent pixel errors of 1.
    gain: dict[str, float]


@dataclass(frozen=True, kw_only=True)
class Sine:
    """A wave to search for in images: ``b + E (p cos + q sin + d)``.

    It lies under an envelope E on a background.

    Parameters
    ----------
    shape : (int, int)
        Pixels (H, W).
    ppd : float
        Pixels per degree.
    frequency : float
        Cycles per degree.
    orientation : float
        Degrees counter-clockwise from vertical stripes.
    x, y : float
        Centre of the envelope, degrees, and the point to which the phase refers.
    radius : float, optional
        Gaussian standard deviation of the envelope across the stripes, degrees; without it, the
        envelope is `window`.
    aspect : float
        Standard deviation along the stripes over that across them.
    window : (H, W) ndarray, optional
        An envelope of another form; by default 1 everywhere.
    pedestal : bool
        Fit the bare envelope too, d: a Gabor balanced to zero mean has one.

    Examples
    --------
    At a quarter of the sampling rate and 45 degrees of phase no sample meets a peak:

    >>> x, _ = pixel_centres((4, 64), ppd=60)
    >>> grating = 100 + 50 * np.cos(2 * np.pi * 15 * x + np.pi / 4) * np.ones((4, 1))
    >>> fit = Sine(shape=(4, 64), ppd=60, frequency=15).fit(grating)
    >>> round(float(fit.amplitude), 9), round(float(fit.phase), 9)
    (50.0, 45.0)
    >>> round(float(np.ptp(grating) / 2), 2)
    50.0
    """

    shape: Size
    ppd: float
    frequency: float
    orientation: float = 0.0
    x: float = 0.0
    y: float = 0.0
    radius: float | None = None
    aspect: float = 1.0
    window: FloatArray | None = None
    pedestal: bool = False

    def image(self, cosine: float, sine: float) -> Float64:
        """Draw the sine under its envelope from its cosine and sine amplitudes, (H, W).

        With a pedestal, the multiple of E that makes the sum zero is subtracted.

        Examples
        --------
        >>> Sine(shape=(1, 4), ppd=4, frequency=1).image(0.0, 1.0).round(4).tolist()
        [[-0.7071, -0.7071, 0.7071, 0.7071]]
        """
        if not self.pedestal:
            return self._fixed.image(np.array([cosine, sine]))
        linear = np.array([cosine, sine, 0.0])
        total = self._fixed.normal[-1]
        linear[2] = -(linear[:2] @ total[:2]) / total[2]
        return self._fixed.image(linear)

    def fit(self, image: Array) -> SineFit:
        """Fit amplitude, phase and background of the sine to an image by least squares.

        With a pedestal, E is fitted too.
        Exact for every frequency below Nyquist, every phase and every orientation, wherever the
        samples fall.

        Parameters
        ----------
        image : (..., H, W) array
            Luminance, or any linear quantity.

        Raises
        ------
        InputError
            If the image is not of this shape.
        """
        pixels = to_float64(image)
        height, width = pixels.shape[-2:]
        if (height, width) != self.shape:
            tall, wide = self.shape
            raise InputError(
                f"the image is of {height} x {width} px, and the sine of {tall} x {wide}; give "
                "it one shape"
            )
        mean = pixels.mean(axis=(-2, -1))
        residual = pixels - mean[..., None, None]
        flat = residual.reshape(*residual.shape[:-2], 1, -1)
        deviation = np.sqrt((flat @ flat.mT)[..., 0, 0] / flat.shape[-1])
        values, gain = self._fixed.solve(residual)
        p = values[..., 0]
        q = values[..., 1]
        return SineFit(
            background=values[..., -1] + mean,
            amplitude=np.hypot(p, q),
            phase=np.degrees(np.arctan2(-q, p)),
            pedestal=values[..., 2] if self.pedestal else np.zeros_like(mean),
            gain=np.broadcast_to(np.hypot(gain[0], gain[1]), mean.shape),
            background_gain=np.broadcast_to(gain[-1], mean.shape),
            mean=mean,
            deviation=deviation,
            residual=residual,
        )

    def refine(self, image: Array, start: SineFit | None = None) -> PatternFit:
        """Fit every parameter of the sine to an image by damped Gauss-Newton steps.

        Where the image has too few cycles to tell two parameters apart, they stay near their start.

        Parameters
        ----------
        image : (H, W) array
            Luminance, or any linear quantity.
        start : SineFit, optional
            The result of `fit` for this image, if it is there already.

        Raises
        ------
        InputError
            If there is a batch; it takes one image.

        Examples
        --------
        >>> x, _ = pixel_centres((64, 64), ppd=32)
        >>> image = 100 + 5 * gaussian((64, 64), 32, 0.3) * np.cos(2 * np.pi * 4.02 * x + 1)
        >>> fit = Sine(shape=(64, 64), ppd=32, frequency=4, radius=0.25).refine(image)
        >>> round(fit.frequency, 9), round(fit.radius, 9), round(float(np.radians(fit.phase)), 9)
        (4.02, 0.3, 1.0)
        """
        pixels = to_float64(image)
        if pixels.ndim != 2:
            raise InputError(
                f"Sine.refine takes one image (H, W), not a batch of shape {pixels.shape}"
            )
        start = start or self.fit(pixels)
        phasor = float(start.amplitude) * np.exp(-1j * np.radians(float(start.phase)))
        mean = float(start.mean)
        background = float(start.background) - mean
        linear = [phasor.real, phasor.imag, float(start.pedestal), background]
        parameters = np.concatenate([linear, self._wave, self._envelope])
        best = self._search(pixels, start, parameters)
        if best.cost > 0.5 * pixels.size * start.deviation**2 > 0:
            # The wave may lie elsewhere: start from the peak of the spectrum too.
            wave = np.array(wave_vector(*dominant_frequency(pixels, self.ppd)))
            residual = pixels - mean
            values, _ = self._linear(wave).solve(residual)
            pedestal = values[2] if self.pedestal else 0.0
            linear = [values[0], values[1], pedestal, values[-1]]
            parameters = np.concatenate([linear, wave, self._envelope])
            other = self._search(pixels, replace(start, residual=residual), parameters)
            if other.cost < best.cost:
                best = other
        return self._report(best, pixels.size, mean)

    # Parameters of the search, in order: p, q, d, b, u, v (carrier, cpd), x, y, log sigma across,
    # log sigma along.

    @property
    def _wave(self) -> Float64:
        """The wave vector (x, y), cpd."""
        return np.array(wave_vector(self.frequency, self.orientation))

    @property
    def _envelope(self) -> Float64:
        """The envelope's centre (deg) and the logarithms of its two standard deviations."""
        sigma = 1.0 if self.radius is None else self.radius
        return np.array([self.x, self.y, np.log(sigma), np.log(sigma * self.aspect)])

    @cached_property
    def _fixed(self) -> Derivatives:
        """The image's derivatives by its four linear parameters, at the requested wave."""
        return self._linear(self._wave)

    def _linear(self, wave: Float64) -> Derivatives:
        """Differentiate the image by its four linear parameters, at a wave vector (cpd)."""
        coefficients = np.zeros((4, 3, 1, 1))
        coefficients[[0, 1, 2], [0, 1, 2]] = 1.0
        parameters = np.concatenate([np.zeros(4), wave, self._envelope])
        return self._assemble(parameters, coefficients)

    @cached_property
    def _free(self) -> BoolArray:
        """A mask of the ten parameters that are fitted."""
        gaussian = self.radius is not None
        return np.array([True, True, self.pedestal, True, True, True] + [gaussian] * 4)

    def _derivatives(self, parameters: Float64) -> Derivatives:
        """Differentiate the image by each fitted parameter."""
        p, q, d, _, _, _, x, y, log_across, log_along = parameters
        coefficients = np.zeros((10, 3, 3, 3))
        coefficients[[0, 1, 2], [0, 1, 2], 0, 0] = 1.0
        slope = 2 * np.pi * np.array([q, -p])
        coefficients[4, :2, 0, 0] = slope * (x - self.x)
        coefficients[4, :2, 1, 0] = slope
        coefficients[5, :2, 0, 0] = slope * (y - self.y)
        coefficients[5, :2, 0, 1] = slope
        # Distances across and along the stripes, as coefficients of those to the right and up.
        angle = np.radians(self.orientation)
        c = np.cos(angle)
        s = np.sin(angle)
        short = np.exp(-2 * log_across)
        long = np.exp(-2 * log_along)
        mixed = c * s * (short - long)
        weights = np.array([[p], [q], [d]])
        by_x = weights * [c * c * short + s * s * long, mixed]
        by_y = weights * [mixed, s * s * short + c * c * long]
        by_across = weights * [c * c * short, 2 * c * s * short, s * s * short]
        by_along = weights * [s * s * long, -2 * c * s * long, c * c * long]
        coefficients[6, :, [1, 0], [0, 1]] = by_x.T
        coefficients[7, :, [1, 0], [0, 1]] = by_y.T
        coefficients[8, :, [2, 1, 0], [0, 1, 2]] = by_across.T
        coefficients[9, :, [2, 1, 0], [0, 1, 2]] = by_along.T
        if self.radius is None:
            coefficients = coefficients[..., :2, :2]
        return self._assemble(parameters, coefficients)

    def _assemble(self, parameters: Float64, coefficients: Float64) -> Derivatives:
        """Build the image's derivatives from the coefficients of their polynomials.

        `coefficients`, (N, 3, D, D), are those of x^i y^j in each derivative and field (in all but
        that by b, which is 1).
        """
        _, _, _, _, u, v, x, y, log_across, log_along = parameters.tolist()
        height, width = self.shape
        columns, rows = pixel_centres(self.shape, self.ppd)
        across, down = carrier(self.shape, self.ppd, u, v, self.x, self.y)
        profile_x = np.ones(width)
        profile_y = np.ones(height)
        weight = self.window
        if self.radius is not None:
            radius = float(np.exp(log_across))
            aspect = float(np.exp(log_along - log_across))
            if aspect == 1.0:
                profile_x = np.exp(-0.5 * ((columns - x) / radius) ** 2)
                profile_y = np.exp(-0.5 * ((rows - y) / radius) ** 2)
            else:
                ellipse = {"aspect": aspect, "orientation": self.orientation}
                weight = gaussian(self.shape, self.ppd, radius, **ellipse, x=x, y=y)
        fields = 2 + self.pedestal
        powers = coefficients.shape[-1]
        products = FIELD[: fields + 2]
        signs = SIGN[: products.size, None, None]
        free = self._free[: len(coefficients)]
        signed = coefficients[free][:, products] * signs
        polynomials = np.zeros((len(signed), products.size * powers**2 + 1))
        polynomials[:, :-1] = signed.reshape(len(signed), -1)
        polynomials[free[:3].sum(), -1] = 1.0
        down_fields = np.array(
            [down.real * profile_y, down.imag * profile_y, profile_y]
        )
        across_fields = np.array(
            [across.real * profile_x, across.imag * profile_x, profile_x]
        )
        down_powers = np.vander(rows - y, powers, increasing=True).T
        across_powers = np.vander(columns - x, powers, increasing=True).T
        return Derivatives(
            down=down_fields[:fields, None] * down_powers,
            across=across_fields[:fields, None] * across_powers,
            weight=weight,
            polynomials=polynomials,
        )

    def _search(self, pixels: Float64, start: SineFit, parameters: Float64) -> _State:
        """Search by damped Gauss-Newton until a step moves the image by less than its rounding."""
        damping = 0.0
        signal = float(start.deviation) * np.sqrt(pixels.size)
        derivatives = self._derivatives(parameters)
        residual = start.residual
        cost = float(np.vdot(residual, residual))
        free_count = int(self._free.sum())
        inverse = np.zeros((free_count, free_count))
        for _ in range(60):
            normal = derivatives.normal
            scale = lengths(normal)
            scaled = normal / np.outer(scale, scale)
            scaled_inverse = eigen_inverse(scaled, 1e-12)
            inverse = scaled_inverse / np.outer(scale, scale)
            if damping:
                damped = scaled + damping * np.eye(len(scale))
                scaled_inverse = eigen_inverse(damped, 1e-12)
            step = scaled_inverse @ (derivatives.project(residual) / scale) / scale
            change = float(np.sqrt(np.clip(step @ normal @ step, 0.0, None)))
            if change <= 1e-13 * signal:
                break
            trial = parameters.copy()
            trial[self._free] += step
            # What bends along the step leaves too little for a further one, as below.
            cost_ahead = cost - change**2
            bent = signal * self._curvature(parameters, trial) ** 2
            if not damping and bent**2 <= 1e-9 * cost_ahead:
                return _State(trial, cost_ahead, inverse)
            # A step of a factor of e in the envelope or of an octave in frequency is a leap into
            # the dark.
            if np.all(np.abs(trial[8:] - parameters[8:]) < 1):
                trial_derivatives = self._derivatives(trial)
                trial_residual = pixels - start.mean
                trial_derivatives.subtract(trial[:3], trial[3], trial_residual)
                trial_cost = float(np.vdot(trial_residual, trial_residual))
                if trial_cost < cost:
                    gain = cost - trial_cost
                    parameters = trial
                    derivatives = trial_derivatives
                    residual = trial_residual
                    cost = trial_cost
                    damping = damping / 10 if damping > 1e-9 else 0.0
                    # A further step would move no parameter by a ten-thousandth of its standard
                    # error.
                    if gain <= 1e-9 * cost:
                        break
                    continue
            if change <= 1e-10 * signal:
                break
            damping = max(10 * damping, 1e-4)
        return _State(parameters, cost, inverse)

    def _curvature(self, parameters: Float64, trial: Float64) -> float:
        """Bound how much a step turns the wave, rad, and changes its envelope, as a share."""
        step = np.abs(trial - parameters)
        turn = 2 * np.pi * max(self.shape) / self.ppd * float(np.hypot(*step[4:6]))
        shift = float(np.hypot(*step[6:8])) / float(np.exp(parameters[8:].min()))
        return float(max(turn, shift, *step[8:]))

    def _report(self, state: _State, count: int, mean: float) -> PatternFit:
        """Convert the parameters that the search reached to frequency, phase, size and place."""
        p, q, _, b, u, v, x, y, log_across, log_along = state.parameters.tolist()
        sign = 1.0 if np.dot((u, v), wave_vector(1.0, self.orientation)) >= 0 else -1.0
        u = sign * u
        v = sign * v
        q = sign * q
        amplitude = float(np.hypot(p, q))
        frequency = float(np.hypot(u, v))
        angle = float(np.degrees(np.arctan2(v, u)))
        errors = np.zeros(10)
        errors[self._free] = np.sqrt(np.clip(np.diagonal(state.inverse), 0, None))
        amplitude_error = float(np.hypot(*errors[0:2]))
        wave_error = float(np.hypot(*errors[4:6]))
        shape_error = float(np.hypot(*errors[8:10]))
        phase_error = orientation_error = float("inf")
        if amplitude:
            phase_error = float(np.degrees(amplitude_error / amplitude))
        if frequency:
            orientation_error = float(np.degrees(wave_error / frequency))
        radius = float(np.exp(log_across))
        aspect = float(np.exp(log_along - log_across))
        return PatternFit(
            background=b + mean,
            amplitude=amplitude,
            phase=float(np.degrees(np.arctan2(-q, p))),
            frequency=frequency,
            orientation=self.orientation + (angle - self.orientation + 90) % 180 - 90,
            x=x,
            y=y,
            radius=float("inf") if self.radius is None else radius,
            aspect=aspect,
            residual=float(np.sqrt(state.cost / count)),
            gain={
                "background": float(errors[3]),
                "amplitude": amplitude_error,
                "phase": phase_error,
                "frequency": wave_error,
                "orientation": orientation_error,
                "x": float(errors[6]),
                "y": float(errors[7]),
                "radius": radius * float(errors[8]),
                "aspect": aspect * shape_error,
            },
        )


def wave_vector(frequency: float, orientation: float) -> tuple[float, float]:
    """Compute the frequency along x and y (cpd) of stripes at an orientation, deg."""
    angle = np.radians(orientation)
    return float(frequency * np.cos(angle)), float(frequency * np.sin(angle))


def carrier(
    shape: Size, ppd: float, u: float, v: float, x: float, y: float
) -> tuple[npt.NDArray[np.complex128], npt.NDArray[np.complex128]]:
    """Compute a row and a column whose product is exp(2 pi i (u x + v y)).

    So the phases of an image are as exact as those of two lines.
    """
    columns, rows = pixel_centres(shape, ppd)
    across = np.exp(2j * np.pi * u * (columns - x))
    down = np.exp(2j * np.pi * v * (rows - y))
    return across, down


def dominant_frequency(image: Array, ppd: float) -> tuple[float, float]:
    """Find frequency, cpd, and orientation, deg in [0, 180), of the largest Fourier coefficient.

    They are exact to within a bin.

    Parameters
    ----------
    image : (H, W) array
        Luminance, or any linear quantity.
    ppd : float
        Pixels per degree.

    Examples
    --------
    >>> x, _ = pixel_centres((32, 32), ppd=32)
    >>> dominant_frequency(np.cos(2 * np.pi * 4 * x) * np.ones((32, 1)), ppd=32)
    (4.0, 0.0)
    """
    pixels = to_float64(image)
    height, width = pixels.shape
    taper = np.outer(np.hanning(height + 2)[1:-1], np.hanning(width + 2)[1:-1])
    mean = (pixels * taper).sum() / taper.sum()
    deviation = (pixels - mean) * taper
    rows = 2 * height
    columns = 2 * width
    power = np.abs(np.fft.rfft2(deviation, s=(rows, columns))) ** 2
    row, column = np.unravel_index(int(np.argmax(power)), power.shape)
    u = np.fft.rfftfreq(columns, 1 / ppd)[column]
    v = -np.fft.fftfreq(rows, 1 / ppd)[row]
    return float(np.hypot(u, v)), float(np.degrees(np.arctan2(v, u)) % 180)


@dataclass(frozen=True)
class _State:
    """Parameters that the search reached, with the inverse normal matrix there."""

    parameters: Float64
    cost: float
    inverse: Float64
