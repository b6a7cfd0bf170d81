"""Showing: stimuli as the drive values of a display, and what of these an observer gets.

Of images that mirror themselves along both axes a quarter is drawn, encoded and held until somebody
needs all of it.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from psyprobe._typing import FloatArray
from psyprobe.errors import GamutError, InputError
from psyprobe.light.display import Display
from psyprobe.observers import Card
from psyprobe.stimulus import Specification
from psyprobe.stimulus.certificate import observer_of


@dataclass(frozen=True)
class DisplayedImages:
    """Images of one size as drive values."""

    #: Of neighbours, shape (n, H, W, 3), or (n, H/2, W/2, 3) of the upper left quarters of images
    #: that mirror themselves; grey as read-only views whose channels share one plane.
    pieces: tuple[FloatArray, ...]
    #: (H, W) of a whole image.
    shape: tuple[int, int]

    def __len__(self) -> int:
        return sum(map(len, self.pieces))

    @cached_property
    def drive(self) -> FloatArray:
        """All of all images, shape (n, H, W, 3); a grey batch as a view of one plane."""
        whole = [_mirrored(piece) if self.by_quarter(piece) else piece for piece in self.pieces]
        if len(whole) == 1:
            return whole[0]
        if all(drive.strides[-1] == 0 for drive in whole):
            plane = np.concatenate([drive[..., 0] for drive in whole])
            return np.broadcast_to(plane[..., None], (*plane.shape, 3))
        return np.concatenate(whole)

    @property
    def quarters(self) -> DisplayedImages:
        """Those that are held by a quarter, as images of that size."""
        height, width = self.shape
        return DisplayedImages(
            tuple(filter(self.by_quarter, self.pieces)), (height // 2, width // 2)
        )

    def by_quarter(self, piece: FloatArray) -> bool:
        """Whether a piece holds quarters."""
        return piece.shape[1:3] != self.shape

    def part(self, start: int, stop: int) -> DisplayedImages:
        """Some of the images."""
        if "drive" in vars(self):
            return DisplayedImages((self.drive[start:stop],), self.shape)
        pieces = []
        first = 0
        for piece in self.pieces:
            pieces.append(piece[max(start - first, 0) : max(stop - first, 0)])
            first += len(piece)
        return DisplayedImages(tuple(piece for piece in pieces if len(piece)), self.shape)


def show(
    specs: Sequence[Specification], display: Display, quarters: npt.NDArray[np.bool_] | None = None
) -> DisplayedImages:
    """Draw stimuli and encode them for a display.

    Parameters
    ----------
    specs : sequence of Specification
        Of one size, each of one image or of more along one axis; neighbours that differ in numbers
        only are drawn in one call.
    display : Display
        What shows them.
    quarters : array of bool, shape (n,), optional
        Which images are drawn and held by a quarter; by default those that mirror themselves. No
        bit depends on it.

    Raises
    ------
    GamutError
        The display cannot show one of them.

    Examples
    --------
    >>> from psyprobe.stimulus import Gabor
    >>> shown = show([Gabor(frequency=4, contrast=0.5)], Display(peak=400))
    >>> [piece.shape for piece in shown.pieces], shown.drive.shape
    ([(1, 112, 112, 3)], (1, 224, 224, 3))
    """
    pieces = []
    runs = _runs(specs, mirroring(specs) if quarters is None else quarters)
    for (_, by_quarter), neighbours in groupby(runs, key=lambda each: (each[0].family(), each[1])):
        same = [spec for spec, _ in neighbours]
        pieces.append(_drive(same[0].joined(same), display, by_quarter))
    return DisplayedImages(tuple(pieces), specs[0].shape)


def mirroring(specs: Sequence[Specification]) -> npt.NDArray[np.bool_]:
    """Which images mirror themselves, shape (n,), as `Specification.mirrors` tells of each
    specification.
    """
    return np.concatenate([np.ravel(spec.mirrors()) for spec in specs])


def _runs(
    specs: Sequence[Specification], quarters: npt.NDArray[np.bool_]
) -> Iterator[tuple[Specification, bool]]:
    """Specifications of which all images are held by a quarter, or none."""
    start = 0
    for spec in specs:
        own = quarters[start : start + math.prod(spec.batch)]
        start += len(own)
        if own.all() or not own.any():
            yield spec, bool(own[0])
            continue
        for by_quarter, places in groupby(range(len(own)), own.__getitem__):
            yield spec.chosen(spec.batch, [*places]), bool(by_quarter)


def _drive(spec: Specification, display: Display, by_quarter: bool) -> FloatArray:
    if by_quarter:
        pixels, space = spec.corner()
        try:
            return np.asarray(display.encode(pixels, space=space, observer=observer_of(spec)))
        except GamutError:
            pass  # what is said of it is said of all its pixels
    return np.asarray(display.encode(spec.draw()))


def _mirrored(quarters: FloatArray) -> FloatArray:
    """Whole images, (n, H, W, 3), of their upper left quarters."""
    grey = quarters.strides[-1] == 0
    planes = np.moveaxis(quarters[..., :1] if grey else quarters, -1, 1)
    *leading, height, width = planes.shape
    drive = np.empty((*leading, 2 * height, 2 * width), planes.dtype)
    drive[..., :height, :width] = planes
    drive[..., :height, width:] = planes[..., ::-1]
    drive[..., height:, :] = drive[..., height - 1 :: -1, :]
    whole = np.moveaxis(drive, 1, -1)
    return np.broadcast_to(whole, (*whole.shape[:-1], 3)) if grey else whole


T = TypeVar("T")


def drawn_in_turn(
    work: Iterable[T],
    draw: Callable[[T], DisplayedImages],
    more: Callable[[], bool],
    *,
    ahead: bool,
) -> Iterator[tuple[T, DisplayedImages]]:
    """Pieces of work, each with what is drawn for it.

    Parameters
    ----------
    work : iterable
        Taken one by one, by this thread.
    draw : callable
        Gives what is drawn for one.
    more : callable
        Whether more work is known, so that it can be taken already.
    ahead : bool
        Whether another thread draws the next one while whoever asks is at this one, which changes
        no bit.
    """
    if not ahead:
        yield from ((each, draw(each)) for each in work)
        return

    def whole(each: T) -> DisplayedImages:
        shown = draw(each)
        if shown.pieces:
            _ = shown.drive  # what it keeps
        return shown

    with ThreadPoolExecutor(1) as beside:
        waiting: deque[tuple[T, Future[DisplayedImages]]] = deque()
        for each in work:
            waiting.append((each, beside.submit(whole, each)))
            while waiting and (len(waiting) > 1 or not more()):
                last, drawn = waiting.popleft()
                yield last, drawn.result()
        yield from ((last, drawn.result()) for last, drawn in waiting)


#: Levels that are drawn before anything is asked.
MOST_DRAWN = 256


def spread(levels: Sequence[T]) -> Sequence[T]:
    """Those levels that are drawn before anything is asked: all, or as many as are drawn, evenly
    spread.

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
        For a metric ("difference") the light that the display emits: linear, of BT.709 primaries,
        cd/m² a channel; for others the drive values themselves. Grey stays a read-only view of one
        plane.

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
                f"a display with primaries {display.primaries} shows colours outside BT.709, "
                f"down to {light.min():g} "
                "cd/m² of a channel, and metrics take BT.709 light; use a display with sRGB "
                "primaries"
            )
    return light


def one_step_away(drive: FloatArray, card: Card) -> FloatArray:
    """Shown images with about half of their pixels, always the same ones, moved by one step of
    rounding.

    The step is that of the drive in float32, or of the drive as a network computes with it
    (normalised, in its own format) where that is coarser; it leads towards the middle, so that no
    drive leaves its range.

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
    # Behind the binary point bfloat16 has 7 digits, float16 10, and what else a network may compute
    # in 23 at least.
    own = {"bfloat16": 2.0**-7, "float16": 2.0**-10}.get(
        card.dtype, 2.0**-23 if normalised else 0.0
    )
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
            f"{name}: the stimulus is {height} x {width} px and {card.name} takes {rows} x "
            f"{columns} px, "
            "another shape; copy the stimulus file and give it a size of the observer's proportions"
        )
    return native.changed(size=(rows, columns), ppd=native.ppd * rows / height)
