"""R-Bench on the page: keys to check (agree, unlock and edit, report), and questions to answer.

Tasks are interleaved, so that nobody gets into a rut: multiple choice, short answer, caption, and again. An edited
answer has at most 10 words, an edited caption at most 40.

References
----------
Li et al. (2024). R-Bench: are your large multimodal models robust to real-world corruptions? arXiv 2410.05474.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from psyprobe.tasks.r_bench.items import ImageSet, read_set
from psyprobe.tasks.review.worklist import Choice, Journal, Task, check_tasks, decisions, people

#: Longest answer, in words.
MOST_WORDS = {"VQA": 10, "CAP": 40}
_HEADINGS = {"MCQ": "Multiple choice", "VQA": "Short answer", "CAP": "Caption"}
_REPORT = Choice("p", "report", "Report a problem")


def label_tasks(folder: str | Path) -> list[Task]:
    """The keys of a set, to be checked against the reference images.

    Multiple choice is agreed with or reported; the key of a short answer and the first caption can be unlocked and
    edited too.
    """
    images = read_set(folder)
    return check_tasks([_to_label(images, row) for row in _interleaved(images.items, 0)])


def label_table(folder: str | Path) -> pd.DataFrame:
    """What people made of the keys.

    Columns annotator, name, decision ("agree", "edit" or "report") and text (what an edited key says now).
    """
    tasks = label_tasks(folder)
    rows = [
        (person, name, each.value, each.text)
        for person in people(folder, "label")
        for name, each in decisions(Journal(folder, "label", person), tasks).items()
    ]
    return pd.DataFrame(rows, columns=["annotator", "name", "decision", "text"])


def label_counts(table: pd.DataFrame) -> dict[str, dict[str, int]]:
    """How often each annotator decided what."""
    return {
        str(person): {str(value): int(n) for value, n in group["decision"].value_counts().items()}
        for person, group in table.groupby("annotator")
    }


def answer_tasks(folder: str | Path, person: str) -> list[Task]:
    """The questions of a set about its corrupted images, to be answered by a person.

    People have absolute scores only, so the reference images are not shown.
    """
    images = read_set(folder)
    seed = int.from_bytes(person.encode()[:8], "big")
    return check_tasks([_to_answer(images, row) for row in _interleaved(images.items, seed)])


def answer_csv(rows: list[dict[str, Any]]) -> str:
    """Answers of a person as R-Bench's answer files hold them: CSV with the columns name and answer."""
    stream = io.StringIO()
    named = [(row["question_id"], row["output"]) for row in rows]
    pd.DataFrame(named, columns=["name", "answer"]).to_csv(stream, index=False)
    return stream.getvalue()


def _interleaved(items: pd.DataFrame, seed: int) -> list[dict[str, Any]]:
    """Items in a drawn order in which the tasks take turns as long as there are some of each."""
    random = np.random.default_rng(seed)
    found = []
    for _, group in items.groupby("task", sort=True):
        rows = group.to_dict("records")
        found += [(turn, rows[place]) for turn, place in enumerate(random.permutation(len(rows)))]
    return [row for _, row in sorted(found, key=lambda each: each[0])]


def _to_label(images: ImageSet, row: Mapping[str, Any]) -> Task:
    task = row["task"]
    agree = Choice("a", "agree", "Agree")
    key = row["key"][0] if task == "CAP" else row["key"]
    if task == "MCQ":
        place = "ABCDE".find(key)
        options = row["options"]
        right = f"{key}. {options[place]}" if 0 <= place < len(options) else f"{key}, which is none of the options"
        return _task(images, row, "ref", (agree, _REPORT), facts=(("Right", right),))
    choices = (agree, Choice("s", "edit", "Save the edited text", with_text=True), _REPORT)
    others = tuple(("Also", each) for each in row["key"][1:]) if task == "CAP" else ()
    return _task(images, row, "ref", choices, facts=others, draft=key, locked=True)


def _to_answer(images: ImageSet, row: Mapping[str, Any]) -> Task:
    if row["task"] == "MCQ":
        letters = "ABCDE"[: len(row["options"])]
        return _task(images, row, "dis", tuple(Choice(each.lower(), each, each) for each in letters))
    return _task(images, row, "dis", (Choice("s", "answer", "Save", with_text=True),), draft="")


def _task(
    images: ImageSet,
    row: Mapping[str, Any],
    kind: str,
    choices: tuple[Choice, ...],
    *,
    facts: tuple[tuple[str, str], ...] = (),
    draft: str | None = None,
    locked: bool = False,
) -> Task:
    task = row["task"]
    options = [f"{letter}. {option}" for letter, option in zip("ABCDE", row["options"], strict=False)]
    return Task(
        name=row["name"],
        heading=_HEADINGS[task],
        images=(("Image", images.path(kind, row)),),
        text="\n".join([row["question"], *options]),
        choices=choices,
        facts=facts,
        draft=draft,
        locked=locked,
        most_words=MOST_WORDS.get(task, 0),
    )
