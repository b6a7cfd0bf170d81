"""The items of R-Bench: the released table with its quirks, and a set of one's own in the same form.

An item table has one row a pair of reference and corrupted image: name (of the image file; unique), question, options
(a tuple; empty but for multiple choice), key (a letter, a short answer, or the reference captions as a tuple), task,
quality (of the reference image; None where the table leaves it open), dimension (1 to 33), strength ("low", "mid",
"high"), reference (the reference image's file, the name again where the table has no such column) and simulated
(whether the corruption stands in for one that R-Bench photographed; 0 where the table has no such column).

References
----------
Li et al. (2024). R-Bench: are your large multimodal models robust to real-world corruptions? arXiv 2410.05474.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import pandas as pd

from psyprobe.corruption import STRENGTHS
from psyprobe.errors import InputError
from psyprobe.files.images import decode_image
from psyprobe.tasks.tables import read_table

TASKS = ("MCQ", "VQA", "CAP")
COLUMNS = ("name", "question", "choice", "answer", "type", "score", "distortion", "strength")
#: Where an option starts: the released table writes "B." and once "B:"; options end with ";", ASCII or full-width.
_OPTION = re.compile(r"\s*([A-E])\s*[.:]\s*")


@dataclass(frozen=True)
class ItemReport:
    """What an item table holds, and what in it is odd."""

    #: Of the file.
    encoding: str
    #: Items by task and strength.
    counts: Mapping[tuple[str, str], int]
    #: Smallest and largest number of items of one dimension and task.
    cells: tuple[int, int]
    #: Multiple-choice items whose key is none of their options.
    keys_without_option: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """The report as plain values that JSON can hold."""
        counts = [{"task": task, "strength": strength, "items": n} for (task, strength), n in self.counts.items()]
        return {**vars(self), "counts": counts}

    def __str__(self) -> str:
        lines = [f"{task}, {strength}: {n} items" for (task, strength), n in self.counts.items()]
        lines.append(
            f"{self.cells[0]} to {self.cells[1]} items of each dimension and task; the file is in {self.encoding}"
        )
        lines += [f"the key of {name} is none of its options" for name in self.keys_without_option]
        return "\n".join(lines)


def read_items(path: str | Path) -> pd.DataFrame:
    """Read an item table, as released (in GBK) or in UTF-8.

    Parameters
    ----------
    path : str or Path
        A CSV with the columns name, question, choice, answer, type, score, distortion, strength.

    Returns
    -------
    pandas.DataFrame
        An item table; the file's encoding is in ``attrs["encoding"]``.

    Raises
    ------
    InputError
        The file cannot be read, a column is missing, a name comes twice, or a value is not allowed.
    """
    table, encoding = read_table(path, COLUMNS)
    twice = table["name"][table["name"].duplicated()]
    if len(twice):
        raise InputError(f"{path}: item {twice.iloc[0]} is there twice; keep one of them")
    rows = [_item(path, row) for row in table.to_dict("records")]
    items = pd.DataFrame(rows)
    items.attrs["encoding"] = encoding
    return items


def write_items(folder: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write the item table of a set: rows as the release has them, with reference and simulated."""
    table = pd.DataFrame(rows, columns=[*COLUMNS, "reference", "simulated"])
    table.to_csv(folder / "items.csv", index=False, lineterminator="\n")


def _item(path: str | Path, row: dict[str, str]) -> dict[str, Any]:
    def wrong(column: str, allowed: str) -> InputError:
        return InputError(f"{path}, item {row['name']}: {column} is {row[column]!r}; give {allowed}")

    if row["type"] not in TASKS:
        raise wrong("type", " or ".join(TASKS))
    if not re.fullmatch(r"[1-9]|[12]\d|3[0-3]", row["distortion"]):
        raise wrong("distortion", "a whole number from 1 to 33")
    if row["strength"] not in ("1", "2", "3"):
        raise wrong("strength", "1, 2 or 3")
    try:
        quality = float(row["score"]) if row["score"] else None
    except ValueError:
        raise wrong("score", "a number, or nothing") from None
    if row.get("simulated", "0") not in ("0", "1"):
        raise wrong("simulated", "0 or 1")
    options = split_options(row["choice"]) if row["type"] == "MCQ" else ()
    key = row["answer"].strip()
    if row["type"] == "MCQ" and (len(key) != 1 or key not in "ABCDE" or not options):
        raise wrong("answer", "a letter, and options in the column choice")
    captions = _captions(row["answer"]) if row["type"] == "CAP" else ()
    if row["type"] == "CAP" and not captions:
        raise wrong("answer", "reference captions, as a list in Python's notation")
    return {
        "name": row["name"],
        "question": row["question"],
        "options": options,
        "key": captions or key,
        "task": row["type"],
        "quality": quality,
        "dimension": int(row["distortion"]),
        "strength": STRENGTHS[int(row["strength"]) - 1],
        "reference": row.get("reference") or row["name"],
        "simulated": int(row.get("simulated", "0")),
    }


def _captions(text: str) -> tuple[str, ...]:
    try:
        found = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return ()
    return tuple(map(str, found)) if isinstance(found, list) else ()


def split_options(text: str) -> tuple[str, ...]:
    """The options of a multiple-choice item; none if their letters are not A, B, C, ... in order.

    Examples
    --------
    >>> split_options("A.Left; B.Right")
    ('Left', 'Right')
    >>> split_options("A. one； B: two;C.three")
    ('one', 'two', 'three')
    """
    found: list[tuple[str, str]] = []
    for part in re.split(r"[;；]", text):
        start = _OPTION.match(part)
        if start is None or (found and start.group(1) != chr(ord(found[-1][0]) + 1)):
            if not found:
                return ()
            # A semicolon within an option.
            found[-1] = (found[-1][0], f"{found[-1][1]};{part.rstrip()}".rstrip("; "))
            continue
        found.append((start.group(1), part[start.end() :].strip()))
    return tuple(option for _, option in found) if found and found[0][0] == "A" else ()


def check_items(items: pd.DataFrame) -> ItemReport:
    """What an item table holds, and what in it is odd.

    Parameters
    ----------
    items : pandas.DataFrame
        An item table.

    Returns
    -------
    ItemReport
        It prints as a few lines.
    """
    counts = items.groupby(["task", "strength"]).size()
    cells = items.groupby(["dimension", "task"]).size()
    choices = items[items["task"] == "MCQ"]
    odd = [
        name
        for name, key, options in zip(choices["name"], choices["key"], choices["options"], strict=True)
        if "ABCDE".index(key) >= len(options)
    ]
    order = [(task, strength) for task in TASKS for strength in STRENGTHS if (task, strength) in counts.index]
    return ItemReport(
        encoding=str(items.attrs.get("encoding", "memory")),
        counts={cell: int(counts[cell]) for cell in order},
        cells=(int(cells.min()), int(cells.max())),
        keys_without_option=tuple(odd),
    )


#: Folders of a set by which of its images they hold.
KINDS = ("ref", "dis")


@dataclass(frozen=True)
class ImageSet:
    """Items with their images, every one of which can be read."""

    #: Where it lies.
    folder: Path
    #: An item table.
    items: pd.DataFrame
    #: SHA-256 of every image file.
    digests: Mapping[Path, str]
    #: Why items were left out; empty unless that was asked for.
    skipped: tuple[str, ...]

    def path(self, kind: str, item: Mapping[str, object]) -> Path:
        """The image file of an item, kind "ref" or "dis"."""
        return self.folder / kind / str(item["reference" if kind == "ref" else "name"])


def read_set(folder: str | Path, *, skip: bool = False) -> ImageSet:
    """Read a set, and decode each of its images once: none may fail after an hour of questions.

    Parameters
    ----------
    folder : str or Path
        Of the set.
    skip : bool
        Leave out items whose images cannot be read and say so, instead of ending with the first.

    Raises
    ------
    InputError
        There is no such set, an image is missing or cannot be read as it is, or nothing is left.
    """
    place = Path(folder)
    items = read_items(place / "items.csv")
    checked: dict[Path, str] = {}
    problems: dict[Path, str] = {}
    kept, skipped = [], []
    for row in items.to_dict("records"):
        paths = [place / "ref" / _inside(row["reference"]), place / "dis" / _inside(row["name"])]
        for path in paths:
            if path in checked or path in problems:
                continue
            try:
                raw = path.read_bytes()
                decode_image(raw, str(path))
                checked[path] = hashlib.sha256(raw).hexdigest()
            except OSError as error:
                problems[path] = f"{path} cannot be read: {error.strerror}"
            except InputError as error:
                problems[path] = str(error)
        bad = next((problems[path] for path in paths if path in problems), "")
        if bad and not skip:
            raise InputError(bad)
        kept.append(not bad)
        if bad:
            skipped.append(f"{row['name']}: {bad}")
    if not any(kept):
        raise InputError(f"no item of {folder} is left; every one has an image that cannot be read")
    left = items[kept].reset_index(drop=True)
    left.attrs.update(items.attrs)
    return ImageSet(place, left, checked, tuple(skipped))


def _inside(name: str) -> str:
    """A file name that leads out of the folder is no file name."""
    if Path(name).name != name:
        raise InputError(f"image {name!r} is not in the set's folder; give a file name without folders")
    return name


@dataclass(frozen=True)
class Wording:
    """How the questions of a task are put."""

    #: With {question} and {options} to be filled in.
    text: str
    #: Where an answer is cut off.
    max_tokens: int

    def filled(self, question: str, options: Sequence[str] = ()) -> str:
        """The prompt for one item; what stands in braces inside a question is left as it is.

        Examples
        --------
        >>> print(wordings()["MCQ"].filled("What is it?", ("a cat", "a dog")))
        What is it?
        A. a cat
        B. a dog
        Reply with the letter of the right option and nothing else.
        """
        parts = {"{question}": question, "{options}": lettered(options)}
        return re.sub(r"\{(?:question|options)\}", lambda found: parts[found.group()], self.text)


def lettered(options: Sequence[str]) -> str:
    """Options under their letters, one a line."""
    return "\n".join(f"{letter}. {option}" for letter, option in zip("ABCDE", options, strict=False))


@functools.cache
def _page() -> Mapping[str, object]:
    return tomllib.loads(files("psyprobe.tasks.r_bench").joinpath("prompts.toml").read_text(encoding="utf-8"))


def wording_version() -> str:
    """The version of all wordings; another one asks anew."""
    return str(_page()["version"])


@functools.cache
def wordings() -> dict[str, Wording]:
    """The wording of each task: "MCQ", "VQA" and "CAP"."""
    found = {}
    for task, row in _page().items():
        if isinstance(row, dict):
            found[task] = Wording(row["text"].strip(), row["max_tokens"])
    return found
