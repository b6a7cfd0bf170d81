"""The SQLite file of a store, and all of its SQL: tables, the view `answers`, transactions.

Any SQLite client reads the file: digests are hexadecimal text, and values are JSON text, whose
numbers come back bit for bit. Each row carries a checksum of its other cells, and is read in one
place that checks it: a row that is damaged, or was edited by hand, is one line and never a number.

The file uses SQLite's rollback journal and not its write-ahead log: a store that is one file (no
``-wal`` beside it) can be copied, mailed and kept on network drives, where a write-ahead log fails.
A commit is synced to the disk (``synchronous = FULL``): what was committed outlives a kill and a
power cut.
"""

from __future__ import annotations

import re
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import islice
from operator import itemgetter
from pathlib import Path
from threading import RLock
from typing import Any, NamedTuple, TypeVar

from psyprobe.errors import StoreError
from psyprobe.files.terminal import printable_line

T = TypeVar("T")
#: How long a process waits for another one's transaction, in seconds.
BUSY_TIMEOUT = 60.0
#: Version of the tables.
SCHEMA_VERSION = 10
#: "psyp" in ASCII: tells a store from any other SQLite file.
APPLICATION_ID = 0x70737970
TABLES = """
CREATE TABLE answer (
    id INTEGER PRIMARY KEY,
    question TEXT NOT NULL UNIQUE,
    experiment TEXT NOT NULL,
    levels TEXT NOT NULL,
    answer TEXT NOT NULL,
    origin INTEGER NOT NULL REFERENCES origin (id),
    time INTEGER NOT NULL,
    checksum INTEGER NOT NULL
);
CREATE TABLE procedure (
    name TEXT PRIMARY KEY,
    request TEXT NOT NULL,
    observer TEXT NOT NULL,
    version TEXT NOT NULL,
    checksum INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE origin (
    id INTEGER PRIMARY KEY,
    observer TEXT NOT NULL,
    software TEXT NOT NULL,
    device TEXT NOT NULL,
    served TEXT NOT NULL,
    checksum INTEGER NOT NULL
);
CREATE TABLE content (
    digest TEXT PRIMARY KEY,
    kind TEXT NOT NULL,
    value TEXT NOT NULL,
    checksum INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE run (
    id INTEGER PRIMARY KEY,
    key TEXT NOT NULL UNIQUE,
    experiment TEXT NOT NULL,
    experiment_digest TEXT NOT NULL,
    experiment_toml TEXT NOT NULL,
    observer TEXT NOT NULL,
    observer_digest TEXT NOT NULL,
    observer_card TEXT NOT NULL,
    probe TEXT NOT NULL,
    layout TEXT NOT NULL,
    software TEXT NOT NULL,
    grouping TEXT NOT NULL,
    started TEXT NOT NULL,
    finished TEXT,
    outcome TEXT NOT NULL,
    origins TEXT NOT NULL,
    checksum INTEGER NOT NULL
);
CREATE TABLE process (
    id TEXT PRIMARY KEY,
    host TEXT NOT NULL,
    pid INTEGER NOT NULL,
    task TEXT NOT NULL,
    beats INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE lease (
    work TEXT PRIMARY KEY,
    process TEXT NOT NULL
) WITHOUT ROWID;
CREATE VIEW answers AS
SELECT
    answer.question,
    answer.experiment,
    coalesce(json_extract(card.value, '$.name'), procedure.observer) AS observer,
    substr(procedure.version, 1, instr(procedure.version || char(10), char(10)) - 1)
        AS version,
    substr(procedure.version, instr(procedure.version || char(10), char(10)) + 1)
        AS label,
    answer.levels,
    json_extract(request.value, '$.prompt') AS prompt,
    coalesce(
        json_extract(answer.answer, '$.reply.text'),
        json_extract(answer.answer, '$.text'),
        json_extract(answer.answer, '$.values')
    ) AS response,
    nullif(json_extract(answer.answer, '$.refused'), '') AS refused,
    strftime('%Y-%m-%dT%H:%M:%fZ', answer.time / 1000.0, 'unixepoch') AS time,
    origin.software,
    origin.device,
    origin.served,
    request.value AS request,
    stimulus.value AS stimulus,
    answer.answer
FROM answer
JOIN origin ON origin.id = answer.origin
JOIN procedure ON procedure.name = substr(answer.question, -16)
LEFT JOIN content AS card ON card.digest = procedure.observer
LEFT JOIN content AS request ON request.digest = procedure.request
LEFT JOIN content AS stimulus
    ON stimulus.digest = substr(answer.question, 1, length(answer.question) - 16)
ORDER BY answer.id;
"""
#: Made with the first attempt that failed, so that stores without one stay as they were.
ATTEMPTS = """
CREATE TABLE IF NOT EXISTS attempt (
    id INTEGER PRIMARY KEY,
    run TEXT NOT NULL,
    started TEXT NOT NULL,
    ended TEXT NOT NULL,
    how TEXT NOT NULL,
    kind TEXT NOT NULL,
    message TEXT NOT NULL,
    answers INTEGER NOT NULL,
    checksum INTEGER NOT NULL,
    UNIQUE (run, started, ended, how, message)
)
"""
#: The columns of each table that its checksum covers, in their order.
COLUMNS = {
    "answer": ("question", "experiment", "levels", "answer", "origin", "time"),
    "procedure": ("name", "request", "observer", "version"),
    "origin": ("id", "observer", "software", "device", "served"),
    "content": ("digest", "kind", "value"),
    "run": (
        "key",
        "experiment",
        "experiment_digest",
        "experiment_toml",
        "observer",
        "observer_digest",
        "observer_card",
        "probe",
        "layout",
        "software",
        "grouping",
        "started",
        "finished",
        "outcome",
        "origins",
    ),
    "attempt": ("run", "started", "ended", "how", "kind", "message", "answers"),
}
#: The column by which the rows of each table are in order.
_ORDER = {
    "answer": "id",
    "procedure": "name",
    "origin": "id",
    "content": "digest",
    "run": "id",
    "attempt": "id",
}
#: Rows are looked up and read so many at a time: nobody is kept from writing meanwhile.
_CHUNK = 500
#: Memory of a store without a file, KiB; what is more lies in a temporary file.
_MEMORY_KIB = 2**16
#: Opens a file. A statement that is kept for the next time keeps a copy of the cells that it
#: wrote, which are some hundred megabytes of a long run.
_connect = partial(
    sqlite3.connect, isolation_level=None, check_same_thread=False, cached_statements=0
)
#: Characters of a long text whose checksum is computed at once.
_BLOCK = 1 << 20
#: The cells of a row that its checksum covers.
Row = tuple[Any, ...]


class Process(NamedTuple):
    """A process that has work of a store on lease."""

    id: str
    host: str
    pid: int
    #: The experiment and the observer, for whoever waits.
    task: str
    #: Signs of life so far.
    beats: int


class Database:
    """The file of a store, opened; safe to use from several threads, and from several processes on
    one machine.

    Parameters
    ----------
    path : Path or None
        The file; None keeps everything in memory.
    create : bool
        Whether a file that does not exist yet may be made.
    """

    def __init__(self, path: Path | None, *, create: bool) -> None:
        self.path = path
        self._lock = RLock()
        with self._explain_errors():
            self._connection = connect(path, self.name, create)
            try:
                self._prepare(create)
            except BaseException:
                self._connection.close()
                raise

    @property
    def name(self) -> str:
        """The store's name in messages."""
        return "the store in memory" if self.path is None else f"store {self.path}"

    def close(self) -> None:
        """Close the SQLite file."""
        self._connection.close()

    # -- reading

    def rows(self, table: str) -> list[Row]:
        """Return all rows of a table, in order."""
        return list(self.iterate(table))

    def select(self, table: str, column: str, values: Iterable[Any]) -> list[Row]:
        """Return the rows of a table whose cell in a column is among some values, in order."""
        rows: list[tuple[Any, Row]] = []
        for chunk in chunks(values):
            condition = f"WHERE {column} IN ({_write_marks(chunk)})"
            rows += self._read(table, condition, chunk)
        return [row for _, row in sorted(rows, key=itemgetter(0))]

    def iterate(self, table: str, at_once: int | None = None) -> Iterator[Row]:
        """Iterate over all rows of a table in order, without blocking whoever writes.

        Each query reads `at_once` rows, by default as many as `chunks` cuts, and none is kept once
        it is given out.
        """
        key = _ORDER[table]
        condition = ""
        last: list[Any] = []
        while page := self._read(
            table, f"{condition} ORDER BY {key} LIMIT {at_once or _CHUNK}", last
        ):
            condition = f"WHERE {key} > ?"
            last = [page[-1][0]]
            page.reverse()
            while page:
                yield page.pop()[1]

    def distinct(
        self, table: str, result: str, column: str, values: Iterable[Any]
    ) -> set[Any]:
        """Return one column's distinct cells in the rows with certain values in another column."""
        cells: set[Any] = set()
        for chunk in chunks(values):
            query = f"SELECT {result} FROM {table} WHERE {column} IN ({_write_marks(chunk)})"
            with self._explain_errors():
                cells.update(cell for (cell,) in self._connection.execute(query, chunk))
        return cells

    def count(self, table: str) -> int:
        """Return the number of rows of a table."""
        return int(self._fetch(f"SELECT count(*) FROM {table}")[0][0])

    def pages(self) -> list[str]:
        """Return the pages of the experiments of all runs, as TOML, each once."""
        return [
            page for (page,) in self._fetch("SELECT DISTINCT experiment_toml FROM run")
        ]

    def has_attempts(self) -> bool:
        """Tell whether the table of attempts is there."""
        return bool(self._fetch("SELECT 1 FROM sqlite_master WHERE name = 'attempt'"))

    def make_attempts(self) -> None:
        """Make the table of attempts, unless it is there."""
        self._connection.execute(ATTEMPTS)

    def count_answers(self) -> dict[tuple[str, str], int]:
        """Count the answers of each observer and label, by the digest of its card and the label."""
        query = (
            "SELECT procedure.observer, "
            "substr(version, instr(version || char(10), char(10)) + 1) AS label, count(*) "
            "FROM answer JOIN procedure ON procedure.name = substr(answer.question, -16) "
            "GROUP BY procedure.observer, label"
        )
        return {
            (observer, label): count for observer, label, count in self._fetch(query)
        }

    def damaged(self, table: str, row: Sequence[Any]) -> StoreError:
        """Build the error about a row whose checksum does not fit."""
        row_name = ascii(row[0]).strip("'")
        remedy = (
            "delete the row, and it is asked again"
            if table == "answer"
            else "start a new store"
        )
        return StoreError(
            f"{self.name}: row {row_name[:16]} of table {table} is damaged or was edited; restore "
            f"a copy of the file, or {remedy}"
        )

    def check(self) -> None:
        """Let SQLite check its file for damage.

        Raises
        ------
        StoreError
            There is some.
        """
        verdict = self._fetch("PRAGMA integrity_check(1)")[0][0]
        if verdict != "ok":
            raise StoreError(
                f"{self.name} is damaged ({verdict[:100]}); restore a copy of it or start a new "
                "store"
            )

    # -- writing

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Write all that the block writes, or nothing if it fails; blocks may nest."""
        with self._explain_errors():
            nested = self._connection.in_transaction
            if nested:
                yield
                return
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    def insert(self, table: str, rows: Iterable[Row]) -> None:
        """Add rows with their checksums, but for rows whose key is there already."""
        columns = (*COLUMNS[table], "checksum")
        self._connection.executemany(
            f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({_write_marks(columns)}) "
            "ON CONFLICT DO NOTHING",
            [(*row, checksum(row)) for row in rows],
        )

    def replace(self, table: str, row: Row) -> None:
        """Replace the row with the same first cell."""
        columns = (*COLUMNS[table], "checksum")
        cells = ", ".join(f"{column} = ?" for column in columns)
        self._connection.execute(
            f"UPDATE {table} SET {cells} WHERE {columns[0]} = ?",
            (*row, checksum(row), row[0]),
        )

    def delete_answers(self, questions: Iterable[str]) -> None:
        """Delete the answers to questions with given keys."""
        self._connection.executemany(
            "DELETE FROM answer WHERE question = ?",
            [(question,) for question in questions],
        )

    def origin_id(self, *cells: Any) -> int:
        """Return the row number of an origin (software, device, server), adding it if new."""
        conditions = " AND ".join(f"{column} = ?" for column in COLUMNS["origin"][1:])
        rows = self._fetch(f"SELECT id FROM origin WHERE {conditions}", cells)
        if not rows:
            rows = self._fetch("SELECT coalesce(max(id), 0) + 1 FROM origin")
            self.insert("origin", [(rows[0][0], *cells)])
        return int(rows[0][0])

    def copy_answers(self, target: Database) -> None:
        """Copy all but runs and attempts into a database, in place of what it holds."""
        with self._explain_errors():
            self._connection.backup(target._connection)
        with target.transaction():
            for table in ("run", *["attempt"] * target.has_attempts()):
                target._connection.execute(f"DELETE FROM {table}")

    def vacuum(self) -> None:
        """Rewrite the file without empty space."""
        with self._explain_errors():
            self._connection.execute("DELETE FROM lease")
            self._connection.execute("DELETE FROM process")
            self._connection.execute("VACUUM")

    # -- leases

    def processes(self) -> list[Process]:
        """Return the processes that have reserved pieces of work."""
        return [Process(*row) for row in self._fetch("SELECT * FROM process")]

    def leases(self) -> dict[str, str]:
        """Map each reserved piece of work to the process that has it."""
        return dict(self._fetch("SELECT work, process FROM lease"))

    def add_leases(self, process: str, pieces: Iterable[str]) -> None:
        """Reserve pieces of work for a process, whoever had them."""
        self._connection.executemany(
            "INSERT OR REPLACE INTO lease VALUES (?, ?)",
            [(piece, process) for piece in pieces],
        )

    def beat(self, process: Process) -> None:
        """Count a process's sign of life, adding the process if it is new."""
        self._connection.execute(
            "INSERT INTO process VALUES (?, ?, ?, ?, ?) "
            "ON CONFLICT (id) DO UPDATE SET beats = beats + 1",
            process,
        )

    def remove_process(self, process: str) -> None:
        """Remove a process and its reservations."""
        self._connection.execute("DELETE FROM lease WHERE process = ?", (process,))
        self._connection.execute("DELETE FROM process WHERE id = ?", (process,))

    # -- inside

    def _prepare(self, create: bool) -> None:
        """Create the tables of an empty file, refusing one that is no store of this schema."""
        identity = _identify(self._connection)
        if identity == _EMPTY and not create:
            raise StoreError(
                f"{self.name} is empty and holds no run; restore a copy of it or give another file"
            )
        if identity == _EMPTY:
            # Another process may be making the same store: what counts is seen under the lock.
            with self.transaction():
                if _identify(self._connection) == _EMPTY:
                    for statement in filter(str.strip, TABLES.split(";")):
                        self._connection.execute(statement)
                    self._connection.execute(
                        f"PRAGMA application_id = {APPLICATION_ID}"
                    )
                    self._connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
            identity = _identify(self._connection)
        if identity.application != APPLICATION_ID:
            raise StoreError(
                f"{self.name} is a database of another program; give another file name"
            )
        if identity.schema != SCHEMA_VERSION:
            raise StoreError(
                f"{self.name} has schema {identity.schema}, and this psyprobe reads schema "
                f"{SCHEMA_VERSION} only; use the psyprobe that wrote it, or a new store"
            )

    def _fetch(self, query: str, values: Sequence[Any] = ()) -> list[Any]:
        """Run an SQL query and return all its rows."""
        with self._explain_errors():
            return self._connection.execute(query, values).fetchall()

    def _read(
        self, table: str, condition: str, values: Sequence[Any]
    ) -> list[tuple[Any, Row]]:
        """Read a table's rows under an SQL condition, in order, checking their checksums."""
        columns = ", ".join((_ORDER[table], *COLUMNS[table], "checksum"))
        cells = self._fetch(f"SELECT {columns} FROM {table} {condition}", values)
        rows = [(key, tuple(row), stored) for key, *row, stored in cells]
        for _, row, stored in rows:
            if stored != checksum(row):
                raise self.damaged(table, row)
        return [(key, row) for key, row, _ in rows]

    @contextmanager
    def _explain_errors(self) -> Iterator[None]:
        """Turn SQLite's errors into a `StoreError` that names the store, one thread at a time."""
        with self._lock:
            try:
                yield
            except sqlite3.Error as error:
                raise StoreError(f"{self.name} {explanation(error)}") from error


def checksum(row: Row) -> int:
    """Compute the CRC-32 of a row's cells, spelled in ASCII."""
    if len(row) < len(COLUMNS["run"]):
        return zlib.crc32(ascii(row).encode("ascii"))
    # A run may have some hundred megabytes, of which few are spelled at once.
    value = zlib.crc32(b"(")
    for i, cell in enumerate(row, 1):
        text = ascii(cell)
        for start in range(0, len(text), _BLOCK):
            value = zlib.crc32(text[start : start + _BLOCK].encode("ascii"), value)
        value = zlib.crc32(b", " if i < len(row) else b")", value)
    return value


def chunks(values: Iterable[T], size: int | None = None) -> Iterator[list[T]]:
    """Cut values into lists, by default as long as one query looks up."""
    iterator = iter(values)
    while chunk := list(islice(iterator, size or _CHUNK)):
        yield chunk


def _write_marks(values: Sequence[Any]) -> str:
    """Write one "?" for each value, for an SQL statement."""
    return ", ".join("?" * len(values))


def connect(path: Path | None, name: str, create: bool) -> sqlite3.Connection:
    """Open the SQLite file of a store, or a store in memory if there is no path."""
    if path is None:
        # SQLite's name of a file that it makes only for what is more than the cache, and deletes.
        connection = _connect("")
        connection.execute(f"PRAGMA cache_size = {-_MEMORY_KIB}")
        return connection
    if path.is_dir():
        raise StoreError(f"{name} is a folder; give the name of a file in it")
    if path.exists() and not path.is_file():
        raise StoreError(
            f"{name} is a device or a pipe, which keeps nothing; give the name of a file"
        )
    if not path.parent.is_dir():
        raise StoreError(
            f"{name} cannot be made: there is no folder {path.parent}; make it first"
        )
    if not create and not path.exists():
        raise StoreError(f"{name} does not exist")
    # SQLite takes ":memory:" and "file:..." for instructions, but not behind a folder.
    return _connect(path.absolute(), timeout=BUSY_TIMEOUT)


class _Identity(NamedTuple):
    schema: int
    application: int
    tables: int


_EMPTY = _Identity(0, 0, 0)


def _identify(connection: sqlite3.Connection) -> _Identity:
    """Read an SQLite file's version, application and number of tables."""
    query = (
        "SELECT user_version, application_id, (SELECT count(*) FROM sqlite_master) "
        "FROM pragma_user_version, pragma_application_id"
    )
    return _Identity(*connection.execute(query).fetchone())


def explanation(error: sqlite3.Error) -> str:
    """Describe what an SQLite error means and what to do."""
    # SQLite repeats what it found in a cell.
    text = printable_line(str(error))
    if "not a database" in text:
        return "is not a store: it is no SQLite file; give another file name"
    if re.search("malformed|corrupt|no such|decode|has no column|UTF-8", text):
        return f"is damaged ({text[:100]}); restore a copy of it or start a new store"
    if "locked" in text:
        return (
            f"is locked by another process for more than {BUSY_TIMEOUT:g} s; end that "
            "process or use another store"
        )
    if "readonly" in text or "unable to open" in text:
        return (
            f"cannot be written ({text}); check the rights on the file and its folder, or "
            "give another --store"
        )
    return f"failed: {text[:200]}"
