"""Read what a model replied to MVP-Bench, by named rules."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

import pandas as pd

from psyprobe.analysis.words.reply import read_reply
from psyprobe.errors import InputError, unknown_name
from psyprobe.files.json_types import JsonObject
from psyprobe.tasks.letters import read_letter
from psyprobe.tasks.mvp_bench.questions import split_choices
from psyprobe.tasks.tables import (
    first_column,
    read_answer_table,
    refuse_duplicates,
)

#: Columns of replies: ours, the benchmark's, VLMEvalKit's, lmms-eval's; the first is read.
_REPLY_COLUMNS = ("output", "prediction", "reply", "filtered_resps")
_ID_COLUMNS = ("question_id", "index", "doc_id")
_JUDGE = "extracted (GPT)"


def read_predictions(path: str | Path) -> pd.DataFrame:
    """Read a file of replies that were made elsewhere.

    Parameters
    ----------
    path : str or Path
        JSON lines as the benchmark's authors released them, or a VLMEvalKit table (.tsv, .csv,
        .xlsx, .json).

    Returns
    -------
    pandas.DataFrame
        Columns question_id (text), reply (text), judge (what a judge made of it: "yes", "no",
        "unknown", or "" where none was asked) and place (in the file, from 0). Rows that are there
        twice are taken once; their number is in ``attrs["doubled"]``.

    Raises
    ------
    InputError
        The file cannot be read, has no column of questions or replies, or holds two replies to one
        question.
    """
    rows = read_answer_table(path)
    columns: JsonObject = {}
    for kind, names in (("question_id", _ID_COLUMNS), ("reply", _REPLY_COLUMNS)):
        column = first_column(rows, names)
        if column is None:
            raise InputError(
                f"{path} has columns {', '.join(rows)}; one of {', '.join(names)} is needed"
            )
        columns[kind] = rows[column]
    # Text throughout: with a main run and a circular one in one frame, 7 and "7" would be two
    # questions.
    columns["judge"] = rows[_JUDGE].str.lower() if _JUDGE in rows else ""
    table = pd.DataFrame(columns)
    distinct = table.drop_duplicates().reset_index(names="place")
    problem = "has two different replies; keep one of them"
    refuse_duplicates(distinct["question_id"], f"{path}: question", problem)
    distinct.attrs["doubled"] = len(table) - len(distinct)
    return distinct


# -- the rules


# A file is read by each parser, and two of them share each rule.
@lru_cache(maxsize=8192)
def parse_reply(
    reply: str, task: str, run: str, question: str = "", rule: str = "published"
) -> str:
    """Read which answer a reply gives.

    Parameters
    ----------
    reply : str
        The model's reply.
    task : {"yes_no", "single_mcq", "cross_mcq"}
        Task of the question.
    run : {"main", "circular"}
        Run of the question; the benchmark reads letters more strictly in the circular one.
    question : str
        The prompt; the lenient rule takes the text of an option for its letter.
    rule : {"published", "lenient"}
        "published": the head of the reply, up to the first full stop and comma (in the main run of
        multiple choice also up to a bracket), must be the answer itself. "lenient": the one option
        that the reply names, wherever it stands.

    Returns
    -------
    str
        "yes", "no", a letter, or "" where it says none of these.

    Raises
    ------
    UnknownNameError
        There is no such rule.

    Examples
    --------
    >>> texts = ("Yes.", "yes, because", " no", "No the man")
    >>> [parse_reply(text, "yes_no", "main") for text in texts]
    ['yes', 'yes', 'no', '']
    >>> parse_reply("(B)", "single_mcq", "circular"), parse_reply("(B)", "single_mcq", "main")
    ('', 'B')
    """
    if rule not in ("published", "lenient"):
        raise unknown_name("rule that reads replies", rule, ("published", "lenient"))
    allowed = ("yes", "no") if task == "yes_no" else tuple("ABCDE")
    if rule == "lenient":
        options = split_choices(question)[1]
        answer = (
            read_reply(reply, question=question)
            if task == "yes_no"
            else read_letter(reply, options)
        )
        return answer if answer in allowed else ""
    bracketed = task != "yes_no" and run != "circular"
    for mark in ".,)" if bracketed else ".,":
        reply = reply.strip().split(mark)[0]
    head = reply.strip()
    if task == "yes_no":
        head = head.casefold()
    elif bracketed:
        head = head.strip("()[]{} ").upper()
    return head if head in allowed else ""


#: Parsers by name: the rule, and whether a stored judgement decides what it leaves open.
PARSERS: Mapping[str, tuple[str, bool]] = {
    "rule": ("published", False),
    "rule+judge": ("published", True),
    "lenient": ("lenient", False),
    "lenient+judge": ("lenient", True),
}


def parse_replies(
    questions: pd.DataFrame, predictions: pd.DataFrame, parser: str = "rule"
) -> pd.DataFrame:
    """Join questions with replies, and read which answer each reply gives.

    Parameters
    ----------
    questions : pandas.DataFrame
        A question table, as from `psyprobe.tasks.mvp_bench.read_questions`.
    predictions : pandas.DataFrame
        Replies as from `read_predictions`; may hold further questions.
    parser : {"rule", "rule+judge", "lenient", "lenient+judge"}
        Parser of `PARSERS`. A judge decides only yes/no replies that the rule leaves open, and only
        where its stored judgement is there.

    Returns
    -------
    pandas.DataFrame
        The questions that have a reply, with columns reply and response, the answer as read;
        ``attrs["without_reply"]`` counts the others.

    Raises
    ------
    InputError
        No question has a reply.

    Examples
    --------
    >>> questions = pd.DataFrame(
    ...     {"question_id": [1], "task": "yes_no", "run": "", "question": "Is it red?"}
    ... )
    >>> replies = pd.DataFrame({"question_id": [1], "reply": ["Yes."]})
    >>> parse_replies(questions, replies)["response"].tolist()
    ['yes']
    """
    if parser not in PARSERS:
        raise unknown_name("parser", parser, PARSERS)
    rule, judged = PARSERS[parser]
    table = questions.merge(
        predictions, on="question_id", how="inner", validate="one_to_one"
    )
    if not len(table):
        raise InputError(
            "none of the questions has a reply: the question_id of questions and predictions do "
            "not agree, as "
            f"{questions['question_id'].iloc[0]!r} and {predictions['question_id'].iloc[0]!r}"
        )
    columns = table[["reply", "task", "run", "question"]].to_numpy()
    table["response"] = [
        parse_reply(reply, task, run, question, rule)
        for reply, task, run, question in columns
    ]
    if judged:
        is_open = (table["response"] == "") & (table["task"] == "yes_no")
        decided = is_open & table["judge"].isin(["yes", "no"])
        table.loc[decided, "response"] = table["judge"]
    table.attrs["without_reply"] = len(questions) - len(table)
    return table
