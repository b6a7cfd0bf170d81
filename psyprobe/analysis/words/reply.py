"""From words to yes or no: what a reply decides, and what the first token says.

A reply is read by rules that never guess: what decides nothing is ambiguous, a refusal or invalid,
and is to be counted and left out. Words count, not beginnings of words ("Noise" is not no), and a
decision counts before a description.
"""

from __future__ import annotations

import math
import re
import tomllib
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Literal, TypeAlias

from psyprobe.errors import InputError

Reading: TypeAlias = Literal["yes", "no", "ambiguous", "refusal", "invalid"]

#: Other English words for either answer, counted where the answers are yes and no.
_ENGLISH_YES = ("yes", "yeah", "yep", "yup", "yea", "aye", "affirmative", "true")
_ENGLISH_NO = ("no", "nope", "nah", "nay", "negative", "false", "none")

_REASONING = "think|thinking|thought|thoughts|reasoning|reason|reflection|analysis|scratchpad|begin_of_thought"
_TAG = rf"(?:{_REASONING})[|]?[>\]▷]"
_BLOCK_END = re.compile(rf"[<\[◁][|]?(?:/{_TAG}|end_of_thought[|]?>)")
_BLOCK_START = re.compile(rf"[<\[◁][|]?{_TAG}")
#: Characters of a reply that are read at its start, and as many at its end: nobody decides later in
#: more.
_READ = 2000
_ANSWER_TAG = re.compile(r"(?s)<answer>(.*?)(?:</answer>|$)")
_TABLE_ROW = re.compile(r"(?m)^[^\S\n]*\|(.+)\|[^\S\n]*$")
#: A short label, such as "Pattern visible: no".
_LABEL = re.compile(r"(?:[\w'-]+ ){0,9}[\w'-]+\s*[:=]+>?\s*")


def _read_phrases() -> tuple[dict[str, re.Pattern[str]], list[tuple[re.Pattern[str], str]]]:
    phrases: dict[str, str] = {}
    text = (
        files("psyprobe.analysis.words").joinpath("reply_phrases.toml").read_text(encoding="utf-8")
    )
    page = tomllib.loads(text)
    contractions = [
        (re.compile(pattern), expanded) for pattern, expanded in page.pop("contractions")
    ]
    for name, phrase in page.items():
        phrases[name] = re.sub(
            r"\{([a-z_]+)\}", lambda found: phrases[found[1]], phrase.replace("\n", "")
        )
    return {name: re.compile(phrase) for name, phrase in phrases.items()}, contractions


_PHRASES, _CONTRACTIONS = _read_phrases()


@dataclass(frozen=True)
class FirstToken:
    """What the first token of an answer says."""

    #: Probability of yes among yes and no.
    p_yes: float
    #: Natural log odds of yes against no; a bound where censored.
    logit: float
    #: Probability of yes and no together: how far the question is answered by its first token at
    #: all.
    mass: float
    #: Whether only one of the two is listed: the other is then at most as likely as the least
    #: likely token listed.
    censored: bool


def read_reply(
    text: str, yes: Sequence[str] = ("yes",), no: Sequence[str] = ("no",), *, polarity: int = 1
) -> Reading:
    """What a reply to a yes/no question decides.

    Parameters
    ----------
    text : str
        The reply as it came.
    yes, no : sequence of str
        Words that count as either answer, whatever their case; other English words for yes and no
        and English statements count where "yes" and "no" are among them.
    polarity : {1, -1}
        -1 where the question asks whether there is nothing: then "there is a pattern" answers no.

    Returns
    -------
    {"yes", "no", "ambiguous", "refusal", "invalid"}
        Ambiguous: it hedges or says both. Refusal: it says that no image was seen, or declines.
        Invalid: all else.

    Examples
    --------
    >>> read_reply("**No.**"), read_reply("I can see a faint pattern."), read_reply("Noise")
    ('no', 'yes', 'invalid')
    >>> read_reply("I cannot view images."), read_reply("Maybe"), read_reply("I cannot see any pattern.")
    ('refusal', 'ambiguous', 'no')
    >>> read_reply("Ja.", yes=("ja",), no=("nein",))
    'yes'
    """
    words = _words(tuple(yes), tuple(no))
    plain = plain_text(text)
    if words.english and _is_refusal(plain, excuses=False):
        return "refusal"
    both = words.both.search(plain)
    if both and both["bare"] is not None:
        return "ambiguous"
    text = words.both.sub(" ", plain)
    answered = _answered_question(words, text, polarity) if words.english else None
    if answered:
        return answered
    sentences = sentences_of(text)
    lead, rest = words.leading(sentences)
    last = words.last(sentences)
    if lead and last and lead != last:
        return "ambiguous"
    if lead:
        contradicted = words.english and _contradicted(lead, rest, sentences, polarity)
        return "ambiguous" if contradicted else lead
    if words.english and _is_refusal(plain, excuses=True):
        return "refusal"
    return (
        last
        or words.alone(plain)
        or (_stated(sentences, polarity) if words.english else None)
        or ("ambiguous" if both or words.on_both_sides(plain) else "invalid")
    )


def read_first_token(
    first_tokens: Sequence[tuple[str, float]],
    complete: bool,
    yes: Sequence[str] = ("yes",),
    no: Sequence[str] = ("no",),
) -> FirstToken | None:
    """What the first token of an answer says, from its log-probabilities.

    Parameters
    ----------
    first_tokens : sequence of (str, float)
        Tokens with natural log-probabilities, in any order; all spellings of a word count, whatever
        their case and surrounding space.
    complete : bool
        Whether every token that spells one of the words is listed.
    yes, no : sequence of str
        Words that count as either answer.

    Returns
    -------
    FirstToken or None
        None where neither answer is listed.

    Raises
    ------
    InputError
        If a log-probability is above 0, or a word stands for both answers.

    Examples
    --------
    >>> both = read_first_token([("Yes", -0.1), (" no", -2.5), ("yes", -6.0)], complete=False)
    >>> round(both.p_yes, 3), both.censored
    (0.917, False)
    >>> only = read_first_token([("Yes", -0.01), ("The", -5.0), ("A", -9.0)], complete=False)
    >>> round(only.logit, 2), only.censored
    (8.99, True)
    """
    sides = {
        word.strip().casefold(): side for side, words in enumerate((yes, no)) for word in words
    }
    found: tuple[list[float], list[float]] = ([], [])
    others: list[float] = []
    total = 0.0
    for token, logprob in first_tokens:
        if math.isnan(logprob) or logprob > 1e-3:
            raise InputError(
                f"the log-probability of {token!r} is {logprob}; a natural logarithm is at most 0"
            )
        if logprob == -math.inf:
            continue
        total += math.exp(logprob)
        side = sides.get(token.replace("\u2581", " ").replace("\u0120", " ").strip().casefold())
        (others if side is None else found[side]).append(logprob)
    if not found[0] and not found[1]:
        return None
    # What is not listed is at most as likely as the last that is, and as what the listed ones
    # leave.
    bound = (
        min([*others, math.log(max(1 - total, 1e-12))]) if complete or not others else min(others)
    )
    log_yes, log_no = (_log_sum(logs) if logs else bound for logs in found)
    logit = log_yes - log_no
    mass = min(1.0, sum(math.exp(_log_sum(logs)) for logs in found if logs))
    return FirstToken(_expit(logit), logit, mass, not (found[0] and found[1]))


def without_reasoning(text: str) -> str:
    """A reply without reasoning blocks, in lower case; nothing is left where the reasoning never
    ends.

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
        c for c in unicodedata.normalize("NFKC", text) if unicodedata.category(c) != "Cf"
    ).casefold()
    ends = [found.end() for found in _BLOCK_END.finditer(text)]
    text = text[ends[-1] :] if ends else text
    unfinished = _BLOCK_START.search(text)
    return text[: unfinished.start()] if unfinished else text


def plain_text(text: str) -> str:
    """A reply without reasoning blocks, markup, quotes and contractions, in lower case.

    Parameters
    ----------
    text : str
        As it came.

    Examples
    --------
    >>> plain_text("<think>Hmm, no.</think> **Yes**, it isn\u2019t blank")
    'yes, it is not blank'
    """
    text = re.sub("[\u2018\u2019\u02bc\u00b4]", "'", without_reasoning(text))
    text = text if len(text) <= 2 * _READ else f"{text[:_READ]}\n{text[-_READ:]}"
    tagged = _ANSWER_TAG.findall(text)
    text = tagged[-1] if tagged else text
    text = re.sub(r"</?[a-z][^<>\n]{0,40}>|<\|[^<>]{0,40}\|>|\\[a-z]+", " ", text)
    text = _TABLE_ROW.sub(lambda row: ": ".join(row[1].split("|")), text)
    for pattern, expanded in _CONTRACTIONS:
        text = pattern.sub(expanded, text)
    text = re.sub(r"(?<!\w)'|'(?!\w)", " ", text)
    text = re.sub("[\u2012-\u2015]", " - ", re.sub(r"\by ?/ ?n\b", "yes/no", text))
    text = re.sub("[\u2192\u21d2]|[-=]>", ": ", text)
    text = "".join(" " if unicodedata.category(c) in ("So", "Sk", "Cn", "Co") else c for c in text)
    text = re.sub(r'[*_`#~"\u201c\u201d\u00ab\u00bb\u300c\u300d\[\]{}()$<>|\\]', " ", text)
    text = re.sub(r"[^\S\n]+", " ", re.sub(r"\s*\n\s*", "\n", text))
    return re.sub(r" ([:,.;!?])", r"\1", text).strip(" \n,-:;")


def sentences_of(text: str) -> list[str]:
    """The sentences of a plain text that state something: questions and repeated instructions are
    left out.

    Parameters
    ----------
    text : str
        From `plain_text`.

    Examples
    --------
    >>> sentences_of("is there a pattern? yes. it is faint!")
    ['yes', 'it is faint']
    """
    kept = [_bare(part) for part in _PART.findall(text) if "?" not in part]
    return [part for part in kept if part and (":" in part or not _PHRASES["echo"].match(part))]


_PART = re.compile(r"[^.!?;\n\u3002]+[.!?;\n\u3002]*")


def _bare(part: str) -> str:
    return part.rstrip(".!?;\n\u3002").strip(" ,:-/")


@dataclass(frozen=True)
class _Words:
    """The words for either answer, as patterns."""

    yes: str
    no: str
    english: bool
    both: re.Pattern[str]
    long: re.Pattern[str] | None

    def leading(self, sentences: list[str]) -> tuple[Reading | None, str]:
        """The decision a text begins with, after a preamble, and the rest of its sentence."""
        text = _PHRASES["idioms_at_start"].sub("", ". ".join(sentences))
        preamble = _PHRASES["preamble"].match(text)
        starts = [0, preamble.end()] if preamble else [0]
        label = _LABEL.match(text)
        if label and not _PHRASES["misleading_label"].search(label[0]):
            starts.append(label.end())
        for start in starts:
            found = re.compile(f"(?:(?P<yes>{self.yes})|(?P<no>{self.no}))").match(text, start)
            if found and not (self.english and _PHRASES["no_decision"].match(text, found.start())):
                rest = text[found.end() :].partition(". ")[0]
                return ("yes" if found["yes"] else "no"), rest.strip(" ,:;-")
        return None, ""

    def last(self, sentences: list[str]) -> Reading | None:
        """The last decision that is put as one: after a cue, at the end of a sentence, or at the
        start of the last.
        """
        word = f"(?:(?P<yes>{self.yes})|(?P<no>{self.no}))"
        for sentence in reversed(sentences):
            put = [
                *re.finditer(
                    rf"(?:\b{_PHRASES['cues'].pattern}|[,:] ?|- ){word}(?=$|[,.:]| -| because| "
                    r"as | since)",
                    sentence,
                )
            ]
            found = put[-1] if put else re.search(rf"(?P<yes>{self.yes})(?P<no>(?!))?$", sentence)
            if found and not _PHRASES["taken_back"].search(sentence[: found.end()]):
                return "yes" if found["yes"] else "no"
            decided, rest = self.leading([sentence])
            if decided and len(sentences) > 1 and (sentence is sentences[-1] or not rest):
                return decided
        return None

    def on_both_sides(self, text: str) -> bool:
        """Whether both answers are mentioned."""
        return all(re.search(side, text) for side in (self.yes, self.no))

    def alone(self, text: str) -> Reading | None:
        """The answer whose words are the only ones to occur; short words double as others and are
        left out.
        """
        if self.long is None or re.search(r"\b(?:not|neither|nor|nicht|pas)\b", text):
            return None
        found = {"yes" if each["yes"] else "no" for each in self.long.finditer(text)}
        return ("yes" if "yes" in found else "no") if len(found) == 1 else None


@lru_cache
def _words(yes: tuple[str, ...], no: tuple[str, ...]) -> _Words:
    given = [{plain_text(word) or word.casefold() for word in words} for words in (yes, no)]
    if not given[0] or not given[1] or given[0] & given[1]:
        raise InputError(
            f"the words for yes are {yes} and for no {no}; give at least one for each, and none "
            "for both"
        )
    english = "yes" in given[0] and "no" in given[1]
    extra = (_ENGLISH_YES, _ENGLISH_NO) if english else ((), ())
    sides = [words | set(more) for words, more in zip(given, extra, strict=True)]
    # Chinese has no spaces: a longer word of the other side takes precedence over a shorter one
    # inside it.
    first, second = (_alternatives(words, sides[1 - i]) for i, words in enumerate(sides))
    if english:
        first, second = (
            rf"{words}|(?<![\w'-]){letter}(?=$|[.,:;!])"
            for words, letter in ((first, "y"), (second, "n"))
        )
    listed = r" ?(?:/|\|)+ ?|,? (?:or|nor|oder|ou|o) "
    spaced = r" |,? (?:and|&) |"
    either = "|".join(f"(?:{a})(?:{listed})(?:{b})" for a, b in ((first, second), (second, first)))
    bare = "|".join(
        f"(?:{a})(?:{spaced})(?:{b})(?! \\w)" for a, b in ((first, second), (second, first))
    )
    both = re.compile(f"(?:either |neither )?(?:{either})|(?P<bare>{bare})")
    long = [{word for word in words if len(word) > 3 or ord(word[0]) >= 0x2E80} for words in sides]
    alone = None
    if not english and long[0] and long[1]:
        a, b = (_alternatives(words, sides[1 - i]) for i, words in enumerate(long))
        alone = re.compile(f"(?P<yes>{a})|(?P<no>{b})")
    return _Words(first, second, english, both, alone)


def _alternatives(words: set[str], others: set[str]) -> str:
    parts = []
    for word in sorted(words, key=lambda w: (-len(w), w)):
        if ord(word[0]) >= 0x2E80:
            longer = [other for other in others if word in other and word != other]
            before = "".join(
                f"(?<!{re.escape(o[: o.index(word)])})" for o in longer if o.index(word)
            )
            after = "".join(
                f"(?!{re.escape(o[o.index(word) + len(word) :])})"
                for o in longer
                if not o.endswith(word)
            )
            parts.append(before + re.escape(word) + after)
        else:
            parts.append(rf"(?<![\w'-]){re.escape(word)}(?![\w']|-\w)")
    return "|".join(parts)


def _contradicted(lead: Reading, rest: str, sentences: list[str], polarity: int) -> bool:
    """Whether "Yes" goes on with "there is no pattern"; what follows "although" or "only"
    contradicts nothing.
    """
    follows = rest or "".join(sentences[1:2])
    said = _statement([follows])
    opposed = said.explicit and said.sign * polarity != (1 if lead == "yes" else -1)
    return opposed and not _PHRASES["concession"].search(follows)


def _answered_question(words: _Words, text: str, polarity: int) -> Reading | None:
    """What a question of the reply's own comes to with the answer behind it: "Uniform? I don't
    think so" says yes.
    """
    parts = _PART.findall(text)
    asked = [_asked(_bare(part)) if "?" in part else 0 for part in parts]
    for i in range(len(parts) - 2, -1, -1):
        sign = asked[i]
        # Of two questions in a row nobody knows which is answered.
        if sign == 0 or "?" in parts[i + 1] or (i and asked[i - 1] != 0):
            continue
        given, rest = _given(words, _bare(parts[i + 1]))
        if given == 0 or (sign is None and polarity == -1):
            continue
        if sign is None:
            return "ambiguous"
        found: Reading = "yes" if sign * given * polarity == 1 else "no"
        before, after = (sentences_of("".join(some)) for some in (parts[:i], parts[i + 2 :]))
        others = {words.leading(before)[0], words.last(["", *after])} - {None, found}
        return (
            "ambiguous" if others or _contradicted(found, rest, ["", *after], polarity) else found
        )
    return None


def _asked(question: str) -> int | None:
    """What yes to a question says: 1 pattern, -1 none, 0 neither; None where a denial in it leaves
    that open.
    """
    question = _PHRASES["tag"].sub("", question)
    if _PHRASES["open_question"].search(question):
        return 0
    target = _PHRASES["target"].search(question)
    flat = _PHRASES["flat_word"].search(question)
    # "It" is whatever was asked about.
    sign = bool(target and not target[0].startswith("it")) - bool(flat)
    return None if sign and _PHRASES["negation"].search(question) else sign


def _given(words: _Words, sentence: str) -> tuple[int, str]:
    """Whether a sentence affirms (1) or denies (-1) the question before it, or does neither (0),
    and its rest.
    """
    lead, rest = words.leading([sentence])
    if lead:
        return (1 if lead == "yes" else -1), rest
    for head, rest in ((sentence, ""), sentence.partition(",")[::2]):
        if _PHRASES["denial"].fullmatch(head):
            return -1, rest
        if _elliptic(head):
            return _elliptic(head), rest
    return 0, ""


def _stated(sentences: list[str], polarity: int) -> Reading | None:
    said = _statement(sentences)
    direct = {
        _elliptic(sentence)
        for sentence in sentences
        if len(sentences) == 1 or not _PHRASES["filler"].fullmatch(sentence)
    } - {0}
    signs = direct | ({said.sign * polarity} if said.sign else set())
    if len(signs) == 1:
        return "yes" if 1 in signs else "no"
    return "ambiguous" if signs or said.undecided else None


@dataclass(frozen=True)
class _Statement:
    """What a text states."""

    #: 1 where it says that there is a pattern, -1 that there is none, 0 neither.
    sign: int
    #: Whether it names the pattern, and does not only call the image flat.
    explicit: bool = False
    #: Whether it hedges, or says both.
    undecided: bool = False


def _is_refusal(text: str, *, excuses: bool) -> bool:
    """Whether a reply says that no image was seen, or (with `excuses`) asks for it or declines to
    answer.
    """
    return bool(_PHRASES["no_image"].search(text)) or (
        excuses and bool(_PHRASES["excuse"].search(text))
    )


def _elliptic(sentence: str) -> int:
    """What a whole sentence answers that names nothing: "I think so" 1, "Probably not" -1; 0 where
    it is none such.
    """
    if sentence in ("no doubt", "without a doubt", "no question"):
        return 1
    if _PHRASES["elliptic_no"].fullmatch(sentence):
        return -1
    return 1 if _PHRASES["elliptic_yes"].fullmatch(sentence) else 0


def _statement(sentences: list[str]) -> _Statement:
    """What sentences say together about a pattern in the image."""
    clauses = [
        part.strip(" ,;:-")
        for sentence in sentences
        for part in _PHRASES["clauses"].split(
            _PHRASES["idioms"].sub(" ", _without_exceptions(sentence))
        )
    ]
    found = [
        _clause(re.sub(r"\s+", " ", part)) for clause in clauses for part in _parts(clause) if part
    ]
    for explicit in (True, False):
        signs = {each.sign for each in found if each.sign and each.explicit == explicit}
        if len(signs) == 2:
            return _Statement(0, undecided=True)
        if signs:
            return _Statement(signs.pop(), explicit)
    return _Statement(0, undecided=any(each.undecided for each in found))


def _without_exceptions(sentence: str) -> str:
    """A sentence with "see only" for "nothing but", exceptions ("uniform except for stripes") as
    there, no asides.
    """
    sentence = _PHRASES["aside"].sub(r"\1", sentence)
    sentence = (
        _PHRASES["nothing_but"].sub(" see only ", sentence).replace("anything but", "far from")
    )
    return _PHRASES["exception"].sub(", there is ", sentence)


def _parts(clause: str) -> list[str]:
    """A clause, cut before a part that names a pattern and stands for itself: "not a plain image,
    stripes are seen".
    """
    parts = [""]
    flat_told = False
    for piece in re.split("([,:]| - )", clause):
        said = piece.strip()
        stands_alone = flat_told or (parts[-1] and _PHRASES["own_verb"].match(said))
        if (
            stands_alone
            and _PHRASES["target"].search(said)
            and not _PHRASES["flat_first"].match(said)
        ):
            parts = [*parts, ""]
            flat_told = False
        flat_told = flat_told or bool(
            _PHRASES["is_flat"].search(said) and not _PHRASES["flat_noun"].search(said)
        )
        parts[-1] += piece
    return [part.strip(" ,;:-") for part in parts]


def _clause(text: str) -> _Statement:
    if _PHRASES["hedge"].search(text):
        return _Statement(0, undecided=True)
    if _PHRASES["about_task"].search(text):
        return _Statement(0)
    bare = _PHRASES["bare_seen"].fullmatch(text)
    if bare:
        return _Statement(-1 if bare[1] or text.endswith("absent") else 1, explicit=True)
    target = _PHRASES["target"].search(text)
    flat = _PHRASES["is_flat"].search(text)
    if target is not None:
        before = text[: target.start()]
        after = text[target.end() :]
        denials = len(_PHRASES["negation"].findall(before)) + target[0].startswith("none")
        denied = _PHRASES["denied"].search(after)
        aside = _PHRASES["of_its_own"].search(after)
        # What is denied of a flat field, as in "not a plain image with stripes", is not denied of
        # the pattern.
        flat_before = flat if flat and flat.start() < target.start() else None
        other = (
            flat_before
            and _negations_of_flat(text, flat_before)
            and not _PHRASES["flat_noun"].search(text)
        )
        if denials > 1 or (denials and (denied or other)) or (denied and aside):
            return _Statement(0, undecided=True)
        if denials == 0 and (
            _PHRASES["flat_noun"].search(text) or _PHRASES["contrasted"].search(after)
        ):
            return _Statement(0, undecided=True)
        if denials or denied:
            return _Statement(-1, explicit=True)
        if _PHRASES["evidence"].search(text):
            return _Statement(1, explicit=True)
        if flat and target.end() <= flat.start():
            return _Statement(0, undecided=True)
        if _PHRASES["described"].match(text):
            return _Statement(1, explicit=True)
    if flat:
        denials = _negations_of_flat(text, flat)
        return _Statement((-1, 1)[denials]) if denials < 2 else _Statement(0, undecided=True)
    return _Statement(-1 if _PHRASES["nothing_else"].search(text) else 0)


def _negations_of_flat(text: str, flat: re.Match[str]) -> int:
    """How often a clause denies that the image is flat; 2 where that cannot be told."""
    before = _PHRASES["sameness"].sub(" ", text[: flat.start()])
    # A denial ends at a comma: "without any features, uniform gray".
    count = len(_PHRASES["negation_of_flat"].findall(before.rpartition(",")[2]))
    if count and _PHRASES["in_passing"].search(before):
        return 2
    return count + bool(_PHRASES["untrue"].search(text[flat.end() :]))


def answers_told(answers: Sequence[float], readout: str) -> list[float]:
    """What a posterior is told of a trial that was asked in each order of its images.

    Drawn answers one by one: their mean is no probability, and would weigh less where all agree
    than where they do not. Probabilities by their mean, which a liking for one order does not move.

    Parameters
    ----------
    answers : sequence of float
        Those that count: 1 for yes (or correct), 0 for no, or a probability of yes.
    readout : {"text", "p_yes"}
        Which reading they are.

    Examples
    --------
    >>> answers_told([1.0, 0.0, 1.0], "text"), answers_told([0.75, 0.25], "p_yes"), answers_told([], "text")
    ([1.0, 0.0, 1.0], [0.5], [])
    """
    return [sum(answers) / len(answers)] if answers and readout == "p_yes" else list(answers)


def _log_sum(logs: Sequence[float]) -> float:
    most = max(logs)
    return most + math.log(sum(math.exp(log - most) for log in logs))


def _expit(logit: float) -> float:
    return 1 / (1 + math.exp(-logit)) if logit >= 0 else math.exp(logit) / (1 + math.exp(logit))
