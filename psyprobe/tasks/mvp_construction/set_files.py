"""The files of a set in the release's form: the images of each pair, which carry what made them, and its questions.

The account stands in a text field of the PNG ("psyprobe", JSON) and in a JSON file beside the manipulated image.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from psyprobe.files.output import json_text, write_text, write_whole
from psyprobe.tasks.mvp_construction.manipulation import Image, Manipulated
from psyprobe.tasks.mvp_construction.steps import wordings

FIELD = "psyprobe"


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


def write_pair(
    folder: Path, number: int, photograph: Image, made: Manipulated, account: Mapping[str, Any]
) -> dict[str, Any]:
    """Write the images of a pair, and last the account of what made them, which is returned."""
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
    return told


def _write_png(path: Path, pixels: Image, told: Mapping[str, Any]) -> None:
    from PIL import Image as Picture
    from PIL.PngImagePlugin import PngInfo

    info = PngInfo()
    info.add_itxt(FIELD, json.dumps(told, sort_keys=True))
    write_whole(path, lambda part: Picture.fromarray(pixels).save(part, pnginfo=info))


def question_rows(number: int, category: str, written: Mapping[str, Any], seed: int) -> list[dict[str, Any]]:
    """The seven rows of questions about a pair.

    Two yes/no questions, each on both images (yes on the manipulated one, no on the natural one), one
    multiple choice about the manipulated image, in which what one would answer of the natural one is an option, and two
    about both.
    """
    names, random = image_names(number), np.random.default_rng(seed)
    found: list[dict[str, Any]] = []

    def add(kind: str, level: str, image: str, question: str, answer: str) -> None:
        found.append(
            {
                "question_id": number * 10 + len(found),
                "id": number,
                "image": names[image],
                "question": question,
                "answer": answer,
                "type": kind,
                "level": level,
                "category": category,
            }
        )

    def choice(kind: str, level: str, image: str, row: Mapping[str, Any]) -> None:
        options = [row["right"], *([row["natural"]] if "natural" in row else []), *row["wrong"]]
        order = [int(place) for place in random.permutation(len(options))]
        lines = [f"{letter}. {options[place]}" for letter, place in zip("ABCDE", order, strict=True)]
        text = "\n".join([row["question"], *lines, wordings()["choice"]])
        add(kind, level, image, text, "ABCDE"[order.index(0)])

    for level in ("low", "high"):
        text = f"{written[level]}\n{wordings()['yes_no']}"
        add("y/n-s", level, "N", text, "no")
        add("y/n-e", level, "M", text, "yes")
    choice("mcq-e", "high", "M", written["single"])
    choice("mcq-cross", "low", "pair", written["cross_low"])
    choice("mcq-cross", "high", "pair", written["cross_high"])
    return found


def json_lines(rows: Iterable[Mapping[str, Any]]) -> str:
    """Rows as JSON lines, the form of the release's question files."""
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
