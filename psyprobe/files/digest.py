"""The name of a value by its content."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import numpy as np


def digest(value: Any) -> str:
    """SHA-256, hexadecimal, of the canonical JSON of a value without NaN and infinity; no order of keys matters.

    Examples
    --------
    >>> digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1})
    True
    """
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def plain(value: Any) -> Any:
    """A value with tuples, arrays and numpy's numbers as lists, dictionaries and numbers that JSON can hold."""
    if isinstance(value, Mapping):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [plain(entry) for entry in value]
    return value.item() if isinstance(value, np.generic) else value
