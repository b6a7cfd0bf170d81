"""Average several people in one experiment, and score each against the others.

A model can then be compared with these people, and with how well another person does, as with
people measured elsewhere (`psyprobe.analysis.noise_ceiling`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pandas as pd

from psyprobe._typing import BoolArray, FloatArray
from psyprobe.analysis.human_observer import FEWEST, Ceiling, ceiling
from psyprobe.analysis.intervals import draw_counts, normal_quantile, student_reach
from psyprobe.analysis.noise_ceiling import curve_scores, is_error
from psyprobe.analysis.responses import levels_of, observer_of
from psyprobe.analysis.score import OBSERVER, PERSON, Row, Tabled, interval_text
from psyprobe.analysis.words import comparison
from psyprobe.analysis.words.csf import chat_csfs
from psyprobe.analysis.words.fit import experiment_table
from psyprobe.analysis.words.score import (
    HEADINGS,
    UNSURE,
    digits_of,
    interval_cells,
    plain_number,
)
from psyprobe.analysis.words.sessions import (
    is_remote,
    person_of,
    screen_error,
    sessions_of,
)
from psyprobe.files.json_types import JsonObject
from psyprobe.files.units import unit_symbol

if TYPE_CHECKING:
    import xarray as xr


@dataclass(frozen=True, eq=False)
class PeopleCurve:
    """The mean of three people or more over a level."""

    #: Pseudonyms.
    persons: tuple[str, ...]
    #: Values of the level at which each of them has a threshold, shape (F,).
    values: FloatArray
    #: log10 sensitivity of each, shape (P, F).
    log_s: FloatArray
    #: Geometric mean, and ends of its interval over people with the error of their screens, shape
    #: (F,).
    mean: FloatArray
    low: FloatArray
    high: FloatArray
    #: Whether thresholds lie below what is claimed of a screen that nobody measured, shape (F,).
    unsure: BoolArray

    @property
    def name(self) -> str:
        """Name the curve for figures and tables."""
        return f"mean of {len(self.persons)} people"


def people_curve(
    csfs: Sequence[xr.Dataset],
    *,
    confidence: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> PeopleCurve | None:
    """Average the CSFs of people in one experiment; None for fewer than three.

    Parameters
    ----------
    csfs : sequence of xarray.Dataset
        Of `chat_csf`, of people and of others.
    confidence, resamples, seed
        As for `psyprobe.analysis.align`.

    Notes
    -----
    People are drawn with replacement, not their answers: the band is value ± t s, with s the
    standard deviation of the samples' means times sqrt(P / (P - 1)) and Student's t with P - 1
    degrees of freedom, and in squares the error of the screen, which people at one screen have in
    common.
    """
    people = [csf for csf in csfs if person_of(csf)]
    # Screens elsewhere are no part of a mean with calibrated ones.
    is_local = sum(not is_remote(csf) for csf in people) >= FEWEST
    people = [csf for csf in people if is_remote(csf) != is_local]
    if len(people) < FEWEST:
        return None
    (level,) = levels_of(people[0])
    # By value of the level; one without a threshold for all of them is left out.
    table = pd.DataFrame(
        [
            csf["mean_sensitivity"].to_series().set_axis(csf[level].values)
            for csf in people
        ]
    )
    table = table[people[0][level].values.tolist()].dropna(axis="columns")
    values = table.columns.to_numpy(float)
    if len(values) < 2:
        return None
    log_s = np.log10(table.to_numpy())
    mean = log_s.mean(axis=0)
    count = len(people)
    samples = draw_counts(count, resamples, seed) @ log_s / count
    reach = np.array([student_reach(column, count, confidence) for column in samples.T])
    screens = []
    weights = []
    for sessions in map(sessions_of, people):
        total = sum(session.trials for session in sessions)
        screens += [session.screen for session in sessions]
        weights += [session.trials / total for session in sessions]
    in_noise = bool(experiment_table(people[0], "noise").get("density"))
    error = screen_error(screens, weights, -mean, in_noise=in_noise)
    reach = np.hypot(reach, normal_quantile(confidence) * error.total)
    return PeopleCurve(
        persons=tuple(map(person_of, people)),
        values=values,
        log_s=log_s,
        mean=10.0**mean,
        low=10.0 ** (mean - reach),
        high=10.0 ** (mean + reach),
        unsure=error.unsure,
    )


def people_ceiling(
    curve: PeopleCurve, *, resamples: int = 2000, seed: int = 0
) -> dict[str, Ceiling]:
    """Score each person against the geometric mean of the others: the noise ceiling by score.

    Parameters
    ----------
    curve : PeopleCurve
        Of three people or more.
    resamples, seed
        As for `psyprobe.analysis.align`.
    """
    n = len(curve.persons)
    other_curves = (curve.log_s.sum(axis=0) - curve.log_s) / (n - 1)
    scores = [
        curve_scores(single, rest)
        for single, rest in zip(curve.log_s, other_curves, strict=True)
    ]
    return {
        name: ceiling(
            np.array([score[name] for score in scores]),
            error=is_error(name),
            resamples=resamples,
            seed=seed,
        )
        for name in comparison.STATISTICS
        if all(np.isfinite(score[name]) for score in scores)
    }


_KEY = (
    "against the mean of people: as against a human curve, of those who sat this experiment. "
    "one person: each of them "
    "against the mean of the others, the noise ceiling of this experiment, with its interval "
    "({confidence} %) over "
    "people; an observer that reaches it is as near to people as they are to each other."
)


@dataclass(frozen=True)
class PeopleScore(Tabled):
    """Several people in one experiment, and all observers in it against their mean."""

    experiment: str
    persons: tuple[str, ...]
    #: The level: name, unit, values, and the mean sensitivity of the people with its interval.
    level: str
    unit: str
    values: tuple[float, ...]
    sensitivity: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    unsure: tuple[bool, ...]
    #: Noise ceiling by score: one person against the others.
    ceiling: dict[str, Ceiling]
    #: Scores against the mean of the people, by observer that is no person.
    scores: dict[str, comparison.CsfScores]
    #: Confidence of all intervals.
    confidence: float
    #: People have no layer and no measure, and are trained.
    layer: ClassVar[str] = ""
    measure: ClassVar[str] = ""
    random_weights: ClassVar[bool] = False

    @property
    def observer(self) -> str:
        """Name all people together, as the observer of the score."""
        return f"mean of {len(self.persons)} people"

    def rows(self) -> list[Row]:
        """Build the table rows of each observer, of the noise ceiling, and of people's mean."""
        title = f"{self.experiment} (against the {self.observer})"
        experiment: JsonObject = {"experiment": self.experiment}
        rows = []
        for name, scores in self.scores.items():
            record = experiment | {
                "observer": name,
                "responder": "observer",
                "human": self.observer,
                "confidence": self.confidence,
            }
            for statistic in comparison.STATISTICS:
                record |= _record(statistic, getattr(scores, statistic))
            rows.append(Row(title, OBSERVER, name, interval_cells(scores), record))
        record = experiment | {"responder": PERSON, "human": self.observer}
        cells = {}
        for name, limit in self.ceiling.items():
            record |= _record(name, limit) | {f"{name}_sd": limit.sd}
            cells[HEADINGS[name]] = interval_text(
                limit.value, limit.low, limit.high, digits_of(name)
            )
        persons = f"people: {', '.join(self.persons)}"
        label = "one person (noise ceiling)"
        rows.append(Row(title, PERSON, label, cells, record, notes=[persons]))
        axis = (
            "CSF (cpd)" if self.level == "frequency" else f"{self.level} ({self.unit})"
        )
        ends = (self.sensitivity, self.low, self.high)
        for value, unsure, *point in zip(self.values, self.unsure, *ends, strict=True):
            mean, low, high = map(plain_number, point)
            cells = {
                "sensitivity": f"{mean} [{low}, {high}]",
                "remarks": UNSURE * unsure,
            }
            rows.append(Row(f"{self.observer}: {axis}", OBSERVER, f"{value:g}", cells))
        return rows

    def notes(self) -> list[str]:
        """Explain the table's headings in sentences."""
        return [_KEY]


def score_people(
    results: Sequence[xr.Dataset], *, resamples: int = 2000, seed: int = 0
) -> tuple[PeopleScore, ...]:
    """Score all observers of each experiment against the mean of its people.

    Experiments of fewer than three people have no such score.

    Parameters
    ----------
    results : sequence of xarray.Dataset
        Of questioning runs of any experiments.
    resamples, seed
        As for `psyprobe.analysis.align`.
    """
    groups: defaultdict[str, list[xr.Dataset]] = defaultdict(list)
    for result in results:
        groups[str(result.attrs["experiment_digest"])].append(result)
    scores = []
    for members in groups.values():
        if sum(map(bool, map(person_of, members))) < FEWEST:
            continue
        csfs = chat_csfs(members)
        mean = people_curve(csfs, resamples=resamples, seed=seed)
        if mean is not None:
            scores.append(_score_group(members[0], csfs, mean, resamples, seed))
    return tuple(scores)


def _score_group(
    first: xr.Dataset,
    csfs: Sequence[xr.Dataset],
    mean: PeopleCurve,
    resamples: int,
    seed: int,
) -> PeopleScore:
    """Score each model's CSF against the mean CSF of a group of people, with their ceiling."""
    (level,) = levels_of(csfs[0])
    scores = {}
    curve = pd.Series(mean.mean, mean.values)
    for csf in csfs:
        if not person_of(csf):
            human = {mean.name: curve.reindex(csf[level].values).to_numpy()}
            scores[observer_of(csf)] = comparison.compare_with_human(
                csf, human, resamples=resamples, seed=seed
            )
    return PeopleScore(
        experiment=str(first.attrs["experiment"]),
        persons=mean.persons,
        level=level,
        unit=unit_symbol(csfs[0][level].attrs),
        values=tuple(mean.values.tolist()),
        sensitivity=tuple(mean.mean.tolist()),
        low=tuple(mean.low.tolist()),
        high=tuple(mean.high.tolist()),
        unsure=tuple(mean.unsure.tolist()),
        ceiling=people_ceiling(mean, resamples=resamples, seed=seed),
        scores=scores,
        confidence=0.95,
    )


def _record(name: str, score: comparison.Statistic | Ceiling) -> JsonObject:
    """List a score's value and interval in a flat record, under its name."""
    return {name: score.value, f"{name}_low": score.low, f"{name}_high": score.high}
