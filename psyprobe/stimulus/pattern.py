"""Patterns before they become light: envelopes, carriers and noise of unit amplitude, drawn for a whole batch at once.

Coordinates: pixel centres lie at (i - (N - 1)/2)/ppd, x to the right, y up. Factors are computed in float64 on the
processor, whatever the precision and device of the image: that is cheap, and twenty times more exact in float32 than
computing phases in float32.

`shape` is (H, W) in pixels and `ppd` pixels per degree; parameters of a batch have shape (n,), its images (n, H, W).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from psyprobe._typing import Array, FloatArray


def pixel_positions(pixels: int, ppd: float) -> FloatArray:
    """Positions of pixel centres along one axis, deg, ascending and symmetric about 0.

    Examples
    --------
    >>> pixel_positions(4, 2.0).tolist()
    [-0.75, -0.25, 0.25, 0.75]
    """
    return (np.arange(pixels) - (pixels - 1) / 2) / ppd


def offsets(shape: tuple[int, int], ppd: float, x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """How far columns lie to the right of a place and rows above it, deg, shapes (n, W) and (n, H)."""
    return pixel_positions(shape[1], ppd) - x[:, None], -pixel_positions(shape[0], ppd) - y[:, None]


def cos_sin_degrees(angle: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Cosine and sine of angles in degrees, exactly 0 and 1 at multiples of 90.

    Examples
    --------
    >>> [abs(float(v[0])) for v in cos_sin_degrees(np.array([90.0]))]
    [0.0, 1.0]
    """
    quarter, rest = np.divmod(np.asarray(angle, float), 90.0)
    c, s = np.cos(np.deg2rad(rest)), np.sin(np.deg2rad(rest))
    turns = [quarter % 4 == quarters for quarters in range(3)]
    return np.select(turns, [c, -s, -c], s), np.select(turns, [s, c, -s], -c)


def namespace(device: str | None) -> Any:
    """Array functions of the backend: numpy, or torch where a device is named."""
    if device is None:
        import array_api_compat.numpy as xp
    else:
        import array_api_compat.torch as xp
    return xp


def to_backend(values: FloatArray, dtype: str, device: str | None) -> Array:
    """A float64 numpy array, rounded once to `dtype` and moved to `device` (None keeps numpy)."""
    rounded = np.ascontiguousarray(values, dtype=dtype)
    if device is None:
        return rounded
    import torch

    # Torch warns of arrays that cannot be written to, such as a parameter that was broadcast.
    return torch.from_numpy(rounded if rounded.flags.writeable else rounded.copy()).to(device)


def column(values: FloatArray, dtype: str, device: str | None) -> Array:
    """Numbers, one for each image, shaped to be added to images."""
    return to_backend(values[:, None, None], dtype, device)


def round_window(
    shape: tuple[int, int],
    ppd: float,
    *,
    x: FloatArray,
    y: FloatArray,
    radius: FloatArray,
    edge: FloatArray,
) -> FloatArray:
    """Discs of unit height with a raised-cosine edge.

    The window is 1 up to ``radius - edge/2``, 0 from ``radius + edge/2`` on and 1/2 at `radius`; an edge of 0 is a hard
    disc (pixels whose centres lie within the radius).
    """
    dx, dy = offsets(shape, ppd, x, y)
    distance = np.hypot(dx[:, None, :], dy[:, :, None]) - radius[:, None, None]
    width = edge[:, None, None]
    ramp = np.clip(distance / np.where(width > 0, width, 1.0) + 0.5, 0.0, 1.0)
    return np.where(width > 0, 0.5 * (1 + np.cos(np.pi * ramp)), distance <= 0)
