"""Colour as cones see it: XYZ, LMS, DKL and contrast as named kinds.

Matrices are built from a display's primaries and white and from a *named* cone observer; each inverse is
computed from its matrix and never pasted, so a grey is neutral to the last bit.

Transformed quantities (units of the last axis, size 3):

========  ==================================================  =====================
quantity  meaning                                             range
========  ==================================================  =====================
XYZ       CIE tristimulus values, Y in cd/m²                  >= 0 for real lights
LMS       cone excitations, scaled so that L + M is luminance  >= 0 for real lights
DKL       (L+M, red-green, yellow-violet) of a modulation      signed
========  ==================================================  =====================

References
----------
Derrington, Krauskopf & Lennie (1984), J. Physiol. 357:241. CIE 170-1:2006 and CIE 170-2:2015.
Smith & Pokorny (1975), Vision Res. 15:161.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from psyprobe._typing import Array, FloatArray
from psyprobe.errors import InputError, unknown_name

#: A named direction of colour space, or a modulation vector (dL, dM, dS).
Direction: TypeAlias = str | tuple[float, float, float]

DIRECTIONS = ("achromatic", "red_green", "yellow_violet")

#: CIE 1931 chromaticities of white points (CIE 15:2004; ICC for D50).
WHITES = {"D65": (0.3127, 0.3290), "D50": (0.3457, 0.3585), "E": (1 / 3, 1 / 3)}

_XYZ_TO_ATD = np.array([[0.0, 1.0, 0.0], [1.0, -1.0, 0.0], [0.0, 0.4, -0.4]])

#: Amplitude of a sine of unit peak contrast, in each kind of contrast.
SINE_CONTRAST = {"michelson": 1.0, "weber": 1.0, "cone": 1.0, "rms": math.sqrt(0.5), "sinusoid_rms": 1.0}


@dataclass(frozen=True)
class ConeObserver:
    """How a named observer's cones see XYZ.

    Attributes
    ----------
    name : str
        Name in `CONE_OBSERVERS`.
    rows : tuple
        3 x 3 matrix from XYZ (Y in cd/m²) to LMS.
    source : str
        Where the matrix comes from, and what kind of XYZ it expects.
    """

    name: str
    rows: tuple[tuple[float, float, float], ...]
    source: str

    @property
    def from_xyz(self) -> FloatArray:
        """The 3 x 3 matrix XYZ -> LMS."""
        return np.array(self.rows)

    @property
    def to_xyz(self) -> FloatArray:
        """The 3 x 3 matrix LMS -> XYZ, the computed inverse."""
        return np.asarray(np.linalg.inv(self.from_xyz))


def _cie2006_rows() -> tuple[tuple[float, float, float], ...]:
    xyz_from_lms = np.array(
        [[1.94735469, -1.41445123, 0.36476327], [0.68990272, 0.34832189, 0.0], [0.0, 0.0, 1.93485343]]
    )
    # Scale L and M so that their sum is luminance; the scale of S is free and leaves contrasts unchanged.
    scale = np.diag([xyz_from_lms[1, 0], xyz_from_lms[1, 1], 1.0])
    rows = scale @ np.linalg.inv(xyz_from_lms)
    return tuple((float(a), float(b), float(c)) for a, b, c in rows)


CONE_OBSERVERS: dict[str, ConeObserver] = {
    observer.name: observer
    for observer in (
        ConeObserver(
            "cie2006_led_lcd",
            (
                (0.187596268556126, 0.585168649077728, -0.026384263306304),
                (-0.133397430663221, 0.405505777260049, 0.034502127690364),
                (0.000244379021663, -0.000542995890619, 0.019406849066323),
            ),
            "CIE 2006 cone fundamentals from CIE 1931 XYZ, fitted to the spectra of an LED LCD; the observer of "
            "castleCSF (Ashraf et al. 2024). L + M of D65 is 1.051 Y.",
        ),
        ConeObserver(
            "cie2006",
            _cie2006_rows(),
            "CIE 170-2:2015, 2 deg: exact inverse of its LMS -> XYZ_F matrix, L and M scaled to sum to Y_F. "
            "Expects cone-fundamental-based XYZ_F.",
        ),
        ConeObserver(
            "smith_pokorny",
            ((0.15514, 0.54312, -0.03286), (-0.15514, 0.45684, 0.03286), (0.0, 0.0, 0.00801)),
            "Smith & Pokorny (1975) from Judd-Vos XYZ; L + M is Y exactly.",
        ),
    )
}


def cone_observer(name: str) -> ConeObserver:
    """The cone observer of this name.

    Parameters
    ----------
    name : str
        One of `CONE_OBSERVERS`.

    Raises
    ------
    UnknownNameError
        With the nearest name.

    Examples
    --------
    >>> cone_observer("smith_pokorny").name
    'smith_pokorny'
    """
    try:
        return CONE_OBSERVERS[name]
    except KeyError:
        raise unknown_name("cone observer", name, CONE_OBSERVERS) from None


def white_xyz(white: str | Sequence[float] = "D65") -> FloatArray:
    """XYZ of a white of luminance 1 cd/m².

    Parameters
    ----------
    white : str or (x, y)
        A name in `WHITES`, or CIE 1931 chromaticity.

    Returns
    -------
    ndarray, shape (3,)
        XYZ with Y = 1.

    Examples
    --------
    >>> [float(v) for v in white_xyz("D65").round(6)]
    [0.950456, 1.0, 1.089058]
    """
    if isinstance(white, str):
        if white not in WHITES:
            raise unknown_name("white", white, WHITES)
        x, y = WHITES[white]
    else:
        x, y = (float(v) for v in white)
    if not (y > 0 and x >= 0 and x + y <= 1):
        raise InputError(f"chromaticity ({x}, {y}) is not that of a light; x >= 0, y > 0 and x + y <= 1 are")
    return np.array([x / y, 1.0, (1 - x - y) / y])


def rgb_to_xyz_matrix(primaries: Sequence[Sequence[float]], white: str | Sequence[float] = "D65") -> FloatArray:
    """Matrix from linear RGB light to XYZ, such that RGB (1, 1, 1) is the white.

    Parameters
    ----------
    primaries : 3 x 2 sequence of float
        CIE 1931 chromaticities (x, y) of red, green and blue.
    white : str or (x, y)
        Name or chromaticity of the white.

    Returns
    -------
    ndarray, shape (3, 3)
        Columns are the XYZ of the primaries; the middle row sums to 1.

    Examples
    --------
    >>> srgb = rgb_to_xyz_matrix([(0.64, 0.33), (0.30, 0.60), (0.15, 0.06)])
    >>> [float(v) for v in srgb[1].round(4)]
    [0.2126, 0.7152, 0.0722]
    """
    columns = np.stack([white_xyz(tuple(xy)) for xy in primaries], axis=1)
    weights = np.linalg.solve(columns, white_xyz(white))
    return np.asarray(columns * weights)


def xyz_to_lms(xyz: Array, observer: str = "cie2006_led_lcd") -> FloatArray:
    """Cone excitations of lights given in XYZ.

    Parameters
    ----------
    xyz : array_like, shape (..., 3)
        Tristimulus values, Y in cd/m².
    observer : str
        Name in `CONE_OBSERVERS`.

    Returns
    -------
    ndarray, shape (..., 3)
        L, M, S.

    Examples
    --------
    >>> xyz_to_lms(white_xyz("D65") * 100).round(3).tolist()
    [73.474, 31.629, 2.082]
    """
    return np.asarray(xyz, float) @ cone_observer(observer).from_xyz.T


def lms_to_xyz(lms: Array, observer: str = "cie2006_led_lcd") -> FloatArray:
    """Tristimulus values of lights given as cone excitations: the inverse of `xyz_to_lms`.

    Parameters
    ----------
    lms : array_like, shape (..., 3)
        L, M, S.
    observer : str
        Name in `CONE_OBSERVERS`.

    Returns
    -------
    ndarray, shape (..., 3)
        XYZ, Y in cd/m².
    """
    return np.asarray(lms, float) @ cone_observer(observer).to_xyz.T


def xyz_to_atd(xyz: Array) -> FloatArray:
    """Achromatic, red-green and yellow-blue (ATD) coordinates of lights: A = Y, T = X - Y, D = 0.4 (Y - Z).

    The variant of Jameson and Hurvich's opponent space that Jorgvt/PerceptualTests draws its stimuli in. Its achromatic
    axis, T = D = 0, is the equal-energy grey X = Y = Z: not the neutral R = G = B of a display with a D65 white.

    Parameters
    ----------
    xyz : array_like, shape (..., 3)
        Tristimulus values, Y in cd/m².

    Returns
    -------
    ndarray, shape (..., 3)
        A, T, D in cd/m².

    Examples
    --------
    >>> xyz_to_atd([35.0, 40.0, 52.5]).round(9).tolist()
    [40.0, -5.0, -5.0]
    """
    return np.asarray(np.asarray(xyz, float) @ _XYZ_TO_ATD.T)


def atd_to_xyz(atd: Array) -> FloatArray:
    """Tristimulus values of ATD coordinates: the inverse of `xyz_to_atd`.

    Parameters
    ----------
    atd : array_like, shape (..., 3)
        A, T, D in cd/m².

    Returns
    -------
    ndarray, shape (..., 3)
        XYZ, Y in cd/m².

    Examples
    --------
    >>> atd_to_xyz([40.0, 0.0, 0.0]).tolist()
    [40.0, 40.0, 40.0]
    """
    return np.asarray(np.asarray(atd, float) @ np.linalg.inv(_XYZ_TO_ATD).T)


def dkl_matrix(background: Array) -> FloatArray:
    """Matrix from a modulation dLMS to DKL coordinates, built from the background it is seen on.

    Rows: L + M; L - (Lb/Mb) M; -(L + M) + ((Lb + Mb)/Sb) S. A modulation along the background (grey on grey)
    therefore has chromatic coordinates of exactly zero.

    Parameters
    ----------
    background : array_like, shape (3,)
        LMS of the background, all > 0.

    Returns
    -------
    ndarray, shape (3, 3)

    Examples
    --------
    >>> background = xyz_to_lms(white_xyz("D65") * 50)
    >>> bool(abs(dkl_matrix(background) @ background)[1:].max() < 1e-13)
    True
    """
    l, m, s = _background(background)
    return np.array([[1.0, 1.0, 0.0], [1.0, -l / m, 0.0], [-1.0, -1.0, (l + m) / s]])


def lms_to_dkl(modulation: Array, background: Array) -> FloatArray:
    """DKL coordinates of a modulation dLMS about a background.

    Parameters
    ----------
    modulation : array_like, shape (..., 3)
        dL, dM, dS.
    background : array_like, shape (3,)
        LMS of the background.

    Returns
    -------
    ndarray, shape (..., 3)
        (L+M, red-green, yellow-violet), in the units of the LMS.
    """
    return np.asarray(modulation, float) @ dkl_matrix(background).T


def dkl_to_lms(coordinates: Array, background: Array) -> FloatArray:
    """Modulation dLMS of DKL coordinates about a background: the inverse of `lms_to_dkl`.

    Parameters
    ----------
    coordinates : array_like, shape (..., 3)
        (L+M, red-green, yellow-violet).
    background : array_like, shape (3,)
        LMS of the background.

    Returns
    -------
    ndarray, shape (..., 3)
    """
    return np.asarray(np.linalg.solve(dkl_matrix(background), np.asarray(coordinates, float)[..., None])[..., 0])


def direction_vector(direction: Direction, background: Array) -> FloatArray:
    """Cone contrasts (dL/L, dM/M, dS/S) of unit contrast along a direction of colour.

    Unit contrast is a root mean square cone contrast of 1, the unit of castleCSF: for the achromatic direction it is
    the Michelson contrast of a sine grating.

    Parameters
    ----------
    direction : {"achromatic", "red_green", "yellow_violet"} or (dL, dM, dS)
        Achromatic: all cones by the same contrast. Red-green: L against M at constant L + M, reddish positive.
        Yellow-violet: S alone, violet positive. A vector is a modulation in LMS; its length is ignored.
    background : array_like, shape (3,)
        LMS of the background.

    Returns
    -------
    ndarray, shape (3,)
        Length sqrt(3).

    Examples
    --------
    >>> direction_vector("achromatic", (70, 30, 2)).tolist()
    [1.0, 1.0, 1.0]
    >>> direction_vector((0, 0, 5), (70, 30, 2)).round(4).tolist()
    [0.0, 0.0, 1.7321]
    """
    lms = _background(background)
    if isinstance(direction, str):
        if direction == "achromatic":
            return np.ones(3)
        if direction not in DIRECTIONS:
            raise unknown_name("colour direction", direction, DIRECTIONS)
        modulation = np.array([1.0, -1.0, 0.0] if direction == "red_green" else [0.0, 0.0, 1.0])
    else:
        modulation = np.asarray(direction, float)
        if modulation.shape != (3,) or not np.isfinite(modulation).all() or not modulation.any():
            raise InputError(
                f"colour direction {direction!r} is not a modulation; give a name in "
                f"{', '.join(DIRECTIONS)} or three finite numbers (dL, dM, dS), not all zero"
            )
    contrast = modulation / lms
    return np.asarray(contrast * (math.sqrt(3) / np.linalg.norm(contrast)))


def cone_contrast(lms: Array, background: Array) -> FloatArray:
    """Cone contrasts (LMS - background) / background.

    Parameters
    ----------
    lms : array_like, shape (..., 3)
        Cone excitations.
    background : array_like, shape (3,)
        LMS of the background, all > 0.

    Returns
    -------
    ndarray, shape (..., 3)

    Examples
    --------
    >>> cone_contrast([77, 33, 2.2], [70, 30, 2]).round(12).tolist()
    [0.1, 0.1, 0.1]
    """
    reference = _background(background)
    return np.asarray((np.asarray(lms, float) - reference) / reference)


def rms_cone_contrast(lms: Array, background: Array) -> FloatArray:
    """Length of the cone-contrast vector over sqrt(3): the contrast unit of castleCSF.

    Parameters
    ----------
    lms : array_like, shape (..., 3)
        Cone excitations.
    background : array_like, shape (3,)
        LMS of the background.

    Returns
    -------
    ndarray, shape (...)

    Examples
    --------
    >>> round(float(rms_cone_contrast([77, 33, 2.2], [70, 30, 2])), 12)
    0.1
    """
    return np.asarray(np.linalg.norm(cone_contrast(lms, background), axis=-1) / math.sqrt(3))


def michelson_contrast(luminance: Array) -> float:
    """(max - min) / (max + min) of a luminance image, cd/m².

    For a sampled grating this is *not* the contrast that was asked for, since the samples may miss the peaks; measure
    that by least squares (`psyprobe.stimulus.measure`).

    Examples
    --------
    >>> michelson_contrast([50, 150])
    0.5
    """
    values = np.asarray(luminance, float)
    low, high = float(values.min()), float(values.max())
    return (high - low) / (high + low)


def weber_contrast(luminance: Array, background: float) -> FloatArray:
    """(luminance - background) / background, of luminances in cd/m².

    Examples
    --------
    >>> float(weber_contrast(120.0, 100.0))
    0.2
    """
    if not background > 0:
        raise InputError(f"a background of {background} cd/m² has no Weber contrast; it must be > 0")
    return np.asarray((np.asarray(luminance, float) - background) / background)


def rms_contrast(luminance: Array) -> float:
    """Population standard deviation over mean of a luminance image, cd/m².

    Examples
    --------
    >>> rms_contrast([50, 150])
    0.5
    """
    values = np.asarray(luminance, float)
    return float(values.std() / values.mean())


def convert_contrast(value: Array, kind: str, to: str) -> FloatArray:
    """The contrast of one sine grating, told in another kind.

    Parameters
    ----------
    value : array_like
        Contrast of kind `kind`.
    kind, to : {"michelson", "weber", "cone", "rms", "sinusoid_rms"}
        Kinds of contrast; Weber is that of the peak, cone the RMS over the three cones of the peak.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> round(float(convert_contrast(0.2, "michelson", "rms")), 6)
    0.141421
    """
    for name in (kind, to):
        if name not in SINE_CONTRAST:
            raise unknown_name("kind of contrast", name, SINE_CONTRAST)
    return np.asarray(np.asarray(value, float) * (SINE_CONTRAST[to] / SINE_CONTRAST[kind]))


def _background(lms: Array) -> FloatArray:
    background = np.asarray(lms, float)
    if background.shape != (3,) or not np.all(background > 0) or not np.isfinite(background).all():
        raise InputError(f"background LMS {background.tolist()} is not a light; give three finite numbers > 0")
    return background
