"""Questions in files for Batch APIs of OpenAI's form: requests are written, and answers read when
they are there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from psyprobe.errors import InputError, UnfinishedError, clipped
from psyprobe.files.output import make_folder
from psyprobe.observers.batch_files.folder import (
    THOUGHT,
    Folder,
    Writer,
    answer_at,
    read_folder,
)
from psyprobe.observers.batch_files.submitting import fetch, submit
from psyprobe.observers.chat.openai_chat import OpenAIObserver
from psyprobe.observers.chat.openai_protocol import Dialect, ProblemError, with_substitutions
from psyprobe.observers.chat.openai_sending import request_body
from psyprobe.observers.chat.prices import Budget, Price, priced
from psyprobe.observers.chat.protocol import Answer, Answering, Inquiry


class BatchObserver(Answering):
    """A model behind OpenAI's protocol that is asked in files, and answers when its results lie
    beside them.

    Parameters
    ----------
    observer : OpenAIObserver
        Whose questions these are; its card is this observer's, so that answers are the same in a
        store.
    folder : str or Path
        Of requests and results; made by a run where there is none.
    submit : bool
        Whether files are sent to the server, and results fetched from it, over its ``/files`` and
        ``/batches``.
    probe : bool
        Whether the first question is put to the server directly, to find out what it refuses before
        thousands are written.

    Examples
    --------
    >>> import tempfile
    >>> import psyprobe as pp
    >>> from psyprobe.observers import load_observer
    >>> batched = BatchObserver(load_observer("openai:a-model"), tempfile.mkdtemp())
    >>> pp.run("hernandez2025", batched, progress=False)    # doctest: +SKIP
    Traceback (most recent call last):
    psyprobe.errors.UnfinishedError: 500 questions wait for their answers ...
    """

    bits = 8
    takes_all = True
    budget: Budget | None = None
    concurrency = 1
    rate: float | None = None

    #: Asks the same questions directly.
    directly: OpenAIObserver

    def __init__(
        self,
        observer: OpenAIObserver,
        folder: str | Path,
        *,
        submit: bool = False,
        probe: bool = False,
    ) -> None:
        if not isinstance(observer, OpenAIObserver):
            raise InputError(
                f"{observer.card.name} is asked directly: batches are for openai:MODEL; leave "
                "the batch folder out"
            )
        self.directly = observer
        self.card = observer.card
        self.model = observer.endpoint.model
        self._path = Path(folder)
        self._submit = submit
        self._probe = probe
        self._price: Price | None = None
        self._folder: Folder | None = None
        #: What the server takes, where it was asked.
        self._dialect: Dialect | None = None
        self._written: list[str] = []
        self._waiting = 0

    @property
    def price(self) -> Price | None:
        """What its questions cost in a batch."""
        return self._price

    @price.setter
    def price(self, price: Price | None) -> None:
        self.directly.price, self._price = price, None if price is None else price.in_batch()

    def served(self, certain: bool) -> dict[str, str]:
        """Which model answered, by the first result there is; nothing before that."""
        folder = self._read()
        own = (
            place
            for key, place in folder.answers.items()
            if self._model_of(folder, key) == self.model
        )
        return next((answer.named for place in own if (answer := answer_at(*place))), {})

    def put(
        self, answer: Any, observers: Mapping[str, Any], agenda: Iterable[Any]
    ) -> Iterator[Any]:
        """Put batches of questions as an executor does; of those whose answers are waited for
        nothing is drawn.

        Raises
        ------
        UnfinishedError
            Some are not answered yet.
        """
        make_folder(self._path)
        if self._submit:
            fetch(self._read(), self.directly)
        self._folder = self._read()
        self._waiting = 0
        self._written = []

        def left() -> Iterator[Any]:
            for batch in agenda:
                questions = tuple(
                    question for question in batch.questions if not self._pending(question.key)
                )
                self._waiting += len(batch.questions) - len(questions)
                if questions:
                    yield replace(batch, questions=questions)

        yield from answer(observers, left())
        if self._submit:
            submit(self._folder, self.directly)
        if self._waiting:
            raise UnfinishedError(self._told(self._folder))

    def answers(self, inquiries: Iterable[Inquiry]) -> Iterator[tuple[Inquiry, Answer]]:
        """Answers that are there; all else is written as requests.

        Raises
        ------
        InputError
            No run puts these.
        """
        folder = self._folder
        if folder is None:
            raise InputError(
                f"{self.card.name} is asked in batches, by psyprobe.run alone; leave the batch "
                "folder out"
            )
        writer: Writer | None = None
        try:
            for inquiry in inquiries:
                found = self._found(folder, inquiry)
                if found is None and writer is None:
                    if self._probe and self._dialect is None:
                        (found,) = (answer for _, answer in self.directly.answers([inquiry]))
                        self._dialect = self.directly.sending().dialect
                    else:
                        writer = Writer(folder, self.model, self._terms(folder))
                if found is not None:
                    yield inquiry, found
                elif writer is not None:
                    question = self.directly.question(self.directly.checked(inquiry))
                    writer.add(
                        inquiry, request_body(self.directly.endpoint, question, writer.dialect)
                    )
                    self._waiting += 1
            if writer is not None:
                writer.finish()
                self._written += writer.files
        finally:
            if writer is not None:
                writer.close()

    def _reply(self, inquiry: Inquiry) -> Answer:
        raise InputError(
            f"{self.card.name} is asked in batches; leave the batch folder out to ask a single "
            "question"
        )

    def _read(self) -> Folder:
        return read_folder(self._path, self.directly.endpoint.thinking)

    def _pending(self, key: str) -> bool:
        return self._folder is not None and self._folder.pending(key)

    def _model_of(self, folder: Folder, key: str) -> str:
        return folder.sent[folder.asked[key][-1]].model

    def _found(self, folder: Folder, inquiry: Inquiry) -> Answer | None:
        """The answer that lies in the folder, in the terms in which it was asked."""
        place = folder.answers.get(inquiry.key)
        answer = None if place is None else answer_at(*place)
        if answer is None:
            return None
        dialect = folder.sent[folder.asked[inquiry.key][-1]].dialect
        return priced(with_substitutions(answer, inquiry, dialect), self._price, inquiry)

    def _terms(self, folder: Folder) -> Dialect:
        """In which dialect to ask: that of the last file, and what its failures say of the
        server.
        """
        if self._dialect is not None:
            return self._dialect
        own = [one for one in folder.sent.values() if one.model == self.model]
        if not own:
            return Dialect()
        dialect = last = own[-1].dialect
        problems: dict[tuple[str, str], ProblemError] = {}
        for key, failures in folder.failures.items():
            asked = folder.sent[folder.asked[key][-1]]
            if (
                failures
                and key not in folder.answers
                and asked.model == self.model
                and asked.dialect == last
            ):
                problem = list(failures.values())[-1]
                problems.setdefault((str(problem), problem.param), problem)
        for problem in problems.values():
            if problem.param == THOUGHT:
                dialect = replace(dialect, room=self.directly.endpoint.thinking)
            else:
                dialect = dialect.after(problem, own[-1].added) or dialect
        return dialect

    def _told(self, folder: Folder) -> str:
        """What is waited for, and what is to be done."""
        here = (
            f"{self._waiting:,} question{'s wait' if self._waiting > 1 else ' waits'} for an answer"
        )
        failed = [
            list(each.values())[-1]
            for key, each in folder.failures.items()
            if each and key not in folder.answers
        ]
        again = (
            f"; {len(failed):,} came back without one ({clipped(str(failed[-1]), 80)})"
            if failed
            else ""
        )
        lost = f"; {folder.unread:,} lines of results cannot be read" if folder.unread else ""
        new = self._written
        files = f" {new[0]}{f' to {new[-1]}' * (len(new) > 1)} in" if new else ""
        if self._submit:
            todo = "run the same command later"
        elif new:
            each = "batches" if len(new) > 1 else "a batch"
            todo = (
                f"submit{files} {folder.path} as {each}, put the results there, and run the "
                "same command"
            )
        else:
            todo = f"put the results into {folder.path}, and run the same command"
        return f"{here}{again}{lost}; {todo}"
