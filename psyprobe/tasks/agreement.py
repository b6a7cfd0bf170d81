"""How far people agree, on decisions and on answers, and what they reach together.

References
----------
Cohen (1960). A coefficient of agreement for nominal scales. Educational and Psychological
Measurement 20.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import pandas as pd

from psyprobe.analysis.human_observer import FEWEST
from psyprobe.analysis.score import OBSERVER, Recorded, Row, Tabled
from psyprobe.analysis.words.people import mean_of_people
from psyprobe.analysis.words.sessions import person_of
from psyprobe.tasks.tables import MetricValues, ReadScore, TaskScore

if TYPE_CHECKING:
    import xarray


@dataclass(frozen=True)
class Agreement(Recorded):
    """How two people decided on what both have decided."""

    #: Their names.
    first: str
    second: str
    #: Tasks that both have decided.
    both: int
    #: Of these, decided alike.
    equal: int
    #: Cohen's: agreement beyond what their shares of each verdict bring about by chance, from -1 to
    #: 1. None where nothing could be beyond it: nobody decided, or both always the same.
    kappa: float | None

    def __str__(self) -> str:
        if not self.both:
            return f"{self.first} and {self.second} have decided on nothing in common yet"
        kappa = (
            "undefined, both said the same of all" if self.kappa is None else f"{self.kappa:.2f}"
        )
        share = f"{self.equal} of {self.both} alike ({100 * self.equal / self.both:.1f} %)"
        return f"{self.first} and {self.second}: {share}, Cohen's kappa {kappa}"


def agreement(
    first: str, second: str, ones: Mapping[str, str], others: Mapping[str, str]
) -> Agreement:
    """How far two people agree.

    Examples
    --------
    >>> one, other = {"a": "yes", "b": "no", "c": "no"}, {"a": "yes", "b": "yes", "d": "no"}
    >>> print(agreement("Ann", "Bob", one, other))
    Ann and Bob: 1 of 2 alike (50.0 %), Cohen's kappa 0.00
    """
    both = [name for name in ones if name in others]
    equal = sum(ones[name] == others[name] for name in both)
    mine, theirs = (Counter(said[name] for name in both) for said in (ones, others))
    # In whole numbers: "by chance" times n squared.
    chance = sum(mine[value] * theirs[value] for value in mine)
    certain = len(both) ** 2
    kappa = None if chance == certain else (equal * len(both) - chance) / (certain - chance)
    return Agreement(first, second, len(both), equal, kappa)


def agreements(verdicts: Mapping[str, Mapping[str, str]]) -> list[Agreement]:
    """How far each two people agree."""
    return [
        agreement(one, other, verdicts[one], verdicts[other])
        for one, other in combinations(sorted(verdicts), 2)
    ]


@dataclass(frozen=True)
class PeopleAgreement(Tabled):
    """How far the people agree who answered one benchmark."""

    experiment: str
    persons: tuple[str, ...]
    #: Of each two of them.
    pairs: tuple[Agreement, ...]
    #: Of intervals, of which there are none.
    confidence: float = 0.95
    random_weights: bool = False
    layer: str = ""
    measure: str = ""

    @property
    def observer(self) -> str:
        """The people together."""
        return f"{len(self.persons)} people"

    def rows(self) -> list[Row]:
        """Each two of them."""
        title = f"{self.experiment} (agreement of {self.observer})"
        return [
            Row(title, OBSERVER, f"{pair.first} and {pair.second}", _cells(pair), pair.to_dict())
            for pair in self.pairs
        ]

    def notes(self) -> list[str]:
        """What the headings mean."""
        return [
            "alike: questions with answers to choose from that two people answered alike, of "
            "those that both answered; "
            "kappa: Cohen's, agreement beyond what their shares of each answer bring about by "
            "chance."
        ]


@dataclass(frozen=True)
class PeopleMean(TaskScore):
    """What three people or more reach in one benchmark without the best and the worst of them."""

    #: Title of the table, and by metric the mean with the ends of the range of those who are left.
    table: str
    values: MetricValues
    left_out: tuple[str, str]

    def rows(self) -> list[Row]:
        """One row."""
        best, worst = self.left_out
        told = [
            f"the mean of people leaves out the best of them, {best}, and the worst, {worst}; "
            "its range is theirs"
        ]
        return [self.row(self.table, OBSERVER, self.values, told)]

    def notes(self) -> list[str]:
        """Nothing besides what stands below single observers."""
        return []

    def to_dict(self) -> dict[str, Any]:
        """The one row."""
        return {"experiment": self.experiment, "left_out": self.left_out, **self.rows()[0].record}


def people_scores(
    results: Sequence[xarray.Dataset],
    table: str,
    score: Callable[[xarray.Dataset], Sequence[ReadScore]],
    values: Callable[[pd.DataFrame], MetricValues],
    chosen: Callable[[xarray.Dataset], Mapping[str, str]],
) -> list[PeopleMean | PeopleAgreement]:
    """Score what people reach together, and how far they agree, experiment by experiment.

    Parameters
    ----------
    results : sequence of xarray.Dataset
        Of any observers in a benchmark.
    table : str
        Title of the table of means.
    score : callable
        From a result to its scores, of which the first counts.
    values : callable
        From metrics to what a row shows.
    chosen : callable
        As for `agreement_of_people`.
    """
    means = []
    for members in people_by_experiment(results):
        scores = {person: score(result)[0] for person, result in members.items()}
        first = next(iter(scores.values()))
        mean = mean_of_people({person: score.metrics for person, score in scores.items()})
        observer = f"mean of {len(scores) - 2} of {len(scores)} people"
        attributes = {**first.attributes, "observer": observer}
        left_out = mean.attrs["left_out"]
        means.append(
            PeopleMean(attributes, first.confidence, "", "", table, values(mean), left_out)
        )
    return [*means, *agreement_of_people(results, chosen)]


def _cells(one: Agreement) -> dict[str, str]:
    share = f" ({100 * one.equal / one.both:.1f} %)" if one.both else ""
    return {
        "alike": f"{one.equal} of {one.both}{share}",
        "kappa": "" if one.kappa is None else f"{one.kappa:.2f}",
    }


def agreement_of_people(
    results: Sequence[xarray.Dataset], chosen: Callable[[xarray.Dataset], Mapping[str, str]]
) -> tuple[PeopleAgreement, ...]:
    """How far the people among results agree, experiment by experiment; nothing of one person
    alone.

    Parameters
    ----------
    results : sequence of xarray.Dataset
        Of any observers in a benchmark.
    chosen : callable
        From a result to the answers that were chosen among others, by the name of their question.
    """
    return tuple(
        PeopleAgreement(
            experiment=str(next(iter(members.values())).attrs["experiment"]),
            persons=tuple(members),
            pairs=tuple(agreements({person: chosen(one) for person, one in members.items()})),
        )
        for members in people_by_experiment(results, 2)
    )


def people_by_experiment(
    results: Sequence[xarray.Dataset], fewest: int = FEWEST
) -> list[dict[str, xarray.Dataset]]:
    """The people among results, by pseudonym, experiment by experiment; where they are so many."""
    groups: dict[str, dict[str, xarray.Dataset]] = {}
    for result in results:
        if person := person_of(result):
            groups.setdefault(str(result.attrs["experiment_digest"]), {})[person] = result
    return [members for members in groups.values() if len(members) >= fewest]
