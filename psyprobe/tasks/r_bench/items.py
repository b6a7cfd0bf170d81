"""The items of R-Bench: the released table with its quirks, and sets of one's own in the same form
or VLMEvalKit's.

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
import base64
import binascii
import functools
import itertools
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import pandas as pd

from psyprobe.corruption import STRENGTHS, dimension_numbered
from psyprobe.errors import InputError
from psyprobe.files.images import decode_image, file_digest, read_image
from psyprobe.files.output import make_folder, write_text, write_whole
from psyprobe.tasks.tables import read_table, write_tsv

TASKS = ("MCQ", "VQA", "CAP")
COLUMNS = ("name", "question", "choice", "answer", "type", "score", "distortion", "strength")
#: Where an option starts: the released table writes "B." and once "B:"; options end with ";", ASCII
#: or full-width.
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
        counts = [
            {"task": task, "strength": strength, "items": n}
            for (task, strength), n in self.counts.items()
        ]
        return {**vars(self), "counts": counts}

    def __str__(self) -> str:
        lines = [f"{task}, {strength}: {n} items" for (task, strength), n in self.counts.items()]
        low, high = self.cells
        number = (
            f"{low} to {high} items" if high > low else "1 item" if high == 1 else f"{high} items"
        )
        lines.append(f"{number} of each dimension and task; the file is in {self.encoding}")
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
    check_once(table, "name", f"{path}: item")
    items = pd.DataFrame([_item(path, row) for row in table.to_dict("records")])
    items.attrs["encoding"] = encoding
    return items


def check_once(table: pd.DataFrame, column: str, what: str) -> None:
    """Refuse a table in which a name of items is there twice."""
    twice = table[column][table[column].duplicated()]
    if len(twice):
        raise InputError(f"{what} {twice.iloc[0]} is there twice; keep one of them")


def write_items(folder: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write the item table of a set: rows as the release has them, with reference and simulated."""
    table = pd.DataFrame(rows, columns=[*COLUMNS, "reference", "simulated"])
    write_text(folder / "items.csv", table.to_csv(index=False, lineterminator="\n"))


def _item(path: str | Path, row: dict[str, str]) -> dict[str, Any]:
    task = row["type"]
    key = row["answer"].strip()
    options = split_options(row["choice"]) if task == "MCQ" else ()
    captions = _captions(row["answer"]) if task == "CAP" else ()
    lettered_key = len(key) == 1 and key in "ABCDE" and len(options) > 0
    simulated = row.get("simulated", "0")
    try:
        quality = float(row["score"]) if row["score"] else None
        rated = True
    except ValueError:
        quality = None
        rated = False
    for column, right, allowed in (
        ("type", task in TASKS, " or ".join(TASKS)),
        (
            "distortion",
            re.fullmatch(r"[1-9]|[12]\d|3[0-3]", row["distortion"]),
            "a whole number from 1 to 33",
        ),
        ("strength", row["strength"] in ("1", "2", "3"), "1, 2 or 3"),
        ("score", rated, "a number, or nothing"),
        ("simulated", simulated in ("0", "1"), "0 or 1"),
        ("answer", task != "MCQ" or lettered_key, "a letter, and options in the column choice"),
        ("answer", task != "CAP" or captions, "reference captions, as a list in Python's notation"),
    ):
        if not right:
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
    found: list[str] = []
    for part in re.split(r"[;；]", text):
        start = _OPTION.match(part)
        if start and start.group(1) == "ABCDE"[len(found) :][:1]:
            found.append(part[start.end() :].strip())
        elif found:
            # A semicolon within an option.
            found[-1] = f"{found[-1]};{part.rstrip()}".rstrip("; ")
        else:
            return ()
    return tuple(found)


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
    order = [
        (task, strength)
        for task in TASKS
        for strength in STRENGTHS
        if (task, strength) in counts.index
    ]
    return ItemReport(
        encoding=str(items.attrs.get("encoding", "memory")),
        counts={cell: int(counts[cell]) for cell in order},
        cells=(int(cells.min()), int(cells.max())),
        keys_without_option=tuple(row["name"] for row in without_option(items)),
    )


def without_option(items: pd.DataFrame) -> list[dict[Any, Any]]:
    """The multiple-choice items whose key is none of their options."""
    choices = items[items["task"] == "MCQ"].to_dict("records")
    return [row for row in choices if "ABCDE".index(row["key"]) >= len(row["options"])]


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
    digests: dict[Path, str] = {}
    kept = []
    skipped = []
    look = functools.cache(_look)
    for row in items.to_dict("records"):
        paths = (place / "ref" / _inside(row["reference"]), place / "dis" / _inside(row["name"]))
        found = {path: look(path) for path in paths}
        digests |= {path: digest for path, (digest, _) in found.items()}
        bad = next((problem for _, problem in found.values() if problem), "")
        if bad and not skip:
            raise InputError(bad)
        kept.append(not bad)
        if bad:
            skipped.append(f"{row['name']}: {bad}")
    if not any(kept):
        raise InputError(f"no item of {folder} is left; every one has an image that cannot be read")
    left = items[kept].reset_index(drop=True)
    left.attrs.update(items.attrs)
    return ImageSet(place, left, digests, tuple(skipped))


def _look(path: Path) -> tuple[str, str]:
    """The digest of an image that can be read, or what is wrong with it."""
    try:
        read_image(path)
        return file_digest(path), ""
    except InputError as error:
        return "", str(error)


def _inside(name: str) -> str:
    """A file name that leads out of the folder is no file name."""
    if Path(name).name != name:
        raise InputError(
            f"image {name!r} is not in the set's folder; give a file name without folders"
        )
    return name


@functools.cache
def wordings() -> Mapping[str, Any]:
    """The "version" of all wordings, and by task its "text" and "max_tokens", where an answer is
    cut off.
    """
    return tomllib.loads(
        files("psyprobe.tasks.r_bench").joinpath("prompts.toml").read_text(encoding="utf-8")
    )


def prompt(task: str, question: str, options: Sequence[str] = ()) -> str:
    """The prompt for one item; what stands in braces inside a question is left as it is.

    Examples
    --------
    >>> print(prompt("MCQ", "What is it?", ("a cat", "a dog")))
    What is it?
    A. a cat
    B. a dog
    Reply with the letter of the right option and nothing else.
    """
    parts = {"{question}": question, "{options}": lettered(options)}
    return re.sub(
        r"\{(?:question|options)\}",
        lambda found: parts[found.group()],
        wordings()[task]["text"].strip(),
    )


def lettered(options: Sequence[str]) -> str:
    """Options under their letters, one a line."""
    return "\n".join(
        f"{letter}. {option}" for letter, option in zip("ABCDE", options, strict=False)
    )


#: Files by which images they hold, named as VLMEvalKit names the data sets.
FILES = {"dis": "R-Bench-Dis.tsv", "ref": "R-Bench-Ref.tsv"}
#: Shorter text in the column image is the index of a row with the same image.
_POINTER = 64


def export_tsv(images: ImageSet, folder: str | Path) -> dict[str, Path]:
    """Write the multiple-choice items of a set as VLMEvalKit reads them.

    Parameters
    ----------
    images : ImageSet
        As `read_set` gives it.
    folder : str or Path
        Gets both files; put them into VLMEvalKit's ``$LMUData`` under names of your own where you
        use its R-Bench too.

    Returns
    -------
    dict of str to Path
        "dis" and "ref".

    Raises
    ------
    InputError
        The set has no multiple choice.
    """
    choices = images.items[images.items["task"] == "MCQ"].to_dict("records")
    if not choices:
        raise InputError("the set has no multiple choice, and VLMEvalKit's R-Bench is nothing else")
    place = make_folder(folder)
    letters = "ABCDE"[: max(len(row["options"]) for row in choices)]
    written = {}
    for kind, file in FILES.items():
        first: dict[Path, int] = {}
        rows = []
        for index, row in enumerate(choices):
            path = images.path(kind, row)
            picture = (
                str(first[path]) if path in first else base64.b64encode(path.read_bytes()).decode()
            )
            first.setdefault(path, index)
            dimension = dimension_numbered(row["dimension"])
            told: dict[str, Any] = {"index": index, "image": picture, "question": row["question"]}
            told |= dict(itertools.zip_longest(letters, row["options"], fillvalue=""))
            told |= {
                "answer": row["key"],
                "category": dimension.step,
                "l2-category": dimension.name,
            }
            told |= {
                "name": row["name"],
                "reference": row["reference"],
                "distortion": row["dimension"],
            }
            level = STRENGTHS.index(row["strength"]) + 1
            rows.append(told | {"strength": level, "simulated": row["simulated"]})
        written[kind] = place / file
        write_tsv(pd.DataFrame(rows), written[kind])
    return written


def import_tsv(corrupted: str | Path, reference: str | Path, output: str | Path) -> int:
    """Make a set of VLMEvalKit's two tables.

    Parameters
    ----------
    corrupted, reference : str or Path
        TSV files with the columns index, image, question, A, B, ..., answer, and in that of
        corrupted images distortion (1 to 33) and strength (1 to 3); name may be there. Rows belong
        together by index.
    output : str or Path
        Folder of the set, new or empty.

    Returns
    -------
    int
        Number of items.

    Raises
    ------
    InputError
        A column is missing, an index is in one file only or there twice, or an image cannot be
        read.
    """
    tables = {"dis": _rows(corrupted), "ref": _rows(reference)}
    for column in ("distortion", "strength"):
        if column not in next(iter(tables["dis"].values())):
            added = "add the dimension's number (1 to 33) and the strength (1 to 3)"
            raise InputError(f"{corrupted} has no column {column!r}; {added}")
    alone = set(tables["dis"]) ^ set(tables["ref"])
    if alone:
        raise InputError(
            f"index {min(alone)} is in one of the files only; both need the same items"
        )
    folder = make_folder(output, empty=True)
    for kind in tables:
        (folder / kind).mkdir()
    rows = []
    for index, row in tables["dis"].items():
        name = Path(row.get("name") or f"{index}.png").name
        sources = {"dis": name, "ref": Path(row.get("reference") or name).name}
        for kind, file in sources.items():
            raw = _image(tables[kind], index, str(corrupted if kind == "dis" else reference))
            _write_bytes(folder / kind / file, raw)
        options = [f"{letter}.{row[letter]}" for letter in "ABCDE" if row.get(letter)]
        told = {
            "name": name,
            "choice": "; ".join(options),
            "type": "MCQ",
            "reference": sources["ref"],
        }
        rows.append(
            {**row, **told, "score": row.get("score", ""), "simulated": row.get("simulated") or "0"}
        )
    write_items(folder, rows)
    return len(rows)


def _write_bytes(path: Path, raw: bytes) -> None:
    write_whole(path, lambda partial: partial.write_bytes(raw))


def _rows(path: str | Path) -> dict[str, dict[str, Any]]:
    table, _ = read_table(path, ("index", "image", "question", "A", "answer"), "\t")
    short = table["index"][table.isna().any(axis=1)]
    if len(short):
        raise InputError(
            f"{path}: the row of index {short.iloc[0]} has fewer cells than the heading"
        )
    check_once(table, "index", f"{path}: index")
    return {row["index"]: row for row in table.to_dict("records")}


def _image(rows: dict[str, dict[str, Any]], index: str, path: str) -> bytes:
    text = rows[index]["image"]
    if len(text) <= _POINTER:
        if text not in rows or len(rows[text]["image"]) <= _POINTER:
            raise InputError(
                f"{path}: the image of index {index} is {text!r}, which is no row with an image"
            )
        text = rows[text]["image"]
    try:
        raw = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise InputError(f"{path}: the image of index {index} is no base64") from None
    decode_image(raw, f"{path}, index {index}")
    return raw
