"""Score items from answers and judgements: rules first, a judge for what they leave open.

An item's absolute robustness is the score of the answer about the corrupted image against the key.
Its relative robustness is the score of the answer about the reference image, times the agreement of
both answers. A judge's failures are counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from psyprobe._typing import BoolArray, FloatArray
from psyprobe.errors import InputError, unknown_name
from psyprobe.tasks.items import Case, Verdicts
from psyprobe.tasks.letters import read_letter
from psyprobe.tasks.r_bench.items import lettered
from psyprobe.tasks.tables import (
    first_column,
    read_answer_table,
    read_table,
    refuse_duplicates,
)

#: How a multiple-choice answer is scored. "published": right where its first character is the key,
#: or where the judge says so (for the agreement of both answers the judge alone). "judge": the
#: judge alone. "letter": the first character alone, for the agreement too; no judge is needed.
#: "letter_then_judge": the letter where the answer is one, the judge where it is not.
MCQ_RULES = ("published", "judge", "letter", "letter_then_judge")
#: Kinds of judgement: corrupted and reference against the key, and both against each other.
AGAINST = ("dis", "ref", "com")
_PROMPTS = {"MCQ": "rbench_choice", "VQA": "rbench_short", "CAP": "rbench_caption"}
#: Columns of answers: VLMEvalKit's, ours, lmms-eval's, and the authors'; the first is read.
_ANSWER_COLUMNS = ("prediction", "reply", "filtered_resps", "output", "answer")
#: Columns of the names of items; VLMEvalKit's index is the number of a row in a TSV.
_NAME_COLUMNS = ("name", "index", "doc_id")


def read_answers(path: str | Path) -> pd.Series:
    """Read a file of a model's answers about one image each.

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
    name = first_column(table, _NAME_COLUMNS)
    column = first_column(table, _ANSWER_COLUMNS)
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
    return _column_by_name(path, table.rename(columns={name: "name"}), column)


def _column_by_name(path: str | Path, table: pd.DataFrame, column: str) -> pd.Series:
    """Select a column indexed by name, without repeated rows."""
    distinct = table[["name", column]].drop_duplicates()
    problem = "is there twice with different contents; keep one of them"
    refuse_duplicates(distinct["name"], f"{path}:", problem)
    return distinct.set_index("name")[column]


def read_judgements(path: str | Path) -> pd.Series:
    """Read a file of the scores that a judge gave to answers.

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
    values = pd.to_numeric(_column_by_name(path, table, "result"), errors="coerce")
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
    """Score the absolute and relative robustness of each item.

    Parameters
    ----------
    items : pandas.DataFrame
        An item table, as from `psyprobe.tasks.r_bench.read_items`.
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
        The items with columns absolute and relative (NaN where answers or judgements that it needs
        are not given at all), and odd_key: whether the key names no option, so that nothing can be
        right.

    Raises
    ------
    InputError
        Answers or judgements lack an item, or the rule needs what is not given.
    """
    _check_rule(mcq_rule)
    columns = {f"answers {kind}": values for kind, values in (answers or {}).items()}
    columns |= {f"judged {kind}": values for kind, values in (judged or {}).items()}
    aligned = {name: _aligned(items, values, name) for name, values in columns.items()}
    choice = (items["task"] == "MCQ").to_numpy()
    key = np.array([value if isinstance(value, str) else "" for value in items["key"]])
    absolute = _scores_against_key(choice, key, aligned, mcq_rule, "dis")
    reference = _scores_against_key(choice, key, aligned, mcq_rule, "ref")
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
    option_index = np.array(["ABCDE".find(value) if value else -1 for value in key])
    return items.assign(
        absolute=np.nan if absolute is None else absolute,
        relative=np.nan if relative is None else relative,
        odd_key=choice & (option_index >= items["options"].map(len).to_numpy()),
    )


def _check_rule(rule: str) -> None:
    """Refuse an unknown rule for scoring multiple choice."""
    if rule not in MCQ_RULES:
        raise unknown_name("rule for multiple choice", rule, MCQ_RULES)


def _aligned(items: pd.DataFrame, values: pd.Series, name: str) -> pd.Series:
    """Put values by name into the order of items, refusing values that lack an item."""
    missing = items["name"][~items["name"].isin(values.index)]
    if len(missing):
        raise InputError(
            f"{name}: {len(missing)} of {len(items)} items are missing, the first {missing.iloc[0]}"
        )
    return values.loc[items["name"]]


def _scores_against_key(
    choice: BoolArray,
    key: FloatArray,
    aligned: Mapping[str, pd.Series],
    rule: str,
    kind: str,
) -> FloatArray | None:
    """Score answers against the key; None without answers and judgements."""
    answers = aligned.get(f"answers {kind}")
    judgements = aligned.get(f"judged {kind}")
    if answers is None and judgements is None:
        return None
    if judgements is None and (rule in ("published", "judge") or not choice.all()):
        raise InputError(
            f"judgements of {kind!r} are missing: short answers and captions have no rule "
            "without a judge"
        )
    if answers is None and rule != "judge":
        raise InputError(
            f"answers about {kind!r} are missing: the rule {rule!r} for multiple choice reads "
            "letters"
        )
    judged = _judged_scores(judgements, len(choice))
    if rule == "judge" or answers is None:
        return judged
    if rule == "letter_then_judge":
        letters = read_letters(answers)
        by_rule = np.where(letters != "", letters == key, judged)
    else:
        by_rule = (_initials(answers) == key).astype(np.float64)
    if rule == "published":
        # Right by its first character is right, whatever the judge could not say.
        by_rule = np.where(by_rule == 1, 1.0, judged)
    return np.where(choice, by_rule, judged)


def _agreement(
    choice: BoolArray, aligned: Mapping[str, pd.Series], rule: str
) -> FloatArray | None:
    """Score how far the answers to both images agree; None where only a judge could."""
    judgements = aligned.get("judged com")
    corrupted = aligned.get("answers dis")
    reference = aligned.get("answers ref")
    if judgements is None and (rule != "letter" or not choice.all()):
        return None
    judged = _judged_scores(judgements, len(choice))
    if rule in ("published", "judge") or corrupted is None or reference is None:
        return judged
    if rule == "letter":
        return np.where(choice, _initials(corrupted) == _initials(reference), judged)
    letters = read_letters(corrupted)
    reference_letters = read_letters(reference)
    by_letter = choice & (letters != "") & (reference_letters != "")
    return np.where(by_letter, letters == reference_letters, judged)


def _judged_scores(judgements: pd.Series | None, count: int) -> FloatArray:
    """Convert a judge's scores to an array; zeros where there was no judge."""
    return (
        np.zeros(count) if judgements is None else judgements.to_numpy(dtype=np.float64)
    )


def read_letters(answers: Iterable[str]) -> FloatArray:
    """Read the letter that each answer gives; "" where it gives none or several.

    Examples
    --------
    >>> read_letters(["B.", "Black", "(A) left", "A cat.", "The answer is **B**"]).tolist()
    ['B', '', 'A', '', 'B']
    """
    return np.array([read_letter(answer) for answer in answers], dtype=str)


def _initials(answers: pd.Series) -> FloatArray:
    """Return the first character of each answer."""
    return np.array([answer.strip()[:1] for answer in answers], dtype=str)


def open_cases(
    items: pd.DataFrame,
    answers: Mapping[str, pd.Series],
    *,
    mcq_rule: str = "letter_then_judge",
    against: Sequence[str] = AGAINST,
) -> list[Case]:
    """List what rules leave open as cases for a judge, captions once for each reference.

    Parameters
    ----------
    items : pandas.DataFrame
        An item table.
    answers : mapping of str to pandas.Series
        Texts by name of "dis" and "ref", or of "dis" alone.
    mcq_rule : str
        See `MCQ_RULES`: with "letter_then_judge" a letter is not judged, with "letter" no choice
        is.
    against : sequence of {"dis", "ref", "com"}
        Kinds of judgement to ask for; see `answerable`.

    Raises
    ------
    UnknownNameError
        There is no such rule.
    InputError
        Answers lack an item.
    """
    _check_rule(mcq_rule)
    for kind, texts in answers.items():
        _aligned(items, texts, f"answers {kind}")
    return [
        case
        for item in items.to_dict("records")
        for kind in against
        for case in _cases(item, kind, answers, mcq_rule)
    ]


def answerable(answers: Mapping[str, pd.Series]) -> list[str]:
    """List the kinds of judgement (of answers to "dis" or "ref", of both) that answers allow."""
    return [
        kind
        for kind in AGAINST
        if ({"dis", "ref"} if kind == "com" else {kind}) <= set(answers)
    ]


def judgements(
    items: pd.DataFrame,
    verdicts: Mapping[str, Verdicts],
    against: Sequence[str] = AGAINST,
) -> tuple[dict[str, pd.Series], pd.DataFrame]:
    """Score items by a judge's verdicts, from 0 to 1; NaN where there is none.

    Returns
    -------
    judged : dict of str to pandas.Series
        By kind of judgement, for `score_items`.
    verdicts : pandas.DataFrame
        One row a case: name, against, caption (number, -1 for none), read and unread (tuples of
        the judge's replies).
    """
    choices = set(items["name"][items["task"] == "MCQ"])
    rows = []
    for case, verdict in verdicts.items():
        kind, caption, name = case.split("\n", 2)
        score = verdict.majority if name in choices else verdict.mean
        rows.append((name, kind, int(caption), verdict.values, verdict.unread, score))
    columns = ["name", "against", "caption", "read", "unread", "score"]
    table = pd.DataFrame(rows, columns=columns).astype({"score": "float64"})
    scores = table.pivot_table("score", "name", "against")
    scores = scores.reindex(index=items["name"], columns=list(against))
    judged = {kind: scores[kind].astype("float64") for kind in against}
    return judged, table.drop(columns="score")


def _cases(
    item: Mapping[Any, Any], kind: str, answers: Mapping[str, pd.Series], rule: str
) -> list[Case]:
    """Build the judge's cases of one item and kind of judgement; none where a rule decides."""
    name = item["name"]
    task = item["task"]
    options = item["options"]
    texts = [
        str(answers[image][name])
        for image in (("dis", "ref") if kind == "com" else (kind,))
    ]
    question = item["question"]
    keys = [item["key"]]
    if task == "MCQ":
        if rule == "letter" or (
            rule == "letter_then_judge" and all(map(read_letter, texts))
        ):
            return []
        question += f"\n{lettered(options)}"
        option = dict(zip("ABCDE", options, strict=False)).get(item["key"])
        if option:
            keys = [f"{item['key']}. {option}"]
    several = task == "CAP" and kind != "com"
    if several:
        keys = item["key"]
    elif kind == "com":
        keys = [texts[1]]
    prompt = _PROMPTS[task]
    return [
        Case(
            f"{kind}\n{i if several else -1}\n{name}",
            prompt,
            question,
            key,
            texts[0],
            single_repeat=several,
        )
        for i, key in enumerate(keys)
    ]
