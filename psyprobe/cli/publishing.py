"""``psyprobe publish`` and ``registry``: results in a folder that anyone can host and check."""

from __future__ import annotations

import json
import os
from argparse import Namespace
from pathlib import Path

from psyprobe.errors import InputError
from psyprobe.files.terminal import say, show
from psyprobe.reporting.publishing.changes import changed_runs
from psyprobe.reporting.publishing.check import (
    Checked,
    Repeats,
    check_registry,
    describe,
    read_registry_page,
)
from psyprobe.reporting.publishing.every_eval_ever import export_records
from psyprobe.reporting.publishing.items import add_items, set_folders
from psyprobe.reporting.publishing.publish import Terms, publish
from psyprobe.reporting.publishing.site import build_site
from psyprobe.running.merge import merge
from psyprobe.running.registry_run import run_folders


def publish_command(arguments: Namespace) -> int:
    """Publish a store's finished runs, and print where each lies or why it was left out."""
    terms = Terms(
        arguments.contributor,
        arguments.contact,
        arguments.relation,
        arguments.licence,
        arguments.also_random,
        arguments.consent,
        arguments.codes,
        arguments.yes,
    )
    outcomes = publish(
        arguments.store, arguments.output, terms, failed=arguments.failed
    )
    records = [vars(outcome) for outcome in outcomes]
    show(records, "\n".join(map(str, outcomes)), arguments)
    return 4 if any(outcome.reason for outcome in outcomes) else 0


def registry_command(arguments: Namespace) -> int:
    """Check a registry's runs, printing what is wrong, one line each, build its site, or export
    or get them.
    """
    if arguments.what == "build":
        return _build(arguments)
    if arguments.what == "export":
        return _export(arguments)
    read_registry_page(arguments.registry)
    folders = _chosen_runs(arguments)
    if arguments.what == "get":
        return _get(arguments, folders)
    rewritten: list[str] = []
    if arguments.changed_since is not None:
        folders, rewritten = changed_runs(arguments.registry, arguments.changed_since)
    elif arguments.append_only:
        raise InputError("--append-only compares with a revision; give --changed-since")
    rewritten = rewritten if arguments.append_only else []
    repeats = Repeats(
        arguments.redraw,
        arguments.rerun,
        os.environ.get("GITHUB_RUN_NUMBER", ""),
        arguments.rescore,
        arguments.sets,
    )
    for name in rewritten:
        problem = Checked(name, (("rewritten", "a published file is never changed"),))
        say(
            json.dumps(problem.to_dict()) if arguments.json else next(describe(problem))
        )
    run_count = 0
    problem_count = 0
    note_count = 0
    for checked in check_registry(arguments.registry, folders, repeats, arguments.jobs):
        run_count += 1
        problem_count += bool(checked.problems)
        note_count += bool(checked.notes)
        if arguments.json:
            say(json.dumps(checked.to_dict()))
        else:
            for line in describe(checked):
                say(line)
    summary = {"runs": run_count, "unsound": problem_count, "with_notes": note_count}
    say(
        json.dumps(summary)
        if arguments.json
        else f"{run_count} runs, {problem_count} not sound, {note_count} with notes"
    )
    if problem_count or rewritten:
        return 1
    return 3 if note_count else 0


def _build(arguments: Namespace) -> int:
    """Build the site of a registry, and print what it holds and what is left out."""
    if arguments.output is None:
        raise InputError("registry build needs -o SITE, the folder of the site")
    built = build_site(arguments.registry, arguments.output, arguments.title)
    lines = [
        f"{arguments.output}/index.html: {built['runs']} runs of {built['observers']} observers "
        f"in {built['experiments']} experiments, {built['pages']} pages",
        *(f"left out: {path}: {reason}" for path, reason in built["unsound"]),
    ]
    show(built, "\n".join(lines), arguments)
    return 1 if built["unsound"] else 0


def _chosen_runs(arguments: Namespace) -> list[Path] | None:
    """List the folders of the runs that were named, by themselves or by a file; None for all."""
    if not arguments.runs:
        return None
    chosen = {Path(path).absolute() for path in arguments.runs}
    return [
        folder
        for folder in run_folders(arguments.registry)
        if not chosen.isdisjoint({folder.absolute(), *_files(folder)})
    ]


def _get(arguments: Namespace, folders: list[Path] | None) -> int:
    """Copy runs of a registry into a store, and print how much it holds."""
    if arguments.output is None:
        raise InputError("registry get needs -o STORE, the store that gets the runs")
    if folders is None:
        folders = run_folders(arguments.registry)
    if arguments.sets:
        # Refused before a run is copied.
        set_folders(arguments.sets)
    merged = merge(folders, arguments.output)
    if arguments.sets:
        add_items(arguments.output, arguments.sets)
    text = f"{arguments.output}: {merged.runs} runs, {merged.answers:,} answers"
    show(vars(merged), text, arguments)
    return 0


def _export(arguments: Namespace) -> int:
    """Export runs for Every Eval Ever, and print where each lies or why it was left out."""
    if arguments.output is None:
        raise InputError("registry export needs -o FOLDER, which gets the records")
    terms = Terms(arguments.contributor, arguments.contact)
    outcomes = export_records(
        arguments.registry, arguments.output, terms, people=arguments.people
    )
    records = [vars(outcome) for outcome in outcomes]
    show(records, "\n".join(map(str, outcomes)), arguments)
    return 4 if any(outcome.reason for outcome in outcomes) else 0


def _files(folder: Path) -> list[Path]:
    """List the files of a run's folder by their absolute paths."""
    return list(folder.absolute().iterdir()) if folder.is_dir() else []
