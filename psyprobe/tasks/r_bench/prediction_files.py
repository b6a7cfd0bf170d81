"""Tables of answers that others wrote: the authors' CSV, VLMEvalKit's and lmms-eval's files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd

from psyprobe.errors import InputError
from psyprobe.tasks.r_bench.items import read_table

#: What an answer is called: VLMEvalKit's, ours, lmms-eval's, and the authors'; the first that is there.
ANSWER_COLUMNS = ("prediction", "reply", "filtered_resps", "output", "answer")
#: What an item is called; VLMEvalKit's index is the number of a row in a TSV.
NAME_COLUMNS = ("name", "index", "doc_id")


def read_answers(path: str | Path) -> pd.Series:
    """Answers of a model about one image each.

    Parameters
    ----------
    path : str or Path
        A table with the columns name (or index, doc_id) and prediction (or reply, filtered_resps, output, answer):
        .csv as the authors released them, .xlsx, .tsv or .json as VLMEvalKit writes, .jsonl as lmms-eval does.

    Returns
    -------
    pandas.Series
        Text by name.

    Raises
    ------
    InputError
        It is no such table, a name has two different answers, or it holds keys in the place of answers.
    """
    table = _table(Path(path))
    name = next((column for column in NAME_COLUMNS if column in table), None)
    if name is None:
        raise InputError(f"{path} has no column 'name'; an item's name stands in {', '.join(NAME_COLUMNS)}")
    column = next((column for column in ANSWER_COLUMNS if column in table), None)
    if column is None:
        raise InputError(
            f"{path} has columns {', '.join(map(str, table))}; an answer stands in prediction, answer or reply"
        )
    if column == "answer" and "question" in table:
        raise InputError(
            f"{path} holds questions and in the column answer their keys; give a file with a column prediction"
        )
    return once(path, table.rename(columns={name: "name"}), column)


def once(path: str | Path, table: pd.DataFrame, column: str) -> pd.Series:
    """A column by name; rows that are there twice with the same contents are taken once."""
    kept = table[["name", column]].drop_duplicates()
    twice = kept["name"][kept["name"].duplicated()]
    if len(twice):
        raise InputError(f"{path}: {twice.iloc[0]} is there twice with different contents; keep one of them")
    return kept.set_index("name")[column]


def _table(path: Path) -> pd.DataFrame:
    suffix = path.suffix.lower()
    if suffix in (".json", ".jsonl"):
        return _json(path)
    if suffix == ".xlsx":
        return _sheet(path)
    if suffix in (".csv", ".tsv"):
        return read_table(path, (), "\t" if suffix == ".tsv" else ",")[0]
    raise InputError(f"{path} is no table of answers; give .csv, .tsv, .xlsx, .json or .jsonl")


def _sheet(path: Path) -> pd.DataFrame:
    import zipfile

    try:
        table = pd.read_excel(path, dtype=str, keep_default_na=False)
    except ImportError:
        raise InputError(f"{path} needs openpyxl: pip install 'psyprobe[excel]', or save it as CSV") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or 'it is no workbook'}") from None
    except (ValueError, KeyError, zipfile.BadZipFile):
        raise InputError(f"{path} is no Excel workbook; save it again, or as CSV") from None
    if not len(table):
        raise InputError(f"{path} has no rows")
    # Cells that were never written come as numbers that are none.
    return table.where(table.notna(), "")


def _json(path: Path) -> pd.DataFrame:
    """A list of objects, one object a line, or pandas' columns of rows, as VLMEvalKit's .json may be."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read: {getattr(error, 'strerror', None) or 'it is not UTF-8'}") from None
    try:
        found = json.loads(text)
    except (json.JSONDecodeError, RecursionError):
        try:
            found = [json.loads(line) for line in text.splitlines() if line.strip()]
        except (json.JSONDecodeError, RecursionError):
            raise InputError(f"{path} is no JSON, and no JSON lines; write it again") from None
    if isinstance(found, dict) and found and all(isinstance(column, dict) for column in found.values()):
        places = list(dict.fromkeys(place for column in found.values() for place in column))
        found = [{name: column.get(place) for name, column in found.items()} for place in places]
    rows = [found] if isinstance(found, dict) else found
    if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) for row in rows):
        raise InputError(f"{path} is no list of objects; it should hold one for each item")
    return pd.DataFrame([{name: _text(value) for name, value in row.items()} for row in rows]).fillna("")


def _text(value: Any) -> str:
    if isinstance(value, list):
        value = value[0] if value else ""
    return "" if value is None else str(value)
