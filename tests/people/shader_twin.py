"""Dither contrasts finer than 8 bits: frames of whole codes whose mean is the requested light.

This is the numpy twin of the page's shader (``gabor.frag``), in the same integers: a frame that was
read back from the page differs from `dithered` in next to no pixel.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from psyprobe._typing import ByteArray, FloatArray
from psyprobe.observers.human_screen import Dither

#: The golden ratio less one, in units of 2^-32.
_GOLDEN = 2654435769
_WIDTH = 8
_Unsigned = npt.NDArray[np.uint32]


def dithered(
    drive: FloatArray, frame: int, seed: int, method: Dither = "golden"
) -> ByteArray:
    """Return the 8-bit codes of one frame: floor(255 drive + u), with u in [0, 1).

    Each pixel and frame has its own u. Over frames the mean of the codes is 255 drive: a contrast
    of 0.0005 is delivered within 2 % in half a second.

    Parameters
    ----------
    drive : array (H, W)
        Requested drive, 0 to 1; the first row is the lowest of the screen, as in WebGL.
    frame : int
        Number from 0, counted by the clock, so that a dropped frame is skipped.
    seed : int
        0 to 2^32 - 1; each trial has another.
    method : "golden", "noisy_bit" or "wide"
        How u moves from frame to frame, and whether noise is added.

    Examples
    --------
    >>> frames = [dithered(np.full((64, 64), 0.4), frame, seed=1) for frame in range(30)]
    >>> sorted({int(code) for code in np.unique(frames)}), round(float(np.mean(frames)) / 255, 4)
    ([102], 0.4)
    >>> frames = [dithered(np.full((64, 64), 0.401), frame, seed=1) for frame in range(30)]
    >>> sorted({int(code) for code in np.unique(frames)}), round(float(np.mean(frames)) / 255, 4)
    ([102, 103], 0.401)
    """
    drive = np.asarray(drive, dtype=np.float64)
    y, x = np.indices(drive.shape, dtype=np.uint32)
    u = fractions(x, y, frame, seed, fresh=method == "noisy_bit")
    codes: FloatArray = 255 * drive
    if method == "wide":
        codes = codes + _WIDTH * (fractions(x, y, frame, seed, stream=1) - 0.5)
    return np.clip(np.floor(codes + u), 0, 255).astype(np.uint8)


def fractions(
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    frame: int,
    seed: int,
    *,
    stream: int = 0,
    fresh: bool = False,
) -> FloatArray:
    """Return the u of pixels, in [0, 1): a hash of position and seed, moved from frame to frame.

    Parameters
    ----------
    x, y : array_like of int
        Device pixels from the lower left.
    frame, seed : int
        As for `dithered`.
    stream : int
        Each stream has independent numbers.
    fresh : bool
        Hash the frame too, as the noisy bit does; else each frame adds the golden ratio.

    Examples
    --------
    >>> round(float(fractions(227, 274, 56, 777)), 8)
    0.9071269
    """
    position = np.asarray(x, dtype=np.uint32) + np.uint32(4096) * np.asarray(
        y, dtype=np.uint32
    )
    if fresh:
        hashed = _hash(position, frame, seed)
    else:
        hashed = _hash(position, stream, seed) + np.uint32(frame * _GOLDEN & 0xFFFFFFFF)
    return ((hashed >> np.uint32(8)).astype(np.float64) / 2**24).reshape(position.shape)


def _hash(x: _Unsigned, y: int, z: int) -> _Unsigned:
    return _pcg(x + _pcg(np.uint32(y) + _pcg(np.array([z], dtype=np.uint32))))


def _pcg(a: _Unsigned) -> _Unsigned:
    """PCG-RXS-M-XS of 32 bits (O'Neill 2014) as a hash (Jarzynski & Olano 2020)."""
    state = a * np.uint32(747796405) + np.uint32(2891336453)
    shift = (state >> np.uint32(28)) + np.uint32(4)
    word = ((state >> shift) ^ state) * np.uint32(277803737)
    hashed: _Unsigned = (word >> np.uint32(22)) ^ word
    return hashed
