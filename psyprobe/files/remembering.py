"""Keep what a function gave for equal arguments, arrays among them."""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")
#: Results that are kept of one function, the oldest of which goes first.
_MOST = 512


def remembered(function: Callable[P, T]) -> Callable[P, T]:
    """Keep what a function gave, for the next call with equal arguments.

    Parameters
    ----------
    function : callable
        It depends on its arguments alone, which pickle, and nobody changes what it returns.

    Examples
    --------
    >>> import numpy as np
    >>> def total(values):
    ...     print("summing")
    ...     return values.sum()
    >>> remembered_total = remembered(total)
    >>> int(remembered_total(np.arange(3))), int(remembered_total(np.arange(3)))
    summing
    (3, 3)
    """
    kept: dict[bytes, T] = {}

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        # Different arguments never pickle alike; equal ones that do not are computed again.
        key = hashlib.sha256(pickle.dumps((args, kwargs))).digest()
        if key not in kept:
            value = function(*args, **kwargs)
            if len(kept) == _MOST:
                del kept[next(iter(kept))]
            kept[key] = value
        return kept[key]

    return call
