"""A judge: asked in fixed words, read strictly, kept raw, and never replaced."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from psyprobe.errors import InputError, PsyprobeError, UnknownNameError
from psyprobe.observers.chat.protocol import Answer
from psyprobe.observers.protocol import Card
from psyprobe.tasks import items
from psyprobe.tasks.items import (
    Case,
    Judge,
    JudgePrompt,
    Verdicts,
    count_verdicts,
    judge_cases,
    judge_prompts,
)

#: Prompts of the core, and one whose verdicts are numbers.
GRADES = JudgePrompt(
    "grades",
    "1",
    "You grade answers.",
    "{question} Right: {key} Given: {answer} 2, 1 or 0?",
    {"2": 1.0, "1": 0.5, "0": 0.0},
)
PROMPTS = {**judge_prompts(), "grades": GRADES}


@pytest.fixture(autouse=True)
def _judge_with_grades(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(items, "judge_prompts", lambda: PROMPTS)


class Says:
    """A judge that says what a function of prompt and seed says, and counts."""

    bits, images_at_once = None, None

    def __init__(self, reply: Any) -> None:
        self.card, self.reply, self.inquiry_count = Card("says", "answer"), reply, 0

    def delivered(self, image: Any) -> Any:
        return image

    def answer(
        self, images: Sequence[Any], prompt: str, *, decoding: Any, **_: Any
    ) -> Answer:
        self.inquiry_count += 1
        return Answer(self.reply(prompt, decoding.seed))


CASE = Case("item", "grades", "What is it?", "a dog", "a hound")


def test_the_prompt_holds_all_three_texts_and_the_reply_is_read() -> None:
    prompts: list[str] = []
    judge = Judge(Says(lambda prompt, seed: prompts.append(prompt) or "2"))
    verdicts = judge_cases([CASE], judge, progress=False)
    assert verdicts["item"] == Verdicts((1.0,), ())
    assert all(text in prompts[0] for text in ("What is it?", "a dog", "a hound"))


@given(st.text(max_size=60))
def test_braces_in_an_answer_fill_in_nothing(answer: str) -> None:
    prompt = JudgePrompt("p", "1", "", "{answer}|{key}", {})
    case = Case("item", "p", "Q", "K", f"{answer}{{key}}{{question}}")
    assert prompt.fill(case) == f"{answer}{{key}}{{question}}|K"


@pytest.mark.parametrize(
    ("name", "reply", "verdict"),
    [
        ("grades", "2", 1.0),
        ("grades", " 1. ", 0.5),
        ("grades", "Score: 0", 0.0),
        ("grades", "12", None),
        ("grades", "0, or 1", None),
        ("yes_no", "Yes.", "yes"),
        ("yes_no", "UNKNOWN", ""),
        ("yes_no", "yes and no", None),
        ("choice_letter", "(B)", "B"),
        ("choice_letter", "X", ""),
        ("choice_letter", "", None),
        # The scale is 0, 1, 2: a fraction of it is no verdict, nor the first digit of one.
        ("grades", "0.5", None),
        ("grades", "0.9", None),
        ("grades", "1.5", None),
        ("grades", "1.0", None),
        ("grades", "0,5", None),
        ("grades", "1/2", None),
        ("grades", "-1", None),
        ("grades", "<1", None),
        ("grades", "+2", None),
        ("grades", "2%", None),
        ("grades", "1\u00bd", None),
        ("grades", "2 out of 2", None),
        ("grades", "Not 2", None),
        ("grades", "not a 1 but", None),
        ("yes_no", "not yes", None),
        ("yes_no", "No way to tell", None),
        ("choice_letter", "a dog", None),
        ("grades", "<think>0 or 1? I would say 1.</think>2", 1.0),
        ("grades", "<think>0 or 1?</think>\n\n**2**", 1.0),
        ("grades", "<think>it means 2", None),
        ("grades", "2<think>", 1.0),
        ("grades", '{"score": 1}', 0.5),
        ("grades", "My final score is: 0.", 0.0),
        ("grades", "**Score:** 2", 1.0),
        ("grades", "score", None),
        ("yes_no", "_Yes_", "yes"),
        ("yes_no", "The answer is no.", "no"),
    ],
)
def test_a_reply_is_one_verdict_or_none(name: str, reply: str, verdict: object) -> None:
    assert PROMPTS[name].read(reply) == verdict


def test_repeats_are_averaged_and_what_is_no_verdict_is_counted() -> None:
    replies = ["2", "0", "I cannot say", "2", "2"]
    judge = Judge(Says(lambda prompt, seed: replies[seed]), repeats=5, temperature=1.0)
    verdicts = judge_cases([CASE], judge, progress=False)["item"]
    assert verdicts.values == (1.0, 0.0, 1.0, 1.0)
    assert verdicts.unread == ("I cannot say",)
    assert verdicts.mean == 0.75
    assert verdicts.majority == 1.0
    assert Verdicts((1.0, 0.0), ()).majority is None


@given(
    st.decimals(0, 2, places=2),
    st.sampled_from(["{}", "Score: {}", "{}.", "<think>2</think>{}"]),
)
def test_a_fraction_is_never_rounded_to_a_verdict(score: object, dress: str) -> None:
    assert GRADES.read(dress.format(score)) is None


def test_a_judge_that_reasons_has_the_tokens_to_and_a_cut_reply_is_no_verdict() -> None:
    token_limits: list[int] = []

    class Reasons(Says):
        def answer(
            self, images: Sequence[Any], prompt: str, *, decoding: Any, **_: Any
        ) -> Answer:
            token_limits.append(decoding.max_tokens)
            all_tokens = ["<think>", *["hm "] * 200, "</think>", "2"]
            tokens = all_tokens[: decoding.max_tokens]
            return Answer(
                "".join(tokens), finish="stop" if tokens == all_tokens else "length"
            )

    verdicts = judge_cases([CASE], Judge(Reasons(None)), progress=False)["item"]
    assert (verdicts, token_limits) == (Verdicts((1.0,), ()), [1024])
    cut = judge_cases([CASE], Judge(Reasons(None), max_tokens=32), progress=False)[
        "item"
    ]
    assert token_limits[1:] == [32] and cut.failed and cut.cut == 1
    assert count_verdicts([verdicts, cut])["cut_replies"] == 1
    # "1" that was cut off may have gone on as "1.5".
    assert GRADES.verdicts_of([("1", "length"), ("1", "stop")]) == Verdicts(
        (0.5,), ("1",), 1
    )


def test_long_replies_of_a_judge_take_no_time() -> None:
    start = time.process_time()
    for unit in (" ", "score ", "the ", "(", "2 ", "<think>"):
        assert GRADES.read((unit * 100_000)[:100_000]) is None
    assert time.process_time() - start < 2


def test_nothing_is_judged_twice(tmp_path: Path) -> None:
    store, observer = tmp_path / "runs.sqlite", Says(lambda prompt, seed: "1")
    cases = [CASE, CASE.__class__("other", "grades", "?", "k", "a")]
    first = judge_cases(cases, Judge(observer), store=store)
    assert observer.inquiry_count == 2
    # Both are compared with new verdicts, which are not kept.
    assert judge_cases(cases, Judge(observer), store=store) == first
    assert observer.inquiry_count == 4


def test_a_judge_without_a_verdict_is_never_a_number() -> None:
    verdicts = judge_cases(
        [CASE], Judge(Says(lambda prompt, seed: "no idea")), progress=False
    )["item"]
    assert verdicts.failed
    assert verdicts.majority is None
    assert np.isnan(verdicts.mean)


def test_a_judge_that_cannot_be_reached_ends_the_judging() -> None:
    def fail(prompt: str, seed: int) -> str:
        raise PsyprobeError("the server does not answer")

    with pytest.raises(PsyprobeError, match="does not answer"):
        judge_cases([CASE], Judge(Says(fail)), progress=False)


def test_the_configuration_tells_all_that_matters() -> None:
    configuration = Judge(Says(str), repeats=3, temperature=0.5).to_dict()
    assert configuration["observer"]["name"] == "says"
    assert configuration["prompts"]["grades"].startswith("1 (")
    with pytest.raises(InputError, match="one and the same answer"):
        Judge(Says(str), repeats=3)
    with pytest.raises(InputError, match="give at least 1"):
        Judge(Says(str), repeats=0)
    with pytest.raises(UnknownNameError, match="did you mean 'yes_no'"):
        judge_cases([Case("a", "yes_noo", "", "", "")], Judge(Says(str)))
