"""Plain text of replies, its sentences, and the phrases that are looked for in them."""

from __future__ import annotations

import re
import unicodedata
from typing import Literal, TypeAlias

from psyprobe.files.parsing import packaged_toml

Reading: TypeAlias = Literal["yes", "no", "ambiguous", "refusal", "invalid"]
#: Characters of a reply that are read at its start, and as many at its end: nobody decides later in
#: more.
_READ = 2000
_TABLE = packaged_toml("psyprobe.analysis.words", "reply_phrases.toml")
ENGLISH_WORDS: dict[str, list[str]] = _TABLE.pop("english")
#: Words that decide and are often misspelled.
_OFTEN_MISSPELLED: list[str] = _TABLE.pop("often_misspelled")["words"]
#: Words of kinds of patterns, by kind.
KINDS = {
    kind: re.compile(f"(?i)(?<![a-z])(?:{words.replace(chr(10), '')})(?![a-z])")
    for kind, words in _TABLE.pop("kinds").items()
}
#: Patterns and what takes their place, in their order, by step.
_REPLACEMENTS = {
    step: [(re.compile(pattern), text) for pattern, text in pairs]
    for step, pairs in _TABLE.pop("replacements").items()
}


class _Phrases(dict[str, re.Pattern[str]]):
    """Patterns by name, each compiled when it is first looked up: most replies need few."""

    def __init__(self, table: dict[str, str]) -> None:
        super().__init__()
        self.sources: dict[str, str] = {}
        for name, phrase in table.items():
            # A pattern may name others before it in braces.
            self.sources[name] = re.sub(
                r"\{([a-z_]+)\}",
                lambda field: self.sources[field[1]],
                phrase.replace("\n", ""),
            )

    def __missing__(self, name: str) -> re.Pattern[str]:
        pattern = self[name] = re.compile(self.sources[name])
        return pattern


PHRASES = _Phrases(_TABLE)


def search(phrase: str, text: str) -> re.Match[str] | None:
    """Search a text for a named set of phrases in any language, and return the match."""
    return PHRASES[phrase].search(text)


def _replace(step: str, text: str) -> str:
    """Apply the replacements of a named step of cleaning to a text."""
    for pattern, replacement in _REPLACEMENTS[step]:
        text = pattern.sub(replacement, text)
    return text


def without_reasoning(text: str) -> str:
    """Strip reasoning blocks (<think>...) from a reply.

    Nothing is left where the reasoning never ends.

    Parameters
    ----------
    text : str
        As it came.

    Examples
    --------
    >>> without_reasoning("<think>1 or 2?</think>2"), without_reasoning("<think>1 or 2?")
    ('2', '')
    """
    text = "".join(
        c
        for c in unicodedata.normalize("NFKC", text)
        if unicodedata.category(c) != "Cf" and c not in "\ufe0e\ufe0f"
    )
    ends = [match.end() for match in PHRASES["block_end"].finditer(text)]
    text = text[ends[-1] :] if ends else text
    unfinished = search("block_start", text)
    return text[: unfinished.start()] if unfinished else text


def plain_text(text: str) -> str:
    """Strip reasoning blocks, markup, quotes and contractions from a reply, and lower its case.

    Parameters
    ----------
    text : str
        As it came.

    Examples
    --------
    >>> plain_text("<think>Hmm, no.</think> **Yes**, it isn\u2019t blank")
    'yes, it is not blank'
    """
    text = re.sub("[\u2018\u2019\u02bc\u00b4]", "'", without_reasoning(text).casefold())
    text = first_and_last(text)
    tagged = PHRASES["answer_tag"].findall(text)
    text = _replace("tags", tagged[-1] if tagged else text)
    text = PHRASES["table_row"].sub(lambda row: ": ".join(row[1].split("|")), text)
    text = _replace("words", text)
    text = "".join(
        " " if unicodedata.category(c) in ("So", "Sk", "Cn", "Co") else c for c in text
    )
    return _replace("marks", text).strip(" \n,-:;")


def first_and_last(text: str) -> str:
    """Cut the middle out of a long text.

    Examples
    --------
    >>> len(first_and_last("yes " * 10_000))
    4001
    """
    return text if len(text) <= 2 * _READ else f"{text[:_READ]}\n{text[-_READ:]}"


def _misspell(word: str) -> set[str]:
    """List a word with two neighbouring letters swapped, or a letter inside left out or doubled."""
    inside = range(1, len(word) - 1)
    swapped = {word[:i] + word[i + 1] + word[i] + word[i + 2 :] for i in inside}
    doubled = {word[:i] + word[i] + word[i:] for i in inside}
    left_out = {word[:i] + word[i + 1 :] for i in inside if len(word) > 6}
    return swapped | doubled | left_out


_REAL_WORDS = {
    *_OFTEN_MISSPELLED,
    "noting",
    "gating",
    "stripped",
    "patters",
    "pattered",
}
#: Words of replies by how a hurried hand writes them, where this is no word of its own.
_SPELLED = {
    misspelled: word
    for word in _OFTEN_MISSPELLED
    for misspelled in _misspell(word) - _REAL_WORDS
}
_LONG_WORD = re.compile(r"[A-Za-z]{5,}")


def spell(text: str) -> str:
    """Correct usual misspellings of the words that decide; yes and no are none of them.

    Examples
    --------
    >>> spell("A unifrom field, noting else, and no strips")
    'A uniform field, noting else, and no stripes'
    """
    return _LONG_WORD.sub(lambda w: _SPELLED.get(w[0].casefold(), w[0]), text)


def sentences_of(text: str) -> list[str]:
    """Split a plain text into the sentences that state something.

    Questions and repeated instructions are left out.

    Parameters
    ----------
    text : str
        From `plain_text`.

    Examples
    --------
    >>> sentences_of("is there a pattern? yes. it is faint!")
    ['yes', 'it is faint']
    """
    statements = [strip_marks(part) for part in PART.findall(text) if "?" not in part]
    return [
        part
        for part in statements
        if part and (":" in part or not PHRASES["echo"].match(part))
    ]


#: A sentence; the point of a number ends none.
PART = re.compile(r"(?:[^.!?;\n\u3002]|(?<=\d)\.(?=\d))+[.!?;\n\u3002]*")


def strip_marks(part: str) -> str:
    """Strip closing marks, then commas, colons, dashes and blanks at both ends."""
    return part.rstrip(".!?;\n\u3002").strip(" ,:-/")
