"""Sets as VLMEvalKit's tables, R-Bench-Dis.tsv and R-Bench-Ref.tsv: multiple choice alone, since it has no more."""

from __future__ import annotations

import base64
import binascii
import csv
from pathlib import Path
from typing import Any

from psyprobe.corruption import STRENGTHS, dimensions
from psyprobe.errors import InputError
from psyprobe.files.images import decode_image
from psyprobe.files.output import make_folder
from psyprobe.tasks.r_bench.items import ImageSet, write_items
from psyprobe.tasks.tables import read_table

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
        Gets both files; put them into VLMEvalKit's ``$LMUData`` under names of your own where you use its R-Bench too.

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
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    letters = "ABCDE"[: max(len(row["options"]) for row in choices)]
    known = {each.id: each for each in dimensions().values()}
    written = {}
    for kind, file in FILES.items():
        first: dict[Path, int] = {}
        with (place / file).open("w", encoding="utf-8", newline="") as stream:
            writer = csv.writer(stream, delimiter="\t", quoting=csv.QUOTE_ALL, lineterminator="\n")
            own = ("name", "reference", "distortion", "strength", "simulated")
            writer.writerow(("index", "image", "question", *letters, "answer", "category", "l2-category", *own))
            for index, row in enumerate(choices):
                path = images.path(kind, row)
                picture = str(first[path]) if path in first else base64.b64encode(path.read_bytes()).decode()
                first.setdefault(path, index)
                dimension = known[row["dimension"]]
                options = [*row["options"], *[""] * (len(letters) - len(row["options"]))]
                level = STRENGTHS.index(row["strength"]) + 1
                mine = (row["name"], row["reference"], row["dimension"], level, row["simulated"])
                writer.writerow(
                    (index, picture, row["question"], *options, row["key"], dimension.step, dimension.name, *mine)
                )
        written[kind] = place / file
    return written


def import_tsv(corrupted: str | Path, reference: str | Path, output: str | Path) -> int:
    """Make a set of VLMEvalKit's two tables.

    Parameters
    ----------
    corrupted, reference : str or Path
        TSV files with the columns index, image, question, A, B, ..., answer, and in that of corrupted images distortion
        (1 to 33) and strength (1 to 3); name may be there. Rows belong together by index.
    output : str or Path
        Folder of the set, new or empty.

    Returns
    -------
    int
        Number of items.

    Raises
    ------
    InputError
        A column is missing, an index is in one file only or there twice, or an image cannot be read.
    """
    tables = {"dis": _rows(corrupted), "ref": _rows(reference)}
    for column in ("distortion", "strength"):
        if column not in next(iter(tables["dis"].values())):
            raise InputError(
                f"{corrupted} has no column {column!r}; add the dimension's number (1 to 33) and the strength (1 to 3)"
            )
    alone = set(tables["dis"]) ^ set(tables["ref"])
    if alone:
        raise InputError(f"index {min(alone)} is in one of the files only; both need the same items")
    folder = make_folder(output, empty=True)
    for kind in tables:
        (folder / kind).mkdir(parents=True)
    rows = []
    for index, row in tables["dis"].items():
        name = Path(row.get("name") or f"{index}.png").name
        sources = {"dis": name, "ref": Path(row.get("reference") or name).name}
        for kind, file in sources.items():
            raw = _image(tables[kind], index, str(corrupted if kind == "dis" else reference))
            (folder / kind / file).write_bytes(raw)
        options = [f"{letter}.{row[letter]}" for letter in "ABCDE" if row.get(letter)]
        rows.append(
            {
                "name": name,
                "question": row["question"],
                "choice": "; ".join(options),
                "answer": row["answer"],
                "type": "MCQ",
                "score": row.get("score", ""),
                "distortion": row["distortion"],
                "strength": row["strength"],
                "reference": sources["ref"],
                "simulated": row.get("simulated") or "0",
            }
        )
    write_items(folder, rows)
    return len(rows)


def _rows(path: str | Path) -> dict[str, dict[str, Any]]:
    table, _ = read_table(path, ("index", "image", "question", "A", "answer"), "\t")
    short = table["index"][table.isna().any(axis=1)]
    if len(short):
        raise InputError(f"{path}: the row of index {short.iloc[0]} has fewer cells than the heading")
    twice = table["index"][table["index"].duplicated()]
    if len(twice):
        raise InputError(f"{path}: index {twice.iloc[0]} is there twice; keep one of them")
    return {row["index"]: row for row in table.to_dict("records")}


def _image(rows: dict[str, dict[str, Any]], index: str, path: str) -> bytes:
    text = rows[index]["image"]
    if len(text) <= _POINTER:
        if text not in rows or len(rows[text]["image"]) <= _POINTER:
            raise InputError(f"{path}: the image of index {index} is {text!r}, which is no row with an image")
        text = rows[text]["image"]
    try:
        raw = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise InputError(f"{path}: the image of index {index} is no base64") from None
    decode_image(raw, f"{path}, index {index}")
    return raw
