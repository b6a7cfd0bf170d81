"""Encode the distinct half or quarter of an image that mirrors itself, as many patterns do."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from psyprobe._typing import Array, FloatArray

#: Values that are compared and checked at once, so that they stay in the processor's cache.
_CHUNK_VALUES = 1 << 19


class Mirror(NamedTuple):
    """Drive values whose second half along an axis is to be mirrored from the first."""

    axis: int
    drive: Array


def paired_chunks(
    pixels: Array, drive: Array, image_dimensions: int
) -> Iterator[tuple[Array, Array]]:
    """Yield two batches a few images at a time.

    That keeps numpy within the processor's cache; a GPU takes all images at once.
    """
    if not isinstance(pixels, np.ndarray) or pixels.ndim <= image_dimensions:
        yield pixels, drive
        return
    values_per_image = max(1, math.prod(pixels.shape[1:]))
    count = max(1, _CHUNK_VALUES // values_per_image)
    for start in range(0, len(pixels), count):
        yield pixels[start : start + count], drive[start : start + count]


def fold(
    light: Array, drive: Array, axes: Iterable[int]
) -> tuple[Array, Array, list[Mirror]]:
    """Return the part of light that must be encoded, its drive, and how to mirror the rest."""
    mirrors: list[Mirror] = []
    if not isinstance(light, np.ndarray):
        return light, drive, mirrors
    for axis in axes:
        if _mirrors_itself(light, axis):
            mirrors.append(Mirror(axis, drive))
            first_half = _along(axis, slice(-(-light.shape[axis] // 2)))
            light = light[first_half]
            drive = drive[first_half]
    return light, drive, mirrors


def unfold(mirrors: list[Mirror]) -> None:
    """Write the second halves of drive that `fold` left out."""
    for axis, drive in reversed(mirrors):
        half = -(-drive.shape[axis] // 2)
        reflection = slice(drive.shape[axis] - half - 1, None, -1)
        drive[_along(axis, slice(half, None))] = drive[_along(axis, reflection)]


def _mirrors_itself(light: FloatArray, axis: int) -> bool:
    if light.ndim < -axis or light.shape[axis] < 2:
        return False
    half = light.shape[axis] // 2
    # The ends are compared first: they tell most other images apart.
    ends = (0, -1)
    halves = (slice(half), slice(None, -half - 1, -1))
    return all(
        (light[_along(axis, first)] == light[_along(axis, last)]).all()
        for first, last in (ends, halves)
    )


def _along(axis: int, selection: slice | int) -> tuple[Any, ...]:
    """Build the index that selects along an axis, counted from the last."""
    return (..., selection, *(slice(None),) * (-axis - 1))
