"""The files of a set: how far each photograph has come, the images of each pair in the release's form, and questions.

The state of a photograph is one small JSON file. A step is known by the digest of all that goes into it. A step that is
done with that digest is not done again; when anything that goes in changes, the digest changes, and the step and those
that rest on it are done anew.

Images carry what made them: the account stands in a text field of the PNG ("psyprobe", JSON) and in a JSON file beside
the manipulated image.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image as Picture
from PIL.PngImagePlugin import PngInfo

from psyprobe.errors import InputError, StoreError
from psyprobe.files.images import file_digest, images_in
from psyprobe.files.output import json_text, make_folder, write_text, write_whole
from psyprobe.tasks.mvp_construction.manipulation import Manipulated
from psyprobe.tasks.mvp_construction.tools import Image

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
        return self.steps[step].value or {}

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


def image_names(number: int) -> dict[str, str]:
    """Files of a pair in a set: "N" natural, "M" manipulated, "pair" both side by side.

    Examples
    --------
    >>> image_names(1001)["pair"]
    'Cross_Images/1001_concat.png'
    """
    return {
        "N": f"Single_Images/{number}_s.png",
        "M": f"Single_Images/{number}_e.png",
        "pair": f"Cross_Images/{number}_concat.png",
    }


def drawn_before(folder: Path, number: int, key: str) -> dict[str, Any] | None:
    """What is told beside a manipulated image, if it is there and was made from the same."""
    names = image_names(number)
    if not all((folder / name).is_file() for name in names.values()):
        return None
    try:
        told = json.loads((folder / names["M"]).with_suffix(".json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return told if isinstance(told, dict) and told.get("key") == key else None


def write_pair(folder: Path, number: int, photograph: Image, made: Manipulated, account: Mapping[str, Any]) -> None:
    """Write the images of a pair, and last the account of what made them."""
    names = image_names(number)
    natural = {"photograph": account["photograph"], "sha256": account["sha256"], "manipulated": False}
    told = {**account, **made.facts, "manipulated": True}
    for name in ("Single_Images", "Cross_Images", "masks"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    for kind, mask in made.masks.items():
        _write_png(folder / "masks" / f"{number}_{kind}.png", mask.astype(np.uint8) * np.uint8(255), told)
    _write_png(folder / names["N"], photograph, natural)
    _write_png(folder / names["M"], made.image, told)
    _write_png(folder / names["pair"], np.hstack([photograph, made.image]), told)
    write_text((folder / names["M"]).with_suffix(".json"), json_text(told))


def _write_png(path: Path, pixels: Image, told: Mapping[str, Any]) -> None:
    info = PngInfo()
    info.add_itxt("psyprobe", json.dumps(told, sort_keys=True))
    write_whole(path, lambda part: Picture.fromarray(pixels).save(part, pnginfo=info))


def json_lines(rows: Iterable[Mapping[str, Any]]) -> str:
    """Rows as JSON lines, the form of the release's question files."""
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
