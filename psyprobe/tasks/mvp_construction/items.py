"""The state of a set under construction: one small JSON file a photograph, which says how far it has come.

A step is known by the digest of all that goes into it. A step that is done with that digest is not done again; when
anything that goes in changes, the digest changes, and the step and those that rest on it are done anew.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from psyprobe.errors import InputError, StoreError
from psyprobe.files.images import file_digest, images_in
from psyprobe.files.output import json_text, make_folder, write_text

#: In the order in which they are done; each rests on those before it.
STEPS = ("caption", "subject", "behaviour", "background", "object", "emotion", "proposal", "image", "questions")
#: Pairs of one's own start here: those of the release, whose categories are known by their numbers, end at 646.
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
        found = self.steps[step].value
        if found is None:
            raise InputError(f"item {self.number} has no {step}: {self.steps[step].reason}")
        return found

    def done(self, step: str) -> bool:
        """Whether a step is done."""
        return step in self.steps and self.steps[step].value is not None

    @property
    def state(self) -> str:
        """In words: "complete", "failed at STEP: why" or "next: STEP"."""
        for step in STEPS:
            if not self.done(step):
                return f"failed at {step}: {self.steps[step].reason}" if step in self.steps else f"next: {step}"
        return "complete"

    def to_dict(self) -> dict[str, Any]:
        """The item as plain values that JSON can hold."""
        return {**vars(self), "state": self.state, "steps": {name: vars(step) for name, step in self.steps.items()}}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Item:
        """The item that `to_dict` was called on."""
        steps = {name: Step(**step) for name, step in values["steps"].items()}
        return cls(values["number"], values["photograph"], values["sha256"], steps, dict(values["failures"]))


def read_set_items(folder: str | Path) -> list[Item]:
    """The items of a set under construction, by number.

    Empty where nothing was begun.
    """
    found = []
    for path in sorted((Path(folder) / "items").glob("[0-9]*.json")):
        try:
            found.append(Item.from_dict(json.loads(path.read_text(encoding="utf-8"))))
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            raise StoreError(f"{path} is no item of a set; move it away and it is made anew") from None
    return sorted(found, key=lambda item: item.number)


def write_item(folder: Path, item: Item) -> None:
    """Write the state of an item, whole or not at all."""
    write_text(make_folder(folder / "items") / f"{item.number}.json", json_text(item.to_dict()))


def gather_items(photographs: str | Path, folder: str | Path) -> list[Item]:
    """The items of a folder of photographs, each with the state it has in a set.

    By number. A photograph keeps its number when others come or go; new ones follow, in the order of their names.
    """
    known = {item.sha256: item for item in read_set_items(folder)}
    highest = max((item.number for item in known.values()), default=_FIRST_NUMBER - 1)
    found: dict[str, Item] = {}
    for path in images_in(photographs):
        sha256 = file_digest(path)
        if sha256 in found:
            raise InputError(f"{path} and {found[sha256].photograph} are the same photograph; remove one of them")
        if sha256 not in known:
            highest += 1
            known[sha256] = Item(highest, str(path), sha256)
        found[sha256] = known[sha256]
        found[sha256].photograph = str(path)
    return sorted(found.values(), key=lambda item: item.number)
