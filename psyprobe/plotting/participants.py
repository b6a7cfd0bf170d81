"""People who sat an experiment, on figures beside models: each of them, and the mean of several
with a band.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from psyprobe.analysis.responses import levels_of
from psyprobe.analysis.words.group import PeopleCurve
from psyprobe.analysis.words.sessions import is_remote, sessions_of
from psyprobe.plotting.axes import paler
from psyprobe.plotting.figure_data import Line, name_of

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes

#: What hollow marks of people say, and why: an unmeasured panel's single steps may decide there.
HOLLOW = "contrast < 0.03, screen not measured"
#: How much of the colour is left of single people behind their mean.
_PALE = 0.45


def sitter_name(csf: xr.Dataset) -> str:
    """What a legend calls a person: with the number of answers, and of sessions where there are
    several.
    """
    sessions = sessions_of(csf)
    if not sessions:
        return name_of(csf)
    where = ", elsewhere" * is_remote(csf)
    several = f" in {len(sessions)} sessions" if len(sessions) > 1 else ""
    return f"{name_of(csf)} ({sum(session.trials for session in sessions)} answers{several}{where})"


def draw_one_of_several(ax: Axes, csf: xr.Dataset, name: str, colour: Any, marker: str) -> None:
    """A person behind the mean of all: a thin pale line, without an interval."""
    (level,) = levels_of(csf)
    mean = csf["mean_sensitivity"].values
    style: dict[str, Any] = {"linestyle": "--" if is_remote(csf) else "-"}
    style |= {
        "color": paler(colour, _PALE),
        "marker": marker,
        "markersize": 4,
        "markerfacecolor": "white",
    }
    ax.plot(csf[level].values, mean, linewidth=0.8, zorder=2.2, label=name, **style)


def draw_mean(ax: Axes, found: PeopleCurve, colour: Any) -> None:
    """The mean of several people with the band of its interval; hollow where little is claimed."""
    ax.fill_between(
        found.values, found.low, found.high, color=paler(colour, 0.18), linewidth=0, zorder=1
    )
    name = f"{found.name}, 95 % interval"
    ax.plot(
        found.values,
        found.mean,
        color=colour,
        linewidth=2.2,
        marker="o",
        markersize=6,
        zorder=3.2,
        label=name,
    )
    draw_hollow(ax, found.values[found.unsure], found.mean[found.unsure], colour, "o", 6)


def draw_hollow(ax: Axes, x: Any, y: Any, colour: Any, marker: str, size: float) -> None:
    """White centres over marks that were drawn before."""
    if len(x):
        style: dict[str, Any] = {
            "color": colour,
            "marker": marker,
            "markersize": size,
            "markerfacecolor": "white",
        }
        ax.plot(x, y, linestyle="none", label="_hollow", zorder=3.3, **style)


def hollow_handles(csfs: list[xr.Dataset]) -> list[Any]:
    """What a legend says of hollow marks of people; nothing where there are none."""
    from matplotlib.lines import Line2D

    if not any("unsure" in csf and csf["unsure"].values.any() for csf in csfs):
        return []
    return [
        Line2D(
            [], [], marker="o", color="0.4", markerfacecolor="white", linestyle="none", label=HOLLOW
        )
    ]


def mean_line(found: PeopleCurve, colour: int) -> Line:
    """The mean of several people as plain data."""
    notes = [
        f"geometric mean of {len(found.persons)} people" + f"; {HOLLOW}" * bool(one)
        for one in found.unsure
    ]
    return Line(
        found.name, found.values, found.mean, found.low, found.high, colour=colour, notes=notes
    )


def sitter_notes(csf: xr.Dataset) -> list[str]:
    """What is said of each point of a person: answers there, and whether little is claimed of
    it.
    """
    asked = csf["trials"].values.sum(axis=(0, 2))
    unsure = csf["unsure"].values if "unsure" in csf else np.zeros(len(asked), dtype=bool)
    return [
        f"{n:.0f} of the answers were given here" + f"; {HOLLOW}" * bool(u)
        for n, u in zip(asked, unsure, strict=True)
    ]
