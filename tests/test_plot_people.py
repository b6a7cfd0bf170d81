"""People on figures: measured thresholds where they belong, widths of journals, and one's own
trials over people."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr
from detection_results import human_csf, simulated_result
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from psyprobe.analysis.psychometric import fit_psychometric, fit_trials, read_trials
from psyprobe.analysis.result_stimulus import conditions_of
from psyprobe.errors import InputError, UnknownNameError
from psyprobe.experiment import load_experiment
from psyprobe.human.castle import castle_csf
from psyprobe.human.points import Conditions, figure_points, matched_thresholds
from psyprobe.plotting import (
    contour,
    contours,
    plot_psychometric,
    plot_trials,
    share_legend,
)
from psyprobe.plotting.axes import short_name, tick_texts, title_of, typeset
from psyprobe.plotting.feature_parts import contour_parts
from psyprobe.probes.results import plot

GABOR = Conditions("frequency", (0.5, 28.0), luminance=100.0, area=np.pi)


@pytest.fixture(autouse=True)
def _no_figure_left_open() -> Iterator[None]:
    yield
    plt.close("all")


def rising(x: np.ndarray, contrast: np.ndarray) -> np.ndarray:
    drive = human_csf(x) * contrast
    return 0.45 * drive / (10 + drive)


def of_page(name: str, observer: str = "simulated") -> xr.Dataset:
    """A simulated result that says it is of a page of the catalogue."""
    page = load_experiment(name)
    return simulated_result(rising, observer=observer).assign_attrs(
        experiment=name, experiment_toml=page.toml
    )


def bare_axes() -> Axes:
    return Figure(layout="constrained").add_subplot()


def markers(ax: Axes) -> list[matplotlib.lines.Line2D]:
    return [
        line
        for line in ax.lines
        if line.get_marker() not in ("None", "", None) and len(line.get_xdata())
    ]


def legend_of(ax: Axes) -> list[str]:
    legend = ax.get_legend()
    return [] if legend is None else [text.get_text() for text in legend.get_texts()]


# -- measured thresholds
# ------------------------------------------------------------------------------------------


def test_points_are_means_over_people_with_standard_errors() -> None:
    (points,) = (
        points for points in figure_points(GABOR) if points.dataset == "modelfest"
    )
    rows = matched_thresholds(GABOR)
    rows = rows[
        (rows["dataset"] == "modelfest")
        & (rows["observer"] != "mean")
        & (rows["x"] == 4)
    ]
    log_s = np.log10(
        rows.groupby("observer")["sensitivity_transported"].apply(
            lambda s: 10 ** np.log10(s).mean()
        )
    )
    (at,) = np.flatnonzero(points.x == 4)
    assert points.n[at] == len(log_s) == 16
    assert np.log10(points.sensitivity[at]) == pytest.approx(log_s.mean())
    assert points.spread[at] == pytest.approx(log_s.std(ddof=1))
    assert points.error[at] == pytest.approx(log_s.std(ddof=1) / 4)


def test_filled_is_measured_so_and_hollow_is_moved() -> None:
    result = of_page("gabor_achromatic")
    ax, conditions = contour(result, bare_axes()), conditions_of(result)
    assert conditions is not None
    lines = {
        (line.get_marker(), line.get_markerfacecolor()): line for line in markers(ax)
    }
    for points in figure_points(conditions):
        marker = {"modelfest": "o", "wright1983": "P", "hdr_csf": "s"}.get(
            points.dataset
        )
        for filled in (True, False):
            if marker is None or not (points.direct == filled).any():
                continue
            line = lines[marker, "black" if filled else "white"]
            np.testing.assert_allclose(
                line.get_xdata(), points.x[points.direct == filled]
            )
            np.testing.assert_allclose(
                line.get_ydata(), points.sensitivity[points.direct == filled]
            )
            # Data sets are never joined, nor are points of one.
            assert line.get_linestyle() == "None"
    assert ("o", "black") not in lines


def test_the_legend_names_data_sets_people_and_moves() -> None:
    ax = contour(of_page("gabor_achromatic"), bare_axes())
    legend = legend_of(ax)
    assert (
        "modelfest, 16 people, ×1.7 to 4" in legend
        and "rovamo1993, 1 person, ×0.21 to 4.7" in legend
    )
    assert "±1 sd between people (modelfest)" in legend
    assert "hollow: moved here by castleCSF" in " ".join(
        ax.get_legend().get_title().get_text().split()
    )


def test_yellow_violet_is_never_moved_and_noise_says_what_it_is() -> None:
    conditions = Conditions(
        "frequency", (0.5, 28.0), "yellow_violet", luminance=100.0, area=np.pi
    )
    assert all(points.transport_range is None for points in figure_points(conditions))
    rows = matched_thresholds(conditions)
    rows = rows[(rows["dataset"] == "colorfest") & (rows["observer"] != "mean")]
    (points,) = (
        points for points in figure_points(conditions) if points.dataset == "colorfest"
    )
    assert points.sensitivity.max() <= rows["sensitivity"].max()
    noise = contour(of_page("noise_achromatic"), bare_axes())
    assert (
        "on noise: Gabor thresholds, moved"
        in noise.get_legend().get_title().get_text().replace("\n", " ")
    )
    assert not any(line.get_markerfacecolor() == "black" for line in markers(noise))


def test_what_no_display_could_show_is_left_out() -> None:
    small_gabors = Conditions("area", (0.02, 8.0), frequency=8.0, luminance=100.0)
    for conditions in (small_gabors, GABOR):
        rows = matched_thresholds(conditions)
        point_count = sum(len(points.x) for points in figure_points(conditions))
        assert point_count <= len(rows[rows["peak_cone_contrast"] <= 1])


@pytest.mark.parametrize(
    ("human", "dashed", "points"),
    [("both", 1, True), ("model", 1, False), ("measured", 0, True), ("none", 0, False)],
)
def test_one_chooses_what_is_drawn_of_people(
    human: str, dashed: int, points: bool
) -> None:
    ax = contour(of_page("gabor_achromatic"), bare_axes(), human=human)  # type: ignore[arg-type]
    assert [line.get_label() for line in ax.lines].count("Human (castleCSF)") == dashed
    assert bool(markers(ax)) == points


def test_an_unknown_choice_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'measured'"):
        contour(of_page("gabor_achromatic"), bare_axes(), human="mesured")  # type: ignore[arg-type]
    with pytest.raises(
        UnknownNameError, match="unknown colour map 'viridi'; did you mean 'viridis'"
    ):
        contour(of_page("gabor_achromatic"), bare_axes(), cmap="viridi")


def test_the_report_holds_the_points() -> None:
    (figure,) = contour_parts([of_page("gabor_achromatic")])
    lines = {line.name: line for line in figure.over}
    (modelfest,) = (
        line for name, line in lines.items() if name.startswith("modelfest, 16 people")
    )
    assert (
        modelfest.style == "people points"
        and "moved here by castleCSF, 16 people" in modelfest.notes[0]
    )


@pytest.mark.parametrize("stimulus", ["gabor_masked", "disc"])
def test_nobody_belongs_to_other_stimuli(stimulus: str) -> None:
    page = f'stimulus = "{stimulus}"'
    if stimulus == "disc":
        page = (
            'stimulus = { kind = "disc", parameters = { radius = 1.0, contrast = 0.1, '
            "luminance = 100 } }"
        )
    result = simulated_result(rising).assign_attrs(experiment_toml=page)
    assert conditions_of(result) is None


def test_code_that_a_store_names_is_not_run(tmp_path: Path) -> None:
    trap = tmp_path / "trap.py"
    trap.write_text("raise SystemExit('run')", encoding="utf-8")
    page = f'stimulus = {{ kind = "{trap}:Trap", parameters = {{}} }}'
    assert (
        conditions_of(simulated_result(rising).assign_attrs(experiment_toml=page))
        is None
    )


# -- a page that compares with a data set
# ----------------------------------------------------------------------------


def test_a_page_compares_with_a_data_set_by_name(tmp_path: Path) -> None:
    import psyprobe as pp

    page = tmp_path / "own.toml"
    page.write_text(
        'title = "Own"\nstimulus = "gabor_achromatic"\nprobe = "detection"\nhuman = { data = '
        '"modelfest" }\n'
        "levels = { frequency.values = [1, 2, 4, 8], contrast.values = [0.01, 0.1] }\n"
        "score = { multiplier.values = [0.5, 1, 2] }\n",
        encoding="utf-8",
    )
    result = pp.run(page, "pixels", score_only=True, progress=False)
    (points,) = (
        points for points in figure_points(GABOR) if points.dataset == "modelfest"
    )
    inside = (points.x >= 1) & (points.x <= 8)
    np.testing.assert_allclose(result["scored_frequency"], points.x[inside])
    np.testing.assert_allclose(result["human_sensitivity"], points.sensitivity[inside])
    assert result.attrs["human_model"] == "modelfest"


# -- for journals
# ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [85, 178])
def test_two_by_two_reads_at_the_width_of_a_column(width: float) -> None:
    names = ("gabor_achromatic", "noise_achromatic")
    figure = plot(
        [of_page(name, observer) for name in names for observer in ("one", "two")],
        width=width,
    )
    assert isinstance(figure, Figure)
    assert figure.get_size_inches()[0] == pytest.approx(width / 25.4)
    figure.canvas.draw()
    panels, renderer = figure.axes[:4], figure.canvas.get_renderer()  # type: ignore[attr-defined]
    rows = {ax.get_subplotspec().rowspan.start: ax for ax in reversed(panels)}
    assert [row.get_ylabel().split("\n")[0] for row in (rows[0], rows[1])] == list(
        names
    )
    for ax in panels:
        # A panel keeps a third of the width, and its labels keep off each other.
        assert ax.get_window_extent().width > 0.25 * figure.bbox.width
        at = [
            tick.label1 for tick in ax.xaxis.get_major_ticks() if tick.label1.get_text()
        ]
        boxes = [
            label.get_window_extent(renderer) for label in at if label.get_visible()
        ]
        assert all(box.x1 <= other.x0 + 1 for box, other in pairwise(boxes))
        assert min(label.get_fontsize() for label in at) >= 6
    (legend,) = figure.legends
    inside = legend.get_window_extent(renderer)
    assert inside.x0 >= -1 and inside.x1 <= figure.bbox.width + 1


def test_width_is_for_new_figures_and_within_reason() -> None:
    with pytest.raises(
        InputError, match="width is 85 mm, and ax or figure has a size of its own"
    ):
        contour(of_page("gabor_achromatic"), bare_axes(), width=85)
    with pytest.raises(InputError, match=r"width is 8\.5 mm; give 40 to 400"):
        contours([of_page("gabor_achromatic")] * 2, width=8.5)


def test_short_names_tell_observers_apart() -> None:
    assert (
        short_name("timm:vit_small_patch14_dinov2.lvd142m")
        == "vit_small_patch14_dinov2"
    )
    assert short_name("open_clip:ViT-B-32/openai") == "ViT-B-32/openai"
    twins = [
        simulated_result(rising, observer=f"timm:resnet50.{tag}")
        for tag in ("a1_in1k", "tv_in1k")
    ]
    assert title_of(twins[0]) == "resnet50"
    assert title_of(twins[0], among=twins) == "timm:resnet50.a1_in1k"


def test_ticks_of_an_axis_are_in_one_style() -> None:
    assert tick_texts([0.001, 1], 0.001, 1) == ["0.001", "1"]
    assert tick_texts([1e-4, 1], 1e-4, 1) == ["$10^{-4}$", "$10^{0}$"]


# -- one's own trials
# ------------------------------------------------------------------------------------------


@pytest.fixture
def staircases(tmp_path: Path) -> Path:
    """One up, three down, of a simulated person who is castleCSF."""
    rng, lines = (
        np.random.default_rng(3),
        ["# two alternatives", "frequency, contrast, correct"],
    )
    for frequency in (1, 2, 4, 8, 16):
        threshold = 1 / float(
            castle_csf(frequency, luminance=100.0, area=np.pi, direction="achromatic")
        )
        contrast, right = 0.3, 0
        for _ in range(120):
            probability = 0.5 + 0.49 * (1 - 0.5 ** ((contrast / threshold) ** 2.5))
            answer = int(rng.random() < probability)
            lines.append(f"{frequency},{contrast:.6g},{answer}")
            right = right + 1 if answer else 0
            if not answer:
                contrast = min(contrast * 10**0.1, 1.0)
            elif right == 3:
                contrast, right = contrast / 10**0.1, 0
    path = tmp_path / "staircases.csv"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def test_a_staircase_becomes_the_curve_that_was_put_in(staircases: Path) -> None:
    trials = read_trials(staircases)
    assert trials["trials"].sum("contrast_level").values.tolist() == [120] * 5
    fit = fit_trials(trials)
    truth = np.log10(
        castle_csf(
            trials["frequency"], luminance=100.0, area=np.pi, direction="achromatic"
        )
    )
    inside = (-fit.log10_threshold_high <= truth + 0.03) & (
        truth - 0.03 <= -fit.log10_threshold_low
    )
    assert inside.sum() >= 4
    np.testing.assert_allclose(-fit.log10_threshold, truth, atol=0.15)
    ax = plot_trials(staircases, bare_axes(), luminance=100.0, area=np.pi)
    assert {"Human (castleCSF)", "modelfest, 16 people, ×1.7 to 4"} <= set(
        legend_of(ax)
    )
    blue = [
        line
        for line in markers(ax)
        if line.get_color() == "#0072B2" and line.get_marker() == "o"
    ]
    dots = np.concatenate([line.get_ydata() for line in blue])
    np.testing.assert_allclose(np.sort(dots), np.sort(10**-fit.log10_threshold))
    ax.figure.canvas.draw()


def test_a_step_is_not_drawn_as_if_it_had_been_measured() -> None:
    contrast, trials = np.geomspace(0.01, 0.1, 6), 10
    step = fit_psychometric(contrast, [0, 0, 0, 10, 10, 10], trials)
    curve = fit_psychometric(contrast, [0, 1, 4, 7, 9, 10], trials)
    for fit, style in ((step, "--"), (curve, "-")):
        ax = plot_psychometric(
            fit,
            bare_axes(),
            answers=(contrast, [0, 1, 4, 7, 9, 10], trials),
            values=["mine"],
        )
        (line,) = [line for line in ax.lines if len(line.get_xdata()) > 100]
        assert line.get_linestyle() == style
    assert legend_of(plot_psychometric(step, bare_axes(), values=["mine"])) == [
        "mine (step)"
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("frequency,contrast\n1,0.1", "has 0 of the columns correct, yes"),
        ("contrast,correct\n0.1,1", "has 0 of the columns frequency, luminance, area"),
        ("frequency,correct\n1,1", "has no column contrast"),
        ("frequency,contrast,correct\n1,0,1", "contrast of 0; give values above 0"),
        ("frequency,contrast,correct\n1,0.1,2", "correct of 2; give 1 or 0"),
        ("frequency,contrast,correct\n1,much,1", "'much' as contrast; give a number"),
    ],
)
def test_files_that_are_none_of_trials_are_refused(
    tmp_path: Path, text: str, message: str
) -> None:
    path = tmp_path / "bad.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=message):
        read_trials(path)


def test_trials_of_several_people_are_not_pooled(tmp_path: Path) -> None:
    rows = [
        f"{observer},4,{contrast},{int(contrast > threshold)}"
        for observer, threshold in (("anna", 0.015), ("ben", 0.05))
        for contrast in np.geomspace(0.005, 0.2, 8)
    ]
    path = tmp_path / "people.csv"
    path.write_text(
        "observer,frequency,contrast,yes\n" + "\n".join(rows), encoding="utf-8"
    )
    with pytest.raises(InputError, match=r"trials of 2 people \(observer: anna, ben\)"):
        read_trials(path)
    trials = read_trials(path, by="observer")
    assert trials["observer"].values.tolist() == ["anna", "ben"]
    yes = trials["yes"].sum(["frequency", "contrast_level"])
    assert yes.values.tolist() == [5, 3]
    with pytest.raises(InputError, match="has no column subject; it has observer"):
        read_trials(path, by="subject")


def test_groups_of_trials_fit_a_column(staircases: Path) -> None:
    """Two people at 85 mm, each with a colour, and columns of another name."""
    lines = staircases.read_text(encoding="utf-8").splitlines()[2:]
    rows = [f"{'ben' if i % 2 else 'anna'},{line}" for i, line in enumerate(lines)]
    path = staircases.with_name("groups.csv")
    path.write_text("who,sf,contrast,correct\n" + "\n".join(rows), encoding="utf-8")
    ax = plot_trials(
        path,
        luminance=100.0,
        area=np.pi,
        human="model",
        columns={"sf": "frequency"},
        by="who",
        width=85,
    )
    assert ax.figure.get_size_inches()[0] == pytest.approx(85 / 25.4)
    assert {"anna", "ben"} <= {str(line.get_label()) for line in ax.containers}
    check_texts(ax.figure)


def test_panels_at_178_mm_share_a_legend(staircases: Path) -> None:
    contrast, yes = np.geomspace(0.01, 0.1, 6), [0, 1, 4, 7, 9, 10]
    fit = fit_psychometric(contrast, yes, 10)
    with typeset(178):
        figure = plt.figure(figsize=(178 / 25.4, 140 / 25.4), layout="constrained")
        panels = figure.subplots(2, 2).flat
        contour(of_page("gabor_achromatic"), panels[0])
        contour(of_page("noise_achromatic"), panels[1])
        plot_trials(staircases, panels[2], luminance=100.0, area=np.pi)
        plot_psychometric(fit, panels[3], answers=(contrast, yes, 10), values=["mine"])
        share_legend(figure)
    assert not any(ax.get_legend() for ax in figure.axes)
    (legend,) = figure.legends
    names = [text.get_text() for text in legend.get_texts()]
    assert {"Human (castleCSF)", "thresholds", "mine"} <= set(names)
    assert len(names) == len(set(names))
    check_texts(figure)


def check_texts(figure: Figure) -> None:
    """Check that no text is cut by the figure's edge, and none lies on another."""
    figure.canvas.draw()
    renderer = figure.canvas.get_renderer()  # type: ignore[attr-defined]
    hidden = set()
    for ax in figure.axes:
        for axis in (ax.xaxis, ax.yaxis):
            ticks = {*axis.get_major_ticks(), *axis.get_minor_ticks()}
            for tick in ticks - {*axis._update_ticks()}:
                hidden |= {tick.label1, tick.label2}
    boxes = [
        (text.get_text(), text.get_window_extent(renderer))
        for text in figure.findobj(matplotlib.text.Text)
        if text.get_visible() and text.get_text().strip() and text not in hidden
    ]
    edge = figure.bbox
    for name, box in boxes:
        assert box.x0 >= -2 and box.x1 <= edge.x1 + 2, f"{name!r} is cut"
        assert box.y0 >= -2 and box.y1 <= edge.y1 + 2, f"{name!r} is cut"
    for i, (name, box) in enumerate(boxes):
        for other, neighbour in boxes[i + 1 :]:
            wide = min(box.x1, neighbour.x1) - max(box.x0, neighbour.x0)
            high = min(box.y1, neighbour.y1) - max(box.y0, neighbour.y0)
            assert wide <= 2 or high <= 2, f"{name!r} lies on {other!r}"


def test_a_condition_that_is_missing_is_asked_for(staircases: Path) -> None:
    with pytest.raises(
        InputError, match="luminance is the same in all trials; give luminance="
    ):
        plot_trials(staircases, bare_axes(), area=np.pi)
    with pytest.raises(InputError, match="frequency stands in the file; leave it out"):
        plot_trials(staircases, bare_axes(), area=np.pi, luminance=100.0, frequency=2.0)
