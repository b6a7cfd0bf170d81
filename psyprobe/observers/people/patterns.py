"""Present patterns: the page draws them from values made here, and counts their frames."""

from __future__ import annotations

import base64
import hashlib
import math
from collections.abc import Callable, Sequence

import numpy as np

from psyprobe.errors import InputError
from psyprobe.files.json_types import JsonMapping, JsonObject
from psyprobe.observers.chat.protocol import Inquiry
from psyprobe.observers.human_screen import Screen
from psyprobe.observers.people.calibration import read_number
from psyprobe.observers.people.observer import Attempt
from psyprobe.stimulus import specification_from_dict

#: Frames that an attempt may drop and still count; with more the question is asked again.
MAX_DROPPED = 2
#: Kinds that the page draws by itself: a uniform field is a Gabor without contrast.
_BY_FORMULA = ("gabor", "uniform")
#: Reasons for which the page gives an attempt up.
VOID = ("frames", "hidden", "resized", "too early", "too late", "paused")
#: With so many wrong answers among the last clear patterns, the page asks whether to go on.
_WRONG_CLEAR = 2
_LAST_CLEAR = 5
#: Kinds that are the noise about a pattern.
_NOISE_KINDS = ("white_noise", "coloured_noise", "band_noise")
#: Lowest and highest value of each number that the page reports of an attempt.
_REPORT_RANGES = {
    "reaction_ms": (0.0, 600_000.0),
    "frames_shown": (0.0, 100_000.0),
    "frames_dropped": (0.0, 100_000.0),
    "period_ms": (0.5, 1000.0),
}


class PatternPresenter:
    """Presents patterns, and watches whether clear ones are answered rightly.

    Parameters
    ----------
    screen : Screen
        The screen of the session.
    session : str
        The session's random name, from which the seeds of the dither are made.
    clear_answer : callable
        Gives the right answer to the patterns of a question where it is clear; None for any other.
    """

    def __init__(
        self,
        screen: Screen,
        session: str,
        clear_answer: Callable[[Sequence[JsonMapping]], str | None] = lambda _: None,
    ) -> None:
        self._screen = screen
        self._session = session
        self._clear_answer = clear_answer
        self._uniforms = screen.uniforms()
        #: Whether each clear pattern was answered rightly.
        self._clear_hits: list[bool] = []
        #: Whether the page has yet to ask whether to go on.
        self._doubt = False

    def present(self, inquiry: Inquiry) -> JsonObject:
        """Return what the page needs to draw a question's patterns, as JSON values."""
        doubt = self._doubt
        self._doubt = False
        return {
            "doubt": doubt,
            "prompt": inquiry.prompt,
            "words": list(inquiry.words),
            "draws": [
                {
                    **shader_values(stimulus, self._uniforms, self._screen),
                    "seed": self._seed(inquiry),
                }
                for stimulus in _stimuli(inquiry)
            ],
        }

    def read_attempt(self, inquiry: Inquiry, values: JsonMapping) -> Attempt:
        """Check the page's report of an attempt at a pattern."""
        record = {**read_timing(values), "dither_seed": self._seed(inquiry)}
        if values.get("choice") is None:
            record["why"] = read_reason(values, VOID)
            return Attempt(None, record)
        if record["frames_dropped"] > MAX_DROPPED:
            record["why"] = "frames"
            return Attempt(None, record)
        choice = read_word(values, inquiry)
        correct = self._clear_answer(_stimuli(inquiry))
        if correct is not None:
            record["clear_right"] = choice == correct
            self._clear_hits.append(choice == correct)
            self._doubt = choice != correct and self.inattentive
        return Attempt(choice, record)

    @property
    def inattentive(self) -> bool:
        """Tell whether too many of the last clear patterns were answered wrongly."""
        return self._clear_hits[-_LAST_CLEAR:].count(False) >= _WRONG_CLEAR

    def _seed(self, inquiry: Inquiry) -> int:
        """Derive the dither's seed of an attempt from its key, another each time."""
        text = f"{self._session} {inquiry.key}"
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")


def read_timing(values: JsonMapping) -> JsonObject:
    """Read an attempt's reaction time, frames and frame period from the page's report."""
    return {
        name: read_number(values, name, *limits)
        for name, limits in _REPORT_RANGES.items()
    }


def read_reason(values: JsonMapping, reasons: tuple[str, ...]) -> str:
    """Read the reason for which the page gave an attempt up, or refuse an unknown one."""
    reason = values.get("why")
    if reason not in reasons:
        raise InputError(
            f"attempt {values.get('attempt')!r:.20} has no answer because of {reason!r:.40}; give "
            "a reason"
        )
    return str(reason)


def read_word(values: JsonMapping, inquiry: Inquiry) -> str:
    """Read the answer word that was chosen, or refuse an unknown one."""
    choice = values.get("choice")
    if choice not in inquiry.words:
        raise InputError(
            f"the answer is {choice!r:.40}; give {' or '.join(inquiry.words)}"
        )
    return str(choice)


def _stimuli(inquiry: Inquiry) -> Sequence[JsonMapping]:
    """Return the specifications of what a question shows, one after the other."""
    assert inquiry.drawing is not None
    stimuli: Sequence[JsonMapping] = inquiry.drawing["stimuli"]
    return stimuli


def target_of(stimulus: JsonMapping) -> JsonMapping:
    """Return a pattern's description without its noise; noise alone has contrast 0.

    Examples
    --------
    >>> target_of({"kind": "white_noise", "contrast": 1.0, "luminance": 40.0})["contrast"]
    0.0
    """
    target = _parts(stimulus)[0]
    if target["kind"] in _NOISE_KINDS:
        return {**target, "contrast": 0.0}
    return target


def _parts(stimulus: JsonMapping) -> list[JsonMapping]:
    """Return the descriptions of a stimulus's parts, or of itself alone."""
    parts: list[JsonMapping] = stimulus.get("parts", [stimulus])
    return parts


def _pixel_values(stimulus: JsonMapping) -> JsonObject:
    """Encode the pixels of letters and noise, with the contrast of the largest."""
    parts = [part for part in _parts(stimulus) if part["kind"] not in _BY_FORMULA]
    if not parts:
        return {}
    pixels = sum(
        specification_from_dict(part).draw().luminance / part["luminance"] - 1
        for part in parts
    )
    scale = float(np.abs(pixels).max()) or 1.0
    # The page counts rows from below.
    steps = np.round(pixels[::-1] / scale * 32767).astype("<i2")
    return {
        "pixels": base64.b64encode(steps.tobytes()).decode(),
        "pixel_scale": scale,
    }


def shader_values(
    stimulus: JsonMapping, uniforms: JsonMapping, screen: Screen
) -> JsonObject:
    """Compute the shader's parameters of a stimulus, in device pixels and radians.

    A Gabor is drawn by its formula, letters and noise from their pixels.
    """
    values = target_of(stimulus)
    size = values["size"]
    ppd = float(values["ppd"])
    return {
        **uniforms,
        "side": int(size[0] if isinstance(size, list | tuple) else size),
        "mean": float(values["luminance"]),
        "contrast": float(values["contrast"]) if values["kind"] == "gabor" else 0.0,
        "cycles": float(values.get("frequency", 0.0)) / ppd,
        "sigma": float(values.get("radius", 1.0)) * ppd,
        "orientation": math.radians(float(values.get("orientation", 0.0))),
        "phase": math.radians(float(values.get("phase", 0.0))),
        "dither": screen.dither,
        **_pixel_values(stimulus),
    }
