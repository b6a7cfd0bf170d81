"""Convert colours between XYZ, cone excitations (LMS), DKL and directions of colour.

Matrices are built from a display's primaries and white and from a *named* cone observer; each
inverse is computed from its matrix and never pasted, so a grey is neutral to the last bit. Numbers
that colour-science has too are written out, since loading it takes seconds; tests compare them.

Quantities on a last axis of size 3:

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
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from psyprobe._typing import Array, FloatArray
from psyprobe.errors import InputError, unknown_name
from psyprobe.files.parsing import packaged_toml

#: A named direction of colour space, or a modulation vector (dL, dM, dS).
Direction: TypeAlias = str | tuple[float, float, float]

DIRECTIONS = ("achromatic", "red_green", "yellow_violet")

#: CIE 1931 chromaticities of white points (CIE 15:2004; ICC for D50).
WHITES = {"D65": (0.3127, 0.3290), "D50": (0.3457, 0.3585), "E": (1 / 3, 1 / 3)}


@dataclass(frozen=True, eq=False)
class ConeObserver:
    """A named observer's cone fundamentals, as a matrix from XYZ."""

    name: str
    #: The 3 x 3 matrix from XYZ (Y in cd/m²) to LMS.
    from_xyz: FloatArray
    #: Where the matrix comes from, and what kind of XYZ it expects.
    source: str

    @cached_property
    def to_xyz(self) -> FloatArray:
        """The 3 x 3 matrix LMS -> XYZ, inverted from `from_xyz`."""
        return np.asarray(np.linalg.inv(self.from_xyz))


def _inverse(xyz_from_lms: Any) -> FloatArray:
    """Invert a matrix from LMS to XYZ, scaled so that L + M is luminance."""
    l, m, _ = xyz_from_lms[1]
    # The scale of S is free, and contrasts do not depend on it.
    return np.diag([l, m, 1.0]) @ np.linalg.inv(xyz_from_lms)


_PAGE = packaged_toml("psyprobe.light", "cone_observers.toml")
CONE_OBSERVERS = {
    name: ConeObserver(
        name,
        np.array(row["rows"]) if "rows" in row else _inverse(row["xyz_from_lms"]),
        row["source"],
    )
    for name, row in _PAGE.items()
}


def cone_observer(name: str) -> ConeObserver:
    """Look up a cone observer of `CONE_OBSERVERS` by its name.

    Parameters
    ----------
    name : str
        "cie2006_led_lcd", "cie2006" or "smith_pokorny".

    Raises
    ------
    UnknownNameError
        If there is no such observer; the error suggests the nearest name.

    Examples
    --------
    >>> cone_observer("smith_pokorny").name
    'smith_pokorny'
    """
    if not isinstance(name, str) or name not in CONE_OBSERVERS:
        raise unknown_name("cone observer", name, CONE_OBSERVERS)
    return CONE_OBSERVERS[name]


def white_xyz(white: str | Sequence[float] = "D65") -> FloatArray:
    """Compute XYZ, shape (3,), of a white of luminance 1 cd/m².

    Parameters
    ----------
    white : str or (x, y)
        Name in `WHITES`, or CIE 1931 chromaticity.

    Raises
    ------
    UnknownNameError
        If there is no such white.
    InputError
        If the chromaticity is not two numbers within 0 and 1.

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
        x, y = chromaticity("white", white, 2)
    if not (y > 0 and x >= 0 and x + y <= 1):
        raise InputError(
            f"chromaticity ({x}, {y}) is not that of a light; x >= 0, y > 0 and x + y <= 1 are"
        )
    return np.array([x / y, 1.0, (1 - x - y) / y])


def chromaticity(name: str, value: Any, n: int) -> tuple[float, ...]:
    """Convert a chromaticity or colour to n finite numbers, or refuse it by name.

    Examples
    --------
    >>> chromaticity("white", [0.3, 0.4], 2)
    (0.3, 0.4)
    """
    try:
        numbers = tuple(map(float, value))
    except (TypeError, ValueError, OverflowError):
        numbers = ()
    if len(numbers) != n or not np.isfinite(numbers).all():
        raise InputError(f"{name} is {value!r}; give a name, or {n} finite numbers")
    return numbers


def rgb_to_xyz_matrix(
    primaries: Sequence[Sequence[float]], white: str | Sequence[float] = "D65"
) -> FloatArray:
    """Build the matrix from linear RGB light to XYZ.

    Its columns are the XYZ of the primaries, scaled so that RGB (1, 1, 1) is the white.

    Parameters
    ----------
    primaries : 3 x 2 sequence of float
        CIE 1931 chromaticities (x, y) of red, green and blue.
    white : str or (x, y)
        As in `white_xyz`.

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
    """Convert lights from XYZ to cone excitations L, M, S.

    Parameters
    ----------
    xyz : array_like, shape (..., 3)
        Tristimulus values, Y in cd/m².
    observer : str
        Name in `CONE_OBSERVERS`.

    Examples
    --------
    >>> xyz_to_lms(white_xyz("D65") * 100).round(3).tolist()
    [73.474, 31.629, 2.082]
    """
    return np.asarray(xyz, float) @ cone_observer(observer).from_xyz.T


def dkl_matrix(background: Array) -> FloatArray:
    """Build the matrix from LMS modulation to the colour space DKL on a background.

    Rows: L + M; L - (Lb/Mb) M; -(L + M) + ((Lb + Mb)/Sb) S. A modulation along the background (grey
    on grey) therefore has chromatic coordinates of exactly zero.

    Parameters
    ----------
    background : array_like, shape (3,)
        LMS of the background, all > 0.

    Examples
    --------
    >>> background = xyz_to_lms(white_xyz("D65") * 50)
    >>> bool(abs(dkl_matrix(background) @ background)[1:].max() < 1e-13)
    True
    """
    l, m, s = _check_background(background)
    return np.array([[1.0, 1.0, 0.0], [1.0, -l / m, 0.0], [-1.0, -1.0, (l + m) / s]])


def direction_vector(direction: Direction, background: Array) -> FloatArray:
    """Compute the cone contrasts (dL/L, dM/M, dS/S) of unit contrast along a colour direction.

    Unit contrast is a root mean square cone contrast of 1, the unit of castleCSF: a vector of
    length sqrt(3). For the achromatic direction it is the Michelson contrast of a sine grating.

    Parameters
    ----------
    direction : {"achromatic", "red_green", "yellow_violet"} or (dL, dM, dS)
        Achromatic: all cones by the same contrast. Red-green: L against M at constant L + M,
        reddish positive. Yellow-violet: S alone, violet positive. A vector is a modulation in LMS;
        its length is ignored.
    background : array_like, shape (3,)
        As in `dkl_matrix`.

    Raises
    ------
    InputError
        If the direction is no known name and no vector, or the background has no light in a cone.

    Examples
    --------
    >>> direction_vector("achromatic", (70, 30, 2)).tolist()
    [1.0, 1.0, 1.0]
    >>> direction_vector((0, 0, 5), (70, 30, 2)).round(4).tolist()
    [0.0, 0.0, 1.7321]
    """
    lms = _check_background(background)
    if isinstance(direction, str):
        if direction == "achromatic":
            return np.ones(3)
        if direction not in DIRECTIONS:
            raise unknown_name("colour direction", direction, DIRECTIONS)
        modulation = np.array(
            [1.0, -1.0, 0.0] if direction == "red_green" else [0.0, 0.0, 1.0]
        )
    else:
        modulation = np.asarray(direction, float)
        if (
            modulation.shape != (3,)
            or not np.isfinite(modulation).all()
            or not modulation.any()
        ):
            raise InputError(
                f"colour direction {direction!r} is not a modulation; give a name in "
                f"{', '.join(DIRECTIONS)} or three finite numbers (dL, dM, dS), not all zero"
            )
    contrast = modulation / lms
    return np.asarray(contrast * (math.sqrt(3) / np.linalg.norm(contrast)))


def contrast_along(direction: str, lms: Array) -> FloatArray:
    """Compute an image's contrast along one of the three `DIRECTIONS` of colour.

    Parameters
    ----------
    direction : {"achromatic", "red_green", "yellow_violet"}
        As in `direction_vector`.
    lms : array_like, shape (..., 3)
        Cone excitations of an image, no cone dark everywhere; their mean is the background.

    Returns
    -------
    ndarray, shape (...)
        RMS cone contrast, signed.

    Examples
    --------
    >>> grey = np.array([70, 30, 2])
    >>> modulation = np.outer([0.05, -0.05], direction_vector("red_green", grey))
    >>> contrast_along("red_green", grey * (1 + modulation)).round(3).tolist()
    [0.05, -0.05]
    >>> bool(abs(contrast_along("yellow_violet", grey * (1 + modulation))).max() < 1e-15)
    True
    """
    excitations = np.asarray(lms, float)
    background = excitations.reshape(-1, 3).mean(axis=0)
    vectors = np.stack([direction_vector(name, background) for name in DIRECTIONS])
    weights = np.linalg.inv(vectors)[:, DIRECTIONS.index(direction)]
    return np.asarray((excitations / background - 1) @ weights)


def _check_background(lms: Array) -> FloatArray:
    """Check that a background is three finite LMS values above 0, and return it."""
    background = np.asarray(lms, float)
    if (
        background.shape != (3,)
        or not np.all(background > 0)
        or not np.isfinite(background).all()
    ):
        raise InputError(
            f"background LMS {background.tolist()} is not a light; give three finite numbers > 0"
        )
    return background
