"""How far apart two feature vectors lie: angle, cosine, L1 and L2; and the angle as Cai et al. computed it, in float32.

References
----------
Cai, Yin, Hammou, Mantiuk (2025). Do computer vision foundation models learn the low-level characteristics of
the human visual system? CVPR. Section 3, S_ac: the angle between two feature vectors over pi.
Kahan (2006). How futile are mindless assessments of roundoff in floating-point computation? Section 12: the
angle between two vectors by the arctangent of half-angle lengths.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from psyprobe._typing import FloatArray
from psyprobe.errors import InputError

MEASURES = ("angular", "cosine", "l1", "l2")

#: Values of one block (1 MiB of float64), so that all passes over it stay in the processor's cache.
_BLOCK = 1 << 17

#: Of the GPU's sum.
_LANES, _WARP, _MOST_THREADS = 4, 32, 512

#: Squared lengths below this have lost digits to underflow.
_SMALLEST_SQUARE = 1e-290


def distances(test: npt.ArrayLike, reference: npt.ArrayLike) -> dict[str, FloatArray]:
    """All distances between test and reference features, in one pass over the vectors.

    Parameters
    ----------
    test : array_like of float, shape (..., D)
        Features of the test images.
    reference : array_like of float, shape (..., D)
        Features of the images they are compared with; leading dimensions broadcast against those of `test`.

    Returns
    -------
    dict of str to ndarray of float64, shape (...)
        "angular": S_ac, angle over pi, 0 to 1 (orthogonal features give 0.5), as `angular_distance`;
        "cosine": cosine similarity, -1 to 1; "l1": sum of absolute differences, in feature units;
        "l2": Euclidean length of the difference, in feature units. Angle and cosine are NaN where one of both vectors
        has length zero, so that it points nowhere.

    Raises
    ------
    InputError
        If the vectors differ in length D, or hold values that are not finite.

    Notes
    -----
    Everything is done in float64, block by block: extra memory is a few MiB, or a few vectors where one vector
    is larger than that. A reference that all tests share is normalised once.

    Examples
    --------
    >>> found = distances([[3.0, 4.0], [4.0, 3.0]], [3.0, 4.0])
    >>> found["l1"], found["l2"].round(3)
    (array([0., 2.]), array([0.   , 1.414]))
    >>> found["cosine"].round(2)
    array([1.  , 0.96])
    """
    test_rows, reference_rows, shape = _broadcast(test, reference)
    found = {measure: np.zeros(test_rows.shape[:-1]) for measure in MEASURES}
    for index, a, u, b, v in _blocks(test_rows, reference_rows):
        work = a - b
        np.abs(work, out=work)
        found["l1"][index] = work.sum(axis=-1)
        found["l2"][index] = np.sqrt(_square(work, work))
        np.multiply(u, v, out=work)
        found["cosine"][index] = np.clip(work.sum(axis=-1), -1.0, 1.0)
        found["angular"][index] = _angle(u, v, work)
    return {measure: value.reshape(shape) for measure, value in found.items()}


def angular_distance(a: npt.ArrayLike, b: npt.ArrayLike) -> FloatArray:
    """Angle between feature vectors over pi, S_ac, exact down to float64 rounding.

    Parameters
    ----------
    a, b : array_like of float, shape (..., D)
        Feature vectors along the last axis; leading dimensions broadcast.

    Returns
    -------
    ndarray of float64, shape (...)
        S_ac, 0 (same direction) to 1 (opposite direction); orthogonal vectors give 0.5.

    Raises
    ------
    InputError
        As for `distances`.

    See Also
    --------
    angular_of_rounded_cosine : what is left of the angle in a float32 cosine.

    Notes
    -----
    S_ac = (2 / pi) atan2(|u - v|, |u + v|) with u = a / |a|, v = b / |b|. The arccosine of the cosine, which
    the paper's code takes, loses half the digits: in float32 nothing between 0 and 1.1e-4 can come out of it.

    Examples
    --------
    >>> float(angular_distance([1.0, 0.0], [0.0, 1.0]))
    0.5
    >>> tiny = angular_distance([1.0, 0.0], [1.0, 1e-12]) * np.pi
    >>> bool(np.isclose(tiny, 1e-12, rtol=1e-15))
    True
    >>> angular_distance([1.0, 0.0], [0.0, 0.0])
    Traceback (most recent call last):
        ...
    psyprobe.errors.InputError: second feature vector (0,) has length 0, so it points nowhere and no angle ...
    """
    first, second, shape = _broadcast(a, b)
    names = ("first", "second")
    angle = np.empty(first.shape[:-1])
    for index, rows, u, _, v in _blocks(first, second, names=names):
        angle[index] = _angle(u, v, rows)
    if np.isnan(angle).any():
        lost = tuple(int(i) for i in np.argwhere(np.isnan(angle))[0])
        which = names[0] if _square(first[lost].astype(np.float64)) <= _SMALLEST_SQUARE else names[1]
        raise InputError(
            f"{which} feature vector {lost} has length 0, so it points nowhere and no angle exists; choose another "
            f"layer, or leave out what gives no features at all"
        )
    return angle.reshape(shape)


def lengths(rows: npt.ArrayLike) -> FloatArray:
    """Euclidean lengths of feature vectors, in float64.

    Parameters
    ----------
    rows : array_like of float, shape (N, D)
        A vector each.

    Examples
    --------
    >>> lengths([[3.0, 4.0], [0.0, 0.0]])
    array([5., 0.])
    """
    return np.array([np.sqrt(_square(np.asarray(row, dtype=np.float64))) for row in np.asarray(rows)])


def angular_of_rounded_cosine(cosine: npt.ArrayLike) -> FloatArray:
    """S_ac from a cosine similarity that is exact but for its rounding to float32: its arccosine over pi.

    This is what the float32 number itself costs. The paper's arithmetic adds the rounding errors of its sums:
    `angular_distance_float32` repeats those, too.

    Parameters
    ----------
    cosine : array_like of float
        Cosine similarity, -1 to 1; rounding beyond these ends is clamped.

    Returns
    -------
    ndarray of float64
        S_ac in [0, 1], of the same shape. The smallest value other than 0 is 1.099e-4.

    Raises
    ------
    InputError
        If a cosine is not finite or lies more than 1e-6 outside [-1, 1].

    Examples
    --------
    >>> angular_of_rounded_cosine([1.0, 1.0 - 1e-8, 1.0 - 6e-8]).round(7)
    array([0.       , 0.       , 0.0001099])
    """
    exact = np.asarray(cosine, dtype=np.float64)
    outside = ~(np.abs(exact) <= 1 + 1e-6)
    if outside.any():
        raise InputError(
            f"cosine similarity {exact[outside].flat[0]:g} is no cosine: it must lie within [-1, 1]; "
            f"pass the 'cosine' of distances()"
        )
    rounded = np.clip(exact.astype(np.float32), -1, 1).astype(np.float64)
    angle: FloatArray = np.arccos(rounded) / np.pi
    return angle


def _broadcast(a: npt.ArrayLike, b: npt.ArrayLike) -> tuple[FloatArray, FloatArray, tuple[int, ...]]:
    """Views with equal leading dimensions (at least one) and, last, the shape of the answer."""
    first, second = np.asarray(a), np.asarray(b)
    for array in (first, second):
        if array.dtype.kind not in "fiub" or array.ndim == 0:
            raise InputError(
                f"features must be real numbers of shape (..., D), not {array.dtype} of shape {array.shape}"
            )
    if first.shape[-1] != second.shape[-1] or first.shape[-1] == 0:
        raise InputError(
            f"feature vectors have {first.shape[-1]} and {second.shape[-1]} values along the last axis; "
            f"both must come from the same layer of the same observer, and have at least one"
        )
    try:
        shape = np.broadcast_shapes(first.shape[:-1], second.shape[:-1])
    except ValueError:
        raise InputError(
            f"leading dimensions {first.shape[:-1]} and {second.shape[:-1]} of the features do not broadcast; "
            f"give one reference, or one for each test"
        ) from None
    full = (shape or (1,)) + first.shape[-1:]
    return np.broadcast_to(first, full), np.broadcast_to(second, full), shape


def _blocks(
    first: FloatArray, second: FloatArray, names: tuple[str, str] = ("test", "reference")
) -> Iterator[tuple[tuple[npt.NDArray[np.intp], ...], FloatArray, FloatArray, FloatArray, FloatArray]]:
    """Index, vectors and unit vectors (first and second) of one block of rows after the other, as float64."""
    leading, length = first.shape[:-1], first.shape[-1]
    rows = max(1, _BLOCK // length)
    shared = all(stride == 0 or size == 1 for stride, size in zip(second.strides, leading, strict=False))
    b: FloatArray = np.empty(0)
    v = b
    for start in range(0, int(np.prod(leading)), rows):
        index = np.unravel_index(np.arange(start, min(start + rows, int(np.prod(leading)))), leading)
        a = first[index].astype(np.float64, copy=False)
        if start == 0 or not shared:
            chosen = tuple(axis[:1] for axis in index) if shared else index
            b = second[chosen].astype(np.float64, copy=False)
            v = _unit(b, names[1], chosen)
        yield index, a, _unit(a, names[0], index), b, v


def _unit(rows: FloatArray, name: str, index: tuple[npt.NDArray[np.intp], ...]) -> FloatArray:
    with np.errstate(over="ignore", invalid="ignore"):
        square = _square(rows)
    bad = ~np.isfinite(square)
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(
            f"{name} feature vector {tuple(int(axis[row]) for axis in index)} holds values that are not finite (or "
            f"beyond 1e150); run the observer in float32 or better, and check its input range"
        )
    return np.asarray(rows / np.sqrt(np.where(square > _SMALLEST_SQUARE, square, np.nan))[:, None])


def _square(rows: FloatArray, out: FloatArray | None = None) -> FloatArray:
    """Squared lengths, by pairwise summation: a dot product rounds ten times worse at 100,000 values."""
    return np.asarray(np.multiply(rows, rows, out=out).sum(axis=-1))


def _angle(u: FloatArray, v: FloatArray, work: FloatArray) -> FloatArray:
    apart = np.sqrt(_square(np.subtract(u, v, out=work), work))
    along = np.sqrt(_square(np.add(u, v, out=work), work))
    return np.asarray(2 / np.pi * np.arctan2(apart, along))


def angular_distance_float32(test: FloatArray, reference: FloatArray) -> FloatArray:
    """S_ac as published: arccos, in float64, of a float32 cosine cut to [-1, 1], over pi, rounding errors included.

    The smallest difference above 0 is 1.1e-4; what is closer becomes 0. New work wants `angular_distance`.

    Parameters
    ----------
    test, reference : ndarray, shapes (..., D)
        Features; the leading axes broadcast.

    Returns
    -------
    ndarray, shape (...)
        0 to 1.

    Notes
    -----
    Cai et al. computed the cosine in float32 on a GPU, where neighbouring images differ by less than a rounding
    error: the printed scores of some observers depend on the order in which the GPU added its products. This adds
    in that order (PyTorch's reduction kernel for one contiguous vector: four interleaved partial sums a thread, 512
    threads a block, a tree within the block and another over the blocks; squares by fused multiply-add), and so
    reproduces their stored responses of the image itself to all nine digits in the eight detection experiments.

    Examples
    --------
    >>> feature = np.linspace(0.1, 1.0, 512)
    >>> float(angular_distance_float32(feature, feature))
    0.0
    """
    test, reference = (np.asarray(v, dtype=np.float32) for v in (test, reference))
    # Norms of a shared reference are summed once.
    with np.errstate(invalid="ignore"):  # what has length 0 has no angle: NaN
        unit_test = test / np.sqrt(_summed(test, squared=True))[..., None]
        unit_reference = reference / np.sqrt(_summed(reference, squared=True))[..., None]
    cosine = _summed(unit_test * unit_reference, squared=False)
    return np.asarray(np.arccos(np.clip(cosine, -1, 1).astype(np.float64)) / np.pi)


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
