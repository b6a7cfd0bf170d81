"""Draw what decision stages cost to train: d' over the number of training fields."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from typing import TYPE_CHECKING

import numpy as np

from psyprobe.analysis.efficiency.learning import FIELDS, LEVEL
from psyprobe.analysis.responses import levels_of
from psyprobe.analysis.words.csf import chat_csfs
from psyprobe.errors import InputError
from psyprobe.files.units import unit_symbol
from psyprobe.plotting import axes
from psyprobe.plotting.participants import participant_name

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes

#: The measure by which `psyprobe.plot` draws this figure.
LEARNING = "learning"
#: Place of endless training, as a multiple of all fields.
_ENDLESS = 2.0
#: Factor between the places of neighbouring stages, so that their intervals can be told.
_BESIDE = 1.02
_MARKERS = ("o", "s", "D", "v", "P", "X")


def plot_learning(
    results: Sequence[xr.Dataset], ax: Axes | None = None, *, title: str = ""
) -> Axes:
    """Draw d' of decision stages over the fields they were trained on, with intervals.

    Parameters
    ----------
    results : sequence of xarray.Dataset
        Results of runs with decision stages, or of `chat_csf`.
    ax : matplotlib.axes.Axes, optional
        Where to draw; without it, on a new pyplot figure.
    title : str, optional
        By default none.

    Returns
    -------
    matplotlib.axes.Axes
        A line for each stage, d' in fields that it was not trained on; hollow at the right end, d'
        after endless training, where it is known.

    Raises
    ------
    InputError
        No stage was trained.
    """
    csfs = [csf for csf in chat_csfs(results) if FIELDS in csf.dims]
    if not csfs:
        raise InputError(
            "no decision stage was trained for these results, so there is no learning to draw; "
            "give runs of decided:NAME"
        )
    ax = ax or axes.new_axes()
    styles = zip(cycle(axes.COLOURS), cycle(_MARKERS), strict=False)
    beside = 1.0
    for csf in csfs:
        name = axes.printable(participant_name(csf)) if len(csfs) > 1 else ""
        dimensions = [*levels_of(csf), *([LEVEL] if LEVEL in csf.dims else [])]
        stacked = csf.stack(stage=dimensions)
        for index in range(stacked.sizes["stage"]):
            stage = stacked.isel(stage=index)
            if np.isnan(stage["learning_d_prime"].values).all():
                # This level was not shown.
                continue
            places = [
                axes.with_unit(float(stage[name].values), unit_symbol(csf[name].attrs))
                for name in dimensions
            ]
            label = ", ".join(filter(None, [name, *places]))
            _draw_stage(ax, stage, label, *next(styles), beside)
            beside *= _BESIDE
    counts = csfs[0][FIELDS].values
    ax.axhline(0, color="0.8", linewidth=0.8, zorder=1)
    axes.log_axis(ax.xaxis, [counts[0], counts[-1] * _ENDLESS * beside], 1.15)
    ticks = [*counts.tolist(), counts[-1] * _ENDLESS]
    ax.xaxis.set_ticks(ticks, labels=[*map(str, counts.tolist()), "endless"])
    ax.xaxis.set_ticks([], minor=True)
    axes.label(ax, "Training fields", "d' in held-out fields", title, framed=False)
    axes.legend_below(ax, axes.labelled_lines([ax]), "")
    return ax


def _draw_stage(
    ax: Axes, stage: xr.Dataset, label: str, colour: str, marker: str, beside: float
) -> None:
    """Draw the learning curve of a stage, moved beside others, and d' after endless training."""
    counts = stage[FIELDS].values
    for name, x, is_endless in (
        ("learning_d_prime", counts, False),
        ("endless_d_prime", counts[-1:] * _ENDLESS, True),
    ):
        middle, low, high = (
            np.atleast_1d(stage[name + end].values) for end in ("", "_low", "_high")
        )
        ax.errorbar(
            x * beside,
            middle,
            yerr=[middle - low, high - middle],
            fmt="none",
            ecolor=colour,
            elinewidth=1,
            capsize=2,
        )
        ax.plot(
            x * beside,
            middle,
            color=colour,
            marker=marker,
            markersize=5,
            markerfacecolor="white" if is_endless else colour,
            linewidth=1.3,
            label=None if is_endless else label,
        )
