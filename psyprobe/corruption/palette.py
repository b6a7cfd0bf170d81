"""Choose the colours of a palette by median cut."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def median_cut(codes: NDArray[np.uint8], colours: int) -> NDArray[np.uint8]:
    """Choose a palette for an RGB image by median cut (Heckbert 1982), as Pillow does in 140 ms.

    The box with the most pixels is cut, along the axis that weighs most by luma, above its median.
    """
    red, green, blue = codes.reshape(-1, 3).astype(np.uint32).T
    packed = np.sort(red << 16 | green << 8 | blue)
    starts = np.flatnonzero(np.diff(packed, prepend=packed[:1] ^ 1))
    counts = np.diff(starts, append=len(packed))
    distinct = (packed[starts] >> np.array([[16], [8], [0]], np.uint32) & 255).astype(
        np.uint8
    )
    # Codes of more than 65,536 colours are compared by fewer bits.
    coarse = distinct
    while starts.size > 65536 and _count_colours(coarse) > 65536:
        coarse = (coarse >> 1).astype(np.uint8)
    boxes = [np.arange(starts.size)]
    sizes = [len(packed)]
    while len(boxes) < colours and max(sizes) > 0:
        largest = int(np.argmax(sizes))
        box = boxes[largest]
        inside = coarse[:, box]
        reach = np.ptp(inside, axis=1)
        if not reach.any():
            sizes[largest] = 0
            continue
        values = inside[np.argmax(reach * np.array([77, 150, 29]))]
        histogram = np.bincount(values, counts[box], minlength=256)
        # Above are the codes that hold more than half of the pixels, or all but the lowest code.
        cut = 255 - int(np.argmax(2 * np.cumsum(histogram[::-1]) > histogram.sum()))
        cut = max(cut, int(values.min()) + 1)
        above = values >= cut
        boxes[largest : largest + 1] = [box[above], box[~above]]
        sizes[largest : largest + 1] = [
            int(histogram[cut:].sum()),
            int(histogram[:cut].sum()),
        ]
    means = [distinct[:, box] @ counts[box] / counts[box].sum() for box in boxes]
    return np.asarray(np.floor(np.array(means) + 0.5).astype(np.uint8))


def _count_colours(codes: NDArray[np.uint8]) -> int:
    """Count the distinct RGB colours of codes of shape (3, N)."""
    red, green, blue = codes.astype(np.uint32)
    packed = np.sort(red << 16 | green << 8 | blue)
    return 1 + int(np.count_nonzero(packed[1:] != packed[:-1]))
