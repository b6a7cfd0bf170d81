"""Means of the scores of items, over all of them and over every part, with intervals."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from psyprobe.corruption import GROUPS, STEPS, STRENGTHS, dimensions
from psyprobe.errors import InputError
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
    if not 0 < confidence < 1:
        raise InputError(f"confidence {confidence:g} must lie between 0 and 1; usual is 0.9")
    if resamples < 100:
        raise InputError(f"{resamples} resamples give no usable interval; take at least 100, usual is 2000")
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
