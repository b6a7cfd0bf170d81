"""What a person decided, as it came: one file of JSON lines a person, to which lines are only ever added."""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from psyprobe.errors import InputError, StoreError
from psyprobe.tasks.review.tasks import Task

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}")


@dataclass(frozen=True)
class Decision:
    """The last word of a person on a task.

    Attributes
    ----------
    value : str
        Of the choice.
    text : str
        Of the field; empty where the choice takes none.
    """

    value: str
    text: str = ""


class Journal:
    """The decisions of one person in one kind of sitting.

    Parameters
    ----------
    folder : str or Path
        Of the set; the file lies in its folder "people".
    kind : str
        Of the sitting: "review", "answer" or "label".
    person : str
        A name that can be a file's.

    Raises
    ------
    InputError
        The name has other characters than letters, digits, - and _.
    StoreError
        The file cannot be read.
    """

    def __init__(self, folder: str | Path, kind: str, person: str) -> None:
        if not _NAME.fullmatch(person):
            raise InputError(f"the name {person!r} cannot be a file's; take up to 40 letters, digits, - and _")
        self.person = person
        self.path = Path(folder) / "people" / f"{kind}-{person}.jsonl"
        self._lock = threading.Lock()
        self._decisions: dict[str, Decision] = {}
        self._torn = False
        self._read()

    def decision(self, task: Task) -> Decision | None:
        """What was decided last on a task as it is now, or None.

        Parameters
        ----------
        task : Task
            A task whose question or images changed since counts as another one.

        Returns
        -------
        Decision or None
        """
        return self._decisions.get(task.content)

    def decide(self, task: Task, value: str, text: str = "") -> Decision:
        """Write down a decision; it is on the disk when this returns.

        Parameters
        ----------
        task : Task
            On what.
        value, text : str
            As `Task.checked` takes them.

        Returns
        -------
        Decision

        Raises
        ------
        InputError
            It is no decision on this task.
        StoreError
            The file cannot be written.
        """
        decision = Decision(value, task.checked(value, text))
        row = {"task": task.name, "content": task.content, **vars(decision), "at": datetime.now(UTC).isoformat()}
        with self._lock:
            self._append(json.dumps(row, ensure_ascii=False) + "\n")
            self._decisions[task.content] = decision
        return decision

    def _append(self, line: str) -> None:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("ab", buffering=0) as file:
                # What a kill left of a line must not run into this one.
                file.write((("\n" if self._torn else "") + line).encode())
                os.fsync(file.fileno())
        except OSError as error:
            raise StoreError(f"{self.path} cannot be written: {error.strerror}; free the place and go on") from error
        self._torn = False

    def _read(self) -> None:
        try:
            raw = self.path.read_bytes() if self.path.exists() else b""
        except OSError as error:
            raise StoreError(f"{self.path} cannot be read: {error.strerror}") from error
        self._torn = bool(raw) and not raw.endswith(b"\n")
        for line in raw.split(b"\n"):
            try:
                row = json.loads(line)
                self._decisions[row["content"]] = Decision(row["value"], row["text"])
            except (ValueError, KeyError, TypeError):
                continue  # a torn line: its decision was never acknowledged


def people(folder: str | Path, kind: str) -> list[str]:
    """Who has decided in a kind of sitting, by name.

    Parameters
    ----------
    folder : str or Path
        Of the set.
    kind : str
        Of the sitting.

    Returns
    -------
    list of str
    """
    return sorted(path.stem.partition("-")[2] for path in (Path(folder) / "people").glob(f"{kind}-*.jsonl"))


def decisions(journal: Journal, tasks: Iterable[Task]) -> dict[str, Decision]:
    """What a person has decided, by name of the task.

    Parameters
    ----------
    journal : Journal
        Of the person.
    tasks : iterable of Task
        As they are now.

    Returns
    -------
    dict of str to Decision
    """
    found = {task.name: journal.decision(task) for task in tasks}
    return {name: decision for name, decision in found.items() if decision is not None}
