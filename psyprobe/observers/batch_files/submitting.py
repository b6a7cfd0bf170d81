"""Send files of requests to a server's ``/files`` and ``/batches``, and fetch the results.

The key is that of the environment, and stays there.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections.abc import Awaitable
from pathlib import Path
from typing import Any
from urllib.parse import quote

from psyprobe.errors import PsyprobeError
from psyprobe.files.json_types import JsonMapping, JsonObject
from psyprobe.files.output import write_whole
from psyprobe.observers.batch_files.folder import ENDPOINT, Folder, RequestFile
from psyprobe.observers.chat.openai_chat import OpenAIObserver
from psyprobe.observers.chat.openai_connection import Connection, Reply, break_reason
from psyprobe.observers.chat.openai_protocol import (
    error_of,
    harmless,
    problem_of_status,
)

#: Statuses of servers that list no batches.
_UNLISTED = (400, 404, 405, 501)
#: Time in which a batch is answered; OpenAI offers no other.
_WINDOW = "24h"
#: States of a batch that has ended, and of one that will never answer all of its file.
_ENDED = ("completed", "failed", "expired", "cancelled")
_BROKEN = ("failed", "expired", "cancelling", "cancelled")
#: Name of a file's digest in the metadata of its batch.
_DIGEST = "psyprobe_sha256"
#: Batches of a page of the server's list, and most pages that are looked through.
_BATCHES_A_PAGE = 100
_PAGES = 10
#: Most bytes of a file of results, and seconds of an exchange.
_MAX_BYTES = 2**31
_TIMEOUT = 900.0
#: Names that a server may give a file or a batch.
_NAME = re.compile(r"[\w.:-]{1,200}")


def submit(folder: Folder, observer: OpenAIObserver) -> None:
    """Send the request files that were not sent yet to the server, each as a batch.

    Raises
    ------
    PsyprobeError
        The server takes no batches, or cannot be reached.
    """
    for name, file in folder.request_files.items():
        if file.model == observer.endpoint.model and not file.batch and not file.closed:
            sending = observer.sending()
            file.batch = sending.wait_for(
                _submit_file, sending.client, folder.path / name
            )
            # Written down at once: a file that is sent twice is paid for twice.
            folder.save()


def fetch(folder: Folder, observer: OpenAIObserver) -> None:
    """Download the results of the observer's batches into their folder.

    Raises
    ------
    PsyprobeError
        The server refused a whole batch, which the next call sends again; or it cannot be reached.
    """
    for name, file in folder.request_files.items():
        if file.model == observer.endpoint.model and file.batch and not file.closed:
            sending = observer.sending()
            sending.wait_for(_fetch_results, sending.client, folder, name, file)


async def _submit_file(client: Connection, file: Path) -> str:
    """Upload a request file as a batch, and return the batch's id.

    If the server has a batch of this file, since the reply to an earlier submission was lost, that
    is its batch: a second one would be paid for, too.
    """
    import aiohttp

    with file.open("rb") as requests:
        digest = hashlib.file_digest(requests, "sha256").hexdigest()
    if name := await _find_batch(client, digest):
        return name
    with file.open("rb") as requests:
        form = aiohttp.FormData()
        form.add_field("purpose", "batch")
        form.add_field(
            "file", requests, filename=file.name, content_type="application/jsonl"
        )
        uploaded = await _request(client, "POST", "/files", form)
    request = {
        "input_file_id": _read_identifier(uploaded),
        "endpoint": ENDPOINT,
        "completion_window": _WINDOW,
        "metadata": {_DIGEST: digest},
    }
    return _read_identifier(
        await _request(client, "POST", "/batches", json.dumps(request).encode())
    )


async def _find_batch(client: Connection, digest: str) -> str:
    """Find the server's batch of a request file by the file's digest; "" if it lists none."""
    path = f"/batches?limit={_BATCHES_A_PAGE}"
    after = ""
    for _ in range(_PAGES):
        reply = await _exchange(client.exchange("GET", path + after))
        page = error_of(reply.body)
        if reply.status in _UNLISTED or not isinstance(page, dict):
            return ""
        _check(reply)
        batches = page.get("data")
        batches = batches if isinstance(batches, list) else []
        for batch in batches:
            metadata = batch.get("metadata") if isinstance(batch, dict) else None
            is_same = isinstance(metadata, dict) and metadata.get(_DIGEST) == digest
            if is_same and batch.get("status") not in _BROKEN:
                return _read_identifier(batch)
        if not (batches and page.get("has_more") and isinstance(batches[-1], dict)):
            return ""
        after = f"&after={quote(_read_identifier(batches[-1]), safe='')}"
    return ""


async def _fetch_results(
    client: Connection, folder: Folder, name: str, request_file: RequestFile
) -> None:
    """Download the results of a batch that has ended; refuse one that failed as a whole."""
    batch = await _request(
        client, "GET", f"/batches/{quote(request_file.batch, safe='')}"
    )
    status = batch.get("status")
    if status not in _ENDED:
        return
    if status == "failed":
        batch_id = request_file.batch
        request_file.batch = ""
        folder.save()
        raise PsyprobeError(
            f"the server refused {batch_id} as a whole ({harmless(_failure_message(batch))}); "
            f"{name} is sent again by the next command"
        )
    number = name.removeprefix("requests-").removesuffix(".jsonl")
    for kind in ("output", "error"):
        if (file := batch.get(f"{kind}_file_id")) is not None:
            path = folder.path / f"results-{number}-{kind}.jsonl"
            partial_path = path.with_suffix(".part")
            place = f"/files/{quote(_read_identifier({'id': file}), safe='')}/content"
            await _reply(client.download(place, partial_path, _MAX_BYTES))
            write_whole(path, partial_path.replace)
    # Only now are the files of results complete.
    request_file.closed = True
    folder.save()


async def _request(
    client: Connection, method: str, path: str, body: Any = None
) -> JsonObject:
    """Send an HTTP request to the server, and return its reply as JSON."""
    reply = await _reply(client.exchange(method, path, body))
    fields = error_of(reply.body)
    if not isinstance(fields, dict):
        raise PsyprobeError(
            "the server answers with something else than a batch; send the files by hand"
        )
    return fields


async def _reply(exchange: Awaitable[Reply]) -> Reply:
    """Wait for a server's reply, and return it, refusing one with an error status."""
    return _check(await _exchange(exchange))


async def _exchange(exchange: Awaitable[Reply]) -> Reply:
    """Wait for a server's reply, whatever its status."""
    try:
        async with asyncio.timeout(_TIMEOUT):
            return await exchange
    except Exception as error:
        reason = (
            f"no answer within {_TIMEOUT:g} s"
            if isinstance(error, TimeoutError)
            else break_reason(error)
        )
        raise PsyprobeError(
            f"the server's batches cannot be reached ({reason}); run the same command later"
        ) from None


def _check(reply: Reply) -> Reply:
    """Return a reply with a good status, and raise an error about any other."""
    if reply.status == 200:
        return reply
    problem = problem_of_status(reply.status, error_of(reply.body), reply.headers)
    by_hand = "send the files by hand, and leave --submit out"
    remedies = {401: "set OPENAI_API_KEY to a key that it takes"}
    remedies |= dict.fromkeys((404, 405, 501), by_hand)
    remedy = remedies.get(reply.status, "run the same command later")
    raise PsyprobeError(f"the server refuses the batch ({problem}); {remedy}")


def _read_identifier(fields: JsonMapping) -> str:
    """Read the id of a file or batch from a server's reply, refusing one that is unsafe."""
    name = fields.get("id")
    if not (isinstance(name, str) and _NAME.fullmatch(name)):
        raise PsyprobeError(
            "the server gives a file or batch no name that can be used; send the files by hand"
        )
    return name


def _failure_message(batch: JsonMapping) -> str:
    """Return a server's message about a batch that failed."""
    errors = batch.get("errors")
    data = errors.get("data") if isinstance(errors, dict) else None
    first = (
        data[0] if isinstance(data, list) and data and isinstance(data[0], dict) else {}
    )
    return str(first.get("message") or "it does not say why")[:500]
