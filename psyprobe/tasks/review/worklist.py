"""What people decide about a set, one thing at a time; what they decided; and their worklists.

Decisions lie in one file of JSON lines each, to which lines are only ever added: they belong to the
set, whose questions are kept or not by them, and answer none of its questions, which is what a
store keeps (`psyprobe observe`). What there is to decide: of a set of MVP-Bench, candidate
questions to accept or reject; of R-Bench, keys to check (agree, unlock and edit, report). R-Bench's
are interleaved, so that nobody gets into a rut: multiple choice, short answer, caption, and again.
An edited answer has at most 10 words, an edited caption at most 40.

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
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from psyprobe.errors import InputError, StoreError
from psyprobe.files.images import file_digest, read_image, same_pixels
from psyprobe.files.output import digest, write_text
from psyprobe.files.parsing import parse_json
from psyprobe.files.terminal import printable
from psyprobe.tasks.agreement import agreements
from psyprobe.tasks.mvp_bench.questions import read_question_lines, read_questions, split_choices
from psyprobe.tasks.mvp_construction.steps import json_lines
from psyprobe.tasks.r_bench.items import ImageSet, read_set

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}")
CANDIDATES = "questions.json"
KEPT = "kept.json"
#: Longest answer, in words.
MOST_WORDS = {"VQA": 10, "CAP": 40}
_TITLES = {"review": "Review of questions", "label": "Labels to check"}
_FOLLOWS = {"N": "natural", "M": "manipulated", "pair": "both, the natural one on the left"}
_HEADINGS = {
    "yes_no": "Yes or no",
    "single_mcq": "One image, multiple choice",
    "cross_mcq": "Both images, multiple choice",
    "MCQ": "Multiple choice",
    "VQA": "Short answer",
    "CAP": "Caption",
}


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
    #: Why, where a decision carries a reason; written down as its text.
    reason: str = ""


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
        """Digest of all that is shown: a decision about something else is no decision about
        this.
        """
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

        Empty where the choice takes none; of one that carries a reason, that reason, the last where
        none is given.
        """
        choices = [choice for choice in self.choices if choice.value == value]
        if not choices:
            known = dict.fromkeys(choice.value for choice in self.choices)
            raise InputError(f"{value!r} is none of {', '.join(known)}")
        reasons = [choice.reason for choice in choices if choice.reason]
        if reasons:
            if text and text not in reasons:
                raise InputError(f"the reason {text!r:.60} is none of {', '.join(reasons)}")
            return text or reasons[-1]
        if not choices[0].with_text:
            return ""
        words = len(text.split())
        if not 1 <= words <= self.most_words:
            raise InputError(f"the text has {words} words; write 1 to {self.most_words}")
        return " ".join(text.split())


@dataclass(frozen=True)
class Decision:
    """The last word of a person on a task."""

    #: Of the choice.
    value: str
    #: Of the field, or the reason; empty where the choice takes none.
    text: str = ""


class Journal:
    """The decisions of one person on one kind of worklist.

    Parameters
    ----------
    folder : str or Path
        Of the set; the file lies in its folder "people".
    kind : str
        Of the worklist: "review" or "label".
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
        """Take over what another page of the same person wrote since: lines are only ever added."""
        try:
            size = self.path.stat().st_size if self.path.exists() else 0
            raw = self.path.read_bytes() if size != self._size else None
        except OSError as error:
            raise StoreError(f"{self.path} cannot be read: {error.strerror}") from error
        if raw is None:
            return
        self._size, self._torn = len(raw), not raw.endswith(b"\n")
        for line in raw.split(b"\n"):
            # A line that is torn or no decision was never acknowledged.
            with contextlib.suppress(InputError, KeyError, TypeError):
                row = parse_json(line, str(self.path))
                if isinstance(row["value"], str) and isinstance(row["text"], str):
                    self._decisions[row["content"]] = Decision(row["value"], row["text"])

    def decision(self, task: Task) -> Decision | None:
        """What was decided last on a task as it is now, or None."""
        with self._lock:
            self._read()
        return self._decisions.get(task.content)

    def decide(self, task: Task, value: str, text: str = "") -> None:
        """Write down a decision; it is on the disk when this returns."""
        decision = Decision(value, task.checked(value, text))
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
    """What was decided in a kind of worklist, by person and by name of the task."""
    people = sorted(
        path.stem.partition("-")[2] for path in (Path(folder) / "people").glob(f"{kind}-*.jsonl")
    )
    journals = {person: Journal(folder, kind, person) for person in people}
    return {
        person: {
            task.name: found for task in tasks if (found := journal.decision(task)) is not None
        }
        for person, journal in journals.items()
    }


def accepted_by_both(verdicts: Mapping[str, Mapping[str, str]]) -> set[str]:
    """What at least two people have decided on and all of them accept.

    Examples
    --------
    >>> sorted(accepted_by_both({"Ann": {"a": "accept", "b": "accept"}, "Bob": {"a": "accept", "b": "reject"}}))
    ['a']
    """
    said = Counter(name for verdict in verdicts.values() for name in verdict)
    accepted = Counter(
        name
        for verdict in verdicts.values()
        for name, value in verdict.items()
        if value == "accept"
    )
    return {name for name, count in accepted.items() if count >= 2 and count == said[name]}


# -- what there is to decide
# -------------------------------------------------------------------------------------------

_VERDICTS = (
    Choice("a", "accept", "Accept"),
    Choice("q", "reject", "Reject: question", reason="the question is unclear or wrong"),
    Choice("w", "reject", "Reject: answer", reason="the answer is not right"),
    Choice("i", "reject", "Reject: image", reason="an image is not fit, or the two do not differ"),
    Choice("b", "reject", "Reject: blind", reason="it is answered without looking"),
    Choice("r", "reject", "Reject: other", reason="another reason"),
)
_AGREE = Choice("a", "agree", "Agree")
_REPORT = Choice("p", "report", "Report a problem")


@dataclass(frozen=True)
class Worklist:
    """One person before a list of tasks."""

    #: Of the page.
    title: str
    #: In the order in which they are shown.
    tasks: Sequence[Task]
    #: Of the person.
    journal: Journal
    #: What stands below the tasks, such as the agreement with others; called whenever the page
    #: asks.
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
        told = {**task.to_dict(), "number": number, "decided": None, "reason": ""}
        if decision is not None:
            told["decided"] = decision.value
            if any(choice.reason == decision.text for choice in task.choices):
                told["reason"] = decision.text
        if task.choices == _VERDICTS and _identical([path for _, path in task.images]):
            told["warning"] = "The two images are identical, pixel for pixel."
        if decision is not None and decision.text and not told["reason"]:
            told["draft"] = decision.text
            if task.locked:  # to agree is to agree with what stood there first
                told["facts"] = [
                    *told["facts"],
                    ["Before it was edited", printable(task.draft or "")],
                ]
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
        if (
            not isinstance(number, int)
            or isinstance(number, bool)
            or not 0 <= number < len(self.tasks)
        ):
            raise InputError(
                f"there is no task {number!r}; they are numbered 0 to {len(self.tasks) - 1}"
            )
        return number


def worklist(folder: str | Path, kind: str, person: str) -> Worklist:
    """A person before the tasks of a set.

    Parameters
    ----------
    folder : str or Path
        Of the set.
    kind : {"review", "label"}
        What is to be done: accept or reject candidate questions, or check labels.
    person : str
        Who sits down; what they decided before is kept.

    Raises
    ------
    InputError
        There is nothing to decide, an image is missing, or the name cannot be a file's.
    """
    journal = Journal(folder, kind, person)
    if kind != "review":
        return Worklist(_TITLES[kind], label_tasks(folder), journal)
    tasks = review_tasks(folder)

    def note() -> str:
        found = agreements(verdicts_of(folder, tasks))
        return "\n".join(str(each) for each in found if person in (each.first, each.second))

    return Worklist(_TITLES[kind], tasks, journal, note)


def is_r_bench(folder: str | Path) -> bool:
    """Whether a set is in the form of R-Bench."""
    return (Path(folder) / "items.csv").is_file()


def _in_full(key: str, options: Sequence[str], otherwise: str) -> str:
    """A letter with its option, if there is such an option."""
    place = "ABCDE".find(key)
    return f"{key}. {options[place]}" if 0 <= place < len(options) else otherwise


# -- MVP-Bench
# -------------------------------------------------------------------------------------------------------


def review_tasks(folder: str | Path) -> list[Task]:
    """The candidate questions of a set, to be accepted or rejected.

    By image pair. A yes/no question is one task, with both images: it is kept on both or on
    neither.
    """
    place = Path(folder)
    table = read_questions(place / CANDIDATES)
    # A multiple choice stands alone; the rows of a yes/no question share pair, level and text.
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in table.to_dict("records"):
        alone = row["question_id"] if row["task"] != "yes_no" else ""
        groups.setdefault(
            (row["pair"], row["task"], row["level"], row["question"], alone), []
        ).append(row)
    tasks = []
    for rows in groups.values():
        first = rows[0]
        options = split_choices(rows[0]["question"])[1]
        names = (
            ["Right"] if len(rows) == 1 else [f"Right for {_FOLLOWS[row['kind']]}" for row in rows]
        )
        answers = [_in_full(row["answer"], options, row["answer"]) for row in rows]
        tasks.append(
            Task(
                name=" ".join(row["question_id"] for row in rows),
                heading=f"Pair {first['pair']} · {_HEADINGS[first['task']]} · {first['level']} "
                "level",
                images=tuple(
                    (_FOLLOWS[row["kind"]].capitalize(), _inside(place, row["image"]))
                    for row in rows
                ),
                text=first["question"],
                facts=tuple(zip(names, answers, strict=True)),
                choices=_VERDICTS,
            )
        )
    return tasks


def verdicts_of(folder: str | Path, tasks: list[Task]) -> dict[str, dict[str, str]]:
    """What each annotator said of each candidate."""
    found = decisions(folder, "review", tasks)
    return {
        person: {name: each.value for name, each in said.items()} for person, said in found.items()
    }


def reasons_of(folder: str | Path, tasks: list[Task]) -> dict[str, dict[str, int]]:
    """How often each annotator rejected for which reason."""
    found = decisions(folder, "review", tasks)
    return {
        person: dict(
            Counter(each.text for each in said.values() if each.value == "reject").most_common()
        )
        for person, said in found.items()
    }


def by_kind(
    tasks: list[Task], verdicts: Mapping[str, Mapping[str, str]]
) -> dict[str, dict[str, dict[str, str]]]:
    """Verdicts by kind of question, which is yes or no, one image or both images."""
    kinds = {task.name: task.heading.split(" · ")[1] for task in tasks}
    return {
        kind: {
            person: {name: value for name, value in said.items() if kinds[name] == kind}
            for person, said in verdicts.items()
        }
        for kind in dict.fromkeys(kinds.values())
    }


def write_kept(folder: str | Path, verdicts: Mapping[str, Mapping[str, str]]) -> int:
    """Write the questions that two or more have judged and all accepted, and count their rows."""
    names = {name for task in accepted_by_both(verdicts) for name in task.split(" ")}
    lines = read_question_lines(Path(folder) / CANDIDATES)
    kept = [row for _, row in lines if str(row["question_id"]) in names]
    write_text(Path(folder) / KEPT, json_lines(kept))
    return len(kept)


def _identical(paths: Sequence[Path]) -> bool:
    """Whether the two images of a pair, or the two halves of one file that holds both, are the same
    pixel for pixel.
    """
    if len(paths) == 2:
        return same_pixels(*paths)
    try:
        image = read_image(paths[0])
    except InputError:
        return False
    half = image.shape[1] // 2
    return image.shape[1] % 2 == 0 and bool(np.array_equal(image[:, :half], image[:, half:]))


def _inside(folder: Path, name: str) -> Path:
    path = folder / name
    if not path.resolve().is_relative_to(folder.resolve()):
        raise InputError(f"image {name!r} leads out of the folder {folder}; give a path inside it")
    if not path.is_file():
        raise InputError(f"image {path} is missing; give the folder that holds the images")
    return path


# -- R-Bench
# ---------------------------------------------------------------------------------------------------------


def label_tasks(folder: str | Path) -> list[Task]:
    """The keys of a set, to be checked against the reference images.

    Multiple choice is agreed with or reported; the key of a short answer and the first caption can
    be unlocked and edited too. In a drawn order in which the tasks take turns as long as there are
    some of each.
    """
    images = read_set(folder)
    random = np.random.default_rng(0)
    found = []
    for _, group in images.items.groupby("task", sort=True):
        rows = group.to_dict("records")
        found += [(turn, rows[place]) for turn, place in enumerate(random.permutation(len(rows)))]
    return [_label_task(images, row) for _, row in sorted(found, key=lambda each: each[0])]


def label_table(folder: str | Path) -> pd.DataFrame:
    """What people made of the keys.

    Columns annotator, name, decision ("agree", "edit" or "report") and text (what an edited key
    says now).
    """
    rows = [
        (person, name, each.value, each.text)
        for person, decided in decisions(folder, "label", label_tasks(folder)).items()
        for name, each in decided.items()
    ]
    return pd.DataFrame(rows, columns=["annotator", "name", "decision", "text"])


def label_counts(table: pd.DataFrame) -> dict[str, dict[str, int]]:
    """How often each annotator decided what."""
    return {
        str(person): {str(value): int(n) for value, n in group["decision"].value_counts().items()}
        for person, group in table.groupby("annotator")
    }


def _label_task(images: ImageSet, row: Mapping[Any, Any]) -> Task:
    task = row["task"]
    key = row["key"]
    options = row["options"]
    facts: tuple[tuple[str, str], ...] = ()
    draft: str | None = None
    if task == "MCQ":
        choices: tuple[Choice, ...] = (_AGREE, _REPORT)
        facts = (("Right", _in_full(key, options, f"{key}, which is none of the options")),)
    else:
        choices = (_AGREE, Choice("s", "edit", "Save the edited text", with_text=True), _REPORT)
        draft, *others = key if task == "CAP" else [key]
        facts = tuple(("Also", other) for other in others)
    return Task(
        name=row["name"],
        heading=_HEADINGS[task],
        images=(("Image", images.path("ref", row)),),
        text="\n".join(
            [
                row["question"],
                *(f"{letter}. {each}" for letter, each in zip("ABCDE", options, strict=False)),
            ]
        ),
        choices=choices,
        facts=facts,
        draft=draft,
        locked=draft is not None,
        most_words=MOST_WORDS.get(task, 0),
    )
