"""``psyprobe run``: run experiments with observers and write results, scores and figures."""

from __future__ import annotations

import json
from argparse import Namespace
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any, TypeAlias

import numpy as np
import xarray

from psyprobe.analysis.comparison.paired import describe_power
from psyprobe.analysis.score import FailedScore, Score, score_table
from psyprobe.cli import report_error
from psyprobe.cli.commands import extensions_of
from psyprobe.cli.events import Events, report_details
from psyprobe.errors import InputError, UnfinishedError
from psyprobe.experiment import Experiment, load_suite
from psyprobe.files.json_types import JsonObject
from psyprobe.files.netcdf import write_netcdf
from psyprobe.files.output import (
    digest,
    file_stem,
    json_text,
    make_folder,
    write_text,
    write_whole,
)
from psyprobe.files.terminal import say, say_json, settings, show, tell
from psyprobe.observers import DEFAULT_OBSERVER
from psyprobe.observers.chat.cost_summary import describe_result_cost
from psyprobe.observers.chat.prices import Budget, read_prices
from psyprobe.observers.chat.protocol import AnswerObserver
from psyprobe.observers.protocol import (
    Card,
    DeferredObserver,
    ServedObserver,
    TrainableObserver,
)
from psyprobe.observers.registry import loaded_as, read_observers
from psyprobe.probes.cost import duration, priced_plan
from psyprobe.probes.experiments import (
    check_experiment,
    executor_context,
    load_results,
    observer_for,
    plan,
    run_experiment,
    run_shard,
    vary,
)
from psyprobe.probes.results import plot, score_layers
from psyprobe.reporting.publishing.identity import revision
from psyprobe.running.protocol import check_label, labelled

#: Report and scores of a pair of experiment and observer.
Outcome: TypeAlias = tuple[JsonObject, Sequence[Score]]
#: Options of an observer that change where and how fast it answers, and not what.
_CIRCUMSTANCES = {"base_url", "concurrency", "device", "rate", "retries", "timeout"}
#: Characters of the name of a result's file, without its ending.
_LONGEST_STEM = 200


def run_command(arguments: Namespace) -> int:
    """Run each experiment with each observer, write result, scores and figure, print scores."""
    experiments = _experiments(arguments)
    folder = Path(arguments.output)
    store = folder / "runs.sqlite" if arguments.store is None else Path(arguments.store)
    prices = budget = None
    if arguments.prices is not None or arguments.budget is not None:
        prices = read_prices(arguments.prices)
        if arguments.budget is not None:
            budget = Budget(arguments.budget, prices.currency)
    options = {
        "store": store,
        "batch_size": arguments.batch_size,
        "score_only": arguments.score_only,
        "prices": prices,
        "label": check_label(arguments.label),
    }
    wrappers = _wrappers(arguments)
    if arguments.probe and not (arguments.plan or wrappers):
        raise InputError("--probe puts one question before many; add --plan")
    if arguments.compare is not None:
        if not arguments.plan:
            raise InputError("--compare says what a run would find; add --plan")
        if arguments.compare < 1:
            raise InputError(
                f"--compare {arguments.compare} is no number of comparisons; give at least 1"
            )
    if arguments.plan:
        return _print_plans(arguments, experiments, options)
    # A folder for results that cannot be made must not cost a run.
    make_folder(folder)
    if arguments.workers is not None and arguments.scheduler is not None:
        raise InputError(
            "--workers are of this machine and --scheduler has its own; leave one of them out"
        )
    executor = arguments.workers if arguments.scheduler is None else arguments.scheduler
    with executor_context(executor) as workers:
        options["executor"] = workers
        if arguments.shard is not None:
            if budget is not None:
                raise InputError(
                    "--budget stops a run, and --shard asks a share of one elsewhere; leave one "
                    "of them out"
                )
            return _run_shard(arguments, experiments, options)
        return _run_pairs(arguments, experiments, folder, options | {"budget": budget})


def _experiments(arguments: Namespace) -> list[Experiment]:
    """Read the experiments that the command line names, with its settings and variants."""
    changes = settings(arguments.set, "--set")
    experiments = []
    for name in dict.fromkeys(arguments.experiment):
        experiments += [
            check_experiment(check_experiment(page).with_settings(changes))
            for page in load_suite(name)
        ]
    if arguments.variants:
        single = arguments.variants == ["none"]
        varied = {} if single else dict(map(_parse_variant, arguments.variants))
        experiments = vary(experiments, varied)
    # A suite and one of its experiments may both be named, while files of one name in two folders
    # are two experiments.
    distinct = {
        (experiment.name, experiment.digest): experiment for experiment in experiments
    }
    return list(distinct.values())


def _parse_variant(text: str) -> tuple[str, list[float]]:
    """Parse one NAME=1,2,3 of --variants to a parameter and its values, or refuse it."""
    name, _, values = text.partition("=")
    try:
        numbers = [float(value) for value in values.split(",")]
    except ValueError:
        numbers = []
    if not name or not numbers or not np.isfinite(numbers).all():
        raise InputError(
            f"--variants {text!r} is not a name and its values; write for example "
            "phase=0,90,180,270, draw=1,2,3, or none"
        )
    return name, [int(number) if number.is_integer() else number for number in numbers]


def _print_plans(
    arguments: Namespace, experiments: list[Experiment], options: JsonObject
) -> int:
    """Print what each pair of experiment and observer would ask and cost."""
    plans = []
    powers = {}
    timed = True
    for experiment, _, load in _pairs(arguments, experiments):
        observer = load()
        answers = isinstance(observer, AnswerObserver)
        if arguments.compare is not None:
            units = len(experiment.expanded())
            power = describe_power(units, arguments.compare, answers)
            powers[experiment.name] = f"{experiment.name}: {power}."
        # Loading a network would take longer than all else in a plan.
        loaded = (
            not isinstance(observer, DeferredObserver)
            or observer.loaded
            # What training takes is asked for before all else.
            or isinstance(observer, TrainableObserver)
        )
        served = isinstance(observer, ServedObserver)
        plans.append(
            plan(
                experiment,
                observer,
                timed=arguments.probe if served else loaded,
                **options,
            )
        )
        timed &= loaded
    seconds = sum(planned.seconds or 0 for planned in plans)
    if timed:
        duration_text = (
            f"what is left takes about {max(seconds, 1):.0f} s, an estimate that leaves out "
            "drawing"
        )
    else:
        duration_text = (
            "how long that takes is not known before the network is loaded; "
            "psyprobe.plan(timed=True) finds out"
        )
    total = f"In all {_count_images(plans)}; {duration_text}."
    # What is shown to encoders has no price.
    costs = [cost for planned in plans if (cost := getattr(planned, "left", None))]
    priced = priced_plan(costs, arguments.budget)
    text = "\n".join([*map(str, plans), *powers.values(), total, *priced])
    show([planned.to_dict() for planned in plans], text, arguments)
    return 0


def _count_images(plans: list[Any]) -> str:
    """Count the distinct images and clips of plans, in words."""
    counts = Counter[str]()
    for planned in plans:
        counts["images" if getattr(planned, "frames", 1) == 1 else "clips"] += (
            planned.images
        )
    return " and ".join(f"{count} distinct {kind}" for kind, count in counts.items())


def _run_pairs(
    arguments: Namespace,
    experiments: list[Experiment],
    folder: Path,
    options: JsonObject,
) -> int:
    """Run each experiment with each observer, and print scores, or JSON if asked."""
    events = Events(arguments)
    reports, scores, code = _try_each(
        arguments,
        experiments,
        lambda experiment, observer: _run_pair(
            arguments, experiment, observer, folder, options, events
        ),
        events,
    )
    events.end(code)
    if events.is_on:
        return code
    if reports and arguments.json:
        say_json(reports)
    elif reports:
        say(score_table(scores))
    return code


def _run_pair(
    arguments: Namespace,
    experiment: Experiment,
    observer: Any,
    folder: Path,
    options: JsonObject,
    events: Events,
) -> tuple[JsonObject, Sequence[Score]]:
    """Run one experiment with one observer, write its files, and return report and scores."""
    start = monotonic()
    if events.is_on:
        from psyprobe.reporting.publishing.derive import RecordingStore

        events.store = RecordingStore(options["store"])
    counted = {**options, "store": events.store or options["store"]}
    result = run_experiment(experiment, observer, **counted)
    seconds = monotonic() - start
    scores = score_layers(result)
    observer_options = _options_of(observer, experiment)
    name = result_stem(arguments, experiment, observer.card, observer_options)
    stem = _free_stem(folder / name, result)
    files = write_result(result, scores, stem)
    report = {
        "experiment": experiment.name,
        "observer": observer.card.name,
        **({"label": arguments.label} if arguments.label else {}),
        "store": str(options["store"]),
        "seconds": seconds,
        "revision": _revision_of(result),
        "files": {kind: str(path) for kind, path in files.items()},
        "scores": [score.to_dict() for score in scores],
    }
    if "spent" in result.attrs:
        report["spent"] = json.loads(result.attrs["spent"])
    if not arguments.json:
        paths = ", ".join(map(str, files.values()))
        name = labelled(observer.card.label, arguments.label)
        tell(f"{experiment.name} with {name}: {paths}")
        if "spent" in result.attrs:
            tell(
                f"{describe_result_cost(result.attrs)}; this run of the command took "
                f"{duration(seconds)}"
            )
    return report, scores


def _revision_of(result: xarray.Dataset) -> str:
    """Name the weights or the served model, and the card, behind a result, as a registry does."""
    card = Card.from_dict(json.loads(result.attrs["observer_card"]))
    served = json.loads(result.attrs.get("served", "[]"))
    origins = [{"served": entry} for entry in served]
    return revision(card.to_dict(), card.digest, origins)


def _run_shard(
    arguments: Namespace, experiments: list[Experiment], options: JsonObject
) -> int:
    """Run one share of each experiment's questions into a store."""

    def run_pair(experiment: Experiment, observer: Any) -> Outcome:
        run_shard(experiment, observer, shard=arguments.shard, **options)
        return {"files": {}, "revision": None}, ()

    events = Events(arguments)
    _, _, code = _try_each(arguments, experiments, run_pair, events)
    events.end(code)
    if code:
        return code
    if events.is_on:
        return code
    record = {"shard": arguments.shard, "store": str(options["store"])}
    line = (
        f"share {arguments.shard} is in {options['store']}; merge the stores of all shares with "
        "psyprobe store merge, and run on what it makes"
    )
    show(record, line, arguments)
    return 0


def _try_each(
    arguments: Namespace,
    experiments: list[Experiment],
    action: Callable[[Experiment, Any], Outcome],
    events: Events,
) -> tuple[list[JsonObject], list[Score], int]:
    """Apply a function to each pair of experiment and observer, going on after a failure.

    A failure is printed, and takes the place of report and score. The only pair raises it.

    Returns
    -------
    reports : list of dict
        Of all pairs but the unfinished ones.
    scores : list of Score
        Of these pairs, failures among them.
    code : int
        The exit code of the command.
    """
    reports: list[JsonObject] = []
    scores: list[Score] = []
    failures: list[Score] = []
    unfinished = 0
    pairs = list(_pairs(arguments, experiments))
    events.start(len(pairs))
    for experiment, name, load in pairs:
        names = (experiment.name, name)
        events.begin_pair()
        try:
            report, pair_scores = action(experiment, load())
            scores += pair_scores
            details = report_details(report, pair_scores) if events.is_on else {}
            events.pair("done", names, **details)
        except UnfinishedError as stop:
            # Batches of others can be written meanwhile; a budget is everyone's.
            unfinished += 1
            events.pair("unfinished", names)
            tell(f"psyprobe run: not finished: {stop} ({experiment.name} with {name})")
            continue
        except (Exception, SystemExit) as error:
            if len(pairs) == 1 and not events.is_on:
                raise
            place = f"{experiment.name} with {name}: "
            failure = FailedScore(*names, report_error(error, arguments, place))
            events.fail(names, error, failure.failure)
            failures.append(failure)
            report = {
                "experiment": experiment.name,
                "observer": name,
                "files": {},
                "scores": [],
                "failed": failure.failure,
            }
        reports.append(report)
    code = 3 if unfinished else 0
    if failures:
        code = 2 if len(failures) == len(pairs) else 4
    return reports, scores + failures, code


def write_result(
    result: xarray.Dataset, scores: Sequence[Score], stem: Path
) -> dict[str, Path]:
    """Write a result as NetCDF, its scores as JSON and, if there is one, its figure as PNG.

    Parameters
    ----------
    result : xarray.Dataset
        The result of a run.
    scores : sequence of Score
        Its scores, one a layer.
    stem : Path
        Folder and name of the files, without ending.

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
    files = {
        kind: stem.with_name(f"{stem.name}.{ending}")
        for kind, ending in endings.items()
    }
    write_whole(files["result"], partial(write_netcdf, result))
    write_text(files["score"], json_text([score.to_dict() for score in scores]))
    # A command line has no window to draw in, and some machines have no display at all.
    mpl.use("agg")
    import matplotlib.pyplot as plt

    try:
        figure = plot(result)
    except InputError as error:
        # Answers and scores are not lost because there is nothing to draw, as of a small set or a
        # blind observer.
        tell(f"Note: no figure: {error}")
        return {kind: files[kind] for kind in ("result", "score")}
    save_figure(figure, files["plot"])
    # pyplot keeps figures: those of a long suite would fill the memory.
    plt.close(getattr(figure, "figure", figure))
    return files


def _pairs(
    arguments: Namespace, experiments: list[Experiment]
) -> Iterator[tuple[Experiment, str, Callable[[], Any]]]:
    """Pair every experiment with every observer: its name, and a function that loads it.

    Observers of equal input are loaded once.
    """
    options = settings(arguments.observer_option, "--observer-option")
    for option in ("input", "device", "random_weights"):
        if value := getattr(arguments, option):
            options[option] = value
    if arguments.layers:
        options["layers"] = (
            "all" if arguments.layers == ["all"] else tuple(arguments.layers)
        )
    names: list[str | None] = [*_observer_names(arguments)]
    for name in names or [None]:
        observers: dict[Any, Any] = {}

        def load(
            experiment: Experiment,
            name: str | None = name,
            observers: dict[Any, Any] = observers,
        ) -> Any:
            feeding = experiment.observer
            if feeding not in observers:
                observer = observer_for(experiment, name, **options)
                for wrap in _wrappers(arguments):
                    observer = wrap(observer)
                observers[feeding] = observer
            return observers[feeding]

        for experiment in experiments:
            yield experiment, name or DEFAULT_OBSERVER, partial(load, experiment)


def _wrappers(arguments: Namespace) -> list[Callable[[Any], Any]]:
    """List the functions by which installed packages wrap observers, for the options given."""
    wrappers = [hook(arguments) for hook in extensions_of("run", "wraps")]
    return [wrap for wrap in wrappers if wrap is not None]


def _observer_names(arguments: Namespace) -> list[str]:
    """List the observers to run by name, once each, with those that files list."""
    pages = (
        read_observers(name) if name.endswith(".toml") else [name]
        for name in arguments.observer
    )
    return list(dict.fromkeys(name for page in pages for name in page))


def _options_of(observer: Any, experiment: Experiment) -> list[str]:
    """List the options that make an observer another one, however they were given.

    They may stand behind its name, in a page of observers or on the command line. Those of its
    server, and what every observer of this experiment gets, count for nothing.
    """
    loaded = loaded_as(getattr(observer, "directly", observer))
    options = {} if loaded is None else loaded[1]
    feeding = experiment.observer
    common = {
        "input": feeding.input,
        "published": feeding.as_published,
        "ppd": feeding.metric_ppd,
    }
    return [
        name
        for name, value in options.items()
        if name not in _CIRCUMSTANCES and common.get(name) != value
    ]


def result_stem(
    arguments: Namespace,
    experiment: Experiment,
    card: Any,
    options: Sequence[str] = (),
) -> str:
    """Build the file name (without ending) of a result from names, variants and settings.

    A digest marks observer options, and settings that do not stand in it word for word.
    """
    parts = [experiment.name, card.name]
    if options:
        parts.append(card.digest[:8])
    if arguments.score_only:
        parts.append("score")
    label = [arguments.label] if arguments.label else []
    changes = [*arguments.variants, *arguments.set]
    parts += [*label, *changes]
    stem = "-".join(map(file_stem, parts))
    is_exact = all(file_stem(word) == word and word.count("=") == 1 for word in changes)
    if is_exact and len(stem) <= _LONGEST_STEM:
        return stem
    return f"{stem[: _LONGEST_STEM - 9]}-{digest(parts)[:8]}"


def _free_stem(stem: Path, result: xarray.Dataset) -> Path:
    """Return a file stem, with a digest added if another observer's result has that name."""
    try:
        (existing_result,) = load_results(stem.with_name(f"{stem.name}.nc"))
    except InputError:
        return stem
    observer_digest = _observer_digest(result)
    if _observer_digest(existing_result) == observer_digest:
        return stem
    return stem.with_name(f"{stem.name}-{observer_digest[:8]}")


def _observer_digest(result: xarray.Dataset) -> str:
    """Hash a result's observer: its card with weights, and what its server serves."""
    card = json.loads(result.attrs.get("observer_card", "[]"))
    origins = json.loads(result.attrs.get("served", "[]"))
    models = {origin.get("listed") or origin.get("model", "") for origin in origins}
    return digest([Card.from_dict(card).digest if card else "", sorted(models)])
