"""What a judge makes of answers to R-Bench: rules first, the judge for what they leave open, failures counted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from psyprobe.errors import InputError, unknown_name
from psyprobe.tasks.asking import Case, Verdicts
from psyprobe.tasks.r_bench.items import lettered
from psyprobe.tasks.r_bench.scores import MCQ_RULES, read_letters

#: What answers are judged against: corrupted and reference against the key, and both against each other.
AGAINST = ("dis", "ref", "com")
_PROMPTS = {"MCQ": "rbench_choice", "VQA": "rbench_short", "CAP": "rbench_caption"}


def open_cases(
    items: pd.DataFrame,
    answers: Mapping[str, pd.Series],
    *,
    mcq_rule: str = "letter_then_judge",
    against: Sequence[str] = AGAINST,
) -> list[Case]:
    """What rules leave open of answers; of the cases, those of captions are put once, since there are several.

    Parameters
    ----------
    items : pandas.DataFrame
        An item table.
    answers : mapping of str to pandas.Series
        "dis" and "ref", or "dis" alone: text by name.
    mcq_rule : str
        See `MCQ_RULES`: with "letter_then_judge" a letter is not judged, with "letter" no choice is.
    against : sequence of {"dis", "ref", "com"}
        Which judgements are wanted; see `answerable`.

    Raises
    ------
    UnknownNameError
        There is no such rule.
    InputError
        Answers lack an item.
    """
    if mcq_rule not in MCQ_RULES:
        raise unknown_name("rule for multiple choice", mcq_rule, MCQ_RULES)
    for which, given in answers.items():
        absent = items["name"][~items["name"].isin(given.index)]
        if len(absent):
            raise InputError(f"answers {which}: {len(absent)} of {len(items)} items miss, first {absent.iloc[0]}")
    rows = items.to_dict("records")
    return [case for row in rows for which in against for case in _cases(row, which, answers, mcq_rule)]


def answerable(answers: Mapping[str, pd.Series]) -> list[str]:
    """Which judgements are possible with the answers that are given."""
    return [which for which in AGAINST if ({"dis", "ref"} if which == "com" else {which}) <= set(answers)]


def judgements(
    items: pd.DataFrame, found: Mapping[str, Verdicts], against: Sequence[str] = AGAINST
) -> tuple[dict[str, pd.Series], pd.DataFrame]:
    """What verdicts on open cases come to, for `score_items`: from 0 to 1 by item; NaN where there is none.

    Returns
    -------
    judged : dict of str to pandas.Series
        By what was judged.
    verdicts : pandas.DataFrame
        One row a case: name, against, caption (number, -1 for none), read and unread (tuples of what the judge said).
    """
    choices = set(items["name"][items["task"] == "MCQ"])
    judged = {which: pd.Series(np.nan, index=pd.Index(items["name"]), dtype="float64") for which in against}
    by_item: dict[tuple[str, str], list[Verdicts]] = {}
    rows = []
    for case, verdicts in found.items():
        which, caption, name = case.split("\n", 2)
        by_item.setdefault((which, name), []).append(verdicts)
        rows.append((name, which, int(caption), verdicts.read, verdicts.unread))
    for (which, name), group in by_item.items():
        judged[which][name] = _value(group, majority=name in choices)
    return judged, pd.DataFrame(rows, columns=["name", "against", "caption", "read", "unread"])


def _cases(row: Mapping[Any, Any], which: str, answers: Mapping[str, pd.Series], rule: str) -> list[Case]:
    name, task = row["name"], row["task"]
    answer = str(answers["dis" if which == "com" else which][name])
    if task == "MCQ" and _by_letter(which, answers, name, rule):
        return []
    question = f"{row['question']}\n{lettered(row['options'])}" if task == "MCQ" else row["question"]

    def case(key: str, caption: int = -1) -> Case:
        return Case(f"{which}\n{caption}\n{name}", _PROMPTS[task], question, key, answer, once=caption >= 0)

    if which == "com":
        return [case(str(answers["ref"][name]))]
    if task == "CAP":
        return [case(key, caption) for caption, key in enumerate(row["key"])]
    if task == "MCQ":
        place = "ABCDE".index(row["key"])
        named = row["options"][place] if place < len(row["options"]) else ""
        return [case(f"{row['key']}. {named}" if named else row["key"])]
    return [case(row["key"])]


def _by_letter(which: str, answers: Mapping[str, pd.Series], name: str, rule: str) -> bool:
    if rule in ("published", "judge"):
        return False
    if rule == "letter":
        return True
    compared = [answers[each][name] for each in (("dis", "ref") if which == "com" else (which,))]
    return bool((read_letters(pd.Series(compared, dtype=str))[0] != "").all())


def _value(verdicts: list[Verdicts], *, majority: bool) -> float:
    """The score of an item, or NaN where no reply was a verdict."""
    if majority:
        found = verdicts[0].majority
        return np.nan if found is None else float(found)
    read = [each.mean for each in verdicts if not each.failed]
    return float(np.mean(read)) if read else np.nan
