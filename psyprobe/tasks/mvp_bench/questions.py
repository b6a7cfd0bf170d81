"""The questions of MVP-Bench: the released files with their quirks, and a set of one's own in the
same form.

A question table has one row a question put to a model:

==============  ======================================================================================================
column          meaning
==============  ======================================================================================================
question_id     text; unique
pair            number of the image pair
image           path of the image file, relative to the folder of images
kind            "N" natural, "M" manipulated, "pair" both images in one file
task            "yes_no", "single_mcq" (one image) or "cross_mcq" (both)
level           "low" or "high"
question        the full prompt: the question, one line an option, the form of the answer
answer          "yes", "no" or the letter of an option
run             "main", or "circular" for the file in which each multiple choice comes in every rotation
mcq             number of the multiple-choice item in the circular file, -1 elsewhere
rotation        k of n, from 1, in the circular file; 0 elsewhere
rotations       n; 0 elsewhere
==============  ======================================================================================================

References
----------
Li et al. (2024). MVP-Bench: Can large vision-language models conduct multi-level visual perception
like humans? Findings of EMNLP.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from psyprobe.errors import InputError
from psyprobe.files.images import same_pixels
from psyprobe.tasks.tables import read_json_lines

COLUMNS = (
    "question_id",
    "pair",
    "image",
    "kind",
    "task",
    "level",
    "question",
    "answer",
    "run",
    "mcq",
    "rotation",
    "rotations",
)
_FIELDS = ("question_id", "id", "image", "question", "answer", "type", "level")
_LEVELS = ("low", "high")
_TYPES = {
    "y/n-s": ("yes_no", "N"),
    "y/n-e": ("yes_no", "M"),
    "mcq-e": ("single_mcq", "M"),
    "mcq-cross": ("cross_mcq", "pair"),
}
#: An option stands on a line of its own; one released stem repeats its options as "A) ...", which
#: are none.
_OPTION = re.compile(r"^([A-E])\. ?(.*)$")


@dataclass(frozen=True)
class QuestionReport:
    """What a question table holds, and what in it is odd."""

    #: Rows by run, task (yes/no by kind of image) and level.
    counts: Mapping[tuple[str, str, str], int]
    #: Distinct image pairs and image files.
    pairs: int
    images: int
    #: Yes/no questions whose answer is the same on both images, by pair and question; the paper
    #: says there are none.
    same_answer: tuple[tuple[int, str], ...]
    #: Multiple-choice questions without options, or whose key is none of them.
    malformed: tuple[str, ...]
    #: Items of which every rotation is there and is a left cyclic shift of the first.
    rotations_checked: int
    #: Items of which one is not.
    rotations_wrong: tuple[int, ...]
    #: Files that are not in the folder of images; empty where no folder was given.
    missing_images: tuple[str, ...]
    #: Pairs whose two images are the same, pixel for pixel.
    identical_pairs: tuple[int, ...]

    def to_dict(self) -> dict[str, Any]:
        """The report as plain values that JSON can hold."""
        names = ("run", "task", "level", "rows")
        counts = [dict(zip(names, (*cell, n), strict=True)) for cell, n in self.counts.items()]
        return {**vars(self), "counts": counts}

    def __str__(self) -> str:
        lines = [
            f"{run} run, {task}, {level}: {n} questions"
            for (run, task, level), n in self.counts.items()
        ]
        lines.append(f"{self.pairs} image pairs, {self.images} image files")
        lines.append(
            f"{len(self.same_answer)} yes/no questions have the same answer on both images of a "
            "pair"
        )
        if self.rotations_checked or self.rotations_wrong:
            lines.append(
                f"{self.rotations_checked} multiple-choice items have every rotation, each a "
                "left cyclic shift of the "
                f"first; {len(self.rotations_wrong)} have not"
            )
        lines += [f"malformed: {name}" for name in self.malformed]
        if self.identical_pairs:
            listed = ", ".join(map(str, self.identical_pairs[:10]))
            more = " ..." * (len(self.identical_pairs) > 10)
            lines.append(
                f"{len(self.identical_pairs)} pairs show the same image twice, pixel for pixel: "
                f"{listed}{more}"
            )
        if self.missing_images:
            lines.append(
                f"{len(self.missing_images)} image files are missing, the first "
                f"{self.missing_images[0]}"
            )
        return "\n".join(lines)


def read_questions(path: str | Path) -> pd.DataFrame:
    """Read a question file: the main one or the one of rotations, as released or in the same form.

    Parameters
    ----------
    path : str or Path
        JSON lines in UTF-8; which of the two forms it is shows in its fields. The type of a rotated
        question is told from its image, since the released file calls all of them single-image.

    Returns
    -------
    pandas.DataFrame
        A question table; rows that are there twice are taken once.

    Raises
    ------
    InputError
        The file cannot be read, a line is no question, or two rows of one question_id differ.
    """
    rows = [_row(path, number, values) for number, values in read_question_lines(path)]
    table = pd.DataFrame(rows, columns=list(COLUMNS)).drop_duplicates(ignore_index=True)
    twice = table["question_id"][table["question_id"].duplicated()]
    if len(twice):
        raise InputError(
            f"{path}: question {twice.iloc[0]} is there twice with different contents; keep one "
            "of them"
        )
    return table


def read_question_lines(path: str | Path) -> list[tuple[int, dict[str, Any]]]:
    """The rows of a question file as they stand there, with the numbers of their lines."""
    found = read_json_lines(path)
    for number, values in found:
        missing = [name for name in _FIELDS if not isinstance(values, dict) or name not in values]
        if missing:
            raise InputError(
                f"{path}, line {number}: there is no {missing[0]!r}; a line has "
                f"{', '.join(_FIELDS)}"
            )
    if not found:
        raise InputError(f"{path} is empty; it should hold one JSON object a line")
    return found


def _row(path: str | Path, number: int, values: dict[str, Any]) -> tuple[Any, ...]:
    def wrong(what: str, allowed: str) -> InputError:
        return InputError(f"{path}, line {number}: {what} is {values.get(what)!r}; give {allowed}")

    if values["type"] not in _TYPES:
        raise wrong("type", " or ".join(map(repr, _TYPES)))
    if values["level"] not in _LEVELS:
        raise wrong("level", "'low' or 'high'")
    if not isinstance(values["id"], int):
        raise wrong("id", "the whole number of the image pair")
    task, kind = _TYPES[values["type"]]
    place: tuple[str, int, int, int] = ("main", -1, 0, 0)
    if "mcq_id" in values:
        task, kind = (
            ("single_mcq", "M") if "_e" in Path(values["image"]).stem else ("cross_mcq", "pair")
        )
        found = re.fullmatch(r"(\d+)/(\d+)", str(values.get("index")))
        if found is None:
            raise wrong("index", "the rotation and their number, as '2/5'")
        place = ("circular", int(values["mcq_id"]), int(found[1]), int(found[2]))
    answer = str(values["answer"]).strip()
    answer, allowed = (
        (answer.lower(), ("yes", "no")) if task == "yes_no" else (answer, tuple("ABCDE"))
    )
    if answer not in allowed:
        raise wrong("answer", " or ".join(allowed))
    name, image, question = (str(values[field]) for field in ("question_id", "image", "question"))
    return (name, values["id"], image, kind, task, values["level"], question, answer, *place)


def split_choices(question: str) -> tuple[str, tuple[str, ...], str]:
    r"""A multiple-choice prompt in its parts.

    Parameters
    ----------
    question : str
        The question, one line "A. ..." an option, and the form of the answer.

    Returns
    -------
    stem : str
        All before the options.
    options : tuple of str
        In the order of their letters; empty where there are none.
    instruction : str
        All after them.

    Examples
    --------
    >>> split_choices("What is it?\nA. a dog\nB. a cat\nAnswer with the letter.")
    ('What is it?', ('a dog', 'a cat'), 'Answer with the letter.')
    """
    lines = question.split("\n")
    found = {at: option for at, line in enumerate(lines) if (option := _OPTION.match(line))}
    first = min(found, default=0)
    in_order = dict(zip(range(first, len(lines)), "ABCDE"[: len(found)], strict=False))
    if not found or {at: option[1] for at, option in found.items()} != in_order:
        return question, (), ""
    options = tuple(option[2] for option in found.values())
    return "\n".join(lines[:first]), options, "\n".join(lines[first + len(found) :])


def rotated(question: str, answer: str, shift: int) -> tuple[str, str]:
    r"""A multiple-choice question with its options shifted cyclically to the left.

    Parameters
    ----------
    question : str
        As `split_choices` takes it.
    answer : str
        Letter of the right option.
    shift : int
        How far: rotation k of n is a shift by k - 1.

    Returns
    -------
    question, answer : str
        Letters are assigned anew, in order.

    Raises
    ------
    InputError
        If there are no options, or the answer is none of them.

    Examples
    --------
    >>> rotated("Which?\nA. one\nB. two\nC. three\nAnswer.", "A", 1)
    ('Which?\nA. two\nB. three\nC. one\nAnswer.', 'C')
    """
    stem, options, instruction = split_choices(question)
    right = "ABCDE".find(answer)
    if not options or not 0 <= right < len(options):
        raise InputError(
            f"a question with {len(options)} options and the key {answer!r} cannot be rotated: "
            f"{stem!r}"
        )
    shift %= len(options)
    moved = (*options[shift:], *options[:shift])
    lines = [
        stem,
        *(f"{letter}. {option}" for letter, option in zip("ABCDE", moved, strict=False)),
        instruction,
    ]
    return "\n".join(lines), "ABCDE"[(right - shift) % len(options)]


def with_rotations(questions: pd.DataFrame) -> pd.DataFrame:
    """A question table with every multiple choice of its main run in all rotations as well.

    Parameters
    ----------
    questions : pandas.DataFrame
        A question table, as `read_questions` gives it.

    Returns
    -------
    pandas.DataFrame
        The main run, and a circular run made from it: rotation k is a left cyclic shift by k - 1.

    Raises
    ------
    InputError
        There are rotations already, or a multiple choice has no options.
    """
    if (questions["run"] == "circular").any():
        raise InputError("the questions hold rotations already; make them from the main run alone")
    rows = []
    choices = questions[questions["task"] != "yes_no"]
    for number, row in enumerate(choices.to_dict("records")):
        count = len(split_choices(row["question"])[1])
        for k in range(max(count, 1)):
            question, answer = rotated(row["question"], row["answer"], k)
            name = f"{row['question_id']}__{number}__{k}"
            place = {"run": "circular", "mcq": number, "rotation": k + 1, "rotations": count}
            rows.append(row | {"question_id": name, "question": question, "answer": answer} | place)
    return pd.concat([questions, pd.DataFrame(rows, columns=questions.columns)], ignore_index=True)


def check_questions(table: pd.DataFrame, images: str | Path | None = None) -> QuestionReport:
    """What a question table holds, and what in it is odd.

    Parameters
    ----------
    table : pandas.DataFrame
        A question table; several may be concatenated.
    images : str or Path, optional
        The folder of images; without it they are not looked for.

    Returns
    -------
    QuestionReport
        It prints as a few lines.
    """
    tasks = table["task"].where(table["task"] != "yes_no", "yes_no " + table["kind"])
    counts = table.groupby([table["run"], tasks, table["level"]]).size()
    yes_no = table[table["task"] == "yes_no"]
    by_question = yes_no.groupby(["pair", "question"])["answer"]
    same = by_question.nunique()[by_question.size() == 2] == 1
    choices = table[table["task"] != "yes_no"]
    malformed = [
        f"{name}: {len(options)} options and the key {answer}"
        for name, question, answer in zip(
            choices["question_id"], choices["question"], choices["answer"], strict=True
        )
        if "ABCDE".index(answer) >= len(options := split_choices(question)[1])
    ]
    rotations = table[table["run"] == "circular"].sort_values("rotation")
    whole = {int(number): _every_rotation(item) for number, item in rotations.groupby("mcq")}
    files = sorted(set(table["image"]))
    absent = (
        [] if images is None else [name for name in files if not (Path(images) / name).is_file()]
    )
    return QuestionReport(
        counts={
            (str(run), str(task), str(level)): int(n) for (run, task, level), n in counts.items()
        },
        pairs=int(table["pair"].nunique()),
        images=len(files),
        same_answer=tuple((int(pair), str(question)) for pair, question in same.index[same]),
        malformed=tuple(malformed),
        rotations_checked=sum(whole.values()),
        rotations_wrong=tuple(number for number, right in whole.items() if not right),
        missing_images=tuple(absent),
        identical_pairs=() if images is None else tuple(_identical_pairs(table, Path(images))),
    )


def _identical_pairs(table: pd.DataFrame, folder: Path) -> Iterator[int]:
    """Pairs whose natural and manipulated image are one and the same, pixel for pixel."""
    single = table[table["kind"].isin(["N", "M"])].drop_duplicates(["pair", "kind"])
    for pair, rows in single.groupby("pair"):
        paths = [folder / name for name in rows["image"]]
        if len(paths) == 2 and all(path.is_file() for path in paths) and same_pixels(*paths):
            yield int(pair)


def _every_rotation(item: pd.DataFrame) -> bool:
    first = item.iloc[0]
    if list(item["rotation"]) != list(range(1, int(first["rotations"]) + 1)):
        return False
    for k, question, answer in zip(item["rotation"], item["question"], item["answer"], strict=True):
        turned, key = rotated(first["question"], first["answer"], k - 1)
        if (split_choices(turned)[1], key) != (split_choices(question)[1], answer):
            return False
    return True
