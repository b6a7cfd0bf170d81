"""Serve the page of a session: calibration, practice, one trial after the other, result."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from functools import partial
from typing import Protocol

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from psyprobe.errors import InputError
from psyprobe.files.json_types import JsonMapping
from psyprobe.files.loopback import LoopbackServer, page_response, posted
from psyprobe.files.parsing import packaged_text

#: Seconds without a request after which a page counts as closed, and another may take its place.
_SILENCE_SECONDS = 10.0
#: Seconds that a request waits for the next trial before the page asks again.
_WAIT_SECONDS = 20.0


class PageSession(Protocol):
    """A session as its page sees it."""

    def facts(self) -> JsonMapping:
        """Describe the session to the page: title, person, questions left, measured display."""

    def calibrate(self, values: JsonMapping) -> JsonMapping:
        """Read the screen as the page measured it, and return practice trials."""

    def begin(self, values: JsonMapping) -> None:
        """Begin or resume asking, after consent and practice."""

    def state(self, seconds: float) -> JsonMapping:
        """Wait some seconds for what the page shows next, and return it."""

    def answer(self, values: JsonMapping) -> None:
        """Take the page's report of an attempt to answer."""


class PersonServer(LoopbackServer):
    """Serves one session on loopback, for as long as it is entered; a second tab is turned away."""

    def __init__(self, session: PageSession, port: int = 0) -> None:
        super().__init__(_build_routes(session), port)


def _build_routes(session: PageSession) -> list[Route]:
    """Build the page of a session and the requests that it sends, for one tab at a time."""
    page, shader, draw, *scripts = (
        packaged_text("psyprobe.observers.people", name)
        for name in (
            "page.html",
            "gabor.frag",
            "draw.js",
            "setup.js",
            "trials.js",
            "pictures.js",
            "page.js",
        )
    )
    page = page.replace(
        "SCRIPT", "\n".join([draw, f"const SHADER = {json.dumps(shader)};", *scripts])
    )
    door = _Door()

    def route(path: str, act: Callable[[JsonMapping], JsonMapping]) -> Route:
        async def respond(request: Request) -> Response:
            values = await posted(request)
            if isinstance(values, Response):
                return values
            if not door.lets_in(str(values.get("page", ""))):
                message = (
                    "this session is open in another tab or window; go on there, or close it "
                    "and wait 10 s"
                )
                # No error of HTTP, which a browser writes on its console: a page that is loaded
                # again may ask before the one that it replaces has said that it left.
                return JSONResponse({"error": message, "taken": True})
            return JSONResponse(dict(await run_in_threadpool(act, values)))

        return Route(path, respond, methods=["POST"])

    def state(act: Callable[[JsonMapping], None], values: JsonMapping) -> JsonMapping:
        act(values)
        return session.state(_WAIT_SECONDS)

    return [
        Route("/", lambda _: page_response(page)),
        route("/open", lambda _: session.facts()),
        route("/here", lambda _: {}),
        route("/left", lambda _: door.close()),
        route("/calibrate", session.calibrate),
        route("/begin", partial(state, session.begin)),
        route("/state", lambda _: session.state(_WAIT_SECONDS)),
        route("/answer", partial(state, session.answer)),
    ]


class _Door:
    """Lets one page in at a time, by the name that it gave itself."""

    def __init__(self) -> None:
        self._page = ""
        self._request_time = -_SILENCE_SECONDS

    def lets_in(self, page: str) -> bool:
        """Tell whether a browser tab may take part: no other was active in the last seconds."""
        if not 8 <= len(page) <= 64:
            raise InputError("the page has no name of its own; load it again")
        time_now = time.monotonic()
        if page != self._page and time_now - self._request_time < _SILENCE_SECONDS:
            return False
        self._page = page
        self._request_time = time_now
        return True

    def close(self) -> JsonMapping:
        """Let the next browser tab in, whichever it is."""
        self._page = ""
        self._request_time = -_SILENCE_SECONDS
        return {}
