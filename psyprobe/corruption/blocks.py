"""What covers or misplaces parts of an image: obstacles before the lens and on it, blocks lost on the way."""

from __future__ import annotations

import math

import numpy as np

from psyprobe._typing import FloatArray

#: Side of a macro-block, px, and of the larger squares that are lost.
BLOCK, LOST = 16, 32


def blocking_obstacle(image: FloatArray, area: float, rng: np.random.Generator) -> FloatArray:
    """A sharp opaque patch of a random flat colour, of the image's proportions. Simulated; R-Bench held up objects."""
    height, width = (max(1, round(side * math.sqrt(area))) for side in image.shape[:2])
    top, left = (int(rng.integers(0, side - own + 1)) for side, own in zip(image.shape, (height, width), strict=False))
    result = image.copy()
    result[top : top + height, left : left + width] = _colour(image, rng)
    return result


def lens_obstacle(image: FloatArray, area: float, rng: np.random.Generator) -> FloatArray:
    """A dark blob out of focus, as of dirt on the lens. Simulated; R-Bench photographed through dirty lenses."""
    import cv2

    from psyprobe.corruption.filters import gaussian

    rows, columns = image.shape[:2]
    aspect = rng.uniform(0.6, 1.6)
    radius_y = math.sqrt(area * rows * columns / math.pi * aspect)
    radius_x = radius_y / aspect
    centre_y, centre_x = rng.uniform(0.2, 0.8) * rows, rng.uniform(0.2, 0.8) * columns
    # So smooth a blob is blurred on a coarse grid, eight pixels to a standard deviation, and enlarged.
    sigma = 0.15 * min(rows, columns)
    step = max(1, int(sigma / 8))
    y, x = np.mgrid[0:rows:step, 0:columns:step].astype(image.dtype) + image.dtype.type((step - 1) / 2)
    matte = (((y - centre_y) / radius_y) ** 2 + ((x - centre_x) / radius_x) ** 2 <= 1).astype(image.dtype)
    matte = gaussian(matte, sigma / step, truncate=3.0)
    size = (matte.shape[1] * step, matte.shape[0] * step)
    matte = 0.95 * np.asarray(cv2.resize(matte, size, interpolation=cv2.INTER_LINEAR))[:rows, :columns]
    colour = rng.uniform(0, 0.25, image.shape[2])
    return np.asarray(image * (1 - matte[..., None]) + matte[..., None] * colour)


def block_exchange(image: FloatArray, pairs: float, rng: np.random.Generator) -> FloatArray:
    """Pairs of macro-blocks of the grid change places; none takes part twice."""
    rows, columns = (side // BLOCK for side in image.shape[:2])
    count = min(round(pairs), rows * columns // 2)
    chosen = rng.permutation(rows * columns)[: 2 * count].reshape(count, 2)
    result = image.copy()
    for one, other in chosen:
        here, there = (_square(int(place), columns) for place in (one, other))
        result[here], result[there] = image[there], image[here]
    return result


def block_repeat(image: FloatArray, copies: float, rng: np.random.Generator) -> FloatArray:
    """Patches are copied over places up to 8 px away, one after the other, as KADID does. R-Bench: a block repeated."""
    rows, columns = image.shape[:2]
    size_y, size_x = min(BLOCK, rows), min(BLOCK, columns)
    result = image.copy()
    for _ in range(round(copies)):
        y, x = int(rng.integers(0, rows - size_y + 1)), int(rng.integers(0, columns - size_x + 1))
        dy, dx = (round(16 * (float(u) - 0.5)) for u in rng.random(2))
        to_y, to_x = min(max(y + dy, 0), rows - size_y), min(max(x + dx, 0), columns - size_x)
        result[to_y : to_y + size_y, to_x : to_x + size_x] = result[y : y + size_y, x : x + size_x].copy()
    return result


def block_lost(image: FloatArray, count: float, rng: np.random.Generator) -> FloatArray:
    """Squares of 32 px take one random colour each, as in KADID; R-Bench's text speaks of random pixels."""
    rows, columns = image.shape[:2]
    size_y, size_x = min(LOST, rows), min(LOST, columns)
    result = image.copy()
    for _ in range(round(count)):
        y, x = int(rng.integers(0, rows - size_y + 1)), int(rng.integers(0, columns - size_x + 1))
        result[y : y + size_y, x : x + size_x] = _colour(image, rng)
    return result


def block_interpolation(image: FloatArray, count: float, rng: np.random.Generator) -> FloatArray:
    """Macro-blocks are dropped and filled from their borders.

    A pixel becomes the mean of the four border pixels in its row and column, weighted by the inverse of their distance.
    """
    rows, columns = (side // BLOCK for side in image.shape[:2])
    chosen = rng.permutation(rows * columns)[: min(round(count), rows * columns)]
    result = image.copy()
    near = 1 / np.arange(1, BLOCK + 1, dtype=image.dtype)
    far = near[::-1]
    for place in chosen:
        y, x = (int(start) * BLOCK for start in divmod(int(place), columns))
        # A border outside the image has no weight; the others of a block at the edge take over.
        above, below = max(y - 1, 0), min(y + BLOCK, image.shape[0] - 1)
        left, right = max(x - 1, 0), min(x + BLOCK, image.shape[1] - 1)
        weights = np.zeros((4, BLOCK, BLOCK, 1), dtype=image.dtype)
        weights[0, ..., 0] = near[:, None] * (y > 0)
        weights[1, ..., 0] = far[:, None] * (y + BLOCK < image.shape[0])
        weights[2, ..., 0] = near[None] * (x > 0)
        weights[3, ..., 0] = far[None] * (x + BLOCK < image.shape[1])
        total = weights.sum(axis=0)
        if total.all():
            across, down = image[y : y + BLOCK], image[:, x : x + BLOCK]
            borders = (down[above], down[below], across[:, left][:, None], across[:, right][:, None])
            filled = sum(weight * border for weight, border in zip(weights, borders, strict=True))
            result[y : y + BLOCK, x : x + BLOCK] = filled / total
    return result


def _colour(image: FloatArray, rng: np.random.Generator) -> FloatArray:
    """A random colour in the image's format."""
    colour = np.asarray(rng.random(image.shape[2]))
    return np.rint(255 * colour) if image.dtype == np.uint8 else colour


def _square(place: int, columns: int) -> tuple[slice, slice]:
    row, column = divmod(place, columns)
    return slice(row * BLOCK, (row + 1) * BLOCK), slice(column * BLOCK, (column + 1) * BLOCK)
