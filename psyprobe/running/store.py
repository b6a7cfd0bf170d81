"""Every answer, once, durable: one SQLite file, keyed by the content of the question.

An answer is raw: a reply word for word, distances as they came out. Reading and scoring are redone without asking.

The file uses SQLite's rollback journal and not its write-ahead log: a store that is one file (no ``-wal`` beside it)
can be copied, mailed and kept on network drives, where a write-ahead log fails.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from threading import RLock
from typing import Any, Self

from psyprobe.errors import StoreError
from psyprobe.running.protocol import Answered, Question, RunRecord

#: How long a process waits for another one's transaction, in seconds.
BUSY_TIMEOUT = 60.0
#: Version of the tables.
SCHEMA_VERSION = 4
#: "psyp" in ASCII: tells a store from any other SQLite file.
APPLICATION_ID = 0x70737970
#: Questions are looked up so many at a time.
_TOGETHER = 500

#: `way` is what many questions share: what is asked of whom.
_TABLES = """
CREATE TABLE content (digest TEXT PRIMARY KEY, kind TEXT NOT NULL, json TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE way (
    id INTEGER PRIMARY KEY, asked TEXT NOT NULL, observer TEXT NOT NULL, version TEXT NOT NULL,
    UNIQUE (asked, observer, version)
);
CREATE TABLE answer (
    key BLOB PRIMARY KEY, shown BLOB NOT NULL, way INTEGER NOT NULL REFERENCES way (id), answered TEXT NOT NULL,
    json TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE run (
    id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, record TEXT NOT NULL, started TEXT NOT NULL, finished TEXT,
    outcome TEXT
);
"""


class Store:
    """A SQLite file that keeps answers, what their questions were about, and runs.

    Safe to use from several threads, and from several processes on one machine.

    Parameters
    ----------
    path : str, Path or None
        The file; None keeps everything in memory and forgets it on closing.
    create : bool
        Whether a file that does not exist yet may be made.

    Raises
    ------
    StoreError
        The file cannot be opened or written, is no store, is damaged, or comes from another version of psyprobe.

    Examples
    --------
    >>> asked = Question(shown="00", asked="prompt", observer="card", version="1")
    >>> with Store(None) as store:
    ...     store.add([Answered(asked, {"text": "Yes."})])
    ...     store.answers([asked.key])[asked.key]["text"]
    'Yes.'
    """

    def __init__(self, path: str | Path | None, *, create: bool = True) -> None:
        self.path = None if path is None else Path(path)
        self._lock = RLock()
        self._ways: dict[tuple[str, str, str], int] = {}
        with self._explained():
            self._connection = self._connect(create)
            try:
                self._prepare()
            except BaseException:
                self._connection.close()
                raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    # -- answers -----------------------------------------------------------------------------------------------------

    def missing(self, keys: Iterable[str]) -> set[str]:
        """The keys, of those given, of questions that nobody has answered yet."""
        wanted = set(keys)
        return wanted - {key for key, _ in self._found("key, NULL", wanted)}

    def answers(self, keys: Iterable[str]) -> dict[str, dict[str, Any]]:
        """The answers to those questions, by their keys, that have one."""
        return {key: json.loads(text) for key, text in self._found("key, json", set(keys))}

    def answers_of_all(self, keys: Sequence[str]) -> dict[str, dict[str, Any]]:
        """The answers to questions that must all have one.

        Raises
        ------
        StoreError
            One has none.
        """
        found = self.answers(keys)
        if absent := len(set(keys) - set(found)):
            raise StoreError(
                f"{self._name}: {absent} of {len(keys)} questions have no answer yet; "
                "run the experiment again to ask them"
            )
        return found

    def add(self, answered: Iterable[Answered]) -> None:
        """Keep answers and what their digests stand for, all or none of them.

        A question that is answered already keeps its first answer.

        Raises
        ------
        StoreError
            An answer holds NaN or infinity, or the file cannot be written.
        """
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        rows: list[tuple[Question, str]] = []
        contents: list[tuple[str, str, Any]] = []
        for each in answered:
            try:
                text = json.dumps(each.answer, allow_nan=False, separators=(",", ":"))
            except ValueError:
                raise StoreError("a response is NaN or infinite; the store keeps finite responses only") from None
            rows.append((each.question, text))
            contents += each.contents
        with self._transaction() as connection:
            self._keep(connection, contents)
            # One round of ids, also for ways that another process added meanwhile.
            values = [
                (bytes.fromhex(asked.key), bytes.fromhex(asked.shown), self._way(connection, asked), now, text)
                for asked, text in rows
            ]
            connection.executemany("INSERT INTO answer VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING", values)

    # -- what digests stand for --------------------------------------------------------------------------------------

    def keep(self, contents: Iterable[tuple[str, str, Any]]) -> None:
        """Keep what digests stand for: (digest, kind, what JSON can hold), so that a question can be read back."""
        with self._transaction() as connection:
            self._keep(connection, contents)

    def content(self, name: str) -> Any:
        """What a digest stands for.

        Raises
        ------
        StoreError
            Nothing is kept under this digest.
        """
        with self._explained():
            row = self._connection.execute("SELECT json FROM content WHERE digest = ?", (name,)).fetchone()
        if row is None:
            raise StoreError(f"{self._name}: nothing is kept under the digest {name}")
        return json.loads(row[0])

    # -- runs --------------------------------------------------------------------------------------------------------

    def begin(self, record: RunRecord) -> RunRecord:
        """Open a run, or go on with the one that asks the same, whose grouping of questions is binding."""
        with self._transaction() as connection:
            values = {name: value for name, value in asdict(record).items() if name not in _OF_THE_TABLE}
            connection.execute(
                "INSERT INTO run (key, record, started) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
                (record.key, json.dumps(values, allow_nan=False), _now()),
            )
        begun = self.find(record.key)
        assert begun is not None
        return begun

    def finish(self, key: str, outcome: Mapping[str, Any]) -> None:
        """Note that every question of a run is answered, and what its session found."""
        with self._transaction() as connection:
            connection.execute(
                "UPDATE run SET finished = ?, outcome = ? WHERE key = ? AND finished IS NULL",
                (_now(), json.dumps(outcome, allow_nan=False), key),
            )

    def find(self, key: str) -> RunRecord | None:
        """The run with a key as it was begun, or None."""
        return next(iter(self._runs("WHERE key = ?", (key,))), None)

    def runs(self) -> list[RunRecord]:
        """All runs, finished and unfinished, in the order in which they were begun."""
        return self._runs("ORDER BY id", ())

    def count(self) -> dict[str, int]:
        """How many answers there are, and of how many ways of asking."""
        with self._explained():
            asked = "SELECT (SELECT count(*) FROM answer), (SELECT count(*) FROM way)"
            answers, ways = self._connection.execute(asked).fetchone()
        return {"answers": answers, "ways": ways}

    # -- the file ----------------------------------------------------------------------------------------------------

    @property
    def _name(self) -> str:
        return "the store in memory" if self.path is None else f"store {self.path}"

    def _found(self, columns: str, keys: set[str]) -> Iterator[tuple[str, Any]]:
        listed = [bytes.fromhex(key) for key in keys]
        with self._explained():
            for start in range(0, len(listed), _TOGETHER):
                part = listed[start : start + _TOGETHER]
                marks = ",".join("?" * len(part))
                rows = self._connection.execute(f"SELECT {columns} FROM answer WHERE key IN ({marks})", part).fetchall()
                for key, value in rows:
                    yield key.hex(), value

    def _way(self, connection: sqlite3.Connection, question: Question) -> int:
        way = (question.asked, question.observer, question.version)
        if way not in self._ways:
            connection.execute(
                "INSERT INTO way (asked, observer, version) VALUES (?, ?, ?) ON CONFLICT DO NOTHING", way
            )
            (self._ways[way],) = connection.execute(
                "SELECT id FROM way WHERE asked = ? AND observer = ? AND version = ?", way
            ).fetchone()
        return self._ways[way]

    def _keep(self, connection: sqlite3.Connection, contents: Iterable[tuple[str, str, Any]]) -> None:
        rows = [(name, kind, json.dumps(value, allow_nan=False)) for name, kind, value in contents]
        connection.executemany("INSERT INTO content VALUES (?, ?, ?) ON CONFLICT DO NOTHING", rows)

    def _runs(self, which: str, values: tuple[str, ...]) -> list[RunRecord]:
        with self._explained():
            rows = self._connection.execute(
                f"SELECT record, started, finished, outcome FROM run {which}", values
            ).fetchall()
        return [
            RunRecord(**json.loads(text), started=started, finished=finished, outcome=json.loads(outcome or "{}"))
            for text, started, finished, outcome in rows
        ]

    def _connect(self, create: bool) -> sqlite3.Connection:
        if self.path is None:
            return sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        if self.path.is_dir():
            raise StoreError(f"{self._name} is a folder; give the name of a file in it")
        if not self.path.parent.is_dir():
            raise StoreError(f"{self._name} cannot be made: there is no folder {self.path.parent}; make it first")
        if not create and not self.path.exists():
            raise StoreError(f"{self._name} does not exist")
        return sqlite3.connect(self.path, timeout=BUSY_TIMEOUT, isolation_level=None, check_same_thread=False)

    def _prepare(self) -> None:
        version, application, _ = self._identity()
        if (application, version) != (APPLICATION_ID, SCHEMA_VERSION):
            # Another process may be making the same store just now: what counts is seen under the lock.
            with self._transaction() as connection:
                if self._identity() == (0, 0, 0):
                    for statement in filter(str.strip, _TABLES.split(";")):
                        connection.execute(statement)
                    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
            version, application, _ = self._identity()
        if application != APPLICATION_ID:
            raise StoreError(f"{self._name} is a database of another program; give another file name")
        if version != SCHEMA_VERSION:
            raise StoreError(
                f"{self._name} has schema {version}, and this psyprobe reads schema {SCHEMA_VERSION} only; "
                "use the psyprobe that wrote it, or a new store"
            )

    def _identity(self) -> tuple[int, int, int]:
        version = self._connection.execute("PRAGMA user_version").fetchone()[0]
        application = self._connection.execute("PRAGMA application_id").fetchone()[0]
        tables = self._connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        return version, application, tables

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """The database, to write: all of what is written within, or nothing of it."""
        with self._explained():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                self._ways.clear()
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    @contextmanager
    def _explained(self) -> Iterator[None]:
        with self._lock:
            try:
                yield
            except sqlite3.Error as error:
                raise StoreError(f"{self._name} {_explanation(error)}") from error


#: Fields of a record that have a column of their own.
_OF_THE_TABLE = ("started", "finished", "outcome")


def _explanation(error: sqlite3.Error) -> str:
    text = str(error)
    if "not a database" in text:
        return "is not a store: it is no SQLite file; give another file name"
    if "malformed" in text or "corrupt" in text:
        return f"is damaged ({text}); restore a copy of it or start a new store"
    if "locked" in text:
        return f"is locked by another process for more than {BUSY_TIMEOUT:g} s; end that process or use another store"
    if "readonly" in text or "unable to open" in text:
        return f"cannot be written ({text}); check the rights on the file and its folder, or give another --store"
    return f"failed: {text}"


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


@contextmanager
def open_store(store: str | Path | Store | None, create: bool = True) -> Iterator[Store]:
    """The store of a name, which is closed afterwards, or one that is open already, which stays so; None is memory."""
    if isinstance(store, Store):
        yield store
        return
    with Store(store, create=create) as opened:
        yield opened
