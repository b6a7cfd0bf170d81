"""How a simulated observer puts its answers: words, first tokens and where the text is cut off."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

#: Words of a prompt that ask whether there is nothing to be seen.
REVERSED_WORDS = (
    "uniform", "blank", "empty", "plain", "featureless", "homogeneous", "flat", "nothing", "free",
    "gleichmäßig", "einfarbig", "einheitlich", "leer", "uniforme", "homogène", "vide", "homogéneo", "vacía",
    "均匀", "空白", "纯色",
)  # fmt: skip
#: (yes, no) by language: the pair is spoken whose both words stand in the prompt.
_PAIRS = (
    ("Yes", "No"),
    ("Ja", "Nein"),
    ("Oui", "Non"),
    ("Sí", "No"),
    ("Si", "No"),
    ("Sì", "No"),
    ("Sim", "Não"),
    ("Ja", "Nee"),
    ("Да", "Нет"),
    ("是", "否"),
)
FORCED_CHOICE = ("First", "Second")

_ANSWERS = ("{0}", "{0}", "{0}.", "{0}.", "{lower}", "{0}, {rest}")
_REST = {
    (True, False): "there is a pattern visible in the image.",
    (False, False): "there is no visible pattern in the image.",
    (True, True): "it is.",
    (False, True): "it is not.",
}
_REFUSALS = (
    "I'm sorry, but I can't assist with that.",
    "I'm unable to view images directly.",
    "I cannot process the image; please provide a description.",
)
_UNPARSED = (
    "The image is a square.",
    "The picture shows something grey.",
    "The image has a resolution of 256 by 256 pixels.",
)
#: First tokens other than the answers, likeliest first; many, so that a listing of twenty hides an unlikely answer.
_OTHERS = (
    "The", "There", "I", "It", "In", "This", "A", "Based", "Upon", "Looking", "Sure", "Well", "**", "Answer", "To",
    "As", "While", "Here", "From", "An", "Image", "One", "Of", "What", "At", "Some", "With", "Given", "Maybe", "Not",
)  # fmt: skip
#: Spellings of an answer that share its probability.
_SPELLINGS = (("{0}", 0.9), ("{lower}", 0.07), (" {0}", 0.03))


def pair_for(prompt: str) -> tuple[str, str]:
    """The words for yes and no that a prompt asks for.

    Examples
    --------
    >>> pair_for("Ist ein Muster zu sehen? Antworte mit ja oder nein.")
    ('Ja', 'Nein')
    """
    words = set(re.findall(r"\w+", prompt.casefold()))
    return next((pair for pair in _PAIRS if {each.casefold() for each in pair} <= words), _PAIRS[0])


def reply(kind: str, affirmative: bool, pair: tuple[str, str], wording: float, turned: bool) -> str:
    """What it says: "answer", "refusal" or "unparsed", the first or the second of a pair of answers.

    `wording`, from 0 to 1, picks among the ways to put it; `turned` is whether yes means that nothing is seen.

    Examples
    --------
    >>> reply("answer", True, ("Yes", "No"), 0.99, False)
    'Yes, there is a pattern visible in the image.'
    """
    if kind != "answer":
        return _pick(_REFUSALS if kind == "refusal" else _UNPARSED, wording)
    word = pair[0 if affirmative else 1]
    # Sentences are spoken in English only.
    ways = _ANSWERS if pair == _PAIRS[0] else _ANSWERS[:-1]
    return _pick(ways, wording).format(word, lower=word.lower(), rest=_REST[affirmative, turned])


def first_tokens(kind: str, p: float, pair: tuple[str, str], answer_mass: float) -> tuple[tuple[str, float], ...]:
    """Log-probabilities of the first token, likeliest first, of which `answer_mass` are an answer where it answers.

    `p` is the probability of the first of the pair among both; the probabilities of all tokens add up to 1.

    Examples
    --------
    >>> first_tokens("answer", 0.8, ("Yes", "No"), 0.98)[:2]
    (('Yes', -0.34870...), ('No', -1.73500...))
    """
    mass = answer_mass if kind == "answer" else 0.03
    opener = "The" if kind == "unparsed" else "I"
    found: dict[str, float] = {}
    sides = (max(p, 1e-12), max(1 - p, 1e-12))
    for word, side in zip(pair, sides, strict=True):
        for spelling, share in _SPELLINGS:
            found[spelling.format(word, lower=word.lower())] = mass * side / sum(sides) * share
    others = _OTHERS if kind == "answer" else (opener, *(each for each in _OTHERS if each != opener))
    weights = [1 / (rank + 1) ** (1 if kind == "answer" else 4) for rank in range(len(others))]
    for word, weight in zip(others, weights, strict=True):
        found[word] = max((1 - mass) * weight / sum(weights), 1e-12)
    return tuple(sorted(((word, math.log(chance)) for word, chance in found.items()), key=lambda each: -each[1]))


def tokens(text: str) -> list[str]:
    """Text in pieces of about the size of tokens, which together are the text.

    Examples
    --------
    >>> tokens("Yes, there is.")
    ['Yes', ',', ' there', ' is', '.']
    """
    return re.findall(r"\s*\w+|\s*[^\w\s]|\s+$", text)


def cut(text: str, max_tokens: int) -> tuple[str, str, int]:
    """Text up to so many tokens, why it ended, and how many tokens it has.

    Examples
    --------
    >>> cut("Yes, there is.", 3)
    ('Yes, there', 'length', 3)
    """
    pieces = tokens(text)
    if len(pieces) <= max_tokens:
        return text, "stop", len(pieces)
    return "".join(pieces[:max_tokens]), "length", max_tokens


def _pick(ways: Sequence[str], wording: float) -> str:
    return ways[min(int(wording * len(ways)), len(ways) - 1)]
