"""Leases: processes that share a store share its work, and none asks what another one is asking.

A lease saves work and nothing rests on it: whoever ends without giving back leaves nothing that
half a minute, or the next process on the same machine, does not mend. Clocks of two machines are
never compared: a process counts its signs of life, and another one sees by its own clock for how
long the count stands still.
"""

from __future__ import annotations

import math
import os
import socket
import uuid
import warnings
from collections.abc import Iterable
from itertools import islice
from time import monotonic

from psyprobe.errors import ConditionWarning
from psyprobe.files.output import is_running
from psyprobe.running.database import Database, Process

#: Seconds between two signs of life.
_BEAT = 10.0
#: Seconds without a sign of life after which a process has nothing on lease any more.
_SILENCE = 30.0
#: Seconds of work that are taken at once, at the pace since the last time. At first it is one
#: piece, and then at most so many times as many as the last time, since a server is given its first
#: questions much faster than it answers.
_SECONDS_AT_ONCE = 1.0
_GROWTH = 16
#: Seconds of waiting for another process after which a line says so.
_PATIENCE = 2.0


#: Processes of this interpreter that have work: one that failed to give it back is none of them.
_ACTIVE: set[str] = set()


class Lease:
    """The pieces of work that this process has taken, so that another one takes others.

    Parameters
    ----------
    database : Database
        Of the store; one in memory has no other process.
    task : str
        What this process is at, for whoever waits for it.
    """

    def __init__(self, database: Database, task: str = "") -> None:
        self._database = database
        self._process = Process(
            uuid.uuid4().hex, socket.gethostname(), os.getpid(), task, 1
        )
        self._count = 0
        self._taken_at = monotonic()
        self._beaten_at = monotonic()
        self._has_work = False
        #: The count of signs of life of each other process, and when it was seen first.
        self._signs: dict[str, tuple[int, float]] = {}
        self._waiting_since: float | None = None
        self._reported: set[str] = set()

    def take(self, pieces: Iterable[str]) -> set[str]:
        """Reserve for this process some of the next pieces of work that no other process has.

        Beside others a process gets at most half of its share of what is left, and so on, so that
        all end at about the same time.

        Parameters
        ----------
        pieces : iterable of str
            Names, the first first.

        Returns
        -------
        set of str
            The names of those that are taken; none if others have all.
        """
        time = monotonic()
        pace = self._count / max(time - self._taken_at, 1e-9)
        count = max(1, int(min(_SECONDS_AT_ONCE * pace, _GROWTH * self._count)))
        in_memory = self._database.path is None
        lease = (
            set(islice(pieces, count)) if in_memory else self._take_free(pieces, count)
        )
        if lease:
            self._count = len(lease)
            self._taken_at = time
            self._waiting_since = None
        return lease

    def give_back(self) -> None:
        """Release all pieces of work that this process has reserved."""
        # First, since it ends even where the disk is full.
        _ACTIVE.discard(self._process.id)
        if self._has_work:
            with self._database.transaction():
                self._database.remove_process(self._process.id)
            self._has_work = False

    def beat(self) -> None:
        """Write a sign of life of this process, if it is time to."""
        if self._has_work and monotonic() - self._beaten_at > _BEAT:
            self._beaten_at = monotonic()
            with self._database.transaction():
                self._database.beat(self._process)

    def report_wait(self) -> None:
        """Print for which process this one waits, once it has waited a while."""
        if self._waiting_since is None:
            self._waiting_since = monotonic()
        if monotonic() - self._waiting_since < _PATIENCE:
            return
        for process in self._database.processes():
            if process.id not in {self._process.id, *self._reported}:
                self._reported.add(process.id)
                warnings.warn(
                    f"waiting for process {process.pid} on {process.host}, which asks what is left "
                    f"here ({process.task or 'another run'}); if it gives no sign of life for "
                    f"{_SILENCE:g} s, this process asks it",
                    ConditionWarning,
                    stacklevel=4,
                )

    def _take_free(self, pieces: Iterable[str], count: int) -> set[str]:
        """Reserve for this process up to `count` pieces of work that no other process holds."""
        with self._database.transaction():
            process_count = self._count_others()
            holders = self._database.leases()
            free: Iterable[str] = (
                piece
                for piece in pieces
                if holders.get(piece, self._process.id) == self._process.id
            )
            if process_count:
                free = list(free)
                count = min(count, math.ceil(len(free) / (2 * (process_count + 1))))
            lease = set(islice(free, count))
            if lease:
                self._database.beat(self._process)
                self._database.add_leases(self._process.id, sorted(lease))
                self._has_work = True
                _ACTIVE.add(self._process.id)
        return lease

    def _count_others(self) -> int:
        """Remove other processes that are dead, and count the rest."""
        count = 0
        for process in self._database.processes():
            if process.id == self._process.id:
                continue
            if has_ended(process) or self._is_silent(process):
                self._database.remove_process(process.id)
            else:
                count += 1
        return count

    def _is_silent(self, process: Process) -> bool:
        """Tell whether a process has shown no sign of life for longer than allowed."""
        beats, seen_at = self._signs.get(process.id, (None, 0.0))
        if beats != process.beats:
            self._signs[process.id] = (process.beats, monotonic())
            return False
        return monotonic() - seen_at > _SILENCE


def has_ended(process: Process) -> bool:
    """Tell whether a process ran on this machine and has ended, or was this one's own earlier."""
    if process.host != socket.gethostname():
        return False
    is_own = process.pid == os.getpid()
    return process.id not in _ACTIVE if is_own else not is_running(process.pid)
