"""Open what puts batches elsewhere: worker processes of this machine, or those of a cluster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from psyprobe.errors import InputError
from psyprobe.running.cluster import Cluster, connect, is_client
from psyprobe.running.loop import Executor
from psyprobe.running.workers import WorkerPool

#: Most processes; more than any machine has cores.
_MOST_WORKERS = 4096


@contextmanager
def open_executor(executor: Any) -> Iterator[Executor | None]:
    """Open what `psyprobe.run` was given to compute on; None is this process.

    What is started here ends with the block.

    Raises
    ------
    InputError
        It is none of what `psyprobe.run` takes.
    """
    if isinstance(executor, int) and not isinstance(executor, bool):
        if not 1 <= executor <= _MOST_WORKERS:
            raise InputError(
                f"workers are {executor}; give a whole number from 1 to {_MOST_WORKERS}"
            )
        if executor == 1:
            yield None
            return
        with WorkerPool(executor) as pool:
            yield pool
    elif isinstance(executor, str):
        with connect(executor) as client:
            yield Cluster(client)
    elif is_client(executor):
        yield Cluster(executor)
    elif isinstance(executor, Executor):
        yield executor
    else:
        raise InputError(
            f"executor is {executor!r:.80}; give a number of worker processes, the address of a "
            "Dask scheduler, or a dask.distributed.Client"
        )
