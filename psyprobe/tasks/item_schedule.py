"""A run about items as a session: the questions, and those to a judge about what rules leave open.

A model gets all questions at once. A person gets one after the other in an order of their own,
drawn by their session, and each only when the answer before it is in the store; an attempt that
they gave up is asked again as another one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.analysis.score import Recorded
from psyprobe.errors import InputError, unknown_name
from psyprobe.experiment import Experiment
from psyprobe.files.output import digest
from psyprobe.observers.chat.prices import USD
from psyprobe.observers.chat.protocol import GIVEN_UP, Answer, AnswerObserver, TotalCost
from psyprobe.observers.protocol import SeatedObserver
from psyprobe.probes.cost import Expense, Pace, expense, measured_pace
from psyprobe.running.protocol import Batch, RunRecord
from psyprobe.running.schedule import ExperimentSchedule, run_attributes
from psyprobe.running.store import Store
from psyprobe.tasks import items
from psyprobe.tasks.items import Case, ItemQuestion, Judge, read_planned

if TYPE_CHECKING:
    import xarray

#: Seconds to an answer, as a guess, and what is said of it.
_LATENCY = 1.0
_UNKNOWN = "Tokens are not known before a question is answered, and 1 s an answer is a guess."


@dataclass(frozen=True)
class ItemTask:
    """What a benchmark wants to know of one observer."""

    #: Of the way of asking: a change of it asks anew.
    version: str
    questions: Sequence[ItemQuestion]
    #: From the replies, by the names of the questions, to what a judge is asked about them.
    cases: Callable[[Mapping[str, str]], Sequence[Case]]
    #: Items and options, as JSON can hold them: with the answers all that a result needs.
    items: Sequence[Mapping[str, Any]]
    options: Mapping[str, Any]
    #: Whether a question comes after all others where somebody is asked who remembers, by its name.
    afterwards: Callable[[str], bool] = lambda _: False


@dataclass(frozen=True)
class TaskPlan(Recorded):
    """What a run about items means before anything is asked."""

    experiment: str
    observer: str
    questions: int
    answered: int
    images: int
    #: What is left takes about so long.
    seconds: float
    #: What comes afterwards, in words.
    afterwards: str = ""
    #: What is left takes, of an observer that answers in words; and from where that is known, as a
    #: sentence.
    left: Expense | None = None
    source: str = ""

    def _repr_html_(self) -> str:
        from psyprobe.files import html

        return html.paragraphs(str(self))

    def __str__(self) -> str:
        return (
            f"{self.experiment} with {self.observer}: {self.questions:,} questions about "
            f"{self.images:,} images; "
            f"{self.answered:,} are answered.{self.afterwards}"
            + (f"\nLeft are {self.left}. {self.source}" if self.left else "")
        )


class ItemSchedule(ExperimentSchedule):
    """One run about items: a round of questions, and one to a judge about what rules leave open.

    Raises
    ------
    InputError
        Two questions have one name, or the observer takes too few images at once.
    """

    def __init__(
        self, experiment: Experiment, observer: AnswerObserver, task: ItemTask, judge: Judge | None
    ) -> None:
        super().__init__(experiment, observer, *([] if judge is None else [judge.observer]))
        self.task = task
        self.judge = judge
        items.check_questions(task.questions, observer)
        self._one_by_one = isinstance(observer, SeatedObserver)
        self._questions = (
            [replace(question, attempt=1) for question in task.questions]
            if self._one_by_one
            else task.questions
        )
        self._keys = items.keys_of(self._questions, observer, task.version)
        #: As the run begins: of a person's last attempts there may be others.
        self._first_keys = list(self._keys.values())
        self._rounds = self._batches()
        #: Names and keys of the round under way, if it is about items; which of them were given up;
        #: and all replies.
        self._round: dict[str, str] = {}
        self._given_up: set[str] = set()
        self._replies: dict[str, str] = {}
        self._cases: list[tuple[str, str, list[str]]] = []

    def layout(self) -> dict[str, Any]:
        """Items, options, judge, and the keys of the answers."""
        return {
            "version": self.task.version,
            "items": digest(self.task.items),
            "options": self.task.options,
            "judge": None if self.judge is None else self.judge.to_dict(),
            "keys": self._first_keys,
        }

    @property
    def named(self) -> list[dict[str, str]]:
        """The key of each question, and what it is called."""
        return [{"key": key, "item": name} for name, key in self._keys.items()]

    def contents(self) -> Iterator[tuple[str, str, Any]]:
        """The items and the cards."""
        yield digest(self.task.items), "items", self.task.items
        yield from super().contents()

    def next(self) -> list[Batch]:
        """The questions, then those to a judge, then none; of a part its questions alone, since a
        judge needs all.
        """
        batches = next(self._rounds, [])
        holds = self.holds
        if holds is None:
            return batches
        self._rounds = iter(())
        return [batch for batch in batches if holds(batch.questions[0].key)]

    def tell(self, answers: Mapping[str, Mapping[str, Any]]) -> None:
        """Keep what was said about the items; verdicts are read from the store."""
        if self.holds is None:
            found = {name: answers[key]["reply"] for name, key in self._round.items()}
            self._given_up = {name for name, reply in found.items() if reply["finish"] == GIVEN_UP}
            self._replies |= {name: reply["text"] for name, reply in found.items()}
        self._round = {}

    def outcome(self) -> dict[str, Any]:
        """Which cases were judged, and by which questions; and the keys of a person's attempts that
        count.
        """
        return {
            "cases": self._cases,
            **({"keys": list(self._keys.values())} if self._one_by_one else {}),
        }

    def cost(self, store: Store, *, timed: bool) -> TaskPlan:
        """What is left to ask of the observer."""
        keys = list(self._keys.values())
        found = store.answers(keys)
        afterwards = ""
        questions = self.task.questions
        pace = measured_pace(
            store,
            self.observer,
            [each["reply"] for each in found.values()],
            {"probe": self.experiment.probe},
            items.put if timed else None,
            items.batches_of(questions[:1], self.observer, self.task.version),
        ) or Pace(None, 0.0, None, _LATENCY, None, USD, _UNKNOWN)
        sizes = (
            [read_planned(*image).shape[:2] for image in questions[0].images] if questions else []
        )
        left = expense(self.observer, pace, sum(key not in found for key in keys), sizes)
        if self.judge is not None:
            afterwards = (
                f" What rules leave open is asked of {self.judge.observer.card.name} afterwards."
            )
        return TaskPlan(
            experiment=self.experiment.name,
            observer=self.observer.card.name,
            questions=len(keys),
            answered=sum(key in found for key in keys),
            images=len(
                {sha256 for question in self.task.questions for _, sha256 in question.images}
            ),
            seconds=left.seconds,
            afterwards=afterwards,
            left=left,
            source=pace.source,
        )

    @property
    def distinct(self) -> int:
        """Questions that differ in more than their names."""
        return len(set(self._first_keys))

    def _batches(self) -> Iterator[list[Batch]]:
        if self._one_by_one:
            yield from self._in_turn()
        else:
            self._round = self._keys
            yield items.batches_of(self._questions, self.observer, self.task.version)
        if self.judge is not None:
            found = {
                case: items.judge_questions(case, self.judge)
                for case in self.task.cases(self._replies)
            }
            asked = [question for each in found.values() for question in each]
            observer = self.judge.observer
            keys = items.keys_of(asked, observer, items.JUDGING)
            self._cases = [
                (case.name, case.prompt, [keys[one.name] for one in each])
                for case, each in found.items()
            ]
            yield items.batches_of(asked, observer, items.JUDGING)

    def _in_turn(self) -> Iterator[list[Batch]]:
        """One question a round, in an order that the session draws."""
        drawn = np.random.default_rng(int(self.observer.card.digest[:16], 16)).permutation(
            len(self._questions)
        )
        questions = [self._questions[i] for i in drawn]
        for question in sorted(questions, key=lambda each: self.task.afterwards(each.name)):
            self._given_up = {question.name}
            asked = question
            while self._given_up:
                self._round = items.keys_of([asked], self.observer, self.task.version)
                self._keys |= self._round
                yield items.batches_of([asked], self.observer, self.task.version)
                asked = replace(asked, attempt=asked.attempt + 1)


def items_of(experiment: Experiment) -> Path:
    """The folder of items that a page must name."""
    if experiment.items is None:
        raise InputError(f"{experiment.name}: there is no 'items'; give the folder that holds them")
    return experiment.items


def options_of(experiment: Experiment, defaults: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a page, each of a known name and of the kind of its default."""
    for name, value in experiment.options.items():
        if name not in defaults:
            raise unknown_name(f"option of probe {experiment.probe!r}", name, defaults)
        if not isinstance(value, type(defaults[name])) or isinstance(value, bool) != isinstance(
            defaults[name], bool
        ):
            kind = {
                str: "text",
                bool: "true or false",
                int: "a whole number",
                float: "a number with a point",
                list: "a list",
            }[type(defaults[name])]
            raise InputError(f"options.{name} is {value!r}; give {kind}")
    return {**defaults, **experiment.options}


def answers_of(record: RunRecord, store: Store) -> list[Answer]:
    """The answers of a run about items, in the order of its questions."""
    return [Answer.from_dict(answer["reply"]) for answer in store.iterate_answers(_keys_of(record))]


def reaction_times(answers: Sequence[Answer]) -> dict[str, FloatArray]:
    """A column of a result: seconds that a person looked before each answer; none of anybody
    else.
    """
    asked = bool(answers) and answers[0].session is not None
    return {"reaction_seconds": np.array([answer.latency for answer in answers])} if asked else {}


def item_result(
    items: Sequence[str], columns: Mapping[str, Any], attributes: Mapping[str, Any]
) -> xarray.Dataset:
    """The result of a run about items: one value an item of every column, selected by its name."""
    import xarray

    data = {
        name: (
            "item",
            values,
            {
                "units": "s" if name.startswith("reaction_seconds") else "1",
                "long_name": name.replace("_", " ").capitalize(),
            },
        )
        for name, values in columns.items()
    }
    names = np.array(items, dtype=object)
    index = ("item", names, {"units": "1", "long_name": "Item"})
    return xarray.Dataset(data, {"item": index}, dict(attributes))


def _keys_of(record: RunRecord) -> list[str]:
    return list(record.outcome.get("keys", record.layout["keys"]))


def judged_attributes(record: RunRecord, store: Store) -> dict[str, Any]:
    """The same, with the options of the page, the judge, and of each case its name, prompt, and
    replies with ends.
    """
    cases = record.outcome["cases"]
    layout = record.layout
    found = store.require_answers([key for _, _, keys in cases for key in keys])
    replies = {
        key: (answer["reply"]["text"], answer["reply"]["finish"]) for key, answer in found.items()
    }
    judged = [(name, prompt, [replies[key] for key in keys]) for name, prompt, keys in cases]
    spent = TotalCost(
        answer["reply"] for answer in (*store.answers(_keys_of(record)).values(), *found.values())
    ).to_dict()
    return run_attributes(
        record, options=layout["options"], judge=layout["judge"], judged=judged, spent=spent
    )
