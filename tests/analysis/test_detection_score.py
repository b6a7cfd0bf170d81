"""The score of a whole detection result: published ones, and observers whose truth is known."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from detection_results import (
    PUBLISHED,
    human_csf,
    published_result,
    published_scores,
    simulated_result,
)

from psyprobe.analysis import score_detection, score_table
from psyprobe.analysis.measures import join_measures
from psyprobe.errors import InputError, UnknownNameError
from psyprobe.probes.results import score, score_layers


def human_observer(x: np.ndarray, contrast: np.ndarray) -> np.ndarray:
    drive = human_csf(x) * contrast
    # A little off level, so that no two responses tie.
    return 0.5 * drive / (1 + drive) * (1 + 1e-9 * x)


def flat_observer(x: np.ndarray, contrast: np.ndarray) -> np.ndarray:
    return 0.2 * contrast


@pytest.mark.parametrize("test", PUBLISHED)
@pytest.mark.parametrize("model", ["no_encoder", "dinov2_vitb14", "ViT-B-32_openai"])
def test_published_results_get_their_published_score(
    oracle_data: Path, test: str, model: str
) -> None:
    folder = oracle_data / "encoder_protocol"
    result = published_result(folder, test, model)
    detection_score = score(result, over="levels", resamples=200)
    printed = published_scores(folder)
    assert detection_score.score.alignment.value == pytest.approx(
        printed[model, test], abs=5e-5
    )
    assert detection_score.pixels.alignment.value == pytest.approx(
        printed["no_encoder", test], abs=5e-5
    )
    assert (
        detection_score.score.alignment.low
        < detection_score.score.alignment.value
        < detection_score.score.alignment.high
    )


def test_share_at_the_float32_floor_of_published_responses(oracle_data: Path) -> None:
    # Their angles came out of a float32 arccosine: the floor is whatever is 0 or one step above 0.
    result = published_result(
        oracle_data / "encoder_protocol", "luminance", "ViT-B-32_openai"
    )
    stored = result["scored_response_angular"].values
    detection_score = score(result, resamples=100)
    assert detection_score.float32_floor == pytest.approx((stored <= 1.1e-4).mean())
    assert detection_score.float32_floor > 0.4


@pytest.mark.parametrize("multiplier_of", ["threshold", "sensitivity"])
def test_an_observer_with_human_sensitivity_reaches_what_can_be_reached(
    multiplier_of: str,
) -> None:
    detection_score = score(
        simulated_result(human_observer, multiplier_of=multiplier_of)
    )
    alignment = detection_score.score.alignment
    assert alignment.value == pytest.approx(alignment.attainable, abs=1e-3)
    assert detection_score.score.slices.monotonicity == pytest.approx(1)
    assert detection_score.score.slices.unevenness < 1e-6
    assert detection_score.score.shape.shape_rmse < 0.005
    assert detection_score.score.absolute.rmse < 0.05


def test_shape_level_and_monotonicity_are_told_apart() -> None:
    def shifted(x: np.ndarray, contrast: np.ndarray) -> np.ndarray:
        return human_observer(x, 10 * contrast)

    def shuffled(x: np.ndarray, contrast: np.ndarray) -> np.ndarray:
        wave = 1 + 0.9 * np.sin(40 * np.log10(contrast * human_csf(x)))
        return human_observer(x, contrast) * wave

    flat, moved, wavy = (
        score(simulated_result(f)).score for f in (flat_observer, shifted, shuffled)
    )
    assert flat.slices.monotonicity == pytest.approx(1)
    assert flat.shape.shape_rmse == pytest.approx(flat.slices.unevenness, rel=0.05)
    assert flat.shape.shape_rmse > 0.3
    assert moved.shape.shape_rmse < 0.005
    assert moved.alignment.value == pytest.approx(moved.alignment.attainable, abs=1e-3)
    assert wavy.slices.monotonicity < 0.8
    assert wavy.slices.unevenness < 0.05


def test_baselines_are_scored_like_the_observer() -> None:
    detection_score = score(simulated_result(flat_observer))
    # The pixels of the simulation, too, respond in proportion to contrast.
    assert (
        detection_score.score.alignment.value
        == detection_score.pixels.alignment.value
        == detection_score.contrast.alignment.value
    )
    assert detection_score.contrast.slices.slope == pytest.approx(1)
    assert detection_score.contrast.shape.shape_rmse == pytest.approx(
        detection_score.score.shape.shape_rmse
    )


@pytest.mark.parametrize("measure", ["angular", "cosine", "l1", "l2"])
def test_all_measures_of_one_angle_align_alike(measure: str) -> None:
    detection_score = score(
        simulated_result(lambda x, c: 0.1 + 0.2 * human_csf(x) * c / 100),
        measure=measure,
    )
    assert detection_score.measure == measure
    assert detection_score.score.alignment.value > 0.5


def test_float32_arithmetic_loses_what_lies_near_threshold() -> None:
    result = simulated_result(lambda x, c: 1e-8 * c * human_csf(x))
    exact, rounded = score(result), score(result, measure="angular_float32")
    assert exact.float32_floor == 1
    assert exact.score.slices.monotonicity == pytest.approx(1)
    assert rounded.score.alignment.value is None
    assert "equal" in rounded.score.alignment.note
    assert rounded.score.shape is None
    json.dumps(rounded.to_dict(), allow_nan=False)


def test_the_experiment_names_its_measure() -> None:
    result = simulated_result(human_observer).assign_attrs(
        score_measure="angular_float32"
    )
    assert score(result).measure == "angular_float32"
    assert score(result, measure="l2").measure == "l2"


def test_responses_within_the_noise_are_counted() -> None:
    result = simulated_result(lambda x, c: 0.1 + 0.0 * c, noise_floor=0.1)
    assert score(result).below_noise == 1
    assert score(simulated_result(human_observer, noise_floor=1e-12)).below_noise == 0


def test_layers_are_named_or_all_scored() -> None:
    result = simulated_result([flat_observer, human_observer])
    assert [layer_score.layer for layer_score in score(result)] == ["layer0", "layer1"]
    with pytest.raises(UnknownNameError, match="did you mean 'layer1'"):
        score(result, layer="layer11")
    layer_scores = score_layers(result, resamples=100)
    assert [layer_score.layer for layer_score in layer_scores] == ["layer0", "layer1"]
    assert (
        layer_scores[1].to_dict()
        == score(result, layer="layer1", resamples=100).to_dict()
    )
    assert layer_scores[0].score.alignment.value < layer_scores[1].score.alignment.value


@pytest.mark.parametrize(
    "name", ["scored_response", "response", "human_curve", "noise_floor"]
)
def test_unfinished_results_are_refused(name: str) -> None:
    result = join_measures(simulated_result(human_observer))
    result[name] = result[name] * np.nan
    with pytest.raises(InputError, match=f"values of {name} are not finite"):
        score(result)


def test_other_datasets_are_refused() -> None:
    with pytest.raises(
        InputError, match="no detection result: it lacks scored_response"
    ):
        score_detection(xr.Dataset())
    with pytest.raises(InputError, match="does not name its probe"):
        score(xr.Dataset())
    with pytest.raises(InputError, match="multiplier_of"):
        score(simulated_result(human_observer).assign_attrs(multiplier_of="contrast"))
    with pytest.raises(
        UnknownNameError, match="unknown measure 'angle'; did you mean 'angular'"
    ):
        score(simulated_result(human_observer), measure="angle")


def test_order_of_dimensions_does_not_matter() -> None:
    result = join_measures(simulated_result(human_observer))
    turned = result.transpose(
        "multiplier",
        "contrast",
        "frequency",
        "measure",
        "layer",
        "scored_frequency",
        "curve_frequency",
    )
    assert score(turned).to_dict() == score(result).to_dict()


def test_levels_outside_the_human_curve_is_left_out_of_the_shape() -> None:
    result = simulated_result(human_observer)
    shorter = result.isel(curve_frequency=slice(0, 100))
    assert score(shorter).score.shape.total == 10


# -- tables
# ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def scores() -> list[Any]:
    return [
        score(simulated_result(human_observer, observer="timm:human_like|x")),
        score(
            simulated_result(flat_observer, observer="pix\x1b[31mels").assign_attrs(
                random_weights=1
            )
        ),
    ]


def test_text_table_shows_observers_baselines_and_maximum(scores: list[Any]) -> None:
    table = score_table(scores)
    lines = table.splitlines()
    assert lines[0].startswith("gabor_achromatic (angular)")
    assert lines[2].startswith("timm:human_like|x")
    assert lines[3].startswith("pix\\x1b[31mels (random weights)")
    assert sum(line.startswith("pixels (no encoder)") for line in lines) == 1
    assert sum(line.startswith("contrast alone") for line in lines) == 1
    assert any(line.split() == ["attainable", "0.995"] for line in lines)
    assert str(scores[0]).splitlines()[2].startswith("timm:human_like|x")
    assert "nan" not in table
    assert max(map(len, lines)) <= 130


def test_layers_appear_where_they_differ() -> None:
    table = score_table(
        score_layers(simulated_result([flat_observer, human_observer]), resamples=100)
    )
    assert "simulated / layer0" in table
    assert "simulated / layer1" in table


def test_csv_is_one_row_a_responder_with_all_digits(scores: list[Any]) -> None:
    rows = list(csv.DictReader(io.StringIO(score_table(scores, "csv"))))
    assert [row["responder"] for row in rows] == ["observer", "pixels", "contrast"] * 2
    assert float(rows[0]["alignment"]) == scores[0].score.alignment.value
    assert score_table([], "csv") == "experiment"


def test_json_holds_everything(scores: list[Any]) -> None:
    assert json.loads(score_table(scores, "json")) == [
        layer_score.to_dict() for layer_score in scores
    ]


def test_markdown_and_latex_escape_names(scores: list[Any]) -> None:
    assert r"timm:human_like\|x" in score_table(scores, "markdown")
    assert r"timm:human\_like|x" in score_table(scores, "latex")
    assert r"$r_s$ [interval]" in score_table(scores, "latex")


def test_unknown_format_is_refused(scores: list[Any]) -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'latex'"):
        score_table(scores, "latx")
