"""``psyprobe score`` and ``psyprobe plot``: from stored responses, without the observer."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from psyprobe.errors import InputError
from psyprobe.files.output import write_whole
from psyprobe.files.terminal import say, say_json

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def score_command(arguments: argparse.Namespace) -> int:
    """Print the scores of all finished runs.

    Parameters
    ----------
    arguments : Namespace
        ``results``, ``measure``, ``format``, ``scoreboard``, ``published``, ``sort``, ``json``.

    Returns
    -------
    int
        Exit code 0.

    Raises
    ------
    InputError
        A result cannot be scored, or an option of the scoreboard is given without it.
    """
    from psyprobe.analysis import score_table
    from psyprobe.probes.results import score_layers, scoreboard

    if arguments.scoreboard:
        board = scoreboard(
            _load(arguments.results), published=arguments.published, sort=arguments.sort, measure=arguments.measure
        )
        say(board.table("json" if arguments.json else arguments.format))
        return 0
    if arguments.published or arguments.sort is not None:
        raise InputError("--published and --sort are for the scoreboard; add --scoreboard")
    scores = [one for result in _load(arguments.results) for one in score_layers(result, measure=arguments.measure)]
    if arguments.json:
        say_json([one.to_dict() for one in scores])
    else:
        say(score_table(scores, arguments.format))
    return 0


def plot_command(arguments: argparse.Namespace) -> int:
    """Draw the contour plots of all finished runs into one figure.

    Parameters
    ----------
    arguments : Namespace
        ``results``, ``output``, ``measure``, ``layer``, ``levels``, ``scoreboard``, ``published``, ``sort``, ``json``.

    Returns
    -------
    int
        Exit code 0.

    Raises
    ------
    InputError
        A result cannot be drawn, or an option does not go with what is drawn.
    """
    import matplotlib as mpl

    from psyprobe.plotting import save_figure
    from psyprobe.probes.results import plot

    mpl.use("agg")
    results = _load(arguments.results)
    if arguments.scoreboard is not None:
        drawn = _draw_scoreboard(arguments, results)
    elif arguments.published or arguments.sort is not None:
        raise InputError("--published and --sort are for the scoreboard; add --scoreboard heat-map or bars")
    else:
        drawn = plot(results, measure=arguments.measure, layer=arguments.layer, levels=arguments.levels)
    path = Path(arguments.output)
    write_whole(path, lambda partial: save_figure(drawn, partial))
    if arguments.json:
        say_json({"file": str(path), "panels": [[one.attrs["experiment"], one.attrs["observer"]] for one in results]})
    else:
        say(f"{path}: {len(results)} result{'s' * (len(results) != 1)}")
    return 0


def _draw_scoreboard(arguments: argparse.Namespace, results: list[xarray.Dataset]) -> Axes | Figure:
    from psyprobe.plotting import bar_panels, heat_map
    from psyprobe.probes.results import scoreboard

    if arguments.layer is not None:
        raise InputError("--layer is for contours and matches; the scoreboard shows every layer as a model of its own")
    board = scoreboard(results, published=arguments.published, sort=arguments.sort, measure=arguments.measure)
    return heat_map(board) if arguments.scoreboard == "heat-map" else bar_panels(board)


def _load(paths: list[str]) -> list[xarray.Dataset]:
    from psyprobe.probes.conduct import load_results

    return [result for path in paths for result in load_results(path)]
