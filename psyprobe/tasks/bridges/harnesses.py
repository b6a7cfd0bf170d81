"""The harnesses whose files ``psyprobe store --as`` reads and writes."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from psyprobe.errors import InputError, PsyprobeError
from psyprobe.experiment import Experiment
from psyprobe.files.output import file_stem
from psyprobe.observers.protocol import Card
from psyprobe.probes.harnesses import ExportedRun, ImportedRun
from psyprobe.running.protocol import RunRecord
from psyprobe.running.store import Store
from psyprobe.tasks.bridges import tables
from psyprobe.tasks.bridges.inspect_logs import read_inspect_log, write_inspect_log
from psyprobe.tasks.bridges.turns import Replies, store_replies


class InspectLogs:
    """Logs of inspect-ai, which name their experiment and observer."""

    def write(
        self, record: RunRecord, store: Store, folder: Path, page_folder: Path
    ) -> ExportedRun:
        """Write a run as a log of inspect-ai."""
        _require_inspect()
        path = folder / f"{file_stem(f'{record.experiment}_{record.observer}')}.eval"
        return ExportedRun(path, write_inspect_log(record, store, path, page_folder))

    def read(
        self,
        path: str,
        store: Store,
        page: Experiment | None,
        observer: str | None,
        input_size: int | None,
    ) -> ImportedRun:
        """Store the answers of an inspect-ai log as a run."""
        if observer is not None or input_size is not None:
            raise InputError(
                "a log of inspect-ai says who was asked; leave --observer and --input-size out"
            )
        _require_inspect()
        return _import_replies(read_inspect_log(path, page), store)


@dataclass(frozen=True)
class AnswerTables:
    """Tables of answers, which name neither experiment nor observer."""

    harness: str
    reader: Callable[[str, Experiment, Card], Replies]

    def write(
        self, record: RunRecord, store: Store, folder: Path, page_folder: Path
    ) -> ExportedRun:
        """Write a run as VLMEvalKit's predictions, or as lmms-eval's samples."""
        if self.harness == "lmms-eval":
            answers = tables.write_lmms_eval_results(record, store, folder, page_folder)
            return ExportedRun(folder, answers)
        path = folder / f"{file_stem(f'{record.observer}_{record.experiment}')}.xlsx"
        return ExportedRun(
            path, tables.write_predictions(record, store, path, page_folder)
        )

    def read(
        self,
        path: str,
        store: Store,
        page: Experiment | None,
        observer: str | None,
        input_size: int | None,
    ) -> ImportedRun:
        """Store the answers of another harness's table as a run."""
        if page is None or observer is None:
            raise InputError(
                f"files of {self.harness} do not say what was asked of whom: give --experiment "
                "PAGE.toml, the page that lay beside the questions, and --observer NAME"
            )
        card = tables.harness_card(observer, self.harness, input_size)
        return _import_replies(self.reader(path, page, card), store)


def _import_replies(replies: Replies, store: Store) -> ImportedRun:
    """Store replies of another harness, and count those that were new."""
    counts = store_replies(replies, store)
    return ImportedRun(
        replies.experiment.name, replies.card.name, len(replies.answers), *counts
    )


def _require_inspect() -> None:
    """Refuse to go on without inspect-ai installed."""
    if importlib.util.find_spec("inspect_ai") is None:
        raise PsyprobeError(
            "logs of inspect-ai need inspect-ai: pip install 'psyprobe[inspect]'"
        )


INSPECT = InspectLogs()
VLMEVALKIT = AnswerTables("vlmevalkit", tables.read_predictions)
LMMS_EVAL = AnswerTables("lmms-eval", tables.read_lmms_eval_samples)
