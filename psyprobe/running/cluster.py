"""Workers of a Dask cluster: on this machine, or on hundreds.

Units of about a second are given out and come back as they are done. The unit of a dead worker is
given to another; the unit of a slow one is given to a second worker in the end, and the first
answer is taken. What a run has come to stands in its store and never in the cluster.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from queue import Empty, SimpleQueue
from time import monotonic
from typing import Any

from psyprobe.errors import InputError, PsyprobeError
from psyprobe.files.json_types import JsonMapping
from psyprobe.running.agenda import Agenda
from psyprobe.running.jobs import Answer, pack_job, put_anywhere
from psyprobe.running.protocol import Answered
from psyprobe.running.units import Round, Unit, deadly_unit_error

#: Units under way for each thread of the workers.
_UNITS_PER_THREAD = 2
#: How often Dask may lose all that it tries with a unit.
_LOSSES = 3
#: A unit is late after so many seconds at least, and so many times as long as units take.
_LATE = 20.0
_TIMES_LATE = 5.0
#: Seconds between looks at which workers are there and which units are late.
_GLANCE = 0.5
#: Seconds that a scheduler may take to answer.
_PATIENCE = 30.0


def is_client(value: Any) -> bool:
    """Tell whether something is a `dask.distributed.Client`."""
    return type(value).__module__.startswith("distributed.") and hasattr(
        value, "submit"
    )


class Cluster:
    """The workers of a Dask scheduler.

    Parameters
    ----------
    client : dask.distributed.Client
        Is left open.
    """

    def __init__(self, client: Any) -> None:
        self._client = client

    def put(
        self, answer: Answer, observers: JsonMapping, agenda: Agenda
    ) -> Iterator[Answered]:
        """Ask observers the batches of an agenda on Dask workers, and iterate over the answers.

        Raises
        ------
        PsyprobeError
            The scheduler has ended.
        """
        from cloudpickle import dumps

        job = pack_job(answer, observers, dumps)
        cluster_round = _ClusterRound(agenda, job, self._client, _resources(observers))
        try:
            yield from cluster_round.answers()
        except OSError as problem:
            raise PsyprobeError(
                f"the Dask scheduler cannot be reached any more ({type(problem).__name__}); what "
                "was answered is kept: start it again, and run the same command"
            ) from problem


class _ClusterRound(Round):
    """One round of batches that the workers of a cluster put."""

    def __init__(
        self, agenda: Agenda, job: bytes, client: Any, resources: dict[str, int] | None
    ) -> None:
        super().__init__(agenda, 1)
        self._client = client
        self._job = job
        self._options = {} if resources is None else {"resources": resources}
        self._counted_at = 0.0
        self._units: dict[Any, Unit] = {}
        self._done: SimpleQueue[Any] = SimpleQueue()

    def give(self) -> None:
        """Submit batches to the cluster until each of its threads has some in reserve."""
        # Workers may have come meanwhile.
        if monotonic() - self._counted_at > _GLANCE:
            self.worker_count = max(1, sum(self._client.nthreads().values()))
            self._counted_at = monotonic()
        while len(self._units) < _UNITS_PER_THREAD * self.worker_count:
            unit = self.take_unit()
            if unit is None:
                return
            self._submit(unit)

    def is_under_way(self) -> bool:
        """Tell whether a submitted unit of batches is unanswered."""
        return bool(self._units)

    def collect(self) -> Iterator[Answered]:
        """Wait a moment for a finished unit of batches, and iterate over its answers."""
        try:
            future = self._done.get(timeout=_GLANCE)
        except Empty:
            if not len(self.agenda):
                self._submit_late_units_again()
            return
        yield from self._answers_of(future)

    def cancel(self) -> None:
        """Cancel all units of batches that are submitted."""
        self._drop(list(self._units))

    def _answers_of(self, future: Any) -> list[Answered]:
        """Return the answers of a finished unit of batches, none if another worker had it first."""
        from distributed import KilledWorker
        from distributed.client import FutureCancelledError

        unit = self._units.pop(future, None)
        if unit is None:
            return []
        try:
            result = future.result()
        except (KilledWorker, FutureCancelledError) as problem:
            # It need not be to blame: Dask counts whatever waited on a worker when it died.
            unit.deaths += 1
            if unit.deaths >= _LOSSES:
                raise deadly_unit_error(unit, type(problem).__name__) from None
            self._submit(unit)
            return []
        self._drop([other for other in self._units if self._units[other] is unit])
        return self.receive(unit, result)

    def _submit_late_units_again(self) -> None:
        """Submit each unit of batches that takes far too long a second time."""
        limit = max(_LATE, _TIMES_LATE * (self.seconds_per_batch or 0.0))
        for unit, worker_count in Counter(self._units.values()).items():
            elapsed = monotonic() - unit.submitted_at
            if worker_count == 1 and elapsed > limit * len(unit.batches):
                self._submit(unit)

    def _drop(self, futures: list[Any]) -> None:
        """Forget units of batches and cancel them on the cluster."""
        for future in futures:
            del self._units[future]
        if futures:
            self._client.cancel(futures, force=True)

    def _submit(self, unit: Unit) -> None:
        """Submit a unit of batches to the cluster, to be told when it is done."""
        future = self._client.submit(
            put_anywhere, self._job, unit.batches, pure=False, **self._options
        )
        unit.submitted_at = monotonic()
        self._units[future] = unit
        future.add_done_callback(self._done.put)


def _resources(observers: JsonMapping) -> dict[str, int] | None:
    """Ask for a GPU of the cluster if an observer computes on one; else None."""
    needs_accelerator = any(
        observer.card.device not in ("cpu", "server") for observer in observers.values()
    )
    return {"GPU": 1} if needs_accelerator else None


def connect(address: str) -> Any:
    """Connect to a Dask scheduler at an address, and return the client.

    Raises
    ------
    InputError
        Dask is not installed, or no scheduler answers there.
    """
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
            "address, such as tcp://127.0.0.1:8786"
        ) from None
