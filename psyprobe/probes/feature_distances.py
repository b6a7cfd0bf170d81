"""Asking: how far tests are from references for an observer.

Responses are distances between features. A metric, which compares two images by itself, gives its
own difference; a grid of either is what `detection` and `matching` are made of.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.analysis.distance import MEASURES, angular_distance_float32, distances, lengths
from psyprobe.errors import InputError, PsyprobeError
from psyprobe.observers import DifferenceObserver, FeatureObserver
from psyprobe.observers.images import Pixels
from psyprobe.observers.planes import ImagePlanes
from psyprobe.probes.displayed_images import one_step_away

if TYPE_CHECKING:
    from typing_extensions import TypeIs


def keep_freed_memory() -> None:
    """Have the C library keep up to 512 MiB of freed memory for the next batch, where that is
    glibc.

    By itself it maps each large block anew and gives it back as soon as it is free, so that the
    system clears the activations of a network page by page in every pass: half the time of
    EfficientNet-Lite0 in batches of 8.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if os.name == "posix" else None
    if mallopt is None:
        return
    mallopt(_TRIM_THRESHOLD, _KEPT)
    if not mallopt(_MMAP_THRESHOLD, _KEPT):
        # Those that refuse so much take 32 MiB.
        mallopt(_MMAP_THRESHOLD, 32 << 20)


#: Bytes, and the names of two options in malloc.h.
_KEPT = 512 << 20
_TRIM_THRESHOLD = -1
_MMAP_THRESHOLD = -3


#: The one measure of a metric: its own response. Beside it, that of the pixels is their angular
#: distance.
DIFFERENCE = "difference"
#: Not a distance but the length of the test's own feature, by which one tells whether it has a
#: direction.
LENGTH = "length"


def features(
    observer: FeatureObserver | DifferenceObserver, images: ImagePlanes
) -> Mapping[str, FloatArray]:
    """Compute what is kept of reference images: an observer's features; for a metric their light.

    Parameters
    ----------
    observer : FeatureObserver or DifferenceObserver
        Who looks.
    images : ImagePlanes
        As `presented` gives them.

    Returns
    -------
    mapping of str to array, shape (n, ...)
        One entry for each name on the observer's card; of the pixels of grey images, of one plane.

    Raises
    ------
    InputError
        The observer returns other names or other numbers of features than its card says.
    """
    if not _has_features(observer):
        return dict.fromkeys(observer.card.features, images.rgb)
    found = observer.features(images.planes if by_pixel(observer) else images.rgb)
    if set(found) != set(observer.card.features):
        raise InputError(
            f"observer {observer.card.name} gives features {', '.join(found)}, and its card says "
            f"{', '.join(observer.card.features)}; make them agree"
        )
    arrays = {name: np.asarray(found[name]) for name in observer.card.features}
    for name, array in arrays.items():
        if array.ndim != 2 or len(array) != len(images):
            raise InputError(
                f"observer {observer.card.name} gives features {name} of shape {array.shape} "
                f"for {len(images)} "
                f"images; they must have shape ({len(images)}, D)"
            )
    return arrays


def respond(
    observer: FeatureObserver | DifferenceObserver,
    images: ImagePlanes,
    references: Mapping[str, FloatArray],
    rows: Sequence[int],
    measures: Sequence[str] = MEASURES,
    *,
    ppd: float,
    parts: int = 1,
) -> FloatArray:
    """How far test images are from their references for an observer.

    Parameters
    ----------
    observer : FeatureObserver or DifferenceObserver
        Who is asked.
    images : ImagePlanes
        Test images, as `presented` gives them.
    references : mapping of str to array, shape (m, ...)
        Of the reference images, as `features` gives them.
    rows : sequence of int, length n
        Which reference belongs to each test.
    measures : sequence of str
        Which distances: those of `distances`, and "angular_float32"; "difference", which is a
        metric's response or the angular distance of features; or "length", of the test's feature.
    ppd : float
        Pixels per degree of the images.
    parts : int
        Of how many equal parts of each image this is one, and its reference likewise: 4 for
        quarters of images that mirror themselves. Only where `tells_by_part`.

    Returns
    -------
    array, shape (n, layers, measures), float64
        In the order of the card's features and of `measures`; an angle with a feature of zeros is
        NaN.

    Raises
    ------
    InputError
        Features or differences are not finite.
    """
    if not _has_features(observer):
        return _differences(observer, images, references, rows, ppd)
    tests = features(observer, images)
    alone = equal_planes(observer, images)
    chosen = list(rows[:1] if len(set(rows)) == 1 else rows)
    responses = np.empty((len(images), len(tests), len(measures)))
    for layer, name in enumerate(observer.card.features):
        seen = tests[name]
        compared = references[name][chosen]
        planes = alone
        if by_pixel(observer) and (
            len(seen[0]) != len(compared[0]) or "angular_float32" in measures
        ):
            # Of colour beside grey; and the published sum has the order of all planes.
            seen, compared = (
                np.tile(each, (1, images.rgb[0].size // each.shape[-1]))
                for each in (seen, compared)
            )
            planes = 1
        found = _distances(observer, name, seen, compared)
        if "angular_float32" in measures:
            both = zip(seen, np.broadcast_to(compared, seen.shape), strict=True)
            found["angular_float32"] = np.array(
                [float(angular_distance_float32(*pair)) for pair in both]
            )
        found[DIFFERENCE] = found["angular"]
        for grown in GROWING.keys() & found.keys():
            found[grown] *= (planes * parts) ** GROWING[grown]
        for measure, key in enumerate(measures):
            responses[:, layer, measure] = found[key]
    return responses


def lengths_of(
    observer: FeatureObserver | DifferenceObserver,
    references: Mapping[str, FloatArray],
    drive: ImagePlanes,
) -> FloatArray | None:
    """How long the features of references are, and how far one step of rounding moves them; None
    for a metric.

    Parameters
    ----------
    observer : FeatureObserver or DifferenceObserver
        Who is asked about each reference once more.
    references : mapping of str to array, shape (m, ...)
        As `features` gives them.
    drive : ImagePlanes
        Of the reference images.

    Returns
    -------
    array, shape (m, layers, 2), float64, or None
        Length and difference, in feature units.
    """
    if not _has_features(observer):
        return None
    moved = features(observer, one_step_away(drive, observer.card))
    told = [
        (lengths(rows), _distances(observer, name, moved[name], rows)["l2"])
        for name, rows in references.items()
    ]
    return np.asarray(
        np.moveaxis(np.array(told) * equal_planes(observer, drive) ** GROWING[LENGTH], -1, 0)
    )


#: By which power of the number of equal planes and parts a measure grows.
GROWING = {"l1": 1.0, "l2": 0.5, LENGTH: 0.5}


def by_pixel(observer: Any) -> bool:
    """Whether an observer's features are the pixels, one for one.

    Then one of equal planes or parts tells of all, and an image gives the same whichever others it
    comes with.
    """
    return isinstance(observer, Pixels)


def tells_by_part(observer: Any, measures: Sequence[str]) -> bool:
    """Whether one of equal parts of images tells these measures of the whole; the published sum has
    an order.
    """
    return by_pixel(observer) and "angular_float32" not in measures


def equal_planes(observer: FeatureObserver, images: ImagePlanes) -> int:
    """For how many equal planes of images the one stands of which the features are."""
    return 3 if by_pixel(observer) and images.is_grey else 1


def _distances(
    observer: FeatureObserver, name: str, tests: FloatArray, references: FloatArray
) -> dict[str, FloatArray]:
    try:
        return distances(tests, references)
    except PsyprobeError as error:
        raise type(error)(f"observer {observer.card.name}, features {name}: {error}") from error


def plain(values: FloatArray) -> Any:
    """Nested lists as JSON holds them: None for a value that does not exist."""
    told = values.astype(object)
    told[np.isnan(values)] = None
    return told.tolist()


def _has_features(observer: FeatureObserver | DifferenceObserver) -> TypeIs[FeatureObserver]:
    return observer.card.ability == "features"


def _differences(
    observer: DifferenceObserver,
    images: ImagePlanes,
    references: Mapping[str, FloatArray],
    rows: Sequence[int],
    ppd: float,
) -> FloatArray:
    name = observer.card.name
    (layer,) = observer.card.features
    # Grey light stays a view of one plane, which a metric may take at a third of the cost.
    compared = ImagePlanes.of(references[layer])[list(rows)]
    found = np.asarray(observer.difference(images.rgb, compared.rgb, ppd=ppd), dtype=np.float64)
    if found.shape != (len(images),):
        raise InputError(
            f"observer {name} gives differences of shape {found.shape} for {len(images)} "
            "images; they must have "
            f"shape ({len(images)},)"
        )
    if not np.isfinite(found).all():
        raise InputError(
            f"observer {name} gives a difference of NaN or infinity; each must be a finite number"
        )
    return found[:, None, None]


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
        The largest distance, or the smallest similarity; where a feature has no angle, those of
        none.
    """
    known = np.where(np.isnan(repeats), [float(name == "cosine") for name in measures], repeats)
    worst = [
        (np.min if name == "cosine" else np.max)(known[..., m], axis=0)
        for m, name in enumerate(measures)
    ]
    return np.stack(worst, axis=-1)
