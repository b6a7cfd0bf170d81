"""Every answer, once, durable: one SQLite file, keyed by the content of the question.

An answer is raw: a reply word for word, distances as they came out. Reading and scoring are redone without asking.

Each row carries a seal, a digest of its other cells, and is read in one place that checks it: what is damaged, or was
edited by hand, is one line and never a number.

The file uses SQLite's rollback journal and not its write-ahead log: a store that is one file (no ``-wal`` beside it)
can be copied, mailed and kept on network drives, where a write-ahead log fails.
"""

from __future__ import annotations

import hashlib
import json
import re
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from threading import RLock
from typing import Any, Self

from psyprobe.errors import StoreError
from psyprobe.files.output import digest
from psyprobe.running.protocol import Answered, Origin, Question, RunRecord

#: How long a process waits for another one's transaction, in seconds.
BUSY_TIMEOUT = 60.0
#: Version of the tables.
SCHEMA_VERSION = 4
#: "psyp" in ASCII: tells a store from any other SQLite file.
APPLICATION_ID = 0x70737970
#: Kinds of content whose digest is that of its JSON; those of others leave something out.
_NAMED_BY_CONTENT = ("asked", "display", "items")
#: Questions are looked up so many at a time.
_TOGETHER = 500

#: The cells of each table that its seal covers; the first names the row. `way` is what many questions share: what is
#: asked of whom; `origin` what many answers share: software, device, and what a server said of itself.
_SEALED = {
    "content": ("digest", "kind", "json"),
    "way": ("asked", "observer", "version"),
    "origin": ("observer", "json"),
    "answer": ("key", "shown", "way", "origin", "answered", "json"),
    "run": ("key", "record", "started", "finished", "outcome", "origins"),
}
_TABLES = """
CREATE TABLE content (
    digest TEXT PRIMARY KEY, kind TEXT NOT NULL, json TEXT NOT NULL, seal BLOB NOT NULL
) WITHOUT ROWID;
CREATE TABLE way (
    id INTEGER PRIMARY KEY, asked TEXT NOT NULL, observer TEXT NOT NULL, version TEXT NOT NULL, seal BLOB NOT NULL,
    UNIQUE (asked, observer, version)
);
CREATE TABLE origin (
    id INTEGER PRIMARY KEY, observer TEXT NOT NULL, json TEXT NOT NULL, seal BLOB NOT NULL, UNIQUE (observer, json)
);
CREATE TABLE answer (
    key BLOB PRIMARY KEY, shown BLOB NOT NULL, way INTEGER NOT NULL REFERENCES way (id),
    origin INTEGER NOT NULL REFERENCES origin (id), answered TEXT NOT NULL, json TEXT NOT NULL, seal BLOB NOT NULL
) WITHOUT ROWID;
CREATE TABLE run (
    id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, record TEXT NOT NULL, started TEXT NOT NULL, finished TEXT,
    outcome TEXT, origins TEXT, seal BLOB NOT NULL
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
        self._ids: dict[tuple[str, ...], int] = {}
        with self._explained():
            self._connection = self._connect(create)
            try:
                self._prepare(create)
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
        with self._explained():
            known = [
                self._connection.execute(f"SELECT key FROM answer {which}", part).fetchall()
                for which, part in _parts(wanted)
            ]
        return wanted - {key.hex() for rows in known for (key,) in rows}

    def answers(self, keys: Iterable[str]) -> dict[str, dict[str, Any]]:
        """The answers to those questions, by their keys, that have one."""
        rows = [row for which, part in _parts(set(keys)) for row in self._rows("answer", which, part)]
        return {row[0].hex(): self._decoded("answer", row, row[-1]) for row in rows}

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
                f"{self.name}: {absent} of {len(keys)} questions have no answer yet; "
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
        rows: list[tuple[Answered, str]] = []
        contents: list[tuple[str, str, Any]] = []
        for each in answered:
            try:
                text = json.dumps(each.answer, allow_nan=False, separators=(",", ":"))
            except ValueError:
                raise StoreError("a response is NaN or infinite; the store keeps finite responses only") from None
            rows.append((each, text))
            contents += each.contents
        with self._transaction() as connection:
            self._keep(connection, contents)
            # One round of ids, also for ways that another process added meanwhile.
            values = []
            for each, text in rows:
                asked = each.question
                shared = self._way(connection, asked), self._origin(connection, each)
                values.append((bytes.fromhex(asked.key), bytes.fromhex(asked.shown), *shared, now, text))
            self._insert(connection, "answer", values)

    def origins_of(self, observer: str) -> list[Origin]:
        """All that has answered for the observer of a card's digest, in the order in which it came."""
        rows = self._rows("origin", "WHERE observer = ? ORDER BY id", (observer,))
        return [self._origin_in(row) for row in rows]

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
        rows = self._rows("content", "WHERE digest = ?", (name,))
        if not rows:
            raise StoreError(f"{self.name}: nothing is kept under the digest {name}")
        return self._decoded("content", rows[0], rows[0][-1])

    # -- runs --------------------------------------------------------------------------------------------------------

    def begin(self, record: RunRecord) -> RunRecord:
        """Open a run, or go on with the one that asks the same, whose grouping of questions is binding."""
        with self._transaction() as connection:
            values = {name: value for name, value in asdict(record).items() if name not in _OF_THE_TABLE}
            text = json.dumps(values, allow_nan=False)
            self._insert(connection, "run", [(record.key, text, _now(), None, None, None)])
        begun = self.find(record.key)
        assert begun is not None
        return begun

    def finish(self, key: str, outcome: Mapping[str, Any], questions: Iterable[str] = ()) -> RunRecord:
        """Note that every question of a run is answered, what its session found, and who gave those answers."""
        origins = [asdict(origin) for origin in self._origins(set(questions))]
        told = json.dumps(outcome, allow_nan=False), json.dumps(origins, allow_nan=False)
        with self._transaction() as connection:
            ((_, text, started, finished, *_),) = self._rows("run", "WHERE key = ?", (key,))
            if finished is None:
                row = (key, text, started, _now(), *told)
                cells = ", ".join(f"{name} = ?" for name in _SEALED["run"])
                connection.execute(f"UPDATE run SET {cells}, seal = ? WHERE key = ?", (*row, _seal(row), key))
        found = self.find(key)
        assert found is not None
        return replace(found, outcome=outcome)

    def find(self, key: str) -> RunRecord | None:
        """The run with a key as it was begun, or None."""
        return next(iter(self._runs("WHERE key = ?", (key,))), None)

    def runs(self) -> list[RunRecord]:
        """All runs, finished and unfinished, in the order in which they were begun."""
        return self._runs("ORDER BY id", ())

    # -- the file ----------------------------------------------------------------------------------------------------

    def summary(self) -> dict[str, Any]:
        """What is in the store: schema, size in bytes, answers, runs, and of each observer who gave its answers."""
        with self._explained():
            asked = dict(self._connection.execute("SELECT way, count(*) FROM answer GROUP BY way").fetchall())
        rows = self._rows("content", "WHERE kind = 'observer'")
        cards = {row[0]: self._decoded("content", row, row[-1]) for row in rows}
        answers: dict[str, int] = {}
        for way, (_, observer, _) in self._numbered("way", "ORDER BY id"):
            answers[observer] = answers.get(observer, 0) + asked.get(way, 0)
        return {
            "store": str(self.path or "in memory"),
            "schema": SCHEMA_VERSION,
            "bytes": 0 if self.path is None else self.path.stat().st_size,
            "answers": sum(asked.values()),
            "observers": [
                {
                    "observer": cards.get(card, {}).get("name", card[:12]),
                    "card": card,
                    "answers": count,
                    "origins": [asdict(origin) for origin in self.origins_of(card)],
                }
                for card, count in answers.items()
            ],
            "runs": [
                {name: getattr(run, name) for name in ("experiment", "observer", "probe", "started", "finished")}
                for run in self.runs()
            ],
        }

    def verify(self) -> dict[str, int]:
        """Read all there is, and compute again each digest that can be: how many rows each table has.

        Raises
        ------
        StoreError
            Something is damaged; the message names the first row that is.
        """
        with self._explained():
            found = self._connection.execute("PRAGMA integrity_check(1)").fetchone()[0]
            if found != "ok":
                raise StoreError(f"{self.name} is damaged ({found[:100]}); restore a copy of it or start a new store")
        ways, origins = dict(self._numbered("way")), dict(self._numbered("origin"))
        rows = {table: self._rows(table) for table in _SEALED}
        for row in rows["answer"]:
            key, shown, way, origin, *_ = row
            asked, observer, version = ways.get(way, ("", "", ""))
            if Question(shown.hex(), asked, observer, version).key != key.hex() or origin not in origins:
                raise self._damaged("answer", row)
            self._decoded("answer", row, row[-1])
        for row in rows["content"]:
            name, kind, text = row
            value = self._decoded("content", row, text)
            if kind in _NAMED_BY_CONTENT and digest(value) != name:
                raise self._damaged("content", row)
        for row in rows["origin"]:
            self._origin_in(row)
        for row in rows["run"]:
            if self._run(row).key != row[0]:
                raise self._damaged("run", row)
        return {table: len(found) for table, found in rows.items()}

    @property
    def name(self) -> str:
        """What messages call it."""
        return "the store in memory" if self.path is None else f"store {self.path}"

    def _rows(self, table: str, which: str = "", values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Those cells of rows that are sealed."""
        return [row for _, row in self._numbered(table, which, values, number="NULL")]

    def _numbered(
        self, table: str, which: str = "", values: Sequence[Any] = (), number: str = "id"
    ) -> list[tuple[int, tuple[Any, ...]]]:
        """The one place where rows are read, each as it was written, with its number in the table."""
        with self._explained():
            chosen = f"SELECT {number}, {', '.join(_SEALED[table])}, seal FROM {table} {which}"
            rows = self._connection.execute(chosen, values).fetchall()
        for _, *row, seal in rows:
            if seal != _seal(row):
                raise self._damaged(table, row)
        return [(row[0], row[1:-1]) for row in rows]

    def _decoded(self, table: str, row: Sequence[Any], text: str | None) -> Any:
        """What stands in a cell as JSON."""
        try:
            return json.loads(text or "{}")
        except (ValueError, RecursionError):
            raise self._damaged(table, row) from None

    def _damaged(self, table: str, row: Sequence[Any]) -> StoreError:
        name = row[0].hex() if isinstance(row[0], bytes) else ascii(row[0]).strip("'")
        remedy = "delete the row, and it is asked again" if table == "answer" else "start a new store"
        return StoreError(
            f"{self.name}: row {name[:16]} of table {table} is damaged or was edited; restore a copy of the file, "
            f"or {remedy}"
        )

    def _insert(self, connection: sqlite3.Connection, table: str, rows: Iterable[tuple[Any, ...]]) -> None:
        """Add rows with their seals; those that are there already stay."""
        names = (*_SEALED[table], "seal")
        marks = ", ".join("?" * len(names))
        connection.executemany(
            f"INSERT INTO {table} ({', '.join(names)}) VALUES ({marks}) ON CONFLICT DO NOTHING",
            [(*row, _seal(row)) for row in rows],
        )

    def _way(self, connection: sqlite3.Connection, question: Question) -> int:
        return self._id(connection, "way", (question.asked, question.observer, question.version))

    def _origin(self, connection: sqlite3.Connection, answered: Answered) -> int:
        return self._id(connection, "origin", (answered.question.observer, answered.origin.text))

    def _id(self, connection: sqlite3.Connection, table: str, row: tuple[str, ...]) -> int:
        if row not in self._ids:
            self._insert(connection, table, [row])
            where = " AND ".join(f"{name} = ?" for name in _SEALED[table])
            (self._ids[row],) = connection.execute(f"SELECT id FROM {table} WHERE {where}", row).fetchone()
        return self._ids[row]

    def _origins(self, keys: set[str]) -> list[Origin]:
        """All that gave the answers to some questions, in an order that depends on nothing else."""
        with self._explained():
            found = [
                self._connection.execute(f"SELECT DISTINCT origin FROM answer {which}", part).fetchall()
                for which, part in _parts(keys)
            ]
        texts = set()
        for (number,) in set().union(*found):
            rows = self._rows("origin", "WHERE id = ?", (number,))
            if not rows:
                raise self._damaged("origin", (number,))
            texts.add(rows[0])
        return [self._origin_in(row) for row in sorted(texts)]

    def _origin_in(self, row: tuple[Any, ...]) -> Origin:
        try:
            return Origin(**self._decoded("origin", row, row[-1]))
        except TypeError:
            raise self._damaged("origin", row) from None

    def _keep(self, connection: sqlite3.Connection, contents: Iterable[tuple[str, str, Any]]) -> None:
        rows = [(name, kind, json.dumps(value, allow_nan=False)) for name, kind, value in contents]
        self._insert(connection, "content", rows)

    def _runs(self, which: str, values: tuple[str, ...]) -> list[RunRecord]:
        return [self._run(row) for row in self._rows("run", which, values)]

    def _run(self, row: tuple[Any, ...]) -> RunRecord:
        _, text, started, finished, outcome, origins = row
        try:
            return RunRecord(
                **self._decoded("run", row, text),
                started=started,
                finished=finished,
                outcome=self._decoded("run", row, outcome),
                origins=tuple(Origin(**told) for told in self._decoded("run", row, origins)),
            )
        except TypeError:
            raise self._damaged("run", row) from None

    def _connect(self, create: bool) -> sqlite3.Connection:
        if self.path is None:
            return sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        if self.path.is_dir():
            raise StoreError(f"{self.name} is a folder; give the name of a file in it")
        if not self.path.parent.is_dir():
            raise StoreError(f"{self.name} cannot be made: there is no folder {self.path.parent}; make it first")
        if not create and not self.path.exists():
            raise StoreError(f"{self.name} does not exist")
        return sqlite3.connect(self.path, timeout=BUSY_TIMEOUT, isolation_level=None, check_same_thread=False)

    def _prepare(self, create: bool) -> None:
        version, application, tables = self._identity()
        if not (create or version or application or tables):
            raise StoreError(f"{self.name} is empty and holds no run; restore a copy of it or give another file")
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
            raise StoreError(f"{self.name} is a database of another program; give another file name")
        if version != SCHEMA_VERSION:
            raise StoreError(
                f"{self.name} has schema {version}, and this psyprobe reads schema {SCHEMA_VERSION} only; "
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
                self._ids.clear()
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    @contextmanager
    def _explained(self) -> Iterator[None]:
        with self._lock:
            try:
                yield
            except sqlite3.Error as error:
                raise StoreError(f"{self.name} {_explanation(error)}") from error


#: Fields of a record that have a column of their own.
_OF_THE_TABLE = ("started", "finished", "outcome", "origins")


def _seal(row: Sequence[Any]) -> bytes:
    return hashlib.sha256(ascii(tuple(row)).encode()).digest()[:8]


def _parts(keys: set[str]) -> Iterator[tuple[str, list[bytes]]]:
    """Conditions that together choose the answers of some keys, with their values."""
    listed = [bytes.fromhex(key) for key in keys]
    for start in range(0, len(listed), _TOGETHER):
        part = listed[start : start + _TOGETHER]
        yield f"WHERE key IN ({','.join('?' * len(part))})", part


def _explanation(error: sqlite3.Error) -> str:
    text = str(error)
    if "not a database" in text:
        return "is not a store: it is no SQLite file; give another file name"
    if re.search("malformed|corrupt|no such|decode|has no column", text):
        return f"is damaged ({text[:100]}); restore a copy of it or start a new store"
    if "locked" in text:
        return f"is locked by another process for more than {BUSY_TIMEOUT:g} s; end that process or use another store"
    if "readonly" in text or "unable to open" in text:
        return f"cannot be written ({text}); check the rights on the file and its folder, or give another --store"
    return f"failed: {text[:200]}"


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
