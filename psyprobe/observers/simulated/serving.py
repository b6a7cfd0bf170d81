"""A real HTTP server on loopback that speaks the OpenAI chat-completions protocol for any observer
that answers.

What is true of the observer is known, and so is every fault of the server, which can go wrong on
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
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from itertools import accumulate
from typing import Any, Literal

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.errors import InputError, PsyprobeError
from psyprobe.files.images import decode_image
from psyprobe.observers.chat.protocol import Answer, AnswerObserver, Decoding

#: Seconds, or the least and the most of them.
Latency = float | tuple[float, float]
#: Faults that happen instead of an answer or spoil it, in the order in which they are drawn.
KINDS = (
    *("overload", "error", "hang", "truncated", "reset", "redirect", "endless", "drip"),
    *("gzip_bomb", "wrong_model", "odd_usage", "deep_json", "surrogate"),
)
#: Bodies of faults: a piece that is sent again and again, and how often a second; JSON that few can
#: read.
_PIECES = {"endless": (b" " * 2**16, math.inf), "drip": (b" ", 20.0)}
_DEEP = b'{"choices": ' + b"[" * 5000 + b"]" * 5000 + b"}"
_ODD_USAGE: tuple[Any, ...] = (
    *(
        [1, 2],
        "many",
        {"prompt_tokens": "ten", "completion_tokens": 1e400},
        {"prompt_tokens": math.nan},
    ),
    *(
        {"prompt_tokens": 10**400, "completion_tokens": -1},
        {"prompt_tokens": 1, "cost": -2.5},
        {"cost": "free"},
    ),
)
#: Images that are kept decoded: 25 prompts share one.
_REMEMBERED = 16
_MOST_LISTED = 20
_LARGEST_BODY = 64 * 2**20
_HOST = "127.0.0.1"
_ELSEWHERE = "/v1/elsewhere"


#: What fields of `Behaviour` may be.
_CHOICES = {
    "logprobs": ("given", "refused", "absent"),
    "seed": ("accepted", "refused"),
    "temperature": ("any", "one"),
    "system": ("accepted", "refused"),
    "thinking": ("none", "tags", "apart"),
}
#: What is thought, and its tokens.
_THOUGHT = "The image is grey. Is there a pattern? No. Wait, let me look again."
_THOUGHT_TOKENS = 40


@dataclass(frozen=True)
class Behaviour:
    """How a server differs from the ideal, for good.

    Parameters
    ----------
    logprobs : {"given", "refused", "absent"}
        What happens to who asks for log-probabilities: they are given, the request is refused with
        HTTP 400, or they are silently left out.
    seed : {"accepted", "refused"}
        What happens to who gives a seed.
    temperature : {"any", "one"}
        Whether who gives another temperature than 1 is refused.
    system : {"accepted", "refused"}
        What happens to who gives system text.
    least_tokens, most_tokens : int, optional
        Fewer or more tokens of an answer than that are refused.
    thinking : {"none", "tags", "apart"}
        Whether it thinks before it answers, and tells so in its reply or beside it; its tokens
        count.
    images_at_once : int, optional
        More images than that are refused; as many as the observer looks at if not given.
    key : str, optional
        Requests without it are refused with HTTP 401.
    """

    logprobs: Literal["given", "refused", "absent"] = "given"
    seed: Literal["accepted", "refused"] = "accepted"
    temperature: Literal["any", "one"] = "any"
    system: Literal["accepted", "refused"] = "accepted"
    least_tokens: int | None = None
    most_tokens: int | None = None
    thinking: Literal["none", "tags", "apart"] = "none"
    images_at_once: int | None = None
    key: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        for name, choices in _CHOICES.items():
            if (value := getattr(self, name)) not in choices:
                told = ", ".join(map(repr, choices[:-1]))
                raise InputError(f"{name} is {value!r}; give {told} or {choices[-1]!r}")


@dataclass(frozen=True)
class Faults:
    """Shares of requests that fail, each in its own way.

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
        HTTP 302 to another address; who goes there is counted as "followed".
    endless, drip : float
        A body without end: as fast as it is taken, or 20 bytes a second.
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
        What Retry-After says, seconds.
    seed : int
        Of the order in which they come.

    Examples
    --------
    >>> Faults(overload=0.7, error=0.3)
    Traceback (most recent call last):
    psyprobe.errors.InputError: faults add up to 1, which leaves no answer; their sum must stay below 1
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
                raise InputError(f"the share of {kind} faults is {share}; give 0 to below 1")
        total = sum(self.shares)
        if total >= 1:
            raise InputError(
                f"faults add up to {total:g}, which leaves no answer; their sum must stay below 1"
            )
        if not (math.isfinite(self.retry_after) and self.retry_after >= 0):
            raise InputError(f"retry_after is {self.retry_after} s; give seconds >= 0")

    @property
    def shares(self) -> tuple[float, ...]:
        """One number a kind, in the order of `KINDS`."""
        return tuple(getattr(self, kind) for kind in KINDS)

    @classmethod
    def parse(cls, items: list[str]) -> Faults:
        """Faults from texts NAME=VALUE, with - for _ in names.

        Raises
        ------
        InputError
            One is not of that form.

        Examples
        --------
        >>> Faults.parse(["overload=0.1", "retry-after=0.5"]).retry_after
        0.5
        """
        names = [each.name for each in fields(cls)]
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
        """The kinds of the faults one after the other, without end; empty for none."""
        source = random.Random(self.seed)
        edges = list(accumulate(self.shares))
        while True:
            yield (*KINDS, "")[bisect(edges, source.random())]


class RefusalError(PsyprobeError):
    """A request that the server refuses, with the status of HTTP and OpenAI's form of telling
    why.
    """

    def __init__(
        self, status: int, message: str, *, param: str | None = None, code: str | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.param = param
        self.code = code

    @property
    def body(self) -> dict[str, Any]:
        """The JSON that says so."""
        kind = "invalid_request_error" if self.status < 500 else "server_error"
        return {
            "error": {"message": str(self), "type": kind, "param": self.param, "code": self.code}
        }


class SimulatedServer:
    """A server on loopback, in a thread of its own, that answers chat completions; `serve` makes
    one.

    Attributes
    ----------
    base_url : str
        What clients call the server by: ``http://127.0.0.1:PORT/v1``.
    model : str
        The name under which the observer answers.
    counts : Counter
        Requests by what became of them: "answered", "listed", "refused", "unauthorised",
        "followed", and the kinds of faults.
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
        #: How often each question was answered, by the digest of its body.
        self.asked: Counter[str] = Counter()
        self._observer = observer
        self._behaviour = behaviour
        self._faults = faults
        self._latency = (low, high)
        self._draws, self._random = faults.draws(), random.Random(faults.seed + 1)
        self._image = lru_cache(_REMEMBERED)(_decoded)
        self._worker = ThreadPoolExecutor(
            1, "simulated-observer"
        )  # all answers come from its one thread
        try:
            listening = socket.create_server((_HOST, port))
        except OSError as error:
            told = error.strerror or error
            raise PsyprobeError(
                f"cannot listen on {_HOST}:{port}: {told}; give another port"
            ) from None
        # Else head and body of a reply wait 40 ms for each other: asyncio does not see that this
        # socket is TCP.
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.port = int(listening.getsockname()[1])
        self.base_url = f"http://{_HOST}:{self.port}/v1"
        quiet = {
            "log_config": None,
            "log_level": "critical",
            "lifespan": "off",
            "server_header": False,
        }
        named = [("Server", "psyprobe")]
        patient = {"timeout_keep_alive": 3600, "timeout_graceful_shutdown": 0}
        self._server = uvicorn.Server(
            uvicorn.Config(self._serve, interface="asgi3", headers=named, **quiet, **patient)
        )
        self._thread = threading.Thread(
            target=self._server.run, args=([listening],), name="simulated", daemon=True
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
        """One request, as an ASGI application."""
        from starlette.requests import ClientDisconnect, Request
        from starlette.responses import Response

        request = Request(scope, receive)
        headers: dict[str, str] = {}
        fault = ""
        try:
            reply: Mapping[str, Any]
            key = self._behaviour.key
            given = request.headers.get("authorization", "")
            if key is not None and not hmac.compare_digest(
                given.encode(), f"Bearer {key}".encode()
            ):
                raise RefusalError(401, "Incorrect API key provided.", code="invalid_api_key")
            if (request.method, request.url.path) == ("POST", "/v1/chat/completions"):
                length = request.headers.get("content-length", "0")
                if (
                    not length.isdigit()
                    or int(length) > _LARGEST_BODY
                    or "transfer-encoding" in request.headers
                ):
                    raise RefusalError(413, "Send a Content-Length of at most 64 MiB.")
                body = await request.body()
                fault = next(self._draws)
                if fault in ("hang", "reset", *_PIECES):
                    self.counts[fault] += 1
                    return await (self._pour if fault in _PIECES else self._leave)(
                        fault, request, send
                    )
                reply = _spoilt(await self._complete(fault, body), fault, self.counts["odd_usage"])
                self.counts[fault or "answered"] += 1
            elif (request.method, request.url.path) == ("GET", "/v1/models"):
                listed: dict[str, Any] = {
                    "id": self.model,
                    "object": "model",
                    "created": 0,
                    "owned_by": "psyprobe",
                }
                listed["root"] = self._observer.card.digest[:12]
                reply = {"object": "list", "data": [listed]}
                self.counts["listed"] += 1
            else:
                if request.url.path == _ELSEWHERE:
                    self.counts["followed"] += 1
                raise RefusalError(404, f"There is nothing at {request.method} {request.url.path}.")
            status = 302 if fault == "redirect" else 200
        except RefusalError as refusal:
            self.counts["unauthorised" if refusal.status == 401 else fault or "refused"] += 1
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
            text = _DEEP
        elif fault == "gzip_bomb":
            text = _bomb()
            headers["Content-Encoding"] = "gzip"
        await Response(text, status, headers, "application/json")(scope, receive, send)

    async def _pour(self, fault: str, request: Any, send: Any) -> None:
        """A body without end, until the client gives up."""
        piece, often = _PIECES[fault]
        await send(
            {
                "type": "http.response.start",
                "status": 200,
                "headers": [(b"content-type", b"application/json")],
            }
        )
        gone = asyncio.ensure_future(request.receive())
        while not gone.done():
            await send({"type": "http.response.body", "body": piece, "more_body": True})
            await asyncio.wait({gone}, timeout=1 / often)

    async def _leave(self, fault: str, request: Any, _: Any) -> None:
        """No answer: wait until the client gives up, or reset its connection."""
        if fault == "reset":
            # ASGI knows no connections; uvicorn does. Lingering for 0 s makes closing a reset.
            connections = self._server.server_state.connections
            linger = struct.pack("ii", 1, 0)
            transport = next(
                connection.transport
                for connection in connections
                if connection.client == tuple(request.client)
            )
            transport.get_extra_info("socket").setsockopt(
                socket.SOL_SOCKET, socket.SO_LINGER, linger
            )
            transport.abort()
        while (await request.receive())["type"] != "http.disconnect":
            pass

    async def _complete(self, fault: str, body: bytes) -> dict[str, Any]:
        if fault == "overload":
            raise RefusalError(
                429, "Rate limit reached; try again later.", code="rate_limit_exceeded"
            )
        loop = asyncio.get_running_loop()
        began = loop.time()
        if fault != "error":
            reply = await loop.run_in_executor(self._worker, self._answered, body)
        await asyncio.sleep(max(0.0, began + self._random.uniform(*self._latency) - loop.time()))
        if fault == "error":
            raise RefusalError(500, "The server had an error while processing your request.")
        return reply

    def _answered(self, body: bytes) -> dict[str, Any]:
        """The answer to the body of a request; a RefusalError where there is none."""
        try:
            request = json.loads(body)
        except ValueError as error:
            raise RefusalError(400, f"the body is not JSON: {error}") from None
        if not isinstance(request, dict):
            raise RefusalError(400, "the body is not a JSON object")
        self._check(request)
        system, prompt, urls = _parts(request.get("messages"))
        if system and self._behaviour.system == "refused":
            raise RefusalError(
                400,
                "messages[0].role does not support 'system' with this model.",
                param="messages[0].role",
            )
        most = self._behaviour.images_at_once or self._observer.images_at_once
        if most is not None and len(urls) > most:
            raise RefusalError(
                400, f"At most {most} image(s) may be provided in one request.", param="messages"
            )
        decoding = _decoding(request)
        images = tuple(self._image(url) for url in urls)
        try:
            answer = self._observer.answer(images, prompt, system=system, decoding=decoding)
        except InputError as error:
            raise RefusalError(400, str(error), param="messages") from None
        digest = hashlib.sha256(body).hexdigest()
        self.asked[digest] += 1
        return self._completion(answer, digest, request)

    def _check(self, request: Mapping[str, Any]) -> None:
        if request.get("model") != self.model:
            message = f"The model `{request.get('model')}` does not exist."
            raise RefusalError(404, message, param="model", code="model_not_found")
        if request.get("stream") or request.get("n") not in (None, 1):
            raise RefusalError(
                400, "Streams and several choices are not simulated here.", param="stream"
            )
        for param, given in (
            ("logprobs", bool(request.get("logprobs"))),
            ("seed", request.get("seed") is not None),
        ):
            if given and getattr(self._behaviour, param) == "refused":
                message = f"'{param}' is not supported with this model."
                raise RefusalError(400, message, param=param, code="unsupported_parameter")
        if self._behaviour.temperature == "one" and request.get("temperature") not in (None, 1):
            message = (
                "'temperature' does not support this value with this model. Only the "
                "default (1) is supported."
            )
            raise RefusalError(400, message, param="temperature", code="unsupported_value")
        limit = _limit(request)
        low = self._behaviour.least_tokens
        high = self._behaviour.most_tokens
        if limit is not None and low is not None and limit < low:
            message = (
                "Invalid 'max_tokens': integer below minimum value. Expected a value >= "
                f"{low}, but got {limit}."
            )
            raise RefusalError(400, message, param="max_tokens", code="integer_below_min_value")
        if limit is not None and high is not None and limit > high:
            message = (
                f"max_tokens is too large: {limit}. This model supports at most {high} "
                "completion tokens."
            )
            raise RefusalError(400, message, param="max_tokens", code="invalid_value")

    def _completion(
        self, answer: Answer, digest: str, request: Mapping[str, Any]
    ) -> dict[str, Any]:
        answer, message = self._thought(answer, _limit(request))
        choice: dict[str, Any] = {
            "index": 0,
            "message": message,
            "finish_reason": answer.finish,
            "logprobs": None,
        }
        if request.get("logprobs") and answer.first_tokens and self._behaviour.logprobs == "given":
            listed = answer.first_tokens[: request.get("top_logprobs") or 0]
            choice["logprobs"] = {
                "content": [_token(*answer.first_tokens[0], listed)],
                "refusal": None,
            }
        usage = {
            "prompt_tokens": answer.tokens_in or 0,
            "completion_tokens": answer.tokens_out or 0,
        }
        total: dict[str, Any] = usage | {"total_tokens": sum(usage.values())}
        if answer.tokens_thinking:
            total["completion_tokens_details"] = {"reasoning_tokens": answer.tokens_thinking}
        return {
            "id": f"chatcmpl-{digest[:24]}",
            "object": "chat.completion",
            "created": 0,
            "model": self.model,
            "system_fingerprint": answer.server,
            "choices": [choice],
            "usage": total,
        }

    def _thought(self, answer: Answer, limit: int | None) -> tuple[Answer, dict[str, Any]]:
        """The answer and its message after some thinking, which is cut off first where there are
        too few tokens.
        """
        how = self._behaviour.thinking
        if how == "none":
            return answer, {"role": "assistant", "content": answer.text}
        spent = _THOUGHT_TOKENS if limit is None else min(limit, _THOUGHT_TOKENS)
        cut = spent < _THOUGHT_TOKENS or limit == _THOUGHT_TOKENS
        thought = _THOUGHT[: len(_THOUGHT) * spent // _THOUGHT_TOKENS]
        text = "" if cut else answer.text
        tokens = spent if cut else spent + (answer.tokens_out or 0)
        opened = (("<think>", -0.01),)
        if how == "tags":
            text = f"<think>\n{thought}" if cut else f"<think>\n{thought}\n</think>\n\n{text}"
        message = {
            "role": "assistant",
            "content": text,
            **({"reasoning_content": thought} if how == "apart" else {}),
        }
        finish = "length" if cut else answer.finish
        told = spent if how == "apart" else None
        return replace(
            answer, first_tokens=opened, finish=finish, tokens_out=tokens, tokens_thinking=told
        ), message


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
        Who answers; it is asked one question at a time.
    port : int
        0 for any that is free.
    faults : Faults
        What goes wrong.
    latency : float or (float, float)
        Seconds that an answer takes at least, or a range from which it is drawn.
    behaviour : Behaviour
        What is refused or left out for good, and which key is asked for.

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
    missing = [each for each in ("starlette", "uvicorn") if importlib.util.find_spec(each) is None]
    if missing:
        raise PsyprobeError(
            f"a simulated server needs {' and '.join(missing)}: pip install 'psyprobe[server]'"
        )
    with contextlib.closing(SimulatedServer(observer, port, faults, latency, behaviour)) as server:
        yield server


def _spoilt(reply: dict[str, Any], fault: str, turn: int) -> dict[str, Any]:
    """An answer with what a fault does to it."""
    if fault == "odd_usage":
        return reply | {"usage": _ODD_USAGE[turn % len(_ODD_USAGE)]}
    if fault == "wrong_model":
        return reply | {"model": "another-model"}
    if fault == "surrogate":
        reply["choices"][0]["message"]["content"] += "\ud800"
    return reply


@lru_cache
def _bomb() -> bytes:
    return gzip.compress(bytes(2**26))


def _token(token: str, logprob: float, listed: tuple[tuple[str, float], ...]) -> dict[str, Any]:
    def entry(text: str, value: float) -> dict[str, Any]:
        return {"token": text, "logprob": value, "bytes": list(text.encode())}

    return entry(token, logprob) | {"top_logprobs": [entry(*each) for each in listed]}


def _decoding(request: Mapping[str, Any]) -> Decoding:
    listed = request.get("top_logprobs")
    if listed is not None and not (isinstance(listed, int) and 0 <= listed <= _MOST_LISTED):
        raise RefusalError(
            400, f"top_logprobs must be between 0 and {_MOST_LISTED}.", param="top_logprobs"
        )
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
        raise RefusalError(400, str(error)) from None


def _limit(request: Mapping[str, Any]) -> int | None:
    limit = request.get("max_completion_tokens") or request.get("max_tokens")
    return limit if isinstance(limit, int) else None


def _parts(messages: Any) -> tuple[str, str, list[str]]:
    """System text, prompt, and the addresses of the images, in their order."""
    system: list[str] = []
    prompt: list[str] = []
    urls: list[str] = []
    if not isinstance(messages, list) or not messages:
        raise RefusalError(
            400, "'messages' must be a list of at least one message.", param="messages"
        )
    for message in messages:
        role = message.get("role") if isinstance(message, dict) else None
        if role == "assistant" and isinstance(message.get("content"), str):
            # What was asked and answered before is an example, and none of the question.
            prompt = []
            urls = []
            continue
        if role not in ("system", "developer", "user"):
            raise RefusalError(
                400, f"messages of the role {role!r} are not simulated here.", param="messages"
            )
        content = message.get("content")
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
        for part in parts if isinstance(parts, list) else [None]:
            fields = part if isinstance(part, dict) else {}
            kind = fields.get("type")
            if kind == "text" and isinstance(fields.get("text"), str):
                (prompt if role == "user" else system).append(fields["text"])
            elif kind == "image_url" and role == "user":
                url = fields.get("image_url")
                urls.append(url.get("url", "") if isinstance(url, dict) else str(url))
            else:
                raise RefusalError(
                    400,
                    f"a part of a message is {kind!r}, not text or image_url.",
                    param="messages",
                )
    return "\n".join(system), "\n".join(prompt), urls


def _decoded(url: str) -> FloatArray:
    """Display drive of an image in a data URL."""
    head, _, data = url.partition(",")
    if not (head.startswith("data:image/") and head.endswith(";base64")):
        raise RefusalError(
            400,
            "image_url must be a data URL in base64; nothing is fetched here.",
            param="messages",
        )
    try:
        codes = decode_image(base64.b64decode(data, validate=True), "the image")
    except (binascii.Error, InputError) as error:
        raise RefusalError(400, f"the image cannot be read: {error}", param="messages") from None
    return codes.astype(np.float32) / np.float32(255)
