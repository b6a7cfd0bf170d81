"""How questions get to a server: many at once, and tried again.

No more than `concurrency` questions are under way at a time, and a few spare requests: when a
question waits for longer than twice what nine of ten answers took lately, or four times what half
of them did, it is sent a second time while the first goes on waiting, and whichever answers first
is taken. What a slow server is working on is so never thrown away, and it gets at most an eighth
more to do.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import math
import os
import random
import secrets
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from psyprobe.errors import PsyprobeError
from psyprobe.observers.chat.event_loop import EventLoop
from psyprobe.observers.chat.openai_connection import Connection, ReplyError, what_broke
from psyprobe.observers.chat.openai_protocol import (
    KEY_VARIABLE,
    OPENAI,
    URL_VARIABLE,
    Dialect,
    ProblemError,
    cut_in_thought,
    error_of,
    harmless,
    messages,
    problem_of_status,
    read_completion,
    settings,
    with_instead,
)
from psyprobe.observers.chat.prices import Budget, Price, priced
from psyprobe.observers.chat.protocol import Answer, Inquiry

#: Answers from which it is learnt how long one takes: the last ones, since it changes with the
#: load; enough to trust; enough for a guess.
_LATENCIES = 30
_ENOUGH = 20
_FEW = 3
#: Answers to the questions sent last, at least, from which it is learnt how long one takes by now.
_LATER = 8
#: Seconds after which an answer is overdue while nothing is known; at least; and between looks at
#: whether it is.
_LONGEST_PATIENCE = 60.0
_SHORTEST_PATIENCE = 0.25
_GLANCE = 0.25
#: Seconds of the first pause before trying again, and of the longest.
_FIRST_PAUSE = 0.25
_LONGEST_PAUSE = 60.0
#: How many times as long each pause is as the last: of a server that is silent, and of one that
#: answers others.
_SILENT = 2.0
_ANSWERING = 1.4
#: Stands for images until all else of a request is JSON; no prompt holds it.
_MARK = secrets.token_hex(16)
#: Seconds that questions wait at most for the first to find out what the server takes; and until
#: another tries it, too.
_FIRST_LOOK = 5.0
_NEXT_LOOK = 1.0
#: Seconds that the list of models may take.
_SHORT_EXCHANGE = 10.0
#: Attempts on a server from which nothing has ever come back.
_FIRST_CONTACT = 4
#: What to look at where something else than a server of the protocol answers.
_ENDING = f"does the address (base_url, or else {URL_VARIABLE}) end in /v1?"
#: Characters of a name that is kept as it is.
_LONGEST_NAME = 200


T = TypeVar("T")


class LeftOutError(PsyprobeError):
    """A question that has no answer though others were answered meanwhile."""


@dataclass(eq=False)
class Question:
    """What is sent, and how often it was."""

    inquiry: Inquiry
    #: Of the images as data, those of the examples first, as JSON holds them.
    urls: Sequence[bytes]
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
    detail: str
    thinking: int


def request_body(endpoint: Endpoint, question: Question, dialect: Dialect) -> bytes:
    """A question as the chat-completions protocol has it, in the dialect of a server."""
    marks = [f"image {i} {_MARK}" for i in range(len(question.urls))]
    said = messages(question.inquiry, marks, endpoint.detail, dialect)
    body = json.dumps(
        {"model": endpoint.model, "messages": said, **settings(question.inquiry.decoding, dialect)}
    ).encode()
    for mark, url in zip(marks, question.urls, strict=True):
        # Put in when all else is JSON already: to look through an image for quotes takes longer
        # than to send it.
        body = body.replace(mark.encode(), url, 1)
    return body


class Sender:
    """Sends questions from a thread with an event loop of its own."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.client = _client(endpoint)
        self._answered = -math.inf
        self.endpoint, self.dialect, self.pid = endpoint, Dialect(), os.getpid()
        self._heard = False
        #: What questions cost, where that is known; and what may be spent on them.
        self.price: Price | None = None
        self.budget: Budget | None = None
        #: What the server has been found to refuse, as sentences that were not told yet.
        self.found: deque[str] = deque()
        self._looking, self._known = 0, asyncio.Event()
        #: When a question that was answered was sent, and how long it took.
        self._latencies: deque[tuple[float, float]] = deque(maxlen=_LATENCIES)
        self._next_turn = self._rest_until = 0.0
        self._refused_in_a_row = 0
        self._slots, self._door = asyncio.Semaphore(endpoint.concurrency), asyncio.Lock()
        self._spare = asyncio.Semaphore(max(1, endpoint.concurrency // 8))
        self._loop = EventLoop("openai-sender")

    def submit(self, question: Question) -> Future[Answer]:
        """Send a question, some time soon; cancelling the future takes it back."""
        return self._loop.soon(self._settle, question)

    def close(self) -> None:
        """Take back what is under way and close all connections."""
        self._loop.close(last=self.client.close)

    def wait_for(self, exchange: Callable[..., Coroutine[Any, Any, T]], *arguments: Any) -> T:
        """What comes of something that is done with `client` in the thread that sends."""
        return self._loop.soon(exchange, *arguments).result()

    def listed(self) -> str:
        """What the server lists about the model that is asked, in one line; empty where it does not
        tell.
        """
        return self.wait_for(self._listed)

    async def models(self) -> list[dict[str, Any]]:
        """The models that the server lists, each with its "id"; none where it lists none in
        time.
        """
        import aiohttp

        try:
            async with asyncio.timeout(_SHORT_EXCHANGE):
                reply = await self.client.exchange("GET", "/models")
            return [each for each in json.loads(reply.body)["data"] if isinstance(each["id"], str)]
        except (
            aiohttp.ClientError,
            OSError,
            ReplyError,
            ValueError,
            KeyError,
            TypeError,
            RuntimeError,
        ):
            return []

    async def _listed(self) -> str:
        models = await self.models()
        # Whoever serves one model answers with it to any name.
        named = [model for model in models if model["id"] == self.endpoint.model] or models
        if len(named) != 1:
            return ""
        (one,) = named
        meta = one["meta"] if isinstance(one.get("meta"), dict) else {}
        told = {"root": one.get("root"), **{name: meta.get(name) for name in ("n_params", "size")}}
        more = [
            f"{name} {value}" for name, value in told.items() if value not in (None, "", one["id"])
        ]
        line = ", ".join([one["id"], *more])
        return (
            line
            if len(line) <= _LONGEST_NAME
            else f"{line[:60]} {hashlib.sha256(line.encode()).hexdigest()[:16]}"
        )

    async def _settle(self, question: Question) -> Answer:
        """Send a question until it is answered, or there is no hope that it will be."""
        failures = 0
        began = _now()
        pause = _FIRST_PAUSE
        failed = began
        place = self._looking
        self._looking = self._looking + 1
        if place and not self._known.is_set():
            # The first question finds out what the server takes, so that not all of them are
            # refused; or, if it hangs, one of those after it.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(place * _NEXT_LOOK, _FIRST_LOOK)):
                    await self._known.wait()
        while True:
            try:
                dialect = self.dialect
                outcome = await self._attempt(question)
            except BaseException:
                self._known.set()
                raise
            if isinstance(outcome, Answer):
                if cut_in_thought(outcome) and not dialect.room:
                    more = replace(self.dialect, room=self.endpoint.thinking)
                    asked = question.inquiry.decoding
                    # A server that caps tokens may have no more to give.
                    if more.tokens(asked.max_tokens) > dialect.tokens(asked.max_tokens):
                        self._learn(more, "it thinks before it answers")
                        continue
                self._known.set()
                return outcome
            if outcome.passing or outcome.dialect != self.dialect:
                self._known.set()
            if outcome.passing:
                failures += 1
                if failures > self.endpoint.retries or (
                    failures >= _FIRST_CONTACT and not self._heard
                ):
                    raise await self._end(outcome, failures, alone=self._answered > began)
                silent = self._answered < failed
                failed = _now()
                await asyncio.sleep(_varied(pause, outcome))
                pause = _longer(pause, outcome, _SILENT if silent else _ANSWERING)
            elif outcome.dialect == self.dialect:
                # Others may have learnt the dialect meanwhile; then it is enough to ask again.
                learnt = self.dialect.after(outcome, question.inquiry.decoding.extra_body or ())
                if learnt is None:
                    self._known.set()
                    raise await self._end(outcome, failures, alone=False)
                self._learn(learnt, str(outcome))

    def _learn(self, dialect: Dialect, why: str) -> None:
        before = self.dialect
        self.dialect = dialect
        if dialect != before and (told := _told(before, dialect)):
            self.found.append(f"openai:{self.endpoint.model}: {told} from here on ({why})")

    async def _attempt(self, question: Question) -> Answer | ProblemError:
        """Send it once, and a second time while the first is overdue."""
        # New questions wait at the door, so that those that are tried again go before them.
        async with contextlib.nullcontext() if question.sent else self._door:
            await self._slots.acquire()
        try:
            await self._turn()
            first = asyncio.ensure_future(self._send(question))
            try:
                factor = 1.0
                pause = _FIRST_PAUSE
                # What is paid for by the piece is not sent twice while the first may still be
                # answered.
                if self.budget is None and await self._overdue(1.0, first):
                    while not first.done():
                        second = await self._send_beside(first, factor, question)
                        if isinstance(second, Answer):
                            return second
                        if second is None:
                            factor *= _ANSWERING
                        else:
                            await asyncio.wait({first}, timeout=_varied(pause, second))
                            pause = _longer(pause, second, _ANSWERING)
                return await first
            finally:
                await _cancelled(first)
        finally:
            self._slots.release()

    async def _overdue(self, factor: float, *requests: asyncio.Future[Any]) -> bool:
        """Wait for one of some requests; whether that takes `factor` times the patience, which is
        learnt meanwhile.
        """
        since = _now()
        while not any(request.done() for request in requests):
            left = factor * self._patience(since) - (_now() - since)
            if left <= 0:
                return True
            await asyncio.wait(
                requests, timeout=min(left, _GLANCE), return_when=asyncio.FIRST_COMPLETED
            )
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
        if self.budget is not None:
            self.budget.take()
        question.sent += 1
        dialect = self.dialect
        began = _now()
        outcome: Answer | ProblemError | None = None
        try:
            outcome = await self._exchange(question, dialect)
            if isinstance(outcome, Answer):
                outcome = priced(outcome, self.price, question.inquiry)
        finally:
            if self.budget is not None:
                paid = (outcome.cost, outcome.currency) if isinstance(outcome, Answer) else (None,)
                self.budget.settle(*paid, answered=isinstance(outcome, Answer))
        if isinstance(outcome, Answer):
            self._answered = _now()
            took = self._answered - began
            self._latencies.append((began, took))
            self._refused_in_a_row = 0
            return replace(outcome, latency=took, attempts=question.sent)
        outcome.dialect = dialect
        if outcome.status == 429:
            # A server that refuses one now and then is left alone with that one; one that refuses
            # all, altogether.
            self._refused_in_a_row += 1
            if self._refused_in_a_row >= max(4, self.endpoint.concurrency):
                self._rest_until = max(self._rest_until, _now() + _varied(_FIRST_PAUSE, outcome))
        return outcome

    async def _exchange(self, question: Question, dialect: Dialect) -> Answer | ProblemError:
        import aiohttp

        sent = request_body(self.endpoint, question, dialect)
        try:
            async with asyncio.timeout(self.endpoint.timeout):
                reply = await self.client.exchange("POST", "/chat/completions", sent)
            self._heard |= reply.status < 300 or reply.status >= 400
            if reply.status != 200:
                return problem_of_status(reply.status, error_of(reply.body), reply.headers)
            answer = read_completion(reply.body, reply.headers)
        except ProblemError as problem:
            return problem
        except TimeoutError:
            return ProblemError(f"no answer within {self.endpoint.timeout:g} s", passing=True)
        except (
            ReplyError,
            aiohttp.ClientError,
            OSError,
            RuntimeError,
        ) as error:  # the last as the process ends
            return ProblemError(what_broke(error), passing=True)
        return with_instead(answer, question.inquiry, dialect)

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
        """Seconds after which an answer is overdue: by how long later ones took, or else those that
        were sent last.

        Not by those that came last: as a run ends they had waited behind others, of which there are
        none any more.
        """
        if len(self._latencies) < _FEW:
            return _LONGEST_PATIENCE
        by_turn = [took for _, took in sorted(self._latencies)]
        if len(by_turn) < _ENOUGH:
            return max(2.0, 10 * max(by_turn))
        later = sum(sent >= since for sent, _ in self._latencies)
        known = sorted(by_turn[-max(later, _LATER) :])
        # While the load falls, half of the answers tell sooner that it does than nine of ten.
        return max(
            _SHORTEST_PATIENCE, min(2 * known[len(known) * 9 // 10], 4 * known[len(known) // 2])
        )

    async def _end(self, problem: ProblemError, failures: int, *, alone: bool) -> PsyprobeError:
        """The one sentence that says why there is no answer, and what can be done."""
        where = "the server" if self.endpoint.base_url else "OpenAI's server"
        if problem.status == 401:
            told = f"{where} refuses the key ({problem}); set {KEY_VARIABLE} to one that it takes"
        elif problem.status == 403:
            told = f"{where} does not let this key use the model ({problem})"
        elif problem.status == 404:
            known = [each["id"] for each in await self.models()]
            offer = f"it offers {harmless(', '.join(known[:20]))}" if known else _ENDING
            told = f"{where} knows no such model ({problem}); {offer}"
        elif 300 <= problem.status < 400:
            told = (
                f"{where} redirects to another address ({problem}), where no question and no "
                "image is sent; set "
                f"base_url, or {URL_VARIABLE}, to the address that answers"
            )
        elif problem.status == 200:
            told = f"{where} answers with a web page, so this is another address; {_ENDING}"
        elif not problem.passing:
            told = f"{where} refuses the question ({problem})"
        elif not self._heard:
            told = (
                f"no server answers ({problem}); does base_url, or else {URL_VARIABLE}, name "
                "one that is running?"
            )
        else:
            told = (
                f"no answer after {failures} attempts, the last of which ended so: {problem}; "
                "what was answered stays, "
                "so run it again later, or with a lower concurrency or rate"
            )
        kind = LeftOutError if alone else PsyprobeError
        return kind(f"openai:{self.endpoint.model}: {told}")


def _told(before: Dialect, after: Dialect) -> str:
    """What is done otherwise, in words; nothing of a mere name."""
    dropped = sorted(after.without - before.without)
    if dropped == ["system"]:
        return "system text goes before the question"
    if dropped:
        return f"{' and '.join(dropped)} left out"
    if after.listed != before.listed:
        return (
            f"{after.listed} log-probabilities are asked for"
            if after.listed
            else "logprobs left out"
        )
    if after.room != before.room:
        return f"{after.room} tokens more for thinking"
    if (after.least, after.most) != (before.least, before.most):
        return f"max_tokens is kept within {after.least} and {after.most or 'no bound'}"
    return ""


def _client(endpoint: Endpoint) -> Connection:
    if not endpoint.base_url and not os.environ.get(KEY_VARIABLE):
        raise PsyprobeError(
            f"openai:{endpoint.model} needs a key for OpenAI's server: set {KEY_VARIABLE}, or "
            f"{URL_VARIABLE} to the "
            "address of another server"
        )
    # Servers of one's own ask for no key, and some insist on any.
    return Connection(endpoint.base_url or OPENAI, os.environ.get(KEY_VARIABLE) or "none")


def _varied(pause: float, problem: ProblemError) -> float:
    """Seconds before the next attempt: what the server asks for, or a pause of ours; never all at
    once.
    """
    return (
        pause * random.uniform(0.5, 1.0)
        if problem.wait is None
        else problem.wait * random.uniform(1.0, 1.1)
    )


def _longer(pause: float, problem: ProblemError, growth: float) -> float:
    """The next pause of ours, if this one was."""
    return min(growth * pause, _LONGEST_PAUSE) if problem.wait is None else pause


async def _cancelled(task: asyncio.Future[Any]) -> None:
    """Take a task back, and wait until its connection is free."""
    if not task.done():
        task.cancel()
        await asyncio.wait({task})


def _now() -> float:
    return asyncio.get_running_loop().time()
