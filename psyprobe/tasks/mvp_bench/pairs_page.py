"""The image pairs of MVP-Bench on which a model failed: images, questions and what it said, word for word."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from psyprobe.errors import InputError
from psyprobe.files.images import read_image
from psyprobe.report.page import escape, page, picture, table

_CAPTIONS = {"N": "natural", "M": "manipulated", "pair": "both"}


def failed_pairs_page(answers: pd.DataFrame, images: str | Path, model: str, most: int = 50) -> str:
    """A page of failed pairs.

    HTML; everything that a model or a question file said is escaped.
    """
    wrong = answers[answers["said"] != answers["answer"]]
    pairs = list(dict.fromkeys(wrong["pair"]))
    shown = pairs[:most]
    parts = [
        f'<p class="note">{len(pairs)} of {answers["pair"].nunique()} image pairs have a wrong answer; '
        f"{len(shown)} of them are shown. Questions in red were answered wrong.</p>"
    ]
    for pair in shown:
        group = answers[answers["pair"] == pair]
        parts.append(f"<h2>Pair {int(pair)}</h2>")
        for image, kind in dict.fromkeys(zip(group["image"], group["kind"], strict=True)):
            try:
                parts.append(picture(read_image(Path(images) / image), f"{_CAPTIONS[kind]}: {image}"))
            except InputError as error:
                parts.append(f'<p class="note">{escape(str(error))}</p>')
        parts.append(
            table(
                ("image", "level", "question", "right", "read as", "reply"),
                [
                    (
                        "" if row["said"] == row["answer"] else "wrong",
                        (
                            _CAPTIONS[row["kind"]],
                            row["level"],
                            row["question"],
                            row["answer"],
                            row["said"] or "not read",
                            row["reply"],
                        ),
                    )
                    for row in group.to_dict("records")
                ],
            )
        )
    return page(f"MVP-Bench: pairs on which {model} failed", parts)
