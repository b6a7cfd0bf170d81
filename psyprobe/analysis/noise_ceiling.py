"""Noise ceilings of contrast sensitivity: how well one person's thresholds predict those of the
others.

A person is left out, and compared with the mean of the others. The ceiling says when a model is as
good as another person. It is no limit: the mean of many may be known better than any one person
follows it.

References
----------
Nili, Wingfield, Walther, Su, Marslen-Wilson, Kriegeskorte (2014). A toolbox for representational
similarity analysis. PLoS Comput. Biol. 10(4): e1003553 (both bounds of a noise ceiling).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.analysis.human_observer import FEWEST, ceiling, shape_alignment
from psyprobe.analysis.words.comparison import STATISTICS, csf_statistics
from psyprobe.human.datasets import observers
from psyprobe.human.evaluation import predicted_sensitivity

if TYPE_CHECKING:
    import pandas as pd

#: Scores of one curve against another.
SCORES = (*STATISTICS, "alignment")


def curve_scores(log_s: FloatArray, log_reference: FloatArray) -> dict[str, float]:
    """All `SCORES` of one curve against another, both log10 sensitivities of shape (X,)."""
    found = csf_statistics(10.0**log_s, 10.0**log_reference)
    return {name: float(found[name]) for name in STATISTICS} | {
        "alignment": shape_alignment(log_s - log_reference)
    }


def is_error(score: str) -> bool:
    """Whether less of a score is better."""
    return "rmse" in score


@dataclass(frozen=True)
class _Family:
    """Curves over one quantity."""

    x: str
    #: What is fixed besides what always is.
    fixed: tuple[str, ...]
    fewest: int = 4
    discs: bool = True


_SAME = ("dataset", "colour_id", "stimulus", "eccentricity", "visual_field", "orientation")
_FAMILIES = {
    "frequency_size": _Family(
        "frequency", ("temporal_frequency", "background_id", "sigma"), discs=False
    ),
    "frequency_cycles": _Family(
        "frequency", ("temporal_frequency", "background_id", "cycles"), discs=False
    ),
    "luminance": _Family("luminance", ("temporal_frequency", "frequency", "sigma")),
    "area": _Family("area", ("temporal_frequency", "background_id", "frequency"), fewest=3),
    "temporal_frequency": _Family("temporal_frequency", ("background_id", "frequency", "sigma")),
}


@dataclass(frozen=True, eq=False)
class Curve:
    """Thresholds of several persons at the same values of one quantity, all else equal, without a
    gap.
    """

    dataset: str
    family: str
    #: By name: colour_id, luminance (L + M, cd/m²) and what else is the same.
    fixed: Mapping[str, Any]
    #: Rising, shape (X,).
    x: FloatArray
    persons: tuple[str, ...]
    #: Log10 sensitivity, shape (P, X).
    log_s: FloatArray
    #: The same of castleCSF, shape (X,).
    castle: FloatArray

    def scores(self) -> dict[str, FloatArray]:
        """By `SCORES`, each person against the geometric mean of the others, shape (P,)."""
        n = len(self.persons)
        others = (self.log_s.sum(axis=0) - self.log_s) / (n - 1)
        found = [curve_scores(own, rest) for own, rest in zip(self.log_s, others, strict=True)]
        return {name: np.array([each[name] for each in found]) for name in SCORES}

    def with_self(self) -> dict[str, float]:
        """By `SCORES`, the mean over persons against the mean of all, themselves included: an
        optimistic bound.
        """
        found = [curve_scores(own, self.log_s.mean(axis=0)) for own in self.log_s]
        return {name: float(np.mean([each[name] for each in found])) for name in SCORES}


def curves(dataset: str | None = None) -> list[Curve]:
    """Curves that three persons or more measured in full, in the thresholds of single people.

    Parameters
    ----------
    dataset : str, optional
        As for `psyprobe.human.observers`.

    Notes
    -----
    Of the values at which persons differ in number, those are kept at which persons times values
    are most: four values at least, three of area. Repeats of a person are averaged in log first.

    Examples
    --------
    >>> [(each.family, each.log_s.shape) for each in curves("modelfest")]
    [('frequency_size', (16, 10)), ('frequency_cycles', (16, 4))]
    """
    table = observers(dataset)
    table["luminance"] = table["L"] + table["M"]
    table["cycles"] = 2 * table["sigma"] * table["frequency"]
    table["castle"] = np.log10(predicted_sensitivity(table))
    numbers = [name for name in table.columns if table[name].dtype.kind == "f" and name != "castle"]
    rounded = table.assign(
        **{name: table[name].map(_five_digits) for name in numbers if "log10" not in name}
    )
    return [curve for name, family in _FAMILIES.items() for curve in _curves(rounded, name, family)]


def _five_digits(value: float) -> float:
    return float(f"{value:.5g}")


def _curves(table: pd.DataFrame, name: str, family: _Family) -> Iterator[Curve]:
    kept = table if family.discs else table[table["stimulus"] != "disk"]
    columns = [*_SAME, *family.fixed]
    place = kept.groupby(columns, sort=True, dropna=False).ngroup().rename("place")
    means = (
        kept.groupby([place, "observer", family.x])[["log10_threshold", "castle"]]
        .mean()
        .reset_index()
    )
    counts = means.groupby("place")[["observer", family.x]].nunique()
    enough = counts.index[(counts["observer"] >= FEWEST) & (counts[family.x] >= family.fewest)]
    for one, rows in means[means["place"].isin(enough)].groupby("place"):
        grid = _complete(
            rows.pivot(index="observer", columns=family.x, values="log10_threshold"), family.fewest
        )
        if grid is not None:
            light = [] if family.x == "luminance" else ["luminance"]
            fixed = kept.loc[place == one, columns + light].iloc[0].to_dict()
            castle = rows.groupby(family.x)["castle"].first()[grid.columns].to_numpy()
            x = grid.columns.to_numpy(dtype=float)
            log_s = -grid.to_numpy()
            yield Curve(str(fixed["dataset"]), name, fixed, x, tuple(grid.index), log_s, castle)


def _complete(grid: pd.DataFrame, fewest: int) -> pd.DataFrame | None:
    """The largest part of a table of persons and values that has no gap."""
    order = sorted(grid.columns, key=lambda x: (-int(grid[x].notna().sum()), x))
    best: pd.DataFrame | None = None
    for k in range(fewest, len(order) + 1):
        part = grid[sorted(order[:k])].dropna()
        if len(part) >= FEWEST and (best is None or part.size >= best.size):
            best = part
    return best


def noise_ceilings(
    dataset: str | None = None, *, resamples: int = 2000, seed: int = 0
) -> pd.DataFrame:
    """How well one person's contrast sensitivity predicts that of the others, by data set, kind of
    curve and score.

    Parameters
    ----------
    dataset : str, optional
        As for `psyprobe.human.observers`.
    resamples, seed
        As for `psyprobe.analysis.align`.

    Returns
    -------
    pandas.DataFrame
        `dataset`; `family`: over "frequency_size" (frequency at one size), "frequency_cycles" (at
        as many cycles), "luminance", "area" or "temporal_frequency"; `score`; `n_curves`,
        `n_persons`; `ceiling`: each person's score averaged over his curves, and then over persons,
        with its 95 % interval `low`, `high`; `sd_persons`; `worst` and `best` person.

    Examples
    --------
    >>> table = noise_ceilings("modelfest").set_index(["family", "score"])
    >>> float(table.loc[("frequency_size", "shape_rmse_log10"), "ceiling"].round(3))
    0.109
    """
    import pandas as pd

    groups: dict[tuple[str, str], list[Curve]] = {}
    for curve in curves(dataset):
        groups.setdefault((curve.dataset, curve.family), []).append(curve)
    rows = []
    for (name, family), found in groups.items():
        persons = sorted({person for curve in found for person in curve.persons})
        scored = [(curve.persons, curve.scores()) for curve in found]
        for score in SCORES:
            own = [
                [values[score][who.index(p)] for who, values in scored if p in who] for p in persons
            ]
            means = np.array([np.mean(each) for each in own])
            one = ceiling(means, error=is_error(score), resamples=resamples, seed=seed)
            ends = means.min(), means.max()
            worst, best = reversed(ends) if is_error(score) else ends
            told = {
                "dataset": name,
                "family": family,
                "score": score,
                "n_curves": len(found),
                "n_persons": one.persons,
            }
            told |= {"ceiling": one.value, "low": one.low, "high": one.high, "sd_persons": one.sd}
            rows.append(told | {"worst": worst, "best": best})
    return pd.DataFrame(rows)
