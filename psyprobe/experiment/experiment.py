"""An experiment: one page of TOML that says what is shown, what is asked and what people would see.

Reading is strict: a key that is not known, a number that is no number and a level that the stimulus
does not have are errors: one line that names file, key, value and what is allowed. Which tables
count is for the probe to say.
"""

from __future__ import annotations

import itertools
import math
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin

import numpy as np
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SkipValidation,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from psyprobe.errors import InputError, PsyprobeError, unknown_name
from psyprobe.experiment.prompts import Prompt, load_prompts
from psyprobe.files.output import digest, plain, toml_text
from psyprobe.human.reference import Reference, is_number, load_reference
from psyprobe.light.display import Display
from psyprobe.light.screen import display_of
from psyprobe.stimulus.catalogue import (
    PageRow,
    StimulusSet,
    list_pages,
    load_stimulus,
    read_levels,
    read_page,
    stimulus_set,
)
from psyprobe.stimulus.specification import Specification, level_of

#: Conditions that an experiment may have: every level with every other, in every variant.
_MOST_CONDITIONS = 1_000_000


class Section(BaseModel):
    """A table whose keys are all known."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, arbitrary_types_allowed=True
    )


def folder_of(info: ValidationInfo) -> Path:
    """Of the page that is read: files that it names lie beside it."""
    return Path((info.context or {})["folder"])


def ascending(name: str, value: Any) -> tuple[float, ...]:
    """Levels as the catalogue writes them, {values} or {from, to, n, scale}; checked to ascend."""
    found = read_levels(name, value)
    if not (np.diff(found) > 0).all():
        raise InputError(f"{name} are {found.tolist()}; give levels in ascending order")
    return tuple(found.tolist())


Levels = Annotated[
    tuple[float, ...],
    BeforeValidator(lambda value, info: ascending(str(info.field_name), value)),
]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Whole = Annotated[int, Field(ge=1, le=100_000)]
Seed = Annotated[int, Field(ge=0, le=2**31 - 1)]


class Change(Section):
    """How a test comes of its reference."""

    #: A numeric parameter of the stimulus.
    parameter: str
    #: increment, deg: added to the reference's value; weber: a fraction of it; octaves: a power of
    #: two of it.
    unit: Literal["increment", "deg", "weber", "octaves"] = "increment"
    levels: Levels


class Difference(Change):
    """In what test and reference differ; without it the reference is the uniform background."""

    #: Another difference, asked of the same references: the ratio of the two just noticeable ones
    #: needs no criterion.
    against: Change | None = None


def _anchor(value: Any) -> Any:
    if value in ("detection", "contrast") or (is_number(value) and 0 < value <= 1):
        return value if isinstance(value, str) else float(value)
    raise InputError(
        f"score.anchor is {value!r}; give 'detection', 'contrast', or a contrast up to 1 that "
        "is told from none"
    )


class Score(Section):
    """Where along the human curve an observer is scored, and by what."""

    #: Factors on the human threshold or sensitivity.
    multiplier: Levels | None = None
    multiplier_of: Literal["threshold", "sensitivity"] = "threshold"
    #: Only levels above or below this one are scored, in the unit of the first level.
    above: Positive | None = None
    below: Positive | None = None
    #: The response that is scored; "angular_float32" is S_ac with the rounding errors of the
    #: published code.
    measure: Literal["angular", "angular_float32", "cosine", "l1", "l2"] = "angular"
    #: The response at which a difference is just noticeable is that to another pair: "detection",
    #: the target at human detection threshold (castleCSF) against none; a number, the target at it;
    #: "contrast", 1.1 times the contrast.
    anchor: Annotated[Literal["detection", "contrast"] | float | None, BeforeValidator(_anchor)] = (
        None
    )
    #: How a matching experiment finds the matched contrast; see `psyprobe.analysis.match_contrast`.
    method: Literal["crossing", "bracket"] = "crossing"


class Feeding(Section):
    """How the observer is fed."""

    #: By its own normalisation, or with drive values as they are.
    input: Literal["normalised", "raw"] = "normalised"
    #: Models as the paper ran them: masked, or sampled.
    as_published: bool = False
    #: What a metric is told, where it is not the pixels per degree of the stimulus, as in published
    #: runs.
    metric_ppd: Positive | None = Field(default=None, description="pixels per degree")


class Repeats(Section):
    """How often each level is shown, each time with another sample of noise."""

    #: Where answers are read as text.
    text: Whole = 10
    #: Where they are probabilities, which say more.
    p_yes: Whole = 3

    @model_validator(mode="after")
    def _in_proportion(self) -> Repeats:
        if self.p_yes > self.text:
            raise InputError(
                f"asking.repeats.p_yes is {self.p_yes} and asking.repeats.text {self.text}; a "
                "text says less than a "
                "probability, so give it at least as many repeats"
            )
        return self


class ExampleTrial(Section):
    """An example that goes before a question: a pattern and the answer to it."""

    #: 0 shows nothing.
    contrast: Annotated[float, Field(ge=0, le=1)]
    #: Of the other level; the first that is asked about without it.
    level: float | None = None
    answer: str


class Asking(Section):
    """How questions are put in words."""

    #: In which wordings: the name of a set, a ``.toml`` file, or a list of questions.
    prompts: tuple[Prompt, ...]
    #: Put behind every text in place of the set's own suffix.
    suffix: str | None = None
    repeats: Repeats = Repeats()
    #: Catch trials, in which nothing is shown, as a fraction of all.
    catch: Annotated[float, Field(ge=0, le=0.9)] = 0.1
    #: What of an answer counts: its words, or the probability that it begins with yes; "auto" takes
    #: the probability wherever the model gives one and at least half of it goes to yes and no.
    readout: Literal["auto", "text", "p_yes"] = "auto"
    #: At which text is drawn.
    temperature: Annotated[float, Field(ge=0, le=2)] = 0.0
    #: Of an answer whose text is wanted.
    max_tokens: Whole = 16
    #: Fraction of questions whose text is wanted although probabilities are read.
    check: Annotated[float, Field(ge=0, le=1)] = 0.05
    #: System text; "" for none.
    system: str = ""
    #: Only the likeliest tokens that have this probability together are drawn from.
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    #: How long a reasoning model thinks, in its server's words.
    reasoning_effort: str | None = None
    #: "words" for a JSON object whose one key "answer" is one of the words of the prompt, or the
    #: form itself as the chat-completions protocol has it.
    response_format: Literal["words"] | dict[str, Any] | None = None
    #: What a server is sent besides.
    extra_body: dict[str, Any] | None = None
    #: Questions with answers that go before each question.
    examples: tuple[ExampleTrial, ...] = ()
    #: Which levels are shown, in which order, and until when.
    design: Literal["constant", "ladder", "quest_plus", "quick_csf"] = "constant"
    #: What the design takes besides; see `psyprobe.probes.designs`.
    options: dict[str, Any] = Field(default_factory=dict)
    #: Questions with one prompt that an adaptive design puts before it has any of their answers.
    at_once: Annotated[int, Field(ge=1, le=10_000)] = 4
    #: Levels of the page that stay at one value: questions in words are over one level.
    hold: dict[str, Annotated[float, Field(allow_inf_nan=False)]] = Field(default_factory=dict)
    #: Of noise, dither, order and sampling.
    seed: Seed = 0

    @model_validator(mode="before")
    @classmethod
    def _with_suffix(cls, values: Any, info: ValidationInfo) -> Any:
        if not isinstance(values, dict) or "prompts" not in values:
            return values
        given = values["prompts"]
        suffix = values.get("suffix")
        if not isinstance(given, str | list):
            raise InputError(
                f"asking.prompts is {given!r}; give the name of a set, a file, or a list of "
                "questions"
            )
        folder = folder_of(info)

        def beside(entry: Any) -> Any:
            return folder / entry if isinstance(entry, str) and entry.endswith(".toml") else entry

        source = [beside(entry) for entry in given] if isinstance(given, list) else beside(given)
        prompts = load_prompts(source, suffix=suffix if isinstance(suffix, str) else None)
        return {**values, "prompts": prompts}

    def told(self) -> dict[str, Any]:
        """All but the prompts, and what is not set of that which few servers take, as JSON can hold
        it.
        """
        rare = ("top_p", "reasoning_effort", "response_format", "extra_body", "examples", "hold")
        unset = {name for name in rare if not getattr(self, name)}
        return dict(plain(self.model_dump(exclude={"prompts", *unset})))

    @field_validator("examples", mode="before")
    @classmethod
    def _listed(cls, value: Any) -> Any:
        return tuple(value) if isinstance(value, list) else value

    @field_validator("repeats", mode="before")
    @classmethod
    def _of_both(cls, value: Any) -> Any:
        if isinstance(value, int) and not isinstance(value, bool):
            return {"text": value, "p_yes": value}
        if not isinstance(value, dict | Repeats):
            raise InputError(
                f"asking.repeats is {value!r}; give a whole number, or {{ text = 10, p_yes = 3 }}"
            )
        return value


class Sending(Section):
    """How images are rounded and sent to observers that answer in words."""

    #: Bits a channel; "float" for observers in process that take any value.
    bits: Literal[8, "float"] = 8
    #: Noise before rounding; without it "rpdf" where bits is 8, none for floats.
    dither: Literal["rpdf", "tpdf", "none"] | None = None
    #: Draw at the observer's own input size, over the same degrees; else at that of the stimulus.
    native: bool = True
    #: Do not ask about patterns of which too little arrives; else ask all the same.
    refuse: bool = True


#: A fixed rate, or the two bounds between which it is fitted.
def _rate(value: Any, info: ValidationInfo) -> Any:
    numbers = value if isinstance(value, list | tuple) else [value]
    rates = all(is_number(number) and 0 <= number < 1 for number in numbers)
    if rates and len(numbers) == 1 and numbers is not value:
        return float(value)
    if rates and len(numbers) == 2 and numbers[0] < numbers[1]:
        return (float(numbers[0]), float(numbers[1]))
    raise InputError(
        f"fit.{info.field_name} is {value!r}; give a rate from 0 to below 1, or bounds such as "
        "[0, 0.5] to fit it "
        "within"
    )


Rate = Annotated[float | tuple[float, float], BeforeValidator(_rate)]


class Fit(Section):
    """Which psychometric function is fitted."""

    function: Literal["logistic", "normal", "weibull", "gumbel_reversed", "hyperbolic_secant"] = (
        "logistic"
    )
    #: Of contrast.
    axis: Literal["log", "linear"] = "log"
    guess: Rate = (0.0, 0.5)
    lapse: Rate = (0.0, 0.1)


#: Long enough for a judge that reasons first; one that says a word and stops takes no more for it.
JUDGE_TOKENS = 1024


class Judging(Section):
    """Who reads what rules leave open."""

    #: As `load_observer` takes it.
    observer: str
    repeats: Whole = 1
    temperature: Annotated[float, Field(ge=0, le=2)] = 0.0
    #: Where a reply is cut off, reasoning included.
    max_tokens: Whole = JUDGE_TOKENS
    #: What `load_observer` takes besides, such as base_url.
    options: dict[str, Any] = {}


def _stimulus(value: Any, info: ValidationInfo) -> StimulusSet:
    folder = folder_of(info)
    if isinstance(value, Mapping):
        return stimulus_set({"title": "stimulus", **value}, "stimulus", folder)
    if not isinstance(value, str):
        raise InputError(
            f"stimulus is {value!r}; give text, or a table with a kind and its parameters"
        )
    return load_stimulus(folder / value if value.endswith(".toml") else value)


def _probe(value: str, info: ValidationInfo) -> str:
    """The name of a probe; a Python file of the user's is looked for beside the page."""
    file, colon, attribute = value.rpartition(":")
    if not colon or not file.endswith(".py"):
        return value
    return f"{(folder_of(info) / file).resolve()}:{attribute}"


def _items(value: Any, info: ValidationInfo) -> Path:
    if not isinstance(value, str):
        raise InputError(f"items is {value!r}; give the folder that holds them, as text")
    return folder_of(info) / value


def _levels(value: Any, info: ValidationInfo) -> Any:
    if not isinstance(value, Mapping):
        return value
    stimulus = info.data.get("stimulus")
    units = (
        {} if stimulus is None else {name: level_of(stimulus.spec(), name).unit for name in value}
    )
    return {
        name: ascending(f"levels.{name} ({units.get(name, '')})", entry)
        for name, entry in value.items()
    }


def _variants(value: Any) -> Any:
    if not isinstance(value, Mapping):
        return value
    for name, entry in value.items():
        if not isinstance(entry, list) or not all(is_number(each) for each in entry):
            raise InputError(
                f"variants.{name} is {entry!r}; give a list of numbers, without the unit"
            )
    return {name: tuple(entry) for name, entry in value.items()}


def _human(value: Any, info: ValidationInfo) -> Reference:
    if not isinstance(value, Mapping):
        raise InputError(f"human is {value!r}; it must be a table")
    return load_reference(value, folder_of(info))


def _display(value: Any, info: ValidationInfo) -> Display:
    if isinstance(value, str):
        return Display.preset(value)
    if not isinstance(value, Mapping):
        raise InputError(f"display is {value!r}; give a table [display] or the name of a preset")
    for key, entry in value.items():
        if isinstance(entry, str) and key not in ("eotf", "primaries", "table", "spectra", "cmfs"):
            raise InputError(f"display.{key} is the text {entry!r}; give a number without a unit")
    return display_of(value, folder_of(info))


def _sentences(value: Any, info: ValidationInfo) -> Any:
    if not isinstance(value, list) or not all(isinstance(entry, str) for entry in value):
        raise InputError(f"{info.field_name} is {value!r}; give a list of sentences")
    return tuple(value)


Sentences = Annotated[tuple[str, ...], BeforeValidator(_sentences)]


class Page(Section):
    """What stands on a page; see docs/experiments.md for an example of each table."""

    title: str
    source: str = ""
    #: A catalogue name, a ``.toml`` file beside the page, or a table with a kind and its
    #: parameters.
    stimulus: Annotated[StimulusSet | None, BeforeValidator(_stimulus)] = None
    #: The folder of a benchmark's items, in place of a stimulus.
    items: Annotated[Path | None, BeforeValidator(_items)] = None
    #: How the observer is asked; see `psyprobe list probes`.
    probe: Annotated[str, AfterValidator(_probe)]
    #: Any numeric parameters of the stimulus, each with its values.
    levels: Annotated[dict[str, tuple[float, ...]], BeforeValidator(_levels)] = Field(
        default_factory=dict
    )
    difference: Difference | None = None
    #: Parameters that vary besides the levels: every combination is shown, and responses are
    #: averaged.
    variants: Annotated[dict[str, tuple[float, ...]], BeforeValidator(_variants)] = Field(
        default_factory=dict
    )
    human: Annotated[Reference | None, SkipValidation, BeforeValidator(_human)] = None
    score: Score = Score()
    display: Annotated[Display, BeforeValidator(_display)] = Display()
    observer: Feeding = Feeding()
    asking: Asking | None = None
    delivery: Sending = Sending()
    fit: Fit = Fit()
    judge: Judging | None = None
    #: What a probe takes besides; the probe says what.
    options: dict[str, Any] = Field(default_factory=dict)
    #: Keys that were set otherwise than in the file, with what they were there; `with_settings`
    #: keeps them.
    changed: dict[str, Any] = Field(default_factory=dict)
    #: What departs from the source, and what the source does not say, in words.
    differences: Sentences = ()
    assumed: Sentences = ()


class Experiment(Page):
    """An experiment as its page describes it, every value checked; `read_experiment` makes one."""

    #: Name of the file without its ending, and the folder that it lies in.
    name: str
    folder: Path
    #: The text of the file.
    toml: str
    #: Show only what the score needs, and nothing that is for figures alone.
    score_only: bool = False
    #: Which of the variants this is; none where it stands for all.
    variant: dict[str, float] = Field(default_factory=dict)

    @property
    def digest(self) -> str:
        """SHA-256 of what the page and the files that it names say, whatever their spelling and
        comments.
        """
        # The table of fits says how answers are worked up, not what is asked.
        page = {key: value for key, value in tomllib.loads(self.toml).items() if key != "fit"}
        stimulus = None if self.stimulus is None else plain(self.stimulus.content())
        prompts = (
            [] if self.asking is None else [prompt.to_dict() for prompt in self.asking.prompts]
        )
        asking = {} if self.asking is None else self.asking.told()
        human = "" if self.human is None else self.human.digest
        return digest([page, stimulus, self.variant, prompts, asking, human])

    @property
    def shown(self) -> StimulusSet:
        """The stimulus, which the page must name.

        Raises
        ------
        InputError
            It names none.
        """
        if self.stimulus is None:
            raise InputError(
                f"{self.name}: there is no 'stimulus'; give a catalogue name, a file, or a kind"
            )
        return self.stimulus

    def spec(self, **levels: float) -> Specification:
        """The stimulus of this variant at some levels."""
        return self.shown.spec(**{**self.variant, **levels})

    def with_variants(self, variants: Mapping[str, Sequence[float]]) -> Experiment:
        """The experiment with other variants: ``{"phase": [0, 90, 180, 270], "orientation": [0,
        45]}``, deg.

        Raises
        ------
        UnknownNameError
            The stimulus has no such parameter, or it is a level of the experiment.
        InputError
            A parameter has no value or one twice, or a value is not allowed.

        Examples
        --------
        >>> varied = read_experiment("gabor_achromatic").with_variants({"phase": [0, 90], "orientation": [0, 45, 90]})
        >>> len(varied.expanded())
        6
        """
        free = self.free_parameters()
        for name, values in variants.items():
            if name not in free:
                raise unknown_name(f"parameter of {self.shown.name} to vary", name, free)
            if not values or len(set(values)) != len(values):
                raise InputError(
                    f"variants of {name} are {list(values)}; give at least one value, each once"
                )
        varied = self.model_copy(
            update={"variants": {name: tuple(values) for name, values in variants.items()}}
        )
        varied.check_conditions()
        for each in varied.expanded():
            with in_file(f"{self.name}, variant {variant_label(each.variant)}"):
                each.spec()
        return varied

    def with_settings(self, settings: Mapping[str, Any]) -> Experiment:
        """The experiment with other values of any keys of its page.

        Parameters
        ----------
        settings : mapping of str to value
            By key, with the tables that it stands in: ``{"asking.temperature": 1}``.

        Raises
        ------
        InputError, UnknownNameError
            As for the page.

        Examples
        --------
        >>> warm = read_experiment("hernandez2025").with_settings({"asking.temperature": 1, "levels.contrast.n": 8})
        >>> warm.asking.temperature, len(warm.levels["contrast"]), warm.changed
        (1.0, 8, {'asking.temperature': 0, 'levels.contrast.n': 12})
        """
        page = tomllib.loads(self.toml)
        changed = dict(page.get("changed", {}))
        for key, value in settings.items():
            *tables, last = key.split(".")
            table = page
            for name in tables:
                table = table.setdefault(name, {})
                if not isinstance(table, dict):
                    raise InputError(
                        f"{self.name}: {key!r} cannot be set, since {name} is no table; set "
                        f"{name} itself"
                    )
            changed.setdefault(key, table.get(last, ""))
            table[last] = value
        page["changed"] = changed
        with in_file(self.name):
            return _experiment(page, self.name, self.folder, toml_text(page))

    def check_conditions(self) -> None:
        """Refuse more conditions than anybody waits for, before they are counted out."""
        levels = [
            *self.levels.values(),
            *([] if self.difference is None else [self.difference.levels]),
        ]
        conditions = math.prod(map(len, [*levels, *self.variants.values()]))
        if conditions > _MOST_CONDITIONS:
            raise InputError(
                f"levels and variants make {conditions:,} conditions; give fewer, up to "
                f"{_MOST_CONDITIONS:,} in all"
            )

    def free_parameters(self) -> list[str]:
        """Numeric parameters of the stimulus that are no levels of the experiment, and can vary.

        Examples
        --------
        >>> read_experiment("noise_achromatic").free_parameters()
        ['luminance', 'bandwidth', 'exponent', 'edge', 'seed']
        """
        spec = self.shown.spec()
        derived = {name: spec.derived_levels[name].parameter for name in spec.derived_levels}
        taken = {
            *self.levels,
            "contrast",
            *derived,
            *(derived[name] for name in self.levels if name in derived),
        }
        return [name for name in spec.levels() if name not in taken]

    def expanded(self) -> tuple[Experiment, ...]:
        """One experiment for each combination of variants, in the order in which they are run;
        itself without any.
        """
        if not self.variants or self.variant:
            return (self,)
        every = itertools.product(*self.variants.values())
        return tuple(
            self.model_copy(update={"variant": dict(zip(self.variants, each, strict=True))})
            for each in every
        )


def variant_label(variant: Mapping[str, float]) -> str:
    """A variant in words.

    Examples
    --------
    >>> variant_label({"phase": 90, "orientation": 45})
    'phase 90, orientation 45'
    """
    return ", ".join(f"{name} {value:g}" for name, value in variant.items())


def read_experiment(name_or_path: str | Path) -> Experiment:
    """Read an experiment of the catalogue, or a file of one's own.

    Parameters
    ----------
    name_or_path : str or Path
        A catalogue name, or the path of a ``.toml`` file.

    Raises
    ------
    InputError
        One sentence with the file's name, the key, its value and what is allowed.

    Examples
    --------
    >>> experiment = read_experiment("gabor_achromatic")
    >>> {name: len(values) for name, values in experiment.levels.items()}
    {'frequency': 20, 'contrast': 20}
    """
    path, values = read_page("experiments", name_or_path)
    with in_file(str(name_or_path)):
        return _experiment(values, path.stem, path.parent, path.read_text(encoding="utf-8"))


def experiment_of(text: str, name: str, folder: Path) -> Experiment:
    """The experiment whose page is a text, as a result holds it.

    Parameters
    ----------
    text : str
        The page.
    name : str
        Of the experiment.
    folder : Path
        In which files that the page names are looked for.

    Raises
    ------
    InputError
        As `read_experiment`.
    """
    with in_file(name):
        try:
            values = tomllib.loads(text)
        except ValueError as error:
            raise InputError(f"the page is no TOML: {error}") from None
        return _experiment(values, name, folder, text)


def _experiment(values: dict[str, Any], name: str, folder: Path, text: str) -> Experiment:
    with one_line(Page):
        if "experiments" in values:
            raise InputError(
                "this is a suite of several experiments; read it with read_suite, or name one "
                "of them"
            )
        page = Page.model_validate(values, context={"folder": folder})
        parts = {each: getattr(page, each) for each in page.model_fields_set}
        read = Experiment.model_construct(**parts, name=name, folder=folder, toml=text)
        read.check_conditions()
        for change in () if read.difference is None else (read.difference, read.difference.against):
            if change is not None:
                level_of(read.shown.spec(), change.parameter)
        return read.with_variants(read.variants) if read.variants else read


class _Suite(Section):
    title: str
    source: str = ""
    experiments: list[str]


def read_suite(name_or_path: str | Path) -> tuple[Experiment, ...]:
    """Read all experiments of a suite, or the one experiment of any other page.

    A suite has ``title``, ``source`` and ``experiments``: a list of catalogue names, or of paths of
    files beside it.

    Parameters
    ----------
    name_or_path : str or Path
        As for `read_experiment`.

    Raises
    ------
    InputError
        If the suite lists nothing, or a name twice; or as `read_experiment`.

    Examples
    --------
    >>> len(read_suite("cai2025")), len(read_suite("gabor_achromatic"))
    (9, 1)
    """
    path, values = read_page("experiments", name_or_path)
    if "experiments" not in values:
        return (read_experiment(name_or_path),)
    with in_file(str(name_or_path)), one_line(_Suite):
        names = _Suite.model_validate(values).experiments
        if not names or len(set(names)) != len(names):
            raise InputError(f"experiments is {names!r}; list at least one, each once")
    return tuple(
        read_experiment(path.parent / name if name.endswith(".toml") else name) for name in names
    )


def is_suite(name_or_path: str | Path) -> bool:
    """Tell a suite of experiments from the page of one.

    Examples
    --------
    >>> is_suite("cai2025"), is_suite("gabor_achromatic")
    (True, False)
    """
    return "experiments" in read_page("experiments", name_or_path)[1]


def list_experiments() -> list[PageRow]:
    """List the experiments and suites of the catalogue, those of installed packages included.

    Examples
    --------
    >>> [row.title for row in list_experiments() if row.name == "area"]
    ['Contrast sensitivity over area']
    """
    return list_pages("experiments")


#: What is wanted, by the kind of error that pydantic tells.
_WANTED = {
    "string_type": "text",
    "bool_type": "true or false",
    "model_type": "a table",
    "model_attributes_type": "a table",
    "dict_type": "a table",
    "mapping_type": "a table",
    "float_type": "a number{unit}, without the unit",
    "finite_number": "a finite number{unit}",
    "int_type": "a whole number",
    "tuple_type": "a list",
    "list_type": "a list",
}


@contextmanager
def one_line(page: type[BaseModel]) -> Iterator[None]:
    """Turn what a schema finds wrong into our one line; of several slips the first."""
    try:
        yield
    except ValidationError as error:
        # An unknown key is the likeliest cause of one that is missing.
        found = sorted(error.errors(), key=lambda each: each["type"] != "extra_forbidden")
        raise _slip(page, found[0]) from None


@contextmanager
def in_file(name: str) -> Iterator[None]:
    """Put the name of a file, or of what is in it, in front of what is wrong with it, where it is
    not there yet.
    """
    try:
        yield
    except PsyprobeError as error:
        if str(error).startswith(name):
            raise
        raise type(error)(f"{name}: {error}") from error


def _slip(page: type[BaseModel], error: ErrorDetails) -> PsyprobeError:
    # Where a key takes several kinds, the kind that failed comes last.
    *tables, key = (
        str(part) for part in error["loc"] if not re.fullmatch(r"(literal|dict)\[.*\]", str(part))
    )
    where = ".".join(tables)
    place = ".".join([*tables, key])
    owner = _table(page, tables)
    kind = error["type"]
    value = error["input"]
    original = error.get("ctx", {}).get("error")
    if isinstance(original, PsyprobeError):
        return original
    if kind == "extra_forbidden":
        return unknown_name(f"key in [{where}]" if where else "key", key, owner.model_fields)
    if kind == "missing":
        return InputError(
            f"[{where}] has no {key!r}; give it" if where else f"there is no {key!r}; give it"
        )
    field = owner.model_fields.get(key)
    return InputError(f"{place} is {value!r}; give {_wanted(kind, field, error.get('ctx', {}))}")


def _table(page: type[BaseModel], tables: list[str]) -> type[BaseModel]:
    for name in tables:
        parts = _parts(page.model_fields.get(name))
        page = next(
            (part for part in parts if isinstance(part, type) and issubclass(part, BaseModel)), page
        )
    return page


def _parts(field: FieldInfo | None) -> tuple[Any, ...]:
    return () if field is None else (field.annotation, *get_args(field.annotation))


def _wanted(kind: str, field: FieldInfo | None, context: dict[str, Any]) -> str:
    if kind == "literal_error":
        kinds = _parts(field)
        choices = [
            repr(argument)
            for part in kinds
            if get_origin(part) is Literal
            for argument in get_args(part)
        ]
        choices += ["a table"] * any(get_origin(part) is dict for part in kinds)
        return " or ".join(choices or [str(context["expected"])])
    constraints = field.metadata if field else ()
    limits = {
        name: getattr(constraint, name)
        for constraint in constraints
        for name in ("ge", "le")
        if hasattr(constraint, name)
    }
    unit = f" ({field.description})" if field is not None and field.description else ""
    if kind in ("greater_than", "greater_than_equal", "less_than", "less_than_equal") or (
        limits.keys() >= {"ge", "le"}
        and kind in ("int_type", "float_type", "int_from_float", "finite_number")
    ):
        number = "whole number" if int in _parts(field) else "number"
        if limits.keys() >= {"ge", "le"}:
            return f"a {number} from {limits['ge']:g} to {limits['le']:g}{unit}"
        return f"a finite {number} above 0{unit}"
    return _WANTED.get(kind, "{unit}").format(unit=unit) or "another value"
