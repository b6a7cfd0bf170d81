"""Asking: what an observer makes of shown tests beside their references, as distances between its features.

A metric, which compares two images by itself, gives its own difference; a grid of either is what `detection` and
`matching` are made of.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.analysis.distance import MEASURES, angular_distance_float32, distances
from psyprobe.errors import InputError, PsyprobeError

if TYPE_CHECKING:
    from typing_extensions import TypeIs

    from psyprobe.observers import DifferenceObserver, FeatureObserver

#: The one measure of a metric: its own response. Beside it, that of the pixels is their angular distance.
DIFFERENCE = "difference"


def features(observer: FeatureObserver | DifferenceObserver, images: FloatArray) -> Mapping[str, FloatArray]:
    """What is kept of shown references: an observer's features of them; for a metric their light itself.

    Parameters
    ----------
    observer : FeatureObserver or DifferenceObserver
        Who looks.
    images : array, shape (n, H, W, 3)
        As `presented` gives them.

    Returns
    -------
    mapping of str to array, shape (n, ...)
        One entry for each name on the observer's card.

    Raises
    ------
    InputError
        The observer returns other names or other numbers of features than its card says.
    """
    if not _has_features(observer):
        return dict.fromkeys(observer.card.features, images)
    found = observer.features(images)
    if set(found) != set(observer.card.features):
        raise InputError(
            f"observer {observer.card.name} gives features {', '.join(found)}, and its card says "
            f"{', '.join(observer.card.features)}; make them agree"
        )
    arrays = {name: np.asarray(found[name]) for name in observer.card.features}
    for name, array in arrays.items():
        if array.ndim != 2 or len(array) != len(images):
            raise InputError(
                f"observer {observer.card.name} gives features {name} of shape {array.shape} for {len(images)} "
                f"images; they must have shape ({len(images)}, D)"
            )
    return arrays


def respond(
    observer: FeatureObserver | DifferenceObserver,
    images: FloatArray,
    references: Mapping[str, FloatArray],
    rows: Sequence[int],
    measures: Sequence[str] = MEASURES,
    *,
    ppd: float,
) -> FloatArray:
    """How far test images are from their references for an observer.

    Parameters
    ----------
    observer : FeatureObserver or DifferenceObserver
        Who is asked.
    images : array, shape (n, H, W, 3)
        Test images, as `presented` gives them.
    references : mapping of str to array, shape (m, ...)
        Of the reference images, as `features` gives them.
    rows : sequence of int, length n
        Which reference belongs to each test.
    measures : sequence of str
        Which distances: those of `distances`, and "angular_float32"; or "difference", which is a metric's response
        or the angular distance of features.
    ppd : float
        Pixels per degree of the images.

    Returns
    -------
    array, shape (n, layers, measures), float64
        In the order of the card's features and of `measures`.

    Raises
    ------
    InputError
        Features or differences are not finite, or a layer gives nothing at all.
    """
    if not _has_features(observer):
        return _differences(observer, images, references, rows, ppd)
    tests = features(observer, images)
    chosen = rows[:1] if len(set(rows)) == 1 else rows
    responses = np.empty((len(images), len(tests), len(measures)))
    for layer, name in enumerate(observer.card.features):
        compared = references[name][list(chosen)]
        try:
            found = distances(tests[name], compared)
        except PsyprobeError as error:
            raise type(error)(f"observer {observer.card.name}, features {name}: {error}") from error
        if "angular_float32" in measures:
            found["angular_float32"] = _published_distance(tests[name], compared)
        found[DIFFERENCE] = found["angular"]
        for measure, key in enumerate(measures):
            responses[:, layer, measure] = found[key]
    return responses


def _has_features(observer: FeatureObserver | DifferenceObserver) -> TypeIs[FeatureObserver]:
    return observer.card.ability == "features"


def _differences(
    observer: DifferenceObserver,
    images: FloatArray,
    references: Mapping[str, FloatArray],
    rows: Sequence[int],
    ppd: float,
) -> FloatArray:
    name = observer.card.name
    (layer,) = observer.card.features
    light = references[layer]
    # Grey light stays a view of one plane, which a metric may take at a third of the cost.
    plane = light[..., :1] if light.strides[-1] == 0 else light
    compared = np.broadcast_to(plane[list(rows)], images.shape)
    found = np.asarray(observer.difference(images, compared, ppd=ppd), dtype=np.float64)
    if found.shape != (len(images),):
        raise InputError(
            f"observer {name} gives differences of shape {found.shape} for {len(images)} images; they must have "
            f"shape ({len(images)},)"
        )
    if not np.isfinite(found).all():
        raise InputError(f"observer {name} gives a difference of NaN or infinity; each must be a finite number")
    return found[:, None, None]


def _published_distance(tests: FloatArray, references: FloatArray) -> FloatArray:
    pairs = zip(tests, np.broadcast_to(references, tests.shape), strict=True)
    return np.array([float(angular_distance_float32(test, reference)) for test, reference in pairs])


def noise_floor(repeats: FloatArray, measures: Sequence[str]) -> FloatArray:
    """The worst response to identical images.

    Parameters
    ----------
    repeats : array, shape (repeats, layers, measures), float64
        Responses to references that were compared with themselves.
    measures : sequence of str
        Names along the last axis.

    Returns
    -------
    array, shape (layers, measures), float64
        The largest distance, or the smallest similarity.
    """
    return np.stack(
        [
            repeats[..., m].min(axis=0) if name == "cosine" else repeats[..., m].max(axis=0)
            for m, name in enumerate(measures)
        ],
        axis=-1,
    )
