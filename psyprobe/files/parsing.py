"""JSON and TOML that anybody wrote: read, or refused with one line, whatever stands in it."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

from psyprobe.errors import InputError

#: Lists within lists of what is still meant to be read.
_DEEPEST = 50


def read_bytes(path: str | Path) -> bytes:
    """What is in a file; an `InputError` where it cannot be read."""
    try:
        return Path(path).read_bytes()
    except (OSError, ValueError) as error:  # a path with NUL is a ValueError
        raise InputError(
            f"{path} cannot be read: {getattr(error, 'strerror', None) or error}"
        ) from None


def read_text(path: str | Path) -> str:
    """A file's text in UTF-8, as `read_bytes`."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise InputError(f"{path} cannot be read: it is not UTF-8") from None
    except (OSError, ValueError) as error:
        raise InputError(
            f"{path} cannot be read: {getattr(error, 'strerror', None) or error}"
        ) from None


def parse_json(text: str | bytes, name: str) -> Any:
    """The value of a JSON text, which messages call by the name.

    Raises
    ------
    InputError
        It is no JSON, or holds a whole number or a nesting that nobody means.
    """
    return _parsed(json.loads, text, f"{name}: this is no JSON")


def parse_toml(text: str, name: str) -> dict[str, Any]:
    """As `parse_json`, of a TOML text."""
    found: dict[str, Any] = _parsed(tomllib.loads, text, f"{name} is not valid TOML")
    return found


def _parsed(parse: Any, text: str | bytes, wrong: str) -> Any:
    try:
        found = parse(text)
    except json.JSONDecodeError as error:
        raise InputError(f"{wrong}: {error.msg}") from None
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{wrong}: {error}") from None
    except RecursionError:
        raise InputError(f"{wrong}: it is nested too deeply") from None
    except ValueError:  # Python's own limit of digits, or text in another encoding
        raise InputError(
            f"{wrong}: a number has too many digits, or the text is not UTF-8"
        ) from None
    _check(found, wrong)
    return found


def _check(value: Any, wrong: str, depth: int = 0) -> None:
    """Refuse what would end in an error anywhere further on."""
    if depth > _DEEPEST:
        raise InputError(
            f"{wrong}: it is nested too deeply; {_DEEPEST} lists within each other are allowed"
        )
    if isinstance(value, int) and value.bit_length() > 1023:
        raise InputError(
            f"{wrong}: a whole number has {value.bit_length()} bits; numbers up to 1e307 are "
            "allowed"
        )
    entries = (
        value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    )
    for entry in entries:
        _check(entry, wrong, depth + 1)
