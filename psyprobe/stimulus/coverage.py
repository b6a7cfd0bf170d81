"""Exact drawing of outlines: the share of each pixel that lies inside.

Outlines are arrays of complex numbers: vertices x + iy, y up, counter-clockwise about what is
inside. Those of one shape do not overlap; a hole runs clockwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from psyprobe._typing import FloatArray, IntArray, Size

Outline = npt.NDArray[np.complex128]


def arc(centre: complex, radius: float, start: float, stop: float) -> Outline:
    """Build the outline of an arc, as chords of up to half a degree that keep the area.

    Parameters
    ----------
    centre : complex
        Centre of the circle.
    radius : float
        Radius; both ends lie on it, and the vertices between them slightly outside.
    start, stop : float
        Where the arc begins and ends, deg counter-clockwise from the right; clockwise where `stop`
        is less.

    Examples
    --------
    >>> half_disc = arc(0, 1.0, 0.0, 180.0)
    >>> round(area([half_disc]) / np.pi, 12)
    0.5
    """
    chords = int(np.ceil(2 * abs(stop - start)))
    angles = np.radians(np.linspace(start, stop, chords + 1))
    step = angles[1] - angles[0]
    sector = step / np.sin(step)
    inner = chords - 2
    ratio = (np.sqrt(1 + chords * inner * sector) - 1) / inner
    radii = np.full(chords + 1, radius * ratio)
    radii[[0, -1]] = radius
    return np.asarray(centre + radii * np.exp(1j * angles))


def ring(
    centre: complex, inner: float, outer: float, start: float, stop: float
) -> Outline:
    """Build the outline of the part of a ring between two radii and two angles, deg."""
    return np.concatenate(
        [arc(centre, outer, start, stop), arc(centre, inner, stop, start)]
    )


def box(left: float, bottom: float, right: float, top: float) -> Outline:
    """Build the outline of an upright rectangle."""
    return np.array(
        [left + 1j * bottom, right + 1j * bottom, right + 1j * top, left + 1j * top]
    )


def area(outlines: Sequence[Outline]) -> float:
    """Compute the area that outlines enclose, px²."""
    return sum(
        float(np.sum(outline.conj() * np.roll(outline, -1)).imag) / 2
        for outline in outlines
    )


def coverage(outlines: Sequence[Outline], shape: Size) -> FloatArray:
    """Compute the share of each pixel that lies inside outlines, exactly but for rounding, (H, W).

    Parameters
    ----------
    outlines : sequence of ndarray
        In pixels from the middle of the image.
    shape : (int, int)
        Pixels (H, W).

    Examples
    --------
    >>> coverage([box(-1.0, -1.0, 0.5, 1.0)], (2, 4)).tolist()
    [[0.0, 1.0, 0.5, 0.0], [0.0, 1.0, 0.5, 0.0]]
    """
    height, width = shape
    starts = np.concatenate(outlines)
    ends = np.concatenate([np.roll(outline, -1) for outline in outlines])
    # An edge that runs down adds what lies to its right, and one that runs up takes it away.
    down = _Segments(
        height / 2 - starts.imag,
        starts.real + width / 2,
        height / 2 - ends.imag,
        ends.real + width / 2,
    )
    in_rows = _cut(down.of(down.start != down.end))
    in_rows = in_rows.of((in_rows.cell >= 0) & (in_rows.cell < height))
    rows = in_rows.segments
    across = _Segments(rows.start_across, rows.start, rows.end_across, rows.end)
    in_pixels = _cut(across)
    row = in_rows.cell[in_pixels.owner]
    column = in_pixels.cell
    fall = in_pixels.segments.end_across - in_pixels.segments.start_across
    middle = (in_pixels.segments.start + in_pixels.segments.end) / 2
    in_pixel = fall * np.clip(column + 1 - middle, 0, 1)
    # What lies left of the image covers its rows from the first pixel on.
    in_pixel = np.where(column < 0, fall, in_pixel)
    column = np.clip(column, 0, width)
    position = row * (width + 2) + column
    cells = height * (width + 2)
    change = np.bincount(position, in_pixel, cells)
    change += np.bincount(position + 1, fall - in_pixel, cells)
    covered = np.cumsum(change.reshape(height, width + 2), axis=1)
    # Running sums round: what is empty or full should be so.
    return np.clip(covered[:, :width].round(13), 0.0, 1.0)


class _Segments(NamedTuple):
    """Straight lines: where each starts and ends along one axis, and across it."""

    start: FloatArray
    start_across: FloatArray
    end: FloatArray
    end_across: FloatArray

    def of(self, index: npt.NDArray[np.bool_] | IntArray) -> _Segments:
        """Select segments by a mask or by index."""
        return _Segments(*(values[index] for values in self))


class _Pieces(NamedTuple):
    segments: _Segments
    #: The whole number at which the cell of a piece begins.
    cell: IntArray
    #: Which segment a piece is of.
    owner: IntArray

    def of(self, index: npt.NDArray[np.bool_]) -> _Pieces:
        """Select pieces of segments by a mask."""
        return _Pieces(self.segments.of(index), self.cell[index], self.owner[index])


def _cut(segments: _Segments) -> _Pieces:
    """Cut segments where they pass a whole number along their axis."""
    low = np.minimum(segments.start, segments.end)
    high = np.maximum(segments.start, segments.end)
    first = np.floor(low).astype(int)
    count = np.maximum(np.ceil(high).astype(int) - first, 1)
    owner = np.repeat(np.arange(len(count)), count)
    cell = np.arange(len(owner)) - np.repeat(np.cumsum(count) - count - first, count)
    whole = segments.of(owner)
    length = np.maximum(high - low, 1e-300)[owner]
    entry = np.clip((cell - low[owner]) / length, 0, 1)
    leaving = np.clip((cell + 1 - low[owner]) / length, 0, 1)
    rising = whole.start <= whole.end
    first_share = np.where(rising, entry, 1 - leaving)
    last_share = np.where(rising, leaving, 1 - entry)
    along = whole.end - whole.start
    across = whole.end_across - whole.start_across
    pieces = _Segments(
        whole.start + first_share * along,
        whole.start_across + first_share * across,
        whole.start + last_share * along,
        whole.start_across + last_share * across,
    )
    return _Pieces(pieces, cell, owner)
