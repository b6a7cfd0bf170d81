"""The tables of an experiment's page, and what is wrong with one in a line that names key, value and what is allowed.

Which tables count is for the probe to say.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import numpy as np
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from psyprobe.errors import InputError, PsyprobeError, unknown_name
from psyprobe.experiment.prompts import Prompt, load_prompts
from psyprobe.stimulus.catalogue import read_levels


class Section(BaseModel):
    """A table whose keys are all known."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, arbitrary_types_allowed=True)


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


class Difference(Section):
    """In what test and reference differ; without it the reference is the uniform background."""

    #: A numeric parameter of the stimulus.
    parameter: str
    #: increment, deg: added to the reference's value; weber: a fraction of it; octaves: a power of two of it.
    unit: Literal["increment", "deg", "weber", "octaves"] = "increment"
    levels: Levels


class Score(Section):
    """Where along the human curve an observer is scored, and by what."""

    #: Factors on the human threshold or sensitivity.
    multiplier: Levels | None = None
    multiplier_of: Literal["threshold", "sensitivity"] = "threshold"
    #: Only levels above or below this one are scored, in the unit of the first level.
    above: Positive | None = None
    below: Positive | None = None
    #: The response that is scored; "angular_float32" is S_ac with the rounding errors of the published code.
    measure: Literal["angular", "angular_float32", "cosine", "l1", "l2"] = "angular"
    #: How a matching experiment finds the matched contrast; see `psyprobe.analysis.match_contrast`.
    method: Literal["crossing", "bracket"] = "crossing"


class Feeding(Section):
    """How the observer is fed."""

    #: By its own normalisation, or with drive values as they are.
    input: Literal["normalised", "raw"] = "normalised"
    #: Models of the zoo as the paper ran them: masked, or sampled.
    as_published: bool = False
    #: What a metric is told, where it is not the pixels per degree of the stimulus, as in published runs.
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
                f"asking.repeats.p_yes is {self.p_yes} and asking.repeats.text {self.text}; a text says less than a "
                "probability, so give it at least as many repeats"
            )
        return self


class Asking(Section):
    """How questions are put in words."""

    #: In which wordings: the name of a set, a ``.toml`` file, or a list of questions.
    prompts: tuple[Prompt, ...]
    #: Put behind every text in place of the set's own suffix.
    suffix: str | None = None
    repeats: Repeats = Repeats()
    #: Catch trials, in which nothing is shown, as a fraction of all.
    catch: Annotated[float, Field(ge=0, le=0.9)] = 0.1
    #: What of an answer counts: its words, or the probability that it begins with yes; "auto" takes the probability
    #: wherever the model gives one and at least half of it goes to yes and no.
    readout: Literal["auto", "text", "p_yes"] = "auto"
    #: At which text is drawn.
    temperature: Annotated[float, Field(ge=0, le=2)] = 0.0
    #: Of an answer whose text is wanted.
    max_tokens: Whole = 16
    #: Fraction of questions whose text is wanted although probabilities are read.
    check: Annotated[float, Field(ge=0, le=1)] = 0.05
    #: System text; "" for none.
    system: str = ""
    #: Which levels are shown, in which order, and until when.
    design: Literal["constant", "ladder", "quest_plus", "quick_csf"] = "constant"
    #: What the design takes besides; see `psyprobe.probes.designs`.
    options: dict[str, Any] = Field(default_factory=dict)
    #: Questions with one prompt that an adaptive design puts before it has any of their answers.
    at_once: Annotated[int, Field(ge=1, le=10_000)] = 4
    #: Of noise, dither, order and sampling.
    seed: Seed = 0

    @model_validator(mode="before")
    @classmethod
    def _with_suffix(cls, values: Any, info: ValidationInfo) -> Any:
        if not isinstance(values, dict) or "prompts" not in values:
            return values
        given, suffix = values["prompts"], values.get("suffix")
        if not isinstance(given, str | list):
            raise InputError(f"asking.prompts is {given!r}; give the name of a set, a file, or a list of questions")
        folder = folder_of(info)

        def beside(entry: Any) -> Any:
            return folder / entry if isinstance(entry, str) and entry.endswith(".toml") else entry

        source = [beside(entry) for entry in given] if isinstance(given, list) else beside(given)
        prompts = load_prompts(source, suffix=suffix if isinstance(suffix, str) else None)
        return {**values, "prompts": prompts}

    @field_validator("repeats", mode="before")
    @classmethod
    def _of_both(cls, value: Any) -> Any:
        if isinstance(value, int) and not isinstance(value, bool):
            return {"text": value, "p_yes": value}
        if not isinstance(value, dict | Repeats):
            raise InputError(f"asking.repeats is {value!r}; give a whole number, or {{ text = 10, p_yes = 3 }}")
        return value


class Sending(Section):
    """How images are rounded and sent to observers that answer in words."""

    #: Bits a channel; "float" for observers in process that take any value.
    bits: Literal[8, "float"] = 8
    #: Noise before rounding; without it one step where bits is 8, none for floats.
    dither: Literal["rpdf", "none"] | None = None
    #: Draw at the observer's own input size, over the same degrees; else at that of the stimulus.
    native: bool = True
    #: Do not ask about patterns of which too little arrives; else ask all the same.
    refuse: bool = True


#: A fixed rate, or the two bounds between which it is fitted.
def _rate(value: Any, info: ValidationInfo) -> Any:
    numbers = value if isinstance(value, list | tuple) else [value]
    plain = all(isinstance(each, int | float) and not isinstance(each, bool) and 0 <= each < 1 for each in numbers)
    if plain and len(numbers) == 1 and numbers is not value:
        return float(value)
    if plain and len(numbers) == 2 and numbers[0] < numbers[1]:
        return (float(numbers[0]), float(numbers[1]))
    raise InputError(
        f"fit.{info.field_name} is {value!r}; give a rate from 0 to below 1, or bounds such as [0, 0.5] to fit it "
        "within"
    )


Rate = Annotated[float | tuple[float, float], BeforeValidator(_rate)]


class Fit(Section):
    """Which psychometric function is fitted."""

    function: Literal["logistic", "normal", "weibull", "gumbel_reversed", "hyperbolic_secant"] = "logistic"
    #: Of contrast.
    axis: Literal["log", "linear"] = "log"
    guess: Rate = (0.0, 0.5)
    lapse: Rate = (0.0, 0.1)


class Judging(Section):
    """Who reads what rules leave open."""

    #: As `load_observer` takes it.
    observer: str
    repeats: Whole = 1
    temperature: Annotated[float, Field(ge=0, le=2)] = 0.0
    #: What `load_observer` takes besides, such as base_url.
    options: dict[str, Any] = {}


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
    """Put the name of the file in front of what is wrong with it, where it is not there yet."""
    try:
        yield
    except PsyprobeError as error:
        if str(error).startswith(name):
            raise
        raise type(error)(f"{name}: {error}") from error


def _slip(page: type[BaseModel], error: ErrorDetails) -> PsyprobeError:
    *tables, key = (str(part) for part in error["loc"])
    where, place = ".".join(tables), ".".join([*tables, key])
    owner = _table(page, tables)
    kind, value = error["type"], error["input"]
    original = error.get("ctx", {}).get("error")
    if isinstance(original, PsyprobeError):
        return original
    if kind == "extra_forbidden":
        return unknown_name(f"key in [{where}]" if where else "key", key, owner.model_fields)
    if kind == "missing":
        return InputError(f"[{where}] has no {key!r}; give it" if where else f"there is no {key!r}; give it")
    field = owner.model_fields.get(key)
    return InputError(f"{place} is {value!r}; give {_wanted(kind, field, error.get('ctx', {}))}")


def _table(page: type[BaseModel], tables: list[str]) -> type[BaseModel]:
    for name in tables:
        field = page.model_fields.get(name)
        inner = None if field is None else next((each for each in _parts(field.annotation) if _is_table(each)), None)
        if inner is not None:
            page = inner
    return page


def _parts(annotation: Any) -> tuple[Any, ...]:
    return (annotation, *get_args(annotation))


def _is_table(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def _wanted(kind: str, field: FieldInfo | None, context: dict[str, Any]) -> str:
    if kind == "literal_error":
        choices = [repr(each) for part in _parts(field.annotation if field else None) for each in get_args(part) or ()]
        return " or ".join(choices or [str(context["expected"])])
    limits = {name: value for each in (field.metadata if field else ()) for name, value in _limits(each)}
    unit = f" ({field.description})" if field is not None and field.description else ""
    if kind in ("greater_than", "greater_than_equal", "less_than", "less_than_equal") or (
        limits.keys() >= {"ge", "le"} and kind in ("int_type", "float_type", "int_from_float", "finite_number")
    ):
        number = "whole number" if field is not None and int in _parts(field.annotation) else "number"
        if limits.keys() >= {"ge", "le"}:
            return f"a {number} from {limits['ge']:g} to {limits['le']:g}{unit}"
        return f"a finite {number} above 0{unit}"
    return _WANTED.get(kind, "{unit}").format(unit=unit) or "another value"


def _limits(constraint: Any) -> Iterator[tuple[str, float]]:
    for name in ("ge", "le", "gt"):
        if getattr(constraint, name, None) is not None:
            yield name, getattr(constraint, name)
