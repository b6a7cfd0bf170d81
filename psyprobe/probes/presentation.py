"""Presentation: draw stimuli in batches and turn them into the drive values of a display."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import fields, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from psyprobe._typing import FloatArray
from psyprobe.errors import InputError
from psyprobe.light.display import Display
from psyprobe.stimulus import Specification, Sum

if TYPE_CHECKING:
    from psyprobe.observers import Card


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
    for _, neighbours in groupby(specs, key=_family):
        stimulus = together(list(neighbours)).draw()
        shown.append(display.encode(stimulus))
    if len(shown) == 1:
        return np.asarray(shown[0])
    if all(drive.strides[-1] == 0 for drive in shown):
        plane = np.concatenate([drive[..., 0] for drive in shown])
        return np.broadcast_to(plane[..., None], (*plane.shape, 3))
    return np.concatenate(shown)


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


def together(specs: Sequence[Specification]) -> Specification:
    """One specification that draws many: numbers that differ become arrays of shape (n,).

    Parameters
    ----------
    specs : sequence of Specification
        Of one kind, alike in all but numbers.

    Returns
    -------
    Specification
        With a batch of shape (n,).

    Examples
    --------
    >>> from psyprobe.stimulus import Gabor
    >>> together([Gabor(frequency=2, contrast=0.1), Gabor(frequency=4, contrast=0.1)]).frequency
    array([2., 4.])
    """
    first = specs[0]
    # A batch of equal images has no number that differs: luminance stands for the length of the batch.
    alike = {"luminance": np.full(len(specs), first.luminance)}
    if not isinstance(first, Sum):
        return replace(first, **(_varied(specs) or alike))
    parts = zip(*(spec.parts for spec in specs if isinstance(spec, Sum)), strict=True)
    varied = [_varied(part) for part in parts]
    if not any(varied):
        return first.changed(**alike)
    return replace(first, parts=tuple(replace(part, **v) for part, v in zip(first.parts, varied, strict=True)))


def _varied(specs: Sequence[Specification]) -> dict[str, Any]:
    """The numbers in which specifications of one kind differ, as arrays."""
    columns = {name: np.array([getattr(spec, name) for spec in specs]) for name in specs[0].numeric}
    return {name: values for name, values in columns.items() if (values != values[0]).any()}


def _family(spec: Specification) -> str:
    """What specs have in common that can be drawn in one call: everything but their numbers."""
    parts = spec.parts if isinstance(spec, Sum) else (spec,)
    texts = [
        [part.kind, {f.name: getattr(part, f.name) for f in fields(part) if f.name not in part.numeric}]
        for part in parts
    ]
    return json.dumps(texts, sort_keys=True, default=str)


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
    return replace(native, size=(rows, columns), ppd=native.ppd * rows / height)
