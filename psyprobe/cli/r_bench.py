"""``psyprobe r-bench``: what is in an item table, and how robust models are by their answers."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from psyprobe.cli.output import say, say_json, tell
from psyprobe.errors import InputError, unknown_name

if TYPE_CHECKING:
    import pandas as pd

_FILES = ("dis", "ref", "judged_dis", "judged_ref", "judged_com")


def r_bench_command(arguments: argparse.Namespace) -> int:
    """Check an item table; or score answers and judgements and print the paper's table.

    Parameters
    ----------
    arguments : Namespace
        ``items``, ``model``, ``mcq_rule``, ``confidence``, ``format``, ``json``.

    Returns
    -------
    int
        Exit code 0.
    """
    from psyprobe.analysis.r_bench import rbench_metrics, rbench_table, score_items
    from psyprobe.probes.r_bench import check_items, read_items

    items = read_items(arguments.items)
    report = check_items(items)
    if not arguments.model:
        if arguments.json:
            say_json(report.to_dict())
        else:
            say(str(report))
        return 0
    tell(f"{arguments.items}: {len(items)} items, read as {report.encoding}")
    metrics = {}
    for name, *named in arguments.model:
        answers, judged = _read(name, named)
        table = score_items(items, answers=answers, judged=judged, mcq_rule=arguments.mcq_rule)
        metrics[name] = rbench_metrics(table, confidence=arguments.confidence)
    say(rbench_table(metrics, "json" if arguments.json else arguments.format))
    return 0


def _read(model: str, named: list[str]) -> tuple[dict[str, pd.Series], dict[str, pd.Series]]:
    from psyprobe.analysis.r_bench import read_answers, read_judgements

    answers, judged = {}, {}
    for text in named:
        kind, _, path = text.partition("=")
        if not path:
            raise InputError(f"--model {model} has {text!r}; write --model NAME dis=FILE judged_dis=FILE ...")
        if kind not in _FILES:
            raise unknown_name("kind of file", kind, _FILES)
        if kind.startswith("judged_"):
            judged[kind.removeprefix("judged_")] = read_judgements(path)
        else:
            answers[kind] = read_answers(path)
    return answers, judged
