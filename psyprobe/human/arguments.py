"""What every contrast sensitivity function asks of its arguments: numbers in range, with their units."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from psyprobe._typing import FloatArray
from psyprobe.errors import InputError


@dataclass(frozen=True)
class Quantity:
    """A physical quantity: its name, unit and range."""

    name: str
    unit: str
    low: float = 0.0
    high: float = math.inf
    open_low: bool = False  # whether `low` itself is excluded
    remedy: str = ""  # what to do about a value out of range; ends the message

    def read(self, value: npt.ArrayLike, dtype: np.dtype[Any]) -> FloatArray:
        """The value as an array of `dtype`; `InputError` where one is not a finite real number in the range.

        Examples
        --------
        >>> FREQUENCY.read([1, 2], np.dtype("float32"))
        array([1., 2.], dtype=float32)
        >>> FREQUENCY.read(-1.0, np.dtype("float64"))
        Traceback (most recent call last):
        psyprobe.errors.InputError: frequency is -1 cpd, but it must be above 0 cpd; for a uniform patch ...
        """
        with np.errstate(over="ignore"):  # what overflows float32 is reported below, as not finite
            array = _real(self.name, value).astype(dtype, copy=False)
        above = array > self.low if self.open_low else array >= self.low
        usable = above & (array <= self.high) & np.isfinite(array)
        if usable.all():
            return array
        bad = array[~usable]
        count = f" ({bad.size} of {array.size} values are out of range)" if array.size > 1 else ""
        unit = f" {self.unit}" if self.unit else ""
        bounds = f"{'above' if self.open_low else 'at least'} {self.low:g}{unit}"
        if math.isfinite(self.high):
            bounds += f" and at most {self.high:g}{unit}"
        elif not np.isfinite(bad[0]):
            bounds += " and finite"
        remedy = f"; {self.remedy}" if self.remedy else ""
        raise InputError(f"{self.name} is {bad[0]:g}{unit}{count}, but it must be {bounds}{remedy}")


FREQUENCY = Quantity("frequency", "cpd", open_low=True, remedy="for a uniform patch give disc_radius and no frequency")
LUMINANCE = Quantity("luminance", "cd/m²", open_low=True, remedy="give the adapting luminance")
PHOTOPIC_LUMINANCE = Quantity(
    "luminance", "cd/m²", low=10.0, remedy="this model is one curve for daylight; for dimmer light use castle_csf"
)
AREA = Quantity("area", "deg²", open_low=True, remedy="a Gabor of Gaussian sigma s deg has area pi * s**2")
DISC_RADIUS = Quantity("disc_radius", "deg", open_low=True, remedy="give the radius of the disc")
TEMPORAL_FREQUENCY = Quantity("temporal_frequency", "Hz", remedy="0 is a static stimulus")
ECCENTRICITY = Quantity("eccentricity", "deg", remedy="0 is the fovea; its direction is visual_field")
VISUAL_FIELD = Quantity("visual_field", "deg", high=360.0, remedy="0 is temporal, 90 superior, 180 nasal, 270 inferior")
#: All by name.
QUANTITIES = {
    each.name: each
    for each in (FREQUENCY, LUMINANCE, AREA, DISC_RADIUS, TEMPORAL_FREQUENCY, ECCENTRICITY, VISUAL_FIELD)
}


def floating_dtype(*values: Any) -> np.dtype[Any]:
    """The precision in which a function of these values is computed: float32 if every array is, else float64.

    Python numbers, lists and tuples take the precision of the arrays beside them, as in numpy; None is passed over.

    Examples
    --------
    >>> floating_dtype(np.float32([1, 2]), 100.0, None)
    dtype('float32')
    >>> floating_dtype(np.float32([1, 2]), np.float64(100.0))
    dtype('float64')
    """
    dtypes = [value.dtype for value in values if isinstance(value, np.ndarray | np.generic)]
    numbers = [dtype for dtype in dtypes if dtype.kind in "iuf"]
    single = bool(numbers) and np.result_type(*numbers) in (np.float32, np.float16)
    return np.dtype(np.float32 if single else np.float64)


def read_lms(name: str, value: npt.ArrayLike, dtype: np.dtype[Any]) -> FloatArray:
    """Cone values as an array with L, M and S on its last axis; `InputError` where they are not that, or not finite.

    Examples
    --------
    >>> read_lms("background", (69.91, 30.09, 1.98), np.dtype("float64"))
    array([69.91, 30.09,  1.98])
    """
    with np.errstate(over="ignore"):  # what overflows float32 is reported below, as not finite
        array = _real(name, value).astype(dtype, copy=False)
    if array.ndim == 0 or array.shape[-1] != 3:
        raise InputError(f"{name} has shape {array.shape}, but its last axis must be the three cones (L, M, S)")
    if not np.isfinite(array).all():
        bad = array[~np.isfinite(array)][0]
        raise InputError(f"{name} holds {bad:g}, but every cone value must be finite; remove such rows first")
    return array


def common_shape(shapes: Mapping[str, tuple[int, ...]]) -> tuple[int, ...]:
    """The shape to which all arguments broadcast; `InputError` with the names of those that do not.

    Examples
    --------
    >>> common_shape({"frequency": (5, 1), "luminance": (3,), "area": ()})
    (5, 3)
    """
    try:
        return np.broadcast_shapes(*shapes.values())
    except ValueError:
        listed = ", ".join(f"{name} {shape}" for name, shape in shapes.items() if shape)
        raise InputError(f"the shapes {listed} do not broadcast; insert axes (x[:, None]) to form a grid") from None


def read_quantities(asked: Mapping[str, npt.ArrayLike], dtype: np.dtype[Any]) -> dict[str, FloatArray]:
    """Quantities by name, each checked as in `Quantity.read`; `InputError` where their shapes do not broadcast."""
    arrays = {name: QUANTITIES[name].read(value, dtype) for name, value in asked.items()}
    common_shape({name: array.shape for name, array in arrays.items()})
    return arrays


def _real(name: str, value: npt.ArrayLike) -> npt.NDArray[Any]:
    try:
        array = np.asarray(value)
    except ValueError:  # a ragged list
        array = np.asarray(None)
    if array.dtype.kind not in "iuf":
        raise InputError(f"{name} is {reprlib.repr(value)}, but it must be a real number or an array of them")
    return array
