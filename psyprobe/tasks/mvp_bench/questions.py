"""Read the questions of MVP-Bench: the released files with their quirks, or a set in the same form.

A question table has one row a question put to a model:

==============  ====================================================================================
column          meaning
==============  ====================================================================================
question_id     text; unique
pair            number of the image pair
image           path of the image file, relative to the folder of images
kind            "N" natural, "M" manipulated, "pair" both images in one file
task            "yes_no", "single_mcq" (one image) or "cross_mcq" (both)
level           "low" or "high"
question        the full prompt: the question, one line an option, the form of the answer
answer          "yes", "no" or the letter of an option
run             "main", or "circular" for the file in which each multiple choice comes in every
                rotation
mcq             number of the multiple-choice item in the circular file, -1 elsewhere
rotation        k of n, from 1, in the circular file; 0 elsewhere
rotations       n; 0 elsewhere
==============  ====================================================================================

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
from psyprobe.files.json_types import JsonObject
from psyprobe.tasks.tables import read_json_lines, refuse_duplicates

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

    #: Number of rows by run, task (yes/no by kind of image) and level.
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
    #: Items of which a rotation is missing or wrong.
    rotations_wrong: tuple[int, ...]
    #: Files that are not in the folder of images; empty where no folder was given.
    missing_images: tuple[str, ...]
    #: Pairs whose two images are the same, pixel for pixel.
    identical_pairs: tuple[int, ...]

    def to_dict(self) -> JsonObject:
        """Return the report as JSON values."""
        names = ("run", "task", "level", "rows")
        counts = [
            dict(zip(names, (*cell, n), strict=True)) for cell, n in self.counts.items()
        ]
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
            numbers = ", ".join(map(str, self.identical_pairs[:10]))
            ellipsis = " ..." * (len(self.identical_pairs) > 10)
            lines.append(
                f"{len(self.identical_pairs)} pairs show the same image twice, pixel for pixel: "
                f"{numbers}{ellipsis}"
            )
        if self.missing_images:
            lines.append(
                f"{len(self.missing_images)} image files are missing, the first "
                f"{self.missing_images[0]}"
            )
        return "\n".join(lines)


def read_questions(path: str | Path) -> pd.DataFrame:
    """Read a question file of MVP-Bench, with or without rotated options.

    Parameters
    ----------
    path : str or Path
        JSON lines in UTF-8; their fields tell which of the two forms it is. The type of a rotated
        question is read from its image, since the released file calls all of them single-image.

    Returns
    -------
    pandas.DataFrame
        A question table; rows that are there twice are taken once.

    Raises
    ------
    InputError
        The file cannot be read, a line is no question, or two rows of one question_id differ.

    Examples
    --------
    >>> import tempfile
    >>> fields = '"image": "7_s.jpg", "question": "Is it red?", "answer": "Yes", "level": "low"'
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "questions.json")
    ...     _ = path.write_text(f'{{"question_id": "1", "id": 7, "type": "y/n-s", {fields}}}')
    ...     read_questions(path)[["pair", "kind", "answer"]].to_dict("records")
    [{'pair': 7, 'kind': 'N', 'answer': 'yes'}]
    """
    rows = [
        _read_row(path, number, values) for number, values in read_question_lines(path)
    ]
    table = pd.DataFrame(rows, columns=list(COLUMNS)).drop_duplicates(ignore_index=True)
    problem = "is there twice with different contents; keep one of them"
    refuse_duplicates(table["question_id"], f"{path}: question", problem)
    return table


def read_question_lines(path: str | Path) -> list[tuple[int, JsonObject]]:
    """Read the rows of a question file unchanged, with their line numbers."""
    lines = read_json_lines(path)
    for number, values in lines:
        missing = [
            name
            for name in _FIELDS
            if not isinstance(values, dict) or name not in values
        ]
        if missing:
            raise InputError(
                f"{path}, line {number}: there is no {missing[0]!r}; a line has "
                f"{', '.join(_FIELDS)}"
            )
    if not lines:
        raise InputError(f"{path} is empty; it should hold one JSON object a line")
    return lines


def _read_row(path: str | Path, number: int, values: JsonObject) -> tuple[Any, ...]:
    """Check one question of a file, and convert it to a row of the table."""

    def wrong(field: str, allowed: str) -> InputError:
        value = values.get(field)
        return InputError(
            f"{path}, line {number}: {field} is {value!r}; give {allowed}"
        )

    if values["type"] not in _TYPES:
        raise wrong("type", " or ".join(map(repr, _TYPES)))
    if values["level"] not in _LEVELS:
        raise wrong("level", "'low' or 'high'")
    if not isinstance(values["id"], int):
        raise wrong("id", "the whole number of the image pair")
    task, kind = _TYPES[values["type"]]
    rotation: tuple[str, int, int, int] = ("main", -1, 0, 0)
    if "mcq_id" in values:
        manipulated = "_e" in Path(values["image"]).stem
        task, kind = _TYPES["mcq-e" if manipulated else "mcq-cross"]
        match = re.fullmatch(r"(\d+)/(\d+)", str(values.get("index")))
        if match is None:
            raise wrong("index", "the rotation and their number, as '2/5'")
        rotation = ("circular", int(values["mcq_id"]), int(match[1]), int(match[2]))
    answer = str(values["answer"]).strip()
    allowed: tuple[str, ...] = tuple("ABCDE")
    if task == "yes_no":
        answer = answer.lower()
        allowed = ("yes", "no")
    if answer not in allowed:
        raise wrong("answer", " or ".join(allowed))
    return (
        str(values["question_id"]),
        values["id"],
        str(values["image"]),
        kind,
        task,
        values["level"],
        str(values["question"]),
        answer,
        *rotation,
    )


def split_choices(question: str) -> tuple[str, tuple[str, ...], str]:
    r"""Split a multiple-choice prompt into question and options.

    Parameters
    ----------
    question : str
        The question, one line "A. ..." an option, and the form of the answer.

    Returns
    -------
    stem : str
        Text before the options.
    options : tuple of str
        Options in the order of their letters; empty where there are none.
    instruction : str
        Text after the options.

    Examples
    --------
    >>> split_choices("What is it?\nA. a dog\nB. a cat\nAnswer with the letter.")
    ('What is it?', ('a dog', 'a cat'), 'Answer with the letter.')
    """
    lines = question.split("\n")
    matches = {
        i: match for i, line in enumerate(lines) if (match := _OPTION.match(line))
    }
    first = min(matches, default=0)
    end = first + len(matches)
    # Options must stand on lines that follow each other, with letters in order.
    letters = [match[1] for match in matches.values()]
    if not matches or max(matches) >= end or letters != list("ABCDE"[: len(matches)]):
        return question, (), ""
    options = tuple(match[2] for match in matches.values())
    return "\n".join(lines[:first]), options, "\n".join(lines[end:])


def rotated(question: str, answer: str, shift: int) -> tuple[str, str]:
    r"""Shift the options of a multiple-choice question cyclically to the left.

    Parameters
    ----------
    question : str
        A prompt as for `split_choices`.
    answer : str
        Letter of the right option.
    shift : int
        Places to shift: rotation k of n is a shift by k - 1.

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
    shifted = zip("ABCDE", options[shift:] + options[:shift], strict=False)
    lines = [stem, *(f"{letter}. {option}" for letter, option in shifted), instruction]
    return "\n".join(lines), "ABCDE"[(right - shift) % len(options)]


def with_rotations(questions: pd.DataFrame) -> pd.DataFrame:
    """Add every multiple-choice question in all rotations of its options.

    Parameters
    ----------
    questions : pandas.DataFrame
        A question table, as from `read_questions`.

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
        raise InputError(
            "the questions hold rotations already; make them from the main run alone"
        )
    rows = []
    choices = questions[questions["task"] != "yes_no"]
    for number, row in enumerate(choices.to_dict("records")):
        count = len(split_choices(row["question"])[1])
        for shift in range(max(count, 1)):
            question, answer = rotated(row["question"], row["answer"], shift)
            rotation = {
                "question_id": f"{row['question_id']}__{number}__{shift}",
                "question": question,
                "answer": answer,
                "run": "circular",
                "mcq": number,
                "rotation": shift + 1,
                "rotations": count,
            }
            rows.append(row | rotation)
    return pd.concat(
        [questions, pd.DataFrame(rows, columns=questions.columns)], ignore_index=True
    )


def check_questions(
    table: pd.DataFrame, images: str | Path | None = None
) -> QuestionReport:
    """Count what a question table holds, and report what in it is odd.

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

    Examples
    --------
    >>> import json, tempfile
    >>> row = {"question_id": "1", "id": 7, "image": "7_s.jpg", "question": "Is it red?"}
    >>> row |= {"answer": "yes", "type": "y/n-s", "level": "low"}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "questions.json")
    ...     _ = path.write_text(json.dumps(row))
    ...     print(check_questions(read_questions(path)))
    main run, yes_no N, low: 1 questions
    1 image pairs, 1 image files
    0 yes/no questions have the same answer on both images of a pair
    """
    tasks = table["task"].where(table["task"] != "yes_no", "yes_no " + table["kind"])
    counts = table.groupby([table["run"], tasks, table["level"]]).size()
    yes_no = table[table["task"] == "yes_no"]
    by_question = yes_no.groupby(["pair", "question"])["answer"]
    same_answer = by_question.nunique()[by_question.size() == 2] == 1
    choices = table[table["task"] != "yes_no"]
    malformed = []
    for row in choices.to_dict("records"):
        count = len(split_choices(row["question"])[1])
        if "ABCDE".index(row["answer"]) >= count:
            malformed.append(
                f"{row['question_id']}: {count} options and the key {row['answer']}"
            )
    rotations = table[table["run"] == "circular"].sort_values("rotation")
    complete = {
        int(number): _every_rotation(item) for number, item in rotations.groupby("mcq")
    }
    files = sorted(set(table["image"]))
    folder = None if images is None else Path(images)
    return QuestionReport(
        counts={
            (str(run), str(task), str(level)): int(n)
            for (run, task, level), n in counts.items()
        },
        pairs=int(table["pair"].nunique()),
        images=len(files),
        same_answer=tuple(
            (int(pair), str(question))
            for pair, question in same_answer.index[same_answer]
        ),
        malformed=tuple(malformed),
        rotations_checked=sum(complete.values()),
        rotations_wrong=tuple(
            number for number, right in complete.items() if not right
        ),
        missing_images=tuple(
            name for name in files if folder and not (folder / name).is_file()
        ),
        identical_pairs=tuple(_identical_pairs(table, folder) if folder else ()),
    )


def _identical_pairs(table: pd.DataFrame, folder: Path) -> Iterator[int]:
    """Find image pairs whose natural and manipulated images are the same."""
    single = table[table["kind"].isin(["N", "M"])].drop_duplicates(["pair", "kind"])
    for pair, rows in single.groupby("pair"):
        paths = [folder / name for name in rows["image"]]
        if (
            len(paths) == 2
            and all(path.is_file() for path in paths)
            and same_pixels(*paths)
        ):
            yield int(pair)


def _every_rotation(item: pd.DataFrame) -> bool:
    """Tell whether an item has all its rotations, each a left cyclic shift of the first."""
    first = item.iloc[0]
    count = int(first["rotations"])
    rotations = [rotated(first["question"], first["answer"], k) for k in range(count)]
    return list(item["rotation"]) == list(range(1, count + 1)) and all(
        answer == expected_answer
        and split_choices(question)[1] == split_choices(expected)[1]
        for question, answer, (expected, expected_answer) in zip(
            item["question"], item["answer"], rotations, strict=True
        )
    )
