"""Read which of several labels a reply names.

A reply decides only where one label is left: after a phrase that announces an answer, or as the
only one that is named and not denied. A character or direction that is none of the labels is
"outside": a wrong answer, since leaving it out would raise the rate of correct guesses.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from psyprobe.analysis.words.reply_structure import without_struck
from psyprobe.analysis.words.reply_text import first_and_last, without_reasoning
from psyprobe.files.parsing import packaged_toml

#: What a reply is read as where it names no label: another one, several, a refusal, or nothing.
OTHERS = ("outside", "ambiguous", "refusal", "invalid")

_TABLE = packaged_toml("psyprobe.analysis.identification", "labels.toml")
_LOOK_ALIKES = str.maketrans(*_TABLE["look_alikes"])
_LETTERS: Mapping[str, str] = _TABLE["letters"]
_DIRECTIONS: Mapping[str, str] = _TABLE["directions"]
_PHRASES: Mapping[str, str] = _TABLE["phrases"]
_DENIAL = re.compile(_PHRASES["denial"], re.I)
_DENIED = re.compile(_PHRASES["denied"], re.I)
_SECOND = re.compile(_PHRASES["second"], re.I)
_REFUSAL = re.compile(_PHRASES["refusal"], re.I)
_IDIOMS = re.compile(rf"\b(?:{_PHRASES['idioms']})", re.I)
_CUE = rf"\b(?:{_PHRASES['cue']})\b(?:\s*(?:[:=]|{_PHRASES['fillers']}\b)\s*)*\s*"
_MARKUP = re.compile(
    r"[*_`~#\"\u201c\u201d\u201e\u00ab\u00bb()\[\]{}$<>|]|(?<!\w)'|'(?!\w)"
)
_SENTENCE = re.compile(r"[^.!?;\n]*(?:[.!?;\n]+|\Z)")
_CLAUSE = re.compile(r"[,.;:!?\n]|\bbut\b")
#: English words: letters only as the whole reply, or behind a cue and before a stop.
_WORDS = ("a", "i")
_ALONE = r"(?<![\w'])(?:{0})(?![\w']|\.\w)"
_STOP = r"(?=\s*(?:[.,;:!?\n]|\Z))"


@dataclass(frozen=True)
class _Mention:
    """A label that a reply names, or "outside"."""

    label: str
    start: int
    end: int


class _Vocabulary:
    """The words for some labels, as patterns; groups are numbered by target."""

    def __init__(
        self, labels: Sequence[str], aliases: Mapping[str, Sequence[str]]
    ) -> None:
        by_name = {label.translate(_LOOK_ALIKES).casefold(): label for label in labels}
        #: Patterns of words that count wherever they stand, and of those that count as the whole
        #: reply or behind a cue, each with what it names.
        anywhere: list[tuple[str, str]] = []
        behind_cue: list[tuple[str, str]] = []
        for label in labels:
            words = [label, *aliases.get(label, ())]
            anywhere += [
                (_words_pattern(word), label)
                for word in words
                if word.casefold() not in _WORDS
            ]
        self.letters = any(len(label) == 1 for label in labels)
        if self.letters:
            digits = any(label.isdecimal() for label in labels)
            for letter, names in _LETTERS.items():
                label = by_name.get(letter.casefold(), "outside")
                words = [word for word in names.split() if not (digits and word == "0")]
                behind_cue += [(re.escape(word), label) for word in words]
                if letter.casefold() in _WORDS:
                    behind_cue.append((f"{letter}{_STOP}", label))
                    behind_cue.append((f"(?<=letter )(?-i:{letter})", label))
                elif label == "outside":
                    anywhere.append((f"(?-i:{letter})", label))
                    behind_cue.append((letter, label))
            behind_cue.append((r"\d", "outside"))
        angles = [
            (pattern, label)
            for pattern in _DIRECTIONS.values()
            for name, label in by_name.items()
            if re.fullmatch(pattern, name)
        ]
        if angles:
            labelled = dict(angles)
            anywhere += [
                (pattern, labelled.get(pattern, "outside"))
                for pattern in _DIRECTIONS.values()
            ]
        self.has_directions = bool(angles)
        self._anywhere = [
            (re.compile(_ALONE.format(pattern), re.I), label)
            for pattern, label in anywhere
        ]
        # Labels themselves come before the names of others.
        self._named = [
            (re.compile(_ALONE.format(pattern), re.I), label)
            for pattern, label in [*anywhere, *behind_cue]
        ]

    def whole(self, text: str) -> str | None:
        """Return the label that a text names and nothing else; None for other texts."""
        word = text.strip(" .,:;!?-\n'")
        matches = {
            label: pattern.pattern
            for pattern, label in reversed(self._named)
            if pattern.fullmatch(word)
        }
        return next(reversed(matches)) if matches else None

    def behind(self, text: str, start: int) -> _Mention | None:
        """Find the longest word for a label that begins at a place of a text."""
        mentions = [
            _Mention(label, match.start(), match.end())
            for pattern, label in self._named
            if (match := pattern.match(text, start))
        ]
        return max(mentions, key=lambda mention: mention.end, default=None)

    def mentions(self, text: str) -> list[_Mention]:
        """List the labels that a text names, in order; "upper right" names no "right"."""
        mentions = [
            _Mention(label, match.start(), match.end())
            for pattern, label in self._anywhere
            for match in pattern.finditer(text)
        ]
        mentions.sort(key=lambda mention: (mention.start, -mention.end))
        outermost: list[_Mention] = []
        for mention in mentions:
            if not outermost or mention.end > outermost[-1].end:
                outermost.append(mention)
        return outermost


def _words_pattern(word: str) -> str:
    """Build the regular expression of a word for a label, with "-ly", "-s" and hyphens too."""
    pattern = r"[ _-]".join(map(re.escape, re.split(r"[ _-]", word)))
    if word.endswith("al"):
        return f"{pattern}(?:ly)?"
    return f"{pattern}(?:e?s)?" if len(word) > 2 else pattern


@lru_cache(64)
def _build_vocabulary(
    labels: tuple[str, ...], aliases: tuple[tuple[str, ...], ...]
) -> _Vocabulary:
    """Build the words that stand for each label, cached."""
    return _Vocabulary(labels, dict(zip(labels, aliases, strict=True)))


def read_label(
    reply: str,
    labels: Sequence[str],
    aliases: Mapping[str, Sequence[str]] | None = None,
) -> str:
    """Read which of several labels a reply names.

    Parameters
    ----------
    reply : str
        The reply as it came.
    labels : sequence of str
        The labels. Single letters have their names too, and directions their other words, arrows
        and hours.
    aliases : mapping of str to sequence of str, optional
        Further words by label.

    Returns
    -------
    str
        A label; "outside" for a character or direction that is none of them; "ambiguous" for
        several; "refusal" where nothing is seen or answered; else "invalid".

    Examples
    --------
    >>> [read_label(reply, "CKO") for reply in ("**K**", "It is not a C but an O.", "C or O", "8")]
    ['K', 'O', 'ambiguous', 'outside']
    >>> read_label("It opens towards 3 o'clock.", ["right", "up", "left", "down"])
    'right'
    """
    further = aliases or {}
    return _read(
        reply,
        tuple(labels),
        tuple(tuple(further.get(label, ())) for label in labels),
    )


@lru_cache(1024)
def _read(
    reply: str, labels: tuple[str, ...], aliases: tuple[tuple[str, ...], ...]
) -> str:
    """Read which label a reply names, or "ambiguous", "refusal" or "invalid"."""
    vocabulary = _build_vocabulary(labels, aliases)
    text = without_struck(first_and_last(without_reasoning(reply)))
    text = re.sub("[\u2018\u2019\u02bc\u00b4]", "'", text.translate(_LOOK_ALIKES))
    text = _MARKUP.sub(" ", re.sub(r"(?i)\bn/a\b", " ", text)).strip()
    if not re.search(r"\w|[→↑←↓↗↖↘↙➡⬆⬅⬇]", text):
        return "invalid"
    whole = vocabulary.whole(text)
    if whole:
        return whole
    if vocabulary.letters and _is_string(text, labels):
        return "ambiguous"
    statements = [part for part in _SENTENCE.findall(text) if "?" not in part]
    if re.search(r"\w", "".join(statements)):
        text = "".join(statements)
    if vocabulary.has_directions:
        text = _IDIOMS.sub(" ", text)
    announced = _read_announced(vocabulary, text)
    if announced:
        return announced
    lines = {line for line in map(vocabulary.whole, text.splitlines()) if line}
    if len(lines) == 1:
        return lines.pop()
    remaining = {
        mention.label
        for mention in vocabulary.mentions(text)
        if not _is_denied(text, mention)
    }
    if len(remaining) == 1:
        return remaining.pop()
    if remaining:
        return "ambiguous"
    return "refusal" if _REFUSAL.search(text) else "invalid"


def _read_announced(vocabulary: _Vocabulary, text: str) -> str | None:
    """Read the label after the last phrase that announces an answer; None without any."""
    decision = None
    for cue in re.finditer(_CUE, text, re.I):
        mention = vocabulary.behind(text, cue.end())
        # "It is a K" has an article, and "it is A" has none.
        article = re.search(r"\ban?\s*\Z", cue[0], re.I)
        if mention is None and article:
            mention = vocabulary.behind(text, cue.start() + article.start())
        if mention is None or _is_denied(text, _Mention("", cue.start(), mention.end)):
            continue
        sentence_end = _SENTENCE.match(text, mention.end)
        assert sentence_end is not None
        rest = text[mention.end : sentence_end.end()]
        others = [
            other.label
            for other in vocabulary.mentions(rest)
            if other.label != mention.label
            and _SECOND.search(rest[: other.start])
            and not _is_denied(rest, other)
        ]
        decision = "ambiguous" if others else mention.label
    return decision


def _is_denied(text: str, mention: _Mention) -> bool:
    """Tell whether a text denies a label in the clause that names it."""
    before = _CLAUSE.split(text[: mention.start])[-1]
    return bool(_DENIAL.search(before) or _DENIED.match(text[mention.end :]))


def _is_string(text: str, labels: Sequence[str]) -> bool:
    """Tell whether a reply is a string of labels, such as the list again without blanks."""
    letters = [label for label in labels if len(label) == 1]
    return len(text) > 1 and all(letter in letters for letter in text)
