"""Read the same replies by other rules, and score the run under each.

References
----------
Duan et al. (2024). VLMEvalKit: an open-source toolkit for evaluating large multi-modality models.
ACM Multimedia; its rule for yes/no questions is written anew here from what it does.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from psyprobe.analysis.score import Recorded, percent
from psyprobe.analysis.words.reply import Reading
from psyprobe.analysis.words.trial_table import trials
from psyprobe.experiment.prompts import Prompt
from psyprobe.running.task import task_of

if TYPE_CHECKING:
    import xarray as xr

#: Reads a reply: yes, no or invalid, from the words for either answer.
Reader: TypeAlias = Callable[[str, Sequence[str], Sequence[str]], Reading]
#: The variable of a result that holds what a judge made of each reply, and what it is called as a
#: reader.
JUDGE_READING = "judge_reading"
JUDGE = "judge"

_PUNCTUATION = ';/[]"{}()=+\\_-><@`,?!'
#: The rule takes out so many periods and no more: a flag of the pattern stands where their number
#: belongs.
_PERIODS = 32


def first_word(text: str, yes: Sequence[str], no: Sequence[str]) -> Reading:
    """Read the first word alone, whatever follows.

    Examples
    --------
    >>> first_word("**Yes**, but not much", ["yes"], ["no"])
    'yes'
    >>> first_word("There is none", ["yes"], ["no"])
    'invalid'
    """
    word = next((word.casefold() for word in re.split(r"[\W_]+", text) if word), "")
    if word in {answer.casefold() for answer in yes}:
        return "yes"
    return "no" if word in {answer.casefold() for answer in no} else "invalid"


def vlmevalkit(text: str, yes: Sequence[str], no: Sequence[str]) -> Reading:
    """Read a reply by VLMEvalKit's rule: one of the two answers is among its words, not the other.

    A mark of punctuation is taken out everywhere where it has a space beside it anywhere in the
    reply, or a comma stands between digits; else it becomes a space. Colons and asterisks stay, so
    that "**Yes**" is no word that counts.

    A mark of punctuation is taken out everywhere where a space is beside it anywhere in the reply,
    or a comma between digits; else it becomes a space. Colons and asterisks stay, so that "**Yes**"
    is no word that counts.

    Examples
    --------
    >>> texts = ("Yes.", "**Yes**", "Yes, there is no doubt")
    >>> [vlmevalkit(text, ["yes"], ["no"]) for text in texts]
    ['yes', 'invalid', 'invalid']
    """
    lower = text.lower()
    words = lower
    numbers = re.search(r"\d,\d", lower)
    for mark in _PUNCTUATION:
        spaced = f"{mark} " in lower or f" {mark}" in lower or numbers
        words = words.replace(mark, "" if spaced else " ")
    reply_words = set(re.sub(r"\.(?!\d)", "", words, count=_PERIODS).split())
    occurs = [any(word.lower() in reply_words for word in side) for side in (yes, no)]
    if occurs[0] == occurs[1]:
        return "invalid"
    return "yes" if occurs[0] else "no"


#: Readers by name, beside psyprobe's own rules.
READERS: Mapping[str, Reader] = {"first word": first_word, "VLMEvalKit": vlmevalkit}


@dataclass(frozen=True)
class Rereading(Recorded):
    """How another reader differs from psyprobe's rules, and the score under it."""

    reader: str
    #: Replies of which a text was wanted.
    n: int
    #: Share of these that it reads otherwise: yes, no, or neither.
    differ: float
    #: Share that it reads as the opposite.
    opposite: float
    #: Share that is neither yes nor no to it.
    excluded: float
    #: Statistics of the score under it; empty where probabilities are read and not words, or
    #: nothing can be scored.
    score: Mapping[str, float | None]

    @property
    def cells(self) -> dict[str, str]:
        """Format its shares for a table of scores."""
        shares = {
            "differs": self.differ,
            "opposite": self.opposite,
            "left out": self.excluded,
        }
        return {name: percent(share, 2) for name, share in shares.items()}


def readings_of(result: xr.Dataset) -> dict[str, np.ndarray]:
    """Read the replies of a run by each of the other readers.

    Parameters
    ----------
    result : xarray.Dataset
        Of a questioning run; with a variable `judged`, the judge is one of the readers.

    Returns
    -------
    dict of str to ndarray of str, shape (trial,)
        By reader, before polarity: "yes", "no" or "invalid".
    """
    result = trials(result)
    prompts = [prompt for prompt, _ in _interpreted_prompts(result)]
    texts = result["text"].values.astype(str).tolist()
    readings: dict[str, np.ndarray] = {}
    for name, reader in READERS.items():
        replies = zip(texts, prompts, strict=True)
        answers = [reader(text, prompt.yes, prompt.no) for text, prompt in replies]
        readings[name] = np.array(answers, dtype=object)
    if JUDGE_READING in result:
        readings[JUDGE] = result[JUDGE_READING].values.astype(str).astype(object)
    return readings


def reread(result: xr.Dataset, reading: np.ndarray) -> xr.Dataset:
    """Replace readings and responses by those of another reader, where text counts.

    Parameters
    ----------
    result : xarray.Dataset
        Of a questioning run.
    reading : ndarray of str, shape (trial,)
        Of `readings_of`.
    """
    result = trials(result)
    inverted = np.array([polarity < 0 for _, polarity in _interpreted_prompts(result)])
    yes = np.where(reading == "yes", 1.0, np.where(reading == "no", 0.0, np.nan))
    by_words = result["readout"].values.astype(str) == "text"
    by_words_shown = by_words & result["was_shown"].values.astype(bool)
    response = np.where(
        by_words_shown, np.where(inverted, 1 - yes, yes), result["response"].values
    )
    readings = np.where(by_words_shown, reading, result["reading"].values)
    return result.assign(
        response=(("trial",), response, result["response"].attrs),
        reading=(("trial",), readings, result["reading"].attrs),
    )


def _interpreted_prompts(result: xr.Dataset) -> list[tuple[Prompt, int]]:
    """List the prompt by which each reply is read, and whether its yes means "seen" (1 or -1)."""
    prompts = {
        load["id"]: Prompt.from_dict(load)
        for load in json.loads(result.attrs.get("prompts", "[]"))
    }
    alternatives = task_of(result).alternatives
    names = result["prompt"].values.astype(str).tolist()
    orders = (
        result["order"].values.astype(int).tolist()
        if "order" in result
        else [0] * len(names)
    )
    interpreted: dict[tuple[str, int], tuple[Prompt, int]] = {}
    for name, order in dict.fromkeys(pairs := list(zip(names, orders, strict=True))):
        interpreted[name, order] = prompts[name].interpret(order, alternatives)
    return [interpreted[pair] for pair in pairs]


def rereadings(
    result: xr.Dataset,
    statistics: Mapping[str, float | None],
    score: Callable[[xr.Dataset], Mapping[str, float | None]],
) -> tuple[Rereading, ...]:
    """Compare each other reader with psyprobe's rules, on the replies of a run.

    Parameters
    ----------
    result : xarray.Dataset
        Of a questioning run.
    statistics : mapping of str to float or None
        Its statistics under the rules.
    score : callable
        From a result to its statistics; called once for each reader that differs.

    Returns
    -------
    tuple of Rereading
        One a reader; none where no text was wanted.
    """
    result = trials(result)
    if not {"text", "reading", "reply_requested", "prompt", "readout"} <= set(
        result.variables
    ):
        return ()
    requested = result["reply_requested"].values.astype(bool)
    if not requested.any():
        return ()
    rule_readings = result["reading"].values.astype(str)
    rule_readings = np.where(
        np.isin(rule_readings, ("yes", "no")), rule_readings, "invalid"
    )[requested]
    scored_by_text = bool((result["readout"].values.astype(str) == "text").any())
    results = []
    for name, reading in readings_of(result).items():
        other_readings = reading[requested].astype(str)
        differ = other_readings != rule_readings
        opposite = differ & (other_readings != "invalid") & (rule_readings != "invalid")
        other_statistics: Mapping[str, float | None] = {}
        if scored_by_text and (other_readings != "invalid").any():
            other_statistics = (
                score(reread(result, reading)) if differ.any() else statistics
            )
        results.append(
            Rereading(
                name,
                len(rule_readings),
                differ=float(differ.mean()),
                opposite=float(opposite.mean()),
                excluded=float((other_readings == "invalid").mean()),
                score=other_statistics,
            )
        )
    return tuple(results)
