"""The kinds of manipulation: five high-level categories, thirteen low-level ones, and how each is done to an image."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass

#: How the table of categories says it, and what it is called here.
_EDITING = {"overall": "background", "partial": "part", "direct": "direct"}


@dataclass(frozen=True)
class Category:
    """One low-level category.

    Attributes
    ----------
    code : str
        "B1" to "S2".
    high, low : str
        Names: "Behaviour", "Object Association".
    editing : {"background", "part", "direct"}
        What is done to the image: all but the subject is replaced, a part is replaced, or the image is altered by an
        instruction.
    """

    code: str
    high: str
    low: str
    editing: str


@functools.cache
def categories() -> Mapping[str, Category]:
    """The thirteen low-level categories by code.

    Returns
    -------
    mapping of str to Category

    Examples
    --------
    >>> categories()["E2"]
    Category(code='E2', high='Emotion', low='Facial Expression', editing='direct')
    """
    from psyprobe.tasks.mvp_bench.tables import categories as table

    rows = table().to_dict("records")
    return {
        row["code"]: Category(
            row["code"], row["high_level"], row["low_level"], _EDITING[row["editing_type"].partition(" ")[0]]
        )
        for row in rows
    }
