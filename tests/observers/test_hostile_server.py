"""What a server may send: nothing of it ends a run, none of it is read without end, and none of it
costs much time."""

from __future__ import annotations

import asyncio
import collections
import heapq
import json
import random
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

pytest.importorskip("aiohttp", reason="the chat extra is not installed")

from odd_server import Faults, OddServer

from psyprobe.errors import PsyprobeError
from psyprobe.observers import load_observer
from psyprobe.observers.chat.openai_chat import OpenAIObserver
from psyprobe.observers.chat.openai_protocol import (
    Dialect,
    ProblemError,
    problem_of_status,
    read_completion,
)
from psyprobe.observers.chat.openai_sending import Endpoint, Question, Sender
from psyprobe.observers.chat.protocol import Answer, Decoding, Inquiry
from psyprobe.observers.protocol import Card

MODEL = "simulated:watson-malo"
IMAGE = (np.random.default_rng(1).integers(120, 136, (64, 64, 3)) / 255).astype(
    np.float32
)
SAMPLED = Decoding(temperature=1.0)


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)


def questions(count: int) -> list[Inquiry]:
    return [
        Inquiry(
            f"Is there a pattern visible in the image? ({i})",
            (IMAGE,),
            decoding=SAMPLED,
        )
        for i in range(count)
    ]


@pytest.mark.parametrize(
    "fault",
    ["redirect", "endless", "drip", "gzip_bomb", "odd_usage", "deep_json", "surrogate"],
)
def test_every_question_is_answered_once_and_rightly(fault: str) -> None:
    truth, inquiries = load_observer(MODEL), questions(24)
    with OddServer(truth, faults=Faults(**{fault: 0.3}, seed=2)) as server:
        with OpenAIObserver(MODEL, base_url=server.base_url, timeout=1.0) as observer:
            replies = list(observer.answers(inquiries))
        assert server.counts[fault] and not server.counts["followed"]
    assert collections.Counter(
        id(inquiry) for inquiry, _ in replies
    ) == collections.Counter(map(id, inquiries))
    expected_texts = {
        inquiry.prompt: truth.answer(
            inquiry.images, inquiry.prompt, decoding=SAMPLED
        ).text
        for inquiry in inquiries
    }
    assert {
        answer.text.removesuffix("\\ud800") == expected_texts[inquiry.prompt]
        for inquiry, answer in replies
    } == {True}
    # An answer whose count of tokens cannot be read is an answer.
    assert (sum(answer.attempts for _, answer in replies) > 24) == (
        fault not in ("odd_usage", "surrogate")
    )
    assert all(
        json.dumps(answer.to_dict(), allow_nan=False).encode() for _, answer in replies
    )
    assert all(answer.cost is None or answer.cost >= 0 for _, answer in replies)


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("drip", "no answer within 0.5 s"),
        ("endless", "the reply is longer than 8 MiB"),
        ("gzip_bomb", "the reply is longer than 8 MiB"),
        (
            "redirect",
            "the server redirects to another address .HTTP 302., where no question and no image "
            "is sent",
        ),
    ],
)
def test_one_line_however_long_a_reply_goes_on(fault: str, message: str) -> None:
    timeout = 0.5 if fault == "drip" else 30.0
    with OddServer(load_observer(MODEL), faults=Faults(**{fault: 0.999})) as server:
        # Without bounds this would never end.
        with (
            OpenAIObserver(
                MODEL, base_url=server.base_url, timeout=timeout, retries=0
            ) as observer,
            pytest.raises(PsyprobeError, match=message) as caught,
        ):
            observer.answer([IMAGE], "Is there a pattern?")
        assert server.counts == {fault: 1}
    assert len(str(caught.value)) < 400 and "\n" not in str(caught.value)


class Failing:
    """Fails on questions that hold a word."""

    bits, images_at_once, card = 8, None, Card("failing", "answer")

    def delivered(self, image: Any) -> Any:
        return image

    def answer(self, images: Sequence[Any], prompt: str, **_: Any) -> Answer:
        if "bad" in prompt:
            raise RuntimeError
        return Answer("Yes")


def test_a_question_that_fails_alone_is_left_out_and_the_run_goes_on() -> None:
    inquiries = [
        Inquiry(f"{'bad' if i == 3 else 'good'} {i}", (IMAGE,)) for i in range(40)
    ]
    answered = []
    with (
        OddServer(Failing()) as server,
        OpenAIObserver("failing", base_url=server.base_url, retries=2) as observer,
    ):
        with pytest.raises(
            PsyprobeError, match=r"no answer after 3 attempts.* \(1 of 40 questions"
        ):
            for inquiry, _ in observer.answers(inquiries):
                answered.append(inquiry)
        assert server.counts == {"answered": 39}
    assert {id(inquiry) for inquiry in answered} == {
        id(inquiry) for inquiry in inquiries if "bad" not in inquiry.prompt
    }


@pytest.mark.parametrize(
    ("fields", "tokens", "cost"),
    [
        ({"usage": [1, 2]}, (None, None), None),
        ({"usage": "many"}, (None, None), None),
        ({"usage": {"prompt_tokens": "ten", "completion_tokens": 3}}, (None, 3), None),
        (
            {"usage": {"prompt_tokens": 10**400, "completion_tokens": float("nan")}},
            (None, None),
            None,
        ),
        ({"usage": {"prompt_tokens": -1, "cost": -2.5}}, (None, None), None),
        ({"usage": {"prompt_tokens": True, "cost": 10**400}}, (None, None), None),
        ({"model": {"a": 1}, "system_fingerprint": ["b"]}, (None, None), None),
    ],
)
def test_what_comes_beside_an_answer_does_not_undo_it(
    fields: Any, tokens: Any, cost: Any
) -> None:
    body = json.dumps(
        {"choices": [{"message": {"content": "Yes"}, "finish_reason": 7}], **fields}
    ).encode()
    answer = read_completion(body, {})
    assert (
        answer.text,
        answer.finish,
        answer.tokens_in,
        answer.tokens_out,
        answer.cost,
    ) == (
        "Yes",
        "stop",
        *tokens,
        cost,
    )
    assert isinstance(answer.model, str) and isinstance(answer.server, str)


@pytest.mark.parametrize(
    "body",
    [
        b'{"choices": ' + b"[" * 5000 + b"]" * 5000 + b"}",
        b"9" * 5000,
        b'{"usage": {}}',
        b'{"choices": {"0": {}}}',
        b'{"choices": [{"message": {"content": 7}}]}',
        b'{"choices": [{"message": {"content": {}}}]}',
        b'{"choices": [{"message": {"content": [{"text": 7}]}}]}',
        b'{"choices": [{"message": {"content": "Yes"}, "logprobs": {"content": [7]}}]}',
        b'{"error": {"code": -7, "message": ' + b"[" * 300 + b"]" * 300 + b"}}",
        b"\xff\xfe\x00",
    ],
)
def test_what_cannot_be_read_is_a_passing_problem(body: bytes) -> None:
    with pytest.raises(ProblemError) as caught:
        read_completion(body, {"retry-after": "Mon, 99 Jan 99999999 00:00:00 GMT"})
    assert caught.value.passing and len(str(caught.value)) < 400


def test_half_a_character_is_spelt_out() -> None:
    answer = Answer("Yes \ud800 \U0001f600", (("\udfff", -1.0),), model="m\ud800")
    assert (answer.text, answer.first_tokens, answer.model) == (
        "Yes \\ud800 \U0001f600",
        (("\\udfff", -1.0),),
        "m\\ud800",
    )
    assert Answer.from_dict(json.loads(json.dumps(vars(answer)))) == answer


class Timeless(asyncio.SelectorEventLoop):
    """A loop in which nothing takes time but waiting, and waiting is over at once."""

    now = 0.0

    def time(self) -> float:
        return self.now

    def _run_once(self) -> None:
        scheduled: Any = self._scheduled  # type: ignore[attr-defined]
        while scheduled and scheduled[0]._cancelled:
            heapq.heappop(scheduled)._scheduled = False
            self._timer_cancelled_count -= 1
        if scheduled and not self._ready:  # type: ignore[attr-defined]
            self.now = max(self.now, scheduled[0]._when) + 1e-9
        super()._run_once()  # type: ignore[misc]


class Imagined(Sender):
    """Sends to an imagined server, which works on one question after the other, for some time
    each."""

    def imagine(self, faults: Faults, work: float) -> Imagined:
        self.faults, self.draws, self.work, self.free, self.random = (
            faults,
            faults.draws(),
            work,
            0.0,
            random.Random(3),
        )
        self._has_responded = True
        return self

    async def _exchange(
        self, question: Question, dialect: Dialect
    ) -> Answer | ProblemError:
        fault, start = next(self.draws), asyncio.get_running_loop().time()
        if fault == "hang":
            await asyncio.sleep(self.endpoint.timeout)
        if fault == "overload":
            return ProblemError(
                "HTTP 429", passing=True, status=429, wait=self.faults.retry_after
            )
        if fault not in ("error", "hang", "reset"):
            self.free = max(self.free, start) + self.work
            await asyncio.sleep(max(self.free - start, self.random.uniform(0.05, 0.1)))
        return ProblemError(fault, passing=True) if fault else Answer("Yes")


#: A fault, and the pause in s that the server asks for.
Fault = tuple[str, float | None]


class Scripted(Imagined):
    """One with which some questions, by their words, first fail in the ways that are told."""

    script: Mapping[str, list[Fault]]

    async def _exchange(
        self, question: Question, dialect: Dialect
    ) -> Answer | ProblemError:
        if faults := self.script.get(question.inquiry.prompt):
            name, wait = faults.pop(0)
            if name == "hang":
                await asyncio.sleep(self.endpoint.timeout)
            return ProblemError(name, passing=True, wait=wait)
        return await super()._exchange(question, dialect)


def duration(
    load: int,
    faults: Faults,
    count: int = 2000,
    script: dict[str, list[Fault]] | None = None,
) -> float:
    """Seconds that so many questions take, whose words are their numbers."""

    async def everything() -> list[Answer]:
        return await asyncio.gather(
            *(sender._settle(Question(Inquiry(str(i)), [])) for i in range(count))
        )

    sender = Scripted(
        Endpoint("m", "http://127.0.0.1:9/v1", load, None, 300.0, 8, "high", 4096)
    ).imagine(faults, work=0.005)
    sender.script = {} if script is None else script
    loop = Timeless()
    try:
        assert len(loop.run_until_complete(everything())) == count
        return loop.time()
    finally:
        loop.close()
        sender.close()


@pytest.mark.parametrize("load", [32, 256])
def test_faults_cost_at_most_1_6_times_the_time(load: int) -> None:
    random.seed(1)
    fifth = {
        "overload": 0.1,
        "error": 0.05,
        "hang": 0.03,
        "truncated": 0.01,
        "reset": 0.01,
        "retry_after": 0.5,
    }
    without = duration(load, Faults())
    assert duration(load, Faults(**fifth, seed=2)) <= 1.6 * without


def test_one_that_fails_at_once_while_others_are_answered_is_not_taken_for_silence() -> (
    None
):
    random.seed(1)
    # As a run ends: one is answered each 0.2 s, and one fails eight times. With pauses 1.4 times as
    # long each time that takes up to 8.6 s, and with pauses twice as long up to 64 s.
    late: dict[str, list[Fault]] = {
        str(i): [("overload", 0.2 * i)] for i in range(1, 60)
    }
    assert duration(256, Faults(), 60, late | {"0": [("error", None)] * 8}) < 14


def test_what_hangs_as_a_run_ends_waits_no_longer_than_answers_take_by_then() -> None:
    random.seed(1)
    refused: list[Fault] = [("overload", 1.5)]
    # 256 at once wait 1.3 s for each other; those that come again 1.5 s later wait for nobody.
    last: dict[str, list[Fault]] = {str(1999 - i): [*refused] for i in range(6)}
    last["1999"].append(("hang", None))
    assert (
        duration(256, Faults(), script=last)
        <= duration(256, Faults()) + 1.5 * 1.1 + 0.6
    )


# -- refusals, and odd moments of a server that answers
# --------------------------------------------------------------------------------------

FILTER = {"error": {"message": "The prompt was filtered.", "code": "content_filter"}}
#: Responses of a server in an odd moment.
ODD_REPLIES = {
    "a key refused": (401, {}, {}),
    "a model unknown": (404, {}, {}),
    "a question refused": (400, FILTER, {}),
    "an account empty": (429, {"error": {"code": "insufficient_quota"}}, {}),
    "a wait of three years": (429, {}, {"retry-after": "1e8"}),
    "a web page": (200, b"<!doctype html>", {}),
}


def odd_problem(name: str) -> ProblemError:
    status, body, headers = ODD_REPLIES[name]
    if isinstance(body, bytes):
        with pytest.raises(ProblemError) as caught:
            read_completion(body, headers)
        return caught.value
    return problem_of_status(status, body, headers)


class Moody(Imagined):
    """Answers `good` requests, and then has as many odd moments as are told, or a mood for ever.

    Questions whose prompt holds "bad" are always refused.
    """

    good = 0
    odd: Sequence[ProblemError] = ()
    requests = 0

    async def _exchange(
        self, question: Question, dialect: Dialect
    ) -> Answer | ProblemError:
        self.requests += 1
        place = self.requests - self.good - 1
        if 0 <= place < len(self.odd):
            return self.odd[place]
        if "bad" in question.inquiry.prompt:
            return odd_problem("a question refused")
        return await super()._exchange(question, dialect)

    async def models(self) -> list[Any]:
        return []


def moody(good: int, odd: Sequence[ProblemError], load: int = 4) -> Moody:
    sender = Moody(
        Endpoint("m", "http://127.0.0.1:9/v1", load, None, 300.0, 8, "high", 4096)
    ).imagine(Faults(), work=0.005)
    sender.good = good
    sender.odd = odd
    return sender


def outcomes(
    sender: Sender, prompts: Sequence[str]
) -> tuple[list[Answer | BaseException], float]:
    """Return the outcome of each question, and the simulated seconds that all take."""

    async def everything() -> list[Answer | BaseException]:
        return await asyncio.gather(
            *(
                sender._settle(Question(Inquiry(prompt, (IMAGE,)), [b'"url"']))
                for prompt in prompts
            ),
            return_exceptions=True,
        )

    loop = Timeless()
    try:
        return loop.run_until_complete(everything()), loop.time()
    finally:
        loop.close()
        sender.close()


@pytest.mark.parametrize("name", ODD_REPLIES)
@pytest.mark.parametrize("moments", [1, 4])
def test_an_odd_moment_after_good_answers_passes(name: str, moments: int) -> None:
    sender = moody(128, [odd_problem(name)] * moments)
    answers, seconds = outcomes(sender, [str(i) for i in range(200)])
    assert [
        answer.text if isinstance(answer, Answer) else answer for answer in answers
    ] == ["Yes"] * 200
    assert seconds < 120


@pytest.mark.parametrize("name", ODD_REPLIES)
def test_what_a_server_says_before_any_answer_ends_it_at_once(name: str) -> None:
    sender = moody(0, [odd_problem(name)] * 1000)
    errors, seconds = outcomes(sender, ["one"])
    assert isinstance(errors[0], PsyprobeError) and "openai:m: " in str(errors[0])
    # A refused question is told from a server that refuses all by another question.
    assert sender.requests <= 2 and seconds == 0


@pytest.mark.parametrize("name", ODD_REPLIES)
def test_a_mood_that_stays_ends_it_within_minutes(name: str) -> None:
    sender = moody(8, [odd_problem(name)] * 10000)
    results, seconds = outcomes(sender, [str(i) for i in range(40)])
    answers = [outcome for outcome in results if isinstance(outcome, Answer)]
    assert [answer.text for answer in answers] == ["Yes"] * 8
    assert all(isinstance(outcome, Answer | PsyprobeError) for outcome in results)
    assert seconds < 600


@pytest.mark.parametrize(
    "prompts",
    [
        ["bad 0", "1", "2"],
        ["0", "1", "bad 2"],
        ["bad alone"],
        [*map(str, range(20)), *(f"bad {i}" for i in range(80)), "last"],
    ],
)
def test_a_refusal_of_a_question_is_its_answer(prompts: list[str]) -> None:
    answers, _ = outcomes(moody(0, ()), prompts)
    for prompt, answer in zip(prompts, answers, strict=True):
        assert isinstance(answer, Answer)
        assert (answer.text, answer.finish, answer.refusal) == (
            ("", "refused", "HTTP 400: The prompt was filtered")
            if "bad" in prompt
            else ("Yes", "stop", "")
        )


def test_no_server_that_refuses_all_turns_questions_into_refusals() -> None:
    sender = moody(20, [odd_problem("a question refused")] * 10000, load=8)
    results, _ = outcomes(sender, [str(i) for i in range(60)])
    assert sum(isinstance(outcome, PsyprobeError) for outcome in results) == 40
