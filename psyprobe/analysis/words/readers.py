"""The same replies read by other rules, and what the score would be under each.

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
    """The first word alone, whatever follows.

    Examples
    --------
    >>> first_word("**Yes**, but not much", ["yes"], ["no"]), first_word("There is none", ["yes"], ["no"])
    ('yes', 'invalid')
    """
    word = next((word.casefold() for word in re.split(r"[\W_]+", text) if word), "")
    if word in {each.casefold() for each in yes}:
        return "yes"
    return "no" if word in {each.casefold() for each in no} else "invalid"


def vlmevalkit(text: str, yes: Sequence[str], no: Sequence[str]) -> Reading:
    """VLMEvalKit's rule: one of the two answers is among the words of the reply, and the other is
    not.

    A mark of punctuation is taken out everywhere where a space is beside it anywhere in the reply,
    or a comma between digits; else it becomes a space. Colons and asterisks stay, so that "**Yes**"
    is no word that counts.

    Examples
    --------
    >>> [vlmevalkit(text, ["yes"], ["no"]) for text in ("Yes.", "**Yes**", "Yes, there is no doubt")]
    ['yes', 'invalid', 'invalid']
    """
    lower = text.lower()
    words = lower
    numbers = re.search(r"\d,\d", lower)
    for mark in _PUNCTUATION:
        beside = f"{mark} " in lower or f" {mark}" in lower or numbers
        words = words.replace(mark, "" if beside else " ")
    said = set(re.sub(r"\.(?!\d)", "", words, count=_PERIODS).split())
    found = [any(each.lower() in said for each in side) for side in (yes, no)]
    if found[0] == found[1]:
        return "invalid"
    return "yes" if found[0] else "no"


#: By name, beside psyprobe's own rules.
READERS: Mapping[str, Reader] = {"first word": first_word, "VLMEvalKit": vlmevalkit}


@dataclass(frozen=True)
class Rereading(Recorded):
    """How another reader differs from the rules, and what comes of it."""

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
        """Its shares, as a table of scores shows them."""
        shares = {"differs": self.differ, "opposite": self.opposite, "left out": self.excluded}
        return {name: percent(share, 2) for name, share in shares.items()}


def readings_of(result: xr.Dataset) -> dict[str, np.ndarray]:
    """What other readers make of the replies of a run.

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
    wordings = [wording for wording, _ in _asked(result)]
    pairs = list(zip(result["text"].values.astype(str).tolist(), wordings, strict=True))
    found: dict[str, np.ndarray] = {}
    for name, read in READERS.items():
        known = {
            (text, wording): read(text, wording.yes, wording.no)
            for text, wording in dict.fromkeys(pairs)
        }
        found[name] = np.array([known[pair] for pair in pairs], dtype=object)
    if JUDGE_READING in result:
        found[JUDGE] = result[JUDGE_READING].values.astype(str).astype(object)
    return found


def reread(result: xr.Dataset, reading: np.ndarray) -> xr.Dataset:
    """A run of which the words count, as another reader has it.

    Parameters
    ----------
    result : xarray.Dataset
        Of a questioning run.
    reading : ndarray of str, shape (trial,)
        Of `readings_of`.
    """
    result = trials(result)
    turned = np.array([polarity < 0 for _, polarity in _asked(result)])
    yes = np.where(reading == "yes", 1.0, np.where(reading == "no", 0.0, np.nan))
    by_words = result["readout"].values.astype(str) == "text"
    asked = by_words & result["was_shown"].values.astype(bool)
    response = np.where(asked, np.where(turned, 1 - yes, yes), result["response"].values)
    readings = np.where(asked, reading, result["reading"].values)
    return result.assign(
        response=(("trial",), response, result["response"].attrs),
        reading=(("trial",), readings, result["reading"].attrs),
    )


def _asked(result: xr.Dataset) -> list[tuple[Prompt, int]]:
    """Of each question the wording by which its reply is read, and whether its yes means "seen"."""
    prompts = {
        load["id"]: Prompt.from_dict(load) for load in json.loads(result.attrs.get("prompts", "[]"))
    }
    alternatives = task_of(result).alternatives
    names = result["prompt"].values.astype(str).tolist()
    orders = result["order"].values.astype(int).tolist() if "order" in result else [0] * len(names)
    known: dict[tuple[str, int], tuple[Prompt, int]] = {}
    for name, order in dict.fromkeys(pairs := list(zip(names, orders, strict=True))):
        known[name, order] = prompts[name].interpret(order, alternatives)
    return [known[pair] for pair in pairs]


def rereadings(
    result: xr.Dataset,
    own: Mapping[str, float | None],
    score: Callable[[xr.Dataset], Mapping[str, float | None]],
) -> tuple[Rereading, ...]:
    """Read the replies of a run by every other reader.

    Parameters
    ----------
    result : xarray.Dataset
        Of a questioning run.
    own : mapping of str to float or None
        Its statistics under the rules.
    score : callable
        From a result to its statistics; called once for each reader that differs.

    Returns
    -------
    tuple of Rereading
        One a reader; none where no text was wanted.
    """
    result = trials(result)
    if not {"text", "reading", "reply_requested", "prompt", "readout"} <= set(result.variables):
        return ()
    asked = result["reply_requested"].values.astype(bool)
    if not asked.any():
        return ()
    ours = result["reading"].values.astype(str)
    ours = np.where(np.isin(ours, ("yes", "no")), ours, "invalid")[asked]
    words = bool((result["readout"].values.astype(str) == "text").any())
    found = []
    for name, reading in readings_of(result).items():
        theirs = reading[asked].astype(str)
        differ = theirs != ours
        opposite = differ & (theirs != "invalid") & (ours != "invalid")
        under: Mapping[str, float | None] = {}
        if words and (theirs != "invalid").any():
            under = score(reread(result, reading)) if differ.any() else own
        shares = [float(each.mean()) for each in (differ, opposite, theirs == "invalid")]
        found.append(Rereading(name, len(ours), shares[0], shares[1], shares[2], under))
    return tuple(found)
