"""Conduct an experiment: bring page, observer and probe together, and hand them to the loop.

Which probe that is stands on the page; nothing here knows one from another.
"""

from __future__ import annotations

import hashlib
import inspect
import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from psyprobe.errors import ConditionWarning, InputError, unknown_name
from psyprobe.experiment import Experiment, is_suite, read_experiment, read_suite
from psyprobe.experiment.experiment import variant_label
from psyprobe.experiment.page import Page
from psyprobe.experiment.page_errors import in_file
from psyprobe.files.output import digest
from psyprobe.observers.chat.prices import Budget, Prices, charge, read_prices
from psyprobe.observers.protocol import PaidObserver, SubmittingObserver
from psyprobe.probes import build_result, load_probe
from psyprobe.running.loop import Executor, ask
from psyprobe.running.protocol import Plan, RunRecord, Schedule
from psyprobe.running.store import Store, open_store

if TYPE_CHECKING:
    import xarray

    from psyprobe.observers.protocol import Observer

#: What every page has, whatever its probe reads besides.
_OF_EVERY_PAGE = (
    "title",
    "source",
    "probe",
    "display",
    "changed",
    "differences",
    "assumed",
    "options",
)
#: Attributes that tell one run of an observer with an experiment from another.
_OF_A_RUN = ("probe", "experiment", "experiment_digest", "observer_card")
#: Images at once; more than any memory holds.
_LARGEST_BATCH = 1_000_000


def run(
    experiment: str | Path | Experiment,
    observer: str | Observer | None = None,
    *,
    store: str | Path | Store | None = None,
    batch_size: int | None = None,
    score_only: bool = False,
    variants: Mapping[str, Sequence[float]] | None = None,
    executor: Any = None,
    progress: bool | None = None,
    prices: str | Path | Prices | None = None,
    budget: float | Budget | None = None,
) -> xarray.Dataset | list[xarray.Dataset]:
    """Run an experiment, or all experiments of a suite, or what is left of them.

    Parameters
    ----------
    experiment : str, Path or Experiment
        A catalogue name, the path of a page, or an experiment that was read before. The page may be
        that of a suite, as "cai2025".
    observer : str or observer, optional
        A name as `load_observer` takes it, or an object; without it the default observer. One that
        answers in words must be named.
    store : str, Path or Store, optional
        The file that keeps answers; what it holds is not asked again. Without it nothing is kept.
    batch_size : int, optional
        Images shown at once; by default as many as memory surely holds, from the image size and the
        device. A run that goes on keeps the batches with which it began.
    score_only : bool, optional
        Show only what the score needs, without the level grid and frequencies that are for figures.
    variants : mapping of str to sequence of float, optional
        Parameters of the stimulus besides the levels, such as ``{"phase": [0, 90], "seed": [1, 2,
        3]}``: every combination is shown and responses are averaged; instead of those that the
        experiment's file names.
    executor : int, str or dask.distributed.Client, optional
        Who puts the questions, which changes no byte of the result: so many worker processes, or
        the workers of a Dask scheduler, by its address or by a client of it. By default this
        process, which asks a server many at once.
    progress : bool, optional
        Whether to show a progress bar; by default on a terminal and in a notebook.
    prices : str, Path or Prices, optional
        What paid models cost, as `psyprobe.observers.chat.prices.read_prices` takes it.
    budget : float or Budget, optional
        What may be spent, in the currency of the prices; one `Budget` may be shared by several runs.

    Returns
    -------
    xarray.Dataset or list of xarray.Dataset
        Of a suite one for each experiment. Responses with units, the human curve, baselines, and where they come from; dimensions are
        named after the levels. With variants their mean, and those of each variant as
        ``response_by_variant`` and the like. Of an experiment that asks in words, one row a
        question.

    Raises
    ------
    InputError
        Something in the experiment cannot be shown to this observer.
    StoreError
        The store cannot be used.
    WeightsError
        The observer's weights are not on this machine.
    UnfinishedError
        The budget is spent; what is answered is in the store, and the same call goes on.
    """
    pages = (experiment,) if isinstance(experiment, Experiment) else read_suite(experiment)
    total = _total_budget(budget, prices)
    with opened_executor(executor) as workers:
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
            )
            for page in vary(pages, variants or {})
        ]
    suite = not isinstance(experiment, Experiment) and is_suite(experiment)
    return results if suite else results[0]


def run_experiment(
    experiment: Experiment,
    observer: str | Observer | None = None,
    *,
    store: str | Path | Store | None = None,
    batch_size: int | None = None,
    score_only: bool = False,
    executor: Any = None,
    progress: bool | None = None,
    prices: str | Path | Prices | None = None,
    budget: float | Budget | None = None,
) -> xarray.Dataset:
    """Run one experiment that was read before; parameters, result and errors as of `run`."""
    page = _prepared(experiment, score_only, None)
    participant = observer_for(page, observer)
    total = _total_budget(budget, prices)
    if total is not None and executor is not None:
        raise InputError(
            "a budget is kept by one process, which asks a server many questions at once: leave "
            "workers out"
        )
    variants = page.expanded()
    results = []
    with open_store(store) as opened, opened_executor(_putting(participant, executor)) as workers:
        for variant in variants:
            schedule = _schedule(variant, participant, batch_size)
            _charge(schedule, prices, total)
            record = _ask(opened, schedule, variant, workers, progress)
            results.append(build_result(record, opened))
    if not page.variants or page.variant:
        return results[0]
    return _averaged(results, page.variants, [variant.variant for variant in variants])


def _total_budget(
    budget: float | Budget | None, prices: str | Path | Prices | None
) -> Budget | None:
    if budget is None or isinstance(budget, Budget):
        return budget
    return Budget(budget, _known(prices).currency)


def vary(
    experiments: Sequence[Experiment], variants: Mapping[str, Sequence[float]]
) -> list[Experiment]:
    """Vary in each experiment the parameters that its stimulus has.

    Noise has a seed and no phase, a grating the other way round.

    Raises
    ------
    InputError
        The probe of an experiment takes no variants.
    UnknownNameError
        No stimulus has a parameter of this name.
    """
    if not variants:
        return list(experiments)
    for experiment in experiments:
        if "variants" not in load_probe(experiment.probe, own_files=True).SECTIONS:
            raise InputError(
                f"probe {experiment.probe!r} of {experiment.name} takes no variants; leave them out"
            )
    parameters = [experiment.free_parameters() for experiment in experiments]
    for name in variants:
        if not any(name in free for free in parameters):
            raise unknown_name("parameter to vary", name, sorted(set().union(*parameters)))
    return [
        experiment.with_variants(
            {name: values for name, values in variants.items() if name in free}
        )
        for experiment, free in zip(experiments, parameters, strict=True)
    ]


def run_shard(
    experiment: str | Path | Experiment,
    observer: str | Observer | None = None,
    *,
    shard: str,
    store: str | Path | Store,
    batch_size: int | None = None,
    score_only: bool = False,
    variants: Mapping[str, Sequence[float]] | None = None,
    executor: Any = None,
    progress: bool | None = None,
    prices: str | Path | Prices | None = None,
) -> None:
    """Ask one share of what `run` with the same arguments asks, into a store of its own.

    All shares together ask each question once, wherever and whenever they run: of pairs a batch
    belongs to one share, of a benchmark the questions about one image, of an experiment in words
    all of one prompt. Once the stores are merged (``psyprobe store merge``), `run` asks what a
    judge is asked, or nothing, and gives the result.

    Parameters
    ----------
    shard : str
        "2/3" is the second of three shares.
    experiment, observer, store, batch_size, score_only, variants, executor, progress, prices
        As for `run`.

    Raises
    ------
    StoreError
        The store has begun the run in other batches.
    """
    holds = _share(shard)
    read = _prepared(experiment, score_only, variants)
    who = observer_for(read, observer)
    with open_store(store) as opened, opened_executor(_putting(who, executor)) as workers:
        for one in read.expanded():
            schedule = _schedule(one, who, batch_size)
            _charge(schedule, prices, None)
            schedule.narrow(holds)
            _ask(opened, schedule, one, workers, progress, part=True)


def _share(text: str) -> Callable[[str], bool]:
    """Whether a digest belongs to a share, "2/3" being the second of three."""
    number, _, count = text.partition("/")
    if not (
        number.isascii()
        and number.isdigit()
        and count.isascii()
        and count.isdigit()
        and len(text) < 20
    ):
        raise InputError(
            f"shard is {text!r:.80}; give which of how many, such as 2/3 for the second of three"
        )
    if not 1 <= int(number) <= int(count):
        raise InputError(f"shard is {text}; give a number from 1 to {count}")
    return lambda name: (
        int(hashlib.sha256(name.encode()).hexdigest(), 16) % int(count) == int(number) - 1
    )


def _ask(
    store: Store,
    schedule: Schedule,
    experiment: Experiment,
    workers: Any,
    progress: bool | None,
    *,
    part: bool = False,
) -> RunRecord:
    for remark in schedule.remarks:
        warnings.warn(f"{experiment.name}: {remark}", ConditionWarning, stacklevel=3)
    label = f"{experiment.name}: {next(iter(schedule.observers.values())).card.name}"
    probe = load_probe(experiment.probe)
    return ask(store, probe, schedule, label=label, progress=progress, executor=workers, part=part)


def plan(
    experiment: str | Path | Experiment,
    observer: str | Observer | None = None,
    *,
    store: str | Path | Store | None = None,
    batch_size: int | None = None,
    score_only: bool = False,
    variants: Mapping[str, Sequence[float]] | None = None,
    prices: str | Path | Prices | None = None,
    timed: bool = False,
) -> Plan:
    """What `run` with the same arguments would show and ask, and what it takes; nothing is asked.

    A store that does not exist yet is not made. With ``timed``, a network is given two batches of
    grey images to see how long it takes, and a server the first question. The plan prints as a
    paragraph.

    Parameters
    ----------
    experiment, observer, store, batch_size, score_only, variants, prices
        As for `run`.
    timed : bool, optional
        Give a network two batches of grey images, to see how long it takes; and put one question to
        a server whose answers the store does not hold, to count tokens and time.

    Examples
    --------
    >>> told = plan("area", "pixels")
    >>> told.images, told.answered
    (601, 0)
    """
    read = _prepared(experiment, score_only, variants)
    who = observer_for(read, observer)
    if isinstance(store, str | Path) and not Path(store).exists():
        store = None
    plans = []
    with open_store(store) as opened:
        for one in read.expanded():
            schedule = _schedule(one, who, batch_size)
            _charge(schedule, prices, None)
            plans.append(schedule.cost(opened, timed=timed))
    return plans[0] if len(plans) == 1 else plans[0].with_all(plans[1:])


def load_results(path: str | Path | Store) -> list[xarray.Dataset]:
    """The results of all finished runs of a store, or the one of a result file, without any
    observer.

    Parameters
    ----------
    path : str, Path or Store
        A store, or a NetCDF file (``.nc``) that `psyprobe run` wrote.

    Returns
    -------
    list of xarray.Dataset
        In the order in which the runs were begun; the sessions of one person with one experiment
        are one result.

    Raises
    ------
    InputError
        The file is no result, or the store has no finished run.
    StoreError
        The store cannot be read.
    """
    if not isinstance(path, Store) and Path(path).suffix == ".nc":
        return [_read_result(Path(path))]
    with open_store(path, create=False) as store:
        records = store.runs()
        finished = _whole_results(store, records)
    if not finished:
        raise InputError(
            f"{path} has no finished run ({len(records)} unfinished); run the experiment again "
            "to go on with it"
        )
    return together(finished)


def together(results: Sequence[xarray.Dataset]) -> list[xarray.Dataset]:
    """Results in which those are one that their probe takes for one, as the sessions of a person.

    What another result holds as well is left out: a run again, or one with `score_only` before the
    whole.

    Parameters
    ----------
    results : sequence of xarray.Dataset
        Of any runs, of any files.
    """
    groups: dict[Any, list[xarray.Dataset]] = {}
    for place, one in enumerate(_told_once(results)):
        part_of = getattr(load_probe(str(one.attrs["probe"])), "part_of", None)
        name = None if part_of is None else part_of(one)
        groups.setdefault(place if name is None else (one.attrs["probe"], name), []).append(one)
    return [members[0] if len(members) == 1 else _merged(members) for members in groups.values()]


def _told_once(results: Sequence[xarray.Dataset]) -> list[xarray.Dataset]:
    kept: list[xarray.Dataset] = []
    for result in results:
        if not any(_holds(other, result) for other in kept):
            kept = [*(other for other in kept if not _holds(result, other)), result]
    return kept


def _holds(result: xarray.Dataset, part: xarray.Dataset) -> bool:
    """Whether a result tells all that another one of the same run tells, but for rounding."""
    return all(result.attrs.get(name) == part.attrs.get(name) for name in _OF_A_RUN) and all(
        name in result and _alike(result[name].values, values.values)
        for name, values in part.variables.items()
    )


def _alike(found: Any, other: Any) -> bool:
    if found.shape != other.shape:
        return False
    if found.dtype.kind == "f" and other.dtype.kind == "f":
        return bool(np.allclose(found, other, rtol=1e-9, atol=1e-12, equal_nan=True))
    return bool(np.all(found == other))


def _merged(members: list[xarray.Dataset]) -> xarray.Dataset:
    """What the probe makes of results that are parts of one."""
    probe: Any = load_probe(str(members[0].attrs["probe"]))
    merged: xarray.Dataset = probe.merge(members)
    return merged


def observer_for(
    experiment: Experiment, observer: str | Observer | None = None, /, **options: Any
) -> Any:
    """The observer of a name, fed as an experiment wants it; an observer itself stays as it is.

    Parameters
    ----------
    experiment : Experiment
        Its page may ask for raw input, or state the pixels per degree that a metric is told.
    observer : str or observer, optional
        As `load_observer` takes it; without it the default observer.
    **options
        Of `load_observer`; an ``input`` or ``ppd`` given here overrides the experiment's.
    """
    from psyprobe.observers import DEFAULT_OBSERVER, as_observer, load_observer
    from psyprobe.observers.protocol import STIMULUS_PPD
    from psyprobe.observers.registry import takes_option

    if observer is not None and not isinstance(observer, str):
        return as_observer(observer)
    abilities = load_probe(experiment.probe).ABILITIES
    if observer is None and "answer" in abilities and "features" not in abilities:
        raise InputError(
            f"{experiment.name} asks in words; name an observer that answers, such as "
            "simulated:watson-malo or "
            "openai:MODEL"
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


def checked(experiment: Experiment) -> Experiment:
    """The experiment itself, whose page holds nothing that its probe does not read.

    Raises
    ------
    UnknownNameError
        There is no such probe, or a table or key that it does not know.
    """
    with in_file(experiment.name):
        known = (*_OF_EVERY_PAGE, *load_probe(experiment.probe, own_files=True).SECTIONS)
        for name in Page.model_fields:
            if name in experiment.model_fields_set and name not in known:
                raise unknown_name(f"key for probe {experiment.probe!r}", name, known)
    return experiment


def opened_executor(executor: Any) -> AbstractContextManager[Executor | None]:
    """Who puts the questions, as `run` takes it; None is this process, and what is open already
    stays so.
    """
    if executor is None:
        return nullcontext()
    from psyprobe.running.executors import open_executor

    return open_executor(executor)


def _prepared(
    experiment: str | Path | Experiment,
    score_only: bool,
    variants: Mapping[str, Sequence[float]] | None,
) -> Experiment:
    read = checked(
        experiment if isinstance(experiment, Experiment) else read_experiment(experiment)
    )
    takes = load_probe(read.probe).SECTIONS
    for name, given, section in (
        ("score_only", score_only, "score"),
        ("variants", variants, "variants"),
    ):
        if given and section not in takes:
            raise InputError(f"probe {read.probe!r} of {read.name} takes no {name}; leave it out")
    if score_only:
        read = read.model_copy(update={"score_only": True})
    if variants is not None:
        read = read.with_variants(variants)
    return read


def _schedule(experiment: Experiment, observer: Any, batch_size: int | None) -> Schedule:
    probe = load_probe(experiment.probe)
    if not hasattr(probe, "task"):
        raise InputError(
            f"probe {experiment.probe!r} does not say what it asks; give it a function 'task' that "
            "returns a psyprobe.running.task.Task"
        )
    if batch_size is not None and "batch_size" not in inspect.signature(probe.plan).parameters:
        raise InputError(
            f"probe {experiment.probe!r} of {experiment.name} takes no batch_size; leave it out"
        )
    if observer.card.ability not in probe.ABILITIES:
        raise InputError(
            f"probe {experiment.probe!r} needs an observer with the ability "
            f"{' or '.join(map(repr, probe.ABILITIES))}, and {observer.card.name} has "
            f"{observer.card.ability!r}; "
            "choose another observer"
        )
    if batch_size is not None and batch_size > _LARGEST_BATCH:
        raise InputError(
            f"batch_size is {batch_size}; give at most {_LARGEST_BATCH:,}, or leave it out"
        )
    options = {} if batch_size is None else {"batch_size": batch_size}
    with in_file(experiment.name):
        return probe.plan(experiment, observer, **options)


def _putting(observer: Any, executor: Any) -> Any:
    """Who puts the questions: an observer that is asked in files does so itself."""
    if not isinstance(observer, SubmittingObserver):
        return executor
    if executor is not None:
        raise InputError(
            f"{observer.card.name} is asked in batches, by this process alone; leave workers out"
        )
    return observer


def _charge(schedule: Schedule, prices: str | Path | Prices | None, budget: Budget | None) -> None:
    """Let those who are asked and paid for know their prices and the budget."""
    paid = [each for each in schedule.observers.values() if isinstance(each, PaidObserver)]
    if paid or prices is not None:
        charge(paid, _known(prices), budget)


def _known(prices: str | Path | Prices | None) -> Prices:
    return prices if isinstance(prices, Prices) else read_prices(prices)


def _averaged(
    results: list[xarray.Dataset], variants: Mapping[str, Any], chosen: Sequence[Any]
) -> xarray.Dataset:
    from psyprobe.analysis.variants import average_variants

    return average_variants(results, variants, [variant_label(variant) for variant in chosen])


def _whole_results(store: Store, records: Sequence[RunRecord]) -> list[xarray.Dataset]:
    """The results of finished runs; variants of one experiment, once all are finished, as one."""
    together: dict[str, list[RunRecord]] = {}
    for record in records:
        together.setdefault(_group(record), []).append(record)
    results = []
    for members in together.values():
        if any(record.finished is None for record in members):
            continue
        layout = members[0].layout
        found = [build_result(record, store) for record in members]
        if "variant" not in layout:
            results += found
        elif len(members) == math.prod(len(values) for values in layout["variants"].values()):
            results.append(
                _averaged(
                    found, layout["variants"], [record.layout["variant"] for record in members]
                )
            )
    return results


def _group(record: RunRecord) -> str:
    """The key of a run, or what all variants of one have in common."""
    if "variant" not in record.layout:
        return record.key
    shared = [record.layout.get(name) for name in ("variants", "levels", "display")]
    return digest([record.experiment_toml, record.observer_digest, shared])


def _read_result(path: Path) -> xarray.Dataset:
    import xarray

    try:
        with xarray.open_dataset(path, engine="scipy") as file:
            result = file.load()
    except FileNotFoundError:
        raise InputError(f"there is no result file {str(path)!r}") from None
    except (TypeError, ValueError, KeyError, IndexError) as error:
        raise InputError(f"{path} is no result that psyprobe wrote: {error}") from None
    if not {"experiment", "probe"} <= set(result.attrs):
        raise InputError(
            f"{path} is no result that psyprobe wrote: it has no responses of an experiment"
        )
    return result
