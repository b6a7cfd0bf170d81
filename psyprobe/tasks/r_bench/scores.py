"""From answers and judgements to the scores of each item: rules first, a judge for what they leave
open.

An item's absolute robustness is the score of the answer about the corrupted image against the key.
Its relative robustness is the score of the answer about the reference image, times the agreement of
both answers. A judge's failures are counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from psyprobe._typing import FloatArray
from psyprobe.errors import InputError, unknown_name
from psyprobe.tasks.items import Case, Verdicts
from psyprobe.tasks.r_bench.items import lettered
from psyprobe.tasks.tables import read_answer_table, read_table

#: How a multiple-choice answer is scored. "published": right where its first character is the key,
#: or where the judge says so (for the agreement of both answers the judge alone). "judge": the
#: judge alone. "letter": the first character alone, for the agreement too; no judge is needed.
#: "letter_then_judge": the letter where the answer is one, the judge where it is not.
MCQ_RULES = ("published", "judge", "letter", "letter_then_judge")
#: What answers are judged against: corrupted and reference against the key, and both against each
#: other.
AGAINST = ("dis", "ref", "com")
_PROMPTS = {"MCQ": "rbench_choice", "VQA": "rbench_short", "CAP": "rbench_caption"}
#: What an answer is called: VLMEvalKit's, ours, lmms-eval's, and the authors'; the first that is
#: there.
_ANSWER_COLUMNS = ("prediction", "reply", "filtered_resps", "output", "answer")
#: What an item is called; VLMEvalKit's index is the number of a row in a TSV.
_NAME_COLUMNS = ("name", "index", "doc_id")


def read_answers(path: str | Path) -> pd.Series:
    """Answers of a model about one image each.

    Parameters
    ----------
    path : str or Path
        A table with the columns name (or index, doc_id) and prediction (or reply, filtered_resps,
        output, answer): .csv as the authors released them, .xlsx, .tsv or .json as VLMEvalKit
        writes, .jsonl as lmms-eval does.

    Returns
    -------
    pandas.Series
        Text by name.

    Raises
    ------
    InputError
        It is no such table, a name has two different answers, or it holds keys in the place of
        answers.
    """
    table = read_answer_table(path)
    name, column = (
        next((each for each in known if each in table), None)
        for known in (_NAME_COLUMNS, _ANSWER_COLUMNS)
    )
    if name is None:
        raise InputError(
            f"{path} has no column 'name'; an item's name stands in {', '.join(_NAME_COLUMNS)}"
        )
    if column is None:
        raise InputError(
            f"{path} has columns {', '.join(map(str, table))}; an answer stands in prediction, "
            "answer or reply"
        )
    if column == "answer" and "question" in table:
        raise InputError(
            f"{path} holds questions and in the column answer their keys; give a file with a "
            "column prediction"
        )
    return _once(path, table.rename(columns={name: "name"}), column)


def _once(path: str | Path, table: pd.DataFrame, column: str) -> pd.Series:
    """A column by name; rows that are there twice with the same contents are taken once."""
    kept = table[["name", column]].drop_duplicates()
    twice = kept["name"][kept["name"].duplicated()]
    if len(twice):
        raise InputError(
            f"{path}: {twice.iloc[0]} is there twice with different contents; keep one of them"
        )
    return kept.set_index("name")[column]


def read_judgements(path: str | Path) -> pd.Series:
    """What a judge made of answers.

    Parameters
    ----------
    path : str or Path
        A CSV with the columns name and result, from 0 to 1, as the benchmark's authors released
        them.

    Returns
    -------
    pandas.Series
        float64 by name.

    Raises
    ------
    InputError
        It is no such table, a name has two different judgements, or one is not from 0 to 1.
    """
    table, _ = read_table(path, ("name", "result"))
    values = pd.to_numeric(_once(path, table, "result"), errors="coerce")
    bad = values.index[~values.between(0, 1)]
    if len(bad):
        raise InputError(
            f"{path}: the result of {bad[0]} is not a number from 0 to 1; judge it again"
        )
    return values.astype("float64")


def score_items(
    items: pd.DataFrame,
    *,
    answers: Mapping[str, pd.Series] | None = None,
    judged: Mapping[str, pd.Series] | None = None,
    mcq_rule: str = "letter_then_judge",
) -> pd.DataFrame:
    """Absolute and relative robustness of each item.

    Parameters
    ----------
    items : pandas.DataFrame
        An item table, as `psyprobe.tasks.r_bench.read_items` gives it.
    answers : mapping of str to pandas.Series
        "dis" and "ref": answers about the corrupted and the reference images, by name.
    judged : mapping of str to pandas.Series
        "dis", "ref" (against the key) and "com" (both answers against each other): 0 to 1, by name.
        A relative score needs "ref" and "com".
    mcq_rule : {"letter_then_judge", "published", "judge", "letter"}
        See `MCQ_RULES`.

    Returns
    -------
    pandas.DataFrame
        The items with columns absolute and relative (NaN where what it needs is not given at all),
        and odd_key: whether the key names no option, so that nothing can be right.

    Raises
    ------
    InputError
        Answers or judgements lack an item, or the rule needs what is not given.
    """
    _check_rule(mcq_rule)
    given = {f"answers {name}": values for name, values in (answers or {}).items()}
    given |= {f"judged {name}": values for name, values in (judged or {}).items()}
    aligned = {what: _aligned(items, values, what) for what, values in given.items()}
    choice = (items["task"] == "MCQ").to_numpy()
    key = np.array([value if isinstance(value, str) else "" for value in items["key"]])

    absolute, reference = (
        _scores(choice, key, aligned, mcq_rule, which) for which in ("dis", "ref")
    )
    agreement = _agreement(choice, aligned, mcq_rule)
    relative = None
    if reference is not None and agreement is not None:
        # Wrong about the reference is 0, even where the judge failed on the agreement.
        relative = np.where(reference == 0, 0.0, reference * agreement)
    if absolute is None and relative is None:
        raise InputError(
            "nothing can be scored: give answers and judgements of corrupted images, or of all "
            "three kinds"
        )
    place = np.array(["ABCDE".find(value) if value else -1 for value in key])
    return items.assign(
        absolute=np.nan if absolute is None else absolute,
        relative=np.nan if relative is None else relative,
        odd_key=choice & (place >= items["options"].map(len).to_numpy()),
    )


def _check_rule(rule: str) -> None:
    if rule not in MCQ_RULES:
        raise unknown_name("rule for multiple choice", rule, MCQ_RULES)


def _aligned(items: pd.DataFrame, values: pd.Series, what: str) -> pd.Series:
    missing = items["name"][~items["name"].isin(values.index)]
    if len(missing):
        raise InputError(
            f"{what}: {len(missing)} of {len(items)} items are missing, the first {missing.iloc[0]}"
        )
    return values.loc[items["name"]]


def _scores(
    choice: FloatArray, key: FloatArray, aligned: Mapping[str, pd.Series], rule: str, which: str
) -> FloatArray | None:
    """Scores against the key; None where neither answers nor judgements are given."""
    answer = aligned.get(f"answers {which}")
    judge = aligned.get(f"judged {which}")
    if answer is None and judge is None:
        return None
    if judge is None and (rule in ("published", "judge") or not choice.all()):
        raise InputError(
            f"judgements of {which!r} are missing: short answers and captions have no rule "
            "without a judge"
        )
    if answer is None and rule != "judge":
        raise InputError(
            f"answers about {which!r} are missing: the rule {rule!r} for multiple choice reads "
            "letters"
        )
    judged = np.zeros(len(choice)) if judge is None else judge.to_numpy(dtype=np.float64)
    if rule == "judge" or answer is None:
        return judged
    letter, first = read_letters(answer)
    by_letter = ((letter if rule == "letter_then_judge" else first) == key).astype(np.float64)
    if rule == "letter_then_judge":
        by_letter = np.where(letter != "", by_letter, judged)
    elif rule == "published":
        # Right by its first character is right, whatever the judge could not say.
        by_letter = np.where(by_letter == 1, 1.0, judged)
    return np.where(choice, by_letter, judged)


def _agreement(
    choice: FloatArray, aligned: Mapping[str, pd.Series], rule: str
) -> FloatArray | None:
    judge = aligned.get("judged com")
    corrupted = aligned.get("answers dis")
    reference = aligned.get("answers ref")
    if judge is None and (rule != "letter" or not choice.all()):
        return None
    judged = np.zeros(len(choice)) if judge is None else judge.to_numpy(dtype=np.float64)
    if rule in ("published", "judge") or corrupted is None or reference is None:
        return judged
    (one, one_first) = read_letters(corrupted)
    (other, other_first) = read_letters(reference)
    if rule == "letter":
        return np.where(choice, one_first == other_first, judged)
    return np.where(choice & (one != "") & (other != ""), one == other, judged)


def read_letters(answers: pd.Series) -> tuple[FloatArray, FloatArray]:
    """The letter that each answer is, and its first character.

    Returns
    -------
    letter : ndarray of str
        "" where an answer is no letter.
    first : ndarray of str
        As the published rule reads it.

    Examples
    --------
    >>> [each.tolist() for each in read_letters(pd.Series(["B.", "Black", "(A) left"]))]
    [['B', '', 'A'], ['B', 'B', '(']]
    """
    stripped = answers.str.strip()
    letter = stripped.str.extract(r"^\(?([A-E])(?:[.):,;\s]|$)", expand=False).fillna("")
    return letter.to_numpy(dtype=str), stripped.str[:1].fillna("").to_numpy(dtype=str)


def open_cases(
    items: pd.DataFrame,
    answers: Mapping[str, pd.Series],
    *,
    mcq_rule: str = "letter_then_judge",
    against: Sequence[str] = AGAINST,
) -> list[Case]:
    """What rules leave open of answers; of the cases, those of captions are put once, since there
    are several.

    Parameters
    ----------
    items : pandas.DataFrame
        An item table.
    answers : mapping of str to pandas.Series
        "dis" and "ref", or "dis" alone: text by name.
    mcq_rule : str
        See `MCQ_RULES`: with "letter_then_judge" a letter is not judged, with "letter" no choice
        is.
    against : sequence of {"dis", "ref", "com"}
        Which judgements are wanted; see `answerable`.

    Raises
    ------
    UnknownNameError
        There is no such rule.
    InputError
        Answers lack an item.
    """
    _check_rule(mcq_rule)
    for which, given in answers.items():
        _aligned(items, given, f"answers {which}")
    rows = items.to_dict("records")
    return [
        case for row in rows for which in against for case in _cases(row, which, answers, mcq_rule)
    ]


def answerable(answers: Mapping[str, pd.Series]) -> list[str]:
    """Which judgements are possible with the answers that are given."""
    return [
        which
        for which in AGAINST
        if ({"dis", "ref"} if which == "com" else {which}) <= set(answers)
    ]


def judgements(
    items: pd.DataFrame, found: Mapping[str, Verdicts], against: Sequence[str] = AGAINST
) -> tuple[dict[str, pd.Series], pd.DataFrame]:
    """What verdicts on open cases come to, for `score_items`: from 0 to 1 by item; NaN where there
    is none.

    Returns
    -------
    judged : dict of str to pandas.Series
        By what was judged.
    verdicts : pandas.DataFrame
        One row a case: name, against, caption (number, -1 for none), read and unread (tuples of
        what the judge said).
    """
    choices = set(items["name"][items["task"] == "MCQ"])
    judged = {
        which: pd.Series(np.nan, index=pd.Index(items["name"]), dtype="float64")
        for which in against
    }
    by_item: dict[tuple[str, str], list[Verdicts]] = {}
    rows = []
    for case, verdicts in found.items():
        which, caption, name = case.split("\n", 2)
        by_item.setdefault((which, name), []).append(verdicts)
        rows.append((name, which, int(caption), verdicts.read, verdicts.unread))
    for (which, name), group in by_item.items():
        if name in choices:
            majority = group[0].majority
            judged[which][name] = np.nan if majority is None else float(majority)
        elif read := [each.mean for each in group if not each.failed]:
            judged[which][name] = float(np.mean(read))
    return judged, pd.DataFrame(rows, columns=["name", "against", "caption", "read", "unread"])


def _cases(
    row: Mapping[Any, Any], which: str, answers: Mapping[str, pd.Series], rule: str
) -> list[Case]:
    name = row["name"]
    task = row["task"]
    compared = [answers[each][name] for each in (("dis", "ref") if which == "com" else (which,))]
    question = row["question"]
    keys = [row["key"]]
    if task == "MCQ":
        letters, _ = read_letters(pd.Series(compared, dtype=str))
        if rule == "letter" or (rule == "letter_then_judge" and (letters != "").all()):
            return []
        question += f"\n{lettered(row['options'])}"
        place = "ABCDE".index(row["key"])
        if place < len(row["options"]) and row["options"][place]:
            keys = [f"{row['key']}. {row['options'][place]}"]
    several = task == "CAP" and which != "com"
    if several:
        keys = row["key"]
    elif which == "com":
        keys = [str(compared[1])]
    return [
        Case(
            f"{which}\n{i if several else -1}\n{name}",
            _PROMPTS[task],
            question,
            key,
            str(compared[0]),
            once=several,
        )
        for i, key in enumerate(keys)
    ]
