"""All images of a set on one sheet, to be looked at before anybody is asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from psyprobe.corruption.dimensions import STRENGTHS, dimensions

#: A thumbnail, px; and most of them on a sheet.
_WIDTH, _HEIGHT, _LABEL, _MOST = 128, 96, 12, 600


def contact_sheet(folder: str | Path, items: pd.DataFrame) -> Any:
    """A sheet of the corrupted images of a set: a row a dimension, ordered by strength.

    Parameters
    ----------
    folder : str or Path
        Of the set.
    items : pandas.DataFrame
        An item table. Of more than 600 items every n-th is shown, and the sheet says so.

    Returns
    -------
    PIL.Image.Image
        Under each thumbnail number and strength ("1 low"), a star where it is simulated.
    """
    from PIL import Image, ImageDraw

    order = items.assign(level=[STRENGTHS.index(strength) for strength in items["strength"]])
    order = order.sort_values(["dimension", "level", "name"], ignore_index=True)
    every = -(-len(order) // _MOST)
    shown = order.iloc[::every]
    known = {each.id: each for each in dimensions().values()}
    lines = [group for _, group in shown.groupby("dimension", sort=True)]
    left, cell = 150, _HEIGHT + _LABEL
    across = max(len(group) for group in lines)
    sheet = Image.new("RGB", (left + across * (_WIDTH + 4), 18 + len(lines) * (cell + 4)), "white")
    pen = ImageDraw.Draw(sheet)
    note = f"{len(shown)} of {len(items)} corrupted images; * simulated where R-Bench photographed it"
    pen.text((4, 3), note, fill="black")
    for i, group in enumerate(lines):
        top = 18 + i * (cell + 4)
        dimension = known[int(group["dimension"].iloc[0])]
        pen.text((4, top + 4), f"{dimension.id} {dimension.title}{' *' if dimension.captured else ''}", fill="black")
        for j, row in enumerate(group.to_dict("records")):
            with Image.open(Path(folder) / "dis" / row["name"]) as opened:
                small = opened.convert("RGB")
            small.thumbnail((_WIDTH, _HEIGHT))
            at = left + j * (_WIDTH + 4)
            sheet.paste(small, (at, top))
            pen.text((at, top + _HEIGHT), f"{row['task']} {row['strength']}", fill="black")
    return Image.fromarray(np.asarray(sheet))
