"""Results of any experiment: several levels, differences that are no contrast, without people,
several observers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import xarray as xr
from chat_results import chat_result
from detection_results import human_csf
from matplotlib.figure import Figure

import psyprobe as pp
from psyprobe.analysis.measures import split_measures
from psyprobe.analysis.responses import select
from psyprobe.analysis.words.csf import chat_csf
from psyprobe.errors import InputError
from psyprobe.plotting import (
    contour,
    plot_csf,
    plot_prompts,
    plot_psychometric,
    plot_yes_map,
    scored_responses,
)
from psyprobe.probes import detection
from psyprobe.probes.pair_batches import Responses
from psyprobe.probes.results import score_layers
from psyprobe.running.task import StimulusAxis, Task, with_task

FREQUENCY, LUMINANCE = np.geomspace(1, 16, 5), np.array([10.0, 100.0])
CONTRAST, MULTIPLIER = np.geomspace(0.001, 1, 20), np.geomspace(0.5, 2, 4)


def level(name: str, unit: str, label: str, values: np.ndarray) -> dict[str, Any]:
    return {
        "name": name,
        "unit": unit,
        "label": label,
        "values": values.tolist(),
        "scored": values.tolist(),
    }


def result_of(
    levels: list[dict[str, Any]],
    sensitivity: np.ndarray,
    *,
    human: str = "mine",
    difference: str = "contrast",
) -> xr.Dataset:
    """A run whose response is contrast times sensitivity, put together by the probe itself."""
    grid = sensitivity[..., None] * CONTRAST
    points = MULTIPLIER / sensitivity[..., None]
    scored = sensitivity[..., None] * points
    values = np.concatenate([[0.0], grid.ravel(), scored.ravel()]) / 1e4
    places = np.arange(1, len(values))
    layout = {
        "levels": levels,
        "difference": {
            "name": difference,
            "unit": "1" if difference == "contrast" else "deg",
            "label": "Michelson contrast",
            "kind": "michelson" if difference == "contrast" else "",
            "values": CONTRAST.tolist(),
        },
        "measures": ["angular"],
        "score_measure": "angular",
        "size": [8, 8],
        "ppd": 30.0,
        "human": human,
        "grid": places[: grid.size].reshape(grid.shape).tolist(),
        "noise_floor": [0],
    }
    if human:
        layout |= {
            "multiplier": MULTIPLIER.tolist(),
            "multiplier_of": "threshold",
            "curve": None,
            "human_sensitivity": sensitivity.tolist(),
            "scored_difference": points.tolist(),
            "scored": places[grid.size :].reshape(scored.shape).tolist(),
        }
    attributes = {
        "experiment": "own",
        "observer": "ideal",
        "probe": "detection",
        "random_weights": 0,
    }
    values = values[:, None]
    sound = np.zeros_like(values)
    gave = Responses(values[:, None], values, sound, sound[:, 0], ("out",), attributes)
    axis = StimulusAxis(
        **{key: layout["difference"][key] for key in ("name", "unit", "label")}
    )
    result = with_task(detection.grid_result(layout, gave), Task(axis=axis))
    return split_measures(result)


@pytest.fixture
def two_levels() -> xr.Dataset:
    frequency, luminance = np.meshgrid(FREQUENCY, LUMINANCE, indexing="ij")
    levels = [
        level("frequency", "cpd", "Spatial frequency", FREQUENCY),
        level("luminance", "cd/m²", "Luminance", LUMINANCE),
    ]
    return result_of(levels, human_csf(frequency) * np.sqrt(luminance / 100))


def test_dimensions_are_named_after_the_levels(two_levels: xr.Dataset) -> None:
    assert two_levels["response_angular"].dims == (
        "layer",
        "frequency",
        "luminance",
        "contrast",
    )
    assert two_levels["scored_response_angular"].dims[1:] == (
        "scored_frequency",
        "scored_luminance",
        "multiplier",
    )
    at = two_levels["response_angular"].sel(
        frequency=4, luminance=100, method="nearest"
    )
    np.testing.assert_allclose(at[0], human_csf(4) * CONTRAST / 1e4)
    assert (
        two_levels["luminance"].attrs["units"] == "cd m-2"
        and str(two_levels["observer"].values) == "ideal"
    )


def test_every_combination_of_scored_levels_is_a_slice(two_levels: xr.Dataset) -> None:
    detection_score = pp.score(two_levels)
    assert (
        detection_score.score.slices.total == 10
        and detection_score.score.slices.unevenness < 1e-9
    )
    assert detection_score.score.alignment.value == pytest.approx(
        detection_score.score.alignment.attainable, abs=0.05
    )
    assert (
        detection_score.score.shape.total == 10
        and detection_score.score.shape.shape_rmse < 1e-9
    )
    flat = detection_score.contrast.slices.unevenness
    alone = pp.score(two_levels.sel(luminance=100))
    assert alone.score.slices.total == 5 and alone.score.shape.total == 5
    assert alone.contrast.slices.unevenness < flat


def test_a_contour_plot_asks_which_level_to_take(two_levels: xr.Dataset) -> None:
    with pytest.raises(
        InputError, match=r"has frequency and luminance; .* result\.sel\(luminance="
    ):
        contour(two_levels, Figure().add_subplot())
    ax = contour(
        two_levels.sel(luminance=10), Figure(layout="constrained").add_subplot()
    )
    assert ax.get_xlabel() == "Spatial frequency (cpd)"
    np.testing.assert_allclose(
        ax.lines[0].get_ydata(), human_csf(FREQUENCY) * np.sqrt(0.1)
    )
    across = contour(
        two_levels.isel(frequency=2), Figure(layout="constrained").add_subplot()
    )
    assert across.get_xlabel() == "Luminance (cd/m²)"
    scored_responses(two_levels, Figure(layout="constrained").add_subplot())


def test_without_people_there_is_no_score_and_still_a_figure() -> None:
    result = result_of(
        [level("phase", "deg", "Phase", np.array([0.0, 90, 180]))],
        np.full(3, 50.0),
        human="",
    )
    assert not {"scored_response", "human_sensitivity", "multiplier"} & set(
        result.variables
    )
    assert score_layers(result) == ()
    with pytest.raises(
        InputError, match="own has no score: there is no human reference"
    ):
        pp.score(result)
    ax = contour(result, Figure(layout="constrained").add_subplot())
    assert (ax.get_xscale(), ax.get_xlabel(), len(ax.lines)) == (
        "linear",
        "Phase (deg)",
        0,
    )
    with pytest.raises(InputError, match="no human reference"):
        scored_responses(result)


def test_differences_that_are_no_contrast_are_thresholds_upwards() -> None:
    levels = [level("contrast", "1", "Pedestal", np.array([0.0, 0.1, 0.3]))]
    result = result_of(
        levels, np.array([2.0, 5.0, 3.0]), difference="orientation_difference"
    )
    assert (
        result["response_angular"].dims[-1] == "orientation_difference"
        and "contrast_kind" not in result.attrs
    )
    assert result["scored_orientation_difference"].dims == (
        "scored_contrast",
        "multiplier",
    )
    ax = contour(result, Figure(layout="constrained").add_subplot())
    assert ax.get_ylabel() == "Michelson contrast (deg)"
    np.testing.assert_allclose(ax.lines[0].get_ydata(), [1 / 2, 1 / 5, 1 / 3])
    assert pp.score(result).score.slices.unevenness < 1e-9


def test_observers_and_layers_concatenate() -> None:
    first, second = (
        result_of(
            [level("frequency", "cpd", "Spatial frequency", FREQUENCY)],
            gain * human_csf(FREQUENCY),
        )
        for gain in (1, 2)
    )
    second = second.assign_coords(observer="other").assign_attrs(observer="other")
    joined = xr.concat([first, second], "observer")
    assert joined["observer"].values.tolist() == ["ideal", "other"]
    np.testing.assert_array_equal(
        joined["response_angular"].sel(observer="other"), second["response_angular"]
    )
    with pytest.raises(InputError, match="holds 2 observers"):
        pp.score(joined)
    with pytest.raises(
        InputError, match="those of other and the attributes those of ideal"
    ):
        pp.score(joined.sel(observer="other"))
    layers = xr.concat(
        [first, second.assign_coords(layer=["late"], observer="ideal")],
        "layer",
        data_vars="minimal",
        compat="override",
        coords="minimal",
    )
    assert [score.layer for score in score_layers(layers)] == ["out", "late"]
    assert select(layers, layer="late").grid.shape == (5, 20)


# -- words
# ------------------------------------------------------------------------------------------


@pytest.fixture
def phases() -> xr.Dataset:
    truth = np.array([[-1.5, -1.0, -1.2], [-1.6, -1.1, -1.2], [-1.4, -1.0, -1.3]])
    result = chat_result(
        truth, frequencies=(1.0, 90.0, 180.0), readout="p_yes", repeats=3, catch=10
    )
    result = result.rename(frequency="phase").assign_attrs(levels='["phase"]')
    result["phase"].attrs.update(units="deg", long_name="Phase")
    return result


def test_thresholds_over_any_level_of_a_run_in_words(phases: xr.Dataset) -> None:
    csf = chat_csf(phases, resamples=20)
    assert (
        csf["threshold"].dims == ("prompt", "phase")
        and csf["phase"].attrs["units"] == "degree"
    )
    np.testing.assert_allclose(
        csf["log10_threshold"].mean("prompt"), [-1.5, -1.03, -1.23], atol=0.1
    )
    score = pp.score(phases)
    assert (
        score.human == ""
        and score.scores == {}
        and [point.value for point in score.curve] == [1, 90, 180]
    )
    assert "phase (deg)" in str(score) and "no human reference" in str(score)
    with pytest.raises(InputError, match="this run varied phase"):
        pp.analysis.compare_with_human(csf)


def test_figures_over_any_level_of_a_run_in_words(phases: xr.Dataset) -> None:
    csf = chat_csf(phases, resamples=20)
    axes = [
        draw(csf, Figure(layout="constrained").add_subplot())
        for draw in (plot_csf, plot_yes_map, plot_psychometric)
    ]
    assert [ax.get_xlabel() for ax in axes[:2]] == ["Phase (deg)"] * 2
    assert axes[0].get_xscale() == "linear" and len(axes[0].containers) == 1
    assert "90 deg" in [text.get_text() for text in axes[2].get_legend().get_texts()]
    plot_prompts(csf, Figure(layout="constrained").add_subplot())
    for ax in axes:
        ax.figure.canvas.draw()
