"""A person as an observer: each question goes to the page in front of them, one after the other.

Person, sitting and screen are on the card, so that nobody's answers are taken for another's, nor one sitting's for
another. An attempt that dropped frames or was interrupted is an answer of its own, given up, and the same pattern is
asked again as another attempt.
"""

from __future__ import annotations

import hashlib
import math
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from psyprobe.errors import InputError, PsyprobeError
from psyprobe.observers.chat.answering import Answer, Answering, Inquiry
from psyprobe.observers.people.calibration import number_of
from psyprobe.observers.people.screen import Screen
from psyprobe.observers.registry import Card

#: Of a person: letters, digits, dash and underscore, so that it is no name of somebody else's file or address.
_PSEUDONYM = re.compile(r"[A-Za-z0-9_-]{1,40}", re.ASCII)
#: Frames that one showing may lose and still count, marked; with more it is shown again.
MOST_DROPPED = 2
#: Why the page gives an attempt up.
VOID = ("frames", "hidden", "resized", "too early", "too late", "paused")
#: How the answer of such an attempt ends.
GIVEN_UP = "given up"
#: Of so many patterns that anybody sees, so many wrong answers make the page ask whether to go on.
_LAST_CLEAR, _WRONG_CLEAR = 5, 2
#: What the page tells of an attempt: name to lowest and highest value.
_TOLD = {
    "reaction_ms": (0.0, 600_000.0),
    "frames_shown": (0.0, 100_000.0),
    "frames_dropped": (0.0, 100_000.0),
    "period_ms": (0.5, 1000.0),
}


class PersonObserver(Answering):
    """Somebody at a screen, in one sitting.

    Parameters
    ----------
    person : str
        A pseudonym.
    session : str
        Of the sitting; another one for each.
    screen : Screen
        As it was calibrated for the sitting.
    put : callable
        Shows an inquiry and waits for its answer; see `Sitting.put`.

    Raises
    ------
    InputError
        The pseudonym is none.
    """

    images_at_once = 1

    def __init__(self, person: str, session: str, screen: Screen, put: Callable[[Inquiry], Answer]) -> None:
        self.screen, self._put = screen, put
        options = {"person": checked_person(person), "session": session, "screen": screen.to_dict()}
        self.card = Card(f"person:{person}", "answer", weights="a person", options=options)

    @classmethod
    def again(cls, card: Mapping[str, Any], put: Callable[[Inquiry], Answer]) -> PersonObserver:
        """The person of a card, to go on with the sitting."""
        options = card["options"]
        return cls(options["person"], options["session"], Screen.from_dict(options["screen"]), put)

    def answers(self, inquiries: Iterable[Inquiry]) -> Iterator[tuple[Inquiry, Answer]]:
        """One question after the other, as a person takes them."""
        for inquiry in inquiries:
            yield inquiry, self._reply(inquiry)

    def _reply(self, inquiry: Inquiry) -> Answer:
        if inquiry.drawing is None:
            raise InputError(
                f"{self.card.name} looks at a page that draws patterns by itself, and this is an image; "
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
        raise InputError(f"person is {person!r:.60}; give a pseudonym of up to 40 letters, digits, - and _")
    return person


class Sitting:
    """What goes between the questions of a run, in one thread, and a page that shows them, in others.

    Parameters
    ----------
    screen : Screen
        Of the sitting.
    session : str
        Of the sitting.
    first : int
        Number of the first question: 1, or more where a sitting goes on.
    total : int, optional
        Questions in all, where the design knows.
    beginning : mapping
        Kept with the first answer: consent and practice.
    right : callable, optional
        The right answer to a pattern that anybody sees; None for any other.
    """

    def __init__(
        self,
        screen: Screen,
        session: str,
        first: int = 1,
        total: int | None = None,
        beginning: Mapping[str, Any] = {},
        right: Callable[[Mapping[str, Any]], str | None] = lambda _: None,
    ) -> None:
        self.screen, self.session, self.total = screen, session, total
        self._beginning, self._right = beginning, right
        #: Of patterns that anybody sees: whether they were; and whether the page still has to ask because of them.
        self._clear: list[bool] = []
        self._doubt = False
        self._changed = threading.Condition()
        self._number, self._attempt = first - 1, 1
        self._inquiry: Inquiry | None = None
        #: Whether the next question is another attempt at the last.
        self._again = False
        self._answer: Answer | None = None
        self._end: dict[str, Any] | None = None
        self._uniforms = screen.uniforms()

    # -- the run's side ----------------------------------------------------------------------------------------------

    def put(self, inquiry: Inquiry) -> Answer:
        """Show a question, and wait for its answer; to be asked the next one, all before it must be in the store.

        Raises
        ------
        PsyprobeError
            The sitting ended meanwhile.
        """
        with self._changed:
            self._show(inquiry)
            self._changed.wait_for(lambda: self._answer is not None or self._end is not None)
            if self._answer is None:
                raise PsyprobeError("the sitting is paused; the same command goes on with it")
            return self._answer

    def end(self, phase: str, **told: Any) -> None:
        """Nothing more is asked: it is "done", "paused" or "failed"."""
        with self._changed:
            if self._end is None:
                self._end = {"phase": phase, **told}
                self._changed.notify_all()

    # -- the page's side ---------------------------------------------------------------------------------------------

    def state(self, seconds: float = 0.0) -> dict[str, Any]:
        """What the page shows now; waits so long for a question or the end."""
        with self._changed:
            self._changed.wait_for(self._something, seconds)
            if self._end is not None:
                return self._end
            if self._inquiry is None or self._answer is not None:
                return {"phase": "wait"}
            return {"phase": "trial", **self._trial(self._inquiry)}

    def answer(self, values: Mapping[str, Any]) -> None:
        """Take what the page says of an attempt; what comes twice, or late, changes nothing.

        Raises
        ------
        InputError
            It is no answer to what was asked.
        """
        with self._changed:
            inquiry = self._inquiry
            if inquiry is None or (values.get("number"), values.get("attempt")) != (self._number, self._attempt):
                return
            if self._answer is not None or self._end is not None:
                return
            told: dict[str, Any] = {name: number_of(values, name, *limits) for name, limits in _TOLD.items()}
            told |= {"attempt": self._attempt, "dither_seed": self._seed(inquiry)}
            choice, why = values.get("choice"), values.get("why")
            if choice is None or told["frames_dropped"] > MOST_DROPPED:
                if choice is None and why not in VOID:
                    raise InputError(f"attempt {self._attempt} has no answer because of {why!r:.40}; give a reason")
                told["why"] = why if choice is None else "frames"
                self._answer, self._again = self._answered("", told, "", finish=GIVEN_UP), True
            elif choice not in inquiry.words:
                raise InputError(f"the answer is {choice!r:.40}; give {' or '.join(inquiry.words)}")
            else:
                told |= self._attention(inquiry, str(choice))
                self._answer = self._answered(str(choice), told, str(values.get("key", ""))[:40])
            self._changed.notify_all()

    def _show(self, inquiry: Inquiry) -> None:
        self._number += not self._again
        self._attempt = int((inquiry.drawing or {}).get("attempt", 1))
        self._inquiry, self._answer, self._again = inquiry, None, False
        self._changed.notify_all()

    def _something(self) -> bool:
        return self._end is not None or (self._inquiry is not None and self._answer is None)

    @property
    def inattentive(self) -> bool:
        """Whether too many of the last patterns that anybody sees were answered wrongly."""
        return self._clear[-_LAST_CLEAR:].count(False) >= _WRONG_CLEAR

    def _attention(self, inquiry: Inquiry, choice: str) -> dict[str, Any]:
        """Of a pattern that anybody sees, whether it was seen, for its row of the store."""
        right = self._right(_pattern(inquiry))
        if right is None:
            return {}
        self._clear.append(choice == right)
        self._doubt = choice != right and self.inattentive
        return {"clear_right": choice == right}

    def _answered(self, choice: str, told: Mapping[str, Any], key: str, finish: str = "stop") -> Answer:
        sitting = {
            "session": self.session,
            "number": self._number,
            **told,
            "key": key,
            "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
            **({"beginning": self._beginning} if (self._number, self._attempt) == (1, 1) else {}),
        }
        seconds = told["reaction_ms"] / 1000
        return Answer(choice, finish=finish, latency=seconds, attempts=self._attempt, model="a person", sitting=sitting)

    def _trial(self, inquiry: Inquiry) -> dict[str, Any]:
        doubt, self._doubt = self._doubt, False
        return {
            "doubt": doubt,
            "number": self._number,
            "attempt": self._attempt,
            "total": self.total,
            "prompt": inquiry.prompt,
            "words": list(inquiry.words),
            "draw": {**drawing_of(_pattern(inquiry), self._uniforms, self.screen), "seed": self._seed(inquiry)},
        }

    def _seed(self, inquiry: Inquiry) -> int:
        """Of the dither: another one in each attempt, which the key tells again."""
        text = f"{self.session} {inquiry.key}"
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")


def _pattern(inquiry: Inquiry) -> Mapping[str, Any]:
    """The one pattern that is shown, as its specification."""
    assert inquiry.drawing is not None
    (stimulus,) = inquiry.drawing["stimuli"]
    return dict(stimulus)


def drawing_of(stimulus: Mapping[str, Any], uniforms: Mapping[str, Any], screen: Screen) -> dict[str, Any]:
    """What the page's shader takes of a Gabor's specification, in device pixels and radians."""
    values = stimulus.get("parameters", stimulus)
    size, ppd = values["size"], float(values["ppd"])
    return {
        **uniforms,
        "side": int(size[0] if isinstance(size, list | tuple) else size),
        "mean": float(values["luminance"]),
        "contrast": float(values.get("contrast", 0.0)),
        "cycles": float(values.get("frequency", 0.0)) / ppd,
        "sigma": float(values.get("radius", 1.0)) * ppd,
        "orientation": math.radians(float(values.get("orientation", 0.0))),
        "phase": math.radians(float(values.get("phase", 0.0))),
        "dither": screen.dither,
    }
