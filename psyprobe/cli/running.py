"""``psyprobe run``: experiments with observers, and what comes out of them in a folder."""

from __future__ import annotations

import argparse
import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
import xarray

from psyprobe.analysis.score import Score, score_table
from psyprobe.cli.commands import extensions_of
from psyprobe.errors import InputError, UnfinishedError
from psyprobe.experiment import Experiment, read_suite
from psyprobe.files.output import digest, json_text, make_folder, write_text, write_whole
from psyprobe.files.terminal import say, say_json, settings, show, tell
from psyprobe.observers.chat.cost_summary import spent_on
from psyprobe.observers.chat.prices import Budget, read_prices
from psyprobe.observers.protocol import Card, DeferredObserver, ServedObserver
from psyprobe.observers.registry import read_observers
from psyprobe.probes.cost import duration, priced_plan
from psyprobe.probes.experiments import (
    checked,
    load_results,
    observer_for,
    opened_executor,
    plan,
    run_experiment,
    run_shard,
    vary,
)
from psyprobe.probes.results import plot, score_layers

#: Seconds until worker processes have loaded an observer.
_WORKERS_START = 3.0


def run_command(arguments: argparse.Namespace) -> int:
    """Run each experiment with each observer; write result, score and figure; print the scores."""
    changed = settings(arguments.set, "--set")
    asked = [
        checked(experiment)
        for name in dict.fromkeys(arguments.experiment)
        for experiment in read_suite(name)
    ]
    asked = (
        [checked(experiment.with_settings(changed)) for experiment in asked] if changed else asked
    )
    if arguments.variants:
        asked = vary(asked, dict(map(_variant, arguments.variants)))
    # A suite and one of its experiments may both be named; files of one name in two folders are two
    # experiments.
    experiments = list(
        {(experiment.name, experiment.digest): experiment for experiment in asked}.values()
    )
    folder = Path(arguments.output)
    store = folder / "runs.sqlite" if arguments.store is None else Path(arguments.store)
    options = {
        "store": store,
        "batch_size": arguments.batch_size,
        "score_only": arguments.score_only,
    }
    known = arguments.prices is not None or arguments.budget is not None
    options["prices"] = prices = read_prices(arguments.prices) if known else None
    budget = (
        None
        if arguments.budget is None or prices is None
        else Budget(arguments.budget, prices.currency)
    )
    wrappers = _wrappers(arguments)
    if arguments.probe and not (arguments.plan or wrappers):
        raise InputError("--probe puts one question before many; add --plan")
    if arguments.plan:
        return _plan(arguments, experiments, options)
    # Made for the results even where the store is elsewhere: a folder that cannot be made must not
    # cost a run.
    make_folder(folder)
    if arguments.workers is not None and arguments.scheduler is not None:
        raise InputError(
            "--workers are of this machine and --scheduler has its own; leave one of them out"
        )
    executor = arguments.workers if arguments.scheduler is None else arguments.scheduler
    with opened_executor(executor) as workers:
        options["executor"] = workers
        if arguments.shard is not None:
            if budget is not None:
                raise InputError(
                    "--budget stops a run, and --shard asks a share of one elsewhere; leave one "
                    "of them out"
                )
            return _run_shard(arguments, experiments, options)
        return _run(arguments, experiments, folder, options | {"budget": budget})


def _variant(text: str) -> tuple[str, list[float]]:
    name, _, values = text.partition("=")
    try:
        numbers = [float(value) for value in values.split(",")]
    except ValueError:
        numbers = []
    if not name or not numbers or not np.isfinite(numbers).all():
        raise InputError(
            f"--variants {text!r} is not a name and its values; write for example "
            "phase=0,90,180,270"
        )
    return name, [int(number) if number.is_integer() else number for number in numbers]


def _plan(
    arguments: argparse.Namespace, experiments: list[Experiment], options: dict[str, Any]
) -> int:
    plans = []
    timed = True
    spread = 0.0
    for experiment, observer in _asked(arguments, experiments):
        # A network that is not loaded yet would take longer to load than all else that a plan
        # tells.
        loaded = not isinstance(observer, DeferredObserver) or observer.loaded
        served = isinstance(observer, ServedObserver)
        plans.append(
            plan(experiment, observer, timed=arguments.probe if served else loaded, **options)
        )
        timed &= loaded
        # A server is asked many questions at once by one process.
        spread += 0.0 if served else plans[-1].seconds or 0.0
    seconds = sum(planned.seconds or 0 for planned in plans)
    shared = _with_workers(arguments.workers or os.cpu_count() or 1, seconds, spread)
    known = (
        f"what is left takes about {max(seconds, 1):.0f} s, an estimate that leaves out "
        f"drawing{shared}"
    )
    unknown = (
        "how long that takes is not known before the network is loaded; "
        "psyprobe.plan(timed=True) finds out"
    )
    takes = f"In all {_distinct(plans)}; {known if timed else unknown}."
    # What is shown to encoders has no price.
    expenses = [left for planned in plans if (left := getattr(planned, "left", None))]
    text = "\n".join([*map(str, plans), takes, *priced_plan(expenses, arguments.budget)])
    show([planned.to_dict() for planned in plans], text, as_json=arguments.json)
    return 0


def _distinct(plans: list[Any]) -> str:
    """How many images and clips."""
    counts = Counter[str]()
    for planned in plans:
        counts["images" if getattr(planned, "frames", 1) == 1 else "clips"] += planned.images
    return " and ".join(f"{count} distinct {what}" for what, count in counts.items())


def _with_workers(count: int, seconds: float, spread: float) -> str:
    """What so many worker processes would take, of seconds in all and of those that can be spread
    over them.
    """
    if count == 1 or not spread:
        return ""
    told = seconds - spread + spread / count + _WORKERS_START
    if told >= seconds:
        return (
            f"; --workers {count} would not be faster, since they take {_WORKERS_START:g} s "
            "to start"
        )
    return f", and with --workers {count} about {told:.0f} s"


def _run(
    arguments: argparse.Namespace,
    experiments: list[Experiment],
    folder: Path,
    options: dict[str, Any],
) -> int:
    scores: list[Score] = []
    reports = []
    unfinished = 0
    for experiment, observer in _asked(arguments, experiments):
        began = monotonic()
        try:
            result = run_experiment(experiment, observer, **options)
        except UnfinishedError as stop:
            # Batches of others can be written meanwhile; a budget is everyone's.
            unfinished += 1
            tell(
                f"psyprobe run: not finished: {stop} ({experiment.name} with {observer.card.label})"
            )
            continue
        took = monotonic() - began
        found = score_layers(result)
        files = write_result(
            result, found, _own(folder / _stem(arguments, experiment, observer.card), result)
        )
        scores += found
        reports.append(
            {
                "experiment": experiment.name,
                "observer": observer.card.name,
                "store": str(options["store"]),
                "seconds": took,
                **({"spent": json.loads(result.attrs["spent"])} if "spent" in result.attrs else {}),
                "files": {kind: str(path) for kind, path in files.items()},
                "scores": [one.to_dict() for one in found],
            }
        )
        if not arguments.json:
            tell(
                f"{experiment.name} with {observer.card.label}: "
                f"{', '.join(map(str, files.values()))}"
            )
            if "spent" in result.attrs:
                tell(f"{spent_on(result.attrs)}; this run of the command took {duration(took)}")
    if unfinished and not reports:
        return 3
    if arguments.json:
        say_json(reports)
    else:
        say(score_table(scores))
    return 3 if unfinished else 0


def _run_shard(
    arguments: argparse.Namespace, experiments: list[Experiment], options: dict[str, Any]
) -> int:
    for experiment, observer in _asked(arguments, experiments):
        run_shard(experiment, observer, shard=arguments.shard, **options)
    what = {"shard": arguments.shard, "store": str(options["store"])}
    merge = "merge the stores of all shares with psyprobe store merge, and run on what it makes"
    show(what, f"share {arguments.shard} is in {options['store']}; {merge}", as_json=arguments.json)
    return 0


def write_result(result: xarray.Dataset, scores: Sequence[Score], stem: Path) -> dict[str, Path]:
    """Write a result as NetCDF, its scores as JSON and, unless there is nothing to draw, its figure
    as PNG.

    Parameters
    ----------
    result : xarray.Dataset
        Of a run.
    scores : sequence of Score
        Of the result.
    stem : Path
        Folder and name without ending.

    Returns
    -------
    dict of str to Path
        "result", "score" and "plot".

    Raises
    ------
    PsyprobeError
        A file cannot be written.
    """
    import matplotlib as mpl

    from psyprobe.plotting.axes import save_figure

    endings = {"result": "nc", "score": "json", "plot": "png"}
    files = {kind: stem.with_name(f"{stem.name}.{ending}") for kind, ending in endings.items()}
    write_whole(files["result"], lambda path: result.to_netcdf(path, engine="scipy"))
    write_text(files["score"], json_text([score.to_dict() for score in scores]))
    # A command line has no window to draw in, and some machines have no display at all.
    mpl.use("agg")
    import matplotlib.pyplot as plt

    try:
        drawn = plot(result)
    except InputError as error:
        # What was asked and scored is not lost because it cannot be drawn, as a small set or a
        # blind observer cannot.
        tell(f"Note: no figure: {error}")
        return {kind: files[kind] for kind in ("result", "score")}
    write_whole(files["plot"], lambda path: save_figure(drawn, path))
    # pyplot keeps figures: those of a long suite would fill the memory.
    plt.close(getattr(drawn, "figure", drawn))
    return files


def _asked(
    arguments: argparse.Namespace, experiments: list[Experiment]
) -> Iterator[tuple[Experiment, Any]]:
    """Every experiment with every observer; an observer that is fed alike is loaded once."""
    layers = (
        None
        if arguments.layers is None
        else "all"
        if arguments.layers == ["all"]
        else tuple(arguments.layers)
    )
    given = {"layers": layers} | {
        name: getattr(arguments, name) for name in ("input", "device", "random_weights")
    }
    options = settings(arguments.observer_option, "--observer-option")
    options |= {name: value for name, value in given.items() if value}
    names: list[str | None] = [*_named(arguments)]
    for name in names or [None]:
        loaded: dict[Any, Any] = {}
        for experiment in experiments:
            fed = experiment.observer
            if fed not in loaded:
                observer = observer_for(experiment, name, **options)
                for wrap in _wrappers(arguments):
                    observer = wrap(observer)
                loaded[fed] = observer
            yield experiment, loaded[fed]


def _wrappers(arguments: argparse.Namespace) -> list[Callable[[Any], Any]]:
    """What installed packages put around each observer, as the options ask for it."""
    found = [hook(arguments) for hook in extensions_of("run", "wraps")]
    return [wrap for wrap in found if wrap is not None]


def _named(arguments: argparse.Namespace) -> list[str]:
    """Observers by name, those of pages of them among them, each once."""
    pages = (
        read_observers(name) if name.endswith(".toml") else [name] for name in arguments.observer
    )
    return list(dict.fromkeys(name for page in pages for name in page))


def _stem(arguments: argparse.Namespace, experiment: Experiment, card: Any) -> str:
    """Name of the files: safe on every system, and its own for every way of asking."""
    special = (
        arguments.random_weights or arguments.layers or arguments.input or arguments.observer_option
    )
    special = special or any("?" in name for name in _named(arguments))
    parts = [experiment.name, card.name, *([card.digest[:8]] if special else [])]
    parts += ["score"] if arguments.score_only else []
    parts += [*arguments.variants, *arguments.set]
    return "-".join(re.sub(r"[^A-Za-z0-9._]+", "-", part).strip("-.") for part in parts)[:200]


def _own(stem: Path, result: xarray.Dataset) -> Path:
    """The name, or one with a digest behind it where the result of another observer of the same
    name lies there.
    """
    try:
        (there,) = load_results(stem.with_name(f"{stem.name}.nc"))
    except InputError:
        return stem
    mine = _answerer(result)
    return stem if _answerer(there) == mine else stem.with_name(f"{stem.name}-{mine[:8]}")


def _answerer(result: xarray.Dataset) -> str:
    """Digest of who answered: the card, weights included, and what a server said that it serves."""
    card, served = (
        json.loads(result.attrs.get(name, "[]")) for name in ("observer_card", "served")
    )
    names = {each.get("listed") or each.get("model", "") for each in served}
    return digest([Card.from_dict(card).digest if card else "", sorted(names)])
