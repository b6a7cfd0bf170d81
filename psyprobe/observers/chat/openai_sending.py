"""How questions get to a server: many at once, paced, tried again when they fail, and asked twice when one hangs.

No more than `concurrency` questions are under way at a time, and a few spare requests: when a question waits for longer
than four times what nine of ten answers took lately, it is sent a second time while the first goes on waiting, and
whichever answers first is taken. What a slow server is working on is so never thrown away, and it gets at most an
eighth more to do.
"""

from __future__ import annotations

import asyncio
import os
import random
import threading
import time
from collections import deque
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Any

from psyprobe.errors import PsyprobeError
from psyprobe.observers.chat.answering import Answer, Decoding
from psyprobe.observers.chat.openai_protocol import (
    KEY_VARIABLE,
    URL_VARIABLE,
    Dialect,
    ProblemError,
    messages,
    problem_of_status,
    read_completion,
    settings,
)

#: Answers from which it is learnt how long one takes: the last ones; enough to trust; enough for a guess.
_LATENCIES, _ENOUGH, _FEW = 200, 20, 3
#: Seconds after which an answer is overdue while nothing is known, and between looks at whether it is.
_LONGEST_PATIENCE, _GLANCE = 60.0, 0.5
#: Seconds of the first pause before trying again, and of the longest.
_FIRST_PAUSE, _LONGEST_PAUSE = 0.25, 60.0
#: Attempts on a server from which nothing has ever come back.
_FIRST_CONTACT = 4


#: By this header the client library hands over a response as it came.
_RAW = {"X-Stainless-Raw-Response": "true"}


@dataclass(frozen=True)
class Question:
    """What is sent: an `Inquiry` with its images as data URLs."""

    prompt: str
    urls: tuple[str, ...]
    system: str
    decoding: Decoding


@dataclass(frozen=True)
class Endpoint:
    """Where and how questions are sent; the key is not in it, and the address is not shown."""

    model: str
    base_url: str | None
    concurrency: int
    rate: float | None
    timeout: float
    retries: int
    detail: str

    def __repr__(self) -> str:
        return f"Endpoint({self.model!r})"


class Sender:
    """Sends questions from a thread with an event loop of its own."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._client = _client(endpoint)
        self.endpoint = endpoint
        self.dialect = Dialect()
        self.pid = os.getpid()
        self._heard = False
        self._latencies: deque[float] = deque(maxlen=_LATENCIES)
        self._next_turn = 0.0
        self._refused_in_a_row = 0
        self._rest_until = 0.0
        self._slots = asyncio.Semaphore(endpoint.concurrency)
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

    async def models(self) -> list[str]:
        """Names of the models that the server lists; empty where it lists none."""
        import openai

        try:
            raw = await self._client.models.with_raw_response.list(timeout=10.0)
            return [str(each["id"]) for each in raw.http_response.json()["data"]]
        except (openai.OpenAIError, ValueError, KeyError, TypeError):
            return []

    async def _shut(self) -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await self._client.close()

    async def _settle(self, question: Question) -> Answer:
        """Send a question until it is answered, or there is no hope that it will be."""
        sent = _Count()
        failures = 0
        while True:
            outcome = await self._attempt(question, sent)
            if isinstance(outcome, Answer):
                return replace(outcome, attempts=sent.number)
            if outcome.passing:
                failures += 1
                most = self.endpoint.retries + 1 if self._heard else min(self.endpoint.retries + 1, _FIRST_CONTACT)
                if failures >= most:
                    raise await self._end(outcome, failures)
                await asyncio.sleep(_pause(failures, outcome.wait))
            elif outcome.dialect == self.dialect:
                # Others may have learnt the dialect meanwhile; then it is enough to ask again.
                learnt = self.dialect.after(outcome)
                if learnt is None:
                    raise await self._end(outcome, failures)
                self.dialect = learnt

    async def _attempt(self, question: Question, sent: _Count) -> Answer | ProblemError:
        """Send it once, and a second time while the first is overdue."""
        async with self._slots:
            await self._turn()
            first = asyncio.ensure_future(self._send(question, sent))
            try:
                factor, failures = 1.0, 0
                while await self._overdue(first, factor):
                    second = await self._send_beside(first, factor, question, sent)
                    while isinstance(second, ProblemError) and not first.done():
                        failures += 1
                        await asyncio.wait({first}, timeout=_pause(failures, second.wait))
                        second = await self._send_beside(first, factor, question, sent)
                    if isinstance(second, Answer):
                        return second
                    factor *= 2
                return await first
            finally:
                await _cancelled(first)

    async def _overdue(self, first: asyncio.Future[Any], factor: float) -> bool:
        """Wait for a request; whether it takes longer than `factor` times the patience, which is learnt meanwhile."""
        since = time.monotonic()
        while not first.done():
            left = factor * self._patience() - (time.monotonic() - since)
            if left <= 0:
                return True
            await asyncio.wait({first}, timeout=min(left, _GLANCE))
        return False

    async def _send_beside(
        self, first: asyncio.Future[Any], factor: float, question: Question, sent: _Count
    ) -> Answer | ProblemError | None:
        """What comes of the question sent a second time, if it comes soon and before the first."""
        async with self._spare:
            await self._turn()
            if first.done():
                return None
            second = asyncio.ensure_future(self._send(question, sent))
            try:
                soon = 2 * factor * self._patience()
                await asyncio.wait({first, second}, timeout=soon, return_when=asyncio.FIRST_COMPLETED)
                return second.result() if second.done() and not first.done() else None
            finally:
                await _cancelled(second)

    async def _send(self, question: Question, sent: _Count) -> Answer | ProblemError:
        """One request; what went wrong is returned."""
        sent.number += 1
        dialect = self.dialect
        began = time.monotonic()
        outcome = await self._exchange(question, dialect)
        if isinstance(outcome, Answer):
            took = time.monotonic() - began
            self._latencies.append(took)
            self._refused_in_a_row = 0
            return replace(outcome, latency=took)
        outcome.dialect = dialect
        if outcome.status == 429:
            # A server that refuses one now and then is left alone with that one; one that refuses all, altogether.
            self._refused_in_a_row += 1
            if self._refused_in_a_row >= max(4, self.endpoint.concurrency):
                self._rest_until = max(self._rest_until, time.monotonic() + _pause(1, outcome.wait))
        return outcome

    async def _exchange(self, question: Question, dialect: Dialect) -> Answer | ProblemError:
        import openai

        try:
            # As chat.completions.with_raw_response.create does, without its walk through the body, which takes longer
            # than all the rest.
            raw = await self._client.post(
                "/chat/completions",
                cast_to=object,
                body={
                    "model": self.endpoint.model,
                    "messages": messages(question.prompt, question.urls, question.system, self.endpoint.detail),
                    **settings(question.decoding, dialect),
                },
                options={"headers": _RAW},
            )
            self._heard = True
            return read_completion(raw.content, raw.headers)
        except ProblemError as problem:
            return problem
        except openai.APITimeoutError:
            return ProblemError(f"no answer within {self.endpoint.timeout:g} s", passing=True)
        except openai.APIConnectionError as error:
            return ProblemError(_of_connection(error), passing=True)
        except openai.APIStatusError as error:
            self._heard = True
            return problem_of_status(error.status_code, error.body or error.message, error.response.headers)
        except openai.OpenAIError as error:
            return ProblemError(f"the client cannot send it ({type(error).__name__})")

    async def _turn(self) -> None:
        """Wait while the server rests, and until the rate allows a request."""
        while (rest := self._rest_until - time.monotonic()) > 0:
            await asyncio.sleep(rest)
        if self.endpoint.rate:
            now = time.monotonic()
            turn = max(now, self._next_turn)
            self._next_turn = turn + 1 / self.endpoint.rate
            await asyncio.sleep(turn - now)

    def _patience(self) -> float:
        """Seconds after which an answer is overdue, by how long the last ones took."""
        known = sorted(self._latencies)
        if len(known) < _FEW:
            return _LONGEST_PATIENCE
        if len(known) < _ENOUGH:
            return max(2.0, 10 * known[-1])
        return max(0.5, 4 * known[len(known) * 9 // 10])

    async def _end(self, problem: ProblemError, failures: int) -> PsyprobeError:
        """The one sentence that says why there is no answer, and what can be done."""
        where = "the server" if self.endpoint.base_url else "OpenAI's server"
        if problem.status == 401:
            told = f"{where} refuses the key ({problem}); set {KEY_VARIABLE} to one that it takes"
        elif problem.status == 403:
            told = f"{where} does not let this key use the model ({problem})"
        elif problem.status == 404:
            known = await self.models()
            offer = f"it offers {', '.join(known[:20])}" if known else f"does {URL_VARIABLE} end in /v1?"
            told = f"{where} knows no such model ({problem}); {offer}"
        elif not problem.passing:
            told = f"{where} refuses the question ({problem})"
        elif not self._heard:
            told = f"no server answers ({problem}); does {URL_VARIABLE} name one that is running?"
        else:
            told = (
                f"no answer after {failures} attempts, the last of which ended so: {problem}; what was answered stays, "
                "so run it again later, or with a lower concurrency or rate"
            )
        return PsyprobeError(f"openai:{self.endpoint.model}: {told}")


class _Count:
    """How often a question was sent."""

    number = 0


def _client(endpoint: Endpoint) -> Any:
    import openai

    if not endpoint.base_url and not os.environ.get(KEY_VARIABLE):
        raise PsyprobeError(
            f"openai:{endpoint.model} needs a key for OpenAI's server: set {KEY_VARIABLE}, or {URL_VARIABLE} to the "
            "address of another server"
        )
    # Servers of one's own ask for no key, but the client insists on one.
    return openai.AsyncOpenAI(
        api_key=os.environ.get(KEY_VARIABLE) or "none",
        base_url=endpoint.base_url,
        timeout=endpoint.timeout,
        max_retries=0,
    )


async def _cancelled(task: asyncio.Future[Any]) -> None:
    """Take a task back, and wait until its connection is free."""
    if not task.done():
        task.cancel()
        await asyncio.wait({task})


def _pause(failures: int, asked: float | None) -> float:
    """Seconds before the next attempt: what the server asks for, or twice as long each time; never all at once."""
    if asked is not None:
        return asked * random.uniform(1.0, 1.1)
    return min(_FIRST_PAUSE * 2.0 ** (failures - 1), _LONGEST_PAUSE) * random.uniform(0.5, 1.0)


def _of_connection(error: BaseException) -> str:
    """What broke a connection, without the address that libraries put into their messages."""
    text = ""
    cause: BaseException | None = error
    while cause is not None:
        text += f" {type(cause).__name__} {cause}".casefold()
        cause = cause.__cause__ or cause.__context__
    return next((meaning for sign, meaning in _CONNECTION.items() if sign in text), "the connection broke")


_CONNECTION: Mapping[str, str] = {
    "refused": "connection refused",
    "all connection attempts failed": "connection refused",
    "name or service not known": "its name is not known",
    "name resolution": "its name is not known",
    "nodename nor servname": "its name is not known",
    "certificate": "its certificate is not trusted",
    "unreachable": "the network does not reach it",
}
