"""Track how far each photograph of a set has come, and define the steps in language.

The state of a photograph is one small JSON file. A step is known by the digest of all that goes
into it. A step that is done with that digest is not done again; when anything that goes in changes,
the digest changes, and the step and those that rest on it are done anew.

A reply is a JSON object of the form that was asked for, or there is a reason why it is none;
nothing is guessed. It may stand in a code fence, as chat models like to put it; beyond that it must
be the object alone, with all of its fields, no others, and values of the kind that was asked for.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any, Self

import numpy as np
import pydantic

from psyprobe.errors import InputError, StoreError
from psyprobe.files.images import file_digest, images_in
from psyprobe.files.json_types import JsonMapping, JsonObject
from psyprobe.files.output import json_text, make_folder, write_text
from psyprobe.files.parsing import packaged_toml
from psyprobe.tasks.mvp_bench.metrics import categories as category_table
from psyprobe.tasks.mvp_construction.manipulation import Box, image_names

# -- the state of a set

#: Steps in their order; each rests on those before it.
STEPS = (
    "caption",
    "subject",
    "behaviour",
    "background",
    "object",
    "emotion",
    "proposal",
    "image",
    "questions",
)
#: Pairs of one's own start here: those of the release, whose categories are known by their numbers,
#: end at 646.
_FIRST_NUMBER = 1001


@dataclass
class Step:
    """Outcome of a step."""

    #: Digest of the inputs.
    key: str
    #: Output; None if the step failed.
    value: JsonMapping | None = None
    #: Why the step failed; empty if it is done.
    reason: str = ""


@dataclass
class Item:
    """A photograph on its way to an image pair with questions."""

    #: Number of the image pair.
    number: int
    #: Path of the file, and its digest.
    photograph: str
    sha256: str
    #: Outcomes of the steps tried so far.
    steps: dict[str, Step] = field(default_factory=dict)
    #: Why earlier tries of a step failed, each followed by a retry.
    failures: dict[str, list[str]] = field(default_factory=dict)

    def value(self, step: str) -> JsonMapping:
        """Return the output of a step that is done."""
        return self.steps[step].value or {}

    def done(self, step: str) -> bool:
        """Tell whether a step is done for the item."""
        return step in self.steps and self.steps[step].value is not None

    @property
    def state(self) -> str:
        """The item's state in words: "complete", "failed at STEP: why" or "next: STEP"."""
        step = next((step for step in STEPS if not self.done(step)), None)
        if step is None:
            return "complete"
        return (
            f"failed at {step}: {self.steps[step].reason}"
            if step in self.steps
            else f"next: {step}"
        )


def read_set_items(folder: str | Path) -> list[Item]:
    """Read the items of a set under construction, by number."""
    items = []
    for path in sorted((Path(folder) / "items").glob("[0-9]*.json")):
        try:
            items.append(
                pydantic.TypeAdapter(Item).validate_json(path.read_bytes(), strict=True)
            )
        except (OSError, pydantic.ValidationError):
            raise StoreError(
                f"{path} is no item of a set; move it away and it is made anew"
            ) from None
    return sorted(items, key=lambda item: item.number)


def write_item(folder: Path, item: Item) -> None:
    """Write an item's state to a file, never leaving half of one."""
    path = make_folder(folder / "items") / f"{item.number}.json"
    write_text(path, json_text({**asdict(item), "state": item.state}))


def gather_items(photographs: str | Path, folder: str | Path) -> list[Item]:
    """Match photographs of a folder with their items in a set, by number.

    A photograph keeps its number when others come or go; new ones follow, in the order of their
    names.
    """
    stored = {item.sha256: item for item in read_set_items(folder)}
    number = max((item.number for item in stored.values()), default=_FIRST_NUMBER - 1)
    items: dict[str, Item] = {}
    for path in images_in(photographs):
        sha256 = file_digest(path)
        if sha256 in items:
            raise InputError(
                f"{path} and {items[sha256].photograph} are the same photograph; remove one of them"
            )
        item = stored.get(sha256)
        if item is None:
            number += 1
            item = Item(number, "", sha256)
        item.photograph = str(path)
        items[sha256] = item
    return sorted(items.values(), key=lambda item: item.number)


# -- categories and prompts

#: Kind of editing by the first word of the table of categories.
_EDITING = {"overall": "background", "partial": "part", "direct": "direct"}


@dataclass(frozen=True)
class Category:
    """One low-level category."""

    #: "B1" to "S2".
    code: str
    #: Names of the levels: "Behaviour", "Object Association".
    high: str
    low: str
    #: Kind of editing: "background" replaces all but the subject, "part" replaces a part, and
    #: "direct" alters the image by an instruction.
    editing: str


@functools.cache
def categories() -> Mapping[str, Category]:
    """Read the thirteen low-level categories of manipulation, by code.

    Examples
    --------
    >>> categories()["E2"]
    Category(code='E2', high='Emotion', low='Facial Expression', editing='direct')
    """
    columns = ["code", "high_level", "low_level", "editing_type"]
    return {
        code: Category(code, high, low, _EDITING[editing.partition(" ")[0]])
        for code, high, low, editing in category_table()[columns].itertuples(
            index=False
        )
    }


@functools.cache
def wordings() -> Mapping[str, str]:
    """Read the prompt of each step, with {names} to be filled in.

    Examples
    --------
    >>> wordings()["yes_no"]
    'Answer with yes or no.'
    """
    page = packaged_toml("psyprobe.tasks.mvp_construction", "prompts.toml")
    form = page.pop("form")
    return {**{step: row["text"].strip() for step, row in page.items()}, **form}


def fill(step: str, values: Mapping[str, str]) -> str:
    """Fill in the prompt of a step with values by name.

    Examples
    --------
    >>> fill("again", {"reason": "it is no {JSON}"})
    'An earlier reply to this could not be used: it is no {JSON}. Reply with the JSON object alone.'
    """
    names = "|".join(map(re.escape, values)) or "(?!)"
    return re.sub(rf"\{{({names})\}}", lambda match: values[match[1]], wordings()[step])


# -- replies

#: Longest text in a reply; a model that writes more has not understood.
_LONGEST = 400
_FENCE = re.compile(r"\s*```(?:json)?\s*\n(.*)\n\s*```\s*", re.DOTALL)


class UnreadReply(InputError):
    """A reply that is not what was asked for; the message says why."""


def _check_line(value: Any) -> str:
    """Check that a value is one short printable line of text, and strip it."""
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"is {_quote(value)} and no text")
    text = value.strip()
    if len(text) > _LONGEST or not text.isprintable():
        raise ValueError(f"is not one line of at most {_LONGEST} characters")
    return text


def _check_number(value: Any, info: pydantic.ValidationInfo) -> int:
    """Check that a value is a whole number from 1 to the count of things on offer."""
    count = (info.context or {})["count"]
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= count:
        raise ValueError(f"is {_quote(value)} and no number from 1 to {count}")
    return value


def _check_box(value: Any) -> list[float]:
    """Check that a value is a box of four fractions inside the image."""
    is_box = (
        isinstance(value, list)
        and len(value) == 4
        and all(type(number) in (int, float) for number in value)
    )
    if not is_box:
        raise ValueError(f"is {_quote(value)} and no list of four numbers")
    try:
        return Box(*map(float, value)).to_list()
    except (InputError, OverflowError):
        raise ValueError(f"{_quote(value)} is empty or leaves the image") from None


def _check_category(value: Any, info: pydantic.ValidationInfo) -> str:
    """Check that a value is one of the allowed category codes."""
    codes = (info.context or {})["editing"]
    if not isinstance(value, str) or value not in codes:
        raise ValueError(f"is {_quote(value)} and not one of {', '.join(codes)}")
    return value


def _check_length(low: int, high: int, things: str) -> pydantic.BeforeValidator:
    """Build a validator for lists of `low` to `high` entries."""
    count = str(low) if low == high else f"{low} to {high}"

    def check(value: Any) -> Any:
        if not isinstance(value, list) or not low <= len(value) <= high:
            raise ValueError(f"is no list of {count} {things}")
        return value

    return pydantic.BeforeValidator(check)


Text = Annotated[str, pydantic.PlainValidator(_check_line)]
Number = Annotated[int, pydantic.PlainValidator(_check_number)]
Corners = Annotated[list[float], pydantic.PlainValidator(_check_box)]


class Form(pydantic.BaseModel, extra="forbid"):
    """Form of a reply: all of its fields, and no others."""


class _Thing(Form):
    name: Text
    box: Corners


class CaptionReply(Form):
    caption: Text
    objects: Annotated[list[_Thing], _check_length(1, 50, "things")]


class SubjectReply(Form):
    subject: Number


class ValueReply(Form):
    value: Text


class BoxedReply(Form):
    value: Text | None
    box: Corners | None

    @pydantic.model_validator(mode="after")
    def _check_box_and_value(self) -> Self:
        """Check that value and box are both there or both null."""
        if (self.value is None) != (self.box is None):
            raise ValueError("value and box must both be there or both be null")
        return self


class ProposalReply(Form):
    category: Annotated[str, pydantic.PlainValidator(_check_category)]
    high_natural: Text
    high_manipulated: Text
    low_natural: Text
    low_manipulated: Text
    caption: Text
    part: Number | None
    instruction: Text | None

    @pydantic.model_validator(mode="after")
    def _check_proposal(self, info: pydantic.ValidationInfo) -> Self:
        """Check that texts differ, and part and instruction suit the category."""
        for level in ("high", "low"):
            natural = getattr(self, f"{level}_natural")
            manipulated = getattr(self, f"{level}_manipulated")
            if natural.casefold() == manipulated.casefold():
                raise ValueError(
                    f"{level}_natural and {level}_manipulated are the same"
                )
        kind = (info.context or {})["editing"][self.category]
        for name, needed in (
            ("part", kind == "part"),
            ("instruction", kind == "direct"),
        ):
            if (getattr(self, name) is not None) != needed:
                must = "given" if needed else "null"
                raise ValueError(f"{name} must be {must} for category {self.category}")
        return self


class _Choice(Form):
    question: Text
    right: Text
    wrong: Annotated[list[Text], _check_length(4, 4, "wrong answers")]

    @pydantic.model_validator(mode="after")
    def _check_options_differ(self) -> Self:
        """Check that no two options are equal."""
        options = [
            self.right,
            *self.wrong,
            *self.model_dump(include={"natural"}).values(),
        ]
        if len({option.casefold() for option in options}) < len(options):
            raise ValueError("has two options that are the same")
        return self


class _SingleChoice(_Choice):
    natural: Text
    wrong: Annotated[list[Text], _check_length(3, 3, "wrong answers")]


class QuestionsReply(Form):
    low: Text
    high: Text
    single: _SingleChoice
    cross_low: _Choice
    cross_high: _Choice

    @pydantic.model_validator(mode="after")
    def _check_levels_differ(self) -> Self:
        """Check that the questions of the two levels differ."""
        if self.low.casefold() == self.high.casefold():
            raise ValueError("the questions low and high are the same")
        return self


def read_reply(reply: str, form: type[Form], **limits: Any) -> JsonObject:
    """Read the fields of a model's JSON reply in a given form, or say what is wrong.

    Examples
    --------
    >>> read_reply('{"value": "it sleeps"}', ValueReply)
    {'value': 'it sleeps'}
    >>> read_reply('The answer is {"value": "it sleeps"}', ValueReply)
    Traceback (most recent call last):
    psyprobe.tasks.mvp_construction.steps.UnreadReply: it is no JSON object (Expecting value)
    """
    fenced = _FENCE.fullmatch(reply)
    text = fenced.group(1) if fenced else reply
    try:
        values = json.loads(
            text, object_pairs_hook=_distinct_fields, parse_constant=_refuse_constant
        )
        return form.model_validate(values, context=limits).model_dump()
    except UnreadReply:
        raise
    except pydantic.ValidationError as error:
        raise UnreadReply(_reason(error)) from None
    except (ValueError, RecursionError) as error:
        raise UnreadReply(
            f"it is no JSON object ({getattr(error, 'msg', 'it cannot be read')})"
        ) from None


def _distinct_fields(pairs: list[tuple[str, Any]]) -> JsonObject:
    """Build a JSON object, refusing a field that is there twice."""
    if len(dict(pairs)) < len(pairs):
        raise UnreadReply("a field is there twice")
    return dict(pairs)


def _refuse_constant(name: str) -> Any:
    """Refuse NaN and infinity in JSON."""
    raise UnreadReply(f"{name} is no number")


def _reason(error: pydantic.ValidationError) -> str:
    """Describe the first thing that is wrong in a reply, in a sentence for the model."""
    first = error.errors(include_url=False)[0]
    path = [
        step if isinstance(step, str) else f"number {step + 1}" for step in first["loc"]
    ]
    *outer, last = path or [""]
    around = " of ".join(reversed(outer))
    if first["type"] == "missing":
        return f"{around or 'it'} has no field {last!r}"
    if first["type"] == "extra_forbidden":
        return f"{around or 'it'} has a field {_quote(last)} that was not asked for"
    place = f"{last} of {around}" if around else last
    if first["type"] == "value_error":
        return f"{place} {first['ctx']['error']}".strip()
    return f"{place or 'it'} is no JSON object"


def _quote(value: Any) -> str:
    """Quote a value in at most 60 characters."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


# -- the steps


@dataclass(frozen=True)
class LanguageStep:
    """One question about an item."""

    #: Name of the step and of its prompt.
    name: str
    #: Whether the captioner is asked, about the image; otherwise the chat model, in words alone.
    looks: bool
    #: Form of the reply.
    form: type[Form]


def parts(item: Item) -> list[JsonObject]:
    """List the parts of an image that can be replaced, each with its box.

    These are the grounded things, the object at hand and the face.
    """
    things = [dict(row) for row in item.value("caption")["objects"]]
    for step, label in (("object", "{}"), ("emotion", "the face ({})")):
        value = item.value(step)
        if value["value"] is not None:
            things.append({"name": label.format(value["value"]), "box": value["box"]})
    return things


def subject(item: Item) -> JsonObject:
    """Return the main subject of an image: name and box."""
    return dict(item.value("caption")["objects"][item.value("subject")["subject"] - 1])


def _number_lines(things: Sequence[JsonMapping]) -> str:
    """List the names of things as numbered lines."""
    return "\n".join(
        f"{number}. {thing['name']}" for number, thing in enumerate(things, start=1)
    )


_ACTIONS = {
    "background": "replaces the background",
    "part": "replaces a part",
    "direct": "alters the image directly",
}


def prompt_values(
    step: str, item: Item, offered: Sequence[Category]
) -> Mapping[str, str]:
    """Collect the values that fill in a step's prompt, from an item and the categories."""
    if step == "caption":
        return {}
    caption = item.value("caption")
    if step == "subject":
        return {
            "caption": caption["caption"],
            "objects": _number_lines(caption["objects"]),
        }
    if step == "questions":
        return item.value("proposal")
    values = {"subject": subject(item)["name"]}
    if step == "proposal":
        lines = [
            f"{category.code}: {category.high}, {category.low}; {_ACTIONS[category.editing]}"
            for category in offered
        ]
        values |= {
            "caption": caption["caption"],
            "parts": _number_lines(parts(item)),
            "categories": "\n".join(lines),
        }
        for name in ("behaviour", "background", "object", "emotion"):
            values[name] = item.value(name)["value"] or "none"
    return values


def reply_limits(step: str, item: Item, offered: Sequence[Category]) -> JsonObject:
    """Return the limits of the reply to a step, as `read_reply` takes them."""
    if step == "subject":
        return {"count": len(item.value("caption")["objects"])}
    if step == "proposal":
        editing = {category.code: category.editing for category in offered}
        return {"editing": editing, "count": len(parts(item))}
    return {}


LANGUAGE_STEPS = {
    step.name: step
    for step in (
        LanguageStep("caption", True, CaptionReply),
        LanguageStep("subject", False, SubjectReply),
        LanguageStep("behaviour", True, ValueReply),
        LanguageStep("background", True, ValueReply),
        LanguageStep("object", True, BoxedReply),
        LanguageStep("emotion", True, BoxedReply),
        LanguageStep("proposal", False, ProposalReply),
        LanguageStep("questions", False, QuestionsReply),
    )
}


def question_rows(
    number: int, category: str, written: JsonMapping, seed: int
) -> list[JsonObject]:
    """Build the seven question rows about an image pair.

    Two yes/no questions, each on both images (yes on the manipulated one, no on the natural one),
    one multiple choice about the manipulated image, in which what one would answer of the natural
    one is an option, and two about both.
    """
    random = np.random.default_rng(seed)
    endings = wordings()
    questions = []
    for level in ("low", "high"):
        text = f"{written[level]}\n{endings['yes_no']}"
        questions += [
            ("y/n-s", level, "N", text, "no"),
            ("y/n-e", level, "M", text, "yes"),
        ]
    for name, kind, level, image in (
        ("single", "mcq-e", "high", "M"),
        ("cross_low", "mcq-cross", "low", "pair"),
        ("cross_high", "mcq-cross", "high", "pair"),
    ):
        choice = written[name]
        natural = [choice["natural"]] if "natural" in choice else []
        options = [choice["right"], *natural, *choice["wrong"]]
        order = random.permutation(len(options)).tolist()
        lettered = zip("ABCDE", order, strict=True)
        lines = [f"{letter}. {options[index]}" for letter, index in lettered]
        text = "\n".join([choice["question"], *lines, endings["choice"]])
        questions.append((kind, level, image, text, "ABCDE"[order.index(0)]))
    return [
        {
            "question_id": number * 10 + index,
            "id": number,
            "image": image_names(number)[image],
            "question": question,
            "answer": answer,
            "type": kind,
            "level": level,
            "category": category,
        }
        for index, (kind, level, image, question, answer) in enumerate(questions)
    ]


def json_lines(rows: Iterable[JsonMapping]) -> str:
    """Write rows as JSON lines, the form of the released question files."""
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
