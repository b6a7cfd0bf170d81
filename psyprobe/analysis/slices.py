"""What the alignment score mixes, taken apart: the rise within each slice, and the unevenness between slices.

A slice holds the responses at one level (a frequency, a luminance, an area), for contrasts at fixed multiples of the
human threshold. A high alignment score needs both: responses that rise with the multiple, and responses that are the
same at every level for the same multiple.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from psyprobe._typing import FloatArray
from psyprobe.analysis.rank import weighted_spearman
from psyprobe.analysis.score import Recorded
from psyprobe.errors import InputError


@dataclass(frozen=True)
class Slices(Recorded):
    """Monotonicity within slices, and unevenness between them."""

    #: Mean over slices of Spearman's r_s of response with multiplier, -1 to 1; 1 if each slice rises throughout. None
    #: if all responses are equal within every slice.
    monotonicity: float | None
    #: The smallest r_s of a slice.
    lowest: float | None
    #: Number of slices with equal responses, which have no r_s and are left out of the two above.
    constant: int
    #: Common slope of log response over log contrast: 1 for a response proportional to contrast. None if no two slices
    #: have responses above 0 only.
    slope: float | None
    #: Root mean square over slices of the displacement, in log10 contrast, that would bring each slice onto the common
    #: response curve. 0 is level; 0.3 says that, to draw equal responses, the human curve would have to be moved by a
    #: factor of two (one octave), up here and down there. None where `slope` is None or not above 0, so that no change
    #: of contrast could level the responses.
    unevenness: float | None
    #: Number of slices with a response of 0 or less, which have no logarithm and are left out of the two above.
    not_positive: int
    #: Number of slices.
    total: int


def score_slices(multiplier: npt.ArrayLike, response: npt.ArrayLike) -> Slices:
    """Measure monotonicity within slices and unevenness between them.

    Parameters
    ----------
    multiplier : array_like of float, shape (M,)
        Multipliers of the human threshold contrast, above 0.
    response : array_like of float, shape (K, M)
        Responses; each row is a slice.

    Returns
    -------
    Slices
        With counts of what could not be used.

    Raises
    ------
    InputError
        If shapes disagree, a value is not finite, or a multiplier is not above 0.

    Notes
    -----
    Unevenness comes from an analysis of covariance: log10 response = a_k + b log10 multiplier, with an intercept for
    each slice k and one slope b for all. Slice k lies (a_k - mean a) / b of log10 contrast away from the common curve.

    Examples
    --------
    >>> m = np.logspace(-0.3, 0.3, 10)
    >>> found = score_slices(m, [2 * m, m / 2])
    >>> round(found.monotonicity, 3), round(found.slope, 3), round(found.unevenness, 3)
    (1.0, 1.0, 0.301)
    """
    m, r = np.asarray(multiplier, dtype=np.float64), np.asarray(response, dtype=np.float64)
    if m.ndim != 1 or r.ndim != 2 or r.shape[1] != len(m) or len(np.unique(m)) < 2:
        raise InputError(
            f"responses of shape {r.shape} do not fit multipliers of shape {m.shape}; give (slices, multipliers) "
            f"and (multipliers,), with two different ones at least"
        )
    if not (np.isfinite(r).all() and np.isfinite(m).all() and (m > 0).all()):
        raise InputError("responses must be finite, and multipliers finite and above 0")
    within = weighted_spearman(np.tile(m, len(r)), r.ravel(), np.repeat(np.eye(len(r)), len(m), axis=1))
    within = within[np.isfinite(within)]
    usable = r[(r > 0).all(axis=1)]
    slope, unevenness = _apart(np.log10(m), np.log10(usable)) if len(usable) >= 2 else (None, None)
    return Slices(
        monotonicity=float(within.mean()) if len(within) else None,
        lowest=float(within.min()) if len(within) else None,
        constant=len(r) - len(within),
        slope=slope,
        unevenness=unevenness,
        not_positive=len(r) - len(usable),
        total=len(r),
    )


def _apart(log_m: FloatArray, log_r: FloatArray) -> tuple[float, float | None]:
    centred = log_m - log_m.mean()
    slope = float((log_r @ centred).mean() / (centred @ centred))
    if slope <= 0:
        return slope, None
    return slope, float(np.std(log_r.mean(axis=1)) / slope)
