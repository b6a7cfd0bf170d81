"""Read the items of R-Bench: the released table with its quirks, or a set in the same form.

An item table has one row a pair of reference and corrupted image: name (of the image file; unique),
question, options (a tuple; empty but for multiple choice), key (a letter, a short answer, or the
reference captions as a tuple), task, quality (of the reference image; None where the table leaves
it open), dimension (1 to 33), strength ("low", "mid", "high"), reference (the reference image's
file, the name again where the table has no such column) and simulated (whether the corruption
stands in for one that R-Bench photographed; 0 where the table has no such column).

References
----------
Li et al. (2024). R-Bench: are your large multimodal models robust to real-world corruptions? arXiv
2410.05474.
"""

from __future__ import annotations

import ast
import functools
import itertools
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from psyprobe.corruption import STRENGTHS, dimensions
from psyprobe.errors import InputError
from psyprobe.files.images import file_digest, read_image
from psyprobe.files.json_types import JsonMapping, JsonObject
from psyprobe.files.output import write_text
from psyprobe.files.parsing import packaged_toml
from psyprobe.tasks.tables import (
    read_table,
    refuse_duplicates,
)

TASKS = ("MCQ", "VQA", "CAP")
COLUMNS = (
    "name",
    "question",
    "choice",
    "answer",
    "type",
    "score",
    "distortion",
    "strength",
)
#: Start of an option: the released table writes "B." and once "B:"; options end with ";", ASCII or
#: full-width.
_OPTION = re.compile(r"\s*([A-E])\s*[.:]\s*")


@dataclass(frozen=True)
class ItemReport:
    """What an item table holds, and what in it is odd."""

    #: Encoding of the file.
    encoding: str
    #: Items by task and strength.
    counts: Mapping[tuple[str, str], int]
    #: Smallest and largest number of items of one dimension and task.
    cells: tuple[int, int]
    #: Multiple-choice items whose key is none of their options.
    keys_without_option: tuple[str, ...]

    def to_dict(self) -> JsonObject:
        """Return the report as JSON values."""
        counts = [
            {"task": task, "strength": strength, "items": n}
            for (task, strength), n in self.counts.items()
        ]
        return {**vars(self), "counts": counts}

    def __str__(self) -> str:
        lines = [
            f"{task}, {strength}: {n} items"
            for (task, strength), n in self.counts.items()
        ]
        low, high = self.cells
        count = f"{low} to {high}" if high > low else str(high)
        count += " item" if high == 1 else " items"
        lines.append(
            f"{count} of each dimension and task; the file is in {self.encoding}"
        )
        lines += [
            f"the key of {name} is none of its options"
            for name in self.keys_without_option
        ]
        return "\n".join(lines)


def read_items(path: str | Path) -> pd.DataFrame:
    """Read an R-Bench item table, as released (in GBK) or in UTF-8.

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
    refuse_duplicates(table["name"], f"{path}: item")
    items = pd.DataFrame([_read_item(path, row) for row in table.to_dict("records")])
    items.attrs["encoding"] = encoding
    return items


def write_items(folder: Path, rows: Sequence[JsonMapping]) -> None:
    """Write the item table of a set, with columns as released."""
    table = pd.DataFrame(rows, columns=[*COLUMNS, "reference", "simulated"])
    write_text(folder / "items.csv", table.to_csv(index=False, lineterminator="\n"))


def _read_item(path: str | Path, row: dict[str, str]) -> JsonObject:
    """Check one row of R-Bench's table, and convert it to an item."""
    task = row["type"]
    key = row["answer"].strip()
    options = split_options(row["choice"]) if task == "MCQ" else ()
    captions = _parse_captions(row["answer"]) if task == "CAP" else ()
    lettered_key = len(key) == 1 and key in "ABCDE" and len(options) > 0
    simulated = row.get("simulated", "0")
    try:
        quality = float(row["score"]) if row["score"] else None
        rated = True
    except ValueError:
        rated = False
    numbers = map(str, range(1, len(dimensions()) + 1))
    for column, valid, allowed in (
        ("type", task in TASKS, " or ".join(TASKS)),
        ("distortion", row["distortion"] in numbers, "a whole number from 1 to 33"),
        ("strength", row["strength"] in ("1", "2", "3"), "1, 2 or 3"),
        ("score", rated, "a number, or nothing"),
        ("simulated", simulated in ("0", "1"), "0 or 1"),
        (
            "answer",
            task != "MCQ" or lettered_key,
            "a letter, and options in the column choice",
        ),
        (
            "answer",
            task != "CAP" or captions,
            "reference captions, as a list in Python's notation",
        ),
    ):
        if not valid:
            raise InputError(
                f"{path}, item {row['name']}: {column} is {row[column]!r}; give {allowed}"
            )
    return {
        "name": row["name"],
        "question": row["question"],
        "options": options,
        "key": captions or key,
        "task": task,
        "quality": quality,
        "dimension": int(row["distortion"]),
        "strength": STRENGTHS[int(row["strength"]) - 1],
        "reference": row.get("reference") or row["name"],
        "simulated": int(simulated),
    }


def _parse_captions(text: str) -> tuple[str, ...]:
    """Parse reference captions in Python's list notation; none if they cannot be."""
    try:
        captions = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return ()
    return tuple(map(str, captions)) if isinstance(captions, list) else ()


def split_options(text: str) -> tuple[str, ...]:
    """Split the options of a multiple-choice item; none unless their letters are in order.

    Examples
    --------
    >>> split_options("A.Left; B.Right")
    ('Left', 'Right')
    >>> split_options("A. one； B: two;C.three")
    ('one', 'two', 'three')
    """
    options: list[str] = []
    for part in re.split(r"[;；]", text):
        start = _OPTION.match(part)
        if start and start.group(1) == "ABCDE"[len(options) :][:1]:
            options.append(part[start.end() :].strip())
        elif options:
            # A semicolon within an option.
            options[-1] = f"{options[-1]};{part.rstrip()}".rstrip("; ")
        else:
            return ()
    return tuple(options)


def check_items(items: pd.DataFrame) -> ItemReport:
    """Count what an item table holds, and report what in it is odd.

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
    return ItemReport(
        encoding=str(items.attrs.get("encoding", "memory")),
        counts={
            cell: int(counts[cell])
            for cell in itertools.product(TASKS, STRENGTHS)
            if cell in counts.index
        },
        cells=(int(cells.min()), int(cells.max())),
        keys_without_option=tuple(row["name"] for row in without_option(items)),
    )


def without_option(items: pd.DataFrame) -> list[dict[Any, Any]]:
    """List the multiple-choice items whose key is none of their options."""
    choices = items[items["task"] == "MCQ"].to_dict("records")
    return [row for row in choices if "ABCDE".index(row["key"]) >= len(row["options"])]


@dataclass(frozen=True)
class ImageSet:
    """Items with their images, every one of which can be read."""

    #: Folder of the set.
    folder: Path
    #: An item table.
    items: pd.DataFrame
    #: SHA-256 of every image file.
    digests: Mapping[Path, str]
    #: Why items were left out, if `read_set` was told to skip them.
    skipped: tuple[str, ...]

    def path(self, kind: str, item: Mapping[str, object]) -> Path:
        """Return the path of an item's image: kind "ref" (reference) or "dis" (corrupted)."""
        return self.folder / kind / str(item["reference" if kind == "ref" else "name"])


def read_set(folder: str | Path, *, skip: bool = False) -> ImageSet:
    """Read a set, decoding each of its images once so that none fails later.

    Parameters
    ----------
    folder : str or Path
        Folder of the set.
    skip : bool
        Leave out items whose images cannot be read and say so, instead of ending with the first.

    Raises
    ------
    InputError
        There is no such set, an image is missing or cannot be read as it is, or nothing is left.
    """
    root = Path(folder)
    items = read_items(root / "items.csv")
    digests: dict[Path, str] = {}
    readable = []
    skipped = []
    for item in items.to_dict("records"):
        paths = (
            root / "ref" / _file_name(item["reference"]),
            root / "dis" / _file_name(item["name"]),
        )
        try:
            for path in paths:
                if path not in digests:
                    read_image(path)
                    digests[path] = file_digest(path)
        except InputError as error:
            if not skip:
                raise
            # Where the set lies is nobody's business who reads the result.
            reason = str(error).replace(f"{root}{os.sep}", "")
            skipped.append(f"{item['name']}: {reason}")
        readable.append(digests.keys() >= set(paths))
    if not any(readable):
        raise InputError(
            f"no item of {folder} is left; every one has an image that cannot be read"
        )
    remaining = items[readable].reset_index(drop=True)
    remaining.attrs.update(items.attrs)
    return ImageSet(root, remaining, digests, tuple(skipped))


def _file_name(name: str) -> str:
    """Return a file name, refusing one that leads out of the set's folder."""
    if Path(name).name != name:
        raise InputError(
            f"image {name!r} is not in the set's folder; give a file name without folders"
        )
    return name


@functools.cache
def wordings() -> JsonMapping:
    """Read the version of the prompts, and the text and largest token count of each task."""
    return packaged_toml("psyprobe.tasks.r_bench", "prompts.toml")


def prompt(task: str, question: str, options: Sequence[str] = ()) -> str:
    """Build the prompt of one item from its task, question and options.

    Examples
    --------
    >>> print(prompt("MCQ", "What is it?", ("a cat", "a dog")))
    What is it?
    A. a cat
    B. a dog
    Reply with the letter of the right option and nothing else.
    """
    values = {"question": question, "options": lettered(options)}
    template = wordings()[task]["text"].strip()
    return re.sub(r"\{(question|options)\}", lambda match: values[match[1]], template)


def lettered(options: Sequence[str]) -> str:
    """Write options with their letters, one a line."""
    rows = zip("ABCDE", options, strict=False)
    return "\n".join(f"{letter}. {option}" for letter, option in rows)
