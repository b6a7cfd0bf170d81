"""Worker processes of this machine; those that die are replaced."""

from __future__ import annotations

import multiprocessing
import pickle
import signal
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any, Self

from psyprobe.errors import PsyprobeError
from psyprobe.files.json_types import JsonMapping
from psyprobe.observers.protocol import ServedObserver
from psyprobe.running.agenda import Agenda
from psyprobe.running.jobs import Answer, JobRunner, pack_job, portable_error, put_timed
from psyprobe.running.protocol import Answered
from psyprobe.running.units import Round, Unit, deadly_unit_error

#: Deaths of its worker after which a unit is given up.
_DEATHS = 2
#: Workers in a row that were killed before they were ready, after which all is given up: whoever
#: kills one may have reasons of their own.
_STILLBORN = 20


@dataclass(eq=False)
class _Worker:
    process: Any
    connection: Connection
    #: The job that it was sent.
    job: bytes = b""
    #: Jobs that it was sent and has not answered, the last of which is its job.
    pending_jobs: int = 0
    #: What it was given and has not answered.
    unit: Unit | None = None
    #: The group of the last batch that it was given.
    group: str = ""

    @property
    def ready(self) -> bool:
        """Tell whether the worker has loaded the observers of its job."""
        return self.pending_jobs == 0

    def send(self, message: Any) -> None:
        """Send a worker a message; a dead worker shows when its connection is read."""
        with suppress(OSError):
            self.connection.send_bytes(pickle.dumps(message))

    def end(self) -> None:
        """Kill the worker process, whatever it is doing."""
        self.process.kill()
        self.process.join()
        self.connection.close()


class WorkerPool:
    """Processes beside this one that put batches to observers; a process that dies is replaced.

    Parameters
    ----------
    count : int
        Number of processes.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._workers: list[_Worker] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers:
            worker.end()
        self._workers.clear()

    @property
    def pids(self) -> list[int]:
        """The ids of the running worker processes."""
        return [worker.process.pid for worker in self._workers]

    def put(
        self, answer: Answer, observers: JsonMapping, agenda: Agenda
    ) -> Iterator[Answered]:
        """Ask observers the batches of an agenda on worker processes; servers are asked from this
        one.
        """
        if any(isinstance(observer, ServedObserver) for observer in observers.values()):
            yield from answer(observers, agenda)
            return
        job = pack_job(answer, observers)
        yield from _PoolRound(agenda, job, self._workers, self._count).answers()


class _PoolRound(Round):
    """One round of batches that the processes of a pool put."""

    def __init__(
        self, agenda: Agenda, job: bytes, workers: list[_Worker], worker_count: int
    ) -> None:
        super().__init__(agenda, worker_count)
        self._job = job
        self._workers = workers
        #: Units of dead workers.
        self._lost: list[Unit] = []
        self._stillborn = 0

    def give(self) -> None:
        """Start worker processes as needed, and send a unit of batches to each idle one."""
        batch_count = len(self.agenda) + len(self._lost)
        while len(self._workers) < min(self.worker_count, batch_count):
            self._workers.append(_start_worker())
        for worker in self._workers:
            if worker.job != self._job:
                worker.job = self._job
                worker.pending_jobs += 1
                worker.group = ""
                worker.send(self._job)
            elif worker.ready and worker.unit is None:
                self._give_unit(worker)

    def is_under_way(self) -> bool:
        """Tell whether a worker is busy, or batches are left and nothing failed."""
        has_more = bool(self._lost) or len(self.agenda) > 0
        return any(worker.unit for worker in self._workers) or (
            self.failure is None and has_more
        )

    def collect(self) -> Iterator[Answered]:
        """Wait until a busy worker reports, and iterate over the answers of those that have."""
        busy_workers = [
            worker
            for worker in self._workers
            if worker.unit or (self.failure is None and not worker.ready)
        ]
        readable = wait([worker.connection for worker in busy_workers])
        for worker in busy_workers:
            if worker.connection in readable:
                yield from self._receive(worker)

    def cancel(self) -> None:
        """End each worker that is busy, or still loading after a failure."""
        # What was interrupted, or is about to fail, would answer the next round.
        for worker in list(self._workers):
            if worker.unit or (self.failure and not worker.ready):
                self._dismiss(worker)

    def _give_unit(self, worker: _Worker) -> None:
        """Send a worker the next unit of batches, first those that a lost worker had."""
        worker.unit = self._lost.pop() if self._lost else self.take_unit(worker.group)
        if worker.unit is not None:
            worker.group = worker.unit.batches[-1].group
            worker.send(worker.unit.batches)

    def _receive(self, worker: _Worker) -> Iterator[Answered]:
        """Handle a worker's message: an error, that it is ready, or answers."""
        try:
            message = pickle.loads(worker.connection.recv_bytes())
        except (EOFError, OSError):
            self._bury(worker)
            return
        if worker.pending_jobs > 1:
            # The round of that job ended before this worker had loaded it.
            worker.pending_jobs -= 1
            return
        unit = worker.unit
        worker.unit = None
        if isinstance(message, PsyprobeError):
            if not worker.ready:
                self._dismiss(worker)
            raise message
        if unit is None:
            worker.pending_jobs = 0
            self._stillborn = 0
        else:
            yield from self.receive(unit, message)

    def _dismiss(self, worker: _Worker) -> None:
        """End a worker process and take it from the pool."""
        self._workers.remove(worker)
        worker.end()

    def _bury(self, worker: _Worker) -> None:
        """Take back the batches of a dead worker, refusing those that killed several."""
        self._dismiss(worker)
        exit_code = worker.process.exitcode
        if not worker.ready:
            self._stillborn += 1
            if exit_code != -9 or self._stillborn >= _STILLBORN:
                raise PsyprobeError(
                    f"a worker ended before it was ready (exit code {exit_code}); a script that "
                    "runs with workers does so under if __name__ == '__main__':"
                )
        elif worker.unit:
            self._lost.append(worker.unit)
            worker.unit.deaths += 1
            if worker.unit.deaths >= _DEATHS:
                raise deadly_unit_error(worker.unit, f"exit code {exit_code}")


def _start_worker() -> _Worker:
    """Start a worker process with a pipe to it."""
    context = multiprocessing.get_context("spawn")
    connection, worker_connection = context.Pipe()
    process = context.Process(
        target=_serve, args=(worker_connection,), name="psyprobe-worker", daemon=True
    )
    process.start()
    worker_connection.close()
    return _Worker(process, connection)


def _serve(connection: Connection) -> None:
    """Serve as a worker: load the job that comes as bytes, answer batches that come as lists."""
    # Ctrl-C reaches the whole process group, and the process that called ends its workers itself.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    runner: JobRunner | None = None
    # An error here means that the other side has ended.
    with suppress(EOFError, OSError):
        while True:
            packed_message = connection.recv_bytes()
            try:
                message = pickle.loads(packed_message)
                if isinstance(message, bytes):
                    runner = JobRunner(message, runner)
                    reply = pickle.dumps(None)
                else:
                    assert runner is not None
                    reply = pickle.dumps(put_timed(runner, message))
            except (Exception, SystemExit) as problem:
                reply = pickle.dumps(portable_error(problem))
            connection.send_bytes(reply)
