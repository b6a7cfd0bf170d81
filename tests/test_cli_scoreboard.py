"""``psyprobe replay`` and ``psyprobe score --scoreboard``, as users meet them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from detection_results import simulated_result
from matching_results import simulated_matching

from psyprobe.cli import main

Output = pytest.CaptureFixture[str]


def succeed(capsys: Output, *arguments: object) -> str:
    assert main([str(a) for a in arguments]) == 0
    return capsys.readouterr().out


def fail(capsys: Output, *arguments: object) -> str:
    assert main([str(a) for a in arguments]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    return error


@pytest.fixture
def results(tmp_path: Path) -> list[Path]:
    files = [tmp_path / "detection.nc", tmp_path / "matching.nc"]
    simulated_result(lambda x, c: 0.3 * c / x).to_netcdf(files[0], engine="scipy")
    simulated_matching(lambda f, c: 0.3 * c / (1 + f)).to_netcdf(
        files[1], engine="scipy"
    )
    return files


def test_score_prints_both_kinds_of_results(
    capsys: Output, results: list[Path]
) -> None:
    text = succeed(capsys, "score", *results)
    assert "gabor_achromatic" in text and "perfect constancy" in text


def test_a_scoreboard_of_files_with_the_published_scores(
    capsys: Output, results: list[Path]
) -> None:
    text = succeed(
        capsys,
        "score",
        *results,
        "--scoreboard",
        "--published",
        "--sort",
        "contrast_matching",
    )
    assert (
        "Gabor ach" in text and "DINOv2 - ViT-L/14 + reg - LVD-142M (published)" in text
    )
    board = json.loads(succeed(capsys, "score", *results, "--scoreboard", "--json"))
    assert {
        score["name"] for score in board["scores"] if score["kind"] == "observer"
    } == {"simulated"}
    assert succeed(
        capsys, "score", *results, "--scoreboard", "--format", "csv"
    ).startswith("name,kind,")
    assert succeed(
        capsys, "score", *results, "--scoreboard", "--format", "latex"
    ).startswith("\\begin{tabular}")


def test_options_of_the_scoreboard_need_it(capsys: Output, results: list[Path]) -> None:
    assert "--scoreboard" in fail(capsys, "score", *results, "--published")
    assert "gabor_achromatic" in fail(
        capsys, "score", *results, "--scoreboard", "--sort", "gabor_achromatc"
    )


def test_both_kinds_are_plotted_into_one_figure(
    capsys: Output, results: list[Path], tmp_path: Path
) -> None:
    figure = tmp_path / "both.png"
    succeed(capsys, "plot", *results, "-o", figure)
    assert figure.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("kind", ["heat-map", "bars"])
def test_the_scoreboard_is_drawn(
    capsys: Output, results: list[Path], tmp_path: Path, kind: str
) -> None:
    alone, with_published = tmp_path / "alone.png", tmp_path / "beside.png"
    succeed(capsys, "plot", *results, "--scoreboard", kind, "-o", alone)
    succeed(
        capsys,
        "plot",
        *results,
        "--scoreboard",
        kind,
        "--published",
        "--sort",
        "gabor_achromatic",
        "-o",
        with_published,
    )
    assert with_published.stat().st_size > alone.stat().st_size > 1000


def test_options_of_the_drawn_scoreboard_need_it(
    capsys: Output, results: list[Path], tmp_path: Path
) -> None:
    figure = tmp_path / "none.png"
    assert "add --scoreboard heat-map or bars" in fail(
        capsys, "plot", *results, "--published", "-o", figure
    )
    assert "--layer" in fail(
        capsys, "plot", *results, "--scoreboard", "bars", "--layer", "a", "-o", figure
    )
    assert not figure.exists()


def test_replayed_responses_are_written_scored_and_put_on_the_board(
    capsys: Output, oracle_data: Path, tmp_path: Path
) -> None:
    folder = oracle_data / "encoder_protocol"
    files = succeed(
        capsys,
        "replay",
        folder / "published_sac_along_curve.csv.gz",
        "--grids",
        folder / "published_sac_grids",
        "--model",
        "dinov2_vits14",
        "--test",
        "area",
        "mask_coherent",
        "--output",
        tmp_path / "replayed",
    ).split()
    assert [Path(file).name for file in files] == [
        "area_published-replay-dinov2_vits14.nc",
        "mask_coherent_published-replay-dinov2_vits14.nc",
    ]
    board = succeed(capsys, "score", *files, "--scoreboard", "--published")
    assert "replay:dinov2_vits14" in board and "area (pub)" in board


def test_what_cannot_be_replayed_is_one_clear_line(
    capsys: Output, tmp_path: Path
) -> None:
    assert "cannot be read" in fail(
        capsys, "replay", tmp_path / "none.csv", "--grids", tmp_path
    )
