"""Leases of work that is under way, so that processes that share a store share the work, too.

A lease saves work and holds nothing that counts: whoever ends without giving back leaves nothing
that a minute, or the next process on the same machine, does not mend.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable
from itertools import islice
from socket import gethostname
from time import time

from psyprobe.running.database import Database


def lend(
    database: Database, names: Iterable[str], holder: str, seconds: float, most: int
) -> set[str]:
    """As `Store.lease`."""
    if database.path is None:
        return set(islice(names, most))
    with database.transaction():
        held, ended = _held(database, holder)
        free: Iterable[str] = (name for name in names if held.get(name, holder) == holder)
        if others := set(held.values()) - {holder}:
            # Whoever takes half of its share of what is left, and then of the rest, ends when the
            # others do.
            free = list(free)
            most = min(most, math.ceil(len(free) / (2 * (len(others) + 1))))
        taken = set(islice(free, most))
        database.lend([(name, holder, time() + seconds) for name in sorted(taken)], ended)
    return taken


def renew(database: Database, holder: str, seconds: float) -> None:
    """As `Store.renew`."""
    # Looked at before, too: who has nothing must not wait for others to write.
    if database.path is None or all(other != holder for _, other, _ in database.leases()):
        return
    with database.transaction():
        held, ended = _held(database, holder)
        mine = sorted(name for name, other in held.items() if other == holder)
        database.lend([(name, holder, time() + seconds) for name in mine], ended)


def _held(database: Database, holder: str) -> tuple[dict[str, str], list[str]]:
    """Who has what, and what nobody has any more; a holder who asks still has what it had."""
    now = time()
    known = database.leases()
    gone = {other for other in {other for _, other, _ in known} - {holder} if is_gone(other)}
    held = {
        name: other
        for name, other, until in known
        if other == holder or (until > now and other not in gone)
    }
    return held, [name for name, *_ in known if name not in held]


def take_back(database: Database, holder: str) -> None:
    """As `Store.release`."""
    if database.path is None:
        return
    if any(other == holder for _, other, _ in database.leases()):
        with database.transaction():
            database.lend([], [name for name, other, _ in database.leases() if other == holder])


def is_gone(holder: str) -> bool:
    """Whether a holder, "HOST PID NONCE", was a process of this machine that has ended."""
    host, _, rest = holder.partition(" ")
    pid = rest.partition(" ")[0]
    if os.name != "posix" or host != gethostname() or not pid.isdecimal():
        return False
    try:
        os.kill(int(pid), 0)
    except (ProcessLookupError, OverflowError):
        return True
    except PermissionError:
        return False
    return False
