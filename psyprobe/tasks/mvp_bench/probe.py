"""Ask about natural images and their manipulated twins, read the answers, and let a judge help.

An experiment's page has ``probe = "mvp_bench"``, ``items`` (the folder that image paths start
from), perhaps ``[judge]``, and in ``[options]``:

=============  =====================================================================================
questions      question files in that folder, ["questions.json"] by default
rotations      whether each multiple choice is asked in every rotation too; false
cross          how both images of a pair are shown: "file", side by side, or "two_images", the
               natural one first
system         system text, or a name of `SYSTEMS`; ""
max_tokens     where an answer is cut off; 64
parser         how replies are read, see `PARSERS`; "rule+judge"
=============  =====================================================================================
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd

from psyprobe.analysis.comparison.sample import Sample
from psyprobe.analysis.score import OBSERVER, Metric, Row
from psyprobe.analysis.words.readers import JUDGE_READING, Rereading
from psyprobe.analysis.words.sessions import person_of
from psyprobe.errors import InputError, unknown_name
from psyprobe.files.images import file_digest
from psyprobe.files.json_types import JsonMapping, JsonObject
from psyprobe.files.netcdf import as_text
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
from psyprobe.tasks.mvp_bench.metrics import (
    checked_answers,
    constant_replies,
    mvp_metrics,
    plot_mvp,
    ratios,
    with_categories,
)
from psyprobe.tasks.mvp_bench.questions import (
    COLUMNS,
    read_questions,
    split_choices,
    with_rotations,
)
from psyprobe.tasks.mvp_bench.replies import PARSERS, parse_replies, parse_reply
from psyprobe.tasks.parts import answers_table, by_parts
from psyprobe.tasks.tables import (
    MetricValues,
    ReadScore,
    by_observer,
    compare_readings,
)

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes

    from psyprobe.experiment import Experiment

#: Changes when questions are asked differently, which asks anew.
_VERSION = "mvp-bench 1"
_OPTIONS = {
    "questions": ["questions.json"],
    "rotations": False,
    "cross": "file",
    "system": "",
    "max_tokens": 64,
    "parser": "rule+judge",
}
#: System texts by name; any other text may be given as it is. The words of "commonsense" are ours:
#: the paper mentions such an instruction and does not quote it.
SYSTEMS: Mapping[str, str] = {
    "": "",
    "commonsense": "You look at images and know about everyday life. Use that common sense and "
    "answer in few words.",
}
_CROSS = ("file", "two_images")
#: Metrics by which observers are ranked, by their cell of the paper's Table 2.
_RANKED = {
    cell: Metric(
        name, label, more_is_better=True, digits=2, suffix=name, full_score=100.0
    )
    for cell, name, label in (
        (("yes/no", "multi", "qAcc"), "qAcc", "Yes/no right on both images (%)"),
        (("yes/no", "multi", "aAcc"), "aAcc", "Single yes/no questions right (%)"),
        (
            ("cross-image MCQ", "low", "CircularEval"),
            "circular low",
            "Cross-image choice, low level (%)",
        ),
        (
            ("cross-image MCQ", "high", "CircularEval"),
            "circular high",
            "Cross-image choice, high level (%)",
        ),
    )
}

#: Headings of the columns of a report's table of answers.
_HEADINGS = {
    "question_id": "question",
    "pair": "pair",
    "kind": "image",
    "level": "level",
    "question": "asked",
    "answer": "key",
    "reply": "reply",
    "response": "read as",
}

#: Resamples where only the values count.
_FEWEST = 100


def _item_questions(
    questions: pd.DataFrame, folder: Path, options: JsonMapping
) -> list[ItemQuestion]:
    """Build the questions to ask, each named after its run and question_id."""
    rows = [
        (row, _find_files(folder, row, options["cross"]))
        for row in questions.to_dict("records")
    ]
    paths = dict.fromkeys(path for _, files in rows for path in files)
    missing = sorted(str(path) for path in paths if not path.is_file())
    if missing:
        raise InputError(
            f"{len(missing)} images are missing, the first {missing[0]}; give the folder that "
            "holds them"
        )
    images = {path: (str(path), file_digest(path)) for path in paths}
    decoding = Decoding(max_tokens=options["max_tokens"], logprobs=False)
    system = SYSTEMS.get(options["system"], options["system"])
    return [
        ItemQuestion(
            _name_question(row),
            row["question"],
            decoding,
            tuple(images[path] for path in files),
            system,
            _choices(row),
        )
        for row, files in rows
    ]


def _choices(row: Mapping[Any, Any]) -> tuple[str, ...]:
    """List the answers that a person may choose; all letters if no option can be read."""
    if row["task"] == "yes_no":
        return ("yes", "no")
    return tuple("ABCDE")[: len(split_choices(row["question"])[1]) or None]


def _open_cases(questions: pd.DataFrame, replies: Mapping[str, str]) -> list[Case]:
    """List the yes/no replies that the benchmark's rule leaves open, as a judge's cases."""
    return [
        Case(
            _name_question(row),
            "yes_no",
            row["question"],
            "",
            replies[_name_question(row)],
        )
        for row in questions[questions["task"] == "yes_no"].to_dict("records")
        if not parse_reply(replies[_name_question(row)], "yes_no", "main")
    ]


def read_run(result: xarray.Dataset) -> pd.DataFrame:
    """Read the answers of a result as a question table with reply and response.

    The judge's answer is "yes", "no", "unknown", or "" where none was asked.
    """
    return _read_by(result, _read_options(result)["parser"])


def _read_options(result: xarray.Dataset) -> JsonObject:
    """Read the options of the probe from a result."""
    options: JsonObject = json.loads(result.attrs["options"])
    return options


def _read_by(result: xarray.Dataset, parser: str) -> pd.DataFrame:
    """Read the answers of a result by one of the parsers."""
    questions = pd.DataFrame({name: result[name].to_numpy() for name in COLUMNS})
    verdicts = read_verdicts(result.attrs["judged"])
    names = [_name_question(row) for row in questions.to_dict("records")]
    judge = [
        str(verdicts[name].majority or "unknown") if name in verdicts else ""
        for name in names
    ]
    predictions = questions[["question_id"]].assign(
        reply=result["reply"].to_numpy(), judge=judge, place=range(len(questions))
    )
    return with_categories(parse_replies(questions, predictions, parser))


def rereadings(result: xarray.Dataset) -> tuple[Rereading, ...]:
    """Compare how a run's parser, other parsers and a judge read the replies."""
    if person_of(result):
        return ()
    parser = _read_options(result)["parser"]
    has_judge = json.loads(result.attrs["judge"]) is not None
    table = _read_by(result, parser)
    readings = {}
    for name, (rule, needs_judge) in PARSERS.items():
        # Without a judge, a parser with one reads as that without.
        reads_alike = not has_judge and (needs_judge or rule == PARSERS[parser][0])
        if name != parser and not reads_alike:
            readings[f"parser {name}"] = _read_by(result, name)["response"].to_numpy()
    if JUDGE_READING in result:
        reading = result[JUDGE_READING]
        readings[reading.attrs["reader"]] = as_text(reading.values)
    ours = table["response"].to_numpy()
    comparisons = []
    for reader, theirs in readings.items():
        differ = theirs != ours
        opposite = differ & (theirs != "") & (ours != "")
        metrics = MVP_BENCH.ranked(
            mvp_metrics(table.assign(response=theirs), resamples=_FEWEST)
        )
        values = {metric.suffix: value for metric, (value, *_) in metrics.items()}
        masks = (differ, opposite, theirs == "")
        comparisons.append(compare_readings(reader, masks, values))
    return tuple(comparisons)


def _samples(table: pd.DataFrame) -> dict[Metric, Sample]:
    """List what was right, in each metric of the scoreboard, by image pair."""
    samples = {}
    answers = checked_answers(table.sort_values(["run", "question_id"]))
    for cell, counted in ratios(answers):
        if cell in _RANKED:
            # Of all that is asked about a pair, which is in one order.
            numbers = counted.groupby("pair").cumcount()
            pairs = counted["pair"].astype(str)
            samples[_RANKED[cell]] = Sample(
                "image pairs",
                tuple(pairs + " " + numbers.astype(str)),
                tuple(100.0 * counted["right"]),
                clusters=tuple(pairs),
            )
    return samples


@dataclass(frozen=True)
class MvpScore(ReadScore):
    """Accuracies of one observer."""

    #: Answers as from `read_run`.
    table: pd.DataFrame
    population: ClassVar[str] = "image pairs"

    @functools.cached_property
    def metrics(self) -> pd.DataFrame:
        """The table of MVP-Bench metrics."""
        return mvp_metrics(self.table, confidence=self.confidence)

    def rows(self) -> Sequence[Row]:
        """Build the table rows of the observer, of constant answers, and of other readers."""
        unread = int((self.table["response"] == "").sum())
        notes = describe_refusals(self.attributes)
        if unread:
            notes.append(
                f"{unread} of {len(self.table)} replies could not be read and are wrong"
            )
        verdicts = self._count_verdicts()
        if verdicts["unread_replies"]:
            notes.append(
                f"{verdicts['unread_replies']} replies of the judge were no verdict; "
                f"{verdicts['without_verdict']} of the "
                f"{verdicts['cases']} replies that it was asked about got none"
            )
        if verdicts["cut_replies"]:
            limit = json.loads(self.attributes["judge"])["max_tokens"]
            notes.append(
                f"{verdicts['cut_replies']} replies of the judge were cut off at {limit} tokens, "
                "so that what it was "
                "asked about stays unread for want of a verdict: give judge.max_tokens"
            )
        notes += self.read_alike()
        ranked = MVP_BENCH.ranked(self.metrics)
        samples = _samples(self.table)
        rows = [self.row(MVP_BENCH.table, OBSERVER, ranked, notes, samples)]
        yes_no = self.table["task"] == "yes_no"
        for answer, questions in (("yes", yes_no), ("no", yes_no), ("A", ~yes_no)):
            if questions.any():
                replies = constant_replies(self.table, answer)
                metrics = mvp_metrics(replies, confidence=self.confidence)
                values = MVP_BENCH.ranked(metrics)
                samples = _samples(replies)
                rows.append(
                    self.row(
                        MVP_BENCH.table, f"always {answer}", values, samples=samples
                    )
                )
        return rows + self.read_otherwise("replies", 2)

    def notes(self) -> Sequence[str]:
        """Explain the table's headings in sentences."""
        return (
            "Right in percent, with {confidence} % intervals over image pairs; qAcc: questions "
            "right on both "
            "images, aAcc: single questions, circular: multiple choice right in all rotations.",
            "read otherwise: of the replies, those that another reader takes differently "
            "(opposite: for another "
            "answer; left out: for none, which is wrong), and the score under it.",
        )

    def to_dict(self) -> JsonObject:
        """Return the facts of the run and all metrics as JSON values."""
        facts = ("observer_card", "judge", "options", "software")
        return {
            "experiment": self.experiment,
            **{name: json.loads(self.attributes[name]) for name in facts},
            "verdicts": self._count_verdicts(),
            **super().to_dict(),
        }

    def _count_verdicts(self) -> dict[str, int]:
        """Count the judge's verdicts by kind."""
        return count_verdicts(read_verdicts(self.attributes["judged"]).values())


def _name_question(row: Mapping[Any, Any]) -> str:
    """Build the name of a question that is unique over runs."""
    return f"{row['run']}\n{row['question_id']}"


def _find_files(folder: Path, row: Mapping[Any, Any], cross: str) -> tuple[Path, ...]:
    """Return the image files of a question: one, or the pair where both are shown."""
    if row["task"] != "cross_mcq" or cross == "file":
        return (folder / row["image"],)
    # The pair's own files lie in the folder of single images, by the release's naming.
    suffix = Path(row["image"]).suffix
    return tuple(
        folder / "Single_Images" / f"{row['pair']}_{kind}{suffix}"
        for kind in ("s", "e")
    )


class MvpBench(ItemProbe):
    """MVP-Bench: natural images and their manipulated twins."""

    table = "MVP-Bench"
    confidence = 0.95

    def plan(
        self,
        experiment: Experiment,
        observer: AnswerObserver,
        judge: Judge | None = None,
    ) -> ItemSchedule:
        """Plan a run of MVP-Bench's questions; a given judge replaces the experiment's.

        Raises
        ------
        InputError
            Questions cannot be read, or an image is missing.
        UnknownNameError
            There is no such parser, or way to show both images.
        """
        options = options_of(experiment, _OPTIONS)
        if options["cross"] not in _CROSS:
            raise unknown_name("way to show both images", options["cross"], _CROSS)
        if options["parser"] not in PARSERS:
            raise unknown_name("parser", options["parser"], PARSERS)
        folder = items_of(experiment)
        questions = pd.concat(
            [read_questions(folder / name) for name in options["questions"]],
            ignore_index=True,
        )
        if options["rotations"]:
            questions = with_rotations(questions)
        task = ItemTask(
            version=_VERSION,
            questions=_item_questions(questions, folder, options),
            cases=lambda replies: _open_cases(questions, replies),
            items=json.loads(questions.to_json(orient="records")),
            options=options,
        )
        return ItemSchedule(experiment, observer, task, judge or judge_of(experiment))

    def result(self, record: RunRecord, store: Store) -> xarray.Dataset:
        """Build the result of a run: a question table with each reply, by item."""
        items = stored_items(record, store)
        answers = answers_of(record, store)
        columns = {name: items[name].to_numpy() for name in COLUMNS}
        columns["reply"] = np.array([answer.text for answer in answers], dtype=object)
        columns |= reaction_times(answers)
        names = [
            _name_question(row).replace("\n", " ").strip()
            for row in items.to_dict("records")
        ]
        return item_result(names, columns, judged_attributes(record, store))

    def score_replies(self, result: xarray.Dataset, confidence: float) -> MvpScore:
        """Score the observer, and those who always say yes, no or A."""
        table = read_run(result)
        return MvpScore(result.attrs, confidence, rereadings(result), table)

    def draw(self, metrics: Mapping[str, pd.DataFrame], ax: Axes | None) -> Axes:
        """Draw accuracy in low-level against high-level questions."""
        return plot_mvp(metrics, ax)

    def report(self, results: Sequence[xarray.Dataset]) -> list[Part]:
        """Build report sections: every metric by task and level, and some answers."""
        scores = {
            name: self.score_replies(result, self.confidence)
            for name, result in by_observer(results).items()
        }
        rows: dict[str, dict[str, pd.DataFrame]] = {}
        for name, observer_score in scores.items():
            for metric, table in observer_score.metrics.groupby("metric", sort=False):
                parts = table.set_index(table["task"] + ", " + table["level"])
                rows.setdefault(str(metric), {})[name] = parts[["value", "low", "high"]]
        tables = {name: observer_score.table for name, observer_score in scores.items()}
        return [
            by_parts("Right answers by task and level", "Right (%)", rows),
            answers_table(tables, _HEADINGS),
        ]

    def judge_replies(
        self,
        result: xarray.Dataset,
        judge: Judge,
        *,
        store: str | Path | Store | None = None,
        progress: bool | None = None,
    ) -> xarray.Dataset:
        """Add a variable `judged`, the answer that a judge finds in each reply."""
        cases = []
        for row in read_run(result).to_dict("records"):
            prompt = "yes_no" if row["task"] == "yes_no" else "choice_letter"
            cases.append(
                Case(_name_question(row), prompt, row["question"], "", row["reply"])
            )
        verdicts = judge_cases(cases, judge, store=store, progress=progress)
        answers = np.array(
            [str(verdicts[case.name].majority or "") for case in cases], dtype=object
        )
        return result.assign({JUDGE_READING: ("item", answers, reader_of(judge))})

    def marks(self, result: xarray.Dataset) -> dict[str, float]:
        """Return the mark of each reply, 0 or 1, by the name of its question."""
        table = read_run(result)
        right = (table["response"] == table["answer"]).astype(float)
        return dict(
            zip(map(_name_question, table.to_dict("records")), right, strict=True)
        )

    def ranked(self, metrics: pd.DataFrame) -> MetricValues:
        """Select the metrics for scoreboards, with their intervals."""
        values = metrics.set_index(["task", "level", "metric"])[
            ["value", "low", "high"]
        ]
        return {
            metric: tuple(values.loc[cell].tolist())
            for cell, metric in _RANKED.items()
            if cell in values.index
        }

    def choices(self, result: xarray.Dataset) -> dict[str, str]:
        """Return the answers that were read, by the name of their question."""
        return {
            _name_question(row): row["response"]
            for row in read_run(result).to_dict("records")
            if row["response"]
        }


MVP_BENCH = MvpBench()
