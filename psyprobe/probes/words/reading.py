"""What an answer says: its words, the probability that it begins with yes, and which of the two counts.

Answers are stored word for word and read anew whenever a result is made.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from psyprobe.analysis.words.reply import read_first_token, read_reply
from psyprobe.experiment.prompts import Prompt
from psyprobe.observers.chat.answering import Answer

Readout: TypeAlias = Literal["text", "p_yes"]

#: Probability that must go to yes and no together for the first token to count as the answer.
LEAST_MASS = 0.5


@dataclass(frozen=True)
class Read:
    """An answer as it was read.

    Parameters
    ----------
    text : str
        "yes", "no", "ambiguous", "refusal" or "invalid".
    p_yes, logit, mass : float
        Of the first token: probability of yes among yes and no, its log odds (natural), and the probability of both
        together; NaN where the observer gives none.
    censored : bool
        Whether one of the two words was too unlikely to be listed, so that the log odds are a bound.
    """

    text: str
    p_yes: float = math.nan
    logit: float = math.nan
    mass: float = math.nan
    censored: bool = False


def read_answer(answer: Answer, prompt: Prompt) -> Read:
    """Read an answer in both ways.

    Parameters
    ----------
    answer : Answer
        As it came.
    prompt : Prompt
        Whose words count as yes and no.

    Returns
    -------
    Read
        Before polarity: "yes" is what was said.

    Examples
    --------
    >>> read_answer(Answer("Yes.", (("Yes", -0.1), ("No", -2.4)), complete=True), Prompt("base", "Is it?")).text
    'yes'
    """
    text = read_reply(answer.text, yes=prompt.yes, no=prompt.no, polarity=prompt.polarity)
    token = None
    if answer.first_tokens:
        token = read_first_token(answer.first_tokens, answer.complete, prompt.yes, prompt.no)
    if token is None:
        return Read(text)
    return Read(text, token.p_yes, token.logit, token.mass, token.censored)


def readout_of(answers: Iterable[Read], wanted: str) -> Readout:
    """Which reading of the answers to one prompt counts.

    Parameters
    ----------
    answers : iterable of Read
        Of one observer to one prompt.
    wanted : {"auto", "text", "p_yes"}
        As the experiment has it. "auto" takes probabilities where the median answer gives at least half of it to yes
        and no; an answer without probabilities gives none.

    Returns
    -------
    {"text", "p_yes"}

    Examples
    --------
    >>> readout_of([Read("yes", 0.9, 2.2, 0.98)], "auto"), readout_of([Read("yes")], "auto")
    ('p_yes', 'text')
    """
    if wanted == "text":
        return "text"
    if wanted == "p_yes":
        return "p_yes"
    masses = np.nan_to_num([each.mass for each in answers])
    usable = masses.size > 0 and float(np.median(masses)) >= LEAST_MASS
    return "p_yes" if usable else "text"


def said(answer: Read | None, readout: Readout, polarity: int) -> float:
    """What an answer counts as.

    Parameters
    ----------
    answer : Read or None
        None where nothing was asked.
    readout : {"text", "p_yes"}
        Which reading counts.
    polarity : {1, -1}
        -1 turns it round.

    Returns
    -------
    float
        1 for yes, 0 for no, a probability in between; NaN where the answer is excluded.

    Examples
    --------
    >>> said(Read("no"), "text", -1), said(Read("refusal"), "text", 1)
    (1.0, nan)
    """
    if answer is None:
        return math.nan
    if readout == "text":
        value = {"yes": 1.0, "no": 0.0}.get(answer.text, math.nan)
    else:
        value = answer.p_yes if answer.mass >= LEAST_MASS else math.nan
    return 1 - value if polarity < 0 else value


def polarity(prompt: Prompt, order: int) -> int:
    """Whether "yes" means that the pattern was seen.

    Parameters
    ----------
    prompt : Prompt
        A reversed one asks whether nothing is there.
    order : int
        Place of the pattern among the images; with two intervals "yes" stands for the first.

    Returns
    -------
    {1, -1}
    """
    return prompt.polarity if order == 0 else -prompt.polarity
