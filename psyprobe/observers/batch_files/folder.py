"""A folder of batches of OpenAI's form: requests that were written, results that came back, and
what is left.

A folder holds all that there is to know: ``requests-0001.jsonl`` and so on, what was sent; every
other ``.jsonl``, what came back; ``batches.json``, in which terms each file asks. So nothing has to
go on running, and it may take days.

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
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from psyprobe.errors import InputError
from psyprobe.files.output import json_text, write_text, write_whole
from psyprobe.files.parsing import parse_json, read_text
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

#: As OpenAI has it; a path of the server, and no address.
ENDPOINT = "/v1/chat/completions"
#: Requests and bytes of a file.
MOST_REQUESTS = 50_000
MOST_BYTES = 200_000_000
_STATE = "batches.json"
#: In place of the field of a request that a server complains of.
THOUGHT = "thinking"
_REQUESTS = re.compile(r"requests-(\d+)\.jsonl")
#: Of a line that we wrote.
_CUSTOM_ID = re.compile(rb'\{"custom_id": "([0-9a-f]{1,64})"')


@dataclass
class Sent:
    """A file of requests."""

    model: str
    dialect: Dialect
    #: Names that questions add to the request.
    added: list[str]
    #: Its name at the server, once it was submitted; and that of its batch.
    batch: str = ""
    #: Whether nothing more comes of it.
    closed: bool = False

    def to_dict(self) -> dict[str, Any]:
        """As JSON can hold it."""
        return {
            **asdict(self),
            "dialect": {**asdict(self.dialect), "without": sorted(self.dialect.without)},
        }

    @classmethod
    def from_dict(cls, told: Mapping[str, Any]) -> Sent:
        """The file that `to_dict` was called on."""
        dialect = told["dialect"]
        return cls(
            **{**told, "dialect": Dialect(**{**dialect, "without": frozenset(dialect["without"])})}
        )


@dataclass
class Folder:
    """What lies in a folder of batches."""

    path: Path
    #: Files of requests by name, in the order in which they were written.
    sent: dict[str, Sent] = field(default_factory=dict)
    #: By custom_id: the names of the files that ask it.
    asked: dict[str, list[str]] = field(default_factory=dict)
    #: By custom_id: where its answer stands, as a file and the place in it.
    answers: dict[str, tuple[Path, int]] = field(default_factory=dict)
    #: By custom_id: lines that came back without an answer, each by what tells it from another.
    failures: dict[str, dict[str, ProblemError]] = field(default_factory=dict)
    #: Lines that cannot be read, or that answer nothing that was asked here.
    unread: int = 0
    foreign: int = 0

    def pending(self, key: str) -> bool:
        """Whether a question is asked in a file of which more may come back than did."""
        if key in self.answers or key not in self.asked:
            return False
        open_files = sum(not self.sent[name].closed for name in self.asked[key])
        closed_files = len(self.asked[key]) - open_files
        return open_files > max(len(self.failures.get(key, ())) - closed_files, 0)

    def save(self) -> None:
        """Write down in which terms each file asks, and what became of it."""
        write_text(
            self.path / _STATE, json_text({name: one.to_dict() for name, one in self.sent.items()})
        )


def read_folder(path: Path, thinking: int) -> Folder:
    """All that was asked and came back in a folder.

    Parameters
    ----------
    path : Path
        Of the folder.
    thinking : int
        Tokens that a model which thinks is given besides: an answer that was cut off in its
        thoughts without them is no answer yet.

    Raises
    ------
    InputError
        Something in it cannot be read, or is not what psyprobe wrote.
    """
    found = Folder(path)
    known = {}
    if (path / _STATE).is_file():
        told = parse_json(read_text(path / _STATE), str(path / _STATE))
        try:
            known = {name: Sent.from_dict(each) for name, each in told.items()}
        except (TypeError, KeyError, AttributeError):
            raise InputError(
                f"{path / _STATE} is not what psyprobe wrote; take another folder"
            ) from None
    files = sorted(path.glob("*.jsonl"))
    for file in files:
        if not _REQUESTS.fullmatch(file.name):
            continue
        if file.name not in known:
            raise InputError(
                f"{file} is not in {_STATE} beside it; take another folder, or remove the file"
            )
        found.sent[file.name] = known[file.name]
        for line, _ in _lines(file, MOST_BYTES):
            if line is not None and (named := _CUSTOM_ID.match(line)):
                found.asked.setdefault(named[1].decode(), []).append(file.name)
    for file in files:
        if not _REQUESTS.fullmatch(file.name):
            _read_results(found, file, thinking)
    return found


def _read_results(found: Folder, file: Path, thinking: int) -> None:
    """Note where each answer of a file stands, and what came back without one."""
    for line, place in _lines(file, LONGEST_REPLY):
        key, mark, outcome = _result(line)
        if key is None:
            found.unread += 1
            continue
        if key not in found.asked:
            found.foreign += 1
            continue
        failures = found.failures.setdefault(key, {})
        mark = mark or f"{file.name} {place}"
        if isinstance(outcome, Answer) and thinking and cut_in_thought(outcome):
            # The one that was asked with more room is as good as any will be.
            without = sum(not found.sent[name].dialect.room for name in found.asked[key])
            if mark in failures or len(failures) < without:
                outcome = ProblemError("it was cut off in its thoughts", param=THOUGHT)
        if isinstance(outcome, Answer):
            found.answers.setdefault(key, (file, place))
        else:
            failures[mark] = outcome


def _lines(file: Path, most: int) -> Iterator[tuple[bytes | None, int]]:
    """The lines of a file with their places in it; None for one that is longer than any is."""
    try:
        with file.open("rb") as lines:
            place = 0
            while line := lines.readline(most + 1):
                whole: bytes | None = line
                while not line.endswith(b"\n") and len(line) > most:
                    whole = None
                    line = lines.readline(most + 1)
                if whole is None or whole.strip():
                    yield whole, place
                place = lines.tell()
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror or error}") from None


def _result(line: bytes | None) -> tuple[str | None, str, Answer | ProblemError]:
    """Of a line of a result: the custom_id, what the server calls the line, and the answer or why
    there is none.
    """
    nothing = ProblemError("the line cannot be read", passing=True)
    try:
        told = json.loads(line or b"")
        key = told["custom_id"]
        mark = told.get("id")
        response = told.get("response")
        error = told.get("error")
        # Some servers put the completion itself into the place of the response.
        inside = isinstance(response, dict) and "body" in response
        body = json.dumps(response["body"] if inside else response).encode()
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
        return None, "", nothing
    if not isinstance(key, str):
        return None, "", nothing
    mark = mark if isinstance(mark, str) else ""
    if error or not isinstance(response, dict):
        message = (error.get("message") or error.get("code")) if isinstance(error, dict) else error
        return (
            key,
            mark,
            ProblemError(harmless(str(message or "it holds no response")[:2000]), passing=True),
        )
    status = response.get("status_code", 200) if inside else 200
    try:
        if status != 200:
            return (
                key,
                mark,
                problem_of_status(status if isinstance(status, int) else 500, response["body"], {}),
            )
        return key, mark, read_completion(body, {})
    except ProblemError as problem:
        return key, mark, problem


class Writer:
    """Writes requests into files, each whole or not at all."""

    def __init__(self, folder: Folder, model: str, dialect: Dialect) -> None:
        self._folder = folder
        self._model = model
        self.dialect = dialect
        self._spool: BinaryIO | None = None
        self._open = ExitStack()
        self._keys: list[str] = []
        self._added: set[str] = set()
        self._bytes = 0
        #: The names of the files that were written.
        self.files: list[str] = []

    def add(self, inquiry: Inquiry, body: bytes) -> None:
        """One more request, in a new file where it has no room in the last one."""
        line = b'{"custom_id": "%s", "method": "POST", "url": "%s", "body": %s}\n'
        line %= (inquiry.key.encode(), ENDPOINT.encode(), body)
        if not _CUSTOM_ID.match(line):
            raise InputError(
                f"the key of a question is {inquiry.key!r:.80}; give up to 64 hexadecimal digits"
            )
        if len(line) > MOST_BYTES:
            raise InputError(
                f"a request has {len(line):,} bytes; {MOST_BYTES:,} are allowed, so show a "
                "smaller image"
            )
        if self._spool is not None and (
            len(self._keys) == MOST_REQUESTS or self._bytes + len(line) > MOST_BYTES
        ):
            self.finish()
        if self._spool is None:
            # Without a name, so that nothing of it is left where this process is killed.
            self._spool = self._open.enter_context(tempfile.TemporaryFile(dir=self._folder.path))  # noqa: SIM115
        self._spool.write(line)
        self._keys.append(inquiry.key)
        self._added |= set(inquiry.decoding.extra_body or ())
        self._bytes += len(line)

    def finish(self) -> None:
        """Give the file its name."""
        spool = self._spool
        folder = self._folder
        if spool is None:
            return
        name = f"requests-{1 + max((int(each[9:-6]) for each in folder.sent), default=0):04d}.jsonl"
        folder.sent[name] = Sent(self._model, self.dialect, sorted(self._added))
        folder.save()
        spool.seek(0)

        def copy(path: Path) -> None:
            with path.open("wb") as file:
                shutil.copyfileobj(spool, file, 2**20)

        write_whole(folder.path / name, copy)
        for key in self._keys:
            folder.asked.setdefault(key, []).append(name)
        self.files.append(name)
        self.close()

    def close(self) -> None:
        """Forget what has no name yet."""
        self._open.close()
        self._spool, self._keys, self._added, self._bytes = None, [], set(), 0


def answer_at(file: Path, place: int) -> Answer | None:
    """The answer at a place of a file of results."""
    with file.open("rb") as lines:
        lines.seek(place)
        outcome = _result(lines.readline(LONGEST_REPLY + 1))[2]
    return outcome if isinstance(outcome, Answer) else None
