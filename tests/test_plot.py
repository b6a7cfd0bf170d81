"""Figures: what is on them, on which axes, and that equal figures are equal files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pytest
from detection_results import PUBLISHED, human_csf, published_result, simulated_result

matplotlib.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from psyprobe.errors import InputError, PsyprobeError, UnknownNameError
from psyprobe.plotting import (
    contour,
    contours,
    save_figure,
    scored_responses,
    stimulus_strip,
)
from psyprobe.plotting.axes import COLOUR_MAP, level_axis, title_of
from psyprobe.probes.results import plot
from psyprobe.running.task import stimulus_axis_of


@pytest.fixture(autouse=True)
def _no_figure_left_open() -> Iterator[None]:
    yield
    plt.close("all")


def rising(x: np.ndarray, contrast: np.ndarray) -> np.ndarray:
    drive = human_csf(x) * contrast
    return 0.45 * drive / (10 + drive)


def bare_axes() -> Axes:
    return Figure(layout="constrained").add_subplot()


def filled_levels(ax: Axes) -> np.ndarray:
    return np.asarray(ax.collections[0].levels)


def colour_bar_of(figure: Figure) -> Axes:
    return next(ax for ax in figure.axes if ax.get_label() == "<colorbar>")


# -- contour
# ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("test", PUBLISHED)
@pytest.mark.parametrize("levels", ["linear", "log"])
def test_published_results_draw_on_their_own_axes(
    oracle_data: Path, test: str, levels: str
) -> None:
    result = published_result(oracle_data / "encoder_protocol", test, "ViT-B-32_openai")
    level, _ = PUBLISHED[test]
    ax = contour(result, bare_axes(), levels=levels)
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    assert ax.get_xlim() == pytest.approx(
        (float(result[level].min()), float(result[level].max()))
    )
    assert ax.get_ylim() == pytest.approx(
        (1 / float(result.contrast.max()), 1 / float(result.contrast.min()))
    )
    assert (
        ax.get_xlabel()
        == f"{result[level].attrs['long_name']} ({result[level].attrs['units']})"
    )
    assert ax.get_ylabel() == f"Sensitivity (1 / {stimulus_axis_of(result).label})"
    assert ax.get_title() == "ViT-B-32_openai"
    assert "S_{ac}" in colour_bar_of(ax.figure).get_ylabel()
    ax.figure.canvas.draw()


def test_contours_lie_where_the_response_is() -> None:
    result = simulated_result(lambda x, c: 0.4 * c + 0 * x)
    ax = contour(result, bare_axes(), levels=[0.0, 0.1, 0.2, 0.3, 0.4])
    lines = ax.collections[1]
    at = [
        path.vertices[:, 1]
        for path, level in zip(lines.get_paths(), lines.levels, strict=True)
        if level == 0.1
    ]
    # Response 0.1 is contrast 0.25, sensitivity 4; between grid points contours are straight lines.
    np.testing.assert_allclose(np.concatenate(at), 4, rtol=0.05)


def test_a_level_of_zero_stands_to_the_left_of_the_others() -> None:
    ax = Figure().add_subplot()
    levels = [0.0, 0.01, 0.1, 1.0]
    level_axis(ax.xaxis, levels, margin=1.25)
    across = (ax.transData + ax.transAxes.inverted()).transform(
        [(level, 0.5) for level in levels]
    )[:, 0]
    assert 0 < across[0] < across[1]
    # Decades are alike, and 0 is nearer than one.
    assert (
        across[1] - across[0]
        < across[2] - across[1]
        == pytest.approx(across[3] - across[2])
    )
    assert ax.get_xticklabels()[0].get_text() == "0"


def test_human_curve_is_dashed_black_and_can_be_left_out() -> None:
    result = simulated_result(rising)
    (line,) = contour(result, bare_axes()).lines
    assert line.get_color() == "black"
    assert line.get_linestyle() == "--"
    assert line.get_label() == "Human (castleCSF)"
    np.testing.assert_array_equal(line.get_xdata(), result.curve_frequency)
    np.testing.assert_array_equal(line.get_ydata(), result.human_curve)
    bare = contour(result, bare_axes(), human="none")
    assert not bare.lines
    assert bare.get_legend() is None


def test_linear_levels_are_the_papers() -> None:
    levels = filled_levels(
        contour(simulated_result(rising), bare_axes(), levels="linear")
    )
    np.testing.assert_allclose(np.diff(levels), 0.02)
    assert levels[0] == 0
    assert levels[-1] >= 0.45 * 200 / 210 > levels[-2]


def test_small_responses_still_fill_many_bands() -> None:
    levels = filled_levels(
        contour(
            simulated_result(lambda *at: rising(*at) / 20), bare_axes(), levels="linear"
        )
    )
    assert len(levels) > 8 and levels[0] == 0


def test_log_levels_reach_down_to_the_smallest_response() -> None:
    result = simulated_result(rising)
    levels = filled_levels(contour(result, bare_axes(), levels="log"))
    grid = result["response_angular"].values
    assert levels[0] <= np.log10(grid.min()) < levels[1]
    assert levels[-2] < np.log10(grid.max()) <= levels[-1]
    np.testing.assert_allclose(np.diff(levels), 0.1)


def test_log_levels_leave_blank_what_is_not_above_the_noise() -> None:
    result = simulated_result(rising, noise_floor=0.001)
    ax = contour(result, bare_axes(), levels="log")
    assert filled_levels(ax)[0] >= -3.1
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [
        "Human (castleCSF)",
        "Not above noise floor",
    ]
    zero = contour(
        simulated_result(lambda x, c: np.where(c > 0.1, 0.1 * c, 0) + 0 * x),
        bare_axes(),
        levels="log",
    )
    assert filled_levels(zero)[0] >= -2.1
    assert zero.get_ylim() == pytest.approx((1, 1000))


def test_very_deep_responses_stay_within_ten_decades() -> None:
    ax = contour(
        simulated_result(lambda x, c: 0.3 * c**5 + 0 * x), bare_axes(), levels="log"
    )
    assert -11.1 < filled_levels(ax)[0] < -10
    assert len(filled_levels(ax)) <= 60


def test_given_levels_are_kept() -> None:
    ax = contour(simulated_result(rising), bare_axes(), levels=[0.05, 0.1, 0.3])
    ticks = colour_bar_of(ax.figure).get_yticklabels()
    assert [tick.get_text() for tick in ticks] == ["0.05", "0.1", "0.3"]


@pytest.mark.parametrize(
    "measure", ["angular", "angular_float32", "cosine", "l1", "l2"]
)
@pytest.mark.parametrize("levels", ["linear", "log"])
def test_every_measure_draws(measure: str, levels: str) -> None:
    ax = contour(simulated_result(rising), bare_axes(), measure=measure, levels=levels)
    ax.figure.canvas.draw()
    assert len(filled_levels(ax)) > 10


def test_the_experiment_names_its_measure() -> None:
    result = simulated_result(rising).assign_attrs(score_measure="angular_float32")
    assert "float32" in colour_bar_of(contour(result, bare_axes()).figure).get_ylabel()


@pytest.mark.parametrize("value", [0.0, 0.3])
def test_constant_responses_draw(value: float) -> None:
    contour(
        simulated_result(lambda x, c: value + 0 * c), bare_axes(), levels="linear"
    ).figure.canvas.draw()


def test_without_any_response_log_levels_are_refused() -> None:
    with pytest.raises(InputError, match="no response exceeds the noise floor"):
        contour(simulated_result(lambda x, c: 0 * c), bare_axes(), levels="log")


@pytest.mark.parametrize("levels", ["logarithmic", [0.1], [0.2, 0.1], [0.1, np.nan]])
def test_levels_that_do_not_increase_are_refused(levels: Any) -> None:
    with pytest.raises(InputError, match="levels"):
        contour(simulated_result(rising), bare_axes(), levels=levels)


def test_random_weights_are_loud_and_names_break_and_stay_text() -> None:
    result = simulated_result(
        rising, observer="timm:vit_small_patch14_dinov2_$x^2$.lvd142m"
    )
    result.attrs["random_weights"] = 1
    title = contour(result, bare_axes()).get_title()
    assert title.splitlines() == [r"vit_small_patch14_dinov2_\$x^2\$", "RANDOM WEIGHTS"]
    assert title_of(simulated_result(rising, observer="a\x1b[2J")) == "a\\x1b[2J"


def test_without_axes_a_pyplot_figure_is_made() -> None:
    ax = contour(simulated_result(rising))
    assert ax.figure is plt.gcf()
    other = contour(simulated_result(rising))
    assert other.figure is not ax.figure


def test_on_given_axes_pyplot_stays_untouched() -> None:
    contour(simulated_result(rising), bare_axes())
    scored_responses(simulated_result(rising), bare_axes())
    contours([simulated_result(rising)] * 2, figure=Figure())
    stimulus_strip([np.zeros((4, 4))], ppd=60, figure=Figure())
    assert not plt.get_fignums()


def test_the_colour_map_darkens_throughout() -> None:
    """So that it reads in grey, and with any colour vision."""
    rgb = matplotlib.colormaps[COLOUR_MAP](np.linspace(0, 1, 64))[:, :3]
    lightness = (rgb**2.2) @ [0.2126, 0.7152, 0.0722]
    assert (np.diff(lightness) < 0).all()


# -- several panels
# ------------------------------------------------------------------------------------------


def test_panels_share_levels_and_one_colour_bar() -> None:
    results = [
        simulated_result(rising),
        simulated_result(lambda x, c: 0.01 * c + 0 * x, observer="weak"),
    ]
    figure = contours(results, figure=Figure(layout="constrained"), levels="log")
    first, second, bar = figure.axes
    np.testing.assert_array_equal(filled_levels(first), filled_levels(second))
    assert bar is colour_bar_of(figure)
    assert [ax.get_title() for ax in (first, second)] == ["simulated", "weak"]
    assert first.get_ylabel()
    assert not second.get_ylabel()
    figure.canvas.draw()


@pytest.mark.parametrize(
    ("count", "columns", "rows"),
    [(1, None, 1), (4, None, 1), (5, None, 2), (9, None, 3), (3, 1, 3)],
)
def test_panels_fill_even_rows(count: int, columns: int | None, rows: int) -> None:
    figure = contours(
        [simulated_result(rising)] * count,
        figure=Figure(),
        columns=columns,
        titles=["t"] * count,
    )
    panels = [ax for ax in figure.axes if ax.get_label() != "<colorbar>"]
    assert len(panels) == count
    assert len({ax.get_subplotspec().rowspan.start for ax in panels}) == rows
    # Every column says at its foot what is on x.
    feet = {ax.get_subplotspec().colspan.start: ax for ax in panels}
    assert all(ax.get_xlabel() for ax in feet.values())


def test_one_panel_for_each_layer() -> None:
    result = simulated_result([rising, lambda x, c: 0.2 * c + 0 * x])
    figure = plot(result)
    assert [ax.get_title() for ax in figure.axes[:2]] == [
        "simulated\nlayer0",
        "simulated\nlayer1",
    ]
    assert isinstance(plot(result, layer="layer1"), Axes)
    assert isinstance(plot(simulated_result(rising), levels="log"), Axes)
    assert len(plot([result, result]).axes) == 5
    with pytest.raises(InputError, match="2 layers"):
        contour(result)


def test_a_panel_without_response_stays_blank() -> None:
    silent = simulated_result(lambda x, c: 0 * c)
    figure = contours([simulated_result(rising), silent], figure=Figure(), levels="log")
    assert not figure.axes[1].collections
    figure.canvas.draw()


def test_panels_that_do_not_fit_are_refused() -> None:
    result = simulated_result(rising)
    with pytest.raises(InputError, match="no results"):
        contours([])
    with pytest.raises(InputError, match="1 titles do not fit 2 panels"):
        contours([result, result], titles=["one"])
    with pytest.raises(InputError, match="angular and angular_float32"):
        contours([result, result.assign_attrs(score_measure="angular_float32")])


# -- multiples of human thresholds
# -----------------------------------------------------------------------------------


@pytest.mark.parametrize("multiplier_of", ["threshold", "sensitivity"])
def test_one_line_for_each_level_over_multiples_of_the_threshold(
    multiplier_of: str,
) -> None:
    result = simulated_result(rising, multiplier_of=multiplier_of)
    ax = scored_responses(result, bare_axes())
    slices = ax.lines[: result.sizes["scored_frequency"]]
    assert all(
        (np.diff(line.get_xdata()) > 0).all() and (np.diff(line.get_ydata()) > 0).all()
        for line in slices
    )
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    assert ax.get_xlim() == pytest.approx((0.5, 2))
    assert ax.get_xlabel() == "Contrast / human threshold"
    assert ax.figure.axes[1].get_ylabel() == "Spatial frequency (cpd)"
    ax.figure.canvas.draw()


def test_noise_floor_and_silence_at_multiples() -> None:
    noisy = scored_responses(simulated_result(rising, noise_floor=0.05), bare_axes())
    assert [text.get_text() for text in noisy.get_legend().get_texts()] == [
        "noise floor"
    ]
    silent = scored_responses(
        simulated_result(lambda x, c: 0 * c), bare_axes(), title="silent"
    )
    assert silent.get_yscale() == "linear"
    assert silent.get_title() == "silent"
    silent.figure.canvas.draw()


# -- stimuli
# ------------------------------------------------------------------------------------------


def test_stimuli_are_drawn_pixel_for_pixel_in_degrees() -> None:
    ramp = np.linspace(0, 1, 32 * 64).reshape(32, 64)
    figure = stimulus_strip(
        [ramp, np.dstack([ramp] * 3)], ppd=16, labels=["grey", "colour"]
    )
    for ax, label in zip(figure.axes, ["grey", "colour"], strict=True):
        (image,) = ax.images
        assert image.get_interpolation() == "nearest"
        assert image.get_extent() == [-2, 2, -1, 1]
        assert image.origin == "upper"
        assert ax.get_xlabel() == "x (deg)"
        assert ax.get_title() == label
    assert figure.axes[0].get_ylabel() == "y (deg)"
    np.testing.assert_array_equal(figure.axes[0].images[0].get_array(), ramp)
    figure.canvas.draw()


def test_what_the_preview_clips_is_said() -> None:
    bright = np.full((10, 10), 0.5)
    bright[0, 0] = 1.2
    figure = stimulus_strip(bright[None], ppd=60, labels=["noise"])
    assert figure.axes[0].get_title() == "noise\n1 % clipped here"


@pytest.mark.parametrize(
    ("images", "options", "message"),
    [
        (np.zeros((0, 4, 4)), {}, "no images"),
        (np.zeros((2, 4)), {}, "shape"),
        (np.zeros((2, 4, 4, 4)), {}, "shape"),
        (np.full((1, 4, 4), np.nan), {}, "finite"),
        (np.zeros((1, 4, 4)), {"ppd": 0.0}, "above 0"),
        (np.zeros((1, 4, 4)), {"labels": ["a", "b"]}, "2 labels do not fit 1"),
    ],
)
def test_images_that_cannot_be_drawn_are_refused(
    images: np.ndarray, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        stimulus_strip(images, **{"ppd": 60.0, **options})


# -- files
# ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("suffix", "start"),
    [
        (".png", b"\x89PNG"),
        (".svg", b"<?xml"),
        (".pdf", b"%PDF"),
        (".eps", b"%!PS-Adobe-3.0 EPSF"),
    ],
)
def test_equal_figures_are_equal_files(
    tmp_path: Path, suffix: str, start: bytes
) -> None:
    written = [
        save_figure(
            contour(simulated_result(rising), bare_axes(), levels="log"),
            tmp_path / f"{name}{suffix}",
        )
        for name in ("first", "second")
    ]
    first, second = (path.read_bytes() for path in written)
    assert first == second
    assert first.startswith(start)
    assert b"CreationDate" not in first
    assert b"dc:date" not in first
    # Journals take text as TrueType.
    assert suffix != ".eps" or b"/FontType 42" in first


def test_dpi_is_that_of_the_png(tmp_path: Path) -> None:
    from PIL import Image

    figure = Figure(figsize=(2, 1))
    figure.add_subplot()
    with Image.open(save_figure(figure, str(tmp_path / "small.PNG"), dpi=50)) as image:
        assert image.size == (100, 50)


def test_files_that_cannot_be_written_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match=r"unknown figure format '\.jpg'"):
        save_figure(Figure(), tmp_path / "figure.jpg")
    with pytest.raises(PsyprobeError, match=r"figure\.png cannot be written"):
        save_figure(Figure(), tmp_path / "nowhere" / "figure.png")


def test_plot_draws_one_panel_where_it_is_told() -> None:
    result, ax = simulated_result(rising), bare_axes()
    assert plot(result, ax=ax) is ax
    with pytest.raises(InputError, match="ax holds one panel, and there are 2"):
        plot([result, result], ax=ax)
