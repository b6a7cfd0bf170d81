"""Draw many scores: heat map of a scoreboard, bars of each test, score against depth.

References
----------
Cai, Yin, Hammou, Mantiuk (2025). Do computer vision foundation models learn the low-level
characteristics of the human visual system? CVPR. Figure 6.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, cast

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from psyprobe._typing import FloatArray
from psyprobe.analysis.comparison.ppd import PpdScores
from psyprobe.analysis.score import OBSERVER, PIXELS, Entry, Metric, Score
from psyprobe.analysis.scoreboards import BoardRow, Scoreboard, Test
from psyprobe.errors import InputError
from psyprobe.files.json_types import JsonMapping, JsonObject
from psyprobe.plotting.axes import (
    BLANK,
    COLOUR_MAP,
    COLOURS,
    colour_map,
    label,
    labelled_lines,
    new_axes,
    paler,
    panels_in,
    printable,
)

#: Family of the published entry of the pixels.
_NO_ENCODER = "No Encoder"

#: Lines of the metrics of a board, in its order.
_METRIC_STYLES = ("--", "-.", (0, (6, 1, 1, 1, 1, 1)))

#: Edge of bars.
_EDGE: JsonMapping = {"edgecolor": "black", "linewidth": 0.4}

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


def heat_map(
    board: Scoreboard, ax: Axes | None = None, *, cmap: str | None = None
) -> Axes:
    """Draw a scoreboard as coloured cells, models downwards and tests to the right.

    Each column has its own colours, from the worst (light) to the best (dark) of its scores, since
    r_s and errors, and tests of different difficulty, cannot be compared by value.

    Parameters
    ----------
    board : Scoreboard
        Scoreboard to draw, rows in its order.
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
    ax = ax or new_axes(3.4 + 0.75 * len(tests), 1.5 + 0.22 * len(rows))
    values = np.array(
        [[_value_or_nan(row.entries.get(test)) for test in tests] for row in rows]
    )
    quality = _quality(values, tests)
    image = ax.imshow(
        quality,
        cmap=colour_map(cmap or COLOUR_MAP).with_extremes(bad=BLANK),
        norm=Normalize(0, 1),
        aspect="auto",
        interpolation="nearest",
    )
    for (i, j), value in np.ndenumerate(values):
        if np.isfinite(value):
            ink = "white" if quality[i, j] > 0.55 else "black"
            text = f"{value:.2f}" if abs(value) >= 0.05 else f"{value:.2g}"
            ax.text(j, i, text, ha="center", va="center", fontsize=6.5, color=ink)
    _slant_ticks(ax, [test.short_name for test in tests])
    ax.set_yticks(range(len(rows)), [printable(row.name) for row in rows], fontsize=7)
    for name, row in zip(ax.get_yticklabels(), rows, strict=True):
        name.set_fontstyle("italic" if row.kind in ("baseline", "people") else "normal")
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    bar = ax.figure.colorbar(
        image, ax=ax, fraction=0.03, pad=0.02, label="Within each test"
    )
    bar.set_ticks([0, 1], labels=["worst", "best"])
    return ax


def _slant_ticks(ax: Axes, labels: Sequence[str]) -> None:
    """Label the places 0, 1, 2 ... of the x axis with slanted texts."""
    ax.set_xticks(range(len(labels)), labels, rotation=40, ha="right", fontsize="small")


def _quality(values: FloatArray, tests: Sequence[Test]) -> np.ma.MaskedArray[Any, Any]:
    """Scale each column from 0, its worst score, to 1, its best, missing ones masked."""
    quality = np.ma.masked_array(np.zeros(values.shape), mask=~np.isfinite(values))
    for column, test in enumerate(tests):
        has_score = np.isfinite(values[:, column])
        scores = values[has_score, column] * (1 if test.metric.more_is_better else -1)
        span = np.ptp(scores) if scores.size else 0.0
        quality[has_score, column] = (scores - scores.min()) / span if span else 0.5
    return quality


def score_bars(board: Scoreboard, test: str, ax: Axes | None = None) -> Axes:
    """Draw the scores of one test as bars from best to worst.

    Parameters
    ----------
    board : Scoreboard
        Scoreboard to draw.
    test : str
        Name of a column.
    ax : matplotlib.axes.Axes, optional
        Where to draw; without it, on a new pyplot figure with a legend.

    Returns
    -------
    matplotlib.axes.Axes
        One bar a model with its interval: coloured by family, with a slanted name below, or, with
        at most ten models, in the model's colour of the legend. A dotted line is at the score of
        the pixels, and a dashed one at that of each metric, where the board has them.

    Raises
    ------
    UnknownNameError
        There is no such column.
    """
    ordered = board.sort(test)
    column = board.column(test)
    colours = _colours(board.rows)
    scored = [row for row in ordered.rows if _has_score(row, column)]
    models = [row for row in scored if not _is_reference(row)]
    is_new = ax is None
    ax = ax or new_axes(1.6 + 0.22 * max(len(models), 8), 4.0)
    for place, row in enumerate(models):
        entry = row.entries[column]
        colour = colours.get(row.name) or colours[row.family]
        ax.bar(place, _value_or_nan(entry), color=colour, **_EDGE)
        if entry.low is not None and entry.high is not None:
            ends = [entry.low, entry.high]
            ax.plot([place, place], ends, color="black", linewidth=0.9)
    for name, (linestyle, row) in _references(board.rows).items():
        if _has_score(row, column):
            style: JsonObject = {"linestyle": linestyle, "linewidth": 1.1, "zorder": 3}
            ax.axhline(
                _value_or_nan(row.entries[column]), color="black", label=name, **style
            )
    ax.axhline(0, color="black", linewidth=0.6)
    if all(row.name in colours for row in models):
        ax.set_xticks([])
    else:
        ax.set_xticks(
            range(len(models)),
            [printable(_name_without_family(row)) for row in models],
            rotation=60,
            ha="right",
            rotation_mode="anchor",
            fontsize=6,
        )
    ax.set_xlim(-0.7, len(models) - 0.3)
    label(ax, "", column.metric.label, column.short_name, framed=False)
    if is_new:
        _legend(cast(Figure, ax.figure), board)
    return ax


def _name_without_family(row: BoardRow) -> str:
    """Shorten a model's name by its family, which its colour shows."""
    return row.name.removeprefix(f"{row.family} - ").removeprefix(f"{row.family}:")


def bar_panels(board: Scoreboard, figure: Figure | None = None) -> Figure:
    """Draw the scores of every test as bars, one panel each, with one legend.

    Parameters
    ----------
    board : Scoreboard
        Scoreboard to draw.
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
    count = len(board.tests)
    models = {row.name for row in board.rows if not _is_reference(row)}
    if len(models) <= len(COLOURS):
        canvas, panels = panels_in(figure, count, min(5, count), (2.4, 2.3), (0, 0.8))
    else:
        bars = max(
            sum(_has_score(row, test) for row in board.rows) for test in board.tests
        )
        size = (1.2 + 0.16 * bars, 3.3)
        canvas, panels = panels_in(figure, count, min(2, count), size, (0, 0.5))
    for ax, test in zip(panels, board.tests, strict=True):
        score_bars(board, test.name, ax)
    _legend(canvas, board)
    return cast(Figure, canvas)


def depth_curve(scores: Iterable[Score], ax: Axes | None = None) -> Axes:
    """Draw the score of each layer over its depth, one line for each observer and test.

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
    lines: defaultdict[tuple[str, str], list[Score]] = defaultdict(list)
    for score in scores:
        lines[score.observer, score.experiment].append(score)
    metrics = set(map(_depth_metric, itertools.chain.from_iterable(lines.values())))
    metric = next(iter(metrics), None)
    if len(metrics) != 1 or metric is None:
        raise InputError(
            "a depth curve needs scores of one kind; give those of detection or of matching"
        )
    ax = ax or new_axes()
    observers, tests = map(set, zip(*lines, strict=True))
    single_observer = len(observers) == 1
    for i, ((observer, test), layers) in enumerate(lines.items()):
        colour = COLOURS[i % len(COLOURS)]
        marker = "osD^vP*X"[i % 8]
        entries = pd.DataFrame([vars(_entry(s, OBSERVER, metric)) for s in layers])
        scored = entries[["value", "low", "high"]].astype(float).dropna(subset="value")
        names = [] if single_observer else [observer]
        if single_observer or len(tests) > 1:
            names.append(test)
        name = printable(" · ".join(names))
        style: JsonObject = {
            "color": colour,
            "marker": marker,
            "markersize": 4,
            "label": name,
        }
        ax.plot(scored["value"], **style)
        bounded = scored.dropna(subset="low")
        band: JsonObject = {"color": paler(colour, 0.15), "linewidth": 0, "zorder": 0}
        ax.fill_between(bounded.index, bounded["low"], bounded["high"], **band)
        pixels = _value_or_nan(_entry(layers[0], PIXELS, metric))
        if np.isfinite(pixels):
            ax.axhline(pixels, color=colour, linestyle=":", linewidth=1)
    ax.plot([], [], color="0.3", linestyle=":", label="pixels")
    deepest = max(lines.values(), key=len)
    if single_observer:
        _slant_ticks(ax, [printable(score.layer) for score in deepest])
        label(ax, "Layer", metric.label, printable(observers.pop()), framed=False)
    else:
        label(ax, "Layer, counted from the input", metric.label, "", framed=False)
    ax.legend(fontsize="small", framealpha=0.9)
    return ax


def _depth_metric(score: Score) -> Metric | None:
    """Find the first metric of the observer, to draw over depth."""
    rows = [row.entries for row in score.rows() if row.responder == OBSERVER]
    return next(itertools.chain.from_iterable(rows), None)


def _entry(score: Score, responder: str, metric: Metric) -> Entry:
    """Find the last entry of the observer, or of the pixels, for a metric; one without a value if
    there is none.
    """
    entry = Entry(None)
    for row in score.rows():
        if row.responder == responder:
            entry = row.entries.get(metric, entry)
    return entry


def _value_or_nan(entry: Entry | None) -> float:
    """Return the value of a score, NaN if there is none."""
    return float("nan") if entry is None or entry.value is None else entry.value


def _has_score(row: BoardRow, test: Test) -> bool:
    """Tell whether a row of the scoreboard has a score in a test."""
    return bool(np.isfinite(_value_or_nan(row.entries.get(test))))


def _is_reference(row: BoardRow) -> bool:
    """Tell whether a row is a baseline, people, a metric or pixels, and no encoder."""
    return (
        row.kind in ("baseline", "people") or row.family == _NO_ENCODER or row.is_metric
    )


def _references(rows: Sequence[BoardRow]) -> dict[str, tuple[Any, BoardRow]]:
    """Choose the rows to draw as reference lines, by label, with the style of each.

    Pixels of the user's run go before published ones.
    """
    references: dict[str, tuple[Any, BoardRow]] = {}
    styles = itertools.cycle(_METRIC_STYLES)
    for row in sorted(rows, key=lambda row: row.kind == "published"):
        if row.name == PIXELS or row.family == _NO_ENCODER:
            references.setdefault("pixels (no encoder)", (":", row))
        elif row.is_metric:
            references[f"{printable(row.title)}, metric"] = (next(styles), row)
    return references


def _colours(rows: Sequence[BoardRow]) -> dict[str, str]:
    """Assign colours to models by name where there are enough for all, else to families."""
    models = [row for row in rows if not _is_reference(row)]
    names = list(dict.fromkeys(row.name for row in models))
    if len(names) <= len(COLOURS):
        return dict(zip(names, COLOURS, strict=False))
    families = list(dict.fromkeys(row.family for row in models))
    first = [family for family in _FAMILIES if family in families]
    rest = [family for family in families if family not in _FAMILIES]
    return dict(zip([*first, *rest], itertools.cycle(COLOURS), strict=False))


def _legend(figure: Figure, board: Scoreboard) -> None:
    """Add a legend of models or families and of reference lines above all panels."""
    handles = [
        Patch(facecolor=colour, label=printable(group), **_EDGE)
        for group, colour in _colours(board.rows).items()
    ]
    all_handles = [*handles, *labelled_lines(figure.axes)]
    figure.legend(
        handles=all_handles, loc="outside upper center", ncols=6, fontsize="small"
    )


def ppd_curves(scores: PpdScores, ax: Axes | None = None) -> Axes:
    """Draw r_s over pixels per degree, a line an observer, with the convention marked.

    Parameters
    ----------
    scores : psyprobe.analysis.PpdScores
        As `psyprobe.analysis.score_over_ppd` gave them.
    ax : matplotlib.axes.Axes, optional
        Where to draw; without it, on a new pyplot figure.
    """
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    ax = ax or new_axes()
    tests = {curve.experiment for curve in scores.curves}
    layered = len({curve.layer for curve in scores.curves}) > 1
    for place, curve in enumerate(scores.curves):
        colour = COLOURS[place % len(COLOURS)]
        names = [curve.observer, *[curve.layer] * layered]
        names += [curve.experiment] * (len(tests) > 1)
        name = printable(" · ".join(names))
        ax.plot(curve.ppd, curve.scores, color=colour, label=name)
        best = int(np.argmax(curve.scores))
        ax.plot(curve.ppd[best], curve.scores[best], "o", color=colour, markersize=5)
    for convention in {curve.convention for curve in scores.curves}:
        ax.axvline(convention, color="0.3", linestyle=":", linewidth=1)
    ax.plot([], [], color="0.3", linestyle=":", label="convention for people")
    ax.set_xscale("log", base=2)
    ends = np.concatenate([curve.ppd for curve in scores.curves])
    first = scores.curves[0].convention
    steps = np.arange(
        np.floor(np.log2(ends.min() / first)), np.ceil(np.log2(ends.max() / first)) + 1
    )
    ax.xaxis.set_major_locator(FixedLocator((first * 2.0**steps).tolist()))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ax.xaxis.set_minor_locator(NullLocator())
    title = printable(tests.pop()) if len(tests) == 1 else ""
    label(ax, "Pixels per degree", "Alignment $r_s$", title, framed=False)
    # Curves of several observers leave no corner of the panel free.
    ax.legend(fontsize="small", loc="center left", bbox_to_anchor=(1, 0.5))
    return ax
