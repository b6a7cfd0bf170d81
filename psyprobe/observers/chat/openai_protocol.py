"""The chat-completions protocol as a client sees it: what is sent, what comes back, and what went wrong."""

from __future__ import annotations

import email.utils
import json
import math
import os
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from psyprobe.errors import PsyprobeError
from psyprobe.observers.chat.answering import Answer, Decoding

KEY_VARIABLE = "OPENAI_API_KEY"
URL_VARIABLE = "OPENAI_BASE_URL"
#: Characters from which on a key is one; no service issues shorter ones.
_SHORTEST_SECRET = 8
#: The most log-probabilities that the protocol lists.
_MOST_LISTED = 20
_FEW_LISTED = 5
#: Seconds that a server may ask to wait before that is taken for a refusal.
_LONGEST_WAIT = 600.0
_PASSING_STATUS = (408, 409, 425, 429)
_SPENT = ("insufficient_quota", "billing_hard_limit_reached", "credit_exhausted")


@dataclass(frozen=True)
class Dialect:
    """What a server has been found to take.

    Parameters
    ----------
    listed : int
        How many log-probabilities it lists at most; 0 where it refuses to.
    seed : bool
        Whether it takes a seed.
    limit : str
        What it calls the largest number of tokens.
    """

    listed: int = _MOST_LISTED
    seed: bool = True
    limit: str = "max_tokens"

    def after(self, problem: ProblemError) -> Dialect | None:
        """The dialect that avoids what a server has just refused; None if it refused something else.

        Examples
        --------
        >>> Dialect().after(ProblemError("HTTP 400: logprobs are not supported", status=400))
        Dialect(listed=0, seed=True, limit='max_tokens')
        """
        if problem.status not in (400, 422):
            return None
        about = f"{problem.param} {problem}".casefold()
        if "max_completion_tokens" in about and self.limit == "max_tokens":
            return replace(self, limit="max_completion_tokens")
        if "top_logprobs" in about and self.listed > _FEW_LISTED:
            return replace(self, listed=_FEW_LISTED)
        if "logprob" in about and self.listed:
            return replace(self, listed=0)
        if self.seed and (problem.param == "seed" or re.search(r"\bseed\b", about)):
            return replace(self, seed=False)
        return None


class ProblemError(PsyprobeError):
    """Why an attempt brought no answer.

    Parameters
    ----------
    reason : str
        In a few words, without a key or an address.
    passing : bool
        Whether trying again can help.
    wait : float, optional
        Seconds after which the server asks to be tried again.
    status : int
        Of HTTP; 0 where there was no response.
    param : str
        The field of the request that the server complains of.

    Attributes
    ----------
    dialect : Dialect, optional
        In which the request was put.
    """

    dialect: Dialect | None = None

    def __init__(
        self, reason: str, *, passing: bool = False, wait: float | None = None, status: int = 0, param: str = ""
    ) -> None:
        super().__init__(reason)
        self.passing = passing
        self.wait = wait
        self.status = status
        self.param = param


def messages(prompt: str, urls: Sequence[str], system: str, detail: str) -> list[dict[str, Any]]:
    """The conversation that a question is: images first, so that servers can share their prefix between prompts."""
    parts: list[dict[str, Any]] = [{"type": "image_url", "image_url": {"url": url, "detail": detail}} for url in urls]
    content = [*parts, {"type": "text", "text": prompt}]
    before: list[dict[str, Any]] = [{"role": "system", "content": system}] if system else []
    return [*before, {"role": "user", "content": content}]


def settings(decoding: Decoding, dialect: Dialect) -> dict[str, Any]:
    """How the answer is to be drawn, in the server's dialect.

    Examples
    --------
    >>> settings(Decoding(), Dialect(listed=0))
    {'temperature': 0.0, 'max_tokens': 16}
    """
    chosen: dict[str, Any] = {"temperature": decoding.temperature, dialect.limit: decoding.max_tokens}
    if decoding.logprobs and dialect.listed:
        chosen |= {"logprobs": True, "top_logprobs": dialect.listed}
    if decoding.seed is not None and dialect.seed:
        chosen["seed"] = decoding.seed
    return chosen


def read_completion(body: bytes, headers: Mapping[str, str]) -> Answer:
    """The answer in the body of a response, or a ProblemError; its cost is what the server itself tells.

    Examples
    --------
    >>> read_completion(b'{"choices": [{"message": {"content": "Yes"}, "finish_reason": "stop"}]}', {}).text
    'Yes'
    """
    try:
        data = json.loads(body)
    except ValueError:
        raise ProblemError("the reply is no whole JSON", passing=True) from None
    if not isinstance(data, dict):
        raise ProblemError("the reply is no JSON object", passing=True)
    if data.get("error"):
        code = data["error"].get("code") if isinstance(data["error"], dict) else None
        status = code if isinstance(code, int) else 0
        raise problem_of_status(status or 500, data, headers)
    try:
        choice = data["choices"][0]
        message = choice["message"]
        text = message.get("content") or message.get("refusal") or ""
        usage = data.get("usage") or {}
        tokens = _first_tokens(choice.get("logprobs"))
    except (KeyError, IndexError, TypeError, AttributeError, ValueError):
        raise ProblemError("the reply holds no answer", passing=True) from None
    if isinstance(text, list):
        text = "".join(str(part.get("text", "")) for part in text if isinstance(part, dict))
    told = usage.get("cost", headers.get("x-litellm-response-cost"))
    server = data.get("system_fingerprint") or headers.get("openai-version") or headers.get("server") or ""
    return Answer(
        str(text),
        tokens,
        finish=str(choice.get("finish_reason") or "stop"),
        tokens_in=usage.get("prompt_tokens"),
        tokens_out=usage.get("completion_tokens"),
        cost=_number(told),
        model=str(data.get("model") or ""),
        server=str(server)[:200],
    )


def problem_of_status(status: int, body: Any, headers: Mapping[str, str]) -> ProblemError:
    """What a response with an error status means."""
    if isinstance(body, list) and body:  # as Gemini's gateway wraps it
        body = body[0]
    error = body.get("error", body) if isinstance(body, dict) else body
    fields = error if isinstance(error, dict) else {}
    message = str(fields.get("message") or fields.get("detail") or (error if isinstance(error, str) else "") or "")
    spent = str(fields.get("code") or fields.get("type")) in _SPENT
    passing = (status in _PASSING_STATUS or status >= 500) and not spent
    wait = _retry_after(headers) if passing else None
    # What a server tells about a key may hold the key.
    told = f": {_harmless(message)}" if message and status != 401 else ""
    if wait is not None and wait > _LONGEST_WAIT:
        return ProblemError(f"HTTP {status}, and the server asks to wait {wait:.0f} s{told}", status=status)
    return ProblemError(
        f"HTTP {status}{told}", passing=passing, wait=wait, status=status, param=str(fields.get("param") or "")
    )


def _harmless(message: str) -> str:
    """A server's message, short, in one line, without keys and addresses and without what steers a terminal."""
    for variable in (KEY_VARIABLE, URL_VARIABLE):
        secret = os.environ.get(variable, "")
        # A made-up key such as "x" or "none", for a server that wants none, is a part of many words.
        if len(secret) >= _SHORTEST_SECRET:
            message = message.replace(secret, f"[{variable}]")
    message = re.sub(r"(?i)bearer\s+\S+|\bsk-\S+|https?://\S+", "[...]", message)
    line = "".join(c if c.isprintable() else " " for c in message)
    line = " ".join(line.split()).rstrip(".")
    return line if len(line) <= 300 else f"{line[:300]}..."


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that the server asks to wait: a number, or a date."""
    for name, unit in (("retry-after-ms", 1e-3), ("retry-after", 1.0)):
        seconds = _number(headers.get(name))
        if seconds is not None:
            return max(seconds * unit, 0.0)
    date = email.utils.parsedate_tz(headers.get("retry-after") or "")
    return None if date is None else max(email.utils.mktime_tz(date) - time.time(), 0.0)


def _first_tokens(logprobs: Any) -> tuple[tuple[str, float], ...] | None:
    """Log-probabilities of the first token that is not blank; None where the server gave none."""
    content = (logprobs or {}).get("content") or []
    for entry in content:
        listed = entry.get("top_logprobs") or []
        if not listed:
            return None
        if not str(entry["token"]).strip():
            continue
        pairs = {str(each["token"]): _number(each["logprob"]) for each in [*listed, entry]}
        known = [(token, value) for token, value in pairs.items() if value is not None]
        return tuple(sorted(known, key=lambda pair: -pair[1])) or None
    return None


def _number(value: Any) -> float | None:
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None
