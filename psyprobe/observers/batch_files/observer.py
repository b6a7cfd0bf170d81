"""An observer that asks by batches of OpenAI's form: it writes requests and reads results."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

from psyprobe.errors import InputError, UnfinishedError, clipped
from psyprobe.files.json_types import JsonMapping
from psyprobe.files.output import make_folder
from psyprobe.observers.batch_files.folder import (
    THINKING,
    Folder,
    RequestWriter,
    answer_at,
    read_folder,
)
from psyprobe.observers.batch_files.submitting import fetch, submit
from psyprobe.observers.chat.openai_chat import OpenAIObserver
from psyprobe.observers.chat.openai_protocol import (
    Dialect,
    ProblemError,
    with_substitutions,
)
from psyprobe.observers.chat.openai_sending import request_body
from psyprobe.observers.chat.prices import Budget, Price, priced
from psyprobe.observers.chat.protocol import Answer, Answering, Inquiry


class BatchObserver(Answering):
    """A model behind OpenAI's protocol that is asked in files, and answers by files of results.

    Parameters
    ----------
    observer : OpenAIObserver
        The observer that asks directly; both have one card, so that answers are the same in a
        store.
    folder : str or Path
        Folder of requests and results; made by a run if it does not exist.
    submit : bool
        Whether files are sent to the server, and results fetched from it, over its ``/files`` and
        ``/batches``.
    probe : bool
        Whether the first question is put to the server directly, to learn what it refuses before
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
        self._folder: Folder | None = None
        #: The dialect that the server takes, if it was asked.
        self._dialect: Dialect | None = None
        self._written: list[str] = []
        self._waiting = 0

    @property
    def price(self) -> Price | None:
        """The price of questions in a batch."""
        price = self.directly.price
        return None if price is None else price.in_batch()

    @price.setter
    def price(self, price: Price | None) -> None:
        self.directly.price = price

    def served(self, certain: bool) -> dict[str, str]:
        """Return what the first result says of the model that answered; nothing before it."""
        folder = self._read_folder()
        for key, line in folder.answers.items():
            if folder.last_file(key).model == self.model and (
                answer := answer_at(line)
            ):
                return answer.named
        return {}

    def put(
        self, answer: Any, observers: JsonMapping, agenda: Iterable[Any]
    ) -> Iterator[Any]:
        """Answer batches of questions from result files, and ask those whose results are not due.

        Raises
        ------
        UnfinishedError
            Some are not answered yet.
        """
        make_folder(self._path)
        if self._submit:
            fetch(self._read_folder(), self.directly)
        folder = self._read_folder()
        self._folder = folder
        self._waiting = 0
        self._written = []

        def unanswered_batches() -> Iterator[Any]:
            for batch in agenda:
                questions = tuple(
                    question
                    for question in batch.questions
                    if not folder.pending(question.key)
                )
                self._waiting += len(batch.questions) - len(questions)
                if questions:
                    yield replace(batch, questions=questions)

        yield from answer(observers, unanswered_batches())
        if self._submit:
            submit(folder, self.directly)
        if self._waiting:
            raise UnfinishedError(self._describe_waiting(folder))

    def answers(self, inquiries: Iterable[Inquiry]) -> Iterator[tuple[Inquiry, Answer]]:
        """Iterate over the answers in result files, and write other questions to request files.

        Raises
        ------
        InputError
            The questions are not those of a run.
        """
        folder = self._folder
        if folder is None:
            raise InputError(
                f"{self.card.name} is asked in batches, by psyprobe.run alone; leave the batch "
                "folder out"
            )
        writer = RequestWriter(folder, self.model, self._choose_dialect(folder))
        try:
            for inquiry in inquiries:
                stored = self._stored_answer(folder, inquiry)
                if stored is None and self._probe and self._dialect is None:
                    ((_, stored),) = self.directly.answers([inquiry])
                    self._dialect = self.directly.sending().dialect
                    writer.dialect = self._dialect
                if stored is not None:
                    yield inquiry, stored
                    continue
                question = self.directly.question(self.directly.checked(inquiry))
                body = request_body(self.directly.endpoint, question, writer.dialect)
                writer.add(inquiry, body)
                self._waiting += 1
            writer.finish()
            self._written += writer.files
        finally:
            writer.close()

    def _reply(self, inquiry: Inquiry) -> NoReturn:
        """Refuse a single question: batch files take none."""
        raise InputError(
            f"{self.card.name} is asked in batches; leave the batch folder out to ask a single "
            "question"
        )

    def _read_folder(self) -> Folder:
        """Read the folder of request and result files."""
        return read_folder(self._path, self.directly.endpoint.thinking)

    def _stored_answer(self, folder: Folder, inquiry: Inquiry) -> Answer | None:
        """Read the answer to a question from the results, with its cost; None without one."""
        line = folder.answers.get(inquiry.key)
        if line is None:
            return self._stored_refusal(folder, inquiry)
        answer = answer_at(line)
        if answer is None:
            return None
        dialect = folder.last_file(inquiry.key).dialect
        return priced(with_substitutions(answer, inquiry, dialect), self.price, inquiry)

    def _stored_refusal(self, folder: Folder, inquiry: Inquiry) -> Answer | None:
        """Read a server's refusal of a question from the results; None if asking again may help."""
        failures = folder.failures.get(inquiry.key)
        if not (failures and folder.answers):
            return None
        problem = list(failures.values())[-1]
        file = folder.last_file(inquiry.key)
        is_final = file.dialect.after(problem, file.added) is None
        return problem.as_answer() if problem.is_refusal and is_final else None

    def _choose_dialect(self, folder: Folder) -> Dialect:
        """Choose request fields that avoid what the server refused in the last file."""
        if self._dialect is not None:
            return self._dialect
        files = reversed(folder.request_files.values())
        last_file = next((file for file in files if file.model == self.model), None)
        if last_file is None:
            return Dialect()
        problems: dict[tuple[str, str], ProblemError] = {}
        for key, problem in _last_problems(folder).items():
            file = folder.last_file(key)
            if file.model == self.model and file.dialect == last_file.dialect:
                problems.setdefault((str(problem), problem.param), problem)
        dialect = last_file.dialect
        for problem in problems.values():
            if problem.param == THINKING:
                dialect = replace(dialect, room=self.directly.endpoint.thinking)
            else:
                dialect = dialect.after(problem, last_file.added) or dialect
        return dialect

    def _describe_waiting(self, folder: Folder) -> str:
        """Describe how many questions wait, and what the user does next."""
        plural = "s wait" if self._waiting > 1 else " waits"
        text = f"{self._waiting:,} question{plural} for an answer"
        problems = list(_last_problems(folder).values())
        if problems:
            text += f"; {len(problems):,} came back without one ({clipped(str(problems[-1]), 80)})"
        if folder.unread:
            text += f"; {folder.unread:,} lines of results cannot be read"
        names = self._written
        if self._submit:
            return f"{text}; run the same command later"
        if not names:
            return (
                f"{text}; put the results into {folder.path}, and run the same command"
            )
        range_of_files = names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}"
        kind = "a batch" if len(names) == 1 else "batches"
        return (
            f"{text}; submit {range_of_files} in {folder.path} as {kind}, put the results there, "
            "and run the same command"
        )


def _last_problems(folder: Folder) -> dict[str, ProblemError]:
    """Find the last failure of each question without an answer, by its id."""
    return {
        key: list(failures.values())[-1]
        for key, failures in folder.failures.items()
        if failures and key not in folder.answers
    }
