"""Serve any observer that answers over HTTP on loopback, in OpenAI's chat-completions protocol.

The truth about the observer is known, and so is every fault of the server, which can go wrong on
purpose: the network path of a measurement can be tested as it will run.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import hmac
import json
import math
import random
import socket
import struct
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Literal

import numpy as np
from pydantic import BaseModel, Field, ValidationError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from psyprobe._typing import FloatArray
from psyprobe.errors import InputError
from psyprobe.files.images import decode_image
from psyprobe.files.json_types import JsonObject
from psyprobe.files.loopback import LocalServer
from psyprobe.observers.chat.protocol import Answer, AnswerObserver, Decoding

#: Seconds, or the least and the most of them.
Latency = float | tuple[float, float]
#: What becomes of a request for log-probabilities.
Logprobs = Literal["given", "refused", "absent"]
#: Decoded images that are cached: 25 prompts share one.
_REMEMBERED = 16


@dataclass(frozen=True)
class Faults:
    """The shares of requests that fail, by the way in which they do.

    Parameters
    ----------
    overload : float
        Refused with HTTP 429 and Retry-After.
    error : float
        Refused with HTTP 500.
    hang : float
        Never answered; the connection stays open.
    truncated : float
        Answered with HTTP 200 and JSON that breaks off.
    reset : float
        The connection is reset without an answer.
    retry_after : float
        Seconds in Retry-After.
    seed : int
        Seed of the order of faults.

    Examples
    --------
    >>> Faults(overload=0.7, error=0.3)
    Traceback (most recent call last):
    psyprobe.errors.InputError: faults add up to 1, which leaves no answer; their sum must
    stay below 1
    """

    overload: float = 0.0
    error: float = 0.0
    hang: float = 0.0
    truncated: float = 0.0
    reset: float = 0.0
    retry_after: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        for kind, share in self.shares.items():
            if not 0 <= share < 1:
                raise InputError(
                    f"the share of {kind} faults is {share}; give 0 to below 1"
                )
        total = sum(self.shares.values())
        if total >= 1:
            raise InputError(
                f"faults add up to {total:g}, which leaves no answer; their sum must stay below 1"
            )
        if not (math.isfinite(self.retry_after) and self.retry_after >= 0):
            raise InputError(f"retry_after is {self.retry_after} s; give seconds >= 0")

    @property
    def shares(self) -> dict[str, float]:
        """The share of each kind of fault, in the order in which they are drawn."""
        return {
            name: share
            for name, share in vars(self).items()
            if name not in ("retry_after", "seed")
        }

    @classmethod
    def parse(cls, items: Sequence[str]) -> Faults:
        """Parse shares of faults from NAME=VALUE texts.

        Raises
        ------
        InputError
            A text has another form.

        Examples
        --------
        >>> Faults.parse(["overload=0.1", "retry-after=0.5"]).retry_after
        0.5
        """
        names = [fault.name for fault in fields(cls)]
        values: dict[str, float] = {}
        for item in items:
            name, _, number = item.partition("=")
            key = name.replace("-", "_")
            try:
                values[key] = int(number) if key == "seed" else float(number)
            except ValueError:
                key = ""
            if key not in names:
                raise InputError(
                    f"the fault {item!r} is not NAME=NUMBER with one of {', '.join(names)}"
                )
        return cls(**values)  # type: ignore[arg-type]

    def draws(self) -> Iterator[str]:
        """Draw the kind of fault of each request, without end; "" for none."""
        source = random.Random(self.seed)
        shares = self.shares
        weights = [*shares.values(), 1 - sum(shares.values())]
        while True:
            yield source.choices((*shares, ""), weights)[0]


class RefusalError(HTTPException):  # type: ignore[misc]
    """A request that the server refuses, with an HTTP status and an error of OpenAI's form."""

    def __init__(
        self,
        message: str,
        param: str | None = None,
        code: str | None = None,
        status: int = 400,
        *,
        outcome: str = "refused",
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(status, message, headers)
        #: Name under which it is counted.
        self.outcome = outcome
        kind = "invalid_request_error" if status < 500 else "server_error"
        self.error = {"message": message, "type": kind, "param": param, "code": code}


class _Url(BaseModel):
    url: str


class _Part(BaseModel):
    type: Literal["text", "image_url"]
    text: str = ""
    image_url: _Url | None = None


class _Message(BaseModel):
    role: Literal["system", "developer", "user", "assistant"]
    content: str | list[_Part]


class ChatRequest(BaseModel):
    """The body of a request, as far as it is simulated."""

    model: str
    messages: list[_Message] = Field(min_length=1)
    temperature: float | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    logprobs: bool | None = None
    top_logprobs: int = Field(0, ge=0, le=20)
    seed: int | None = None
    n: Literal[1, None] = None
    stream: Literal[False, None] = None

    @property
    def limit(self) -> int | None:
        """The largest number of tokens in the answer; None without a bound."""
        return self.max_completion_tokens or self.max_tokens

    @property
    def decoding(self) -> Decoding:
        """The decoding settings that the request asks for."""
        return Decoding(
            temperature=1.0 if self.temperature is None else self.temperature,
            max_tokens=256 if self.limit is None else self.limit,
            logprobs=bool(self.logprobs),
            seed=self.seed,
        )

    def text(self, *roles: str) -> str:
        """Join the text of the messages of some roles, but for examples."""
        return "\n".join(part.text for part in self._parts(roles) if not part.image_url)

    @property
    def urls(self) -> list[str]:
        """The addresses of the question's images, in order."""
        return [part.image_url.url for part in self._parts(("user",)) if part.image_url]

    def _parts(self, roles: Sequence[str]) -> Iterator[_Part]:
        """Iterate over the texts and images of messages in given roles, but for examples."""
        is_answer = [message.role == "assistant" for message in self.messages]
        for position, message in enumerate(self.messages):
            # A question with its answer is an example, and no part of the question.
            is_example = message.role == "user" and any(is_answer[position:])
            if message.role in roles and not is_example:
                content = message.content
                if isinstance(content, str):
                    content = [_Part(type="text", text=content)]
                yield from content


class SimulatedServer(LocalServer):
    """A server on loopback, in a thread, that answers chat completions while it is entered.

    Parameters
    ----------
    observer : AnswerObserver
        The observer that answers, under its own name; it is asked one question at a time.
    port : int
        The port; 0 for any that is free.
    faults : Faults
        Shares of requests that fail.
    latency : float or (float, float)
        Seconds that an answer takes at least, or a range from which it is drawn.
    logprobs : {"given", "refused", "absent"}
        Whether log-probabilities are given, refused with HTTP 400, or silently left out.
    key : str, optional
        Requests without it are refused with HTTP 401.

    Raises
    ------
    InputError
        A value is out of range.
    PsyprobeError
        The port cannot be used.

    Attributes
    ----------
    base_url : str
        The server's address: ``http://127.0.0.1:PORT/v1``.
    model : str
        The name under which the observer answers.
    counts : Counter
        Counts of requests: "answered", "listed", "refused", "unauthorised", and the kinds of
        faults.
    asked : Counter
        How often each question was answered, by the digest of its body.

    Examples
    --------
    >>> from psyprobe.observers import load_observer
    >>> with SimulatedServer(load_observer("simulated:watson-malo")) as server:
    ...     print(server.base_url)
    http://127.0.0.1:.../v1
    """

    def __init__(
        self,
        observer: AnswerObserver,
        port: int = 0,
        *,
        faults: Faults = Faults(),
        latency: Latency = 0.0,
        logprobs: Logprobs = "given",
        key: str | None = None,
    ) -> None:
        low, high = latency if isinstance(latency, tuple) else (latency, latency)
        if not 0 <= low <= high < math.inf:
            raise InputError(
                f"latency is {latency} s; give seconds >= 0, or a pair (least, most) of them"
            )
        app = Starlette(
            routes=[
                Route("/v1/models", self._list_models),
                Route("/v1/chat/completions", self._complete, methods=["POST"]),
            ],
            exception_handlers={HTTPException: self._refuse},
        )
        super().__init__(
            app,
            port,
            log_level="critical",
            timeout_keep_alive=3600,
            timeout_graceful_shutdown=0,
        )
        self.model = observer.card.name
        self.base_url = f"{self.origin}/v1"
        self.counts: Counter[str] = Counter()
        self.asked: Counter[str] = Counter()
        self._observer = observer
        self._logprobs = logprobs
        self._key = key
        self._faults = faults
        self._latency = (low, high)
        self._draws = faults.draws()
        self._random = random.Random(faults.seed + 1)
        self._image = lru_cache(_REMEMBERED)(_decode)
        # All answers come from one thread.
        self._worker = ThreadPoolExecutor(1, "simulated-observer")

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        self._worker.shutdown()

    async def _list_models(self, request: Request) -> Response:
        """Answer a request for the list of models."""
        self._check_key(request)
        self.counts["listed"] += 1
        model = {
            "id": self.model,
            "object": "model",
            "root": self._observer.card.digest[:12],
        }
        return JSONResponse({"object": "list", "data": [model]})

    async def _complete(self, request: Request) -> ASGIApp:
        """Answer a chat request, or fail as the drawn fault says, and count it."""
        self._check_key(request)
        body = await request.body()
        fault = next(self._draws)
        response = await self.respond(request, body, fault)
        self.counts[fault or "answered"] += 1
        return response

    async def _refuse(self, _: Request, refusal: HTTPException) -> Response:
        """Turn a refusal into the JSON error of the protocol, and count it."""
        self.counts[getattr(refusal, "outcome", "refused")] += 1
        error = getattr(refusal, "error", {"message": refusal.detail})
        return JSONResponse({"error": error}, refusal.status_code, refusal.headers)

    def _check_key(self, request: Request) -> None:
        """Refuse a request without the right API key."""
        authorization = request.headers.get("authorization", "").encode()
        if self._key is not None and not hmac.compare_digest(
            authorization, f"Bearer {self._key}".encode()
        ):
            raise RefusalError(
                "Incorrect API key provided.",
                code="invalid_api_key",
                status=401,
                outcome="unauthorised",
            )

    async def respond(self, request: Request, body: bytes, fault: str) -> ASGIApp:
        """Respond to a request's body after the simulated latency, with a fault if one is due."""
        if fault == "overload":
            raise RefusalError(
                "Rate limit reached; try again later.",
                code="rate_limit_exceeded",
                status=429,
                outcome=fault,
                headers={"Retry-After": f"{self._faults.retry_after:g}"},
            )
        if fault == "reset":
            self._reset(request)
        if fault in ("hang", "reset"):
            return _leave
        loop = asyncio.get_running_loop()
        start = loop.time()
        if fault != "error":
            reply = await loop.run_in_executor(self._worker, self._answer, body)
        seconds = start + self._random.uniform(*self._latency) - loop.time()
        await asyncio.sleep(max(0.0, seconds))
        if fault == "error":
            message = "The server had an error while processing your request."
            raise RefusalError(message, status=500, outcome=fault)
        text = json.dumps(reply)
        if fault == "truncated":
            text = text[: len(text) // 2]
        return Response(text, media_type="application/json")

    def _reset(self, request: Request) -> None:
        """Break the connection of a request off."""
        # ASGI knows no connections; uvicorn does. Lingering for 0 s makes closing a reset.
        linger = struct.pack("ii", 1, 0)
        for connection in list(self._server.server_state.connections):
            if connection.client == tuple(request.client or ()):
                client = connection.transport.get_extra_info("socket")
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                connection.transport.abort()

    def _answer(self, body: bytes) -> JsonObject:
        """Ask the simulated observer the question in a request's body."""
        try:
            request = ChatRequest.model_validate_json(body)
        except ValidationError as error:
            problem = error.errors()[-1]
            place = ".".join(map(str, problem["loc"]))
            raise RefusalError(f"{place}: {problem['msg']}", place) from None
        self.check(request)
        images = tuple(map(self._image, request.urls))
        try:
            answer = self._observer.answer(
                images,
                request.text("user"),
                system=request.text("system", "developer"),
                decoding=request.decoding,
            )
        except InputError as error:
            raise RefusalError(str(error), "messages") from None
        digest = hashlib.sha256(body).hexdigest()
        self.asked[digest] += 1
        return self.complete(answer, digest, request)

    def check(self, request: ChatRequest) -> None:
        """Refuse a request that the simulated server does not take."""
        if request.model != self.model:
            message = f"The model `{request.model}` does not exist."
            raise RefusalError(message, "model", "model_not_found", 404)
        if request.logprobs and self._logprobs == "refused":
            message = "'logprobs' is not supported with this model."
            raise RefusalError(message, "logprobs", "unsupported_parameter")

    def complete(self, answer: Answer, digest: str, request: ChatRequest) -> JsonObject:
        """Build the chat completion of an answer."""
        logprobs = None
        if request.logprobs and answer.first_tokens and self._logprobs == "given":
            listed = [
                {"token": text, "logprob": logprob, "bytes": list(text.encode())}
                for text, logprob in answer.first_tokens
            ]
            token = listed[0] | {"top_logprobs": listed[: request.top_logprobs]}
            logprobs = {"content": [token], "refusal": None}
        choice = {
            "index": 0,
            "message": {"role": "assistant", "content": answer.text},
            "finish_reason": answer.finish,
            "logprobs": logprobs,
        }
        tokens_in = answer.tokens_in or 0
        tokens_out = answer.tokens_out or 0
        return {
            "id": f"chatcmpl-{digest[:24]}",
            "object": "chat.completion",
            "created": 0,
            "model": self.model,
            "system_fingerprint": answer.server,
            "choices": [choice],
            "usage": {
                "prompt_tokens": tokens_in,
                "completion_tokens": tokens_out,
                "total_tokens": tokens_in + tokens_out,
            },
        }


async def _leave(scope: Scope, receive: Receive, send: Send) -> None:
    """Send nothing until the client gives up."""
    while (await receive())["type"] != "http.disconnect":
        pass


def _decode(url: str) -> FloatArray:
    """Decode the image in a data URL to drive values, 0 to 1."""
    head, _, data = url.partition(",")
    if not (head.startswith("data:image/") and head.endswith(";base64")):
        message = "image_url must be a data URL in base64; nothing is fetched here."
        raise RefusalError(message, "messages")
    try:
        codes = decode_image(base64.b64decode(data, validate=True), "the image")
    except (binascii.Error, InputError) as error:
        raise RefusalError(f"the image cannot be read: {error}", "messages") from None
    return codes.astype(np.float32) / np.float32(255)
