"""Compare the scores of many observers in many tests, and lay the differences out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.analysis import score as tables
from psyprobe.analysis.comparison.family import holm, rank_ranges, shared_letters
from psyprobe.analysis.comparison.paired import (
    PairedDifference,
    compare_samples,
    equivalence_probability,
    margin_on_z,
    smallest_difference,
)
from psyprobe.analysis.comparison.references import difference_error
from psyprobe.analysis.comparison.sample import Sample, Scale
from psyprobe.analysis.score import (
    CONTRAST,
    OBSERVER,
    PIXELS,
    Entry,
    Metric,
    Recorded,
    Score,
    number,
)
from psyprobe.errors import InputError, unknown_name
from psyprobe.files.json_types import JsonObject
from psyprobe.files.terminal import lay_out

if TYPE_CHECKING:
    import pandas as pd

    from psyprobe.analysis.comparison.conditions import PeopleDifference
    from psyprobe.analysis.words.difference import LevelDifference

#: Level of all tests, after Holm's correction.
ALPHA = 0.05
#: Fewest tests of one scale over which a difference is averaged.
_FEWEST_TESTS = 3

_KEY = (
    "difference: observer less {baseline}, with its {confidence} % interval if others like the "
    "{population} had been shown. Both saw the same. z: on Fisher's z of r_s; log10: on the "
    "logarithm of the error.",
    "p: paired t test{family}. ranks: what all pairs of observers leave open, by Holm over the "
    "pairs.",
    "smallest: the difference that is found with a probability of 80 %, if units scatter as here. "
    "equivalent: for certain (two one-sided tests) within the margin, of {margin} in the score "
    "(of a percentage: {points} points).",
)


@dataclass(frozen=True)
class ComparedRow(Recorded):
    """One observer against the baseline in one test."""

    test: str
    observer: str
    baseline: str
    value: float
    baseline_value: float
    #: What the units are: "variants", "image pairs".
    population: str
    #: Scale of the difference: "z", "log10" or "linear".
    scale: Scale
    difference: PairedDifference
    #: Whether a larger score is better.
    more_is_better: bool
    #: Adjusted by Holm over the family; None where all units differ alike.
    p_adjusted: float | None = None
    #: Number of comparisons of the family.
    family: int = 1
    #: Ranks that the observer may have among all of the test.
    ranks: tuple[int, int] = (1, 1)
    #: Smallest difference found with 80 %, at the spread of these units; None where there is none.
    smallest: float | None = None
    #: Margin on the scale, and the larger p of two one-sided tests that the difference is inside.
    margin: float = 0.0
    p_equivalent: float = 1.0
    #: What a perfect observer scores on a linear scale: 100 where scores are percentages.
    full_score: float = 1.0
    #: Half the interval of the difference over the studies that castleCSF was fitted to; None where
    #: castleCSF is not the reference of both, and over tests.
    reference_error: float | None = None

    @property
    def different(self) -> bool:
        """Tell whether the observer differs from the baseline beyond chance."""
        if self.p_adjusted is None:
            return abs(self.difference.mean) > 1e-9
        return self.p_adjusted < ALPHA

    @property
    def better(self) -> bool:
        """Tell whether the observer is surely better than the baseline."""
        return self.different and (self.difference.mean > 0) == self.more_is_better

    @property
    def verdict(self) -> str:
        """Describe in words what the comparison allows to conclude."""
        words = []
        if self.different:
            words.append("better" if self.better else "worse")
            if abs(self.difference.mean) < (self.reference_error or 0.0):
                words.append("other studies could reverse it")
        if self.p_equivalent < ALPHA:
            words.append("equivalent")
        return ", ".join(words) or "not told apart"

    def cells(self) -> dict[str, str]:
        """Format the comparison as table cells, by heading."""
        difference = self.difference
        error = self.reference_error
        interval = number(difference.mean, 3, sign=True)
        if difference.low is not None:
            low = number(difference.low, 3, sign=True)
            interval += f" [{low}, {number(difference.high, 3, sign=True)}]"
        first, last = self.ranks
        return {
            "score": number(self.value),
            "difference [interval]": f"{interval} {self.scale}",
            **({} if error is None else {"references": f"±{number(error, 3)}"}),
            "p (Holm)": _probability(self.p_adjusted),
            "ranks": f"{first}" if first == last else f"{first}-{last}",
            "smallest": number(self.smallest, 3),
            "verdict": self.verdict,
        }

    def record(self) -> JsonObject:
        """Collect all single values of the comparison as a flat record."""
        record = self.to_dict()
        difference = record.pop("difference")
        first, last = record.pop("ranks")
        return {
            **record,
            **{f"difference_{name}": value for name, value in difference.items()},
            "rank_first": first,
            "rank_last": last,
            "verdict": self.verdict,
        }


_HEADINGS = (
    "score",
    "difference [interval]",
    "references",
    "p (Holm)",
    "ranks",
    "smallest",
    "verdict",
)
_REFERENCES_KEY = (
    "references: ± half the {confidence} % interval of the difference over the studies that "
    "castleCSF was fitted to (each left out in turn, Student's t), no part of the other interval."
)
_LEVEL_KEY = (
    "band: if the same observers had answered other trials, or other prompts where several were "
    "asked; with {confidence} % it holds all levels of all comparisons of an experiment at once."
)
_PEOPLE_KEY = (
    "difference: mean log10 sensitivity of the first less the second, with its {confidence} % "
    "interval if other people had been measured, at this level alone. {design}",
    "p: adjusted by Holm over {levels} levels; that of the mean over levels stands by itself.",
)
_PAIRED = "The same people did both (Hartung and Knapp)."
_GROUPS = (
    "Two groups of people (Hartung and Knapp's means, Welch's degrees of freedom)."
)
_PEOPLE_HEADINGS = ("difference [interval]", "p (Holm)", "people", "verdict")
_LEVEL_HEADINGS = ("difference of log10 sensitivity [band]", "verdict")


@dataclass(frozen=True)
class Comparison:
    """Observers against a baseline, test by test."""

    baseline: str
    rows: tuple[ComparedRow, ...]
    #: What could not be compared, and why.
    notes: tuple[str, ...]
    confidence: float
    #: Difference of a score within which observers are equivalent.
    margin: float
    #: Differences of curves that were measured by answers, level by level.
    levels: tuple[LevelDifference, ...] = ()
    #: Differences of people between two conditions or groups, level by level.
    people: tuple[PeopleDifference, ...] = ()

    def table(self, format: str = "text") -> str:
        """Lay out all differences as text, Markdown, LaTeX, CSV or JSON.

        Raises
        ------
        UnknownNameError
            If the format is none of these.
        """
        tables.check_format(format)
        if format == "json":
            return tables.json_text(self.to_dict())
        if format == "csv":
            return tables.csv_text(self._records())
        blocks = []
        for test in dict.fromkeys(row.test for row in self.rows):
            rows = [row for row in self.rows if row.test == test]
            headings, cells = _table(rows)
            blocks.append(lay_out(format, [[test, *headings], *cells]))
        for experiment in dict.fromkeys(row.experiment for row in self.levels):
            cells = [row.cells() for row in self.levels if row.experiment == experiment]
            blocks.append(lay_out(format, [[experiment, *_LEVEL_HEADINGS], *cells]))
        if self.people:
            cells = [row.cells() for row in self.people]
            blocks.append(
                lay_out(format, [[self.people[0].level, *_PEOPLE_HEADINGS], *cells])
            )
        return tables.document(format, blocks, self._lines())

    def to_dict(self) -> JsonObject:
        """Convert everything to what JSON holds."""
        return {
            "baseline": self.baseline,
            "confidence": self.confidence,
            "margin": self.margin,
            "rows": [row.record() for row in self.rows],
            "levels": [row.record() for row in self.levels],
            "people": [row.record() for row in self.people],
            "notes": list(self.notes),
        }

    def _records(self) -> list[JsonObject]:
        """Collect the flat records of all rows."""
        return [
            *(row.record() for row in self.rows),
            *(row.record() for row in self.levels),
            *(row.record() for row in self.people),
        ]

    def to_frame(self) -> pd.DataFrame:
        """Convert all single values to a pandas table, one row a comparison."""
        import pandas

        return pandas.DataFrame(self._records())

    def _repr_html_(self) -> str:
        """Show the comparison as an HTML table in a notebook, with folded explanations."""
        from psyprobe.files import html

        headings, cells = _table(self.rows)
        body = [[row.test, *texts] for row, texts in zip(self.rows, cells, strict=True)]
        tables = html.table([["test", "", *headings], *body]) * bool(body)
        if self.levels:
            body = [[row.experiment, *row.cells()] for row in self.levels]
            tables += html.table([["test", "", *_LEVEL_HEADINGS], *body])
        if self.people:
            body = [row.cells() for row in self.people]
            tables += html.table([[self.people[0].level, *_PEOPLE_HEADINGS], *body])
        return tables + html.folded(
            "what the columns mean", html.paragraphs("\n".join(self._lines()))
        )

    def __str__(self) -> str:
        return self.table()

    def _lines(self) -> list[str]:
        """Write what the columns mean, and notes, as sentences below the table."""
        percent = f"{100 * self.confidence:g}"
        key = [_LEVEL_KEY.format(confidence=percent)] * bool(self.levels)
        if self.people:
            design = _PAIRED if self.people[0].paired else _GROUPS
            levels = sum(row.value is not None for row in self.people)
            key += [
                line.format(confidence=percent, design=design, levels=levels)
                for line in _PEOPLE_KEY
            ]
        notes = [*key, *self.notes]
        if not self.rows:
            return notes
        populations = dict.fromkeys(
            f"{row.difference.units} {row.population}" for row in self.rows
        )
        families = sorted({row.family for row in self.rows})
        family = ""
        if families != [1]:
            counts = " or ".join(map(str, families))
            family = f", corrected by Holm for the {counts} comparisons of a test"
        facts = {
            "baseline": self.baseline,
            "confidence": percent,
            "population": " or ".join(populations),
            "family": family,
            "margin": f"{self.margin:g}",
            "points": f"{100 * self.margin:g}",
        }
        has_references = any(row.reference_error is not None for row in self.rows)
        lines = [*_KEY, *[_REFERENCES_KEY] * has_references]
        return [*(line.format(**facts) for line in lines), *notes]


def _table(rows: Sequence[ComparedRow]) -> tuple[list[str], list[list[str]]]:
    """Lay rows out under the headings that any of them has: headings, and each row's texts."""
    cells = [row.cells() for row in rows]
    headings = [name for name in _HEADINGS if any(name in texts for texts in cells)]
    body = [
        [row.observer, *(texts.get(name, "-") for name in headings)]
        for row, texts in zip(rows, cells, strict=True)
    ]
    return headings, body


#: Short names of trivial responders.
_TRIVIAL = {"pixels": PIXELS, "contrast": CONTRAST}
#: Entries of one test: by observer, its own and those of the trivial responders beside it.
_Group: TypeAlias = dict[str, dict[str, Entry]]


def compare(
    scores: Iterable[Score],
    *,
    baseline: str | None = None,
    margin: float = 0.05,
    confidence: float = 0.95,
) -> Comparison:
    """Compare observers' scores with a baseline's on the same variants or items.

    Parameters
    ----------
    scores : iterable of Score
        Of at least one observer.
    baseline : str, optional
        "pixels", "contrast" (alone), another trivial responder, or the name of an observer; without
        it the second of two observers, else the pixels.
    margin : float, optional
        Difference of a score within which observers are called equivalent.
    confidence : float, optional
        Coverage of the intervals, in (0, 1).

    Raises
    ------
    InputError
        If nothing can be compared.
    UnknownNameError
        If there is no such baseline.
    """
    groups = _by_test(list(scores))
    if not groups:
        raise InputError(
            "there are no scores to compare; give results of two observers, or of one with pixels"
        )
    observers = list(dict.fromkeys(name for _, _, group in groups for name in group))
    if baseline is None:
        baseline = observers[1] if len(observers) == 2 else "pixels"
    baseline = _TRIVIAL.get(baseline, baseline)
    trivial = {
        name for _, _, group in groups for entries in group.values() for name in entries
    }
    names = [*observers, *sorted(trivial - {OBSERVER})]
    if baseline not in names:
        raise unknown_name("baseline", baseline, names)
    rows, notes = _compare_tests(groups, baseline, margin, confidence)
    if not rows:
        raise InputError(notes[0].rstrip("."))
    rows += _over_tests(rows, margin, confidence)
    return Comparison(
        baseline, tuple(rows), tuple(dict.fromkeys(notes)), confidence, margin
    )


def better_than(scores: Sequence[Score], baseline: str) -> dict[tuple[str, str], bool]:
    """Tell by test and observer who is surely better than a baseline, by Holm over observers.

    Left out are those that share no units with it, such as observers of one variant.

    Parameters
    ----------
    scores : sequence of Score
        Of any observers and tests.
    baseline : str
        A trivial responder, as `psyprobe.analysis.score.PIXELS`.
    """
    rows, _ = _compare_tests(_by_test(scores), baseline, margin=0.05, confidence=0.95)
    return {(row.test, row.observer): row.better for row in rows}


@dataclass(frozen=True)
class ToldApart:
    """Which observers of one test are told apart, by Holm over all pairs."""

    #: Letters by observer; those that share one are not told apart.
    letters: Mapping[str, str]
    #: What both of a pair were shown, as "8 variants", and the number of pairs.
    units: str
    pairs: int


def told_apart(scores: Sequence[Score]) -> dict[str, ToldApart]:
    """Compare all pairs of observers in each test that two or more did with several variants.

    Parameters
    ----------
    scores : sequence of Score
        Of any observers and tests.
    """
    tests = {}
    for test, metric, group in _by_test(scores):
        samples = _samples_of(group)
        if len(samples) > 1:
            better, pairs = _certain_wins(samples, metric.more_is_better, 0.95)
            letters = dict(zip(samples, shared_letters(better), strict=True))
            units = {
                f"{len(sample.keys)} {sample.population}" for sample in samples.values()
            }
            tests[test] = ToldApart(letters, " or ".join(sorted(units)), pairs)
    return tests


def _compare_tests(
    groups: Sequence[tuple[str, Metric, _Group]],
    baseline: str,
    margin: float,
    confidence: float,
) -> tuple[list[ComparedRow], list[str]]:
    """Compare observers with the baseline in each test; return rows, and notes on others."""
    rows: list[ComparedRow] = []
    notes: list[str] = []
    for test, metric, group in groups:
        compared, problems = _compare_test(
            test, metric, group, baseline, margin, confidence
        )
        rows += compared
        notes += problems
    return rows, notes


def _samples_of(group: _Group) -> dict[str, Sample]:
    """Collect the samples of the observers of a test that were shown several units."""
    samples = {}
    for name, entries in group.items():
        sample = entries[OBSERVER].sample if OBSERVER in entries else None
        if sample is not None:
            samples[name] = sample
    return samples


def _by_test(scores: Sequence[Score]) -> list[tuple[str, Metric, _Group]]:
    """Group scores by test and metric, then by observer and responder."""
    groups: dict[tuple[str, Metric], _Group] = {}
    for score in scores:
        name = tables.observer_name(score, scores)
        for row in score.rows():
            for metric, entry in row.entries.items():
                group = groups.setdefault((score.experiment, metric), {})
                group.setdefault(name, {}).setdefault(row.responder, entry)
    return [
        (f"{experiment} {metric.suffix}".strip(), metric, group)
        for (experiment, metric), group in groups.items()
    ]


def _compare_test(
    test: str,
    metric: Metric,
    group: _Group,
    baseline: str,
    margin: float,
    confidence: float,
) -> tuple[list[ComparedRow], list[str]]:
    """Compare each observer with the baseline in one test; return rows, and notes on others."""
    rows = []
    notes = []
    for name, entries in group.items():
        if name == baseline:
            continue
        sample = entries[OBSERVER].sample
        other = entries.get(baseline) or group.get(baseline, {}).get(OBSERVER)
        if sample is None or other is None or other.sample is None:
            subject = name if sample is None else baseline
            notes.append(f"{test}, {name}: {_why_not(subject, other)}.")
            continue
        try:
            difference = compare_samples(sample, other.sample, confidence)
        except InputError as problem:
            notes.append(f"{test}, {name}: {problem}.")
            continue
        row = ComparedRow(
            test,
            name,
            baseline,
            sample.mean(),
            other.sample.mean(),
            sample.population,
            sample.scale,
            difference,
            metric.more_is_better,
            full_score=metric.full_score,
            reference_error=_reference_error(entries[OBSERVER], other, confidence),
        )
        rows.append(_with_margin(row, margin))
    ranks = _ranks(_samples_of(group), metric.more_is_better, confidence)
    return [replace(row, ranks=ranks[row.observer]) for row in _corrected(rows)], notes


def _reference_error(first: Entry, second: Entry, confidence: float) -> float | None:
    """Compute half the interval over studies of two scores' difference, if both have one."""
    if first.references is None or second.references is None:
        return None
    return difference_error(first.references, second.references, confidence)


def _why_not(subject: str, other: Entry | None) -> str:
    """Describe why an observer cannot be compared: it has no score, or a single variant."""
    if other is None:
        return f"{subject} has no score there"
    return (
        f"{subject} was shown one variant, which tells no difference; run with several, as "
        "--variants draw=1,2,3,4,5,6,7,8"
    )


def _with_margin(row: ComparedRow, margin: float) -> ComparedRow:
    """Add to a comparison whether it is equivalent within a margin, and what it could find."""
    if row.scale == "z":
        margin = margin_on_z(margin, row.baseline_value)
    elif row.scale == "linear":
        margin *= row.full_score
    units = row.difference.units
    smallest = None
    if row.difference.error is not None:
        # The error of weighed units is that of so many units of a larger spread.
        spread = row.difference.error * np.sqrt(units)
        smallest = float(smallest_difference(units) * spread)
    return replace(
        row,
        smallest=smallest,
        margin=margin,
        p_equivalent=equivalence_probability(row.difference, margin),
    )


def _corrected(rows: Sequence[ComparedRow]) -> list[ComparedRow]:
    """Adjust the p-values of a family of comparisons by Holm."""
    adjusted = holm([row.difference.p for row in rows])
    corrected = []
    for row, p in zip(rows, adjusted, strict=True):
        smallest = row.smallest
        if smallest is not None and len(rows) > 1:
            units = row.difference.units
            alone = smallest_difference(units)
            smallest *= smallest_difference(units, ALPHA / len(rows)) / alone
        corrected.append(
            replace(row, p_adjusted=p, family=len(rows), smallest=smallest)
        )
    return corrected


def _ranks(
    samples: Mapping[str, Sample], more_is_better: bool, confidence: float
) -> dict[str, tuple[int, int]]:
    """Compute the range of ranks of each observer, from all pairs with Holm's correction."""
    better, _ = _certain_wins(samples, more_is_better, confidence)
    return dict(zip(samples, rank_ranges(better), strict=True))


def _certain_wins(
    samples: Mapping[str, Sample], more_is_better: bool, confidence: float
) -> tuple[FloatArray, int]:
    """Tell who is surely better than whom by Holm over all pairs; return also their number."""
    names = list(samples)
    differences: dict[tuple[int, int], PairedDifference] = {}
    for first, second in combinations(range(len(names)), 2):
        try:
            differences[first, second] = compare_samples(
                samples[names[first]], samples[names[second]], confidence
            )
        except InputError:
            # Observers on other units are not told apart.
            continue
    adjusted = holm([difference.p for difference in differences.values()])
    better = np.zeros((len(names), len(names)))
    for (first, second), p in zip(differences, adjusted, strict=True):
        mean = differences[first, second].mean
        certain = abs(mean) > 1e-9 if p is None else p < ALPHA
        if certain:
            first_wins = (mean > 0) == more_is_better
            winner, loser = (first, second) if first_wins else (second, first)
            better[winner, loser] = 1
    return better, len(differences)


def _over_tests(
    rows: Sequence[ComparedRow], margin: float, confidence: float
) -> list[ComparedRow]:
    """Compare observers over several tests, each test as one unit."""
    summaries = []
    for scale in dict.fromkeys(row.scale for row in rows):
        members: dict[str, list[ComparedRow]] = {}
        for row in rows:
            if row.scale == scale:
                members.setdefault(row.observer, []).append(row)
        members = {
            observer: of_observer
            for observer, of_observer in members.items()
            if len(of_observer) >= _FEWEST_TESTS
        }
        samples = {
            observer: _sample_of_tests(of_observer, "value")
            for observer, of_observer in members.items()
        }
        compared = []
        for observer, of_observer in members.items():
            sample = samples[observer]
            baseline = _sample_of_tests(of_observer, "baseline_value")
            row = replace(
                of_observer[0],
                test=f"over {len(of_observer)} tests",
                value=sample.mean(),
                baseline_value=baseline.mean(),
                population="tests",
                reference_error=None,
                difference=compare_samples(sample, baseline, confidence),
            )
            compared.append(_with_margin(row, margin))
        if compared and compared[0].baseline not in _TRIVIAL.values():
            most = max(members.values(), key=len)
            samples[compared[0].baseline] = _sample_of_tests(most, "baseline_value")
        more_is_better = bool(compared) and compared[0].more_is_better
        ranks = _ranks(samples, more_is_better, confidence)
        summaries += [
            replace(row, ranks=ranks[row.observer]) for row in _corrected(compared)
        ]
    return summaries


def _sample_of_tests(rows: Sequence[ComparedRow], name: str) -> Sample:
    """Build the sample of an observer's scores over tests, one unit a test."""
    tests = tuple(row.test for row in rows)
    values = tuple(getattr(row, name) for row in rows)
    return Sample("tests", tests, values, rows[0].scale)


def _probability(p: float | None) -> str:
    """Format a p-value, or a missing one as "-"."""
    if p is None:
        return "-"
    return f"{p:.1g}" if p < 0.001 else f"{p:.3f}"
