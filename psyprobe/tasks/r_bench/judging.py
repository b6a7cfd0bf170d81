"""What a judge makes of answers to R-Bench: rules first, the judge for what they leave open, failures counted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from psyprobe.errors import InputError, unknown_name
from psyprobe.store import Store
from psyprobe.tasks.judge import Case, Judge, Verdicts, judge_cases
from psyprobe.tasks.r_bench.items import lettered
from psyprobe.tasks.r_bench.scores import MCQ_RULES, read_letters

#: What answers are judged against: corrupted and reference against the key, and both against each other.
AGAINST = ("dis", "ref", "com")
_PROMPTS = {"MCQ": "rbench_choice", "VQA": "rbench_short", "CAP": "rbench_caption"}


def judge_answers(
    items: pd.DataFrame,
    answers: Mapping[str, pd.Series],
    judge: Judge,
    *,
    mcq_rule: str = "letter_then_judge",
    against: Sequence[str] = AGAINST,
    store: str | Path | Store | None = None,
    progress: bool | None = None,
) -> tuple[dict[str, pd.Series], pd.DataFrame]:
    """Judge answers as the benchmark does: five times, but each reference caption once.

    Parameters
    ----------
    items : pandas.DataFrame
        An item table.
    answers : mapping of str to pandas.Series
        "dis" and "ref", or "dis" alone: text by name.
    judge : Judge
        Who judges, and how often.
    mcq_rule : str
        See `MCQ_RULES`: with "letter_then_judge" a letter is not judged, with "letter" no choice is.
    against : sequence of {"dis", "ref", "com"}
        Which judgements are wanted, where answers for them are given.
    store : str, Path or Store, optional
        The file that keeps what the judge said.
    progress : bool, optional
        Whether to show a progress bar.

    Returns
    -------
    judged : dict of str to pandas.Series
        For `score_items`: from 0 to 1 by name; NaN where a rule decides, or where the judge gave no verdict.
    verdicts : pandas.DataFrame
        One row a case: name, against, caption (number, -1 for none), read and unread (tuples of what the judge said).

    Raises
    ------
    UnknownNameError
        There is no such rule.
    InputError
        Answers lack an item.
    PsyprobeError
        The judge cannot be reached: nothing is put in its place.
    """
    if mcq_rule not in MCQ_RULES:
        raise unknown_name("rule for multiple choice", mcq_rule, MCQ_RULES)
    for which, given in answers.items():
        absent = items["name"][~items["name"].isin(given.index)]
        if len(absent):
            raise InputError(f"answers {which}: {len(absent)} of {len(items)} items miss, first {absent.iloc[0]}")
    wanted = [which for which in against if ({"dis", "ref"} if which == "com" else {which}) <= set(answers)]
    cases: dict[tuple[str, str, int], Case] = {}
    for row in items.to_dict("records"):
        for which in wanted:
            cases |= _cases(row, which, answers, mcq_rule)
    # The benchmark asks once for each reference caption, since there are several, and five times for all else.
    once = {place: case for place, case in cases.items() if place[2] >= 0}
    found: dict[str, Verdicts] = {}
    for part, who in ((once, replace(judge, repeats=1)), ({k: v for k, v in cases.items() if k not in once}, judge)):
        if part:
            found |= judge_cases(list(part.values()), who, store=store, progress=progress)
    rows = [
        {"name": name, "against": which, "caption": caption, "verdict": found[case.name]}
        for (name, which, caption), case in cases.items()
    ]
    verdicts = pd.DataFrame(rows, columns=["name", "against", "caption", "verdict"])
    choices = set(items["name"][items["task"] == "MCQ"])
    judged = {}
    for which in wanted:
        values = pd.Series(np.nan, index=pd.Index(items["name"]), dtype="float64")
        for name, group in verdicts[verdicts["against"] == which].groupby("name", sort=False):
            values[name] = _value(list(group["verdict"]), majority=name in choices)
        judged[which] = values
    told = verdicts.assign(
        read=[each.read for each in verdicts["verdict"]], unread=[each.unread for each in verdicts["verdict"]]
    )
    return judged, told.drop(columns="verdict")


def nothing_judged(items: pd.DataFrame) -> dict[str, pd.Series]:
    """Judgements where there is no judge: all open, so that rules alone score and the rest is counted as unscored."""
    return {which: pd.Series(np.nan, index=pd.Index(items["name"]), dtype="float64") for which in AGAINST}


def _cases(
    row: Mapping[Any, Any], which: str, answers: Mapping[str, pd.Series], rule: str
) -> dict[tuple[str, str, int], Case]:
    name, task = row["name"], row["task"]
    answer = str(answers["dis" if which == "com" else which][name])
    if task == "MCQ" and _by_letter(which, answers, name, rule):
        return {}
    question = f"{row['question']}\n{lettered(row['options'])}" if task == "MCQ" else row["question"]

    def case(key: str, caption: int = -1) -> dict[tuple[str, str, int], Case]:
        told = Case(f"{which}\n{caption}\n{name}", _PROMPTS[task], question, key, answer)
        return {(name, which, caption): told}

    if which == "com":
        return case(str(answers["ref"][name]))
    if task == "CAP":
        return {place: told for i, key in enumerate(row["key"]) for place, told in case(key, i).items()}
    if task == "MCQ":
        place = "ABCDE".index(row["key"])
        named = row["options"][place] if place < len(row["options"]) else ""
        return case(f"{row['key']}. {named}" if named else row["key"])
    return case(row["key"])


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
