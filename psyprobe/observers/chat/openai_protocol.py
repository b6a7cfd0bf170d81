"""The chat-completions protocol: what is sent, in the terms that a server takes, and what comes
back.
"""

from __future__ import annotations

import email.utils
import json
import math
import os
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from psyprobe.errors import PsyprobeError
from psyprobe.observers.chat.protocol import Answer, Decoding, Inquiry

KEY_VARIABLE = "OPENAI_API_KEY"
URL_VARIABLE = "OPENAI_BASE_URL"
#: Where questions go that name no server.
OPENAI = "https://api.openai.com/v1"
#: Characters from which on a key is one; no service issues shorter ones.
_SHORTEST_SECRET = 8
#: The most log-probabilities that the protocol lists.
_MOST_LISTED = 20
_FEW_LISTED = 5
#: Tokens that no question and no answer has.
_MOST_TOKENS = 2**31
#: Seconds that a server may ask to wait before that is taken for a refusal.
_LONGEST_WAIT = 600.0
_PASSING_STATUS = (408, 409, 425, 429)
_SPENT = ("insufficient_quota", "billing_hard_limit_reached", "credit_exhausted")
#: What a server may call the largest number of tokens.
_LIMITS = ("max_tokens", "max_completion_tokens", "max_output_tokens")
_AT_MOST = re.compile(
    r"(?:at most|up to|maximum[a-z ]*(?:is|of|:)|less than or equal to|<=|not exceed)\D{0,12}(\d+)"
)
_AT_LEAST = re.compile(
    r"(?:at least|minimum[a-z ]*(?:is|of|:)|greater than or equal to|>=)\D{0,12}(\d+)"
)
#: As vLLM tells it: asked, of the whole context, less the question.
_LEFT = re.compile(r"\(\d+ > (\d+) - (\d+)\)")
#: Where servers put thinking that they keep apart from the answer.
_APART = ("reasoning_content", "reasoning")
#: What a request can do without, besides the log-probabilities and what the question itself adds.
_SPARE = ("temperature", "top_p", "seed", "reasoning_effort", "response_format")
#: A reply that begins by thinking, and where it ends.
_THINKING = re.compile(
    r"\s*(?:<think(?:ing)?>|\[THINK\]|\u25c1think\u25b7)(.*?)(?:</think(?:ing)?>|\[/THINK\]|\u25c1/think\u25b7|$)",
    re.DOTALL,
)


@dataclass(frozen=True)
class Dialect:
    """What a server has been found to take.

    Parameters
    ----------
    listed : int
        How many log-probabilities it lists at most; 0 where it refuses to.
    limit : str
        What it calls the largest number of tokens.
    least, most : int, optional
        How small and how large that number may be.
    room : int
        Tokens that it is given besides, for thinking.
    without : frozenset of str
        What it refuses, and is left out; of "system", what was to be said there goes before the
        question.
    """

    listed: int = _MOST_LISTED
    limit: str = "max_tokens"
    least: int = 1
    most: int | None = None
    room: int = 0
    without: frozenset[str] = frozenset()

    def after(self, problem: ProblemError, more: Iterable[str] = ()) -> Dialect | None:
        """The dialect that avoids what a server has just refused; None if it refused something
        else.

        Parameters
        ----------
        problem : ProblemError
            As it came.
        more : iterable of str
            Names that the question adds to the request.

        Examples
        --------
        >>> Dialect().after(ProblemError("HTTP 400: logprobs are not supported", status=400)).listed
        0
        >>> Dialect().after(ProblemError("HTTP 400: temperature must be 1", status=400)).without
        frozenset({'temperature'})
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
        if any(name in about for name in _LIMITS) and (bounded := self._bounded(about)):
            return bounded
        if re.search(r"\bsystem\b", about) and re.search(
            r"\b(?:role|messages?|instructions?)\b", about
        ):
            refused = ["system"]
        else:
            names = [*_SPARE, *more]
            refused = [name for name in names if problem.param == name] or [
                name for name in names if re.search(rf"\b{re.escape(name.casefold())}\b", about)
            ]
        new = frozenset(refused) - self.without
        return replace(self, without=self.without | new) if new else None

    def _bounded(self, about: str) -> Dialect | None:
        """The same within the bounds on tokens that a server tells."""
        left, most, least = (each.search(about) for each in (_LEFT, _AT_MOST, _AT_LEAST))
        if left and (room := int(left[1]) - int(left[2])) >= 1:
            return replace(self, most=room) if self.most is None or room < self.most else None
        if least and int(least[1]) > self.least:
            return replace(self, least=int(least[1]))
        if most and int(most[1]) >= 1 and (self.most is None or int(most[1]) < self.most):
            return replace(self, most=int(most[1]))
        return (
            None
            if self.limit in self.without
            else replace(self, without=self.without | {self.limit})
        )

    def tokens(self, asked: int) -> int:
        """The largest number of tokens that is sent."""
        wanted = max(asked + self.room, self.least)
        return wanted if self.most is None else min(wanted, self.most)


#: Of a server that takes what it is asked.
_PLAIN = Dialect()


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
        self,
        reason: str,
        *,
        passing: bool = False,
        wait: float | None = None,
        status: int = 0,
        param: str = "",
    ) -> None:
        super().__init__(reason)
        self.passing = passing
        self.wait = wait
        self.status = status
        self.param = param


def messages(
    inquiry: Inquiry, urls: Sequence[str], detail: str, dialect: Dialect = _PLAIN
) -> list[dict[str, Any]]:
    """The conversation that a question is: images first, so that servers can share their prefix
    between prompts.

    `urls` are those of the examples' images, and then of the question's.
    """
    left = iter(urls)

    def asked(images: Sequence[Any], text: str) -> dict[str, Any]:
        parts: list[dict[str, Any]] = [
            {"type": "image_url", "image_url": {"url": next(left), "detail": detail}}
            for _ in images
        ]
        return {"role": "user", "content": [*parts, {"type": "text", "text": text}]}

    said: list[dict[str, Any]] = []
    folded = inquiry.system if "system" in dialect.without else ""
    if inquiry.system and not folded:
        said.append({"role": "system", "content": inquiry.system})
    for example in inquiry.examples:
        said += [
            asked(example.images, example.prompt),
            {"role": "assistant", "content": example.answer},
        ]
    return [
        *said,
        asked(inquiry.images, f"{folded}\n\n{inquiry.prompt}" if folded else inquiry.prompt),
    ]


def settings(decoding: Decoding, dialect: Dialect) -> dict[str, Any]:
    """How the answer is to be drawn, in the server's dialect.

    Examples
    --------
    >>> settings(Decoding(), Dialect(listed=0))
    {'temperature': 0.0, 'max_tokens': 16}
    """
    chosen: dict[str, Any] = {
        "temperature": decoding.temperature,
        dialect.limit: dialect.tokens(decoding.max_tokens),
    }
    if decoding.logprobs and dialect.listed:
        chosen |= {"logprobs": True, "top_logprobs": dialect.listed}
    for name in ("top_p", "seed", "reasoning_effort", "response_format"):
        if (value := getattr(decoding, name)) is not None:
            chosen[name] = value
    chosen |= decoding.extra_body or {}
    return {name: value for name, value in chosen.items() if name not in dialect.without}


def instead(inquiry: Inquiry, dialect: Dialect) -> dict[str, list[Any]]:
    """What is sent in place of what was asked for, by name; None stands for nothing.

    Examples
    --------
    >>> instead(Inquiry("?"), Dialect(room=4096, without=frozenset({"temperature"})))
    {'temperature': [0.0, None], 'max_tokens': [16, 4112]}
    """
    if dialect == _PLAIN:
        return {}
    wanted, sent = (
        {
            "max_tokens" if name in _LIMITS else name: value
            for name, value in settings(inquiry.decoding, each).items()
        }
        for each in (_PLAIN, dialect)
    )
    changed = {
        name: [value, sent.get(name)] for name, value in wanted.items() if sent.get(name) != value
    }
    if inquiry.system and "system" in dialect.without:
        changed["system"] = ["system text", "before the question"]
    return changed


def with_instead(answer: Answer, inquiry: Inquiry, dialect: Dialect) -> Answer:
    """An answer with what was sent in place of what was asked for."""
    changed = instead(inquiry, dialect)
    if answer.first_tokens is None and "logprobs" in settings(inquiry.decoding, dialect):
        changed["logprobs"] = [True, None]
    return replace(answer, instead=changed) if changed else answer


def read_completion(body: bytes, headers: Mapping[str, str]) -> Answer:
    """The answer in the body of a response, or a ProblemError; its cost is what the server itself
    tells.

    Examples
    --------
    >>> read_completion(b'{"choices": [{"message": {"content": "Yes"}, "finish_reason": "stop"}]}', {}).text
    'Yes'
    """
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        if body.lstrip()[:1] == b"<":
            # Whatever stands at this address is not going to change its mind.
            raise ProblemError("HTTP 200 with a web page", status=200) from None
        raise ProblemError("the reply is no whole JSON", passing=True) from None
    if not isinstance(data, dict):
        raise ProblemError("the reply is no JSON object", passing=True)
    if data.get("error"):
        code = data["error"].get("code") if isinstance(data["error"], dict) else None
        raise problem_of_status(
            code if isinstance(code, int) and 400 <= code <= 599 else 500, data, headers
        )
    try:
        choice = data["choices"][0]
        message = choice["message"]
        text = message.get("content")
        if text is None or text == "":
            text = message.get("refusal") or ""
        if isinstance(text, list):
            text = "".join(part.get("text", "") for part in text if isinstance(part, dict))
        tokens = _first_tokens(choice.get("logprobs"))
    except (KeyError, IndexError, TypeError, AttributeError, ValueError):
        raise ProblemError("the reply holds no answer", passing=True) from None
    if not isinstance(text, str):
        raise ProblemError("the reply's content is no text", passing=True)
    # What comes beside an answer does not undo it: what cannot be read of this is not known.
    usage = data["usage"] if isinstance(data.get("usage"), dict) else {}
    thinking = next(
        (each for name in _APART if isinstance(each := message.get(name), str) and each), ""
    )
    tokens_out = _count(usage.get("completion_tokens"))
    server = (
        data.get("system_fingerprint") or headers.get("openai-version") or headers.get("server")
    )
    return Answer(
        text,
        tokens,
        finish=_name(choice.get("finish_reason")) or "stop",
        tokens_in=_count(usage.get("prompt_tokens")),
        tokens_out=tokens_out,
        thinking=thinking,
        tokens_thinking=_thought(
            text, thinking, tokens_out, usage.get("completion_tokens_details")
        ),
        tokens_cached=_detail(usage.get("prompt_tokens_details"), "cached_tokens"),
        cost=_amount(usage.get("cost", headers.get("x-litellm-response-cost"))),
        model=_name(data.get("model")),
        server=_name(server),
    )


def _thought(text: str, apart: str, tokens_out: int | None, details: Any) -> int | None:
    """Tokens of thinking: as the server tells, else by their share of the characters; None where
    there are none.
    """
    if told := _detail(details, "reasoning_tokens"):
        return told
    inside = _THINKING.match(text)
    characters = len(apart) + (len(inside[0]) if inside else 0)
    if not characters or tokens_out is None:
        return None
    return round(tokens_out * characters / (len(apart) + len(text)))


def cut_in_thought(answer: Answer) -> bool:
    """Whether an answer ended before its thinking did.

    Examples
    --------
    >>> [cut_in_thought(Answer(text, finish="length")) for text in ("<think>Is there", "<think></think>Y")]
    [True, False]
    """
    if answer.finish != "length":
        return False
    inside = _THINKING.match(answer.text)
    rest = answer.text[inside.end() :] if inside else answer.text
    return not rest.strip() and bool(inside or answer.thinking or answer.tokens_thinking)


def error_of(body: bytes) -> Any:
    """The body of a reply that is no answer: as JSON where it is, else as text."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return body[:2000].decode(errors="replace")


def problem_of_status(status: int, body: Any, headers: Mapping[str, str]) -> ProblemError:
    """What a response with an error status means."""
    if isinstance(body, list) and body:  # as Gemini's gateway wraps it
        body = body[0]
    error = body.get("error", body) if isinstance(body, dict) else body
    fields = error if isinstance(error, dict) else {}
    message = _text(
        fields.get("message") or fields.get("detail") or (error if isinstance(error, str) else "")
    )
    spent = (fields.get("code") or fields.get("type")) in _SPENT
    redirect = 300 <= status < 400
    passing = (status in _PASSING_STATUS or status >= 500 or redirect) and not spent
    wait = _retry_after(headers) if passing else None
    # What a server tells about a key may hold the key; what one tells about a redirect is where to.
    told = f": {harmless(message)}" if message and status != 401 and not redirect else ""
    if wait is not None and wait > _LONGEST_WAIT:
        return ProblemError(
            f"HTTP {status}, and the server asks to wait {wait:.6g} s{told}", status=status
        )
    return ProblemError(
        f"HTTP {status}{told}",
        passing=passing,
        wait=wait,
        status=status,
        param=_text(fields.get("param") or ""),
    )


def _text(value: Any) -> str:
    try:
        return str(value)[:2000]
    except RecursionError:
        return ""


def harmless(message: str) -> str:
    """A server's message, short, in one line, without keys and addresses and without what steers a
    terminal.
    """
    for variable in (KEY_VARIABLE, URL_VARIABLE):
        secret = os.environ.get(variable, "")
        # A made-up key such as "x" or "none", for a server that wants none, is a part of many
        # words.
        if len(secret) >= _SHORTEST_SECRET:
            message = message.replace(secret, f"[{variable}]")
    message = re.sub(r"(?i)bearer\s+\S+|\bsk-\S+|https?://\S+", "[...]", message)
    line = "".join(c if c.isprintable() else " " for c in message)
    line = " ".join(line.split()).rstrip(".")
    return line if len(line) <= 160 else f"{line[:160]}..."


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that the server asks to wait: a number, or a date."""
    for name, unit in (("retry-after-ms", 1e-3), ("retry-after", 1.0)):
        seconds = _number(headers.get(name))
        if seconds is not None:
            return max(seconds * unit, 0.0)
    try:
        date = email.utils.parsedate_tz(headers.get("retry-after") or "")
        return None if date is None else max(email.utils.mktime_tz(date) - time.time(), 0.0)
    except (ValueError, OverflowError):
        return None


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
        return number if math.isfinite(number := float(value)) else None
    except (TypeError, ValueError, OverflowError):
        return None


def _amount(value: Any) -> float | None:
    number = _number(value)
    return number if number is not None and number >= 0 else None


def _count(value: Any) -> int | None:
    """A number of tokens; None for what is none, or more than any model takes."""
    return (
        value
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _MOST_TOKENS
        else None
    )


def _detail(details: Any, name: str) -> int | None:
    return _count(details.get(name)) if isinstance(details, dict) else None


def _name(value: Any) -> str:
    return value[:200] if isinstance(value, str) else ""
