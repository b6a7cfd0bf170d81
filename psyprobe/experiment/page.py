"""The schema of an experiment's page: its tables and keys, each checked as it is read.

Reading is strict: a key that is unknown, a number that is no number and a level that the stimulus
does not have are errors. The probe decides which tables count.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SkipValidation,
    ValidationInfo,
    field_validator,
    model_validator,
)

from psyprobe.errors import InputError
from psyprobe.experiment.draws import DRAW, LARGEST_DRAW_COUNT
from psyprobe.experiment.prompts import Prompt, load_prompts
from psyprobe.files.json_types import JsonObject
from psyprobe.files.output import plain
from psyprobe.human.reference import Reference, is_number, load_reference
from psyprobe.light.display import Display
from psyprobe.light.screen import display_of
from psyprobe.observers.decisions.recipe import Recipe
from psyprobe.stimulus.catalogue import (
    StimulusSet,
    load_stimulus,
    read_levels,
    stimulus_set,
)
from psyprobe.stimulus.specification import level_of


class Section(BaseModel):
    """A table of a page, in which unknown keys are errors."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, arbitrary_types_allowed=True
    )


def folder_of(info: ValidationInfo) -> Path:
    """Return the folder of the TOML page that is validated, where its files lie."""
    return Path((info.context or {})["folder"])


def ascending(name: str, value: Any) -> tuple[float, ...]:
    """Read levels, {values} or {from, to, n, scale}, refusing any that do not ascend."""
    levels = read_levels(name, value)
    if not (np.diff(levels) > 0).all():
        raise InputError(
            f"{name} are {levels.tolist()}; give levels in ascending order"
        )
    return tuple(levels.tolist())


def _levels_of_key(value: Any, info: ValidationInfo) -> tuple[float, ...]:
    """Convert the value of a key to levels in ascending order, or refuse it."""
    return ascending(str(info.field_name), value)


Levels = Annotated[tuple[float, ...], BeforeValidator(_levels_of_key)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1, le=100_000)]
Seed = Annotated[int, Field(ge=0, le=2**31 - 1)]


class Change(Section):
    """How a test differs from its reference."""

    #: A numeric parameter of the stimulus.
    parameter: str
    #: increment, deg: added to the reference's value; weber: a fraction of it; octaves: a power of
    #: two of it.
    unit: Literal["increment", "deg", "weber", "octaves"] = "increment"
    levels: Levels


class Difference(Change):
    """The difference of test and reference; without it the reference is the background."""

    #: Another difference from the same references: the ratio of the two just noticeable differences
    #: needs no criterion.
    against: Change | None = None


def _check_anchor(value: Any) -> Any:
    """Check score.anchor: "detection", "contrast", or a contrast above 0 and up to 1."""
    if value in ("detection", "contrast"):
        return value
    if is_number(value) and 0 < value <= 1:
        return float(value)
    raise InputError(
        f"score.anchor is {value!r}; give 'detection', 'contrast', or a contrast up to 1 that "
        "is told from none"
    )


Anchor = Annotated[
    Literal["detection", "contrast"] | float | None, BeforeValidator(_check_anchor)
]


class Score(Section):
    """Where along the human curve an observer is scored, and by which measure."""

    #: Factors on the human threshold or sensitivity.
    multiplier: Levels | None = None
    multiplier_of: Literal["threshold", "sensitivity"] = "threshold"
    #: Only levels above or below this one are scored, in the unit of the first level.
    above: Positive | None = None
    below: Positive | None = None
    #: The response that is scored; "angular_float32" is S_ac with the rounding errors of the
    #: published code.
    measure: Literal["angular", "angular_float32", "cosine", "l1", "l2"] = "angular"
    #: The pair whose response defines a just noticeable difference: "detection", the target at
    #: human detection threshold (castleCSF) against none; a number, the target at this contrast
    #: against none; "contrast", 1.1 times the contrast.
    anchor: Anchor = None
    #: How a matching experiment finds the matched contrast; see `psyprobe.analysis.match_contrast`.
    method: Literal["crossing", "bracket"] = "crossing"


class ObserverInput(Section):
    """How images reach an encoder or a metric."""

    #: Images as the observer normalises them, or drive values as they are.
    input: Literal["normalised", "raw"] = "normalised"
    #: Whether models run as in the paper: masked, or sampled.
    as_published: bool = False
    #: Resolution that a metric is given, where it is not the stimulus's, as in published runs.
    metric_ppd: Positive | None = Field(default=None, description="pixels per degree")


class Repeats(Section):
    """How often each level is shown, each time with another sample of noise."""

    #: Number of repeats where answers are read as text.
    text: Count = 10
    #: Number of repeats where answers are probabilities, which say more.
    p_yes: Count = 3

    @model_validator(mode="after")
    def _check_proportion(self) -> Repeats:
        """Check that texts have at least as many repeats as probabilities."""
        if self.p_yes > self.text:
            raise InputError(
                f"asking.repeats.p_yes is {self.p_yes} and asking.repeats.text {self.text}; a "
                "text says less than a probability, so give it at least as many repeats"
            )
        return self


class ExampleTrial(Section):
    """An example that goes before a question: what is shown, and how it is answered."""

    #: Contrast that is shown; 0 shows nothing.
    contrast: Annotated[float, Field(ge=0, le=1)]
    #: Value of the other level; by default the first that is asked about.
    level: float | None = None
    answer: str


class ExternalNoise(Section):
    """Noise in the light of every image, of the same density for every observer."""

    #: Two-sided power spectral density of the contrast, deg²; of coloured noise that at 1 cpd.
    density: Annotated[float, Field(ge=0, allow_inf_nan=False)] = Field(
        description="deg²"
    )
    #: Exponent with which the density falls with frequency; 0 is white.
    exponent: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    #: Centre of the band that the noise lies in, or its end; without it there is none.
    frequency: Positive | None = Field(default=None, description="cpd")
    #: Width of the band.
    bandwidth: Positive = Field(default=1.0, description="octaves")
    #: The noise lies about the frequency, or at all those up to it or from it on.
    passes: Literal["band", "low", "high"] = "band"


class Asking(Section):
    """How questions are put in words."""

    #: Prompts: the name of a set, a ``.toml`` file, or a list of questions.
    prompts: tuple[Prompt, ...]
    #: Text behind every question, in place of the set's suffix.
    suffix: str | None = None
    repeats: Repeats = Repeats()
    #: Fraction of catch trials, in which nothing is shown.
    catch: Annotated[float, Field(ge=0, le=0.9)] = 0.1
    #: What counts in an answer: its words, or the probability that it begins with yes; "auto" takes
    #: the probability wherever the model gives one and at least half of it goes to yes and no.
    readout: Literal["auto", "text", "p_yes"] = "auto"
    #: Temperature at which text is sampled.
    temperature: Annotated[float, Field(ge=0, le=2)] = 0.0
    #: Longest answer whose text is read.
    max_tokens: Count = 16
    #: Fraction of questions whose text is read although probabilities are.
    check: Annotated[float, Field(ge=0, le=1)] = 0.05
    #: System prompt; "" for none.
    system: str = ""
    #: Nucleus sampling: tokens are drawn from the likeliest that have this probability in total.
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    #: How long a reasoning model thinks, in its server's words.
    reasoning_effort: str | None = None
    #: "words" for a JSON object whose one key "answer" is one of the words of the prompt, or the
    #: form itself as the chat-completions protocol has it.
    response_format: Literal["words"] | JsonObject | None = None
    #: Further fields of the request to a server.
    extra_body: JsonObject | None = None
    #: Questions with answers that go before each question.
    examples: tuple[ExampleTrial, ...] = ()
    #: As on a chart, people are shown constant stimuli from the easiest on, until fewer answers at
    #: a level are right; observers that are no people are shown all.
    stop_below: Count | None = None
    #: Which levels are shown, in which order, and until when.
    design: Literal["constant", "ladder", "quest_plus", "quick_csf"] = "constant"
    #: Options of the design; see `psyprobe.probes.designs`.
    options: JsonObject = Field(default_factory=dict)
    #: How many questions with one prompt an adaptive design asks before it has their answers.
    at_once: Annotated[int, Field(ge=1, le=10_000)] = 4
    #: The level that answers are a function of; "1/" and its name where it makes the task harder.
    axis: str = "contrast"
    #: Levels of the page that stay at one value, since questions in words vary one level.
    hold: dict[str, Annotated[float, Field(allow_inf_nan=False)]] = Field(
        default_factory=dict
    )
    #: Seed of noise, dither, order and sampling.
    seed: Seed = 0

    @model_validator(mode="before")
    @classmethod
    def _load_prompts(cls, values: Any, info: ValidationInfo) -> Any:
        """Load the prompts that asking.prompts names, with asking.suffix added to each."""
        if not isinstance(values, dict) or "prompts" not in values:
            return values
        names = values["prompts"]
        if not isinstance(names, str | list):
            raise InputError(
                f"asking.prompts is {names!r}; give the name of a set, a file, or a list of "
                "questions"
            )
        folder = folder_of(info)
        entries = [
            folder / entry if str(entry).endswith(".toml") else entry
            for entry in (names if isinstance(names, list) else [names])
        ]
        suffix = values.get("suffix")
        prompts = load_prompts(
            entries if isinstance(names, list) else entries[0],
            suffix=suffix if isinstance(suffix, str) else None,
        )
        return {**values, "prompts": prompts}

    @model_validator(mode="after")
    def _check_stop(self) -> Asking:
        """Check that a chart that stops has levels of its own, each asked often enough."""
        least = self.stop_below
        if least is not None and (
            self.design != "constant" or least > self.repeats.text
        ):
            raise InputError(
                f"asking.stop_below is {least} with the design {self.design!r} and "
                f"{self.repeats.text} repeats; give at most the repeats of a level, and the design "
                "'constant'"
            )
        return self

    def settings(self) -> JsonObject:
        """Return how questions are asked, but for the prompts, as JSON values.

        Settings that few servers take are left out where they are not set.
        """
        rare = (
            "top_p",
            "reasoning_effort",
            "response_format",
            "extra_body",
            "examples",
            "hold",
            "stop_below",
        )
        unset = {name for name in rare if not getattr(self, name)}
        unset |= {"axis"} if self.axis == "contrast" else set()
        return dict(plain(self.model_dump(exclude={"prompts", *unset})))

    @field_validator("examples", mode="before")
    @classmethod
    def _as_tuple(cls, value: Any) -> Any:
        """Convert a list of examples to a tuple."""
        return tuple(value) if isinstance(value, list) else value

    @field_validator("repeats", mode="before")
    @classmethod
    def _as_repeats(cls, value: Any) -> Any:
        """Convert one number of repeats to that of texts and of probabilities alike."""
        if isinstance(value, int) and not isinstance(value, bool):
            return {"text": value, "p_yes": value}
        if not isinstance(value, dict | Repeats):
            raise InputError(
                f"asking.repeats is {value!r}; give a whole number, or {{ text = 10, p_yes = 3 }}"
            )
        return value


class ImageDelivery(Section):
    """How images are rounded and sent to observers that answer in words."""

    #: Bits of a channel; "float" for observers in process that take any value.
    bits: Literal[8, "float"] = 8
    #: Noise before rounding; without it "rpdf" where bits is 8, none for floats.
    dither: Literal["rpdf", "tpdf", "none"] | None = None
    #: Whether to draw at the observer's input size, over the same degrees, not the stimulus's size.
    native: bool = True
    #: Whether to leave out patterns of which too little arrives.
    refuse: bool = True


def _rate(value: Any, info: ValidationInfo) -> Any:
    """Check a guess or lapse rate: a fixed number, or two bounds between which it is fitted."""
    if is_number(value) and 0 <= value < 1:
        return float(value)
    if isinstance(value, list | tuple) and len(value) == 2:
        low, high = value
        if is_number(low) and is_number(high) and 0 <= low < high < 1:
            return float(low), float(high)
    raise InputError(
        f"fit.{info.field_name} is {value!r}; give a rate from 0 to below 1, or bounds such as "
        "[0, 0.5] to fit it within"
    )


Rate = Annotated[float | tuple[float, float], BeforeValidator(_rate)]


class Fit(Section):
    """Which psychometric function is fitted."""

    function: Literal[
        "logistic", "normal", "weibull", "gumbel_reversed", "hyperbolic_secant"
    ] = "logistic"
    #: Axis of contrast.
    axis: Literal["log", "linear"] = "log"
    guess: Rate = (0.0, 0.5)
    lapse: Rate = (0.0, 0.1)


#: Long enough for a judge that reasons first; a judge that says a word costs no more.
JUDGE_TOKENS = 1024


class JudgeSettings(Section):
    """The judge that reads replies that no rule reads."""

    #: Name of the judge, as `load_observer` takes it.
    observer: str
    repeats: Count = 1
    temperature: Annotated[float, Field(ge=0, le=2)] = 0.0
    #: Longest reply, reasoning included.
    max_tokens: Count = JUDGE_TOKENS
    #: Options of `load_observer`, such as base_url.
    options: JsonObject = {}


def _stimulus(value: Any, info: ValidationInfo) -> StimulusSet:
    """Load the stimulus that a TOML page names, with the noise that the page adds."""
    folder = folder_of(info)
    if isinstance(value, Mapping):
        stimulus = stimulus_set({"title": "stimulus", **value}, "stimulus", folder)
    elif isinstance(value, str):
        stimulus = load_stimulus(folder / value if value.endswith(".toml") else value)
    else:
        raise InputError(
            f"stimulus is {value!r}; give text, or a table with a kind and its parameters"
        )
    noise = info.data.get("noise")
    return stimulus.with_noise(noise.model_dump()) if noise else stimulus


def _probe(value: str, info: ValidationInfo) -> str:
    """Check a probe's name, resolving FILE.py:NAME relative to the page."""
    file, colon, attribute = value.rpartition(":")
    if not colon or not file.endswith(".py"):
        return value
    return f"{(folder_of(info) / file).resolve()}:{attribute}"


def _resolve_items(value: Any, info: ValidationInfo) -> Path:
    """Resolve the folder of benchmark items relative to the page."""
    if not isinstance(value, str):
        raise InputError(
            f"items is {value!r}; give the folder that holds them, as text"
        )
    return folder_of(info) / value


def _read_levels(value: Any, info: ValidationInfo) -> Any:
    """Convert each entry of [levels] to values in ascending order, in the stimulus's unit."""
    if not isinstance(value, Mapping):
        return value
    stimulus = info.data.get("stimulus")
    levels = {}
    for name, entry in value.items():
        unit = "" if stimulus is None else level_of(stimulus.spec(), name).unit
        levels[name] = ascending(f"levels.{name} ({unit})", entry)
    return levels


def _read_variants(value: Any) -> Any:
    """Convert each entry of [variants] to a tuple of numbers, or refuse it.

    A single number of draws stands for the first so many.
    """
    if not isinstance(value, Mapping):
        return value
    draws = value.get(DRAW)
    if isinstance(draws, int) and 1 <= draws <= LARGEST_DRAW_COUNT:
        value = {**value, DRAW: list(range(1, draws + 1))}
    for name, entry in value.items():
        if not isinstance(entry, list) or not all(map(is_number, entry)):
            raise InputError(
                f"variants.{name} is {entry!r}; give a list of numbers, without the unit"
            )
    return {name: tuple(entry) for name, entry in value.items()}


def _load_human(value: Any, info: ValidationInfo) -> Reference:
    """Load the human model or data that [human] names."""
    if not isinstance(value, Mapping):
        raise InputError(f"human is {value!r}; it must be a table")
    return load_reference(value, folder_of(info))


def _load_display(value: Any, info: ValidationInfo) -> Display:
    """Build the display of a preset's name or of the table [display]."""
    if isinstance(value, str):
        return Display.preset(value)
    if not isinstance(value, Mapping):
        raise InputError(
            f"display is {value!r}; give a table [display] or the name of a preset"
        )
    for key, entry in value.items():
        if isinstance(entry, str) and key not in (
            "eotf",
            "primaries",
            "table",
            "spectra",
            "cmfs",
        ):
            raise InputError(
                f"display.{key} is the text {entry!r}; give a number without a unit"
            )
    return display_of(value, folder_of(info))


def _read_sentences(value: Any, info: ValidationInfo) -> Any:
    """Convert a list of sentences to a tuple, refusing any other value."""
    if not isinstance(value, list) or not all(
        isinstance(entry, str) for entry in value
    ):
        raise InputError(f"{info.field_name} is {value!r}; give a list of sentences")
    return tuple(value)


def _read_decision(value: Any) -> Recipe:
    """Build the decision stage of an encoder from the table [decision]."""
    if not isinstance(value, Mapping):
        raise InputError(f"decision is {value!r}; it must be a table")
    return Recipe().changed(dict(value))


Sentences = Annotated[tuple[str, ...], BeforeValidator(_read_sentences)]


class Page(Section):
    """The tables and keys of a page; see docs/experiments.md for an example of each."""

    title: str
    source: str = ""
    #: Noise that is added to the stimulus, as its part "noise".
    noise: ExternalNoise | None = None
    #: A catalogue name, a ``.toml`` file beside the page, or a table with a kind and its
    #: parameters.
    stimulus: Annotated[StimulusSet | None, BeforeValidator(_stimulus)] = None
    #: The folder of a benchmark's items, in place of a stimulus.
    items: Annotated[Path | None, BeforeValidator(_resolve_items)] = None
    #: Name of the probe that asks the observer; see `psyprobe list probes`.
    probe: Annotated[str, AfterValidator(_probe)]
    #: Any numeric parameters of the stimulus, each with its values.
    levels: Annotated[dict[str, tuple[float, ...]], BeforeValidator(_read_levels)] = (
        Field(default_factory=dict)
    )
    difference: Difference | None = None
    #: Parameters that vary besides the levels: every combination is shown, and each is scored.
    #: "draw" is a number of joint draws of phase, position and noise.
    variants: Annotated[
        dict[str, tuple[float, ...]], BeforeValidator(_read_variants)
    ] = Field(default_factory=dict)
    human: Annotated[Reference | None, SkipValidation, BeforeValidator(_load_human)] = (
        None
    )
    score: Score = Score()
    display: Annotated[Display, BeforeValidator(_load_display)] = Display()
    observer: ObserverInput = ObserverInput()
    asking: Asking | None = None
    #: How the decision stage of an encoder is trained; observers that answer by themselves take no
    #: notice of it.
    decision: Annotated[
        Recipe | None, SkipValidation, BeforeValidator(_read_decision)
    ] = None
    delivery: ImageDelivery = ImageDelivery()
    fit: Fit = Fit()
    judge: JudgeSettings | None = None
    #: Options of the probe, which documents them.
    options: JsonObject = Field(default_factory=dict)
    #: Values in the file of keys that were set differently; `with_settings` keeps them.
    changed: JsonObject = Field(default_factory=dict)
    #: Differences from the source, and assumptions where the source is silent, in sentences.
    differences: Sentences = ()
    assumed: Sentences = ()
    #: What people reach in the task, each with its source, in sentences.
    people: Sentences = ()
