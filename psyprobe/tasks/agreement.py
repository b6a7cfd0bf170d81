"""Measure how far people agree, on decisions and on answers, and average their scores.

References
----------
Cohen (1960). A coefficient of agreement for nominal scales. Educational and Psychological
Measurement 20.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from operator import eq
from typing import TYPE_CHECKING, ClassVar

from psyprobe.analysis.human_observer import FEWEST
from psyprobe.analysis.score import OBSERVER, Recorded, Row, Tabled
from psyprobe.analysis.words.sessions import person_of
from psyprobe.files.json_types import JsonObject
from psyprobe.tasks.tables import MetricValues, TaskScore

if TYPE_CHECKING:
    import xarray


@dataclass(frozen=True)
class Agreement(Recorded):
    """How often two people decided alike on the tasks that both have decided."""

    #: Names of the two people.
    first: str
    second: str
    #: Number of tasks that both have decided.
    both: int
    #: Number of these that were decided alike.
    equal: int
    #: Cohen's kappa: agreement beyond what their shares of each verdict bring about by chance, from
    #: -1 to 1. None if chance alone brings about all: no task in common, or a single verdict.
    kappa: float | None

    def __str__(self) -> str:
        names = f"{self.first} and {self.second}"
        if not self.both:
            return f"{names} have decided on nothing in common yet"
        kappa = "undefined, both said the same of all"
        if self.kappa is not None:
            kappa = f"{self.kappa:.2f}"
        share = 100 * self.equal / self.both
        return f"{names}: {self.equal} of {self.both} alike ({share:.1f} %), Cohen's kappa {kappa}"


def agreement(
    first: str,
    second: str,
    first_verdicts: Mapping[str, str],
    second_verdicts: Mapping[str, str],
) -> Agreement:
    """Measure how far two people's verdicts on the same tasks agree, with Cohen's kappa.

    Examples
    --------
    >>> ann, bob = {"a": "yes", "b": "no", "c": "no"}, {"a": "yes", "b": "yes", "d": "no"}
    >>> print(agreement("Ann", "Bob", ann, bob))
    Ann and Bob: 1 of 2 alike (50.0 %), Cohen's kappa 0.00
    """
    tasks = [name for name in first_verdicts if name in second_verdicts]
    first_words, second_words = (
        [verdicts[name] for name in tasks]
        for verdicts in (first_verdicts, second_verdicts)
    )
    equal = sum(map(eq, first_words, second_words))
    # Whole numbers: the share by chance times the squared number of tasks.
    chance = sum(map(second_words.count, first_words))
    certain = len(tasks) ** 2
    kappa = None
    if chance < certain:
        kappa = (equal * len(tasks) - chance) / (certain - chance)
    return Agreement(first, second, len(tasks), equal, kappa)


def agreements(verdicts: Mapping[str, Mapping[str, str]]) -> list[Agreement]:
    """Measure how far the verdicts of each two of several people agree."""
    return [
        agreement(first, second, verdicts[first], verdicts[second])
        for first, second in combinations(sorted(verdicts), 2)
    ]


@dataclass(frozen=True)
class PeopleAgreement(Tabled):
    """How far the people who answered one benchmark agree."""

    experiment: str
    persons: tuple[str, ...]
    #: Agreement of each two of them.
    pairs: tuple[Agreement, ...]
    #: Coverage of intervals; this score has none.
    confidence: float = 0.95
    random_weights: bool = False
    layer: str = ""
    measure: str = ""

    @property
    def observer(self) -> str:
        """Name all people together, as the observer of the score."""
        return f"{len(self.persons)} people"

    def rows(self) -> list[Row]:
        """Build a table row for each two people."""
        title = f"{self.experiment} (agreement of {self.observer})"
        return [
            Row(
                title,
                OBSERVER,
                f"{pair.first} and {pair.second}",
                _format_cells(pair),
                pair.to_dict(),
            )
            for pair in self.pairs
        ]

    def notes(self) -> list[str]:
        """Explain the table's headings in sentences."""
        return [
            "alike: questions with answers to choose from that two people answered alike, of "
            "those that both answered; kappa: Cohen's, agreement beyond what their shares of "
            "each answer bring about by chance."
        ]


@dataclass(frozen=True)
class PeopleMean(TaskScore):
    """The mean of three people or more in one benchmark, without the best and the worst of them."""

    #: Title of the table.
    table: str
    #: Mean of each metric, with the ends of the range of the people in it.
    values: MetricValues
    #: The best and the worst person.
    left_out: tuple[str, str]
    population: ClassVar[str] = "range of people"

    def rows(self) -> list[Row]:
        """Build the table row of people's mean."""
        best, worst = self.left_out
        note = (
            f"the mean of people leaves out the best of them, {best}, and the worst, {worst}; "
            "its range is theirs"
        )
        return [self.row(self.table, OBSERVER, self.values, [note])]

    def notes(self) -> list[str]:
        """Return no notes: those of single observers explain the metrics."""
        return []

    def to_dict(self) -> JsonObject:
        """Return the row as JSON values."""
        return {
            "experiment": self.experiment,
            "left_out": self.left_out,
            **self.rows()[0].record,
        }


def _format_cells(pair: Agreement) -> dict[str, str]:
    """Format how often two readers agree, with Cohen's kappa, as cells."""
    share = f" ({100 * pair.equal / pair.both:.1f} %)" if pair.both else ""
    return {
        "alike": f"{pair.equal} of {pair.both}{share}",
        "kappa": "" if pair.kappa is None else f"{pair.kappa:.2f}",
    }


def people_by_experiment(
    results: Sequence[xarray.Dataset], min_count: int = FEWEST
) -> list[dict[str, xarray.Dataset]]:
    """Group people's results by experiment and pseudonym, where enough people answered."""
    groups: dict[str, dict[str, xarray.Dataset]] = {}
    for result in results:
        if person := person_of(result):
            groups.setdefault(str(result.attrs["experiment_digest"]), {})[person] = (
                result
            )
    return [members for members in groups.values() if len(members) >= min_count]
