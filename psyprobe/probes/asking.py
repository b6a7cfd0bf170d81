"""Showing and asking: stimuli as the drive values of a display, and how far tests are from references for an observer.

Responses are distances between features. A metric, which compares two images by itself, gives its own difference; a
grid of either is what `detection` and `matching` are made of.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import groupby
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.analysis.distance import MEASURES, angular_distance_float32, distances, lengths
from psyprobe.errors import GamutError, InputError, PsyprobeError
from psyprobe.light.display import Display
from psyprobe.observers import Card, DifferenceObserver, FeatureObserver
from psyprobe.observers.images import is_grey_view
from psyprobe.running.protocol import Batch
from psyprobe.stimulus import Clip, Specification
from psyprobe.stimulus.certificate import observer_of

if TYPE_CHECKING:
    from typing_extensions import TypeIs


def show(specs: Sequence[Specification], display: Display) -> FloatArray:
    """Draw stimuli and encode them for a display.

    Parameters
    ----------
    specs : sequence of Specification
        Of one size; neighbours that differ in numbers only are drawn in one call.
    display : Display
        What shows them.

    Returns
    -------
    array, shape (n, H, W, 3), float32
        Drive values; a grey batch is a read-only view whose channels share one plane.

    Raises
    ------
    GamutError
        The display cannot show one of them.
    """
    shown = []
    for _, neighbours in groupby(specs, key=lambda spec: spec.family()):
        first, *others = neighbours
        shown.append(_drive(first.joined([first, *others]), display))
    if len(shown) == 1:
        return np.asarray(shown[0])
    if all(drive.strides[-1] == 0 for drive in shown):
        plane = np.concatenate([drive[..., 0] for drive in shown])
        return np.broadcast_to(plane[..., None], (*plane.shape, 3))
    return np.concatenate(shown)


def _drive(spec: Specification, display: Display) -> FloatArray:
    """A batch as it is shown; of images that mirror themselves a quarter is drawn and encoded."""
    corner = spec.corner()
    if corner is not None:
        pixels, space = corner
        try:
            return _mirrored(display.encode(pixels, space=space, observer=observer_of(spec)), spec.shape)
        except GamutError:
            pass  # what is said of it is said of all its pixels
    return np.asarray(display.encode(spec.draw()))


def _mirrored(drive: FloatArray, shape: tuple[int, int]) -> FloatArray:
    """Images (n, H, W, 3) of which the upper left quarters are given."""
    height, width = (pixels // 2 for pixels in shape)
    grey = is_grey_view(drive)
    planes = np.moveaxis(drive[..., :1] if grey else drive, -1, 1)
    upper = np.concatenate([planes, np.flip(planes[..., :width], -1)], axis=-1)
    whole = np.moveaxis(np.concatenate([upper, np.flip(upper[..., :height, :], -2)], axis=-2), 1, -1)
    return np.broadcast_to(whole, (*whole.shape[:-1], 3)) if grey else whole


def shown_in_turn(batches: Iterable[Batch], *, ahead: bool) -> Iterator[tuple[Batch, FloatArray]]:
    """Batches of pairs, each with its tests as they are shown.

    Parameters
    ----------
    batches : iterable of Batch
        Taken one by one, by this thread.
    ahead : bool
        Whether another thread draws the next one while whoever asks is at this one, which changes no bit.
    """
    if not ahead:
        yield from ((batch, _tests_of(batch)) for batch in batches)
        return
    with ThreadPoolExecutor(1) as beside:
        waiting: list[tuple[Batch, Future[FloatArray]]] = []
        for batch in batches:
            waiting.append((batch, beside.submit(_tests_of, batch)))
            if len(waiting) > 1:
                last, drawn = waiting.pop(0)
                yield last, drawn.result()
        yield from ((last, drawn.result()) for last, drawn in waiting)


def _tests_of(batch: Batch) -> FloatArray:
    """The tests of a batch as they are shown; none of clips, which are drawn as their frames are taken."""
    tests = batch.work.tests
    return np.empty(0) if isinstance(tests[0], Clip) else show(tests, batch.work.display)


def keep_freed_memory() -> None:
    """Have the C library keep up to 512 MiB of freed memory for the next batch, where that is glibc.

    By itself it maps each large block anew and gives it back as soon as it is free, so that the system clears the
    activations of a network page by page in every pass: half the time of EfficientNet-Lite0 in batches of 8.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if os.name == "posix" else None
    if mallopt is None:
        return
    mallopt(_TRIM_THRESHOLD, _KEPT)
    if not mallopt(_MMAP_THRESHOLD, _KEPT):
        # Its older versions take 32 MiB at most.
        mallopt(_MMAP_THRESHOLD, 32 << 20)


#: Bytes, and the names of two options in malloc.h.
_KEPT, _TRIM_THRESHOLD, _MMAP_THRESHOLD = 512 << 20, -1, -3

#: Levels that are drawn before anything is asked.
MOST_DRAWN = 256

T = TypeVar("T")


def spread(levels: Sequence[T]) -> Sequence[T]:
    """Those levels that are drawn before anything is asked: all, or as many as are drawn, evenly spread.

    Examples
    --------
    >>> len(spread(range(200))), len(spread(range(100_000)))
    (200, 256)
    """
    if len(levels) <= MOST_DRAWN:
        return levels
    return [levels[round(i)] for i in np.linspace(0, len(levels) - 1, MOST_DRAWN)]


def presented(drive: FloatArray, display: Display, ability: str) -> FloatArray:
    """What an observer gets of a shown image.

    Parameters
    ----------
    drive : array, shape (n, H, W, 3)
        As `show` gives it.
    display : Display
        What shows it.
    ability : {"features", "difference", "answer"}
        Of the observer.

    Returns
    -------
    array, shape (n, H, W, 3)
        For a metric ("difference") the light that the display emits: linear, of BT.709 primaries, cd/m² a channel;
        for others the drive values themselves. Grey stays a read-only view of one plane.

    Raises
    ------
    InputError
        The display shows a colour that BT.709 light of 0 or more cannot make.

    Examples
    --------
    >>> presented(np.ones((1, 2, 2, 3)), Display(peak=400), "difference").max()
    np.float64(400.0)
    """
    if ability != "difference":
        return drive
    if drive.strides[-1] == 0 and display.primaries == "sRGB":
        plane = display.decode(drive[..., :1])
        return np.broadcast_to(plane, drive.shape)
    light = np.asarray(display.decode(drive))
    if display.primaries != "sRGB":
        light = light @ (Display().xyz_to_rgb @ display.rgb_to_xyz).astype(light.dtype).T
        if light.min() < 0:
            raise InputError(
                f"a display with primaries {display.primaries} shows colours outside BT.709, down to {light.min():g} "
                "cd/m² of a channel, and metrics take BT.709 light; use a display with sRGB primaries"
            )
    return light


def one_step_away(drive: FloatArray, card: Card) -> FloatArray:
    """Shown images with about half of their pixels, always the same ones, moved by one step of rounding.

    The step is that of the drive in float32, or of the drive as a network computes with it (normalised, in its own
    format) where that is coarser; it leads towards the middle, so that no drive leaves its range.

    Parameters
    ----------
    drive : array, shape (n, H, W, 3)
        As `show` gives it.
    card : Card
        Of the observer.

    Returns
    -------
    array, shape (n, H, W, 3), float32
        Grey stays a read-only view of one plane.

    Examples
    --------
    >>> moved = one_step_away(np.full((1, 64, 64, 3), 0.75, np.float32), Card("mine", "features"))
    >>> sorted({float((0.75 - value) / 2.0**-24) for value in moved.flat})
    [0.0, 1.0]
    """
    plane = drive[..., :1] if drive.strides[-1] == 0 else drive
    normalised = card.input == "normalised"
    mean = np.array(card.mean if normalised else [0.0])
    # Behind the binary point bfloat16 has 7 digits, float16 10, and what else a network may compute in 23 at least.
    own = {"bfloat16": 2.0**-7, "float16": 2.0**-10}.get(card.dtype, 2.0**-23 if normalised else 0.0)
    away = np.stack([np.abs(plane - one).max(axis=-1) for one in mean]).max(axis=0)[..., None]
    step = np.maximum(np.spacing(plane.astype(np.float32)), own * away)
    chosen = np.random.default_rng(0).integers(0, 2, (*plane.shape[1:3], 1))
    moved = (plane + np.where(plane > 0.5, -1, 1) * step * chosen).astype(np.float32)
    return np.broadcast_to(moved, drive.shape)


def at_native_size(name: str, native: Specification, card: Card) -> Specification:
    """A stimulus at an observer's own input size, over the same degrees of visual angle.

    Parameters
    ----------
    name : str
        Of the experiment, for messages.
    native : Specification
        A stimulus as its file describes it.
    card : Card
        Of the observer.

    Raises
    ------
    InputError
        The observer takes images of other proportions.
    """
    height, width = native.shape
    if card.input_size is None:
        return native
    rows, columns = card.input_size
    if rows * width != columns * height:
        raise InputError(
            f"{name}: the stimulus is {height} x {width} px and {card.name} takes {rows} x {columns} px, "
            "another shape; copy the stimulus file and give it a size of the observer's proportions"
        )
    return native.changed(size=(rows, columns), ppd=native.ppd * rows / height)


#: The one measure of a metric: its own response. Beside it, that of the pixels is their angular distance.
DIFFERENCE = "difference"
#: Not a distance but the length of the test's own feature, by which one tells whether it has a direction.
LENGTH = "length"


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
        One entry for each name on the observer's card; of the pixels of grey images, of one plane.

    Raises
    ------
    InputError
        The observer returns other names or other numbers of features than its card says.
    """
    if not _has_features(observer):
        return dict.fromkeys(observer.card.features, images)
    found = observer.features(images[..., :1] if equal_planes(observer, images) > 1 else images)
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
        Which distances: those of `distances`, and "angular_float32"; "difference", which is a metric's response
        or the angular distance of features; or "length", of the test's feature.
    ppd : float
        Pixels per degree of the images.

    Returns
    -------
    array, shape (n, layers, measures), float64
        In the order of the card's features and of `measures`; an angle with a feature of zeros is NaN.

    Raises
    ------
    InputError
        Features or differences are not finite.
    """
    if not _has_features(observer):
        return _differences(observer, images, references, rows, ppd)
    tests, alone = features(observer, images), equal_planes(observer, images)
    chosen = list(rows[:1] if len(set(rows)) == 1 else rows)
    responses = np.empty((len(images), len(tests), len(measures)))
    for layer, name in enumerate(observer.card.features):
        seen, compared, planes = tests[name], references[name][chosen], alone
        if _by_planes(observer) and (len(seen[0]) != len(compared[0]) or "angular_float32" in measures):
            # Of colour beside grey; and the published sum has the order of all planes.
            seen, compared = (np.tile(each, (1, images[0].size // each.shape[-1])) for each in (seen, compared))
            planes = 1
        found = _distances(observer, name, seen, compared)
        if "angular_float32" in measures:
            both = zip(seen, np.broadcast_to(compared, seen.shape), strict=True)
            found["angular_float32"] = np.array([float(angular_distance_float32(*pair)) for pair in both])
        found[DIFFERENCE] = found["angular"]
        for grown in GROWING.keys() & found.keys():
            found[grown] *= planes ** GROWING[grown]
        for measure, key in enumerate(measures):
            responses[:, layer, measure] = found[key]
    return responses


def lengths_of(
    observer: FeatureObserver | DifferenceObserver, references: Mapping[str, FloatArray], drive: FloatArray
) -> FloatArray | None:
    """How long the features of references are, and how far one step of rounding moves them; None for a metric.

    Parameters
    ----------
    observer : FeatureObserver or DifferenceObserver
        Who is asked about each reference once more.
    references : mapping of str to array, shape (m, ...)
        As `features` gives them.
    drive : array, shape (m, H, W, 3)
        The reference images, as `show` gives them.

    Returns
    -------
    array, shape (m, layers, 2), float64, or None
        Length and difference, in feature units.
    """
    if not _has_features(observer):
        return None
    moved = features(observer, one_step_away(drive, observer.card))
    told = [(lengths(rows), _distances(observer, name, moved[name], rows)["l2"]) for name, rows in references.items()]
    return np.asarray(np.moveaxis(np.array(told) * equal_planes(observer, drive) ** GROWING[LENGTH], -1, 0))


#: By which power of the number of equal planes a measure grows.
GROWING = {"l1": 1.0, "l2": 0.5, LENGTH: 0.5}


def _by_planes(observer: FeatureObserver) -> bool:
    return getattr(observer, "grey_by_one_plane", False)


def equal_planes(observer: FeatureObserver, images: FloatArray) -> int:
    """For how many equal planes of images the one stands of which the features are."""
    return 3 if _by_planes(observer) and is_grey_view(images) else 1


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
        The largest distance, or the smallest similarity; where a feature has no angle, those of none.
    """
    known = np.where(np.isnan(repeats), [float(name == "cosine") for name in measures], repeats)
    worst = [(np.min if name == "cosine" else np.max)(known[..., m], axis=0) for m, name in enumerate(measures)]
    return np.stack(worst, axis=-1)
