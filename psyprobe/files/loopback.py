"""Serve a page on this machine alone, under an address with a token that nobody can guess."""

from __future__ import annotations

import json
import secrets
import socket
import threading
from collections.abc import Sequence
from typing import Any, Self

import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware, RequestResponseEndpoint
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.types import ASGIApp

from psyprobe.errors import InputError, PsyprobeError
from psyprobe.files.json_types import JsonObject

_HOST = "127.0.0.1"
#: Names of this machine by which requests may address it.
_HOST_NAMES = (_HOST, "localhost")
#: Bytes that a page may send: far more than a decision or the record of a trial.
_MAX_BYTES = 100_000
#: Characters of a path: the token, a word and two numbers.
_MAX_PATH = 100
_BASE_POLICY = (
    "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


class LocalServer:
    """A server of an application on loopback, in a thread, for as long as it is entered.

    It answers only requests for this machine by name: a page elsewhere whose name was made to lead
    here reads nothing.

    Parameters
    ----------
    app : ASGI application
        What answers the requests.
    port : int
        Port to listen at; 0 for any that is free.
    **settings
        Those of ``uvicorn.Config``.

    Raises
    ------
    PsyprobeError
        The port cannot be used.

    Attributes
    ----------
    port : int
        The port.
    origin : str
        The server's address: ``http://127.0.0.1:PORT``.
    """

    def __init__(self, app: ASGIApp, port: int = 0, **settings: Any) -> None:
        try:
            self._socket = socket.create_server((_HOST, port))
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or error
            raise PsyprobeError(
                f"port {port} cannot be used: {reason}; give another --port, or 0"
            ) from error
        # Otherwise head and body of a reply wait 40 ms for each other: asyncio does not see that
        # this socket is TCP.
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.port: int = self._socket.getsockname()[1]
        self.origin = f"http://{_HOST}:{self.port}"
        # No log: an address may be a secret, and requests of others do not belong on a terminal.
        self._server = uvicorn.Server(
            uvicorn.Config(
                TrustedHostMiddleware(app, _HOST_NAMES),
                # A request that names a host in its first line is answered 404: h11 takes that for
                # a path, and httptools overlooks the host.
                http="h11",
                lifespan="off",
                ws="none",
                log_config=None,
                access_log=False,
                server_header=False,
                **settings,
            )
        )

    def __enter__(self) -> Self:
        self._thread = threading.Thread(
            target=self._server.run, args=([self._socket],), daemon=True
        )
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        self._thread.join()
        self._socket.close()


class LoopbackServer(LocalServer):
    """A server of routes on loopback under a secret address, for as long as it is entered.

    Parameters
    ----------
    routes : sequence of Route
        Routes with their paths behind the token.
    port : int
        Port to listen at; 0 for any that is free.

    Notes
    -----
    The address holds a random token, so no other page in the same browser can read or decide
    anything. The page loads nothing from elsewhere, and is isolated from all others, which gives
    its clocks steps of 5 µs.
    """

    def __init__(self, routes: Sequence[Route], port: int = 0) -> None:
        token = secrets.token_urlsafe(18)
        super().__init__(_build_app(routes, token), port)
        self.address = f"{self.origin}/{token}/"


def page_response(page: str) -> Response:
    """Build the HTTP response of an HTML page that may load nothing from elsewhere.

    "NONCE" in the page names its own scripts and styles.
    """
    nonce = secrets.token_urlsafe(16)
    sources = (
        f"img-src 'self' data:; connect-src 'self'; style-src 'nonce-{nonce}'; script-src "
        f"'nonce-{nonce}'"
    )
    headers = {"Content-Security-Policy": f"{_BASE_POLICY}; {sources}"}
    return HTMLResponse(page.replace("NONCE", nonce), headers=headers)


async def posted(request: Request) -> JsonObject | Response:
    """Read the JSON object that a request posts, or build the response that refuses it."""
    length = request.headers.get("Content-Length", "")
    if not length.isdecimal() or int(length) > _MAX_BYTES:
        return JSONResponse({}, 413, {"Connection": "close"})
    # Pages of other origins cannot send this type without asking first, and are never allowed.
    if request.headers.get("Content-Type") != "application/json":
        return JSONResponse({}, 404)
    try:
        values = json.loads(await request.body())
    except (ValueError, RecursionError):
        values = None
    return values if isinstance(values, dict) else JSONResponse({}, 400)


def _build_app(routes: Sequence[Route], token: str) -> Starlette:
    """Build a web application that answers only requests of its own page with the secret token."""

    async def guard(request: Request, call_next: RequestResponseEndpoint) -> Response:
        host = request.headers.get("Host", "")
        path = request.url.path
        has_token = secrets.compare_digest(path.split("/")[1].encode(), token.encode())
        # A browser sends the origin with whatever it posts.
        is_own_page = (
            request.headers.get("Origin", f"http://{host}") == f"http://{host}"
        )
        ours = has_token and is_own_page and len(path) <= _MAX_PATH
        response = await call_next(request) if ours else JSONResponse({}, 404)
        response.headers.setdefault("Content-Security-Policy", _BASE_POLICY)
        response.headers.update(
            {
                "Cache-Control": "no-store",
                "Referrer-Policy": "no-referrer",
                "X-Content-Type-Options": "nosniff",
                "Cross-Origin-Opener-Policy": "same-origin",
                "Cross-Origin-Embedder-Policy": "require-corp",
                "Cross-Origin-Resource-Policy": "same-origin",
            }
        )
        return response

    return Starlette(
        routes=[Mount(f"/{token}", routes=list(routes))],
        middleware=[Middleware(BaseHTTPMiddleware, dispatch=guard)],
        exception_handlers={
            InputError: _error_response,
            PsyprobeError: _error_response,
        },
    )


def _error_response(_: Request, error: Exception) -> Response:
    """Answer a request with an error as JSON: status 400 for bad input, else 500."""
    return JSONResponse(
        {"error": str(error)}, 400 if isinstance(error, InputError) else 500
    )
