"""Experiment files that ask in words: what is shown, in which wordings it is asked about, and how answers are read.

`psyprobe.experiment_file.read_experiment` reads such a file wherever its probe asks for answers.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, cast

from psyprobe import page_reading as reading
from psyprobe.errors import InputError
from psyprobe.experiment_file import HumanReference
from psyprobe.light.display import Display
from psyprobe.probes import AnswerProbe, load_probe
from psyprobe.probes.delivery import Delivery
from psyprobe.probes.prompts import Prompt, load_prompts
from psyprobe.stimulus.catalogue import StimulusSet, load_stimulus
from psyprobe.store import digest

READOUTS = ("auto", "text", "p_yes")
DESIGNS = ("constant", "ladder", "quest_plus", "quick_csf")
#: Forms of the psychometric function, as `psyprobe.analysis` fits them.
FUNCTIONS = ("logistic", "normal", "weibull", "gumbel_reversed", "hyperbolic_secant")

_KEYS = (
    "title",
    "source",
    "stimulus",
    "probe",
    "levels",
    "asking",
    "delivery",
    "human",
    "fit",
    "display",
    "differences",
    "assumed",
)
_ASKING = (
    "prompts",
    "suffix",
    "repeats",
    "catch",
    "readout",
    "temperature",
    "max_tokens",
    "check",
    "system",
    "design",
    "options",
    "at_once",
    "seed",
)


@dataclass(frozen=True)
class Repeats:
    """How often each level is shown, each time with another sample of noise.

    Parameters
    ----------
    text, p_yes : int
        Where answers are read as text, and where they are probabilities, which say more.
    """

    text: int = 10
    p_yes: int = 3


@dataclass(frozen=True)
class Asking:
    """How questions are put.

    Parameters
    ----------
    repeats : Repeats
        Of each level, with the design "constant".
    catch : float
        Catch trials, in which nothing is shown, as a fraction of all.
    readout : {"auto", "text", "p_yes"}
        What of an answer counts: its words, or the probability that it begins with yes. "auto" takes the probability
        wherever the model gives one and at least half of it goes to yes and no.
    temperature : float
        At which text is drawn.
    max_tokens : int
        Of an answer whose text is wanted.
    check : float
        Fraction of questions whose text is wanted although probabilities are read.
    system : str
        System text; "" for none.
    design : {"constant", "ladder", "quest_plus", "quick_csf"}
        Which levels are shown, in which order, and until when.
    options : mapping
        What the design takes besides; see `psyprobe.probes.designs`.
    at_once : int
        Questions with one prompt that an adaptive design puts before it has any of their answers.
    seed : int
        Of noise, dither, order and sampling.
    """

    repeats: Repeats
    catch: float
    readout: str
    temperature: float
    max_tokens: int
    check: float
    system: str
    design: str
    options: Mapping[str, Any]
    at_once: int
    seed: int

    def to_dict(self) -> dict[str, Any]:
        """The settings as text, numbers and lists.

        Returns
        -------
        dict
            One entry a field.
        """
        return {**asdict(self), "options": reading.plain(self.options)}


@dataclass(frozen=True)
class QuestionExperiment:
    """An experiment that asks in words, as its file describes it; `read_experiment` makes one.

    Parameters
    ----------
    name, title, source : str
        Name of the file without its ending, what it is, and where it comes from.
    stimulus : StimulusSet
        What is shown.
    probe : str
        "yes_no" or "two_interval".
    frequency, contrast : tuple of float
        Levels: cpd, and the stimulus' own kind of contrast; ascending.
    prompts : tuple of Prompt
        In which wordings it is asked.
    asking : Asking
        How questions are put.
    delivery : Delivery
        How images are rounded and sent.
    native : bool
        Draw them at the observer's own input size, over the same degrees; else at that of the stimulus file.
    refuse : bool
        Do not ask about patterns of which too little arrives; else ask all the same.
    human : HumanReference
        What people see.
    fit : mapping
        Which psychometric function is fitted: "function", "axis", "guess", "lapse".
    display : Display
        What shows the images.
    differences, assumed : tuple of str
        What departs from the source, and what the source does not say, in words.
    toml : str
        The text of the file.
    """

    name: str
    title: str
    source: str
    stimulus: StimulusSet
    probe: str
    frequency: tuple[float, ...]
    contrast: tuple[float, ...]
    prompts: tuple[Prompt, ...]
    asking: Asking
    delivery: Delivery
    native: bool
    refuse: bool
    human: HumanReference
    fit: Mapping[str, Any]
    display: Display
    differences: tuple[str, ...]
    assumed: tuple[str, ...]
    toml: str
    #: Chat models are fed by their own processors, as published or not.
    observer_input: ClassVar[str] = "normalised"
    as_published: ClassVar[bool] = False
    metric_ppd: ClassVar[float | None] = None

    @property
    def digest(self) -> str:
        """SHA-256 of what the file, its stimulus file and its prompts say, whatever their spelling and comments."""
        stimulus = {"kind": self.stimulus.kind, "parameters": reading.plain(self.stimulus.parameters)}
        # The file's table of fits says how answers are worked up, not what is asked.
        asked = {key: value for key, value in tomllib.loads(self.toml).items() if key != "fit"}
        return digest([asked, stimulus, [prompt.to_dict() for prompt in self.prompts], self.asking.to_dict()])


def question_experiment(path: Path, values: Mapping[str, Any], text: str) -> QuestionExperiment:
    """The experiment that a page describes.

    Parameters
    ----------
    path : Path
        Of the page; stimuli and prompts in files of their own are looked for beside it.
    values : mapping
        Its contents.
    text : str
        Its text.

    Returns
    -------
    QuestionExperiment
        With every value checked.

    Raises
    ------
    InputError
        One sentence with the key, its value and what is allowed.
    """
    from psyprobe.sitting import design_of

    reading.check_keys(values, _KEYS, "")
    levels = reading.table(values, "levels")
    reading.check_keys(levels, ("frequency", "contrast"), "levels")
    for name in ("frequency", "contrast"):
        if name not in levels:
            raise InputError(f"[levels] has no {name!r}; give for example {{ values = [1, 2, 4] }}")
    asking = reading.table(values, "asking")
    reading.check_keys(asking, _ASKING, "asking")
    delivery = reading.table(values, "delivery", {})
    reading.check_keys(delivery, ("bits", "dither", "native", "refuse"), "delivery")
    name = reading.text(values, "stimulus", "")
    experiment = QuestionExperiment(
        name=path.stem,
        title=reading.text(values, "title", ""),
        source=reading.text(values, "source", "", ""),
        stimulus=load_stimulus(path.parent / name if name.endswith(".toml") else name),
        probe=reading.text(values, "probe", ""),
        frequency=reading.levels(levels["frequency"], "levels.frequency", "cpd", least=1),
        contrast=reading.levels(levels["contrast"], "levels.contrast", "a fraction"),
        prompts=_prompts(asking, path.parent),
        asking=_asking(asking),
        delivery=_delivery(delivery),
        native=reading.yes_or_no(delivery, "native", "delivery", True),
        refuse=reading.yes_or_no(delivery, "refuse", "delivery", True),
        human=_human(reading.table(values, "human", {})),
        fit=_fit(reading.table(values, "fit", {})),
        display=reading.display(values.get("display", {})),
        differences=reading.texts(values.get("differences", []), "differences"),
        assumed=reading.texts(values.get("assumed", []), "assumed"),
        toml=text,
    )
    # Made once to see whether it takes its options.
    design_of(experiment, cast(AnswerProbe, load_probe(experiment.probe)).TASK, experiment.prompts[0], repeats=1)
    return experiment


def _prompts(asking: Mapping[str, Any], folder: Path) -> tuple[Prompt, ...]:
    if "prompts" not in asking:
        raise InputError('[asking] has no "prompts"; give the name of a set such as "hernandez2025", or a list')

    def beside(entry: Any) -> Any:
        return folder / entry if isinstance(entry, str) and entry.endswith(".toml") else entry

    given = asking["prompts"]
    if not isinstance(given, str | list):
        raise InputError(f"asking.prompts is {given!r}; give the name of a set, a file, or a list of questions")
    source = [beside(entry) for entry in given] if isinstance(given, list) else beside(given)
    suffix = reading.text(asking, "suffix", "asking") if "suffix" in asking else None
    return load_prompts(source, suffix=suffix)


def _asking(table: Mapping[str, Any]) -> Asking:
    design = reading.choice(table, "design", "asking", DESIGNS, "constant")
    options = reading.table(table, "options", {}, "asking")
    return Asking(
        repeats=_repeats(table.get("repeats", {})),
        catch=reading.number(table, "catch", "asking", 0.1, 0, 0.9),
        readout=reading.choice(table, "readout", "asking", READOUTS, "auto"),
        temperature=reading.number(table, "temperature", "asking", 0.0, 0, 2),
        max_tokens=reading.whole(table, "max_tokens", "asking", 16, 1, 100_000),
        check=reading.number(table, "check", "asking", 0.05, 0, 1),
        system=reading.text(table, "system", "asking", ""),
        design=design,
        options=dict(options),
        at_once=reading.whole(table, "at_once", "asking", 4, 1, 10_000),
        seed=reading.whole(table, "seed", "asking", 0, 0, 2**31 - 1),
    )


def _repeats(value: Any) -> Repeats:
    if isinstance(value, int) and not isinstance(value, bool):
        value = {"text": value, "p_yes": value}
    if not isinstance(value, Mapping):
        raise InputError(f"asking.repeats is {value!r}; give a whole number, or {{ text = 10, p_yes = 3 }}")
    reading.check_keys(value, ("text", "p_yes"), "asking.repeats")
    defaults = Repeats()
    repeats = Repeats(
        text=reading.whole(value, "text", "asking.repeats", defaults.text, 1, 100_000),
        p_yes=reading.whole(value, "p_yes", "asking.repeats", defaults.p_yes, 1, 100_000),
    )
    if repeats.p_yes > repeats.text:
        raise InputError(
            f"asking.repeats.p_yes is {repeats.p_yes} and asking.repeats.text {repeats.text}; a text says less than a "
            "probability, so give it at least as many repeats"
        )
    return repeats


def _delivery(table: Mapping[str, Any]) -> Delivery:
    bits = table.get("bits", 8)
    if bits not in (8, "float"):
        raise InputError(f'delivery.bits is {bits!r}; give 8, or "float" for observers in process that take any value')
    dither = reading.choice(table, "dither", "delivery", ("rpdf", "none"), "rpdf" if bits == 8 else "none")
    return Delivery(bits=8 if bits == 8 else None, dither=dither)


def _human(table: Mapping[str, Any]) -> HumanReference:
    from psyprobe.human import csf

    inputs = ("luminance", "area")
    reading.check_keys(table, ("model", *inputs), "human")
    model = reading.text(table, "model", "human", "watson_malo_csf")
    csf(model)
    units = {"luminance": "cd/m²", "area": "deg²"}
    return HumanReference(
        model=model,
        inputs={name: reading.positive(table, name, "human", units[name]) for name in inputs if name in table},
    )


def _fit(table: Mapping[str, Any]) -> dict[str, Any]:
    reading.check_keys(table, ("function", "axis", "guess", "lapse"), "fit")
    return {
        "function": reading.choice(table, "function", "fit", FUNCTIONS, "logistic"),
        "axis": reading.choice(table, "axis", "fit", ("log", "linear"), "log"),
        "guess": _rate(table.get("guess", [0, 0.5]), "fit.guess"),
        "lapse": _rate(table.get("lapse", [0, 0.1]), "fit.lapse"),
    }


def _rate(value: Any, where: str) -> Any:
    """A fixed rate, or the two bounds between which it is fitted."""
    if reading.is_number(value) and 0 <= value < 1:
        return float(value)
    if (
        isinstance(value, list)
        and len(value) == 2
        and all(reading.is_number(entry) for entry in value)
        and 0 <= value[0] < value[1] < 1
    ):
        return (float(value[0]), float(value[1]))
    raise InputError(
        f"{where} is {value!r}; give a rate from 0 to below 1, or bounds such as [0, 0.5] to fit it within"
    )
