"""Which measured thresholds belong on the figure of an experiment: those of its conditions, and
those moved there.

Hardly anybody measured just what an experiment shows. A threshold of other conditions is moved by
the ratio of castleCSF's sensitivities there and here, as far as that ratio can be trusted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from psyprobe._typing import FloatArray
from psyprobe.human.castle import castle_csf, castle_shares
from psyprobe.human.datasets import observers, thresholds

if TYPE_CHECKING:
    import pandas as pd

#: Colours whose studies meant one mechanism, though their stimuli drive others too: (data set,
#: colour_id) by mechanism.
_MEANT = {
    "achromatic": {("colorfest", 2), ("hdr_csf", 9)},
    "red_green": {("colorfest", 3), ("hdr_csf", 10), ("kim2013", 17)},
    "yellow_violet": {("colorfest", 4), ("hdr_csf", 11), ("kim2013", 18)},
}
_MECHANISMS = tuple(_MEANT)
#: Least share of the mechanism, where it was meant and where not.
_LEAST_MEANT = 0.5
_LEAST = 0.8
#: Factors by which luminance and area may differ at most; octaves by which frequency may.
_LUMINANCE = 10.0
_AREA = 200.0
_OCTAVES = 0.5
#: The same of what was measured directly; of frequency, a relative difference.
_SAME = 2.0
_SAME_FREQUENCY = 0.05
#: Log10 of the largest factor of a move, and of a long one.
_MOVE = 0.5
_LONG_MOVE = 0.75
#: What makes a condition of a person; repeats of one are averaged.
_CONDITION = ["dataset", "observer", "colour_id", "frequency", "luminance", "area"]
#: Of the tables' rounding, which must not decide.
_SLACK = 1e-5

Level = Literal["frequency", "luminance", "area"]
LEVELS: tuple[Level, ...] = ("frequency", "luminance", "area")


@dataclass(frozen=True)
class Conditions:
    """What an experiment shows, as measured thresholds are matched with it."""

    #: What varies: frequency, luminance or area; its own field below is None.
    level: Level
    #: Its lowest and highest value.
    span: tuple[float, float]
    #: Colour direction: "achromatic", "red_green" or "yellow_violet".
    direction: str = "achromatic"
    #: cpd.
    frequency: float | None = None
    #: cd/m².
    luminance: float | None = None
    #: deg²; of a Gabor pi sigma².
    area: float | None = None
    #: Whether it is noise, which no study measured: thresholds of Gabors are then moved to another
    #: stimulus.
    noise: bool = False
    #: Sensitivity in the contrast of the experiment over that in peak contrast: sqrt(2) for RMS
    #: contrast.
    gain: float = 1.0


def matched_thresholds(shown: Conditions) -> pd.DataFrame:
    """Measured thresholds that belong to the conditions of an experiment, and what they are there.

    Parameters
    ----------
    shown : Conditions
        Of the experiment.

    Returns
    -------
    pandas.DataFrame
        A row for each mean of a study (`observer` "mean") and for each person at a condition,
        repeats averaged in log: `x`, the value of the level at which it was measured, never moved;
        `sensitivity` as measured, and `sensitivity_transported`, times castleCSF here over
        castleCSF there; `log10_ratio` of the two; `match`: "direct" (luminance and area within a
        factor of 2, frequency within 5 %), "transported" (moved by a factor of 3.2 at most) or
        "long" (5.6); `dataset`, `observer`, `n` thresholds; `frequency` (cpd), `luminance` (L + M,
        cd/m²), `area` (deg²), `colour_id`, `colour_share` and `peak_cone_contrast` of what was
        measured; `castle`, castleCSF's sensitivity there.

    Notes
    -----
    Taken are static, foveal Gabors and gratings that the experiment's mechanism sees (by castleCSF
    a share of 0.8, or 0.5 where the study meant that colour), within a factor of 10 in luminance,
    of 200 in area and half an octave in frequency. castleCSF was fitted to these thresholds, so
    that moved ones are not independent of it.

    Examples
    --------
    >>> found = matched_thresholds(Conditions("frequency", (0.5, 30.5), luminance=100.0, area=np.pi))
    >>> people = found[found["observer"] != "mean"]
    >>> len(found), people[people["dataset"] == "modelfest"]["observer"].nunique()
    (702, 16)
    """
    rows = _candidates()
    share = rows[f"share_{shown.direction}"]
    meant = [
        pair in _MEANT[shown.direction]
        for pair in zip(rows["dataset"], rows["colour_id"], strict=True)
    ]
    low, high = shown.span
    fits = (share >= _LEAST - _SLACK) | ((share >= _LEAST_MEANT - _SLACK) & np.array(meant))
    fits &= (rows[shown.level] >= low * (1 - _SLACK)) & (rows[shown.level] <= high * (1 + _SLACK))
    fixed = {"luminance": _LUMINANCE, "area": _AREA, "frequency": 2**_OCTAVES}
    apart = {
        name: np.abs(np.log(rows[name] / getattr(shown, name)))
        for name in fixed
        if getattr(shown, name) is not None
    }
    for name, distance in apart.items():
        fits &= distance <= math.log(fixed[name]) + _SLACK
    found = rows[fits].copy()
    here = {name: found[name] if name == shown.level else getattr(shown, name) for name in fixed}
    ratio = castle_csf(direction=shown.direction, **here) / found["castle"]
    near = {
        "luminance": math.log(_SAME),
        "area": math.log(_SAME),
        "frequency": math.log(1 + _SAME_FREQUENCY),
    }
    direct = (share[fits] >= _LEAST - _SLACK) & (not shown.noise)
    for name, distance in apart.items():
        direct &= distance[fits] <= near[name] + _SLACK
    size = np.abs(np.log10(ratio))
    match = np.select(
        [direct, size <= _MOVE, size <= _LONG_MOVE], ["direct", "transported", "long"], ""
    )
    found = found.assign(
        x=found[shown.level],
        sensitivity_transported=found["sensitivity"] * ratio * shown.gain,
        log10_ratio=np.log10(ratio * shown.gain),
        match=match,
    )
    found = found[found["match"] != ""].sort_values(["dataset", "observer", "x"], kind="stable")
    columns = [
        "x",
        "sensitivity",
        "sensitivity_transported",
        "log10_ratio",
        "match",
        "dataset",
        "observer",
        "n",
    ]
    columns += [*fixed, "colour_id", "colour_share", "peak_cone_contrast", "castle"]
    return found[columns].reset_index(drop=True)


@dataclass(frozen=True, eq=False)
class MeasuredPoints:
    """Thresholds of one data set for a figure."""

    dataset: str
    #: Single people in it; 0 where only means were published.
    persons: int
    #: Values of the level, rising, shape (K,); a value may stand twice, as measured directly and as
    #: moved.
    x: FloatArray
    #: Geometric mean over people, in the contrast of the experiment.
    sensitivity: FloatArray
    #: Log10: its standard error, and the standard deviation between people; NaN of fewer than two.
    error: FloatArray
    spread: FloatArray
    #: How many people; 0 of a published mean.
    n: FloatArray
    #: Whether measured under the conditions of the experiment.
    direct: npt.NDArray[np.bool_]
    #: Smallest and largest factor by which the others were moved; None where none was, or as in
    #: yellow-violet none may be.
    moved: tuple[float, float] | None


def figure_points(shown: Conditions) -> tuple[MeasuredPoints, ...]:
    """Measured thresholds as a figure shows them: means over the people of each data set, most
    people first.

    Parameters
    ----------
    shown : Conditions
        Of the experiment; its span is that of the axis.

    Notes
    -----
    Of a data set with single people the means are over them, and else the published ones.
    Extrapolated thresholds, of more than cone contrast 1, are left out. In yellow-violet, where
    castleCSF's ratio makes data sets disagree more, nothing is moved: all stands as measured.

    Examples
    --------
    >>> found = figure_points(Conditions("frequency", (0.5, 28.0), luminance=100.0, area=np.pi))
    >>> [(each.dataset, each.persons) for each in found[:3]]
    [('hdr_csf', 26), ('modelfest', 16), ('hdrvdp_csf', 10)]
    """
    table = matched_thresholds(shown)
    table = table[table["peak_cone_contrast"] <= 1]
    told = shown.direction != "yellow_violet"
    direct = table["match"] == "direct"
    here = table["sensitivity_transported"].where(~direct & told, table["sensitivity"] * shown.gain)
    table = table.assign(
        log_s=np.log10(here),
        direct=direct,
        x=table["x"].map(lambda x: float(f"{x:.5g}")),
        factor=10 ** table["log10_ratio"],
    )
    found = []
    for name, rows in table.groupby("dataset", sort=False):
        single = rows[rows["observer"] != "mean"]
        own = rows if single.empty else single
        of_each = (
            own.groupby(["x", "direct", "observer"])["log_s"]
            .mean()
            .groupby(["x", "direct"])
            .agg(["mean", "std", "size"])
        )
        factors = own.loc[~own["direct"], "factor"] / shown.gain
        n = np.zeros(len(of_each)) if single.empty else of_each["size"].to_numpy(dtype=float)
        spread = of_each["std"].to_numpy()
        found.append(
            MeasuredPoints(
                str(name),
                0 if single.empty else int(single["observer"].nunique()),
                of_each.index.get_level_values("x").to_numpy(dtype=float),
                10 ** of_each["mean"].to_numpy(),
                spread / np.sqrt(np.maximum(n, 1)),
                spread,
                n,
                of_each.index.get_level_values("direct").to_numpy(dtype=bool),
                (float(factors.min()), float(factors.max())) if told and len(factors) else None,
            )
        )
    return tuple(sorted(found, key=lambda one: (-one.persons, one.dataset)))


def mean_of_people(shown: Conditions, dataset: str) -> list[tuple[float, float]]:
    """Values of the level and log10 sensitivity there: of a data set the mean over people, where
    measured so the first.

    Examples
    --------
    >>> found = mean_of_people(Conditions("frequency", (0.5, 28.0), luminance=100.0, area=np.pi), "modelfest")
    >>> len(found), found[3][0], round(10 ** found[3][1], 1)
    (9, 4.0, 259.1)
    """
    of_all = {point.dataset: point for point in figure_points(shown)}
    if dataset not in of_all:
        return []
    one = of_all[dataset]
    # Later entries replace earlier ones of the same value.
    order = np.argsort(one.direct, kind="stable")
    found = {float(one.x[i]): float(np.log10(one.sensitivity[i])) for i in order}
    return sorted(found.items())


@cache
def _candidates() -> pd.DataFrame:
    """Static, foveal Gabors and gratings: the means of all studies, and each person's mean at each
    condition.
    """
    import pandas as pd

    means, single = (
        _foveal(table) for table in (thresholds().assign(observer="mean"), observers().assign(n=1))
    )
    first = {
        name: "first"
        for name in single.columns
        if name not in (*_CONDITION, "n", "log10_threshold")
    }
    people = single.groupby(_CONDITION, as_index=False, sort=False).agg(
        first | {"n": "sum", "log10_threshold": "mean", "peak_cone_contrast": "max"}
    )
    rows = pd.concat([means, people], ignore_index=True)
    rows["sensitivity"] = 10.0 ** -rows["log10_threshold"]
    own = {
        "background": rows[["L", "M", "S"]].to_numpy(),
        "direction": rows[["dL", "dM", "dS"]].to_numpy(),
    }
    asked = {"frequency": rows["frequency"].to_numpy(), "area": rows["area"].to_numpy(), **own}
    rows["castle"] = castle_csf(**asked)
    shares = castle_shares(**asked)
    return rows.assign(**{f"share_{name}": shares[:, i] for i, name in enumerate(_MECHANISMS)})


def _foveal(table: pd.DataFrame) -> pd.DataFrame:
    kept = (
        (table["temporal_frequency"] == 0)
        & (table["eccentricity"] == 0)
        & (table["stimulus"] != "disk")
    )
    return table[kept].assign(luminance=table["L"] + table["M"])
