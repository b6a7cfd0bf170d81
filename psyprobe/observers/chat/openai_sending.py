"""Send questions to a server, many at once, and try them again where they fail.

No more than `concurrency` questions are under way at a time, and a few spare requests. A question
is sent a second time when it has waited for twice as long as nine of ten answers took lately, or
four times as long as half of them did. The first request goes on waiting, and whichever is
answered first is taken. So no work of a slow server is thrown away, and it gets at most an eighth
more to do.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import json
import math
import os
import random
import secrets
import uuid
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.errors import PsyprobeError
from psyprobe.files.images import encode_png
from psyprobe.files.json_types import JsonObject
from psyprobe.observers.chat.event_loop import EventLoop
from psyprobe.observers.chat.openai_connection import (
    Connection,
    ReplyError,
    break_reason,
)
from psyprobe.observers.chat.openai_protocol import (
    KEY_VARIABLE,
    OPENAI,
    URL_VARIABLE,
    Dialect,
    ProblemError,
    cut_in_thought,
    error_of,
    harmless,
    has_thought,
    messages,
    problem_of_status,
    read_completion,
    settings,
    with_substitutions,
)
from psyprobe.observers.chat.prices import Budget, Price, priced
from psyprobe.observers.chat.protocol import Answer, Inquiry, eight_bit

#: Latencies that are remembered, the last ones since they change with the load; how many are
#: enough to rely on; and how many are enough for a guess.
_LATENCIES = 30
_ENOUGH = 20
_FEW = 3
#: The fewest of the questions sent last that tell how long an answer takes by now.
_LATER = 8
#: Seconds after which an answer is overdue while nothing is known, and at least; and seconds
#: between two checks whether it is overdue.
_LONGEST_PATIENCE = 60.0
_SHORTEST_PATIENCE = 0.25
_CHECK_INTERVAL = 0.25
#: Seconds of the first pause before trying again, and of the longest.
_FIRST_PAUSE = 0.25
_LONGEST_PAUSE = 60.0
#: Seconds of the pauses after which a server is tried again that answered before and now refuses
#: for good, and how many of them a question gets that may be refused for what it holds.
_PAUSES_AFTER_ANSWERS: tuple[float, ...] = (1.0, 4.0, 16.0, 60.0)
_PAUSES_OF_REFUSAL = 2
#: Factor from one pause to the next, for a server that is silent and for one that answers others.
_SILENT = 2.0
_ANSWERING = 1.4
#: Stands for images until the rest of a request is JSON; no prompt holds it.
_MARK = secrets.token_hex(16)
#: Seconds that questions wait at most until the first has found out what the server takes, and
#: seconds until the next question tries it too.
_LONGEST_TRIAL = 5.0
_TRIAL_INTERVAL = 1.0
#: Seconds that the list of models may take.
_SHORT_EXCHANGE = 10.0
#: Attempts on a server from which nothing has ever come back.
_FIRST_CONTACT = 4
#: Hint for an address where no server of the protocol answers.
_ENDING = f"does the address (base_url, or else {URL_VARIABLE}) end in /v1?"
#: Characters of the longest line about a model that is not shortened.
_LONGEST_LINE = 200
#: Drive of a grey image.
_GREY = np.float32(128 / 255)


T = TypeVar("T")


class LeftOutError(PsyprobeError):
    """A question that has no answer although others were answered meanwhile."""


@dataclass(eq=False)
class Question:
    """A question on its way to the server."""

    inquiry: Inquiry
    #: Data URLs of the images as JSON holds them, those of the examples first.
    urls: Sequence[bytes]
    #: How often it was sent.
    attempts: int = 0


@dataclass(frozen=True)
class Endpoint:
    """Where and how questions are sent; it lacks the key, and its repr lacks the address."""

    model: str
    base_url: str | None = field(repr=False)
    concurrency: int
    rate: float | None
    timeout: float
    retries: int
    detail: str
    thinking: int


def request_body(endpoint: Endpoint, question: Question, dialect: Dialect) -> bytes:
    """Build the JSON body of a chat-completions request for a question."""
    marks = [f"image {i} {_MARK}" for i in range(len(question.urls))]
    request = {
        "model": endpoint.model,
        "messages": messages(question.inquiry, marks, endpoint.detail, dialect),
        **settings(question.inquiry.decoding, dialect),
    }
    body = json.dumps(request).encode()
    for mark, url in zip(marks, question.urls, strict=True):
        # Images go in last: escaping one as JSON takes longer than sending it.
        body = body.replace(mark.encode(), url, 1)
    return body


class Sender:
    """Sends questions from a thread with an event loop of its own.

    Attributes
    ----------
    price : Price, optional
        What questions cost, where that is known.
    budget : Budget, optional
        What may be spent on them.
    notices : deque of str
        What the server turned out to refuse, as sentences for warnings that are still to be given.
    """

    price: Price | None = None
    budget: Budget | None = None

    def __init__(self, endpoint: Endpoint) -> None:
        key = os.environ.get(KEY_VARIABLE)
        if not endpoint.base_url and not key:
            raise PsyprobeError(
                f"openai:{endpoint.model} needs a key for OpenAI's server: set {KEY_VARIABLE}, or "
                f"{URL_VARIABLE} to the address of another server"
            )
        # A user's own server needs no key, but some insist on any.
        self.client = Connection(endpoint.base_url or OPENAI, key or "none")
        self.endpoint = endpoint
        self.dialect = Dialect()
        self.pid = os.getpid()
        self.notices: deque[str] = deque()
        #: When the last answer came, the latest time at which a question was sent that was
        #: answered, and whether the server has ever responded.
        self._answer_time = -math.inf
        self._question_time = -math.inf
        self._has_responded = False
        self._questions = 0
        self._dialect_settled = asyncio.Event()
        #: Whether it sends thinking without an opening tag; None before that was tried.
        self._thinks_untagged: bool | None = None
        self._trial = asyncio.Lock()
        #: When a question that was answered was sent, and how long it took.
        self._latencies: deque[tuple[float, float]] = deque(maxlen=_LATENCIES)
        self._next_turn = 0.0
        self._rest_until = 0.0
        self._refusals_in_a_row = 0
        self._slots = asyncio.Semaphore(endpoint.concurrency)
        self._entrance = asyncio.Lock()
        self._spare_slots = asyncio.Semaphore(max(1, endpoint.concurrency // 8))
        self._loop = EventLoop("openai-sender")

    def submit(self, question: Question) -> Future[Answer]:
        """Send a question as soon as the server has room; cancelling the future takes it back."""
        return self._loop.submit(self._settle, question)

    def close(self) -> None:
        """Cancel all requests and close all connections."""
        self._loop.close(last=self.client.close)

    def wait_for(
        self, exchange: Callable[..., Coroutine[Any, Any, T]], *arguments: Any
    ) -> T:
        """Run an exchange with the server in the sending thread, and return its result."""
        return self._loop.submit(exchange, *arguments).result()

    async def models(self) -> list[JsonObject]:
        """List the server's models, each with its "id"; none if no list comes in time."""
        import aiohttp

        try:
            async with asyncio.timeout(_SHORT_EXCHANGE):
                reply = await self.client.exchange("GET", "/models")
            models = json.loads(reply.body)["data"]
            return [model for model in models if isinstance(model["id"], str)]
        except (aiohttp.ClientError, OSError, ReplyError, RuntimeError):
            return []
        except (ValueError, KeyError, TypeError):  # of a list in another form
            return []

    async def describe_model(self) -> str:
        """Describe in one line what the server lists about the model; "" if nothing."""
        models = await self.models()
        # A server of a single model answers with it to any name.
        candidates = [
            model for model in models if model["id"] == self.endpoint.model
        ] or models
        if len(candidates) != 1:
            return ""
        (model,) = candidates
        meta = model["meta"] if isinstance(model.get("meta"), dict) else {}
        details = {"root": model.get("root")}
        details |= {name: meta.get(name) for name in ("n_params", "size")}
        usual = (None, "", model["id"])
        texts = [
            f"{name} {value}" for name, value in details.items() if value not in usual
        ]
        line = ", ".join([model["id"], *texts])
        digest = hashlib.sha256(line.encode()).hexdigest()[:16]
        return line if len(line) <= _LONGEST_LINE else f"{line[:60]} {digest}"

    async def _settle(self, question: Question) -> Answer:
        """Send a question again and again until it is answered, refused or hopeless."""
        start = _now()
        failure_time = start
        failures = 0
        pause = _FIRST_PAUSE
        refusal_time = math.inf
        refusals = 0
        await self._wait_for_dialect()
        while True:
            dialect = self.dialect
            try:
                outcome = await self._attempt(question)
            except BaseException:
                self._dialect_settled.set()
                raise
            if isinstance(outcome, Answer):
                roomier = replace(self.dialect, room=self.endpoint.thinking)
                max_tokens = question.inquiry.decoding.max_tokens
                # A server that caps tokens may have no more to give.
                has_more = roomier.tokens(max_tokens) > dialect.tokens(max_tokens)
                if (
                    has_more
                    and not dialect.room
                    and await self._is_thought(question, outcome)
                ):
                    self._learn(roomier, "it thinks before it answers")
                    continue
                self._dialect_settled.set()
                return outcome
            if outcome.passing or outcome.dialect != self.dialect:
                self._dialect_settled.set()
            if outcome.passing:
                failures += 1
                hopeless = failures >= _FIRST_CONTACT and not self._has_responded
                if failures > self.endpoint.retries or hopeless:
                    others_answered = self._answer_time > start
                    raise await self._error(outcome, failures, others_answered)
                growth = _SILENT if self._answer_time < failure_time else _ANSWERING
                failure_time = _now()
                await asyncio.sleep(_jittered(pause, outcome))
                pause = _next_pause(pause, outcome, growth)
            elif outcome.dialect == self.dialect:
                # If others have learnt the dialect meanwhile, it is enough to ask again.
                dialect_after = self.dialect.after(
                    outcome, question.inquiry.decoding.extra_body or ()
                )
                if dialect_after is not None:
                    self._learn(dialect_after, str(outcome))
                    continue
                self._dialect_settled.set()
                refusal_time = min(refusal_time, _now())
                pauses = _PAUSES_AFTER_ANSWERS
                if outcome.is_refusal:
                    pauses = pauses[:_PAUSES_OF_REFUSAL]
                if refusals < len(pauses) and self._answer_time > -math.inf:
                    # One odd moment is no reason to end a night.
                    await asyncio.sleep(_jittered(pauses[refusals], outcome))
                    refusals += 1
                elif outcome.is_refusal and await self._answers_others(
                    question, refusal_time
                ):
                    return outcome.as_answer(question.attempts)
                else:
                    others_answered = self._answer_time > refusal_time
                    raise await self._error(outcome, failures, others_answered)

    async def _answers_others(self, question: Question, since: float) -> bool:
        """Tell whether the server answers other questions while it refuses one.

        Where none was sent and answered since a time, it is asked for a word about grey images.
        """
        control = _control_question(question)
        for pause in _PAUSES_AFTER_ANSWERS:
            if self._question_time >= since:
                return True
            outcome = await self._attempt(control)
            if isinstance(outcome, ProblemError):
                if not outcome.passing:
                    return False
                await asyncio.sleep(_jittered(pause, outcome))
        return self._question_time >= since

    async def _wait_for_dialect(self) -> None:
        """Wait until the first question has found out which request fields the server takes.

        If that one hangs, those after it try, one after the other.
        """
        position = self._questions
        self._questions += 1
        if position and not self._dialect_settled.is_set():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(
                    min(position * _TRIAL_INTERVAL, _LONGEST_TRIAL)
                ):
                    await self._dialect_settled.wait()

    async def _is_thought(self, question: Question, answer: Answer) -> bool:
        """Tell whether an answer ended before its thinking did.

        Some servers send thinking without the tag that opens it. So the first answer that is cut
        off and begins with none of the question's words is asked for once more, with more tokens:
        the tag that closes the thinking tells. Others wait for what comes of it.
        """
        if cut_in_thought(answer):
            return True
        inquiry = question.inquiry
        text = answer.text.strip().casefold()
        is_cut = answer.finish == "length" and text
        if not is_cut or text.startswith(tuple(map(str.casefold, inquiry.words))):
            return False
        async with self._trial:
            if self._thinks_untagged is None:
                max_tokens = inquiry.decoding.max_tokens + self.endpoint.thinking
                decoding = replace(inquiry.decoding, max_tokens=max_tokens)
                trial = replace(question, inquiry=replace(inquiry, decoding=decoding))
                outcome = await self._attempt(trial)
                if isinstance(outcome, Answer):
                    self._thinks_untagged = has_thought(outcome)
                elif not outcome.passing:
                    self._thinks_untagged = False
        return bool(self._thinks_untagged)

    def _learn(self, dialect: Dialect, reason: str) -> None:
        """Adopt the request fields that the server accepts, and note the change."""
        change = _describe_change(self.dialect, dialect)
        self.dialect = dialect
        if change:
            self.notices.append(
                f"openai:{self.endpoint.model}: {change} from here on ({reason})"
            )

    async def _attempt(self, question: Question) -> Answer | ProblemError:
        """Send a question once, and again while the first request is overdue."""
        # New questions wait at the entrance, so that those that are tried again go before them.
        async with contextlib.nullcontext() if question.attempts else self._entrance:
            await self._slots.acquire()
        try:
            await self._wait_for_turn()
            first = asyncio.ensure_future(self._send(question))
            try:
                # What is paid for by the piece is not sent twice while the first request may still
                # be answered.
                if self.budget is None and await self._is_overdue(1.0, first):
                    factor = 1.0
                    pause = _FIRST_PAUSE
                    while not first.done():
                        second = await self._send_beside(first, factor, question)
                        if isinstance(second, Answer):
                            return second
                        if second is None:
                            factor *= _ANSWERING
                        else:
                            await asyncio.wait(
                                {first}, timeout=_jittered(pause, second)
                            )
                            pause = _next_pause(pause, second, _ANSWERING)
                return await first
            finally:
                await _cancel(first)
        finally:
            self._slots.release()

    async def _is_overdue(self, factor: float, *requests: asyncio.Future[Any]) -> bool:
        """Wait for the first of some requests, and tell whether none came in time.

        Returns True where none of them is done by then. The patience is updated meanwhile.
        """
        start = _now()
        timeout = _CHECK_INTERVAL  # no patience is shorter
        while True:
            await asyncio.wait(
                requests, timeout=timeout, return_when=asyncio.FIRST_COMPLETED
            )
            if any(request.done() for request in requests):
                return False
            remaining = factor * self._patience(start) - (_now() - start)
            if remaining <= 0:
                return True
            timeout = min(remaining, _CHECK_INTERVAL)

    async def _send_beside(
        self, first: asyncio.Future[Any], factor: float, question: Question
    ) -> Answer | ProblemError | None:
        """Send a question again beside an overdue request; None unless this one is faster."""
        async with self._spare_slots:
            await self._wait_for_turn()
            if first.done():
                return None
            second = asyncio.ensure_future(self._send(question))
            try:
                await self._is_overdue(factor, first, second)
                return second.result() if second.done() and not first.done() else None
            finally:
                await _cancel(second)

    async def _send(self, question: Question) -> Answer | ProblemError:
        """Send one request and count its cost, returning the answer or what went wrong."""
        if self.budget is not None:
            self.budget.take()
        question.attempts += 1
        dialect = self.dialect
        start = _now()
        answer = None
        try:
            outcome = await self._exchange(question, dialect)
            if isinstance(outcome, Answer):
                outcome = answer = priced(outcome, self.price, question.inquiry)
        finally:
            if self.budget is not None:
                self.budget.settle(answer)
        if isinstance(outcome, ProblemError):
            outcome.dialect = dialect
            if outcome.status == 429:
                self._rest_after(outcome)
            return outcome
        self._answer_time = _now()
        self._question_time = max(self._question_time, start)
        latency = self._answer_time - start
        self._latencies.append((start, latency))
        self._refusals_in_a_row = 0
        return replace(outcome, latency=latency, attempts=question.attempts)

    def _rest_after(self, problem: ProblemError) -> None:
        """Pause all requests to a server that is too busy for any question.

        Of a server that refuses one now and then, only that question waits.
        """
        self._refusals_in_a_row += 1
        if self._refusals_in_a_row >= max(4, self.endpoint.concurrency):
            rest_until = _now() + _jittered(_FIRST_PAUSE, problem)
            self._rest_until = max(self._rest_until, rest_until)

    async def _exchange(
        self, question: Question, dialect: Dialect
    ) -> Answer | ProblemError:
        """Send one question to the server, and return its answer or what went wrong."""
        import aiohttp

        body = request_body(self.endpoint, question, dialect)
        try:
            async with asyncio.timeout(self.endpoint.timeout):
                reply = await self.client.exchange("POST", "/chat/completions", body)
            self._has_responded |= not 300 <= reply.status < 400
            if reply.status != 200:
                return problem_of_status(
                    reply.status, error_of(reply.body), reply.headers
                )
            answer = read_completion(reply.body, reply.headers)
        except ProblemError as problem:
            return problem
        except TimeoutError:
            # The status by which a server says this itself.
            return ProblemError(
                f"no answer within {self.endpoint.timeout:g} s",
                status=408,
                passing=True,
            )
        # A RuntimeError comes as the process ends.
        except (ReplyError, aiohttp.ClientError, OSError, RuntimeError) as error:
            return ProblemError(break_reason(error), passing=True)
        return with_substitutions(answer, question.inquiry, dialect)

    async def _wait_for_turn(self) -> None:
        """Wait until pauses are over and the rate limit allows a request."""
        while (rest := self._rest_until - _now()) > 0:
            await asyncio.sleep(rest)
        if self.endpoint.rate:
            start = _now()
            turn = max(start, self._next_turn)
            self._next_turn = turn + 1 / self.endpoint.rate
            await asyncio.sleep(turn - start)

    def _patience(self, since: float) -> float:
        """Compute the seconds after which an answer is overdue.

        It follows the latencies of questions sent since a time, or else of those sent last. Those
        that came last do not count: as a run ends they had waited behind others, and there are no
        others any more.
        """
        if len(self._latencies) < _FEW:
            return _LONGEST_PATIENCE
        latencies = [latency for _, latency in sorted(self._latencies)]
        if len(latencies) < _ENOUGH:
            return max(2.0, 10 * max(latencies))
        later = sum(start >= since for start, _ in self._latencies)
        recent = sorted(latencies[-max(later, _LATER) :])
        # While the load falls, the median shows it sooner than the 90th percentile.
        patience = min(2 * recent[len(recent) * 9 // 10], 4 * recent[len(recent) // 2])
        return max(_SHORTEST_PATIENCE, patience)

    async def _error(
        self, problem: ProblemError, failures: int, others_answered: bool
    ) -> PsyprobeError:
        """Build the error that says why there is no answer, and what can be done."""
        server = "the server" if self.endpoint.base_url else "OpenAI's server"
        if problem.status == 401:
            reason = (
                f"{server} refuses the key ({problem}); set {KEY_VARIABLE} to one that it "
                "takes"
            )
        elif problem.status == 403:
            reason = f"{server} does not let this key use the model ({problem})"
        elif problem.status == 404:
            names = ", ".join([model["id"] for model in await self.models()][:20])
            offer = f"it offers {harmless(names)}" if names else _ENDING
            reason = f"{server} knows no such model ({problem}); {offer}"
        elif 300 <= problem.status < 400:
            reason = (
                f"{server} redirects to another address ({problem}), where no question and no "
                f"image is sent; set base_url, or {URL_VARIABLE}, to the address that answers"
            )
        elif problem.status == 200:
            reason = f"{server} answers with a web page, so this is another address; {_ENDING}"
        elif not problem.passing:
            reason = f"{server} refuses the question ({problem})"
        elif not self._has_responded:
            reason = (
                f"no server answers ({problem}); does base_url, or else {URL_VARIABLE}, name "
                "one that is running?"
            )
        else:
            reason = (
                f"no answer after {failures} attempts, the last of which ended so: {problem}; what "
                "was answered stays, so run it again later, or with a lower concurrency or rate"
            )
        kind = LeftOutError if others_answered else PsyprobeError
        error = kind(f"openai:{self.endpoint.model}: {reason}")
        # By its status a failure is named: a server that is down, a key, a quota.
        error.__cause__ = problem
        return error


def data_url(image: FloatArray) -> bytes:
    """Encode an 8-bit image as a PNG in a data URL."""
    png = encode_png(eight_bit(image), noise=True)
    return b"data:image/png;base64," + base64.b64encode(png)


def control_prompt() -> str:
    """Build a harmless prompt that no cache has seen, to test whether the server answers."""
    return f"Answer with yes. ({uuid.uuid4().hex[:8]})"


def _control_question(question: Question) -> Question:
    """Build a harmless question of the same form, about grey images."""
    images = tuple(
        np.full(image.shape, _GREY, np.float32) for image in question.inquiry.images
    )
    inquiry = replace(question.inquiry, prompt=control_prompt(), images=images)
    example_urls = question.urls[: len(question.urls) - len(images)]
    return Question(inquiry, [*example_urls, *map(data_url, images)])


def _describe_change(before: Dialect, after: Dialect) -> str:
    """Describe how requests to a server change; "" if only a field's name does."""
    dropped = [name for name in after.without if name not in before.without]
    if dropped == ["system"]:
        return "system text goes before the question"
    if dropped:
        return f"{' and '.join(dropped)} left out"
    if after.listed != before.listed:
        listed = f"{after.listed} log-probabilities are asked for"
        return listed if after.listed else "logprobs left out"
    if after.room != before.room:
        return f"{after.room} tokens more for thinking"
    if (after.least, after.most) != (before.least, before.most):
        return f"max_tokens is kept within {after.least} and {after.most or 'no bound'}"
    return ""


def _jittered(pause: float, problem: ProblemError) -> float:
    """Compute the seconds to pause: as the server asks, or a pause varied at random.

    So questions that failed together are not sent again together.
    """
    if problem.wait is None:
        return pause * random.uniform(0.5, 1.0)
    return problem.wait * random.uniform(1.0, 1.1)


def _next_pause(pause: float, problem: ProblemError, growth: float) -> float:
    """Compute the next pause before a retry, s: the last times `growth`, or as the server asks."""
    return min(growth * pause, _LONGEST_PAUSE) if problem.wait is None else pause


async def _cancel(task: asyncio.Future[Any]) -> None:
    """Cancel a task, and wait until its connection is free."""
    if not task.done():
        task.cancel()
        await asyncio.wait({task})


def _now() -> float:
    """Return the event loop's time, s."""
    return asyncio.get_running_loop().time()
