"""What people decided, one file of JSON lines each, to which lines are only ever added; and how far they agree.

References
----------
Cohen (1960). A coefficient of agreement for nominal scales. Educational and Psychological Measurement 20.
"""

from __future__ import annotations

import json
import os
import re
import threading
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from psyprobe.errors import InputError, StoreError
from psyprobe.tasks.review.worklist import Task

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}")


@dataclass(frozen=True)
class Decision:
    """The last word of a person on a task."""

    #: Of the choice.
    value: str
    #: Of the field; empty where the choice takes none.
    text: str = ""


class Journal:
    """The decisions of one person on one kind of worklist.

    Parameters
    ----------
    folder : str or Path
        Of the set; the file lies in its folder "people".
    kind : str
        Of the worklist: "review", "answer" or "label".
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
        """What was decided last on a task as it is now, or None."""
        return self._decisions.get(task.content)

    def decide(self, task: Task, value: str, text: str = "") -> Decision:
        """Write down a decision; it is on the disk when this returns."""
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
    """Who has decided in a kind of worklist, by name."""
    return sorted(path.stem.partition("-")[2] for path in (Path(folder) / "people").glob(f"{kind}-*.jsonl"))


def decisions(journal: Journal, tasks: Iterable[Task]) -> dict[str, Decision]:
    """What a person has decided, by name of the task."""
    found = {task.name: journal.decision(task) for task in tasks}
    return {name: decision for name, decision in found.items() if decision is not None}


@dataclass(frozen=True)
class Agreement:
    """How two people decided on what both have decided."""

    #: Their names.
    first: str
    second: str
    #: Tasks that both have decided.
    both: int
    #: Of these, decided alike.
    equal: int
    #: Cohen's: agreement beyond what their shares of each verdict bring about by chance, from -1 to 1. None where
    #: nothing could be beyond it: nobody decided, or both always the same.
    kappa: float | None

    def to_dict(self) -> dict[str, Any]:
        """The agreement as plain values that JSON can hold."""
        return dict(vars(self))

    def __str__(self) -> str:
        if not self.both:
            return f"{self.first} and {self.second} have decided on nothing in common yet"
        kappa = "undefined, both said the same of all" if self.kappa is None else f"{self.kappa:.2f}"
        share = f"{self.equal} of {self.both} alike ({100 * self.equal / self.both:.1f} %)"
        return f"{self.first} and {self.second}: {share}, Cohen's kappa {kappa}"


def agreement(first: str, second: str, ones: Mapping[str, str], others: Mapping[str, str]) -> Agreement:
    """How far two people agree.

    Examples
    --------
    >>> one, other = {"a": "yes", "b": "no", "c": "no"}, {"a": "yes", "b": "yes", "d": "no"}
    >>> print(agreement("Ann", "Bob", one, other))
    Ann and Bob: 1 of 2 alike (50.0 %), Cohen's kappa 0.00
    """
    both = [name for name in ones if name in others]
    equal = sum(ones[name] == others[name] for name in both)
    mine, theirs = (Counter(said[name] for name in both) for said in (ones, others))
    # In whole numbers: "by chance" times n squared.
    chance, certain = sum(mine[value] * theirs[value] for value in mine), len(both) ** 2
    kappa = None if chance == certain else (equal * len(both) - chance) / (certain - chance)
    return Agreement(first, second, len(both), equal, kappa)


def accepted_by_both(verdicts: Mapping[str, Mapping[str, str]], accept: str = "accept") -> set[str]:
    """What at least two people have decided on and all of them accept.

    Examples
    --------
    >>> sorted(accepted_by_both({"Ann": {"a": "accept", "b": "accept"}, "Bob": {"a": "accept", "b": "reject"}}))
    ['a']
    """
    said: dict[str, list[str]] = {}
    for each in verdicts.values():
        for name, value in each.items():
            said.setdefault(name, []).append(value)
    return {name for name, values in said.items() if len(values) >= 2 and set(values) == {accept}}
