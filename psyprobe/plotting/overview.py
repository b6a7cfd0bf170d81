"""The figure that fits a result, or several."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from psyprobe.analysis.matching_score import is_matching
from psyprobe.analysis.responses import layers_of
from psyprobe.analysis.words.chat_counts import is_chat
from psyprobe.errors import InputError
from psyprobe.plotting.axes import printable, title_of
from psyprobe.plotting.contour import contour, contours
from psyprobe.plotting.csf import plot_csf
from psyprobe.plotting.matches import matched_contrast

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure


def plot(
    result: xr.Dataset | Iterable[xr.Dataset],
    ax: Axes | None = None,
    *,
    measure: str | None = None,
    layer: str | None = None,
    levels: Any = "linear",
) -> Axes | Figure:
    """Draw the figure that fits each result: contours, contrast matches or, of questioning runs, sensitivity functions.

    One panel for each layer and result; the sensitivity functions of an experiment share one.

    Parameters
    ----------
    result : xarray.Dataset or iterable of xarray.Dataset
        Of any runs.
    ax : matplotlib Axes, optional
        Where to draw one panel; without it, on a new pyplot figure.
    measure : {"angular", "angular_float32", "cosine", "l1", "l2"}, optional
        What to draw; without it the measure that the experiment names, else "angular".
    layer : str, optional
        Name of a layer that all results hold; without it, one panel for each layer of each result.
    levels : "linear", "log" or array_like of float, optional
        Of contours, as for `contour`.

    Returns
    -------
    matplotlib Axes or Figure
        Axes of a single panel, or the figure that holds several: contours above, then matches, then what was asked
        in words.

    Raises
    ------
    InputError
        If something is no result, or several panels are to go on one Axes.

    See Also
    --------
    contour, contours, matched_contrast, plot_csf : with all their options.
    plot_psychometric, plot_prompts, plot_yes_map : more of a questioning run.
    """
    import xarray as xr

    results = [result] if isinstance(result, xr.Dataset) else list(result)
    asked = [one for one in results if is_chat(one)]
    matching = [one for one in results if is_matching(one)]
    detection = [one for one in results if not is_matching(one) and not is_chat(one)]
    shown = [(one, str(name)) for one in matching for name in (one["layer"].values if layer is None else [layer])]
    contoured = sum(1 if layer is not None else len(layers_of(one)) for one in detection)
    experiments = list(dict.fromkeys(str(one.attrs.get("experiment", "")) for one in asked))
    panels = contoured + len(shown) + len(experiments)
    if ax is not None and panels != 1:
        raise InputError(f"ax holds one panel, and there are {panels}; name one layer of one result, or leave ax out")
    if asked and (measure is not None or layer is not None):
        named = "measure" if measure is not None else "layer"
        raise InputError(f"answers in words have no {named}; leave it out, or draw them by themselves")
    if not matching and not asked:
        if len(detection) == 1 and (layer is not None or len(layers_of(detection[0])) == 1):
            return contour(detection[0], ax, measure=measure, layer=layer, levels=levels)
        return contours(detection, measure=measure, layer=layer, levels=levels, titles=_titles(detection, layer))
    if panels == 1 and asked:
        return plot_csf(asked, ax)
    if panels == 1:
        return matched_contrast(matching[0], ax, measure=measure, layer=shown[0][1])
    import matplotlib.pyplot as plt

    # Contours stand four abreast, all else three.
    across = 3 if detection else min(3, max(len(shown), len(experiments)))
    rows = [-(-contoured // 4) * 3.3, -(-len(shown) // across) * 3.6, -(-len(experiments) // across) * 4.0]
    heights = [height for height in rows if height]
    wide = max(4.8 * across, 3.4 * min(contoured, 4) + 1.2)
    figure: Figure = plt.figure(figsize=(wide, sum(heights) + 0.2), layout="constrained")
    names = {title_of(one, width=80) for one in results}
    together = names.pop() if len(names) == 1 and len(results) > 1 and not asked else None
    figure.suptitle(together or "", fontsize="large")
    parts = list(figure.subfigures(len(heights), 1, height_ratios=heights, squeeze=False)[:, 0])
    if detection:
        titles = _titles(detection, layer, together is None)
        contours(detection, figure=parts.pop(0), measure=measure, layer=layer, levels=levels, titles=titles)
    if shown:
        for panel, (one, name) in zip(_panels(parts.pop(0), len(shown), across), shown, strict=True):
            title = _title(one, name, bool(detection), together is None)
            matched_contrast(one, panel, measure=measure, layer=name, title=title)
    if asked:
        for panel, name in zip(_panels(parts.pop(0), len(experiments), across), experiments, strict=True):
            plot_csf([one for one in asked if one.attrs.get("experiment") == name], panel, title=printable(name))
    return figure


def _panels(figure: SubFigure, count: int, across: int) -> list[Axes]:
    """Axes in rows, none more than wanted."""
    axes: list[Axes] = list(figure.subplots(-(-count // across), across, squeeze=False).flat)
    for empty in axes[count:]:
        empty.remove()
    return axes[:count]


def _titles(results: list[xr.Dataset], layer: str | None, observer: bool = True) -> list[str] | None:
    """Titles of all panels where the observer alone would not tell them apart."""
    several = len({one.attrs.get("experiment") for one in results}) > 1 or not observer
    if not several:
        return None
    shown = [(one, name) for one in results for name in (layers_of(one) if layer is None else [layer])]
    return [_title(one, name, several, observer) for one, name in shown]


def _title(result: xr.Dataset, layer: str, several: bool, observer: bool = True) -> str:
    lines = [printable(str(result.attrs.get("experiment", "")))] * several + [title_of(result)] * observer
    return "\n".join([*lines, *[printable(layer)] * (len(result["layer"]) > 1)])
