"""Read replies: what their words decide, and what the log-probabilities of a first token say.

A reply is read by rules that never guess: what decides nothing is ambiguous, a refusal or invalid,
and is to be counted and left out. Words count, not beginnings of words ("Noise" is not no), and a
decision counts before a description.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

from psyprobe.analysis.words.reply_structure import (
    Entry,
    Value,
    best_label,
    split_boxes,
    split_json,
    split_lines,
    ticked_columns,
    to_fraction,
    to_number,
    verdict_groups,
    without_struck,
)
from psyprobe.analysis.words.reply_text import (
    ENGLISH_WORDS,
    KINDS,
    PART,
    PHRASES,
    Reading,
    first_and_last,
    plain_text,
    search,
    sentences_of,
    spell,
    strip_marks,
    without_reasoning,
)
from psyprobe.analysis.words.statements import (
    asked_kinds,
    asks_for_pattern,
    contradicts,
    elliptic_sign,
    label_sign,
    mask_other_kinds,
    name_target,
    names_other_colour,
    opposes,
    question_sign,
    read_alternative,
    read_statements,
)
from psyprobe.errors import InputError


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
    text: str,
    yes: Sequence[str] = ("yes",),
    no: Sequence[str] = ("no",),
    *,
    polarity: int = 1,
    question: str = "",
) -> Reading:
    """Read what a reply to a yes/no question decides.

    Parameters
    ----------
    text : str
        The reply as it came.
    yes, no : sequence of str
        Words that count as either answer, whatever their case; other English words for yes and no
        and English statements count where "yes" and "no" are among them.
    polarity : {1, -1}
        -1 where the question asks whether there is nothing: then "there is a pattern" answers no.
    question : str
        The question, if known: unless it asks whether there is a pattern or nothing, only a yes or
        a no counts, and what the reply says of a pattern does not.

    Returns
    -------
    {"yes", "no", "ambiguous", "refusal", "invalid"}
        Ambiguous: it hedges or says both. Refusal: it says that no image was seen, or declines.
        Invalid: all else.

    Examples
    --------
    >>> read_reply("**No.**"), read_reply("I can see a faint pattern."), read_reply("Noise")
    ('no', 'yes', 'invalid')
    >>> read_reply("I cannot view images."), read_reply("Maybe")
    ('refusal', 'ambiguous')
    >>> read_reply("I cannot see any pattern.")
    'no'
    >>> read_reply("The grating on the right is stronger.", question="Are the gratings the same?")
    'invalid'
    >>> read_reply("Ja.", yes=("ja",), no=("nein",))
    'yes'
    """
    text = spell(without_struck(first_and_last(without_reasoning(text))))
    question, text = name_target(question, text)
    describes = not question or asks_for_pattern(question, polarity)
    alternative = read_alternative(text, question, polarity) if describes else None
    if alternative:
        return alternative
    elsewhere = False
    kinds: tuple[str, ...] = ()
    if describes:
        kinds = asked_kinds(question)
        text, elsewhere = mask_other_kinds(text, kinds)
    reading = _read_shortened(text, tuple(yes), tuple(no), polarity, describes, kinds)
    flat = "no" if polarity == 1 else "yes"
    # Dots are no stripes, and white is no grey: only a word for it gives the answer then.
    if (elsewhere and reading not in ("ambiguous", flat)) or (
        reading == flat and names_other_colour(text, question)
    ):
        worded = _read_shortened(text, tuple(yes), tuple(no), polarity, False, ())
        return reading if worded == reading else "ambiguous"
    return reading


# Many replies of a run are alike.
@lru_cache(1024)
def _read_shortened(
    text: str,
    yes: tuple[str, ...],
    no: tuple[str, ...],
    polarity: int,
    describes: bool,
    kinds: tuple[str, ...],
) -> Reading:
    """Read yes or no from a reply's structure or words, by the words that stand for them."""
    words = replace(_compile_words(yes, no), kinds=kinds)
    if not describes:
        words = replace(words, describes=False)
    plain = plain_text(text)
    return _read_structure(words, text, plain, polarity) or _read_words(
        words, plain, polarity
    )


def _read_structure(
    words: _Words, text: str, plain: str, polarity: int
) -> Reading | None:
    """Read a reply by its tick boxes, JSON or labelled lines; None where these say nothing."""
    columns = ticked_columns(text, words.is_answer)
    lines = _answered_labels(words, plain)
    if columns:
        boxes: tuple[list[str], str] | None = (columns, "")
    else:
        boxes = None if lines and _names_pattern(words, lines[0]) else split_boxes(text)
    record = None if boxes else split_json(text, words.is_answer)
    lines = None if boxes or record else lines
    if boxes:
        ticked, other_text = boxes
        entries: Sequence[Entry] = [("", label) for label in ticked]
        reading = _read_verdicts(words, entries, polarity) or "ambiguous"
    elif record or lines:
        entries, other_text = record or lines or ([], "")
        entries = _of_kind(words, entries)
        entries_reading = _read_entries(words, entries, polarity)
        if entries_reading is None:
            beside = _read_beside(words, entries, other_text, polarity)
            return beside or ("invalid" if record else None)
        reading = entries_reading
        if (
            record
            and words.describes
            and (
                _any_contradicts(words, reading, entries, polarity)
                or _any_retracts(words, reading, entries, polarity)
            )
        ):
            return "ambiguous"
    else:
        return None
    other_reading = _read_words(words, plain_text(other_text), polarity)
    opposed = {reading, other_reading} == {"yes", "no"}
    entries = [("", other_text)]
    retracted = words.english and _any_retracts(words, reading, entries, polarity)
    return "ambiguous" if opposed or retracted else reading


def _read_beside(
    words: _Words, entries: Sequence[Entry], other_text: str, polarity: int
) -> Reading | None:
    """Read the text around entries that do not decide, then the texts in them.

    What they say of noise or colour is no answer.
    """
    reading = _read_words(words, plain_text(other_text), polarity)
    if reading in ("yes", "no"):
        return reading
    answers = [(label, _truth(words, label, value)) for label, value in entries]
    answers = [answer for answer in answers if answer[1]]
    parts = [
        entry
        for entry in entries
        if search("part_label", entry[0]) and "?" not in str(entry[1])
    ]
    denied = [words.side(str(value)) == "no" for _, value in parts]
    if len(parts) == len(answers) > 1 and all(denied):
        # "Left: no, right: no": it is nowhere.
        return "no" if polarity == 1 else "ambiguous"
    # Of two things of which neither is the pattern, none says what was asked.
    if len(answers) == 1 and search("asked_alone", answers[0][0]) and polarity == 1:
        return "yes" if answers[0][1] == 1 else "no"
    if answers or not words.describes:
        return "ambiguous" if answers else None
    texts = "\n".join(value for _, value in entries if isinstance(value, str))
    return read_statements(sentences_of(plain_text(texts)), polarity)


def _answered_labels(words: _Words, plain: str) -> tuple[Sequence[Entry], str] | None:
    """Split a text into lines "label: value" that answer their labels."""
    lines = split_lines(plain)
    if lines is None or len(lines[0]) > 1:
        return lines
    [(label, value)], other_text = lines
    answered = _truth(words, label, value) and (
        words.label_sign(label)
        or (not words.truth(value) and search("asked_alone", label))
    )
    alone = words.describes and "?" not in plain and not re.search(r"\w", other_text)
    return lines if alone and answered else None


def _of_kind(words: _Words, entries: Sequence[Entry]) -> Sequence[Entry]:
    """Select the entries under labels of the kinds of pattern asked for, if any are."""
    patterns = [KINDS[kind] for kind in words.kinds]
    labelled = [entry for entry in entries if any(p.search(entry[0]) for p in patterns)]
    verdicts = [entry for group in verdict_groups(entries)[-1:] for entry in group]
    return [*labelled, *verdicts] if labelled else entries


def _names_pattern(words: _Words, entries: Sequence[Entry]) -> bool:
    """Tell whether every line answers its label, and one label is the pattern."""
    return all(words.truth(value) for _, value in entries) and any(
        words.label_sign(label) for label, _ in entries
    )


def _any_contradicts(
    words: _Words, reading: Reading, entries: Sequence[Entry], polarity: int
) -> bool:
    """Tell whether a sentence under another label begins with the opposite answer."""
    return any(
        contradicts(reading, "", ["", *sentences_of(plain_text(value))], polarity)
        for _, value in entries
        if isinstance(value, str) and not words.is_answer(value)
    )


def _any_retracts(
    words: _Words, reading: Reading, entries: Sequence[Entry], polarity: int
) -> bool:
    """Tell whether a text takes an answer back and does not end with that answer."""
    texts = [plain_text(value) for _, value in entries if isinstance(value, str)]
    return any(
        search("retraction", text) and _read_words(words, text, polarity) != reading
        for text in texts
    )


def _read_entries(
    words: _Words, entries: Sequence[Entry], polarity: int
) -> Reading | None:
    """Read the verdict among labelled entries, else scores, else what they say of the pattern."""
    verdicts = (
        _read_verdicts(words, group, polarity) for group in verdict_groups(entries)
    )
    best = best_label(entries, words.side)
    stated = _read_labels(words, entries, polarity)
    if best is None and stated is None:
        best = _likelier_label(words, entries, polarity)
    scored: Reading | None = (
        None
        if best is None
        else "yes"
        if best == "yes"
        else "no"
        if best == "no"
        else "ambiguous"
    )
    decision = next((verdict for verdict in verdicts if verdict), scored)
    if {decision, stated} == {"yes", "no"}:
        return "ambiguous"
    return decision or stated


def _likelier_label(
    words: _Words, entries: Sequence[Entry], polarity: int
) -> str | None:
    """Find what the label with the higher number answers: pattern or flat image."""

    def side(label: str) -> str | None:
        return {1: "yes", -1: "no"}.get(words.label_sign(label) * polarity)

    numbers = [entry for entry in entries if not isinstance(entry[1], bool)]
    best = best_label(numbers, side)
    all_named = all(side(label) for label, _ in entries)
    return best if best or all_named else None


def _read_labels(
    words: _Words, entries: Sequence[Entry], polarity: int
) -> Reading | None:
    """Read entries by labels that name the pattern or a flat image."""
    truths = [
        (words.label_sign(label), _truth(words, label, value))
        for label, value in entries
    ]
    flat, patterned = (
        {truth for sign, truth in truths if sign == named and truth}
        for named in (-1, 1)
    )
    if any(
        sign and not truth and search("no_verdict", str(value))
        for (sign, truth), (_, value) in zip(truths, entries, strict=True)
    ):
        return "ambiguous"
    if flat == {-1} and patterned != {-1}:
        # What is not uniform has a pattern, even if it has no dots.
        return "yes" if polarity == 1 else "no"
    unnamed = {truth for sign, truth in truths if not sign}
    if flat == {1} and not patterned and 1 in unnamed:
        # "Uniform background: yes, objects: yes" says what is on it.
        return "ambiguous"
    signs = patterned | {-truth for truth in flat}
    if signs:
        sign = polarity * sum(signs)
        return "yes" if sign > 0 else "no" if sign < 0 else "ambiguous"
    return None


def _truth(words: _Words, label: str, value: Value) -> int:
    """Tell whether a value affirms (1) or denies (-1) its label; 0 where it does neither."""
    truth = words.truth(value)
    if truth or not words.describes:
        return truth
    if not isinstance(value, str) and value in (0, 1) and words.label_sign(label):
        return 1 if value else -1
    likelihood = to_fraction(value) if search("score_label", label) else None
    if likelihood is not None:
        return 1 if likelihood >= 0.8 else -1 if likelihood <= 0.2 else 0
    count = to_number(value) if search("count_label", label) else None
    return 0 if count is None else 1 if count >= 1 else -1 if count == 0 else 0


def _read_verdicts(
    words: _Words, entries: Sequence[Entry], polarity: int
) -> Reading | None:
    """Read yes or no from the entries labelled as verdict; None where no word is known."""
    readings = {
        _read_verdict(words, label, value, polarity) for label, value in entries
    } - {"invalid"}
    return readings.pop() if len(readings) == 1 else ("ambiguous" if readings else None)


def _read_verdict(words: _Words, label: str, value: Value, polarity: int) -> Reading:
    """Read yes or no from one verdict, by its label where this names the pattern."""
    sign = words.truth(value) * words.label_sign(label) * polarity
    if sign:
        return "yes" if sign == 1 else "no"
    if isinstance(value, str):
        return _read_words(words, plain_text(value), polarity)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "ambiguous" if value is None else "invalid"


def _read_words(words: _Words, plain: str, polarity: int) -> Reading:
    """Read yes or no from the words of a plain text."""
    if words.english and _is_refusal(plain, excuses=False):
        return "refusal"
    retractions = list(PHRASES["retraction"].finditer(plain)) if words.english else []
    if retractions:
        earlier_text = plain[: retractions[-1].start()]
        later_text = plain[retractions[-1].end() :]
        # "I was wrong to say no" takes back what it says itself.
        if re.search(r"\w", earlier_text) or re.match(r"\W*[:.,;\n]", later_text):
            corrected = _read_words(words, later_text, polarity)
            return "ambiguous" if corrected == "invalid" else corrected
    if words.english and search("hypothetical", plain):
        return "ambiguous"
    both_answers = words.both_answers.search(plain)
    if both_answers and both_answers["bare"] is not None:
        return "ambiguous"
    text = words.both_answers.sub(" ", plain)
    answered = _answered_question(words, text, polarity) if words.describes else None
    if answered:
        return answered
    sentences = sentences_of(text)
    lead, rest = words.leading(sentences)
    last = words.last(sentences, polarity)
    if lead and last and lead != last:
        return "ambiguous"
    if lead and words.english and _taken_back(words, lead, rest, sentences):
        return "ambiguous"
    if lead:
        contradicted = words.describes and contradicts(lead, rest, sentences, polarity)
        return "ambiguous" if contradicted else lead
    before = ["", *sentences[-2:-1]]
    if last and words.describes and contradicts(last, "", before, polarity):
        return "ambiguous"
    if words.english and _is_refusal(plain, excuses=True):
        return "refusal"
    return (
        last
        or words.alone(plain)
        or (read_statements(sentences, polarity) if words.describes else None)
        or ("ambiguous" if both_answers or words.on_both_sides(plain) else "invalid")
    )


#: What follows an answer for a part of the image: "yes on the left, no on the right".
_PLACE = re.compile(r"(?:on|in|with|for|at|to|if)\b")


def _taken_back(words: _Words, lead: Reading, rest: str, sentences: list[str]) -> bool:
    """Tell whether a text takes its answer back: "Yes, one might think. But it is not"."""
    clauses = [
        clause.strip()
        for sentence in sentences[1:]
        for clause in re.split("[,:]|\\bbut\\b", sentence)
    ]
    denied = lead == "yes" and any(map(PHRASES["elliptic_it"].fullmatch, clauses))
    for clause in re.split("[,;]", rest):
        other, place = words.leading([clause.strip()])
        if other not in (None, lead) and (not place or _PLACE.match(place)):
            return True
    on_condition = PHRASES["conditional"].match(rest)
    return denied or bool(on_condition or search("decision_taken_back", rest))


def read_first_token(
    first_tokens: Sequence[tuple[str, float]],
    complete: bool,
    yes: Sequence[str] = ("yes",),
    no: Sequence[str] = ("no",),
) -> FirstToken | None:
    """Read yes or no from the log-probabilities of an answer's first token.

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
        word.strip().casefold(): side
        for side, words in enumerate((yes, no))
        for word in words
    }
    side_logs: tuple[list[float], list[float]] = ([], [])
    other_logs: list[float] = []
    total = 0.0
    for token, logprob in first_tokens:
        if math.isnan(logprob) or logprob > 1e-3:
            raise InputError(
                f"the log-probability of {token!r} is {logprob}; a natural logarithm is at most 0"
            )
        if logprob == -math.inf:
            continue
        total += math.exp(logprob)
        side = sides.get(
            token.replace("\u2581", " ").replace("\u0120", " ").strip().casefold()
        )
        (other_logs if side is None else side_logs[side]).append(logprob)
    if not side_logs[0] and not side_logs[1]:
        return None
    # What is not listed is at most as likely as the last that is, and as what the listed ones
    # leave.
    bound = (
        min([*other_logs, math.log(max(1 - total, 1e-12))])
        if complete or not other_logs
        else min(other_logs)
    )
    log_yes, log_no = (_log_sum(logs) if logs else bound for logs in side_logs)
    logit = log_yes - log_no
    mass = min(1.0, sum(math.exp(_log_sum(logs)) for logs in side_logs if logs))
    return FirstToken(_expit(logit), logit, mass, not (side_logs[0] and side_logs[1]))


@dataclass(frozen=True)
class _Words:
    """The words for either answer, as patterns."""

    yes: str
    no: str
    english: bool
    #: Whether what is said of a pattern in English counts.
    describes: bool
    both_answers: re.Pattern[str]
    long_words: re.Pattern[str] | None
    #: The kinds of patterns that were asked for; none where any counts.
    kinds: tuple[str, ...] = ()

    @property
    def either(self) -> str:
        """Build the regular expression of both answers, each a named group."""
        return f"(?:(?P<yes>{self.yes})|(?P<no>{self.no}))"

    def side(self, label: str) -> Literal["yes", "no"] | None:
        """Tell which answer a label names: "p(yes)", "no", but not "no objects"."""
        match = re.fullmatch(
            self.either, PHRASES["score_words"].sub(" ", label).strip()
        )
        return None if match is None else "yes" if match["yes"] else "no"

    def label_sign(self, label: str) -> int:
        """Tell what a true label means: 1 pattern, -1 none, 0 neither (or it does not count)."""
        return label_sign(label) if self.describes else 0

    def is_answer(self, text: str) -> bool:
        """Tell whether a text is one of the answers and nothing else."""
        return self.side(plain_text(text).rstrip(".!")) is not None

    def truth(self, value: Value) -> int:
        """Tell whether a value affirms (1) or denies (-1) its label; 0 where it does neither."""
        if not isinstance(value, str):
            return {True: 1, False: -1}[value] if isinstance(value, bool) else 0
        plain = plain_text(value)
        lead, _ = self.leading(sentences_of(plain))
        seen = PHRASES["bare_seen"].fullmatch(plain.rstrip("."))
        if plain.rstrip(".") in ("nothing", "zero", "nil"):
            return -1
        if lead or not seen:
            return {"yes": 1, "no": -1}.get(lead or "", 0)
        return -1 if seen[1] or "absent" in plain else 1

    def leading(self, sentences: list[str]) -> tuple[Reading | None, str]:
        """Find the answer that a text begins with, after a preamble, and its sentence's rest."""
        text = PHRASES["idioms_at_start"].sub("", ". ".join(sentences))
        preamble = PHRASES["preamble"].match(text)
        starts = [0, preamble.end()] if preamble else [0]
        label = PHRASES["label"].match(text)
        other = search("label_of_other", text)
        if label and not other and not search("misleading_label", label[0]):
            starts.append(label.end())
        for start in starts:
            match = re.compile(self.either).match(text, start)
            if match and not (
                self.english and PHRASES["no_decision"].match(text, match.start())
            ):
                rest = text[match.end() :].partition(". ")[0]
                return ("yes" if match["yes"] else "no"), rest.strip(" ,:;-")
        return None, ""

    def last(self, sentences: list[str], polarity: int) -> Reading | None:
        """Find the last explicit answer of a text.

        It stands after a cue, at the end of a sentence, or at the start of the last sentence.
        """
        cue = rf"(?:\b{PHRASES['cues'].pattern}|[,:] ?|- )"
        for sentence in reversed(sentences):
            end = r"(?=$|[,.:]| -| because| as | since| for (?:an? )?(?:pattern|grating|stripes)$)"
            cued = [*re.finditer(cue + self.either + end, sentence)]
            match = (
                cued[-1]
                if cued
                else re.search(rf"(?P<yes>{self.yes})(?P<no>(?!))?$", sentence)
            )
            if match and not (
                search("taken_back", sentence[: match.end()])
                or search("conditional", sentence[: match.start()])
                or search("label_of_other", sentence[: match.end()])
            ):
                decision: Reading = "yes" if match["yes"] else "no"
                rest = sentence[match.end() :]
                if self.describes and opposes(decision, rest, polarity):
                    return "ambiguous"
                return decision
            decided, rest = self.leading([sentence])
            if (
                decided
                and len(sentences) > 1
                and (sentence is sentences[-1] or not rest)
            ):
                return decided
        return None

    def on_both_sides(self, text: str) -> bool:
        """Tell whether a text mentions both answers."""
        return all(re.search(side, text) for side in (self.yes, self.no))

    def alone(self, text: str) -> Reading | None:
        """Find the only answer whose words occur in a text.

        Short words have other meanings and are left out.
        """
        if self.long_words is None or re.search(
            r"\b(?:not|neither|nor|nicht|pas)\b", text
        ):
            return None
        answers = {
            "yes" if match["yes"] else "no" for match in self.long_words.finditer(text)
        }
        return ("yes" if "yes" in answers else "no") if len(answers) == 1 else None


@lru_cache
def _compile_words(yes: tuple[str, ...], no: tuple[str, ...]) -> _Words:
    """Compile regular expressions of the words for yes and for no."""
    answer_words = [
        {plain_text(word) or word.casefold() for word in words} for words in (yes, no)
    ]
    if not answer_words[0] or not answer_words[1] or answer_words[0] & answer_words[1]:
        raise InputError(
            f"the words for yes are {yes} and for no {no}; give at least one for each, and none "
            "for both"
        )
    english = "yes" in answer_words[0] and "no" in answer_words[1]
    sides = [
        words | set(ENGLISH_WORDS[side] if english else ())
        for words, side in zip(answer_words, ("yes", "no"), strict=True)
    ]
    # Chinese has no spaces: a longer word of the other side takes precedence over a shorter one
    # inside it.
    first, second = (_any_of(words, sides[1 - i]) for i, words in enumerate(sides))
    if english:
        first, second = (
            rf"{words}|(?<![\w'-]){letter}(?=$|[.,:;!])"
            for words, letter in ((first, "y"), (second, "n"))
        )
    listed = (
        r" ?(?:/|\|)+ ?|,? (?:or|nor|oder|ou|o) |[,.;:]* (?:option )?(?:\d|[a-e])[:.]? "
    )
    spaced = r" |,? (?:and|&) (?:also |then |again )?|"
    either = "|".join(
        f"(?:{a})(?:{listed})(?:{b})" for a, b in ((first, second), (second, first))
    )
    bare = "|".join(
        f"(?:{a})(?:{spaced})(?:{b})(?! \\w)"
        for a, b in ((first, second), (second, first))
    )
    both_answers = re.compile(f"(?:either |neither )?(?:{either})|(?P<bare>{bare})")
    long_words = [
        {word for word in words if len(word) > 3 or ord(word[0]) >= 0x2E80}
        for words in sides
    ]
    alone = None
    if not english and long_words[0] and long_words[1]:
        a, b = (_any_of(words, sides[1 - i]) for i, words in enumerate(long_words))
        alone = re.compile(f"(?P<yes>{a})|(?P<no>{b})")
    return _Words(first, second, english, english, both_answers, alone)


def _any_of(words: set[str], opposite_words: set[str]) -> str:
    """Build the regular expression of any of some words, outside of their opposites."""
    parts = []
    for word in sorted(words, key=lambda w: (-len(w), w)):
        if ord(word[0]) >= 0x2E80:
            longer = [
                other for other in opposite_words if word in other and word != other
            ]
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


def _answered_question(words: _Words, text: str, polarity: int) -> Reading | None:
    """Read a question with its own answer: "Uniform? I don't think so" says yes."""
    parts = PART.findall(text)
    question_signs = [
        question_sign(strip_marks(part)) if "?" in part else 0 for part in parts
    ]
    for i in range(len(parts) - 2, -1, -1):
        sign = question_signs[i]
        # Of two questions in a row nobody knows which is answered.
        if sign == 0 or "?" in parts[i + 1] or (i and question_signs[i - 1] != 0):
            continue
        answer_sign, rest = _answer_sign(words, strip_marks(parts[i + 1]))
        if answer_sign == 0 or (sign is None and polarity == -1):
            continue
        if sign is None:
            return "ambiguous"
        reading: Reading = "yes" if sign * answer_sign * polarity == 1 else "no"
        before, after = (
            sentences_of("".join(piece)) for piece in (parts[:i], parts[i + 2 :])
        )
        other_readings = {
            words.leading(before)[0],
            words.last(["", *after], polarity),
            _answered_question(words, "".join(parts[:i]), polarity),
        } - {
            None,
            reading,
        }
        return (
            "ambiguous"
            if other_readings or contradicts(reading, rest, ["", *after], polarity)
            else reading
        )
    return None


def _answer_sign(words: _Words, sentence: str) -> tuple[int, str]:
    """Tell whether a sentence affirms (1) or denies (-1) the question before it, and its rest.

    The sign is 0 where it does neither.
    """
    lead, rest = words.leading([sentence])
    if lead:
        return (1 if lead == "yes" else -1), rest
    for head, rest in ((sentence, ""), sentence.partition(",")[::2]):
        if PHRASES["denial"].fullmatch(head):
            return -1, rest
        if elliptic_sign(head):
            return elliptic_sign(head), rest
    return 0, ""


def _is_refusal(text: str, *, excuses: bool) -> bool:
    """Tell whether a reply says that it saw no image, or (with `excuses`) declines to answer."""
    return bool(search("no_image", text) or (excuses and search("excuse", text)))


def posterior_answers(answers: Sequence[float], readout: str) -> list[float]:
    """List the answers of a trial, in each order of its images, that update a posterior.

    Text answers enter one by one: their mean is no probability, and would weigh less where all
    agree than where they do not. Probabilities enter as their mean, which a preference for one
    order does not move.

    Parameters
    ----------
    answers : sequence of float
        Those that count: 1 for yes (or correct), 0 for no, or a probability of yes.
    readout : {"text", "p_yes"}
        Which reading they are.

    Examples
    --------
    >>> posterior_answers([1.0, 0.0, 1.0], "text"), posterior_answers([], "text")
    ([1.0, 0.0, 1.0], [])
    >>> posterior_answers([0.75, 0.25], "p_yes")
    [0.5]
    """
    return (
        [sum(answers) / len(answers)]
        if answers and readout == "p_yes"
        else list(answers)
    )


def _log_sum(logs: Sequence[float]) -> float:
    """Compute the log of a sum of exponentials without overflow."""
    largest = max(logs)
    return largest + math.log(sum(math.exp(log - largest) for log in logs))


def _expit(logit: float) -> float:
    """Compute the probability that has these log odds, without overflow."""
    return (
        1 / (1 + math.exp(-logit))
        if logit >= 0
        else math.exp(logit) / (1 + math.exp(logit))
    )
