"""A person as an observer: each question goes to the page in front of them, one after the other.

Person, session and screen are on the card, so that nobody's answers are taken for another's, nor
one session's for another. An attempt that dropped frames or was interrupted is an answer of its
own, given up, and the same question is asked again as another attempt. What is shown, patterns or
pictures, is a `Showing`.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol

from psyprobe.errors import InputError, PsyprobeError
from psyprobe.observers.chat.protocol import GIVEN_UP, Answer, Answering, Inquiry
from psyprobe.observers.human_screen import Screen
from psyprobe.observers.protocol import Card

#: Of a person: letters, digits, dash and underscore, so that it is no name of somebody else's file
#: or address.
_PSEUDONYM = re.compile(r"[A-Za-z0-9_-]{1,40}", re.ASCII)


class PersonObserver(Answering):
    """Somebody at a screen, in one session.

    Parameters
    ----------
    person : str
        A pseudonym.
    session : str
        Of the session; another one for each.
    screen : Screen or None
        As it was calibrated for the session; None of who looks at pictures, which need no
        calibration.
    put : callable
        Shows an inquiry and waits for its answer; see `Session.put`.

    Raises
    ------
    InputError
        The pseudonym is none.
    """

    #: None where nobody calibrated it.
    screen: Screen | None = None

    def __init__(
        self, person: str, session: str, screen: Screen | None, put: Callable[[Inquiry], Answer]
    ) -> None:
        self.screen = screen
        self._put = put
        options: dict[str, Any] = {"person": checked_person(person), "session": session}
        if screen is not None:
            self.images_at_once = 1
            options["screen"] = screen.to_dict()
        self.card = Card(f"person:{person}", "answer", weights="a person", options=options)

    def answers(self, inquiries: Iterable[Inquiry]) -> Iterator[tuple[Inquiry, Answer]]:
        """One question after the other, as a person takes them."""
        for inquiry in inquiries:
            yield inquiry, self._reply(inquiry)

    def _reply(self, inquiry: Inquiry) -> Answer:
        if inquiry.drawing is None and self.screen is not None:
            raise InputError(
                f"{self.card.name} looks at a page that draws patterns by itself, and this is "
                "an image; "
                "ask by psyprobe observe"
            )
        return self._put(inquiry)


def checked_person(person: str) -> str:
    """A pseudonym that can stand in a name.

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
    """What the page says of an attempt, once it is checked."""

    #: None of one that is given up.
    choice: str | None
    #: For its row of the store; of one that is given up "why" among it.
    told: Mapping[str, Any]


class Showing(Protocol):
    """What a session shows, and how it takes what the page says of it."""

    def shown(self, inquiry: Inquiry) -> Mapping[str, Any]:
        """What the page needs to show a question, as JSON can hold it."""

    def taken(self, inquiry: Inquiry, values: Mapping[str, Any]) -> Attempt:
        """What the page sent of an attempt, or an InputError."""


class Session:
    """What goes between the questions of a run, in one thread, and a page that shows them, in
    others.

    Parameters
    ----------
    showing : Showing
        Of the session.
    session : str
        Its own random name.
    first : int
        Number of the first question: 1, or more where a session goes on.
    total : int, optional
        Questions in all, where that is known.
    beginning : mapping
        Kept with the first answer: consent and practice.
    """

    def __init__(
        self,
        showing: Showing,
        session: str,
        first: int = 1,
        total: int | None = None,
        beginning: Mapping[str, Any] = {},
    ) -> None:
        self._showing = showing
        self.session = session
        self.total = total
        self._beginning = beginning
        self._changed = threading.Condition()
        self._number = first - 1
        self._attempt = 1
        self._inquiry: Inquiry | None = None
        self._shown: Mapping[str, Any] = {}
        #: Whether the next question is another attempt at the last.
        self._again = False
        self._answer: Answer | None = None
        self._end: dict[str, Any] | None = None

    # -- the run's side
    # ----------------------------------------------------------------------------------------------

    def put(self, inquiry: Inquiry) -> Answer:
        """Show a question, and wait for its answer; to be asked the next one, all before it must be
        in the store.

        Raises
        ------
        PsyprobeError
            The session ended meanwhile.
        """
        shown = self._showing.shown(inquiry)
        with self._changed:
            self._show(inquiry, shown)
            self._changed.wait_for(lambda: self._answer is not None or self._end is not None)
            if self._answer is None:
                raise PsyprobeError("the session is paused; the same command continues it")
            return self._answer

    def end(self, phase: str, **told: Any) -> None:
        """Nothing more is asked: it is "done", "paused" or "failed"."""
        with self._changed:
            if self._end is None:
                self._end = {"phase": phase, **told}
                self._changed.notify_all()

    # -- the page's side
    # ---------------------------------------------------------------------------------------------

    def state(self, seconds: float = 0.0) -> dict[str, Any]:
        """What the page shows now; waits so long for a question or the end."""
        with self._changed:
            self._changed.wait_for(self._something, seconds)
            if self._end is not None:
                return self._end
            if self._inquiry is None or self._answer is not None:
                return {"phase": "wait", "last": self._number == self.total and not self._again}
            place = {"number": self._number, "attempt": self._attempt, "total": self.total}
            return {"phase": "trial", **place, **self._shown}

    def answer(self, values: Mapping[str, Any]) -> None:
        """Take what the page says of an attempt; what comes twice, or late, changes nothing.

        Raises
        ------
        InputError
            It is no answer to what was asked.
        """
        with self._changed:
            inquiry = self._inquiry
            if inquiry is None or (values.get("number"), values.get("attempt")) != (
                self._number,
                self._attempt,
            ):
                return
            if self._answer is not None or self._end is not None:
                return
            attempt = self._showing.taken(inquiry, values)
            self._again = attempt.choice is None
            self._answer = self._answered(attempt, str(values.get("key", ""))[:40])
            self._changed.notify_all()

    def _show(self, inquiry: Inquiry, shown: Mapping[str, Any]) -> None:
        self._number += not self._again
        self._attempt = inquiry.attempt
        self._inquiry = inquiry
        self._shown = shown
        self._answer = None
        self._again = False
        self._changed.notify_all()

    def _something(self) -> bool:
        return self._end is not None or (self._inquiry is not None and self._answer is None)

    def _answered(self, attempt: Attempt, key: str) -> Answer:
        session = {
            "session": self.session,
            "number": self._number,
            "attempt": self._attempt,
            **attempt.told,
            "key": key,
            "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
            **({"beginning": self._beginning} if (self._number, self._attempt) == (1, 1) else {}),
        }
        return Answer(
            attempt.choice or "",
            finish=GIVEN_UP if attempt.choice is None else "stop",
            latency=attempt.told["reaction_ms"] / 1000,
            attempts=self._attempt,
            model="a person",
            session=session,
        )
