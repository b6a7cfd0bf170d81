"""Score human observers whose thresholds were measured as if each were a model.

The alignment score is a rank correlation and needs no criterion, so a person needs no responses:
any that rise with contrast over the person's own threshold give the same score. The score depends
on the range of levels, so a model and people are compared on the range at which people were
measured, beside an observer with a flat contrast sensitivity function.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.analysis.alignment import alignment_scores, spearman
from psyprobe.analysis.comparison.posteriors import fraction_of_people
from psyprobe.analysis.comparison.references import MeasuredPeople
from psyprobe.analysis.comparison.sample import Sample
from psyprobe.analysis.intervals import (
    check_resampling,
    draw_counts,
    fisher,
    mean_and_error,
    student_reach,
)
from psyprobe.analysis.iso_response import within
from psyprobe.analysis.score import Recorded, number, open_ends_text
from psyprobe.human.castle import castle_csf
from psyprobe.human.leave_one_out import castle_csf_without, fitted_studies
from psyprobe.human.points import Conditions, matched_thresholds

if TYPE_CHECKING:
    import pandas as pd

#: Fewest persons of whom there is a noise ceiling.
FEWEST = 3
#: Multiples of thresholds at which a person is scored, those of the detection tests.
MULTIPLIERS = np.geomspace(0.5, 2.0, 10)
#: Fewest levels at which a person, and two of the others, must have been measured.
_LEVELS: Mapping[str, int] = {"frequency": 4, "luminance": 4, "area": 3}
#: Where people score no more than this above a flat CSF, there is nothing to divide.
_LEAST_ABOVE_FLAT = 0.1
#: Draws of a gain over a flat CSF, for its interval.
_DRAWS = 5000


@dataclass(frozen=True)
class Ceiling(Recorded):
    """The mean score of persons, with its interval over persons."""

    value: float
    low: float
    high: float
    #: Standard deviation between persons.
    sd: float
    #: The score of each person.
    scores: tuple[float, ...]

    @property
    def persons(self) -> int:
        """Count the persons whose scores are averaged."""
        return len(self.scores)


def ceiling(
    scores: FloatArray,
    *,
    error: bool,
    confidence: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> Ceiling:
    """Average persons' scores to a noise ceiling, with an interval over persons.

    Parameters
    ----------
    scores : ndarray, shape (P,)
        The score of each person; at least three.
    error : bool
        Whether scores are errors, above 0, and not correlations.
    confidence, resamples, seed
        As for `psyprobe.analysis.align`.

    Notes
    -----
    Persons are drawn with replacement. The interval is value ± t s, with s the standard deviation
    of the samples' means times sqrt(P / (P - 1)) and Student's t with P - 1 degrees of freedom: on
    the logarithm for errors, on Fisher's z for correlations.

    Examples
    --------
    >>> mean = ceiling(np.array([0.8, 0.85, 0.9, 0.95]), error=False)
    >>> f"{mean.value:.3f} [{mean.low:.2f}, {mean.high:.2f}]"
    '0.875 [0.72, 0.95]'
    """
    check_resampling(confidence, resamples)
    n = len(scores)
    value = float(np.mean(scores))
    samples = draw_counts(n, resamples, seed) @ scores / n
    transform, inverse = (np.log, np.exp) if error else (fisher, np.tanh)
    reach = student_reach(transform(samples), n, confidence)
    low = float(inverse(transform(value) - reach))
    high = float(inverse(transform(value) + reach))
    return Ceiling(
        value,
        min(low, value),
        max(high, value),
        float(np.std(scores, ddof=1)),
        tuple(scores.tolist()),
    )


def shape_alignment(log_ratio: FloatArray) -> float:
    """Compute a CSF's alignment with people (Spearman's r_s) from its log ratio to theirs.

    Parameters
    ----------
    log_ratio : ndarray, shape (X,)
        Log10 of the observer's sensitivity over that of the human reference, at each level.

    Returns
    -------
    float
        As `psyprobe.analysis.alignment_score`, of responses that rise with contrast over the
        observer's own threshold. A ratio that is the same at all levels scores 1: only the shape
        counts.

    Examples
    --------
    >>> shape_alignment(np.full(5, 0.3)), round(shape_alignment(np.array([0.0, 0.1, 0.2])), 3)
    (1.0, 0.938)
    """
    response = np.round(
        np.log10(MULTIPLIERS) + (log_ratio - log_ratio.mean())[:, None], 12
    )
    multiplier = np.broadcast_to(MULTIPLIERS, response.shape)
    return spearman(multiplier, response)


@dataclass(frozen=True)
class Person:
    """One person of a data set, scored as a model would be."""

    dataset: str
    observer: str
    #: Ends of the range of levels at which the person was measured.
    low: float
    high: float
    #: Alignment at the levels of the experiment within this range, with castleCSF as refitted
    #: without the person's study where it was fitted to it.
    alignment: float
    #: The same with castleCSF as published.
    published: float
    #: Alignment of a flat contrast sensitivity function there, with castleCSF as published.
    flat: float


@lru_cache(maxsize=32)
def persons(conditions: Conditions, levels: tuple[float, ...]) -> tuple[Person, ...]:
    """Score each person who was measured under an experiment's conditions, or near them.

    Parameters
    ----------
    conditions : Conditions
        Those of the experiment; its span says which measured levels count.
    levels : tuple of float
        Levels at which observers are scored, rising.

    Examples
    --------
    >>> conditions = Conditions("luminance", (0.1, 200.0), frequency=2.0, area=np.pi)
    >>> all_persons = persons(conditions, tuple(np.geomspace(0.1, 200, 20)))
    >>> person = all_persons[0]
    >>> len(all_persons), person.dataset, round(person.alignment, 3), round(person.published, 3)
    (17, 'hdr_csf', 0.958, 0.973)
    """
    table = matched_thresholds(conditions)
    table = table[table["observer"] != "mean"]
    table = table.assign(
        x=table["x"].map(lambda x: float(f"{x:.5g}")),
        log_ratio=np.log10(table["sensitivity"] / table["castle"]),
        log_refit=_refit_change(table, conditions.direction),
    )
    keys = ["dataset", "observer"]
    ratios = ["log_ratio", "log_refit"]
    means = table.groupby([*keys, "x"], as_index=False)[ratios].mean()
    grid = np.array(levels)
    flat = -np.log10(_castle_sensitivity(conditions, grid))
    scored_persons = []
    for (dataset, observer), rows in means.groupby(keys):
        x = rows["x"].to_numpy()
        inside = within(grid, x[0], x[-1])
        if len(x) >= _LEVELS[conditions.level] and inside.any():
            log_ratio, log_refit = (
                np.interp(np.log(grid[inside]), np.log(x), rows[name])
                for name in ratios
            )
            person = Person(
                dataset,
                observer,
                low=float(x[0]),
                high=float(x[-1]),
                alignment=shape_alignment(log_ratio - log_refit),
                published=shape_alignment(log_ratio),
                flat=shape_alignment(flat[inside]),
            )
            scored_persons.append(person)
    return tuple(scored_persons)


@lru_cache(maxsize=32)
def measured_people(
    conditions: Conditions, dataset: str, span: tuple[float, float]
) -> MeasuredPeople | None:
    """Collect the sensitivities of a data set's `persons` at the levels that three of them share.

    Parameters
    ----------
    conditions : Conditions
        Those of the experiment, to which castleCSF scales the sensitivities.
    dataset : str
        As `People` names it.
    span : (float, float)
        Lowest and highest level at which observers are scored.

    Returns
    -------
    MeasuredPeople or None
        None where they share fewer levels than a person needs to be scored.

    Examples
    --------
    >>> conditions = Conditions("frequency", (0.5, 30.5), luminance=100.0, area=np.pi)
    >>> people = measured_people(conditions, "modelfest", (0.5, 28.0))
    >>> people.levels.round(1).tolist()
    [1.1, 2.0, 2.8, 4.0, 5.7, 8.0, 11.3, 16.0, 22.6]
    """
    table = matched_thresholds(conditions)
    table = table[(table["dataset"] == dataset) & (table["observer"] != "mean")]
    table = table.assign(
        x=table["x"].map(lambda x: float(f"{x:.5g}")),
        log_sensitivity=np.log10(table["sensitivity_transported"]),
    )
    by_person = table.pivot_table("log_sensitivity", "observer", "x", aggfunc="mean")
    fewest = _LEVELS[conditions.level]
    # Those alone who are scored as persons: others would move the mean of some levels only.
    by_person = by_person[by_person.notna().sum(axis=1) >= fewest]
    inside = within(by_person.columns.to_numpy(), *span)
    is_shared = (by_person.notna().sum() >= FEWEST) & inside
    shared = by_person.loc[:, is_shared].dropna(how="all")
    if len(shared.columns) < fewest:
        return None
    return MeasuredPeople(dataset, shared.columns.to_numpy(), shared.to_numpy())


def _refit_change(table: pd.DataFrame, direction: str) -> FloatArray:
    """Compute log10 of castleCSF without each row's study over castleCSF, in the mechanism shown.

    It is 0 where castleCSF was not fitted to the study.
    """
    change = np.zeros(len(table))
    dataset = table["dataset"].to_numpy()
    for study in set(fitted_studies()) & set(dataset):
        rows = dataset == study
        condition = {name: table[name].to_numpy()[rows] for name in _LEVELS}
        sensitivities = [
            model(direction=direction, **condition)
            for model in (castle_csf_without(study), castle_csf)
        ]
        change[rows] = np.log10(sensitivities[0] / sensitivities[1])
    return change


def _castle_sensitivity(conditions: Conditions, grid: FloatArray) -> FloatArray:
    """Compute castleCSF's sensitivity over a grid of one level, in given conditions."""
    values = {name: getattr(conditions, name) for name in _LEVELS} | {
        conditions.level: grid
    }
    return np.asarray(castle_csf(direction=conditions.direction, **values))


@dataclass(frozen=True)
class People(Recorded):
    """The persons of one data set, scored as models would be."""

    dataset: str
    #: Ends of the range of levels of each person.
    ranges: tuple[tuple[float, float], ...]
    #: Mean alignment at the levels of the experiment within the range of each person, with
    #: castleCSF as refitted without these people where it was fitted to them.
    ceiling: Ceiling
    #: The same with castleCSF as published.
    published: Ceiling
    #: Mean alignment of a flat contrast sensitivity function at the same levels.
    flat: float

    @property
    def span(self) -> tuple[float, float]:
        """Compute the medians over persons of the ends of their measured ranges."""
        low, high = np.median(self.ranges, axis=0)
        return float(low), float(high)

    @property
    def sample(self) -> Sample:
        """Return the score of each person, averaged on Fisher's z."""
        keys = tuple(map(str, range(len(self.ceiling.scores))))
        return Sample("people", keys, self.ceiling.scores, "z")

    @property
    def determined(self) -> bool:
        """Tell whether people score far enough above a flat CSF for a fraction to mean anything."""
        return self.ceiling.value - self.flat >= _LEAST_ABOVE_FLAT


def people(
    conditions: Conditions, levels: FloatArray, **interval: Any
) -> tuple[People, ...]:
    """Collect the data sets of three persons or more that fit, with scores, the largest first.

    Parameters
    ----------
    conditions, levels
        As for `persons`.
    **interval
        As for `ceiling`.

    Notes
    -----
    Data sets in which a flat contrast sensitivity function scores as high as people, or nearly,
    come last.

    Examples
    --------
    >>> conditions = Conditions("frequency", (0.5, 30.5), luminance=100.0, area=np.pi)
    >>> datasets = people(conditions, np.geomspace(0.5, 28, 20))
    >>> [(dataset.dataset, dataset.ceiling.persons) for dataset in datasets]
    [('modelfest', 16), ('hdrvdp_csf', 10), ('hdr_csf', 10), ('colorfest', 3)]
    """
    datasets = []
    all_persons = persons(conditions, tuple(map(float, levels)))
    for name, group in groupby(all_persons, key=attrgetter("dataset")):
        members = list(group)
        if len(members) >= FEWEST:
            refitted, published = (
                ceiling(np.array(scores), error=False, **interval)
                for scores in zip(
                    *((p.alignment, p.published) for p in members), strict=True
                )
            )
            flat = float(np.mean([person.flat for person in members]))
            ranges = tuple((person.low, person.high) for person in members)
            datasets.append(People(name, ranges, refitted, published, flat))
    return tuple(sorted(datasets, key=_preference))


def _preference(dataset: People) -> tuple[bool, int, float]:
    """Build a sort key of data sets: determined ones first, then by persons and range."""
    low, high = dataset.span
    return not dataset.determined, -dataset.ceiling.persons, low / high


@dataclass(frozen=True)
class Fraction(Recorded):
    """A score as a fraction of what one person scores on the same range."""

    #: Mean over persons of r_s on the levels within the range of each, averaged over variants on
    #: Fisher's z; None where it does not exist.
    in_range: float | None = None
    #: `in_range` over what people score, averaged on Fisher's z: 1 is as good as another person,
    #: and may be exceeded. None where people score hardly above a flat contrast sensitivity
    #: function. Its interval is MOVER's; an end that is not bounded is None.
    fraction: float | None = None
    fraction_low: float | None = None
    fraction_high: float | None = None
    #: 0 for an observer without any contrast sensitivity function, 1 for a person; its interval is
    #: drawn. None where people do not surely score above such a function.
    above_flat: float | None = None
    above_flat_low: float | None = None
    above_flat_high: float | None = None
    #: What the intervals speak of: "people", or "variants and people" where several were shown.
    fraction_over: str = ""

    def text(self) -> str:
        """Format the fraction with its interval, "0.79 [0.66, 0.98]"; "-" without one."""
        if self.fraction is None:
            return "-"
        ends = open_ends_text(self.fraction_low, self.fraction_high)
        return number(self.fraction) + ends


def scores_in_range(
    dataset: People, levels: FloatArray, multiplier: FloatArray, responses: FloatArray
) -> list[float | None]:
    """Average r_s of each variant over the ranges of persons; None where responses are equal in
    one.

    Parameters
    ----------
    dataset : People
        The people with whom the observer is compared.
    levels : ndarray, shape (K,)
        Levels at which the observer was scored.
    multiplier : ndarray, shape (M,)
        Multiples of the human threshold.
    responses : ndarray, shape (V, K, M)
        Responses of the observer to each variant.
    """
    # Persons who were measured at the same levels share their range.
    by_range = {
        ends: alignment_scores(multiplier, responses[:, within(levels, *ends)])
        for ends in dict.fromkeys(dataset.ranges)
    }
    means = [
        float(np.mean([by_range[ends][variant] for ends in dataset.ranges]))
        for variant in range(len(responses))
    ]
    return [None if np.isnan(mean) else mean for mean in means]


def fraction_of(
    dataset: People, score: Sample | None, confidence: float = 0.95
) -> Fraction:
    """Divide an observer's score over each person's range by the persons' scores.

    Parameters
    ----------
    dataset : People
        The people with whom the observer is compared.
    score : Sample or None
        `scores_in_range` of each variant; None where it does not exist.
    confidence : float, optional
        Coverage of the intervals, in (0, 1).

    Examples
    --------
    >>> conditions = Conditions("luminance", (0.1, 200.0), frequency=2.0, area=np.pi)
    >>> levels = np.geomspace(0.1, 200, 20)
    >>> dataset = people(conditions, levels)[0]
    >>> fraction = fraction_of(dataset, Sample("variants", ("shown",), (0.7,), "z"))
    >>> fraction.text()
    '0.72 [0.72, 0.74]'
    """
    if score is None:
        return Fraction()
    in_range = score.mean()
    ratio = fraction_of_people(score, dataset.sample, confidence)
    if ratio is None or not dataset.determined:
        return Fraction(in_range)
    over = "people" if len(score.keys) < 2 else "variants and people"
    ends = (ratio.low, ratio.high)
    fraction = Fraction(in_range, ratio.value, *ends, fraction_over=over)
    people_ends = dataset.sample.interval(confidence)
    if people_ends is not None and people_ends[0] <= dataset.flat:
        return fraction
    gains = [
        np.tanh(_draw_means(sample, seed)) - dataset.flat
        for seed, sample in enumerate((score, dataset.sample))
    ]
    tails = [(1 - confidence) / 2, (1 + confidence) / 2]
    low, high = np.quantile(gains[0] / gains[1], tails).tolist()
    gain = (in_range - dataset.flat) / (dataset.sample.mean() - dataset.flat)
    return replace(fraction, above_flat=gain, above_flat_low=low, above_flat_high=high)


def _draw_means(sample: Sample, seed: int) -> FloatArray:
    """Draw means of a sample's z by Student's t; of a single unit the value itself."""
    mean, error = mean_and_error(sample.transformed())
    draws = np.random.default_rng(seed).standard_t(max(len(sample.keys) - 1, 1), _DRAWS)
    return np.asarray(mean + draws * (error or 0.0))
