"""A session with patterns: calibrate the screen, practise, measure a curve or an acuity."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np

from psyprobe.analysis.identification.charts import score_by_letter
from psyprobe.analysis.words.csf import chat_csf
from psyprobe.analysis.words.trial_table import trial_count
from psyprobe.errors import InputError
from psyprobe.experiment import Experiment
from psyprobe.files.json_types import JsonMapping, JsonObject
from psyprobe.light.display import Display
from psyprobe.observers.human_screen import Screen
from psyprobe.observers.people.calibration import read_exponent, read_screen
from psyprobe.observers.people.keys import answer_keys, label_keys
from psyprobe.observers.people.observer import PersonObserver
from psyprobe.observers.people.patterns import (
    PatternPresenter,
    shader_values,
    target_of,
)
from psyprobe.probes import load_probe
from psyprobe.probes.designs.rounds import catch_trials
from psyprobe.probes.words.prompt_variant import (
    axis_levels,
    fill_prompt,
    require_asking,
)
from psyprobe.probes.words.schedule import WordsProbe, WordsSchedule
from psyprobe.tasks.people.sessions import ParticipantSession

if TYPE_CHECKING:
    import xarray

#: Probes by which people can be asked about patterns.
PATTERN_PROBES = ("orientation", "orientation_4", "yes_no", "two_interval", "identify")
#: Contrasts of the practice: clearly visible ones, then fainter ones.
_EASY = (0.5,) * 6
_FAINTER = (0.2, 0.1, 0.05, 0.03)
_PRACTICE_CPD = 2.0
#: Practice with letters: so many of the largest, then of a middle size.
_LARGE = 4
_SMALLER = 2
#: The first repeat of practice, so that its noise differs from that of every trial.
_PRACTICE = 2_000_000


class PatternSession(ParticipantSession):
    """A session that calibrates a screen, practises, and asks of stripes or letters.

    Parameters
    ----------
    experiment : Experiment
        Its probe is one of `PATTERN_PROBES`; it varies frequency and contrast, the size of
        letters, or the contrast of letters of one size.
    person, store
        As for `ParticipantSession`.
    display : Display, optional
        The screen's light, where it was measured; else the page asks for it.

    Raises
    ------
    InputError
        The experiment varies another parameter.
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
        self._probe = cast(WordsProbe, load_probe(experiment.probe)).on_page(experiment)
        self._levels = axis_levels(experiment, self._probe.period)
        axis = self._levels.axis.name
        #: Whether letters of one size fade.
        self._fades = (
            bool(self._probe.labels)
            and axis == "contrast"
            and len(self._levels.level_values) == 1
        )
        if self._probe.labels:
            is_drawn = axis == "letter_size" or self._fades
        else:
            is_drawn = axis == "contrast" and self._levels.level == "frequency"
        if not is_drawn:
            raise InputError(
                f"{experiment.name} varies {self._levels.level} and {self._levels.axis.name}, and "
                "the page for people shows a curve over frequency, or how small or faint a "
                "letter is named; give [levels] frequency and contrast, or labels to name and "
                "logmar, or contrast at one size"
            )
        prompt_count = len(require_asking(experiment).prompts)
        if prompt_count > 1:
            raise InputError(
                f"{experiment.name} asks in {prompt_count} wordings, and a person in one; set "
                "asking.prompts to one"
            )
        super().__init__(experiment, person, store)
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
            "task": "faint_letters" if self._fades else self._probe.name,
            "words": self._words,
            "keys": self._keys(),
            "question": fill_prompt(
                require_asking(self.experiment).prompts[0],
                self.experiment.spec(),
                self._words,
            ),
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
        ends = [
            {name: levels[end] for name, levels in self.experiment.levels.items()}
            for end in (0, -1)
        ]
        screen.drawn(*(self.experiment.spec(**levels) for levels in ends))
        if "light" not in values:
            return {"distance": round(screen.distance)}
        observer = PersonObserver(self.person, "", screen)
        schedule = self._probe.plan(self.experiment, observer)
        self._screen = screen
        return {
            "practice": self._make_practice(schedule, screen),
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

    def _keys(self) -> list[tuple[str, ...]]:
        """Return the keys of each answer."""
        probe = self._probe
        if probe.labels:
            return label_keys(probe.words, probe.parameter, probe.orientations)
        return answer_keys(probe.words, probe.intervals)

    def _make_practice(
        self, schedule: WordsSchedule, screen: Screen
    ) -> list[JsonObject]:
        """Draw practice trials, the easy ones first, with their right answers."""
        generator = random.Random(f"{self.person} practice")
        uniforms = screen.uniforms()
        easy, harder = self._practice_levels(schedule)
        levels = (*generator.sample(easy, len(easy)), *harder)
        value = schedule.values[0] if self._probe.labels else _PRACTICE_CPD
        patterns = []
        for number, level in enumerate(levels):
            order = generator.choice(self._probe.orders)
            trial = schedule.scene.plan_trial(value, level, _PRACTICE + number, order)
            answer = order
            if self._probe.scored == "yes":
                answer = 0 if level else 1
            patterns.append(
                {
                    "draws": [
                        {
                            **shader_values(spec.to_dict(), uniforms, screen),
                            "seed": number,
                        }
                        for spec in trial.specs
                    ],
                    "correct": self._words[answer],
                    "level": level,
                    "easy": number < len(easy),
                }
            )
        return patterns

    def _practice_levels(
        self, schedule: WordsSchedule
    ) -> tuple[Sequence[float], Sequence[float]]:
        """Return easy contrasts or sizes for practice, and harder ones."""
        levels = schedule.contrasts
        if self._probe.labels:
            return levels[-1:] * _LARGE, (levels[len(levels) // 2],) * _SMALLER
        # Where the answer is yes or no, one in three of the easy trials has no pattern at all.
        easy = (*_EASY[:4], 0.0, 0.0) if self._probe.scored == "yes" else _EASY
        # With noise about it, a higher contrast than those of the page would need negative light.
        highest = 1.0 if self.experiment.noise is None else levels[-1]
        return (
            [min(level, highest) for level in easy],
            [min(level, highest) for level in _FAINTER],
        )

    def _clear_answer(self, stimuli: Sequence[JsonMapping]) -> str | None:
        """Return the right answer where the highest level is shown; None elsewhere."""
        targets = [target_of(stimulus) for stimulus in stimuli]
        parameter = self._levels.parameter
        levels = [abs(target.get(parameter, 0.0)) for target in targets]
        place = int(np.argmax(levels))
        # Ink is no darker than the screen's black.
        if levels[place] < 0.99 * self._levels.values[-1]:
            return None
        if self._probe.orientations:
            value = float(targets[0][self._probe.parameter])
            place = self._probe.orientations.index(value)
        return self._words[place]

    def _question_count(self) -> int | None:
        """Return the largest number of questions; None where only the design knows."""
        asking = require_asking(self.experiment)
        values = len(self._levels.level_values)
        contrasts = len(self._levels.values)
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
        """Return the person's acuity, or CSF with that of people, with intervals, for the page."""
        assert (
            self._screen is not None and self._presenter is not None
        )  # there is a result
        if self._fades:
            score = score_by_letter(result)
            return {
                "sensitivity": _log_sensitivity(result),
                "chart": None if score is None else round(-score, 2),
                "count": trial_count(result),
                "offset": round(self._screen.offset, 2),
                "inattentive": self._presenter.inattentive,
            }
        if self._probe.labels:
            return {
                "acuity": _acuity(result),
                "count": trial_count(result),
                "shift": round(self._screen.frequency_sd, 3),
                "smallest": round(_logmar(self._levels.values[0]), 2),
                "inattentive": self._presenter.inattentive,
            }
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


def _logmar(letter_size: float) -> float:
    """Compute the logMAR of a letter's height, deg."""
    return math.log10(12 * letter_size)


def _log_sensitivity(result: xarray.Dataset) -> list[float] | None:
    """Return log10 sensitivity at threshold and its interval; None without a threshold."""
    csf = chat_csf(result)
    ends = [
        float(csf[f"mean_sensitivity{end}"].values[0]) for end in ("", "_low", "_high")
    ]
    if not math.isfinite(ends[0]) or not ends[0]:
        return None
    # An end that is open lies beyond all levels.
    return [math.log10(min(max(end, 1e-6), 1e6)) for end in ends]


def _acuity(result: xarray.Dataset) -> list[float] | None:
    """Return the logMAR at threshold and its interval; None without a threshold."""
    ends = _log_sensitivity(result)
    if ends is None:
        return None
    value, low, high = ends
    return [_logmar(10**-end) for end in (value, high, low)]


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
    """Return log10 sensitivity and its interval at each frequency that has a threshold.

    In noise of a stated density also the efficiency and its interval.
    """
    csf = chat_csf(result)
    columns = {"frequency": csf["frequency"].values}
    with np.errstate(divide="ignore"):
        columns["mean"] = np.log10(csf["mean_sensitivity"].values)
        # An open end is drawn at the edge of the figure.
        columns["low"] = np.clip(np.log10(csf["mean_sensitivity_low"].values), 0, 3)
        columns["high"] = np.clip(np.log10(csf["mean_sensitivity_high"].values), 0, 3)
    if "efficiency" in csf:
        for name in ("efficiency", "efficiency_low", "efficiency_high"):
            # An open end of efficiency lies at 0 or beyond all.
            columns[name] = np.nan_to_num(csf[name].values, posinf=1e6)
    rows = np.column_stack(list(columns.values())).astype(float).tolist()
    return [
        dict(zip(columns, row, strict=True)) for row in rows if np.isfinite(row).all()
    ]
