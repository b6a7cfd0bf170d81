"""Every response, once, durable: one SQLite file, keyed by the content of the question.

A question is a pair of stimuli (test and reference), the display that shows them, the observer that is asked and
the version of the way of asking, each named by the digest of its content. Two experiments that share a condition
therefore share its answer. Responses arrive in batches, each in one transaction: after a kill at any moment a
batch is there whole or not at all.

The file uses SQLite's rollback journal and not its write-ahead log: a transaction comes once in seconds, so speed
does not matter, and a store that is one file (no ``-wal`` beside it) can be copied, mailed and kept on network
drives, where a write-ahead log fails.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.errors import StoreError
from psyprobe.store_schema import APPLICATION_ID, SCHEMA_VERSION, TABLES

#: How long a process waits for another one's transaction, in seconds.
BUSY_TIMEOUT = 60.0


def digest(value: Any) -> str:
    """SHA-256 of the canonical JSON of a value.

    Parameters
    ----------
    value : object
        Anything that JSON can hold; NaN and infinity are refused.

    Returns
    -------
    str
        64 hexadecimal digits, independent of the order of keys.

    Examples
    --------
    >>> digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1})
    True
    """
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True)
class Question:
    """What an observer was asked, each part by the digest of its content.

    Parameters
    ----------
    stimulus, reference : str
        Digests of the two stimulus specs that were compared.
    display : str
        Digest of the display.
    observer : str
        Digest of the observer's card.
    version : str
        Version of the way of asking; a change of it asks anew.
    """

    stimulus: str
    reference: str
    display: str
    observer: str
    version: str

    @property
    def key(self) -> str:
        """The name of the question in the store."""
        return digest([self.stimulus, self.reference, self.display, self.observer, self.version])


@dataclass(frozen=True)
class Answers:
    """Responses of one observer to a batch of questions.

    Parameters
    ----------
    questions : tuple of Question
        What was asked.
    layers, measures : tuple of str
        Names along the second and third axis of ``values``.
    values : array, shape (questions, layers, measures), float64
        The responses; all finite.
    """

    questions: tuple[Question, ...]
    layers: tuple[str, ...]
    measures: tuple[str, ...]
    values: FloatArray

    def __post_init__(self) -> None:
        shape = (len(self.questions), len(self.layers), len(self.measures))
        if self.values.shape != shape:
            raise StoreError(f"answers have shape {self.values.shape}; the questions ask for {shape}")
        if not np.isfinite(self.values).all():
            raise StoreError("a response is NaN or infinite; the store keeps finite responses only")


@dataclass(frozen=True)
class RunRecord:
    """What a run was: enough to rebuild its result without the observer or the catalogue.

    Parameters
    ----------
    experiment, experiment_digest, experiment_toml : str
        Name, digest and text of the experiment file.
    observer : str
        Name of the observer.
    observer_card : dict
        Its card, with the device and the software that it began on.
    observer_digest, baseline_digest, display_digest : str
        Digests of the cards of the observer and of its baseline, and of the display, kept by `Store.keep`.
    layout : dict
        Where each question belongs in the result, and the batches in which they are asked.
    software : dict
        Version of each package that had a part in the result.
    started, finished : str or None
        UTC times in ISO 8601; ``finished`` is None until every question is answered.
    """

    experiment: str
    experiment_digest: str
    experiment_toml: str
    observer: str
    observer_card: Mapping[str, Any]
    observer_digest: str
    baseline_digest: str
    display_digest: str
    layout: Mapping[str, Any]
    software: Mapping[str, str]
    started: str | None = field(default=None, compare=False)
    finished: str | None = field(default=None, compare=False)

    @property
    def key(self) -> str:
        """The name of the run: the same experiment, observer and conditions continue the same run."""
        conditions = {name: value for name, value in self.layout.items() if name not in _HOW_ASKED}
        return digest([self.experiment_digest, self.observer_digest, self.display_digest, conditions])

    def _to_json(self) -> str:
        names = [name for name in self.__dataclass_fields__ if name not in ("started", "finished")]
        return json.dumps({name: getattr(self, name) for name in names}, allow_nan=False)


#: The parts of a layout that say how questions are grouped, not what is asked.
_HOW_ASKED = ("batch_size", "batches")


class Store:
    """A SQLite file that keeps questions, responses and runs.

    Parameters
    ----------
    path : str, Path or None
        The file; None keeps everything in memory and forgets it on closing.
    create : bool
        Whether a file that does not exist yet may be made.

    Raises
    ------
    StoreError
        The file cannot be opened or written, is no store, is damaged, or comes from a newer psyprobe.

    Examples
    --------
    >>> with Store(None) as store:
    ...     store.runs()
    []
    """

    def __init__(self, path: str | Path | None, *, create: bool = True) -> None:
        self.path = None if path is None else Path(path)
        with self._explained():
            self._connection = self._connect(create)
            try:
                self._prepare()
            except BaseException:
                self._connection.close()
                raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def missing(self, keys: Iterable[str]) -> list[str]:
        """The questions that nobody has answered yet.

        Parameters
        ----------
        keys : iterable of str
            Keys of questions.

        Returns
        -------
        list of str
            Those that are not in the store, in the given order.
        """
        with self._explained():
            find = "SELECT 1 FROM question WHERE key = ?"
            return [key for key in keys if self._connection.execute(find, (key,)).fetchone() is None]

    def add(self, answers: Sequence[Answers]) -> None:
        """Keep a batch of responses, all or none of them.

        Parameters
        ----------
        answers : sequence of Answers
            One per observer. A question that is answered already keeps its first answer.
        """
        with self.transaction() as connection:
            for batch in answers:
                names = [(layer, measure) for layer in batch.layers for measure in batch.measures]
                for question, values in zip(batch.questions, batch.values, strict=True):
                    row = connection.execute(
                        "INSERT INTO question (key, stimulus, reference, display, observer, version) VALUES "
                        "(:key, :stimulus, :reference, :display, :observer, :version) "
                        "ON CONFLICT DO NOTHING RETURNING id",
                        {"key": question.key, **asdict(question)},
                    ).fetchone()
                    if row is None:
                        continue
                    connection.executemany(
                        "INSERT INTO response VALUES (?, ?, ?, ?)",
                        [(row[0], *name, float(v)) for name, v in zip(names, values.flat, strict=True)],
                    )

    def read(self, keys: Sequence[str], layers: Sequence[str], measures: Sequence[str]) -> FloatArray:
        """The responses to questions.

        Parameters
        ----------
        keys : sequence of str
            Keys of questions.
        layers, measures : sequence of str
            Which responses, in which order.

        Returns
        -------
        array, shape (keys, layers, measures), float64
            The stored values.

        Raises
        ------
        StoreError
            A question or one of its responses is not there.
        """
        place = {name: i for i, name in enumerate((a, b) for a in layers for b in measures)}
        values = np.full((len(keys), len(place)), np.nan)
        with self._explained():
            for i, key in enumerate(keys):
                rows = self._connection.execute(
                    "SELECT layer, measure, value FROM response JOIN question ON question = id WHERE key = ?",
                    (key,),
                )
                for layer, measure, value in rows:
                    at = place.get((layer, measure))
                    if at is not None:
                        values[i, at] = value
        absent = int(np.isnan(values).any(axis=1).sum())
        if absent:
            raise StoreError(
                f"{self._name}: {absent} of {len(keys)} questions have no answer yet; "
                "run the experiment again to ask them"
            )
        return values.reshape(len(keys), len(layers), len(measures))

    def keep(self, kind: str, contents: Mapping[str, Any]) -> None:
        """Keep what digests stand for, so that a question can be read back.

        Parameters
        ----------
        kind : str
            "stimulus", "display" or "observer".
        contents : mapping of str to object
            Digest to content that JSON can hold.
        """
        rows = [(name, kind, json.dumps(value, allow_nan=False)) for name, value in contents.items()]
        with self.transaction() as connection:
            connection.executemany("INSERT INTO content VALUES (?, ?, ?) ON CONFLICT DO NOTHING", rows)

    def content(self, name: str) -> Any:
        """What a digest stands for.

        Parameters
        ----------
        name : str
            A digest that was given to `keep`.

        Returns
        -------
        object
            The content.

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

    def begin(self, record: RunRecord) -> RunRecord:
        """Open a run, or go on with the one that asks the same.

        Parameters
        ----------
        record : RunRecord
            The run as planned now.

        Returns
        -------
        RunRecord
            The recorded run: the given one, or the earlier one with the same key, whose batches are binding.
        """
        with self.transaction() as connection:
            connection.execute(
                "INSERT INTO run (key, record, started) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
                (record.key, record._to_json(), _now()),
            )
            row = connection.execute(
                "SELECT record, started, finished FROM run WHERE key = ?", (record.key,)
            ).fetchone()
        return _record(*row)

    def finish(self, key: str) -> None:
        """Note that every question of a run is answered.

        Parameters
        ----------
        key : str
            Key of the run.
        """
        with self.transaction() as connection:
            connection.execute("UPDATE run SET finished = ? WHERE key = ? AND finished IS NULL", (_now(), key))

    def find(self, key: str) -> RunRecord | None:
        """The run with a key, or None.

        Parameters
        ----------
        key : str
            Key of a run.

        Returns
        -------
        RunRecord or None
            The record as it was begun.
        """
        with self._explained():
            row = self._connection.execute("SELECT record, started, finished FROM run WHERE key = ?", (key,)).fetchone()
        return None if row is None else _record(*row)

    def runs(self) -> list[RunRecord]:
        """All runs, in the order in which they were begun.

        Returns
        -------
        list of RunRecord
            Finished and unfinished ones.
        """
        with self._explained():
            rows = self._connection.execute("SELECT record, started, finished FROM run ORDER BY id").fetchall()
        return [_record(*row) for row in rows]

    @property
    def _name(self) -> str:
        return "the store in memory" if self.path is None else f"store {self.path}"

    def _connect(self, create: bool) -> sqlite3.Connection:
        if self.path is None:
            return sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        if self.path.is_dir():
            raise StoreError(f"{self._name} is a folder; give the name of a file in it")
        if not self.path.parent.is_dir():
            raise StoreError(f"{self._name} cannot be made: there is no folder {self.path.parent}; make it first")
        if not create and not self.path.exists():
            raise StoreError(f"{self._name} does not exist")
        # check_same_thread: a run may be called from another thread than the one that opened the store,
        # never from two at once.
        return sqlite3.connect(self.path, timeout=BUSY_TIMEOUT, isolation_level=None, check_same_thread=False)

    def _prepare(self) -> None:
        # The lock comes first: two processes that make the same store at once must not both create its tables.
        version, application, tables = self._identity()
        if (application == 0 and version == 0 and tables == 0) or (
            application == APPLICATION_ID and version < SCHEMA_VERSION
        ):
            with self.transaction() as connection:
                # A store of an older psyprobe gets the tables that it lacks; what it holds stays as it is.
                for number in range(self._identity()[0] + 1, SCHEMA_VERSION + 1):
                    for statement in filter(str.strip, TABLES[number].split(";")):
                        connection.execute(statement)
                connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
            version, application, tables = self._identity()
        if application != APPLICATION_ID:
            raise StoreError(f"{self._name} is a database of another program; give another file name")
        if version > SCHEMA_VERSION:
            raise StoreError(
                f"{self._name} has schema {version}, and this psyprobe reads up to {SCHEMA_VERSION}; "
                "update psyprobe or use a new store"
            )

    def _identity(self) -> tuple[int, int, int]:
        version = self._connection.execute("PRAGMA user_version").fetchone()[0]
        application = self._connection.execute("PRAGMA application_id").fetchone()[0]
        tables = self._connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        return version, application, tables

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """The database, to read tables that another module keeps here."""
        with self._explained():
            yield self._connection

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """The database, to write: all of what is written within, or nothing of it."""
        with self._explained():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise StoreError(f"{self._name} {_explanation(error)}") from error


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


def _record(text: str, started: str, finished: str | None) -> RunRecord:
    return RunRecord(**json.loads(text), started=started, finished=finished)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


@contextmanager
def open_store(store: str | Path | Store | None, create: bool = True) -> Iterator[Store]:
    """The store of a name, which is closed afterwards, or one that is open already, which stays so.

    Parameters
    ----------
    store : str, Path, Store or None
        A file, an open store, or None for memory.
    create : bool
        Whether a file that does not exist yet may be made.
    """
    if isinstance(store, Store):
        yield store
        return
    with Store(store, create=create) as opened:
        yield opened
