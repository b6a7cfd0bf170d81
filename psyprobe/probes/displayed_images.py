"""Draw stimuli as drive values of a display, and convert these to an observer's input."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import groupby
from typing import TypeVar

import numpy as np

from psyprobe.errors import InputError
from psyprobe.light.display import Display
from psyprobe.observers import Card
from psyprobe.observers.planes import ImagePlanes
from psyprobe.stimulus import Specification


def show(specs: Sequence[Specification], display: Display) -> ImagePlanes:
    """Draw stimuli and encode them as a display's drive values.

    Parameters
    ----------
    specs : sequence of Specification
        Stimuli of one size, each of one image or of several along one axis; neighbours that differ
        only in numbers are drawn in one call.
    display : Display
        The display that shows them.

    Returns
    -------
    ImagePlanes
        Drive values of all images, shape (n, H, W).

    Raises
    ------
    GamutError
        The display cannot show one of them.

    Examples
    --------
    >>> from psyprobe.stimulus import Gabor
    >>> show([Gabor(frequency=4, contrast=[0.1, 0.5])], Display(peak=400)).rgb.shape
    (2, 224, 224, 3)
    """
    pieces = []
    for _, neighbours in groupby(specs, Specification.family):
        members = [*neighbours]
        drive = display.encode(members[0].joined(members).draw())
        pieces.append(ImagePlanes.of(np.asarray(drive)))
    return ImagePlanes.joined(pieces)


T = TypeVar("T")
Images = TypeVar("Images")


def draw_in_turn(
    work: Iterable[T],
    draw: Callable[[T], Images],
    has_next: Callable[[], bool],
    *,
    ahead: bool,
) -> Iterator[tuple[T, Images]]:
    """Iterate over items of work, each with its images drawn, perhaps one item ahead.

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
    with ThreadPoolExecutor(1) as thread:
        waiting: deque[tuple[T, Future[Images]]] = deque()
        for item in work:
            waiting.append((item, thread.submit(draw, item)))
            while waiting and (len(waiting) > 1 or not has_next()):
                finished_item, future = waiting.popleft()
                yield finished_item, future.result()
        yield from (
            (finished_item, future.result()) for finished_item, future in waiting
        )


#: Largest number of stimuli that are drawn to check them before a run begins.
MOST_DRAWN = 256


def spread(levels: Sequence[T]) -> Sequence[T]:
    """Select all items, or an evenly spaced sample of 256 if there are more.

    Examples
    --------
    >>> len(spread(range(200))), len(spread(range(100_000)))
    (200, 256)
    """
    if len(levels) <= MOST_DRAWN:
        return levels
    return [levels[round(i)] for i in np.linspace(0, len(levels) - 1, MOST_DRAWN)]


def presented(drive: ImagePlanes, display: Display, as_light: bool) -> ImagePlanes:
    """Convert the drive of images to an observer's input: light, or drive as it is.

    Parameters
    ----------
    drive : ImagePlanes
        Drive of the images, as `show` returns it.
    display : Display
        The display that shows it.
    as_light : bool
        Whether the observer takes light, as most metrics do; see `Card.takes_light`.

    Returns
    -------
    ImagePlanes
        The light that the display emits, linear, in cd/m² of each BT.709 primary; or the drive
        values themselves.

    Raises
    ------
    InputError
        The display shows a colour that BT.709 light of 0 or more cannot make.

    Examples
    --------
    >>> white = ImagePlanes(np.ones((1, 2, 2, 1)))
    >>> presented(white, Display(peak=400), True).planes.max()
    np.float64(400.0)
    """
    if not as_light:
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
    """Change about half of the pixels by one step of rounding, always the same ones.

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
    """Redraw a stimulus at an observer's input size, over the same degrees of visual angle.

    Where the option "fit" of the card is "crop", it is drawn with the same pixels per degree, and
    has more ground or less around it.

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
    if card.options.get("fit") == "crop":
        return native.changed(size=card.input_size)
    if rows * width != columns * height:
        raise InputError(
            f"{name}: the stimulus is {height} x {width} px and {card.name} takes {rows} x "
            f"{columns} px, another shape; copy the stimulus file and give it a size of the "
            "observer's proportions"
        )
    return native.changed(size=(rows, columns), ppd=native.ppd * rows / height)
