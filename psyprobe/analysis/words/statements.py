"""Read what sentences state of an image: that it shows a pattern, or that it is flat.

A statement counts only where its parts are known; what hedges or says both is undecided.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from psyprobe.analysis.words.reply_text import (
    KINDS,
    PART,
    PHRASES,
    Reading,
    plain_text,
    search,
    strip_marks,
)


def contradicts(lead: Reading, rest: str, sentences: list[str], polarity: int) -> bool:
    """Tell whether a text goes on with the opposite of its answer: "Yes, there is no pattern".

    What follows "although" or "only" contradicts nothing.
    """
    lead_sign = 1 if lead == "yes" else -1
    for follows in filter(None, (rest, *sentences[1:])):
        statement = _combine_sentences([follows])
        # "No objects" may be said of a pattern without any.
        names = statement.explicit or search("flat_word", follows)
        opposed = statement.sign * polarity == -lead_sign
        # "Yes. However, it is uniform" takes all back, "yes, though mostly uniform" nothing.
        whole = follows is not rest and not statement.explicit
        conceded = search("remainder" if whole else "concession", follows)
        if names and opposed and not conceded:
            return True
    return False


def opposes(decision: Reading, rest: str, polarity: int) -> bool:
    """Tell whether the rest of a sentence says the opposite: "to say yes, but it is flat"."""
    sign = _combine_sentences([rest]).sign * polarity
    return sign == (-1 if decision == "yes" else 1)


def question_sign(question: str) -> int | None:
    """Tell what yes to a question means: 1 pattern, -1 none, 0 neither, None unclear.

    It is unclear where the question contains a denial.
    """
    question = PHRASES["tag"].sub("", question)
    if search("open_question", question):
        return 0
    target = search("target", question)
    flat = search("flat_word", question)
    # "It" is whatever was asked about.
    sign = bool(target and not target[0].startswith("it")) - bool(flat)
    return None if sign and search("negation", question) else sign


def asks_for_pattern(question: str, polarity: int) -> bool:
    """Tell whether a question asks if there is a pattern or, by polarity -1, none.

    Examples
    --------
    >>> asks_for_pattern("Is there a grating?", 1), asks_for_pattern("Is it blank?", -1)
    (True, True)
    >>> asks_for_pattern("Are the stripes vertical?", 1), asks_for_pattern("Is it smooth?", 1)
    (False, False)
    """
    text = _find_question(question)
    if search("compared", text) or (
        search("definite", text) and not search("seen_word", text)
    ):
        return False
    if search("anything", text):
        return True
    named = search("target", text) or search("flat_word", text)
    return bool(named) and question_sign(text) != -polarity


# The replies of a run answer few questions.
@lru_cache(1024)
def _find_question(question: str) -> str:
    """Return the sentences of a prompt that have a question mark, or all of it."""
    plain = plain_text(question)
    asked = [part for part in PART.findall(plain) if "?" in part] or [plain]
    return " ".join(map(strip_marks, asked))


_TARGET = re.compile(r"(?i)\b(?:target|stimulus|signal)\b")


def name_target(question: str, text: str) -> tuple[str, str]:
    """Call the target of a question a pattern, in the question and in a reply.

    Examples
    --------
    >>> name_target("Is the target visible?", "No target."), name_target("Is it?", "No target.")
    (('Is the pattern visible?', 'No pattern.'), ('Is it?', 'No target.'))
    """
    if not _TARGET.search(_find_question(question)):
        return question, text
    return _TARGET.sub("pattern", question), _TARGET.sub("pattern", text)


def read_alternative(text: str, question: str, polarity: int) -> Reading | None:
    """Read which of a question's two things a reply names by its place or with its words.

    Examples
    --------
    >>> read_alternative("The latter.", "Is it a grating, or is it all grey?", 1)
    'no'
    >>> read_alternative("Gray.", "Is it a grating, or is it all grey?", 1)
    'no'
    """
    alternatives = re.split(r"\bor\b", _find_question(question))
    signs = [question_sign(alternative) for alternative in alternatives]
    if sorted(sign or 0 for sign in signs) != [-1, 1]:
        return None
    plain = plain_text(text).replace("gray", "grey")
    sentence = strip_marks((PART.findall(plain) or [""])[-1])
    by_place = PHRASES["of_two"].fullmatch(sentence)
    word = re.fullmatch(r"\W*(?:an? |the )?([a-z]{4,})\W*", plain)
    by_word = [
        bool(word and re.search(rf"\b{word[1]}\b", alternative.replace("gray", "grey")))
        for alternative in alternatives
    ]
    if not by_place and sum(by_word) != 1:
        return None
    second = by_place[1] == "latter" if by_place else by_word[1]
    return "yes" if signs[second] == polarity else "no"


def asked_kinds(question: str) -> tuple[str, ...]:
    """Find the kinds of patterns that a question asks for; none where it asks for any.

    Examples
    --------
    >>> asked_kinds("Do you see stripes or dots?"), asked_kinds("Do you see a pattern?")
    (('lines', 'dots'), ())
    """
    part = _find_question(question)
    kinds = tuple(kind for kind, words in KINDS.items() if words.search(part))
    return () if search("open_kind", part) else kinds


def mask_other_kinds(text: str, kinds: tuple[str, ...]) -> tuple[str, bool]:
    """Mask patterns other than given kinds in a text, and tell whether only such are named.

    Noise has no form: where it is asked for, a pattern is of another kind, and noise takes its
    place.

    Examples
    --------
    >>> mask_other_kinds("Dots, no lines", ("lines",)), mask_other_kinds("A dot", ("lines",))
    (('otherkind, no lines', False), ('A otherkind', True))
    >>> mask_other_kinds("Pattern: no. Grain: yes.", ("noise",))
    ('otherkind: no. pattern: yes.', False)
    """
    if not kinds:
        return text, False
    if kinds == ("noise",):
        text = _NOISE_PATTERN.sub(r"\1", text)
        text = _ANY_PATTERN.sub("otherkind", text)
    named = {name for name, words in KINDS.items() if words.search(text)}
    for name in named - {*kinds}:
        text = KINDS[name].sub("otherkind", text)
    if kinds == ("noise",):
        text = KINDS["noise"].sub(_noise_as_pattern, text)
    return text, "otherkind" in text and not named & {*kinds}


_NOISE = KINDS["noise"].pattern.replace("(?i)", "")
_PATTERN = f"(?<![a-z])(?:{PHRASES['named'].pattern}|patterned|textured)(?![a-z])"
#: A pattern of any kind, and one that is called noise: "grainy texture".
_ANY_PATTERN = re.compile(f"(?i){_PATTERN}")
_NOISE_PATTERN = re.compile(f"(?i)({_NOISE})(?:-like)?[ _-](?:{_PATTERN})")
_COLOUR = re.compile(
    r"(?i)\b(gr[ae]y|white|black|red|orange|yellow|green|blue|purple|pink|brown)\b"
)


def _noise_as_pattern(noise: re.Match[str]) -> str:
    """Replace a word for noise by that for a pattern: "noise" "pattern", "noisy" "patterned"."""
    return "patterned" if noise[0].casefold().endswith(("y", "ed")) else "pattern"


def names_other_colour(text: str, question: str) -> bool:
    """Tell whether a reply names another colour than the question's.

    Examples
    --------
    >>> names_other_colour("All white", "Is it grey?"), names_other_colour("Gray", "Is it grey?")
    (True, False)
    """
    asked, named = (
        {colour.casefold().replace("gray", "grey") for colour in _COLOUR.findall(words)}
        for words in (question, text)
    )
    return bool(asked and named) and not named & asked


def label_sign(label: str) -> int:
    """Tell what a true label means: "pattern present" 1, "uniform" or "no stripes" -1, else 0."""
    label = label.removeprefix("is ")
    seen = PHRASES["bare_seen"].fullmatch(label)
    if seen:
        return -1 if seen[1] or label.endswith("absent") else 1
    sign = question_sign(label)
    denials = PHRASES["negation"].findall(label)
    if sign is None and len(denials) == 1:
        return 1 if search("flat_word", label) else -1
    return sign or 0


def read_statements(sentences: list[str], polarity: int) -> Reading | None:
    """Read yes or no from all statements of a reply; None where these leave it open."""
    for i in range(len(sentences) - 1, 0, -1):
        concluded = PHRASES["conclusion"].match(sentences[i])
        if concluded and _combine_sentences([sentences[i][concluded.end() :]]).sign:
            sentences = [sentences[i][concluded.end() :], *sentences[i + 1 :]]
            break
    if PHRASES["unlike_others"].fullmatch("; ".join(sentences)):
        return "no" if polarity == 1 else "yes"
    statement = _combine_sentences(sentences)
    if any(PHRASES["elliptic_it"].fullmatch(sentence) for sentence in sentences[1:]):
        return "ambiguous"
    direct = {
        elliptic_sign(sentence)
        for sentence in sentences
        if len(sentences) == 1 or not PHRASES["filler"].fullmatch(sentence)
    } - {0}
    signs = direct | ({statement.sign * polarity} if statement.sign else set())
    if signs and any(search("left_open", sentence) for sentence in sentences):
        return "ambiguous"
    if len(signs) == 1:
        return "yes" if 1 in signs else "no"
    return "ambiguous" if signs or statement.undecided else None


@dataclass(frozen=True)
class _Statement:
    """A statement about the pattern in the image."""

    #: 1 where it says that there is a pattern, -1 that there is none, 0 neither.
    sign: int
    #: Whether it names the pattern, and does not only call the image flat.
    explicit: bool = False
    #: Whether it hedges, or says both.
    undecided: bool = False


_UNDECIDED = _Statement(0, undecided=True)


def elliptic_sign(sentence: str) -> int:
    """Tell what an elliptic sentence answers: "I think so" 1, "Probably not" -1, any other 0."""
    if sentence in ("no doubt", "without a doubt", "no question"):
        return 1
    if PHRASES["elliptic_no"].fullmatch(sentence):
        return -1
    return 1 if PHRASES["elliptic_yes"].fullmatch(sentence) else 0


def _combine_sentences(sentences: list[str]) -> _Statement:
    """Combine what sentences say about a pattern in the image."""
    if len(sentences) == 1 and PHRASES["only_background"].fullmatch(sentences[0]):
        return _Statement(-1)
    clauses = [
        part.strip(" ,;:-")
        for sentence in sentences
        for part in PHRASES["clauses"].split(
            _replace_unsaid(PHRASES["idioms"].sub(" ", _replace_exceptions(sentence)))
        )
    ]
    if any(PHRASES["elliptic_it"].fullmatch(clause) for clause in clauses[1:]):
        return _UNDECIDED
    texts = [
        re.sub(r"\s+", " ", part)
        for clause in clauses
        for part in _split_clause(clause)
        if part
    ]
    statements = [_read_clause(text) for text in texts]
    signed = [i for i, statement in enumerate(statements) if statement.sign]
    if signed and any(statement.undecided for statement in statements[signed[-1] :]):
        return _UNDECIDED
    if _denies_later(texts, statements):
        return _UNDECIDED
    for explicit in (True, False):
        signs = {
            statement.sign
            for statement in statements
            if statement.sign and statement.explicit == explicit
        }
        if len(signs) == 2:
            return _UNDECIDED
        if signs:
            return _Statement(signs.pop(), explicit)
    return _Statement(0, undecided=any(statement.undecided for statement in statements))


def _denies_later(texts: list[str], statements: list[_Statement]) -> bool:
    """Tell whether a text calls the whole image flat after it stated a pattern."""
    patterned = False
    for text, statement in zip(texts, statements, strict=True):
        flat = statement.sign == -1 and not statement.explicit
        if patterned and flat and not search("remainder", text):
            return True
        patterned = patterned or (statement.explicit and statement.sign == 1)
    return False


def _replace_exceptions(sentence: str) -> str:
    """Rewrite "nothing but" as "see only" and exceptions as statements, and drop asides."""
    sentence = PHRASES["aside"].sub(r"\1", sentence)
    sentence = PHRASES["undeniable"].sub(" is visible", sentence)
    sentence = PHRASES["no_way_to_miss"].sub(" i see ", sentence)
    sentence = PHRASES["not_without"].sub(" with ", sentence)
    sentence = (
        PHRASES["nothing_but"]
        .sub(" see only ", sentence)
        .replace("anything but", "far from")
    )
    exception = search("exception", sentence)
    flat = exception and search("is_flat", sentence[: exception.start()])
    replacement = ", there is excepted " if flat else ", there is "
    return PHRASES["exception"].sub(replacement, sentence)


def _replace_unsaid(sentence: str) -> str:
    """Mask what a reply does not assert of the image: conditions, guesses, others' words."""
    sentence = PHRASES["own_doubt"].sub("i do not think ", sentence)
    sentence = PHRASES["simile"].sub("", sentence)
    sentence = PHRASES["conceded_first"].sub("", sentence)
    sentence = PHRASES["own_limits"].sub("", sentence)
    sentence = PHRASES["label_of_seen"].sub("", sentence)
    sentence = PHRASES["condition"].sub(" whether ", sentence)
    sentence = PHRASES["unknown_scope"].sub(" maybe ", sentence)
    return PHRASES["field"].sub(r"\1 image", sentence)


def _split_clause(clause: str) -> list[str]:
    """Split a clause before a part that names a pattern: "not a plain image, stripes are seen"."""
    parts = [""]
    flat_stated = False
    for piece in re.split("([,:]| - )", clause):
        words = piece.strip()
        # A list goes on after "a plain image without dots".
        after_flat = flat_stated and not search("target", parts[-1])
        stands_alone = after_flat or (parts[-1] and PHRASES["own_verb"].match(words))
        if (
            stands_alone
            and search("target", words)
            and not PHRASES["flat_first"].match(words)
        ):
            parts = [*parts, ""]
            flat_stated = False
        flat_stated = flat_stated or bool(
            search("is_flat", words) and not search("flat_noun", words)
        )
        parts[-1] += piece
    return [part.strip(" ,;:-") for part in parts]


def _read_clause(text: str) -> _Statement:
    """Read what one clause says about a pattern in the image."""
    if search("hedge", text):
        return _UNDECIDED
    if search("about_task", text) or search("general", text):
        return _Statement(0)
    complement = search("complement", text)
    if complement and not PHRASES["head"].fullmatch(text[: complement.start()]):
        return _UNDECIDED
    bare = PHRASES["bare_seen"].fullmatch(text)
    if bare:
        return _Statement(
            -1 if bare[1] or text.endswith("absent") else 1, explicit=True
        )
    target = search("target", text)
    flat = search("is_flat", text)
    if target is not None:
        before = text[: target.start()]
        after = text[target.end() :]
        denials = len(PHRASES["negation"].findall(before)) + target[0].startswith(
            "none"
        )
        if search("compared_denial", after):
            # "Never have I seen stripes this clear": they are there.
            return _UNDECIDED
        denied = search("denied", after)
        aside = search("of_its_own", after)
        if denied and search("untrue", after[denied.end() :]):
            # "That a pattern cannot be seen is not true" denies a denial.
            return _UNDECIDED
        # What is denied of a flat field, as in "not a plain image with stripes", is not denied of
        # the pattern.
        flat_before = flat if flat and flat.start() < target.start() else None
        other = (
            flat_before
            and _count_flat_negations(text, flat_before)
            and not search("flat_noun", text)
        )
        if denials > 1 or (denials and (denied or other)) or (denied and aside):
            return _UNDECIDED
        if denials == 0 and (search("flat_noun", text) or search("contrasted", after)):
            return _UNDECIDED
        *_, last_denial = [None, *PHRASES["negation"].finditer(before)]
        if last_denial and not PHRASES["between"].fullmatch(
            before[last_denial.end() :]
        ):
            return _UNDECIDED
        if denials or denied:
            return _Statement(-1, explicit=True)
        if search("evidence", text):
            return _Statement(1, explicit=True)
        if flat and target.end() <= flat.start():
            return _UNDECIDED
        if PHRASES["described"].match(text):
            return _Statement(1, explicit=True)
    if text.startswith("there is excepted") and not flat:
        # "Uniform, except at the border": what is excepted may be the pattern.
        return _UNDECIDED
    if flat and search("part", text[: flat.start()]):
        # A half that is uniform leaves the other one open.
        return _Statement(0)
    if flat:
        denials = _count_flat_negations(text, flat)
        return _Statement((-1, 1)[denials]) if denials < 2 else _UNDECIDED
    return _Statement(-1 if search("nothing_else", text) else 0)


def _count_flat_negations(text: str, flat: re.Match[str]) -> int:
    """Count how often a clause denies that the image is flat; 2 where that is unclear."""
    before = PHRASES["sameness"].sub(" ", text[: flat.start()])
    # A denial ends at a comma: "without any features, uniform gray".
    count = len(PHRASES["negation_of_flat"].findall(before.rpartition(",")[2]))
    if count and search("in_passing", before):
        return 2
    return count + bool(search("untrue", text[flat.end() :]))
