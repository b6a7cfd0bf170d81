"""Responses at multiples of the human threshold: one line for each level that is scored."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from psyprobe.analysis.responses import MEASURE_LABELS, select
from psyprobe.errors import InputError
from psyprobe.plotting.axes import is_logarithmic, label, level_axis, level_label, log_axis, new_axes, title_of

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes


def scored_responses(
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
        Of a detection run with a human reference.
    ax, measure, layer, title
        As in `contour`.

    Returns
    -------
    matplotlib.axes.Axes
        Contrast over human threshold to the right, response upwards, both logarithmic; the colour of a line is the
        first level. The response axis is linear if no response exceeds 0.

    Raises
    ------
    InputError
        This is no detection result, it has no human reference, or several layers were run and none was named.
    UnknownNameError
        The measure or layer is not in the result.
    """
    import matplotlib as mpl
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import LogNorm, Normalize

    found = select(result, measure=measure, layer=layer)
    points = found.scored
    if points is None:
        raise InputError("this run has no human reference, and so no multiples of human thresholds to draw")
    ax = new_axes() if ax is None else ax
    order = np.argsort(points.multiplier)
    level, values = next(iter(points.at.items()))
    norm = (LogNorm if is_logarithmic(values) else Normalize)(values.min(), values.max())
    colours = ScalarMappable(norm, mpl.colormaps["viridis"])
    for value, response in zip(values, points.response, strict=True):
        ax.plot(points.multiplier[order], response[order], color=colours.to_rgba(value), linewidth=1.3)
    log_axis(ax.xaxis, float(points.multiplier.min()), float(points.multiplier.max()))
    positive = points.response[points.response > 0]
    if positive.size:
        low, high = float(positive.min()), float(positive.max())
        log_axis(ax.yaxis, low / 1.2, high * 1.2)
        if low < found.noise_floor < high:
            ax.axhline(found.noise_floor, color="0.4", linestyle=":", label="noise floor")
            ax.legend(fontsize="small")
    ax.axvline(1, color="0.7", linewidth=0.8, zorder=0)
    label(ax, "Contrast / human threshold", MEASURE_LABELS[found.measure], title_of(result) if title is None else title)
    bar = ax.figure.colorbar(colours, ax=ax, label=level_label(result, f"scored_{level}"))
    level_axis(bar.ax.yaxis, values)
    return ax
