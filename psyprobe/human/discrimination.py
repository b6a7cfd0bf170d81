"""Model human discrimination: of contrast on pedestals and masks, of orientation and frequency.

Each model is a function of a stimulus' parameters that returns 1 / threshold, and has the name that
an experiment gives as ``human.model``.

References
----------
Legge, Foley (1980). Contrast masking in human vision. JOSA 70(12), 1458-1471. Constants as given in
the field, without the spatial pooling. Foley (1994). JOSA A 11(6), 1710-1719. Form of the model;
constants fitted here to the 30 digitised thresholds, which they reach to 0.040 log10 RMS. It is a
smooth reference and not Foley's own fit. Meese, Summers, Holmes, Wallis (2007). Journal of Vision
7(4):7. Observer RJS, 7 cpd; constants of psychoCRFdemo by S. Proulx (farivarlab/psychoCRFdemo at
05dbf92, CC BY 4.0). Bird, Henning, Wichmann (2002). JOSA A 19(7), 1267-1273: from 2 to 16 cpd the
curves coincide, once both axes are in units of the detection threshold. Heeley, Buchanan-Smith
(1990), Vision Research 30:1429; Westheimer et al. (1999), Vision Research 39:1631; Burbeck, Regan
(1983), JOSA 73:1691; Greenlee (1992), Vision Research 32:275: single values, from which two curves
are made here.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from psyprobe._typing import FloatArray
from psyprobe.errors import InputError
from psyprobe.human.castle import castle_csf

#: Range of contrasts that are searched for a threshold; halved more often than float64 resolves.
_MIN_CONTRAST = 1e-7
_MAX_CONTRAST = 1.0
_HALVINGS = 60
#: Weight of a mask in the divisor of Foley's model, by its orientation in deg.
_FOLEY_WEIGHTS = {45.0: 37.78, 90.0: 21.80}
#: Just noticeable turn at contrast 1, deg; and the rate of its fall, which makes it 5.5 times as
#: large at contrast 0.03.
_ORIENTATION_JND = 0.6
_FALL = 0.1617
#: Just noticeable Weber fraction of frequency, in the middle of the studies.
_FREQUENCY_JND = 0.05


def legge_foley_response(contrast: ArrayLike) -> FloatArray:
    """Compute the response of Legge and Foley's (1980) transducer to a contrast of 0 to 1.

    A step of 1 is at threshold.

    Examples
    --------
    >>> legge_foley_response([0.0, 0.01, 0.1]).round(3)
    array([ 0.   ,  4.564, 17.815])
    """
    c = np.asarray(contrast, dtype=np.float64)
    return np.asarray(45 * c**2.4 / (c**2 + 0.0075**2))


def meese_response(contrast: ArrayLike, mask_contrast: ArrayLike = 0.0) -> FloatArray:
    """Compute the response of observer RJS (Meese et al. 2007) on a mask at right angles.

    A step of 0.436 is at threshold.

    Examples
    --------
    >>> meese_response([0.03, 0.1], mask_contrast=0.1).round(3)
    array([0.954, 2.325])
    """
    c = 100 * np.asarray(contrast, dtype=np.float64)
    x = 100 * np.asarray(mask_contrast, dtype=np.float64)
    return np.asarray(c**3.11 * (1 + 0.323 * x) / (32.87 + c**2.59 * (1 + 0.494 * x)))


def foley_response(
    contrast: ArrayLike,
    mask_contrast: ArrayLike = 0.0,
    mask_orientation: float = 0.0,
) -> FloatArray:
    """Compute the response of a model of Foley's (1994) form to a target on a mask.

    A step of 1 above the response to the mask is at threshold.

    Examples
    --------
    >>> float((foley_response(0.05, 0.1, 90.0) - foley_response(0.0, 0.1, 90.0)).round(3))
    1.103
    """
    c = np.asarray(contrast, dtype=np.float64)
    m = np.asarray(mask_contrast, dtype=np.float64)
    if mask_orientation == 0:
        drive = c + 1.171 * m
        divisor = (34.21 * (c + 1.171 * m)) ** 1.750
    elif mask_orientation in _FOLEY_WEIGHTS:
        drive = c
        divisor = (34.21 * c) ** 1.750 + (_FOLEY_WEIGHTS[mask_orientation] * m) ** 1.750
    else:
        raise InputError(
            f"mask_orientation is {mask_orientation:g} deg; Foley (1994) measured masks of 0, 45 "
            "and 90 deg"
        )
    return np.asarray((53.93 * drive) ** 2.126 / (divisor + 1))


def increment(
    response: Callable[[FloatArray], FloatArray], step: float, shape: tuple[int, ...]
) -> FloatArray:
    """Find the smallest contrast increments by which a rising response grows by a step.

    Parameters
    ----------
    response : callable
        Takes increments of this shape and returns responses of the same shape.
    step : float
        Rise above the response to no increment.
    shape : tuple of int
        Shape of the result.

    Returns
    -------
    ndarray of float64
        NaN where a contrast of 1 does not suffice.

    Examples
    --------
    >>> increment(lambda c: 100 * c, 1.0, (1,)).round(12)
    array([0.01])
    """
    target = response(np.zeros(shape)) + step
    low = np.full(shape, np.log(_MIN_CONTRAST))
    high = np.full(shape, np.log(_MAX_CONTRAST))
    is_reachable = response(np.exp(high)) >= target
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        is_above = response(np.exp(middle)) >= target
        low = np.where(is_above, low, middle)
        high = np.where(is_above, middle, high)
    return np.where(is_reachable, np.exp(high), np.nan)


def legge_foley1980(contrast: Any) -> FloatArray:
    """Compute 1 / increment threshold on a pedestal contrast by Legge and Foley's (1980) model."""
    pedestal = np.asarray(contrast, dtype=np.float64)
    return 1 / increment(
        lambda step: legge_foley_response(pedestal + step), 1.0, pedestal.shape
    )


def meese2007_rjs(contrast: Any, mask_contrast: Any = 0.0) -> FloatArray:
    """Compute 1 / increment threshold on a pedestal for observer RJS (Meese et al. 2007).

    Pedestal and mask are gratings of 7 cpd at right angles.
    """
    pedestal, mask = np.broadcast_arrays(
        np.asarray(contrast, dtype=np.float64), mask_contrast
    )
    return 1 / increment(
        lambda step: meese_response(pedestal + step, mask), 0.436, pedestal.shape
    )


def foley1994_fit(mask_contrast: Any, mask_orientation: Any = 0.0) -> FloatArray:
    """Compute 1 / threshold of a target on a mask of 0, 45 or 90 deg, as Foley (1994) measured."""
    mask, orientation = np.broadcast_arrays(
        np.asarray(mask_contrast, dtype=np.float64), mask_orientation
    )
    sensitivity = np.empty(mask.shape)
    for angle in np.unique(orientation):
        is_angle = orientation == angle
        masks = mask[is_angle]
        response = partial(
            foley_response, mask_contrast=masks, mask_orientation=float(angle)
        )
        sensitivity[is_angle] = 1 / increment(response, 1.0, masks.shape)
    return sensitivity


def dipper(
    contrast: Any,
    frequency: Any,
    luminance: Any,
    area: Any,
    direction: Any = "achromatic",
) -> FloatArray:
    """Compute 1 / increment threshold on a pedestal by Legge and Foley's dipper.

    Both its axes are in units of castleCSF's detection threshold.
    """
    unit = 1 / legge_foley1980(np.zeros(()))
    sensitivity = castle_csf(
        frequency, luminance=luminance, area=area, direction=direction
    )
    pedestal = np.asarray(contrast) * sensitivity * unit
    return np.asarray(legge_foley1980(pedestal) * unit * sensitivity)


def orientation_jnd_constructed(contrast: Any) -> FloatArray:
    """Compute 1 / just noticeable turn (1/deg), constructed from single studies.

    The turn is 0.6 deg, and 5.5 times that at contrast 0.03.
    """
    jnd = (
        _ORIENTATION_JND
        * (1 + _FALL / np.asarray(contrast, dtype=np.float64))
        / (1 + _FALL)
    )
    return np.asarray(1 / jnd)


def frequency_jnd_constructed() -> FloatArray:
    """Return 1 / just noticeable Weber fraction of frequency, constructed from single studies.

    The fraction is 0.05 at any contrast.
    """
    return np.asarray(1 / _FREQUENCY_JND)


#: Functions that are models of an experiment by their names.
MODELS = (
    legge_foley1980,
    meese2007_rjs,
    foley1994_fit,
    dipper,
    orientation_jnd_constructed,
    frequency_jnd_constructed,
)
