"""One prompt's share of a run that asks in words: which levels come next, and which reading of the answers counts."""

from __future__ import annotations

import inspect
import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from psyprobe.errors import InputError, unknown_name
from psyprobe.page_reading import plain
from psyprobe.probes.answer_reading import Read, Readout, readout_of, said
from psyprobe.probes.prompts import Prompt
from psyprobe.probes.scene import derived_seed

if TYPE_CHECKING:
    from psyprobe.probes.designs import Design, Level
    from psyprobe.question_file import QuestionExperiment

#: Answers with text and probabilities from which it is decided which of the two counts.
PILOT = 4
#: Contrasts among which an adaptive design chooses lie so far apart, in log10.
_STEP = 0.05
#: What the runner gives to every design by itself.
_GIVEN = ("frequencies", "contrasts", "task", "catch", "seed", "repeats", "grid", "csf")
_ALL = 2**31


@dataclass(frozen=True)
class Trial:
    """One showing of one level with one prompt.

    Parameters
    ----------
    prompt : int
        Place of the prompt in the experiment.
    level : Level
        Frequency and contrast.
    repeat : int
        Which showing of the level this is; with an adaptive design, of the frequency.
    check : bool
        Whether its text is wanted even where probabilities are read.
    """

    prompt: int
    level: Level
    repeat: int
    check: bool = False


def design_of(experiment: QuestionExperiment, task: str, prompt: Prompt, repeats: int, part: int = 0) -> Design:
    """The design by which an experiment asks with one prompt.

    Parameters
    ----------
    experiment : QuestionExperiment
        Names the design.
    task : {"yes_no", "two_interval"}
        Of its probe.
    prompt : Prompt
        Fixed designs show every prompt the same images; adaptive ones go their own way.
    repeats : int
        Of each level with constant stimuli.
    part : int
        A second part of an experiment has an order of its own.

    Returns
    -------
    Design

    Raises
    ------
    InputError
        An option is unknown or out of range.
    """
    from psyprobe.probes import designs

    asking = experiment.asking
    makers: dict[str, Callable[..., Design]] = {
        "constant": designs.constant,
        "ladder": designs.ladder,
        "quest_plus": designs.QuestPlus,
        "quick_csf": designs.QuickCSF,
    }
    make = makers[asking.design]
    known = [name for name in inspect.signature(make).parameters if name not in _GIVEN or name == _more(asking.design)]
    for name in asking.options:
        if name not in known:
            raise unknown_name(f"key in [asking.options] of design {asking.design!r}", name, known)
    given: dict[str, Any] = {"task": task, "catch": asking.catch, **asking.options}
    if adaptive(asking.design):
        given["seed"] = derived_seed(asking.seed, "design", prompt.id)
        contrasts = fine_contrasts(experiment.contrast)
    else:
        given["seed"] = derived_seed(asking.seed, "design", part)
        contrasts = experiment.contrast
    if asking.design == "constant":
        given["repeats"] = repeats
    try:
        return make(experiment.frequency, contrasts, **given)
    except (TypeError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"design {asking.design!r} does not take {dict(asking.options)}: {error}") from error


def _more(design: str) -> str:
    # Constant stimuli have their repeats from asking.repeats, which depends on the read-out; a ladder from its options.
    return "repeats" if design == "ladder" else ""


def adaptive(design: str) -> bool:
    """Whether a design chooses every level by the answers before it."""
    return design in ("quest_plus", "quick_csf")


def fine_contrasts(contrast: tuple[float, ...]) -> tuple[float, ...]:
    """Contrasts between the first and the last, close enough for an adaptive design."""
    low, high = math.log10(contrast[0]), math.log10(contrast[-1])
    return tuple((10 ** np.round(np.linspace(low, high, math.ceil((high - low) / _STEP - 1e-9) + 1), 6)).tolist())


class Sitting:
    """What is asked with one prompt, in rounds: each is planned from the answers to those before.

    Parameters
    ----------
    experiment : QuestionExperiment
        What is asked.
    task : {"yes_no", "two_interval"}
        Of its probe.
    index : int
        Place of the prompt.
    """

    def __init__(self, experiment: QuestionExperiment, task: str, index: int) -> None:
        asking = experiment.asking
        self.prompt = experiment.prompts[index]
        self._experiment, self._task, self._index = experiment, task, index
        #: Which reading counts; None until the pilot has shown it.
        self.readout: Readout | None = None if asking.readout == "auto" else readout_of((), asking.readout)
        self._later = asking.repeats.text - asking.repeats.p_yes if self.readout is None else 0
        repeats = asking.repeats.text if self.readout == "text" else asking.repeats.p_yes
        self._design = design_of(experiment, task, self.prompt, repeats)
        self._pilot: list[Read] = []
        self._shown: Counter[Any] = Counter()
        self._planned = self._checked = 0

    def next(self) -> list[Trial]:
        """Trials to be put now; none when everything is asked.

        Returns
        -------
        list of Trial
            Those to be asked with text are marked; as long as `readout` is undecided they come first.
        """
        asking = self._experiment.asking
        levels = self._design.ask(asking.at_once if adaptive(asking.design) else _ALL)
        if not levels and self.readout == "text" and asking.design == "constant" and self._later:
            self._design = design_of(self._experiment, self._task, self.prompt, self._later, part=1)
            self._later = 0
            levels = self._design.ask(_ALL)
        trials = [Trial(self._index, level, self._repeat(level)) for level in levels]
        return self._mark(trials)

    def hear(self, answers: list[Read]) -> None:
        """Take in answers to marked trials, and decide which reading counts once there are enough.

        Parameters
        ----------
        answers : list of Read
            With text and, where the observer gives them, probabilities.
        """
        self._pilot += answers
        if self.readout is None and len(self._pilot) >= PILOT:
            self.readout = readout_of(self._pilot, "auto")

    def tell(self, trial: Trial, answers: list[Read], polarities: list[int], delivered: float) -> None:
        """Tell the design what was answered.

        Parameters
        ----------
        trial : Trial
            As it was planned.
        answers : list of Read
            One for each order of the images; none where the image was refused.
        polarities : list of int
            Of each.
        delivered : float
            Contrast that reached the observer.
        """
        if self._experiment.asking.design == "constant":
            return
        readout = self.readout or readout_of(self._pilot, "auto")
        values = [said(each, readout, polarity) for each, polarity in zip(answers, polarities, strict=True)]
        mean = float(np.mean(values)) if values else math.nan
        self._design.tell(trial.level, None if math.isnan(mean) else mean, delivered if delivered > 0 else None)

    def estimate(self) -> dict[str, Any] | None:
        """What the design itself has found, as JSON can hold it; None of constant stimuli, which are not told."""
        if self._experiment.asking.design == "constant":
            return None
        found: dict[str, Any] = plain(asdict(self._design.estimate()))
        return found

    def _repeat(self, level: Level) -> int:
        place: Any = "catch" if level.catch else level.frequency
        if not level.catch and not adaptive(self._experiment.asking.design):
            place = level
        self._shown[place] += 1
        return self._shown[place] - 1

    def _mark(self, trials: list[Trial]) -> list[Trial]:
        asking = self._experiment.asking
        self._planned += len(trials)
        wanted = math.ceil(asking.check * self._planned - 1e-9) - self._checked
        if self.readout is None:
            wanted = max(wanted, PILOT - len(self._pilot))
        # The same images for every prompt, whatever the order of the levels.
        order = sorted(trials, key=lambda t: derived_seed(asking.seed, "check", *place(t)))
        marked = set(order[: max(wanted, 0)])
        self._checked += len(marked)
        return [replace(trial, check=trial in marked) for trial in trials]


def place(trial: Trial) -> list[Any]:
    """What an image depends on, as JSON can hold it."""
    return ["catch", trial.repeat] if trial.level.catch else [trial.level.frequency, trial.level.contrast, trial.repeat]


def decodings(experiment: QuestionExperiment, trial: Trial, readout: Readout | None) -> Mapping[str, Any]:
    """Arguments of `Decoding` for a trial.

    Parameters
    ----------
    experiment : QuestionExperiment
        Temperature and length of an answer.
    trial : Trial
        Marked ones are asked for text.
    readout : {"text", "p_yes"} or None
        What counts; None while it is undecided.

    Returns
    -------
    mapping
        "temperature", "max_tokens", "logprobs", "seed".
    """
    asking = experiment.asking
    text = trial.check or readout != "p_yes"
    sampled = asking.temperature > 0
    return {
        "temperature": asking.temperature,
        "max_tokens": asking.max_tokens if text else 1,
        "logprobs": readout != "text",
        "seed": derived_seed(asking.seed, "sampling", *place(trial)) if sampled else None,
    }
