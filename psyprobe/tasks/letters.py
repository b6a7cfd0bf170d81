"""Read which option of a multiple choice a reply names by its letter."""

from __future__ import annotations

import re
from collections.abc import Sequence

from psyprobe.analysis.words.reply_structure import (
    best_label,
    split_boxes,
    split_json,
    split_lines,
    ticked_columns,
    verdict_groups,
    without_struck,
)
from psyprobe.analysis.words.reply_text import (
    KINDS,
    PHRASES,
    first_and_last,
    spell,
    without_reasoning,
)

_MARKUP = re.compile(r"[*_`\"$#{}]|\\\w+")
#: What may not follow a letter: a second one, what denies it, the rest of an abbreviation ("E.g.").
_ALONE = (
    r"(?!\W*(?:or|and|nor|vs|/|,|&|[<>=])\W*\(?[A-E]\b)"
    r"(?!(?:\s+(?:is|was|seems|looks))?(?:n't|\s+(?:clearly )?(?:not|wrong|incorrect|false)\b))"
    r"(?!\.?[a-zA-Z]\.)"
)
#: What follows a letter that is talked about: "D was my first thought".
_NO_VERB = (
    r"(?!\s+(?:is|was|are|were|isn|wasn|seem|look|appear|could|would|might|may|can|can't|has|had|and|or"
    r"|fit|do|does|did|show|describe)(?:s|ed)?\b)"
)
#: A letter in running text; before a further word "A" is an article.
_NAMED = (
    r"(?:\(?(?!A\s+(?!is\b|because\b|since\b|as\b|seems\b|looks\b|fits\b|over\b)\w)([A-E])(?=[\s.,;:!?)\]]|$)"
    rf"{_ALONE}|\(?([a-e])\)?\W*\Z)"
)
#: Forms in which a letter is the answer; the first that a reply has counts.
_FORMS = tuple(
    re.compile(pattern, re.MULTILINE)
    for pattern in (
        r"\A\W*(?:(?i:option|choice|letter|scores?|prob\w*|p)\W+)?([A-Ea-e])\W*\Z",
        r"(?i:answer|verdict|(?:correct|right|best|final|my) (?:choice|option|letter|pick))"
        r"(?:\W+(?i:is|s|therefore|thus|then|hence|(?:should|would|must) be|option"
        r"|choice|letter))*\W+" + _NAMED,
        r"(?i:going with|go with|go(?:ing)? for|settled? on|opt(?:ed|ing)? for|left with|i\.e\.,?"
        rf"|namely)\s+{_NAMED}",
        r"(?:[→⇒]|[=-]>)\W*([A-E])\W*\Z",
        r"\b(?i:but|therefore|hence|thus|so|conclusion)[\s:,]*\(?([A-E])\)?\W*\Z",
        r"\b([A-E]) (?:(?:is|fits|seems|looks|would be|must be) (?:the )?(?:right|correct|best"
        r"|better|closest|(?:most|more) (?:likely|plausible)|likeliest)(?! to\b)"
        r"|it is|remains)\b",
        r"(?i:\bso|leaves(?: us with)?|therefore|hence|thus|leaving),?\s+(?:only\s+)?"
        r"(?i:it is |it's |it must be )?" + _NAMED + r"(?=\W*\Z)",
        rf"^\W*(?:([A-Ea-e]){_ALONE}[.:)]|([A-E]){_ALONE}(?:[,;]|\s+[-–—]|\s*$)"
        rf"|([B-E]){_ALONE}{_NO_VERB}\s)",
        r"(?<!not )(?<!n't )(?i:option|choice|letter|choose|pick|select|think|believe|guess|say"
        r"|go with|prefer|(?:must|should|has to|ought to|will) be|lean(?:ing)? towards?"
        r"|it is|it's|(?:that|this|which) is|would be)\W+(?:is\W+)?" + _NAMED,
        rf"\b(?i:probably|likely|presumably|apparently|on balance)[\s,:]+{_NAMED}",
        r"\(([A-E])\)",
        r"(?:[.!?]|[a-z],)\s+\(?([A-E])\)?[.!]?\Z",
    )
)
#: Where the forms begin in which a letter may only be spoken of.
_IN_PASSING = len(_FORMS) - 4
#: A line of a list of options: what stands before its letter, and the letter.
_LISTED = re.compile(r"^([^\w\n]*)([A-E])\W", re.MULTILINE)
_CHOSEN = re.compile(r"(?i)\b(?:answer|option|choice|choose|pick|select)\b")
#: Letters in squares, which are signs of their own.
_SQUARED = {0x1F170 + i: letter for i, letter in enumerate("AB")}
_SET_OFF = re.compile(r"\*\*|__|[→✓✔✅☑➜]|=>|->")
#: What is said of no answer: a letter that is denied ("not D", "rather than (B)"), two letters at
#: once ("A and option B"), and a condition ("if it were red I'd say A").
_UNCHOSEN = re.compile(
    r"(?:(?i:\b(?:not|nor|neither|never|rather than|instead of|unlike|anything but"
    r"|excludes?|rules? out|ruled out|(?:hard|difficult|impossible|tough|unable) to)\b)"
    r"|(?i:n['\u2019]t\b))"
    r"(?:(?!\b(?:but|so|because|hence|is)\b)[^.,;:!?\n]){0,20}?\(?\b[A-E]\b\)?"
    r"|\(?\b[A-E]\b\)?\?\s*(?i:no|nope|nah|wrong)\b[,.:;]?"
    r"|(?:\b[A-E],\s*)*\(?\b[A-E]\b\)?\W+(?:(?:and|or|nor)\W+(?:(?i:option|choice|letter)\W+)?\(?[A-E]\b\)?\W*)+"
    r"|(?i:\bif (?!i (?:must|had|have|am|was)\b)|\b(?:had|were) (?:it|they|there)\b)"
    r"[^.!?;\n]*"
    r"|(?i:\b(?:at first|initially|at a glance)\b)[^.!?;\n]*?(?=\bbut\b|\bhowever\b|[.!?;\n]|\Z)"
)
#: Where a reply concludes in words: "therefore the best answer is dots".
_CONCLUSION = re.compile(
    r"(?is).*\b(?:answer|choice|option|verdict|conclusion)\W+(?:is|would be|must be)\b"
    r"(?! not\b)(.*)"
)
_TAG = re.compile(r"(?is)<(answer|final(?:_answer)?|choice|verdict)>(.*?)</\1>")
_BOXED = re.compile(r"\\boxed\{(?:\$|\\\w+\{)*([^{}]*)\}")
_LABELLED = re.compile(
    r"(?im)^\W*(?:(?:final|my|correct) )?(?:answer|choice|option|letter|verdict)\W*[:=]"
    r"\W*([A-E])\W*$"
)
#: A list of the options by their letters, which repeats the question.
_OPTION_LIST = re.compile(r"(?m)(?:^\W*[A-E][.):]\s.*(?:\n|\Z)){3,}")
#: What only seemed so, or is asked, in a reply: no answer.
_UNSAID = re.compile(
    r"\bfirst(?:ly)? of all\b|\bfirst(?:ly)?,|\ba second\b|\byou are right\b"
    r"|\bright (?:answer|option|choice)\b|\bwhat is left\b"
    r"|\bleft (?:blank|empty|out|over|with)\b|\bslow\w* down\b|[^.!?;\n]*\?"
    r"|[^.!?;\n]*\b(?:at first|initially|suspect\w*|assumed|thought"
    r"|first (?:thought|guess|impression|glance|sight|look)"
    r"|(?:one|you|people|some) (?:might|may|could|would))\b"
    r"[^.!?;\n]*?(?=\bbut\b|\bhowever\b|[.!?;\n]|\Z)"
)
#: The one option that a reply does not name, after it has ruled out all others.
_REMAINING = re.compile(
    r"\b(?:in|be|is|leaves|to) (?:only )?the (?:only )?(?:remaining|other|last)"
    r" (?:one|option|choice|quadrant|place|corner|answer)\b"
    r"(?! (?:is|was|looks?|seems?) (?:not|wrong|empty))"
)
_BEFORE_BUT = re.compile(r"[^.!?;\n]*\b(?:but|however|yet)\b")
#: A second option: "a. red, or b. green", "B, maybe C".
_ALSO = re.compile(
    r"\b(?:or|and|nor)\s+\(?[a-e][.)]\s"
    r"|\b(?i:maybe|perhaps|possibly|could be|might be)\W+\(?[A-E]\b(?!\W+but\b)"
)
#: What a reply says of an option in a list: "A: no, B: yes".
_JUDGED = re.compile(
    r"(?m)(?<!\w)([A-E])(?:\W{1,5}|[.):] [^\n]*\W(?=\w+\W*$))"
    r"(?i:(yes|true|right|correct)|no|false|wrong|incorrect)\b"
)
_CORRECTION = re.compile(
    r"(?i:\b(?:correction|edit|update|scratch that|strike that|i meant?|wait"
    r"|on (?:second thoughts?|reflection)"
    r"|i (?:have |just )?(?:changed my mind|misread|misspoke)|i stand corrected"
    r"|(?:disregard|ignore) (?:that|this|the above|my \w+ answer))\b)[:,.\s]"
)
#: What makes the text of an option no answer: a denial before or behind it in its clause, a hedge
#: in its sentence.
_DENIAL = re.compile(
    r"\b(?:no|not|never|nothing|neither|nor|above|below|without|unlike|instead|rather|than|except|excludes?"
    r"|from|off|(?:left|right|clockwise|leftwards|rightwards|short) of|non|rules? out)\b"
)
#: Where something begins that goes on elsewhere: "from the top left to the bottom right".
_FROM = re.compile(r"\bfrom (?:the )?\Z")
_DENIED = re.compile(
    r"^\s+(?:background|backdrop|surround)"
    r"|\b(?:not|never|absent|missing|excluded|ruled out|out|empty|wrong|incorrect)\b"
)
_HEDGE = re.compile(
    r"\b(?:could|might|may|maybe|perhaps|possibly|unsure|uncertain|either|cannot|unclear"
    r"|if|whether|between)\b|\b(?!rather|other|either)\w+er than\b|\b(?:more|less) \w+ than\b"
)
_SENTENCE_END = re.compile(r"[.!?;\n]")
_CLAUSE_END = re.compile(r"[.,;:!?\n()]|\b(?:but|so|hence|because|since|and)\b")
_CONTRACTIONS = (
    ("[\u2018\u2019]", "'"),
    (r"\bcan(?:'t| not)\b", "cannot"),
    (r"n't\b", " not"),
    (r"'re\b", " are"),
    (r"\b(it|that|there|what)'s\b", r"\1 is"),
    (r"\b(?:upper|top)[ -](?=left|right|half|part|corner|edge)", "top "),
    (r"\b(?:lower|bottom)[ -](?=left|right|half|part|corner|edge)", "bottom "),
    (r"\b(left|right)-hand\b", r"\1"),
    (r"\bto(?:wards?)? the (left|right)\b", r"\1wards"),
    (r"\b((?:mov|drift|shift|head|go)\w*) (left|right|up|down)\b", r"\1 \2wards"),
    (r"\bgray", "grey"),
    (r"\bcenter", "centre"),
    (r"\b(?:image|picture|clip|interval|panel|frame|grating) (?:1|one)\b", "first"),
    (r"\b(?:image|picture|clip|interval|panel|frame|grating) (?:2|two)\b", "second"),
    (r"\b(?:just|only|exactly|precisely|count) one\b(?! (?:of|on|side))", "1"),
    (r"\ba? ?single\b|\A\W*one\W*\Z", "1"),
    *(
        (rf"\b{word}\b", str(number))
        for number, word in enumerate(["two", "three", "four", "five", "six"], 2)
    ),
)
#: What a number counts that is the name of something: "image 1".
_NUMBERED = re.compile(
    r"\b(?:images?|gratings?|steps?|figures?|panels?|frames?|clips?|patch(?:es)?|no|number)[ .#]*\Z"
)

_ORDER_WORDS = ("first", "second", "third", "fourth", "fifth")
_ORDER = re.compile(rf"\b(?:{'|'.join(_ORDER_WORDS)}|last|\d)\b")
#: An answer by the place of an option: "the second option", "of the five, the second one".
_ORDINAL = re.compile(
    r"\W*(?:(?:i(?:'d| would)? (?:choose|pick|select|say|go with)|it is|answer:) )?"
    r"(?:of the \w+,? )?(?:the )?"
    rf"({'|'.join(_ORDER_WORDS)}) (?:option|choice|answer|alternative)\b(?=\W*\Z|[,:]|\W+because)"
)
_IS = re.compile(r"(?: half| side| part)? (?:is|are|was|were|looks?|appears?|seems?)\b")
_NOTHING = re.compile(r"\W*(?:nothing|none)\b(?! (?:else|more))")
_SIDE = re.compile("(?:left|right)(?:wards)?")
_OF = re.compile(r" of\b")
_WORD = re.compile(r"[^\W_]+(?:-[^\W_]+)*|\d+(?:[.,]\d+)+")
#: Words that tell nothing of an option, and those that tell nothing where another word does.
_FILLERS = re.compile(
    r"(?:an?|the|it|they|there|this|that|is|are|was|were|of|in|on|at|to|towards|by|with|s)\Z"
)
_CARRIERS = re.compile(
    rf"{_FILLERS.pattern}|(?:one|image|picture|half|side|part|corner|clip|interval|stimulus|patch"
    r"|grating)\Z"
)
#: How many words further on the next word of an option stands at most.
_NEAR = 3
_ENDING = re.compile(
    r"(?<=ward)s\Z|(?<=\w{5})al(?:ly)?\Z|(?<=\w{3})(?:ly|ing|ed|es|s|e|y)\Z"
)
#: Stems of words for the same.
_SAME = {"tilt": ("lean", "slant", "slop")}
_KIND = re.compile(r"kind\w+")


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
    text = spell(without_struck(first_and_last(without_reasoning(reply))))
    text = text.translate(_SQUARED)
    verdicts = _find_verdicts(text)
    letters = {_read_text(part, options) for part in verdicts or [text]}
    return letters.pop() if len(letters) == 1 else ""


def _find_verdicts(text: str) -> list[str]:
    """List the parts of a reply that are marked as its answer; none without such marks."""
    tagged = [match[2] for match in _TAG.finditer(text)]
    tagged = tagged or _BOXED.findall(text)
    if tagged:
        return tagged[-1:]
    columns = ticked_columns(text, lambda word: _letter_alone(word) is not None)
    if columns:
        return columns
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
    lines = split_lines(text)
    if lines and not re.search(r"\w", lines[1]):
        best_line = best_label(lines[0], _letter_alone)
        if best_line:
            return [best_line]
    labelled = _LABELLED.findall(text)
    if labelled:
        return labelled
    listed = [
        (match[2], bool(_SET_OFF.search(match[1]))) for match in _LISTED.finditer(text)
    ]
    set_off = [letter for letter, is_set_off in listed if is_set_off]
    return set_off if len(listed) > len(set_off) == 1 else []


def _letter_alone(text: str) -> str | None:
    """Read the option letter of a reply in the first of its usual forms; None if it has none."""
    match = _FORMS[0].search(text)
    return match[1].upper() if match else None


def _read_text(text: str, options: Sequence[str]) -> str:
    """Read the option letter, or an option's text, that an unmarked text gives."""
    text = _CORRECTION.split(_MARKUP.sub("", text).strip())[-1].strip()
    texts = [option.casefold().strip(" .") for option in options]
    if text.casefold().strip(" .") in texts:
        by_text = "ABCDE"[texts.index(text.casefold().strip(" ."))]
        # A letter that is an option's text names two options.
        letter = _letter_alone(text)
        is_letter = letter is not None and "ABCDE".index(letter) < len(options)
        return "" if is_letter and letter != by_text else by_text
    unlisted = _OPTION_LIST.sub("", text)
    if re.search(r"\w", unlisted):
        text = unlisted
    conclusion = _CONCLUSION.match(text)
    if conclusion:
        letter = _read_text(conclusion[1], options)
        if letter:
            return letter
    affirmed = _UNCHOSEN.sub(" ", text)
    for rank, form in enumerate(_FORMS):
        letters = {
            "".join(match.groups("")).upper() for match in form.finditer(affirmed)
        }
        if letters:
            several = len(letters) > 1 or _ALSO.search(affirmed)
            letter = "" if several else letters.pop()
            # Where options are letters, the letter seen is not the letter chosen.
            seen = letter.casefold() in texts and not _CHOSEN.search(text)
            known = not options or letter in "ABCDE"[: len(options)]
            # A letter in passing beside the text of another option: two are named.
            in_passing = letter and rank >= _IN_PASSING
            by_text = _read_option(text, options) if in_passing else ""
            agrees = by_text in ("", letter)
            return letter if known and agrees and not seen else ""
    return _read_option(text, options)


def _read_option(text: str, options: Sequence[str]) -> str:
    """Read the letter of the only option whose text is affirmed, or that all others leave."""
    text = _UNSAID.sub(" ", _expand(text))
    for said in (text, _BEFORE_BUT.sub(" ", text)):
        named = _named_options(said, options)
        if len(named) == 1:
            return named.pop()
    ordinal = _read_ordinal(text, options) or _read_words_of_one(text, options)
    if ordinal:
        return ordinal
    mentioned = {letter for letter, _, _ in _places(text, options)}
    others = set("ABCDE"[: len(options)]) - mentioned
    return others.pop() if len(others) == 1 and _REMAINING.search(text) else ""


def _read_ordinal(text: str, options: Sequence[str]) -> str:
    """Read "the second option", where no option is a place in an order itself."""
    match = _ORDINAL.match(text)
    if match is None or any(map(_ORDER.search, map(_expand, options))):
        return ""
    place = _ORDER_WORDS.index(match[1])
    return "ABCDE"[place] if place < len(options) else ""


def _read_words_of_one(text: str, options: Sequence[str]) -> str:
    """Read the option whose words alone a text has, in any order: "a disc that is green"."""
    sentences = list(filter(str.strip, _SENTENCE_END.split(text)))
    qualified = re.search(r"\b(?:that|which) is \w+\W*\Z", text)
    if (
        not qualified
        or len(sentences) != 1
        or _DENIAL.search(text)
        or _HEDGE.search(text)
    ):
        return ""
    keys = [set(key) for key in _keys(options)]
    words = {_stem(word) for word in _WORD.findall(text)} & set().union(*keys)
    letters = [
        letter
        for letter, key in zip("ABCDE", keys, strict=False)
        if key == words and len(key) > 1
    ]
    return letters[0] if len(letters) == 1 else ""


def _named_options(text: str, options: Sequence[str]) -> set[str]:
    """List the letters of the options that a text affirms; none where one is hedged."""
    places = _places(text, options)
    if not places and _are_kinds(options):
        # "Bars" for "stripes", where the options are kinds of patterns.
        text = _by_kind(text)
        places = _places(text, list(map(_kinds, options)))
    letters = set()
    for letter, start, end in places:
        before, after = text[:start], text[end:]
        if text[start:end].isdecimal() and _NUMBERED.search(before):
            continue
        # "A hot dog" names no dog.
        if any(
            other_start <= start < end <= other_end
            and other_end - other_start > end - start
            for _, other_start, other_end in places
        ):
            continue
        beside = _SENTENCE_END.split(before)[-1] + _SENTENCE_END.split(after)[0]
        if _HEDGE.search(beside) or (_FROM.search(before) and after.startswith(" to ")):
            return set()
        rest = _CLAUSE_END.split(after)[0]
        denied = _DENIAL.search(_CLAUSE_END.split(before)[-1]) or _DENIED.search(rest)
        # "The left half is plain": what is sought is elsewhere.
        denied = (
            denied
            or _NOTHING.match(after)
            or (_IS.match(rest) and PHRASES["flat_word"].search(rest))
        )
        measured_from = _SIDE.fullmatch(text[start:end]) and _OF.match(after)
        if not denied and not measured_from:
            letters.add(letter)
    return letters


def _places(text: str, options: Sequence[str]) -> list[tuple[str, int, int]]:
    """List where a text has an option's words, in order and near each other."""
    words = [
        (_stem(match[0]), match.start(), match.end())
        for match in _WORD.finditer(text)
        if not _FILLERS.match(match[0])
    ]
    places = []
    for letter, key in zip("ABCDE", _keys(options), strict=False):
        for first in range(len(words)):
            last = _last_word(words, first, key)
            if last is not None:
                start, end = words[first][1], words[last][2]
                denial = _DENIAL.search(text[start:end])
                if not re.search(r"[,;:.!?\n]", text[start:end]) and (
                    denial is None or denial[0] in key
                ):
                    places.append((letter, start, end))
    return places


def _last_word(
    words: Sequence[tuple[str, int, int]], first: int, key: Sequence[str]
) -> int | None:
    """Find where an option's words end that begin at a word; None where they do not."""
    place = first - 1
    for i, stem in enumerate(key):
        nearby = range(place + 1, min(place + 1 + (_NEAR if i else 1), len(words)))
        forms = (stem, f"{stem}ward")
        place = next((j for j in nearby if words[j][0] in forms), -1)
        if place < 0:
            return None
    return place if key else None


def _keys(options: Sequence[str]) -> list[tuple[str, ...]]:
    """List the word stems that tell each option from the others."""
    words = [_WORD.findall(_expand(option)) for option in options]
    whole, short = (
        [
            tuple(_stem(word) for word in option_words if not left_out.match(word))
            for option_words in words
        ]
        for left_out in (_FILLERS, _CARRIERS)
    )
    return short if all(short) and len(set(short)) == len(short) else whole


def _stem(word: str) -> str:
    """Reduce a word to its stem, the same for some words of one meaning."""
    stem = _ENDING.sub("", word)
    return next((name for name, words in _SAME.items() if stem in words), stem)


def _are_kinds(options: Sequence[str]) -> bool:
    """Tell whether all options are kinds of patterns, no two of one kind."""
    kinds = list(filter(None, map(_kinds, options)))
    return len(kinds) > 1 and len(set(kinds)) == len(kinds)


def _kinds(option: str) -> str:
    """Return the names of the kinds of patterns that an option names."""
    return " ".join(_KIND.findall(_by_kind(_expand(option))))


def _by_kind(text: str) -> str:
    """Replace words for kinds of patterns in a text by the name of the kind."""
    for kind, words in KINDS.items():
        text = words.sub(f"kind{kind}", text)
    return PHRASES["flat_word"].sub("kindflat", text)


def _expand(text: str) -> str:
    """Convert a text to lower case, without contractions."""
    text = text.casefold()
    for pattern, words in _CONTRACTIONS:
        text = re.sub(pattern, words, text)
    return text
