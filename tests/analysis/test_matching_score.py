"""Scores of matching runs: flags, baselines, layers, encodings, tables."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pytest
from detection_results import human_csf, simulated_result
from matching_results import HUMAN, image_responses, simulated_matching

from psyprobe.analysis import match_result, score_matching, score_table
from psyprobe.errors import InputError, UnknownNameError
from psyprobe.probes.results import score, score_layers


def proportional(frequency: np.ndarray, contrast: np.ndarray) -> np.ndarray:
    return 0.2 * contrast * np.exp(-frequency / 10)


def test_the_image_itself_scores_as_on_the_reference_page() -> None:
    matching_score = score(simulated_matching(image_responses))
    assert (
        matching_score.score.error.mean.value,
        matching_score.score.error.pooled.value,
    ) == pytest.approx((0.2655, 0.3343), abs=1e-4)
    assert (
        matching_score.constancy.mean.value,
        matching_score.constancy.pooled.value,
    ) == pytest.approx((0.2645, 0.3330), abs=5e-5)
    assert matching_score.pixels is not None
    assert matching_score.pixels.error.mean.value == pytest.approx(
        matching_score.constancy.mean.value
    )
    assert matching_score.score.total == 72


def test_saturated_matches_are_counted_and_not_hidden() -> None:
    # At 25 cpd this observer draws 0.2 exp(-2.5): no contrast there matches references of high
    # contrast.
    (matching_score,) = score_matching(simulated_matching(proportional))
    expected = (
        HUMAN.reference_contrast[:, None] * np.exp((HUMAN.frequency - 5) / 10) > 1
    )
    assert (
        matching_score.score.saturated_high,
        matching_score.score.saturated_low,
    ) == (
        expected.sum(),
        0,
    )
    assert matching_score.score.saturated == expected.sum() > 0


def test_normalised_matching_is_perfect_constancy_for_responses_proportional_to_contrast() -> (
    None
):
    (matching_score,) = score_matching(
        simulated_matching(proportional), normalised=True
    )
    assert matching_score.score.error.mean.value == pytest.approx(
        matching_score.constancy.mean.value
    )
    assert matching_score.score.saturated == 0


def test_the_experiment_names_the_method_and_an_argument_overrides_it() -> None:
    result = simulated_matching(proportional, match_method="bracket")
    (matching_score,) = score_matching(result)
    assert matching_score.method == "bracket"
    (plain,) = score_matching(result, method="crossing")
    assert plain.method == "crossing"


def test_normalising_needs_the_reference_frequency() -> None:
    result = simulated_matching(proportional, reference_frequency=3.3)
    with pytest.raises(InputError, match=r"3\.3 cpd"):
        score_matching(result, normalised=True)


def test_responses_at_the_float32_floor_and_under_the_noise_are_counted() -> None:
    result = simulated_matching(lambda f, c: 1e-3 * c + 0 * f, noise_floor=1e-4)
    (matching_score,) = score_matching(result)
    assert matching_score.float32_floor == pytest.approx(
        np.mean(1e-3 * HUMAN.reference_contrast < 1e-4), abs=0.13
    )
    assert matching_score.below_noise == pytest.approx(
        np.mean(1e-3 * HUMAN.reference_contrast <= 1e-4)
    )


def test_layers_are_scored_one_by_one() -> None:
    result = simulated_matching(proportional, image_responses)
    first, second = score_layers(result)
    assert (first.layer, second.layer) == ("layer0", "layer1")
    assert first.score != second.score
    assert len(score(result)) == 2
    with pytest.raises(UnknownNameError, match="layer0"):
        score(result, layer="layer")


def test_what_is_no_matching_result_is_refused() -> None:
    result = simulated_matching(proportional)
    names = [name for name in result if str(name).startswith("reference_response")]
    with pytest.raises(InputError, match="lacks reference_response"):
        score_matching(result.drop_vars(names))
    with pytest.raises(InputError, match="not finite"):
        score_matching(
            simulated_matching(lambda f, c: np.where(c > 0.5, np.nan, c) + 0 * f)
        )
    with pytest.raises(InputError, match="people matched at"):
        score_matching(
            simulated_matching(proportional).sel(frequency=[0.25, 5.0, 10.0])
        )


def test_matches_come_at_all_frequencies_and_at_those_of_people() -> None:
    match = match_result(simulated_matching(proportional))
    assert match.matches.contrast.shape == (8, 27)
    np.testing.assert_array_equal(
        match.measured().contrast[:, match.measured_frequency == 5],
        match.matches.contrast[:, match.frequency == 5],
    )
    np.testing.assert_allclose(
        match.matches.contrast[:, match.frequency == 5][:, 0],
        HUMAN.reference_contrast,
        rtol=1e-9,
    )


@pytest.mark.parametrize("format", ["text", "markdown", "latex", "csv", "json"])
def test_one_table_holds_detection_and_matching(format: str) -> None:
    detection = score(simulated_result(lambda x, c: human_csf(x) * c / 10))
    text = score_table([detection, score(simulated_matching(proportional))], format)
    for name in ("contrast_matching", "gabor_achromatic"):
        assert name.replace("_", "\\_") in text if format == "latex" else name in text
    if format == "csv":
        rows = list(csv.DictReader(io.StringIO(text)))
        assert [row["responder"] for row in rows] == [
            "observer",
            "pixels",
            "contrast",
            "observer",
            "pixels",
            "constancy",
        ]
        assert float(rows[-1]["error_mean"]) == pytest.approx(0.2645, abs=5e-5)
    elif format == "json":
        assert json.loads(text)[1]["constancy"]["pooled"]["value"] == pytest.approx(
            0.3330, abs=5e-5
        )
    else:
        assert "perfect constancy" in text and "0.264" in text
