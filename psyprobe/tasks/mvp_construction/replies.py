"""Reading replies: a JSON object of the form that was asked for, or a reason why it is none. Nothing is guessed.

A reply may stand in a code fence, as chat models like to put it; beyond that it must be the object alone, with all of
its fields, no others, and values of the kind that was asked for.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Self

from pydantic import BaseModel, BeforeValidator, PlainValidator, ValidationError, ValidationInfo, model_validator

from psyprobe.errors import InputError
from psyprobe.tasks.mvp_construction.manipulation import Box

#: Of a text in a reply; whoever writes more has not understood.
_LONGEST = 400
_FENCE = re.compile(r"\s*```(?:json)?\s*\n(.*)\n\s*```\s*", re.DOTALL)

Reply = dict[str, Any]
Reader = Callable[[str], Reply]


class UnreadReply(InputError):
    """A reply that is not what was asked for; the message says why."""


def read_caption(reply: str) -> Reply:
    """A caption with grounded objects: caption, objects (name, box)."""
    return _read(reply, _Caption)


def subject_reader(count: int) -> Reader:
    """What reads the number of the main subject among so many objects: subject."""
    return lambda reply: _read(reply, _Subject, {"count": count})


def read_value(reply: str) -> Reply:
    """A short answer: value.

    Examples
    --------
    >>> read_value('{"value": "it sleeps"}')
    {'value': 'it sleeps'}
    >>> read_value('The answer is {"value": "it sleeps"}')
    Traceback (most recent call last):
    psyprobe.tasks.mvp_construction.replies.UnreadReply: it is no JSON object (Expecting value)
    """
    return _read(reply, _Value)


def read_boxed(reply: str) -> Reply:
    """A short answer with its box, or null for both: value, box."""
    return _read(reply, _Boxed)


def proposal_reader(editing: Mapping[str, str], parts: int) -> Reader:
    """What reads a proposed manipulation, given how each category is edited and how many parts there are."""
    return lambda reply: _read(reply, _Proposal, {"editing": editing, "count": parts})


def read_questions_reply(reply: str) -> Reply:
    """The questions of a pair: low, high, single, cross_low, cross_high."""
    return _read(reply, _Questions)


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


class _Form(BaseModel, extra="forbid"):
    pass


class _Thing(_Form):
    name: Text
    box: Corners


class _Caption(_Form):
    caption: Text
    objects: Annotated[list[_Thing], _listed(1, 50, "things")]


class _Subject(_Form):
    subject: Number


class _Value(_Form):
    value: Text


class _Boxed(_Form):
    value: Text | None
    box: Corners | None

    @model_validator(mode="after")
    def _both(self) -> Self:
        if (self.value is None) != (self.box is None):
            raise ValueError("value and box must both be there or both be null")
        return self


class _Proposal(_Form):
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
            if _same(getattr(self, f"{level}_natural"), getattr(self, f"{level}_manipulated")):
                raise ValueError(f"{level}_natural and {level}_manipulated are the same")
        kind = (info.context or {})["editing"][self.category]
        for name, wanted in (("part", "part"), ("instruction", "direct")):
            if (getattr(self, name) is not None) != (kind == wanted):
                must = "given" if kind == wanted else "null"
                raise ValueError(f"{name} must be {must} for category {self.category}")
        return self


class _Choice(_Form):
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


class _Questions(_Form):
    low: Text
    high: Text
    single: _SingleChoice
    cross_low: _Choice
    cross_high: _Choice

    @model_validator(mode="after")
    def _levels_differ(self) -> Self:
        if _same(self.low, self.high):
            raise ValueError("the questions low and high are the same")
        return self


def _read(reply: str, form: type[_Form], context: Mapping[str, Any] | None = None) -> Reply:
    fenced = _FENCE.fullmatch(reply)
    text = fenced.group(1) if fenced else reply
    try:
        values = json.loads(text, object_pairs_hook=_once, parse_constant=_no_number)
        return form.model_validate(values, context=dict(context or {})).model_dump()
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


def _same(first: str, second: str) -> bool:
    return first.casefold() == second.casefold()


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
