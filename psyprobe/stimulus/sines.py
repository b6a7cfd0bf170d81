"""Sines fitted to pixels: Gabors and gratings of a phase, an amplitude, a place and an envelope
that are looked for.

As in `psyprobe.stimulus.estimate`, nothing here knows how stimuli are drawn. A wave and a Gaussian
are products of a column and a row. So sums over pixels that a fit needs are small products of
matrices, and no pattern is written down.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt

from psyprobe._typing import Array, FloatArray
from psyprobe.errors import InputError
from psyprobe.stimulus.estimate import (
    Float64,
    eigen_inverse,
    gaussian,
    lengths,
    pixel_centres,
    to_float64,
)


@dataclass(frozen=True)
class SineFit:
    """A sine of known frequency, orientation and envelope, fitted to each image of a batch."""

    #: Level that the wave rides on, in the unit of the image.
    background: Float64
    #: Half the distance from trough to peak where the envelope is 1, in the unit of the image.
    amplitude: Float64
    #: Degrees in (-180, 180]; 0 puts a peak at the centre.
    phase: Float64
    #: Of the bare envelope, in the unit of the image; 0 where it is not fitted.
    pedestal: Float64
    #: gain, background_gain: Standard errors of the amplitude and the background for independent
    #: pixel errors of 1.
    gain: Float64
    background_gain: Float64
    #: mean, deviation: Of the pixels, their mean and population standard deviation, in the unit of
    #: the image.
    mean: Float64
    deviation: Float64
    #: What the wave and its background leave of the image, shape (..., H, W).
    left: Float64


@dataclass(frozen=True)
class PatternFit:
    """A Gabor or grating with all its parameters fitted."""

    #: background, amplitude, residual: In the unit of the image.
    background: float
    amplitude: float
    #: Degrees in (-180, 180], at the centre that was asked for.
    phase: float
    #: Cycles per degree.
    frequency: float
    #: Degrees, within 90 of the one asked for.
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
    """What is looked for in an image: ``b + E (p cos + q sin + d)``, a wave under an envelope E on
    a background.

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
        Gaussian standard deviation of the envelope across the stripes, degrees; absent, the
        envelope is `window`.
    aspect : float
        Standard deviation along the stripes over that across them.
    window : (H, W) ndarray, optional
        An envelope of another form; 1 everywhere if absent.
    pedestal : bool
        Fit the bare envelope too, d: a Gabor balanced to zero mean has one.

    Examples
    --------
    At a quarter of the sampling rate and 45 degrees of phase no sample meets a peak:

    >>> x, _ = pixel_centres((4, 64), ppd=60)
    >>> grating = 100 + 50 * np.cos(2 * np.pi * 15 * x + np.pi / 4) * np.ones((4, 1))
    >>> fit = Sine(shape=(4, 64), ppd=60, frequency=15).fit(grating)
    >>> round(float(fit.amplitude), 9), round(float(fit.phase), 9), round(float(np.ptp(grating) / 2), 2)
    (50.0, 45.0, 50.0)
    """

    shape: tuple[int, int]
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
        """``E (cosine cos + sine sin)``, less the multiple of E that makes its sum zero where there
        is a pedestal.

        Examples
        --------
        >>> Sine(shape=(1, 4), ppd=4, frequency=1).image(0.0, 1.0).round(4).tolist()
        [[-0.7071, -0.7071, 0.7071, 0.7071]]
        """
        linear = np.array([cosine, sine, 0.0])[: 2 + self.pedestal]
        if self.pedestal:
            total = self._fixed.normal[-1]
            linear[2] = -(linear[:2] @ total[:2]) / total[2]
        return self._fixed.image(linear)

    def fit(self, image: Array) -> SineFit:
        """Amplitude, phase and background by least squares on {E cos, E sin, 1}, with a pedestal on
        E too.

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
        if pixels.shape[-2:] != self.shape:
            (height, width) = pixels.shape[-2:]
            (tall, wide) = self.shape
            raise InputError(
                f"the image is of {height} x {width} px, and the sine of {tall} x {wide}; give "
                "it one shape"
            )
        mean = pixels.mean(axis=(-2, -1))
        left = pixels - mean[..., None, None]
        flat = left.reshape(*left.shape[:-2], 1, -1)
        deviation = np.sqrt((flat @ flat.mT)[..., 0, 0] / flat.shape[-1])
        values, gain = self._fixed.solve(left)
        return SineFit(
            background=values[..., -1] + mean,
            amplitude=np.hypot(values[..., 0], values[..., 1]),
            phase=np.degrees(np.arctan2(-values[..., 1], values[..., 0])),
            pedestal=values[..., 2] if self.pedestal else np.zeros_like(mean),
            gain=np.broadcast_to(np.hypot(gain[0], gain[1]), mean.shape),
            background_gain=np.broadcast_to(gain[-1], mean.shape),
            mean=mean,
            deviation=deviation,
            left=left,
        )

    def refine(self, image: Array, start: SineFit | None = None) -> PatternFit:
        """Every parameter by damped Gauss-Newton, started where it was asked for.

        Where the image has too few cycles to tell two parameters apart, what cannot be told stays
        at its start.

        Parameters
        ----------
        image : (H, W) array
            Luminance, or any linear quantity.
        start : SineFit, optional
            What `fit` found of this image, to spare finding it again.

        Raises
        ------
        InputError
            If it is given a batch; it takes one image.

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
        linear = [phasor.real, phasor.imag, float(start.pedestal), float(start.background) - mean]
        best = self._search(pixels, start, np.concatenate([linear, self._wave, self._envelope]))
        if best.cost > 0.5 * pixels.size * start.deviation**2 > 0:
            wave = np.array(wave_vector(*dominant_frequency(pixels, self.ppd)))
            left = pixels - mean
            values, _ = self._linear(wave).solve(left)
            linear = [values[0], values[1], values[2] if self.pedestal else 0.0, values[-1]]
            elsewhere = replace(start, left=left)
            other = self._search(pixels, elsewhere, np.concatenate([linear, wave, self._envelope]))
            best = other if other.cost < best.cost else best
        return self._report(best, pixels.size, mean)

    # Parameters of the search, in order: p, q, d, b, u, v (carrier, cpd), x, y, log sigma across,
    # log sigma along.

    @property
    def _wave(self) -> Float64:
        return np.array(wave_vector(self.frequency, self.orientation))

    @property
    def _envelope(self) -> Float64:
        sigma = 1.0 if self.radius is None else self.radius
        return np.array([self.x, self.y, np.log(sigma), np.log(sigma * self.aspect)])

    @cached_property
    def _fixed(self) -> _Tangent:
        """How the image changes with p, q, d and b, of the wave that was asked for."""
        return self._linear(self._wave)

    def _linear(self, wave: Float64) -> _Tangent:
        by = np.zeros((4, 3, 1, 1))
        by[[0, 1, 2], [0, 1, 2]] = 1.0
        return self._tangent(np.concatenate([np.zeros(4), wave, self._envelope]), by)

    @cached_property
    def _free(self) -> npt.NDArray[np.bool_]:
        """Which of the ten parameters are fitted."""
        return np.array(
            [True, True, self.pedestal, True, True, True] + [self.radius is not None] * 4
        )

    def _derivatives(self, parameters: Float64) -> _Tangent:
        """How the image changes with each free parameter."""
        p, q, d, _, _, _, x, y, log_across, log_along = parameters
        by = np.zeros((10, 3, 3, 3))
        by[[0, 1, 2], [0, 1, 2], 0, 0] = 1.0
        slope = 2 * np.pi * np.array([q, -p])
        by[4, :2, 0, 0] = slope * (x - self.x)
        by[4, :2, 1, 0] = slope
        by[5, :2, 0, 0] = slope * (y - self.y)
        by[5, :2, 0, 1] = slope
        # Distances across and along the stripes, as coefficients of those to the right and up.
        angle = np.radians(self.orientation)
        c = np.cos(angle)
        s = np.sin(angle)
        short = np.exp(-2 * log_across)
        long = np.exp(-2 * log_along)
        weights = np.array([[p], [q], [d]])
        by[6, :, [1, 0], [0, 1]] = (
            weights * [c * c * short + s * s * long, c * s * (short - long)]
        ).T
        by[7, :, [1, 0], [0, 1]] = (
            weights * [c * s * (short - long), s * s * short + c * c * long]
        ).T
        by[8, :, [2, 1, 0], [0, 1, 2]] = (
            weights * [c * c * short, 2 * c * s * short, s * s * short]
        ).T
        by[9, :, [2, 1, 0], [0, 1, 2]] = (
            weights * [s * s * long, -2 * c * s * long, c * c * long]
        ).T
        return self._tangent(parameters, by if self.radius is not None else by[..., :2, :2])

    def _tangent(self, parameters: Float64, by: Float64) -> _Tangent:
        """Of coefficients of x^i y^j of each derivative and field (all but that of b, which is 1):
        (N, 3, D, D).
        """
        _, _, _, _, u, v, x, y, log_across, log_along = parameters.tolist()
        columns, rows = pixel_centres(self.shape, self.ppd)
        across, down = carrier(self.shape, self.ppd, u, v, self.x, self.y)
        narrow = np.ones(self.shape[1])
        tall = np.ones(self.shape[0])
        weight = self.window
        if self.radius is not None:
            radius = float(np.exp(log_across))
            aspect = float(np.exp(log_along - log_across))
            if aspect == 1.0:
                narrow, tall = (
                    np.exp(-0.5 * ((at - o) / radius) ** 2) for at, o in ((columns, x), (rows, y))
                )
            else:
                turned = {"aspect": aspect, "orientation": self.orientation}
                weight = gaussian(self.shape, self.ppd, radius, **turned, x=x, y=y)
        fields = 2 + self.pedestal
        powers = by.shape[-1]
        pairs = _FIELD[: fields + 2]
        held = self._free[: len(by)]
        polynomials = np.zeros((int(held.sum()), pairs.size * powers**2 + 1))
        polynomials[:, :-1] = (by[held][:, pairs] * _SIGN[: pairs.size, None, None]).reshape(
            len(polynomials), -1
        )
        polynomials[held[:3].sum(), -1] = 1.0
        of_rows = np.array([down.real * tall, down.imag * tall, tall][:fields])[:, None]
        of_columns = np.array([across.real * narrow, across.imag * narrow, narrow][:fields])[
            :, None
        ]
        return _Tangent(
            down=of_rows * np.vander(rows - y, powers, increasing=True).T,
            across=of_columns * np.vander(columns - x, powers, increasing=True).T,
            weight=weight,
            polynomials=polynomials,
        )

    def _search(self, pixels: Float64, start: SineFit, parameters: Float64) -> _State:
        """Damped Gauss-Newton; stops when a step would move the image by less than its rounding."""
        damping = 0.0
        signal = float(start.deviation) * np.sqrt(pixels.size)
        tangent = self._derivatives(parameters)
        left = start.left
        cost = float(np.vdot(left, left))
        inverse = np.zeros((int(self._free.sum()),) * 2)
        for _ in range(60):
            normal = tangent.normal
            scale = lengths(normal)
            scaled = normal / np.outer(scale, scale)
            damped = eigen_inverse(scaled, 1e-12)
            inverse = damped / np.outer(scale, scale)
            if damping:
                damped = eigen_inverse(scaled + damping * np.eye(len(scale)), 1e-12)
            step = damped @ (tangent.along(left) / scale) / scale
            moved = float(np.sqrt(np.clip(step @ normal @ step, 0.0, None)))
            if moved <= 1e-13 * signal:
                break
            trial = parameters.copy()
            trial[self._free] += step
            # A step of a factor of e in the envelope or of an octave in frequency is a leap into
            # the dark.
            sane = np.all(np.abs(trial[8:] - parameters[8:]) < 1)
            if sane:
                tried = self._derivatives(trial)
                rest = pixels - start.mean
                tried.take(trial[:3], trial[3], rest)
                if (trial_cost := float(np.vdot(rest, rest))) < cost:
                    gained = cost - trial_cost
                    parameters = trial
                    tangent = tried
                    left = rest
                    cost = trial_cost
                    damping = damping / 10 if damping > 1e-9 else 0.0
                    # What is left to gain moves no parameter by a ten-thousandth of its standard
                    # error.
                    if gained <= 1e-9 * cost:
                        break
                    continue
            if moved <= 1e-10 * signal:
                break
            damping = max(10 * damping, 1e-4)
        return _State(parameters, cost, inverse)

    def _report(self, state: _State, count: int, mean: float) -> PatternFit:
        p, q, _, b, u, v, x, y, log_across, log_along = state.parameters.tolist()
        sign = 1.0 if np.dot((u, v), wave_vector(1.0, self.orientation)) >= 0 else -1.0
        u = sign * u
        v = sign * v
        q = sign * q
        amplitude = float(np.hypot(p, q))
        frequency = float(np.hypot(u, v))
        turned = float(np.degrees(np.arctan2(v, u)))
        errors = np.zeros(10)
        errors[self._free] = np.sqrt(np.clip(np.diagonal(state.inverse), 0, None))
        amplitude_error, wave_error, shape_error = (
            float(np.hypot(*errors[i : i + 2])) for i in (0, 4, 8)
        )
        radius = float(np.exp(log_across))
        aspect = float(np.exp(log_along - log_across))
        return PatternFit(
            background=b + mean,
            amplitude=amplitude,
            phase=float(np.degrees(np.arctan2(-q, p))),
            frequency=frequency,
            orientation=self.orientation + (turned - self.orientation + 90) % 180 - 90,
            x=x,
            y=y,
            radius=float("inf") if self.radius is None else radius,
            aspect=aspect,
            residual=float(np.sqrt(state.cost / count)),
            gain={
                "background": float(errors[3]),
                "amplitude": amplitude_error,
                "phase": float(np.degrees(amplitude_error / amplitude))
                if amplitude
                else float("inf"),
                "frequency": wave_error,
                "orientation": float(np.degrees(wave_error / frequency))
                if frequency
                else float("inf"),
                "x": float(errors[6]),
                "y": float(errors[7]),
                "radius": radius * float(errors[8]),
                "aspect": aspect * shape_error,
            },
        )


def wave_vector(frequency: float, orientation: float) -> tuple[float, float]:
    """Cycles per degree along x and y of stripes turned counter-clockwise from vertical."""
    angle = np.radians(orientation)
    return float(frequency * np.cos(angle)), float(frequency * np.sin(angle))


def carrier(
    shape: tuple[int, int], ppd: float, u: float, v: float, x: float, y: float
) -> tuple[npt.NDArray[np.complex128], npt.NDArray[np.complex128]]:
    """A row and a column whose product is exp(2 pi i (u x + v y)): its phases are as exact as those
    of two lines.
    """
    columns, rows = pixel_centres(shape, ppd)
    return np.exp(2j * np.pi * u * (columns - x)), np.exp(2j * np.pi * v * (rows - y))


def dominant_frequency(image: Array, ppd: float) -> tuple[float, float]:
    """Frequency, cpd, and orientation, deg in [0, 180), of the largest Fourier coefficient, to
    within a bin.

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
    deviation = (pixels - (pixels * taper).sum() / taper.sum()) * taper
    rows = 2 * height
    columns = 2 * width
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


#: The real part of a wave is the first of these products of a column and a row less the second, its
#: imaginary part the sum of the next two, the profile the last: field, sign, and which factors.
_FIELD = np.array([0, 0, 1, 1, 2])
_SIGN = np.array([1.0, -1.0, 1.0, 1.0, 1.0])
_DOWN = np.array([0, 1, 0, 1, 2])
_ACROSS = np.array([0, 1, 1, 0, 2])


#: So many rows of an image at a time stay in the cache, and need no new memory.
_ROWS = 32


@lru_cache
def _factors(fields: int, powers: int) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Of every product, in the order of polynomials, which column and which row it is made of."""
    i, j = np.divmod(np.arange(powers**2), powers)
    down, across = (each[: fields + 2, None] * powers for each in (_DOWN, _ACROSS))
    return (down + j).ravel(), (across + i).ravel()


@dataclass(frozen=True)
class _Tangent:
    """Derivatives of an image: each a sum of products of a column and a row, times a weight, and of
    a constant.
    """

    #: down, across: Real and imaginary part of the wave, and its profile, times powers of the
    #: distance from the centre of the envelope, shapes (fields, powers, H) and (fields, powers, W).
    down: Float64
    across: Float64
    #: Of all products, shape (H, W); None for 1.
    weight: FloatArray | None
    #: Of every product in each derivative, and of the constant, shape (K, products + 1).
    polynomials: Float64

    @cached_property
    def normal(self) -> Float64:
        """Sums over pixels of the products of two derivatives, shape (K, K)."""
        (u, v) = _factors(*self.down.shape[:2])
        (down, across) = self._flat
        whole = np.empty((len(u) + 1, len(u) + 1))
        if self.weight is None:
            whole[:-1, :-1] = (down @ down.T)[u[:, None], u] * (across @ across.T)[v[:, None], v]
            whole[-1, :-1] = down.sum(axis=1)[u] * across.sum(axis=1)[v]
        else:
            one, other = np.triu_indices(len(down))
            pair = np.zeros((len(down), len(down)), int)
            pair[one, other] = pair[other, one] = np.arange(one.size)
            both = (down[one] * down[other]) @ self.weight**2 @ (across[one] * across[other]).T
            whole[:-1, :-1] = both[pair[u[:, None], u], pair[v[:, None], v]]
            whole[-1, :-1] = (down @ self.weight @ across.T)[u, v]
        whole[:-1, -1] = whole[-1, :-1]
        whole[-1, -1] = self.down.shape[-1] * self.across.shape[-1]
        return np.asarray(self.polynomials @ whole @ self.polynomials.T)

    def along(self, image: Float64) -> Float64:
        """Sums over pixels of the products of images, (..., H, W), and each derivative, shape (...,
        K).
        """
        down, across = self._flat
        weighted = image if self.weight is None else image * self.weight
        sums = (down @ weighted @ across.T)[(..., *_factors(*self.down.shape[:2]))]
        return np.asarray(
            np.concatenate([sums, image.sum(axis=(-2, -1))[..., None]], axis=-1)
            @ self.polynomials.T
        )

    def image(self, linear: Float64) -> Float64:
        """``E (p cos + q sin + d)``, (..., H, W), of (p, q) or (p, q, d) along the last axis."""
        images = self._columns(linear) @ self.across[:, 0]
        if self.weight is not None:
            images *= self.weight
        return np.asarray(images)

    def _columns(self, linear: Float64) -> Float64:
        """Of the images of these coefficients, what goes with each row, shape (..., H, fields)."""
        real, imaginary, *profile = self.down[:, 0]
        p = linear[..., :1]
        q = linear[..., 1:2]
        columns = [p * real + q * imaginary, q * real - p * imaginary]
        return np.stack([*columns, *(linear[..., 2:3] * each for each in profile)], axis=-1)

    def take(self, linear: Float64, background: Float64, left: Float64) -> None:
        """Subtract ``E (p cos + q sin + d) + b`` from images, (..., H, W), where they stand, some
        rows at a time.
        """
        columns = self._columns(linear)
        for start in range(0, left.shape[-2], _ROWS):
            some = slice(start, start + _ROWS)
            part = columns[..., some, :] @ self.across[:, 0]
            if self.weight is not None:
                part *= self.weight[some]
            part += background[..., None, None]
            left[..., some, :] -= part

    def solve(self, left: Float64) -> tuple[Float64, Float64]:
        """Coefficients of least squares, (..., K), with their standard errors, (K,); taken from
        `left`, (..., H, W).
        """
        scale = lengths(self.normal)
        inverse = eigen_inverse(self.normal / np.outer(scale, scale), 1e-13)
        values: Float64 = np.zeros((*left.shape[:-2], len(scale)))
        # The second pass takes away what squaring the condition number in the normal equations
        # cost.
        for _ in range(2):
            step = (self.along(left) / scale) @ inverse / scale
            self.take(step[..., :-1], step[..., -1], left)
            values += step
        return values, np.sqrt(np.clip(np.diagonal(inverse), 0, None)) / scale

    @property
    def _flat(self) -> tuple[Float64, Float64]:
        return self.down.reshape(-1, self.down.shape[-1]), self.across.reshape(
            -1, self.across.shape[-1]
        )
