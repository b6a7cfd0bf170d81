"""Several people in one experiment: their mean with a band, and how well one of them predicts the
others.

A model can be compared with these people then, and with how well another person does, as with
people measured elsewhere (`psyprobe.analysis.noise_ceiling`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from psyprobe._typing import FloatArray
from psyprobe.analysis.human_observer import FEWEST, Ceiling, ceiling
from psyprobe.analysis.intervals import draw_counts, student_reach
from psyprobe.analysis.noise_ceiling import curve_scores, is_error
from psyprobe.analysis.responses import levels_of, observer_of
from psyprobe.analysis.score import OBSERVER, PERSON, Row, Tabled, number
from psyprobe.analysis.words import comparison
from psyprobe.analysis.words.csf import chat_csfs
from psyprobe.analysis.words.score import HEADINGS, UNSURE, digits_of, interval_cell, plain_number
from psyprobe.analysis.words.sessions import is_remote, person_of, screen_error, sessions_of
from psyprobe.files.units import unit_symbol

if TYPE_CHECKING:
    import xarray as xr


@dataclass(frozen=True, eq=False)
class PeopleCurve:
    """The mean of three people or more over a level."""

    #: Pseudonyms.
    persons: tuple[str, ...]
    #: Of the level, at which each of them has a threshold, shape (F,).
    values: FloatArray
    #: log10 sensitivity of each, shape (P, F).
    log_s: FloatArray
    #: Geometric mean, and ends of its interval over people with the error of their screens, shape
    #: (F,).
    mean: FloatArray
    low: FloatArray
    high: FloatArray
    #: Whether thresholds lie below what is claimed of a screen that nobody measured, shape (F,).
    unsure: npt.NDArray[np.bool_]

    @property
    def name(self) -> str:
        """What figures and tables call it."""
        return f"mean of {len(self.persons)} people"


def people_curve(
    csfs: Sequence[xr.Dataset], *, confidence: float = 0.95, resamples: int = 2000, seed: int = 0
) -> PeopleCurve | None:
    """The mean of the people among results of one experiment; None where they are fewer than three.

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
    from scipy.special import ndtri

    people = [csf for csf in csfs if person_of(csf)]
    here = [csf for csf in people if not is_remote(csf)]
    # Screens elsewhere are no part of a mean with calibrated ones.
    people = here if len(here) >= FEWEST else [csf for csf in people if is_remote(csf)]
    if len(people) < FEWEST:
        return None
    (level,) = levels_of(people[0])
    found = [
        dict(zip(csf[level].values.tolist(), csf["mean_sensitivity"].values, strict=True))
        for csf in people
    ]
    values = [
        value for value in found[0] if all(np.isfinite(one.get(value, np.nan)) for one in found)
    ]
    if len(values) < 2:
        return None
    log_s = np.log10([[one[value] for value in values] for one in found])
    mean = log_s.mean(axis=0)
    samples = draw_counts(len(people), resamples, seed) @ log_s / len(people)
    reach = np.array([student_reach(column, len(people), confidence) for column in samples.T])
    screens = []
    weights = []
    for csf in people:
        own = sessions_of(csf)
        screens += [one.screen for one in own]
        weights += [one.trials / sum(each.trials for each in own) for one in own]
    error = screen_error(screens, weights, -mean)
    reach = np.hypot(reach, float(ndtri((1 + confidence) / 2)) * error.total)
    middle, low, high = (np.asarray(10.0**each) for each in (mean, mean - reach, mean + reach))
    persons = tuple(map(person_of, people))
    return PeopleCurve(persons, np.array(values), log_s, middle, low, high, error.unsure)


def people_ceiling(
    found: PeopleCurve, *, resamples: int = 2000, seed: int = 0
) -> dict[str, Ceiling]:
    """By score, what each person scores against the geometric mean of the others, with its interval
    over people.

    Parameters
    ----------
    found : PeopleCurve
        Of three people or more.
    resamples, seed
        As for `psyprobe.analysis.align`.
    """
    n = len(found.persons)
    others = (found.log_s.sum(axis=0) - found.log_s) / (n - 1)
    scores = [curve_scores(own, rest) for own, rest in zip(found.log_s, others, strict=True)]
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
    """Several people in one experiment, and all who were asked in it against their mean."""

    experiment: str
    persons: tuple[str, ...]
    #: Of the level: name, unit, values, and the mean of the people with its interval.
    level: str
    unit: str
    values: tuple[float, ...]
    sensitivity: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    unsure: tuple[bool, ...]
    #: By score: of one person against the others.
    ceiling: dict[str, Ceiling]
    #: By observer that is no person, and of the human curve of the page: against the mean of the
    #: people.
    scores: dict[str, comparison.CsfScores]
    #: Of all intervals.
    confidence: float

    @property
    def observer(self) -> str:
        """The people together."""
        return f"mean of {len(self.persons)} people"

    @property
    def layer(self) -> str:
        """People have none."""
        return ""

    @property
    def measure(self) -> str:
        """People have none."""
        return ""

    @property
    def random_weights(self) -> bool:
        """Never."""
        return False

    def rows(self) -> list[Row]:
        """Whoever was asked against the mean of the people, one person against the others, and the
        mean.
        """
        title = f"{self.experiment} (against the {self.observer})"
        rows = [self._against(title, name, found) for name, found in self.scores.items()]
        cells = {HEADINGS[name]: _interval_of(one, name) for name, one in self.ceiling.items()}
        record: dict[str, Any] = {
            "experiment": self.experiment,
            "responder": PERSON,
            "human": self.observer,
        }
        for name, one in self.ceiling.items():
            record |= {
                name: one.value,
                f"{name}_low": one.low,
                f"{name}_high": one.high,
                f"{name}_sd": one.sd,
            }
        persons = f"people: {', '.join(self.persons)}"
        rows.append(
            Row(title, PERSON, "one person (noise ceiling)", cells, record, notes=[persons])
        )
        axis = "CSF (cpd)" if self.level == "frequency" else f"{self.level} ({self.unit})"
        for value, mean, low, high, unsure in zip(
            self.values, self.sensitivity, self.low, self.high, self.unsure, strict=True
        ):
            told = f"{plain_number(mean)} [{plain_number(low)}, {plain_number(high)}]"
            rows.append(
                Row(
                    f"{self.observer}: {axis}",
                    OBSERVER,
                    f"{value:g}",
                    {"sensitivity": told, "remarks": UNSURE * unsure},
                )
            )
        return rows

    def _against(self, title: str, name: str, found: comparison.CsfScores) -> Row:
        cells = {
            HEADINGS[statistic]: interval_cell(getattr(found, statistic), statistic)
            for statistic in comparison.STATISTICS
        }
        record: dict[str, Any] = {
            "experiment": self.experiment,
            "observer": name,
            "responder": "observer",
        }
        record |= {"human": self.observer, "confidence": self.confidence}
        for each in comparison.STATISTICS:
            one = getattr(found, each)
            record |= {each: one.value, f"{each}_low": one.low, f"{each}_high": one.high}
        return Row(title, OBSERVER, name, cells, record)

    def notes(self) -> list[str]:
        """What the headings mean."""
        return [_KEY]


def score_people(
    results: Sequence[xr.Dataset], *, resamples: int = 2000, seed: int = 0
) -> tuple[PeopleScore, ...]:
    """Several people in each experiment, and all observers against their mean; nothing of fewer
    than three.

    Parameters
    ----------
    results : sequence of xarray.Dataset
        Of questioning runs of any experiments.
    resamples, seed
        As for `psyprobe.analysis.align`.
    """
    groups: dict[str, list[xr.Dataset]] = {}
    for one in results:
        groups.setdefault(str(one.attrs["experiment_digest"]), []).append(one)
    found = []
    for members in groups.values():
        if sum(bool(person_of(member)) for member in members) < FEWEST:
            continue
        csfs = chat_csfs(members)
        mean = people_curve(csfs, resamples=resamples, seed=seed)
        if mean is not None:
            found.append(_scored(members[0], csfs, mean, resamples, seed))
    return tuple(found)


def _scored(
    first: xr.Dataset, csfs: Sequence[xr.Dataset], mean: PeopleCurve, resamples: int, seed: int
) -> PeopleScore:
    (level,) = levels_of(csfs[0])
    scores = {}
    at = dict(zip(mean.values.tolist(), mean.mean, strict=True))
    for csf in csfs:
        if not person_of(csf):
            target = np.array([at.get(value, np.nan) for value in csf[level].values.tolist()])
            given = {mean.name: target}
            scores[observer_of(csf)] = comparison.compare_with_human(
                csf, given, resamples=resamples, seed=seed
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


def _interval_of(one: Ceiling, name: str) -> str:
    digits = digits_of(name)
    return f"{number(one.value, digits)} [{number(one.low, digits)}, {number(one.high, digits)}]"
