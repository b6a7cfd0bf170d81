"""The HTTP client under the protocol: it follows no redirect, and reads of a reply no more than a
reply can be.
"""

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

#: Bytes of the longest reply, as they come and unpacked: the log-probabilities of some 4,000
#: tokens.
LONGEST_REPLY = 8 * 2**20
#: For `zlib`: gzip and zlib, as the data itself says.
_ANY_HEADER = 32 + zlib.MAX_WBITS
#: What broke a connection, by a sign of it in what libraries say.
_CONNECTION = {
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
    """HTTP to one server: no redirect is followed, and every reply, of success or of failure, is
    read within bounds.

    Time has no bound here: whoever sends gives each exchange its deadline. To be used in one event
    loop.
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
        """One request, of which the body is JSON, or a form of aiohttp."""
        async with self._request(method, path, body) as response:
            return Reply(response.status, response.headers, await _read(response))

    async def download(self, path: str, file: Path, most: int) -> Reply:
        """Write what is at a path into a file, piece by piece; the reply holds the body only where
        it is no success.
        """
        async with self._request("GET", path, None, packed=False) as response:
            if response.status != 200:
                return Reply(response.status, response.headers, await _read(response))
            with file.open("wb") as whole:
                async for piece in response.content.iter_any():
                    whole.write(piece)
                    if whole.tell() > most:
                        raise ReplyError(f"the file is longer than {most / 2**20:g} MiB")
            return Reply(200, response.headers, b"")

    def _request(self, method: str, path: str, body: Any, *, packed: bool = True) -> Any:
        import aiohttp

        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0),
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=aiohttp.ClientTimeout(total=None),
                headers=self._headers,
                auto_decompress=False,
                proxy=_proxy(self._base_url),
            )
        told = {"Content-Type": "application/json"} if isinstance(body, bytes) else {}
        told |= {} if packed else {"Accept-Encoding": "identity"}
        url = f"{self._base_url}{path}"
        return self._session.request(method, url, data=body, headers=told, allow_redirects=False)

    async def close(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()


def _proxy(url: str) -> str | None:
    """The proxy that the environment names for an address; looked up once, and not for each
    request.
    """
    parts = urlsplit(url)
    return None if proxy_bypass(parts.hostname or "") else getproxies().get(parts.scheme)


async def _read(response: Any) -> bytes:
    """The body, unpacked here and piece by piece: what is packed may be a thousand times as long as
    it comes.
    """
    packing = response.headers.get("content-encoding", "identity").strip().casefold()
    if packing not in ("identity", "", "gzip", "deflate"):
        raise ReplyError("the reply is packed in a way that was not asked for")
    unpacking = None if packing in ("identity", "") else zlib.decompressobj(_ANY_HEADER)
    body = bytearray()
    came = 0
    async for piece in response.content.iter_any():
        came += len(piece)
        try:
            body += (
                piece
                if unpacking is None
                else unpacking.decompress(piece, LONGEST_REPLY + 1 - len(body))
            )
        except zlib.error:
            raise ReplyError("the reply cannot be unpacked") from None
        if max(came, len(body)) > LONGEST_REPLY:
            raise ReplyError(f"the reply is longer than {LONGEST_REPLY / 2**20:g} MiB")
    return bytes(body)


def what_broke(error: BaseException | None) -> str:
    """What broke a connection, without the address that libraries put into their messages."""
    text = ""
    cause = error
    while cause is not None:
        if isinstance(cause, ReplyError):
            return str(cause)
        text += f" {type(cause).__name__} {cause}".casefold()
        cause = cause.__cause__ or cause.__context__
    return next(
        (meaning for sign, meaning in _CONNECTION.items() if re.search(sign, text)),
        "the connection broke",
    )
