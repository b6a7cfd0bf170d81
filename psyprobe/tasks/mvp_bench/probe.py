"""MVP-Bench as a probe: questions about natural images and their manipulated twins, and a judge
where one is named.

An experiment's page has ``probe = "mvp_bench"``, ``items`` (the folder that image paths start
from), perhaps ``[judge]``, and in ``[options]``:

=============  ======================================================================================================
questions      question files in that folder, ["questions.json"] by default
rotations      whether each multiple choice is asked in every rotation too; false
cross          how both images of a pair are shown: "file", side by side, or "two_images", the natural one first
system         system text, or a name of `SYSTEMS`; ""
max_tokens     where an answer is cut off; 64
parser         how replies are read, see `PARSERS`; "rule+judge"
=============  ======================================================================================================
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from psyprobe.analysis.score import OBSERVER, Metric, Row
from psyprobe.analysis.words.readers import JUDGE_READING, Rereading
from psyprobe.analysis.words.score import refuse_features
from psyprobe.analysis.words.sessions import person_of
from psyprobe.errors import InputError, unknown_name
from psyprobe.files.images import file_digest
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
    count_verdicts,
    judge_cases,
    judge_of,
    put,
    read_verdicts,
    reader_of,
)
from psyprobe.tasks.mvp_bench.metrics import (
    constant_replies,
    mvp_metrics,
    plot_mvp,
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
from psyprobe.tasks.tables import ReadScore, by_observer, place

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes
    from matplotlib.figure import SubFigure

    from psyprobe.experiment import Experiment

ABILITIES = ("answer",)
SECTIONS = ("items", "judge")
#: Asking differently makes another question of the same text and image.
_VERSION = "mvp-bench 1"
_TABLE = "MVP-Bench"
_OPTIONS = {
    "questions": ["questions.json"],
    "rotations": False,
    "cross": "file",
    "system": "",
    "max_tokens": 64,
    "parser": "rule+judge",
}
#: System texts by name; any other text may be given as it is. The wording of "commonsense" is ours:
#: the paper tells of such an instruction, whose own words are not repeated here.
SYSTEMS: Mapping[str, str] = {
    "": "",
    "commonsense": "You look at images and know about everyday life. Use that common sense and "
    "answer in few words.",
}
_CROSS = ("file", "two_images")
#: What observers are ranked by: task, level and metric of the paper's Table 2, and how it is
#: called.
_RANKED = {
    (task, level, metric): Metric(name, label, more_is_better=True, digits=2, suffix=name)
    for task, level, metric, name, label in (
        ("yes/no", "multi", "qAcc", "qAcc", "Yes/no right on both images (%)"),
        ("yes/no", "multi", "aAcc", "aAcc", "Single yes/no questions right (%)"),
        (
            "cross-image MCQ",
            "low",
            "CircularEval",
            "circular low",
            "Cross-image choice, low level (%)",
        ),
        (
            "cross-image MCQ",
            "high",
            "CircularEval",
            "circular high",
            "Cross-image choice, high level (%)",
        ),
    )
}

#: Columns of a report's table of answers, and what they are called.
_ANSWERED = {
    "question_id": "question",
    "pair": "pair",
    "kind": "image",
    "level": "level",
    "question": "asked",
    "answer": "key",
    "reply": "reply",
    "response": "read as",
}

#: Resamples where only the values are wanted.
_FEWEST = 100

answer = put


def plan(
    experiment: Experiment, observer: AnswerObserver, judge: Judge | None = None
) -> ItemSchedule:
    """As in `Probe`; a judge that is given stands in for the page's.

    Raises
    ------
    InputError
        Questions cannot be read, or an image is missing.
    UnknownNameError
        There is no such parser, or way to show both images.
    """
    options = options_of(experiment, _OPTIONS)
    for kind, name, known in (
        ("way to show both images", "cross", _CROSS),
        ("parser", "parser", PARSERS),
    ):
        if options[name] not in known:
            raise unknown_name(kind, options[name], known)
    folder = items_of(experiment)
    questions = pd.concat(
        [read_questions(folder / name) for name in options["questions"]], ignore_index=True
    )
    if options["rotations"]:
        questions = with_rotations(questions)
    task = ItemTask(
        version=_VERSION,
        questions=_asked(questions, folder, options),
        cases=lambda replies: _open_cases(questions, replies),
        items=json.loads(questions.to_json(orient="records")),
        options=options,
    )
    return ItemSchedule(experiment, observer, task, judge or judge_of(experiment))


def _asked(questions: pd.DataFrame, folder: Path, options: Mapping[str, Any]) -> list[ItemQuestion]:
    """What is to be asked, each named after its run and question_id."""
    rows = [(row, _files(folder, row, options["cross"])) for row in questions.to_dict("records")]
    paths = dict.fromkeys(path for _, files in rows for path in files)
    missing = sorted(str(path) for path in paths if not path.is_file())
    if missing:
        raise InputError(
            f"{len(missing)} images are missing, the first {missing[0]}; give the folder that "
            "holds them"
        )
    shown = {path: (str(path), file_digest(path)) for path in paths}
    decoding = Decoding(max_tokens=options["max_tokens"], logprobs=False)
    system = SYSTEMS.get(options["system"], options["system"])
    return [
        ItemQuestion(
            _name(row),
            row["question"],
            decoding,
            tuple(shown[path] for path in files),
            system,
            _choices(row),
        )
        for row, files in rows
    ]


def _choices(row: Mapping[Any, Any]) -> tuple[str, ...]:
    """The answers that a person is offered; all letters where no option can be read."""
    if row["task"] == "yes_no":
        return ("yes", "no")
    return tuple("ABCDE")[: len(split_choices(row["question"])[1]) or None]


def _open_cases(questions: pd.DataFrame, replies: Mapping[str, str]) -> list[Case]:
    """The yes/no replies that the benchmark's rule leaves open."""
    return [
        Case(_name(row), "yes_no", row["question"], "", replies[_name(row)])
        for row in questions[questions["task"] == "yes_no"].to_dict("records")
        if not parse_reply(replies[_name(row)], "yes_no", "main")
    ]


def task(record: RunRecord) -> Task:
    """As in `Probe`: every item has an answer that is correct."""
    return Task(scored="correct")


def result(record: RunRecord, store: Store) -> xarray.Dataset:
    """The columns of a question table and the reply, over the dimension `item`."""
    items = pd.DataFrame(store.content(record.layout["items"]))
    answers = answers_of(record, store)
    columns = {name: items[name].to_numpy() for name in COLUMNS}
    columns["reply"] = np.array([answer.text for answer in answers], dtype=object)
    names = [_name(row).replace("\n", " ").strip() for row in items.to_dict("records")]
    columns |= reaction_times(answers)
    return item_result(names, columns, judged_attributes(record, store))


def score(
    result: xarray.Dataset,
    *,
    measure: str | None = None,
    layer: str | None = None,
    confidence: float = 0.95,
) -> tuple[MvpScore]:
    """Metrics of the observer, and of those who always say yes, no or A.

    Raises
    ------
    InputError
        A measure or layer is named, which answers in words do not have.
    """
    refuse_features(measure=measure, layer=layer)
    return (MvpScore(result.attrs, confidence, "", "", rereadings(result), read_run(result)),)


def plot(
    results: Sequence[xarray.Dataset],
    ax: Axes | None = None,
    *,
    figure: SubFigure | None = None,
    measure: str | None = None,
    layer: str | None = None,
    **_: Any,
) -> Axes:
    """Low-level against high-level questions, with intervals; see `plot_mvp` for other
    contrasts.
    """
    refuse_features(measure=measure, layer=layer)
    metrics = {name: score(result)[0].metrics for name, result in by_observer(results).items()}
    return plot_mvp(metrics, "level", place(ax, figure))


def report(results: Sequence[xarray.Dataset]) -> list[Part]:
    """Every metric by task and level, and some answers."""
    scores = {name: score(result)[0] for name, result in by_observer(results).items()}
    rows: dict[str, dict[str, pd.DataFrame]] = {}
    for name, one in scores.items():
        for metric, table in one.metrics.groupby("metric", sort=False):
            parts = table["task"] + ", " + table["level"]
            rows.setdefault(str(metric), {})[name] = table.set_index(parts)[
                ["value", "low", "high"]
            ]
    tables = {name: one.table for name, one in scores.items()}
    return [
        by_parts("Right answers by task and level", "Right (%)", rows),
        answers_table(tables, _ANSWERED),
    ]


def read_run(result: xarray.Dataset) -> pd.DataFrame:
    """The question table of a result with reply, judge ("yes", "no", "unknown", "" where none was
    asked) and response.
    """
    return _read_by(result, json.loads(result.attrs["options"])["parser"])


def _read_by(result: xarray.Dataset, parser: str) -> pd.DataFrame:
    questions = pd.DataFrame({name: result[name].to_numpy() for name in COLUMNS})
    verdicts = read_verdicts(result.attrs["judged"])
    names = [_name(row) for row in questions.to_dict("records")]
    judge = [
        str(verdicts[name].majority or "unknown") if name in verdicts else "" for name in names
    ]
    replies = {"reply": result["reply"].to_numpy(), "judge": judge, "place": range(len(questions))}
    predictions = questions[["question_id"]].assign(**replies)
    return with_categories(parse_replies(questions, predictions, parser))


def rereadings(result: xarray.Dataset) -> tuple[Rereading, ...]:
    """How the other parsers, and a judge that read every reply, differ from the parser of a run."""
    if person_of(result):
        return ()
    own = json.loads(result.attrs["options"])["parser"]
    # Without a judge, a parser with one reads as that without.
    judged = json.loads(result.attrs["judge"]) is not None
    others = [
        name
        for name, (rule, asks) in PARSERS.items()
        if judged or (not asks and rule != PARSERS[own][0])
    ]
    table = _read_by(result, own)
    found = []
    readings = {
        f"parser {name}": _read_by(result, name)["response"].to_numpy()
        for name in others
        if name != own
    }
    if JUDGE_READING in result:
        readings[result[JUDGE_READING].attrs["reader"]] = (
            result[JUDGE_READING].values.astype(str).astype(object)
        )
    ours = table["response"].to_numpy()
    for name, theirs in readings.items():
        differ = theirs != ours
        opposite = differ & (theirs != "") & (ours != "")
        metrics = _ranked(mvp_metrics(table.assign(response=theirs), resamples=_FEWEST))
        under = {metric.suffix: value for metric, (value, *_) in metrics.items()}
        shares = [float(each.mean()) for each in (differ, opposite, theirs == "")]
        found.append(Rereading(name, len(ours), shares[0], shares[1], shares[2], under))
    return tuple(found)


def judge_replies(
    result: xarray.Dataset,
    judge: Judge,
    *,
    store: str | Path | Store | None = None,
    progress: bool | None = None,
) -> xarray.Dataset:
    """A result with a variable `judged`: the answer that a judge finds in each reply, "" where it
    finds none.
    """
    rows = read_run(result)
    cases = [
        Case(
            _name(row),
            "yes_no" if row["task"] == "yes_no" else "choice_letter",
            row["question"],
            "",
            row["reply"],
        )
        for row in rows.to_dict("records")
    ]
    verdicts = judge_cases(cases, judge, store=store, progress=progress)
    found = np.array([str(verdicts[case.name].majority or "") for case in cases], dtype=object)
    return result.assign({JUDGE_READING: (("item",), found, reader_of(judge))})


def marks(result: xarray.Dataset) -> dict[str, float]:
    """How right each reply is, 0 or 1, by the name of its question."""
    table = read_run(result)
    right = (table["response"] == table["answer"]).astype(float)
    return dict(zip(map(_name, table.to_dict("records")), right, strict=True))


def score_together(results: Sequence[xarray.Dataset]) -> list[PeopleMean | PeopleAgreement]:
    """What people reach together, and how far they agree on what they chose."""
    found: list[PeopleMean | PeopleAgreement] = []
    for members in people_by_experiment(results):
        scores = {person: score(result)[0] for person, result in members.items()}
        metrics = {person: one.metrics for person, one in scores.items()}
        found.append(mean_score(_TABLE, scores, metrics, _ranked))
    return [*found, *agreement_of_people(results, _chosen)]


def _ranked(metrics: pd.DataFrame) -> dict[Metric, tuple[float, float | None, float | None]]:
    """By metric of the scoreboard: value and the ends of its interval."""
    found = metrics.set_index(["task", "level", "metric"])[["value", "low", "high"]]
    return {
        metric: tuple(found.loc[at].tolist()) for at, metric in _RANKED.items() if at in found.index
    }


def _chosen(result: xarray.Dataset) -> dict[str, str]:
    return {
        _name(row): row["response"]
        for row in read_run(result).to_dict("records")
        if row["response"]
    }


@dataclass(frozen=True)
class MvpScore(ReadScore):
    """What one observer got right."""

    #: As `read_run` gives it.
    table: pd.DataFrame

    @property
    def metrics(self) -> pd.DataFrame:
        """As `mvp_metrics` gives them."""
        return mvp_metrics(self.table, confidence=self.confidence)

    def rows(self) -> Sequence[Row]:
        """The observer, those who always say the same, and the replies read otherwise."""
        unread = int((self.table["response"] == "").sum())
        notes = (
            [f"{unread} of {len(self.table)} replies could not be read and are wrong"]
            if unread
            else []
        )
        judged = self._verdicts()
        if judged["unread_replies"]:
            notes.append(
                f"{judged['unread_replies']} replies of the judge were no verdict; "
                f"{judged['without_verdict']} of the "
                f"{judged['cases']} replies that it was asked about got none"
            )
        if judged["cut_replies"]:
            most = json.loads(self.attributes["judge"])["max_tokens"]
            notes.append(
                f"{judged['cut_replies']} replies of the judge were cut off at {most} tokens, "
                "so that what it was "
                "asked about stays unread for want of a verdict: give judge.max_tokens"
            )
        rows = [self._row(OBSERVER, self.metrics, [*notes, *self.read_alike()])]
        yes_no = self.table["task"] == "yes_no"
        for word, asked in (("yes", yes_no), ("no", yes_no), ("A", ~yes_no)):
            if asked.any():
                always = mvp_metrics(constant_replies(self.table, word), confidence=self.confidence)
                rows.append(self._row(f"always {word}", always))
        return rows + self.read_otherwise("replies", 2)

    def _row(self, responder: str, metrics: pd.DataFrame, notes: Sequence[str] = ()) -> Row:
        return self.row(_TABLE, responder, _ranked(metrics), notes)

    def notes(self) -> Sequence[str]:
        """What the headings mean."""
        return (
            "Right in percent, with {confidence} % intervals over image pairs; qAcc: questions "
            "right on both "
            "images, aAcc: single questions, circular: multiple choice right in all rotations.",
            "read otherwise: of the replies, those that another reader takes differently "
            "(opposite: for another "
            "answer; left out: for none, which is wrong), and the score under it.",
        )

    def to_dict(self) -> dict[str, Any]:
        """Who was asked, how, and all metrics."""
        listed = json.loads(self.metrics.to_json(orient="records", double_precision=15))
        told = {
            name: json.loads(self.attributes[name])
            for name in ("observer_card", "judge", "options", "software")
        }
        return {
            "experiment": self.experiment,
            **told,
            "verdicts": self._verdicts(),
            "readings": [reading.to_dict() for reading in self.readings],
            "metrics": listed,
        }

    def _verdicts(self) -> dict[str, int]:
        return count_verdicts(read_verdicts(self.attributes["judged"]).values())


def _name(row: Mapping[Any, Any]) -> str:
    return f"{row['run']}\n{row['question_id']}"


def _files(folder: Path, row: Mapping[Any, Any], cross: str) -> tuple[Path, ...]:
    if row["task"] != "cross_mcq" or cross == "file":
        return (folder / row["image"],)
    # The pair's own files lie in the folder of single images, by the release's naming.
    suffix = Path(row["image"]).suffix
    return tuple(folder / "Single_Images" / f"{row['pair']}_{kind}{suffix}" for kind in ("s", "e"))
