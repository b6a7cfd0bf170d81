"""The tables of the MVP-Bench paper, with its printed values beside those of a model's replies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files

import pandas as pd

from psyprobe.analysis.score import check_format
from psyprobe.errors import unknown_name
from psyprobe.files.terminal import lay_out, printable
from psyprobe.tasks.tables import all_metrics

_TITLES = {
    "2": "Table 2: yes/no questions and cross-image multiple choice, by level (per cent)",
    "3": "Table 3: natural and manipulated images, and single-image multiple choice (per cent)",
    "5": "Table 5: yes/no questions right on both images, by low-level category (per cent)",
    "": "Beside the paper's: what an observer that always says the same gets half of (per cent)",
}
_SHORT = {"yes/no": "", "single-image MCQ": "SI ", "cross-image MCQ": "CI "}
#: Metrics of one cell of the paper, the usual one first.
_VANILLA = ("VanillaEval (rotation 1)", "VanillaEval", "VanillaEval (first in file)")

_RUNS = {
    "VanillaEval (rotation 1)": "the first rotation",
    "VanillaEval": "the main run",
    "VanillaEval (first in file)": "the rotation that stands first in the file",
}


@cache
def published() -> pd.DataFrame:
    """Tables 2, 3 and 5: table, model, task, level, metric and value, as text with the printed digits."""
    return _data("mvp_published.csv")


@cache
def categories() -> pd.DataFrame:
    """The 13 low-level categories, by code, and the blocks of image pairs that belong to them, by their numbers."""
    return _data("mvp_categories.csv").astype({"first_pair": int, "last_pair": int})


def with_categories(table: pd.DataFrame) -> pd.DataFrame:
    """A question table of the release with the low-level category of each row.

    Parameters
    ----------
    table : pandas.DataFrame
        With a column pair; a column category that is there already is kept.

    Returns
    -------
    pandas.DataFrame
        With a column category; the rows of pairs that are in no block, as in a set of one's own, have none.
    """
    if "category" in table:
        return table
    blocks = categories()
    code = pd.Series(pd.NA, index=table.index, dtype="object")
    for name, first, last in zip(blocks["code"], blocks["first_pair"], blocks["last_pair"], strict=True):
        code[table["pair"].between(first, last)] = name
    return table.assign(category=code)


def beside_published(metrics: pd.DataFrame, model: str) -> pd.DataFrame:
    """A model's metrics beside the printed ones, cell by cell.

    Parameters
    ----------
    metrics : pandas.DataFrame
        As `mvp_metrics` gives them.
    model : str
        A model of the paper.

    Returns
    -------
    pandas.DataFrame
        Columns table, task, level, metric, paper (text), value, agrees ("rounded", "cut off", "mean of rounded": the
        paper's mean of two values that were rounded before; "" where it does not) and reason.

    Raises
    ------
    UnknownNameError
        The paper has no such model.
    """
    printed = published()
    if model not in set(printed["model"]):
        raise unknown_name("model of the MVP-Bench paper", model, sorted(set(printed["model"])))
    values = {
        (task, level, metric): value
        for task, level, metric, value in metrics[["task", "level", "metric", "value"]].itertuples(index=False)
    }
    rows = []
    for table, task, level, metric, paper in printed[printed["model"] == model][
        ["table", "task", "level", "metric", "value"]
    ].itertuples(index=False):
        names = _VANILLA if metric == "VanillaEval" else (metric,)
        found = [(name, values[task, level, name]) for name in names if (task, level, name) in values]
        if not found:
            continue
        agreeing = [(name, value, how) for name, value in found if (how := _agrees(paper, values, task, level, name))]
        name, value, how = agreeing[0] if agreeing else (*found[0], "")
        reason = "" if how else _reason(model, task, level, metric)
        rows.append((table, task, level, name, paper, value, how, reason))
    return pd.DataFrame(rows, columns=["table", "task", "level", "metric", "paper", "value", "agrees", "reason"])


def _agrees(paper: str, values: Mapping[tuple[str, str, str], float], task: str, level: str, metric: str) -> str:
    digits = len(paper.partition(".")[2])
    step = 10**digits
    value = values[task, level, metric]
    # Half up, as people round; the small term keeps a binary fraction from falling under its decimal half.
    if f"{int(value * step + 0.5 + 1e-9) / step:.{digits}f}" == paper:
        return "rounded"
    if f"{int(value * step + 1e-9) / step:.{digits}f}" == paper:
        return "cut off"
    parts = {"aAcc": ("aAcc_N", "aAcc_M"), "iAcc_N+M": ("iAcc_N", "iAcc_M")}.get(metric, ())
    if parts and all((task, level, part) in values for part in parts):
        rounded = [int(values[task, level, part] * step + 0.5 + 1e-9) for part in parts]
        if f"{int(sum(rounded) / 2 + 0.5) / step:.{digits}f}" == paper:
            return "mean of rounded"
    return ""


def _reason(model: str, task: str, level: str, metric: str) -> str:
    for row in _data("mvp_differences.csv").itertuples(index=False):
        pairs = zip((row.model, row.task, row.level, row.metric), (model, task, level, metric), strict=True)
        if all(pattern in ("*", value) for pattern, value in pairs):
            return str(row.reason)
    return "not known"


def mvp_tables(metrics: Mapping[str, pd.DataFrame], format: str = "text") -> str:
    """Metrics in the form of the paper's Tables 2, 3 and 5, printed values under those of a model of the paper.

    Parameters
    ----------
    metrics : mapping of str to pandas.DataFrame
        By model, as `mvp_metrics` gives them. A name that the paper has is put beside its printed values.
    format : {"text", "markdown", "latex", "csv", "json"}
        "csv" and "json" hold every metric with all digits, numerators, denominators and intervals.

    Returns
    -------
    str
        A star marks a printed value that differs, and a line under the table says why.

    Raises
    ------
    UnknownNameError
        There is no such format.
    """
    check_format(format)
    if format in ("csv", "json"):
        return all_metrics(metrics, format)
    texts = []
    for table in _TITLES:
        cells = _cells(table)
        rows = [["", *[_heading(*cell) for cell in cells]]]
        notes: list[str] = []
        for model, values in metrics.items():
            rows.append([printable(model), *_row(values, cells)])
            if model in set(published()["model"]) and table:
                row, found = _printed(values, model, table, cells)
                rows.append(row)
                notes += found
        texts.append(f"{_TITLES[table]}\n{lay_out(format, rows, list(dict.fromkeys(notes)))}")
    return "\n\n".join(texts)


def _cells(table: str) -> list[tuple[str, str, str]]:
    if not table:
        return [("yes/no", "multi", "balanced_N"), ("yes/no", "multi", "balanced_M")]
    printed = published()
    first = printed[printed["table"] == table].drop_duplicates(["task", "level", "metric"])
    return list(first[["task", "level", "metric"]].itertuples(index=False, name=None))


def _heading(task: str, level: str, metric: str) -> str:
    name = metric.replace("Eval", "")
    return f"{_SHORT[task]}{level if metric == 'pAcc' else name if level == 'multi' else f'{name} {level}'}"


def _row(metrics: pd.DataFrame, cells: Iterable[tuple[str, str, str]]) -> list[str]:
    row = []
    for task, level, metric in cells:
        names = _VANILLA if metric == "VanillaEval" else (metric,)
        found = metrics[(metrics["task"] == task) & (metrics["level"] == level) & metrics["metric"].isin(names)]
        order = {name: i for i, name in enumerate(names)}
        found = found.sort_values("metric", key=lambda column: column.map(order))
        row.append(f"{found['value'].iloc[0]:.2f}" if len(found) else "-")
    return row


def _shown(metrics: pd.DataFrame, task: str, level: str) -> str:
    there = set(metrics[(metrics["task"] == task) & (metrics["level"] == level)]["metric"])
    return next((name for name in _VANILLA if name in there), "")


def _printed(
    metrics: pd.DataFrame, model: str, table: str, cells: Iterable[tuple[str, str, str]]
) -> tuple[list[str], list[str]]:
    beside = beside_published(metrics, model)
    beside = beside[beside["table"] == table]
    printed = published()
    printed = printed[(printed["model"] == model) & (printed["table"] == table)]
    row, notes = ["  as printed"], []
    for task, level, metric in cells:
        value = printed[(printed["task"] == task) & (printed["level"] == level) & (printed["metric"] == metric)][
            "value"
        ]
        base = beside["metric"].str.partition(" ")[0]
        found = beside[(beside["task"] == task) & (beside["level"] == level) & (base == metric)]
        differs = len(found) == 1 and not found["agrees"].iloc[0]
        row.append(f"{value.iloc[0]}{'*' if differs else ''}" if len(value) else "-")
        if differs:
            notes.append(f"* {model}, {_heading(task, level, metric)}: {found['reason'].iloc[0]}.")
        elif len(found) and metric == "VanillaEval" and found["metric"].iloc[0] != _shown(metrics, task, level):
            run = _RUNS[found["metric"].iloc[0]]
            notes.append(f"{model}, {_heading(task, level, metric)}: the printed value is that of {run}.")
        elif len(found) and found["agrees"].iloc[0] != "rounded":
            notes.append(f"{model}, {_heading(task, level, metric)}: printed as {found['agrees'].iloc[0]}.")
    return row, notes


def _data(name: str) -> pd.DataFrame:
    with files("psyprobe.tasks.mvp_bench").joinpath("data", name).open(encoding="utf-8") as file:
        return pd.read_csv(file, comment="#", dtype=str, keep_default_na=False)
