"""Draw runs that compare features: contours, scored responses, contrast matches, beside people.

Contours are of responses over a level and sensitivity, with human contrast sensitivity on top; of a
masking result, over the contrasts of mask and target, with the measured human thresholds.

References
----------
Cai, Yin, Hammou, Mantiuk (2025). Do computer vision foundation models learn the low-level
characteristics of the human visual system? CVPR. Figure 5. Georgeson, Sullivan (1975). Contrast
constancy: deblurring in human vision by spatial frequency channels. J. Physiol. 252(3), 627-656.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np
from numpy.typing import ArrayLike

from psyprobe._typing import FloatArray, Option
from psyprobe.analysis.direction import ADVISED, UNDEFINED
from psyprobe.analysis.matching import (
    MatchedCurves,
    Method,
    match_result,
    matching_layers,
)
from psyprobe.analysis.responses import (
    MEASURE_LABELS,
    Responses,
    layers_of,
    levels_of,
    select,
)
from psyprobe.errors import InputError
from psyprobe.files.json_types import JsonMapping, JsonObject
from psyprobe.human.models import human_label
from psyprobe.plotting import axes
from psyprobe.plotting.people import (
    Human,
    HumanCurve,
    draw_curve,
    draw_people,
    measured_points,
    people_handles,
    people_title,
    read_choice,
)
from psyprobe.running.task import stimulus_axis_of

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize
    from matplotlib.figure import Figure, SubFigure

Levels = Literal["linear", "log"] | ArrayLike

Masked = np.ma.MaskedArray[Any, np.dtype[np.float64]]

#: Width of a band between linear levels of angles, as in the paper.
_ANGLE_STEP = 0.02
#: Fewest bands; responses that would fill fewer get finer bands, since a figure of two colours
#: shows nothing.
_MIN_BANDS = 8

#: Label of responses that rounding alone could make.
_UNDEFINED_LABEL = f"Undefined: see measure={ADVISED!r}"

#: Style of people's contrast matches.
_PEOPLE_STYLE: JsonMapping = {
    "linestyle": "--",
    "linewidth": 1,
    "marker": "^",
    "markersize": 3.5,
}

#: More bands than this cannot be told apart.
_MAX_BANDS = 50
#: Most numbers beside the colour bar.
_MAX_TICKS = 12
#: Log levels reach no deeper under the largest response than this.
_MAX_DECADES = 10


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
    """Draw responses as filled contours over level and sensitivity, with the human CSF.

    Parameters
    ----------
    result : xarray.Dataset
        Result of a detection run over one level; of several levels, select the others with
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
        Measure to draw; by default the one that the experiment names, else "angular".
    layer : str, optional
        Name of a layer; needed where the result holds more than one.
    human : {"both", "model", "measured", "none"}, optional
        Human data to draw: the curve of the experiment's human model, dashed in black;
        measured thresholds, means over the people of each data set with standard errors, filled
        where they were measured under these conditions and hollow where they were moved here, with
        one standard deviation between people dotted; or both.
    cmap : str, optional
        A colour map of matplotlib.
    width : float, optional
        Width of a new figure, mm, with type as journals print it: 85 for one column, 178 for two.
    title : str, optional
        By default, the observer's short name. Give "" for none.

    Returns
    -------
    matplotlib.axes.Axes
        The level (frequency, luminance, ...) to the right, sensitivity (1 / contrast) upwards. For
        a masking result, and where test and reference differ in something else than contrast, that
        difference is upwards, and human thresholds are black dots.

    Raises
    ------
    InputError
        This is no detection result, several layers or levels were run and none was selected, levels
        do not increase, or levels are "log" and no response exceeds the noise floor.
    UnknownNameError
        The measure or layer is not in the result.

    See Also
    --------
    contours : several results side by side, with common levels.
    """
    axes.check_new(width, ax)
    responses = _select(result, measure, layer)
    scale = _choose_scale([responses], levels, cmap)
    titles = None if title is None else [title]
    with axes.typeset(width):
        ax = ax or axes.new_axes()
        _draw(ax, [ax], [result], [responses], scale, human, titles)
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
    """Draw contour plots of several results or layers that share levels and a colour bar.

    Parameters
    ----------
    results : iterable of xarray.Dataset
        Results of detection runs.
    figure : matplotlib.figure.Figure, optional
        Where to draw; without it, a new pyplot figure of fitting size.
    columns : int, optional
        Panels in a row; by default at most four, in rows as even as can be.
    levels, measure, human, cmap, width
        As in `contour`; the measure must be the same for all.
    layer : str, optional
        Name of a layer that all results hold; without it, one panel for each layer of each result.
    titles : sequence of str, optional
        Titles of the panels.

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
    pairs = axes.result_layers(list(results), layer, layers_of, None)
    count = len(pairs)
    if not pairs:
        raise InputError("there are no results to draw; give at least one")
    if titles is not None and len(titles) != count:
        raise InputError(
            f"{len(titles)} titles do not fit {count} panels; give one for each"
        )
    panel_results = [result for result, _ in pairs]
    responses = [_select(result, measure, name) for result, name in pairs]
    measures = sorted({panel_responses.measure for panel_responses in responses})
    if len(measures) > 1:
        raise InputError(
            f"the results are to be drawn as {' and '.join(measures)}; choose one with measure="
        )
    axes.check_new(width, figure)
    scale = _choose_scale(responses, levels, cmap)
    with axes.typeset(width):
        rows = -(-count // axes.max_columns())
        columns = columns or -(-count // rows)
        canvas, panels = axes.panels_in(
            figure, count, columns, panel_size=(3.4, 3.3), margin=(1.2, 0.7)
        )
        _draw(canvas, panels, panel_results, responses, scale, human, titles)
        _remove_repeated_labels(panels, panel_results, columns)
    axes.fit_width(canvas, width)
    return cast("Figure | SubFigure", canvas)


def _remove_repeated_labels(
    panels: Sequence[Axes],
    results: Sequence[xr.Dataset],
    columns: int,
) -> None:
    """Remove axis labels that the panel below, or on the left, repeats."""
    for i, ax in enumerate(panels):
        if i >= columns and panels[i - columns].get_xlabel() == ax.get_xlabel():
            panels[i - columns].set_xlabel("")
        if i % columns and upward_label(results[i - 1]) == upward_label(results[i]):
            ax.set_ylabel("")


def contour_panels(
    results: Sequence[xr.Dataset],
    ax: Axes | None = None,
    *,
    figure: SubFigure | None = None,
    observer: bool = True,
    layer: str | None = None,
    **options: Option,
) -> Axes | Figure | SubFigure:
    """Draw a contour plot for each result and layer.

    This is ``plot`` of a probe, see `psyprobe.probes.results`. Of several experiments with the same
    observers, each has a row, with its name at the left.
    """
    pairs = axes.result_layers(results, layer, layers_of, ax)
    if len(pairs) == 1 and figure is None:
        return contour(results[0], ax, layer=layer, **options)
    experiments: dict[str, list[tuple[xr.Dataset, str]]] = {}
    for pair in pairs:
        experiments.setdefault(str(pair[0].attrs.get("experiment")), []).append(pair)
    several = len(experiments) > 1
    sizes = {len(row) for row in experiments.values()}
    columns = sizes.pop()
    in_rows = several and not sizes and columns > 1 and layer is None
    if in_rows:
        pairs = list(itertools.chain.from_iterable(experiments.values()))
        # `contours` draws all layers of a result.
        results = list({id(result): result for result, _ in pairs}.values())
    title_experiment = not in_rows and (several or not observer)
    titles = [
        axes.panel_title(
            result, name, experiment=title_experiment, observer=observer, among=results
        )
        for result, name in pairs
    ]
    canvas = contours(
        results,
        figure=figure,
        columns=columns if in_rows else None,
        layer=layer,
        titles=titles,
        **options,
    )
    if in_rows:
        for (name, row), left in zip(
            experiments.items(), canvas.axes[::columns], strict=False
        ):
            left.set_ylabel(f"{axes.printable(name)}\n{upward_label(row[0][0])}")
    return canvas


@dataclass(frozen=True)
class _Scale:
    """Levels and colours of the contours of all panels, in units of the response or its log10."""

    levels: FloatArray
    cmap: str
    extend: Literal["neither", "both", "min"] = "neither"
    log: bool = False

    @property
    def colours(self) -> ScalarMappable:
        """The matplotlib colours of the contour levels."""
        from matplotlib.cm import ScalarMappable
        from matplotlib.colors import BoundaryNorm

        colours = axes.colour_map(self.cmap)
        return ScalarMappable(
            BoundaryNorm(self.levels, colours.N, extend=self.extend), colours
        )

    def quantity(self, responses: Responses) -> Masked:
        """Compute the values to colour, masked where there is nothing to draw."""
        defined = np.ma.masked_array(responses.grid.T, responses.status.T == UNDEFINED)
        if not self.log:
            return np.ma.asarray(defined)
        # Blank, not clipped: between a response and 0 lie all levels, and contours would be made up
        # there.
        above_noise = np.ma.masked_less_equal(defined, _noise_floor(responses))
        return np.ma.asarray(np.ma.log10(above_noise))


def _defined(responses: Responses) -> FloatArray:
    """Select the responses that are not undefined."""
    return np.asarray(responses.grid[responses.status != UNDEFINED])


def _noise_floor(responses: Responses) -> float:
    """Return the response that rounding alone causes; 0 where none was measured."""
    return max(responses.noise_floor, 0.0)


def _above_noise(responses: Responses) -> FloatArray:
    """Select the responses that are above the noise floor."""
    defined = _defined(responses)
    return defined[defined > _noise_floor(responses)]


def _select(result: xr.Dataset, measure: str | None, layer: str | None) -> Responses:
    """Select the responses to draw, refusing any but those over one level."""
    responses = select(result, measure=measure, layer=layer)
    if not responses.grid.size:
        raise InputError(
            "this run showed only what the score needs, and no level grid to draw; run it again "
            "without --score-only"
        )
    if len(responses.levels) != 1:
        names = list(responses.levels)
        raise InputError(
            "a contour plot is over one level, and this result has "
            f"{' and '.join(names) or 'no level'}; keep one and "
            f"take the others, as with result.sel({names[-1] if names else 'frequency'}=..., "
            "method='nearest')"
        )
    return responses


def _choose_scale(
    responses: Sequence[Responses], levels: Levels | None, cmap: str | None
) -> _Scale:
    """Choose the contour levels and colour map of panels that share them."""
    cmap = cmap or axes.COLOUR_MAP
    if levels is None:
        levels = "log" if any(map(np.size, map(_above_noise, responses))) else "linear"
    if not isinstance(levels, str):
        numbers = np.asarray(levels, dtype=np.float64)
        increases = np.isfinite(numbers).all() and (np.diff(numbers) > 0).all()
        if numbers.ndim != 1 or len(numbers) < 2 or not increases:
            raise InputError(
                "levels must be two or more increasing numbers, 'linear' or 'log'"
            )
        return _Scale(numbers, cmap, "both")
    top = max(float(_defined(panel).max(initial=0.0)) for panel in responses)
    if levels == "linear":
        return _Scale(_linear_levels(top, responses[0].measure), cmap)
    if levels == "log":
        return _log_scale(responses, top, cmap)
    raise InputError(f"levels {levels!r} must be 'linear', 'log' or increasing numbers")


def _linear_levels(top: float, measure: str) -> FloatArray:
    """Space contour levels evenly from 0 to the top, in round steps."""
    from matplotlib.ticker import MaxNLocator

    if measure.startswith("angular") and top >= _MIN_BANDS * _ANGLE_STEP:
        return _ANGLE_STEP * np.arange(max(2, np.ceil(top / _ANGLE_STEP - 1e-9) + 1))
    locator = MaxNLocator(_MAX_BANDS, steps=[1, 2, 2.5, 5, 10])
    return np.asarray(locator.tick_values(0, top if top > 0 else 1), dtype=np.float64)


def _log_scale(responses: Sequence[Responses], top: float, cmap: str) -> _Scale:
    """Space contour levels evenly in log10, from the smallest response above noise on."""
    above_noise = np.concatenate(list(map(_above_noise, responses)))
    if not above_noise.size:
        noise_floor = max(panel.noise_floor for panel in responses)
        raise InputError(
            f"no response exceeds the noise floor ({noise_floor:.3g}), so there are no log "
            "levels; draw levels='linear'"
        )
    lowest = np.log10(float(above_noise.min()))
    highest = np.log10(top)
    start = max(lowest, highest - _MAX_DECADES)
    bands = 10 if 10 * (highest - start) <= _MAX_BANDS else 5
    first = np.floor(bands * start + 1e-9)
    last = np.ceil(bands * highest - 1e-9)
    log_levels = np.arange(first, max(last, first + 1) + 1) / bands
    is_cut = lowest + 1e-9 < log_levels[0]
    return _Scale(log_levels, cmap, "min" if is_cut else "neither", log=True)


def _draw(
    canvas: Any,
    panels: Sequence[Axes],
    results: Sequence[xr.Dataset],
    responses: Sequence[Responses],
    scale: _Scale,
    human: Human,
    titles: Sequence[str] | None,
) -> None:
    """Draw contours on each panel, and one colour bar and legend."""
    choice = read_choice(human)
    groups = []
    for i, (ax, result, panel_responses) in enumerate(
        zip(panels, results, responses, strict=True)
    ):
        _draw_panel(ax, result, panel_responses, scale)
        is_upwards = upwards(result)
        group = None
        if choice.measured and not is_upwards:
            group = measured_points(result)
        if group is not None:
            draw_people(ax, group.points, lines=True)
            groups.append(group)
        # Human data on a masking result are measured points only.
        if choice.model or (choice.measured and is_upwards):
            _draw_human(ax, result, panel_responses)
        if titles is None:
            layer = panel_responses.layer
            title = axes.panel_title(
                result, layer, experiment=False, observer=True, among=results
            )
        else:
            title = titles[i]
        (level,) = panel_responses.levels
        axes.label(ax, axes.level_label(result, level), upward_label(result), title)
    handles = (
        axes.labelled_lines(panels)
        + _blank_handles(responses, scale)
        + people_handles(groups)
    )
    _draw_colour_bar(scale, responses[0].measure, panels)
    axes.legend_below(canvas, handles, people_title(groups))


def _draw_panel(
    ax: Axes, result: xr.Dataset, responses: Responses, scale: _Scale
) -> None:
    """Draw contours on one panel."""
    ((_, x),) = responses.levels.items()
    # Masking studies plot thresholds, contrast sensitivity studies their inverse.
    y = responses.difference if upwards(result) else 1 / responses.difference
    ax.set_facecolor(axes.BLANK)
    quantity = scale.quantity(responses)
    if quantity.count():
        colours = scale.colours
        style = {"cmap": colours.cmap, "norm": colours.norm, "extend": scale.extend}
        levels = scale.levels
        filled = ax.contourf(x, y, quantity, levels, **style)
        # Without an edge of their own, neighbouring bands leave hairlines between them in PDF and
        # SVG.
        filled.set_edgecolor("face")
        filled.set_linewidth(0.4)
        inside = levels[(levels > quantity.min()) & (levels < quantity.max())]
        if inside.size:
            line_style = {"linewidths": 0.25, "linestyles": "solid"}
            ax.contour(x, y, quantity, inside, colors="0.45", **line_style)
    axes.level_axis(ax.xaxis, x)
    axes.log_axis(ax.yaxis, y)


def _blank_handles(responses: Sequence[Responses], scale: _Scale) -> list[Any]:
    """Build the legend entry of blank areas, if there are any."""
    from matplotlib.patches import Patch

    reasons = {
        _UNDEFINED_LABEL: any(UNDEFINED in panel.status for panel in responses),
        "Not above noise floor": scale.log
        and any(_above_noise(panel).size < _defined(panel).size for panel in responses),
    }
    label = " or ".join(filter(reasons.get, reasons))
    return [Patch(facecolor=axes.BLANK, edgecolor="0.4", label=label)] if label else []


def upwards(result: xr.Dataset) -> bool:
    """Tell whether the upward axis shows thresholds, with masks or no contrast, or sensitivity."""
    return (
        "mask_contrast" in levels_of(result)
        or stimulus_axis_of(result).name != "contrast"
    )


def upward_label(result: xr.Dataset) -> str:
    """Return the label of the upward axis, of sensitivity or thresholds."""
    axis = stimulus_axis_of(result)
    if axis.name != "contrast":
        return axes.level_label(result, axis.name)
    is_target = upwards(result)
    return (
        f"Target contrast ({axis.label})"
        if is_target
        else f"Sensitivity (1 / {axis.label})"
    )


def human_points(result: xr.Dataset, responses: Responses) -> HumanCurve | None:
    """Select the human curve or the measured thresholds of a result; None without any."""
    ((level, values),) = responses.levels.items()
    if responses.curve is not None and responses.curve[0] == level:
        _, x, sensitivity = responses.curve
    elif responses.scored is not None and list(responses.scored.at) == [level]:
        x = responses.scored.at[level]
        sensitivity = responses.scored.sensitivity
    else:
        return None
    model = str(result.attrs.get("human_model", ""))
    name = f"Human ({axes.printable(human_label(model))})" if model else "Human"
    if upwards(result):
        # Thresholds behind a mask are measured points, not a model's curve.
        inside = (x >= values.min()) & (x <= values.max())
        return HumanCurve(name, x[inside], sensitivity[inside])
    return HumanCurve(name, x, sensitivity)


def _draw_human(ax: Axes, result: xr.Dataset, responses: Responses) -> None:
    """Draw human thresholds as points, or the human CSF as an outlined curve."""
    from matplotlib.patheffects import withStroke

    curve = human_points(result, responses)
    if curve is None:
        return
    if upwards(result):
        ax.plot(
            curve.x,
            1 / curve.sensitivity,
            color="black",
            linestyle="none",
            marker="o",
            markeredgecolor="white",
            clip_on=False,
            zorder=3,
            label=curve.name,
        )
        return
    outline = withStroke(linewidth=axes.scaled(3.5), foreground="white")
    style = {"linewidth": axes.scaled(2), "path_effects": [outline]}
    draw_curve(ax, curve.x, curve.sensitivity, curve.name, **style)


def _draw_colour_bar(scale: _Scale, measure: str, panels: Sequence[Axes]) -> None:
    """Draw the colour bar of panels that share contour levels."""
    bar = panels[0].figure.colorbar(
        scale.colours,
        ax=panels,
        label=MEASURE_LABELS[measure],
        spacing="proportional",
        extend=scale.extend,
    )
    if scale.log:
        low = float(scale.levels[0])
        high = float(scale.levels[-1])
        ticks = _log_ticks(low, high)
        texts = axes.tick_texts(ticks, 10**low, 10**high)
        bar.set_ticks([float(np.log10(tick)) for tick in ticks], labels=texts)
    else:
        step = -(-len(scale.levels) // _MAX_TICKS)
        levels = scale.levels[::step].tolist()
        bar.set_ticks(levels, labels=[f"{level:.6g}" for level in levels])
    bar.minorticks_off()


def _log_ticks(low: float, high: float) -> list[float]:
    """List the tick values within log10 limits: powers of ten, or 1, 2, 5 times these."""
    digits = (1, 2, 5) if high - low < 1.5 else (1,)
    exponents = range(int(np.floor(low)), int(np.ceil(high)) + 1)
    ticks = [digit * 10.0**exponent for exponent in exponents for digit in digits]
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
        Result of a detection run with a human reference.
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

    responses = select(result, measure=measure, layer=layer)
    points = responses.scored
    if points is None:
        raise InputError(
            "this run has no human reference, and so no multiples of human thresholds to draw"
        )
    ax = ax or axes.new_axes()
    order = np.argsort(points.multiplier)
    undefined = points.status == UNDEFINED
    defined = np.where(undefined, np.nan, points.response)
    level, values = next(iter(points.at.items()))
    colours = ScalarMappable(_level_norm(values), mpl.colormaps["viridis"])
    if undefined.any():
        count = f"{undefined.sum()} of {undefined.size} points"
        ax.plot([], [], linestyle="none", label=f"{count}: {_UNDEFINED_LABEL.lower()}")
    multiplier = points.multiplier[order]
    for value, response in zip(values, defined, strict=True):
        ax.plot(
            multiplier, response[order], color=colours.to_rgba(value), linewidth=1.3
        )
    axes.log_axis(ax.xaxis, points.multiplier)
    positive = defined[defined > 0]
    if positive.size:
        axes.log_axis(ax.yaxis, positive, 1.2)
        if positive.min() < responses.noise_floor < positive.max():
            ax.axhline(
                responses.noise_floor, color="0.4", linestyle=":", label="noise floor"
            )
    if ax.get_legend_handles_labels()[0]:
        ax.legend(fontsize="small")
    ax.axvline(1, color="0.7", linewidth=0.8, zorder=0)
    title = axes.title_of(result) if title is None else title
    axes.label(
        ax, "Contrast / human threshold", MEASURE_LABELS[responses.measure], title
    )
    bar = ax.figure.colorbar(
        colours, ax=ax, label=axes.level_label(result, f"scored_{level}")
    )
    axes.level_axis(bar.ax.yaxis, values)
    return ax


def _level_norm(values: FloatArray) -> Normalize:
    """Build matplotlib's colour scale over a level's values, logarithmic if they are so spaced."""
    from matplotlib.colors import FuncNorm, LogNorm, Normalize

    zero = axes.zero_beside(values)
    if zero is not None:
        return FuncNorm(axes.log_with_zero(zero), values.min(), values.max())
    norm = LogNorm if axes.is_logarithmic(values) else Normalize
    return norm(values.min(), values.max())


def matched_contrast(
    result: xr.Dataset,
    ax: Axes | None = None,
    *,
    measure: str | None = None,
    layer: str | None = None,
    method: Method | None = None,
    normalised: bool = False,
    title: str | None = None,
) -> Axes:
    """Draw the contrasts that match each reference, over the frequency of the test grating.

    Level lines show contrast constancy. People show it well above threshold; near it, they need
    more contrast at low and high frequencies.

    Parameters
    ----------
    result : xarray.Dataset
        Result of a matching run.
    ax : matplotlib.axes.Axes, optional
        Where to draw; without it, on a new pyplot figure.
    measure, layer, method, normalised
        As for `psyprobe.analysis.match_result`.
    title : str, optional
        By default, the observer's name. Give "" for none.

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
    match = match_result(
        result, measure=measure, layer=layer, method=method, normalised=normalised
    )
    order = np.argsort(match.reference_contrast)
    ax = ax or axes.new_axes()
    colours = axes.shades(len(order), 0.88)
    for colour, reference in zip(colours, order, strict=True):
        _draw_match(ax, match, reference, colour)
    contrast = result[stimulus_axis_of(result).name].values
    axes.log_axis(ax.xaxis, match.frequency, 1.1)
    axes.log_axis(ax.yaxis, contrast)
    # Few matches are as low as the lowest contrast, so a flat legend there hides least.
    style: JsonObject = {"fontsize": "small", "framealpha": 0.9, "loc": "lower center"}
    ax.legend(handles=_match_handles(match), ncols=2, **style)
    side = ax.secondary_yaxis("right")
    references = match.reference_contrast[order]
    side.set_yticks(
        references, labels=[f"{c:.2g}" for c in references], fontsize="small"
    )
    side.minorticks_off()
    for tick, colour in zip(side.get_yticklabels(), colours, strict=True):
        tick.set_color(colour)
    side.set_ylabel(
        f"Reference contrast at {float(result.attrs['reference_frequency']):g} cpd"
    )
    title = axes.title_of(result) if title is None else title
    x_label = axes.level_label(result, levels_of(result)[0])
    axes.label(ax, x_label, "Matched contrast", title, framed=False)
    return ax


def _draw_match(ax: Axes, match: MatchedCurves, reference: int, colour: Any) -> None:
    """Draw the matches to one reference contrast, of people and of the observer."""
    matches = match.matches
    exists = matches.saturated[reference] == 0
    contrast = np.where(exists, matches.contrast[reference], np.nan)
    ax.plot(match.frequency, contrast, color=colour, linewidth=1.4)
    ax.plot(
        match.measured_frequency, match.human[reference], color=colour, **_PEOPLE_STYLE
    )
    measured = match.measured()
    exists = measured.saturated[reference] == 0
    ambiguous = measured.ambiguous[reference]
    for selection, marker, fill in (
        (exists & ~ambiguous, "o", colour),
        (exists & ambiguous, "X", colour),
        (~exists, "o", "white"),
    ):
        # Unclipped markers of no points would claim the corner of the figure for the layout.
        if selection.any():
            ax.plot(
                match.measured_frequency[selection],
                measured.contrast[reference][selection],
                linestyle="none",
                marker=marker,
                markersize=5,
                markerfacecolor=fill,
                markeredgecolor=colour,
                clip_on=False,
                zorder=3,
            )


def _match_handles(match: MatchedCurves) -> list[Any]:
    """Build the legend entries of contrast matches."""
    from matplotlib.lines import Line2D

    def handle(label: str, **style: Any) -> Line2D:
        return Line2D([], [], color="0.3", label=label, **style)

    handles = [
        handle("Human", **_PEOPLE_STYLE),
        handle("Observer", marker="o", markersize=5, linewidth=1.4),
    ]
    unjoined: JsonObject = {"linestyle": "none"}
    measured = match.measured()
    if measured.saturated.any():
        hollow = {"marker": "o", "markerfacecolor": "white"}
        handles.append(handle("Saturated: no match", **unjoined, **hollow))
    if np.isnan(measured.contrast).any():
        handles.append(handle(_UNDEFINED_LABEL, **unjoined))
    if (measured.ambiguous & (measured.saturated == 0)).any():
        handles.append(handle("Ambiguous", **unjoined, marker="X"))
    return handles


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
    """Draw the contrast matches of each result and layer.

    This is ``plot`` of a probe, see `psyprobe.probes.results`.
    """
    pairs = axes.result_layers(results, layer, matching_layers, ax)
    if len(pairs) == 1 and figure is None:
        return matched_contrast(results[0], ax, measure=measure, layer=pairs[0][1])
    observers = {axes.title_of(result, width=80) for result in results}
    experiments = {result.attrs.get("experiment") for result in results}
    title_experiment = figure is not None or len(experiments) > 1
    columns = min(3, len(pairs))
    canvas, panels = axes.panels_in(figure, len(pairs), columns, panel_size=(4.8, 3.6))
    if len(observers) == 1 and len(results) > 1 and figure is None:
        canvas.suptitle(observers.pop(), fontsize="large")
        observer = False
    for panel, (result, name) in zip(panels, pairs, strict=True):
        title = axes.panel_title(
            result, name, experiment=title_experiment, observer=observer
        )
        matched_contrast(result, panel, measure=measure, layer=name, title=title)
    return cast("Figure | SubFigure", canvas)
