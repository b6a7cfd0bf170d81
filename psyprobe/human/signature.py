"""Define the call that all contrast sensitivity functions share, and check its inputs."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from psyprobe._typing import AnyArray, FloatArray
from psyprobe.errors import InputError
from psyprobe.files.json_types import JsonMapping, JsonObject
from psyprobe.files.parsing import packaged_toml


class ContrastSensitivity(Protocol):
    """A human contrast sensitivity function, which is called as `psyprobe.human.castle_csf`.

    It raises `psyprobe.errors.InputError` for a condition that it lacks, rather than ignoring it.
    """

    def __call__(self, *args: Any, **kwargs: Any) -> FloatArray:
        """Compute sensitivity, 1 / contrast at threshold."""


@dataclass(frozen=True)
class Quantity:
    """A physical quantity: its name, unit and range."""

    name: str
    unit: str
    low: float = 0.0
    high: float = math.inf
    open_low: bool = False  # whether `low` itself is excluded
    remedy: str = ""  # what to do about a value out of range; ends the message

    def read(self, value: ArrayLike, dtype: np.dtype[Any]) -> FloatArray:
        """Convert values to an array of `dtype`, refusing any not finite or out of range.

        Examples
        --------
        >>> QUANTITIES["frequency"].read([1, 2], np.dtype("float32"))
        array([1., 2.], dtype=float32)
        >>> QUANTITIES["frequency"].read(-1.0, np.dtype("float64"))
        Traceback (most recent call last):
        psyprobe.errors.InputError: frequency is -1 cpd, but it must be above 0 cpd; for a ...
        """
        array = _read_real(self.name, value, dtype)
        is_above = array > self.low if self.open_low else array >= self.low
        is_usable = is_above & (array <= self.high) & np.isfinite(array)
        if is_usable.all():
            return array
        bad = array[~is_usable]
        count = (
            f" ({bad.size} of {array.size} values are out of range)"
            if array.size > 1
            else ""
        )
        unit = f" {self.unit}" if self.unit else ""
        bounds = f"{'above' if self.open_low else 'at least'} {self.low:g}{unit}"
        if math.isfinite(self.high):
            bounds += f" and at most {self.high:g}{unit}"
        elif not np.isfinite(bad[0]):
            bounds += " and finite"
        remedy = f"; {self.remedy}" if self.remedy else ""
        raise InputError(
            f"{self.name} is {bad[0]:g}{unit}{count}, but it must be {bounds}{remedy}"
        )


PHOTOPIC_LUMINANCE = Quantity(
    "luminance",
    "cd/m²",
    low=10.0,
    remedy="this model is one curve for daylight; for dimmer light use castle_csf",
)
#: Inputs of models and other conditions, by name.
QUANTITIES = {
    name: Quantity(name, **row)
    for name, row in packaged_toml("psyprobe.human", "quantities.toml").items()
}


def floating_dtype(*values: Any) -> np.dtype[Any]:
    """Choose float32 if all arrays among the values are float32, else float64.

    Python numbers, lists and tuples take the precision of the arrays, as in numpy; None is ignored.

    Examples
    --------
    >>> floating_dtype(np.float32([1, 2]), 100.0, None)
    dtype('float32')
    >>> floating_dtype(np.float32([1, 2]), np.float64(100.0))
    dtype('float64')
    """
    dtypes = [
        value.dtype for value in values if isinstance(value, np.ndarray | np.generic)
    ]
    numbers = [dtype for dtype in dtypes if dtype.kind in "iuf"]
    is_single = bool(numbers) and np.result_type(*numbers) in (np.float32, np.float16)
    return np.dtype(np.float32 if is_single else np.float64)


def read_lms(name: str, value: ArrayLike, dtype: np.dtype[Any]) -> FloatArray:
    """Convert cone values to a finite array with L, M and S on its last axis.

    Examples
    --------
    >>> read_lms("background", (69.91, 30.09, 1.98), np.dtype("float64"))
    array([69.91, 30.09,  1.98])
    """
    array = _read_real(name, value, dtype)
    if array.ndim == 0 or array.shape[-1] != 3:
        raise InputError(
            f"{name} has shape {array.shape}, but its last axis must be the three cones (L, M, S)"
        )
    if not np.isfinite(array).all():
        bad = array[~np.isfinite(array)][0]
        raise InputError(
            f"{name} holds {bad:g}, but every cone value must be finite; remove such rows first"
        )
    return array


def common_shape(shapes: Mapping[str, tuple[int, ...]]) -> tuple[int, ...]:
    """Compute the shape to which all arguments broadcast, or name those that do not in an error.

    Examples
    --------
    >>> common_shape({"frequency": (5, 1), "luminance": (3,), "area": ()})
    (5, 3)
    """
    try:
        return np.broadcast_shapes(*shapes.values())
    except ValueError:
        listing = ", ".join(
            f"{name} {shape}" for name, shape in shapes.items() if shape
        )
        raise InputError(
            f"the shapes {listing} do not broadcast; insert axes (x[:, None]) to form a grid"
        ) from None


def _read_real(name: str, value: ArrayLike, dtype: np.dtype[Any]) -> AnyArray:
    """Convert an argument to an array of a float dtype, refusing what is not a real number."""
    try:
        array = np.asarray(value)
    except ValueError:  # a ragged list
        array = np.asarray(None)
    if array.dtype.kind not in "iuf":
        raise InputError(
            f"{name} is {reprlib.repr(value)}, but it must be a real number or an array of them"
        )
    with np.errstate(
        over="ignore"
    ):  # the caller reports what overflows float32, as not finite
        return array.astype(dtype, copy=False)


@dataclass(frozen=True)
class Limits:
    """Inputs and ranges of a model."""

    #: Name of the model in its paper, for messages.
    name: str
    #: Inputs that it must have.
    needs: Sequence[str] = ()
    #: Inputs that it may have; it has no others.
    takes: Sequence[str] = ()
    #: Ranges that its authors declare; beyond them the formula is evaluated all the same.
    valid: Mapping[str, Sequence[float]] = field(default_factory=dict)
    #: Whether it is one curve for all light from 10 cd/m², and refuses less.
    daylight: bool = False
    #: Paper or package of the model.
    source: str = ""
    #: Name for readers of figures, tables and pages.
    label: str = ""

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of all inputs."""
        return (*self.needs, *self.takes)

    def check(self, inputs: JsonMapping) -> JsonObject:
        """Select the inputs that the model takes, refusing any it lacks or misses.

        Examples
        --------
        >>> Limits("mine", ("frequency",)).check({"frequency": 4.0, "eccentricity": 0.0})
        {'frequency': 4.0}
        >>> Limits("mine", ("frequency",)).check({"frequency": 4.0, "area": 1.0})
        Traceback (most recent call last):
        psyprobe.errors.InputError: area=1.0 cannot be given to mine: it has no spatial ...
        """
        for name, value in inputs.items():
            if name not in self.inputs and value is not None:
                self._refuse(name, value)
        for name in self.needs:
            if inputs.get(name) is None:
                raise InputError(
                    f"{name} is not given, but {self.name} needs it; pass {name}=..."
                )
        return {
            name: inputs[name] for name in self.inputs if inputs.get(name) is not None
        }

    def _refuse(self, name: str, value: Any) -> None:
        """Refuse an input that the model has no use for, unless it means foveal, static or
        achromatic.
        """
        if name == "direction" and isinstance(value, str) and value == "achromatic":
            return
        if name in ("temporal_frequency", "eccentricity", "visual_field"):
            quantity = QUANTITIES[name]
            array = quantity.read(value, np.dtype(np.float64))
            if (
                name == "visual_field" or not array.any()
            ):  # it has no effect at eccentricity 0
                return
            value = f"{array[array > 0][0]:g} {quantity.unit}"
            raise InputError(
                f"{name}={value} cannot be given to {self.name}: {_LACKS[name]}; use castle_csf"
            )
        reason = _LACKS.get(name, f"it knows {', '.join(self.inputs)}")
        raise InputError(
            f"{name}={value!r} cannot be given to {self.name}: {reason}; leave it out, or use "
            "castle_csf"
        )


_LACKS = {
    "direction": "it knows the achromatic direction only",
    "background": "it has no colour",
    "disc_radius": "it has no discs",
    "area": "it has no spatial summation",
    "temporal_frequency": "it describes a static stimulus at the fovea",
    "eccentricity": "it describes a static stimulus at the fovea",
}


#: Inputs and ranges of built-in models, by the name that an experiment gives.
LIMITS = {
    name: Limits(**{"name": name} | row)
    for name, row in packaged_toml("psyprobe.human", "models.toml").items()
}
