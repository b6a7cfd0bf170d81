"""The one loop: take a round, look up what the store has, ask the rest, write each answer as it
comes, tell.

A round is planned from nothing but the answers to the rounds before, and answers are read back from
the store. So neither what puts the questions, nor how many are under way, nor the order in which
answers arrive, nor an interruption changes a result.

Two processes on one store share the work: each takes batches on lease, and waits in the end for
what the other is asking.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cached_property, partial
from threading import Event, RLock, Thread
from time import monotonic
from typing import Any, Protocol, Self, TypeVar, runtime_checkable

from psyprobe.errors import PsyprobeError, StoreError, UnfinishedError, failure_kind
from psyprobe.files.json_types import JsonMapping
from psyprobe.files.terminal import printable_line, progress_bar
from psyprobe.observers.chat.cost_summary import show_cost
from psyprobe.running.agenda import Agenda
from psyprobe.running.lease import Lease
from psyprobe.running.origins import Origins
from psyprobe.running.protocol import (
    DIGEST_DIGITS,
    Answered,
    Attempt,
    Batch,
    Probe,
    RunRecord,
    Schedule,
    question_keys,
)
from psyprobe.running.store import Store, utc_now

T = TypeVar("T")

#: Seconds between two times of writing.
_INTERVAL = 0.5
#: Seconds between looks at whether it is time to.
_GLANCE = 0.1
#: Characters of what is kept of an error.
_LONGEST_MESSAGE = 500
#: Puts batches to observers, as `Probe.answer` does.
Put = Callable[[JsonMapping, Agenda], Iterator[Answered]]


@runtime_checkable
class Executor(Protocol):
    """Puts batches to observers elsewhere than in this process."""

    def put(
        self,
        answer: Callable[..., Iterator[Answered]],
        observers: JsonMapping,
        agenda: Agenda,
    ) -> Iterator[Answered]:
        """Ask observers the batches of an agenda by a probe's `answer`, and yield the answers."""


def ask(
    store: Store,
    probe: Probe,
    schedule: Schedule,
    *,
    description: str,
    progress: bool | None = None,
    executor: Executor | None = None,
    part: bool = False,
) -> RunRecord:
    """Ask the questions of a schedule that the store has no answers to, and record the run.

    Parameters
    ----------
    store : Store
        Opened.
    probe : Probe
        Puts batches to observers.
    schedule : Schedule
        Of the probe; says what comes next.
    description : str
        What stands before the progress bar.
    progress : bool, optional
        Whether to show one; by default on a terminal and in a notebook.
    executor : Executor, optional
        Puts the batches; by default this process does.
    part : bool
        Whether the schedule asks a part only, which leaves the run unfinished.

    Returns
    -------
    RunRecord
        The run, finished unless only a part was asked.
    """
    put_batches: Put = (
        probe.answer if executor is None else partial(executor.put, probe.answer)
    )
    origins = Origins(store, schedule.observers, probe.answer)
    planned = schedule.record(store)
    with store.transaction():
        store.add_contents(schedule.contents())
        record = store.begin_run(planned)
    schedule.begin(record)
    origin_ids: set[int] = set()
    keys: set[str] = set()
    writer = Writer(store, record.experiment, record.observer)
    with (
        _record_attempt(store, record),
        writer,
        progress_bar(0, progress, "question") as bar,
    ):
        bar.set_description(description)
        bar.total = schedule.question_count
        put_with_bar = (
            put_batches
            if bar.disable
            else lambda observers, agenda: show_cost(
                bar, observers, put_batches(observers, agenda)
            )
        )
        while batches := schedule.next():
            # Before the next one: the last answers are written with the end of the run.
            writer.write()
            origin_ids |= store.origin_ids(keys)
            keys = ask_round(
                store,
                put_with_bar,
                schedule.observers,
                origins,
                batches,
                bar,
                writer,
                partial(_watch, schedule, store, record, writer),
            )
            schedule.tell(_Answers(store, writer, keys))
        if part:
            return record
        outcome = schedule.outcome()
        return writer.end(
            lambda: store.finish_run(
                record, outcome, origin_ids | store.origin_ids(keys)
            )
        )


@contextmanager
def _record_attempt(store: Store, record: RunRecord) -> Iterator[None]:
    """Store how the block ends that asks the questions of a run, unless it comes to its end.

    Parameters
    ----------
    store : Store
        Opened.
    record : RunRecord
        The run, begun.
    """
    started = utc_now()
    try:
        yield
    except BaseException as error:
        how = "interrupted" if isinstance(error, KeyboardInterrupt) else "failed"
        if isinstance(error, UnfinishedError):
            how = "unfinished"
        # What went wrong is what counts, and it may be the store.
        with suppress(Exception):
            counts = store.database.count_answers()
            attempt = Attempt(
                record.key[:DIGEST_DIGITS],
                started,
                utc_now(),
                how,
                failure_kind(error) if how == "failed" else "",
                printable_line(str(error) or type(error).__name__)[:_LONGEST_MESSAGE],
                counts.get((record.observer_digest[:DIGEST_DIGITS], record.label), 0),
            )
            store.add_attempt(attempt)
        raise


def ask_round(
    store: Store,
    put_batches: Put,
    observers: JsonMapping,
    origins: Origins,
    batches: Sequence[Batch],
    bar: Any,
    writer: Writer,
    watch: Callable[[Answered], None] | None = None,
) -> set[str]:
    """Ask those questions of batches that the store has no answers to; return all keys.

    Their answers are written when the writer is. `watch` may end the round by an error.
    """
    writer.write()
    keys = question_keys(batches)
    bar.total = max(bar.total or 0, bar.n + len(keys))
    origins.repeats.check(batches)
    agenda = Agenda(store, batches, writer)
    missing_count = agenda.missing_count
    bar.update(len(keys) - missing_count)
    if missing_count:
        origins.report_changes()
        while agenda.wait():
            for answered in put_batches(observers, agenda):
                origin = origins.resolve(answered.question.observer, answered.origin)
                writer.add(
                    replace(answered, origin=origin, experiment=writer.experiment)
                )
                if watch is not None:
                    watch(answered)
                if missing_count:
                    missing_count -= 1
                    bar.update()
    # Another process may have answered the rest meanwhile.
    bar.update(missing_count)
    return keys


def _watch(
    schedule: Schedule,
    store: Store,
    record: RunRecord,
    writer: Writer,
    answered: Answered,
) -> None:
    """Show a schedule an answer; if it gives the observer up, the run keeps the reason."""
    try:
        schedule.watch(answered)
    except PsyprobeError as reason:
        writer.write_with(partial(store.adopt_run, record.give_up(str(reason))))
        raise


class _Answers(Mapping[str, JsonMapping]):
    """The answers of a round by the keys of its questions, read when a schedule wants to know
    them.
    """

    def __init__(self, store: Store, writer: Writer, keys: set[str]) -> None:
        self._store = store
        self._writer = writer
        self._keys = keys

    @cached_property
    def _answers(self) -> Mapping[str, JsonMapping]:
        """The answers to all questions of the round, by key, read from the store."""
        self._writer.write()
        return self._store.answers(self._keys)

    def __getitem__(self, key: str) -> JsonMapping:
        return self._answers[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._answers)

    def __len__(self) -> int:
        return len(self._answers)


class Writer:
    """Collects answers and writes them every half second, from a thread of its own.

    It holds the lease, too, since a commit, which is synced to the disk, takes as long for little
    as for much: what is taken, answered and given back is written together.

    Parameters
    ----------
    store : Store
        Opened.
    experiment, observer : str
        Names of what is asked and of whom, which go with the answers and into the lease.
    """

    def __init__(self, store: Store, experiment: str = "", observer: str = "") -> None:
        self.experiment = experiment
        self.lease = Lease(
            store.database, f"{experiment} with {observer}" if experiment else ""
        )
        self._store = store
        self._waiting: deque[Answered] = deque()
        self._lock = RLock()
        self._end = Event()
        self._failure: Exception | None = None
        self._written_at = monotonic()
        self._thread = Thread(target=self._write_by_the_clock, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()
        try:
            if self._waiting:
                self.write_with(self.lease.give_back)
        finally:
            # What went wrong before is what counts; a lease ends by itself.
            with suppress(StoreError):
                self.lease.give_back()

    def add(self, answered: Answered) -> None:
        """Queue an answer to be written, raising the writing thread's error if it has one."""
        self._waiting.append(answered)
        if self._failure is not None:
            raise self._failure

    def write_if_due(self) -> None:
        """Write the queued answers if the last writing is long enough ago."""
        if monotonic() - self._written_at >= _INTERVAL:
            self.write()

    def write(self) -> None:
        """Write the queued answers to the store."""
        if self._waiting:
            self.write_with(lambda: None)

    def write_with(self, action: Callable[[], T]) -> T:
        """Write the queued answers and run another write, both or neither."""
        with self._lock:
            # By index and not by iteration: another thread may append meanwhile.
            answered = [self._waiting[i] for i in range(len(self._waiting))]
            with self._store.transaction():
                if answered:
                    self._store.add(answered)
                result = action()
            # Not before: a failure forgets nothing, and all is tried again.
            for _ in answered:
                self._waiting.popleft()
            self._written_at = monotonic()
        return result

    def end(self, action: Callable[[], T]) -> T:
        """Write the last answers, release the lease and run another write, all or nothing."""
        self._stop()

        def give_back_and_act() -> T:
            self.lease.give_back()
            return action()

        return self.write_with(give_back_and_act)

    def _stop(self) -> None:
        """End the thread that writes by the clock, and wait for it."""
        self._end.set()
        self._thread.join()

    def _write_by_the_clock(self) -> None:
        """Write answers and signs of life at intervals until stopped, keeping a failure."""
        while not self._end.wait(_GLANCE):
            try:
                self.write_if_due()
                self.lease.beat()
            except Exception as failure:
                self._failure = failure
                return
