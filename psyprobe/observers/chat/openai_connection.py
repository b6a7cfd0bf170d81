"""The HTTP client under the protocol: it follows no redirect, and reads of a reply no more than a reply can be."""

from __future__ import annotations

import re
import zlib
from typing import Any

from psyprobe.errors import PsyprobeError

#: Bytes of the longest reply, as they come and unpacked: the log-probabilities of some 4,000 tokens.
LONGEST_REPLY = 8 * 2**20
#: For `zlib`: gzip and zlib, as the data itself says.
_ANY_HEADER = 32 + zlib.MAX_WBITS
#: Header fields that are no longer true of a body that was read and unpacked.
_OF_TRANSFER = ("content-encoding", "content-length", "transfer-encoding")
#: What broke a connection, by a sign of it in what libraries say.
_CONNECTION = {
    "refused|all connection attempts failed": "connection refused",
    "name or service not known|name resolution|nodename nor servname": "its name is not known",
    "certificate": "its certificate is not trusted",
    "unreachable": "the network does not reach it",
}


class ReplyError(PsyprobeError):
    """A reply that is not read to its end."""


def open_client(base_url: str | None, key: str) -> Any:
    """A client of the openai library whose every reply, of success or of failure, is read within bounds.

    Time has no bound here: whoever sends gives each exchange its deadline.
    """
    import openai

    class Bounded(openai.DefaultAsyncHttpxClient):  # type: ignore[misc]
        async def send(self, request: Any, **options: Any) -> Any:
            options |= {"stream": True, "follow_redirects": False}
            response = await super().send(request, **options)
            try:
                body = await _read(response)
            finally:
                await response.aclose()
            headers = [(k, v) for k, v in response.headers.multi_items() if k.lower() not in _OF_TRANSFER]
            return type(response)(response.status_code, headers=headers, content=body, request=request)

    bounded = Bounded(headers={"Accept-Encoding": "gzip"}, timeout=None)
    return openai.AsyncOpenAI(api_key=key, base_url=base_url, http_client=bounded, timeout=None, max_retries=0)


async def _read(response: Any) -> bytes:
    """The body, unpacked here and piece by piece: what is packed may be a thousand times as long as it comes."""
    packing = response.headers.get("content-encoding", "identity").strip().casefold()
    if packing not in ("identity", "", "gzip", "deflate"):
        raise ReplyError("the reply is packed in a way that was not asked for")
    unpacking = None if packing in ("identity", "") else zlib.decompressobj(_ANY_HEADER)
    body, came = bytearray(), 0
    async for piece in response.aiter_raw():
        came += len(piece)
        try:
            body += piece if unpacking is None else unpacking.decompress(piece, LONGEST_REPLY + 1 - len(body))
        except zlib.error:
            raise ReplyError("the reply cannot be unpacked") from None
        if max(came, len(body)) > LONGEST_REPLY:
            raise ReplyError(f"the reply is longer than {LONGEST_REPLY / 2**20:g} MiB")
    return bytes(body)


def what_broke(error: BaseException | None) -> str:
    """What broke a connection, without the address that libraries put into their messages."""
    text, cause = "", error
    while cause is not None:
        if isinstance(cause, ReplyError):
            return str(cause)
        text += f" {type(cause).__name__} {cause}".casefold()
        cause = cause.__cause__ or cause.__context__
    return next((meaning for sign, meaning in _CONNECTION.items() if re.search(sign, text)), "the connection broke")
