"""MVP-Bench as a table of VLMEvalKit: to be run there, and brought back.

Its circular evaluation wants whole numbers as index: that of a multiple choice's rotation k is the item's number plus
(k - 1) million, and g_index names the item. Yes/no questions are named so that its rating of HallusionBench groups
them.
"""

from __future__ import annotations

import base64
import csv
from pathlib import Path

import pandas as pd

from psyprobe.errors import InputError
from psyprobe.tasks.mvp_bench.questions import split_choices
from psyprobe.tasks.tables import read_bytes

_LETTERS = "ABCDE"
_STEP = 1_000_000


def write_vlmevalkit(questions: pd.DataFrame, images: str | Path, output: str | Path) -> dict[str, Path]:
    """Write question tables as VLMEvalKit reads them, with the images inside.

    Parameters
    ----------
    questions : pandas.DataFrame
        A question table; multiple choice goes out in the circular run where there is one, else in the main run.
    images : str or Path
        The folder that its image paths start from.
    output : str or Path
        The folder to write to.

    Returns
    -------
    dict of str to Path
        "yes_no" and "mcq" with their files, those that have rows.

    Raises
    ------
    InputError
        An image is missing, or the folder is none.
    """
    folder = Path(output)
    if not folder.is_dir():
        raise InputError(f"there is no folder {str(output)!r} to write to; make it first")
    yes_no, choices = _by_task(questions)
    if (choices["run"] == "circular").any():
        choices = choices[choices["run"] == "circular"]
    written = {}
    for name, file, table, rows in (
        ("yes_no", "MVPBench_YN.tsv", yes_no, _yes_no_rows),
        ("mcq", "MVPBench_MCQ_circular.tsv", choices, _choice_rows),
    ):
        if len(table):
            frame = pd.DataFrame(rows(table))
            frame["image"] = _encoded(table["image"].tolist(), frame["index"].tolist(), Path(images))
            frame.to_csv(folder / file, sep="\t", index=False, quoting=csv.QUOTE_ALL)
            written[name] = folder / file
    return written


def vlmevalkit_index(questions: pd.DataFrame) -> pd.Series:
    """The index, as text, that each question_id has in the tables of `write_vlmevalkit`."""
    yes_no, choices = _by_task(questions)
    rows = _yes_no_rows(yes_no) + _choice_rows(choices)
    names = [*yes_no["question_id"], *choices["question_id"]]
    return pd.Series([str(row["index"]) for row in rows], index=names)


def _by_task(questions: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    yes_no = questions["task"] == "yes_no"
    return questions[yes_no], questions[~yes_no]


def _yes_no_rows(table: pd.DataFrame) -> list[dict[str, object]]:
    numbers = table.groupby(["pair", "question"], sort=False).ngroup()
    return [
        {
            "index": f"mvp_yn_{row['level']}_{row['pair']}_{int(row['kind'] == 'M')}_{number}",
            "question": row["question"],
            "answer": row["answer"].capitalize(),
            "category": row["level"],
            "l2-category": row["level"],
        }
        for row, number in zip(table.to_dict("records"), numbers, strict=True)
    ]


def _choice_rows(table: pd.DataFrame) -> list[dict[str, object]]:
    rows = []
    for place, row in enumerate(table.to_dict("records")):
        stem, options, _ = split_choices(row["question"])
        item = row["mcq"] if row["run"] == "circular" else place
        filled = dict(zip(_LETTERS, (*options, *[""] * (len(_LETTERS) - len(options))), strict=True))
        rows.append(
            {
                "index": item + _STEP * max(row["rotation"] - 1, 0),
                "g_index": item,
                "question": stem,
                **filled,
                "answer": row["answer"],
                "category": row["task"],
                "l2-category": row["level"],
            }
        )
    return rows


def _encoded(names: list[str], indices: list[object], folder: Path) -> list[str]:
    """Base64 of each image, and the index of its first row where it comes again, as VLMEvalKit wants it."""
    first: dict[str, str] = {}
    cells = []
    for name, index in zip(names, indices, strict=True):
        if name in first:
            cells.append(first[name])
            continue
        first[name] = str(index)
        cells.append(base64.b64encode(read_bytes(folder / name)).decode())
    return cells
