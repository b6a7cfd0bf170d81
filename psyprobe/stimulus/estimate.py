"""Estimators: what an image holds, measured from its pixels.

Nothing here knows how psyprobe draws, so that a fault in the drawing cannot hide itself. Each estimator is the one
that reaches the rounding error of the pixels: amplitudes are fitted by least squares (the largest and smallest sample
of a sine miss its peaks by up to 41 %), frequencies by Gauss-Newton (the peak of a Fourier transform lies up to half a
bin off), bands by Fourier sums.

Images are `(..., H, W)`; leading dimensions are a batch. Pixel centres lie at ``(i - (N - 1) / 2) / ppd`` degrees,
x to the right and y up; `ppd` is pixels per degree, and the unit of a fit that of the image: luminance, or any linear
quantity. Torch tensors are taken too, and measured as float64 on the CPU.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from psyprobe._typing import Array, FloatArray
from psyprobe.errors import InputError

Float64 = npt.NDArray[np.float64]


def to_float64(image: Array) -> Float64:
    """An image, at least two-dimensional and finite, as a float64 numpy array, whatever it came as.

    Parameters
    ----------
    image : array_like, shape (..., H, W)
        A list, or an array of numpy or torch, on any device.

    Raises
    ------
    InputError
        If it has fewer than two dimensions, or holds NaN or infinity.

    Examples
    --------
    >>> to_float64([[1, 2], [3, 4]]).dtype
    dtype('float64')
    """
    if hasattr(image, "detach"):
        # numpy has no bfloat16, so the widening is left to torch.
        image = image.detach().cpu().double().numpy()
    pixels: Float64 = np.asarray(image, dtype=np.float64)
    if pixels.ndim < 2:
        raise InputError(f"an image needs two dimensions (H, W), not {pixels.ndim}: its shape is {pixels.shape}")
    if not np.isfinite(pixels).all():
        bad = int(np.count_nonzero(~np.isfinite(pixels)))
        raise InputError(f"{bad} of {pixels.size} values are NaN or infinite; an image must be finite to be measured")
    return pixels


def pixel_centres(shape: tuple[int, int], ppd: float) -> tuple[Float64, Float64]:
    """Where the columns (rising to the right) and the rows (falling, since row 0 is the top) of an image lie, deg.

    Parameters
    ----------
    shape : (int, int)
        Pixels (H, W).
    ppd : float
        Pixels per degree.

    Examples
    --------
    >>> x, y = pixel_centres((2, 4), ppd=2)
    >>> x.tolist(), y.tolist()
    ([-0.75, -0.25, 0.25, 0.75], [0.25, -0.25])
    """
    height, width = shape
    x = (np.arange(width) - (width - 1) / 2) / ppd
    y = ((height - 1) / 2 - np.arange(height)) / ppd
    return np.asarray(x), np.asarray(y)


def gaussian(
    shape: tuple[int, int],
    ppd: float,
    radius: float,
    *,
    aspect: float = 1.0,
    orientation: float = 0.0,
    x: float = 0.0,
    y: float = 0.0,
) -> Float64:
    """A Gaussian envelope, 1 at its centre.

    Parameters
    ----------
    shape : (int, int)
        Pixels (H, W).
    ppd : float
        Pixels per degree.
    radius : float
        Standard deviation across the stripes, degrees.
    aspect : float
        Standard deviation along the stripes over that across them.
    orientation : float
        Of the stripes, degrees counter-clockwise from vertical.
    x, y : float
        Its centre, degrees to the right and up.

    Examples
    --------
    >>> gaussian((3, 3), ppd=1, radius=1)[1].round(4).tolist()
    [0.6065, 1.0, 0.6065]
    """
    columns, rows = pixel_centres(shape, ppd)
    dx, dy = columns - x, rows - y
    if aspect == 1.0:
        return np.outer(np.exp(-0.5 * (dy / radius) ** 2), np.exp(-0.5 * (dx / radius) ** 2))
    across, along = turn(dx, dy, orientation)
    return np.asarray(np.exp(-0.5 * ((across / radius) ** 2 + (along / (aspect * radius)) ** 2)))


def round_window(
    shape: tuple[int, int], ppd: float, radius: float, *, edge: float = 0.0, x: float = 0.0, y: float = 0.0
) -> Float64:
    """A disc of height 1, with a raised-cosine edge so wide (deg), or hard for 0.

    A soft disc is 1/2 at `radius`; a hard one holds the pixels whose centres lie within it.

    Examples
    --------
    >>> round_window((3, 5), ppd=1, radius=1.1).astype(int).tolist()
    [[0, 0, 1, 0, 0], [0, 1, 1, 1, 0], [0, 0, 1, 0, 0]]
    """
    beyond = _distance(shape, ppd, x, y) - radius
    if edge == 0:
        return np.asarray((beyond <= 0).astype(np.float64))
    return np.asarray(np.cos(np.pi / 2 * np.clip(beyond / edge + 0.5, 0, 1)) ** 2)


def edge_pixels(shape: tuple[int, int], ppd: float, radius: float, x: float, y: float) -> float:
    """Root of the share of pixels that lie on the edge of a hard disc, where rounding decides on which side."""
    return float(np.sqrt(np.mean(np.abs(_distance(shape, ppd, x, y) - radius) < 1e-9 * radius)))


def _distance(shape: tuple[int, int], ppd: float, x: float, y: float) -> Float64:
    columns, rows = pixel_centres(shape, ppd)
    return np.asarray(np.hypot((columns - x)[None, :], (rows - y)[:, None]))


def rms_contrast(image: Array) -> Float64:
    """RMS contrast of each image: population standard deviation over mean.

    Parameters
    ----------
    image : (..., H, W) array
        Luminance, or any linear quantity whose mean is above zero.

    Raises
    ------
    InputError
        If a mean is not above 0.

    References
    ----------
    Peli, E. (1990). Contrast in complex images. JOSA A 7(10), eq. 2.

    Examples
    --------
    >>> float(rms_contrast([[90.0, 110.0]]))
    0.1
    """
    pixels = to_float64(image)
    mean = pixels.mean(axis=(-2, -1))
    if not (mean > 0).all():
        raise InputError(f"RMS contrast is the SD over the mean, and a mean is {mean.min():.6g}; it must be above 0")
    return np.asarray(pixels.std(axis=(-2, -1)) / mean)


@dataclass(frozen=True)
class LinearFit:
    """A least-squares fit of known patterns to each image of a batch."""

    #: Amplitude of each pattern, in the unit of the image.
    coefficients: Float64
    #: The constant.
    background: Float64
    #: Root mean square of what the patterns leave, in the unit of the image.
    residual: Float64
    #: Standard error of the coefficients and the background for independent pixel errors of 1.
    gain: Float64


def fit_patterns(image: Array, patterns: Array) -> LinearFit:
    """Least squares on {patterns, 1}.

    Parameters
    ----------
    patterns : (..., K, H, W) array
        K patterns of known shape; leading dimensions broadcast with those of the image.

    Examples
    --------
    >>> wave = np.sin(np.arange(16)) * np.ones((4, 1))
    >>> fit = fit_patterns(20 + 3 * wave, wave[None])
    >>> round(float(fit.coefficients[0]), 12), round(float(fit.background), 12)
    (3.0, 20.0)
    """
    pixels = to_float64(image)
    known = to_float64(patterns)
    mean = pixels.mean(axis=(-2, -1), keepdims=True)
    target = (pixels - mean).reshape(*pixels.shape[:-2], 1, -1)
    rows = known.reshape(*known.shape[:-2], -1)
    # The constant is a last row of ones, which need not be written down.
    sums, count = rows.sum(axis=-1, keepdims=True), float(rows.shape[-1])
    last = np.concatenate([sums, np.full_like(sums[..., :1, :], count)], axis=-2)
    normal = np.concatenate([rows @ rows.swapaxes(-1, -2), sums.swapaxes(-1, -2)], axis=-2)
    normal = np.concatenate([normal, last], axis=-1)
    scale = np.sqrt(np.diagonal(normal, axis1=-2, axis2=-1))[..., None]
    scale = np.where(scale > 0, scale, 1.0)
    inverse = _inverse(normal / (scale * scale.swapaxes(-1, -2)), 1e-13)
    values = np.zeros((*np.broadcast_shapes(target.shape[:-2], rows.shape[:-2]), *scale.shape[-2:]))
    left = np.broadcast_to(target, (*values.shape[:-2], 1, target.shape[-1]))
    # The second pass takes away what squaring the condition number in the normal equations cost.
    for _ in range(2):
        along = np.concatenate([rows @ left.swapaxes(-1, -2), left.sum(axis=-1, keepdims=True)], axis=-2)
        values = values + inverse @ (along / scale) / scale
        left = target - values[..., :-1, :].swapaxes(-1, -2) @ rows
        left -= values[..., -1:, :]
    values = values[..., 0]
    gain = np.sqrt(np.clip(np.diagonal(inverse, axis1=-2, axis2=-1), 0, None)) / scale[..., 0]
    return LinearFit(
        coefficients=values[..., :-1],
        background=values[..., -1] + mean[..., 0, 0],
        residual=np.sqrt(np.einsum("...i,...i", left, left)[..., 0] / count),
        gain=np.broadcast_to(gain, values.shape),
    )


def _inverse(normal: Float64, least: float) -> Float64:
    """Of symmetric matrices, (..., K, K), leaving out eigenvalues below this share of the largest."""
    values, vectors = np.linalg.eigh(normal)
    kept = values > least * values[..., -1:]
    return np.asarray((vectors * np.where(kept, 1 / np.where(kept, values, 1.0), 0.0)[..., None, :]) @ vectors.mT)


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
    #: gain, background_gain: Standard errors of the amplitude and the background for independent pixel errors of 1.
    gain: Float64
    background_gain: Float64


def fit_sine(
    image: Array,
    *,
    ppd: float,
    frequency: float,
    orientation: float = 0.0,
    x: float = 0.0,
    y: float = 0.0,
    envelope: FloatArray | None = None,
    pedestal: bool = False,
) -> SineFit:
    """Amplitude, phase and background by least squares on {E cos, E sin, 1}.

    Exact for every frequency below Nyquist, every phase and every orientation, wherever the samples fall.

    Parameters
    ----------
    image : (..., H, W) array
        Luminance, or any linear quantity.
    ppd : float
        Pixels per degree.
    frequency : float
        Cycles per degree.
    orientation : float
        Degrees counter-clockwise from vertical stripes.
    x, y : float
        Centre to which the phase refers, degrees.
    envelope : (H, W) ndarray, optional
        E; 1 everywhere if absent.
    pedestal : bool
        Fit the bare envelope too, {E cos, E sin, E, 1}: a Gabor balanced to zero mean has one.

    Examples
    --------
    At a quarter of the sampling rate and 45 degrees of phase no sample meets a peak:

    >>> x, _ = pixel_centres((4, 64), ppd=60)
    >>> grating = 100 + 50 * np.cos(2 * np.pi * 15 * x + np.pi / 4) * np.ones((4, 1))
    >>> fit = fit_sine(grating, ppd=60, frequency=15)
    >>> round(float(fit.amplitude), 9), round(float(fit.phase), 9), round(float(np.ptp(grating) / 2), 2)
    (50.0, 45.0, 50.0)
    """
    pixels = to_float64(image)
    shape = (pixels.shape[-2], pixels.shape[-1])
    waves = sine_patterns(shape, ppd, frequency, orientation, x=x, y=y, envelope=envelope, pedestal=pedestal)
    return fit_waves(pixels, waves)


def fit_waves(image: Array, patterns: Float64) -> SineFit:
    """As `fit_sine`, with patterns as `sine_patterns` gives them."""
    fit = fit_patterns(image, patterns)
    in_phase, quadrature = fit.coefficients[..., 0], fit.coefficients[..., 1]
    return SineFit(
        background=fit.background,
        amplitude=np.hypot(in_phase, quadrature),
        phase=np.degrees(np.arctan2(-quadrature, in_phase)),
        pedestal=fit.coefficients[..., 2] if fit.coefficients.shape[-1] > 2 else np.zeros_like(in_phase),
        gain=np.hypot(fit.gain[..., 0], fit.gain[..., 1]),
        background_gain=fit.gain[..., -1],
    )


def sine_patterns(
    shape: tuple[int, int],
    ppd: float,
    frequency: float,
    orientation: float,
    *,
    x: float = 0.0,
    y: float = 0.0,
    envelope: FloatArray | None = None,
    pedestal: bool = False,
) -> Float64:
    """{E cos, E sin}, and {E} with a pedestal: shape (K, H, W); parameters as in `fit_sine`."""
    across, down = carrier(shape, ppd, *wave_vector(frequency, orientation), x, y)
    patterns = np.ones((2 + pedestal, *shape))
    rows = np.stack([across.real, across.imag])
    np.matmul(np.stack([down.real, -down.imag], axis=1), rows, out=patterns[0])
    np.matmul(np.stack([down.imag, down.real], axis=1), rows, out=patterns[1])
    if envelope is not None:
        patterns *= envelope
    return patterns


def wave_vector(frequency: float, orientation: float) -> tuple[float, float]:
    """Cycles per degree along x and y of stripes turned counter-clockwise from vertical."""
    angle = np.radians(orientation)
    return float(frequency * np.cos(angle)), float(frequency * np.sin(angle))


def turn(dx: Float64, dy: Float64, orientation: float) -> tuple[Float64, Float64]:
    """Coordinates across and along the stripes, (H, W) each."""
    angle = np.radians(orientation)
    cosine, sine = np.cos(angle), np.sin(angle)
    across = cosine * dx[None, :] + sine * dy[:, None]
    along = -sine * dx[None, :] + cosine * dy[:, None]
    return across, along


def carrier(
    shape: tuple[int, int], ppd: float, u: float, v: float, x: float, y: float
) -> tuple[npt.NDArray[np.complex128], npt.NDArray[np.complex128]]:
    """A row and a column whose product is exp(2 pi i (u x + v y)): its phases are as exact as those of two lines."""
    columns, rows = pixel_centres(shape, ppd)
    return np.exp(2j * np.pi * u * (columns - x)), np.exp(2j * np.pi * v * (rows - y))


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
    #: Standard deviation of the envelope across the stripes, degrees; infinite where the envelope is given.
    radius: float
    #: Standard deviation along the stripes over that across them.
    aspect: float
    residual: float
    #: Standard error of each parameter, in its own unit, for independent pixel errors of 1.
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
    start: SineFit | None = None,
) -> PatternFit:
    """Every parameter of a Gabor or a grating by damped Gauss-Newton, started where it was asked for.

    Where the image has too few cycles to tell two parameters apart, what cannot be told stays at its start.

    Parameters
    ----------
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
    start : SineFit, optional
        What `fit_sine` found of this image, to spare finding it again.

    Raises
    ------
    InputError
        If it is given a batch; it takes one image.

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
    shape = (pixels.shape[0], pixels.shape[1])
    model = _Model(shape, ppd, (x, y), orientation, window, pedestal, fitted_envelope=radius is not None)
    envelope = np.array([x, y, 0.0, 0.0] if radius is None else [x, y, np.log(radius), np.log(radius * aspect)])
    wave = np.array(wave_vector(frequency, orientation))
    if start is None:
        first = model.start(pixels, wave, envelope)
    else:
        phasor = float(start.amplitude) * np.exp(-1j * np.radians(float(start.phase)))
        linear = [phasor.real, phasor.imag, float(start.pedestal), float(start.background) - pixels.mean()]
        first = np.concatenate([linear, wave, envelope])
    best = _gauss_newton(model, pixels, first)
    variance = float(pixels.var())
    if variance > 0 and best.cost > 0.5 * variance * pixels.size:
        elsewhere = model.start(pixels, np.array(wave_vector(*dominant_frequency(pixels, ppd))), envelope)
        other = _gauss_newton(model, pixels, elsewhere)
        best = other if other.cost < best.cost else best
    return model.report(best, pixels.size, float(pixels.mean()))


def dominant_frequency(image: Array, ppd: float) -> tuple[float, float]:
    """Frequency, cpd, and orientation, deg in [0, 180), of the largest Fourier coefficient, to within a bin.

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
class _Tangent:
    """An image and its derivatives: each a sum of few fields, every one times a polynomial of second degree at most.

    The fields are the real and the imaginary part of a wave, its profile, and 1. Wave and profile are products of a
    column and a row, times a weight where an envelope is none; so sums over pixels of products of two derivatives are
    moments, and no derivative is written down.
    """

    image: Float64
    #: wave, profile: Along columns and along rows, shapes (W,) and (H,).
    wave: tuple[npt.NDArray[np.complex128], npt.NDArray[np.complex128]]
    profile: tuple[FloatArray, FloatArray] | None
    #: Of wave and profile, shape (H, W); None for 1.
    weight: FloatArray | None
    #: Powers 0 to 4 of columns and of rows about the centre of the envelope, shapes (W, 5) and (H, 5).
    powers: tuple[Float64, Float64]
    #: Coefficients of x^i y^j of each derivative and field, shape (K, fields, 3, 3).
    polynomials: Float64

    def normal(self) -> Float64:
        """Sums over pixels of the products of two derivatives, shape (K, K)."""
        (across, down), weight = self.wave, self.weight
        squared = None if weight is None else weight**2
        even = self._moments(np.abs(across) ** 2, np.abs(down) ** 2, squared)
        odd = self._moments(across**2, down**2, squared)
        alone = self._moments(across, down, weight)
        ones = self._moments(np.ones(len(across)), np.ones(len(down)), None)
        rows = [
            [(even + odd.real) / 2, odd.imag / 2, alone.real],
            [odd.imag / 2, (even - odd.real) / 2, alone.imag],
            [alone.real, alone.imag, ones],
        ]
        if self.profile is not None:
            narrow, tall = self.profile
            both = self._moments(across * narrow, down * tall, squared)
            column = [both.real, both.imag, self._moments(narrow, tall, weight)]
            for row, entry in zip(rows, column, strict=True):
                row.insert(2, entry)
            rows.insert(2, [*column[:2], self._moments(narrow**2, tall**2, squared), column[2]])
        i, j, k, l = np.ogrid[:3, :3, :3, :3]
        moments = np.array(rows)[:, :, i + k, j + l].transpose(0, 2, 3, 1, 4, 5)
        flat = self.polynomials.reshape(len(self.polynomials), -1)
        return np.asarray(flat @ moments.reshape(flat.shape[1], -1) @ flat.T)

    def along(self, image: Float64) -> Float64:
        """Sums over pixels of the products of an image and each derivative, shape (K,)."""
        weighted = image if self.weight is None else image * self.weight
        wave = self._moments(*self.wave, weighted, 3)
        profile = [] if self.profile is None else [self._moments(*self.profile, weighted, 3)]
        height, width = image.shape
        moments = [wave.real, wave.imag, *profile, self._moments(np.ones(width), np.ones(height), image, 3)]
        return np.asarray(self.polynomials.reshape(len(self.polynomials), -1) @ np.ravel(moments))

    def _moments(self, across: Array, down: Array, weight: FloatArray | None, count: int = 5) -> Array:
        """Sums over pixels of x^i y^j times a product of a row and a column, and of a weight."""
        columns, rows = (
            powers[:, :count] * each[:, None] for powers, each in zip(self.powers, (across, down), strict=True)
        )
        if weight is None:
            return np.outer(columns.sum(axis=0), rows.sum(axis=0))
        # Both parts in one product: numpy would turn the whole weight into complex numbers.
        parts = weight @ np.concatenate([columns.real, columns.imag], axis=1)
        return (
            (rows.T @ (parts[:, :count] + 1j * parts[:, count:])).T
            if np.iscomplexobj(columns)
            else (rows.T @ parts[:, :count]).T
        )


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
        start = np.concatenate([np.zeros(4), wave, envelope])
        tangent = self.evaluate(start)
        linear = np.flatnonzero(self.free[:4])
        normal = tangent.normal()[: len(linear), : len(linear)]
        scale = np.sqrt(np.diagonal(normal))
        scale = np.where(scale > 0, scale, 1.0)
        inverse = _inverse(normal / np.outer(scale, scale), 1e-13)
        start[linear] = inverse @ (tangent.along(pixels - pixels.mean())[: len(linear)] / scale) / scale
        return start

    def evaluate(self, parameters: Float64) -> _Tangent:
        """The image less its mean, and the derivatives by the free parameters."""
        p, q, d, b, u, v, x, y, log_across, log_along = parameters
        columns, rows = pixel_centres(self.shape, self.ppd)
        (narrow, tall), weight = self._envelope(parameters[6:])
        across, down = carrier(self.shape, self.ppd, u, v, *self.centre)
        across, down = across * narrow, down * tall
        turned = (p - 1j * q) * down
        outer = [(turned.real, across.real), (-turned.imag, across.imag), (d * tall, narrow)][: 2 + self.pedestal]
        image = np.stack([left for left, _ in outer], axis=1) @ np.stack([right for _, right in outer])
        if weight is not None:
            image *= weight
        image += b
        by = np.zeros((10, 3 + self.pedestal, 3, 3))
        by[[0, 1, 2, 3], [0, 1, 2, -1], 0, 0] = 1.0
        slope = 2 * np.pi * np.array([q, -p])
        by[4, :2, 0, 0], by[4, :2, 1, 0] = slope * (x - self.centre[0]), slope
        by[5, :2, 0, 0], by[5, :2, 0, 1] = slope * (y - self.centre[1]), slope
        # Distances across and along the stripes, as coefficients of those to the right and up.
        angle = np.radians(self.orientation)
        c, s = np.cos(angle), np.sin(angle)
        short, long = np.exp(-2 * log_across), np.exp(-2 * log_along)
        weights = np.array([p, q, d][: 2 + self.pedestal])[:, None]
        by[6, :-1, [1, 0], [0, 1]] = (weights * [c * c * short + s * s * long, c * s * (short - long)]).T
        by[7, :-1, [1, 0], [0, 1]] = (weights * [c * s * (short - long), s * s * short + c * c * long]).T
        by[8, :-1, [2, 1, 0], [0, 1, 2]] = (weights * [c * c * short, 2 * c * s * short, s * s * short]).T
        by[9, :-1, [2, 1, 0], [0, 1, 2]] = (weights * [s * s * long, -2 * c * s * long, c * c * long]).T
        powers = np.vander(columns - x, 5, increasing=True), np.vander(rows - y, 5, increasing=True)
        profile = (narrow, tall) if self.pedestal else None
        return _Tangent(image, (across, down), profile, weight, powers, by[self.free])

    def report(self, state: _State, count: int, mean: float) -> PatternFit:
        p, q, _, b, u, v, x, y, log_across, log_along = state.parameters
        sign = 1.0 if np.dot((u, v), wave_vector(1.0, self.orientation)) >= 0 else -1.0
        u, v, q = sign * u, sign * v, sign * q
        amplitude, frequency = float(np.hypot(p, q)), float(np.hypot(u, v))
        turn = float(np.degrees(np.arctan2(v, u)))
        errors = np.zeros(10)
        errors[self.free] = np.sqrt(np.clip(np.diagonal(state.inverse), 0, None))
        amplitude_error, wave_error, shape_error = (float(np.hypot(*errors[i : i + 2])) for i in (0, 4, 8))
        radius, aspect = float(np.exp(log_across)), float(np.exp(log_along - log_across))
        return PatternFit(
            background=float(b) + mean,
            amplitude=amplitude,
            phase=float(np.degrees(np.arctan2(-q, p))),
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
                "aspect": aspect * shape_error,
            },
        )

    def _envelope(self, parameters: Float64) -> tuple[tuple[FloatArray, FloatArray], FloatArray | None]:
        """Of the last four parameters: a row and a column, and a weight on their product where they do not suffice."""
        ones = np.ones(self.shape[1]), np.ones(self.shape[0])
        if not self.fitted_envelope:
            return ones, self.window
        x, y, log_across, log_along = map(float, parameters)
        radius, aspect = float(np.exp(log_across)), float(np.exp(log_along - log_across))
        if aspect == 1.0:
            columns, rows = pixel_centres(self.shape, self.ppd)
            return (np.exp(-0.5 * ((columns - x) / radius) ** 2), np.exp(-0.5 * ((rows - y) / radius) ** 2)), None
        return ones, gaussian(self.shape, self.ppd, radius, aspect=aspect, orientation=self.orientation, x=x, y=y)


def _gauss_newton(model: _Model, pixels: Float64, start: Float64) -> _State:
    """Damped Gauss-Newton; stops when a step would move the image by less than its rounding."""
    target = pixels - pixels.mean()
    parameters, damping = start, 0.0
    tangent = model.evaluate(parameters)
    left = target - tangent.image
    cost = float(np.vdot(left, left))
    signal = float(np.sqrt(np.vdot(target, target)))
    inverse = np.zeros((int(model.free.sum()),) * 2)
    for _ in range(60):
        normal = tangent.normal()
        scale = np.sqrt(np.clip(np.diagonal(normal), 0, None))
        scale = np.where(scale > 0, scale, 1.0)
        scaled = normal / np.outer(scale, scale)
        damped = _inverse(scaled, 1e-12)
        inverse = damped / np.outer(scale, scale)
        if damping:
            damped = _inverse(scaled + damping * np.eye(len(scale)), 1e-12)
        step = damped @ (tangent.along(left) / scale) / scale
        moved = float(np.sqrt(np.clip(step @ normal @ step, 0.0, None)))
        if moved <= 1e-13 * signal:
            break
        trial = parameters.copy()
        trial[model.free] += step
        # A step of a factor of e in the envelope or of an octave in frequency is a leap into the dark.
        sane = np.all(np.abs(trial[8:] - parameters[8:]) < 1)
        if sane:
            tried = model.evaluate(trial)
            rest = target - tried.image
            if (trial_cost := float(np.vdot(rest, rest))) < cost:
                gained = cost - trial_cost
                parameters, tangent, left, cost = trial, tried, rest, trial_cost
                damping = damping / 10 if damping > 1e-9 else 0.0
                # What is left to gain moves no parameter by a ten-thousandth of its standard error.
                if gained <= 1e-9 * cost:
                    break
                continue
        if moved <= 1e-10 * signal:
            break
        damping = max(10 * damping, 1e-4)
    return _State(parameters, cost, inverse)


#: Two radial frequencies closer than this (relative) are one: a coefficient that lies on a band edge is inside it.
BAND_EDGE = 1e-9


def radial_frequency(shape: tuple[int, int], ppd: float) -> Float64:
    """Frequency of each coefficient of `numpy.fft.rfft2`, cycles per degree.

    Parameters
    ----------
    shape : (int, int)
        Pixels (H, W).
    ppd : float
        Pixels per degree.

    Examples
    --------
    >>> radial_frequency((2, 4), ppd=4).tolist()
    [[0.0, 1.0, 2.0], [2.0, 2.23606797749979, 2.8284271247461903]]
    """
    height, width = shape
    return np.asarray(np.hypot(np.fft.fftfreq(height, 1 / ppd)[:, None], np.fft.rfftfreq(width, 1 / ppd)[None, :]))


def fourier_power(image: Array) -> Float64:
    """Energy of each coefficient of `numpy.fft.rfft2`, the mean left out, conjugates counted.

    Its sum is the variance of the image times the square of the number of pixels.

    Examples
    --------
    >>> image = np.array([[1.0, 2.0, 4.0], [0.0, 3.0, 1.0]])
    >>> bool(np.isclose(fourier_power(image).sum(), image.var() * 36))
    True
    """
    pixels = to_float64(image)
    width = pixels.shape[-1]
    power = np.abs(np.fft.rfft2(pixels - pixels.mean(axis=(-2, -1), keepdims=True))) ** 2
    power[..., 1 : (width + 1) // 2] *= 2
    power[..., 0, 0] = 0
    return power


def _power_and_frequency(image: Array, ppd: float) -> tuple[Float64, Float64]:
    height, width = to_float64(image).shape[-2:]
    return fourier_power(image), radial_frequency((height, width), ppd)


def out_of_band_energy(image: Array, ppd: float, low: float, high: float) -> Float64:
    """Share of the energy outside a band of radial frequency; its edges, `low` and `high` cpd, are inside.

    Parameters
    ----------
    image : (..., H, W) array
        Luminance, or any linear quantity; its mean does not count.
    ppd : float
        Pixels per degree.
    low, high : float
        Edges of the band, cpd.

    Raises
    ------
    InputError
        If the image is uniform.

    Examples
    --------
    >>> x = (np.arange(32) - 15.5) / 32
    >>> image = np.cos(2 * np.pi * 4 * x) * np.ones((32, 1))
    >>> float(out_of_band_energy(image, 32, 3, 5)) < 1e-28, float(out_of_band_energy(image, 32, 5, 9)) > 0.99
    (True, True)
    """
    power, radius = _power_and_frequency(image, ppd)
    outside = (radius < low * (1 - BAND_EDGE)) | (radius > high * (1 + BAND_EDGE))
    total = power.sum(axis=(-2, -1))
    if not (total > 0).all():
        raise InputError("a uniform image has no band: all its energy is in its mean")
    return np.asarray((power * outside).sum(axis=(-2, -1)) / total)


def band_limits(image: Array, ppd: float, floor: float = 1e-8) -> tuple[Float64, Float64]:
    """Frequencies of the lowest and the highest coefficient that carries energy, cpd.

    Coefficients below `floor` times the largest one count as empty.

    Parameters
    ----------
    image : (..., H, W) array
        Luminance, or any linear quantity; its mean does not count.
    ppd : float
        Pixels per degree.
    floor : float
        As a fraction of the largest coefficient.

    Examples
    --------
    >>> x = (np.arange(32) - 15.5) / 32
    >>> image = np.cos(2 * np.pi * 4 * x) + np.cos(2 * np.pi * 9 * x) * np.ones((32, 1))
    >>> [float(edge) for edge in band_limits(image, 32)]
    [4.0, 9.0]
    """
    power, radius = _power_and_frequency(image, ppd)
    full = power > floor * power.max(axis=(-2, -1), keepdims=True)
    low = np.where(full, radius, np.inf).min(axis=(-2, -1))
    high = np.where(full, radius, -np.inf).max(axis=(-2, -1))
    return low, high
