"""The chat-completions protocol as a client sees it, and how questions get to a server: many at once, and tried again.

No more than `concurrency` questions are under way at a time, and a few spare requests: when a question waits for longer
than four times what nine of ten answers took lately, it is sent a second time while the first goes on waiting, and
whichever answers first is taken. What a slow server is working on is so never thrown away, and it gets at most an
eighth more to do.
"""

from __future__ import annotations

import asyncio
import contextlib
import email.utils
import hashlib
import json
import math
import os
import random
import re
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import Any

from psyprobe.errors import PsyprobeError
from psyprobe.observers.chat.answering import Answer, Decoding
from psyprobe.observers.chat.openai_connection import ReplyError, open_client, what_broke

KEY_VARIABLE = "OPENAI_API_KEY"
URL_VARIABLE = "OPENAI_BASE_URL"
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
#: Answers from which it is learnt how long one takes: the last ones, since it changes with the load; enough to trust;
#: enough for a guess.
_LATENCIES, _ENOUGH, _FEW = 30, 20, 3
#: Answers to questions sent later from which it is learnt how long an earlier one should take by now.
_LATER = 8
#: Seconds after which an answer is overdue while nothing is known; at least; and between looks at whether it is.
_LONGEST_PATIENCE, _SHORTEST_PATIENCE, _GLANCE = 60.0, 0.25, 0.25
#: Seconds of the first pause before trying again, and of the longest.
_FIRST_PAUSE, _LONGEST_PAUSE = 0.25, 60.0
#: How many times as long each pause is as the last: of a server that is silent, and of one that answers others.
_SILENT, _ANSWERING = 2.0, 1.4
#: Seconds that the list of models may take.
_SHORT_EXCHANGE = 10.0
#: Attempts on a server from which nothing has ever come back.
_FIRST_CONTACT = 4
#: Characters of a name that is kept as it is.
_LONGEST_NAME = 200
#: By this header the client library hands over a response as it came.
_RAW = {"X-Stainless-Raw-Response": "true"}


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
    silent : bool
        Whether no other question was answered meanwhile either.
    """

    dialect: Dialect | None = None
    silent = True

    def __init__(
        self, reason: str, *, passing: bool = False, wait: float | None = None, status: int = 0, param: str = ""
    ) -> None:
        super().__init__(reason)
        self.passing, self.wait, self.status, self.param = passing, wait, status, param


class LeftOutError(PsyprobeError):
    """A question that has no answer though others were answered meanwhile."""


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
    except (ValueError, RecursionError):
        raise ProblemError("the reply is no whole JSON", passing=True) from None
    if not isinstance(data, dict):
        raise ProblemError("the reply is no JSON object", passing=True)
    if data.get("error"):
        code = data["error"].get("code") if isinstance(data["error"], dict) else None
        raise problem_of_status(code if isinstance(code, int) and 400 <= code <= 599 else 500, data, headers)
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
    server = data.get("system_fingerprint") or headers.get("openai-version") or headers.get("server")
    return Answer(
        text,
        tokens,
        finish=_name(choice.get("finish_reason")) or "stop",
        tokens_in=_count(usage.get("prompt_tokens")),
        tokens_out=_count(usage.get("completion_tokens")),
        cost=_amount(usage.get("cost", headers.get("x-litellm-response-cost"))),
        model=_name(data.get("model")),
        server=_name(server),
    )


def problem_of_status(status: int, body: Any, headers: Mapping[str, str]) -> ProblemError:
    """What a response with an error status means."""
    if isinstance(body, list) and body:  # as Gemini's gateway wraps it
        body = body[0]
    error = body.get("error", body) if isinstance(body, dict) else body
    fields = error if isinstance(error, dict) else {}
    message = _text(fields.get("message") or fields.get("detail") or (error if isinstance(error, str) else ""))
    spent = (fields.get("code") or fields.get("type")) in _SPENT
    redirect = 300 <= status < 400
    passing = (status in _PASSING_STATUS or status >= 500 or redirect) and not spent
    wait = _retry_after(headers) if passing else None
    # What a server tells about a key may hold the key; what one tells about a redirect is where to.
    told = f": {_harmless(message)}" if message and status != 401 and not redirect else ""
    if wait is not None and wait > _LONGEST_WAIT:
        return ProblemError(f"HTTP {status}, and the server asks to wait {wait:.6g} s{told}", status=status)
    return ProblemError(
        f"HTTP {status}{told}", passing=passing, wait=wait, status=status, param=_text(fields.get("param") or "")
    )


def _text(value: Any) -> str:
    try:
        return str(value)[:2000]
    except RecursionError:
        return ""


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
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _MOST_TOKENS else None


def _name(value: Any) -> str:
    return value[:200] if isinstance(value, str) else ""


@dataclass(eq=False)
class Question:
    """What is sent, and how often it was."""

    messages: list[dict[str, Any]]
    decoding: Decoding
    sent: int = 0


@dataclass(frozen=True)
class Endpoint:
    """Where and how questions are sent; the key is not in it, and the address is not shown."""

    model: str
    base_url: str | None = field(repr=False)
    concurrency: int
    rate: float | None
    timeout: float
    retries: int


class Sender:
    """Sends questions from a thread with an event loop of its own."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._client = _client(endpoint)
        self._answered = -math.inf
        self.endpoint, self.dialect, self.pid = endpoint, Dialect(), os.getpid()
        self._heard = False
        #: When a question that was answered was sent, and how long it took.
        self._latencies: deque[tuple[float, float]] = deque(maxlen=_LATENCIES)
        self._next_turn = self._rest_until = 0.0
        self._refused_in_a_row = 0
        self._slots, self._door = asyncio.Semaphore(endpoint.concurrency), asyncio.Lock()
        self._spare = asyncio.Semaphore(max(1, endpoint.concurrency // 8))
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="openai-sender", daemon=True)
        self._thread.start()

    def submit(self, question: Question) -> Future[Answer]:
        """Send a question, some time soon; cancelling the future takes it back."""
        return asyncio.run_coroutine_threadsafe(self._settle(question), self._loop)

    def close(self) -> None:
        """Take back what is under way and close all connections."""
        if self._loop.is_closed() or self.pid != os.getpid():
            return
        if threading.current_thread() is self._thread:  # the garbage collector may call from anywhere
            self._loop.call_soon(self._loop.stop)
            return
        asyncio.run_coroutine_threadsafe(self._shut(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def listed(self) -> str:
        """What the server lists about the model that is asked, in one line; empty where it does not tell."""
        return asyncio.run_coroutine_threadsafe(self._listed(), self._loop).result()

    async def models(self) -> list[dict[str, Any]]:
        """The models that the server lists, each with its "id"; none where it lists none in time."""
        import openai

        try:
            async with asyncio.timeout(_SHORT_EXCHANGE):
                raw = await self._client.models.with_raw_response.list()
            return [each for each in json.loads(raw.content)["data"] if isinstance(each["id"], str)]
        except (openai.OpenAIError, ReplyError, TimeoutError, ValueError, KeyError, TypeError, RecursionError):
            return []

    async def _listed(self) -> str:
        models = await self.models()
        # Whoever serves one model answers with it to any name.
        named = [each for each in models if each["id"] == self.endpoint.model] or models
        if len(named) != 1:
            return ""
        (one,) = named
        meta = one["meta"] if isinstance(one.get("meta"), dict) else {}
        told = {"root": one.get("root"), **{name: meta.get(name) for name in ("n_params", "size")}}
        more = [f"{name} {value}" for name, value in told.items() if value not in (None, "", one["id"])]
        line = ", ".join([one["id"], *more])
        return line if len(line) <= _LONGEST_NAME else f"{line[:60]} {hashlib.sha256(line.encode()).hexdigest()[:16]}"

    async def _shut(self) -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await self._client.close()

    async def _settle(self, question: Question) -> Answer:
        """Send a question until it is answered, or there is no hope that it will be."""
        failures, began = 0, _now()
        while True:
            outcome = await self._attempt(question)
            if isinstance(outcome, Answer):
                return replace(outcome, attempts=question.sent)
            if outcome.passing:
                failures += 1
                if failures > self.endpoint.retries or (failures >= _FIRST_CONTACT and not self._heard):
                    raise await self._end(outcome, failures, alone=self._answered > began)
                await asyncio.sleep(self._pause(failures, outcome))
            elif outcome.dialect == self.dialect:
                # Others may have learnt the dialect meanwhile; then it is enough to ask again.
                learnt = self.dialect.after(outcome)
                if learnt is None:
                    raise await self._end(outcome, failures, alone=False)
                self.dialect = learnt

    async def _attempt(self, question: Question) -> Answer | ProblemError:
        """Send it once, and a second time while the first is overdue."""
        # New questions wait at the door, so that those that are tried again go before them.
        async with contextlib.nullcontext() if question.sent else self._door:
            await self._slots.acquire()
        try:
            await self._turn()
            first = asyncio.ensure_future(self._send(question))
            try:
                factor, failures = 1.0, 0
                if await self._overdue(1.0, first):
                    while not first.done():
                        second = await self._send_beside(first, factor, question)
                        if isinstance(second, Answer):
                            return second
                        if second is None:
                            factor *= _ANSWERING
                        else:
                            failures += 1
                            await asyncio.wait({first}, timeout=self._pause(failures, second))
                return await first
            finally:
                await _cancelled(first)
        finally:
            self._slots.release()

    async def _overdue(self, factor: float, *requests: asyncio.Future[Any]) -> bool:
        """Wait for one of some requests; whether that takes `factor` times the patience, which is learnt meanwhile."""
        since = _now()
        while not any(each.done() for each in requests):
            left = factor * self._patience(since) - (_now() - since)
            if left <= 0:
                return True
            await asyncio.wait(requests, timeout=min(left, _GLANCE), return_when=asyncio.FIRST_COMPLETED)
        return False

    async def _send_beside(
        self, first: asyncio.Future[Any], factor: float, question: Question
    ) -> Answer | ProblemError | None:
        """What comes of the question sent a second time, if it comes soon and before the first."""
        async with self._spare:
            await self._turn()
            if first.done():
                return None
            second = asyncio.ensure_future(self._send(question))
            try:
                await self._overdue(factor, first, second)
                return second.result() if second.done() and not first.done() else None
            finally:
                await _cancelled(second)

    async def _send(self, question: Question) -> Answer | ProblemError:
        """One request; what went wrong is returned."""
        question.sent += 1
        dialect = self.dialect
        began = _now()
        outcome = await self._exchange(question, dialect)
        if isinstance(outcome, Answer):
            self._answered = _now()
            took = self._answered - began
            self._latencies.append((began, took))
            self._refused_in_a_row = 0
            return replace(outcome, latency=took)
        outcome.dialect, outcome.silent = dialect, self._answered < began
        if outcome.status == 429:
            # A server that refuses one now and then is left alone with that one; one that refuses all, altogether.
            self._refused_in_a_row += 1
            if self._refused_in_a_row >= max(4, self.endpoint.concurrency):
                self._rest_until = max(self._rest_until, _now() + self._pause(1, outcome))
        return outcome

    async def _exchange(self, question: Question, dialect: Dialect) -> Answer | ProblemError:
        import openai

        chosen = settings(question.decoding, dialect)
        try:
            # As chat.completions.with_raw_response.create does, without its walk through the body, which takes longer
            # than all the rest.
            async with asyncio.timeout(self.endpoint.timeout):
                raw = await self._client.post(
                    "/chat/completions",
                    cast_to=object,
                    body={"model": self.endpoint.model, "messages": question.messages, **chosen},
                    options={"headers": _RAW},
                )
            self._heard = True
            return read_completion(raw.content, raw.headers)
        except ProblemError as problem:
            return problem
        except (TimeoutError, openai.APITimeoutError):
            return ProblemError(f"no answer within {self.endpoint.timeout:g} s", passing=True)
        except (ReplyError, openai.APIConnectionError) as error:
            return ProblemError(what_broke(error), passing=True)
        except openai.APIStatusError as error:
            self._heard |= error.status_code >= 400
            return problem_of_status(error.status_code, error.body or error.message, error.response.headers)
        except openai.OpenAIError as error:
            return ProblemError(f"the client cannot send it ({type(error).__name__})")

    async def _turn(self) -> None:
        """Wait while the server rests, and until the rate allows a request."""
        while (rest := self._rest_until - _now()) > 0:
            await asyncio.sleep(rest)
        if self.endpoint.rate:
            now = _now()
            turn = max(now, self._next_turn)
            self._next_turn = turn + 1 / self.endpoint.rate
            await asyncio.sleep(turn - now)

    def _patience(self, since: float) -> float:
        """Seconds after which an answer is overdue: by how long later ones took, or else the last ones."""
        later = [took for sent, took in self._latencies if sent >= since]
        known = sorted(later if len(later) >= _LATER else [took for _, took in self._latencies])
        if len(known) < _FEW:
            return _LONGEST_PATIENCE
        if len(self._latencies) < _ENOUGH:
            return max(2.0, 10 * known[-1])
        # While the load falls, half of the last answers tell sooner that it does than nine of ten.
        return max(_SHORTEST_PATIENCE, min(2 * known[len(known) * 9 // 10], 4 * known[len(known) // 2]))

    def _pause(self, failures: int, problem: ProblemError) -> float:
        """Seconds before the next attempt: what the server asks for, or longer each time; never all at once."""
        if problem.wait is not None:
            return problem.wait * random.uniform(1.0, 1.1)
        growth = _SILENT if problem.silent else _ANSWERING
        return min(_FIRST_PAUSE * growth ** (failures - 1), _LONGEST_PAUSE) * random.uniform(0.5, 1.0)

    async def _end(self, problem: ProblemError, failures: int, *, alone: bool) -> PsyprobeError:
        """The one sentence that says why there is no answer, and what can be done."""
        where = "the server" if self.endpoint.base_url else "OpenAI's server"
        if problem.status == 401:
            told = f"{where} refuses the key ({problem}); set {KEY_VARIABLE} to one that it takes"
        elif problem.status == 403:
            told = f"{where} does not let this key use the model ({problem})"
        elif problem.status == 404:
            known = [each["id"] for each in await self.models()]
            offer = f"it offers {_harmless(', '.join(known[:20]))}" if known else f"does {URL_VARIABLE} end in /v1?"
            told = f"{where} knows no such model ({problem}); {offer}"
        elif 300 <= problem.status < 400:
            told = (
                f"{where} redirects to another address ({problem}), where no question and no image is sent; set "
                f"{URL_VARIABLE} to the address that answers"
            )
        elif not problem.passing:
            told = f"{where} refuses the question ({problem})"
        elif not self._heard:
            told = f"no server answers ({problem}); does {URL_VARIABLE} name one that is running?"
        else:
            told = (
                f"no answer after {failures} attempts, the last of which ended so: {problem}; what was answered stays, "
                "so run it again later, or with a lower concurrency or rate"
            )
        kind = LeftOutError if alone else PsyprobeError
        return kind(f"openai:{self.endpoint.model}: {told}")


def _client(endpoint: Endpoint) -> Any:
    if not endpoint.base_url and not os.environ.get(KEY_VARIABLE):
        raise PsyprobeError(
            f"openai:{endpoint.model} needs a key for OpenAI's server: set {KEY_VARIABLE}, or {URL_VARIABLE} to the "
            "address of another server"
        )
    # Servers of one's own ask for no key, but the client insists on one.
    key = os.environ.get(KEY_VARIABLE) or "none"
    return open_client(endpoint.base_url, key)


async def _cancelled(task: asyncio.Future[Any]) -> None:
    """Take a task back, and wait until its connection is free."""
    if not task.done():
        task.cancel()
        await asyncio.wait({task})


def _now() -> float:
    return asyncio.get_running_loop().time()
