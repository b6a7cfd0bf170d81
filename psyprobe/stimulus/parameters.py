"""What a parameter of a stimulus is: its unit, its name on an axis, and the values that it may have."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import MISSING, dataclass, field
from typing import Any

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.errors import InputError, UnknownNameError, unknown_name

#: Words that other software has for parameters, and the names that they have here.
OTHER_WORDS = {
    "sf": "frequency",
    "freq": "frequency",
    "cpd": "frequency",
    "spatial_frequency": "frequency",
    "ori": "orientation",
    "theta": "orientation",
    "angle": "orientation",
    "sigma": "radius",
    "sd": "radius",
    "lum": "luminance",
    "mean": "luminance",
    "background": "luminance",
    "c": "contrast",
    "amplitude": "contrast",
    "phi": "phase",
    "pos_x": "x",
    "pos_y": "y",
    "octaves": "bandwidth",
    "colour": "direction",
    "color": "direction",
    "size_deg": "size",
    "size_px": "size",
    "shape": "size",
    "pixels_per_degree": "ppd",
}


@dataclass(frozen=True)
class Parameter:
    """One parameter of a kind of stimulus."""

    #: "cpd", "deg", "cd/m²" ...; "1" for a ratio, empty where the value is no number.
    unit: str
    #: Its name on an axis, without the unit.
    label: str
    #: low, high: Smallest and largest value.
    low: float = -math.inf
    high: float = math.inf
    #: Whether `low` itself is not allowed.
    above: bool = False
    #: Whether only whole numbers are.
    whole: bool = False
    #: Whether it may be an array, and so a level of an experiment.
    numeric: bool = True
    #: Whether it must be given.
    required: bool = False
    #: Its value where it is not.
    default: Any = None

    def check(self, name: str, value: Any) -> float | FloatArray:
        """The value as a float or an array of floats; `InputError` if it is not allowed."""
        numbers = number(name, value, "a ratio" if self.unit == "1" else self.unit)
        valid = (numbers > self.low if self.above else numbers >= self.low) & (numbers <= self.high)
        whole = numbers % 1 == 0 if self.whole else True
        if np.all(whole & valid):
            return numbers
        unit = "" if self.unit == "1" else self.unit
        require(whole, name, numbers, unit, f"a {name} is a whole number")
        low = "" if self.low == -math.inf else f"{'>' if self.above else '>='} {self.low:g}"
        high = "" if self.high == math.inf else f"<= {self.high:g}"
        allowed = " and ".join(each for each in (low, high) if each)
        fraction = ", a fraction from 0 to 1, not a percentage" if self.low == 0 else ", a fraction, not a percentage"
        hint = fraction if name.endswith("contrast") else f" {unit}".rstrip()
        require(valid, name, numbers, unit, f"it must be {allowed}{hint}")
        return numbers


def parameter(
    unit: str,
    label: str,
    *,
    default: Any = MISSING,
    low: float = -math.inf,
    high: float = math.inf,
    above: bool = False,
    whole: bool = False,
    numeric: bool = True,
) -> Any:
    """A dataclass field that is a parameter of a stimulus; arguments as in `Parameter`.

    Examples
    --------
    >>> from psyprobe.stimulus import Gabor
    >>> Gabor.parameters()["frequency"].unit, Gabor.parameters()["frequency"].label
    ('cpd', 'Spatial frequency')
    """
    described = Parameter(unit, label, low, high, above, whole, numeric)
    return field(default=default, metadata={"parameter": described})


@dataclass(frozen=True)
class DerivedLevel:
    """A level that is another word for one parameter, such as the area of a Gabor for its radius."""

    #: Unit, label and limits of the level.
    described: Parameter
    #: Which parameter it sets.
    parameter: str
    #: to_parameter, from_parameter: From the level to the value of the parameter, and back.
    to_parameter: Callable[[Any], Any]
    from_parameter: Callable[[Any], Any]


#: Area of the circle whose radius is the standard deviation of the Gaussian envelope.
AREA = DerivedLevel(
    Parameter("deg²", "Area", low=0, above=True),
    "radius",
    lambda area: np.sqrt(area / np.pi),
    lambda radius: np.pi * radius**2,
)


def unknown_parameter(kind: str, name: str, known: Iterable[str]) -> UnknownNameError:
    """An error that names the parameter that another word stands for, or the nearest one."""
    known = list(known)
    meant = OTHER_WORDS.get(name)
    if meant not in known:
        return unknown_name(f"parameter of {kind}", name, known)
    how = ", in pixels: degrees times ppd" if name == "size_deg" else ""
    return UnknownNameError(f"unknown parameter of {kind} {name!r}; here it is called {meant!r}{how}")


def number(name: str, value: Any, unit: str) -> float | FloatArray:
    """A float, or a read-only array of finite floats."""
    if type(value) is float and math.isfinite(value):
        return value
    if isinstance(value, bool | str) or value is None:
        raise InputError(f"{name} is {value!r}; give a number ({unit}), without the unit")
    try:
        numbers = np.array(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name} is {value!r}; give a number or an array of numbers ({unit})") from None
    if not np.isfinite(numbers).all():
        raise InputError(f"{name} is {value!r}; every value must be finite ({unit})")
    if numbers.ndim == 0:
        return float(numbers)
    numbers.setflags(write=False)
    return numbers


def require(valid: Any, name: str, value: Any, unit: str, allowed: str) -> None:
    """Raise an error that names the first value that is not valid."""
    if not np.all(valid):
        wrong = np.asarray(value, float)[np.broadcast_to(~np.asarray(valid, bool), np.shape(value))].ravel()[0]
        raise InputError(f"{name} is {wrong:g}{' ' + unit if unit else ''}; {allowed}")


def plain(value: Any) -> Any:
    """Numbers, text and lists for arrays and tuples."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, tuple):
        return [plain(v) for v in value]
    return value
