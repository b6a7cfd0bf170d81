"""Figures of runs that compare features: contours, scored responses, contrast matches, each beside
people.

Contours are of responses over a level and sensitivity, with human contrast sensitivity on top; of a
masking result, over the contrasts of mask and target, with the measured human thresholds.

References
----------
Cai, Yin, Hammou, Mantiuk (2025). Do computer vision foundation models learn the low-level
characteristics of the human visual system? CVPR. Figure 5. Georgeson, Sullivan (1975). Contrast
constancy: deblurring in human vision by spatial frequency channels. J. Physiol. 252(3), 627-656.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np
import numpy.typing as npt

from psyprobe._typing import FloatArray
from psyprobe.analysis.direction import ADVISED, UNDEFINED
from psyprobe.analysis.matching import Method, match_result, matching_layers
from psyprobe.analysis.responses import MEASURE_LABELS, Responses, layers_of, levels_of, select
from psyprobe.errors import InputError
from psyprobe.human.models import human_label
from psyprobe.plotting import axes
from psyprobe.plotting.people import (
    Human,
    draw_people,
    drawn_of,
    measured_points,
    people_handles,
    people_title,
)

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.cm import ScalarMappable
    from matplotlib.figure import Figure, SubFigure

Levels = Literal["linear", "log"] | npt.ArrayLike

Masked = np.ma.MaskedArray[Any, np.dtype[np.float64]]

#: Width of a band between linear levels of angles, as in the paper.
_STEP = 0.02
#: Responses that would fill fewer of these bands get finer ones: a figure of two colours shows
#: nothing.
_FEWEST_BANDS = 8

#: Where rounding alone could make a response.
_UNDEFINED_LABEL = f"Undefined: see measure={ADVISED!r}"

#: More bands than this cannot be told apart.
_MOST_BANDS = 50
#: Numbers beside the colour bar, at most.
_MOST_TICKS = 12
#: Log levels reach no deeper under the largest response than this.
_MOST_DECADES = 10


def contour(
    result: xr.Dataset,
    ax: Axes | None = None,
    *,
    levels: Levels | None = None,
    measure: str | None = None,
    layer: str | None = None,
    human: Human = "both",
    cmap: str | None = None,
    width: float | None = None,
    title: str | None = None,
) -> Axes:
    """Draw filled and line contours of the responses, and people's contrast sensitivity on them.

    Parameters
    ----------
    result : xarray.Dataset
        Of a detection run over one level; of several, take the others with
        ``result.sel(luminance=100)``.
    ax : matplotlib.axes.Axes, optional
        Where to draw; without it, on a new pyplot figure.
    levels : "log", "linear" or array_like of float, optional
        "log": ten or five bands a decade from the smallest response above the noise floor, which
        show what lies near threshold; where responses are not above the noise floor, the axes stay
        blank. "linear": bands of 0.02 from 0 to the largest response, as in the paper, finer where
        that would give fewer than eight (for other measures than angles, up to 50 bands). Or
        increasing levels, in units of the measure. By default "log", and "linear" where no response
        is above the noise floor.
    measure : {"angular", "angular_float32", "cosine", "l1", "l2"}, optional
        What to draw; without it the measure that the experiment names, else "angular".
    layer : str, optional
        Name of a layer; needed where the result holds more than one.
    human : {"both", "model", "measured", "none"}, optional
        What of people is drawn: the curve of the experiment's human model, dashed in black;
        measured thresholds, means over the people of each data set with standard errors, filled
        where they were measured under these conditions and hollow where they were moved here, with
        one standard deviation between people dotted; or both.
    cmap : str, optional
        A colour map of matplotlib.
    width : float, optional
        Of a new figure, mm, with type as journals print it: 85 for one column, 178 for two.
    title : str, optional
        Without it, the observer's short name. Give "" for none.

    Returns
    -------
    matplotlib.axes.Axes
        The level (frequency, luminance, ...) to the right, sensitivity (1 / contrast) upwards. Of a
        masking result, and where test and reference differ in something else than contrast: that
        difference upwards, human thresholds as black dots.

    Raises
    ------
    InputError
        This is no detection result, several layers or levels were run and none was taken, levels do
        not increase, or no response exceeds the noise floor and log levels were asked for.
    UnknownNameError
        The measure or layer is not in the result.

    See Also
    --------
    contours : several results side by side, with common levels.
    """
    axes.check_new(width, ax)
    found = [_select(result, measure, layer)]
    scale = _scale(found, levels, cmap)
    with axes.typeset(width):
        ax = axes.new_axes() if ax is None else ax
        handles = _draw([ax], [result], found, scale, human, title if title is None else [title])
        axes.legend_below(ax, *handles)
    axes.fit_width(ax, width)
    return ax


def contours(
    results: Iterable[xr.Dataset],
    *,
    figure: Figure | SubFigure | None = None,
    columns: int | None = None,
    levels: Levels | None = None,
    measure: str | None = None,
    layer: str | None = None,
    human: Human = "both",
    cmap: str | None = None,
    width: float | None = None,
    titles: Sequence[str] | None = None,
) -> Figure | SubFigure:
    """Draw contour plots of several results or layers side by side, with common levels and one
    colour bar.

    Parameters
    ----------
    results : iterable of xarray.Dataset
        Of detection runs.
    figure : matplotlib.figure.Figure, optional
        Where to draw; without it, a new pyplot figure of fitting size.
    columns : int, optional
        Panels in a row; by default at most four, in rows as even as can be.
    levels, measure, human, cmap, width
        As in `contour`; the measure must be the same for all.
    layer : str, optional
        Name of a layer that all results hold; without it, one panel for each layer of each result.
    titles : sequence of str, optional
        One for each panel.

    Returns
    -------
    matplotlib.figure.Figure
        With one pair of axes for each panel, in order, before that of the colour bar.

    Raises
    ------
    InputError
        As in `contour`; also if there are no results, not as many titles as panels, or results name
        different measures.
    """
    shown = axes.shown_layers(list(results), layer, layers_of, None)
    if not shown:
        raise InputError("there are no results to draw; give at least one")
    if titles is not None and len(titles) != len(shown):
        raise InputError(f"{len(titles)} titles do not fit {len(shown)} panels; give one for each")
    listed = [one for one, _ in shown]
    found = [_select(one, measure, name) for one, name in shown]
    measures = sorted({one.measure for one in found})
    if len(measures) > 1:
        raise InputError(
            f"the results are to be drawn as {' and '.join(measures)}; choose one with measure="
        )
    axes.check_new(width, figure)
    scale = _scale(found, levels, cmap)
    with axes.typeset(width):
        across = columns or -(-len(listed) // -(-len(listed) // axes.most_across()))
        place, panels = axes.panels_in(
            figure, len(listed), across, each=(3.4, 3.3), margin=(1.2, 0.7)
        )
        handles = _draw(panels, listed, found, scale, human, titles)
        for i, ax in enumerate(panels):
            # What the panel above or on the left says already is not said again.
            if i >= across and panels[i - across].get_xlabel() == ax.get_xlabel():
                panels[i - across].set_xlabel("")
            if i % across and upward_label(listed[i - 1]) == upward_label(listed[i]):
                ax.set_ylabel("")
        axes.legend_below(place, *handles)
    axes.fit_width(place, width)
    return cast("Figure | SubFigure", place)


def contour_panels(
    results: Sequence[xr.Dataset],
    ax: Axes | None = None,
    *,
    figure: SubFigure | None = None,
    observer: bool = True,
    layer: str | None = None,
    **options: Any,
) -> Axes | Figure | SubFigure:
    """Draw a contour plot for each result and layer: ``plot`` of a probe, see
    `psyprobe.probes.results`.

    Of several experiments with the same observers each has a row of its own, with its name at the
    left.
    """
    shown = axes.shown_layers(results, layer, layers_of, ax)
    if len(shown) == 1 and figure is None:
        return contour(results[0], ax, layer=layer, **options)
    tests: dict[str, list[tuple[xr.Dataset, str]]] = {}
    for one, name in shown:
        tests.setdefault(str(one.attrs.get("experiment")), []).append((one, name))
    (across, *uneven) = {len(row) for row in tests.values()}
    told = len(tests) > 1 or not observer
    rows = not uneven and across > 1 and len(tests) > 1 and layer is None
    titles = [
        axes.panel_title(one, name, experiment=told and not rows, observer=observer, among=results)
        for one, name in ([each for row in tests.values() for each in row] if rows else shown)
    ]
    if not rows:
        return contours(
            results, figure=figure, layer=layer, titles=titles if told else None, **options
        )
    ordered = list(dict.fromkeys(id(one) for row in tests.values() for one, _ in row))
    by_id = {id(result): result for result in results}
    place = contours(
        [by_id[one] for one in ordered], figure=figure, columns=across, titles=titles, **options
    )
    for name, ax in zip(tests, place.axes[::across], strict=False):
        ax.set_ylabel(f"{axes.printable(name)}\n{upward_label(tests[name][0][0])}")
    return place


@dataclass(frozen=True)
class _Scale:
    """Levels and colours of the contours, common to all panels, in the drawn quantity: the response
    or its log10.
    """

    levels: FloatArray
    log: bool
    extend: Literal["neither", "both", "min", "max"]
    cmap: str = axes.COLOUR_MAP

    @property
    def colours(self) -> ScalarMappable:
        from matplotlib.cm import ScalarMappable
        from matplotlib.colors import BoundaryNorm

        colours = axes.colour_map(self.cmap)
        return ScalarMappable(BoundaryNorm(self.levels, colours.N, extend=self.extend), colours)

    def drawn(self, found: Responses) -> Masked:
        defined = np.ma.masked_array(found.grid.T, found.status.T == UNDEFINED)
        if not self.log:
            return np.ma.asarray(defined)
        # Blank, not clipped: between a response and 0 lie all levels, and contours would be made up
        # there.
        return np.ma.asarray(
            np.ma.log10(np.ma.masked_less_equal(defined, max(found.noise_floor, 0.0)))
        )


def _defined(found: Responses) -> FloatArray:
    """The responses of the grid that are not undefined."""
    return np.asarray(found.grid[found.status != UNDEFINED])


def _select(result: xr.Dataset, measure: str | None, layer: str | None) -> Responses:
    found = select(result, measure=measure, layer=layer)
    if not found.grid.size:
        raise InputError(
            "this run showed only what the score needs, and no level grid to draw; run it again "
            "without --score-only"
        )
    if len(found.levels) != 1:
        names = list(found.levels)
        raise InputError(
            "a contour plot is over one level, and this result has "
            f"{' and '.join(names) or 'no level'}; keep one and "
            f"take the others, as with result.sel({names[-1] if names else 'frequency'}=..., "
            "method='nearest')"
        )
    return found


def _scale(found: Sequence[Responses], levels: Levels | None, cmap: str | None) -> _Scale:
    return replace(_levelled(found, levels), cmap=cmap or axes.COLOUR_MAP)


def _levelled(found: Sequence[Responses], levels: Levels | None) -> _Scale:
    top = max(float(_defined(one).max(initial=0.0)) for one in found)
    if levels is None:
        levels = (
            "log"
            if any((_defined(one) > max(one.noise_floor, 0.0)).any() for one in found)
            else "linear"
        )
    if isinstance(levels, str):
        if levels == "linear":
            return _Scale(_linear_levels(top, found[0].measure), log=False, extend="neither")
        if levels == "log":
            log_levels, lowest = _log_levels(found, top)
            return _Scale(
                log_levels, log=True, extend="min" if lowest < log_levels[0] else "neither"
            )
        raise InputError(f"levels {levels!r} must be 'linear', 'log' or increasing numbers")
    given = np.asarray(levels, dtype=np.float64)
    if (
        given.ndim != 1
        or len(given) < 2
        or not (np.isfinite(given).all() and (np.diff(given) > 0).all())
    ):
        raise InputError("levels must be two or more increasing numbers, 'linear' or 'log'")
    return _Scale(given, log=False, extend="both")


def _linear_levels(top: float, measure: str) -> FloatArray:
    from matplotlib.ticker import MaxNLocator

    if measure.startswith("angular") and top >= _FEWEST_BANDS * _STEP:
        return _STEP * np.arange(max(2, np.ceil(top / _STEP - 1e-9) + 1))
    locator = MaxNLocator(_MOST_BANDS, steps=[1, 2, 2.5, 5, 10])
    return np.asarray(locator.tick_values(0, top if top > 0 else 1), dtype=np.float64)


def _log_levels(found: Sequence[Responses], top: float) -> tuple[FloatArray, float]:
    """Log10 of the levels, and of the smallest response above the noise."""
    above = [
        values[values > max(one.noise_floor, 0.0)]
        for one, values in ((one, _defined(one)) for one in found)
    ]
    smallest = min((float(values.min()) for values in above if values.size), default=None)
    if smallest is None:
        raise InputError(
            "no response exceeds the noise floor "
            f"({max(one.noise_floor for one in found):.3g}), so there are no log "
            f"levels; draw levels='linear'"
        )
    lowest = np.log10(smallest)
    highest = np.log10(top)
    start = max(lowest, highest - _MOST_DECADES)
    bands = 10 if 10 * (highest - start) <= _MOST_BANDS else 5
    first = np.floor(bands * start + 1e-9)
    last = np.ceil(bands * highest - 1e-9)
    return np.arange(first, max(last, first + 1) + 1) / bands, lowest + 1e-9


def _draw(
    panels: Sequence[Axes],
    results: Sequence[xr.Dataset],
    found: Sequence[Responses],
    scale: _Scale,
    human: Human,
    titles: Sequence[str] | None,
) -> tuple[list[Any], str]:
    """Contours on each of the panels and one colour bar; what a legend says, and its title."""
    from matplotlib.patches import Patch

    model, measured = drawn_of(human)
    people = []
    for i, (ax, result, responses) in enumerate(zip(panels, results, found, strict=True)):
        ((level, values),) = responses.levels.items()
        # Masking studies plot thresholds, contrast sensitivity studies their inverse.
        up = responses.difference if upwards(result) else 1 / responses.difference
        ax.set_facecolor(axes.BLANK)
        _draw_contours(ax, values, up, scale.drawn(responses), scale)
        beside = measured_points(result) if measured and not upwards(result) else None
        if beside is not None:
            draw_people(ax, beside[1], lines=True)
            people.append(beside)
        # Behind masks what is measured is all that there is.
        if model or (measured and upwards(result)):
            _draw_human(ax, result, responses)
        axes.level_axis(ax.xaxis, values)
        axes.log_axis(ax.yaxis, float(up.min()), float(up.max()))
        title = (
            titles[i]
            if titles
            else axes.panel_title(
                result, responses.layer, experiment=False, observer=True, among=results
            )
        )
        axes.label(ax, axes.level_label(result, level), upward_label(result), title)
    lines = {str(line.get_label()): line for ax in panels for line in ax.lines}
    handles: list[Any] = [line for label, line in lines.items() if not label.startswith("_")]
    blanks = {
        _UNDEFINED_LABEL: any((one.status == UNDEFINED).any() for one in found),
        "Not above noise floor": scale.log
        and any((_defined(one) <= max(one.noise_floor, 0.0)).any() for one in found),
    }
    label = " or ".join(label for label, seen in blanks.items() if seen)
    if label:
        handles.append(Patch(facecolor=axes.BLANK, edgecolor="0.4", label=label))
    _colour_bar(scale, found[0].measure, panels)
    return handles + people_handles(people), people_title(people) if people else ""


def upwards(result: xr.Dataset) -> bool:
    """Whether thresholds stand upwards and not sensitivity: of masks, and of differences that are
    no contrast.
    """
    return "mask_contrast" in levels_of(result) or str(result.attrs["difference"]) != "contrast"


def upward_label(result: xr.Dataset) -> str:
    difference = str(result.attrs["difference"])
    if difference != "contrast":
        return axes.level_label(result, difference)
    label = result.attrs["difference_label"]
    return f"Target contrast ({label})" if upwards(result) else f"Sensitivity (1 / {label})"


def _draw_contours(
    ax: Axes, x: FloatArray, upwards: FloatArray, drawn: Masked, scale: _Scale
) -> None:
    if not drawn.count():
        return
    colours = scale.colours
    levels = scale.levels
    filled = ax.contourf(
        x, upwards, drawn, levels=levels, cmap=colours.cmap, norm=colours.norm, extend=scale.extend
    )
    # Without an edge of their own, neighbouring bands leave hairlines between them in PDF and SVG.
    filled.set_edgecolor("face")
    filled.set_linewidth(0.4)
    inside = levels[(levels > drawn.min()) & (levels < drawn.max())]
    if inside.size:
        ax.contour(
            x, upwards, drawn, levels=inside, colors="0.45", linewidths=0.25, linestyles="solid"
        )


def human_points(result: xr.Dataset, found: Responses) -> tuple[str, FloatArray, FloatArray] | None:
    """What the human curve or the measured thresholds are called, where they lie, and the
    sensitivity there.
    """
    ((level, values),) = found.levels.items()
    if found.curve is not None and found.curve[0] == level:
        _, at, sensitivity = found.curve
    elif found.scored is not None and list(found.scored.at) == [level]:
        at = found.scored.at[level]
        sensitivity = found.scored.sensitivity
    else:
        return None
    model = str(result.attrs.get("human_model", ""))
    name = f"Human ({axes.printable(human_label(model))})" if model else "Human"
    if not upwards(result):
        return name, at, sensitivity
    # Thresholds behind a mask are measured points, not a model's curve.
    inside = (at >= values.min()) & (at <= values.max())
    return name, at[inside], sensitivity[inside]


def _draw_human(ax: Axes, result: xr.Dataset, found: Responses) -> None:
    from matplotlib.patheffects import withStroke

    known = human_points(result, found)
    if known is None:
        return
    name, at, sensitivity = known
    if upwards(result):
        style: dict[str, Any] = {
            "linestyle": "none",
            "marker": "o",
            "markeredgecolor": "white",
            "clip_on": False,
        }
        ax.plot(at, 1 / sensitivity, color="black", zorder=3, label=name, **style)
        return
    halo = [withStroke(linewidth=axes.scaled(3.5), foreground="white")]
    style = {"linestyle": "--", "linewidth": axes.scaled(2), "path_effects": halo}
    ax.plot(at, sensitivity, color="black", label=name, **style)


def _colour_bar(scale: _Scale, measure: str, panels: Sequence[Axes]) -> None:
    bar = panels[0].figure.colorbar(
        scale.colours,
        ax=panels,
        label=MEASURE_LABELS[measure],
        spacing="proportional",
        extend=scale.extend,
    )
    if scale.log:
        ticks = _log_ticks(float(scale.levels[0]), float(scale.levels[-1]))
        texts = axes.tick_texts(ticks, 10 ** float(scale.levels[0]), 10 ** float(scale.levels[-1]))
        bar.set_ticks([float(np.log10(tick)) for tick in ticks], labels=texts)
    else:
        every = -(-len(scale.levels) // _MOST_TICKS)
        bar.set_ticks(
            scale.levels[::every].tolist(),
            labels=[f"{level:.6g}" for level in scale.levels[::every]],
        )
    bar.minorticks_off()


def _log_ticks(low: float, high: float) -> list[float]:
    """Powers of ten within log10 limits, or 1, 2, 5 of each where there are few of those."""
    digits = (1, 2, 5) if high - low < 1.5 else (1,)
    ticks = [d * 10.0**e for e in range(int(np.floor(low)), int(np.ceil(high)) + 1) for d in digits]
    return [tick for tick in ticks if low - 1e-9 <= np.log10(tick) <= high + 1e-9]


def scored_responses(
    result: xr.Dataset,
    ax: Axes | None = None,
    *,
    measure: str | None = None,
    layer: str | None = None,
    title: str | None = None,
) -> Axes:
    """Draw the responses from which the alignment score is computed.

    With the sensitivity of people, all lines would lie on one another and rise; lines that rise but
    lie apart are what makes the score small.

    Parameters
    ----------
    result : xarray.Dataset
        Of a detection run with a human reference.
    ax, measure, layer, title
        As in `contour`.

    Returns
    -------
    matplotlib.axes.Axes
        Contrast over human threshold to the right, response upwards, both logarithmic; the colour
        of a line is the first level. The response axis is linear if no response exceeds 0.

    Raises
    ------
    InputError
        This is no detection result, it has no human reference, or several layers were run and none
        was named.
    UnknownNameError
        The measure or layer is not in the result.
    """
    import matplotlib as mpl
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import FuncNorm, LogNorm, Normalize

    found = select(result, measure=measure, layer=layer)
    points = found.scored
    if points is None:
        raise InputError(
            "this run has no human reference, and so no multiples of human thresholds to draw"
        )
    ax = axes.new_axes() if ax is None else ax
    order = np.argsort(points.multiplier)
    undefined = points.status == UNDEFINED
    drawn = np.where(undefined, np.nan, points.response)
    level, values = next(iter(points.at.items()))
    zero = axes.zero_beside(values)
    norm = (LogNorm if axes.is_logarithmic(values) else Normalize)(values.min(), values.max())
    if zero is not None:
        norm = FuncNorm(axes.log_with_zero(zero), values.min(), values.max())
    colours = ScalarMappable(norm, mpl.colormaps["viridis"])
    if undefined.any():
        count = f"{undefined.sum()} of {undefined.size} points"
        ax.plot([], [], linestyle="none", label=f"{count}: {_UNDEFINED_LABEL.lower()}")
        ax.legend(fontsize="small")
    for value, response in zip(values, drawn, strict=True):
        ax.plot(
            points.multiplier[order], response[order], color=colours.to_rgba(value), linewidth=1.3
        )
    axes.log_axis(ax.xaxis, float(points.multiplier.min()), float(points.multiplier.max()))
    positive = drawn[drawn > 0]
    if positive.size:
        low = float(positive.min())
        high = float(positive.max())
        axes.log_axis(ax.yaxis, low / 1.2, high * 1.2)
        if low < found.noise_floor < high:
            ax.axhline(found.noise_floor, color="0.4", linestyle=":", label="noise floor")
            ax.legend(fontsize="small")
    ax.axvline(1, color="0.7", linewidth=0.8, zorder=0)
    title = axes.title_of(result) if title is None else title
    axes.label(ax, "Contrast / human threshold", MEASURE_LABELS[found.measure], title)
    bar = ax.figure.colorbar(colours, ax=ax, label=axes.level_label(result, f"scored_{level}"))
    axes.level_axis(bar.ax.yaxis, values)
    return ax


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

    Level lines show contrast constancy. People show it well above threshold; near it, they need
    more contrast at low and high frequencies.

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
        Frequency to the right, contrast upwards, both logarithmic. One colour a reference contrast:
        people dashed, with triangles; the observer solid, with dots at the frequencies of the human
        data. Hollow dots at the end of the contrast range are saturated: no match exists. Crosses
        are ambiguous: more than one contrast matches.

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
    at = found.measured()
    order = np.argsort(found.reference_contrast)
    ax = axes.new_axes() if ax is None else ax
    # The light end of the map, which cannot be seen on white, is left out.
    colours = mpl.colormaps["viridis"](np.linspace(0, 0.88, len(order)))
    people: dict[str, Any] = {"linestyle": "--", "linewidth": 1, "marker": "^", "markersize": 3.5}
    for colour, k in zip(colours, order, strict=True):
        exists = found.matches.saturated[k] == 0
        ax.plot(
            found.frequency,
            np.where(exists, found.matches.contrast[k], np.nan),
            color=colour,
            linewidth=1.4,
        )
        ax.plot(found.measured_frequency, found.human[k], color=colour, **people)
        exists = at.saturated[k] == 0
        for marked, marker, inside in (
            (exists & ~at.ambiguous[k], "o", colour),
            (exists & at.ambiguous[k], "X", colour),
            (~exists, "o", "white"),
        ):
            # Unclipped markers of no points would claim the corner of the figure for the layout.
            if marked.any():
                style = {
                    "markersize": 5,
                    "markerfacecolor": inside,
                    "markeredgecolor": colour,
                    "zorder": 3,
                }
                place = found.measured_frequency[marked], at.contrast[k][marked]
                ax.plot(*place, linestyle="none", marker=marker, clip_on=False, **style)
    contrast = result[str(result.attrs["difference"])].values
    axes.log_axis(ax.xaxis, float(found.frequency.min()) / 1.1, float(found.frequency.max()) * 1.1)
    axes.log_axis(ax.yaxis, float(contrast.min()), float(contrast.max()))
    keys = [
        Line2D([], [], color="0.3", **people, label="Human"),
        Line2D([], [], color="0.3", marker="o", markersize=5, linewidth=1.4, label="Observer"),
    ]
    if at.saturated.any():
        hollow = "Saturated: no match"
        keys.append(
            Line2D(
                [],
                [],
                color="0.3",
                linestyle="none",
                marker="o",
                markerfacecolor="white",
                label=hollow,
            )
        )
    if np.isnan(at.contrast).any():
        keys.append(Line2D([], [], linestyle="none", label=_UNDEFINED_LABEL))
    if (at.ambiguous & (at.saturated == 0)).any():
        keys.append(Line2D([], [], color="0.3", linestyle="none", marker="X", label="Ambiguous"))
    # Few matches are as low as the lowest contrast, so a flat legend there hides least.
    ax.legend(handles=keys, fontsize="small", framealpha=0.9, loc="lower center", ncols=2)
    side = ax.secondary_yaxis("right")
    references = found.reference_contrast[order]
    side.set_yticks(references, labels=[f"{c:.2g}" for c in references], fontsize="small")
    side.minorticks_off()
    for tick, colour in zip(side.get_yticklabels(), colours, strict=True):
        tick.set_color(colour)
    side.set_ylabel(f"Reference contrast at {float(result.attrs['reference_frequency']):g} cpd")
    title = axes.title_of(result) if title is None else title
    axes.label(
        ax, axes.level_label(result, levels_of(result)[0]), "Matched contrast", title, framed=False
    )
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
    """Draw the contrast matches of each result and layer: ``plot`` of a probe, see
    `psyprobe.probes.results`.
    """
    shown = axes.shown_layers(results, layer, matching_layers, ax)
    if len(shown) == 1 and figure is None:
        return matched_contrast(results[0], ax, measure=measure, layer=shown[0][1])
    names = {axes.title_of(result, width=80) for result in results}
    together = len(names) == 1 and len(results) > 1 and figure is None
    named = figure is not None or len({result.attrs.get("experiment") for result in results}) > 1
    place, panels = axes.panels_in(figure, len(shown), min(3, len(shown)), each=(4.8, 3.6))
    if together:
        place.suptitle(names.pop(), fontsize="large")
    for panel, (one, name) in zip(panels, shown, strict=True):
        title = axes.panel_title(one, name, experiment=named, observer=observer and not together)
        matched_contrast(one, panel, measure=measure, layer=name, title=title)
    return cast("Figure | SubFigure", place)
