"""``psyprobe score``, ``plot``, ``store`` and ``replay``: from stored responses, without the
observer.
"""

from __future__ import annotations

import argparse
import re
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import xarray

from psyprobe.analysis.published import replay
from psyprobe.analysis.score import score_table
from psyprobe.analysis.scoreboards import Scoreboard
from psyprobe.cli.exchanging import export_runs, import_answers
from psyprobe.errors import InputError
from psyprobe.files.output import make_folder, write_whole
from psyprobe.files.terminal import say, settings, show
from psyprobe.probes.experiments import load_results, together
from psyprobe.probes.export import export
from psyprobe.probes.harnesses import harness_names
from psyprobe.probes.results import all_scores, plot, scoreboard
from psyprobe.reporting.report import report
from psyprobe.running.maintenance import summary, vacuum, verify
from psyprobe.running.merge import merge
from psyprobe.running.store import Store


def score_command(arguments: argparse.Namespace) -> int:
    """Print the scores of all finished runs, a line each or as one table of observers and
    experiments.
    """
    if arguments.scoreboard:
        say(
            _scoreboard(arguments, _load(arguments.results)).table(
                "json" if arguments.json else arguments.format
            )
        )
        return 0
    _check_options(arguments, "--scoreboard")
    results = _load(arguments.results) if arguments.judge is None else _judged(arguments)
    scores = all_scores(results, measure=arguments.measure)
    show(
        [score.to_dict() for score in scores],
        score_table(scores, arguments.format),
        as_json=arguments.json,
    )
    return 0


def _judged(arguments: argparse.Namespace) -> list[xarray.Dataset]:
    """Results with what a judge makes of their replies; its verdicts are kept in the store of the
    replies.
    """
    from psyprobe.observers import load_observer
    from psyprobe.tasks.items import Judge
    from psyprobe.tasks.judged_replies import judge_replies

    options = settings(arguments.observer_option, "--observer-option")
    judge = Judge(load_observer(arguments.judge, **options))
    return [
        judge_replies(result, judge, store=None if Path(path).suffix == ".nc" else path)
        for path in arguments.results
        for result in load_results(path)
    ]


def plot_command(arguments: argparse.Namespace) -> int:
    """Draw all finished runs, or the scoreboard of them, into one figure."""
    import matplotlib as mpl

    from psyprobe.plotting.axes import fit_width, save_figure, typeset
    from psyprobe.plotting.scores import bar_panels, heat_map

    mpl.use("agg")
    results = _load(arguments.results)
    drawn: Any
    if arguments.scoreboard is None:
        _check_options(arguments, "--scoreboard heat-map or bars")
        given = {
            name: getattr(arguments, name)
            for name in ("measure", "layer", "levels", "human", "cmap", "width")
        }
        drawn = plot(results, **given)
    elif arguments.layer is not None:
        raise InputError(
            "--layer is for contours and matches; the scoreboard shows every layer as a model "
            "of its own"
        )
    else:
        board = _scoreboard(arguments, results)
        with typeset(arguments.width):
            drawn = (
                heat_map(board, cmap=arguments.cmap)
                if arguments.scoreboard == "heat-map"
                else bar_panels(board)
            )
        fit_width(drawn, arguments.width)
    path = Path(arguments.output)
    write_whole(path, partial(save_figure, drawn))
    panels = [[result.attrs["experiment"], result.attrs["observer"]] for result in results]
    told = f"{path}: {len(results)} result{'s' * (len(results) != 1)}"
    show({"file": str(path), "panels": panels}, told, as_json=arguments.json)
    return 0


def report_command(arguments: argparse.Namespace) -> int:
    """Write one page over all finished runs."""
    given = {name: getattr(arguments, name) for name in ("title", "measure", "published", "sort")}
    path = report(arguments.results, arguments.output, **given)
    size = path.stat().st_size
    show({"file": str(path), "bytes": size}, f"{path}: {size / 1e3:.0f} kB", as_json=arguments.json)
    return 0


def replay_command(arguments: argparse.Namespace) -> int:
    """Write a result file for each stored model and test."""
    results = replay(arguments.table, arguments.grids, models=arguments.model, tests=arguments.test)
    folder = make_folder(arguments.output)
    files = []
    for result in results:
        # Names of models come out of files; they must not lead out of the folder.
        name = re.sub(
            r"[^A-Za-z0-9._]+", "-", f"{result.attrs['experiment']}-{result.attrs['observer']}"
        ).strip("-.")
        files.append(folder / f"{name[:200]}.nc")
        write_whole(files[-1], partial(result.to_netcdf, engine="scipy"))
    show({"files": list(map(str, files))}, "\n".join(map(str, files)), as_json=arguments.json)
    return 0


def store_command(arguments: argparse.Namespace) -> int:
    """Say what is in each store, verify it, take out what is empty, put all into one, or write a
    table.
    """
    writes = arguments.what in ("merge", "export", "import")
    if writes != (arguments.output is not None):
        raise InputError(f"store {arguments.what} {'needs' if writes else 'takes no'} -o FILE")
    if arguments.keep is not None and arguments.what != "merge":
        raise InputError(f"store {arguments.what} takes no --keep")
    _check_harness(arguments)
    if arguments.harness is not None:
        return import_answers(arguments) if arguments.what == "import" else export_runs(arguments)
    if arguments.what == "merge":
        merged = merge(arguments.stores, arguments.output, keep=arguments.keep)
        one = {"store": arguments.output, **asdict(merged)}
        line = f"{arguments.output}: {merged.answers:,} answers, runs: {merged.runs}"
        kept = f"; of {merged.conflicts:,} questions with two answers the {arguments.keep} is kept"
        show(one, line + kept * (merged.conflicts > 0), as_json=arguments.json)
        return 0
    if writes and len(arguments.stores) > 1:
        raise InputError(
            f"store export takes one store, not {len(arguments.stores)}; merge them first"
        )
    told = []
    lines = []
    for path in arguments.stores:
        with Store(path, create=False) as store:
            one, about = _OF_STORES[arguments.what](store, path, arguments.output)
        told.append(one)
        lines += about
    show(told, "\n".join(lines), as_json=arguments.json)
    return 0


def _check_harness(arguments: argparse.Namespace) -> None:
    """Refuse options of an exchange with other harnesses where there is none."""
    given = {
        f"--{name.replace('_', '-')}": vars(arguments)[name]
        for name in ("experiment", "observer", "input_size")
    }
    if arguments.what == "import" and arguments.harness is None:
        raise InputError(
            f"store import needs --as {' or '.join(harness_names()) or 'HARNESS'}: whose file it is"
        )
    if arguments.what not in ("export", "import"):
        given["--as"] = arguments.harness
    for name, value in given.items():
        if value is not None and arguments.what != "import":
            raise InputError(f"store {arguments.what} takes no {name}")


def _verified(store: Store, path: str, _: str | None) -> tuple[dict[str, Any], list[str]]:
    rows = verify(store)
    counts = ", ".join(f"{count:,} in {table}" for table, count in rows.items())
    return {"store": path, "rows": rows}, [f"{path}: sound; rows: {counts}"]


def _vacuumed(store: Store, path: str, _: str | None) -> tuple[dict[str, Any], list[str]]:
    before, after = vacuum(store)
    told = {"store": path, "bytes_before": before, "bytes": after}
    return told, [f"{path}: {before:,} bytes before, {after:,} now"]


def _exported(store: Store, path: str, output: str | None) -> tuple[dict[str, Any], list[str]]:
    assert output is not None
    count = export(store, output)
    return {"store": path, "file": output, "answers": count}, [
        f"{output}: {count:,} answers of {path}"
    ]


def _told(store: Store, _: str, __: str | None) -> tuple[dict[str, Any], list[str]]:
    found = summary(store)
    return found, _about(found)


_OF_STORES = {"info": _told, "verify": _verified, "vacuum": _vacuumed, "export": _exported}


def _about(summary: dict[str, Any]) -> list[str]:
    """A store in words: a line for itself, for each run, and for each observer with who gave its
    answers.
    """
    runs = summary["runs"]
    observers = summary["observers"]
    lines = [
        f"{summary['store']}: schema {summary['schema']}, {summary['bytes']:,} bytes, "
        f"{summary['answers']:,} answers, "
        f"{len(runs)} run{'s' * (len(runs) != 1)}"
    ]
    lines += [
        f"  run {run['experiment']} ({run['probe']}) with {run['observer']}: begun "
        f"{run['started']}, "
        + (f"finished {run['finished']}" if run["finished"] else "not finished")
        for run in runs
    ]
    for observer in observers:
        lines.append(
            f"  observer {observer['observer']} ({observer['card'][:8]}): {observer['answers']:,} answers"
        )
        for origin in observer["origins"]:
            told = {**origin["software"], "device": origin["device"], **origin["served"]}
            lines.append(
                f"    by {', '.join(f'{name} {value}' for name, value in told.items() if value)}"
            )
    return lines


def _scoreboard(arguments: argparse.Namespace, results: list[xarray.Dataset]) -> Scoreboard:
    return scoreboard(
        results, published=arguments.published, sort=arguments.sort, measure=arguments.measure
    )


def _check_options(arguments: argparse.Namespace, option: str) -> None:
    if arguments.published or arguments.sort is not None:
        raise InputError(f"--published and --sort are for the scoreboard; add {option}")


def _load(paths: list[str]) -> list[xarray.Dataset]:
    return together([result for path in paths for result in load_results(path)])
