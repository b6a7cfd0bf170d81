"""``psyprobe run``: experiments with observers, and what comes out of them in a folder."""

from __future__ import annotations

import argparse
import re
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from psyprobe.errors import ConditionWarning, InputError, PsyprobeError, unknown_name
from psyprobe.files.output import json_text, write_whole
from psyprobe.files.settings import settings
from psyprobe.files.terminal import say, say_json, tell

if TYPE_CHECKING:
    import xarray

    from psyprobe.analysis.score import Score
    from psyprobe.experiment import Experiment
    from psyprobe.running.protocol import Plan


def run_command(arguments: argparse.Namespace) -> int:
    """Run each experiment with each observer; write result, score and figure; print the scores."""
    from psyprobe.experiment import read_suite
    from psyprobe.probes.conduct import checked

    asked = [checked(experiment) for name in dict.fromkeys(arguments.experiment) for experiment in read_suite(name)]
    if arguments.variants:
        asked = _varied(asked, dict(map(_variant, arguments.variants)))
    # A suite and one of its experiments may both be named; files of one name in two folders are two experiments.
    experiments = list({(experiment.name, experiment.digest): experiment for experiment in asked}.values())
    folder = Path(arguments.output)
    store = folder / "runs.sqlite" if arguments.store is None else Path(arguments.store)
    if arguments.plan:
        return _plan(arguments, experiments, store)
    # Made for the results even where the store is elsewhere: a folder that cannot be made must not cost a run.
    _make(folder)
    return _run(arguments, experiments, folder, store)


def _varied(experiments: list[Experiment], variants: dict[str, list[float]]) -> list[Experiment]:
    """Vary in each experiment what its stimulus has; noise has a seed and no phase, a grating the other way round."""
    known = {experiment.name: experiment.free_parameters() for experiment in experiments}
    for name in variants:
        if not any(name in free for free in known.values()):
            raise unknown_name("parameter to vary", name, sorted(set().union(*known.values())))
    return [
        experiment.with_variants({name: values for name, values in variants.items() if name in known[experiment.name]})
        for experiment in experiments
    ]


def _variant(text: str) -> tuple[str, list[float]]:
    name, _, values = text.partition("=")
    try:
        numbers = [float(value) for value in values.split(",")]
    except ValueError:
        numbers = []
    if not name or not numbers or not np.isfinite(numbers).all():
        raise InputError(f"--variants {text!r} is not a name and its values; write for example phase=0,90,180,270")
    return name, [int(number) if number.is_integer() else number for number in numbers]


def _plan(arguments: argparse.Namespace, experiments: list[Experiment], store: Path) -> int:
    from psyprobe.probes.conduct import plan

    plans: list[Plan] = []
    for experiment, observer in _asked(arguments, experiments):
        options = {"batch_size": arguments.batch_size, "score_only": arguments.score_only, "timed": True}
        plans.append(plan(experiment, observer, store=store, **options))
    if arguments.json:
        say_json([planned.to_dict() for planned in plans])
        return 0
    say("\n".join(str(planned) for planned in plans))
    seconds = sum(planned.seconds or 0 for planned in plans)
    say(
        f"In all {sum(planned.images for planned in plans)} distinct images; what is left takes about "
        f"{max(seconds, 1):.0f} s, an estimate that leaves out drawing."
    )
    return 0


def _run(arguments: argparse.Namespace, experiments: list[Experiment], folder: Path, store: Path) -> int:
    from psyprobe.analysis.table import score_table
    from psyprobe.probes.conduct import run
    from psyprobe.probes.results import score_layers

    scores: list[Score] = []
    reports = []
    for experiment, observer in _asked(arguments, experiments):
        options = {"batch_size": arguments.batch_size, "score_only": arguments.score_only}
        with warnings.catch_warnings():
            # Said once for each experiment, as a line and not as Python's warning.
            warnings.simplefilter("always", ConditionWarning)
            warnings.showwarning = lambda message, *_: tell(f"Note: {message}")
            result = run(experiment, observer, store=store, **options)
        found = score_layers(result)
        files = write_result(result, found, folder / _stem(arguments, experiment, observer.card))
        scores += found
        reports.append(
            {
                "experiment": experiment.name,
                "observer": observer.card.name,
                "store": str(store),
                "files": {kind: str(path) for kind, path in files.items()},
                "scores": [one.to_dict() for one in found],
            }
        )
        if not arguments.json:
            tell(f"{experiment.name} with {observer.card.label}: {', '.join(map(str, files.values()))}")
    if arguments.json:
        say_json(reports)
    else:
        say(score_table(scores))
    return 0


def write_result(result: xarray.Dataset, scores: Sequence[Score], stem: Path) -> dict[str, Path]:
    """Write a result as NetCDF, its scores as JSON and its figure as PNG.

    Parameters
    ----------
    result : xarray.Dataset
        Of a run.
    scores : list of Score
        Of the result.
    stem : Path
        Folder and name without ending.

    Returns
    -------
    dict of str to Path
        "result", "score" and, unless there is nothing to draw, "plot".

    Raises
    ------
    PsyprobeError
        A file cannot be written.
    """
    import matplotlib as mpl

    from psyprobe.plotting import save_figure
    from psyprobe.probes.results import plot

    files = {
        "result": stem.with_name(f"{stem.name}.nc"),
        "score": stem.with_name(f"{stem.name}.json"),
    }
    write_whole(files["result"], lambda path: result.to_netcdf(path, engine="scipy"))
    listed = json_text([one.to_dict() for one in scores])
    write_whole(files["score"], lambda path: path.write_text(listed, encoding="utf-8"))
    if "scored_response" in result and "response" not in result:
        # Only what the score needs was shown: there is no grid to draw.
        return files
    files["plot"] = stem.with_name(f"{stem.name}.png")
    # A command line has no window to draw in, and some machines have no display at all.
    mpl.use("agg")
    try:
        write_whole(files["plot"], lambda path: save_figure(plot(result), path))
    except InputError as error:
        # What was asked and scored is not lost because it cannot be drawn, as a small set or a blind observer cannot.
        tell(f"Note: no figure: {error}")
        del files["plot"]
    return files


def _asked(arguments: argparse.Namespace, experiments: list[Experiment]) -> Iterator[tuple[Experiment, Any]]:
    """Every experiment with every observer; an observer that is fed alike is loaded once."""
    from psyprobe.probes.conduct import observer_for

    options = settings(arguments.observer_option, "--observer-option")
    if arguments.input is not None:
        options["input"] = arguments.input
    if arguments.layers is not None:
        options["layers"] = "all" if arguments.layers == ["all"] else tuple(arguments.layers)
    if arguments.device is not None:
        options["device"] = arguments.device
    if arguments.random_weights:
        options["random_weights"] = True
    for name in dict.fromkeys(arguments.observer) or [None]:
        loaded: dict[Any, Any] = {}
        for experiment in experiments:
            fed = experiment.observer
            if fed not in loaded:
                loaded[fed] = observer_for(experiment, name, **options)
            yield experiment, loaded[fed]


def _stem(arguments: argparse.Namespace, experiment: Experiment, card: Any) -> str:
    """Name of the files: safe on every system, and its own for every way of asking."""
    special = arguments.random_weights or arguments.layers is not None or arguments.input is not None
    special = special or bool(arguments.observer_option)
    parts = [experiment.name, card.name, *([card.digest[:8]] if special else [])]
    parts += ["score"] if arguments.score_only else []
    parts += arguments.variants
    return "-".join(re.sub(r"[^A-Za-z0-9._]+", "-", part).strip("-.") for part in parts)[:200]


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise PsyprobeError(f"folder {folder} cannot be made: {error.strerror}; give another --output") from error
