"""Putting pairs to observers, and reading their answers: tests are drawn, looked at and compared
with their references.

An encoder is asked for its features of both, whose distances are measured; a metric says itself how
different they look. Each distinct image is drawn, shown and passed through the observer once a run;
all tests on one reference share its features. Their lengths are kept, and each reference is shown
once more, one step of rounding away, since an angle says nothing where features all but vanish
(`psyprobe.analysis.direction`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from operator import length_hint
from time import perf_counter
from typing import Any

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.analysis.direction import angle_status
from psyprobe.files.output import digest, digest_of_names
from psyprobe.light.display import Display
from psyprobe.observers import load_observer
from psyprobe.observers.registry import loaded_as
from psyprobe.probes.clips import DisplayedClips, clip_answers
from psyprobe.probes.displayed_images import (
    DisplayedImages,
    drawn_in_turn,
    mirroring,
    presented,
    show,
)
from psyprobe.probes.feature_distances import (
    LENGTH,
    by_pixel,
    features,
    keep_freed_memory,
    lengths_of,
    plain,
    respond,
    tells_by_part,
)
from psyprobe.running.protocol import Answered, Batch, Question, RunRecord
from psyprobe.running.schedule import run_attributes
from psyprobe.running.store import Store
from psyprobe.stimulus import Specification


@dataclass(frozen=True)
class PairImages:
    """The images of one batch of pairs: tests, references, and which belong to each other."""

    #: In their order, each of one image or of more along one axis; of clips each of one.
    tests: tuple[Specification, ...]
    references: tuple[Specification, ...]
    #: Which reference belongs to each test.
    rows: tuple[int, ...]
    display: Display
    measures: tuple[str, ...]
    #: Names of the parameters that the experiment varies.
    levels: tuple[str, ...] = ()


#: Pixels of a batch: 8 images of 224 x 224; on a processor more of them gain nothing.
BATCH_PIXELS = 8 * 224 * 224
#: An accelerator works on so many times more at once.
ACCELERATOR_FACTOR = 16
#: Largest batch.
MOST_IMAGES = 256


def default_batch_size(size: tuple[int, int], device: str) -> int:
    """How many images memory surely holds at once.

    Parameters
    ----------
    size : (int, int)
        Pixels (H, W) of an image.
    device : str
        As on the observer's card: "cpu", "cuda:0".

    Returns
    -------
    int
        At least 1; the same on every machine.

    Examples
    --------
    >>> default_batch_size((224, 224), "cpu"), default_batch_size((1024, 1024), "cuda:0")
    (8, 6)
    """
    factor = 1 if device.startswith("cpu") else ACCELERATOR_FACTOR
    return max(1, min(factor * BATCH_PIXELS // (size[0] * size[1]), MOST_IMAGES))


def answer(observers: Mapping[str, Any], batches: Iterable[Batch]) -> Iterator[Answered]:
    """Show each batch to every observer.

    An answer holds "values": of each layer a list, one value a measure. Where there are features it
    holds "lengths", too: of each layer the length of the test's, of the reference's, and of what
    one step of rounding changes in it.
    """
    keep_freed_memory()
    references = _References()
    elsewhere = any(not observer.card.device.startswith("cpu") for observer in observers.values())
    for together, tests in drawn_in_turn(
        _neighbours(batches), tests_of, lambda: _known(batches), ahead=elsewhere
    ):
        if together[0].work.tests[0].is_clip:
            for batch in together:
                yield from _answer_clips(observers, batch)
            continue
        references.take(together[0].work)
        # The pixels, which stand last, come first: a network's pass leaves little of the images in
        # the cache.
        for name, who in reversed([*observers.items()]):
            for some, shown in [(together, tests)] if by_pixel(who) else _each(together, tests):
                asked = [question for batch in some for question in _asked(batch, name)]
                if any(asked):
                    answers = _compared(name, who, some, shown, references)
                    levels = [values for batch in some for values in _levels_of_tests(batch.work)]
                    for question, each, values in zip(asked, answers, levels, strict=True):
                        if question:
                            yield Answered(question, each, levels=values)


#: Batches that are drawn, and looked at by the pixels, at once: the first images after a network's
#: pass find nothing in the cache and take half as long again.
_DRAWN_TOGETHER = 4
#: Unless these have so many pixels, as those of an accelerator do.
DRAWN_PIXELS = _DRAWN_TOGETHER * BATCH_PIXELS


def _known(batches: Iterable[Batch]) -> bool:
    """Whether more batches are known; a worker, which has no more for now, would lose what it keeps
    by asking.
    """
    return length_hint(batches) > 0


def _neighbours(batches: Iterable[Batch]) -> Iterator[list[Batch]]:
    """Batches that are drawn at once: neighbours with the same references."""
    together: list[Batch] = []
    for batch in batches:
        if together and batch.group != together[0].group:
            yield together
            together = []
        together.append(batch)
        pixels = sum(len(each.work.rows) for each in together) * math.prod(
            batch.work.tests[0].extent
        )
        if len(together) == _DRAWN_TOGETHER or pixels >= DRAWN_PIXELS or not _known(batches):
            yield together
            together = []
    if together:
        yield together


def tests_of(batches: Sequence[Batch]) -> DisplayedImages:
    """The tests of some batches as they are shown; none of clips, which are drawn as their frames
    are taken.
    """
    specs = [test for batch in batches for test in batch.work.tests]
    if specs[0].is_clip:
        return DisplayedImages((), specs[0].shape)
    rows = [row for batch in batches for row in batch.work.rows]
    quarters = mirroring(specs) & mirroring(batches[0].work.references)[rows]
    return show(specs, batches[0].work.display, quarters)


def _each(
    batches: Sequence[Batch], tests: DisplayedImages
) -> Iterator[tuple[Sequence[Batch], DisplayedImages]]:
    """One batch after the other, each with its own tests."""
    start = 0
    for batch in batches:
        stop = start + len(batch.work.rows)
        yield [batch], tests.part(start, stop)
        start = stop


def _asked(batch: Batch, name: str) -> Sequence[Question | None]:
    """What an observer is asked about each test of a batch; of all or of none."""
    return [question for question in batch.questions if question.observer == name] or [None] * len(
        batch.work.rows
    )


def _compared(
    name: str, who: Any, batches: Sequence[Batch], tests: DisplayedImages, references: _References
) -> list[dict[str, Any]]:
    """What an observer answers about each test of some batches."""
    work: PairImages = batches[0].work
    rows = [row for batch in batches for row in batch.work.rows]
    of_references = references.lengths(name, who)
    measures = work.measures if of_references is None else (*work.measures, LENGTH)
    told = []
    start = 0
    for drive in tests.pieces if tells_by_part(who, measures) else [tests.drive]:
        by_quarter = tests.by_quarter(drive)
        own = rows[start : start + len(drive)]
        known, places = references.features(name, who, own, by_quarter=by_quarter)
        light = presented(drive, work.display, who.card.ability)
        ppd = work.tests[0].ppd
        told.append(
            respond(who, light, known, places, measures, ppd=ppd, parts=4 if by_quarter else 1)
        )
        start += len(drive)
    values = np.concatenate(told)
    if of_references is None:
        return [{"values": each} for each in values.tolist()]
    sizes = np.concatenate([values[..., -1:], of_references[rows]], axis=-1)
    both = zip(plain(values[..., :-1]), sizes.tolist(), strict=True)
    return [{"values": each, "lengths": size} for each, size in both]


class _References:
    """The references of a batch, and what is kept of them of each observer that is asked."""

    def __init__(self) -> None:
        self._names: list[str] = []

    def take(self, work: PairImages) -> None:
        """Those of this batch from now on; they are shown only if they are others."""
        names = [spec.digest for spec in work.references]
        if names == self._names:
            return
        self._names = names
        self._display = work.display
        self._shown = show(work.references, work.display)
        # Where each stands among those that are held by a quarter.
        self._among = np.cumsum(mirroring(work.references)) - 1
        self._features: dict[tuple[str, bool], Mapping[str, FloatArray]] = {}
        self._lengths: dict[str, FloatArray | None] = {}

    def features(
        self, name: str, who: Any, rows: Sequence[int], *, by_quarter: bool
    ) -> tuple[Mapping[str, FloatArray], Sequence[int]]:
        """As `psyprobe.probes.feature_distances.features`, of all or of the quarters, and where in it these
        rows stand.
        """
        if (name, by_quarter) not in self._features:
            drive = self._shown.quarters.drive if by_quarter else self._shown.drive
            self._features[name, by_quarter] = features(
                who, presented(drive, self._display, who.card.ability)
            )
        return self._features[name, by_quarter], self._among[
            list(rows)
        ].tolist() if by_quarter else rows

    def lengths(self, name: str, who: Any) -> FloatArray | None:
        """As `lengths_of`."""
        if name not in self._lengths:
            known, _ = self.features(name, who, (), by_quarter=False)
            self._lengths[name] = lengths_of(who, known, self._shown.drive)
        return self._lengths[name]


def _answer_clips(observers: Mapping[str, Any], batch: Batch) -> Iterator[Answered]:
    """As `answer`, of clips."""
    work: PairImages = batch.work
    for name, who in observers.items():
        asked = [question for question in batch.questions if question.observer == name]
        if not asked:
            continue
        tests, references = (
            DisplayedClips(specs, work.display, who.card) for specs in (work.tests, work.references)
        )
        at_once = default_batch_size(work.tests[0].shape, who.card.device)
        told = clip_answers(
            who, tests, references, work.rows, work.measures, at_once, work.tests[0].ppd
        )
        for question, each, values in zip(asked, told, _levels_of_tests(work), strict=True):
            yield Answered(question, each, levels=values)


def _levels_of_tests(work: PairImages) -> list[dict[str, Any]]:
    """Return the levels of each test of a batch, by name; none of a test without such parameters."""
    levels = []
    for spec in work.tests:
        columns = {
            name: np.broadcast_to(spec.value(name), spec.batch).ravel().tolist()
            for name in work.levels
            if name in spec.levels()
        }
        levels += [
            {name: column[place] for name, column in columns.items()}
            for place in range(math.prod(spec.batch))
        ]
    return levels


def stimulus_digests(layout: Mapping[str, Any]) -> list[str]:
    """Return the digest of what is shown with each pair of a run."""
    return [digest_of_names((*pair, layout["display"])) for pair in layout["pairs"]]


def request_digest(layout: Mapping[str, Any]) -> str:
    """Return the digest of what is asked about each pair of a run."""
    return digest({"measures": layout["measures"]})


def keys_of(layout: Mapping[str, Any], stimuli: Iterable[str], observer: str) -> list[str]:
    """Return the keys of the questions to an observer, whose card has this digest."""
    return Question.keys(stimuli, request_digest(layout), observer, layout["version"])


@dataclass(frozen=True)
class Responses:
    """What a run of pairs gave, for a probe's result."""

    #: Shapes (pairs, layers, measures) and (pairs, measures).
    observer: FloatArray
    baseline: FloatArray
    #: Of the angles, shapes (pairs, layers) and (pairs,), as `angle_status` gives them; None for a
    #: metric.
    status: FloatArray | None
    baseline_status: FloatArray
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
    layout = record.layout
    baseline = store.content(layout["baseline"])
    stimuli = stimulus_digests(layout)

    def read(observer: str) -> tuple[FloatArray, FloatArray | None]:
        keys = keys_of(layout, stimuli, observer)
        found = store.require_answers(keys)
        answers = [found[key] for key in keys]
        values = np.array([each["values"] for each in answers], dtype=np.float64)
        if "lengths" not in answers[0]:
            return values, None
        # Of an observer that is asked beside a metric, the one measure is the angle.
        angle = layout["measures"].index("angular") if "angular" in layout["measures"] else 0
        return values, angle_status(values[..., angle], [each["lengths"] for each in answers])

    values, status = read(record.observer_digest)
    alone = record.observer_digest == layout["baseline"]
    pixels, of_pixels = (values, status) if alone else read(layout["baseline"])
    assert of_pixels is not None  # pixels are features
    return Responses(
        observer=values,
        baseline=pixels[:, 0],
        status=status,
        baseline_status=of_pixels[:, 0],
        layers=tuple(layout.get("layers", record.observer_card["features"])),
        attributes=run_attributes(
            record,
            **{name: layout[name] for name in ("fps", "frames") if name in layout},
            display=store.content(layout["display"]),
            baseline=baseline["name"],
            batch_size=record.grouping["batch_size"],
            **record.outcome,
        ),
    )


#: Pairs that are shown to both.
MOST_PAIRS = 8


def effect_of_format(
    observer: Any,
    pairs: Sequence[tuple[Specification, Specification]],
    first: int,
    display: Display,
) -> dict[str, Any] | None:
    """How far the number format of an encoder moves S_ac.

    Parameters
    ----------
    observer : FeatureObserver
        Who was asked.
    pairs : sequence of (Specification, Specification)
        Test and reference; so many as `MOST_PAIRS` of them are shown, evenly spread.
    first : int
        Index of the first that may be shown.
    display : Display
        What shows them.

    Returns
    -------
    dict or None
        "dtype", "pairs", and of the change of S_ac as a share of that in float32 the "median" and
        the "largest", over pairs and layers; these are None where S_ac is 0 in float32 throughout.
        None where the format is float32, or the network was not loaded by name, so that it is not
        there in float32.
    """
    loaded = loaded_as(observer)
    if loaded is None or loaded[1].get("dtype", "float32") == "float32":
        return None
    name, options = loaded
    exact = load_observer(name, **{**options, "dtype": "float32"})
    places = np.unique(np.linspace(first, len(pairs) - 1, MOST_PAIRS).round().astype(int))
    chosen = [pairs[place] for place in places.tolist()]
    short, whole = (_angles(who, chosen, display) for who in (observer, exact))
    known = (whole > 0) & np.isfinite(short)
    moved = np.abs(short[known] / whole[known] - 1)
    told = {"median": float(np.median(moved)), "largest": float(moved.max())} if moved.size else {}
    return {
        "dtype": observer.card.dtype,
        "pairs": len(chosen),
        "median": None,
        "largest": None,
        **told,
    }


def _angles(
    observer: Any, pairs: Sequence[tuple[Specification, Specification]], display: Display
) -> FloatArray:
    tests, references = (show(specs, display).drive for specs in zip(*pairs, strict=True))
    known = features(observer, references)
    return respond(observer, tests, known, range(len(pairs)), ("angular",), ppd=pairs[0][0].ppd)[
        ..., 0
    ]


#: Seconds an image, by card, size and batch: a suite is timed once.
_SPEEDS: dict[tuple[str, tuple[int, int], int], float] = {}


def seconds_an_image(observer: Any, size: tuple[int, int], ppd: float, batch_size: int) -> float:
    """Time of one batch of grey images after another that warms up, over its images."""
    key = (observer.card.digest, size, batch_size)
    if key not in _SPEEDS:
        grey = np.full((batch_size, *size, 3), 0.5, dtype=np.float32)
        metric = observer.card.ability == "difference"
        ask = (
            partial(observer.difference, grey, grey, ppd=ppd)
            if metric
            else partial(observer.features, grey)
        )
        keep_freed_memory()
        ask()
        start = perf_counter()
        ask()
        _SPEEDS[key] = (perf_counter() - start) / batch_size
    return _SPEEDS[key]
