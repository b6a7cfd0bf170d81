"""One person before a list of tasks: what the page is told, and what it may do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from psyprobe.errors import InputError
from psyprobe.files.terminal import printable
from psyprobe.tasks.review.journal import Journal
from psyprobe.tasks.review.tasks import Task


@dataclass(frozen=True)
class Sitting:
    """One person before a list of tasks.

    Parameters
    ----------
    title : str
        Of the page.
    tasks : sequence of Task
        In the order in which they are shown.
    journal : Journal
        Of the person.
    note : callable
        What stands below the tasks, such as the agreement with others; called whenever the page asks.
    """

    title: str
    tasks: Sequence[Task]
    journal: Journal
    note: Callable[[], str] = str

    def state(self) -> dict[str, Any]:
        """What is decided, as plain values for the page."""
        found = [self.journal.decision(task) for task in self.tasks]
        return {
            "title": printable(self.title),
            "person": self.journal.person,
            "decided": [None if each is None else each.value for each in found],
            "note": printable(self.note()),
        }

    def task(self, number: int) -> dict[str, Any]:
        """One task with what was decided on it, as plain values for the page."""
        task = self.tasks[self._checked(number)]
        decision = self.journal.decision(task)
        told = {**task.to_dict(), "number": number, "decided": None if decision is None else decision.value}
        if decision is not None and decision.text:
            told["draft"] = decision.text
            if task.locked:  # to agree is to agree with what stood there first
                told["facts"] = [*told["facts"], ["Before it was edited", printable(task.draft or "")]]
        return told

    def image(self, number: int, which: int) -> bytes:
        """The file of an image of a task."""
        images = self.tasks[self._checked(number)].images
        if not 0 <= which < len(images):
            raise InputError(f"there is no image {which}")
        return images[which][1].read_bytes()

    def decide(self, number: object, value: object, text: object) -> dict[str, Any]:
        """Write down a decision and tell the new state."""
        if not isinstance(value, str) or not isinstance(text, str):
            raise InputError("a decision has a value and a text")
        self.journal.decide(self.tasks[self._checked(number)], value, text)
        return self.state()

    def _checked(self, number: object) -> int:
        if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number < len(self.tasks):
            raise InputError(f"there is no task {number!r}; they are numbered 0 to {len(self.tasks) - 1}")
        return number
