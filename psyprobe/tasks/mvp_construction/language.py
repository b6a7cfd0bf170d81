"""The language steps: what each asks about an item, of whom, and how the reply is read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from psyprobe.tasks.mvp_construction.categories import Category
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
from psyprobe.tasks.mvp_construction.wording import filled


@dataclass(frozen=True)
class LanguageStep:
    """One question about an item.

    Attributes
    ----------
    name : str
        Of the step.
    looks : bool
        Whether the captioner is asked, about the image; otherwise the chat model, in words alone.
    prompt : callable
        From the item and the categories that are offered.
    reader : callable
        Likewise: gives what reads the reply.
    """

    name: str
    looks: bool
    prompt: Callable[[Item, Sequence[Category]], str]
    reader: Callable[[Item, Sequence[Category]], Reader]


def parts(item: Item) -> list[dict[str, Any]]:
    """What of an image can be replaced: the grounded things, the object at hand and the face.

    Parameters
    ----------
    item : Item
        With the steps up to the proposal done.

    Returns
    -------
    list of dict
        name and box.
    """
    found = [dict(row) for row in item.value("caption")["objects"]]
    for step, called in (("object", "{}"), ("emotion", "the face ({})")):
        value = item.value(step)
        if value["value"] is not None:
            found.append({"name": called.format(value["value"]), "box": value["box"]})
    return found


def subject(item: Item) -> dict[str, Any]:
    """The main subject of an item: name and box.

    Parameters
    ----------
    item : Item
        With the steps caption and subject done.

    Returns
    -------
    dict
    """
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
