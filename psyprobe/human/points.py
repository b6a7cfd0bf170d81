"""Select the measured thresholds for an experiment's figure, or transport them to its conditions.

Hardly any study measured the very conditions of an experiment. A threshold of other conditions is
transported by the ratio of castleCSF's sensitivities under the two, as far as it can be trusted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Literal

import numpy as np

from psyprobe._typing import BoolArray, FloatArray
from psyprobe.human.castle import castle_csf, castle_shares
from psyprobe.human.datasets import observers, thresholds

if TYPE_CHECKING:
    import pandas as pd

#: Colours with which a study aimed at one mechanism, though they drive others too: (data set,
#: colour_id) by mechanism.
_TARGETS = {
    "achromatic": {("colorfest", 2), ("hdr_csf", 9)},
    "red_green": {("colorfest", 3), ("hdr_csf", 10), ("kim2013", 17)},
    "yellow_violet": {("colorfest", 4), ("hdr_csf", 11), ("kim2013", 18)},
}
#: Smallest share of the mechanism in seeing a colour that aimed at it, and another colour.
_MIN_TARGET_SHARE = 0.5
_MIN_SHARE = 0.8
#: Largest factors of luminance and area, and octaves of frequency, between experiment and study.
_LUMINANCE_FACTOR = 10.0
_AREA_FACTOR = 200.0
_OCTAVES = 0.5
#: The same for a direct match; of frequency, a relative difference.
_DIRECT_FACTOR = 2.0
_DIRECT_FREQUENCY = 0.05
#: Log10 of the largest factor of a transport, and of a long one.
_TRANSPORT = 0.5
_LONG_TRANSPORT = 0.75
#: Columns of a person's condition; its repeats are averaged.
_CONDITION = ["dataset", "observer", "colour_id", "frequency", "luminance", "area"]
#: Rounding of the tables, which must not decide.
_SLACK = 1e-5

#: Columns of `matched_thresholds`.
_COLUMNS = [
    "x",
    "sensitivity",
    "sensitivity_transported",
    "log10_ratio",
    "match",
    "dataset",
    "observer",
    "n",
    "luminance",
    "area",
    "frequency",
    "colour_id",
    "colour_share",
    "peak_cone_contrast",
    "castle",
]

Level = Literal["frequency", "luminance", "area"]
LEVELS: tuple[Level, ...] = ("frequency", "luminance", "area")


@dataclass(frozen=True)
class Conditions:
    """Conditions of an experiment, for which measured thresholds are sought."""

    #: What varies: frequency, luminance or area; the field of that name below is None.
    level: Level
    #: Lowest and highest value of the level.
    span: tuple[float, float]
    #: Colour direction: "achromatic", "red_green" or "yellow_violet".
    direction: str = "achromatic"
    #: Spatial frequency, cpd.
    frequency: float | None = None
    #: Luminance, cd/m².
    luminance: float | None = None
    #: Area, deg²; pi sigma² of a Gabor.
    area: float | None = None
    #: Whether the stimulus is noise, which no study measured: thresholds of Gabors are transported.
    noise: bool = False
    #: Sensitivity in the contrast of the experiment over that in peak contrast: sqrt(2) for RMS
    #: contrast.
    gain: float = 1.0


def matched_thresholds(conditions: Conditions) -> pd.DataFrame:
    """Select measured thresholds that fit an experiment, scaled to its conditions by castleCSF.

    Parameters
    ----------
    conditions : Conditions
        Conditions of the experiment.

    Returns
    -------
    pandas.DataFrame
        A row for each mean of a study (`observer` "mean") and for each person at a condition,
        repeats averaged in log: `x`, the measured value of the level, which is never transported;
        `sensitivity` as measured, and `sensitivity_transported`, times castleCSF of the experiment
        over castleCSF of the study; `log10_ratio` of the two; `match`: "direct" (luminance and area
        within a factor of 2, frequency within 5 %), "transported" (by a factor of 3.2 at most) or
        "long" (5.6); `dataset`, `observer`, `n` thresholds; `frequency` (cpd), `luminance` (L + M,
        cd/m²), `area` (deg²), `colour_id`, `colour_share` and `peak_cone_contrast` of the study's
        stimulus; `castle`, castleCSF's sensitivity to it.

    Notes
    -----
    Static, foveal Gabors and gratings are selected that the experiment's mechanism sees (by
    castleCSF a share of 0.8, or 0.5 if the study aimed at that colour), within a factor of 10 in
    luminance, of 200 in area and half an octave in frequency. castleCSF was fitted to these
    thresholds, so that transported ones are not independent of it.

    Examples
    --------
    >>> conditions = Conditions("frequency", (0.5, 30.5), luminance=100.0, area=np.pi)
    >>> table = matched_thresholds(conditions)
    >>> people = table[table["observer"] != "mean"]
    >>> len(table), people[people["dataset"] == "modelfest"]["observer"].nunique()
    (702, 16)
    """
    rows = _foveal_thresholds()
    level = conditions.level
    share = rows[f"share_{conditions.direction}"]
    targets = _TARGETS[conditions.direction]
    colours = zip(rows["dataset"], rows["colour_id"], strict=True)
    is_target = np.array([colour in targets for colour in colours])
    low, high = conditions.span
    fits = (share >= _MIN_SHARE - _SLACK) | (
        (share >= _MIN_TARGET_SHARE - _SLACK) & is_target
    )
    fits &= (rows[level] >= low * (1 - _SLACK)) & (rows[level] <= high * (1 + _SLACK))
    factors = {
        "luminance": _LUMINANCE_FACTOR,
        "area": _AREA_FACTOR,
        "frequency": 2**_OCTAVES,
    }
    values = {name: getattr(conditions, name) for name in factors}
    distances = {
        name: np.abs(np.log(rows[name] / value))
        for name, value in values.items()
        if value is not None
    }
    for name, distance in distances.items():
        fits &= distance <= math.log(factors[name]) + _SLACK
    table = rows[fits].copy()
    values[level] = table[level]
    ratio = castle_csf(direction=conditions.direction, **values) / table["castle"]
    is_direct = (share[fits] >= _MIN_SHARE - _SLACK) & (not conditions.noise)
    direct_factors = {
        "luminance": _DIRECT_FACTOR,
        "area": _DIRECT_FACTOR,
        "frequency": 1 + _DIRECT_FREQUENCY,
    }
    for name, distance in distances.items():
        is_direct &= distance[fits] <= math.log(direct_factors[name]) + _SLACK
    size = np.abs(np.log10(ratio))
    cases = [is_direct, size <= _TRANSPORT, size <= _LONG_TRANSPORT]
    table = table.assign(
        x=table[level],
        sensitivity_transported=table["sensitivity"] * ratio * conditions.gain,
        log10_ratio=np.log10(ratio * conditions.gain),
        match=np.select(cases, ["direct", "transported", "long"], ""),
    )
    table = table[table["match"] != ""].sort_values(
        ["dataset", "observer", "x"], kind="stable"
    )
    return table[_COLUMNS].reset_index(drop=True)


@dataclass(frozen=True, eq=False)
class MeasuredPoints:
    """Thresholds of one data set for a figure."""

    dataset: str
    #: Number of single people in it; 0 if only means were published.
    persons: int
    #: Values of the level, rising, shape (K,); a value may appear twice, measured directly and
    #: transported.
    x: FloatArray
    #: Geometric mean over people, in the contrast of the experiment.
    sensitivity: FloatArray
    #: Standard error of its log10; NaN for fewer than two people.
    error: FloatArray
    #: Standard deviation of log10 sensitivity between people; NaN for fewer than two.
    spread: FloatArray
    #: Number of people at each value; 0 for a published mean.
    n: FloatArray
    #: Whether a value was measured under the conditions of the experiment.
    direct: BoolArray
    #: Smallest and largest factor of the transported values; None if there are none, as in
    #: yellow-violet.
    transport_range: tuple[float, float] | None


def figure_points(conditions: Conditions) -> tuple[MeasuredPoints, ...]:
    """Average measured thresholds over the people of each data set, most people first.

    Parameters
    ----------
    conditions : Conditions
        Conditions of the experiment; their span is that of the axis.

    Notes
    -----
    Means are over the single people of a data set, or those published if it has none. Extrapolated
    thresholds, of more than cone contrast 1, are left out. In yellow-violet, where castleCSF's
    ratio makes data sets disagree more, nothing is transported: all values are as measured.

    Examples
    --------
    >>> points = figure_points(Conditions("frequency", (0.5, 28.0), luminance=100.0, area=np.pi))
    >>> [(point.dataset, point.persons) for point in points[:3]]
    [('hdr_csf', 26), ('modelfest', 16), ('hdrvdp_csf', 10)]
    """
    table = matched_thresholds(conditions)
    table = table[table["peak_cone_contrast"] <= 1]
    transports = conditions.direction != "yellow_violet"
    direct = table["match"] == "direct"
    measured = table["sensitivity"] * conditions.gain
    sensitivity = table["sensitivity_transported"].where(~direct & transports, measured)
    table = table.assign(
        log_s=np.log10(sensitivity),
        direct=direct,
        x=table["x"].map(lambda x: float(f"{x:.5g}")),
        factor=10 ** table["log10_ratio"],
    )
    points = []
    for name, rows in table.groupby("dataset", sort=False):
        people = rows[rows["observer"] != "mean"]
        has_people = not people.empty
        rows = people if has_people else rows
        by_person = rows.groupby(["x", "direct", "observer"])["log_s"].mean()
        means = by_person.groupby(["x", "direct"]).agg(["mean", "std", "size"])
        factors = rows.loc[~rows["direct"], "factor"] / conditions.gain
        n = means["size"].to_numpy(dtype=float) if has_people else np.zeros(len(means))
        spread = means["std"].to_numpy()
        range_of_factors = None
        if transports and len(factors):
            range_of_factors = (float(factors.min()), float(factors.max()))
        points.append(
            MeasuredPoints(
                dataset=str(name),
                persons=int(people["observer"].nunique()),
                x=means.index.get_level_values("x").to_numpy(dtype=float),
                sensitivity=10 ** means["mean"].to_numpy(),
                error=spread / np.sqrt(np.maximum(n, 1)),
                spread=spread,
                n=n,
                direct=means.index.get_level_values("direct").to_numpy(dtype=bool),
                transport_range=range_of_factors,
            )
        )
    return tuple(sorted(points, key=lambda point: (-point.persons, point.dataset)))


def mean_of_people(conditions: Conditions, dataset: str) -> list[tuple[float, float]]:
    """Return a data set's mean over people: values of the level, each with log10 sensitivity.

    A value that was measured directly goes before one that was transported.

    Examples
    --------
    >>> conditions = Conditions("frequency", (0.5, 28.0), luminance=100.0, area=np.pi)
    >>> means = mean_of_people(conditions, "modelfest")
    >>> len(means), means[3][0], round(10 ** means[3][1], 1)
    (9, 4.0, 259.1)
    """
    points = {point.dataset: point for point in figure_points(conditions)}
    if dataset not in points:
        return []
    point = points[dataset]
    # Later entries replace earlier ones of the same value.
    order = np.argsort(point.direct, kind="stable")
    means = {float(point.x[i]): float(np.log10(point.sensitivity[i])) for i in order}
    return sorted(means.items())


@cache
def _foveal_thresholds() -> pd.DataFrame:
    """Load thresholds for static, foveal Gabors and gratings: means of studies and of persons."""
    import pandas as pd

    means = _select_foveal(thresholds().assign(observer="mean"))
    repeats = _select_foveal(observers().assign(n=1))
    averaged = {"n": "sum", "log10_threshold": "mean", "peak_cone_contrast": "max"}
    others = [
        name for name in repeats if name not in (*_CONDITION, "n", "log10_threshold")
    ]
    people = repeats.groupby(_CONDITION, as_index=False, sort=False).agg(
        dict.fromkeys(others, "first") | averaged
    )
    rows = pd.concat([means, people], ignore_index=True)
    rows["sensitivity"] = 10.0 ** -rows["log10_threshold"]
    inputs = {
        "frequency": rows["frequency"].to_numpy(),
        "area": rows["area"].to_numpy(),
        "background": rows[["L", "M", "S"]].to_numpy(),
        "direction": rows[["dL", "dM", "dS"]].to_numpy(),
    }
    rows["castle"] = castle_csf(**inputs)
    shares = castle_shares(**inputs)
    return rows.assign(
        **{f"share_{name}": shares[:, i] for i, name in enumerate(_TARGETS)}
    )


def _select_foveal(table: pd.DataFrame) -> pd.DataFrame:
    """Select the static, foveal rows but for discs, and add luminance (L + M), cd/m²."""
    is_static = table["temporal_frequency"] == 0
    is_foveal = table["eccentricity"] == 0
    foveal = table[is_static & is_foveal & (table["stimulus"] != "disk")]
    return foveal.assign(luminance=foveal["L"] + foveal["M"])
