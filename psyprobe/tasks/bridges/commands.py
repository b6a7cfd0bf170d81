"""``psyprobe questions``: what an experiment asks, for other harnesses."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from psyprobe.experiment import read_experiment
from psyprobe.files.terminal import settings, show
from psyprobe.tasks.bridges import tables
from psyprobe.tasks.bridges.turns import questions_of

_WRITERS: dict[str, Callable[..., list[Path]]] = {
    "vlmevalkit": tables.write_vlmevalkit_task,
    "lmms-eval": tables.write_lmms_eval_task,
}


def questions_command(arguments: argparse.Namespace) -> int:
    """Write what an experiment asks as a data set or task of another harness."""
    changed = settings(arguments.set, "--set")
    page = read_experiment(arguments.experiment).with_settings(
        {"asking.readout": "text", **changed}
    )
    card = tables.card_elsewhere("MODEL", arguments.harness, arguments.input_size)
    turns = list(questions_of(page, card))
    files = _WRITERS[arguments.harness](turns, page, arguments.output)
    line = f"{files[0]}: {len(turns):,} questions of {page.name}; their page is {files[-1]}"
    show({"files": list(map(str, files)), "questions": len(turns)}, line, as_json=arguments.json)
    return 0
