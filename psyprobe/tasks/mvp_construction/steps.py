"""How far each photograph of a set has come, and the language steps: what each asks, of whom, in
which words.

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
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Self

import numpy as np
import pydantic

from psyprobe.errors import InputError, StoreError
from psyprobe.files.images import file_digest, images_in
from psyprobe.files.output import json_text, make_folder, write_text
from psyprobe.tasks.mvp_bench.metrics import categories as category_table
from psyprobe.tasks.mvp_construction.manipulation import Box, image_names

# -- the state of a set
# ----------------------------------------------------------------------------------------------

#: In the order in which they are done; each rests on those before it.
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
    """What became of a step."""

    #: Digest of what went into it.
    key: str
    #: What came of it; None where it failed.
    value: Mapping[str, Any] | None = None
    #: Why it failed; empty where it is done.
    reason: str = ""


@dataclass
class Item:
    """A photograph on its way to an image pair with questions."""

    #: Of the image pair.
    number: int
    #: Path of the file.
    photograph: str
    #: Of the file.
    sha256: str
    #: What has been tried so far.
    steps: dict[str, Step] = field(default_factory=dict)
    #: Why earlier tries of a step failed, each of which a retry has followed.
    failures: dict[str, list[str]] = field(default_factory=dict)

    def value(self, step: str) -> Mapping[str, Any]:
        """What came of a step that is done."""
        return self.steps[step].value or {}

    def done(self, step: str) -> bool:
        """Whether a step is done."""
        return step in self.steps and self.steps[step].value is not None

    @property
    def state(self) -> str:
        """In words: "complete", "failed at STEP: why" or "next: STEP"."""
        for step in STEPS:
            if not self.done(step):
                return (
                    f"failed at {step}: {self.steps[step].reason}"
                    if step in self.steps
                    else f"next: {step}"
                )
        return "complete"


def read_set_items(folder: str | Path) -> list[Item]:
    """The items of a set under construction, by number.

    Empty where nothing was begun.
    """
    found = []
    for path in sorted((Path(folder) / "items").glob("[0-9]*.json")):
        try:
            found.append(pydantic.TypeAdapter(Item).validate_json(path.read_bytes(), strict=True))
        except (OSError, pydantic.ValidationError):
            raise StoreError(
                f"{path} is no item of a set; move it away and it is made anew"
            ) from None
    return sorted(found, key=lambda item: item.number)


def write_item(folder: Path, item: Item) -> None:
    """Write the state of an item, whole or not at all."""
    write_text(
        make_folder(folder / "items") / f"{item.number}.json",
        json_text({**asdict(item), "state": item.state}),
    )


def gather_items(photographs: str | Path, folder: str | Path) -> list[Item]:
    """The items of a folder of photographs, each with the state it has in a set.

    By number. A photograph keeps its number when others come or go; new ones follow, in the order
    of their names.
    """
    known = {item.sha256: item for item in read_set_items(folder)}
    highest = max((item.number for item in known.values()), default=_FIRST_NUMBER - 1)
    found: dict[str, Item] = {}
    for path in images_in(photographs):
        sha256 = file_digest(path)
        if sha256 in found:
            raise InputError(
                f"{path} and {found[sha256].photograph} are the same photograph; remove one of them"
            )
        if sha256 not in known:
            highest += 1
            known[sha256] = Item(highest, str(path), sha256)
        found[sha256] = known[sha256]
        found[sha256].photograph = str(path)
    return sorted(found.values(), key=lambda item: item.number)


# -- categories and wordings
# -----------------------------------------------------------------------------------------

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
    #: {"background", "part", "direct"}: What is done to the image: all but the subject is replaced,
    #: a part is replaced, or the image is altered by an instruction.
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
    """What each step asks, with {names} to be filled in; "again" is a retry's, "yes_no" and
    "choice" end questions.

    Examples
    --------
    >>> wordings()["yes_no"]
    'Answer with yes or no.'
    """
    page = tomllib.loads(
        files("psyprobe.tasks.mvp_construction")
        .joinpath("prompts.toml")
        .read_text(encoding="utf-8")
    )
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


# -- replies
# ---------------------------------------------------------------------------------------------------------

#: Of a text in a reply; whoever writes more has not understood.
_LONGEST = 400
_FENCE = re.compile(r"\s*```(?:json)?\s*\n(.*)\n\s*```\s*", re.DOTALL)


class UnreadReply(InputError):
    """A reply that is not what was asked for; the message says why."""


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"is {_shown(value)} and no text")
    text = value.strip()
    if len(text) > _LONGEST or not text.isprintable():
        raise ValueError(f"is not one line of at most {_LONGEST} characters")
    return text


def _number(value: Any, info: pydantic.ValidationInfo) -> int:
    count = (info.context or {})["count"]
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= count:
        raise ValueError(f"is {_shown(value)} and no number from 1 to {count}")
    return value


def _box(value: Any) -> list[float]:
    numbers = isinstance(value, list) and len(value) == 4
    if not numbers or any(
        isinstance(each, bool) or not isinstance(each, int | float) for each in value
    ):
        raise ValueError(f"is {_shown(value)} and no list of four numbers")
    try:
        return Box(*map(float, value)).to_list()
    except (InputError, OverflowError):
        raise ValueError(f"{_shown(value)} is empty or leaves the image") from None


def _category(value: Any, info: pydantic.ValidationInfo) -> str:
    known = (info.context or {})["editing"]
    if not isinstance(value, str) or value not in known:
        raise ValueError(f"is {_shown(value)} and not one of {', '.join(known)}")
    return value


def _listed(low: int, high: int, what: str) -> pydantic.BeforeValidator:
    def check(value: Any) -> Any:
        if not isinstance(value, list) or not low <= len(value) <= high:
            raise ValueError(f"is no list of {low if low == high else f'{low} to {high}'} {what}")
        return value

    return pydantic.BeforeValidator(check)


Text = Annotated[str, pydantic.PlainValidator(_text)]
Number = Annotated[int, pydantic.PlainValidator(_number)]
Corners = Annotated[list[float], pydantic.PlainValidator(_box)]


class Form(pydantic.BaseModel, extra="forbid"):
    """Of a reply: all of its fields, and no others."""


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

    @pydantic.model_validator(mode="after")
    def _both(self) -> Self:
        if (self.value is None) != (self.box is None):
            raise ValueError("value and box must both be there or both be null")
        return self


class ProposalReply(Form):
    category: Annotated[str, pydantic.PlainValidator(_category)]
    high_natural: Text
    high_manipulated: Text
    low_natural: Text
    low_manipulated: Text
    caption: Text
    part: Number | None
    instruction: Text | None

    @pydantic.model_validator(mode="after")
    def _fits(self, info: pydantic.ValidationInfo) -> Self:
        for level in ("high", "low"):
            if (
                len(
                    {
                        getattr(self, f"{level}_{kind}").casefold()
                        for kind in ("natural", "manipulated")
                    }
                )
                == 1
            ):
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

    @pydantic.model_validator(mode="after")
    def _differ(self) -> Self:
        options = [self.right, *self.wrong, *self.model_dump(include={"natural"}).values()]
        if len({option.casefold() for option in options}) < len(options):
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

    @pydantic.model_validator(mode="after")
    def _levels_differ(self) -> Self:
        if self.low.casefold() == self.high.casefold():
            raise ValueError("the questions low and high are the same")
        return self


def read_reply(reply: str, form: type[Form], **limits: Any) -> dict[str, Any]:
    """The fields of a reply of some form, within limits: a count of things, the categories and how
    each is edited.

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
    except pydantic.ValidationError as error:
        raise UnreadReply(_reason(error)) from None
    except (ValueError, RecursionError) as error:
        raise UnreadReply(
            f"it is no JSON object ({getattr(error, 'msg', 'it cannot be read')})"
        ) from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) < len(pairs):
        raise UnreadReply("a field is there twice")
    return dict(pairs)


def _no_number(name: str) -> Any:
    raise UnreadReply(f"{name} is no number")


def _reason(error: pydantic.ValidationError) -> str:
    """The first thing that is wrong, in a sentence that a model can be told."""
    first = error.errors(include_url=False)[0]
    *outer, last = [
        each if isinstance(each, str) else f"number {each + 1}" for each in first["loc"]
    ] or [""]
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


# -- the steps
# -------------------------------------------------------------------------------------------------------


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
    """What of an image can be replaced, with its box: the grounded things, the object at hand and
    the face.
    """
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
    kinds = {
        "background": "replaces the background",
        "part": "replaces a part",
        "direct": "alters the image directly",
    }
    return {
        "caption": item.value("caption")["caption"],
        "subject": subject(item)["name"],
        **{
            name: item.value(name)["value"] or "none"
            for name in ("behaviour", "background", "object", "emotion")
        },
        "parts": _numbered(parts(item)),
        "categories": "\n".join(
            f"{each.code}: {each.high}, {each.low}; {kinds[each.editing]}" for each in offered
        ),
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


def question_rows(
    number: int, category: str, written: Mapping[str, Any], seed: int
) -> list[dict[str, Any]]:
    """The seven rows of questions about a pair.

    Two yes/no questions, each on both images (yes on the manipulated one, no on the natural one),
    one multiple choice about the manipulated image, in which what one would answer of the natural
    one is an option, and two about both.
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
        lines = [
            f"{letter}. {options[place]}" for letter, place in zip("ABCDE", order, strict=True)
        ]
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


def json_lines(rows: Iterable[Mapping[str, Any]]) -> str:
    """Rows as JSON lines, the form of the release's question files."""
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
