"""A run of pairs: how far an observer's response to each test lies from that to its reference.

The pixels themselves are asked beside every observer. Batches are fixed when a run begins and kept
with it, since an encoder's rounding depends on which images share a batch: a run that was killed
and taken up again ends with the same bytes as an unbroken one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache, cached_property
from itertools import chain, groupby
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from psyprobe.errors import InputError, StoreError
from psyprobe.experiment import Experiment
from psyprobe.files.output import digest
from psyprobe.light.display import Display
from psyprobe.observers import FeatureObserver, load_observer
from psyprobe.observers.protocol import STIMULUS_PPD
from psyprobe.probes.clips import clip_layout, seconds_a_clip
from psyprobe.probes.displayed_images import spread
from psyprobe.probes.pair_batches import (
    PairImages,
    default_batch_size,
    effect_of_format,
    keys_of,
    request_digest,
    seconds_an_image,
    stimulus_digests,
)
from psyprobe.running.protocol import Batch, Question, RunRecord
from psyprobe.running.schedule import ExperimentSchedule
from psyprobe.running.store import Store
from psyprobe.running.task import StimulusAxis, Task
from psyprobe.stimulus import Specification
from psyprobe.stimulus.measuring import observer_of

ABILITIES = ("features", "difference")

Pair = tuple[Specification, Specification]


@dataclass(frozen=True)
class Grid:
    """Tests and references at every place of a grid, each as one specification whose numbers are
    arrays.
    """

    #: Of the shape of the grid.
    tests: Specification
    #: Broadcasts to it.
    references: Specification

    @cached_property
    def digests(self) -> list[tuple[str, str]]:
        """Of test and reference at every place."""
        names = self.references.digests()
        own = np.arange(math.prod(self.references.batch))
        of_places = (
            np.broadcast_to(own.reshape(self.references.batch), self.tests.batch).ravel().tolist()
        )
        return list(zip(self.tests.digests(), (names[i] for i in of_places), strict=True))

    def shown_on(self, display: Display) -> npt.NDArray[np.bool_]:
        """Of which tests it is certain without drawing that a display shows them, of the shape of
        the grid.
        """
        bounds = self.tests.bounds()
        if bounds is None:
            return np.zeros(self.tests.batch, bool)
        return display.holds(*bounds, observer_of(self.tests))


class Pairs(Sequence[Pair]):
    """Distinct pairs of test and reference, made when they are taken; planning needs their digests
    alone.
    """

    def __init__(self, sources: Iterable[tuple[tuple[str, str], tuple[Grid, int, bool]]]) -> None:
        known = list(sources)
        #: Of test and reference.
        self.digests = [list(names) for names, _ in known]
        self._sources = [source for _, source in known]

    def doubtful(self, places: Iterable[int], display: Display) -> list[int]:
        """Those of some pairs whose test must be drawn to tell whether a display shows it."""
        shown: dict[int, Any] = {}
        left = []
        for i in places:
            grid, place, alone = self._sources[i]
            if id(grid) not in shown:
                shown[id(grid)] = grid.shown_on(display).ravel()
            if alone or not shown[id(grid)][place]:
                left.append(i)
        return left

    def __len__(self) -> int:
        return len(self._sources)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return tuple(map(self.__getitem__, range(*index.indices(len(self)))))
        return self.spec(index, reference=False), self.spec(index, reference=True)

    def spec(self, index: int, *, reference: bool) -> Specification:
        """Test or reference of a pair."""
        grid, place, alone = self._sources[index]
        chosen = grid.references if reference or alone else grid.tests
        return chosen.single(
            grid.tests.batch, tuple(map(int, np.unravel_index(place, grid.tests.batch)))
        )

    def tests(self, indices: Sequence[int]) -> tuple[Specification, ...]:
        """The tests of some pairs in their order, neighbours of one grid as one specification; each
        clip by itself.
        """
        found: list[Specification] = []
        sources = ((i, *self._sources[i]) for i in indices)
        for _, neighbours in groupby(sources, key=lambda source: (id(source[1]), source[3])):
            own, grids, places, alone = zip(*neighbours, strict=True)
            grid: Grid = grids[0]
            chosen = grid.references if alone[0] else grid.tests
            if chosen.is_clip or len(own) == 1:
                found += [self.spec(i, reference=False) for i in own]
            else:
                found.append(chosen.select(grid.tests.batch, places))
        return tuple(found)

    def contents(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """What the digests of all grids stand for, each once."""
        told: set[str] = set()
        for grid in {id(grid): grid for grid, *_ in self._sources}.values():
            names = (test for test, _ in grid.digests)
            both = chain(
                zip(names, grid.tests.dicts(), strict=True),
                zip(grid.references.digests(), grid.references.dicts(), strict=True),
            )
            for name, values in both:
                if name not in told:
                    told.add(name)
                    yield name, values


def paired(pairs: Iterable[Pair]) -> Pairs:
    """Pairs that a probe made itself, in their order."""
    return Pairs(
        ((test.digest, reference.digest), (Grid(test, reference), 0, False))
        for test, reference in pairs
    )


def response_task(record: RunRecord) -> Task:
    """The task of observers that respond to pairs with numbers, along the axis of a run."""
    difference = record.layout["difference"]
    axis = StimulusAxis(difference["name"], difference["unit"], difference["label"])
    return Task(axis=axis)


def pair_up(
    grid: Grid | None, scored: Grid | None, beside: Mapping[str, Grid] = MappingProxyType({})
) -> tuple[Pairs, Any, Any, list[int], dict[str, Any]]:
    """Distinct pairs of test and reference, and where each is needed.

    Parameters
    ----------
    grid, scored : Grid or None
        The level grid, and what is scored; one may lack.
    beside : mapping of str to Grid, optional
        What is shown besides, by name.

    Returns
    -------
    pairs : Pairs
        Up to three references of what is scored, or else of the grid, come first, with themselves,
        for the noise floor.
    grid, scored : nested list of int
        Indices into ``pairs``.
    noise_floor : list of int
        The same.
    beside : dict of str to nested list of int
        The same, by name.
    """
    first = scored or grid
    assert first is not None
    references = {name: place for place, (_, name) in reversed(list(enumerate(first.digests)))}
    names = list(dict.fromkeys(name for _, name in first.digests))
    repeated = [
        names[i] for i in np.unique(np.linspace(0, len(names) - 1, _REPEATED).round().astype(int))
    ]
    sources = {(name, name): (first, references[name], True) for name in repeated}
    index = {pair: i for i, pair in enumerate(sources)}

    def places(of: Grid | None) -> Any:
        if of is None:
            return []
        for place, pair in enumerate(of.digests):
            sources.setdefault(pair, (of, place, False))
            index.setdefault(pair, len(index))
        return np.reshape([index[pair] for pair in of.digests], of.tests.batch).tolist()

    grid_places = places(grid)
    scored_places = places(scored)
    others = {name: places(each) for name, each in beside.items()}
    return Pairs(sources.items()), grid_places, scored_places, list(range(len(repeated))), others


#: References that are shown twice to measure the noise floor, evenly spread over all of them.
_REPEATED = 3


@dataclass(frozen=True)
class Conditions:
    """What is shown to an observer, and where each response belongs."""

    #: Distinct pairs of test and reference; those of the noise floor, whose test is the reference,
    #: come first.
    pairs: Pairs
    #: Indices into `pairs`: of the level grid, of what is scored, and of repeated references;
    #: nested lists of int.
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
    #: Indices of what is shown besides, by name; nested lists of int.
    beside: Mapping[str, Any] = field(default_factory=dict)

    @property
    def shown(self) -> Specification:
        """One of the stimuli, which all have its size."""
        return self.pairs.spec(0, reference=False)


#: Clips of a batch, which are small: a run keeps and shares with other processes what it has by
#: whole batches.
CLIPS_AT_ONCE = 8


class PairSchedule(ExperimentSchedule):
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
        self.baseline: FeatureObserver = load_observer("pixels")
        super().__init__(experiment, observer, self.baseline)
        self.conditions = conditions
        self.remarks = conditions.remarks
        self._batch_size = batch_size
        self._batches: list[dict[str, Any]] = []
        self._outcome: dict[str, Any] = {}
        self._layout = {
            **conditions.axes,
            "pairs": conditions.pairs.digests,
            **{name: getattr(conditions, name) for name in ("grid", "scored", "noise_floor")},
            **conditions.beside,
            "size": list(conditions.shown.shape),
            "ppd": conditions.shown.ppd,
            "measures": list(conditions.measures),
            "version": version,
            "baseline": self.baseline.card.digest,
            "display": digest(experiment.display.to_dict()),
        }
        if conditions.shown.is_clip:
            self._layout |= clip_layout(conditions.shown, experiment, observer.card)
        if experiment.variant:
            self._layout |= {"variants": experiment.variants, "variant": experiment.variant}
        self._stimuli = stimulus_digests(self._layout)

    def layout(self) -> dict[str, Any]:
        """The conditions by digests, and what each of their responses is."""
        return self._layout

    def record(self, store: Store) -> RunRecord:
        """The run as it would begin now, in batches of what the store lacks; `GamutError` if it
        cannot be shown.

        Batches of which a part is asked are those of all pairs, so that every part has the same.
        """
        every = set(range(len(self.conditions.pairs)))
        self._wanted = self._planned(store, self._missing(store) if self.holds is None else every)
        return self._wanted

    def contents(self) -> Iterator[tuple[str, str, Any]]:
        """The stimuli, the display and the cards."""
        yield self._layout["display"], "display", self.experiment.display.to_dict()
        yield from super().contents()
        yield from ((name, "stimulus", values) for name, values in self.conditions.pairs.contents())

    def begin(self, record: RunRecord) -> None:
        """Take the batches with which the run began, and besides what the store had answered by
        then.
        """
        self._outcome = dict(record.outcome)
        began = record.grouping["batches"]
        size = record.grouping["batch_size"]
        if self.holds is not None and record.grouping != self._wanted.grouping:
            raise StoreError(
                f"{self.experiment.name} was begun in this store in other batches than those of "
                "which shards are made; "
                "give each shard a store of its own, and all of them the same --batch-size"
            )
        planned = {i for batch in began for i in batch["pairs"]}
        references = [reference for _, reference in self.conditions.pairs.digests]
        known = [i for i in range(len(references)) if i not in planned]
        self._batches = [*began, *fixed_batches(references, known, size)]

    def next(self) -> list[Batch]:
        """All batches at once, then none."""
        batches = self._batches
        self._batches = []
        request = request_digest(self._layout)
        version = self._layout["version"]
        difference = self.experiment.difference
        levels = (
            *self.experiment.variant,
            *self.experiment.levels,
            *([difference.parameter] if difference else []),
        )
        digests = self.conditions.pairs.digests
        pairs = self.conditions.pairs
        shows = {reference: i for i, (_, reference) in enumerate(digests)}
        reference = cache(lambda name: pairs.spec(shows[name], reference=True))
        made = [
            Batch(
                tuple(
                    Question(self._stimuli[i], request, observer, version)
                    for observer in self.observers
                    for i in batch["pairs"]
                ),
                PairImages(
                    tests=pairs.tests(batch["pairs"]),
                    references=tuple(map(reference, batch["references"])),
                    rows=tuple(batch["references"].index(digests[i][1]) for i in batch["pairs"]),
                    display=self.experiment.display,
                    measures=self.conditions.measures,
                    levels=levels,
                ),
                atomic=True,
                group=digest(batch["references"]),
            )
            for batch in batches
        ]
        return (
            made
            if self.holds is None
            else [batch for batch in made if self.holds(batch.questions[0].key)]
        )

    def outcome(self) -> dict[str, Any]:
        """What a short number format of the network costs, measured once a run of images."""
        if not self._outcome and not self.conditions.shown.is_clip:
            pairs = self.conditions.pairs
            first = len(self.conditions.noise_floor)
            effect = effect_of_format(self.observer, pairs, first, self.experiment.display)
            self._outcome = {} if effect is None else {"precision": effect}
        return self._outcome

    def cost(self, store: Store, *, timed: bool) -> PairPlan:
        """What is left to show, and how long that takes by one batch of grey images where it shall
        be timed.
        """
        missing = self._missing(store)
        planned = self._planned(store, missing)
        record = store.find_run(planned.key) or planned
        conditions = self.conditions
        grouping = record.grouping
        grid, *needed = (
            set(np.ravel(nested).tolist())
            for nested in (conditions.grid, conditions.scored, *conditions.beside.values())
        )
        scored = set().union(*needed)
        references = {reference for _, reference in conditions.pairs.digests}
        left = [batch for batch in grouping["batches"] if not missing.isdisjoint(batch["pairs"])]
        seconds = 0.0 if timed else None
        if missing and timed:
            each = self._seconds(grouping["batch_size"])
            # The references of unanswered questions are shown again, so this errs on the long side.
            seconds = each * (len(missing) + 2 * len(references))
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
            remarks=tuple(self.remarks),
            frames=conditions.shown.frames,
        )

    def _seconds(self, batch_size: int) -> float:
        """Time that the observer takes for one image, or for one clip."""
        shown = self.conditions.shown
        card = self.observer.card
        if not shown.is_clip:
            return seconds_an_image(self.observer, shown.shape, shown.ppd, batch_size)
        if card.clips:
            return seconds_a_clip(self.observer, shown, self.experiment.display)
        frames_at_once = default_batch_size(shown.shape, card.device)
        return shown.frames * seconds_an_image(
            self.observer, shown.shape, shown.ppd, frames_at_once
        )

    def _planned(self, store: Store, missing: set[int]) -> RunRecord:
        self._check_gamut(missing)
        references = [reference for _, reference in self.conditions.pairs.digests]
        size = self._batch_size
        if size is None:
            held = default_batch_size(self.conditions.shown.shape, self.observer.card.device)
            size = min(held, CLIPS_AT_ONCE) if self.conditions.shown.is_clip else held
        grouping = {"batch_size": size, "batches": fixed_batches(references, sorted(missing), size)}
        return replace(super().record(store), grouping=grouping)

    def _check_gamut(self, missing: set[int]) -> None:
        """Draw the strongest contrast at each level before the observer works for minutes and the
        display refuses.

        Of very many that only drawing can tell of, some.
        """
        display = self.experiment.display
        pairs = self.conditions.pairs
        doubtful = pairs.doubtful(
            (place for place in self.conditions.strongest if place in missing), display
        )
        for place in spread(doubtful):
            spec = pairs.spec(place, reference=False)
            try:
                for chunk in spec.chunks():
                    display.encode(chunk)
            except InputError as error:
                words = self.conditions.strongest[place]
                raise type(error)(f"{self.experiment.name}, {words}: {error}") from error

    def _missing(self, store: Store) -> set[int]:
        """Indices of pairs that the observer has not been asked about."""
        keys = keys_of(self._layout, self._stimuli, self.observer.card.digest)
        missing = store.missing(keys)
        return {i for i, key in enumerate(keys) if key in missing}


def _check_feeding(experiment: Experiment, card: Any) -> None:
    feeding = experiment.observer
    if feeding.input == "raw" and card.input != "raw":
        raise InputError(
            f"{experiment.name} feeds drive values to the observer as they are, and {card.name} "
            "was loaded with "
            f"input={card.input!r}; load it with input='raw', or run the experiment that is not "
            "'_published'"
        )
    if feeding.metric_ppd is not None and card.options.get("ppd") == STIMULUS_PPD:
        raise InputError(
            f"{experiment.name} tells a metric that images have {feeding.metric_ppd:g} pixels "
            "per degree, and "
            f"{card.name} was loaded to take those {STIMULUS_PPD}; load it with "
            f"ppd={feeding.metric_ppd:g}, or with "
            "the ppd you want"
        )


@dataclass(frozen=True)
class PairPlan:
    """What running an experiment of pairs means, before anything is asked."""

    #: Names.
    experiment: str
    observer: str
    #: Distinct images of the level grid, those that only the score needs, and those that tests are
    #: compared with.
    grid: int
    score: int
    references: int
    #: References shown a second time, for the noise floor; all are shown once more one step of
    #: rounding away.
    repeated: int
    #: Pairs of test and reference, those of the noise floor included, and how many of them the
    #: store has answered.
    questions: int
    answered: int
    #: Batches left to ask, and images in each.
    batches: int
    batch_size: int
    #: Pixels (H, W) of an image, and pixels per degree.
    size: tuple[int, int]
    ppd: float
    #: What is left takes about so long, without drawing; None where nothing was timed.
    seconds: float | None
    #: What a reader should know before anything is asked.
    remarks: tuple[str, ...] = ()
    #: Of a clip; 1 for images.
    frames: int = 1

    @property
    def images(self) -> int:
        """Distinct images, each drawn and passed through the observer once."""
        return self.grid + self.score + self.references

    def with_all(self, others: Sequence[PairPlan]) -> PairPlan:
        """What running all variants of an experiment means: the sums of all counts."""
        counts = ["grid", "score", "references", "repeated", "questions", "answered", "batches"]
        counts += ["seconds"] * (self.seconds is not None)
        sums = {name: sum(getattr(each, name) for each in (self, *others)) for name in counts}
        return replace(self, experiment=f"{self.experiment} in {1 + len(others)} variants", **sums)

    def to_dict(self) -> dict[str, Any]:
        """The plan as numbers, text and lists.

        Returns
        -------
        dict
            One entry for each field, and "images".
        """
        return {**asdict(self), "size": list(self.size), "images": self.images}

    def _repr_html_(self) -> str:
        from psyprobe.files import html

        names = ("grid", "score", "references", "images", "questions", "answered", "batches")
        return html.paragraphs(str(self)) + html.fields(
            {name: getattr(self, name) for name in names}
        )

    def __str__(self) -> str:
        height, width = self.size
        what = "images" if self.frames == 1 else f"clips of {self.frames} frames"
        return (
            f"{self.experiment} with {self.observer}: {self.images} distinct {what} of {height} "
            f"x {width} px at "
            f"{self.ppd:.4g} ppd ({height / self.ppd:.3g} x {width / self.ppd:.3g} deg): "
            f"{self.grid} on the level "
            f"grid, {self.score} more for the score, {self.references} backgrounds, each also "
            "one step of rounding "
            f"away; {self.repeated} shown again for the noise floor. {self.answered} of "
            f"{self.questions} questions are "
            f"answered; {self.batches} batches of up to {self.batch_size} are left."
            + "".join(f"\nNote: {remark}." for remark in self.remarks)
        )


def fixed_batches(
    references: Sequence[str], wanted: Sequence[int], size: int
) -> list[dict[str, Any]]:
    """Group questions into batches whose references fit into memory together.

    Parameters
    ----------
    references : sequence of str
        Digest of each question's reference.
    wanted : sequence of int
        Index of each question to ask.
    size : int
        Images of a batch, and references kept at a time.

    Returns
    -------
    list of dict
        "references": digests to be passed through the observer together; "pairs": indices of
        questions. Batches with the same references follow each other.

    Examples
    --------
    >>> fixed_batches(["a", "a", "a", "b"], [0, 1, 2, 3], size=2)
    [{'references': ['a', 'b'], 'pairs': [0, 1]}, {'references': ['a', 'b'], 'pairs': [2, 3]}]
    """
    if size < 1:
        raise InputError(f"batch size is {size}; give at least 1 image")
    distinct = list(dict.fromkeys(references[i] for i in wanted))
    groups: list[list[int]] = [[] for _ in range(0, len(distinct), size)]
    group = {name: i // size for i, name in enumerate(distinct)}
    for i in wanted:
        groups[group[references[i]]].append(i)
    return [
        {
            "references": distinct[start * size : (start + 1) * size],
            "pairs": members[first : first + size],
        }
        for start, members in enumerate(groups)
        for first in range(0, len(members), size)
    ]
