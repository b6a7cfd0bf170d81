"""Compare the thresholds of people between two conditions, or between two groups of people."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import pandas as pd
import xarray as xr

from psyprobe.analysis.comparison.family import holm
from psyprobe.analysis.comparison.paired import t_probability
from psyprobe.analysis.comparison.people import group_mean
from psyprobe.analysis.intervals import (
    check_confidence,
    normal_quantile,
    student_quantile,
)
from psyprobe.analysis.psychometric.trials import fit_trials
from psyprobe.analysis.responses import levels_of, observer_of
from psyprobe.analysis.score import Recorded, ends_text, number
from psyprobe.analysis.words.csf import chat_csf
from psyprobe.analysis.words.sessions import person_of
from psyprobe.errors import InputError

#: Level of all tests, after Holm's correction.
_ALPHA = 0.05
#: Columns of estimates: value of the level, log10 sensitivity, its standard error.
_ESTIMATE = ["value", "sensitivity", "error"]

#: People of one condition or group: their trials over a dimension, or their runs.
PeopleSource: TypeAlias = xr.Dataset | Iterable[xr.Dataset]


@dataclass(frozen=True)
class PeopleDifference(Recorded):
    """The difference of people's log10 sensitivity between two conditions or groups."""

    level: str
    #: Value of the level; None for the mean over all levels that everybody did.
    value: float | None
    #: First less second, with the ends of its interval over people.
    difference: float
    low: float
    high: float
    #: Two-sided, and adjusted by Holm over the levels.
    p: float
    p_adjusted: float
    #: Whether the same people did both.
    paired: bool
    #: Number of people of the first and of the second.
    people: tuple[int, int]

    @property
    def verdict(self) -> str:
        """Describe in words whether the conditions are told apart."""
        if self.p_adjusted >= _ALPHA:
            return "not told apart"
        return "more sensitive" if self.difference > 0 else "less sensitive"

    def cells(self) -> list[str]:
        """Format the difference as table cells."""
        at = "mean over levels" if self.value is None else f"{self.value:.3g}"
        first, second = self.people
        return [
            at,
            number(self.difference, 3, sign=True) + ends_text(self.low, self.high, 3),
            f"{self.p_adjusted:.3f}",
            f"{first}" if self.paired else f"{first} and {second}",
            self.verdict,
        ]

    def record(self) -> dict[str, object]:
        """Collect all values as a flat record."""
        record = self.to_dict()
        first, second = record.pop("people")
        counts = {"people": first, "people_of_second": second}
        return {**record, **counts, "verdict": self.verdict}


def is_people(source: object) -> bool:
    """Tell whether something holds trials of several people, or runs of people alone."""
    if isinstance(source, xr.Dataset):
        return "trials" in source and len(source["trials"].dims) == 3
    return (
        isinstance(source, list | tuple)
        and bool(source)
        and all(hasattr(run, "attrs") and person_of(run) for run in source)
    )


def compare_people(
    first: PeopleSource, second: PeopleSource, confidence: float = 0.95
) -> tuple[list[PeopleDifference], list[str]]:
    """Compare people's sensitivity level by level, paired where the same people did both.

    Parameters
    ----------
    first, second : xarray.Dataset or iterable of xarray.Dataset
        People of each condition or group: as ``read_trials(path, by="observer")`` gives them, or
        their runs, one a person.
    confidence : float, optional
        Coverage of each interval, in (0, 1).

    Returns
    -------
    list of PeopleDifference, list of str
        One for each level, then one of the mean over levels; and notes on what is left out.

    Raises
    ------
    InputError
        Fewer than two people on a side, one person in both of two groups, or somebody with two
        runs.

    Notes
    -----
    Each person is fitted alone. Paired, a person's difference has both errors, and people are
    averaged by Hartung and Knapp. Of two groups, each mean and its error are Hartung and Knapp's,
    and the degrees of freedom Welch's: with equal errors this is Welch's t test.

    Examples
    --------
    Three people who are right in some 90 of 100 trials after and 70 before, at a contrast of 0.02:

    >>> axes = {"observer": ["A", "B", "C"], "frequency": [4.0], "contrast_level": [0, 1, 2]}
    >>> def trials(*right):
    ...     yes = [[[55.0, count, 98.0]] for count in right]
    ...     contrast = np.broadcast_to([0.01, 0.02, 0.04], (3, 1, 3))
    ...     counts = {"contrast": contrast, "yes": yes, "trials": np.full((3, 1, 3), 100.0)}
    ...     attributes = {"levels": '["frequency"]', "axis": "contrast", "answer": "correct"}
    ...     variables = {name: (list(axes), values) for name, values in counts.items()}
    ...     return xr.Dataset(variables, axes, attributes)
    >>> (row,), _ = compare_people(trials(90, 88, 93), trials(70, 72, 69))
    >>> row.paired, row.people, row.verdict
    (True, (3, 3), 'more sensitive')
    """
    check_confidence(confidence)
    tables = [_estimates(source) for source in (first, second)]
    level = tables[0].attrs["level"]
    if tables[1].attrs["level"] != level:
        raise InputError(
            f"one is over {level} and the other over {tables[1].attrs['level']}; compare people "
            "over one quantity"
        )
    names = [set(table["person"]) for table in tables]
    shared = names[0] & names[1]
    notes = []
    if len(shared) == 1:
        raise InputError(
            f"{shared.pop()} alone did both: neither the same people nor two groups; give at least "
            "two who did both, or nobody"
        )
    if shared and (others := sorted(names[0] ^ names[1])):
        notes.append(f"left out {', '.join(others)}, who did not do both")
    if shared:
        tables = [table[table["person"].isin(shared)] for table in tables]
    notes += _open_notes(tables, level)
    tables = [table.dropna() for table in tables]
    tables, level_notes = _shared_levels(tables, level, bool(shared))
    notes += level_notes
    rows = [
        _difference(level, value, tables, bool(shared), confidence)
        for value in sorted(set(tables[0]["value"]))
    ]
    adjusted = holm([row.p for row in rows])
    rows = [
        replace(row, p_adjusted=row.p if p is None else p)
        for row, p in zip(rows, adjusted, strict=True)
    ]
    if len(rows) > 1:
        means = [_mean_over_levels(table, len(rows)) for table in tables]
        if shared:
            both = set(means[0]["person"]) & set(means[1]["person"])
            means = [table[table["person"].isin(both)] for table in means]
        if min(len(table) for table in means) > 1:
            rows.append(_difference(level, None, means, bool(shared), confidence))
    return rows, notes


def _estimates(source: PeopleSource) -> pd.DataFrame:
    """Fit each person alone: a table of person, value of the level, log10 sensitivity, error."""
    parts = []
    level = ""
    half = normal_quantile(0.95)
    if isinstance(source, xr.Dataset):
        people, level, _ = map(str, source["trials"].dims)
        for name in source[people].values:
            trials = source.sel({people: name})
            has_trials = trials["trials"].sum("contrast_level") > 0
            trials = trials.isel({level: has_trials.to_numpy()})
            fit = fit_trials(trials)
            width = fit.log10_threshold_high - fit.log10_threshold_low
            values = (trials[level].values, -fit.log10_threshold, width / (2 * half))
            parts.append((str(name), values))
    else:
        for run in source:
            csf = chat_csf(run)
            level = levels_of(csf)[0]
            # An open interval ends at 0 or infinity.
            with np.errstate(divide="ignore", invalid="ignore"):
                mean, low, high = (
                    np.log10(csf[f"mean_sensitivity{end}"].values)
                    for end in ("", "_low", "_high")
                )
                values = (csf[level].values, mean, (high - low) / (2 * half))
            parts.append((person_of(run) or observer_of(run), values))
    names = [name for name, _ in parts]
    if len(names) < 2:
        raise InputError(
            f"{len(names)} people tell nothing of others; give at least two on a side"
        )
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise InputError(
            f"{min(twice)} has several runs on one side; merge them, or give one of them"
        )
    table = pd.concat(
        [
            pd.DataFrame(dict(zip(_ESTIMATE, values, strict=True))).assign(person=name)
            for name, values in parts
        ],
        ignore_index=True,
    ).replace([np.inf, -np.inf], np.nan)
    table["value"] = table["value"].astype(float).round(9)
    table.attrs["level"] = level
    return table


def _open_notes(tables: list[pd.DataFrame], level: str) -> list[str]:
    """Name whose estimate is left out at which level, since its interval is open."""
    notes = []
    for table in tables:
        for row in table[table.isna().any(axis=1)].itertuples():
            notes.append(
                f"left out {row.person} at {level} {row.value:.3g}, whose interval is open"
            )
    return list(dict.fromkeys(notes))


def _shared_levels(
    tables: list[pd.DataFrame], level: str, paired: bool
) -> tuple[list[pd.DataFrame], list[str]]:
    """Keep the levels, and of pairs the people at each, that both sides have; note the others."""
    keys = ["person", "value"] if paired else ["value"]
    matched = [
        table.merge(other[keys].drop_duplicates(), on=keys)
        for table, other in (tables, tables[::-1])
    ]
    kept = set.intersection(
        *(
            {value for value, rows in table.groupby("value") if len(rows) > 1}
            for table in matched
        )
    )
    others = sorted({*tables[0]["value"], *tables[1]["value"]} - kept)
    if not kept:
        raise InputError(
            f"at no {level} have two people on each side a threshold; ask more people, or more"
        )
    notes = []
    if others:
        listed = ", ".join(f"{value:.3g}" for value in others)
        notes.append(f"left out {level} {listed}, which fewer than two on a side did")
    return [table[table["value"].isin(kept)] for table in matched], notes


def _mean_over_levels(table: pd.DataFrame, levels: int) -> pd.DataFrame:
    """Average the levels of each person who did all of them."""
    groups = table.assign(variance=table["error"] ** 2).groupby("person")
    means = groups.agg(
        sensitivity=("sensitivity", "mean"),
        error=("variance", lambda variances: np.sqrt(variances.sum()) / levels),
        count=("value", "size"),
    )
    return means[means["count"] == levels].reset_index()


def _difference(
    level: str,
    value: float | None,
    tables: list[pd.DataFrame],
    paired: bool,
    confidence: float,
) -> PeopleDifference:
    """Compare the estimates of people at one level."""
    first, second = (
        (table if value is None else table[table["value"] == value]).sort_values(
            "person"
        )
        for table in tables
    )
    counts = (len(first), len(second))
    estimates = [table["sensitivity"].to_numpy() for table in (first, second)]
    errors = [table["error"].to_numpy() for table in (first, second)]
    if paired:
        mean = group_mean(estimates[0] - estimates[1], np.hypot(*errors), confidence)
        difference = mean.mean
        error = (mean.high - mean.mean) / student_quantile(mean.people, confidence)
        size = float(mean.people)
    else:
        means = [group_mean(*pair) for pair in zip(estimates, errors, strict=True)]
        difference = means[0].mean - means[1].mean
        parts = np.array(
            [
                ((mean.high - mean.mean) / student_quantile(mean.people, 0.95)) ** 2
                for mean in means
            ]
        )
        error = float(np.sqrt(parts.sum()))
        size = 1 + float(parts.sum() ** 2 / (parts**2 / (np.array(counts) - 1)).sum())
    if error == 0:
        raise InputError(
            f"all people differ by the same {difference:.3g} log10 units at {level} {value} to the "
            "last digit; give each person's own trials"
        )
    reach = student_quantile(size, confidence) * error
    p = t_probability(difference / error, size)
    return PeopleDifference(
        level,
        value,
        difference,
        difference - reach,
        difference + reach,
        p,
        p,
        paired,
        counts,
    )
