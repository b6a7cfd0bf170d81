"""From what a model wrote to the rows of a question file, in the release's form."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from psyprobe.tasks.mvp_construction.pair_files import image_names
from psyprobe.tasks.mvp_construction.wording import wordings


def question_rows(number: int, category: str, written: Mapping[str, Any], seed: int) -> list[dict[str, Any]]:
    """The questions about a pair.

    Parameters
    ----------
    number : int
        Of the pair.
    category : str
        Its low-level code.
    written : mapping
        As `read_questions_reply` gives it.
    seed : int
        Of the order of options.

    Returns
    -------
    list of dict
        Seven rows: two yes/no questions, each on both images (yes on the manipulated one, no on the natural one), one
        multiple choice about the manipulated image, in which what one would answer of the natural one is an option,
        and two about both.
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
    """Rows as JSON lines, the form of the release's question files.

    Parameters
    ----------
    rows : iterable of mapping
        Of a question file.

    Returns
    -------
    str
    """
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
