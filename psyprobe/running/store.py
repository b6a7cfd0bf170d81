"""Every answer, once, durable: one SQLite file, keyed by the content of the question.

An answer is raw: a reply word for word, distances as they came out. Reading and scoring are redone
without asking. Digests are stored by their first 128 bits.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from copy import copy
from dataclasses import asdict, astuple, replace
from datetime import UTC, datetime
from pathlib import Path
from time import time
from typing import Any, Self, TypeVar

from pydantic_core import from_json

from psyprobe.errors import StoreError
from psyprobe.files.json_types import JsonMapping, JsonObject
from psyprobe.files.output import plain_sequence
from psyprobe.running.database import COLUMNS, Database, Row, chunks
from psyprobe.running.protocol import (
    DIGEST_DIGITS,
    PROCEDURE_DIGITS,
    Answered,
    Attempt,
    Content,
    Origin,
    Question,
    RunRecord,
    check_label,
    label_procedure,
)

T = TypeVar("T")
#: The columns of a run that hold JSON.
_JSON_OF_RUN = (
    "observer_card",
    "layout",
    "software",
    "grouping",
    "outcome",
    "origins",
)
#: What of a run is known when it is finished.
_ENDING = ("finished", "outcome", "origins")
#: What parts version and label of a procedure. A label is no column of its own, so that stores
#: without labels stay as they were.
_LABEL_MARK = "\n"
#: Contents that are sorted and written at once.
_SORTED_AT_ONCE = 10_000
#: Writes JSON; made once, and not at each call.
_encode = json.JSONEncoder(
    allow_nan=False, separators=(",", ":"), default=plain_sequence
).encode


class Store:
    """A SQLite file that keeps answers, what their questions were about, and runs.

    Safe to use from several threads, and from several processes on one machine.

    Parameters
    ----------
    path : str, Path or None
        The file; None keeps all in memory, and much in a temporary file, and forgets it on closing.
    create : bool
        Whether a file that does not exist yet may be made.

    Raises
    ------
    StoreError
        The file cannot be opened or written, is no store, is damaged, or comes from another version
        of psyprobe.

    Examples
    --------
    >>> question = Question(stimulus="5e", request="a5ced0", observer="ca2d", version="1")
    >>> with Store(None) as store:
    ...     store.add([Answered(question, {"text": "Yes."})])
    ...     store.answers([question.key])[question.key]["text"]
    'Yes.'
    """

    #: Label of the runs whose answers are read and written; `with_label` gives another.
    label = ""

    def __init__(self, path: str | Path | None, *, create: bool = True) -> None:
        self.path = None if path is None else Path(path)
        self.database = Database(self.path, create=create)
        self._computed: dict[str, Any] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the store's file."""
        self.database.close()

    @property
    def name(self) -> str:
        """The store's name in messages."""
        return self.database.name

    def with_label(self, label: str) -> Self:
        """Return the store as runs of a label see it: keys stand for answers of that label alone.

        It shares the file; close the store and not this view of it.
        """
        view = copy(self)
        view.label = check_label(label)
        return view

    def transaction(self) -> AbstractContextManager[None]:
        """Write all that the block writes at its end, or nothing if it fails."""
        return self.database.transaction()

    # -- answers

    def missing(self, keys: Iterable[str]) -> set[str]:
        """Select the keys of questions that have no answer yet."""
        missing: set[str] = set()
        for chunk in chunks(keys):
            names = self.stored_names(chunk)
            present = self.database.distinct("answer", "question", "question", names)
            missing |= {key for name, key in names.items() if name not in present}
        return missing

    def answers(self, keys: Iterable[str]) -> dict[str, JsonObject]:
        """Return the answers to questions that have one, by key."""
        names = self.stored_names(keys)
        rows = self.database.select("answer", "question", names)
        return {names[row[0]]: self._decode("answer", row, "answer") for row in rows}

    def require_answers(self, keys: Sequence[str]) -> dict[str, JsonObject]:
        """Return the answers to questions by key, refusing if one is missing.

        Raises
        ------
        StoreError
            A question has none.
        """
        answers = self.answers(keys)
        self._check_answered(keys, len(set(keys) - set(answers)))
        return answers

    def iterate_answers(self, keys: Sequence[str]) -> Iterator[JsonObject]:
        """Iterate over the answers to questions in order, up to the first that is missing.

        Few of them are in memory at once.

        Raises
        ------
        StoreError
            A question has none.
        """
        for answer, _ in self.iterate_timed(keys):
            yield answer

    def iterate_timed(self, keys: Sequence[str]) -> Iterator[tuple[JsonObject, int]]:
        """Iterate over answers as `iterate_answers` does, each with its time: milliseconds since
        1970, UTC.
        """
        for chunk in chunks(keys):
            names = self.stored_names(chunk)
            rows = self.database.select("answer", "question", names)
            timed = {
                names[row[0]]: (self._decode("answer", row, "answer"), row[-1])
                for row in rows
            }
            if set(chunk) - timed.keys():
                self._check_answered(keys, len(self.missing(keys)))
            yield from map(timed.__getitem__, chunk)

    def remember(self, name: str, compute: Callable[[], T]) -> T:
        """Compute something of answers once while the store is open, and keep it in memory.

        Answers never change, so what is computed of them does not either.

        Parameters
        ----------
        name : str
            Names all that it depends on: the digest of keys with the store's label, for example.
        compute : callable
            Computes it.
        """
        if name not in self._computed:
            self._computed[name] = compute()
        kept: T = self._computed[name]
        return kept

    def add(self, answered: Iterable[Answered]) -> None:
        """Write answers and what their digests stand for, all or nothing.

        A question that is answered already keeps its first answer. Questions get the label of the
        store, if it has one.

        Raises
        ------
        StoreError
            An answer holds NaN or infinity, or the file cannot be written.
        """
        milliseconds = round(time() * 1000)
        self.add_timed((answer, milliseconds) for answer in answered)

    def add_timed(self, answered: Iterable[tuple[Answered, int]]) -> None:
        """Write answers as `add` does, each with its time: milliseconds since 1970, UTC."""
        timed_answers = [
            (self._with_own_label(answer), milliseconds)
            for answer, milliseconds in answered
        ]
        with self.transaction():
            self.add_contents(
                content for answer, _ in timed_answers for content in answer.contents
            )
            self.database.insert("procedure", self._procedure_rows(timed_answers))
            origins: dict[tuple[str, int], int] = {}
            rows = []
            for answer, milliseconds in timed_answers:
                # An origin is one object for many answers: it is spelt out once.
                question = answer.question
                asked = _asked_name(question.observer, question.label)
                origin = (asked, id(answer.origin))
                if origin not in origins:
                    origins[origin] = self._origin_id(asked, answer.origin)
                rows.append(
                    (
                        question.key,
                        answer.experiment,
                        _encode(answer.levels),
                        _encode_response(answer.answer),
                        origins[origin],
                        milliseconds,
                    )
                )
            self.database.insert("answer", rows)

    def delete_answers(self, keys: Iterable[str]) -> None:
        """Delete the answers to questions, so that others can take their place."""
        with self.transaction():
            self.database.delete_answers(self.stored_names(keys))

    def all_answers(
        self, keys: Iterable[str] | None = None
    ) -> Iterator[tuple[Answered, int]]:
        """Iterate over answers in the order they came, with their times: all, or those to some
        questions.

        Their contents are in `all_contents`.
        """
        database = self.database
        procedures = {name: parts for name, *parts in database.rows("procedure")}
        origins = {row[0]: self._read_origin(row) for row in database.rows("origin")}
        rows = (
            database.iterate("answer")
            if keys is None
            else database.select("answer", "question", self.stored_names(keys))
        )
        for row in rows:
            key, experiment, _, _, origin, milliseconds = row
            procedure = key[-PROCEDURE_DIGITS:]
            if procedure not in procedures or origin not in origins:
                raise database.damaged("answer", row)
            request, observer, version = procedures[procedure]
            version, _, label = version.partition(_LABEL_MARK)
            question = Question(
                key[:-PROCEDURE_DIGITS], request, observer, version, label
            )
            if question.procedure != procedure:
                raise database.damaged("procedure", (procedure,))
            answered = Answered(
                question,
                self._decode("answer", row, "answer"),
                origin=origins[origin],
                experiment=experiment,
                levels=self._decode("answer", row, "levels"),
            )
            yield answered, milliseconds

    def origin_ids(self, keys: Iterable[str]) -> set[int]:
        """Find which rows of the table of origins the answers to questions refer to."""
        names = self.stored_names(keys)
        return self.database.distinct("answer", "origin", "question", names)

    def origins(self, observer: str) -> list[Origin]:
        """Return all origins (software, device, server) of an observer's answers, in order."""
        name = _asked_name(observer, self.label)
        rows = self.database.select("origin", "observer", [name])
        return [self._read_origin(row) for row in rows]

    # -- what digests stand for

    def add_contents(self, contents: Iterable[Content]) -> None:
        """Write what digests stand for: (digest, kind, JSON value), some thousands at a time."""
        with self.transaction():
            for chunk in chunks(contents, _SORTED_AT_ONCE):
                by_digest = {
                    _shorten(digest): (kind, value) for digest, kind, value in chunk
                }
                names = {*by_digest}
                names -= self.database.distinct("content", "digest", "digest", names)
                # In order: rows that are appended lie close, and those that are put between others
                # leave a third of the file empty.
                rows = [
                    (name, by_digest[name][0], _encode(by_digest[name][1]))
                    for name in sorted(names)
                ]
                self.database.insert("content", rows)

    def content(self, digest: str) -> Any:
        """Return the value that a digest stands for.

        Raises
        ------
        StoreError
            The store has nothing under this digest.
        """
        rows = self.database.select("content", "digest", [_shorten(digest)])
        if not rows:
            raise StoreError(
                f"{self.name}: nothing is stored under the digest {ascii(digest)[:80]}"
            )
        return self._decode("content", rows[0], "value")

    def contents(self, digests: Iterable[str]) -> dict[str, Any]:
        """Return the values that digests stand for, but for those not stored."""
        return {digest: value for digest, _, value in self.all_contents(digests)}

    def observer_name(self, card_digest: str) -> str | None:
        """Return the name on an observer's card; None if the card is not stored."""
        rows = self.database.select("content", "digest", [_shorten(card_digest)])
        return self._decode("content", rows[0], "value").get("name") if rows else None

    def all_contents(self, digests: Iterable[str] | None = None) -> Iterator[Content]:
        """Iterate over all or some digests and what they stand for, as `add_contents` takes it."""
        rows = (
            self.database.iterate("content")
            if digests is None
            else self.database.select("content", "digest", {*map(_shorten, digests)})
        )
        for row in rows:
            yield row[0], row[1], self._decode("content", row, "value")

    # -- runs

    def begin_run(self, record: RunRecord) -> RunRecord:
        """Open a run, or resume the stored one with the same key."""
        begun = replace(
            record.with_label(self.label),
            started=utc_now(),
            finished=None,
            outcome={},
            origins=(),
        )
        with self.transaction():
            stored = self.find_run(begun.key)
            if stored is not None and stored.given_up:
                stored = stored.give_up("")
                self.adopt_run(stored)
            if stored is not None:
                return stored
            self.database.insert("run", [_build_run_row(begun, begun.key)])
        return begun

    def finish_run(
        self, begun: RunRecord, outcome: JsonMapping, origin_ids: Iterable[int] = ()
    ) -> RunRecord:
        """Record that all questions of a run are answered, with its outcome and origins.

        Parameters
        ----------
        begun : RunRecord
            The run.
        outcome : mapping
            What the schedule found, as JSON can hold it.
        origin_ids : iterable of int
            `origin_ids` of the run's questions.

        Returns
        -------
        RunRecord
            The finished run; one that was finished before keeps its time and origins.
        """
        with self.transaction():
            name = _shorten(begun.key)
            if self.database.distinct("run", "finished", "key", [name]) - {None}:
                stored = self.find_run(name)
                assert stored is not None
                return replace(stored, outcome=outcome)
            origins = self._read_origins({*origin_ids})
            finished = replace(
                begun, finished=utc_now(), outcome=outcome, origins=origins
            )
            self.database.replace("run", _build_run_row(finished, name))
        return finished

    def adopt_run(self, record: RunRecord, *, replaces: bool | None = None) -> None:
        """Add a run of another store; it ends one with its key here, by default if unfinished."""
        with self.transaction():
            stored = self.find_run(record.key)
            if stored is None:
                self.database.insert("run", [_build_run_row(record, record.key)])
            elif stored.finished is None if replaces is None else replaces:
                ending = {name: getattr(record, name) for name in _ENDING}
                ended = replace(stored, **ending)
                self.database.replace("run", _build_run_row(ended, record.key))

    def find_run(self, key: str) -> RunRecord | None:
        """Return the record of a run by its key, or None."""
        rows = self.database.select("run", "key", [_shorten(key)])
        return self._read_run(rows[0]) if rows else None

    def run_keys(self) -> list[str]:
        """Return the keys of all runs, their first 128 bits, in the order they began."""
        return [row[0] for row in self.database.rows("run")]

    def runs(self) -> list[RunRecord]:
        """Return the records of all runs, finished or not, in the order they began."""
        return list(self.iterate_runs())

    def iterate_runs(self) -> Iterator[RunRecord]:
        """Iterate over the records of `runs`, with one of them in memory at a time."""
        # One by one: a row of a large run holds as much text as its record.
        return map(self._read_run, self.database.iterate("run", at_once=1))

    def add_attempt(self, attempt: Attempt) -> None:
        """Add how an attempt at a run ended; one that is there already is left."""
        with self.transaction():
            self.database.make_attempts()
            self.database.insert("attempt", [astuple(attempt)])

    def attempts(self) -> list[Attempt]:
        """Return how attempts at runs ended that did not finish them, in order."""
        if not self.database.has_attempts():
            return []
        return [Attempt(*row) for row in self.database.rows("attempt")]

    def last_attempt(self, record: RunRecord) -> Attempt | None:
        """Return the last attempt at a run that is not finished, or None."""
        name = _shorten(record.key)
        mine = [attempt for attempt in self.attempts() if attempt.run == name]
        return mine[-1] if mine and record.finished is None else None

    # -- inside

    def stored_names(self, keys: Iterable[str]) -> dict[str, str]:
        """Map the name under which the store has each question, with its label, to its key."""
        if not self.label:
            return {key: key for key in keys}
        cut = -PROCEDURE_DIGITS
        return {key[:cut] + label_procedure(key[cut:], self.label): key for key in keys}

    def _with_own_label(self, answered: Answered) -> Answered:
        """Return an answer with the store's label, if it has one, in its question."""
        if not self.label:
            return answered
        question = replace(answered.question, label=self.label)
        return replace(answered, question=question)

    def _check_answered(self, keys: Sequence[str], missing_count: int) -> None:
        """Refuse to go on where questions have no answer in the store yet."""
        if missing_count:
            raise StoreError(
                f"{self.name}: {missing_count} of {len(keys)} questions have no answer yet; "
                "run the experiment again to ask them"
            )

    def _procedure_rows(
        self, timed_answers: Sequence[tuple[Answered, int]]
    ) -> list[Row]:
        """Build the distinct rows of the table of procedures that answers refer to."""
        questions = {
            answer.question.procedure: answer.question for answer, _ in timed_answers
        }
        return [
            (
                name,
                _shorten(question.request),
                _shorten(question.observer),
                f"{question.version}{_LABEL_MARK * bool(question.label)}{question.label}",
            )
            for name, question in questions.items()
        ]

    def _origin_id(self, asked: str, origin: Origin) -> int:
        """Find or add the row of what gave an answer (software, device, server), by its id.

        `asked` names the observer and the label.
        """
        software, served = (
            json.dumps(table, sort_keys=True)
            for table in (origin.software, origin.served)
        )
        return self.database.origin_id(asked, software, origin.device, served)

    def _read_origins(self, numbers: set[int]) -> tuple[Origin, ...]:
        """Return the origins of rows by their ids, in a reproducible order."""
        rows = self.database.select("origin", "id", sorted(numbers))
        if len(rows) < len(numbers):
            raise self.database.damaged("origin", sorted(numbers))
        rows.sort(key=lambda row: row[1:])
        return tuple(map(self._read_origin, rows))

    def _read_origin(self, row: Row) -> Origin:
        """Build the origin of an answer (software, device, server) from a row."""
        software = self._decode("origin", row, "software")
        served = self._decode("origin", row, "served")
        return Origin(software, row[COLUMNS["origin"].index("device")], served)

    def _read_run(self, row: Row) -> RunRecord:
        """Build the record of a run from a row, refusing a damaged one."""
        cells = dict(zip(COLUMNS["run"], row, strict=True))
        del cells["key"]
        cells |= {column: self._decode("run", row, column) for column in _JSON_OF_RUN}
        try:
            cells["origins"] = tuple(Origin(**origin) for origin in cells["origins"])
            return RunRecord(**cells)
        except TypeError:
            raise self.database.damaged("run", row) from None

    def _decode(self, table: str, row: Row, column: str) -> Any:
        """Parse the JSON in a cell of a row."""
        try:
            return _parse(row[COLUMNS[table].index(column)])
        except (TypeError, ValueError, RecursionError, MemoryError):
            raise self.database.damaged(table, row) from None


def _parse(text: str) -> Any:
    """Parse JSON, in half the time of the `json` module and with the same result."""
    try:
        return from_json(text)
    except ValueError:
        # It refuses half a surrogate pair, which a reply may end with, and nesting above 200.
        return json.loads(text)


def _encode_response(answer: JsonMapping) -> str:
    """Write an answer as JSON, refusing NaN and infinity."""
    try:
        return _encode(answer)
    except ValueError:
        raise StoreError(
            "a response is NaN or infinite; the store keeps finite responses only"
        ) from None


def _build_run_row(record: RunRecord, key: str) -> Row:
    """Build the row of a run with a key for the database, its tables as JSON."""
    cells: JsonObject = {"key": _shorten(key)}
    cells |= {name: getattr(record, name) for name in COLUMNS["run"][1:]}
    cells["origins"] = [asdict(origin) for origin in record.origins]
    cells |= {name: _encode(cells[name]) for name in _JSON_OF_RUN}
    return tuple(cells.values())


def _shorten(digest: str) -> str:
    """Cut a digest to the length that the store keeps."""
    return digest[:DIGEST_DIGITS]


def _asked_name(observer: str, label: str) -> str:
    """Name an observer under a label, as origins of its answers are looked up."""
    return f"{_shorten(observer)} {label}".rstrip()


def utc_now() -> str:
    """Return the current UTC time in ISO format, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


@contextmanager
def open_store(
    store: str | Path | Store | None, create: bool = True, label: str = ""
) -> Iterator[Store]:
    """Open a store by path for the block, and close it after; an open one stays open.

    None is memory. It is seen as runs of a label see it.
    """
    check_label(label)
    if isinstance(store, Store):
        yield store.with_label(label) if label else store
        return
    with Store(store, create=create) as opened:
        yield opened.with_label(label)
