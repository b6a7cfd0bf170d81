"""Find which frequencies letters are read by, from thresholds in bands of noise.

References
----------
Solomon & Pelli (1994), Nature 369:395.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from psyprobe._typing import FloatArray
from psyprobe.analysis.intervals import normal_quantile

#: The level of a page over bands of its noise.
BAND_LEVEL = "noise_frequency"
#: Fewest bands from which a channel is fitted.
_FEWEST_BANDS = 6
#: Width at half height of a Gaussian, in its standard deviations.
_WIDTH = float(2 * np.sqrt(2 * np.log(2)))


@dataclass(frozen=True)
class Channel:
    """A log-Gaussian gain of noise power, with the ends of its interval."""

    #: cpd
    peak: float
    peak_low: float
    peak_high: float
    #: At half height, octaves.
    width: float
    width_low: float
    width_high: float


def fit_channel(
    frequency: ArrayLike,
    threshold: ArrayLike,
    *,
    density: ArrayLike = 1.0,
    confidence: float = 0.95,
) -> Channel | None:
    """Fit a channel to threshold contrasts in bands of noise, of one density or of several.

    The squared threshold is that without noise, which is fitted too, and what the noise adds in
    proportion to its density and to the channel's gain at the band. In noise that hardly raises
    thresholds, a width is known only with those in denser noise beside them.

    Parameters
    ----------
    frequency : array_like of float
        Centres of the bands, cpd.
    threshold : array_like of float
        Threshold contrasts, NaN where there is none.
    density : array_like of float, optional
        Of the noise at each threshold, in any unit.
    confidence : float, optional
        Of the interval, from the scatter about the fit.

    Returns
    -------
    Channel or None
        None where fewer than six bands have a threshold, or the peak with its interval does not lie
        within the bands.

    Examples
    --------
    >>> bands = 1.25 * 2 ** (np.arange(9) / 2)
    >>> gain = np.exp2(-((np.log2(bands / 6) / 0.75) ** 2))
    >>> channel = fit_channel(bands, np.sqrt(1e-4 + 1e-3 * gain))
    >>> round(channel.peak, 3), round(channel.width, 3)
    (6.0, 1.5)

    One channel of two densities:

    >>> density = np.array([[1.25e-6], [5e-6]])
    >>> channel = fit_channel(bands, np.sqrt(1e-4 + 800 * density * gain), density=density)
    >>> round(channel.peak, 3), round(channel.width, 3)
    (6.0, 1.5)
    """
    from scipy import optimize

    contrast, band, noise = np.broadcast_arrays(
        np.asarray(threshold, float),
        np.asarray(frequency, float),
        np.asarray(density, float),
    )
    shown = np.isfinite(contrast) & (contrast > 0)
    octave = np.log2(band[shown])
    if len(np.unique(octave)) < _FEWEST_BANDS:
        return None
    log_energy = 2 * np.log(contrast[shown])
    log_density = np.log(noise[shown])

    def residuals(parameters: FloatArray) -> FloatArray:
        quiet, added, peak, log_width = parameters
        sd = np.exp(log_width) / _WIDTH
        gain = added + log_density - (octave - peak) ** 2 / (2 * sd**2)
        return np.asarray(np.logaddexp(quiet, gain) - log_energy)

    start = [
        log_energy.min(),
        (log_energy - log_density).max(),
        octave[log_energy.argmax()],
        np.log(1.5),
    ]
    fit = optimize.least_squares(residuals, start)
    _, _, peak, log_width = fit.x
    variance = 2 * fit.cost / max(len(octave) - len(start), 1)
    covariance = variance * np.linalg.pinv(fit.jac.T @ fit.jac)
    reach = normal_quantile(confidence) * np.sqrt(np.diag(covariance))[2:]
    if not octave.min() < peak - reach[0] <= peak + reach[0] < octave.max():
        return None
    ends = [-1, 0, 1]
    peaks = [float(2 ** (peak + end * reach[0])) for end in ends]
    widths = [float(np.exp(log_width + end * reach[1])) for end in ends]
    return Channel(peaks[1], peaks[0], peaks[2], widths[1], widths[0], widths[2])
