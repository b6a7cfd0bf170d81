"""Scores and figures of any result, by the probe that asked: the one place that goes from a result
to its probe.

A probe offers ``score(result, **options)``, which gives a tuple of `psyprobe.analysis.Score` (one a
layer where there are layers, none where there is nothing to compare with), and ``plot(results,
ax=None, *, figure, observer, measure, layer, levels)``, which gives Axes, a figure or the subfigure
that it was given.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, cast

from psyprobe.analysis.score import NO_SCORE, Score
from psyprobe.errors import InputError
from psyprobe.plotting.axes import check_new, fit_width, legend_lines, title_of, typeset
from psyprobe.plotting.people import Human
from psyprobe.probes import load_probe

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

    from psyprobe.analysis.scoreboards import Scoreboard


def score(result: xr.Dataset, **options: Any) -> Score:
    """Score a result against people.

    Parameters
    ----------
    result : xarray.Dataset
        Of any run.
    **options
        Of the probe's own ``score``; those of encoders and metrics take measure, layer, confidence,
        resamples and seed.

    Returns
    -------
    Score
        Printing it gives a table.

    Raises
    ------
    InputError
        If this is no result, there is no human reference, several layers were run and none was
        named, or values are not finite.
    UnknownNameError
        If the probe, measure or layer is not known.

    See Also
    --------
    score_layers : one score for each layer.
    psyprobe.analysis.score_table : several scores as text, Markdown, LaTeX, CSV or JSON.
    scoreboard : models and tests in one table.
    """
    found = score_layers(result, **options)
    if not found:
        raise InputError(
            f"{result.attrs.get('experiment', 'this result')} has {NO_SCORE}; give its page a "
            "[human]"
        )
    if len(found) > 1:
        layers = ", ".join(one.layer for one in found)
        raise InputError(f"the result holds {len(found)} layers ({layers}); name one with layer=")
    return found[0]


def score_layers(result: xr.Dataset, **options: Any) -> tuple[Score, ...]:
    """Score each layer of a result; none where there is no human reference.

    Parameters
    ----------
    result, **options
        As for `score`.

    Raises
    ------
    InputError, UnknownNameError
        As for `score`.
    """
    return tuple(_offered(result, "score", "scored")(result, **options))


def all_scores(results: Sequence[xr.Dataset], **options: Any) -> list[Score]:
    """Scores of each result, and those that a probe finds in several together, as in several
    people.

    Parameters
    ----------
    results : sequence of xarray.Dataset
        Of any runs.
    **options
        As for `score`.
    """
    return [
        layer for result in results for layer in score_layers(result, **options)
    ] + scores_together(results)


def scores_together(results: Sequence[xr.Dataset]) -> list[Score]:
    """Scores that probes find in several results together, such as several people against each
    other.
    """
    found: list[Score] = []
    for name in dict.fromkeys(map(_probe_of, results)):
        together = getattr(load_probe(name), "score_together", None)
        if together is not None:
            found += together([result for result in results if _probe_of(result) == name])
    return found


def scoreboard(
    results_or_scores: Iterable[xr.Dataset | Score] = (),
    *,
    published: bool = False,
    sort: str | None = None,
    **options: Any,
) -> Scoreboard:
    """Put results of observers in tests into one table, each layer by itself, with the trivial
    responders under them.

    Parameters
    ----------
    results_or_scores : iterable of xarray.Dataset or Score
        Of any observers, experiments and layers.
    published, sort
        As for `psyprobe.analysis.scoreboard`.
    **options
        As for `score`.

    Raises
    ------
    InputError
        As for `psyprobe.analysis.scoreboard` and `score`.
    """
    import xarray

    from psyprobe.analysis import scoreboards

    scores: list[Score] = []
    for one in results_or_scores:
        scores += score_layers(one, **options) if isinstance(one, xarray.Dataset) else [one]
    return scoreboards.scoreboard(scores, published=published, sort=sort)


def plot(
    result: xr.Dataset | Iterable[xr.Dataset],
    ax: Axes | None = None,
    *,
    measure: str | None = None,
    layer: str | None = None,
    levels: Any = None,
    human: Human = "both",
    cmap: str | None = None,
    width: float | None = None,
) -> Axes | Figure:
    """Draw the figure that fits each result: contours, contrast matches, sensitivity functions, or
    its probe's own.

    Parameters
    ----------
    result : xarray.Dataset or iterable of xarray.Dataset
        Of any runs.
    ax : matplotlib.axes.Axes, optional
        Where to draw one panel; without it, on a new pyplot figure.
    measure : {"angular", "angular_float32", "cosine", "l1", "l2"}, optional
        What to draw; without it the measure that the experiment names, else "angular".
    layer : str, optional
        Name of a layer that all results hold; without it, one panel for each layer of each result.
    levels : "log", "linear" or array_like of float, optional
        Of contours, as for `psyprobe.plotting.contour`.
    human : {"both", "model", "measured", "none"}, optional
        What of people is drawn: the curve of a model, measured thresholds with the spread between
        people, or both.
    cmap : str, optional
        A colour map of matplotlib, of what is drawn in one.
    width : float, optional
        Of a new figure, mm: 85 for one column of a journal, 178 for two, with type as journals
        print it.

    Returns
    -------
    matplotlib Axes or Figure
        Axes of a single panel, or the figure that holds several, the results of each probe in a row
        of their own.

    Raises
    ------
    InputError
        If something is no result, or several panels are to go on one Axes.

    See Also
    --------
    psyprobe.plotting : each figure with all its options.
    """
    import xarray

    listed = [result] if isinstance(result, xarray.Dataset) else list(result)
    if not listed:
        raise InputError("there are no results to draw; give at least one")
    groups: dict[str, list[xr.Dataset]] = {}
    for one in listed:
        groups.setdefault(_probe_of(one), []).append(one)
    check_new(width, ax)
    options = {"measure": measure, "layer": layer, "levels": levels, "human": human, "cmap": cmap}
    if len(groups) > 1 and ax is not None:
        raise InputError(
            f"ax holds one panel, and there are results of {', '.join(groups)}; leave ax out"
        )
    with typeset(width):
        if len(groups) == 1:
            drawn = _offered(listed[0], "plot", "drawn")(listed, ax, **options)
        else:
            drawn = _stacked(list(groups.values()), options)
    fit_width(drawn, width)
    return cast("Axes | Figure", drawn)


def _stacked(groups: list[list[xr.Dataset]], options: dict[str, Any]) -> Figure:
    """The figure of each probe under the other."""
    import matplotlib.pyplot as plt

    widest = max(min(len(group), 3) for group in groups)
    figure: Figure = plt.figure(layout="constrained", figsize=(4.8 * widest, 3.6 * len(groups)))
    names = {title_of(one, width=80) for group in groups for one in group}
    figure.suptitle(names.pop() if len(names) == 1 else "", fontsize="large")
    together = bool(figure.get_suptitle())
    spec = figure.add_gridspec(len(groups), 1)
    shapes = []
    keys = []
    for row, group in enumerate(groups):
        part = figure.add_subfigure(spec[row])
        _offered(group[0], "plot", "drawn")(
            group, None, figure=part, observer=not together, **options
        )
        shapes.append(_shape(part))
        keys.append(legend_lines(part))
    heights = [3.6 * rows + 0.13 * lines for (rows, _), lines in zip(shapes, keys, strict=True)]
    spec.set_height_ratios(heights)
    figure.set_size_inches(max(4.8 * min(across, 3) for _, across in shapes), sum(heights) + 0.2)
    return figure


def _shape(part: SubFigure) -> tuple[int, int]:
    """Rows and columns of panels."""
    grid = part.axes[0].get_subplotspec() if part.axes else None
    return (1, 1) if grid is None else grid.get_gridspec().get_geometry()


def _probe_of(result: xr.Dataset) -> str:
    name = getattr(result, "attrs", {}).get("probe")
    if not name:
        raise InputError(
            "this is no result of a run: it does not say which probe asked; pass what "
            "psyprobe.run() gave"
        )
    return str(name)


def _offered(result: xr.Dataset, what: str, done: str) -> Any:
    """A function of the probe that asked."""
    name = _probe_of(result)
    function = getattr(load_probe(name), what, None)
    if function is None:
        raise InputError(
            f"probe {name!r} does not say how its results are {done}; give it a function {what!r}"
        )
    return function
