"""Sines fitted to pixels: the phase, amplitude, place and envelope of Gabors and gratings.

As in `psyprobe.stimulus.estimate`, nothing here knows how stimuli are drawn.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from psyprobe._typing import Array, BoolArray, FloatArray, IntArray, Levels, Size
from psyprobe.errors import InputError
from psyprobe.stimulus.estimate import (
    Float64,
    along_pixels,
    gaussian,
    pixel_centres,
    to_float64,
)
from psyprobe.stimulus.sine_derivatives import (
    FIELD,
    SIGN,
    Derivatives,
    Profiles,
    Solution,
    axis_profiles,
    square_sums,
    standard_errors,
)


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
    #: The image, shape (..., H, W).
    pixels: Float64
    #: The fit as its derivatives have it.
    solution: Solution


class PatternLevels(NamedTuple):
    """Mean, standard deviation and largest pixel of a pattern, (...)."""

    mean: Float64
    deviation: Float64
    highest: Float64


@dataclass(frozen=True)
class PatternFit:
    """A Gabor or grating with all its parameters fitted to each image of a batch."""

    #: background, amplitude, residual: In the unit of the image.
    background: Float64
    amplitude: Float64
    #: Degrees in (-180, 180], at the centre that was requested.
    phase: Float64
    #: Cycles per degree.
    frequency: Float64
    #: Degrees, within 90 of the one that was requested.
    orientation: Float64
    #: x, y: Centre of the envelope, degrees.
    x: Float64
    y: Float64
    #: Standard deviation of the envelope across the stripes, degrees; infinite where the envelope
    #: is given.
    radius: Float64
    #: Standard deviation along the stripes over that across them.
    aspect: Float64
    residual: Float64
    #: Standard error of each parameter, in its own unit, for independent pixel errors of 1.
    gain: dict[str, Float64]


@dataclass(frozen=True, kw_only=True)
class Sine:
    """A wave to search for in images: ``b + E (p cos + q sin + d)``.

    It lies under an envelope E on a background. Numbers may be arrays, one for each image of a
    batch.

    Parameters
    ----------
    shape : (int, int)
        Pixels (H, W).
    ppd : float
        Pixels per degree.
    frequency : float or array, shape (n,)
        Cycles per degree.
    orientation : float or array
        Degrees counter-clockwise from vertical stripes.
    x, y : float or array
        Centre of the envelope, degrees, and the point to which the phase refers.
    radius : float or array, optional
        Gaussian standard deviation of the envelope across the stripes, degrees; without it, the
        envelope is `window`.
    aspect : float or array
        Standard deviation along the stripes over that across them.
    window : (..., H, W) ndarray, optional
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
    frequency: Levels
    orientation: Levels = 0.0
    x: Levels = 0.0
    y: Levels = 0.0
    radius: Levels | None = None
    aspect: Levels = 1.0
    window: FloatArray | None = None
    pedestal: bool = False

    def image(self, cosine: Levels, sine: Levels) -> Float64:
        """Draw the sine under its envelope from its cosine and sine amplitudes, (..., H, W).

        With a pedestal, the multiple of E that makes the sum zero is subtracted.

        Examples
        --------
        >>> Sine(shape=(1, 4), ppd=4, frequency=1).image(0.0, 1.0).round(4).tolist()
        [[-0.7071, -0.7071, 0.7071, 0.7071]]
        """
        return self._requested.image(self._mixture(cosine, sine))

    def levels(self, cosine: Levels, sine: Levels) -> PatternLevels:
        """Compute mean, standard deviation and largest pixel of what `image` draws."""
        linear = self._mixture(cosine, sine)
        mean, variance = self._fixed.moments(linear)
        return PatternLevels(mean, np.sqrt(variance), self._requested.highest(linear))

    def _mixture(self, cosine: Levels, sine: Levels) -> Float64:
        """Compute the coefficients (p, q) or (p, q, d) of what `image` draws, (..., K)."""
        linear = [cosine, sine]
        if self.pedestal:
            total = self._fixed.normal[..., -1, :]
            wave = cosine * total[..., 0] + sine * total[..., 1]
            linear.append(-wave / total[..., 2])
        return np.stack(np.broadcast_arrays(*linear), axis=-1)

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
        solution = self._fixed.solve(pixels, self._requested)
        values, errors, mean, squares, _, _ = solution
        _, variance = self._fixed.moments(values[..., :-1])
        # A wave and what it leaves of the pixels are at right angles.
        deviation = np.sqrt(variance + squares / math.prod(self.shape))
        # Where all pixels are one, there is but the rounding of this fit.
        varied = deviation > 1e-19 * np.abs(mean)
        deviation = np.where(varied, deviation, 0.0)
        values[..., :-1] = np.where(varied[..., None], values[..., :-1], 0.0)
        p, q, d, b = np.moveaxis(self._with_pedestal(values), -1, 0)
        return SineFit(
            background=b,
            amplitude=np.hypot(p, q),
            phase=np.degrees(np.arctan2(-q, p)),
            pedestal=d,
            gain=np.broadcast_to(np.hypot(errors[..., 0], errors[..., 1]), mean.shape),
            background_gain=np.broadcast_to(errors[..., -1], mean.shape),
            mean=mean,
            deviation=deviation,
            pixels=pixels,
            solution=solution,
        )

    def refine(self, image: Array | SineFit) -> PatternFit:
        """Fit every parameter of the sine to an image by damped Gauss-Newton steps.

        Where the image has too few cycles to tell two parameters apart, they stay near their start.

        Parameters
        ----------
        image : (H, W) or (n, H, W) array, or SineFit
            Luminance, or any linear quantity; or the result of `fit` for it.

        Examples
        --------
        >>> x, _ = pixel_centres((64, 64), ppd=32)
        >>> image = 100 + 5 * gaussian((64, 64), 32, 0.3) * np.cos(2 * np.pi * 4.02 * x + 1)
        >>> fit = Sine(shape=(64, 64), ppd=32, frequency=4, radius=0.25).refine(image)
        >>> parameters = fit.frequency, fit.radius, np.radians(fit.phase)
        >>> [round(float(value), 9) for value in parameters]
        [4.02, 0.3, 1.0]
        """
        start = image if isinstance(image, SineFit) else self.fit(image)
        linear = self._with_pedestal(start.solution.values)
        wave = wave_vector(self.frequency, self.orientation)
        parameters = self._parameters(linear, *wave)
        targets = _Targets.of(start.pixels, start.deviation, start.solution)
        single = start.pixels.ndim == 2
        if single:
            parameters = parameters[None]
            targets = targets.take(None)
        state = self._search(targets, parameters, self._requested)
        largest = 0.5 * math.prod(self.shape) * targets.deviation**2
        lost = np.flatnonzero((state.cost > largest) & (largest > 0))
        if lost.size:
            # The wave may lie elsewhere: start from the peak of the spectrum too.
            other = self._select(lost)._search_spectrum(targets.take(lost))
            better = other.cost < state.cost[lost]
            for array, values in zip(state, other, strict=True):
                array[lost[better]] = values[better]
        if single:
            state = _State(*(array[0] for array in state))
        return self._report(state)

    def _select(self, indices: IntArray) -> Sine:
        """Return the waves of some images of the batch."""
        names = ("frequency", "orientation", "x", "y", "radius", "aspect")
        arrays = {name: getattr(self, name) for name in names}
        if self.window is not None and self.window.ndim > 2:
            arrays["window"] = self.window
        chosen = {
            name: value[indices] for name, value in arrays.items() if np.ndim(value)
        }
        return replace(self, **chosen) if chosen else self

    def _parameters(self, linear: Float64, u: Levels, v: Levels) -> Float64:
        """Compute the parameters of the search, (..., 10), at the requested envelope.

        In order: p, q, d, b, u, v (carrier, cpd), x, y, log sigma across, log sigma along.
        """
        sigma = 1.0 if self.radius is None else self.radius
        parameters = np.empty((*linear.shape[:-1], 10))
        parameters[..., :4] = linear
        place = (u, v, self.x, self.y, np.log(sigma), np.log(sigma * self.aspect))
        for index, value in enumerate(place, start=4):
            parameters[..., index] = value
        return parameters

    @cached_property
    def _requested(self) -> Profiles:
        """The profiles of the requested wave and envelope."""
        u, v = wave_vector(self.frequency, self.orientation)
        sigma = 1.0 if self.radius is None else self.radius
        batch = np.broadcast(u, v, self.x, self.y, sigma, self.aspect).shape
        return self._profiles(self._parameters(np.zeros((*batch, 4)), u, v))

    @cached_property
    def _fixed(self) -> Derivatives:
        """The image's derivatives by its four linear parameters, at the requested wave."""
        return self._linear(self._requested)

    def _linear(self, profiles: Profiles) -> Derivatives:
        """Differentiate the image by its four linear parameters."""
        coefficients = np.zeros((4, 3, 1, 1))
        coefficients[[0, 1, 2], [0, 1, 2]] = 1.0
        return Derivatives(profiles.linear(), self._polynomials(coefficients))

    @cached_property
    def _free(self) -> BoolArray:
        """A mask of the ten parameters that are fitted."""
        gaussian = self.radius is not None
        return np.array([True, True, self.pedestal, True, True, True] + [gaussian] * 4)

    def _derivatives(self, parameters: Float64, profiles: Profiles) -> Derivatives:
        """Differentiate the image by each fitted parameter, from the profiles there."""
        batch = parameters.shape[:-1]
        x = parameters[..., 6]
        y = parameters[..., 7]
        coefficients = np.zeros((*batch, 10, 3, 3, 3))
        coefficients[..., [0, 1, 2], [0, 1, 2], 0, 0] = 1.0
        # By the wave vector: the phase runs from the requested place.
        slope = 2 * np.pi * parameters[..., 1::-1] * [1.0, -1.0]
        coefficients[..., 4, :2, 0, 0] = slope * (x - self.x)[..., None]
        coefficients[..., 4, :2, 1, 0] = slope
        coefficients[..., 5, :2, 0, 0] = slope * (y - self.y)[..., None]
        coefficients[..., 5, :2, 0, 1] = slope
        # By the envelope: distances across and along the stripes, as coefficients of those to the
        # right and up.
        angle = np.radians(self.orientation)
        c = np.cos(angle)
        s = np.sin(angle)
        short, long = np.moveaxis(np.exp(-2 * parameters[..., 8:]), -1, 0)
        bends = np.zeros((*batch, 4, 1, 3, 3))
        bends[..., 0, 0, 1, 0] = c * c * short + s * s * long
        bends[..., 1, 0, 0, 1] = s * s * short + c * c * long
        mixed = c * s * (short - long)
        bends[..., 0, 0, 0, 1] = mixed
        bends[..., 1, 0, 1, 0] = mixed
        bends[..., 2, 0, 2, 0] = c * c * short
        bends[..., 2, 0, 1, 1] = 2 * c * s * short
        bends[..., 2, 0, 0, 2] = s * s * short
        bends[..., 3, 0, 2, 0] = s * s * long
        bends[..., 3, 0, 1, 1] = -2 * c * s * long
        bends[..., 3, 0, 0, 2] = c * c * long
        coefficients[..., 6:, :, :, :] = parameters[..., None, :3, None, None] * bends
        powers = profiles.powers
        coefficients = coefficients[..., :powers, :powers]
        return Derivatives(profiles, self._polynomials(coefficients))

    def _polynomials(self, coefficients: Float64) -> Float64:
        """Arrange coefficients by product, (..., K, products + 1), for the fitted parameters.

        Those of x^i y^j in each derivative and field, (..., N, 3, D, D), are those in all but that
        by b, which is 1.
        """
        products = FIELD[: 4 + self.pedestal]
        free = self._free[: coefficients.shape[-4]]
        signed = coefficients[..., free, :, :, :][..., products, :, :]
        signed *= SIGN[: products.size, None, None]
        signed = signed.reshape(*signed.shape[:-3], -1)
        polynomials = np.zeros((*signed.shape[:-1], signed.shape[-1] + 1))
        polynomials[..., :-1] = signed
        polynomials[..., 2 + self.pedestal, -1] = 1.0
        return polynomials

    def _profiles(self, parameters: Float64) -> Profiles:
        """Compute the profiles of the wave and the envelope of parameters, (..., 10)."""
        columns, rows = pixel_centres(self.shape, self.ppd)
        u, v, x, y, log_across, log_along = np.moveaxis(
            parameters[..., 4:, None], -2, 0
        )
        across = 2 * np.pi * u * (columns - along_pixels(self.x, 1))
        down = 2 * np.pi * v * (rows - along_pixels(self.y, 1))
        dx = columns - x
        dy = rows - y
        profile_x = profile_y = np.ones(1)
        weight = self.window
        powers = 2
        if self.radius is not None:
            powers = 3
            radius = np.exp(log_across)
            aspect = np.exp(log_along - log_across)
            if np.all(aspect == 1.0):
                profile_x = np.exp(-0.5 * (dx / radius) ** 2)
                profile_y = np.exp(-0.5 * (dy / radius) ** 2)
            else:
                weight = gaussian(
                    self.shape,
                    self.ppd,
                    radius[..., 0],
                    aspect=aspect[..., 0],
                    orientation=self.orientation,
                    x=x[..., 0],
                    y=y[..., 0],
                )
        fields = 2 + self.pedestal
        return Profiles(
            columns=axis_profiles(down, profile_y, dy, fields, powers),
            rows=axis_profiles(across, profile_x, dx, fields, powers),
            weight=weight,
            fields=fields,
        )

    def _search(
        self, targets: _Targets, parameters: Float64, profiles: Profiles
    ) -> _State:
        """Search by damped Gauss-Newton until a step moves the image by less than its rounding.

        `profiles` are those of the parameters.
        """
        count = len(parameters)
        signal = targets.deviation * math.sqrt(math.prod(self.shape))
        cost = targets.squares.copy()
        free_count = int(self._free.sum())
        inverse = np.zeros((count, free_count, free_count))
        # Images for which the search goes on, with sums of their residuals, and damping.
        rest = np.arange(count)
        sums = targets.sums
        missing = np.zeros((count, free_count))
        missing[:, : targets.missing.shape[1]] = targets.missing
        damping = np.zeros(count)
        for _ in range(60):
            waves = self._select(rest)
            here = parameters[rest]
            step = waves._derivatives(here, profiles).step(sums, missing, damping)
            inverse[rest] = step.inverse
            trial = here.copy()
            trial[:, self._free] += step.values
            moves = (step.change > 1e-13 * signal[rest]) & (signal[rest] > 0)
            # What bends along the step leaves too little for a further one, as below.
            cost_ahead = cost[rest] - step.change**2
            bent = signal[rest] * waves._curvature(here, trial) ** 2
            last = moves & (damping == 0) & (bent**2 <= 1e-9 * cost_ahead)
            parameters[rest[last]] = trial[last]
            cost[rest[last]] = cost_ahead[last]
            tried = moves & ~last
            if not tried.any():
                break
            # A step of a factor of e in the envelope or of an octave in frequency is a leap into
            # the dark.
            near = tried & np.all(np.abs(trial[:, 8:] - here[:, 8:]) < 1, axis=-1)
            ahead = trial[near]
            trial_profiles = waves._select(near)._profiles(ahead)
            pixels = targets.pixels[rest[near]]
            trial_residual = np.empty(pixels.shape)
            trial_profiles.subtract(
                ahead[:, :3], ahead[:, 3], pixels, out=trial_residual
            )
            trial_cost = np.full(len(rest), np.inf)
            trial_cost[near] = square_sums(trial_residual)
            better = trial_cost < cost[rest]
            # A further step would move no parameter by a ten-thousandth of its standard error.
            gain = cost[rest] - trial_cost
            small_gain = gain <= 1e-9 * trial_cost
            small_step = step.change <= 1e-10 * signal[rest]
            going = tried & ~np.where(better, small_gain, small_step)
            parameters[rest[better]] = trial[better]
            cost[rest[better]] = trial_cost[better]
            sums = sums[going]
            trial_sums = trial_profiles.sums(trial_residual)
            sums[better[going]] = trial_sums[(better & going)[near]]
            missing = np.where(better[:, None], 0.0, missing)[going]
            eased = np.where(damping > 1e-9, damping / 10, 0.0)
            raised = np.maximum(10 * damping, 1e-4)
            damping = np.where(better, eased, raised)[going]
            rest = rest[going]
            if not rest.size:
                break
            profiles = self._select(rest)._profiles(parameters[rest])
        return _State(parameters, cost, inverse)

    def _search_spectrum(self, targets: _Targets) -> _State:
        """Search from the peak of each image's spectrum."""
        peaks = [dominant_frequency(image, self.ppd) for image in targets.pixels]
        u, v = wave_vector(*np.transpose(peaks))
        parameters = self._parameters(np.zeros((len(peaks), 4)), u, v)
        profiles = self._profiles(parameters)
        solution = self._linear(profiles).solve(targets.pixels, profiles)
        parameters[:, :4] = self._with_pedestal(solution.values)
        targets = _Targets.of(targets.pixels, targets.deviation, solution)
        return self._search(targets, parameters, profiles)

    def _with_pedestal(self, values: Float64) -> Float64:
        """Fill coefficients (p, q, b) up to (p, q, d, b), (..., 4)."""
        filled = np.zeros((*values.shape[:-1], 4))
        filled[..., self._free[:4]] = values
        return filled

    def _curvature(self, parameters: Float64, trial: Float64) -> Float64:
        """Bound how much a step turns the wave, rad, and changes its envelope, as a share."""
        step = np.abs(trial - parameters)
        longest = max(self.shape) / self.ppd
        turn = 2 * np.pi * longest * np.hypot(step[..., 4], step[..., 5])
        narrowest = np.exp(parameters[..., 8:].min(axis=-1))
        shift = np.hypot(step[..., 6], step[..., 7]) / narrowest
        larger = np.maximum(turn, shift)
        return np.asarray(np.maximum(larger, step[..., 8:].max(axis=-1)))

    def _report(self, state: _State) -> PatternFit:
        """Convert the parameters that the search reached to frequency, phase, size and place."""
        p, q, _, b, u, v, x, y, log_across, log_along = np.moveaxis(
            state.parameters, -1, 0
        )
        requested = wave_vector(1.0, self.orientation)
        sign = np.where(u * requested[0] + v * requested[1] >= 0, 1.0, -1.0)
        amplitude = np.hypot(p, q)
        frequency = np.hypot(u, v)
        angle = np.degrees(np.arctan2(sign * v, sign * u))
        errors = np.zeros(state.parameters.shape)
        errors[..., self._free] = standard_errors(state.inverse)
        amplitude_error = np.hypot(errors[..., 0], errors[..., 1])
        wave_error = np.hypot(errors[..., 4], errors[..., 5])
        shape_error = np.hypot(errors[..., 8], errors[..., 9])
        # Without a wave the errors of its phase and orientation are infinite.
        with np.errstate(divide="ignore"):
            phase_error = np.degrees(amplitude_error / amplitude)
            orientation_error = np.degrees(wave_error / frequency)
        radius = np.exp(log_across)
        aspect = np.exp(log_along - log_across)
        return PatternFit(
            background=b,
            amplitude=amplitude,
            phase=np.degrees(np.arctan2(-sign * q, p)),
            frequency=frequency,
            orientation=self.orientation + (angle - self.orientation + 90) % 180 - 90,
            x=x,
            y=y,
            radius=np.full_like(radius, np.inf) if self.radius is None else radius,
            aspect=aspect,
            residual=np.sqrt(state.cost / math.prod(self.shape)),
            gain={
                "background": errors[..., 3],
                "amplitude": amplitude_error,
                "phase": phase_error,
                "frequency": wave_error,
                "orientation": orientation_error,
                "x": errors[..., 6],
                "y": errors[..., 7],
                "radius": radius * errors[..., 8],
                "aspect": aspect * shape_error,
            },
        )


def wave_vector(frequency: Levels, orientation: Levels) -> tuple[Levels, Levels]:
    """Compute the frequency along x and y (cpd) of stripes at an orientation, deg."""
    angle = np.radians(orientation)
    return frequency * np.cos(angle), frequency * np.sin(angle)


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


class _Targets(NamedTuple):
    """Images to search for a wave in, (n, H, W), with what a linear fit leaves of them."""

    pixels: Float64
    #: Standard deviation of the pixels, (n,).
    deviation: Float64
    #: As in `Solution`.
    squares: Float64
    sums: Float64
    missing: Float64

    @classmethod
    def of(cls, pixels: Float64, deviation: Float64, solution: Solution) -> _Targets:
        """Collect images with what a solution leaves of them."""
        return cls(pixels, deviation, solution.squares, solution.sums, solution.missing)

    def take(self, indices: IntArray | None) -> _Targets:
        """Return some of the images; None adds the axis of a batch to one."""
        return _Targets(*(np.asarray(array)[indices] for array in self))


class _State(NamedTuple):
    """Parameters that the search reached, (..., 10), with the inverse normal matrix there."""

    parameters: Float64
    cost: Float64
    inverse: Float64
