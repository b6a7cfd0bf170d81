"""R-Bench as a probe: pairs of images, an observer that answers in words, and a judge where one is
named.

An experiment's page has ``probe = "r_bench"``, ``items`` (the folder of a set), perhaps
``[judge]``, and in ``[options]`` the ``mcq_rule`` (see `MCQ_RULES`), ``skip_bad``: leave out items
with bad images, and count them, and ``band``: the centre of the octave, cpd, to which images are
filtered in place of being corrupted.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from psyprobe.analysis.score import OBSERVER, Metric, Row
from psyprobe.analysis.words.readers import JUDGE_READING, Rereading
from psyprobe.analysis.words.score import refuse_features
from psyprobe.analysis.words.sessions import person_of
from psyprobe.corruption import dimension_numbered
from psyprobe.errors import InputError
from psyprobe.files.output import json_text, make_folder, write_text
from psyprobe.observers.chat.protocol import AnswerObserver, Decoding
from psyprobe.plotting.figure_data import Part
from psyprobe.running.protocol import RunRecord
from psyprobe.running.store import Store
from psyprobe.running.task import Task
from psyprobe.tasks.agreement import (
    PeopleAgreement,
    PeopleMean,
    agreement_of_people,
    mean_score,
    people_by_experiment,
)
from psyprobe.tasks.item_schedule import (
    ItemSchedule,
    ItemTask,
    answers_of,
    item_result,
    items_of,
    judged_attributes,
    options_of,
    reaction_times,
)
from psyprobe.tasks.items import (
    Case,
    ItemQuestion,
    Judge,
    Verdicts,
    count_verdicts,
    judge_cases,
    judge_of,
    put,
    read_verdicts,
    reader_of,
)
from psyprobe.tasks.parts import answers_table, by_parts, corruption_gallery
from psyprobe.tasks.r_bench.items import ImageSet, prompt, read_set, wordings
from psyprobe.tasks.r_bench.metrics import MEASURES, rbench_metrics, rows_by
from psyprobe.tasks.r_bench.scores import (
    AGAINST,
    MCQ_RULES,
    judgements,
    open_cases,
    read_letters,
    score_items,
)
from psyprobe.tasks.tables import ReadScore, by_observer, csv_table, place

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
_TABLE = "R-Bench"
_OPTIONS = {"mcq_rule": "letter_then_judge", "skip_bad": False, "band": 0.0}
#: Columns of an item table that a result holds as they are, and as JSON.
_PLAIN = ("question", "task", "dimension", "strength", "reference", "simulated")
_LISTED = ("options", "key")
#: Columns of a report's table of answers, and what they are called.
_ANSWERED = {
    "name": "item",
    "task": "task",
    "dimension": "corruption",
    "strength": "strength",
    "question": "question",
    "key": "key",
    "answer_ref": "about the reference",
    "answer_dis": "about the corrupted image",
    "absolute": "absolute",
    "relative": "relative",
}
_json = partial(json.dumps, ensure_ascii=False)

answer = put


def plan(
    experiment: Experiment, observer: AnswerObserver, judge: Judge | None = None
) -> ItemSchedule:
    """As in `Probe`; a judge that is given stands in for the page's.

    Raises
    ------
    InputError
        The set cannot be read, or the rule needs a judge.
    """
    options = options_of(experiment, _OPTIONS)
    judge = judge or judge_of(experiment)
    rule = options["mcq_rule"]
    images = read_set(items_of(experiment), skip=options["skip_bad"])
    if judge is None and rule in ("published", "judge"):
        raise InputError(
            f"the rule {rule!r} for multiple choice needs a judge; name one, or take "
            "letter_then_judge"
        )
    if judge is None and not (images.items["task"] == "MCQ").any():
        raise InputError("short answers and captions cannot be scored without a judge; name one")

    def cases(replies: Mapping[str, str]) -> Sequence[Case]:
        names = images.items["name"]
        said = {kind: [replies[f"{kind}\n{name}"] for name in names] for kind in ("ref", "dis")}
        return open_cases(images.items, _answers(images.items, said), mcq_rule=rule)

    task = ItemTask(
        version=f"{_VERSION}, wording {wordings()['version']}",
        questions=item_questions(images),
        cases=cases,
        items=json.loads(images.items.to_json(orient="records")),
        options={**options, "wording": wordings()["version"], "skipped": list(images.skipped)},
        # Who saw the reference knows what is on its corrupted twin.
        afterwards=lambda name: name.startswith("ref\n"),
    )
    return ItemSchedule(experiment, observer, task, judge)


def item_questions(images: ImageSet) -> list[ItemQuestion]:
    """Each item twice, of its reference and of its corrupted image: "ref" or "dis", a line break,
    and its name.

    Items that share a reference image and a question share the answer too.
    """
    found = []
    for row in images.items.to_dict("records"):
        asked = prompt(row["task"], row["question"], row["options"])
        decoding = Decoding(max_tokens=wordings()[row["task"]]["max_tokens"], logprobs=False)
        for kind, path in (("ref", images.path("ref", row)), ("dis", images.path("dis", row))):
            shown = ((str(path), images.digests[path]),)
            letters = tuple("ABCDE"[: len(row["options"])])
            found.append(
                ItemQuestion(f"{kind}\n{row['name']}", asked, decoding, images=shown, words=letters)
            )
    return found


def task(record: RunRecord) -> Task:
    """As in `Probe`: every item has an answer that is correct."""
    return Task(scored="correct")


def result(record: RunRecord, store: Store) -> xarray.Dataset:
    """One row an item: what was asked and what was answered about its reference and its corrupted
    image.
    """
    items = pd.DataFrame(store.content(record.layout["items"]))
    said = answers_of(record, store)
    columns = {name: items[name].to_numpy() for name in _PLAIN}
    columns |= {name: items[name].map(_json).to_numpy() for name in _LISTED}
    columns["quality"] = items["quality"].to_numpy(dtype=np.float64)
    for kind, answers in (("ref", said[0::2]), ("dis", said[1::2])):
        columns[f"answer_{kind}"] = np.array([answer.text for answer in answers], dtype=object)
        columns[f"finish_{kind}"] = np.array([answer.finish for answer in answers], dtype=object)
        columns |= {f"{name}_{kind}": values for name, values in reaction_times(answers).items()}
    return item_result(items["name"].tolist(), columns, judged_attributes(record, store))


def score(
    result: xarray.Dataset,
    *,
    measure: str | None = None,
    layer: str | None = None,
    confidence: float = 0.9,
) -> tuple[RBenchScore]:
    """Robustness of the observer, and that of one who always says A where letters are to choose
    from.

    Raises
    ------
    InputError
        Nothing can be scored, or a measure or layer is named, which answers in words do not have.
    """
    refuse_features(measure=measure, layer=layer)
    run = read_run(result, confidence)
    return (RBenchScore(result.attrs, confidence, "", "", rereadings(result, run), run),)


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


def report(results: Sequence[xarray.Dataset]) -> list[Part]:
    """Robustness by step, group, task and strength, some answers, and what the corruptions look
    like.
    """
    runs = {name: read_run(result) for name, result in by_observer(results).items()}
    metrics = {name: run.metrics for name, run in runs.items()}
    parts: list[Part] = []
    for by in ("step", "group", "task", "strength"):
        rows = {measure: rows_by(metrics, by, measure) for measure in MEASURES}
        parts.append(by_parts(f"Robustness by {by}", "Robustness", rows))
    told = {
        name: run.table.assign(
            dimension=[dimension_numbered(number).title for number in run.table["dimension"]]
        )
        for name, run in runs.items()
    }
    numbers = sorted({int(number) for run in runs.values() for number in run.table["dimension"]})
    return [
        *parts,
        answers_table(told, _ANSWERED),
        *corruption_gallery([dimension_numbered(n).name for n in numbers]),
    ]


@dataclass(frozen=True)
class RBenchRun:
    """What a result says."""

    #: The items with answer_ref and answer_dis (word for word), judged_ref, judged_dis and
    #: judged_com (NaN where none was needed or none was given), absolute and relative.
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
    items, answers = _asked(result)
    rule = json.loads(result.attrs["options"])["mcq_rule"]
    found = read_verdicts(result.attrs["judged"])
    judged, verdicts = judgements(items, found)
    table = score_items(items, answers=answers, judged=judged, mcq_rule=rule)
    if not np.isfinite(table["absolute"]).any():
        raise InputError(
            "no answer could be scored: none is a letter, and no judge gave a verdict on "
            "another; name a judge, or "
            "another one"
        )
    told = {"answer": answers, "judged": {kind: judged[kind] for kind in AGAINST}}
    table = table.assign(
        **{f"{what}_{kind}": said[kind].to_numpy() for what, said in told.items() for kind in said}
    )
    metrics = rbench_metrics(table, confidence=confidence)
    return RBenchRun(table, verdicts, metrics, _facts(result, table, found, confidence))


def _asked(result: xarray.Dataset) -> tuple[pd.DataFrame, dict[str, pd.Series]]:
    """The items of a result, and the answers about them."""
    items = pd.DataFrame(
        {"name": result["item"].to_numpy(), **{name: result[name].to_numpy() for name in _PLAIN}}
    )
    for name in _LISTED:
        values = map(json.loads, result[name].to_numpy())
        items[name] = [tuple(value) if isinstance(value, list) else value for value in values]
    items["quality"] = result["quality"].to_numpy()
    return items, _answers(
        items, {kind: result[f"answer_{kind}"].to_numpy() for kind in ("ref", "dis")}
    )


def rereadings(result: xarray.Dataset, run: RBenchRun) -> tuple[Rereading, ...]:
    """How the other rules for multiple choice, and a judge that read every answer, score the items
    of a run.
    """
    if person_of(result):
        return ()
    items, answers = _asked(result)
    judged = {
        kind: pd.Series(run.table[f"judged_{kind}"].to_numpy(), index=run.table["name"])
        for kind in AGAINST
    }
    own = run.facts["mcq_rule"]
    scored = {}
    # Of a letter no judge was asked, where letters count first.
    open_to = MCQ_RULES if own in ("published", "judge") else ("letter", "letter_then_judge")
    for rule in open_to if (items["task"] == "MCQ").any() else ():
        if rule != own:
            scored[f"rule {rule}"] = score_items(
                items, answers=answers, judged=judged, mcq_rule=rule
            )
    if f"{JUDGE_READING}_absolute" in result:
        given = {measure: result[f"{JUDGE_READING}_{measure}"].to_numpy() for measure in MEASURES}
        scored[result[f"{JUDGE_READING}_absolute"].attrs["reader"]] = run.table.assign(**given)
    ours = run.table["absolute"].to_numpy()
    found = []
    for reader, table in scored.items():
        theirs = table["absolute"].to_numpy()
        differ = ~np.isclose(theirs, ours, equal_nan=True)
        shares = [
            float(each.mean()) for each in (differ, np.abs(theirs - ours) > 0.5, np.isnan(theirs))
        ]
        under = {measure: _mean(table[measure]) for measure in MEASURES}
        found.append(Rereading(reader, len(ours), shares[0], shares[1], shares[2], under))
    return tuple(found)


def _mean(scores: pd.Series) -> float | None:
    return float(scores.mean()) if scores.notna().any() else None


def judge_replies(
    result: xarray.Dataset,
    judge: Judge,
    *,
    store: str | Path | Store | None = None,
    progress: bool | None = None,
) -> xarray.Dataset:
    """A result with variables `judged_absolute` and `judged_relative`: the scores of the items if a
    judge reads all.
    """
    items, answers = _asked(result)
    cases = open_cases(items, answers, mcq_rule="judge")
    judged, _ = judgements(items, judge_cases(cases, judge, store=store, progress=progress))
    table = score_items(items, answers=answers, judged=judged, mcq_rule="judge")
    given = {
        f"{JUDGE_READING}_{measure}": (("item",), table[measure].to_numpy(), reader_of(judge))
        for measure in MEASURES
    }
    return result.assign(given)


def marks(result: xarray.Dataset) -> dict[str, float]:
    """How right each answer about a corrupted image is, from 0 to 1, by the name of its
    question.
    """
    table = read_run(result).table
    return {
        f"dis\n{name}": float(value)
        for name, value in zip(table["name"], table["absolute"], strict=True)
    }


def score_together(results: Sequence[xarray.Dataset]) -> list[PeopleMean | PeopleAgreement]:
    """What people reach together, and how far they agree on what they chose about corrupted images
    and references.
    """
    found: list[PeopleMean | PeopleAgreement] = []
    for members in people_by_experiment(results):
        scores = {person: score(result)[0] for person, result in members.items()}
        metrics = {person: one.run.metrics for person, one in scores.items()}
        found.append(mean_score(_TABLE, scores, metrics, _overall))
    return [*found, *agreement_of_people(results, _chosen)]


def _overall(metrics: pd.DataFrame) -> dict[Metric, tuple[float, float | None, float | None]]:
    """By measure: value and the ends of its interval, over all items."""
    overall = metrics.loc[metrics["breakdown"] == "overall", ["measure", "value", "low", "high"]]
    return {
        Metric(name, f"{name.capitalize()} robustness", True, 4, name): (
            float(value),
            float(low),
            float(high),
        )
        for name, value, low, high in overall.itertuples(index=False)
    }


def _chosen(result: xarray.Dataset) -> dict[str, str]:
    choices = result["item"].values[result["task"].values == "MCQ"]
    said = {
        kind: dict(zip(result["item"].values, result[f"answer_{kind}"].values, strict=True))
        for kind in ("dis", "ref")
    }
    return {f"{kind}\n{name}": answers[name] for kind, answers in said.items() for name in choices}


@dataclass(frozen=True)
class RBenchScore(ReadScore):
    """Robustness of one observer."""

    run: RBenchRun

    def rows(self) -> Sequence[Row]:
        """The observer, one who always says A, and the items scored otherwise."""
        told = [line.rstrip(".") for line in remarks(self.run.facts)]
        rows = [self._row(OBSERVER, self.run.metrics, [*told, *self.read_alike()])]
        choices = self.run.table[self.run.table["task"] == "MCQ"]
        if len(choices):
            same = pd.Series("A", index=pd.Index(choices["name"]))
            always = score_items(choices, answers={"dis": same, "ref": same}, mcq_rule="letter")
            metrics = rbench_metrics(always, confidence=self.confidence)
            rows.append(self._row("always A (multiple choice alone)", metrics))
        return rows + self.read_otherwise("items", 4)

    def _row(self, responder: str, metrics: pd.DataFrame, notes: Sequence[str] = ()) -> Row:
        return self.row(_TABLE, responder, _overall(metrics), notes)

    def notes(self) -> Sequence[str]:
        """What the headings mean."""
        return (
            "Absolute: answers about corrupted images against the key; relative: answers about "
            "reference images, times "
            "the agreement of both. From 0 to 1, means over items, with {confidence} % "
            "intervals over items.",
            "read otherwise: of the items, those whose absolute score differs under another "
            "rule or judge (opposite: "
            "by more than 0.5; left out: no score), and the means under it.",
        )

    def to_dict(self) -> dict[str, Any]:
        """The facts of the run and all metrics."""
        listed = json.loads(self.run.metrics.to_json(orient="records", double_precision=15))
        return {
            **self.run.facts,
            "readings": [reading.to_dict() for reading in self.readings],
            "metrics": listed,
        }


def _answers(items: pd.DataFrame, texts: Mapping[str, Any]) -> dict[str, pd.Series]:
    return {
        kind: pd.Series(said, index=pd.Index(items["name"]), dtype=str)
        for kind, said in texts.items()
    }


def _facts(
    result: xarray.Dataset, table: pd.DataFrame, found: Mapping[str, Verdicts], confidence: float
) -> dict[str, Any]:
    choices = (table["task"] == "MCQ").to_numpy()
    unread = {
        kind: int((choices & (read_letters(table[f"answer_{kind}"])[0] == "")).sum())
        for kind in ("ref", "dis")
    }
    texts, finish = (
        np.concatenate([result[f"{what}_{kind}"] for kind in unread])
        for what in ("answer", "finish")
    )
    options = json.loads(result.attrs["options"])
    return {
        "experiment": result.attrs["experiment"],
        "observer": json.loads(result.attrs["observer_card"]),
        "judge": json.loads(result.attrs["judge"]),
        "mcq_rule": options["mcq_rule"],
        "wording": options["wording"],
        "band": options.get("band", 0.0),
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
        "verdicts": count_verdicts(found.values()),
        "unscored": {
            measure: table[measure].isna().groupby(table["task"], sort=False).sum().to_dict()
            for measure in MEASURES
        },
        "software": json.loads(result.attrs["software"]),
    }


def remarks(facts: Mapping[str, Any]) -> list[str]:
    """What a reader of the scores must know, as sentences."""
    judge = facts["judge"]
    failed = facts["verdicts"]
    found = [f"{facts['items']} items; multiple choice by the rule {facts['mcq_rule']!r}."]
    if facts["band"]:
        found.append(
            f"Images are filtered to the octave around {facts['band']:g} cpd in place of being "
            "corrupted: dimension "
            "and strength are those of the set that they come from."
        )
    if facts["skipped_items"]:
        found.append(
            f"{len(facts['skipped_items'])} items were left out, since their images cannot be read."
        )
    if judge is None:
        found.append("No judge: short answers and captions are kept and not scored.")
    else:
        found.append(
            f"Judge {judge['observer']['name']}, {judge['repeats']} times at temperature "
            f"{judge['temperature']:g}: "
            f"{failed['cases']} cases, {failed['without_verdict']} without a verdict, "
            f"{failed['unread_replies']} "
            "replies that were none."
        )
        if failed["cut_replies"]:
            found.append(
                f"{failed['cut_replies']} replies of the judge were cut off at "
                f"{judge['max_tokens']} tokens and are no "
                "verdicts: give judge.max_tokens."
            )
    for measure, by_task in facts["unscored"].items():
        if any(by_task.values()):
            told = ", ".join(f"{n} {task}" for task, n in by_task.items() if n)
            found.append(f"Not scored and in no mean ({measure}): {told}.")
    answers = facts["answers"]
    ends = {
        "empty": "are empty",
        "cut_off": "were cut off",
        "filtered": "were stopped by a content filter",
    }
    found += [
        f"{answers[key]} of {answers['questions']} answers {what}."
        for key, what in ends.items()
        if answers[key]
    ]
    if facts["simulated_items"]:
        found.append(
            f"{facts['simulated_items']} items have corruptions that are simulated where "
            "R-Bench photographed them: do "
            "not put scores of the steps EI and CI, the group Wild or the whole beside the paper's."
        )
    if facts["observer"].get("random_weights"):
        found.append(
            "The observer has RANDOM WEIGHTS: this tests the machinery and says nothing of a model."
        )
    return found


def write_run(run: RBenchRun, folder: str | Path) -> None:
    """Write a run's tables: items.csv, items.json, verdicts.json, metrics.csv and run.json."""
    place = make_folder(folder)
    plain = {"orient": "records", "indent": 1, "double_precision": 15, "force_ascii": False}
    keys = [key if isinstance(key, str) else _json(key) for key in run.table["key"]]
    rows = run.table.assign(options=run.table["options"].map(json.dumps), key=keys)
    texts = {
        "items.csv": csv_table(rows),
        "items.json": run.table.to_json(**plain),
        "verdicts.json": run.verdicts.to_json(**plain),
        "metrics.csv": csv_table(run.metrics),
        "run.json": json_text(dict(run.facts)),
    }
    for name, text in texts.items():
        write_text(place / name, text)
