"""``psyprobe questions``: export the questions of an experiment for other harnesses."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from psyprobe.experiment import load_experiment
from psyprobe.files.terminal import settings, show
from psyprobe.tasks.bridges import tables
from psyprobe.tasks.bridges.turns import questions_of

_WRITERS: dict[str, Callable[..., list[Path]]] = {
    "vlmevalkit": tables.write_vlmevalkit_task,
    "lmms-eval": tables.write_lmms_eval_task,
}


def questions_command(arguments: argparse.Namespace) -> int:
    """Write an experiment's questions as a data set or task of another evaluation harness."""
    page = load_experiment(arguments.experiment)
    # Items of a benchmark are asked in text alone, and have no [asking].
    text = {} if page.asking is None else {"asking.readout": "text"}
    page = page.with_settings({**text, **settings(arguments.set, "--set")})
    card = tables.harness_card("MODEL", arguments.harness, arguments.input_size)
    turns = list(questions_of(page, card))
    files = _WRITERS[arguments.harness](turns, page, arguments.output)
    line = f"{files[0]}: {len(turns):,} questions of {page.name}; their page is {files[-1]}"
    show(
        {"files": list(map(str, files)), "questions": len(turns)},
        line,
        arguments,
    )
    return 0
