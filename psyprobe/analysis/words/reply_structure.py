"""Find the verdict in a reply by its structure: struck-out text, ticked boxes, JSON and lists.

What is found is text, which the reader of words reads. Nothing here knows what a word means, but
for the labels under which a verdict stands.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import TypeAlias

#: What stands under a label: a truth value, a number, a text, or nothing.
Value: TypeAlias = bool | float | str | None
#: A label, as lower-case words, and what stands under it.
Entry: TypeAlias = tuple[str, Value]

_STRUCK = re.compile(
    r"(?<!~)~~(?!~)[^\n]+?~~(?!~)|(?is:<(s|del|strike)>.*?</\1>)"
    r"|\\(?:sout|st|cancel)\{[^{}\n]*\}|(?:\S\u0336)(?:\s*\S\u0336)*"
)
_TICKED = r"\[[xX✓✔]\]|\((?:[xX•●✓✔])\)|[☑☒✅✓✔◉🔘●]\ufe0f?"
_EMPTY = r"\[[ _]?\]|\([ _]?\)|[☐❌✗✘✖✕❎○◯⬜]\ufe0f?"
_BOX = re.compile(f"(?P<ticked>{_TICKED})|{_EMPTY}")
#: A box that is no decoration, where it opens a line.
_LONE_BOX = re.compile(r"(?m)^[\s>*+\-\d.|]*(?:\[[xX✓✔ _]\]|[☐☑])")
_MARK = re.compile(rf"[xX✓✔•●]|{_TICKED}")
_JSON = re.compile(r"[\[{].*[\]}]", re.DOTALL)
_FENCE = re.compile(r"```\w*|~~~\w*")
#: Labels of a verdict, and words that make a label another's: "answer confidence".
_VERDICT = re.compile(
    r"\b(?:answers?|verdict|decision|response|reply|conclusion|prediction|judge?ment|result|output"
    r"|choice|label|classification|class|selected|selection|chosen|pick(?:ed)?|overall|antwort|réponse|respuesta|resposta|risposta|antwoord"
    r"|ответ|答案|回答|assistant)\b|^a?$"
)
_ABOUT_VERDICT = re.compile(
    r"\b(?:reason\w*|explanation|rationale|confidence|certainty|prob\w*|scores?|type|format"
    r"|options?|question|initial|first|previous|alternative|other|second|wrong|incorrect|not)\b"
)
_NO_SCORE = re.compile(r"\b(?:rank|index|id|position|order|loss|distance)\b")
_NUMBER = re.compile(r"\W*(-?\d+(?:\.\d+)?|\.\d+)\s*%?\W*")
_FRACTION = re.compile(r"\W*(\d+(?:\.\d+)?)\s*(?:%|percent|(?:/|out of)\s*(\d+))\W*")
_LINE = re.compile(
    r"(?m)^[\W\d]*([^\W\d][\w' \-/()]{0,70}?)"
    r"(?:\s*[:=?]+[^\S\n]*(\S.*)|[^\S\n]+([\d.]+[^\S\n]*%?))$"
)
_SCORE_FIRST = re.compile(r"(?m)^\W*(\d+(?:\.\d+)?\s*%)\s+(?:for |of )?([^\W\d]+)\W*$")
_AFTER_SCORE = re.compile(
    r"(?<=[%\d])\s*[,;/]\s*(?=[^\W\d])"
    r"|(?:(?<=\byes)|(?<=\bno)|(?<=\bnone)|(?<=\btrue)|(?<=\bfalse))\s*[.,;]\s*"
    r"(?=[^\W\d][\w' -]{0,40}[:=]\s)"
)


def without_struck(text: str) -> str:
    """Remove struck-out text from a reply.

    Examples
    --------
    >>> without_struck("~~No~~ Yes"), without_struck("<s>no</s> yes")
    (' Yes', ' yes')
    """
    return _STRUCK.sub("", text)


def split_boxes(text: str) -> tuple[list[str], str] | None:
    r"""Split a reply with tick boxes into ticked texts and all other lines.

    Returns
    -------
    tuple of (list of str, str), or None
        None where it has no such boxes.

    Examples
    --------
    >>> split_boxes("- [x] Yes\n- [ ] No"), split_boxes("Yes ☐ No ☑"), split_boxes("[x, y]")
    ((['Yes'], ''), (['No'], ''), None)
    """
    kinds = {match["ticked"] is not None for match in _BOX.finditer(text)}
    if len(kinds) < 2 and not _LONE_BOX.search(text):
        return None
    ticked = []
    other_lines = []
    for line in text.splitlines():
        boxes = list(_BOX.finditer(line))
        if not boxes:
            other_lines.append(line)
            continue
        labels_follow = bool(re.search(r"\w", line[boxes[-1].end() :]))
        if labels_follow:
            other_lines.append(line[: boxes[0].start()].strip(" \t>*+-|"))
        starts = [0, *(box.end() for box in boxes)]
        ends = [*(box.start() for box in boxes), len(line)]
        labels = [line[start:end] for start, end in zip(starts, ends, strict=True)]
        of_boxes = labels[1:] if labels_follow else labels[:-1]
        ticked += [
            label.strip(" \t|,;/")
            for box, label in zip(boxes, of_boxes, strict=True)
            if box["ticked"]
        ]
    return ticked, "\n".join(other_lines).strip()


def ticked_columns(text: str, is_answer: Callable[[str], bool]) -> list[str]:
    r"""List the answers that head the columns of a table with a mark.

    Examples
    --------
    >>> ticked_columns("| Yes | No |\n|---|---|\n| | X |", {"Yes", "No"}.__contains__)
    ['No']
    """
    rows = [
        [cell.strip() for cell in line.strip().strip("|").split("|")]
        for line in text.splitlines()
        if line.count("|") > 1
    ]
    if not rows or sum(map(is_answer, rows[0])) < 2:
        return []
    return [
        label
        for row in rows[1:]
        for label, cell in zip(rows[0], row, strict=False)
        if is_answer(label) and _MARK.fullmatch(cell)
    ]


def split_json(
    text: str, is_answer: Callable[[str], bool]
) -> tuple[list[Entry], str] | None:
    """Split a reply into labelled entries of the JSON in it, and the text around.

    Parameters
    ----------
    text : str
        The reply.
    is_answer : callable
        Tells whether a text is one of the answers: a list of answers with scores has the answers as
        labels.

    Examples
    --------
    >>> split_json('So: {"answer": {"value": "no"}, "sure": true}', lambda text: text == "no")
    ([('answer value', 'no'), ('sure', True)], 'So:')
    """
    match = _JSON.search(text)
    if not match:
        return None
    parsed = _parse_json(match[0])
    if not isinstance(parsed, list | tuple):
        return None
    around = _FENCE.sub(" ", text[: match.start()] + "\n" + text[match.end() :])
    return list(_flatten(parsed, "", is_answer)), around.strip()


def _parse_json(text: str) -> object:
    """Parse JSON, objects as tuples of pairs; return None for a text that is none."""
    literal = re.sub("[\u201c\u201d]", '"', text)
    literal = re.sub(r"(?<![^\s{\[,:])'|'(?![^\s}\],:])", '"', literal)
    literal = re.sub(r"\bTrue\b", "true", re.sub(r"\bFalse\b", "false", literal))
    literal = re.sub(r",\s*([}\]])", r"\1", re.sub(r"\bNone\b", "null", literal))
    for candidate in (text, literal):
        try:
            return json.loads(candidate, object_pairs_hook=tuple, strict=False)
        except (ValueError, RecursionError):
            continue
    return None


def _flatten(
    value: object, label: str, is_answer: Callable[[str], bool]
) -> Sequence[Entry]:
    """List the values in parsed JSON, labelled by the path to each."""
    if isinstance(value, tuple):
        pairs = [(f"{label} {_words(str(key))}".strip(), child) for key, child in value]
        texts = [v for _, v in pairs if isinstance(v, str)]
        answers = list(filter(is_answer, texts)) or texts
        scores = [v for key, v in pairs if _is_number(v) and not _NO_SCORE.search(key)]
        if len(answers) == len(scores) == 1 and label.endswith("[]"):
            return [(answers[0], scores[0])]
        return [
            entry for key, child in pairs for entry in _flatten(child, key, is_answer)
        ]
    if isinstance(value, list) and not value:
        return [(label, None)] if label else []
    if isinstance(value, list):
        several = label + "[]" if len(value) > 1 else label
        return [
            entry for child in value for entry in _flatten(child, several, is_answer)
        ]
    if isinstance(value, bool | int | float | str) or value is None:
        return [(label.replace("[]", ""), value)]
    return []


def _is_number(value: object) -> bool:
    """Tell whether a value is an int or float, and no bool."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _words(label: str) -> str:
    """Write a label as lower-case words: "patternVisible" is "pattern visible"."""
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])|[_\-]+", " ", label)
    return spaced.casefold().strip()


def split_lines(plain: str) -> tuple[list[Entry], str] | None:
    r"""Split a plain text into its lines "label: value", and all other text.

    Examples
    --------
    >>> split_lines("objects: no\ngrating: yes\nthat is all")
    ([('objects', 'no'), ('grating', 'yes')], 'that is all')
    """
    lines = _SCORE_FIRST.sub(r"\2: \1", _AFTER_SCORE.sub("\n", plain))
    entries: list[Entry] = [
        (match[1].strip().casefold(), match[2] or match[3])
        for match in _LINE.finditer(lines)
    ]
    return (entries, _LINE.sub("", lines).strip()) if entries else None


def verdict_groups(entries: Sequence[Entry]) -> list[list[Entry]]:
    """Group the entries that are labelled as verdicts, final ones first."""
    verdicts = [
        (label, value)
        for label, value in entries
        if _VERDICT.search(label) and not _ABOUT_VERDICT.search(label)
    ]
    final = [entry for entry in verdicts if re.search(r"\bfinal\b", entry[0])]
    return [group for group in (final, verdicts) if group]


def best_label(
    entries: Sequence[Entry], side: Callable[[str], str | None]
) -> str | None:
    """Find which answer has the highest score, or is the only true one.

    Parameters
    ----------
    entries : sequence of (str, value)
        Labels and values.
    side : callable
        Says which answer a label names; None for no or several answers.

    Returns
    -------
    str or None
        "" where the scores decide nothing, None where there are none.

    Examples
    --------
    >>> entries = [("yes", 0.2), ("no", 0.8)]
    >>> best_label(entries, {"yes": "yes", "no": "no"}.get)
    'no'
    """
    scores: dict[str, list[float]] = {}
    for label, value in entries:
        answer = side(label)
        number = to_number(value)
        if answer is not None and number is not None:
            scores.setdefault(answer, []).append(number)
    if not scores:
        return None
    if any(len(numbers) > 1 for numbers in scores.values()):
        return ""
    best = max(numbers[0] for numbers in scores.values())
    answers = [answer for answer, numbers in scores.items() if numbers[0] == best]
    # One score alone has nothing to compare with, but for a plain "yes: true".
    decided = len(answers) == 1 and (len(scores) > 1 or _has_true_label(entries, side))
    return answers[0] if decided else ""


def _has_true_label(
    entries: Sequence[Entry], side: Callable[[str], str | None]
) -> bool:
    """Tell whether an entry labelled with yes or no is true."""
    return any(value is True and side(label) is not None for label, value in entries)


def to_fraction(value: Value) -> float | None:
    """Read a number from 0 to 1: 0.9, "90 %", "9/10"; None for any other value.

    Examples
    --------
    >>> to_fraction(0.9), to_fraction("90 %"), to_fraction("9/10"), to_fraction("9")
    (0.9, 0.9, 0.9, None)
    """
    if isinstance(value, str):
        match = _FRACTION.fullmatch(value)
        if match is None:
            return _fraction_or_none(to_number(value))
        whole = 100.0 if match[2] is None else float(match[2])
        return _fraction_or_none(float(match[1]) / whole if whole else None)
    return _fraction_or_none(to_number(value)) if _is_number(value) else None


def _fraction_or_none(number: float | None) -> float | None:
    """Return a number from 0 to 1 as it is, and None for any other."""
    return number if number is not None and 0 <= number <= 1 else None


def to_number(value: Value) -> float | None:
    """Read a number, a truth value as 0 or 1; None where a text is no number."""
    if isinstance(value, bool | int | float):
        return float(value)
    match = _NUMBER.fullmatch(value or "")
    return float(match[1]) if match else None
