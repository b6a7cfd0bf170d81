"""The batches of a round, handed out one by one to whoever puts them to observers."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from time import sleep
from typing import TYPE_CHECKING

from psyprobe.running.protocol import Batch, Question, question_keys
from psyprobe.running.store import Store

if TYPE_CHECKING:
    from psyprobe.running.loop import Writer

#: Seconds between looks at what another process is asking.
_GLANCE = 0.2


class Agenda:
    """What is left of the batches of a round, each handed out once; of questions that are alike,
    one.

    To be drawn upon from one thread.

    Parameters
    ----------
    store : Store
        Says what is missing.
    batches : sequence of Batch
        Of the round.
    writer : Writer
        Writes before more is handed out, and takes batches on lease.
    """

    def __init__(self, store: Store, batches: Sequence[Batch], writer: Writer) -> None:
        self._store = store
        self._writer = writer
        #: Keys of the questions that have no answer and were not handed out.
        self._missing = self._find_missing(batches)
        #: How many questions had no answer when the round began.
        self.missing_count = len(self._missing)
        #: Batches by group: those of which this process must still take a lease ...
        self._free: dict[str, deque[Batch]] = defaultdict(deque)
        for batch in batches:
            if self._missing_of(batch):
                self._free[batch.group].append(batch)
        #: ... those that it has on lease ...
        self._leased: dict[str, deque[Batch]] = defaultdict(deque)
        #: ... and, of all groups, those that other processes have.
        self._elsewhere: list[Batch] = []
        self._workers: Counter[str] = Counter()

    def __iter__(self) -> Iterator[Batch]:
        batch = self.take()
        while batch is not None:
            yield batch
            batch = self.take(batch.group)

    def __len__(self) -> int:
        """Batches that may be left to take."""
        return sum(map(len, [*self._free.values(), *self._leased.values()]))

    def take(self, group: str = "") -> Batch | None:
        """Take the next batch with unanswered questions, preferably of a group; None at the end."""
        while self:
            next_group = self._choose(group)
            if not self._leased[next_group]:
                self._take_on_lease(next_group)
                continue
            batch = self._leased[next_group].popleft()
            if missing := self._missing_of(batch):
                self._workers[next_group] += next_group != group
                # Whoever takes the next batch has answered the last one: it is written whole.
                self._writer.write_if_due()
                self._missing -= missing
                return replace(batch, questions=_questions_to_ask(batch, missing))
        return None

    def wait(self) -> bool:
        """Wait while other processes ask all that is left; return whether to try `take` again."""
        while self._elsewhere and not self:
            self._missing = self._find_missing(self._elsewhere)
            batches = [batch for batch in self._elsewhere if self._missing_of(batch)]
            self._elsewhere = self._lease(batches)
            if self._elsewhere and not self:
                self._writer.lease.report_wait()
                sleep(_GLANCE)
        return bool(self)

    def _choose(self, group: str) -> str:
        """Return the group if it has batches left, else the group with fewest workers."""
        if self._free[group] or self._leased[group]:
            return group
        groups = (name for name in self._free if self._free[name] or self._leased[name])
        return min(groups, key=self._workers.__getitem__)

    def _take_on_lease(self, group: str) -> None:
        """Reserve a group's batches for this process, but for those that others ask."""
        rest = self._lease(self._free[group])
        if not self._leased[group]:
            self._elsewhere += rest
            rest = []
        self._free[group] = deque(rest)

    def _lease(self, batches: Sequence[Batch]) -> list[Batch]:
        """Reserve some batches for this process, and return those that others have reserved."""
        pieces = self._writer.write_with(
            partial(self._writer.lease.take, map(self._piece, batches))
        )
        leased = [batch for batch in batches if self._piece(batch) in pieces]
        # Another process may have answered some just before it gave them back; from now on none
        # will.
        answered = question_keys(leased) - self._find_missing(leased)
        self._missing -= answered
        for batch in leased:
            self._leased[batch.group].append(batch)
        return [batch for batch in batches if self._piece(batch) not in pieces]

    def _piece(self, batch: Batch) -> str:
        """Name the piece of work that a batch belongs to, which one process reserves at a time."""
        return self._store.label + (batch.session or batch.questions[0].key)

    def _find_missing(self, batches: Iterable[Batch]) -> set[str]:
        """Look up which questions of batches the store has no answer to, by key."""
        return self._store.missing(question_keys(batches))

    def _missing_of(self, batch: Batch) -> set[str]:
        """Select the keys of a batch's questions that are not answered yet."""
        return self._missing & question_keys([batch])


def _questions_to_ask(batch: Batch, missing: set[str]) -> tuple[Question, ...]:
    """Select a batch's unanswered questions, or all where it must stay whole."""
    observers = {
        question.observer
        for question in batch.questions
        if batch.atomic and question.key in missing
    }
    questions = {
        question.key: question
        for question in batch.questions
        if question.observer in observers or question.key in missing
    }
    return tuple(questions.values())
