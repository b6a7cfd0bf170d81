"""Parameters of stimuli: unit, label on an axis, and the values that each may have."""

from __future__ import annotations

import decimal
import hashlib
import math
import sys
from collections.abc import Callable, Collection, Iterable
from dataclasses import MISSING, dataclass, field
from functools import wraps
from inspect import Parameter as Argument
from inspect import signature
from pathlib import Path
from types import MappingProxyType
from typing import Any, ParamSpec, TypeVar

import numpy as np

from psyprobe._typing import FloatArray, Levels, Option
from psyprobe.errors import InputError, UnknownNameError, unknown_name
from psyprobe.files.parsing import packaged_toml

P = ParamSpec("P")
R = TypeVar("R")

_LARGEST = sys.float_info.max


#: Names of parameters here, by the words that other software has for them.
OTHER_WORDS = {
    word: name
    for name, words in packaged_toml("psyprobe.stimulus", "other_words.toml").items()
    for word in words.split()
}

#: Arguments of `parameter`, by the names of parameters that many kinds have.
_COMMON = packaged_toml("psyprobe.stimulus", "parameters.toml")

#: Digits of decimal arithmetic; float64 has 17.
_DECIMAL = decimal.Context(prec=25)


def log_spaced(first: float, last: float, n: int) -> FloatArray:
    """Compute n values evenly spaced in their logarithm, bit for bit alike on every machine.

    Parameters
    ----------
    first, last : float
        The end values, above 0.
    n : int
        Number of values; one is the first.

    Notes
    -----
    Computed in decimal arithmetic: powers of float64 differ in their last bit from processor to
    processor (with AVX-512 and without), and a stimulus is known, and its dither drawn, by all
    digits of its parameters.

    Examples
    --------
    >>> log_spaced(0.01, 100.0, 5).tolist()
    [0.01, 0.1, 1.0, 10.0, 100.0]
    """
    low = _DECIMAL.ln(decimal.Decimal(float(first)))
    high = _DECIMAL.ln(decimal.Decimal(float(last)))
    step = _DECIMAL.divide(_DECIMAL.subtract(high, low), decimal.Decimal(max(n - 1, 1)))
    values = [first]
    for i in range(1, n - 1):
        logarithm = _DECIMAL.fma(step, decimal.Decimal(i), low)
        values.append(float(_DECIMAL.exp(logarithm)))
    return np.array([*values, last][:n], dtype=np.float64)


def power_of_ten(exponent: float) -> float:
    """Compute 10 to an exponent of six decimals, bit for bit alike on every machine.

    Examples
    --------
    >>> power_of_ten(-2.0), round(power_of_ten(0.30103), 6)
    (0.01, 2.0)
    """
    rounded = decimal.Decimal(f"{exponent:.6f}")
    return float(_DECIMAL.power(decimal.Decimal(10), rounded))


def ten_digits(values: FloatArray) -> FloatArray:
    """Round values to ten significant digits.

    Values that were computed by powers are then the same on nearly every machine.

    Examples
    --------
    >>> ten_digits(np.array([[0.012345678901234], [1e300]])).tolist()
    [[0.0123456789], [1e+300]]
    """
    rounded = [float(f"{value:.10g}") for value in np.ravel(values).tolist()]
    return np.reshape(rounded, np.shape(values))


#: Smallest number whose square float64 holds in full precision.
_SMALLEST = math.sqrt(sys.float_info.min)


@dataclass(frozen=True)
class Parameter:
    """The definition of one parameter of a kind of stimulus."""

    #: "cpd", "deg", "cd/m²" ...; "1" for a ratio, empty where the value is no number.
    unit: str
    #: Its name on an axis, without the unit.
    label: str
    #: low, high: Smallest and largest value.
    low: float = -math.inf
    high: float = math.inf
    #: Whether `low` itself is not allowed.
    above: bool = False
    #: Whether only whole numbers are allowed.
    whole: bool = False
    #: Whether it may be an array, and so a level of an experiment.
    numeric: bool = True
    #: Whether it has no default.
    required: bool = False
    default: Levels = None
    #: Whether it is the path of a file, of which digests contain what it holds.
    is_file: bool = False
    #: Words for its values 0, 1, 2 ...; empty where they are no more than numbers.
    labels: tuple[str, ...] = ()

    def check(self, name: str, value: Levels) -> float | FloatArray:
        """Convert a value to a float or array of floats, refusing one that is not allowed."""
        if self.labels:
            value = _label_numbers(name, value, self.labels)
        numbers = number(name, value, "a ratio" if self.unit == "1" else self.unit)
        if self.whole:
            require(
                numbers % 1 == 0,
                name,
                numbers,
                self.unit,
                f"a {name} is a whole number",
            )
        valid = (numbers > self.low if self.above else numbers >= self.low) & (
            numbers <= self.high
        )
        if not _all_true(valid):
            require(
                valid,
                name,
                numbers,
                self.unit,
                f"it must be {self._describe_limits(name)}",
            )
        if self.above and self.low == 0:
            has_square = np.asarray(numbers) >= _SMALLEST
            require(
                has_square, name, numbers, self.unit, f"give at least {_SMALLEST:.2g}"
            )
        return numbers

    def _describe_limits(self, name: str) -> str:
        """Describe in words the range and unit that a parameter allows."""
        limits = []
        if self.low > -math.inf:
            limits.append(f"{'>' if self.above else '>='} {self.low:g}")
        if self.high < math.inf:
            limits.append(f"<= {self.high:g}")
        unit = "" if self.unit == "1" else f" {self.unit}"
        if name.endswith("contrast"):
            unit = f", a fraction{' from 0 to 1' if self.low == 0 else ''}, not a percentage"
        return " and ".join(limits) + unit


def parameter(
    unit: str,
    label: str,
    *,
    default: Levels = MISSING,
    low: float = -math.inf,
    high: float = math.inf,
    above: bool = False,
    whole: bool = False,
    numeric: bool = True,
    labels: tuple[str, ...] = (),
) -> Levels:
    """Define a dataclass field that is a parameter of a stimulus; arguments as in `Parameter`.

    With `labels`, values are words or their numbers, from 0.

    Examples
    --------
    >>> from psyprobe.stimulus import Gabor
    >>> Gabor.parameters()["frequency"].unit, Gabor.parameters()["frequency"].label
    ('cpd', 'Spatial frequency')
    """
    if labels:
        low = 0
        high = len(labels) - 1
        whole = True
    definition = Parameter(unit, label, low, high, above, whole, numeric, labels=labels)
    return field(default=default, metadata={"parameter": definition})


def common(name: str, *, default: Levels = MISSING) -> Levels:
    """Define the field of a parameter that many kinds share, with unit and limits from a table.

    Examples
    --------
    >>> common("radius", default=1.0).metadata["parameter"].unit
    'deg'
    """
    return parameter(**_COMMON[name], default=default)


def file_parameter(label: str, *, default: Option = MISSING) -> Option:
    """Define a dataclass field that is the path of a file from which a kind draws.

    The digest of a stimulus is that of what the file holds, wherever it lies: with another picture
    in its place, questions are asked anew. A page names it as it lies beside the page.

    Parameters
    ----------
    label : str
        What the file holds, or the files of a folder.
    default : str, optional
        The path; without it, it must be given.

    Examples
    --------
    >>> file_parameter("Picture").metadata["parameter"].is_file
    True
    """
    definition = Parameter("", label, numeric=False, is_file=True)
    return field(default=default, metadata={"parameter": definition})


def file_digest(name: str, path: str | Path) -> str:
    """Hash the content of the file that a parameter names, SHA-256, hexadecimal.

    Of a folder: the names of its files and what these hold.
    """
    try:
        if not Path(path).is_dir():
            return hashlib.sha256(Path(path).read_bytes()).hexdigest()
        files = hashlib.sha256()
        for file in sorted(Path(path).iterdir()):
            if file.is_file():
                files.update(f"{file.name}:{file_digest(name, file)}\n".encode())
        return files.hexdigest()
    except (OSError, TypeError, ValueError) as error:
        raise InputError(
            f"{name} is {str(path)!r}, which cannot be read ({error}); give the path of a file"
        ) from None


@dataclass(frozen=True)
class DerivedLevel:
    """A level that stands for one parameter, such as the area of a Gabor for its radius."""

    #: Unit, label and limits of the level.
    definition: Parameter
    #: Name of the parameter that it sets.
    parameter: str
    #: to_parameter, from_parameter: Functions from the level to the parameter, and back.
    to_parameter: Callable[[Levels], Levels]
    from_parameter: Callable[[Levels], Levels]


#: The derived level of a kind whose `radius` is the standard deviation of a Gaussian envelope: the
#: area of the circle of this radius.
AREA = MappingProxyType(
    {
        "area": DerivedLevel(
            Parameter("deg²", "Area", low=0, above=True),
            "radius",
            lambda area: np.sqrt(area / np.pi),
            lambda radius: np.pi * radius**2,
        )
    }
)


def check_names(kind: str, names: Collection[str], allowed: Collection[str]) -> None:
    """Refuse a parameter name that is not allowed, suggesting the right one.

    Where other software has no such word, it is the nearest name.
    """
    for name in names:
        if name in allowed:
            continue
        meaning = OTHER_WORDS.get(name)
        if meaning not in allowed:
            raise unknown_name(f"parameter of {kind}", name, allowed)
        hint = ", in pixels: degrees times ppd" if name == "size_deg" else ""
        raise UnknownNameError(
            f"unknown parameter of {kind} {name!r}; here it is called {meaning!r}{hint}"
        )


def check_arguments(
    kind: str,
    names: Collection[str],
    allowed: Collection[str],
    required: Iterable[str],
) -> None:
    """Refuse a parameter name that is not allowed, or one that is required and missing."""
    check_names(kind, names, allowed)
    missing = [name for name in required if name not in names]
    if missing:
        raise InputError(f"{kind} needs {' and '.join(missing)}")


def number(name: str, value: Any, unit: str) -> float | FloatArray:
    """Convert a value to a float, or to a read-only array of finite floats."""
    # A run sets thousands of levels, and most are plain numbers.
    if type(value) in (float, int) and -_LARGEST <= value <= _LARGEST:
        return float(value)
    if isinstance(value, bool | str) or value is None:
        raise InputError(
            f"{name} is {value!r}; give a number ({unit}), without the unit"
        )
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


def _label_numbers(name: str, value: Any, labels: tuple[str, ...]) -> Any:
    """Replace the labels of a parameter (such as letters) by their numbers."""
    words = np.asarray(value)
    if words.dtype.kind != "U":
        return value
    for word in words.ravel().tolist():
        if word not in labels:
            raise unknown_name(name, word, labels)
    return np.reshape([labels.index(word) for word in words.ravel()], words.shape)


def require(valid: Any, name: str, value: Any, unit: str, allowed: str) -> None:
    """Raise an error that names the first value that is not valid, and what is allowed.

    Parameters
    ----------
    valid : bool or array of bool
        Whether each value is valid.
    name, value, unit
        The parameter.
    allowed : str
        What is allowed, in words.
    """
    if _all_true(valid):
        return
    invalid = np.broadcast_to(~np.asarray(valid, bool), np.shape(value))
    first = np.asarray(value, float)[invalid].ravel()[0]
    raise InputError(
        f"{name} is {first:g}{'' if unit in ('', '1') else f' {unit}'}; {allowed}"
    )


def _all_true(valid: Any) -> bool:
    """Tell whether a truth value, or each of an array, is true."""
    # `numpy.all` of one truth takes longer than all else that is done to a number.
    return bool(valid) if isinstance(valid, bool | np.bool_) else bool(np.all(valid))


def check_keywords(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function so that a wrong or missing keyword is one clear error.

    The error names the right keyword, or the missing one.
    """
    name = function.__name__
    parameters = signature(function).parameters
    required = [
        keyword
        for keyword, argument in parameters.items()
        if argument.default is Argument.empty
    ]

    @wraps(function)
    def checked(*args: P.args, **keywords: P.kwargs) -> R:
        if args:
            example = next(iter(parameters))
            raise InputError(
                f"{name} takes its parameters by name, such as {name}({example}=...)"
            )
        check_arguments(name, keywords, parameters, required)
        return function(*args, **keywords)

    return checked
