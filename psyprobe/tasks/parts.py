"""Figures, galleries and tables for the reports of benchmarks, as plain data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from psyprobe.corruption import corrupt, dimensions
from psyprobe.files.images import read_image
from psyprobe.plotting.figure_data import Axis, Figure, Gallery, Line, Panel, Table

#: Width of a picture in a gallery, px.
_WIDTH = 100
#: The photograph of a gallery: KADID's lengths are meant for about its area.
_PHOTOGRAPH = "astronaut.png"
#: Most items of each observer that are listed with their answers.
LISTED = 40
#: Width on the abscissa that intervals of observers share.
_SPREAD = 0.5


def by_parts(
    title: str, label: str, rows: Mapping[str, Mapping[str, pd.DataFrame]]
) -> Figure:
    """Build a figure of observers' scores in the parts of a benchmark, with intervals.

    Parameters
    ----------
    title, label : str
        Title of the figure, and label of its ordinate.
    rows : mapping of str to mapping of str to pandas.DataFrame
        For each option, as a measure, and observer: a table with columns value, low and high, by
        the name of the part.
    """
    tables = [table for observers in rows.values() for table in observers.values()]
    names = list(dict.fromkeys(str(name) for table in tables for name in table.index))

    def line(name: str, table: pd.DataFrame, i: int, count: int) -> Line:
        # Observers stand side by side, so that intervals do not hide each other.
        shift = (i - (count - 1) / 2) * _SPREAD / max(count, 1)
        x = np.array([names.index(str(part)) for part in table.index]) + shift
        value, low, high = table[["value", "low", "high"]].to_numpy(dtype=np.float64).T
        return Line(name, x, value, low, high, style="points", colour=i)

    views = {}
    for option, observers in rows.items():
        lines = [
            line(name, table, i, len(observers))
            for i, (name, table) in enumerate(observers.items())
        ]
        views[option] = {"": lines}
    return Figure(
        title,
        Axis("", names=names),
        Axis(label),
        [Panel("", views)],
        choice="measure",
        options={option: option for option in rows},
    )


def listed(items: pd.DataFrame) -> pd.DataFrame:
    """Select at most `LISTED` rows, spread evenly over a table."""
    rows = np.linspace(0, len(items) - 1, min(LISTED, len(items)))
    return items.iloc[np.unique(rows.astype(int))]


def corruption_gallery(names: Sequence[str]) -> list[Gallery]:
    """Build a gallery of R-Bench's corruptions of a photograph; none if libraries lack."""
    try:
        import cv2  # noqa: F401
        import skimage
    except ImportError:
        return []
    path = Path(skimage.__file__).parent / "data" / _PHOTOGRAPH
    if not path.is_file():
        return []
    photograph = read_image(path)
    pictures: list[tuple[Any, str]] = [(photograph, "reference")]
    for name in dict.fromkeys(names):
        dimension = dimensions()[name]
        corrupted = corrupt(photograph, name, "mid", 0, image_id=_PHOTOGRAPH)
        mark = " *" if dimension.captured else ""
        pictures.append((corrupted, f"{dimension.id}. {dimension.title}{mark}"))
    caption = (
        "Strength mid, on scikit-image's photograph of an astronaut, made smaller. * "
        "simulated where R-Bench photographed it."
    )
    return [Gallery("Corruptions", pictures, caption, _WIDTH)]


def answers_table(
    tables: Mapping[str, pd.DataFrame], columns: Mapping[str, str]
) -> Table:
    """Build a table of observers' answers word for word, for items spread over the set.

    Parameters
    ----------
    tables : mapping of str to pandas.DataFrame
        Items and answers, by observer.
    columns : mapping of str to str
        Headings by the columns to list.
    """
    rows = [
        [name, *map(_cell_text, row)]
        for name, table in tables.items()
        for row in listed(table)[list(columns)].itertuples(index=False)
    ]
    count = sum(map(len, tables.values()))
    caption = f"{len(rows)} of {count} items, spread over the set; answers stand word for word."
    return Table(
        "Answers", ["observer", *columns.values()], rows, caption, opened=False
    )


def _cell_text(value: Any) -> str:
    """Format a cell of a table as text: numbers to three digits, lists joined by "/"."""
    if isinstance(value, float):
        return "" if np.isnan(value) else f"{value:.3g}"
    return (
        " / ".join(map(str, value)) if isinstance(value, tuple | list) else str(value)
    )
