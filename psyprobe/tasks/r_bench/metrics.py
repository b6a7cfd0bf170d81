"""Average the scores of items over every part, and put models beside each other and the paper's.

References
----------
Li et al. (2024). R-Bench. arXiv 2410.05474. Figure 5: correlations of steps and groups over models,
and a principal component analysis of the 33 dimensions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache

import numpy as np
import pandas as pd

from psyprobe._typing import BoolArray, FloatArray
from psyprobe.analysis.intervals import bounded_interval, check_confidence
from psyprobe.analysis.score import check_format
from psyprobe.corruption import GROUPS, STEPS, STRENGTHS, dimension_numbered, dimensions
from psyprobe.errors import InputError, unknown_name
from psyprobe.files.json_types import JsonObject
from psyprobe.files.terminal import lay_out, printable
from psyprobe.tasks.r_bench.items import TASKS
from psyprobe.tasks.tables import (
    all_metrics,
    find_printed,
    printed_label,
    printed_rows,
    read_packaged_table,
    refuse_duplicates,
    require_columns,
    round_half_up,
)

MEASURES = ("absolute", "relative")
_POPULATION = "[interval]: over items, as if other items had been asked."
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
_METRIC_COLUMNS = (
    *("measure", "breakdown", "name", "value", "n", "half_width", "low", "high"),
    *("odd_keys", "unscored", "simulated"),
)


def rbench_metrics(table: pd.DataFrame, *, confidence: float = 0.9) -> pd.DataFrame:
    """Average robustness over all items, and by task, strength, corruption and its groups.

    Parameters
    ----------
    table : pandas.DataFrame
        Scored items as from `score_items`. Order of rows and further columns do not matter.
    confidence : float
        Confidence of both intervals, in (0, 1); the paper's figures show 90 %.

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

    needed = ("name", "task", "dimension", "strength", *MEASURES)
    require_columns(table, needed, "the table")
    refuse_duplicates(table["name"], "item")
    check_confidence(confidence)
    quantile = float(ndtri((1 + confidence) / 2))
    ordered = table.sort_values("name", ignore_index=True)
    flags = ordered.reindex(columns=_FLAGS, fill_value=0)
    rows = []
    for measure in MEASURES:
        scores = ordered[measure].to_numpy(dtype=np.float64)
        for row, members, values in _mean_rows(
            ordered, scores, confidence, (0.0, 1.0), "value"
        ):
            count = len(values)
            half = quantile * values.std(ddof=1) / np.sqrt(count) if count > 1 else None
            row |= {
                "measure": measure,
                "half_width": half,
                "odd_keys": int(flags["odd_key"][members].sum()),
                "unscored": int(members.sum()) - count,
                "simulated": int(flags["simulated"][members].sum()),
            }
            rows.append(row)
    return pd.DataFrame(rows, columns=_METRIC_COLUMNS)


def _mean_rows(
    table: pd.DataFrame,
    scores: FloatArray,
    confidence: float,
    bounds: tuple[float, float],
    column: str,
) -> Iterator[tuple[JsonObject, BoolArray, FloatArray]]:
    """Iterate over the parts of a table, each with the mean of its scores and their interval."""
    finite = np.isfinite(scores)
    for breakdown, name, members in parts_of(table):
        values = scores[members & finite]
        count = len(values)
        if count:
            mean = float(values.mean())
            error = float(values.std(ddof=1) / np.sqrt(count)) if count > 1 else 0.0
            low, high = bounded_interval(mean, error, count, confidence, bounds)
            row = {"breakdown": breakdown, "name": name, column: mean, "n": count}
            yield row | {"low": low, "high": high}, members, values


def parts_of(table: pd.DataFrame) -> Iterator[tuple[str, str, BoolArray]]:
    """Iterate over the parts of an item table that have items: breakdown, name, mask of rows."""
    details = pd.DataFrame(map(dimension_numbered, table["dimension"]))
    columns = {
        "task": table["task"],
        "strength": table["strength"],
        "cell": table["task"] + "-" + table["strength"],
        "step": details["step"],
        "group": details["group"],
        "dimension": details["name"],
    }
    yield "overall", "overall", np.ones(len(table), dtype=bool)
    for breakdown, values in columns.items():
        for name in _CELLS if breakdown == "cell" else BREAKDOWNS[breakdown]:
            members = (values == name).to_numpy()
            if members.any():
                yield breakdown, name, members


def paired_difference(
    first: pd.DataFrame, second: pd.DataFrame, *, confidence: float = 0.9
) -> pd.DataFrame:
    """Compare the robustness of two models over the same items.

    Parameters
    ----------
    first, second : pandas.DataFrame
        Scores of the same items, as from `score_items`. Items that either has no score of are left
        out.
    confidence
        As for `rbench_metrics`.

    Returns
    -------
    pandas.DataFrame
        Columns measure, breakdown, name, difference (first less second), n, low and high (as for
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
    unpaired = sorted(set(first["name"]) ^ set(second["name"]))
    if unpaired:
        raise InputError(
            f"the models answered different items, {unpaired[0]} only one of them; compare over "
            "the same"
        )
    tables = [table.sort_values("name", ignore_index=True) for table in (first, second)]
    scores = [table[[*MEASURES]].astype(np.float64) for table in tables]
    differences = scores[0] - scores[1]
    rows = [
        {"measure": measure, **row, "clear": row["low"] > 0 or row["high"] < 0}
        for measure in MEASURES
        for row, *_ in _mean_rows(
            tables[0],
            differences[measure].to_numpy(),
            confidence,
            (-1.0, 1.0),
            "difference",
        )
    ]
    return pd.DataFrame(rows)


def across(metrics: Mapping[str, pd.DataFrame], by: str) -> pd.DataFrame:
    """Build a table of the absolute robustness of models (rows) in every part (columns).

    Parameters
    ----------
    metrics : mapping of str to pandas.DataFrame
        Metrics by model.
    by : {"step", "group", "task", "strength", "dimension"}
        Breakdown into parts.

    Raises
    ------
    UnknownNameError
        There is no such breakdown.
    InputError
        A model has no score in some part.
    """
    table = pd.DataFrame(
        {
            model: rows["value"]
            for model, rows in rows_by(metrics, by, "absolute").items()
        }
    ).T
    if not table.size or table.isna().to_numpy().any():
        raise InputError(
            f"not all models have absolute scores in every {by}; compare models with the same items"
        )
    return table


def rows_by(
    metrics: Mapping[str, pd.DataFrame], by: str, measure: str
) -> dict[str, pd.DataFrame]:
    """Select one breakdown and measure of each model, indexed by the names of parts."""
    if by not in BREAKDOWNS:
        raise unknown_name("breakdown", by, BREAKDOWNS)
    if measure not in MEASURES:
        raise unknown_name("measure", measure, MEASURES)
    return {
        model: table[
            (table["measure"] == measure) & (table["breakdown"] == by)
        ].set_index("name")
        for model, table in metrics.items()
    }


@cache
def published() -> pd.DataFrame:
    """Read the paper's Table 3: robustness of 20 models by task and strength.

    Columns model, measure, name ("MCQ-low" to "CAP-high", "overall"), value (text, as printed),
    note.
    """
    table = read_packaged_table("psyprobe.tasks.r_bench", "rbench_published.csv")
    table = table[table["table"] == "3"].rename(columns={"score": "value"})
    cell = table["task"] + "-" + table["strength"]
    table["name"] = cell.where(table["breakdown"] != "overall", "overall")
    return table[["model", "measure", "name", "value", "note"]]


def beside_published(metrics: pd.DataFrame, model: str) -> pd.DataFrame:
    """Compare a model's robustness with the printed one, cell by cell.

    Parameters
    ----------
    metrics : pandas.DataFrame
        Output of `rbench_metrics`.
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
    measured = metrics[metrics["breakdown"].isin(["cell", "overall"])]
    table = printed_rows(published(), model, "R-Bench")
    table = table.rename(columns={"value": "paper"})
    table = table.merge(measured[["measure", "name", "value"]], on=["measure", "name"])
    table["agrees"] = [
        round_half_up(value, 4) == f"{float(paper):.4f}"
        for value, paper in zip(table["value"], table["paper"], strict=True)
    ]
    return table[["measure", "name", "paper", "value", "agrees", "note"]]


def rbench_table(metrics: Mapping[str, pd.DataFrame], format: str = "text") -> str:
    """Lay out robustness like the paper's Table 3, with printed values below.

    Parameters
    ----------
    metrics : mapping of str to pandas.DataFrame
        Metrics as from `rbench_metrics`, by model. A model of the paper gets its printed values.
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
    tables = []
    for measure in MEASURES:
        rows = [["", *_CELLS, "overall [interval]"]]
        notes: list[str] = []
        for model, table in metrics.items():
            cells = table[table["breakdown"].isin(["cell", "overall"])]
            values = cells[cells["measure"] == measure].set_index("name")
            if len(values):
                rows.append(_format_measured_row(model, values))
                notes += _item_notes(model, values.loc["overall"])
                printed_row, printed_notes = _printed_row(model, table, measure)
                rows += printed_row
                notes += printed_notes
        if len(rows) > 1:
            title = f"{measure.capitalize()} robustness"
            tables.append(f"{title}\n{lay_out(format, rows, notes)}")
    if tables:
        tables.append(_POPULATION)
    return "\n\n".join(tables)


def _format_measured_row(model: str, values: pd.DataFrame) -> list[str]:
    """Format one model's scores by cell, and overall with its interval, as a table row."""
    overall = values.loc["overall"]
    cells = [
        f"{values.loc[name, 'value']:.4f}" if name in values.index else "-"
        for name in _CELLS
    ]
    interval = f"{overall['value']:.4f} [{overall['low']:.3f}, {overall['high']:.3f}]"
    return [printable(model), *cells, interval]


def _item_notes(model: str, overall: pd.Series) -> list[str]:
    """Note items that nothing can answer right, and simulated ones."""
    notes = []
    if overall["odd_keys"]:
        notes.append(
            f"{model}: {overall['odd_keys']} item has a key that is none of its options."
        )
    if overall.get("simulated"):
        notes.append(
            f"{model}: {overall['simulated']} items are simulated where R-Bench photographed them."
        )
    return notes


def _printed_row(
    model: str, metrics: pd.DataFrame, measure: str
) -> tuple[list[list[str]], list[str]]:
    """Build a model's table row as printed in the paper, if it is there, and notes."""
    name, notes = find_printed(model, published())
    if name is None:
        return [], notes
    comparison = beside_published(metrics, name)
    printed = comparison[comparison["measure"] == measure].set_index("name")
    cells = dict.fromkeys([*_CELLS, "overall"], "-")
    cells |= (printed["paper"] + np.where(printed["agrees"], "", "*")).to_dict()
    if "-" in cells.values():
        # The paper's overall value is of all cells, and beside fewer it says nothing.
        cells["overall"] = "-"
    notes = [
        f"{model}: {note}." for note in printed["note"].unique() if "order" in note
    ]
    return [[printed_label(model, name), *cells.values()]], notes
