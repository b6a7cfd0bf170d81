"""Contrast matches over spatial frequency, beside those of people.

References
----------
Cai, Yin, Hammou, Mantiuk (2025). Do computer vision foundation models learn the low-level characteristics of
the human visual system? CVPR. Figure 5, contrast matching.
Georgeson, Sullivan (1975). Contrast constancy: deblurring in human vision by spatial frequency channels.
J. Physiol. 252(3), 627-656.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from psyprobe.analysis.matching import Method
from psyprobe.analysis.matching_score import match_result
from psyprobe.plotting.axes import log_axis, new_axes, title_of, x_label

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes


def matched_contrast(
    result: xr.Dataset,
    ax: Axes | None = None,
    *,
    measure: str | None = None,
    layer: str | None = None,
    method: Method | None = None,
    normalised: bool | None = None,
    title: str | None = None,
) -> Axes:
    """Draw the contrasts that match each reference, over the frequency of the test grating.

    Level lines show contrast constancy. People show it well above threshold; near it, they need more contrast at low
    and high frequencies.

    Parameters
    ----------
    result : xarray.Dataset
        Of a matching run.
    ax : matplotlib.axes.Axes, optional
        Where to draw; without it, on a new pyplot figure.
    measure, layer, method, normalised
        As for `psyprobe.analysis.match_result`.
    title : str, optional
        Without it, the observer's name. Give "" for none.

    Returns
    -------
    matplotlib.axes.Axes
        Frequency to the right, contrast upwards, both logarithmic. One colour a reference contrast: people dashed,
        with triangles; the observer solid, with dots at the frequencies of the human data. Hollow dots at the end of
        the contrast range are saturated: no match exists. Crosses are ambiguous: more than one contrast matches.

    Raises
    ------
    InputError
        If this is no matching result, or several layers were run and none was named.
    UnknownNameError
        If the measure or layer is not in the result.
    """
    import matplotlib as mpl
    from matplotlib.lines import Line2D

    found = match_result(result, measure=measure, layer=layer, method=method, normalised=normalised)
    at, order = found.measured(), np.argsort(found.reference_contrast)
    ax = new_axes() if ax is None else ax
    # The light end of the map, which cannot be seen on white, is left out.
    colours = mpl.colormaps["viridis"](np.linspace(0, 0.88, len(order)))
    for colour, k in zip(colours, order, strict=True):
        exists = found.matches.saturated[k] == 0
        ax.plot(found.x, np.where(exists, found.matches.contrast[k], np.nan), color=colour, linewidth=1.4)
        ax.plot(found.x_measured, found.human[k], color=colour, linestyle="--", linewidth=1, marker="^", markersize=3.5)
        for marked, marker, fill in (
            ((at.saturated[k] == 0) & ~at.ambiguous[k], "o", colour),
            ((at.saturated[k] == 0) & at.ambiguous[k], "X", colour),
            (at.saturated[k] != 0, "o", "white"),
        ):
            if not marked.any():
                # Unclipped markers of no points would claim the corner of the figure for the layout.
                continue
            ax.plot(
                found.x_measured[marked],
                at.contrast[k][marked],
                linestyle="none",
                marker=marker,
                markersize=5,
                markerfacecolor=fill,
                markeredgecolor=colour,
                clip_on=False,
                zorder=3,
            )
    contrast = result["contrast"].values
    log_axis(ax.xaxis, float(found.x.min()) / 1.1, float(found.x.max()) * 1.1)
    log_axis(ax.yaxis, float(contrast.min()), float(contrast.max()))
    ax.set_xlabel(x_label(result.attrs))
    ax.set_ylabel("Matched contrast")
    ax.set_title(title_of(result) if title is None else title, fontsize="medium")
    keys = [
        Line2D([], [], color="0.3", linestyle="--", marker="^", markersize=3.5, linewidth=1, label="Human"),
        Line2D([], [], color="0.3", marker="o", markersize=5, linewidth=1.4, label="Observer"),
    ]
    if at.saturated.any():
        hollow = Line2D([], [], color="0.3", linestyle="none", marker="o", label="Saturated: no match")
        hollow.set_markerfacecolor("white")
        keys.append(hollow)
    if (at.ambiguous & (at.saturated == 0)).any():
        keys.append(Line2D([], [], color="0.3", linestyle="none", marker="X", label="Ambiguous"))
    # Few matches are as low as the lowest contrast, so a flat legend there hides least.
    ax.legend(handles=keys, fontsize="small", framealpha=0.9, loc="lower center", ncols=2)
    _label_references(ax, found.reference_contrast[order], float(result.attrs["reference_frequency"]), colours)
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def _label_references(ax: Axes, contrast: np.typing.NDArray[np.floating], frequency: float, colours: object) -> None:
    """A scale of the reference contrasts on the right, each in its colour."""
    side = ax.secondary_yaxis("right")
    side.set_yticks(contrast, labels=[f"{c:.2g}" for c in contrast], fontsize="small")
    side.minorticks_off()
    for label, colour in zip(side.get_yticklabels(), np.asarray(colours), strict=True):
        label.set_color(colour)
    side.set_ylabel(f"Reference contrast at {frequency:g} cpd")
