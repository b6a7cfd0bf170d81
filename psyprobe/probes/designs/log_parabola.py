"""The truncated log-parabola: a contrast sensitivity function of four parameters.

Watson & Ahumada 2005, Journal of Vision 5(9):6; in the form of Lesmes, Lu, Baek & Albright 2010, Journal of Vision
10(3):17, Eq. 1.
"""

from __future__ import annotations

import numpy as np

from psyprobe._typing import FloatArray


def log_parabola(
    frequency: FloatArray, gain: FloatArray, peak: FloatArray, bandwidth: FloatArray, truncation: FloatArray
) -> FloatArray:
    """log10 sensitivity of the truncated log-parabola, of the broadcast shape of all arguments; not floored.

    Parameters
    ----------
    frequency : ndarray
        Spatial frequency in cpd.
    gain : ndarray
        log10 of the peak sensitivity.
    peak : ndarray
        log10 of the frequency of the peak in cpd.
    bandwidth : ndarray
        log10 of beta. The full width at half height is log10(2 beta) in log10 units, that is 1 + log2(beta) octaves:
        beta itself only where it is 1 or 2.
    truncation : ndarray
        By how many log10 units at most sensitivity falls below its peak at frequencies below that of the peak.

    Examples
    --------
    Half of the peak sensitivity lies half a bandwidth, here one octave, above the peak:

    >>> curve = log_parabola(np.array([0.5, 3.0, 6.0]), 2.0, np.log10(3.0), np.log10(2.0), 0.5)
    >>> (10**curve).round(2).tolist()
    [31.62, 100.0, 50.0]
    """
    x = np.log10(np.asarray(frequency, dtype=np.float64))
    half = (np.log10(2.0) + np.asarray(bandwidth)) / 2
    curve = gain - np.log10(2.0) * ((x - peak) / half) ** 2
    result: FloatArray = np.where((x < peak) & (curve < gain - truncation), gain - truncation, curve)
    return result
