"""The sittings there are: reviewing candidates, answering a benchmark, labelling; by kind of set."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from psyprobe.errors import unknown_name
from psyprobe.tasks.mvp_construction.question_rows import json_lines
from psyprobe.tasks.review import mvp_tasks, r_bench_tasks
from psyprobe.tasks.review.journal import Journal, people
from psyprobe.tasks.review.sitting import Sitting
from psyprobe.tasks.review.tasks import Task

_TITLES = {"review": "Review of questions", "answer": "Questions to answer", "label": "Labels to check"}


def sitting(folder: str | Path, kind: str, person: str, questions: str | Path | None = None) -> Sitting:
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

    Returns
    -------
    Sitting

    Raises
    ------
    InputError
        There is nothing to decide, an image is missing, or the name cannot be a file's.
    """
    if kind not in _TITLES:
        raise unknown_name("kind of sitting", kind, _TITLES)
    journal = Journal(folder, kind, person)
    if kind == "review":
        tasks = mvp_tasks.review_tasks(folder)
        return Sitting(_TITLES[kind], tasks, journal, lambda: _agreement(folder, tasks, person))
    if kind == "label":
        return Sitting(_TITLES[kind], r_bench_tasks.label_tasks(folder), journal)
    return Sitting(_TITLES[kind], _to_answer(folder, questions, person), journal)


def answers_of(folder: str | Path, questions: str | Path | None = None) -> dict[str, tuple[int, int, str, str]]:
    """What people answered so far, as prediction files hold it.

    Parameters
    ----------
    folder : str or Path
        Of the set.
    questions : str or Path, optional
        The question file that was answered.

    Returns
    -------
    dict of str to (int, int, str, str)
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
