"""``psyprobe observe``: a person at this screen, in an experiment file, into the same store as the models."""

from __future__ import annotations

import argparse
import json
import random
import secrets
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import xarray

from psyprobe.analysis.words.csf import chat_csf
from psyprobe.cli.checking import display_from
from psyprobe.errors import InputError, PsyprobeError
from psyprobe.experiment import Experiment, read_experiment
from psyprobe.files.output import make_folder
from psyprobe.files.terminal import say, show, tell, told_to_end
from psyprobe.light.display import Display
from psyprobe.observers.people.observer import GIVEN_UP, PersonObserver, Sitting, checked_person, drawing_of, number_of
from psyprobe.observers.people.screen import Screen, pixel_pitch
from psyprobe.probes import load_probe
from psyprobe.probes.conduct import checked, run
from psyprobe.running.protocol import RunRecord
from psyprobe.running.store import open_store

#: Two fits of the card may differ by so much of their mean.
_CARD_SPREAD = 0.01
#: Of a screen that nobody measured, cd/m² and lux.
_OFFICE = {"peak": 200.0, "ambient": 50.0}
_CONTRAST_RATIO = 1000
#: Contrasts of the practice: those that anybody sees, then fainter ones.
_EASY, _FAINTER = (0.5,) * 6, (0.2, 0.1, 0.05, 0.03)
_PRACTICE_CPD = 2.0


def observe_command(arguments: argparse.Namespace) -> int:
    """Serve the page to one person until the sitting is over, or Ctrl-C pauses it."""
    try:
        from psyprobe.observers.people.server import PersonServer
    except ImportError as error:
        raise PsyprobeError("the page needs starlette and uvicorn: pip install 'psyprobe[server]'") from error
    store = Path(arguments.store)
    visit = PersonVisit(
        checked(read_experiment(arguments.experiment)),
        checked_person(arguments.person),
        store,
        display_from(arguments.display) if arguments.display else None,
    )
    make_folder(store.parent)
    with told_to_end() as told, PersonServer(visit, arguments.port) as server:
        say(f"Open {server.address} in a browser on this machine; Ctrl-C pauses.")
        while not told.wait(0.2) and not visit.over.is_set():
            pass
        # The page fetches the result before its server goes.
        visit.pause()
        told.wait(1.0)
    found = visit.found
    text = f"psyprobe plot {store} draws the result" if found else "paused; the same command goes on with the sitting"
    show({"store": str(store), "finished": bool(found), **found}, text, as_json=arguments.json)
    return 0


class PersonVisit:
    """What one page goes through: a screen, a practice, and a run of the experiment in a thread of its own.

    Parameters
    ----------
    experiment : Experiment
        Of the probe "orientation".
    person : str
        A pseudonym.
    store : Path
        Where answers go; an unfinished sitting of the same person in it goes on.
    display : Display, optional
        The screen's light, where it was measured; else the page asks for it.

    Raises
    ------
    InputError
        The experiment asks something else.
    """

    def __init__(self, experiment: Experiment, person: str, store: Path, display: Display | None = None) -> None:
        if experiment.probe != "orientation":
            raise InputError(
                f"{experiment.name} has the probe {experiment.probe!r}, and people are asked by 'orientation'; take "
                "orientation_csf, or a copy of it"
            )
        self.experiment, self.person, self.store, self.display = experiment, person, store, display
        self.found: dict[str, Any] = {}
        #: Set when nothing more is to be asked.
        self.over = threading.Event()
        self._sitting: Sitting | None = None
        self._one_at_a_time = threading.Lock()
        self._earlier, self._answered = self._unfinished()
        self._screen = None if self._earlier is None else _screen_of(self._earlier)

    def facts(self) -> Mapping[str, Any]:
        """As in `Visit`."""
        screen = self._screen
        resumed = None
        if self._earlier is not None and screen is not None:
            width, height = screen.size
            now = {"device_pixel_ratio": screen.device_pixel_ratio, "width": width, "height": height}
            resumed = {**now, "number": self._answered + 1, "distance": screen.distance}
        return {
            "title": self.experiment.title,
            "person": self.person,
            "store": str(self.store),
            "display": self.display is not None,
            "distance": 1000 if screen is None else screen.distance,
            "resumed": resumed,
            "state": None if self._sitting is None else self._sitting.state(),
        }

    def calibrate(self, values: Mapping[str, Any]) -> Mapping[str, Any]:
        """As in `Visit`; the experiment is checked against the screen before anything is shown."""
        if self._earlier is not None or self._sitting is not None:
            raise InputError("the sitting goes on with the screen with which it began; load the page again")
        screen = self._measured(values)
        session = load_probe(self.experiment.probe).plan(self.experiment, self._observer(screen, "", _nobody))
        self._screen = screen
        return {"practice": self._practice(session.scene.spec, screen)}  # type: ignore[attr-defined]

    def begin(self, values: Mapping[str, Any]) -> None:
        """As in `Visit`."""
        with self._one_at_a_time:
            if self._sitting is not None:
                return
            if values.get("consent") is not True or self._screen is None:
                raise InputError("nobody has agreed and calibrated the screen yet; load the page again")
            options = {} if self._earlier is None else self._earlier.observer_card["options"]
            name = options.get("session") or secrets.token_hex(8)
            told = {each: values.get(each) for each in ("consent", "practice", "browser")}
            total = self.experiment.asking.options.get("n_max") if self.experiment.asking else None
            sitting = Sitting(self._screen, name, self._answered + 1, total, told)
            observer = self._observer(self._screen, name, sitting.put)
            threading.Thread(target=self._ask, args=(observer, sitting), daemon=True).start()
            self._sitting = sitting

    def state(self, seconds: float) -> Mapping[str, Any]:
        """As in `Visit`."""
        if self._sitting is None:
            raise InputError("the sitting has not begun; load the page again")
        state = self._sitting.state(seconds)
        if state["phase"] in ("done", "failed"):
            self.over.set()
        return state

    def answer(self, values: Mapping[str, Any]) -> None:
        """As in `Visit`."""
        if self._sitting is None:
            raise InputError("the sitting has not begun; load the page again")
        self._sitting.answer(values)

    def pause(self) -> None:
        """Ask nothing more."""
        if self._sitting is not None:
            self._sitting.end("paused")

    def _ask(self, observer: PersonObserver, sitting: Sitting) -> None:
        try:
            result = run(self.experiment, observer, store=self.store, progress=False)
        except Exception as error:  # a thread's error is told on the page, or by nobody
            sitting.end("failed", error=str(error))
            tell(f"psyprobe observe: {error}")
            return
        self.found = {"phase": "done", **_told(result, observer.screen)}
        sitting.end(**self.found)

    def _unfinished(self) -> tuple[RunRecord | None, int]:
        """The sitting of this person that was begun last and not ended, and how much of it is answered."""
        if not self.store.exists():
            return None, 0
        with open_store(self.store, create=False) as store:
            mine = [
                record
                for record in store.runs()
                if record.observer == f"person:{self.person}"
                and record.finished is None
                and record.experiment_digest == self.experiment.digest
            ]
            if not mine:
                return None, 0
            # A store knows digests by their first digits.
            kept = (answered for answered, _ in store.kept_answers())
            whom = (each.question.observer for each in kept if each.answer["reply"]["finish"] != GIVEN_UP)
            return mine[-1], sum(mine[-1].observer_digest.startswith(each) for each in whom)

    def _observer(self, screen: Screen, session: str, put: Any) -> PersonObserver:
        return PersonObserver(self.person, session, screen, put)

    def _measured(self, values: Mapping[str, Any]) -> Screen:
        cards = values.get("cards")
        if not isinstance(cards, list) or len(cards) != 2:
            raise InputError("the card was not fitted twice; load the page again")
        first, second = (number_of({"width of the card": each}, "width of the card", 1, 5000) for each in cards)
        if abs(first - second) > _CARD_SPREAD * (first + second) / 2:
            raise InputError(
                f"the card was {first:g} px wide and then {second:g} px; two fits may differ by 1 %: fit it again"
            )
        ratio = number_of(values, "device_pixel_ratio", 1, 8)
        light = values.get("light")
        peak = number_of(values, "peak", 50, 2000) if light == "value" else _OFFICE["peak"]
        guessed = Display(peak=peak, black=peak / _CONTRAST_RATIO, ambient=_OFFICE["ambient"])
        known = "measured" if self.display is not None else "value" if light == "value" else "guess"
        return Screen(
            pitch=pixel_pitch((first + second) / 2, ratio),
            distance=number_of(values, "distance", 200, 5000),
            display=self.display or guessed,
            light=known,
            device_pixel_ratio=ratio,
            size=(int(number_of(values, "width", 100, 20000)), int(number_of(values, "height", 100, 20000))),
            period=number_of(values, "period", 1, 34),
        )

    def _practice(self, spec: Any, screen: Screen) -> list[dict[str, Any]]:
        probe: Any = load_probe(self.experiment.probe)
        sides = random.Random(f"{self.person} practice")
        uniforms, patterns = screen.uniforms(), []
        for number, contrast in enumerate((*_EASY, *_FAINTER)):
            side = sides.randrange(2)
            pattern = spec.changed(frequency=_PRACTICE_CPD, contrast=contrast, orientation=probe.orientations[side])
            draw = {**drawing_of(pattern.to_dict(), uniforms, screen), "seed": number}
            correct = probe.words[side]
            patterns.append({"draw": draw, "words": probe.words, "correct": correct, "easy": number < len(_EASY)})
        return patterns


def _nobody(_: Any) -> Any:
    raise PsyprobeError("nobody is asked while an experiment is checked")


def _screen_of(record: RunRecord) -> Screen:
    return Screen.from_dict(record.observer_card["options"]["screen"])


def _told(result: xarray.Dataset, screen: Screen) -> dict[str, Any]:
    """What the page draws: the curve with its intervals, and people's."""
    csf = chat_csf(result)
    logs = [np.log10(csf[f"mean_sensitivity{end}"].values) for end in ("", "_low", "_high")]
    keys = ("frequency", "mean", "low", "high")
    rows = zip(*(each.tolist() for each in (csf["frequency"].values, *logs)), strict=True)
    people = json.loads(result.attrs.get("human", "{}"))
    return {
        "curve": [dict(zip(keys, row, strict=True)) for row in rows],
        "people": list(zip(people.get("values", ()), people.get("sensitivity", ()), strict=True)),
        "count": result.sizes["trial"],
        "offset": screen.offset,
        "light": screen.light,
    }
