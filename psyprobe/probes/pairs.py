"""A run of pairs: how far an observer's response to each test lies from that to its reference.

An encoder is asked for its features of both, whose distances are measured; a metric says itself how different they
look. Each distinct image is drawn, shown and passed through the observer once a run; all tests on one reference share
its features. The pixels themselves are asked beside every observer.

Batches are fixed when a run begins and kept with it, since an encoder's rounding depends on which images share a batch:
a run that was killed and taken up again ends with the same bytes as an unbroken one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.errors import InputError
from psyprobe.files.digest import digest, software_versions
from psyprobe.light.display import Display
from psyprobe.observers import load_observer
from psyprobe.observers.registry import STIMULUS_PPD
from psyprobe.probes.asking import features, respond
from psyprobe.probes.pair_plan import PairPlan, default_batch_size, fixed_batches
from psyprobe.probes.presentation import presented, show
from psyprobe.running.protocol import Answered, Batch, Question, RunRecord
from psyprobe.stimulus import Specification

if TYPE_CHECKING:
    from psyprobe.experiment import Experiment
    from psyprobe.observers import FeatureObserver
    from psyprobe.running.store import Store

ABILITIES = ("features", "difference")
SECTIONS = ("stimulus", "levels", "difference", "variants", "human", "score", "observer")

Pair = tuple[Specification, Specification]


@dataclass(frozen=True)
class Conditions:
    """What is shown to an observer, and where each response belongs."""

    #: Distinct pairs of test and reference; those of the noise floor, whose test is the reference, come first.
    pairs: tuple[Pair, ...]
    #: Indices into `pairs`: of the level grid, of what is scored, and of repeated references; nested lists of int.
    grid: Any
    scored: Any
    noise_floor: list[int]
    #: Names of what is measured of each response.
    measures: tuple[str, ...]
    #: All else that the result needs and is known before asking, as JSON can hold it.
    axes: Mapping[str, Any]
    #: Indices of the pairs of the strongest contrast at each level, with words for them.
    strongest: Mapping[int, str]
    #: What a reader should know before anything is asked.
    remarks: tuple[str, ...] = ()

    @property
    def shown(self) -> Specification:
        """One of the stimuli, which all have its size."""
        return self.pairs[0][0]

    def layout(self) -> dict[str, Any]:
        """Everything but the responses, as JSON can hold it; digests in place of specifications."""
        return {
            **self.axes,
            "pairs": [[test.digest, reference.digest] for test, reference in self.pairs],
            "grid": self.grid,
            "scored": self.scored,
            "noise_floor": self.noise_floor,
            "size": list(self.shown.shape),
            "ppd": self.shown.ppd,
            "measures": list(self.measures),
        }


@dataclass(frozen=True)
class Work:
    """The images of a batch: which tests, against which references."""

    tests: tuple[Specification, ...]
    references: tuple[Specification, ...]
    #: Which reference belongs to each test.
    rows: tuple[int, ...]
    display: Display
    measures: tuple[str, ...]


class PairSession:
    """One run of pairs: a single round, in batches that are fixed when it begins.

    Raises
    ------
    InputError
        The observer is not fed as the experiment has it.
    """

    def __init__(
        self,
        experiment: Experiment,
        observer: Any,
        conditions: Conditions,
        version: str,
        batch_size: int | None,
    ) -> None:
        _check_feeding(experiment, observer.card)
        self.experiment, self.observer, self.conditions = experiment, observer, conditions
        self.baseline: FeatureObserver = load_observer("pixels")
        self.observers = {who.card.digest: who for who in (observer, self.baseline)}
        self.remarks = conditions.remarks
        self._version, self._batch_size = version, batch_size
        self._batches: list[dict[str, Any]] = []
        self._asked = asked_digest(conditions.measures)
        self._display = digest(experiment.display.to_dict())
        self._names = [
            pair_digest(test.digest, reference.digest, self._display) for test, reference in conditions.pairs
        ]

    def record(self, store: Store) -> RunRecord:
        """The run as it would begin now, in batches of what the store lacks; `GamutError` if it cannot be shown."""
        experiment, conditions, card = self.experiment, self.conditions, self.observer.card
        missing = self._missing(store)
        self._check_gamut(missing)
        references = [reference.digest for _, reference in conditions.pairs]
        size = self._batch_size
        if size is None:
            size = default_batch_size(conditions.shown.shape, card.device)
        layout = {**conditions.layout(), "version": self._version, "baseline": self.baseline.card.digest}
        if experiment.variant:
            layout |= {"variants": experiment.variants, "variant": experiment.variant}
        return RunRecord(
            experiment=experiment.name,
            experiment_digest=experiment.digest,
            experiment_toml=experiment.toml,
            observer=card.name,
            observer_digest=card.digest,
            observer_card=card.to_dict(),
            probe=experiment.probe,
            layout={**layout, "display": self._display},
            software=software_versions(),
            grouping={"batch_size": size, "batches": fixed_batches(references, sorted(missing), size)},
        )

    def contents(self) -> Iterator[tuple[str, str, Any]]:
        """The stimuli, the display and the cards."""
        display = self.experiment.display.to_dict()
        yield digest(display), "display", display
        for who in self.observers.values():
            yield who.card.digest, "observer", who.card.to_dict()
        for spec in {spec.digest: spec for pair in self.conditions.pairs for spec in pair}.values():
            yield spec.digest, "stimulus", spec.to_dict()

    def begin(self, record: RunRecord) -> None:
        """Take the batches with which the run began."""
        self._batches = list(record.grouping["batches"])

    def next(self) -> list[Batch]:
        """All batches at once, then none."""
        batches, self._batches = self._batches, []
        specs = {spec.digest: spec for pair in self.conditions.pairs for spec in pair}
        return [self._batch(batch, specs) for batch in batches]

    def tell(self, answers: Mapping[str, Mapping[str, Any]]) -> None:
        """Nothing depends on the answers."""

    def outcome(self) -> dict[str, Any]:
        """Nothing besides the answers."""
        return {}

    def cost(self, store: Store, *, timed: bool) -> PairPlan:
        """What is left to show, and how long that takes by one batch of grey images where it shall be timed."""
        planned = self.record(store)
        record = store.find(planned.key) or planned
        missing = self._missing(store)
        conditions, grouping = self.conditions, record.grouping
        grid, scored = _indices(conditions.grid), _indices(conditions.scored)
        references = {reference for _, reference in conditions.pairs}
        left = [batch for batch in grouping["batches"] if missing & set(batch["pairs"])]
        seconds = 0.0 if timed else None
        if missing and timed:
            each = seconds_an_image(self.observer, conditions.shown.shape, conditions.shown.ppd, grouping["batch_size"])
            # The references of unanswered questions are shown again, so this errs on the long side.
            seconds = each * (len(missing) + len(references))
        return PairPlan(
            experiment=self.experiment.name,
            observer=self.observer.card.name,
            grid=len(grid),
            score=len(scored - grid),
            references=len(references),
            repeated=len(conditions.noise_floor),
            questions=len(conditions.pairs),
            answered=len(conditions.pairs) - len(missing),
            batches=len(left),
            batch_size=grouping["batch_size"],
            size=conditions.shown.shape,
            ppd=conditions.shown.ppd,
            seconds=seconds,
            remarks=self.remarks,
        )

    def _check_gamut(self, missing: set[int]) -> None:
        """Draw the strongest contrast at each level before the observer works for minutes and the display refuses."""
        for place, words in self.conditions.strongest.items():
            if place not in missing:
                continue
            try:
                self.experiment.display.encode(self.conditions.pairs[place][0].draw())
            except InputError as error:
                raise type(error)(f"{self.experiment.name}, {words}: {error}") from error

    def _questions(self, who: Any, members: Iterable[int]) -> list[Question]:
        return [Question(self._names[i], self._asked, who.card.digest, self._version) for i in members]

    def _missing(self, store: Store) -> set[int]:
        """Indices of pairs that the observer has not been asked about."""
        keys = [question.key for question in self._questions(self.observer, range(len(self._names)))]
        missing = store.missing(keys)
        return {i for i, key in enumerate(keys) if key in missing}

    def _batch(self, batch: Mapping[str, Any], specs: Mapping[str, Specification]) -> Batch:
        members, names = batch["pairs"], batch["references"]
        pairs = [self.conditions.pairs[i] for i in members]
        work = Work(
            tests=tuple(test for test, _ in pairs),
            references=tuple(specs[name] for name in names),
            rows=tuple(names.index(reference.digest) for _, reference in pairs),
            display=self.experiment.display,
            measures=self.conditions.measures,
        )
        questions = [question for who in self.observers.values() for question in self._questions(who, members)]
        return Batch(tuple(questions), work, whole=True)


def pair_digest(test: str, reference: str, display: str) -> str:
    """What is shown when a test is compared with a reference on a display, all by their digests."""
    return digest([test, reference, display])


def asked_digest(measures: Sequence[str]) -> str:
    """What is asked about a pair."""
    return digest({"measures": list(measures)})


def answer(observers: Mapping[str, Any], batches: Iterable[Batch]) -> Iterator[Answered]:
    """Show each batch to every observer; an answer holds "values": of each layer a list, one value a measure."""
    kept: list[str] = []
    references: dict[str, Mapping[str, FloatArray]] = {}
    for batch in batches:
        work: Work = batch.work
        names = [spec.digest for spec in work.references]
        if names != kept:
            kept = names
            shown = show(work.references, work.display)
            references = {
                name: features(who, presented(shown, work.display, who.card.ability)) for name, who in observers.items()
            }
        shown = show(work.tests, work.display)
        ppd = work.tests[0].ppd
        for name, who in observers.items():
            light = presented(shown, work.display, who.card.ability)
            values = respond(who, light, references[name], work.rows, work.measures, ppd=ppd)
            asked = [question for question in batch.questions if question.observer == name]
            for question, value in zip(asked, values.tolist(), strict=True):
                yield Answered(question, {"values": value})


@dataclass(frozen=True)
class Responses:
    """What a run of pairs gave, for a probe's result."""

    #: Shapes (pairs, layers, measures) and (pairs, measures).
    observer: FloatArray
    baseline: FloatArray
    layers: tuple[str, ...]
    #: Where the result comes from.
    attributes: Mapping[str, Any] = field(default_factory=dict)


def responses(record: RunRecord, store: Store) -> Responses:
    """Read the answers of a finished run.

    Raises
    ------
    StoreError
        A question has no answer.
    """
    layout, card = record.layout, record.observer_card
    baseline = store.content(layout["baseline"])

    def read(observer: str) -> FloatArray:
        names = [pair_digest(test, reference, layout["display"]) for test, reference in layout["pairs"]]
        asked = asked_digest(layout["measures"])
        keys = [Question(name, asked, observer, layout["version"]).key for name in names]
        found = store.answers_of_all(keys)
        return np.array([found[key]["values"] for key in keys], dtype=np.float64)

    return Responses(
        observer=read(record.observer_digest),
        baseline=read(layout["baseline"])[:, 0],
        layers=tuple(card["features"]),
        attributes={
            "experiment": record.experiment,
            "experiment_digest": record.experiment_digest,
            "experiment_toml": record.experiment_toml,
            "probe": record.probe,
            "observer": record.observer,
            "observer_card": json.dumps(card, sort_keys=True),
            "display": json.dumps(store.content(layout["display"]), sort_keys=True),
            "baseline": json.dumps(baseline["name"]),
            "software": json.dumps(record.software, sort_keys=True),
            "psyprobe_version": record.software["psyprobe"],
            "random_weights": int(card["random_weights"]),
        },
    )


#: Seconds an image, by card, size and batch: a suite is timed once.
_SPEEDS: dict[tuple[str, tuple[int, int], int], float] = {}


def seconds_an_image(observer: Any, size: tuple[int, int], ppd: float, batch_size: int) -> float:
    """Time of one batch of grey images after another that warms up, over its images."""
    key = (observer.card.digest, size, batch_size)
    if key not in _SPEEDS:
        grey = np.full((batch_size, *size, 3), 0.5, dtype=np.float32)
        metric = observer.card.ability == "difference"
        ask = partial(observer.difference, grey, grey, ppd=ppd) if metric else partial(observer.features, grey)
        ask()
        start = perf_counter()
        ask()
        _SPEEDS[key] = (perf_counter() - start) / batch_size
    return _SPEEDS[key]


def _indices(nested: Any) -> set[int]:
    return set(np.asarray(nested, dtype=np.int64).ravel().tolist())


def _check_feeding(experiment: Experiment, card: Any) -> None:
    feeding = experiment.observer
    if feeding.input == "raw" and card.input != "raw":
        raise InputError(
            f"{experiment.name} feeds drive values to the observer as they are, and {card.name} was loaded with "
            f"input={card.input!r}; load it with input='raw', or run the experiment that is not '_published'"
        )
    if feeding.metric_ppd is not None and card.options.get("ppd") == STIMULUS_PPD:
        raise InputError(
            f"{experiment.name} tells a metric that images have {feeding.metric_ppd:g} pixels per degree, and "
            f"{card.name} was loaded to take those {STIMULUS_PPD}; load it with ppd={feeding.metric_ppd:g}, or with "
            "the ppd you want"
        )
