"""Schedule a run about items: its questions, then cases for a judge that rules leave open.

A model gets all questions at once. A person gets one after the other in a random order, seeded by
their session, and each only when the answer before it is in the store; an attempt that they gave up
is asked again as another one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from psyprobe._typing import FloatArray
from psyprobe.analysis.score import Recorded
from psyprobe.analysis.words.reply_text import without_reasoning
from psyprobe.errors import InputError, unknown_name
from psyprobe.experiment import Experiment
from psyprobe.files.json_types import JsonMapping, JsonObject
from psyprobe.files.output import digest
from psyprobe.observers.chat.prices import USD
from psyprobe.observers.chat.protocol import GIVEN_UP, Answer, AnswerObserver, TotalCost
from psyprobe.observers.protocol import SeatedObserver
from psyprobe.probes.cost import Expense, Pace, expense, measured_pace
from psyprobe.probes.unreadable import ReplyWatch
from psyprobe.running.protocol import Answered, Batch, Content, RunRecord
from psyprobe.running.schedule import ExperimentSchedule, run_attributes
from psyprobe.running.store import Store
from psyprobe.tasks import items
from psyprobe.tasks.items import Case, ItemQuestion, Judge, read_planned

if TYPE_CHECKING:
    import xarray

#: Seconds to an answer where nothing was measured, and the remark on it.
_LATENCY = 1.0
_LATENCY_NOTE = (
    "Tokens are not known before a question is answered, and 1 s an answer is a guess."
)
#: Descriptions of the types of options.
_KINDS: Mapping[type, str] = {
    str: "text",
    bool: "true or false",
    int: "a whole number",
    float: "a number with a point",
    list: "a list",
}


@dataclass(frozen=True)
class ItemTask:
    """The questions of a benchmark to one observer."""

    #: Version of the procedure of asking: with another one all is asked again.
    version: str
    questions: Sequence[ItemQuestion]
    #: Makes a judge's cases from the replies by the names of the questions.
    cases: Callable[[Mapping[str, str]], Sequence[Case]]
    #: Items and options, as JSON can hold them: with the answers all that a result needs.
    items: Sequence[JsonMapping]
    options: JsonMapping
    #: Whether a person, who remembers, gets the question of a name after all others.
    afterwards: Callable[[str], bool] = lambda _: False


@dataclass(frozen=True)
class TaskPlan(Recorded):
    """The size and cost of a run about items before anything is asked."""

    experiment: str
    observer: str
    questions: int
    answered: int
    images: int
    #: Estimated duration of the remaining questions.
    seconds: float
    #: A sentence about a judge that is asked afterwards.
    afterwards: str = ""
    #: Cost of the remaining questions, of an observer that answers in words, and a sentence about
    #: its source.
    left: Expense | None = None
    source: str = ""

    def _repr_html_(self) -> str:
        """Show the plan as HTML text in a notebook."""
        from psyprobe.files import html

        return html.paragraphs(str(self))

    def __str__(self) -> str:
        text = (
            f"{self.experiment} with {self.observer}: {self.questions:,} questions about "
            f"{self.images:,} images; {self.answered:,} are answered.{self.afterwards}"
        )
        return f"{text}\nLeft are {self.left}. {self.source}" if self.left else text


class ItemSchedule(ExperimentSchedule):
    """The schedule of a run about items: rounds of questions, and one of cases for a judge.

    Raises
    ------
    InputError
        Two questions have one name, or the observer takes too few images at once.
    """

    def __init__(
        self,
        experiment: Experiment,
        observer: AnswerObserver,
        task: ItemTask,
        judge: Judge | None,
    ) -> None:
        super().__init__(
            experiment, observer, *([] if judge is None else [judge.observer])
        )
        self.task = task
        self.judge = judge
        items.check_questions(task.questions, observer)
        self._is_person = isinstance(observer, SeatedObserver)
        self._reply_watch = ReplyWatch(observer)
        self._questions = task.questions
        if self._is_person:
            self._questions = [
                replace(question, attempt=1) for question in task.questions
            ]
        self._keys = items.keys_of(self._questions, observer, task.version)
        #: Keys of first attempts.
        self._first_keys = list(self._keys.values())
        self._rounds = self._batches()
        #: Keys of the current round by the names of its questions; empty in the judge's round.
        self._round: dict[str, str] = {}
        #: Names of questions whose last attempt was given up.
        self._given_up: set[str] = set()
        self._replies: dict[str, str] = {}
        self._cases: list[tuple[str, str, list[str]]] = []

    def layout(self) -> JsonObject:
        """Return what the result needs besides answers: items, options, judge and keys."""
        return {
            "version": self.task.version,
            "items": digest(self.task.items),
            "options": self.task.options,
            "judge": None if self.judge is None else self.judge.to_dict(),
            "keys": self._first_keys,
        }

    @property
    def named(self) -> list[dict[str, str]]:
        """The pairs (key, name) of all questions."""
        return [{"key": key, "item": name} for name, key in self._keys.items()]

    def contents(self) -> Iterator[Content]:
        """Iterate over (digest, kind, value) of the list of items and of the cards."""
        yield digest(self.task.items), "items", self.task.items
        yield from super().contents()

    def next(self) -> list[Batch]:
        """Return the batches of the next round: questions, then the judge's, then none.

        A shard has no judge's round, since a judge needs all replies.
        """
        batches = next(self._rounds, [])
        holds = self.holds
        if holds is None:
            return batches
        self._rounds = iter(())
        return [batch for batch in batches if holds(batch.questions[0].key)]

    def watch(self, answered: Answered) -> None:
        """Refuse to ask on if the first replies hold no text."""
        watch = self._reply_watch
        is_judge = answered.question.observer != self.observer.card.digest
        if not (watch.is_over or is_judge):
            reply = Answer.from_dict(answered.answer["reply"])
            watch.add(reply, bool(without_reasoning(reply.text).strip()))

    def tell(self, answers: Mapping[str, JsonMapping]) -> None:
        """Take the replies about items of the last round."""
        if self.holds is None:
            replies = {name: answers[key]["reply"] for name, key in self._round.items()}
            self._given_up = {
                name for name, reply in replies.items() if reply["finish"] == GIVEN_UP
            }
            self._replies |= {name: reply["text"] for name, reply in replies.items()}
        self._round = {}

    def outcome(self) -> JsonObject:
        """Return the judge's cases with their keys, and the keys of a person's last attempts."""
        outcome: JsonObject = {"cases": self._cases}
        if self._is_person:
            outcome["keys"] = list(self._keys.values())
        return outcome

    def cost(self, store: Store, *, timed: bool) -> TaskPlan:
        """Estimate the cost of the questions that are not answered yet."""
        keys = list(self._keys.values())
        answers = store.answers(keys)
        answered_count = sum(key in answers for key in keys)
        questions = self.task.questions
        pace = measured_pace(
            store,
            self.observer,
            [answer["reply"] for answer in answers.values()],
            {"probe": self.experiment.probe},
            items.answer_items if timed else None,
            items.batches_of(questions[:1], self.observer, self.task.version),
        ) or Pace(None, 0.0, None, _LATENCY, None, USD, _LATENCY_NOTE)
        images = {image for question in questions for image in question.images}
        sizes = [
            read_planned(*image).shape[:2]
            for question in questions[:1]
            for image in question.images
        ]
        remaining = expense(self.observer, pace, len(keys) - answered_count, sizes)
        afterwards = ""
        if self.judge is not None:
            judge_name = self.judge.observer.card.name
            afterwards = f" What rules leave open is asked of {judge_name} afterwards."
        return TaskPlan(
            experiment=self.experiment.name,
            observer=self.observer.card.name,
            questions=len(keys),
            answered=answered_count,
            images=len({sha256 for _, sha256 in images}),
            seconds=remaining.seconds,
            afterwards=afterwards,
            left=remaining,
            source=pace.source,
        )

    @property
    def distinct(self) -> int:
        """The number of questions that differ in more than their names."""
        return len(set(self._first_keys))

    def _batches(self) -> Iterator[list[Batch]]:
        """Iterate over the rounds of questions: to the observer, then to the judge."""
        if self._is_person:
            yield from self._single_questions()
        else:
            self._round = self._keys
            yield items.batches_of(self._questions, self.observer, self.task.version)
        if self.judge is not None:
            observer = self.judge.observer
            questions: list[ItemQuestion] = []
            self._cases = []
            for case in self.task.cases(self._replies):
                case_questions = items.judge_questions(case, self.judge)
                keys = items.keys_of(case_questions, observer, items.JUDGING)
                self._cases.append((case.name, case.prompt, list(keys.values())))
                questions += case_questions
            yield items.batches_of(questions, observer, items.JUDGING)

    def _single_questions(self) -> Iterator[list[Batch]]:
        """Iterate over rounds of one question each, in an order seeded by the session."""
        generator = np.random.default_rng(int(self.observer.card.digest[:16], 16))
        questions = [
            self._questions[i] for i in generator.permutation(len(self._questions))
        ]
        questions.sort(key=lambda question: self.task.afterwards(question.name))
        for question in questions:
            self._given_up = {question.name}
            while self._given_up:
                self._round = items.keys_of(
                    [question], self.observer, self.task.version
                )
                self._keys |= self._round
                yield items.batches_of([question], self.observer, self.task.version)
                question = replace(question, attempt=question.attempt + 1)


def items_of(experiment: Experiment) -> Path:
    """Return the folder of benchmark items that an experiment names, refusing one without."""
    if experiment.items is None:
        raise InputError(
            f"{experiment.name}: there is no 'items'; give the folder that holds them"
        )
    return experiment.items


def options_of(experiment: Experiment, defaults: JsonMapping) -> JsonObject:
    """Read a benchmark's options from an experiment, refusing unknown names and wrong types."""
    for name, value in experiment.options.items():
        if name not in defaults:
            raise unknown_name(f"option of probe {experiment.probe!r}", name, defaults)
        kind = type(defaults[name])
        # A bool is an int to Python, but not to a page.
        if not isinstance(value, kind) or isinstance(value, bool) != (kind is bool):
            raise InputError(f"options.{name} is {value!r}; give {_KINDS[kind]}")
    return {**defaults, **experiment.options}


def stored_items(record: RunRecord, store: Store) -> pd.DataFrame:
    """Load the items of a run from its store.

    Raises
    ------
    InputError
        They are withheld, as those of a run from a registry.
    """
    stored = store.contents([record.layout["items"]])
    if not stored:
        raise InputError(
            "its items are withheld, since they have no licence; get the run with psyprobe "
            "registry get and --sets, the folder of the set"
        )
    return pd.DataFrame(*stored.values())


def answers_of(record: RunRecord, store: Store) -> list[Answer]:
    """Return the answers to a run's benchmark items, in the order of its questions."""
    return [
        Answer.from_dict(answer["reply"])
        for answer in store.iterate_answers(_keys_of(record))
    ]


def reaction_times(answers: Sequence[Answer]) -> dict[str, FloatArray]:
    """Return a person's reaction times, s, as a result's column; no column for a model."""
    if not answers or answers[0].session is None:
        return {}
    return {"reaction_seconds": np.array([answer.latency for answer in answers])}


def item_result(
    items: Sequence[str], columns: JsonMapping, attributes: JsonMapping
) -> xarray.Dataset:
    """Build the result of a benchmark run, with one value an item in each column."""
    import xarray

    data = {}
    for name, values in columns.items():
        units = "s" if name.startswith("reaction_seconds") else "1"
        long_name = name.replace("_", " ").capitalize()
        data[name] = ("item", values, {"units": units, "long_name": long_name})
    names = np.array(items, dtype=object)
    index = ("item", names, {"units": "1", "long_name": "Item"})
    return xarray.Dataset(data, {"item": index}, dict(attributes))


def _keys_of(record: RunRecord) -> list[str]:
    """Return the keys of all questions of a run."""
    return list(record.outcome.get("keys", record.layout["keys"]))


def judged_attributes(record: RunRecord, store: Store) -> JsonObject:
    """Build a result's attributes: of the run, options, judge, and the judge's replies.

    The replies stand by case, with its name and prompt, each with its stop reason.
    """
    cases = record.outcome["cases"]
    layout = record.layout
    judge_answers = store.require_answers([key for _, _, keys in cases for key in keys])
    replies = {key: answer["reply"] for key, answer in judge_answers.items()}
    judged = [
        (name, prompt, [(replies[key]["text"], replies[key]["finish"]) for key in keys])
        for name, prompt, keys in cases
    ]
    answers = store.answers(_keys_of(record))
    total = TotalCost(
        [*(answer["reply"] for answer in answers.values()), *replies.values()]
    )
    return run_attributes(
        record,
        options=layout["options"],
        judge=layout["judge"],
        judged=judged,
        spent=total.to_dict(),
    )
