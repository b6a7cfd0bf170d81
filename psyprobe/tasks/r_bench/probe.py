"""R-Bench as a probe: pairs of images, an observer that answers in words, and a judge where one is named.

An experiment's page has ``probe = "r_bench"``, ``items`` (the folder of a set), perhaps ``[judge]``, and in
``[options]`` the ``mcq_rule`` (see `MCQ_RULES`) and ``skip_bad``: leave out items with bad images, and count them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from psyprobe.analysis.score import OBSERVER, Metric, Row
from psyprobe.analysis.words.score import refuse_features
from psyprobe.errors import InputError
from psyprobe.files.output import json_text, make_folder, write_text
from psyprobe.observers.chat.answering import AnswerObserver, Decoding
from psyprobe.running.protocol import RunRecord
from psyprobe.running.store import Store
from psyprobe.tasks.asking import ItemQuestion, Judge, judge_of, put, read_verdicts
from psyprobe.tasks.item_session import ItemSession, Task, answers_of, items_of, judged_attributes, options_of
from psyprobe.tasks.r_bench.items import ImageSet, read_set, wording_version, wordings
from psyprobe.tasks.r_bench.judging import AGAINST, judgements, open_cases
from psyprobe.tasks.r_bench.metrics import rbench_metrics
from psyprobe.tasks.r_bench.scores import read_letters, score_items
from psyprobe.tasks.tables import TaskScore, by_observer, place

if TYPE_CHECKING:
    from pathlib import Path

    import xarray
    from matplotlib.axes import Axes
    from matplotlib.figure import SubFigure

    from psyprobe.experiment import Experiment

ABILITIES = ("answer",)
SECTIONS = ("items", "judge")
#: A change of how images are read or shown asks anew; the wording has a version of its own.
_VERSION = "r-bench 1"
_OPTIONS = {"mcq_rule": "letter_then_judge", "skip_bad": False}
#: Columns of an item table that a result holds as they are, and as JSON.
_PLAIN = ("question", "task", "dimension", "strength", "reference", "simulated")
_LISTED = ("options", "key")
_METRICS = {
    name: Metric(name, f"{name.capitalize()} robustness", more_is_better=True, digits=4, suffix=name)
    for name in ("absolute", "relative")
}

answer = put


def plan(experiment: Experiment, observer: AnswerObserver, judge: Judge | None = None) -> ItemSession:
    """As in `Probe`; a judge that is given stands in for the page's.

    Raises
    ------
    InputError
        The set cannot be read, or the rule needs a judge.
    """
    options = options_of(experiment, _OPTIONS)
    judge, rule = judge or judge_of(experiment), options["mcq_rule"]
    images = read_set(items_of(experiment), skip=options["skip_bad"])
    if judge is None and rule in ("published", "judge"):
        raise InputError(f"the rule {rule!r} for multiple choice needs a judge; name one, or take letter_then_judge")
    if judge is None and not (images.items["task"] == "MCQ").any():
        raise InputError("short answers and captions cannot be scored without a judge; name one")
    task = Task(
        version=f"{_VERSION}, wording {wording_version()}",
        questions=item_questions(images),
        cases=lambda replies: open_cases(images.items, _by_kind(images.items, replies), mcq_rule=rule),
        items=json.loads(images.items.to_json(orient="records")),
        options={**options, "wording": wording_version(), "skipped": list(images.skipped)},
    )
    return ItemSession(experiment, observer, task, judge)


def item_questions(images: ImageSet) -> list[ItemQuestion]:
    """Each item twice, of its reference and of its corrupted image: "ref" or "dis", a line break, and its name.

    Items that share a reference image and a question share the answer too.
    """
    found = []
    for row in images.items.to_dict("records"):
        wording = wordings()[row["task"]]
        for kind in ("ref", "dis"):
            path = images.path(kind, row)
            found.append(
                ItemQuestion(
                    name=f"{kind}\n{row['name']}",
                    prompt=wording.filled(row["question"], row["options"]),
                    decoding=Decoding(max_tokens=wording.max_tokens, logprobs=False),
                    images=((str(path), images.digests[path]),),
                )
            )
    return found


def result(record: RunRecord, store: Store) -> xarray.Dataset:
    """One row an item: what was asked and what was answered about its reference and its corrupted image."""
    import xarray

    items = pd.DataFrame(store.content(record.layout["items"]))
    said = answers_of(record, store)
    columns = {name: items[name].to_numpy() for name in _PLAIN}
    columns |= {
        name: np.array([json.dumps(each, ensure_ascii=False) for each in items[name]], object) for name in _LISTED
    }
    columns["quality"] = items["quality"].to_numpy(dtype=np.float64)
    for kind, answers in (("ref", said[0::2]), ("dis", said[1::2])):
        columns[f"answer_{kind}"] = np.array([each.text for each in answers], dtype=object)
        columns[f"finish_{kind}"] = np.array([each.finish for each in answers], dtype=object)
    return xarray.Dataset(
        {name: (("item",), values) for name, values in columns.items()},
        coords={"item": items["name"].to_numpy()},
        attrs=judged_attributes(record, store),
    )


def score(
    result: xarray.Dataset, *, measure: str | None = None, layer: str | None = None, confidence: float = 0.9
) -> tuple[RBenchScore]:
    """Robustness of the observer, and that of one who always says A where letters are to choose from.

    Raises
    ------
    InputError
        Nothing can be scored, or a measure or layer is named, which answers in words do not have.
    """
    refuse_features(measure=measure, layer=layer)
    return (RBenchScore(result.attrs, confidence, "", "", read_run(result, confidence)),)


def plot(
    results: Sequence[xarray.Dataset],
    ax: Axes | None = None,
    *,
    figure: SubFigure | None = None,
    measure: str | None = None,
    layer: str | None = None,
    **_: Any,
) -> Axes:
    """Absolute robustness by step on the way of an image, with intervals."""
    from psyprobe.tasks.r_bench.figures import bars

    refuse_features(measure=measure, layer=layer)
    metrics = {name: read_run(result).metrics for name, result in by_observer(results).items()}
    return bars(metrics, "step", ax=place(ax, figure))


@dataclass(frozen=True)
class RBenchRun:
    """What a result says."""

    #: The items with answer_ref and answer_dis (word for word), judged_ref, judged_dis and judged_com (NaN where none
    #: was needed or none was given), absolute and relative.
    table: pd.DataFrame
    #: What the judge said, case by case; empty without one.
    verdicts: pd.DataFrame
    #: As `rbench_metrics` gives them.
    metrics: pd.DataFrame
    #: Who was asked and judged, how, and what failed; plain values that JSON can hold.
    facts: Mapping[str, Any]


def read_run(result: xarray.Dataset, confidence: float = 0.9) -> RBenchRun:
    """Score a result anew, without asking anybody.

    Raises
    ------
    InputError
        Nothing can be scored.
    """
    items = pd.DataFrame({"name": result["item"].to_numpy(), **{name: result[name].to_numpy() for name in _PLAIN}})
    for name in _LISTED:
        values = map(json.loads, result[name].to_numpy())
        items[name] = [tuple(each) if isinstance(each, list) else each for each in values]
    items["quality"] = [None if np.isnan(each) else each for each in result["quality"].to_numpy()]
    answers = {
        kind: pd.Series(result[f"answer_{kind}"].to_numpy(), index=pd.Index(items["name"]), dtype=str)
        for kind in ("ref", "dis")
    }
    rule = json.loads(result.attrs["options"])["mcq_rule"]
    judged, verdicts = judgements(items, read_verdicts(result.attrs["judged"]))
    table = score_items(items, answers=answers, judged=judged, mcq_rule=rule)
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
    return RBenchRun(table, verdicts, metrics, _facts(result, table, verdicts, confidence))


@dataclass(frozen=True)
class RBenchScore(TaskScore):
    """Robustness of one observer."""

    run: RBenchRun

    def rows(self) -> Sequence[Row]:
        """The observer, and one who always says A."""
        rows = [self._row(OBSERVER, self.run.metrics, [line.rstrip(".") for line in remarks(self.run.facts)])]
        choices = self.run.table[self.run.table["task"] == "MCQ"]
        if len(choices):
            same = pd.Series("A", index=pd.Index(choices["name"]))
            always = score_items(choices, answers={"dis": same, "ref": same}, mcq_rule="letter")
            metrics = rbench_metrics(always, confidence=self.confidence)
            rows.append(self._row("always A (multiple choice alone)", metrics))
        return rows

    def _row(self, responder: str, metrics: pd.DataFrame, notes: Sequence[str] = ()) -> Row:
        overall = metrics[metrics["breakdown"] == "overall"].set_index("measure")
        values = {
            metric: (float(row["value"]), float(row["low"]), float(row["high"]))
            for name, metric in _METRICS.items()
            if name in overall.index
            for row in [overall.loc[name]]
        }
        return self.row("R-Bench", responder, values, notes)

    def notes(self) -> Sequence[str]:
        """What the headings mean."""
        return (
            "Absolute: answers about corrupted images against the key; relative: answers about reference images, times "
            "the agreement of both. From 0 to 1, means over items, with {confidence} % bootstrap intervals over items.",
        )

    def to_dict(self) -> dict[str, Any]:
        """The facts of the run and all metrics."""
        listed = json.loads(self.run.metrics.to_json(orient="records", double_precision=15))
        return {**self.run.facts, "metrics": listed}


def _by_kind(items: pd.DataFrame, replies: Mapping[str, str]) -> dict[str, pd.Series]:
    names = items["name"]
    return {
        kind: pd.Series([replies[f"{kind}\n{name}"] for name in names], index=pd.Index(names), dtype=str)
        for kind in ("ref", "dis")
    }


def _facts(result: xarray.Dataset, table: pd.DataFrame, verdicts: pd.DataFrame, confidence: float) -> dict[str, Any]:
    choices = (table["task"] == "MCQ").to_numpy()
    unread = {kind: int((choices & (read_letters(table[f"answer_{kind}"])[0] == "")).sum()) for kind in ("ref", "dis")}
    texts, finish = (np.concatenate([result[f"{what}_{kind}"] for kind in unread]) for what in ("answer", "finish"))
    options = json.loads(result.attrs["options"])
    return {
        "experiment": result.attrs["experiment"],
        "observer": json.loads(result.attrs["observer_card"]),
        "judge": json.loads(result.attrs["judge"]),
        "mcq_rule": options["mcq_rule"],
        "wording": options["wording"],
        "confidence": confidence,
        "items": len(table),
        "simulated_items": int(table["simulated"].sum()),
        "skipped_items": options["skipped"],
        "answers": {
            "questions": len(texts),
            "empty": sum(not text.strip() for text in texts),
            "cut_off": int((finish == "length").sum()),
            "filtered": int((finish == "content_filter").sum()),
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
        "software": json.loads(result.attrs["software"]),
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
