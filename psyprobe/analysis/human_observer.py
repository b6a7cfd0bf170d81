"""One person in the place of a model: what people whose thresholds are known would score in a
detection test.

Ranks know no criterion, so a person needs no responses: any that rise with contrast over his own
threshold give the same score. How well a person does depends on the range of levels at which he was
measured, and so does a model; the two are compared on the same range, and beside them stands what
an observer without any contrast sensitivity function scores there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.analysis.alignment import alignment_score, fisher, weighted_spearman
from psyprobe.analysis.intervals import check_resampling, draw_counts, student_reach
from psyprobe.analysis.score import Recorded
from psyprobe.human.castle import castle_csf
from psyprobe.human.points import Conditions, matched_thresholds

if TYPE_CHECKING:
    import pandas as pd

#: Persons of whom there is a ceiling.
FEWEST = 3
#: Multiples of thresholds at which a person is scored, as the detection tests have them.
MULTIPLIERS = np.geomspace(0.5, 2.0, 10)
#: Levels at which a person, or the others at least two of them, must have been measured.
_LEVELS: Mapping[str, int] = {"frequency": 4, "luminance": 4, "area": 3}
#: Where people score no more than this above a flat CSF, there is nothing to divide.
_LEAST_ABOVE_FLAT = 0.1


@dataclass(frozen=True)
class Ceiling(Recorded):
    """Mean score of persons, with its interval over persons."""

    value: float
    low: float
    high: float
    #: Between persons.
    sd: float
    #: Of each person, in their order.
    scores: tuple[float, ...]

    @property
    def persons(self) -> int:
        """How many."""
        return len(self.scores)


def ceiling(
    scores: FloatArray,
    *,
    error: bool,
    confidence: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> Ceiling:
    """The mean of persons' scores, with an interval over persons.

    Parameters
    ----------
    scores : ndarray, shape (P,)
        Of each person; three at least.
    error : bool
        Whether they are errors, above 0, and not correlations.
    confidence, resamples, seed
        As for `psyprobe.analysis.align`.

    Notes
    -----
    Persons are drawn with replacement. The interval is value ± t s, with s the standard deviation
    of the samples' means times sqrt(P / (P - 1)) and Student's t with P - 1 degrees of freedom: on
    the logarithm for errors, on Fisher's z for correlations.

    Examples
    --------
    >>> found = ceiling(np.array([0.8, 0.85, 0.9, 0.95]), error=False)
    >>> f"{found.value:.3f} [{found.low:.2f}, {found.high:.2f}]"
    '0.875 [0.72, 0.95]'
    """
    check_resampling(confidence, resamples)
    n = len(scores)
    value = float(np.mean(scores))
    samples = draw_counts(n, resamples, seed) @ scores / n
    forward, back = (np.log, np.exp) if error else (fisher, np.tanh)
    reach = student_reach(forward(samples), n, confidence)
    low, high = (float(back(forward(value) + side * reach)) for side in (-1, 1))
    return Ceiling(
        value,
        min(low, value),
        max(high, value),
        float(np.std(scores, ddof=1)),
        tuple(scores.tolist()),
    )


def shape_alignment(log_ratio: FloatArray) -> float:
    """The alignment score of an observer whose thresholds are known, in the place of a model.

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
    response = np.round(np.log10(MULTIPLIERS) + (log_ratio - log_ratio.mean())[:, None], 12)
    multiplier = np.broadcast_to(MULTIPLIERS, response.shape)
    return float(
        weighted_spearman(multiplier.ravel(), response.ravel(), np.ones((1, response.size)))[0]
    )


@dataclass(frozen=True)
class Person:
    """A person of a data set in the place of a model."""

    dataset: str
    observer: str
    #: Ends of the range of levels at which he was measured.
    low: float
    high: float
    #: By name: "alignment" at the levels at which he was measured, "alignment_grid" at those of the
    #: experiment within his range, where "flat_grid" is that of a flat contrast sensitivity
    #: function; "gain", "rmse_log10", "shape_rmse_log10" against castleCSF; the same behind
    #: "_others" against the mean of the others of the data set, where there are enough.
    scores: Mapping[str, float]
    #: How many levels each of the first two stands on: "n_x", "n_grid".
    counts: Mapping[str, int] = field(default_factory=dict)


@lru_cache(maxsize=32)
def persons(shown: Conditions, levels: tuple[float, ...]) -> tuple[Person, ...]:
    """The persons of all data sets who were measured under the conditions of an experiment, or near
    them.

    Parameters
    ----------
    shown : Conditions
        Of the experiment; its span says which measured levels count.
    levels : tuple of float
        Levels at which observers are scored, rising.

    Examples
    --------
    >>> shown = Conditions("luminance", (0.1, 200.0), frequency=2.0, area=np.pi)
    >>> found = persons(shown, tuple(np.geomspace(0.1, 200, 20)))
    >>> len(found), found[0].dataset, round(found[0].scores["alignment_grid"], 3)
    (17, 'hdr_csf', 0.973)
    """
    table = matched_thresholds(shown)
    table = table[table["observer"] != "mean"]
    log_s = np.log10(table["sensitivity_transported"])
    log_d = np.log10(table["sensitivity"] / table["castle"])
    table = table.assign(x=table["x"].map(lambda x: float(f"{x:.5g}")), log_s=log_s, d=log_d)
    means = table.groupby(["dataset", "observer", "x"], as_index=False)[["log_s", "d"]].mean()
    fewest = _LEVELS[shown.level]
    grid = np.array(levels)
    flat = -np.log10(_castle(shown, grid))
    found = []
    for (dataset, observer), own in means.groupby(["dataset", "observer"]):
        if len(own) >= fewest:
            others = means[(means["dataset"] == dataset) & (means["observer"] != observer)]
            found.append(_person(str(dataset), str(observer), own, others, grid, flat, fewest))
    return tuple(found)


def _castle(shown: Conditions, grid: FloatArray) -> FloatArray:
    fixed = {name: getattr(shown, name) for name in _LEVELS}
    return np.asarray(castle_csf(direction=shown.direction, **{**fixed, shown.level: grid}))


def _person(
    dataset: str,
    observer: str,
    own: pd.DataFrame,
    others: pd.DataFrame,
    grid: FloatArray,
    flat: FloatArray,
    fewest: int,
) -> Person:
    x = own["x"].to_numpy()
    d = own["d"].to_numpy()
    inside = within(grid, x[0], x[-1])
    at = grid[inside]
    scores = {"gain": 10 ** float(d.mean()), **_errors(d, ""), "alignment": shape_alignment(d)}
    if len(at):
        scores["alignment_grid"] = shape_alignment(np.interp(np.log(at), np.log(x), d))
        scores["flat_grid"] = shape_alignment(flat[inside])
    by_x = others.groupby("x")["log_s"].agg(["mean", "size"])
    known = by_x[(by_x["size"] >= 2) & by_x.index.isin(x)]["mean"]
    if len(known) >= fewest:
        common = known.index.to_numpy(dtype=float)
        apart = own.set_index("x")["log_s"][common].to_numpy() - known.to_numpy()
        at = grid[within(grid, common[0], common[-1])]
        scores |= {**_errors(apart, "_others"), "alignment_others": shape_alignment(apart)}
        scores["alignment_others_grid"] = shape_alignment(
            np.interp(np.log(at), np.log(common), apart)
        )
    return Person(
        dataset,
        observer,
        float(x[0]),
        float(x[-1]),
        scores,
        {"n_x": len(x), "n_grid": int(inside.sum())},
    )


def _errors(d: FloatArray, suffix: str) -> dict[str, float]:
    return {
        f"rmse_log10{suffix}": float(np.sqrt(np.mean(d**2))),
        f"shape_rmse_log10{suffix}": float(np.std(d)),
    }


def within(levels: FloatArray, low: float, high: float) -> Any:
    """Which levels lie in a range, its ends included."""
    return (levels >= low * (1 - 1e-9)) & (levels <= high * (1 + 1e-9))


@dataclass(frozen=True)
class People(Recorded):
    """The persons of one data set in the place of a model."""

    dataset: str
    #: Ends of the range of levels of each person.
    ranges: tuple[tuple[float, float], ...]
    #: Of their alignment at the levels of the experiment within the range of each.
    ceiling: Ceiling
    #: Mean of the same of a flat contrast sensitivity function.
    flat: float

    @property
    def span(self) -> tuple[float, float]:
        """Medians over persons of the ends of their ranges."""
        low, high = np.median(self.ranges, axis=0)
        return float(low), float(high)

    @property
    def determined(self) -> bool:
        """Whether people score so much more than a flat contrast sensitivity function that a
        fraction says anything.
        """
        return self.ceiling.value - self.flat >= _LEAST_ABOVE_FLAT


def people(shown: Conditions, levels: FloatArray, **interval: Any) -> tuple[People, ...]:
    """Data sets with three persons or more, the one to compare with first: that of the most people.

    Parameters
    ----------
    shown, levels
        As for `persons`.
    **interval
        As for `ceiling`.

    Notes
    -----
    Data sets in which a flat contrast sensitivity function scores as high as people, or nearly,
    come last.

    Examples
    --------
    >>> shown = Conditions("frequency", (0.5, 30.5), luminance=100.0, area=np.pi)
    >>> [(each.dataset, each.ceiling.persons) for each in people(shown, np.geomspace(0.5, 28, 20))]
    [('modelfest', 16), ('hdrvdp_csf', 10), ('hdr_csf', 10), ('colorfest', 3)]
    """
    sets: dict[str, list[Person]] = {}
    for one in persons(shown, tuple(map(float, levels))):
        if "alignment_grid" in one.scores:
            sets.setdefault(one.dataset, []).append(one)
    found = [
        People(
            name,
            tuple((each.low, each.high) for each in own),
            ceiling(
                np.array([each.scores["alignment_grid"] for each in own]), error=False, **interval
            ),
            float(np.mean([each.scores["flat_grid"] for each in own])),
        )
        for name, own in sets.items()
        if len(own) >= FEWEST
    ]
    return tuple(
        sorted(
            found,
            key=lambda one: (not one.determined, -one.ceiling.persons, one.span[0] / one.span[1]),
        )
    )


@dataclass(frozen=True)
class Fraction(Recorded):
    """A score as a fraction of what one person scores on the same range."""

    #: Mean over persons of r_s on the levels within the range of each; None where it does not
    #: exist.
    in_range: float | None
    #: That over the ceiling: 1 is as good as another person, and may be exceeded. None where
    #: nothing is to be divided.
    fraction: float | None
    #: 0 for an observer without any contrast sensitivity function, 1 for a person.
    above_flat: float | None


def fraction_of(
    of: People, levels: FloatArray, multiplier: FloatArray, response: FloatArray
) -> Fraction:
    """What an observer scores on the range of each person, over what the persons do.

    Parameters
    ----------
    of : People
        With whom it is compared.
    levels : ndarray, shape (K,)
        At which it was scored.
    multiplier : ndarray, shape (M,)
        Of the human threshold.
    response : ndarray, shape (K, M)
        Of the observer.

    Examples
    --------
    >>> shown, levels = Conditions("luminance", (0.1, 200.0), frequency=2.0, area=np.pi), np.geomspace(0.1, 200, 20)
    >>> found = people(shown, levels)[0]
    >>> round(fraction_of(found, levels, MULTIPLIERS, np.tile(MULTIPLIERS, (20, 1))).fraction, 2)
    1.04
    """
    ranges = [within(levels, *ends) for ends in of.ranges]
    scores: dict[bytes, float] = {}
    for inside in ranges:
        if len(np.unique(response[inside])) < 2:
            return Fraction(None, None, None)
        if inside.tobytes() not in scores:
            scores[inside.tobytes()] = alignment_score(multiplier, response[inside])
    in_range = float(np.mean([scores[inside.tobytes()] for inside in ranges]))
    if not of.determined:
        return Fraction(in_range, None, None)
    top = of.ceiling.value
    return Fraction(in_range, in_range / top, (in_range - of.flat) / (top - of.flat))
