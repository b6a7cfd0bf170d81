"""Batches put to observers by the workers of a Dask cluster: on this machine, or on hundreds.

Units of about a second are given out and come back as they are done. What a dead worker was at is
given to another; what a slow one is at is given to a second in the end, and whichever answers first
is taken. What a run has come to stands in its store and never in the cluster.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from time import monotonic
from typing import Any, Self

from psyprobe.errors import InputError, PsyprobeError
from psyprobe.running.agenda import Agenda
from psyprobe.running.protocol import Answered
from psyprobe.running.workers import Answer, Pace, Unit, ask_unit, given_up, packed_job

#: Batches are packed into units of so many seconds: the scheduler wants some milliseconds for each.
_UNIT_SECONDS = 1.0
#: Units under way for each thread of the workers.
_UNDER_WAY = 2
#: How often Dask may lose all that it tries with a unit.
_LOSSES = 3
#: A unit is late after so many seconds at least, and so many times as long as units take.
_LATE = 20.0
_TIMES_LATE = 5.0
#: Seconds between looks at who is there and what is late.
_GLANCE = 0.5
#: Seconds that a scheduler may take to answer.
_PATIENCE = 30.0


def is_client(thing: Any) -> bool:
    """Whether something is a `dask.distributed.Client`."""
    return type(thing).__module__.startswith("distributed.") and hasattr(thing, "submit")


@dataclass(eq=False)
class _Given(Unit):
    """A unit with what became of it."""

    futures: list[Any] = field(default_factory=list)
    since: float = 0.0
    done: bool = False


class Cluster:
    """The workers of a Dask scheduler.

    Parameters
    ----------
    client : str or dask.distributed.Client
        The scheduler's address, or a client, which is left open.

    Raises
    ------
    InputError
        Dask is not installed, or no scheduler answers there.
    """

    def __init__(self, client: Any) -> None:
        self._own = isinstance(client, str)
        self._client = _connected(client) if self._own else client

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._own:
            self._client.close()

    def put(
        self, answer: Answer, observers: Mapping[str, Any], agenda: Agenda
    ) -> Iterator[Answered]:
        """Put batches to observers, each on a worker that has loaded them."""
        from cloudpickle import dumps

        job = packed_job(answer, observers, dumps)
        run = _Run(self._client, job, _resources(observers))
        failure: BaseException | None = None
        try:
            while True:
                if failure is None:
                    run.give(agenda)
                if not run.units:
                    break
                try:
                    future = run.done.get(timeout=_GLANCE)
                except Empty:
                    if not len(agenda):
                        run.give_late_ones_again()
                    continue
                try:
                    yield from run.answers(future)
                except PsyprobeError as problem:
                    failure = failure or problem
            if failure is not None:
                raise failure
        finally:
            run.cancel()


class _Run:
    """What is under way of one round."""

    def __init__(self, client: Any, job: bytes, resources: dict[str, int] | None) -> None:
        self._client = client
        self._job = job
        self._resources = resources
        self._pace = Pace(_UNIT_SECONDS)
        self._threads = 1
        self._looked = 0.0
        self.units: dict[Any, _Given] = {}
        self.done: SimpleQueue[Any] = SimpleQueue()

    def give(self, agenda: Agenda) -> None:
        """Have enough under way for all workers, those among them that have come meanwhile."""
        if monotonic() - self._looked > _GLANCE:
            self._threads, self._looked = max(1, sum(self._client.nthreads().values())), monotonic()
        while len(self.units) < _UNDER_WAY * self._threads:
            unit = self._pace.next_unit(agenda, self._threads)
            if unit is None:
                return
            self._submit(_Given(unit.batches))

    def answers(self, future: Any) -> list[Answered]:
        """The answers of a unit that is done; none where another worker was faster, or it must be
        given again.
        """
        from distributed import KilledWorker
        from distributed.client import FutureCancelledError

        unit = self.units.pop(future, None)
        if unit is None or unit.done:
            return []
        try:
            seconds, answers = future.result()
        except (KilledWorker, FutureCancelledError) as problem:
            # It need not be to blame: Dask counts whatever waited on a worker when it died.
            unit.deaths += 1
            if unit.deaths >= _LOSSES:
                raise given_up(unit, type(problem).__name__) from None
            self._submit(unit)
            return []
        unit.done = True
        self._pace.took(seconds, unit)
        self._drop(other for other in unit.futures if other is not future)
        found: list[Answered] = answers
        return found

    def give_late_ones_again(self) -> None:
        """Give what takes far too long to a second worker."""
        late = max(_LATE, _TIMES_LATE * (self._pace.mean or 0.0))
        for unit in set(self.units.values()):
            if len(unit.futures) == 1 and monotonic() - unit.since > late * len(unit.batches):
                self._submit(unit)

    def cancel(self) -> None:
        """Take back what is still under way."""
        self._drop(list(self.units))

    def _drop(self, futures: Any) -> None:
        left = [future for future in futures if self.units.pop(future, None) is not None]
        if left:
            self._client.cancel(left, force=True)

    def _submit(self, unit: _Given) -> None:
        options = {} if self._resources is None else {"resources": self._resources}
        future = self._client.submit(ask_unit, self._job, unit.batches, pure=False, **options)
        unit.futures.append(future)
        unit.since = monotonic()
        self.units[future] = unit
        future.add_done_callback(self.done.put)


def _resources(observers: Mapping[str, Any]) -> dict[str, int] | None:
    accelerated = any(
        observer.card.device not in ("cpu", "server") for observer in observers.values()
    )
    return {"GPU": 1} if accelerated else None


def _connected(address: str) -> Any:
    try:
        from distributed import Client
    except ImportError:
        raise InputError(
            "a scheduler needs Dask: pip install 'psyprobe[cluster]'; without it, take worker "
            "processes of this machine"
        ) from None
    try:
        return Client(address, timeout=_PATIENCE)
    except (OSError, ValueError, ImportError) as problem:
        raise InputError(
            f"no Dask scheduler answers at {address!r:.80} ({type(problem).__name__}); give its "
            "address, such as "
            "tcp://127.0.0.1:8786"
        ) from None
