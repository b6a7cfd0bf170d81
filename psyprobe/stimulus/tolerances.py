"""Tolerances: how far a quantity may lie from what was requested and still count as rounding.

There is one table, with a column for each precision and the origin of each number. float64 and
float32 are 10 to 30 times the error that a faithful drawing was measured to reach at 224 x 224 px,
60 pixels per degree and contrasts from 0.001 to 1. The low-precision columns are what faithful
encoding in that precision leaves at high contrast; where it leaves more, because the contrast is
too low for its steps, the image fails, as it should.
"""

from __future__ import annotations

from dataclasses import dataclass

from psyprobe._typing import Array
from psyprobe.errors import unknown_name
from psyprobe.files.parsing import packaged_rows

#: Precisions, in the order of the table's columns.
PRECISIONS = ("float64", "float32", "float16", "bfloat16", "uint8")


@dataclass(frozen=True)
class Tolerance:
    """The largest error of one quantity that still counts as rounding, in each precision.

    Examples
    --------
    >>> TOLERANCES["frequency"].relative
    True
    """

    #: Whether errors are relative to what was requested; otherwise they are in `unit`.
    relative: bool
    #: Unit of the quantity.
    unit: str
    #: One value for each of `PRECISIONS`.
    values: tuple[float, ...]
    #: Where the numbers come from.
    origin: str


def _read_table() -> dict[str, Tolerance]:
    """Read the tolerance of each measured quantity from the packaged table."""
    table = {}
    for row in packaged_rows("psyprobe.stimulus", "data", "tolerances.csv"):
        values = tuple(float(row[precision]) for precision in PRECISIONS)
        relative = row["error"] == "relative"
        table[row["quantity"]] = Tolerance(relative, row["unit"], values, row["origin"])
    return table


#: Tolerances by quantity.
TOLERANCES = _read_table()

#: Unit roundoff, half the spacing of numbers just above 1, for each of `PRECISIONS`. A fit to few
#: cycles or to a low contrast amplifies it, which is allowed for; short formats are too coarse for
#: low contrasts, and should fail there.
_ROUNDOFF = (2.0**-53, 2.0**-24, 0.0, 0.0, 0.0)

#: How many standard errors a fit may be off: rounding errors are not quite independent from pixel
#: to pixel, and the worst of thousands of images counts.
STANDARD_ERRORS = 30.0


def tolerance(quantity: str, precision: str) -> float:
    """Look up the tolerance of a quantity in a precision.

    Parameters
    ----------
    quantity : str
        A key of `TOLERANCES`.
    precision : str
        One of `PRECISIONS`.

    Raises
    ------
    UnknownNameError
        If there is no such quantity or precision.

    Examples
    --------
    >>> tolerance("contrast", "float32")
    2e-05
    """
    if quantity not in TOLERANCES:
        raise unknown_name("quantity", quantity, TOLERANCES)
    return TOLERANCES[quantity].values[_find_column(precision)]


def roundoff(precision: str) -> float:
    """Look up the unit roundoff that is allowed for in a precision; 0 for short formats.

    Examples
    --------
    >>> roundoff("float32")
    5.960464477539063e-08
    """
    return _ROUNDOFF[_find_column(precision)]


def _find_column(precision: str) -> int:
    """Find the place of a precision ("float32" ...) in the table of tolerances, or refuse it."""
    if precision not in PRECISIONS:
        raise unknown_name("precision", precision, PRECISIONS)
    return PRECISIONS.index(precision)


def precision_of(image: Array) -> str:
    """Name the precision ("float32", "uint8" ...) in which an array is judged, from its dtype.

    Whole numbers of 16 bits and more are finer than float32 near mid-grey only at low contrast;
    they count as float16.

    Examples
    --------
    >>> import numpy as np
    >>> precision_of(np.zeros(3, np.float32)), precision_of(np.zeros(3, np.uint8))
    ('float32', 'uint8')
    >>> precision_of([1.0])
    'float64'
    """
    name = str(getattr(image, "dtype", "float64")).rpartition(".")[2]
    if name in PRECISIONS:
        return name
    return "float16" if name == "uint16" else "float64"
