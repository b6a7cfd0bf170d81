"""``psyprobe run``: experiments with observers, and what comes out of them in a folder."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from psyprobe.cli.settings import settings
from psyprobe.errors import InputError, PsyprobeError, unknown_name
from psyprobe.files.output import json_text, write_whole
from psyprobe.files.terminal import say, say_json, tell

if TYPE_CHECKING:
    import xarray

    from psyprobe.experiment_file import Experiment
    from psyprobe.question_file import QuestionExperiment
    from psyprobe.run_plan import Plan


def run_command(arguments: argparse.Namespace) -> int:
    """Run each experiment with each observer; write result, score and contour plot; print the scores.

    Parameters
    ----------
    arguments : Namespace
        ``experiment``, ``observer``, ``output``, ``store``, ``plan``, ``input``, ``layers``, ``device``,
        ``batch_size``, ``random_weights``, ``score_only``, ``variants``, ``observer_option``, ``json``.

    Returns
    -------
    int
        Exit code 0.
    """
    from psyprobe.experiment_file import read_suite

    asked = [experiment for name in dict.fromkeys(arguments.experiment) for experiment in read_suite(name)]
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


def _varied(
    experiments: list[Experiment | QuestionExperiment], variants: dict[str, list[float]]
) -> list[Experiment | QuestionExperiment]:
    """Vary in each experiment what its stimulus has; noise has a seed and no phase, a grating the other way round."""
    from psyprobe.question_file import QuestionExperiment
    from psyprobe.variants import variable_parameters, with_variants

    varied: list[Experiment] = []
    for experiment in experiments:
        if isinstance(experiment, QuestionExperiment):
            raise InputError(f"{experiment.name} asks in words and takes no --variants: each repeat has its own noise")
        varied.append(experiment)
    known = {experiment.name: variable_parameters(experiment) for experiment in varied}
    for name in variants:
        if not any(name in free for free in known.values()):
            raise unknown_name("parameter to vary", name, sorted(set().union(*known.values())))
    return [
        with_variants(experiment, {name: values for name, values in variants.items() if name in known[experiment.name]})
        for experiment in varied
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


def _plan(arguments: argparse.Namespace, experiments: list[Experiment | QuestionExperiment], store: Path) -> int:
    from psyprobe.experiment import plan
    from psyprobe.question_plan import QuestionPlan

    plans: list[tuple[Plan | QuestionPlan, float]] = []
    speeds: dict[Any, float] = {}
    timed = False
    for experiment, observer in _asked(arguments, experiments):
        planned = plan(
            experiment, observer, store=store, batch_size=arguments.batch_size, score_only=arguments.score_only
        )
        if isinstance(planned, QuestionPlan):
            plans.append((planned, planned.chosen.seconds))
            continue
        timed = True
        key = (observer.card.digest, planned.size, planned.batch_size)
        if key not in speeds:
            speeds[key] = _seconds_an_image(observer, planned.size, planned.ppd, planned.batch_size)
        # The references of unanswered questions are shown again, so this errs on the long side.
        left = planned.questions - planned.answered
        plans.append((planned, speeds[key] * (left + planned.references if left else 0)))
    images, seconds = sum(planned.images for planned, _ in plans), sum(time for _, time in plans)
    if arguments.json:
        say_json([planned.to_dict() | {"estimated_seconds": time} for planned, time in plans])
    else:
        say("\n".join(str(planned) for planned, _ in plans))
    if timed and not arguments.json:
        say(
            f"In all {images} distinct images; what is left takes about {max(seconds, 1):.0f} s, an estimate from one "
            "batch that was timed just now, without drawing."
        )
    return 0


def _seconds_an_image(observer: Any, size: tuple[int, int], ppd: float, batch_size: int) -> float:
    """Time of one batch after another that warms up, over its images."""
    grey = np.full((batch_size, *size, 3), 0.5, dtype=np.float32)
    metric = observer.card.ability == "difference"
    ask = partial(observer.difference, grey, grey, ppd=ppd) if metric else partial(observer.features, grey)
    ask()
    start = perf_counter()
    ask()
    return (perf_counter() - start) / batch_size


def _run(
    arguments: argparse.Namespace, experiments: list[Experiment | QuestionExperiment], folder: Path, store: Path
) -> int:
    from psyprobe.analysis import score_table
    from psyprobe.experiment import run
    from psyprobe.probes.conduct import score_layers

    scores, reports = [], []
    for experiment, observer in _asked(arguments, experiments):
        result = run(
            experiment, observer, store=store, batch_size=arguments.batch_size, score_only=arguments.score_only
        )
        found = list(score_layers(result))
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


def write_result(result: xarray.Dataset, scores: list[Any], stem: Path) -> dict[str, Path]:
    """Write a result as NetCDF, its scores as JSON and its plot as PNG.

    Parameters
    ----------
    result : xarray.Dataset
        Of a run.
    scores : list of DetectionScore
        One for each layer.
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
    from psyprobe.probes.conduct import plot

    files = {
        "result": stem.with_name(f"{stem.name}.nc"),
        "score": stem.with_name(f"{stem.name}.json"),
    }
    if "response" in result or "scored_response" not in result:
        files["plot"] = stem.with_name(f"{stem.name}.png")
    write_whole(files["result"], lambda path: result.to_netcdf(path, engine="scipy"))
    listed = json_text([one.to_dict() for one in scores])
    write_whole(files["score"], lambda path: path.write_text(listed, encoding="utf-8"))
    if "plot" in files:
        # A command line has no window to draw in, and some machines have no display at all.
        mpl.use("agg")
        write_whole(files["plot"], lambda path: save_figure(plot(result), path))
    return files


def _asked(
    arguments: argparse.Namespace, experiments: list[Experiment | QuestionExperiment]
) -> Iterator[tuple[Experiment | QuestionExperiment, Any]]:
    """Every experiment with every observer; an observer that is fed alike is loaded once."""
    from psyprobe.experiment import observer_for

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
            fed = (experiment.observer_input, experiment.as_published, experiment.metric_ppd)
            if fed not in loaded:
                loaded[fed] = observer_for(experiment, name, **options)
            yield experiment, loaded[fed]


def _stem(arguments: argparse.Namespace, experiment: Experiment | QuestionExperiment, card: Any) -> str:
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
