"""Leases of work that is under way, so that processes that share a store share the work, too.

A lease saves work and holds nothing that counts: whoever ends without giving back leaves nothing that a minute, or the
next process on the same machine, does not mend.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from socket import gethostname
from time import time

from psyprobe.running.database import Database


def lend(database: Database, names: Sequence[str], holder: str, seconds: float) -> set[str]:
    """As `Store.lease`."""
    if database.path is None:
        return set(names)
    # Looked at before, too: who has nothing and wants nothing must not wait for others to write.
    if not names and all(other != holder for _, other, _ in database.leases()):
        return set()
    with database.transaction():
        now = time()
        known = database.leases()
        gone = {other for other in {other for _, other, _ in known} - {holder} if is_gone(other)}
        held = {name: other for name, other, until in known if other == holder or (until > now and other not in gone)}
        taken = {name for name in names if held.get(name, holder) == holder}
        renewed = taken if names else {name for name, other in held.items() if other == holder}
        ended = [name for name, *_ in known if name not in held]
        database.lend([(name, holder, now + seconds) for name in sorted(renewed)], ended)
    return taken


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
