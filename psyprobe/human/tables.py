"""Human data as small tables: comma-separated, with their source in lines that begin with #."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.errors import InputError

#: What a table of thresholds may give, as `_value` reads it; other columns say where people were measured.
MEASURES = ("sensitivity", "threshold", "contrast")
#: Quantities above 0.
_POSITIVE = (*MEASURES[:2], "frequency", "luminance", "area", "radius")


def read_human_table(name: str) -> tuple[str, dict[str, FloatArray]]:
    """The citation and the columns of a table of ``psyprobe/human/data``.

    Examples
    --------
    >>> citation, columns = read_human_table("foley1994")
    >>> citation[:17], sorted(columns)
    ('Foley, J. M. (199', ['mask_contrast', 'scored', 'threshold'])
    """
    lines = files("psyprobe.human").joinpath("data", f"{name}.csv").read_text(encoding="utf-8").splitlines()
    citation = " ".join(line.removeprefix("# ") for line in lines if line.startswith("#"))
    rows = list(csv.DictReader(line for line in lines if not line.startswith("#")))
    columns = {column: np.array([float(row[column]) for row in rows]) for column in rows[0]}
    return citation, columns


@dataclass(frozen=True)
class Thresholds:
    """What a table of one's own says."""

    #: Where people were measured: a column each, with one row a condition.
    conditions: Mapping[str, FloatArray]
    #: 1 / threshold there; the geometric mean of observers.
    sensitivity: FloatArray
    #: The colour direction, if there is a column of it.
    direction: str


def read_thresholds(path: Path) -> Thresholds:
    """A table of one's own, with a column for each level and ``sensitivity``, ``threshold`` or ``contrast``.

    Where there are several of these three, the first in this order is what was measured, and ``contrast`` is a level
    (of a pedestal). ``observer`` may name who was measured and ``direction`` the one colour direction. Lines that
    begin with # are passed over. Observers are averaged geometrically, each condition over those who did it.

    """
    header, rows = _read_rows(path)
    given = [name for name in MEASURES if name in header]
    if not given:
        raise InputError(f"{path.name} has no column {' or '.join(MEASURES)}; its columns are {', '.join(header)}")
    if "sensitivity" in given and "threshold" in given:
        raise InputError(f"{path.name} has the columns sensitivity and threshold; give one of them")
    measure = given[0]
    levels = [name for name in header if name not in (measure, "observer", "direction")]
    if not levels:
        raise InputError(f"{path.name} has no column for a level, such as frequency; say where people were measured")
    directions = sorted({row["direction"] for _, row in rows} if "direction" in header else ())
    if len(directions) > 1:
        raise InputError(f"{path.name} holds the directions {', '.join(directions)}; give each a file of its own")
    found: dict[tuple[float, ...], dict[str, tuple[int, float]]] = {}
    for line, row in rows:
        condition = tuple(_number(path, line, name, row[name], name in _POSITIVE) for name in levels)
        value = _number(path, line, measure, row[measure], True)
        people = found.setdefault(condition, {})
        observer = row.get("observer", "")
        if observer in people:
            who = f" of observer {observer!r}" if observer else ""
            raise InputError(f"{path.name} has the same condition{who} in lines {people[observer][0]} and {line}")
        people[observer] = line, value if measure == "sensitivity" else 1 / value
    columns = np.array(list(found), dtype=np.float64).T
    return Thresholds(
        dict(zip(levels, columns, strict=True)),
        np.array([_mean([value for _, value in people.values()]) for people in found.values()]),
        directions[0] if directions else "",
    )


def _read_rows(path: Path) -> tuple[list[str], list[tuple[int, dict[str, str]]]]:
    """Names of the columns, and each row with the number of its line."""
    if not path.is_file():
        raise InputError(
            f"there is no file {path.name!r} in {path.parent}; human.data is a study of the catalogue or a file"
        )
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
        kept = [(n, line) for n, line in enumerate(lines, 1) if line.strip() and not line.startswith("#")]
        cells = [[cell.strip() for cell in row] for row in csv.reader((line for _, line in kept), strict=True)]
    except (UnicodeDecodeError, csv.Error) as problem:
        raise InputError(f"{path.name} is no comma-separated text in UTF-8: {problem}") from None
    if len(cells) < 2:
        raise InputError(f"{path.name} has no rows; give a line of column names, and a line for each threshold")
    header = cells[0]
    if len(set(header)) < len(header) or "" in header:
        raise InputError(f"{path.name} has the columns {', '.join(header)}; name each, each by another name")
    if len(cells) != len(kept):
        raise InputError(f"{path.name} has a cell over several lines; keep each row in one")
    for (line, _), row in zip(kept, cells, strict=True):
        if len(row) != len(header):
            raise InputError(f"{path.name}, line {line} has {len(row)} cells, and there are {len(header)} columns")
    return header, [(n, dict(zip(header, row, strict=True))) for (n, _), row in zip(kept[1:], cells[1:], strict=True)]


def _number(path: Path, line: int, column: str, text: str, positive: bool) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or (positive and value <= 0):
        wanted = "a number above 0" if positive else "a finite number"
        raise InputError(f"{path.name}, line {line}: {column} is {text!r}; give {wanted}, or leave the row out")
    return value


def _mean(values: list[float]) -> float:
    return values[0] if len(values) == 1 else math.exp(math.fsum(map(math.log, values)) / len(values))
