"""A session with patterns: calibrate the screen, practise, measure contrast sensitivity."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np

from psyprobe.analysis.words.csf import chat_csf
from psyprobe.analysis.words.trial_table import trial_count
from psyprobe.errors import InputError
from psyprobe.experiment import Experiment
from psyprobe.files.json_types import JsonMapping, JsonObject
from psyprobe.light.display import Display
from psyprobe.observers.human_screen import Screen
from psyprobe.observers.people.calibration import read_exponent, read_screen
from psyprobe.observers.people.observer import PersonObserver
from psyprobe.observers.people.patterns import (
    PatternPresenter,
    shader_values,
    target_of,
)
from psyprobe.probes import load_probe
from psyprobe.probes.designs.rounds import catch_trials
from psyprobe.probes.words.prompt_variant import axis_levels, require_asking
from psyprobe.probes.words.schedule import WordsProbe
from psyprobe.stimulus.specification import Specification
from psyprobe.tasks.people.sessions import ParticipantSession

if TYPE_CHECKING:
    import xarray

#: Probes by which people can be asked about patterns.
PATTERN_PROBES = ("orientation", "orientation_4", "yes_no")
#: Contrasts of the practice: clearly visible ones, then fainter ones.
_EASY = (0.5,) * 6
_FAINTER = (0.2, 0.1, 0.05, 0.03)
_PRACTICE_CPD = 2.0


class PatternSession(ParticipantSession):
    """A session that calibrates a screen, practises, and runs an experiment over frequency.

    Parameters
    ----------
    experiment : Experiment
        Its probe is orientation, orientation_4 or yes_no; it varies frequency.
    person, store
        As for `ParticipantSession`.
    display : Display, optional
        The screen's light, where it was measured; else the page asks for it.

    Raises
    ------
    InputError
        The experiment has another probe or varies another parameter.
    """

    kind = "patterns"
    result_command = "psyprobe plot"
    single_session = False

    def __init__(
        self,
        experiment: Experiment,
        person: str,
        store: Path,
        display: Display | None = None,
    ) -> None:
        level = axis_levels(experiment).level
        if level != "frequency":
            raise InputError(
                f"{experiment.name} varies {level}, and the page shows a curve over frequency; "
                "give [levels] frequency and contrast"
            )
        prompt_count = len(require_asking(experiment).prompts)
        if prompt_count > 1:
            raise InputError(
                f"{experiment.name} asks in {prompt_count} wordings, and a person in one; set "
                "asking.prompts to one"
            )
        super().__init__(experiment, person, store)
        self._probe = cast(WordsProbe, load_probe(experiment.probe))
        # The page shows the words of the probe, whatever others a prompt counts as the same.
        self._words = list(self._probe.words)
        self.display = display
        if self._earlier is not None:
            self._screen = Screen.from_dict(
                self._earlier.observer_card["options"]["screen"]
            )
        self._presenter: PatternPresenter | None = None

    def facts(self) -> JsonMapping:
        """Describe the session for its first page: title, person, questions left."""
        screen = self._screen
        resumed = None
        if self._earlier is not None and screen is not None:
            width, height = screen.size
            resumed = {
                "device_pixel_ratio": screen.device_pixel_ratio,
                "width": width,
                "height": height,
                "number": self._answered + 1,
                "distance": screen.distance,
            }
        return {
            **super().facts(),
            "task": self._probe.name,
            "words": self._words,
            "display": self.display is not None,
            "distance": 1000 if screen is None else screen.distance,
            "resumed": resumed,
        }

    def calibrate(self, values: JsonMapping) -> JsonMapping:
        """Read the screen as the page measured it; return practice trials once complete."""
        if self._earlier is not None or self._exchange is not None:
            raise InputError(
                "the session goes on with the screen with which it began; load the page again"
            )
        if "distance_method" not in values:
            read_screen({**values, "distance": 1000}, self.display)
            return {}
        screen = read_screen(values, self.display)
        highest_levels = {
            name: levels[-1] for name, levels in self.experiment.levels.items()
        }
        finest_pattern = self.experiment.spec(**highest_levels)
        screen.drawn(finest_pattern, finest_pattern)
        if "light" not in values:
            return {"distance": round(screen.distance)}
        observer = PersonObserver(self.person, "", screen)
        schedule = self._probe.plan(self.experiment, observer)
        self._screen = screen
        return {
            "practice": self._make_practice(schedule.scene.spec, screen),
            "curve": read_exponent(values),
        }

    def _make_presenter(self) -> PatternPresenter:
        """Set up how patterns are shown on the calibrated screen."""
        if self._screen is None:
            raise InputError(
                "nobody has calibrated the screen yet; load the page again"
            )
        self._presenter = PatternPresenter(
            self._screen, self._session_id, self._clear_answer
        )
        return self._presenter

    def _make_practice(self, spec: Specification, screen: Screen) -> list[JsonObject]:
        """Draw practice trials, the easy ones first, with their right answers."""
        generator = random.Random(f"{self.person} practice")
        uniforms = screen.uniforms()
        orientations = self._probe.orientations
        patterns = []
        # Where the answer is yes or no, one in three of the easy trials has no pattern at all.
        easy_contrasts = (
            (*_EASY[:4], 0.0, 0.0) if self._probe.scored == "yes" else _EASY
        )
        contrasts = (*generator.sample(easy_contrasts, len(easy_contrasts)), *_FAINTER)
        noise = self.experiment.noise is not None
        # With noise about it, a higher contrast than those of the page would need negative light.
        highest = self.experiment.levels["contrast"][-1] if noise else 1.0
        for number, contrast in enumerate(contrasts):
            values: JsonObject = {
                "frequency": _PRACTICE_CPD,
                "contrast": min(contrast, highest),
                **({"noise_seed": number} if noise else {}),
            }
            if orientations:
                values["orientation"] = generator.choice(orientations)
            pattern = spec.changed(**values).to_dict()
            patterns.append(
                {
                    "draw": {
                        **shader_values(pattern, uniforms, screen),
                        "seed": number,
                    },
                    "words": self._words,
                    "correct": self._correct_answer(target_of(pattern)),
                    "easy": number < len(_EASY),
                }
            )
        return patterns

    def _correct_answer(self, pattern: JsonMapping) -> str:
        """Return the word for a pattern's orientation, or for whether one is there."""
        if self._probe.orientations:
            return self._words[
                self._probe.orientations.index(float(pattern["orientation"]))
            ]
        return self._words[0 if pattern.get("contrast", 0.0) > 0 else 1]

    def _clear_answer(self, pattern: JsonMapping) -> str | None:
        """Return the right answer to a pattern of the highest contrast; None for others."""
        is_clear = (
            pattern.get("contrast", 0.0)
            >= 0.999 * self.experiment.levels["contrast"][-1]
        )
        return self._correct_answer(pattern) if is_clear else None

    def _question_count(self) -> int | None:
        """Return the largest number of questions; None where only the design knows."""
        asking = require_asking(self.experiment)
        levels = self.experiment.levels
        values = len(levels["frequency"])
        contrasts = len(levels["contrast"])
        catch = asking.catch if self._probe.scored == "yes" else 0.0
        match asking.design:
            case "quick_csf":
                return int(asking.options.get("n_max", 60))
            case "quest_plus":
                return math.ceil(
                    int(asking.options.get("n_max", 50)) * values / (1 - catch)
                )
            case "constant":
                # With readout "auto", part of the questions wait until the readout is decided.
                repeats = asking.repeats
                first_repeats = (
                    repeats.p_yes if asking.readout == "auto" else repeats.text
                )
                part_repeats = (first_repeats, repeats.text - first_repeats)
                test_counts = [count * values * contrasts for count in part_repeats]
                return sum(count + catch_trials(count, catch) for count in test_counts)
        return None

    def _summarize(self, result: xarray.Dataset) -> JsonObject:
        """Return the person's CSF with intervals, and the CSF of people, for the page."""
        assert (
            self._screen is not None and self._presenter is not None
        )  # there is a result
        people = json.loads(result.attrs.get("human", "{}"))
        people_curve = zip(
            people.get("values", ()), people.get("sensitivity", ()), strict=True
        )
        return {
            "curve": _curve(result),
            "people": list(people_curve),
            "count": trial_count(result),
            "offset": round(self._screen.offset, 2),
            "shift": round(self._screen.frequency_sd, 3),
            "said_yes": _false_alarm_percent(result),
            "light": self._screen.light,
            "inattentive": self._presenter.inattentive,
        }


def _false_alarm_percent(result: xarray.Dataset) -> int | None:
    """Compute the percentage of catch trials answered by yes; None without any."""
    if "catch_response" not in result:
        return None
    responses = result["catch_response"].values.astype(float)
    return (
        round(100 * float(np.nanmean(responses)))
        if np.isfinite(responses).any()
        else None
    )


def _curve(result: xarray.Dataset) -> list[dict[str, float]]:
    """Return log10 sensitivity and its interval at each frequency that has a threshold."""
    csf = chat_csf(result)
    columns = {"frequency": csf["frequency"].values}
    with np.errstate(divide="ignore"):
        columns["mean"] = np.log10(csf["mean_sensitivity"].values)
        # An open end is drawn at the edge of the figure.
        columns["low"] = np.clip(np.log10(csf["mean_sensitivity_low"].values), 0, 3)
        columns["high"] = np.clip(np.log10(csf["mean_sensitivity_high"].values), 0, 3)
    rows = np.column_stack(list(columns.values())).astype(float).tolist()
    return [
        dict(zip(columns, row, strict=True)) for row in rows if np.isfinite(row).all()
    ]
