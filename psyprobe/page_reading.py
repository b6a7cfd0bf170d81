"""Strict reading of TOML pages: a value that is missing, unknown or of another kind is one line that names its key."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from psyprobe.errors import InputError, PsyprobeError, unknown_name
from psyprobe.light.display import Display
from psyprobe.stimulus.catalogue import read_levels


def check_keys(table: Mapping[str, Any], known: Sequence[str], where: str) -> None:
    """Refuse keys that nobody reads.

    Parameters
    ----------
    table : mapping
        A table of the page.
    known : sequence of str
        Its keys.
    where : str
        Name of the table; "" for the page itself.

    Raises
    ------
    UnknownNameError
        With the nearest key that is known.

    Examples
    --------
    >>> check_keys({"beep": 2}, ["bits", "dither"], "delivery")
    Traceback (most recent call last):
    psyprobe.errors.UnknownNameError: unknown key in [delivery] 'beep'; Known: bits, dither
    """
    for key in table:
        if key not in known:
            raise unknown_name(f"key in [{where}]" if where else "key", key, known)


def table(
    values: Mapping[str, Any], key: str, default: Mapping[str, Any] | None = None, where: str = ""
) -> Mapping[str, Any]:
    """A table of a page.

    Parameters
    ----------
    values : mapping
        What holds it.
    key, where : str
        Its name, and that of what holds it.
    default : mapping, optional
        Without one the table must be there.

    Returns
    -------
    mapping
    """
    place = f"{where}.{key}" if where else key
    value = values.get(key, default)
    if value is None:
        raise InputError(f"there is no [{place}]; psyprobe's documentation of experiment files says what it holds")
    if not isinstance(value, Mapping):
        raise InputError(f"{place} is {value!r}; it must be a table")
    return value


def text(values: Mapping[str, Any], key: str, where: str, default: str | None = None) -> str:
    """A text.

    Parameters
    ----------
    values : mapping
        What holds it.
    key, where : str
        Its name, and that of what holds it.
    default : str, optional
        Without one the text must be there.

    Returns
    -------
    str
    """
    place = f"{where}.{key}" if where else key
    value = values.get(key, default)
    if value is None:
        raise InputError(f"there is no {place!r}; give it as text")
    if not isinstance(value, str):
        raise InputError(f"{place} is {value!r}; give text")
    return value


def texts(value: Any, where: str) -> tuple[str, ...]:
    """A list of texts.

    Parameters
    ----------
    value : object
        From the page.
    where : str
        Its name.

    Returns
    -------
    tuple of str
    """
    if not isinstance(value, list) or not all(isinstance(entry, str) for entry in value):
        raise InputError(f"{where} is {value!r}; give a list of sentences")
    return tuple(value)


def choice(values: Mapping[str, Any], key: str, where: str, valid: tuple[str, ...], default: str) -> str:
    """One of several words.

    Parameters
    ----------
    values : mapping
        What holds it.
    key, where : str
        Its name, and that of what holds it.
    valid : tuple of str
        What is allowed.
    default : str
        Where nothing is given.

    Returns
    -------
    str
    """
    value = values.get(key, default)
    if value not in valid:
        raise InputError(f"{where}.{key} is {value!r}; give {' or '.join(map(repr, valid))}")
    return str(value)


def positive(values: Mapping[str, Any], key: str, where: str, unit: str) -> float:
    """A finite number above 0 that must be there.

    Parameters
    ----------
    values : mapping
        What holds it.
    key, where : str
        Its name, and that of what holds it.
    unit : str
        For messages.

    Returns
    -------
    float
    """
    if key not in values:
        raise InputError(f"{where} has no {key!r}; give a number ({unit})")
    value = values[key]
    if not is_number(value):
        raise InputError(f"{where}.{key} is {value!r}; give a number ({unit}), without the unit")
    if not (math.isfinite(value) and value > 0):
        raise InputError(f"{where}.{key} is {value}; give a finite number above 0 ({unit})")
    return float(value)


def number(values: Mapping[str, Any], key: str, where: str, default: float, low: float, high: float) -> float:
    """A number within bounds.

    Parameters
    ----------
    values : mapping
        What holds it.
    key, where : str
        Its name, and that of what holds it.
    default : float
        Where nothing is given.
    low, high : float
        Bounds, both included.

    Returns
    -------
    float

    Examples
    --------
    >>> number({"catch": 1.5}, "catch", "asking", 0.1, 0, 0.5)
    Traceback (most recent call last):
    psyprobe.errors.InputError: asking.catch is 1.5; give a number from 0 to 0.5
    """
    value = values.get(key, default)
    if not is_number(value) or not low <= value <= high:
        raise InputError(f"{where}.{key} is {value!r}; give a number from {low:g} to {high:g}")
    return float(value)


def whole(values: Mapping[str, Any], key: str, where: str, default: int, low: int, high: int) -> int:
    """A whole number within bounds.

    Parameters
    ----------
    values : mapping
        What holds it.
    key, where : str
        Its name, and that of what holds it.
    default : int
        Where nothing is given.
    low, high : int
        Bounds, both included.

    Returns
    -------
    int
    """
    value = values.get(key, default)
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise InputError(f"{where}.{key} is {value!r}; give a whole number from {low} to {high}")
    return value


def yes_or_no(values: Mapping[str, Any], key: str, where: str, default: bool) -> bool:
    """True or false.

    Parameters
    ----------
    values : mapping
        What holds it.
    key, where : str
        Its name, and that of what holds it.
    default : bool
        Where nothing is given.

    Returns
    -------
    bool
    """
    value = values.get(key, default)
    if not isinstance(value, bool):
        raise InputError(f"{where}.{key} is {value!r}; give true or false")
    return value


def is_number(value: Any) -> bool:
    """Whether a value of a page is a number, which True and False are not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def levels(value: Any, where: str, unit: str, least: int = 2) -> tuple[float, ...]:
    """Levels, of which there must be some, above 0 and ascending.

    Parameters
    ----------
    value : object
        As `psyprobe.stimulus.catalogue.read_levels` takes it.
    where, unit : str
        For messages.
    least : int
        How many there must be.

    Returns
    -------
    tuple of float
    """
    found = read_levels(f"{where} ({unit})", value)
    if len(found) < least or not found[0] > 0 or not (np.diff(found) > 0).all():
        raise InputError(
            f"{where} are {found.tolist()}; give at least {'two levels' if least == 2 else 'one level'} above 0, in "
            f"ascending order ({unit})"
        )
    return tuple(found.tolist())


def display(value: Any) -> Display:
    """A display.

    Parameters
    ----------
    value : object
        A table of its fields, or the name of a preset.

    Returns
    -------
    Display
    """
    if isinstance(value, str):
        return Display.preset(value)
    if not isinstance(value, Mapping):
        raise InputError(f"display is {value!r}; give a table [display] or the name of a preset")
    for key, entry in value.items():
        if isinstance(entry, str) and key not in ("eotf", "primaries"):
            raise InputError(f"display.{key} is the text {entry!r}; give a number without a unit")
    return Display.from_dict(value)


@contextmanager
def in_file(name: str) -> Iterator[None]:
    """Put the name of the file in front of what is wrong with it.

    Parameters
    ----------
    name : str
        Of the file.
    """
    try:
        yield
    except PsyprobeError as error:
        raise type(error)(f"{name}: {error}") from error


def plain(value: Any) -> Any:
    """A value as lists, dictionaries and numbers that JSON can hold.

    Parameters
    ----------
    value : object
        Perhaps with tuples, arrays and numpy's numbers.

    Returns
    -------
    object
    """
    if isinstance(value, Mapping):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [plain(entry) for entry in value]
    return value.item() if isinstance(value, np.generic) else value
