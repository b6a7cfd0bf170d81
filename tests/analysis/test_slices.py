"""Monotonicity and unevenness of responses whose truth is known."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pytest
from detection_results import MULTIPLIER
from hypothesis import given

from psyprobe.analysis import alignment_score, score_slices
from psyprobe.errors import InputError


@given(
    st.lists(st.floats(-3, 3), min_size=2, max_size=20),
    st.floats(0.1, 4),
    st.floats(-200, 200).map(lambda e: 10 ** (e / 10)),
)
def test_planted_displacements_come_back(
    offsets: list[float], slope: float, gain: float
) -> None:
    displaced = np.array(offsets)
    response = gain * (MULTIPLIER * 10 ** displaced[:, None]) ** slope
    slices = score_slices(MULTIPLIER, response)
    assert slices.unevenness == pytest.approx(np.std(displaced), rel=1e-6, abs=1e-9)
    assert slices.slope == pytest.approx(slope, rel=1e-6)
    assert slices.monotonicity == slices.lowest == pytest.approx(1)
    assert (slices.constant, slices.not_positive, slices.total) == (0, 0, len(offsets))


def test_one_octave_up_and_down_is_three_tenths() -> None:
    slices = score_slices(MULTIPLIER, [2 * MULTIPLIER, MULTIPLIER / 2])
    assert slices.unevenness == pytest.approx(np.log10(2))


def test_monotonicity_is_the_mean_of_the_slices_own_scores() -> None:
    rng = np.random.default_rng(0)
    response = rng.random((6, 10))
    alone = [alignment_score(MULTIPLIER, row) for row in response]
    slices = score_slices(MULTIPLIER, response)
    assert slices.monotonicity == pytest.approx(np.mean(alone), abs=1e-12)
    assert slices.lowest == pytest.approx(min(alone), abs=1e-12)


def test_what_cannot_be_used_is_counted() -> None:
    response = np.stack(
        [MULTIPLIER, 2 * MULTIPLIER, np.zeros(10), MULTIPLIER - MULTIPLIER[0]]
    )
    slices = score_slices(MULTIPLIER, response)
    assert (slices.constant, slices.not_positive, slices.total) == (1, 2, 4)
    assert slices.unevenness == pytest.approx(np.log10(2) / 2)
    nothing = score_slices(MULTIPLIER, np.zeros((3, 10)))
    assert (
        nothing.monotonicity,
        nothing.lowest,
        nothing.slope,
        nothing.unevenness,
    ) == (None,) * 4


def test_falling_responses_cannot_be_levelled() -> None:
    slices = score_slices(MULTIPLIER, [1 / MULTIPLIER, 2 / MULTIPLIER])
    assert slices.unevenness is None
    assert slices.slope == pytest.approx(-1)
    assert slices.monotonicity == pytest.approx(-1)


@pytest.mark.parametrize(
    ("multiplier", "response", "message"),
    [
        (MULTIPLIER, np.ones((3, 9)), "do not fit"),
        (MULTIPLIER, np.full((3, 10), np.inf), "finite"),
        (np.ones(10), np.ones((3, 10)), "two different"),
        (MULTIPLIER - 0.5, np.ones((3, 10)), "above 0"),
    ],
)
def test_what_has_no_slices_is_refused(
    multiplier: np.ndarray, response: np.ndarray, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        score_slices(multiplier, response)
