"""Means of the scores of items, over all of them and over every part, with intervals; and models beside each other.

References
----------
Li et al. (2024). R-Bench. arXiv 2410.05474. Figure 5: correlations of steps and groups over models, and a principal
component analysis of the 33 dimensions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from psyprobe._typing import FloatArray
from psyprobe.analysis.alignment import check_resampling
from psyprobe.corruption import GROUPS, STEPS, STRENGTHS, dimensions
from psyprobe.errors import InputError, unknown_name
from psyprobe.tasks.r_bench.items import TASKS

MEASURES = ("absolute", "relative")


def rbench_metrics(
    table: pd.DataFrame, *, confidence: float = 0.9, resamples: int = 2000, seed: int = 0
) -> pd.DataFrame:
    """Mean robustness: overall, by task, strength, task and strength, step, group and dimension.

    Parameters
    ----------
    table : pandas.DataFrame
        As `score_items` gives it. Order of rows and further columns do not matter.
    confidence : float
        Of both intervals, in (0, 1); the paper's figures show 90 %.
    resamples : int
        Number of bootstrap samples of items, at least 100.
    seed : int
        Of the resampling.

    Returns
    -------
    pandas.DataFrame
        Columns measure, breakdown ("overall", "task", "strength", "cell", "step", "group", "dimension"), name, value,
        n, half_width (normal: quantile times s / sqrt(n)), low and high (bootstrap over items, percentiles), odd_keys
        (items that nothing can answer right), unscored (items without a score, which no mean contains) and simulated
        (items whose corruption stands in for one that R-Bench photographed: do not put that part beside the paper's).
        A part without scored items is left out.

    Raises
    ------
    InputError
        A column is missing, a name comes twice, or there is nothing to score.

    Notes
    -----
    Every mean is over items, so the overall value is not the mean of the nine cells, which differ in size; the printed
    overall values are means over items.
    """
    from scipy.special import ndtri

    needed = ("name", "task", "dimension", "strength", "absolute", "relative")
    missing = [name for name in needed if name not in table]
    if missing:
        raise InputError(f"the table has no column {missing[0]!r}; it needs {', '.join(needed)}")
    if not len(table):
        raise InputError("the table is empty; there is nothing to score")
    if table["name"].duplicated().any():
        raise InputError(f"item {table['name'][table['name'].duplicated()].iloc[0]} is there twice; keep one of them")
    check_resampling(confidence, resamples)
    ordered = table.sort_values("name", ignore_index=True)
    quantile, tails = float(ndtri((1 + confidence) / 2)), 100 * (1 - confidence) / 2
    rows = []
    for measure in MEASURES:
        scores = ordered[measure].to_numpy(dtype=np.float64)
        if np.isnan(scores).all():
            continue
        known = np.isfinite(scores)
        for breakdown, name, inside in parts_of(ordered):
            part = scores[inside & known]
            if not len(part):
                continue
            draws = np.random.default_rng([seed, len(part)]).integers(len(part), size=(resamples, len(part)))
            low, high = np.percentile(part[draws].mean(axis=1), [tails, 100 - tails])
            half = quantile * part.std(ddof=1) / np.sqrt(len(part)) if len(part) > 1 else None
            odd = int(ordered["odd_key"].to_numpy()[inside].sum()) if "odd_key" in ordered else 0
            unscored = int((inside & ~known).sum())
            simulated = int(ordered["simulated"].to_numpy()[inside].sum()) if "simulated" in ordered else 0
            rows.append((measure, breakdown, name, part.mean(), len(part), half, low, high, odd, unscored, simulated))
    names = ["measure", "breakdown", "name", "value", "n", "half_width", "low", "high"]
    names += ["odd_keys", "unscored", "simulated"]
    return pd.DataFrame(rows, columns=names)


def parts_of(table: pd.DataFrame) -> Iterator[tuple[str, str, np.ndarray]]:
    """Every part of an item table that has items: breakdown, name, and which rows are in it."""
    known = {dimension.id: dimension for dimension in dimensions().values()}
    columns = {
        "task": table["task"],
        "strength": table["strength"],
        "cell": table["task"] + "-" + table["strength"],
        "step": table["dimension"].map(lambda number: known[number].step),
        "group": table["dimension"].map(lambda number: known[number].group),
        "dimension": table["dimension"].map(lambda number: known[number].name),
    }
    order = {
        "task": TASKS,
        "strength": STRENGTHS,
        "cell": [f"{task}-{strength}" for task in TASKS for strength in STRENGTHS],
        "step": list(STEPS),
        "group": GROUPS,
        "dimension": list(dimensions()),
    }
    yield "overall", "overall", np.ones(len(table), dtype=bool)
    for breakdown, values in columns.items():
        for name in order[breakdown]:
            inside = (values == name).to_numpy()
            if inside.any():
                yield breakdown, name, inside


def paired_difference(
    one: pd.DataFrame, other: pd.DataFrame, *, confidence: float = 0.9, resamples: int = 2000, seed: int = 0
) -> pd.DataFrame:
    """How much more robust one model is than another, over the same items.

    Parameters
    ----------
    one, other : pandas.DataFrame
        As `score_items` gives them, of the same items. Items that either has no score of are left out.
    confidence, resamples, seed
        As for `rbench_metrics`.

    Returns
    -------
    pandas.DataFrame
        Columns measure, breakdown, name, difference (one less other), n, low and high (percentiles of the bootstrap,
        in which both models have the same items), and clear: whether 0 lies outside.

    Raises
    ------
    InputError
        The items are not the same, or a value is out of range.

    Notes
    -----
    No correction is made for looking at many parts: of 20 parts without any difference, two are clear at 90 %.
    """
    check_resampling(confidence, resamples)
    if set(one["name"]) != set(other["name"]):
        alone = sorted(set(one["name"]) ^ set(other["name"]))
        raise InputError(f"the models answered different items, {alone[0]} only one of them; compare over the same")
    left = one.sort_values("name", ignore_index=True)
    right = other.sort_values("name", ignore_index=True)
    tail = 100 * (1 - confidence) / 2
    rows = []
    for measure in MEASURES:
        differences = left[measure].to_numpy(dtype=np.float64) - right[measure].to_numpy(dtype=np.float64)
        known = np.isfinite(differences)
        for breakdown, name, inside in parts_of(left):
            part = differences[inside & known]
            if not len(part):
                continue
            draws = np.random.default_rng([seed, len(part)]).integers(len(part), size=(resamples, len(part)))
            low, high = np.percentile(part[draws].mean(axis=1), [tail, 100 - tail])
            rows.append((measure, breakdown, name, part.mean(), len(part), low, high, bool(low > 0 or high < 0)))
    columns = ["measure", "breakdown", "name", "difference", "n", "low", "high", "clear"]
    return pd.DataFrame(rows, columns=columns)


def correlations(metrics: Mapping[str, pd.DataFrame], by: str = "step", *, measure: str = "absolute") -> pd.DataFrame:
    """Spearman's correlation over models between steps, or between groups.

    Parameters
    ----------
    metrics, by, measure
        As for `across`; at least three models.

    Returns
    -------
    pandas.DataFrame
        A square with the names on both sides; parts in which all models are alike are left out.

    Raises
    ------
    InputError
        There are fewer than three models, or a part lacks a model.
    """
    table = across(metrics, by, measure=measure)
    if len(table) < 3:
        raise InputError(f"a correlation over {len(table)} models says nothing; give at least 3")
    ranks = table.rank()
    ranks = ranks.loc[:, ranks.std() > 0]
    if not ranks.size:
        raise InputError("all models have the same scores; there is nothing to correlate")
    found = np.corrcoef(ranks.to_numpy(), rowvar=False)
    return pd.DataFrame(np.atleast_2d(found), index=ranks.columns, columns=ranks.columns)


def across(metrics: Mapping[str, pd.DataFrame], by: str, *, measure: str = "absolute") -> pd.DataFrame:
    """Robustness of models (rows) in every part (columns).

    Parameters
    ----------
    metrics : mapping of str to pandas.DataFrame
        By model.
    by : {"step", "group", "task", "strength", "dimension"}
        Which parts.
    measure : {"absolute", "relative"}
        Which robustness.

    Raises
    ------
    UnknownNameError
        There is no such breakdown or measure.
    InputError
        A model has no score in some part.
    """
    breakdowns = ("step", "group", "task", "strength", "dimension")
    if by not in breakdowns:
        raise unknown_name("breakdown", by, breakdowns)
    if measure not in MEASURES:
        raise unknown_name("measure", measure, MEASURES)
    found = {
        model: table[(table["measure"] == measure) & (table["breakdown"] == by)].set_index("name")["value"]
        for model, table in metrics.items()
    }
    table = pd.DataFrame(found).T
    if not table.size or table.isna().to_numpy().any():
        raise InputError(f"not all models have {measure} scores in every {by}; compare models with the same items")
    return table


@dataclass(frozen=True)
class Components:
    """Principal components of models in the space of parts."""

    #: Shape (k,). Share of the variance, falling.
    explained: FloatArray
    #: Shape (parts, k). Unit vectors; the largest value of each is positive.
    loadings: pd.DataFrame
    #: Shape (models, k). Models on the components.
    scores: pd.DataFrame


def components(metrics: Mapping[str, pd.DataFrame], by: str = "dimension", *, measure: str = "absolute") -> Components:
    """Principal components of the scores of models by dimension, by singular values of the centred table.

    Parameters
    ----------
    metrics, by, measure
        As for `across`; at least three models.

    Raises
    ------
    InputError
        There are fewer than three models, or they are all alike.
    """
    table = across(metrics, by, measure=measure)
    if len(table) < 3:
        raise InputError(f"components of {len(table)} models say nothing; give at least 3")
    centred = table.to_numpy(dtype=np.float64) - table.to_numpy(dtype=np.float64).mean(axis=0)
    u, s, vt = np.linalg.svd(centred, full_matrices=False)
    k = int((s > 1e-12 * max(s[0], 1e-300)).sum()) if s[0] > 1e-12 else 0
    if not k:
        raise InputError("all models have the same scores; there is nothing to tell apart")
    sign = np.sign(vt[np.arange(k), np.abs(vt[:k]).argmax(axis=1)])
    names = [f"PC{i + 1}" for i in range(k)]
    return Components(
        explained=s[:k] ** 2 / (s**2).sum(),
        loadings=pd.DataFrame((sign[:, None] * vt[:k]).T, index=table.columns, columns=names),
        scores=pd.DataFrame(u[:, :k] * s[:k] * sign, index=table.index, columns=names),
    )
