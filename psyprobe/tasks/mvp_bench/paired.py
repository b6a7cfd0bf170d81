"""Two models on the same questions: the difference of every metric, with an interval over image pairs."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from psyprobe.errors import InputError
from psyprobe.tasks.mvp_bench.metrics import checked_answers, ratios


def compare_models(
    first: pd.DataFrame,
    second: pd.DataFrame,
    *,
    confidence: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> pd.DataFrame:
    """The difference of two models in every metric that both have.

    Parameters
    ----------
    first, second : pandas.DataFrame
        Answers to the same questions, as for `mvp_metrics`.
    confidence : float
        Of the intervals, in (0, 1).
    resamples : int
        Number of bootstrap samples of image pairs, at least 100.
    seed : int
        Of the resampling.

    Returns
    -------
    pandas.DataFrame
        Columns task, level, metric, difference (first minus second, points of per cent), low, high, and p: how often a
        resampled difference falls on the other side of 0, twice and at most 1.

    Raises
    ------
    InputError
        The two did not answer the same questions.

    Notes
    -----
    Both models are resampled by the same pairs, so what makes a pair hard for both cancels.
    """
    tables = [checked_answers(table) for table in (first, second)]
    asked = [set(zip(table["run"], table["question_id"], strict=True)) for table in tables]
    if asked[0] != asked[1]:
        only = len(asked[0] ^ asked[1])
        raise InputError(f"{only} questions were answered by one of the two models alone; compare what both answered")
    if resamples < 100:
        raise InputError(f"{resamples} resamples give no usable interval; take at least 100, usual is 2000")
    pairs = np.unique(tables[0]["pair"])
    draws = np.random.default_rng(seed).multinomial(len(pairs), np.full(len(pairs), 1 / len(pairs)), size=resamples)
    tails = 100 * (1 - confidence) / 2
    sums = [_by_pair(table, pairs) for table in tables]
    rows = []
    for cell, one in sums[0].items():
        other = sums[1][cell]
        with np.errstate(invalid="ignore", divide="ignore"):
            samples = 100 * (draws @ one[0] / (draws @ one[1]) - draws @ other[0] / (draws @ other[1]))
        samples = samples[np.isfinite(samples)]
        value = 100 * (one[0].sum() / one[1].sum() - other[0].sum() / other[1].sum())
        low, high = np.percentile(samples, [tails, 100 - tails])
        p = min(1.0, 2 * float(min((samples <= 0).mean(), (samples >= 0).mean())))
        rows.append((*cell, value, low, high, p))
    return pd.DataFrame(rows, columns=["task", "level", "metric", "difference", "low", "high", "p"])


def _by_pair(table: pd.DataFrame, pairs: np.ndarray) -> Mapping[tuple[str, str, str], tuple[np.ndarray, np.ndarray]]:
    found = {}
    for task, level, metric, groups in ratios(table):
        sums = groups.groupby("pair")[["right", "asked"]].sum().reindex(pairs, fill_value=0)
        found[task, level, metric] = (sums["right"].to_numpy(), sums["asked"].to_numpy())
    return found
