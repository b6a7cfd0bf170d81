"""The page on this machine alone: standard library, loopback, and a token in the address that nobody can guess."""

from __future__ import annotations

import json
import secrets
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from typing import Any, Self

from psyprobe.errors import InputError, PsyprobeError
from psyprobe.tasks.review.sitting import Sitting

_HOST = "127.0.0.1"
#: Of what the page sends: far more than 40 words.
_MOST_BYTES = 100_000
_KINDS = {b"\x89PNG": "image/png", b"\xff\xd8\xff": "image/jpeg", b"RIFF": "image/webp", b"BM": "image/bmp"}


class ReviewServer:
    """Serves one sitting on loopback, until it is closed.

    Parameters
    ----------
    sitting : Sitting
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

    def __init__(self, sitting: Sitting, port: int = 0) -> None:
        self.token = secrets.token_urlsafe(18)
        handler = type("Handler", (_Handler,), {"sitting": sitting, "token": self.token})
        try:
            self._server = ThreadingHTTPServer((_HOST, port), handler)
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or error
            raise PsyprobeError(f"port {port} cannot be used: {reason}; give another --port, or 0") from error
        self._server.daemon_threads = True

    @property
    def address(self) -> str:
        """Of the page, with its token."""
        return f"http://{_HOST}:{self._server.server_address[1]}/{self.token}/"

    def serve(self) -> None:
        """Answer requests until `close` is called or Ctrl-C."""
        self._server.serve_forever(poll_interval=0.1)

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()

    def __enter__(self) -> Self:
        import threading

        threading.Thread(target=self.serve, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Handler(BaseHTTPRequestHandler):
    sitting: Sitting
    token: str
    protocol_version = "HTTP/1.1"
    timeout = 30

    def do_GET(self) -> None:
        match self._path():
            case [""]:
                nonce = secrets.token_urlsafe(16)
                page = files("psyprobe.tasks.review").joinpath("page.html").read_text(encoding="utf-8")
                self._send(200, page.replace("NONCE", nonce).encode(), "text/html; charset=utf-8", nonce)
            case ["state"]:
                self._try(self.sitting.state)
            case ["task", number] if _whole(number):
                self._try(lambda: self.sitting.task(int(number)))
            case ["image", number, which] if _whole(number, which):
                self._image(int(number), int(which))
            case _:
                self._send(404, b"{}")

    def do_POST(self) -> None:
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > _MOST_BYTES:
            self.close_connection = True
            return self._send(413, b"{}")
        body = self.rfile.read(int(length))
        # Pages of other origins cannot send this type without asking first, and are never allowed.
        if self._path() != ["decide"] or self.headers.get("Content-Type") != "application/json":
            return self._send(404, b"{}")
        try:
            values = json.loads(body)
        except (ValueError, RecursionError):
            values = None
        if not isinstance(values, dict):
            return self._send(400, b"{}")
        self._try(lambda: self.sitting.decide(values.get("task"), values.get("value"), values.get("text")))

    def _path(self) -> list[str] | None:
        """What follows the token; None where the token or the host is not ours."""
        host = (self.headers.get("Host") or "").rpartition(":")[0]
        parts = self.path.split("/")
        known = len(parts) > 2 and secrets.compare_digest(parts[1].encode(), self.token.encode())
        return parts[2:] if known and host in (_HOST, "localhost") else None

    def _image(self, number: int, which: int) -> None:
        try:
            raw = self.sitting.image(number, which)
        except (InputError, OSError):
            return self._send(404, b"{}")
        kind = next((kind for start, kind in _KINDS.items() if raw.startswith(start)), "application/octet-stream")
        self._send(200, raw, kind)

    def _try(self, answer: Any) -> None:
        try:
            code, values = 200, answer()
        except InputError as error:
            code, values = 400, {"error": str(error)}
        except PsyprobeError as error:
            code, values = 500, {"error": str(error)}
        self._send(code, json.dumps(values).encode())

    def _send(self, code: int, body: bytes, kind: str = "application/json", nonce: str = "") -> None:
        policy = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        if nonce:
            own = f"style-src 'nonce-{nonce}'; script-src 'nonce-{nonce}'"
            policy += f"; img-src 'self' data:; connect-src 'self'; {own}"
        headers = {
            "Content-Type": kind,
            "Content-Length": str(len(body)),
            "Content-Security-Policy": policy,
            "Cache-Control": "no-store",
            "Referrer-Policy": "no-referrer",
            "X-Content-Type-Options": "nosniff",
        }
        self.send_response(code)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing: the address is a secret, and a terminal no place for what others send."""


def _whole(*parts: str) -> bool:
    return all(part.isascii() and part.isdecimal() and len(part) < 10 for part in parts)
