"""A simulated server that refuses, thinks, and sends what no server should, for tests of its client."""

from __future__ import annotations

import asyncio
import gzip
import json
import math
import random
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import ASGIApp

import psyprobe.observers.simulated.serving as serving
from psyprobe.files.json_types import JsonObject
from psyprobe.observers.chat.protocol import Answer, AnswerObserver
from psyprobe.observers.simulated.serving import ChatRequest, RefusalError

#: Bodies without end: a chunk that is sent again and again, and how often a second.
_CHUNKS = {"endless": (b" " * 2**16, math.inf), "drip": (b" ", 20.0)}
#: JSON that few parsers can read.
_DEEP_JSON = b'{"choices": ' + b"[" * 5000 + b"]" * 5000 + b"}"
_ODD_USAGE: tuple[Any, ...] = (
    [1, 2],
    "many",
    {"prompt_tokens": "ten", "completion_tokens": 1e400},
    {"prompt_tokens": math.nan},
    {"prompt_tokens": 10**400, "completion_tokens": -1},
    {"prompt_tokens": 1, "cost": -2.5},
    {"cost": "free"},
)
_ELSEWHERE = "/v1/elsewhere"
#: Response of a content filter, in Azure's words.
FILTERED = (
    "The response was filtered due to the prompt triggering Azure OpenAI's content management "
    "policy. Please modify your prompt and retry."
)
#: The text of all thinking, and its tokens.
_THOUGHT = "The image is grey. Is there a pattern? No. Wait, let me look again."
_THOUGHT_TOKENS = 40


@dataclass(frozen=True)
class Faults(serving.Faults):
    """Faults of a hostile server besides.

    Parameters
    ----------
    redirect : float
        HTTP 302 to another address; a client that goes there is counted as "followed".
    endless, drip : float
        A body without end: as fast as it is read, or 20 bytes a second.
    gzip_bomb : float
        A body of 64 KB that unpacks to 64 MB.
    wrong_model : float
        An answer that names another model.
    odd_usage : float
        An answer whose usage is a list, text, NaN, huge or negative, in turn.
    deep_json : float
        JSON that is 5,000 brackets deep.
    surrogate : float
        An answer that ends in half a character, a lone surrogate.
    """

    redirect: float = 0.0
    endless: float = 0.0
    drip: float = 0.0
    gzip_bomb: float = 0.0
    wrong_model: float = 0.0
    odd_usage: float = 0.0
    deep_json: float = 0.0
    surrogate: float = 0.0


@dataclass(frozen=True)
class Behaviour:
    """The lasting differences of a server from the ideal one.

    Parameters
    ----------
    logprobs, key
        As in `SimulatedServer`.
    seed : {"accepted", "refused"}
        Whether requests with a seed are refused.
    temperature : {"any", "one"}
        Whether requests with another temperature than 1 are refused.
    system : {"accepted", "refused"}
        Whether requests with system text are refused.
    filtered : float
        Share of questions, always the same, that a content filter refuses; it minds no "Answer
        with yes.".
    least_tokens, most_tokens : int, optional
        Bounds on the tokens of an answer; requests beyond them are refused.
    thinking : {"none", "tags", "untagged", "apart"}
        Whether it thinks before it answers, and sends that in tags within its reply or apart from
        it; its tokens count. Untagged: the tag that opens it is missing.
    """

    logprobs: serving.Logprobs = "given"
    seed: str = "accepted"
    temperature: str = "any"
    system: str = "accepted"
    filtered: float = 0.0
    least_tokens: int | None = None
    most_tokens: int | None = None
    thinking: str = "none"
    key: str | None = field(default=None, repr=False)


class OddServer(serving.SimulatedServer):
    """A simulated server with a behaviour and hostile faults."""

    def __init__(
        self,
        observer: AnswerObserver,
        *,
        behaviour: Behaviour = Behaviour(),
        **fields: Any,
    ) -> None:
        super().__init__(
            observer, logprobs=behaviour.logprobs, key=behaviour.key, **fields
        )
        self._behaviour = behaviour

    async def respond(self, request: Request, body: bytes, fault: str) -> ASGIApp:
        if fault in _CHUNKS:
            return StreamingResponse(
                _pour(*_CHUNKS[fault]), media_type="application/json"
            )
        response = await super().respond(request, body, fault)
        if fault not in vars(Faults()) or fault in vars(serving.Faults()):
            return response
        assert isinstance(response, Response)
        reply = json.loads(response.body)
        status, headers = 200, {}
        if fault == "odd_usage":
            reply["usage"] = _ODD_USAGE[self.counts[fault] % len(_ODD_USAGE)]
        elif fault == "wrong_model":
            reply["model"] = "another-model"
        elif fault == "surrogate":
            reply["choices"][0]["message"]["content"] += "\ud800"
        text = json.dumps(reply).encode()
        if fault == "redirect":
            status, headers = (
                302,
                {"Location": f"http://localhost:{self.port}{_ELSEWHERE}"},
            )
        elif fault == "deep_json":
            text = _DEEP_JSON
        elif fault == "gzip_bomb":
            text, headers = _gzip_bomb(), {"Content-Encoding": "gzip"}
        return Response(text, status, headers, "application/json")

    async def _refuse(self, request: Request, refusal: Any) -> Response:
        self.counts["followed"] += request.url.path == _ELSEWHERE
        return await super()._refuse(request, refusal)

    def check(self, request: ChatRequest) -> None:
        super().check(request)
        behaviour = self._behaviour
        if request.seed is not None and behaviour.seed == "refused":
            message = "'seed' is not supported with this model."
            raise RefusalError(message, "seed", "unsupported_parameter")
        if behaviour.temperature == "one" and request.temperature not in (None, 1):
            message = (
                "'temperature' does not support this value with this model. Only the "
                "default (1) is supported."
            )
            raise RefusalError(message, "temperature", "unsupported_value")
        if behaviour.system == "refused" and request.text("system"):
            message = "messages[0].role does not support 'system' with this model."
            raise RefusalError(message, "messages[0].role")
        content = json.dumps([message.model_dump() for message in request.messages])
        is_control = "Answer with yes." in content
        if not is_control and random.Random(content).random() < behaviour.filtered:
            raise RefusalError(FILTERED, "prompt", "content_filter", outcome="filtered")
        limit = request.limit
        if limit is None:
            return
        if behaviour.least_tokens is not None and limit < behaviour.least_tokens:
            message = (
                "Invalid 'max_tokens': integer below minimum value. Expected a value >= "
                f"{behaviour.least_tokens}, but got {limit}."
            )
            raise RefusalError(message, "max_tokens", "integer_below_min_value")
        if behaviour.most_tokens is not None and limit > behaviour.most_tokens:
            message = (
                f"max_tokens is too large: {limit}. This model supports at most "
                f"{behaviour.most_tokens} completion tokens."
            )
            raise RefusalError(message, "max_tokens", "invalid_value")

    def complete(self, answer: Answer, digest: str, request: ChatRequest) -> JsonObject:
        """Put thinking before an answer, in place of which it comes where there are too few tokens."""
        form = self._behaviour.thinking
        if form == "none":
            return super().complete(answer, digest, request)
        limit = request.limit
        count = _THOUGHT_TOKENS if limit is None else min(limit, _THOUGHT_TOKENS)
        is_cut = count < _THOUGHT_TOKENS or limit == _THOUGHT_TOKENS
        thought = _THOUGHT[: len(_THOUGHT) * count // _THOUGHT_TOKENS]
        text = "" if is_cut else answer.text
        if form == "tags":
            text = f"<think>\n{thought}" + ("" if is_cut else f"\n</think>\n\n{text}")
        if form == "untagged":
            text = thought + ("" if is_cut else f"\n</think>\n\n{text}")
        first_token = "The" if form == "untagged" else "<think>"
        thoughtful = replace(
            answer,
            text=text,
            first_tokens=((first_token, -0.01),),
            finish="length" if is_cut else answer.finish,
            tokens_out=count if is_cut else count + (answer.tokens_out or 0),
        )
        reply = super().complete(thoughtful, digest, request)
        if form == "apart":
            reply["choices"][0]["message"]["reasoning_content"] = thought
            reply["usage"]["completion_tokens_details"] = {"reasoning_tokens": count}
        return reply


async def _pour(chunk: bytes, rate: float) -> AsyncIterator[bytes]:
    while True:
        yield chunk
        await asyncio.sleep(1 / rate)


@lru_cache
def _gzip_bomb() -> bytes:
    return gzip.compress(bytes(2**26))
