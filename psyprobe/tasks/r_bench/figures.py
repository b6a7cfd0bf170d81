"""Figures of R-Bench: radar and bars of robustness with intervals, and cells of dimensions by strengths."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from psyprobe.corruption import GROUPS, STEPS, STRENGTHS, dimensions
from psyprobe.errors import InputError, unknown_name
from psyprobe.plotting.axes import BLANK, printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_BREAKDOWNS = ("step", "group", "task", "strength", "dimension")
#: Colours for all kinds of colour vision (Okabe and Ito 2008).
_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#000000")
_STAR = "* simulated where R-Bench photographed it"


def radar(metrics: Mapping[str, pd.DataFrame], by: str = "step", *, measure: str = "absolute", ax: Any = None) -> Any:
    """Draw the robustness of models by step or group on spokes.

    Parameters
    ----------
    metrics : mapping of str to pandas.DataFrame
        By model, as `rbench_metrics` gives them.
    by : {"step", "group", "task", "strength", "dimension"}
        What the spokes are.
    measure : {"absolute", "relative"}
        Which robustness.
    ax : matplotlib.projections.polar.PolarAxes, optional
        Where to draw; without it, on a new pyplot figure.

    Returns
    -------
    matplotlib.projections.polar.PolarAxes
        Lines with the interval as a band; a star marks a spoke with simulated corruptions.

    Raises
    ------
    InputError
        There is nothing to draw, or fewer than three spokes.
    UnknownNameError
        There is no such breakdown.
    """
    names, parts, simulated = _parts(metrics, by, measure)
    if len(names) < 3:
        raise InputError(f"a radar needs at least 3 spokes and {by} has {len(names)}; draw bars")
    if ax is None:
        import matplotlib.pyplot as plt

        ax = plt.figure(figsize=(5.2, 5.2), layout="constrained").add_subplot(projection="polar")
    angle = np.linspace(0, 2 * np.pi, len(names), endpoint=False)
    around = np.append(angle, angle[0])
    for (model, part), colour in zip(parts.items(), _colours(len(parts)), strict=True):
        value, low, high = (part[column].to_numpy(dtype=np.float64) for column in ("value", "low", "high"))
        ax.plot(around, np.append(value, value[0]), "o-", color=colour, linewidth=1.6, ms=4, label=printable(model))
        ax.fill_between(around, np.append(low, low[0]), np.append(high, high[0]), color=colour, alpha=0.15, linewidth=0)
    ax.set_theta_offset(np.pi / 2)
    ax.set_theta_direction(-1)
    ax.set_xticks(angle, [f"{name}{' *' if name in simulated else ''}" for name in names])
    # Names stand beside the circle and not on it.
    for label, where in zip(ax.get_xticklabels(), np.sin(angle), strict=True):
        label.set_horizontalalignment("center" if abs(where) < 0.1 else "left" if where > 0 else "right")
    ax.set_ylim(0, 1)
    ax.set_yticks([0.25, 0.5, 0.75, 1.0], ["0.25", "0.5", "0.75", "1"], fontsize="x-small", color="#555")
    ax.set_title(f"{measure.capitalize()} robustness by {by}", fontsize="medium", pad=18)
    ax.legend(loc="upper left", bbox_to_anchor=(-0.12, -0.04), fontsize="small", frameon=False, ncols=2)
    if simulated:
        ax.text(1.08, -0.08, _STAR, transform=ax.transAxes, fontsize="x-small", ha="right")
    return ax


def bars(
    metrics: Mapping[str, pd.DataFrame], by: str = "step", *, measure: str = "absolute", ax: Axes | None = None
) -> Axes:
    """Draw the robustness of models by step or group as bars with intervals.

    Parameters
    ----------
    metrics, by, measure, ax
        As for `radar`.

    Returns
    -------
    matplotlib.axes.Axes
        Whiskers are the bootstrap intervals of the metrics; a star marks bars with simulated corruptions.

    Raises
    ------
    InputError
        There is nothing to draw.
    UnknownNameError
        There is no such breakdown.
    """
    names, parts, simulated = _parts(metrics, by, measure)
    if ax is None:
        import matplotlib.pyplot as plt

        width = max(7.0, 2.5 + 0.22 * len(names) * (len(parts) + 1))
        ax = plt.figure(figsize=(width, 3.4), layout="constrained").add_subplot()
    thick = 0.8 / len(parts)
    for i, ((model, part), colour) in enumerate(zip(parts.items(), _colours(len(parts)), strict=True)):
        value, low, high = (part[column].to_numpy(dtype=np.float64) for column in ("value", "low", "high"))
        # A percentile interval of few items may, by a rounding, begin above its mean.
        reach = np.maximum([value - low, high - value], 0)
        place = np.arange(len(names)) + (i - (len(parts) - 1) / 2) * thick
        ax.bar(place, value, thick, color=colour, label=printable(model))
        ax.errorbar(place, value, reach, fmt="none", ecolor="#222", elinewidth=0.9, capsize=2)
    known = dimensions()
    titles = [known[name].title if by == "dimension" else name for name in names]
    many = len(names) > 8
    ax.set_xticks(
        range(len(names)),
        [f"{title}{' *' if name in simulated else ''}" for name, title in zip(names, titles, strict=True)],
        rotation=60 if many else 0,
        ha="right" if many else "center",
        fontsize="small",
    )
    ax.set_ylim(0, 1)
    ax.margins(x=0.01)
    ax.set_ylabel(f"{measure.capitalize()} robustness")
    ax.spines[["top", "right"]].set_visible(False)
    ax.figure.legend(
        *ax.get_legend_handles_labels(), loc="outside upper center", ncols=4, fontsize="small", frameon=False
    )
    if simulated:
        ax.set_xlabel(_STAR, fontsize="x-small", loc="right")
    return ax


def strength_map(table: pd.DataFrame, *, measure: str = "absolute", ax: Axes | None = None) -> Axes:
    """Draw the robustness of a model as coloured cells: dimensions downwards, strengths to the right.

    Parameters
    ----------
    table : pandas.DataFrame
        As `score_items` gives it.
    measure, ax
        As for `radar`.

    Returns
    -------
    matplotlib.axes.Axes
        In each cell the mean and, small, the number of items; cells without items are grey.

    Raises
    ------
    InputError
        There is nothing to draw.
    """
    import matplotlib as mpl

    if measure not in table or not np.isfinite(table[measure]).any():
        raise InputError(f"the table has no {measure} scores; there is nothing to draw")
    known = {each.id: each for each in dimensions().values()}
    scored = table[np.isfinite(table[measure])]
    there = [number for number in known if (scored["dimension"] == number).any()]
    cells = scored.groupby(["dimension", "strength"])[measure].agg(["mean", "size"])
    value = np.full((len(there), len(STRENGTHS)), np.nan)
    count = np.zeros(value.shape, dtype=int)
    for (number, strength), row in cells.iterrows():
        at = there.index(number), STRENGTHS.index(strength)
        value[at], count[at] = row["mean"], int(row["size"])
    if ax is None:
        import matplotlib.pyplot as plt

        ax = plt.figure(figsize=(4.6, 1.3 + 0.21 * len(there)), layout="constrained").add_subplot()
    colours = mpl.colormaps["viridis"].with_extremes(bad=BLANK)
    drawn = ax.imshow(np.ma.masked_invalid(value), cmap=colours, vmin=0, vmax=1, aspect="auto", interpolation="nearest")
    for (i, j), one in np.ndenumerate(value):
        if np.isfinite(one):
            ink = "white" if one < 0.6 else "black"
            ax.text(j, i, f"{one:.2f} ({count[i, j]})", ha="center", va="center", fontsize=6, color=ink)
    simulated = set(table.loc[table["simulated"] == 1, "dimension"]) if "simulated" in table else set()
    ax.set_yticks(range(len(there)), [f"{known[n].title}{' *' if n in simulated else ''}" for n in there], fontsize=7)
    ax.set_xticks(range(len(STRENGTHS)), STRENGTHS)
    ax.tick_params(length=0)
    steps = np.array([known[number].step for number in there])
    for i in np.flatnonzero(steps[1:] != steps[:-1]):
        ax.axhline(i + 0.5, color="black", linewidth=0.8)
    bar = ax.figure.colorbar(drawn, ax=ax, fraction=0.05, pad=0.02)
    bar.set_label(f"{measure.capitalize()} robustness (number of items)")
    ax.set_xlabel("Strength" + (f"\n{_STAR}" if simulated else ""), fontsize="small")
    return ax


def _parts(
    metrics: Mapping[str, pd.DataFrame], by: str, measure: str
) -> tuple[list[str], dict[str, pd.DataFrame], set[str]]:
    """Names of parts in their order, a row each for every model that has the measure, and which are simulated."""
    if by not in _BREAKDOWNS:
        raise unknown_name("breakdown", by, _BREAKDOWNS)
    found = {
        model: table[(table["measure"] == measure) & (table["breakdown"] == by)].set_index("name")
        for model, table in metrics.items()
    }
    found = {model: table for model, table in found.items() if len(table)}
    if not found:
        raise InputError(f"there are no {measure} scores by {by}; there is nothing to draw")
    order = {"step": list(STEPS), "group": list(GROUPS), "dimension": list(dimensions())}
    there = dict.fromkeys(name for table in found.values() for name in table.index)
    names = [name for name in order.get(by, there) if name in there]
    parts = {model: table.reindex(names) for model, table in found.items()}
    simulated = {
        name for part in parts.values() if "simulated" in part for name in names if part.loc[name, "simulated"] > 0
    }
    return names, parts, simulated


def _colours(n: int) -> list[str]:
    return [_COLOURS[i % len(_COLOURS)] for i in range(n)]
