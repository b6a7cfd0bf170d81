"""Figures of questioning runs: what is on them, on which axes, and what says that a threshold is
missing."""

from __future__ import annotations

from collections.abc import Iterator

import matplotlib
import numpy as np
import pytest
import xarray as xr
from chat_results import FREQUENCIES, chat_result, log_thresholds
from detection_results import simulated_result

matplotlib.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from psyprobe.analysis.words.csf import chat_csf
from psyprobe.errors import InputError, UnknownNameError
from psyprobe.plotting import (
    plot_bridge,
    plot_csf,
    plot_prompts,
    plot_psychometric,
    plot_yes_map,
)
from psyprobe.probes.results import plot
from psyprobe.running.task import CONTRAST_AXIS, Task, with_task

TEN = np.geomspace(1e-3, 0.28, 10)


@pytest.fixture(autouse=True)
def _no_figure_left_open() -> Iterator[None]:
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def result() -> xr.Dataset:
    truth = log_thresholds(4, 0.15)
    truth[:, 5] = 1.5
    truth[2, 0] = -5.0
    groups = ["noun", "noun", "order", "order"]
    return chat_result(
        truth,
        readout="p_yes",
        repeats=3,
        catch=20,
        contrast=TEN,
        guess=0.1,
        groups=groups,
    )


@pytest.fixture(scope="module")
def csf(result: xr.Dataset) -> xr.Dataset:
    return chat_csf(result, resamples=20)


def bare_axes() -> Axes:
    return Figure(layout="constrained").add_subplot()


def lines_by_label(ax: Axes) -> dict[str, np.ndarray]:
    return {str(line.get_label()): np.asarray(line.get_xydata()) for line in ax.lines}


def draw(ax: Axes) -> Axes:
    ax.figure.canvas.draw()
    return ax


def arrows(ax: Axes) -> list:
    return [text for text in ax.texts if getattr(text, "arrow_patch", None) is not None]


def test_a_sensitivity_function_stands_beside_that_of_people(csf: xr.Dataset) -> None:
    ax = draw(plot_csf(csf, bare_axes()))
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    assert (
        ax.get_xlabel() == "Spatial frequency (cpd)"
        and "Sensitivity" in ax.get_ylabel()
    )
    human = [line for line in ax.lines if line.get_linestyle() == "--"]
    assert len(human) == 1 and human[0].get_color() == "black"
    (container,) = ax.containers
    x, y = container.lines[0].get_data()
    np.testing.assert_allclose(x, FREQUENCIES[:5])
    np.testing.assert_allclose(y, csf["mean_sensitivity"].values[:5])
    # Nobody saw 24 cpd: an arrow down from 1 / the highest contrast.
    (arrow,) = arrows(ax)
    assert arrow.xy[1] < arrow.xyann[1] == pytest.approx(1 / TEN[-1])


def test_several_observers_differ_in_colour_and_marker(csf: xr.Dataset) -> None:
    ax = draw(
        plot_csf(
            [csf, csf], bare_axes(), labels=["one", "two"], curve="", human="model"
        )
    )
    first, two = (container.lines[0] for container in ax.containers)
    assert (
        first.get_color() != two.get_color() and first.get_marker() != two.get_marker()
    )
    assert not [line for line in ax.lines if line.get_linestyle() == "--"]
    with pytest.raises(InputError, match="labels do not fit"):
        plot_csf([csf], bare_axes(), labels=["one", "two"])
    with pytest.raises(InputError, match="no results"):
        plot_csf([], bare_axes())


def test_psychometric_functions_go_through_their_answers(csf: xr.Dataset) -> None:
    ax = draw(plot_psychometric(csf, bare_axes(), prompt="p01", values=[4, 24]))
    assert ax.get_xscale() == "log" and ax.get_ylabel() == "P(yes)"
    assert {str(c.get_label()) for c in ax.containers} == {
        "4 cpd",
        "24 cpd",
        "catch trials",
    }
    curve = max(ax.lines, key=lambda line: len(line.get_xdata()))
    x, y = (np.asarray(values) for values in curve.get_data())
    threshold = 10 ** float(csf["log10_threshold"].values[1, 2])
    middle = (
        float(csf["guess"].values[1, 2])
        + (1 - csf["guess"].values[1, 2] - csf["lapse"].values[1, 2]) / 2
    )
    assert np.interp(np.log(threshold), np.log(x), y) == pytest.approx(middle, abs=0.01)
    assert len(arrows(ax)) == 1
    with pytest.raises(UnknownNameError, match="prompt"):
        plot_psychometric(csf, bare_axes(), prompt="p1")
    choices = with_task(csf, Task(("first", "second"), "correct", CONTRAST_AXIS))
    assert plot_psychometric(choices, bare_axes()).get_ylabel() == "P(correct)"


def test_counts_have_wilson_intervals_and_a_step_is_drawn_as_one() -> None:
    result = chat_result(
        log_thresholds()[:, :1], frequencies=[1.0], contrast=TEN, width=0.01, repeats=4
    )
    ax = draw(plot_psychometric(result, bare_axes()))
    assert ax.get_ylabel() == "Share of yes"
    bars = (
        next(c for c in ax.containers if str(c.get_label()) == "1 cpd")
        .lines[2][0]
        .get_segments()
    )
    # Wilson's interval of 0 of 4 ends at z² / (4 + z²).
    assert bars[0][1][1] == pytest.approx(1.96**2 / (4 + 1.96**2), abs=1e-3)
    curve = max(ax.lines, key=lambda line: len(line.get_xdata()))
    assert set(np.round(np.asarray(curve.get_ydata()), 2)) <= {0.0, 1.0}


def test_the_strip_has_a_row_for_each_wording(csf: xr.Dataset) -> None:
    ax = draw(plot_prompts(csf, bare_axes()))
    labels = [label.get_text() for label in ax.get_yticklabels()]
    assert sorted(labels) == ["noun: p00", "noun: p01", "order: p02", "order: p03"]
    assert labels[0].startswith("noun") and labels[-1].startswith("order")
    low, high = ax.get_xlim()
    assert low * high == pytest.approx(1)
    markers = [line.get_marker() for line in ax.lines]
    assert markers.count(">") == 1 and markers.count("<") == 4
    with pytest.raises(InputError, match="no wording has a threshold"):
        plot_prompts(
            chat_csf(
                chat_result(
                    np.full((1, 6), 2.0), readout="p_yes", contrast=TEN, repeats=1
                ),
                resamples=5,
            )
        )


def test_panels_of_a_grid_keep_their_width_over_the_legend(csf: xr.Dataset) -> None:
    left_panel, right = Figure((12, 4.6), layout="constrained").subplots(1, 2)
    plot_csf(csf, left_panel)
    plot_yes_map(csf, right)
    draw(left_panel)
    assert min(ax.get_position().width for ax in (left_panel, right)) > 0.25


def test_the_map_has_contrast_upwards_and_catch_trials_below(csf: xr.Dataset) -> None:
    ax = draw(plot_yes_map(csf, bare_axes()))
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    columns = [c.get_array() for c in ax.collections]
    assert len(columns) == 7
    assert float(columns[2].ravel()[-1]) == pytest.approx(1, abs=0.02)
    assert float(columns[-1].ravel()[0]) == pytest.approx(0.1, abs=0.03)
    axes = draw(plot_yes_map(csf, bare_axes(), prompt="p00", curve=""))
    assert not [line for line in axes.lines if line.get_linestyle() == "--"]


def test_figures_of_an_evasive_observer_are_drawn() -> None:
    """Unreadable at most frequencies, and not asked at one."""
    silent = chat_result(readout="p_yes", repeats=2, contrast=TEN, invalid=0.97, seed=2)
    silent["was_shown"].values[silent["frequency"].values == 24] = 0
    csf = chat_csf(silent, resamples=5)
    for figure in (plot_csf, plot_psychometric, plot_yes_map):
        draw(figure(csf, bare_axes()))
    with pytest.raises(InputError, match="no wording has a threshold"):
        plot_prompts(csf)


def test_a_bridge_shows_both_ways_of_asking(csf: xr.Dataset) -> None:
    tower = simulated_result(lambda x, c: 0.3 * np.minimum(1, 60 * c / x**0.7))
    tower.attrs["contrast_kind"] = "sinusoid_rms"
    ax = draw(plot_bridge(csf, tower, bare_axes()))
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert any("vision tower" in label and "S_{ac}" in label for label in labels)
    assert "asked in words" in labels
    cosine = plot_bridge(
        csf, tower, bare_axes(), measure="cosine", layer=str(tower["layer"].values[0])
    )
    assert any("cosine" in text.get_text() for text in cosine.get_legend().get_texts())


def test_plot_chooses_the_figure() -> None:
    result = chat_result(
        log_thresholds(), readout="p_yes", repeats=1, catch=10, contrast=TEN
    )
    assert isinstance(plot(result), Axes)
    other = result.copy()
    other.attrs = result.attrs | {"experiment": "mine"}
    assert len(plot([result, other]).axes) == 2
    with pytest.raises(InputError, match="answers in words have no layer"):
        plot(result, layer="out")
    mixed = plot([result, simulated_result(lambda x, c: 0.4 * c + 0 * x)])
    assert [part.axes[0].get_xlabel() for part in mixed.subfigs] == [
        "Spatial frequency (cpd)"
    ] * 2
    with pytest.raises(InputError, match="ax holds one panel"):
        plot([result, other], bare_axes())


def test_random_weights_are_said(result: xr.Dataset) -> None:
    other = result.copy()
    other.attrs = result.attrs | {"random_weights": 1}
    ax = plot_csf(other, bare_axes())
    assert (
        "RANDOM WEIGHTS" in ax.get_title()
        and "RANDOM WEIGHTS" in ax.get_legend().get_texts()[-1].get_text()
    )
