"""What is asked in a run and what came back, turn by turn: the form in which every bridge takes and
gives it.

A run is planned and drawn as ever, before an observer that answers from what is known already. So
images, prompts and what is measured of them are those of a run, of any probe that asks in words.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from psyprobe.errors import InputError, PsyprobeError
from psyprobe.experiment import Experiment
from psyprobe.experiment.experiment import experiment_from_text
from psyprobe.experiment.prompts import Prompt
from psyprobe.files.output import digest
from psyprobe.files.terminal import progress_bar
from psyprobe.observers.chat.protocol import Answer, Answering, Inquiry, image_digest
from psyprobe.observers.protocol import Card
from psyprobe.probes import load_probe
from psyprobe.probes.experiments import check_experiment
from psyprobe.running.loop import Writer, ask_round
from psyprobe.running.origins import Origins
from psyprobe.running.protocol import RunRecord
from psyprobe.running.store import Store

if TYPE_CHECKING:
    import xarray


@dataclass(frozen=True, eq=False)
class Turn:
    """One question with its answer."""

    #: Of what is shown and asked, whoever is asked: 16 hexadecimal digits, and a number where two
    #: are alike.
    id: str
    inquiry: Inquiry
    #: None where it is not asked yet.
    answer: Answer | None
    #: What the run knows it by: level, contrast, repeat and wording of a trial, or the name of an
    #: item.
    about: Mapping[str, Any]
    #: Whether the image that reached the observer was another than the one that it was sent.
    resized: bool = False


@dataclass(frozen=True, eq=False)
class Replies:
    """What another harness was answered."""

    experiment: Experiment
    #: Who answered.
    card: Card
    #: By the id of the turn.
    answers: Mapping[str, Answer]


def key_of(turn: Turn, prompts: Mapping[str, Prompt]) -> str:
    """What a reply says if it is right about a trial, in the words of its wording; "" of an
    item.
    """
    if "prompt" not in turn.about:
        return ""
    wording, polarity = prompts[turn.about["prompt"]].interpret(
        turn.about["order"], turn.about["alternatives"]
    )
    there = turn.about["contrast"] > 0
    return wording.yes[0] if there == (polarity > 0) else wording.no[0]


class Names:
    """The ids of turns, in the order in which they are put."""

    def __init__(self) -> None:
        self._given: Counter[str] = Counter()
        self._last: tuple[Any, list[str]] = (None, [])

    def __call__(self, inquiry: Inquiry) -> str:
        # All wordings are asked about the same images.
        if self._last[0] is not inquiry.images:
            self._last = (inquiry.images, [image_digest(image) for image in inquiry.images])
        before = [
            [example.prompt, example.answer, [*map(image_digest, example.images)]]
            for example in inquiry.examples
        ]
        name = digest(
            [self._last[1], inquiry.prompt, inquiry.system, before, inquiry.decoding.to_dict()]
        )[:16]
        self._given[name] += 1
        return name if self._given[name] == 1 else f"{name}-{self._given[name]}"


class Recorded(Answering):
    """An observer that says what was said before, and is silent where that is not known.

    Parameters
    ----------
    card : Card
        Of whoever said it.
    recall : callable
        From a question to its answer, or None.
    """

    takes_all = True

    def __init__(self, card: Card, recall: Callable[[Inquiry], Answer | None]) -> None:
        self.card = card
        self._recall = recall

    def answers(self, inquiries: Iterable[Inquiry]) -> Iterator[tuple[Inquiry, Answer]]:
        """What is known, in the order of asking."""
        for inquiry in inquiries:
            answer = self._recall(inquiry)
            if answer is not None:
                yield inquiry, answer


def questions_of(experiment: Experiment, card: Card) -> Iterator[Turn]:
    """All that an experiment asks, without answers.

    Parameters
    ----------
    experiment : Experiment
        Whose questions are known before any is answered.
    card : Card
        Of whoever will be asked; stimuli are drawn at its input size.

    Raises
    ------
    InputError
        What is asked depends on answers, or nothing is asked in words.
    """
    asking = experiment.asking
    if asking is not None and asking.design in ("quest_plus", "quick_csf"):
        raise InputError(
            f"{experiment.name} asks by the design {asking.design!r}, which chooses each level "
            "by the answers before; "
            "other harnesses put all questions at once: set asking.design=constant"
        )
    if asking is not None and asking.readout == "auto":
        raise InputError(
            f"{experiment.name} lets the first answers decide how answers are read; set "
            "asking.readout=text, or p_yes"
        )
    names = Names()
    heard = list[Turn]()
    schedule, probe = _planned(experiment, Recorded(card, lambda _: None))
    batches = schedule.next()
    about = _about(schedule)

    def recall(inquiry: Inquiry) -> Answer:
        heard.append(Turn(names(inquiry), inquiry, None, about.get(inquiry.key, {})))
        return Answer("")

    for _ in probe.answer({card.digest: Recorded(card, recall)}, batches):
        yield from heard
        heard.clear()


def turns_of(record: RunRecord, store: Store, folder: Path) -> Iterator[Turn]:
    """All that was asked in a finished run, with what was answered; a judge's part is left out.

    Parameters
    ----------
    record : RunRecord
        Of the run.
    store : Store
        That holds its answers.
    folder : Path
        In which files that its page names are looked for.

    Raises
    ------
    InputError
        The page asks other questions now, or what was seen was drawn by a page.
    """
    if "delivery" in record.layout and record.layout["delivery"]["format"] == "page":
        raise InputError(
            f"{record.experiment} was drawn by a page for {record.observer}, and there are no "
            "images of it"
        )
    experiment = experiment_from_text(record.experiment_toml, record.experiment, folder)
    card = Card.from_dict(record.observer_card)
    names = Names()
    heard = list[Turn]()
    schedule, probe = _planned(experiment, Recorded(card, lambda _: None))
    schedule.begin(record)
    while batches := [one for one in schedule.next() if one.questions[0].observer == card.digest]:
        keys = {question.key for batch in batches for question in batch.questions}
        if store.missing(keys):
            raise InputError(
                f"{record.experiment} with {record.observer} was asked by another version of "
                "psyprobe, whose questions "
                "were others; export it with that one"
            )
        known = store.answers(keys)
        about = _about(schedule)

        def recall(inquiry: Inquiry, known: Any = known, about: Any = about) -> Answer | None:
            reply = known[inquiry.key]["reply"]
            if reply is None:
                return None  # it was not put: too little of its contrast would have arrived
            heard.append(
                Turn(names(inquiry), inquiry, Answer.from_dict(reply), about.get(inquiry.key, {}))
            )
            return heard[-1].answer

        for answered in probe.answer({card.digest: Recorded(card, recall)}, batches):
            kept = known[answered.question.key]
            resized = any(
                kept[name] != value for name, value in answered.answer.items() if name != "reply"
            )
            yield from (replace(turn, resized=resized) for turn in heard)
            heard.clear()
        schedule.tell(known)


def take(replies: Replies, store: Store, *, progress: bool | None = None) -> tuple[int, int]:
    """Put answers that another harness was given into a store, as those of a run.

    Parameters
    ----------
    replies : Replies
        As a bridge reads them.
    store : Store
        In which the run is finished if every question has its answer.
    progress : bool, optional
        Whether to show a bar; by default on a terminal and in a notebook.

    Returns
    -------
    taken, left : int
        Questions that have an answer, and those that have none yet, a judge's among them.
    """
    names = Names()
    experiment = replies.experiment
    card = replies.card
    who = Recorded(card, lambda inquiry: replies.answers.get(names(inquiry)))
    schedule, probe = _planned(experiment, who)
    store.add_contents(schedule.contents())
    record = store.begin_run(schedule.record(store))
    schedule.begin(record)
    mine = {card.digest: who}
    origins = Origins(store, {card.digest: who})
    asked = set[str]()
    with Writer(store) as writer, progress_bar(0, progress, "question") as bar:
        bar.set_description(f"{experiment.name}: {card.name}")
        while batches := schedule.next():
            others = [batch for batch in batches if batch.questions[0].observer != card.digest]
            if others:
                return len(asked), sum(len(batch.questions) for batch in others)
            keys = ask_round(store, probe.answer, mine, origins, batches, bar, writer)
            writer.write()
            asked |= keys
            if left := store.missing(keys):
                return len(asked) - len(left), len(left)
            schedule.tell(store.answers(keys))
    store.finish_run(record, schedule.outcome(), asked)
    return len(asked), 0


def numbers_of(result: xarray.Dataset) -> dict[str, float]:
    """What a result scores, as numbers by name: statistics, and of a CSF the sensitivity at each
    level.

    Empty where nothing can be scored.
    """
    try:
        score = load_probe(result.attrs["probe"]).score(result)[0]
    except PsyprobeError:
        return {}
    found = dict(score.rows()[0].record)
    told = score.to_dict()
    for point in told.get("curve", ()):
        found[f"sensitivity at {point['value']:g} {told['unit']}"] = point["sensitivity"]
    return {name: float(value) for name, value in found.items() if _is_number(value)}


def prompts_of(record: RunRecord) -> dict[str, Prompt]:
    """The wordings of a run in words, by id; none of a benchmark."""
    return {one.id: one for one in map(Prompt.from_dict, record.layout.get("prompts", ()))}


def _planned(experiment: Experiment, who: Recorded) -> tuple[Any, Any]:
    probe = load_probe(check_experiment(experiment).probe)
    if "answer" not in probe.ABILITIES or (
        "asking" in probe.SECTIONS and experiment.asking is None
    ):
        raise InputError(
            f"{experiment.name} asks nothing in words (probe {experiment.probe!r}); take one "
            "that does"
        )
    return probe.plan(experiment, who), probe


def _about(schedule: Any) -> dict[str, dict[str, Any]]:
    """What is told of each trial or item, by the key of its question."""
    trials = [
        {**trial, "alternatives": schedule.task.alternatives}
        for trial in schedule.outcome().get("trials", ())
    ]
    told = [*trials, *getattr(schedule, "named", ())]
    return {
        each["key"]: {name: value for name, value in each.items() if name != "key"} for each in told
    }


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
