"""One person before a list of tasks: what the page is told, and what it may do; and what the tasks are.

Of a set of MVP-Bench: candidate questions to accept or reject, and questions to answer. Of R-Bench: keys to check
(agree, unlock and edit, report), and questions to answer. R-Bench's are interleaved, so that nobody gets into a rut:
multiple choice, short answer, caption, and again. An edited answer has at most 10 words, an edited caption at most 40.

References
----------
Li et al. (2024). R-Bench: are your large multimodal models robust to real-world corruptions? arXiv 2410.05474.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from psyprobe.errors import InputError
from psyprobe.files.output import write_text
from psyprobe.files.terminal import printable
from psyprobe.tasks.mvp_bench.questions import read_question_lines, read_questions, split_choices
from psyprobe.tasks.mvp_construction.set_files import json_lines
from psyprobe.tasks.r_bench.items import ImageSet, read_set
from psyprobe.tasks.review.decisions import Choice, Journal, Task, accepted_by_both, agreements, check_tasks, decisions

CANDIDATES, KEPT = "questions.json", "kept.json"
#: Longest answer, in words.
MOST_WORDS = {"VQA": 10, "CAP": 40}
_TITLES = {"review": "Review of questions", "answer": "Questions to answer", "label": "Labels to check"}
_FOLLOWS = {"N": "natural", "M": "manipulated", "pair": "both, the natural one on the left"}
_HEADINGS = {
    "yes_no": "Yes or no",
    "single_mcq": "One image, multiple choice",
    "cross_mcq": "Both images, multiple choice",
    "MCQ": "Multiple choice",
    "VQA": "Short answer",
    "CAP": "Caption",
}
_VERDICTS = (Choice("a", "accept", "Accept"), Choice("r", "reject", "Reject"))
_AGREE, _REPORT = Choice("a", "agree", "Agree"), Choice("p", "report", "Report a problem")


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
    journal = Journal(folder, kind, person)
    if kind != "review":
        tasks = label_tasks(folder) if kind == "label" else _to_answer(folder, questions, person)
        return Worklist(_TITLES[kind], tasks, journal)
    tasks = review_tasks(folder)

    def note() -> str:
        found = agreements(verdicts_of(folder, tasks))
        return "\n".join(str(each) for each in found if person in (each.first, each.second))

    return Worklist(_TITLES[kind], tasks, journal, note)


def answers_of(folder: str | Path, questions: str | Path | None = None) -> dict[str, tuple[int, int, str, str]]:
    """What people answered so far, as prediction files hold it.

    By name: how many are answered, how many are not, the text of the prediction file, and its ending.
    """
    tasks, found = _to_answer(folder, questions, ""), {}
    for person, decided in decisions(folder, "answer", tasks).items():
        said = {name: each.text or each.value for name, each in sorted(decided.items())}
        if is_r_bench(folder):
            text, suffix = pd.DataFrame(said.items(), columns=["name", "answer"]).to_csv(index=False), ".csv"
        else:
            text, suffix = json_lines({"question_id": name, "output": each} for name, each in said.items()), ".jsonl"
        found[person] = (len(said), len(tasks) - len(said), text, suffix)
    return found


def is_r_bench(folder: str | Path) -> bool:
    """Whether a set is in the form of R-Bench."""
    return (Path(folder) / "items.csv").is_file()


def _to_answer(folder: str | Path, questions: str | Path | None, person: str) -> list[Task]:
    """The questions of a set in an order of the person's own, the same whenever they come back."""
    if is_r_bench(folder):
        # People have absolute scores only, so the reference images are not shown.
        return _item_tasks(folder, int.from_bytes(person.encode()[:8], "big"), to_label=False)
    place = Path(folder)
    path = Path(questions) if questions is not None else place / (KEPT if (place / KEPT).is_file() else CANDIDATES)
    rows = read_questions(path).to_dict("records")
    order = np.random.default_rng(list(person.encode())).permutation(len(rows))
    return check_tasks([_question_task(place, rows[i]) for i in order])


def _letters(options: Sequence[str]) -> tuple[Choice, ...]:
    return tuple(Choice(letter.lower(), letter, letter) for letter, _ in zip("ABCDE", options, strict=False))


def _in_full(key: str, options: Sequence[str], otherwise: str) -> str:
    """A letter with its option, if there is such an option."""
    place = "ABCDE".find(key)
    return f"{key}. {options[place]}" if 0 <= place < len(options) else otherwise


# -- MVP-Bench -------------------------------------------------------------------------------------------------------


def review_tasks(folder: str | Path) -> list[Task]:
    """The candidate questions of a set, to be accepted or rejected.

    By image pair. A yes/no question is one task, with both images: it is kept on both or on neither.
    """
    place = Path(folder)
    table = read_questions(place / CANDIDATES)
    # A multiple choice stands alone; the rows of a yes/no question share pair, level and text.
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in table.to_dict("records"):
        alone = row["question_id"] if row["task"] != "yes_no" else ""
        groups.setdefault((row["pair"], row["task"], row["level"], row["question"], alone), []).append(row)
    tasks = []
    for rows in groups.values():
        first, options = rows[0], split_choices(rows[0]["question"])[1]
        names = ["Right"] if len(rows) == 1 else [f"Right for {_FOLLOWS[row['kind']]}" for row in rows]
        answers = [_in_full(row["answer"], options, row["answer"]) for row in rows]
        tasks.append(
            Task(
                name=" ".join(row["question_id"] for row in rows),
                heading=f"Pair {first['pair']} · {_HEADINGS[first['task']]} · {first['level']} level",
                images=tuple((_FOLLOWS[row["kind"]].capitalize(), _inside(place, row["image"])) for row in rows),
                text=first["question"],
                facts=tuple(zip(names, answers, strict=True)),
                choices=_VERDICTS,
            )
        )
    return check_tasks(tasks)


def verdicts_of(folder: str | Path, tasks: list[Task]) -> dict[str, dict[str, str]]:
    """What each annotator said of each candidate."""
    found = decisions(folder, "review", tasks)
    return {person: {name: each.value for name, each in said.items()} for person, said in found.items()}


def by_kind(tasks: list[Task], verdicts: Mapping[str, Mapping[str, str]]) -> dict[str, dict[str, dict[str, str]]]:
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
    rows = [row for _, row in read_question_lines(Path(folder) / CANDIDATES)]
    kept = [row for row in rows if str(row["question_id"]) in names]
    write_text(Path(folder) / KEPT, json_lines(kept))
    return len(kept)


def _question_task(folder: Path, row: dict[str, Any]) -> Task:
    yes_no = (Choice("y", "yes", "Yes"), Choice("n", "no", "No"))
    return Task(
        name=row["question_id"],
        heading=_HEADINGS[row["task"]],
        # Nothing here may tell whether an image was manipulated.
        images=(("Both images" if row["kind"] == "pair" else "Image", _inside(folder, row["image"])),),
        text=row["question"],
        choices=yes_no if row["task"] == "yes_no" else _letters(split_choices(row["question"])[1]),
    )


def _inside(folder: Path, name: str) -> Path:
    path = folder / name
    if not path.resolve().is_relative_to(folder.resolve()):
        raise InputError(f"image {name!r} leads out of the folder {folder}; give a path inside it")
    if not path.is_file():
        raise InputError(f"image {path} is missing; give the folder that holds the images")
    return path


# -- R-Bench ---------------------------------------------------------------------------------------------------------


def label_tasks(folder: str | Path) -> list[Task]:
    """The keys of a set, to be checked against the reference images.

    Multiple choice is agreed with or reported; the key of a short answer and the first caption can be unlocked and
    edited too.
    """
    return _item_tasks(folder, 0, to_label=True)


def label_table(folder: str | Path) -> pd.DataFrame:
    """What people made of the keys.

    Columns annotator, name, decision ("agree", "edit" or "report") and text (what an edited key says now).
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


def _item_tasks(folder: str | Path, seed: int, *, to_label: bool) -> list[Task]:
    """Items in a drawn order in which the tasks take turns as long as there are some of each."""
    images, random = read_set(folder), np.random.default_rng(seed)
    found = []
    for _, group in images.items.groupby("task", sort=True):
        rows = group.to_dict("records")
        found += [(turn, rows[place]) for turn, place in enumerate(random.permutation(len(rows)))]
    ordered = sorted(found, key=lambda each: each[0])
    return check_tasks([_item_task(images, row, to_label=to_label) for _, row in ordered])


def _item_task(images: ImageSet, row: Mapping[Any, Any], *, to_label: bool) -> Task:
    task, key, options = row["task"], row["key"], row["options"]
    facts: tuple[tuple[str, str], ...]
    draft: str | None
    choices, facts, draft = _letters(options), (), None
    if to_label and task == "MCQ":
        choices = (_AGREE, _REPORT)
        facts = (("Right", _in_full(key, options, f"{key}, which is none of the options")),)
    elif to_label:
        choices = (_AGREE, Choice("s", "edit", "Save the edited text", with_text=True), _REPORT)
        draft, *others = key if task == "CAP" else [key]
        facts = tuple(("Also", each) for each in others)
    elif task != "MCQ":
        choices, draft = (Choice("s", "answer", "Save", with_text=True),), ""
    return Task(
        name=row["name"],
        heading=_HEADINGS[task],
        images=(("Image", images.path("ref" if to_label else "dis", row)),),
        text="\n".join(
            [row["question"], *(f"{letter}. {each}" for letter, each in zip("ABCDE", options, strict=False))]
        ),
        choices=choices,
        facts=facts,
        draft=draft,
        locked=to_label and task != "MCQ",
        most_words=MOST_WORDS.get(task, 0),
    )
