"""The language steps: what each asks about an item, of whom, in which words, and how the reply is read."""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from psyprobe.tasks.mvp_construction.items import Item
from psyprobe.tasks.mvp_construction.replies import (
    Reader,
    proposal_reader,
    read_boxed,
    read_caption,
    read_questions_reply,
    read_value,
    subject_reader,
)


@dataclass(frozen=True)
class LanguageStep:
    """One question about an item."""

    #: Of the step.
    name: str
    #: Whether the captioner is asked, about the image; otherwise the chat model, in words alone.
    looks: bool
    #: From the item and the categories that are offered.
    prompt: Callable[[Item, Sequence[Category]], str]
    #: Likewise: gives what reads the reply.
    reader: Callable[[Item, Sequence[Category]], Reader]


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


def _numbered(names: Sequence[str]) -> str:
    return "\n".join(f"{number}. {name}" for number, name in enumerate(names, start=1))


def _about_subject(name: str) -> Callable[[Item, Sequence[Category]], str]:
    return lambda item, _: filled(name, {"subject": subject(item)["name"]})


def _proposal(item: Item, offered: Sequence[Category]) -> str:
    attributes = {
        name: item.value(name)["value"] or "none" for name in ("behaviour", "background", "object", "emotion")
    }
    kinds = {"background": "replaces the background", "part": "replaces a part", "direct": "alters the image directly"}
    return filled(
        "proposal",
        {
            "caption": item.value("caption")["caption"],
            "subject": subject(item)["name"],
            **attributes,
            "parts": _numbered([part["name"] for part in parts(item)]),
            "categories": "\n".join(f"{each.code}: {each.high}, {each.low}; {kinds[each.editing]}" for each in offered),
        },
    )


def _subject_prompt(item: Item, _: Sequence[Category]) -> str:
    caption = item.value("caption")
    names = [row["name"] for row in caption["objects"]]
    return filled("subject", {"caption": caption["caption"], "objects": _numbered(names)})


def _questions_prompt(item: Item, _: Sequence[Category]) -> str:
    proposal = item.value("proposal")
    names = ("high_natural", "high_manipulated", "low_natural", "low_manipulated")
    return filled("questions", {name: proposal[name] for name in names})


LANGUAGE_STEPS = {
    step.name: step
    for step in (
        LanguageStep("caption", True, lambda *_: filled("caption", {}), lambda *_: read_caption),
        LanguageStep(
            "subject", False, _subject_prompt, lambda item, _: subject_reader(len(item.value("caption")["objects"]))
        ),
        LanguageStep("behaviour", True, _about_subject("behaviour"), lambda *_: read_value),
        LanguageStep("background", True, _about_subject("background"), lambda *_: read_value),
        LanguageStep("object", True, _about_subject("object"), lambda *_: read_boxed),
        LanguageStep("emotion", True, _about_subject("emotion"), lambda *_: read_boxed),
        LanguageStep(
            "proposal",
            False,
            _proposal,
            lambda item, offered: proposal_reader({each.code: each.editing for each in offered}, len(parts(item))),
        ),
        LanguageStep("questions", False, _questions_prompt, lambda *_: read_questions_reply),
    )
}


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
    from psyprobe.tasks.mvp_bench.metrics import categories as table

    rows = table().to_dict("records")
    return {
        row["code"]: Category(
            row["code"], row["high_level"], row["low_level"], _EDITING[row["editing_type"].partition(" ")[0]]
        )
        for row in rows
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
