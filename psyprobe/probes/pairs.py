"""Plan runs of pairs: how far an observer's response to each test lies from that to its reference.

Every run shows the same pairs to the pixels too, as a baseline. Batches are fixed when a run begins
and stored with it, since an encoder's rounding depends on which images share a batch: a run that is
interrupted and resumed ends with the same bytes as an uninterrupted one.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import groupby
from typing import Any, cast

import numpy as np

from psyprobe._typing import BoolArray, Size
from psyprobe.analysis.score import Recorded
from psyprobe.errors import InputError, StoreError
from psyprobe.experiment import Experiment
from psyprobe.experiment.page_errors import in_file
from psyprobe.files.json_types import JsonMapping, JsonObject
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
    pair_stimuli,
    question_keys,
    request_digest,
    seconds_an_image,
    stimulus_digest,
)
from psyprobe.running.database import chunks
from psyprobe.running.protocol import Batch, Content, Question, RunRecord
from psyprobe.running.schedule import ExperimentSchedule
from psyprobe.running.store import Store
from psyprobe.running.task import StimulusAxis, Task
from psyprobe.stimulus import Specification
from psyprobe.stimulus.measuring import observer_of

ABILITIES = ("features", "difference")

Pair = tuple[Specification, Specification]


@dataclass(frozen=True)
class Grid:
    """Tests and references on a grid of levels, each one specification whose numbers are arrays."""

    #: Its arrays have the shape of the grid.
    tests: Specification
    #: Its arrays broadcast to the shape of the grid.
    references: Specification

    def digests(self) -> Iterator[tuple[str, str]]:
        """Compute the digests of test and reference at every point of the grid."""
        references = self.references.digests()
        rows = np.reshape(range(len(references)), self.references.batch)
        row_of_test = np.broadcast_to(rows, self.tests.batch).ravel().tolist()
        # One text for all tests with the same reference.
        shared = map(references.__getitem__, row_of_test)
        return zip(self.tests.digests(), shared, strict=True)


class PairDigests(Sequence[list[str]]):
    """The digests of test and reference of many pairs, which take 40 bytes a pair.

    JSON has them as lists of two texts.

    Examples
    --------
    >>> digests = PairDigests()
    >>> digests.append("0a" * 32, "1b" * 32)
    >>> len(digests), digests[0] == ["0a" * 32, "1b" * 32]
    (1, True)
    """

    def __init__(self) -> None:
        self._tests = bytearray()
        #: The row of each pair's reference among the distinct ones.
        self._rows = array("q")
        self._row_by_name: dict[str, int] = {}
        self._names: list[str] = []

    def append(self, test: str, reference: str) -> None:
        """Add the digests of a pair."""
        row = self._row_by_name.setdefault(reference, len(self._names))
        if row == len(self._names):
            self._names.append(reference)
        self._rows.append(row)
        self._tests += bytes.fromhex(test)

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: Any) -> Any:
        reference = self._names[self._rows[index]]
        start = _DIGEST_BYTES * index
        return [self._tests[start : start + _DIGEST_BYTES].hex(), reference]

    def references(self) -> list[str]:
        """Return the digest of the reference of each pair."""
        return [self._names[row] for row in self._rows]


#: Bytes of a digest.
_DIGEST_BYTES = 32


class Pairs(Sequence[Pair]):
    """Distinct pairs of test and reference, built on access; planning needs only their digests."""

    def __init__(self) -> None:
        self.digests = PairDigests()
        #: The grid of each pair, and its place there.
        self._grids: list[Grid] = []
        self._places = array("q")

    def append(self, names: tuple[str, str], grid: Grid, place: int) -> None:
        """Add the pair at a place of a grid, with the digests of test and reference."""
        self.digests.append(*names)
        self._grids.append(grid)
        self._places.append(place)

    def doubtful(self, pair_indices: Iterable[int], display: Display) -> list[int]:
        """Find the pairs that must be drawn to tell whether a display can show them."""
        displayable: dict[int, Any] = {}
        undecided = []
        for i in pair_indices:
            grid = self._grids[i]
            place = self._places[i]
            if id(grid) not in displayable:
                bounds = grid.tests.bounds()
                displayable[id(grid)] = None
                if bounds is not None:
                    holds = display.holds(*bounds, observer_of(grid.tests))
                    displayable[id(grid)] = holds.ravel()
            if displayable[id(grid)] is None or not displayable[id(grid)][place]:
                undecided.append(i)
        return undecided

    def __len__(self) -> int:
        return len(self._grids)

    def __getitem__(self, index: Any) -> Any:
        return self.spec(index, reference=False), self.spec(index, reference=True)

    def spec(self, index: int, *, reference: bool) -> Specification:
        """Return the test or the reference of a pair, as a specification."""
        grid = self._grids[index]
        specification = grid.references if reference else grid.tests
        shape = grid.tests.batch
        place = np.unravel_index(self._places[index], shape)
        return specification.single(shape, tuple(map(int, place)))

    def tests(self, indices: Sequence[int]) -> tuple[Specification, ...]:
        """Return the tests of some pairs in order, neighbours of one grid joined.

        Each clip is a specification of its own.
        """
        specifications: list[Specification] = []
        for _, neighbours in groupby(indices, key=lambda i: id(self._grids[i])):
            pair_indices = list(neighbours)
            tests = self._grids[pair_indices[0]].tests
            if tests.is_clip or len(pair_indices) == 1:
                specifications += [self.spec(i, reference=False) for i in pair_indices]
            else:
                places = [self._places[i] for i in pair_indices]
                specifications.append(tests.select(tests.batch, places))
        return tuple(specifications)

    def contents(self) -> Iterator[tuple[str, JsonObject]]:
        """Iterate over each distinct digest, in order, with the stimulus that it stands for."""
        #: Twice the index of the first pair that has it, and one more where it is the reference.
        first: dict[str, int] = {}
        for i, (test, reference) in enumerate(self.digests):
            first.setdefault(test, 2 * i)
            first.setdefault(reference, 2 * i + 1)
        for names in chunks(sorted(first)):
            groups: dict[tuple[int, int], list[str]] = {}
            for name in names:
                i, is_reference = divmod(first[name], 2)
                groups.setdefault((id(self._grids[i]), is_reference), []).append(name)
            contents: dict[str, JsonObject] = {}
            for (_, is_reference), members in groups.items():
                pair_indices = [first[name] // 2 for name in members]
                grid = self._grids[pair_indices[0]]
                stack = grid.references if is_reference else grid.tests
                places = [self._places[i] for i in pair_indices]
                selected = stack.select(grid.tests.batch, places).contents()
                contents |= zip(members, selected, strict=True)
            yield from ((name, contents[name]) for name in names)


def paired(pairs: Iterable[Pair]) -> Pairs:
    """Collect pairs of stimuli that a probe has built itself, in order."""
    collection = Pairs()
    for test, reference in pairs:
        names = (test.digest, reference.digest)
        collection.append(names, Grid(test, reference), 0)
    return collection


def response_task(record: RunRecord) -> Task:
    """Return the task of observers that respond with numbers along the stimulus axis."""
    difference = record.layout["difference"]
    axis = StimulusAxis(difference["name"], difference["unit"], difference["label"])
    return Task(axis=axis)


def pair_up(grids: Mapping[str, Grid | None]) -> tuple[Pairs, JsonObject]:
    """Collect the distinct pairs of several grids, with their indices at every grid point.

    Parameters
    ----------
    grids : mapping of str to Grid or None
        By name: "grid", the level grid, and "scored", that of scored stimuli, of which one may be
        missing; and further grids to show.

    Returns
    -------
    pairs : Pairs
        The first of them, up to three, are references of the scored grid, or else of the level
        grid, paired with themselves, for the noise floor.
    indices : dict of str to nested list of int
        Indices into ``pairs``, by the names of the grids; those for the noise floor as
        "noise_floor".
    """
    first = grids["scored"] or grids["grid"]
    assert first is not None
    references: dict[str, int] = {}
    for place, name in enumerate(first.references.digests()):
        references.setdefault(name, place)
    names = list(references)
    spaced = np.linspace(0, len(names) - 1, _REPEATED).round()
    repeated = [names[i] for i in np.unique(spaced.astype(int))]
    repeats = Grid(first.references, first.references)
    pairs = Pairs()
    index: dict[tuple[str, str], int] = {}
    for i, name in enumerate(repeated):
        pairs.append((name, name), repeats, references[name])
        index[name, name] = i
    indices: JsonObject = {"noise_floor": list(range(len(repeated)))}
    for grid_name, grid in grids.items():
        if grid is None:
            indices[grid_name] = []
            continue
        places = []
        for place, pair in enumerate(grid.digests()):
            i = index.setdefault(pair, len(pairs))
            if i == len(pairs):
                pairs.append(pair, grid, place)
            places.append(i)
        indices[grid_name] = np.reshape(places, grid.tests.batch).tolist()
    return pairs, indices


#: How many references are shown twice to measure the noise floor, evenly spread over all of them.
_REPEATED = 3


@dataclass(frozen=True)
class Conditions:
    """The pairs that a run shows to an observer, and where each response belongs."""

    #: Distinct pairs of test and reference; those of the noise floor, whose test is the reference,
    #: come first.
    pairs: Pairs
    #: Indices into `pairs`, by name: of the level grid ("grid"), of the scored grid ("scored"), of
    #: the repeated references ("noise_floor") and of further grids; nested lists of int.
    indices: JsonMapping
    #: Names of the measures of each response.
    measures: tuple[str, ...]
    #: Whatever else the result needs and is known before the run, as JSON can hold it.
    axes: JsonMapping
    #: Indices of the pairs of the strongest contrast at each level, with a description of each.
    strongest: Mapping[int, str]
    #: Remarks for a reader before the run begins.
    remarks: tuple[str, ...] = ()

    @property
    def first_test(self) -> Specification:
        """The first test stimulus, whose size all others have."""
        return self.pairs.spec(0, reference=False)


#: A round ends with the batch that makes it so many pairs: 30 MB of questions, and as much of
#: their keys.
_PAIRS_OF_ROUND = 20_000
#: Clips in a batch. Few, since a run stores its progress, and shares it with other processes, by
#: whole batches.
CLIPS_AT_ONCE = 8


class PairSchedule(ExperimentSchedule):
    """The schedule of one run of pairs: a single round, in batches that are fixed when it begins.

    Raises
    ------
    InputError
        The observer was loaded with another input than the experiment demands.
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
        self.baseline = cast(FeatureObserver, load_observer("pixels"))
        super().__init__(experiment, observer, self.baseline)
        self.conditions = conditions
        self.remarks = conditions.remarks
        self._batch_size = batch_size
        self._batches: deque[JsonObject] = deque()
        self._outcome: JsonObject = {}
        first_test = conditions.first_test
        self._layout = {
            **conditions.axes,
            "pairs": conditions.pairs.digests,
            **conditions.indices,
            "size": list(first_test.shape),
            "ppd": first_test.ppd,
            "measures": list(conditions.measures),
            "version": version,
            "baseline": self.baseline.card.digest,
            "display": digest(experiment.display.to_dict()),
        }
        if first_test.is_clip:
            self._layout |= clip_layout(first_test, experiment, observer.card)
        if experiment.variant:
            self._layout |= {
                "variants": experiment.variants,
                "variant": experiment.variant,
            }

    def layout(self) -> JsonObject:
        """Return what the result needs: conditions by their digests, and response axes."""
        return self._layout

    def record(self, store: Store) -> RunRecord:
        """Plan the run as it would begin now, in batches of pairs that the store lacks.

        A shard plans batches of all pairs, so that every shard has the same batches.

        Raises
        ------
        GamutError
            The display cannot show a stimulus.
        """
        everything = np.ones(len(self.conditions.pairs), dtype=bool)
        missing = self._missing(store) if self.holds is None else everything
        self._planned_record = self._plan_record(store, missing)
        return self._planned_record

    def contents(self) -> Iterator[Content]:
        """Iterate over what the run's digests stand for: stimuli, display, cards."""
        yield self._layout["display"], "display", self.experiment.display.to_dict()
        yield from super().contents()
        yield from (
            (name, "stimulus", values)
            for name, values in self.conditions.pairs.contents()
        )

    def begin(self, record: RunRecord) -> None:
        """Adopt the batches with which the run began, and those of pairs answered earlier."""
        self._outcome = dict(record.outcome)
        stored_batches = record.grouping["batches"]
        batch_size = record.grouping["batch_size"]
        if self.holds is not None and record.grouping != self._planned_record.grouping:
            raise StoreError(
                f"{self.experiment.name} was begun in this store in other batches than those of "
                "shards; give each shard a store of its own, and all the same --batch-size"
            )
        references = self.conditions.pairs.digests.references()
        answered = np.ones(len(references), dtype=bool)
        for batch in stored_batches:
            answered[batch["pairs"]] = False
        further = np.flatnonzero(answered).tolist()
        self._batches.extend(stored_batches)
        self._batches.extend(fixed_batches(references, further, batch_size))
        if self.holds is None:
            self.question_count = len(references) * len(self.observers)

    def next(self) -> list[Batch]:
        """Return batches of some ten thousand pairs at a time, which memory holds, then none."""
        experiment = self.experiment
        pairs = self.conditions.pairs
        levels = [*experiment.variant, *experiment.levels]
        if experiment.difference:
            levels.append(experiment.difference.parameter)
        request = request_digest(self._layout)
        version = self._layout["version"]
        references = pairs.digests.references()
        first_pairs = {reference: i for i, reference in enumerate(references)}
        reference = cache(lambda name: pairs.spec(first_pairs[name], reference=True))
        batches: list[Batch] = []
        pair_count = 0
        while self._batches and pair_count < _PAIRS_OF_ROUND:
            group = self._batches.popleft()
            names = group["references"]
            stimuli = [stimulus_digest(self._layout, i) for i in group["pairs"]]
            questions = [
                Question(stimulus, request, observer, version)
                for observer in self.observers
                for stimulus in stimuli
            ]
            if self.holds is not None and not self.holds(questions[0].key):
                continue
            images = PairImages(
                tests=pairs.tests(group["pairs"]),
                references=tuple(map(reference, names)),
                rows=tuple(names.index(references[i]) for i in group["pairs"]),
                display=experiment.display,
                measures=self.conditions.measures,
                levels=tuple(levels),
            )
            batches.append(
                Batch(tuple(questions), images, atomic=True, group=digest(names))
            )
            pair_count += len(stimuli)
        return batches

    def outcome(self) -> JsonObject:
        """Measure how far a network's short number format moves its responses.

        Clips are not measured.
        """
        if not self._outcome and not self.conditions.first_test.is_clip:
            pairs = self.conditions.pairs
            first = len(self.conditions.indices["noise_floor"])
            effect = effect_of_format(
                self.observer, pairs, first, self.experiment.display
            )
            self._outcome = {} if effect is None else {"precision": effect}
        return self._outcome

    def cost(self, store: Store, *, timed: bool) -> PairPlan:
        """Count what is left to show, and estimate by timing how long it takes."""
        missing = self._missing(store)
        missing_count = int(missing.sum())
        planned = self._plan_record(store, missing)
        record = store.find_run(planned.key) or planned
        conditions = self.conditions
        grouping = record.grouping
        grids = {
            name: np.unique(np.asarray(indices, dtype=np.int64))
            for name, indices in conditions.indices.items()
        }
        repeated = grids.pop("noise_floor")
        grid = grids.pop("grid")
        others = np.concatenate([grid[:0], *grids.values()])
        references = set(conditions.pairs.digests.references())
        seconds = 0.0 if timed else None
        if missing_count and timed:
            seconds_an_item = self._seconds(grouping["batch_size"])
            # The references of unanswered questions are shown again, so this errs on the long side.
            seconds = seconds_an_item * (missing_count + 2 * len(references))
        first_test = conditions.first_test
        return PairPlan(
            experiment=self.experiment.name,
            observer=self.observer.card.name,
            grid=len(grid),
            score=len(np.setdiff1d(others, grid)),
            references=len(references),
            repeated=len(repeated),
            questions=len(conditions.pairs),
            answered=len(conditions.pairs) - missing_count,
            batches=sum(
                bool(missing[batch["pairs"]].any()) for batch in grouping["batches"]
            ),
            batch_size=grouping["batch_size"],
            size=first_test.shape,
            ppd=first_test.ppd,
            seconds=seconds,
            remarks=tuple(self.remarks),
            frames=first_test.frames,
        )

    def _seconds(self, batch_size: int) -> float:
        """Time the observer on one image or clip, s."""
        first_test = self.conditions.first_test
        card = self.observer.card
        if first_test.is_clip and card.clips:
            return seconds_a_clip(self.observer, first_test, self.experiment.display)
        if first_test.is_clip:
            batch_size = default_batch_size(first_test.shape, card.device)
        seconds = seconds_an_image(
            self.observer, first_test.shape, first_test.ppd, batch_size
        )
        return first_test.frames * seconds

    def _plan_record(self, store: Store, missing: BoolArray) -> RunRecord:
        """Add to the run's record how missing pairs are grouped into batches."""
        self._check_gamut(missing)
        references = self.conditions.pairs.digests.references()
        batch_size = self._batch_size
        if batch_size is None:
            first_test = self.conditions.first_test
            batch_size = default_batch_size(first_test.shape, self.observer.card.device)
            if first_test.is_clip:
                batch_size = min(batch_size, CLIPS_AT_ONCE)
        questions = np.flatnonzero(missing).tolist()
        batches = fixed_batches(references, questions, batch_size)
        grouping = {"batch_size": batch_size, "batches": batches}
        return replace(super().record(store), grouping=grouping)

    def _check_gamut(self, missing: BoolArray) -> None:
        """Draw the strongest contrast of each level, so that a display refuses it at the start.

        If there are many, check an evenly spaced sample.
        """
        display = self.experiment.display
        pairs = self.conditions.pairs
        strongest = self.conditions.strongest
        missing_strongest = [index for index in strongest if missing[index]]
        for index in spread(pairs.doubtful(missing_strongest, display)):
            with in_file(f"{self.experiment.name}, {strongest[index]}"):
                for chunk in pairs.spec(index, reference=False).chunks():
                    display.encode(chunk)

    def _missing(self, store: Store) -> BoolArray:
        """Tell of each pair whether the observer has not been asked about it."""
        missing: list[bool] = []
        for stimuli in chunks(pair_stimuli(self._layout)):
            keys = question_keys(self._layout, self.observer.card.digest, stimuli)
            missing_keys = store.missing(keys)
            missing += [key in missing_keys for key in keys]
        return np.array(missing)


def _check_feeding(experiment: Experiment, card: Any) -> None:
    """Refuse an observer loaded with another input or ppd than the experiment feeds it."""
    feeding = experiment.observer
    if feeding.input == "raw" and card.input != "raw":
        raise InputError(
            f"{experiment.name} feeds drive values to the observer as they are, and {card.name} "
            f"was loaded with input={card.input!r}; load it with input='raw', or run the "
            "experiment that is not '_published'"
        )
    if feeding.metric_ppd is not None and card.options.get("ppd") == STIMULUS_PPD:
        raise InputError(
            f"{experiment.name} tells a metric that images have {feeding.metric_ppd:g} pixels "
            f"per degree, and {card.name} was loaded to take those {STIMULUS_PPD}; load it with "
            f"ppd={feeding.metric_ppd:g}, or with the ppd you want"
        )


@dataclass(frozen=True)
class PairPlan(Recorded):
    """The work that a run of pairs would do, before it begins."""

    #: Names.
    experiment: str
    observer: str
    #: Numbers of distinct images: of the level grid, of those that only the score needs, and of
    #: those that tests are compared with.
    grid: int
    score: int
    references: int
    #: Number of references shown a second time, for the noise floor; all are shown once more one
    #: step of rounding away.
    repeated: int
    #: Number of pairs of test and reference, those of the noise floor included, and how many of
    #: them the store has answered.
    questions: int
    answered: int
    #: Number of batches left to show, and images in each.
    batches: int
    batch_size: int
    #: Pixels (H, W) of an image, and pixels per degree.
    size: Size
    ppd: float
    #: Estimated time for what is left, without drawing; None where nothing was timed.
    seconds: float | None
    #: Remarks for a reader before the run begins.
    remarks: tuple[str, ...] = ()
    #: Frames of a clip; 1 for images.
    frames: int = 1

    @property
    def images(self) -> int:
        """The number of distinct images, each drawn and shown to the observer once."""
        return self.grid + self.score + self.references

    def with_all(self, plans: Sequence[PairPlan]) -> PairPlan:
        """Sum the counts of the plans of all variants of an experiment."""
        counts = [
            "grid",
            "score",
            "references",
            "repeated",
            "questions",
            "answered",
            "batches",
        ]
        counts += ["seconds"] * (self.seconds is not None)
        sums = {
            name: sum(getattr(plan, name) for plan in (self, *plans)) for name in counts
        }
        return replace(
            self, experiment=f"{self.experiment} in {1 + len(plans)} variants", **sums
        )

    def to_dict(self) -> JsonObject:
        """Return the plan as numbers, text and lists.

        Returns
        -------
        dict
            One entry for each field, and "images".
        """
        return {**super().to_dict(), "images": self.images}

    def _repr_html_(self) -> str:
        """Show the plan as HTML text in a notebook."""
        from psyprobe.files import html

        return html.paragraphs(str(self))

    def __str__(self) -> str:
        height, width = self.size
        items = "images" if self.frames == 1 else f"clips of {self.frames} frames"
        return (
            f"{self.experiment} with {self.observer}: {self.images} distinct {items} of {height} "
            f"x {width} px at {self.ppd:.4g} ppd ({height / self.ppd:.3g} x "
            f"{width / self.ppd:.3g} deg): {self.grid} on the level grid, {self.score} more for "
            f"the score, {self.references} backgrounds, each also one step of rounding away; "
            f"{self.repeated} shown again for the noise floor. {self.answered} of "
            f"{self.questions} questions are answered; {self.batches} batches of up to "
            f"{self.batch_size} are left."
            + "".join(f"\nNote: {remark}." for remark in self.remarks)
        )


def fixed_batches(
    references: Sequence[str], questions: Sequence[int], size: int
) -> list[JsonObject]:
    """Group questions into batches whose references fit into memory together.

    Parameters
    ----------
    references : sequence of str
        Digest of each question's reference.
    questions : sequence of int
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
    distinct = list(dict.fromkeys(references[question] for question in questions))
    groups: list[list[int]] = [[] for _ in range(0, len(distinct), size)]
    group = {name: question // size for question, name in enumerate(distinct)}
    for question in questions:
        groups[group[references[question]]].append(question)
    return [
        {
            "references": distinct[start * size : (start + 1) * size],
            "pairs": members[first : first + size],
        }
        for start, members in enumerate(groups)
        for first in range(0, len(members), size)
    ]
