"""Any function of images and a prompt as an observer that answers in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import psyprobe as pp
from psyprobe._typing import FloatArray
from psyprobe.errors import InputError
from psyprobe.observers.chat.protocol import (
    Answer,
    AnswerObserver,
    Decoding,
    Inquiry,
    ask_all,
)

FLAT = np.full((4, 4, 3), 128 / 255)


def test_a_string_is_the_reply() -> None:
    observer = pp.observer(
        lambda images, prompt: f"{len(images)} {prompt}", name="echo"
    )
    assert isinstance(observer, AnswerObserver)
    answer = observer.answer([FLAT, FLAT], "Where?")
    assert (answer.text, answer.first_tokens, answer.model) == (
        "2 Where?",
        None,
        "echo",
    )
    assert answer.latency > 0
    assert (observer.bits, observer.images_at_once, observer.card.ability) == (
        None,
        None,
        "answer",
    )
    assert observer.delivered(FLAT) is FLAT


def test_log_probabilities_come_likeliest_first() -> None:
    observer = pp.observer(
        lambda images, prompt: ("No", {"Yes": -2.0, "No": -0.2}),
        name="logs",
        complete=True,
    )
    answer = observer.answer([FLAT], "?")
    assert answer.first_tokens == (("No", -0.2), ("Yes", -2.0)) and answer.complete


def test_an_answer_is_passed_on() -> None:
    answer = Answer("Yes", tokens_in=7, cost=0.5, latency=3.0, model="mine")
    assert (
        pp.observer(lambda images, prompt: answer, name="whole").answer([FLAT], "?")
        == answer
    )


def test_what_the_function_has_parameters_for_it_gets() -> None:
    def function(
        images: Sequence[FloatArray],
        prompt: str,
        decoding: Decoding,
        words: tuple[str, ...],
    ) -> str:
        return f"{decoding.seed} {words}"

    observer = pp.observer(function, name="asks")
    answer = observer.answer([FLAT], "?", decoding=Decoding(seed=4), words=("A", "B"))
    assert answer.text == "4 ('A', 'B')"
    with pytest.raises(InputError, match="no parameter 'system'"):
        observer.answer([FLAT], "?", system="Be brief.")
    listener = pp.observer(lambda images, prompt, system: system, name="hears")
    assert listener.answer([FLAT], "?", system="Be brief.").text == "Be brief."


def test_many_questions() -> None:
    observer = pp.observer(lambda images, prompt: prompt.upper(), name="loud")
    answers = ask_all(observer, (Inquiry(prompt, (FLAT,)) for prompt in "abc"))
    assert [(inquiry.prompt, answer.text) for inquiry, answer in answers] == [
        ("a", "A"),
        ("b", "B"),
        ("c", "C"),
    ]


def test_versions_are_told_apart() -> None:
    first, two = (
        pp.observer(lambda images, prompt: "", name="same", version=version)
        for version in "12"
    )
    assert first.card.digest != two.card.digest


@pytest.mark.parametrize(
    "returned",
    [3, None, ("Yes", 0.5), ("Yes", {"Yes": 0.5}), ("Yes", {"Yes": float("nan")})],
)
def test_refuses_other_replies(returned: Any) -> None:
    with pytest.raises(
        InputError, match=r"wanted is the reply as a string|at or below 0"
    ):
        pp.observer(lambda images, prompt: returned, name="odd").answer([FLAT], "?")


def test_refuses_images_that_it_cannot_take() -> None:
    observer = pp.observer(
        lambda images, prompt: "", name="narrow", bits=8, images_at_once=1, input_size=4
    )
    assert observer.card.input_size == (4, 4)
    with pytest.raises(InputError, match="off the 8-bit codes"):
        observer.answer([FLAT * 0.999], "?")
    with pytest.raises(InputError, match="takes one image at a time and was shown 2"):
        observer.answer([FLAT, FLAT], "?")
    with pytest.raises(InputError, match="bits is 10"):
        pp.observer(lambda images, prompt: "", name="narrow", bits=10)
