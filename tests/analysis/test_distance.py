"""Distances against closed forms, against 60-digit arithmetic, and against their own
invariances."""

from __future__ import annotations

from typing import Any

import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import mpmath
import numpy as np
import pytest
from hypothesis import assume, given

from psyprobe.analysis.distance import (
    MEASURES,
    angular_distance,
    angular_of_rounded_cosine,
    distances,
)
from psyprobe.errors import InputError

VALUES = st.floats(-1e6, 1e6).filter(lambda v: v == 0 or abs(v) > 1e-6)
PAIRS = (
    st.integers(2, 40)
    .flatmap(lambda d: st.tuples(*[hnp.arrays(np.float64, d, elements=VALUES)] * 2))
    .filter(lambda pair: pair[0].any() and pair[1].any())
)


def exact_angle(a: Any, b: Any) -> mpmath.mpf:
    """Angle over pi in 60 digits; the arccosine has digits to spare there."""
    with mpmath.workdps(60):
        u, v = (
            mpmath.matrix([mpmath.mpf(float(x)) for x in a]),
            mpmath.matrix([mpmath.mpf(float(x)) for x in b]),
        )
        cosine = mpmath.fdot(u, v) / mpmath.sqrt(mpmath.fdot(u, u) * mpmath.fdot(v, v))
        return mpmath.acos(min(max(cosine, mpmath.mpf(-1)), mpmath.mpf(1))) / mpmath.pi


@given(st.floats(-16, 0).map(lambda e: 10.0**e), st.floats(0, 2 * np.pi))
def test_a_known_small_angle_in_a_plane_comes_back(
    angle: float, heading: float
) -> None:
    axis, side = (
        np.array([np.cos(heading), np.sin(heading)]),
        np.array([-np.sin(heading), np.cos(heading)]),
    )
    measured = (
        angular_distance(axis, np.cos(angle) * axis + np.sin(angle) * side) * np.pi
    )
    assert abs(measured - angle) <= 4e-16


@pytest.mark.parametrize("angle", [1e-300, 1e-100, 1e-16, 1e-12, 1e-8, 1e-4])
def test_along_an_axis_even_the_smallest_angle_is_exact(angle: float) -> None:
    assert angular_distance([1.0, 0.0], [1.0, angle]) == pytest.approx(
        np.arctan(angle) / np.pi, rel=1e-15
    )


@given(PAIRS)
def test_agrees_with_sixty_digits(pair: tuple[np.ndarray, np.ndarray]) -> None:
    a, b = pair
    assert abs(float(angular_distance(a, b) - exact_angle(a, b))) < 4e-16


def test_long_float32_features_keep_sixteen_digits() -> None:
    rng = np.random.default_rng(1)
    a = rng.random(10_000, dtype=np.float32)
    b = a.copy()
    b[7] = np.nextafter(b[7], np.float32(2))
    # The difference is a single float32 step: known exactly, and at right angles to a but for a
    # trifle.
    exact = float(exact_angle(a, b))
    assert 1e-11 < exact < 1e-8
    assert angular_distance(a, b) == pytest.approx(exact, abs=2e-16)


@pytest.mark.parametrize("step", [1e-7, 1e-5, 1e-3, 0.1])
def test_small_angles_keep_sixteen_digits_of_their_own(step: float) -> None:
    rng = np.random.default_rng(4)
    a = rng.uniform(0.3, 0.7, 300).astype(np.float32)
    b = (a + step * rng.standard_normal(300)).astype(np.float32)
    assert angular_distance(a, b) == pytest.approx(
        float(exact_angle(a, b)), rel=2e-15, abs=0
    )


@given(PAIRS)
def test_range_symmetry_and_identity(pair: tuple[np.ndarray, np.ndarray]) -> None:
    a, b = pair
    forward = distances(a, b)
    backward = distances(b, a)
    assert 0 <= forward["angular"] <= 1
    assert -1 <= forward["cosine"] <= 1
    for measure in MEASURES:
        assert forward[measure] == backward[measure]
    self_distances = distances(a, a)
    assert (
        self_distances["angular"] == self_distances["l1"] == self_distances["l2"] == 0
    )
    assert self_distances["cosine"] == pytest.approx(1, abs=1e-15)
    assert angular_distance(a, -a) == 1


@given(PAIRS, st.floats(1e-3, 1e3))
def test_angle_ignores_the_length_of_either_vector(
    pair: tuple[np.ndarray, np.ndarray], factor: float
) -> None:
    a, b = pair
    assert abs(angular_distance(factor * a, b) - angular_distance(a, b)) < 4e-16


@given(PAIRS)
def test_measures_agree_with_numpy_and_each_other(
    pair: tuple[np.ndarray, np.ndarray],
) -> None:
    a, b = pair
    assume(np.linalg.norm(a - b) > 0)
    measures = distances(a, b)
    assert measures["l1"] == pytest.approx(np.abs(a - b).sum(), rel=1e-14)
    assert measures["l2"] == pytest.approx(np.linalg.norm(a - b), rel=1e-14)
    assert measures["angular"] == angular_distance(a, b)
    assert np.cos(np.pi * measures["angular"]) == pytest.approx(
        measures["cosine"], abs=2e-15
    )


@given(
    hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=3, max_side=4),
    st.integers(1, 5),
    st.integers(0, 99),
)
def test_leading_dimensions_broadcast(
    shapes: hnp.BroadcastableShapes, length: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    a, b = (rng.normal(size=(*shape, length)) for shape in shapes.input_shapes)
    measures = distances(a, b)
    whole_a, whole_b = np.broadcast_arrays(a, b)
    for index in np.ndindex(shapes.result_shape):
        alone = distances(whole_a[index], whole_b[index])
        for measure in MEASURES:
            assert measures[measure].shape == shapes.result_shape
            assert measures[measure][index] == alone[measure]


def test_batches_larger_than_a_block_equal_single_calls() -> None:
    rng = np.random.default_rng(2)
    test, reference = (
        rng.random((5, 60_000), dtype=np.float32),
        rng.random(60_000, dtype=np.float32),
    )
    batch_measures = distances(test, reference)
    for measure in MEASURES:
        assert list(batch_measures[measure]) == [
            distances(row, reference)[measure] for row in test
        ]


def test_stride_zero_views_and_inputs_stay_untouched() -> None:
    grey = np.broadcast_to(np.linspace(0, 1, 64)[:, None], (64, 3)).reshape(1, -1)
    before = grey.copy()
    distances(grey, before[0] + 0.1)
    angular_distance(grey, before[0] + 0.1)
    np.testing.assert_array_equal(grey, before)


def test_float32_form_has_the_papers_floor() -> None:
    ulp = 2.0**-24
    assert angular_of_rounded_cosine(1 - ulp) == pytest.approx(1.099e-4, rel=1e-3)
    assert angular_of_rounded_cosine(1 - 2 * ulp) == pytest.approx(1.554e-4, rel=1e-3)
    assert angular_of_rounded_cosine(1 - ulp / 3) == 0
    assert angular_of_rounded_cosine(1 + 1e-7) == 0
    np.testing.assert_allclose(angular_of_rounded_cosine([0.0, -1.0]), [0.5, 1.0])


def test_float32_form_reproduces_the_published_floor(oracle_data: Any) -> None:
    grids = np.load(oracle_data / "encoder_protocol/published_sac_grids/luminance.npz")
    published = grids["s_ac"][grids["models"] != "cvvdp_hdr"]  # which answers in JOD
    smallest = published[published > 0].min()
    assert angular_of_rounded_cosine(1 - 2.0**-24) == pytest.approx(
        float(smallest), rel=1e-5
    )


@pytest.mark.parametrize(
    ("test", "reference", "message"),
    [
        ([1.0, np.nan], [1.0, 1.0], "not finite"),
        ([1.0, np.inf], [1.0, 1.0], "not finite"),
        ([1e200, 1.0], [1.0, 1.0], "beyond 1e150"),
        ([1.0, 1.0], [1.0, 1.0, 1.0], "2 and 3 values"),
        (np.ones((2, 0)), np.ones((2, 0)), "at least one"),
        (np.ones((2, 3)), np.ones((4, 3)), "do not broadcast"),
        (3.0, [1.0], "shape"),
        ([1j, 1.0], [1.0, 1.0], "real numbers"),
    ],
)
def test_what_has_no_distance_is_refused(
    test: Any, reference: Any, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        distances(test, reference)


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        (
            [[1.0, 1.0], [0.0, 0.0]],
            [1.0, 0.0],
            r"first feature vector \(1,\) has length 0",
        ),
        ([1.0, 1.0], [0.0, 0.0], r"second feature vector \(0,\) has length 0"),
    ],
)
def test_an_angle_with_nothing_is_refused(
    first: Any, second: Any, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        angular_distance(first, second)


@pytest.mark.parametrize("cosine", [np.nan, 1.1, -2.0])
def test_what_is_no_cosine_is_refused(cosine: float) -> None:
    with pytest.raises(InputError, match="no cosine"):
        angular_of_rounded_cosine(cosine)
