"""The tables of a store, how its file is opened, and what errors of SQLite mean."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from psyprobe.errors import StoreError
from psyprobe.files.terminal import printable_line

#: How long a process waits for another one's transaction, in seconds.
BUSY_TIMEOUT = 60.0
#: Version of the tables.
SCHEMA_VERSION = 8
#: "psyp" in ASCII: tells a store from any other SQLite file.
APPLICATION_ID = 0x70737970
TABLES = """
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


def connect(path: Path | None, name: str, create: bool) -> sqlite3.Connection:
    """The file of a store, which messages call by a name; None is memory."""
    if path is None:
        return sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    if path.is_dir():
        raise StoreError(f"{name} is a folder; give the name of a file in it")
    if not path.parent.is_dir():
        raise StoreError(f"{name} cannot be made: there is no folder {path.parent}; make it first")
    if not create and not path.exists():
        raise StoreError(f"{name} does not exist")
    return sqlite3.connect(path, timeout=BUSY_TIMEOUT, isolation_level=None, check_same_thread=False)


def prepare(
    connection: sqlite3.Connection, transaction: Callable[[], AbstractContextManager[None]], name: str, create: bool
) -> None:
    """Make the tables of a file that is empty, and refuse one that is no store of this schema."""
    version, application, tables = _identity(connection)
    if not (create or version or application or tables):
        raise StoreError(f"{name} is empty and holds no run; restore a copy of it or give another file")
    if (application, version) != (APPLICATION_ID, SCHEMA_VERSION):
        # Another process may be making the same store just now: what counts is seen under the lock.
        with transaction():
            if _identity(connection) == (0, 0, 0):
                for statement in filter(str.strip, TABLES.split(";")):
                    connection.execute(statement)
                connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        version, application, _ = _identity(connection)
    if application != APPLICATION_ID:
        raise StoreError(f"{name} is a database of another program; give another file name")
    if version != SCHEMA_VERSION:
        raise StoreError(
            f"{name} has schema {version}, and this psyprobe reads schema {SCHEMA_VERSION} only; "
            "use the psyprobe that wrote it, or a new store"
        )


def _identity(connection: sqlite3.Connection) -> tuple[int, int, int]:
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    return version, application, tables


def explanation(error: sqlite3.Error) -> str:
    """An error of SQLite in words, with what to do."""
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
