"""Noise of a stated power spectral density: white, or falling with frequency, and nowhere zero.

An ideal observer of a signal in such noise is known, so an efficiency is defined. The noise of
`psyprobe.noise` is silent outside its band, where a signal would be seen without any noise.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from psyprobe._typing import Array, BoolArray, FloatArray, Levels, Size
from psyprobe.errors import check_known
from psyprobe.light.colour import Direction
from psyprobe.stimulus.backend import Backend
from psyprobe.stimulus.certificate import ImageMeasurements
from psyprobe.stimulus.measuring import Planes
from psyprobe.stimulus.parameters import check_keywords, common, parameter
from psyprobe.stimulus.pattern import Modulation
from psyprobe.stimulus.registry import stimulus_kind
from psyprobe.stimulus.specification import draw_kind
from psyprobe.stimulus.stimulus import Stimulus

#: Which frequencies a band holds, as `BandNoise` has it.
_BANDS = ("band", "low", "high")
#: Pixels further from the background than so many standard deviations are drawn at that distance.
#: It is one in 1.7 million, too few to tell a signal by.
LARGEST_DEVIATION = 5.0

#: Share of the power that limits at the largest deviation may bring outside a band.
_CLIPPED = 1e-3
#: How many standard errors a sample may lie from its density: the worst of thousands counts.
_SAMPLING_ERRORS = 6.0


@stimulus_kind("white_noise")
class WhiteNoise(Modulation):
    """Independent Gaussian pixels of a stated two-sided power spectral density.

    The density N, in deg², is the same at whatever resolution the noise is drawn: the contrast of
    a pixel has the standard deviation ``sqrt(N) * ppd``. Neither the mean nor the standard
    deviation of a sample is corrected.

    Parameters as in `psyprobe.stimulus.white_noise`.

    Examples
    --------
    >>> noise = WhiteNoise(density=2.78e-6, seed=1)
    >>> round(float(noise.rms), 3), round(float(noise.changed(ppd=90.0).rms), 3)
    (0.1, 0.15)
    """

    contrast: Levels = parameter("1", "Factor on the noise", default=1.0, low=0)
    #: deg²
    density: Levels = parameter("deg²", "Noise density", low=0)
    seed: Levels = common("seed", default=0)

    contrast_kind = "rms"
    deepest = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self._require(
            "contrast",
            np.asarray(self.contrast) == 1,
            "noise has a density in place of a contrast; leave contrast at 1",
        )
        if self.in_colour:
            return
        largest = LARGEST_DEVIATION * self.ppd
        limit = 1 / (largest**2 * np.max(self._power))
        allowed = (
            f"pixels reach {LARGEST_DEVIATION:g} standard deviations, and at {self.ppd:g} pixels "
            f"per degree more than {limit:.3g} deg² would need negative light; give less, or draw "
            "it with fewer pixels per degree"
        )
        self._require("density", np.asarray(self.density) <= limit, allowed)

    @property
    def _power(self) -> Levels:
        """Variance of a pixel over that of white noise of the same density."""
        return 1.0

    @property
    def rms(self) -> Levels:
        """Standard deviation of the contrast of a pixel."""
        return self.ppd * np.sqrt(self.density * self._power)

    def density_at(self, frequency: FloatArray) -> FloatArray:
        """Compute the noise's spectral density at frequencies (cpd), deg².

        Parameters
        ----------
        frequency : ndarray
            Radial frequency, cpd.

        Returns
        -------
        ndarray
            deg², as the shape of `frequency`.
        """
        return np.full_like(frequency, self.density)

    def paint(
        self, amplitude: FloatArray, offset: FloatArray, backend: Backend
    ) -> Array:
        """Draw ``offset + amplitude * noise of the stated density``, shape (n, H, W)."""
        rms = self._repeat(self.rms)
        images = np.empty((len(amplitude), *self.shape), backend.dtype)
        for i, seed in enumerate(self.per_image("seed")):
            # Deviates are always drawn in float32, as those of other noise.
            rng = np.random.default_rng(int(seed))
            deviates = rng.standard_normal(self.shape, dtype=np.float32)
            pixels = self._colour(deviates.astype(np.float64), i)
            np.clip(pixels, -LARGEST_DEVIATION, LARGEST_DEVIATION, out=pixels)
            images[i] = pixels * (amplitude[i] * rms[i]) + offset[i]
        return backend.array(images)

    def _colour(self, deviates: FloatArray, index: int) -> FloatArray:
        """Filter white deviates to the noise's spectrum; white noise leaves them as they are."""
        return deviates

    def _refuse_negative(self, pixels: Array) -> None:
        """Refuse a density that makes a pixel darker than black."""
        darkest = float(pixels.min())
        allowed = f"it would need negative light ({darkest:g}); give less"
        self._require("density", darkest >= 0, allowed)

    def measure_planes(self, planes: Planes, measurements: ImageMeasurements) -> None:
        """Measure mean, RMS contrast, density and slope, which may differ by sampling error."""
        level = self.luminance
        share = abs(self.luminance_share) if self.in_colour else 1.0
        frequency = _frequencies(self.shape, self.ppd)
        density = self.density_at(frequency)
        # The mean is the coefficient at frequency 0.
        mean_error = share * np.sqrt(density[0, 0] / np.prod(self.field))
        measurements.add(
            "mean luminance",
            level,
            planes.light.mean(),
            "mean over pixels",
            extra=_SAMPLING_ERRORS * mean_error,
        )
        measurements.add("peak luminance", None, planes.light.max(), "largest pixel")
        modulation = planes.pattern / level - 1
        if self.density == 0:
            deviation = modulation.std()
            measurements.add("distortion", 0.0, deviation, "SD over background")
            return
        power_error = np.sqrt(np.sum(density**2) / 2) / density.sum()
        measurements.add_contrast(
            "rms contrast",
            float(self.rms),
            float(np.sqrt(np.mean(modulation**2))),
            "RMS about the background",
            extra=_SAMPLING_ERRORS * power_error,
            key="rms contrast of noise",
        )
        periodogram = np.abs(np.fft.fft2(modulation)) ** 2
        periodogram /= modulation.size * self.ppd**2
        inside = density > 0
        if not inside.all():
            measurements.add(
                "power outside the band",
                0.0,
                periodogram[~inside].sum() / periodogram.sum(),
                "share of the periodogram",
                key="distortion",
                extra=_CLIPPED,
            )
        ratio = periodogram[inside] / density[inside]
        mean_ratio = float(ratio.mean())
        measurements.add(
            "noise density",
            self.density,
            self.density * mean_ratio,
            "mean of the periodogram over the stated spectrum",
            extra=_SAMPLING_ERRORS * np.sqrt(2 / ratio.size),
        )
        if not inside.all():
            return
        ratio = ratio.reshape(frequency.shape)
        exponent = getattr(self, "exponent", 0.0)
        octaves = np.log(np.maximum(frequency, 1 / max(self.field)))
        octaves -= octaves.mean()
        spread = np.sum(octaves**2)
        slope = np.sum(octaves * ratio) / spread / mean_ratio
        measurements.add(
            "spectral exponent",
            exponent,
            exponent - slope,
            "slope of the periodogram over the stated spectrum",
            extra=_SAMPLING_ERRORS * np.sqrt(2 / spread),
        )


@stimulus_kind("coloured_noise")
class ColouredNoise(WhiteNoise):
    """Gaussian noise whose density falls with frequency and is nowhere zero.

    The density at frequency f is ``density / max(f, 1/size)**exponent`` with the size of the field
    in degrees: that of the mean is that of the field's lowest frequency. The noise is periodic over
    the field.

    Parameters as in `psyprobe.stimulus.coloured_noise`.

    Examples
    --------
    >>> pink = ColouredNoise(density=4e-6, exponent=2.0, size=240)
    >>> pink.density_at(np.array([0.0, 0.25, 1.0, 4.0])).round(9).tolist()
    [6.4e-05, 6.4e-05, 4e-06, 2.5e-07]
    """

    exponent: Levels = parameter("1", "Spectral exponent", default=2.0, low=0, high=8)

    @property
    def _power(self) -> Levels:
        """Mean over the field of the spectrum that each image's exponent gives."""
        exponents = np.asarray(self.exponent, float)
        power = [
            float(np.mean(_spectrum(self.shape, self.ppd, exponent)))
            for exponent in exponents.ravel().tolist()
        ]
        return np.reshape(power, exponents.shape)

    def density_at(self, frequency: FloatArray) -> FloatArray:
        """Compute the noise's spectral density at frequencies (cpd), deg²."""
        lowest = 1 / max(self.field)
        return np.asarray(
            self.density * np.maximum(frequency, lowest) ** -self.exponent
        )

    def _colour(self, deviates: FloatArray, index: int) -> FloatArray:
        """Filter white deviates to the 1/f spectrum of one image, of unit variance."""
        exponent = float(self.per_image("exponent")[index])
        spectrum = _spectrum(self.shape, self.ppd, exponent)
        amplitude = np.sqrt(spectrum / np.mean(spectrum))
        # The columns of the half of the plane that a real image has.
        half = amplitude[:, : self.shape[1] // 2 + 1]
        return np.fft.irfft2(np.fft.rfft2(deviates) * half, s=self.shape)


@stimulus_kind("band_noise")
class BandNoise(WhiteNoise):
    """Gaussian noise whose density is the same within a band of frequencies, and 0 elsewhere.

    Unlike that of `psyprobe.noise`, whose RMS contrast is stated, its power grows with the band.
    The noise is periodic over the field.

    Parameters
    ----------
    frequency : float or array
        Centre of the band, or its end, cpd.
    bandwidth : float or array
        Octaves; of "band" alone.
    passes : {"band", "low", "high"}
        A band about `frequency`, all frequencies up to it, or all from it on.
    density, luminance, seed, direction, white, observer, ppd, size
        As in `psyprobe.stimulus.white_noise`.

    Examples
    --------
    >>> octave = BandNoise(density=1e-6, frequency=8.0)
    >>> octave.density_at(np.array([4.0, 8.0, 12.0])).tolist()
    [0.0, 1e-06, 0.0]
    >>> octave.changed(passes="low").density_at(np.array([4.0, 8.0, 12.0])).tolist()
    [1e-06, 1e-06, 0.0]
    """

    frequency: Levels = common("frequency")
    bandwidth: Levels = parameter(
        "octaves", "Bandwidth", default=1.0, low=0, above=True
    )
    passes: str = "band"

    def __post_init__(self) -> None:
        check_known("kind of band", [str(self.passes)], _BANDS)
        # The power, and with it the largest density, follows from the band.
        self._require("frequency", np.asarray(self.frequency) > 0, "above 0 cpd")
        super().__post_init__()

    @property
    def _power(self) -> Levels:
        """Share of the coefficients that lie within the band of each image."""
        ends = np.broadcast_arrays(self.frequency, self.bandwidth)
        shares = [
            float(np.mean(self._passed(_frequencies(self.shape, self.ppd), *band)))
            for band in zip(*(end.ravel().tolist() for end in ends), strict=True)
        ]
        return np.reshape(shares, ends[0].shape)

    def _passed(
        self, frequency: FloatArray, centre: float, bandwidth: float
    ) -> BoolArray:
        """Tell which frequencies a band holds."""
        if self.passes == "low":
            return np.asarray(frequency <= centre)
        if self.passes == "high":
            return np.asarray(frequency >= centre)
        factor = 2 ** (bandwidth / 2)
        return np.asarray(
            (frequency >= centre / factor) & (frequency < centre * factor)
        )

    def density_at(self, frequency: FloatArray) -> FloatArray:
        """Compute the noise's spectral density at frequencies (cpd), deg²."""
        band = (float(self.frequency), float(self.bandwidth))
        return np.asarray(self.density * self._passed(frequency, *band))

    def _colour(self, deviates: FloatArray, index: int) -> FloatArray:
        """Filter white deviates to the band of one image, of unit variance."""
        centre = float(self.per_image("frequency")[index])
        bandwidth = float(self.per_image("bandwidth")[index])
        passed = self._passed(_frequencies(self.shape, self.ppd), centre, bandwidth)
        # Of an empty band nothing is left.
        amplitude = passed / np.sqrt(max(float(passed.mean()), 1 / passed.size))
        half = amplitude[:, : self.shape[1] // 2 + 1]
        return np.fft.irfft2(np.fft.rfft2(deviates) * half, s=self.shape)


def _frequencies(shape: Size, ppd: float) -> FloatArray:
    """Compute the radial frequency of each coefficient of `numpy.fft.fft2`, cpd."""
    down, across = (np.fft.fftfreq(pixels, 1 / ppd) for pixels in shape)
    return np.asarray(np.hypot(down[:, None], across))


@lru_cache(maxsize=8)
def _spectrum(shape: Size, ppd: float, exponent: float) -> FloatArray:
    """Compute spectral density relative to that at 1 cpd, for coefficients of `numpy.fft.fft2`."""
    lowest = ppd / max(shape)
    return np.maximum(_frequencies(shape, ppd), lowest) ** -exponent


@check_keywords
def white_noise(
    *,
    density: ArrayLike,
    luminance: ArrayLike = 100.0,
    seed: ArrayLike = 0,
    direction: Direction = "achromatic",
    white: str | tuple[float, float] = "D65",
    observer: str = "cie2006_led_lcd",
    ppd: float = 60.0,
    size: int | Size = 224,
    dtype: str = "float64",
    device: str | None = None,
) -> Stimulus:
    """Draw white Gaussian noise of a stated density.

    Parameters
    ----------
    density : float or array
        Two-sided power spectral density of the contrast, deg²: pixels have the standard deviation
        ``sqrt(density) * ppd``, up to five of them from the background.
    seed : int or array of int
        Seed of each image.
    luminance, direction, white, observer, ppd, size, dtype, device
        As in `gabor`.

    Examples
    --------
    >>> light = white_noise(density=2.78e-6, seed=3).luminance
    >>> round(float(light.std() / 100), 2)
    0.1
    """
    return draw_kind(WhiteNoise, locals())


@check_keywords
def coloured_noise(
    *,
    density: ArrayLike,
    exponent: ArrayLike = 2.0,
    luminance: ArrayLike = 100.0,
    seed: ArrayLike = 0,
    direction: Direction = "achromatic",
    white: str | tuple[float, float] = "D65",
    observer: str = "cie2006_led_lcd",
    ppd: float = 60.0,
    size: int | Size = 224,
    dtype: str = "float64",
    device: str | None = None,
) -> Stimulus:
    """Draw Gaussian noise whose density falls with frequency and is nowhere zero.

    Parameters
    ----------
    density : float or array
        Power spectral density at 1 cpd, deg².
    exponent : float or array
        The density at f cpd is ``density / max(f, 1/size)**exponent``, with the size of the field
        in degrees; 0 is white, and 8 the steepest.
    seed : int or array of int
        Seed of each image.
    luminance, direction, white, observer, ppd, size, dtype, device
        As in `gabor`.

    Examples
    --------
    >>> coloured_noise(density=4e-6, exponent=2, seed=[1, 2]).luminance.shape
    (2, 224, 224)
    """
    return draw_kind(ColouredNoise, locals())
