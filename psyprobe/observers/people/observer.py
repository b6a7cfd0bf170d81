"""A person as an observer: each question goes to the page in front of them, one after the other.

Person, session and screen are on the card, so that answers of persons and sessions stay apart. An
attempt that dropped frames or was interrupted is an answer of its own, given up, and the same
question is asked again as another attempt. A `Presenter` shows the patterns or pictures.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol

from psyprobe.errors import InputError, PsyprobeError
from psyprobe.files.json_types import JsonMapping, JsonObject
from psyprobe.observers.chat.protocol import GIVEN_UP, Answer, Answering, Inquiry
from psyprobe.observers.human_screen import Screen
from psyprobe.observers.protocol import Card

#: A person's pseudonym: letters, digits, dash and underscore, so that it can be no path or address.
_PSEUDONYM = re.compile(r"[A-Za-z0-9_-]{1,40}", re.ASCII)


def refuse_questions(_: Inquiry) -> Answer:
    """Refuse any question, while an experiment is only checked."""
    raise PsyprobeError("nobody is asked while an experiment is checked")


class PersonObserver(Answering):
    """A person at a screen, in one session.

    Parameters
    ----------
    person : str
        A pseudonym.
    session : str
        The session's random name.
    screen : Screen or None
        The screen, calibrated for the session; None for pictures, which need no calibration.
    ask : callable
        Shows an inquiry and waits for its answer; see `QuestionExchange.put`. By default nobody is
        asked.

    Raises
    ------
    InputError
        The pseudonym has other characters than letters, digits, dash and underscore.
    """

    #: None where it was not calibrated.
    screen: Screen | None = None

    def __init__(
        self,
        person: str,
        session: str,
        screen: Screen | None = None,
        ask: Callable[[Inquiry], Answer] = refuse_questions,
    ) -> None:
        self.screen = screen
        self._ask = ask
        options: JsonObject = {"person": checked_person(person), "session": session}
        if screen is not None:
            options["screen"] = screen.to_dict()
        self.card = Card(
            f"person:{person}", "answer", weights="a person", options=options
        )

    def answers(self, inquiries: Iterable[Inquiry]) -> Iterator[tuple[Inquiry, Answer]]:
        """Ask a person one question after the other, and iterate over the answers."""
        for inquiry in inquiries:
            if inquiry.drawing is None and self.screen is not None:
                raise InputError(
                    f"{self.card.name} looks at a page that draws patterns by itself, and this is "
                    "an image; ask by psyprobe observe"
                )
            yield inquiry, self._ask(inquiry)


def checked_person(person: str) -> str:
    """Check a person's pseudonym, which becomes part of names, and return it.

    Examples
    --------
    >>> checked_person("ANNA")
    'ANNA'
    """
    if not _PSEUDONYM.fullmatch(person):
        raise InputError(
            f"person is {person!r:.60}; give a pseudonym of up to 40 letters, digits, - and _"
        )
    return person


@dataclass(frozen=True)
class Attempt:
    """An attempt at a question as the page reported it, checked."""

    #: The response; None if the attempt was given up.
    choice: str | None
    #: Reaction time, frames and the like for the store; with "why" if the attempt was given up.
    record: JsonMapping


class Presenter(Protocol):
    """Tells a page what to show, and checks what the page reports."""

    def present(self, inquiry: Inquiry) -> JsonMapping:
        """Return what the page needs to show a question, as JSON values."""

    def read_attempt(self, inquiry: Inquiry, values: JsonMapping) -> Attempt:
        """Check what the page reported of an attempt to answer, refusing a wrong report."""


class QuestionExchange:
    """Passes questions of a run, in one thread, to a page, in others, and answers back.

    Parameters
    ----------
    presenter : Presenter
        What shows the questions.
    session : str
        The session's random name.
    count_answered : callable, optional
        Counts the questions of the session that were answered before the first one here, when that
        is put: the session may go on, or another process may have it until then.
    total : int, optional
        Number of questions, where it is known.
    beginning : mapping, optional
        Consent and practice, stored with the first answer.
    """

    def __init__(
        self,
        presenter: Presenter,
        session: str,
        count_answered: Callable[[], int] = lambda: 0,
        total: int | None = None,
        beginning: JsonMapping | None = None,
    ) -> None:
        self._presenter = presenter
        self.session = session
        self.total = total
        self._beginning = beginning or {}
        self._changed = threading.Condition()
        self._count_answered = count_answered
        #: Number of the question, from 1; 0 before the first is put.
        self._number = 0
        self._attempt = 1
        self._inquiry: Inquiry | None = None
        self._display_fields: JsonMapping = {}
        #: Whether the next question is another attempt at the same.
        self._is_retry = False
        self._answer: Answer | None = None
        self._end: JsonObject | None = None

    # Methods for the thread of the run.

    def put(self, inquiry: Inquiry) -> Answer:
        """Show a question to the person, and wait for the answer.

        Raises
        ------
        PsyprobeError
            The session ended meanwhile.
        """
        display_fields = self._presenter.present(inquiry)
        if not self._number:
            self._number = self._count_answered()
        with self._changed:
            self._number += not self._is_retry
            self._attempt = inquiry.attempt
            self._inquiry = inquiry
            self._display_fields = display_fields
            self._answer = None
            self._is_retry = False
            self._changed.notify_all()
            outcome = self._changed.wait_for(lambda: self._answer or self._end)
            if not isinstance(outcome, Answer):
                raise PsyprobeError(
                    "the session is paused; the same command continues it"
                )
            return outcome

    def end(self, phase: str, **details: Any) -> None:
        """End the exchange with the page as "done", "paused" or "failed"."""
        with self._changed:
            if self._end is None:
                self._end = {"phase": phase, **details}
                self._changed.notify_all()

    # Methods for the threads of the page.

    def state(self, seconds: float = 0.0) -> JsonObject:
        """Wait some seconds for a question or the end, and return what the page shows."""
        with self._changed:
            self._changed.wait_for(
                lambda: self._end or (self._inquiry and not self._answer), seconds
            )
            if self._end is not None:
                return self._end
            if self._inquiry is None or self._answer is not None:
                return {
                    "phase": "wait",
                    "last": self._number == self.total and not self._is_retry,
                }
            return {
                "phase": "trial",
                "number": self._number,
                "attempt": self._attempt,
                "total": self.total,
                **self._display_fields,
            }

    def answer(self, values: JsonMapping) -> None:
        """Take the page's report of an attempt, ignoring a repeated or late one.

        Raises
        ------
        InputError
            It is no answer to the question.
        """
        with self._changed:
            inquiry = self._inquiry
            if inquiry is None or self._answer is not None or self._end is not None:
                return
            if (
                values.get("number") != self._number
                or values.get("attempt") != self._attempt
            ):
                return
            attempt = self._presenter.read_attempt(inquiry, values)
            self._is_retry = attempt.choice is None
            self._answer = self._make_answer(attempt, str(values.get("key", ""))[:40])
            self._changed.notify_all()

    def _make_answer(self, attempt: Attempt, key: str) -> Answer:
        """Build the answer of a person's key press, with its reaction time and trial record."""
        session = {
            "session": self.session,
            "number": self._number,
            "attempt": self._attempt,
            **attempt.record,
            "key": key,
            "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
        }
        if self._number == self._attempt == 1:
            session["beginning"] = self._beginning
        return Answer(
            attempt.choice or "",
            finish=GIVEN_UP if attempt.choice is None else "stop",
            latency=attempt.record["reaction_ms"] / 1000,
            attempts=self._attempt,
            model="a person",
            session=session,
        )
