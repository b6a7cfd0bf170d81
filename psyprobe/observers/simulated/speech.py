"""Choose the words of a simulated observer: which a prompt asks for, and how it says them."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Sequence

from psyprobe.files.parsing import packaged_toml

INTERVAL_WORDS = ("First", "Second")
#: Words for the directions of stripes, in the order in which they are named, and the orientation of
#: each, deg.
DIRECTIONS = {"Vertical": 0.0, "Horizontal": 90.0, "Rising": 135.0, "Falling": 45.0}
#: Lists of words and phrases; comments in ``speech.toml`` describe each.
_PHRASES = packaged_toml("psyprobe.observers.simulated", "speech.toml")
REVERSED_WORDS: tuple[str, ...] = tuple(_PHRASES["reversed"])
_PAIRS: list[tuple[str, str]] = [(yes, no) for yes, no in _PHRASES["pairs"]]
#: Spellings of an answer, with the share of its probability that each has.
_SPELLINGS = (("{0}", 0.9), ("{lower}", 0.07), (" {0}", 0.03))
#: The likeliest first token besides the answers.
_OPENERS = {"answer": "The", "unparsed": "The", "refusal": "I"}
#: The least probability in a softmax of the words.
_MIN_PROBABILITY = math.exp(-30.0)


def words_of(text: str) -> set[str]:
    """Split a text into lower-case words."""
    return set(re.findall(r"\w+", text.casefold()))


def words_for(prompt: str) -> tuple[str, ...]:
    """Find the words for yes and no, or for directions, that a prompt asks for.

    Examples
    --------
    >>> words_for("Ist ein Muster zu sehen? Antworte mit ja oder nein.")
    ('Ja', 'Nein')
    """
    prompt_words = words_of(prompt)
    for words in (tuple(DIRECTIONS), *_PAIRS):
        if {word.casefold() for word in words} <= prompt_words:
            return words
    return _PAIRS[0]


def draw_answer(
    probabilities: Sequence[float], temperature: float, quantile: float
) -> int:
    """Draw the index of an answer; at temperature 0 the likeliest.

    Parameters
    ----------
    probabilities : sequence of float
        Probability of each answer; their sum is 1.
    temperature : float
        Temperature of the sampling.
    quantile : float
        A random number from 0 to 1, which decides.

    Examples
    --------
    >>> draw_answer((0.3, 0.7), 1.0, 0.2), draw_answer((0.3, 0.7), 1.0, 0.4)
    (0, 1)
    >>> draw_answer((0.25, 0.25, 0.3, 0.2), 0.0, 0.1)
    2
    """
    indices = range(len(probabilities))
    if not temperature:
        return max(indices, key=lambda index: (probabilities[index], index))
    logs = [math.log(max(p, _MIN_PROBABILITY)) / temperature for p in probabilities]
    weights = [math.exp(log - max(logs)) for log in logs]
    ends = itertools.accumulate(weight / sum(weights) for weight in weights)
    return next(
        (index for index, end in enumerate(ends) if quantile < end), indices[-1]
    )


def reply(
    kind: str, index: int, words: tuple[str, ...], quantile: float, is_reversed: bool
) -> str:
    """Write a reply in words that gives an answer.

    Parameters
    ----------
    kind : {"answer", "refusal", "unparsed"}
        The kind of reply.
    index : int
        The word that answers, among `words`.
    words : tuple of str
        The words that the prompt asks for.
    quantile : float
        A random number from 0 to 1, which picks the phrase.
    is_reversed : bool
        Whether yes means that nothing is seen.

    Examples
    --------
    >>> reply("answer", 0, ("Yes", "No"), 0.99, False)
    'Yes, there is a pattern visible in the image.'
    """
    phrases: list[str] = _PHRASES[kind]
    if kind == "answer" and words != _PAIRS[0]:
        phrases = phrases[:-1]  # sentences are spoken in English only
    phrase = phrases[min(int(quantile * len(phrases)), len(phrases) - 1)]
    word = words[index]
    sentence = _PHRASES["rest"]["no" if index else "yes"][is_reversed]
    return phrase.format(word, lower=word.lower(), rest=sentence)


def first_tokens(
    kind: str,
    probabilities: Sequence[float],
    words: tuple[str, ...],
    answer_mass: float,
) -> tuple[tuple[str, float], ...]:
    """Compute log-probabilities of the first token, likeliest first.

    Parameters
    ----------
    kind : {"answer", "refusal", "unparsed"}
        The kind of reply.
    probabilities : sequence of float
        Probability of each word among the words.
    words : tuple of str
        The words that the prompt asks for.
    answer_mass : float
        Probability of all words together where the reply is an answer.

    Examples
    --------
    >>> first_tokens("answer", (0.8, 0.2), ("Yes", "No"), 0.98)[:2]
    (('Yes', -0.34870...), ('No', -1.73500...))
    """
    mass = answer_mass if kind == "answer" else 0.03
    token_probabilities: dict[str, float] = {}
    bounded = [max(p, 1e-12) for p in probabilities]
    for word, p in zip(words, bounded, strict=True):
        for spelling, share in _SPELLINGS:
            token = spelling.format(word, lower=word.lower())
            token_probabilities[token] = mass * p / sum(bounded) * share
    openers = dict.fromkeys([_OPENERS[kind], *_PHRASES["openers"]])
    weights = [
        1 / (rank + 1) ** (1 if kind == "answer" else 4) for rank in range(len(openers))
    ]
    for token, weight in zip(openers, weights, strict=True):
        token_probabilities[token] = max((1 - mass) * weight / sum(weights), 1e-12)
    pairs = [(token, math.log(p)) for token, p in token_probabilities.items()]
    return tuple(sorted(pairs, key=lambda pair: -pair[1]))


def tokens(text: str) -> list[str]:
    """Split a text into pieces about as long as tokens.

    Examples
    --------
    >>> tokens("Yes, there is.")
    ['Yes', ',', ' there', ' is', '.']
    """
    return re.findall(r"\s*\w+|\s*[^\w\s]|\s+$", text)


def cut(text: str, max_tokens: int) -> tuple[str, str, int]:
    """Cut a text to a number of tokens; return it, why it ended, and its tokens.

    Examples
    --------
    >>> cut("Yes, there is.", 3)
    ('Yes, there', 'length', 3)
    """
    pieces = tokens(text)
    if len(pieces) <= max_tokens:
        return text, "stop", len(pieces)
    return "".join(pieces[:max_tokens]), "length", max_tokens
