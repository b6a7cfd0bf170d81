"""One person before a list of tasks: what the page is told, and what it may do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from psyprobe.errors import InputError, unknown_name
from psyprobe.files.terminal import printable
from psyprobe.tasks.mvp_construction.set_files import json_lines
from psyprobe.tasks.review import mvp_tasks, r_bench_tasks
from psyprobe.tasks.review.worklist import Journal, Task, people


@dataclass(frozen=True)
class Worklist:
    """One person before a list of tasks."""

    #: Of the page.
    title: str
    #: In the order in which they are shown.
    tasks: Sequence[Task]
    #: Of the person.
    journal: Journal
    #: What stands below the tasks, such as the agreement with others; called whenever the page asks.
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


_TITLES = {"review": "Review of questions", "answer": "Questions to answer", "label": "Labels to check"}


def worklist(folder: str | Path, kind: str, person: str, questions: str | Path | None = None) -> Worklist:
    """A person before the tasks of a set.

    Parameters
    ----------
    folder : str or Path
        Of the set.
    kind : {"review", "answer", "label"}
        What is to be done: accept or reject candidate questions, answer questions, or check labels.
    person : str
        Who sits down; what they decided before is kept.
    questions : str or Path, optional
        The question file to answer.

    Raises
    ------
    InputError
        There is nothing to decide, an image is missing, or the name cannot be a file's.
    """
    if kind not in _TITLES:
        raise unknown_name("kind of work", kind, _TITLES)
    journal = Journal(folder, kind, person)
    if kind == "review":
        tasks = mvp_tasks.review_tasks(folder)
        return Worklist(_TITLES[kind], tasks, journal, lambda: _agreement(folder, tasks, person))
    if kind == "label":
        return Worklist(_TITLES[kind], r_bench_tasks.label_tasks(folder), journal)
    return Worklist(_TITLES[kind], _to_answer(folder, questions, person), journal)


def answers_of(folder: str | Path, questions: str | Path | None = None) -> dict[str, tuple[int, int, str, str]]:
    """What people answered so far, as prediction files hold it.

    By name: how many are answered, how many are not, the text of the prediction file, and its ending.
    """
    found = {}
    for name in people(folder, "answer"):
        tasks = _to_answer(folder, questions, name)
        rows: list[dict[str, Any]] = [*mvp_tasks.predictions(Journal(folder, "answer", name), tasks)]
        text, suffix = json_lines(rows), ".jsonl"
        if _is_r_bench(folder):
            text, suffix = r_bench_tasks.answer_csv(rows), ".csv"
        found[name] = (len(rows), len(tasks) - len(rows), text, suffix)
    return found


def _agreement(folder: str | Path, tasks: list[Task], person: str) -> str:
    found = mvp_tasks.agreements(mvp_tasks.verdicts_of(folder, tasks))
    return "\n".join(str(each) for each in found if person in (each.first, each.second))


def _to_answer(folder: str | Path, questions: str | Path | None, person: str) -> list[Task]:
    if _is_r_bench(folder):
        return r_bench_tasks.answer_tasks(folder, person)
    return mvp_tasks.answer_tasks(folder, questions, person)


def _is_r_bench(folder: str | Path) -> bool:
    return (Path(folder) / "items.csv").is_file()
