"""Thresholds from a file of trials: a staircase, a constant design or any other, one row a
trial.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.analysis.psychometric.fit import PsychometricFit, fit_psychometric
from psyprobe.errors import InputError
from psyprobe.files.parsing import read_text
from psyprobe.human.points import LEVELS, Level

#: Columns that say how a trial went: 1 for a right answer or a yes, else 0.
_ANSWERS = ("correct", "yes")


@dataclass(frozen=True, eq=False)
class Trials:
    """Counted answers, a row a value of the level."""

    #: What varies besides contrast: "frequency", "luminance" or "area".
    level: Level
    #: Rising, shape (F,).
    values: FloatArray
    #: Shapes (F, L); where a contrast was not shown at a value `asked` is 0.
    contrast: FloatArray
    yes: FloatArray
    asked: FloatArray
    #: "correct" or "yes".
    answer: str


def read_trials(path: str | Path) -> Trials:
    """Trials of one observer from a table of comma-separated text, lines that begin with # passed
    over.

    Parameters
    ----------
    path : str or Path
        With the columns ``frequency`` (cpd), ``luminance`` (cd/m²) or ``area`` (deg²);
        ``contrast``, above 0; and ``correct`` or ``yes``, 1 or 0. Other columns are passed over.

    Raises
    ------
    InputError
        A column is missing, or a value is not allowed.
    """
    lines = [
        line
        for line in read_text(Path(path)).splitlines()
        if line.strip() and not line.startswith("#")
    ]
    rows = list(csv.DictReader(lines, skipinitialspace=True))
    columns = {name.strip(): name for name in (rows[0] if rows else {}) if name}
    level = _one_of(path, columns, LEVELS)
    answer = _one_of(path, columns, _ANSWERS)
    if "contrast" not in columns:
        raise InputError(
            f"{path} has no column contrast; give one row a trial with {level}, contrast and "
            f"{answer}"
        )
    numbers = {
        name: np.array([_number(path, row, columns[name]) for row in rows])
        for name in (level, "contrast")
    }
    said = np.array([_number(path, row, columns[answer]) for row in rows])
    for name, column in numbers.items():
        if not (column > 0).all():
            raise InputError(f"{path} has a {name} of {column.min():g}; give values above 0")
    if not np.isin(said, (0, 1)).all():
        raise InputError(
            f"{path} has a {answer} of {said[~np.isin(said, (0, 1))][0]:g}; give 1 or 0"
        )
    values = np.unique(numbers[level])
    contrast = np.unique(numbers["contrast"])
    place = np.searchsorted(values, numbers[level]), np.searchsorted(contrast, numbers["contrast"])
    shape = len(values), len(contrast)
    yes = np.zeros(shape)
    asked = np.zeros(shape)
    np.add.at(yes, place, said)
    np.add.at(asked, place, 1)
    return Trials(level, values, np.broadcast_to(contrast, shape), yes, asked, answer)


def _one_of(path: Any, columns: Any, known: Any) -> Any:
    found = [name for name in known if name in columns]
    if len(found) != 1:
        raise InputError(
            f"{path} has {len(found)} of the columns {', '.join(known)}; give one of them"
        )
    return found[0]


def _number(path: Any, row: dict[str, str], column: str) -> float:
    try:
        return float(row[column])
    except (TypeError, ValueError):
        raise InputError(f"{path} has {row[column]!r} as {column.strip()}; give a number") from None


def fit_trials(trials: Trials, **options: Any) -> PsychometricFit:
    """The psychometric function at each value of the level, all with one lapse rate.

    Parameters
    ----------
    trials : Trials
        As `read_trials` gives them.
    **options
        As for `fit_psychometric`. Where answers are right or wrong, a guess is right half the time
        unless `guess` says otherwise (two alternatives); where they are yes or no, guesses are
        fitted.
    """
    rates = {"guess": 0.5 if trials.answer == "correct" else "fit", "lapse": "fit", "shared": (-1,)}
    return fit_psychometric(trials.contrast, trials.yes, trials.asked, **{**rates, **options})
