"""The figure that fits a result, or several."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from psyprobe.analysis.chat_counts import is_chat
from psyprobe.analysis.matching_score import is_matching
from psyprobe.analysis.responses import layers_of
from psyprobe.errors import InputError
from psyprobe.plotting.axes import printable, title_of
from psyprobe.plotting.contour import contour, contours
from psyprobe.plotting.csf import plot_csf
from psyprobe.plotting.matches import matched_contrast

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


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
        Axes of a single panel, or the figure that holds several: contours above, matches below.

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
    if asked:
        return _asked(asked, [one for one in results if not is_chat(one)], ax, measure, layer)
    matching = [one for one in results if is_matching(one)]
    detection = [one for one in results if not is_matching(one)]
    shown = [(one, str(name)) for one in matching for name in (one["layer"].values if layer is None else [layer])]
    panels = len(shown) + sum(1 if layer is not None else len(layers_of(one)) for one in detection)
    if ax is not None and panels != 1:
        raise InputError(f"ax holds one panel, and there are {panels}; name one layer of one result, or leave ax out")
    if not matching:
        if len(detection) == 1 and (layer is not None or len(layers_of(detection[0])) == 1):
            return contour(detection[0], ax, measure=measure, layer=layer, levels=levels)
        return contours(detection, measure=measure, layer=layer, levels=levels, titles=_titles(detection, layer))
    if len(shown) == 1 and not detection:
        return matched_contrast(matching[0], ax, measure=measure, layer=shown[0][1])
    import matplotlib.pyplot as plt

    across = 3 if detection else min(3, len(shown))
    down = -(-len(shown) // across)
    contoured = panels - len(shown)
    # Contours stand four abreast.
    heights = [3.3 * -(-contoured // 4), 3.6 * down] if detection else [3.6 * down]
    wide = max(4.8 * across, 3.4 * min(contoured, 4) + 1.2)
    figure: Figure = plt.figure(figsize=(wide, sum(heights) + 0.2), layout="constrained")
    parts = figure.subfigures(len(heights), 1, height_ratios=heights, squeeze=False)[:, 0]
    if detection:
        titles = _titles(detection, layer)
        contours(detection, figure=parts[0], measure=measure, layer=layer, levels=levels, titles=titles)
    axes = list(parts[-1].subplots(down, across, squeeze=False).flat)
    for empty in axes[len(shown) :]:
        empty.remove()
    for panel, (one, name) in zip(axes, shown, strict=False):
        matched_contrast(one, panel, measure=measure, layer=name, title=_title(one, name, bool(detection)))
    return figure


def _asked(
    asked: list[xr.Dataset], others: list[xr.Dataset], ax: Axes | None, measure: str | None, layer: str | None
) -> Axes | Figure:
    """One panel for the sensitivity functions of each experiment."""
    experiments = list(dict.fromkeys(str(one.attrs.get("experiment", "")) for one in asked))
    if others:
        raise InputError(
            f"results of questioning runs ({', '.join(experiments)}) and of other runs do not fit one figure; draw "
            f"each kind by itself"
        )
    for name, value in (("measure", measure), ("layer", layer)):
        if value is not None:
            raise InputError(f"answers in words have no {name}; leave it out")
    if len(experiments) == 1:
        return plot_csf(asked, ax)
    if ax is not None:
        raise InputError(f"ax holds one panel, and there are {len(experiments)}; draw one experiment, or leave ax out")
    import matplotlib.pyplot as plt

    across = min(3, len(experiments))
    down = -(-len(experiments) // across)
    figure: Figure = plt.figure(figsize=(4.8 * across, 4.0 * down), layout="constrained")
    panels = list(figure.subplots(down, across, squeeze=False).flat)
    for empty in panels[len(experiments) :]:
        empty.remove()
    for panel, name in zip(panels, experiments, strict=False):
        plot_csf([one for one in asked if one.attrs.get("experiment") == name], panel, title=printable(name))
    return figure


def _titles(results: list[xr.Dataset], layer: str | None) -> list[str] | None:
    """Titles of all panels where the observer alone would not tell them apart."""
    several = len({one.attrs.get("experiment") for one in results}) > 1
    if not several:
        return None
    return [_title(one, name, several) for one in results for name in (layers_of(one) if layer is None else [layer])]


def _title(result: xr.Dataset, layer: str, several: bool) -> str:
    lines = [printable(str(result.attrs.get("experiment", "")))] * several + [title_of(result)]
    return "\n".join([*lines, *[printable(layer)] * (len(result["layer"]) > 1)])
