"""Figures of R-Bench: radar and bars of robustness with intervals, and cells of dimensions by strengths."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from psyprobe._typing import FloatArray
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
    simulated = set(table.loc[table["simulated"] == 1, "dimension"]) if "simulated" in table else set()
    ax = coloured_cells(
        value,
        [[f"{one:.2f} ({n})" for one, n in zip(*row, strict=True)] for row in zip(value, count, strict=True)],
        {known[n].name: n in simulated for n in there},
        STRENGTHS,
        colours=mpl.colormaps["viridis"].with_extremes(bad=BLANK),
        limit=1.0,
        white=value < 0.6,
        label=f"{measure.capitalize()} robustness (number of items)",
        ax=ax,
    )
    ax.set_xlabel("Strength" + (f"\n{_STAR}" if simulated else ""), fontsize="small")
    return ax


def coloured_cells(
    values: FloatArray,
    texts: Sequence[Sequence[str]],
    rows: Mapping[str, bool],
    strengths: Sequence[str],
    *,
    colours: Any,
    limit: float | None,
    white: Any,
    label: str,
    ax: Axes | None,
) -> Axes:
    """Cells of dimensions by strengths, each with its text, in white where the cell is dark.

    Rows are dimensions by name, with a star for those that are simulated; lines part the steps on an image's way.
    """
    if ax is None:
        import matplotlib.pyplot as plt

        ax = plt.figure(figsize=(4.6, 1.3 + 0.21 * len(rows)), layout="constrained").add_subplot()
    shown = np.ma.masked_invalid(values)
    drawn = ax.imshow(shown, cmap=colours, vmin=0, vmax=limit, aspect="auto", interpolation="nearest")
    for (i, j), value in np.ndenumerate(values):
        if np.isfinite(value):
            ink = "white" if white[i, j] else "black"
            ax.text(j, i, texts[i][j], ha="center", va="center", fontsize=6, color=ink)
    known = dimensions()
    labels = [f"{known[name].title}{' *' if simulated else ''}" for name, simulated in rows.items()]
    ax.set_yticks(range(len(rows)), labels, fontsize=7)
    ax.set_xticks(range(len(strengths)), strengths)
    ax.tick_params(length=0)
    steps = np.array([known[name].step for name in rows])
    for i in np.flatnonzero(steps[1:] != steps[:-1]):
        ax.axhline(i + 0.5, color="black", linewidth=0.8)
    ax.figure.colorbar(drawn, ax=ax, fraction=0.05, pad=0.02).set_label(label)
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
