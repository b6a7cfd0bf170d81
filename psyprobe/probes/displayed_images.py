"""Draw stimuli as drive values of a display, and convert these to an observer's input.

Of images that are symmetric along both axes only a quarter is drawn, encoded and held until the
full image is needed.
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

    #: Runs of whole images of one kind, (n, H, W), or of the upper left quarters of symmetric
    #: images, (n, H/2, W/2).
    pieces: tuple[ImagePlanes, ...]
    #: The size (H, W) of a whole image.
    shape: tuple[int, int]

    def __len__(self) -> int:
        return sum(map(len, self.pieces))

    @cached_property
    def drive(self) -> ImagePlanes:
        """The drive values of all images in full."""
        return ImagePlanes.joined(
            [
                _unfold(piece) if self.by_quarter(piece) else piece
                for piece in self.pieces
            ]
        )

    @property
    def quarters(self) -> DisplayedImages:
        """The images that are held by a quarter, as images of that size."""
        height, width = self.shape
        quarters = filter(self.by_quarter, self.pieces)
        return DisplayedImages(tuple(quarters), (height // 2, width // 2))

    def by_quarter(self, piece: ImagePlanes) -> bool:
        """Tell whether a piece holds quarters."""
        return bool(piece.planes.shape[1:3] != self.shape)

    def part(self, start: int, stop: int) -> DisplayedImages:
        """Select the images from `start` up to `stop`."""
        if "drive" in vars(self):
            return DisplayedImages((self.drive[start:stop],), self.shape)
        pieces = []
        first = 0
        for piece in self.pieces:
            pieces.append(piece[max(start - first, 0) : max(stop - first, 0)])
            first += len(piece)
        return DisplayedImages(tuple(filter(len, pieces)), self.shape)


def show(
    specs: Sequence[Specification],
    display: Display,
    quarters: npt.NDArray[np.bool_] | None = None,
) -> DisplayedImages:
    """Draw stimuli and encode them for a display.

    Parameters
    ----------
    specs : sequence of Specification
        Stimuli of one size, each of one image or of several along one axis; neighbours that differ
        only in numbers are drawn in one call.
    display : Display
        The display that shows them.
    quarters : array of bool, shape (n,), optional
        Which images are drawn and held by a quarter; by default the symmetric ones. The drive
        values are the same either way.

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
    for (_, by_quarter), neighbours in groupby(
        runs, key=lambda run: (run[0].family(), run[1])
    ):
        members = [spec for spec, _ in neighbours]
        pieces.append(_drive(members[0].joined(members), display, by_quarter))
    return DisplayedImages(tuple(pieces), specs[0].shape)


def mirroring(specs: Sequence[Specification]) -> npt.NDArray[np.bool_]:
    """Tell which images are symmetric along both axes, shape (n,); see `Specification.mirrors`."""
    return np.concatenate([np.ravel(spec.mirrors()) for spec in specs])


def _runs(
    specs: Sequence[Specification], quarters: npt.NDArray[np.bool_]
) -> Iterator[tuple[Specification, bool]]:
    """Split specifications so that each is held wholly by quarters or wholly in full."""
    start = 0
    for spec in specs:
        spec_quarters = quarters[start : start + math.prod(spec.batch)]
        start += len(spec_quarters)
        if spec_quarters.all() or not spec_quarters.any():
            yield spec, bool(spec_quarters[0])
            continue
        for by_quarter, indices in groupby(
            range(len(spec_quarters)), spec_quarters.__getitem__
        ):
            yield spec.select(spec.batch, [*indices]), bool(by_quarter)


def _drive(spec: Specification, display: Display, by_quarter: bool) -> ImagePlanes:
    if by_quarter:
        pixels, space = spec.corner()
        try:
            drive = display.encode(pixels, space=space, observer=observer_of(spec))
            return ImagePlanes.of(np.asarray(drive))
        except GamutError:
            pass  # the whole image is encoded below, so that the message counts all its pixels
    return ImagePlanes.of(np.asarray(display.encode(spec.draw())))


def _unfold(quarters: ImagePlanes) -> ImagePlanes:
    """Complete symmetric images from their upper left quarters."""
    planes = np.moveaxis(quarters.planes, -1, 1)
    *leading, height, width = planes.shape
    drive = np.empty((*leading, 2 * height, 2 * width), planes.dtype)
    drive[..., :height, :width] = planes
    drive[..., :height, width:] = planes[..., ::-1]
    drive[..., height:, :] = drive[..., height - 1 :: -1, :]
    return ImagePlanes(np.moveaxis(drive, 1, -1))


T = TypeVar("T")


def draw_in_turn(
    work: Iterable[T],
    draw: Callable[[T], DisplayedImages],
    has_next: Callable[[], bool],
    *,
    ahead: bool,
) -> Iterator[tuple[T, DisplayedImages]]:
    """Yield items of work one by one, each with the images that are drawn for it.

    Parameters
    ----------
    work : iterable
        Items of work, taken one by one by this thread.
    draw : callable
        Draws the images of one item.
    has_next : callable
        Tells whether another item can be taken without waiting.
    ahead : bool
        Whether another thread draws the next item while the caller works on this one; the images
        are the same.
    """
    if not ahead:
        yield from ((item, draw(item)) for item in work)
        return

    def draw_fully(item: T) -> DisplayedImages:
        images = draw(item)
        if images.pieces:
            _ = (
                images.drive
            )  # cached, so that the caller's thread need not unfold quarters
        return images

    with ThreadPoolExecutor(1) as thread:
        waiting: deque[tuple[T, Future[DisplayedImages]]] = deque()
        for item in work:
            waiting.append((item, thread.submit(draw_fully, item)))
            while waiting and (len(waiting) > 1 or not has_next()):
                finished_item, future = waiting.popleft()
                yield finished_item, future.result()
        yield from (
            (finished_item, future.result()) for finished_item, future in waiting
        )


#: Largest number of stimuli that are drawn to check them before a run begins.
MOST_DRAWN = 256


def spread(levels: Sequence[T]) -> Sequence[T]:
    """Return all items, or an evenly spaced sample of 256 of them if there are more.

    Examples
    --------
    >>> len(spread(range(200))), len(spread(range(100_000)))
    (200, 256)
    """
    if len(levels) <= MOST_DRAWN:
        return levels
    return [levels[round(i)] for i in np.linspace(0, len(levels) - 1, MOST_DRAWN)]


def presented(drive: ImagePlanes, display: Display, ability: str) -> ImagePlanes:
    """Convert the drive of images to an observer's input.

    Parameters
    ----------
    drive : ImagePlanes
        Drive of the images, as `show` returns it.
    display : Display
        The display that shows it.
    ability : {"features", "difference", "answer"}
        The observer's ability.

    Returns
    -------
    ImagePlanes
        For a metric ("difference") the light that the display emits: linear, in cd/m² of each
        BT.709 primary; for others the drive values themselves.

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
            f"down to {light.min():g} cd/m² of a channel, and metrics take BT.709 light; use a "
            "display with sRGB primaries"
        )
    return ImagePlanes(light)


def one_step_away(drive: ImagePlanes, card: Card) -> ImagePlanes:
    """Move about half of the pixels of images by one step of rounding, always the same pixels.

    The step is that of the drive in float32, or of the drive as a network computes with it
    (normalised, in its own format) where that is coarser; it leads towards the middle, so that no
    drive leaves its range.

    Parameters
    ----------
    drive : ImagePlanes
        Drive of the images, as `show` returns it.
    card : Card
        The observer's card.

    Returns
    -------
    ImagePlanes
        The moved drive in float32.

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
    # Behind the binary point bfloat16 has 7 digits, float16 has 10, and other formats of networks
    # have 23 at least.
    finest_step = 2.0**-23 if normalised else 0.0
    relative_step = {"bfloat16": 2.0**-7, "float16": 2.0**-10}.get(
        card.dtype, finest_step
    )
    distances = np.stack(
        [np.abs(planes - channel_mean).max(axis=-1) for channel_mean in mean]
    )
    distance = distances.max(axis=0)[..., None]
    step = np.maximum(np.spacing(planes.astype(np.float32)), relative_step * distance)
    mask = np.random.default_rng(0).integers(0, 2, (*planes.shape[1:3], 1))
    moved = planes + np.where(planes > 0.5, -1, 1) * step * mask
    return ImagePlanes(moved.astype(np.float32))


def at_native_size(name: str, native: Specification, card: Card) -> Specification:
    """Resize a stimulus to an observer's input size, over the same degrees of visual angle.

    Parameters
    ----------
    name : str
        Name of the experiment, for messages.
    native : Specification
        A stimulus as its file describes it.
    card : Card
        The observer's card.

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
            f"{columns} px, another shape; copy the stimulus file and give it a size of the "
            "observer's proportions"
        )
    return native.changed(size=(rows, columns), ppd=native.ppd * rows / height)
