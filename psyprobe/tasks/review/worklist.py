"""The worklists of people who review a set, and the journals of their decisions.

The decisions of a person lie in a file of JSON lines, to which lines are only ever added. They
belong to the set, whose questions they keep or drop; answers to its questions are in a store
(`psyprobe observe`). In a set of MVP-Bench, people accept or reject candidate questions; in
R-Bench, they check keys (agree, unlock and edit, report). Those of R-Bench are interleaved, so that
nobody gets into a rut: multiple choice, short answer, caption, and again. An edited answer has at
most 10 words, an edited caption at most 40.

References
----------
Li et al. (2024). R-Bench: are your large multimodal models robust to real-world corruptions? arXiv
2410.05474.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import threading
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from psyprobe.errors import InputError, StoreError
from psyprobe.files.images import file_digest, read_image, same_pixels
from psyprobe.files.json_types import JsonObject
from psyprobe.files.output import digest, write_text
from psyprobe.files.parsing import packaged_text, parse_json
from psyprobe.files.terminal import printable
from psyprobe.tasks.agreement import agreements
from psyprobe.tasks.mvp_bench.questions import (
    read_question_lines,
    read_questions,
    split_choices,
)
from psyprobe.tasks.mvp_construction.steps import json_lines
from psyprobe.tasks.r_bench.items import ImageSet, lettered, read_set

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}")
CANDIDATES = "questions.json"
KEPT = "kept.json"
#: Longest answer, in words.
MOST_WORDS = {"VQA": 10, "CAP": 40}
_PAGE = tomllib.loads(packaged_text("psyprobe.tasks.review", "choices.toml"))


@dataclass(frozen=True)
class Choice:
    """A decision that a person can make."""

    #: Key of the keyboard.
    key: str
    #: The decision, as it is written down.
    value: str
    #: Label of the button.
    label: str
    #: Whether the content of the text field is written down too.
    with_text: bool = False
    #: The reason for the decision, if any; written down as its text.
    reason: str = ""


@dataclass(frozen=True)
class Task:
    """A question or key to decide on."""

    #: Name, unique in a worklist.
    name: str
    #: Kind of task.
    heading: str
    #: Captions and files, in the order of display.
    images: tuple[tuple[str, Path], ...]
    #: The question; may have several lines.
    text: str
    #: The possible decisions.
    choices: tuple[Choice, ...]
    #: Names and texts of facts that the decision needs, such as the right answer.
    facts: tuple[tuple[str, str], ...] = ()
    #: First content of the text field; None for no field.
    draft: str | None = None
    #: Most words in the field.
    most_words: int = 0

    @property
    def kind(self) -> str:
        """The kind of a candidate question, as its heading names it."""
        return self.heading.split(" · ")[1]

    @cached_property
    def content(self) -> str:
        """The digest of all that the page shows, by which a decision is found again."""
        return digest([self.to_dict(), [file_digest(path) for _, path in self.images]])

    def to_dict(self) -> JsonObject:
        """Return what the page needs of the task, as JSON values."""
        return {
            "name": self.name,
            "heading": printable(self.heading),
            "images": [printable(caption) for caption, _ in self.images],
            "text": printable(self.text),
            "facts": [[printable(name), printable(text)] for name, text in self.facts],
            "choices": [vars(choice) for choice in self.choices],
            "draft": self.draft,
            # A person must unlock the field before it can be changed.
            "locked": self.draft is not None,
            "most_words": self.most_words,
        }

    def check_text(self, value: str, text: str) -> str:
        """Check a decision and its text, and return the text to record.

        Empty if the choice takes none; its reason if it has reasons, by default the last.
        """
        choices = [choice for choice in self.choices if choice.value == value]
        if not choices:
            values = dict.fromkeys(choice.value for choice in self.choices)
            raise InputError(f"{value!r} is none of {', '.join(values)}")
        reasons = [choice.reason for choice in choices if choice.reason]
        if reasons:
            if text and text not in reasons:
                raise InputError(
                    f"the reason {text!r:.60} is none of {', '.join(reasons)}"
                )
            return text or reasons[-1]
        if not choices[0].with_text:
            return ""
        words = len(text.split())
        if not 1 <= words <= self.most_words:
            raise InputError(
                f"the text has {words} words; write 1 to {self.most_words}"
            )
        return " ".join(text.split())


@dataclass(frozen=True)
class Decision:
    """The last decision of a person on a task."""

    #: Value of the choice.
    value: str
    #: Content of the field, or the reason; empty if the choice takes none.
    text: str = ""


class Journal:
    """The decisions of one person on one kind of worklist.

    Parameters
    ----------
    folder : str or Path
        Folder of the set; the file lies in its folder "people".
    kind : str
        Kind of the worklist: "review" or "label".
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
            raise InputError(
                f"the name {person!r} cannot be a file's; take up to 40 letters, digits, - and _"
            )
        self.person = person
        self.path = Path(folder) / "people" / f"{kind}-{person}.jsonl"
        self._lock = threading.Lock()
        self._decisions: dict[str, Decision] = {}
        self._size = 0
        self._torn = False
        self._read()

    def _read(self) -> None:
        """Read the recorded decisions again if lines were added."""
        try:
            size = self.path.stat().st_size if self.path.exists() else 0
            raw = self.path.read_bytes() if size != self._size else None
        except OSError as error:
            raise StoreError(f"{self.path} cannot be read: {error.strerror}") from error
        if raw is None:
            return
        self._size = len(raw)
        self._torn = not raw.endswith(b"\n")
        for line in raw.split(b"\n"):
            # A line that is torn or no decision was never acknowledged.
            with contextlib.suppress(InputError, KeyError, TypeError):
                row = parse_json(line, str(self.path))
                if isinstance(row["value"], str) and isinstance(row["text"], str):
                    self._decisions[row["content"]] = Decision(
                        row["value"], row["text"]
                    )

    def decision(self, task: Task) -> Decision | None:
        """Return the last decision on a task in its present form, or None."""
        with self._lock:
            self._read()
        return self._decisions.get(task.content)

    def decide(self, task: Task, value: str, text: str = "") -> None:
        """Record a decision on a task; it is on the disk when this returns."""
        decision = Decision(value, task.check_text(value, text))
        row = {
            "task": task.name,
            "content": task.content,
            **vars(decision),
            "at": datetime.now(UTC).isoformat(),
        }
        line = json.dumps(row, ensure_ascii=False) + "\n"
        with self._lock:
            self._read()
            try:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                # Buffered: unlike a bare write, which on a full disk writes half a line and calls
                # it done, flush fails.
                with self.path.open("ab") as file:
                    # What a kill left of a line must not run into this one.
                    file.write((("\n" if self._torn else "") + line).encode())
                    file.flush()
                    os.fsync(file.fileno())
            except OSError as error:
                why = f"{error.strerror}; free the place and go on"
                raise StoreError(f"{self.path} cannot be written: {why}") from error
            self._read()


def decisions(
    folder: str | Path, kind: str, tasks: Sequence[Task]
) -> dict[str, dict[str, Decision]]:
    """Read the decisions of a kind of review, by person and by name of the task."""
    paths = (Path(folder) / "people").glob(f"{kind}-*.jsonl")
    people: dict[str, dict[str, Decision]] = {}
    for person in sorted(path.stem.partition("-")[2] for path in paths):
        journal = Journal(folder, kind, person)
        people[person] = {
            task.name: decision
            for task in tasks
            if (decision := journal.decision(task)) is not None
        }
    return people


def accepted_by_both(verdicts: Mapping[str, Mapping[str, str]]) -> set[str]:
    """List the tasks that two or more people decided on and all of them accepted.

    Examples
    --------
    >>> ann, bob = {"a": "accept", "b": "accept"}, {"a": "accept", "b": "reject"}
    >>> sorted(accepted_by_both({"Ann": ann, "Bob": bob}))
    ['a']
    """
    table = pd.DataFrame(verdicts)
    decided = table.notna().sum(axis=1)
    accepted = (table == "accept").sum(axis=1)
    return set(table.index[(decided >= 2) & (accepted == decided)])


#: Decisions on a candidate question, and on a key.
_VERDICTS = tuple(Choice(**row) for row in _PAGE["verdicts"])
_LABELS = tuple(Choice(**row) for row in _PAGE["labels"])


@dataclass(frozen=True)
class Worklist:
    """A person's list of tasks, with their journal."""

    #: Title of the page.
    title: str
    #: Tasks in the order of display.
    tasks: Sequence[Task]
    #: The person's decisions.
    journal: Journal
    #: Makes the note below the tasks, such as the agreement with others, for each request.
    note: Callable[[], str] = str

    def state(self) -> JsonObject:
        """Return the decisions on all tasks, as JSON values for the page."""
        decisions = map(self.journal.decision, self.tasks)
        return {
            "title": printable(self.title),
            "person": self.journal.person,
            "decided": [decision and decision.value for decision in decisions],
            "note": printable(self.note()),
        }

    def task(self, number: int) -> JsonObject:
        """Return a task with its decision, as JSON values for the page."""
        task = self._task(number)
        fields = {**task.to_dict(), "number": number, "decided": None, "reason": ""}
        if task.choices == _VERDICTS and _identical([path for _, path in task.images]):
            fields["warning"] = "The two images are identical, pixel for pixel."
        decision = self.journal.decision(task)
        if decision is None:
            return fields
        fields["decided"] = decision.value
        if any(choice.reason == decision.text for choice in task.choices):
            fields["reason"] = decision.text
        elif decision.text:
            fields["draft"] = decision.text
            # "agree" refers to the first text.
            fields["facts"] += [["Before it was edited", printable(task.draft or "")]]
        return fields

    def image(self, number: int, index: int) -> bytes:
        """Read the bytes of one of a task's image files."""
        images = self._task(number).images
        if not 0 <= index < len(images):
            raise InputError(f"there is no image {index}")
        return images[index][1].read_bytes()

    def decide(self, number: object, value: object, text: object) -> JsonObject:
        """Record a decision on a task, and return the new state."""
        if not isinstance(value, str) or not isinstance(text, str):
            raise InputError("a decision has a value and a text")
        self.journal.decide(self._task(number), value, text)
        return self.state()

    def _task(self, number: object) -> Task:
        """Return a task by its number, refusing any other value."""
        count = len(self.tasks)
        if type(number) is not int or not 0 <= number < count:
            raise InputError(
                f"there is no task {number!r}; they are numbered 0 to {count - 1}"
            )
        return self.tasks[number]


def worklist(folder: str | Path, kind: str, person: str) -> Worklist:
    """Build a person's list of review tasks of a set.

    Parameters
    ----------
    folder : str or Path
        Folder of the set.
    kind : {"review", "label"}
        Whether to accept or reject candidate questions, or to check labels.
    person : str
        Name of the person, whose earlier decisions stay.

    Raises
    ------
    InputError
        There is nothing to decide, an image is missing, or the name cannot be a file's.
    """
    journal = Journal(folder, kind, person)
    if kind != "review":
        return Worklist("Labels to check", label_tasks(folder), journal)
    tasks = review_tasks(folder)

    def note() -> str:
        pairs = agreements(verdicts_of(folder, tasks))
        return "\n".join(
            str(pair) for pair in pairs if person in (pair.first, pair.second)
        )

    return Worklist("Review of questions", tasks, journal, note)


def _option_text(key: str, options: Sequence[str], default: str) -> str:
    """Return a letter with its option, or a default if there is no such option."""
    index = "ABCDE".find(key)
    return f"{key}. {options[index]}" if 0 <= index < len(options) else default


def review_tasks(folder: str | Path) -> list[Task]:
    """Build the review tasks of an MVP-Bench set: candidate questions to accept or reject.

    They go by image pair. A yes/no question is one task, with both images: it is kept on both or on
    neither.
    """
    set_folder = Path(folder)
    table = read_questions(set_folder / CANDIDATES)
    # A multiple choice is a task by itself; the rows of a yes/no question share pair, level and
    # text.
    keys = ["pair", "task", "level", "question"]
    single_ids = table["question_id"].where(table["task"] != "yes_no", "")
    tasks = []
    for group, group_rows in table.groupby([*keys, single_ids], sort=False):
        pair, task, level, question, _ = group
        rows = group_rows.to_dict("records")
        options = split_choices(question)[1]
        facts = []
        images = []
        for row in rows:
            kind = _PAGE["captions"][row["kind"]]
            fact = "Right" if len(rows) == 1 else f"Right for {kind}"
            facts.append((fact, _option_text(row["answer"], options, row["answer"])))
            images.append((kind.capitalize(), _path_inside(set_folder, row["image"])))
        tasks.append(
            Task(
                name=" ".join(row["question_id"] for row in rows),
                heading=f"Pair {pair} · {_PAGE['headings'][task]} · {level} level",
                images=tuple(images),
                text=question,
                facts=tuple(facts),
                choices=_VERDICTS,
            )
        )
    return tasks


def verdicts_of(folder: str | Path, tasks: list[Task]) -> dict[str, dict[str, str]]:
    """Read the verdicts of each annotator, by name of the task."""
    return {
        person: {name: decision.value for name, decision in person_decisions.items()}
        for person, person_decisions in decisions(folder, "review", tasks).items()
    }


def write_kept(folder: str | Path, verdicts: Mapping[str, Mapping[str, str]]) -> int:
    """Write the questions that two or more people accepted and none rejected."""
    names = {name for task in accepted_by_both(verdicts) for name in task.split(" ")}
    lines = read_question_lines(Path(folder) / CANDIDATES)
    rows = [row for _, row in lines if str(row["question_id"]) in names]
    write_text(Path(folder) / KEPT, json_lines(rows))
    return len(rows)


def _identical(paths: Sequence[Path]) -> bool:
    """Tell whether the images of a pair, in two files or side by side in one, are alike."""
    if len(paths) == 2:
        return same_pixels(*paths)
    try:
        image = read_image(paths[0])
    except InputError:
        return False
    half = image.shape[1] // 2
    return image.shape[1] % 2 == 0 and bool(
        np.array_equal(image[:, :half], image[:, half:])
    )


def _path_inside(folder: Path, name: str) -> Path:
    """Return the path of an image, refusing one outside the folder or missing."""
    path = folder / name
    if not path.resolve().is_relative_to(folder.resolve()):
        raise InputError(
            f"image {name!r} leads out of the folder {folder}; give a path inside it"
        )
    if not path.is_file():
        raise InputError(
            f"image {path} is missing; give the folder that holds the images"
        )
    return path


def label_tasks(folder: str | Path) -> list[Task]:
    """Build the review tasks of an R-Bench set: answer keys to check against images.

    Multiple choice is agreed with or reported; the key of a short answer and the first caption can
    be unlocked and edited too. The order is random, and the kinds take turns as long as there are
    some of each.
    """
    images = read_set(folder)
    generator = np.random.default_rng(0)
    shuffled = []
    for _, group in images.items.groupby("task", sort=True):
        rows = group.to_dict("records")
        shuffled.append([rows[index] for index in generator.permutation(len(rows))])
    turns = zip_longest(*shuffled)
    return [
        _build_label_task(images, row)
        for turn in turns
        for row in turn
        if row is not None
    ]


def label_table(folder: str | Path) -> pd.DataFrame:
    """Build a table of the decisions on a set's answer keys.

    Columns are annotator, name, decision ("agree", "edit" or "report") and text (of an edited key).
    """
    people = decisions(folder, "label", label_tasks(folder))
    rows = [
        (person, name, decision.value, decision.text)
        for person, person_decisions in people.items()
        for name, decision in person_decisions.items()
    ]
    return pd.DataFrame(rows, columns=["annotator", "name", "decision", "text"])


def _build_label_task(images: ImageSet, row: Mapping[Any, Any]) -> Task:
    """Build the review task of labelling an R-Bench item: its texts, choices and answer."""
    task = row["task"]
    key = row["key"]
    options = row["options"]
    draft: str | None = None
    if task == "MCQ":
        choices = tuple(choice for choice in _LABELS if not choice.with_text)
        answer = _option_text(key, options, f"{key}, which is none of the options")
        facts: tuple[tuple[str, str], ...] = (("Right", answer),)
    else:
        choices = _LABELS
        draft, *captions = key if task == "CAP" else [key]
        facts = tuple(("Also", caption) for caption in captions)
    return Task(
        name=row["name"],
        heading=_PAGE["headings"][task],
        images=(("Image", images.path("ref", row)),),
        text="\n".join(filter(None, [row["question"], lettered(options)])),
        choices=choices,
        facts=facts,
        draft=draft,
        most_words=MOST_WORDS.get(task, 0),
    )
