"""Draw figures of R-Bench: robustness of models by part."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from psyprobe.corruption import dimensions
from psyprobe.errors import InputError
from psyprobe.files.json_types import JsonObject
from psyprobe.plotting.axes import (
    COLOURS,
    new_axes,
    printable,
    save_figure,
)
from psyprobe.tasks.r_bench.metrics import BREAKDOWNS, MEASURES, rows_by

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_STAR = "* simulated where R-Bench photographed it"


def bars(
    metrics: Mapping[str, pd.DataFrame],
    by: str = "step",
    *,
    measure: str = "absolute",
    ax: Axes | None = None,
) -> Axes:
    """Draw the robustness of models by step or group of corruptions as bars with intervals.

    Parameters
    ----------
    metrics : mapping of str to pandas.DataFrame
        Metrics as from `rbench_metrics`, by model.
    by : {"step", "group", "task", "strength", "dimension"}
        Breakdown into parts, one group of bars each.
    measure : {"absolute", "relative"}
        Measure of robustness.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; by default those of a new pyplot figure.

    Returns
    -------
    matplotlib.axes.Axes
        Whiskers are the intervals of the metrics; a star marks bars with simulated corruptions.

    Raises
    ------
    InputError
        There is nothing to draw.
    UnknownNameError
        There is no such breakdown.
    """
    rows = rows_by(metrics, by, measure)
    tables = {model: table for model, table in rows.items() if len(table)}
    if not tables:
        raise InputError(
            f"there are no {measure} scores by {by}; there is nothing to draw"
        )
    rows_of_all = pd.concat(tables.values())
    names = [name for name in BREAKDOWNS[by] if name in rows_of_all.index]
    simulated = set(rows_of_all.index[rows_of_all["simulated"] > 0])
    ax = ax or new_axes(max(7.0, 2.5 + 0.22 * len(names) * (len(tables) + 1)), 3.4)
    width = 0.8 / len(tables)
    for i, (model, table) in enumerate(tables.items()):
        part = table.reindex(names)
        ax.bar(
            np.arange(len(names)) + (i - (len(tables) - 1) / 2) * width,
            part["value"],
            width,
            yerr=[part["value"] - part["low"], part["high"] - part["value"]],
            error_kw={"ecolor": "#222", "elinewidth": 0.9, "capsize": 2},
            color=COLOURS[i % len(COLOURS)],
            label=printable(model),
        )
    titles = [dimensions()[name].title if by == "dimension" else name for name in names]
    labels = [
        starred(title, name in simulated)
        for title, name in zip(titles, names, strict=True)
    ]
    rotation: JsonObject = {"rotation": 60, "ha": "right"} if len(names) > 8 else {}
    ax.set_xticks(range(len(names)), labels, fontsize="small", **rotation)
    ax.set_ylim(0, 1)
    ax.margins(x=0.01)
    ax.set_ylabel(f"{measure.capitalize()} robustness")
    ax.spines[["top", "right"]].set_visible(False)
    ax.figure.legend(
        *ax.get_legend_handles_labels(),
        loc="outside upper center",
        ncols=4,
        fontsize="small",
        frameon=False,
    )
    if simulated:
        ax.set_xlabel(_STAR, fontsize="x-small", loc="right")
    return ax


def starred(title: str, simulated: bool) -> str:
    """Mark the name of a corruption or part with a star if it is simulated."""
    return f"{title} *" if simulated else title


def draw_figures(metrics: Mapping[str, pd.DataFrame], folder: Path) -> list[Path]:
    """Write figures of robustness by step and group, as PNG and PDF.

    Parameters
    ----------
    metrics : mapping of str to pandas.DataFrame
        Output of `rbench_metrics`, by model.
    folder : Path
        Folder of the figures.

    Returns
    -------
    list of Path
        The PNG files.
    """
    import matplotlib.pyplot as plt

    paths: list[Path] = []

    for measure, by in itertools.product(MEASURES, ("step", "group")):
        if any(map(len, rows_by(metrics, by, measure).values())):
            ax = bars(metrics, by, measure=measure)
            name = f"bars_{by}_{measure}"
            save_figure(ax, folder / f"{name}.pdf")
            paths.append(save_figure(ax, folder / f"{name}.png", dpi=110))
            plt.close(ax.figure)
    return paths
