"""A chat-completions server, on starlette and uvicorn, that can go wrong on purpose."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import importlib.util
import json
import random
import socket
import struct
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from psyprobe.errors import InputError, PsyprobeError
from psyprobe.observers.chat.answering import AnswerObserver
from psyprobe.observers.simulated.completions import Behaviour, Completions, RefusalError
from psyprobe.observers.simulated.faults import Faults

_LARGEST_BODY = 64 * 2**20
_HOST = "127.0.0.1"


class SimulatedServer:
    """A server on loopback, in a thread of its own; `serve` makes one.

    Attributes
    ----------
    base_url : str
        What clients call the server by: ``http://127.0.0.1:PORT/v1``.
    model : str
        The name under which the observer answers.
    counts : Counter
        Requests by what became of them: "answered", "listed", "refused", "unauthorised", and the kinds of faults.
    """

    def __init__(
        self,
        observer: AnswerObserver,
        *,
        port: int = 0,
        faults: Faults = Faults(),  # noqa: B008 - immutable
        latency: float | tuple[float, float] = 0.0,
        behaviour: Behaviour = Behaviour(),  # noqa: B008 - immutable
    ) -> None:
        low, high = latency if isinstance(latency, tuple) else (latency, latency)
        if not 0 <= low <= high < float("inf"):
            raise InputError(f"latency is {latency} s; give seconds >= 0, or a pair (least, most) of them")
        if not 0 <= port <= 65535:
            raise InputError(f"port is {port}; give a whole number from 0 (any that is free) to 65535")
        uvicorn = _imported()
        self.model = observer.card.name
        self.counts: Counter[str] = Counter()
        self._completions = Completions(observer, behaviour, self.model)
        self._faults = faults
        self._draws = faults.draws()
        self._latency = (low, high)
        self._random = random.Random(faults.seed + 1)
        self._worker = ThreadPoolExecutor(1, "simulated-observer")
        try:
            listening = socket.create_server((_HOST, port))
        except OSError as error:
            told = error.strerror or error
            raise PsyprobeError(f"cannot listen on {_HOST}:{port}: {told}; give another port") from None
        self.port = int(listening.getsockname()[1])
        self.base_url = f"http://{_HOST}:{self.port}/v1"
        quiet = {"log_config": None, "log_level": "critical", "lifespan": "off", "server_header": False}
        named = [("Server", "psyprobe")]
        patient = {"timeout_keep_alive": 3600, "timeout_graceful_shutdown": 0}
        self._server = uvicorn.Server(uvicorn.Config(self._serve, interface="asgi3", headers=named, **quiet, **patient))
        run = self._server.run
        self._thread = threading.Thread(target=run, args=([listening],), name="simulated-server", daemon=True)
        self._thread.start()

    def __repr__(self) -> str:
        return f"SimulatedServer({self.model!r}, {self.base_url!r})"

    @property
    def asked(self) -> Counter[str]:
        """How often each question was answered, by the digest of its body."""
        return self._completions.asked

    def close(self) -> None:
        """Stop answering, and close what is open."""
        self._server.should_exit = True
        self._thread.join()
        self._worker.shutdown()

    async def _serve(self, scope: Any, receive: Any, send: Any) -> None:
        """One request, as an ASGI application."""
        from starlette.requests import ClientDisconnect, Request
        from starlette.responses import Response

        request = Request(scope, receive)
        headers: dict[str, str] = {}
        fault, cut = "", False
        try:
            self._authorise(request.headers)
            reply: Mapping[str, Any]
            if (request.method, request.url.path) == ("POST", "/v1/chat/completions"):
                length = request.headers.get("content-length", "0")
                if not length.isdigit() or int(length) > _LARGEST_BODY or "transfer-encoding" in request.headers:
                    raise RefusalError(413, "Send a Content-Length of at most 64 MiB.")
                body = await request.body()
                fault = next(self._draws)
                if fault in ("hang", "reset"):
                    self.counts[fault] += 1
                    return await self._leave(fault, request)
                reply = await self._complete(fault, body)
                cut = fault == "truncated"
                self.counts[fault or "answered"] += 1
            elif (request.method, request.url.path) == ("GET", "/v1/models"):
                reply = self._completions.models()
                self.counts["listed"] += 1
            else:
                raise RefusalError(404, f"There is nothing at {request.method} {request.url.path}.")
            status = 200
        except RefusalError as refusal:
            self.counts["unauthorised" if refusal.status == 401 else fault or "refused"] += 1
            status, reply = refusal.status, refusal.body
            if status == 429:
                headers["Retry-After"] = f"{self._faults.retry_after:g}"
            if status == 413:
                headers["Connection"] = "close"
        except ClientDisconnect:
            return
        text = json.dumps(reply).encode()
        text = text[: len(text) // 2] if cut else text
        await Response(text, status, headers, "application/json")(scope, receive, send)

    async def _leave(self, fault: str, request: Any) -> None:
        """No answer: wait until the client gives up, or reset its connection."""
        if fault == "reset":
            # ASGI knows no connections; uvicorn does.
            connections = self._server.server_state.connections
            transport = next(each.transport for each in connections if each.client == tuple(request.client))
            # Lingering for 0 s makes closing a reset.
            linger = struct.pack("ii", 1, 0)
            transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            transport.abort()
        while (await request.receive())["type"] != "http.disconnect":
            pass

    def _authorise(self, headers: Mapping[str, str]) -> None:
        key = self._completions.behaviour.key
        given = headers.get("authorization", "").encode()
        if key is not None and not hmac.compare_digest(given, f"Bearer {key}".encode()):
            raise RefusalError(401, "Incorrect API key provided.", code="invalid_api_key")

    async def _complete(self, fault: str, body: bytes) -> dict[str, Any]:
        if fault == "overload":
            raise RefusalError(429, "Rate limit reached; try again later.", code="rate_limit_exceeded")
        loop = asyncio.get_running_loop()
        began = loop.time()
        if fault != "error":
            reply = await loop.run_in_executor(self._worker, self._completions.complete, body)
        await asyncio.sleep(max(0.0, began + self._random.uniform(*self._latency) - loop.time()))
        if fault == "error":
            raise RefusalError(500, "The server had an error while processing your request.")
        return reply


@contextlib.contextmanager
def serve(
    observer: AnswerObserver,
    *,
    port: int = 0,
    faults: Faults = Faults(),  # noqa: B008 - immutable
    latency: float | tuple[float, float] = 0.0,
    behaviour: Behaviour = Behaviour(),  # noqa: B008 - immutable
) -> Iterator[SimulatedServer]:
    """Serve an observer over HTTP on loopback, under its own name, while the context lasts.

    Parameters
    ----------
    observer : AnswerObserver
        Who answers; it is asked one question at a time.
    port : int
        0 for any that is free.
    faults : Faults
        What goes wrong.
    latency : float or (float, float)
        Seconds that an answer takes at least, or a range from which it is drawn.
    behaviour : Behaviour
        What is refused or left out for good, and which key is asked for.

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
    server = SimulatedServer(observer, port=port, faults=faults, latency=latency, behaviour=behaviour)
    with contextlib.closing(server):
        yield server


def _imported() -> Any:
    missing = [each for each in ("starlette", "uvicorn") if importlib.util.find_spec(each) is None]
    if missing:
        raise PsyprobeError(f"a simulated server needs {' and '.join(missing)}: pip install 'psyprobe[server]'")
    return importlib.import_module("uvicorn")
