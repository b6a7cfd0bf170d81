"""``psyprobe r-bench``: check, score, report, build and show; the action follows the command."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd

from psyprobe.analysis.words.people import with_people
from psyprobe.errors import InputError, unknown_name
from psyprobe.files.output import json_text, make_folder, write_text
from psyprobe.files.parsing import packaged_toml
from psyprobe.files.terminal import say, show, tell
from psyprobe.probes.experiments import load_results
from psyprobe.reporting.report import report
from psyprobe.tasks.items import Judge, count_verdicts, judge_cases, load_answerer
from psyprobe.tasks.r_bench.build import build_set, write_example
from psyprobe.tasks.r_bench.items import (
    TASKS,
    check_items,
    read_items,
)
from psyprobe.tasks.r_bench.metrics import (
    across,
    paired_difference,
    rbench_metrics,
    rbench_table,
)
from psyprobe.tasks.r_bench.probe import read_run, remarks, write_run
from psyprobe.tasks.r_bench.scores import (
    answerable,
    judgements,
    open_cases,
    read_answers,
    read_judgements,
    score_items,
)
from psyprobe.tasks.tables import csv_table

#: Kinds of file that --model takes.
_FILES = ("dis", "ref", "judged_dis", "judged_ref", "judged_com")
_TYPES = {"int": int, "float": float}


def add_r_bench_options(parser: argparse.ArgumentParser) -> None:
    """Add the sub-commands of `psyprobe r-bench` with their options to the parser."""
    page = packaged_toml("psyprobe.tasks.r_bench", "actions.toml")
    actions = parser.add_subparsers(
        dest="action", metavar="ACTION", required=True, parser_class=type(parser)
    )
    for name, action in page.items():
        summary = action["summary"]
        action_parser = actions.add_parser(
            name, help=summary, description=f"{summary[0].upper()}{summary[1:]}."
        )
        for flag, purpose in (
            ("--json", "print JSON"),
            ("--debug", "show traces of errors"),
        ):
            # Without a default of its own, a flag given before the action stays set.
            action_parser.add_argument(
                flag, action="store_true", default=argparse.SUPPRESS, help=purpose
            )
        for option, keywords in action["options"].items():
            if "type" in keywords:
                keywords["type"] = _TYPES[keywords["type"]]
            action_parser.add_argument(option, **keywords)


def r_bench_command(arguments: argparse.Namespace) -> int:
    """Run a sub-command, and print the values and text that it returns."""
    if output := _ACTIONS[arguments.action](arguments):
        show(*output, arguments)
    return 0


def check_action(arguments: argparse.Namespace) -> tuple[Any, str]:
    """Describe what an R-Bench item table holds."""
    report = check_items(read_items(arguments.items))
    return report.to_dict(), str(report)


def score_action(arguments: argparse.Namespace) -> None:
    """Score answers and judgements, as the paper's table."""
    items = read_items(arguments.items)
    tell(
        f"{arguments.items}: {len(items)} items, read as {check_items(items).encoding}"
    )
    tasks = arguments.task or TASKS
    for task in tasks:
        if task not in TASKS:
            raise unknown_name("task", task, TASKS)
    items = items[items["task"].isin(tasks)].reset_index(drop=True)
    judge = _load_judge(arguments) if arguments.judge else None
    metrics = {}
    tables = {}
    for name, *paths in arguments.model:
        answers, judged = _read_files(name, paths)
        if judge is not None:
            judged |= _judge_open_cases(
                name, items, answers, set(judged), judge, arguments
            )
        tables[name] = score_items(
            items, answers=answers, judged=judged, mcq_rule=arguments.mcq_rule
        )
        metrics[name] = rbench_metrics(tables[name], confidence=arguments.confidence)
    table_format = "json" if arguments.json else arguments.format
    say(rbench_table(with_people(metrics, arguments.people), table_format))
    if arguments.output:
        folder = make_folder(arguments.output)
        _write_scores(metrics, tables, folder, arguments.confidence)


def _load_judge(arguments: argparse.Namespace) -> Judge:
    """Load the judge that the command-line arguments name."""
    return Judge(
        load_answerer(arguments.judge, arguments.judge_option, "--judge-option"),
        arguments.judge_repeats,
        arguments.judge_temperature,
        arguments.judge_max_tokens,
    )


def _judge_open_cases(
    name: str,
    items: pd.DataFrame,
    answers: dict[str, pd.Series],
    judged: set[str],
    judge: Judge,
    arguments: argparse.Namespace,
) -> dict[str, pd.Series]:
    """Ask a judge about the answers that rules and judgement files leave open."""
    against = [kind for kind in answerable(answers) if kind not in judged]
    cases = open_cases(items, answers, mcq_rule=arguments.mcq_rule, against=against)
    verdicts = judge_cases(cases, judge, store=arguments.store)
    counts = count_verdicts(verdicts.values())
    text = (
        f"{name}: {counts['cases']} cases were judged, {counts['without_verdict']} "
        f"without a verdict, which are in no mean; {counts['unread_replies']} replies of the "
        "judge were no verdict"
    )
    if counts["cut_replies"]:
        text += f", {counts['cut_replies']} of them cut off: give --judge-max-tokens"
    tell(text)
    return judgements(items, verdicts, against)[0]


def _write_scores(
    metrics: dict[str, pd.DataFrame],
    tables: dict[str, pd.DataFrame],
    folder: Path,
    confidence: float,
) -> None:
    """Write the metrics and figures of models, and their comparisons."""
    from psyprobe.tasks.r_bench.figures import draw_figures

    write_text(folder / "metrics.csv", rbench_table(metrics, "csv") + "\n")
    figures = draw_figures(metrics, folder)
    first, *rest = tables
    differences = [
        paired_difference(tables[first], tables[model], confidence=confidence).assign(
            one=first, other=model
        )
        for model in rest
    ]
    if differences:
        table = pd.concat(differences, ignore_index=True)
        write_text(folder / "differences.csv", csv_table(table))
    if len(tables) > 2:
        try:
            for by in ("step", "group"):
                table = across(metrics, by).corr(method="spearman")
                write_text(
                    folder / f"correlations_{by}.csv", csv_table(table, index=True)
                )
        except InputError as error:
            # Models may be alike or have answered other parts; the table and the figures stand all
            # the same.
            tell(f"correlations are left out: {error}")
    tell(
        f"{folder}: metrics.csv, {len(figures)} figures as PNG and "
        f"PDF{', differences.csv' if rest else ''}"
    )


def _read_files(
    model: str, words: list[str]
) -> tuple[dict[str, pd.Series], dict[str, pd.Series]]:
    """Read the answer and judgement files of a model, by what they are about."""
    answers = {}
    judged = {}
    for text in words:
        kind, _, path = text.partition("=")
        if not path:
            raise InputError(
                f"--model {model} has {text!r}; write --model NAME dis=FILE judged_dis=FILE ..."
            )
        if kind not in _FILES:
            raise unknown_name("kind of file", kind, _FILES)
        if kind.startswith("judged_"):
            judged[kind.removeprefix("judged_")] = read_judgements(path)
        else:
            answers[kind] = read_answers(path)
    return answers, judged


def report_action(arguments: argparse.Namespace) -> tuple[Any, str]:
    """Write tables, figures and a page of what observers answered."""
    results = {
        result.attrs["observer"]: result
        for path in arguments.results
        for result in load_results(path)
        if result.attrs["probe"] == "r_bench"
    }
    if not results:
        raise InputError(
            f"{', '.join(arguments.results)}: there is no result of R-Bench; run an experiment "
            "with it"
        )
    folder = make_folder(arguments.output)
    runs = {
        name: read_run(result, arguments.confidence) for name, result in results.items()
    }
    for number, (name, run) in enumerate(runs.items(), start=1):
        write_run(run, folder / f"{number}_{re.sub(r'[^A-Za-z0-9.-]+', '_', name)}")
        for remark in remarks(run.facts):
            tell(f"{name}: {remark}")
    metrics = {name: run.metrics for name, run in runs.items()}
    tables = {name: run.table for name, run in runs.items()}
    _write_scores(metrics, tables, folder, arguments.confidence)
    page = str(report(results.values(), folder / "report.html"))
    tell(f"{page}: the report; tables of each observer are in folders beside it")
    facts = {name: dict(run.facts) for name, run in runs.items()}
    return facts | {"report": page}, rbench_table(metrics)


def build_action(arguments: argparse.Namespace) -> tuple[Any, str]:
    """Build an R-Bench set from photographs and questions."""
    built = build_set(
        arguments.photographs,
        arguments.questions,
        arguments.output,
        items_per_cell=arguments.items,
        seed=arguments.seed,
        scale=arguments.scale,
        skip=arguments.skip_bad,
    )
    for problem in built.skipped:
        tell(f"left out: {problem}")
    if built.unchanged:
        tell(
            f"{len(built.unchanged)} corrupted images are no different from their references; "
            "manifest.json lists them"
        )
    text = (
        f"{built.items} items in {built.folder}; look at contact_sheet.png before you ask "
        "anybody."
    )
    return vars(built) | {"folder": str(built.folder)}, text


def example_action(arguments: argparse.Namespace) -> tuple[Any, str]:
    """Write example photographs and questions to try a build with."""
    photographs, questions = write_example(arguments.output)
    paths = {"photographs": str(photographs), "questions": str(questions)}
    return paths, f"psyprobe r-bench build {photographs} {questions} --output SET"


def bands_action(arguments: argparse.Namespace) -> tuple[Any, str]:
    """Write a set's photographs filtered to octave bands, with experiment files."""
    from psyprobe.tasks.r_bench.bands import write_bands

    pages = write_bands(arguments.set, arguments.output, arguments.bands, arguments.ppd)
    paths = [str(page) for page in pages]
    return {"pages": paths}, f"psyprobe run {' '.join(paths)} --observer NAME"


def csf_action(arguments: argparse.Namespace) -> tuple[Any, str]:
    """Correlate contrast sensitivity with accuracy, and draw it."""
    import matplotlib as mpl

    from psyprobe.plotting.axes import save_figure
    from psyprobe.tasks.r_bench.bands import link_results, link_text, plot_links

    mpl.use("agg")
    results = [result for path in arguments.results for result in load_results(path)]
    link = link_results(results, confidence=arguments.confidence)
    folder = make_folder(arguments.output)
    write_text(folder / "csf_robustness.json", json_text(link.to_dict()))
    save_figure(plot_links(link), folder / "csf_robustness.png")
    return link.to_dict(), f"{link_text(link)}\n{folder / 'csf_robustness.png'}"


_ACTIONS: dict[str, Callable[[argparse.Namespace], tuple[Any, str] | None]] = {
    "check": check_action,
    "score": score_action,
    "report": report_action,
    "build": build_action,
    "example": example_action,
    "bands": bands_action,
    "csf": csf_action,
}
