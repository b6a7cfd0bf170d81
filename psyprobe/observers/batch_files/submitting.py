"""Batches by a server's own ``/files`` and ``/batches``: files of requests are sent to it, and
results fetched.

The key is that of the environment, and stays there.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

from psyprobe.errors import PsyprobeError
from psyprobe.files.output import write_whole
from psyprobe.observers.batch_files.folder import ENDPOINT, Folder, Sent
from psyprobe.observers.chat.openai_chat import OpenAIObserver
from psyprobe.observers.chat.openai_connection import Connection, break_reason
from psyprobe.observers.chat.openai_protocol import error_of, harmless, problem_of_status

#: In which a batch is answered; the only one that OpenAI offers.
_WINDOW = "24h"
#: Of a batch of which nothing more comes.
_ENDED = ("completed", "failed", "expired", "cancelled")
#: Bytes of a file of results, and seconds that one exchange may take.
_LARGEST = 2**31
_LONGEST = 900.0
#: What a server may call a file or a batch.
_NAME = re.compile(r"[\w.:-]{1,200}")


def submit(folder: Folder, observer: OpenAIObserver) -> None:
    """Send files of requests to the observer's server that were not sent yet, and have them
    answered.

    Raises
    ------
    PsyprobeError
        The server takes none, or cannot be reached.
    """
    for name, sent in folder.sent.items():
        if sent.model == observer.endpoint.model and not sent.batch and not sent.closed:
            sent.batch = observer.sending().wait_for(
                _submitted, observer.sending().client, folder.path / name
            )
            # Written down at once: a file that is sent twice is paid for twice.
            folder.save()


def fetch(folder: Folder, observer: OpenAIObserver) -> None:
    """Fetch what came of the batches of an observer, beside their requests.

    Raises
    ------
    PsyprobeError
        The server refused a whole batch, which the next call sends again; or it cannot be reached.
    """
    for name, sent in folder.sent.items():
        if sent.model == observer.endpoint.model and sent.batch and not sent.closed:
            observer.sending().wait_for(_fetched, observer.sending().client, folder, name, sent)


async def _submitted(client: Connection, file: Path) -> str:
    """The name of the batch that answers a file."""
    import aiohttp

    with file.open("rb") as requests:
        form = aiohttp.FormData()
        form.add_field("purpose", "batch")
        form.add_field("file", requests, filename=file.name, content_type="application/jsonl")
        uploaded = await _told(client, "POST", "/files", form)
    asked = {"input_file_id": _named(uploaded), "endpoint": ENDPOINT, "completion_window": _WINDOW}
    return _named(await _told(client, "POST", "/batches", json.dumps(asked).encode()))


async def _fetched(client: Connection, folder: Folder, name: str, sent: Sent) -> None:
    told = await _told(client, "GET", f"/batches/{quote(sent.batch, safe='')}")
    status = told.get("status")
    if status not in _ENDED:
        return
    if status == "failed":
        batch = sent.batch
        sent.batch = ""
        folder.save()
        raise PsyprobeError(
            f"the server refused {batch} as a whole ({harmless(_why(told))}); {name} is sent "
            "again by the next command"
        )
    number = name.removeprefix("requests-").removesuffix(".jsonl")
    for kind in ("output", "error"):
        if (file := told.get(f"{kind}_file_id")) is not None:
            path = folder.path / f"results-{number}-{kind}.jsonl"
            partial_path = path.with_suffix(".part")
            await _downloaded(client, _named({"id": file}), partial_path)
            write_whole(path, partial(_moved, partial_path))
    # Only now: what lies there is whole.
    sent.closed = True
    folder.save()


def _moved(source: Path, target: Path) -> None:
    source.replace(target)


async def _downloaded(client: Connection, file: str, path: Path) -> None:
    try:
        async with asyncio.timeout(_LONGEST):
            reply = await client.download(f"/files/{quote(file, safe='')}/content", path, _LARGEST)
    except Exception as error:
        raise _unreached(error) from None
    if reply.status != 200:
        raise _refused(reply.status, error_of(reply.body), reply.headers)


async def _told(client: Connection, method: str, path: str, body: Any = None) -> dict[str, Any]:
    """What the server says, as JSON."""
    try:
        async with asyncio.timeout(_LONGEST):
            reply = await client.exchange(method, path, body)
    except Exception as error:
        raise _unreached(error) from None
    found = error_of(reply.body)
    if reply.status != 200:
        raise _refused(reply.status, found, reply.headers)
    if not isinstance(found, dict):
        raise PsyprobeError(
            "the server answers with something else than a batch; send the files by hand"
        )
    return found


def _unreached(error: Exception) -> PsyprobeError:
    why = (
        f"no answer within {_LONGEST:g} s"
        if isinstance(error, TimeoutError)
        else break_reason(error)
    )
    return PsyprobeError(
        f"the server's batches cannot be reached ({why}); run the same command later"
    )


def _refused(status: int, body: Any, headers: Mapping[str, str]) -> PsyprobeError:
    problem = problem_of_status(status, body, headers)
    todo = (
        "send the files by hand, and leave --submit out"
        if status in (404, 405, 501)
        else "run the same command later"
    )
    if status == 401:
        todo = "set OPENAI_API_KEY to a key that it takes"
    return PsyprobeError(f"the server refuses the batch ({problem}); {todo}")


def _named(told: Mapping[str, Any]) -> str:
    name = told.get("id")
    if not (isinstance(name, str) and _NAME.fullmatch(name)):
        raise PsyprobeError(
            "the server gives a file or batch no name that can be used; send the files by hand"
        )
    return name


def _why(told: Mapping[str, Any]) -> str:
    """What a server says of a batch that failed."""
    errors = told.get("errors")
    data = errors.get("data") if isinstance(errors, dict) else None
    first = data[0] if isinstance(data, list) and data and isinstance(data[0], dict) else {}
    return str(first.get("message") or "it does not say why")[:500]
