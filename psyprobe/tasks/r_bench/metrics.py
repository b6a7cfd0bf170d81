"""Means of the scores of items over every part, with intervals; models beside each other and beside
the paper's.

References
----------
Li et al. (2024). R-Bench. arXiv 2410.05474. Figure 5: correlations of steps and groups over models,
and a principal component analysis of the 33 dimensions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import numpy as np
import pandas as pd

from psyprobe._typing import FloatArray
from psyprobe.analysis.intervals import bounded_interval, check_confidence
from psyprobe.analysis.score import check_format
from psyprobe.corruption import GROUPS, STEPS, STRENGTHS, dimension_numbered, dimensions
from psyprobe.errors import InputError, unknown_name
from psyprobe.files.terminal import lay_out, printable
from psyprobe.tasks.r_bench.items import TASKS, check_once
from psyprobe.tasks.tables import all_metrics, near_names, printed_name

MEASURES = ("absolute", "relative")
#: Parts into which items are divided, besides tasks by strengths ("cell"), and the names of each.
BREAKDOWNS = {
    "step": (*STEPS,),
    "group": GROUPS,
    "task": TASKS,
    "strength": STRENGTHS,
    "dimension": (*dimensions(),),
}
#: Columns of items that are counted in each part.
_FLAGS = ("odd_key", "simulated")
_CELLS = [f"{task}-{strength}" for task in TASKS for strength in STRENGTHS]


def rbench_metrics(table: pd.DataFrame, *, confidence: float = 0.9) -> pd.DataFrame:
    """Mean robustness: overall, by task, strength, task and strength, step, group and dimension.

    Parameters
    ----------
    table : pandas.DataFrame
        As `score_items` gives it. Order of rows and further columns do not matter.
    confidence : float
        Of both intervals, in (0, 1); the paper's figures show 90 %.

    Returns
    -------
    pandas.DataFrame
        Columns measure, breakdown ("overall", "task", "strength", "cell", "step", "group",
        "dimension"), name, value, n, half_width (normal: quantile times s / sqrt(n)), low and high
        (Wilson's, of as many answers as have this standard error), odd_keys (items that nothing can
        answer right), unscored (items without a score, which no mean contains) and simulated (items
        whose corruption stands in for one that R-Bench photographed: do not put that part beside
        the paper's). A part without scored items is left out.

    Raises
    ------
    InputError
        A column is missing, a name comes twice, or there is nothing to score.

    Notes
    -----
    Every mean is over items, so the overall value is not the mean of the nine cells, which differ
    in size; the printed overall values are means over items.
    """
    from scipy.special import ndtri

    needed = ("name", "task", "dimension", "strength", "absolute", "relative")
    missing = [name for name in needed if name not in table]
    if missing:
        raise InputError(f"the table has no column {missing[0]!r}; it needs {', '.join(needed)}")
    if not len(table):
        raise InputError("the table is empty; there is nothing to score")
    check_once(table, "name", "item")
    check_confidence(confidence)
    quantile = float(ndtri((1 + confidence) / 2))
    ordered = table.sort_values("name", ignore_index=True)
    flags = {
        name: ordered[name].to_numpy() if name in ordered else np.zeros(len(ordered))
        for name in _FLAGS
    }
    rows = []
    for measure in MEASURES:
        scores = ordered[measure].to_numpy(dtype=np.float64)
        for breakdown, name, inside, part, low, high in _by_part(
            ordered, scores, confidence, (0.0, 1.0)
        ):
            half = quantile * part.std(ddof=1) / np.sqrt(len(part)) if len(part) > 1 else None
            odd, simulated = (int(flags[flag][inside].sum()) for flag in _FLAGS)
            unscored = int(inside.sum()) - len(part)
            rows.append(
                (
                    measure,
                    breakdown,
                    name,
                    part.mean(),
                    len(part),
                    half,
                    low,
                    high,
                    odd,
                    unscored,
                    simulated,
                )
            )
    names = ["measure", "breakdown", "name", "value", "n", "half_width", "low", "high"]
    return pd.DataFrame(rows, columns=[*names, "odd_keys", "unscored", "simulated"])


def _by_part(
    table: pd.DataFrame, values: FloatArray, confidence: float, bounds: tuple[float, float]
) -> Iterator[tuple[str, str, FloatArray, FloatArray, float, float]]:
    """Each part with values: breakdown, name, rows, finite values, and the interval of their
    mean.
    """
    known = np.isfinite(values)
    for breakdown, name, inside in parts_of(table):
        part = values[inside & known]
        if len(part):
            error = float(part.std(ddof=1) / np.sqrt(len(part))) if len(part) > 1 else 0.0
            low, high = bounded_interval(float(part.mean()), error, len(part), confidence, bounds)
            yield breakdown, name, inside, part, low, high


def parts_of(table: pd.DataFrame) -> Iterator[tuple[str, str, np.ndarray]]:
    """Every part of an item table that has items: breakdown, name, and which rows are in it."""
    known = [dimension_numbered(number) for number in table["dimension"]]
    columns = {
        "task": table["task"],
        "strength": table["strength"],
        "cell": table["task"] + "-" + table["strength"],
        "step": pd.Series([way.step for way in known]),
        "group": pd.Series([way.group for way in known]),
        "dimension": pd.Series([way.name for way in known]),
    }
    yield "overall", "overall", np.ones(len(table), dtype=bool)
    for breakdown, values in columns.items():
        for name in _CELLS if breakdown == "cell" else BREAKDOWNS[breakdown]:
            inside = (values == name).to_numpy()
            if inside.any():
                yield breakdown, name, inside


def paired_difference(
    one: pd.DataFrame, other: pd.DataFrame, *, confidence: float = 0.9
) -> pd.DataFrame:
    """How much more robust one model is than another, over the same items.

    Parameters
    ----------
    one, other : pandas.DataFrame
        As `score_items` gives them, of the same items. Items that either has no score of are left
        out.
    confidence
        As for `rbench_metrics`.

    Returns
    -------
    pandas.DataFrame
        Columns measure, breakdown, name, difference (one less other), n, low and high (as for
        `rbench_metrics`, of the differences), and clear: whether 0 lies outside.

    Raises
    ------
    InputError
        The items are not the same, or a value is out of range.

    Notes
    -----
    No correction is made for looking at many parts: of 20 parts without any difference, two are
    clear at 90 %.
    """
    check_confidence(confidence)
    if set(one["name"]) != set(other["name"]):
        alone = sorted(set(one["name"]) ^ set(other["name"]))
        raise InputError(
            f"the models answered different items, {alone[0]} only one of them; compare over "
            "the same"
        )
    left, right = (table.sort_values("name", ignore_index=True) for table in (one, other))
    rows = []
    for measure in MEASURES:
        differences = left[measure].to_numpy(dtype=np.float64) - right[measure].to_numpy(
            dtype=np.float64
        )
        for breakdown, name, _, part, low, high in _by_part(
            left, differences, confidence, (-1.0, 1.0)
        ):
            rows.append(
                (
                    measure,
                    breakdown,
                    name,
                    part.mean(),
                    len(part),
                    low,
                    high,
                    bool(low > 0 or high < 0),
                )
            )
    columns = ["measure", "breakdown", "name", "difference", "n", "low", "high", "clear"]
    return pd.DataFrame(rows, columns=columns)


def correlations(metrics: Mapping[str, pd.DataFrame], by: str = "step") -> pd.DataFrame:
    """Spearman's correlation over models between steps, or between groups.

    Parameters
    ----------
    metrics, by
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
    table = across(metrics, by)
    if len(table) < 3:
        raise InputError(f"a correlation over {len(table)} models says nothing; give at least 3")
    ranks = table.rank()
    ranks = ranks.loc[:, ranks.std() > 0]
    if not ranks.size:
        raise InputError("all models have the same scores; there is nothing to correlate")
    found = np.corrcoef(ranks.to_numpy(), rowvar=False)
    return pd.DataFrame(np.atleast_2d(found), index=ranks.columns, columns=ranks.columns)


def across(metrics: Mapping[str, pd.DataFrame], by: str) -> pd.DataFrame:
    """Absolute robustness of models (rows) in every part (columns).

    Parameters
    ----------
    metrics : mapping of str to pandas.DataFrame
        By model.
    by : {"step", "group", "task", "strength", "dimension"}
        Which parts.

    Raises
    ------
    UnknownNameError
        There is no such breakdown.
    InputError
        A model has no score in some part.
    """
    table = pd.DataFrame(
        {model: rows["value"] for model, rows in rows_by(metrics, by, "absolute").items()}
    ).T
    if not table.size or table.isna().to_numpy().any():
        raise InputError(
            f"not all models have absolute scores in every {by}; compare models with the same items"
        )
    return table


def rows_by(metrics: Mapping[str, pd.DataFrame], by: str, measure: str) -> dict[str, pd.DataFrame]:
    """Of each model the rows of one breakdown and measure, by their names."""
    for kind, name, known in (("breakdown", by, BREAKDOWNS), ("measure", measure, MEASURES)):
        if name not in known:
            raise unknown_name(kind, name, known)
    return {
        model: table[(table["measure"] == measure) & (table["breakdown"] == by)].set_index("name")
        for model, table in metrics.items()
    }


@dataclass(frozen=True)
class Components:
    """Principal components of models in the space of parts."""

    #: Shape (k,). Share of the variance, falling.
    explained: FloatArray
    #: Shape (parts, k). Unit vectors; the largest value of each is positive.
    loadings: pd.DataFrame
    #: Shape (models, k). Models on the components.
    scores: pd.DataFrame


def components(metrics: Mapping[str, pd.DataFrame]) -> Components:
    """Principal components of the scores of models by dimension, by singular values of the centred
    table.

    Parameters
    ----------
    metrics
        As for `across`; at least three models.

    Raises
    ------
    InputError
        There are fewer than three models, or they are all alike.
    """
    table = across(metrics, "dimension")
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


@cache
def published() -> pd.DataFrame:
    """Table 3 of the paper: robustness of 20 models by task and strength.

    Columns model, measure, name ("MCQ-low" to "CAP-high", "overall"), value (text, as printed),
    note.
    """
    with (
        files("psyprobe.tasks.r_bench")
        .joinpath("data", "rbench_published.csv")
        .open(encoding="utf-8") as file
    ):
        table = pd.read_csv(file, comment="#", dtype=str, keep_default_na=False)
    table = table[table["table"] == "3"]
    name = (table["task"] + "-" + table["strength"]).where(
        table["breakdown"] != "overall", "overall"
    )
    return table.assign(name=name, value=table["score"])[
        ["model", "measure", "name", "value", "note"]
    ]


def beside_published(metrics: pd.DataFrame, model: str) -> pd.DataFrame:
    """A model's robustness beside the printed one.

    Parameters
    ----------
    metrics : pandas.DataFrame
        As `rbench_metrics` gives them.
    model : str
        A model of the paper.

    Returns
    -------
    pandas.DataFrame
        Columns measure, name, paper (text), value, agrees (to all four printed digits) and note.

    Raises
    ------
    UnknownNameError
        The paper has no such model.
    """
    printed = published()
    if model not in set(printed["model"]):
        raise unknown_name("model of the R-Bench paper", model, sorted(set(printed["model"])))
    ours = metrics[metrics["breakdown"].isin(["cell", "overall"])][["measure", "name", "value"]]
    both = (
        printed[printed["model"] == model]
        .rename(columns={"value": "paper"})
        .merge(ours, on=["measure", "name"])
    )
    # The half is rounded up, as people do; the small term keeps a binary fraction from falling
    # under it.
    rounded = [f"{int(value * 10_000 + 0.5 + 1e-9) / 10_000:.4f}" for value in both["value"]]
    agrees = [
        one == f"{float(other):.4f}" for one, other in zip(rounded, both["paper"], strict=True)
    ]
    return both.assign(agrees=agrees)[["measure", "name", "paper", "value", "agrees", "note"]]


def rbench_table(metrics: Mapping[str, pd.DataFrame], format: str = "text") -> str:
    """Robustness in the form of the paper's Table 3, printed values under those of a model of the
    paper.

    Parameters
    ----------
    metrics : mapping of str to pandas.DataFrame
        By model, as `rbench_metrics` gives them.
    format : {"text", "markdown", "latex", "csv", "json"}
        "csv" and "json" hold every breakdown with all digits and intervals.

    Returns
    -------
    str
        A star marks a printed value that differs.

    Raises
    ------
    UnknownNameError
        There is no such format.
    """
    check_format(format)
    if format in ("csv", "json"):
        return all_metrics(metrics, format)
    found = rbench_rows(metrics)
    return "\n\n".join(f"{title}\n{lay_out(format, rows, notes)}" for title, rows, notes in found)


def rbench_rows(
    metrics: Mapping[str, pd.DataFrame],
) -> list[tuple[str, list[list[str]], list[str]]]:
    """The tables of `rbench_table`: of each measure its title, the rows with the headings first,
    and notes.
    """
    tables = []
    for measure in MEASURES:
        rows = [["", *_CELLS, "overall [interval]"]]
        notes = []
        for model, values in metrics.items():
            found = values[
                (values["measure"] == measure) & values["breakdown"].isin(["cell", "overall"])
            ]
            by_name = found.set_index("name")
            if not len(by_name):
                continue
            overall = by_name.loc["overall"]
            cells = [
                f"{by_name.loc[name, 'value']:.4f}" if name in by_name.index else "-"
                for name in _CELLS
            ]
            interval = f"{overall['value']:.4f} [{overall['low']:.3f}, {overall['high']:.3f}]"
            rows.append([printable(model), *cells, interval])
            if overall["odd_keys"]:
                notes.append(
                    f"{model}: {overall['odd_keys']} item has a key that is none of its options."
                )
            if overall.get("simulated"):
                notes.append(
                    f"{model}: {overall['simulated']} items are simulated where R-Bench "
                    "photographed them."
                )
            known = list(dict.fromkeys(published()["model"]))
            if (name := printed_name(model, known)) is None:
                notes += [line for line in [near_names(model, known)] if line]
            else:
                beside = beside_published(values, name)
                printed = beside[beside["measure"] == measure].set_index("name")
                marked = dict.fromkeys([*_CELLS, "overall"], "-")
                marked |= {
                    name: row["paper"] + "*" * (not row["agrees"])
                    for name, row in printed.iterrows()
                }
                if "-" in marked.values():
                    # The paper's overall value is of all cells, and beside fewer it says nothing.
                    marked["overall"] = "-"
                rows.append(["  as printed" + f" ({name})" * (name != model), *marked.values()])
                notes += [
                    f"{model}: {note}."
                    for note in dict.fromkeys(printed["note"])
                    if "order" in note
                ]
        if len(rows) > 1:
            tables.append((f"{measure.capitalize()} robustness", rows, notes))
    return tables
