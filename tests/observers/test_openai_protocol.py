"""The client side of the protocol reads the responses of many servers."""

from __future__ import annotations

import email.utils
import json
import time
from typing import Any

import numpy as np
import pytest

from psyprobe.observers.chat.openai_protocol import (
    Dialect,
    ProblemError,
    messages,
    problem_of_status,
    read_completion,
    settings,
)
from psyprobe.observers.chat.protocol import Decoding, Inquiry


def completion(message: Any = None, **fields: Any) -> bytes:
    choice = {
        "message": message or {"content": "Yes"},
        "finish_reason": "stop",
        **fields.pop("choice", {}),
    }
    return json.dumps({"model": "m", "choices": [choice], **fields}).encode()


def token(
    text: str, logprob: float | None, *listed: tuple[str, float | None]
) -> dict[str, Any]:
    return {
        "token": text,
        "logprob": logprob,
        "top_logprobs": [{"token": t, "logprob": v} for t, v in listed],
    }


def test_images_come_before_the_text() -> None:
    images = (np.zeros((1, 1, 3)),) * 2
    before, user_message = messages(
        Inquiry("What?", images, "Be brief."), ["data:1", "data:2"], "high"
    )
    assert before == {"role": "system", "content": "Be brief."}
    assert [part["type"] for part in user_message["content"]] == [
        "image_url",
        "image_url",
        "text",
    ]
    assert user_message["content"][1]["image_url"] == {
        "url": "data:2",
        "detail": "high",
    }
    assert len(messages(Inquiry("What?"), [], "low")) == 1


def test_settings_follow_the_dialect() -> None:
    decoding = Decoding(0.7, max_tokens=4, seed=3)
    assert settings(decoding, Dialect()) == {
        "temperature": 0.7,
        "max_tokens": 4,
        "logprobs": True,
        "top_logprobs": 20,
        "seed": 3,
    }
    plain = Dialect(listed=0, limit="max_completion_tokens", without=("seed",))
    assert settings(decoding, plain) == {"temperature": 0.7, "max_completion_tokens": 4}


@pytest.mark.parametrize(
    ("status", "message", "param", "learnt"),
    [
        (
            400,
            "Unsupported parameter: 'max_tokens'; use 'max_completion_tokens' instead.",
            "max_tokens",
            Dialect(limit="max_completion_tokens"),
        ),
        (400, "top_logprobs must be at most 8", None, Dialect(listed=5)),
        (422, "Extra inputs are not permitted: logprobs", None, Dialect(listed=0)),
        (400, "not supported", "logprobs", Dialect(listed=0)),
        (
            400,
            "'seed' is not supported with this model",
            "seed",
            Dialect(without=("seed",)),
        ),
        (
            400,
            "temperature must be 1",
            "temperature",
            Dialect(without=("temperature",)),
        ),
        (
            400,
            "max_tokens is too large: 16. This model supports at most 8",
            "max_tokens",
            Dialect(most=8),
        ),
        (
            400,
            "'max_tokens' is too large: 16 (16 > 4096 - 4090)",
            None,
            Dialect(most=6),
        ),
        (
            400,
            "Expected a value >= 16, but got 1",
            "max_output_tokens",
            Dialect(least=16),
        ),
        (
            400,
            "messages[0].role does not support 'system'",
            None,
            Dialect(without=("system",)),
        ),
        (
            400,
            "Unknown parameter: 'reasoning_effort'",
            None,
            Dialect(without=("reasoning_effort",)),
        ),
        (404, "no logprobs here", None, None),
        (400, "the image is seedy", None, None),
    ],
)
def test_learns_what_a_server_does_not_take(
    status: int, message: str, param: str | None, learnt: Any
) -> None:
    body = {"error": {"message": message, "param": param}}
    problem = problem_of_status(status, body, {})
    assert (
        Dialect().after(problem)
        == Dialect().after(problem_of_status(status, [body], {}))
        == learnt
    )
    if learnt is not None:
        assert learnt.after(problem) != learnt


@pytest.mark.parametrize(
    ("status", "body", "passing"),
    [
        (429, {"message": "slow down"}, True),
        (429, {"message": "no money", "code": "insufficient_quota"}, False),
        (408, "", True),
        (500, "<html>", True),
        (503, {"detail": "loading"}, True),
        (400, {"message": "bad"}, False),
        (401, {}, False),
        (413, "too large", False),
    ],
)
def test_tells_what_passes_from_what_does_not(
    status: int, body: Any, passing: bool
) -> None:
    assert problem_of_status(status, {"error": body}, {}).passing is passing
    assert problem_of_status(status, body, {}).passing is passing


@pytest.mark.parametrize(
    ("headers", "wait"),
    [
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "soon"}, None),
        ({}, None),
    ],
)
def test_reads_how_long_to_wait(headers: dict[str, str], wait: float | None) -> None:
    assert problem_of_status(429, "", headers).wait == wait


def test_reads_a_date_and_gives_up_on_a_long_wait() -> None:
    soon = problem_of_status(
        503, "", {"retry-after": email.utils.formatdate(time.time() + 30, usegmt=True)}
    )
    assert soon.wait == pytest.approx(30, abs=2)
    late = problem_of_status(429, "", {"retry-after": "7200"})
    assert not late.passing and "asks to wait 7200 s" in str(late)


def test_messages_of_servers_are_made_harmless(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "topsecret")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://hidden.example/v1")
    message = (
        "key topsecret, Bearer abc.def, sk-12345 at http://hidden.example/v1 and "
        "https://other.example\n\x1b[31m!"
    )
    text = str(problem_of_status(400, {"error": {"message": message}}, {}))
    for hidden in (
        "topsecret",
        "abc.def",
        "12345",
        "hidden.example",
        "other.example",
        "\n",
        "\x1b",
    ):
        assert hidden not in text
    assert len(str(problem_of_status(400, "x" * 5000, {}))) < 400
    assert (
        str(
            problem_of_status(
                401, {"error": {"message": "Incorrect API key: sk-1"}}, {}
            )
        )
        == "HTTP 401"
    )


def test_reads_the_first_token_that_is_not_blank() -> None:
    content = [
        token("\n", -0.01, ("\n", -0.01), ("Yes", -5.0)),
        token("Yes", -0.2, ("No", -1.7), ("Yes", -0.2), ("Maybe", None)),
        token(".", -0.1, (".", -0.1)),
    ]
    answer = read_completion(completion(choice={"logprobs": {"content": content}}), {})
    assert answer.first_tokens == (("Yes", -0.2), ("No", -1.7))
    sampled = [token("Perhaps", -9.0, ("No", -0.1))]
    answer = read_completion(completion(choice={"logprobs": {"content": sampled}}), {})
    assert (
        answer.first_tokens == (("No", -0.1), ("Perhaps", -9.0)) and not answer.complete
    )


@pytest.mark.parametrize(
    "logprobs",
    [None, {}, {"content": None}, {"content": []}, {"content": [token("Yes", -1.0)]}],
)
def test_log_probabilities_may_be_absent(logprobs: Any) -> None:
    assert (
        read_completion(completion(choice={"logprobs": logprobs}), {}).first_tokens
        is None
    )


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ({"content": "No."}, "No."),
        ({"content": None, "refusal": "I will not."}, "I will not."),
        ({"content": None}, ""),
        (
            {
                "content": [
                    {"type": "text", "text": "Y"},
                    {"type": "text", "text": "es"},
                ]
            },
            "Yes",
        ),
    ],
)
def test_reads_the_text(message: Any, text: str) -> None:
    assert read_completion(completion(message), {}).text == text


def test_reads_tokens_cost_and_who_answered() -> None:
    usage = {"prompt_tokens": 10, "completion_tokens": 2, "cost": 0.001}
    answer = read_completion(
        completion(usage=usage, system_fingerprint="fp"), {"server": "uvicorn"}
    )
    assert (answer.tokens_in, answer.tokens_out, answer.cost) == (10, 2, 0.001)
    assert (answer.model, answer.server, answer.finish) == ("m", "fp", "stop")
    answer = read_completion(
        completion(), {"x-litellm-response-cost": "0.5", "server": "uvicorn"}
    )
    assert (answer.tokens_in, answer.cost, answer.server) == (None, 0.5, "uvicorn")


@pytest.mark.parametrize(
    ("body", "passing"),
    [
        (b'{"choices": [{"mess', True),
        (b" <html>", False),
        (b"[]", True),
        (b'{"choices": []}', True),
        (b'{"choices": [{"message": null}]}', True),
        (b'{"error": {"code": 502, "message": "upstream"}}', True),
        (b'{"error": {"code": 400, "message": "no"}}', False),
        (b'{"error": "overloaded"}', True),
    ],
)
def test_what_holds_no_answer_is_a_problem(body: bytes, passing: bool) -> None:
    with pytest.raises(ProblemError) as caught:
        read_completion(body, {})
    assert caught.value.passing is passing
