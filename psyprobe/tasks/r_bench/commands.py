"""``psyprobe r-bench``: check, score, report, build and show; each a word after the command."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from psyprobe.analysis.words.people import with_people
from psyprobe.errors import InputError, unknown_name
from psyprobe.experiment.page import JUDGE_TOKENS
from psyprobe.files.images import read_image
from psyprobe.files.output import json_text, make_folder, write_text, write_whole
from psyprobe.files.terminal import say, settings, show, tell
from psyprobe.observers import load_observer
from psyprobe.probes.experiments import load_results
from psyprobe.reporting.page import write_page
from psyprobe.tasks.items import Judge, count_verdicts, judge_cases
from psyprobe.tasks.r_bench.build import build_set, write_example
from psyprobe.tasks.r_bench.items import (
    TASKS,
    check_items,
    export_tsv,
    import_tsv,
    read_items,
    read_set,
)
from psyprobe.tasks.r_bench.metrics import (
    components,
    correlations,
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

_FILES = ("dis", "ref", "judged_dis", "judged_ref", "judged_com")


def add_r_bench_options(parser: argparse.ArgumentParser) -> None:
    """Actions of the command, and the options of each."""
    actions = parser.add_subparsers(
        dest="action", metavar="ACTION", required=True, parser_class=type(parser)
    )
    added = {}
    for name, (_, summary) in _ACTIONS.items():
        added[name] = actions.add_parser(
            name, help=summary, description=f"{summary[0].upper()}{summary[1:]}."
        )
        # Given before the action it stays given.
        added[name].add_argument(
            "--json", action="store_true", default=argparse.SUPPRESS, help="print JSON"
        )
        added[name].add_argument(
            "--debug", action="store_true", default=argparse.SUPPRESS, help="show traces of errors"
        )
    score = added["score"]
    report = added["report"]
    build = added["build"]
    for each in (added["check"], score):
        each.add_argument(
            "items", metavar="ITEMS", help="the item table, as released (GBK) or in UTF-8"
        )
    files = (
        "dis, ref (answers: .csv, .tsv, .xlsx, .json, .jsonl), judged_dis, judged_ref, "
        "judged_com (.csv)"
    )
    models: dict[str, Any] = {
        "nargs": "+",
        "action": "append",
        "required": True,
        "metavar": "NAME KIND=FILE",
    }
    score.add_argument("--model", help=f"a model's name and its files: {files}", **models)
    people = (
        "those of --model that are people, at least three: one row, the mean without the "
        "best and the worst"
    )
    score.add_argument("--people", nargs="+", default=[], metavar="NAME", help=people)
    score.add_argument(
        "--judge", metavar="NAME", help="a chat model that reads what rules leave open"
    )
    taken = "what the judge takes besides"
    score.add_argument("--judge-option", nargs="+", default=[], metavar="NAME=VALUE", help=taken)
    score.add_argument(
        "--judge-repeats", type=int, default=1, metavar="N", help="5 in the paper (default 1)"
    )
    score.add_argument(
        "--judge-temperature", type=float, default=0.0, metavar="T", help="(default %(default)s)"
    )
    told = "where its replies are cut off, reasoning included (default %(default)s)"
    score.add_argument("--judge-max-tokens", type=int, default=JUDGE_TOKENS, metavar="N", help=told)
    score.add_argument("--store", metavar="FILE", help="SQLite file that keeps what the judge said")
    score.add_argument(
        "--task", nargs="+", metavar="TASK", help="MCQ, VQA, CAP (all); VLMEvalKit has MCQ alone"
    )
    rules = "letter_then_judge, published, judge or letter (default %(default)s)"
    score.add_argument("--mcq-rule", default="letter_then_judge", help=rules)
    score.add_argument(
        "--format", default="text", help="text, markdown, latex, csv or json (default %(default)s)"
    )
    drawn = (
        "write metrics.csv and figures into this folder, and compare models there (differences.csv)"
    )
    score.add_argument("--output", metavar="DIR", help=drawn)
    report.add_argument(
        "results", nargs="+", metavar="STORE|RESULT.nc", help="what psyprobe run left of R-Bench"
    )
    report.add_argument(
        "--set", metavar="SET", help="the folder of the set: show and measure images too"
    )
    report.add_argument(
        "--output", default="psyprobe-results", metavar="DIR", help="folder (default %(default)s)"
    )
    for each in (score, report):
        each.add_argument(
            "--confidence", type=float, default=0.9, help="of intervals (default %(default)s)"
        )
    build.add_argument("photographs", metavar="PHOTOS", help="folder of reference images")
    build.add_argument(
        "questions", metavar="QUESTIONS", help="CSV: image, type, question, choice, answer"
    )
    build.add_argument(
        "--items", type=int, default=3, metavar="N", help="of each dimension and task (default 3)"
    )
    build.add_argument(
        "--skip-bad",
        action="store_true",
        help="leave out photographs that are unfit, and count them",
    )
    added["import"].add_argument(
        "corrupted", metavar="DIS.tsv", help="with columns distortion and strength"
    )
    added["import"].add_argument(
        "reference", metavar="REF.tsv", help="the same items about reference images"
    )
    bands = added["bands"]
    csf = added["csf"]
    bands.add_argument("set", metavar="SET", help="the folder of a set")
    bands.add_argument(
        "--output",
        required=True,
        metavar="DIR",
        help="folder of the sets and their pages, new or empty",
    )
    bands.add_argument(
        "--ppd",
        type=float,
        default=64.0,
        help="pixels per degree of the images (default %(default)g)",
    )
    octaves: dict[str, Any] = {
        "nargs": "+",
        "type": float,
        "default": [1.0, 2.0, 4.0, 8.0, 16.0],
        "metavar": "CPD",
    }
    bands.add_argument("--bands", help="centres, cpd (default 1 2 4 8 16)", **octaves)
    csf.add_argument(
        "results",
        nargs="+",
        metavar="STORE|RESULT.nc",
        help="CSFs of models, and their answers about sets",
    )
    csf.add_argument(
        "--output", default="psyprobe-results", metavar="DIR", help="folder (default %(default)s)"
    )
    csf.add_argument(
        "--confidence", type=float, default=0.95, help="of intervals (default %(default)s)"
    )
    for each in (build, added["import"]):
        each.add_argument(
            "--output", required=True, metavar="SET", help="folder of the set, new or empty"
        )
    added["export"].add_argument("set", metavar="SET", help="the folder of a set")
    for each in (added["export"], added["example"]):
        each.add_argument("--output", required=True, metavar="DIR", help="folder")
    added["gallery"].add_argument("image", metavar="IMAGE", help="image file")
    added["gallery"].add_argument(
        "--output", default="gallery.html", metavar="FILE", help="(default %(default)s)"
    )
    for each in (build, added["gallery"]):
        each.add_argument(
            "--seed", type=int, default=0, help="of what is drawn (default %(default)s)"
        )
        each.add_argument(
            "--scale", action="store_true", help="scale lengths and counts, meant for 512 x 384"
        )


def r_bench_command(arguments: argparse.Namespace) -> int:
    """Do one of the actions; what it returns, as values and as text, is printed."""
    if said := _ACTIONS[arguments.action][0](arguments):
        show(*said, as_json=arguments.json)
    return 0


def check_action(arguments: argparse.Namespace) -> tuple[Any, str]:
    """Say what is in an item table."""
    report = check_items(read_items(arguments.items))
    return report.to_dict(), str(report)


def score_action(arguments: argparse.Namespace) -> None:
    """Score answers and judgements, and print the paper's table."""
    items = read_items(arguments.items)
    tell(f"{arguments.items}: {len(items)} items, read as {check_items(items).encoding}")
    for task in arguments.task or ():
        if task not in TASKS:
            raise unknown_name("task", task, TASKS)
    items = items[items["task"].isin(arguments.task or TASKS)].reset_index(drop=True)
    judge = None
    if arguments.judge:
        judging = load_observer(
            arguments.judge, **settings(arguments.judge_option, "--judge-option")
        )
        judge = Judge(
            judging,
            arguments.judge_repeats,
            arguments.judge_temperature,
            arguments.judge_max_tokens,
        )
    metrics = {}
    tables = {}
    for name, *named in arguments.model:
        answers, judged = _read(name, named)
        if judge is not None:
            wanted = [which for which in answerable(answers) if which not in judged]
            cases = open_cases(items, answers, mcq_rule=arguments.mcq_rule, against=wanted)
            verdicts = judge_cases(cases, judge, store=arguments.store)
            counted = count_verdicts(verdicts.values())
            cut = f", {counted['cut_replies']} of them cut off: give --judge-max-tokens" * bool(
                counted["cut_replies"]
            )
            tell(
                f"{name}: {counted['cases']} cases were judged, {counted['without_verdict']} "
                "without a verdict, which "
                f"are in no mean; {counted['unread_replies']} replies of the judge were no "
                f"verdict{cut}"
            )
            judged |= judgements(items, verdicts, wanted)[0]
        tables[name] = score_items(
            items, answers=answers, judged=judged, mcq_rule=arguments.mcq_rule
        )
        metrics[name] = rbench_metrics(tables[name], confidence=arguments.confidence)
    say(
        rbench_table(
            with_people(metrics, arguments.people), "json" if arguments.json else arguments.format
        )
    )
    if arguments.output:
        _write(metrics, tables, Path(arguments.output), arguments.confidence)


def _write(
    metrics: dict[str, pd.DataFrame],
    tables: dict[str, pd.DataFrame],
    folder: Path,
    confidence: float,
) -> None:
    from psyprobe.tasks.r_bench.report import draw_figures

    make_folder(folder)
    write_text(folder / "metrics.csv", rbench_table(metrics, "csv") + "\n")
    drawn = draw_figures(metrics, tables, folder)
    first, *others = tables
    found = [
        paired_difference(tables[first], tables[other], confidence=confidence).assign(
            one=first, other=other
        )
        for other in others
    ]
    if found:
        write_text(folder / "differences.csv", csv_table(pd.concat(found, ignore_index=True)))
    if len(tables) > 2:
        try:
            for by in ("step", "group"):
                write_text(
                    folder / f"correlations_{by}.csv",
                    csv_table(correlations(metrics, by), index=True),
                )
            write_text(
                folder / "components.csv", csv_table(components(metrics).loadings, index=True)
            )
        except InputError as error:
            # Models may be alike or have answered other parts; the table and the figures stand all
            # the same.
            tell(f"correlations and components are left out: {error}")
    tell(
        f"{folder}: metrics.csv, {len(drawn)} figures as PNG and "
        f"PDF{', differences.csv' if others else ''}"
    )


def _read(model: str, named: list[str]) -> tuple[dict[str, pd.Series], dict[str, pd.Series]]:
    answers = {}
    judged = {}
    for text in named:
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
    """Write the tables, figures and page of what observers answered: the paper's table."""
    from psyprobe.tasks.r_bench.report import write_report

    found = [
        result
        for path in arguments.results
        for result in load_results(path)
        if result.attrs["probe"] == "r_bench"
    ]
    if not found:
        raise InputError(
            f"{', '.join(arguments.results)}: there is no result of R-Bench; run an experiment "
            "with it"
        )
    runs = {result.attrs["observer"]: read_run(result, arguments.confidence) for result in found}
    folder = make_folder(arguments.output)
    for number, (name, run) in enumerate(runs.items(), start=1):
        write_run(run, folder / f"{number}_{re.sub(r'[^A-Za-z0-9.-]+', '_', name)}")
    page = write_report(
        runs, folder, images=read_set(arguments.set, skip=True) if arguments.set else None
    )
    for name, run in runs.items():
        for remark in remarks(run.facts):
            tell(f"{name}: {remark}")
    tell(f"{page}: the report; tables of each observer are in folders beside it")
    table = rbench_table({name: run.metrics for name, run in runs.items()})
    return {name: dict(run.facts) for name, run in runs.items()} | {"report": str(page)}, table


def build_action(arguments: argparse.Namespace) -> tuple[Any, str]:
    """Build a set."""
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
        f"{built.items} items in {built.folder}; look at contact_sheet.png before you ask anybody."
    )
    return vars(built) | {"folder": str(built.folder)}, text


def export_action(arguments: argparse.Namespace) -> tuple[Any, str]:
    """Write a set's multiple choice for VLMEvalKit."""
    files = {
        kind: str(path)
        for kind, path in export_tsv(read_set(arguments.set), arguments.output).items()
    }
    return files, "\n".join(files.values())


def import_action(arguments: argparse.Namespace) -> tuple[Any, str]:
    """Make a set of VLMEvalKit's tables."""
    items = import_tsv(arguments.corrupted, arguments.reference, arguments.output)
    return {"folder": arguments.output, "items": items}, f"{items} items in {arguments.output}"


def example_action(arguments: argparse.Namespace) -> tuple[Any, str]:
    """Write photographs and questions to try things with."""
    photographs, questions = write_example(arguments.output)
    told = {"photographs": str(photographs), "questions": str(questions)}
    return told, f"psyprobe r-bench build {photographs} {questions} --output SET"


def gallery_action(arguments: argparse.Namespace) -> tuple[Any, str]:
    """Write a page with an image in all 33 ways."""
    from psyprobe.tasks.r_bench.report import gallery

    image = read_image(arguments.image)
    text = gallery(
        image, name=Path(arguments.image).stem, seed=arguments.seed, scale=arguments.scale
    )
    path = write_page(text, arguments.output)
    return {"page": str(path)}, str(path)


def bands_action(arguments: argparse.Namespace) -> tuple[Any, str]:
    """Filter the references of a set to octave bands, a set and a page each."""
    from psyprobe.tasks.r_bench.bands import write_bands

    pages = [
        str(page)
        for page in write_bands(arguments.set, arguments.output, arguments.bands, arguments.ppd)
    ]
    return {"pages": pages}, f"psyprobe run {' '.join(pages)} --observer NAME"


def csf_action(arguments: argparse.Namespace) -> tuple[Any, str]:
    """Correlate contrast sensitivity with accuracy, and draw it."""
    import matplotlib as mpl

    from psyprobe.plotting.axes import save_figure
    from psyprobe.tasks.r_bench.bands import link_results, link_text, plot_links

    mpl.use("agg")
    results = [result for path in arguments.results for result in load_results(path)]
    found = link_results(results, confidence=arguments.confidence)
    folder = make_folder(arguments.output)
    write_text(folder / "csf_robustness.json", json_text(found.to_dict()))
    write_whole(folder / "csf_robustness.png", partial(save_figure, plot_links(found)))
    return found.to_dict(), f"{link_text(found)}\n{folder / 'csf_robustness.png'}"


#: Each action, and what it does in words.
_ACTIONS: dict[str, tuple[Callable[[argparse.Namespace], tuple[Any, str] | None], str]] = {
    "check": (check_action, "say what is in an item table, and what in it is odd"),
    "score": (score_action, "score answers and judgements made elsewhere, beside the paper's"),
    "report": (
        report_action,
        "write tables, figures and a page of what psyprobe run asked about a set",
    ),
    "build": (
        build_action,
        "build a set: corrupt photographs, balanced over dimensions, strengths and tasks",
    ),
    "export": (
        export_action,
        "write the multiple choice of a set as R-Bench-Dis.tsv and -Ref.tsv for VLMEvalKit",
    ),
    "import": (import_action, "make a set of VLMEvalKit's two tables"),
    "example": (example_action, "write photographs and questions to try things with"),
    "bands": (
        bands_action,
        "filter the references of a set to octave bands: sets and pages to ask about",
    ),
    "csf": (
        csf_action,
        "tell whether contrast sensitivity predicts accuracy on filtered and corrupted images",
    ),
    "gallery": (gallery_action, "write a page with an image in all 33 ways at three strengths"),
}
