"""The metrics of MVP-Bench, each as right over asked with intervals over pairs, and two models beside each other.

Every metric is a sum of numerators over a sum of denominators, both of which belong to image pairs; so all of them are
resampled at once by weighting the pairs.

References
----------
Li et al. (2024). MVP-Bench. Findings of EMNLP, section 4; the restrictions of iAcc and mAcc as in the released script.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from psyprobe._typing import FloatArray
from psyprobe.analysis.resampling import check_resampling
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
    answers = checked_answers(table)
    pairs, draws = _drawn(answers, confidence, resamples, seed)
    tails = 100 * (1 - confidence) / 2
    rows: list[tuple[object, ...]] = []
    for task, level, metric, groups in ratios(answers):
        sums = _by_pair(groups, pairs)
        right, asked, unread = (int(total) for total in sums.sum())
        rows.append((task, level, metric, 100 * right / asked, right, asked, *_interval(draws, [sums], tails), unread))
    yes_no = answers[answers["task"] == "yes_no"]
    for kind in ("N", "M"):
        group = yes_no[yes_no["kind"] == kind]
        if group["answer"].nunique() == 2:
            # Accuracy on either key, averaged: what an observer that always says the same gets 50 % of.
            keys = [_by_pair(group[group["answer"] == word], pairs) for word in ("yes", "no")]
            value = 100 * float(np.mean([key["right"].sum() / key["asked"].sum() for key in keys]))
            ends, unread = _interval(draws, keys, tails), int(group["unread"].sum())
            rows.append(("yes/no", ALL_LEVELS, f"balanced_{kind}", value, None, len(group), *ends, unread))
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
    """Each metric that is a ratio, with what it counts, if anything.

    Task, level, metric, and a table with one row a thing counted: pair, right (0 or 1), asked (1), unread.
    """
    return (each for each in (*_yes_no(answers[answers["task"] == "yes_no"]), *_choices(answers)) if len(each[3]))


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
            yield label, level, "VanillaEval (rotation 1)", _at(rotations[rotations["rotation"] == 1], level)
            if "place" in rotations and len(rotations):
                earliest = rotations.loc[rotations.groupby("mcq")["place"].idxmin()]
                yield label, level, "VanillaEval (first in file)", _at(earliest, level)
            yield label, level, "CircularEval", _at(_all_right(rotations, ["pair", "mcq", "level"], at_least=1), level)


def _at(group: pd.DataFrame, level: str) -> pd.DataFrame:
    return group if level == ALL_LEVELS else group[group["level"] == level]


def _all_right(group: pd.DataFrame, keys: list[str], at_least: int) -> pd.DataFrame:
    """One row a group of so many rows or more: right if all of them are."""
    found = group.groupby(keys, as_index=False).agg(
        right=("right", "min"), rows=("right", "size"), unread=("unread", "sum")
    )
    return found[found["rows"] >= at_least].assign(asked=1)


def _drawn(answers: pd.DataFrame, confidence: float, resamples: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
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


def _interval(draws: np.ndarray, parts: list[pd.DataFrame], tails: float) -> tuple[float | None, float | None]:
    samples = np.mean([_shares(draws, sums) for sums in parts], axis=0)
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
    first: pd.DataFrame, second: pd.DataFrame, *, confidence: float = 0.95, resamples: int = 2000, seed: int = 0
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
    pairs, draws = _drawn(tables[0], confidence, resamples, seed)
    sums = [{tuple(cell): _by_pair(groups, pairs) for *cell, groups in ratios(table)} for table in tables]
    rows = []
    for cell, one in sums[0].items():
        both = (one, sums[1][cell])
        first_share, second_share = (_shares(draws, each) for each in both)
        samples = 100 * (first_share - second_share)
        samples = samples[np.isfinite(samples)]
        right = [each["right"].sum() / each["asked"].sum() for each in both]
        tails = 100 * (1 - confidence) / 2
        low, high = np.percentile(samples, [tails, 100 - tails])
        p = min(1.0, 2 * float(min((samples <= 0).mean(), (samples >= 0).mean())))
        rows.append((*cell, 100 * (right[0] - right[1]), low, high, p))
    return pd.DataFrame(rows, columns=["task", "level", "metric", "difference", "low", "high", "p"])
