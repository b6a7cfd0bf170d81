"""The SQLite file of a store, and all of its SQL: tables, transactions, rows with seals.

Each row carries a seal, a digest of its other cells, and is read in one place that checks it: what
is damaged, or was edited by hand, is one line and never a number.

JSON of one kind and with the same keys is alike but for a few values. So the first of a kind is
kept as its form, and in cells stands what differs from it: values as bytes (numbers, digests), and
around them, where it differs too, deflated text.

The file uses SQLite's rollback journal and not its write-ahead log: a store that is one file (no
``-wal`` beside it) can be copied, mailed and kept on network drives, where a write-ahead log fails.
A commit is synced to the disk (``synchronous = FULL``): what was committed outlives a kill and a
power cut.
"""

from __future__ import annotations

import hashlib
import json
import re
import sqlite3
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import lru_cache
from itertools import compress, count, groupby, islice
from math import isfinite
from operator import eq, lshift, ne
from pathlib import Path
from threading import RLock
from typing import Any

from psyprobe.errors import StoreError
from psyprobe.files.terminal import printable_line

#: How long a process waits for another one's transaction, in seconds.
BUSY_TIMEOUT = 60.0
#: Version of the tables.
SCHEMA_VERSION = 9
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
#: Bytes of each number, and how `struct` calls such numbers and their bits as whole numbers.
Floats = tuple[int, str, str]
#: Rows are looked up, and read in turn, so many at a time: nobody is kept from writing meanwhile.
_TOGETHER = 500
#: The cells of each table that its seal covers. `form` is what JSON of one kind has in common;
#: `way` what many questions share, what is asked of whom; `origin` what many answers share:
#: software, device, what a server said.
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
#: The index knows four bytes of what is shown, since all sixteen would stand in the file a second
#: time; which of the few that begin alike it is, the row tells. So that no place has two rows is
#: for `insert` to see to.
_PLACE = "substr(shown, 1, 4) = substr({shown}, 1, 4) AND way = {way} AND shown = {shown}"
_TWICE = (
    "has two answers to one question, and was edited; restore a copy of the file, or start "
    "a new store"
)
#: Of a form so many characters count, which the window of deflate holds.
_LONGEST_FORM = 4000
#: Of deflate beside a form, and alone (records, which are full of digests): level, method, the
#: logarithms of window and memory, and strategy.
_BESIDE = (6, zlib.DEFLATED, -12, 4, zlib.Z_DEFAULT_STRATEGY)
_ALONE = (6, zlib.DEFLATED, -15, 8, zlib.Z_FILTERED)
#: With what a cell begins that holds values alone, the text around them and values, or float64 and
#: nothing else: deflate never begins so.
_VALUES = 7
_BOTH = 6
_DOUBLES = 15
#: So many float64 are few, as an encoder's distances are: written as they are, which takes little
#: time.
_FEW = 16
#: A number, or a digest, that is a value of JSON.
_VALUE = re.compile(
    r'(?<=[\[,: ])(-?\d+(?:\.\d+)?(?:e[-+]?\d+)?|"(?:[0-9a-f]{2}){16,64}")(?=[\],}])', re.ASCII
)
#: As what a value is written: float64; float32 that was widened, or told by its own shortest
#: digits; a whole number of as many bytes as it takes, 7 bits each; a digest; or as it is told.
_DOUBLE, _WIDENED, _SINGLE, _WHOLE, _DIGEST, _TEXT = range(6)
#: A text as long or longer is no float32 by its own digits.
_NOT_SINGLE = 16
#: What is larger is no float32.
_LARGEST_SINGLE = 3e38
#: Values of one kind that follow each other are written together, so many at most.
_RUN = 32
#: In the text around values, where one stands; JSON escapes it.
_GAP = "\0"
#: No cell opens to more bytes.
_LARGEST = 1 << 28
#: Of numbers in floating point: bytes of each, and how `struct` calls them and their bits as whole
#: numbers.
_FLOATS = {_DOUBLE: (8, "d", "Q"), _WIDENED: (4, "f", "I"), _SINGLE: (4, "f", "I")}
_FLOAT64 = struct.Struct("<d")
_FLOAT32 = struct.Struct("<f")
#: The sealed cells of a row.
Row = tuple[Any, ...]


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
        self._numbers: dict[tuple[Any, ...], int] = {}
        self._forms: dict[int, str] = {}
        self._ways: dict[bytes, int] = {}
        with self._explained():
            self._connection = connect(path, self.name, create)
            try:
                prepare(self._connection, self.transaction, self.name, create)
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

    # -- reading
    # -----------------------------------------------------------------------------------------------------

    def rows(self, table: str, **where: Any) -> list[Row]:
        """The rows of a table, in order, that have a value in a column, or one of a list of
        values.
        """
        for name, value in where.items():
            if isinstance(value, list):
                parts = (value[i : i + _TOGETHER] for i in range(0, len(value), _TOGETHER))
                which = f"WHERE {name} IN ({{}}) ORDER BY {_ORDER[table]}"
                return [
                    row
                    for part in parts
                    for row in self._read(table, which.format(_marks(part)), part)
                ]
            return self._read(table, f"WHERE {name} = ? ORDER BY {_ORDER[table]}", [value])
        return self._read(table, f"ORDER BY {_ORDER[table]}", [])

    def each(self, table: str) -> Iterator[Row]:
        """All rows of a table in order, without holding up who writes meanwhile."""
        by = _ORDER[table]
        which = ""
        last: list[Any] = []
        while True:
            with self._explained():
                chosen = (
                    f"SELECT {by} FROM {table} {which} ORDER BY {by} LIMIT 1 OFFSET {_TOGETHER - 1}"
                )
                end = self._connection.execute(chosen, last).fetchone()
            until = "" if end is None else f"{'AND' if which else 'WHERE'} {by} <= ?"
            yield from self._read(table, f"{which} {until} ORDER BY {by}", [*last, *(end or ())])
            if end is None:
                return
            which = f"WHERE {by} > ?"
            last = [*end]

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
        return {origin for rows in self._at("answer.origin", places) for (origin,) in rows}

    def ways(self, names: Iterable[bytes]) -> dict[bytes, int]:
        """The numbers of ways by their names, of those that are there."""
        wanted = set(names)
        if unknown := [name for name in wanted if name not in self._ways]:
            self._ways |= {name: number for number, name, *_ in self.rows("way", name=unknown)}
        return {name: self._ways[name] for name in wanted if name in self._ways}

    def answers_by_way(self) -> dict[int, int]:
        """How many answers each way has."""
        with self._explained():
            return dict(
                self._connection.execute("SELECT way, count(*) FROM answer GROUP BY way").fetchall()
            )

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
        remedy = (
            "delete the row, and it is asked again" if table == "answer" else "start a new store"
        )
        return StoreError(
            f"{self.name}: row {name[:16]} of table {table} is damaged or was edited; restore a "
            "copy of the file, "
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
            twice = self._connection.execute(
                "SELECT 1 FROM answer GROUP BY shown, way HAVING count(*) > 1"
            ).fetchone()
        if found != "ok":
            raise StoreError(
                f"{self.name} is damaged ({found[:100]}); restore a copy of it or start a new store"
            )
        if twice is not None:
            raise StoreError(f"{self.name} {_TWICE}")

    # -- writing
    # -----------------------------------------------------------------------------------------------------

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Write all of what is written within, or nothing of it; one within another is part of
        it.
        """
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
        self._connection.executemany(
            f"DELETE FROM answer WHERE {_PLACE.format(shown='?1', way='?2')}", list(places)
        )

    def number(self, table: str, *cells: Any) -> int:
        """The number of the row of these cells, which is added where it is not there yet."""
        key = (table, *cells)
        if key not in self._numbers:
            self._numbers[key] = self._found(table, _SEALED[table][1:], cells) or self._added(
                table, cells
            )
        return self._numbers[key]

    def cell(self, kind: str, value: Any, told: Callable[[Any], str]) -> tuple[int, bytes]:
        """A value, and what tells its JSON, as a cell: its form, and what differs from it."""
        key = ("form", kind, ",".join(value) if isinstance(value, Mapping) else "")
        if key not in self._numbers:
            known = self._found("form", ("kind", "fields"), key[1:])
            self._numbers[key] = known or self._added(
                "form", (*key[1:], told(value)[:_LONGEST_FORM])
            )
        number = self._numbers[key]
        form = self._form(number)
        return number, packed_numbers(value, form) or packed(told(value), form)

    def lend(self, rows: Sequence[tuple[str, str, float]], ended: Sequence[str]) -> None:
        """Write leases (name, holder, end), and take away those that ended."""
        self._connection.executemany(
            "DELETE FROM lease WHERE name = ?", [(name,) for name in ended]
        )
        self._connection.executemany("INSERT OR REPLACE INTO lease VALUES (?, ?, ?)", rows)

    def vacuum(self) -> None:
        """Write the file anew without what is empty in it."""
        with self._explained():
            self._connection.execute("DELETE FROM lease")
            self._connection.execute("VACUUM")

    # -- inside
    # ------------------------------------------------------------------------------------------------------

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
            # So and in this order each place is looked up; "IN (VALUES ...)" would read the whole
            # table.
            joined = (
                f"CROSS JOIN answer ON {_PLACE.format(shown='place.column1', way='place.column2')}"
            )
            chosen = f"SELECT {cells} FROM (VALUES {marks}) AS place {joined}"
            with self._explained():
                yield self._connection.execute(
                    chosen, [value for place in part for value in place]
                ).fetchall()

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
        found = self._connection.execute(
            f"SELECT id FROM {table} WHERE {condition}", cells
        ).fetchone()
        return None if found is None else int(found[0])

    def _added(self, table: str, cells: Sequence[Any]) -> int:
        (number,) = self._connection.execute(
            f"SELECT coalesce(max(id), 0) + 1 FROM {table}"
        ).fetchone()
        self.insert(table, [(number, *cells)])
        return int(number)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        with self._lock:
            try:
                yield
            except sqlite3.Error as error:
                raise StoreError(f"{self.name} {explanation(error)}") from error


def _seal(row: Sequence[Any]) -> bytes:
    """Of cells of any type; of bytes, which may be many, as they are, with their number before
    them.
    """
    cells = [
        b"%d:%b" % (len(cell), cell) if type(cell) is bytes else b"%a;" % (cell,) for cell in row
    ]
    return hashlib.sha256(b"".join(cells)).digest()[:8]


def _marks(values: Sequence[Any]) -> str:
    return ", ".join("?" * len(values))


def packed(text: str, form: str = "") -> bytes:
    """JSON as a store keeps it, by what it differs in from its form: values alone, text and values,
    or all deflated.
    """
    parts = _VALUE.split(text) if form else [text]
    if len(parts) == 1:
        return _deflated(text, form)
    around, known = _parts(form)
    values = _differing(parts[1::2], known)
    if parts[::2] == around:
        return bytes([_VALUES]) + values
    told = _deflated(_GAP.join(parts[::2]), _around(form))
    both = bytes([_BOTH]) + varint(len(told)) + told + values
    return min(both, _deflated(text, form), key=len)


def unpacked(cell: bytes, form: str = "") -> str:
    """The JSON that was packed with a form.

    Raises
    ------
    ValueError
        These are no bytes that `packed` gave.

    Examples
    --------
    >>> unpacked(packed("[0.25, 1]", "[0.5, 1]"), "[0.5, 1]")
    '[0.25, 1]'
    """
    try:
        if cell[0] == _VALUES:
            start = 1
            around, known = _parts(form)
        elif cell[0] == _BOTH:
            length, start = read_varint(cell, 1)
            around = _inflated(cell[start : start + length], _around(form)).split(_GAP)
            start = start + length
            known = _parts(form)[1]
        else:
            return _inflated(cell, form)
        parts = [*around, *around[1:]]
        parts[::2], parts[1::2] = around, _values(cell, start, len(around) - 1, known)
    except (zlib.error, TypeError, struct.error, IndexError) as error:
        raise ValueError(str(error)) from None
    return "".join(parts)


def _deflated(text: str, form: str) -> bytes:
    deflate = zlib.compressobj(*_BESIDE, form.encode()) if form else zlib.compressobj(*_ALONE)
    return deflate.compress(text.encode()) + deflate.flush()


def _inflated(cell: bytes, form: str) -> str:
    inflate = zlib.decompressobj(-15, form.encode())
    text = inflate.decompress(cell, _LARGEST)
    if not inflate.eof or inflate.unused_data:
        raise ValueError("the cell is cut, or goes on")
    return text.decode()


def packed_numbers(value: Any, form: str) -> bytes | None:
    """A value that differs from its form in a few float64 alone, without its JSON; None of any
    other.

    A bit for each number, lowest first, set where the form has another one at its place; then
    these, of which none takes fewer bytes.
    """
    numbers: list[float] = []
    shape, _, known = _shape(form)
    try:
        if _shape_of(value, numbers) != shape:
            return None
        held: bytes = struct.pack(f"<{len(known)}d", *numbers)
        # By their bits, which tell zeros of either sign apart.
        differ = [*map(ne, struct.unpack(f"<{len(known)}Q", held), known)]
        if not all(differ):
            numbers = [*compress(numbers, differ)]
            held = struct.pack(f"<{len(numbers)}d", *numbers)
        singles = struct.unpack(f"<{len(numbers)}f", struct.pack(f"<{len(numbers)}f", *numbers))
    except (OverflowError, RecursionError):
        return None
    if len(numbers) > _FEW or any(map(eq, singles, numbers)) or not all(map(isfinite, numbers)):
        return None
    bits: int = sum(map(lshift, differ, count()))
    return bytes([_DOUBLES]) + bits.to_bytes(-(-len(known) // 8), "little") + held


def opened(cell: bytes, form: str = "") -> Any:
    """The value whose JSON, or whose numbers, were packed with a form.

    Raises
    ------
    ValueError
        These are no bytes that `packed` or `packed_numbers` gave.
    """
    if cell[:1] != bytes([_DOUBLES]):
        return json.loads(unpacked(cell, form))
    shape, known, _ = _shape(form)
    start = 1 - (-len(known) // 8)
    places = places_of(cell[1:start])
    if len(cell) != start + 8 * len(places) or (places and places[-1] >= len(known)):
        raise ValueError("the cell is cut, or goes on")
    numbers = [*known]
    for place, number in zip(
        places, struct.unpack_from(f"<{len(places)}d", cell, start), strict=True
    ):
        numbers[place] = number
    return _filled(shape, iter(numbers))


@lru_cache(maxsize=64)
def _shape(form: str) -> tuple[Any, list[float], tuple[int, ...]]:
    """Of a form, as `_shape_of`, its numbers, and their bits; one that is cut has no shape."""
    numbers: list[float] = []
    try:
        shape = _shape_of(json.loads(form), numbers)
    except (ValueError, RecursionError):
        return None, [], ()
    return (
        shape,
        numbers,
        struct.unpack(f"<{len(numbers)}Q", struct.pack(f"<{len(numbers)}d", *numbers)),
    )


def _shape_of(value: Any, numbers: list[float]) -> Any:
    """What a value is besides its float64, which are added to others: a list of them is how many
    they are.
    """
    kind = type(value)
    if kind is float:
        numbers.append(value)
        return float
    if kind is list:
        if {*map(type, value)} == {float}:
            numbers += value
            return len(value)
        return [_shape_of(each, numbers) for each in value]
    if kind is dict:
        shapes: list[Any] = []
        for each in value.values():
            # Most of what stimuli tell are numbers and words, for which a call each would take
            # long.
            if type(each) is float:
                numbers.append(each)
                shapes.append(float)
            else:
                shapes.append(
                    _shape_of(each, numbers)
                    if isinstance(each, list | dict)
                    else (type(each), each)
                )
        return dict, [*value], shapes
    return kind, value


def _filled(shape: Any, numbers: Iterator[float]) -> Any:
    """The value of a shape and numbers."""
    if type(shape) is int:
        return [*islice(numbers, shape)]
    if shape is float:
        return next(numbers)
    if type(shape) is list:
        return [_filled(each, numbers) for each in shape]
    if shape[0] is dict:
        return {name: _filled(each, numbers) for name, each in zip(*shape[1:], strict=True)}
    return shape[1]


def _differing(told: Sequence[str], known: Sequence[str]) -> bytes:
    """A bit for each value, lowest first, set where the form has another at its place; then these,
    in runs of a kind.

    A run is a byte, its kind in the upper three bits and its length less one in the lower five, and
    its values.
    """
    places = [i for i, value in enumerate(told) if i >= len(known) or value != known[i]]
    differ = sum(1 << i for i in places)
    return differ.to_bytes(-(-len(told) // 8), "little") + _runs([told[i] for i in places])


def _runs(told: Sequence[str]) -> bytes:
    cells = []
    for (kind, _), run in groupby(map(_coded, told), key=_kind_and_sign):
        values = [value for _, value in run]
        for first in range(0, len(values), _RUN):
            part = values[first : first + _RUN]
            cells += [
                bytes([kind << 5 | len(part) - 1]),
                near(_FLOATS[kind], part) if kind in _FLOATS else b"".join(part),
            ]
    return b"".join(cells)


def _kind_and_sign(coded: tuple[int, bytes]) -> tuple[int, int]:
    kind, value = coded
    return kind, value[-1] >> 7 if kind in _FLOATS else 0


def _coded(value: str) -> tuple[int, bytes]:
    """The kind of a value, and its bytes, from which it is told again to the last digit."""
    if value[0] == '"':
        digest = bytes.fromhex(value[1:-1])
        return _DIGEST, bytes([len(digest)]) + digest
    if len(value) < 20 and value.lstrip("-").isdigit() and str(whole := int(value)) == value:
        return _WHOLE, varint(2 * whole if whole >= 0 else -2 * whole - 1)
    number = float(value)
    if repr(number) != value or abs(number) > _LARGEST_SINGLE:
        return _TEXT, varint(len(value)) + value.encode()
    single = _FLOAT32.pack(number)
    if _FLOAT32.unpack(single)[0] == number:
        return _WIDENED, single
    if len(value) < _NOT_SINGLE and _shortest(number) == value:
        return _SINGLE, single
    return _DOUBLE, _FLOAT64.pack(number)


def _values(cell: bytes, start: int, many: int, known: Sequence[str]) -> list[str]:
    """The values that `_differing` wrote from a place on; the cell must end with them."""
    here = start + -(-many // 8)
    differ = int.from_bytes(cell[start:here], "little")
    anew = iter(_read_runs(cell, here, differ.bit_count()))
    return [next(anew) if differ >> place & 1 else known[place] for place in range(many)]


def _read_runs(cell: bytes, here: int, many: int) -> list[str]:
    told: list[str] = []
    while here < len(cell):
        kind = cell[here] >> 5
        length = (cell[here] & 31) + 1
        if kind in _FLOATS:
            numbers, here = read_near(_FLOATS[kind], cell, here + 1, length)
            told += map(_shortest if kind == _SINGLE else repr, numbers)
        else:
            here += 1
            for _ in range(length):
                value, here = _told(kind, cell, here)
                told.append(value)
    if len(told) != many or here != len(cell):
        raise ValueError("the cell is cut, or goes on")
    return told


def _told(kind: int, cell: bytes, start: int) -> tuple[str, int]:
    """A value that is no float, and where the next one begins."""
    number, start = read_varint(cell, start)
    if kind == _WHOLE:
        return str(-(number + 1) // 2 if number & 1 else number // 2), start
    held = cell[start : start + number]
    return (f'"{held.hex()}"' if kind == _DIGEST else held.decode()), start + number


def _shortest(single: float) -> str:
    """A float32 by the fewest digits, six or more, that tell it from all others."""
    bits = _FLOAT32.pack(single)
    told = (repr(float(f"{_FLOAT32.unpack(bits)[0]:.{digits}g}")) for digits in range(6, 10))
    return next(each for each in told if _FLOAT32.pack(float(each)) == bits)


@lru_cache(maxsize=64)
def _parts(form: str) -> tuple[list[str], list[str]]:
    """Text around values, and values."""
    parts = _VALUE.split(form)
    return parts[::2], parts[1::2]


@lru_cache(maxsize=64)
def _around(form: str) -> str:
    return _GAP.join(_parts(form)[0])


def near(floats: Floats, values: Sequence[bytes]) -> bytes:
    """Numbers by how far their bits lie above the two upper bytes of the least: one width in bits,
    and joined.

    What a model tells at once has, but for a few bits, one exponent, in whatever order it comes.
    """
    size, _, whole = floats
    bits: tuple[int, ...] = struct.unpack(f"<{len(values)}{whole}", b"".join(values))
    upper = min(bits) >> 8 * size - 16
    least = upper << 8 * size - 16
    width = (max(bits) - least).bit_length()
    joined = 0
    for bit in reversed(bits):
        joined = joined << width | bit - least
    return (
        bytes([width])
        + upper.to_bytes(2, "little")
        + joined.to_bytes(-(-width * len(bits) // 8), "little")
    )


def read_near(floats: Floats, cell: bytes, start: int, many: int) -> tuple[tuple[float, ...], int]:
    """What `near` wrote, and where the next run begins."""
    size, number, whole = floats
    width = cell[start]
    end = start + 3 - (-width * many // 8)
    least = int.from_bytes(cell[start + 1 : start + 3], "little") << 8 * size - 16
    joined = int.from_bytes(cell[start + 3 : end], "little")
    alone = (1 << width) - 1
    bits = [least + (joined >> width * i & alone) for i in range(many)]
    return struct.unpack(f"<{many}{number}", struct.pack(f"<{many}{whole}", *bits)), end


def varint(number: int) -> bytes:
    """Seven bits a byte, the lowest first; the upper bit says that more follow."""
    held = []
    while number > 127:
        held.append(number & 127 | 128)
        number >>= 7
    return bytes([*held, number])


def read_varint(cell: bytes, start: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        number |= (cell[start] & 127) << shift
        shift = shift + 7
        start = start + 1
        if cell[start - 1] < 128:
            return number, start


@lru_cache(maxsize=64)
def places_of(bits: bytes) -> list[int]:
    """Of the bits that are set, the lowest first."""
    return [i for i in range(8 * len(bits)) if bits[i >> 3] >> (i & 7) & 1]


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
    return sqlite3.connect(
        path, timeout=BUSY_TIMEOUT, isolation_level=None, check_same_thread=False
    )


def prepare(
    connection: sqlite3.Connection,
    transaction: Callable[[], AbstractContextManager[None]],
    name: str,
    create: bool,
) -> None:
    """Make the tables of a file that is empty, and refuse one that is no store of this schema."""
    version, application, tables = _identity(connection)
    if not (create or version or application or tables):
        raise StoreError(
            f"{name} is empty and holds no run; restore a copy of it or give another file"
        )
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
