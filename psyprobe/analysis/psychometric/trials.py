"""Fit thresholds to a file of trials: a staircase, a constant design or any other."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from psyprobe._json import JsonObject
from psyprobe._typing import FloatArray
from psyprobe.analysis.psychometric.fit import fit_psychometric
from psyprobe.analysis.psychometric.fit_result import PsychometricFit
from psyprobe.errors import InputError
from psyprobe.files.parsing import read_text
from psyprobe.human.points import LEVELS, Level

#: Columns with the answer of a trial: 1 for a right answer or a yes, else 0.
_ANSWER_COLUMNS = ("correct", "yes")


@dataclass(frozen=True, eq=False)
class Trials:
    """Counted answers, one row for each value of the level."""

    #: Level that varies besides contrast: "frequency", "luminance" or "area".
    level: Level
    #: Rising, shape (F,).
    values: FloatArray
    #: Shapes (F, L); `asked` is the number of trials, 0 where a contrast was not shown at a value.
    contrast: FloatArray
    yes: FloatArray
    asked: FloatArray
    #: Meaning of `yes`: "correct" or "yes".
    answer: str


def read_trials(path: str | Path) -> Trials:
    """Read the trials of one observer from a table of comma-separated text.

    Parameters
    ----------
    path : str or Path
        File with the columns ``frequency`` (cpd), ``luminance`` (cd/m²) or ``area`` (deg²);
        ``contrast``, above 0; and ``correct`` or ``yes``, 1 or 0. Other columns, and lines that
        begin with #, are passed over.

    Raises
    ------
    InputError
        A column is missing, or a value is not allowed.
    """
    lines = read_text(Path(path)).splitlines()
    table = [line for line in lines if line.strip() and not line.startswith("#")]
    rows = list(csv.DictReader(table, skipinitialspace=True))
    columns = {name.strip(): name for name in (rows[0] if rows else {}) if name}
    level = _single_column(path, columns, LEVELS)
    answer = _single_column(path, columns, _ANSWER_COLUMNS)
    if "contrast" not in columns:
        raise InputError(
            f"{path} has no column contrast; give one row a trial with {level}, contrast and "
            f"{answer}"
        )

    def numbers(name: str) -> FloatArray:
        return np.array([_number(path, row, columns[name]) for row in rows])

    level_values = numbers(level)
    contrasts = numbers("contrast")
    answers = numbers(answer)
    for name, column in ((level, level_values), ("contrast", contrasts)):
        if not (column > 0).all():
            raise InputError(
                f"{path} has a {name} of {column.min():g}; give values above 0"
            )
    valid = np.isin(answers, (0, 1))
    if not valid.all():
        raise InputError(
            f"{path} has a {answer} of {answers[~valid][0]:g}; give 1 or 0"
        )
    values, row_index = np.unique(level_values, return_inverse=True)
    contrast, column_index = np.unique(contrasts, return_inverse=True)
    shape = (len(values), len(contrast))
    yes = np.zeros(shape)
    np.add.at(yes, (row_index, column_index), answers)
    asked = np.zeros(shape)
    np.add.at(asked, (row_index, column_index), 1)
    return Trials(level, values, np.broadcast_to(contrast, shape), yes, asked, answer)


_Name = TypeVar("_Name", bound=str)


def _single_column(
    path: str | Path,
    columns: Mapping[str, str],
    names: Sequence[_Name],
) -> _Name:
    """Find which of several columns a table has, and raise unless there is just one."""
    present = [name for name in names if name in columns]
    if len(present) != 1:
        raise InputError(
            f"{path} has {len(present)} of the columns {', '.join(names)}; give one of them"
        )
    return present[0]


def _number(path: str | Path, row: dict[str, str], column: str) -> float:
    try:
        return float(row[column])
    except (TypeError, ValueError):
        raise InputError(
            f"{path} has {row[column]!r} as {column.strip()}; give a number"
        ) from None


def fit_trials(trials: Trials, **options: Any) -> PsychometricFit:
    """Fit a psychometric function at each value of the level, all with one lapse rate.

    Parameters
    ----------
    trials : Trials
        See `read_trials`.
    **options
        As for `fit_psychometric`. Where answers are right or wrong, a guess is right half the time
        unless `guess` says otherwise (two alternatives); where they are yes or no, guesses are
        fitted.
    """
    guess = 0.5 if trials.answer == "correct" else "fit"
    defaults: JsonObject = {"guess": guess, "lapse": "fit", "shared": (-1,)}
    return fit_psychometric(
        trials.contrast, trials.yes, trials.asked, **(defaults | options)
    )
