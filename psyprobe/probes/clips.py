"""Clips put to observers: whole to those that take clips, frame by frame to all others.

An encoder that takes images is asked about every frame. Its features are compared as one long
vector, all frames after each other, and besides as their mean over the clip (":mean" behind the
name of the layer), which knows nothing of time. Frames are drawn, shown and forgotten a few at a
time, so that memory does not grow with the length of a clip.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from time import perf_counter
from typing import Any

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.analysis.distance import SummedDistances, distances
from psyprobe.errors import InputError
from psyprobe.experiment import Experiment
from psyprobe.light.display import Display
from psyprobe.observers import Card
from psyprobe.observers.planes import ImagePlanes
from psyprobe.probes.displayed_images import one_step_away, presented
from psyprobe.probes.feature_distances import DIFFERENCE, GROWING, LENGTH, equal_planes, features
from psyprobe.stimulus import Specification

#: Behind the name of a layer: of its features the mean over frames.
MEAN = ":mean"
#: A measure of still images alone.
_STILL = "angular_float32"


def clip_layout(shown: Specification, experiment: Experiment, card: Card) -> dict[str, Any]:
    """What the layout of a run says of clips besides; `InputError` where the observer cannot be
    asked about them.
    """
    if experiment.score.measure == _STILL:
        raise InputError(
            f"{experiment.name}: score.measure is {_STILL!r}, the published arithmetic of still "
            "images; name 'angular' "
            "or another for clips"
        )
    layers = list(card.features)
    if card.ability == "features" and not card.clips:
        layers += [name + MEAN for name in layers]
    return {"fps": shown.fps, "frames": shown.frames, "layers": layers}


@dataclass(frozen=True)
class DisplayedClips:
    """Clips of one length as an observer gets them; see `psyprobe.observers.protocol.Clips`."""

    specs: tuple[Specification, ...]
    display: Display
    #: Of the observer.
    card: Card
    #: Whether about half of the pixels are one step of rounding away.
    moved: bool = False

    @property
    def shape(self) -> tuple[int, int, int, int, int]:
        """(N, T, H, W, 3)."""
        first = self.specs[0]
        return (len(self.specs), first.frames, *first.shape, 3)

    @property
    def fps(self) -> float:
        """Frames a second."""
        return self.specs[0].fps

    @property
    def still(self) -> bool:
        """Whether all frames of each clip are the same."""
        return all(spec.steady for spec in self.specs)

    @cached_property
    def _stacks(self) -> list[Specification]:
        """Neighbours that differ in numbers only are drawn in one call."""
        return [
            same[0].joined(same)
            for _, neighbours in groupby(self.specs, Specification.family)
            if (same := [*neighbours])
        ]

    def frames(self, start: int, stop: int) -> FloatArray:
        """Give some frames of each clip, shape (N, stop - start, H, W, 3); grey as a view of one
        plane.
        """
        frames = self.images(start, stop)
        return frames.reshaped(len(self.specs), stop - start).rgb

    def images(self, start: int, stop: int) -> ImagePlanes:
        """Give some frames of all clips after each other, shape (N * (stop - start), H, W)."""
        drives = [
            np.asarray(self.display.encode(stack.stills(start, stop).draw()))
            for stack in self._stacks
        ]
        drive = ImagePlanes.joined([ImagePlanes.of(each) for each in drives]).reshaped(-1)
        if self.moved:
            drive = one_step_away(drive, self.card)
        return presented(drive, self.display, self.card.ability)

    def of(self, rows: Sequence[int]) -> DisplayedClips:
        """Those at some places."""
        return DisplayedClips(
            tuple(self.specs[i] for i in rows), self.display, self.card, self.moved
        )


def clip_answers(
    who: Any,
    tests: DisplayedClips,
    references: DisplayedClips,
    rows: Sequence[int],
    measures: Sequence[str],
    at_once: int,
    ppd: float,
) -> list[dict[str, Any]]:
    """What an observer answers about clips, as `psyprobe.probes.pair_batches.answer` gives it.

    Parameters
    ----------
    who : Observer
        With features or differences, of clips or of images.
    tests, references : DisplayedClips
        As it is shown them.
    rows : sequence of int
        Which reference belongs to each test.
    measures : sequence of str
        Which distances.
    at_once : int
        Frames that it looks at together.
    ppd : float
        Pixels per degree.
    """
    if who.card.ability == "difference":
        compare = _whole_difference if who.card.clips else _mean_difference
        return [
            {"values": [[value]]}
            for value in compare(who, tests, references.of(rows), at_once, ppd).tolist()
        ]
    ask = _whole_features if who.card.clips else _frame_features
    found = ask(who, tests, references, rows, at_once)
    moved = DisplayedClips(references.specs, references.display, references.card, moved=True)
    rounding = ask(who, moved, references, range(len(references.specs)), at_once)
    itself = ask(who, references, references, range(len(references.specs)), at_once)
    # Beside a metric the pixels are asked for its one measure: their angle.
    names = ["angular" if name == DIFFERENCE else name for name in measures]
    values = np.stack(
        [np.stack([each[name] for name in names], axis=-1) for each in found.values()], axis=1
    )
    sizes = np.stack(
        [
            np.stack(
                [
                    found[name][LENGTH],
                    itself[name][LENGTH][list(rows)],
                    rounding[name]["l2"][list(rows)],
                ],
                axis=-1,
            )
            for name in found
        ],
        axis=1,
    )
    told = values.astype(object)
    told[np.isnan(values)] = None
    return [
        {"values": each, "lengths": size}
        for each, size in zip(told.tolist(), sizes.tolist(), strict=True)
    ]


def seconds_a_clip(who: Any, spec: Specification, display: Display) -> float:
    """Time that an observer of clips takes for one."""
    clip = DisplayedClips((spec,), display, who.card)
    start = perf_counter()
    if who.card.ability == "difference":
        who.clip_difference(clip, clip, ppd=spec.ppd)
    else:
        who.clip_features(clip)
    return perf_counter() - start


def _together(clips: DisplayedClips, at_once: int) -> Iterator[slice]:
    """Clips that an observer which takes them whole looks at together."""
    count = len(clips.specs)
    each = max(1, at_once // clips.shape[1])
    return (slice(start, min(start + each, count)) for start in range(0, count, each))


def _chunks(clips: DisplayedClips, at_once: int) -> Iterator[tuple[int, int]]:
    """First and last frames that an observer of images looks at together."""
    frames = clips.shape[1]
    each = max(1, at_once // len(clips.specs))
    return ((start, min(start + each, frames)) for start in range(0, frames, each))


def _whole_difference(
    who: Any, tests: DisplayedClips, references: DisplayedClips, at_once: int, ppd: float
) -> FloatArray:
    places = range(len(tests.specs))
    found = [
        who.clip_difference(tests.of(places[some]), references.of(places[some]), ppd=ppd)
        for some in _together(tests, at_once)
    ]
    return _checked(who, np.concatenate(found), len(tests.specs))


def _mean_difference(
    who: Any, tests: DisplayedClips, references: DisplayedClips, at_once: int, ppd: float
) -> FloatArray:
    """Of a metric of images: the mean over frames."""
    total: FloatArray = np.zeros(len(tests.specs))
    for start, stop in _chunks(tests, at_once):
        both = (each.images(start, stop).rgb for each in (tests, references))
        total += (
            np.asarray(who.difference(*both, ppd=ppd)).reshape(len(tests.specs), -1).sum(axis=1)
        )
    return _checked(who, total / tests.shape[1], len(tests.specs))


def _checked(who: Any, found: FloatArray, count: int) -> FloatArray:
    if found.shape != (count,) or not np.isfinite(found).all():
        raise InputError(
            f"observer {who.card.name} gives differences of shape {found.shape} for {count} "
            "clips, or NaN or infinity "
            f"among them; wanted are {count} finite numbers"
        )
    return found


def _whole_features(
    who: Any, tests: DisplayedClips, references: DisplayedClips, rows: Sequence[int], at_once: int
) -> Mapping[str, Mapping[str, FloatArray]]:
    def seen(clips: DisplayedClips) -> dict[str, FloatArray]:
        places = range(len(clips.specs))
        parts = [who.clip_features(clips.of(places[some])) for some in _together(clips, at_once)]
        return {name: np.concatenate([part[name] for part in parts]) for name in who.card.features}

    one = seen(tests)
    other = seen(references)
    return {name: distances(one[name], other[name][list(rows)]) for name in who.card.features}


def _frame_features(
    who: Any, tests: DisplayedClips, references: DisplayedClips, rows: Sequence[int], at_once: int
) -> Mapping[str, Mapping[str, FloatArray]]:
    """Distances of each layer of an observer of images, of all frames after each other and of their
    mean.
    """
    sums = {name: SummedDistances() for name in who.card.features}
    both_still = tests.still and references.still
    planes = 1
    kept = _seen(who, references, 0, 1) if references.still else None
    for start, stop in [(0, 1)] if both_still else _chunks(tests, at_once):
        compared = _seen(who, references, start, stop) if kept is None else kept
        looked_at = _seen(who, tests, start, stop)
        for name, each in sums.items():
            (one, planes) = looked_at[name]
            (other, others) = compared[name]
            if planes != others:  # colour beside grey, of which one plane stands for all
                one = np.tile(one, planes)
                other = np.tile(other, others)
                planes = 1
            each.add(one, other[list(rows)], tests.shape[1] if both_still else 1)
    found = {name: each.distances() for name, each in sums.items()}
    found |= {name + MEAN: each.distances_of_means() for name, each in sums.items()}
    return {
        name: {
            measure: value * planes ** GROWING.get(measure, 0.0) for measure, value in each.items()
        }
        for name, each in found.items()
    }


def _seen(
    who: Any, clips: DisplayedClips, start: int, stop: int
) -> dict[str, tuple[FloatArray, int]]:
    """Features of some frames of each clip, shape (N, frames, D), and for how many equal planes
    they stand.
    """
    images = clips.images(start, stop)
    planes = equal_planes(who, images)
    shape = (len(clips.specs), stop - start, -1)
    return {
        name: (np.asarray(rows).reshape(shape), planes)
        for name, rows in features(who, images).items()
    }
