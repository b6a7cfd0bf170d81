"""The metrics of MVP-Bench, each as right over asked with intervals over pairs, and the paper's
tables of them.

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
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from psyprobe._typing import FloatArray
from psyprobe.analysis.intervals import bounded_interval, check_resampling
from psyprobe.analysis.score import check_format
from psyprobe.errors import InputError, unknown_name
from psyprobe.files.terminal import lay_out, printable
from psyprobe.plotting import axes
from psyprobe.tasks.tables import all_metrics, near_names, printed_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Of a metric: task, level and name.
Cell = tuple[str, str, str]
_NEEDED = (
    "question_id",
    "pair",
    "kind",
    "task",
    "level",
    "question",
    "answer",
    "run",
    "mcq",
    "rotation",
    "response",
)
_TASKS = {"single_mcq": "single-image MCQ", "cross_mcq": "cross-image MCQ"}
#: The paper's name of all levels together.
ALL_LEVELS = "multi"


def mvp_metrics(
    table: pd.DataFrame, *, confidence: float = 0.95, resamples: int = 2000, seed: int = 0
) -> pd.DataFrame:
    """All metrics that the answers of a table allow.

    Parameters
    ----------
    table : pandas.DataFrame
        A question table with a column response: "yes", "no", a letter, or "" for what no rule could
        read, which is wrong. A column category (a low-level code such as "B1") adds pAcc. Order of
        rows and further columns do not matter, and rows that are there twice count once.
    confidence : float
        Of the intervals, in (0, 1).
    resamples : int
        Number of bootstrap samples of image pairs, at least 100.
    seed : int
        Of the resampling.

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
    pairs, draws = _drawn(answers, confidence, resamples, seed)
    rows: list[tuple[object, ...]] = []
    for task, level, metric, groups in ratios(answers):
        sums = _by_pair(groups, pairs)
        right, asked, unread = (int(total) for total in sums.sum())
        rows.append(
            (
                task,
                level,
                metric,
                100 * right / asked,
                right,
                asked,
                *_interval(draws, [sums], confidence),
                unread,
            )
        )
    yes_no = answers[answers["task"] == "yes_no"]
    for kind in ("N", "M"):
        group = yes_no[yes_no["kind"] == kind]
        if group["answer"].nunique() == 2:
            # Accuracy on either key, averaged: what an observer that always says the same gets 50 %
            # of.
            keys = [_by_pair(group[group["answer"] == word], pairs) for word in ("yes", "no")]
            value = 100 * float(np.mean([key["right"].sum() / key["asked"].sum() for key in keys]))
            ends = _interval(draws, keys, confidence)
            unread = int(group["unread"].sum())
            rows.append(
                ("yes/no", ALL_LEVELS, f"balanced_{kind}", value, None, len(group), *ends, unread)
            )
    names = [
        "task",
        "level",
        "metric",
        "value",
        "numerator",
        "denominator",
        "low",
        "high",
        "unread",
    ]
    return pd.DataFrame(rows, columns=names).astype({"numerator": "Int64"})


def checked_answers(table: pd.DataFrame) -> pd.DataFrame:
    """Answers each once, with columns right, asked and unread."""
    missing = [name for name in _NEEDED if name not in table]
    if missing:
        raise InputError(f"the table has no column {missing[0]!r}; it needs {', '.join(_NEEDED)}")
    answers = table[[name for name in (*_NEEDED, "category") if name in table]]
    if "place" in table:
        answers = answers.assign(
            place=table.groupby(["run", "question_id"])["place"].transform("min")
        )
    answers = answers.drop_duplicates(ignore_index=True)
    twice = answers["question_id"][answers[["run", "question_id"]].duplicated()]
    if len(twice):
        raise InputError(f"question {twice.iloc[0]} has two different answers; keep one of them")
    if not len(answers):
        raise InputError("the table is empty; there is nothing to score")
    answers["right"] = (answers["response"] == answers["answer"]).astype(int)
    answers["asked"] = 1
    answers["unread"] = (answers["response"] == "").astype(int)
    return answers


def ratios(answers: pd.DataFrame) -> Iterator[tuple[str, str, str, pd.DataFrame]]:
    """Each metric that is a ratio, with what it counts, if anything.

    Task, level, metric, and a table with one row a thing counted: pair, right (0 or 1), asked (1),
    unread.
    """
    return (
        each
        for each in (*_yes_no(answers[answers["task"] == "yes_no"]), *_choices(answers))
        if len(each[3])
    )


def _yes_no(answers: pd.DataFrame) -> Iterator[tuple[str, str, str, pd.DataFrame]]:
    both = _all_right(answers, ["pair", "question", "level"], at_least=2)
    of_kind = {kind: answers[answers["kind"] == kind] for kind in ("N", "M")}
    for level in ("low", "high", ALL_LEVELS):
        yield "yes/no", level, "qAcc", _at(both, level)
        yield "yes/no", level, "aAcc", _at(answers, level)
        for kind, group in of_kind.items():
            yield "yes/no", level, f"aAcc_{kind}", _at(group, level)
    images = _all_right(answers, ["pair", "kind"], at_least=2)
    for kind in of_kind:
        yield "yes/no", ALL_LEVELS, f"iAcc_{kind}", images[images["kind"] == kind]
    yield "yes/no", ALL_LEVELS, "iAcc_N+M", images
    yield "yes/no", ALL_LEVELS, "mAcc", _all_right(answers, ["pair"], at_least=4)
    if "category" in answers and len(answers):
        coded = _all_right(answers, ["pair", "question", "category"], at_least=2)
        for by in (coded["category"], coded["category"].str[0]):
            for code, group in coded.groupby(by):
                yield "yes/no", str(code), "pAcc", group


def _choices(answers: pd.DataFrame) -> Iterator[tuple[str, str, str, pd.DataFrame]]:
    for task, label in _TASKS.items():
        of_task = answers[answers["task"] == task]
        rotations = of_task[of_task["run"] == "circular"]
        for level in ("low", "high"):
            yield label, level, "VanillaEval", _at(of_task[of_task["run"] == "main"], level)
            yield (
                label,
                level,
                "VanillaEval (rotation 1)",
                _at(rotations[rotations["rotation"] == 1], level),
            )
            if "place" in rotations and len(rotations):
                earliest = rotations.loc[rotations.groupby("mcq")["place"].idxmin()]
                yield label, level, "VanillaEval (first in file)", _at(earliest, level)
            yield (
                label,
                level,
                "CircularEval",
                _at(_all_right(rotations, ["pair", "mcq", "level"], at_least=1), level),
            )


def _at(group: pd.DataFrame, level: str) -> pd.DataFrame:
    return group if level == ALL_LEVELS else group[group["level"] == level]


def _all_right(group: pd.DataFrame, keys: list[str], at_least: int) -> pd.DataFrame:
    """One row a group of so many rows or more: right if all of them are."""
    found = group.groupby(keys, as_index=False).agg(
        right=("right", "min"), rows=("right", "size"), unread=("unread", "sum")
    )
    return found[found["rows"] >= at_least].assign(asked=1)


def _drawn(
    answers: pd.DataFrame, confidence: float, resamples: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """The pairs, and how often each is in every bootstrap sample."""
    check_resampling(confidence, resamples)
    pairs = np.unique(answers["pair"])
    even = np.full(len(pairs), 1 / len(pairs))
    return pairs, np.random.default_rng(seed).multinomial(len(pairs), even, size=resamples)


def _by_pair(groups: pd.DataFrame, pairs: np.ndarray) -> pd.DataFrame:
    return groups.groupby("pair")[["right", "asked", "unread"]].sum().reindex(pairs, fill_value=0)


def _shares(draws: np.ndarray, sums: pd.DataFrame) -> FloatArray:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(draws @ sums["right"].to_numpy() / (draws @ sums["asked"].to_numpy()))


def _interval(
    draws: np.ndarray, parts: list[pd.DataFrame], confidence: float
) -> tuple[float | None, float | None]:
    samples = np.mean([_shares(draws, sums) for sums in parts], axis=0)
    # A sample without any of the few pairs of a category has no value.
    known = samples[np.isfinite(samples)]
    if not known.size:
        return None, None
    value = float(np.mean([sums["right"].sum() / sums["asked"].sum() for sums in parts]))
    pairs = min(int((sums["asked"] > 0).sum()) for sums in parts)
    low, high = bounded_interval(value, _spread(known, pairs), pairs, confidence)
    return 100 * low, 100 * high


def _spread(samples: FloatArray, pairs: int) -> float:
    """Standard error from samples of so many pairs, which vary a little less than they should."""
    return float(samples.std() * np.sqrt(pairs / max(pairs - 1, 1)))


def constant_replies(questions: pd.DataFrame, answer: str) -> pd.DataFrame:
    """A question table answered by someone who does not look.

    Parameters
    ----------
    questions : pandas.DataFrame
        A question table.
    answer : {"yes", "no", "A", "B", "C", "D", "E", "key"}
        The response to every question; "key" is the right answer.

    Returns
    -------
    pandas.DataFrame
        The yes/no questions or the multiple-choice ones, whichever the answer is one of, with a
        column response.
    """
    if answer == "key":
        return questions.assign(response=questions["answer"])
    chosen = (
        questions["task"] == "yes_no" if answer in ("yes", "no") else questions["task"] != "yes_no"
    )
    return questions[chosen].assign(response=answer)


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
    asked = [set(zip(table["run"], table["question_id"], strict=True)) for table in tables]
    if asked[0] != asked[1]:
        only = len(asked[0] ^ asked[1])
        raise InputError(
            f"{only} questions were answered by one of the two models alone; compare what both "
            "answered"
        )
    pairs, draws = _drawn(tables[0], confidence, resamples, seed)
    sums = [
        {tuple(cell): _by_pair(groups, pairs) for *cell, groups in ratios(table)}
        for table in tables
    ]
    rows = []
    for cell, one in sums[0].items():
        both = (one, sums[1][cell])
        first_share, second_share = (_shares(draws, each) for each in both)
        samples = 100 * (first_share - second_share)
        samples = samples[np.isfinite(samples)]
        right = [each["right"].sum() / each["asked"].sum() for each in both]
        difference = 100 * (right[0] - right[1])
        count = int((one["asked"] > 0).sum())
        low, high = bounded_interval(
            difference, _spread(samples, count), count, confidence, (-100.0, 100.0)
        )
        p = min(1.0, 2 * float(min((samples <= 0).mean(), (samples >= 0).mean())))
        rows.append((*cell, difference, low, high, p))
    return pd.DataFrame(rows, columns=["task", "level", "metric", "difference", "low", "high", "p"])


# -- tables of the paper
# ----------------------------------------------------------------------------------------------

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
    """Tables 2, 3 and 5: table, model, task, level, metric and value, as text with the printed
    digits.
    """
    return _data("mvp_published.csv")


@cache
def categories() -> pd.DataFrame:
    """The 13 low-level categories, by code, and the blocks of image pairs that belong to them, by
    their numbers.
    """
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
        With a column category; the rows of pairs that are in no block, as in a set of one's own,
        have none.
    """
    if "category" in table:
        return table
    code = pd.Series(pd.NA, index=table.index, dtype="object")
    for name, first, last in categories()[["code", "first_pair", "last_pair"]].itertuples(
        index=False
    ):
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
        Columns table, task, level, metric, paper (text), value, agrees ("rounded", "cut off", "mean
        of rounded": the paper's mean of two values that were rounded before; "" where it does not)
        and reason.

    Raises
    ------
    UnknownNameError
        The paper has no such model.
    """
    printed = published()
    if model not in set(printed["model"]):
        raise unknown_name("model of the MVP-Bench paper", model, sorted(set(printed["model"])))
    values = _values(metrics)
    rows = []
    for row in printed[printed["model"] == model].itertuples():
        found = [
            (cell, _agrees(row.value, values, *cell))
            for cell in _found(values, row.task, row.level, row.metric)
        ]
        if found:
            cell, how = next((each for each in found if each[1]), found[0])
            reason = "" if how else _reason(model, row.task, row.level, row.metric)
            rows.append((row.table, *cell, row.value, values[cell], how, reason))
    return pd.DataFrame(
        rows, columns=["table", "task", "level", "metric", "paper", "value", "agrees", "reason"]
    )


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
    # Half up, as people round; the small term keeps a binary fraction from falling under its
    # decimal half.
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
        pairs = zip(
            (row.model, row.task, row.level, row.metric), (model, task, level, metric), strict=True
        )
        if all(pattern in ("*", value) for pattern, value in pairs):
            return str(row.reason)
    return "not known"


def mvp_tables(metrics: Mapping[str, pd.DataFrame], format: str = "text") -> str:
    """Metrics in the form of the paper's Tables 2, 3 and 5, printed values under those of a model
    of the paper.

    Parameters
    ----------
    metrics : mapping of str to pandas.DataFrame
        By model, as `mvp_metrics` gives them. A name that the paper has is put beside its printed
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
    for table in _TITLES:
        cells = _cells(table)
        rows = [["", *[_heading(*cell) for cell in cells]]]
        notes: list[str] = []
        for model, found in metrics.items():
            values = _values(found)
            there = [next(iter(_found(values, *cell)), None) for cell in cells]
            rows.append(
                [
                    printable(model),
                    *("-" if cell is None else f"{values[cell]:.2f}" for cell in there),
                ]
            )
            known = list(dict.fromkeys(published()["model"]))
            if not table:
                continue
            if (name := printed_name(model, known)) is None:
                notes += [line for line in [near_names(model, known)] if line]
            else:
                (label, *row), remarks = _printed(found, name, table, cells)
                rows.append([label + f" ({name})" * (name != model), *row])
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


def _printed(
    metrics: pd.DataFrame, model: str, table: str, cells: Iterable[Cell]
) -> tuple[list[str], list[str]]:
    values = _values(metrics)
    beside = beside_published(metrics, model)
    printed = published()
    beside = beside[beside["table"] == table]
    compared = {
        (itertuple.task, itertuple.level, itertuple.metric.partition(" ")[0]): itertuple
        for itertuple in beside.itertuples()
    }
    papers = _values(printed[(printed["model"] == model) & (printed["table"] == table)])
    row = ["  as printed"]
    notes = []
    for cell in cells:
        found = compared.get(cell)
        heading = f"{model}, {_heading(*cell)}"
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


#: What can be put beside each other: label, task, level, metric. Colours of Okabe and Ito (2008),
#: and a mark each.
CONTRASTS: Mapping[str, tuple[tuple[str, Cell], ...]] = {
    "level": (("low level", ("yes/no", "low", "qAcc")), ("high level", ("yes/no", "high", "qAcc"))),
    "image": (
        ("natural", ("yes/no", "multi", "aAcc_N")),
        ("manipulated", ("yes/no", "multi", "aAcc_M")),
    ),
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


def plot_mvp(
    metrics: Mapping[str, pd.DataFrame], contrast: str = "level", ax: Axes | None = None
) -> Axes:
    """Draw two accuracies of each model beside each other.

    Parameters
    ----------
    metrics : mapping of str to pandas.DataFrame
        By model, as `mvp_metrics` gives them.
    contrast : {"level", "image", "image_balanced", "cross"}
        Low against high level, natural against manipulated images (as published, or balanced over
        the keys, which differ between both kinds), or the levels of cross-image multiple choice.
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
        raise InputError(
            f"no model has the metrics of {contrast!r}; run the questions that they need"
        )
    if ax is None:
        import matplotlib.pyplot as plt

        ax = plt.figure(figsize=(5.2, 1.4 + 0.36 * len(rows)), layout="constrained").add_subplot()
    for i, (label, (colour, mark)) in enumerate(
        zip((cell[0] for cell in cells), _STYLES, strict=True)
    ):
        for y, (_, found) in enumerate(rows):
            one = found[i]
            offset = 0.13 * (2 * i - 1)
            ax.plot(
                [one["low"], one["high"]],
                [y + offset] * 2,
                color=colour,
                linewidth=1.4,
                solid_capstyle="butt",
            )
            shown = label if y == 0 else None
            ax.plot(
                one["value"],
                y + offset,
                mark,
                color=colour,
                markersize=5,
                label=shown,
                clip_on=False,
            )
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
