"""Units of batches for workers elsewhere: how many batches are a unit, and the loop that gives them
out.

A pool of processes and a cluster differ in how a unit reaches a worker and how its answers come
back, and in nothing else.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

from psyprobe.errors import PsyprobeError
from psyprobe.running.agenda import Agenda
from psyprobe.running.jobs import TimedAnswers
from psyprobe.running.protocol import Answered, Batch

#: Seconds of a unit: a store and a scheduler need some milliseconds for each.
_UNIT_SECONDS = 0.5


@dataclass(eq=False)
class Unit:
    """Batches that are given to a worker together."""

    batches: list[Batch]
    #: How often its worker died over it.
    deaths: int = 0
    #: When it was given to a worker last, by the clock of this process.
    submitted_at: float = 0.0


class Round(ABC):
    """One round of batches that workers elsewhere put to observers.

    Parameters
    ----------
    agenda : Agenda
        What is to be asked.
    worker_count : int
        Number of workers that put one unit each.
    """

    def __init__(self, agenda: Agenda, worker_count: int) -> None:
        self.agenda = agenda
        self.worker_count = worker_count
        #: As units took it; None before the first came back.
        self.seconds_per_batch: float | None = None
        #: The first error; from then on nothing more is given out.
        self.failure: PsyprobeError | None = None

    def take_unit(self, group: str = "") -> Unit | None:
        """Take batches for one worker, of a group if it has some; None at the end.

        Units become smaller towards the end, so that all workers end together.
        """
        size = 1
        if self.seconds_per_batch is not None:
            size = int(_UNIT_SECONDS / max(self.seconds_per_batch, 1e-6))
        size = max(1, min(size, -(-len(self.agenda) // (2 * self.worker_count))))
        batches: list[Batch] = []
        while len(batches) < size and (batch := self.agenda.take(group)) is not None:
            batches.append(batch)
            group = batch.group
        return Unit(batches) if batches else None

    def receive(self, unit: Unit, answers: TimedAnswers) -> list[Answered]:
        """Adjust the size of later units by the time that this one took, and return its answers."""
        seconds = answers.seconds / len(unit.batches)
        if self.seconds_per_batch is not None:
            seconds = 0.7 * self.seconds_per_batch + 0.3 * seconds
        self.seconds_per_batch = seconds
        return answers.answers

    def answers(self) -> Iterator[Answered]:
        """Hand out all batches to workers, and iterate over answers as they come."""
        try:
            while True:
                if self.failure is None:
                    self.give()
                if not self.is_under_way():
                    break
                try:
                    yield from self.collect()
                except PsyprobeError as problem:
                    self.failure = self.failure or problem
            if self.failure is not None:
                raise self.failure
        finally:
            self.cancel()

    @abstractmethod
    def give(self) -> None:
        """Give every idle worker batches to ask."""

    @abstractmethod
    def is_under_way(self) -> bool:
        """Tell whether answers are still to come."""

    @abstractmethod
    def collect(self) -> Iterator[Answered]:
        """Wait a while, iterate over the answers that come, and raise a worker's error."""

    @abstractmethod
    def cancel(self) -> None:
        """Stop all workers that are still at this round."""


def deadly_unit_error(unit: Unit, reason: str) -> PsyprobeError:
    """Build the error about questions over which worker processes died several times."""
    questions = [question for batch in unit.batches for question in batch.questions]
    return PsyprobeError(
        f"a worker died {unit.deaths} times ({reason}) over the same {len(questions)} questions, "
        f"the first of which is {questions[0].key[:12]}; what else was answered is kept: see "
        "whether memory runs out, and run again with fewer workers, a smaller batch or none"
    )
