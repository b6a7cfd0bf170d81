"""Run an experiment: plan its images, ask what is not answered yet, put the responses together.

Everything that an observer answers goes into a `Store`, one batch a transaction, and the result is always built from
the store. The batches of a run are fixed when it begins and kept with it, since an encoder's rounding depends on
which images share a batch: so a run that was killed and taken up again ends with the same bytes as an unbroken one.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.analysis.variants import average_variants
from psyprobe.errors import InputError
from psyprobe.experiment_file import Experiment, read_experiment
from psyprobe.files.progress import progress_bar
from psyprobe.files.software import software_versions
from psyprobe.observers.protocol import STIMULUS_PPD
from psyprobe.probes import Probe, load_probe
from psyprobe.probes.presentation import presented, show
from psyprobe.question_file import QuestionExperiment
from psyprobe.run_plan import Plan, all_plans, default_batch_size, fixed_batches
from psyprobe.store import Answers, Question, RunRecord, Store, digest, open_store
from psyprobe.variants import expand_variants, variant_label, with_variants

if TYPE_CHECKING:
    import xarray

    from psyprobe.observers import FeatureObserver
    from psyprobe.observers.protocol import Observer
    from psyprobe.probes.detection import Conditions
    from psyprobe.question_plan import QuestionPlan


def run(
    experiment: str | Path | Experiment | QuestionExperiment,
    observer: str | Observer | None = None,
    *,
    store: str | Path | Store | None = None,
    batch_size: int | None = None,
    score_only: bool = False,
    variants: Mapping[str, Sequence[float]] | None = None,
    progress: bool | None = None,
) -> xarray.Dataset:
    """Run an experiment, or what is left of it.

    Parameters
    ----------
    experiment : str, Path or Experiment
        A catalogue name, the path of an experiment file, or an experiment that was read before.
    observer : str or observer, optional
        A name as `load_observer` takes it, or an object; without it the default observer. One that answers in words
        must be named.
    store : str, Path or Store, optional
        The file that keeps responses; what it holds is not asked again. Without it nothing is kept.
    batch_size : int, optional
        Images shown at once; by default as many as memory surely holds, from the image size and the device. A run
        that goes on keeps the batches with which it began.
    score_only : bool, optional
        Show only what the score needs, without the level grid and frequencies that are for figures.
    variants : mapping of str to sequence of float, optional
        Parameters of the stimulus besides the levels, such as ``{"phase": [0, 90], "seed": [1, 2, 3]}``: every
        combination is shown and responses are averaged; instead of those that the experiment's file names.
    progress : bool, optional
        Whether to show a progress bar; by default on a terminal and in a notebook.

    Returns
    -------
    xarray.Dataset
        Responses with units, the human curve, the pixel baseline, the noise floor, and where they come from. With
        variants their mean, and those of each variant as ``response_by_variant`` and the like. Of an experiment that
        asks in words, one row a question.

    Raises
    ------
    InputError
        Something in the experiment cannot be shown to this observer.
    StoreError
        The store cannot be used.
    WeightsError
        The observer's weights are not on this machine.
    """
    opened_file = _file_of(experiment)
    if isinstance(opened_file, QuestionExperiment):
        from psyprobe.question_run import run_questions

        _refuse_for_words(opened_file, batch_size=batch_size, score_only=score_only, variants=variants)
        return run_questions(opened_file, observer, store=store, progress=progress)
    read = _varied(opened_file, score_only, variants)
    if read.variants and not read.variant:
        who = observer_for(read, observer) if observer is None or isinstance(observer, str) else observer
        each = expand_variants(read)
        with open_store(store) as opened:
            results = [run(one, who, store=opened, batch_size=batch_size, progress=progress) for one in each]
        return average_variants(results, read.variants, [variant_label(one.variant) for one in each])
    asked = _prepare(read, observer)
    with open_store(store) as opened:
        record = _begin(opened, asked, batch_size)
        _ask(opened, asked, record, progress)
        opened.finish(record.key)
        return _result(opened, record)


def plan(
    experiment: str | Path | Experiment | QuestionExperiment,
    observer: str | Observer | None = None,
    *,
    store: str | Path | Store | None = None,
    batch_size: int | None = None,
    score_only: bool = False,
    variants: Mapping[str, Sequence[float]] | None = None,
) -> Plan | QuestionPlan:
    """What `run` with the same arguments would show and ask; nothing is asked.

    Parameters
    ----------
    experiment, observer, store, batch_size, score_only, variants
        As for `run`. A store that does not exist yet is not made.

    Returns
    -------
    Plan
        It prints as one paragraph.

    Raises
    ------
    InputError, StoreError, WeightsError
        As `run` would.
    """
    opened_file = _file_of(experiment)
    if isinstance(opened_file, QuestionExperiment):
        from psyprobe.question_plan import plan_questions

        _refuse_for_words(opened_file, batch_size=batch_size, score_only=score_only, variants=variants)
        return plan_questions(opened_file, observer, store=store)
    read = _varied(opened_file, score_only, variants)
    if read.variants and not read.variant:
        who = observer_for(read, observer) if observer is None or isinstance(observer, str) else observer
        plans = [plan(one, who, store=store, batch_size=batch_size) for one in expand_variants(read)]
        return all_plans([each for each in plans if isinstance(each, Plan)])
    asked = _prepare(read, observer)
    if isinstance(store, str | Path) and not Path(store).exists():
        store = None
    with open_store(store) as opened:
        planned = _record(opened, asked, batch_size)
        record = opened.find(planned.key) or planned
        missing = set(opened.missing(asked.keys))
        _check_gamut(asked, missing)
    tests = asked.conditions.pairs
    grid = set(asked.conditions.grid.ravel().tolist())
    scored = set(asked.conditions.scored.ravel().tolist()) - grid
    left = [b for b in record.layout["batches"] if any(asked.keys[i] in missing for i in b["pairs"])]
    return Plan(
        experiment=asked.experiment.name,
        observer=asked.observer.card.name,
        grid=len(grid),
        score=len(scored),
        references=len({reference for _, reference in tests}),
        repeated=asked.conditions.noise_floor.size,
        questions=len(tests),
        answered=len(tests) - len(missing),
        batches=len(left),
        batch_size=record.layout["batch_size"],
        size=asked.conditions.size,
        ppd=asked.conditions.ppd,
    )


def load_results(path: str | Path | Store) -> list[xarray.Dataset]:
    """The results of all finished runs of a store, or the one of a result file, without any observer.

    Parameters
    ----------
    path : str, Path or Store
        A store, or a NetCDF file (``.nc``) that `psyprobe run` wrote.

    Returns
    -------
    list of xarray.Dataset
        In the order in which the runs were begun.

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
            f"{path} has no finished run ({len(records)} unfinished); run the experiment again to go on with it"
        )
    return finished


def _whole_results(store: Store, records: Sequence[RunRecord]) -> list[xarray.Dataset]:
    """The results of finished runs; variants of one experiment, once all are finished, as one."""
    together: dict[str, list[RunRecord]] = {}
    for record in records:
        layout = record.layout
        names = ("variants", "levels")
        shared = [record.experiment_toml, record.observer_digest, record.display_digest, *map(layout.get, names)]
        together.setdefault(digest(shared) if "variant" in layout else record.key, []).append(record)
    results = []
    for members in together.values():
        if any(record.finished is None for record in members):
            continue
        layout = members[0].layout
        if "variant" not in layout:
            results += [_result(store, record) for record in members]
        elif len(members) == math.prod(len(values) for values in layout["variants"].values()):
            labels = [variant_label(record.layout["variant"]) for record in members]
            results.append(average_variants([_result(store, record) for record in members], layout["variants"], labels))
    return results


def _read_result(path: Path) -> xarray.Dataset:
    import xarray

    try:
        with xarray.open_dataset(path, engine="scipy") as file:
            result = file.load()
    except FileNotFoundError:
        raise InputError(f"there is no result file {str(path)!r}") from None
    except (TypeError, ValueError, KeyError, IndexError) as error:
        raise InputError(f"{path} is no result that psyprobe wrote: {error}") from None
    if not {"probe", "experiment"} <= set(result.attrs):
        raise InputError(f"{path} is no result that psyprobe wrote: it has no responses of an experiment")
    return result


# -- asking ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Asked:
    """An experiment, who is asked, and what."""

    experiment: Experiment
    observer: FeatureObserver
    baseline: FeatureObserver
    probe: Probe
    conditions: Conditions

    def questions(self, observer: FeatureObserver) -> tuple[Question, ...]:
        display, card = digest(self.experiment.display.to_dict()), observer.card.digest
        return tuple(
            Question(test.digest, reference.digest, display, card, self.version)
            for test, reference in self.conditions.pairs
        )

    @property
    def version(self) -> str:
        return f"{self.probe.VERSION}: {', '.join(self.conditions.measures)}"

    @property
    def keys(self) -> list[str]:
        return [question.key for question in self.questions(self.observer)]


def _file_of(experiment: str | Path | Experiment | QuestionExperiment) -> Experiment | QuestionExperiment:
    return read_experiment(experiment) if isinstance(experiment, str | Path) else experiment


def _varied(experiment: Experiment, score_only: bool, variants: Mapping[str, Sequence[float]] | None) -> Experiment:
    read = replace(experiment, score_only=score_only or experiment.score_only)
    return read if variants is None else with_variants(read, variants)


def _refuse_for_words(experiment: QuestionExperiment, **options: Any) -> None:
    for name, value in options.items():
        if value:
            raise InputError(f"{experiment.name} asks in words and takes no {name}; leave it out")


def _prepare(read: Experiment, observer: Any) -> _Asked:
    from psyprobe.observers import load_observer

    probe = load_probe(read.probe)
    who = observer_for(read, observer) if observer is None or isinstance(observer, str) else observer
    if who.card.ability not in probe.ABILITIES:
        raise InputError(
            f"probe {read.probe!r} needs an observer with the ability {' or '.join(map(repr, probe.ABILITIES))}, and "
            f"{who.card.name} has {who.card.ability!r}; choose another observer"
        )
    if read.observer_input == "raw" and who.card.input != "raw":
        raise InputError(
            f"{read.name} feeds drive values to the observer as they are, and {who.card.name} was loaded with "
            f"input={who.card.input!r}; load it with input='raw', or run the experiment that is not '_published'"
        )
    if read.metric_ppd is not None and who.card.options.get("ppd") == STIMULUS_PPD:
        raise InputError(
            f"{read.name} tells a metric that images have {read.metric_ppd:g} pixels per degree, and {who.card.name} "
            f"was loaded to take those {STIMULUS_PPD}; load it with ppd={read.metric_ppd:g}, or with the ppd you want"
        )
    return _Asked(read, who, load_observer("pixels"), probe, probe.conditions(read, who.card))


def observer_for(experiment: Experiment | QuestionExperiment, name: str | None = None, **options: Any) -> Any:
    """The observer of a name, fed as an experiment wants it.

    Parameters
    ----------
    experiment : Experiment
        Its file may ask for raw input, or state the pixels per degree that a metric is told.
    name : str, optional
        As `load_observer` takes it; without it the default observer.
    **options
        Of `load_observer`; an ``input`` or ``ppd`` given here overrides the experiment's.

    Returns
    -------
    observer
        With the abilities that its card lists.
    """
    from psyprobe.observers import DEFAULT_OBSERVER, load_observer

    if name is None and isinstance(experiment, QuestionExperiment):
        raise InputError(
            f"{experiment.name} asks in words; name an observer that answers, such as simulated:watson-malo or "
            "openai:MODEL"
        )
    options = {"input": experiment.observer_input, **options}
    if experiment.as_published and (name or "").startswith("zoo:"):
        options.setdefault("published", True)
    loaded = load_observer(name or DEFAULT_OBSERVER, **options)
    if experiment.metric_ppd is None or loaded.card.options.get("ppd") != STIMULUS_PPD:
        return loaded
    return load_observer(name or DEFAULT_OBSERVER, **options, ppd=experiment.metric_ppd)


def _record(store: Store, asked: _Asked, batch_size: int | None) -> RunRecord:
    """The run as it would begin now: batches of what the store lacks."""
    layout = asked.conditions.layout()
    size = default_batch_size(asked.conditions.size, asked.observer.card.device) if batch_size is None else batch_size
    missing = set(store.missing(asked.keys))
    wanted = [i for i, key in enumerate(asked.keys) if key in missing]
    references = [reference for _, reference in layout["pairs"]]
    return RunRecord(
        experiment=asked.experiment.name,
        experiment_digest=asked.experiment.digest,
        experiment_toml=asked.experiment.toml,
        observer=asked.observer.card.name,
        observer_digest=asked.observer.card.digest,
        observer_card=asked.observer.card.to_dict(),
        baseline_digest=asked.baseline.card.digest,
        display_digest=digest(asked.experiment.display.to_dict()),
        layout={
            **layout,
            **(
                {"variants": asked.experiment.variants, "variant": asked.experiment.variant}
                if asked.experiment.variant
                else {}
            ),
            "probe": asked.experiment.probe,
            "version": asked.version,
            "batch_size": size,
            "batches": fixed_batches(references, wanted, size),
        },
        software=software_versions(),
    )


def _begin(store: Store, asked: _Asked, batch_size: int | None) -> RunRecord:
    planned = _record(store, asked, batch_size)
    _check_gamut(asked, set(store.missing(asked.keys)))
    display = asked.experiment.display
    store.keep("stimulus", {spec.digest: spec.to_dict() for pair in asked.conditions.pairs for spec in pair})
    store.keep("display", {planned.display_digest: display.to_dict()})
    store.keep("observer", {who.card.digest: who.card.to_dict() for who in (asked.observer, asked.baseline)})
    return store.begin(planned)


def _check_gamut(asked: _Asked, missing: set[str]) -> None:
    """Draw the strongest contrast at each level before the observer works for minutes and the display then refuses."""
    experiment, conditions = asked.experiment, asked.conditions
    keys = asked.keys
    (axis,) = conditions.axes["levels"]
    contrasts = (conditions.axes["difference"]["values"], conditions.axes["scored_difference"])
    for places, levels, contrast in (
        (conditions.grid, axis["values"], [contrasts[0]] * len(conditions.grid)),
        (conditions.scored, axis["scored"], contrasts[1]),
    ):
        for row, level, values in zip(places, levels, contrast, strict=True):
            strongest = int(np.argmax(values))
            if keys[row[strongest]] not in missing:
                continue
            try:
                experiment.display.encode(conditions.pairs[row[strongest]][0].draw())
            except InputError as error:
                raise type(error)(
                    f"{experiment.name}, {experiment.x.name} {level:.4g} {experiment.x.unit}, contrast "
                    f"{values[strongest]:.4g}: {error}"
                ) from error


def _ask(store: Store, asked: _Asked, record: RunRecord, progress: bool | None) -> None:
    probe, pairs = asked.probe, asked.conditions.pairs
    display = asked.experiment.display
    specs = {spec.digest: spec for pair in pairs for spec in pair}
    observers = list({who.card.digest: who for who in (asked.observer, asked.baseline)}.values())
    questions = {who.card.digest: asked.questions(who) for who in observers}
    keys, measures = asked.keys, asked.conditions.measures
    kept: list[str] = []
    references: dict[str, Mapping[str, FloatArray]] = {}
    # Another run of the same experiment may have answered a batch meanwhile, so each is looked up when its turn comes.
    with progress_bar(sum(len(batch["pairs"]) for batch in record.layout["batches"]), progress) as bar:
        bar.set_description(f"{asked.experiment.name}: {asked.observer.card.name}")
        for batch in record.layout["batches"]:
            members = batch["pairs"]
            if store.missing(keys[i] for i in members):
                if batch["references"] != kept:
                    kept = batch["references"]
                    shown = show([specs[name] for name in kept], display)
                    references = {
                        who.card.digest: probe.features(who, presented(shown, display, who.card.ability))
                        for who in observers
                    }
                shown = show([pairs[i][0] for i in members], display)
                rows = [kept.index(pairs[i][1].digest) for i in members]
                # Ask first and write then: a transaction open while an encoder works locks others out.
                answers = [
                    Answers(
                        questions=tuple(questions[who.card.digest][i] for i in members),
                        layers=tuple(who.card.features),
                        measures=measures,
                        values=probe.respond(
                            who,
                            presented(shown, display, who.card.ability),
                            references[who.card.digest],
                            rows,
                            measures,
                            ppd=asked.conditions.ppd,
                        ),
                    )
                    for who in observers
                ]
                store.add(answers)
            bar.update(len(members))


# -- the result ------------------------------------------------------------------------------------------------------


def _result(store: Store, record: RunRecord) -> xarray.Dataset:
    layout = record.layout
    if "asking" in layout:
        from psyprobe.question_result import question_result

        return question_result(store, record)
    probe = load_probe(layout["probe"])
    card, baseline = record.observer_card, store.content(record.baseline_digest)

    def responses(observer: str, layers: Sequence[str]) -> FloatArray:
        keys = [
            Question(test, reference, record.display_digest, observer, layout["version"]).key
            for test, reference in layout["pairs"]
        ]
        return store.read(keys, layers, layout["measures"])

    attributes = {
        "experiment": record.experiment,
        "experiment_digest": record.experiment_digest,
        "experiment_toml": record.experiment_toml,
        "observer": record.observer,
        "observer_card": json.dumps(card, sort_keys=True),
        "display": json.dumps(store.content(record.display_digest), sort_keys=True),
        "software": json.dumps(record.software, sort_keys=True),
        "psyprobe_version": record.software["psyprobe"],
        "random_weights": int(card["random_weights"]),
    }
    return probe.result(
        layout,
        responses(record.observer_digest, card["features"]),
        card["features"],
        responses(record.baseline_digest, baseline["features"][:1])[:, 0],
        attributes,
    )
