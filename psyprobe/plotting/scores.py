"""Figures of many scores: heat map of a scoreboard, bars of each test, score against depth.

References
----------
Cai, Yin, Hammou, Mantiuk (2025). Do computer vision foundation models learn the low-level
characteristics of the human visual system? CVPR. Figure 6.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import cast

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from psyprobe.analysis.score import OBSERVER, PIXELS, Entry, Metric, Score
from psyprobe.analysis.scoreboards import BoardRow, Scoreboard, Test
from psyprobe.errors import InputError
from psyprobe.plotting.axes import (
    BLANK,
    COLOUR_MAP,
    COLOURS,
    colour_map,
    label,
    new_axes,
    paler,
    panels_in,
    printable,
)

#: Published entries that are no encoders: without an encoder, and the metric that stands for
#: people.
_NO_ENCODER = "No Encoder"
_HUMAN_LIKE = "ColorVideoVDP"

#: Families that always have their colour, in this order.
_FAMILIES = (
    "DINO",
    "DINOv2",
    "OpenCLIP",
    "SAM",
    "SAM-2",
    "MAE",
    "SD-VAE",
    "timm",
    "open_clip",
    "torch",
)


def heat_map(board: Scoreboard, ax: Axes | None = None, *, cmap: str | None = None) -> Axes:
    """Draw a scoreboard as coloured cells with the scores in them, models downwards and tests to
    the right.

    Each column has its own colours, from the worst (light) to the best (dark) of its scores, since
    r_s and errors, and tests of different difficulty, cannot be compared by value.

    Parameters
    ----------
    board : Scoreboard
        What to show, rows in its order.
    ax : matplotlib.axes.Axes, optional
        Where to draw; without it, on a new pyplot figure of fitting size.
    cmap : str, optional
        A colour map of matplotlib, light where it begins.

    Returns
    -------
    matplotlib.axes.Axes
        Baselines and people have slanted names; cells without a score are grey.

    Raises
    ------
    InputError
        The board is empty.
    """
    tests = board.tests
    rows = board.rows
    if not (tests and rows):
        raise InputError("the scoreboard is empty; there is nothing to draw")
    ax = new_axes(3.4 + 0.75 * len(tests), 1.5 + 0.22 * len(rows)) if ax is None else ax
    values = np.array([[_value(row.entries.get(test)) for test in tests] for row in rows])
    quality = np.ma.masked_array(np.zeros(values.shape), mask=~np.isfinite(values))
    for column, test in enumerate(tests):
        known = np.isfinite(values[:, column])
        found = values[known, column] * (1 if test.metric.more_is_better else -1)
        span = np.ptp(found) if found.size else 0.0
        quality[known, column] = (found - found.min()) / span if span else 0.5
    colours = colour_map(cmap or COLOUR_MAP).with_extremes(bad=BLANK)
    drawn = ax.imshow(
        quality, cmap=colours, norm=Normalize(0, 1), aspect="auto", interpolation="nearest"
    )
    for (i, j), value in np.ndenumerate(values):
        if np.isfinite(value):
            ink = "white" if quality[i, j] > 0.55 else "black"
            ax.text(j, i, f"{value:.2f}", ha="center", va="center", fontsize=6.5, color=ink)
    ax.set_xticks(
        range(len(tests)),
        [test.short_name for test in tests],
        rotation=40,
        ha="right",
        fontsize="small",
    )
    ax.set_yticks(range(len(rows)), [printable(row.name) for row in rows], fontsize=7)
    for name, row in zip(ax.get_yticklabels(), rows, strict=True):
        name.set_fontstyle("italic" if row.kind in ("baseline", "people") else "normal")
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    bar = ax.figure.colorbar(drawn, ax=ax, fraction=0.03, pad=0.02, label="Within each test")
    bar.set_ticks([0, 1], labels=["worst", "best"])
    return ax


def score_bars(board: Scoreboard, test: str, ax: Axes | None = None) -> Axes:
    """Draw the scores of one test as bars from best to worst: a panel of the paper's Figure 6.

    Parameters
    ----------
    board : Scoreboard
        What to show.
    test : str
        Name of a column.
    ax : matplotlib.axes.Axes, optional
        Where to draw; without it, on a new pyplot figure with a legend.

    Returns
    -------
    matplotlib.axes.Axes
        One bar a model with its interval: coloured by family, its name slanted below, or, where
        they are ten at most, each in the colour that the legend gives it. A dotted line is at the
        score of the pixels, and a dashed one at that of ColorVideoVDP, where the board has them.

    Raises
    ------
    UnknownNameError
        There is no such column.
    """
    ordered = board.sort(test)
    column = board.column(test)
    colours = _colours(board.rows)
    shown = [row for row in ordered.rows if _has(row, column) and not _is_reference(row)]
    alone = ax is None
    ax = new_axes(1.6 + 0.22 * max(len(shown), 8), 4.0) if ax is None else ax
    for place, row in enumerate(shown):
        entry = row.entries[column]
        value = _value(entry)
        colour = colours.get(row.name) or colours[row.family]
        ax.bar(place, value, width=0.8, color=colour, edgecolor="black", linewidth=0.4)
        if entry.low is not None and entry.high is not None:
            ax.plot([place, place], [entry.low, entry.high], color="black", linewidth=0.9)
    for name, style, value in _references(ordered.rows, column):
        ax.axhline(value, color="black", linestyle=style, linewidth=1.1, label=name, zorder=3)
    ax.axhline(0, color="black", linewidth=0.6)
    if all(row.name in colours for row in shown):
        ax.set_xticks([])
    else:
        # The name of a model without its family, which its colour says.
        names = [
            row.name.removeprefix(f"{row.family} - ").removeprefix(f"{row.family}:")
            for row in shown
        ]
        labels = [printable(name) for name in names]
        ax.set_xticks(
            range(len(shown)), labels, rotation=60, ha="right", rotation_mode="anchor", fontsize=6
        )
    ax.set_xlim(-0.7, len(shown) - 0.3)
    label(ax, "", column.metric.label, column.short_name, framed=False)
    if alone:
        _legend(cast(Figure, ax.figure), board)
    return ax


def bar_panels(board: Scoreboard, figure: Figure | None = None) -> Figure:
    """Draw the scores of every test, one panel each, with one legend: the paper's Figure 6.

    Parameters
    ----------
    board : Scoreboard
        What to show.
    figure : matplotlib.figure.Figure, optional
        Where to draw; without it, a new pyplot figure of fitting size.

    Returns
    -------
    matplotlib.figure.Figure
        Panels in the order of the board's tests: two abreast, or five where models are ten at most.

    Raises
    ------
    InputError
        The board is empty.
    """
    if not (board.tests and board.rows):
        raise InputError("the scoreboard is empty; there is nothing to draw")
    few = len({row.name for row in board.rows if not _is_reference(row)}) <= len(COLOURS)
    across = min(5 if few else 2, len(board.tests))
    bars = max(sum(_has(row, test) for row in board.rows) for test in board.tests)
    each, margin = ((2.4, 2.3), 0.8) if few else ((1.2 + 0.16 * bars, 3.3), 0.5)
    place, panels = panels_in(figure, len(board.tests), across, each, margin=(0, margin))
    for ax, test in zip(panels, board.tests, strict=True):
        score_bars(board, test.name, ax)
    _legend(place, board)
    return cast(Figure, place)


def depth_curve(scores: Iterable[Score], ax: Axes | None = None) -> Axes:
    """Draw the score of each layer against its depth, one line for each observer and test.

    Parameters
    ----------
    scores : iterable of Score
        Layers from the first to the last, all of the same kind: their first metric is drawn.
    ax : matplotlib.axes.Axes, optional
        Where to draw; without it, on a new pyplot figure.

    Returns
    -------
    matplotlib.axes.Axes
        Layers to the right, by name if there is one observer; score upwards, with its interval as a
        band. A dotted line of the same colour is at the score of the pixels.

    Raises
    ------
    InputError
        There are no scores, or both kinds.
    """
    listed = list(scores)
    metrics = {_depth_metric(one) for one in listed}
    metric = next(iter(metrics), None)
    if len(metrics) != 1 or metric is None:
        raise InputError(
            "a depth curve needs scores of one kind; give those of detection or of matching"
        )
    ax = new_axes() if ax is None else ax
    lines: dict[tuple[str, str], list[Score]] = {}
    for one in listed:
        lines.setdefault((one.observer, one.experiment), []).append(one)
    observers = list(dict.fromkeys(observer for observer, _ in lines))
    tests = list(dict.fromkeys(test for _, test in lines))
    alone = len(observers) == 1
    for i, ((observer, test), layers) in enumerate(lines.items()):
        colour = COLOURS[i % len(COLOURS)]
        marker = "osD^vP*X"[i % 8]
        found = [_depth_entry(layer, metric) for layer in layers]
        at = np.array([k for k, (entry, _) in enumerate(found) if entry.value is not None])
        name = " · ".join([observer] * (not alone) + [test] * (alone or len(tests) > 1))
        values = np.array([_value(found[k][0]) for k in at])
        ax.plot(at, values, color=colour, marker=marker, markersize=4, label=printable(name))
        bounded = [k for k in at if found[k][0].low is not None]
        low, high = (
            np.array([getattr(found[k][0], end) for k in bounded], dtype=float)
            for end in ("low", "high")
        )
        ax.fill_between(bounded, low, high, color=paler(colour, 0.15), linewidth=0, zorder=0)
        if found[0][1] is not None:
            ax.axhline(found[0][1], color=colour, linestyle=":", linewidth=1)
    ax.plot([], [], color="0.3", linestyle=":", label="pixels")
    deepest = max(lines.values(), key=len)
    if alone:
        labels = [printable(one.layer) for one in deepest]
        ax.set_xticks(range(len(deepest)), labels, rotation=40, ha="right", fontsize="small")
    to_the_right = "Layer" if alone else "Layer, counted from the input"
    label(ax, to_the_right, metric.label, printable(observers[0]) if alone else "", framed=False)
    ax.legend(fontsize="small", framealpha=0.9)
    return ax


def _depth_metric(one: Score) -> Metric | None:
    return next(
        (metric for row in one.rows() if row.responder == OBSERVER for metric in row.entries), None
    )


def _depth_entry(one: Score, metric: Metric) -> tuple[Entry, float | None]:
    """The observer's, and the value of the pixels where they were measured."""
    found = {row.responder: row.entries[metric] for row in one.rows() if metric in row.entries}
    return found[OBSERVER], found[PIXELS].value if PIXELS in found else None


def _value(entry: Entry | None) -> float:
    return float("nan") if entry is None or entry.value is None else entry.value


def _has(row: BoardRow, test: Test) -> bool:
    return bool(np.isfinite(_value(row.entries.get(test))))


def _is_reference(row: BoardRow) -> bool:
    return row.kind in ("baseline", "people") or row.family == _NO_ENCODER or _is_human_like(row)


def _is_human_like(row: BoardRow) -> bool:
    return row.family == _HUMAN_LIKE or row.name.rpartition(":")[2] in ("cvvdp", "cvvdp_hdr")


def _references(rows: Sequence[BoardRow], test: Test) -> list[tuple[str, str, float]]:
    """Label, line style and value of the lines that bars are compared with; one's own pixels before
    published ones.
    """
    found: dict[str, tuple[str, str, float]] = {}
    for row in sorted(rows, key=lambda row: row.kind == "published"):
        if not _has(row, test):
            continue
        if row.name == PIXELS or row.family == _NO_ENCODER:
            found.setdefault("pixels", ("pixels (no encoder)", ":", _value(row.entries[test])))
        elif _is_human_like(row):
            found.setdefault(
                "human", ("ColorVideoVDP (human-like)", "--", _value(row.entries[test]))
            )
    return list(found.values())


def _colours(rows: Sequence[BoardRow]) -> dict[str, str]:
    """Colours of models by name where there are enough for all, else of families."""
    models = [row for row in rows if not _is_reference(row)]
    names = list(dict.fromkeys(row.name for row in models))
    if len(names) <= len(COLOURS):
        return dict(zip(names, COLOURS, strict=False))
    families = list(dict.fromkeys(row.family for row in models))
    families.sort(key=lambda name: _FAMILIES.index(name) if name in _FAMILIES else len(_FAMILIES))
    return {family: COLOURS[i % len(COLOURS)] for i, family in enumerate(families)}


def _legend(figure: Figure, board: Scoreboard) -> None:
    """Models or families and reference lines, above all panels of a figure."""
    handles = [
        Patch(facecolor=colour, edgecolor="black", linewidth=0.4, label=printable(group))
        for group, colour in _colours(board.rows).items()
    ]
    lines = {str(line.get_label()): line for ax in figure.axes for line in ax.lines}
    lines = {label: line for label, line in lines.items() if not label.startswith("_")}
    figure.legend(
        handles=[*handles, *lines.values()], loc="outside upper center", ncols=6, fontsize="small"
    )
