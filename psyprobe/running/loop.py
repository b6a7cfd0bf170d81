"""The one loop: take a round, look up what the store has, ask the rest, write each answer as it
comes, tell.

A round is planned from nothing but the answers to the rounds before, and answers are read back from
the store. So neither who puts the questions, nor how many are under way, nor the order in which
answers arrive, nor an interruption changes a result.

Two processes on one store share the work: each takes batches on lease, and waits in the end for
what the other is at.
"""

from __future__ import annotations

import json
import os
import socket
import uuid
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property, partial
from itertools import chain, filterfalse, takewhile
from threading import Event, Lock, Thread
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar, runtime_checkable

from psyprobe.errors import StoreError
from psyprobe.files.output import software_versions
from psyprobe.files.terminal import progress_bar
from psyprobe.observers.chat.cost_summary import shown_on
from psyprobe.running.origins import Origins
from psyprobe.running.protocol import Answered, Batch, Probe, RunRecord, Schedule
from psyprobe.running.store import Store

if TYPE_CHECKING:
    from psyprobe.experiment import Experiment

T = TypeVar("T")

#: Puts batches to observers, as `Probe.answer` does.
Put = Callable[[Mapping[str, Any], "Agenda"], Iterator[Answered]]

#: Answers are written every so many seconds.
_WRITTEN_EVERY = 0.5
#: A lease holds for so many seconds, and is renewed after a third of them.
_LEASE = 30.0
#: So many seconds of work are taken on lease at once, at the pace since the last time; at first one
#: batch, and at most so many times as many as the last time, since a server is given its first
#: questions much faster than it answers.
_LEASED_FOR = 1.0
_MORE_LEASED = 16
#: Seconds between looks at what another process is at.
_GLANCE = 0.2


@runtime_checkable
class Executor(Protocol):
    """Puts batches to observers elsewhere than in this process."""

    def put(
        self,
        answer: Callable[..., Iterator[Answered]],
        observers: Mapping[str, Any],
        agenda: Agenda,
    ) -> Iterator[Answered]:
        """Put what the agenda holds as `answer`, which is `Probe.answer`, would, and yield what
        comes back.
        """


def ask(
    store: Store,
    probe: Probe,
    schedule: Schedule,
    *,
    label: str,
    progress: bool | None = None,
    executor: Executor | None = None,
    part: bool = False,
) -> RunRecord:
    """Ask what a session wants to know and the store does not hold yet.

    Parameters
    ----------
    store : Store
        Opened.
    probe : Probe
        Puts batches to observers.
    schedule : Schedule
        Of the probe; says what comes next.
    label : str
        What stands before the progress bar.
    progress : bool, optional
        Whether to show one; by default on a terminal and in a notebook.
    executor : Executor, optional
        Who puts the batches; by default this process.
    part : bool
        Whether the session asks a part only, which leaves the run unfinished.

    Returns
    -------
    RunRecord
        Of the run, finished unless only a part was asked.
    """
    put: Put = probe.answer if executor is None else partial(executor.put, probe.answer)
    origins = Origins(store, schedule.observers)
    planned = schedule.record(store)
    contents = list(schedule.contents())
    with store.together():
        store.keep(contents)
        record = store.begin(planned)
    schedule.begin(record)
    keys: set[str] = set()
    with Writer(store) as writer, progress_bar(0, progress, "question") as bar:
        bar.set_description(label)
        told = (
            put
            if bar.disable
            else lambda observers, agenda: shown_on(bar, observers, put(observers, agenda))
        )
        while batches := schedule.next():
            asked = ask_round(store, told, schedule.observers, origins, batches, bar, writer)
            keys |= asked
            schedule.tell(_Answers(store, writer, asked))
        if part:
            return record
        outcome = schedule.outcome()
        return writer.end(lambda: store.finish(record, outcome, keys))


def ask_round(
    store: Store,
    put: Put,
    observers: Mapping[str, Any],
    origins: Origins,
    batches: Sequence[Batch],
    bar: Any,
    writer: Writer,
) -> set[str]:
    """Ask what the store does not hold of some batches; the keys of all their questions, written
    when the writer is.
    """
    writer.write()
    keys = {question.key for batch in batches for question in batch.questions}
    bar.total = (bar.total or 0) + len(keys)
    left = len(store.missing(keys))
    bar.update(len(keys) - left)
    if left:
        origins.say_what_changed()
        agenda = Agenda(store, batches, writer)
        while agenda.open():
            for answered in put(observers, agenda):
                origin = origins.of(answered.question.observer, answered.origin)
                writer.add(Answered(answered.question, answered.answer, answered.contents, origin))
                if left:
                    left -= 1
                    bar.update()
    # Another process may have answered the rest meanwhile.
    bar.update(left)
    return keys


class _Answers(Mapping[str, Mapping[str, Any]]):
    """The answers of a round by the keys of its questions, read if a session wants to know them."""

    def __init__(self, store: Store, writer: Writer, keys: set[str]) -> None:
        self._store = store
        self._writer = writer
        self._keys = keys

    @cached_property
    def _read(self) -> Mapping[str, Mapping[str, Any]]:
        self._writer.write()
        return self._store.answers(self._keys)

    def __getitem__(self, key: str) -> Mapping[str, Any]:
        return self._read[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._read)

    def __len__(self) -> int:
        return len(self._read)


class Lease:
    """What this process has taken of a store's questions, so that another one takes the others."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._holder = f"{socket.gethostname()} {os.getpid()} {uuid.uuid4().hex[:8]}"
        self._mine: set[str] = set()
        self._count, self._taken, self._renewed = 0, monotonic(), monotonic()

    def holds(self, name: str) -> bool:
        """Whether a question is this process's to ask."""
        return name in self._mine

    def take(self, coming: Iterable[str]) -> None:
        """Take some of the questions that come next, of those that nobody else has."""
        now = monotonic()
        pace = self._count / max(now - self._taken, 1e-9)
        at_once = max(1, int(min(_LEASED_FOR * pace, _MORE_LEASED * self._count)))
        if taken := self._store.lease(coming, self._holder, _LEASE, at_once):
            self._mine |= taken
            self._count = len(taken)
            self._taken = now

    def give_back(self) -> None:
        """Let others have what is taken."""
        if self._mine:
            self._store.release(self._holder)
            self._mine.clear()

    def renew(self) -> None:
        """Hold on to what is taken, if it is time to."""
        if self._mine and monotonic() - self._renewed > _LEASE / 3:
            self._renewed = monotonic()
            self._store.renew(self._holder, _LEASE)


class Agenda:
    """What is left of the batches of a round, handed out one by one, each once; of questions that
    are alike, one.

    To be drawn upon from one thread.
    """

    def __init__(self, store: Store, batches: Sequence[Batch], writer: Writer) -> None:
        self._store = store
        self._writer = writer
        self._lease = writer.lease
        self._left: dict[str, deque[Batch]] = {}
        for batch in batches:
            self._left.setdefault(batch.shares, deque()).append(batch)
        self._takers: Counter[str] = Counter()
        self._elsewhere: list[Batch] = []
        self._put: set[str] = set()
        #: What is missing of batches that are on lease, by their first questions.
        self._known: dict[str, set[str]] = {}

    def __iter__(self) -> Iterator[Batch]:
        batch = self.take()
        while batch is not None:
            yield batch
            batch = self.take(batch.shares)

    def __len__(self) -> int:
        """Batches that may be left to take."""
        return sum(map(len, self._left.values()))

    def take(self, shares: str = "") -> Batch | None:
        """What is left of the next batch; where there is one, of those that share what was made for
        the last one.
        """
        while self._left:
            shared = (
                shares if shares in self._left else min(self._left, key=self._takers.__getitem__)
            )
            others = self._left[shared]
            batch = others.popleft()
            if not others:
                del self._left[shared]
            missing = self._known.pop(batch.questions[0].key, None)
            if missing is None:
                if not self._missing(batch):
                    continue
                if not self._holds(batch):
                    self._writer.write_with(
                        partial(self._lease.take, map(_name, chain([batch], others)))
                    )
                if not self._holds(batch):
                    self._elsewhere += [batch, *self._not_on_lease(shared)]
                    continue
                missing = self._missing_on_lease(batch, others)
            if missing := missing - self._put:
                self._takers[shared] += shared != shares
                # Whoever takes the next batch has answered the last one: it is written whole.
                self._writer.write_if_due()
                lacking = {
                    question.observer for question in batch.questions if question.key in missing
                }
                whole = lacking if batch.whole else set()
                asked = {
                    question.key: question
                    for question in batch.questions
                    if question.observer in whole or question.key in missing
                }
                self._put |= set(asked)
                return replace(batch, questions=tuple(asked.values()))
        return None

    def open(self) -> bool:
        """Whether there may be something to take; where another process is at all that is left,
        wait for it.
        """
        while self._elsewhere and not self._left:
            self._writer.write()
            waiting = [batch for batch in self._elsewhere if self._missing(batch)]
            self._lease.take(map(_name, waiting))
            for batch in filter(self._holds, waiting):
                self._left.setdefault(batch.shares, deque()).append(batch)
            self._elsewhere = [*filterfalse(self._holds, waiting)]
            if self._elsewhere and not self._left:
                sleep(_GLANCE)
        return bool(self._left)

    def _missing_on_lease(self, batch: Batch, others: Iterable[Batch]) -> set[str]:
        """What is missing of a batch, looked up together with what is of those after it that are on
        lease, too.

        Another process may have answered some just before it gave them back; from now on none will.
        """
        mine = [batch, *takewhile(self._holds, others)]
        missing = self._store.missing(question.key for each in mine for question in each.questions)
        keys = [[question.key for question in each.questions] for each in mine]
        self._known |= {key[0]: missing.intersection(key) for key in keys}
        return self._known.pop(batch.questions[0].key)

    def _not_on_lease(self, shared: str) -> Iterator[Batch]:
        """Taken out of what is left: those up to the first that is on lease, which others have."""
        others = self._left.get(shared, deque())
        while others and not self._holds(others[0]):
            yield others.popleft()
        if not others:
            self._left.pop(shared, None)

    def _holds(self, batch: Batch) -> bool:
        return self._lease.holds(_name(batch))

    def _missing(self, batch: Batch) -> set[str]:
        return self._store.missing(question.key for question in batch.questions) - self._put


def _name(batch: Batch) -> str:
    return batch.session or batch.questions[0].key


class Writer:
    """Writes answers by the clock: a question that hangs must not hold back the answers to others.

    It holds the lease, too, since a commit, which is synced to the disk, takes as long for little
    as for much: what is taken, answered and given back is written together.
    """

    def __init__(self, store: Store) -> None:
        self.lease = Lease(store)
        self._store = store
        self._waiting: deque[Answered] = deque()
        self._one_at_a_time, self._end = Lock(), Event()
        self._failure: Exception | None = None
        self._written = monotonic()
        self._thread = Thread(target=self._write_now_and_then, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()
        if self._waiting:
            self.write_with(self.lease.give_back)
        # What went wrong before is what counts; a lease ends by itself.
        with suppress(StoreError):
            self.lease.give_back()

    def add(self, answered: Answered) -> None:
        """Take an answer; an error of the writing thread is raised here."""
        self._waiting.append(answered)
        if self._failure is not None:
            raise self._failure

    def write_if_due(self) -> None:
        """Write what has come, if the last writing is long enough ago."""
        with self._one_at_a_time:
            if self._waiting and monotonic() - self._written >= _WRITTEN_EVERY:
                self._write_with(lambda: None)

    def write(self) -> None:
        """Write what has come."""
        with self._one_at_a_time:
            if self._waiting:
                self._write_with(lambda: None)

    def write_with(self, other: Callable[[], T]) -> T:
        """Write what has come, and something else with it, all or nothing."""
        with self._one_at_a_time:
            return self._write_with(other)

    def end(self, last: Callable[[], T]) -> T:
        """Write what is left, give back the lease and do a last thing, all or nothing."""
        self._stop()

        def both() -> T:
            self.lease.give_back()
            return last()

        return self.write_with(both)

    def _write_with(self, other: Callable[[], T]) -> T:
        # By place and not by iteration: another thread may append meanwhile.
        answered = [self._waiting[i] for i in range(len(self._waiting))]
        with self._store.together():
            if answered:
                self._store.add(answered)
            told = other()
        # Not before: a failure forgets nothing, and all is tried again.
        for _ in answered:
            self._waiting.popleft()
        self._written = monotonic()
        return told

    def _stop(self) -> None:
        self._end.set()
        self._thread.join()

    def _write_now_and_then(self) -> None:
        wait = _WRITTEN_EVERY
        while not self._end.wait(wait):
            try:
                self.write_if_due()
                self.lease.renew()
            except Exception as failure:
                self._failure = failure
                return
            since = monotonic() - self._written
            wait = _WRITTEN_EVERY - since if since < _WRITTEN_EVERY else _WRITTEN_EVERY


class ExperimentSchedule:
    """What sessions have in common: an experiment that is put to an observer and perhaps to others
    beside it.
    """

    remarks: Sequence[str] = ()

    def __init__(self, experiment: Experiment, observer: Any, *others: Any) -> None:
        self.experiment = experiment
        self.observer = observer
        self.observers = {who.card.digest: who for who in (observer, *others)}
        #: Of a part of a run, which digests belong to it; None of a whole one.
        self.holds: Callable[[str], bool] | None = None

    def layout(self) -> dict[str, Any]:
        """All that a result needs besides the answers."""
        raise NotImplementedError

    def record(self, store: Store) -> RunRecord:
        """The run as the store keeps it; its key depends on all that could change a question or its
        reading.
        """
        experiment = self.experiment
        card = self.observer.card
        return RunRecord(
            experiment=experiment.name,
            experiment_digest=experiment.digest,
            experiment_toml=experiment.toml,
            observer=card.name,
            observer_digest=card.digest,
            observer_card=card.to_dict(),
            probe=experiment.probe,
            layout=self.layout(),
            software=software_versions(),
        )

    def contents(self) -> Iterator[tuple[str, str, Any]]:
        """The cards; what else is asked and shown is kept with the answers."""
        for observer in self.observers.values():
            yield observer.card.digest, "observer", observer.card.to_dict()

    def narrow(self, holds: Callable[[str], bool]) -> None:
        """Ask only that whose digests the function holds."""
        self.holds = holds

    def begin(self, record: RunRecord) -> None:
        """Nothing of an earlier record binds."""

    def tell(self, answers: Mapping[str, Mapping[str, Any]]) -> None:
        """Nothing depends on the answers."""

    def outcome(self) -> dict[str, Any]:
        """Nothing besides the answers."""
        return {}


def attributes_of(record: RunRecord, **values: Any) -> dict[str, Any]:
    """What a result tells of its run, further values among it as JSON; of software, all versions
    that answered.
    """
    versions: dict[str, list[str]] = {}
    for told in (record.software, *(origin.software for origin in record.origins)):
        for name, version in told.items():
            if version not in versions.setdefault(name, []):
                versions[name].append(version)
    software = {name: " and ".join(each) for name, each in versions.items()}
    if served := [origin.served for origin in record.origins if origin.served]:
        values["served"] = served
    return {
        "experiment": record.experiment,
        "experiment_digest": record.experiment_digest,
        "experiment_toml": record.experiment_toml,
        "probe": record.probe,
        "observer": record.observer,
        "random_weights": int(record.observer_card["random_weights"]),
        "psyprobe_version": software["psyprobe"],
        **{
            name: json.dumps(value, sort_keys=True)
            for name, value in {
                "observer_card": record.observer_card,
                "software": software,
                **values,
            }.items()
        },
    }
