"""A visit for patterns: a calibrated screen, a practice, a threshold at each frequency, and a
curve.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from psyprobe.analysis.words.csf import chat_csf
from psyprobe.analysis.words.trial_table import trial_count
from psyprobe.errors import InputError
from psyprobe.experiment import Experiment
from psyprobe.light.display import Display
from psyprobe.observers.human_screen import Screen
from psyprobe.observers.people.calibration import exponent_told, screen_of
from psyprobe.observers.people.observer import PersonObserver
from psyprobe.observers.people.patterns import Patterns, drawing_of
from psyprobe.probes import load_probe
from psyprobe.probes.designs.rounds import catch_trials
from psyprobe.probes.words.prompt_variant import asking_of, axis_levels
from psyprobe.probes.words.schedule import WordsProbe
from psyprobe.stimulus.specification import Specification
from psyprobe.tasks.people.sessions import PersonVisit, nobody

if TYPE_CHECKING:
    import xarray

#: What people can be asked about patterns.
PATTERN_PROBES = ("orientation", "orientation_4", "yes_no")
#: Contrasts of the practice: those that anybody sees, then fainter ones.
_EASY = (0.5,) * 6
_FAINTER = (0.2, 0.1, 0.05, 0.03)
_PRACTICE_CPD = 2.0


class PatternVisit(PersonVisit):
    """A screen, a practice, and a run of an experiment over frequency.

    Parameters
    ----------
    experiment : Experiment
        Of the probe orientation, orientation_4 or yes_no, over frequency.
    person, store
        As for `PersonVisit`.
    display : Display, optional
        The screen's light, where it was measured; else the page asks for it.

    Raises
    ------
    InputError
        The experiment asks something else.
    """

    kind = "patterns"
    afterwards = "psyprobe plot"
    once = False

    def __init__(
        self, experiment: Experiment, person: str, store: Path, display: Display | None = None
    ) -> None:
        level = axis_levels(experiment).level
        if level != "frequency":
            raise InputError(
                f"{experiment.name} varies {level}, and the page shows a curve "
                "over frequency; give "
                "[levels] frequency and contrast"
            )
        if (wordings := len(asking_of(experiment).prompts)) > 1:
            raise InputError(
                f"{experiment.name} asks in {wordings} wordings, and a person in one; set "
                "asking.prompts to one"
            )
        super().__init__(experiment, person, store)
        self._probe = cast(WordsProbe, load_probe(experiment.probe))
        # The page shows the words of the probe, whatever others a prompt counts as the same.
        self._words = list(self._probe.words)
        self.display = display
        self._screen = None
        if self._earlier is not None:
            self._screen = Screen.from_dict(self._earlier.observer_card["options"]["screen"])
        self._patterns: Patterns | None = None

    def facts(self) -> Mapping[str, Any]:
        """As in `Visit`."""
        screen = self._screen
        resumed = None
        if self._earlier is not None and screen is not None:
            width, height = screen.size
            now = {
                "device_pixel_ratio": screen.device_pixel_ratio,
                "width": width,
                "height": height,
            }
            resumed = {**now, "number": self._answered + 1, "distance": screen.distance}
        return {
            **super().facts(),
            "task": self._probe.name,
            "words": self._words,
            "display": self.display is not None,
            "distance": 1000 if screen is None else screen.distance,
            "resumed": resumed,
        }

    def calibrate(self, values: Mapping[str, Any]) -> Mapping[str, Any]:
        """As in `Visit`; each step is checked by itself, and all against the experiment before
        anything is shown.
        """
        if self._earlier is not None or self._session is not None:
            raise InputError(
                "the session goes on with the screen with which it began; load the page again"
            )
        if "distance_method" not in values:
            screen_of({**values, "distance": 1000}, self.display)
            return {}
        screen = screen_of(values, self.display)
        finest = self.experiment.spec(
            **{name: levels[-1] for name, levels in self.experiment.levels.items()}
        )
        screen.drawn(finest, finest)
        if "light" not in values:
            return {"distance": round(screen.distance)}
        schedule = self._probe.plan(
            self.experiment, PersonObserver(self.person, "", screen, nobody)
        )
        self._screen = screen
        return {
            "practice": self._practice(schedule.scene.spec, screen),
            "curve": exponent_told(values),
        }

    def _observer(self, put: Any) -> PersonObserver:
        return PersonObserver(self.person, self._session_id, self._screen, put)

    def _showing(self) -> Patterns:
        if self._screen is None:
            raise InputError("nobody has calibrated the screen yet; load the page again")
        self._patterns = Patterns(self._screen, self._session_id, self._right_if_clear)
        return self._patterns

    def _practice(self, spec: Specification, screen: Screen) -> list[dict[str, Any]]:
        sides = random.Random(f"{self.person} practice")
        uniforms = screen.uniforms()
        patterns = []
        # Where the answer is yes or no, one in three of the plain ones is no pattern at all.
        easy = (*_EASY[:4], 0.0, 0.0) if self._probe.scored == "yes" else _EASY
        for number, contrast in enumerate((*sides.sample(easy, len(easy)), *_FAINTER)):
            turned = (
                {"orientation": sides.choice(self._probe.orientations)}
                if self._probe.orientations
                else {}
            )
            pattern = spec.changed(frequency=_PRACTICE_CPD, contrast=contrast, **turned).to_dict()
            draw = {**drawing_of(pattern, uniforms, screen), "seed": number}
            plain = number < len(_EASY)
            patterns.append(
                {"draw": draw, "words": self._words, "correct": self._right(pattern), "easy": plain}
            )
        return patterns

    def _right(self, pattern: Mapping[str, Any]) -> str:
        """The right answer to a pattern."""
        if self._probe.orientations:
            return self._words[self._probe.orientations.index(float(pattern["orientation"]))]
        return self._words[0 if pattern.get("contrast", 0.0) > 0 else 1]

    def _right_if_clear(self, pattern: Mapping[str, Any]) -> str | None:
        highest = self.experiment.levels["contrast"][-1]
        return self._right(pattern) if pattern.get("contrast", 0.0) >= 0.999 * highest else None

    def _total(self) -> int | None:
        """How many questions a session has at most; None where the design alone knows."""
        asking = asking_of(self.experiment)
        levels = self.experiment.levels
        values = len(levels["frequency"])
        contrasts = len(levels["contrast"])
        catch = asking.catch if self._probe.scored == "yes" else 0.0
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

    def _told(self, result: xarray.Dataset) -> dict[str, Any]:
        """The curve with its intervals, and people's."""
        assert self._screen is not None and self._patterns is not None  # there is a result
        people = json.loads(result.attrs.get("human", "{}"))
        return {
            "curve": [
                dict(zip(("frequency", "mean", "low", "high"), row, strict=True))
                for row in _curve(result)
            ],
            "people": list(
                zip(people.get("values", ()), people.get("sensitivity", ()), strict=True)
            ),
            "count": trial_count(result),
            "offset": round(self._screen.offset, 2),
            "shift": round(self._screen.frequency_sd, 3),
            "said_yes": _said_yes(result),
            "light": self._screen.light,
            "inattentive": self._patterns.inattentive,
        }


def _said_yes(result: xarray.Dataset) -> int | None:
    """In how many of a hundred screens without a pattern one was seen; None where there were
    none.
    """
    blank = result["catch_response"].values if "catch_response" in result else np.array([])
    return round(100 * float(np.nanmean(blank))) if np.isfinite(blank.astype(float)).any() else None


def _curve(result: xarray.Dataset) -> list[tuple[float, ...]]:
    """Frequency, log10 sensitivity and the ends of its interval, where there is a threshold."""
    csf = chat_csf(result)
    with np.errstate(divide="ignore"):
        logs = [np.log10(csf[f"mean_sensitivity{end}"].values) for end in ("", "_low", "_high")]
    # An end that is open is drawn at that of the figure.
    rows = zip(
        csf["frequency"].values, logs[0], *(np.clip(end, 0, 3) for end in logs[1:]), strict=True
    )
    return [tuple(map(float, row)) for row in rows if np.isfinite(row).all()]
