"""What people are shown and asked, one thing at a time; what they decided; and how far they agree.

Decisions lie in one file of JSON lines each, to which lines are only ever added.

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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Any

from psyprobe.analysis.score import Recorded
from psyprobe.errors import InputError, StoreError
from psyprobe.files.digest import digest
from psyprobe.files.images import file_digest
from psyprobe.files.terminal import printable

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}")


@dataclass(frozen=True)
class Choice:
    """A decision."""

    #: The key of the keyboard that makes it.
    key: str
    #: As it is written down.
    value: str
    #: On its button.
    label: str
    #: Whether the text of the field belongs to it.
    with_text: bool = False


@dataclass(frozen=True)
class Task:
    """One thing to decide."""

    #: Unique among those of a worklist.
    name: str
    #: What kind of thing it is.
    heading: str
    #: Captions and files, in the order in which they are shown.
    images: tuple[tuple[str, Path], ...]
    #: The question; may have several lines.
    text: str
    #: The decisions.
    choices: tuple[Choice, ...]
    #: What to know for the decision, such as the right answer: names and texts.
    facts: tuple[tuple[str, str], ...] = ()
    #: What the text field holds at first; None for no field.
    draft: str | None = None
    #: Whether the field must be unlocked before it can be changed.
    locked: bool = False
    #: That the field may hold.
    most_words: int = 0

    @cached_property
    def content(self) -> str:
        """Digest of all that is shown: a decision about something else is no decision about this."""
        return digest([self.to_dict(), [file_digest(path) for _, path in self.images]])

    def to_dict(self) -> dict[str, Any]:
        """What the page needs, as plain values; control characters are made visible."""
        return {
            "name": self.name,
            "heading": printable(self.heading),
            "images": [printable(caption) for caption, _ in self.images],
            "text": printable(self.text),
            "facts": [[printable(name), printable(text)] for name, text in self.facts],
            "choices": [vars(choice) for choice in self.choices],
            "draft": self.draft,
            "locked": self.locked,
            "most_words": self.most_words,
        }

    def checked(self, value: str, text: str) -> str:
        """The text that belongs to a decision, if the decision can be made.

        Empty where the choice takes none.
        """
        choice = next((each for each in self.choices if each.value == value), None)
        if choice is None:
            raise InputError(f"{value!r} is none of {', '.join(each.value for each in self.choices)}")
        if not choice.with_text:
            return ""
        words = len(text.split())
        if not 1 <= words <= self.most_words:
            raise InputError(f"the text has {words} words; write 1 to {self.most_words}")
        return " ".join(text.split())


def check_tasks(tasks: list[Task]) -> list[Task]:
    """Tasks for one worklist, each of which can be told from the others."""
    if not tasks:
        raise InputError("there is nothing to decide; build the set first, or give another one")
    names = [task.name for task in tasks]
    if len(set(names)) < len(names):
        raise InputError(f"two tasks are called {next(n for n in names if names.count(n) > 1)!r}; give each a name")
    return tasks


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

    def decision(self, task: Task) -> Decision | None:
        """What was decided last on a task as it is now, or None."""
        return self._decisions.get(task.content)

    def decide(self, task: Task, value: str, text: str = "") -> Decision:
        """Write down a decision; it is on the disk when this returns."""
        decision = Decision(value, task.checked(value, text))
        row = {"task": task.name, "content": task.content, **vars(decision), "at": datetime.now(UTC).isoformat()}
        line = json.dumps(row, ensure_ascii=False) + "\n"
        with self._lock:
            try:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                with self.path.open("ab", buffering=0) as file:
                    # What a kill left of a line must not run into this one.
                    file.write((("\n" if self._torn else "") + line).encode())
                    os.fsync(file.fileno())
            except OSError as error:
                why = f"{error.strerror}; free the place and go on"
                raise StoreError(f"{self.path} cannot be written: {why}") from error
            self._torn, self._decisions[task.content] = False, decision
        return decision


def decisions(folder: str | Path, kind: str, tasks: Sequence[Task]) -> dict[str, dict[str, Decision]]:
    """What was decided in a kind of worklist, by person and by name of the task."""
    people = sorted(path.stem.partition("-")[2] for path in (Path(folder) / "people").glob(f"{kind}-*.jsonl"))
    journals = {person: Journal(folder, kind, person) for person in people}
    return {
        person: {task.name: found for task in tasks if (found := journal.decision(task)) is not None}
        for person, journal in journals.items()
    }


@dataclass(frozen=True)
class Agreement(Recorded):
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


def agreements(verdicts: Mapping[str, Mapping[str, str]]) -> list[Agreement]:
    """How far each two people agree."""
    pairs = combinations(sorted(verdicts), 2)
    return [agreement(first, second, verdicts[first], verdicts[second]) for first, second in pairs]


def accepted_by_both(verdicts: Mapping[str, Mapping[str, str]]) -> set[str]:
    """What at least two people have decided on and all of them accept.

    Examples
    --------
    >>> sorted(accepted_by_both({"Ann": {"a": "accept", "b": "accept"}, "Bob": {"a": "accept", "b": "reject"}}))
    ['a']
    """
    said = Counter(name for each in verdicts.values() for name in each)
    accepted = Counter(name for each in verdicts.values() for name, value in each.items() if value == "accept")
    return {name for name, count in accepted.items() if count >= 2 and count == said[name]}
