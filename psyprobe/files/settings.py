"""Values by name, as they stand on a command line: NAME=VALUE."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from psyprobe.errors import InputError


def settings(words: Sequence[str], option: str) -> dict[str, Any]:
    """Values by name: JSON where it is JSON (numbers, lists, true), text otherwise.

    A word without a value is an `InputError` that names the option.

    Examples
    --------
    >>> settings(["concurrency=16", "base_url=http://localhost:8000/v1"], "--observer-option")
    {'concurrency': 16, 'base_url': 'http://localhost:8000/v1'}
    """
    found: dict[str, Any] = {}
    for word in words:
        name, sign, value = word.partition("=")
        if not sign or not name:
            raise InputError(f"{option} {word!r} has no value; write {option} NAME=VALUE")
        try:
            found[name] = json.loads(value)
        except (ValueError, RecursionError):
            found[name] = value
    return found
