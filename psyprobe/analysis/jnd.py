"""Read just noticeable differences from responses, and compute those of an ideal observer.

References
----------
Legge, Foley (1980). Contrast masking in human vision. JOSA 70(12), 1458-1471: dip and handle.
Burbeck, Regan (1983). Independence of orientation and size in spatial discriminations. JOSA 73(12),
1691-1694: 0.03 to 0.07 of frequency beside 0.3 to 0.5 deg.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from psyprobe._typing import FloatArray, StrArray
from psyprobe.analysis.iso_response import iso_contrast
from psyprobe.errors import InputError

#: Pedestals of the dipper's handle, Michelson.
HANDLE = (0.05, 0.5)
#: Tasks of which the ideal observer has a closed form.
_TASKS = (
    "contrast",
    "contrast increment",
    "orientation deg",
    "orientation increment",
    "frequency weber",
)


def jnd(
    difference: ArrayLike, response: ArrayLike, level: ArrayLike
) -> tuple[FloatArray, StrArray]:
    """Find the first difference at which each row of responses reaches its criterion.

    Parameters
    ----------
    difference : array_like of float, shape (D,)
        Rising, above 0.
    response : array_like of float, shape (X, D)
        Responses, one row a condition; NaN where there is none.
    level : array_like of float, shape (X,)
        Of each row.

    Returns
    -------
    jnd : ndarray of float64, shape (X,)
        NaN where it is not known. Between two differences log response is linear in log difference.
    status : ndarray of str, shape (X,)
        "reached"; "recrossed" where responses fall under the level again; "above" where the
        smallest difference exceeds it already; "never reached"; "undefined" where responses are, or
        the level is not above 0.

    Examples
    --------
    >>> distances = [[0.1, 0.2, 0.4], [0.1, 0.1, 0.1], [0.5, 0.6, 0.7]]
    >>> found, status = jnd([1, 2, 4], distances, [0.3, 0.3, 0.3])
    >>> found.round(3), status.tolist()
    (array([ 3., nan, nan]), ['reached', 'never reached', 'above'])
    """
    r = np.asarray(response, float)
    levels = np.asarray(level, float)
    defined = np.isfinite(r).all(axis=-1) & np.isfinite(levels) & (levels > 0)
    scaled = (
        np.where(defined[:, None], r, 1.0) / np.where(defined, levels, 1.0)[:, None]
    )
    log_d, crossed, recrossed = (
        values[0] for values in iso_contrast(difference, scaled, 1.0)
    )
    status = np.select(
        [~defined, crossed & recrossed, crossed, np.isneginf(log_d)],
        ["undefined", "recrossed", "reached", "above"],
        "never reached",
    )
    with np.errstate(over="ignore"):
        return np.where(defined & crossed, 10.0**log_d, np.nan), status


def ideal_jnd(
    task: str,
    faint: ArrayLike,
    *,
    frequency: ArrayLike,
    radius: ArrayLike,
    contrast: ArrayLike,
) -> FloatArray | None:
    """Compute the just noticeable difference of the linear ideal observer.

    Its criterion is the one at which it detects a faint Gabor.

    Parameters
    ----------
    task : str
        Parameter and unit of what differs, as a page has them: "orientation deg", "frequency
        weber".
    faint : array_like of float
        Contrast that is told from none.
    frequency, radius, contrast : array_like of float
        Of the reference: cpd, standard deviation of the envelope in degrees, Michelson.

    Returns
    -------
    ndarray of float64 or None
        None for a task without a closed form; NaN where the pattern is too faint for any
        difference.

    Examples
    --------
    >>> ideal_jnd("frequency weber", 0.01, frequency=4.0, radius=0.4, contrast=0.2).round(5)
    np.float64(0.00704)
    """
    if task not in _TASKS:
        return None
    c_d, f, r, c = (
        np.asarray(values, float) for values in (faint, frequency, radius, contrast)
    )
    if task.startswith("contrast"):
        return c_d
    with np.errstate(invalid="ignore", divide="ignore"):
        q = np.sqrt(-np.log(1 - c_d**2 / (2 * c**2)))
        if task == "frequency weber":
            return np.asarray(q / (np.pi * f * r))
        return np.asarray(np.degrees(2 * np.arcsin(q / (2 * np.pi * f * r))))


def dip(pedestal: ArrayLike, threshold: ArrayLike) -> float | None:
    """Divide the smallest threshold on any pedestal by that on none; None where unknown.

    It is below 1 where a pedestal helps.

    Examples
    --------
    >>> dip([0, 0.01, 0.1], [0.02, 0.01, 0.05])
    0.5
    """
    c, t = _finite_pairs(pedestal, threshold)
    alone = t[c == 0]
    return float(t.min() / alone[0]) if alone.size and t.size > 1 else None


def slope(
    level: ArrayLike,
    threshold: ArrayLike,
    within: tuple[float, float] = (0.0, math.inf),
) -> float | None:
    """Fit the slope of log threshold over log level within a range; None under two points.

    Examples
    --------
    >>> round(slope([1, 2, 4, 8], [0.1, 0.2, 0.4, 0.8]), 9)
    1.0
    """
    x, t = _finite_pairs(level, threshold)
    inside = (x > 0) & (x >= within[0] * (1 - 1e-9)) & (x <= within[1] * (1 + 1e-9))
    if inside.sum() < 2:
        return None
    return float(np.polyfit(np.log(x[inside]), np.log(t[inside]), 1)[0])


def _finite_pairs(
    level: ArrayLike, threshold: ArrayLike
) -> tuple[FloatArray, FloatArray]:
    """Select levels and thresholds where the threshold is finite."""
    x = np.asarray(level, float)
    t = np.asarray(threshold, float)
    if x.shape != t.shape or x.ndim != 1:
        raise InputError(
            f"{t.shape} thresholds do not fit {x.shape} levels; give one a level"
        )
    finite = np.isfinite(t)
    return x[finite], t[finite]


def anisotropy(frequency_jnd: ArrayLike, orientation_jnd: ArrayLike) -> FloatArray:
    """Divide the just noticeable Weber fraction of frequency by the just noticeable turn (radians).

    It needs no criterion: any gives the same to an observer to whom only the distance between the
    waves' vectors matters, and that is 1, as for pixels. People: 3.4 to 13 (Burbeck and Regan
    1983).

    Parameters
    ----------
    frequency_jnd : array_like of float
        Weber fraction.
    orientation_jnd : array_like of float
        Degrees.

    Examples
    --------
    >>> anisotropy(0.05, 0.4).round(2)
    np.float64(7.16)
    """
    return np.asarray(np.asarray(frequency_jnd, float) / np.radians(orientation_jnd))
