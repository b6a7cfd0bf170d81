"""Contrast matching: planted matches come back, nothing saturates silently, published errors are
reproduced."""

from __future__ import annotations

import csv
import gzip
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matching_results import CONTRAST, HUMAN, image_responses

from psyprobe.analysis.matching import (
    match_contrast,
    matching_error,
    normalise_responses,
)
from psyprobe.errors import InputError

#: Their published numbers come from an earlier run (encoder_protocol.md, D1).
OTHER_RUN = {
    "RN101_openai": 0.6542,
    "convnext_large_d_laion2b_s26b_b102k_augreg": 0.5803,
}


# -- the crossing
# ------------------------------------------------------------------------------------------


@given(
    gain=st.lists(st.floats(0.1, 10), min_size=1, max_size=5),
    power=st.floats(0.3, 3),
    reference=st.lists(st.floats(0.01, 0.5), min_size=1, max_size=4),
)
def test_power_laws_match_exactly_or_say_that_they_cannot(
    gain: list[float], power: float, reference: list[float]
) -> None:
    curves = (np.array(gain)[:, None] * CONTRAST) ** power
    matches = match_contrast(CONTRAST, curves, np.array(reference) ** power)
    expected_contrast = np.array(reference)[:, None] / np.array(gain)
    inside = (expected_contrast > 0.0011) & (expected_contrast < 0.99)
    np.testing.assert_allclose(
        matches.contrast[inside], expected_contrast[inside], rtol=1e-9
    )
    assert (matches.saturated[inside] == 0).all()
    assert (matches.saturated[expected_contrast > 1.001] == 1).all()
    assert (matches.contrast[expected_contrast > 1.001] == 1).all()
    assert (matches.saturated[expected_contrast < 0.00099] == -1).all()
    assert not matches.ambiguous.any()


def test_a_curve_that_rises_and_falls_matches_first_and_says_so() -> None:
    bump = np.exp(-((np.log10(CONTRAST) + 1.5) ** 2))
    matches = match_contrast(CONTRAST, [bump], [0.5])
    assert matches.ambiguous.all() and not matches.saturated.any()
    assert np.log10(matches.contrast[0, 0]) == pytest.approx(
        -1.5 - np.sqrt(np.log(2)), abs=1e-3
    )


def test_a_falling_curve_is_saturated_and_ambiguous() -> None:
    matches = match_contrast(CONTRAST, [1 - 0.9 * CONTRAST], [0.5])
    assert (matches.saturated, matches.ambiguous) == (-1, True)


def test_a_reference_without_response_is_matched_by_the_lowest_contrast() -> None:
    matches = match_contrast(CONTRAST, [CONTRAST, np.zeros_like(CONTRAST)], [0.0])
    np.testing.assert_array_equal(matches.saturated, [[-1, -1]])
    np.testing.assert_array_equal(matches.contrast, [[0.001, 0.001]])


def test_the_published_bracket_keeps_its_ends_and_finds_the_root() -> None:
    curves = [0.4 * CONTRAST, 0.9 + 0.1 * CONTRAST, 0.01 * CONTRAST]
    matches = match_contrast(CONTRAST, curves, [0.1], method="bracket")
    np.testing.assert_allclose(matches.contrast, [[0.25, 0.001, 1.0]], atol=2e-5)


@pytest.mark.parametrize("method", ["crossing", "bracket"])
def test_a_reference_matches_itself(method: str) -> None:
    matches = match_contrast(
        CONTRAST, [CONTRAST**0.7], HUMAN.reference_contrast**0.7, method=method
    )
    np.testing.assert_allclose(
        matches.contrast[:, 0], HUMAN.reference_contrast, atol=2e-5
    )


def test_normalised_proportional_responses_show_perfect_constancy() -> None:
    curves = normalise_responses(CONTRAST, np.outer([0.1, 0.4, 0.02], CONTRAST))
    matches = match_contrast(CONTRAST, curves, HUMAN.reference_contrast)
    np.testing.assert_allclose(
        matches.contrast, np.tile(HUMAN.reference_contrast[:, None], 3), rtol=1e-9
    )


def test_normalising_needs_a_response_at_contrast_1() -> None:
    with pytest.raises(InputError, match=r"end at 0\.5"):
        normalise_responses([0.1, 0.5], [[0.1, 0.2]])
    with pytest.raises(InputError, match="1 responses at contrast 1 are 0"):
        normalise_responses([0.1, 1.0], [[0.0, 0.0]])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0.1, 1.0], [[1.0, 2.0]], [np.nan]), "finite"),
        (([0.1, 1.0], [[1.0, np.inf]], [1.0]), "finite"),
        (([1.0, 0.1], [[1.0, 2.0]], [1.0]), "increase"),
        (([0.1, 1.0], [[1.0, 2.0, 3.0]], [1.0]), "does not fit"),
    ],
)
def test_what_cannot_be_matched_is_refused(arguments: tuple, message: str) -> None:
    with pytest.raises(InputError, match=message):
        match_contrast(*arguments)


# -- the error
# ------------------------------------------------------------------------------------------


def test_perfect_constancy_has_the_errors_of_the_reference_page() -> None:
    constant = np.broadcast_to(HUMAN.reference_contrast[:, None], (8, 9))
    error = matching_error(constant, HUMAN.matched_contrast)
    assert error.mean.value == pytest.approx(0.2645, abs=5e-5)
    assert error.pooled.value == pytest.approx(0.3330, abs=5e-5)


def test_interval_holds_the_value_narrows_with_confidence_and_is_seeded() -> None:
    matched = HUMAN.matched_contrast * np.geomspace(0.5, 3, 9)
    wide, narrow = (
        matching_error(matched, HUMAN.matched_contrast, confidence=c)
        for c in (0.95, 0.5)
    )
    for name in ("mean", "pooled"):
        outer, inner = getattr(wide, name), getattr(narrow, name)
        assert outer.low < inner.low < inner.value < inner.high < outer.high
    assert wide == matching_error(matched, HUMAN.matched_contrast)
    # Nothing varies, so nothing tells how far the error could lie from 0; an interval of zero width
    # would be a claim.
    error = matching_error(HUMAN.matched_contrast, HUMAN.matched_contrast).pooled
    assert (error.value, error.low, error.high) == (0, None, None)


def test_both_definitions_agree_with_sklearns_formulas_on_random_matches() -> None:
    matched = 10 ** np.random.default_rng(3).normal(-1, 0.5, (8, 9))
    squares = np.log10(matched / HUMAN.matched_contrast) ** 2
    error = matching_error(matched, HUMAN.matched_contrast)
    assert error.mean.value == pytest.approx(
        np.mean([np.sqrt(np.mean(squares[:, f])) for f in range(9)])
    )
    assert error.pooled.value == pytest.approx(np.sqrt(squares.sum() / 72))


# -- against the published numbers
# -----------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def published_matches(folder: Path) -> dict[str, np.ndarray]:
    """Matched contrasts (8, 9) of each stored model."""
    frequency = {f"{f:g}": i for i, f in enumerate(HUMAN.frequency)}
    models: dict[str, np.ndarray] = {}
    with gzip.open(
        folder / "published_matching_predictions.csv.gz", "rt", encoding="utf-8"
    ) as file:
        for row in csv.DictReader(file):
            place = frequency.get(f"{float(row['test_frequency_cpd']):g}")
            if place is not None:
                table = models.setdefault(row["model"], np.full((8, 9), np.nan))
                table[int(row["reference_index"]), place] = float(
                    row["matched_contrast"]
                )
    return models


@lru_cache(maxsize=1)
def published_errors(folder: Path) -> dict[tuple[str, str], float]:
    with (folder / "published_alignment_scores.csv").open(encoding="utf-8") as file:
        return {
            (row["model"], row["metric"]): float(row["score"])
            for row in csv.DictReader(file)
            if row["version"] == "final" and row["test"] == "matching"
        }


def test_errors_of_published_matches_are_the_published_errors(
    oracle_data: Path,
) -> None:
    folder = oracle_data / "encoder_protocol"
    errors = published_errors(folder)
    matches = published_matches(folder)
    assert len(matches) == 18
    for model, matched in matches.items():
        error = matching_error(matched, HUMAN.matched_contrast, resamples=100)
        assert error.pooled.value == pytest.approx(
            errors[model, "rmse_log10_pooled"], abs=5.1e-5
        ), model
        published = errors[model, "rmse_log10_mean_over_frequencies"]
        if model in OTHER_RUN:
            assert published == OTHER_RUN[model]
        else:
            assert error.mean.value == pytest.approx(published, abs=5.1e-5), model


def test_the_image_itself_reproduces_its_published_and_exact_errors(
    oracle_data: Path,
) -> None:
    folder = oracle_data / "encoder_protocol"
    curves = image_responses(HUMAN.frequency[:, None], CONTRAST)
    target = image_responses(np.array(5.0), HUMAN.reference_contrast)
    plain = matching_error(
        match_contrast(CONTRAST, curves, target).contrast, HUMAN.matched_contrast
    )
    assert (plain.mean.value, plain.pooled.value) == pytest.approx(
        (0.2655, 0.3343), abs=1e-4
    )
    bracket = match_contrast(CONTRAST, curves, target, method="bracket").contrast
    published = matching_error(bracket, HUMAN.matched_contrast)
    assert (published.mean.value, published.pooled.value) == pytest.approx(
        (0.2657, 0.3347), abs=5e-4
    )
    np.testing.assert_allclose(
        np.log10(bracket / published_matches(folder)["no_encoder"]), 0, atol=0.02
    )
    top = image_responses(np.array(5.0), np.array(1.0))
    normalised = match_contrast(
        CONTRAST, normalise_responses(CONTRAST, curves), target / top
    )
    equation_2 = matching_error(normalised.contrast, HUMAN.matched_contrast)
    assert (equation_2.mean.value, equation_2.pooled.value) == pytest.approx(
        (0.2645, 0.3330), abs=1e-4
    )
