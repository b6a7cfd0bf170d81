"""The page of a session and what it asks of this process: calibration, practice, one trial after
the other, result.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from importlib.resources import files
from typing import Any, Protocol

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from psyprobe.errors import InputError
from psyprobe.files.loopback import LoopbackServer, page_response, posted

#: A page that was silent for so many seconds has gone, and another may take its place.
_SILENT = 10.0
#: Seconds that a request waits for the next trial before it comes back to ask again.
_PATIENCE = 20.0


class Visit(Protocol):
    """What a page talks to."""

    def facts(self) -> Mapping[str, Any]:
        """What the first page shows: title, person, what is left to do, the display that was
        given.
        """

    def calibrate(self, values: Mapping[str, Any]) -> Mapping[str, Any]:
        """Take the screen as the page measured it; gives the patterns of the practice, or is an
        InputError.
        """

    def begin(self, values: Mapping[str, Any]) -> None:
        """Consent was given and practice is over: begin to ask, or go on."""

    def state(self, seconds: float) -> Mapping[str, Any]:
        """As `Session.state`."""

    def answer(self, values: Mapping[str, Any]) -> None:
        """As `Session.answer`."""


class PersonServer(LoopbackServer):
    """Serves one session on loopback, for as long as it is entered; a second tab is turned away."""

    def __init__(self, visit: Visit, port: int = 0) -> None:
        super().__init__(_routes(visit), port)


def _routes(visit: Visit) -> list[Route]:
    room = files("psyprobe.observers.people")
    page, shader, draw, *scripts = (
        room.joinpath(name).read_text(encoding="utf-8")
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

    def route(path: str, act: Callable[[Mapping[str, Any]], Mapping[str, Any]]) -> Route:
        async def respond(request: Request) -> Response:
            values = await posted(request)
            if isinstance(values, Response):
                return values
            if not door.lets_in(str(values.get("page", ""))):
                told = (
                    "this session is open in another tab or window; go on there, or close it "
                    "and wait 10 s"
                )
                # Not an error of HTTP, which a browser writes on its console: a page that is loaded
                # again may ask before the one that it replaces has said that it left.
                return JSONResponse({"error": told, "taken": True})
            return JSONResponse(dict(await run_in_threadpool(act, values)))

        return Route(path, respond, methods=["POST"])

    def begin(values: Mapping[str, Any]) -> Mapping[str, Any]:
        visit.begin(values)
        return visit.state(_PATIENCE)

    def answer(values: Mapping[str, Any]) -> Mapping[str, Any]:
        visit.answer(values)
        return visit.state(_PATIENCE)

    return [
        Route("/", lambda _: page_response(page)),
        route("/open", lambda _: visit.facts()),
        route("/here", lambda _: {}),
        route("/left", lambda _: door.close()),
        route("/calibrate", visit.calibrate),
        route("/begin", begin),
        route("/state", lambda _: visit.state(_PATIENCE)),
        route("/answer", answer),
    ]


class _Door:
    """Lets one page in at a time: by the name that it gave itself, until it has been silent."""

    def __init__(self) -> None:
        self._inside = ""
        self._heard = -_SILENT

    def lets_in(self, page: str) -> bool:
        if not 8 <= len(page) <= 64:
            raise InputError("the page has no name of its own; load it again")
        now = time.monotonic()
        if page != self._inside and now - self._heard < _SILENT:
            return False
        self._inside = page
        self._heard = now
        return True

    def close(self) -> Mapping[str, Any]:
        """Who was inside has left."""
        self._inside = ""
        self._heard = -_SILENT
        return {}
