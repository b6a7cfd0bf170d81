"""Measure how far test images are from their references, for one observer.

The response of an encoder is a distance between features; that of a metric, which compares two
images itself, is its difference. `detection` and `matching` measure grids of these responses.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from psyprobe._typing import FloatArray, NamedArrays
from psyprobe.analysis.distance import (
    MEASURES,
    angular_distance_float32,
    distances,
    lengths,
)
from psyprobe.analysis.measures import DIFFERENCE
from psyprobe.errors import InputError
from psyprobe.experiment.page_errors import in_file
from psyprobe.files.json_types import JsonObject
from psyprobe.observers import DifferenceObserver, FeatureObserver
from psyprobe.observers.images import Pixels, as_numpy
from psyprobe.observers.planes import ImagePlanes
from psyprobe.probes.displayed_images import one_step_away

if TYPE_CHECKING:
    from typing_extensions import TypeIs


def keep_freed_memory() -> None:
    """Set glibc to keep up to 512 MiB of freed memory for the next batch.

    By default it maps each large block anew and returns it as soon as it is free, so that the
    system clears the activations of a network page by page in every pass: half the time of
    EfficientNet-Lite0 in batches of 8.
    """
    mallopt = (
        getattr(ctypes.CDLL(None), "mallopt", None) if os.name == "posix" else None
    )
    if mallopt is None:
        return
    mallopt(_TRIM_THRESHOLD, _RETAINED_BYTES)
    if not mallopt(_MMAP_THRESHOLD, _RETAINED_BYTES):
        # Versions that refuse so much accept 32 MiB.
        mallopt(_MMAP_THRESHOLD, 32 << 20)


_RETAINED_BYTES = 512 << 20
#: Numbers of two options, from malloc.h.
_TRIM_THRESHOLD = -1
_MMAP_THRESHOLD = -3


#: The length of the test's feature, which tells whether the feature has a direction.
LENGTH = "length"


def features(
    observer: FeatureObserver | DifferenceObserver, images: ImagePlanes
) -> NamedArrays:
    """Compute an observer's features of images; for a metric, return the images themselves.

    Parameters
    ----------
    observer : FeatureObserver or DifferenceObserver
        The observer.
    images : ImagePlanes
        Images as `presented` returns them.

    Returns
    -------
    mapping of str to array, shape (n, ...)
        One entry for each name on the observer's card; the features of pixels cover one plane of
        grey images.

    Raises
    ------
    InputError
        The observer returns other names or other numbers of features than its card says.
    """
    if not _has_features(observer):
        return dict.fromkeys(observer.card.features, images.rgb)
    pixels = images.planes
    if not by_pixel(observer):
        # An observer may work in place, which grey views refuse.
        pixels = images.rgb if images.is_grey else pixels.copy()
    features_by_layer = observer.features(pixels)
    if set(features_by_layer) != set(observer.card.features):
        raise InputError(
            f"observer {observer.card.name} gives features {', '.join(features_by_layer)}, and "
            f"its card says {', '.join(observer.card.features)}; make them agree"
        )
    arrays = {
        name: own_array(observer, features_by_layer[name])
        for name in observer.card.features
    }
    for name, array in arrays.items():
        if array.ndim != 2 or len(array) != len(images):
            raise InputError(
                f"observer {observer.card.name} gives features {name} of shape {array.shape} "
                f"for {len(images)} images; they must have shape ({len(images)}, D)"
            )
    return arrays


def own_array(observer: Any, values: Any) -> FloatArray:
    """Copy an observer's output, since its next call may write to the same memory.

    What holds no real numbers is an InputError.
    """
    if by_pixel(observer):
        # Pixels are the images themselves, to which nobody writes.
        return np.asarray(values)
    name = observer.card.name
    array = np.array(as_numpy(values, name))
    if array.dtype.kind not in "fiu":
        raise InputError(
            f"observer {name} returned values of format {array.dtype}; they must be real numbers"
        )
    return array


def respond(
    observer: FeatureObserver | DifferenceObserver,
    images: ImagePlanes,
    references: NamedArrays,
    rows: Sequence[int],
    measures: Sequence[str] = MEASURES,
    *,
    ppd: float,
) -> FloatArray:
    """Compute how far test images are from their references for an observer.

    Parameters
    ----------
    observer : FeatureObserver or DifferenceObserver
        The observer.
    images : ImagePlanes
        Test images, as `presented` returns them.
    references : mapping of str to array, shape (m, ...)
        Features of the reference images, as `features` returns them.
    rows : sequence of int, length n
        Index of each test's reference.
    measures : sequence of str
        Names of distances, as `distances` has them, "angular_float32", "difference" (a metric's
        response, or the angular distance of features) or "length" (of the test's feature).
    ppd : float
        Pixels per degree of the images.

    Returns
    -------
    array, shape (n, layers, measures), float64
        Distances in the order of the card's features and of `measures`; an angle with a feature of
        zeros is NaN.

    Raises
    ------
    InputError
        Features or differences are not finite.
    """
    if not _has_features(observer):
        (layer,) = observer.card.features
        # Grey light stays a view of one plane, which a metric may take at a third of the cost.
        reference_images = ImagePlanes.of(references[layer])[list(rows)]
        return differences(observer, images, reference_images, ppd)[:, None, None]
    tests = features(observer, images)
    equal_plane_count = equal_planes(observer, images)
    reference_rows = list(rows[:1] if len(set(rows)) == 1 else rows)
    responses = []
    for name in observer.card.features:
        test_features = tests[name]
        reference_features = references[name][reference_rows]
        planes = equal_plane_count
        if by_pixel(observer) and (
            len(test_features[0]) != len(reference_features[0])
            or "angular_float32" in measures
        ):
            # Colour is compared with grey; or the published sum needs all planes in their order.
            size = images.rgb[0].size
            test_features = np.tile(test_features, (1, size // test_features.shape[-1]))
            reference_features = np.tile(
                reference_features, (1, size // reference_features.shape[-1])
            )
            planes = 1
        distance_by_measure = _distances(
            observer, name, test_features, reference_features
        )
        if "angular_float32" in measures:
            broadcast = np.broadcast_to(reference_features, test_features.shape)
            angles = map(angular_distance_float32, test_features, broadcast)
            distance_by_measure["angular_float32"] = np.array(
                [float(angle) for angle in angles]
            )
        distance_by_measure[DIFFERENCE] = distance_by_measure["angular"]
        for growing_measure in GROWING.keys() & distance_by_measure.keys():
            distance_by_measure[growing_measure] *= planes ** GROWING[growing_measure]
        values = [distance_by_measure[measure] for measure in measures]
        responses.append(np.stack(values, axis=-1))
    return np.stack(responses, axis=1)


def measure_lengths(
    observer: FeatureObserver | DifferenceObserver,
    references: NamedArrays,
    drive: ImagePlanes,
) -> FloatArray | None:
    """Compute the lengths of features, and how far one step of rounding moves them.

    Parameters
    ----------
    observer : FeatureObserver or DifferenceObserver
        The observer, to which each reference is shown once more.
    references : mapping of str to array, shape (m, ...)
        Features of the reference images, as `features` returns them.
    drive : ImagePlanes
        Drive of the reference images.

    Returns
    -------
    array, shape (m, layers, 2), float64, or None
        Length and difference, in feature units; None for a metric.
    """
    if not _has_features(observer):
        return None
    moved = features(observer, one_step_away(drive, observer.card))
    lengths_and_steps = [
        (lengths(rows), _distances(observer, name, moved[name], rows)["l2"])
        for name, rows in references.items()
    ]
    growth = equal_planes(observer, drive) ** GROWING[LENGTH]
    return np.asarray(np.moveaxis(np.array(lengths_and_steps) * growth, -1, 0))


#: The power of the number of equal planes with which a measure grows.
GROWING = {"l1": 1.0, "l2": 0.5, LENGTH: 0.5}


def by_pixel(observer: Any) -> bool:
    """Tell whether an observer's features are the pixels, one for one.

    Then equal planes have equal features, and the features of an image do not depend on
    the other images of its batch.
    """
    return isinstance(observer, Pixels)


def equal_planes(observer: FeatureObserver, images: ImagePlanes) -> int:
    """Count the equal colour planes of images that an observer's features stand for."""
    return 3 if by_pixel(observer) and images.is_grey else 1


def _distances(
    observer: FeatureObserver, name: str, tests: FloatArray, references: FloatArray
) -> dict[str, FloatArray]:
    """Compute distances between test and reference features, naming the observer in errors."""
    with in_file(f"observer {observer.card.name}, features {name}"):
        return distances(tests, references)


def json_lists(values: FloatArray) -> Any:
    """Convert an array to nested lists as JSON holds them: None stands for NaN."""
    objects = values.astype(object)
    objects[np.isnan(values)] = None
    return objects.tolist()


def answers_with_lengths(values: FloatArray, lengths: FloatArray) -> list[JsonObject]:
    """Build an answer for each test from distances and the lengths of features."""
    pairs = zip(json_lists(values), lengths.tolist(), strict=True)
    return [
        {"values": test_values, "lengths": test_lengths}
        for test_values, test_lengths in pairs
    ]


def _has_features(
    observer: FeatureObserver | DifferenceObserver,
) -> TypeIs[FeatureObserver]:
    """Tell whether an observer gives features, not differences."""
    return observer.card.ability == "features"


def differences(
    observer: DifferenceObserver,
    images: ImagePlanes,
    references: ImagePlanes,
    ppd: float,
) -> FloatArray:
    """Compute a metric's difference of each image from its reference, shape (n,)."""
    name = observer.card.name
    returned = observer.difference(images.rgb, references.rgb, ppd=ppd)
    values = own_array(observer, returned).astype(np.float64)
    if values.shape != (len(images),):
        raise InputError(
            f"observer {name} gives differences of shape {values.shape} for {len(images)} "
            f"images; they must have shape ({len(images)},)"
        )
    if not np.isfinite(values).all():
        raise InputError(
            f"observer {name} gives a difference of NaN or infinity; each must be a finite number"
        )
    return values


def noise_floor(repeats: FloatArray, measures: Sequence[str]) -> FloatArray:
    """Find the largest response to identical images.

    Parameters
    ----------
    repeats : array, shape (repeats, layers, measures), float64
        Responses to references that were compared with themselves.
    measures : sequence of str
        Names along the last axis.

    Returns
    -------
    array, shape (layers, measures), float64
        The largest distance, or the smallest similarity; a feature without an angle counts as
        identical.
    """
    identical = [float(name == "cosine") for name in measures]
    defined_repeats = np.where(np.isnan(repeats), identical, repeats)
    worst = [
        (np.min if name == "cosine" else np.max)(defined_repeats[..., m], axis=0)
        for m, name in enumerate(measures)
    ]
    return np.stack(worst, axis=-1)
