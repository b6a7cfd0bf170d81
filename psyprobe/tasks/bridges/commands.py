"""``psyprobe questions``, and ``psyprobe store export --as`` and ``import --as``: to other
harnesses and back.
"""

from __future__ import annotations

import argparse
import importlib.util
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from psyprobe.errors import InputError, PsyprobeError
from psyprobe.experiment import read_experiment
from psyprobe.files.output import make_folder
from psyprobe.files.terminal import settings, show
from psyprobe.observers.protocol import Card
from psyprobe.running.protocol import RunRecord
from psyprobe.running.store import Store
from psyprobe.tasks.bridges import inspect_logs, tables
from psyprobe.tasks.bridges.turns import Replies, questions_of, take

_TASKS: dict[str, Callable[..., list[Path]]] = {
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
    files = _TASKS[arguments.harness](turns, page, arguments.output)
    told = f"{files[0]}: {len(turns):,} questions of {page.name}; their page is {files[-1]}"
    show({"files": list(map(str, files)), "questions": len(turns)}, told, as_json=arguments.json)
    return 0


def export_runs(arguments: argparse.Namespace) -> int:
    """Write each finished run of a store as a result of another harness."""
    if len(arguments.stores) > 1:
        raise InputError(
            f"store export takes one store, not {len(arguments.stores)}; merge them first"
        )
    path = arguments.stores[0]
    harness = arguments.harness
    with Store(path, create=False) as store:
        records = [record for record in store.runs() if record.finished is not None]
        if not records:
            raise InputError(
                f"{path} has no finished run; run the experiment again to go on with it"
            )
        folder = make_folder(arguments.output)
        files = list[str]()
        lines = list[str]()
        for record in records:
            _check_words(record)
            written = _write(record, store, folder, harness, Path(path).parent)
            files.append(str(written[0]))
            lines.append(
                f"{written[0]}: {written[1]:,} answers of {record.observer} in {record.experiment}"
            )
    show({"files": files}, "\n".join(lines), as_json=arguments.json)
    return 0


def import_answers(arguments: argparse.Namespace) -> int:
    """Put what another harness was answered into a store, where it is a run like any other."""
    told = []
    lines = []
    with Store(arguments.output) as store:
        for path in arguments.stores:
            replies = _read(arguments, path)
            taken, left = take(replies, store)
            name = replies.experiment.name
            who = replies.card.name
            if not taken:
                raise InputError(
                    f"{path} answers no question of {name}: its {len(replies.answers)} answers "
                    "are to other images or "
                    "wordings; give the page and --input-size with which the questions were written"
                )
            told.append(
                {"file": path, "experiment": name, "observer": who, "taken": taken, "left": left}
            )
            rest = (
                f"; {left:,} questions have no answer yet, and psyprobe run goes on with them"
                * (left > 0)
            )
            lines.append(f"{arguments.output}: {taken:,} answers of {who} in {name}{rest}")
    show(told, "\n".join(lines), as_json=arguments.json)
    return 0


def _write(
    record: RunRecord, store: Store, folder: Path, harness: str, beside: Path
) -> tuple[Path, int]:
    if harness == "lmms-eval":
        return folder, tables.write_lmms_eval_results(record, store, folder, beside)
    # Names of models come out of files; they must not lead out of the folder.
    order = (
        (record.experiment, record.observer)
        if harness == "inspect"
        else (record.observer, record.experiment)
    )
    stem = re.sub(r"[^A-Za-z0-9._]+", "-", f"{order[0]}_{order[1]}").strip("-.")[:200]
    if harness == "inspect":
        _need_inspect()
        path = folder / f"{stem}.eval"
        return path, inspect_logs.write_inspect_log(record, store, path, beside)
    path = folder / f"{stem}.xlsx"
    return path, tables.write_predictions(record, store, path, beside)


def _read(arguments: argparse.Namespace, path: str) -> Replies:
    harness = arguments.harness
    page = None if arguments.experiment is None else read_experiment(arguments.experiment)
    if harness == "inspect":
        if arguments.observer is not None or arguments.input_size is not None:
            raise InputError(
                "a log of inspect-ai says who was asked; leave --observer and --input-size out"
            )
        _need_inspect()
        return inspect_logs.read_inspect_log(path, page)
    if page is None or arguments.observer is None:
        raise InputError(
            f"files of {harness} do not say what was asked of whom: give --experiment "
            "PAGE.toml, the page that lay "
            "beside the questions, and --observer NAME"
        )
    card: Card = tables.card_elsewhere(arguments.observer, harness, arguments.input_size)
    reader = tables.read_predictions if harness == "vlmevalkit" else tables.read_lmms_eval_samples
    return reader(path, page, card)


def _need_inspect() -> None:
    if importlib.util.find_spec("inspect_ai") is None:
        raise PsyprobeError("logs of inspect-ai need inspect-ai: pip install 'psyprobe[inspect]'")


def _check_words(record: RunRecord) -> Any:
    if record.observer_card.get("ability") != "answer":
        raise InputError(
            f"{record.experiment} with {record.observer} was answered in numbers and not in "
            "words; export it as a "
            "table, to .parquet, .csv or .nc"
        )
