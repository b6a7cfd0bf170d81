"""Compute noise ceilings: how well one person's thresholds predict those of the others.

Each person is left out in turn and compared with the mean of the others. A model at the noise
ceiling is as good as another person. It is no limit: a model may follow the mean of many better
than any one person does.

References
----------
Nili, Wingfield, Walther, Su, Marslen-Wilson, Kriegeskorte (2014). A toolbox for representational
similarity analysis. PLoS Comput. Biol. 10(4): e1003553 (both bounds of a noise ceiling).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.analysis.human_observer import FEWEST, ceiling, shape_alignment
from psyprobe.analysis.words.comparison import STATISTICS, csf_statistics
from psyprobe.files.json_types import JsonMapping
from psyprobe.human.datasets import observers
from psyprobe.human.evaluation import predicted_sensitivity

if TYPE_CHECKING:
    import pandas as pd

#: Names of the scores of one curve against another.
SCORES = (*STATISTICS, "alignment")


def curve_scores(log_s: FloatArray, log_reference: FloatArray) -> dict[str, float]:
    """Compute all scores of one CSF against another, both as log10 sensitivities, shape (X,)."""
    statistics = csf_statistics(10.0**log_s, 10.0**log_reference)
    scores = {name: float(statistics[name]) for name in STATISTICS}
    return scores | {"alignment": shape_alignment(log_s - log_reference)}


def is_error(score: str) -> bool:
    """Tell whether a score is an error, where less is better, by its name."""
    return "rmse" in score


@dataclass(frozen=True)
class _Family:
    """Which thresholds make a curve over one quantity."""

    x: str
    #: Quantities that are equal along a curve, besides those of `_SAME`.
    fixed: tuple[str, ...]
    fewest: int = 4
    discs: bool = True


_SAME = (
    "dataset",
    "colour_id",
    "stimulus",
    "eccentricity",
    "visual_field",
    "orientation",
)
_FAMILIES = {
    "frequency_size": _Family(
        "frequency", ("temporal_frequency", "background_id", "sigma"), discs=False
    ),
    "frequency_cycles": _Family(
        "frequency", ("temporal_frequency", "background_id", "cycles"), discs=False
    ),
    "luminance": _Family("luminance", ("temporal_frequency", "frequency", "sigma")),
    "area": _Family(
        "area", ("temporal_frequency", "background_id", "frequency"), fewest=3
    ),
    "temporal_frequency": _Family(
        "temporal_frequency", ("background_id", "frequency", "sigma")
    ),
}


@dataclass(frozen=True, eq=False)
class Curve:
    """Thresholds of several persons at the same values of one quantity, without a gap."""

    dataset: str
    family: str
    #: Quantities that are equal along the curve: colour_id, luminance (L + M, cd/m²) and others.
    fixed: JsonMapping
    #: Rising, shape (X,).
    x: FloatArray
    persons: tuple[str, ...]
    #: Log10 sensitivity, shape (P, X).
    log_s: FloatArray
    #: Log10 sensitivity of castleCSF, shape (X,).
    castle: FloatArray

    def scores(self) -> dict[str, FloatArray]:
        """Score each person against the geometric mean of the others, by score, shape (P,)."""
        n = len(self.persons)
        means_of_others = (self.log_s.sum(axis=0) - self.log_s) / (n - 1)
        scores = [
            curve_scores(log_s, mean)
            for log_s, mean in zip(self.log_s, means_of_others, strict=True)
        ]
        return {name: np.array([score[name] for score in scores]) for name in SCORES}


def curves(dataset: str | None = None) -> list[Curve]:
    """Find the CSFs that three persons or more measured at all the same levels.

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
    >>> [(curve.family, curve.log_s.shape) for curve in curves("modelfest")]
    [('frequency_size', (16, 10)), ('frequency_cycles', (16, 4))]
    """
    table = observers(dataset)
    table["luminance"] = table["L"] + table["M"]
    table["cycles"] = 2 * table["sigma"] * table["frequency"]
    table["castle"] = np.log10(predicted_sensitivity(table))
    numbers = [
        name
        for name in table.select_dtypes("float")
        if name != "castle" and "log10" not in name
    ]
    table[numbers] = table[numbers].map(_round_to_five_digits)
    return [
        curve
        for name, family in _FAMILIES.items()
        for curve in _curves(table, name, family)
    ]


def _round_to_five_digits(value: float) -> float:
    """Round a number to five significant digits."""
    return float(f"{value:.5g}")


def _curves(table: pd.DataFrame, name: str, family: _Family) -> Iterator[Curve]:
    """Iterate over the CSFs that several people measured at the same levels in one study."""
    table = table if family.discs else table[table["stimulus"] != "disk"]
    columns = [*_SAME, *family.fixed]
    group = table.groupby(columns, sort=True, dropna=False).ngroup().rename("group")
    thresholds = table.groupby([group, "observer", family.x])[
        ["log10_threshold", "castle"]
    ]
    means = thresholds.mean().reset_index()
    counts = means.groupby("group")[["observer", family.x]].nunique()
    large = counts.index[
        (counts["observer"] >= FEWEST) & (counts[family.x] >= family.fewest)
    ]
    for number, rows in means[means["group"].isin(large)].groupby("group"):
        pivot = rows.pivot(index="observer", columns=family.x, values="log10_threshold")
        grid = _complete(pivot, family.fewest)
        if grid is not None:
            light = [] if family.x == "luminance" else ["luminance"]
            fixed = table.loc[group == number, columns + light].iloc[0].to_dict()
            castle = rows.groupby(family.x)["castle"].first()[grid.columns].to_numpy()
            x = grid.columns.to_numpy(dtype=float)
            log_s = -grid.to_numpy()
            yield Curve(
                str(fixed["dataset"]), name, fixed, x, tuple(grid.index), log_s, castle
            )


def _complete(grid: pd.DataFrame, fewest: int) -> pd.DataFrame | None:
    """Select the largest part of a table of persons and values that has no gap."""
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
    """Tabulate how well one person's contrast sensitivity predicts that of the others.

    Parameters
    ----------
    dataset : str, optional
        As for `psyprobe.human.observers`.
    resamples, seed
        As for `psyprobe.analysis.align`.

    Returns
    -------
    pandas.DataFrame
        By `dataset`; `family`: over "frequency_size" (frequency at one size), "frequency_cycles"
        (at as many cycles), "luminance", "area" or "temporal_frequency"; `score`; `n_curves`,
        `n_persons`; `ceiling`: each person's score averaged over his curves, and then over persons,
        with its 95 % interval `low`, `high`; `sd_persons`; `worst` and `best` person.

    Examples
    --------
    >>> table = noise_ceilings("modelfest").set_index(["family", "score"])
    >>> float(table.loc[("frequency_size", "shape_rmse_log10"), "ceiling"].round(3))
    0.109
    """
    import pandas as pd

    rows = []
    all_curves = groupby(curves(dataset), key=attrgetter("dataset", "family"))
    for (name, family), group in all_curves:
        frames = [
            pd.DataFrame(curve.scores(), index=list(curve.persons)) for curve in group
        ]
        by_person = pd.concat(frames).groupby(level=0)
        for score in SCORES:
            means = np.array(
                [values.to_numpy().mean() for _, values in by_person[score]]
            )
            error = is_error(score)
            mean = ceiling(means, error=error, resamples=resamples, seed=seed)
            ends = [means.max(), means.min()]
            worst, best = ends if error else reversed(ends)
            rows.append(
                {
                    "dataset": name,
                    "family": family,
                    "score": score,
                    "n_curves": len(frames),
                    "n_persons": mean.persons,
                    "ceiling": mean.value,
                    "low": mean.low,
                    "high": mean.high,
                    "sd_persons": mean.sd,
                    "worst": worst,
                    "best": best,
                }
            )
    return pd.DataFrame(rows)
