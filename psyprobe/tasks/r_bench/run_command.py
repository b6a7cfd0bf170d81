"""``psyprobe r-bench run``: ask models about a set, judge, score, and write tables, figures and a page."""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path

from psyprobe.files.settings import settings
from psyprobe.files.terminal import say, say_json, tell
from psyprobe.tasks.r_bench.commands import load_judge


def run_action(arguments: argparse.Namespace) -> int:
    """Ask each observer, and print the paper's table with a row each.

    Parameters
    ----------
    arguments : Namespace
        ``set``, ``observer``, ``observer_option``, ``judge``, ``judge_option``, ``judge_repeats``,
        ``judge_temperature``, ``mcq_rule``, ``skip_bad``, ``confidence``, ``store``, ``output``, ``json``.

    Returns
    -------
    int
        Exit code 0.
    """
    from psyprobe.observers import load_observer
    from psyprobe.tasks.r_bench import rbench_table, read_set
    from psyprobe.tasks.r_bench.report import write_report
    from psyprobe.tasks.r_bench.run import RBenchRun, remarks, run_r_bench, write_run

    images = read_set(arguments.set, skip=arguments.skip_bad)
    for problem in images.skipped:
        tell(f"left out: {problem}")
    judge = load_judge(arguments)
    folder = Path(arguments.output)
    folder.mkdir(parents=True, exist_ok=True)
    store = Path(arguments.store) if arguments.store else folder / "runs.sqlite"
    runs: dict[str, RBenchRun] = {}
    places: dict[str, Path] = {}
    for name in dict.fromkeys(arguments.observer):
        observer = load_observer(name, **settings(arguments.observer_option, "--observer-option"))
        run = run_r_bench(
            images,
            observer,
            judge=judge,
            mcq_rule=arguments.mcq_rule,
            confidence=arguments.confidence,
            store=store,
        )
        places[name] = folder / f"{len(places) + 1}_{re.sub(r'[^A-Za-z0-9.-]+', '_', name)}"
        write_run(run, places[name])
        runs[name] = run
    page = write_report(runs, folder, images=images)
    if arguments.json:
        say_json(
            {
                name: {
                    "files": str(places[name]),
                    **dict(run.facts),
                    "metrics": json.loads(run.metrics.to_json(orient="records", double_precision=15)),
                }
                for name, run in runs.items()
            }
            | {"report": str(page)}
        )
        return 0
    say(rbench_table({name: run.metrics for name, run in runs.items()}))
    for name, run in runs.items():
        for remark in remarks(run.facts):
            tell(f"{name}: {remark}")
    tell(f"{page}: the report; tables of each observer are in folders beside it")
    return 0
