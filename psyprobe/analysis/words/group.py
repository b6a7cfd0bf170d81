"""Average several people in one experiment, and score each against the others.

A model can then be compared with these people, and with how well another person does, as with
people measured elsewhere (`psyprobe.analysis.noise_ceiling`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from psyprobe._json import JsonObject
from psyprobe._typing import BoolArray, FloatArray
from psyprobe.analysis.human_observer import FEWEST, Ceiling, ceiling
from psyprobe.analysis.intervals import draw_counts, normal_quantile, student_reach
from psyprobe.analysis.noise_ceiling import curve_scores, is_error
from psyprobe.analysis.responses import levels_of, observer_of
from psyprobe.analysis.score import OBSERVER, PERSON, Row, Tabled, interval_text
from psyprobe.analysis.words import comparison
from psyprobe.analysis.words.csf import chat_csfs
from psyprobe.analysis.words.score import (
    HEADINGS,
    UNSURE,
    digits_of,
    interval_cell,
    plain_number,
)
from psyprobe.analysis.words.sessions import (
    is_remote,
    person_of,
    screen_error,
    sessions_of,
)
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
    """Average the people among results of one experiment; None where they are fewer than three.

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
    local = [csf for csf in people if not is_remote(csf)]
    # Screens elsewhere are no part of a mean with calibrated ones.
    people = (
        local if len(local) >= FEWEST else [csf for csf in people if is_remote(csf)]
    )
    if len(people) < FEWEST:
        return None
    (level,) = levels_of(people[0])
    curves = [
        dict(
            zip(csf[level].values.tolist(), csf["mean_sensitivity"].values, strict=True)
        )
        for csf in people
    ]
    values = [
        value
        for value in curves[0]
        if all(np.isfinite(curve.get(value, np.nan)) for curve in curves)
    ]
    if len(values) < 2:
        return None
    log_s = np.log10([[curve[value] for value in values] for curve in curves])
    mean = log_s.mean(axis=0)
    samples = draw_counts(len(people), resamples, seed) @ log_s / len(people)
    reach = np.array(
        [student_reach(column, len(people), confidence) for column in samples.T]
    )
    screens = []
    weights = []
    for csf in people:
        sessions = sessions_of(csf)
        screens += [curve.screen for curve in sessions]
        weights += [
            curve.trials / sum(log_value.trials for log_value in sessions)
            for curve in sessions
        ]
    error = screen_error(screens, weights, -mean)
    reach = np.hypot(reach, normal_quantile(confidence) * error.total)
    middle, low, high = (
        np.asarray(10.0**log_value) for log_value in (mean, mean - reach, mean + reach)
    )
    persons = tuple(map(person_of, people))
    return PeopleCurve(
        persons, np.array(values), log_s, middle, low, high, error.unsure
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

    @property
    def observer(self) -> str:
        """Name the people together."""
        return f"mean of {len(self.persons)} people"

    @property
    def layer(self) -> str:
        """Return "": people have no layer."""
        return ""

    @property
    def measure(self) -> str:
        """Return "": people have no measure."""
        return ""

    @property
    def random_weights(self) -> bool:
        """Return False: people are trained."""
        return False

    def rows(self) -> list[Row]:
        """List each observer against the mean of the people, the noise ceiling, and the mean."""
        title = f"{self.experiment} (against the {self.observer})"
        rows = [
            self._observer_row(title, name, scores)
            for name, scores in self.scores.items()
        ]
        cells = {
            HEADINGS[name]: _format_interval(limit, name)
            for name, limit in self.ceiling.items()
        }
        record: JsonObject = {
            "experiment": self.experiment,
            "responder": PERSON,
            "human": self.observer,
        }
        for name, limit in self.ceiling.items():
            record |= {
                name: limit.value,
                f"{name}_low": limit.low,
                f"{name}_high": limit.high,
                f"{name}_sd": limit.sd,
            }
        persons = f"people: {', '.join(self.persons)}"
        rows.append(
            Row(
                title,
                PERSON,
                "one person (noise ceiling)",
                cells,
                record,
                notes=[persons],
            )
        )
        axis = (
            "CSF (cpd)" if self.level == "frequency" else f"{self.level} ({self.unit})"
        )
        for value, mean, low, high, unsure in zip(
            self.values, self.sensitivity, self.low, self.high, self.unsure, strict=True
        ):
            interval = (
                f"{plain_number(mean)} [{plain_number(low)}, {plain_number(high)}]"
            )
            rows.append(
                Row(
                    f"{self.observer}: {axis}",
                    OBSERVER,
                    f"{value:g}",
                    {"sensitivity": interval, "remarks": UNSURE * unsure},
                )
            )
        return rows

    def _observer_row(
        self, title: str, observer: str, scores: comparison.CsfScores
    ) -> Row:
        cells = {
            HEADINGS[statistic]: interval_cell(getattr(scores, statistic), statistic)
            for statistic in comparison.STATISTICS
        }
        record: JsonObject = {
            "experiment": self.experiment,
            "observer": observer,
            "responder": "observer",
            "human": self.observer,
            "confidence": self.confidence,
        }
        for name in comparison.STATISTICS:
            statistic = getattr(scores, name)
            record |= {
                name: statistic.value,
                f"{name}_low": statistic.low,
                f"{name}_high": statistic.high,
            }
        return Row(title, OBSERVER, observer, cells, record)

    def notes(self) -> list[str]:
        """Explain the headings."""
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
    groups: dict[str, list[xr.Dataset]] = {}
    for result in results:
        groups.setdefault(str(result.attrs["experiment_digest"]), []).append(result)
    scores = []
    for members in groups.values():
        if sum(bool(person_of(member)) for member in members) < FEWEST:
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
    (level,) = levels_of(csfs[0])
    scores = {}
    mean_by_value = dict(zip(mean.values.tolist(), mean.mean, strict=True))
    for csf in csfs:
        if not person_of(csf):
            target = np.array(
                [
                    mean_by_value.get(value, np.nan)
                    for value in csf[level].values.tolist()
                ]
            )
            human = {mean.name: target}
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


def _format_interval(limit: Ceiling, name: str) -> str:
    return interval_text(limit.value, limit.low, limit.high, digits_of(name))
