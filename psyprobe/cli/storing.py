"""``psyprobe store``: describe, check, merge, export, without what scores and draws."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import asdict

from psyprobe.cli.exchanging import export_runs, import_answers
from psyprobe.errors import InputError
from psyprobe.files.json_types import JsonObject
from psyprobe.files.terminal import show
from psyprobe.probes.export import export, export_trials
from psyprobe.probes.harnesses import harness_names
from psyprobe.running.maintenance import summary, vacuum, verify
from psyprobe.running.merge import merge
from psyprobe.running.protocol import Attempt, labelled
from psyprobe.running.store import Store

#: What merge says of answers that contradict each other.
_CONFLICTS = {
    "first": "the first is kept",
    "last": "the last is kept",
    "both": "both are kept, the later under a label of when its store began",
}
#: Actions that write a file, and name and actions of each option that few of them take.
_WRITING = ("merge", "export", "import")
_STORE_OPTIONS = {
    "-o FILE": ("output", _WRITING),
    "--keep": ("keep", ("merge",)),
    "--tidy": ("tidy", ("export",)),
    "--as": ("harness", ("export", "import")),
    "--experiment": ("experiment", ("import",)),
    "--observer": ("observer", ("import",)),
    "--input-size": ("input_size", ("import",)),
}


def store_command(arguments: Namespace) -> int:
    """Describe, verify or vacuum each store, merge them, or export and import their answers."""
    _check_options_of_store(arguments)
    if arguments.what == "export" and len(arguments.stores) > 1:
        raise InputError(
            f"store export takes one store, not {len(arguments.stores)}; merge them first"
        )
    if arguments.harness is not None:
        return (
            import_answers(arguments)
            if arguments.what == "import"
            else export_runs(arguments)
        )
    if arguments.what == "merge":
        merged = merge(arguments.stores, arguments.output, keep=arguments.keep)
        line = f"{arguments.output}: {merged.answers:,} answers, runs: {merged.runs}"
        if merged.conflicts:
            line += (
                f"; of {merged.conflicts:,} questions with two answers "
                f"{_CONFLICTS[arguments.keep]}"
            )
        show({"store": arguments.output, **asdict(merged)}, line, arguments)
        return 0
    records = []
    texts = []
    for path in arguments.stores:
        with Store(path, create=False) as store:
            record, text = _work_on(store, path, arguments)
        records.append(record)
        texts.append(text)
    show(records, "\n".join(texts), arguments)
    return 0


def _check_options_of_store(arguments: Namespace) -> None:
    """Refuse options that a store action does not take, or lacks."""
    action = arguments.what
    for option, (name, actions) in _STORE_OPTIONS.items():
        if vars(arguments)[name] not in (None, False) and action not in actions:
            raise InputError(f"store {action} takes no {option}")
    if arguments.tidy and arguments.harness is not None:
        raise InputError("--tidy writes a table, and --as files of a harness; give one")
    if arguments.output is None and action in _WRITING:
        raise InputError(f"store {action} needs -o FILE")
    if action == "import" and arguments.harness is None:
        raise InputError(
            f"store import needs --as {' or '.join(harness_names()) or 'HARNESS'}: whose file it is"
        )


def _work_on(store: Store, path: str, arguments: Namespace) -> tuple[JsonObject, str]:
    """Describe, verify, vacuum or export a store, and return the outcome as JSON and text."""
    match arguments.what:
        case "verify":
            rows = verify(store)
            counts = ", ".join(f"{count:,} in {table}" for table, count in rows.items())
            return {"store": path, "rows": rows}, f"{path}: sound; rows: {counts}"
        case "vacuum":
            before, after = vacuum(store)
            sizes = {"store": path, "bytes_before": before, "bytes": after}
            return sizes, f"{path}: {before:,} bytes before, {after:,} now"
        case "export":
            file = arguments.output
            kind = "trials" if arguments.tidy else "answers"
            count = (export_trials if arguments.tidy else export)(store, file)
            record = {"store": path, "file": file, kind: count}
            return record, f"{file}: {count:,} {kind} of {path}"
    contents = summary(store)
    return contents, "\n".join(_summary_lines(contents))


def _summary_lines(summary: JsonObject) -> list[str]:
    """Format the summary of a store: its size, runs, observers and origins of answers."""
    runs = summary["runs"]
    observers = summary["observers"]
    lines = [
        f"{summary['store']}: schema {summary['schema']}, {summary['bytes']:,} bytes, "
        f"{summary['answers']:,} answers, "
        f"{len(runs)} run{'s' * (len(runs) != 1)}"
    ]
    lines += [
        f"  run {run['experiment']} ({run['probe']}) with "
        f"{labelled(run['observer'], run['label'])}: begun "
        f"{run['started']}, "
        + (f"finished {run['finished']}" if run["finished"] else "not finished")
        + (f"; {Attempt(**run['attempt'])}" if run["attempt"] else "")
        for run in runs
    ]
    for observer in observers:
        lines.append(
            f"  observer {observer['observer']} ({observer['card'][:8]}): "
            f"{observer['answers']:,} answers"
        )
        for origin in observer["origins"]:
            facts = {
                **origin["software"],
                "device": origin["device"],
                **origin["served"],
            }
            pairs = [f"{name} {value}" for name, value in facts.items() if value]
            lines.append(f"    by {', '.join(pairs)}")
    return lines
