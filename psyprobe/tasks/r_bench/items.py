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
import io
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from psyprobe.corruption import STRENGTHS
from psyprobe.errors import InputError

TASKS = ("MCQ", "VQA", "CAP")
COLUMNS = ("name", "question", "choice", "answer", "type", "score", "distortion", "strength")
#: Where an option starts: the released table writes "B." and once "B:"; options end with ";", ASCII or full-width.
_OPTION = re.compile(r"\s*([A-E])\s*[.:]\s*")


@dataclass(frozen=True)
class ItemReport:
    """What an item table holds, and what in it is odd.

    Attributes
    ----------
    encoding : str
        Of the file.
    counts : mapping of (str, str) to int
        Items by task and strength.
    cells : tuple of int
        Smallest and largest number of items of one dimension and task.
    keys_without_option : tuple of str
        Multiple-choice items whose key is none of their options.
    """

    encoding: str
    counts: Mapping[tuple[str, str], int]
    cells: tuple[int, int]
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


def read_table(path: str | Path, columns: tuple[str, ...], separator: str = ",") -> tuple[pd.DataFrame, str]:
    """A CSV as text, in UTF-8 or GBK, whichever it is.

    Parameters
    ----------
    path : str or Path
        The file.
    columns : tuple of str
        Those it must have.
    separator : str
        Between cells.

    Returns
    -------
    table : pandas.DataFrame
        All cells as text; "NA" stays "NA".
    encoding : str
        "UTF-8" or "GBK".

    Raises
    ------
    InputError
        It is no such table.
    """
    try:
        raw = Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None
    # Text in GBK is hardly ever valid UTF-8, and the other way round it often is: so UTF-8 is tried first.
    for encoding in ("UTF-8", "GBK"):
        try:
            text = raw.decode(encoding.lower() + ("-sig" if encoding == "UTF-8" else ""))
            break
        except UnicodeDecodeError:
            continue
    else:
        raise InputError(f"{path} is neither UTF-8 nor GBK; save it as CSV in UTF-8")
    try:
        table = pd.read_csv(io.StringIO(text), dtype=str, keep_default_na=False, sep=separator)
    except (pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        raise InputError(f"{path} is no CSV: {error}") from None
    missing = [name for name in columns if name not in table]
    if missing:
        raise InputError(f"{path} has no column {missing[0]!r}; it needs {', '.join(columns)}")
    if not len(table):
        raise InputError(f"{path} has no rows")
    return table, encoding


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
    """The options of a multiple-choice item.

    Parameters
    ----------
    text : str
        As the released table writes them.

    Returns
    -------
    tuple of str
        In the order of their letters; empty if the letters are not A, B, C, ... in order.

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
