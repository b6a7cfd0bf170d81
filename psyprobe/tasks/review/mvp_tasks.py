"""MVP-Bench on the page: candidate questions to accept or reject, and questions to answer."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from psyprobe.errors import InputError
from psyprobe.files.output import write_text
from psyprobe.tasks.mvp_bench.questions import read_question_lines, read_questions, split_choices
from psyprobe.tasks.mvp_construction.set_files import json_lines
from psyprobe.tasks.review.worklist import (
    Agreement,
    Choice,
    Decision,
    Journal,
    Task,
    accepted_by_both,
    agreement,
    check_tasks,
    decisions,
    people,
)

CANDIDATES, KEPT = "questions.json", "kept.json"
_VERDICTS = (Choice("a", "accept", "Accept"), Choice("r", "reject", "Reject"))
_FOLLOWS = {"N": "natural", "M": "manipulated", "pair": "both, the natural one on the left"}
_HEADINGS = {
    "yes_no": "Yes or no",
    "single_mcq": "One image, multiple choice",
    "cross_mcq": "Both images, multiple choice",
}


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
        first = rows[0]
        shared = len(rows) == 1
        answers = [("Right" if shared else f"Right for {_FOLLOWS[row['kind']]}", _in_full(row)) for row in rows]
        tasks.append(
            Task(
                name=" ".join(row["question_id"] for row in rows),
                heading=f"Pair {first['pair']} · {_HEADINGS[first['task']]} · {first['level']} level",
                images=tuple((_FOLLOWS[row["kind"]].capitalize(), _inside(place, row["image"])) for row in rows),
                text=first["question"],
                facts=tuple(answers),
                choices=_VERDICTS,
            )
        )
    return check_tasks(tasks)


def verdicts_of(folder: str | Path, tasks: list[Task]) -> dict[str, dict[str, str]]:
    """What each annotator said of each candidate."""
    return {
        name: {task: each.value for task, each in decisions(Journal(folder, "review", name), tasks).items()}
        for name in people(folder, "review")
    }


def agreements(verdicts: Mapping[str, Mapping[str, str]]) -> list[Agreement]:
    """How far each two annotators agree."""
    names = sorted(verdicts)
    return [
        agreement(first, second, verdicts[first], verdicts[second])
        for place, first in enumerate(names)
        for second in names[place + 1 :]
    ]


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


def write_kept(folder: str | Path, tasks: list[Task], verdicts: Mapping[str, Mapping[str, str]]) -> int:
    """Write the questions that two or more have judged and all accepted, and count their rows."""
    names = {name for task in accepted_by_both(verdicts) for name in task.split(" ")}
    rows = [row for _, row in read_question_lines(Path(folder) / CANDIDATES)]
    kept = [row for row in rows if str(row["question_id"]) in names]
    write_text(Path(folder) / KEPT, json_lines(kept))
    return len(kept)


def answer_tasks(folder: str | Path, questions: str | Path | None, person: str) -> list[Task]:
    """The questions of a set in an order of the person's own, the same whenever they come back."""
    place = Path(folder)
    path = Path(questions) if questions is not None else place / (KEPT if (place / KEPT).is_file() else CANDIDATES)
    rows = read_questions(path).to_dict("records")
    order = np.random.default_rng(list(person.encode())).permutation(len(rows))
    return check_tasks([_to_answer(place, rows[i]) for i in order])


def predictions(journal: Journal, tasks: list[Task]) -> list[dict[str, str]]:
    """What a person answered, as a prediction file holds it: question_id and output."""
    found: dict[str, Decision] = decisions(journal, tasks)
    return [{"question_id": name, "output": each.text or each.value} for name, each in sorted(found.items())]


def _to_answer(folder: Path, row: dict[str, Any]) -> Task:
    if row["task"] == "yes_no":
        choices: tuple[Choice, ...] = (Choice("y", "yes", "Yes"), Choice("n", "no", "No"))
    else:
        letters = "ABCDE"[: len(split_choices(row["question"])[1])]
        choices = tuple(Choice(letter.lower(), letter, letter) for letter in letters)
    return Task(
        name=row["question_id"],
        heading=_HEADINGS[row["task"]],
        # Nothing here may tell whether an image was manipulated.
        images=(("Both images" if row["kind"] == "pair" else "Image", _inside(folder, row["image"])),),
        text=row["question"],
        choices=choices,
    )


def _in_full(row: Mapping[str, Any]) -> str:
    options = split_choices(row["question"])[1] if row["task"] != "yes_no" else ()
    place = "ABCDE".find(row["answer"])
    return f"{row['answer']}. {options[place]}" if 0 <= place < len(options) else str(row["answer"])


def _inside(folder: Path, name: str) -> Path:
    path = folder / name
    if not path.resolve().is_relative_to(folder.resolve()):
        raise InputError(f"image {name!r} leads out of the folder {folder}; give a path inside it")
    if not path.is_file():
        raise InputError(f"image {path} is missing; give the folder that holds the images")
    return path
