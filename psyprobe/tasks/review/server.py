"""Serve the page of a review: its tasks, their images, and the decisions."""

from __future__ import annotations

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from psyprobe.errors import InputError
from psyprobe.files.loopback import LoopbackServer, page_response, posted
from psyprobe.files.parsing import packaged_text
from psyprobe.tasks.review.worklist import Worklist

#: Media types of images by the first bytes of their files.
_MEDIA_TYPES = {
    b"\x89PNG": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"RIFF": "image/webp",
    b"BM": "image/bmp",
}


class ReviewServer(LoopbackServer):
    """Serves one worklist on loopback, for as long as it is entered.

    Parameters
    ----------
    worklist : Worklist
        The tasks and the person who decides.
    port : int
        Port to listen at; 0 for any that is free.

    Raises
    ------
    PsyprobeError
        The port is taken.
    """

    def __init__(self, worklist: Worklist, port: int = 0) -> None:
        super().__init__(_build_routes(worklist), port)


def _build_routes(worklist: Worklist) -> list[Route]:
    """Build the requests of the review page: its tasks, images and decisions."""
    page = packaged_text("psyprobe.tasks.review", "page.html")

    def image(request: Request) -> Response:
        try:
            raw = worklist.image(
                request.path_params["number"], request.path_params["which"]
            )
        except (InputError, OSError):
            return JSONResponse({}, 404)
        for start, media_type in _MEDIA_TYPES.items():
            if raw.startswith(start):
                return Response(raw, media_type=media_type)
        return Response(raw, media_type="application/octet-stream")

    async def decide(request: Request) -> Response:
        values = await posted(request)
        if isinstance(values, Response):
            return values
        fields = (values.get(name) for name in ("task", "value", "text"))
        return JSONResponse(await run_in_threadpool(worklist.decide, *fields))

    return [
        Route("/", lambda _: page_response(page)),
        Route("/state", lambda _: JSONResponse(worklist.state())),
        Route(
            "/task/{number:int}",
            lambda request: JSONResponse(worklist.task(request.path_params["number"])),
        ),
        Route("/image/{number:int}/{which:int}", image),
        Route("/decide", decide, methods=["POST"]),
    ]
