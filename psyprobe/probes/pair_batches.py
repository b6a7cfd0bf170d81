"""Show batches of pairs to observers, and read their answers.

An encoder gives its features of test and reference, whose distances are measured; a metric gives
the difference itself. Each distinct image is drawn, shown and passed through the observer once a
run; all tests on one reference share its features. The lengths of features are stored, and each
reference is shown once more, one step of rounding away, since an angle says nothing where features
all but vanish (`psyprobe.analysis.direction`).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from operator import length_hint
from time import perf_counter
from typing import Any

import numpy as np

from psyprobe._typing import FloatArray, NamedArrays, Size
from psyprobe.analysis.direction import angle_status
from psyprobe.errors import ConditionWarning
from psyprobe.files.json_types import JsonMapping, JsonObject
from psyprobe.files.output import digest
from psyprobe.light.display import Display
from psyprobe.observers import load_observer
from psyprobe.observers.planes import ImagePlanes
from psyprobe.observers.registry import loaded_as
from psyprobe.probes.clips import DisplayedClips, clip_answers
from psyprobe.probes.displayed_images import draw_in_turn, presented, show
from psyprobe.probes.feature_distances import (
    LENGTH,
    answers_with_lengths,
    features,
    keep_freed_memory,
    measure_lengths,
    respond,
)
from psyprobe.running.database import chunks
from psyprobe.running.protocol import Answered, Batch, Question, RunRecord
from psyprobe.running.schedule import run_attributes
from psyprobe.running.store import Store
from psyprobe.stimulus import Specification


@dataclass(frozen=True)
class PairImages:
    """The images of one batch of pairs: tests, references, and which belong to each other."""

    #: Each holds one image, or several along one axis; clips are held singly.
    tests: tuple[Specification, ...]
    references: tuple[Specification, ...]
    #: The index of each test's reference.
    rows: tuple[int, ...]
    display: Display
    measures: tuple[str, ...]
    #: Names of the parameters that the experiment varies.
    levels: tuple[str, ...] = ()


#: Pixels of a batch: 8 images of 224 x 224; a larger batch gains nothing on a processor.
BATCH_PIXELS = 8 * 224 * 224
#: How many times larger the batches of an accelerator are.
ACCELERATOR_FACTOR = 16
#: Images in the largest batch.
MOST_IMAGES = 256


def default_batch_size(size: Size, device: str) -> int:
    """Choose how many images to process at once, so that memory holds them.

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


def answer(observers: JsonMapping, batches: Iterable[Batch]) -> Iterator[Answered]:
    """Show each batch of image pairs to every observer, and yield an answer for each pair.

    An answer holds "values": for each layer a list, one value a measure. If the observer has
    features, it holds "lengths", too: for each layer the length of the test's feature, that of the
    reference's, and the length of the change that one step of rounding makes in it.
    """
    keep_freed_memory()
    references = _References()
    accelerated = any(
        not observer.card.device.startswith("cpu") for observer in observers.values()
    )
    # Waiting for another batch would cost a worker its progress.
    for batch, tests in draw_in_turn(
        batches, draw_tests, lambda: length_hint(batches) > 0, ahead=accelerated
    ):
        work: PairImages = batch.work
        levels = _test_levels(work)
        # The pixels, which stand last, come first: a network's pass leaves little of the images in
        # the cache.
        for name, observer in reversed([*observers.items()]):
            questions = [
                question for question in batch.questions if question.observer == name
            ]
            if not questions:
                continue
            if tests is None:
                card = observer.card
                answers = clip_answers(
                    observer,
                    DisplayedClips(work.tests, work.display, card),
                    DisplayedClips(work.references, work.display, card),
                    work.rows,
                    work.measures,
                    default_batch_size(work.tests[0].shape, card.device),
                )
            else:
                references.take(work)
                answers = _compare(name, observer, work, tests, references)
            for question, response, test_levels in zip(
                questions, answers, levels, strict=True
            ):
                yield Answered(question, response, levels=test_levels)


def draw_tests(batch: Batch) -> ImagePlanes | None:
    """Draw the tests of a batch; None for clips, whose frames are drawn on access."""
    work: PairImages = batch.work
    return None if work.tests[0].is_clip else show(work.tests, work.display)


def _compare(
    name: str,
    observer: Any,
    work: PairImages,
    tests: ImagePlanes,
    references: _References,
) -> list[JsonObject]:
    """Compare each test of a batch with its reference, and build an observer's answers."""
    reference_features, reference_lengths = references.observe(name, observer)
    measures = work.measures if reference_lengths is None else (*work.measures, LENGTH)
    values = respond(
        observer,
        presented(tests, work.display, observer.card.takes_light),
        reference_features,
        work.rows,
        measures,
        ppd=work.tests[0].ppd,
    )
    if reference_lengths is None:
        return [{"values": test_values} for test_values in values.tolist()]
    lengths = np.concatenate(
        [values[..., -1:], reference_lengths[list(work.rows)]], axis=-1
    )
    return answers_with_lengths(values[..., :-1], lengths)


class _References:
    """The references of a batch as they are shown, and each observer's features of them."""

    def __init__(self) -> None:
        self._names: list[str] = []

    def take(self, work: PairImages) -> None:
        """Draw the references of this batch, unless they are those of the last one."""
        names = [spec.digest for spec in work.references]
        if names == self._names:
            return
        self._names = names
        self._display = work.display
        self._drive = show(work.references, work.display)
        self._observed: dict[str, tuple[NamedArrays, FloatArray | None]] = {}

    def observe(
        self, name: str, observer: Any
    ) -> tuple[NamedArrays, FloatArray | None]:
        """Compute an observer's features of the references and their lengths, once.

        Lengths are those of `measure_lengths`.
        """
        if name not in self._observed:
            images = presented(self._drive, self._display, observer.card.takes_light)
            reference_features = features(observer, images)
            lengths = measure_lengths(observer, reference_features, self._drive)
            self._observed[name] = (reference_features, lengths)
        return self._observed[name]


def _test_levels(work: PairImages) -> list[JsonObject]:
    """Return the levels of each test of a batch, by name."""
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


def stimulus_digest(layout: JsonMapping, pair: int) -> str:
    """Compute the digest of a pair of a run, the display included."""
    return digest([*layout["pairs"][pair], layout["display"]])


def request_digest(layout: JsonMapping) -> str:
    """Compute the digest of what a run asks about each pair: its measures."""
    return digest({"measures": layout["measures"]})


def pair_stimuli(layout: JsonMapping) -> Iterator[str]:
    """Compute the digest of each pair of a run in order."""
    return (stimulus_digest(layout, pair) for pair in range(len(layout["pairs"])))


def question_keys(
    layout: JsonMapping, observer: str, stimuli: Iterable[str]
) -> list[str]:
    """Compute the keys of questions about pairs to an observer, by its card's digest."""
    request = request_digest(layout)
    return [*Question.keys(stimuli, request, observer, layout["version"])]


@dataclass(frozen=True)
class Responses:
    """The responses of a finished run of pairs, for a probe's result."""

    #: Shapes (pairs, layers, measures) and (pairs, measures).
    observer: FloatArray
    baseline: FloatArray
    #: Statuses of the angles as `angle_status` gives them, shapes (pairs, layers) and (pairs,);
    #: None for a metric.
    status: FloatArray | None
    baseline_status: FloatArray
    layers: tuple[str, ...]
    #: Provenance of the result.
    attributes: JsonMapping = field(default_factory=dict)

    def at(self, pairs: Any) -> tuple[FloatArray, FloatArray]:
        """Select the responses of observer and baseline to a grid of pairs.

        Layers and measures, or measures alone, come before the axes of the grid.
        """
        indices = np.array(pairs)
        observer = np.moveaxis(self.observer[indices], (-2, -1), (0, 1))
        return observer, np.moveaxis(self.baseline[indices], -1, 0)


def responses(record: RunRecord, store: Store) -> Responses:
    """Read the responses of a finished run from the store.

    Raises
    ------
    StoreError
        A question has no answer.
    """
    layout = record.layout
    baseline = store.content(layout["baseline"])
    is_baseline = record.observer_digest == layout["baseline"]
    own_parts = []
    pixel_parts = []
    for stimuli in chunks(pair_stimuli(layout)):
        keys = question_keys(layout, record.observer_digest, stimuli)
        own_parts.append(_read_columns(store, keys))
        if not is_baseline:
            # Every observer of an experiment is compared with the same pixels.
            keys = question_keys(layout, layout["baseline"], stimuli)
            name = digest([store.label, keys])
            read = partial(_read_columns, store, keys)
            pixel_parts.append(store.remember(name, read))
    values, status = _join_columns(record, own_parts)
    pixels, pixel_status = (
        (values, status) if is_baseline else _join_columns(record, pixel_parts)
    )
    assert pixel_status is not None  # the pixels have features, unlike a metric
    return Responses(
        observer=values,
        baseline=pixels[:, 0],
        status=status,
        baseline_status=pixel_status[:, 0],
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


def _read_columns(store: Store, keys: Sequence[str]) -> dict[str, FloatArray]:
    """Read answers to pairs as columns, by their names."""
    answers = [*store.iterate_answers(keys)]
    return {
        name: np.array([answer[name] for answer in answers], dtype=np.float64)
        for name in ("values", "lengths")
        if name in answers[0]
    }


def _join_columns(
    record: RunRecord, parts: Sequence[NamedArrays]
) -> tuple[FloatArray, FloatArray | None]:
    """Join columns into values and statuses of angles; None for a metric, which has no features."""
    values = np.concatenate([part["values"] for part in parts])
    if "lengths" not in parts[0]:
        return values, None
    lengths = np.concatenate([part["lengths"] for part in parts])
    layout = record.layout
    measures = layout["measures"]
    if "l2" in measures:
        change = values[..., measures.index("l2")]
        _warn_of_state(record.observer_card, change, lengths, layout["noise_floor"])
    # The one measure of pixels that are shown beside a metric is the angle.
    angle = measures.index("angular") if "angular" in measures else 0
    return values, angle_status(values[..., angle], lengths)


#: The largest change of a feature, as a share of the longest, that rounding makes in a network when
#: it sees an image in another batch; and that in short formats.
_REPEATABLE = 1e-3
_REPEATABLE_BY_DTYPE = {"float16": 0.1, "bfloat16": 0.1}


def _warn_of_state(
    card: JsonMapping, change: FloatArray, lengths: FloatArray, repeated: Sequence[int]
) -> None:
    """Warn where images that were shown in two batches gave two features.

    `change` is the l2 distance of each pair, (pairs, layers); `repeated` are pairs of equal images.
    """
    longest = lengths[..., :2].max(axis=(0, 2))
    share = np.max(change[repeated] / np.where(longest > 0, longest, 1.0))
    if share > _REPEATABLE_BY_DTYPE.get(card["dtype"], _REPEATABLE):
        warnings.warn(
            f"{card['name']}: the same image gave features that differ by {share:.2g} of the "
            "longest when it was shown again, so its responses depend on the images beside or "
            "before it: set its modules to evaluation mode (module.eval()), keep no state in a "
            "function, then measure again under a new version=",
            ConditionWarning,
            stacklevel=2,
        )


#: How many pairs are shown in both number formats.
MOST_PAIRS = 8


def effect_of_format(
    observer: Any,
    pairs: Sequence[tuple[Specification, Specification]],
    first: int,
    display: Display,
) -> JsonObject | None:
    """Compute how far a network's number format moves angular distances.

    Parameters
    ----------
    observer : FeatureObserver
        The encoder as it was loaded for the run.
    pairs : sequence of (Specification, Specification)
        Test and reference; up to `MOST_PAIRS` of them are shown, evenly spread.
    first : int
        Index of the first pair that may be shown.
    display : Display
        The display that shows them.

    Returns
    -------
    dict or None
        "dtype", "pairs", and the "median" and the "largest" change of S_ac over pairs and layers,
        as a share of S_ac in float32; these two are None where S_ac is 0 in float32 throughout.
        None where the format is float32, or the network was not loaded by name, so that it cannot
        be loaded in float32.
    """
    loaded = loaded_as(observer)
    if loaded is None or loaded[1].get("dtype", "float32") == "float32":
        return None
    name, options = loaded
    exact = load_observer(name, **{**options, "dtype": "float32"})
    places = np.unique(
        np.linspace(first, len(pairs) - 1, MOST_PAIRS).round().astype(int)
    )
    sample = [pairs[place] for place in places.tolist()]
    short_angles = _angles(observer, sample, display)
    exact_angles = _angles(exact, sample, display)
    comparable = (exact_angles > 0) & np.isfinite(short_angles)
    change = np.abs(short_angles[comparable] / exact_angles[comparable] - 1)
    return {
        "dtype": observer.card.dtype,
        "pairs": len(sample),
        "median": float(np.median(change)) if change.size else None,
        "largest": float(change.max()) if change.size else None,
    }


def _angles(
    observer: Any,
    pairs: Sequence[tuple[Specification, Specification]],
    display: Display,
) -> FloatArray:
    """Compute the angular distance between an observer's features of each pair of stimuli."""
    tests, references = (show(specs, display) for specs in zip(*pairs, strict=True))
    reference_features = features(observer, references)
    rows = range(len(pairs))
    ppd = pairs[0][0].ppd
    return respond(observer, tests, reference_features, rows, ("angular",), ppd=ppd)[
        ..., 0
    ]


#: Seconds an image, by card, size and batch: a suite is timed once.
_SECONDS: dict[tuple[str, Size, int], float] = {}


def seconds_an_image(observer: Any, size: Size, ppd: float, batch_size: int) -> float:
    """Time an observer on a batch of grey images, s an image."""
    key = (observer.card.digest, size, batch_size)
    if key not in _SECONDS:
        grey = np.full((batch_size, *size, 3), 0.5, dtype=np.float32)
        keep_freed_memory()
        for _ in range(2):
            start = perf_counter()
            if observer.card.ability == "difference":
                observer.difference(grey, grey, ppd=ppd)
            else:
                observer.features(grey)
        _SECONDS[key] = (perf_counter() - start) / batch_size
    return _SECONDS[key]
