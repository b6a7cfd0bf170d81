"""``psyprobe review``: a page where people review a set, and a summary of their decisions."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from psyprobe._json import JsonMapping
from psyprobe.errors import InputError, PsyprobeError
from psyprobe.files.output import make_folder, write_text
from psyprobe.files.terminal import say, show, stop_event, tell
from psyprobe.tasks.agreement import agreements
from psyprobe.tasks.review import worklist as lists
from psyprobe.tasks.tables import csv_table


def add_review_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to its parser."""
    add = parser.add_argument
    add(
        "set",
        metavar="SET",
        help="folder with questions.json (as MVP-Bench) or items.csv (as R-Bench)",
    )
    add(
        "--annotator",
        metavar="NAME",
        help="who sits down at the page; without: what came of it so far",
    )
    add(
        "--port",
        type=int,
        default=0,
        help="to listen at, on this machine alone (default: any free one)",
    )


def review_command(arguments: argparse.Namespace) -> int:
    """Serve the page to a person, or summarise the decisions."""
    folder = Path(arguments.set)
    labels = lists.is_r_bench(folder)
    if not labels and not (folder / "questions.json").is_file():
        raise InputError(
            f"folder {folder} has neither questions.json nor items.csv; give a set"
        )
    if arguments.annotator is not None:
        worklist = lists.worklist(
            folder, "label" if labels else "review", arguments.annotator
        )
        return _serve(worklist, arguments.port)
    summary = _summarize_labels(folder) if labels else _summarize_reviews(folder)
    show(summary.result, "\n".join(summary.lines), as_json=arguments.json)
    return 0


def _serve(worklist: lists.Worklist, port: int) -> int:
    try:
        from psyprobe.tasks.review.server import ReviewServer
    except ImportError as error:
        raise PsyprobeError(
            "the page needs starlette and uvicorn: pip install 'psyprobe[server]'"
        ) from error
    with stop_event() as stop, ReviewServer(worklist, port) as server:
        say(f"Open {server.address} in a browser on this machine; Ctrl-C ends.")
        tell(
            f"{len(worklist.tasks)} tasks for {worklist.journal.person}; each decision is on "
            "the disk at once"
        )
        stop.wait()
    decided = sum(value is not None for value in worklist.state()["decided"])
    tell(f"{decided} of {len(worklist.tasks)} decided; {worklist.journal.path}")
    return 0


class _Summary(NamedTuple):
    """A summary of decisions, for JSON and as lines of text."""

    result: JsonMapping
    lines: list[str]


def _summarize_reviews(folder: Path) -> _Summary:
    tasks = lists.review_tasks(folder)
    verdicts = lists.verdicts_of(folder, tasks)
    pairs = agreements(verdicts)
    lines = []
    for name, person_verdicts in verdicts.items():
        accepted = list(person_verdicts.values()).count("accept")
        count = len(person_verdicts)
        lines.append(
            f"{name}: {accepted} of {count} accepted, {len(tasks) - count} to decide"
        )
    reasons = lists.reasons_of(folder, tasks)
    lines += [
        f"{name} rejected: {_list(counts)}"
        for name, counts in reasons.items()
        if counts
    ]
    lines += map(str, pairs)
    kind_verdicts = lists.by_kind(tasks, verdicts)
    kinds = {kind: agreements(verdicts) for kind, verdicts in kind_verdicts.items()}
    for kind, kind_pairs in kinds.items():
        lines += [f"  {kind}: {pair}" for pair in kind_pairs if pair.both]
    row_count = 0
    if pairs:
        row_count = lists.write_kept(folder, verdicts)
        lines.append(
            f"{row_count} rows kept, which both accepted; {folder / lists.KEPT}"
        )
    else:
        lines.append("two annotators must review a set before questions of it are kept")
    result = {
        "annotators": verdicts,
        "reasons": reasons,
        "agreement": [pair.to_dict() for pair in pairs],
        "agreement_by_kind": {
            kind: [pair.to_dict() for pair in kind_pairs]
            for kind, kind_pairs in kinds.items()
        },
        "kept": row_count,
    }
    return _Summary(result, lines)


def _summarize_labels(folder: Path) -> _Summary:
    table = lists.label_table(folder)
    path = make_folder(folder / "people") / "labels.csv"
    write_text(path, csv_table(table))
    counts = lists.label_counts(table)
    lines = [
        f"{name}: {_list(person_counts)}" for name, person_counts in counts.items()
    ]
    return _Summary(counts, [*lines, f"{len(table)} labels; {path}"])


def _list(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts.items())
