"""Fit thresholds to a file of trials: a staircase, a constant design or any other."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from psyprobe.analysis.psychometric.fit import fit_psychometric
from psyprobe.analysis.psychometric.fit_result import PsychometricFit
from psyprobe.analysis.psychometric.integration import FEW_TRIALS
from psyprobe.errors import InputError
from psyprobe.files.json_types import JsonObject
from psyprobe.files.parsing import read_text
from psyprobe.files.units import unit_attributes
from psyprobe.human.points import LEVELS

if TYPE_CHECKING:
    import xarray as xr

#: Columns with the answer of a trial: 1 for a right answer or a yes, else 0.
_ANSWER_COLUMNS = ("correct", "yes")
#: What stands in place of an answer that was not given.
_NO_ANSWER = ("", "NA", "NaN", "nan")
#: Columns that say whose trial it is, and others whose values no curve should mix.
_PEOPLE_COLUMNS = ("person", "participant", "subject", "observer")
_APART = ("experiment", "prompt")
#: Units of the columns that every file of trials may have.
_UNITS = {"frequency": "cpd", "luminance": "cd/m²", "area": "deg²", "contrast": "1"}
#: Smallest share of a contrast that must arrive for it to count as shown.
_LEAST_GAIN = 0.01


def read_trials(
    path: str | Path,
    *,
    columns: Mapping[str, str] | None = None,
    by: str | Sequence[str] = (),
    where: Mapping[str, object] | None = None,
) -> xr.Dataset:
    """Read trials from a CSV file, and count answers by level and contrast.

    Parameters
    ----------
    path : str or Path
        File with the columns ``frequency`` (cpd), ``luminance`` (cd/m²) or ``area`` (deg²);
        ``contrast``, above 0; and ``correct`` or ``yes``, 1 or 0. At contrast 0 a ``yes`` is that
        of a catch trial. Trials without an answer, other columns, and lines that begin with # are
        passed over. Files of ``psyprobe store export --tidy`` name their own level and axis.
    columns : mapping of str to str, optional
        Names of columns in the file to those above, such as ``{"sf": "frequency"}``.
    by : str or sequence of str, optional
        Columns that tell groups apart, such as ``observer``.
    where : mapping of str to object, optional
        Columns and the value of the trials that are read, such as ``{"session": 1}``.

    Returns
    -------
    xarray.Dataset
        Over each column of `by`, the level and `contrast_level`: `contrast`, or the axis that the
        file names (the mean of ``delivered_contrast`` where the file has it; NaN where nothing was
        shown), `yes` and `trials`; of catch trials `catch_yes` and `catch_trials`. Its attribute
        `answer` says what is counted, "correct" or "yes", and `unanswered` how many trials were
        passed over.

    Raises
    ------
    InputError
        A column is missing, a value is not allowed, or several people, experiments or prompts stand
        in the file and no `by` tells them apart.
    """
    lines = read_text(Path(path)).splitlines()
    rows = [line for line in lines if line.strip() and not line.startswith("#")]
    table = pd.DataFrame(csv.DictReader(rows, skipinitialspace=True, restkey=""))
    table = table.rename(columns=str.strip).fillna("")
    names = [by] if isinstance(by, str) else [*by]
    columns = columns or {}
    selected = {name: str(value) for name, value in (where or {}).items()}
    _check_columns(path, table, columns)
    replaced = {*columns.values()} - {*columns}
    table = table.drop(columns=[*replaced], errors="ignore")
    table = table.rename(columns=columns)
    _check_columns(path, table, [*names, *selected])
    for name, value in selected.items():
        present = table[name].unique()
        table = table[table[name] == value]
        if table.empty:
            raise InputError(
                f"{path} has no trial whose {name} is {value}; it has {', '.join(present[:9])}"
            )
    # A file of several experiments has the columns of all of them.
    table = table.loc[:, (table != "").any()]
    _check_groups(path, table, names)
    return _count_trials(path, table, names)


def _check_columns(
    path: str | Path, table: pd.DataFrame, names: Sequence[str] | Mapping[str, str]
) -> None:
    """Refuse names of columns that a table does not have."""
    for name in names:
        if name not in table:
            raise InputError(
                f"{path} has no column {name}; it has {', '.join(map(str, table))}"
            )


def _check_groups(path: str | Path, table: pd.DataFrame, by: Sequence[str]) -> None:
    """Refuse groups of trials that mix people, experiments or prompts."""
    people = () if set(by) & set(_PEOPLE_COLUMNS) else _PEOPLE_COLUMNS
    apart = [name for name in (*people, *_APART) if name in table and name not in by]
    for column in apart:
        groups = table.groupby(list(by)) if by else [((), table)]
        for _, group in groups:
            values = group[column].unique()
            if len(values) > 1:
                kind = "people" if column in people else f"{column}s"
                listed = ", ".join(values[:4]) + ", ..." * (len(values) > 4)
                choice = repr(column) if not by else repr([*by, column])
                raise InputError(
                    f"{path} holds trials of {len(values)} {kind} ({column}: {listed}); read "
                    f"them with read_trials(path, by={choice}), since one curve of several is "
                    "nobody's"
                )


def _count_trials(
    path: str | Path, table: pd.DataFrame, by: Sequence[str]
) -> xr.Dataset:
    """Check the columns of trials, and count answers by group, level and contrast."""
    level = _named_column(path, table, "level") or _single_column(path, table, LEVELS)
    answer = _single_column(path, table, _ANSWER_COLUMNS)
    axis = _named_column(path, table, "axis") or "contrast"
    if axis not in table:
        raise InputError(
            f"{path} has no column {axis}; give one row a trial with {level}, {axis} and "
            f"{answer}"
        )
    answered = table[~table[answer].isin(_NO_ANSWER)]
    numbers = answered[[level, axis, answer]].apply(pd.to_numeric, errors="coerce")
    for name, column in numbers.items():
        if column.isna().any():
            text = answered.loc[column.isna().idxmax(), name]
            raise InputError(f"{path} has {text!r} as {name}; give a number")
        is_positive = name == axis or name in LEVELS
        allows_zero = name == axis and answer == "yes"
        if (
            is_positive
            and column.min() <= 0
            and not (allows_zero and column.min() == 0)
        ):
            raise InputError(
                f"{path} has a {name} of {column.min():g}; give values above 0"
            )
    invalid = numbers[answer][~numbers[answer].isin((0, 1))]
    if len(invalid):
        raise InputError(f"{path} has a {answer} of {invalid.iloc[0]:g}; give 1 or 0")
    trials = answered[[*by]].apply(_numbers_or_text)
    trials[level] = numbers[level]
    trials["_contrast"] = numbers[axis]
    trials["_delivered"] = numbers[axis]
    if f"delivered_{axis}" in answered:
        arrived = pd.to_numeric(answered[f"delivered_{axis}"], errors="coerce")
        trials["_delivered"] = arrived.fillna(numbers[axis])
    trials["_answer"] = numbers[answer]
    is_catch = numbers[axis] == 0
    is_shown = ~is_catch & (trials["_delivered"] >= _LEAST_GAIN * numbers[axis])
    if not is_shown.any():
        raise InputError(f"{path} has no trial with an answer and a {axis} above 0")
    counts = _count_cells(trials[is_shown], [*by, level], axis)
    if is_catch.any():
        catch = trials[is_catch].groupby([*by] or (lambda _: 0))["_answer"]
        blanks = catch.agg(catch_yes="sum", catch_trials="count").astype(float)
        if by:
            places = {name: counts[name] for name in by}
            counts = counts.merge(blanks.to_xarray().reindex(places).fillna(0.0))
        else:
            counts = counts.assign(blanks.loc[0].to_dict())
    for name in counts.variables:
        unit = _UNITS.get(str(name))
        counts[name].attrs = {} if unit is None else unit_attributes(unit)
    counts.attrs = {
        "levels": json.dumps([level]),
        "axis": axis,
        "answer": answer,
        "unanswered": len(table) - len(answered),
    }
    alternatives = _named_column(path, table, "alternatives")
    if alternatives:
        counts.attrs["alternatives"] = int(alternatives)
    return counts


def _count_cells(trials: pd.DataFrame, keys: list[str], axis: str) -> xr.Dataset:
    """Count answers by group, level and contrast, the contrasts in the order of what arrived."""
    cells = trials.groupby([*keys, "_contrast"]).agg(
        _delivered=("_delivered", "mean"),
        yes=("_answer", "sum"),
        trials=("_answer", "count"),
    )
    cells = cells.sort_values("_delivered", kind="stable")
    cells["contrast_level"] = cells.groupby(keys).cumcount()
    index = [*keys, "contrast_level"]
    table = cells.rename(columns={"_delivered": axis}).reset_index().set_index(index)
    counts: xr.Dataset = table[[axis, "yes", "trials"]].to_xarray()
    return counts.assign({name: counts[name].fillna(0.0) for name in ("yes", "trials")})


def _numbers_or_text(column: pd.Series[Any]) -> pd.Series[Any]:
    """Convert a column to numbers if all of its cells are numbers."""
    numbers = pd.to_numeric(column, errors="coerce")
    return column if numbers.isna().any() else numbers


def _named_column(path: str | Path, table: pd.DataFrame, name: str) -> str:
    """Read the one value that a column has in all rows; "" without the column."""
    values = table[name].unique() if name in table else [""]
    if len(values) > 1:
        raise InputError(
            f"{path} has several values of {name} ({', '.join(values)}); choose trials with "
            f"read_trials(path, where={{{name!r}: {values[0]!r}}})"
        )
    return str(values[0])


def _single_column(path: str | Path, table: pd.DataFrame, names: Sequence[str]) -> str:
    """Find which one of several column names a table has, or refuse it."""
    present = [name for name in names if name in table]
    if len(present) != 1:
        raise InputError(
            f"{path} has {len(present)} of the columns {', '.join(names)}; give one of them"
        )
    return present[0]


def fit_trials(trials: xr.Dataset, **options: Any) -> PsychometricFit:
    """Fit a psychometric function at each value of the level, all of a group with one lapse rate.

    Where a value has fewer than 400 trials, as in a staircase, thresholds are posterior means, and
    intervals are those of posteriors, with widths that are alike from value to value as far as the
    answers say so.

    Parameters
    ----------
    trials : xarray.Dataset
        See `read_trials`.
    **options
        As for `fit_psychometric`. Where answers are right or wrong, a guess is right half the time
        unless the file has a column ``alternatives``, or `guess` says otherwise; where they are yes
        or no, guesses are fitted.

    Returns
    -------
    PsychometricFit
        Over the groups and the level.
    """
    yes = trials["yes"].to_numpy()
    total = trials["trials"].to_numpy()
    contrast = np.where(total > 0, trials[trials.attrs["axis"]].to_numpy(), 1.0)
    if "catch_trials" in trials:
        # Blanks are alike for all values of the level, and stand once, with the first.
        wider = [(0, 0)] * (contrast.ndim - 1) + [(1, 0)]
        contrast, yes, total = (np.pad(part, wider) for part in (contrast, yes, total))
        yes[..., 0, 0] = trials["catch_yes"]
        total[..., 0, 0] = trials["catch_trials"]
    is_choice = trials.attrs["answer"] == "correct"
    guess = 1 / trials.attrs.get("alternatives", 2) if is_choice else "fit"
    defaults: JsonObject = {"guess": guess, "lapse": "fit", "shared": (-1,)}
    # What a posterior cannot integrate is fitted by likelihood.
    likelihood_options = {"overdispersion", "method", "priors"} & set(options)
    count = trials["trials"].sum("contrast_level")
    if ((count > 0) & (count < FEW_TRIALS)).any() and not likelihood_options:
        defaults["interval"] = "posterior"
    return fit_psychometric(contrast, yes, total, **(defaults | options))
