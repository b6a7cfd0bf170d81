"""Draw participants of an experiment beside models: each, and their mean with a band."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from psyprobe._typing import BoolArray
from psyprobe.analysis.responses import levels_of
from psyprobe.analysis.words.group import PeopleCurve
from psyprobe.analysis.words.sessions import is_remote, sessions_of
from psyprobe.files.json_types import JsonObject
from psyprobe.plotting.axes import paler
from psyprobe.plotting.figure_data import Line, name_of

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes

#: Meaning of hollow marks of people: on a panel that was not measured, single steps may decide.
HOLLOW = "contrast < 0.03, screen not measured"
#: Share of the colour that single people have behind their mean.
_PALE = 0.45


def participant_name(csf: xr.Dataset) -> str:
    """Build a participant's name with the number of answers, and of sessions."""
    sessions = sessions_of(csf)
    if not sessions:
        return name_of(csf)
    notes = f"{sum(session.trials for session in sessions)} answers"
    if len(sessions) > 1:
        notes += f" in {len(sessions)} sessions"
    if is_remote(csf):
        notes += ", elsewhere"
    return f"{name_of(csf)} ({notes})"


def draw_participant(
    ax: Axes, csf: xr.Dataset, name: str, colour: Any, marker: str
) -> None:
    """Draw a participant's CSF as a thin pale line, without an interval."""
    (level,) = levels_of(csf)
    ax.plot(
        csf[level].values,
        csf["mean_sensitivity"].values,
        linestyle="--" if is_remote(csf) else "-",
        linewidth=0.8,
        color=paler(colour, _PALE),
        marker=marker,
        markersize=4,
        markerfacecolor="white",
        zorder=2.2,
        label=name,
    )


def draw_mean(ax: Axes, curve: PeopleCurve, colour: Any) -> None:
    """Draw the mean CSF of people with its interval as a band, hollow where unsure."""
    band = paler(colour, 0.18)
    ax.fill_between(
        curve.values, curve.low, curve.high, color=band, linewidth=0, zorder=1
    )
    ax.plot(
        curve.values,
        curve.mean,
        color=colour,
        linewidth=2.2,
        marker="o",
        markersize=6,
        zorder=3.2,
        label=f"{curve.name}, 95 % interval",
    )
    draw_hollow(
        ax, curve.values[curve.unsure], curve.mean[curve.unsure], colour, "o", 6
    )


def draw_hollow(
    ax: Axes, x: Any, y: Any, colour: Any, marker: str, size: float
) -> None:
    """Draw white centres over marks, to make them hollow."""
    if len(x):
        ax.plot(
            x,
            y,
            color=colour,
            linestyle="none",
            marker=marker,
            markersize=size,
            markerfacecolor="white",
            label="_hollow",
            zorder=3.3,
        )


def hollow_handles(csfs: Sequence[xr.Dataset]) -> list[Any]:
    """Build the legend entry of people's hollow marks, if there are any."""
    from matplotlib.lines import Line2D

    if not any(unsure_points(csf).any() for csf in csfs):
        return []
    style: JsonObject = {"marker": "o", "color": "0.4", "markerfacecolor": "white"}
    return [Line2D([], [], linestyle="none", label=HOLLOW, **style)]


def unsure_points(csf: xr.Dataset) -> BoolArray:
    """Mark a person's thresholds that lie below what the screen is claimed to show."""
    return np.asarray(csf.get("unsure", csf["n_usable"] < 0))


def mean_line(curve: PeopleCurve, colour: int) -> Line:
    """Build a report's line of the mean CSF of people."""
    text = f"geometric mean of {len(curve.persons)} people"
    return Line(
        curve.name,
        curve.values,
        curve.mean,
        low=curve.low,
        high=curve.high,
        colour=colour,
        notes=[f"{text}; {HOLLOW}" if unsure else text for unsure in curve.unsure],
    )


def participant_notes(csf: xr.Dataset) -> list[str]:
    """Write a note for each point: how many answers, and whether it is unsure."""
    trials = csf["trials"].values.sum(axis=(0, 2))
    notes = []
    for count, unsure in zip(trials, unsure_points(csf), strict=True):
        text = f"{count:.0f} of the answers were given here"
        notes.append(f"{text}; {HOLLOW}" if unsure else text)
    return notes
