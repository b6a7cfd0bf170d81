"""Every answer, once, durable: one SQLite file, keyed by the content of the question.

An answer is raw: a reply word for word, distances as they came out. Reading and scoring are redone
without asking.

Digests are kept by their first 128 bits.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from time import time
from typing import Any, Self

from psyprobe.errors import StoreError
from psyprobe.running.database import Database, Row, packed
from psyprobe.running.lease import lend, renew, take_back
from psyprobe.running.protocol import Answered, Origin, Question, RunRecord

#: Hexadecimal digits of a digest that are kept, and of the name of a way, with which a question's
#: key ends.
DIGITS = 32
_WAY_DIGITS = 16
#: Answers that are read in turn are read so many at once.
_IN_TURN = 500
#: JSON of what digests stand for and of records, and of answers; made once, and not at each call.
_JSON, _COMPACT = (
    json.JSONEncoder(allow_nan=False, separators=each) for each in ((", ", ": "), (",", ":"))
)
#: Fields of a record that have a column of their own.
_OF_THE_TABLE = ("started", "finished", "outcome", "origins")


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
        The file cannot be opened or written, is no store, is damaged, or comes from another version
        of psyprobe.

    Examples
    --------
    >>> asked = Question(shown="5e", asked="a5ced0", observer="ca2d", version="1")
    >>> with Store(None) as store:
    ...     store.add([Answered(asked, {"text": "Yes."})])
    ...     store.answers([asked.key])[asked.key]["text"]
    'Yes.'
    """

    def __init__(self, path: str | Path | None, *, create: bool = True) -> None:
        self.path = None if path is None else Path(path)
        self.database = Database(self.path, create=create)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self.database.close()

    @property
    def name(self) -> str:
        """What messages call it."""
        return self.database.name

    def together(self) -> AbstractContextManager[None]:
        """A context in which all that is written is written at its end, or nothing of it."""
        return self.database.transaction()

    # -- answers
    # -----------------------------------------------------------------------------------------------------

    def missing(self, keys: Iterable[str]) -> set[str]:
        """The keys, of those given, of questions that nobody has answered yet."""
        wanted = set(keys)
        places = self._places(wanted)
        known = self.database.answered(places)
        return wanted - {key for place, key in places.items() if place in known}

    def answers(self, keys: Iterable[str]) -> dict[str, dict[str, Any]]:
        """The answers to those questions, by their keys, that have one."""
        places = self._places(set(keys))
        return {places[row[0], row[1]]: self._answer(row) for row in self.database.answers(places)}

    def answers_of_all(self, keys: Sequence[str]) -> dict[str, dict[str, Any]]:
        """The answers to questions that must all have one.

        Raises
        ------
        StoreError
            One has none.
        """
        found = self.answers(keys)
        self._check_answered(keys, len(set(keys) - set(found)))
        return found

    def answers_in_turn(self, keys: Sequence[str]) -> Iterator[dict[str, Any]]:
        """The answers to questions that must all have one, in their order, of which few are in
        memory at once.

        Raises
        ------
        StoreError
            One has none.
        """
        self._check_answered(keys, len(self.missing(keys)))
        for start in range(0, len(keys), _IN_TURN):
            part = keys[start : start + _IN_TURN]
            found = self.answers_of_all(part)
            yield from map(found.__getitem__, part)

    def add(self, answered: Iterable[Answered]) -> None:
        """Keep answers and what their digests stand for, all or none of them.

        A question that is answered already keeps its first answer.

        Raises
        ------
        StoreError
            An answer holds NaN or infinity, or the file cannot be written.
        """
        now = round(time() * 1000)
        self.add_all((each, now) for each in answered)

    def add_all(self, answered: Iterable[tuple[Answered, int]]) -> None:
        """Keep answers as `add` does, each with the time at which it came: milliseconds since 1970,
        UTC.
        """
        coming = [*answered]
        contents = {content[0]: content for each, _ in coming for content in each.contents}
        with self.database.transaction():
            self.keep(contents.values())
            numbers: dict[tuple[str, ...], tuple[int, int]] = {}
            rows = []
            for each, at in coming:
                question = each.question
                shared = (question.asked, question.observer, question.version, each.origin.text)
                if shared not in numbers:
                    numbers[shared] = self._numbers(question, each.origin)
                try:
                    form = self.database.cell("answer", each.answer, _COMPACT.encode)
                except ValueError:
                    raise StoreError(
                        "a response is NaN or infinite; the store keeps finite responses only"
                    ) from None
                rows.append((_name(question.shown), *numbers[shared], at, *form))
            self.database.insert("answer", rows)

    def forget(self, keys: Iterable[str]) -> None:
        """Take answers away, so that others can stand in their place."""
        with self.database.transaction():
            self.database.remove(self._places(keys))

    def kept_answers(self) -> Iterator[tuple[Answered, int]]:
        """All answers in the order in which they came, each with its time, for `add_all`; of
        digests what is kept.
        """
        ways = {number: cells for number, *cells in self.database.rows("way")}
        origins = {row[0]: self._origin(row) for row in self.database.rows("origin")}
        for row in self.database.each("answer"):
            shown, way, origin, at, *_ = row
            if way not in ways or origin not in origins:
                raise self.database.damaged("answer", row)
            name, asked, observer, version = ways[way]
            question = Question(shown.hex(), asked.hex(), observer.hex(), version)
            if question.way != name.hex():
                raise self.database.damaged("way", (name,))
            yield Answered(question, self._answer(row), origin=origins[origin]), at

    def origins_of(self, observer: str) -> list[Origin]:
        """All that has answered for the observer of a card's digest, in the order in which it
        came.
        """
        return [self._origin(row) for row in self.database.rows("origin", observer=_name(observer))]

    # -- what digests stand for
    # --------------------------------------------------------------------------------------

    def keep(self, contents: Iterable[tuple[str, str, Any]]) -> None:
        """Keep what digests stand for: (digest, kind, what JSON can hold), so that a question can
        be read back.
        """
        named = {_name(digest): (kind, value) for digest, kind, value in contents}
        if not named:
            return
        with self.database.transaction():
            known = self.database.kept(list(named))
            # In order: rows that are appended lie close, those that are put between others leave a
            # third empty.
            new = [(name, *named[name]) for name in sorted(named) if name not in known]
            cells = (
                (name, *self.database.cell(kind, value, _JSON.encode)) for name, kind, value in new
            )
            self.database.insert("content", list(cells))

    def content(self, name: str) -> Any:
        """What a digest stands for.

        Raises
        ------
        StoreError
            Nothing is kept under this digest.
        """
        rows = self.database.rows("content", digest=_name(name))
        if not rows:
            raise StoreError(f"{self.name}: nothing is kept under the digest {name}")
        return self.database.value("content", rows[0], *rows[0][1:])

    def kept_contents(self) -> Iterator[tuple[str, str, Any]]:
        """All that digests stand for, as `keep` takes it."""
        kinds = {number: kind for number, kind, *_ in self.database.rows("form")}
        for row in self.database.each("content"):
            value = self.database.value("content", row, *row[1:])
            yield row[0].hex(), kinds[row[1]], value

    # -- runs
    # --------------------------------------------------------------------------------------------------------

    def begin(self, record: RunRecord) -> RunRecord:
        """Open a run, or go on with the one that asks the same, whose grouping of questions is
        binding.
        """
        with self.database.transaction():
            begun = self.find(record.key)
            if begun is None:
                begun = replace(record, started=_now(), finished=None, outcome={}, origins=())
                name = _name(record.key)
                self.database.insert(
                    "run", [(name, _described(record), begun.started, None, None, None)]
                )
        return begun

    def finish(
        self, begun: RunRecord, outcome: Mapping[str, Any], questions: Iterable[str] = ()
    ) -> RunRecord:
        """Note that every question of a run is answered, what its session found, and who gave those
        answers.
        """
        name = _name(begun.key)
        with self.database.transaction():
            (row,) = self.database.rows("run", key=name)
            _, record, started, finished, *_ = row
            if finished is not None:
                return replace(self._run(row), outcome=outcome)
            origins = tuple(self._origins(set(questions)))
            ended = replace(begun, finished=_now(), outcome=outcome, origins=origins)
            told = [asdict(origin) for origin in origins]
            self.database.replace(
                "run",
                (name, record, started, ended.finished, _packed(outcome), _packed(told)),
                key=name,
            )
        return ended

    def adopt(self, record: RunRecord) -> None:
        """Take over a run of another store: one that is there stays, but for what it lacks to be
        finished.
        """
        name = _name(record.key)
        ended: tuple[str | bytes | None, ...] = (None, None, None)
        if record.finished is not None:
            origins = [asdict(origin) for origin in record.origins]
            ended = (record.finished, _packed(record.outcome), _packed(origins))
        with self.database.transaction():
            self.database.insert("run", [(name, _described(record), record.started, *ended)])
            ((_, known, started, finished, *_),) = self.database.rows("run", key=name)
            if finished is None and record.finished is not None:
                self.database.replace("run", (name, known, started, *ended), key=name)

    def find(self, key: str) -> RunRecord | None:
        """The run with a key as it was begun, or None."""
        return next(map(self._run, self.database.rows("run", key=_name(key))), None)

    def runs(self) -> list[RunRecord]:
        """All runs, finished and unfinished, in the order in which they were begun."""
        return list(map(self._run, self.database.rows("run")))

    # -- work that is under way
    # --------------------------------------------------------------------------------------

    def lease(self, names: Iterable[str], holder: str, seconds: float, most: int) -> set[str]:
        """Take what nobody else holds, for so many seconds from now, so that two processes share
        the work.

        Nobody's is a lease whose time is over, or whose holder is a process of this machine that
        has ended. Beside others a holder gets at most half of its share of what is left, so that
        all end at about the same time. In memory nobody else holds anything.

        Parameters
        ----------
        names : iterable of str
            Of the pieces of work, the first first.
        holder : str
            "HOST PID NONCE".
        seconds : float
            From now.
        most : int
            Pieces to take, at least 1.

        Returns
        -------
        set of str
            Those of the names that the holder now has.
        """
        return lend(self.database, names, holder, seconds, most)

    def renew(self, holder: str, seconds: float) -> None:
        """Let a holder keep all that it has, for so many seconds from now."""
        renew(self.database, holder, seconds)

    def release(self, holder: str) -> None:
        """Give back all that a holder has."""
        take_back(self.database, holder)

    # -- inside
    # ------------------------------------------------------------------------------------------------------

    def _check_answered(self, keys: Sequence[str], absent: int) -> None:
        if absent:
            raise StoreError(
                f"{self.name}: {absent} of {len(keys)} questions have no answer yet; "
                "run the experiment again to ask them"
            )

    def _places(self, keys: Iterable[str]) -> dict[tuple[bytes, int], str]:
        """Where answers stand or would, by the keys of questions; a way that nobody asked in yet
        has no place.
        """
        wanted = [*keys]
        names = {way: _name(way) for way in {key[-_WAY_DIGITS:] for key in wanted}}
        known = self.database.ways(names.values())
        ways = {way: known[name] for way, name in names.items() if name in known}
        split = ((key, key[-_WAY_DIGITS:]) for key in wanted)
        return {(_name(key[:-_WAY_DIGITS]), ways[way]): key for key, way in split if way in ways}

    def _numbers(self, question: Question, origin: Origin) -> tuple[int, int]:
        """Of a way of asking and of who answered."""
        asked = _name(question.asked)
        observer = _name(question.observer)
        way = self.database.number("way", _name(question.way), asked, observer, question.version)
        return way, self.database.number("origin", observer, origin.text)

    def _answer(self, row: Row) -> dict[str, Any]:
        answer: dict[str, Any] = self.database.value("answer", row, *row[-2:])
        return answer

    def _origins(self, keys: set[str]) -> list[Origin]:
        """All that gave the answers to some questions, in an order that depends on nothing else."""
        found = sorted(self.database.origins(self._places(keys)))
        rows = self.database.rows("origin", id=found)
        if len(rows) < len(found):
            raise self.database.damaged("origin", found)
        return [self._origin(row) for row in sorted(rows, key=lambda row: row[1:])]

    def _origin(self, row: Row) -> Origin:
        try:
            return Origin(**json.loads(row[-1]))
        except (TypeError, ValueError, RecursionError):
            raise self.database.damaged("origin", row) from None

    def _run(self, row: Row) -> RunRecord:
        _, record, started, finished, outcome, origins = row
        values, found, told = (
            self.database.value("run", row, None, cell) for cell in (record, outcome, origins)
        )
        try:
            origins = tuple(Origin(**each) for each in told)
            return RunRecord(
                **values, started=started, finished=finished, outcome=found, origins=origins
            )
        except TypeError:
            raise self.database.damaged("run", row) from None


def _packed(value: Any) -> bytes:
    return packed(_JSON.encode(value))


def _described(record: RunRecord) -> bytes:
    names = (field.name for field in fields(record))
    return _packed({name: getattr(record, name) for name in names if name not in _OF_THE_TABLE})


def _name(digest: str) -> bytes:
    """What of a digest is kept."""
    try:
        return bytes.fromhex(digest[:DIGITS])
    except (ValueError, TypeError):
        raise StoreError(
            f"{ascii(digest)[:80]} is no digest; give an even number of hexadecimal digits"
        ) from None


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


@contextmanager
def open_store(store: str | Path | Store | None, create: bool = True) -> Iterator[Store]:
    """The store of a name, which is closed afterwards, or one that is open already, which stays so;
    None is memory.
    """
    if isinstance(store, Store):
        yield store
        return
    with Store(store, create=create) as opened:
        yield opened
