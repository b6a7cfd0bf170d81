"""The cosine similarity of Cai et al. (2025), rounding errors included.

They computed it in float32 on a GPU, where neighbouring images differ by less than a rounding error: the printed scores
of some observers depend on the order in which the GPU added its products. This module adds in that order (PyTorch's
reduction kernel for one contiguous vector: four interleaved partial sums a thread, 512 threads a block, a tree within
the block and another over the blocks; squares by fused multiply-add), and so reproduces their stored responses of the
image itself bit for bit in nearly all cases. New work wants `angular_distance`, which has no such floor.
"""

from __future__ import annotations

import numpy as np

from psyprobe._typing import FloatArray

_LANES, _WARP, _MOST_THREADS = 4, 32, 512


def angular_distance_float32(test: FloatArray, reference: FloatArray) -> FloatArray:
    """S_ac as published: arccos of a float32 cosine, cut to [-1, 1], over pi.

    The smallest difference above 0 is 1.1e-4; what is closer becomes 0.

    Parameters
    ----------
    test, reference : ndarray, shapes (..., D)
        Features; the leading axes broadcast.

    Returns
    -------
    ndarray, shape (...)
        0 to 1.

    Examples
    --------
    >>> feature = np.linspace(0.1, 1.0, 512)
    >>> float(angular_distance_float32(feature, feature))
    0.0
    """
    test, reference = (np.asarray(v, dtype=np.float32) for v in (test, reference))
    # Norms of a shared reference are summed once.
    unit_test = test / np.sqrt(_summed(test, squared=True))[..., None]
    unit_reference = reference / np.sqrt(_summed(reference, squared=True))[..., None]
    cosine = _summed(unit_test * unit_reference, squared=False)
    return np.asarray(np.arccos(np.clip(cosine, -1, 1)) / np.float32(np.pi), dtype=np.float64)


def _summed(values: FloatArray, squared: bool) -> FloatArray:
    """Sum over the last axis in float32, in the order of the GPU; of the squares if asked."""
    leading, length = values.shape[:-1], values.shape[-1]
    vectors = -(-length // _LANES)
    threads = min(1 << (vectors.bit_length() - 1), _MOST_THREADS)
    each = -(-length // threads)
    blocks = max(-(-each // 16), -(-each // 256)) if each >= 256 else 1
    rounds = -(-vectors // (threads * blocks))
    padded = np.zeros((*leading, rounds * blocks * threads * _LANES), np.float32)
    padded[..., :length] = values
    padded = padded.reshape(*leading, rounds, blocks, threads, _LANES)
    total = np.zeros((*leading, blocks, threads, _LANES), np.float32)
    for turn in range(rounds):
        part = padded[..., turn, :, :, :]
        # A fused multiply-add rounds once; float64 holds the exact product of two float32.
        total = (total + part.astype(np.float64) ** 2).astype(np.float32) if squared else total + part
    lanes = total[..., 0]
    for lane in range(1, _LANES):
        lanes = lanes + total[..., lane]
    partial = _tree(lanes)
    if blocks == 1:
        return partial[..., 0]
    last = np.zeros((*leading, threads), np.float32)
    last[..., :blocks] = partial
    return _tree(last)


def _tree(values: FloatArray) -> FloatArray:
    """Sum over the threads of a block: halves down to a warp, then neighbours."""
    width = values.shape[-1]
    while width > _WARP:
        width //= 2
        values = values[..., :width] + values[..., width : 2 * width]
    while values.shape[-1] > 1:
        values = values[..., 0::2] + values[..., 1::2]
    return values[..., 0]
