"""``psyprobe mvp-bench``: what is in question files, how well models answered them, and asking a model."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import Any

import pandas as pd

from psyprobe.analysis.words.people import with_people
from psyprobe.errors import InputError
from psyprobe.files.output import make_folder, write_whole
from psyprobe.files.settings import settings
from psyprobe.files.terminal import say, show, tell
from psyprobe.observers import load_observer
from psyprobe.report.page import write_page
from psyprobe.tasks.judge import Judge
from psyprobe.tasks.mvp_bench.metrics import constant_replies, mvp_metrics
from psyprobe.tasks.mvp_bench.pairs_page import failed_pairs_page
from psyprobe.tasks.mvp_bench.questions import check_questions, read_questions, with_rotations
from psyprobe.tasks.mvp_bench.replies import read_predictions, said
from psyprobe.tasks.mvp_bench.run import ask_questions, judge_replies
from psyprobe.tasks.mvp_bench.tables import mvp_tables, with_categories


def add_mvp_options(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    parser.add_argument("questions", nargs="+", metavar="QUESTIONS", help="question files, as released")
    parser.add_argument("--images", metavar="DIR", help="the folder of images; alone: say which are missing")
    parser.add_argument(
        "--model",
        nargs="+",
        action="append",
        default=[],
        metavar="NAME FILE",
        help="score: a model's name and its prediction files",
    )
    parser.add_argument(
        "--people",
        nargs="+",
        default=[],
        metavar="NAME",
        help="those of --model that are people, at least three: one row, the mean without the best and the worst",
    )
    parser.add_argument("--observer", nargs="+", default=[], metavar="NAME", help="ask: see psyprobe list observers")
    parser.add_argument(
        "--observer-option", nargs="+", default=[], metavar="NAME=VALUE", help="what the observers take besides"
    )
    parser.add_argument(
        "--judge", metavar="NAME", help="a chat model that reads yes/no replies which the rule leaves open"
    )
    parser.add_argument(
        "--judge-option", nargs="+", default=[], metavar="NAME=VALUE", help="what the judge takes besides"
    )
    parser.add_argument("--rotations", action="store_true", help="ask each multiple choice in every rotation too")
    parser.add_argument("--cross", default="file", help="both images in one file, or two_images (default %(default)s)")
    parser.add_argument("--system", default="", metavar="TEXT", help="system text, or 'commonsense'")
    parser.add_argument("--plan", action="store_true", help="say how many questions would be asked, and ask nothing")
    parser.add_argument("--store", metavar="FILE", help="SQLite file of answers (default DIR/runs.sqlite)")
    parser.add_argument("--output", default="psyprobe-results", metavar="DIR", help="folder (default %(default)s)")
    parser.add_argument(
        "--parser", default="rule+judge", help="rule, rule+judge, lenient or lenient+judge (default %(default)s)"
    )
    parser.add_argument("--format", default="text", help="text, markdown, latex, csv or json (default %(default)s)")


def mvp_bench_command(arguments: argparse.Namespace) -> int:
    """Check questions; score prediction files; or ask observers. The paper's tables are printed."""
    questions = pd.concat([read_questions(path) for path in arguments.questions], ignore_index=True)
    if not arguments.model and not arguments.observer:
        report = check_questions(questions, arguments.images)
        show(report.to_dict(), str(report), as_json=arguments.json)
        return 0
    if arguments.rotations:
        questions = with_rotations(questions)
    if arguments.plan:
        choices = int((questions["task"] != "yes_no").sum())
        say(
            f"{len(questions)} questions ({choices} of them multiple choice) about {questions['image'].nunique()} "
            f"images for each of {len(arguments.observer)} observers; what the store holds is not asked again."
        )
        return 0
    metrics = {}
    for name, *paths in arguments.model:
        if not paths:
            raise InputError(f"--model {name} names no prediction file; write --model NAME FILE ...")
        metrics[name] = _scored(questions, name, paths, arguments.parser)
    for name in arguments.observer:
        metrics[name] = _asked(questions, name, arguments)
    metrics = with_people(metrics, arguments.people)
    for answer in ("yes", "no", "A"):
        metrics[f"(always {answer})"] = mvp_metrics(with_categories(constant_replies(questions, answer)))
    say(mvp_tables(metrics, "json" if arguments.json else arguments.format))
    return 0


def _scored(questions: pd.DataFrame, name: str, paths: list[str], parser: str) -> pd.DataFrame:

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


def _asked(questions: pd.DataFrame, name: str, arguments: argparse.Namespace) -> pd.DataFrame:

    if arguments.images is None:
        raise InputError("an observer needs the images; name their folder with --images")
    folder = make_folder(arguments.output)
    store = folder / "runs.sqlite" if arguments.store is None else Path(arguments.store)
    observer = load_observer(name, **settings(arguments.observer_option, "--observer-option"))
    options: dict[str, Any] = {"system": arguments.system, "cross": arguments.cross, "store": store}
    predictions = ask_questions(questions, arguments.images, observer, **options)
    if arguments.judge is not None:
        judge = Judge(load_observer(arguments.judge, **settings(arguments.judge_option, "--judge-option")))
        predictions, failed = judge_replies(questions, predictions, judge, store=store)
        tell(f"{name}: {int((predictions['judge'] != '').sum())} replies were judged, {failed} without a verdict")
    table = said(questions, predictions, arguments.parser)
    stem = re.sub(r"[^A-Za-z0-9._]+", "-", f"mvp-bench-{name}").strip("-.")[:150]
    files = {"predictions": folder / f"{stem}.jsonl", "pairs": folder / f"{stem}-failed.html"}
    named = predictions.rename(columns={"reply": "output", "judge": "extracted (GPT)"})
    write_whole(files["predictions"], lambda path: named.to_json(path, orient="records", lines=True, force_ascii=False))
    write_page(failed_pairs_page(table, arguments.images, observer.card.label), files["pairs"])
    unread = int((table["said"] == "").sum())
    written = ", ".join(map(str, files.values()))
    tell(f"{name}: {len(table)} replies, {unread} not read by {arguments.parser!r}; {written}")
    return mvp_metrics(with_categories(table))
