"""The page on this machine alone: loopback, and a token in the address that nobody can guess."""

from __future__ import annotations

import json
import secrets
import socket
import threading
from importlib.resources import files
from typing import Self

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware, RequestResponseEndpoint
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from psyprobe.errors import InputError, PsyprobeError
from psyprobe.tasks.review.worklist import Worklist

_HOST = "127.0.0.1"
#: Of what the page sends: far more than 40 words.
_MOST_BYTES = 100_000
#: Of a path: the token, a word and two numbers.
_LONGEST_PATH = 100
_KINDS = {b"\x89PNG": "image/png", b"\xff\xd8\xff": "image/jpeg", b"RIFF": "image/webp", b"BM": "image/bmp"}
_NOTHING_ELSE = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"


class ReviewServer:
    """Serves one worklist on loopback, for as long as it is entered.

    Parameters
    ----------
    worklist : Worklist
        Who decides on what.
    port : int
        To listen at; 0 for any that is free.

    Raises
    ------
    PsyprobeError
        The port cannot be had.

    Notes
    -----
    The address holds a random token, and only requests for this machine by name are answered, so no other page in the
    same browser can read or decide anything. The page loads nothing from elsewhere.
    """

    def __init__(self, worklist: Worklist, port: int = 0) -> None:
        token = secrets.token_urlsafe(18)
        try:
            self._socket = socket.create_server((_HOST, port))
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or error
            raise PsyprobeError(f"port {port} cannot be used: {reason}; give another --port, or 0") from error
        # Else head and body of a reply wait 40 ms for each other: asyncio does not see that this socket is TCP.
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.address = f"http://{_HOST}:{self._socket.getsockname()[1]}/{token}/"
        # No log: the address is a secret, and a terminal no place for what others send.
        self._server = uvicorn.Server(
            uvicorn.Config(
                _app(worklist, token), lifespan="off", ws="none", log_config=None, access_log=False, server_header=False
            )
        )

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._server.run, args=([self._socket],), daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        self._thread.join()
        self._socket.close()


def _app(worklist: Worklist, token: str) -> Starlette:
    page = files("psyprobe.tasks.review").joinpath("page.html").read_text(encoding="utf-8")

    def show(_: Request) -> Response:
        nonce = secrets.token_urlsafe(16)
        own = f"img-src 'self' data:; connect-src 'self'; style-src 'nonce-{nonce}'; script-src 'nonce-{nonce}'"
        policy = {"Content-Security-Policy": f"{_NOTHING_ELSE}; {own}"}
        return HTMLResponse(page.replace("NONCE", nonce), headers=policy)

    def image(request: Request) -> Response:
        try:
            raw = worklist.image(request.path_params["number"], request.path_params["which"])
        except (InputError, OSError):
            return JSONResponse({}, 404)
        kind = next((kind for start, kind in _KINDS.items() if raw.startswith(start)), "application/octet-stream")
        return Response(raw, media_type=kind)

    async def decide(request: Request) -> Response:
        length = request.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > _MOST_BYTES:
            return JSONResponse({}, 413, {"Connection": "close"})
        # Pages of other origins cannot send this type without asking first, and are never allowed.
        if request.headers.get("Content-Type") != "application/json":
            return JSONResponse({}, 404)
        try:
            values = json.loads(await request.body())
        except (ValueError, RecursionError):
            values = None
        if not isinstance(values, dict):
            return JSONResponse({}, 400)
        given = (values.get(name) for name in ("task", "value", "text"))
        return JSONResponse(await run_in_threadpool(worklist.decide, *given))

    async def guard(request: Request, call_next: RequestResponseEndpoint) -> Response:
        host = request.headers.get("Host", "").rpartition(":")[0]
        path = request.url.path
        known = secrets.compare_digest(path.split("/")[1].encode(), token.encode())
        ours = known and host in (_HOST, "localhost") and len(path) <= _LONGEST_PATH
        response = await call_next(request) if ours else JSONResponse({}, 404)
        response.headers.setdefault("Content-Security-Policy", _NOTHING_ELSE)
        response.headers.update(
            {"Cache-Control": "no-store", "Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff"}
        )
        return response

    return Starlette(
        routes=[
            Route("/{token}/", show),
            Route("/{token}/state", lambda _: JSONResponse(worklist.state())),
            Route("/{token}/task/{number:int}", lambda asked: JSONResponse(worklist.task(asked.path_params["number"]))),
            Route("/{token}/image/{number:int}/{which:int}", image),
            Route("/{token}/decide", decide, methods=["POST"]),
        ],
        middleware=[Middleware(BaseHTTPMiddleware, dispatch=guard)],
        exception_handlers={InputError: _wrong, PsyprobeError: _wrong},
    )


def _wrong(_: Request, error: Exception) -> Response:
    return JSONResponse({"error": str(error)}, 400 if isinstance(error, InputError) else 500)
