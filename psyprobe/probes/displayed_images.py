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

from psyprobe.errors import GamutError, InputError
from psyprobe.light.display import Display
from psyprobe.observers import Card
from psyprobe.observers.planes import ImagePlanes
from psyprobe.stimulus import Specification
from psyprobe.stimulus.measuring import observer_of


@dataclass(frozen=True)
class DisplayedImages:
    """Images of one size as drive values."""

    #: Neighbours of one kind, (n, H, W), or the upper left quarters of images that mirror
    #: themselves, (n, H/2, W/2).
    pieces: tuple[ImagePlanes, ...]
    #: (H, W) of a whole image.
    shape: tuple[int, int]

    def __len__(self) -> int:
        return sum(map(len, self.pieces))

    @cached_property
    def drive(self) -> ImagePlanes:
        """The drive values of all images in full."""
        return ImagePlanes.joined(
            [_mirrored(piece) if self.by_quarter(piece) else piece for piece in self.pieces]
        )

    @property
    def quarters(self) -> DisplayedImages:
        """Those that are held by a quarter, as images of that size."""
        height, width = self.shape
        return DisplayedImages(
            tuple(filter(self.by_quarter, self.pieces)), (height // 2, width // 2)
        )

    def by_quarter(self, piece: ImagePlanes) -> bool:
        """Whether a piece holds quarters."""
        height_and_width = tuple(piece.planes.shape[1:3])
        return height_and_width != self.shape

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
    >>> [piece.planes.shape for piece in shown.pieces], shown.drive.rgb.shape
    ([(1, 112, 112, 1)], (1, 224, 224, 3))
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
            yield spec.select(spec.batch, [*places]), bool(by_quarter)


def _drive(spec: Specification, display: Display, by_quarter: bool) -> ImagePlanes:
    if by_quarter:
        pixels, space = spec.corner()
        try:
            drive = display.encode(pixels, space=space, observer=observer_of(spec))
            return ImagePlanes.of(np.asarray(drive))
        except GamutError:
            pass  # what is said of it is said of all its pixels
    return ImagePlanes.of(np.asarray(display.encode(spec.draw())))


def _mirrored(quarters: ImagePlanes) -> ImagePlanes:
    """Complete images of which the upper left quarters are given."""
    planes = np.moveaxis(quarters.planes, -1, 1)
    *leading, height, width = planes.shape
    drive = np.empty((*leading, 2 * height, 2 * width), planes.dtype)
    drive[..., :height, :width] = planes
    drive[..., :height, width:] = planes[..., ::-1]
    drive[..., height:, :] = drive[..., height - 1 :: -1, :]
    return ImagePlanes(np.moveaxis(drive, 1, -1))


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


def presented(drive: ImagePlanes, display: Display, ability: str) -> ImagePlanes:
    """Turn the drive of images into what an observer gets of them.

    Parameters
    ----------
    drive : ImagePlanes
        Of the images, as `show` gives it.
    display : Display
        What shows it.
    ability : {"features", "difference", "answer"}
        Of the observer.

    Returns
    -------
    ImagePlanes
        For a metric ("difference") the light that the display emits: linear, of BT.709 primaries,
        cd/m² a channel; for others the drive values themselves.

    Raises
    ------
    InputError
        The display shows a colour that BT.709 light of 0 or more cannot make.

    Examples
    --------
    >>> white = ImagePlanes(np.ones((1, 2, 2, 1)))
    >>> presented(white, Display(peak=400), "difference").planes.max()
    np.float64(400.0)
    """
    if ability != "difference":
        return drive
    if display.primaries == "sRGB":
        return ImagePlanes(np.asarray(display.decode(drive.planes)))
    to_bt709 = Display().xyz_to_rgb @ display.rgb_to_xyz
    own_light = np.asarray(display.decode(drive.rgb))
    light = own_light @ to_bt709.astype(own_light.dtype).T
    if light.min() < 0:
        raise InputError(
            f"a display with primaries {display.primaries} shows colours outside BT.709, "
            f"down to {light.min():g} "
            "cd/m² of a channel, and metrics take BT.709 light; use a display with sRGB "
            "primaries"
        )
    return ImagePlanes(light)


def one_step_away(drive: ImagePlanes, card: Card) -> ImagePlanes:
    """Move about half of the pixels of images, always the same ones, by one step of rounding.

    The step is that of the drive in float32, or of the drive as a network computes with it
    (normalised, in its own format) where that is coarser; it leads towards the middle, so that no
    drive leaves its range.

    Parameters
    ----------
    drive : ImagePlanes
        As `show` gives it.
    card : Card
        Of the observer.

    Returns
    -------
    ImagePlanes
        In float32.

    Examples
    --------
    >>> grey = ImagePlanes(np.full((1, 64, 64, 1), 0.75, np.float32))
    >>> moved = one_step_away(grey, Card("mine", "features"))
    >>> sorted({float((0.75 - value) / 2.0**-24) for value in moved.planes.flat})
    [0.0, 1.0]
    """
    planes = drive.planes
    normalised = card.input == "normalised"
    mean = np.array(card.mean if normalised else [0.0])
    # Behind the binary point bfloat16 has 7 digits, float16 10, and what else a network may compute
    # in 23 at least.
    own = {"bfloat16": 2.0**-7, "float16": 2.0**-10}.get(
        card.dtype, 2.0**-23 if normalised else 0.0
    )
    away = np.stack([np.abs(planes - one).max(axis=-1) for one in mean]).max(axis=0)[..., None]
    step = np.maximum(np.spacing(planes.astype(np.float32)), own * away)
    chosen = np.random.default_rng(0).integers(0, 2, (*planes.shape[1:3], 1))
    moved = planes + np.where(planes > 0.5, -1, 1) * step * chosen
    return ImagePlanes(moved.astype(np.float32))


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
