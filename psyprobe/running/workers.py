"""Many workers, one result: batches are put to observers in processes beside this one; those that
die are replaced.

Only plain data travels, batches out and answers back, and only the process that called writes. A
worker loads an observer once, by name and options, and must come to the same card; what a probe
makes for one batch and keeps for the next, such as features of references, stays with the worker. A
batch is put whole and to one worker, and networks compute with as many threads as they would here,
so that neither the workers nor their number change a byte.
"""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import pickle
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection, wait
from queue import SimpleQueue
from time import perf_counter
from typing import Any, Self

from psyprobe.errors import InputError, PsyprobeError, describe_failure
from psyprobe.files.output import software_versions
from psyprobe.observers.protocol import Card, ServedObserver
from psyprobe.observers.registry import load_observer, loaded_as
from psyprobe.running.agenda import Agenda
from psyprobe.running.protocol import Answered, Batch, Origin

Answer = Callable[..., Iterator[Answered]]

#: Batches are packed into units of so many seconds, and a worker that is at shorter ones has a
#: second one waiting.
_UNIT_SECONDS = 0.2
#: Deaths of its worker after which a unit is given up.
_DEATHS = 2
#: Workers in a row that ended before they were ready: by themselves, or killed by who has reasons
#: of its own.
_STILLBORN = 3
_KILLED = 20
#: What a card tells besides what its digest covers, but for the device, which moves numbers.
_ASIDE = ("software", "weights", "licence", "paper")


# -- what travels
# ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Wanted:
    """An observer as a worker can come by it."""

    card: Mapping[str, Any]
    #: Name and options that load it, or the observer itself.
    loaded: tuple[str, Mapping[str, Any]] | None
    live: Any = None


@dataclass(frozen=True)
class Job:
    """What a worker needs before it can be given batches."""

    answer: Answer
    observers: Mapping[str, Wanted]
    #: With which torch computes; None where it was never imported.
    threads: int | None


def packed_job(
    answer: Answer, observers: Mapping[str, Any], dumps: Callable[[Any], bytes] = pickle.dumps
) -> bytes:
    """A job as bytes.

    Raises
    ------
    InputError
        An observer that was handed in cannot be sent.
    """
    wanted = {}
    for name, who in observers.items():
        loaded = loaded_as(who)
        wanted[name] = Wanted(who.card.to_dict(), loaded, None if loaded else who)
        try:
            dumps(wanted[name])
        except Exception as problem:  # each object that cannot be sent says so in its own way
            raise InputError(
                f"{who.card.name} cannot be sent to workers ({describe_failure(problem):.120}); load "
                "it by name, such as "
                "torch:FILE.py:FUNCTION, make it of a function that a module holds, or run "
                "without workers"
            ) from problem
    torch = sys.modules.get("torch")
    return dumps(Job(answer, wanted, None if torch is None else torch.get_num_threads()))


class _Coming:
    """Batches as they are put, and how many are known: what a probe keeps between them outlives a
    unit.
    """

    def __init__(self) -> None:
        self.batches: deque[Batch] = deque()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Batch:
        if not self.batches:
            raise StopIteration
        return self.batches.popleft()

    def __length_hint__(self) -> int:
        return len(self.batches)


class Desk:
    """Where a worker puts batches to the observers of a job."""

    def __init__(self, packed: bytes, last: Desk | None = None) -> None:
        job: Job = pickle.loads(packed)
        self._answer = job.answer
        known = {} if last is None else last._observers
        self._observers: dict[str, Any] = {
            digest: _seated(wanted, known.get(digest)) for digest, wanted in job.observers.items()
        }
        self._origins = {
            digest: Origin({**software_versions(), **who.card.software}, who.card.device)
            for digest, who in self._observers.items()
        }
        if job.threads is not None:
            import torch

            torch.set_num_threads(job.threads)
        self._coming = _Coming()
        self._answers: Iterator[Answered] | None = None

    def put(self, batches: Sequence[Batch]) -> list[Answered]:
        """All answers to some batches."""
        left = {question.key for batch in batches for question in batch.questions}
        found: list[Answered] = []
        self._coming.batches.extend(batches)
        try:
            while left:
                if self._answers is None:
                    self._answers = self._answer(self._observers, self._coming)
                answered = next(self._answers, None)
                if answered is not None:
                    left.discard(answered.question.key)
                    found.append(replace(answered, origin=self._origin(answered)))
                elif not self._coming.batches:
                    break
                else:
                    self._answers = None
        except BaseException:
            self._answers = None
            self._coming.batches.clear()
            raise
        return found

    def _origin(self, answered: Answered) -> Origin:
        origin = self._origins[answered.question.observer]
        served = answered.origin.served
        return replace(origin, served=served) if served else origin


def _seated(wanted: Wanted, known: Any) -> Any:
    """The observer, which must have the card that is wanted; one that the last job left here if it
    was loaded alike.
    """
    expected = Card.from_dict(wanted.card)
    if wanted.loaded is None:
        who = wanted.live
    elif known is not None and loaded_as(known) == wanted.loaded:
        return known
    else:
        name, options = wanted.loaded
        who = load_observer(name, **options)
    same_device = who.card.device.partition(":")[0] == expected.device.partition(":")[0]
    if who.card.digest == expected.digest and same_device:
        return who
    found = who.card.to_dict()
    differing = next(
        name for name, value in wanted.card.items() if name not in _ASIDE and found[name] != value
    )
    raise InputError(
        f"a worker's {expected.name} is another one: its {differing} is "
        f"{found[differing]!r:.80} and not "
        f"{wanted.card[differing]!r:.80}; give all workers the same weights, packages and devices"
    )


def portable(problem: BaseException) -> PsyprobeError:
    """What went wrong in a worker, as it can be raised in another process."""
    if isinstance(problem, PsyprobeError):
        try:
            pickle.loads(pickle.dumps(problem))
            return problem
        except Exception:  # an error that carries what cannot travel: its sentence can
            return PsyprobeError(str(problem))
    return PsyprobeError(f"a worker failed at {describe_failure(problem)}")


#: The desk of a process that a cluster gives units, by the digest of its job; one unit at a time.
_DESK: dict[str, Desk] = {}
_AT_THE_DESK = threading.Lock()


def ask_unit(packed: bytes, batches: Sequence[Batch]) -> tuple[float, list[Answered]]:
    """Seconds, and all answers to some batches, in whatever process this is called."""
    with _AT_THE_DESK:
        name = hashlib.sha256(packed).hexdigest()
        try:
            if name not in _DESK:
                desk = Desk(packed, *_DESK.values())
                _DESK.clear()
                _DESK[name] = desk
            start = perf_counter()
            answers = _DESK[name].put(batches)
            return perf_counter() - start, answers
        except Exception as problem:
            raise portable(problem) from None


# -- units
# -----------------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class Unit:
    """Batches that are given to a worker together."""

    batches: list[Batch]
    #: How often its worker died over it.
    deaths: int = 0

    @property
    def group(self) -> str:
        """What was made for its last batch."""
        return self.batches[-1].group


@dataclass
class Pace:
    """How long a batch takes, measured as units come back, and so how many are a unit."""

    seconds_a_unit: float
    #: Of a batch; None before the first came back.
    mean: float | None = None

    def took(self, seconds: float, unit: Unit) -> None:
        """Learn from a unit."""
        each = seconds / len(unit.batches)
        self.mean = each if self.mean is None else 0.7 * self.mean + 0.3 * each

    def next_unit(self, agenda: Agenda, workers: int, group: str = "") -> Unit | None:
        """What is taken of an agenda for one of so many workers; fewer towards the end, so that all
        end together.
        """
        wanted = 1 if self.mean is None else int(self.seconds_a_unit / max(self.mean, 1e-6))
        most = -(-len(agenda) // (2 * workers))
        batches: list[Batch] = []
        while (
            len(batches) < max(1, min(wanted, most)) and (batch := agenda.take(group)) is not None
        ):
            batches.append(batch)
            group = batch.group
        return Unit(batches) if batches else None


def given_up(unit: Unit, why: str) -> PsyprobeError:
    """The error of a unit that kills its workers."""
    questions = [question for batch in unit.batches for question in batch.questions]
    return PsyprobeError(
        f"a worker died {unit.deaths} times ({why}) over the same {len(questions)} questions, "
        "the first of which is "
        f"{questions[0].key[:12]}; what else was answered is kept: see whether memory runs out, "
        "and run again with "
        "fewer workers, a smaller batch or none"
    )


# -- processes beside this one
# ---------------------------------------------------------------------------------------


@dataclass(eq=False)
class _Worker:
    process: Any
    connection: Connection
    #: The job that it was told; `ready` once it has loaded the observers.
    job: bytes = b""
    ready: bool = False
    #: What it was given and has not answered; it is at the first.
    units: deque[Unit] = field(default_factory=deque)
    group: str = ""

    def tell(self, message: Any) -> None:
        """Send a message; of one that is dead, its connection tells."""
        try:
            self.connection.send_bytes(pickle.dumps(message))
        except OSError:
            return

    def end(self) -> None:
        """Kill it, whatever it is at."""
        self.process.kill()
        self.process.join()
        self.connection.close()


class WorkerPool:
    """Processes beside this one that put batches to observers; whichever dies is replaced.

    Parameters
    ----------
    count : int
        How many.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._workers: list[_Worker] = []
        self._stillborn = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers:
            worker.end()
        self._workers.clear()

    @property
    def pids(self) -> list[int]:
        """The processes that are there now."""
        return [worker.process.pid for worker in self._workers]

    def put(
        self, answer: Answer, observers: Mapping[str, Any], agenda: Agenda
    ) -> Iterator[Answered]:
        """Put batches to observers; those behind a server are asked from here, many at once as they
        are.
        """
        if any(isinstance(observer, ServedObserver) for observer in observers.values()):
            yield from answer(observers, agenda)
            return
        job = packed_job(answer, observers)
        pace = Pace(_UNIT_SECONDS)
        again = deque[Unit]()
        failure: PsyprobeError | None = None
        self._stillborn = 0
        try:
            while True:
                if failure is None:
                    self._staff(len(agenda) + len(again), job)
                    for worker in self._workers:
                        self._give(worker, job, pace, again, agenda)
                busy = [
                    worker
                    for worker in self._workers
                    if worker.units or (failure is None and not worker.ready)
                ]
                if not (
                    any(worker.units for worker in busy)
                    or (failure is None and (again or len(agenda)))
                ):
                    break
                heard = wait([worker.connection for worker in busy])
                for worker in [each for each in busy if each.connection in heard]:
                    try:
                        told = pickle.loads(worker.connection.recv_bytes())
                    except (EOFError, OSError):
                        failure = failure or self._bury(worker, again)
                        continue
                    if isinstance(told, PsyprobeError):
                        failure = failure or told
                        if not worker.ready:
                            self._dismiss(worker)
                        else:
                            worker.units.popleft()
                    elif told is None:
                        worker.ready = True
                        self._stillborn = 0
                    else:
                        seconds, answers = told
                        pace.took(seconds, worker.units.popleft())
                        yield from answers
            if failure is not None:
                raise failure
        finally:
            # What was interrupted, or is about to fail, would answer the next round.
            for worker in [
                each for each in self._workers if each.units or (failure and not each.ready)
            ]:
                self._dismiss(worker)

    def _staff(self, batches: int, job: bytes) -> None:
        """Start processes that are lacking, and tell all of them the job."""
        while len(self._workers) < min(self._count, batches):
            self._workers.append(_started())
        for worker in self._workers:
            if worker.job != job:
                worker.job = job
                worker.ready = False
                worker.group = ""
                worker.tell(job)

    def _give(
        self, worker: _Worker, job: bytes, pace: Pace, again: deque[Unit], agenda: Agenda
    ) -> None:
        """See that a worker has something to do, and where that is short something more."""
        ahead = pace.mean is not None and pace.mean < _UNIT_SECONDS
        while worker.ready and len(worker.units) < 1 + ahead:
            unit = again.popleft() if again else pace.next_unit(agenda, self._count, worker.group)
            if unit is None:
                return
            worker.units.append(unit)
            worker.group = unit.group
            worker.tell(unit.batches)

    def _dismiss(self, worker: _Worker) -> None:
        self._workers.remove(worker)
        worker.end()

    def _bury(self, worker: _Worker, again: deque[Unit]) -> PsyprobeError | None:
        """Take back what a dead worker had; the error if it must not be given to another."""
        self._dismiss(worker)
        code = worker.process.exitcode
        if not worker.ready:
            self._stillborn += 1
            if self._stillborn < (_KILLED if code == -9 else _STILLBORN):
                return None
            return PsyprobeError(
                f"{self._stillborn} workers in a row ended before they were ready (exit code "
                f"{code}); a script that "
                "runs with workers does so under if __name__ == '__main__':"
            )
        again.extendleft(reversed(worker.units))
        if not worker.units:
            return None
        at = worker.units[0]
        worker.units = deque()
        at.deaths += 1
        return given_up(at, f"exit code {code}") if at.deaths >= _DEATHS else None


def _started() -> _Worker:
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=_serve, args=(there,), name="psyprobe-worker", daemon=True)
    process.start()
    there.close()
    return _Worker(process, here)


def _serve(connection: Connection) -> None:
    """Answer what comes until nobody is there any more: bytes are a job, which is answered by None,
    lists are units.
    """
    # Ctrl-C reaches the whole group, and whoever called ends its workers itself.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    incoming: SimpleQueue[bytes] = SimpleQueue()
    threading.Thread(target=_hear, args=(connection, incoming), daemon=True).start()
    desk: Desk | None = None
    while True:
        message = incoming.get()
        try:
            told = pickle.loads(message)
            if isinstance(told, bytes):
                desk = Desk(told, desk)
                reply = pickle.dumps(None)
            else:
                assert desk is not None
                start = perf_counter()
                answers = desk.put(told)
                reply = pickle.dumps((perf_counter() - start, answers))
        except (Exception, SystemExit) as problem:
            reply = pickle.dumps(portable(problem))
        connection.send_bytes(reply)


def _hear(connection: Connection, incoming: SimpleQueue[bytes]) -> None:
    """Take in what comes even while the worker is busy: neither side ever waits for the other to
    read.
    """
    while True:
        try:
            incoming.put(connection.recv_bytes())
        except (EOFError, OSError):
            os._exit(0)
