"""Benchmarks as plain data: ``report`` of the probes that put items."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from psyprobe.corruption import corrupt, dimensions
from psyprobe.files.images import read_image
from psyprobe.plotting.figure_data import Axis, Figure, Gallery, Line, Panel, Table

#: Of a gallery, px.
_WIDTH = 100
#: Of what is corrupted for a gallery: KADID's lengths are meant for about its area.
_PHOTOGRAPH = "astronaut.png"
#: Items of each observer that are listed with what was answered.
LISTED = 40


def by_parts(title: str, label: str, rows: Mapping[str, Mapping[str, pd.DataFrame]]) -> Figure:
    """Values of observers in some parts of a benchmark, with intervals.

    Parameters
    ----------
    title, label : str
        Of the figure, and of its upward axis.
    rows : mapping of str to mapping of str to pandas.DataFrame
        Option, as a measure, to observer to rows with columns value, low and high, by the name of
        the part.
    """
    names = list(
        dict.fromkeys(
            str(name) for row in rows.values() for table in row.values() for name in table.index
        )
    )

    def line(name: str, table: pd.DataFrame, i: int, count: int) -> Line:
        # Side by side, so that intervals do not hide each other.
        x = np.array([names.index(str(part)) for part in table.index]) + (
            i - (count - 1) / 2
        ) * 0.5 / max(count, 1)
        value, low, high = (
            table[column].to_numpy(dtype=np.float64) for column in ("value", "low", "high")
        )
        return Line(name, x, value, low, high, style="points", colour=i)

    views = {
        option: {
            "": [line(name, table, i, len(one)) for i, (name, table) in enumerate(one.items())]
        }
        for option, one in rows.items()
    }
    options = {option: option for option in rows}
    return Figure(
        title,
        Axis("", names=names),
        Axis(label),
        [Panel("", views)],
        choice="measure",
        options=options,
    )


def listed(items: pd.DataFrame, most: int = LISTED) -> pd.DataFrame:
    """Rows spread over a table, at most so many."""
    return items.iloc[np.unique(np.linspace(0, len(items) - 1, min(most, len(items))).astype(int))]


def corruption_gallery(names: Sequence[str], strength: str = "mid") -> list[Gallery]:
    """A photograph in the ways of R-Bench that were used; none where the package that holds it is
    not installed.
    """
    found = importlib.util.find_spec("skimage")
    if found is None or found.origin is None or importlib.util.find_spec("cv2") is None:
        return []
    path = Path(found.origin).parent / "data" / _PHOTOGRAPH
    if not path.is_file():
        return []
    photograph = read_image(path)
    pictures: list[tuple[Any, str]] = [(photograph, "reference")]
    for name in dict.fromkeys(names):
        dimension = dimensions()[name]
        changed = corrupt(photograph, name, strength, 0, image_id=_PHOTOGRAPH)
        pictures.append((changed, f"{dimension.id}. {dimension.title}{' *' * dimension.captured}"))
    caption = (
        f"Strength {strength}, on scikit-image's photograph of an astronaut, made smaller. * "
        "simulated where R-Bench "
        "photographed it."
    )
    return [Gallery("Corruptions", pictures, caption, _WIDTH)]


def cells(table: pd.DataFrame, columns: Mapping[str, str]) -> tuple[list[str], list[list[str]]]:
    """Heading and rows of some columns of a table, by what they are called; numbers rounded for
    reading.
    """

    def text(value: Any) -> str:
        if isinstance(value, float):
            return "" if np.isnan(value) else f"{value:.3g}"
        return " / ".join(map(str, value)) if isinstance(value, tuple | list) else str(value)

    rows = [[text(value) for value in row] for row in table[list(columns)].itertuples(index=False)]
    return list(columns.values()), rows


def answers_table(
    tables: Mapping[str, pd.DataFrame], columns: Mapping[str, str], most: int = LISTED
) -> Table:
    """What observers answered, word for word, for items spread over the set."""
    heading: list[str] = []
    rows: list[list[str]] = []
    for name, table in tables.items():
        heading, own = cells(listed(table, most), columns)
        rows += [[name, *row] for row in own]
    count = sum(map(len, tables.values()))
    caption = f"{len(rows)} of {count} items, spread over the set; answers stand word for word."
    return Table("Answers", ["observer", *heading], rows, caption, opened=False)
