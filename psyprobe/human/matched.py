"""Compute human sensitivity to noise in an annulus of frequencies from a contrast filter.

A standard observer's CSF is the gain of a filter at one frequency and, without the oblique effect,
of one orientation. Noise has components over a band and of all orientations; the filter scales it
by the root mean square of the gains, since its components have equal amplitudes and random phases.

References
----------
Watson, Malo (2002), ICIP 3:41-44; its oblique effect with the constants of J. Malo's group.
Watson, Ahumada (2005), Journal of Vision 5(9):6: filter HPmH and its oblique effect.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from psyprobe._typing import FloatArray
from psyprobe.errors import InputError
from psyprobe.human.models import csf


def _oblique_gain(
    onset: float, scale: float, radius: FloatArray, sine_of_twice: FloatArray
) -> FloatArray:
    """Compute the gain at oblique orientations, which falls with frequency beyond `onset`."""
    # 4 fx² fy² / f⁴ is the square of the sine of twice the angle.
    return np.asarray(
        1 - (1 - np.exp(-np.maximum(radius - onset, 0.0) / scale)) * sine_of_twice**2
    )


#: Models whose gain depends on orientation: a factor from radial frequency and the sine of twice
#: the angle, which falls from an onset on and over a scale in cpd.
OBLIQUE_EFFECTS: dict[str, Callable[[FloatArray, FloatArray], FloatArray]] = {
    "watson_malo_csf": partial(_oblique_gain, 0.0, 6.664),
    "watson_ahumada_csf": partial(_oblique_gain, 3.481, 13.57),
}


def noise_matched_csf(
    frequency: ArrayLike,
    model: str | Callable[..., ArrayLike] = "watson_malo_csf",
    *,
    oblique: bool = True,
    low: float = 0.75,
    high: float = 1.25,
    ppd: float = 64.0,
    size: int = 256,
    **conditions: ArrayLike,
) -> FloatArray:
    """Compute human sensitivity to noise in a ring of frequencies, as the RMS of a CSF over the
    ring.

    The contrast of the noise is sqrt(2) SD / mean.

    Parameters
    ----------
    frequency : array_like of float
        Nominal frequency of the noise, cpd.
    model : str or callable
        Name for `psyprobe.human.csf`, or a function of frequency (cpd) and `conditions`.
    oblique : bool
        Whether gain falls towards the diagonals: for noise of all orientations it does. Only the
        Watson-Malo and the Watson-Ahumada model have it.
    low, high : float
        Edges of the annulus as multiples of the frequency; components on an edge are outside.
    ppd : float
        Pixels per degree of the image.
    size : int
        Pixels of its side, which determine its components.
    **conditions
        Further inputs of the model, such as ``luminance=40, area=16``.

    Raises
    ------
    InputError
        If the image holds no frequency of the band, or the model has no oblique effect.

    Examples
    --------
    >>> noise_matched_csf([1, 4, 16]).round(1)
    array([ 77.1, 147.4,  24.8])
    >>> noise_matched_csf(4, oblique=False).round(1)
    np.float64(186.6)
    """
    sensitivity = csf(model) if isinstance(model, str) else model
    name = (
        model if isinstance(model, str) else getattr(model, "__name__", "this function")
    )
    if oblique and name not in OBLIQUE_EFFECTS:
        raise InputError(
            f"{name} has no oblique effect; pass oblique=False, or use "
            f"{' or '.join(OBLIQUE_EFFECTS)}"
        )
    cycles = np.fft.fftfreq(size, 1 / ppd)
    x = cycles[None, :]
    y = cycles[:, None]
    radius = np.sqrt(x**2 + y**2)
    frequencies = np.asarray(frequency, dtype=np.float64)
    result = np.empty(frequencies.shape)
    for index in np.ndindex(frequencies.shape):
        nominal = float(frequencies[index])
        inside = (radius > low * nominal) & (radius < high * nominal)
        if not inside.any():
            raise InputError(
                f"an annulus about {nominal:g} cpd holds no frequency of an image of {size} px at "
                f"{ppd:g} pixels per degree; enlarge the image, or leave the frequency out"
            )
        radii, repeats = np.unique(radius[inside], return_inverse=True)
        gain = np.broadcast_to(sensitivity(radii, **conditions), radii.shape)[repeats]
        if oblique:
            sine_of_twice = (2 * x * y)[inside] / radius[inside] ** 2
            gain = gain * OBLIQUE_EFFECTS[name](radius[inside], sine_of_twice)
        result[index] = np.sqrt(np.mean(gain**2))
    matched: FloatArray = result[()]
    return matched
