"""Responses that a server can send to one question: odd JSON, odd HTTP, no end, bombs and other
hosts."""

from __future__ import annotations

import gzip
import json
import time
from collections.abc import Callable, Iterator
from typing import Any

from hostile_cases import Case

ASK = (
    "ask",
    "Is it?",
    "--observer",
    "openai:m",
    "--observer-option",
    "base_url={url}",
    "retries=0",
    "timeout=1",
)
DEEP = "[" * 5000 + "]" * 5000
MESSAGE = {"role": "assistant", "content": "yes"}
REPLY: dict[str, Any] = {
    "id": "1",
    "object": "chat.completion",
    "created": 1,
    "model": "m",
    "choices": [{"index": 0, "message": MESSAGE, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 3, "completion_tokens": 1, "total_tokens": 4},
}
#: Right results are those that say what the server said; what cannot be read is refused.
EITHER = (0, 2)


def http(body: bytes, status: str = "200 OK", *headers: str) -> bytes:
    head = [
        f"HTTP/1.1 {status}",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
        *headers,
    ]
    return "\r\n".join([*head, "Connection: close", "", ""]).encode() + body


def reply_once(data: bytes) -> Callable[[], Iterator[bytes]]:
    return lambda: iter([data])


def changed(**fields: Any) -> bytes:
    return json.dumps(
        {key: value for key, value in (REPLY | fields).items() if value is not ...}
    ).encode()


def choice(**fields: Any) -> bytes:
    return changed(choices=[{**REPLY["choices"][0], **fields}])


def spelt(logprob: object, listed: list[object]) -> bytes:
    return choice(
        logprobs={
            "content": [{"token": "yes", "logprob": logprob, "top_logprobs": listed}]
        }
    )


BODIES: dict[str, bytes] = {
    "no JSON": b"yes",
    "empty": b"",
    "null": b"null",
    "a number": b"3",
    "a list": b"[]",
    "a text": b'"yes"',
    "an empty table": b"{}",
    "deep": DEEP.encode(),
    "a deep usage": changed(usage="deep").replace(b'"deep"', DEEP.encode()),
    "a big number": changed().replace(
        b'"prompt_tokens": 3', b'"prompt_tokens": ' + b"9" * 5000
    ),
    "not UTF-8": changed().replace(b"yes", b"\xff\xfe"),
    "cut": changed()[:-20],
    "an error in a reply": b'{"error": {"message": "' + b"x" * 5000 + b'"}}',
    "an error of a number": b'{"error": 3}',
    "no choices": changed(choices=...),
    "choices of null": changed(choices=None),
    "choices of nothing": changed(choices=[]),
    "choices of numbers": changed(choices=[3]),
    "choices of a table": changed(choices={"a": 1}),
    "no message": changed(choices=[{}]),
    "a message of null": choice(message=None),
    "a message of text": choice(message="yes"),
    "content of null": choice(message={"content": None}),
    "content of a number": choice(message={"content": 3}),
    "content of a list": choice(message={"content": [1, 2]}),
    "content of a table": choice(message={"content": {"a": 1}}),
    "content of a surrogate": choice(message={"content": "yes \ud800"}),
    "content of NUL": choice(message={"content": "yes\x00"}),
    "content of escapes": choice(message={"content": "yes\x1b[2J\u202e"}),
    "content of a megabyte": choice(message={"content": "yes " * 250_000}),
    "usage of a list": changed(usage=[1, 2]),
    "usage of text": changed(usage="many"),
    "usage of texts": changed(usage={"prompt_tokens": "a", "completion_tokens": "b"}),
    "usage of NaN": changed(
        usage={"prompt_tokens": float("nan"), "completion_tokens": float("inf")}
    ),
    "usage of 10^400": changed(
        usage={"prompt_tokens": 10**400, "completion_tokens": 1}
    ),
    "usage below 0": changed(usage={"prompt_tokens": -3, "completion_tokens": -1}),
    "a negative cost": changed(
        usage={"prompt_tokens": 3, "completion_tokens": 1, "cost": -5}
    ),
    "a cost of text": changed(
        usage={"prompt_tokens": 3, "completion_tokens": 1, "cost": "free"}
    ),
    "a cost of NaN": changed(
        usage={"prompt_tokens": 3, "completion_tokens": 1, "cost": float("nan")}
    ),
    "logprobs of a number": choice(logprobs=3),
    "logprobs of a list": choice(logprobs=[1]),
    "logprobs of null content": choice(logprobs={"content": None}),
    "logprobs of numbers": choice(logprobs={"content": [3]}),
    "logprobs above 0": spelt(5, []),
    "logprobs of text": spelt("a", [{"token": 3}]),
    "logprobs of NaN": spelt(float("nan"), [{"token": "a", "logprob": float("nan")}]),
    "a model of a list": changed(model=[1]),
    "a finish of a number": choice(finish_reason=3),
    "a date of text": changed(created="now"),
}


def _endless() -> Iterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n"
    while True:
        yield b" " * 65536


def _dripping() -> Iterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n"
    while True:
        yield b" "
        time.sleep(0.2)


def _endless_head() -> Iterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\n"
    while True:
        yield b"X-More: " + b"x" * 1000 + b"\r\n"


def _silent() -> Iterator[bytes]:
    while True:
        time.sleep(0.2)
        yield b""


def _bomb() -> Iterator[bytes]:
    packed = gzip.compress(b" " * 2 * 10**8, 9)
    yield http(packed, "200 OK", "Content-Encoding: gzip")


TRANSFERS: dict[str, Callable[[], Iterator[bytes]]] = {
    "endless": _endless,
    "dripping": _dripping,
    "an endless head": _endless_head,
    "silent": _silent,
    "a bomb": _bomb,
    "nothing": reply_once(b""),
    "noise": reply_once(b"\x16\x03\x01\x02\x00" * 50),
    "no status": reply_once(b"HTTP/1.1\r\n\r\n"),
    "status 99": reply_once(http(b"{}", "99 Odd")),
    "status 999": reply_once(http(b"{}", "999 Odd")),
    "status 204": reply_once(http(b"", "204 No Content")),
    "too short": reply_once(http(b'{"a"').replace(b"Length: 4", b"Length: 4000")),
    "a length of text": reply_once(http(b"{}").replace(b"Length: 2", b"Length: many")),
    "a length below 0": reply_once(http(b"{}").replace(b"Length: 2", b"Length: -2")),
    "no gzip": reply_once(http(b"{}", "200 OK", "Content-Encoding: gzip")),
    "an unknown coding": reply_once(http(b"{}", "200 OK", "Content-Encoding: smell")),
    "chunks of text": reply_once(
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nmany\r\n"
    ),
    "a huge chunk": reply_once(
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffff\r\n{}"
    ),
    "a redirect": reply_once(http(b"", "302 Found", "Location: http://127.0.0.1:9/v1")),
    "a redirect to itself": reply_once(
        http(b"", "307 Temporary Redirect", "Location: /v1/chat/completions")
    ),
    "a redirect to a file": reply_once(
        http(b"", "301 Moved", "Location: file:///etc/passwd")
    ),
    "a redirect to nowhere": reply_once(
        http(b"", "308 Permanent Redirect", "Location: http://[")
    ),
    "a wait of a year": reply_once(
        http(b"{}", "429 Too Many Requests", "Retry-After: 31536000")
    ),
    "a wait of text": reply_once(
        http(b"{}", "429 Too Many Requests", "Retry-After: soon")
    ),
    "a wait of NaN": reply_once(http(b"{}", "503 Unavailable", "Retry-After: nan")),
    "a page": reply_once(http(b"<html>\x1b[2J</html>" * 500, "400 Bad Request")),
    "a refusal of 1 MB": reply_once(
        http(b'{"error": {"message": "' + b"no " * 300_000 + b'"}}', "400 Bad Request")
    ),
    "a refusal of a list": reply_once(http(b"[1]", "401 Unauthorized")),
}

NETWORK_CASES = [
    *(
        Case(f"reply: {name}", ASK, reply=reply_once(http(body)), codes=EITHER)
        for name, body in BODIES.items()
    ),
    *(Case(f"http: {name}", ASK, reply=reply) for name, reply in TRANSFERS.items()),
]
