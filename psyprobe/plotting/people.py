"""Draw measured thresholds of people with their errors, and the spread between people."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

import numpy as np

from psyprobe._typing import BoolArray, FloatArray
from psyprobe.analysis.result_stimulus import conditions_of
from psyprobe.errors import unknown_name
from psyprobe.files.json_types import JsonObject
from psyprobe.human.points import Conditions, MeasuredPoints, figure_points
from psyprobe.plotting.axes import legend_below, paler, scaled
from psyprobe.plotting.figure_data import Line

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes

#: Choice of human data: a model's curve dashed in black, measured thresholds, both or nothing.
Human = Literal["both", "model", "measured", "none"]
HUMAN = get_args(Human)
#: The same data set has the same marker in all figures.
_MARKERS = {
    "modelfest": "o",
    "hdr_csf": "s",
    "hdrvdp_csf": "D",
    "colorfest": "^",
    "kim2013": "v",
    "wright1983": "P",
    "rovamo1993": "X",
    "virsu1979": "*",
    "five_centres": "<",
    "lucassen2018": ">",
    "vanderHorst1969_b": "h",
}
#: Fewest people between whom a spread is drawn, and fewest values of the level with so many people.
_MIN_PEOPLE = 3
_MIN_LEVELS = 3
#: Dotted lines at the edges of the spread between people.
_DOTTED = (0, (1, 1.5))


class HumanChoice(NamedTuple):
    """Which human data are drawn."""

    model: bool
    measured: bool


class MeasuredGroup(NamedTuple):
    """Measured thresholds that are drawn on a panel, and the conditions that it shows."""

    conditions: Conditions
    points: Sequence[MeasuredPoints]


class HumanCurve(NamedTuple):
    """A human curve, or measured thresholds, over the level of a result."""

    name: str
    x: FloatArray
    sensitivity: FloatArray


class Spread(NamedTuple):
    """The data set whose spread between people is drawn, and the points with a spread."""

    data_set: MeasuredPoints
    has_spread: BoolArray


def read_choice(human: str) -> HumanChoice:
    """Read which human data are drawn ("both", "model" ...), refusing other words.

    Examples
    --------
    >>> read_choice("measured")
    HumanChoice(model=False, measured=True)
    """
    if human not in HUMAN:
        raise unknown_name("choice of people", human, HUMAN)
    both = human == "both"
    return HumanChoice(both or human == "model", both or human == "measured")


def measured_points(result: xr.Dataset) -> MeasuredGroup | None:
    """Find measured human thresholds at a result's levels or little beyond; None without any."""
    conditions = conditions_of(result)
    return None if conditions is None else points_under(conditions)


def points_under(conditions: Conditions) -> MeasuredGroup | None:
    """Find measured human thresholds for conditions, or scaled to them; None without any."""
    points = figure_points(conditions)
    return MeasuredGroup(conditions, points) if points else None


def spread_of(points: Sequence[MeasuredPoints]) -> Spread | None:
    """Choose the data set of most people, to draw the spread between them."""
    largest = None
    most_people = 0.0
    for data_set in points:
        # Where a value stands twice, the mean over more people counts.
        max_people = np.array([data_set.n[data_set.x == x].max() for x in data_set.x])
        has_spread = (data_set.n == max_people) & (data_set.n >= _MIN_PEOPLE)
        has_spread &= np.isfinite(data_set.spread)
        people = float(data_set.n[has_spread].sum())
        if has_spread.sum() >= _MIN_LEVELS and people > most_people:
            largest = Spread(data_set, has_spread)
            most_people = people
    return largest


def draw_curve(ax: Axes, x: FloatArray, y: FloatArray, name: str, **style: Any) -> None:
    """Draw the human CSF, dashed in black."""
    style = {"linewidth": 1.4, **style}
    ax.plot(x, y, color="black", linestyle="--", label=name, **style)


def draw_people(
    ax: Axes, points: Sequence[MeasuredPoints], *, lines: bool = False
) -> None:
    """Draw measured human thresholds: hollow where they were scaled to the conditions.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
        The level to the right, sensitivity upwards.
    points : sequence of MeasuredPoints
        Thresholds to draw.
    lines : bool, optional
        Whether two lines show the spread, through which a map can be seen, and not a surface.
    """
    spread = spread_of(points)
    if spread is not None:
        data_set, has_spread = spread
        x = data_set.x[has_spread]
        log_sensitivity = np.log10(data_set.sensitivity[has_spread])
        sd = data_set.spread[has_spread]
        low = 10 ** (log_sensitivity - sd)
        high = 10 ** (log_sensitivity + sd)
        if lines:
            for end in (low, high):
                ax.plot(x, end, zorder=2.5, **_dotted_style())
        else:
            grey = paler("black", 0.12)
            ax.fill_between(x, low, high, color=grey, linewidth=0, zorder=0)
    for data_set in points:
        style = _marker_style(data_set.dataset)
        for selection, fill in (
            (data_set.direct, "black"),
            (~data_set.direct, "white"),
        ):
            if selection.any():
                mean = data_set.sensitivity[selection]
                error = np.nan_to_num(data_set.error[selection])
                ax.errorbar(
                    data_set.x[selection],
                    mean,
                    yerr=[mean * (1 - 10**-error), mean * (10**error - 1)],
                    markerfacecolor=fill,
                    capsize=0,
                    elinewidth=scaled(0.8),
                    zorder=3.5,
                    **style,
                )


def _dotted_style() -> JsonObject:
    """Return matplotlib's style of a thin dotted black line."""
    return {"color": "black", "linewidth": scaled(0.8), "linestyle": _DOTTED}


def _marker_style(data_set: str) -> JsonObject:
    """Return matplotlib's style of the black markers of a human data set."""
    return {
        "marker": _MARKERS.get(data_set, "p"),
        "linestyle": "none",
        "color": "black",
        "markersize": scaled(4.5),
        "markeredgewidth": scaled(0.7),
    }


def people_handles(
    groups: Sequence[MeasuredGroup], *, surface: bool = False
) -> list[Any]:
    """Build legend entries of measured human thresholds, each data set once."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    by_name: defaultdict[str, list[MeasuredPoints]] = defaultdict(list)
    for group in groups:
        for points in group.points:
            by_name[points.dataset].append(points)
    spreads = filter(None, [spread_of(group.points) for group in groups])
    spread_names = sorted({spread.data_set.dataset for spread in spreads})
    handles: list[Any] = []
    for name, data_sets in by_name.items():
        style = _marker_style(name)
        if not all(points.direct.all() for points in data_sets):
            style["markerfacecolor"] = "white"
        label = _data_set_label(name, data_sets)
        handles.append(Line2D([], [], label=label, **style))
    if spread_names:
        label = f"±1 sd between people ({', '.join(spread_names)})"
        if surface:
            handles.append(Patch(color=paler("black", 0.12), label=label))
        else:
            handles.append(Line2D([], [], label=label, **_dotted_style()))
    return handles


def people_legend(
    ax: Axes, group: MeasuredGroup | None, handles: Sequence[Any] = ()
) -> None:
    """Add a legend of all lines, further entries and human data below axes."""
    groups = [] if group is None else [group]
    legend_below(
        ax,
        [
            *ax.get_legend_handles_labels()[0],
            *handles,
            *people_handles(groups, surface=True),
        ],
        people_title(groups),
    )


def people_title(groups: Sequence[MeasuredGroup]) -> str:
    """Build the title of a legend that explains filled and hollow marks."""
    if not groups:
        return ""
    notes = []
    if any(points.direct.any() for group in groups for points in group.points):
        notes.append("filled: measured so")
    plain_groups = [group for group in groups if not group.conditions.noise]
    if any(points.transport_range for group in plain_groups for points in group.points):
        notes.append("hollow: moved here by castleCSF")
    if len(plain_groups) < len(groups):
        notes.append("on noise: Gabor thresholds, moved")
    if any(group.conditions.direction == "yellow_violet" for group in groups):
        notes.append("hollow in yellow-violet: measured otherwise, not moved")
    return "People (mean, standard error); " + "; ".join(notes) if notes else "People"


def people_lines(result: xr.Dataset) -> list[Line]:
    """Build a report's lines of measured human thresholds, one for each data set."""
    group = measured_points(result)
    lines = []
    for data_set in group.points if group is not None else ():
        reach = 10 ** np.nan_to_num(data_set.error)
        line = Line(
            _data_set_label(data_set.dataset, [data_set]),
            data_set.x,
            data_set.sensitivity,
            low=data_set.sensitivity / reach,
            high=data_set.sensitivity * reach,
            style="people points",
            notes=_point_notes(data_set),
        )
        lines.append(line)
    return lines


def _point_notes(data_set: MeasuredPoints) -> list[str]:
    """Write a note for each point: how it was measured and with how many people."""
    other_conditions = "measured under others"
    if data_set.transport_range is not None:
        other_conditions += ", moved here by castleCSF"
    notes = []
    for direct, people in zip(data_set.direct, data_set.n, strict=True):
        conditions = "measured under these conditions" if direct else other_conditions
        count = _count_people(f"{people:.0f}") if people else "a published mean"
        notes.append(f"{conditions}, {count}")
    return notes


def _count_people(count: str) -> str:
    """Format a number of people: "1 person", "3 people"."""
    return f"{count} {'person' if count == '1' else 'people'}"


def _data_set_label(name: str, data_sets: Sequence[MeasuredPoints]) -> str:
    """Label a data set with its number of people and the factors it was scaled by."""
    counts = sorted({data_set.persons for data_set in data_sets})
    count = "-".join(map(str, dict.fromkeys((counts[0], counts[-1]))))
    people = "means" if counts[-1] == 0 else _count_people(count)
    ranges = filter(None, [data_set.transport_range for data_set in data_sets])
    factors = sorted(itertools.chain.from_iterable(ranges))
    if not factors:
        return f"{name}, {people}"
    ends = dict.fromkeys((f"{factors[0]:.2g}", f"{factors[-1]:.2g}"))
    return f"{name}, {people}, ×{' to '.join(ends)}"
