"""The alignment score against the published table, scipy, and its own invariances; its interval
against the truth."""

from __future__ import annotations

from pathlib import Path

import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import numpy as np
import pytest
from detection_results import MULTIPLIER, published_along, published_scores
from hypothesis import assume, given

from psyprobe.analysis import align, alignment_score, attainable_alignment
from psyprobe.analysis.alignment import midranks, weighted_spearman
from psyprobe.errors import InputError

RESPONSES = hnp.arrays(
    np.float64,
    st.tuples(st.integers(3, 8), st.just(10)),
    elements=st.integers(-6, 6).map(float),
)


def test_equals_every_published_score_of_the_stored_responses(
    oracle_data: Path,
) -> None:
    folder = oracle_data / "encoder_protocol"
    printed, stored = published_scores(folder), published_along(folder)
    assert len(stored) == 18 * 8
    for (model, test), rows in stored.items():
        # In the masking tests the multiplier multiplies the threshold, in the detection tests the
        # sensitivity.
        multiplier = rows[:, 1] if test.startswith("mask") else 1 / rows[:, 1]
        score = alignment_score(multiplier, rows[:, 3])
        assert abs(score - printed[model, test]) <= 5e-5, (model, test)


@given(RESPONSES)
def test_equals_scipy(responses: np.ndarray) -> None:
    from scipy.stats import spearmanr

    assume(len(np.unique(responses)) > 1)
    expected = spearmanr(
        np.tile(MULTIPLIER, len(responses)), responses.ravel()
    ).statistic
    assert alignment_score(MULTIPLIER, responses) == pytest.approx(expected, abs=1e-12)


@given(RESPONSES)
def test_only_the_order_of_responses_matters(responses: np.ndarray) -> None:
    assume(len(np.unique(responses)) > 1)
    score = alignment_score(MULTIPLIER, responses)
    assert alignment_score(MULTIPLIER, np.exp(responses)) == score
    assert alignment_score(MULTIPLIER**3, responses) == score
    assert alignment_score(MULTIPLIER, -responses) == pytest.approx(-score, abs=1e-12)
    assert alignment_score(MULTIPLIER, responses[::-1]) == pytest.approx(
        score, abs=1e-12
    )


@given(RESPONSES, st.lists(st.integers(0, 3), min_size=8, max_size=8))
def test_weights_are_copies(responses: np.ndarray, counts: list[int]) -> None:
    from scipy.stats import rankdata, spearmanr

    weights = np.repeat(counts[: len(responses)], 10)
    x, y = np.tile(MULTIPLIER, len(responses)), responses.ravel()
    copied_x, copied_y = np.repeat(x, weights), np.repeat(y, weights)
    assume(len(np.unique(copied_y)) > 1)
    ranks = midranks(y, weights[None].astype(float))[0]
    np.testing.assert_allclose(np.repeat(ranks, weights), rankdata(copied_y), atol=1e-9)
    correlation = weighted_spearman(x, y, weights[None].astype(float))
    assert correlation[0] == pytest.approx(
        spearmanr(copied_x, copied_y).statistic, abs=1e-12
    )


def test_attainable_maximum_has_its_closed_form_and_is_attained() -> None:
    slices, points = 20, len(MULTIPLIER)
    n = slices * points
    closed = np.sqrt(1 - points * (slices**3 - slices) / (n**3 - n))
    assert attainable_alignment(np.tile(MULTIPLIER, slices)) == pytest.approx(
        closed, abs=1e-12
    )
    assert round(closed, 3) == 0.995
    nearly_level = MULTIPLIER * (1 + 1e-6 * np.arange(slices)[:, None])
    alignment = align(MULTIPLIER, nearly_level)
    assert alignment.value == pytest.approx(alignment.attainable, abs=1e-12)


def test_a_constant_offset_in_sensitivity_cannot_be_seen() -> None:
    contrast = MULTIPLIER / np.geomspace(5, 200, 20)[:, None]
    assert alignment_score(MULTIPLIER, contrast) == alignment_score(
        MULTIPLIER, 1.64 * contrast
    )


@pytest.mark.parametrize(
    ("slices", "spread"), [(20, 0.05), (20, 0.3), (20, 1.0), (8, 0.2)]
)
def test_the_interval_covers_the_score_of_endless_slices(
    slices: int, spread: float
) -> None:
    """Slices off level by a normal deviate; 200 runs, so 95 % is 186 to 195 in most seeds."""
    rng = np.random.default_rng(3)

    def responses(n: int) -> np.ndarray:
        return MULTIPLIER * 10 ** rng.normal(0, spread, (n, 1))

    truth = alignment_score(MULTIPLIER, responses(5000))
    alignments = [
        align(MULTIPLIER, responses(slices), resamples=400, seed=seed)
        for seed in range(200)
    ]
    covered = sum(
        alignment.low <= truth <= alignment.high
        for alignment in alignments
        if alignment.low is not None and alignment.high is not None
    )
    assert covered >= 180


def test_the_interval_belongs_to_its_seed_and_confidence() -> None:
    responses = MULTIPLIER * np.geomspace(1, 3, 12)[:, None]
    assert align(MULTIPLIER, responses, seed=1) == align(MULTIPLIER, responses, seed=1)
    assert align(MULTIPLIER, responses, seed=1) != align(MULTIPLIER, responses, seed=2)
    wide, narrow = (align(MULTIPLIER, responses, confidence=c) for c in (0.99, 0.5))
    assert wide.low < narrow.low < narrow.value < narrow.high < wide.high


def test_equal_responses_have_no_score_and_say_so() -> None:
    equal = np.full((20, 10), 0.25)
    alignment = align(MULTIPLIER, equal)
    assert (alignment.value, alignment.low, alignment.high) == (None, None, None)
    assert "equal" in alignment.note
    assert alignment.attainable == pytest.approx(0.995, abs=1e-5)
    with pytest.raises(InputError, match="equal"):
        alignment_score(MULTIPLIER, equal)


def test_what_the_interval_leaves_out_is_said() -> None:
    responses = np.zeros((4, 10))
    responses[0] = MULTIPLIER
    assert "resamples had equal responses" in align(MULTIPLIER, responses).note
    assert "too few" in align(MULTIPLIER, responses[:2]).note
    assert align(MULTIPLIER, responses[:2]).low is None


@pytest.mark.parametrize(
    ("multiplier", "response", "message"),
    [
        (MULTIPLIER, np.ones((3, 9)), "do not broadcast"),
        (MULTIPLIER, np.full((3, 10), np.nan), "30 of 30 responses are not finite"),
        (-MULTIPLIER, np.ones((3, 10)), "above 0"),
        (np.ones(10), np.ones((3, 10)), "two different"),
    ],
)
def test_what_cannot_be_scored_is_refused(
    multiplier: np.ndarray, response: np.ndarray, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        align(multiplier, response)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"confidence": 95}, "between 0 and 1"),
        ({"resamples": 10}, "at least 100"),
    ],
)
def test_options_out_of_range_are_refused(
    options: dict[str, object], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        align(MULTIPLIER, np.ones((3, 10)), **options)  # type: ignore[arg-type]


def test_responses_without_slices_are_refused() -> None:
    with pytest.raises(InputError, match="no slices"):
        align(MULTIPLIER, MULTIPLIER)
