"""People on figures: measured thresholds of each data set, with their errors, and the spread
between people.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from psyprobe.analysis.result_stimulus import conditions_of
from psyprobe.errors import unknown_name
from psyprobe.human.points import Conditions, MeasuredPoints, figure_points
from psyprobe.plotting.axes import paler, scaled
from psyprobe.plotting.figure_data import Line

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes

#: What is drawn of people: a model's curve dashed in black, measured thresholds, both or nothing.
Human = Literal["both", "model", "measured", "none"]
HUMAN = ("both", "model", "measured", "none")
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
#: People between whom a spread is drawn, and values of the level at which they are as many.
_FEWEST = 3
_LEVELS = 3


def drawn_of(human: str) -> tuple[bool, bool]:
    """Whether the curve of a model, and whether measured thresholds are drawn.

    Examples
    --------
    >>> drawn_of("both"), drawn_of("measured")
    ((True, True), (False, True))
    """
    if human not in HUMAN:
        raise unknown_name("choice of people", human, HUMAN)
    return human in ("both", "model"), human in ("both", "measured")


def measured_points(result: xr.Dataset) -> tuple[Conditions, tuple[MeasuredPoints, ...]] | None:
    """Measured thresholds that belong to a result, on its levels or little beyond them; None where
    there are none.
    """
    shown = conditions_of(result)
    if shown is None:
        return None
    found = figure_points(shown)
    return (shown, found) if found else None


def spread_of(points: Sequence[MeasuredPoints]) -> tuple[MeasuredPoints, Any] | None:
    """The data set of which the spread between people is drawn, that of most measurements, and
    where.
    """
    found = []
    for point in points:
        # Where a value stands twice, the mean over more people counts.
        best = np.array([point.n[i] == point.n[point.x == x].max() for i, x in enumerate(point.x)])
        known = best & (point.n >= _FEWEST) & np.isfinite(point.spread)
        if known.sum() >= _LEVELS:
            found.append((float(point.n[known].sum()), point, known))
    return max(found, key=lambda each: each[0])[1:] if found else None


def draw_people(ax: Axes, points: Sequence[MeasuredPoints], *, lines: bool = False) -> None:
    """Draw measured thresholds: filled where they were measured so, hollow where they were moved.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
        The level to the right, sensitivity upwards.
    points : sequence of MeasuredPoints
        What to draw.
    lines : bool, optional
        Whether the band is two lines, through which a map can be seen, and not a surface.
    """
    spread = spread_of(points)
    if spread is not None:
        one, known = spread
        x = one.x[known]
        log_s = np.log10(one.sensitivity[known])
        sd = one.spread[known]
        low = 10 ** (log_s - sd)
        high = 10 ** (log_s + sd)
        if lines:
            for edge in (low, high):
                ax.plot(
                    x,
                    edge,
                    color="black",
                    linewidth=scaled(0.8),
                    linestyle=(0, (1, 1.5)),
                    zorder=2.5,
                )
        else:
            ax.fill_between(x, low, high, color=paler("black", 0.12), linewidth=0, zorder=0)
    for one in points:
        style: dict[str, Any] = {
            "marker": _MARKERS.get(one.dataset, "p"),
            "linestyle": "none",
            "color": "black",
        }
        style |= {
            "markersize": scaled(4.5),
            "markeredgewidth": scaled(0.7),
            "elinewidth": scaled(0.8),
            "zorder": 3.5,
        }
        for chosen, fill in ((one.direct, "black"), (~one.direct, "white")):
            if chosen.any():
                mean = one.sensitivity[chosen]
                error = np.nan_to_num(one.error[chosen])
                reach = [mean * (1 - 10**-error), mean * (10**error - 1)]
                ax.errorbar(
                    one.x[chosen], mean, yerr=reach, markerfacecolor=fill, capsize=0, **style
                )


def people_handles(
    groups: Iterable[tuple[Conditions, Sequence[MeasuredPoints]]], *, surface: bool = False
) -> list[Any]:
    """What a legend says of measured thresholds on one or several panels, each data set once."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    listed = list(groups)
    sets: dict[str, list[MeasuredPoints]] = {}
    for _, points in listed:
        for one in points:
            sets.setdefault(one.dataset, []).append(one)
    handles: list[Any] = []
    for name, found in sets.items():
        filled = all(one.direct.all() for one in found)
        style: dict[str, Any] = {
            "marker": _MARKERS.get(name, "p"),
            "linestyle": "none",
            "color": "black",
        }
        style |= {"markersize": scaled(4.5), "markeredgewidth": scaled(0.7)}
        handles.append(
            Line2D(
                [],
                [],
                markerfacecolor="black" if filled else "white",
                label=_told(name, found),
                **style,
            )
        )
    spreads = {each[0].dataset for _, points in listed if (each := spread_of(points)) is not None}
    if spreads:
        label = f"±1 sd between people ({', '.join(sorted(spreads))})"
        dotted: dict[str, Any] = {
            "color": "black",
            "linewidth": scaled(0.8),
            "linestyle": (0, (1, 1.5)),
        }
        band = (
            Patch(color=paler("black", 0.12), label=label)
            if surface
            else Line2D([], [], label=label, **dotted)
        )
        handles.append(band)
    return handles


def people_title(groups: Iterable[tuple[Conditions, Sequence[MeasuredPoints]]]) -> str:
    """What filled and hollow marks mean."""
    listed = list(groups)
    told = []
    if any(point.direct.any() for _, points in listed for point in points):
        told.append("filled: measured so")
    if any(
        point.transport_range for shown, points in listed for point in points if not shown.noise
    ):
        told.append("hollow: moved here by castleCSF")
    if any(shown.noise for shown, _ in listed):
        told.append("on noise: Gabor thresholds, moved")
    if any(shown.direction == "yellow_violet" for shown, _ in listed):
        told.append("hollow in yellow-violet: measured otherwise, not moved")
    return "People (mean, standard error); " + "; ".join(told) if told else "People"


def people_lines(result: xr.Dataset) -> list[Line]:
    """Measured thresholds as plain data, a line a data set."""
    beside = measured_points(result)
    lines = []
    for one in beside[1] if beside is not None else ():
        reach = 10 ** np.nan_to_num(one.error)
        how = [
            "measured under these conditions" if direct else "measured under others"
            for direct in one.direct
        ]
        if one.transport_range is not None:
            how = [
                each.replace("under others", "under others, moved here by castleCSF")
                for each in how
            ]
        people = [
            f", {n:.0f} {'person' if n == 1 else 'people'}" if n else ", a published mean"
            for n in one.n
        ]
        notes = [each + many for each, many in zip(how, people, strict=True)]
        ends = one.sensitivity / reach, one.sensitivity * reach
        lines.append(
            Line(
                _told(one.dataset, [one]),
                one.x,
                one.sensitivity,
                *ends,
                style="people points",
                notes=notes,
            )
        )
    return lines


def _told(name: str, found: Sequence[MeasuredPoints]) -> str:
    counts = sorted({one.persons for one in found})
    many = "-".join(map(str, dict.fromkeys((counts[0], counts[-1]))))
    people = "means" if counts[-1] == 0 else f"{many} {'person' if counts[-1] == 1 else 'people'}"
    transport_range = [one.transport_range for one in found if one.transport_range is not None]
    if not transport_range:
        return f"{name}, {people}"
    low = min(each[0] for each in transport_range)
    high = max(each[1] for each in transport_range)
    ends = dict.fromkeys((f"{low:.2g}", f"{high:.2g}"))
    return f"{name}, {people}, ×{' to '.join(ends)}"
