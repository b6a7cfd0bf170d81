"""From words to yes or no: the oracle, many ways of saying it, other languages, polarity, hostile
text, tokens."""

from __future__ import annotations

import csv
import math
import re
import time
from pathlib import Path

import pytest
from denials import HEDGES, SENTENCES, WHOLE, Sentence
from hypothesis import given, settings
from hypothesis import strategies as st

from psyprobe.analysis.words.reply import read_first_token, read_reply
from psyprobe.analysis.words.reply_text import PHRASES, plain_text
from psyprobe.errors import InputError
from psyprobe.experiment.prompts import load_prompts, prompt_sets

READINGS = ("yes", "no", "ambiguous", "refusal", "invalid")


def sayings(name: str) -> list[tuple[str, str]]:
    """Pairs of reply and reading, of a page with a heading in brackets for each reading."""
    pairs, reading = [], ""
    for line in (Path(__file__).parent / name).read_text(encoding="utf-8").splitlines():
        if line[1:-1] in READINGS and line.startswith("["):
            reading = line[1:-1]
        else:
            pairs.append((line, reading))
    return pairs


def test_oracle(oracle_data: Path) -> None:
    with (oracle_data / "chat_csf" / "yesno_parse_oracle.csv").open(
        encoding="utf-8", newline=""
    ) as file:
        rows = list(csv.DictReader(file))
    wrong = [(row["reply"], row["expected"], read_reply(row["reply"])) for row in rows]
    assert [case for case in wrong if case[1] != case[2]] == []
    assert len(rows) >= 40


def test_many_ways_of_saying_it() -> None:
    pairs = sayings("replies.txt")
    readings = [(reply, expected, read_reply(reply)) for reply, expected in pairs]
    assert [case for case in readings if case[1] != case[2]] == []
    assert {expected for _, expected in pairs} == set(READINGS) and len(pairs) > 500


#: Words for either answer in languages of which there are no prompts.
OTHER_WORDS = {
    "polish": (("tak",), ("nie",)),
    "turkish": (("evet",), ("hay\u0131r",)),
    "arabic": (("\u0646\u0639\u0645",), ("\u0644\u0627",)),
    "hindi": (
        ("\u0939\u093e\u0901", "\u0939\u093e\u0902"),
        ("\u0928\u0939\u0940\u0902",),
    ),
}


def corpus() -> list[tuple[str, str, str, str]]:
    """Class, reading that is meant, reply, and what the rules read, of every reply of the
    corpus."""
    rows, kind, meant = [], "", ""
    for line in (
        (Path(__file__).parent / "corpus.txt").read_text(encoding="utf-8").splitlines()
    ):
        heading = re.fullmatch(r"\[([a-z]+): ([a-z]+)\]", line)
        if heading:
            kind, meant = heading[1], heading[2]
            continue
        yes, no = OTHER_WORDS.get(kind, (("yes",), ("no",)))
        if kind in prompt_sets():
            yes, no = (getattr(load_prompts(kind)[0], side) for side in ("yes", "no"))
        reply = line.replace("\\n", "\n")
        rows.append(
            (
                kind,
                meant,
                reply,
                read_reply(reply, yes, no, polarity=-1 if kind == "reversed" else 1),
            )
        )
    return rows


def test_the_corpus_is_read_without_a_wrong_sign() -> None:
    rows = corpus()
    assert [row for row in rows if row[3] in ("yes", "no") and row[3] != row[1]] == []
    assert (
        sum(meant == reading for _, meant, _, reading in rows) >= 0.97 * len(rows)
        and len(rows) >= 598
    )
    languages = {kind for kind, *_ in rows} & ({*OTHER_WORDS} | {*prompt_sets()})
    assert len(languages - {"reversed"}) == 14


def test_the_page_lists_the_classes_of_the_corpus_with_their_counts() -> None:
    rows = corpus()
    root = Path(__file__).parents[2]
    page = (root / "benchmarks" / "README.md").read_text(encoding="utf-8")
    languages = {*OTHER_WORDS} | {*prompt_sets()} - {"reversed"}
    groups = {
        kind: "fourteen languages" if kind in languages else kind for kind, *_ in rows
    }
    for group in dict.fromkeys(groups.values()):
        group_rows = [row for row in rows if groups[row[0]] == group]
        right_count = sum(meant == reading for _, meant, _, reading in group_rows)
        assert f"| {group} | {len(group_rows)} | {right_count} |" in page, (
            group,
            len(group_rows),
            right_count,
        )
    total = sum(meant == reading for _, meant, _, reading in rows)
    assert f"| all | {len(rows)} | {total} |" in page


def test_denials_and_affirmations_have_the_right_sign() -> None:
    pairs = sayings("denials.txt")
    readings = [(reply, expected, read_reply(reply)) for reply, expected in pairs]
    assert [case for case in readings if case[1] != case[2]] == []
    assert len(pairs) > 120


@given(
    sentence=st.sampled_from(SENTENCES),
    pattern=st.sampled_from(WHOLE),
    hedge=st.sampled_from(HEDGES),
)
@settings(max_examples=200, deadline=None)
def test_negating_a_sentence_never_keeps_its_sign(
    sentence: Sentence, pattern: str, hedge: str
) -> None:
    affirmed, denied = hedge.format(sentence.affirmed), hedge.format(sentence.denied)
    for polarity, signs in ((1, ("no", "yes")), (-1, ("yes", "no"))):
        reading = read_reply(affirmed, polarity=polarity)
        assert reading in (signs[sentence.patterned], "ambiguous", "invalid"), affirmed
        for other in (denied, hedge.format(pattern.format(sentence.affirmed))):
            assert read_reply(other, polarity=polarity) in (
                signs[not sentence.patterned],
                "ambiguous",
            ), other
        twice = hedge.format(pattern.format(sentence.denied))
        assert read_reply(twice, polarity=polarity) in (
            reading,
            "ambiguous",
            "invalid",
        ), twice


QUESTIONS = (
    "{0}?",
    "{0}, right?",
    "You say {0}?",
    "well, {0}?",
    "Do you mean that {0}?",
)
ANSWERS = (
    *(
        (text, True)
        for text in (
            "Yes.",
            "I think so.",
            "Definitely.",
            "That is correct.",
            "Yes, I think so.",
        )
    ),
    *(
        (text, False)
        for text in (
            "No.",
            "I don't think so.",
            "Not at all.",
            "I disagree.",
            "Far from it.",
            "I doubt it.",
        )
    ),
)


@given(
    sentence=st.sampled_from(
        [
            sentence
            for sentence in SENTENCES
            if sentence.affirmed.count(" is ") + sentence.affirmed.count(" shows ")
        ]
    ),
    question=st.sampled_from(QUESTIONS),
    answer=st.sampled_from(ANSWERS),
)
@settings(max_examples=200, deadline=None)
def test_a_question_that_is_denied_says_its_opposite(
    sentence: Sentence, question: str, answer: tuple[str, bool]
) -> None:
    text, affirmed = answer
    for polarity in (1, -1):
        stated = ("no", "yes")[(sentence.patterned == affirmed) == (polarity == 1)]
        assert (
            read_reply(
                f"{question.format(sentence.affirmed)} {text}", polarity=polarity
            )
            == stated
        )


@pytest.mark.parametrize("name", prompt_sets())
def test_a_reply_that_repeats_its_question_is_read_as_the_answer_alone(
    name: str,
) -> None:
    for prompt in load_prompts(name):
        for question in (
            re.findall(r"[^.?!\n]+\?", prompt.text) if "yes" in prompt.yes else ()
        ):
            for answer in ("Yes.", "No."):
                reading = read_reply(
                    f"{question.strip()} {answer}",
                    prompt.yes,
                    prompt.no,
                    polarity=prompt.polarity,
                )
                assert reading == answer[:-1].lower(), question


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("<think>There is no pattern... wait.</think>Yes", "yes"),
        ("<think>yes</think><think>yes!</think>no.", "no"),
        ("the template opened it: yes yes</think> No", "no"),
        ("\u25c1think\u25b7no\u25c1/think\u25b7Yes", "yes"),
        ("<think>Is there one? Yes, I see", "invalid"),
        ("**Answer:** Yes\n\nThe image shows faint stripes.", "yes"),
        ("The image shows a faint texture.\n\nAnswer: Yes", "yes"),
        ("Question: Is there a pattern?\nAnswer: No", "no"),
        ("\u201cNo.\u201d", "no"),
        ("\uff39\uff45\uff53", "yes"),
        ("Yes\u2014there is a faint grid", "yes"),
        ("I can\u2019t see any pattern", "no"),
        ("I don\u2019t see an image", "refusal"),
        ("\u2705 Yes", "yes"),
        ("\u274c No", "no"),
        ("Y\u200bes", "yes"),
        ("\u662f\u7684", "invalid"),
        ("\u0434\u0430", "invalid"),
        ("   \n\t", "invalid"),
        ("\U0001f600", "invalid"),
    ],
)
def test_markup_and_unicode(reply: str, expected: str) -> None:
    assert read_reply(reply) == expected


@pytest.mark.parametrize(
    ("language", "reply", "expected"),
    [
        ("german", "Ja.", "yes"),
        ("german", "**Nein**, es ist kein Muster zu sehen.", "no"),
        ("german", "Ich sehe ein Muster, also ja.", "yes"),
        ("german", "Januar", "invalid"),
        ("german", "ja oder nein", "ambiguous"),
        ("german", "Yes", "invalid"),
        ("spanish", "S\u00ed, hay un patr\u00f3n.", "yes"),
        ("spanish", "No, no hay.", "no"),
        ("french", "Oui, il y a un motif.", "yes"),
        ("french", "NON", "no"),
        ("chinese", "\u662f\u7684\u3002", "yes"),
        ("chinese", "\u4e0d\u662f", "no"),
        ("chinese", "\u6ca1\u6709\u56fe\u6848\u3002", "no"),
        ("chinese", "\u6709\uff0c\u56fe\u50cf\u4e2d\u6709\u56fe\u6848\u3002", "yes"),
        ("chinese", "\u56fe\u50cf\u4e2d\u6ca1\u6709\u56fe\u6848", "no"),
        ("chinese", "\u662f\u5426", "ambiguous"),
        ("two_image", "The pattern is in the second image.", "no"),
        ("two_image", "1", "yes"),
        ("two_image", "**First** image", "yes"),
        ("two_image", "First or second", "ambiguous"),
        ("two_image", "Neither the first nor the second", "ambiguous"),
        ("two_image", "Yes", "invalid"),
    ],
)
def test_other_words(language: str, reply: str, expected: str) -> None:
    (prompt, *_) = load_prompts(language)
    assert read_reply(reply, prompt.yes, prompt.no) == expected


@pytest.mark.parametrize("name", prompt_sets())
def test_the_words_of_every_set_are_read_in_any_dress(name: str) -> None:
    for prompt in load_prompts(name):
        for words, expected in ((prompt.yes, "yes"), (prompt.no, "no")):
            for word in words:
                for dress in ("{}", "{}.", "**{}**", " {} ", '"{}"', "{}!", "{}\n"):
                    for case in (word, word.upper(), word.capitalize()):
                        assert (
                            read_reply(dress.format(case), prompt.yes, prompt.no)
                            == expected
                        ), (
                            word,
                            dress,
                        )


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("Yes", "yes"),
        ("No.", "no"),
        ("There is a pattern.", "no"),
        ("The image is uniform.", "yes"),
        ("It is not uniform.", "no"),
        ("No pattern is visible.", "yes"),
        ("Yes, there is no pattern.", "yes"),
        ("No, I can see stripes.", "no"),
        ("No, there is no pattern.", "ambiguous"),
        ("I cannot view images.", "refusal"),
    ],
)
def test_statements_answer_a_question_of_reversed_polarity_the_other_way(
    reply: str, expected: str
) -> None:
    assert read_reply(reply, polarity=-1) == expected


@given(st.text(max_size=200))
def test_any_text_is_read(text: str) -> None:
    assert read_reply(text) in READINGS


VOCABULARY = """yes no not there is a an the pattern texture i can see cannot image uniform maybe if or and , . ? so
answer : visible don't but although <think> </think> ** sorry please provide"""
WORDS = st.sampled_from(VOCABULARY.split())


@given(st.lists(WORDS, max_size=12))
def test_what_decides_nothing_is_not_guessed(words: list[str]) -> None:
    reading = read_reply(" ".join(words))
    assert reading in READINGS
    if not set(words) & {
        "yes",
        "no",
        "pattern",
        "texture",
        "uniform",
        "visible",
        "not",
        "is",
        "can",
        "cannot",
        "don't",
    }:
        assert reading not in ("yes", "no")


@pytest.mark.parametrize(
    "unit",
    [
        "sure ",
        "the answer ",
        "probably ",
        "<think>",
        "as an ai do not have ",
        "no ",
        "(",
        "a",
        "flat, dots, ",
        "dot,",
        "not, in ",
        "dots is,",
        "x is not flat, ",
        "except ",
    ],
)
def test_long_hostile_text_takes_no_time(unit: str) -> None:
    start = time.process_time()
    read_reply((unit * 100_000)[:100_000])
    assert time.process_time() - start < 2


def test_plain_text() -> None:
    assert plain_text('{"answer": "No"}') == "answer: no"
    assert plain_text("It\u2019s `flat`") == "it is flat"


def test_words_of_both_sides_are_refused() -> None:
    with pytest.raises(InputError, match="none for both"):
        read_reply("a", yes=("a",), no=("A",))
    with pytest.raises(InputError, match="at least one"):
        read_reply("a", yes=(), no=("no",))


# -- first tokens
# ------------------------------------------------------------------------------------------


def test_spellings_add_up() -> None:
    tokens = [
        ("Yes", math.log(0.5)),
        (" yes", math.log(0.1)),
        ("\u2581YES", math.log(0.1)),
        ("\u0120No", math.log(0.2)),
    ]
    token_reading = read_first_token([*tokens, ("The", math.log(0.05))], complete=False)
    assert token_reading is not None and not token_reading.censored
    assert token_reading.p_yes == pytest.approx(0.7 / 0.9)
    assert token_reading.logit == pytest.approx(math.log(0.7 / 0.2))
    assert token_reading.mass == pytest.approx(0.9)


def test_an_unlisted_word_is_bounded_by_the_least_likely_token() -> None:
    tokens = [("No", -0.02), ("The", -5.0), ("None", -9.5)]
    token_reading = read_first_token(tokens, complete=False)
    assert token_reading is not None and token_reading.censored
    assert token_reading.logit == pytest.approx(-9.5 + 0.02)
    assert token_reading.mass == pytest.approx(math.exp(-0.02))
    mirrored = read_first_token([("Yes", -0.02), *tokens[1:]], complete=False)
    assert mirrored is not None and mirrored.logit == pytest.approx(
        -token_reading.logit
    )


def test_a_single_token_bounds_the_other_by_what_is_left() -> None:
    token_reading = read_first_token([("Yes", math.log(0.9))], complete=False)
    assert token_reading is not None and token_reading.censored
    assert token_reading.logit == pytest.approx(math.log(0.9 / 0.1))


def test_nothing_to_read() -> None:
    assert read_first_token([], complete=False) is None
    assert read_first_token([("The", -0.1), ("Noise", -2.0)], complete=False) is None
    assert read_first_token([("Yes", -math.inf)], complete=True) is None
    with pytest.raises(InputError, match="natural logarithm"):
        read_first_token([("Yes", 0.7)], complete=True)


def test_words_of_another_language() -> None:
    token_reading = read_first_token(
        [("Ja", -0.7), ("nein", -0.8)], True, ("ja",), ("nein",)
    )
    assert token_reading is not None and token_reading.logit == pytest.approx(0.1)


@given(st.floats(-30, 0), st.floats(-30, 0))
def test_logit_and_probability_agree(yes: float, no: float) -> None:
    token_reading = read_first_token([("yes", yes), ("no", no)], complete=True)
    assert token_reading is not None
    assert 0 <= token_reading.p_yes <= 1 and token_reading.mass <= 1
    assert token_reading.logit == pytest.approx(yes - no, abs=1e-9)
    assert token_reading.p_yes == pytest.approx(
        1 / (1 + math.exp(-(yes - no))), rel=1e-9
    )


def test_patterns_are_compiled_when_they_are_looked_up() -> None:
    phrases = type(PHRASES)({"grating": "stripes?", "seen": "see {grating}"})
    assert not phrases
    assert phrases["seen"].search("I see stripes")
    assert list(phrases) == ["seen"]


@pytest.mark.parametrize("name", PHRASES.sources)
def test_every_pattern_compiles(name: str) -> None:
    assert PHRASES[name]
