"""A person by pixels: goes through the page in a browser, sees what stands in its canvas, and
presses its keys."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
from simulated_person import FREQUENCIES, true_sensitivity
from webdriver import Browser

import psyprobe as pp
from psyprobe.experiment import load_experiment
from psyprobe.running.store import open_store
from psyprobe.tasks.people.patterns import PatternSession

EYES = Path(__file__).with_name("eyes.js").read_text(encoding="utf-8")
STEP = "document.body.dataset.step"
CARD = 323.0
#: Words that one reads in a minute, and seconds that a step takes besides: a card held, a tape
#: stretched, switches.
_WORDS = 200
_ACTS = {"measure": 15, "distance": 30, "blind": 8, "luminance": 30, "gamma": 10}


def visit(folder: Path, probe: str = "orientation", **settings: Any) -> PatternSession:
    """Serve a session of ANNA that answers into the store of a folder."""
    prompts = "base" if probe == "yes_no" else probe
    page_settings = {"probe": probe, "asking.prompts": prompts, **settings}
    return PatternSession(
        load_experiment("orientation_csf").with_settings(page_settings),
        "ANNA",
        folder / "runs.sqlite",
    )


def sessions(folder: Path) -> list[dict[str, Any]]:
    """Return the session record of each answer, in the order of trials and attempts."""
    with open_store(folder / "runs.sqlite", create=False) as opened:
        replies = [
            answered.answer["reply"]["session"] for answered, _ in opened.all_answers()
        ]
    return sorted(replies, key=lambda session: (session["number"], session["attempt"]))


class PersonAtPage:
    """Sits before one window.

    Parameters
    ----------
    browser : Browser
        The window.
    seed : int
        Of its eyes and of all that is random in it.
    display : Display, optional
        What the screen is; 200 cd/m² and sRGB without.
    distance : float
        Of the eyes, mm.
    **changes
        Of the eyes, as ``eyes.js`` takes them.
    """

    def __init__(
        self,
        browser: Browser,
        seed: int = 0,
        display: pp.Display | None = None,
        distance: float = 1000.0,
        **changes: Any,
    ) -> None:
        self.browser, self.truth, self.distance = (
            browser,
            true_sensitivity(seed),
            distance,
        )
        codes = np.repeat(np.arange(256.0)[None, :, None] / 255, 3, axis=-1)
        self.light = np.asarray((display or pp.Display(peak=200)).decode(codes))[
            0, :, 0
        ]
        #: By the person's own clock, of what the frames do not count: reading and acting.
        self.seconds = 0.0
        self.eyes = {
            "seed": seed,
            "light": self.light.tolist(),
            "ppd": 1 / (2 * np.degrees(np.arctan(85.6 / CARD / (2 * distance)))),
            "sigma": 0.5,
            "frequencies": FREQUENCIES.tolist(),
            "log10_sensitivity": [self.truth(frequency) for frequency in FREQUENCIES],
            "orientations": [0, 90],
            "keys": ["f", "j"],
            "width": 0.5,
            "lapse": 0.02,
            "answer_ms": 1200,
            "frame_ms": 33,
            **changes,
        }

    def click(self, name: str) -> None:
        self.browser.run(f"document.getElementById('{name}').click()")

    def enter(self, name: str, value: Any) -> None:
        """Enter a value into a field, as by hand."""
        self.browser.run(
            f"(() => {{ const it = document.getElementById('{name}'); it.value = "
            f"{json.dumps(value)}; "
            "it.dispatchEvent(new Event('input')); return 1; })()"
        )

    def reach(self, step: str) -> None:
        """Wait for a step of the set-up, and read it."""
        self.browser.wait(STEP, step)
        words = self.browser.run(
            f"document.getElementById('{step}').innerText.split(/\\s+/).length"
        )
        self.seconds += 60 * words / _WORDS + _ACTS.get(step, 0)

    def arrive(self, address: str) -> None:
        """Open the page and agree."""
        self.browser.open(address)
        self.browser.run(f"({EYES})({json.dumps(self.eyes)})")
        self.reach("consent")
        self.click("agree")
        self.click("agreed")

    def fit_cards(self) -> None:
        for number in (1, 2):
            self.browser.wait(
                "document.getElementById('turn').textContent", f"Fit {number} of 2."
            )
            self.reach("measure")
            self.enter("width", CARD)
            self.click("fitted")

    def match_brightness(self) -> None:
        """Set each square to the drive whose light on this screen is nearest to that of the stripes
        beside it."""
        for number in range(1, 13):
            self.browser.wait(
                "document.getElementById('turnOfMatch').textContent",
                f"Match {number} of 12.",
            )
            self.seconds += _ACTS["gamma"]
            share = self.browser.run(
                "(() => { const c = document.getElementById('stripes'), n = c.width >> 3, "
                "d = c.getContext('2d').getImageData(0, 0, n, n).data; let s = 0; "
                "for (let i = 0; i < d.length; i += 4) s += d[i] === 255; return s / (n * n); })()"
            )
            matched_light = share * self.light[255] + (1 - share) * self.light[0]
            self.enter("drive", int(np.argmin(np.abs(self.light - matched_light))))
            self.click("matched")

    def calibrate(self) -> None:
        """Fit the card twice, measure with a tape, and take the light as it is guessed."""
        self.fit_cards()
        self.reach("distance")
        self.enter("millimetres", self.distance)
        self.click("measured")
        self.reach("luminance")
        self.click("off")
        self.click("lit")

    def practise(self) -> None:
        """Do the practice, and begin."""
        self.reach("practice")
        self.click("try")
        self.until("ready")
        self.reach("ready")
        self.click("start")

    def sit(self, address: str) -> list[Any]:
        """All of it; the log of what was seen: number or practice, contrast, direction (deg),
        seconds."""
        self.arrive(address)
        # The canvas is drawn and read all the same, and the browser need not lay it into its
        # window.
        self.browser.run(
            "(document.getElementById('canvas').style.visibility = 'hidden')"
        )
        self.calibrate()
        self.practise()
        self.until("result", seconds=3000, pause=1.0)
        return list(self.browser.run("window.sitter.log"))

    def minutes(self) -> float:
        """How long it has sat here, by its own clock."""
        return (
            self.seconds
            + float(self.browser.run("(sitter.now() - sitter.begun) / 1000"))
        ) / 60

    def until(self, step: str, seconds: float = 200, pause: float = 0.1) -> None:
        """Wait for a step, and go on after each break on the way."""
        end = time.monotonic() + seconds
        while (step_now := self.browser.run(STEP)) != step:
            complaint = self.browser.text("error")
            assert complaint in ("", "Let us practise once more."), complaint
            assert time.monotonic() < end, f"{step_now} and not {step}"
            if step_now == "pause":
                self.browser.run(
                    "document.getElementById('on').disabled || "
                    "document.getElementById('on').click()"
                )
            elif step_now == "doubt":
                self.click("still")
            elif step_now == "practice":
                self.click("try")
            time.sleep(pause)
