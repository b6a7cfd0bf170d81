"""What goes wrong on a server, how often, and in which order."""

from __future__ import annotations

import math
import random
from bisect import bisect
from collections.abc import Iterator
from dataclasses import dataclass, fields
from itertools import accumulate

from psyprobe.errors import InputError

#: Faults that happen instead of an answer, in the order in which they are drawn.
KINDS = ("overload", "error", "hang", "truncated", "reset")


@dataclass(frozen=True)
class Faults:
    """Shares of requests that fail, each in its own way.

    Parameters
    ----------
    overload : float
        Refused with HTTP 429 and Retry-After.
    error : float
        Refused with HTTP 500.
    hang : float
        Never answered; the connection stays open.
    truncated : float
        Answered with HTTP 200 and JSON that breaks off.
    reset : float
        The connection is reset without an answer.
    retry_after : float
        What Retry-After says, seconds.
    seed : int
        Of the order in which they come.

    Examples
    --------
    >>> Faults(overload=0.7, error=0.3)
    Traceback (most recent call last):
    psyprobe.errors.InputError: faults add up to 1, which leaves no answer; their sum must stay below 1
    """

    overload: float = 0.0
    error: float = 0.0
    hang: float = 0.0
    truncated: float = 0.0
    reset: float = 0.0
    retry_after: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        for kind, share in zip(KINDS, self.shares, strict=True):
            if not 0 <= share < 1:
                raise InputError(f"the share of {kind} faults is {share}; give 0 to below 1")
        total = sum(self.shares)
        if total >= 1:
            raise InputError(f"faults add up to {total:g}, which leaves no answer; their sum must stay below 1")
        if not (math.isfinite(self.retry_after) and self.retry_after >= 0):
            raise InputError(f"retry_after is {self.retry_after} s; give seconds >= 0")

    @property
    def shares(self) -> tuple[float, ...]:
        """One number a kind, in the order of `KINDS`."""
        return tuple(getattr(self, kind) for kind in KINDS)

    @classmethod
    def parse(cls, items: list[str]) -> Faults:
        """Faults from texts NAME=VALUE, with - for _ in names.

        Raises
        ------
        InputError
            One is not of that form.

        Examples
        --------
        >>> Faults.parse(["overload=0.1", "retry-after=0.5"]).retry_after
        0.5
        """
        names = [each.name for each in fields(cls)]
        values: dict[str, float] = {}
        for item in items:
            name, _, number = item.partition("=")
            key = name.replace("-", "_")
            try:
                values[key] = int(number) if key == "seed" else float(number)
            except ValueError:
                key = ""
            if key not in names:
                raise InputError(f"the fault {item!r} is not NAME=NUMBER with one of {', '.join(names)}")
        return cls(**values)  # type: ignore[arg-type]

    def draws(self) -> Iterator[str]:
        """The kinds of the faults one after the other, without end; empty for none."""
        source, edges = random.Random(self.seed), list(accumulate(self.shares))
        while True:
            yield (*KINDS, "")[bisect(edges, source.random())]
