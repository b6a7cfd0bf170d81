"""Patterns as a session shows them: drawn by the page from what stands here, and counted frame by
frame.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping
from typing import Any

from psyprobe.errors import InputError
from psyprobe.observers.chat.protocol import Inquiry
from psyprobe.observers.human_screen import Screen
from psyprobe.observers.people.calibration import number_of
from psyprobe.observers.people.observer import Attempt

#: Frames that one showing may lose and still count, marked; with more it is shown again.
MOST_DROPPED = 2
#: Why the page gives an attempt up.
VOID = ("frames", "hidden", "resized", "too early", "too late", "paused")
#: Of so many patterns that anybody sees, so many wrong answers make the page ask whether to go on.
_LAST_CLEAR = 5
_WRONG_CLEAR = 2
#: What the page tells of an attempt: name to lowest and highest value.
_TOLD = {
    "reaction_ms": (0.0, 600_000.0),
    "frames_shown": (0.0, 100_000.0),
    "frames_dropped": (0.0, 100_000.0),
    "period_ms": (0.5, 1000.0),
}


class Patterns:
    """Shows one pattern after the other, and watches whether those that anybody sees are seen.

    Parameters
    ----------
    screen : Screen
        Of the session.
    session : str
        Of the session: the dither's seeds are its own.
    right : callable
        The right answer to a pattern that anybody sees; None for any other.
    """

    def __init__(
        self,
        screen: Screen,
        session: str,
        right: Callable[[Mapping[str, Any]], str | None] = lambda _: None,
    ) -> None:
        self._screen = screen
        self._session = session
        self._right = right
        self._uniforms = screen.uniforms()
        #: Of patterns that anybody sees: whether they were; and whether the page still has to ask
        #: because of them.
        self._clear: list[bool] = []
        self._doubt = False

    def shown(self, inquiry: Inquiry) -> dict[str, Any]:
        """As in `Showing`."""
        doubt = self._doubt
        self._doubt = False
        return {
            "doubt": doubt,
            "prompt": inquiry.prompt,
            "words": list(inquiry.words),
            "draw": {
                **drawing_of(_pattern(inquiry), self._uniforms, self._screen),
                "seed": self._seed(inquiry),
            },
        }

    def taken(self, inquiry: Inquiry, values: Mapping[str, Any]) -> Attempt:
        """As in `Showing`."""
        told: dict[str, Any] = {
            name: number_of(values, name, *limits) for name, limits in _TOLD.items()
        }
        told["dither_seed"] = self._seed(inquiry)
        choice = values.get("choice")
        if choice is None:
            return Attempt(None, {**told, "why": reason_of(values, VOID)})
        if told["frames_dropped"] > MOST_DROPPED:
            return Attempt(None, {**told, "why": "frames"})
        choice = word_of(values, inquiry)
        return Attempt(choice, {**told, **self._attention(inquiry, choice)})

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

    def _seed(self, inquiry: Inquiry) -> int:
        """Of the dither: another one in each attempt, which the key tells again."""
        text = f"{self._session} {inquiry.key}"
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")


def reason_of(values: Mapping[str, Any], known: tuple[str, ...]) -> str:
    """Why the page gave an attempt up."""
    why = values.get("why")
    if why not in known:
        raise InputError(
            f"attempt {values.get('attempt')!r:.20} has no answer because of {why!r:.40}; give "
            "a reason"
        )
    return str(why)


def word_of(values: Mapping[str, Any], inquiry: Inquiry) -> str:
    """The word that was chosen."""
    choice = values.get("choice")
    if choice not in inquiry.words:
        raise InputError(f"the answer is {choice!r:.40}; give {' or '.join(inquiry.words)}")
    return str(choice)


def _pattern(inquiry: Inquiry) -> Mapping[str, Any]:
    """The one pattern that is shown, as its specification."""
    assert inquiry.drawing is not None
    (stimulus,) = inquiry.drawing["stimuli"]
    return dict(stimulus)


def drawing_of(
    stimulus: Mapping[str, Any], uniforms: Mapping[str, Any], screen: Screen
) -> dict[str, Any]:
    """What the page's shader takes of a Gabor's specification, in device pixels and radians."""
    values = stimulus.get("parameters", stimulus)
    size = values["size"]
    ppd = float(values["ppd"])
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
