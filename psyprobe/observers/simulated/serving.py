"""Serve any observer that answers over HTTP on loopback, in OpenAI's chat-completions protocol.

The truth about the observer is known, and so is every fault of the server, which can go wrong on
purpose: the network path of a measurement can be tested as it will run.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import contextlib
import gzip
import hashlib
import hmac
import importlib.util
import json
import math
import random
import socket
import struct
import threading
from bisect import bisect
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from itertools import accumulate
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from psyprobe._json import JsonMapping, JsonObject
from psyprobe._typing import FloatArray
from psyprobe.errors import InputError, PsyprobeError
from psyprobe.files.images import decode_image
from psyprobe.observers.chat.protocol import Answer, AnswerObserver, Decoding

#: Seconds, or the least and the most of them.
Latency = float | tuple[float, float]
#: Faults that happen instead of an answer or spoil it, in the order in which they are drawn.
KINDS = (
    "overload",
    "error",
    "hang",
    "truncated",
    "reset",
    "redirect",
    "endless",
    "drip",
    "gzip_bomb",
    "wrong_model",
    "odd_usage",
    "deep_json",
    "surrogate",
)
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
#: Decoded images that are cached: 25 prompts share one.
_REMEMBERED = 16
_MOST_LISTED = 20
_LARGEST_BODY = 64 * 2**20
_HOST = "127.0.0.1"
_ELSEWHERE = "/v1/elsewhere"


Logprobs = Literal["given", "refused", "absent"]
Acceptance = Literal["accepted", "refused"]
Temperature = Literal["any", "one"]
Thinking = Literal["none", "tags", "apart"]
#: Values that fields of `Behaviour` may have.
_CHOICES = {
    "logprobs": get_args(Logprobs),
    "seed": get_args(Acceptance),
    "temperature": get_args(Temperature),
    "system": get_args(Acceptance),
    "thinking": get_args(Thinking),
}
#: The text of all thinking, and its tokens.
_THOUGHT = "The image is grey. Is there a pattern? No. Wait, let me look again."
_THOUGHT_TOKENS = 40


@dataclass(frozen=True)
class Behaviour:
    """The lasting differences of a server from the ideal one.

    Parameters
    ----------
    logprobs : {"given", "refused", "absent"}
        Whether log-probabilities are given, refused with HTTP 400, or silently left out.
    seed : {"accepted", "refused"}
        Whether requests with a seed are refused.
    temperature : {"any", "one"}
        Whether requests with another temperature than 1 are refused.
    system : {"accepted", "refused"}
        Whether requests with system text are refused.
    least_tokens, most_tokens : int, optional
        Bounds on the tokens of an answer; requests beyond them are refused.
    thinking : {"none", "tags", "apart"}
        Whether it thinks before it answers, and sends that in tags within its reply or apart from
        it; its tokens count.
    images_at_once : int, optional
        The most images of a request; by default the most that the observer takes.
    key : str, optional
        Requests without it are refused with HTTP 401.
    """

    logprobs: Logprobs = "given"
    seed: Acceptance = "accepted"
    temperature: Temperature = "any"
    system: Acceptance = "accepted"
    least_tokens: int | None = None
    most_tokens: int | None = None
    thinking: Thinking = "none"
    images_at_once: int | None = None
    key: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        for name, choices in _CHOICES.items():
            if (value := getattr(self, name)) not in choices:
                options = ", ".join(map(repr, choices[:-1]))
                raise InputError(
                    f"{name} is {value!r}; give {options} or {choices[-1]!r}"
                )


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
    redirect: float = 0.0
    endless: float = 0.0
    drip: float = 0.0
    gzip_bomb: float = 0.0
    wrong_model: float = 0.0
    odd_usage: float = 0.0
    deep_json: float = 0.0
    surrogate: float = 0.0
    retry_after: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        for kind, share in zip(KINDS, self.shares, strict=True):
            if not 0 <= share < 1:
                raise InputError(
                    f"the share of {kind} faults is {share}; give 0 to below 1"
                )
        total = sum(self.shares)
        if total >= 1:
            raise InputError(
                f"faults add up to {total:g}, which leaves no answer; their sum must stay below 1"
            )
        if not (math.isfinite(self.retry_after) and self.retry_after >= 0):
            raise InputError(f"retry_after is {self.retry_after} s; give seconds >= 0")

    @property
    def shares(self) -> tuple[float, ...]:
        """Shares in the order of `KINDS`."""
        return tuple(getattr(self, kind) for kind in KINDS)

    @classmethod
    def parse(cls, items: list[str]) -> Faults:
        """Read faults from texts NAME=VALUE, with - for _ in names.

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
        """Draw the kind of fault of each request, without end; empty for none."""
        source = random.Random(self.seed)
        edges = list(accumulate(self.shares))
        while True:
            yield (*KINDS, "")[bisect(edges, source.random())]


class RefusalError(PsyprobeError):
    """A request that the server refuses, with an HTTP status and a body of OpenAI's form."""

    def __init__(
        self,
        message: str,
        param: str | None = None,
        code: str | None = None,
        status: int = 400,
    ) -> None:
        super().__init__(message)
        self.status = status
        kind = "invalid_request_error" if status < 500 else "server_error"
        error = {"message": message, "type": kind, "param": param, "code": code}
        self.body = {"error": error}


class SimulatedServer:
    """A server on loopback, in a thread, that answers chat completions; `serve` makes one.

    Attributes
    ----------
    base_url : str
        The server's address: ``http://127.0.0.1:PORT/v1``.
    model : str
        The name under which the observer answers.
    counts : Counter
        Counts of requests: "answered", "listed", "refused", "unauthorised", "followed", and the
        kinds of faults.
    asked : Counter
        How often each question was answered, by the digest of its body.
    """

    def __init__(
        self,
        observer: AnswerObserver,
        port: int,
        faults: Faults,
        latency: Latency,
        behaviour: Behaviour,
    ) -> None:
        low, high = latency if isinstance(latency, tuple) else (latency, latency)
        if not 0 <= low <= high < float("inf"):
            raise InputError(
                f"latency is {latency} s; give seconds >= 0, or a pair (least, most) of them"
            )
        if not 0 <= port <= 65535:
            raise InputError(
                f"port is {port}; give a whole number from 0 (any that is free) to 65535"
            )
        import uvicorn

        self.model = observer.card.name
        self.counts: Counter[str] = Counter()
        self.asked: Counter[str] = Counter()
        self._observer = observer
        self._behaviour = behaviour
        self._faults = faults
        self._latency = (low, high)
        self._draws = faults.draws()
        self._random = random.Random(faults.seed + 1)
        self._image = lru_cache(_REMEMBERED)(_decode)
        # All answers come from one thread.
        self._worker = ThreadPoolExecutor(1, "simulated-observer")
        try:
            listener = socket.create_server((_HOST, port))
        except OSError as error:
            raise PsyprobeError(
                f"cannot listen on {_HOST}:{port}: {error.strerror or error}; give another port"
            ) from None
        # Without this, head and body of a reply wait 40 ms for each other: asyncio does not see
        # that this socket is TCP.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.port = int(listener.getsockname()[1])
        self.base_url = f"http://{_HOST}:{self.port}/v1"
        config = uvicorn.Config(
            self._serve,
            interface="asgi3",
            headers=[("Server", "psyprobe")],
            log_config=None,
            log_level="critical",
            lifespan="off",
            server_header=False,
            timeout_keep_alive=3600,
            timeout_graceful_shutdown=0,
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(
            target=self._server.run, args=([listener],), name="simulated", daemon=True
        )
        self._thread.start()

    def __repr__(self) -> str:
        return f"SimulatedServer({self.model!r}, {self.base_url!r})"

    def close(self) -> None:
        """Stop answering, and close what is open."""
        self._server.should_exit = True
        self._thread.join()
        self._worker.shutdown()

    async def _serve(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one request, as an ASGI application."""
        from starlette.requests import ClientDisconnect, Request
        from starlette.responses import Response

        request = Request(scope, receive)
        headers: dict[str, str] = {}
        fault = ""
        try:
            self._check_key(request)
            target = f"{request.method} {request.url.path}"
            if target == "POST /v1/chat/completions":
                body = await _read_body(request)
                fault = next(self._draws)
                if fault in ("hang", "reset", *_CHUNKS):
                    self.counts[fault] += 1
                    fail = self._pour if fault in _CHUNKS else self._leave
                    return await fail(fault, request, send)
                reply = _spoil(
                    await self._complete(fault, body), fault, self.counts["odd_usage"]
                )
                self.counts[fault or "answered"] += 1
            elif target == "GET /v1/models":
                model = {
                    "id": self.model,
                    "object": "model",
                    "created": 0,
                    "owned_by": "psyprobe",
                }
                model["root"] = self._observer.card.digest[:12]
                reply = {"object": "list", "data": [model]}
                self.counts["listed"] += 1
            else:
                if request.url.path == _ELSEWHERE:
                    self.counts["followed"] += 1
                raise RefusalError(f"There is nothing at {target}.", status=404)
            status = 302 if fault == "redirect" else 200
        except RefusalError as refusal:
            self.counts[
                "unauthorised" if refusal.status == 401 else fault or "refused"
            ] += 1
            status = refusal.status
            reply = refusal.body
            if status == 429:
                headers["Retry-After"] = f"{self._faults.retry_after:g}"
            if status == 413:
                headers["Connection"] = "close"
        except ClientDisconnect:
            return
        text = json.dumps(reply).encode()
        if fault == "truncated":
            text = text[: len(text) // 2]
        elif fault == "redirect":
            headers["Location"] = f"http://localhost:{self.port}{_ELSEWHERE}"
        elif fault == "deep_json":
            text = _DEEP_JSON
        elif fault == "gzip_bomb":
            text = _gzip_bomb()
            headers["Content-Encoding"] = "gzip"
        await Response(text, status, headers, "application/json")(scope, receive, send)

    def _check_key(self, request: Any) -> None:
        key = self._behaviour.key
        authorization = request.headers.get("authorization", "").encode()
        if key is not None and not hmac.compare_digest(
            authorization, f"Bearer {key}".encode()
        ):
            raise RefusalError(
                "Incorrect API key provided.", code="invalid_api_key", status=401
            )

    async def _pour(self, fault: str, request: Any, send: Any) -> None:
        """Send a body without end, until the client gives up."""
        chunk, rate = _CHUNKS[fault]
        headers = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        disconnection = asyncio.ensure_future(request.receive())
        while not disconnection.done():
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
            await asyncio.wait({disconnection}, timeout=1 / rate)

    async def _leave(self, fault: str, request: Any, _: Any) -> None:
        """Send nothing: wait until the client gives up, or reset its connection."""
        if fault == "reset":
            # ASGI knows no connections; uvicorn does. Lingering for 0 s makes closing a reset.
            linger = struct.pack("ii", 1, 0)
            for connection in list(self._server.server_state.connections):
                if connection.client == tuple(request.client):
                    client = connection.transport.get_extra_info("socket")
                    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                    connection.transport.abort()
        while (await request.receive())["type"] != "http.disconnect":
            pass

    async def _complete(self, fault: str, body: bytes) -> JsonObject:
        """Answer the body of a request as a completion, after the latency."""
        if fault == "overload":
            message = "Rate limit reached; try again later."
            raise RefusalError(message, code="rate_limit_exceeded", status=429)
        loop = asyncio.get_running_loop()
        start = loop.time()
        if fault != "error":
            reply = await loop.run_in_executor(self._worker, self._answered, body)
        await asyncio.sleep(
            max(0.0, start + self._random.uniform(*self._latency) - loop.time())
        )
        if fault == "error":
            message = "The server had an error while processing your request."
            raise RefusalError(message, status=500)
        return reply

    def _answered(self, body: bytes) -> JsonObject:
        """Put the question in the body of a request to the observer.

        Raises
        ------
        RefusalError
            The request is refused.
        """
        try:
            request = json.loads(body)
        except ValueError as error:
            raise RefusalError(f"the body is not JSON: {error}") from None
        if not isinstance(request, dict):
            raise RefusalError("the body is not a JSON object")
        self._check(request)
        conversation = _read_messages(request.get("messages"))
        system = conversation.system
        if system and self._behaviour.system == "refused":
            message = "messages[0].role does not support 'system' with this model."
            raise RefusalError(message, "messages[0].role")
        highest = self._behaviour.images_at_once or self._observer.images_at_once
        if highest is not None and len(conversation.urls) > highest:
            message = f"At most {highest} image(s) may be provided in one request."
            raise RefusalError(message, "messages")
        decoding = _decoding(request)
        images = tuple(map(self._image, conversation.urls))
        try:
            answer = self._observer.answer(
                images, conversation.prompt, system=system, decoding=decoding
            )
        except InputError as error:
            raise RefusalError(str(error), "messages") from None
        digest = hashlib.sha256(body).hexdigest()
        self.asked[digest] += 1
        return self._completion(answer, digest, request)

    def _check(self, request: JsonMapping) -> None:
        """Refuse a request for another model, or with fields that the behaviour excludes."""
        behaviour = self._behaviour
        if request.get("model") != self.model:
            message = f"The model `{request.get('model')}` does not exist."
            raise RefusalError(message, "model", "model_not_found", 404)
        if request.get("stream") or request.get("n") not in (None, 1):
            raise RefusalError(
                "Streams and several choices are not simulated here.", "stream"
            )
        has_param = {
            "logprobs": bool(request.get("logprobs")),
            "seed": request.get("seed") is not None,
        }
        for param, is_set in has_param.items():
            if is_set and getattr(behaviour, param) == "refused":
                message = f"'{param}' is not supported with this model."
                raise RefusalError(message, param, "unsupported_parameter")
        if behaviour.temperature == "one" and request.get("temperature") not in (
            None,
            1,
        ):
            message = (
                "'temperature' does not support this value with this model. Only the "
                "default (1) is supported."
            )
            raise RefusalError(message, "temperature", "unsupported_value")
        limit = _limit(request)
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

    def _completion(
        self, answer: Answer, digest: str, request: JsonMapping
    ) -> JsonObject:
        """Write an answer as a completion of the protocol."""
        answer, message = self._with_thinking(answer, _limit(request))
        logprobs = None
        if (
            request.get("logprobs")
            and answer.first_tokens
            and self._behaviour.logprobs == "given"
        ):
            listed = answer.first_tokens[: request.get("top_logprobs") or 0]
            token = _token(*answer.first_tokens[0]) | {
                "top_logprobs": [_token(*pair) for pair in listed]
            }
            logprobs = {"content": [token], "refusal": None}
        choice = {
            "index": 0,
            "message": message,
            "finish_reason": answer.finish,
            "logprobs": logprobs,
        }
        tokens_in = answer.tokens_in or 0
        tokens_out = answer.tokens_out or 0
        usage: JsonObject = {
            "prompt_tokens": tokens_in,
            "completion_tokens": tokens_out,
            "total_tokens": tokens_in + tokens_out,
        }
        if answer.tokens_thinking:
            usage["completion_tokens_details"] = {
                "reasoning_tokens": answer.tokens_thinking
            }
        return {
            "id": f"chatcmpl-{digest[:24]}",
            "object": "chat.completion",
            "created": 0,
            "model": self.model,
            "system_fingerprint": answer.server,
            "choices": [choice],
            "usage": usage,
        }

    def _with_thinking(
        self, answer: Answer, limit: int | None
    ) -> tuple[Answer, JsonObject]:
        """Put thinking before an answer; returns the answer and its message.

        Where there are too few tokens, the thinking is cut off and there is no answer.
        """
        message = {"role": "assistant", "content": answer.text}
        behaviour = self._behaviour.thinking
        if behaviour == "none":
            return answer, message
        count = _THOUGHT_TOKENS if limit is None else min(limit, _THOUGHT_TOKENS)
        is_cut = count < _THOUGHT_TOKENS or limit == _THOUGHT_TOKENS
        thought = _THOUGHT[: len(_THOUGHT) * count // _THOUGHT_TOKENS]
        if is_cut:
            message["content"] = ""
        if behaviour == "apart":
            message["reasoning_content"] = thought
        else:
            answer_text = "" if is_cut else f"\n</think>\n\n{answer.text}"
            message["content"] = f"<think>\n{thought}{answer_text}"
        thoughtful = replace(
            answer,
            first_tokens=(("<think>", -0.01),),
            finish="length" if is_cut else answer.finish,
            tokens_out=count if is_cut else count + (answer.tokens_out or 0),
            tokens_thinking=count if behaviour == "apart" else None,
        )
        return thoughtful, message


@contextlib.contextmanager
def serve(
    observer: AnswerObserver,
    *,
    port: int = 0,
    faults: Faults = Faults(),
    latency: Latency = 0.0,
    behaviour: Behaviour = Behaviour(),
) -> Iterator[SimulatedServer]:
    """Serve an observer over HTTP on loopback, under its own name, while the context lasts.

    Parameters
    ----------
    observer : AnswerObserver
        The observer that answers; it is asked one question at a time.
    port : int
        The port; 0 for any that is free.
    faults : Faults
        Shares of requests that fail.
    latency : float or (float, float)
        Seconds that an answer takes at least, or a range from which it is drawn.
    behaviour : Behaviour
        What the server refuses or leaves out, and the key that it asks for.

    Yields
    ------
    SimulatedServer

    Raises
    ------
    InputError
        A value is out of range.
    PsyprobeError
        The port is taken.

    Examples
    --------
    >>> from psyprobe.observers import load_observer
    >>> with serve(load_observer("simulated:watson-malo")) as server:
    ...     print(server.base_url)
    http://127.0.0.1:.../v1
    """
    packages = ("starlette", "uvicorn")
    missing = [
        package for package in packages if importlib.util.find_spec(package) is None
    ]
    if missing:
        raise PsyprobeError(
            f"a simulated server needs {' and '.join(missing)}: pip install 'psyprobe[server]'"
        )
    with contextlib.closing(
        SimulatedServer(observer, port, faults, latency, behaviour)
    ) as server:
        yield server


async def _read_body(request: Any) -> bytes:
    length = request.headers.get("content-length", "0")
    is_bounded = length.isdigit() and int(length) <= _LARGEST_BODY
    if not is_bounded or "transfer-encoding" in request.headers:
        raise RefusalError("Send a Content-Length of at most 64 MiB.", status=413)
    body: bytes = await request.body()
    return body


def _spoil(reply: JsonObject, fault: str, count: int) -> JsonObject:
    """Change an answer as a fault does; `count` picks among odd usages."""
    if fault == "odd_usage":
        return reply | {"usage": _ODD_USAGE[count % len(_ODD_USAGE)]}
    if fault == "wrong_model":
        return reply | {"model": "another-model"}
    if fault == "surrogate":
        reply["choices"][0]["message"]["content"] += "\ud800"
    return reply


@lru_cache
def _gzip_bomb() -> bytes:
    return gzip.compress(bytes(2**26))


def _token(text: str, logprob: float) -> JsonObject:
    return {"token": text, "logprob": logprob, "bytes": list(text.encode())}


def _decoding(request: JsonMapping) -> Decoding:
    listed = request.get("top_logprobs")
    if listed is not None and not (
        isinstance(listed, int) and 0 <= listed <= _MOST_LISTED
    ):
        message = f"top_logprobs must be between 0 and {_MOST_LISTED}."
        raise RefusalError(message, "top_logprobs")
    temperature = request.get("temperature")
    limit = _limit(request)
    try:
        return Decoding(
            temperature=1.0 if temperature is None else float(temperature),
            max_tokens=256 if limit is None else limit,
            logprobs=bool(request.get("logprobs")),
            seed=request.get("seed"),
        )
    except (InputError, TypeError, ValueError) as error:
        raise RefusalError(str(error)) from None


def _limit(request: JsonMapping) -> int | None:
    """Return the largest number of tokens that a request allows; None without a bound."""
    limit = request.get("max_completion_tokens") or request.get("max_tokens")
    return limit if isinstance(limit, int) else None


class _Conversation(NamedTuple):
    """The messages of a request, by what they hold."""

    system: str
    prompt: str
    #: Addresses of the images, in their order.
    urls: list[str]


def _read_messages(messages: Any) -> _Conversation:
    """Read the messages of a request, without examples before the question."""
    system: list[str] = []
    prompt: list[str] = []
    urls: list[str] = []
    if not isinstance(messages, list) or not messages:
        raise RefusalError(
            "'messages' must be a list of at least one message.", "messages"
        )
    for message in messages:
        role = message.get("role") if isinstance(message, dict) else None
        if role == "assistant" and isinstance(message.get("content"), str):
            # A question with its answer is an example, and no part of the question.
            prompt = []
            urls = []
            continue
        if role not in ("system", "developer", "user"):
            message = f"messages of the role {role!r} are not simulated here."
            raise RefusalError(message, "messages")
        content = message.get("content")
        parts = (
            [{"type": "text", "text": content}] if isinstance(content, str) else content
        )
        for part in parts if isinstance(parts, list) else [None]:
            fields = part if isinstance(part, dict) else {}
            kind = fields.get("type")
            if kind == "text" and isinstance(fields.get("text"), str):
                (prompt if role == "user" else system).append(fields["text"])
            elif kind == "image_url" and role == "user":
                url = fields.get("image_url")
                urls.append(url.get("url", "") if isinstance(url, dict) else str(url))
            else:
                message = f"a part of a message is {kind!r}, not text or image_url."
                raise RefusalError(message, "messages")
    return _Conversation("\n".join(system), "\n".join(prompt), urls)


def _decode(url: str) -> FloatArray:
    """Decode the image in a data URL to display drive."""
    head, _, data = url.partition(",")
    if not (head.startswith("data:image/") and head.endswith(";base64")):
        message = "image_url must be a data URL in base64; nothing is fetched here."
        raise RefusalError(message, "messages")
    try:
        codes = decode_image(base64.b64decode(data, validate=True), "the image")
    except (binascii.Error, InputError) as error:
        raise RefusalError(f"the image cannot be read: {error}", "messages") from None
    return codes.astype(np.float32) / np.float32(255)
