"""The image pairs of MVP-Bench on which a model failed: images, questions and what it said, word for word."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from psyprobe.errors import InputError
from psyprobe.files.images import read_image
from psyprobe.report.page import Picture, picture, render

_CAPTIONS = {"N": "natural", "M": "manipulated", "pair": "both"}


def failed_pairs_page(answers: pd.DataFrame, images: str | Path, model: str, most: int = 50) -> str:
    """A page of failed pairs, in HTML.

    Parameters
    ----------
    answers : pandas.DataFrame
        A question table with columns reply and said.
    images : str or Path
        The folder that its image paths start from.
    model : str
        Whose answers they are.
    most : int
        Pairs at most; the page says how many there are.
    """
    wrong = answers[answers["said"] != answers["answer"]]
    failed = list(dict.fromkeys(wrong["pair"]))
    pairs = []
    for number in failed[:most]:
        group = answers[answers["pair"] == number]
        shown = dict.fromkeys(zip(group["image"], group["kind"], strict=True))
        pairs.append(
            {
                "number": int(number),
                "images": [(f"{_CAPTIONS[kind]}: {image}", *_read(Path(images) / image)) for image, kind in shown],
                "rows": group.assign(caption=group["kind"].map(_CAPTIONS)).to_dict("records"),
            }
        )
    return render(
        "tasks/mvp_bench/failed_pairs.html",
        title=f"MVP-Bench: pairs on which {model} failed",
        failed=len(failed),
        asked=answers["pair"].nunique(),
        pairs=pairs,
    )


def _read(path: Path) -> tuple[Picture | None, str]:
    """The image, or why it cannot be shown."""
    try:
        return picture(read_image(path)), ""
    except InputError as error:
        return None, str(error)
