"""``psyprobe store export --as`` and ``import --as``: runs as files of other harnesses, and
back.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from psyprobe.errors import InputError, PsyprobeError
from psyprobe.experiment import load_experiment
from psyprobe.files.json_types import JsonObject
from psyprobe.files.output import make_folder
from psyprobe.files.terminal import show
from psyprobe.probes.harnesses import load_harness
from psyprobe.running.protocol import labelled
from psyprobe.running.store import Store


def export_runs(arguments: Namespace) -> int:
    """Write each finished run of a store in another harness's format."""
    path = arguments.stores[0]
    harness = load_harness(arguments.harness)
    with Store(path, create=False) as store:
        records = [record for record in store.runs() if record.finished is not None]
        if not records:
            raise InputError(
                f"{path} has no finished run; run the experiment again to go on with it"
            )
        folder = make_folder(arguments.output)
        files = []
        lines = []
        for record in records:
            if record.observer_card.get("ability") != "answer":
                raise InputError(
                    f"{record.experiment} with {record.observer} was answered in numbers and "
                    "not in words; export it as a table, to .parquet, .csv or .nc"
                )
            named = replace(record, observer=labelled(record.observer, record.label))
            answers = store.with_label(record.label)
            exported = harness.write(named, answers, folder, Path(path).parent)
            files.append(str(exported.path))
            lines.append(
                f"{exported.path}: {exported.answers:,} answers of {named.observer} in "
                f"{record.experiment}"
            )
    show({"files": files}, "\n".join(lines), arguments)
    return 0


def import_answers(arguments: Namespace) -> int:
    """Store the answers that another harness collected, as a run like any other."""
    harness = load_harness(arguments.harness)
    page = (
        None if arguments.experiment is None else load_experiment(arguments.experiment)
    )
    rows: list[JsonObject] = []
    lines: list[str] = []
    output = Path(arguments.output)
    with _without_traces(output, rows), Store(output) as store:
        for path in arguments.stores:
            run = harness.read(
                path, store, page, arguments.observer, arguments.input_size
            )
            if not run.taken:
                raise InputError(
                    f"{path} answers no question of {run.experiment}: its {run.answers} answers "
                    "are to other images or wordings; give the page and --input-size with which "
                    "the questions were written"
                )
            rows.append({"file": path, **run._asdict()})
            line = (
                f"{arguments.output}: {run.taken:,} answers of {run.observer} in "
                f"{run.experiment}"
            )
            if run.left:
                line += (
                    f"; {run.left:,} questions have no answer yet, and psyprobe run goes on with "
                    "them"
                )
            lines.append(line)
    show(rows, "\n".join(lines), arguments)
    return 0


@contextmanager
def _without_traces(path: Path, rows: Sequence[JsonObject]) -> Iterator[None]:
    """Remove a store that the block creates, if an error comes before any row is read."""
    is_new = not path.exists()
    try:
        yield
    except PsyprobeError:
        if is_new and not rows:
            with suppress(OSError):
                path.unlink()
        raise
