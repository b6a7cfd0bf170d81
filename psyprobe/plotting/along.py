"""Responses along the human curve: one line for each x, over multiples of the human threshold."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from psyprobe.analysis.responses import MEASURE_LABELS, select
from psyprobe.plotting.axes import log_axis, new_axes, title_of, x_label

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes


def along_curve(
    result: xr.Dataset,
    ax: Axes | None = None,
    *,
    measure: str | None = None,
    layer: str | None = None,
    title: str | None = None,
) -> Axes:
    """Draw the responses from which the alignment score is computed.

    With the sensitivity of people, all lines would lie on one another and rise; lines that rise but lie apart are
    what makes the score small.

    Parameters
    ----------
    result : xarray.Dataset
        Of a detection run.
    ax : matplotlib.axes.Axes, optional
        Where to draw; without it, on a new pyplot figure.
    measure : {"angular", "angular_float32", "cosine", "l1", "l2"}, optional
        What to draw; without it the measure that the experiment names, else "angular".
    layer : str, optional
        Name of a layer; needed where the result holds more than one.
    title : str, optional
        Without it, the observer's name. Give "" for none.

    Returns
    -------
    matplotlib.axes.Axes
        Contrast over human threshold to the right, response upwards, both logarithmic; the colour of a line is its
        x. The response axis is linear if no response exceeds 0.

    Raises
    ------
    InputError
        If this is no detection result, or several layers were run and none was named.
    UnknownNameError
        If the measure or layer is not in the result.
    """
    import matplotlib as mpl
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import LogNorm

    found = select(result, measure=measure or str(result.attrs.get("score_measure", "angular")), layer=layer)
    ax = new_axes() if ax is None else ax
    order = np.argsort(found.multiplier)
    colours = ScalarMappable(LogNorm(found.score_x.min(), found.score_x.max()), mpl.colormaps["viridis"])
    for x, response in zip(found.score_x, found.along, strict=True):
        ax.plot(found.multiplier[order], response[order], color=colours.to_rgba(x), linewidth=1.3)
    log_axis(ax.xaxis, float(found.multiplier.min()), float(found.multiplier.max()))
    positive = found.along[found.along > 0]
    if positive.size:
        low, high = float(positive.min()), float(positive.max())
        log_axis(ax.yaxis, low / 1.2, high * 1.2)
        if low < found.noise_floor < high:
            ax.axhline(found.noise_floor, color="0.4", linestyle=":", label="noise floor")
            ax.legend(fontsize="small")
    ax.axvline(1, color="0.7", linewidth=0.8, zorder=0)
    ax.set_xlabel("Contrast / human threshold")
    ax.set_ylabel(MEASURE_LABELS[found.measure])
    ax.set_title(title_of(result) if title is None else title, fontsize="medium")
    bar = ax.figure.colorbar(colours, ax=ax, label=x_label(result.attrs))
    log_axis(bar.ax.yaxis, float(found.score_x.min()), float(found.score_x.max()))
    return ax
