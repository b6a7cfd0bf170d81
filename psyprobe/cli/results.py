"""``psyprobe score`` and ``psyprobe plot``: from stored responses, without the observer."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from psyprobe.errors import InputError
from psyprobe.files.output import write_whole
from psyprobe.files.terminal import say, show

if TYPE_CHECKING:
    import xarray

    from psyprobe.analysis.board import Scoreboard


def score_command(arguments: argparse.Namespace) -> int:
    """Print the scores of all finished runs, a line each or as one table of observers and experiments."""
    from psyprobe.analysis.score import score_table
    from psyprobe.probes.results import score_layers

    if arguments.scoreboard:
        say(_scoreboard(arguments, _load(arguments.results)).table("json" if arguments.json else arguments.format))
        return 0
    _check_options(arguments, "--scoreboard")
    scores = [one for result in _load(arguments.results) for one in score_layers(result, measure=arguments.measure)]
    show([one.to_dict() for one in scores], score_table(scores, arguments.format), as_json=arguments.json)
    return 0


def plot_command(arguments: argparse.Namespace) -> int:
    """Draw all finished runs, or the scoreboard of them, into one figure."""
    import matplotlib as mpl

    from psyprobe.plotting.axes import save_figure
    from psyprobe.plotting.scores import bar_panels, heat_map
    from psyprobe.probes.results import plot

    mpl.use("agg")
    results = _load(arguments.results)
    drawn: Any
    if arguments.scoreboard is None:
        _check_options(arguments, "--scoreboard heat-map or bars")
        drawn = plot(results, measure=arguments.measure, layer=arguments.layer, levels=arguments.levels)
    elif arguments.layer is not None:
        raise InputError("--layer is for contours and matches; the scoreboard shows every layer as a model of its own")
    else:
        drawn = (heat_map if arguments.scoreboard == "heat-map" else bar_panels)(_scoreboard(arguments, results))
    path = Path(arguments.output)
    write_whole(path, lambda partial: save_figure(drawn, partial))
    panels = [[one.attrs["experiment"], one.attrs["observer"]] for one in results]
    told = f"{path}: {len(results)} result{'s' * (len(results) != 1)}"
    show({"file": str(path), "panels": panels}, told, as_json=arguments.json)
    return 0


def _scoreboard(arguments: argparse.Namespace, results: list[xarray.Dataset]) -> Scoreboard:
    from psyprobe.probes.results import scoreboard

    return scoreboard(results, published=arguments.published, sort=arguments.sort, measure=arguments.measure)


def _check_options(arguments: argparse.Namespace, option: str) -> None:
    if arguments.published or arguments.sort is not None:
        raise InputError(f"--published and --sort are for the scoreboard; add {option}")


def _load(paths: list[str]) -> list[xarray.Dataset]:
    from psyprobe.probes.conduct import load_results

    return [result for path in paths for result in load_results(path)]
