"""What a parameter of a stimulus is: its unit, its name on an axis, and the values that it may
have.
"""

from __future__ import annotations

import decimal
import math
import sys
import tomllib
from collections.abc import Callable, Collection
from dataclasses import MISSING, dataclass, field
from functools import wraps
from importlib.resources import files
from inspect import Parameter as Argument
from inspect import signature
from typing import Any, ParamSpec, TypeVar

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.errors import InputError, UnknownNameError, unknown_name

P = ParamSpec("P")
R = TypeVar("R")

_LARGEST = sys.float_info.max

#: Words that other software has for parameters, and the names that they have here.
_PAGE = files("psyprobe.stimulus").joinpath("other_words.toml").read_text(encoding="utf-8")
OTHER_WORDS = {word: name for name, words in tomllib.loads(_PAGE).items() for word in words.split()}


#: Digits of decimal arithmetic; float64 has 17.
_DIGITS = decimal.Context(prec=25)


def log_spaced(first: float, last: float, n: int) -> FloatArray:
    """Values that are evenly spaced in their logarithm, the same to the last bit on every machine.

    Parameters
    ----------
    first, last : float
        Above 0; kept as they are.
    n : int
        How many; one is the first.

    Notes
    -----
    In decimal arithmetic: powers of float64 differ in their last bit from processor to processor
    (with AVX-512 and without), and a stimulus is known, and its dither drawn, by all digits of its
    parameters.

    Examples
    --------
    >>> log_spaced(0.01, 100.0, 5).tolist()
    [0.01, 0.1, 1.0, 10.0, 100.0]
    """
    low, high = (_DIGITS.ln(decimal.Decimal(float(end))) for end in (first, last))
    step = _DIGITS.divide(_DIGITS.subtract(high, low), decimal.Decimal(max(n - 1, 1)))
    within = [
        float(_DIGITS.exp(_DIGITS.fma(step, decimal.Decimal(i), low))) for i in range(1, n - 1)
    ]
    return np.array([first, *within, last][:n], dtype=np.float64)


def power_of_ten(exponent: float) -> float:
    """10 to an exponent that is rounded to six decimals, the same to the last bit on every machine.

    Examples
    --------
    >>> power_of_ten(-2.0), round(power_of_ten(0.30103), 6)
    (0.01, 2.0)
    """
    return float(_DIGITS.power(decimal.Decimal(10), decimal.Decimal(f"{exponent:.6f}")))


def ten_digits(values: FloatArray) -> FloatArray:
    """Values to ten significant digits: what was computed by powers, the same on nearly every
    machine.

    Examples
    --------
    >>> ten_digits(np.array([[0.012345678901234], [1e300]])).tolist()
    [[0.0123456789], [1e+300]]
    """
    return np.reshape(
        [float(f"{value:.10g}") for value in np.ravel(values).tolist()], np.shape(values)
    )


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
        if self.whole:
            require(numbers % 1 == 0, name, numbers, self.unit, f"a {name} is a whole number")
        valid = (numbers > self.low if self.above else numbers >= self.low) & (numbers <= self.high)
        if not _holds(valid):
            low = [f"{'>' if self.above else '>='} {self.low:g}"] if self.low > -math.inf else []
            high = [f"<= {self.high:g}"] if self.high < math.inf else []
            unit = "" if self.unit == "1" else f" {self.unit}"
            if name.endswith("contrast"):
                unit = f", a fraction{' from 0 to 1' if self.low == 0 else ''}, not a percentage"
            require(valid, name, numbers, self.unit, f"it must be {' and '.join(low + high)}{unit}")
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
    """A level that is another word for one parameter, such as the area of a Gabor for its
    radius.
    """

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


def check_names(kind: str, given: Collection[str], known: Collection[str]) -> None:
    """Raise an error that names the parameter that an unknown word stands for, or the nearest
    one.
    """
    for name in given:
        if name not in known:
            if (meant := OTHER_WORDS.get(name)) not in known:
                raise unknown_name(f"parameter of {kind}", name, known)
            how = ", in pixels: degrees times ppd" if name == "size_deg" else ""
            raise UnknownNameError(
                f"unknown parameter of {kind} {name!r}; here it is called {meant!r}{how}"
            )


def number(name: str, value: Any, unit: str) -> float | FloatArray:
    """A float, or a read-only array of finite floats."""
    # A run sets thousands of levels, most of them such.
    if type(value) in (float, int) and -_LARGEST <= value <= _LARGEST:
        return float(value)
    if isinstance(value, bool | str) or value is None:
        raise InputError(f"{name} is {value!r}; give a number ({unit}), without the unit")
    try:
        numbers = np.array(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InputError(
            f"{name} is {value!r}; give a number or an array of numbers ({unit})"
        ) from None
    if not numbers.size:
        raise InputError(f"{name} is an empty list; give at least one number ({unit})")
    if not np.isfinite(numbers).all():
        raise InputError(f"{name} is {value!r}; every value must be finite ({unit})")
    if numbers.ndim == 0:
        return float(numbers)
    numbers.setflags(write=False)
    return numbers


def require(valid: Any, name: str, value: Any, unit: str, allowed: str) -> None:
    """Raise an error that names the first value that is not valid."""
    if not _holds(valid):
        wrong = np.asarray(value, float)[
            np.broadcast_to(~np.asarray(valid, bool), np.shape(value))
        ].ravel()[0]
        raise InputError(
            f"{name} is {wrong:g}{f' {unit}' if unit not in ('', '1') else ''}; {allowed}"
        )


def _holds(valid: Any) -> bool:
    # `numpy.all` of one truth takes longer than all else that is done to a number.
    return bool(valid) if isinstance(valid, bool | np.bool_) else bool(np.all(valid))


def tells_names(function: Callable[P, R]) -> Callable[P, R]:
    """Answers a keyword that is none with the right one, and a missing one with its name."""
    name = function.__name__
    known = signature(function).parameters
    needed = [word for word, each in known.items() if each.default is Argument.empty]

    @wraps(function)
    def checked(*args: P.args, **keywords: P.kwargs) -> R:
        if args:
            raise InputError(
                f"{name} takes its parameters by name, such as {name}({next(iter(known))}=...)"
            )
        check_names(name, keywords, known)
        if missing := [word for word in needed if word not in keywords]:
            raise InputError(f"{name} needs {' and '.join(missing)}")
        return function(*args, **keywords)

    return checked
