"""A server that answers to any name and says of itself what a test wants."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Local(ThreadingHTTPServer):
    """A server that answers to any name, lists what it is told to, and counts what it was asked."""

    daemon_threads = True
    # More than any test asks at once: where they do not fit, a loaded machine loses connections.
    request_queue_size = 128

    def __init__(
        self,
        reply: str,
        models: list[dict[str, Any]] | None,
        model: str = "",
        fingerprint: str = "",
    ) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.reply, self.models, self.model, self.fingerprint = (
            reply,
            models,
            model,
            fingerprint,
        )
        self.requests: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"


class Handler(BaseHTTPRequestHandler):
    """Speaks as much of the protocol as is needed."""

    server: Local

    def do_GET(self) -> None:
        self.server.requests.append("models")
        if self.server.models is None:
            return self._send(404, {"error": {"message": "nothing here"}})
        return self._send(200, {"object": "list", "data": self.server.models})

    def do_POST(self) -> None:
        question = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.requests.append(question["messages"][-1]["content"][-1]["text"])
        identity = {
            "model": self.server.model or question["model"],
            "system_fingerprint": self.server.fingerprint,
        }
        self._send(
            200,
            {
                **identity,
                "choices": [
                    {"message": {"content": self.server.reply}, "finish_reason": "stop"}
                ],
            },
        )

    def _send(self, status: int, value: Any) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing."""


@contextmanager
def local(
    reply: str = "Yes", models: list[dict[str, Any]] | None = None, **identity: str
) -> Iterator[Local]:
    with Local(reply, models, **identity) as server:
        thread = threading.Thread(
            target=server.serve_forever, args=(0.02,), daemon=True
        )
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join(timeout=10)


def listed(name: str, **fields: Any) -> list[dict[str, Any]]:
    return [{"id": name, "object": "model", "created": 0, **fields}]
