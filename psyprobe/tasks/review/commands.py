"""``psyprobe review``: a page on this machine where people accept or label, and what came of it."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from psyprobe.errors import InputError, PsyprobeError
from psyprobe.files.output import make_folder, write_text
from psyprobe.files.terminal import say, show, stop_event, tell
from psyprobe.tasks.agreement import agreements
from psyprobe.tasks.review import worklist as lists
from psyprobe.tasks.tables import csv_table


def add_review_options(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
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
    """Serve the page to one person, or say what came of it."""
    folder = Path(arguments.set)
    labels = lists.is_r_bench(folder)
    if not labels and not (folder / "questions.json").is_file():
        raise InputError(f"folder {folder} has neither questions.json nor items.csv; give a set")
    if arguments.annotator is not None:
        return _serve(
            lists.worklist(folder, "label" if labels else "review", arguments.annotator),
            arguments.port,
        )
    result, lines = _labelled(folder) if labels else _reviewed(folder)
    show(result, "\n".join(lines), as_json=arguments.json)
    return 0


def _serve(worklist: lists.Worklist, port: int) -> int:
    try:
        from psyprobe.tasks.review.server import ReviewServer
    except ImportError as error:
        raise PsyprobeError(
            "the page needs starlette and uvicorn: pip install 'psyprobe[server]'"
        ) from error
    with stop_event() as told, ReviewServer(worklist, port) as server:
        say(f"Open {server.address} in a browser on this machine; Ctrl-C ends.")
        tell(
            f"{len(worklist.tasks)} tasks for {worklist.journal.person}; each decision is on "
            "the disk at once"
        )
        told.wait()
    decided = sum(each is not None for each in worklist.state()["decided"])
    tell(f"{decided} of {len(worklist.tasks)} decided; {worklist.journal.path}")
    return 0


def _reviewed(folder: Path) -> tuple[Any, list[str]]:
    tasks = lists.review_tasks(folder)
    verdicts = lists.verdicts_of(folder, tasks)
    found = agreements(verdicts)
    lines = [
        f"{name}: {list(said.values()).count('accept')} of {len(said)} accepted, "
        f"{len(tasks) - len(said)} to decide"
        for name, said in verdicts.items()
    ]
    reasons = lists.reasons_of(folder, tasks)
    for name, counts in reasons.items():
        if counts:
            lines.append(
                f"{name} rejected: " + ", ".join(f"{n} {reason}" for reason, n in counts.items())
            )
    lines += [str(each) for each in found]
    kinds = {kind: agreements(said) for kind, said in lists.by_kind(tasks, verdicts).items()}
    lines += [f"  {kind}: {part}" for kind, parts in kinds.items() for part in parts if part.both]
    kept = lists.write_kept(folder, verdicts) if found else 0
    kept_line = f"{kept} rows kept, which both accepted; {folder / lists.KEPT}"
    lines.append(
        kept_line if found else "two annotators must review a set before questions of it are kept"
    )
    result = {
        "annotators": verdicts,
        "reasons": reasons,
        "agreement": [each.to_dict() for each in found],
        "agreement_by_kind": {
            kind: [part.to_dict() for part in parts] for kind, parts in kinds.items()
        },
        "kept": kept,
    }
    return result, lines


def _labelled(folder: Path) -> tuple[Any, list[str]]:
    table = lists.label_table(folder)
    path = make_folder(folder / "people") / "labels.csv"
    write_text(path, csv_table(table))
    counts = lists.label_counts(table)
    lines = [
        f"{name}: " + ", ".join(f"{n} {value}" for value, n in said.items())
        for name, said in counts.items()
    ]
    return counts, [*lines, f"{len(table)} labels; {path}"]
