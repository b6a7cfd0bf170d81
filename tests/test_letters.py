"""Letters of options in replies: which one a reply gives, and when it gives none."""

from __future__ import annotations

import pytest

from psyprobe.tasks.letters import read_letter

LETTERS = (
    ("B", "B"),
    ("B.", "B"),
    ("(B)", "B"),
    ("b)", "B"),
    ("b", "B"),
    ("**B**", "B"),
    ("Answer: B", "B"),
    ("The answer is B.", "B"),
    ("A", "A"),
    ("A.", "A"),
    ("A) left", "A"),
    ("A cat.", ""),
    ("A horse is shown", ""),
    ("The answer is A.", "A"),
    ("The answer is A, a cat.", "A"),
    ("The answer is a cat.", ""),
    ("The answer is A cat", ""),
    ("The correct answer is (C).", "C"),
    ("Option D", "D"),
    ("option d", "D"),
    ("I would choose B.", "B"),
    ("I think B", "B"),
    ("B is wrong, the answer is C", "C"),
    ("B is wrong.", ""),
    ("B isn't right", ""),
    ("It is not B.", ""),
    ("A or B", ""),
    ("A, B", ""),
    ("A and B", ""),
    ("Both A and B", ""),
    ("Neither A nor B", ""),
    ("E.g. a dog", ""),
    ("A.Left", "A"),
    ("A: one", "A"),
    ("B black cat", "B"),
    ("Black", ""),
    ("(A) left", "A"),
    ("U.S.A.", ""),
    ("Vitamin C", ""),
    ("Type A blood", ""),
    ("The letter is B", "B"),
    ("The answer is not B", ""),
    ("The answer is B, not A.", "B"),
    ("A. dog\nB. cat\nC. horse", ""),
    ("<think>maybe A</think>B", "B"),
    ("Let me see. The lamp is lit.\n\nAnswer: **C**", "C"),
    ("Final answer: $\\boxed{D}$", "D"),
    ("A is correct", "A"),
    ("A is the right option", "A"),
    ("A, because it is dark", "A"),
    ("A - a dog", "A"),
    ("A dog, I think", ""),
    ("D-day", ""),
    ("B&W photo", ""),
    ("The picture is B&W", ""),
    ("I don't think B is right", ""),
    ("option B is wrong", ""),
    ("C. The man", "C"),
    ("Correct option: C", "C"),
    ("I'd go with E", "E"),
    ("It's D.", "D"),
    ("the first", ""),
    ("A!", "A"),
    ('"B"', "B"),
    ("Answer is: (B) Right", "B"),
    ("ANSWER: B", "B"),
    ("Answer: b", "B"),
    ("answer: a dog", ""),
    ("My choice is (a)", "A"),
    ("[B]", "B"),
    ("Cat", ""),
    ("None of them", ""),
    ("C", "C"),
    ("The man in the image is A", ""),
    ("Image A is darker than image B", ""),
)


@pytest.mark.parametrize(("reply", "letter"), LETTERS)
def test_a_letter_is_read_where_a_reply_gives_one(reply: str, letter: str) -> None:
    assert read_letter(reply) == letter


STRUCTURED = (
    ("- [ ] A\n- [x] B", "B"),
    ("~~A~~ B", "B"),
    ('{"A": 0.1, "B": 0.7}', "B"),
    ('{"choice": "b", "confidence": 0.6}', "B"),
    ("- A. a cat\n- **B. a dog**\n- C. a horse", "B"),
    ("A: no\nB: yes\nC: no", "B"),
    ("A. Correction: B.", "B"),
    ("A is wrong because of its ears, so C.", "C"),
    ("That leaves D.", "D"),
    ("a. red, or b. green", ""),
    ("I guess B, maybe C.", ""),
    ("- [x] A\n- [x] B", ""),
    ("| A | B |\n|---|---|\n| | x |", "B"),
    ("<final>C</final>", "C"),
    ("choice: c\nconfidence: 0.55", "C"),
    ("A: 10%\nB: 70%", "B"),
    ("A: 12 %\nB: 31 %\n=> B", "B"),
    ("A. a cat - no.\nB. a dog - yes.\n\nThe correct choice is B.", "B"),
    # Letters that a reply takes back, excludes, denies or puts on a condition.
    ("D was my first thought, but it is coarser. Going with B.", "B"),
    ("B is out, as are C and D.", ""),
    ("A, B and C all describe motion.\n\nOption D.", "D"),
    ("Option A and option C are both possible.", ""),
    ("Not A but C.", "C"),
    ("Up, i.e. C. (Not D: it moves.)", "C"),
    ("If it were red I'd say A.", ""),
    ("It is hard to choose B over A.", ""),
    ("None of these.", ""),
    ('{"A": 0.5, "B": 0.5}', ""),
)


@pytest.mark.parametrize(("reply", "letter"), STRUCTURED)
def test_a_letter_is_read_by_the_structure_of_a_reply(reply: str, letter: str) -> None:
    assert read_letter(reply) == letter


@pytest.mark.parametrize(
    ("reply", "letter"),
    [
        ("A horse is shown", "C"),
        ("Dog.", "B"),
        ("It is not a dog.", ""),
        ("It could be a dog.", ""),
        ("A cat and a dog.", ""),
        ("A hot dog", "D"),
        ("A zebra is shown", ""),
    ],
)
def test_where_options_are_known_the_text_of_one_counts(
    reply: str, letter: str
) -> None:
    assert read_letter(reply, ("a cat", "a dog", "a horse", "a hot dog")) == letter


@pytest.mark.parametrize(
    ("reply", "options", "letter"),
    [
        ("E", ("E", "F", "H"), "A"),
        ("It's an H.", ("E", "F", "H"), "C"),
        ("A", ("B", "C", "A"), ""),
        ("It cannot be determined.", ("left", "it cannot be determined"), "B"),
        ("I count two gratings.", ("2", "3"), "A"),
        ("Image 1 shows no grating.", ("1", "2"), ""),
        ("A cat? No. It's a dog.", ("a cat", "a dog"), "B"),
        ("One might take it for stripes, but it's dots.", ("stripes", "dots"), "B"),
        (
            "A. stripes\nB. dots\nC. grey\n\nI see dots.",
            ("stripes", "dots", "grey"),
            "B",
        ),
        ("They might be dots.", ("stripes", "dots"), ""),
        ("First of all, I need a larger image.", ("first", "second"), ""),
        ("The blue background has a yellow patch.", ("red", "blue"), ""),
    ],
)
def test_the_text_of_an_option_is_what_is_affirmed(
    reply: str, options: tuple[str, ...], letter: str
) -> None:
    assert read_letter(reply, options) == letter


PLACES = ("top left", "top right", "bottom left", "bottom right")
TILTS = ("vertical", "horizontal", "tilted left", "tilted right")
WAYS = ("up", "down", "left", "right")


@pytest.mark.parametrize(
    ("reply", "options", "letter"),
    [
        # Word forms of an option.
        ("It is in the upper-left corner.", PLACES, "A"),
        ("The stripes run horizontally.", TILTS, "B"),
        ("The lines lean slightly to the right.", TILTS, "D"),
        ("The arrow is pointing upward.", WAYS, "A"),
        ("They drift to the left.", ("leftwards", "rightwards"), "A"),
        ("The bars on the right move.", ("leftwards", "rightwards"), ""),
        # A letter from which something is measured is no answer.
        ("The lines lean right, at 30 degrees from vertical.", TILTS, "D"),
        ("Rotated by 20 degrees to the left of vertical.", TILTS, ""),
        ("It moved from the top left to the bottom right.", PLACES, ""),
        # Hedges that lean one way.
        ("Most likely B; there may be a fourth dot.", WAYS, "B"),
        ("It could be C, but on balance D seems the better match.", WAYS, "D"),
        ("Probably A, possibly B.", WAYS, ""),
        ("It is unlikely: B", WAYS, ""),
        # The box counts, not what leads to it.
        ("That rules out A, B and D.\n\n\\boxed{C}", WAYS, "C"),
        ("Two patches, one on each side.", ("one", "two", "three"), "B"),
    ],
)
def test_word_forms_hedges_and_origins(
    reply: str, options: tuple[str, ...], letter: str
) -> None:
    assert read_letter(reply, options) == letter
