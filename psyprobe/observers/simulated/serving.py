"""HTTP/1.1 with just enough of it for a chat-completions server that can go wrong on purpose."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import json
import random
import socket
import struct
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from typing import Any

from psyprobe.errors import InputError, PsyprobeError
from psyprobe.observers.chat.answering import AnswerObserver
from psyprobe.observers.simulated.completions import Behaviour, Completions, RefusalError
from psyprobe.observers.simulated.faults import Faults

_LARGEST_BODY = 64 * 2**20
_LARGEST_HEAD = 64 * 2**10


class SimulatedServer:
    """A server on loopback, in a thread of its own; `serve` makes one.

    Attributes
    ----------
    base_url : str
        What clients call the server by: ``http://127.0.0.1:PORT/v1``.
    model : str
        The name under which the observer answers.
    counts : Counter
        Requests by what became of them: "answered", "refused", "unauthorised", and the kinds of faults.
    asked : Counter
        How often each question was answered, by digest.
    """

    def __init__(
        self,
        observer: AnswerObserver,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        faults: Faults = Faults(),  # noqa: B008 - immutable
        latency: float | tuple[float, float] = 0.0,
        behaviour: Behaviour = Behaviour(),  # noqa: B008 - immutable
        model: str | None = None,
    ) -> None:
        low, high = latency if isinstance(latency, tuple) else (latency, latency)
        if not 0 <= low <= high < float("inf"):
            raise InputError(f"latency is {latency} s; give seconds >= 0, or a pair (least, most) of them")
        if not 0 <= port <= 65535:
            raise InputError(f"port is {port}; give a whole number from 0 (any that is free) to 65535")
        self.model = observer.card.name if model is None else model
        self.counts: Counter[str] = Counter()
        self._completions = Completions(observer, behaviour, self.model)
        self._faults = faults
        self._draws = faults.draws()
        self._latency = (low, high)
        self._random = random.Random(faults.seed + 1)
        self._worker = ThreadPoolExecutor(1, "simulated-observer")
        self._loop = asyncio.new_event_loop()
        self._connections: set[asyncio.Task[None]] = set()
        try:
            self._server = self._loop.run_until_complete(
                asyncio.start_server(self._accept, host, port, limit=_LARGEST_HEAD)
            )
        except OSError as error:
            self._loop.close()
            raise PsyprobeError(
                f"cannot listen on {host}:{port}: {error.strerror or error}; give another port"
            ) from None
        self.port = int(self._server.sockets[0].getsockname()[1])
        self.base_url = f"http://{host}:{self.port}/v1"
        self._thread = threading.Thread(target=self._run, name="simulated-server", daemon=True)
        self._thread.start()

    def __repr__(self) -> str:
        return f"SimulatedServer({self.model!r}, {self.base_url!r})"

    @property
    def asked(self) -> Counter[str]:
        """How often each question was answered, by the digest of its body."""
        return self._completions.asked

    def close(self) -> None:
        """Stop answering, and close what is open."""
        if self._loop.is_closed():
            return
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.run_until_complete(self._shut())
        self._loop.close()
        self._worker.shutdown()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    async def _shut(self) -> None:
        self._server.close()
        # A connection that is just being accepted becomes a conversation only later.
        while others := asyncio.all_tasks() - {asyncio.current_task()}:
            for each in others:
                each.cancel()
            await asyncio.gather(*others, return_exceptions=True)
        await self._server.wait_closed()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = self._loop.create_task(self._converse(reader, writer))
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One request after the other, until the client or a fault ends it."""
        try:
            while await self._exchange(reader, writer):
                pass
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError, asyncio.CancelledError):
                await writer.wait_closed()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        start, *lines = head.split("\r\n")
        headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        method, path, *_ = [*start.split(" "), "", ""]
        length = headers.get("content-length", "0")
        if not length.isdigit() or int(length) > _LARGEST_BODY or "transfer-encoding" in headers:
            await _send(writer, 413, {"error": {"message": "Send a Content-Length of at most 64 MiB."}})
            return False
        body = await reader.readexactly(int(length))
        fault = ""
        try:
            self._authorise(headers)
            if (method, path) == ("POST", "/v1/chat/completions"):
                fault = self._draws.next()
                reply = await self._complete(fault, body)
            elif (method, path) == ("GET", "/v1/models"):
                reply = self._completions.models()
            else:
                raise RefusalError(404, f"There is nothing at {method} {path}.")
        except RefusalError as refusal:
            self.counts["unauthorised" if refusal.status == 401 else fault or "refused"] += 1
            extra = {"Retry-After": f"{self._faults.retry_after:g}"} if refusal.status == 429 else {}
            await _send(writer, refusal.status, refusal.body, extra)
            return True
        if fault == "hang":
            self.counts[fault] += 1
            await reader.read()  # returns when the client gives up
            return False
        if fault == "reset":
            self.counts[fault] += 1
            connection = writer.get_extra_info("socket")
            # Lingering for 0 s makes closing a reset.
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()
            return False
        self.counts[fault or ("answered" if method == "POST" else "listed")] += 1
        await _send(writer, 200, reply, cut=fault == "truncated")
        return True

    def _authorise(self, headers: dict[str, str]) -> None:
        key = self._completions.behaviour.key
        if key is not None and not hmac.compare_digest(
            headers.get("authorization", "").encode(), f"Bearer {key}".encode()
        ):
            raise RefusalError(401, "Incorrect API key provided.", code="invalid_api_key")

    async def _complete(self, fault: str, body: bytes) -> dict[str, Any]:
        if fault == "overload":
            raise RefusalError(429, "Rate limit reached; try again later.", code="rate_limit_exceeded")
        if fault in ("hang", "reset"):
            return {}
        began = self._loop.time()
        if fault != "error":
            reply = await self._loop.run_in_executor(self._worker, self._completions.complete, body)
        await asyncio.sleep(max(0.0, began + self._random.uniform(*self._latency) - self._loop.time()))
        if fault == "error":
            raise RefusalError(500, "The server had an error while processing your request.")
        return reply


@contextlib.contextmanager
def serve(
    observer: AnswerObserver,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    faults: Faults = Faults(),  # noqa: B008 - immutable
    latency: float | tuple[float, float] = 0.0,
    behaviour: Behaviour = Behaviour(),  # noqa: B008 - immutable
    model: str | None = None,
) -> Iterator[SimulatedServer]:
    """Serve an observer over HTTP while the context lasts.

    Parameters
    ----------
    observer : AnswerObserver
        Who answers; it is asked one question at a time.
    host : str
        Address to listen on; loopback unless given.
    port : int
        0 for any that is free.
    faults : Faults
        What goes wrong.
    latency : float or (float, float)
        Seconds that an answer takes at least, or a range from which it is drawn.
    behaviour : Behaviour
        What is refused or left out for good, and which key is asked for.
    model : str, optional
        What clients call it; the observer's name if not given.

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
    server = SimulatedServer(
        observer, host=host, port=port, faults=faults, latency=latency, behaviour=behaviour, model=model
    )
    try:
        yield server
    finally:
        server.close()


async def _send(
    writer: asyncio.StreamWriter, status: int, value: Any, extra: dict[str, str] | None = None, *, cut: bool = False
) -> None:
    body = json.dumps(value).encode()
    if cut:
        body = body[: len(body) // 2]
    headers = {
        "Content-Type": "application/json",
        "Content-Length": str(len(body)),
        "Server": "psyprobe",
        **(extra or {}),
    }
    lines = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}", *(f"{name}: {value}" for name, value in headers.items())]
    writer.write("\r\n".join([*lines, "", ""]).encode("latin-1") + body)
    await writer.drain()
