"""Ask about pairs of images of R-Bench, read the answers, and let a judge read the rest.

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
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pandas as pd

from psyprobe.analysis.comparison.sample import Sample
from psyprobe.analysis.score import OBSERVER, Metric, Row
from psyprobe.analysis.words.readers import JUDGE_READING, Rereading
from psyprobe.analysis.words.sessions import person_of
from psyprobe.corruption import dimension_numbered
from psyprobe.errors import InputError
from psyprobe.files.json_types import JsonMapping, JsonObject
from psyprobe.files.output import json_text, make_folder, write_text
from psyprobe.observers.chat.cost_summary import describe_refusals
from psyprobe.observers.chat.protocol import AnswerObserver, Decoding
from psyprobe.plotting.figure_data import Part
from psyprobe.running.protocol import RunRecord
from psyprobe.running.store import Store
from psyprobe.tasks.item_probe import ItemProbe
from psyprobe.tasks.item_schedule import (
    ItemSchedule,
    ItemTask,
    answers_of,
    item_result,
    items_of,
    judged_attributes,
    options_of,
    reaction_times,
    stored_items,
)
from psyprobe.tasks.items import (
    Case,
    ItemQuestion,
    Judge,
    count_verdicts,
    judge_cases,
    judge_of,
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
from psyprobe.tasks.tables import (
    MetricValues,
    ReadScore,
    by_observer,
    compare_readings,
    csv_table,
)

if TYPE_CHECKING:
    from pathlib import Path

    import xarray
    from matplotlib.axes import Axes

    from psyprobe.experiment import Experiment

#: Changes when images are read or shown differently, which asks anew; the prompts have their own.
_VERSION = "r-bench 1"
_OPTIONS = {"mcq_rule": "letter_then_judge", "skip_bad": False, "band": 0.0}
#: Columns of an item table that a result holds as they are.
_PLAIN = ("question", "task", "dimension", "strength", "reference", "simulated")
#: Columns of an item table that a result holds as JSON.
_LISTED = ("options", "key")
#: Images of an item: the reference and the corrupted one.
_KINDS = ("ref", "dis")
#: Headings of the columns of a report's table of answers.
_HEADINGS = {
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


def item_questions(images: ImageSet) -> list[ItemQuestion]:
    """Build two questions for each item, about its reference and its corrupted image.

    Their names are "ref" or "dis", a line break, and the name of the item. Items that share a
    reference image and a question share the answer too.
    """
    questions = []
    for item in images.items.to_dict("records"):
        text = prompt(item["task"], item["question"], item["options"])
        decoding = Decoding(
            max_tokens=wordings()[item["task"]]["max_tokens"], logprobs=False
        )
        letters = tuple("ABCDE"[: len(item["options"])])
        for kind in _KINDS:
            path = images.path(kind, item)
            image = (str(path), images.digests[path])
            name = f"{kind}\n{item['name']}"
            questions.append(
                ItemQuestion(name, text, decoding, images=(image,), words=letters)
            )
    return questions


@dataclass(frozen=True)
class RBenchRun:
    """A scored result: its items, verdicts and metrics, and facts about the run."""

    #: The items with answer_ref and answer_dis (word for word), judged_ref, judged_dis and
    #: judged_com (NaN where no judge was needed or gave a verdict), absolute and relative.
    table: pd.DataFrame
    #: The judge's replies, case by case; empty without a judge.
    verdicts: pd.DataFrame
    #: Metrics as from `rbench_metrics`.
    metrics: pd.DataFrame
    #: Observer and judge, how they were asked, and what failed; plain values that JSON can hold.
    facts: JsonMapping


def read_run(result: xarray.Dataset, confidence: float = 0.9) -> RBenchRun:
    """Score a result again, without asking any observer.

    Raises
    ------
    InputError
        Nothing can be scored.
    """
    items, answers = _items_and_answers(result)
    rule = json.loads(result.attrs["options"])["mcq_rule"]
    verdicts = read_verdicts(result.attrs["judged"])
    judged, verdict_table = judgements(items, verdicts)
    table = score_items(items, answers=answers, judged=judged, mcq_rule=rule)
    if not np.isfinite(table["absolute"]).any():
        raise InputError(
            "no answer could be scored: none is a letter, and no judge gave a verdict on "
            "another; name a judge, or "
            "another one"
        )
    columns = {f"answer_{kind}": texts for kind, texts in answers.items()}
    columns |= {f"judged_{kind}": judged[kind] for kind in AGAINST}
    table = table.assign(
        **{name: values.to_numpy() for name, values in columns.items()}
    )
    metrics = rbench_metrics(table, confidence=confidence)
    facts = _facts(result, table, count_verdicts(verdicts.values()), confidence)
    return RBenchRun(table, verdict_table, metrics, facts)


def _items_and_answers(
    result: xarray.Dataset,
) -> tuple[pd.DataFrame, dict[str, pd.Series]]:
    """Rebuild a result's item table, and the answers about each kind of image."""
    items = result[[*_PLAIN, *_LISTED, "quality"]].to_dataframe()
    items = items.rename_axis("name").reset_index()
    for name in _LISTED:
        values = map(json.loads, items[name])
        items[name] = [
            tuple(value) if isinstance(value, list) else value for value in values
        ]
    return items, _align_answers(
        items, {kind: result[f"answer_{kind}"].to_numpy() for kind in _KINDS}
    )


def rereadings(result: xarray.Dataset, run: RBenchRun) -> tuple[Rereading, ...]:
    """Score a run's items by the other rules, and by a judge that read every answer."""
    if person_of(result):
        return ()
    items, answers = _items_and_answers(result)
    judgements_by_name = run.table.set_index("name")
    judged = {kind: judgements_by_name[f"judged_{kind}"] for kind in AGAINST}
    run_rule = run.facts["mcq_rule"]
    rules: tuple[str, ...] = ("letter", "letter_then_judge")
    if run_rule in ("published", "judge"):
        # Where letters count first, no judge was asked about them.
        rules = MCQ_RULES
    if not (items["task"] == "MCQ").any():
        rules = ()
    tables = {
        f"rule {rule}": score_items(
            items, answers=answers, judged=judged, mcq_rule=rule
        )
        for rule in rules
        if rule != run_rule
    }
    if f"{JUDGE_READING}_absolute" in result:
        scores = {
            measure: result[f"{JUDGE_READING}_{measure}"].to_numpy()
            for measure in MEASURES
        }
        reader = result[f"{JUDGE_READING}_absolute"].attrs["reader"]
        tables[reader] = run.table.assign(**scores)
    ours = run.table["absolute"].to_numpy()
    readings = []
    for reader, table in tables.items():
        theirs = table["absolute"].to_numpy()
        differ = ~np.isclose(theirs, ours, equal_nan=True)
        means = {measure: _mean(table[measure]) for measure in MEASURES}
        masks = (differ, np.abs(theirs - ours) > 0.5, np.isnan(theirs))
        readings.append(compare_readings(reader, masks, means))
    return tuple(readings)


def _mean(scores: pd.Series) -> float | None:
    """Compute the mean of scores; None if all are missing."""
    return float(scores.mean()) if scores.notna().any() else None


def _samples(table: pd.DataFrame, ranked: MetricValues) -> dict[Metric, Sample]:
    """List the scores of items, by reference image: items of one image are no independent units."""
    samples = {}
    for metric in ranked:
        scored = table[np.isfinite(table[metric.name].astype(float))]
        samples[metric] = Sample(
            "images",
            tuple(map(str, scored["name"])),
            tuple(scored[metric.name].astype(float)),
            clusters=tuple(map(str, scored["reference"])),
        )
    return samples


@dataclass(frozen=True)
class RBenchScore(ReadScore):
    """Robustness of one observer."""

    run: RBenchRun
    population: ClassVar[str] = "items"

    @property
    def metrics(self) -> pd.DataFrame:
        """The table of R-Bench metrics."""
        return self.run.metrics

    def rows(self) -> Sequence[Row]:
        """Build the table rows of the observer, of one who always says A, and of other readers."""
        notes = [line.rstrip(".") for line in remarks(self.run.facts)]
        notes += self.read_alike()
        ranked = R_BENCH.ranked(self.metrics)
        samples = _samples(self.run.table, ranked)
        rows = [self.row(R_BENCH.table, OBSERVER, ranked, notes, samples)]
        choices = self.run.table[self.run.table["task"] == "MCQ"]
        if len(choices):
            letters = pd.Series("A", index=pd.Index(choices["name"]))
            answers = dict.fromkeys(_KINDS, letters)
            table = score_items(choices, answers=answers, mcq_rule="letter")
            metrics = rbench_metrics(table, confidence=self.confidence)
            responder = "always A (multiple choice alone)"
            rows.append(self.row(R_BENCH.table, responder, R_BENCH.ranked(metrics)))
        return rows + self.read_otherwise("items", 4)

    def notes(self) -> Sequence[str]:
        """Explain the table's headings in sentences."""
        return (
            "Absolute: answers about corrupted images against the key; relative: answers about "
            "reference images, times "
            "the agreement of both. From 0 to 1, means over items, with {confidence} % "
            "intervals over items.",
            "read otherwise: of the items, those whose absolute score differs under another "
            "rule or judge (opposite: "
            "by more than 0.5; left out: no score), and the means under it.",
        )

    def to_dict(self) -> JsonObject:
        """Return the facts of the run and all metrics as JSON values."""
        return {**self.run.facts, **super().to_dict()}


def _align_answers(items: pd.DataFrame, texts: JsonMapping) -> dict[str, pd.Series]:
    """Align the texts of each kind of answer with the items, by name."""
    return {
        kind: pd.Series(answers, index=pd.Index(items["name"]), dtype=str)
        for kind, answers in texts.items()
    }


def _facts(
    result: xarray.Dataset,
    table: pd.DataFrame,
    verdicts: Mapping[str, int],
    confidence: float,
) -> JsonObject:
    """Collect facts about a result that readers of its scores must know."""
    choices = (table["task"] == "MCQ").to_numpy()
    unread = {
        kind: int((choices & (read_letters(table[f"answer_{kind}"]) == "")).sum())
        for kind in _KINDS
    }
    texts = np.concatenate([result[f"answer_{kind}"] for kind in _KINDS])
    finish = np.concatenate([result[f"finish_{kind}"] for kind in _KINDS])
    options = json.loads(result.attrs["options"])
    unscored = table[[*MEASURES]].isna()
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
        "refusals": describe_refusals(result.attrs),
        "verdicts": verdicts,
        "unscored": unscored.groupby(table["task"], sort=False).sum().to_dict(),
        "software": json.loads(result.attrs["software"]),
    }


def remarks(facts: JsonMapping) -> list[str]:
    """Write facts that readers of scores must know as sentences."""
    judge = facts["judge"]
    verdicts = facts["verdicts"]
    answers = facts["answers"]
    sentences = {
        f"{facts['items']} items; multiple choice by the rule {facts['mcq_rule']!r}.": True,
        f"Images are filtered to the octave around {facts['band']:g} cpd in place of being "
        "corrupted: dimension "
        "and strength are those of the set that they come from.": facts["band"],
        f"{len(facts['skipped_items'])} items were left out, since their images cannot be "
        "read.": facts["skipped_items"],
        "No judge: short answers and captions are kept and not scored.": judge is None,
    }
    if judge is not None:
        sentences |= {
            f"Judge {judge['observer']['name']}, {judge['repeats']} times at temperature "
            f"{judge['temperature']:g}: "
            f"{verdicts['cases']} cases, {verdicts['without_verdict']} without a verdict, "
            f"{verdicts['unread_replies']} "
            "replies that were none.": True,
            f"{verdicts['cut_replies']} replies of the judge were cut off at "
            f"{judge['max_tokens']} tokens and are no "
            "verdicts: give judge.max_tokens.": verdicts["cut_replies"],
        }
    for measure, by_task in facts["unscored"].items():
        counts = ", ".join(
            f"{count} {task}" for task, count in by_task.items() if count
        )
        sentences[f"Not scored and in no mean ({measure}): {counts}."] = counts
    for key, ending in (
        ("empty", "are empty"),
        ("cut_off", "were cut off"),
        ("filtered", "were stopped by a content filter"),
    ):
        sentence = f"{answers[key]} of {answers['questions']} answers {ending}."
        sentences[sentence] = answers[key]
    sentences |= {
        f"{sentence[0].upper()}{sentence[1:]}.": True for sentence in facts["refusals"]
    }
    sentences |= {
        f"{facts['simulated_items']} items have corruptions that are simulated where "
        "R-Bench photographed them: do "
        "not put scores of the steps EI and CI, the group Wild or the whole beside the "
        "paper's.": facts["simulated_items"],
        "The observer has RANDOM WEIGHTS: this tests the machinery and says nothing of a "
        "model.": facts["observer"].get("random_weights"),
    }
    return [sentence for sentence, holds in sentences.items() if holds]


def write_run(run: RBenchRun, folder: str | Path) -> None:
    """Write a run's tables: items.csv, items.json, verdicts.json, metrics.csv and run.json."""
    target = make_folder(folder)
    json_form = {
        "orient": "records",
        "indent": 1,
        "double_precision": 15,
        "force_ascii": False,
    }
    keys = [key if isinstance(key, str) else _json(key) for key in run.table["key"]]
    rows = run.table.assign(options=run.table["options"].map(json.dumps), key=keys)
    texts = {
        "items.csv": csv_table(rows),
        "items.json": run.table.to_json(**json_form),
        "verdicts.json": run.verdicts.to_json(**json_form),
        "metrics.csv": csv_table(run.metrics),
        "run.json": json_text(dict(run.facts)),
    }
    for name, text in texts.items():
        write_text(target / name, text)


class RBench(ItemProbe):
    """R-Bench: reference images and their corrupted twins."""

    table = "R-Bench"
    confidence = 0.9

    def plan(
        self,
        experiment: Experiment,
        observer: AnswerObserver,
        judge: Judge | None = None,
    ) -> ItemSchedule:
        """Plan a run of an R-Bench set; a given judge replaces the experiment's.

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
            raise InputError(
                "short answers and captions cannot be scored without a judge; name one"
            )

        def cases(replies: Mapping[str, str]) -> Sequence[Case]:
            names = images.items["name"]
            texts = {
                kind: [replies[f"{kind}\n{name}"] for name in names] for kind in _KINDS
            }
            return open_cases(
                images.items, _align_answers(images.items, texts), mcq_rule=rule
            )

        task = ItemTask(
            version=f"{_VERSION}, wording {wordings()['version']}",
            questions=item_questions(images),
            cases=cases,
            items=json.loads(images.items.to_json(orient="records")),
            options={
                **options,
                "wording": wordings()["version"],
                "skipped": list(images.skipped),
            },
            # A person who saw the reference knows what is on its corrupted twin.
            afterwards=lambda name: name.startswith("ref\n"),
        )
        return ItemSchedule(experiment, observer, task, judge)

    def result(self, record: RunRecord, store: Store) -> xarray.Dataset:
        """Build the result of a run: one row an item, with both questions and answers."""
        items = stored_items(record, store)
        answers = answers_of(record, store)
        columns = {name: items[name].to_numpy() for name in _PLAIN}
        columns |= {name: items[name].map(_json).to_numpy() for name in _LISTED}
        columns["quality"] = items["quality"].to_numpy(dtype=np.float64)
        for i, kind in enumerate(_KINDS):
            replies = answers[i::2]
            columns[f"answer_{kind}"] = np.array(
                [reply.text for reply in replies], dtype=object
            )
            columns[f"finish_{kind}"] = np.array(
                [reply.finish for reply in replies], dtype=object
            )
            columns |= {
                f"{name}_{kind}": values
                for name, values in reaction_times(replies).items()
            }
        return item_result(
            items["name"].tolist(), columns, judged_attributes(record, store)
        )

    def score_replies(self, result: xarray.Dataset, confidence: float) -> RBenchScore:
        """Score the robustness of the observer, and of one who always says A."""
        run = read_run(result, confidence)
        return RBenchScore(result.attrs, confidence, rereadings(result, run), run)

    def draw(self, metrics: Mapping[str, pd.DataFrame], ax: Axes | None) -> Axes:
        """Draw absolute robustness by the step at which corruption arises, with intervals."""
        from psyprobe.tasks.r_bench.figures import bars

        return bars(metrics, "step", ax=ax)

    def report(self, results: Sequence[xarray.Dataset]) -> list[Part]:
        """Build report sections: robustness by part, some answers, and the corruptions."""
        runs = {name: read_run(result) for name, result in by_observer(results).items()}
        metrics = {name: run.metrics for name, run in runs.items()}
        parts: list[Part] = []
        for by in ("step", "group", "task", "strength"):
            rows = {measure: rows_by(metrics, by, measure) for measure in MEASURES}
            parts.append(by_parts(f"Robustness by {by}", "Robustness", rows))
        tables = {
            name: run.table.assign(
                dimension=[
                    dimension_numbered(number).title
                    for number in run.table["dimension"]
                ]
            )
            for name, run in runs.items()
        }
        numbers = sorted(
            {int(number) for run in runs.values() for number in run.table["dimension"]}
        )
        corruptions = [dimension_numbered(number).name for number in numbers]
        return [
            *parts,
            answers_table(tables, _HEADINGS),
            *corruption_gallery(corruptions),
        ]

    def judge_replies(
        self,
        result: xarray.Dataset,
        judge: Judge,
        *,
        store: str | Path | Store | None = None,
        progress: bool | None = None,
    ) -> xarray.Dataset:
        """Add the scores of items as a judge gives them: `judged_absolute`, `judged_relative`."""
        items, answers = _items_and_answers(result)
        cases = open_cases(items, answers, mcq_rule="judge")
        judged, _ = judgements(
            items, judge_cases(cases, judge, store=store, progress=progress)
        )
        table = score_items(items, answers=answers, judged=judged, mcq_rule="judge")
        scores = {
            f"{JUDGE_READING}_{measure}": (
                ("item",),
                table[measure].to_numpy(),
                reader_of(judge),
            )
            for measure in MEASURES
        }
        return result.assign(scores)

    def marks(self, result: xarray.Dataset) -> dict[str, float]:
        """Return the mark of each answer about a corrupted image, 0 to 1, by question name."""
        scores = read_run(result).table.set_index("name")["absolute"]
        return {f"dis\n{name}": float(score) for name, score in scores.items()}

    def ranked(self, metrics: pd.DataFrame) -> MetricValues:
        """Select the scores over all items for scoreboards, with their intervals."""
        overall = metrics.loc[
            metrics["breakdown"] == "overall", ["measure", "value", "low", "high"]
        ]
        return {
            Metric(name, f"{name.capitalize()} robustness", True, 4, name): (
                value,
                low,
                high,
            )
            for name, value, low, high in overall.itertuples(index=False, name=None)
        }

    def choices(self, result: xarray.Dataset) -> dict[str, str]:
        """Return the answers to multiple choice, by the name of their question."""
        choices = result.isel(item=result["task"].values == "MCQ")
        answers: dict[str, str] = {}
        for kind in ("dis", "ref"):
            names = [f"{kind}\n{name}" for name in choices["item"].values]
            answers |= zip(names, choices[f"answer_{kind}"].values, strict=True)
        return answers


R_BENCH = RBench()
