"""Run R-Bench: a set of image pairs, an observer that answers in words, and a judge where one is named."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from psyprobe._typing import FloatArray
from psyprobe.errors import InputError
from psyprobe.files.images import read_image
from psyprobe.files.output import json_text, make_folder, write_text
from psyprobe.item_run import ItemQuestion, ask_items
from psyprobe.observers.chat.answering import Answer, AnswerObserver, Decoding
from psyprobe.store import Store
from psyprobe.tasks.judge import Judge
from psyprobe.tasks.r_bench.items import ImageSet, read_set, wording_version, wordings
from psyprobe.tasks.r_bench.judging import AGAINST, judge_answers, nothing_judged
from psyprobe.tasks.r_bench.metrics import rbench_metrics
from psyprobe.tasks.r_bench.scores import read_letters, score_items

#: A change of how images are read or shown asks anew; the wording has a version of its own.
_VERSION = "r-bench 1"


@dataclass(frozen=True)
class RBenchRun:
    """What came out of a run."""

    #: The items with answer_ref and answer_dis (word for word), judged_ref, judged_dis and judged_com (NaN where none
    #: was needed or none was given), absolute and relative.
    table: pd.DataFrame
    #: What the judge said, case by case; empty without one.
    verdicts: pd.DataFrame
    #: As `rbench_metrics` gives them.
    metrics: pd.DataFrame
    #: Who was asked and judged, how, and what failed; plain values that JSON can hold.
    facts: Mapping[str, Any]


def item_questions(images: ImageSet, tasks: tuple[str, ...] = ("MCQ", "VQA", "CAP")) -> list[ItemQuestion]:
    """What is to be asked about a set: each item twice, of its reference and of its corrupted image.

    Called "ref" or "dis", a line break, and the item's name. Items that share a reference image and a question share
    the answer too.
    """
    found = []
    for row in images.items.to_dict("records"):
        if row["task"] not in tasks:
            continue
        wording = wordings()[row["task"]]
        for kind in ("ref", "dis"):
            path = images.path(kind, row)
            found.append(
                ItemQuestion(
                    name=f"{kind}\n{row['name']}",
                    prompt=wording.filled(row["question"], row["options"]),
                    shown=(images.digests[path],),
                    images=partial(_drive, path),
                    decoding=Decoding(max_tokens=wording.max_tokens, logprobs=False),
                )
            )
    return found


def run_r_bench(
    images: str | Path | ImageSet,
    observer: AnswerObserver,
    *,
    judge: Judge | None = None,
    mcq_rule: str = "letter_then_judge",
    confidence: float = 0.9,
    store: str | Path | Store | None = None,
    progress: bool | None = None,
) -> RBenchRun:
    """Ask about every image of a set what the store does not know yet, judge and score.

    Parameters
    ----------
    images : str, Path or ImageSet
        A set, or its folder.
    observer : AnswerObserver
        Who is asked.
    judge : Judge, optional
        Who reads what rules leave open. Without one, answers other than letters are kept and not scored, and counted.
    mcq_rule : str
        See `psyprobe.tasks.r_bench.MCQ_RULES`.
    confidence : float
        Of intervals.
    store : str, Path or Store, optional
        The file that keeps answers and what the judge said: run again, it goes on from there.
    progress : bool, optional
        Whether to show progress bars.

    Raises
    ------
    InputError
        The set cannot be read, the rule needs a judge, or nothing can be scored.
    PsyprobeError
        Observer or judge cannot be reached.
    """
    if judge is None and mcq_rule in ("published", "judge"):
        raise InputError(
            f"the rule {mcq_rule!r} for multiple choice needs a judge; name one, or take letter_then_judge"
        )
    place = images if isinstance(images, ImageSet) else read_set(images)
    items = place.items
    if judge is None and not (items["task"] == "MCQ").any():
        raise InputError("short answers and captions cannot be scored without a judge; name one")
    said = ask_items(
        item_questions(place),
        observer,
        version=f"{_VERSION}, wording {wording_version()}",
        store=store,
        progress=progress,
    )
    answers = {
        kind: pd.Series(
            [said[f"{kind}\n{name}"].text for name in items["name"]], index=pd.Index(items["name"]), dtype=str
        )
        for kind in ("ref", "dis")
    }
    judged, verdicts = nothing_judged(items), pd.DataFrame(columns=["name", "against", "caption", "read", "unread"])
    if judge is not None:
        judged, verdicts = judge_answers(items, answers, judge, mcq_rule=mcq_rule, store=store, progress=progress)
    table = score_items(items, answers=answers, judged=judged, mcq_rule=mcq_rule)
    if not np.isfinite(table["absolute"]).any():
        raise InputError(
            "no answer could be scored: none is a letter, and no judge gave a verdict on another; name a judge, or "
            "another one"
        )
    for kind in ("ref", "dis"):
        table[f"answer_{kind}"] = answers[kind].to_numpy()
    for which in AGAINST:
        table[f"judged_{which}"] = judged[which].to_numpy()
    metrics = rbench_metrics(table, confidence=confidence)
    facts = _facts(place, observer, judge, mcq_rule, confidence, said, table, verdicts)
    return RBenchRun(table, verdicts, metrics, facts)


def _drive(path: Path) -> tuple[FloatArray]:
    drive: FloatArray = read_image(path).astype(np.float32) / np.float32(255)
    return (drive,)


def _facts(
    images: ImageSet,
    observer: AnswerObserver,
    judge: Judge | None,
    rule: str,
    confidence: float,
    said: Mapping[str, Answer],
    table: pd.DataFrame,
    verdicts: pd.DataFrame,
) -> dict[str, Any]:
    from psyprobe.files.software import software_versions

    choices = (table["task"] == "MCQ").to_numpy()
    unread = {kind: int((choices & (read_letters(table[f"answer_{kind}"])[0] == "")).sum()) for kind in ("ref", "dis")}
    return {
        "observer": observer.card.to_dict(),
        "judge": None if judge is None else judge.to_dict(),
        "mcq_rule": rule,
        "wording": wording_version(),
        "confidence": confidence,
        "items": len(table),
        "simulated_items": int(table["simulated"].sum()),
        "skipped_items": list(images.skipped),
        "answers": {
            "questions": len(said),
            "empty": sum(not answer.text.strip() for answer in said.values()),
            "cut_off": sum(answer.finish == "length" for answer in said.values()),
            "filtered": sum(answer.finish == "content_filter" for answer in said.values()),
            "choices_without_letter": unread,
        },
        "verdicts": {
            "cases": len(verdicts),
            "without_verdict": sum(not read for read in verdicts["read"]),
            "unread_replies": sum(len(unread) for unread in verdicts["unread"]),
        },
        "unscored": {
            measure: {
                task: int(table.loc[table["task"] == task, measure].isna().sum())
                for task in dict.fromkeys(table["task"])
            }
            for measure in ("absolute", "relative")
        },
        "software": software_versions(),
    }


def remarks(facts: Mapping[str, Any]) -> list[str]:
    """What a reader of the scores must know, as sentences."""
    found = [f"{facts['items']} items; multiple choice by the rule {facts['mcq_rule']!r}."]
    if facts["skipped_items"]:
        found.append(f"{len(facts['skipped_items'])} items were left out, since their images cannot be read.")
    if facts["judge"] is None:
        found.append("No judge: short answers and captions are kept and not scored.")
    else:
        failed = facts["verdicts"]
        found.append(
            f"Judge {facts['judge']['observer']['name']}, {facts['judge']['repeats']} times at temperature "
            f"{facts['judge']['temperature']:g}: {failed['cases']} cases, {failed['without_verdict']} without a "
            f"verdict, {failed['unread_replies']} replies that were none."
        )
    for measure, by_task in facts["unscored"].items():
        if any(by_task.values()):
            told = ", ".join(f"{n} {task}" for task, n in by_task.items() if n)
            found.append(f"Not scored and in no mean ({measure}): {told}.")
    answers = facts["answers"]
    for key, what in (
        ("empty", "answers are empty"),
        ("cut_off", "answers were cut off"),
        ("filtered", "answers were stopped by a content filter"),
    ):
        if answers[key]:
            found.append(f"{answers[key]} of {answers['questions']} {what}.")
    if facts["simulated_items"]:
        found.append(
            f"{facts['simulated_items']} items have corruptions that are simulated where R-Bench photographed them: do "
            "not put scores of the steps EI and CI, the group Wild or the whole beside the paper's."
        )
    if facts["observer"].get("random_weights"):
        found.append("The observer has RANDOM WEIGHTS: this tests the machinery and says nothing of a model.")
    return found


def write_run(run: RBenchRun, folder: str | Path) -> list[Path]:
    """Write a run's tables: items.csv, items.json, verdicts.json, metrics.csv and run.json."""
    place = make_folder(folder)
    rows = run.table.assign(
        options=[list(each) for each in run.table["options"]],
        key=[list(each) if isinstance(each, tuple) else each for each in run.table["key"]],
    )
    texts = {
        "items.csv": rows.assign(options=rows["options"].map(json.dumps), key=rows["key"].map(_told)).to_csv(
            index=False
        ),
        "items.json": rows.to_json(orient="records", indent=1, double_precision=15, force_ascii=False),
        "verdicts.json": run.verdicts.to_json(orient="records", indent=1, double_precision=15, force_ascii=False),
        "metrics.csv": run.metrics.to_csv(index=False),
        "run.json": json_text(dict(run.facts)),
    }
    for name, text in texts.items():
        write_text(place / name, text)
    return [place / name for name in texts]


def _told(key: object) -> str:
    return key if isinstance(key, str) else json.dumps(key, ensure_ascii=False)
