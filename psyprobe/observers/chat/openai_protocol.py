"""Write questions in the chat-completions protocol of a server, and read its replies."""

from __future__ import annotations

import email.utils
import json
import math
import os
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

from psyprobe.errors import PsyprobeError
from psyprobe.files.json_types import JsonObject
from psyprobe.observers.chat.protocol import REFUSED, Answer, Decoding, Inquiry

KEY_VARIABLE = "OPENAI_API_KEY"
URL_VARIABLE = "OPENAI_BASE_URL"
#: The server of questions that name none.
OPENAI = "https://api.openai.com/v1"
#: Characters of the shortest key; no service issues shorter ones.
_SHORTEST_SECRET = 8
#: How many log-probabilities the protocol lists at most, and how many some servers do.
_MOST_LISTED = 20
_FEW_LISTED = 5
#: More tokens than any question or answer has.
_MOST_TOKENS = 2**31
#: Seconds; a server that asks to wait longer refuses for good.
_LONGEST_WAIT = 600.0
_PASSING_STATUS = (408, 409, 425, 429)
#: Statuses by which servers refuse a question for what it holds, such as a content filter's.
_REFUSING_STATUS = (400, 403, 422)
#: Codes of errors that say that the account is empty.
_SPENT = ("insufficient_quota", "billing_hard_limit_reached", "credit_exhausted")
#: Names that servers give to the largest number of tokens.
_LIMITS = ("max_tokens", "max_completion_tokens", "max_output_tokens")
_AT_MOST = re.compile(
    r"(?:at most|up to|maximum[a-z ]*(?:is|of|:)|less than or equal to|<=|not exceed)\D{0,12}(\d+)"
)
_AT_LEAST = re.compile(
    r"(?:at least|minimum[a-z ]*(?:is|of|:)|greater than or equal to|>=)\D{0,12}(\d+)"
)
#: In vLLM's words: the tokens asked for, the whole context, and those of the question.
_CONTEXT = re.compile(r"\(\d+ > (\d+) - (\d+)\)")
#: Fields in which servers put thinking that they keep apart from the answer.
_THINKING_FIELDS = ("reasoning_content", "reasoning")
#: Fields that a request can do without, besides log-probabilities and what the question itself
#: adds.
_OPTIONAL = ("temperature", "top_p", "seed", "reasoning_effort", "response_format")
_THINKING_START = r"(?:<think(?:ing)?>|\[THINK\]|\u25c1think\u25b7)"
_THINKING_END = r"(?:</think(?:ing)?>|\[/THINK\]|\u25c1/think\u25b7)"
#: The thinking at the beginning of a reply, to its end or to that of the reply; some servers leave
#: out the tag that opens it.
_THINKING = re.compile(
    rf"\s*(?:{_THINKING_START}.*?(?:{_THINKING_END}|$)|.*?{_THINKING_END})", re.DOTALL
)


@dataclass(frozen=True)
class Dialect:
    """What a server takes, as far as its refusals have shown.

    Parameters
    ----------
    listed : int
        How many log-probabilities it lists at most; 0 where it refuses to.
    limit : str
        Its name for the largest number of tokens.
    least, most : int, optional
        How small and how large that number may be.
    room : int
        Further tokens that it is given for thinking.
    without : tuple of str
        Fields that it refuses and is not sent; if "system" is among them, system text goes before
        the question.
    """

    listed: int = _MOST_LISTED
    limit: str = "max_tokens"
    least: int = 1
    most: int | None = None
    room: int = 0
    without: tuple[str, ...] = ()

    def after(
        self, problem: ProblemError, extra_names: Iterable[str] = ()
    ) -> Dialect | None:
        """Return the request fields that avoid what a server has just refused; None if none do.

        Parameters
        ----------
        problem : ProblemError
            The refusal.
        extra_names : iterable of str
            Names of fields that the question adds to the request.

        Examples
        --------
        >>> Dialect().after(ProblemError("HTTP 400: logprobs are not supported", status=400)).listed
        0
        >>> Dialect().after(ProblemError("HTTP 400: temperature must be 1", status=400)).without
        ('temperature',)
        """
        if problem.status not in (400, 422):
            return None
        text = f"{problem.param} {problem}".casefold()
        if "max_completion_tokens" in text and self.limit == "max_tokens":
            return replace(self, limit="max_completion_tokens")
        if "top_logprobs" in text and self.listed > _FEW_LISTED:
            return replace(self, listed=_FEW_LISTED)
        if "logprob" in text and self.listed:
            return replace(self, listed=0)
        if any(name in text for name in _LIMITS) and (bounded := self._bounded(text)):
            return bounded
        about_messages = re.search(r"\b(?:role|messages?|instructions?)\b", text)
        if about_messages and re.search(r"\bsystem\b", text):
            return self._leave_out("system")
        names = {*_OPTIONAL, *extra_names}
        mentioned = [
            name
            for name in names
            if re.search(rf"\b{re.escape(name.casefold())}\b", text)
        ]
        return self._leave_out(
            *([problem.param] if problem.param in names else mentioned)
        )

    def _bounded(self, text: str) -> Dialect | None:
        """Limit the number of tokens to the bounds that a server's message names."""
        highest = math.inf if self.most is None else self.most
        if context := _CONTEXT.search(text):
            remaining = int(context[1]) - int(context[2])
            if remaining >= 1:
                return replace(self, most=remaining) if remaining < highest else None
        bound = _AT_LEAST.search(text)
        if bound and int(bound[1]) > self.least:
            return replace(self, least=int(bound[1]))
        bound = _AT_MOST.search(text)
        if bound and 1 <= int(bound[1]) < highest:
            return replace(self, most=int(bound[1]))
        return self._leave_out(self.limit)

    def _leave_out(self, *names: str) -> Dialect | None:
        """Return the dialect without more request fields; None if it lacked them already."""
        without = tuple(sorted({*self.without, *names}))
        return None if without == self.without else replace(self, without=without)

    def tokens(self, max_tokens: int) -> int:
        """Return the largest number of tokens to request in place of the one asked for."""
        count = max(max_tokens + self.room, self.least)
        return count if self.most is None else min(count, self.most)


#: The dialect of a server that takes every request as it is.
_PLAIN = Dialect()


@dataclass(eq=False)
class ProblemError(PsyprobeError):
    """The reason why an attempt brought no answer."""

    #: A few words without a key or an address.
    reason: str
    _: KW_ONLY
    #: Whether trying again can help.
    passing: bool = False
    #: Seconds after which the server asks to be tried again.
    wait: float | None = None
    #: HTTP status; 0 where there was no response.
    status: int = 0
    #: The field of the request that the server complains of.
    param: str = ""
    #: The dialect of the request.
    dialect: Dialect | None = None

    def __str__(self) -> str:
        return self.reason

    @property
    def is_refusal(self) -> bool:
        """Tell whether the error may be about the question's content, and not about the server."""
        return self.status in _REFUSING_STATUS

    def as_answer(self, attempts: int = 1) -> Answer:
        """Convert a server's refusal of a question to an answer, in its words."""
        return Answer("", finish=REFUSED, refusal=str(self), attempts=attempts)


def messages(
    inquiry: Inquiry, urls: Sequence[str], detail: str, dialect: Dialect = _PLAIN
) -> list[JsonObject]:
    """Convert a question to chat messages, images before text so that prompts share a prefix.

    `urls` are those of the examples' images, and then of the question's.
    """
    remaining_urls = iter(urls)

    def user_message(images: Sequence[Any], text: str) -> JsonObject:
        parts: list[JsonObject] = [
            {
                "type": "image_url",
                "image_url": {"url": next(remaining_urls), "detail": detail},
            }
            for _ in images
        ]
        return {"role": "user", "content": [*parts, {"type": "text", "text": text}]}

    conversation: list[JsonObject] = []
    prompt = inquiry.prompt
    if inquiry.system and "system" in dialect.without:
        prompt = f"{inquiry.system}\n\n{prompt}"
    elif inquiry.system:
        conversation.append({"role": "system", "content": inquiry.system})
    for example in inquiry.examples:
        conversation.append(user_message(example.images, example.prompt))
        conversation.append({"role": "assistant", "content": example.answer})
    return [*conversation, user_message(inquiry.images, prompt)]


def settings(decoding: Decoding, dialect: Dialect) -> JsonObject:
    """Convert decoding settings to the request fields that a server takes.

    Examples
    --------
    >>> settings(Decoding(), Dialect(listed=0))
    {'temperature': 0.0, 'max_tokens': 16}
    """
    fields: JsonObject = {
        "temperature": decoding.temperature,
        dialect.limit: dialect.tokens(decoding.max_tokens),
    }
    if decoding.logprobs and dialect.listed:
        fields |= {"logprobs": True, "top_logprobs": dialect.listed}
    for name in ("top_p", "seed", "reasoning_effort", "response_format"):
        if (value := getattr(decoding, name)) is not None:
            fields[name] = value
    fields |= decoding.extra_body or {}
    return {name: fields[name] for name in fields if name not in dialect.without}


def with_substitutions(answer: Answer, inquiry: Inquiry, dialect: Dialect) -> Answer:
    """Add to an answer which settings were sent in place of those asked for.

    Examples
    --------
    >>> dialect = Dialect(room=4096, without=("temperature",))
    >>> with_substitutions(Answer("Yes", ()), Inquiry("?"), dialect).instead
    {'temperature': [0.0, None], 'max_tokens': [16, 4112]}
    """
    plain_fields, fields = (
        {
            "max_tokens" if name in _LIMITS else name: value
            for name, value in settings(inquiry.decoding, terms).items()
        }
        for terms in (_PLAIN, dialect)
    )
    changes = {
        name: [value, fields.get(name)]
        for name, value in plain_fields.items()
        if fields.get(name) != value
    }
    if inquiry.system and "system" in dialect.without:
        changes["system"] = ["system text", "before the question"]
    if answer.first_tokens is None and "logprobs" in fields:
        changes["logprobs"] = [True, None]
    return replace(answer, instead=changes) if changes else answer


def read_completion(body: bytes, headers: Mapping[str, str]) -> Answer:
    """Read the answer from the body of a chat completion, with tokens and cost.

    Raises
    ------
    ProblemError
        There is no answer in it.

    Examples
    --------
    >>> choice = b'{"message": {"content": "Yes"}, "finish_reason": "stop"}'
    >>> read_completion(b'{"choices": [' + choice + b"]}", {}).text
    'Yes'
    """
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        if body.lstrip()[:1] == b"<":
            # A web page stays one, so trying again cannot help.
            raise ProblemError("HTTP 200 with a web page", status=200) from None
        raise ProblemError("the reply is no whole JSON", passing=True) from None
    if not isinstance(data, dict):
        raise ProblemError("the reply is no JSON object", passing=True)
    if data.get("error"):
        code = data["error"].get("code") if isinstance(data["error"], dict) else None
        status = code if isinstance(code, int) and 400 <= code <= 599 else 500
        raise problem_of_status(status, data, headers)
    try:
        choice = data["choices"][0]
        message = choice["message"]
        text = message.get("content")
        if text is None or text == "":
            text = message.get("refusal") or ""
        if isinstance(text, list):
            text = "".join(
                part.get("text", "") for part in text if isinstance(part, dict)
            )
        first_tokens = _first_tokens(choice.get("logprobs"))
    except (KeyError, IndexError, TypeError, AttributeError, ValueError):
        raise ProblemError("the reply holds no answer", passing=True) from None
    if not isinstance(text, str):
        raise ProblemError("the reply's content is no text", passing=True)
    # An answer counts even where what comes beside it cannot be read.
    usage = data["usage"] if isinstance(data.get("usage"), dict) else {}
    thoughts = (message.get(name) for name in _THINKING_FIELDS)
    thinking = next(
        (thought for thought in thoughts if thought and isinstance(thought, str)), ""
    )
    tokens_out = _count(usage.get("completion_tokens"))
    server = data.get("system_fingerprint") or headers.get("openai-version")
    cost = _finite_or_none(usage.get("cost", headers.get("x-litellm-response-cost")))
    return Answer(
        text,
        first_tokens,
        finish=_text_or_empty(choice.get("finish_reason")) or "stop",
        tokens_in=_count(usage.get("prompt_tokens")),
        tokens_out=tokens_out,
        thinking=thinking,
        tokens_thinking=_read_detail(
            usage.get("completion_tokens_details"), "reasoning_tokens"
        )
        or _estimate_thinking(text, thinking, tokens_out),
        tokens_cached=_read_detail(usage.get("prompt_tokens_details"), "cached_tokens"),
        cost=None if cost is None or cost < 0 else cost,
        model=_text_or_empty(data.get("model")),
        server=_text_or_empty(server or headers.get("server")),
    )


def _estimate_thinking(text: str, thinking: str, tokens_out: int | None) -> int | None:
    """Estimate the tokens of thinking by its share of the characters; None without thinking."""
    inside = _THINKING.match(text)
    characters = len(thinking) + (len(inside[0]) if inside else 0)
    if not characters or tokens_out is None:
        return None
    return round(tokens_out * characters / (len(thinking) + len(text)))


def cut_in_thought(answer: Answer) -> bool:
    """Tell whether an answer ended before its thinking did.

    Examples
    --------
    >>> texts = ("<think>Is there", "<think></think>Y")
    >>> [cut_in_thought(Answer(text, finish="length")) for text in texts]
    [True, False]
    """
    if answer.finish != "length":
        return False
    inside = _THINKING.match(answer.text)
    rest = answer.text[inside.end() :] if inside else answer.text
    thought = inside or answer.thinking or answer.tokens_thinking
    return bool(thought) and not rest.strip()


def has_thought(answer: Answer) -> bool:
    """Tell whether there is thinking within the text of an answer.

    Examples
    --------
    >>> has_thought(Answer("Is there? No.</think>No")), has_thought(Answer("No"))
    (True, False)
    """
    return bool(_THINKING.match(answer.text))


def error_of(body: bytes) -> Any:
    """Read the body of an error reply, as JSON where it is, else as text."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return body[:2000].decode(errors="replace")


def problem_of_status(
    status: int, body: Any, headers: Mapping[str, str]
) -> ProblemError:
    """Convert an HTTP error reply to an error in the words of the server."""
    if isinstance(body, list) and body:  # as Gemini's gateway wraps it
        body = body[0]
    error = body.get("error", body) if isinstance(body, dict) else body
    fields = error if isinstance(error, dict) else {}
    message = (
        error
        if isinstance(error, str)
        else fields.get("message") or fields.get("detail")
    )
    message = _text(message or "")
    is_spent = (fields.get("code") or fields.get("type")) in _SPENT
    is_redirect = 300 <= status < 400
    passing = (
        status in _PASSING_STATUS or status >= 500 or is_redirect
    ) and not is_spent
    wait = _retry_after(headers) if passing else None
    request = ""
    if wait is not None and wait > _LONGEST_WAIT:
        request = f", and the server asks to wait {wait:.6g} s"
    # A message about a key may hold the key, and one about a redirect the address.
    is_secret = status == 401 or is_redirect
    reason = "" if is_secret or not message else f": {harmless(message)}"
    return ProblemError(
        f"HTTP {status}{request}{reason}",
        passing=passing and not request,
        wait=None if request else wait,
        status=status,
        param=_text(fields.get("param") or ""),
    )


def _text(value: Any) -> str:
    """Convert a value of a server's JSON to text of at most 2,000 characters."""
    try:
        return str(value)[:2000]
    except RecursionError:
        return ""


def harmless(message: str) -> str:
    """Shorten a server's message to one line without keys, addresses and control characters."""
    for variable in (KEY_VARIABLE, URL_VARIABLE):
        secret = os.environ.get(variable, "")
        # A made-up key such as "x", for a server that needs none, occurs in many words.
        if len(secret) >= _SHORTEST_SECRET:
            message = message.replace(secret, f"[{variable}]")
    message = re.sub(r"(?i)bearer\s+\S+|\bsk-\S+|https?://\S+", "[...]", message)
    line = "".join(c if c.isprintable() else " " for c in message)
    line = " ".join(line.split()).rstrip(".")
    return line if len(line) <= 160 else f"{line[:160]}..."


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Read how many seconds the server asks to wait, from a number or a date."""
    for name, unit in (("retry-after-ms", 1e-3), ("retry-after", 1.0)):
        seconds = _finite_or_none(headers.get(name))
        if seconds is not None:
            return max(seconds * unit, 0.0)
    try:
        date = email.utils.parsedate_to_datetime(headers.get("retry-after", ""))
        return max(date.timestamp() - time.time(), 0.0)
    except (ValueError, OverflowError):
        return None


def _first_tokens(logprobs: Any) -> tuple[tuple[str, float], ...] | None:
    """Read the log-probabilities of the first non-blank token, likeliest first."""
    for entry in (logprobs or {}).get("content") or []:
        alternatives = entry.get("top_logprobs")
        if not alternatives:
            return None
        if not str(entry["token"]).strip():
            continue
        logprob_of = {
            str(token["token"]): _finite_or_none(token["logprob"])
            for token in [*alternatives, entry]
        }
        pairs = [
            (token, value) for token, value in logprob_of.items() if value is not None
        ]
        return tuple(sorted(pairs, key=lambda pair: -pair[1])) or None
    return None


def _finite_or_none(value: Any) -> float | None:
    """Convert a value of a server's reply to a finite number, or None."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _count(value: Any) -> int | None:
    """Read a number of tokens; None if it is none, or larger than any model takes."""
    is_count = type(value) is int and 0 <= value < _MOST_TOKENS
    return value if is_count else None


def _read_detail(details: Any, name: str) -> int | None:
    """Read a count of tokens from a table of a reply; None if there is none."""
    return _count(details.get(name)) if isinstance(details, dict) else None


def _text_or_empty(value: Any) -> str:
    """Return a text of a server's reply, cut to 200 characters, or "" for any other type."""
    return value[:200] if isinstance(value, str) else ""
