"""Turns of a run, each a question with its answer: the form that every bridge reads and writes.

A run is planned and drawn as ever, with an observer that replays answers. So images, prompts and
measurements are those of a run, for any probe that asks in words.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from psyprobe.errors import InputError, PsyprobeError
from psyprobe.experiment import Experiment
from psyprobe.experiment.experiment import experiment_from_text
from psyprobe.experiment.prompts import Prompt
from psyprobe.files.json_types import JsonMapping, JsonObject
from psyprobe.files.output import digest
from psyprobe.files.terminal import progress_bar
from psyprobe.observers.chat.protocol import Answer, Answering, Inquiry, image_digest
from psyprobe.observers.protocol import Card
from psyprobe.probes import load_probe
from psyprobe.probes.experiments import check_experiment
from psyprobe.running.loop import Writer, ask_round
from psyprobe.running.origins import Origins
from psyprobe.running.protocol import Answered, Batch, RunRecord, question_keys
from psyprobe.running.store import Store

if TYPE_CHECKING:
    import xarray


@dataclass(frozen=True, eq=False)
class Turn:
    """One question with its answer."""

    #: Digest of images and prompt, the same for every observer: 16 hexadecimal digits, and a
    #: number where two turns are alike.
    id: str
    inquiry: Inquiry
    #: Empty before the question is asked.
    answer: Answer
    #: Level, contrast, repeat and prompt of a trial, or the name of an item.
    description: JsonMapping
    #: The wording of a trial, from which its prompt was made; None of an item.
    wording: Prompt | None
    #: Whether the observer resized the image that it was sent.
    resized: bool = False

    @property
    def correct(self) -> str:
        """The right answer to a trial, in the words of its prompt; "" for a benchmark item."""
        if self.wording is None:
            return ""
        trial = self.description
        prompt, polarity = self.wording.interpret(trial["order"], trial["alternatives"])
        is_present = trial["contrast"] > 0
        return prompt.yes[0] if is_present == (polarity > 0) else prompt.no[0]


@dataclass(frozen=True, eq=False)
class Replies:
    """The answers that an observer gave to another harness."""

    experiment: Experiment
    #: The observer that answered.
    card: Card
    #: Answers by the id of the turn.
    answers: Mapping[str, Answer]


class TurnIds:
    """Gives turns their ids: called with each inquiry in the order of asking, numbers repeats."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    def __call__(self, inquiry: Inquiry) -> str:
        examples = [
            [example.prompt, example.answer, [*map(image_digest, example.images)]]
            for example in inquiry.examples
        ]
        contents = [
            [*map(image_digest, inquiry.images)],
            inquiry.prompt,
            inquiry.system,
            examples,
            inquiry.decoding.to_dict(),
        ]
        turn_id = digest(contents)[:16]
        self._counts[turn_id] += 1
        count = self._counts[turn_id]
        return turn_id if count == 1 else f"{turn_id}-{count}"


class ReplayObserver(Answering):
    """An observer that repeats recorded answers, and skips questions without one.

    Parameters
    ----------
    card : Card
        The observer that gave the answers.
    recall : callable
        Gives the recorded answer to a question, or None.
    """

    takes_all = True

    def __init__(self, card: Card, recall: Callable[[Inquiry], Answer | None]) -> None:
        self.card = card
        self._recall = recall

    def answers(self, inquiries: Iterable[Inquiry]) -> Iterator[tuple[Inquiry, Answer]]:
        """Iterate over recorded answers in the order of asking, in place of a model's."""
        for inquiry in inquiries:
            answer = self._recall(inquiry)
            if answer is not None:
                yield inquiry, answer


class _Recorder:
    """A plan of an experiment, whose questions become turns as they are answered."""

    def __init__(self, experiment: Experiment, card: Card) -> None:
        self._card = card
        self._turn_id = TurnIds()
        prompts = () if experiment.asking is None else experiment.asking.prompts
        self._wordings = {prompt.id: prompt for prompt in prompts}
        observer = ReplayObserver(card, lambda _: None)
        self.schedule, self._probe = _plan(experiment, observer)

    def answers(
        self, batches: Sequence[Batch], recall: Callable[[Inquiry], Answer | None]
    ) -> Iterator[tuple[Answered, list[Turn]]]:
        """Iterate over the answers to batches, recording each question and answer."""
        turns: list[Turn] = []
        descriptions = _describe_questions(self.schedule)

        def record(inquiry: Inquiry) -> Answer | None:
            answer = recall(inquiry)
            if answer is not None:
                description = descriptions.get(inquiry.key, {})
                wording = self._wordings.get(description.get("prompt", ""))
                turn_id = self._turn_id(inquiry)
                turns.append(Turn(turn_id, inquiry, answer, description, wording))
            return answer

        observers = {self._card.digest: ReplayObserver(self._card, record)}
        for answered in self._probe.answer(observers, batches):
            yield answered, turns
            turns = []


def questions_of(experiment: Experiment, card: Card) -> Iterator[Turn]:
    """Iterate over all questions of an experiment, without answers.

    Parameters
    ----------
    experiment : Experiment
        Its questions must not depend on answers.
    card : Card
        The observer to be asked; stimuli are drawn at its input size.

    Raises
    ------
    InputError
        Its questions depend on answers, or it asks nothing in words.
    """
    asking = experiment.asking
    if asking is not None and asking.design in ("quest_plus", "quick_csf"):
        raise InputError(
            f"{experiment.name} asks by the design {asking.design!r}, which chooses each level "
            "by the answers before; other harnesses put all questions at once: set "
            "asking.design=constant"
        )
    if asking is not None and asking.readout == "auto":
        raise InputError(
            f"{experiment.name} lets the first answers decide how answers are read; set "
            "asking.readout=text, or p_yes"
        )
    recorder = _Recorder(experiment, card)
    batches = recorder.schedule.next()
    for _, turns in recorder.answers(batches, lambda _: Answer("")):
        yield from turns


def turns_of(record: RunRecord, store: Store, folder: Path) -> Iterator[Turn]:
    """Iterate over all questions of a finished run with their answers, but for a judge's.

    Parameters
    ----------
    record : RunRecord
        The run.
    store : Store
        The store that holds its answers.
    folder : Path
        The folder for files that its page names.

    Raises
    ------
    InputError
        The page asks other questions now, or a browser drew the stimuli.
    """
    if "delivery" in record.layout and record.layout["delivery"]["format"] == "page":
        raise InputError(
            f"{record.experiment} was drawn by a page for {record.observer}, and there are no "
            "images of it"
        )
    experiment = experiment_from_text(record.experiment_toml, record.experiment, folder)
    card = Card.from_dict(record.observer_card)
    recorder = _Recorder(experiment, card)
    schedule = recorder.schedule
    schedule.begin(record)
    while batches := [
        batch for batch in schedule.next() if _observer_digest(batch) == card.digest
    ]:
        keys = question_keys(batches)
        if store.missing(keys):
            raise InputError(
                f"{record.experiment} with {record.observer} was asked by another version of "
                "psyprobe, whose questions were others; export it with that one"
            )
        stored_answers = store.answers(keys)
        recall = partial(_stored_answer, stored_answers)
        for answered, turns in recorder.answers(batches, recall):
            stored_answer = stored_answers[answered.question.key]
            resized = any(
                not _agree(stored_answer[name], value)
                for name, value in answered.answer.items()
                if name != "reply"
            )
            yield from (replace(turn, resized=resized) for turn in turns)
        schedule.tell(stored_answers)


def _agree(stored: Any, measured: Any) -> bool:
    """Tell whether a measurement is the stored one but for another machine's rounding."""
    if isinstance(stored, float) and isinstance(measured, float):
        return math.isclose(stored, measured, rel_tol=1e-9, abs_tol=1e-12)
    return bool(stored == measured)


def _stored_answer(
    stored_answers: Mapping[str, JsonMapping], inquiry: Inquiry
) -> Answer | None:
    """Return the stored answer to a question; None if its contrast could not be shown."""
    reply = stored_answers[inquiry.key]["reply"]
    return None if reply is None else Answer.from_dict(reply)


class AnswerCounts(NamedTuple):
    """How many questions of a run have an answer, and how many have none yet."""

    answered: int
    unanswered: int


def store_replies(
    replies: Replies, store: Store, *, progress: bool | None = None
) -> AnswerCounts:
    """Store another harness's answers as those of a run, and count them.

    Parameters
    ----------
    replies : Replies
        The answers.
    store : Store
        It takes them; the run is finished if every question has its answer.
    progress : bool, optional
        Whether to show a bar; by default on a terminal and in a notebook.
    """
    turn_id = TurnIds()
    experiment = replies.experiment
    card = replies.card
    observer = ReplayObserver(
        card, lambda inquiry: replies.answers.get(turn_id(inquiry))
    )
    schedule, probe = _plan(experiment, observer)
    store.add_contents(schedule.contents())
    record = store.begin_run(schedule.record(store))
    schedule.begin(record)
    observers = {card.digest: observer}
    origins = Origins(store, observers)
    asked_keys = set[str]()
    with Writer(store) as writer, progress_bar(0, progress, "question") as bar:
        bar.set_description(f"{experiment.name}: {card.name}")
        while batches := schedule.next():
            judged = [
                batch for batch in batches if _observer_digest(batch) != card.digest
            ]
            if judged:
                return AnswerCounts(
                    len(asked_keys), sum(len(batch.questions) for batch in judged)
                )
            keys = ask_round(
                store, probe.answer, observers, origins, batches, bar, writer
            )
            writer.write()
            asked_keys |= keys
            if missing_keys := store.missing(keys):
                return AnswerCounts(
                    len(asked_keys) - len(missing_keys), len(missing_keys)
                )
            schedule.tell(store.answers(keys))
    store.finish_run(record, schedule.outcome(), store.origin_ids(asked_keys))
    return AnswerCounts(len(asked_keys), 0)


def score_numbers(result: xarray.Dataset) -> dict[str, float]:
    """Score a result as numbers by name: statistics, and sensitivity at each level.

    Empty where nothing can be scored.
    """
    try:
        score = load_probe(result.attrs["probe"]).score(result)[0]
    except PsyprobeError:
        return {}
    numbers = dict(score.rows()[0].record)
    score_fields = score.to_dict()
    for point in score_fields.get("curve", ()):
        numbers[f"sensitivity at {point['value']:g} {score_fields['unit']}"] = point[
            "sensitivity"
        ]
    return {name: float(value) for name, value in numbers.items() if _is_number(value)}


def _plan(experiment: Experiment, observer: ReplayObserver) -> tuple[Any, Any]:
    """Plan the schedule of an experiment's questions, and load its probe."""
    probe = load_probe(check_experiment(experiment).probe)
    lacks_asking = "asking" in probe.SECTIONS and experiment.asking is None
    if "answer" not in probe.ABILITIES or lacks_asking:
        raise InputError(
            f"{experiment.name} asks nothing in words (probe {experiment.probe!r}); take one "
            "that does"
        )
    return probe.plan(experiment, observer), probe


def _observer_digest(batch: Batch) -> str:
    """Return the digest of the observer that a batch asks."""
    return batch.questions[0].observer


def _describe_questions(schedule: Any) -> dict[str, JsonObject]:
    """Describe each trial or benchmark item, by the key of its question."""
    trials = [
        {**trial, "alternatives": schedule.task.alternatives}
        for trial in schedule.outcome().get("trials", ())
    ]
    descriptions = [*trials, *getattr(schedule, "named", ())]
    return {
        description.pop("key"): description for description in map(dict, descriptions)
    }


def _is_number(value: Any) -> bool:
    """Tell whether a value is a finite int or float, and no bool."""
    return (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and math.isfinite(value)
    )
