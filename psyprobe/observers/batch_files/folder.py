"""A folder of batches of OpenAI's form: files of requests, and files of results.

A folder holds the whole state: ``requests-0001.jsonl`` and so on are requests; every other
``.jsonl`` is a file of results; ``batches.json`` has the dialect and the batch of each file of
requests. So nothing has to go on running, and it may take days.

References
----------
OpenAI. Batch API reference (2024-2026): a file holds up to 50,000 requests to one model and 200 MB;
each line of a result names its request by ``custom_id``; what was not answered in time comes back
as an error.
"""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, NamedTuple

from pydantic import TypeAdapter, ValidationError

from psyprobe.errors import InputError
from psyprobe.files.output import json_text, write_text, write_whole
from psyprobe.files.parsing import read_text
from psyprobe.observers.chat.openai_connection import LONGEST_REPLY
from psyprobe.observers.chat.openai_protocol import (
    Dialect,
    ProblemError,
    cut_in_thought,
    harmless,
    problem_of_status,
    read_completion,
)
from psyprobe.observers.chat.protocol import Answer, Inquiry

#: Path of the endpoint at the server.
ENDPOINT = "/v1/chat/completions"
#: Most requests and bytes of a file.
MAX_REQUESTS = 50_000
MAX_BYTES = 200_000_000
_STATE = "batches.json"
#: The `param` of a problem with an answer that was cut off in its thoughts.
THINKING = "thinking"
_REQUESTS = re.compile(r"requests-(\d+)\.jsonl")
#: Beginning of a line of requests.
_CUSTOM_ID = re.compile(rb'\{"custom_id": "([0-9a-f]{1,64})"')


@dataclass
class RequestFile:
    """A file of requests."""

    model: str
    dialect: Dialect
    #: Names of fields that questions add to the request.
    added: list[str]
    #: Name of its batch at the server, once it was submitted.
    batch: str = ""
    #: Whether no more results come.
    closed: bool = False


_STATES = TypeAdapter(dict[str, RequestFile])


class ResultLine(NamedTuple):
    """The position of a line of results: a file, and the byte in it."""

    file: Path
    offset: int


@dataclass
class Folder:
    """The state of a folder of batches."""

    path: Path
    #: Files of requests by name, in the order in which they were written.
    request_files: dict[str, RequestFile] = field(default_factory=dict)
    #: Names of the files of requests that ask a question, by its custom_id.
    file_names: dict[str, list[str]] = field(default_factory=dict)
    #: Positions of answers, by custom_id.
    answers: dict[str, ResultLine] = field(default_factory=dict)
    #: Results without an answer, by custom_id and by the result's name.
    failures: dict[str, dict[str, ProblemError]] = field(default_factory=dict)
    #: Number of lines that cannot be read.
    unread: int = 0

    def pending(self, key: str) -> bool:
        """Tell whether a question without an answer may still get one."""
        if key in self.answers or key not in self.file_names:
            return False
        open_files = sum(
            not self.request_files[name].closed for name in self.file_names[key]
        )
        closed_files = len(self.file_names[key]) - open_files
        return open_files > max(len(self.failures.get(key, ())) - closed_files, 0)

    def last_file(self, key: str) -> RequestFile:
        """Return the last request file that asks a question."""
        return self.request_files[self.file_names[key][-1]]

    def save(self) -> None:
        """Write the state of the request files to the folder."""
        states = _STATES.dump_python(self.request_files, mode="json")
        write_text(self.path / _STATE, json_text(states))


def read_folder(path: Path, thinking: int) -> Folder:
    """Read the state of a folder of batch requests and results from its files.

    Parameters
    ----------
    path : Path
        The folder.
    thinking : int
        Tokens that a model which thinks is given besides: an answer that was cut off in its
        thoughts without them is no answer yet.

    Raises
    ------
    InputError
        Something in it cannot be read, or is not what psyprobe wrote.
    """
    folder = Folder(path)
    request_files = {}
    if (path / _STATE).is_file():
        try:
            request_files = _STATES.validate_json(read_text(path / _STATE))
        except ValidationError:
            raise InputError(
                f"{path / _STATE} is not what psyprobe wrote; take another folder"
            ) from None
    files = sorted(path.glob("*.jsonl"))
    for file in files:
        if not _REQUESTS.fullmatch(file.name):
            continue
        if file.name not in request_files:
            raise InputError(
                f"{file} is not in {_STATE} beside it; take another folder, or remove the file"
            )
        folder.request_files[file.name] = request_files[file.name]
        for line, _ in _lines(file, MAX_BYTES):
            if line is not None and (match := _CUSTOM_ID.match(line)):
                folder.file_names.setdefault(match[1].decode(), []).append(file.name)
    for file in files:
        if not _REQUESTS.fullmatch(file.name):
            _read_results(folder, file, thinking)
    return folder


def _read_results(folder: Folder, file: Path, thinking: int) -> None:
    """Add the answers and failures in a result file to a folder's state."""
    for line, offset in _lines(file, LONGEST_REPLY):
        result = _read_result(line)
        key = result.key
        if key is None:
            folder.unread += 1
            continue
        if key not in folder.file_names:  # the result of another folder
            continue
        failures = folder.failures.setdefault(key, {})
        name = result.name or f"{file.name} {offset}"
        outcome = result.outcome
        if isinstance(outcome, Answer) and thinking and cut_in_thought(outcome):
            # A result of a request with more room is as good as any will be.
            without_room = sum(
                not folder.request_files[file_name].dialect.room
                for file_name in folder.file_names[key]
            )
            if name in failures or len(failures) < without_room:
                outcome = ProblemError("it was cut off in its thoughts", param=THINKING)
        if isinstance(outcome, Answer):
            folder.answers.setdefault(key, ResultLine(file, offset))
        else:
            failures[name] = outcome


def _lines(file: Path, limit: int) -> Iterator[tuple[bytes | None, int]]:
    """Iterate over a file's lines with their offsets; None in place of a line that is too long."""
    try:
        with file.open("rb") as lines:
            offset = 0
            while line := lines.readline(limit + 1):
                content: bytes | None = line
                while not line.endswith(b"\n") and len(line) > limit:
                    content = None
                    line = lines.readline(limit + 1)
                if content is None or content.strip():
                    yield content, offset
                offset = lines.tell()
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror or error}") from None


class _Result(NamedTuple):
    """A line of results."""

    #: custom_id of the question; None if the line cannot be read.
    key: str | None
    #: The server's name of the line; "" if it gives none.
    name: str
    outcome: Answer | ProblemError


_UNREADABLE = _Result(None, "", ProblemError("the line cannot be read", passing=True))


def _read_result(line: bytes | None) -> _Result:
    """Read one line of a batch's results: an answer, a problem, or nothing readable."""
    try:
        result = json.loads(line or b"")
        key = result["custom_id"]
        name = result.get("id")
        response = result.get("response")
        error = result.get("error")
        # Some servers give the completion itself as the response.
        has_body = isinstance(response, dict) and "body" in response
        body = json.dumps(response["body"] if has_body else response).encode()
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
        return _UNREADABLE
    if not isinstance(key, str):
        return _UNREADABLE
    name = name if isinstance(name, str) else ""
    if error or not isinstance(response, dict):
        message = (
            (error.get("message") or error.get("code"))
            if isinstance(error, dict)
            else error
        )
        text = harmless(str(message or "it holds no response")[:2000])
        return _Result(key, name, ProblemError(text, passing=True))
    status = response.get("status_code", 200) if has_body else 200
    if status != 200:
        code = status if isinstance(status, int) else 500
        return _Result(key, name, problem_of_status(code, response["body"], {}))
    try:
        return _Result(key, name, read_completion(body, {}))
    except ProblemError as problem:
        return _Result(key, name, problem)


class RequestWriter:
    """Writes requests into files, each completely or not at all."""

    def __init__(self, folder: Folder, model: str, dialect: Dialect) -> None:
        self._folder = folder
        self._model = model
        self.dialect = dialect
        self._spool: BinaryIO | None = None
        self._open = ExitStack()
        self._keys: list[str] = []
        self._added: set[str] = set()
        self._bytes = 0
        #: Names of the complete files.
        self.files: list[str] = []

    def add(self, inquiry: Inquiry, body: bytes) -> None:
        """Write a question to the current request file, or to a new one if that is full."""
        line = b'{"custom_id": "%s", "method": "POST", "url": "%s", "body": %s}\n'
        line %= (inquiry.key.encode(), ENDPOINT.encode(), body)
        if not _CUSTOM_ID.match(line):
            raise InputError(
                f"the key of a question is {inquiry.key!r:.80}; give up to 64 hexadecimal digits"
            )
        if len(line) > MAX_BYTES:
            raise InputError(
                f"a request has {len(line):,} bytes; {MAX_BYTES:,} are allowed, so show a "
                "smaller image"
            )
        if len(self._keys) == MAX_REQUESTS or self._bytes + len(line) > MAX_BYTES:
            self.finish()
        if self._spool is None:
            # Without a name, so that nothing of it is left where this process is killed.
            spool = tempfile.TemporaryFile(dir=self._folder.path)  # noqa: SIM115
            self._spool = self._open.enter_context(spool)
        self._spool.write(line)
        self._keys.append(inquiry.key)
        self._added |= set(inquiry.decoding.extra_body or ())
        self._bytes += len(line)

    def finish(self) -> None:
        """Complete the current request file by giving it its final name."""
        spool = self._spool
        folder = self._folder
        if spool is None:
            return
        last_number = max((int(name[9:-6]) for name in folder.request_files), default=0)
        name = f"requests-{last_number + 1:04d}.jsonl"
        folder.request_files[name] = RequestFile(
            self._model, self.dialect, sorted(self._added)
        )
        folder.save()
        spool.seek(0)

        def copy(path: Path) -> None:
            with path.open("wb") as file:
                shutil.copyfileobj(spool, file, 2**20)

        write_whole(folder.path / name, copy)
        for key in self._keys:
            folder.file_names.setdefault(key, []).append(name)
        self.files.append(name)
        self.close()

    def close(self) -> None:
        """Delete the current request file unless it is complete."""
        self._open.close()
        self._spool = None
        self._keys = []
        self._added = set()
        self._bytes = 0


def answer_at(line: ResultLine) -> Answer | None:
    """Read the answer on a line of a result file; None if there is none."""
    with line.file.open("rb") as lines:
        lines.seek(line.offset)
        outcome = _read_result(lines.readline(LONGEST_REPLY + 1)).outcome
    return outcome if isinstance(outcome, Answer) else None
