"""Read JSON and TOML from anybody, or refuse it with one line, whatever it holds."""

from __future__ import annotations

import csv
import io
import json
import tomllib
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

from psyprobe.errors import InputError
from psyprobe.files.json_types import JsonObject

#: Deepest nesting of lists and tables.
_MAX_DEPTH = 50


def read_bytes(path: str | Path) -> bytes:
    """Read a file's bytes, or raise an `InputError` with the reason."""
    try:
        return Path(path).read_bytes()
    except (OSError, ValueError) as error:  # a path with NUL is a ValueError
        raise InputError(
            f"{path} cannot be read: {getattr(error, 'strerror', None) or error}"
        ) from None


def read_text(path: str | Path) -> str:
    """Read a file's text in UTF-8, or raise an `InputError` with the reason."""
    try:
        text = read_bytes(path).decode()
    except UnicodeDecodeError:
        raise InputError(f"{path} cannot be read: it is not UTF-8") from None
    return io.StringIO(text, newline=None).read()


def packaged_text(package: str, *names: str) -> str:
    """Read a text file that is installed with a Python package, by its path in it."""
    return files(package).joinpath(*names).read_text(encoding="utf-8")


def packaged_toml(package: str, name: str) -> JsonObject:
    """Read a TOML file that is installed with a Python package."""
    return tomllib.loads(packaged_text(package, name))


def packaged_rows(package: str, *names: str) -> list[dict[str, str]]:
    """Read the rows of a CSV file that is installed with a Python package, but for comments."""
    lines = packaged_text(package, *names).splitlines()
    return [*csv.DictReader(line for line in lines if not line.startswith("#"))]


def parse_json(text: str | bytes, name: str) -> Any:
    """Parse a JSON text, naming its file in errors.

    Raises
    ------
    InputError
        It is no JSON, or holds a whole number or a nesting that is too large.
    """
    return _parse(json.loads, text, f"{name}: this is no JSON")


def parse_toml(text: str, name: str) -> JsonObject:
    """Parse a TOML text, naming its file in errors."""
    page: JsonObject = _parse(tomllib.loads, text, f"{name} is not valid TOML")
    return page


def _parse(parse: Callable[[Any], Any], text: str | bytes, complaint: str) -> Any:
    """Parse JSON or TOML, turning each failure into one error that begins with `complaint`."""
    try:
        value = parse(text)
    except json.JSONDecodeError as error:
        raise InputError(f"{complaint}: {error.msg}") from None
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{complaint}: {error}") from None
    except RecursionError:
        raise InputError(f"{complaint}: it is nested too deeply") from None
    except ValueError:  # Python's own limit of digits, or text in another encoding
        raise InputError(
            f"{complaint}: a number has too many digits, or the text is not UTF-8"
        ) from None
    _check(value, complaint)
    return value


def _check(value: Any, complaint: str, depth: int = 0) -> None:
    """Refuse a parsed value that is nested too deeply or has whole numbers too large."""
    if depth > _MAX_DEPTH:
        raise InputError(
            f"{complaint}: it is nested too deeply; {_MAX_DEPTH} lists within each other are "
            "allowed"
        )
    if isinstance(value, int) and value.bit_length() > 1023:
        raise InputError(
            f"{complaint}: a whole number has {value.bit_length()} bits; numbers up to 1e307 are "
            "allowed"
        )
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for entry in value:
            _check(entry, complaint, depth + 1)
