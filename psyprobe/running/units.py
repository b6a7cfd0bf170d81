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
from psyprobe.running.protocol import Answered, Batch


@dataclass(eq=False)
class Unit:
    """Batches that are given to a worker together."""

    batches: list[Batch]
    #: How often its worker died over it.
    deaths: int = 0

    @property
    def group(self) -> str:
        """The group of its last batch."""
        return self.batches[-1].group


@dataclass
class Pace:
    """How long a batch takes, measured as units come back, and so how many batches are a unit."""

    seconds_per_unit: float
    #: Of a batch; None before the first unit came back.
    seconds_per_batch: float | None = None

    def learn(self, seconds: float, unit: Unit) -> None:
        """Take the time of a unit into account."""
        seconds_per_batch = seconds / len(unit.batches)
        if self.seconds_per_batch is not None:
            seconds_per_batch = 0.7 * self.seconds_per_batch + 0.3 * seconds_per_batch
        self.seconds_per_batch = seconds_per_batch

    def take_unit(
        self, agenda: Agenda, worker_count: int, group: str = ""
    ) -> Unit | None:
        """Take a unit for one of several workers from an agenda; None if it is empty.

        Units become smaller towards the end, so that all workers end together.
        """
        size = 1
        if self.seconds_per_batch is not None:
            size = int(self.seconds_per_unit / max(self.seconds_per_batch, 1e-6))
        size = max(1, min(size, -(-len(agenda) // (2 * worker_count))))
        batches: list[Batch] = []
        while len(batches) < size and (batch := agenda.take(group)) is not None:
            batches.append(batch)
            group = batch.group
        return Unit(batches) if batches else None


class Round(ABC):
    """One round of batches that workers elsewhere put to observers.

    Parameters
    ----------
    agenda : Agenda
        What is to be asked.
    seconds_per_unit : float
        Length of a unit.
    """

    def __init__(self, agenda: Agenda, seconds_per_unit: float) -> None:
        self.agenda = agenda
        self.pace = Pace(seconds_per_unit)
        #: The first error; from then on nothing more is given out.
        self.failure: PsyprobeError | None = None

    def answers(self) -> Iterator[Answered]:
        """Give out all units and yield their answers as they come; an error is raised at the
        end.
        """
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
        """See that every worker has something to do."""

    @abstractmethod
    def is_under_way(self) -> bool:
        """Whether there are answers to wait for."""

    @abstractmethod
    def collect(self) -> Iterator[Answered]:
        """Wait for a while and yield the answers that come; raise what went wrong with a unit."""

    @abstractmethod
    def cancel(self) -> None:
        """Take back what is under way."""


def deadly_unit_error(unit: Unit, reason: str) -> PsyprobeError:
    """Return the error of a unit that kills its workers."""
    questions = [question for batch in unit.batches for question in batch.questions]
    return PsyprobeError(
        f"a worker died {unit.deaths} times ({reason}) over the same {len(questions)} questions, "
        f"the first of which is {questions[0].key[:12]}; what else was answered is kept: see "
        "whether memory runs out, and run again with fewer workers, a smaller batch or none"
    )
