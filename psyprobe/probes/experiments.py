"""Run an experiment: load page, observer and probe, and pass them to the loop.

The page names the probe; nothing here depends on which one it is.
"""

from __future__ import annotations

import hashlib
import inspect
import math
import re
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from psyprobe.analysis.score import FailedScore
from psyprobe.analysis.variants import average_variants
from psyprobe.errors import ConditionWarning, InputError, PsyprobeError, check_known
from psyprobe.experiment import Experiment, is_suite, load_experiment, load_suite
from psyprobe.experiment.draws import DRAW
from psyprobe.experiment.experiment import variant_label
from psyprobe.experiment.page import Page
from psyprobe.experiment.page_errors import in_file
from psyprobe.files.json_types import JsonMapping
from psyprobe.files.netcdf import read_netcdf
from psyprobe.files.output import digest
from psyprobe.observers import DEFAULT_OBSERVER, as_observer, load_observer
from psyprobe.observers.chat.prices import Budget, Prices, charge, read_prices
from psyprobe.observers.custom import update_weights
from psyprobe.observers.protocol import (
    STIMULUS_PPD,
    PaidObserver,
    SubmittingObserver,
)
from psyprobe.observers.registry import takes_option
from psyprobe.probes import build_joined, build_result, load_probe, name_run
from psyprobe.running.executors import open_executor
from psyprobe.running.loop import Executor, ask
from psyprobe.running.protocol import Plan, RunRecord, Schedule, labelled, started_label
from psyprobe.running.registry_run import is_registry, open_run, run_folders
from psyprobe.running.store import Store, open_store

if TYPE_CHECKING:
    from distributed import Client
    from xarray import Dataset

    from psyprobe.observers.protocol import Observer

    #: What the arguments of `run` and its relatives may be.
    PageSource: TypeAlias = str | Path | Experiment
    ObserverSource: TypeAlias = str | Observer | None
    StoreSource: TypeAlias = str | Path | Store | None
    Variants: TypeAlias = Mapping[str, Sequence[float]]
    ExecutorSource: TypeAlias = int | str | Executor | Client | None
    PriceSource: TypeAlias = str | Path | Prices | None
    BudgetSource: TypeAlias = float | Budget | None

#: Keys that every page may have, in addition to the sections of its probe.
_COMMON_KEYS = (
    "title",
    "source",
    "probe",
    "display",
    "changed",
    "differences",
    "assumed",
    "people",
    "options",
)
#: Attributes that identify the runs of one observer with one experiment.
_RUN_ATTRIBUTES = ("probe", "experiment", "experiment_digest", "observer_card", "label")
#: Largest batch, in images; more than any memory holds.
_LARGEST_BATCH = 1_000_000


def run(
    experiment: PageSource,
    observer: ObserverSource = None,
    *,
    store: StoreSource = None,
    batch_size: int | None = None,
    score_only: bool = False,
    variants: Variants | None = None,
    executor: ExecutorSource = None,
    progress: bool | None = None,
    prices: PriceSource = None,
    budget: BudgetSource = None,
    label: str = "",
) -> Dataset | list[Dataset]:
    """Run an experiment, or all experiments of a suite, resuming an interrupted run.

    Parameters
    ----------
    experiment : str, Path or Experiment
        A catalogue name, the path of a page, or an experiment that was read before. The page may be
        that of a suite, such as "cai2025".
    observer : str or observer, optional
        A name as `load_observer` takes it, or an object; by default the default observer. An
        observer that answers in words must be named.
    store : str, Path or Store, optional
        The file that keeps answers; questions that it has answers to are not asked again. By
        default nothing is kept.
    batch_size : int, optional
        Images shown at once; by default as many as memory surely holds, from the image size and the
        device. A resumed run keeps the batches with which it began.
    score_only : bool, optional
        Show only what the score needs, without the level grid and frequencies that are for figures.
    variants : mapping of str to sequence of float, optional
        Parameters of the stimulus other than the levels, such as ``{"phase": [0, 90], "seed": [1,
        2, 3]}``, in place of those that the experiment's file names; or numbers of joint draws of
        phase, position and noise, as ``{"draw": range(1, 17)}``; or ``{}`` for a single showing.
        Every combination is shown, and each variant scored.
    executor : int, str or dask.distributed.Client, optional
        A number of worker processes, or the address or a client of a Dask scheduler, whose workers
        put the questions. By default this process does, and asks a server many at once. The result
        is the same.
    progress : bool, optional
        Whether to show a progress bar; by default on a terminal and in a notebook.
    prices : str, Path or Prices, optional
        Prices of paid models, as `psyprobe.observers.chat.prices.read_prices` takes them.
    budget : float or Budget, optional
        The most to spend, in the currency of the prices; several runs may share one `Budget`.
    label : str, optional
        What tells this run from others of the same observer, such as "2026-11-20" for a night: with
        another label all is asked anew, and results stand side by side as "OBSERVER, LABEL".

    Returns
    -------
    xarray.Dataset or list of xarray.Dataset
        Responses with units, the human curve, baselines, and their provenance; dimensions are named
        after the levels. With variants, the mean over them, and the responses to each variant as
        ``response_by_variant`` and the like. For an experiment in words, one row for each question.
        For a suite, one result for each experiment.

    Raises
    ------
    InputError
        Something in the experiment cannot be shown to this observer.
    StoreError
        The store cannot be used.
    WeightsError
        The observer's weights are not on this machine.
    UnfinishedError
        The budget is spent; answers so far are in the store, and the same call resumes the run.

    Notes
    -----
    A call asks one observer. For several, call it in a loop with one store, and catch the
    `psyprobe.errors.PsyprobeError` of an observer that fails: `load_results` of the store returns
    the results of all others.
    """
    pages = (
        (experiment,) if isinstance(experiment, Experiment) else load_suite(experiment)
    )
    total = _total_budget(budget, prices)
    with executor_context(executor) as workers:
        results = [
            run_experiment(
                page,
                observer,
                store=store,
                batch_size=batch_size,
                score_only=score_only,
                executor=workers,
                progress=progress,
                prices=prices,
                budget=total,
                label=label,
            )
            for page in vary(pages, variants)
        ]
    suite = not isinstance(experiment, Experiment) and is_suite(experiment)
    return results if suite else results[0]


def run_experiment(
    experiment: Experiment,
    observer: ObserverSource = None,
    *,
    store: StoreSource = None,
    batch_size: int | None = None,
    score_only: bool = False,
    executor: ExecutorSource = None,
    progress: bool | None = None,
    prices: PriceSource = None,
    budget: BudgetSource = None,
    label: str = "",
) -> Dataset:
    """Run one experiment that is loaded already."""
    page = _prepare(experiment, score_only)
    participant = observer_for(page, observer)
    total = _total_budget(budget, prices)
    if total is not None and executor is not None:
        raise InputError(
            "a budget is kept by one process, which asks a server many questions at once: leave "
            "workers out"
        )
    _check_label(label, participant)
    results = []
    with (
        open_store(store, label=label) as opened,
        executor_context(_choose_executor(participant, executor)) as workers,
    ):
        for variant, schedule in _schedules(
            page, participant, batch_size, prices, total
        ):
            record = _run_schedule(opened, schedule, variant, workers, progress)
            results.append(build_result(record, opened))
    if not page.variants or page.variant:
        return results[0]
    labels = [variant_label(variant.variant) for variant in page.expanded()]
    return average_variants(results, page.variants, labels)


def _total_budget(budget: BudgetSource, prices: PriceSource) -> Budget | None:
    """Convert an amount of money to a budget in the price list's currency."""
    if budget is None or isinstance(budget, Budget):
        return budget
    return Budget(budget, _load_prices(prices).currency)


def vary(
    experiments: Sequence[Experiment], variants: Variants | None
) -> list[Experiment]:
    """Add variants to each experiment, of those parameters that its stimulus has.

    Noise has a seed but no phase; a grating has a phase but no seed. None leaves those that each
    experiment has.

    Raises
    ------
    InputError
        The probe of an experiment takes no variants.
    UnknownNameError
        No stimulus has a parameter of this name.
    """
    if variants is None:
        return list(experiments)
    for experiment in experiments:
        sections = load_probe(experiment.probe, allow_files=True).SECTIONS
        if variants and "variants" not in sections:
            raise InputError(
                f"probe {experiment.probe!r} of {experiment.name} takes no variants; leave them out"
            )
    if not variants:
        return [
            experiment.with_variants({}) if experiment.variants else experiment
            for experiment in experiments
        ]
    parameters = [[*experiment.free_parameters(), DRAW] for experiment in experiments]
    check_known("parameter to vary", variants, set().union(*parameters))
    return [
        experiment.with_variants(
            {name: values for name, values in variants.items() if name in free}
        )
        for experiment, free in zip(experiments, parameters, strict=True)
    ]


def run_shard(
    experiment: PageSource,
    observer: ObserverSource = None,
    *,
    shard: str,
    store: str | Path | Store,
    batch_size: int | None = None,
    score_only: bool = False,
    variants: Variants | None = None,
    executor: ExecutorSource = None,
    progress: bool | None = None,
    prices: PriceSource = None,
    label: str = "",
) -> None:
    """Ask one share of an experiment's questions, into a store of its own.

    All shares together ask each question once, wherever and whenever they run. A share consists of
    whole batches of pairs, of all questions about some images of a benchmark, or of all questions
    with some prompts of an experiment in words. Once the stores are merged (``psyprobe store
    merge``), `run` asks only what a judge is asked, if anything, and returns the result.

    Parameters
    ----------
    shard : str
        Number of the share and of all shares: "2/3" is the second of three.
    experiment, observer, store, batch_size, score_only, variants, executor, progress, prices, label
        As for `run`.

    Raises
    ------
    StoreError
        The store has begun the run in other batches.
    """
    holds = _share_test(shard)
    (page,) = vary([_prepare(experiment, score_only)], variants)
    participant = observer_for(page, observer)
    _check_label(label, participant)
    with (
        open_store(store, label=label) as opened,
        executor_context(_choose_executor(participant, executor)) as workers,
    ):
        for variant, schedule in _schedules(page, participant, batch_size, prices):
            schedule.narrow(holds)
            _run_schedule(opened, schedule, variant, workers, progress, part=True)


def _share_test(text: str) -> Callable[[str], bool]:
    """Build a function that tells whether a digest belongs to a share such as "2/3"."""
    match = re.fullmatch(r"([0-9]{1,9})/([0-9]{1,9})", text)
    if match is None:
        raise InputError(
            f"shard is {text!r:.80}; give which of how many, such as 2/3 for the second of three"
        )
    number, count = map(int, match.groups())
    if not 1 <= number <= count:
        raise InputError(f"shard is {text}; give a number from 1 to {count}")
    return lambda name: (
        int(hashlib.sha256(name.encode()).hexdigest(), 16) % count == number - 1
    )


def _run_schedule(
    store: Store,
    schedule: Schedule,
    experiment: Experiment,
    workers: Any,
    progress: bool | None,
    *,
    part: bool = False,
) -> RunRecord:
    """Ask the questions of a schedule, or a part of them, and write answers to the store."""
    for remark in schedule.remarks:
        warnings.warn(f"{experiment.name}: {remark}", ConditionWarning, stacklevel=3)
    observer = next(iter(schedule.observers.values()))
    return ask(
        store,
        load_probe(experiment.probe),
        schedule,
        description=labelled(f"{experiment.name}: {observer.card.name}", store.label),
        progress=progress,
        executor=workers,
        part=part,
    )


def plan(
    experiment: PageSource,
    observer: ObserverSource = None,
    *,
    store: StoreSource = None,
    batch_size: int | None = None,
    score_only: bool = False,
    variants: Variants | None = None,
    prices: PriceSource = None,
    timed: bool = False,
    label: str = "",
) -> Plan:
    """Plan what `run` with the same arguments would show and ask, and what that costs.

    Nothing is asked but for `timed`, and a store that does not exist yet is not created. The plan
    prints as a paragraph.

    Parameters
    ----------
    experiment, observer, store, batch_size, score_only, variants, prices, label
        As for `run`.
    timed : bool, optional
        Show a network two batches of grey images, to time it; and put one question to a server
        without answers in the store, to count tokens and time.

    Examples
    --------
    >>> once, drawn = plan("area", "pixels", variants={}), plan("area", "pixels")
    >>> once.images, drawn.images, drawn.answered
    (601, 2008, 0)
    """
    (page,) = vary([_prepare(experiment, score_only)], variants)
    participant = observer_for(page, observer)
    if isinstance(store, str | Path) and not Path(store).exists():
        store = None
    with open_store(store, label=label) as opened:
        plans = [
            schedule.cost(opened, timed=timed)
            for _, schedule in _schedules(page, participant, batch_size, prices)
        ]
    return plans[0] if len(plans) == 1 else plans[0].with_all(plans[1:])


def load_results(path: str | Path | Store) -> list[Dataset]:
    """Load the results of all finished runs of a store, or that of a result file.

    A run of the store that cannot be read is left out, with a warning.

    Parameters
    ----------
    path : str, Path or Store
        A store, a NetCDF file (``.nc``) that `psyprobe run` wrote, or the folder of a registry.

    Returns
    -------
    list of xarray.Dataset
        Results in the order in which the runs were begun; the sessions of one person with one
        experiment are one result.

    Raises
    ------
    InputError
        The file is no result, or the store has no finished run.
    StoreError
        The store cannot be read.
    """
    results, failures = load_runs(path)
    for failure in failures:
        warnings.warn(
            f"{failure.experiment} with {failure.observer} is left out: {failure.failure}",
            ConditionWarning,
            stacklevel=2,
        )
    return results


def load_runs(path: str | Path | Store) -> tuple[list[Dataset], list[FailedScore]]:
    """Load the results of a store or file, and list the runs that cannot be read."""
    if not isinstance(path, Store) and Path(path).suffix == ".nc":
        return [_read_result(Path(path))], []
    if is_registry(path):
        return _load_registry(path)
    with open_store(path, create=False) as store:
        finished, failures = finished_results(store, store.iterate_runs())
        if not finished:
            name = path.name if isinstance(path, Store) else path
            raise InputError(
                f"{name} has no finished run ({len(store.run_keys())} unfinished); run the "
                "experiment again to go on with it"
            )
    return merge_results(finished), failures


def _load_registry(
    registry: str | Path | Store,
) -> tuple[list[Dataset], list[FailedScore]]:
    """Load the results of a registry's runs, each by itself, and list those not readable."""
    assert not isinstance(registry, Store)
    runs: list[tuple[str | None, list[Dataset]]] = []
    failures: list[FailedScore] = []
    for folder in run_folders(registry):
        try:
            with open_run(folder) as store:
                records = store.runs()
                run_results = finished_results(store, records)[0]
                if not run_results:
                    raise InputError("its run.json says no end; publish it again")
                runs.append((records[0].started, run_results))
        except PsyprobeError as problem:
            observer, _, experiment, _ = folder.parts[-4:]
            failures.append(FailedScore(experiment, observer, str(problem)))
    if not runs:
        reasons = "".join(f": {failure.failure}" for failure in failures[:1])
        raise InputError(f"{registry} has no run that can be read{reasons}")
    counts = Counter(
        _night_name(result) for _, results in runs for result in results[:1]
    )
    # Runs without a label that share a name are told apart by when they began.
    dated = [
        name_run(result, started_label(started), started)
        if counts[_night_name(result)] > 1
        else result
        for started, results in runs
        for result in results
    ]
    return merge_results(dated), failures


def _night_name(result: Dataset) -> tuple[str, str]:
    """Name the experiment and the observer of a result, with its label."""
    return str(result.attrs["experiment"]), str(result.attrs["observer"])


def merge_results(results: Sequence[Dataset]) -> list[Dataset]:
    """Merge results that belong together, such as the sessions of a person.

    A result that another one includes is dropped: a run again, or one with `score_only` before the
    whole.

    Parameters
    ----------
    results : sequence of xarray.Dataset
        Results of any runs, from any files.
    """
    distinct: list[Dataset] = []
    for result in results:
        if not any(_includes(other, result) for other in distinct):
            distinct = [other for other in distinct if not _includes(result, other)]
            distinct.append(result)
    groups: defaultdict[tuple[str, Any], list[Dataset]] = defaultdict(list)
    for index, result in enumerate(distinct):
        probe_name = str(result.attrs["probe"])
        part_of = getattr(load_probe(probe_name), "part_of", None)
        name = None if part_of is None else part_of(result)
        # Nights of one person are no sessions of one night.
        part = (name, result.attrs.get("label"))
        key = (probe_name, index if name is None else part)
        groups[key].append(result)
    merged = []
    for (probe_name, _), members in groups.items():
        probe: Any = load_probe(probe_name)
        merged.append(members[0] if len(members) == 1 else probe.merge(members))
    return merged


def _includes(result: Dataset, part: Dataset) -> bool:
    """Tell whether a result includes all of another one of the same run, but for rounding."""
    return all(
        result.attrs.get(name) == part.attrs.get(name) for name in _RUN_ATTRIBUTES
    ) and all(
        name in result and _are_equal(result[name].values, values.values)
        for name, values in part.variables.items()
    )


def _are_equal(values: Any, other_values: Any) -> bool:
    """Tell whether two arrays are equal, floats within rounding."""
    if not values.dtype.kind == other_values.dtype.kind == "f":
        return np.array_equal(values, other_values)
    return values.shape == other_values.shape and np.allclose(
        values, other_values, rtol=1e-9, atol=1e-12, equal_nan=True
    )


def observer_for(
    experiment: Experiment, observer: ObserverSource = None, /, **options: Any
) -> Any:
    """Load an observer by name with the input that an experiment demands.

    Parameters
    ----------
    experiment : Experiment
        Its page may ask for raw input, or state the pixels per degree that a metric is told.
    observer : str or observer, optional
        A name as `load_observer` takes it, or an observer, which is returned as it is, with the
        weights of a module hashed again; by default the default observer.
    **options
        Options of `load_observer`; an ``input`` or ``ppd`` here overrides the experiment's.
    """
    if observer is not None and not isinstance(observer, str):
        update_weights(as_observer(observer))
        return observer
    abilities = load_probe(experiment.probe).ABILITIES
    if observer is None and "answer" in abilities and "features" not in abilities:
        raise InputError(
            f"{experiment.name} asks in words; name an observer that answers, such as "
            "simulated:watson-malo or openai:MODEL"
        )
    feeding = experiment.observer
    options = {"input": feeding.input, **options}
    name = DEFAULT_OBSERVER if observer is None else observer
    if feeding.as_published and takes_option(name, "published"):
        options.setdefault("published", True)
    loaded = load_observer(name, **options)
    if feeding.metric_ppd is None or loaded.card.options.get("ppd") != STIMULUS_PPD:
        return loaded
    return load_observer(name, **options, ppd=feeding.metric_ppd)


def check_experiment(experiment: Experiment) -> Experiment:
    """Return an experiment, refusing one with settings that its probe does not read.

    Raises
    ------
    UnknownNameError
        There is no such probe, or a table or key that it does not know.
    """
    with in_file(experiment.name):
        allowed_names = (
            *_COMMON_KEYS,
            *load_probe(experiment.probe, allow_files=True).SECTIONS,
        )
        keys = [key for key in Page.model_fields if key in experiment.model_fields_set]
        check_known(f"key for probe {experiment.probe!r}", keys, allowed_names)
    return experiment


def executor_context(executor: Any) -> AbstractContextManager[Executor | None]:
    """Open what computes (a pool, a cluster), unless it is open; None is this process."""
    return nullcontext() if executor is None else open_executor(executor)


def _prepare(experiment: PageSource, score_only: bool) -> Experiment:
    """Load and check an experiment, restricted to the conditions that a score needs if asked."""
    if not isinstance(experiment, Experiment):
        experiment = load_experiment(experiment)
    page = check_experiment(experiment)
    if not score_only:
        return page
    if "score" not in load_probe(page.probe).SECTIONS:
        raise InputError(
            f"probe {page.probe!r} of {page.name} takes no score_only; leave it out"
        )
    return page.model_copy(update={"score_only": True})


def _schedules(
    page: Experiment,
    observer: Any,
    batch_size: int | None,
    prices: PriceSource,
    budget: Budget | None = None,
) -> Iterator[tuple[Experiment, Schedule]]:
    """Plan each variant of an experiment, with prices and budget of paid observers."""
    for variant in page.expanded():
        schedule = _plan_schedule(variant, observer, batch_size)
        paid_observers = [
            asked
            for asked in schedule.observers.values()
            if isinstance(asked, PaidObserver)
        ]
        if paid_observers or prices is not None:
            charge(paid_observers, _load_prices(prices), budget)
        yield variant, schedule


def _plan_schedule(
    experiment: Experiment, observer: Any, batch_size: int | None
) -> Schedule:
    """Let the probe plan an experiment's questions, refusing an observer that cannot answer."""
    probe = load_probe(experiment.probe)
    if not hasattr(probe, "task"):
        raise InputError(
            f"probe {experiment.probe!r} does not say what it asks; give it a function 'task' that "
            "returns a psyprobe.running.task.Task"
        )
    if (
        batch_size is not None
        and "batch_size" not in inspect.signature(probe.plan).parameters
    ):
        raise InputError(
            f"probe {experiment.probe!r} of {experiment.name} takes no batch_size; leave it out"
        )
    if observer.card.ability not in probe.ABILITIES:
        raise InputError(
            f"probe {experiment.probe!r} needs an observer with the ability "
            f"{' or '.join(map(repr, probe.ABILITIES))}, and {observer.card.name} has "
            f"{observer.card.ability!r}; choose another observer"
        )
    if batch_size is not None and batch_size > _LARGEST_BATCH:
        raise InputError(
            f"batch_size is {batch_size}; give at most {_LARGEST_BATCH:,}, or leave it out"
        )
    options = {} if batch_size is None else {"batch_size": batch_size}
    with in_file(experiment.name):
        return probe.plan(experiment, observer, **options)


def _check_label(label: str, observer: Any) -> None:
    """Refuse a label where replies lie in files that know none."""
    if label and isinstance(observer, SubmittingObserver):
        raise InputError(
            f"{observer.card.name} keeps replies in files without labels: run each night with a "
            "folder and a store of its own, then psyprobe store merge --keep both"
        )


def _choose_executor(observer: Any, executor: Any) -> Any:
    """Choose what asks the questions: the executor, or an observer that uses files."""
    if not isinstance(observer, SubmittingObserver):
        return executor
    if executor is not None:
        raise InputError(
            f"{observer.card.name} is asked in batches, by this process alone; leave workers out"
        )
    return observer


def _load_prices(prices: PriceSource) -> Prices:
    """Read a price list, unless it is one already."""
    return prices if isinstance(prices, Prices) else read_prices(prices)


def finished_results(
    store: Store, records: Iterable[RunRecord]
) -> tuple[list[Dataset], list[FailedScore]]:
    """Build the results of finished runs, averaging the variants of one experiment.

    A run that cannot be read takes no other with it, unless there is no other. Records are read one
    at a time, for the record of a large run takes more memory than its result.
    """
    names: dict[str, tuple[str, str]] = {}
    outcomes: dict[str, Dataset | PsyprobeError | None] = {}
    variants: dict[str, _Variants] = {}
    for record in records:
        key = _averaged_key(record)
        observer = labelled(record.observer, record.label)
        names.setdefault(key, (record.experiment, observer))
        outcomes.setdefault(key, None)
        if record.given_up:
            outcomes[key] = PsyprobeError(record.given_up)
        if record.finished is None or isinstance(outcomes[key], PsyprobeError):
            continue
        try:
            if "variant" in record.layout:
                group = variants.setdefault(key, _Variants(record.layout["variants"]))
                # What is averaged is joined by measure, and split when it is.
                group.add(record.layout, build_joined(record, store))
            else:
                outcomes[key] = build_result(record, store)
        except PsyprobeError as problem:
            outcomes[key] = problem
    for key in [key for key in variants if outcomes[key] is None]:
        outcomes[key] = variants.pop(key).average()
    results: list[Dataset] = []
    problems: list[PsyprobeError] = []
    failures: list[FailedScore] = []
    for key, outcome in outcomes.items():
        if isinstance(outcome, PsyprobeError):
            problems.append(outcome)
            failures.append(FailedScore(*names[key], str(outcome)))
        elif outcome is not None:
            results.append(outcome)
    if problems and not results:
        raise problems[0]
    return results, failures


def _averaged_key(record: RunRecord) -> str:
    """Name what a run's result is averaged over: all variants of its experiment, or the run."""
    layout = record.layout
    if "variant" not in layout:
        return record.key
    observer = (record.observer_digest, record.label)
    shared = [layout["variants"], layout.get("display")]
    return digest([record.experiment_toml, observer, shared])


class _Variants:
    """The results of one observer with the variants of an experiment, by their labels.

    Of two runs of one variant, the whole and its score alone, the one that showed more counts.
    """

    def __init__(self, values: Mapping[str, Sequence[float]]) -> None:
        self._values = values
        self._results: dict[str, Dataset] = {}
        self._pair_counts: dict[str, int] = {}

    def add(self, layout: JsonMapping, result: Dataset) -> None:
        """Add the result of a run by its layout."""
        label = variant_label(layout["variant"])
        pair_count = len(layout["pairs"])
        if pair_count > self._pair_counts.get(label, -1):
            self._pair_counts[label] = pair_count
            self._results[label] = result

    def average(self) -> Dataset | None:
        """Average the results; None where one is not finished yet."""
        if len(self._results) < math.prod(map(len, self._values.values())):
            return None
        results = [*self._results.values()]
        return average_variants(results, self._values, [*self._results])


def _read_result(path: Path) -> Dataset:
    """Read a result from a NetCDF file, refusing one that psyprobe did not write."""
    try:
        result = read_netcdf(path)
    except FileNotFoundError:
        raise InputError(f"there is no result file {str(path)!r}") from None
    except (TypeError, ValueError, KeyError, IndexError) as error:
        raise InputError(f"{path} is no result that psyprobe wrote: {error}") from None
    if not {"experiment", "probe"} <= set(result.attrs):
        raise InputError(
            f"{path} is no result that psyprobe wrote: it has no responses of an experiment"
        )
    return result
