"""``psyprobe run --batch``: ask in files in place of one question after the other."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from psyprobe.errors import InputError

if TYPE_CHECKING:
    from psyprobe.observers.batch_files.observer import BatchObserver


def batch_wrapper(
    arguments: argparse.Namespace,
) -> Callable[[Any], BatchObserver] | None:
    """Return a function that puts an observer's questions in files; None without `--batch`."""
    if arguments.probe and not (arguments.plan or arguments.batch):
        raise InputError(
            "--probe puts one question before many; add --plan or --batch FOLDER"
        )
    if arguments.submit and arguments.batch is None:
        raise InputError("--submit sends the files of a batch; add --batch FOLDER")
    if arguments.batch is None:
        return None
    if arguments.budget is not None and not arguments.plan:
        raise InputError(
            "--budget stops a run while it asks, and a batch is asked elsewhere; --plan tells "
            "what it costs, so leave one of them out"
        )
    from psyprobe.observers.batch_files.observer import BatchObserver

    return partial(
        BatchObserver,
        folder=arguments.batch,
        submit=arguments.submit,
        probe=arguments.probe,
    )
