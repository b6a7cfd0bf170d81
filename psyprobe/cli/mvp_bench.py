"""``psyprobe mvp-bench``: what is in question files, and how well models answered them."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from psyprobe.cli.output import say, say_json, tell
from psyprobe.errors import InputError

if TYPE_CHECKING:
    import pandas as pd


def mvp_bench_command(arguments: argparse.Namespace) -> int:
    """Check questions; or score prediction files and print the paper's tables.

    Parameters
    ----------
    arguments : Namespace
        ``questions``, ``images``, ``model``, ``parser``, ``format``, ``json``.

    Returns
    -------
    int
        Exit code 0.
    """
    import pandas as pd

    from psyprobe.analysis.mvp_bench import constant_replies, mvp_metrics, mvp_tables, with_categories
    from psyprobe.probes.mvp_bench import check_questions, read_questions

    questions = pd.concat([read_questions(path) for path in arguments.questions], ignore_index=True)
    if not arguments.model:
        report = check_questions(questions, arguments.images)
        if arguments.json:
            say_json(report.to_dict())
        else:
            say(str(report))
        return 0
    metrics = {}
    for name, *paths in arguments.model:
        if not paths:
            raise InputError(f"--model {name} names no prediction file; write --model NAME FILE ...")
        metrics[name] = _scored(questions, name, paths, arguments.parser)
    for answer in ("yes", "no", "A"):
        metrics[f"(always {answer})"] = mvp_metrics(with_categories(constant_replies(questions, answer)))
    say(mvp_tables(metrics, "json" if arguments.json else arguments.format))
    return 0


def _scored(questions: pd.DataFrame, name: str, paths: list[str], parser: str) -> pd.DataFrame:
    import pandas as pd

    from psyprobe.analysis.mvp_bench import mvp_metrics, read_predictions, said, with_categories

    answered = []
    for path in paths:
        predictions = read_predictions(path)
        doubled = predictions.attrs["doubled"]
        if doubled:
            tell(f"{Path(path).name}: {doubled} rows are there twice and were counted once")
        table = said(questions, predictions, parser)
        unread = int((table["said"] == "").sum())
        tell(f"{name}, {Path(path).name}: {len(table)} replies, {unread} of which parser {parser!r} could not read")
        answered.append(table)
    together = pd.concat(answered, ignore_index=True)
    asked = together[["run", "question_id"]]
    if asked.duplicated().any():
        raise InputError(f"the prediction files of {name} answer question {asked[asked.duplicated()].iloc[0, 1]} twice")
    return mvp_metrics(with_categories(together))
