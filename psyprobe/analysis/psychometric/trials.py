"""Fit thresholds to a file of trials: a staircase, a constant design or any other."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import Any, overload

import numpy as np
import pandas as pd

from psyprobe._typing import FloatArray
from psyprobe.analysis.psychometric.fit import fit_psychometric
from psyprobe.analysis.psychometric.fit_result import PsychometricFit
from psyprobe.analysis.psychometric.integration import FEW_TRIALS
from psyprobe.errors import InputError
from psyprobe.files.json_types import JsonObject
from psyprobe.files.parsing import read_text
from psyprobe.human.points import LEVELS, Level

#: Columns with the answer of a trial: 1 for a right answer or a yes, else 0.
_ANSWER_COLUMNS = ("correct", "yes")
#: Columns that say whose trial it is.
_PEOPLE_COLUMNS = ("observer", "participant", "subject", "person")


@dataclass(frozen=True, eq=False)
class Trials:
    """Counted answers, one row for each value of the level."""

    #: Level that varies besides contrast: "frequency", "luminance" or "area".
    level: Level
    #: Rising, shape (F,).
    values: FloatArray
    #: Shapes (F, L); `total` is the number of trials, 0 where a contrast was not shown at a value.
    contrast: FloatArray
    yes: FloatArray
    total: FloatArray
    #: Meaning of `yes`: "correct" or "yes".
    answer: str


@overload
def read_trials(path: str | Path) -> Trials: ...


@overload
def read_trials(path: str | Path, *, by: str) -> dict[str, Trials]: ...


def read_trials(
    path: str | Path, *, by: str | None = None
) -> Trials | dict[str, Trials]:
    """Read the trials of one observer, or of several, from a CSV file.

    Parameters
    ----------
    path : str or Path
        File with the columns ``frequency`` (cpd), ``luminance`` (cd/m²) or ``area`` (deg²);
        ``contrast``, above 0; and ``correct`` or ``yes``, 1 or 0. Other columns, and lines that
        begin with #, are passed over.
    by : str, optional
        Column that tells observers apart, such as ``observer``.

    Returns
    -------
    Trials or dict of str to Trials
        With `by`, the trials of each observer by the value of that column.

    Raises
    ------
    InputError
        A column is missing, a value is not allowed, or several people stand in the file and no `by`
        tells them apart.
    """
    lines = read_text(Path(path)).splitlines()
    rows = [line for line in lines if line.strip() and not line.startswith("#")]
    table = pd.DataFrame(csv.DictReader(rows, skipinitialspace=True, restkey=""))
    table = table.rename(columns=str.strip)
    if by is None:
        _check_one_person(path, table)
        return _count_trials(path, table)
    if by not in table:
        raise InputError(
            f"{path} has no column {by}; it has {', '.join(map(str, table))}"
        )
    return {
        str(name): _count_trials(path, trials) for name, trials in table.groupby(by)
    }


def _check_one_person(path: str | Path, table: pd.DataFrame) -> None:
    """Refuse a table of trials that holds more than one person."""
    for column in table.columns.intersection(_PEOPLE_COLUMNS):
        names = table[column].dropna().unique()
        if len(names) > 1:
            listed = ", ".join(map(str, names[:4])) + ", ..." * (len(names) > 4)
            raise InputError(
                f"{path} holds trials of {len(names)} people ({column}: {listed}); read them "
                f"with read_trials(path, by={column!r}), since one curve of several people is "
                "nobody's"
            )


def _count_trials(path: str | Path, table: pd.DataFrame) -> Trials:
    """Check the columns of one observer's trials, and count answers by level and contrast."""
    level: Level = _single_column(path, table, LEVELS)
    answer: str = _single_column(path, table, _ANSWER_COLUMNS)
    if "contrast" not in table:
        raise InputError(
            f"{path} has no column contrast; give one row a trial with {level}, contrast and "
            f"{answer}"
        )
    numbers = table[[level, "contrast", answer]].apply(pd.to_numeric, errors="coerce")
    for name, column in numbers.items():
        if column.isna().any():
            text = table.loc[column.isna().idxmax(), name]
            raise InputError(f"{path} has {text!r} as {name}; give a number")
        if name != answer and not (column > 0).all():
            raise InputError(
                f"{path} has a {name} of {column.min():g}; give values above 0"
            )
    invalid = numbers[answer][~numbers[answer].isin((0, 1))]
    if len(invalid):
        raise InputError(f"{path} has a {answer} of {invalid.iloc[0]:g}; give 1 or 0")
    counts = numbers.pivot_table(
        answer, level, "contrast", aggfunc=["sum", "count"], fill_value=0
    ).astype(float)
    yes, total = (counts[name].to_numpy() for name in ("sum", "count"))
    contrast = np.broadcast_to(counts["sum"].columns.to_numpy(float), yes.shape)
    values = counts.index.to_numpy(float)
    return Trials(level, values, contrast, yes, total, answer)


def _single_column(
    path: str | Path, table: pd.DataFrame, names: tuple[Any, ...]
) -> Any:
    """Find which one of several column names a table has, or refuse it."""
    present = [name for name in names if name in table]
    if len(present) != 1:
        raise InputError(
            f"{path} has {len(present)} of the columns {', '.join(names)}; give one of them"
        )
    return present[0]


def fit_trials(trials: Trials, **options: Any) -> PsychometricFit:
    """Fit a psychometric function at each value of the level, all with one lapse rate.

    Where a value has fewer than 400 trials, as in a staircase, thresholds are posterior means, and
    intervals are those of posteriors, with widths that are alike from value to value as far as the
    answers say so.

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
    # What a posterior cannot integrate is fitted by likelihood.
    likelihood_options = {"overdispersion", "method", "priors"} & set(options)
    if trials.total.sum(axis=1).min() < FEW_TRIALS and not likelihood_options:
        defaults["interval"] = "posterior"
    return fit_psychometric(
        trials.contrast, trials.yes, trials.total, **(defaults | options)
    )
