"""Answers in words, in the store: what was shown, what was asked, and what came back word for word.

An answer is raw: reading "yes" out of it is done anew whenever a result is made. A trial is a place in the log of one
run that points to an answer by the key of its question; runs that ask the same question share its answer.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from psyprobe.errors import StoreError
from psyprobe.observers.chat.answering import Answer, Decoding
from psyprobe.store import Store, digest


@dataclass(frozen=True)
class AskedQuestion:
    """Everything that makes a question put in words, each part by the digest of its content.

    Parameters
    ----------
    shown : str
        What was shown: stimuli, display, delivery, their seeds and order.
    prompt : str
        What was asked: prompt, system text, and the words whose probabilities are wanted.
    decoding : Decoding
        How the answer was drawn.
    observer : str
        The observer's card.
    version : str
        Of the way of asking; a change of it asks anew.
    """

    shown: str
    prompt: str
    decoding: Decoding
    observer: str
    version: str

    @cached_property
    def key(self) -> str:
        """The name of the question in the store."""
        return digest([self.shown, self.prompt, asdict(self.decoding), self.observer, self.version])


@dataclass(frozen=True)
class LoggedTrial:
    """One line of a run's log.

    Parameters
    ----------
    number : int
        Place in the run.
    shown : str
        Digest of what is shown in it.
    key : str
        Of the question that is asked.
    about : mapping
        What the run knows of it: prompt, level, repeat and so on.
    """

    number: int
    shown: str
    key: str
    about: Mapping[str, Any]


class AnswerStore:
    """The answers of a store, and the logs of the runs that asked for them.

    Parameters
    ----------
    store : Store
        Opened; whoever opened it closes it.

    Examples
    --------
    >>> with Store(None) as store:
    ...     answers, asked = AnswerStore(store), AskedQuestion("image", "prompt", Decoding(), "observer", "1")
    ...     answers.add([(asked, Answer("Yes."))])
    ...     answers.find([asked.key])[asked.key].text
    'Yes.'
    """

    def __init__(self, store: Store) -> None:
        self.store = store

    def add(
        self,
        answers: Iterable[tuple[AskedQuestion, Answer]] = (),
        contents: Iterable[tuple[str, str, Any]] = (),
    ) -> None:
        """Keep answers and what their digests stand for, all or none of them.

        Parameters
        ----------
        answers : iterable of (AskedQuestion, Answer)
            A question that is answered already keeps its first answer.
        contents : iterable of (str, str, object)
            Digest, kind ("shown", "prompt", "stimulus") and what JSON can hold.
        """
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        with self.store.transaction() as connection:
            connection.executemany(
                "INSERT INTO content VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
                [(name, kind, json.dumps(value, allow_nan=False)) for name, kind, value in contents],
            )
            connection.executemany(
                "INSERT INTO answer (key, shown, prompt, decoding, observer, version, answered, json) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
                [
                    (
                        asked.key,
                        asked.shown,
                        asked.prompt,
                        json.dumps(asdict(asked.decoding)),
                        asked.observer,
                        asked.version,
                        now,
                        json.dumps(answer.to_dict()),
                    )
                    for asked, answer in answers
                ],
            )

    def missing(self, keys: Iterable[str]) -> set[str]:
        """Keys of questions that nobody has answered yet.

        Parameters
        ----------
        keys : iterable of str
            Keys of questions.

        Returns
        -------
        set of str
        """
        with self.store.reading() as connection:
            find = "SELECT 1 FROM answer WHERE key = ?"
            return {key for key in keys if connection.execute(find, (key,)).fetchone() is None}

    def find(self, keys: Iterable[str]) -> dict[str, Answer]:
        """The answers to those questions that have one.

        Parameters
        ----------
        keys : iterable of str
            Keys of questions.

        Returns
        -------
        dict of str to Answer
        """
        found = {}
        with self.store.reading() as connection:
            for key in keys:
                row = connection.execute("SELECT json FROM answer WHERE key = ?", (key,)).fetchone()
                if row is not None:
                    found[key] = Answer.from_dict(json.loads(row[0]))
        return found

    def contents(self, names: Iterable[str]) -> dict[str, Any]:
        """What digests stand for, of those that are kept.

        Parameters
        ----------
        names : iterable of str
            Digests.

        Returns
        -------
        dict of str to object
        """
        found = {}
        with self.store.reading() as connection:
            for name in names:
                row = connection.execute("SELECT json FROM content WHERE digest = ?", (name,)).fetchone()
                if row is not None:
                    found[name] = json.loads(row[0])
        return found

    def log(self, run: str, trials: Sequence[LoggedTrial]) -> None:
        """Write trials into the log of a run.

        Parameters
        ----------
        run : str
            Key of the run.
        trials : sequence of LoggedTrial
            They replace those of the same numbers.
        """
        with self.store.transaction() as connection:
            connection.executemany(
                "INSERT OR REPLACE INTO trial VALUES (?, ?, ?, ?, ?)",
                [(run, t.number, t.shown, t.key, json.dumps(t.about, allow_nan=False)) for t in trials],
            )

    def close_log(self, run: str, length: int) -> None:
        """Note that a run has no more trials than these.

        Parameters
        ----------
        run : str
            Key of the run.
        length : int
            Number of its trials.
        """
        with self.store.transaction() as connection:
            connection.execute("DELETE FROM trial WHERE run = ? AND number >= ?", (run, length))

    def trials(self, run: str) -> Iterator[tuple[LoggedTrial, Mapping[str, Any], Answer | None, Decoding | None]]:
        """The log of a run, with what was shown and answered.

        Parameters
        ----------
        run : str
            Key of the run.

        Yields
        ------
        (LoggedTrial, mapping, Answer or None, Decoding or None)
            In order; without an answer where nothing was asked.

        Raises
        ------
        StoreError
            What was shown is not kept: the file was changed by another program.
        """
        shown: dict[str, Any] = {}
        with self.store.reading() as connection:
            rows = connection.execute(
                "SELECT t.number, t.shown, t.key, t.json, a.json, a.decoding FROM trial t "
                "LEFT JOIN answer a ON a.key = t.key WHERE t.run = ? ORDER BY t.number",
                (run,),
            )
            for number, name, key, about, answer, decoding in rows:
                if name not in shown:
                    row = connection.execute("SELECT json FROM content WHERE digest = ?", (name,)).fetchone()
                    if row is None:
                        raise StoreError(f"trial {number} of run {run[:12]} shows an image that the store lacks")
                    shown[name] = json.loads(row[0])
                yield (
                    LoggedTrial(number, name, key, json.loads(about)),
                    shown[name],
                    None if answer is None else Answer.from_dict(json.loads(answer)),
                    None if decoding is None else Decoding(**json.loads(decoding)),
                )
