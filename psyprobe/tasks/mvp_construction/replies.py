"""Reading replies: a JSON object of the form that was asked for, or a reason why it is none. Nothing is guessed.

A reply may stand in a code fence, as chat models like to put it; beyond that it must be the object alone, with all of
its fields, no others, and values of the kind that was asked for.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping
from typing import Any

from psyprobe.errors import InputError
from psyprobe.tasks.mvp_construction.masks import Box

#: Of a text in a reply; whoever writes more has not understood.
_LONGEST = 400
_FENCE = re.compile(r"\s*```(?:json)?\s*\n(.*)\n\s*```\s*", re.DOTALL)


class UnreadReply(InputError):
    """A reply that is not what was asked for; the message says why."""


Reply = dict[str, Any]
Reader = Callable[[str], Reply]


def read_object(reply: str, fields: Collection[str]) -> Reply:
    """The JSON object that a reply is.

    Parameters
    ----------
    reply : str
        From a model.
    fields : collection of str
        Those it must have, no more and no fewer.

    Returns
    -------
    dict

    Raises
    ------
    UnreadReply
        It is none.

    Examples
    --------
    >>> read_object('{"subject": 2}', ["subject"])
    {'subject': 2}
    >>> read_object('The subject is {"subject": 2}', ["subject"])
    Traceback (most recent call last):
    psyprobe.tasks.mvp_construction.replies.UnreadReply: it is no JSON object (Expecting value)
    """
    fenced = _FENCE.fullmatch(reply)
    try:
        values = json.loads(
            fenced.group(1) if fenced else reply, object_pairs_hook=_once, parse_constant=_refused_constant
        )
    except UnreadReply:
        raise
    except (ValueError, RecursionError) as error:
        raise UnreadReply(f"it is no JSON object ({getattr(error, 'msg', 'it cannot be read')})") from None
    return _fields(values, fields, "it")


def read_caption(reply: str) -> Reply:
    """A caption with grounded objects: caption, objects (name, box).

    Parameters
    ----------
    reply : str
        From a model.

    Returns
    -------
    dict

    Raises
    ------
    UnreadReply
        It is none.
    """
    values = read_object(reply, ("caption", "objects"))
    listed = values["objects"]
    if not isinstance(listed, list) or not 1 <= len(listed) <= 50:
        raise UnreadReply("objects is no list of 1 to 50 things")
    objects = []
    for number, row in enumerate(listed, start=1):
        row = _fields(row, ("name", "box"), f"object {number}")
        objects.append({"name": _text(row["name"], f"name of object {number}"), "box": _box(row["box"])})
    return {"caption": _text(values["caption"], "caption"), "objects": objects}


def subject_reader(count: int) -> Reader:
    """Reads the number of the main subject.

    Parameters
    ----------
    count : int
        How many objects there are.

    Returns
    -------
    callable
        From a reply to a dict with subject.
    """

    def read(reply: str) -> Reply:
        values = read_object(reply, ("subject",))
        return {"subject": _number(values["subject"], count, "subject")}

    return read


def read_value(reply: str) -> Reply:
    """A short answer: value.

    Parameters
    ----------
    reply : str
        From a model.

    Returns
    -------
    dict

    Raises
    ------
    UnreadReply
        It is none.
    """
    return {"value": _text(read_object(reply, ("value",))["value"], "value")}


def read_boxed(reply: str) -> Reply:
    """A short answer with its box, or null for both: value, box.

    Parameters
    ----------
    reply : str
        From a model.

    Returns
    -------
    dict

    Raises
    ------
    UnreadReply
        It is none.
    """
    values = read_object(reply, ("value", "box"))
    if (values["value"] is None) != (values["box"] is None):
        raise UnreadReply("value and box must both be there or both be null")
    if values["value"] is None:
        return {"value": None, "box": None}
    return {"value": _text(values["value"], "value"), "box": _box(values["box"])}


def proposal_reader(editing: Mapping[str, str], parts: int) -> Reader:
    """Reads a proposed manipulation.

    Parameters
    ----------
    editing : mapping of str to str
        Kind of editing ("background", "part" or "direct") by the codes that were offered.
    parts : int
        How many parts were offered.

    Returns
    -------
    callable
    """
    texts = ("high_natural", "high_manipulated", "low_natural", "low_manipulated", "caption")

    def read(reply: str) -> Reply:
        values = read_object(reply, ("category", *texts, "part", "instruction"))
        code = values["category"]
        if not isinstance(code, str) or code not in editing:
            raise UnreadReply(f"category is {_shown(code)} and not one of {', '.join(editing)}")
        found: Reply = {"category": code, **{name: _text(values[name], name) for name in texts}}
        for level in ("high", "low"):
            if _same(found[f"{level}_natural"], found[f"{level}_manipulated"]):
                raise UnreadReply(f"{level}_natural and {level}_manipulated are the same")
        kind = editing[code]
        for name, wanted in (("part", "part"), ("instruction", "direct")):
            if (values[name] is not None) != (kind == wanted):
                must = "given" if kind == wanted else "null"
                raise UnreadReply(f"{name} must be {must} for category {code}")
        found["part"] = _number(values["part"], parts, "part") if kind == "part" else None
        found["instruction"] = _text(values["instruction"], "instruction") if kind == "direct" else None
        return found

    return read


def read_questions_reply(reply: str) -> Reply:
    """The questions of a pair: low, high, single, cross_low, cross_high.

    Parameters
    ----------
    reply : str
        From a model.

    Returns
    -------
    dict

    Raises
    ------
    UnreadReply
        It is none.
    """
    values = read_object(reply, ("low", "high", "single", "cross_low", "cross_high"))
    found: Reply = {level: _text(values[level], level) for level in ("low", "high")}
    if _same(found["low"], found["high"]):
        raise UnreadReply("the questions low and high are the same")
    for name, wrong in (("single", 3), ("cross_low", 4), ("cross_high", 4)):
        names = ("question", "right", *(("natural",) if name == "single" else ()), "wrong")
        row = _fields(values[name], names, name)
        if not isinstance(row["wrong"], list) or len(row["wrong"]) != wrong:
            raise UnreadReply(f"{name} has no list of {wrong} wrong answers")
        texts: Reply = {part: _text(row[part], f"{part} of {name}") for part in names[:-1]}
        texts["wrong"] = [_text(each, f"a wrong answer of {name}") for each in row["wrong"]]
        options = [texts["right"], *([texts["natural"]] if name == "single" else []), *texts["wrong"]]
        if len({each.casefold() for each in options}) < len(options):
            raise UnreadReply(f"two options of {name} are the same")
        found[name] = texts
    return found


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) < len(pairs):
        raise UnreadReply("a field is there twice")
    return dict(pairs)


def _refused_constant(name: str) -> Any:
    raise UnreadReply(f"{name} is no number")


def _fields(values: Any, fields: Collection[str], what: str) -> Reply:
    if not isinstance(values, dict):
        raise UnreadReply(f"{what} is no JSON object")
    for name in fields:
        if name not in values:
            raise UnreadReply(f"{what} has no field {name!r}")
    more = [name for name in values if name not in fields]
    if more:
        raise UnreadReply(f"{what} has a field {_shown(more[0])} that was not asked for")
    return values


def _text(value: Any, what: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise UnreadReply(f"{what} is {_shown(value)} and no text")
    text = value.strip()
    if len(text) > _LONGEST or not text.isprintable():
        raise UnreadReply(f"{what} is not one line of at most {_LONGEST} characters")
    return text


def _number(value: Any, count: int, what: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= count:
        raise UnreadReply(f"{what} is {_shown(value)} and no number from 1 to {count}")
    return value


def _box(value: Any) -> list[float]:
    numbers = isinstance(value, list) and len(value) == 4
    if not numbers or any(isinstance(each, bool) or not isinstance(each, int | float) for each in value):
        raise UnreadReply(f"box is {_shown(value)} and no list of four numbers")
    try:
        return Box(*map(float, value)).to_list()
    except (InputError, OverflowError):
        raise UnreadReply(f"box {_shown(value)} is empty or leaves the image") from None


def _same(first: str, second: str) -> bool:
    return first.casefold() == second.casefold()


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
