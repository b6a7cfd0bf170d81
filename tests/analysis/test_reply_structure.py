"""Verdicts that stand in a structure, words of unknown scope, and replies that others labelled."""

from __future__ import annotations

import csv
import time
from pathlib import Path

import pytest

from psyprobe.analysis.words.reply import read_reply
from psyprobe.analysis.words.statements import asks_for_pattern
from psyprobe.experiment.prompts import load_prompts, prompt_sets
from psyprobe.tasks.letters import read_letter


def labelled(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_labelled_replies_get_no_wrong_sign(oracle_data: Path) -> None:
    rows = labelled(oracle_data / "replies" / "yes_no_120.csv")
    readings = [(row["reply"], row["label"], read_reply(row["reply"])) for row in rows]
    signs = [row for row in readings if row[2] in ("yes", "no")]
    assert [row for row in signs if row[2] != row[1]] == []
    assert len(rows) == 120 and len(signs) >= 0.75 * len(rows)


#: Sets of which the rules were written, with the replies that were decided since: none may be lost.
#: The first two are read without their questions, which decides more.
SEEN_YES_NO = (
    ("yes_no_first.csv", False, 81),
    ("yes_no_second.csv", False, 70),
    ("yes_no_third.csv", True, 100),
    ("yes_no_fourth.csv", True, 94),
    ("yes_no_fifth.csv", True, 84),
    ("yes_no_sixth.csv", True, 90),
    ("yes_no_seventh.csv", True, 95),
    # Written to be read wrongly, with labels from before they were read.
    ("yes_no_hostile.csv", True, 205),
    # Denials of denials, doubts and retractions, most of which are to be left undecided.
    ("yes_no_gates.csv", True, 225),
)


@pytest.mark.parametrize(("name", "questioned", "decided"), SEEN_YES_NO)
def test_replies_seen_before_keep_their_sign(
    oracle_data: Path, name: str, questioned: bool, decided: int
) -> None:
    rows = labelled(oracle_data / "replies" / name)
    readings = [
        (
            row["reply"],
            row["label"],
            read_reply(
                row["reply"],
                polarity=int(row["polarity"]),
                question=row["question"] if questioned else "",
            ),
        )
        for row in rows
    ]
    signs = [row for row in readings if row[2] in ("yes", "no")]
    assert [row for row in signs if row[2] != row[1]] == []
    assert len(signs) >= decided


@pytest.mark.parametrize(
    ("name", "letter_count"),
    [
        ("letters_60.csv", 50),
        ("letters_first.csv", 54),
        ("letters_second.csv", 51),
        ("letters_third.csv", 55),
        ("letters_fourth.csv", 55),
        ("letters_fifth.csv", 52),
        ("letters_sixth.csv", 53),
        ("letters_seventh.csv", 53),
    ],
)
def test_labelled_replies_get_no_wrong_letter(
    oracle_data: Path, name: str, letter_count: int
) -> None:
    rows = labelled(oracle_data / "replies" / name)
    readings = []
    for row in rows:
        options = [text.partition(". ")[2] for text in row["options"].split(" | ")]
        label = row["label"].replace("none", "")
        readings.append((row["reply"], label, read_letter(row["reply"], options)))
    letters = [row for row in readings if row[2]]
    assert [row for row in letters if row[2] != row[1]] == []
    assert len(rows) == 60 and len(letters) >= letter_count
    assert letter_count >= 0.9 * sum(label != "" for _, label, _ in readings)


def test_letters_written_to_be_read_wrongly_are_not(oracle_data: Path) -> None:
    rows = labelled(oracle_data / "replies" / "letters_hostile.csv")
    readings = []
    for row in rows:
        options = [text.partition(". ")[2] for text in row["options"].split(" | ")]
        label = row["label"].replace("none", "")
        readings.append((row["reply"], label, read_letter(row["reply"], options)))
    letters = [row for row in readings if row[2]]
    assert [row for row in letters if row[2] != row[1]] == []
    assert len(letters) >= 115


VERDICTS = (
    # Boxes, before or behind their labels.
    ("- [x] Yes\n- [ ] No", "yes"),
    ("- [x] Yes / - [ ] No", "yes"),
    ("Yes [ ] No [x]", "no"),
    ("❌ Yes\n✅ No", "no"),
    ("[ ] pattern visible\n[x] no pattern visible", "no"),
    ("[ ] Yes [ ] No", "ambiguous"),
    ("[x] Yes [x] No", "ambiguous"),
    ("No.\n- [x] Yes\n- [ ] No", "ambiguous"),
    ("❌ No", "no"),
    ("[No]", "no"),
    # JSON and Python literals.
    ('{"reasoning": "No objects ...", "answer": "yes"}', "yes"),
    ('{"objects": false, "grating": true}', "yes"),
    ('{"objects": "no", "text": "no"}', "ambiguous"),
    ('{"initial_answer": "yes", "final_answer": "no"}', "no"),
    ('{"answer": null, "reason": "no idea"}', "ambiguous"),
    ('{"answer": "yes", "reason": "There is no pattern."}', "ambiguous"),
    ('There are stripes. {"answer": "no"}', "ambiguous"),
    ("{'answer': 'no', 'reason': \"it's grey\",}", "no"),
    # Scores: the higher counts, one alone has nothing to compare with.
    ('{"yes": 0.2, "no": 0.8}', "no"),
    ('{"yes": 0.2}', "ambiguous"),
    ('[{"answer": "no", "p": 0.9}, {"answer": "yes", "p": 0.1}]', "no"),
    ("Yes: 13 %, No: 87 %", "no"),
    ("P(yes) = 0.5, P(no) = 0.5", "ambiguous"),
    # Lists of labels: what was asked counts.
    ("Objects: no\nText: no\nGrating: yes", "yes"),
    ("Uniform: yes\nNoise: no", "no"),
    ("Objects: none\nText: none", "ambiguous"),
    # Struck out and taken back.
    ("~~Yes~~ No", "no"),
    # Marks, with and without a variation selector.
    ("\u2714\ufe0f", "yes"),
    ("\u274c", "no"),
    ("uniform grey: \u2716\ufe0f\nstripes: \u2714\ufe0f\ndots: \u2716\ufe0f", "yes"),
    ("\u274c No Gabor patch visible.", "no"),
    ("\u274c Gabor patch visible.", "ambiguous"),
    ("| Question | Yes | No |\n|---|---|---|\n| A pattern? | | \u2714 |", "no"),
    # Labels with a denial, and likelihoods.
    ('{"pattern_free": false}', "yes"),
    (
        '{"thoughts": "I should check whether it is free of stripes.", "no_pattern": true}',
        "no",
    ),
    ('Score for "pattern present": 0/10.', "no"),
    ("Probability of a pattern: 95 %", "yes"),
    ("Pattern present: 0", "no"),
    ("Detected: nothing.", "no"),
    ('{"visible": 1}', "yes"),
    ("Rather than noise I see a grating.", "yes"),
    ("I want to say yes. But honestly there's nothing there.", "no"),
    ("<del>Yes</del> No", "no"),
    ("~~~\nYes\n~~~", "yes"),
    ("Yes - correction: no.", "no"),
    ("It is uniform. On closer inspection, faint stripes are visible.", "yes"),
    ("Yes. Wait, let me look again.", "ambiguous"),
)


@pytest.mark.parametrize(("reply", "reading"), VERDICTS)
def test_a_verdict_is_read_by_its_structure(reply: str, reading: str) -> None:
    assert read_reply(reply) == reading


def test_a_question_of_reversed_polarity_is_answered_by_structure_too() -> None:
    assert read_reply('{"objects": false, "grating": true}', polarity=-1) == "no"
    assert read_reply('{"grating": true, "answer": "no"}', polarity=-1) == "no"
    german = {"yes": ("ja",), "no": ("nein",)}
    assert read_reply("- [ ] Ja\n- [x] Nein", **german) == "no"
    assert read_reply('{"ja": 0.9, "nein": 0.1}', **german) == "yes"


UNDECIDED = (
    "There seem to be bars, but those are reflections; the image itself is uniform.",
    "There seem to be bars, but those are probably reflections.",
    "My confidence that there's a grating is 50%.",
    "Stripes are alternating bands of light and dark.",
    "A blank image has no content.",
    "I was told that there is a pattern.",
    "Yes on the left, no on the right.",
    "There could well be a pattern hidden in the noise.",
    '{"answer": "no", "pattern_visible": true}',
    "I see bands when I zoom in, but they vanish when I zoom out.",
    "An observer with better eyes would see stripes.",
    "Yes, if you count noise as a pattern.",
    "Yes and also no.",
    '{"detected": []}',
    "Probability of a pattern: 50 %",
    "I see what may be stripes, but they could be compression artefacts.",
    "On the one hand there are stripes. On the other hand, it is grey.",
    "There is a grating with a probability of 0.5.",
    "I'd give it 6/10 that a pattern is there.",
    "I wouldn't go so far as to say that there's any texture here.",
    "If you squint, there are stripes; otherwise there aren't.",
    "There were stripes in the previous picture.",
    "In a striped image there would be bars of two shades.",
    "People often see stripes in such images.",
    "Yes, at least that's what one might think. But it's not: it is grey.",
    "Ratings:\n- grating: very likely\n- noise: unlikely\n- text: no",
    "Grating: \u2717\nDots: \u2713",
    "Could be yes, could be no",
    "Nobody would take this for an even grey surface.",
    "I'd hesitate to describe the picture as featureless.",
    "No one would call this uniform and say it shows no stripes.",
    "Nobody would find the grating faint.",
    "I hesitate to say that it is uniform and that it shows no stripes.",
    "Some people would say yes.",
    "I was wrong to say no.",
    "If the bands are real, the answer is yes.",
    "I thought it was blank. It is not.",
    "Yes would be an overstatement.",
    "Gratings have been used in research. I like them.",
)


@pytest.mark.parametrize("reply", UNDECIDED)
def test_words_of_unknown_scope_give_no_sign(reply: str) -> None:
    assert read_reply(reply) in ("ambiguous", "invalid")


@pytest.mark.parametrize(
    ("question", "reply", "reading"),
    [
        ("Is there a grating?", "A grating is visible.", "yes"),
        ("Are the stripes vertical?", "The stripes run from left to right.", "invalid"),
        ("Are the stripes vertical?", "No, the stripes are tilted.", "no"),
        ("Are the two images identical?", "Both are uniform grey.", "invalid"),
        ("Is the surface smooth?", "There are stripes on it.", "invalid"),
    ],
)
def test_a_description_counts_where_the_question_asks_for_a_pattern(
    question: str, reply: str, reading: str
) -> None:
    assert read_reply(reply, question=question) == reading


@pytest.mark.parametrize(
    ("reply", "reading"),
    [
        ("The image shows a polka-dot arrangement of circles.", "ambiguous"),
        ("I see a speckled texture.", "ambiguous"),
        ("It consists of speckle, without any bands.", "no"),
        ("Dots: yes", "invalid"),
        ("I see noise with faint stripes.", "yes"),
        ("I see dots, not stripes.", "no"),
        ("Plain grey, no dots.", "no"),
        ("Yes, there are faint dots.", "yes"),
    ],
)
def test_a_pattern_of_another_kind_is_not_the_one_that_was_asked_for(
    reply: str, reading: str
) -> None:
    assert read_reply(reply, question="Do you see stripes in the image?") == reading


def test_a_third_kind_is_none_of_two_that_were_asked_for() -> None:
    question = "Do you see stripes or dots?"
    assert read_reply("I see a checkerboard.", question=question) != "yes"
    assert read_reply("I see white dots.", question=question) == "yes"


def test_another_kind_counts_where_any_pattern_was_asked_for() -> None:
    for question in ("Is there a pattern?", "Are there stripes or other patterns?"):
        assert read_reply("I see white dots.", question=question) == "yes"


@pytest.mark.parametrize(
    ("reply", "polarity"),
    [
        ("No, the image is uniform grey throughout.", -1),
        ("No. It is a uniform grey.", -1),
        ("Yes, the image is uniform grey.", 1),
        ("Possibly, possibly not. I can't tell the difference.", 1),
        ("I can't reliably distinguish stripes from noise.", 1),
    ],
)
def test_a_verdict_with_the_opposite_beside_it_is_ambiguous(
    reply: str, polarity: int
) -> None:
    assert read_reply(reply, polarity=polarity) == "ambiguous"


def test_no_before_a_list_of_nouns_is_no_verdict() -> None:
    reply = "Yes, the image is blank. No objects, text, or patterns are visible."
    assert read_reply(reply, polarity=-1) == "yes"


@pytest.mark.parametrize("name", prompt_sets())
def test_every_packaged_yes_no_question_takes_descriptions(name: str) -> None:
    for prompt in load_prompts(name):
        if "yes" in prompt.yes and prompt.group != "forced_choice":
            assert asks_for_pattern(prompt.text, prompt.polarity)


def test_what_other_images_have_is_denied_of_this_one() -> None:
    reply = "While some images contain stripes or dots, this one does not."
    assert read_reply(reply) == "no"


def test_nobody_denies_what_nobody_would_see() -> None:
    assert read_reply("Nobody would find a grating in this.") == "no"
    assert read_reply("There is little evidence of a pattern.") == "no"


@pytest.mark.parametrize(
    "unit",
    [
        "[",
        "[x] ",
        "( )",
        "~~a",
        '{"a":',
        "<s>",
        "a: no\n",
        "x\u0336",
        "if i ",
        "nobody ",
    ],
)
def test_long_hostile_structure_takes_no_time(unit: str) -> None:
    text = (unit * 100_000)[:100_000]
    start = time.process_time()
    assert read_reply(text) != "yes"
    read_letter(text, ("a cat", "a dog"))
    assert time.process_time() - start < 2
