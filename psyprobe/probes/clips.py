"""Show clips to observers: whole to observers of clips, frame by frame to all others.

An encoder of images is shown every frame. Its features are compared as one long vector of all
frames, and also as their mean over the clip (":mean" behind the name of the layer), which ignores
time. A few frames at a time are drawn, shown and discarded, so that memory does not grow with the
length of a clip.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from time import perf_counter
from typing import Any

import numpy as np

from psyprobe._typing import FloatArray, NamedArrays
from psyprobe.analysis.distance import SummedDistances, distances
from psyprobe.analysis.measures import DIFFERENCE
from psyprobe.errors import InputError
from psyprobe.experiment import Experiment
from psyprobe.files.json_types import JsonObject
from psyprobe.light.display import Display
from psyprobe.observers import Card
from psyprobe.observers.planes import ImagePlanes
from psyprobe.probes.displayed_images import one_step_away, presented
from psyprobe.probes.feature_distances import (
    GROWING,
    LENGTH,
    answers_with_lengths,
    differences,
    equal_planes,
    features,
    own_array,
)
from psyprobe.stimulus import Specification

#: Suffix of a layer's name that stands for the mean of its features over frames.
MEAN = ":mean"
#: The measure that only still images have.
_STILL = "angular_float32"


def clip_layout(
    specification: Specification, experiment: Experiment, card: Card
) -> JsonObject:
    """Build the entries of a run's layout that only clips have, refusing unfit measures."""
    if experiment.score.measure == _STILL:
        raise InputError(
            f"{experiment.name}: score.measure is {_STILL!r}, the published arithmetic of still "
            "images; name 'angular' or another for clips"
        )
    layers = list(card.features)
    if card.ability == "features" and not card.clips:
        layers += [name + MEAN for name in layers]
    return {"fps": specification.fps, "frames": specification.frames, "layers": layers}


@dataclass(frozen=True)
class DisplayedClips:
    """Clips of one length as an observer gets them; see `psyprobe.observers.protocol.Clips`."""

    specs: tuple[Specification, ...]
    display: Display
    #: The observer's card.
    card: Card
    #: Whether about half of the pixels are moved by one step of rounding.
    moved: bool = False

    @property
    def shape(self) -> tuple[int, int, int, int, int]:
        """The shape (N, T, H, W, 3) of all frames."""
        first = self.specs[0]
        return (len(self.specs), first.frames, *first.shape, 3)

    @property
    def fps(self) -> float:
        """The frames a second."""
        return self.specs[0].fps

    @property
    def still(self) -> bool:
        """Tell whether all frames of each clip are the same."""
        return all(spec.steady for spec in self.specs)

    @cached_property
    def _stacks(self) -> list[Specification]:
        """The clips, neighbours that differ only in numbers joined to be drawn in one call."""
        groups = [
            [*neighbours] for _, neighbours in groupby(self.specs, Specification.family)
        ]
        return [group[0].joined(group) for group in groups]

    def frames(self, start: int, stop: int) -> FloatArray:
        """Draw frames `start` to `stop` (exclusive) of each clip, shape (N, frames, H, W, 3)."""
        frames = self.images(range(start, stop))
        return frames.reshaped(len(self.specs), stop - start).rgb

    def images(self, frames: range) -> ImagePlanes:
        """Draw some frames of all clips, one clip after another, shape (N * frames, H, W)."""
        planes = []
        for stack in self._stacks:
            stills = stack.stills(frames.start, frames.stop).draw()
            planes.append(ImagePlanes.of(np.asarray(self.display.encode(stills))))
        drive = ImagePlanes.joined(planes).reshaped(-1)
        if self.moved:
            drive = one_step_away(drive, self.card)
        return presented(drive, self.display, self.card.takes_light)

    def of(self, rows: Sequence[int]) -> DisplayedClips:
        """Select clips by index."""
        return replace(self, specs=tuple(self.specs[i] for i in rows))


def clip_answers(
    observer: Any,
    tests: DisplayedClips,
    references: DisplayedClips,
    rows: Sequence[int],
    measures: Sequence[str],
    frames_at_once: int,
) -> list[JsonObject]:
    """Show test and reference clips to an observer, and build an answer about each test.

    Parameters
    ----------
    observer : Observer
        An observer with features or differences of clips or of images.
    tests, references : DisplayedClips
        Clips as the observer gets them.
    rows : sequence of int
        Index of each test's reference.
    measures : sequence of str
        Names of distances.
    frames_at_once : int
        Frames that are passed through the observer together.

    Returns
    -------
    list of dict
        Answers as `psyprobe.probes.pair_batches.answer` describes them.
    """
    if observer.card.ability == "difference":
        compare = _ask_clip_differences if observer.card.clips else _mean_differences
        responses = compare(observer, tests, references.of(rows), frames_at_once)
        if responses.shape != (len(rows),) or not np.isfinite(responses).all():
            raise InputError(
                f"observer {observer.card.name} gives differences of shape {responses.shape} "
                f"for {len(rows)} clips, or NaN or infinity among them; wanted are {len(rows)} "
                "finite numbers"
            )
        return [{"values": [[value]]} for value in responses.tolist()]
    measure = _clip_distances if observer.card.clips else _frame_distances
    every_reference = range(len(references.specs))
    moved_references = replace(references, moved=True)
    test_distances = measure(observer, tests, references, rows, frames_at_once)
    rounding_distances = measure(
        observer, moved_references, references, every_reference, frames_at_once
    )
    self_distances = measure(
        observer, references, references, every_reference, frames_at_once
    )
    # The pixels, as the baseline of a metric, give their angle for its one measure.
    names = ["angular" if name == DIFFERENCE else name for name in measures]
    values = []
    lengths = []
    for layer, layer_distances in test_distances.items():
        values.append([layer_distances[name] for name in names])
        reference_length = self_distances[layer][LENGTH][list(rows)]
        step = rounding_distances[layer]["l2"][list(rows)]
        lengths.append([layer_distances[LENGTH], reference_length, step])
    # Layers, measures and tests become tests, layers and measures.
    return answers_with_lengths(
        np.moveaxis(np.array(values), -1, 0), np.moveaxis(np.array(lengths), -1, 0)
    )


def seconds_a_clip(observer: Any, spec: Specification, display: Display) -> float:
    """Time an observer on one clip, s."""
    clip = DisplayedClips((spec,), display, observer.card)
    start = perf_counter()
    if observer.card.ability == "difference":
        observer.clip_difference(clip, clip, ppd=spec.ppd)
    else:
        observer.clip_features(clip)
    return perf_counter() - start


def _groups(count: int, size: int, frames_at_once: int) -> Iterator[range]:
    """Iterate over groups of clips or frames that are shown to an observer together.

    Each of them has `size` images.
    """
    step = max(1, frames_at_once // size)
    return (range(count)[start : start + step] for start in range(0, count, step))


def _ask_clip_differences(
    observer: Any,
    tests: DisplayedClips,
    references: DisplayedClips,
    frames_at_once: int,
) -> FloatArray:
    """Ask an observer how much test and reference clips differ, a few frames at a time."""
    ppd = tests.specs[0].ppd
    parts = [
        own_array(
            observer,
            observer.clip_difference(tests.of(group), references.of(group), ppd=ppd),
        )
        for group in _groups(*tests.shape[:2], frames_at_once)
    ]
    return np.concatenate(parts)


def _mean_differences(
    observer: Any,
    tests: DisplayedClips,
    references: DisplayedClips,
    frames_at_once: int,
) -> FloatArray:
    """Average an image metric's difference over the frames of each clip."""
    count = len(tests.specs)
    total: FloatArray = np.zeros(count)
    for group in _groups(tests.shape[1], count, frames_at_once):
        frame_differences = differences(
            observer, tests.images(group), references.images(group), tests.specs[0].ppd
        )
        total += frame_differences.reshape(count, -1).sum(axis=1)
    return total / tests.shape[1]


def _clip_distances(
    observer: Any,
    tests: DisplayedClips,
    references: DisplayedClips,
    rows: Sequence[int],
    frames_at_once: int,
) -> Mapping[str, NamedArrays]:
    """Compute distances between an observer's features of whole clips."""

    def compute_features(clips: DisplayedClips) -> dict[str, FloatArray]:
        groups = _groups(*clips.shape[:2], frames_at_once)
        parts = []
        for group in groups:
            group_features = observer.clip_features(clips.of(group))
            parts.append(
                {layer: own_array(observer, group_features[layer]) for layer in layers}
            )
        return {
            layer: np.concatenate([part[layer] for part in parts]) for layer in layers
        }

    layers = observer.card.features
    test_features = compute_features(tests)
    reference_features = compute_features(references)
    return {
        layer: distances(test_features[layer], reference_features[layer][list(rows)])
        for layer in layers
    }


def _frame_distances(
    observer: Any,
    tests: DisplayedClips,
    references: DisplayedClips,
    rows: Sequence[int],
    frames_at_once: int,
) -> Mapping[str, NamedArrays]:
    """Compute distances between features of frames, and between their means over frames.

    They are returned by layer (with `MEAN` for means) and measure.
    """
    sums = {layer: SummedDistances() for layer in observer.card.features}
    all_still = tests.still and references.still
    repeats = tests.shape[1] if all_still else 1
    planes = 1
    reference_features = {}
    if references.still:
        reference_features = _frame_features(observer, references, range(1))
    groups = [range(1)]
    if not all_still:
        groups = [*_groups(tests.shape[1], len(tests.specs), frames_at_once)]
    for group in groups:
        if not references.still:
            reference_features = _frame_features(observer, references, group)
        test_features = _frame_features(observer, tests, group)
        for layer, layer_sum in sums.items():
            test, planes = test_features[layer]
            reference, reference_planes = reference_features[layer]
            if (
                planes != reference_planes
            ):  # colour beside grey, of which one plane stands for all
                test = np.tile(test, planes)
                reference = np.tile(reference, reference_planes)
                planes = 1
            layer_sum.add(test, reference[list(rows)], repeats)
    by_layer = {layer: layer_sum.distances() for layer, layer_sum in sums.items()}
    by_layer |= {
        layer + MEAN: total.distances_of_means() for layer, total in sums.items()
    }
    return {
        layer: {
            measure: value * planes ** GROWING.get(measure, 0.0)
            for measure, value in values.items()
        }
        for layer, values in by_layer.items()
    }


def _frame_features(
    observer: Any, clips: DisplayedClips, frames: range
) -> dict[str, tuple[FloatArray, int]]:
    """Compute features of some frames, shape (N, frames, D), and their number of equal planes."""
    images = clips.images(frames)
    planes = equal_planes(observer, images)
    shape = (len(clips.specs), len(frames), -1)
    return {
        name: (np.asarray(layer_features).reshape(shape), planes)
        for name, layer_features in features(observer, images).items()
    }
