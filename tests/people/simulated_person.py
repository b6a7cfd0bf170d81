"""A person by parameters: sees the drawing of each trial as numbers, and answers over HTTP as the
page does."""

from __future__ import annotations

import json
import math
import urllib.error
import urllib.request
import uuid
from collections.abc import Callable
from typing import Any

import numpy as np

from psyprobe.human import castle_csf

SCREEN = {
    "cards": [323.0, 323.5],
    "distance": 1000,
    "distance_method": "tape",
    "light": "value",
    "peak": 200,
    "device_pixel_ratio": 1,
    "width": 1920,
    "height": 1080,
    "period": 16.7,
}
FREQUENCIES = np.array([0.5, 1, 2, 4, 8, 16])


def true_sensitivity(seed: int) -> Callable[[float], float]:
    """log10 sensitivity over frequency: castleCSF at 40 cd/m², higher or lower and tilted by what
    the seed says."""
    rng = np.random.default_rng(seed)
    shift, tilt = rng.normal(0, 0.15), rng.normal(0, 0.1)
    scatter = rng.normal(0, 0.05, FREQUENCIES.size)
    logs = np.log10(FREQUENCIES)
    base = np.log10(
        castle_csf(
            FREQUENCIES, luminance=40.0, area=math.pi / 4, direction="achromatic"
        )
    )
    curve = base + shift + tilt * (logs - logs.mean()) + scatter
    return lambda frequency: float(np.interp(math.log10(frequency), logs, curve))


class SimulatedPerson:
    """Talks to the server of one address.

    Parameters
    ----------
    address : str
        With the token.
    seed : int
        Of its eyes and of all that is random in it.
    """

    def __init__(
        self,
        address: str,
        seed: int = 0,
        *,
        lapse: float = 0.02,
        drops: float = 0.0,
        criterion: float = 0.1,
    ) -> None:
        self.address, self.page = address, uuid.uuid4().hex
        self.truth, self._lapse, self._drops = true_sensitivity(seed), lapse, drops
        #: How often it says yes where it sees nothing.
        self._criterion = criterion
        self._rng = np.random.default_rng([seed, 1])

    def send(self, path: str, **values: Any) -> dict[str, Any]:
        body = json.dumps({"page": self.page, **values}).encode()
        request = urllib.request.Request(
            self.address + path, body, {"Content-Type": "application/json"}
        )
        try:
            with urllib.request.urlopen(request, timeout=60) as reply:
                return dict(json.load(reply))
        except urllib.error.HTTPError as error:
            return {"status": error.code, **json.load(error)}

    def begin(self, **changes: Any) -> dict[str, Any]:
        """Calibrate, unless the session goes on, and begin; the first trial."""
        facts = self.send("open")
        assert "status" not in facts, facts
        if facts["state"] is not None:
            return self.send("state")
        if facts["resumed"] is None:
            reply = self.send("calibrate", **{**SCREEN, **changes})
            assert "practice" in reply, reply
        return self.send("begin", consent=True, practice=[], browser="none")

    def account_of_frames(self, state: dict[str, Any]) -> dict[str, Any]:
        """Return the fields that the page posts with any answer."""
        return {
            "number": state["number"],
            "attempt": state["attempt"],
            "frames_shown": 30,
            "frames_dropped": 0,
            "period_ms": 16.7,
            "reaction_ms": 400,
        }

    def account(self, state: dict[str, Any]) -> dict[str, Any]:
        """Return the answer to a trial as the page would post it."""
        draw = state["draws"][0]
        account = self.account_of_frames(state)
        if self._rng.random() < self._drops:
            return {
                **account,
                "choice": state["words"][0],
                "frames_dropped": 5,
            }
        ppd = 1 / (2 * math.degrees(math.atan(85.6 / 323.25 / 2000)))
        strength = math.log10(max(draw["contrast"], 1e-9)) + self.truth(
            max(draw["cycles"] * ppd, 0.5)
        )
        is_seen = self._rng.random() < (1 - self._lapse) / (
            1 + math.exp(-2 * math.log(19) * strength / 0.5)
        )
        if state["words"][0] == "yes":
            place = 0 if is_seen or self._rng.random() < self._criterion else 1
        else:
            right = (0, 90, 135, 45).index(round(math.degrees(draw["orientation"])))
            place = right if is_seen else int(self._rng.integers(len(state["words"])))
        return {
            **account,
            "choice": state["words"][place],
            "key": "f",
        }

    def sit(self, state: dict[str, Any], trials: int = 10_000) -> dict[str, Any]:
        """Answer trials until the end, or so many."""
        for _ in range(trials):
            while state.get("phase") == "wait":
                state = self.send("state")
            if state.get("phase") != "trial":
                break
            state = self.send("answer", **self.account(state))
        return state
