"""The chat-completions protocol: from a request's JSON to an observer's answer and back."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.errors import InputError, PsyprobeError
from psyprobe.files.images import decode_image
from psyprobe.observers.chat.answering import Answer, AnswerObserver, Decoding

#: Images that are kept decoded: 25 prompts share one.
_REMEMBERED = 16
_MOST_LISTED = 20


@dataclass(frozen=True)
class Behaviour:
    """How a server differs from the ideal, for good.

    Parameters
    ----------
    logprobs : {"given", "refused", "absent"}
        What happens to who asks for log-probabilities: they are given, the request is refused with HTTP 400, or they
        are silently left out.
    seed : {"accepted", "refused"}
        What happens to who gives a seed.
    images_at_once : int, optional
        More images than that are refused; as many as the observer looks at if not given.
    key : str, optional
        Requests without it are refused with HTTP 401.
    """

    logprobs: Literal["given", "refused", "absent"] = "given"
    seed: Literal["accepted", "refused"] = "accepted"
    images_at_once: int | None = None
    key: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.logprobs not in ("given", "refused", "absent"):
            raise InputError(f"logprobs is {self.logprobs!r}; give 'given', 'refused' or 'absent'")
        if self.seed not in ("accepted", "refused"):
            raise InputError(f"seed is {self.seed!r}; give 'accepted' or 'refused'")


class RefusalError(PsyprobeError):
    """A request that the server refuses, with the status of HTTP and OpenAI's form of telling why."""

    def __init__(self, status: int, message: str, *, param: str | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.param = param
        self.code = code

    @property
    def body(self) -> dict[str, Any]:
        """The JSON that says so."""
        kind = "invalid_request_error" if self.status < 500 else "server_error"
        return {"error": {"message": str(self), "type": kind, "param": self.param, "code": self.code}}


class Completions:
    """Answers chat completions for an observer, which clients know as `model`."""

    def __init__(self, observer: AnswerObserver, behaviour: Behaviour, model: str) -> None:
        self.observer = observer
        self.behaviour = behaviour
        self.model = model
        #: How often each question was answered, by the digest of its body.
        self.asked: Counter[str] = Counter()
        self._image = lru_cache(_REMEMBERED)(_decoded)
        self._lock = threading.Lock()

    def models(self) -> dict[str, Any]:
        """What ``GET /v1/models`` tells."""
        return {"object": "list", "data": [{"id": self.model, "object": "model", "created": 0, "owned_by": "psyprobe"}]}

    def complete(self, body: bytes) -> dict[str, Any]:
        """The answer to the body of a request; a RefusalError where there is none."""
        try:
            request = json.loads(body)
        except ValueError as error:
            raise RefusalError(400, f"the body is not JSON: {error}") from None
        if not isinstance(request, dict):
            raise RefusalError(400, "the body is not a JSON object")
        self._check(request)
        system, prompt, urls = _parts(request.get("messages"))
        most = self.behaviour.images_at_once or self.observer.images_at_once
        if most is not None and len(urls) > most:
            raise RefusalError(400, f"At most {most} image(s) may be provided in one request.", param="messages")
        decoding = _decoding(request)
        images = tuple(self._image(url) for url in urls)
        try:
            answer = self.observer.answer(images, prompt, system=system, decoding=decoding)
        except InputError as error:
            raise RefusalError(400, str(error), param="messages") from None
        digest = hashlib.sha256(body).hexdigest()
        with self._lock:
            self.asked[digest] += 1
        return self._completion(answer, digest, request)

    def _check(self, request: Mapping[str, Any]) -> None:
        if request.get("model") != self.model:
            message = f"The model `{request.get('model')}` does not exist."
            raise RefusalError(404, message, param="model", code="model_not_found")
        if request.get("stream") or request.get("n") not in (None, 1):
            raise RefusalError(400, "Streams and several choices are not simulated here.", param="stream")
        for param, given in (("logprobs", bool(request.get("logprobs"))), ("seed", request.get("seed") is not None)):
            if given and getattr(self.behaviour, param) == "refused":
                message = f"'{param}' is not supported with this model."
                raise RefusalError(400, message, param=param, code="unsupported_parameter")

    def _completion(self, answer: Answer, digest: str, request: Mapping[str, Any]) -> dict[str, Any]:
        choice: dict[str, Any] = {
            "index": 0,
            "message": {"role": "assistant", "content": answer.text},
            "finish_reason": answer.finish,
            "logprobs": None,
        }
        if request.get("logprobs") and answer.first_tokens and self.behaviour.logprobs == "given":
            listed = answer.first_tokens[: request.get("top_logprobs") or 0]
            choice["logprobs"] = {"content": [_token(*answer.first_tokens[0], listed)], "refusal": None}
        tokens_in, tokens_out = answer.tokens_in or 0, answer.tokens_out or 0
        total = tokens_in + tokens_out
        return {
            "id": f"chatcmpl-{digest[:24]}",
            "object": "chat.completion",
            "created": 0,
            "model": self.model,
            "system_fingerprint": answer.server,
            "choices": [choice],
            "usage": {"prompt_tokens": tokens_in, "completion_tokens": tokens_out, "total_tokens": total},
        }


def _token(token: str, logprob: float, listed: tuple[tuple[str, float], ...]) -> dict[str, Any]:
    def entry(text: str, value: float) -> dict[str, Any]:
        return {"token": text, "logprob": value, "bytes": list(text.encode())}

    return entry(token, logprob) | {"top_logprobs": [entry(*each) for each in listed]}


def _decoding(request: Mapping[str, Any]) -> Decoding:
    listed = request.get("top_logprobs")
    if listed is not None and not (isinstance(listed, int) and 0 <= listed <= _MOST_LISTED):
        raise RefusalError(400, f"top_logprobs must be between 0 and {_MOST_LISTED}.", param="top_logprobs")
    temperature = request.get("temperature")
    limit = request.get("max_completion_tokens") or request.get("max_tokens")
    try:
        return Decoding(
            temperature=1.0 if temperature is None else float(temperature),
            max_tokens=256 if limit is None else int(limit),
            logprobs=bool(request.get("logprobs")),
            seed=request.get("seed"),
        )
    except (InputError, TypeError, ValueError) as error:
        raise RefusalError(400, str(error)) from None


def _parts(messages: Any) -> tuple[str, str, list[str]]:
    """System text, prompt, and the addresses of the images, in their order."""
    system: list[str] = []
    prompt: list[str] = []
    urls: list[str] = []
    if not isinstance(messages, list) or not messages:
        raise RefusalError(400, "'messages' must be a list of at least one message.", param="messages")
    for message in messages:
        role = message.get("role") if isinstance(message, dict) else None
        if role not in ("system", "developer", "user"):
            raise RefusalError(400, f"messages of the role {role!r} are not simulated here.", param="messages")
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
                raise RefusalError(400, f"a part of a message is {kind!r}, not text or image_url.", param="messages")
    return "\n".join(system), "\n".join(prompt), urls


def _decoded(url: str) -> FloatArray:
    """Display drive of an image in a data URL."""
    head, _, data = url.partition(",")
    if not (head.startswith("data:image/") and head.endswith(";base64")):
        raise RefusalError(400, "image_url must be a data URL in base64; nothing is fetched here.", param="messages")
    try:
        codes = decode_image(base64.b64decode(data, validate=True), "the image")
    except (binascii.Error, InputError) as error:
        raise RefusalError(400, f"the image cannot be read: {error}", param="messages") from None
    return codes.astype(np.float32) / np.float32(255)
