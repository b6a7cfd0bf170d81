"""What is asked in one wording: which levels come next, and which reading of the answers counts."""

from __future__ import annotations

import inspect
import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from psyprobe.analysis.words.reply import posterior_answers
from psyprobe.errors import InputError, unknown_name
from psyprobe.experiment import Experiment
from psyprobe.experiment.page import Asking
from psyprobe.experiment.prompts import Prompt
from psyprobe.files.output import plain
from psyprobe.probes.designs import Design, Level, QuestPlus, QuickCSF, constant, ladder
from psyprobe.probes.differences import PERIOD, build_difference, to_periods
from psyprobe.probes.words.answer_table import Read, Readout, readout_of, response_value
from psyprobe.probes.words.delivery import derived_seed
from psyprobe.running.task import CONTRAST_AXIS, StimulusAxis, Task
from psyprobe.stimulus import Specification
from psyprobe.stimulus.parameters import power_of_ten

#: Answers with text and probabilities from which it is decided which of the two counts.
PILOT = 4
#: Contrasts among which an adaptive design chooses lie so far apart, in log10.
_STEP = 0.05
#: What the session gives to every design by itself; to constant stimuli also "repeats", which
#: depend on the read-out.
_GIVEN = ("values", "frequencies", "contrasts", "chance", "catch", "seed", "grid", "csf")
_ALL = 2**31
#: Names in a prompt that numbers of a clip take the place of.
OF_CLIPS = ("frames", "fps", "seconds")
#: What makes each design.
_MAKERS: Mapping[str, Callable[..., Design]] = {
    "constant": constant,
    "ladder": ladder,
    "quest_plus": QuestPlus,
    "quick_csf": QuickCSF,
}


@dataclass(frozen=True)
class Trial:
    """One showing of one level in one wording."""

    #: Place of the prompt in the experiment.
    prompt: int
    level: Level
    #: Which showing of the level this is; with an adaptive design, of its value besides contrast.
    repeat: int
    #: Whether its text is wanted even where probabilities are read.
    check: bool = False

    @property
    def place(self) -> list[Any]:
        """What the image depends on, as JSON can hold it."""
        return (
            ["catch", self.repeat]
            if self.level.catch
            else [self.level.value, self.level.contrast, self.repeat]
        )


def spoken(prompt: Prompt, shown: Specification) -> str:
    """What the observer reads: of a clip its numbers stand in the places of their names.

    Parameters
    ----------
    prompt : Prompt
        May hold ``{frames}``, ``{fps}`` (frames a second) and ``{seconds}``.
    shown : Specification
        What is asked about.

    Examples
    --------
    >>> from psyprobe.stimulus import Drift
    >>> clip = Drift(frequency=4, temporal_frequency=8, contrast=0.1, frames=30)
    >>> spoken(Prompt("moves", "These are {frames} frames, {fps} a second. Does anything move?"), clip)
    'These are 30 frames, 60 a second. Does anything move?'
    """
    text = prompt.full
    if shown.is_clip:
        seconds = shown.frames / shown.fps
        for name, value in zip(OF_CLIPS, (shown.frames, shown.fps, seconds), strict=True):
            text = text.replace(f"{{{name}}}", f"{value:g}")
    return text


class AxisLevels(NamedTuple):
    """The stimulus axis of an experiment in words, its levels, and the one level beside it."""

    axis: StimulusAxis
    #: Contrasts, differences or periods, rising.
    values: tuple[float, ...]
    #: Name of the other level, such as "frequency".
    level: str


def axis_levels(experiment: Experiment, period: bool = False) -> AxisLevels:
    """The stimulus axis of an experiment in words, its levels, and the one level beside it.

    Parameters
    ----------
    experiment : Experiment
        Its page has levels of contrast, or a table [difference].
    period : bool
        Whether the period of stripes takes the place of contrast, as in acuity.

    Raises
    ------
    InputError
        There is no axis, or there is no level beside it, or there are several.
    """
    if experiment.difference is not None:
        by = build_difference(experiment.difference, experiment.spec())
        axis = StimulusAxis(by.name, by.unit, by.label)
        values = experiment.difference.levels
    elif period:
        axis = PERIOD
        values = to_periods(experiment.levels["frequency"])
    elif "contrast" in experiment.levels:
        axis = CONTRAST_AXIS
        values = experiment.levels["contrast"]
    else:
        raise InputError("[levels] has no 'contrast'; give for example { values = [0.01, 0.1] }")
    return AxisLevels(axis, values, _level_beside(experiment, axis))


def _level_beside(experiment: Experiment, axis: StimulusAxis) -> str:
    taken = "frequency" if axis == PERIOD else axis.name
    held = {} if experiment.asking is None else experiment.asking.hold
    for name in held:
        if name not in experiment.levels or name == taken:
            raise unknown_name(
                "level in asking.hold",
                name,
                [level for level in experiment.levels if level != taken],
            )
    names = [name for name in experiment.levels if name not in {taken, *held}]
    if len(names) > 1:
        raise InputError(
            f"[levels] holds {', '.join(experiment.levels)}; an observer that answers in words "
            "is asked over one level "
            f"besides {axis.name.replace('_', ' ')}: give the others a value, such as asking.hold = "
            f"{{ {names[0]} = "
            f"{experiment.levels[names[0]][-1]:g} }}"
        )
    if len(names) != 1:
        raise InputError(
            f"[levels] holds {', '.join(experiment.levels)}; an experiment in words has contrast "
            "and one more level, such as frequency: give for example frequency = { values = [1, "
            "2, 4] }"
        )
    return names[0]


def design_of(
    experiment: Experiment,
    task: Task,
    shown: AxisLevels,
    prompt: Prompt,
    repeats: int,
    part: int = 0,
) -> Design:
    """The design by which an experiment asks in one wording.

    Parameters
    ----------
    experiment : Experiment
        Names the design.
    task : Task
        Tells the design how often guessing is correct.
    shown : AxisLevels
        Levels among which the design chooses.
    prompt : Prompt
        Fixed designs show every prompt the same images; adaptive ones go their own way.
    repeats : int
        Of each level with constant stimuli.
    part : int
        A second part of an experiment has an order of its own.

    Raises
    ------
    InputError
        An option is unknown or out of range.
    """
    asking = asking_of(experiment)
    make = _MAKERS[asking.design]
    fixed = not adaptive(asking.design)
    if asking.design == "quick_csf" and (shown.level != "frequency" or shown.axis != CONTRAST_AXIS):
        raise InputError(
            "the design 'quick_csf' models sensitivity over frequency, and [levels] varies "
            f"{shown.level}; take 'quest_plus'"
        )
    given: dict[str, Any] = {"repeats": repeats} if asking.design == "constant" else {}
    known = [
        parameter
        for parameter in inspect.signature(make).parameters
        if parameter not in (*_GIVEN, *given)
    ]
    for option in asking.options:
        if option not in known:
            raise unknown_name(
                f"key in [asking.options] of design {asking.design!r}", option, known
            )
    given |= {"chance": task.chance, "catch": asking.catch, **asking.options}
    given["seed"] = derived_seed(asking.seed, "design", part if fixed else prompt.id)
    try:
        contrasts = shown.values if fixed else fine_contrasts(shown.values)
        return make(experiment.levels[shown.level], contrasts, **given)
    except InputError:
        raise
    except (TypeError, ValueError) as error:
        raise InputError(
            f"design {asking.design!r} does not take {dict(asking.options)}: {error}"
        ) from error


def asking_of(experiment: Experiment) -> Asking:
    """The table [asking], which an experiment in words must have."""
    if experiment.asking is None:
        raise InputError(
            f'{experiment.name}: there is no [asking]; give for example prompts = "hernandez2025"'
        )
    return experiment.asking


def adaptive(design: str) -> bool:
    """Whether a design chooses every level by the answers before it."""
    return design in ("quest_plus", "quick_csf")


def fine_contrasts(contrast: tuple[float, ...]) -> tuple[float, ...]:
    """Contrasts between the first and the last, close enough for an adaptive design."""
    low = math.log10(contrast[0])
    high = math.log10(contrast[-1])
    return tuple(
        map(
            power_of_ten,
            np.linspace(low, high, math.ceil((high - low) / _STEP - 1e-9) + 1).tolist(),
        )
    )


class Wording:
    """What is asked in one wording, in rounds: each is planned from the answers to those before."""

    def __init__(
        self,
        experiment: Experiment,
        task: Task,
        shown: AxisLevels,
        index: int,
        at_once: int | None = None,
    ) -> None:
        asking = asking_of(experiment)
        #: Levels that a design gives at once.
        self._at_once = at_once or (asking.at_once if adaptive(asking.design) else _ALL)
        self.prompt = asking.prompts[index]
        self._experiment = experiment
        self._asking = asking
        self._task = task
        self._axis_levels = shown
        self._index = index
        #: Which reading counts; None until the pilot has shown it.
        self.readout: Readout | None = (
            None if asking.readout == "auto" else readout_of((), asking.readout)
        )
        self._later = asking.repeats.text - asking.repeats.p_yes if self.readout is None else 0
        repeats = asking.repeats.text if self.readout == "text" else asking.repeats.p_yes
        self._design = design_of(experiment, task, shown, self.prompt, repeats)
        self._pilot: list[Read] = []
        given = {
            "top_p": asking.top_p,
            "reasoning_effort": asking.reasoning_effort,
            "response_format": _one_of(self.prompt)
            if asking.response_format == "words"
            else asking.response_format,
            "extra_body": asking.extra_body,
        }
        self._special = {name: value for name, value in given.items() if value is not None}
        self._shown: Counter[Any] = Counter()
        self._planned = self._checked = 0

    def next(self) -> list[Trial]:
        """Trials to be put now, none when everything is asked; those to be asked with text are
        marked.
        """
        asking = self._asking
        levels = self._design.ask(self._at_once)
        if not levels and self.readout == "text" and asking.design == "constant" and self._later:
            self._design = design_of(
                self._experiment,
                self._task,
                self._axis_levels,
                self.prompt,
                self._later,
                part=1,
            )
            self._later = 0
            levels = self._design.ask(self._at_once)
        return self._mark([Trial(self._index, level, self._repeat(level)) for level in levels])

    def hear(self, answers: list[Read]) -> None:
        """Take in answers to marked trials, and decide which reading counts once there are
        enough.
        """
        self._pilot += answers
        if self.readout is None and len(self._pilot) >= PILOT:
            self.readout = readout_of(self._pilot, "auto")

    def tell(self, trial: Trial, heard: Mapping[int, Read], delivered: float) -> None:
        """Tell the design what was answered, by the order of the images, and the contrast that
        arrived.
        """
        readout = self.readout or readout_of(self._pilot, "auto")
        values = [
            response_value(read, readout, self.meant(order)[1]) for order, read in heard.items()
        ]
        answers = [each for each in posterior_answers(values, readout) if not math.isnan(each)]
        self._design.tell(trial.level, answers or None, delivered if delivered > 0 else None)

    def meant(self, order: int) -> tuple[Prompt, int]:
        """How an answer is read, and what its yes means; see `Prompt.interpret`."""
        return self.prompt.interpret(order, self._task.alternatives)

    def estimate(self) -> dict[str, Any] | None:
        """What the design itself has found, as JSON can hold it; None of constant stimuli, which
        are not told.
        """
        if self._asking.design == "constant":
            return None
        return dict(plain(asdict(self._design.estimate())))

    def decoding(self, trial: Trial) -> dict[str, Any]:
        """Arguments of `Decoding` for a trial; as long as the read-out is undecided, with text and
        probabilities.
        """
        asking = self._asking
        text = trial.check or self.readout != "p_yes"
        return {
            "temperature": asking.temperature,
            "max_tokens": asking.max_tokens if text else 1,
            "logprobs": self.readout != "text",
            "seed": derived_seed(asking.seed, "sampling", *trial.place)
            if asking.temperature > 0
            else None,
            **self._special,
        }

    def _repeat(self, level: Level) -> int:
        place = "catch" if level.catch else level.value if adaptive(self._asking.design) else level
        self._shown[place] += 1
        return self._shown[place] - 1

    def _mark(self, trials: list[Trial]) -> list[Trial]:
        self._planned += len(trials)
        wanted = math.ceil(self._asking.check * self._planned - 1e-9) - self._checked
        if self.readout is None:
            wanted = max(wanted, PILOT - len(self._pilot))
        # The same images for every prompt, whatever the order of the levels.
        order = sorted(
            trials, key=lambda trial: derived_seed(self._asking.seed, "check", *trial.place)
        )
        marked = set(order[: max(wanted, 0)])
        self._checked += len(marked)
        return [replace(trial, check=trial in marked) for trial in trials]


def _one_of(prompt: Prompt) -> dict[str, Any]:
    """The form of a reply that is one of the words of a prompt, as the chat-completions protocol
    has it.
    """
    answer = {"type": "string", "enum": list(prompt.words)}
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
