"""Replies are taken as they are or not at all."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from psyprobe.tasks.mvp_construction.steps import (
    LANGUAGE_STEPS,
    UnreadReply,
    read_reply,
)

PROPOSAL = {
    "category": "B2",
    "high_natural": "a",
    "high_manipulated": "b",
    "low_natural": "c",
    "low_manipulated": "d",
    "caption": "e",
    "part": 1,
    "instruction": None,
}
CHOICE = {"question": "Which?", "right": "r", "wrong": ["1", "2", "3", "4"]}
QUESTIONS = {
    "low": "Is it low?",
    "high": "Is it high?",
    "single": {
        "question": "What?",
        "right": "r",
        "natural": "n",
        "wrong": ["1", "2", "3"],
    },
    "cross_low": CHOICE,
    "cross_high": CHOICE,
}
READERS = {
    name: partial(read_reply, form=LANGUAGE_STEPS[step].form, **limits)
    for name, step, limits in (
        ("caption", "caption", {}),
        ("subject", "subject", {"count": 3}),
        ("value", "behaviour", {}),
        ("boxed", "object", {}),
        (
            "proposal",
            "proposal",
            {"editing": {"B2": "part", "E2": "direct"}, "count": 2},
        ),
        ("questions", "questions", {}),
    )
}


@pytest.mark.parametrize(
    ("reader", "values"),
    [
        (
            "caption",
            {
                "caption": "a cat",
                "objects": [{"name": "cat", "box": [0.0, 0.0, 0.5, 1.0]}],
            },
        ),
        ("subject", {"subject": 3}),
        ("value", {"value": "it sleeps"}),
        ("boxed", {"value": None, "box": None}),
        ("boxed", {"value": "hat", "box": [0.1, 0.1, 0.2, 0.2]}),
        ("proposal", PROPOSAL),
        (
            "proposal",
            PROPOSAL
            | {"category": "E2", "part": None, "instruction": "change c into d"},
        ),
        ("questions", QUESTIONS),
    ],
)
def test_what_was_asked_for_is_read_also_in_a_fence(reader: str, values: Any) -> None:
    for text in (
        json.dumps(values),
        f"```json\n{json.dumps(values, indent=1)}\n```\n",
        f" {json.dumps(values)}\n",
    ):
        assert READERS[reader](text) == values


@pytest.mark.parametrize(
    ("reader", "reply", "reason"),
    [
        ("value", "It sleeps.", "no JSON object"),
        ("value", '{"value": "a"} {"value": "b"}', "no JSON object"),
        ("value", '["a"]', "no JSON object"),
        ("value", '{"value": "a", "value": "b"}', "there twice"),
        ("value", '{"value": "a", "sure": true}', "'sure' that was not asked for"),
        ("value", '{"value": ""}', "no text"),
        ("value", '{"value": "two\\nlines"}', "not one line"),
        ("value", json.dumps({"value": "x" * 401}), "at most 400"),
        ("value", "[" * 100_000, "no JSON object"),
        ("subject", '{"subject": 4}', "no number from 1 to 3"),
        ("subject", '{"subject": true}', "no number"),
        ("subject", '{"subject": "1"}', "no number"),
        ("boxed", '{"value": "hat", "box": null}', "both"),
        ("boxed", '{"value": "hat", "box": [0, 0, 1]}', "four numbers"),
        ("boxed", '{"value": "hat", "box": [0.5, 0, 0.2, 1]}', "empty or leaves"),
        ("boxed", '{"value": "hat", "box": [0, 0, NaN, 1]}', "NaN is no number"),
        ("boxed", '{"value": "hat", "box": [0, 0, 1e999, 1]}', "leaves the image"),
        ("boxed", '{"value": "hat", "box": [0, 0, 512, 300]}', "leaves the image"),
        ("caption", '{"caption": "a", "objects": []}', "no list"),
        ("proposal", json.dumps(PROPOSAL | {"category": "B1"}), "not one of B2, E2"),
        (
            "proposal",
            json.dumps(PROPOSAL | {"part": None}),
            "part must be given for category B2",
        ),
        (
            "proposal",
            json.dumps(PROPOSAL | {"instruction": "x"}),
            "instruction must be null",
        ),
        ("proposal", json.dumps(PROPOSAL | {"low_manipulated": "C"}), "are the same"),
        ("questions", json.dumps(QUESTIONS | {"high": "is it low?"}), "are the same"),
        (
            "questions",
            json.dumps(QUESTIONS | {"cross_low": CHOICE | {"wrong": ["1", "2", "3"]}}),
            "list of 4 wrong",
        ),
        (
            "questions",
            json.dumps(QUESTIONS | {"cross_low": CHOICE | {"right": "1"}}),
            "two options",
        ),
    ],
)
def test_anything_else_has_a_reason(reader: str, reply: str, reason: str) -> None:
    with pytest.raises(UnreadReply, match=reason):
        READERS[reader](reply)


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(max_size=5), st.lists
    ),
    st.text(max_size=30),
)
def test_no_reply_breaks_a_reader(value: Any, text: str) -> None:
    for reader in READERS.values():
        for reply in (
            text,
            json.dumps(value),
            json.dumps({"value": value, "box": value}),
            json.dumps({"subject": value}),
        ):
            try:
                reader(reply)
            except UnreadReply as error:
                assert "\n" not in str(error)
