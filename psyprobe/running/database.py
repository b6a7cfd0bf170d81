"""The SQLite file of a store, and all of its SQL: tables, transactions, rows with seals.

Each row carries a seal, a digest of its other cells, and is read in one place that checks it: what is damaged, or was
edited by hand, is one line and never a number.

The file uses SQLite's rollback journal and not its write-ahead log: a store that is one file (no ``-wal`` beside it)
can be copied, mailed and kept on network drives, where a write-ahead log fails. A commit is synced to the disk
(``synchronous = FULL``): what was committed outlives a kill and a power cut.
"""

from __future__ import annotations

import hashlib
import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import RLock
from typing import Any

from psyprobe.errors import StoreError
from psyprobe.files.terminal import printable_line
from psyprobe.running.cells import opened, packed, packed_numbers

#: How long a process waits for another one's transaction, in seconds.
BUSY_TIMEOUT = 60.0
#: Version of the tables.
SCHEMA_VERSION = 8
#: "psyp" in ASCII: tells a store from any other SQLite file.
APPLICATION_ID = 0x70737970
#: Rows are looked up, and read in turn, so many at a time: nobody is kept from writing meanwhile.
_TOGETHER = 500
#: The cells of each table that its seal covers. `form` is what JSON of one kind has in common; `way` what many
#: questions share, what is asked of whom; `origin` what many answers share: software, device, what a server said.
_SEALED = {
    "form": ("id", "kind", "fields", "json"),
    "content": ("digest", "form", "json"),
    "way": ("id", "name", "asked", "observer", "version"),
    "origin": ("id", "observer", "json"),
    "answer": ("shown", "way", "origin", "answered", "form", "json"),
    "run": ("key", "record", "started", "finished", "outcome", "origins"),
}
#: By what rows are in order, and read in turn.
_ORDER = {table: "digest" if table == "content" else "id" for table in _SEALED}
#: The index knows four bytes of what is shown, since all sixteen would stand in the file a second time; which of the
#: few that begin alike it is, the row tells. So that no place has two rows is for `insert` to see to.
_PLACE = "substr(shown, 1, 4) = substr({shown}, 1, 4) AND way = {way} AND shown = {shown}"
_TWICE = "has two answers to one question, and was edited; restore a copy of the file, or start a new store"
#: Of a form so many characters count, which the window of deflate holds.
_LONGEST_FORM = 4000
_TABLES = """
CREATE TABLE form (
    id INTEGER PRIMARY KEY, kind TEXT NOT NULL, fields TEXT NOT NULL, json TEXT NOT NULL, seal BLOB NOT NULL
);
CREATE TABLE content (
    digest BLOB PRIMARY KEY, form INTEGER NOT NULL REFERENCES form (id), json BLOB NOT NULL, seal BLOB NOT NULL
) WITHOUT ROWID;
CREATE TABLE way (
    id INTEGER PRIMARY KEY, name BLOB NOT NULL UNIQUE, asked BLOB NOT NULL, observer BLOB NOT NULL,
    version TEXT NOT NULL, seal BLOB NOT NULL
);
CREATE TABLE origin (
    id INTEGER PRIMARY KEY, observer BLOB NOT NULL, json TEXT NOT NULL, seal BLOB NOT NULL
);
CREATE TABLE answer (
    id INTEGER PRIMARY KEY, shown BLOB NOT NULL, way INTEGER NOT NULL REFERENCES way (id),
    origin INTEGER NOT NULL REFERENCES origin (id), answered INTEGER NOT NULL,
    form INTEGER NOT NULL REFERENCES form (id), json BLOB NOT NULL, seal BLOB NOT NULL
);
CREATE INDEX place ON answer (substr(shown, 1, 4), way);
CREATE TABLE run (
    id INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE, record BLOB NOT NULL, started TEXT NOT NULL, finished TEXT,
    outcome BLOB, origins BLOB, seal BLOB NOT NULL
);
CREATE TABLE lease (name TEXT PRIMARY KEY, holder TEXT NOT NULL, until REAL NOT NULL) WITHOUT ROWID;
"""
#: The sealed cells of a row.
Row = tuple[Any, ...]


class Database:
    """The file of a store, opened; safe to use from several threads, and from several processes on one machine.

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
        self._numbers: dict[tuple[Any, ...], int] = {}
        self._forms: dict[int, str] = {}
        self._ways: dict[bytes, int] = {}
        with self._explained():
            self._connection = self._connect(create)
            try:
                self._prepare(create)
            except BaseException:
                self._connection.close()
                raise

    @property
    def name(self) -> str:
        """What messages call it."""
        return "the store in memory" if self.path is None else f"store {self.path}"

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    # -- reading -----------------------------------------------------------------------------------------------------

    def rows(self, table: str, **where: Any) -> list[Row]:
        """The rows of a table, in order, that have a value in a column, or one of a list of values."""
        for name, value in where.items():
            if isinstance(value, list):
                parts = (value[i : i + _TOGETHER] for i in range(0, len(value), _TOGETHER))
                which = f"WHERE {name} IN ({{}}) ORDER BY {_ORDER[table]}"
                return [row for part in parts for row in self._read(table, which.format(_marks(part)), part)]
            return self._read(table, f"WHERE {name} = ? ORDER BY {_ORDER[table]}", [value])
        return self._read(table, f"ORDER BY {_ORDER[table]}", [])

    def each(self, table: str) -> Iterator[Row]:
        """All rows of a table in order, without holding up who writes meanwhile."""
        by, which = _ORDER[table], ""
        last: list[Any] = []
        while True:
            with self._explained():
                chosen = f"SELECT {by} FROM {table} {which} ORDER BY {by} LIMIT 1 OFFSET {_TOGETHER - 1}"
                end = self._connection.execute(chosen, last).fetchone()
            until = "" if end is None else f"{'AND' if which else 'WHERE'} {by} <= ?"
            yield from self._read(table, f"{which} {until} ORDER BY {by}", [*last, *(end or ())])
            if end is None:
                return
            which, last = f"WHERE {by} > ?", [*end]

    def answers(self, places: Iterable[tuple[bytes, int]]) -> list[Row]:
        """The answers about what was shown, in each way, that are there."""
        cells = ", ".join(f"answer.{name}" for name in (*_SEALED["answer"], "seal"))
        answers = self._checked("answer", [row for rows in self._at(cells, places) for row in rows])
        if len({(shown, way) for shown, way, *_ in answers}) < len(answers):
            raise StoreError(f"{self.name} {_TWICE}")
        return answers

    def answered(self, places: Iterable[tuple[bytes, int]]) -> set[tuple[bytes, int]]:
        """Those places that hold an answer."""
        return {place for rows in self._at("answer.shown, answer.way", places) for place in rows}

    def origins(self, places: Iterable[tuple[bytes, int]]) -> set[int]:
        """The numbers of those who gave the answers at some places."""
        return {origin for _, _, origin, *_ in self.answers(places)}

    def ways(self, names: Iterable[bytes]) -> dict[bytes, int]:
        """The numbers of ways by their names, of those that are there."""
        wanted = set(names)
        if unknown := [name for name in wanted if name not in self._ways]:
            self._ways |= {name: number for number, name, *_ in self.rows("way", name=unknown)}
        return {name: self._ways[name] for name in wanted if name in self._ways}

    def answers_by_way(self) -> dict[int, int]:
        """How many answers each way has."""
        with self._explained():
            return dict(self._connection.execute("SELECT way, count(*) FROM answer GROUP BY way").fetchall())

    def kept(self, digests: Sequence[bytes]) -> set[bytes]:
        """Those digests under which something is kept."""
        found: set[bytes] = set()
        with self._explained():
            for i in range(0, len(digests), _TOGETHER):
                part = digests[i : i + _TOGETHER]
                chosen = f"SELECT digest FROM content WHERE digest IN ({_marks(part)})"
                found |= {digest for (digest,) in self._connection.execute(chosen, part)}
        return found

    def leases(self) -> list[tuple[str, str, float]]:
        """Name, holder and end of each lease."""
        with self._explained():
            return self._connection.execute("SELECT name, holder, until FROM lease").fetchall()

    def value(self, table: str, row: Row, form: int | None, cell: bytes | None) -> Any:
        """What stands in a cell as JSON; {} where it is empty."""
        if cell is None:
            return {}
        try:
            return opened(cell, "" if form is None else self._form(form))
        except (ValueError, RecursionError, MemoryError):
            raise self.damaged(table, row) from None

    def damaged(self, table: str, row: Sequence[Any]) -> StoreError:
        """What to raise of a row that is not as it was written."""
        name = row[0].hex() if isinstance(row[0], bytes) else ascii(row[0]).strip("'")
        remedy = "delete the row, and it is asked again" if table == "answer" else "start a new store"
        return StoreError(
            f"{self.name}: row {name[:16]} of table {table} is damaged or was edited; restore a copy of the file, "
            f"or {remedy}"
        )

    def check(self) -> None:
        """Let SQLite look for damage to the file, and for places with two answers.

        Raises
        ------
        StoreError
            There is some.
        """
        with self._explained():
            found = self._connection.execute("PRAGMA integrity_check(1)").fetchone()[0]
            twice = self._connection.execute("SELECT 1 FROM answer GROUP BY shown, way HAVING count(*) > 1").fetchone()
        if found != "ok":
            raise StoreError(f"{self.name} is damaged ({found[:100]}); restore a copy of it or start a new store")
        if twice is not None:
            raise StoreError(f"{self.name} {_TWICE}")

    # -- writing -----------------------------------------------------------------------------------------------------

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Write all of what is written within, or nothing of it; one within another is part of it."""
        with self._explained():
            within = self._connection.in_transaction
            if within:
                yield
                return
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._connection.execute("COMMIT")
            except BaseException:
                for remembered in (self._numbers, self._forms, self._ways):
                    remembered.clear()
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    def insert(self, table: str, rows: Iterable[Row]) -> None:
        """Add rows with their seals; those that are there already stay."""
        names = (*_SEALED[table], "seal")
        free = f"NOT EXISTS (SELECT 1 FROM answer WHERE {_PLACE.format(shown='?1', way='?2')})"
        self._connection.executemany(
            f"INSERT INTO {table} ({', '.join(names)}) SELECT {_marks(names)} "
            f"WHERE {free if table == 'answer' else True} ON CONFLICT DO NOTHING",
            ((*row, _seal(row)) for row in rows),
        )

    def replace(self, table: str, row: Row, **where: Any) -> None:
        """Put a row in the place of the one that has these values."""
        cells = ", ".join(f"{name} = ?" for name in (*_SEALED[table], "seal"))
        condition = " AND ".join(f"{name} = ?" for name in where)
        values = (*row, _seal(row), *where.values())
        self._connection.execute(f"UPDATE {table} SET {cells} WHERE {condition}", values)

    def remove(self, places: Iterable[tuple[bytes, int]]) -> None:
        """Take away the answers at some places."""
        self._connection.executemany(f"DELETE FROM answer WHERE {_PLACE.format(shown='?1', way='?2')}", list(places))

    def number(self, table: str, *cells: Any) -> int:
        """The number of the row of these cells, which is added where it is not there yet."""
        key = (table, *cells)
        if key not in self._numbers:
            self._numbers[key] = self._found(table, _SEALED[table][1:], cells) or self._added(table, cells)
        return self._numbers[key]

    def cell(self, kind: str, value: Any, told: Callable[[Any], str]) -> tuple[int, bytes]:
        """A value, and what tells its JSON, as a cell: its form, and what differs from it."""
        key = ("form", kind, ",".join(value) if isinstance(value, Mapping) else "")
        if key not in self._numbers:
            known = self._found("form", ("kind", "fields"), key[1:])
            self._numbers[key] = known or self._added("form", (*key[1:], told(value)[:_LONGEST_FORM]))
        number = self._numbers[key]
        form = self._form(number)
        return number, packed_numbers(value, form) or packed(told(value), form)

    def lend(self, rows: Sequence[tuple[str, str, float]], ended: Sequence[str]) -> None:
        """Write leases (name, holder, end), and take away those that ended."""
        self._connection.executemany("DELETE FROM lease WHERE name = ?", [(name,) for name in ended])
        self._connection.executemany("INSERT OR REPLACE INTO lease VALUES (?, ?, ?)", rows)

    def vacuum(self) -> None:
        """Write the file anew without what is empty in it."""
        with self._explained():
            self._connection.execute("DELETE FROM lease")
            self._connection.execute("VACUUM")

    # -- inside ------------------------------------------------------------------------------------------------------

    def _read(self, table: str, which: str, values: Sequence[Any]) -> list[Row]:
        with self._explained():
            chosen = f"SELECT {', '.join(_SEALED[table])}, seal FROM {table} {which}"
            return self._checked(table, self._connection.execute(chosen, values).fetchall())

    def _at(self, cells: str, places: Iterable[tuple[bytes, int]]) -> Iterator[list[Row]]:
        """Cells of the answers at some places."""
        listed = sorted(places)
        for i in range(0, len(listed), _TOGETHER):
            part = listed[i : i + _TOGETHER]
            marks = ", ".join(["(?, ?)"] * len(part))
            # So and in this order each place is looked up; "IN (VALUES ...)" would read the whole table.
            joined = f"CROSS JOIN answer ON {_PLACE.format(shown='place.column1', way='place.column2')}"
            chosen = f"SELECT {cells} FROM (VALUES {marks}) AS place {joined}"
            with self._explained():
                yield self._connection.execute(chosen, [value for place in part for value in place]).fetchall()

    def _checked(self, table: str, rows: Iterable[Row]) -> list[Row]:
        """The one place through which rows come, each as it was written, and without its seal."""
        checked = []
        for *row, seal in rows:
            if seal != _seal(row):
                raise self.damaged(table, row)
            checked.append(tuple(row))
        return checked

    def _form(self, number: int) -> str:
        if number not in self._forms:
            rows = self.rows("form", id=number)
            if not rows:
                raise self.damaged("form", (number,))
            self._forms[number] = rows[0][-1]
        return self._forms[number]

    def _found(self, table: str, names: Sequence[str], cells: Sequence[Any]) -> int | None:
        condition = " AND ".join(f"{name} = ?" for name in names)
        found = self._connection.execute(f"SELECT id FROM {table} WHERE {condition}", cells).fetchone()
        return None if found is None else int(found[0])

    def _added(self, table: str, cells: Sequence[Any]) -> int:
        (number,) = self._connection.execute(f"SELECT coalesce(max(id), 0) + 1 FROM {table}").fetchone()
        self.insert(table, [(number, *cells)])
        return int(number)

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
            with self.transaction():
                if self._identity() == (0, 0, 0):
                    for statement in filter(str.strip, _TABLES.split(";")):
                        self._connection.execute(statement)
                    self._connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                    self._connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
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
    def _explained(self) -> Iterator[None]:
        with self._lock:
            try:
                yield
            except sqlite3.Error as error:
                raise StoreError(f"{self.name} {_explanation(error)}") from error


def _seal(row: Sequence[Any]) -> bytes:
    """Of cells of any type; of bytes, which may be many, as they are, with their number before them."""
    cells = [b"%d:%b" % (len(cell), cell) if type(cell) is bytes else b"%a;" % (cell,) for cell in row]
    return hashlib.sha256(b"".join(cells)).digest()[:8]


def _marks(values: Sequence[Any]) -> str:
    return ", ".join("?" * len(values))


def _explanation(error: sqlite3.Error) -> str:
    # SQLite repeats what it found in a cell.
    text = printable_line(str(error))
    if "not a database" in text:
        return "is not a store: it is no SQLite file; give another file name"
    if re.search("malformed|corrupt|no such|decode|has no column|UTF-8", text):
        return f"is damaged ({text[:100]}); restore a copy of it or start a new store"
    if "locked" in text:
        return f"is locked by another process for more than {BUSY_TIMEOUT:g} s; end that process or use another store"
    if "readonly" in text or "unable to open" in text:
        return f"cannot be written ({text}); check the rights on the file and its folder, or give another --store"
    return f"failed: {text[:200]}"
