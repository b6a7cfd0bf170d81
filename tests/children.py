"""Child processes of tests: each has a bounded life, whatever becomes of the test that started
it."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Timer
from typing import Any


@contextmanager
def child(
    arguments: Sequence[str | Path], seconds: float = 1200.0, **options: Any
) -> Iterator[subprocess.Popen[Any]]:
    """A process that is killed when the block is left, or when its time is over while the test
    still waits for it.

    Parameters
    ----------
    arguments : sequence of str or Path
        The command.
    seconds : float
        That it may live.
    **options
        Of `subprocess.Popen`.
    """
    process = subprocess.Popen(arguments, **options)
    deadline = Timer(seconds, process.kill)
    deadline.daemon = True
    deadline.start()
    try:
        yield process
    finally:
        deadline.cancel()
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                stream.close()
