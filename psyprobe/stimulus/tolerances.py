"""How far a delivered stimulus may lie from what was asked: one table, a column for each precision, with origins.

float64 and float32 are 10 to 30 times the error that a faithful drawing was measured to reach at 224 x 224 px,
60 pixels per degree and contrasts from 0.001 to 1. The low-precision columns are what faithful encoding in that
precision leaves at high contrast; where it leaves more, because the contrast is too low for its steps, the image
fails, as it should.
"""

from __future__ import annotations

from dataclasses import dataclass

from psyprobe._typing import Array
from psyprobe.errors import unknown_name

#: Precisions, in the order of the columns below.
PRECISIONS = ("float64", "float32", "float16", "bfloat16", "uint8")


@dataclass(frozen=True)
class Tolerance:
    """The largest error of one quantity that still counts as rounding, in each precision."""

    #: Whether errors are relative to what was asked; otherwise they are in `unit`.
    relative: bool
    #: Unit of the quantity.
    unit: str
    #: One for each of `PRECISIONS`.
    values: tuple[float, float, float, float, float]
    #: Where the numbers come from.
    origin: str


_CODES = "8 bits: half a code is 0.4 % of the light at a quarter of the peak"

TOLERANCES: dict[str, Tolerance] = {
    "background": Tolerance(
        True, "cd/m²", (1e-13, 1e-6, 2e-3, 2e-2, 5e-3), f"measured 1.3e-15 and 9e-10, times 100 and more; {_CODES}"
    ),
    "mean luminance": Tolerance(
        True, "cd/m²", (1e-13, 1e-6, 2e-3, 2e-2, 5e-3), f"measured 2.2e-16 and 1.5e-9, times 400 and more; {_CODES}"
    ),
    "peak luminance": Tolerance(
        True, "cd/m²", (1e-12, 1e-5, 4e-3, 4e-2, 1e-2), "rounding of one pixel: 3e-6 where phases are float32"
    ),
    "contrast": Tolerance(
        True,
        "",
        (1e-9, 2e-5, 5e-4, 3e-2, 1e-2),
        "measured 1.1e-11 and 2.1e-6 at contrast 0.001, times 100 and 10; 16 bits: after normalisation at contrast "
        "0.001; 8 bits reach 0.1 % at contrast 0.05",
    ),
    "rms contrast": Tolerance(
        True, "", (1e-9, 1e-5, 5e-4, 3e-2, 1e-2), "measured 4.6e-11 and 3.1e-9 for Gabors; low precision as contrast"
    ),
    "rms contrast of noise": Tolerance(
        True, "", (1e-13, 1e-6, 5e-4, 3e-2, 1e-2), "measured 2.2e-16 and 3.8e-8, times 400 and 30"
    ),
    "frequency": Tolerance(True, "cpd", (1e-10, 1e-5, 1e-4, 1e-3, 2e-3), "measured 1.1e-16 and 4.2e-8"),
    "orientation": Tolerance(False, "deg", (1e-9, 1e-3, 1e-2, 1e-1, 1e-1), "measured 1.4e-14 and 2.1e-6"),
    "phase": Tolerance(False, "deg", (1e-9, 1e-3, 5e-2, 0.5, 0.5), "measured 1.5e-13 and 1.6e-6"),
    "position": Tolerance(False, "px", (1e-9, 1e-3, 2e-2, 0.2, 0.2), "measured 4.1e-15 and 1.1e-5"),
    "radius": Tolerance(True, "deg", (1e-9, 1e-5, 1e-3, 1e-2, 2e-2), "as frequency; an envelope has no sharper mark"),
    "aspect": Tolerance(True, "", (1e-9, 1e-5, 1e-3, 1e-2, 2e-2), "as radius"),
    "distortion": Tolerance(
        False,
        "",
        (1e-13, 1e-5, 2e-3, 2e-2, 6e-3),
        "of the background; measured 1.5e-16 and, with phases in float32, 2.9e-6; 8 bits: 0.3 codes RMS are 0.25 %",
    ),
    "uniformity": Tolerance(False, "", (1e-14, 1e-6, 1e-3, 1e-2, 1e-12), "SD over mean: rounding of one value"),
    "energy outside band": Tolerance(
        False, "", (1e-26, 1e-11, 1e-4, 1e-2, 1e-2), "measured 7.4e-31 and 5.0e-14, brick wall"
    ),
    "flatness": Tolerance(
        False, "", (1e-12, 1e-5, 1e-3, 1e-2, 1e-1), "measured 5e-16 and 6e-8: rounding of each Fourier coefficient"
    ),
    "band edge": Tolerance(True, "cpd", (1e-9, 1e-9, 1e-9, 1e-9, 1e-9), "edges are those of whole coefficients"),
    "cone contrast": Tolerance(
        False, "", (1e-12, 1e-6, 1e-3, 1e-2, 1e-2), "measured 3e-17 and 4.4e-8 in the cones that should be silent"
    ),
    "off-direction cone contrast": Tolerance(
        False,
        "",
        (1e-12, 1e-6, 1e-3, 1e-2, 3e-2),
        "as cone contrast; 8 bits: the worst pixel, three channels half a code off",
    ),
    "luminance modulation": Tolerance(
        False, "", (1e-13, 2e-6, 1e-3, 1e-2, 1e-2), "measured 4.4e-16 and 3.2e-7; 8 bits leave 0.75 % peak"
    ),
    "colour cast": Tolerance(
        False, "", (1e-13, 1e-6, 1e-3, 1e-2, 1e-2), "relative difference of channels that should be equal"
    ),
    "drive round trip": Tolerance(False, "", (1e-14, 5e-7, 1e-3, 8e-3, 2e-3), "measured 4.4e-16 and 2.4e-7"),
    "light round trip": Tolerance(True, "cd/m²", (1e-13, 2e-6, 2e-3, 2e-2, 1e-2), "measured 6.7e-16 and 3.7e-7"),
    "batch": Tolerance(True, "", (1e-12, 2e-6, 2e-3, 2e-2, 0.0), "measured 1e-14 and 2e-7 between numpy and torch"),
    "shown contrast": Tolerance(
        True, "", (1e-11, 1e-6, 5e-4, 3e-2, 1e-2), "measured 3.2e-13, and 1.5e-8 over contrast in float32"
    ),
}

#: Unit roundoff, half the spacing of numbers just above 1: what a fit to few cycles or a low contrast makes of it is
#: allowed for. Not so in short formats, which are too coarse for low contrasts and should be told so.
_ROUNDOFF = {"float64": 2.0**-53, "float32": 2.0**-24, "float16": 0.0, "bfloat16": 0.0, "uint8": 0.0}


def tolerance(quantity: str, precision: str) -> float:
    """The entry of the table.

    Parameters
    ----------
    quantity : str
        A key of `TOLERANCES`.
    precision : str
        One of `PRECISIONS`.

    Examples
    --------
    >>> tolerance("contrast", "float32")
    2e-05
    """
    if quantity not in TOLERANCES:
        raise unknown_name("quantity", quantity, TOLERANCES)
    if precision not in PRECISIONS:
        raise unknown_name("precision", precision, PRECISIONS)
    return TOLERANCES[quantity].values[PRECISIONS.index(precision)]


def roundoff(precision: str) -> float:
    """Unit roundoff of a precision that is allowed for; 0 for short formats.

    Examples
    --------
    >>> roundoff("float32")
    5.960464477539063e-08
    """
    if precision not in PRECISIONS:
        raise unknown_name("precision", precision, PRECISIONS)
    return _ROUNDOFF[precision]


def precision_of(image: Array) -> str:
    """The column that an array belongs to, by its dtype.

    Whole numbers of 16 bits and more are finer than float32 near mid-grey only at low contrast; they count as float16.

    Examples
    --------
    >>> import numpy as np
    >>> precision_of(np.zeros(3, np.float32)), precision_of(np.zeros(3, np.uint8)), precision_of([1.0])
    ('float32', 'uint8', 'float64')
    """
    name = str(getattr(image, "dtype", "float64")).rpartition(".")[2]
    if name in PRECISIONS:
        return name
    return "float16" if name == "uint16" else "float64"
