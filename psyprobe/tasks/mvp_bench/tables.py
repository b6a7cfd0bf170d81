"""The tables of the MVP-Bench paper, with its printed values beside those of a model's replies, and a figure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import pandas as pd

from psyprobe.analysis.table import check_format
from psyprobe.errors import InputError, unknown_name
from psyprobe.files.tables import lay_out
from psyprobe.files.terminal import printable
from psyprobe.plotting import axes
from psyprobe.tasks.tables import all_metrics

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Of a metric: task, level and name.
Cell = tuple[str, str, str]

_TITLES = {
    "2": "Table 2: yes/no questions and cross-image multiple choice, by level (per cent)",
    "3": "Table 3: natural and manipulated images, and single-image multiple choice (per cent)",
    "5": "Table 5: yes/no questions right on both images, by low-level category (per cent)",
    "": "Beside the paper's: what an observer that always says the same gets half of (per cent)",
}
_SHORT = {"yes/no": "", "single-image MCQ": "SI ", "cross-image MCQ": "CI "}
#: Metrics of one cell of the paper, the usual one first, and what they are of.
_VANILLA = {
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
    values, rows = _values(metrics), []
    for row in printed[printed["model"] == model].itertuples():
        found = [(cell, _agrees(row.value, values, *cell)) for cell in _found(values, row.task, row.level, row.metric)]
        if found:
            cell, how = next((each for each in found if each[1]), found[0])
            reason = "" if how else _reason(model, row.task, row.level, row.metric)
            rows.append((row.table, *cell, row.value, values[cell], how, reason))
    return pd.DataFrame(rows, columns=["table", "task", "level", "metric", "paper", "value", "agrees", "reason"])


def _values(table: pd.DataFrame) -> dict[Cell, Any]:
    cells = table[["task", "level", "metric"]].itertuples(index=False, name=None)
    return dict(zip(cells, table["value"], strict=True))


def _found(values: Mapping[Cell, Any], task: str, level: str, metric: str) -> list[Cell]:
    """What a cell of the paper may be the value of, the usual one first."""
    names = _VANILLA if metric == "VanillaEval" else (metric,)
    return [(task, level, name) for name in names if (task, level, name) in values]


def _agrees(paper: str, values: Mapping[Cell, Any], task: str, level: str, metric: str) -> str:
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
        for model, found in metrics.items():
            values = _values(found)
            there = [next(iter(_found(values, *cell)), None) for cell in cells]
            rows.append([printable(model), *("-" if cell is None else f"{values[cell]:.2f}" for cell in there)])
            if model in set(published()["model"]) and table:
                row, remarks = _printed(found, model, table, cells)
                rows.append(row)
                notes += remarks
        texts.append(f"{_TITLES[table]}\n{lay_out(format, rows, list(dict.fromkeys(notes)))}")
    return "\n\n".join(texts)


def _cells(table: str) -> list[Cell]:
    if not table:
        return [("yes/no", "multi", "balanced_N"), ("yes/no", "multi", "balanced_M")]
    printed = published()
    first = printed[printed["table"] == table].drop_duplicates(["task", "level", "metric"])
    return list(first[["task", "level", "metric"]].itertuples(index=False, name=None))


def _heading(task: str, level: str, metric: str) -> str:
    name = metric.replace("Eval", "")
    return f"{_SHORT[task]}{level if metric == 'pAcc' else name if level == 'multi' else f'{name} {level}'}"


def _printed(metrics: pd.DataFrame, model: str, table: str, cells: Iterable[Cell]) -> tuple[list[str], list[str]]:
    values, beside, printed = _values(metrics), beside_published(metrics, model), published()
    beside = beside[beside["table"] == table]
    compared = {(each.task, each.level, each.metric.partition(" ")[0]): each for each in beside.itertuples()}
    papers = _values(printed[(printed["model"] == model) & (printed["table"] == table)])
    row, notes = ["  as printed"], []
    for cell in cells:
        found, heading = compared.get(cell), f"{model}, {_heading(*cell)}"
        differs = found is not None and not found.agrees
        row.append(f"{papers[cell]}{'*' if differs else ''}" if cell in papers else "-")
        if found is None:
            continue
        if differs:
            notes.append(f"* {heading}: {found.reason}.")
        elif cell[2] == "VanillaEval" and found.metric != _found(values, *cell)[0][2]:
            notes.append(f"{heading}: the printed value is that of {_VANILLA[found.metric]}.")
        elif found.agrees != "rounded":
            notes.append(f"{heading}: printed as {found.agrees}.")
    return row, notes


def _data(name: str) -> pd.DataFrame:
    with files("psyprobe.tasks.mvp_bench").joinpath("data", name).open(encoding="utf-8") as file:
        return pd.read_csv(file, comment="#", dtype=str, keep_default_na=False)


#: What can be put beside each other: label, task, level, metric. Colours of Okabe and Ito (2008), and a mark each.
CONTRASTS: Mapping[str, tuple[tuple[str, Cell], ...]] = {
    "level": (("low level", ("yes/no", "low", "qAcc")), ("high level", ("yes/no", "high", "qAcc"))),
    "image": (("natural", ("yes/no", "multi", "aAcc_N")), ("manipulated", ("yes/no", "multi", "aAcc_M"))),
    "image_balanced": (
        ("natural", ("yes/no", "multi", "balanced_N")),
        ("manipulated", ("yes/no", "multi", "balanced_M")),
    ),
    "cross": (
        ("low level", ("cross-image MCQ", "low", "CircularEval")),
        ("high level", ("cross-image MCQ", "high", "CircularEval")),
    ),
}
_STYLES = (("#0072B2", "o"), ("#D55E00", "s"))
_CONTRAST_TITLES = {
    "level": "Yes/no questions right on both images (qAcc)",
    "image": "Single yes/no questions (aAcc)",
    "image_balanced": "Single yes/no questions, mean over both keys",
    "cross": "Cross-image multiple choice (CircularEval)",
}


def plot_mvp(metrics: Mapping[str, pd.DataFrame], contrast: str = "level", ax: Axes | None = None) -> Axes:
    """Draw two accuracies of each model beside each other.

    Parameters
    ----------
    metrics : mapping of str to pandas.DataFrame
        By model, as `mvp_metrics` gives them.
    contrast : {"level", "image", "image_balanced", "cross"}
        Low against high level, natural against manipulated images (as published, or balanced over the keys, which
        differ between both kinds), or the levels of cross-image multiple choice.
    ax : matplotlib.axes.Axes, optional
        Where to draw; without it, on a new pyplot figure.

    Returns
    -------
    matplotlib.axes.Axes
        One row a model, with 95 % intervals as the metrics have them.

    Raises
    ------
    UnknownNameError
        There is no such contrast.
    InputError
        No model has both metrics.
    """
    if contrast not in CONTRASTS:
        raise unknown_name("contrast of MVP-Bench", contrast, CONTRASTS)
    cells = CONTRASTS[contrast]
    rows = []
    for model, table in metrics.items():
        by_cell = table.set_index(["task", "level", "metric"])
        if all(cell in by_cell.index for _, cell in cells):
            rows.append((model, [by_cell.loc[cell] for _, cell in cells]))
    if not rows:
        raise InputError(f"no model has the metrics of {contrast!r}; run the questions that they need")
    if ax is None:
        import matplotlib.pyplot as plt

        ax = plt.figure(figsize=(5.2, 1.4 + 0.36 * len(rows)), layout="constrained").add_subplot()
    for i, (label, (colour, mark)) in enumerate(zip((cell[0] for cell in cells), _STYLES, strict=True)):
        for y, (_, found) in enumerate(rows):
            one, offset = found[i], 0.13 * (2 * i - 1)
            ax.plot([one["low"], one["high"]], [y + offset] * 2, color=colour, linewidth=1.4, solid_capstyle="butt")
            shown = label if y == 0 else None
            ax.plot(one["value"], y + offset, mark, color=colour, markersize=5, label=shown, clip_on=False)
    ax.set_yticks(range(len(rows)), [axes.printable(model) for model, _ in rows])
    ax.set_ylim(len(rows) - 0.5, -0.5)
    ax.set(xlim=(0, 100), xlabel="Right (%)")
    ax.set_title(_CONTRAST_TITLES[contrast], fontsize=9, loc="left")
    ax.grid(axis="x", color="0.9", linewidth=0.6)
    ax.set_axisbelow(True)
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.tick_params(axis="y", length=0)
    ax.legend(frameon=False, fontsize="small", ncols=2, loc="lower left", bbox_to_anchor=(0, 1.08))
    return ax
