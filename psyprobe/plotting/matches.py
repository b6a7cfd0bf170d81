"""Contrast matches over spatial frequency, beside those of people.

References
----------
Cai, Yin, Hammou, Mantiuk (2025). Do computer vision foundation models learn the low-level characteristics of
the human visual system? CVPR. Figure 5, contrast matching.
Georgeson, Sullivan (1975). Contrast constancy: deblurring in human vision by spatial frequency channels.
J. Physiol. 252(3), 627-656.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from psyprobe.analysis.matching import Method
from psyprobe.analysis.matching_score import match_result, matching_layers
from psyprobe.analysis.responses import levels_of
from psyprobe.plotting.axes import (
    check_room,
    label,
    level_label,
    log_axis,
    new_axes,
    panel_title,
    panels_in,
    shown_layers,
    title_of,
)

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure


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
        This is no matching result, or several layers were run and none was named.
    UnknownNameError
        The measure or layer is not in the result.
    """
    import matplotlib as mpl
    from matplotlib.lines import Line2D

    found = match_result(result, measure=measure, layer=layer, method=method, normalised=normalised)
    at, order = found.measured(), np.argsort(found.reference_contrast)
    ax = new_axes() if ax is None else ax
    # The light end of the map, which cannot be seen on white, is left out.
    colours = mpl.colormaps["viridis"](np.linspace(0, 0.88, len(order)))
    people: dict[str, Any] = {"linestyle": "--", "linewidth": 1, "marker": "^", "markersize": 3.5}
    for colour, k in zip(colours, order, strict=True):
        exists = found.matches.saturated[k] == 0
        ax.plot(found.frequency, np.where(exists, found.matches.contrast[k], np.nan), color=colour, linewidth=1.4)
        ax.plot(found.measured_frequency, found.human[k], color=colour, **people)
        for marked, marker, fill in (
            ((at.saturated[k] == 0) & ~at.ambiguous[k], "o", colour),
            ((at.saturated[k] == 0) & at.ambiguous[k], "X", colour),
            (at.saturated[k] != 0, "o", "white"),
        ):
            if not marked.any():
                # Unclipped markers of no points would claim the corner of the figure for the layout.
                continue
            style: dict[str, Any] = {"markersize": 5, "markerfacecolor": fill, "markeredgecolor": colour, "zorder": 3}
            place = found.measured_frequency[marked], at.contrast[k][marked]
            ax.plot(*place, linestyle="none", marker=marker, clip_on=False, **style)
    contrast = result[str(result.attrs["difference"])].values
    log_axis(ax.xaxis, float(found.frequency.min()) / 1.1, float(found.frequency.max()) * 1.1)
    log_axis(ax.yaxis, float(contrast.min()), float(contrast.max()))
    keys = [
        Line2D([], [], color="0.3", **people, label="Human"),
        Line2D([], [], color="0.3", marker="o", markersize=5, linewidth=1.4, label="Observer"),
    ]
    if at.saturated.any():
        hollow = "Saturated: no match"
        keys.append(Line2D([], [], color="0.3", linestyle="none", marker="o", markerfacecolor="white", label=hollow))
    if (at.ambiguous & (at.saturated == 0)).any():
        keys.append(Line2D([], [], color="0.3", linestyle="none", marker="X", label="Ambiguous"))
    # Few matches are as low as the lowest contrast, so a flat legend there hides least.
    ax.legend(handles=keys, fontsize="small", framealpha=0.9, loc="lower center", ncols=2)
    _label_references(ax, found.reference_contrast[order], float(result.attrs["reference_frequency"]), colours)
    title = title_of(result) if title is None else title
    label(ax, level_label(result, levels_of(result)[0]), "Matched contrast", title, framed=False)
    return ax


def match_panels(
    results: Sequence[xr.Dataset],
    ax: Axes | None = None,
    *,
    figure: SubFigure | None = None,
    observer: bool = True,
    measure: str | None = None,
    layer: str | None = None,
    **_: Any,
) -> Axes | Figure | SubFigure:
    """Draw the contrast matches of each result and layer: ``plot`` of a probe, see `psyprobe.probes.results`."""
    shown = shown_layers(results, layer, matching_layers)
    check_room(ax, len(shown))
    if len(shown) == 1 and figure is None:
        return matched_contrast(results[0], ax, measure=measure, layer=shown[0][1])
    names = {title_of(one, width=80) for one in results}
    together = len(names) == 1 and len(results) > 1 and figure is None
    named = figure is not None or len({one.attrs.get("experiment") for one in results}) > 1
    place, panels = panels_in(figure, len(shown), min(3, len(shown)), each=(4.8, 3.6))
    if together:
        place.suptitle(names.pop(), fontsize="large")
    for panel, (one, name) in zip(panels, shown, strict=True):
        title = panel_title(one, name, experiment=named, observer=observer and not together)
        matched_contrast(one, panel, measure=measure, layer=name, title=title)
    return cast("Figure | SubFigure", place)


def _label_references(ax: Axes, contrast: np.typing.NDArray[np.floating], frequency: float, colours: object) -> None:
    """A scale of the reference contrasts on the right, each in its colour."""
    side = ax.secondary_yaxis("right")
    side.set_yticks(contrast, labels=[f"{c:.2g}" for c in contrast], fontsize="small")
    side.minorticks_off()
    for tick, colour in zip(side.get_yticklabels(), np.asarray(colours), strict=True):
        tick.set_color(colour)
    side.set_ylabel(f"Reference contrast at {frequency:g} cpd")
