"""``psyprobe observe``: a person at this screen, in an experiment file, into the same store as the models."""

from __future__ import annotations

import argparse
import json
import math
import random
import secrets
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np
import xarray

from psyprobe.analysis.words.csf import chat_csf
from psyprobe.cli.checking import display_from
from psyprobe.errors import InputError, PsyprobeError
from psyprobe.experiment import Experiment, read_experiment
from psyprobe.files.output import make_folder
from psyprobe.files.terminal import say, settings, show, tell, told_to_end
from psyprobe.light.display import Display
from psyprobe.observers.people.calibration import exponent_told, screen_of
from psyprobe.observers.people.observer import GIVEN_UP, PersonObserver, Sitting, checked_person, drawing_of
from psyprobe.observers.people.screen import Screen
from psyprobe.probes import load_probe
from psyprobe.probes.conduct import checked, run
from psyprobe.probes.designs.rounds import catch_trials
from psyprobe.probes.words.session import WordsProbe
from psyprobe.probes.words.wording import asking_of, level_name
from psyprobe.running.protocol import RunRecord
from psyprobe.running.store import open_store
from psyprobe.stimulus.specification import Specification

#: What people can be asked.
_PROBES = ("orientation", "orientation_4", "yes_no")
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
    experiment = read_experiment(arguments.experiment)
    changed = settings(arguments.set, "--set")
    visit = PersonVisit(
        checked(experiment.with_settings(changed) if changed else experiment),
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
        Of the probe orientation, orientation_4 or yes_no, over frequency.
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
        if experiment.probe not in _PROBES:
            raise InputError(
                f"{experiment.name} has the probe {experiment.probe!r}, and people are asked by {', '.join(_PROBES)}; "
                "take orientation_csf, or a copy of it"
            )
        if level_name(experiment) != "frequency":
            raise InputError(
                f"{experiment.name} varies {level_name(experiment)}, and the page shows a curve over frequency; give "
                "[levels] frequency and contrast"
            )
        if (wordings := len(asking_of(experiment).prompts)) > 1:
            raise InputError(
                f"{experiment.name} asks in {wordings} wordings, and a person in one; set asking.prompts to one"
            )
        self._probe = cast(WordsProbe, load_probe(experiment.probe))
        # The page shows the words of the probe, whatever others a prompt counts as the same.
        self._words = list(self._probe.words)
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
            "task": self._probe.name,
            "words": self._words,
            "display": self.display is not None,
            "distance": 1000 if screen is None else screen.distance,
            "resumed": resumed,
            "state": None if self._sitting is None else self._sitting.state(),
        }

    def calibrate(self, values: Mapping[str, Any]) -> Mapping[str, Any]:
        """As in `Visit`; each step is checked by itself, and all against the experiment before anything is shown."""
        if self._earlier is not None or self._sitting is not None:
            raise InputError("the sitting goes on with the screen with which it began; load the page again")
        if "distance_method" not in values:
            screen_of({**values, "distance": 1000}, self.display)
            return {}
        screen = screen_of(values, self.display)
        finest = self.experiment.spec(**{name: levels[-1] for name, levels in self.experiment.levels.items()})
        screen.drawn(finest, finest)
        if "light" not in values:
            return {"distance": round(screen.distance)}
        session = self._probe.plan(self.experiment, self._observer(screen, "", _nobody))
        self._screen = screen
        return {"practice": self._practice(session.scene.spec, screen), "curve": exponent_told(values)}

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
            total = _questions(self.experiment)
            sitting = Sitting(self._screen, name, self._answered + 1, total, told, self._right_if_clear)
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
            found = _told(run(self.experiment, observer, store=self.store, progress=False), observer.screen)
        except Exception as error:  # a thread's error is told on the page, or by nobody
            sitting.end("failed", error=str(error))
            tell(f"psyprobe observe: {error}")
            return
        self.found = {"phase": "done", **found, "inattentive": sitting.inattentive}
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

    def _practice(self, spec: Specification, screen: Screen) -> list[dict[str, Any]]:
        sides = random.Random(f"{self.person} practice")
        uniforms, patterns = screen.uniforms(), []
        # Where the answer is yes or no, one in three of the plain ones is no pattern at all.
        easy = (*_EASY[:4], 0.0, 0.0) if self._probe.name == "yes_no" else _EASY
        for number, contrast in enumerate((*sides.sample(easy, len(easy)), *_FAINTER)):
            turned = {"orientation": sides.choice(self._probe.orientations)} if self._probe.orientations else {}
            pattern = spec.changed(frequency=_PRACTICE_CPD, contrast=contrast, **turned).to_dict()
            draw = {**drawing_of(pattern, uniforms, screen), "seed": number}
            plain = number < len(_EASY)
            patterns.append({"draw": draw, "words": self._words, "correct": self._right(pattern), "easy": plain})
        return patterns

    def _right(self, pattern: Mapping[str, Any]) -> str:
        """The right answer to a pattern."""
        if self._probe.orientations:
            return self._words[self._probe.orientations.index(float(pattern["orientation"]))]
        return self._words[0 if pattern.get("contrast", 0.0) > 0 else 1]

    def _right_if_clear(self, pattern: Mapping[str, Any]) -> str | None:
        highest = self.experiment.levels["contrast"][-1]
        return self._right(pattern) if pattern.get("contrast", 0.0) >= 0.999 * highest else None


def _nobody(_: Any) -> Any:
    raise PsyprobeError("nobody is asked while an experiment is checked")


def _questions(experiment: Experiment) -> int | None:
    """How many questions a sitting has at most; None where the design alone knows."""
    asking = asking_of(experiment)
    values, contrasts = (len(experiment.levels[name]) for name in (level_name(experiment), "contrast"))
    catch = asking.catch if experiment.probe == "yes_no" else 0.0
    match asking.design:
        case "quick_csf":
            return int(asking.options.get("n_max", 60))
        case "quest_plus":
            return math.ceil(int(asking.options.get("n_max", 50)) * values / (1 - catch))
        case "constant":
            # A reading that is still undecided is decided in a part of its own.
            first = asking.repeats.p_yes if asking.readout == "auto" else asking.repeats.text
            shown = (each * values * contrasts for each in (first, asking.repeats.text - first))
            return sum(each + catch_trials(each, catch) for each in shown)
    return None


def _screen_of(record: RunRecord) -> Screen:
    return Screen.from_dict(record.observer_card["options"]["screen"])


def _said_yes(result: xarray.Dataset) -> int | None:
    """In how many of a hundred screens without a pattern one was seen; None where there were none."""
    blank = result["said"].values[result["catch"].values.astype(bool)]
    return round(100 * float(np.nanmean(blank))) if np.isfinite(blank.astype(float)).any() else None


def _curve(result: xarray.Dataset) -> list[tuple[float, ...]]:
    """Frequency, log10 sensitivity and the ends of its interval, where there is a threshold."""
    csf = chat_csf(result)
    with np.errstate(divide="ignore"):
        logs = [np.log10(csf[f"mean_sensitivity{end}"].values) for end in ("", "_low", "_high")]
    # An end that is open is drawn at that of the figure.
    rows = zip(csf["frequency"].values, logs[0], *(np.clip(end, 0, 3) for end in logs[1:]), strict=True)
    return [tuple(map(float, row)) for row in rows if np.isfinite(row).all()]


def _told(result: xarray.Dataset, screen: Screen) -> dict[str, Any]:
    """What the page draws: the curve with its intervals, and people's."""
    people = json.loads(result.attrs.get("human", "{}"))
    return {
        "curve": [dict(zip(("frequency", "mean", "low", "high"), row, strict=True)) for row in _curve(result)],
        "people": list(zip(people.get("values", ()), people.get("sensitivity", ()), strict=True)),
        "count": result.sizes["trial"],
        "offset": round(screen.offset, 2),
        "shift": round(screen.frequency_sd, 3),
        "said_yes": _said_yes(result),
        "light": screen.light,
    }
