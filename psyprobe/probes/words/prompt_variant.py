"""Ask in one prompt variant: choose the next levels, and which reading of the answers counts."""

from __future__ import annotations

import inspect
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from psyprobe.analysis.words.reply import posterior_answers
from psyprobe.errors import InputError, check_known
from psyprobe.experiment import Experiment
from psyprobe.experiment.page import Asking
from psyprobe.experiment.prompts import Prompt
from psyprobe.files.json_types import JsonObject
from psyprobe.files.output import plain
from psyprobe.files.units import inverse_symbol
from psyprobe.probes.designs import Design, Level, QuestPlus, QuickCSF, constant, ladder
from psyprobe.probes.differences import PERIOD, build_difference, to_periods
from psyprobe.probes.words.answer_table import (
    Read,
    Readout,
    choose_readout,
    response_value,
)
from psyprobe.probes.words.delivery import derived_seed
from psyprobe.running.task import CONTRAST_AXIS, StimulusAxis, Task
from psyprobe.stimulus import Specification
from psyprobe.stimulus.parameters import power_of_ten
from psyprobe.stimulus.specification import level_of

#: Number of answers with text and probabilities that decide which of the two counts.
PILOT = 4
#: Distance in log10 between the contrasts among which an adaptive design chooses.
_STEP = 0.05
#: Arguments of designs that the page cannot set; nor "repeats" of constant stimuli, which depend
#: on the read-out.
_GIVEN_ARGUMENTS = (
    "values",
    "frequencies",
    "contrasts",
    "chance",
    "catch",
    "seed",
    "grid",
    "csf",
)
_UNLIMITED = 2**31
#: Placeholders in a prompt for numbers of a clip.
OF_CLIPS = ("frames", "fps", "seconds")
#: Placeholder in a prompt for the labels to choose from.
OPTIONS = "{options}"
#: Constructors of the designs.
_MAKERS: Mapping[str, Callable[..., Design]] = {
    "constant": constant,
    "ladder": ladder,
    "quest_plus": QuestPlus,
    "quick_csf": QuickCSF,
}


@dataclass(frozen=True)
class Trial:
    """One presentation of one level in one prompt variant."""

    #: Index of the prompt in the experiment.
    prompt: int
    level: Level
    #: Index among the trials of its level; with an adaptive design, among those of its value.
    repeat: int
    #: Whether its text is requested even where probabilities are read.
    check: bool = False

    @property
    def place(self) -> list[Any]:
        """All that a trial's image depends on, as JSON values."""
        if self.level.catch:
            return ["catch", self.repeat]
        return [self.level.value, self.level.contrast, self.repeat]


def fill_prompt(
    prompt: Prompt, stimulus: Specification, options: Sequence[str] = ()
) -> str:
    """Fill in a prompt's placeholders with options and numbers of a clip.

    Parameters
    ----------
    prompt : Prompt
        A prompt that may hold ``{options}``, and ``{frames}``, ``{fps}`` (frames a second) and
        ``{seconds}``.
    stimulus : Specification
        The stimulus of the question.
    options : sequence of str
        Labels to choose from, in the order in which they are named.

    Examples
    --------
    >>> from psyprobe.stimulus import Drift
    >>> clip = Drift(frequency=4, temporal_frequency=8, contrast=0.1, frames=30)
    >>> text = "These are {frames} frames, {fps} a second. Does anything move?"
    >>> fill_prompt(Prompt("moves", text), clip)
    'These are 30 frames, 60 a second. Does anything move?'
    """
    text = prompt.full.replace(OPTIONS, ", ".join(options))
    if stimulus.is_clip:
        seconds = stimulus.frames / stimulus.fps
        for name, value in zip(
            OF_CLIPS, (stimulus.frames, stimulus.fps, seconds), strict=True
        ):
            text = text.replace(f"{{{name}}}", f"{value:g}")
    return text


class AxisLevels(NamedTuple):
    """The stimulus axis of an experiment in words, its levels, and the name of the other level."""

    axis: StimulusAxis
    #: Ascending contrasts, differences, periods or values of another level, all above 0.
    values: tuple[float, ...]
    #: Name of the other level, such as "frequency", and its values.
    level: str
    level_values: tuple[float, ...]
    #: The parameter that the axis sets, to its value times the sign, or to its reciprocal.
    parameter: str = "contrast"
    sign: int = 1
    reciprocal: bool = False


def axis_levels(experiment: Experiment, period: bool = False) -> AxisLevels:
    """Find the stimulus axis of an experiment in words, its values, and the other level.

    Parameters
    ----------
    experiment : Experiment
        An experiment with levels of contrast, of `asking.axis`, or with a table [difference].
    period : bool
        Whether the period of stripes takes the place of contrast, as in acuity.

    Raises
    ------
    InputError
        There is no axis, or more than one other level.
    """
    name = require_asking(experiment).axis
    if experiment.difference is not None:
        difference = build_difference(experiment.difference, experiment.spec())
        levels = AxisLevels(
            StimulusAxis(difference.name, difference.unit, difference.label),
            experiment.difference.levels,
            *_find_other_level(experiment, difference.name),
        )
    elif period:
        frequencies = _level_values(experiment, "frequency")
        levels = AxisLevels(
            PERIOD,
            to_periods(frequencies),
            *_find_other_level(experiment, "frequency"),
            "frequency",
            reciprocal=True,
        )
    else:
        levels = _level_axis(experiment, name)
    return levels


def _level_values(experiment: Experiment, name: str) -> tuple[float, ...]:
    """Return the values of a level of an experiment, refusing one that it lacks."""
    if name not in experiment.levels:
        raise InputError(
            f"[levels] has no {name!r}; give for example {{ values = [0.01, 0.1] }}"
        )
    return experiment.levels[name]


def _level_axis(experiment: Experiment, axis: str) -> AxisLevels:
    """Choose a level of the experiment, or its reciprocal, as the stimulus axis."""
    name = axis.removeprefix("1/")
    values = _level_values(experiment, name)
    spec = experiment.spec()
    # A logarithm, such as logMAR, stands for the parameter that it is of.
    derived = spec.derived_levels.get(name)
    parameter = name if derived is None else derived.parameter
    if derived is not None:
        values = tuple(float(derived.to_parameter(value)) for value in values)
    sign = 1
    if values[-1] < 0:
        # Ink that is darker than its ground.
        sign = -1
        values = tuple(-value for value in reversed(values))
    definition = level_of(spec, parameter)
    stimulus_axis = StimulusAxis(parameter, definition.unit, definition.label)
    if name != axis:
        values = tuple(1 / value for value in reversed(values) if value)
        stimulus_axis = StimulusAxis(
            f"inverse_{parameter}",
            inverse_symbol(definition.unit),
            f"1 / {definition.label}",
            inverse=definition.label,
        )
    elif parameter == "contrast":
        stimulus_axis = CONTRAST_AXIS
    return AxisLevels(
        stimulus_axis,
        values,
        *_find_other_level(experiment, name),
        parameter,
        sign,
        name != axis,
    )


#: Levels of one value, if the page varies nothing besides the stimulus axis.
_SINGLE_LEVELS = ("frequency", "letter_size", "contrast", "luminance")


def _find_other_level(
    experiment: Experiment, axis: str
) -> tuple[str, tuple[float, ...]]:
    """Find the level besides the stimulus axis with its values, or a parameter at its value."""
    other_levels = [level for level in experiment.levels if level != axis]
    fixed_levels = require_asking(experiment).hold
    check_known("level in asking.hold", fixed_levels, other_levels)
    names = [name for name in other_levels if name not in fixed_levels]
    if len(names) > 1:
        raise InputError(
            f"[levels] holds {', '.join(experiment.levels)}; an observer that answers in words is "
            f"asked over one level besides {axis.replace('_', ' ')}: give the others a value, "
            f"such as asking.hold = {{ {names[0]} = {experiment.levels[names[0]][-1]:g} }}"
        )
    if names:
        return names[0], experiment.levels[names[0]]
    spec = experiment.spec()
    derived = spec.derived_levels.get(axis)
    varied = {*experiment.levels, axis, derived.parameter if derived else axis}
    if experiment.difference is not None:
        varied.add(experiment.difference.parameter)
    name = next(
        name for name in _SINGLE_LEVELS if name in spec.levels() and name not in varied
    )
    return name, (float(spec.value(name)),)


def require_asking(experiment: Experiment) -> Asking:
    """Return the table [asking] of an experiment, refusing one without it."""
    if experiment.asking is None:
        raise InputError(
            f'{experiment.name}: there is no [asking]; give for example prompts = "hernandez2025"'
        )
    return experiment.asking


def adaptive(design: str) -> bool:
    """Tell whether a design chooses every level by the answers before it."""
    return design in ("quest_plus", "quick_csf")


def fine_contrasts(contrast: tuple[float, ...]) -> tuple[float, ...]:
    """Compute contrasts from first to last, close enough for an adaptive design."""
    low = math.log10(contrast[0])
    high = math.log10(contrast[-1])
    steps = math.ceil((high - low) / _STEP - 1e-9)
    return tuple(map(power_of_ten, np.linspace(low, high, steps + 1).tolist()))


@dataclass(eq=False)
class PromptVariant:
    """Plans the trials of one prompt variant in rounds, each from the answers to those before."""

    asking: Asking
    task: Task
    levels: AxisLevels
    #: Index of the prompt.
    index: int
    #: The number of levels that a design gives at once; by default as many as it can.
    at_once: int = 0

    def __post_init__(self) -> None:
        asking = self.asking
        self.at_once = self.at_once or (
            asking.at_once if adaptive(asking.design) else _UNLIMITED
        )
        self.prompt = asking.prompts[self.index]
        #: The reading that counts; None until the pilot has decided it.
        self.readout: Readout | None = (
            None if asking.readout == "auto" else asking.readout
        )
        repeats = asking.repeats
        # People give no probabilities.
        is_text = self.readout == "text" or asking.stop_below is not None
        self._remaining_repeats = (
            repeats.text - repeats.p_yes if self.readout is None and not is_text else 0
        )
        self._design = self._build_design(repeats.text if is_text else repeats.p_yes)
        self._pilot: list[Read] = []
        settings = {
            "top_p": asking.top_p,
            "reasoning_effort": asking.reasoning_effort,
            "response_format": _words_schema(self.prompt)
            if asking.response_format == "words"
            else asking.response_format,
            "extra_body": asking.extra_body,
        }
        self._decoding_options = {
            name: value for name, value in settings.items() if value is not None
        }
        self._repeats: Counter[Any] = Counter()
        self._planned = self._checked = 0

    def _build_design(self, repeats: int, part: int = 0) -> Design:
        """Build the design that chooses levels for this prompt.

        Parameters
        ----------
        repeats : int
            Repeats of each level with constant stimuli.
        part : int
            Index of the part of the experiment; each has an order of its own.

        Raises
        ------
        InputError
            An option is unknown or out of range.
        """
        asking = self.asking
        levels = self.levels
        make = _MAKERS[asking.design]
        if asking.design == "quick_csf" and (
            levels.level != "frequency" or levels.axis != CONTRAST_AXIS
        ):
            raise InputError(
                "the design 'quick_csf' models sensitivity over frequency, and [levels] varies "
                f"{levels.level}; take 'quest_plus'"
            )
        arguments: JsonObject = {}
        if asking.design == "constant":
            arguments["repeats"] = repeats
            arguments["stop_below"] = asking.stop_below
        options = [
            parameter
            for parameter in inspect.signature(make).parameters
            if parameter not in (*_GIVEN_ARGUMENTS, *arguments)
        ]
        check_known(
            f"key in [asking.options] of design {asking.design!r}",
            asking.options,
            options,
        )
        arguments |= {"chance": self.task.chance, "catch": asking.catch}
        arguments |= asking.options
        contrasts = levels.values
        # Fixed designs show all prompts the same images.
        seed_part: int | str = part
        if adaptive(asking.design):
            seed_part = self.prompt.id
            if levels.parameter == "contrast" or levels.reciprocal:
                contrasts = fine_contrasts(contrasts)
        arguments["seed"] = derived_seed(asking.seed, "design", seed_part)
        try:
            return make(levels.level_values, contrasts, **arguments)
        except InputError:
            raise
        except (TypeError, ValueError) as error:
            raise InputError(
                f"design {asking.design!r} does not take {dict(asking.options)}: {error}"
            ) from error

    def next(self) -> list[Trial]:
        """Return the next trials of this prompt, none at the end."""
        asking = self.asking
        levels = self._design.ask(self.at_once)
        if (
            not levels
            and self.readout == "text"
            and asking.design == "constant"
            and self._remaining_repeats
        ):
            self._design = self._build_design(self._remaining_repeats, part=1)
            self._remaining_repeats = 0
            levels = self._design.ask(self.at_once)
        return self._mark_checks(
            [Trial(self.index, level, self._count_repeat(level)) for level in levels]
        )

    def add_pilot(self, answers: list[Read]) -> None:
        """Add answers of pilot trials; with enough of them, choose text or probabilities."""
        self._pilot += answers
        if self.readout is None and len(self._pilot) >= PILOT:
            self.readout = choose_readout(self._pilot, "auto")

    def tell(
        self, trial: Trial, readings: Mapping[int, Read], delivered: float
    ) -> None:
        """Tell the design a trial's answers and the contrast delivered."""
        readout = self.readout or choose_readout(self._pilot, "auto")
        values = [
            response_value(reading, readout, self.interpret(order)[1])
            for order, reading in readings.items()
        ]
        answers = [
            value
            for value in posterior_answers(values, readout)
            if not math.isnan(value)
        ]
        self._design.tell(
            trial.level, answers or None, delivered if delivered > 0 else None
        )

    def interpret(self, order: int) -> tuple[Prompt, int]:
        """Return the prompt to read answers by, and the polarity of its yes, in one order."""
        return self.prompt.interpret(order, self.task.alternatives)

    def estimate(self) -> JsonObject | None:
        """Return the design's estimate as JSON values; None for constant stimuli."""
        if self.asking.design == "constant":
            return None
        return dict(plain(asdict(self._design.estimate())))

    def decoding(self, trial: Trial) -> JsonObject:
        """Return a trial's decoding settings: text and probabilities while undecided."""
        asking = self.asking
        seed = None
        if asking.temperature > 0:
            seed = derived_seed(asking.seed, "sampling", *trial.place)
        text = trial.check or self.readout != "p_yes"
        return {
            "temperature": asking.temperature,
            "max_tokens": asking.max_tokens if text else 1,
            "logprobs": self.readout != "text",
            "seed": seed,
            **self._decoding_options,
        }

    def _count_repeat(self, level: Level) -> int:
        """Count a level asked once more, and return how often it was asked before."""
        place = (
            "catch"
            if level.catch
            else level.value
            if adaptive(self.asking.design)
            else level
        )
        self._repeats[place] += 1
        return self._repeats[place] - 1

    def _mark_checks(self, trials: list[Trial]) -> list[Trial]:
        """Choose by seed which trials are asked by a second read-out as a check."""
        self._planned += len(trials)
        count = math.ceil(self.asking.check * self._planned - 1e-9) - self._checked
        if self.readout is None:
            count = max(count, PILOT - len(self._pilot))
        # Seeds choose the trials, so that every prompt marks the same images in any order.
        seed = self.asking.seed
        order = sorted(
            trials, key=lambda trial: derived_seed(seed, "check", *trial.place)
        )
        marked = set(order[: max(count, 0)])
        self._checked += len(marked)
        return [replace(trial, check=trial in marked) for trial in trials]


def _words_schema(prompt: Prompt) -> JsonObject:
    """Build the JSON schema of a reply that is one of a prompt's words."""
    labels = [words[0] for words in prompt.labels]
    answer = {"type": "string", "enum": labels or list(prompt.words)}
    schema = {
        "type": "object",
        "properties": {"answer": answer},
        "required": ["answer"],
        "additionalProperties": False,
    }
    return {
        "type": "json_schema",
        "json_schema": {"name": "answer", "strict": True, "schema": schema},
    }
