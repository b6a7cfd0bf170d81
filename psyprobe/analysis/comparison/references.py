"""Score observers with other human references than castleCSF as published.

castleCSF could have been fitted to other studies, another model has another form, and people were
measured themselves. All of this belongs to the observers of a table alike, so nothing of it is part
of the interval over variants.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, Self

import numpy as np

from psyprobe._typing import FloatArray, IntArray
from psyprobe.analysis.alignment import alignment_score, alignment_scores
from psyprobe.analysis.intervals import fisher, student_quantile
from psyprobe.analysis.score import Recorded, number
from psyprobe.human.achromatic import barten_csf, stela_csf
from psyprobe.human.castle import castle_csf
from psyprobe.human.leave_one_out import castle_csf_without, fitted_studies
from psyprobe.human.points import LEVELS, Conditions
from psyprobe.human.postreceptoral import postreceptoral_csf
from psyprobe.human.signature import LIMITS, ContrastSensitivity

#: Other models of static sensitivity. stelaCSF is of castleCSF's family, and it and the
#: postreceptoral CSF were fitted to much of the same data; Barten's form is independent. Those that
#: take no direction know achromatic patterns only.
OTHER_MODELS: Mapping[str, ContrastSensitivity] = {
    "postreceptoral_csf": postreceptoral_csf,
    "stela_csf": stela_csf,
    "barten_csf": barten_csf,
}
#: What a table says of them.
REFERENCES = (
    "± half the interval of r_s over the studies that castleCSF was fitted to (each left out in "
    "turn, Student's t); it moves all observers alike and is no part of their intervals. Then the "
    "smallest and largest r_s with castleCSF and Mantiuk et al. 2020, in achromatic tests stelaCSF "
    "and Barten's CSF too. "
    "people: r_s with the mean of measured people in castleCSF's place, those of the row one "
    "person, scaled to the test's conditions by castleCSF; only at levels where three or more were "
    "measured, so not to be compared with r_s; ± half its interval over people (each left out in "
    "turn, Student's t). Models and people are read from the level grid; a run without one "
    "(--score-only), or whose grid does not reach their contrasts, has neither."
)
#: Points at the end of a slice over whose slope its response goes on beyond it.
_END = 3


@dataclass(frozen=True)
class ScoredSlices:
    """Responses to variants at multiples of human thresholds, a slice a level."""

    #: Multiples of the threshold, shape (M,); contrasts, shape (K, M).
    multiplier: FloatArray
    contrast: FloatArray
    #: Shape (V, K, M), or (K, M) of one variant.
    response: FloatArray


@dataclass(frozen=True, eq=False)
class MeasuredPeople:
    """Sensitivities of the people of one data set, scaled to the conditions of an experiment."""

    dataset: str
    #: Levels at which people were measured, rising, shape (X,).
    levels: FloatArray
    #: Log10 sensitivity of each person there, shape (P, X); NaN where not measured.
    log_sensitivity: FloatArray


@dataclass(frozen=True)
class PeopleScore(Recorded):
    """The alignment of an observer with the mean of measured people."""

    dataset: str
    persons: int
    #: Number of levels at which they were measured.
    levels: int
    #: r_s at multiples of their thresholds.
    value: float
    #: Half its interval over people: delete-one jackknife, Student's t, on Fisher's z.
    error: float


@dataclass(frozen=True)
class References(Recorded):
    """The alignment of an observer with several human references."""

    #: r_s with castleCSF as refitted without each study, by the study.
    without_study: Mapping[str, float]
    #: Half the interval of r_s over studies: delete-one jackknife, Student's t, on Fisher's z.
    error: float
    #: r_s with each model, castleCSF as published among them; empty where there is no other.
    by_model: Mapping[str, float]
    #: The alignment with people themselves; None where none were measured, or without a level grid.
    by_people: PeopleScore | None = None

    @property
    def low(self) -> float | None:
        """Return the smallest r_s over models, or None without other models."""
        return min(self.by_model.values(), default=None)

    @property
    def high(self) -> float | None:
        """Return the largest r_s over models, or None without other models."""
        return max(self.by_model.values(), default=None)

    def text(self) -> str:
        """Format the error over studies, the range over models and the score with people.

        As "±0.02; 0.41 to 0.48; people 0.45 ±0.03".
        """
        parts = [f"±{number(self.error)}"]
        if self.by_model:
            parts.append(f"{number(self.low)} to {number(self.high)}")
        people = self.by_people
        if people is not None:
            parts.append(f"people {number(people.value)} ±{number(people.error)}")
        return "; ".join(parts)


@lru_cache(maxsize=64)
def threshold_shifts(
    conditions: Conditions, levels: tuple[float, ...]
) -> Mapping[str, FloatArray]:
    """Compute log10 of the threshold by each other reference over that by castleCSF, by level.

    Parameters
    ----------
    conditions : Conditions
        Of the experiment.
    levels : tuple of float
        Values of its level, K.

    Returns
    -------
    mapping of str to ndarray, shape (K,)
        By study that castleCSF is refitted without, then by model.
    """
    values = {name: getattr(conditions, name) for name in LEVELS}
    values[conditions.level] = np.array(levels)
    published = castle_csf(direction=conditions.direction, **values)
    models = {study: castle_csf_without(study) for study in fitted_studies()}
    models |= {
        name: model
        for name, model in OTHER_MODELS.items()
        if conditions.direction == "achromatic" or "direction" in LIMITS[name].takes
    }
    return {
        name: np.asarray(
            np.log10(published / model(direction=conditions.direction, **values))
        )
        for name, model in models.items()
    }


def moved_response(slices: ScoredSlices, shift: FloatArray) -> FloatArray:
    """Read responses at the same multiples of shifted thresholds, along each slice.

    Log response is linear in log contrast between the points of a slice; beyond an end it goes on
    as on the line through the end and the point two before it.

    Parameters
    ----------
    slices : ScoredSlices
        Responses at the multiples of the thresholds as they were.
    shift : ndarray, shape (K,)
        Log10 of each slice's new threshold over the old.

    Examples
    --------
    >>> contrast = np.array([[0.1, 0.2, 0.4]])
    >>> slices = ScoredSlices(np.array([0.5, 1.0, 2.0]), contrast, 3 * contrast)
    >>> moved_response(slices, np.log10([2.0])).round(3)
    array([[0.6, 1.2, 2.4]])
    """
    order = np.argsort(slices.multiplier)
    x = np.log(slices.multiplier[order])
    y = _log_positive(slices.response[..., order])
    target = x + shift[:, None] * math.log(10)
    # Contrasts of all slices are the same multiples of their thresholds, so they share an axis.
    points = min(_END, len(x)) - 1
    left = np.clip(np.searchsorted(x, target, side="right") - 1, 0, len(x) - 2)
    right = left + 1
    left = np.where(target > x[-1], len(x) - 1 - points, left)
    right = np.where(target < x[0], points, right)
    y_left = np.take_along_axis(y, np.broadcast_to(left, y.shape), axis=-1)
    y_right = np.take_along_axis(y, np.broadcast_to(right, y.shape), axis=-1)
    share = (target - x[left]) / (x[right] - x[left])
    moved = np.empty_like(y)
    moved[..., order] = np.exp(y_left + share * (y_right - y_left))
    return moved


@dataclass(frozen=True)
class LevelGrid:
    """Responses on a grid of one level and contrast."""

    #: Values of the level, shape (L,); contrasts, shape (C,); responses, shape (L, C).
    levels: FloatArray
    contrast: FloatArray
    response: FloatArray

    def read(self, levels: FloatArray, contrast: FloatArray) -> FloatArray | None:
        """Read responses between the points of the grid, None where one does not exist there.

        Log response is linear in the logarithm of level and contrast.

        Parameters
        ----------
        levels : ndarray, shape (K,)
            Values of the level.
        contrast : ndarray, shape (K, M)
            Contrasts at each of them.

        Examples
        --------
        >>> response = np.array([[1.0, 10.0], [2.0, 20.0], [4.0, 40.0]])
        >>> grid = LevelGrid(np.array([1.0, 2.0, 4.0]), np.array([0.1, 1.0]), response)
        >>> grid.read(np.array([2.0]), np.array([[0.1, 0.5]])).round(2)
        array([[ 2., 10.]])
        >>> grid.read(np.array([2.0]), np.array([[0.01]])) is None
        True
        """
        level = _Between.of(np.log(self.levels), np.log(levels)[:, None])
        amount = _Between.of(np.log(self.contrast), np.log(contrast))
        if level is None or amount is None:
            return None
        # scipy.interpolate gives the same bits, and takes a tenth of a small run to import.
        log_response = _log_positive(self.response)
        corners = [
            log_response[level.below + i, amount.below + j]
            * abs(1 - i - level.share)
            * abs(1 - j - amount.share)
            for i in (0, 1)
            for j in (0, 1)
        ]
        response = np.exp(sum(corners))
        return np.asarray(response) if np.isfinite(response).all() else None


class _Between(NamedTuple):
    """Where places lie between the values of a rising axis."""

    #: Index of the value below.
    below: IntArray
    #: Of the way to the next value, 0 to 1.
    share: FloatArray

    @classmethod
    def of(cls, axis: FloatArray, places: FloatArray) -> Self | None:
        """Find places on an axis; None where one lies beyond it by more than rounding."""
        slack = 1e-9
        if places.min() < axis[0] - slack or places.max() > axis[-1] + slack:
            return None
        inside = np.clip(places, axis[0], axis[-1])
        below = np.clip(
            np.searchsorted(axis, inside, side="right") - 1, 0, len(axis) - 2
        )
        return cls(below, (inside - axis[below]) / (axis[below + 1] - axis[below]))


def _log_positive(response: FloatArray) -> FloatArray:
    """Take logarithms, with a variant's least response above 0 in place of those that are not."""
    positive = np.where(response > 0, response, np.inf)
    least = positive.min(axis=(-2, -1), keepdims=True)
    return np.asarray(np.log(np.maximum(response, np.where(least < np.inf, least, 1))))


def score_references(
    conditions: Conditions,
    levels: FloatArray,
    slices: ScoredSlices,
    grid: LevelGrid | None,
    people: MeasuredPeople | None,
    confidence: float,
) -> References | None:
    """Score an observer with castleCSF without each of its studies, other models and people.

    Parameters
    ----------
    conditions : Conditions
        Of the experiment, whose human reference is castleCSF.
    levels : ndarray, shape (K,)
        Values of the level that are scored.
    slices : ScoredSlices
        Responses to each variant.
    grid : LevelGrid or None
        Where responses at the thresholds of other models and of people are read; without it there
        are none.
    people : MeasuredPeople or None
        As `measured_people` gives.
    confidence : float
        Of the intervals over studies and people.

    Returns
    -------
    References or None
        None where responses are equal, so that there is no score.
    """
    shifts = threshold_shifts(conditions, tuple(map(float, levels)))
    multiplier = slices.multiplier
    responses = {"": slices.response}
    responses |= {
        study: moved_response(slices, shifts[study]) for study in fitted_studies()
    }
    z = {
        study: np.mean(fisher(alignment_scores(multiplier, _variants(response))))
        for study, response in responses.items()
    }
    if np.isnan([*z.values()]).any():
        return None
    published = z.pop("")
    error = _error_of_r(float(published), np.array([*z.values()]), confidence)
    by_model = {}
    if grid is not None:
        for name in [name for name in OTHER_MODELS if name in shifts]:
            contrast = slices.contrast * 10 ** shifts[name][:, None]
            response = grid.read(levels, contrast)
            if response is not None and len(np.unique(response)) > 1:
                score = alignment_score(multiplier, response)
                by_model[name] = float(np.tanh(fisher(score)))
    if by_model:
        by_model = {"castle_csf": float(np.tanh(published))} | by_model
    without_study = {study: float(np.tanh(value)) for study, value in z.items()}
    by_people = None
    if grid is not None and people is not None:
        by_people = _score_people(people, multiplier, grid, confidence)
    return References(without_study, error, by_model, by_people)


def _score_people(
    people: MeasuredPeople, multiplier: FloatArray, grid: LevelGrid, confidence: float
) -> PeopleScore | None:
    """Score an observer with the mean of people; None where the grid does not hold it."""
    sensitivity = people.log_sensitivity
    persons = len(sensitivity)
    without = [np.delete(sensitivity, person, axis=0) for person in range(persons)]
    z = []
    for members in (sensitivity, *without):
        mean = np.nanmean(members, axis=0)
        contrast = multiplier / 10 ** mean[:, None]
        response = grid.read(people.levels, contrast)
        if response is None:
            return None
        # Responses that differ by the rounding of interpolation alone are ties.
        log_response = np.round(np.log(response), 12)
        if len(np.unique(log_response)) < 2:
            return None
        z.append(float(fisher(alignment_score(multiplier, log_response))))
    error = _error_of_r(z[0], np.array(z[1:]), confidence)
    value = float(np.tanh(z[0]))
    return PeopleScore(people.dataset, persons, len(people.levels), value, error)


def _variants(response: FloatArray) -> FloatArray:
    """Give responses of one variant (K, M) the axis of variants, (V, K, M)."""
    return response.reshape(-1, *response.shape[-2:])


def difference_error(first: References, second: References, confidence: float) -> float:
    """Compute half the interval over studies of the difference of two observers' Fisher's z.

    What a reference moves alike in both cancels.

    Examples
    --------
    >>> first = References({"a": 0.5, "b": 0.6}, 0.1, {})
    >>> second = References({"a": 0.4, "b": 0.5}, 0.1, {})
    >>> round(difference_error(first, second, 0.95), 2), difference_error(first, first, 0.95)
    (0.12, 0.0)
    """
    differences = [
        fisher(first.without_study[study]) - fisher(second.without_study[study])
        for study in first.without_study
    ]
    return _jackknife_reach(np.array(differences), confidence)


def _error_of_r(z: float, without: FloatArray, confidence: float) -> float:
    """Compute half the interval of r_s from Fisher's z, and z without each of its units."""
    reach = _jackknife_reach(without, confidence)
    return float(np.tanh(z + reach) - np.tanh(z - reach)) / 2


def _jackknife_reach(values: FloatArray, confidence: float) -> float:
    """Compute half an interval by Student's t from values that each leave one of n units out."""
    n = len(values)
    error = np.sqrt((n - 1) / n * ((values - values.mean()) ** 2).sum())
    return float(error * student_quantile(n, confidence))
