"""Read which option of a multiple choice a reply names by its letter."""

from __future__ import annotations

import re

from psyprobe.analysis.words.reply import without_reasoning

_MARKUP = re.compile(r"[*_`\"$#{}]|\\\w+")
#: What may not follow a letter: a second one, what denies it, the rest of an abbreviation ("E.g.").
_ALONE = (
    r"(?!\W*(?:or|and|nor|/|,|&)\W*\(?[A-E]\b)"
    r"(?!(?:\s+(?:is|was|seems|looks))?(?:n't|\s+(?:clearly )?(?:not|wrong|incorrect|false)\b))"
    r"(?!\.?[a-zA-Z]\.)"
)
#: A letter in running text; before a further word "A" is an article.
_NAMED = (
    r"(?:\(?(?!A\s+(?!is\b|because\b|since\b|as\b)\w)([A-E])(?=[\s.,;:!?)\]]|$)"
    rf"{_ALONE}|\(?([a-e])\)?\W*\Z)"
)
#: Forms in which a letter is the answer; the first that a reply has counts.
_FORMS = tuple(
    re.compile(pattern, re.MULTILINE)
    for pattern in (
        r"\A\W*(?:(?i:option|choice|letter)\W+)?([A-Ea-e])\W*\Z",
        r"(?i:answer)(?:\W+(?i:is|(?:should|would|must) be|option|choice|letter))*\W+"
        + _NAMED,
        rf"^\W*(?:([A-Ea-e]){_ALONE}[.:)]|([A-E]){_ALONE}(?:[,;]|\s+[-–—]|\s*$)"
        rf"|([B-E]){_ALONE}\s)",
        r"^(A) is (?:the )?(?:right|correct|best)\b",
        r"(?<!not )(?<!n't )(?i:option|choice|letter|choose|pick|select|think|believe|guess|say"
        r"|go with|it is|it's|that is|would be)\W+(?:is\W+)?" + _NAMED,
        r"\(([A-E])\)",
    )
)


def read_letter(reply: str) -> str:
    """Read the letter, A to E, that a reply gives as its answer; "" if it gives none or several.

    Examples
    --------
    >>> [read_letter(text) for text in ("**B**", "b)", "The answer is B.", "(B) a horse")]
    ['B', 'B', 'B', 'B']
    >>> [read_letter(text) for text in ("A cat.", "A horse is shown", "A or B", "It is not B.")]
    ['', '', '', '']
    """
    text = _MARKUP.sub("", without_reasoning(reply)).strip()
    for form in _FORMS:
        letters = {"".join(match.groups("")).upper() for match in form.finditer(text)}
        if letters:
            return letters.pop() if len(letters) == 1 else ""
    return ""
