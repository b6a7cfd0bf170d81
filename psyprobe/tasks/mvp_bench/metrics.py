"""Compute the metrics of MVP-Bench with intervals over pairs, and lay out the paper's tables.

Every metric is a sum of numerators over a sum of denominators, both of which belong to image pairs;
so all of them are resampled at once by weighting the pairs. Tables show a model's values with the
printed ones beside them, where there are any; a figure puts two metrics of each model beside each
other.

References
----------
Li et al. (2024). MVP-Bench. Findings of EMNLP, section 4; the restrictions of iAcc and mAcc as in
the released script.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from psyprobe._typing import FloatArray
from psyprobe.analysis.intervals import bounded_interval, check_resampling
from psyprobe.analysis.score import check_format
from psyprobe.errors import InputError
from psyprobe.files.terminal import lay_out, printable
from psyprobe.plotting import axes
from psyprobe.tasks.tables import (
    all_metrics,
    find_printed,
    printed_label,
    printed_rows,
    read_packaged_table,
    require_columns,
    round_half_up,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Task, level and name of a metric.
Cell = tuple[str, str, str]
_CELL = ["task", "level", "metric"]
_COLUMNS = (
    *("question_id", "pair", "kind", "task", "level", "question", "answer"),
    *("run", "mcq", "rotation", "response"),
)
_PACKAGE = "psyprobe.tasks.mvp_bench"
_TASKS = {"single_mcq": "single-image MCQ", "cross_mcq": "cross-image MCQ"}
#: The paper's name for all levels together.
ALL_LEVELS = "multi"


def mvp_metrics(
    table: pd.DataFrame,
    *,
    confidence: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> pd.DataFrame:
    """Compute all MVP-Bench metrics that a table of answers allows.

    Parameters
    ----------
    table : pandas.DataFrame
        A question table with a column response: "yes", "no", a letter, or "" for what no rule could
        read, which is wrong. A column category (a low-level code such as "B1") adds pAcc. Order of
        rows and further columns do not matter, and rows that are there twice count once.
    confidence : float
        Confidence of the intervals, in (0, 1).
    resamples : int
        Number of bootstrap samples of image pairs, at least 100.
    seed : int
        Seed of the resampling.

    Returns
    -------
    pandas.DataFrame
        Columns task, level, metric, value (per cent), numerator, denominator, low, high (per cent),
        unread (how many of the answers no rule could read). Balanced accuracies have no numerator:
        they are the mean over both keys.

    Raises
    ------
    InputError
        A column is missing, a question has two different answers, or there is nothing to score.

    Notes
    -----
    aAcc: single questions. qAcc: questions that are right on both images. iAcc: images, with more
    than one yes/no question, of which all are right. mAcc: pairs, with more than three yes/no rows,
    of which all are right. VanillaEval: multiple choice in one presentation, that of the main run,
    of the first rotation, or (with a column place) of the rotation that stands first in the
    prediction file, which is another one where replies were collected as they came. CircularEval:
    in all rotations. pAcc: qAcc of a category. The interval is Wilson's, of as many answers as have
    the spread of samples that draw whole pairs.
    """
    answers = checked_answers(table)
    pairs, draws = _bootstrap_pairs(answers, confidence, resamples, seed)
    rows: list[tuple[object, ...]] = []
    for cell, counted in ratios(answers):
        sums = _sum_by_pair(counted, pairs)
        right, count, unread = (int(total) for total in sums.sum())
        interval = _interval(draws, [sums], confidence)
        rows.append((*cell, 100 * right / count, right, count, *interval, unread))
    yes_no = answers[answers["task"] == "yes_no"]
    for kind in ("N", "M"):
        group = yes_no[yes_no["kind"] == kind]
        if group["answer"].nunique() == 2:
            # Accuracy on either key, averaged: what an observer that always says the same gets 50 %
            # of.
            keys = [
                _sum_by_pair(group[group["answer"] == key], pairs)
                for key in ("yes", "no")
            ]
            value = 100 * float(np.mean([_accuracy(sums) for sums in keys]))
            interval = _interval(draws, keys, confidence)
            cell = ("yes/no", ALL_LEVELS, f"balanced_{kind}")
            rows.append(
                (*cell, value, None, len(group), *interval, int(group["unread"].sum()))
            )
    names = ["value", "numerator", "denominator", "low", "high", "unread"]
    metrics = pd.DataFrame(rows, columns=[*_CELL, *names])
    return metrics.astype({"numerator": "Int64"})


def checked_answers(table: pd.DataFrame) -> pd.DataFrame:
    """Drop repeated answers, and add columns right, asked and unread."""
    require_columns(table, _COLUMNS, "the table")
    answers = table[[name for name in (*_COLUMNS, "category") if name in table]]
    if "place" in table:
        places = table.groupby(["run", "question_id"])["place"]
        answers = answers.assign(place=places.transform("min"))
    answers = answers.drop_duplicates(ignore_index=True)
    duplicates = answers["question_id"][answers[["run", "question_id"]].duplicated()]
    if len(duplicates):
        raise InputError(
            f"question {duplicates.iloc[0]} has two different answers; keep one of them"
        )
    return answers.assign(
        right=(answers["response"] == answers["answer"]).astype(int),
        asked=1,
        unread=(answers["response"] == "").astype(int),
    )


def ratios(answers: pd.DataFrame) -> Iterator[tuple[Cell, pd.DataFrame]]:
    """Iterate over all metrics that are ratios, each with the answers counted.

    The table has one row for each thing counted: pair, right (0 or 1), asked (1), unread.
    """
    for cell, counted in (
        *_group_yes_no(answers[answers["task"] == "yes_no"]),
        *_group_choices(answers),
    ):
        if len(counted):
            yield cell, counted


def _group_yes_no(answers: pd.DataFrame) -> Iterator[tuple[Cell, pd.DataFrame]]:
    """Iterate over the table cells of yes/no accuracy, each with the answers counted."""
    questions = _all_right(answers, ["pair", "question", "level"], at_least=2)
    of_kind = {kind: answers[answers["kind"] == kind] for kind in ("N", "M")}
    for level in ("low", "high", ALL_LEVELS):
        yield ("yes/no", level, "qAcc"), _at_level(questions, level)
        yield ("yes/no", level, "aAcc"), _at_level(answers, level)
        for kind, group in of_kind.items():
            yield ("yes/no", level, f"aAcc_{kind}"), _at_level(group, level)
    images = _all_right(answers, ["pair", "kind"], at_least=2)
    for kind in of_kind:
        yield ("yes/no", ALL_LEVELS, f"iAcc_{kind}"), images[images["kind"] == kind]
    yield ("yes/no", ALL_LEVELS, "iAcc_N+M"), images
    yield ("yes/no", ALL_LEVELS, "mAcc"), _all_right(answers, ["pair"], at_least=4)
    if "category" in answers and len(answers):
        coded = _all_right(answers, ["pair", "question", "category"], at_least=2)
        for codes in (coded["category"], coded["category"].str[0]):
            for code, group in coded.groupby(codes):
                yield ("yes/no", str(code), "pAcc"), group


def _group_choices(answers: pd.DataFrame) -> Iterator[tuple[Cell, pd.DataFrame]]:
    """Iterate over the table cells of multiple choice, each with the answers counted."""
    for task, label in _TASKS.items():
        of_task = answers[answers["task"] == task]
        rotations = of_task[of_task["run"] == "circular"]
        counted = {
            "VanillaEval": of_task[of_task["run"] == "main"],
            "VanillaEval (rotation 1)": rotations[rotations["rotation"] == 1],
        }
        if "place" in rotations and len(rotations):
            first = rotations.groupby("mcq")["place"].idxmin()
            counted["VanillaEval (first in file)"] = rotations.loc[first]
        counted["CircularEval"] = _all_right(
            rotations, ["pair", "mcq", "level"], at_least=1
        )
        for level in ("low", "high"):
            for metric, group in counted.items():
                yield (label, level, metric), _at_level(group, level)


def _at_level(group: pd.DataFrame, level: str) -> pd.DataFrame:
    """Select the answers of one level, or all."""
    return group if level == ALL_LEVELS else group[group["level"] == level]


def _all_right(group: pd.DataFrame, keys: list[str], at_least: int) -> pd.DataFrame:
    """Count groups of at least so many rows as right if all their rows are."""
    table = group.groupby(keys, as_index=False).agg(
        right=("right", "min"), rows=("right", "size"), unread=("unread", "sum")
    )
    return table[table["rows"] >= at_least].assign(asked=1)


def _bootstrap_pairs(
    answers: pd.DataFrame, confidence: float, resamples: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """List the image pairs, and draw how often each is in every bootstrap sample."""
    check_resampling(confidence, resamples)
    pairs = np.unique(answers["pair"])
    even = np.full(len(pairs), 1 / len(pairs))
    return pairs, np.random.default_rng(seed).multinomial(
        len(pairs), even, size=resamples
    )


def _sum_by_pair(counted: pd.DataFrame, pairs: np.ndarray) -> pd.DataFrame:
    """Sum the right, asked and unread answers of each image pair."""
    sums = counted.groupby("pair")[["right", "asked", "unread"]].sum()
    return sums.reindex(pairs, fill_value=0)


def _accuracy(sums: pd.DataFrame) -> float:
    """Compute the share of right answers from sums."""
    return float(sums["right"].sum() / sums["asked"].sum())


def _resampled_accuracies(draws: np.ndarray, sums: pd.DataFrame) -> FloatArray:
    """Compute the share of right answers in each bootstrap draw of image pairs."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(
            draws @ sums["right"].to_numpy() / (draws @ sums["asked"].to_numpy())
        )


def _interval(
    draws: np.ndarray, parts: list[pd.DataFrame], confidence: float
) -> tuple[float | None, float | None]:
    """Compute an interval, in per cent, of an accuracy averaged over parts."""
    samples = np.mean([_resampled_accuracies(draws, sums) for sums in parts], axis=0)
    # A sample without any of the few pairs of a category has no value.
    finite = samples[np.isfinite(samples)]
    if not finite.size:
        return None, None
    value = float(np.mean([_accuracy(sums) for sums in parts]))
    pairs = min(int((sums["asked"] > 0).sum()) for sums in parts)
    low, high = bounded_interval(
        value, _standard_error(finite, pairs), pairs, confidence
    )
    return 100 * low, 100 * high


def _standard_error(samples: FloatArray, pairs: int) -> float:
    """Estimate a standard error from bootstrap samples of so many pairs."""
    return float(samples.std() * np.sqrt(pairs / max(pairs - 1, 1)))


def constant_replies(questions: pd.DataFrame, answer: str) -> pd.DataFrame:
    """Build the answers of someone who always says the same.

    Parameters
    ----------
    questions : pandas.DataFrame
        A question table.
    answer : {"yes", "no", "A", "B", "C", "D", "E", "key"}
        The constant answer; "key" is the right answer of each question.

    Returns
    -------
    pandas.DataFrame
        The yes/no questions or the multiple-choice ones, whichever the answer is one of, with a
        column response.
    """
    if answer == "key":
        return questions.assign(response=questions["answer"])
    yes_no = questions["task"] == "yes_no"
    return questions[yes_no if answer in ("yes", "no") else ~yes_no].assign(
        response=answer
    )


def compare_models(
    first: pd.DataFrame,
    second: pd.DataFrame,
    *,
    confidence: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> pd.DataFrame:
    """Compare two models in every MVP-Bench metric that both have.

    Parameters
    ----------
    first, second : pandas.DataFrame
        Answers to the same questions, as for `mvp_metrics`.
    confidence, resamples, seed
        As for `mvp_metrics`.

    Returns
    -------
    pandas.DataFrame
        Columns task, level, metric, difference (first minus second, points of per cent), low, high,
        and p: how often a resampled difference falls on the other side of 0, twice and at most 1.

    Raises
    ------
    InputError
        The two did not answer the same questions.

    Notes
    -----
    Both models are resampled by the same pairs, so what makes a pair hard for both cancels.
    """
    tables = [checked_answers(table) for table in (first, second)]
    questions = [
        set(zip(table["run"], table["question_id"], strict=True)) for table in tables
    ]
    if unpaired := questions[0] ^ questions[1]:
        raise InputError(
            f"{len(unpaired)} questions were answered by one of the two models alone; compare what "
            "both answered"
        )
    pairs, draws = _bootstrap_pairs(tables[0], confidence, resamples, seed)
    sums = [
        {cell: _sum_by_pair(counted, pairs) for cell, counted in ratios(table)}
        for table in tables
    ]
    rows = []
    for cell, first_sums in sums[0].items():
        second_sums = sums[1][cell]
        first_samples = _resampled_accuracies(draws, first_sums)
        samples = 100 * (first_samples - _resampled_accuracies(draws, second_sums))
        samples = samples[np.isfinite(samples)]
        difference = 100 * (_accuracy(first_sums) - _accuracy(second_sums))
        count = int((first_sums["asked"] > 0).sum())
        error = _standard_error(samples, count)
        low, high = bounded_interval(
            difference, error, count, confidence, (-100.0, 100.0)
        )
        p = min(1.0, 2 * float(min((samples <= 0).mean(), (samples >= 0).mean())))
        rows.append((*cell, difference, low, high, p))
    return pd.DataFrame(rows, columns=[*_CELL, "difference", "low", "high", "p"])


_TITLES = {
    "2": "Table 2: yes/no questions and cross-image multiple choice, by level (per cent)",
    "3": "Table 3: natural and manipulated images, and single-image multiple choice (per cent)",
    "5": "Table 5: yes/no questions right on both images, by low-level category (per cent)",
    "": "Beside the paper's: what an observer that always says the same gets half of (per cent)",
}
_SHORT = {"yes/no": "", "single-image MCQ": "SI ", "cross-image MCQ": "CI "}
#: Metrics that a printed VanillaEval may be, the usual one first, and the presentation of each.
_VANILLA = {
    "VanillaEval (rotation 1)": "the first rotation",
    "VanillaEval": "the main run",
    "VanillaEval (first in file)": "the rotation that stands first in the file",
}


@cache
def published() -> pd.DataFrame:
    """Read the paper's Tables 2, 3 and 5: table, model, task, level, metric and value."""
    return read_packaged_table(_PACKAGE, "mvp_published.csv")


@cache
def categories() -> pd.DataFrame:
    """Read the 13 low-level categories with the image pairs that belong to them."""
    table = read_packaged_table(_PACKAGE, "mvp_categories.csv")
    return table.astype({"first_pair": int, "last_pair": int})


def with_categories(table: pd.DataFrame) -> pd.DataFrame:
    """Add the low-level category of each row to a table of released questions.

    Parameters
    ----------
    table : pandas.DataFrame
        A question table; a column category that is there already is kept.

    Returns
    -------
    pandas.DataFrame
        The table with a column category; rows of pairs that are in no block, as in a custom set,
        have none.
    """
    if "category" in table:
        return table
    category = pd.Series(pd.NA, index=table.index, dtype="object")
    for block in categories().itertuples():
        category[table["pair"].between(block.first_pair, block.last_pair)] = block.code
    return table.assign(category=category)


def beside_published(metrics: pd.DataFrame, model: str) -> pd.DataFrame:
    """Compare a model's metrics with those printed in the paper, cell by cell.

    Parameters
    ----------
    metrics : pandas.DataFrame
        Output of `mvp_metrics`.
    model : str
        A model of the paper.

    Returns
    -------
    pandas.DataFrame
        Columns table, task, level, metric, paper (text), value, agrees ("rounded", "cut off", "mean
        of rounded": the paper's mean of two values that were rounded before; "" where it does not)
        and reason.

    Raises
    ------
    UnknownNameError
        The paper has no such model.
    """
    values = _values_by_cell(metrics)
    rows = []
    for row in printed_rows(published(), model, "MVP-Bench").itertuples():
        printed_cell = (row.task, row.level, row.metric)
        agreements = [
            (_agreement(row.value, values, cell), cell)
            for cell in _candidates(values, printed_cell)
        ]
        if agreements:
            agreement, cell = next(filter(itemgetter(0), agreements), agreements[0])
            reason = "" if agreement else _reason(model, printed_cell)
            rows.append((row.table, *cell, row.value, values[cell], agreement, reason))
    return pd.DataFrame(
        rows, columns=["table", *_CELL, "paper", "value", "agrees", "reason"]
    )


def _values_by_cell(table: pd.DataFrame) -> dict[Cell, Any]:
    """Map each cell of a table of metrics to its value."""
    cells = table[_CELL].itertuples(index=False, name=None)
    return dict(zip(cells, table["value"], strict=True))


def _candidates(values: Mapping[Cell, Any], cell: Cell) -> list[Cell]:
    """List the computed metrics that a cell of a printed table may mean, the usual one first."""
    task, level, metric = cell
    names = _VANILLA if metric == "VanillaEval" else (metric,)
    return [(task, level, name) for name in names if (task, level, name) in values]


def _agreement(paper: str, values: Mapping[Cell, Any], cell: Cell) -> str:
    """Describe how a printed value agrees with a computed one; "" if it does not."""
    task, level, metric = cell
    digits = len(paper.partition(".")[2])
    step = 10**digits
    if round_half_up(values[cell], digits) == paper:
        return "rounded"
    if f"{int(values[cell] * step + 1e-9) / step:.{digits}f}" == paper:
        return "cut off"
    name = {"aAcc": "aAcc", "iAcc_N+M": "iAcc"}.get(metric)
    cells = [(task, level, f"{name}_{kind}") for kind in ("N", "M")]
    if all(cell in values for cell in cells):
        rounded = [int(values[cell] * step + 0.5 + 1e-9) for cell in cells]
        if f"{int(sum(rounded) / 2 + 0.5) / step:.{digits}f}" == paper:
            return "mean of rounded"
    return ""


def _reason(model: str, cell: Cell) -> str:
    """Look up why a printed value differs from the computed one."""
    table = read_packaged_table(_PACKAGE, "mvp_differences.csv")
    place = np.array([model, *cell])
    patterns = table[["model", *_CELL]].to_numpy(dtype=str)
    fits = ((patterns == "*") | (patterns == place)).all(axis=1)
    return str(table["reason"][fits].iloc[0]) if fits.any() else "not known"


def mvp_tables(metrics: Mapping[str, pd.DataFrame], format: str = "text") -> str:
    """Lay out MVP-Bench metrics like the paper's tables, with printed values below.

    Parameters
    ----------
    metrics : mapping of str to pandas.DataFrame
        Output of `mvp_metrics`, by model. A name that the paper has is put beside its printed
        values.
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
    for table, title in _TITLES.items():
        cells = _cells(table)
        rows = [["", *[_heading(cell) for cell in cells]]]
        notes: dict[str, None] = {}
        for model, model_metrics in metrics.items():
            values = _values_by_cell(model_metrics)
            candidates = [_candidates(values, cell)[:1] for cell in cells]
            texts_of_cells = [
                f"{values[cell[0]]:.2f}" if cell else "-" for cell in candidates
            ]
            rows.append([printable(model), *texts_of_cells])
            if table:
                printed_rows, remarks = _printed_rows(
                    model, model_metrics, table, cells
                )
                rows += printed_rows
                notes |= dict.fromkeys(remarks)
        texts.append(f"{title}\n{lay_out(format, rows, list(notes))}")
    return "\n\n".join(texts)


def _cells(table: str) -> list[Cell]:
    """List the cells of one of the paper's tables."""
    if not table:
        return [
            ("yes/no", ALL_LEVELS, "balanced_N"),
            ("yes/no", ALL_LEVELS, "balanced_M"),
        ]
    printed = published()
    cells = printed.loc[printed["table"] == table, _CELL].drop_duplicates()
    return list(cells.itertuples(index=False, name=None))


def _heading(cell: Cell) -> str:
    """Build the short column heading of a metric."""
    task, level, metric = cell
    name = metric.replace("Eval", "")
    if metric == "pAcc":
        name = level
    elif level != ALL_LEVELS:
        name = f"{name} {level}"
    return _SHORT[task] + name


def _printed_rows(
    model: str, metrics: pd.DataFrame, table: str, cells: Iterable[Cell]
) -> tuple[list[list[str]], list[str]]:
    """Build a model's table row as printed in the paper, if it is there, and notes."""
    printed = published()
    name, notes = find_printed(model, printed)
    if name is None:
        return [], notes
    values = _values_by_cell(metrics)
    comparisons = {
        (
            compared.table,
            compared.task,
            compared.level,
            compared.metric.split(" ")[0],
        ): compared
        for compared in beside_published(metrics, name).itertuples()
    }
    papers = _values_by_cell(
        printed[(printed["model"] == name) & (printed["table"] == table)]
    )
    row = [printed_label(model, name)]
    for cell in cells:
        compared = comparisons.get((table, *cell))
        heading = f"{name}, {_heading(cell)}"
        differs = compared is not None and not compared.agrees
        row.append(f"{papers[cell]}{'*' if differs else ''}" if cell in papers else "-")
        if compared is None:
            continue
        if differs:
            notes.append(f"* {heading}: {compared.reason}.")
        elif (
            cell[2] == "VanillaEval"
            and compared.metric != _candidates(values, cell)[0][2]
        ):
            notes.append(
                f"{heading}: the printed value is that of {_VANILLA[compared.metric]}."
            )
        elif compared.agrees != "rounded":
            notes.append(f"{heading}: printed as {compared.agrees}.")
    return [row], notes


#: What the figure compares, and a colour each (Okabe and Ito 2008).
_LEVELS: Mapping[str, tuple[Cell, str]] = {
    "low level": (("yes/no", "low", "qAcc"), "#0072B2"),
    "high level": (("yes/no", "high", "qAcc"), "#D55E00"),
}


def plot_mvp(metrics: Mapping[str, pd.DataFrame], ax: Axes | None = None) -> Axes:
    """Draw the accuracy of each model in low-level and high-level questions.

    Parameters
    ----------
    metrics : mapping of str to pandas.DataFrame
        Output of `mvp_metrics`, by model.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; by default those of a new pyplot figure.

    Returns
    -------
    matplotlib.axes.Axes
        One row a model, with 95 % intervals as the metrics have them.

    Raises
    ------
    InputError
        No model has both metrics.
    """
    tables = {model: table.set_index(_CELL) for model, table in metrics.items()}
    models = [
        model
        for model, table in tables.items()
        if all(cell in table.index for cell, _ in _LEVELS.values())
    ]
    if not models:
        raise InputError(
            "no model has answered yes/no questions of both levels on both images of a pair"
        )
    ax = ax or axes.new_axes(5.2, 1.4 + 0.36 * len(models))
    offsets = (-0.13, 0.13)
    for offset, (label, (cell, colour)) in zip(offsets, _LEVELS.items(), strict=True):
        rows = pd.DataFrame([tables[model].loc[cell] for model in models])
        y = np.arange(len(models)) + offset
        ax.hlines(y, rows["low"], rows["high"], color=colour, linewidth=1.4)
        ax.plot(rows["value"], y, "o", color=colour, label=label, clip_on=False)
    ax.set_yticks(range(len(models)), [axes.printable(model) for model in models])
    ax.set_ylim(len(models) - 0.5, -0.5)
    ax.set(xlim=(0, 100), xlabel="Right (%)")
    title = "Yes/no questions right on both images (qAcc)"
    ax.set_title(title, fontsize=9, loc="left")
    ax.grid(axis="x", color="0.9", linewidth=0.6)
    ax.set_axisbelow(True)
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.tick_params(axis="y", length=0)
    ax.legend(
        frameon=False,
        fontsize="small",
        ncols=2,
        loc="lower left",
        bbox_to_anchor=(0, 1.08),
    )
    return ax
