"""Human data as small tables that come with psyprobe: comma-separated, with their source in the first lines."""

from __future__ import annotations

import csv
from importlib.resources import files

import numpy as np

from psyprobe._typing import FloatArray


def read_human_table(name: str) -> tuple[str, dict[str, FloatArray]]:
    """Read a table of ``psyprobe/human/data``.

    Parameters
    ----------
    name : str
        Name of the file without its ending.

    Returns
    -------
    citation : str
        The lines at its top, each a sentence or two.
    columns : dict of str to ndarray of float64, shape (rows,)
        By the name of the column.

    Examples
    --------
    >>> citation, columns = read_human_table("foley1994")
    >>> citation[:17], sorted(columns)
    ('Foley, J. M. (199', ['mask_contrast', 'scored', 'threshold'])
    """
    lines = files("psyprobe.human").joinpath("data", f"{name}.csv").read_text(encoding="utf-8").splitlines()
    citation = " ".join(line.removeprefix("# ") for line in lines if line.startswith("#"))
    rows = list(csv.DictReader(line for line in lines if not line.startswith("#")))
    columns = {column: np.array([float(row[column]) for row in rows]) for column in rows[0]}
    return citation, columns
