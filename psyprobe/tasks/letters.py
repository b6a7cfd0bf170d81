"""Read which option of a multiple choice a reply names by its letter."""

from __future__ import annotations

import re
from collections.abc import Sequence

from psyprobe.analysis.words.reply_structure import (
    best_label,
    split_boxes,
    split_json,
    verdict_groups,
    without_struck,
)
from psyprobe.analysis.words.reply_text import first_and_last, without_reasoning

_MARKUP = re.compile(r"[*_`\"$#{}]|\\\w+")
#: What may not follow a letter: a second one, what denies it, the rest of an abbreviation ("E.g.").
_ALONE = (
    r"(?!\W*(?:or|and|nor|vs|/|,|&|[<>=])\W*\(?[A-E]\b)"
    r"(?!(?:\s+(?:is|was|seems|looks))?(?:n't|\s+(?:clearly )?(?:not|wrong|incorrect|false)\b))"
    r"(?!\.?[a-zA-Z]\.)"
)
#: A letter in running text; before a further word "A" is an article.
_NAMED = (
    r"(?:\(?(?!A\s+(?!is\b|because\b|since\b|as\b|seems\b|looks\b|fits\b)\w)([A-E])(?=[\s.,;:!?)\]]|$)"
    rf"{_ALONE}|\(?([a-e])\)?\W*\Z)"
)
#: Forms in which a letter is the answer; the first that a reply has counts.
_FORMS = tuple(
    re.compile(pattern, re.MULTILINE)
    for pattern in (
        r"\A\W*(?:(?i:option|choice|letter)\W+)?([A-Ea-e])\W*\Z",
        r"(?i:answer)(?:\W+(?i:is|therefore|thus|then|hence|(?:should|would|must) be|option"
        r"|choice|letter))*\W+" + _NAMED,
        r"(?i:\bso|leaves(?: us with)?|therefore|hence|thus|leaving),?\s+(?:only\s+)?"
        r"(?i:it is |it's |it must be )?" + _NAMED + r"(?=\W*\Z)",
        rf"^\W*(?:([A-Ea-e]){_ALONE}[.:)]|([A-E]){_ALONE}(?:[,;]|\s+[-–—]|\s*$)"
        rf"|([B-E]){_ALONE}\s)",
        r"^(A) is (?:the )?(?:right|correct|best)\b",
        r"(?<!not )(?<!n't )(?i:option|choice|letter|choose|pick|select|think|believe|guess|say"
        r"|go with|prefer|lean(?:ing)? towards?|it is|it's|that is|would be)\W+(?:is\W+)?"
        + _NAMED,
        r"\(([A-E])\)",
        r"[.!?]\s+\(?([A-E])\)?[.!]?\Z",
    )
)
#: A line of a list of options: what stands before its letter, and the letter.
_LISTED = re.compile(r"^([^\w\n]*)([A-E])\W", re.MULTILINE)
_SET_OFF = re.compile(r"\*\*|__|[→✓✔✅☑➜]|=>|->")
#: A second option: "a. red, or b. green", "B, maybe C".
_ALSO = re.compile(
    r"\b(?:or|and|nor)\s+\(?[a-e][.)]\s"
    r"|\b(?i:maybe|perhaps|possibly|could be|might be)\W+\(?[A-E]\b"
)
#: What a reply says of an option in a list: "A: no, B: yes".
_JUDGED = re.compile(
    r"(?<!\w)([A-E])\W{1,5}(?i:(yes|true|right|correct)|no|false|wrong|incorrect)\b"
)
_CORRECTION = re.compile(
    r"(?i:\b(?:correction|scratch that|strike that|i meant?|wait|on second thoughts?)\b)[:,.\s]"
)
#: What makes the text of an option no answer: a denial or a hedge.
_DENIAL = re.compile(
    r"\b(?:no|not|never|neither|nor|without|unlike|instead|rather|than)\b|n['’]t\b"
)
_HEDGE = re.compile(
    r"\b(?:could|might|may|maybe|perhaps|possibly|unsure|either|cannot|unclear)\b|can['’]t\b"
)


def read_letter(reply: str, options: Sequence[str] = ()) -> str:
    """Read the letter, A to E, that a reply gives as its answer; "" if it gives none or several.

    Parameters
    ----------
    reply : str
        The reply as it came.
    options : sequence of str
        Texts of the options in the order of their letters: where no letter is given, the one
        option that is named by its text counts.

    Examples
    --------
    >>> [read_letter(text) for text in ("**B**", "b)", "The answer is B.", "(B) a horse")]
    ['B', 'B', 'B', 'B']
    >>> [read_letter(text) for text in ("A cat.", "A horse is shown", "A or B", "It is not B.")]
    ['', '', '', '']
    >>> read_letter("A horse is shown", options=("a cat", "a horse"))
    'B'
    """
    text = without_struck(first_and_last(without_reasoning(reply)))
    verdicts = _find_verdicts(text)
    letters = {_read_text(part, options) for part in verdicts or [text]}
    return letters.pop() if len(letters) == 1 else ""


def _find_verdicts(text: str) -> list[str]:
    """List the texts that stand as the verdict by the structure of a reply; none without one."""
    boxes = split_boxes(text)
    if boxes:
        return boxes[0]
    record = split_json(text, lambda word: _letter_alone(word) is not None)
    if record:
        entries, _ = record
        best = best_label(entries, _letter_alone)
        texts = [
            [value for _, value in group if isinstance(value, str)]
            for group in verdict_groups(entries)
        ]
        letters = [str(value) for _, value in entries if _letter_alone(str(value))]
        return next(filter(None, texts), letters if best is None else [best])
    judged = _JUDGED.findall(text)
    if len(judged) > 1:
        return [letter for letter, affirmed in judged if affirmed] or [""]
    listed = [
        (match[2], bool(_SET_OFF.search(match[1]))) for match in _LISTED.finditer(text)
    ]
    set_off = [letter for letter, is_set_off in listed if is_set_off]
    return set_off if len(listed) > len(set_off) == 1 else []


def _letter_alone(text: str) -> str | None:
    match = _FORMS[0].search(text)
    return match[1].upper() if match else None


def _read_text(text: str, options: Sequence[str]) -> str:
    """Read the letter, or the text of an option, that a text without structure gives."""
    text = _CORRECTION.split(_MARKUP.sub("", text).strip())[-1].strip()
    for form in _FORMS:
        letters = {"".join(match.groups("")).upper() for match in form.finditer(text)}
        if letters:
            several = len(letters) > 1 or _ALSO.search(text)
            return "" if several else letters.pop()
    return _read_option(text.casefold(), options)


def _read_option(text: str, options: Sequence[str]) -> str:
    """Read the letter of the one option whose text is named, and neither denied nor hedged."""
    named = {}
    for letter, option in zip("ABCDE", options, strict=False):
        words = re.sub(r"^(?:an?|the) ", "", option.casefold().strip(" ."))
        match = re.search(rf"(?<!\w){re.escape(words)}(?!\w)", text) if words else None
        if match:
            named[letter] = match
    # "A hot dog" names no dog.
    longest = {
        letter: match
        for letter, match in named.items()
        if not any(
            match[0] in other[0] and match is not other for other in named.values()
        )
    }
    if len(longest) != 1 or _HEDGE.search(text):
        return ""
    letter, match = longest.popitem()
    around = text[: match.start()] + text[match.end() :]
    return "" if _DENIAL.search(around) else letter
