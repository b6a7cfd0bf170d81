"""Batches are handed out once, whole where an encoder's rounding depends on their company."""

from __future__ import annotations

from psyprobe.files.output import digest
from psyprobe.running.agenda import Agenda
from psyprobe.running.loop import Writer
from psyprobe.running.protocol import Answered, Batch, Question
from psyprobe.running.store import Store


def question(stimulus: int, observer: str = "network") -> Question:
    return Question(digest(stimulus), digest("measures"), digest(observer), "1")


def batch(*stimuli: int, atomic: bool = False, group: str = "") -> Batch:
    questions = [
        question(i, observer) for observer in ("network", "pixels") for i in stimuli
    ]
    return Batch(tuple(questions), None, atomic, group)


def handed_out(
    batches: list[Batch], answered: list[Question]
) -> list[tuple[Question, ...]]:
    with Store(None) as store, Writer(store) as writer:
        store.add(Answered(answer, {"values": [[0.0]]}) for answer in answered)
        return [taken_batch.questions for taken_batch in Agenda(store, batches, writer)]


def test_an_observer_is_asked_all_of_a_batch_of_which_it_lacks_one() -> None:
    atomic_batch = batch(1, 2, 3, atomic=True)
    answered = [question(2), *(question(i, "pixels") for i in (1, 2, 3))]
    assert handed_out([atomic_batch], answered) == [
        tuple(question(i) for i in (1, 2, 3))
    ]


def test_of_other_batches_what_is_missing_is_asked_alone() -> None:
    answered = [question(2), *(question(i, "pixels") for i in (1, 2, 3))]
    assert handed_out([batch(1, 2, 3)], answered) == [(question(1), question(3))]


def test_what_two_batches_share_is_asked_once_and_what_is_answered_not_at_all() -> None:
    first, second, third = batch(1, 2), batch(2, 3), batch(4)
    questions_taken = handed_out(
        [first, second, third], [question(4), question(4, "pixels")]
    )
    assert questions_taken == [first.questions, (question(3), question(3, "pixels"))]


def test_batches_of_one_group_follow_each_other() -> None:
    batches = [batch(i, group="ab"[i % 2]) for i in range(6)]
    stimuli = [
        questions_taken[0].stimulus for questions_taken in handed_out(batches, [])
    ]
    assert stimuli == [digest(i) for i in (0, 2, 4, 1, 3, 5)]
