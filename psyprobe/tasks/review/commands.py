"""``psyprobe review``: a page where people review a set, and a summary of their decisions."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from psyprobe.errors import InputError, PsyprobeError
from psyprobe.files.json_types import JsonMapping, JsonObject
from psyprobe.files.output import make_folder, write_text
from psyprobe.files.terminal import say, show, stop_event, tell
from psyprobe.tasks.agreement import agreements
from psyprobe.tasks.review import worklist as lists
from psyprobe.tasks.tables import csv_table


def review_command(arguments: argparse.Namespace) -> int:
    """Serve a set's review page to a person, or summarise the decisions."""
    folder = Path(arguments.set)
    labels = (folder / "items.csv").is_file()
    if not labels and not (folder / "questions.json").is_file():
        raise InputError(
            f"folder {folder} has neither questions.json nor items.csv; give a set"
        )
    if arguments.annotator is not None:
        worklist = lists.worklist(
            folder, "label" if labels else "review", arguments.annotator
        )
        return _serve(worklist, arguments.port)
    summarize = _summarize_labels if labels else _summarize_reviews
    show(*summarize(folder), arguments)
    return 0


def _serve(worklist: lists.Worklist, port: int) -> int:
    """Serve the review page until it is stopped, and count the decisions."""
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


def _summarize_reviews(folder: Path) -> tuple[JsonMapping, str]:
    """Summarise the verdicts on candidate questions, as JSON and text."""
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
    reasons = {}
    for name, decisions in lists.decisions(folder, "review", tasks).items():
        reasons[name] = _count_values(
            decision.text
            for decision in decisions.values()
            if decision.value == "reject"
        )
        if reasons[name]:
            lines.append(f"{name} rejected: {_join_counts(reasons[name])}")
    lines += map(str, pairs)
    kinds: dict[str, list[JsonObject]] = {}
    kind_of = {task.name: task.kind for task in tasks}
    for kind in dict.fromkeys(kind_of.values()):
        kind_pairs = agreements(
            {
                person: {
                    name: verdict
                    for name, verdict in person_verdicts.items()
                    if kind_of[name] == kind
                }
                for person, person_verdicts in verdicts.items()
            }
        )
        kinds[kind] = [pair.to_dict() for pair in kind_pairs]
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
        "agreement_by_kind": kinds,
        "kept": row_count,
    }
    return result, "\n".join(lines)


def _summarize_labels(folder: Path) -> tuple[JsonMapping, str]:
    """Summarise the decisions on answer keys, as JSON and text, and write them as a table."""
    table = lists.label_table(folder)
    path = make_folder(folder / "people") / "labels.csv"
    write_text(path, csv_table(table))
    counts = {
        str(name): _count_values(decisions)
        for name, decisions in table.groupby("annotator")["decision"]
    }
    lines = [f"{name}: {_join_counts(counts[name])}" for name in counts]
    return counts, "\n".join([*lines, f"{len(table)} labels; {path}"])


def _count_values(values: Iterable[str]) -> dict[str, int]:
    """Count each value, the most frequent first."""
    return dict(Counter(values).most_common())


def _join_counts(counts: Mapping[str, int]) -> str:
    """Join counts to "3 yes, 2 no"."""
    return ", ".join(f"{count} {name}" for name, count in counts.items())
