"""``psyprobe mvp-bench``: what is in question files, and how well they were answered, elsewhere or
by a run.
"""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from psyprobe.analysis.words.people import with_people
from psyprobe.errors import InputError
from psyprobe.files.images import read_image
from psyprobe.files.output import json_text, make_folder, write_text
from psyprobe.files.terminal import say, show, tell
from psyprobe.probes.experiments import load_results
from psyprobe.reporting.page import Picture, picture, render, write_page
from psyprobe.tasks.mvp_bench.metrics import (
    constant_replies,
    mvp_metrics,
    mvp_tables,
    with_categories,
)
from psyprobe.tasks.mvp_bench.probe import read_run
from psyprobe.tasks.mvp_bench.questions import check_questions, read_questions, with_rotations
from psyprobe.tasks.mvp_bench.replies import PARSERS, parse_replies, read_predictions

if TYPE_CHECKING:
    import xarray

_CAPTIONS = {"N": "natural", "M": "manipulated", "pair": "both"}


def add_mvp_options(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    add = parser.add_argument
    add("questions", nargs="+", metavar="QUESTIONS", help="question files, as released")
    add("--images", metavar="DIR", help="the folder of images; alone: say which are missing")
    several: dict[str, Any] = {"nargs": "+", "default": []}
    about = "score: a model's name and its prediction files"
    add("--model", action="append", metavar="NAME FILE", help=about, **several)
    about = (
        "those of --model that are people, at least three: one row, the mean without the "
        "best and the worst"
    )
    add("--people", metavar="NAME", help=about, **several)
    about = "what psyprobe run asked: score it, and write predictions and a page of failed pairs"
    add("--results", metavar="STORE|RESULT.nc", help=about, **several)
    add("--rotations", action="store_true", help="each multiple choice in every rotation too")
    about = (
        "write what is printed here too, as CSV and JSON (what --results replied: "
        "psyprobe-results without it)"
    )
    add("--output", metavar="DIR", help=about)
    add(
        "--parser",
        default="rule+judge",
        help="rule, rule+judge, lenient or lenient+judge (default %(default)s)",
    )
    add("--format", default="text", help="text, markdown, latex, csv or json (default %(default)s)")


def mvp_bench_command(arguments: argparse.Namespace) -> int:
    """Check questions, or score prediction files and results of runs: the paper's tables are
    printed.
    """
    questions = pd.concat([read_questions(path) for path in arguments.questions], ignore_index=True)
    if not arguments.model and not arguments.results:
        report = check_questions(questions, arguments.images)
        if arguments.output is not None:
            write_text(
                make_folder(arguments.output) / "mvp_bench_questions.json",
                json_text(report.to_dict()),
            )
        show(report.to_dict(), str(report), as_json=arguments.json)
        return 0
    if arguments.rotations:
        questions = with_rotations(questions)
    metrics = {}
    for name, *paths in arguments.model:
        if not paths:
            raise InputError(
                f"--model {name} names no prediction file; write --model NAME FILE ..."
            )
        metrics[name] = _scored(questions, name, paths, arguments.parser)
    for result in (each for path in arguments.results for each in load_results(path)):
        if result.attrs["probe"] == "mvp_bench":
            metrics[result.attrs["observer"]] = _asked(result, arguments)
    if not metrics:
        raise InputError(
            f"{', '.join(arguments.results)}: there is no result of MVP-Bench; run an "
            "experiment with it"
        )
    metrics = with_people(metrics, arguments.people)
    for answer in ("yes", "no", "A"):
        constant = constant_replies(questions, answer)
        if len(constant):
            metrics[f"(always {answer})"] = mvp_metrics(with_categories(constant))
    say(mvp_tables(metrics, "json" if arguments.json else arguments.format))
    if arguments.output is not None:
        folder = make_folder(arguments.output)
        for kind in ("csv", "json"):
            write_text(folder / f"mvp_bench.{kind}", mvp_tables(metrics, kind) + "\n")
        tell(f"{folder / 'mvp_bench.csv'}, {folder / 'mvp_bench.json'}")
    return 0


def _scored(questions: pd.DataFrame, name: str, paths: list[str], parser: str) -> pd.DataFrame:
    answered = []
    for path in paths:
        predictions = read_predictions(path)
        if doubled := predictions.attrs["doubled"]:
            tell(f"{Path(path).name}: {doubled} rows are there twice and were counted once")
        table = parse_replies(questions, predictions, parser)
        unread = int((table["response"] == "").sum())
        tell(
            f"{name}, {Path(path).name}: {len(table)} replies, {unread} of which parser "
            f"{parser!r} could not read"
        )
        for other in PARSERS:
            theirs = parse_replies(questions, predictions, other)["response"]
            differ = theirs != table["response"]
            if differ.any():
                opposite = int((differ & (theirs != "") & (table["response"] != "")).sum())
                told = (
                    f"parser {other!r} reads {int(differ.sum())} otherwise, {opposite} of "
                    "them as another answer"
                )
                tell(f"{name}, {Path(path).name}: {told}")
        answered.append(table)
    together = pd.concat(answered, ignore_index=True)
    asked = together[["run", "question_id"]]
    if asked.duplicated().any():
        raise InputError(
            f"the prediction files of {name} answer question "
            f"{asked[asked.duplicated()].iloc[0, 1]} twice"
        )
    return mvp_metrics(with_categories(together))


def _asked(result: xarray.Dataset, arguments: argparse.Namespace) -> pd.DataFrame:
    """Write what an observer replied, and the pairs it failed on."""
    name = result.attrs["observer"]
    table = read_run(result)
    stem = re.sub(r"[^A-Za-z0-9._]+", "-", f"mvp-bench-{name}").strip("-.")[:150]
    folder = make_folder(arguments.output or "psyprobe-results")
    files = [folder / f"{stem}.jsonl"]
    named = table[["question_id", "reply", "judge", "place"]]
    named = named.rename(columns={"reply": "output", "judge": "extracted (GPT)"})
    write_text(files[0], named.to_json(orient="records", lines=True, force_ascii=False))
    if arguments.images is not None:
        label = json.loads(result.attrs["observer_card"])["name"]
        files.append(folder / f"{stem}-failed.html")
        write_page(failed_pairs_page(table, arguments.images, label), files[1])
    unread = int((table["response"] == "").sum())
    tell(
        f"{name}: {len(table)} replies, {unread} of which could not be read; "
        f"{', '.join(map(str, files))}"
    )
    return mvp_metrics(table)


def failed_pairs_page(answers: pd.DataFrame, images: str | Path, model: str, most: int = 50) -> str:
    """A page of failed pairs, in HTML.

    Parameters
    ----------
    answers : pandas.DataFrame
        A question table with columns reply and response.
    images : str or Path
        The folder that its image paths start from.
    model : str
        Whose answers they are.
    most : int
        Pairs at most; the page says how many there are.
    """
    failed = answers["pair"][answers["response"] != answers["answer"]].unique()
    pairs = []
    for number in failed[:most]:
        group = answers[answers["pair"] == number]
        shown = dict.fromkeys(zip(group["image"], group["kind"], strict=True))
        pairs.append(
            {
                "number": int(number),
                "images": [
                    (f"{_CAPTIONS[kind]}: {image}", *_picture(Path(images) / image))
                    for image, kind in shown
                ],
                "rows": group.assign(caption=group["kind"].map(_CAPTIONS)).to_dict("records"),
            }
        )
    return render(
        "tasks/mvp_bench/failed_pairs.html",
        title=f"MVP-Bench: pairs on which {model} failed",
        failed=len(failed),
        asked=answers["pair"].nunique(),
        pairs=pairs,
    )


def _picture(path: Path) -> tuple[Picture | None, str]:
    """The image, or why it cannot be shown."""
    try:
        return picture(read_image(path)), ""
    except InputError as error:
        return None, str(error)
