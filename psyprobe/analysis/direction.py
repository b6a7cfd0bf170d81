"""Decide whether the angle between two features says anything.

A feature that all but vanishes has no direction. Energy models, differences of Gaussians and any
other filter bank give next to nothing for a uniform field: what is left is rounding, and an angle
against it is one against noise. How far rounding turns a feature is measured: the reference is
shown once more with about half of its pixels moved by one step of rounding.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from psyprobe._typing import FloatArray

#: Statuses of a trial's angle. TURNED: the reference's feature is so short beside the test's that
#: its direction says little of the picture. UNDEFINED: rounding alone could make this angle.
SOUND = 0
TURNED = 1
UNDEFINED = 2

#: Names of the statuses, in the order of their numbers.
STATUSES = ("sound", "turned", "undefined")

#: Measures that need no direction, and the one to name where others are undefined.
DEFINED_ALWAYS = ("l1", "l2")
ADVISED = "l2"

#: A feature of which rounding makes more than this share has no direction.
_ROUNDED_AWAY = 0.1
#: The reference's feature is short where it is under this share of the test's.
_SHORT = 0.1
#: A result is told as long as no larger share of its responses is undefined.
_MAX_UNDEFINED = 0.1


def angle_status(angle: ArrayLike, lengths: ArrayLike) -> FloatArray:
    """Classify each angle between features as sound, changed by rounding alone, or undefined.

    Parameters
    ----------
    angle : array_like of float, shape (...)
        S_ac, the angle over pi; NaN where a feature has length zero.
    lengths : array_like of float, shape (..., 3)
        Of the test's feature, of the reference's, and of the difference that one step of rounding
        makes in the reference's; feature units.

    Returns
    -------
    ndarray of float64, shape (...)
        `SOUND`, `TURNED` or `UNDEFINED`.

    Notes
    -----
    An error of length e turns a feature of length l by at most arcsin(e / l). Where the sum of this
    for test and reference is more than the angle, the angle is undefined, unless both features are
    exactly equal; and so it is wherever e is more than a tenth of l.

    Examples
    --------
    >>> angle_status(
    ...     [0.5, 0.5, 1e-9, np.nan],
    ...     [[1, 0.9, 1e-7], [1, 1e-8, 1e-7], [1, 1, 1e-7], [1, 0, 0]],
    ... )
    array([0., 2., 2., 2.])
    >>> angle_status(0.5, [1, 0.001, 1e-7])
    array(1.)
    """
    angles = np.asarray(angle, float)
    test, reference, error = np.moveaxis(np.asarray(lengths, float), -1, 0)
    shorter = np.minimum(test, reference)
    lost = (shorter == 0) | (error > _ROUNDED_AWAY * shorter)
    turn = sum(
        np.arcsin(np.divide(error, length, out=np.ones_like(error), where=~lost))
        for length in (test, reference)
    )
    undefined = lost | ((angles < turn / np.pi) & (angles > 0))
    return np.where(
        undefined, UNDEFINED, np.where(reference < _SHORT * test, TURNED, SOUND)
    ).astype(float)


def share_of(status: FloatArray, value: int) -> float:
    """Compute the share (0 to 1) of responses that have a status; 0 of none."""
    return float((status == value).mean()) if status.size else 0.0


def can_be_scored(values: FloatArray, status: FloatArray) -> bool:
    """Tell whether responses can be scored: at most a tenth is undefined, and each has a value."""
    return share_of(status, UNDEFINED) <= _MAX_UNDEFINED and bool(
        np.isfinite(values).all()
    )
