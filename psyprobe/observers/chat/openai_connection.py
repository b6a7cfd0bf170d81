"""Exchange HTTP requests with one server: no redirects, and no reply beyond a bound on its size."""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from psyprobe.errors import PsyprobeError

#: Bytes of the longest reply, compressed and uncompressed: the log-probabilities of some 4,000
#: tokens.
LONGEST_REPLY = 8 * 2**20
#: Tells `zlib` to take the format, gzip or zlib, from the data.
_ANY_HEADER = 32 + zlib.MAX_WBITS
#: Why a connection broke, by a pattern that occurs in the messages of libraries.
_REASONS = {
    "refused|all connection attempts failed": "connection refused",
    "name or service not known|name resolution|nodename nor servname": "its name is not known",
    "certificate": "its certificate is not trusted",
    "unreachable": "the network does not reach it",
}


class ReplyError(PsyprobeError):
    """A reply that is not read to its end."""


@dataclass(frozen=True)
class Reply:
    """A response, read to its end."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Connection:
    """A client of one server that follows no redirect and reads every reply within bounds.

    It bounds no time: whoever sends gives each exchange its deadline. Use it in one event loop.
    """

    def __init__(self, base_url: str, key: str) -> None:
        self._base_url = base_url.rstrip("/")
        self._headers = {
            "Authorization": f"Bearer {key}",
            "Accept-Encoding": "gzip",
            "User-Agent": "psyprobe",
        }
        self._session: Any = None

    async def exchange(self, method: str, path: str, body: Any = None) -> Reply:
        """Send one HTTP request and return the reply, refusing one that is too long."""
        async with self._open_request(method, path, body, {}) as response:
            return Reply(response.status, response.headers, await _read(response))

    async def download(self, path: str, file: Path, max_bytes: int) -> Reply:
        """Download the content of a URL path into a file, chunk by chunk.

        The reply holds a body only where the download fails.
        """
        headers = {"Accept-Encoding": "identity"}
        async with self._open_request("GET", path, None, headers) as response:
            if response.status != 200:
                return Reply(response.status, response.headers, await _read(response))
            with file.open("wb") as output:
                async for chunk in response.content.iter_any():
                    output.write(chunk)
                    if output.tell() > max_bytes:
                        raise ReplyError(
                            f"the file is longer than {max_bytes / 2**20:g} MiB"
                        )
            return Reply(200, response.headers, b"")

    def _open_request(
        self, method: str, path: str, body: Any, headers: dict[str, str]
    ) -> Any:
        """Begin an HTTP request, opening the session with its proxy and headers at first."""
        import aiohttp

        if self._session is None:
            # The proxy that the environment names, looked up once for all requests.
            parts = urlsplit(self._base_url)
            bypassed = proxy_bypass(parts.hostname or "")
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0),
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=aiohttp.ClientTimeout(total=None),
                headers=self._headers,
                auto_decompress=False,
                proxy=None if bypassed else getproxies().get(parts.scheme),
            )
        if isinstance(body, bytes):
            headers["Content-Type"] = "application/json"
        url = f"{self._base_url}{path}"
        return self._session.request(
            method, url, data=body, headers=headers, allow_redirects=False
        )

    async def close(self) -> None:
        """Close all HTTP connections."""
        if self._session is not None:
            await self._session.close()


async def _read(response: Any) -> bytes:
    """Read and decompress a response body chunk by chunk, up to a limit."""
    encoding = response.headers.get("content-encoding", "identity").strip().casefold()
    if encoding not in ("identity", "", "gzip", "deflate"):
        raise ReplyError("the reply is packed in a way that was not asked for")
    decompressor = (
        None if encoding in ("identity", "") else zlib.decompressobj(_ANY_HEADER)
    )
    body = bytearray()
    received = 0
    async for chunk in response.content.iter_any():
        received += len(chunk)
        if decompressor is not None:
            try:
                chunk = decompressor.decompress(chunk, LONGEST_REPLY + 1 - len(body))
            except zlib.error:
                raise ReplyError("the reply cannot be unpacked") from None
        body += chunk
        if max(received, len(body)) > LONGEST_REPLY:
            raise ReplyError(f"the reply is longer than {LONGEST_REPLY / 2**20:g} MiB")
    return bytes(body)


def break_reason(error: BaseException | None) -> str:
    """Describe why a connection broke, without the address that libraries put in messages."""
    text = ""
    while error is not None:
        if isinstance(error, ReplyError):
            return str(error)
        text += f" {type(error).__name__} {error}".casefold()
        error = error.__cause__ or error.__context__
    reasons = (
        reason for pattern, reason in _REASONS.items() if re.search(pattern, text)
    )
    return next(reasons, "the connection broke")
