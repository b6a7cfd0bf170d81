"""``psyprobe mvp-bench``: check question files, and score answers of prediction files and runs."""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

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
from psyprobe.tasks.mvp_bench.questions import (
    check_questions,
    read_questions,
    with_rotations,
)
from psyprobe.tasks.mvp_bench.replies import PARSERS, parse_replies, read_predictions

if TYPE_CHECKING:
    import xarray

_CAPTIONS = {"N": "natural", "M": "manipulated", "pair": "both"}


def mvp_bench_command(arguments: argparse.Namespace) -> int:
    """Check MVP-Bench's questions, or score prediction files and runs as the paper's tables."""
    questions = pd.concat(
        [read_questions(path) for path in arguments.questions], ignore_index=True
    )
    if not arguments.model and not arguments.results:
        report = check_questions(questions, arguments.images)
        if arguments.output is not None:
            write_text(
                make_folder(arguments.output) / "mvp_bench_questions.json",
                json_text(report.to_dict()),
            )
        show(report.to_dict(), str(report), arguments)
        return 0
    if arguments.rotations:
        questions = with_rotations(questions)
    metrics = {}
    for name, *paths in arguments.model:
        if not paths:
            raise InputError(
                f"--model {name} names no prediction file; write --model NAME FILE ..."
            )
        metrics[name] = _score_files(questions, name, paths, arguments.parser)
    for path in arguments.results:
        for result in load_results(path):
            if result.attrs["probe"] == "mvp_bench":
                metrics[result.attrs["observer"]] = _score_run(result, arguments)
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


def _score_files(
    questions: pd.DataFrame, model: str, paths: list[str], parser: str
) -> pd.DataFrame:
    """Score the prediction files of a model, and describe how other parsers read them."""
    tables = []
    for path in paths:
        predictions = read_predictions(path)
        file = Path(path).name
        if doubled := predictions.attrs["doubled"]:
            tell(f"{file}: {doubled} rows are there twice and were counted once")
        table = parse_replies(questions, predictions, parser)
        answers = table["response"]
        tell(
            f"{model}, {file}: {len(table)} replies, {int((answers == '').sum())} of which parser "
            f"{parser!r} could not read"
        )
        for name in PARSERS:
            readings = parse_replies(questions, predictions, name)["response"]
            differ = readings != answers
            if differ.any():
                opposite = differ & (readings != "") & (answers != "")
                tell(
                    f"{model}, {file}: parser {name!r} reads {int(differ.sum())} otherwise, "
                    f"{int(opposite.sum())} of them as another answer"
                )
        tables.append(table)
    joined = pd.concat(tables, ignore_index=True)
    duplicates = joined["question_id"][joined[["run", "question_id"]].duplicated()]
    if len(duplicates):
        raise InputError(
            f"the prediction files of {model} answer question {duplicates.iloc[0]} twice"
        )
    return mvp_metrics(with_categories(joined))


def _score_run(result: xarray.Dataset, arguments: argparse.Namespace) -> pd.DataFrame:
    """Score a run, and write the replies and the image pairs that failed."""
    name = result.attrs["observer"]
    table = read_run(result)
    stem = re.sub(r"[^A-Za-z0-9._]+", "-", f"mvp-bench-{name}").strip("-.")[:150]
    folder = make_folder(arguments.output or "psyprobe-results")
    files = [folder / f"{stem}.jsonl"]
    replies = table[["question_id", "reply", "judge", "place"]]
    replies = replies.rename(columns={"reply": "output", "judge": "extracted (GPT)"})
    write_text(
        files[0], replies.to_json(orient="records", lines=True, force_ascii=False)
    )
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


def failed_pairs_page(
    answers: pd.DataFrame, images: str | Path, model: str, max_pairs: int = 50
) -> str:
    """Write an HTML page of image pairs that a model failed on.

    Parameters
    ----------
    answers : pandas.DataFrame
        A question table with columns reply and response.
    images : str or Path
        The folder that its image paths start from.
    model : str
        Name of the model that answered.
    max_pairs : int
        Most pairs to show; the page says how many there are.
    """
    failed = answers["pair"][answers["response"] != answers["answer"]].unique()
    pairs = []
    for number in failed[:max_pairs]:
        group = answers[answers["pair"] == number]
        pictures = [
            (f"{_CAPTIONS[kind]}: {image}", *_picture(Path(images) / image))
            for image, kind in dict.fromkeys(
                zip(group["image"], group["kind"], strict=True)
            )
        ]
        rows = group.assign(caption=group["kind"].map(_CAPTIONS)).to_dict("records")
        pairs.append({"number": int(number), "images": pictures, "rows": rows})
    return render(
        "tasks/mvp_bench/failed_pairs.html",
        title=f"MVP-Bench: pairs on which {model} failed",
        failed=len(failed),
        asked=answers["pair"].nunique(),
        pairs=pairs,
    )


def _picture(path: Path) -> tuple[Picture | None, str]:
    """Read an image for an HTML page, or describe why it cannot be shown."""
    try:
        return picture(read_image(path)), ""
    except InputError as error:
        return None, str(error)
