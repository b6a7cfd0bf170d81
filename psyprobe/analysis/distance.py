"""Measure how far apart two feature vectors lie: angle, cosine, L1 and L2.

The angle also comes as Cai et al. computed it, in float32.

References
----------
Cai, Yin, Hammou, Mantiuk (2025). Do computer vision foundation models learn the low-level
characteristics of the human visual system? CVPR. Section 3, S_ac: the angle between two feature
vectors over pi. Kahan (2006). How futile are mindless assessments of roundoff in floating-point
computation? Section 12: the angle between two vectors by the arctangent of half-angle lengths.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from psyprobe._typing import FloatArray, IntArray
from psyprobe.errors import InputError

MEASURES = ("angular", "cosine", "l1", "l2")

#: Values of one block (1 MiB of float64), and of one stripe of it and columns of that: a stripe
#: stays in a processor's outer cache, and is no smaller, since calls of numpy cost a microsecond
#: each. Sums are made of a part's values first, and then of the parts, which keeps rounding small.
_BLOCK = 1 << 17
_STRIPE = 1 << 16
_COLUMNS = 1 << 13
_PART = 1 << 11

#: Sizes of the GPU's sum.
_LANES = 4
_WARP = 32
_MAX_THREADS = 512

#: Squared lengths below this have lost digits to underflow.
_SMALLEST_SQUARE = 1e-290


def distances(test: ArrayLike, reference: ArrayLike) -> dict[str, FloatArray]:
    """Compute all distances (angular, L1, L2 ...) between test and reference feature vectors.

    Parameters
    ----------
    test : array_like of float, shape (..., D)
        Features of the test images.
    reference : array_like of float, shape (..., D)
        Features of the images they are compared with; leading dimensions broadcast against those of
        `test`.

    Returns
    -------
    dict of str to ndarray of float64, shape (...)
        "angular": S_ac, angle over pi, 0 to 1 (orthogonal features give 0.5), as
        `angular_distance`; "cosine": cosine similarity, -1 to 1; "l1": sum of absolute differences,
        in feature units; "l2": Euclidean length of the difference, and "length": of the test's
        vector, in feature units. Angle and cosine are NaN where one of both vectors has length
        zero, so that it points nowhere.

    Raises
    ------
    InputError
        If the vectors differ in length D, or hold values that are not finite.

    Notes
    -----
    Everything is done in float64, stripe by stripe: extra memory is a few MiB, or a few vectors
    where one vector is larger than that. With w = a - b, which is exact where a and b are close,
    and d = w (a + b) / (|a| + |b|), the difference of their lengths, |u - v|² = (|w|² - d²) / (|a|
    |b|) of the unit vectors. Where this loses digits, which is where a and b lie nearly along one
    line or more than a right angle apart, unit vectors are subtracted.

    Examples
    --------
    >>> found = distances([[3.0, 4.0], [4.0, 3.0]], [3.0, 4.0])
    >>> found["l1"], found["l2"].round(3)
    (array([0., 2.]), array([0.   , 1.414]))
    >>> found["cosine"].round(2)
    array([1.  , 0.96])
    """
    return _measured(test, reference, ("test", "reference"))


class SummedDistances:
    """Distances between vectors that come in parts, such as features of the frames of clips.

    What is kept does not grow with the number of parts: sums of squares and products, and the mean
    of the parts. The angle is that of `distances` but for vectors that all but have one direction:
    below about 1e-8 of the difference of their lengths over one of these it is rounding.

    Examples
    --------
    >>> parts = SummedDistances()
    >>> parts.add(np.array([[[3.0, 0.0], [0.0, 1.0]]]), np.array([[[3.0, 1.0], [0.0, 0.0]]]))
    >>> whole = distances([3.0, 0.0, 0.0, 1.0], [3.0, 1.0, 0.0, 0.0])
    >>> all(np.isclose(parts.distances()[name][0], whole[name], rtol=1e-12) for name in MEASURES)
    True
    >>> parts.distances_of_means()["l2"]
    array([0.])
    """

    def __init__(self) -> None:
        self._sums: dict[str, FloatArray] = {}
        self._parts = 0

    def add(self, test: FloatArray, reference: FloatArray, times: int = 1) -> None:
        """Add parts of the vectors to the sums, each counted `times` times.

        Parameters
        ----------
        test : ndarray, shape (n, parts, D)
            Of each test.
        reference : ndarray, shape (n, parts, D) or (n, 1, D)
            Of the vectors that they are compared with; one part stands for all.
        times : int
            How often.
        """
        tests = np.asarray(test, float)
        difference = tests - reference
        references = np.broadcast_to(np.asarray(reference, float), tests.shape)
        new = {
            "test": (tests * tests).sum(axis=(1, 2)),
            "reference": (references * references).sum(axis=(1, 2)),
            "along": (tests * difference).sum(axis=(1, 2)),
            "apart": (difference * difference).sum(axis=(1, 2)),
            "l1": np.abs(difference).sum(axis=(1, 2)),
            "mean test": tests.sum(axis=1),
            "mean reference": references.sum(axis=1),
        }
        self._sums = {
            name: self._sums.get(name, 0.0) + times * value
            for name, value in new.items()
        }
        self._parts += times * tests.shape[1]

    def distances(self) -> dict[str, FloatArray]:
        """Compute the distances of all parts joined to one long vector, shape (n,) each.

        The keys are those of `distances`.
        """
        test, reference, along, apart = (
            self._sums[name] for name in ("test", "reference", "along", "apart")
        )
        if not np.isfinite(test + reference).all():
            raise InputError(
                "a feature holds values that are not finite; check the observer's input range "
                "and format"
            )
        length_product = np.sqrt(test) * np.sqrt(reference)
        # |a x b|² = |a|² |d|² - (a d)² with d = a - b: no digits are lost where d is small.
        across = np.sqrt(np.clip(test * apart - along**2, 0.0, None))
        with np.errstate(divide="ignore", invalid="ignore"):
            cosine = np.clip((test - along) / length_product, -1.0, 1.0)
        angle = np.arctan2(across, test - along) / np.pi
        defined = length_product > _SMALLEST_SQUARE
        return {
            "angular": np.where(defined, angle, np.nan),
            "cosine": np.where(defined, cosine, np.nan),
            "l1": self._sums["l1"],
            "l2": np.sqrt(apart),
            "length": np.sqrt(test),
        }

    def distances_of_means(self) -> dict[str, FloatArray]:
        """Compute distances between the means of the parts, shape (n,) each."""
        test, reference = (
            self._sums[name] / self._parts for name in ("mean test", "mean reference")
        )
        return distances(test, reference)


def angular_distance(a: ArrayLike, b: ArrayLike) -> FloatArray:
    """Compute the angle between feature vectors over pi, exact to float64 rounding.

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
    ``S_ac = (2 / pi) atan2(|u - v|, |u + v|)`` with ``u = a / |a|``, ``v = b / |b|``. The arccosine
    of the cosine, which the paper's code takes, loses half the digits: in float32 nothing between 0
    and 1.1e-4 can come out of it.

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
    psyprobe.errors.InputError: second feature vector (0,) has length 0, so it points
    nowhere and no angle ...
    """
    names = ("first", "second")
    angle = _measured(a, b, names)["angular"]
    if np.isnan(angle).any():
        lost = tuple(int(i) for i in np.argwhere(np.isnan(angle))[0])
        first = np.broadcast_to(a, (*angle.shape, np.shape(a)[-1]))[lost]
        name = (
            names[0]
            if _square(np.asarray(first, float)) <= _SMALLEST_SQUARE
            else names[1]
        )
        raise InputError(
            f"{name} feature vector {lost or (0,)} has length 0, so it points nowhere and no angle "
            "exists; choose another layer, or leave out what gives no features at all"
        )
    return angle


def lengths(rows: ArrayLike) -> FloatArray:
    """Compute Euclidean lengths of feature vectors, in float64.

    Parameters
    ----------
    rows : array_like of float, shape (N, D)
        A vector each.

    Examples
    --------
    >>> lengths([[3.0, 4.0], [0.0, 0.0]])
    array([5., 0.])
    """
    return np.array(
        [np.sqrt(_square(np.asarray(row, float))) for row in np.asarray(rows)]
    )


def angular_of_rounded_cosine(cosine: ArrayLike) -> FloatArray:
    """Compute the angle over pi from a cosine similarity rounded to float32.

    This is what the float32 number itself costs. The paper's arithmetic adds the rounding errors of
    its sums: `angular_distance_float32` repeats those, too.

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
    exact = np.asarray(cosine, float)
    outside = ~(np.abs(exact) <= 1 + 1e-6)
    if outside.any():
        raise InputError(
            f"cosine similarity {exact[outside].flat[0]:g} is no cosine: it must lie within [-1, "
            "1]; pass the 'cosine' of distances()"
        )
    rounded = np.clip(exact.astype(np.float32), -1, 1).astype(float)
    angle: FloatArray = np.arccos(rounded) / np.pi
    return angle


def _measured(
    a: ArrayLike, b: ArrayLike, names: tuple[str, str]
) -> dict[str, FloatArray]:
    """Compute all distances between feature vectors whose leading dimensions broadcast."""
    first, second, shape = _broadcast(a, b)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        test_squares, reference_squares, apart, turned, l1 = _sums(
            first, second, math.prod(shape)
        )
        for name, values in (
            (names[1], reference_squares),
            (names[0], test_squares),
            (names[0], apart),
        ):
            _check_finite(values, name, shape)
        nowhere = (test_squares <= _SMALLEST_SQUARE) | (
            reference_squares <= _SMALLEST_SQUARE
        )
        length = np.where(nowhere, np.nan, np.sqrt(test_squares))
        other = np.sqrt(reference_squares)
        across = apart - (turned / (length + other)) ** 2
        chord = across / (length * other)
        angular = _half_angle(np.maximum(chord, 0), np.maximum(4 - chord, 0))
    cosine = 1 - chord / 2
    for rows, u, v in _units(
        first, second, np.flatnonzero((across < apart / 2) | (chord > 2))
    ):
        cosine[rows] = np.clip((u * v).sum(axis=-1), -1.0, 1.0)
        angular[rows] = _half_angle(_square(u - v), _square(u + v))
    measured = {
        "angular": angular,
        "cosine": cosine,
        "l1": l1,
        "l2": np.sqrt(apart),
        "length": np.sqrt(test_squares),
    }
    return {measure: values.reshape(shape) for measure, values in measured.items()}


def _broadcast(
    a: ArrayLike, b: ArrayLike
) -> tuple[FloatArray, FloatArray, tuple[int, ...]]:
    """Reshape two arrays of vectors to rows, and return the shape of their distances."""
    first = np.asarray(a)
    second = np.asarray(b)
    for array in (first, second):
        if array.dtype.kind not in "fiub" or array.ndim == 0:
            raise InputError(
                f"features must be real numbers of shape (..., D), not {array.dtype} of shape "
                f"{array.shape}"
            )
    if first.shape[-1] != second.shape[-1] or first.shape[-1] == 0:
        raise InputError(
            f"feature vectors have {first.shape[-1]} and {second.shape[-1]} values along the last "
            "axis; both must come from the same layer of the same observer, and have at least one"
        )
    try:
        shape = np.broadcast_shapes(first.shape[:-1], second.shape[:-1])
    except ValueError:
        raise InputError(
            f"leading dimensions {first.shape[:-1]} and {second.shape[:-1]} of the features do not "
            "broadcast; give one reference, or one for each test"
        ) from None
    return _as_rows(first, shape), _as_rows(second, shape), shape


def _as_rows(vectors: FloatArray, shape: tuple[int, ...]) -> FloatArray:
    """Broadcast feature vectors to a shape and flatten them to rows."""
    if math.prod(vectors.shape[:-1]) == 1:
        return vectors.reshape(1, -1)
    return np.broadcast_to(vectors, (*shape, vectors.shape[-1])).reshape(
        -1, vectors.shape[-1]
    )


def _sums(first: FloatArray, second: FloatArray, count: int) -> FloatArray:
    """Sum aa, bb, ww, w (a + b) and |w| of rows a and b with w = a - b, shape (5, count)."""
    length = first.shape[-1]
    parts = np.empty((5, count, -(-length // _PART)))
    rows_at_once = max(1, _STRIPE // min(length, _COLUMNS))
    even_length = length - length % _PART
    for start in range(0, count, rows_at_once):
        rows = slice(start, start + rows_at_once)
        for left, right in pairwise(
            sorted({*range(0, even_length, _COLUMNS), even_length, length})
        ):
            size = min(_PART, right - left)
            columns = (
                vectors[rows if len(vectors) > 1 else slice(1), left:right]
                for vectors in (first, second)
            )
            a, b = (
                vectors.astype(float).reshape(len(vectors), -1, size)
                for vectors in columns
            )
            w = a - b
            products = (
                np.vecdot(a, a),
                np.vecdot(b, b),
                np.vecdot(w, w),
                np.vecdot(w, a) + np.vecdot(w, b),
            )
            part_slice = slice(left // _PART, -(-right // _PART))
            for row, of_parts in enumerate([*products, np.abs(w, out=w).sum(axis=-1)]):
                parts[row, rows, part_slice] = of_parts
    return np.asarray(parts.sum(axis=-1))


def _units(
    first: FloatArray, second: FloatArray, row_index: IntArray
) -> Iterator[tuple[IntArray, FloatArray, FloatArray]]:
    """Iterate over blocks of two sets of rows, with their unit vectors."""
    rows_at_once = max(1, _BLOCK // first.shape[-1])
    for start in range(0, len(row_index), rows_at_once):
        rows = row_index[start : start + rows_at_once]
        u, v = (
            vectors[rows if len(vectors) > 1 else [0]].astype(float)
            for vectors in (first, second)
        )
        yield rows, u / np.sqrt(_square(u))[:, None], v / np.sqrt(_square(v))[:, None]


def _check_finite(squares: FloatArray, name: str, shape: tuple[int, ...]) -> None:
    """Refuse feature vectors that are not finite, naming the first by its squared length."""
    bad = ~np.isfinite(squares)
    if bad.any():
        row = tuple(
            int(i) for i in np.unravel_index(int(np.argmax(bad)), shape or (1,))
        )
        raise InputError(
            f"{name} feature vector {row} holds values that are not finite (or beyond 1e150); run "
            "the observer in float32 or better, and check its input range"
        )


def _half_angle(apart: FloatArray, along: FloatArray) -> FloatArray:
    """Compute an angle over pi from squared lengths of difference and sum of unit vectors."""
    return np.asarray(2 / np.pi * np.arctan2(np.sqrt(apart), np.sqrt(along)))


def _square(rows: FloatArray) -> FloatArray:
    """Compute squared lengths by pairwise summation.

    A dot product rounds ten times worse at 100,000 values.
    """
    return np.asarray((rows * rows).sum(axis=-1))


def angular_distance_float32(test: FloatArray, reference: FloatArray) -> FloatArray:
    """Compute the angle over pi as published: arccos of a float32 cosine cut to [-1, 1].

    Rounding errors are included: the smallest difference above 0 is 1.1e-4, and smaller ones become
    0. New work wants `angular_distance`.

    The smallest difference above 0 is 1.1e-4; what is closer becomes 0. New work wants
    `angular_distance`.

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
    Cai et al. computed the cosine in float32 on a GPU, where neighbouring images differ by less
    than a rounding error: the printed scores of some observers depend on the order in which the GPU
    added its products. This adds in that order (PyTorch's reduction kernel for one contiguous
    vector: four interleaved partial sums a thread, 512 threads a block, a tree within the block and
    another over the blocks; squares by fused multiply-add), and so reproduces their stored
    responses of the image itself to all nine digits in the eight detection experiments.

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
        unit_reference = (
            reference / np.sqrt(_summed(reference, squared=True))[..., None]
        )
    cosine = _summed(unit_test * unit_reference, squared=False)
    return np.asarray(np.arccos(np.clip(cosine, -1, 1).astype(float)) / np.pi)


def _summed(values: FloatArray, squared: bool) -> FloatArray:
    """Sum values or their squares over the last axis in float32, in the order of a GPU."""
    leading = values.shape[:-1]
    length = values.shape[-1]
    vectors = -(-length // _LANES)
    threads = min(1 << (vectors.bit_length() - 1), _MAX_THREADS)
    per_thread = -(-length // threads)
    blocks = -(-per_thread // 16) if per_thread >= 256 else 1
    rounds = -(-vectors // (threads * blocks))
    padded = np.zeros((*leading, rounds * blocks * threads * _LANES), np.float32)
    padded[..., :length] = values
    padded = padded.reshape(*leading, rounds, blocks, threads, _LANES)
    total = np.zeros((*leading, blocks, threads, _LANES), np.float32)
    for turn in range(rounds):
        part = padded[..., turn, :, :, :]
        # A fused multiply-add rounds once; float64 holds the exact product of two float32.
        total = (
            (total + part.astype(float) ** 2).astype(np.float32)
            if squared
            else total + part
        )
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
    """Sum over the threads of a GPU block in float32: halves down to a warp, then neighbours."""
    width = values.shape[-1]
    while width > _WARP:
        width //= 2
        values = values[..., :width] + values[..., width : 2 * width]
    while values.shape[-1] > 1:
        values = values[..., 0::2] + values[..., 1::2]
    return values[..., 0]
