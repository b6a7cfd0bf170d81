"""``psyprobe run --jsonl``: tell a program what happens while it runs, one JSON object a line."""

from __future__ import annotations

import json
from argparse import Namespace
from collections import Counter
from time import monotonic
from typing import TYPE_CHECKING, Any

from psyprobe import __version__
from psyprobe.errors import failure_kind
from psyprobe.files.json_types import JsonObject
from psyprobe.files.output import plain_value

if TYPE_CHECKING:
    from psyprobe.reporting.publishing.derive import RecordingStore


class Events:
    """Prints events on standard output, each flushed; nothing unless ``--jsonl`` asks for them.

    Keys are only ever added.

    Parameters
    ----------
    arguments : Namespace
        Of the command line.
    """

    def __init__(self, arguments: Namespace) -> None:
        self.is_on = bool(arguments.jsonl)
        self._label = arguments.label
        self._statuses = Counter[str]()
        self._started = monotonic()
        #: The store of the pair that runs, where its questions are counted.
        self.store: RecordingStore | None = None

    def start(self, pairs: int) -> None:
        """Tell how many pairs of experiment and observer there are."""
        self._print("start", pairs=pairs, psyprobe=__version__, label=self._label)

    def begin_pair(self) -> None:
        """Start the clock and the counts of the next pair."""
        self._started = monotonic()
        self.store = None

    def pair(self, status: str, names: tuple[str, str], **details: Any) -> None:
        """Tell how a pair ended: "done", "failed" or "unfinished"."""
        self._statuses[status] += 1
        asked = stored = 0
        if self.store is not None:
            asked, stored = self.store.count_asked()
            self.store.close()
        values = {
            "revision": None,
            "failure": None,
            "main": [],
            "files": {},
            "spent": None,
            **details,
        }
        self._print(
            "pair",
            experiment=names[0],
            observer=names[1],
            label=self._label,
            status=status,
            seconds=round(monotonic() - self._started, 3),
            asked=asked,
            from_store=stored,
            **values,
        )

    def fail(self, names: tuple[str, str], error: BaseException, sentence: str) -> None:
        """Tell that a pair failed, of which kind the failure is, and why."""
        failure = {"kind": failure_kind(error), "message": sentence[:500]}
        self.pair("failed", names, failure=failure)

    def end(self, code: int) -> None:
        """Tell how many pairs ended how, and the exit code."""
        counts = {
            status: self._statuses[status]
            for status in ("done", "failed", "skipped", "unfinished")
        }
        self._print("end", **counts, exit=code)

    def _print(self, event: str, **values: Any) -> None:
        """Print one line, if they are asked for."""
        if self.is_on:
            line = {"event": event, **values}
            print(json.dumps(line, allow_nan=False, default=plain_value), flush=True)


def report_details(report: JsonObject, scores: Any) -> JsonObject:
    """Select what an event tells of a pair that is done."""
    from psyprobe.reporting.publishing.scoring import main_scores

    return {
        "revision": report["revision"],
        "main": [
            entry for score in scores for entry in main_scores(score, score.rows())
        ],
        "files": report["files"],
        "spent": report.get("spent"),
    }
