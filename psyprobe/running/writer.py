"""Writes answers by the clock: a question that hangs must not hold back the answers to others."""

from __future__ import annotations

from collections import deque
from threading import Event, Lock, Thread
from typing import Self

from psyprobe.running.question import Answered
from psyprobe.running.store import Store

#: Answers are written when so many have come, and every so many seconds.
_WRITTEN_TOGETHER = 64
_WRITTEN_EVERY = 0.5


class Writer:
    """Keeps answers soon after they came, from a thread of its own, and all of them on leaving."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._waiting: deque[Answered] = deque()
        self._one_at_a_time, self._end = Lock(), Event()
        self._failure: Exception | None = None
        self._thread = Thread(target=self._write_now_and_then, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()
        self.write()

    def add(self, answered: Answered) -> None:
        """Take an answer; an error of the writing thread is raised here."""
        self._waiting.append(answered)
        if self._failure is not None:
            raise self._failure
        if len(self._waiting) >= _WRITTEN_TOGETHER:
            self.write()

    def write(self) -> None:
        """Write what has come; only what is written is forgotten, so that after a failure all of it is tried again."""
        with self._one_at_a_time:
            # By place and not by iteration: another thread may append meanwhile.
            answered = [self._waiting[i] for i in range(len(self._waiting))]
            if answered:
                self._store.add(answered)
            for _ in answered:
                self._waiting.popleft()

    def _write_now_and_then(self) -> None:
        while not self._end.wait(_WRITTEN_EVERY):
            try:
                self.write()
            except Exception as failure:
                self._failure = failure
                return
