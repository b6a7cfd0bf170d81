"""The metrics of MVP-Bench, each as right over asked with intervals over pairs, and two models beside each other.

Every metric is a sum of numerators over a sum of denominators, both of which belong to image pairs; so all of them are
resampled at once by weighting the pairs.

References
----------
Li et al. (2024). MVP-Bench. Findings of EMNLP, section 4; the restrictions of iAcc and mAcc as in the released script.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pandas as pd

from psyprobe._typing import FloatArray
from psyprobe.analysis.alignment import check_resampling
from psyprobe.errors import InputError

_NEEDED = ("question_id", "pair", "kind", "task", "level", "question", "answer", "run", "mcq", "rotation", "said")
_TASKS = {"single_mcq": "single-image MCQ", "cross_mcq": "cross-image MCQ"}
#: The paper's name of all levels together.
ALL_LEVELS = "multi"


def mvp_metrics(table: pd.DataFrame, *, confidence: float = 0.95, resamples: int = 2000, seed: int = 0) -> pd.DataFrame:
    """All metrics that the answers of a table allow.

    Parameters
    ----------
    table : pandas.DataFrame
        A question table with a column said: "yes", "no", a letter, or "" for what no rule could read, which is wrong. A
        column category (a low-level code such as "B1") adds pAcc. Order of rows and further columns do not matter, and
        rows that are there twice count once.
    confidence : float
        Of the intervals, in (0, 1).
    resamples : int
        Number of bootstrap samples of image pairs, at least 100.
    seed : int
        Of the resampling.

    Returns
    -------
    pandas.DataFrame
        Columns task, level, metric, value (per cent), numerator, denominator, low, high (per cent), unread (how many of
        the answers no rule could read). Balanced accuracies have no numerator: they are the mean over both keys.

    Raises
    ------
    InputError
        A column is missing, a question has two different answers, or there is nothing to score.

    Notes
    -----
    aAcc: single questions. qAcc: questions that are right on both images. iAcc: images, with more than one yes/no
    question, of which all are right. mAcc: pairs, with more than three yes/no rows, of which all are right.
    VanillaEval: multiple choice in one presentation, that of the main run, of the first rotation, or (with a column
    place) of the rotation that stands first in the prediction file, which is another one where replies were collected
    as they came. CircularEval: in all rotations. pAcc: qAcc of a category. The interval draws whole pairs; its ends are
    percentiles.
    """
    check_resampling(confidence, resamples)
    answers = checked_answers(table)
    pairs = np.unique(answers["pair"])
    draws = np.random.default_rng(seed).multinomial(len(pairs), np.full(len(pairs), 1 / len(pairs)), size=resamples)
    tails = 100 * (1 - confidence) / 2
    rows: list[tuple[object, ...]] = []
    for task, level, metric, groups in ratios(answers):
        sums = groups.groupby("pair")[["right", "asked", "unread"]].sum().reindex(pairs, fill_value=0)
        low, high = _interval(draws @ sums["right"].to_numpy(), draws @ sums["asked"].to_numpy(), tails)
        right, asked, unread = (int(total) for total in sums.sum())
        rows.append((task, level, metric, 100 * right / asked, right, asked, low, high, unread))
    for level, metric, groups in _balanced(answers):
        key = groups.pivot_table(index="pair", columns="answer", values=["right", "asked"], aggfunc="sum", fill_value=0)
        key = key.reindex(pairs, fill_value=0)
        shares = [
            (draws @ key["right", word].to_numpy(), draws @ key["asked", word].to_numpy()) for word in ("yes", "no")
        ]
        with np.errstate(invalid="ignore", divide="ignore"):
            samples = np.mean([right / asked for right, asked in shares], axis=0)
        low, high = _percentiles(samples, tails)
        recalls = [key["right", word].sum() / key["asked", word].sum() for word in ("yes", "no")]
        unread = int(groups["unread"].sum())
        rows.append(("yes/no", level, metric, 100 * float(np.mean(recalls)), None, len(groups), low, high, unread))
    names = ["task", "level", "metric", "value", "numerator", "denominator", "low", "high", "unread"]
    return pd.DataFrame(rows, columns=names).astype({"numerator": "Int64"})


def checked_answers(table: pd.DataFrame) -> pd.DataFrame:
    """Answers each once, with columns right, asked and unread."""
    missing = [name for name in _NEEDED if name not in table]
    if missing:
        raise InputError(f"the table has no column {missing[0]!r}; it needs {', '.join(_NEEDED)}")
    names = [*_NEEDED, *(["category"] if "category" in table else [])]
    answers = table[names]
    if "place" in table:
        answers = answers.assign(place=table.groupby(["run", "question_id"])["place"].transform("min"))
    answers = answers.drop_duplicates(ignore_index=True)
    twice = answers["question_id"][answers[["run", "question_id"]].duplicated()]
    if len(twice):
        raise InputError(f"question {twice.iloc[0]} has two different answers; keep one of them")
    if not len(answers):
        raise InputError("the table is empty; there is nothing to score")
    answers["right"] = (answers["said"] == answers["answer"]).astype(int)
    answers["asked"] = 1
    answers["unread"] = (answers["said"] == "").astype(int)
    return answers


def ratios(answers: pd.DataFrame) -> Iterator[tuple[str, str, str, pd.DataFrame]]:
    """Each metric that is a ratio, with what it counts.

    Task, level, metric, and a table with one row a thing counted: pair, right (0 or 1), asked (1), unread.
    """
    yes_no = answers[answers["task"] == "yes_no"]
    if len(yes_no):
        both = _all_right(yes_no, ["pair", "question", "level"], at_least=2)
        for level in ("low", "high", ALL_LEVELS):
            yield from _if_any("yes/no", level, "qAcc", _at(both, level))
            yield from _if_any("yes/no", level, "aAcc", _at(yes_no, level))
            for kind in ("N", "M"):
                of_kind = yes_no[yes_no["kind"] == kind]
                yield from _if_any("yes/no", level, f"aAcc_{kind}", _at(of_kind, level))
        images = _all_right(yes_no, ["pair", "kind"], at_least=2)
        for kind in ("N", "M"):
            yield from _if_any("yes/no", ALL_LEVELS, f"iAcc_{kind}", images[images["kind"] == kind])
        yield from _if_any("yes/no", ALL_LEVELS, "iAcc_N+M", images)
        yield from _if_any("yes/no", ALL_LEVELS, "mAcc", _all_right(yes_no, ["pair"], at_least=4))
        if "category" in answers:
            coded = _all_right(yes_no, ["pair", "question", "category"], at_least=2)
            for code, group in coded.groupby("category"):
                yield "yes/no", str(code), "pAcc", group
            for letter, group in coded.groupby(coded["category"].str[0]):
                yield "yes/no", str(letter), "pAcc", group
    for task, label in _TASKS.items():
        of_task = answers[answers["task"] == task]
        rotations = of_task[of_task["run"] == "circular"]
        for level in ("low", "high"):
            yield from _if_any(label, level, "VanillaEval", _at(of_task[of_task["run"] == "main"], level))
            first = rotations[rotations["rotation"] == 1]
            yield from _if_any(label, level, "VanillaEval (rotation 1)", _at(first, level))
            if "place" in rotations and len(rotations):
                earliest = rotations.loc[rotations.groupby("mcq")["place"].idxmin()]
                yield from _if_any(label, level, "VanillaEval (first in file)", _at(earliest, level))
            circular = _all_right(rotations, ["pair", "mcq", "level"], at_least=1)
            yield from _if_any(label, level, "CircularEval", _at(circular, level))


def _balanced(answers: pd.DataFrame) -> Iterator[tuple[str, str, pd.DataFrame]]:
    """Accuracy on either key, averaged: what an observer that always says the same gets 50 % of."""
    yes_no = answers[answers["task"] == "yes_no"]
    for kind in ("N", "M"):
        group = yes_no[yes_no["kind"] == kind]
        if group["answer"].nunique() == 2:
            yield ALL_LEVELS, f"balanced_{kind}", group


def _if_any(task: str, level: str, metric: str, group: pd.DataFrame) -> Iterator[tuple[str, str, str, pd.DataFrame]]:
    if len(group):
        yield task, level, metric, group


def _at(group: pd.DataFrame, level: str) -> pd.DataFrame:
    return group if level == ALL_LEVELS else group[group["level"] == level]


def _all_right(group: pd.DataFrame, keys: list[str], at_least: int) -> pd.DataFrame:
    """One row a group of so many rows or more: right if all of them are."""
    found = group.groupby(keys, as_index=False).agg(
        right=("right", "min"), rows=("right", "size"), unread=("unread", "sum")
    )
    kept = found[found["rows"] >= at_least].copy()
    kept["asked"] = 1
    return kept


def _interval(right: FloatArray, asked: FloatArray, tails: float) -> tuple[float | None, float | None]:
    with np.errstate(invalid="ignore", divide="ignore"):
        return _percentiles(right / asked, tails)


def _percentiles(samples: FloatArray, tails: float) -> tuple[float | None, float | None]:
    # A sample without any of the few pairs of a category has no value.
    known = samples[np.isfinite(samples)]
    if not known.size:
        return None, None
    low, high = np.percentile(100 * known, [tails, 100 - tails])
    return float(low), float(high)


def constant_replies(questions: pd.DataFrame, answer: str) -> pd.DataFrame:
    """A question table answered by someone who does not look.

    Parameters
    ----------
    questions : pandas.DataFrame
        A question table.
    answer : {"yes", "no", "A", "B", "C", "D", "E", "key"}
        What is always said; "key" is the right answer.

    Returns
    -------
    pandas.DataFrame
        The yes/no questions or the multiple-choice ones, whichever the answer is one of, with a column said.
    """
    if answer == "key":
        return questions.assign(said=questions["answer"])
    chosen = questions["task"] == "yes_no" if answer in ("yes", "no") else questions["task"] != "yes_no"
    return questions[chosen].assign(said=answer)


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
    check_resampling(confidence, resamples)
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
