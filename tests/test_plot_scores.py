"""Figures of scores, matches and masks: what is on them, where it lies, and how it is told
apart."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from detection_results import human_csf, simulated_result
from matching_results import HUMAN, simulated_matching

matplotlib.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure

from psyprobe.analysis import published_scores, replay
from psyprobe.errors import InputError, UnknownNameError
from psyprobe.human import masking_data
from psyprobe.plotting import (
    bar_panels,
    contour,
    depth_curve,
    heat_map,
    matched_contrast,
    score_bars,
)
from psyprobe.probes.results import plot, score_layers, scoreboard


@pytest.fixture(autouse=True)
def _no_figure_left_open() -> Iterator[None]:
    yield
    plt.close("all")


def bare_axes() -> Axes:
    return Figure(layout="constrained").add_subplot()


def rising(x: np.ndarray, contrast: np.ndarray) -> np.ndarray:
    return 0.4 * np.tanh(human_csf(x) * contrast / 100)


def fading(frequency: np.ndarray, contrast: np.ndarray) -> np.ndarray:
    return 0.2 * contrast * np.exp(-frequency / 10)


# -- many scores
# ------------------------------------------------------------------------------------------


def test_heat_map_has_a_cell_for_each_model_and_test_with_its_number() -> None:
    board = scoreboard(published=True)
    ax = heat_map(board, bare_axes())
    (image,) = ax.images
    assert image.get_array().shape == (45, 10)
    assert len(ax.texts) == 450
    # The best error is as dark as the best r_s.
    quality = image.get_array()
    for column, test in enumerate(board.tests):
        values = [row.entries[test].value for row in board.rows]
        best = np.argmax(values) if test.metric.more_is_better else np.argmin(values)
        assert quality[best, column] == 1
    assert image.get_interpolation() == "nearest"
    ax.figure.canvas.draw()


def test_cells_without_a_score_stay_blank_and_baselines_are_slanted() -> None:
    ax = heat_map(
        scoreboard(
            [simulated_result(rising), simulated_matching(fading, observer="other")]
        ),
        bare_axes(),
    )
    assert np.ma.getmaskarray(ax.images[0].get_array()).sum() == 3
    styles = {label.get_text(): label.get_style() for label in ax.get_yticklabels()}
    assert styles["simulated"] == "normal"
    assert styles["pixels (no encoder)"] == "italic"


@pytest.mark.parametrize(
    "test", ["gabor_achromatic", "contrast_matching", "contrast_matching pooled"]
)
def test_bars_are_sorted_coloured_by_family_and_beside_their_references(
    test: str,
) -> None:
    ax = score_bars(scoreboard(published=True), test, bare_axes())
    heights = [bar.get_height() for bar in ax.patches]
    assert heights == sorted(heights, reverse=test == "gabor_achromatic")
    # 45 entries, two of which are lines.
    assert len(heights) == 43
    assert len({bar.get_facecolor() for bar in ax.patches}) == 7
    name = test.split()[0]
    metric = {"gabor_achromatic": "alignment", "contrast_matching": "error_mean"}.get(
        test, "error_pooled"
    )
    expected = {
        s.model: s.score
        for s in published_scores()
        if (s.experiment, s.metric) == (name, metric)
        and s.model in ("no_encoder", "cvvdp_hdr")
    }
    lines = {line.get_label(): line.get_ydata()[0] for line in ax.lines}
    assert lines["pixels (no encoder)"] == expected["no_encoder"]
    assert lines["ColorVideoVDP (published), metric"] == expected["cvvdp_hdr"]


def test_bars_of_ones_own_carry_intervals() -> None:
    board = scoreboard([simulated_result(rising)], over="levels")
    ax = score_bars(board, "gabor_achromatic", bare_axes())
    entry = board.rows[0].entries[board.tests[0]]
    assert any(list(line.get_ydata()) == [entry.low, entry.high] for line in ax.lines)
    with pytest.raises(UnknownNameError, match="gabor_achromatic"):
        score_bars(board, "gabor_achro")


def test_few_models_have_colours_of_their_own_and_names_in_the_legend() -> None:
    results = [simulated_result(rising, observer=f"a:{name}") for name in "abcd"]
    scores = [score for result in results for score in score_layers(result)]
    board = scoreboard(
        [
            *scores[:2],
            *(replace(score, measure="difference") for score in scores[2:]),
        ]
    )
    figure = bar_panels(board, Figure(layout="constrained"))
    (ax,) = figure.axes
    assert len({bar.get_facecolor() for bar in ax.patches}) == len(ax.patches) == 2
    assert not ax.get_xticklabels()
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert set(labels) == {
        "a:a",
        "a:b",
        "pixels (no encoder)",
        "a:c, metric",
        "a:d, metric",
    }
    styles = {str(line.get_linestyle()) for line in figure.legends[0].get_lines()}
    assert len(styles) == 3, "each line of reference has a style of its own"


def test_one_panel_for_each_test_with_one_legend() -> None:
    figure = bar_panels(
        scoreboard(published=True), Figure(figsize=(12, 12), layout="constrained")
    )
    assert [ax.get_title() for ax in figure.axes][:2] == ["Gabor ach", "noise ach"]
    assert len(figure.axes) == 10
    (legend,) = figure.legends
    labels = [text.get_text() for text in legend.get_texts()]
    assert {
        "DINO",
        "SAM-2",
        "pixels (no encoder)",
        "ColorVideoVDP (published), metric",
    } <= set(labels)
    assert len(labels) == 9


def test_depth_curve_goes_through_the_score_of_each_layer() -> None:
    formulas = [lambda x, c, k=k: 0.3 * c * x ** (-k / 3) for k in range(4)]
    scores = score_layers(simulated_result(formulas, observer="deep"))
    ax = depth_curve(scores, bare_axes())
    line = ax.lines[0]
    np.testing.assert_allclose(
        line.get_ydata(), [score.score.alignment.value for score in scores]
    )
    assert [label.get_text() for label in ax.get_xticklabels()] == [
        layer_score.layer for layer_score in scores
    ]
    assert ax.get_title() == "deep"
    assert ax.lines[1].get_linestyle() == ":"
    assert ax.lines[1].get_ydata()[0] == scores[0].pixels.alignment.value


def test_depth_curves_of_matching_and_of_two_observers() -> None:
    first, second = (
        score_layers(simulated_matching(fading, fading, observer=name)) for name in "ab"
    )
    ax = depth_curve([*first, *second], bare_axes())
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [
        "a",
        "b",
        "pixels",
    ]
    with pytest.raises(InputError, match="one kind"):
        depth_curve([*first, *score_layers(simulated_result(rising))])
    with pytest.raises(InputError, match="one kind"):
        depth_curve([])


# -- matches
# ------------------------------------------------------------------------------------------


def test_matches_are_drawn_beside_people_and_hollow_where_there_are_none() -> None:
    ax = matched_contrast(simulated_matching(fading), bare_axes())
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    dashed = [line for line in ax.lines if line.get_linestyle() == "--"]
    assert len(dashed) == 8
    for line, human in zip(dashed, HUMAN.matched_contrast[::-1], strict=True):
        np.testing.assert_array_equal(line.get_ydata(), human)
    hollow = [
        line for line in ax.lines if to_rgba(line.get_markerfacecolor()) == (1, 1, 1, 1)
    ]
    contrasts = np.concatenate([np.asarray(line.get_ydata()) for line in hollow])
    expected = (
        HUMAN.reference_contrast[:, None] * np.exp((HUMAN.frequency - 5) / 10) > 1
    )
    assert len(contrasts) == expected.sum() and (contrasts == 1).all()
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels == ["Human", "Observer", "Saturated: no match"]
    assert ax.get_xlabel() == "Spatial frequency (cpd)"
    ax.figure.canvas.draw()


def test_panels_of_matches_fill_their_figure() -> None:
    figure = Figure(figsize=(10, 4), layout="constrained")
    for ax in figure.subplots(1, 2):
        matched_contrast(simulated_matching(fading), ax)
    figure.savefig(BytesIO(), format="png")
    assert all(
        ax.get_position().width > 0.3 and ax.get_position().height > 0.7
        for ax in figure.axes
    )


def test_matches_are_drawn_as_the_paper_finds_them() -> None:
    ax = matched_contrast(
        simulated_matching(fading), bare_axes(), method="bracket", normalised=False
    )
    assert ax.get_ylabel() == "Matched contrast"


def test_each_reference_contrast_has_its_colour_for_people_and_observer() -> None:
    ax = matched_contrast(simulated_matching(lambda f, c: 0.3 * c + 0 * f), bare_axes())
    colours = [
        to_rgba(line.get_color()) for line in ax.lines if line.get_linestyle() == "--"
    ]
    assert len(set(colours)) == 8
    solid = [
        to_rgba(line.get_color()) for line in ax.lines if line.get_linestyle() == "-"
    ]
    assert solid == colours


# -- masks
# ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("test", "study"),
    [("mask_coherent", "foley1994"), ("mask_incoherent", "gegenfurtner_kiper1992")],
)
def test_masking_contours_have_target_contrast_upwards_and_human_points(
    oracle_data: Path, test: str, study: str
) -> None:
    folder = oracle_data / "encoder_protocol"
    (result,) = replay(
        folder / "published_sac_along_curve.csv.gz",
        folder / "published_sac_grids",
        models=["dinov2_vitb14"],
        tests=[test],
    )
    ax = contour(result, bare_axes())
    assert ax.get_ylim() == pytest.approx((0.01, 0.5), rel=1e-6)
    assert ax.get_ylabel() == "Target contrast (Michelson contrast)"
    assert ax.get_xlabel() == result["mask_contrast"].attrs["long_name"]
    (points,) = ax.lines
    human = masking_data(study)
    np.testing.assert_allclose(
        points.get_ydata(), human.threshold[human.scored], rtol=1e-6
    )
    assert (points.get_color(), points.get_linestyle()) == ("black", "None")
    # Responses grow upwards: the contour of a response lies at one contrast for each mask, and
    # rises with it.
    assert float(result["response_angular_float32"][0, 0, -1]) > float(
        result["response_angular_float32"][0, 0, 0]
    )


def test_plot_draws_whatever_it_is_given() -> None:
    detection, matching = simulated_result(rising), simulated_matching(fading, fading)
    assert isinstance(plot(simulated_matching(fading)), Axes)
    assert isinstance(plot(matching, layer="layer1"), Axes)
    assert isinstance(plot(matching), Figure)
    figure = plot([detection, matching])
    titles = [ax.get_title() for ax in figure.axes if ax.get_title()]
    assert titles == [
        "gabor_achromatic",
        "contrast_matching\nlayer0",
        "contrast_matching\nlayer1",
    ]
    assert figure.get_suptitle() == "simulated"
    other = plot([detection, simulated_matching(fading, observer="other")])
    assert other.get_suptitle() == ""
    assert [ax.get_title() for ax in other.axes if ax.get_title()] == [
        "simulated",
        "contrast_matching\nother",
    ]
    figure.canvas.draw()
