"""The language steps: what each asks about an item, of whom, in which words, and how the reply is read.

A reply is a JSON object of the form that was asked for, or there is a reason why it is none; nothing is guessed. It may
stand in a code fence, as chat models like to put it; beyond that it must be the object alone, with all of its fields,
no others, and values of the kind that was asked for.
"""

from __future__ import annotations

import functools
import json
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Annotated, Any, Self

import numpy as np
from pydantic import BaseModel, BeforeValidator, PlainValidator, ValidationError, ValidationInfo, model_validator

from psyprobe.errors import InputError
from psyprobe.tasks.mvp_bench.tables import categories as category_table
from psyprobe.tasks.mvp_construction.manipulation import Box
from psyprobe.tasks.mvp_construction.set_files import Item, image_names

#: Of a text in a reply; whoever writes more has not understood.
_LONGEST = 400
_FENCE = re.compile(r"\s*```(?:json)?\s*\n(.*)\n\s*```\s*", re.DOTALL)


# -- categories and wordings -----------------------------------------------------------------------------------------

#: How the table of categories says it, and what it is called here.
_EDITING = {"overall": "background", "partial": "part", "direct": "direct"}


@dataclass(frozen=True)
class Category:
    """One low-level category."""

    #: "B1" to "S2".
    code: str
    #: Names: "Behaviour", "Object Association".
    high: str
    low: str
    #: {"background", "part", "direct"}: What is done to the image: all but the subject is replaced, a part is replaced,
    #: or the image is altered by an instruction.
    editing: str


@functools.cache
def categories() -> Mapping[str, Category]:
    """The thirteen low-level categories by code.

    Examples
    --------
    >>> categories()["E2"]
    Category(code='E2', high='Emotion', low='Facial Expression', editing='direct')
    """
    columns = ["code", "high_level", "low_level", "editing_type"]
    return {
        code: Category(code, high, low, _EDITING[editing.partition(" ")[0]])
        for code, high, low, editing in category_table()[columns].itertuples(index=False)
    }


@functools.cache
def wordings() -> Mapping[str, str]:
    """What each step asks, with {names} to be filled in; "again" is a retry's, "yes_no" and "choice" end questions.

    Examples
    --------
    >>> wordings()["yes_no"]
    'Answer with yes or no.'
    """
    page = tomllib.loads(files("psyprobe.tasks.mvp_construction").joinpath("prompts.toml").read_text(encoding="utf-8"))
    form = page.pop("form")
    return {**{step: row["text"].strip() for step, row in page.items()}, **form}


def filled(step: str, values: Mapping[str, str]) -> str:
    """The prompt of a step.

    Examples
    --------
    >>> filled("again", {"reason": "it is no {JSON}"})
    'An earlier reply to this could not be used: it is no {JSON}. Reply with the JSON object alone.'
    """
    names = "|".join(map(re.escape, values)) or "(?!)"
    return re.sub(rf"\{{({names})\}}", lambda found: values[found.group(1)], wordings()[step])


# -- replies ---------------------------------------------------------------------------------------------------------


class UnreadReply(InputError):
    """A reply that is not what was asked for; the message says why."""


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"is {_shown(value)} and no text")
    text = value.strip()
    if len(text) > _LONGEST or not text.isprintable():
        raise ValueError(f"is not one line of at most {_LONGEST} characters")
    return text


def _number(value: Any, info: ValidationInfo) -> int:
    count = (info.context or {})["count"]
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= count:
        raise ValueError(f"is {_shown(value)} and no number from 1 to {count}")
    return value


def _box(value: Any) -> list[float]:
    numbers = isinstance(value, list) and len(value) == 4
    if not numbers or any(isinstance(each, bool) or not isinstance(each, int | float) for each in value):
        raise ValueError(f"is {_shown(value)} and no list of four numbers")
    try:
        return Box(*map(float, value)).to_list()
    except (InputError, OverflowError):
        raise ValueError(f"{_shown(value)} is empty or leaves the image") from None


def _category(value: Any, info: ValidationInfo) -> str:
    known = (info.context or {})["editing"]
    if not isinstance(value, str) or value not in known:
        raise ValueError(f"is {_shown(value)} and not one of {', '.join(known)}")
    return value


def _listed(low: int, high: int, what: str) -> BeforeValidator:
    def check(value: Any) -> Any:
        if not isinstance(value, list) or not low <= len(value) <= high:
            raise ValueError(f"is no list of {low if low == high else f'{low} to {high}'} {what}")
        return value

    return BeforeValidator(check)


Text = Annotated[str, PlainValidator(_text)]
Number = Annotated[int, PlainValidator(_number)]
Corners = Annotated[list[float], PlainValidator(_box)]


class Form(BaseModel, extra="forbid"):
    pass


class _Thing(Form):
    name: Text
    box: Corners


class CaptionReply(Form):
    caption: Text
    objects: Annotated[list[_Thing], _listed(1, 50, "things")]


class SubjectReply(Form):
    subject: Number


class ValueReply(Form):
    value: Text


class BoxedReply(Form):
    value: Text | None
    box: Corners | None

    @model_validator(mode="after")
    def _both(self) -> Self:
        if (self.value is None) != (self.box is None):
            raise ValueError("value and box must both be there or both be null")
        return self


class ProposalReply(Form):
    category: Annotated[str, PlainValidator(_category)]
    high_natural: Text
    high_manipulated: Text
    low_natural: Text
    low_manipulated: Text
    caption: Text
    part: Number | None
    instruction: Text | None

    @model_validator(mode="after")
    def _fits(self, info: ValidationInfo) -> Self:
        for level in ("high", "low"):
            if len({getattr(self, f"{level}_{kind}").casefold() for kind in ("natural", "manipulated")}) == 1:
                raise ValueError(f"{level}_natural and {level}_manipulated are the same")
        kind = (info.context or {})["editing"][self.category]
        for name, wanted in (("part", "part"), ("instruction", "direct")):
            if (getattr(self, name) is not None) != (kind == wanted):
                must = "given" if kind == wanted else "null"
                raise ValueError(f"{name} must be {must} for category {self.category}")
        return self


class _Choice(Form):
    question: Text
    right: Text
    wrong: Annotated[list[Text], _listed(4, 4, "wrong answers")]

    @model_validator(mode="after")
    def _differ(self) -> Self:
        options = [self.right, *self.wrong, *self.model_dump(include={"natural"}).values()]
        if len({each.casefold() for each in options}) < len(options):
            raise ValueError("has two options that are the same")
        return self


class _SingleChoice(_Choice):
    natural: Text
    wrong: Annotated[list[Text], _listed(3, 3, "wrong answers")]


class QuestionsReply(Form):
    low: Text
    high: Text
    single: _SingleChoice
    cross_low: _Choice
    cross_high: _Choice

    @model_validator(mode="after")
    def _levels_differ(self) -> Self:
        if self.low.casefold() == self.high.casefold():
            raise ValueError("the questions low and high are the same")
        return self


def read_reply(reply: str, form: type[Form], **limits: Any) -> dict[str, Any]:
    """The fields of a reply of some form, within limits: a count of things, the categories and how each is edited.

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
        values = json.loads(text, object_pairs_hook=_once, parse_constant=_no_number)
        return form.model_validate(values, context=limits).model_dump()
    except UnreadReply:
        raise
    except ValidationError as error:
        raise UnreadReply(_reason(error)) from None
    except (ValueError, RecursionError) as error:
        raise UnreadReply(f"it is no JSON object ({getattr(error, 'msg', 'it cannot be read')})") from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) < len(pairs):
        raise UnreadReply("a field is there twice")
    return dict(pairs)


def _no_number(name: str) -> Any:
    raise UnreadReply(f"{name} is no number")


def _reason(error: ValidationError) -> str:
    """The first thing that is wrong, in a sentence that a model can be told."""
    first = error.errors(include_url=False)[0]
    *outer, last = [each if isinstance(each, str) else f"number {each + 1}" for each in first["loc"]] or [""]
    around = " of ".join(reversed(outer))
    if first["type"] == "missing":
        return f"{around or 'it'} has no field {last!r}"
    if first["type"] == "extra_forbidden":
        return f"{around or 'it'} has a field {_shown(last)} that was not asked for"
    place = f"{last} of {around}" if around else last
    if first["type"] == "value_error":
        return f"{place} {first['ctx']['error']}".strip()
    return f"{place or 'it'} is no JSON object"


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


# -- the steps -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LanguageStep:
    """One question about an item."""

    #: Of the step, and of its wording.
    name: str
    #: Whether the captioner is asked, about the image; otherwise the chat model, in words alone.
    looks: bool
    #: Of the reply.
    form: type[Form]
    #: From the item and the categories that are offered: what is filled into the wording.
    values: Callable[[Item, Sequence[Category]], Mapping[str, str]] = lambda *_: {}
    #: Likewise: the limits of the reply.
    limits: Callable[[Item, Sequence[Category]], Mapping[str, Any]] = lambda *_: {}


def parts(item: Item) -> list[dict[str, Any]]:
    """What of an image can be replaced, with its box: the grounded things, the object at hand and the face."""
    found = [dict(row) for row in item.value("caption")["objects"]]
    for step, called in (("object", "{}"), ("emotion", "the face ({})")):
        value = item.value(step)
        if value["value"] is not None:
            found.append({"name": called.format(value["value"]), "box": value["box"]})
    return found


def subject(item: Item) -> dict[str, Any]:
    """The main subject of an item: name and box."""
    return dict(item.value("caption")["objects"][item.value("subject")["subject"] - 1])


def _numbered(things: Sequence[Mapping[str, Any]]) -> str:
    return "\n".join(f"{number}. {thing['name']}" for number, thing in enumerate(things, start=1))


def _of_caption(item: Item, _: Sequence[Category]) -> Mapping[str, str]:
    caption = item.value("caption")
    return {"caption": caption["caption"], "objects": _numbered(caption["objects"])}


def _of_subject(item: Item, _: Sequence[Category]) -> Mapping[str, str]:
    return {"subject": subject(item)["name"]}


def _of_all(item: Item, offered: Sequence[Category]) -> Mapping[str, str]:
    kinds = {"background": "replaces the background", "part": "replaces a part", "direct": "alters the image directly"}
    return {
        "caption": item.value("caption")["caption"],
        "subject": subject(item)["name"],
        **{name: item.value(name)["value"] or "none" for name in ("behaviour", "background", "object", "emotion")},
        "parts": _numbered(parts(item)),
        "categories": "\n".join(f"{each.code}: {each.high}, {each.low}; {kinds[each.editing]}" for each in offered),
    }


def _of_proposal(item: Item, _: Sequence[Category]) -> Mapping[str, str]:
    names = ("high_natural", "high_manipulated", "low_natural", "low_manipulated")
    return {name: item.value("proposal")[name] for name in names}


def _objects(item: Item, _: Sequence[Category]) -> Mapping[str, Any]:
    return {"count": len(item.value("caption")["objects"])}


def _offered(item: Item, offered: Sequence[Category]) -> Mapping[str, Any]:
    return {"editing": {each.code: each.editing for each in offered}, "count": len(parts(item))}


LANGUAGE_STEPS = {
    step.name: step
    for step in (
        LanguageStep("caption", True, CaptionReply),
        LanguageStep("subject", False, SubjectReply, _of_caption, _objects),
        LanguageStep("behaviour", True, ValueReply, _of_subject),
        LanguageStep("background", True, ValueReply, _of_subject),
        LanguageStep("object", True, BoxedReply, _of_subject),
        LanguageStep("emotion", True, BoxedReply, _of_subject),
        LanguageStep("proposal", False, ProposalReply, _of_all, _offered),
        LanguageStep("questions", False, QuestionsReply, _of_proposal),
    )
}


def question_rows(number: int, category: str, written: Mapping[str, Any], seed: int) -> list[dict[str, Any]]:
    """The seven rows of questions about a pair.

    Two yes/no questions, each on both images (yes on the manipulated one, no on the natural one), one
    multiple choice about the manipulated image, in which what one would answer of the natural one is an option, and two
    about both.
    """
    random = np.random.default_rng(seed)
    found = []
    for level in ("low", "high"):
        text = f"{written[level]}\n{wordings()['yes_no']}"
        found += [("y/n-s", level, "N", text, "no"), ("y/n-e", level, "M", text, "yes")]
    for name, kind, level, image in (
        ("single", "mcq-e", "high", "M"),
        ("cross_low", "mcq-cross", "low", "pair"),
        ("cross_high", "mcq-cross", "high", "pair"),
    ):
        row = written[name]
        options = [row["right"], *([row["natural"]] if "natural" in row else []), *row["wrong"]]
        order = random.permutation(len(options)).tolist()
        lines = [f"{letter}. {options[place]}" for letter, place in zip("ABCDE", order, strict=True)]
        text = "\n".join([row["question"], *lines, wordings()["choice"]])
        found.append((kind, level, image, text, "ABCDE"[order.index(0)]))
    return [
        {
            "question_id": number * 10 + place,
            "id": number,
            "image": image_names(number)[image],
            "question": question,
            "answer": answer,
            "type": kind,
            "level": level,
            "category": category,
        }
        for place, (kind, level, image, question, answer) in enumerate(found)
    ]
